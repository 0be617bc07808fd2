//! What passes may spend, and how much of it is given up where a kernel does not fit.

use super::share_operands::holds_operands;
use crate::ir::attrs::Attrs;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::settings::Policy;

/// What a compilation may spend shared memory on, beside what it cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourcePlan {
    /// Blocks may go to memory as boxes, for which they stand in shared memory first.
    pub stored_boxes: bool,
    /// Small blocks may come as boxes beside large ones, and threads load them from shared memory when they read them.
    pub small_boxes: bool,
    /// Operands of `dot` may be kept there instead of in registers.
    pub shared_operands: bool,
    /// Products may go to warpgroups, which want sums and fragments in registers while they work.
    pub warpgroup_units: bool,
    /// Blocks may go to memory piece by piece, for which their layouts must be those of sums.
    pub pieces: bool,
    /// Blocks may be brought by warps of their own, which take registers, too.
    pub roles: Policy,
    /// CTAs may execute several programs, whose rings live beside what a program stores.
    pub persistent: Policy,
    /// Bytes that rings of pipelined loops leave free, for exchanges between threads.
    pub reserved: u32,
    /// Most registers of a thread, if its author bounds them.
    pub max_registers: Option<u16>,
}

impl ResourcePlan {
    /// Everything that makes code faster.
    pub const ALL: ResourcePlan = ResourcePlan {
        stored_boxes: true,
        small_boxes: true,
        shared_operands: true,
        warpgroup_units: true,
        pieces: true,
        roles: Policy::Auto,
        persistent: Policy::Auto,
        reserved: 0,
        max_registers: None,
    };

    /// What is left to do without, if the kernel needs `needed` bytes and there are `limit`: first pieces, then loops over programs, then
    /// boxes that are stored, then operands, then entries of rings. What is reserved is all that is no ring, and grows with each plan,
    /// until no ring has an entry to spare.
    pub(crate) fn less(self, tile: &TileFunction, needed: u32, limit: u32) -> Option<ResourcePlan> {
        let in_pieces = |(_, inst)| tile.dfg.insts[inst].stages().is_some();
        if self.pieces && tile.insts_with(TileOp::TensorStore).any(in_pieces) {
            return Some(ResourcePlan {
                pieces: false,
                ..self
            });
        }
        if tile.persistent {
            return Some(ResourcePlan {
                persistent: Policy::Never,
                ..self
            });
        }
        if self.stored_boxes && tile.insts_with(TileOp::TensorStore).next().is_some() {
            return Some(ResourcePlan {
                stored_boxes: false,
                ..self
            });
        }
        if self.shared_operands && holds_operands(tile) {
            return Some(ResourcePlan {
                shared_operands: false,
                ..self
            });
        }
        let rings = || tile.buffers.values().flatten();
        let in_rings: u32 = rings().map(|r| r.stages * r.stage_bytes()).sum();
        // What lacks a few bytes again and again is to come to an end soon.
        let least = if self.reserved == 0 { 0 } else { limit / 64 };
        let more = self.reserved.checked_add((needed - limit).max(least))?;
        let reserved = more.max(needed.saturating_sub(in_rings));
        let can_shrink = rings().any(|ring| 1 < ring.stages);
        can_shrink.then_some(ResourcePlan { reserved, ..self })
    }
}
