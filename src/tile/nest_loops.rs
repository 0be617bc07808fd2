//! Loops that count the parts of tiles as nests: a loop over tiles, and one over the parts of each.
//!
//! ```text
//! for _ in 0..n carrying j = -1, p, s {             for t in 0..rounds carrying p, s {
//!     j = where(j == parts - 1, 0, j + 1)               p = head(p)
//!     p = if j == 0 { head(p) } else { p }              count = min(parts, n - t * parts)
//!     s = sum(p, j, s)                          =>      s = for j in 0..count carrying s { sum(p, j, s) }
//!     s = if j == parts - 1 { tail(p, s) }              s = if count == parts { tail(p, s) }
//!         else { s }                                        else { s }
//! }                                                 }
//! ```
//!
//! Authors who want loads of the next tile while the last one is stored write such loops for compilers that overlap within one loop
//! alone. As a nest, what belongs to a tile is computed once for each, its blocks of offsets are no longer carried through branches, and
//! what depends on sums over tiles (tensor maps, warps with roles) sees them.
//!
//! Nothing is assumed of the numbers. A loop that does not end with a tile, as its author's product `parts * tiles` wrapped, has a last
//! round of fewer parts, which has no tail. Where `parts` is not positive, one round has all iterations.

mod nest;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::edit::{read_by, signed};
use crate::analysis::affine::{Forms, Poly};
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Makes loops that multiply matrices and count parts of tiles nests; gives how many.
pub fn nest_loops(func: &mut TileFunction) -> usize {
    let mut count = 0;
    let mut seen = FxHashSet::default();
    let next = |func: &TileFunction, seen: &mut FxHashSet<Inst>| {
        let mut loops = func.insts_with(TileOp::For).map(|(_, inst)| inst);
        loops.find(|&inst| seen.insert(inst))
    };
    while let Some(inst) = next(func, &mut seen) {
        let Some(flat) = Flat::of(func, inst) else {
            continue;
        };
        // Whether all that the nest needs can be had shows as it is made.
        let mut nest = func.clone();
        if nest::nest(&flat, &mut nest).is_some() {
            *func = nest;
            count += 1;
        }
    }
    count
}

/// A branch whose other way leaves all as it is.
struct Branch {
    inst: Inst,
    /// What is done, without the yield.
    list: Vec<Inst>,
    /// What it gives.
    gives: SmallVec<[Value; 4]>,
    /// What the other way gives.
    otherwise: SmallVec<[Value; 4]>,
}

/// What is carried at a position.
struct Carried {
    /// The parameter of the loop, or what the head makes of it, which takes its place.
    param: Value,
    /// The place of that among the head's results.
    by_head: Option<usize>,
    /// What an iteration leaves, the tail aside.
    next: Value,
    /// The place among the tail's results of what it makes of that.
    by_tail: Option<usize>,
    /// Whether what the last iteration leaves is read behind the loop.
    is_read: bool,
}

impl Carried {
    /// Whether the parts of a tile do not change it.
    fn is_held(&self) -> bool {
        self.next == self.param
    }
}

/// Which part of its tile an iteration is.
struct Counter {
    /// Its position among what the loop carries.
    position: usize,
    /// What counts from 0.
    index: Value,
    /// What is the number of parts, or the last one's.
    bound: Value,
    is_last: bool,
    /// What goes on or begins again.
    chosen: Inst,
    /// What computes the next one from the one before, where nothing else reads it.
    step: SmallVec<[Inst; 3]>,
}

/// A loop that counts parts of tiles.
struct Flat {
    inst: Inst,
    body: Block,
    /// What it repeats, without the yield and what counts.
    list: Vec<Inst>,
    counter: Counter,
    head: Option<Branch>,
    tail: Option<Branch>,
    /// All but the counter, in order.
    carried: Vec<Carried>,
    /// What the body and its regions define.
    inside: FxHashSet<Value>,
}

