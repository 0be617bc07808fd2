//! Asynchronous work as accesses by threads of its own.
//!
//! A copy or product that is under way is an *agent*: a number that no warp has, whose accesses lie
//! at a time that nobody knows, so that whatever touches its bytes meanwhile is a race. The wait that covers
//! it *settles* its records: they become accesses, at the present time, of the waiting thread or of an
//! *engine*, an agent that lives on (one for each mbarrier, for instance), and who observes the wait learns
//! the engine up to that time.

use std::collections::BTreeSet;

use super::super::inst::Scope;
use super::clock::WarpClock;
use super::knowledge::Observer;
use super::{Record, lanes};

/// The first number of an agent; warps have smaller ones.
pub(in crate::emu) const FIRST_AGENT: u32 = 1 << 26;

/// What makes an engine's number that of a second one beside it, whose accesses are of the generic proxy.
pub(in crate::emu) const GENERIC: u32 = 1 << 25;

/// The same for how far an mbarrier is, which a thread may know without knowing what others did before that.
pub(in crate::emu) const PROGRESS: u32 = 1 << 24;

/// The time of accesses under way, which nobody knows.
pub(in crate::emu) const UNDER_WAY: u32 = u32::MAX;

/// A number like that of a warp, for accesses of asynchronous work.
pub(in crate::emu) type Agent = u32;

/// All agents, and for which warp each works.
#[derive(Debug, Default)]
pub(in crate::emu) struct Agents {
    all: Vec<Info>,
    free: Vec<Agent>,
}

#[derive(Debug)]
struct Info {
    warp: u32,
    /// Parts of its work that are not settled.
    parts: u32,
}

impl Agents {
    /// An agent for work in so many parts (lanes, say) of a warp, by its number in the grid.
    pub(in crate::emu) fn start(&mut self, warp: u32, parts: u32) -> Agent {
        let info = Info { warp, parts };
        if let Some(agent) = self.free.pop() {
            self.all[(agent - FIRST_AGENT) as usize] = info;
            return agent;
        }
        self.all.push(info);
        FIRST_AGENT + self.all.len() as u32 - 1
    }

    /// A part of the work of an agent is settled. Behind the last one its number is used again.
    pub(in crate::emu) fn end(&mut self, agent: Agent) {
        let info = &mut self.all[(agent - FIRST_AGENT) as usize];
        info.parts -= 1;
        if info.parts == 0 {
            self.free.push(agent);
        }
    }

    /// The warp behind a warp or agent.
    pub(in crate::emu) fn warp(&self, number: u32) -> u32 {
        match number.checked_sub(FIRST_AGENT) {
            Some(index) => self.all[(index & !(GENERIC | PROGRESS)) as usize].warp,
            None => number,
        }
    }
}

/// Who makes an access: what its record says, and which earlier ones are ordered before it.
pub(in crate::emu) trait Party {
    fn who(&self, lane: u32) -> u32;
    fn knows(&self, lane: u32, record: Record, is_write: bool) -> bool;
    /// Whether a thread within a scope of the own one made an access.
    fn shares(&self, record: Record, scope: Scope) -> bool;
}

impl Party for WarpClock {
    #[inline]
    fn who(&self, lane: u32) -> u32 {
        self.warp << 5 | lane
    }

    #[inline]
    fn knows(&self, lane: u32, record: Record, _: bool) -> bool {
        self.knows_record(lane, record)
    }

    fn shares(&self, record: Record, scope: Scope) -> bool {
        self.is_within(record.who >> 5, scope)
    }
}

/// An agent that starts: it knows what the lane knows that starts it. Of writes of the generic proxy an agent
/// of another one knows those that a fence made visible to it. A product by a warpgroup knows what `cp.async` brought, too: the manual
/// asks for a fence there as well, but those of CUTLASS (`sm90_mma_multistage_gmma`) and Triton read what was waited for without one.
#[derive(Debug)]
pub(in crate::emu) struct Starting<'a> {
    pub(in crate::emu) clock: &'a WarpClock,
    pub(in crate::emu) agent: Agent,
    pub(in crate::emu) view: Option<Observer>,
    /// Lines of copies by threads whose writes it sees without a fence.
    pub(in crate::emu) copies: Option<&'a BTreeSet<u32>>,
}

impl Party for Starting<'_> {
    fn who(&self, lane: u32) -> u32 {
        self.agent << 5 | lane
    }

    fn knows(&self, lane: u32, record: Record, is_write: bool) -> bool {
        if record.time == 0 || record.who == self.who(lane) {
            return true;
        }
        match self.view {
            Some(Observer::Constant) if is_write => false,
            Some(Observer::Shared) if self.is_copy(record, is_write) => {
                self.clock.knows_record(lane, record)
            }
            Some(view) if (is_write || view == Observer::Shared) && is_generic(record.who >> 5) => {
                self.clock.sees(lane, view, record)
            }
            _ => self.clock.knows_record(lane, record),
        }
    }

    fn shares(&self, record: Record, scope: Scope) -> bool {
        self.clock.is_within(record.who >> 5, scope)
    }
}

impl Starting<'_> {
    fn is_copy(&self, record: Record, is_write: bool) -> bool {
        is_write
            && self
                .copies
                .is_some_and(|lines| lines.contains(&record.line()))
    }

    /// Whether a write is ordered before what starts.
    pub(in crate::emu) fn knows_write(&self, lane: u32, record: Record) -> bool {
        self.knows(lane, record, true)
    }
}

fn is_generic(number: u32) -> bool {
    number < FIRST_AGENT || (number - FIRST_AGENT) & GENERIC != 0
}

impl Record {
    pub(in crate::emu) fn new(who: u32, time: u32, line: u32) -> Record {
        Record { who, time, line }
    }

    pub(super) fn is_under_way(self) -> bool {
        self.time == UNDER_WAY
    }
}

impl WarpClock {
    /// Whether a lane knows of an access, visible to other proxies or not.
    pub(in crate::emu) fn knows_at_all(&self, lane: u32, record: Record) -> bool {
        self.knows_record(lane, record)
    }

    /// What the lanes of `mask` know together, their own accesses included: to be left where others acquire it.
    pub(in crate::emu) fn release(&self, mask: u32, now: &mut u32) -> super::Knowledge {
        let mut all = super::Knowledge::default();
        for lane in lanes(mask) {
            // Lanes that acquired nothing by themselves know the same.
            if all.is_empty() || self.knows_apart(lane) {
                all.join(&self.snapshot(lane, *now));
            } else if mask != u32::MAX {
                all.know_thread(self.warp << 5 | lane, *now);
            }
        }
        if mask == u32::MAX {
            all.know_warp(self.warp, *now);
        }
        *now += 1;
        all
    }
}
