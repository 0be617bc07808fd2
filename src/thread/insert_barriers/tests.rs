//! Where barriers go, and where none.

use super::*;
use crate::ir::attrs::{Flag, MmaUnit};
use crate::ir::builder::ThreadBuilder;
use crate::ir::entities::Value;
use crate::ir::function::SlotData;
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType};

fn slot_at(b: &mut ThreadBuilder, offset: u32) -> (Slot, Value) {
    let slot = b.func_mut().slots.push(SlotData {
        bytes: 64,
        align: 16,
        offset: Some(offset),
        by_group: false,
    });
    let ty = ThreadType::scalar(Elem::Ptr(Scalar::F32, AddressSpace::Shared));
    (slot, b.slot_addr(slot, ty))
}

fn store(b: &mut ThreadBuilder, (slot, address): (Slot, Value), value: Value) {
    let mut data = InstData::new(ThreadOp::St, &[address, value]);
    data.attrs.push(make::slot(slot));
    b.inst(data, &[]);
}

fn load(b: &mut ThreadBuilder, (slot, address): (Slot, Value)) {
    let mut data = InstData::new(ThreadOp::Ld, &[address]);
    data.attrs.push(make::slot(slot));
    b.inst(data, &[ThreadType::scalar(Elem::F32)]);
}

/// Ops of the body in order, barriers included, without the address computations.
fn trace(func: &ThreadFunction) -> String {
    let ops = func.order.blocks.iter().flat_map(|&b| func.order.insts(b));
    let letter = |&i: &Inst| match func.dfg.insts[i].op {
        ThreadOp::St => "w",
        ThreadOp::Ld => "r",
        ThreadOp::Barrier => "|",
        ThreadOp::Brif => "?",
        _ => "",
    };
    ops.map(letter).collect()
}

/// An access to a slot in a block.
fn access(b: &mut ThreadBuilder, block: Block, letter: char, slots: [(Slot, Value); 2]) {
    let op = match letter.to_ascii_lowercase() {
        'w' | 's' => ThreadOp::St,
        'r' => ThreadOp::Ld,
        'm' => ThreadOp::LdMatrix,
        'a' => ThreadOp::Atom,
        'c' | 'h' => ThreadOp::CpAsync,
        'x' => ThreadOp::CpAsyncWait,
        't' => ThreadOp::TensorStore,
        'd' => ThreadOp::BulkCommit,
        'b' => ThreadOp::TensorCopy,
        'p' => ThreadOp::Wgmma,
        'k' => ThreadOp::WgmmaCommit,
        '0' | '1' => ThreadOp::WgmmaWait,
        'l' => ThreadOp::Ld,
        'g' => ThreadOp::GdcLaunchDependents,
        'e' => ThreadOp::Return,
        _ => ThreadOp::Barrier,
    };
    let mut data = InstData::new(op, &[]);
    let names_none = [
        ThreadOp::CpAsyncWait,
        ThreadOp::WgmmaCommit,
        ThreadOp::WgmmaWait,
        ThreadOp::BulkCommit,
        ThreadOp::GdcLaunchDependents,
        ThreadOp::Return,
        ThreadOp::Barrier,
    ];
    if letter == 'l' {
        // Nobody knows where this comes from.
        let ty = ThreadType::scalar(Elem::global(Scalar::F32));
        data.args.push(b.const_bits(0, ty));
    } else if !names_none.contains(&op) {
        let (slot, address) = slots[usize::from(letter.is_ascii_uppercase())];
        data.attrs.push(make::slot(slot));
        data.args.push(address);
    }
    if op == ThreadOp::Wgmma {
        data.attrs.push(make::unit(MmaUnit::WarpgroupF16));
    }
    if let Some(pending) = letter.to_digit(10) {
        data.attrs.push(make::pending(pending));
    }
    if op == ThreadOp::TensorStore {
        let map = b.const_bits(0, ThreadType::scalar(Elem::I64));
        data.args.push(map);
    }
    if "sh".contains(letter.to_ascii_lowercase()) {
        data.attrs.push(make::apart(Flag));
    }
    let func = b.func_mut();
    let inst = func.dfg.make_inst(data, &[]);
    func.order.append(block, inst);
}

