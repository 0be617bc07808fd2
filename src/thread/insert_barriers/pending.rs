//! What accesses leave pending until barriers and waits, and what waits for what.

use std::collections::BTreeSet;

use super::origins::Origin;
use super::{Facts, overlap};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::effects::{Access, How, Proxy};
use crate::ir::entities::Slot;
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::matrix_units::When;

/// Accesses since the last barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    read: BTreeSet<Slot>,
    /// Of these, what iterations before read.
    read_before: BTreeSet<Slot>,
    written: BTreeSet<Slot>,
    /// Of these, the rings to which was stored while other entries were read.
    pub(super) written_apart: BTreeSet<Slot>,
    /// Of these, what copies wrote that have arrived.
    copied: BTreeSet<Slot>,
    /// Changed by atomic steps.
    counted: BTreeSet<Slot>,
    /// What is not over before a wait; a barrier alone changes nothing.
    under_way: UnderWay,
    /// Written, and not fenced for units that read for the threads.
    pub(super) unfenced: BTreeSet<Slot>,
    /// Read by products under way, with how many groups were committed since.
    reading: BTreeSet<(Slot, u32)>,
    /// Of these, what products of iterations before read.
    reading_before: BTreeSet<Slot>,
    /// Read by the engine that stores boxes, with how many groups of them were committed since.
    pub(super) sending: BTreeSet<(Slot, u32)>,
    /// Where the boxes go that are on their way to device memory.
    pub(super) sent: BTreeSet<Origin>,
    /// Where the addresses of loads from device memory come from.
    loaded: BTreeSet<Origin>,
    /// The same for volatile loads, which are atomic.
    loaded_atomically: BTreeSet<Origin>,
    /// Whether several threads loaded the same.
    loaded_copies: bool,
}

/// Accesses that are over behind a wait, which makes them accesses like others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UnderWay {
    written: BTreeSet<Slot>,
    loaded: BTreeSet<Origin>,
}

impl Pending {
    /// What is left after a barrier of each group of warps.
    pub(super) fn pass_group_barrier(&mut self, func: &ThreadFunction) {
        let own = |slot: &Slot| func.slots[*slot].by_group;
        let sets = [
            &mut self.read,
            &mut self.read_before,
            &mut self.written,
            &mut self.written_apart,
            &mut self.copied,
            &mut self.counted,
        ];
        for set in sets {
            set.retain(|slot| !own(slot));
        }
    }

    /// What is left after a barrier.
    pub(super) fn pass_barrier(&mut self) {
        *self = Pending {
            under_way: std::mem::take(&mut self.under_way),
            unfenced: std::mem::take(&mut self.unfenced),
            reading: std::mem::take(&mut self.reading),
            reading_before: std::mem::take(&mut self.reading_before),
            sending: std::mem::take(&mut self.sending),
            sent: std::mem::take(&mut self.sent),
            ..Pending::default()
        };
    }

    /// What is pending when the next iteration begins.
    pub(super) fn turn(&mut self) {
        self.read_before.clone_from(&self.read);
        let reading = self.reading.iter().map(|&(slot, _)| slot);
        self.reading_before = reading.collect();
    }

    /// A group of products is closed.
    pub(super) fn commit(&mut self) {
        self.reading = older(&self.reading);
    }

    /// A group of boxes that are stored is closed.
    pub(super) fn commit_boxes(&mut self) {
        self.sending = older(&self.sending);
    }

    /// What is left after a wait that leaves so many groups of products under way.
    pub(super) fn finish(&mut self, left: u32) {
        let reading = std::mem::take(&mut self.reading);
        for (slot, age) in reading {
            if age > left {
                self.read.insert(slot);
                if self.reading_before.contains(&slot) {
                    self.read_before.insert(slot);
                }
            } else {
                self.reading.insert((slot, age));
            }
        }
        let reading = &self.reading;
        let is_read = |slot: &Slot| reading.iter().any(|(other, _)| other == slot);
        self.reading_before.retain(is_read);
    }

    /// What is left after a wait for boxes that are stored: the slots of all groups but so many have been read by the thread that waits.
    pub(super) fn pass_bulk_wait(&mut self, how: BulkWait, left: u32) {
        let sending = std::mem::take(&mut self.sending);
        for (slot, age) in sending {
            // A wait for all groups stands behind the last one.
            if age > left || left == 0 {
                self.read.insert(slot);
            } else {
                self.sending.insert((slot, age));
            }
        }
        if how == BulkWait::Whole && left == 0 {
            self.sent.clear();
        }
    }

