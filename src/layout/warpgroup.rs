//! Units that four warps feed together (`wgmma`): which products they take, and how their operands stand in shared memory.
//!
//! Such a unit adds to rows of sums, of which each warp of a group holds as many, and to any multiple of eight columns up to a
//! bound; the table of units has the numbers. It reads the right operand from shared memory and the left one from there or from registers. In shared memory a matrix stands in the forms that
//! tensor maps know too ([`named::shared_tma`]): rows of 32, 64 or 128 bytes below each other, whose pieces of 16 bytes are
//! permuted. A *row* runs along the summed dimension (K-major) or across it (the transposed form, of 16-bit elements alone).
//!
//! A 64-bit *descriptor* says where a matrix starts and how it stands; the PTX manual calls its distances leading and stride
//! dimension byte offset (section on the matrix descriptor of `wgmma`).

use smallvec::{SmallVec, smallvec};

use super::matrix;
use super::swizzle::{self, Offsets};
use crate::analysis::axis::Axis;
use crate::analysis::computed::is_computed;
use crate::analysis::neighbours::neighbours;
use crate::ir::attrs::{Attrs, MmaUnit};
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::matrix_units::UnitInfo;
use crate::ir::types::Elem;
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::named;
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// Rows of memory that a pattern of permuted pieces spans.
const PATTERN_ROWS: u32 = 8;
/// What the start of a matrix and its distances are counted in.
const UNIT_BYTES: u32 = 16;

/// The row of one of these units, for what all of them have in common: warps, and rows and columns of an instruction.
fn common() -> &'static UnitInfo {
    MmaUnit::WarpgroupF16.info()
}

/// The unit for a `dot` or `dot_start`; none if the target has none, or the block is too small for it.
pub fn unit_of(func: &TileFunction, inst: Inst, target: Target) -> Option<MmaUnit> {
    let product = matrix::dot_info(func, inst);
    let sums = func.dfg.ty(*func.dfg.insts[inst].results.first()?).shape;
    if sums.rank() != 2 || warps(sums, func.num_warps()).is_none() {
        return None;
    }
    // Sums of products of 8-bit floats keep about 14 bits of each step, which is less than the bound of a `dot` that does not say so,
    // but more than that of sums of f16.
    let is_eight = product.left.is_float() && product.left.bits() == 8;
    let is_short = is_eight && product.sum != Elem::F16;
    let imprecise = func.dfg.insts[inst].imprecise().copied().unwrap_or(0);
    let unit = matrix::unit_of(&product, common().warps, target);
    unit.filter(|unit| !is_short || unit.info().inner <= imprecise)
}

/// Products along the summed dimension after which what was summed from zero is added to the rest, of a `dot_start` that
/// asks for it.
pub fn summed_apart(func: &TileFunction, inst: Inst) -> Option<u32> {
    let product = matrix::dot_info(func, inst);
    let imprecise = func.dfg.insts[inst].imprecise().copied()?;
    let is_asked = product.left.is_float() && product.left.bits() == 8;
    (is_asked && u64::from(imprecise) <= product.inner).then(|| 1 << imprecise.ilog2())
}

/// Warps along rows and columns of the sums: groups share out the rows as far as there are enough for each, and then
/// columns. None
/// if groups would hold copies.
fn warps(sums: Shape, num_warps: u32) -> Option<[u32; 2]> {
    let unit = common();
    let groups = num_warps / unit.warps;
    let (rows, columns) = (sums.extent(0) as u32, sums.extent(1) as u32);
    if groups == 0 || rows < unit.rows {
        return None;
    }
    let down = groups.min(rows / unit.rows);
    let across = groups / down;
    (columns / across >= *unit.columns.start()).then_some([unit.warps * down, across])
}

/// Instructions below each other by which a group comes to the rows of the sums that are its own.
pub fn tiles_down(sums: Shape, num_warps: u32) -> Option<u32> {
    let unit = common();
    let [down, _] = warps(sums, num_warps)?;
    Some(sums.extent(0) as u32 / (unit.rows * down / unit.warps))
}

