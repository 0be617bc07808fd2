//! How long slots of shared memory live.
//!
//! Positions number the instructions in program order. A slot lives from its first to its last access; a range that leaves a block is
//! widened over every loop it touches, because the next iteration may come before the last access. What products under way read lives
//! up to a wait for them, and what copies under way write does, too: those of a loop's last iterations bring what nobody reads.
//!
//! What each iteration of a loop fills anew may end with the iteration: it lies whole in the loop, is not live at its head (no way from
//! there reads it before something writes it), and neither products nor copies access it any more at the loop's end. Boxes that are stored
//! may be under way: who changes their bytes waits for them (`insert_barriers`). That relies on what the passes before
//! make: what is written on a way to a read is all that is read there; copies and boxes are started only where they are read or waited
//! for in the same region; and whoever reads a box waits for it at its barrier.

use std::collections::BTreeMap;

use cranelift_entity::{EntitySet, SecondaryMap};

use crate::analysis::cfg::Cfg;
use crate::ir::attrs::Attrs;
use crate::ir::effects::{AccessSpace, How};
use crate::ir::entities::{Block, Inst, Slot};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;

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
pub(super) struct Lives {
    over: Over,
    /// What each iteration of a loop fills anew ends with the iteration. It may share bytes then with what lies beside it in the loop,
    /// which costs a barrier in each iteration.
    in_iteration: bool,
}

/// The lives by which no barrier is needed for bytes that are shared; those that count where more CTAs are resident with them; and those
/// that do where there is no room else.
pub(super) const LIVES: [Lives; 3] = {
    const fn lives(over: Over, in_iteration: bool) -> Lives {
        Lives { over, in_iteration }
    }
    [
        lives(Over::ByWaitForAll, false),
        lives(Over::ByWaitForAll, true),
        lives(Over::ByWaitForGroup, false),
    ]
};

/// A loop: from the target of a jump back to its source.
struct Loop {
    head: Block,
    /// Position of the first instruction.
    first: u32,
    /// Position behind the last one.
    end: u32,
    /// What engines access at its end, as nobody waited for them.
    under_way: Vec<Slot>,
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
        self.end(slots);
        self.slots.extend(slots.iter().map(|&slot| (slot, 0)));
    }

    fn end(&mut self, slots: &[Slot]) {
        self.slots.retain(|(slot, _)| !slots.contains(slot));
    }

    fn close(&mut self) {
        self.slots.iter_mut().for_each(|(_, closed)| *closed += 1);
    }

    /// Waits until so many groups are left; gives what was accessed until now.
    fn wait(&mut self, left: Option<&u32>, over: Over) -> Vec<Slot> {
        let all = self.slots().collect();
        match (left, over) {
            (Some(0), _) => self.slots.clear(),
            (Some(&left), Over::ByWaitForGroup) => {
                self.slots.retain(|&(_, closed)| closed <= left);
            }
            _ => {}
        }
        all
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().map(|&(slot, _)| slot)
    }
}

/// Accesses in program order.
struct Scan {
    /// The range of each slot from its first access to its last, in the order of first accesses.
    ranges: Vec<SlotLiveRange>,
    /// The first position of each block and the one behind its last.
    blocks: SecondaryMap<Block, (u32, u32)>,
    loops: Vec<Loop>,
    /// Whether the first access of a block to a slot reads it.
    is_read_first: BTreeMap<(Block, Slot), bool>,
    /// What the copy engine stores from, and where.
    stored: Vec<(Slot, u32)>,
    end: u32,
}

impl Scan {
    fn of(func: &ThreadFunction, over: Over) -> Scan {
        let mut scan = Scan {
            ranges: Vec::new(),
            blocks: SecondaryMap::new(),
            loops: Vec::new(),
            is_read_first: BTreeMap::new(),
            stored: Vec::new(),
            end: 0,
        };
        let mut place_of: SecondaryMap<Slot, Option<usize>> = SecondaryMap::new();
        // Slots that products read, that copies write and that boxes fill, up to the wait for them. Who reads a box has waited for it.
        let [mut reading, mut filling, mut boxes] = [(); 3].map(|()| UnderWay::default());
        let mut position = 0;
        for &block in &func.order.blocks {
            let start = position;
            for under_way in [&mut reading, &mut filling] {
                under_way.enter_block();
            }
            for &inst in func.order.insts(block) {
                let data = &func.dfg.insts[inst];
                let mut slots = slots_of(func, inst);
                for &slot in &slots {
                    let first = scan.is_read_first.entry((block, slot));
                    first.or_insert_with(|| reads(func, inst, slot));
                }
                boxes.end(&slots);
                match data.op {
                    ThreadOp::TensorCopy => boxes.begin(&slots),
                    ThreadOp::TensorStore => {
                        scan.stored
                            .extend(slots.iter().map(|&slot| (slot, position)));
                    }
                    ThreadOp::Wgmma => reading.begin(&slots),
                    ThreadOp::CpAsync => filling.begin(&slots),
                    ThreadOp::WgmmaCommit => reading.close(),
                    ThreadOp::CpAsyncCommit => filling.close(),
                    ThreadOp::WgmmaWait => slots.extend(reading.wait(data.pending(), over)),
                    ThreadOp::CpAsyncWait => slots.extend(filling.wait(data.pending(), over)),
                    _ => {}
                }
                for slot in slots {
                    let place = *place_of[slot].get_or_insert(scan.ranges.len());
                    match scan.ranges.get_mut(place) {
                        Some(range) => range.last = position,
                        None => scan.ranges.push(SlotLiveRange {
                            slot,
                            first: position,
                            last: position,
                            inst,
                        }),
                    }
                }
                position += 1;
            }
            scan.blocks[block] = (start, position);
            let last = func.order.last(block);
            for call in last.iter().flat_map(|&last| &func.dfg.insts[last].blocks) {
                // A block behind this one has no place yet.
                let (first, end) = scan.blocks[call.block];
                if first < end {
                    let all = [&reading, &filling, &boxes].into_iter();
                    scan.loops.push(Loop {
                        head: call.block,
                        first,
                        end: position,
                        under_way: all.flat_map(UnderWay::slots).collect(),
                    });
                }
            }
        }
        scan.end = position;
        scan
    }

