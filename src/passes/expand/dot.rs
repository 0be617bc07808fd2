//! Expansion of products of matrices.
//!
//! **With a unit**, the registers of the sum are cut into the unit's tiles, and for each step along the summed dimension the
//! tiles of the factors are brought together: from registers, where the layouts of factors hold them already, or from shared
//! memory, eight rows of 16 bytes at a time (`ldmatrix`), just before they are used. A step is one op over all tiles. Where a
//! block is smaller than a tile, its rows and columns are repeated.
//!
//! **Without a unit** each thread computes its elements by itself: it holds the rows and columns they take, and adds one
//! product after the other along the summed dimension, all elements at once.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{Flag, MmaUnit, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::layout::matrix;
use crate::linear::layout::{HwDim, LinearLayout};
use crate::linear::shape::Shape;

use super::memory::slot_attrs;
use super::regs::{Expanded, SharedBlock};
use super::shared::{Access, Offsets};
use super::{Expander, Result, bug};

/// Which register of an operand holds an element.
type Holders = FxHashMap<u32, u32>;

/// Lanes that give the addresses of one matrix of `ldmatrix`, as bits.
const ROW_BITS: usize = 3;

/// A factor of a product by a unit.
struct Factor<'a> {
    source: Source,
    layout: &'a LinearLayout,
    elem: Elem,
    /// Registers of a tile.
    words: usize,
    unit: MmaUnit,
}

enum Source {
    /// A pack with a register for each element.
    Pack(Value, Holders),
    Shared(SharedBlock),
}

impl<'a> Expander<'a> {
    pub(super) fn expand_dot(&mut self, inst: Inst) -> Result<Expanded> {
        match matrix::unit(&matrix::product_of(self.tile, inst), self.target) {
            Some(unit) => self.expand_product(inst, unit),
            None => self.expand_sums(inst),
        }
    }

    // With a unit.

    fn expand_product(&mut self, inst: Inst, unit: MmaUnit) -> Result<Expanded> {
        let ty = self.result_type(inst)?;
        let layout = self.layout(ty)?;
        if !matrix::is_accumulator(layout) {
            return bug("a unit cannot add to a sum in this layout");
        }
        let rank = ty.shape.rank();
        let (row_dim, column_dim) = (rank - 2, rank - 1);
        let flat = |shape: Shape, batch: u32, row: u32, column: u32| {
            let wrapped = |at: u32, dim: usize| {
                (at & (shape.extent(dim) as u32 - 1)) << shape.bit_offset(dim)
            };
            let batch = if rank == 3 { wrapped(batch, 0) } else { 0 };
            batch | wrapped(row, row_dim) | wrapped(column, column_dim)
        };
        // Tiles that thread 0 has a part of; the others have theirs at the same places.
        let (mut batches, mut rows, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        let note = |list: &mut Vec<u32>, at: u32| {
            if !list.contains(&at) {
                list.push(at);
            }
        };
        for register in 0..layout.num_registers() {
            let element = layout.apply(register, 0, 0, 0);
            let batch = if rank == 3 {
                ty.shape.coordinate(element, 0)
            } else {
                0
            };
            note(&mut batches, batch);
            note(
                &mut rows,
                ty.shape.coordinate(element, row_dim) & !(matrix::TILE_ROWS - 1),
            );
            let column = ty.shape.coordinate(element, column_dim);
            note(&mut columns, column & !(matrix::TILE_COLUMNS - 1));
        }

        let held = layout.num_registers() as usize;
        let acc = self.arg(inst, 2)?;
        let acc = self.pack_of(&acc, held)?;
        let numbers = holders(layout);
        let factors = [
            self.factor_of(inst, 0, unit)?,
            self.factor_of(inst, 1, unit)?,
        ];
        let [left, right] = [self.arg_type(inst, 0)?.shape, self.arg_type(inst, 1)?.shape];
        let step = matrix::tile_inner(unit);
        let mut sums = Vec::new();
        let mut places: FxHashMap<u32, u32> = FxHashMap::default();
        for &batch in &batches {
            let mut map = Vec::with_capacity(held);
            for &row in &rows {
                for &column in &columns {
                    for i in 0..4 {
                        let element = flat(ty.shape, batch, row + 8 * (i >> 1), column + (i & 1));
                        let Some(&register) = numbers.get(&element) else {
                            return bug("a tile of a sum that a thread does not hold");
                        };
                        let place =
                            (sums.len() * rows.len() * columns.len() * 4 + map.len()) as u32;
                        places.entry(register).or_insert(place);
                        map.push(register);
                    }
                }
            }
            let mut sum = self.rearrange(&[acc], &map)?;
            for k in (0..left.extent(column_dim) as u32).step_by(step as usize) {
                let tiles_a = rows.iter().flat_map(|&row| {
                    (0..4).map(move |j| (row + 8 * (j & 1), k + (j >> 1) * step / 2))
                });
                let elements: Vec<u32> =
                    tiles_a.map(|(row, k)| flat(left, batch, row, k)).collect();
                let a = self.fragments(&factors[0], &elements)?;
                let tiles_b = columns
                    .iter()
                    .flat_map(|&column| (0..2).map(move |j| (k + j * step / 2, column)));
                let elements: Vec<u32> = tiles_b
                    .map(|(k, column)| flat(right, batch, k, column))
                    .collect();
                let b = self.fragments(&factors[1], &elements)?;
                let mut data = InstData::new(ThreadOp::Mma, &[a, b, sum]);
                data.attrs.push(make::unit(unit));
                sum = self.op(data, &[])?;
            }
            sums.push(sum);
        }
        let map: Option<Vec<u32>> = (0..held as u32).map(|r| places.get(&r).copied()).collect();
        match map {
            Some(map) => Ok(Expanded::Pack(self.rearrange(&sums, &map)?)),
            None => bug("a register of a sum that belongs to no tile"),
        }
    }

    fn factor_of(&mut self, inst: Inst, index: usize, unit: MmaUnit) -> Result<Factor<'a>> {
        let ty = self.arg_type(inst, index)?;
        let layout = self.layout(ty)?;
        let source = match self.arg(inst, index)? {
            Expanded::Shared(block) => Source::Shared(block),
            value => {
                let pack = self.pack_of(&value, layout.num_registers() as usize)?;
                Source::Pack(pack, holders(layout))
            }
        };
        Ok(Factor {
            source,
            layout,
            elem: ty.elem,
            words: if index == 0 { 4 } else { 2 },
            unit,
        })
    }

