//! Which slots share bytes.

use super::*;
use crate::ir::attrs::{MmaUnit, make};
use crate::ir::builder::ThreadBuilder;
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::function::SlotData;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType};

/// A function that writes and reads slots of the given sizes one after the other.
fn round_trips(sizes: &[u32]) -> ThreadFunction {
    let mut b = ThreadBuilder::new("k", 4);
    for &bytes in sizes {
        let slot = slot(&mut b, bytes);
        store(&mut b, slot);
        load(&mut b, slot);
    }
    b.ret();
    b.finish().expect("everything fits")
}

fn offsets(func: &ThreadFunction) -> Vec<Option<u32>> {
    func.slots.values().map(|s| s.offset).collect()
}

#[test]
fn small_slots_share_nothing() {
    let mut func = round_trips(&[16, 20, 64]);
    assert_eq!(
        place_shared(&mut func, Target::SM_90A, &mut Choices::none()),
        16 + 32 + 64
    );
    assert_eq!(offsets(&func), [Some(0), Some(16), Some(48)]);
}

#[test]
fn large_slots_share_when_they_do_not_live_together() {
    let mut func = round_trips(&[8192, 16384, 4096]);
    assert_eq!(
        place_shared(&mut func, Target::SM_90A, &mut Choices::none()),
        16384
    );
    assert_eq!(offsets(&func), [Some(0), Some(0), Some(0)]);
}

/// A slot of so many bytes, and its address.
fn slot(b: &mut ThreadBuilder, bytes: u32) -> (Slot, Value) {
    let slot = b.func_mut().slots.push(SlotData {
        bytes,
        align: 16,
        offset: None,
        by_group: false,
    });
    let ty = ThreadType::scalar(Elem::Ptr(Scalar::F32, AddressSpace::Shared));
    (slot, b.slot_addr(slot, ty))
}

fn store(b: &mut ThreadBuilder, (slot, address): (Slot, Value)) {
    let number = b.const_bits(0, ThreadType::scalar(Elem::F32));
    let mut data = InstData::new(ThreadOp::St, &[address, number]);
    data.attrs.push(make::slot(slot));
    b.inst(data, &[]);
}

fn load(b: &mut ThreadBuilder, (slot, address): (Slot, Value)) {
    let mut data = InstData::new(ThreadOp::Ld, &[address]);
    data.attrs.push(make::slot(slot));
    b.inst(data, &[ThreadType::scalar(Elem::F32)]);
}

/// A group of one product, which reads a slot until a wait.
fn product(b: &mut ThreadBuilder, (slot, address): (Slot, Value)) {
    let mut data = InstData::new(ThreadOp::Wgmma, &[address]);
    data.attrs.push(make::slot(slot));
    data.attrs.push(make::unit(MmaUnit::WarpgroupF16));
    let block = b.block();
    let func = b.func_mut();
    for data in [data, InstData::new(ThreadOp::WgmmaCommit, &[])] {
        let inst = func.dfg.make_inst(data, &[]);
        func.order.append(block, inst);
    }
}

fn wait(b: &mut ThreadBuilder, left: u32) {
    let mut data = InstData::new(ThreadOp::WgmmaWait, &[]);
    data.attrs.push(make::pending(left));
    b.inst(data, &[]);
}

/// Bytes of products one behind the other on so many bytes each, of which the next is started before one is waited for; cut, each wait begins a block.
fn chain_of_products(products: usize, bytes: u32, is_cut: bool) -> u32 {
    let mut b = ThreadBuilder::new("k", 4);
    for i in 0..products {
        let operand = slot(&mut b, bytes);
        store(&mut b, operand);
        product(&mut b, operand);
        if is_cut {
            let next = b.new_block(&[]).0;
            b.jump(next, &[]);
            b.append_block(next);
            b.switch_to(next);
        }
        wait(&mut b, u32::from(i + 1 < products));
    }
    b.ret();
    let mut func = b.finish().expect("everything fits");
    place_shared(&mut func, Target::SM_90A, &mut Choices::none())
}

#[test]
fn what_a_product_reads_ends_with_its_group() {
    const TOO_MUCH: u32 = 65536;
    assert_eq!(chain_of_products(8, TOO_MUCH, false), 2 * TOO_MUCH);
    // How many groups were closed on the way to a block is not asked: the wait for all is the end.
    assert_eq!(chain_of_products(4, TOO_MUCH, true), 4 * TOO_MUCH);
    // Where there is room each has its own bytes.
    assert_eq!(chain_of_products(4, 8192, false), 4 * 8192);
}

