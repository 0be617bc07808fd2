//! Gives every shared-memory slot its offset.
//!
//! Positions number the instructions in program order. A slot lives from its first to its last access;
//! a range that leaves a block is widened over every loop it touches, because the next iteration may come
//! before the last access. Where more CTAs are resident then, not over a loop in which it lies whole, begins with a
//! write and is over: each iteration fills the slot anew, as what is carried from one to the next is
//! written in front of the loop for the first. Two slots whose ranges overlap must not share bytes. What products under
//! way read lives up to the wait for all of them, where there is not room for that up to the one for their group, and what copies under way write does, too: those of a loop's last iterations bring what nobody reads.
//!
//! That an iteration fills a slot anew relies on what the passes before make: a slot is filled for every read of the same iteration where it is
//! read at all, also under conditions, and whoever reads a box waits for it at its barrier, so that none is on its way when the last read is over.
//!
//! Sharing bytes costs a barrier between the last read of the one slot and the first write of the other,
//! so as long as all slots together are small each has its own. Beyond that they are placed largest
//! first, each at the lowest offset that no neighbour in time takes (first fit on intervals).
//!
//! What the copy engine stores from a slot in a loop it reads for as long as an iteration of a chain of small products may take, and
//! who writes to the slot's bytes waits for that. So such a slot lives in all of its loop, where an SM holds as many CTAs then: the
//! next iteration is the one that waits. (An H100: a gated delta rule that stores the states between blocks of 64 rows, with all 128
//! columns in a program, took 371 us and takes 302.)

use cranelift_entity::SecondaryMap;

use crate::ir::attrs::Attrs;
use crate::ir::effects::{AccessSpace, How};
use crate::ir::entities::{Block, Inst, Slot};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::settings::diversity::Choices;
use crate::settings::{Target, Usage};

/// Shared memory in bytes that is not worth a barrier: 32 CTAs of a multiprocessor take this much and
/// leave most of it.
const FREE_BYTES: u32 = 4096;

/// Registers that programs have at least which store boxes in a loop.
const FEWEST_REGISTERS: u32 = 64;

/// Where slots lie in time: positions of the first and last access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLiveRange {
    /// The slot.
    pub slot: Slot,
    /// Position of the first access.
    pub first: u32,
    /// Position of the last access.
    pub last: u32,
    /// The first access.
    pub inst: Inst,
}

/// Most bytes that other choices may take: any target has this much for a CTA.
const DIVERSE_BYTES: u32 = 48 << 10;

/// Places the slots and returns the bytes of shared memory that the kernel needs. With other `choices` slots come in any
/// order, with gaps, and share bytes though there are few.
pub fn place_shared(func: &mut ThreadFunction, target: Target, choices: &mut Choices) -> u32 {
    let limit = target.shared_limit();
    let longest = ranges_until(func, LIVES[0]);
    let end = place(func, target, longest.clone(), choices);
    if end > limit {
        return place(func, target, ranges_until(func, LIVES[2]), choices);
    }
    let shorter = ranges_until(func, LIVES[1]);
    if shorter == longest {
        return end;
    }
    let less = place(func, target, shorter, choices);
    let resident = |shared: u32| {
        target.resident(Usage {
            threads: func.num_threads(),
            registers: FEWEST_REGISTERS + largest_value(func),
            shared,
        })
    };
    match resident(less) > resident(end) {
        true => less,
        false => place(func, target, longest, choices),
    }
}

/// Registers of the value that takes the most of a thread's.
fn largest_value(func: &ThreadFunction) -> u32 {
    let results = func
        .all_insts()
        .flat_map(|(_, inst)| &func.dfg.insts[inst].results);
    let registers = results.map(|&value| {
        let ty = func.dfg.ty(value);
        (u32::from(ty.count) * ty.elem.bits()).div_ceil(32)
    });
    registers.max().unwrap_or(0)
}

