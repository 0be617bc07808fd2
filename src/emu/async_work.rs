//! Work under way: the core that asynchronous copies and products share.
//!
//! An asynchronous operation goes through four moments:
//!
//! 1. **begin** ([`Machine::begin`]), where its instruction executes: every range of memory that it will read or
//!    write is checked against what the issuing lane knows and recorded as an access *under way* of an agent;
//!    bytes that it will write count as unwritten from here on;
//! 2. **land**, at any later time up to its wait: data are read and written. When, is decided by whoever owns the
//!    queue: at the wait, or by seed before it, or where nothing else can happen;
//! 3. **settle** ([`Machine::settle`]), where something says that it happened: the wait of the issuing thread, or
//!    the transaction count of an mbarrier. The records become accesses at the present time: of the waiting thread
//!    itself (`cp.async`, whose writes are of the generic proxy), or of an *engine*, an agent that lives on;
//! 4. **learn** ([`WarpClock::learn`](super::race::WarpClock::learn), or the knowledge that a phase of an mbarrier
//!    releases), where a thread observes that: it then knows the engine up to that time.
//!
//! An agent comes from `Machine::agents.start(warp.clock.warp, parts)` and goes back with one `agents.end(agent)` for
//! each part that is settled. Its records tell lanes apart, so that one agent serves one instruction of a warp.
//! Engines are never given back. A [`Observer`] says which fence generic writes need before this work sees them;
//! without one the work is of the generic proxy.
//!
//! Registers in flight are no business of this module: whoever starts a product undefines them (`Warp::define`)
//! and defines them at the wait.

use super::error::{Fault, Space};
use super::inst::BulkKind;
use super::race::{
    Agent, CheckedAccess, Knowledge, Observer, Settled, Shadow, Starting, UNDER_WAY, WarpClock,
};
use super::sched::{CtaState, Machine, Trouble};

/// A range of memory that asynchronous work reads or writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    /// Whether it is shared memory (of the CTA that goes with it) or an allocation.
    pub(super) is_shared: bool,
    /// Index of the allocation, for global memory.
    pub(super) region: usize,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) access: Touching,
}

/// What it does to the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touching {
    Read,
    Write,
    /// An atomic read-modify-write of each element: two of them never race.
    Reduce,
}

/// Who starts work: a lane of a warp, in a line of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Issuer<'a> {
    pub(super) clock: &'a WarpClock,
    pub(super) lane: u32,
    pub(super) line: u32,
    pub(super) agent: Agent,
    pub(super) view: Option<Observer>,
    /// Whether it sees without a fence what `cp.async` wrote.
    pub(super) sees_copies: bool,
}

/// Bytes from one place in device memory to one in shared memory, or back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The allocation, and where in it.
    pub(super) region: usize,
    pub(super) global: usize,
    pub(super) shared: usize,
    pub(super) bytes: usize,
}

/// A bulk copy, which a lane starts and the async proxy does.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) kind: BulkKind,
    /// All of shared memory that it touches.
    pub(super) shared: Touch,
    /// All of device memory.
    pub(super) global: Vec<Touch>,
    pub(super) moves: Vec<Move>,
    /// What elements of a load are that no move brings, and their bytes.
    pub(super) fill: (u64, u32),
    /// The barrier that a load signals, with so many bytes.
    pub(super) barrier: Option<usize>,
    pub(super) tx: i64,
    /// What a store has read, once its source is free; what is sent from one shared memory to another.
    pub(super) read: Option<Vec<u8>>,
    /// What it writes is of the generic proxy.
    pub(super) is_generic: bool,
    /// Shared memory that is sent, and the rank of its CTA.
    pub(super) sent: Option<(u32, Touch)>,
}

/// Shared memory of another CTA that has been sent: its records under way are to be settled.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) rank: u32,
    pub(super) touch: Touch,
    pub(super) agent: Agent,
    pub(super) lane: u32,
    pub(super) as_who: (u32, u32),
}

/// Work under way of one lane.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) agent: Agent,
    /// Number of the warp in the CTA.
    pub(super) warp: u32,
    pub(super) lane: u32,
    pub(super) line: u32,
    /// Groups of stores that its lane had committed before.
    pub(super) group: u32,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    Move(Box<Moved>),
    /// An arrival at a barrier behind the copies of the lane with lower numbers, which leaves what the lane knew.
    Arrival {
        copies: u64,
        barrier: usize,
        left: Box<Knowledge>,
    },
}

impl Machine<'_> {
    /// A range of the work of an agent comes to be under way.
    pub(super) fn begin(
        &mut self,
        cta: &mut CtaState,
        issuer: Issuer<'_>,
        touch: Touch,
    ) -> Result<(), Trouble> {
        if touch.access == Touching::Write {
            self.touched_region(cta, touch)
                .mark(touch.offset, touch.bytes, false);
        }
        if !self.options.check_races {
            return Ok(());
        }
        let access = CheckedAccess {
            lane: issuer.lane,
            line: issuer.line,
            read: touch.access != Touching::Write,
            write: touch.access != Touching::Read,
            strong: touch.access == Touching::Reduce,
            same_value: false,
        };
        let copies = self.copy_lines.clone();
        let party = Starting {
            clock: issuer.clock,
            agent: issuer.agent,
            view: issuer.view,
            copies: issuer.sees_copies.then_some(&copies),
        };
        let base = self.touched_region(cta, touch).base;
        let shadow = self.touched_shadow(cta, touch);
        let conflict = shadow.access_range(&party, UNDER_WAY, touch.offset, touch.bytes, access);
        let Some(conflict) = conflict else {
            return Ok(());
        };
        // The other side is known, and only a fence between proxies is missing?
        let is_known = issuer.clock.knows_at_all(issuer.lane, conflict.other);
        let fault = match is_known {
            true => Fault::Proxy {
                space: touch.space(),
                address: base + conflict.offset as u64,
                kind: conflict.kind,
                other_kind: conflict.other_kind,
                other: self.place(conflict.other),
            },
            false => self.race(touch.space(), base, conflict),
        };
        Err((issuer.lane, fault))
    }

    /// The records under way of one lane of an agent over a range become accesses of `as_who` at `time`.
    pub(super) fn settle(
        &mut self,
        cta: &mut CtaState,
        touch: Touch,
        (agent, lane): (Agent, u32),
        (as_who, time): (u32, u32),
    ) {
        if self.options.check_races {
            let settled = Settled {
                who: agent << 5 | lane,
                as_who,
                time,
            };
            self.touched_shadow(cta, touch)
                .settle(touch.offset, touch.bytes, settled);
        }
    }

    pub(super) fn touched_region<'b>(
        &'b mut self,
        cta: &'b mut CtaState,
        touch: Touch,
    ) -> &'b mut super::mem::Region {
        match touch.is_shared {
            true => &mut cta.shared,
            false => self.memory.region(touch.region),
        }
    }

    fn touched_shadow<'b>(&'b mut self, cta: &'b mut CtaState, touch: Touch) -> &'b mut Shadow {
        match touch.is_shared {
            true => &mut cta.shadow,
            false => {
                let bytes = self.memory.region(touch.region).data.len();
                self.shadows[touch.region].get_or_insert_with(|| Shadow::new(bytes))
            }
        }
    }
}

impl Touch {
    pub(super) fn space(&self) -> Space {
        match self.is_shared {
            true => Space::Shared,
            false => Space::Global,
        }
    }
}
