//! Expansion of what a program's author promises of numbers and addresses.
//!
//! Of a block a promise changes the form, not a number: an aligned run of registers that is promised to count up becomes its
//! first element plus constants, and bases of runs are known to be multiples, under names of their own. Accesses are then as
//! wide as if the numbers had been computed so.
//!
//! A promise of multiples speaks of elements that do not follow the one before them. Where all aligned runs of `c` elements
//! count up, such elements stand at multiples of `c`, so an element there is a multiple of both the number promised and `c`.

use smallvec::SmallVec;

use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, ThreadType};

use super::regs::{Expanded, Parts, PartsBuilder};
use super::{Expander, Result};

/// Exponent of the longest run of which use is made: the elements of a byte that one access takes. Programs promise whole blocks
/// also where the last one holds only part of the data; what is no use should do no harm.
const LONGEST: usize = 4;

/// What is promised along one dimension, as exponents of two.
#[derive(Clone, Copy, Default)]
struct Promised {
    multiple: u32,
    contiguous: u32,
}

impl Expander<'_> {
    /// A promise: the same numbers, of which more is known from here on.
    pub(super) fn expand_promise(&mut self, inst: Inst) -> Result<Expanded> {
        let source = self.arg(inst, 0)?;
        let ty = self.result_type(inst)?;
        let promised = self.promised(inst);
        if let Expanded::Uniform(value) = source {
            // The first element follows none.
            let zeros = promised.iter().map(|p| p.multiple).max().unwrap_or(0);
            return Ok(Expanded::Uniform(self.multiple_of(value, zeros)?));
        }
        let layout = self.layout(ty)?;
        let runs: Vec<(Promised, SmallVec<[u8; 8]>)> = (0..)
            .zip(promised)
            .map(|(dim, promised)| (promised, layout.run_bits(dim)))
            .collect();
        let counts_up =
            |(p, bits): &(Promised, SmallVec<[u8; 8]>)| p.contiguous != 0 && !bits.is_empty();
        if matches!(source, Expanded::Shared(_))
            || matches!(source, Expanded::Pack(_)) && !runs.iter().any(counts_up)
        {
            return Ok(source);
        }
        let mut parts = self.parts_of(&source, self.registers(ty)?)?;
        for (promised, bits) in &runs {
            let length = bits.len().min(promised.contiguous as usize).min(LONGEST);
            parts = counted_up(&parts, &bits[..length], ty.elem);
        }
        let mut zeros: SmallVec<[u32; 4]> = SmallVec::from_elem(0, parts.bases.len());
        for (promised, bits) in &runs {
            let counts = |&n: &usize| is_counted_up(&parts, &bits[..n], ty.elem);
            let length = (0..=bits.len()).rev().find(counts).unwrap_or(0);
            let known = promised.multiple.min(length as u32 + unit(ty.elem));
            for (reg, part) in parts.regs.iter().enumerate() {
                if place_in_run(reg, &bits[..length]).1 == 0 {
                    let base = &mut zeros[usize::from(part.base)];
                    *base = (*base).max((part.offset | 1 << known).trailing_zeros());
                }
            }
        }
        for (base, zeros) in parts.bases.iter_mut().zip(zeros) {
            *base = self.multiple_of(*base, zeros)?;
        }
        Ok(Expanded::Parts(parts))
    }

    /// What an instruction and those before it promise of the same numbers, for each dimension.
    fn promised(&self, inst: Inst) -> SmallVec<[Promised; 4]> {
        let dfg = &self.tile.dfg;
        let rank = dfg.insts[inst].values().map_or(0, |values| values.len());
        let mut promised: SmallVec<[Promised; 4]> = SmallVec::from_elem(Promised::default(), rank);
        let mut next = Some(inst);
        while let Some(inst) = next {
            let data = &dfg.insts[inst];
            let values = data.values().map_or(&[][..], |values| values);
            for (known, value) in promised.iter_mut().zip(values) {
                let field = match data.op {
                    TileOp::AssumeMultiple => &mut known.multiple,
                    TileOp::AssumeContiguous => &mut known.contiguous,
                    _ => continue,
                };
                *field = (*field).max(value.trailing_zeros().min(31));
            }
            next = match data.op {
                TileOp::AssumeMultiple
                | TileOp::AssumeContiguous
                | TileOp::AssumeConstant
                | TileOp::ConvertLayout => dfg.def_inst(data.args[0]),
                _ => None,
            };
        }
        promised
    }

    /// A number with `zeros` low bits zero, under a new name if that was not known.
    fn multiple_of(&mut self, value: Value, zeros: u32) -> Result<Value> {
        let known = self.bits.get(value);
        let mask = known & (u64::MAX << zeros);
        if mask == known || self.known(value).is_some() {
            return Ok(value);
        }
        let mut data = InstData::new(ThreadOp::Rearrange, &[value]);
        data.attrs.push(make::map([0u32][..].into()));
        let elem = self.ty(value).elem;
        let named = self.op(data, &[ThreadType::scalar(elem)])?;
        self.bits.set(named, mask);
        Ok(named)
    }
}

/// Exponent of the distance between neighbours that count up: of pointers in bytes.
fn unit(elem: Elem) -> u32 {
    elem.pointee().map_or(0, |p| p.bytes().trailing_zeros())
}

/// The register of the first element of the run in which `reg` stands, and how many elements are between them. The register
/// bits `bits` walk along the run.
fn place_in_run(reg: usize, bits: &[u8]) -> (usize, i64) {
    let ahead = (0..).zip(bits).map(|(i, &bit)| (reg >> bit & 1) << i);
    let first = bits.iter().fold(reg, |reg, &bit| reg & !(1 << bit));
    (first, ahead.sum::<usize>() as i64)
}

/// The base and constant of `reg` if its run counts up.
fn counted(parts: &Parts, reg: usize, bits: &[u8], elem: Elem) -> (Value, i64) {
    let (first, ahead) = place_in_run(reg, bits);
    let (base, offset) = parts.at(first);
    let offset = offset.wrapping_add(ahead << unit(elem));
    (base, Expander::wrap(elem, offset))
}

/// Whether each run is its first element plus constants.
fn is_counted_up(parts: &Parts, bits: &[u8], elem: Elem) -> bool {
    (0..parts.regs.len()).all(|reg| {
        let (base, offset) = parts.at(reg);
        counted(parts, reg, bits, elem) == (base, Expander::wrap(elem, offset))
    })
}

/// The registers with each run as its first element plus constants.
fn counted_up(parts: &Parts, bits: &[u8], elem: Elem) -> Parts {
    let mut builder = PartsBuilder::default();
    for reg in 0..parts.regs.len() {
        let (base, offset) = counted(parts, reg, bits, elem);
        builder.push(base, offset);
    }
    builder.finish()
}
