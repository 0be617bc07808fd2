//! Rings, barriers, copies and products under way.
//!
//! Phases of barriers end as early as they may, and who waits learns it as late as it may: a wait is over at once if its parity is that of
//! a phase before the one expected, and then it has seen nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::entities::Slot;

/// An entry of a ring, or a barrier of several.
pub(super) type Entry = (Slot, u64);

/// What must happen before a copy is known to have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// A wait for the group.
    Group(u64),
    /// A wait for the phase of the barrier.
    Phase(Entry, u64),
    /// Nothing.
    Now,
}

/// What an entry was filled with last.
#[derive(Clone, Copy, Debug)]
struct Fill {
    number: u64,
    until: Until,
    was_read: bool,
    /// Whether nobody needs to read it: it was stored, is a block of zeros for an iteration that does not exist, or the program may come
    /// past all that reads it.
    may_be_lost: bool,
}

/// A barrier.
#[derive(Clone, Copy, Debug, Default)]
struct Barrier {
    count: u64,
    arrived: u64,
    /// Bytes announced less those that came.
    missing: i64,
    ended: u64,
    /// Phases that who waits for it knows to have ended.
    seen: u64,
}

/// Shared memory and what is under way.
#[derive(Debug, Default)]
pub(super) struct State {
    fills: FxHashMap<Entry, Fill>,
    barriers: FxHashMap<Entry, Barrier>,
    /// Entries that products read, with the numbers of the products.
    reads: Vec<(u64, Entry)>,
    next_fill: u64,
    /// The group that copies belong to; those before were committed.
    pub(super) group: u64,
    /// The product that was started last; 0 is none.
    pub(super) product: u64,
    /// The products up to this one are done.
    done: u64,
    /// Rings that the program does not read in each iteration.
    sometimes_read: FxHashSet<Slot>,
}

/// What stands in an entry of a ring.
#[cfg(feature = "tool")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing, or what was given back.
    Nothing,
    /// What a copy under way brings.
    Arriving,
    /// A block that nobody read yet.
    Full,
    /// A block that was read.
    Read,
    /// A block that a product under way reads.
    Multiplied,
}

type Checked = Result<(), String>;

fn name((slot, index): Entry) -> String {
    format!("entry {index} of {slot}")
}

impl State {
    pub(super) fn new(sometimes_read: FxHashSet<Slot>) -> State {
        State {
            sometimes_read,
            ..State::default()
        }
    }

    fn check_unread(&self, entry: Entry) -> Checked {
        match self.reads.iter().any(|&(_, of)| of == entry) {
            false => Ok(()),
            true => Err(format!(
                "{} changes while a product that was not waited for reads it",
                name(entry)
            )),
        }
    }

    /// Fills an entry; gives the number of the fill.
    fn fill(&mut self, entry: Entry, until: Until, may_be_lost: bool) -> Result<u64, String> {
        self.check_unread(entry)?;
        if let Some(last) = self.fills.get(&entry) {
            if last.until != Until::Now {
                return Err(format!(
                    "{} changes while a copy is under way to it",
                    name(entry)
                ));
            }
            if !last.was_read && !last.may_be_lost {
                return Err(format!(
                    "{} changes before anybody read what was copied there",
                    name(entry)
                ));
            }
        }
        self.next_fill += 1;
        let fill = Fill {
            number: self.next_fill,
            until,
            was_read: false,
            may_be_lost: may_be_lost || self.sometimes_read.contains(&entry.0),
        };
        self.fills.insert(entry, fill);
        Ok(self.next_fill)
    }

    pub(super) fn store(&mut self, entry: Entry) -> Checked {
        self.fill(entry, Until::Now, true).map(drop)
    }

    #[cfg(feature = "tool")]
    pub(super) fn content(&self, entry: Entry) -> Content {
        let is_multiplied = self.reads.iter().any(|&(_, of)| of == entry);
        match self.fills.get(&entry) {
            _ if is_multiplied => Content::Multiplied,
            None => Content::Nothing,
            Some(fill) if fill.until != Until::Now => Content::Arriving,
            Some(fill) if fill.was_read => Content::Read,
            Some(_) => Content::Full,
        }
    }

    /// Products that are started and not known to be done.
    #[cfg(feature = "tool")]
    pub(super) fn products(&self) -> u64 {
        self.product.saturating_sub(self.done)
    }

    /// A copy of the group that goes on.
    pub(super) fn copy(&mut self, entry: Entry, is_void: bool) -> Checked {
        self.fill(entry, Until::Group(self.group), is_void)
            .map(drop)
    }

    /// A copy of so many bytes that arrives on a barrier.
    pub(super) fn copy_box(&mut self, entry: Entry, barrier: Entry, bytes: u32) -> Checked {
        let phase = self.barrier(barrier)?.ended;
        self.fill(entry, Until::Phase(barrier, phase), false)?;
        self.barrier(barrier)?.missing -= i64::from(bytes);
        self.end_phase(barrier)
    }

    /// The same of a producer, to an entry that is its own.
    pub(super) fn produce(&mut self, entry: Entry, barrier: Entry, bytes: u32) -> Checked {
        if self.fills.contains_key(&entry) {
            return Err(format!(
                "a producer fills {}, which was not given back",
                name(entry)
            ));
        }
        self.copy_box(entry, barrier, bytes)
    }