    /// Registers of tiles, as one pack: each holds the elements that follow the given one along the summed dimension.
    fn fragments(&mut self, factor: &Factor<'_>, elements: &[u32]) -> Result<Value> {
        let each = (32 / factor.elem.bits()).max(1);
        // In a layout of factors the elements of a word are the lowest registers.
        let columns = factor.layout.columns(HwDim::Register);
        let bits = each.ilog2() as usize;
        let inner = &columns[..bits.min(columns.len())];
        let in_word = |first: u32| {
            (0..each).map(move |i| {
                let set = inner
                    .iter()
                    .enumerate()
                    .filter(move |&(bit, _)| i >> bit & 1 == 1);
                set.fold(first, |sum, (_, &column)| sum ^ column)
            })
        };
        let all: Vec<u32> = elements.iter().flat_map(|&first| in_word(first)).collect();
        let pack = match &factor.source {
            Source::Pack(pack, holders) => {
                let map: Option<Vec<u32>> = all
                    .iter()
                    .map(|element| holders.get(element).copied())
                    .collect();
                match map {
                    Some(map) => self.rearrange(&[*pack], &map)?,
                    None => return bug("a tile of a factor that a thread does not hold"),
                }
            }
            Source::Shared(block) => {
                if let Some(pack) = self.matrices(factor, block, inner, elements)? {
                    return Ok(pack);
                }
                self.load_elements(block, factor.layout, factor.elem, &all)?
            }
        };
        if factor.elem.bits() != 8 {
            return Ok(pack);
        }
        let ty = ThreadType::pack(Elem::I32, elements.len() as u16);
        self.op(InstData::new(ThreadOp::Words, &[pack]), &[ty])
    }