#[test]
fn what_is_read_behind_a_loop_lives_in_all_of_it() {
    let mut b = ThreadBuilder::new("k", 4);
    let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let [inside, behind] = [(); 2].map(|()| slot(&mut b, 8192));
    let [body, exit] = [(); 2].map(|()| b.new_block(&[]).0);
    b.jump(body, &[]);
    b.append_block(body);
    b.switch_to(body);
    store(&mut b, inside);
    load(&mut b, inside);
    store(&mut b, behind);
    b.brif(again, (body, &[]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    load(&mut b, behind);
    b.ret();
    let mut func = b.finish().expect("everything fits");
    place_shared(&mut func, Target::SM_90A, &mut Choices::none());
    let mut offsets = offsets(&func);
    offsets.sort();
    assert_eq!(offsets, [Some(0), Some(8192)]);
}

/// Makes accesses to a slot.
type Accesses = fn(&mut ThreadBuilder, (Slot, Value));

fn none(_: &mut ThreadBuilder, _: (Slot, Value)) {}

/// A loop around another one that may have no iteration, whose accesses to a slot these are: in front of both, in front of the inner
/// loop, in it, and behind it; there another slot of as many bytes is used, too. Gives the bytes of both.
fn nest(bytes: u32, accesses: [Accesses; 4]) -> u32 {
    let mut b = ThreadBuilder::new("k", 4);
    let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let [own, passing] = [(); 2].map(|()| slot(&mut b, bytes));
    let [outer, inner, rest, exit] = [(); 4].map(|()| b.new_block(&[]).0);
    accesses[0](&mut b, own);
    b.jump(outer, &[]);
    b.append_block(outer);
    b.switch_to(outer);
    accesses[1](&mut b, own);
    b.brif(again, (inner, &[]), (rest, &[]));
    b.append_block(inner);
    b.switch_to(inner);
    accesses[2](&mut b, own);
    b.brif(again, (inner, &[]), (rest, &[]));
    b.append_block(rest);
    b.switch_to(rest);
    accesses[3](&mut b, own);
    store(&mut b, passing);
    load(&mut b, passing);
    b.brif(again, (outer, &[]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    b.ret();
    let mut func = b.finish().expect("everything fits");
    let end = place_shared(&mut func, Target::SM_90A, &mut Choices::none());
    // Who asks afterwards is told of lives with which this is right.
    let ranges = live_ranges(&func);
    let is_apart = ranges[0].last < ranges[1].first;
    assert_eq!(is_apart, end == bytes);
    end
}

/// An SM has room for one CTA with two slots of so many bytes, and for two with one.
const MUCH: u32 = 98_304;

/// The inner loop ends first, so it is looked at first, and what it reads ends with it so far.
#[test]
fn what_an_inner_loop_reads_lives_in_all_of_the_outer_one() {
    assert_eq!(nest(MUCH, [store, none, load, none]), 2 * MUCH);
}

#[test]
fn what_an_iteration_fills_anew_ends_with_it_where_that_is_worth_a_barrier() {
    assert_eq!(nest(MUCH, [none, store, load, none]), MUCH);
    // Of 65 registers for each of 128 threads an SM has room for 7 CTAs, which may have 31 KiB each.
    assert_eq!(nest(8192, [none, store, load, none]), 2 * 8192);
    assert_eq!(nest(16384, [none, store, load, none]), 16384);
}

#[test]
fn what_an_iteration_may_have_from_the_one_before_lives_in_all_of_the_loop() {
    assert_eq!(nest(MUCH, [none, load, load, store]), 2 * MUCH);
    // The inner loop may be left out.
    assert_eq!(nest(MUCH, [none, none, store, load]), 2 * MUCH);
    assert_eq!(nest(MUCH, [none, store, store, load]), MUCH);
}

/// The copy engine brings a box to a slot.
fn fetch(b: &mut ThreadBuilder, (slot, address): (Slot, Value)) {
    let mut data = InstData::new(ThreadOp::TensorCopy, &[address]);
    data.attrs.push(make::slot(slot));
    let block = b.block();
    let func = b.func_mut();
    let inst = func.dfg.make_inst(data, &[]);
    func.order.append(block, inst);
}

#[test]
fn what_engines_access_at_the_end_of_an_iteration_lives_in_all_of_the_loop() {
    assert_eq!(nest(MUCH, [none, store, product, none]), 2 * MUCH);
    let finish = |b: &mut ThreadBuilder, _: (Slot, Value)| wait(b, 0);
    assert_eq!(nest(MUCH, [none, store, product, finish]), MUCH);
    // Who reads a box has waited for it.
    assert_eq!(nest(MUCH, [none, fetch, load, none]), MUCH);
    assert_eq!(nest(MUCH, [none, fetch, load, fetch]), 2 * MUCH);
}

/// A loop that fills a slot, stores boxes from it, and then uses another slot of so many bytes; gives their offsets.
fn stored_in_a_loop(bytes: u32) -> (u32, Vec<Option<u32>>) {
    let mut b = ThreadBuilder::new("k", 4);
    let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
    let [sent, other] = [8192, bytes].map(|bytes| slot(&mut b, bytes));
    let [body, exit] = [(); 2].map(|()| b.new_block(&[]).0);
    b.jump(body, &[]);
    b.append_block(body);
    b.switch_to(body);
    store(&mut b, sent);
    let map = b.const_bits(0, ThreadType::scalar(Elem::I64));
    let at = b.const_bits(0, ThreadType::scalar(Elem::I32));
    let mut data = InstData::new(ThreadOp::TensorStore, &[sent.1, map, again, at]);
    data.attrs.push(make::slot(sent.0));
    b.inst(data, &[]);
    store(&mut b, other);
    load(&mut b, other);
    b.brif(again, (body, &[]), (exit, &[]));
    b.append_block(exit);
    b.switch_to(exit);
    b.ret();
    let mut func = b.finish().expect("everything fits");
    let end = place_shared(&mut func, Target::SM_90A, &mut Choices::none());
    (end, offsets(&func))
}

/// Of 65 registers for each of 128 threads an SM has room for 7 CTAs, which may have 31 KiB each.
#[test]
fn what_the_engine_stores_from_in_a_loop_shares_nothing_where_that_is_free() {
    assert_eq!(stored_in_a_loop(16384), (24576, vec![Some(16384), Some(0)]));
    assert_eq!(stored_in_a_loop(24576), (24576, vec![Some(0), Some(0)]));
}
