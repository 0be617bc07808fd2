//! Where sums of products are waited for.

use rustc_hash::FxHashMap;

use super::Started;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::tile::edit::{rename_uses, use_counts};

/// Waits as late as the products allow, for some behind the loop.
pub(super) fn settle(func: &mut TileFunction, started: &[Started]) {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    for (block, inst) in loops {
        carry_sums(func, block, inst, started);
    }
    for product in started {
        sink(func, product);
    }
}

/// Whether an instruction, or one in its regions, uses a value that `is_meant`.
fn uses(func: &TileFunction, inst: Inst, is_meant: &impl Fn(Value) -> bool) -> bool {
    let inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    func.dfg.uses(inst).any(is_meant) || inner.into_iter().any(|&inst| uses(func, inst, is_meant))
}

/// Whether an instruction, or one in its regions, writes one of the rings at once: what copies write they leave to be read later.
fn stores(func: &TileFunction, inst: Inst, slots: &[Slot]) -> bool {
    let data = &func.dfg.insts[inst];
    let is_store = data.op == TileOp::SharedStore && data.slot().is_some_and(|s| slots.contains(s));
    let inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    is_store || inner.into_iter().any(|&inst| stores(func, inst, slots))
}

/// Moves the wait for a product down to the first use of its sum, or to where its operands change.
fn sink(func: &mut TileFunction, product: &Started) {
    let Some(&result) = func.dfg.insts[product.sum].results.first() else {
        return;
    };
    let mut list = func.order.insts(product.block).to_vec();
    let Some(at) = list.iter().position(|&inst| inst == product.sum) else {
        return;
    };
    let is_sum = |value: Value| value == result;
    let stops = |inst: Inst| {
        let is_loop = matches!(func.dfg.insts[inst].op, TileOp::For | TileOp::While);
        let ends = func.order.last(product.block) == Some(inst);
        is_loop || ends || uses(func, inst, &is_sum) || stores(func, inst, &product.reads)
    };
    let behind = list[at + 1..].iter().position(|&inst| stops(inst));
    let place = behind.map_or(at, |distance| at + distance);
    list[at..=place].rotate_left(1);
    func.order.replace(product.block, list);
}

/// The sums of a loop that only products add to, from one iteration to the next.
fn carry_sums(func: &mut TileFunction, block: Block, looped: Inst, started: &[Started]) {
    let body = func.dfg.insts[looped].blocks[0].block;
    let Some(last) = func.order.last(body) else {
        return;
    };
    let counts = use_counts(func);
    let here: Vec<&Started> = started.iter().filter(|s| s.block == body).collect();
    let params = func.dfg.blocks[body].params[1..].to_vec();
    let yielded = func.dfg.insts[last].args.clone();
    // Positions with the products that add to them.
    let mut found: Vec<(usize, &Started)> = Vec::new();
    for (position, (&param, &value)) in params.iter().zip(&yielded).enumerate() {
        let product = here.iter().find(|s| {
            let adds_to = func.dfg.insts[s.inst].args[2];
            adds_to == param && func.dfg.insts[s.sum].results[..] == [value]
        });
        let Some(&product) = product else {
            continue;
        };
        let is_alone = counts[param] == 1 && counts[value] == 1;
        let may_go_on = product
            .reads
            .iter()
            .all(|&slot| changes_behind(func, product, slot));
        if is_alone && may_go_on && !product.reads_registers {
            found.push((position, product));
        }
    }
    if found.is_empty() {
        return;
    }
    rewrite(func, (block, looped), (body, last), &found);
}

/// Whether nothing in the body of a loop writes to a ring before a product is started, and behind it only copies: they fill the
/// entry that the product of the iteration before read, which is waited for at the start of this one's.
fn changes_behind(func: &TileFunction, product: &Started, slot: Slot) -> bool {
    let mut insts = func.order.insts(product.block).iter();
    let mut before = insts.by_ref().take_while(|&&inst| inst != product.inst);
    let copies = |inst: Inst| {
        let data = &func.dfg.insts[inst];
        matches!(data.op, TileOp::AsyncCopy | TileOp::TensorCopy) && data.slot() == Some(&slot)
    };
    before.all(|&inst| !copies(inst) && !stores(func, inst, &[slot]))
        && insts.all(|&inst| !stores(func, inst, &[slot]))
}

fn rewrite(
    func: &mut TileFunction,
    (block, looped): (Block, Inst),
    (body, last): (Block, Inst),
    found: &[(usize, &Started)],
) {
    let token = TileType::scalar(Elem::Token);
    let loc = func.dfg.insts[looped].loc;
    let make = |func: &mut TileFunction, op, args: &[Value], types: &[TileType]| {
        let mut data: InstData<Tile> = InstData::new(op, args);
        data.loc = loc;
        func.dfg.make_inst(data, types)
    };
    // Inside: tokens are carried, the sums as they are in flight, and earlier products are waited for behind the starts.
    let mut tokens = Vec::new();
    let mut list = func.order.insts(body).to_vec();
    for &(position, product) in found {
        tokens.push(func.dfg.append_param(body, token));
        let results = func.dfg.insts[product.inst].results.clone();
        func.dfg.insts[last].args[position] = results[0];
        func.dfg.insts[last].args.push(results[1]);
        list.retain(|&inst| inst != product.sum);
    }
    let wait = make(func, TileOp::DotWait, &tokens, &[]);
    let is_start = |inst: &Inst| found.iter().any(|(_, product)| product.inst == *inst);
    let behind = list.iter().rposition(is_start).map_or(0, |at| at + 1);
    list.insert(behind, wait);
    func.order.replace(body, list);

    // Outside: the loop has more results, and behind it the sums are waited for.
    let mut data = func.dfg.insts[looped].clone();
    let old: Vec<Value> = data.results.to_vec();
    data.results.clear();
    let mut before = Vec::new();
    for &(position, _) in found {
        let acc = data.args[3 + position];
        let done = make(func, TileOp::DotDone, &[acc], &[func.dfg.ty(acc), token]);
        let results = &func.dfg.insts[done].results;
        data.args[3 + position] = results[0];
        data.args.push(results[1]);
        before.push(done);
    }
    let types: Vec<TileType> = data.args[3..].iter().map(|&v| func.dfg.ty(v)).collect();
    let new = func.dfg.make_inst(data, &types);
    let results: Vec<Value> = func.dfg.insts[new].results.to_vec();
    let mut renamed: FxHashMap<usize, Value> = FxHashMap::default();
    let mut after = Vec::new();
    for (i, &(position, _)) in found.iter().enumerate() {
        let ty = func.dfg.ty(results[position]);
        let of = [results[position], results[old.len() + i]];
        let sum = make(func, TileOp::DotSum, &of, &[ty]);
        renamed.insert(position, func.dfg.insts[sum].results[0]);
        after.push(sum);
    }
    let mut list = func.order.insts(block).to_vec();
    if let Some(at) = list.iter().position(|&inst| inst == looped) {
        let all = before.into_iter().chain([new]).chain(after);
        list.splice(at..=at, all);
    }
    func.order.replace(block, list);
    for (position, &value) in old.iter().enumerate() {
        let new = renamed.get(&position).copied().unwrap_or(results[position]);
        rename_uses(func, value, new);
    }
}
