//! Barriers at which groups of four warps meet, by number: a CTA has 16. Number 0 is that of all threads of the program, the next ones
//! are those of groups for themselves ([`OF_GROUPS`]), and the last two are those of turns ([`OF_TURNS`]).

use crate::ir::attrs::{Attr, SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::layout::warpgroup;

/// The number of the first group's own barrier.
pub(super) const OF_GROUPS: u64 = 1;
/// The number of the barrier of the first group's turns ([`super::start_in_turns`]).
pub(super) const OF_TURNS: u64 = 14;

/// Threads of a group.
pub(super) fn group_threads() -> u32 {
    32 * warpgroup::group_warps()
}

/// An instruction that comes to a barrier for so many threads.
pub(super) fn at_barrier(
    func: &mut ThreadFunction,
    op: ThreadOp,
    args: &[Value],
    threads: u32,
) -> Inst {
    let mut data: InstData<Thread> = InstData::new(op, args);
    data.attrs.push(make::threads(threads));
    func.dfg.make_inst(data, &[])
}

/// What is computed at the head of a function.
#[derive(Default)]
pub(super) struct Head(Vec<Inst>);

impl Head {
    pub(super) fn value(
        &mut self,
        func: &mut ThreadFunction,
        op: ThreadOp,
        args: &[Value],
        elem: Elem,
        attr: Option<Attr>,
    ) -> Value {
        let mut data: InstData<Thread> = InstData::new(op, args);
        data.attrs.extend(attr);
        let made = func.dfg.make_inst(data, &[ThreadType::scalar(elem)]);
        self.0.push(made);
        func.dfg.insts[made].results[0]
    }

    pub(super) fn number(&mut self, func: &mut ThreadFunction, n: u64) -> Value {
        self.value(func, ThreadOp::Const, &[], Elem::I32, Some(make::value(n)))
    }

    /// The number of the thread's group, counted from `first`.
    pub(super) fn group(&mut self, func: &mut ThreadFunction, first: u64) -> Value {
        let tid = Some(make::reg(SpecialReg::Tid));
        let tid = self.value(func, ThreadOp::Special, &[], Elem::I32, tid);
        let bits = self.number(func, u64::from(group_threads().trailing_zeros()));
        let first = self.number(func, first);
        let group = self.value(func, ThreadOp::Ushr, &[tid, bits], Elem::I32, None);
        self.value(func, ThreadOp::Iadd, &[group, first], Elem::I32, None)
    }

    /// Puts it there.
    pub(super) fn place(self, func: &mut ThreadFunction) {
        let Head(mut list) = self;
        list.extend_from_slice(func.order.insts(func.entry));
        func.order.replace(func.entry, list);
    }
}
