//! Where sums of products are waited for.

use rustc_hash::FxHashMap;

use super::Started;
use crate::ir::attrs::{Attrs, IntPred, make as make_attr};
use crate::ir::dfg::{InstData, ValueList};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::tile::edit::{rename_uses, use_counts};

/// Warps of one group.
const WARPS: u32 = 4;

/// Waits as late as the products allow, for some behind the loop.
pub(super) fn settle(func: &mut TileFunction, started: &[Started]) {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    for (block, inst) in loops {
        carry_sums(func, block, inst, started);
    }
    for product in started {
        sink(func, product);
        chain(func, product);
    }
    for block in func.all_blocks() {
        give_back_later(func, block, started);
    }
}

/// Gives entries of rings back behind the sums of the products that read them.
fn give_back_later(func: &mut TileFunction, block: Block, started: &[Started]) {
    for of_channel in channels(func, &give_backs(func, block)) {
        let slots: Vec<Slot> = of_channel
            .iter()
            .filter_map(|&i| func.dfg.insts[i].slot().copied())
            .collect();
        let mut list = func.order.insts(block).to_vec();
        let first = list.iter().position(|inst| of_channel.contains(inst));
        // What is started behind that reads what fills the entry again.
        let before = &list[..first.unwrap_or(0)];
        let readers = started
            .iter()
            .filter(|product| product.reads.iter().any(|slot| slots.contains(slot)));
        let readers = readers.filter(|product| before.contains(&product.inst));
        let sums: Vec<Inst> = readers.map(|product| product.sum).collect();
        let last = list.iter().rposition(|inst| sums.contains(inst));
        let (Some(last), Some(first)) = (last, first) else {
            continue;
        };
        if first < last {
            list.retain(|inst| !of_channel.contains(inst));
            let at = last + 1 - of_channel.len();
            list.splice(at..at, of_channel);
            func.order.replace(block, list);
        }
    }
}

/// What gives entries back, by channels.
fn channels(func: &TileFunction, give_backs: &[Inst]) -> Vec<Vec<Inst>> {
    give_backs
        .split_inclusive(|&inst| func.dfg.insts[inst].op == TileOp::MbarArrive)
        .map(<[Inst]>::to_vec)
        .collect()
}

/// Whether an instruction, or one in its regions, uses a value that `is_meant`.
fn uses(func: &TileFunction, inst: Inst, is_meant: &impl Fn(Value) -> bool) -> bool {
    let inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    func.dfg.uses(inst).any(is_meant) || inner.into_iter().any(|&inst| uses(func, inst, is_meant))
}

/// Whether an instruction, or one in its regions, writes one of the rings at once, or gives an entry back to who does: what copies
/// write they leave to be read later. Entries that are `late` are given back when a wait has come.
fn stores(func: &TileFunction, inst: Inst, slots: &[Slot], late: &[Inst]) -> bool {
    let data = &func.dfg.insts[inst];
    if late.contains(&inst) {
        return false;
    }
    let is_alone = |slot: &Slot| func.buffers[*slot].is_some_and(|ring| ring.stages == 1);
    let changes = match data.op {
        TileOp::SharedStore | TileOp::Release => true,
        // Without another entry they write what is read.
        TileOp::AsyncCopy => data.slot().is_some_and(is_alone),
        _ => false,
    };
    let is_store = changes && data.slot().is_some_and(|s| slots.contains(s));
    let inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    is_store
        || inner
            .into_iter()
            .any(|&inst| stores(func, inst, slots, late))
}

/// Values that may be in the registers of a block: what it is another shape of, and what is another shape of that.
fn same_registers(func: &TileFunction, block: Value) -> Vec<Value> {
    let keeps = |inst: Inst| {
        let data = &func.dfg.insts[inst];
        data.class() == OpClass::Shape || data.op == TileOp::ConvertLayout
    };
    let mut root = block;
    while let Some(inst) = func.dfg.def_inst(root).filter(|&inst| keeps(inst)) {
        match func.dfg.insts[inst].args.first() {
            Some(&of) => root = of,
            None => break,
        }
    }
    let mut same = vec![root];
    // Uses come behind definitions.
    for (_, inst) in func.all_insts().filter(|&(_, inst)| keeps(inst)) {
        let data = &func.dfg.insts[inst];
        if data.args.iter().any(|arg| same.contains(arg)) {
            same.extend(&data.results);
        }
    }
    same
}

