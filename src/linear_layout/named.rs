//! Constructors of the layouts that have names: blocked, tensor-core fragments, shared memory.
//!
//! All distributed layouts here have 32 lanes. Where the tile that the threads form is larger than the
//! block, the surplus lanes and warps hold copies (zero columns) and surplus registers are not there at
//! all; where it is smaller it repeats in registers.

use super::layout::{Columns, LOG2_LANES, LayoutError, LinearLayout};
use super::shape::Shape;

pub mod quad_pairs;

fn log2(what: &'static str, value: u32) -> Result<u32, LayoutError> {
    if value.is_power_of_two() {
        Ok(value.ilog2())
    } else {
        Err(LayoutError::NotPowerOfTwo { what, value })
    }
}

/// The exponents of one parameter per dimension.
fn log2_each(shape: &Shape, what: &'static str, values: &[u32]) -> Result<Vec<u32>, LayoutError> {
    if values.len() != shape.rank() {
        return Err(LayoutError::RankMismatch {
            what,
            found: values.len(),
            rank: shape.rank(),
        });
    }
    values.iter().map(|&value| log2(what, value)).collect()
}

fn check_order(shape: &Shape, order: &[usize]) -> Result<(), LayoutError> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..shape.rank()) {
        Ok(())
    } else {
        Err(LayoutError::BadOrder)
    }
}

/// The column that adds `2^bit` to coordinate `dim`; zero if the extent is not that large.
fn unit(shape: &Shape, dim: usize, bit: u32) -> u32 {
    if bit < u32::from(shape.log2()[dim]) {
        1 << (shape.bit_offset(dim) + bit)
    } else {
        0
    }
}

/// Hands out the bits of each coordinate from the lowest up.
struct Tiler {
    shape: Shape,
    used: Vec<u32>,
}

impl Tiler {
    fn new(shape: Shape) -> Tiler {
        let used = vec![0; shape.rank()];
        Tiler { shape, used }
    }

    /// The columns of the next `bits` bits of `dim`, zero where there are no more.
    fn take(&mut self, dim: usize, bits: u32) -> Vec<u32> {
        let start = self.used[dim];
        self.skip(dim, bits);
        let bits = start..start + bits;
        bits.map(|bit| unit(&self.shape, dim, bit)).collect()
    }

    /// Passes over the next `bits` bits of `dim`.
    fn skip(&mut self, dim: usize, bits: u32) {
        self.used[dim] += bits;
    }

    /// Bits of `dim` not handed out yet.
    fn left(&self, dim: usize) -> u32 {
        u32::from(self.shape.log2()[dim]).saturating_sub(self.used[dim])
    }
}

fn distributed(
    shape: Shape,
    registers: impl IntoIterator<Item = u32>,
    lanes: &[u32],
    warps: &[u32],
) -> Result<LinearLayout, LayoutError> {
    let registers: Columns = registers.into_iter().filter(|&c| c != 0).collect();
    LinearLayout::distributed(shape, &registers, lanes, warps)
}

/// Every thread holds all elements, in row-major order.
pub fn replicated(shape: Shape, num_warps: u32) -> Result<LinearLayout, LayoutError> {
    let warps = vec![0; log2("number of warps", num_warps)? as usize];
    let registers = (0..shape.log2_elements()).map(|bit| 1 << bit);
    distributed(shape, registers, &[0; LOG2_LANES as usize], &warps)
}

/// Each thread holds a tile of `size_per_thread`; tiles of lanes form those of warps, and these the
/// tile of the program. `order` names the dimensions, the one whose index varies fastest first.
pub fn blocked_tile(
    shape: Shape,
    size_per_thread: &[u32],
    threads_per_warp: &[u32],
    warps: &[u32],
    order: &[usize],
) -> Result<LinearLayout, LayoutError> {
    check_order(&shape, order)?;
    let size = log2_each(&shape, "size per thread", size_per_thread)?;
    let threads = log2_each(&shape, "threads per warp", threads_per_warp)?;
    let warps = log2_each(&shape, "warps", warps)?;
    let mut tiler = Tiler::new(shape);
    let mut level = |bits: &[u32]| -> Vec<u32> {
        let columns = order.iter().flat_map(|&dim| tiler.take(dim, bits[dim]));
        columns.collect()
    };
    let mut registers = level(&size);
    let (lanes, warps) = (level(&threads), level(&warps));
    for &dim in order {
        let left = tiler.left(dim);
        registers.extend(tiler.take(dim, left));
    }
    distributed(shape, registers, &lanes, &warps)
}