/// Places the slots that live so.
fn place(
    func: &mut ThreadFunction,
    target: Target,
    mut ranges: Vec<SlotLiveRange>,
    choices: &mut Choices,
) -> u32 {
    if choices.chance(60) {
        let mut shuffled = ranges.clone();
        choices.shuffle(&mut shuffled);
        let end = first_fit(func, &shuffled, choices);
        if end <= DIVERSE_BYTES {
            return end;
        }
    }
    let total: u32 = ranges.iter().map(|r| padded(func, r.slot)).sum();
    if total <= FREE_BYTES {
        let mut offset = 0u32;
        for range in &ranges {
            let start = offset.next_multiple_of(func.slots[range.slot].align.max(1));
            func.slots[range.slot].offset = Some(start);
            offset = start + padded(func, range.slot);
        }
        return offset;
    }
    ranges.sort_by_key(|r| (std::cmp::Reverse(func.slots[r.slot].bytes), r.slot));
    let end = first_fit(func, &ranges, &mut Choices::none());
    let mut apart = ranges.clone();
    if !keep_apart(func, &mut apart) {
        return end;
    }
    let threads = func.num_threads();
    let resident = |shared: u32| {
        target.resident(Usage {
            threads,
            registers: FEWEST_REGISTERS,
            shared,
        })
    };
    let wider = first_fit(func, &apart, &mut Choices::none());
    match wider <= target.shared_limit() && resident(wider) >= resident(end) {
        true => wider,
        false => first_fit(func, &ranges, &mut Choices::none()),
    }
}

/// Lets slots that the copy engine stores from live in all of the innermost loop in which it does; gives whether there are such.
fn keep_apart(func: &ThreadFunction, ranges: &mut [SlotLiveRange]) -> bool {
    let mut stores: Vec<(Slot, u32)> = Vec::new();
    let mut bounds = Vec::new();
    let mut position = 0;
    for &block in &func.order.blocks {
        let start = position;
        for &inst in func.order.insts(block) {
            if func.dfg.insts[inst].op == ThreadOp::TensorStore {
                stores.extend(slots_of(func, inst).map(|slot| (slot, position)));
            }
            position += 1;
        }
        bounds.push((block, start, position));
    }
    if stores.is_empty() {
        return false;
    }
    let loops = loops(func, &bounds);
    let mut is_any = false;
    for (slot, at) in stores {
        let around = loops.iter().filter(|&&(head, end)| head <= at && at < end);
        let innermost = around.min_by_key(|&&(head, end)| end - head);
        let range = ranges.iter_mut().find(|range| range.slot == slot);
        if let (Some(&(head, end)), Some(range)) = (innermost, range) {
            range.first = range.first.min(head);
            range.last = range.last.max(end - 1);
            is_any = true;
        }
    }
    is_any
}

/// Places slots one after the other where nothing that lives with them is; gives where the last one ends.
fn first_fit(func: &mut ThreadFunction, ranges: &[SlotLiveRange], choices: &mut Choices) -> u32 {
    let mut end = 0;
    for (i, &here) in ranges.iter().enumerate() {
        let mut taken: Vec<(u32, u32)> = ranges[..i]
            .iter()
            .filter(|r| r.first <= here.last && here.first <= r.last)
            .filter_map(|r| {
                func.slots[r.slot]
                    .offset
                    .map(|o| (o, o + padded(func, r.slot)))
            })
            .collect();
        taken.sort_unstable();
        let (size, align) = (padded(func, here.slot), func.slots[here.slot].align.max(1));
        let mut offset = choices.below(4) as u32 * align;
        for (from, to) in taken {
            if offset + size <= from {
                break;
            }
            offset = offset.max(to.next_multiple_of(align));
        }
        func.slots[here.slot].offset = Some(offset);
        end = end.max(offset + size);
    }
    end
}

/// The slots that live at once where they take the most bytes, the largest first.
pub fn fullest(func: &ThreadFunction) -> Vec<SlotLiveRange> {
    let ranges = live_ranges(func);
    let bytes = |slot: Slot| func.slots[slot].bytes;
    // The sum is largest where a range begins.
    let at = |position: u32| {
        let live = ranges.iter().copied();
        live.filter(move |r| r.first <= position && position <= r.last)
    };
    let sum = |r: &&SlotLiveRange| at(r.first).map(|r| u64::from(bytes(r.slot))).sum::<u64>();
    let most = ranges.iter().max_by_key(sum).map(|r| r.first);
    let mut found: Vec<SlotLiveRange> = most.into_iter().flat_map(at).collect();
    found.sort_by_key(|r| (std::cmp::Reverse(bytes(r.slot)), r.slot));
    found
}

