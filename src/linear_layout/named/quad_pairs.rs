//! Layouts of `mma.sync.m8n8k4` of f16, which is four products at once.
//!
//! Lanes `4j..4j + 4` and `16 + 4j..20 + 4j` form quad pair `j` of a warp, and each quad pair multiplies an 8x4 matrix by a 4x8 one.
//! The four stand in two rows and two columns of quad pairs, so that a warp computes 16x16 elements; each row of the left operand
//! is then held by two quad pairs, and each column of the right one.
//!
//! Which rows of the block are the instruction's rows 0 to 7 is free as long as operand and sum agree. Here lane bit 2, which
//! tells quad pairs apart, adds 4 to the row, and lane bit 4, which adds 4 to the instruction's row, adds 8: so lanes 0 to 7, whose
//! accesses of 16 bytes are served at once, hold eight rows that follow each other, and memory permuted for `ldmatrix` serves
//! them without bank conflicts. Columns are the same with lane bit 3 for bit 2.
//!
//! A tile of an operand is two instructions long: 8 elements along the summed dimension, 16 bytes.

use super::super::layout::{Columns, HwDim, LayoutError, LinearLayout};
use super::super::shape::Shape;
use super::{NOWHERE, RowWarps, Tile, tensor_core};

/// Accumulator in f32 over a block `[.., M, N]`. `warps` counts warps along each dimension; the tiles of one warp are
/// neighbours, along N first.
pub fn accumulator(shape: Shape, warps: &[u32]) -> Result<LinearLayout, LayoutError> {
    let tile = Tile {
        registers: vec![(1, 0), (0, 1), (1, 3)],
        lanes: [(0, 0), (1, 1), (0, 2), (1, 2), (0, 3)],
        size: [4, 4],
    };
    tensor_core(shape, &tile, warps, [true, true], 1, RowWarps::Outermost)
}

/// Left operand `[.., M, K]` for the accumulator with the same `warps` (those along N hold copies). Tiles along K first.
pub fn operand_a(shape: Shape, warps: &[u32]) -> Result<LinearLayout, LayoutError> {
    let tile = Tile {
        registers: vec![(1, 0), (1, 1), (1, 2)],
        lanes: [(0, 0), (0, 1), (0, 2), NOWHERE, (0, 3)],
        size: [4, 3],
    };
    tensor_core(shape, &tile, warps, [true, false], 1, RowWarps::Outermost)
}

/// Right operand `[.., K, N]` for the accumulator with the same `warps` (those along M hold copies). Tiles along K first.
pub fn operand_b(shape: Shape, warps: &[u32]) -> Result<LinearLayout, LayoutError> {
    let tile = Tile {
        registers: vec![(0, 0), (0, 1), (0, 2)],
        lanes: [(1, 0), (1, 1), NOWHERE, (1, 2), (1, 3)],
        size: [3, 4],
    };
    tensor_core(shape, &tile, warps, [false, true], 0, RowWarps::Outermost)
}

/// The layout of an operand in which a thread holds four neighbours across the summed dimension instead of along it, as the
/// instruction takes them too: four lanes and the two lowest bits of the register change places. None if there are fewer.
pub fn transposed(operand: &LinearLayout) -> Option<LinearLayout> {
    let (registers, lanes) = (
        operand.columns(HwDim::Register),
        operand.columns(HwDim::Lane),
    );
    if registers.len() < 2 || lanes.len() < 2 || lanes[..2].contains(&0) {
        return None;
    }
    let swapped = |of: &[u32], with: &[u32]| -> Columns {
        with[..2].iter().chain(&of[2..]).copied().collect()
    };
    let (new_registers, new_lanes) = (swapped(registers, lanes), swapped(lanes, registers));
    let transposed = operand.clone().with_columns(HwDim::Register, new_registers);
    Some(transposed.with_columns(HwDim::Lane, new_lanes))
}
