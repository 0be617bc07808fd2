//! Swizzles: where the elements of blocks stand in shared memory that copies fill and units of matrices read.
//!
//! Copies write 16 bytes of a row per thread, neighbouring threads side by side; `ldmatrix` reads 16 bytes of eight rows at
//! once, and other loads read an element per thread, or a run of them. To keep both free of bank conflicts, the chunks of a row are permuted by
//! the row's number: chunk `c` of row `r` stands at `c ^ (r / p mod m)`, with p the rows that 128 bytes hold and m the chunks of
//! a row within 128 bytes. Chunks of 16 bytes serve `ldmatrix`, wider ones loads of single elements that run along the row, and
//! a larger p loads of bytes, whose quads of lanes stand in every fourth row.
//!
//! Which size is best is counted. Offsets are linear in the number of the thread, and two accesses that are served at once
//! conflict if they differ in the word but not in the bank. So of the differences between threads, as vectors of offset bits,
//! those that vanish in the five bank bits make conflicts: as many times more trips as two to the number of dimensions that
//! the differences lose when only bank bits are looked at.

use crate::linear_layout::gf2;
use crate::linear_layout::layout::{HwDim, LOG2_LANES, LinearLayout};
use crate::linear_layout::named::{self, quad_pairs};
use crate::linear_layout::shape::Shape;
use crate::settings::diversity::Choices;

/// Bytes that one thread copies at once, and of a row of a matrix.
const CHUNK: u32 = 16;
/// Bytes that all banks serve at once.
const LINE: u32 = 128;
/// Exponent of the bytes of a bank's word.
const LOG2_WORD: u32 = 2;
/// Bits of an address in words that name the bank.
const BANKS: u32 = 31;

/// Bytes from the start of a block of elements, by their index.
#[derive(Clone, Debug)]
pub struct Offsets {
    columns: Vec<u32>,
}

impl Offsets {
    /// Of a layout of memory that has a place for each element, else none.
    pub fn new(layout: &LinearLayout, elem_bytes: u32) -> Option<Offsets> {
        let inverse = layout.invert()?;
        let columns = inverse.columns().iter();
        Some(Offsets {
            columns: columns.map(|c| c.offset * elem_bytes).collect(),
        })
    }

    /// The offset of the element with a flat index.
    pub fn of(&self, flat: u32) -> u32 {
        let bits = self.columns.iter().enumerate();
        bits.filter(|&(bit, _)| flat >> bit & 1 == 1)
            .fold(0, |sum, (_, &column)| sum ^ column)
    }

    /// Those of several.
    fn all(&self, flats: &[u32]) -> Vec<u32> {
        flats.iter().map(|&flat| self.of(flat)).collect()
    }
}

/// How `ldmatrix` serves a layout of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// What the three bits of the number of a row add to the index.
    pub columns: [u32; 3],
    /// Whether the rows are those of the transposed matrices.
    pub transposed: bool,
}

/// The rows of matrices that a layout asks for: 16 bytes next to each other, along the registers of a word and the lanes of
/// a quad, or of 16-bit elements across them. `inner` are the register columns of a word.
pub fn rows(
    reader: &LinearLayout,
    inner: &[u32],
    offsets: &Offsets,
    elem_bytes: u32,
) -> Option<Rows> {
    if elem_bytes > 4 {
        return None;
    }
    let lanes = reader.columns(HwDim::Lane);
    let (quad, groups) = lanes.split_at_checked(2)?;
    let along: Vec<u32> = inner.iter().chain(quad).copied().collect();
    let is_row = |columns: &[u32]| {
        columns.len() as u32 == (CHUNK / elem_bytes).ilog2()
            && columns
                .iter()
                .enumerate()
                .all(|(bit, &c)| offsets.of(c) == elem_bytes << bit)
    };
    let (found, transposed) = if is_row(&along) {
        (groups, false)
    } else if elem_bytes == 2 && is_row(groups) {
        (&along[..], true)
    } else {
        return None;
    };
    Some(Rows {
        columns: found.try_into().ok()?,
        transposed,
    })
}