    /// What is left after a wait that leaves so many groups of copies under way: which of all copies these are is not known.
    pub(super) fn pass_wait(&mut self, facts: &Facts, left: u32) {
        let over = match left {
            0 => std::mem::take(&mut self.under_way),
            _ => self.under_way.clone(),
        };
        let is_fenced = |slot: &&Slot| facts.filled.contains(slot) || facts.stored.contains(slot);
        let unfenced = over.written.iter().filter(is_fenced);
        self.unfenced.extend(unfenced);
        self.copied.extend(&over.written);
        self.written.extend(over.written);
        self.loaded.extend(over.loaded);
    }

    /// Adds what is pending on another way; whether that was more.
    pub(super) fn join(&mut self, other: &Pending) -> bool {
        let has_more_copies = other.loaded_copies && !self.loaded_copies;
        self.loaded_copies |= other.loaded_copies;
        let grown = [
            add(&mut self.read, &other.read),
            add(&mut self.read_before, &other.read_before),
            add(&mut self.written, &other.written),
            add(&mut self.written_apart, &other.written_apart),
            add(&mut self.copied, &other.copied),
            add(&mut self.counted, &other.counted),
            add(&mut self.under_way.written, &other.under_way.written),
            add(&mut self.under_way.loaded, &other.under_way.loaded),
            add(&mut self.unfenced, &other.unfenced),
            add(&mut self.reading, &other.reading),
            add(&mut self.reading_before, &other.reading_before),
            add(&mut self.sending, &other.sending),
            add(&mut self.sent, &other.sent),
            add(&mut self.loaded, &other.loaded),
            add(&mut self.loaded_atomically, &other.loaded_atomically),
            has_more_copies,
        ];
        grown.contains(&true)
    }

    /// Whether an access to a slot must wait for those before; `apart` says that it is to other entries of a ring than those
    /// that are read meanwhile.
    pub(super) fn clashes_in(
        &self,
        func: &ThreadFunction,
        slot: Slot,
        access: &Access,
        apart: bool,
    ) -> Option<Waiters> {
        let clash = |set: &BTreeSet<Slot>, same: bool| {
            let clash = |&other: &Slot| match other == slot {
                true => same.then(|| Waiters::of(func, slot)),
                false => overlap(func, slot, other).then_some(Waiters::All),
            };
            set.iter().filter_map(clash).max()
        };
        let (read, written) = (&self.read, &self.written);
        let is_copy_apart = apart && access.when == When::UntilWait;
        let is_engine = access.proxy == Proxy::Async;
        let unfenced = clash(&self.unfenced, true).filter(|_| is_engine);
        let is_unfenced = is_engine && self.unfenced.contains(&slot);
        match access.how {
            How::Read => clash(written, true)
                .max(clash(&self.counted, true))
                .max(is_unfenced.then(|| Waiters::of(func, slot))),
            How::Write => clash(read, !apart)
                .max(clash(&self.read_before, is_copy_apart))
                .max(clash(&self.counted, true))
                .max(clash(written, false))
                .max(clash(&self.written_apart, !apart))
                .max(clash(&self.copied, !apart && access.when == When::Now))
                .max(unfenced),
            How::Atomic => clash(read, true)
                .max(clash(written, true))
                .max(clash(&self.counted, false)),
        }
    }

    /// Whether boxes are stored from bytes of a slot: who waits then, and how many groups of boxes may be left under way.
    pub(super) fn is_sent_from(&self, func: &ThreadFunction, slot: Slot) -> Option<(Waiters, u32)> {
        let meets = |&(other, age): &(Slot, u32)| {
            let waiters = match other == slot {
                true => Some(Waiters::of(func, slot)),
                false => overlap(func, slot, other).then_some(Waiters::All),
            };
            Some((waiters?, age.saturating_sub(1)))
        };
        self.sending.iter().filter_map(meets).reduce(both)
    }