/// Size of a slot rounded up so that the next one may start behind it.
fn padded(func: &ThreadFunction, slot: Slot) -> u32 {
    let data = &func.slots[slot];
    data.bytes.next_multiple_of(data.align.max(16))
}

/// The slots that an instruction accesses, as often as it does.
fn slots_of(func: &ThreadFunction, inst: Inst) -> impl Iterator<Item = Slot> {
    let accesses = func.accesses(inst).into_iter();
    accesses.filter_map(|access| match access.space {
        AccessSpace::Shared(slot) => slot,
        AccessSpace::Global(_) | AccessSpace::Log => None,
    })
}

/// Slots that engines access for the threads, each with how many groups were closed since its last access. How many, on the way from blocks
/// before, is not known: those of the block at hand count.
#[derive(Default)]
struct UnderWay {
    slots: Vec<(Slot, u32)>,
}

impl UnderWay {
    fn enter_block(&mut self) {
        self.slots.iter_mut().for_each(|(_, closed)| *closed = 0);
    }

    fn begin(&mut self, slots: &[Slot]) {
        self.slots.retain(|(slot, _)| !slots.contains(slot));
        self.slots.extend(slots.iter().map(|&slot| (slot, 0)));
    }

    /// Whether accesses to a slot are not over at the end, so that a wait of the next iteration may be for them.
    fn holds(&self, slot: Slot) -> bool {
        self.slots.iter().any(|&(other, _)| other == slot)
    }

    fn close(&mut self) {
        self.slots.iter_mut().for_each(|(_, closed)| *closed += 1);
    }

    /// Waits until so many groups are left; gives what was accessed until now.
    fn wait(&mut self, left: Option<&u32>, over: Over) -> Vec<Slot> {
        let all = self.slots.iter().map(|&(slot, _)| slot).collect();
        match (left, over) {
            (Some(0), _) => self.slots.clear(),
            (Some(&left), Over::ByWaitForGroup) => {
                self.slots.retain(|&(_, closed)| closed <= left);
            }
            _ => {}
        }
        all
    }
}

/// When what engines access is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Behind a wait for their group.
    ByWaitForGroup,
    /// Behind the next wait for all groups: slots of a chain of products have bytes of their own then, and no barrier stands between one that is
    /// over and the next.
    ByWaitForAll,
}

/// What slots are taken to live for.
#[derive(Clone, Copy)]
struct Lives {
    over: Over,
    /// What each iteration of a loop fills anew ends with the iteration. It may share bytes then with what lies beside it in the loop,
    /// which costs a barrier in each iteration.
    in_iteration: bool,
}

/// The lives by which no barrier is needed for bytes that are shared; those that count where more CTAs are resident with them; and those
/// that do where there is no room else.
const LIVES: [Lives; 3] = {
    const fn lives(over: Over, in_iteration: bool) -> Lives {
        Lives { over, in_iteration }
    }
    [
        lives(Over::ByWaitForAll, false),
        lives(Over::ByWaitForAll, true),
        lives(Over::ByWaitForGroup, false),
    ]
};

/// The live range of each slot that is accessed, in the order of first accesses, by which slots that are placed share no bytes.
pub fn live_ranges(func: &ThreadFunction) -> Vec<SlotLiveRange> {
    let bytes = |slot: Slot| {
        let data = &func.slots[slot];
        data.offset.map(|start| start..start + data.bytes)
    };
    let meet = |a: &SlotLiveRange, b: &SlotLiveRange| {
        let at_once = a.first <= b.last && b.first <= a.last;
        let places = bytes(a.slot).zip(bytes(b.slot));
        at_once && places.is_some_and(|(a, b)| a.start < b.end && b.start < a.end)
    };
    let is_apart = |ranges: &Vec<SlotLiveRange>| {
        let mut pairs = ranges.iter().enumerate();
        !pairs.any(|(i, a)| ranges[..i].iter().any(|b| meet(a, b)))
    };
    let [long @ .., least] = LIVES;
    let mut all = long.map(|lives| ranges_until(func, lives)).into_iter();
    let found = all.find(is_apart);
    found.unwrap_or_else(|| ranges_until(func, least))
}