/// The register columns of the elements of a word.
pub fn word_columns(reader: &LinearLayout, elem_bytes: u32) -> &[u32] {
    let registers = reader.columns(HwDim::Register);
    let bits = (4 / elem_bytes.min(4)).ilog2() as usize;
    &registers[..bits.min(registers.len())]
}

/// The layout in which an operand of m8n8k4 is read, if the block stands in memory with neighbours across the summed dimension
/// next to each other and `reader` is the one with neighbours along it.
pub fn transposed_reader(
    reader: &LinearLayout,
    offsets: &Offsets,
    elem_bytes: u32,
) -> Option<LinearLayout> {
    let transposed = quad_pairs::transposed(reader)?;
    let is_run = |layout: &LinearLayout| run_bits(layout, offsets, elem_bytes) >= 2;
    (!is_run(reader) && is_run(&transposed)).then_some(transposed)
}

/// The same for a block in memory as `writer` fills it, before it is known where chunks stand.
pub fn transposed_by(writer: &LinearLayout, reader: &LinearLayout) -> Option<LinearLayout> {
    let inner = inner_dim(writer);
    let transposed = quad_pairs::transposed(reader)?;
    (transposed.run_bits(inner).starts_with(&[0, 1])).then_some(transposed)
}

/// Exponent of the elements that registers which follow each other take from one place on, at most 16 bytes of them.
fn run_bits(reader: &LinearLayout, offsets: &Offsets, elem_bytes: u32) -> u32 {
    let most = (CHUNK / elem_bytes).ilog2() as usize;
    let registers = reader.columns(HwDim::Register).iter().take(most);
    let follows = |&(bit, &column): &(usize, &u32)| offsets.of(column) == elem_bytes << bit;
    registers.enumerate().take_while(follows).count() as u32
}

/// Exponent of the trips through the banks that accesses of `bytes` take, more than without conflicts: `lanes` are the offsets
/// that the lanes which are served at once add.
fn conflicts(lanes: &[u32], bytes: u32) -> u32 {
    let vector = (LOG2_WORD..bytes.ilog2()).map(|bit| 1 << bit);
    let all: Vec<u32> = lanes.iter().copied().chain(vector).collect();
    let words: Vec<u32> = all.iter().map(|c| c >> LOG2_WORD).collect();
    let banks: Vec<u32> = words.iter().map(|c| c & BANKS).collect();
    gf2::rank(&words) - gf2::rank(&banks)
}

/// Conflicts of a layout of memory.
pub fn cost(
    layout: &LinearLayout,
    elem_bytes: u32,
    writer: &LinearLayout,
    readers: &[&LinearLayout],
) -> u32 {
    let Some(offsets) = Offsets::new(layout, elem_bytes) else {
        return u32::MAX;
    };
    let shape = layout.shape();
    let width = (0..shape.rank()).map(|dim| writer.vector_width(dim, CHUNK / elem_bytes));
    let bytes = width.max().unwrap_or(1) * elem_bytes;
    let at_once = LOG2_LANES - bytes.max(4).ilog2().saturating_sub(LOG2_WORD);
    let lanes = writer.columns(HwDim::Lane);
    // What is read is read more often than it is written.
    conflicts(&offsets.all(&lanes[..at_once as usize]), bytes)
        + 4 * cost_of_reads(&offsets, elem_bytes, readers)
}

/// Conflicts of readers.
fn cost_of_reads(offsets: &Offsets, elem_bytes: u32, readers: &[&LinearLayout]) -> u32 {
    let each = readers.iter().map(|reader| {
        let inner = word_columns(reader, elem_bytes);
        match rows(reader, inner, offsets, elem_bytes) {
            Some(rows) => conflicts(&offsets.all(&rows.columns), CHUNK),
            None => {
                let run = runs_first(reader, offsets, elem_bytes).run;
                conflicts_of_runs(reader, offsets, elem_bytes << run)
            }
        }
    });
    each.sum()
}

/// What an access to a block in shared memory takes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// Instructions.
    pub instructions: u32,
    /// Trips of 128 bytes through the banks.
    pub wavefronts: u32,
}