/// What a product reads in registers, which nobody else may read meanwhile.
fn held(func: &TileFunction, product: &Started) -> Vec<Value> {
    match product.reads_registers {
        true => same_registers(func, func.dfg.insts[product.inst].args[0]),
        false => Vec::new(),
    }
}

/// Moves the wait for a product down to the first use of its sum, to where its operands change, or to where somebody else reads them
/// in registers.
fn sink(func: &mut TileFunction, product: &Started) {
    let Some(&result) = func.dfg.insts[product.sum].results.first() else {
        return;
    };
    let mut list = func.order.insts(product.block).to_vec();
    let Some(at) = list.iter().position(|&inst| inst == product.sum) else {
        return;
    };
    let held = held(func, product);
    let is_touched = |value: Value| value == result || held.contains(&value);
    let late = give_backs(func, product.block);
    let stops = |inst: Inst| {
        let is_loop = func.dfg.insts[inst].op.is_loop();
        let ends = func.order.last(product.block) == Some(inst);
        is_loop
            || ends
            || uses(func, inst, &is_touched)
            || stores(func, inst, &product.reads, &late)
    };
    // The program waits for as many entries more as the ring has before it gives this one back, and not for all.
    let mut room = room(func, &product.reads, &late);
    let mut is_full = |inst: Inst| match &mut room {
        Some((bars, left)) => {
            *left = left.saturating_sub(waits(func, inst, bars));
            *left == 0
        }
        None => false,
    };
    let behind = list[at + 1..]
        .iter()
        .position(|&inst| is_full(inst) || stops(inst));
    let place = behind.map_or(at, |distance| at + distance);
    list[at..=place].rotate_left(1);
    func.order.replace(product.block, list);
}

/// Lets a product that adds to the sum of the one before start while that goes on, as the unit executes them in order: the wait for the
/// one before then stands behind the start. (Weights of four bits, whose four products of an iteration add to one sum.)
fn chain(func: &mut TileFunction, product: &Started) {
    let mut list = func.order.insts(product.block).to_vec();
    let Some(at) = list.iter().position(|&inst| inst == product.sum) else {
        return;
    };
    let Some(&next) = list.get(at + 1) else {
        return;
    };
    let (&[sum, token], &[result]) = (
        &func.dfg.insts[product.inst].results[..],
        &func.dfg.insts[product.sum].results[..],
    ) else {
        return;
    };
    let operands = &func.dfg.insts[next].args;
    if func.dfg.insts[next].op != TileOp::DotStart || operands[2] != result {
        return;
    }
    // Products of other elements are of another shape, which may not touch a sum in flight.
    let elements = |inst: Inst| {
        let factors = &func.dfg.insts[inst].args[..2];
        factors
            .iter()
            .map(|&factor| func.dfg.ty(factor).elem)
            .collect::<Vec<_>>()
    };
    let held = held(func, product);
    let reads_held = operands.iter().any(|operand| held.contains(operand));
    let is_alike = elements(product.inst) == elements(next);
    if !is_alike || reads_held || use_counts(func)[result] != 1 {
        return;
    }
    func.dfg.insts[next].args[2] = sum;
    let wait = &mut func.dfg.insts[product.sum];
    wait.op = TileOp::DotWait;
    wait.args = ValueList::from_slice(&[token]);
    wait.results.clear();
    list.swap(at, at + 1);
    func.order.replace(product.block, list);
}