/// Triton's default blocked layout: lanes, then warps, are dealt to the dimensions in `order` as far as
/// the extent takes them, each thread holding a tile of `size_per_thread`; the last dimension takes
/// the rest.
pub fn blocked(
    shape: Shape,
    size_per_thread: &[u32],
    order: &[usize],
    num_warps: u32,
) -> Result<LinearLayout, LayoutError> {
    check_order(&shape, order)?;
    let size = log2_each(&shape, "size per thread", size_per_thread)?;
    let all_warps = log2("number of warps", num_warps)?;
    let (mut lanes, mut warps) = (LOG2_LANES, all_warps);
    let mut threads = lanes + warps;
    let mut lanes_of = vec![1; shape.rank()];
    let mut warps_of = vec![1; shape.rank()];
    for (i, &dim) in order.iter().enumerate() {
        let last = i + 1 == order.len();
        let want = u32::from(shape.log2()[dim]).saturating_sub(size[dim]);
        let want = want.min(threads);
        let lane_bits = if last { lanes } else { want.min(lanes) };
        let warp_bits = if last {
            warps
        } else {
            (want - lane_bits).min(warps)
        };
        (lanes, warps) = (lanes - lane_bits, warps - warp_bits);
        threads -= want;
        lanes_of[dim] = 1 << lane_bits;
        warps_of[dim] = 1 << warp_bits;
    }
    if order.is_empty() {
        return replicated(shape, num_warps);
    }
    blocked_tile(shape, size_per_thread, &lanes_of, &warps_of, order)
}

/// The blocked layout for memory that is contiguous along `order[0]`: `per_thread` neighbours in each
/// thread, neighbouring threads side by side.
pub fn coalesced(
    shape: Shape,
    order: &[usize],
    per_thread: u32,
    num_warps: u32,
) -> Result<LinearLayout, LayoutError> {
    check_order(&shape, order)?;
    let mut size = vec![1; shape.rank()];
    if let Some(&dim) = order.first() {
        size[dim] = per_thread;
    }
    blocked(shape, &size, order, num_warps)
}

/// How the warps of a tensor-core layout stand among the repetitions of its tile along the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowWarps {
    /// A warp's tiles are neighbours.
    Outermost,
    /// Neighbouring tiles belong to neighbouring warps.
    Innermost,
}

/// A tensor-core tile in the last two dimensions: which coordinate bit each register and lane bit adds.
/// `(0, b)` is bit `b` of the row, `(1, b)` of the column; [`NOWHERE`] makes copies.
struct Tile {
    registers: Vec<(usize, u32)>,
    lanes: [(usize, u32); LOG2_LANES as usize],
    /// Exponents of the extents.
    size: [u32; 2],
}

/// A bit that no coordinate has.
const NOWHERE: (usize, u32) = (0, u32::MAX);

impl Tile {
    /// Accumulator of m16n8: lane `4g + q`, register `i` hold row `g + 8 (i >> 1)`, column `2q + (i & 1)`.
    fn accumulator() -> Tile {
        Tile {
            registers: vec![(1, 0), (0, 3)],
            lanes: [(1, 1), (1, 2), (0, 0), (0, 1), (0, 2)],
            size: [4, 3],
        }
    }

    /// Operands with `2^w` elements of the inner dimension in each 32-bit register (or, with `w = 0`,
    /// one element of any width). Dimension `k` is the inner one, `other` the outer one of `16` rows if
    /// `tall` or 8 columns.
    fn operand(w: u32, other: usize, tall: bool) -> Tile {
        let k = 1 - other;
        let mut registers: Vec<(usize, u32)> = (0..w).map(|bit| (k, bit)).collect();
        if tall {
            registers.push((other, 3));
        }
        registers.push((k, w + 2));
        let mut size = [0; 2];
        size[k] = w + 3;
        size[other] = if tall { 4 } else { 3 };
        Tile {
            registers,
            lanes: [(k, w), (k, w + 1), (other, 0), (other, 1), (other, 2)],
            size,
        }
    }
}

