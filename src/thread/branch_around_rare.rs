//! What is hardly ever needed is computed behind a branch.
//!
//! ```text
//! near = .. x                           c = fcmp |x|, limit
//! far = .. x                            brif any of c, block2, block1
//! c = fcmp |x|, limit                 block1:
//! r = rare c                              near = .. x;  z1 = .. near;  jump block3(z1)
//! y = select r, far, near        =>   block2:
//! z = .. y                                near = .. x;  far = .. x;  y = select c, far, near
//! store z                                 z2 = .. y;  jump block3(z2)
//!                                     block3(z):
//!                                         store z
//! ```
//!
//! `rare` marks truth values that hardly ever hold: an angle so large that reducing it takes a hundred instructions, a logarithm's
//! argument without an exponent of its own. All selections of a block that do not depend on each other share one branch. In front
//! of it stands what the conditions need, and what no thread does alone, so that loads are not held up. What a thread computes for
//! the selections and from them stands on both sides, so that few values live across the branch: without that, 16 elements a
//! thread of three functions spilled. A thread takes the branch for itself; no memory is accessed there.
//!
//! Comparisons are made again behind the branch: a truth value for each element would take more registers than there are.

use std::collections::hash_map::Entry;

use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::attrs::make;
use crate::ir::dfg::{BlockCall, InstData, ValueList};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{Elem, ThreadType};

/// With fewer instructions to leave out for each selection a branch does not pay: it ends a block, and blocks that are computed
/// on their own need more registers. On an H100 edges of `log1p`, behind a branch, cost 23 % of a kernel of 16 elements a thread.
const LEAST: usize = 4;

/// Each branch is another walk through the function.
const MOST: usize = 64;

/// Puts what rare selections need behind branches, and removes the marks; gives the number of branches.
pub fn branch_around_rare(func: &mut ThreadFunction) -> usize {
    let mut marks: FxHashMap<Value, Value> = FxHashMap::default();
    for (_, inst) in func.insts_with(ThreadOp::Rare) {
        let data = &func.dfg.insts[inst];
        marks.insert(data.results[0], data.args[0]);
    }
    if marks.is_empty() {
        return 0;
    }
    let mut count = 0;
    let mut blocks = func.order.blocks.clone();
    // Products under way are better off in one block.
    if func.insts_with(ThreadOp::Wgmma).next().is_some() {
        blocks.clear();
    }
    while let Some(block) = blocks.pop()
        && count < MOST
    {
        if let Some(behind) = branch(func, &marks, block) {
            count += 1;
            blocks.push(behind);
        }
    }
    remove_marks(func, &marks);
    count
}

fn remove_marks(func: &mut ThreadFunction, marks: &FxHashMap<Value, Value>) {
    let unmarked = |value| {
        let mut value = value;
        while let Some(&operand) = marks.get(&value) {
            value = operand;
        }
        value
    };
    for block in func.order.blocks.clone() {
        for inst in func.order.insts(block).to_vec() {
            func.dfg.map_uses(inst, unmarked);
        }
        let insts = &func.dfg.insts;
        let is_mark = |inst: Inst| insts[inst].results.iter().any(|r| marks.contains_key(r));
        func.order.retain(block, |inst| !is_mark(inst));
    }
}

/// Whether a thread computes it by itself from its operands.
fn is_own(func: &ThreadFunction, inst: Inst) -> bool {
    let class = func.dfg.insts[inst].op.info().effects.class;
    matches!(
        class,
        OpClass::Constant | OpClass::Elementwise | OpClass::Shape
    )
}

/// Where the instructions of a block go.
struct Parts {
    /// The selections, which share a branch.
    chosen: FxHashSet<Inst>,
    /// What conditions need, and what is no thread's own.
    front: Vec<Inst>,
    /// What is computed in any case, for the selections and from their results: with the selections, in order.
    both: Vec<Inst>,
    /// What is needed if a condition holds.
    aside: FxHashSet<Inst>,
    /// The rest.
    behind: Vec<Inst>,
}

/// How far an instruction depends on the chosen selections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Late {
    /// It computes from their results.
    Computed,
    /// It stands behind the branch: it, or what it needs, is no thread's own, or the next selection.
    Behind,
}

/// Rare selections that do not depend on each other, and what depends on them.
fn chosen(
    func: &ThreadFunction,
    marks: &FxHashMap<Value, Value>,
    insts: &[Inst],
) -> (FxHashSet<Inst>, FxHashMap<Inst, Late>) {
    let mut found = FxHashSet::default();
    let mut late: FxHashMap<Inst, Late> = FxHashMap::default();
    let mut values: FxHashMap<Value, Late> = FxHashMap::default();
    let mut is_order_late = false;
    for &inst in insts {
        let data = &func.dfg.insts[inst];
        let is_rare = data.op == ThreadOp::Select && marks.contains_key(&data.args[0]);
        let is_free = data.is_pure();
        let mut how = None;
        for value in func.dfg.uses(inst) {
            match values.get(&value) {
                Some(Late::Behind) => how = Some(Late::Behind),
                Some(Late::Computed) if how.is_none() => how = Some(Late::Computed),
                _ => {}
            }
        }
        let is_truth = |&r: &Value| func.dfg.ty(r).elem == Elem::I1;
        let stays = !is_own(func, inst) || is_rare || data.results.iter().any(is_truth);
        how = match how {
            Some(_) if stays => Some(Late::Behind),
            None if is_order_late && !is_free => Some(Late::Behind),
            // A block ends behind all.
            None if data.class() == OpClass::End => Some(Late::Behind),
            how => how,
        };
        if let Some(how) = how {
            late.insert(inst, how);
            is_order_late |= !is_free;
        } else if is_rare {
            found.insert(inst);
            how = Some(Late::Computed);
        }
        if let Some(how) = how {
            values.extend(data.results.iter().map(|&result| (result, how)));
        }
    }
    (found, late)
}

