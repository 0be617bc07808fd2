//! Which unit multiplies two matrices, and how it wants them held.
//!
//! Almost all units are fed tiles of 16 rows, 8 columns and 32 bytes (f64: 8 elements) along the summed dimension, so that one
//! family of layouts serves them all; smaller instructions take a tile in several steps. The first unit of all, m8n8k4 of f16,
//! has a family of its own ([`quad_pairs`]): tiles of 16 rows, 16 columns and 8 elements. Its operands come from shared memory by
//! ordinary loads, for which a thread may as well hold neighbours across the summed dimension as along it.

use smallvec::SmallVec;

use crate::ir::attrs::{Attrs, DotPrecision, MmaUnit};
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::matrix_units::Fragments;
use crate::ir::types::Elem;
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::named::{self, quad_pairs};
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// What a unit is fed at once.
#[derive(Clone, Debug)]
pub struct UnitTile {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// Elements along the summed dimension.
    pub inner: u32,
    /// Row and column of each element of the sum in thread 0.
    pub sums: &'static [(u32, u32)],
    /// Row and place along the summed dimension where each register of the left operand in thread 0 starts.
    pub left: SmallVec<[(u32, u32); 4]>,
    /// Column and place along the summed dimension where each register of the right operand in thread 0 starts.
    pub right: SmallVec<[(u32, u32); 4]>,
}

/// What is known of a product of matrices.
#[derive(Clone, Copy, Debug)]
pub struct DotInfo {
    /// Elements of the left operand.
    pub left: Elem,
    /// Elements of the right operand.
    pub right: Elem,
    /// Elements of the sum.
    pub sum: Elem,
    /// How exact it must be.
    pub precision: DotPrecision,
    /// Length of the sums.
    pub inner: u64,
}

/// The product that a `dot` computes.
pub fn dot_info(func: &TileFunction, inst: Inst) -> DotInfo {
    let data = &func.dfg.insts[inst];
    let [left, right, sum] = [0, 1, 2].map(|i| func.dfg.ty(data.args[i]));
    DotInfo {
        left: left.elem,
        right: right.elem,
        sum: sum.elem,
        precision: data.precision().copied().unwrap_or(DotPrecision::Ieee),
        inner: left.shape.extents().last().unwrap_or(1),
    }
}

/// Bits of an element of the operands of a unit.
pub fn operand_bits(unit: MmaUnit) -> u32 {
    unit.info().scalars[0].bits()
}

/// Elements of a tile along the summed dimension.
pub fn tile_inner(unit: MmaUnit) -> u32 {
    unit.info().tile[2]
}

/// The tile of a unit.
pub fn tile(unit: MmaUnit) -> UnitTile {
    let [rows, columns, inner] = unit.info().tile;
    let half = inner / 2;
    let along = [(0, 0), (0, 2), (0, 4), (0, 6)];
    let across = [(0, 0), (2, 0), (0, 4), (2, 4)];
    let pieces = |is_crossed| if is_crossed { across } else { along };
    let (sums, left, right): (&[_], _, _) = match unit.info().fragments {
        Fragments::Rows => (
            &[(0, 0), (0, 1), (8, 0), (8, 1)],
            [(0, 0), (8, 0), (0, half), (8, half)],
            [(0, 0), (0, half)].into_iter().collect(),
        ),
        Fragments::QuadPairs(left, right) => (
            &[
                (0, 0),
                (0, 1),
                (2, 0),
                (2, 1),
                (0, 8),
                (0, 9),
                (2, 8),
                (2, 9),
            ],
            pieces(left),
            pieces(right).into(),
        ),
    };
    UnitTile {
        rows,
        columns,
        inner,
        sums,
        left: left.into(),
        right,
    }
}

/// The unit of the target for a product; none if it has none, or if the matrices are too short for its tiles.
pub fn unit(product: &DotInfo, target: Target) -> Option<MmaUnit> {
    unit_of(product, 1, target)
}

