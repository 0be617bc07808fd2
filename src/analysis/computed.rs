//! Which blocks are computed from what is loaded.

use cranelift_entity::EntitySet;

use crate::ir::effects::OpClass;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Whether a block is computed, element by element, from blocks that are loaded in the same iteration of a loop, whatever shapes they had
/// on the way.
pub fn is_computed(func: &TileFunction, value: Value) -> bool {
    let Some(last) = func.dfg.def_inst(value) else {
        return false;
    };
    let data = &func.dfg.insts[last];
    if data.op == TileOp::Permute {
        return is_computed(func, data.args[0]);
    }
    if data.class() != OpClass::Elementwise {
        return false;
    }
    let block = func.order.block_of(last);
    let mut seen: EntitySet<Value> = EntitySet::new();
    let mut left = vec![value];
    let mut is_loaded = false;
    while let Some(value) = left.pop() {
        if !seen.insert(value) {
            continue;
        }
        let Some(inst) = func.dfg.def_inst(value) else {
            return false;
        };
        let data = &func.dfg.insts[inst];
        let is_here = func.order.block_of(inst) == block;
        match data.op {
            TileOp::Load | TileOp::TensorLoad | TileOp::SharedLoad => is_loaded |= is_here,
            TileOp::Splat | TileOp::Const | TileOp::Arange => {}
            TileOp::Permute
            | TileOp::Reshape
            | TileOp::Broadcast
            | TileOp::ExpandDims
            | TileOp::Join
            | TileOp::ConvertLayout => left.extend_from_slice(&data.args),
            _ if data.class() == OpClass::Elementwise => left.extend_from_slice(&data.args),
            // What is the same in all iterations.
            _ if !is_here => {}
            _ => return false,
        }
    }
    is_loaded
}
