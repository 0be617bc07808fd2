//! What layouts cost: estimates in quarters of a clock of one SM, per warp and execution.
//!
//! An SM issues four warp instructions a clock, one access to memory, one shuffle, and moves 128 bytes a
//! clock to and from shared memory and some 32 bytes (a sector) to and from further away. So arithmetic on a
//! register costs 1, a memory instruction 4 to issue and 4 more for each sector or shared wavefront, and a
//! barrier about a hundred. Only ratios matter; `tests` beside this file pin the decisions that follow.

use super::pbqp::Cost;
use super::strided::{Touched, touched};
use crate::analysis::strides::Strides;
use crate::ir::attrs::MmaUnit;
use crate::ir::ops::{Opcode, TileOp};
use crate::layout::convert::stays_in_warps;
use crate::layout::swizzle::Trips;
use crate::layout::{gather, matrix};
use crate::linear_layout::gf2;
use crate::linear_layout::layout::{HwDim, LinearLayout};

/// A barrier, and the latency around it.
const BARRIER: Cost = 120;
/// Issue of a memory instruction and its address arithmetic.
const ACCESS: Cost = 8;
/// Moving a sector of 32 bytes to or from the L2 cache or beyond.
const SECTOR: Cost = 4;
/// What a store asks of the L2 cache for each line, however much of it is written: 16 stores of two sectors in two lines each take a
/// tenth longer than two of 16 sectors in four and a trip through shared memory, with as many bytes.
const REQUEST: Cost = 6;
/// Bytes of a line.
pub(super) const LINE_BYTES: u32 = 128;
/// Bytes of a sector.
pub(super) const SECTOR_BYTES: u32 = 32;
/// Moving 128 bytes to or from shared memory.
const WAVEFRONT: Cost = 4;
/// Words that a thread can hold at a time beside addresses and what is under way.
pub(super) const MOST_LIVE: Cost = 192;
/// Writing a word to local memory and reading it again.
const SPILL: Cost = 32;
/// A shuffle of a 32-bit register with the selects around it.
const SHUFFLE: Cost = 6;

/// 32-bit words of an element in registers.
fn words(elem_bits: u32) -> Cost {
    Cost::from(elem_bits.div_ceil(32))
}

fn registers(layout: &LinearLayout) -> Cost {
    Cost::from(layout.num_registers())
}

/// Converting from one layout to another.
pub(super) fn conversion(from: &LinearLayout, to: &LinearLayout, elem_bits: u32) -> Cost {
    // Renaming registers is free, but no conversion at all is better still.
    if to.register_map(from).is_some() {
        return 1;
    }
    if stays_in_warps(from, to) {
        // Narrow elements go several to a word, and are packed for it.
        let packed = if elem_bits < 32 { registers(to) } else { 0 };
        let words = (registers(to) * Cost::from(elem_bits.max(8))).div_ceil(32);
        return 8 + words * SHUFFLE + packed;
    }
    BARRIER + trip(from, to, elem_bits.max(8) / 8) * WAVEFRONT
}

/// Wavefronts of a trip through shared memory. Elements that are neighbours in the registers of both sides go several at a time; one of
/// the sides puts others side by side.
fn trip(from: &LinearLayout, to: &LinearLayout, bytes: u32) -> Cost {
    let held = |layout: &LinearLayout| gf2::basis(layout.columns(HwDim::Register));
    let common = gf2::intersection(&held(from), &held(to)).len();
    let words = |layout: &LinearLayout| (registers(layout) * Cost::from(bytes)).div_ceil(4);
    let narrow = |layout: &LinearLayout| (registers(layout) >> common).max(words(layout));
    (narrow(from) + words(to)).min(words(from) + narrow(to))
}