/// The same of which so many warps execute an instruction.
pub fn unit_of(product: &DotInfo, warps: u32, target: Target) -> Option<MmaUnit> {
    let scalars = [
        product.left.scalar()?,
        product.right.scalar()?,
        product.sum.scalar()?,
    ];
    let found = MmaUnit::of(scalars, product.precision, warps, target)?;
    (u64::from(tile_inner(found)) <= product.inner).then_some(found)
}

/// Warps along each dimension.
type Warps = SmallVec<[u32; 3]>;

/// Every way to deal warps to rows and columns, when those of the batch have theirs; those that execute an instruction together
/// have rows of the same columns.
fn splits(shape: Shape, unit: MmaUnit, num_warps: u32) -> Vec<Warps> {
    let batch = match shape.rank() {
        3 => (shape.extent(0) as u32).min(num_warps),
        _ => 1,
    };
    let left = num_warps / batch;
    let split = |columns: u32| {
        let all: &[u32] = &[batch, left / columns, columns];
        Warps::from_slice(&all[3 - shape.rank()..])
    };
    let together = unit.info().warps;
    let ways = (0..=left.ilog2()).map(|bits| 1 << bits);
    let whole = ways.filter(|columns| (left / columns).is_multiple_of(together));
    whole.map(split).collect()
}

fn accumulator(shape: Shape, unit: MmaUnit, warps: &Warps) -> Option<LinearLayout> {
    let made = match unit.info().fragments {
        Fragments::QuadPairs(..) => quad_pairs::accumulator(shape, warps),
        Fragments::Rows => named::mma_accumulator(shape, warps),
    };
    made.ok()
}

/// Layouts of a sum that the unit can add to, the one that shares most of the operands first.
pub fn accumulators(shape: Shape, unit: MmaUnit, num_warps: u32) -> Vec<LinearLayout> {
    let tile = tile(unit);
    let tiles = |dim: usize, size: u32| (shape.extent(dim) as u32 / size).max(1);
    let rank = shape.rank();
    let (rows, columns) = (tiles(rank - 2, tile.rows), tiles(rank - 1, tile.columns));
    let mut splits = splits(shape, unit, num_warps);
    // A warp reads its rows and its columns.
    let read = |warps: &Warps| {
        let own = |tiles: u32, warps: u32| tiles.div_ceil(warps);
        tile.rows * own(rows, warps[rank - 2]) + tile.columns * own(columns, warps[rank - 1])
    };
    // Stable: with equal costs, more warps along the columns.
    splits.reverse();
    splits.sort_by_key(read);
    let layouts = splits.iter();
    layouts
        .filter_map(|warps| accumulator(shape, unit, warps))
        .collect()
}

/// The warps along each dimension of the layout of a sum; none if the unit does not add to such a sum.
fn warps_of(sum: &LinearLayout, unit: MmaUnit) -> Option<Warps> {
    let shape = sum.shape();
    if !(2..=3).contains(&shape.rank()) {
        return None;
    }
    let mut all = splits(shape, unit, sum.num_warps()).into_iter();
    all.find(|warps| accumulator(shape, unit, warps).is_some_and(|layout| layout == *sum))
}

/// Whether the unit can add to a sum with this layout.
pub fn is_accumulator(sum: &LinearLayout, unit: MmaUnit) -> bool {
    warps_of(sum, unit).is_some()
}