impl Flat {
    fn of(func: &TileFunction, inst: Inst) -> Option<Flat> {
        let data = &func.dfg.insts[inst];
        let body = func.regions(inst).next()?;
        let params = &func.dfg.blocks[body].params;
        let (&end, list) = func.order.insts(body).split_last()?;
        let next = &func.dfg.insts[end].args;
        let is_counted = signed(func, data.args[0]) == Some(0)
            && signed(func, data.args[2]) == Some(1)
            && func.dfg.ty(data.args[1]) == number();
        if !is_counted || !func.any_inside(body, &InstData::is_product) {
            return None;
        }
        let uses = Uses::of(func, list, next);
        let counter = counter(func, data, params, next, &uses)?;
        let read: FxHashSet<Value> = func
            .all_insts()
            .flat_map(|(_, i)| func.dfg.uses(i))
            .collect();
        let is_read = |at: usize| read.contains(&data.results[at]);
        if uses.count(params[0]) > 0 || is_read(counter.position) {
            return None;
        }
        let order = ProgramOrder::compute(func);
        let mut forms = Forms::new(func, &order);
        let mut form = |value| {
            let form = forms.form(value)?;
            forms.holds_modulo(&form).then(|| form.poly.clone())
        };
        let mut last = form(counter.bound)?;
        if !counter.is_last {
            last = last.minus(&Poly::constant(1))?;
        }
        let mut found = [None, None];
        for (at, &branch) in list.iter().enumerate() {
            let other = match equal_to(func, branch, counter.index) {
                Some(other) if branch != counter.chosen => form(other)?,
                _ => continue,
            };
            let bounds = [&Poly::default(), &last];
            if let Some(k) = (0..2).find(|&k| found[k].is_none() && other == *bounds[k]) {
                found[k] = Some(at);
            }
        }
        let is_pure = |&inst: &Inst| inst == counter.chosen || func.dfg.insts[inst].is_pure();
        let [head, tail] = found;
        let in_order = head.zip(tail).is_none_or(|(head, tail)| head < tail);
        let before = &list[..head.unwrap_or(0)];
        let after = &list[tail.map_or(list.len(), |tail| tail + 1)..];
        if !in_order || found == [None, None] || !before.iter().chain(after).all(is_pure) {
            return None;
        }
        let take = |at: Option<usize>| match at {
            Some(at) => Branch::of(func, list[at]).map(Some),
            None => Some(None),
        };
        let (head, tail) = (take(head)?, take(tail)?);
        let carried = carried(
            func,
            &counter,
            [params, next],
            [&head, &tail],
            &uses,
            &is_read,
        )?;
        let gone = [&head, &tail].map(|branch| branch.as_ref().map(|branch| branch.inst));
        let is_gone = |inst: &Inst| gone.contains(&Some(*inst)) || counter.step.contains(inst);
        let mut inside: FxHashSet<Value> = params.iter().copied().collect();
        list.iter()
            .for_each(|&inst| defined_by(func, inst, &mut inside));
        Some(Flat {
            inst,
            body,
            list: list.iter().copied().filter(|inst| !is_gone(inst)).collect(),
            counter,
            head,
            tail,
            carried,
            inside,
        })
    }
}

/// What such loops count in.
fn number() -> TileType {
    TileType::scalar(Elem::I32)
}

/// What an instruction and its regions define.
fn defined_by(func: &TileFunction, inst: Inst, values: &mut FxHashSet<Value>) {
    values.extend(&func.dfg.insts[inst].results);
    for block in func.regions(inst) {
        values.extend(&func.dfg.blocks[block].params);
        for &inst in func.order.insts(block) {
            defined_by(func, inst, values);
        }
    }
}

/// How often the body of a loop reads its values, the yield included.
struct Uses(FxHashMap<Value, usize>);

impl Uses {
    fn of(func: &TileFunction, list: &[Inst], next: &[Value]) -> Uses {
        let mut read = next.to_vec();
        list.iter().for_each(|&inst| read_by(func, inst, &mut read));
        let mut counts = FxHashMap::default();
        for value in read {
            *counts.entry(value).or_default() += 1;
        }
        Uses(counts)
    }

    fn count(&self, value: Value) -> usize {
        self.0.get(&value).copied().unwrap_or(0)
    }
}

impl Branch {
    fn of(func: &TileFunction, inst: Inst) -> Option<Branch> {
        let mut regions = func.regions(inst);
        let (done, otherwise) = (regions.next()?, regions.next()?);
        let (&end, list) = func.order.insts(done).split_last()?;
        let &[other_end] = func.order.insts(otherwise) else {
            return None;
        };
        Some(Branch {
            inst,
            list: list.to_vec(),
            gives: func.dfg.insts[end].args.iter().copied().collect(),
            otherwise: func.dfg.insts[other_end].args.iter().copied().collect(),
        })
    }
}

/// The operands of an op that are these two in either order, the known one first.
fn either(args: &[Value], known: Value) -> Option<Value> {
    match *args {
        [a, b] if a == known => Some(b),
        [a, b] if b == known => Some(a),
        _ => None,
    }
}

/// What a branch compares a value with, if it is taken where they are equal.
fn equal_to(func: &TileFunction, branch: Inst, value: Value) -> Option<Value> {
    let data = &func.dfg.insts[branch];
    if data.op != TileOp::If {
        return None;
    }
    let data = &func.dfg.insts[func.dfg.def_inst(data.args[0])?];
    let is_equal = data.op == TileOp::Icmp && data.ipred() == Some(&IntPred::Eq);
    is_equal.then(|| either(&data.args, value))?
}

