//! Which unit multiplies two matrices, and how it wants them held.
//!
//! All units are fed tiles of 16 rows, 8 columns and 32 bytes (f64: 8 elements) along the summed dimension, so that one family
//! of layouts serves them all; smaller instructions take a tile in several steps.

use smallvec::SmallVec;

use crate::ir::attrs::{Attrs, DotPrecision, MmaUnit};
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::types::{Elem, Scalar};
use crate::linear::layout::LinearLayout;
use crate::linear::named;
use crate::linear::shape::Shape;
use crate::settings::Target;

/// Rows of a tile.
pub const TILE_ROWS: u32 = 16;
/// Columns of a tile.
pub const TILE_COLUMNS: u32 = 8;

/// What is known of a product of matrices.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Elements of the left factor.
    pub left: Elem,
    /// Elements of the right factor.
    pub right: Elem,
    /// Elements of the sum.
    pub sum: Elem,
    /// How exact it must be.
    pub precision: DotPrecision,
    /// Length of the sums.
    pub inner: u64,
}

/// The product that a `dot` computes.
pub fn product_of(func: &TileFunction, inst: Inst) -> Product {
    let data = &func.dfg.insts[inst];
    let [left, right, sum] = [0, 1, 2].map(|i| func.dfg.ty(data.args[i]));
    Product {
        left: left.elem,
        right: right.elem,
        sum: sum.elem,
        precision: data.precision().copied().unwrap_or(DotPrecision::Ieee),
        inner: left.shape.extents().last().unwrap_or(1),
    }
}

/// Bits of an element of the factors of a unit.
pub fn operand_bits(unit: MmaUnit) -> u32 {
    match unit {
        MmaUnit::F16 | MmaUnit::F16K8 | MmaUnit::Bf16 => 16,
        MmaUnit::Tf32 => 32,
        MmaUnit::F64 => 64,
        MmaUnit::S8
        | MmaUnit::S8K16
        | MmaUnit::E4m3
        | MmaUnit::E4m3E5m2
        | MmaUnit::E5m2E4m3
        | MmaUnit::E5m2 => 8,
    }
}

/// Elements of a tile along the summed dimension.
pub fn tile_inner(unit: MmaUnit) -> u32 {
    match operand_bits(unit) {
        64 => 8,
        bits => 256 / bits,
    }
}

/// The unit of the target for a product; none if it has none, or if the matrices are too short for its tiles.
pub fn unit(product: &Product, target: Target) -> Option<MmaUnit> {
    use Scalar::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32};
    let scalars = (
        product.left.scalar()?,
        product.right.scalar()?,
        product.sum.scalar()?,
    );
    let sm = target.sm;
    let found = match scalars {
        (F16, F16, F32) if sm >= 80 => MmaUnit::F16,
        (F16, F16, F32) if sm >= 75 => MmaUnit::F16K8,
        (Bf16, Bf16, F32) if sm >= 80 => MmaUnit::Bf16,
        (F32, F32, F32) if sm >= 80 && product.precision == DotPrecision::Tf32 => MmaUnit::Tf32,
        (F64, F64, F64) if sm >= 80 => MmaUnit::F64,
        (I8, I8, I32) if sm >= 80 => MmaUnit::S8,
        (I8, I8, I32) if sm >= 75 => MmaUnit::S8K16,
        (F8E4M3, F8E4M3, F32) if sm >= 89 => MmaUnit::E4m3,
        (F8E4M3, F8E5M2, F32) if sm >= 89 => MmaUnit::E4m3E5m2,
        (F8E5M2, F8E4M3, F32) if sm >= 89 => MmaUnit::E5m2E4m3,
        (F8E5M2, F8E5M2, F32) if sm >= 89 => MmaUnit::E5m2,
        _ => return None,
    };
    (u64::from(tile_inner(found)) <= product.inner).then_some(found)
}

/// Warps along each dimension.
type Warps = SmallVec<[u32; 3]>;

/// Every way to deal warps to rows and columns, when those of the batch have theirs.
fn splits(shape: Shape, num_warps: u32) -> Vec<Warps> {
    let batch = match shape.rank() {
        3 => (shape.extent(0) as u32).min(num_warps),
        _ => 1,
    };
    let left = num_warps / batch;
    let split = |columns: u32| {
        let all: &[u32] = &[batch, left / columns, columns];
        Warps::from_slice(&all[3 - shape.rank()..])
    };
    (0..=left.ilog2()).map(|bits| split(1 << bits)).collect()
}