/// An access to memory as the layout sees it.
#[derive(Clone, Debug)]
pub(super) struct AccessShape {
    /// Dimension along which addresses are consecutive.
    pub dim: usize,
    /// Elements one instruction may take, as far as alignment and mask allow.
    pub vector: u32,
    /// Exponent of the length of runs of consecutive addresses.
    pub contiguity: u32,
    /// Size of an element.
    pub bytes: u32,
    /// Whether it writes: what neighbouring instructions leave out of a sector is then moved twice.
    pub is_store: bool,
    /// Whether lines count: of stores of blocks, but not of those of products, which few programs do at a time while others multiply, and
    /// not of vectors, which are few beside the blocks they were made of.
    pub counts_lines: bool,
    /// Whether the lines that its lanes look up count where these are more than its sectors. Not of factors that are loaded once: what
    /// they take of shared memory on the way to another layout would lie beside rings that are being filled.
    pub looks_up: bool,
    /// How far apart elements are, if that is known of some that are not side by side.
    pub strides: Option<Strides>,
}

/// Loading or storing a block.
pub(super) fn access(layout: &LinearLayout, access: &AccessShape) -> Cost {
    let shape = layout.shape();
    let vector = layout.vector_width(access.dim, access.vector);
    let held = layout.free_mask(HwDim::Register);
    let kept = layout.bits(HwDim::Register) - held.count_ones();
    let instructions = (Cost::from(1u32) << kept) / Cost::from(vector);

    // The consecutive elements that one instruction of a warp covers; for loads the cache joins what
    // several instructions cover.
    let offset = shape.bit_offset(access.dim);
    let width = u32::from(shape.log2()[access.dim]).min(access.contiguity);
    let lanes = layout.columns(HwDim::Lane);
    let others = layout.columns(HwDim::Register);
    let mut run = vector.trailing_zeros();
    while run < width {
        let next = 1 << (offset + run);
        if !lanes.contains(&next) && (access.is_store || !others.contains(&next)) {
            break;
        }
        run += 1;
    }
    let (mut sectors, mut requests) = match &access.strides {
        Some(strides) => {
            let one = (offset, vector.trailing_zeros());
            let Touched { sectors, lines } =
                touched(layout, strides, one, instructions, access.is_store);
            (sectors, lines)
        }
        None => {
            let free_lanes = layout.free_mask(HwDim::Lane).count_ones();
            let lane_bits = layout.bits(HwDim::Lane) - free_lanes;
            let elements = (instructions * Cost::from(vector)) << lane_bits;
            let runs = (elements >> run).max(1);
            let sectors = runs * Cost::from((access.bytes << run).div_ceil(SECTOR_BYTES));
            let requests = match access.counts_lines {
                true => instructions * lines(layout, access),
                false => 0,
            };
            // One line is looked up in the time in which a sector arrives.
            let sectors = match access.looks_up {
                true => sectors.max(instructions * lines(layout, access)),
                false => sectors,
            };
            (sectors, requests)
        }
    };
    if access.is_store {
        // One of the warps that hold copies writes.
        let copies = layout.free_mask(HwDim::Warp).count_ones();
        sectors >>= copies;
        requests >>= copies;
    }
    instructions * ACCESS + sectors * SECTOR + requests * REQUEST
}

/// Lines of memory that one instruction of a warp touches, as far as runs of addresses are known.
fn lines(layout: &LinearLayout, access: &AccessShape) -> Cost {
    let shape = layout.shape();
    let line = (LINE_BYTES / access.bytes).max(1).trailing_zeros();
    let width = u32::from(shape.log2()[access.dim]).min(access.contiguity);
    let near = ((1u32 << width.min(line)) - 1) << shape.bit_offset(access.dim);
    let apart = |&&column: &&u32| column & !near != 0;
    1 << layout.columns(HwDim::Lane).iter().filter(apart).count()
}

/// Loading a block from shared memory.
pub(super) fn shared(trips: Trips) -> Cost {
    Cost::from(trips.instructions) * ACCESS + Cost::from(trips.wavefronts) * WAVEFRONT
}

