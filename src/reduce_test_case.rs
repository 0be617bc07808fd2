//! Makes a failing function smaller as long as it fails in the same way, for `tilelift reduce` and the fuzzer.
//!
//! Greedy: each instruction in turn, from the last, is left out, its results replaced by an operand of the same type,
//! by what a loop starts with, or by zero; choices are replaced by one of their regions. What then is dead goes too.
//! Regions of reductions stay as they are, associative and commutative. Rounds repeat until nothing changes or the time
//! is up.

use std::time::{Duration, Instant};

use crate::ir::attrs::make;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Arity, Opcode, TileOp};
use crate::ir::types::Elem;
use crate::verify::verify;

/// The smallest function found that `fails` as the given one does, within a time; parameters stay. `on_change` gets the
/// number of instructions that are left whenever there are fewer.
#[cfg_attr(
    not(feature = "tool"),
    allow(
        dead_code,
        reason = "the command reduces; random tests have a way of their own"
    )
)]
pub(crate) fn reduce_function(
    func: &TileFunction,
    limit: Duration,
    on_change: &mut dyn FnMut(usize),
    fails: &dyn Fn(&TileFunction) -> bool,
) -> TileFunction {
    let fails = |func: &TileFunction| verify(func).is_ok() && fails(func);
    let mut best = func.clone();
    let mut round = Round {
        start: Instant::now(),
        limit,
        on_change,
    };
    loop {
        let mut changed = false;
        while best.num_warps() > 1 {
            let mut candidate = best.clone();
            candidate.set_num_warps(best.num_warps() / 2);
            if !fails(&candidate) {
                break;
            }
            (best, changed) = (candidate, true);
        }
        if let Some(func) = round.run(&best, &fails) {
            (best, changed) = (func, true);
        }
        if !changed {
            return best;
        }
    }
}

/// One attempt at each instruction, while there is time.
pub(crate) struct Round<'a> {
    pub(crate) start: Instant,
    pub(crate) limit: Duration,
    pub(crate) on_change: &'a mut dyn FnMut(usize),
}

impl Round<'_> {
    /// A smaller function that fails; none if none was found.
    pub(crate) fn run(
        &mut self,
        func: &TileFunction,
        fails: &dyn Fn(&TileFunction) -> bool,
    ) -> Option<TileFunction> {
        let mut best: Option<TileFunction> = None;
        let mut insts = candidates(func);
        insts.reverse();
        for inst in insts {
            if self.limit < self.start.elapsed() {
                break;
            }
            let from = best.as_ref().unwrap_or(func);
            if from.order.block_of(inst).is_none() {
                continue;
            }
            let found = smaller(from, inst).into_iter().find(|func| fails(func));
            if let Some(found) = found {
                (self.on_change)(count(&found));
                best = Some(found);
            }
        }
        best
    }
}

/// Instructions of a function.
pub(crate) fn count(func: &TileFunction) -> usize {
    func.all_insts().count()
}

/// Instructions that may go, in order of blocks.
fn candidates(func: &TileFunction) -> Vec<Inst> {
    let all: Vec<Inst> = func.all_insts().map(|(_, inst)| inst).collect();
    let kept: Vec<Block> = all
        .iter()
        .filter(|&&inst| func.dfg.insts[inst].op == TileOp::Reduce)
        .flat_map(|&inst| func.regions(inst))
        .collect();
    all.into_iter()
        .filter(|&inst| {
            let block = func.order.block_of(inst);
            block.is_none_or(|block| !kept.contains(&block))
        })
        .collect()
}

