//! The rewriting of one loop.

use rustc_hash::FxHashMap;

use super::Plan;
use super::slice::Ahead;
use crate::ir::attrs::{Attr, AttrKind, IntPred, make};
use crate::ir::dfg::{InstData, SourceLoc, ValueList};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};

/// What was started for an iteration.
struct Started {
    /// The group of copies, if there are any.
    group: Option<Value>,
    /// Blocks on their way through registers, and their rings.
    blocks: Vec<(Slot, Value)>,
}

/// An iteration some way ahead.
#[derive(Clone, Copy)]
struct Iteration {
    counter: Value,
    /// Whether there is such an iteration.
    exists: Value,
}

/// Rewrites one loop.
pub(super) struct Pipeliner<'a> {
    func: &'a mut TileFunction,
    plan: Plan,
    slots: Vec<Slot>,
    loc: SourceLoc,
    /// Instructions made, to be put somewhere.
    made: Vec<Inst>,
}

impl<'a> Pipeliner<'a> {
    pub(super) fn new(func: &'a mut TileFunction, plan: Plan) -> Pipeliner<'a> {
        Pipeliner {
            func,
            plan,
            slots: Vec::new(),
            loc: SourceLoc::default(),
            made: Vec::new(),
        }
    }

    fn emit(&mut self, op: TileOp, args: &[Value], attrs: &[Attr], types: &[TileType]) -> Inst {
        let mut data: InstData<Tile> = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        data.loc = self.loc;
        let inst = self.func.dfg.make_inst(data, types);
        self.made.push(inst);
        inst
    }

    fn value(&mut self, op: TileOp, args: &[Value], attrs: &[Attr], ty: TileType) -> Value {
        let inst = self.emit(op, args, attrs, &[ty]);
        self.func.dfg.insts[inst].results[0]
    }

    fn number(&mut self, number: i64, ty: TileType) -> Value {
        self.value(TileOp::Const, &[], &[make::value(number as u64)], ty)
    }

    fn compare(&mut self, pred: IntPred, a: Value, b: Value) -> Value {
        let attrs = [make::ipred(pred)];
        self.value(TileOp::Icmp, &[a, b], &attrs, TileType::scalar(Elem::I1))
    }

    pub(super) fn run(mut self, block: Block, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        self.loc = data.loc;
        let (body, stages) = (self.plan.body, self.plan.stages);
        for i in 0..self.plan.loads.len() {
            let ty = self.plan.loads[i].ty;
            let elem = ty.elem.scalar().expect("what is loaded is numbers");
            let buffer = BufferData {
                elem,
                shape: ty.shape,
                stages,
            };
            let slot = self.func.add_buffer(buffer);
            self.slots.push(slot);
        }
        let i32 = TileType::scalar(Elem::I32);
        let i1 = TileType::scalar(Elem::I1);

        // Before the loop: the first iterations.
        let (lo, hi, step) = (data.args[0], data.args[1], data.args[2]);
        let counter = self.func.dfg.ty(lo);
        let enters = self.compare(IntPred::Slt, lo, hi);
        let length = self.value(TileOp::Isub, &[hi, lo], &[], counter);
        let (near_at, far_at) = (
            self.plan.near.carried.clone(),
            self.plan.far.carried.clone(),
        );
        let looks_up = !self.plan.tables.is_empty();
        let mut near: Vec<Value> = near_at.iter().map(|&p| data.args[3 + p]).collect();
        let mut far: Vec<Value> = far_at.iter().map(|&p| data.args[3 + p]).collect();
        let mut tables = Vec::new();
        let mut tokens = Vec::new();
        for k in 0..stages {
            let is_started = k + 1 < stages;
            if !is_started && !looks_up {
                break;
            }
            let (distance, least) = self.distance(k, step, counter);
            let iv = self.value(TileOp::Iadd, &[lo, distance], &[], counter);
            let is_left = self.compare(IntPred::Ult, least, length);
            let exists = match k {
                0 => enters,
                _ => self.value(TileOp::And, &[enters, is_left], &[], i1),
            };
            let iteration = Iteration {
                counter: iv,
                exists,
            };
            tables = self.look_up(iteration, &mut far);
            if is_started {
                let entry = self.number(i64::from(k), i32);
                let started = self.start(iteration, &mut near, &tables, entry);
                tokens.extend(started.group);
                self.store_all(&started.blocks, entry);
            }
        }
        let first = self.number(0, i32);
        let free = self.number(i64::from(stages) - 1, i32);
        let before = std::mem::take(&mut self.made);

        // The loop: what runs ahead comes first.
        let iv = self.func.dfg.blocks[body].params[0];
        let tokens_in = self.params_for(&tokens);
        let (read, write) = {
            let mut param = || self.func.dfg.append_param(body, i32);
            (param(), param())
        };
        let mut near_on = self.params_for(&near);
        let mut far_on = self.params_for(&far);
        let tables_in = self.params_for(&tables);
        let ahead = self.later(stages - 1, [iv, hi, step]);
        let started = self.start(ahead, &mut near_on, &tables_in, write);
        let mut tables_on = Vec::new();
        if looks_up {
            let further = self.later(stages, [iv, hi, step]);
            tables_on = self.look_up(further, &mut far_on);
        }
        let one = self.number(1, i32);
        let next = self.value(TileOp::Iadd, &[read, one], &[], i32);
        let end = self.number(i64::from(stages), i32);
        let wraps = self.compare(IntPred::Eq, next, end);
        let zero = self.number(0, i32);
        let next = self.value(TileOp::Select, &[wraps, zero, next], &[], i32);
        let mut inside = std::mem::take(&mut self.made);
        if let Some(&oldest) = tokens_in.first() {
            self.emit(TileOp::AsyncWait, &[oldest], &[], &[]);
            // Behind branches, so that wait, copies and products stand in one block.
            let is_choice = |&i: &Inst| self.func.dfg.insts[i].op == TileOp::If;
            let at = inside.iter().rposition(is_choice).map_or(0, |at| at + 1);
            inside.splice(at..at, self.made.drain(..));
        }
        for i in 0..self.plan.loads.len() {
            let load = &mut self.func.dfg.insts[self.plan.loads[i].inst];
            load.op = TileOp::SharedLoad;
            load.args = ValueList::from_slice(&[read]);
            load.attrs.clear();
            load.attrs.push(make::slot(self.slots[i]));
        }
        let (last, rest) = match self.func.order.insts(body).split_last() {
            Some((&last, rest)) => (Some(last), rest.to_vec()),
            None => (None, Vec::new()),
        };
        inside.extend(rest);
        self.store_all(&started.blocks, write);
        inside.append(&mut self.made);
        inside.extend(last);
        self.func.order.replace(body, inside);
        if let Some(last) = last {
            let args = &mut self.func.dfg.insts[last].args;
            args.extend(tokens_in.iter().skip(1).copied());
            args.extend(started.group);
            args.extend([next, read]);
            args.extend(near_on);
            args.extend(far_on);
            args.extend(tables_on);
        }

        // The loop itself has more results now.
        let mut args = data.args.clone();
        args.extend(tokens.iter().copied());
        args.extend([first, free]);
        args.extend(near);
        args.extend(far);
        args.extend(tables);
        let types: Vec<TileType> = args[3..].iter().map(|&v| self.func.dfg.ty(v)).collect();
        let mut looped: InstData<Tile> = InstData::new(TileOp::For, &args);
        let kept = data.attrs.iter().filter(|a| a.kind() != AttrKind::Stages);
        looped.attrs.extend(kept.cloned());
        looped.attrs.push(make::stages(1));
        looped.blocks.extend(data.blocks.iter().cloned());
        looped.loc = data.loc;
        let new = self.func.dfg.make_inst(looped, &types);
        let results: Vec<Value> = self.func.dfg.insts[new].results.to_vec();
        if !tokens.is_empty() {
            let first = data.results.len();
            let groups = &results[first..first + tokens.len()];
            self.emit(TileOp::AsyncWait, groups, &[], &[]);
        }
        let after = std::mem::take(&mut self.made);
        self.replace_loop(block, inst, &[&before[..], &[new], &after].concat());
        self.rename(&data.results, &results);
    }

    /// New parameters of the loop's body, of the types of values.
    fn params_for(&mut self, values: &[Value]) -> Vec<Value> {
        let param = |&value: &Value| {
            let ty = self.func.dfg.ty(value);
            self.func.dfg.append_param(self.plan.body, ty)
        };
        values.iter().map(param).collect()
    }

    /// What the counter of `k` iterations later is larger by, and what less than the rest must be where there is such an
    /// iteration: the same, or, where it does not fit the counter, all ones, which nothing is less than.
    fn distance(&mut self, k: u32, step: Value, counter: TileType) -> (Value, Value) {
        if let Some(step) = self.plan.step.or((k == 0).then_some(0)) {
            let distance = self.number(i64::from(k) * step, counter);
            return (distance, distance);
        }
        let most = u64::MAX >> (64 - counter.elem.bits());
        let times = self.number(i64::from(k), counter);
        let distance = self.value(TileOp::Imul, &[step, times], &[], counter);
        let largest = self.number((most / u64::from(k)) as i64, counter);
        let fits = self.compare(IntPred::Ule, step, largest);
        let all = self.number(most as i64, counter);
        let least = self.value(TileOp::Select, &[fits, distance, all], &[], counter);
        (distance, least)
    }

    /// The iteration `k` later than the one with counter `iv`.
    fn later(&mut self, k: u32, [iv, hi, step]: [Value; 3]) -> Iteration {
        let ty = self.func.dfg.ty(iv);
        let (distance, least) = self.distance(k, step, ty);
        let counter = self.value(TileOp::Iadd, &[iv, distance], &[], ty);
        let left = self.value(TileOp::Isub, &[hi, iv], &[], ty);
        let exists = self.compare(IntPred::Ult, least, left);
        Iteration { counter, exists }
    }

    /// Puts instructions in the place of a loop.
    fn replace_loop(&mut self, block: Block, old: Inst, new: &[Inst]) {
        let mut list = Vec::new();
        for &inst in self.func.order.insts(block) {
            match inst == old {
                true => list.extend_from_slice(new),
                false => list.push(inst),
            }
        }
        self.func.order.replace(block, list);
    }

    /// Makes every use of a value one of the value at its place in the second list.
    fn rename(&mut self, old: &[Value], new: &[Value]) {
        let renamed: FxHashMap<Value, Value> =
            old.iter().copied().zip(new.iter().copied()).collect();
        for block in self.func.all_blocks() {
            for inst in self.func.order.insts(block).to_vec() {
                let new = |v| renamed.get(&v).copied().unwrap_or(v);
                self.func.dfg.map_uses(inst, new);
            }
        }
    }

    /// Stores blocks to an entry of their rings.
    fn store_all(&mut self, blocks: &[(Slot, Value)], entry: Value) {
        for &(slot, loaded) in blocks {
            self.emit(
                TileOp::SharedStore,
                &[loaded, entry],
                &[make::slot(slot)],
                &[],
            );
        }
    }

    /// Starts to bring what one iteration needs, given what its tables hold. `near` holds the carried values that run ahead,
    /// and afterwards those of the next iteration.
    fn start(
        &mut self,
        iteration: Iteration,
        near: &mut [Value],
        tables: &[Value],
        entry: Value,
    ) -> Started {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        for (&table, &value) in self.plan.tables.iter().zip(tables) {
            map.insert(self.func.dfg.insts[table].results[0], value);
        }
        let ahead = self.plan.near.clone();
        self.replay(&ahead, iteration, near, &mut map);
        let token = TileType::scalar(Elem::Token);
        let mut copies = Vec::new();
        let mut blocks = Vec::new();
        for i in 0..self.plan.loads.len() {
            let (inst, slot) = (self.plan.loads[i].inst, self.slots[i]);
            let (ptr, mask, mut attrs) = self.moved(inst, iteration, &map);
            if self.plan.loads[i].staged {
                let ty = self.plan.loads[i].ty;
                blocks.push((slot, self.value(TileOp::Load, &[ptr, mask], &attrs, ty)));
            } else {
                attrs.push(make::slot(slot));
                copies.push(self.value(TileOp::AsyncCopy, &[ptr, entry, mask], &attrs, token));
            }
        }
        let group =
            (!copies.is_empty()).then(|| self.value(TileOp::AsyncCommit, &copies, &[], token));
        self.advance(&ahead, near, &map);
        Started { group, blocks }
    }

    /// Loads what slices need from tables, for one iteration. `far` holds the carried values that run ahead for that, and
    /// afterwards those of the next iteration.
    fn look_up(&mut self, iteration: Iteration, far: &mut [Value]) -> Vec<Value> {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        let ahead = self.plan.far.clone();
        self.replay(&ahead, iteration, far, &mut map);
        let mut found = Vec::new();
        for inst in self.plan.tables.clone() {
            let data = self.func.dfg.insts[inst].clone();
            let (ptr, mask, attrs) = self.moved(inst, iteration, &map);
            let mut args = vec![ptr, mask];
            args.extend(data.args.get(2).map(|v| map.get(v).copied().unwrap_or(*v)));
            let ty = self.func.dfg.ty(data.results[0]);
            found.push(self.value(TileOp::Load, &args, &attrs, ty));
        }
        self.advance(&ahead, far, &map);
        found
    }

    /// Pointer, mask and attributes of a load, in an iteration for which `map` gives the values.
    fn moved(
        &mut self,
        load: Inst,
        iteration: Iteration,
        map: &FxHashMap<Value, Value>,
    ) -> (Value, Value, Vec<Attr>) {
        let data = self.func.dfg.insts[load].clone();
        let moved = |v: Value| map.get(&v).copied().unwrap_or(v);
        let ptr = moved(data.args[0]);
        let ty = self.func.dfg.ty(ptr).with_elem(Elem::I1);
        let mut mask = match ty.is_scalar() {
            true => iteration.exists,
            false => self.value(TileOp::Splat, &[iteration.exists], &[], ty),
        };
        if let Some(&own) = data.args.get(1) {
            mask = self.value(TileOp::And, &[moved(own), mask], &[], ty);
        }
        let kept = [AttrKind::Cache, AttrKind::Evict];
        let kept = data.attrs.iter().filter(|a| kept.contains(&a.kind()));
        (ptr, mask, kept.cloned().collect())
    }

    /// Computes again for an iteration what runs ahead; `values` are its carried values. `map` learns what stands for what.
    fn replay(
        &mut self,
        ahead: &Ahead,
        iteration: Iteration,
        values: &[Value],
        map: &mut FxHashMap<Value, Value>,
    ) {
        let params = self.func.dfg.blocks[self.plan.body].params.clone();
        map.insert(params[0], iteration.counter);
        for (&position, &value) in ahead.carried.iter().zip(values) {
            map.insert(params[1 + position], value);
        }
        for &inst in &ahead.insts {
            let copy = self.copy_of(inst, map);
            self.made.push(copy);
        }
    }

    /// Makes carried values those of the next iteration.
    fn advance(&self, ahead: &Ahead, values: &mut [Value], map: &FxHashMap<Value, Value>) {
        let Some(last) = self.func.order.last(self.plan.body) else {
            return;
        };
        let yielded = &self.func.dfg.insts[last].args;
        for (&position, value) in ahead.carried.iter().zip(values) {
            if let Some(&next) = yielded.get(position) {
                *value = map.get(&next).copied().unwrap_or(next);
            }
        }
    }

    /// A copy of an instruction and its regions.
    fn copy_of(&mut self, inst: Inst, map: &mut FxHashMap<Value, Value>) -> Inst {
        let mut data = self.func.dfg.insts[inst].clone();
        let old = std::mem::take(&mut data.results);
        for arg in &mut data.args {
            *arg = map.get(arg).copied().unwrap_or(*arg);
        }
        for call in &mut data.blocks {
            let region = self.func.dfg.make_block();
            let inner = self.func.order.insts(call.block).to_vec();
            let copies = inner.iter().map(|&inst| self.copy_of(inst, map)).collect();
            self.func.order.replace(region, copies);
            call.block = region;
        }
        let types: Vec<TileType> = old.iter().map(|&v| self.func.dfg.ty(v)).collect();
        let copy = self.func.dfg.make_inst(data, &types);
        let new = &self.func.dfg.insts[copy].results;
        map.extend(old.iter().copied().zip(new.iter().copied()));
        copy
    }
}
