//! The rewriting of one loop.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use super::slice::Ahead;
use super::{Plan, Way, uniform_bits};
use crate::ir::attrs::{Attr, AttrKind, IntPred, make};
use crate::ir::dfg::{InstData, ValueList};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::tile::edit::copy_of;

/// What was started for an iteration.
struct Started {
    /// The group of copies, if there are any.
    group: Option<Value>,
    /// Blocks that were loaded to registers and are stored at once, and their rings.
    to_store: Vec<(Slot, Value)>,
    /// Such that the next iteration stores.
    to_keep: Vec<(Slot, Value)>,
}

/// An iteration some way ahead.
#[derive(Clone, Copy)]
struct Iteration {
    counter: Value,
    /// Whether there is such an iteration.
    exists: Value,
}

/// What a pipelined loop carries beside what it carried before.
#[derive(Clone, Default)]
struct Carried {
    /// Groups of copies under way, the oldest first.
    tokens: Vec<Value>,
    /// The entry that is read, and the one that is written if that is another one.
    places: Vec<Value>,
    /// Parity of the phase of the barrier of the entry that is read.
    phase: Option<Value>,
    /// Blocks that are loaded and not stored, and the entry that they go to.
    kept: Vec<Value>,
    kept_for: Option<Value>,
    /// Values that run ahead.
    near: Vec<Value>,
    /// Values that run one iteration further ahead.
    far: Vec<Value>,
    /// What was loaded from tables.
    tables: Vec<Value>,
}

impl Carried {
    /// In the order in which the loop's body takes them.
    fn all(&self) -> impl Iterator<Item = Value> + '_ {
        let lists = [
            &self.tokens,
            &self.places,
            &self.near,
            &self.far,
            &self.tables,
            &self.kept,
        ];
        let lists = lists.into_iter().flatten().copied();
        lists.chain(self.phase).chain(self.kept_for)
    }
}

/// Rewrites one loop.
pub(super) struct Pipeliner<'a> {
    maker: Maker<'a, Tile>,
    plan: Plan,
    slots: Vec<Slot>,
    /// Barriers on which boxes arrive, one for each entry.
    bars: Option<Slot>,
}