/// The layout of sums that the unit adds to.
pub fn accumulator(sums: Shape, num_warps: u32) -> Option<LinearLayout> {
    named::wgmma_accumulator(sums, &warps(sums, num_warps)?).ok()
}

/// Whether a product's left operand comes to registers as columns, which threads load one by one: what is computed stays in registers, and
/// no unit reads a block in place whose neighbours stand across the sum, if elements have four bytes.
pub fn loads_columns(func: &TileFunction, axis: &Axis, product: Inst) -> bool {
    let left = func.dfg.insts[product].args[0];
    let has_words = func.dfg.ty(left).elem.bytes() == 4;
    (has_words || is_computed(func, left)) && neighbours(func, axis, left) == Some(0)
}

/// The layout of such sums whose rows are dealt out in another order, for a left operand of elements of so many bytes that threads load
/// from a block with neighbours along the rows. The unit does not see which rows it is given.
///
/// Of its rows a thread holds two or four that are neighbours, which one access loads. The four lanes beside each other load from
/// neighbouring columns if elements are words, from every second one if there are two in a word; the forms in shared memory put pieces of
/// 16 bytes of neighbouring columns onto each other's banks by twos and fours. So for words the lanes of the eight rows that are loaded
/// together, or the half of them, tell first the other bits of the place in a row of 128 bytes, and no two of an access meet in a bank.
pub fn accumulator_of_columns(
    sums: Shape,
    num_warps: u32,
    elem_bytes: u32,
) -> Option<LinearLayout> {
    let plain = accumulator(sums, num_warps)?;
    with_rows(&plain, &row_order(sums, num_warps, elem_bytes)?)
}

/// Which bit of a row's number in the order of the unit each bit of a row's number is where they are dealt out for loads of columns.
fn row_order(sums: Shape, num_warps: u32, elem_bytes: u32) -> Option<Vec<u32>> {
    // Bits 0 to 2 tell lanes apart, 3 registers, 4 and 5 warps, and then groups and the instructions of a group, if it has several.
    let all = u32::from(sums.log2()[0]);
    let instructions = tiles_down(sums, num_warps)?.ilog2();
    let mut order: Vec<u32> = match (instructions, elem_bytes) {
        (0, 4) => vec![3, 1, 2, 4, 0, 5],
        (_, 4) => vec![3, all - instructions, 1, 2, 0, 4, 5],
        (0, _) => vec![3],
        _ => vec![3, all - instructions],
    };
    let rest: Vec<u32> = (0..all).filter(|bit| !order.contains(bit)).collect();
    order.extend(rest);
    Some(order)
}

/// A layout of a matrix with its rows in another order.
fn with_rows(layout: &LinearLayout, order: &[u32]) -> Option<LinearLayout> {
    let shape = layout.shape();
    let (first, mask) = (shape.bit_offset(0), shape.bit_mask(0));
    let moved = |column: u32| {
        let row = (column & mask) >> first;
        let bits = (0..).zip(order).filter(|&(_, &from)| row >> from & 1 == 1);
        bits.fold(column & !mask, |all, (to, _)| all | 1 << (first + to))
    };
    let of = |dim| -> Vec<u32> {
        let columns = layout.columns(dim).iter();
        columns.map(|&column| moved(column)).collect()
    };
    let [registers, lanes, warps] = [HwDim::Register, HwDim::Lane, HwDim::Warp].map(of);
    LinearLayout::distributed(shape, &registers, &lanes, &warps).ok()
}

/// The layout of a left operand in registers for a sum with the layout.
pub fn left_operand(sum: &LinearLayout, unit: MmaUnit, shape: Shape) -> Option<LinearLayout> {
    let (sums, num_warps) = (sum.shape(), sum.num_warps());
    let warps = warps(sums, num_warps)?;
    let plain = named::wgmma_operand_a(shape, matrix::operand_bits(unit), &warps).ok()?;
    let elem_bytes = matrix::operand_bits(unit).div_ceil(8);
    match accumulator_of_columns(sums, num_warps, elem_bytes).as_ref() == Some(sum) {
        true => with_rows(&plain, &row_order(sums, num_warps, elem_bytes)?),
        false => Some(plain),
    }
}