    /// Reads an entry; gives the number of its fill.
    pub(super) fn read(&mut self, entry: Entry) -> Result<u64, String> {
        let Some(fill) = self.fills.get(&entry).copied() else {
            return Err(format!("{} holds nothing", name(entry)));
        };
        if fill.until != Until::Now {
            return Err(format!(
                "{} is read before a wait for the copy to it",
                name(entry)
            ));
        }
        let is_left_out = |(&(slot, _), other): (&Entry, &Fill)| {
            let is_older = slot == entry.0 && other.number < fill.number;
            is_older && !other.was_read && !other.may_be_lost
        };
        if let Some((&left_out, _)) = self.fills.iter().find(|&found| is_left_out(found)) {
            return Err(format!(
                "{} is read before {}, which was filled earlier",
                name(entry),
                name(left_out)
            ));
        }
        if let Some(fill) = self.fills.get_mut(&entry) {
            fill.was_read = true;
        }
        Ok(fill.number)
    }

    /// The entry is the producer's again.
    pub(super) fn release(&mut self, entry: Entry) -> Checked {
        self.check_unread(entry)?;
        match self.fills.remove(&entry) {
            Some(Fill {
                until: Until::Now, ..
            }) => Ok(()),
            Some(_) => Err(format!(
                "{} is given back before a wait for the copy to it",
                name(entry)
            )),
            None => Err(format!("{} is given back and holds nothing", name(entry))),
        }
    }

    /// The copies of groups up to this one have arrived.
    pub(super) fn wait_group(&mut self, group: u64) {
        for fill in self.fills.values_mut() {
            if matches!(fill.until, Until::Group(of) if of <= group) {
                fill.until = Until::Now;
            }
        }
    }

    /// Starts a product that reads these fills; gives its number.
    pub(super) fn start(&mut self, fills: &[(Slot, u64)]) -> Result<u64, String> {
        self.product += 1;
        for &(slot, number) in fills {
            let of = |(&entry, fill): (&Entry, &Fill)| {
                (entry.0 == slot && fill.number == number).then_some(entry)
            };
            let Some(entry) = self.fills.iter().find_map(of) else {
                return Err(format!(
                    "a product reads what stood in {slot} before it changed"
                ));
            };
            self.reads.push((self.product, entry));
        }
        Ok(self.product)
    }

    /// The products up to this one are done.
    pub(super) fn finish(&mut self, product: u64) {
        self.done = self.done.max(product);
        self.reads.retain(|&(of, _)| product < of);
    }

    pub(super) fn init(&mut self, slot: Slot, barriers: u32, count: u32) -> Checked {
        for index in 0..u64::from(barriers) {
            let barrier = Barrier {
                count: u64::from(count),
                ..Barrier::default()
            };
            if self.barriers.insert((slot, index), barrier).is_some() {
                return Err(format!("the barriers of {slot} are made twice"));
            }
        }
        Ok(())
    }

    /// Ends the barriers of a slot.
    pub(super) fn drop_barriers(&mut self, slot: Slot) -> Checked {
        let is_awaited = |fill: &Fill| matches!(fill.until, Until::Phase((of, _), _) if of == slot);
        if let Some((&entry, _)) = self.fills.iter().find(|(_, fill)| is_awaited(fill)) {
            return Err(format!(
                "the barriers of {slot} end while a copy to {} is under way",
                name(entry)
            ));
        }
        self.barriers.retain(|&(of, _), _| of != slot);
        Ok(())
    }

    fn barrier(&mut self, at: Entry) -> Result<&mut Barrier, String> {
        let (slot, index) = at;
        let barrier = self.barriers.get_mut(&at);
        barrier.ok_or_else(|| format!("there is no barrier {index} in {slot}"))
    }

    /// Ends the phase that goes on if nothing is missing.
    fn end_phase(&mut self, at: Entry) -> Checked {
        let barrier = self.barrier(at)?;
        if barrier.count < barrier.arrived {
            let (slot, index) = at;
            return Err(format!(
                "more arrive on barrier {index} of {slot} than its phase waits for"
            ));
        }
        if barrier.arrived == barrier.count && barrier.missing == 0 {
            barrier.arrived = 0;
            barrier.ended += 1;
            if barrier.seen + 1 < barrier.ended {
                let (slot, index) = at;
                return Err(format!(
                    "barrier {index} of {slot} ends a phase before anybody waited for the last one"
                ));
            }
        }
        Ok(())
    }

    /// So many arrive and announce bytes.
    pub(super) fn arrive(&mut self, at: Entry, arrivals: u64, bytes: u32) -> Checked {
        let barrier = self.barrier(at)?;
        barrier.arrived += arrivals;
        barrier.missing += i64::from(bytes);
        self.end_phase(at)
    }

    /// Whether a wait for a phase of the parity is over; if so, what was copied for it is there.
    pub(super) fn pass(&mut self, at: Entry, parity: u64) -> Result<bool, String> {
        let barrier = self.barrier(at)?;
        if barrier.seen & 1 != parity {
            return Ok(true);
        }
        if barrier.ended == barrier.seen {
            return Ok(false);
        }
        barrier.seen += 1;
        let seen = barrier.seen;
        for fill in self.fills.values_mut() {
            if matches!(fill.until, Until::Phase(of, phase) if of == at && phase < seen) {
                fill.until = Until::Now;
            }
        }
        Ok(true)
    }

    /// Nothing is under way.
    pub(super) fn end(&self) -> Checked {
        let under_way = self.fills.iter().find(|(_, fill)| fill.until != Until::Now);
        if let Some((&entry, _)) = under_way {
            return Err(format!(
                "a copy to {} is under way when the kernel ends",
                name(entry)
            ));
        }
        if self.done < self.product {
            return Err("a product is under way when the kernel ends".to_owned());
        }
        Ok(())
    }
}