/// Repeats `tile` over the last two dimensions. `warps` counts the warps along each dimension of the
/// accumulator; `split` says which of the last two dimensions they split here. Registers repeat along
/// `first`, then along the other one. Warp bits are those of the rows, of the columns, of the batch
/// dimensions, from low to high.
fn tensor_core(
    shape: Shape,
    tile: &Tile,
    warps: &[u32],
    split: [bool; 2],
    first: usize,
    rows: RowWarps,
) -> Result<LinearLayout, LayoutError> {
    let warp_bits = log2_each(&shape, "warps", warps)?;
    let Some(base) = shape.rank().checked_sub(2) else {
        return Err(LayoutError::RankMismatch {
            what: "a tensor-core tile",
            found: 2,
            rank: shape.rank(),
        });
    };
    let column = |&(dim, bit): &(usize, u32)| unit(&shape, base + dim, bit);
    let mut registers: Vec<u32> = tile.registers.iter().map(column).collect();
    let lanes = tile.lanes.each_ref().map(column);

    let mut tiler = Tiler::new(shape);
    let mut warp_columns = vec![Vec::new(); shape.rank()];
    for dim in [first, 1 - first] {
        tiler.skip(base + dim, tile.size[dim]);
        let left = tiler.left(base + dim);
        let wanted = warp_bits[base + dim];
        let used = if split[dim] { wanted.min(left) } else { 0 };
        let mut owned = Vec::new();
        if dim == 0 && rows == RowWarps::Innermost {
            owned.extend(tiler.take(base, used));
            registers.extend(tiler.take(base, left - used));
        } else {
            registers.extend(tiler.take(base + dim, left - used));
            owned.extend(tiler.take(base + dim, used));
        }
        owned.resize(wanted as usize, 0);
        warp_columns[base + dim] = owned;
    }
    for dim in (0..base).rev() {
        warp_columns[dim] = tiler.take(dim, warp_bits[dim]);
        let left = tiler.left(dim);
        registers.extend(tiler.take(dim, left));
    }
    let warp_order = [base, base + 1].into_iter().chain((0..base).rev());
    let warps: Vec<u32> = warp_order
        .flat_map(|dim| warp_columns[dim].clone())
        .collect();
    distributed(shape, registers, &lanes, &warps)
}

/// Exponent of the elements along the inner dimension that one register of an operand holds.
fn inner_width(elem_bits: u32) -> Result<u32, LayoutError> {
    match elem_bits {
        8 => Ok(2),
        16 => Ok(1),
        32 | 64 => Ok(0),
        _ => Err(LayoutError::BadElementBits(elem_bits)),
    }
}

/// Accumulator of `mma.sync` m16n8 over a block `[.., M, N]`. `warps` counts warps along each
/// dimension; the tiles of one warp are neighbours, along N first. Two neighbouring tiles along N are,
/// packed to 16 bits, an operand A of m16n8k16.
pub fn mma_accumulator(shape: Shape, warps: &[u32]) -> Result<LinearLayout, LayoutError> {
    let tile = Tile::accumulator();
    tensor_core(shape, &tile, warps, [true, true], 1, RowWarps::Outermost)
}

/// Operand A `[.., M, K]` of `mma.sync` for the accumulator with the same `warps` (those along N hold
/// copies): m16n8k32 for 8-bit elements, k16 for 16, k8 for 32 (tf32) and 64. Tiles along K first.
pub fn mma_operand_a(
    shape: Shape,
    elem_bits: u32,
    warps: &[u32],
) -> Result<LinearLayout, LayoutError> {
    let tile = Tile::operand(inner_width(elem_bits)?, 0, true);
    tensor_core(shape, &tile, warps, [true, false], 1, RowWarps::Outermost)
}

/// Operand B `[.., K, N]` of `mma.sync` for the accumulator with the same `warps` (those along M hold
/// copies), with the inner extents of [`mma_operand_a`]. Tiles along K first.
pub fn mma_operand_b(
    shape: Shape,
    elem_bits: u32,
    warps: &[u32],
) -> Result<LinearLayout, LayoutError> {
    let tile = Tile::operand(inner_width(elem_bits)?, 1, false);
    tensor_core(shape, &tile, warps, [false, true], 0, RowWarps::Outermost)
}

fn check_warpgroups(shape: &Shape, warps: &[u32]) -> Result<(), LayoutError> {
    let rows = shape.rank().checked_sub(2).and_then(|dim| warps.get(dim));
    match rows {
        Some(&rows) if rows % 4 != 0 => Err(LayoutError::NotWarpgroups(rows)),
        _ => Ok(()),
    }
}

/// Accumulator of `wgmma` over a block `[M, N]`: the four warps of a group hold 16 rows each of every 64,
/// and further groups the next 64. Registers count along N first, so one instruction's are consecutive.
pub fn wgmma_accumulator(shape: Shape, warps: &[u32]) -> Result<LinearLayout, LayoutError> {
    check_warpgroups(&shape, warps)?;
    let tile = Tile::accumulator();
    tensor_core(shape, &tile, warps, [true, true], 1, RowWarps::Innermost)
}

/// Operand A `[M, K]` of `wgmma` from registers, for the accumulator with the same `warps`.
pub fn wgmma_operand_a(
    shape: Shape,
    elem_bits: u32,
    warps: &[u32],
) -> Result<LinearLayout, LayoutError> {
    check_warpgroups(&shape, warps)?;
    let tile = Tile::operand(inner_width(elem_bits)?, 0, true);
    tensor_core(shape, &tile, warps, [true, false], 1, RowWarps::Innermost)
}

