//! Makes the nest of a loop over the parts of tiles.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Branch, Carried, Flat, defined_by, either, number};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::BlockCall;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::tile::edit::{copy_of, read_by, rename_uses, signed};

/// Puts a nest in the loop's place; none if something is missing that it needs.
pub(super) fn nest(flat: &Flat, func: &mut TileFunction) -> Option<()> {
    let data = func.dfg.insts[flat.inst].clone();
    let block = func.order.block_of(flat.inst)?;
    let own = |at: &usize| *at != flat.counter.position;
    let own: Vec<usize> = (0..data.results.len()).filter(own).collect();
    let params = func.dfg.blocks[flat.body].params[1..].to_vec();
    let all = data.args[1];
    let first: Vec<Value> = own.iter().map(|&at| data.args[3 + at]).collect();
    // What begins with the same number for each tile needs not be carried.
    let is_anew = |(carried, &first): (&Carried, &Value)| begins_anew(func, flat, carried, first);
    let anew: Vec<bool> = flat.carried.iter().zip(&first).map(is_anew).collect();
    let passed_on = |values: &[Value]| -> Vec<Value> {
        let values = values.iter().zip(&anew);
        values
            .filter(|&(_, anew)| !anew)
            .map(|(&value, _)| value)
            .collect()
    };
    let mut maker = Maker::near(func, flat.inst);
    let [zero, one] = [0, 1].map(|n| maker.number(n, number()));
    let mut known = Known::new(&flat.inside);
    let bound = known.value(&mut maker, flat.counter.bound)?;
    let parts = match flat.counter.is_last {
        true => maker.value(TileOp::Iadd, &[bound, one], &[], number()),
        false => bound,
    };
    let rounds = Rounds::of(&mut maker, parts, all);
    let mut progressions = Vec::new();
    for ((carried, &at), &first) in flat.carried.iter().zip(&own).zip(&first) {
        progressions.extend(Progression::of(
            &mut maker, flat, carried, params[at], first,
        ));
    }
    let mut args = vec![zero, rounds.count, one];
    args.extend(passed_on(&first));
    let (outer, region, outer_params) = for_loop(&mut maker, &args);
    let before = std::mem::take(&mut maker.made);

    // What is computed once for a tile.
    let count = rounds.iterations(&mut maker, outer_params[0], all);
    let numbers: Vec<(Value, Value)> = progressions
        .iter()
        .map(|it| (it.next, it.at(&mut maker, outer_params[0])))
        .collect();
    let mut given = outer_params[1..].iter();
    let mut starts = Vec::new();
    for (&first, anew) in first.iter().zip(&anew) {
        starts.push(if *anew { first } else { *given.next()? });
    }
    let mut known = Known::new(&flat.inside);
    known
        .map
        .extend(own.iter().map(|&at| params[at]).zip(starts.iter().copied()));
    known.map.insert(flat.counter.index, zero);
    known.map.extend(numbers.iter().copied());
    if let Some(head) = &flat.head {
        known.needed(&mut maker, head)?;
        known.copies(&mut maker, &head.list);
        for (carried, start) in flat.carried.iter().zip(&mut starts) {
            if let Some(at) = carried.by_head {
                *start = known.value(&mut maker, head.gives[at])?;
            }
        }
    }

    // The parts.
    let held = || {
        flat.carried
            .iter()
            .zip(&starts)
            .filter(|(carried, _)| carried.is_held())
    };
    let moved = || {
        flat.carried
            .iter()
            .zip(&starts)
            .filter(|(carried, _)| !carried.is_held())
    };
    let mut args = vec![zero, count, one];
    args.extend(moved().map(|(_, &start)| start));
    let (inner, inner_region, inner_params) = for_loop(&mut maker, &args);
    maker.func.dfg.insts[inner].attrs.clone_from(&data.attrs);
    let outside = std::mem::take(&mut maker.made);
    let mut inside = Known::new(&flat.inside);
    inside
        .map
        .extend(held().map(|(carried, &start)| (carried.param, start)));
    let mut behind = Known::new(&flat.inside);
    behind.map.clone_from(&inside.map);
    behind.map.extend(numbers.iter().copied());
    let moving = moved().map(|(carried, _)| carried.param);
    inside
        .map
        .extend(moving.zip(inner_params[1..].iter().copied()));
    inside.map.insert(flat.counter.index, inner_params[0]);
    inside.copies(&mut maker, &flat.list);
    let next = moved()
        .map(|(carried, _)| inside.of(carried.next))
        .collect::<Vec<Value>>();
    maker.build(TileOp::Yield, &next, &[], &[]);
    let made = std::mem::take(&mut maker.made);
    maker.func.order.replace(inner_region, made);

    // What is done with a tile at its end.
    let sums = maker.func.dfg.insts[inner].results.clone();
    let mut sums = sums.iter();
    let mut ends = Vec::new();
    for (carried, &start) in flat.carried.iter().zip(&starts) {
        if carried.is_held() {
            ends.push(start);
            continue;
        }
        let sum = *sums.next()?;
        if flat.inside.contains(&carried.next) {
            behind.map.insert(carried.next, sum);
        }
        ends.push(sum);
    }
    let last = maker.value(TileOp::Isub, &[count, one], &[], number());
    behind.map.insert(flat.counter.index, last);
    if let Some(tail) = &flat.tail {
        let is_whole = maker.compare(IntPred::Eq, count, rounds.parts);
        end_tile(&mut maker, flat, tail, &mut behind, is_whole, &mut ends)?;
    }
    maker.build(TileOp::Yield, &passed_on(&ends), &[], &[]);
    let behind = std::mem::take(&mut maker.made);
    maker.func.order.replace(region, [outside, behind].concat());

    let results = func.dfg.insts[outer].results.clone();
    let old: Vec<Value> = own.iter().map(|&at| data.results[at]).collect();
    for (&old, &new) in passed_on(&old).iter().zip(&results) {
        rename_uses(func, old, new);
    }
    let mut list = func.order.insts(block).to_vec();
    let at = list.iter().position(|&inst| inst == flat.inst)?;
    list.splice(at..=at, before);
    func.order.replace(block, list);
    Some(())
}