/// The sums of a loop that only products add to, from one iteration to the next.
fn carry_sums(func: &mut TileFunction, block: Block, looped: Inst, started: &[Started]) {
    let body = func.dfg.insts[looped].blocks[0].block;
    let Some(last) = func.order.last(body) else {
        return;
    };
    let counts = use_counts(func);
    // Two warpgroups take turns anyway: while one waits the other one multiplies, and entries are free earlier.
    let late = match func.num_warps() {
        WARPS => give_backs(func, body),
        _ => Vec::new(),
    };
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
        let changes_behind = |&slot: &Slot| changes_behind(func, product, slot, &late);
        let may_go_on = product.reads.iter().all(changes_behind);
        if is_alone && may_go_on && !product.reads_registers {
            found.push((position, product));
        }
    }
    // All are waited for behind the last start, which is early enough without those that start late.
    while let Some(last) = last_start(func.order.insts(body), &found) {
        if found
            .iter()
            .all(|(_, product)| has_room(func, product, last, &late))
        {
            break;
        }
        let at_last = func.order.insts(body)[last];
        found.retain(|(_, product)| product.inst != at_last);
    }
    if found.is_empty() {
        return;
    }
    let read = |&inst: &Inst| {
        let slot = func.dfg.insts[inst].slot();
        slot.is_some_and(|slot| {
            found
                .iter()
                .any(|(_, product)| product.reads.contains(slot))
        })
    };
    let mut late = channels(func, &late);
    late.retain(|of_channel| of_channel.iter().any(read));
    rewrite(func, (block, looped), (body, last), (&found, &late));
}

/// What gives entries of rings back to a producer, channel by channel, each ending in an arrival.
fn give_backs(func: &TileFunction, body: Block) -> Vec<Inst> {
    let insts = func.order.insts(body).iter().copied();
    insts
        .filter(|&inst| {
            matches!(
                func.dfg.insts[inst].op,
                TileOp::Release | TileOp::MbarArrive
            )
        })
        .collect()
}

/// Barriers on which entries of rings arrive that a product reads and `late` gives back, and entries of the shortest of the rings.
fn room(func: &TileFunction, reads: &[Slot], late: &[Inst]) -> Option<(Vec<Slot>, u32)> {
    let is_given = |slot: &&Slot| {
        late.iter()
            .any(|&inst| func.dfg.insts[inst].slot() == Some(*slot))
    };
    let given: Vec<Slot> = reads.iter().filter(is_given).copied().collect();
    let entries = given
        .iter()
        .filter_map(|&slot| func.buffers[slot])
        .map(|ring| ring.stages)
        .min()?;
    let copies = func
        .insts_with(TileOp::TensorCopy)
        .map(|(_, inst)| &func.dfg.insts[inst]);
    let of_given = copies.filter(|copy| copy.slot().is_some_and(|slot| given.contains(slot)));
    Some((
        of_given.filter_map(|copy| copy.bars().copied()).collect(),
        entries,
    ))
}

/// How often an instruction waits for one of these barriers; in regions it may do so any number of times.
fn waits(func: &TileFunction, inst: Inst, bars: &[Slot]) -> u32 {
    let data = &func.dfg.insts[inst];
    let is_wait = matches!(data.op, TileOp::MbarWait | TileOp::MbarWaitFor);
    if is_wait && data.slot().is_some_and(|slot| bars.contains(slot)) {
        return 1;
    }
    let mut inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    match inner.any(|&inst| waits(func, inst, bars) > 0) {
        true => u32::MAX,
        false => 0,
    }
}

/// Where the last of these products starts in the body of a loop.
fn last_start(body: &[Inst], found: &[(usize, &Started)]) -> Option<usize> {
    let is_start = |inst: &Inst| found.iter().any(|(_, product)| product.inst == *inst);
    body.iter().rposition(is_start)
}

/// Whether a ring has entries for all that an iteration waits for, which are given back behind the last start of the next one, and
/// for what that one waits for until then.
fn has_room(func: &TileFunction, product: &Started, last_start: usize, late: &[Inst]) -> bool {
    let Some((bars, entries)) = room(func, &product.reads, late) else {
        return true;
    };
    let waits_of = |insts: &[Inst]| {
        let waits = insts.iter().map(|&inst| waits(func, inst, &bars));
        waits.fold(0, u32::saturating_add)
    };
    let body = func.order.insts(product.block);
    let needed = waits_of(body).saturating_add(waits_of(&body[..last_start]));
    needed <= entries
}

/// Whether nothing in the body of a loop writes to a ring before a product is started, and behind it only copies: they fill the
/// entry that the product of the iteration before read, which is waited for at the start of this one's.
fn changes_behind(func: &TileFunction, product: &Started, slot: Slot, late: &[Inst]) -> bool {
    let mut insts = func.order.insts(product.block).iter();
    let mut before = insts.by_ref().take_while(|&&inst| inst != product.inst);
    let copies = |inst: Inst| {
        let data = &func.dfg.insts[inst];
        matches!(data.op, TileOp::AsyncCopy | TileOp::TensorCopy) && data.slot() == Some(&slot)
    };
    before.all(|&inst| !copies(inst) && !stores(func, inst, &[slot], late))
        && insts.all(|&inst| !stores(func, inst, &[slot], late))
}

