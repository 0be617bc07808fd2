//! Layouts that follow from layouts, remembered: the algebra is not free and the same few questions
//! are asked for every value.

use rustc_hash::FxHashMap;

use super::cost;
use super::graph::{Dims, Need};
use super::pbqp::Cost;
use crate::layout::{matrix, warpgroup};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::pool::{LayoutId, LayoutPool};
use crate::linear_layout::shape::Shape;

/// A step from one layout to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LayoutStep {
    /// What a user needs of its operand.
    Need(Need),
    /// Result of a reduction along the axis.
    Reduce(u8),
    /// Result of `expand_dims` at the axis.
    Expand(u8),
    /// Result of a reshape to the shape.
    Reshape(Shape),
    /// Result of a permutation.
    Permute(Dims),
    /// Result of a join of two blocks that have it.
    Join,
    /// Another result of such a join, which spreads pairs over lanes or warps that held copies.
    JoinCopies(HwDim, u32),
    /// Some result of a broadcast to the shape.
    Broadcast(Shape),
    /// Some operand of the shape whose reduction along the axis has the layout.
    BeforeReduce(u8, Shape),
}

/// Answers given so far.
#[derive(Debug, Default)]
pub(super) struct Views {
    views: FxHashMap<(LayoutId, LayoutStep), LayoutId>,
    costs: FxHashMap<(LayoutId, LayoutId, u32), Cost>,
}

impl Views {
    /// The layout that follows from `layout`.
    pub(super) fn view(
        &mut self,
        pool: &mut LayoutPool,
        layout: LayoutId,
        view: LayoutStep,
    ) -> LayoutId {
        if view == LayoutStep::Need(Need::Same) {
            return layout;
        }
        *self.views.entry((layout, view)).or_insert_with(|| {
            let old = &pool[layout];
            let new = match view {
                LayoutStep::Need(Need::Same) => old.clone(),
                LayoutStep::Need(Need::BeforeExpand(axis)) => {
                    old.before_expand_dims(usize::from(axis))
                }
                LayoutStep::Need(Need::BeforeBroadcast(shape)) => old.before_broadcast(shape),
                LayoutStep::Need(Need::BeforeReshape(shape)) | LayoutStep::Reshape(shape) => {
                    old.reshape(shape)
                }
                LayoutStep::Need(Need::BeforePermute(dims)) => old.before_permute(&dims.list()),
                LayoutStep::Need(Need::BeforeJoin) => old.before_join(),
                LayoutStep::Need(Need::BeforeSplit) | LayoutStep::Join => old.join(),
                LayoutStep::Need(Need::BeforeDot(shape, is_left)) => old.before_dot(shape, is_left),
                LayoutStep::Need(Need::BeforeUnit(shape, is_left, unit)) => {
                    matrix::operand(old, unit, shape, is_left)
                        .unwrap_or_else(|| old.before_dot(shape, is_left))
                }
                LayoutStep::Need(Need::BeforeWarpgroup(shape, unit)) => {
                    warpgroup::left_operand(old, unit, shape)
                        .unwrap_or_else(|| old.before_dot(shape, true))
                }
                // Where nothing is asked for, the own layout is as good as any; who asks has seen that the shape is the same.
                LayoutStep::Need(Need::Gathered(_) | Need::Counted) => old.clone(),
                LayoutStep::JoinCopies(dim, bit) => old.join_copies(dim, bit),
                LayoutStep::Permute(dims) => old.permute(&dims.list()),
                LayoutStep::Reduce(axis) => old.reduce(usize::from(axis)),
                LayoutStep::Expand(axis) => old.expand_dims(usize::from(axis)),
                LayoutStep::Broadcast(shape) => old.broadcast_to(shape),
                LayoutStep::BeforeReduce(axis, shape) => {
                    old.before_reduce(usize::from(axis), shape)
                }
            };
            pool.intern(new)
        })
    }

    /// What converting elements of `elem_bits` bits from one layout to another costs a warp.
    pub(super) fn conversion_cost(
        &mut self,
        pool: &LayoutPool,
        from: LayoutId,
        to: LayoutId,
        elem_bits: u32,
    ) -> Cost {
        if from == to {
            return 0;
        }
        let key = (from, to, elem_bits);
        let layouts = |id: LayoutId| -> &LinearLayout { &pool[id] };
        *self
            .costs
            .entry(key)
            .or_insert_with(|| cost::conversion(layouts(from), layouts(to), elem_bits))
    }

    /// What converting a block costs that was broadcast from a smaller one of the shape, if there is such a one: itself, or that one with
    /// another broadcast behind it. The flag says that the smaller one is better converted.
    pub(super) fn broadcast_cost(
        &mut self,
        pool: &mut LayoutPool,
        smaller: Option<Shape>,
        [from, to]: [LayoutId; 2],
        elem_bits: u32,
    ) -> (Cost, bool) {
        let whole = self.conversion_cost(pool, from, to, elem_bits);
        let Some(shape) = smaller.filter(|_| whole > 1) else {
            return (whole, false);
        };
        let need = LayoutStep::Need(Need::BeforeBroadcast(shape));
        let (from, to) = (self.view(pool, from, need), self.view(pool, to, need));
        let part = 1 + self.conversion_cost(pool, from, to, elem_bits);
        (whole.min(part), part < whole)
    }
}