    /// Waits for boxes that are on their way, if there are any: until the slots of all groups but so many have been read, or for all of it.
    pub(super) fn wait_for_boxes(
        &mut self,
        reading: Option<u32>,
        whole: bool,
    ) -> Option<(BulkWait, u32)> {
        let (how, left) = match (whole, reading) {
            (true, _) if !self.sent.is_empty() => (BulkWait::Whole, 0),
            (_, Some(left)) if !self.sending.is_empty() => (BulkWait::Read, left),
            _ => return None,
        };
        self.pass_bulk_wait(how, left);
        Some((how, left))
    }

    /// Whether an access changes what a product under way reads. Copies, and stores that are `apart`, go to other entries of a
    /// ring.
    pub(super) fn meets_product(
        &self,
        func: &ThreadFunction,
        slot: Slot,
        access: &Access,
        apart: bool,
    ) -> bool {
        let elsewhere = apart || access.when == When::UntilWait;
        let mut reading = self.reading.iter();
        access.how != How::Read
            && reading.any(|&(other, _)| match other == slot {
                true => !elsewhere,
                false => overlap(func, slot, other),
            })
    }

    /// The same for device memory; a store is `apart` if no other thread loads what it writes.
    pub(super) fn clashes_at(&self, origin: Origin, how: How, copied: bool, apart: bool) -> bool {
        let meets = |set: &BTreeSet<Origin>| set.iter().any(|o| o.meets(origin));
        match how {
            How::Read => false,
            How::Write => {
                let copies = copied && self.loaded_copies;
                copies || !apart && meets(&self.loaded) || meets(&self.loaded_atomically)
            }
            How::Atomic => meets(&self.loaded),
        }
    }

    pub(super) fn note_slot(&mut self, facts: &Facts, slot: Slot, access: &Access) {
        match (access.how, access.when, access.proxy) {
            (How::Read, When::UntilWait, _) => {
                self.reading.insert((slot, 0));
                return;
            }
            // Who reads it has waited at its barrier, as everybody does.
            (How::Write, When::UntilWait, Proxy::Async) => return,
            (How::Write | How::Atomic, When::Now, Proxy::Generic)
                if facts.read.contains(&slot) || facts.filled.contains(&slot) =>
            {
                self.unfenced.insert(slot);
            }
            _ => {}
        }
        let set = match (access.how, access.when) {
            (How::Read, _) => &mut self.read,
            (How::Write, When::Now) => &mut self.written,
            (How::Atomic, _) => &mut self.counted,
            (How::Write, When::UntilWait) => &mut self.under_way.written,
        };
        set.insert(slot);
    }

    pub(super) fn note_load(&mut self, origin: Origin, data: &InstData<Thread>, access: &Access) {
        let set = match (access.how, access.when) {
            (How::Read, When::Now) if data.volatile().is_some() => &mut self.loaded_atomically,
            (How::Read, When::Now) => &mut self.loaded,
            (How::Read, When::UntilWait) => &mut self.under_way.loaded,
            (How::Write | How::Atomic, _) => return,
        };
        set.insert(origin);
        self.loaded_copies |= data.copied().is_some();
    }
}

/// Adds to a set; whether it grew.
fn add<T: Ord + Copy>(set: &mut BTreeSet<T>, more: &BTreeSet<T>) -> bool {
    let before = set.len();
    set.extend(more);
    set.len() > before
}

/// Who waits for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiters {
    /// The threads of each group of warps.
    Group,
    /// All threads of the program.
    All,
}

impl Waiters {
    /// Of accesses to one slot.
    fn of(func: &ThreadFunction, slot: Slot) -> Waiters {
        match func.slots[slot].by_group {
            true => Waiters::Group,
            false => Waiters::All,
        }
    }
}

/// What is waited for of boxes that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BulkWait {
    /// That they have been read.
    Read,
    /// That they are in memory, too.
    Whole,
}

/// Most groups of products, and of boxes, that are distinguished.
const MOST_GROUPS: u32 = 8;

/// Who waits for two stores of boxes, and how many groups may be left under way behind both.
pub(super) fn both(a: (Waiters, u32), b: (Waiters, u32)) -> (Waiters, u32) {
    (a.0.max(b.0), a.1.min(b.1))
}

/// What is read by groups when one more of them is closed.
fn older(reading: &BTreeSet<(Slot, u32)>) -> BTreeSet<(Slot, u32)> {
    let older = reading
        .iter()
        .map(|&(slot, age)| (slot, (age + 1).min(MOST_GROUPS)));
    older.collect()
}