/// Loading a block into registers: rows of matrices together, four at a time, where those are the layout's, else the runs that each
/// thread has.
pub fn trips(layout: &LinearLayout, offsets: &Offsets, elem_bytes: u32) -> Trips {
    let count = layout.num_registers();
    let inner = word_columns(layout, elem_bytes);
    match rows(layout, inner, offsets, elem_bytes) {
        Some(rows) => {
            let matrices = count >> inner.len();
            Trips {
                instructions: matrices.div_ceil(4),
                wavefronts: matrices << conflicts(&offsets.all(&rows.columns), CHUNK),
            }
        }
        None => trips_of_runs(layout, offsets, elem_bytes),
    }
}

/// Loading a block into registers, or storing it, by the runs of memory that each thread has, wherever among its registers ([`runs_first`]).
pub fn trips_of_runs(layout: &LinearLayout, offsets: &Offsets, elem_bytes: u32) -> Trips {
    let run = runs_first(layout, offsets, elem_bytes).run;
    let (count, bytes) = (layout.num_registers() >> run, elem_bytes << run);
    // Lanes that access the same place are served by one trip.
    let places = gf2::rank(layout.columns(HwDim::Lane));
    let each = count * (bytes << places).div_ceil(LINE);
    Trips {
        instructions: count,
        wavefronts: each << conflicts_of_runs(layout, offsets, bytes),
    }
}

/// An order of registers in which runs of memory come together.
#[derive(Clone, Debug)]
pub struct RunOrder {
    /// Bits of the number of a register, those of runs first.
    bits: Vec<u32>,
    /// How many are bits of runs.
    run: u32,
}

impl RunOrder {
    /// Exponent of the elements of a run.
    pub fn run_bits(&self) -> u32 {
        self.run
    }

    /// The register at a place of the order.
    pub fn register(&self, at: u32) -> u32 {
        let bits = self.bits.iter().enumerate();
        bits.fold(0, |all, (bit, &to)| all | (at >> bit & 1) << to)
    }
}

/// The order of a layout's registers in which those come together that take at most 16 bytes from one place on.
pub fn runs_first(layout: &LinearLayout, offsets: &Offsets, elem_bytes: u32) -> RunOrder {
    let columns = layout.columns(HwDim::Register);
    let most = (CHUNK / elem_bytes).max(1).ilog2();
    let place = |bit: u32| {
        let wanted = elem_bytes << bit;
        let found = columns.iter().position(|&c| offsets.of(c) == wanted);
        found.map(|bit| bit as u32)
    };
    let mut bits: Vec<u32> = (0..most).map_while(place).collect();
    let run = bits.len() as u32;
    let others = (0..columns.len() as u32).filter(|bit| !bits.contains(bit));
    let others: Vec<u32> = others.collect();
    bits.extend(others);
    RunOrder { bits, run }
}

/// Conflicts of accesses to runs of so many bytes: of wide ones fewer lanes are served at once.
fn conflicts_of_runs(layout: &LinearLayout, offsets: &Offsets, bytes: u32) -> u32 {
    let at_once = LOG2_LANES - bytes.max(4).ilog2().saturating_sub(LOG2_WORD);
    let lanes = &layout.columns(HwDim::Lane)[..at_once as usize];
    conflicts(&offsets.all(lanes), bytes)
}

/// The layout of a block whose rows run along `inner` and whose chunks of so many bytes are permuted, anew with each 128 bytes
/// or so many rows.
fn swizzled(shape: Shape, inner: usize, elem_bytes: u32, chunk: u32, rows: u32) -> LinearLayout {
    let mut order = vec![inner];
    order.extend((0..shape.rank()).rev().filter(|&dim| dim != inner));
    let row = (shape.extent(inner) as u32).saturating_mul(elem_bytes);
    let phases = (row.min(LINE) / chunk).max(1);
    let per_phase = (LINE / row.max(1)).max(rows);
    named::shared_swizzled(shape, &order, chunk / elem_bytes, per_phase, phases)
        .unwrap_or_else(|_| named::shared_row_major(shape))
}