/// The same with such lives.
fn ranges_until(func: &ThreadFunction, lives: Lives) -> Vec<SlotLiveRange> {
    let mut ranges: Vec<SlotLiveRange> = Vec::new();
    let mut range_of: SecondaryMap<Slot, Option<usize>> = SecondaryMap::new();
    let mut bounds: Vec<(Block, u32, u32)> = Vec::new();
    let mut position = 0;
    // Slots that products under way read, and that copies under way write, up to the wait for them.
    let [mut reading, mut filling] = [(); 2].map(|()| UnderWay::default());
    for &block in &func.order.blocks {
        let start = position;
        for under_way in [&mut reading, &mut filling] {
            under_way.enter_block();
        }
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            let mut slots: Vec<Slot> = slots_of(func, inst).collect();
            match data.op {
                ThreadOp::Wgmma => reading.begin(&slots),
                ThreadOp::CpAsync => filling.begin(&slots),
                ThreadOp::WgmmaCommit => reading.close(),
                ThreadOp::CpAsyncCommit => filling.close(),
                ThreadOp::WgmmaWait => slots.extend(reading.wait(data.pending(), lives.over)),
                ThreadOp::CpAsyncWait => slots.extend(filling.wait(data.pending(), lives.over)),
                _ => {}
            }
            for slot in slots {
                let place = *range_of[slot].get_or_insert(ranges.len());
                match ranges.get_mut(place) {
                    Some(range) => range.last = position,
                    None => ranges.push(SlotLiveRange {
                        slot,
                        first: position,
                        last: position,
                        inst,
                    }),
                }
            }
            position += 1;
        }
        bounds.push((block, start, position));
    }
    // Barriers that somebody may still know keep their bytes.
    for range in &mut ranges {
        if func.dfg.insts[range.inst].op == ThreadOp::MbarInit {
            range.last = position.saturating_sub(1);
        }
    }
    let block_at = |position| bounds.partition_point(|b| b.2 <= position);
    // What lives within a block needs nothing of loops.
    let spans_blocks = |range: &SlotLiveRange| block_at(range.first) != block_at(range.last);
    if ranges.iter().any(spans_blocks) {
        let loops = loops(func, &bounds);
        for range in ranges.iter_mut().filter(|range| spans_blocks(range)) {
            let is_over = ![&reading, &filling].iter().any(|way| way.holds(range.slot));
            let is_anew = lives.in_iteration && is_over && begins_with_write(func, range);
            widen(range, is_anew, &loops);
        }
    }
    // Groups that take turns are at different places at a time, and access different parts of slots.
    if 1 < func.groups() {
        for range in &mut ranges {
            (range.first, range.last) = (0, position.saturating_sub(1));
        }
    }
    ranges
}

/// Position ranges from the target of each backward jump to its source.
fn loops(func: &ThreadFunction, bounds: &[(Block, u32, u32)]) -> Vec<(u32, u32)> {
    let mut starts: SecondaryMap<Block, u32> = SecondaryMap::new();
    for &(block, start, _) in bounds {
        starts[block] = start;
    }
    let mut loops = Vec::new();
    for &(block, from, to) in bounds {
        let Some(last) = func.order.last(block) else {
            continue;
        };
        for call in &func.dfg.insts[last].blocks {
            let head = starts[call.block];
            if head <= from {
                loops.push((head, to));
            }
        }
    }
    loops
}

/// Whether the first access to a slot writes it and does not read it.
fn begins_with_write(func: &ThreadFunction, range: &SlotLiveRange) -> bool {
    let accesses = func.accesses(range.inst);
    let mut own = accesses
        .iter()
        .filter(|access| access.space == AccessSpace::Shared(Some(range.slot)));
    own.all(|access| access.how == How::Write)
}

