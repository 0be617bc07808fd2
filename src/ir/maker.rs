//! Instructions that are made first and put into a block later.

use super::attrs::{Attr, IntPred, make};
use super::dfg::{InstData, SourceLoc};
use super::entities::{Block, Inst, Value};
use super::function::Function;
use super::level::Level;
use super::types::{Elem, ValueType};

/// Makes instructions for a function. Unlike [`Builder`](super::builder::Builder) it asks no type rule: a pass knows what it makes.
#[derive(Debug)]
pub(crate) struct Maker<'a, L: Level> {
    pub(crate) func: &'a mut Function<L>,
    /// What was made and has no place yet, in order.
    pub(crate) made: Vec<Inst>,
    /// The line of the source that new instructions are of.
    pub(crate) loc: SourceLoc,
}

impl<'a, L: Level> Maker<'a, L> {
    pub(crate) fn new(func: &'a mut Function<L>) -> Maker<'a, L> {
        Maker {
            func,
            made: Vec::new(),
            loc: SourceLoc::default(),
        }
    }

    /// Makes instructions of the same line of the source as this one.
    pub(crate) fn near(func: &'a mut Function<L>, inst: Inst) -> Maker<'a, L> {
        let loc = func.dfg.insts[inst].loc;
        Maker {
            loc,
            ..Maker::new(func)
        }
    }

    pub(crate) fn build(
        &mut self,
        op: L::Op,
        args: &[Value],
        attrs: &[Attr],
        types: &[L::Type],
    ) -> Inst {
        let mut data: InstData<L> = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        self.build_from(data, types)
    }

    /// An instruction that was put together, or is like another one.
    pub(crate) fn build_from(&mut self, mut data: InstData<L>, types: &[L::Type]) -> Inst {
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, types);
        self.made.push(inst);
        inst
    }

    /// The only result of a new instruction.
    pub(crate) fn value(
        &mut self,
        op: L::Op,
        args: &[Value],
        attrs: &[Attr],
        ty: L::Type,
    ) -> Value {
        let inst = self.build(op, args, attrs, &[ty]);
        self.func.dfg.insts[inst].results[0]
    }

    /// The same, of an instruction that was put together.
    pub(crate) fn value_from(&mut self, data: InstData<L>, ty: L::Type) -> Value {
        let inst = self.build_from(data, &[ty]);
        self.func.dfg.insts[inst].results[0]
    }

    /// The result of a new instruction, of the type of its first operand.
    pub(crate) fn op(&mut self, op: L::Op, args: &[Value]) -> Value {
        let ty = self.func.dfg.ty(args[0]);
        self.value(op, args, &[], ty)
    }

    /// The number in every element.
    pub(crate) fn number(&mut self, number: i64, ty: L::Type) -> Value {
        self.value(L::CONST, &[], &[make::value(number as u64)], ty)
    }

    /// Whether `pred` holds of two numbers.
    pub(crate) fn compare(&mut self, pred: IntPred, a: Value, b: Value) -> Value {
        let ty = self.func.dfg.ty(a).with_elem(Elem::I1);
        self.value(L::ICMP, &[a, b], &[make::ipred(pred)], ty)
    }

    /// Puts what was made in front of number `at` of a block.
    pub(crate) fn put(&mut self, block: Block, at: usize) {
        for (i, inst) in self.made.drain(..).enumerate() {
            self.func.order.insert(block, at + i, inst);
        }
    }
}