/// Columns of the sums that one instruction of a group adds to.
pub fn columns_at_once(sum: &LinearLayout) -> Option<u32> {
    let [_, across] = warps(sum.shape(), sum.num_warps())?;
    let columns = sum.shape().extent(1) as u32 / across;
    Some(columns.min(*common().columns.end()))
}

/// How a matrix stands in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixForm {
    /// The dimension along which neighbours stand next to each other.
    pub inner: usize,
    /// Bytes of a row: 32, 64 or 128.
    pub swizzle: u32,
}

impl MatrixForm {
    /// Every form of a matrix, the ones with the longest rows first.
    fn all() -> impl Iterator<Item = MatrixForm> {
        let both = |swizzle| [1, 0].map(|inner| MatrixForm { inner, swizzle });
        [128, 64, 32].into_iter().flat_map(both)
    }

    /// The layout of a block of this form, if it has whole rows.
    pub fn layout(self, shape: Shape, elem_bytes: u32) -> Option<LinearLayout> {
        let order: SmallVec<[usize; 2]> = smallvec![self.inner, 1 - self.inner];
        let whole = shape.extent(1 - self.inner) >= u64::from(PATTERN_ROWS);
        let made = named::shared_tma(shape, &order, elem_bytes, self.swizzle);
        made.ok().filter(|_| whole)
    }

    /// The form that a layout is of.
    pub fn of(layout: &LinearLayout, elem_bytes: u32) -> Option<MatrixForm> {
        if layout.is_distributed() || layout.shape().rank() != 2 {
            return None;
        }
        MatrixForm::all()
            .find(|form| form.layout(layout.shape(), elem_bytes).as_ref() == Some(layout))
    }

    /// Bytes that the start of a matrix is a multiple of.
    pub fn alignment(self) -> u32 {
        PATTERN_ROWS * self.swizzle
    }

    /// Whether rows run across the summed dimension `inner`.
    pub fn is_transposed(self, summed: usize) -> bool {
        self.inner != summed
    }

    /// Whether the unit reads a matrix of the shape in this form, `kept` rows or columns at once, the sums running along the
    /// dimension `summed`.
    pub fn is_read(self, shape: Shape, elem_bytes: u32, summed: usize, kept: u32) -> bool {
        let fits = self.layout(shape, elem_bytes).is_some();
        if !self.is_transposed(summed) {
            return fits;
        }
        // What is read at once starts where a row does, or within it at a multiple of its own size: the unit permutes bits of
        // addresses, after it has added up the start and the place of an element.
        let row = self.swizzle / elem_bytes;
        let starts_apart =
            kept.is_multiple_of(row) || row.is_multiple_of(kept) && kept * elem_bytes >= 16;
        fits && elem_bytes == 2 && starts_apart
    }

    /// The bits of a descriptor beside the start, of a block of the shape.
    pub fn descriptor(self, shape: Shape, summed: usize) -> u64 {
        let swizzle = match self.swizzle {
            128 => 1,
            64 => 2,
            _ => 3,
        };
        // From eight rows to the next; from a row's piece to the next piece of the same rows, which K-major does not use.
        let stride = u64::from(PATTERN_ROWS * self.swizzle / UNIT_BYTES);
        let leading = match self.is_transposed(summed) {
            true => shape.extent(summed) * u64::from(self.swizzle / UNIT_BYTES),
            false => 1,
        };
        leading << 16 | stride << 32 | swizzle << 62
    }
}

/// How a block stands in memory to which the copy engine brings it row by row, and which `readers` load: in the form that takes the
/// engine and the readers least. The engine brings a row at a time, however short. (An H100, a right operand of tf32: with rows
/// of 32 bytes, without conflicts, 516 us of 4096^3, with rows of 128 and two trips for each load 458.)
pub fn box_layout(shape: Shape, elem_bytes: u32, readers: &[&LinearLayout]) -> LinearLayout {
    let forms =
        MatrixForm::all().filter(|form| form.inner + 1 == shape.rank() && shape.rank() == 2);
    let bytes = shape.elements() as u32 * elem_bytes;
    let costs = forms.filter_map(|form| {
        let layout = form.layout(shape, elem_bytes)?;
        let offsets = Offsets::new(&layout, elem_bytes);
        let trips = |reader: &&LinearLayout| {
            let trips = offsets
                .as_ref()
                .map(|it| swizzle::trips(reader, it, elem_bytes));
            trips.map_or(0, |trips| trips.wavefronts * reader.num_warps())
        };
        let reads: u32 = readers.iter().map(trips).sum();
        Some((bytes / form.swizzle + reads, layout))
    });
    let best = costs.min_by_key(|(cost, _)| *cost);
    best.map_or_else(|| named::shared_row_major(shape), |(_, layout)| layout)
}