/// Whether two instructions are about the same bytes.
fn same_slot(func: &TileFunction, one: Inst, other: Inst) -> bool {
    func.dfg.insts[one].slot() == func.dfg.insts[other].slot()
}

fn rewrite(
    func: &mut TileFunction,
    (block, looped): (Block, Inst),
    (body, last): (Block, Inst),
    (found, late): (&[(usize, &Started)], &[Vec<Inst>]),
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
    list.retain(|inst| !late.iter().flatten().any(|moved| moved == inst));
    let wait = make(func, TileOp::DotWait, &tokens, &[]);
    let behind = last_start(&list, found).map_or(0, |at| at + 1);
    list.insert(behind, wait);
    // What the products of the iteration before read is given back now, if there was such an iteration.
    let i32 = TileType::scalar(Elem::I32);
    let i1 = TileType::scalar(Elem::I1);
    let mut entries = Vec::new();
    let mut at = behind + 1;
    for of_channel in late {
        let entry = func.dfg.append_param(body, i32);
        let (lo, iv) = (
            func.dfg.insts[looped].args[0],
            func.dfg.blocks[body].params[0],
        );
        let is_later = make(func, TileOp::Icmp, &[iv, lo], &[i1]);
        func.dfg.insts[is_later]
            .attrs
            .push(make_attr::ipred(IntPred::Ne));
        let exists = func.dfg.insts[is_later].results[0];
        list.insert(at, is_later);
        at += 1;
        let mut own = None;
        for &inst in of_channel {
            let mut data = func.dfg.insts[inst].clone();
            own = data.args.first().copied();
            data.args = ValueList::from_slice(&[entry, exists]);
            let moved = func.dfg.make_inst(data, &[]);
            list.insert(at, moved);
            at += 1;
        }
        let Some(own) = own else {
            continue;
        };
        func.dfg.insts[last].args.push(own);
        entries.push(own);
    }
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
    let (lo, hi) = (data.args[0], data.args[1]);
    for _ in &entries {
        let zero = make(func, TileOp::Const, &[], &[i32]);
        func.dfg.insts[zero].attrs.push(make_attr::value(0));
        data.args.push(func.dfg.insts[zero].results[0]);
        before.push(zero);
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
    // The last entries are given back when all sums are there.
    let first_entry = results.len() - entries.len();
    for (of_channel, &entry) in late.iter().zip(&results[first_entry..]) {
        let enters = make(func, TileOp::Icmp, &[lo, hi], &[i1]);
        func.dfg.insts[enters]
            .attrs
            .push(make_attr::ipred(IntPred::Slt));
        let exists = func.dfg.insts[enters].results[0];
        after.push(enters);
        for &inst in of_channel {
            let mut data = func.dfg.insts[inst].clone();
            data.args = ValueList::from_slice(&[entry, exists]);
            after.push(func.dfg.make_inst(data, &[]));
        }
    }
    let mut list = func.order.insts(block).to_vec();
    if let Some(at) = list.iter().position(|&inst| inst == looped) {
        // Another group that has its turn may start products while the last ones here are under way.
        let is_given = |inst| {
            late.iter()
                .flatten()
                .any(|&moved| same_slot(func, moved, inst))
        };
        let passes = |&&inst: &&Inst| {
            let data = &func.dfg.insts[inst];
            let is_scalar = || {
                data.results
                    .iter()
                    .all(|&value| func.dfg.ty(value).is_scalar())
            };
            match data.op {
                TileOp::Const | TileOp::Iadd | TileOp::Icmp => is_scalar(),
                TileOp::SlotPut => true,
                TileOp::MbarArrive => !is_given(inst),
                _ => false,
            }
        };
        let turn = list[at + 1..].iter().take_while(passes).count();
        list.splice(at + 1 + turn..at + 1 + turn, after);
        list.splice(at..=at, before.into_iter().chain([new]));
    }
    func.order.replace(block, list);
    for (position, &value) in old.iter().enumerate() {
        let new = renamed.get(&position).copied().unwrap_or(results[position]);
        rename_uses(func, value, new);
    }
}
