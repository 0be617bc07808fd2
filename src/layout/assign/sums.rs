//! How warpgroups hold the sums of products.
//!
//! All sums of a shape stand alike, as products add to what other ones leave. Their rows are in the order of the unit, or in that which suits
//! left operands that threads load as columns ([`warpgroup::accumulator_of_columns`]), if all products of the shape have such ones.

use rustc_hash::FxHashMap;

use crate::analysis::axis::Axis;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::warpgroup;
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::shape::Shape;

/// For each shape of sums the bytes of the elements of their left operands if these are columns of what was loaded.
#[derive(Default)]
pub(super) struct Sums(FxHashMap<Shape, Option<u32>>);

impl Sums {
    pub(super) fn of_products(func: &TileFunction, axis: &Axis) -> Sums {
        let mut shapes = FxHashMap::default();
        for (_, inst) in func.insts_with(TileOp::DotStart) {
            let data = &func.dfg.insts[inst];
            let shape = func.dfg.ty(data.results[0]).shape;
            let bytes = func.dfg.ty(data.args[0]).elem.bytes();
            let columns = warpgroup::loads_columns(func, axis, inst).then_some(bytes);
            let of_all = shapes.entry(shape).or_insert(columns);
            if *of_all != columns {
                *of_all = None;
            }
        }
        Sums(shapes)
    }

    /// The layout of sums of a shape; none if a warpgroup makes none.
    pub(super) fn of(&self, shape: Shape, num_warps: u32) -> Option<LinearLayout> {
        match self.0.get(&shape) {
            Some(&Some(bytes)) => warpgroup::accumulator_of_columns(shape, num_warps, bytes),
            _ => warpgroup::accumulator(shape, num_warps),
        }
    }
}