/// The function without an instruction, in several ways.
fn smaller(func: &TileFunction, inst: Inst) -> Vec<TileFunction> {
    let data = &func.dfg.insts[inst];
    let mut out = Vec::new();
    if data.op.info().ends_block() || data.op == TileOp::Const {
        return out;
    }
    let operands = data.op.info().operands;
    let least = operands.iter().filter(|o| o.arity == Arity::One).count();
    if least < data.args.len() && data.args.len() <= operands.len() {
        // Without its mask.
        let mut copy = func.clone();
        copy.dfg.insts[inst].args.truncate(least);
        clean(&mut copy);
        out.push(copy);
    }
    if data.results.is_empty() {
        out.insert(0, without(func, inst, &[]));
        return out;
    }
    let fallback = |func: &mut TileFunction, value: Value, choice: Option<Value>| {
        choice.or_else(|| zero_before(func, inst, value))
    };
    let choices: Vec<Vec<Option<Value>>> = match data.op {
        TileOp::For => {
            // Its first round alone.
            let block = data.blocks[0].block;
            let params = func.dfg.blocks[block].params.iter().copied();
            let first = data.args[..1].iter().chain(&data.args[3..]).copied();
            out.push(inline(
                func,
                inst,
                block,
                &params.zip(first).collect::<Vec<_>>(),
            ));
            vec![data.args[3..].iter().copied().map(Some).collect()]
        }
        TileOp::If => {
            for index in 0..2 {
                out.push(inline(func, inst, data.blocks[index].block, &[]));
            }
            Vec::new()
        }
        TileOp::While => vec![vec![None; data.results.len()]],
        _ => {
            let ty = func.dfg.ty(data.results[0]);
            let mut ways: Vec<Vec<Option<Value>>> = data
                .args
                .iter()
                .filter(|&&arg| data.results.len() == 1 && func.dfg.ty(arg) == ty)
                .map(|&arg| vec![Some(arg)])
                .collect();
            ways.insert(0, vec![None; data.results.len()]);
            ways
        }
    };
    for choice in choices {
        let mut copy = func.clone();
        let mut with = Vec::new();
        for (&result, choice) in data.results.iter().zip(choice) {
            match fallback(&mut copy, result, choice) {
                Some(value) => with.push((result, value)),
                None => break,
            }
        }
        if with.len() == data.results.len() {
            out.push(without(&copy, inst, &with));
        }
    }
    out
}

/// A zero of the value's type before an instruction; none for pointers.
fn zero_before(func: &mut TileFunction, inst: Inst, value: Value) -> Option<Value> {
    let ty = func.dfg.ty(value);
    if !matches!(ty.elem, Elem::Num(_)) {
        return None;
    }
    let mut data = InstData::new(TileOp::Const, &[]);
    data.attrs.push(make::value(0));
    let constant = func.dfg.make_inst(data, &[ty]);
    let block = func.order.block_of(inst)?;
    let index = func.order.insts(block).iter().position(|&i| i == inst)?;
    func.order.insert(block, index, constant);
    func.dfg.single_result(constant)
}

fn without(func: &TileFunction, inst: Inst, replacements: &[(Value, Value)]) -> TileFunction {
    let mut func = func.clone();
    if let Some(block) = func.order.block_of(inst) {
        func.order.retain(block, |i| i != inst);
    }
    replace(&mut func, replacements);
    clean(&mut func);
    func
}

/// A choice or a loop replaced by one of its regions, with these values for the region's parameters.
fn inline(
    func: &TileFunction,
    inst: Inst,
    region: Block,
    params: &[(Value, Value)],
) -> TileFunction {
    let mut func = func.clone();
    let Some(outer) = func.order.block_of(inst) else {
        return func;
    };
    let mut body = func.order.insts(region).to_vec();
    let end = body.pop();
    let yields = end.map_or_else(Default::default, |end| func.dfg.insts[end].args.clone());
    let with: Vec<(Value, Value)> = func.dfg.insts[inst]
        .results
        .iter()
        .copied()
        .zip(yields)
        .collect();
    func.order.replace(region, Vec::new());
    let insts: Vec<Inst> = func
        .order
        .insts(outer)
        .iter()
        .flat_map(|&i| if i == inst { body.clone() } else { vec![i] })
        .collect();
    func.order.replace(outer, insts);
    replace(&mut func, &with);
    replace(&mut func, params);
    clean(&mut func);
    func
}

fn replace(func: &mut TileFunction, with: &[(Value, Value)]) {
    for block in func.all_blocks() {
        for inst in func.order.insts(block).to_vec() {
            func.dfg.map_uses(inst, |value| {
                with.iter()
                    .find(|(from, _)| *from == value)
                    .map_or(value, |&(_, to)| to)
            });
        }
    }
}

/// Takes out pure instructions without use; not by the pass, which may be at fault.
fn clean(func: &mut TileFunction) {
    loop {
        let mut used = std::collections::BTreeSet::new();
        for (_, inst) in func.all_insts() {
            used.extend(func.dfg.uses(inst));
        }
        let mut changed = false;
        for block in func.all_blocks() {
            let dfg = &func.dfg;
            func.order.retain(block, |inst| {
                let data = &dfg.insts[inst];
                let pure = data.op.info().is_pure() || data.op.info().only_reads();
                let keep = !pure || data.results.iter().any(|v| used.contains(v));
                changed |= !keep;
                keep
            });
        }
        if !changed {
            return;
        }
    }
}