/// The layout of an operand of the shape that the unit wants for a sum with the layout; none if it does not add to such a sum.
pub fn operand(
    sum: &LinearLayout,
    unit: MmaUnit,
    shape: Shape,
    is_left: bool,
) -> Option<LinearLayout> {
    let warps = warps_of(sum, unit)?;
    let bits = operand_bits(unit);
    let made = match (is_left, unit.info().fragments) {
        (true, Fragments::Rows) => named::mma_operand_a(shape, bits, &warps),
        (false, Fragments::Rows) => named::mma_operand_b(shape, bits, &warps),
        (true, Fragments::QuadPairs(..)) => quad_pairs::operand_a(shape, &warps),
        (false, Fragments::QuadPairs(..)) => quad_pairs::operand_b(shape, &warps),
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
    fn operands_follow_from_the_sum() {
        for (extents, num_warps) in [([128, 128], 4), ([64, 16], 8), ([16, 8], 4), ([256, 32], 1)] {
            let shape_c = shape(&extents);
            for unit in [MmaUnit::F16, MmaUnit::F16K4] {
                for sum in accumulators(shape_c, unit, num_warps) {
                    let warps = warps_of(&sum, unit).expect("made for the unit");
                    assert_eq!(warps.iter().product::<u32>(), num_warps);
                    let a = operand(&sum, unit, shape(&[extents[0], 32]), true);
                    let a = a.expect("a layout of the left operand");
                    assert!(a.is_surjective() && a.num_warps() == num_warps);
                }
            }
        }
    }

    #[test]
    fn the_first_accumulator_is_nearly_square() {
        let first = |rows, columns, warps| {
            let layouts = accumulators(shape(&[rows, columns]), MmaUnit::F16, warps);
            warps_of(&layouts[0], MmaUnit::F16).map(|w| w.to_vec())
        };
        assert_eq!(first(128, 128, 4), Some(vec![2, 2]));
        assert_eq!(first(128, 128, 8), Some(vec![2, 4]));
        assert_eq!(first(32, 64, 4), Some(vec![1, 4]));
        assert_eq!(first(128, 64, 4), Some(vec![2, 2]));
        assert_eq!(first(16, 128, 4), Some(vec![1, 4]));
        assert_eq!(first(128, 32, 4), Some(vec![4, 1]));
    }

    #[test]
    fn short_sums_have_no_unit() {
        let product = |inner| DotInfo {
            left: Elem::F16,
            right: Elem::F16,
            sum: Elem::F32,
            precision: DotPrecision::Ieee,
            inner,
        };
        assert_eq!(unit(&product(16), Target::SM_80), Some(MmaUnit::F16));
        assert_eq!(unit(&product(8), Target::SM_80), None);
        assert_eq!(unit(&product(16), Target::SM_75), Some(MmaUnit::F16K8));
        assert_eq!(unit(&product(8), Target::SM_75), None);
        assert_eq!(unit(&product(8), Target::SM_70), Some(MmaUnit::F16K4));
        assert_eq!(unit(&product(4), Target::SM_70), None);
    }

    /// What a thread holds where the tile says must be where the layout says.
    #[test]
    fn tiles_name_the_elements_of_layouts() {
        let units = [
            MmaUnit::F16,
            MmaUnit::F16K8,
            MmaUnit::F16Sums,
            MmaUnit::F16K4,
            MmaUnit::Tf32,
        ];
        for unit in units.into_iter().chain([MmaUnit::F64, MmaUnit::S8]) {
            let tile = tile(unit);
            let extents = |a: u32, b: u32| shape(&[u64::from(a), u64::from(b)]);
            let sum = &accumulators(extents(tile.rows, tile.columns), unit, 1)[0];
            let places = |layout: &LinearLayout, step: u32| -> Vec<(u32, u32)> {
                let shape = layout.shape();
                let held = (0..layout.num_registers()).step_by(step as usize);
                held.map(|r| layout.apply(r, 0, 0, 0))
                    .map(|e| (shape.coordinate(e, 0), shape.coordinate(e, 1)))
                    .collect()
            };
            assert_eq!(places(sum, 1), tile.sums, "{unit:?}");
            let word = (32 / operand_bits(unit)).max(1);
            let a = operand(sum, unit, extents(tile.rows, tile.inner), true).expect("a operand");
            assert_eq!(places(&a, word), tile.left[..], "{unit:?}");
            let b =
                operand(sum, unit, extents(tile.inner, tile.columns), false).expect("a operand");
            let found: Vec<_> = places(&b, word).into_iter().map(|(k, n)| (n, k)).collect();
            assert_eq!(found, tile.right[..], "{unit:?}");
            assert_eq!(
                unit.tile_registers().map(|n| n as usize),
                [tile.left.len(), tile.right.len(), tile.sums.len()]
            );
        }
    }
}
