//! A choice by which way an earlier choice went becomes part of that one.
//!
//! ```text
//! done = if c { A; yield true }            if c { A }
//!        { B; yield false }            =>  { B; rest }
//! if done { } { rest }
//! ```
//!
//! An early return in a branch of the source leaves such a flag. Put together it is one branch, and
//! seen that `rest` never follows `A`: what A stores is nothing that loads in `rest` have to see.
//!
//! What stands between the two is computed before the first. It is pure, and made of nothing that the first one gives.

use rustc_hash::FxHashMap;

use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::edit::{read_by, rename_all};

/// Joins choices with those that they follow from; gives their number.
pub fn join_branches(func: &mut TileFunction) -> usize {
    let choices: Vec<(Block, Inst)> = func.insts_with(TileOp::If).collect();
    let joined = choices
        .into_iter()
        .filter(|&(_, inst)| join(func, inst).is_some());
    joined.count()
}

/// Makes a choice part of the one that its condition is a flag of.
fn join(func: &mut TileFunction, second: Inst) -> Option<()> {
    let block = func.order.block_of(second)?;
    let cond = *func.dfg.insts[second].args.first()?;
    let ValueDef::Result(first, flag) = func.dfg.values[cond].def else {
        return None;
    };
    let list = func.order.insts(block).to_vec();
    let place = |inst| list.iter().position(|&other| other == inst);
    let (at, end) = (place(first)?, place(second)?);
    let between = list.get(at + 1..end)?;
    let data = func.dfg.insts[first].clone();
    let given = func.dfg.insts[second].results.to_vec();
    let moves = |&inst: &Inst| {
        let mut read = Vec::new();
        read_by(func, inst, &mut read);
        func.dfg.insts[inst].is_pure() && read.iter().all(|value| !data.results.contains(value))
    };
    if data.op != TileOp::If || !between.iter().all(moves) {
        return None;
    }
    let regions = |func: &TileFunction, inst| -> Option<[Block; 2]> {
        let regions: Vec<Block> = func.regions(inst).collect();
        regions.try_into().ok()
    };
    let (ways, rest) = (regions(func, first)?, regions(func, second)?);
    // The region of the second choice that follows each one of the first.
    let follows = |way: Block| {
        let yielded = func.dfg.insts[func.order.last(way)?]
            .args
            .get(usize::from(flag))?;
        let bit = func.dfg.insts[func.dfg.def_inst(*yielded)?].value()?;
        Some(rest[usize::from(*bit == 0)])
    };
    let follows = [follows(ways[0])?, follows(ways[1])?];
    if follows[0] == follows[1] {
        return None;
    }
    for (way, rest) in ways.into_iter().zip(follows) {
        append(func, way, rest, &data.results)?;
    }
    let results: Vec<Value> = data.results.iter().chain(&given).copied().collect();
    let types: Vec<_> = results.iter().map(|&value| func.dfg.ty(value)).collect();
    let mut joined = data;
    joined.results.clear();
    let joined = func.dfg.make_inst(joined, &types);
    let names = results.iter().copied();
    let names: FxHashMap<Value, Value> = names
        .zip(func.dfg.insts[joined].results.iter().copied())
        .collect();
    let before = list[..at].iter().chain(&list[at + 1..end]);
    let all = before.chain([&joined]).chain(&list[end + 1..]);
    let all: Vec<Inst> = all.copied().collect();
    func.order.replace(block, all);
    rename_all(func, &names);
    Some(())
}

/// Puts what a region of the second choice does to the end of one of the first, where results of that are what it yields.
fn append(func: &mut TileFunction, way: Block, rest: Block, results: &[Value]) -> Option<()> {
    let (mut body, list) = (
        func.order.insts(way).to_vec(),
        func.order.insts(rest).to_vec(),
    );
    let (&end, &last) = (body.last()?, list.last()?);
    let yielded = func.dfg.insts[end].args.to_vec();
    let names: FxHashMap<Value, Value> = results.iter().copied().zip(yielded).collect();
    let mut todo = vec![rest];
    while let Some(block) = todo.pop() {
        for inst in func.order.insts(block).to_vec() {
            let name = |value| names.get(&value).copied().unwrap_or(value);
            func.dfg.map_uses(inst, name);
            todo.extend(func.regions(inst));
        }
    }
    let more = func.dfg.insts[last].args.to_vec();
    func.dfg.insts[end].args.extend(more);
    body.pop();
    body.extend(&list[..list.len() - 1]);
    body.push(end);
    func.order.replace(rest, vec![last]);
    func.order.replace(way, body);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::testing::{check_pass, parse};

    const HEAD: &str = "kernel @k(v0 \"x\": ptr<i32>, v1 \"n\": i32) warps(1) {
block0:
    v2 = const {value = 0} : i32
    v3 = icmp v1, v2 {ipred = sle} : i1
    v4 = const {value = true} : i1
    v5 = const {value = false} : i1
";

    #[test]
    fn what_follows_an_early_return_stands_in_the_other_branch() {
        let before = format!(
            "{HEAD}    v6, v7 = if v3 : i1, i32 {{
    block1:
        store v0, v2
        yield v4, v2
    }} {{
    block2:
        v8 = load v0 : i32
        yield v5, v8
    }}
    v9 = iadd v1, v1 : i32
    v10 = if v6 : i32 {{
    block3:
        yield v2
    }} {{
    block4:
        v11 = iadd v7, v9 : i32
        store v0, v11
        yield v11
    }}
    v12 = iadd v10, v7 : i32
    store v0, v12
    return
}}
"
        );
        let after = format!(
            "{HEAD}    v6 = iadd v1, v1 : i32
    v7, v8, v9 = if v3 : i1, i32, i32 {{
    block1:
        store v0, v2
        yield v4, v2, v2
    }} {{
    block2:
        v10 = load v0 : i32
        v11 = iadd v10, v6 : i32
        store v0, v11
        yield v5, v10, v11
    }}
    v12 = iadd v9, v8 : i32
    store v0, v12
    return
}}
"
        );
        check_pass(join_branches, &before, &after);
    }

    /// What may be told by data, follows both ways, or stands behind what cannot be moved, stays.
    #[test]
    fn other_choices_stay() {
        let choice = |then: &str, other: &str, between: &str| {
            format!(
                "{HEAD}    v6 = if v3 : i1 {{
    block1:
        store v0, v2
        yield {then}
    }} {{
    block2:
        yield {other}
    }}
{between}    if v6 {{
    block3:
        yield
    }} {{
    block4:
        store v0, v1
        yield
    }}
    return
}}
"
            )
        };
        for (then, other, between, expected) in [
            ("v4", "v5", "", 1),
            ("v5", "v4", "", 1),
            ("v4", "v3", "", 0),
            ("v4", "v4", "", 0),
            ("v4", "v5", "    v7 = load v0 : i32\n    store v0, v7\n", 0),
            ("v4", "v5", "    v7 = zext v6 : i32\n    store v0, v7\n", 0),
        ] {
            let text = choice(then, other, between);
            assert_eq!(join_branches(&mut parse(&text)), expected, "{text}");
        }
    }
}
