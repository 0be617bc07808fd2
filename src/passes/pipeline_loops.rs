//! Software pipelines: loads that feed products of matrices become copies to shared memory, some iterations ahead.
//!
//! ```text
//! for i in 0..n {                     copy(0); commit -> t1; copy(1); commit -> t2      (where there are such iterations)
//!     x = load p(i)                   for i in 0..n carrying t1, t2 {
//!     acc = dot x, .., acc     =>         wait t1; copy(i + 2) to the entry read last; commit -> t
//! }                                       x = shared_load(i mod 3); acc = dot x, .., acc
//!                                         yield t2, t
//!                                     }
//!                                     wait t1, t2
//! ```
//!
//! A pipeline of S stages has a ring of S entries for each load, S - 1 iterations in flight, and no code of its own for the
//! first and the last iterations: copies of iterations that do not exist are masked off, and zeros arrive instead. What the
//! addresses and masks of the loads are computed from (their *slice*) runs ahead: before the loop for the first iterations, and
//! inside of it on carried values of its own. Which group a wait means follows from the distance of its token.
//!
//! Where the target has no copies, or some load allows none of 4 bytes or more, all loads go through registers instead: an
//! iteration loads what the next one needs when it begins and stores it to the other entry of a ring of two when it ends.
//!
//! A loop is pipelined if it is innermost, its step is known, and has `stages` above 1 ([`DEFAULT_STAGES`] if it says nothing).
//! A load takes part if a product of matrices uses it through ops on elements and changes of shape, if its slice has no
//! effects and no loads, and if it gives zero where it is masked off. There are fewer stages where shared memory is short.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::analysis::axis::Axis;
use crate::ir::attrs::{Attr, AttrKind, Attrs, IntPred, make};
use crate::ir::dfg::{InstData, SourceLoc, ValueDef, ValueList};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::level::Tile;
use crate::ir::ops::{Effect, TileOp};
use crate::ir::types::{Elem, TileType, ValueType};
use crate::settings::Target;
use crate::settings::diversity::Choices;

/// Stages of loops that say nothing.
pub const DEFAULT_STAGES: u8 = 3;

/// Most stages.
const MAX_STAGES: u32 = 8;

/// Fewest bytes that a copy moves at once.
const MIN_BYTES: u32 = 4;

/// Part of shared memory in quarters that pipelines may take.
const SHARE: u32 = 4;

/// Pipelines loops; gives how many. `axis` was computed for the function as it is. Other `choices` change the number of stages
/// and the way.
pub fn pipeline_loops(
    func: &mut TileFunction,
    axis: &Axis,
    target: Target,
    mut choices: Choices,
) -> usize {
    let loops: Vec<(Block, Inst)> = func
        .all_blocks()
        .into_iter()
        .flat_map(|block| {
            let insts = func.order.insts(block).iter();
            insts.map(move |&inst| (block, inst))
        })
        .filter(|&(_, inst)| func.dfg.insts[inst].op == TileOp::For)
        .collect();
    let taken = func
        .buffers
        .values()
        .flatten()
        .map(|b| b.stage_bytes() * b.stages);
    let mut room = (target.shared_limit() / 4 * SHARE).saturating_sub(taken.sum());
    let mut count = 0;
    for (block, inst) in loops {
        if let Some(plan) = plan(func, axis, inst, (target, room), &mut choices) {
            let rings = plan.loads.iter().map(|l| l.bytes * plan.stages);
            room -= rings.sum::<u32>();
            Pipeliner::new(func, plan).run(block, inst);
            count += 1;
        }
    }
    count
}

/// A load that becomes a copy.
struct Load {
    inst: Inst,
    ty: TileType,
    /// Bytes of a block.
    bytes: u32,
    /// Whether copies can move it 4 bytes or more at a time.
    copies: bool,
}

/// What becomes of a loop.
struct Plan {
    body: Block,
    loads: Vec<Load>,
    /// Entries of the rings; one more than the iterations under way.
    stages: u32,
    /// Whether what is loaded goes through registers.
    staged: bool,
    step: i64,
    /// Instructions of the body that run ahead, in order.
    ahead: Vec<Inst>,
    /// Positions of the carried values that run ahead.
    carried: Vec<usize>,
}