fn parts(func: &ThreadFunction, marks: &FxHashMap<Value, Value>, block: Block) -> Option<Parts> {
    let insts = func.order.insts(block);
    let (chosen, late) = chosen(func, marks, insts);
    if chosen.is_empty() {
        return None;
    }
    // What the front reads; what the part behind reads, or another block; what is computed in any case, or
    // seldom, reads.
    let mut first: EntitySet<Value> = EntitySet::new();
    let mut last: EntitySet<Value> = EntitySet::new();
    let mut wanted: EntitySet<Value> = EntitySet::new();
    let mut seldom: EntitySet<Value> = EntitySet::new();
    for &other in func.order.blocks.iter().filter(|&&other| other != block) {
        for &inst in func.order.insts(other) {
            last.extend(func.dfg.uses(inst));
        }
    }
    let mut parts = Parts {
        chosen,
        front: Vec::new(),
        both: Vec::new(),
        aside: FxHashSet::default(),
        behind: Vec::new(),
    };
    for &inst in insts.iter().rev() {
        let data = &func.dfg.insts[inst];
        if parts.chosen.contains(&inst) {
            parts.both.push(inst);
            first.insert(data.args[0]);
            wanted.insert(data.args[2]);
            seldom.insert(data.args[1]);
            continue;
        }
        let is_among = |set: &EntitySet<Value>| data.results.iter().any(|&r| set.contains(r));
        let is_constant = data.op.info().effects.class == OpClass::Constant;
        let (is_wanted, is_last) = (is_among(&wanted), is_among(&last));
        let is_between = is_wanted || is_among(&seldom);
        let how = late.get(&inst).copied();
        let is_first = !is_own(func, inst) || is_constant || is_among(&first);
        if how.is_none() && (is_first || (is_between && is_last)) {
            parts.front.push(inst);
            first.extend(func.dfg.uses(inst));
        } else if how == Some(Late::Behind) || (how.is_none() && is_last) {
            parts.behind.push(inst);
            last.extend(func.dfg.uses(inst));
        } else if how == Some(Late::Computed) || is_wanted {
            parts.both.push(inst);
            wanted.extend(func.dfg.uses(inst));
        } else {
            parts.both.push(inst);
            parts.aside.insert(inst);
            seldom.extend(func.dfg.uses(inst));
        }
    }
    for list in [&mut parts.front, &mut parts.both, &mut parts.behind] {
        list.reverse();
    }
    (parts.aside.len() >= LEAST * parts.chosen.len()).then_some(parts)
}