/// Where barriers go between accesses: w stores, s stores to another entry of a ring, r loads, m loads of matrices, a atomic
/// steps, c copies under way, h copies to another entry of a ring, x waits for them, t boxes that are stored, d closes a group of these, b boxes that are brought, p products, k closes a group of
/// these, 0 and 1 wait until so many groups are left, l loads from device memory, g lets the next launch begin, e the end, | barriers. Capitals access the second slot. What else is put between: f fences
/// for engines, ? waits until boxes have been read, 1? until those of all groups but one have, ! until they are in memory, 0 until all products are over.
fn with_barriers(accesses: &str, second: u32) -> String {
    let mut b = ThreadBuilder::new("k", 4);
    let slots = [0, second].map(|offset| slot_at(&mut b, offset));
    let block = b.func().entry;
    for letter in accesses.chars() {
        access(&mut b, block, letter, slots);
    }
    let mut func = b.finish().expect("nothing is checked");
    insert_barriers(&mut func);
    shown(&func, block, accesses)
}

/// The same in the body of a loop, with slots that share bytes.
fn looped_with_barriers(accesses: &str) -> String {
    let mut b = ThreadBuilder::new("k", 4);
    let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let slots = [0, 32].map(|offset| slot_at(&mut b, offset));
    let (body, _) = b.new_block(&[]);
    let (exit, _) = b.new_block(&[]);
    b.jump(body, &[]);
    b.append_block(body);
    b.switch_to(body);
    for letter in accesses.chars() {
        access(&mut b, body, letter, slots);
    }
    b.brif(again, (body, &[]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    b.ret();
    let mut func = b.finish().expect("nothing is checked");
    insert_barriers(&mut func);
    shown(&func, body, accesses)
}

/// What stands in a block that had these accesses.
fn shown(func: &ThreadFunction, block: Block, accesses: &str) -> String {
    let mut letters = accesses.chars().filter(|letter| !"|01".contains(*letter));
    let insts = func.order.insts(block).iter();
    let pending = |inst: Inst| func.dfg.insts[inst].pending().copied().unwrap_or(0);
    let shown = insts.map(|&inst| match func.dfg.insts[inst].op {
        ThreadOp::SlotAddr | ThreadOp::Const => String::new(),
        ThreadOp::Barrier => "|".to_owned(),
        ThreadOp::FenceAsync => "f".to_owned(),
        ThreadOp::BulkWaitRead if pending(inst) == 0 => "?".to_owned(),
        ThreadOp::BulkWaitRead => format!("{}?", pending(inst)),
        ThreadOp::BulkWait => "!".to_owned(),
        ThreadOp::WgmmaWait => pending(inst).to_string(),
        _ => letters.next().map_or_else(String::new, String::from),
    });
    shown.collect()
}

#[test]
fn copies_wait_for_readers_of_their_entry() {
    // Those of the iteration read another one, and what iterations before read lies behind the barrier that lets all see what arrived.
    assert_eq!(looped_with_barriers("xrh"), "x|rh");
    assert_eq!(looped_with_barriers("xrc"), "x|r|c");
    assert_eq!(looped_with_barriers("xrhr"), "x|rhr");
    // Where it does not, the copy waits.
    assert_eq!(looped_with_barriers("hxr"), "|hx|r");
    // So it is with products, which read until they are over.
    assert_eq!(looped_with_barriers("xpkh0"), "x|pkh0");
    assert_eq!(looped_with_barriers("xpk0h"), "x|pk0h");
    assert_eq!(looped_with_barriers("xpk0c"), "x|pk0|c");
    assert_eq!(looped_with_barriers("xpk1h"), "x|pk1|h");
    assert_eq!(looped_with_barriers("xpkh1"), "x|pkh1");
    // In the place of another slot all but loads are in the way.
    assert_eq!(with_barriers("Rh", 0), "R|h");
    assert_eq!(with_barriers("Rh", 64), "Rh");
    // What fills a ring behind the loop whose last copies nobody reads: the same threads by copies, by stores maybe others.
    assert_eq!(with_barriers("hxc", 64), "hxc");
    assert_eq!(with_barriers("hxw", 64), "hx|w");
    assert_eq!(with_barriers("hxs", 64), "hxs");
}

/// Each iteration fills both slots anew: who fills the one waits for the readers of the other, those of the iteration before, too.
#[test]
fn slots_that_share_bytes_in_a_loop_are_filled_behind_the_readers_of_the_other() {
    assert_eq!(looped_with_barriers("wrWR"), "|w|r|W|R");
    assert_eq!(looped_with_barriers("wrsrWR"), "|w|rs|r|W|R");
    assert_eq!(looped_with_barriers("arWR"), "|a|r|W|R");
    // Copies by threads, to another entry of a ring, too.
    assert_eq!(looped_with_barriers("cxrWR"), "|cx|r|W|R");
    assert_eq!(looped_with_barriers("hxrWR"), "|hx|r|W|R");
    assert_eq!(looped_with_barriers("wrCxR"), "|w|r|Cx|R");
    // Products.
    assert_eq!(looped_with_barriers("wpk0WR"), "|wf|pk0|W|R");
    assert_eq!(looped_with_barriers("wpkWR"), "|wf|pk0|W|R");
    assert_eq!(looped_with_barriers("WRwpk"), "0|W|R|wf|pk");
    // Boxes that the engine brings, where threads wrote and read.
    assert_eq!(looped_with_barriers("brWR"), "|br|Wf|R");
    assert_eq!(looped_with_barriers("bpk0WR"), "|bpk0|Wf|R");
    // Boxes that the engine stores.
    assert_eq!(looped_with_barriers("wtWR"), "|wf|t?|W|R");
    assert_eq!(looped_with_barriers("WRwt"), "?|W|R|wf|t");
    assert_eq!(looped_with_barriers("brWT"), "?|br|Wf|T");
}

#[test]
fn boxes_are_waited_for_where_their_bytes_change() {
    // The engine sees what was stored, and its bytes may be read while it does so.
    assert_eq!(with_barriers("wtr", 0), "wf|tr");
    assert_eq!(with_barriers("wttw", 0), "wf|tt?|w");
    assert_eq!(with_barriers("wtwt", 0), "wf|t?|wf|t");
    assert_eq!(with_barriers("wta", 0), "wf|t?|a");
    assert_eq!(with_barriers("wtc", 0), "wf|t?|c");
    // So it is with another slot that shares bytes, and not with one that shares none.
    assert_eq!(with_barriers("wtW", 63), "wf|t?|W");
    assert_eq!(with_barriers("wtW", 64), "wf|tW");
    // A barrier of the author tells others of what is in memory; the bytes are free by then.
    assert_eq!(with_barriers("wt|w", 0), "wf|t!|w");
    // So does whatever else tells others, and a load may be one of what was stored.
    assert_eq!(with_barriers("wtg", 0), "wf|t!|g");
    assert_eq!(with_barriers("wtl", 0), "wf|t!|l");
    // Behind the end shared memory belongs to others.
    assert_eq!(with_barriers("wte", 0), "wf|t?e");
    // Groups end in the order in which they were closed: those behind the one that is waited for go on.
    assert_eq!(with_barriers("wtdWTdw", 64), "wf|tdWf|Td1?|w");
    assert_eq!(with_barriers("wtdWTdW", 64), "wf|tdWf|Td?|W");
    assert_eq!(with_barriers("wtdWTdwW", 64), "wf|tdWf|Td1?|w?f|W");
    assert_eq!(with_barriers("wtdWTde", 64), "wf|tdWf|Td?e");
}

#[test]
fn products_are_waited_for_where_their_operands_change() {
    // The unit sees what was stored, and reads until the wait; who waits does not speak for others.
    assert_eq!(with_barriers("wpkr", 0), "wf|pkr");
    assert_eq!(with_barriers("wpkw", 0), "wf|pk0|w");
    assert_eq!(with_barriers("wpk0w", 0), "wf|pk0|w");
    assert_eq!(with_barriers("wpka", 0), "wf|pk0|a");
    // Stores to another entry of a ring go on meanwhile, and so do copies.
    assert_eq!(with_barriers("wpks", 0), "wf|pks");
    assert_eq!(with_barriers("wpkc", 0), "wf|pkc");
    // A wait that leaves a group under way is none for what that reads.
    assert_eq!(with_barriers("wpk1w", 0), "wf|pk10|w");
    assert_eq!(with_barriers("wpkk1w", 0), "wf|pkk1|w");
    // A barrier ends no product.
    assert_eq!(with_barriers("wpk|w", 0), "wf|pk|0|w");
    // So it is with another slot that shares bytes, and not with one that shares none.
    assert_eq!(with_barriers("wpkW", 63), "wf|pk0|W");
    assert_eq!(with_barriers("wpkW", 64), "wf|pkW");
}

#[test]
fn a_barrier_of_the_author_is_no_fence() {
    assert_eq!(with_barriers("w|p", 0), "w|f|p");
    assert_eq!(with_barriers("w|t", 0), "w|f|t");
    // What arrives by copies of threads the units see without one; the engine writes behind them only with one.
    assert_eq!(with_barriers("cx|p", 0), "cx|p");
    assert_eq!(with_barriers("cx|B", 0), "cx|f|B");
    // The engine writes where threads wrote.
    assert_eq!(with_barriers("w|B", 0), "w|f|B");
    assert_eq!(with_barriers("w|B", 64), "w|B");
}

#[test]
fn one_barrier_of_two_is_left() {
    assert_eq!(with_barriers("w||r", 0), "w|r");
    assert_eq!(with_barriers("a|||a", 0), "a|a");
    assert_eq!(with_barriers("a|a|", 0), "a|a|");
    assert_eq!(with_barriers("||wt||w", 0), "|wf|t!|w");
}

#[test]
fn only_hazards_get_barriers() {
    let wanted = [
        // An exchange: its stores never overlap.
        "ww|rr|ww|rr",
        "w|m|w",
        "ws",
        "rs",
        // What the last iterations stored is in the way of what fills the ring again.
        "rss|w",
        "ss",
        // Atomic steps need no order among themselves.
        "aa|r|a",
        "w|a|w",
        "a|s",
        "a|m",
        // Copies write once they have arrived, and barriers do not make them arrive.
        "r|c",
        "a|c",
        "cr",
        "cx|r",
        "cc",
        "cx|a",
        // In the place of another slot all but loads are in the way.
        "W|r",
        "A|r",
        "W|m",
        "Rr",
        "R|w",
        "A|w",
        "W|w",
        "R|s",
        "A|s",
        "W|s",
        "R|a",
        "W|a",
        "A|a",
        "R|c",
        "A|c",
        "W|c",
        "Cx|r",
    ];
    for wanted in wanted {
        let accesses = wanted.replace('|', "");
        assert_eq!(with_barriers(&accesses, 0), wanted);
        let is_capital = |letter: char| letter.is_ascii_uppercase();
        if accesses.contains(is_capital) {
            // 64 bytes further the slots share none, one byte before they do.
            assert_eq!(with_barriers(&accesses, 64), accesses);
            assert_eq!(with_barriers(&accesses, 63), wanted);
        }
    }
    assert_eq!(with_barriers("c|xr", 0), "c|x|r");
}

#[test]
fn an_update_in_place_waits_until_all_have_read() {
    // Of two parameters only copies, which several threads read and one writes.
    for (same, copied, expected) in [
        (true, false, "r|w"),
        (false, false, "rw"),
        (false, true, "r|w"),
    ] {
        let mut b = ThreadBuilder::new("k", 4);
        let ty = ThreadType::scalar(Elem::global(Scalar::F32));
        let [x, y] = ["x", "y"].map(|name| b.param(name, ty));
        let one = b.const_bits(1, ThreadType::scalar(Elem::I64));
        let (from, to) = (b.addptr(x, one), b.addptr(if same { x } else { y }, one));
        let value = b.ld(from, None, None, ThreadType::scalar(Elem::F32));
        if copied {
            b.with(make::copied(Flag));
        }
        b.st(to, value, None);
        if copied {
            b.with(make::copied(Flag));
        }
        b.ret();
        let mut func = b.finish().expect("everything fits");
        insert_barriers(&mut func);
        assert_eq!(trace(&func), expected);
    }
}

#[test]
fn a_loop_waits_for_the_readers_of_the_last_iteration() {
    let mut b = ThreadBuilder::new("k", 4);
    let one = b.const_bits(0, ThreadType::scalar(Elem::F32));
    let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let (body, _) = b.new_block(&[]);
    let (exit, _) = b.new_block(&[]);
    b.jump(body, &[]);
    b.append_block(body);
    b.switch_to(body);
    let place = slot_at(&mut b, 0);
    store(&mut b, place, one);
    load(&mut b, place);
    b.brif(again, (body, &[]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    b.ret();
    let mut func = b.finish().expect("everything fits");
    assert_eq!(insert_barriers(&mut func), 2);
    assert_eq!(trace(&func), "|w|r?");
}

/// Whether a barrier stands between a load and what follows, through the pointer `x` or one of unknown origin.
fn waits_in_device_memory(unknown: [bool; 2], is_volatile: bool, second: ThreadOp) -> bool {
    let mut b = ThreadBuilder::new("k", 4);
    let ty = ThreadType::scalar(Elem::global(Scalar::F32));
    let [x, y] = ["x", "y"].map(|name| b.param(name, ty));
    let which = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let either = b.select(which, x, y);
    let [from, to] = unknown.map(|unknown| if unknown { either } else { x });
    let value = b.ld(from, None, None, ThreadType::scalar(Elem::F32));
    if is_volatile {
        b.with(make::volatile(Flag));
    }
    let block = b.func().entry;
    let func = b.func_mut();
    let inst = func.dfg.make_inst(InstData::new(second, &[to, value]), &[]);
    func.order.append(block, inst);
    let mut func = b.finish().expect("everything fits");
    insert_barriers(&mut func) == 1
}

#[test]
fn what_is_written_in_device_memory_waits_for_plain_loads() {
    for unknown in [[false, false], [false, true], [true, false], [true, true]] {
        for writes in [ThreadOp::St, ThreadOp::Atom, ThreadOp::AtomCas] {
            assert!(waits_in_device_memory(unknown, false, writes));
        }
        // Volatile loads are atomic, as are atomic steps, but stores are not.
        assert!(waits_in_device_memory(unknown, true, ThreadOp::St));
        assert!(!waits_in_device_memory(unknown, true, ThreadOp::Atom));
    }
}

#[test]
fn copies_that_a_block_before_loaded_count() {
    let mut b = ThreadBuilder::new("k", 4);
    let ty = ThreadType::scalar(Elem::global(Scalar::F32));
    let [x, y] = ["x", "y"].map(|name| b.param(name, ty));
    let value = b.ld(x, None, None, ThreadType::scalar(Elem::F32));
    b.with(make::copied(Flag));
    let (next, _) = b.new_block(&[]);
    b.jump(next, &[]);
    b.append_block(next);
    b.switch_to(next);
    b.st(y, value, None);
    b.with(make::copied(Flag));
    b.ret();
    let mut func = b.finish().expect("everything fits");
    insert_barriers(&mut func);
    assert_eq!(trace(&func), "r|w");
}

#[test]
fn what_a_loop_brings_back_goes_through_all_its_blocks() {
    let mut b = ThreadBuilder::new("k", 4);
    let one = b.const_bits(0, ThreadType::scalar(Elem::F32));
    let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let place = slot_at(&mut b, 0);
    let [head, tail, exit] = [0; 3].map(|_| b.new_block(&[]).0);
    b.jump(head, &[]);
    b.append_block(head);
    b.switch_to(head);
    b.jump(tail, &[]);
    b.append_block(tail);
    b.switch_to(tail);
    load(&mut b, place);
    store(&mut b, place, one);
    b.brif(again, (head, &[]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    b.ret();
    let mut func = b.finish().expect("everything fits");
    insert_barriers(&mut func);
    assert_eq!(trace(&func), "|r|w?");
}

/// A copy reads until its wait, so what it read is overwritten behind a barrier that follows the wait.
#[test]
fn what_copies_read_is_kept_until_all_have_waited() {
    for (waits, expected) in [(true, "|w"), (false, "w")] {
        let mut b = ThreadBuilder::new("k", 4);
        let x = b.param("x", ThreadType::scalar(Elem::global(Scalar::F32)));
        let value = b.const_bits(0, ThreadType::scalar(Elem::F32));
        let (slot, address) = slot_at(&mut b, 0);
        b.cp_async(address, x, None, None, 4);
        b.with(make::slot(slot));
        b.cp_async_commit();
        if waits {
            b.cp_async_wait(0);
        }
        b.st(x, value, None);
        b.ret();
        let mut func = b.finish().expect("everything fits");
        insert_barriers(&mut func);
        assert_eq!(trace(&func), expected);
    }
}