/// The layouts that a block may have whose rows run along `inner`.
fn candidates(shape: Shape, inner: usize, elem_bytes: u32) -> [LinearLayout; 6] {
    let forms = [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 4)];
    forms.map(|(chunk, rows)| swizzled(shape, inner, elem_bytes, chunk * CHUNK, rows))
}

/// [`trips`] of a load from a block whose rows run along `inner`, and whose layout is the best one for it.
pub fn trips_where_best(reader: &LinearLayout, inner: usize, elem_bytes: u32) -> Option<Trips> {
    let layouts = candidates(reader.shape(), inner, elem_bytes).into_iter();
    let offsets = layouts.filter_map(|layout| Offsets::new(&layout, elem_bytes));
    let trips = offsets.map(|offsets| trips(reader, &offsets, elem_bytes));
    trips.min_by_key(|trips| (trips.wavefronts, trips.instructions))
}

/// The layout of a block that `writer` fills and `readers` read, all layouts of registers; by other `choices` one with
/// conflicts.
pub fn layout(
    elem_bytes: u32,
    writer: &LinearLayout,
    readers: &[&LinearLayout],
    choices: &mut Choices,
) -> LinearLayout {
    let shape = writer.shape();
    let candidates = candidates(shape, inner_dim(writer), elem_bytes);
    if choices.chance(50) {
        let any = choices.below(candidates.len() + 1);
        let any = candidates.into_iter().nth(any);
        return any.unwrap_or_else(|| named::shared_row_major(shape));
    }
    let best = candidates
        .into_iter()
        .min_by_key(|layout| cost(layout, elem_bytes, writer, readers));
    best.unwrap_or_else(|| named::shared_row_major(shape))
}

/// The layout of a block that threads store run by run, and so with rows along any dimension: the usual one, or that of another
/// dimension if a warp takes three quarters of the trips or fewer to store the block and to read it.
///
/// Threads that stand along the other dimension than the neighbours that they hold would store words in few banks: 32 rows of 64 bytes
/// (a convolution over channels, 32 x 32 x 32, of which a thread loads two channels of one pixel) take four trips a word, and two for two
/// halves apart.
pub fn layout_of_stored(
    elem_bytes: u32,
    writer: &LinearLayout,
    readers: &[&LinearLayout],
    choices: &mut Choices,
) -> LinearLayout {
    let usual = layout(elem_bytes, writer, readers, choices);
    let all_trips = |layout: &LinearLayout| {
        let offsets = Offsets::new(layout, elem_bytes)?;
        let reads = readers.iter().map(|r| trips(r, &offsets, elem_bytes));
        let stores = trips_of_runs(writer, &offsets, elem_bytes);
        let all = reads.chain([stores]);
        Some(all.map(|trips| trips.wavefronts).sum::<u32>())
    };
    let (shape, inner) = (writer.shape(), inner_dim(writer));
    let others = (0..shape.rank()).filter(|&dim| dim != inner && shape.extent(dim) > 1);
    let others = others.flat_map(|dim| candidates(shape, dim, elem_bytes));
    let others = others.filter_map(|layout| Some((all_trips(&layout)?, layout)));
    let best = others.min_by_key(|&(trips, _)| trips);
    let most = all_trips(&usual);
    best.filter(|&(trips, _)| most.is_some_and(|most| 4 * trips <= 3 * most))
        .map_or(usual, |(_, layout)| layout)
}