/// The loop's pipeline, if there is to be one within so many bytes of shared memory.
fn plan(
    func: &TileFunction,
    axis: &Axis,
    inst: Inst,
    (target, room): (Target, u32),
    choices: &mut Choices,
) -> Option<Plan> {
    let data = &func.dfg.insts[inst];
    let body = data.blocks.first()?.block;
    let stages = match choices.chance(50) {
        true => 1 + choices.below(5) as u32,
        false => u32::from(data.stages().copied().unwrap_or(DEFAULT_STAGES)).min(MAX_STAGES),
    };
    if stages < 2 {
        return None;
    }
    let insts = func.order.insts(body);
    if !insts.iter().all(|&i| may_stand(func, i)) {
        return None;
    }
    let step = constant(func, data.args[2]).filter(|&s| s > 0)?;
    let feeding = feeding(func, body);
    let mut loads = Vec::new();
    let mut slice = Slice::new(func, body);
    let mut bytes_of_stage = 0;
    for &inst in insts {
        let load = &func.dfg.insts[inst];
        if load.op != TileOp::Load || !feeding.contains(load.results[0]) {
            continue;
        }
        let Some(found) = copied(func, axis, inst) else {
            continue;
        };
        let mut with = slice.clone();
        if load.args.iter().take(2).all(|&arg| with.add(arg)) {
            slice = with;
            bytes_of_stage += found.bytes;
            loads.push(found);
        }
    }
    let must_stage = target.sm < 80 || !loads.iter().all(|load| load.copies);
    let staged = must_stage || choices.chance(25);
    let wanted = if staged { 2 } else { stages };
    let stages = wanted.min(room.checked_div(bytes_of_stage)?);
    let fits = (stages as i64).checked_mul(step)? <= i64::from(i32::MAX);
    if stages < 2 || !fits {
        return None;
    }
    let ahead = insts.iter().copied().filter(|&i| slice.insts.contains(i));
    Some(Plan {
        body,
        loads,
        stages,
        staged,
        step,
        ahead: ahead.collect(),
        carried: slice.carried,
    })
}

/// Whether a loop with the instruction in it can be pipelined: it is no loop, and nothing in it orders accesses to memory.
fn may_stand(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let is_ordered = match data.op {
        TileOp::For | TileOp::While | TileOp::AtomicRmw | TileOp::AtomicCas => true,
        _ => data.effect() == Effect::Sync,
    };
    let inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    !is_ordered && inner.into_iter().all(|&inst| may_stand(func, inst))
}

/// The number a scalar is.
fn constant(func: &TileFunction, value: Value) -> Option<i64> {
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    let bits = func.dfg.ty(value).elem.bits();
    let raw = *data.value().filter(|_| data.op == TileOp::Const)?;
    Some((raw << (64 - bits)) as i64 >> (64 - bits))
}

/// Values of the body that products of matrices are made of, through ops on elements and changes of shape.
fn feeding(func: &TileFunction, body: Block) -> EntitySet<Value> {
    let mut found = EntitySet::new();
    for &inst in func.order.insts(body).iter().rev() {
        let data = &func.dfg.insts[inst];
        if data.op == TileOp::Dot {
            found.extend(data.args[..2].iter().copied());
        } else if data.results.iter().any(|&v| found.contains(v)) && data.effect() == Effect::Pure {
            found.extend(data.args.iter().copied());
        }
    }
    found
}

/// The load as a copy, if it can be one.
fn copied(func: &TileFunction, axis: &Axis, inst: Inst) -> Option<Load> {
    let data = &func.dfg.insts[inst];
    let ty = func.dfg.ty(data.results[0]);
    let other = data.args.get(2);
    let is_zero = |&v: &Value| uniform_bits(func, v) == Some(0);
    if ty.is_scalar()
        || data.volatile().is_some()
        || ty.elem.bits() < 8
        || !other.is_none_or(is_zero)
    {
        return None;
    }
    let (ptr, mask) = (data.args[0], data.args.get(1).copied());
    let width = |dim: usize| axis.vector_width(func, ptr, mask, dim, 16) as u32;
    let widest = (0..ty.shape.rank()).map(width).max()?;
    Some(Load {
        inst,
        ty,
        bytes: ty.elem.bytes() << ty.shape.log2_elements(),
        copies: MIN_BYTES <= widest * ty.elem.bytes(),
    })
}

