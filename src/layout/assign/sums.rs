//! How warpgroups hold the sums of products.
//!
//! All sums of a shape stand alike, as products add to what other ones leave. Their rows are in the order of the unit, or in that which suits
//! left operands of words that come from rings with neighbours along the rows ([`warpgroup::accumulator_of_columns`]), if all products of
//! the shape have such ones.

use rustc_hash::FxHashMap;

use crate::analysis::axis::Axis;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::warpgroup;
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::shape::Shape;

/// The shapes of sums whose left operands are columns of what was loaded, and of others.
#[derive(Default)]
pub(super) struct Sums(FxHashMap<Shape, bool>);

impl Sums {
    pub(super) fn of_products(func: &TileFunction, axis: &Axis) -> Sums {
        let mut shapes = FxHashMap::default();
        for (_, inst) in func.insts_with(TileOp::DotStart) {
            let data = &func.dfg.insts[inst];
            let shape = func.dfg.ty(data.results[0]).shape;
            *shapes.entry(shape).or_insert(true) &= warpgroup::loads_columns(func, axis, inst);
        }
        Sums(shapes)
    }

    /// The layout of sums of a shape; none if a warpgroup makes none.
    pub(super) fn of(&self, shape: Shape, num_warps: u32) -> Option<LinearLayout> {
        match self.0.get(&shape) {
            Some(true) => warpgroup::accumulator_of_columns(shape, num_warps),
            _ => warpgroup::accumulator(shape, num_warps),
        }
    }
}