/// The dimension along which the threads of a layout hold neighbours, or else stand side by side.
pub fn inner_dim(layout: &LinearLayout) -> usize {
    let shape = layout.shape();
    let mut columns = [HwDim::Register, HwDim::Lane]
        .into_iter()
        .flat_map(|dim| layout.columns(dim));
    let first = columns.find_map(|&column| {
        (0..shape.rank()).find(|&dim| column == 1 << shape.bit_offset(dim) && shape.extent(dim) > 1)
    });
    first.unwrap_or(shape.rank().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_rows_meet_in_no_bank() {
        for (row, elem_bytes) in [
            (16, 2),
            (32, 2),
            (64, 2),
            (128, 2),
            (32, 4),
            (64, 1),
            (256, 1),
        ] {
            let shape = Shape::new(&[64, row]).expect("powers of two");
            let layout = swizzled(shape, 1, elem_bytes, CHUNK, 1);
            let offsets = Offsets::new(&layout, elem_bytes).expect("a layout of memory");
            for column in (0..row as u32).step_by((16 / elem_bytes) as usize) {
                let chunk = |r: u32| {
                    let offset = offsets.of(r << shape.bit_offset(0) | column);
                    assert_eq!(offset % 16, 0, "chunks stay whole");
                    offset / 16 % 8
                };
                let mut banks: Vec<u32> = (0..8).map(chunk).collect();
                banks.sort_unstable();
                banks.dedup();
                assert_eq!(
                    banks.len(),
                    8,
                    "rows of {row} elements of {elem_bytes} bytes"
                );
            }
        }
    }

    #[test]
    fn conflicts_are_counted_by_banks() {
        // 32 words in a row; every second word; rows of 128 bytes; one word for all.
        assert_eq!(conflicts(&[4, 8, 16, 32, 64], 4), 0);
        assert_eq!(conflicts(&[8, 16, 32, 64, 128], 4), 1);
        assert_eq!(conflicts(&[128, 256, 512, 1024, 2048], 4), 5);
        assert_eq!(conflicts(&[0; 5], 4), 0);
        // Eight rows of 16 bytes, 64 bytes apart, and permuted.
        assert_eq!(conflicts(&[64, 128, 256], 16), 2);
        assert_eq!(conflicts(&[64, 128 | 16, 256 | 32], 16), 0);
    }

    /// A block of 64 x 64 halves with permuted pieces of 16 bytes, on four warps.
    #[test]
    fn trips_are_counted_by_instructions_and_banks() {
        let shape = Shape::new(&[64, 64]).expect("powers of two");
        let memory = swizzled(shape, 1, 2, CHUNK, 1);
        let offsets = Offsets::new(&memory, 2).expect("a layout of memory");
        let by = |columns: &str| LinearLayout::parse(columns, shape).expect("a layout");
        let found = |layout: &LinearLayout| {
            let found = trips(layout, &offsets, 2);
            (found.instructions, found.wavefronts)
        };
        // Whole pieces: four of each thread, and 512 bytes of a warp in four trips.
        let pieces = named::coalesced(shape, &[1, 0], 8, 4).expect("a layout");
        assert_eq!(found(&pieces), (4, 16));
        // Sums of a unit: as many bytes, in rows of eight lines; pairs of them in the other order by words.
        let sums = by("{reg=[1,512,8,16,32], lane=[2,4,64,128,256], warp=[1024,2048]}");
        assert_eq!(found(&sums), (4, 16));
        let words = by("{reg=[1,512,8,16,32], lane=[4,2,64,128,256], warp=[1024,2048]}");
        assert_eq!(found(&words), (16, 16));
        // A row for each lane, halves apart: every one by itself, and eight lanes in a bank.
        let rows = by("{reg=[2,4,8,16,32], lane=[64,128,256,512,1024], warp=[2048,1]}");
        let (instructions, wavefronts) = found(&rows);
        assert_eq!(instructions, 32);
        assert!(wavefronts >= 4 * 32, "{wavefronts}");
    }

    /// Two channels of one pixel in each thread, by 32 pixels: rows of pixels take half of the trips. Where neighbours are loaded
    /// together nothing changes.
    #[test]
    fn rows_run_where_stores_are_free_of_conflicts() {
        use crate::ir::attrs::MmaUnit;
        use crate::layout::matrix::{accumulators, operand};
        let shape = Shape::new(&[32, 32]).expect("powers of two");
        let sum = &accumulators(shape, MmaUnit::F16, 4)[0];
        let reader = operand(sum, MmaUnit::F16, shape, true).expect("an operand");
        let across = "{reg=[1,8,16], lane=[32,64,128,256,512], warp=[2,4]}";
        let across = LinearLayout::parse(across, shape).expect("a layout");
        let along = named::coalesced(shape, &[1, 0], 8, 4).expect("a layout");
        for (writer, turns) in [(across, true), (along, false)] {
            let usual = layout(2, &writer, &[&reader], &mut Choices::none());
            let found = layout_of_stored(2, &writer, &[&reader], &mut Choices::none());
            assert_eq!(found != usual, turns, "{writer}");
            let stores = |layout: &LinearLayout| {
                let offsets = Offsets::new(layout, 2).expect("a place for each element");
                let reads = trips(&reader, &offsets, 2);
                (
                    trips_of_runs(&writer, &offsets, 2).wavefronts,
                    reads.wavefronts,
                )
            };
            if turns {
                assert_eq!((stores(&usual), stores(&found)), ((16, 8), (8, 8)));
            }
        }
    }

    #[test]
    fn quad_pairs_are_read_without_conflicts() {
        use crate::ir::attrs::MmaUnit;
        use crate::layout::matrix::{accumulators, operand};
        let shape = |extents: &[u64]| Shape::new(extents).expect("powers of two");
        let unit = MmaUnit::F16K4;
        for (rows, inner) in [(128, 32), (128, 64), (64, 16), (32, 128), (16, 8), (8, 8)] {
            for order in [[1, 0], [0, 1]] {
                let [a, b] = [[rows, inner], [inner, rows]].map(|e| shape(&e));
                let sum = &accumulators(shape(&[rows, rows]), unit, 4)[0];
                for (shape, is_left) in [(a, true), (b, false)] {
                    let reader = operand(sum, unit, shape, is_left).expect("a operand");
                    let writer = named::coalesced(shape, &order, 8, 4).expect("a layout");
                    let is_across = (order[0] == 1) != is_left;
                    let transposed = transposed_by(&writer, &reader);
                    assert_eq!(transposed.is_some(), is_across, "{shape} {order:?}");
                    let used = transposed.as_ref().unwrap_or(&reader);
                    let memory = layout(2, &writer, &[used], &mut Choices::none());
                    assert_eq!(cost(&memory, 2, &writer, &[used]), 0, "{shape} {order:?}");
                    let offsets = Offsets::new(&memory, 2).expect("a place for each element");
                    // What is decided from the two is the same.
                    assert_eq!(
                        transposed_reader(&reader, &offsets, 2),
                        transposed,
                        "{shape}"
                    );
                    let wide = if is_across { 2 } else { 3 };
                    assert_eq!(run_bits(used, &offsets, 2), wide, "{shape} {order:?}");
                }
            }
        }
    }

    #[test]
    fn operands_are_read_without_conflicts() {
        use crate::ir::attrs::MmaUnit;
        use crate::layout::matrix::{accumulators, operand};
        let shape = |extents: &[u64]| Shape::new(extents).expect("powers of two");
        for (unit, elem_bytes) in [(MmaUnit::F16, 2), (MmaUnit::Tf32, 4), (MmaUnit::S8, 1)] {
            for inner in [32, 64] {
                for order in [[1, 0], [0, 1]] {
                    let [a, b] = [[128, inner], [inner, 128]].map(|e| shape(&e));
                    let sum = &accumulators(shape(&[128, 128]), unit, 4)[0];
                    for (shape, is_left) in [(a, true), (b, false)] {
                        let reader = operand(sum, unit, shape, is_left).expect("a operand");
                        let writer = named::coalesced(shape, &order, 16 / elem_bytes, 4);
                        let writer = writer.expect("a layout of registers");
                        let memory = layout(elem_bytes, &writer, &[&reader], &mut Choices::none());
                        let found = cost(&memory, elem_bytes, &writer, &[&reader]);
                        // Bytes across rows are read one by one, four to a word.
                        let transposed = (order[0] == 1) != is_left;
                        if !(elem_bytes == 1 && transposed) {
                            assert_eq!(found, 0, "{unit:?} {shape} {order:?}");
                        }
                    }
                }
            }
        }
    }
}
