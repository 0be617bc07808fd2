//! Two programs in a CTA: two groups of warps that multiply in turns, fed by one producer.
//!
//! ```text
//! for i in cta .. n by ctas {          for i in cta + group * ctas .. n by groups * ctas {
//!     coordinates                          coordinates
//!     acc = products of channels           wait for the group's turn
//!     the rest                   =>        acc = products of channels, started
//! }                                        the next group's turn
//!                                          wait for acc, the rest
//!                                      }
//! ```
//!
//! A group alone keeps the matrix units busy only while it multiplies. So while one multiplies the other one brings the results of its
//! program to memory, and the unit never stands still. The producer fills the rings for one program after the other, as before;
//! whose turn it is has all of their entries. What state the channels are in goes from group to group through shared memory, with
//! the turn. (Known as ping-pong: [CUTLASS](https://docs.nvidia.com/cutlass/), efficient GEMM, warp-specialised persistent kernels.)
//!
//! Turns are phases of barriers, one for each group. The first group waits for the phase before the first, which passes on a fresh
//! barrier. A CTA's programs alternate, so a group never waits for a turn that nobody gives it: the other one has as many
//! programs as itself, or the first one has one more.

use super::channels::holds_loops;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{IntPred, make};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::{SlotData, TileFunction};
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::layout::warpgroup;
use crate::settings::{Policy, Target};
use crate::tile::edit::{read_by, rename_uses};
use crate::tile::resources::ResourcePlan;
use crate::tile::start_dots;

/// Groups that take turns.
pub(super) const GROUPS: u32 = 2;

/// Whether groups of warps can take turns at the programs of a CTA, and have something to do meanwhile: the loops of a program only
/// multiply, and something comes behind them. A loop that does more than that, as those of attention do, leaves the unit idle in
/// its own turn.
pub(super) fn can_take(func: &TileFunction, target: Target, resources: &ResourcePlan) -> bool {
    if !func.persistent
        || func.num_warps() != warpgroup::group_warps()
        || resources.persistent == Policy::Never
    {
        return false;
    }
    let Some((_, programs)) = loop_over_programs(func) else {
        return false;
    };
    let order = ProgramOrder::compute(func);
    let carries_nothing = func.dfg.insts[programs].args.len() == 3;
    let mut multiplies = false;
    let all_fit = func.all_insts().all(|(block, inst)| {
        let data = &func.dfg.insts[inst];
        let ends = matches!(data.op, TileOp::While | TileOp::Barrier);
        if ends || matches!(data.class(), OpClass::Foreign | OpClass::Report) {
            return false;
        }
        // What is read once is read by whoever comes first.
        if data.op == TileOp::TensorLoad && order.owner(block).is_none() {
            return false;
        }
        let is_dot = data.op == TileOp::Dot;
        let inner = order.owner(block).filter(|&owner| owner != programs);
        if is_dot && (inner.is_none() || !start_dots::is_for_warpgroup(func, inst, target)) {
            return false;
        }
        multiplies |= is_dot;
        let is_alone = |value: &Value| func.dfg.ty(*value).is_scalar();
        let moves = matches!(
            data.class(),
            OpClass::Shape | OpClass::End | OpClass::Region
        );
        let feeds = is_dot || moves || data.op == TileOp::TensorLoad;
        inner.is_none() || feeds || data.results.iter().all(is_alone) && !data.writes()
    });
    carries_nothing && multiplies && all_fit
}

/// The loop over the programs of a CTA, and where it stands: it goes from the CTA's number by the number of CTAs, so that no iteration
/// asks for what another one did.
fn loop_over_programs(func: &TileFunction) -> Option<(usize, Inst)> {
    let list = func.order.insts(func.entry);
    let is_loop = |inst: &Inst| func.dfg.insts[*inst].op == TileOp::For;
    let at = list.iter().position(is_loop)?;
    let args = &func.dfg.insts[list[at]].args;
    let is = |value, op| {
        let inst = func.dfg.def_inst(value);
        inst.is_some_and(|inst| func.dfg.insts[inst].op == op)
    };
    let strides = is(args[0], TileOp::CtaId) && is(args[2], TileOp::NumCtas);
    Some((at, list[at])).filter(|&(_, inst)| strides && holds_loops(func, inst))
}