/// The bits in every element of a block.
fn uniform_bits(func: &TileFunction, value: Value) -> Option<u64> {
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    match data.op {
        TileOp::Const => data.value().copied(),
        TileOp::Splat | TileOp::Broadcast => uniform_bits(func, data.args[0]),
        _ => None,
    }
}

/// What values of a loop's body are computed from.
#[derive(Clone)]
struct Slice<'a> {
    func: &'a TileFunction,
    body: Block,
    insts: EntitySet<Inst>,
    carried: Vec<usize>,
}

impl<'a> Slice<'a> {
    fn new(func: &'a TileFunction, body: Block) -> Slice<'a> {
        Slice {
            func,
            body,
            insts: EntitySet::new(),
            carried: Vec::new(),
        }
    }

    /// Adds what a value is computed from; false if that cannot run ahead.
    fn add(&mut self, value: Value) -> bool {
        let mut stack = vec![value];
        while let Some(value) = stack.pop() {
            match self.func.dfg.values[value].def {
                ValueDef::Param(block, 0) if block == self.body => {}
                ValueDef::Param(block, number) if block == self.body => {
                    let position = usize::from(number) - 1;
                    if !self.carried.contains(&position) {
                        self.carried.push(position);
                        let last = self.func.order.last(self.body);
                        let yielded = last.map(|y| &self.func.dfg.insts[y].args);
                        match yielded.and_then(|args| args.get(position)) {
                            Some(&next) => stack.push(next),
                            None => return false,
                        }
                    }
                }
                ValueDef::Param(..) => {}
                ValueDef::Result(inst, _) => {
                    if self.func.order.block_of(inst) != Some(self.body) {
                        continue;
                    }
                    let data = &self.func.dfg.insts[inst];
                    if data.effect() != Effect::Pure {
                        return false;
                    }
                    if self.insts.insert(inst) {
                        stack.extend(&data.args);
                    }
                }
            }
        }
        true
    }
}

/// What was started for an iteration.
enum Started {
    /// Copies.
    Group(Value),
    /// Loads, for each ring.
    Blocks(Vec<Value>),
}

/// Rewrites one loop.
struct Pipeliner<'a> {
    func: &'a mut TileFunction,
    plan: Plan,
    slots: Vec<Slot>,
    loc: SourceLoc,
    /// Instructions made, to be put somewhere.
    made: Vec<Inst>,
}