/// How a loop's iterations are divided.
struct Rounds {
    /// Parts of a tile.
    parts: Value,
    is_positive: Value,
    /// Those, or 1.
    step: Value,
    count: Value,
}

impl Rounds {
    /// Of so many iterations; without parts, all are one round.
    fn of(maker: &mut Maker<'_, Tile>, parts: Value, all: Value) -> Rounds {
        let ty = number();
        let [zero, one] = [0, 1].map(|n| maker.number(n, ty));
        let is_positive = maker.compare(IntPred::Sgt, parts, zero);
        let step = maker.value(TileOp::Smax, &[parts, one], &[], ty);
        let some = maker.value(TileOp::Smax, &[all, zero], &[], ty);
        let single = maker.value(TileOp::Smin, &[some, one], &[], ty);
        // Rounded up as a product, whose range is exact where the numbers are known.
        let last = maker.value(TileOp::Isub, &[some, one], &[], ty);
        let before = maker.value(TileOp::Sdiv, &[last, step], &[], ty);
        let counted = maker.value(TileOp::Iadd, &[before, one], &[], ty);
        let counted = maker.value(TileOp::Imul, &[counted, single], &[], ty);
        Rounds {
            parts,
            is_positive,
            step,
            count: maker.value(TileOp::Select, &[is_positive, counted, single], &[], ty),
        }
    }

    /// Iterations of one round.
    fn iterations(&self, maker: &mut Maker<'_, Tile>, round: Value, all: Value) -> Value {
        let ty = number();
        let passed = maker.value(TileOp::Imul, &[round, self.step], &[], ty);
        let left = maker.value(TileOp::Isub, &[all, passed], &[], ty);
        let some = maker.value(TileOp::Smin, &[self.step, left], &[], ty);
        maker.value(TileOp::Select, &[self.is_positive, some, left], &[], ty)
    }
}