fn widen(range: &mut SlotLiveRange, is_anew: bool, loops: &[(u32, u32)]) {
    let mut changed = true;
    while changed {
        changed = false;
        for &(head, end) in loops {
            let touches = range.first < end && head <= range.last;
            let covers = range.first <= head && end <= range.last + 1;
            let is_whole = head <= range.first && range.last < end;
            if touches && !covers && !(is_whole && is_anew) {
                range.first = range.first.min(head);
                range.last = range.last.max(end - 1);
                changed = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let number = b.const_bits(0, ThreadType::scalar(Elem::F32));
        for &bytes in sizes {
            let (slot, address) = slot(&mut b, bytes);
            let mut store = InstData::new(ThreadOp::St, &[address, number]);
            store.attrs.push(make::slot(slot));
            b.inst(store, &[]);
            let mut load = InstData::new(ThreadOp::Ld, &[address]);
            load.attrs.push(make::slot(slot));
            b.inst(load, &[ThreadType::scalar(Elem::F32)]);
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

    /// The inner loop ends first, so it is looked at first, and what it reads ends with it so far.
    #[test]
    fn what_an_inner_loop_reads_lives_in_all_of_the_outer_one() {
        let mut b = ThreadBuilder::new("k", 4);
        let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
        let [kept, passing] = [(); 2].map(|()| slot(&mut b, 8192));
        let [outer, inner, rest, exit] = [(); 4].map(|()| b.new_block(&[]).0);
        store(&mut b, kept);
        b.jump(outer, &[]);
        b.append_block(outer);
        b.switch_to(outer);
        b.jump(inner, &[]);
        b.append_block(inner);
        b.switch_to(inner);
        load(&mut b, kept);
        b.brif(again, (inner, &[]), (rest, &[]));
        b.append_block(rest);
        b.switch_to(rest);
        store(&mut b, passing);
        load(&mut b, passing);
        b.brif(again, (outer, &[]), (exit, &[]));
        b.append_block(exit);
        b.switch_to(exit);
        b.ret();
        let mut func = b.finish().expect("everything fits");
        place_shared(&mut func, Target::SM_90A, &mut Choices::none());
        let mut offsets = offsets(&func);
        offsets.sort();
        assert_eq!(offsets, [Some(0), Some(8192)]);
    }

    /// Makes accesses to a slot.
    type Accesses = fn(&mut ThreadBuilder, (Slot, Value));

    /// A loop around another one, whose accesses to a slot these are: in front of the inner loop, in it, and behind it; there another slot of
    /// as many bytes is used, too. Gives the bytes of both.
    fn nest(bytes: u32, accesses: [Accesses; 3]) -> u32 {
        let mut b = ThreadBuilder::new("k", 4);
        let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
        let [own, passing] = [(); 2].map(|()| slot(&mut b, bytes));
        let [outer, inner, rest, exit] = [(); 4].map(|()| b.new_block(&[]).0);
        b.jump(outer, &[]);
        b.append_block(outer);
        b.switch_to(outer);
        accesses[0](&mut b, own);
        b.jump(inner, &[]);
        b.append_block(inner);
        b.switch_to(inner);
        accesses[1](&mut b, own);
        b.brif(again, (inner, &[]), (rest, &[]));
        b.append_block(rest);
        b.switch_to(rest);
        accesses[2](&mut b, own);
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

    #[test]
    fn what_an_iteration_fills_anew_ends_with_it_where_that_is_worth_a_barrier() {
        // An SM has room for one CTA with both, and for two with one.
        const MUCH: u32 = 98_304;
        let none = |_: &mut ThreadBuilder, _: (Slot, Value)| {};
        assert_eq!(nest(MUCH, [store, load, none]), MUCH);
        // Of 65 registers for each of 128 threads an SM has room for 7 CTAs, which may have 31 KiB each.
        assert_eq!(nest(8192, [store, load, none]), 2 * 8192);
        assert_eq!(nest(16384, [store, load, none]), 16384);
        // What comes first reads what the iteration before wrote.
        assert_eq!(nest(MUCH, [load, load, store]), 2 * MUCH);
        // Nothing waits for the last product but what the next iteration may have.
        assert_eq!(nest(MUCH, [store, product, none]), 2 * MUCH);
        let finish = |b: &mut ThreadBuilder, _: (Slot, Value)| wait(b, 0);
        assert_eq!(nest(MUCH, [store, product, finish]), MUCH);
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

    /// Of 64 registers for each of 128 threads an SM has room for 8 CTAs, which may have 28 KiB each.
    #[test]
    fn what_the_engine_stores_from_in_a_loop_shares_nothing_where_that_is_free() {
        assert_eq!(stored_in_a_loop(16384), (24576, vec![Some(16384), Some(0)]));
        assert_eq!(stored_in_a_loop(24576), (24576, vec![Some(0), Some(0)]));
    }
}