/// Shared memory in row-major order.
pub fn shared_row_major(shape: Shape) -> LinearLayout {
    let offsets: Vec<u32> = (0..shape.log2_elements()).map(|bit| 1 << bit).collect();
    LinearLayout::memory(shape, &offsets).expect("unit columns of the shape's own index")
}

fn ordered_bits(shape: &Shape, order: &[usize]) -> Vec<u32> {
    let bits = order.iter().flat_map(|&dim| {
        let width = u32::from(shape.log2()[dim]);
        (0..width).map(move |bit| unit(shape, dim, bit))
    });
    bits.collect()
}

/// Shared memory with Triton's swizzle: with `c` the coordinate of `order[0]` and `r` that of
/// `order[1]`, the element stands at column `((c / vec) ^ ((r / per_phase) % max_phase)) * vec + c % vec`
/// of its row, the first operand taken modulo the vectors of a row.
pub fn shared_swizzled(
    shape: Shape,
    order: &[usize],
    vec: u32,
    per_phase: u32,
    max_phase: u32,
) -> Result<LinearLayout, LayoutError> {
    check_order(&shape, order)?;
    let vec = log2("vector", vec)?;
    let per_phase = log2("rows per phase", per_phase)?;
    let max_phase = log2("number of phases", max_phase)?;
    let mut offsets = ordered_bits(&shape, order);
    if let [column, row, ..] = *order {
        let width = usize::from(shape.log2()[column]);
        let height = u32::from(shape.log2()[row]);
        for phase in 0..max_phase.min(height.saturating_sub(per_phase)) {
            offsets[width + (per_phase + phase) as usize] ^= unit(&shape, column, vec + phase);
        }
    }
    LinearLayout::memory(shape, &offsets)
}

/// Shared memory as TMA writes and `wgmma` reads it: rows along `order[0]` are cut into pieces of
/// `swizzle_bytes` (32, 64 or 128; 16 for no swizzle), the pieces of all rows along `order[1]` stand
/// below each other, and in the byte address bits 4 and up are added to by bits 7 and up, as many as
/// the pieces have 16-byte chunks to permute.
pub fn shared_tma(
    shape: Shape,
    order: &[usize],
    elem_bytes: u32,
    swizzle_bytes: u32,
) -> Result<LinearLayout, LayoutError> {
    check_order(&shape, order)?;
    let elem = log2("element size", elem_bytes)?;
    let swizzle = log2("swizzle", swizzle_bytes)?;
    let mut offsets = ordered_bits(&shape, order);
    let Some(&inner) = order.first() else {
        return LinearLayout::memory(shape, &offsets);
    };
    let row = shape.extent(inner) * u64::from(elem_bytes);
    if row < u64::from(swizzle_bytes) || !(4..=7).contains(&swizzle) || elem > 4 {
        let swizzle = swizzle_bytes;
        return Err(LayoutError::SwizzleTooWide { row, swizzle });
    }
    // Rotate the row's bits above the piece past the bits of the rows.
    let piece = (swizzle - elem) as usize;
    let width = usize::from(shape.log2()[inner]);
    let height = order.get(1).map_or(0, |&dim| shape.log2()[dim]);
    offsets[piece..width + usize::from(height)].rotate_left(width - piece);
    let linear = offsets.clone();
    for bit in 0..swizzle - 4 {
        let from = (7 + bit - elem) as usize;
        if let Some(column) = offsets.get_mut(from) {
            *column ^= linear[(4 + bit - elem) as usize];
        }
    }
    LinearLayout::memory(shape, &offsets)
}

/// The warps along the dimensions of a two-dimensional accumulator, from its layout's parameters:
/// starts with one tile and doubles the dimension with more tiles left, rows on a tie. Triton's rule for
/// a dot that is not chained to another.
pub fn mma_warps(shape: Shape, num_warps: u32) -> Result<[u32; 2], LayoutError> {
    let bits = log2("number of warps", num_warps)?;
    let Some(base) = shape.rank().checked_sub(2) else {
        return Err(LayoutError::RankMismatch {
            what: "a tensor-core tile",
            found: 2,
            rank: shape.rank(),
        });
    };
    let tiles = |dim: usize, size: u32| u32::from(shape.log2()[base + dim]).saturating_sub(size);
    let mut left = [tiles(0, 4), tiles(1, 3)];
    let mut warps = [1, 1];
    for _ in 0..bits {
        let dim = usize::from(left[1] > left[0]);
        left[dim] = left[dim].saturating_sub(1);
        warps[dim] *= 2;
    }
    Ok(warps)
}

#[cfg(test)]
mod tests;
