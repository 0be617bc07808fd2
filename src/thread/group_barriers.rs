//! Barriers at which groups of four warps meet, by number: a CTA has 16. Number 0 is that of all threads of the program, the next ones
//! are those of groups for themselves ([`OF_GROUPS`]), and the last two are those of turns ([`OF_TURNS`]).

use crate::ir::attrs::{SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::maker::Maker;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::layout::warpgroup;
use crate::settings::LANES;

/// The number of the first group's own barrier.
pub(super) const OF_GROUPS: u64 = 1;
/// The number of the barrier of the first group's turns ([`super::start_in_turns`]).
pub(super) const OF_TURNS: u64 = 14;

/// Threads of a group.
pub(super) fn group_threads() -> u32 {
    LANES * warpgroup::group_warps()
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

/// The number of the thread's group, counted from `first`.
pub(super) fn group(maker: &mut Maker<'_, Thread>, first: u64) -> Value {
    let i32 = ThreadType::scalar(Elem::I32);
    let tid = maker.value(ThreadOp::Special, &[], &[make::reg(SpecialReg::Tid)], i32);
    let bits = maker.number(group_threads().trailing_zeros().into(), i32);
    let first = maker.number(first as i64, i32);
    let group = maker.op(ThreadOp::Ushr, &[tid, bits]);
    maker.op(ThreadOp::Iadd, &[group, first])
}