impl<'a> Pipeliner<'a> {
    fn new(func: &'a mut TileFunction, plan: Plan) -> Pipeliner<'a> {
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

    fn run(mut self, block: Block, inst: Inst) {
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
        let token = TileType::scalar(Elem::Token);

        // Before the loop: the first iterations.
        let (lo, hi) = (data.args[0], data.args[1]);
        let counter = self.func.dfg.ty(lo);
        let enters = self.compare(IntPred::Slt, lo, hi);
        let length = self.value(TileOp::Isub, &[hi, lo], &[], counter);
        let positions = self.plan.carried.clone();
        let mut ahead: Vec<Value> = positions.iter().map(|&p| data.args[3 + p]).collect();
        let mut tokens = Vec::new();
        for k in 0..stages - 1 {
            let distance = self.number(i64::from(k) * self.plan.step, counter);
            let iv = self.value(TileOp::Iadd, &[lo, distance], &[], counter);
            let is_left = self.compare(IntPred::Ult, distance, length);
            let pred = match k {
                0 => enters,
                _ => {
                    let ty = TileType::scalar(Elem::I1);
                    self.value(TileOp::And, &[enters, is_left], &[], ty)
                }
            };
            let entry = self.number(i64::from(k), i32);
            let started = self.iteration(iv, &mut ahead, pred, entry);
            match started {
                Started::Group(group) => tokens.push(group),
                Started::Blocks(blocks) => self.store_all(&blocks, entry),
            }
        }
        let first = self.number(0, i32);
        let free = self.number(i64::from(stages) - 1, i32);
        let before = std::mem::take(&mut self.made);

        // The loop: what runs ahead comes first.
        let iv = self.func.dfg.blocks[body].params[0];
        let mut param = |ty| self.func.dfg.append_param(body, ty);
        let tokens_in: Vec<Value> = tokens.iter().map(|_| param(token)).collect();
        let (read, write) = (param(i32), param(i32));
        let ahead_in: Vec<Value> = positions
            .iter()
            .map(|&p| {
                let ty = self.func.dfg.ty(data.args[3 + p]);
                self.func.dfg.append_param(body, ty)
            })
            .collect();
        if let Some(&oldest) = tokens_in.first() {
            self.emit(TileOp::AsyncWait, &[oldest], &[], &[]);
        }
        let distance = self.number(i64::from(stages - 1) * self.plan.step, counter);
        let later = self.value(TileOp::Iadd, &[iv, distance], &[], counter);
        let left = self.value(TileOp::Isub, &[hi, iv], &[], counter);
        let pred = self.compare(IntPred::Ult, distance, left);
        let mut ahead_out = ahead_in.clone();
        let started = self.iteration(later, &mut ahead_out, pred, write);
        let one = self.number(1, i32);
        let next = self.value(TileOp::Iadd, &[read, one], &[], i32);
        let end = self.number(i64::from(stages), i32);
        let wraps = self.compare(IntPred::Eq, next, end);
        let zero = self.number(0, i32);
        let next = self.value(TileOp::Select, &[wraps, zero, next], &[], i32);
        let mut inside = std::mem::take(&mut self.made);
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
        let mut group = None;
        match started {
            Started::Group(token) => group = Some(token),
            Started::Blocks(blocks) => {
                self.store_all(&blocks, write);
                inside.append(&mut self.made);
            }
        }
        inside.extend(last);
        self.func.order.replace(body, inside);
        if let Some(last) = last {
            let args = &mut self.func.dfg.insts[last].args;
            args.extend(tokens_in.iter().skip(1).copied());
            args.extend(group);
            args.extend([next, read]);
            args.extend(ahead_out);
        }

        // The loop itself has more results now.
        let mut args = data.args.clone();
        args.extend(tokens.iter().copied());
        args.extend([first, free]);
        args.extend(ahead);
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
    fn store_all(&mut self, blocks: &[Value], entry: Value) {
        for (i, &loaded) in blocks.iter().enumerate() {
            let attrs = [make::slot(self.slots[i])];
            self.emit(TileOp::SharedStore, &[loaded, entry], &attrs, &[]);
        }
    }

    /// Starts to bring what one iteration needs, where `pred` is true. `ahead` holds the carried values that run ahead, and
    /// afterwards those of the next iteration.
    fn iteration(&mut self, iv: Value, ahead: &mut [Value], pred: Value, entry: Value) -> Started {
        let body = self.plan.body;
        let params = self.func.dfg.blocks[body].params.clone();
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        map.insert(params[0], iv);
        for (&position, &value) in self.plan.carried.iter().zip(ahead.iter()) {
            map.insert(params[1 + position], value);
        }
        for inst in self.plan.ahead.clone() {
            let mut data = self.func.dfg.insts[inst].clone();
            let old = std::mem::take(&mut data.results);
            for arg in &mut data.args {
                *arg = map.get(arg).copied().unwrap_or(*arg);
            }
            let types: Vec<TileType> = old.iter().map(|&v| self.func.dfg.ty(v)).collect();
            let copy = self.func.dfg.make_inst(data, &types);
            self.made.push(copy);
            let new = &self.func.dfg.insts[copy].results;
            map.extend(old.iter().copied().zip(new.iter().copied()));
        }
        let token = TileType::scalar(Elem::Token);
        let mut copies = Vec::new();
        for i in 0..self.plan.loads.len() {
            let inst = self.plan.loads[i].inst;
            let data = self.func.dfg.insts[inst].clone();
            let moved = |v: Value| map.get(&v).copied().unwrap_or(v);
            let ptr = moved(data.args[0]);
            let ty = self.func.dfg.ty(ptr).with_elem(Elem::I1);
            let mut mask = self.value(TileOp::Splat, &[pred], &[], ty);
            if let Some(&own) = data.args.get(1) {
                mask = self.value(TileOp::And, &[moved(own), mask], &[], ty);
            }
            let kept = [AttrKind::Cache, AttrKind::Evict];
            let kept = data.attrs.iter().filter(|a| kept.contains(&a.kind()));
            let mut attrs: Vec<Attr> = kept.cloned().collect();
            let copy = if self.plan.staged {
                let ty = self.plan.loads[i].ty;
                self.value(TileOp::Load, &[ptr, mask], &attrs, ty)
            } else {
                attrs.push(make::slot(self.slots[i]));
                self.value(TileOp::AsyncCopy, &[ptr, entry, mask], &attrs, token)
            };
            copies.push(copy);
        }
        let started = match self.plan.staged {
            true => Started::Blocks(copies),
            false => Started::Group(self.value(TileOp::AsyncCommit, &copies, &[], token)),
        };
        let last = self.func.order.last(body);
        let yielded = last.map(|y| self.func.dfg.insts[y].args.clone());
        for (&position, value) in self.plan.carried.iter().zip(ahead) {
            if let Some(&next) = yielded.as_ref().and_then(|args| args.get(position)) {
                *value = map.get(&next).copied().unwrap_or(next);
            }
        }
        started
    }
}

#[cfg(test)]
mod tests {
    use super::pipeline_loops;
    use crate::analysis::async_groups::AsyncGroups;
    use crate::analysis::axis::Axis;
    use crate::ir::dfg::{SourceLine, SourceLoc};
    use crate::ir::entities::Inst;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::passes::testing::{parse, run, verified};
    use crate::settings::Target;
    use crate::settings::diversity::Choices;

    /// Sums up the products of blocks of 16 columns with blocks of 16 rows, `count` of them.
    fn sum_of_products(count: u32, attrs: &str, body: &str) -> TileFunction {
        parse(&text(count, attrs, body))
    }

    fn text(count: u32, attrs: &str, body: &str) -> String {
        format!(
            "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: ptr<f32> {{divisible = 16}}, v2: ptr<f32>) warps(1) {{
            block0:
                v3 = const {{value = 0}} : i32
                v4 = const {{value = {count}}} : i32
                v5 = const {{value = 1}} : i32
                v6 = arange {{start = 0}} : i32[256]
                v7 = reshape v6 : i32[16,16]
                v8 = splat v0 : ptr<f32>[16,16]
                v9 = addptr v8, v7 : ptr<f32>[16,16]
                v10 = splat v1 : ptr<f32>[16,16]
                v11 = const {{value = 0.0}} : f32[16,16]
                v12 = const {{value = 256}} : i32
                v13 = const {{value = 256}} : i32[16,16]
                v30, v31 = for v3, v4, v5, v11, v9 {{{attrs}}} : f32[16,16], ptr<f32>[16,16] {{
                block1(v14: i32, v15: f32[16,16], v16: ptr<f32>[16,16]):
                    v17 = load v16 : f32[16,16]
                    v18 = imul v14, v12 : i32
                    v19 = splat v18 : i32[16,16]
                    v20 = iadd v19, v7 : i32[16,16]
                    v21 = addptr v10, v20 : ptr<f32>[16,16]
                    v22 = load v21 : f32[16,16]
                    {body}
                    v23 = dot v17, v22, v15 {{precision = ieee}} : f32[16,16]
                    v24 = addptr v16, v13 : ptr<f32>[16,16]
                    yield v23, v24
                }}
                v40 = splat v2 : ptr<f32>[16,16]
                v41 = addptr v40, v7 : ptr<f32>[16,16]
                store v41, v30
                return
            }}"
        )
    }

    fn pipelined(func: &TileFunction, target: Target) -> (usize, TileFunction) {
        let mut func = func.clone();
        let axis = Axis::compute(&func);
        let count = pipeline_loops(&mut func, &axis, target, Choices::none());
        verified(&func);
        (count, func)
    }

    fn count(func: &TileFunction, op: TileOp) -> usize {
        let blocks = func.all_blocks();
        let insts = blocks.iter().flat_map(|&b| func.order.insts(b));
        insts.filter(|&&i| func.dfg.insts[i].op == op).count()
    }

    #[test]
    fn sums_stay_what_they_are() {
        for iterations in [0, 1, 2, 3, 7] {
            let func = sum_of_products(iterations, "stages = 4", "");
            let numbers = |seed: u32| -> Vec<u8> {
                let number = |i: u32| ((i * seed) % 13) as f32 - 6.0;
                let count = 256 * iterations.max(1);
                (0..count).flat_map(|i| number(i).to_le_bytes()).collect()
            };
            let buffers = [numbers(7), numbers(11), vec![0; 1024]];
            let expected = run(&func, &buffers);
            for target in [Target::SM_75, Target::SM_80] {
                let (changes, func) = pipelined(&func, target);
                assert_eq!(changes, 1);
                assert_eq!(run(&func, &buffers), expected, "{iterations} on {target}");
            }
        }
    }

    #[test]
    fn stages_run_ahead() {
        let (_, func) = pipelined(&sum_of_products(9, "stages = 4", ""), Target::SM_80);
        // Three iterations ahead, and one copy of each load in the loop.
        assert_eq!(count(&func, TileOp::AsyncCopy), 2 * 4);
        assert_eq!(count(&func, TileOp::AsyncCommit), 4);
        assert_eq!(count(&func, TileOp::SharedLoad), 2);
        assert_eq!(count(&func, TileOp::Load), 0);
        let groups = AsyncGroups::compute(&func);
        let waits = func.dfg.insts.keys();
        let waits = waits.filter(|&i| func.dfg.insts[i].op == TileOp::AsyncWait);
        let pending: Vec<u32> = waits.map(|i| groups.pending(i)).collect();
        assert_eq!(pending, [2, 0], "in the loop, and behind it");
        let rings = func.buffers.values().flatten();
        assert!(rings.into_iter().all(|ring| ring.stages == 4));
    }

    #[test]
    fn the_loop_keeps_its_line() {
        let mut func = sum_of_products(9, "stages = 3", "");
        let is_loop = |func: &TileFunction, &inst: &Inst| func.dfg.insts[inst].op == TileOp::For;
        let of = |func: &TileFunction| {
            let insts = func.order.insts(func.entry).iter();
            insts.copied().find(|inst| is_loop(func, inst))
        };
        let line = SourceLoc(Some(SourceLine(7)).into());
        let before = of(&func).expect("there is one");
        func.dfg.insts[before].loc = line;
        let (_, func) = pipelined(&func, Target::SM_80);
        let after = of(&func).expect("it stays one");
        assert_eq!(func.dfg.insts[after].loc, line);
    }

    #[test]
    fn without_copies_blocks_go_through_registers() {
        let (_, func) = pipelined(&sum_of_products(9, "stages = 4", ""), Target::SM_75);
        assert_eq!(count(&func, TileOp::AsyncCopy), 0);
        assert_eq!(count(&func, TileOp::Load), 2 * 2);
        assert_eq!(count(&func, TileOp::SharedStore), 2 * 2);
        assert_eq!(count(&func, TileOp::SharedLoad), 2);
    }

    #[test]
    fn some_loops_stay() {
        for (attrs, body) in [
            ("stages = 1", ""),
            // What the barrier orders may not move across it.
            ("stages = 3", "barrier"),
        ] {
            let func = sum_of_products(9, attrs, body);
            let (changes, after) = pipelined(&func, Target::SM_80);
            assert_eq!(changes, 0, "{attrs} {body}");
            assert_eq!(after.to_string(), func.to_string());
        }
    }

    #[test]
    fn factors_of_computed_numbers_and_of_four_bytes_are_copied() {
        let computed = text(9, "stages = 4", "v50 = fneg v17 : f32[16,16]");
        let computed = computed.replace("dot v17", "dot v50");
        // One element of the second factor at a time.
        let narrow =
            text(9, "stages = 4", "").replace("v1: ptr<f32> {divisible = 16}", "v1: ptr<f32>");
        for text in [computed, narrow] {
            let (changes, func) = pipelined(&parse(&text), Target::SM_80);
            assert_eq!((changes, count(&func, TileOp::AsyncCopy)), (1, 2 * 4));
        }
    }

    #[test]
    fn a_volatile_load_stays_in_its_iteration() {
        let func = sum_of_products(9, "stages = 3", "v50 = load v16 {volatile} : f32[16,16]");
        let (changes, func) = pipelined(&func, Target::SM_80);
        assert_eq!((changes, count(&func, TileOp::Load)), (1, 1));
    }
}
