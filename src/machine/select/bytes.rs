//! Bytes as loads leave them, several in a register.
//!
//! A byte of the IR has a register of 16 bits, with anything above it. What turns bytes into floats takes them two at a time, and picks
//! them from the words in which loads brought them, by one `prmt`: the registers of single bytes are then never made. Stores take the words
//! themselves, and whether a byte is zero its bits in the word tell.

use smallvec::SmallVec;

use super::values::element_of;
use super::{Selector, bits_type, memory};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::ir::types::Elem;
use crate::machine::inst::{Cmp, Modifier, Operand, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, RegView, Unit};

/// A byte of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Byte {
    unit: Unit,
    place: u32,
}

impl Selector<'_> {
    /// Words with two elements of bytes each, in bytes 0 and 2, and anything beside them.
    pub(super) fn spread_bytes(&mut self, value: Value) -> Operand {
        let Some(bytes) = self.packed_bytes(value) else {
            let singles = self.use_value(value);
            return super::rules::Context::pair(self, singles);
        };
        let pairs = bytes.chunks_exact(2);
        let words: SmallVec<[Unit; 16]> = pairs
            .map(|pair| {
                let (low, high) = (pair[0], pair[1]);
                self.permuted([low, low, high, high])
            })
            .collect();
        Operand::Regs(self.code.regs.view_of(&words))
    }

    /// Registers of 16 bits with two elements of bytes each.
    pub(super) fn close_bytes(&mut self, value: Value) -> Operand {
        let Some(bytes) = self.packed_bytes(value) else {
            return match self.use_value(value) {
                Operand::Regs(view) if view.count > 1 => {
                    let [low, high] = [0, 1].map(|first| Operand::Regs(view.every_second(first)));
                    self.close(low, high)
                }
                // One that stands for all.
                one => self.close(one, one),
            };
        };
        let mut halves: SmallVec<[Unit; 16]> = SmallVec::new();
        for four in bytes.chunks(4) {
            if let &[a, b, c, d] = four
                && Selector::few_sources(&[a, b, c, d])
            {
                let word = self.permuted([a, b, c, d]);
                let word = Operand::Regs(self.code.regs.view_of(&[word]));
                let both = self.result_of(
                    Ptx::Split32,
                    PtxType::B32,
                    PtxType::B32,
                    Modifier::None,
                    &[word],
                );
                halves.extend(self.units_of(both));
                continue;
            }
            for pair in four.chunks_exact(2) {
                let word = self.permuted([pair[0], pair[1], pair[0], pair[1]]);
                let word = Operand::Regs(self.code.regs.view_of(&[word]));
                let low = self.result_of(
                    Ptx::Cvt,
                    PtxType::U16,
                    PtxType::U32,
                    Modifier::None,
                    &[word],
                );
                halves.extend(self.units_of(low));
            }
        }
        Operand::Regs(self.code.regs.view_of(&halves))
    }

    /// Two bytes in registers of their own, beside each other.
    pub(super) fn close(&mut self, low: Operand, high: Operand) -> Operand {
        if let (Operand::Imm(low), Operand::Imm(high)) = (low, high) {
            return Operand::Imm(low & 0xff | high << 8 & 0xff00);
        }
        let ty = PtxType::B16;
        let mut op = |op, a, b| self.result_of(op, ty, ty, Modifier::None, &[a, b]);
        let low = op(Ptx::And, low, Operand::Imm(0xff));
        let high = op(Ptx::Shl, high, Operand::Imm(8));
        op(Ptx::Or, low, high)
    }

    /// Bytes beside each other that loads brought, in the words that an access takes: where they are the words that were loaded, these.
    pub(super) fn loaded_words(&mut self, value: Value) -> Option<RegView> {
        if !self.func.dfg.ty(value).count.is_multiple_of(4) {
            return None;
        }
        let bytes = self.packed_bytes(value)?;
        let mut words: SmallVec<[Unit; 8]> = SmallVec::new();
        for four in bytes.chunks(4) {
            let &[a, b, c, d] = four else {
                return None;
            };
            let word = if Selector::few_sources(four) {
                self.permuted([a, b, c, d])
            } else {
                let pairs = [[a, b], [c, d]].map(|[x, y]| self.permuted([x, y, x, y]));
                let [low, high] = pairs.map(|unit| Byte { unit, place: 0 });
                let next = |byte: Byte| Byte { place: 1, ..byte };
                self.permuted([low, next(low), high, next(high)])
            };
            words.push(word);
        }
        Some(self.code.regs.view_of(&words))
    }

    /// Whether each of the bytes that loads brought is zero, or is not. They are looked at where they are.
    pub(super) fn test_bytes(&mut self, inst: Inst) -> Option<Operand> {
        let data = &self.func.dfg.insts[inst];
        let cmp = match data.ipred()? {
            IntPred::Eq => Cmp::Eq,
            IntPred::Ne => Cmp::Ne,
            _ => return None,
        };
        let &[value, zero] = &data.args[..] else {
            return None;
        };
        if self.func.dfg.ty(value).elem.bits() != 8 || self.use_value(zero) != Operand::Imm(0) {
            return None;
        }
        let bytes = self.packed_bytes(value)?;
        Some(self.tested(&bytes, cmp))
    }

    /// Which bytes of packed registers are not zero.
    pub(super) fn not_zero(&mut self, packed: RegView) -> Operand {
        let units: SmallVec<[Unit; 8]> = self.code.regs.units(packed).collect();
        let class = self.code.regs.class_of(self.code.regs.unit(packed, 0));
        let each = bits_type(class).bits() / 8;
        let of = |unit| (0..each).map(move |place| Byte { unit, place });
        let bytes: SmallVec<[Byte; 32]> = units.into_iter().flat_map(of).collect();
        self.tested(&bytes, Cmp::Ne)
    }

    fn tested(&mut self, bytes: &[Byte], cmp: Cmp) -> Operand {
        let mut found: SmallVec<[Unit; 32]> = SmallVec::new();
        for byte in bytes {
            let word = Operand::Regs(self.code.regs.view_of(&[byte.unit]));
            let (bits, number) = match self.code.regs.class_of(byte.unit) {
                RegClass::W => (PtxType::B32, PtxType::S32),
                _ => (PtxType::B16, PtxType::S16),
            };
            let mask = Operand::Imm(0xff << (8 * byte.place));
            let own = self.result_of(Ptx::And, bits, bits, Modifier::None, &[word, mask]);
            let sources = [own, Operand::Imm(0)];
            let is_so = self.result_of(Ptx::Setp, number, number, Modifier::Cmp(cmp), &sources);
            let view = self.in_register(is_so, RegClass::P);
            found.push(self.code.regs.unit(view, 0));
        }
        Operand::Regs(self.code.regs.view_of(&found))
    }

    fn units_of(&self, operand: Operand) -> SmallVec<[Unit; 2]> {
        match operand {
            Operand::Regs(view) => self.code.regs.units(view).collect(),
            _ => SmallVec::new(),
        }
    }

    /// Whether bytes stand in two registers at most.
    fn few_sources(bytes: &[Byte]) -> bool {
        let first = bytes[0].unit;
        let mut others = bytes
            .iter()
            .map(|byte| byte.unit)
            .filter(|&unit| unit != first);
        let second = others.next();
        second.is_none_or(|second| others.all(|unit| unit == second))
    }

    /// A word of four bytes from two registers at most; bytes of others are left out.
    fn permuted(&mut self, bytes: [Byte; 4]) -> Unit {
        let first = bytes[0].unit;
        let second = bytes
            .iter()
            .map(|byte| byte.unit)
            .find(|&unit| unit != first);
        let selector = bytes.iter().enumerate().fold(0, |all, (i, byte)| {
            let above = if byte.unit == first { 0 } else { 4 };
            all | u64::from(byte.place + above) << (4 * i)
        });
        if selector == 0x3210 && self.code.regs.class_of(first) == RegClass::W {
            return first;
        }
        let (low, high) = (self.word_of(first), self.word_of(second.unwrap_or(first)));
        let args = [low, high, Operand::Imm(selector)];
        let word = self.result_of(Ptx::Prmt, PtxType::B32, PtxType::B32, Modifier::None, &args);
        let view = self.in_register(word, RegClass::W);
        self.code.regs.unit(view, 0)
    }

    /// A register as one of 32 bits.
    fn word_of(&mut self, unit: Unit) -> Operand {
        let view = Operand::Regs(self.code.regs.view_of(&[unit]));
        match self.code.regs.class_of(unit) {
            RegClass::W => view,
            _ => self.result_of(
                Ptx::Cvt,
                PtxType::U32,
                PtxType::U16,
                Modifier::None,
                &[view],
            ),
        }
    }

    /// Where loads left each of the elements of a value; none if one of them comes from elsewhere. These registers are needed, then.
    fn packed_bytes(&mut self, value: Value) -> Option<SmallVec<[Byte; 32]>> {
        let count = u32::from(self.func.dfg.ty(value).count);
        let places = (0..count).map(|element| self.load_of(value, element));
        let places: SmallVec<[(Value, u32); 32]> = places.collect::<Option<_>>()?;
        let bytes = places.into_iter().map(|(load, element)| {
            let packed = self.packed_words(load);
            let each = self.code.regs.class_of(self.code.regs.unit(packed, 0));
            let each = bits_type(each).bits() / 8;
            Byte {
                unit: self.code.regs.unit(packed, (element / each) as u16),
                place: element % each,
            }
        });
        Some(bytes.collect())
    }

    /// The load of several bytes that brings an element, and its number there.
    fn load_of(&self, value: Value, element: u32) -> Option<(Value, u32)> {
        let func = self.func;
        let (mut value, mut element) = (value, element);
        loop {
            let ty = func.dfg.ty(value);
            let inst = func.dfg.def_inst(value)?;
            let data = &func.dfg.insts[inst];
            let is_bytes = ty.elem.bits() == 8 && matches!(ty.elem, Elem::Num(_));
            match data.op {
                _ if !is_bytes => return None,
                ThreadOp::Ld if 1 < ty.count => return Some((value, element)),
                ThreadOp::Rearrange => {
                    let from = *data.map()?.get(element as usize)?;
                    (value, element) = element_of(func, &data.args, from)?;
                }
                ThreadOp::Bitcast if func.dfg.ty(data.args[0]).count == ty.count => {
                    value = data.args[0]
                }
                _ => return None,
            }
        }
    }

    /// The registers that a load of bytes fills.
    fn packed_words(&mut self, load: Value) -> RegView {
        if let Some(view) = self.packed[load] {
            return view;
        }
        let words = memory::words(self.func.dfg.ty(load));
        let view = self.fresh(words.ty.class(), words.count);
        self.packed[load] = Some(view);
        view
    }
}