/// Layouts of a sum that a unit can add to, the one that shares most of the factors first.
pub fn accumulators(shape: Shape, num_warps: u32) -> Vec<LinearLayout> {
    let tiles = |dim: usize, size: u32| (shape.extent(dim) as u32 / size).max(1);
    let rank = shape.rank();
    let (rows, columns) = (tiles(rank - 2, TILE_ROWS), tiles(rank - 1, TILE_COLUMNS));
    let mut splits = splits(shape, num_warps);
    // A warp reads its rows and its columns; a tile of rows is twice as large.
    let read = |warps: &Warps| {
        let own = |tiles: u32, warps: u32| tiles.div_ceil(warps);
        2 * own(rows, warps[rank - 2]) + own(columns, warps[rank - 1])
    };
    // Stable: with equal costs, more warps along the rows.
    splits.sort_by_key(read);
    let layouts = splits.iter();
    layouts
        .filter_map(|warps| named::mma_accumulator(shape, warps).ok())
        .collect()
}

/// The warps along each dimension of the layout of a sum; none if no unit adds to such a sum.
fn warps_of(sum: &LinearLayout) -> Option<Warps> {
    let shape = sum.shape();
    if !(2..=3).contains(&shape.rank()) {
        return None;
    }
    let mut all = splits(shape, sum.num_warps()).into_iter();
    all.find(|warps| named::mma_accumulator(shape, warps).is_ok_and(|layout| layout == *sum))
}

/// Whether a unit can add to a sum with this layout.
pub fn is_accumulator(sum: &LinearLayout) -> bool {
    warps_of(sum).is_some()
}

/// The layout of a factor of the shape that a unit wants for a sum with the layout; none if no unit adds to such a sum.
pub fn factor(
    sum: &LinearLayout,
    unit: MmaUnit,
    shape: Shape,
    is_left: bool,
) -> Option<LinearLayout> {
    let warps = warps_of(sum)?;
    let bits = operand_bits(unit);
    let made = match is_left {
        true => named::mma_operand_a(shape, bits, &warps),
        false => named::mma_operand_b(shape, bits, &warps),
    };
    made.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(extents: &[u64]) -> Shape {
        Shape::new(extents).expect("powers of two")
    }

    #[test]
    fn factors_follow_from_the_sum() {
        for (extents, num_warps) in [([128, 128], 4), ([64, 16], 8), ([16, 8], 4), ([256, 32], 1)] {
            let shape_c = shape(&extents);
            for sum in accumulators(shape_c, num_warps) {
                let warps = warps_of(&sum).expect("made for a unit");
                assert_eq!(warps.iter().product::<u32>(), num_warps);
                let a = factor(&sum, MmaUnit::F16, shape(&[extents[0], 32]), true);
                let a = a.expect("a layout of the left factor");
                assert!(a.is_surjective() && a.num_warps() == num_warps);
            }
        }
    }

    #[test]
    fn the_first_accumulator_is_nearly_square() {
        let first = |rows, columns, warps| {
            let layouts = accumulators(shape(&[rows, columns]), warps);
            warps_of(&layouts[0]).map(|w| w.to_vec())
        };
        assert_eq!(first(128, 128, 4), Some(vec![2, 2]));
        assert_eq!(first(128, 128, 8), Some(vec![4, 2]));
        assert_eq!(first(16, 128, 4), Some(vec![1, 4]));
        assert_eq!(first(128, 32, 4), Some(vec![4, 1]));
    }

    #[test]
    fn short_sums_have_no_unit() {
        let product = |inner| Product {
            left: Elem::F16,
            right: Elem::F16,
            sum: Elem::F32,
            precision: DotPrecision::Ieee,
            inner,
        };
        assert_eq!(unit(&product(16), Target::SM_80), Some(MmaUnit::F16));
        assert_eq!(unit(&product(8), Target::SM_80), None);
        assert_eq!(unit(&product(16), Target::SM_75), Some(MmaUnit::F16K8));
        assert_eq!(unit(&product(16), Target::SM_70), None);
    }
}