/// Splits a block; gives the part behind the branch.
fn branch(
    func: &mut ThreadFunction,
    marks: &FxHashMap<Value, Value>,
    block: Block,
) -> Option<Block> {
    let parts = parts(func, marks, block)?;
    let [near, far, behind] = [(); 3].map(|()| func.dfg.make_block());
    let place = func.order.blocks.iter().position(|&b| b == block)? + 1;
    func.order.blocks.splice(place..place, [near, far, behind]);
    func.order.replace(block, parts.front);
    func.order.replace(behind, parts.behind);

    let mut conditions: Vec<Value> = Vec::new();
    for inst in parts.both.iter().filter(|inst| parts.chosen.contains(inst)) {
        let condition = marks[&func.dfg.insts[*inst].args[0]];
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let mut any: Option<Value> = None;
    for &condition in &conditions {
        let one = any_element(func, block, condition);
        any = Some(match any {
            Some(other) => append(func, block, InstData::new(ThreadOp::Or, &[other, one]), 1),
            None => one,
        });
    }
    // Where it holds: everything, in copies.
    let mut copies: FxHashMap<Value, Value> = FxHashMap::default();
    for &condition in &conditions {
        compare_again(func, far, condition, &mut copies);
    }
    for &inst in &parts.both {
        let mut data = func.dfg.insts[inst].clone();
        for arg in &mut data.args {
            let unmarked = match marks.get(arg) {
                Some(condition) if parts.chosen.contains(&inst) => condition,
                _ => arg,
            };
            *arg = *copies.get(unmarked).unwrap_or(unmarked);
        }
        let types: Vec<ThreadType> = data.results.iter().map(|&r| func.dfg.ty(r)).collect();
        let results = std::mem::take(&mut data.results);
        let copy = func.dfg.make_inst(data, &types);
        func.order.append(far, copy);
        copies.extend(
            results
                .into_iter()
                .zip(func.dfg.insts[copy].results.clone()),
        );
    }
    // Where it does not: the selections are decided.
    let mut decided: FxHashMap<Value, Value> = FxHashMap::default();
    for &inst in &parts.both {
        let data = &func.dfg.insts[inst];
        if parts.chosen.contains(&inst) {
            let plain = data.args[2];
            decided.insert(data.results[0], *decided.get(&plain).unwrap_or(&plain));
        } else if !parts.aside.contains(&inst) {
            func.dfg
                .map_uses(inst, |value| *decided.get(&value).unwrap_or(&value));
            func.order.append(near, inst);
        }
    }
    // What others read of all that.
    let made: FxHashSet<Value> = parts
        .both
        .iter()
        .flat_map(|&inst| func.dfg.insts[inst].results.clone())
        .collect();
    let readers: Vec<Inst> = func
        .order
        .blocks
        .iter()
        .copied()
        .filter(|&other| other != near && other != far)
        .flat_map(|other| func.order.insts(other).to_vec())
        .collect();
    let (mut from_near, mut from_far) = (ValueList::new(), ValueList::new());
    let mut renamed: FxHashMap<Value, Value> = FxHashMap::default();
    for inst in readers {
        let read: Vec<Value> = func.dfg.uses(inst).filter(|v| made.contains(v)).collect();
        for value in read {
            if let Entry::Vacant(place) = renamed.entry(value) {
                let ty = func.dfg.ty(value);
                place.insert(func.dfg.append_param(behind, ty));
                from_near.push(*decided.get(&value).unwrap_or(&value));
                from_far.push(copies[&value]);
            }
        }
        func.dfg
            .map_uses(inst, |value| *renamed.get(&value).unwrap_or(&value));
    }
    for (block, args) in [(near, from_near), (far, from_far)] {
        let target = BlockCall {
            block: behind,
            args,
        };
        end(func, block, InstData::new(ThreadOp::Jump, &[]), &[target]);
    }
    let targets = [far, near].map(BlockCall::region);
    end(
        func,
        block,
        InstData::new(ThreadOp::Brif, &[any?]),
        &targets,
    );
    Some(behind)
}

/// Ends a block.
pub(super) fn end(
    func: &mut ThreadFunction,
    block: Block,
    mut data: InstData<Thread>,
    to: &[BlockCall],
) {
    data.blocks.extend(to.iter().cloned());
    let inst = func.dfg.make_inst(data, &[]);
    func.order.append(block, inst);
}

fn append(func: &mut ThreadFunction, block: Block, data: InstData<Thread>, count: u16) -> Value {
    let ty = ThreadType::pack(func.dfg.ty(data.args[0]).elem, count);
    let inst = func.dfg.make_inst(data, &[ty]);
    func.order.append(block, inst);
    func.dfg.insts[inst].results[0]
}

/// Whether one element of a pack of truth values holds.
fn any_element(func: &mut ThreadFunction, block: Block, pack: Value) -> Value {
    let mut any = pack;
    loop {
        let count = u32::from(func.dfg.ty(any).count);
        if count <= 1 {
            return any;
        }
        // Halves, which overlap if the number is odd.
        let half = count.div_ceil(2);
        let mut part = |from: u32| {
            let map: Vec<u32> = (from..from + half).collect();
            let mut data = InstData::new(ThreadOp::Rearrange, &[any]);
            data.attrs.push(make::map(map.into()));
            append(func, block, data, half as u16)
        };
        let (low, high) = (part(0), part(count - half));
        let or = InstData::new(ThreadOp::Or, &[low, high]);
        any = append(func, block, or, half as u16);
    }
}

/// Copies to the end of a block what makes a truth value of numbers.
fn compare_again(
    func: &mut ThreadFunction,
    block: Block,
    condition: Value,
    made: &mut FxHashMap<Value, Value>,
) {
    // Operands in front of what reads them.
    let (mut order, mut seen) = (Vec::new(), EntitySet::new());
    let mut stack = vec![(condition, false)];
    while let Some((value, is_done)) = stack.pop() {
        if is_done {
            order.push(value);
            continue;
        }
        let Some(inst) = func.dfg.def_inst(value) else {
            continue;
        };
        let data = &func.dfg.insts[inst];
        let is_truth = func.dfg.ty(value).elem == Elem::I1;
        if is_truth && data.op.info().effects.class == OpClass::Elementwise && seen.insert(value) {
            stack.push((value, true));
            stack.extend(data.args.iter().map(|&arg| (arg, false)));
        }
    }
    for value in order {
        if made.contains_key(&value) {
            continue;
        }
        let Some(inst) = func.dfg.def_inst(value) else {
            continue;
        };
        let mut data = func.dfg.insts[inst].clone();
        for arg in &mut data.args {
            *arg = *made.get(arg).unwrap_or(arg);
        }
        let ty = func.dfg.ty(value);
        let copy = func.dfg.make_inst(data, &[ty]);
        func.order.append(block, copy);
        made.insert(value, func.dfg.insts[copy].results[0]);
    }
}
