//! Expansion of products of matrices.
//!
//! **With a unit**, the registers of the sum are cut into the unit's tiles, and for each step along the summed dimension the
//! tiles of the factors are brought together: from registers, where the layouts of factors hold them already, or from shared
//! memory, eight rows of 16 bytes at a time (`ldmatrix`), just before they are used. A step is one op over all tiles. Where a
//! block is smaller than a tile, its rows and columns are repeated.
//!
//! **Without a unit** each thread computes its elements by itself: it holds the rows and columns they take, or loads them from
//! shared memory a few at a time, and adds one product after the other along the summed dimension, all elements at once.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attrs, DotPrecision, Flag, MmaUnit, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::matrix_units::Fragments;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType, ValueType};
use crate::layout::{matrix, swizzle};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::shape::Shape;

use super::memory::slot_attrs;
use super::regs::{Expanded, SharedBlock};
use super::rings::{SharedAddress, Sums, offsets_in};
use super::{Expander, Result, bug};

/// Which register of an operand holds an element.
pub(super) type Holders = FxHashMap<u32, u32>;

/// A factor of a product by a unit.
pub(super) struct Factor<'a> {
    pub(super) source: FactorSource,
    pub(super) layout: Cow<'a, LinearLayout>,
    pub(super) elem: Elem,
    pub(super) unit: MmaUnit,
    /// Whether a thread holds neighbours across the summed dimension.
    pub(super) transposed: bool,
}

/// What `ldmatrix` is to fill: registers of a layout whose words hold the elements that `inner` leads to.
struct Words<'a> {
    layout: &'a LinearLayout,
    elem: Elem,
    /// Type of the registers' elements.
    operand: Elem,
    inner: &'a [u32],
}

pub(super) enum FactorSource {
    /// A pack with a register for each element.
    Pack(Value, Holders),
    Shared(SharedBlock),
}

/// Rows of 8x8 matrices that hold a block of registers.
struct MatrixRows {
    /// Whether they are those of the transposed matrices.
    transposed: bool,
    /// For each instruction.
    places: Vec<RowPlaces>,
}

/// Rows of the matrices of one instruction.
struct RowPlaces {
    /// How many matrices.
    count: u32,
    /// Where the first row stands.
    first: u32,
    /// Bytes that each bit of the thread's number switches.
    columns: Vec<u32>,
}

impl<'a> Expander<'a> {
    pub(super) fn expand_dot(&mut self, inst: Inst) -> Result<Expanded> {
        match matrix::unit(&matrix::dot_info(self.tile, inst), self.target) {
            Some(unit) => self.expand_product(inst, unit),
            None => self.expand_sums(inst),
        }
    }

    // With a unit.