/// Combining the elements along `axis`, `words` 32-bit words each.
pub(super) fn reduction(layout: &LinearLayout, axis: usize, elem_bits: u32) -> Cost {
    let axis_mask = layout.shape().bit_mask(axis);
    let moves = |dim: HwDim| {
        let columns = layout.columns(dim).iter();
        columns.filter(|&&c| c & axis_mask != 0).count() as u32
    };
    let held = registers(layout);
    let left = held >> moves(HwDim::Register);
    let words = words(elem_bits);
    let shuffles = Cost::from(moves(HwDim::Lane)) * left * words * SHUFFLE;
    let exchange = match moves(HwDim::Warp) {
        0 => 0,
        // Written, read by the first warps, written again, and read by all.
        _ => BARRIER + 2 * left * words * WAVEFRONT,
    };
    held * words + shuffles + exchange
}

/// Scanning along `axis`, operands of `elem_bits` bits in all.
pub(super) fn scan(layout: &LinearLayout, axis: usize, elem_bits: u32) -> Cost {
    let words = words(elem_bits);
    let held = registers(layout);
    let mut left = held;
    let digits = layout.digits(axis).unwrap_or_default();
    // The chains of registers, and the prefix that each register gets in the end.
    let mut cost = 2 * held * words;
    // A run in registers waits for its prefix; otherwise each register is done soon.
    if let [run, _, ..] = &digits[..]
        && run.dim == HwDim::Register
    {
        let above = digits[1..].iter().filter(|d| d.dim == HwDim::Register);
        let above: usize = above.map(|digit| digit.bits.len()).sum();
        cost += ((held >> above) * words).saturating_sub(MOST_LIVE) * SPILL;
    }
    for digit in digits {
        let bits = digit.bits.len() as Cost;
        match digit.dim {
            HwDim::Register => left >>= bits,
            HwDim::Lane => cost += (bits + 1) * left * words * SHUFFLE,
            // Each thread reads the totals of all warps and combines those before its own.
            _ => cost += BARRIER + (left << bits) * words * (WAVEFRONT + 2),
        }
    }
    cost
}

/// Looking up elements of a block in a layout at the places that a block of indices names.
pub(super) fn gather(
    source: &LinearLayout,
    index: &LinearLayout,
    axis: usize,
    elem_bits: u32,
) -> Cost {
    let words = words(elem_bits);
    words
        * match gather::cheap_within_warps(source, index, axis) {
            Some(plan) => 8 + plan.cost(),
            None => gather::trip_cost(source, index),
        }
}

/// Counting the elements of a block in shared memory; what the result's layout costs is its reading.
pub(super) fn histogram(source: &LinearLayout) -> Cost {
    let copies = source.free_mask(HwDim::Register).count_ones();
    2 * BARRIER + (registers(source) >> copies) * ACCESS
}

/// Summing `terms` products for each element.
pub(super) fn dot(layout: &LinearLayout, terms: u64) -> Cost {
    registers(layout) * terms
}

/// Feeding a unit with the tiles of the factors along `terms` elements; the products themselves cost the same everywhere.
pub(super) fn product(layout: &LinearLayout, unit: MmaUnit, terms: u64) -> Cost {
    let rank = layout.shape().rank();
    let tiles = |dim: usize, size: u32| -> Cost {
        let mask = layout.shape().bit_mask(dim);
        let columns = layout.columns(HwDim::Register).iter();
        let held = columns.filter(|&&c| c & mask != 0).count() as u32;
        1 << held.saturating_sub(size)
    };
    // Of its tile a thread holds two rows, and two columns or four.
    let [left, right, held] = unit.tile_registers();
    let (rows, columns) = (tiles(rank - 2, 1), tiles(rank - 1, held.ilog2() - 1));
    let (left, right) = (Cost::from(left), Cost::from(right));
    let steps = terms / Cost::from(matrix::tile_inner(unit));
    // Of two that read as much the one with more rows for each warp: a product of 512^3 in blocks of 32 x 64 is 4 % faster so.
    steps * (left * rows + right * columns) * WAVEFRONT + columns
}

/// Computing a block element by element; copies held by many threads are computed by each.
pub(super) fn elementwise(layout: &LinearLayout, op: TileOp) -> Cost {
    let each = Cost::from(op.info().effects.cost);
    each * registers(layout)
}