/// What head or tail adds the same number to for each tile: the number of a tile. Computed from the round it has bounds.
struct Progression {
    /// What the addition gives.
    next: Value,
    /// That of the first round.
    first: Value,
    /// What is taken off: of a sum with a program's index nobody would ask whether what divides it is positive
    /// ([`AxisInfo::is_index`](crate::analysis::axis::AxisInfo::is_index)).
    less: Value,
}

impl Progression {
    fn of(
        maker: &mut Maker<'_, Tile>,
        flat: &Flat,
        carried: &Carried,
        param: Value,
        first: Value,
    ) -> Option<Progression> {
        let next = match (carried.by_head, carried.by_tail) {
            (Some(at), None) => flat.head.as_ref()?.gives[at],
            (None, Some(at)) if !carried.is_read => flat.tail.as_ref()?.gives[at],
            _ => return None,
        };
        let func = &maker.func;
        let sum = &func.dfg.insts[func.dfg.def_inst(next)?];
        if sum.op != TileOp::Iadd || !carried.is_held() || func.dfg.ty(next) != number() {
            return None;
        }
        let by = either(&sum.args, param)?;
        let known = signed(func, by);
        if known.is_none() && flat.inside.contains(&by) {
            return None;
        }
        // Most begin one step back.
        let is_step = |value: Value| value == by || known.is_some() && signed(func, value) == known;
        let back = func.dfg.def_inst(first).map(|inst| &func.dfg.insts[inst]);
        let back = back.filter(|data| data.op == TileOp::Isub && is_step(data.args[1]));
        let begin = back.map(|data| data.args[0]);
        let less = match known {
            Some(known) => maker.number(known.wrapping_neg(), number()),
            None => {
                let zero = maker.number(0, number());
                maker.value(TileOp::Isub, &[zero, by], &[], number())
            }
        };
        let first = match begin {
            Some(begin) => begin,
            None => maker.value(TileOp::Isub, &[first, less], &[], number()),
        };
        Some(Progression { next, first, less })
    }

    /// What the addition gives in a round.
    fn at(&self, maker: &mut Maker<'_, Tile>, round: Value) -> Value {
        let moved = maker.value(TileOp::Imul, &[round, self.less], &[], number());
        maker.value(TileOp::Isub, &[self.first, moved], &[], number())
    }
}

/// Makes the tail, which a round without a last part does not have, and puts what it gives among what rounds leave.
fn end_tile(
    maker: &mut Maker<'_, Tile>,
    flat: &Flat,
    tail: &Branch,
    behind: &mut Known<'_>,
    is_whole: Value,
    ends: &mut [Value],
) -> Option<()> {
    behind.needed(maker, tail)?;
    let mut branched = Vec::new();
    for (k, carried) in flat.carried.iter().enumerate() {
        let Some(at) = carried.by_tail else {
            continue;
        };
        // No round follows one without a tail.
        let always = (!carried.is_read).then(|| behind.value(maker, tail.gives[at]));
        match always.flatten() {
            Some(value) => ends[k] = value,
            None => branched.push((k, at)),
        }
    }
    let types = branched.iter().map(|&(k, _)| maker.func.dfg.ty(ends[k]));
    let types: Vec<TileType> = types.collect();
    let old = maker.func.dfg.insts[tail.inst].clone();
    let branch = maker.build(TileOp::If, &[is_whole], old.attrs(), &types);
    maker.func.dfg.insts[branch].loc = old.loc;
    let in_front = std::mem::take(&mut maker.made);
    behind.copies(maker, &tail.list);
    let gives = branched
        .iter()
        .map(|&(_, at)| behind.value(maker, tail.gives[at]));
    let gives: Vec<Value> = gives.collect::<Option<_>>()?;
    let kept: Vec<Value> = branched.iter().map(|&(k, _)| ends[k]).collect();
    add_region(maker, branch, &gives);
    add_region(maker, branch, &kept);
    let results = maker.func.dfg.insts[branch].results.clone();
    for ((k, _), &result) in branched.iter().zip(&results) {
        ends[*k] = result;
    }
    maker.made = in_front;
    Some(())
}

