//! What a producer executes of a kernel: the loads of boxes, what stands around them, and what these are computed from.

use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::program::ProgramOrder;
use crate::ir::dfg::{BlockCall, ValueDef};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::tile::promote::used::Used;

/// Instructions, and of loops and choices the carried values.
#[derive(Debug, Default)]
pub(super) struct Needed {
    insts: EntitySet<Inst>,
    /// Carried values and results of loops and choices, by their numbers.
    carried: FxHashSet<(Inst, usize)>,
}

impl Needed {
    /// Numbers of the carried values that are needed of so many.
    fn kept(&self, inst: Inst, count: usize) -> Vec<usize> {
        let is_kept = |&i: &usize| self.carried.contains(&(inst, i));
        (0..count).filter(is_kept).collect()
    }
}

/// What a producer of these loads needs; none if that is more than scalars, or has effects.
pub(super) fn needed(func: &TileFunction, loads: &[Inst]) -> Option<Needed> {
    let order = ProgramOrder::compute(func);
    let used = Used::compute(func);
    let mut out = Needed::default();
    let mut values: Vec<Value> = Vec::new();
    let mut insts: Vec<Inst> = loads.to_vec();
    // What the kernel before this one writes is not there before these.
    let waits = func.insts_with(TileOp::GdcWait);
    insts.extend(waits.map(|(_, inst)| inst));
    loop {
        if let Some(inst) = insts.pop() {
            if !out.insts.insert(inst) {
                continue;
            }
            let data = &func.dfg.insts[inst];
            match data.op {
                TileOp::For => values.extend(&data.args[..3]),
                TileOp::If => values.extend(&data.args[..1]),
                TileOp::TensorLoad | TileOp::GdcWait => values.extend(&data.args),
                // Where blocks stand may stand in memory that nobody writes.
                TileOp::Load if used.is_settled(func, &order, inst) => values.extend(&data.args),
                _ if data.is_pure() => values.extend(&data.args),
                _ => return None,
            }
            // The loop or choice that it stands in.
            let block = func.order.block_of(inst)?;
            insts.extend(order.owner(block));
            continue;
        }
        let Some(value) = values.pop() else {
            return Some(out);
        };
        let ty = func.dfg.ty(value);
        if !ty.is_scalar() || ty.elem == Elem::Token {
            return None;
        }
        match func.dfg.values[value].def {
            ValueDef::Result(inst, number) => {
                insts.push(inst);
                let number = usize::from(number);
                if func.dfg.insts[inst].class() == OpClass::Region
                    && out.carried.insert((inst, number))
                {
                    values.extend(carried_from(func, inst, number)?);
                }
            }
            ValueDef::Param(block, number) => {
                let Some(owner) = order.owner(block) else {
                    continue;
                };
                insts.push(owner);
                let Some(number) = usize::from(number).checked_sub(1) else {
                    continue;
                };
                if out.carried.insert((owner, number)) {
                    values.extend(carried_from(func, owner, number)?);
                }
            }
        }
    }
}

/// What a carried value or result of a loop or choice comes from.
fn carried_from(func: &TileFunction, inst: Inst, number: usize) -> Option<Vec<Value>> {
    let data = &func.dfg.insts[inst];
    let mut found = Vec::new();
    match data.op {
        TileOp::For => found.push(*data.args.get(3 + number)?),
        TileOp::If => {}
        _ => return None,
    }
    for region in func.regions(inst) {
        let last = func.order.last(region)?;
        found.push(*func.dfg.insts[last].args.get(number)?);
    }
    Some(found)
}

/// A region with copies of what is needed, and what each instruction became.
pub(super) fn copy(func: &mut TileFunction, needed: &Needed) -> (Block, FxHashMap<Inst, Inst>) {
    let mut copier = Copier {
        values: FxHashMap::default(),
        insts: FxHashMap::default(),
        func,
        needed,
    };
    let region = copier.func.dfg.make_block();
    copier.block(copier.func.entry, &[], region);
    (region, copier.insts)
}

struct Copier<'a> {
    func: &'a mut TileFunction,
    needed: &'a Needed,
    values: FxHashMap<Value, Value>,
    insts: FxHashMap<Inst, Inst>,
}

impl Copier<'_> {
    /// Copies a block, whose terminator hands on the values with these numbers.
    fn block(&mut self, old: Block, handed_on: &[usize], new: Block) {
        let list = self.func.order.insts(old).to_vec();
        let mut copies = Vec::new();
        for &inst in &list {
            if self.needed.insts.contains(inst) {
                copies.push(self.inst(inst));
            }
        }
        let mut end = match list.last() {
            Some(&last) => self.func.dfg.insts[last].clone(),
            None => return,
        };
        end.op = TileOp::Yield;
        end.args = handed_on.iter().map(|&i| end.args[i]).collect();
        for arg in &mut end.args {
            *arg = self.values.get(arg).copied().unwrap_or(*arg);
        }
        copies.push(self.func.dfg.make_inst(end, &[]));
        self.func.order.replace(new, copies);
    }

    fn inst(&mut self, old: Inst) -> Inst {
        let mut data = self.func.dfg.insts[old].clone();
        let results = std::mem::take(&mut data.results);
        let mut kept: Vec<usize> = (0..results.len()).collect();
        if data.class() == OpClass::Region {
            kept = self.needed.kept(old, results.len());
        }
        if data.op == TileOp::For {
            let inits: Vec<Value> = kept.iter().map(|&i| data.args[3 + i]).collect();
            data.args.truncate(3);
            data.args.extend(inits);
        }
        for arg in &mut data.args {
            *arg = self.values.get(arg).copied().unwrap_or(*arg);
        }
        for call in &mut data.blocks {
            let params = self.func.dfg.blocks[call.block].params.clone();
            let region = self.func.dfg.make_block();
            for (i, &param) in params.iter().enumerate() {
                if i == 0 || kept.contains(&(i - 1)) {
                    let ty = self.func.dfg.ty(param);
                    let new = self.func.dfg.append_param(region, ty);
                    self.values.insert(param, new);
                }
            }
            self.block(call.block, &kept, region);
            *call = BlockCall::region(region);
        }
        let types: Vec<TileType> = kept.iter().map(|&i| self.func.dfg.ty(results[i])).collect();
        let new = self.func.dfg.make_inst(data, &types);
        let made = self.func.dfg.insts[new].results.clone();
        let pairs = kept
            .iter()
            .zip(&made)
            .map(|(&i, &value)| (results[i], value));
        self.values.extend(pairs);
        self.insts.insert(old, new);
        new
    }
}
