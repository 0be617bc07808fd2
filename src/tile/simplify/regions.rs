//! Loops that never run, and choices that are known.

use super::fold::{self, TypedBits};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::edit::{rename_uses, signed};

/// How many operands deep a condition is looked into.
const DEPTH: u32 = 6;

/// Replaces loops that are known not to run by what they carry, and an `if` of a known condition by what is chosen; gives their number. It
/// saves little, but ptxas forgets the zeros that sums begin with if it finds by itself that no product by warpgroups adds to them: 12 of
/// 2,007 generated kernels left on an H200 what was in their registers, 5 of 1,000 whose `while` loops never run, and one of 870 whose
/// products stood in such an `if`.
pub(super) fn drop_idle(func: &mut TileFunction) -> usize {
    let mut count = settle_choices(func) + choose_scalars(func) + drop_idle_counted(func);
    // A loop in what asks for another one shows when that one is gone.
    loop {
        match drop_idle_conditional(func) {
            0 => return count,
            dropped => count += dropped,
        }
    }
}

/// Replaces each `if` of a known condition by the region that is chosen.
fn settle_choices(func: &mut TileFunction) -> usize {
    let choices: Vec<(Block, Inst)> = func.insts_with(TileOp::If).collect();
    let mut count = 0;
    // Regions come behind the blocks they stand in: inner choices first, whose place then stays as it was found.
    for (block, inst) in choices.into_iter().rev() {
        let data = &func.dfg.insts[inst];
        let Some(bits) = data.args.first().and_then(|&cond| known(func, cond)) else {
            continue;
        };
        let Some(chosen) = data.blocks.get(usize::from(bits == 0)) else {
            continue;
        };
        let (results, chosen) = (data.results.to_vec(), chosen.block);
        let list = func.order.insts(chosen).to_vec();
        let mut outer = func.order.insts(block).to_vec();
        let Some(at) = outer.iter().position(|&other| other == inst) else {
            continue;
        };
        let Some((&end, body)) = list.split_last() else {
            continue;
        };
        let given = func.dfg.insts[end].args.to_vec();
        for (result, value) in results.into_iter().zip(given) {
            rename_uses(func, result, value);
        }
        outer.splice(at..=at, body.iter().copied());
        func.order.replace(chosen, vec![end]);
        func.order.replace(block, outer);
        count += 1;
    }
    count
}

/// Replaces each `if` that does nothing but choose scalars by choices, of which more is known and which need no branch.
fn choose_scalars(func: &mut TileFunction) -> usize {
    let choices: Vec<(Block, Inst)> = func.insts_with(TileOp::If).collect();
    let mut count = 0;
    for (block, inst) in choices {
        let data = func.dfg.insts[inst].clone();
        let ends = data.blocks.iter().map(|call| func.order.insts(call.block));
        let ends: Vec<Inst> = ends
            .filter_map(|list| <[Inst; 1]>::try_from(list).ok())
            .flatten()
            .collect();
        let &[first, second] = &ends[..] else {
            continue;
        };
        let are_scalars = data.results.iter().all(|&v| func.dfg.ty(v).is_scalar());
        if !are_scalars {
            continue;
        }
        let mut made = Vec::new();
        for (i, &result) in data.results.iter().enumerate() {
            let [a, b] = [first, second].map(|end| func.dfg.insts[end].args[i]);
            let mut choice = InstData::new(TileOp::Select, &[data.args[0], a, b]);
            choice.loc = data.loc;
            let ty = func.dfg.ty(result);
            let choice = func.dfg.make_inst(choice, &[ty]);
            rename_uses(func, result, func.dfg.insts[choice].results[0]);
            made.push(choice);
        }
        let mut list = func.order.insts(block).to_vec();
        let Some(at) = list.iter().position(|&other| other == inst) else {
            continue;
        };
        list.splice(at..=at, made);
        func.order.replace(block, list);
        count += 1;
    }
    count
}

