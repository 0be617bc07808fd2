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
    carried: FxHashSet<(Inst, Carried)>,
}

/// A value that a loop or choice carries, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Carried {
    /// An initial value and what takes its place, or a result of a choice or counted loop.
    Around(usize),
    /// What the first region of a `while` hands to the second one, and in the end to what stands behind.
    Past(usize),
}

impl Needed {
    /// Numbers of the carried values that are needed.
    fn kept(&self, inst: Inst, kind: impl Fn(usize) -> Carried, count: usize) -> Vec<usize> {
        let is_kept = |&i: &usize| self.carried.contains(&(inst, kind(i)));
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
                TileOp::While => {
                    let end = func.order.last(func.regions(inst).next()?)?;
                    values.extend(func.dfg.insts[end].args.first());
                }
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
        let (inst, carried) = match func.dfg.values[value].def {
            ValueDef::Result(inst, number) => {
                let number = usize::from(number);
                let data = &func.dfg.insts[inst];
                let carried = match data.op {
                    TileOp::While => Some(Carried::Past(number)),
                    _ => (data.class() == OpClass::Region).then_some(Carried::Around(number)),
                };
                (inst, carried)
            }
            ValueDef::Param(block, number) => {
                let Some(owner) = order.owner(block) else {
                    continue;
                };
                let number = usize::from(number);
                let is_first = func.regions(owner).next() == Some(block);
                let carried = match func.dfg.insts[owner].op {
                    TileOp::While if is_first => Some(Carried::Around(number)),
                    TileOp::While => Some(Carried::Past(number)),
                    // What counts is there in any case.
                    _ => number.checked_sub(1).map(Carried::Around),
                };
                (owner, carried)
            }
        };
        insts.push(inst);
        if let Some(carried) = carried.filter(|&carried| out.carried.insert((inst, carried))) {
            values.extend(carried_from(func, inst, carried)?);
        }
    }
}

/// What a carried value or result of a loop or choice comes from.
fn carried_from(func: &TileFunction, inst: Inst, carried: Carried) -> Option<Vec<Value>> {
    let data = &func.dfg.insts[inst];
    let end = |region| Some(&func.dfg.insts[func.order.last(region)?].args);
    let mut regions = func.regions(inst);
    let mut found = Vec::new();
    match (data.op, carried) {
        (TileOp::For, Carried::Around(number)) => found.push(*data.args.get(3 + number)?),
        (TileOp::If, Carried::Around(_)) => {}
        (TileOp::While, Carried::Around(number)) => {
            found.push(*data.args.get(number)?);
            regions.next();
        }
        (TileOp::While, Carried::Past(number)) => {
            return Some(vec![*end(regions.next()?)?.get(1 + number)?]);
        }
        _ => return None,
    }
    for region in regions {
        let (Carried::Around(number) | Carried::Past(number)) = carried;
        found.push(*end(region)?.get(number)?);
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
    /// Copies a block, whose terminator hands on its operands with these numbers.
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
        if end.op == TileOp::Return {
            end.op = TileOp::Yield;
        }
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
        let kept = |kind: fn(usize) -> Carried, count| self.needed.kept(old, kind, count);
        // Of a loop's operands those behind its bounds are initial values.
        let (around, first_init) = match data.op {
            TileOp::For => (kept(Carried::Around, results.len()), 3),
            TileOp::While => (kept(Carried::Around, data.args.len()), 0),
            _ => (kept(Carried::Around, results.len()), data.args.len()),
        };
        let kept = match data.op {
            TileOp::While => kept(Carried::Past, results.len()),
            _ if data.class() == OpClass::Region => around.clone(),
            _ => (0..results.len()).collect(),
        };
        let inits = data.args[first_init..].to_vec();
        data.args.truncate(first_init);
        if data.op.is_loop() {
            data.args.extend(around.iter().map(|&i| inits[i]));
        }
        for arg in &mut data.args {
            *arg = self.values.get(arg).copied().unwrap_or(*arg);
        }
        let is_while = data.op == TileOp::While;
        for (number, call) in data.blocks.iter_mut().enumerate() {
            let goes_on: Vec<usize> = kept.iter().map(|&i| 1 + i).collect();
            // What a region takes and hands on; a counted loop's takes what counts first, and whether a `while` goes on stands in
            // front of what it hands on.
            let (takes, hands_on) = match (is_while, number) {
                (true, 0) => (around.clone(), [&[0], &goes_on[..]].concat()),
                (true, _) => (kept.clone(), around.clone()),
                (false, _) => ([&[0], &goes_on[..]].concat(), kept.clone()),
            };
            let params = self.func.dfg.blocks[call.block].params.clone();
            let region = self.func.dfg.make_block();
            for (i, &param) in params.iter().enumerate() {
                if takes.contains(&i) {
                    let ty = self.func.dfg.ty(param);
                    let new = self.func.dfg.append_param(region, ty);
                    self.values.insert(param, new);
                }
            }
            self.block(call.block, &hands_on, region);
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