    /// Whether a way from the head of a loop reads a slot before something writes it.
    fn is_live(&self, cfg: &Cfg, slot: Slot, head: Block) -> bool {
        let mut seen = EntitySet::new();
        let mut ahead = vec![head];
        while let Some(block) = ahead.pop() {
            if !seen.insert(block) {
                continue;
            }
            match self.is_read_first.get(&(block, slot)) {
                Some(true) => return true,
                Some(false) => {}
                None => ahead.extend(cfg.successors(block)),
            }
        }
        false
    }

    /// Widens the range of a slot over the loops that it touches, but for those of which `ends` says that the slot ends with an iteration.
    fn widen(&self, range: &mut SlotLiveRange, ends: impl Fn(&Loop) -> bool) {
        let mut changed = true;
        while changed {
            changed = false;
            for around in &self.loops {
                let touches = range.first < around.end && around.first <= range.last;
                let covers = range.first <= around.first && around.end <= range.last + 1;
                let is_whole = around.first <= range.first && range.last < around.end;
                if touches && !covers && !(is_whole && ends(around)) {
                    range.first = range.first.min(around.first);
                    range.last = range.last.max(around.end - 1);
                    changed = true;
                }
            }
        }
    }
}

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
    let mut all = long.map(|lives| ranges(func, lives)).into_iter();
    let found = all.find(is_apart);
    found.unwrap_or_else(|| ranges(func, least))
}

/// The live range of each slot that is accessed, with such lives.
pub(super) fn ranges(func: &ThreadFunction, lives: Lives) -> Vec<SlotLiveRange> {
    let mut scan = Scan::of(func, lives.over);
    let mut ranges = std::mem::take(&mut scan.ranges);
    let last = scan.end.saturating_sub(1);
    // Groups that take turns are at different places at a time, and access different parts of slots.
    if 1 < func.groups() {
        for range in &mut ranges {
            (range.first, range.last) = (0, last);
        }
        return ranges;
    }
    let mut cfg = Cfg::default();
    for range in &mut ranges {
        // Barriers that somebody may still know keep their bytes.
        if func.dfg.insts[range.inst].op == ThreadOp::MbarInit {
            range.last = last;
        }
        // What lives within a block needs nothing of loops.
        let mut blocks = func.order.blocks.iter().map(|&block| scan.blocks[block]);
        if blocks.any(|(start, end)| start <= range.first && range.last < end) {
            continue;
        }
        if lives.in_iteration && !cfg.is_valid() {
            cfg.compute(func);
        }
        let slot = range.slot;
        scan.widen(range, |around| {
            lives.in_iteration
                && !around.under_way.contains(&slot)
                && !scan.is_live(&cfg, slot, around.head)
        });
    }
    ranges
}

/// The same ranges, where what the copy engine stores from lives in all of the innermost loop in which it does; none if there is nothing of that.
pub(super) fn kept_apart(
    func: &ThreadFunction,
    ranges: &[SlotLiveRange],
) -> Option<Vec<SlotLiveRange>> {
    let scan = Scan::of(func, Over::ByWaitForAll);
    let mut apart = None;
    for (slot, at) in scan.stored {
        let around = scan.loops.iter().filter(|l| l.first <= at && at < l.end);
        let Some(innermost) = around.min_by_key(|l| l.end - l.first) else {
            continue;
        };
        let apart = apart.get_or_insert_with(|| ranges.to_vec());
        if let Some(range) = apart.iter_mut().find(|range| range.slot == slot) {
            range.first = range.first.min(innermost.first);
            range.last = range.last.max(innermost.end - 1);
        }
    }
    apart
}

/// The slots that an instruction accesses, as often as it does.
fn slots_of(func: &ThreadFunction, inst: Inst) -> Vec<Slot> {
    let accesses = func.accesses(inst).into_iter();
    let slots = accesses.filter_map(|access| match access.space {
        AccessSpace::Shared(slot) => slot,
        AccessSpace::Global(_) | AccessSpace::Log => None,
    });
    slots.collect()
}

/// Whether an instruction that accesses a slot does more than to write it.
fn reads(func: &ThreadFunction, inst: Inst, slot: Slot) -> bool {
    let accesses = func.accesses(inst);
    let mut own = accesses
        .iter()
        .filter(|access| access.space == AccessSpace::Shared(Some(slot)));
    own.any(|access| access.how != How::Write)
}