/// The bits of a number that is written down.
fn known(func: &TileFunction, value: Value) -> Option<u64> {
    let inst = func.dfg.def_inst(value)?;
    func.dfg.insts[inst].value().copied()
}

/// Replaces `while` loops whose condition does not hold the first time by what computes it.
fn drop_idle_conditional(func: &mut TileFunction) -> usize {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::While).collect();
    let mut count = 0;
    for (block, inst) in loops {
        let data = &func.dfg.insts[inst];
        let (inits, results) = (data.args.to_vec(), data.results.to_vec());
        let Some(head) = data.blocks.first().map(|call| call.block) else {
            continue;
        };
        let mut outer = func.order.insts(block).to_vec();
        // It stands elsewhere if the loop around it was dropped.
        let Some(at) = outer.iter().position(|&other| other == inst) else {
            continue;
        };
        let list = func.order.insts(head).to_vec();
        let Some((&end, computes)) = list.split_last() else {
            continue;
        };
        let ends = func.dfg.insts[end].args.to_vec();
        let Some((&cond, values)) = ends.split_first() else {
            continue;
        };
        if first_bits(func, (head, &inits), cond, DEPTH).is_none_or(|(bits, _)| bits != 0) {
            continue;
        }
        let params = func.dfg.blocks[head].params.to_vec();
        let first = |value| {
            let at = params.iter().position(|&param| param == value);
            at.map_or(value, |at| inits[at])
        };
        for (result, &value) in results.into_iter().zip(values) {
            rename_uses(func, result, first(value));
        }
        for (&param, &init) in params.iter().zip(&inits) {
            rename_uses(func, param, init);
        }
        outer.splice(at..=at, computes.iter().copied());
        func.order.replace(head, vec![end]);
        func.order.replace(block, outer);
        count += 1;
    }
    count
}

/// A scalar's bits when a loop's first region, whose parameters begin with `inits`, runs the first time.
fn first_bits(
    func: &TileFunction,
    (head, inits): (Block, &[Value]),
    value: Value,
    depth: u32,
) -> Option<TypedBits> {
    let ty = func.dfg.ty(value);
    let depth = depth.checked_sub(1).filter(|_| ty.is_scalar())?;
    let bits_of = |value| first_bits(func, (head, inits), value, depth);
    let inst = match func.dfg.values[value].def {
        ValueDef::Param(block, i) if block == head => return bits_of(*inits.get(i as usize)?),
        ValueDef::Param(..) => return None,
        ValueDef::Result(inst, _) => inst,
    };
    let data = &func.dfg.insts[inst];
    if let Some(&bits) = data.value() {
        return Some((bits, ty.elem));
    }
    if !data.is_pure() || data.results.len() != 1 {
        return None;
    }
    let known: Vec<Option<TypedBits>> = data.args.iter().map(|&arg| bits_of(arg)).collect();
    if data.op == TileOp::And && known.iter().flatten().any(|&(bits, _)| bits == 0) {
        return Some((0, ty.elem));
    }
    let args: Option<Vec<TypedBits>> = known.into_iter().collect();
    Some((fold::fold(data, &args?, ty.elem)?, ty.elem))
}

/// Replaces `for` loops that end where they begin.
fn drop_idle_counted(func: &mut TileFunction) -> usize {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let mut count = 0;
    for (block, inst) in loops {
        let data = &func.dfg.insts[inst];
        let (lo, hi) = (data.args[0], data.args[1]);
        let is_idle = lo == hi
            || signed(func, lo)
                .zip(signed(func, hi))
                .is_some_and(|(lo, hi)| hi <= lo);
        if !is_idle {
            continue;
        }
        let (carried, results) = (data.args[3..].to_vec(), data.results.to_vec());
        for (result, first) in results.into_iter().zip(carried) {
            rename_uses(func, result, first);
        }
        let mut list = func.order.insts(block).to_vec();
        list.retain(|&other| other != inst);
        func.order.replace(block, list);
        count += 1;
    }
    count
}