    fn expand_product(&mut self, inst: Inst, unit: MmaUnit) -> Result<Expanded> {
        let ty = self.result_type(inst)?;
        let layout = self.layout(ty)?;
        if !matrix::is_accumulator(layout, unit) {
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
        let factors = [
            self.factor_of(inst, 0, unit)?,
            self.factor_of(inst, 1, unit)?,
        ];
        let [left, right] = factors.each_ref().map(|factor| factor.transposed);
        let unit = unit.with_fragments(match unit.info().fragments {
            Fragments::Rows => Fragments::Rows,
            Fragments::QuadPairs(..) => Fragments::QuadPairs(left, right),
        });
        let tile = matrix::tile(unit);
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
            let row = ty.shape.coordinate(element, row_dim);
            note(&mut rows, row & !(tile.rows - 1));
            let column = ty.shape.coordinate(element, column_dim);
            note(&mut columns, column & !(tile.columns - 1));
        }

        let held = layout.num_registers() as usize;
        let acc = self.arg(inst, 2)?;
        let acc = self.pack_of(&acc, held)?;
        let numbers = holders(layout);
        let [left, right] = [self.arg_type(inst, 0)?.shape, self.arg_type(inst, 1)?.shape];
        let step = tile.inner;
        let mut addresses = Sums::default();
        let mut sums = Vec::new();
        let mut places: FxHashMap<u32, u32> = FxHashMap::default();
        for &batch in &batches {
            let mut map = Vec::with_capacity(held);
            for &row in &rows {
                for &column in &columns {
                    for &(below, beside) in tile.sums {
                        let element = flat(ty.shape, batch, row + below, column + beside);
                        let Some(&register) = numbers.get(&element) else {
                            return bug("a tile of a sum that a thread does not hold");
                        };
                        let all = rows.len() * columns.len() * tile.sums.len();
                        let place = (sums.len() * all + map.len()) as u32;
                        places.entry(register).or_insert(place);
                        map.push(register);
                    }
                }
            }
            let mut sum = self.rearrange(&[acc], &map)?;
            // One column of tiles leaves room in the registers that four matrices fill: for the next step.
            let inner = left.extent(column_dim) as u32;
            let is_shared = matches!(factors[1].source, FactorSource::Shared(_));
            let leaves_room = is_shared && tile.right.len() == 2;
            let at_once = match columns.len() {
                1 if leaves_room && inner.is_multiple_of(2 * step) => 2,
                _ => 1,
            };
            let mut loaded: Option<Value> = None;
            for k in (0..inner).step_by(step as usize) {
                let elements: Vec<u32> = rows
                    .iter()
                    .flat_map(|&row| tile.left.iter().map(move |&(r, i)| (row + r, k + i)))
                    .map(|(row, k)| flat(left, batch, row, k))
                    .collect();
                let a = self.fragments(&factors[0], &mut addresses, &elements)?;
                let part = k / step % at_once;
                let pack = match loaded.filter(|_| part > 0) {
                    Some(pack) => pack,
                    None => {
                        let each = |k: u32, column: u32| {
                            let starts = tile.right.iter();
                            starts.map(move |&(c, i)| (k + i, column + c))
                        };
                        let elements: Vec<u32> = columns
                            .iter()
                            .flat_map(|&column| {
                                (0..at_once).flat_map(move |part| each(k + part * step, column))
                            })
                            .map(|(k, column)| flat(right, batch, k, column))
                            .collect();
                        self.fragments(&factors[1], &mut addresses, &elements)?
                    }
                };
                loaded = Some(pack);
                let b = if at_once == 1 {
                    pack
                } else {
                    let each = u32::from(self.ty(pack).count) / at_once;
                    let map: Vec<u32> = (part * each..(part + 1) * each).collect();
                    self.rearrange(&[pack], &map)?
                };
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
        let (source, transposed) = match self.arg(inst, index)? {
            Expanded::Shared(block) => {
                let offsets = offsets_in(&block.layout, ty.elem.bytes())?;
                let transposed = match unit.is_quad_pairs() {
                    true => swizzle::transposed_reader(layout, &offsets, ty.elem.bytes()),
                    false => None,
                };
                (FactorSource::Shared(block), transposed)
            }
            value => {
                let pack = self.pack_of(&value, layout.num_registers() as usize)?;
                (FactorSource::Pack(pack, holders(layout)), None)
            }
        };
        Ok(Factor {
            source,
            transposed: transposed.is_some(),
            layout: transposed.map_or(Cow::Borrowed(layout), Cow::Owned),
            elem: ty.elem,
            unit,
        })
    }

    /// Registers of tiles, as one pack: each holds the elements that follow the given one along the summed dimension.
    pub(super) fn fragments(
        &mut self,
        factor: &Factor<'_>,
        sums: &mut Sums,
        elements: &[u32],
    ) -> Result<Value> {
        let each = (32 / factor.elem.bits()).max(1);
        let inner = swizzle::word_columns(&factor.layout, factor.elem.bytes());
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
            FactorSource::Pack(pack, holders) => {
                let map: Option<Vec<u32>> = all
                    .iter()
                    .map(|element| holders.get(element).copied())
                    .collect();
                match map {
                    Some(map) => self.rearrange(&[*pack], &map)?,
                    None => return bug("a tile of a factor that a thread does not hold"),
                }
            }
            FactorSource::Shared(block) => {
                let words = Words {
                    layout: &factor.layout,
                    elem: factor.elem,
                    operand: factor.unit.elems().0,
                    inner,
                };
                if let Some(pack) = self.matrices(&words, block, sums, elements)? {
                    return Ok(pack);
                }
                self.load_elements(block, sums, &factor.layout, factor.elem, &all)?
            }
        };
        if factor.elem.bits() != 8 {
            return Ok(pack);
        }
        let ty = ThreadType::pack(Elem::I32, elements.len() as u16);
        self.op(InstData::new(ThreadOp::Words, &[pack]), &[ty])
    }

    /// A block of registers by `ldmatrix`: the words that elements `0, 2, 4, ..` of the list start.
    pub(super) fn load_matrices(
        &mut self,
        block: &SharedBlock,
        sums: &mut Sums,
        layout: &LinearLayout,
        elem: Elem,
        elements: &[u32],
    ) -> Result<Option<Value>> {
        if elem.bits() != 16 || elements.len() < 2 {
            return Ok(None);
        }
        let inner = &layout.columns(HwDim::Register)[..1];
        let is_paired = elements.chunks(2).all(|pair| pair[0] ^ inner[0] == pair[1]);
        if !is_paired {
            return Ok(None);
        }
        let words: Vec<u32> = elements.iter().copied().step_by(2).collect();
        let words_of = Words {
            layout,
            elem,
            operand: elem,
            inner,
        };
        self.matrices(&words_of, block, sums, &words)
    }

    /// Writes a block of registers by `stmatrix`; whether that is possible.
    pub(super) fn store_matrices(
        &mut self,
        block: &SharedBlock,
        layout: &LinearLayout,
        elem: Elem,
        pack: Value,
    ) -> Result<bool> {
        let count = layout.num_registers();
        // All lanes take part, so none may hold copies.
        if elem.bits() != 16 || count < 2 || self.target.sm < 90 || self.copies_of(layout) != (0, 0)
        {
            return Ok(false);
        }
        let inner = &layout.columns(HwDim::Register)[..1];
        let words: Vec<u32> = (0..count)
            .step_by(2)
            .map(|r| layout.apply(r, 0, 0, 0))
            .collect();
        let words_of = Words {
            layout,
            elem,
            operand: elem,
            inner,
        };
        let Some(matrices) = self.matrix_rows(&words_of, block, &words)? else {
            return Ok(false);
        };
        let mut sums = Sums::default();
        let mut first = 0;
        for rows in matrices.places {
            let access = SharedAddress {
                slot: block.slot,
                start: block.start,
                columns: &rows.columns,
                is_held: self.holds_addresses_of_stores(block.slot),
            };
            let (pointer, offset) = self.shared_place(&access, &mut sums, rows.first)?;
            let registers: Vec<u32> = (first..first + 2 * rows.count).collect();
            let x = self.rearrange(&[pack], &registers)?;
            let mut data = InstData::new(ThreadOp::StMatrix, &[pointer, x]);
            data.attrs.extend(slot_attrs(block.slot, offset));
            data.attrs
                .extend(matrices.transposed.then(|| make::trans(Flag)));
            self.effect(data)?;
            first += 2 * rows.count;
        }
        Ok(true)
    }

    /// The registers by `ldmatrix`, if rows of matrices are 16 bytes next to each other, along the summed dimension or, of
    /// 16-bit elements, across it.
    fn matrices(
        &mut self,
        source: &Words<'_>,
        block: &SharedBlock,
        sums: &mut Sums,
        elements: &[u32],
    ) -> Result<Option<Value>> {
        if self.target.sm < 75 {
            return Ok(None);
        }
        let Some(matrices) = self.matrix_rows(source, block, elements)? else {
            return Ok(None);
        };
        let per_word = if source.operand.bits() == 16 { 2 } else { 1 };
        let mut loaded = Vec::new();
        for rows in matrices.places {
            let access = SharedAddress {
                slot: block.slot,
                start: block.start,
                columns: &rows.columns,
                is_held: self.tile.slots.is_valid(block.slot),
            };
            let (pointer, offset) = self.shared_place(&access, sums, rows.first)?;
            let mut data = InstData::new(ThreadOp::LdMatrix, &[pointer]);
            data.attrs.extend(slot_attrs(block.slot, offset));
            if matrices.transposed {
                data.attrs.push(make::trans(Flag));
            }
            let ty = ThreadType::pack(source.operand, per_word * rows.count as u16);
            loaded.push(self.op(data, &[ty])?);
        }
        let total = elements.len() as u32 * u32::from(per_word);
        let map: Vec<u32> = (0..total).collect();
        self.rearrange(&loaded, &map).map(Some)
    }

    /// Where the rows of 8x8 matrices start that hold a block of registers, if those are 16 bytes next to each other.
    fn matrix_rows(
        &self,
        source: &Words<'_>,
        block: &SharedBlock,
        elements: &[u32],
    ) -> Result<Option<MatrixRows>> {
        let size = source.elem.bytes();
        let offsets = offsets_in(&block.layout, size)?;
        let Some(rows) = swizzle::rows(source.layout, source.inner, &offsets, size) else {
            return Ok(None);
        };
        let warps = source.layout.columns(HwDim::Warp);
        let mut places = Vec::new();
        let mut rest = elements;
        while !rest.is_empty() {
            // As many matrices as differ linearly: 4, 2 or 1.
            let mut count = 1 << rest.len().min(4).ilog2();
            if count == 4 && rest[0] ^ rest[1] ^ rest[2] != rest[3] {
                count = 2;
            }
            let (now, later) = rest.split_at(count);
            let differences = [1, 2].map(|i| now.get(i).map_or(0, |&e| e ^ now[0]));
            let columns: Vec<u32> = rows
                .columns
                .iter()
                .chain(&differences)
                .chain(warps)
                .map(|&column| offsets.of(column))
                .collect();
            // Rows start at multiples of 16 bytes.
            if columns.iter().any(|c| c % 16 != 0) || offsets.of(now[0]) % 16 != 0 {
                return Ok(None);
            }
            places.push(RowPlaces {
                count: count as u32,
                first: offsets.of(now[0]),
                columns,
            });
            rest = later;
        }
        Ok(Some(MatrixRows {
            transposed: rows.transposed,
            places,
        }))
    }

    // Without a unit.

    fn expand_sums(&mut self, inst: Inst) -> Result<Expanded> {
        let tile = self.tile;
        let ty = self.result_type(inst)?;
        let layout = self.layout(ty)?;
        let count = layout.num_registers() as usize;
        let acc = self.arg(inst, 2)?;
        let mut sum = self.pack_of(&acc, count)?;
        let is_cut = tile.dfg.insts[inst].precision() == Some(&DotPrecision::Tf32);
        let mut factors = Vec::new();
        for (i, is_left) in [(0, true), (1, false)] {
            let operand = self.arg_type(inst, i)?;
            let held = self.layout(operand)?;
            let wanted = layout.before_dot(operand.shape, is_left);
            if held.register_map(&wanted).is_none() {
                return bug("a thread lacks operands of its products");
            }
            let source = match self.arg(inst, i)? {
                Expanded::Shared(block) => FactorSource::Shared(block),
                value => {
                    let pack = self.pack_of(&value, held.num_registers() as usize)?;
                    FactorSource::Pack(pack, holders(held))
                }
            };
            let rows = ty.shape.rank() - 2;
            factors.push(Lines {
                source,
                layout: held,
                elem: operand.elem,
                dims: if is_left {
                    (rows, rows + 1)
                } else {
                    (rows + 1, rows)
                },
                chunk: (16 / operand.elem.bytes()).min(4),
                loaded: None,
            });
        }
        let inner = tile.dfg.insts[inst].args[0];
        let inner = tile.dfg.ty(inner).shape.extents().last().unwrap_or(1);
        let mut addresses = Sums::default();
        for k in 0..inner as u32 {
            let mut pair = Vec::new();
            for lines in &mut factors {
                pair.push(self.line(layout, lines, &mut addresses, k, (ty.elem, is_cut))?);
            }
            let [x, y] = pair[..] else {
                return bug("a product of matrices has two factors");
            };
            sum = if ty.elem == Elem::I32 {
                let product = self.binary(ThreadOp::Imul, x, y)?;
                self.binary(ThreadOp::Iadd, sum, product)?
            } else {
                self.op(InstData::new(ThreadOp::Fma, &[x, y, sum]), &[])?
            };
        }
        Ok(Expanded::Pack(sum))
    }

    /// For each register of the result, the factor at `k` of the summed dimension, as [`Expander::as_term`] makes it. Each
    /// element is made a term once.
    fn line(
        &mut self,
        result: &LinearLayout,
        lines: &mut Lines<'_>,
        addresses: &mut Sums,
        k: u32,
        (sum, is_cut): (Elem, bool),
    ) -> Result<Value> {
        let (kept, summed) = lines.dims;
        let (to, shape) = (result.shape(), lines.layout.shape());
        let element = |flat: u32, k: u32| {
            let dims = (0..to.rank() - 2).chain([kept]);
            dims.fold(k << shape.bit_offset(summed), |sum, dim| {
                sum | to.coordinate(flat, dim) << shape.bit_offset(dim)
            })
        };
        let registers = || (0..result.num_registers()).map(|r| result.apply(r, 0, 0, 0));
        let (pack, holders) = match &lines.source {
            FactorSource::Pack(pack, holders) => (*pack, holders),
            FactorSource::Shared(block) => {
                let first = k - k % lines.chunk;
                if lines.loaded.as_ref().is_none_or(|l| l.0 != first) {
                    let last = (first + lines.chunk).min(shape.extent(summed) as u32);
                    let mut wanted: Vec<u32> = registers()
                        .flat_map(|flat| (first..last).map(move |k| (flat, k)))
                        .map(|(flat, k)| element(flat, k))
                        .collect();
                    // Neighbours in memory, whose order follows that of their offsets, side by side.
                    let offsets = offsets_in(&block.layout, lines.elem.bytes())?;
                    wanted.sort_unstable_by_key(|&e| offsets.of(e));
                    wanted.dedup();
                    let pack =
                        self.load_elements(block, addresses, lines.layout, lines.elem, &wanted)?;
                    let places = (0..).zip(&wanted).map(|(i, &e)| (e, i)).collect();
                    lines.loaded = Some((first, pack, places));
                }
                match &lines.loaded {
                    Some((_, pack, places)) => (*pack, places),
                    None => return bug("a line of a factor was not loaded"),
                }
            }
        };
        let mut kept: Vec<u32> = Vec::new();
        let mut map = Vec::new();
        for flat in registers() {
            let Some(&holder) = holders.get(&element(flat, k)) else {
                return bug("a register of a factor is missing");
            };
            let known = kept.iter().position(|&other| other == holder);
            map.push(known.unwrap_or(kept.len()) as u32);
            if known.is_none() {
                kept.push(holder);
            }
        }
        let line = self.rearrange(&[pack], &kept)?;
        let terms = self.as_term(line, sum, is_cut)?;
        self.rearrange(&[terms], &map)
    }

    /// Elements of a factor in the type that they are multiplied in.
    fn as_term(&mut self, x: Value, sum: Elem, is_cut: bool) -> Result<Value> {
        let ty = self.ty(x);
        let widen = |op: ThreadOp, to: Elem| (InstData::new(op, &[x]), ty.with_elem(to));
        let (data, to) = match ty.elem {
            elem if elem == sum && !(is_cut && elem == Elem::F32) => return Ok(x),
            Elem::F32 => {
                let int = ty.with_elem(Elem::I32);
                let bits = self.op(InstData::new(ThreadOp::Bitcast, &[x]), &[int])?;
                let mask = self.constant(int, TF32_BITS);
                let kept = self.binary(ThreadOp::And, bits, mask)?;
                (InstData::new(ThreadOp::Bitcast, &[kept]), ty)
            }
            Elem::BF16 => {
                // The upper half of an f32, on every target.
                let half = ty.with_elem(Elem::I16);
                let bits = self.op(InstData::new(ThreadOp::Bitcast, &[x]), &[half])?;
                let word = ty.with_elem(Elem::I32);
                let wide = self.op(InstData::new(ThreadOp::Zext, &[bits]), &[word])?;
                let by = self.constant(word, 16);
                let high = self.binary(ThreadOp::Shl, wide, by)?;
                (InstData::new(ThreadOp::Bitcast, &[high]), ty.with_elem(sum))
            }
            elem if elem.is_int() => widen(ThreadOp::Sext, sum),
            _ => widen(ThreadOp::Fpext, sum),
        };
        self.op(data, &[to])
    }
}

/// The bits of an f32 that `tf32` keeps.
const TF32_BITS: u64 = 0xffff_e000;

/// A factor of a product without a unit.
struct Lines<'a> {
    source: FactorSource,
    layout: &'a LinearLayout,
    elem: Elem,
    /// The dimension that the result has too, and the summed one.
    dims: (usize, usize),
    /// Elements along the summed dimension that are loaded together.
    chunk: u32,
    /// The first of those loaded last, a pack, and where in it each element stands.
    loaded: Option<(u32, Value, Holders)>,
}

/// The first register that holds each element of a thread, those of thread 0 standing for all.
pub(super) fn holders(layout: &LinearLayout) -> Holders {
    let mut holders = Holders::default();
    for register in 0..layout.size(HwDim::Register) {
        holders
            .entry(layout.apply(register, 0, 0, 0))
            .or_insert(register);
    }
    holders
}