/// What a choice between two numbers, or a branch that does nothing else, gives where its condition holds and where not.
fn either_way(func: &TileFunction, choice: &InstData<Tile>, value: Value) -> Option<[Value; 2]> {
    match (choice.op, &choice.results[..], &choice.blocks[..]) {
        (TileOp::Select, ..) => Some([choice.args[1], choice.args[2]]),
        (TileOp::If, &[result], [done, otherwise]) if result == value => {
            let given = [done, otherwise].map(|call| {
                let (&end, list) = func.order.insts(call.block).split_last()?;
                let mut list = list.iter();
                let is_pure = list.all(|&inst| func.dfg.insts[inst].is_pure());
                is_pure.then(|| func.dfg.insts[end].args.first().copied())?
            });
            let [done, otherwise] = given;
            Some([done?, otherwise?])
        }
        _ => None,
    }
}

/// What counts from 0 to a number and then begins again.
fn counter(
    func: &TileFunction,
    data: &InstData<Tile>,
    params: &[Value],
    next: &[Value],
    uses: &Uses,
) -> Option<Counter> {
    let def = |value: Value| {
        Some((
            func.dfg.def_inst(value)?,
            &func.dfg.insts[func.dfg.def_inst(value)?],
        ))
    };
    let of = |position: usize| {
        let (param, next) = (params[1 + position], next[position]);
        let (chosen, choice) = def(next)?;
        let [mut first, mut more] = either_way(func, choice, next)?;
        let (compared, test) = def(choice.args[0]).filter(|(_, data)| data.op == TileOp::Icmp)?;
        match test.ipred()? {
            IntPred::Eq => {}
            IntPred::Ne => (first, more) = (more, first),
            _ => return None,
        }
        let (added, sum) = def(more).filter(|(_, data)| data.op == TileOp::Iadd)?;
        let is_next = signed(func, either(&sum.args, param)?) == Some(1);
        if func.dfg.ty(param) != number() || signed(func, first) != Some(0) || !is_next {
            return None;
        }
        let (bound, is_last) = match either(&test.args, param) {
            Some(bound) => (bound, true),
            None => (either(&test.args, more)?, false),
        };
        let (index, step) = match signed(func, data.args[3 + position])? {
            0 => (param, SmallVec::new()),
            // The parameter is nothing but what the index is computed from.
            -1 if uses.count(param) == if is_last { 2 } else { 1 }
                && uses.count(more) == if is_last { 1 } else { 2 }
                && uses.count(choice.args[0]) == 1 =>
            {
                (next, SmallVec::from_slice(&[chosen, compared, added]))
            }
            _ => return None,
        };
        Some(Counter {
            position,
            index,
            bound,
            is_last,
            chosen,
            step,
        })
    };
    (0..next.len()).find_map(of)
}

/// What a loop carries besides its counter, and what head and tail make of it; none if they make more.
fn carried(
    func: &TileFunction,
    counter: &Counter,
    [params, next]: [&[Value]; 2],
    [head, tail]: [&Option<Branch>; 2],
    uses: &Uses,
    is_read: &impl Fn(usize) -> bool,
) -> Option<Vec<Carried>> {
    let results = |branch: &Option<Branch>| {
        let inst = branch.as_ref().map(|branch| branch.inst);
        inst.map_or_else(SmallVec::new, |inst| func.dfg.insts[inst].results.clone())
    };
    let (head_results, tail_results) = (results(head), results(tail));
    let place = |values: &[Value], value: Value| values.iter().position(|&v| v == value);
    // How often a branch reads a value.
    let read_in = |branch: &Option<Branch>, value: Value| {
        let mut read = Vec::new();
        if let Some(branch) = branch {
            read_by(func, branch.inst, &mut read);
        }
        read.iter().filter(|&&v| v == value).count()
    };
    let mut found = Vec::new();
    let mut changed = FxHashSet::default();
    for (position, (&param, &next)) in params[1..].iter().zip(next).enumerate() {
        if position == counter.position {
            continue;
        }
        let by_tail = place(&tail_results, next);
        let next = match (by_tail, tail) {
            (Some(at), Some(tail)) => tail.otherwise[at],
            _ => next,
        };
        let by_head = head.as_ref().and_then(|head| place(&head.otherwise, param));
        let by_head = by_head.filter(|_| read_in(head, param) == uses.count(param));
        changed.extend(by_head);
        found.push(Carried {
            param: by_head.map_or(param, |at| head_results[at]),
            by_head,
            next,
            by_tail,
            is_read: is_read(position),
        });
    }
    let mut heads = head_results.iter().enumerate();
    let is_whole = heads.all(|(at, &result)| changed.contains(&at) || uses.count(result) == 0);
    // What the tail makes goes to the next iteration alone.
    let leaves =
        |&result: &Value| next.iter().filter(|&&v| v == result).count() == uses.count(result);
    (is_whole && tail_results.iter().all(leaves)).then_some(found)
}

#[cfg(test)]
mod tests;