/// Lets the groups take turns. The loop over programs carries the states of channels and nothing else.
pub(super) fn take(func: &mut TileFunction) -> Option<()> {
    let (at, programs) = loop_over_programs(func)?;
    let mut data = func.dfg.insts[programs].clone();
    let body = data.blocks.first()?.block;
    let last = func.order.last(body)?;
    let states = func.dfg.insts[last].args.to_vec();
    let params = func.dfg.blocks[body].params[1..].to_vec();
    let turns = func.add_barriers(GROUPS);
    let kept: Vec<_> = states
        .iter()
        .map(|_| {
            func.slots.push(SlotData {
                bytes: Elem::I32.bytes(),
                align: Elem::I32.bytes(),
                offset: None,
                by_group: false,
            })
        })
        .collect();
    let i32 = TileType::scalar(Elem::I32);
    let warps = func.num_warps();
    let mut maker = Maker::new(func);

    // Before anybody goes his own way.
    let attrs = [make::slot(turns), make::count(warps)];
    maker.build(TileOp::MbarInit, &[], &attrs, &[]);
    let mut list = std::mem::take(&mut maker.made);
    let zero = maker.number(0, i32);
    for &slot in &kept {
        maker.build(TileOp::SlotPut, &[zero], &[make::slot(slot)], &[]);
    }
    let first_states = std::mem::take(&mut maker.made);

    let one = maker.number(1, i32);
    let group = maker.value(TileOp::GroupId, &[], &[], i32);
    let groups = maker.value(TileOp::NumGroups, &[], &[], i32);
    let next = maker.value(TileOp::Iadd, &[group, one], &[], i32);
    let is_last = maker.compare(IntPred::Eq, next, groups);
    let next = maker.value(TileOp::Select, &[is_last, zero, next], &[], i32);
    let before = maker.value(TileOp::Xor, &[group, one], &[], i32);
    let step = data.args[2];
    let mut of_programs = |op, args: [Value; 2]| maker.value(op, &args, &[], i32);
    let ahead = of_programs(TileOp::Imul, [group, step]);
    data.args[0] = of_programs(TileOp::Iadd, [data.args[0], ahead]);
    data.args[2] = of_programs(TileOp::Imul, [groups, step]);
    data.args.truncate(3);
    data.args.push(before);
    let in_front = std::mem::take(&mut maker.made);

    let index = maker.func.dfg.blocks[body].params[0];
    maker.func.dfg.blocks[body].params.truncate(1);
    let phase = maker.func.dfg.append_param(body, i32);
    let own = [make::slot(turns)];
    maker.build(TileOp::MbarWait, &[group, phase], &own, &[]);
    let found: Vec<Value> = kept
        .iter()
        .map(|&slot| maker.value(TileOp::SlotGet, &[], &[make::slot(slot)], i32))
        .collect();
    let enter = std::mem::take(&mut maker.made);
    for (&slot, &state) in kept.iter().zip(&states) {
        maker.build(TileOp::SlotPut, &[state], &[make::slot(slot)], &[]);
    }
    // The last program of a CTA gives nobody a turn.
    let further = maker.value(TileOp::Iadd, &[index, step], &[], i32);
    let exists = maker.compare(IntPred::Slt, further, data.args[1]);
    maker.build(TileOp::MbarArrive, &[next, exists], &own, &[]);
    let pass = std::mem::take(&mut maker.made);
    let other = maker.value(TileOp::Xor, &[phase, one], &[], i32);
    let end = std::mem::take(&mut maker.made);

    // From what reads the states first to what changes them last: coordinates and the like need no turn.
    let old = func.order.insts(body).to_vec();
    let makes_state = |inst: &Inst| {
        let mut results = func.dfg.insts[*inst].results.iter();
        results.any(|result| states.contains(result))
    };
    let reads_state = |inst: &Inst| {
        let mut read = Vec::new();
        read_by(func, *inst, &mut read);
        read.iter().any(|value| params.contains(value))
    };
    let first = old.iter().position(reads_state)?;
    let place = old.iter().rposition(makes_state)? + 1;
    let (before, rest) = (&old[..first], &old[place..old.len() - 1]);
    let inside = [
        before,
        &enter,
        &old[first..place],
        &pass,
        rest,
        &end,
        &[last],
    ]
    .concat();
    func.order.replace(body, inside);
    func.dfg.insts[last].args = [other].into_iter().collect();

    data.results.clear();
    let made = func.dfg.make_inst(data, &[i32]);
    let entry = func.order.insts(func.entry).to_vec();
    // Barriers stand together.
    let is_init = |inst: &Inst| func.dfg.insts[*inst].op == TileOp::MbarInit;
    let inits = entry[..at].iter().rposition(is_init)? + 1;
    list.extend_from_slice(&entry[..inits]);
    list.extend(first_states);
    list.extend_from_slice(&entry[inits..at]);
    list.extend(in_front);
    list.push(made);
    list.extend_from_slice(&entry[at + 1..]);
    func.order.replace(func.entry, list);
    for (param, number) in params.into_iter().zip(found) {
        rename_uses(func, param, number);
    }
    Some(())
}
