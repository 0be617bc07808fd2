//! Instructions that are made first and put into a block later.

use crate::ir::attrs::{Attr, IntPred, make};
use crate::ir::dfg::{InstData, SourceLoc};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Makes instructions for a function.
#[derive(Debug)]
pub(super) struct Maker<'a> {
    pub(super) func: &'a mut TileFunction,
    /// What was made and has no place yet, in order.
    pub(super) made: Vec<Inst>,
    /// The line of the source that new instructions are of.
    pub(super) loc: SourceLoc,
}

impl<'a> Maker<'a> {
    pub(super) fn new(func: &'a mut TileFunction) -> Maker<'a> {
        Maker {
            func,
            made: Vec::new(),
            loc: SourceLoc::default(),
        }
    }

    pub(super) fn build(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        types: &[TileType],
    ) -> Inst {
        let mut data: InstData<Tile> = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, types);
        self.made.push(inst);
        inst
    }

    /// The only result of a new instruction.
    pub(super) fn value(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        ty: TileType,
    ) -> Value {
        let inst = self.build(op, args, attrs, &[ty]);
        self.func.dfg.insts[inst].results[0]
    }

    pub(super) fn number(&mut self, number: i64, ty: TileType) -> Value {
        let bits = number as u64 & ty.elem.mask();
        self.value(TileOp::Const, &[], &[make::value(bits)], ty)
    }

    pub(super) fn compare(&mut self, pred: IntPred, a: Value, b: Value) -> Value {
        let attrs = [make::ipred(pred)];
        self.value(TileOp::Icmp, &[a, b], &attrs, TileType::scalar(Elem::I1))
    }
}
