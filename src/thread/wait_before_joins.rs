//! Sums that meet others are waited for on the ways on which products add to them, and not behind.
//!
//! ```text
//! brif c, loop(a), end(a)               brif c, loop(a), end(a)
//! loop(s):                              loop(s):
//!     t = wgmma s, ..                       t = wgmma s, ..
//!     brif d, loop(t), end(t)     =>        brif d, loop(t), out(t)
//!                                       out(o):
//!                                           w = wgmma_wait o
//!                                           jump end(w)
//! end(e):                               end(r):
//!     r = wgmma_wait e                      ..
//! ```
//!
//! ptxas serialises the products of a loop that may not run (C7515) if what they add to has its registers from several ways, as behind another
//! loop or a choice: between the first product and the wait nothing else may write to sums. What stands in front of a wait
//! is done while products go on, so all other waits stay where they are: those of sums that begin in one place, as
//! nearly all do, and those to which products come on every way.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::analysis::cfg::Cfg;
use crate::analysis::domtree::DomTree;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{BlockCall, InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;

/// Moves waits to the ways on which products are under way; gives their number.
pub fn wait_before_joins(func: &mut ThreadFunction) -> usize {
    if func.insts_with(ThreadOp::WgmmaWait).next().is_none() {
        return 0;
    }
    let cfg = Cfg::with_function(func);
    let domtree = DomTree::with_cfg(&cfg);
    let under_way = under_way(func, &cfg);
    let mut count = 0;
    for block in func.order.blocks.clone() {
        let from = cfg.predecessors(block);
        let is_mixed = from.iter().any(|&b| under_way[b]) && from.iter().any(|&b| !under_way[b]);
        let is_loop = from.iter().any(|&b| domtree.dominates(block, b));
        if !is_mixed || is_loop {
            continue;
        }
        let mut waits = waits_of_params(func, block);
        waits.retain(|&wait| {
            let sums = func.dfg.insts[wait].args[0];
            let others = from.iter().filter(|&&b| !under_way[b]);
            let mut others = others.flat_map(|&b| handed_on(func, b, block, sums));
            others.any(|value| meets_others(func, value))
        });
        if waits.is_empty() {
            continue;
        }
        count += waits.len();
        let mut ways: SmallVec<[Block; 2]> = from.iter().copied().collect();
        ways.dedup();
        for from in ways.into_iter().filter(|&from| under_way[from]) {
            wait_on_edges(func, from, block, &waits);
        }
        for wait in waits {
            let data = &func.dfg.insts[wait];
            let (param, sums) = (data.args[0], data.results[0]);
            func.order.retain(block, |inst| inst != wait);
            for (_, inst) in func.all_insts().collect::<Vec<_>>() {
                let change = |value| if value == sums { param } else { value };
                func.dfg.map_uses(inst, change);
            }
        }
    }
    count
}

/// Whether products may be under way at the end of each block.
fn under_way(func: &ThreadFunction, cfg: &Cfg) -> SecondaryMap<Block, bool> {
    let mut at_end: SecondaryMap<Block, bool> = SecondaryMap::new();
    loop {
        let mut changed = false;
        for block in cfg.post_order().iter().rev().copied() {
            let mut is_under_way = cfg.predecessors(block).iter().any(|&b| at_end[b]);
            for &inst in func.order.insts(block) {
                let data = &func.dfg.insts[inst];
                match data.op {
                    ThreadOp::Wgmma => is_under_way = true,
                    ThreadOp::WgmmaWait if data.pending() == Some(&0) => is_under_way = false,
                    _ => {}
                }
            }
            changed |= std::mem::replace(&mut at_end[block], is_under_way) != is_under_way;
        }
        if !changed {
            return at_end;
        }
    }
}

/// The waits of a block for sums that are its parameters; what else they hold is known before it or a parameter, too.
fn waits_of_params(func: &ThreadFunction, block: Block) -> Vec<Inst> {
    let is_param = |value: Value| matches!(func.dfg.values[value].def, ValueDef::Param(owner, _) if owner == block);
    let is_known = |value: Value| {
        let def = func.dfg.def_inst(value);
        def.is_none_or(|def| func.order.block_of(def) != Some(block))
    };
    let insts = func.order.insts(block).iter().copied();
    let waits = insts.filter(|&inst| {
        let data = &func.dfg.insts[inst];
        let is_wait = data.op == ThreadOp::WgmmaWait && !data.results.is_empty();
        is_wait && is_param(data.args[0]) && data.args[1..].iter().all(|&arg| is_known(arg))
    });
    waits.collect()
}

/// What a block hands to another one as this parameter, once for each edge.
pub(super) fn handed_on(func: &ThreadFunction, from: Block, to: Block, param: Value) -> Vec<Value> {
    let place = func.dfg.blocks[to].params.iter().position(|&p| p == param);
    let last = func.order.last(from);
    let calls = last.map_or(&[][..], |last| &func.dfg.insts[last].blocks);
    let calls = calls.iter().filter(|call| call.block == to);
    let args = calls.filter_map(|call| place.and_then(|place| call.args.get(place)));
    args.copied().collect()
}

/// Whether a value comes from several ways, before a fence.
fn meets_others(func: &ThreadFunction, value: Value) -> bool {
    match func.dfg.values[value].def {
        ValueDef::Param(..) => true,
        ValueDef::Result(def, _) => {
            let data = &func.dfg.insts[def];
            data.op == ThreadOp::WgmmaFence && meets_others(func, data.args[0])
        }
    }
}

/// Puts waits on the edges from one block to another.
fn wait_on_edges(func: &mut ThreadFunction, from: Block, to: Block, waits: &[Inst]) {
    let Some(last) = func.order.last(from) else {
        return;
    };
    let params = func.dfg.blocks[to].params.clone();
    for edge in 0..func.dfg.insts[last].blocks.len() {
        let call = func.dfg.insts[last].blocks[edge].clone();
        if call.block != to {
            continue;
        }
        let place_of = |value: Value| params.iter().position(|&param| param == value);
        let mut args = call.args.clone();
        let mut insts = Vec::new();
        let out = func.dfg.make_block();
        let mut onto = BlockCall::region(out);
        for &wait in waits {
            let mut data = func.dfg.insts[wait].clone();
            let Some(place) = place_of(data.args[0]) else {
                continue;
            };
            for arg in &mut data.args {
                *arg = place_of(*arg).map_or(*arg, |place| call.args[place]);
            }
            // The loop needs its sums, too: without a parameter these would be copied while products change them.
            let ty = func.dfg.ty(data.args[0]);
            onto.args.push(data.args[0]);
            data.args[0] = func.dfg.append_param(out, ty);
            let inst = func.dfg.make_inst(data, &[ty]);
            args[place] = func.dfg.insts[inst].results[0];
            insts.push(inst);
        }
        let mut jump = InstData::new(ThreadOp::Jump, &[]);
        let mut onward = BlockCall::region(to);
        onward.args = args;
        jump.blocks.push(onward);
        jump.loc = func.dfg.insts[last].loc;
        insts.push(func.dfg.make_inst(jump, &[]));
        func.order.replace(out, insts);
        func.dfg.insts[last].blocks[edge] = onto;
        let at = func.order.blocks.iter().position(|&b| b == from);
        let at = at.map_or(func.order.blocks.len(), |at| at + 1);
        func.order.blocks.insert(at, out);
    }
}