impl<'a> Pipeliner<'a> {
    pub(super) fn new(func: &'a mut TileFunction, plan: Plan) -> Pipeliner<'a> {
        Pipeliner {
            maker: Maker::new(func),
            plan,
            slots: Vec::new(),
            bars: None,
        }
    }

    pub(super) fn run(mut self, block: Block, inst: Inst) {
        let data = self.maker.func.dfg.insts[inst].clone();
        self.maker.loc = data.loc;
        for i in 0..self.plan.loads.len() {
            let ty = self.plan.loads[i].ty;
            let elem = ty.elem.scalar().expect("what is loaded is numbers");
            let buffer = BufferData {
                elem,
                shape: ty.shape,
                stages: self.plan.entries,
            };
            let slot = self.maker.func.add_buffer(buffer);
            self.slots.push(slot);
        }
        if self.plan.loads.iter().any(|load| load.way == Way::Box) {
            self.bars = Some(self.maker.func.add_barriers(self.plan.entries));
        }
        let first = self.fill(&data);
        let before = std::mem::take(&mut self.maker.made);
        self.rewrite_body(&data, &first);

        // The loop itself has more results now.
        let mut args = data.args.clone();
        args.extend(first.all());
        let types: Vec<TileType> = args[3..]
            .iter()
            .map(|&v| self.maker.func.dfg.ty(v))
            .collect();
        let mut looped: InstData<Tile> = InstData::new(TileOp::For, &args);
        let kept = data.attrs.iter().filter(|a| a.kind() != AttrKind::Stages);
        looped.attrs.extend(kept.cloned());
        looped.attrs.push(make::stages(1));
        looped.blocks.extend(data.blocks.iter().cloned());
        looped.loc = data.loc;
        let new = self.maker.func.dfg.make_inst(looped, &types);
        let results: Vec<Value> = self.maker.func.dfg.insts[new].results.to_vec();
        let groups = &results[data.results.len()..][..first.tokens.len()];
        if !groups.is_empty() {
            self.maker.build(TileOp::AsyncWait, groups, &[], &[]);
        }
        // In another loop they are made again.
        if let Some(bars) = self.bars
            && block != self.maker.func.entry
        {
            self.maker
                .build(TileOp::MbarDrop, &[], &[make::slot(bars)], &[]);
        }
        let after = std::mem::take(&mut self.maker.made);
        self.replace_loop(block, inst, &[&before[..], &[new], &after].concat());
        self.rename(&data.results, &results);
    }

    /// Starts the first iterations in front of the loop; gives what it carries at first.
    fn fill(&mut self, looped: &InstData<Tile>) -> Carried {
        let (i32, i1) = (TileType::scalar(Elem::I32), TileType::scalar(Elem::I1));
        if let Some(bars) = self.bars {
            let attrs = [make::slot(bars), make::count(1)];
            self.maker.build(TileOp::MbarInit, &[], &attrs, &[]);
        }
        let (lo, hi, step) = (looped.args[0], looped.args[1], looped.args[2]);
        let counter = self.maker.func.dfg.ty(lo);
        let enters = self.maker.compare(IntPred::Slt, lo, hi);
        let length = self.maker.value(TileOp::Isub, &[hi, lo], &[], counter);
        let init = |&position: &usize| looped.args[3 + position];
        let mut first = Carried {
            near: self.plan.near.carried.iter().map(init).collect(),
            far: self.plan.far.carried.iter().map(init).collect(),
            ..Carried::default()
        };
        let stages = self.plan.stages;
        let mut unstored = Vec::new();
        // Tables run one iteration further ahead.
        let further = u32::from(!self.plan.tables.is_empty());
        for k in 0..stages - 1 + further {
            let (distance, least) = self.distance(k, step, counter);
            let at = self
                .maker
                .value(TileOp::Iadd, &[lo, distance], &[], counter);
            let is_left = self.maker.compare(IntPred::Ult, least, length);
            let exists = match k {
                0 => enters,
                _ => self.maker.value(TileOp::And, &[enters, is_left], &[], i1),
            };
            let iteration = Iteration {
                counter: at,
                exists,
            };
            first.tables = self.look_up(iteration, &mut first.far);
            if k + 1 < stages {
                let entry = self.maker.number(i64::from(k), i32);
                let started = self.start(iteration, &mut first.near, &first.tables, entry);
                first.tokens.extend(started.group);
                self.store_all(&started.to_store, entry);
                unstored.push((started.to_keep, entry));
            }
        }
        // Those of the last one wait for the first iteration of the loop, the others for each other.
        let last = unstored.pop();
        if let Some((blocks, entry)) = last.filter(|(blocks, _)| !blocks.is_empty()) {
            first.kept = blocks.iter().map(|&(_, block)| block).collect();
            first.kept_for = Some(entry);
        }
        for (blocks, entry) in unstored {
            self.store_all(&blocks, entry);
        }
        first.places.push(self.maker.number(0, i32));
        first.phase = self.bars.map(|_| self.maker.number(0, i32));
        if self.plan.entries == stages {
            first
                .places
                .push(self.maker.number(i64::from(stages) - 1, i32));
        }
        if self.plan.starts_all {
            let ahead = [&mut first.near, &mut first.far, &mut first.tables];
            ahead.into_iter().for_each(Vec::clear);
        }
        first
    }

    /// Lets an iteration start a later one, and take its own blocks from the rings. `first` is what the loop carries at first.
    fn rewrite_body(&mut self, looped: &InstData<Tile>, first: &Carried) {
        let (body, stages, entries) = (self.plan.body, self.plan.stages, self.plan.entries);
        let iv = self.maker.func.dfg.blocks[body].params[0];
        let bounds = [iv, looped.args[1], looped.args[2]];
        let now = Carried {
            tokens: self.params_for(&first.tokens),
            places: self.params_for(&first.places),
            near: self.params_for(&first.near),
            far: self.params_for(&first.far),
            tables: self.params_for(&first.tables),
            kept: self.params_for(&first.kept),
            phase: first.phase.map(|phase| self.params_for(&[phase])[0]),
            kept_for: first.kept_for.map(|entry| self.params_for(&[entry])[0]),
        };
        let read = now.places[0];
        let write = now.places.last().copied().unwrap_or(read);
        let mut next = now.clone();

        // In front of the loads, whose blocks then have the registers of these.
        if let Some(entry) = now.kept_for {
            let loads = self.plan.loads.iter().zip(&self.slots);
            let slots = loads.filter(|(load, _)| load.way == Way::Held);
            let blocks = slots.map(|(_, &slot)| slot).zip(now.kept.iter().copied());
            let blocks: Vec<(Slot, Value)> = blocks.collect();
            self.store_all(&blocks, entry);
        }
        let started = match self.plan.starts_all {
            true => self.start_nothing(!now.tokens.is_empty()),
            false => {
                let ahead = self.later(stages - 1, bounds);
                self.start(ahead, &mut next.near, &now.tables, write)
            }
        };
        next.kept = started.to_keep.iter().map(|&(_, block)| block).collect();
        next.kept_for = now.kept_for.map(|_| write);
        if !now.tables.is_empty() {
            let further = self.later(stages, bounds);
            next.tables = self.look_up(further, &mut next.far);
        }
        next.tokens.extend(started.group);
        next.tokens.drain(..now.tokens.len().min(1));
        // What was read last is written next, if it is not written at once.
        let following = self.entry_behind(read);
        next.places = [following, read][..now.places.len()].to_vec();
        if let Some(phase) = now.phase {
            let i32 = TileType::scalar(Elem::I32);
            let [zero, one] = [0, 1].map(|number| self.maker.number(number, i32));
            let wraps = self.maker.compare(IntPred::Eq, following, zero);
            let other = self.maker.value(TileOp::Xor, &[phase, one], &[], i32);
            next.phase = Some(
                self.maker
                    .value(TileOp::Select, &[wraps, other, phase], &[], i32),
            );
        }
        let mut inside = std::mem::take(&mut self.maker.made);
        if let Some(&oldest) = now.tokens.first() {
            self.maker.build(TileOp::AsyncWait, &[oldest], &[], &[]);
        }
        if let Some((bars, phase)) = self.bars.zip(now.phase) {
            self.maker
                .build(TileOp::MbarWait, &[read, phase], &[make::slot(bars)], &[]);
        }
        let wait = std::mem::take(&mut self.maker.made);

        let mut rest = Vec::new();
        let mut are_read = 0;
        for &inst in &self.maker.func.order.insts(body).to_vec() {
            let load = self.plan.loads.iter().position(|load| load.inst == inst);
            if let Some(i) = load {
                rest.extend(self.read(i, read));
            }
            rest.push(inst);
            if load.is_some() {
                are_read = rest.len();
            }
        }
        let last = rest.pop();
        let insts = &self.maker.func.dfg.insts;
        let end_of = |list: &[Inst], op: TileOp| {
            let at = list.iter().rposition(|&inst| insts[inst].op == op);
            at.map_or(0, |at| at + 1)
        };
        if self.plan.is_for_warpgroup {
            let at = self.behind_first_starts(&rest);
            inside = [&wait, &rest[..at], &inside, &rest[at..]].concat();
        } else if entries == stages {
            // Behind choices, so that wait, copies and products stand in one block.
            let at = end_of(&inside, TileOp::If);
            inside.splice(at..at, wait);
            inside.extend(rest);
        } else {
            // To the entry that is read.
            let at = end_of(&rest, TileOp::Dot).max(are_read);
            inside = [&wait, &rest[..at], &inside, &rest[at..]].concat();
        }
        self.store_all(&started.to_store, write);
        inside.append(&mut self.maker.made);
        inside.extend(last);
        self.maker.func.order.replace(body, inside);
        if let Some(last) = last {
            self.maker.func.dfg.insts[last].args.extend(next.all());
        }
    }

    /// Behind the products of an iteration that start one after the other: no factor is computed from another one's sum, and between them
    /// blocks are only read from rings and change their shape. With two stages behind the first product, as an iteration is all the time that
    /// copies have.
    fn behind_first_starts(&self, list: &[Inst]) -> usize {
        let func = &*self.maker.func;
        let mut sums: EntitySet<Value> = EntitySet::new();
        let mut behind = 0;
        for (at, &inst) in list.iter().enumerate() {
            let data = &func.dfg.insts[inst];
            let is_product = data.op == TileOp::Dot;
            let is_block = |value: &Value| !func.dfg.ty(*value).is_scalar();
            // To its sum a unit adds by itself.
            let reads = data
                .args
                .iter()
                .take(if is_product { 2 } else { usize::MAX });
            let waits = reads.into_iter().any(|&value| sums.contains(value));
            let is_ready = matches!(data.class(), OpClass::Shape | OpClass::Constant)
                || data.op == TileOp::SharedLoad
                || is_product;
            let computes = !is_ready && data.results.iter().any(is_block);
            if behind > 0 && (waits || computes || !data.blocks.is_empty()) {
                break;
            }
            if is_product {
                sums.extend(data.results.iter().copied());
                behind = at + 1;
                if self.plan.stages < 3 {
                    break;
                }
            }
        }
        behind
    }

    /// Makes a load one from its ring's entry. What is masked off arrives as zero: where it is to be another number, that is
    /// chosen behind a load, which is given to stand in front.
    fn read(&mut self, i: usize, entry: Value) -> Option<Inst> {
        let (inst, ty) = (self.plan.loads[i].inst, self.plan.loads[i].ty);
        let func = &mut *self.maker.func;
        let mut from_ring: InstData<Tile> = InstData::new(TileOp::SharedLoad, &[entry]);
        from_ring.attrs.push(make::slot(self.slots[i]));
        from_ring.loc = func.dfg.insts[inst].loc;
        let given = &func.dfg.insts[inst];
        let chosen = match (given.op, &given.args[..]) {
            (TileOp::Load, &[_, mask, other]) => {
                (uniform_bits(func, other) != Some(0)).then_some([mask, other])
            }
            _ => None,
        };
        let in_front = chosen.map(|[mask, other]| {
            let loaded = func.dfg.make_inst(from_ring.clone(), &[ty]);
            let value = func.dfg.insts[loaded].results[0];
            from_ring.op = TileOp::Select;
            from_ring.args = ValueList::from_slice(&[mask, value, other]);
            from_ring.attrs.clear();
            loaded
        });
        let load = &mut func.dfg.insts[inst];
        (load.op, load.args, load.attrs) = (from_ring.op, from_ring.args, from_ring.attrs);
        in_front
    }

    /// The entry of the rings behind another one.
    fn entry_behind(&mut self, entry: Value) -> Value {
        let i32 = TileType::scalar(Elem::I32);
        let one = self.maker.number(1, i32);
        let following = self.maker.value(TileOp::Iadd, &[entry, one], &[], i32);
        let end = self.maker.number(i64::from(self.plan.entries), i32);
        let wraps = self.maker.compare(IntPred::Eq, following, end);
        let zero = self.maker.number(0, i32);
        self.maker
            .value(TileOp::Select, &[wraps, zero, following], &[], i32)
    }

    /// New parameters of the loop's body, of the types of values.
    fn params_for(&mut self, values: &[Value]) -> Vec<Value> {
        let param = |&value: &Value| {
            let ty = self.maker.func.dfg.ty(value);
            self.maker.func.dfg.append_param(self.plan.body, ty)
        };
        values.iter().map(param).collect()
    }

    /// What the counter of `k` iterations later is larger by, and what less than the rest must be where there is such an
    /// iteration: the same, or, where it does not fit the counter, all ones, which nothing is less than.
    fn distance(&mut self, k: u32, step: Value, counter: TileType) -> (Value, Value) {
        if let Some(step) = self.plan.step.or((k == 0).then_some(0)) {
            let distance = self.maker.number(i64::from(k) * step, counter);
            return (distance, distance);
        }
        let most = counter.elem.mask();
        let times = self.maker.number(i64::from(k), counter);
        let distance = self.maker.value(TileOp::Imul, &[step, times], &[], counter);
        let largest = self.maker.number((most / u64::from(k)) as i64, counter);
        let fits = self.maker.compare(IntPred::Ule, step, largest);
        let all = self.maker.number(most as i64, counter);
        let least = self
            .maker
            .value(TileOp::Select, &[fits, distance, all], &[], counter);
        (distance, least)
    }

    /// The iteration `k` later than the one with counter `iv`.
    fn later(&mut self, k: u32, [iv, hi, step]: [Value; 3]) -> Iteration {
        let ty = self.maker.func.dfg.ty(iv);
        let (distance, least) = self.distance(k, step, ty);
        let counter = self.maker.value(TileOp::Iadd, &[iv, distance], &[], ty);
        let left = self.maker.value(TileOp::Isub, &[hi, iv], &[], ty);
        let exists = self.maker.compare(IntPred::Ult, least, left);
        Iteration { counter, exists }
    }

    /// Puts instructions in the place of a loop.
    fn replace_loop(&mut self, block: Block, old: Inst, new: &[Inst]) {
        let mut list = Vec::new();
        for &inst in self.maker.func.order.insts(block) {
            match inst == old {
                true => list.extend_from_slice(new),
                false => list.push(inst),
            }
        }
        self.maker.func.order.replace(block, list);
    }

    /// Makes every use of a value one of the value at its place in the second list.
    fn rename(&mut self, old: &[Value], new: &[Value]) {
        let renamed: FxHashMap<Value, Value> =
            old.iter().copied().zip(new.iter().copied()).collect();
        for block in self.maker.func.all_blocks() {
            for inst in self.maker.func.order.insts(block).to_vec() {
                let new = |v| renamed.get(&v).copied().unwrap_or(v);
                self.maker.func.dfg.map_uses(inst, new);
            }
        }
    }

    /// Stores blocks to an entry of their rings.
    fn store_all(&mut self, blocks: &[(Slot, Value)], entry: Value) {
        for &(slot, loaded) in blocks {
            self.maker.build(
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
            map.insert(self.maker.func.dfg.insts[table].results[0], value);
        }
        let ahead = self.plan.near.clone();
        self.replay(&ahead, iteration, near, &mut map);
        let token = TileType::scalar(Elem::Token);
        let mut copies = Vec::new();
        let (mut to_store, mut to_keep) = (Vec::new(), Vec::new());
        // Boxes first: what threads copy may keep them from starting these.
        self.expect_boxes(iteration, entry);
        for i in 0..self.plan.loads.len() {
            let (inst, slot) = (self.plan.loads[i].inst, self.slots[i]);
            if self.plan.loads[i].way == Way::Box {
                self.copy_box(inst, slot, iteration, &map, entry);
            }
        }
        for i in 0..self.plan.loads.len() {
            let (inst, slot) = (self.plan.loads[i].inst, self.slots[i]);
            if self.plan.loads[i].way == Way::Box {
                continue;
            }
            let (ptr, mask, mut attrs) = self.moved(inst, iteration, &map);
            let ty = self.plan.loads[i].ty;
            match self.plan.loads[i].way {
                way @ (Way::Staged | Way::Held) => {
                    let block = self.maker.value(TileOp::Load, &[ptr, mask], &attrs, ty);
                    let list = match way {
                        Way::Held => &mut to_keep,
                        _ => &mut to_store,
                    };
                    list.push((slot, block));
                }
                Way::Copied | Way::Box => {
                    attrs.push(make::slot(slot));
                    let args = [ptr, entry, mask];
                    copies.push(self.maker.value(TileOp::AsyncCopy, &args, &attrs, token));
                }
            }
        }
        let group = (!copies.is_empty())
            .then(|| self.maker.value(TileOp::AsyncCommit, &copies, &[], token));
        self.advance(&ahead, near, &map);
        Started {
            group,
            to_store,
            to_keep,
        }
    }

    /// What an iteration starts that starts no later one: a group of nothing, so that waits count groups as in other loops.
    fn start_nothing(&mut self, has_groups: bool) -> Started {
        let token = TileType::scalar(Elem::Token);
        let group = has_groups.then(|| self.maker.value(TileOp::AsyncCommit, &[], &[], token));
        Started {
            group,
            to_store: Vec::new(),
            to_keep: Vec::new(),
        }
    }

    /// Announces what the boxes of an iteration bring.
    fn expect_boxes(&mut self, iteration: Iteration, entry: Value) {
        let Some(bars) = self.bars else {
            return;
        };
        let boxes = self.plan.loads.iter().filter(|load| load.way == Way::Box);
        let bytes = boxes.map(|load| load.bytes).sum();
        let attrs = [make::slot(bars), make::bytes(bytes)];
        let args = [entry, iteration.exists];
        self.maker.build(TileOp::MbarExpect, &args, &attrs, &[]);
    }

    /// Starts to copy the box that a load reads in an iteration for which `map` gives the values.
    fn copy_box(
        &mut self,
        load: Inst,
        slot: Slot,
        iteration: Iteration,
        map: &FxHashMap<Value, Value>,
        entry: Value,
    ) {
        let Some(bars) = self.bars else {
            return;
        };
        let args = self.maker.func.dfg.insts[load].args.clone();
        let moved = |&v: &Value| map.get(&v).copied().unwrap_or(v);
        let mut all = vec![args[0], entry, iteration.exists];
        all.extend(args[1..].iter().map(moved));
        let attrs = [make::slot(slot), make::bars(bars)];
        self.maker.build(TileOp::TensorCopy, &all, &attrs, &[]);
    }

    /// Loads what slices need from tables, for one iteration. `far` holds the carried values that run ahead for that, and
    /// afterwards those of the next iteration.
    fn look_up(&mut self, iteration: Iteration, far: &mut [Value]) -> Vec<Value> {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        let ahead = self.plan.far.clone();
        self.replay(&ahead, iteration, far, &mut map);
        let mut found = Vec::new();
        for inst in self.plan.tables.clone() {
            let data = self.maker.func.dfg.insts[inst].clone();
            let (ptr, mask, attrs) = self.moved(inst, iteration, &map);
            let mut args = vec![ptr, mask];
            args.extend(data.args.get(2).map(|v| map.get(v).copied().unwrap_or(*v)));
            let ty = self.maker.func.dfg.ty(data.results[0]);
            found.push(self.maker.value(TileOp::Load, &args, &attrs, ty));
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
        let data = self.maker.func.dfg.insts[load].clone();
        let moved = |v: Value| map.get(&v).copied().unwrap_or(v);
        let ptr = moved(data.args[0]);
        let ty = self.maker.func.dfg.ty(ptr).with_elem(Elem::I1);
        let mut mask = match ty.is_scalar() {
            true => iteration.exists,
            false => self
                .maker
                .value(TileOp::Splat, &[iteration.exists], &[], ty),
        };
        if let Some(&own) = data.args.get(1) {
            mask = self.maker.value(TileOp::And, &[moved(own), mask], &[], ty);
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
        let params = self.maker.func.dfg.blocks[self.plan.body].params.clone();
        map.insert(params[0], iteration.counter);
        for (&position, &value) in ahead.carried.iter().zip(values) {
            map.insert(params[1 + position], value);
        }
        for &inst in &ahead.insts {
            let copy = copy_of(self.maker.func, inst, map);
            self.maker.made.push(copy);
        }
    }

    /// Makes carried values those of the next iteration.
    fn advance(&self, ahead: &Ahead, values: &mut [Value], map: &FxHashMap<Value, Value>) {
        let Some(last) = self.maker.func.order.last(self.plan.body) else {
            return;
        };
        let yielded = &self.maker.func.dfg.insts[last].args;
        for (&position, value) in ahead.carried.iter().zip(values) {
            if let Some(&next) = yielded.get(position) {
                *value = map.get(&next).copied().unwrap_or(next);
            }
        }
    }
}