/// Whether a tail leaves the number that the loop began with, and nothing is read behind the loop.
fn begins_anew(func: &TileFunction, flat: &Flat, carried: &Carried, first: Value) -> bool {
    let bits = |value: Value| {
        func.dfg
            .def_inst(value)
            .and_then(|inst| func.dfg.insts[inst].value())
    };
    let (Some(tail), Some(at)) = (&flat.tail, carried.by_tail) else {
        return false;
    };
    !carried.is_read && bits(first).is_some() && bits(first) == bits(tail.gives[at])
}

/// A loop without a body yet, its body and that one's parameters.
fn for_loop(maker: &mut Maker<'_, Tile>, args: &[Value]) -> (Inst, Block, Vec<Value>) {
    let types: Vec<TileType> = args[3..].iter().map(|&v| maker.func.dfg.ty(v)).collect();
    let region = maker.func.dfg.make_block();
    let params = std::iter::once(number()).chain(types.iter().copied());
    let params = params
        .map(|ty| maker.func.dfg.append_param(region, ty))
        .collect();
    let inst = maker.build(TileOp::For, args, &[], &types);
    maker.func.dfg.insts[inst]
        .blocks
        .push(BlockCall::region(region));
    (inst, region, params)
}

/// Gives a branch a region of what was made, which yields these values.
fn add_region(maker: &mut Maker<'_, Tile>, branch: Inst, gives: &[Value]) {
    maker.build(TileOp::Yield, gives, &[], &[]);
    let region = maker.func.dfg.make_block();
    let made = std::mem::take(&mut maker.made);
    maker.func.order.replace(region, made);
    maker.func.dfg.insts[branch]
        .blocks
        .push(BlockCall::region(region));
}

/// What stands at a place for values of a loop's body.
struct Known<'a> {
    inside: &'a FxHashSet<Value>,
    map: FxHashMap<Value, Value>,
}

impl Known<'_> {
    fn new(inside: &FxHashSet<Value>) -> Known<'_> {
        Known {
            inside,
            map: FxHashMap::default(),
        }
    }

    /// A value of the body, computed again if it takes nothing but numbers and rows of them; none if it can't be had here.
    fn value(&mut self, maker: &mut Maker<'_, Tile>, value: Value) -> Option<Value> {
        if let Some(&known) = self.map.get(&value) {
            return Some(known);
        }
        if !self.inside.contains(&value) {
            return Some(value);
        }
        let inst = maker.func.dfg.def_inst(value)?;
        let data = &maker.func.dfg.insts[inst];
        let is_little = matches!(
            data.class(),
            OpClass::Constant | OpClass::Elementwise | OpClass::Shape
        );
        if !is_little || !data.is_pure() || !data.blocks.is_empty() {
            return None;
        }
        let args = data.args.clone();
        for arg in args {
            self.value(maker, arg)?;
        }
        let copy = copy_of(maker.func, inst, &mut self.map);
        maker.made.push(copy);
        self.map.get(&value).copied()
    }

    /// A value of the body that is known here, or one of around it.
    fn of(&self, value: Value) -> Value {
        self.map.get(&value).copied().unwrap_or(value)
    }

    /// Makes copies of instructions of the body, but of what is known.
    fn copies(&mut self, maker: &mut Maker<'_, Tile>, list: &[Inst]) {
        for &inst in list {
            let results = &maker.func.dfg.insts[inst].results;
            if !results.is_empty() && results.iter().all(|value| self.map.contains_key(value)) {
                continue;
            }
            let copy = copy_of(maker.func, inst, &mut self.map);
            maker.made.push(copy);
        }
    }

    /// Makes what a branch reads of the body.
    fn needed(&mut self, maker: &mut Maker<'_, Tile>, branch: &Branch) -> Option<()> {
        let mut own = FxHashSet::default();
        let mut read = branch.gives.to_vec();
        for &inst in &branch.list {
            defined_by(maker.func, inst, &mut own);
            read_by(maker.func, inst, &mut read);
        }
        for value in read.into_iter().filter(|value| !own.contains(value)) {
            self.value(maker, value)?;
        }
        Some(())
    }
}
