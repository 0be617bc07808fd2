//! Stores that overwrite what other threads may still have to read.
//!
//! A program may load an element, change it, and store it back without a barrier. If the thread that stores an element
//! is the only one that loaded it, its own order suffices. Otherwise another thread's load may come late: where several
//! threads hold copies, or where the element changes hands between load and store (a shuffle carries data, but does not
//! order memory). Such a store needs a barrier before it. That the stored value depends on the load is not asked, because
//! simplification may have found that it does not.
//!
//! Found are stores to a pointer made from a kernel parameter that a load in another layout, or one with copies,
//! goes through: one fact per value, the set of parameters it is made from, is carried along operands and around loops
//! until nothing changes. Pointers of unknown origin may be any parameter's. One buffer passed for two parameters is not
//! seen; then only copies that nobody stores may differ.

use cranelift_entity::{EntitySet, SecondaryMap};

use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::linear::layout::HwDim;
use crate::linear::pool::LayoutId;

/// Parameters by number, those from 63 on together.
type Params = u64;

/// The stores that need a barrier before them.
pub(super) fn overwriting_stores(func: &TileFunction) -> EntitySet<Inst> {
    let mut made_from: SecondaryMap<Value, Params> = SecondaryMap::new();
    for (i, &param) in func.params().iter().enumerate() {
        if func.dfg.ty(param).elem.is_ptr() {
            made_from[param] = 1 << i.min(63);
        }
    }
    let insts: Vec<Inst> = func
        .all_blocks()
        .into_iter()
        .flat_map(|block| func.order.insts(block).iter().copied())
        .collect();
    while insts.iter().fold(false, |changed, &inst| {
        transfer(func, inst, &mut made_from) | changed
    }) {}

    // What the loads of each layout go through, in order of first use.
    let mut loads: Vec<(Option<LayoutId>, Params)> = Vec::new();
    for &inst in &insts {
        let data = &func.dfg.insts[inst];
        if data.op == TileOp::Load {
            let layout = func.dfg.ty(data.results[0]).layout.expand();
            let through = made_from[data.args[0]];
            match loads.iter_mut().find(|(known, _)| *known == layout) {
                Some((_, all)) => *all |= through,
                None => loads.push((layout, through)),
            }
        }
    }
    let mut found = EntitySet::new();
    for inst in insts {
        let data = &func.dfg.insts[inst];
        if data.op != TileOp::Store {
            continue;
        }
        let layout = func.dfg.ty(data.args[1]).layout.expand();
        let target = made_from[data.args[0]];
        let others_read = |&(load, through): &(Option<LayoutId>, Params)| {
            through & target != 0 && (load != layout || has_copies(func, load))
        };
        if loads.iter().any(others_read) {
            found.insert(inst);
        }
    }
    found
}

/// Carries the fact through an instruction; says whether anything is new.
fn transfer(func: &TileFunction, inst: Inst, made_from: &mut SecondaryMap<Value, Params>) -> bool {
    let data = &func.dfg.insts[inst];
    let join = |values: &[Value], made_from: &SecondaryMap<Value, Params>| {
        values.iter().fold(0, |all, &v| all | made_from[v])
    };
    let mut out = match data.op {
        TileOp::Load => 0,
        _ => join(&data.args, made_from),
    };
    if data.op == TileOp::PtrCast && out == 0 {
        out = Params::MAX;
    }
    let mut targets = data.results.to_vec();
    for region in func.regions(inst) {
        if let Some(end) = func.order.last(region) {
            out |= join(&func.dfg.insts[end].args, made_from);
        }
        targets.extend(&func.dfg.blocks[region].params);
    }
    let mut changed = false;
    for target in targets {
        let new = made_from[target] | out;
        changed |= new != made_from[target];
        made_from[target] = new;
    }
    changed
}

/// Whether more than one thread holds each element; of a scalar, all do.
fn has_copies(func: &TileFunction, layout: Option<LayoutId>) -> bool {
    layout
        .and_then(|id| func.layouts.get(id))
        .is_none_or(|layout| layout.free_mask(HwDim::Lane) | layout.free_mask(HwDim::Warp) != 0)
}