    /// The registers by `ldmatrix`, if rows of matrices are 16 bytes next to each other, along the summed dimension or, of
    /// 16-bit elements, across it.
    fn matrices(
        &mut self,
        factor: &Factor<'_>,
        block: &SharedBlock,
        inner: &[u32],
        elements: &[u32],
    ) -> Result<Option<Value>> {
        let size = factor.elem.bytes();
        if self.target.sm < 75 || size > 4 {
            return Ok(None);
        }
        let offsets = Offsets::new(&block.layout, size)?;
        let lanes = factor.layout.columns(HwDim::Lane);
        let (quad, groups) = lanes.split_at(2);
        let along: Vec<u32> = inner.iter().chain(quad).copied().collect();
        let is_row = |columns: &[u32]| {
            let places = columns.iter().enumerate();
            columns.len() as u32 == (16 / size).ilog2()
                && places
                    .into_iter()
                    .all(|(bit, &c)| offsets.of(c) == size << bit)
        };
        let (rows, is_turned) = if is_row(&along) {
            (groups, false)
        } else if size == 2 && is_row(groups) {
            (&along[..], true)
        } else {
            return Ok(None);
        };
        let (operand, _) = factor.unit.elems();
        let per_word = if operand.bits() == 16 { 2 } else { 1 };
        let warps = factor.layout.columns(HwDim::Warp);
        let mut loaded = Vec::new();
        let mut rest = elements;
        while !rest.is_empty() {
            // As many matrices as differ linearly: 4, 2 or 1.
            let mut count = rest.len().min(4);
            if count == 3 {
                count = 2;
            }
            if count == 4 && rest[0] ^ rest[1] ^ rest[2] != rest[3] {
                count = 2;
            }
            let (now, later) = rest.split_at(count);
            let differences = [1, 2].map(|i| now.get(i).map_or(0, |&e| e ^ now[0]));
            let columns: Vec<u32> = rows[..ROW_BITS]
                .iter()
                .chain(&differences)
                .chain(warps)
                .map(|&column| offsets.of(column))
                .collect();
            let access = Access {
                slot: block.slot,
                start: block.start,
                columns: &columns,
            };
            let (pointer, offset) = self.shared_place(&access, offsets.of(now[0]))?;
            let mut data = InstData::new(ThreadOp::LdMatrix, &[pointer]);
            data.attrs.extend(slot_attrs(block.slot, offset));
            if is_turned {
                data.attrs.push(make::trans(Flag));
            }
            let ty = ThreadType::pack(operand, per_word * count as u16);
            loaded.push(self.op(data, &[ty])?);
            rest = later;
        }
        debug_assert!(elements.len().is_multiple_of(factor.words));
        let total = elements.len() as u32 * u32::from(per_word);
        let map: Vec<u32> = (0..total).collect();
        self.rearrange(&loaded, &map).map(Some)
    }

    // Without a unit.

    fn expand_sums(&mut self, inst: Inst) -> Result<Expanded> {
        let ty = self.result_type(inst)?;
        let layout = self.layout(ty)?;
        let count = layout.num_registers() as usize;
        let acc = self.arg(inst, 2)?;
        let mut sum = self.pack_of(&acc, count)?;
        let mut operands = Vec::new();
        for (i, is_left) in [(0, true), (1, false)] {
            let operand = self.arg_type(inst, i)?;
            let held = self.layout(operand)?;
            let wanted = layout.before_dot(operand.shape, is_left);
            if held.register_map(&wanted).is_none() {
                return bug("a thread lacks operands of its products");
            }
            let value = self.arg(inst, i)?;
            let pack = self.pack_of(&value, held.num_registers() as usize)?;
            operands.push((pack, holders(held), operand.shape));
        }
        let [a, b] = &operands[..] else {
            return bug("a product of matrices has two factors");
        };
        let rows = ty.shape.rank() - 2;
        for k in 0..a.2.extent(rows + 1) as u32 {
            let x = self.factor(layout, a, (rows, rows + 1), k)?;
            let y = self.factor(layout, b, (rows + 1, rows), k)?;
            sum = if ty.elem == Elem::I32 {
                let product = self.binary(ThreadOp::Imul, x, y)?;
                self.binary(ThreadOp::Iadd, sum, product)?
            } else {
                self.op(InstData::new(ThreadOp::Fma, &[x, y, sum]), &[])?
            };
        }
        Ok(Expanded::Pack(sum))
    }

    /// For each register of the result, the factor at `k` of the summed dimension of an operand that has dimension `kept` in
    /// common with the result.
    fn factor(
        &mut self,
        result: &LinearLayout,
        (pack, holders, shape): &(Value, Holders, Shape),
        (kept, summed): (usize, usize),
        k: u32,
    ) -> Result<Value> {
        let to = result.shape();
        let element = |flat: u32| {
            let dims = (0..to.rank() - 2).chain([kept]);
            dims.fold(k << shape.bit_offset(summed), |sum, dim| {
                sum | to.coordinate(flat, dim) << shape.bit_offset(dim)
            })
        };
        let map: Option<Vec<u32>> = (0..result.num_registers())
            .map(|r| holders.get(&element(result.apply(r, 0, 0, 0))).copied())
            .collect();
        match map {
            Some(map) => self.rearrange(&[*pack], &map),
            None => bug("a register of a factor is missing"),
        }
    }
}

/// The first register that holds each element of a thread, those of thread 0 standing for all.
fn holders(layout: &LinearLayout) -> Holders {
    let mut holders = Holders::default();
    for register in 0..layout.size(HwDim::Register) {
        holders
            .entry(layout.apply(register, 0, 0, 0))
            .or_insert(register);
    }
    holders
}