/// How a block stands in memory from which the copy engine takes it: in the form with the longest rows, which is the fewest
/// boxes.
pub fn staging_layout(shape: Shape, elem_bytes: u32) -> LinearLayout {
    let mut forms =
        MatrixForm::all().filter(|form| form.inner + 1 == shape.rank() && shape.rank() == 2);
    let longest = forms.find_map(|form| form.layout(shape, elem_bytes));
    longest.unwrap_or_else(|| named::shared_row_major(shape))
}

/// The shape of the pieces in which a block of sums can go to memory one after the other: of each group of warps the rows of one
/// instruction, and as many columns as stand beside each other. None if there are not more than two of them.
pub fn piece(block: Shape, elem_bytes: u32, num_warps: u32) -> Option<Shape> {
    let [_, across] = warps(block, num_warps)?;
    let form = MatrixForm::of(&staging_layout(block, elem_bytes), elem_bytes)?;
    let [rows, columns] = [0, 1].map(|dim| block.extent(dim) as u32);
    let down = tiles_down(block, num_warps)?;
    let beside = form.swizzle / elem_bytes;
    let is_worth_it = across == 1 && 2 < down * (columns / beside);
    let extents = [rows / down, beside].map(u64::from);
    Shape::new(&extents).ok().filter(|_| is_worth_it)
}

/// A block of sums in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The layout of each.
    pub layout: LinearLayout,
    /// The block's registers that are each one's, and the row and the column where it begins.
    pub places: Vec<(Vec<u32>, [u32; 2])>,
}

/// The pieces of a block with the layout, if each is of certain registers of all threads.
pub fn pieces(layout: &LinearLayout, elem_bytes: u32) -> Option<Pieces> {
    let block = layout.shape();
    let shape = piece(block, elem_bytes, layout.num_warps())?;
    let [columns, beside] = [block, shape].map(|shape| shape.extent(1) as u32);
    let registers = layout.columns(HwDim::Register);
    // Columns of the register bits that tell pieces apart: of other columns, and of rows of other instructions.
    let tells = |&column: &u32| {
        let is_beside = beside <= column && column < columns;
        column.is_power_of_two() && (is_beside || common().rows * columns <= column)
    };
    let between: u32 = registers.iter().filter(|column| tells(column)).sum();
    // As many of each as pieces stand beside and below each other.
    let below = block.extent(0) / shape.extent(0);
    let has_all = between % columns == columns - beside
        && u64::from((between / columns).count_ones()) == u64::from(below.ilog2());
    if !has_all {
        return None;
    }
    let kept: Vec<u32> = (0..32)
        .map(|bit| 1 << bit)
        .filter(|bit| between & bit == 0)
        .collect();
    // An element of the block as the one of its piece.
    let squeezed = |column: u32| {
        let bits = kept
            .iter()
            .enumerate()
            .filter(|(_, bit)| column & **bit != 0);
        bits.fold(0, |all, (i, _)| all | 1 << i)
    };
    let of = |dim| -> Vec<u32> {
        let columns = layout.columns(dim).iter().copied();
        let own = columns.filter(|column| column & between == 0);
        own.map(squeezed).collect()
    };
    let all_others = [HwDim::Lane, HwDim::Warp].map(|dim| layout.columns(dim));
    if all_others
        .into_iter()
        .flatten()
        .any(|column| column & between != 0)
    {
        return None;
    }
    let made = LinearLayout::distributed(
        shape,
        &of(HwDim::Register),
        &of(HwDim::Lane),
        &of(HwDim::Warp),
    );
    let telling = |register: u32| layout.apply(register, 0, 0, 0) & between;
    let mut places: Vec<(Vec<u32>, [u32; 2])> = Vec::new();
    for register in 0..layout.num_registers() {
        let at = telling(register);
        let start = [at / columns, at % columns];
        match places.iter_mut().find(|(_, place)| *place == start) {
            Some((own, _)) => own.push(register),
            None => places.push((vec![register], start)),
        }
    }
    places.sort_by_key(|&(_, [row, column])| (column, row));
    Some(Pieces {
        layout: made.ok()?,
        places,
    })
}

