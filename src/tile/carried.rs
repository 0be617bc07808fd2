//! What loops carry.

use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// What a loop carries from one iteration to the next at a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    /// The `for` loop.
    pub(super) inst: Inst,
    pub(super) position: usize,
}

impl Carried {
    /// What a parameter of a loop's body is of; none of other values, and of the counter.
    pub(super) fn of(func: &TileFunction, param: Value) -> Option<Carried> {
        let ValueDef::Param(block, index) = func.dfg.values[param].def else {
            return None;
        };
        let position = usize::from(index).checked_sub(1)?;
        let mut loops = func.insts_with(TileOp::For);
        let (_, inst) = loops.find(|&(_, inst)| func.dfg.insts[inst].blocks[0].block == block)?;
        Some(Carried { inst, position })
    }

    /// What the loop repeats.
    pub(super) fn body(self, func: &TileFunction) -> Block {
        func.dfg.insts[self.inst].blocks[0].block
    }

    /// What an iteration gets.
    pub(super) fn param(self, func: &TileFunction) -> Value {
        func.dfg.blocks[self.body(func)].params[1 + self.position]
    }

    /// What it hands on.
    pub(super) fn yielded(self, func: &TileFunction) -> Option<Value> {
        let last = func.order.last(self.body(func))?;
        func.dfg.insts[last].args.get(self.position).copied()
    }

    /// What the first one gets.
    pub(super) fn first(self, func: &TileFunction) -> Value {
        func.dfg.insts[self.inst].args[3 + self.position]
    }

    /// What the last one hands on.
    pub(super) fn result(self, func: &TileFunction) -> Value {
        func.dfg.insts[self.inst].results[self.position]
    }
}
