//! Gives every shared-memory slot its offset.
//!
//! Slots live from their first to their last access ([`live_ranges`]). Two slots whose ranges overlap must not share bytes. What products under
//! way read lives up to the wait for all of them, where there is not room for that up to the one for their group. What an iteration of a
//! loop fills anew ends with the iteration where more CTAs are resident then, and else lives in all of the loop.
//!
//! Sharing bytes costs a barrier between the last read of the one slot and the first write of the other,
//! so as long as all slots together are small each has its own. Beyond that they are placed largest
//! first, each at the lowest offset that no neighbour in time takes (first fit on intervals).
//!
//! What the copy engine stores from a slot in a loop it reads for as long as an iteration of a chain of small products may take, and
//! who writes to the slot's bytes waits for that. So such a slot lives in all of its loop, where an SM holds as many CTAs then: the
//! next iteration is the one that waits. (An H100: a gated delta rule that stores the states between blocks of 64 rows, with all 128
//! columns in a program, took 371 us and takes 302.)

mod lives;

use self::lives::{LIVES, kept_apart, ranges};
pub use self::lives::{SlotLiveRange, live_ranges};
use crate::ir::entities::Slot;
use crate::ir::function::ThreadFunction;
use crate::settings::diversity::Choices;
use crate::settings::{Target, Usage};

/// Shared memory in bytes that is not worth a barrier: 32 CTAs of a multiprocessor take this much and
/// leave most of it.
const FREE_BYTES: u32 = 4096;

/// Registers that programs have at least, beside their largest value, where shared memory decides how many CTAs are resident.
const FEWEST_REGISTERS: u32 = 64;

/// Most bytes that other choices may take: any target has this much for a CTA.
const DIVERSE_BYTES: u32 = 48 << 10;

/// Where slots are.
struct Placement {
    offsets: Vec<(Slot, u32)>,
    /// Bytes of shared memory that the kernel needs.
    end: u32,
}

/// Places the slots and returns the bytes of shared memory that the kernel needs. With other `choices` slots come in any
/// order, with gaps, and share bytes though there are few.
pub fn place_shared(func: &mut ThreadFunction, target: Target, choices: &mut Choices) -> u32 {
    let placement = choose(func, target, choices);
    for (slot, offset) in placement.offsets {
        func.slots[slot].offset = Some(offset);
    }
    placement.end
}

/// The placement with the lives that are worth most.
fn choose(func: &ThreadFunction, target: Target, choices: &mut Choices) -> Placement {
    let longest = ranges(func, LIVES[0]);
    let placed = place(func, target, &longest, choices);
    if placed.end > target.shared_limit() {
        return place(func, target, &ranges(func, LIVES[2]), choices);
    }
    let shorter = ranges(func, LIVES[1]);
    if shorter == longest {
        return placed;
    }
    let less = place(func, target, &shorter, choices);
    match resident(func, target, less.end) > resident(func, target, placed.end) {
        true => less,
        false => placed,
    }
}

/// CTAs that an SM holds, with so many bytes of shared memory, as far as is known before registers are given.
fn resident(func: &ThreadFunction, target: Target, shared: u32) -> u32 {
    target.resident(Usage {
        threads: func.num_threads(),
        registers: FEWEST_REGISTERS + largest_value(func),
        shared,
    })
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
    func: &ThreadFunction,
    target: Target,
    ranges: &[SlotLiveRange],
    choices: &mut Choices,
) -> Placement {
    if choices.chance(60) {
        let mut shuffled = ranges.to_vec();
        choices.shuffle(&mut shuffled);
        let placed = first_fit(func, &shuffled, choices);
        if placed.end <= DIVERSE_BYTES {
            return placed;
        }
    }
    let total: u32 = ranges.iter().map(|r| padded(func, r.slot)).sum();
    if total <= FREE_BYTES {
        let mut end = 0u32;
        let mut offsets = Vec::new();
        for range in ranges {
            let start = end.next_multiple_of(func.slots[range.slot].align.max(1));
            offsets.push((range.slot, start));
            end = start + padded(func, range.slot);
        }
        return Placement { offsets, end };
    }
    let placed = largest_first(func, ranges.to_vec());
    let Some(apart) = kept_apart(func, ranges) else {
        return placed;
    };
    let wider = largest_first(func, apart);
    let is_free = wider.end <= target.shared_limit()
        && resident(func, target, wider.end) >= resident(func, target, placed.end);
    match is_free {
        true => wider,
        false => placed,
    }
}

/// Places slots with the largest first.
fn largest_first(func: &ThreadFunction, mut ranges: Vec<SlotLiveRange>) -> Placement {
    ranges.sort_by_key(|r| (std::cmp::Reverse(func.slots[r.slot].bytes), r.slot));
    first_fit(func, &ranges, &mut Choices::none())
}

/// Places slots one after the other where nothing that lives with them is.
fn first_fit(func: &ThreadFunction, ranges: &[SlotLiveRange], choices: &mut Choices) -> Placement {
    let mut end = 0;
    let mut offsets: Vec<(Slot, u32)> = Vec::new();
    for &here in ranges {
        let placed = ranges.iter().zip(&offsets);
        let mut taken: Vec<(u32, u32)> = placed
            .filter(|(r, _)| r.first <= here.last && here.first <= r.last)
            .map(|(_, &(slot, offset))| (offset, offset + padded(func, slot)))
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
        offsets.push((here.slot, offset));
        end = end.max(offset + size);
    }
    Placement { offsets, end }
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

#[cfg(test)]
mod tests;