/// How a unit reads a block: the dimension that it sums along, and how many rows or columns it reads at once.
pub type Reader = (usize, u32);

/// How the left and the right operand are read for sums of the shape.
pub fn readers(sums: Shape, num_warps: u32) -> Option<[Reader; 2]> {
    let columns = columns_at_once(&accumulator(sums, num_warps)?)?;
    Some([(1, common().rows), (0, columns)])
}

/// The forms of the shape in which every reader takes a block.
pub fn forms(shape: Shape, elem_bytes: u32, readers: &[Reader]) -> Vec<MatrixForm> {
    let is_read = |form: &MatrixForm| {
        let mut readers = readers.iter();
        readers.all(|&(summed, kept)| form.is_read(shape, elem_bytes, summed, kept))
    };
    MatrixForm::all().filter(is_read).collect()
}

/// Warps of a group.
pub fn group_warps() -> u32 {
    common().warps
}

/// Bits of the number of a group within the warps of a program: the columns of the warp bits above those of a group.
pub fn group_columns(sum: &LinearLayout) -> &[u32] {
    let columns = sum.columns(HwDim::Warp);
    &columns[(common().warps.ilog2() as usize).min(columns.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::matrix_units::When;
    use crate::layout::swizzle::Offsets;

    fn shape(extents: &[u64]) -> Shape {
        Shape::new(extents).expect("powers of two")
    }

    #[test]
    fn units_of_warpgroups_differ_in_numbers_alone() {
        let all = MmaUnit::ALL.iter().map(|unit| unit.info());
        let of_groups: Vec<&UnitInfo> = all.filter(|unit| unit.when == When::UntilWait).collect();
        assert!(of_groups.contains(&common()));
        for unit in of_groups {
            let sizes = |unit: &UnitInfo| (unit.warps, unit.rows, unit.columns.clone());
            assert_eq!(sizes(unit), sizes(common()), "{unit:?}");
        }
    }

    #[test]
    fn groups_take_rows_first() {
        assert_eq!(warps(shape(&[128, 256]), 8), Some([8, 1]));
        assert_eq!(warps(shape(&[128, 128]), 4), Some([4, 1]));
        assert_eq!(warps(shape(&[64, 256]), 8), Some([4, 2]));
        assert_eq!(warps(shape(&[64, 8]), 8), None);
        assert_eq!(warps(shape(&[32, 64]), 4), None);
        assert_eq!(warps(shape(&[64, 64]), 2), None);
    }

    /// Who loads columns of words from a block with long rows has whole accesses, and no two threads meet in a bank.
    #[test]
    fn columns_of_words_are_loaded_without_conflicts() {
        for (rows, num_warps) in [(64, 4), (128, 4), (256, 4), (128, 8), (256, 8), (512, 16)] {
            let sums = accumulator_of_columns(shape(&[rows, 64]), num_warps, 4).expect("sums");
            assert!(sums.is_surjective());
            let operand = left_operand(&sums, MmaUnit::WarpgroupTf32, shape(&[rows, 32]));
            let operand = operand.expect("a left operand").permute(&[1, 0]);
            let form = MatrixForm {
                inner: 1,
                swizzle: 128,
            };
            let ring = form.layout(shape(&[32, rows]), 4).expect("long rows");
            let offsets = Offsets::new(&ring, 4).expect("a layout of memory");
            let trips = swizzle::trips(&operand, &offsets, 4);
            let instructions = tiles_down(sums.shape(), num_warps).expect("rows of instructions");
            let each = if instructions == 1 { 2 } else { 4 };
            assert_eq!(trips.instructions, operand.num_registers() / each, "{rows}");
            assert_eq!(trips.wavefronts, operand.num_registers(), "{rows}");
            // In the order of the unit a load takes two trips.
            let plain = accumulator(shape(&[rows, 64]), num_warps).expect("sums");
            let plain = left_operand(&plain, MmaUnit::WarpgroupTf32, shape(&[rows, 32]));
            let plain = plain.expect("a left operand").permute(&[1, 0]);
            let trips = swizzle::trips(&plain, &offsets, 4);
            assert_eq!(trips.wavefronts, 2 * plain.num_registers());
        }
    }

    /// The same of bytes and halves that are made operands of 16 bits, in the order of the unit but for the rows of a thread.
    #[test]
    fn columns_of_what_halves_are_made_of_are_loaded_without_conflicts() {
        for (rows, num_warps) in [(64, 4), (128, 4), (128, 8), (256, 8)] {
            let sums = accumulator_of_columns(shape(&[rows, 64]), num_warps, 2).expect("sums");
            assert!(sums.is_surjective());
            let operand = left_operand(&sums, MmaUnit::WarpgroupF16, shape(&[rows, 64]));
            let operand = operand.expect("a left operand").permute(&[1, 0]);
            for bytes in [1, 2, 4] {
                let swizzle = 128.min(rows as u32 * bytes);
                let form = MatrixForm { inner: 1, swizzle };
                let ring = form.layout(shape(&[64, rows]), bytes).expect("long rows");
                let offsets = Offsets::new(&ring, bytes).expect("a layout of memory");
                let trips = swizzle::trips(&operand, &offsets, bytes);
                let instructions = tiles_down(sums.shape(), num_warps).expect("rows");
                let each = if instructions == 1 { 2 } else { 4 };
                assert_eq!(trips.instructions, operand.num_registers() / each);
                // Bytes for all lanes, of which a trip brings 128.
                let least = trips.instructions * (32 * each * bytes).div_ceil(128);
                assert_eq!(trips.wavefronts, least, "{bytes} bytes, {rows} rows");
            }
        }
    }

    #[test]
    fn boxes_have_long_rows_where_conflicts_are_few() {
        let block = shape(&[32, 128]);
        let form = |layout| MatrixForm::of(&layout, 4).expect("a form").swizzle;
        assert_eq!(form(box_layout(block, 4, &[])), 128);
        let sums = accumulator(shape(&[128, 64]), 4).expect("sums");
        let operand = left_operand(&sums, MmaUnit::WarpgroupTf32, shape(&[128, 32]));
        let operand = operand.expect("a left operand").permute(&[1, 0]);
        assert_eq!(form(box_layout(block, 4, &[&operand])), 128);
    }

    #[test]
    fn forms_are_recognised() {
        for (extents, elem_bytes) in [
            ([128, 64], 2),
            ([64, 128], 2),
            ([128, 32], 4),
            ([8, 128], 1),
        ] {
            let shape = shape(&extents);
            for form in MatrixForm::all() {
                let Some(layout) = form.layout(shape, elem_bytes) else {
                    continue;
                };
                let found = MatrixForm::of(&layout, elem_bytes).expect("made of a form");
                assert_eq!(found.layout(shape, elem_bytes), Some(layout), "{form:?}");
            }
        }
        assert_eq!(
            MatrixForm::of(&named::shared_row_major(shape(&[64, 64])), 2),
            None
        );
    }

    /// Where groups share the columns of a block, its rows are as long as with one group.
    #[test]
    fn groups_read_parts_of_rows() {
        let block = shape(&[64, 64]);
        let longest = |kept| {
            let forms = forms(block, 2, &[(0, kept)]);
            forms.iter().map(|form| form.swizzle).max()
        };
        for kept in [8, 16, 32, 64] {
            assert_eq!(longest(kept), Some(128), "{kept} columns");
            let form = forms(block, 2, &[(0, kept)])[0];
            let layout = form.layout(block, 2).expect("whole rows");
            let offsets = Offsets::new(&layout, 2).expect("a place for each element");
            for start in (0..64).step_by(kept as usize) {
                let row = start / (form.swizzle / 2) * form.swizzle * 64;
                assert_eq!(
                    offsets.of(start),
                    row + start * 2 % form.swizzle,
                    "{form:?}"
                );
            }
        }
    }

    /// The first elements of steps and of tiles stand where adding to the start of a descriptor leads: nothing is permuted there.
    #[test]
    fn steps_start_where_nothing_is_permuted() {
        let shape = shape(&[64, 128]);
        for form in MatrixForm::all() {
            let layout = form.layout(shape, 2).expect("whole rows");
            let offsets = Offsets::new(&layout, 2).expect("a place for each element");
            // Along a row by what an instruction takes, and past its end to the next piece.
            let inner = common().inner;
            let step = if form.inner == 1 { inner } else { inner << 7 };
            let step_bytes = 2 * inner;
            let pieces = form.swizzle / step_bytes;
            let other = shape.extent(1 - form.inner) as u32;
            for i in 0..4 {
                let expected = i % pieces * step_bytes + i / pieces * form.swizzle * other;
                assert_eq!(offsets.of(i * step), expected, "{form:?} step {i}");
            }
            // Across rows, by eight.
            let across = if form.inner == 1 { 8 << 7 } else { 8 };
            for i in 0..8 {
                assert_eq!(offsets.of(i * across), i * form.alignment(), "{form:?}");
            }
        }
    }

    #[test]
    fn pieces_have_each_element_of_their_block_once() {
        let cases = [
            ([128, 128], 2, 4, Some([64, 64])),
            ([128, 128], 4, 4, Some([64, 32])),
            ([128, 256], 2, 8, Some([128, 64])),
            ([256, 128], 2, 8, Some([128, 64])),
            ([256, 64], 2, 4, Some([64, 64])),
            // Two pieces in two places are the block as it is.
            ([128, 64], 2, 4, None),
            ([128, 128], 2, 8, None),
            // Groups beside each other have other columns.
            ([64, 256], 2, 8, None),
            ([32, 256], 2, 4, None),
        ];
        for (extents, bytes, num_warps, expected) in cases {
            let block = shape(&extents);
            let found = piece(block, bytes, num_warps);
            assert_eq!(found, expected.map(|of| shape(&of)), "{extents:?}");
            let Some(found) = found else { continue };
            let layout = accumulator(block, num_warps).expect("a layout of sums");
            let pieces = pieces(&layout, bytes).expect("registers of their own");
            assert_eq!(pieces.layout.shape(), found);
            let mut seen = vec![0; block.elements()];
            for (registers, [row, column]) in &pieces.places {
                let threads = 32 * num_warps;
                for (i, &register) in registers.iter().enumerate() {
                    for thread in 0..threads {
                        let at = |layout: &LinearLayout, register| {
                            layout.apply(register, thread % 32, thread / 32, 0)
                        };
                        let whole = at(&layout, register);
                        let own = at(&pieces.layout, i as u32);
                        let [of_piece, of_block] = [(found, own), (block, whole)]
                            .map(|(shape, at)| [0, 1].map(|dim| shape.coordinate(at, dim)));
                        assert_eq!(column + of_piece[1], of_block[1], "{extents:?}");
                        // Rows of other groups stand in the block where they are.
                        let distance = of_block[0] - row - of_piece[0];
                        assert_eq!(distance % 64, 0, "{extents:?}");
                        seen[whole as usize] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{extents:?}");
        }
    }

    #[test]
    fn blocks_whose_columns_are_those_of_groups_have_no_pieces() {
        let sums = accumulator(shape(&[128, 256]), 8).expect("a layout of sums");
        let turned = sums.permute(&[1, 0]);
        assert_eq!(piece(turned.shape(), 2, 8), Some(shape(&[128, 64])));
        assert_eq!(pieces(&turned, 2), None);
        // Of one group the columns of other instructions are in registers.
        let sums = accumulator(shape(&[128, 128]), 4).expect("a layout of sums");
        assert!(pieces(&sums.permute(&[1, 0]), 2).is_some());
    }
}
