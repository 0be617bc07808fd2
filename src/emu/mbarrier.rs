//! Barriers in shared memory: arrivals, bytes, phases.
//!
//! The eight bytes hold nothing that a program may read: they count as unwritten, and an ordinary store to them shows at the
//! next use. What the barrier is stands here.

use std::rc::Rc;

use super::race::{Agent, GENERIC, Knowledge, PROGRESS, Record, WarpClock};

/// Largest number of arrivals, and of bytes either way, that a phase may want.
pub(super) const MOST: i64 = (1 << 20) - 1;

#[derive(Debug)]
pub(super) struct MBarrier {
    /// Arrivals that the next phase wants.
    pub(super) count: u32,
    /// Arrivals that this phase lacks.
    pub(super) pending: u32,
    /// Bytes expected and not arrived.
    pub(super) tx: i64,
    /// Number of the phase that is not complete.
    pub(super) phase: u64,
    /// Its initialisation, which who uses it must know.
    pub(super) init: Record,
    /// Stands for work that completed on it.
    pub(super) engine: Agent,
    /// What threads of the CTA that arrived in this phase know, and what peers released by arrivals.
    pub(super) arriving: Knowledge,
    pub(super) arriving_peers: Knowledge,
    /// What those of the phase before knew.
    pub(super) released: Rc<Knowledge>,
    pub(super) released_peers: Rc<Knowledge>,
    /// When each phase completed.
    pub(super) completed: Vec<u32>,
    /// The last arrival of each thread of another CTA, and the phase that it fell into.
    reached: Vec<(u64, Record)>,
}

impl MBarrier {
    pub(super) fn new(count: u32, init: Record, engine: Agent) -> MBarrier {
        MBarrier {
            count,
            pending: count,
            tx: 0,
            phase: 0,
            init,
            engine,
            arriving: Knowledge::default(),
            arriving_peers: Knowledge::default(),
            released: Rc::default(),
            released_peers: Rc::default(),
            completed: Vec::new(),
            reached: Vec::new(),
        }
    }

    /// A thread of another CTA reaches the barrier.
    pub(super) fn reach(&mut self, record: Record) {
        let phase = self.phase;
        match self
            .reached
            .iter_mut()
            .find(|(_, last)| last.who == record.who)
        {
            Some(last) => *last = (phase, record),
            None => self.reached.push((phase, record)),
        }
    }

    /// What a thread of another CTA did here, of which none of these warps knows that it is over: neither by order nor by
    /// the end of its phase.
    pub(super) fn unknown(&self, clocks: &[&WarpClock]) -> Option<Record> {
        let knows = |clock: &WarpClock, lane: u32, (phase, record): (u64, Record)| {
            let until = clock.known_time(lane, self.engine | PROGRESS);
            let completed = self.completed.get(phase as usize);
            clock.knows_at_all(lane, record) || completed.is_some_and(|&time| time <= until)
        };
        let mut all = self.reached.iter().copied();
        let is_unknown = |&reach: &(u64, Record)| {
            let mut lanes = clocks
                .iter()
                .flat_map(|clock| (0..32).map(move |lane| (clock, lane)));
            !lanes.any(|(clock, lane)| knows(clock, lane, reach))
        };
        all.find(is_unknown).map(|(_, record)| record)
    }

    /// What an arrival gives: the phase, and how many arrivals it lacks.
    pub(super) fn state(&self) -> u64 {
        self.phase << 20 | u64::from(self.pending)
    }

    /// The arrivals that the phase of a state lacked.
    pub(super) fn pending_of(state: u64) -> u64 {
        state & MOST as u64
    }

    pub(super) fn phase_of(state: u64) -> u64 {
        state >> 20
    }

    pub(super) fn arrive(&mut self, count: u32, drops: bool) -> Result<(), String> {
        if count > self.pending {
            return Err(format!(
                "{count} arrivals in phase {}, which wants {} more of {}",
                self.phase, self.pending, self.count
            ));
        }
        if drops {
            self.count = self.count.saturating_sub(count);
        }
        self.pending -= count;
        Ok(())
    }

    /// Bytes are expected, or with a negative number arrived.
    pub(super) fn expect(&mut self, bytes: i64) -> Result<(), String> {
        self.tx += bytes;
        if self.tx.abs() > MOST {
            return Err(format!(
                "{} bytes are under way in phase {}, and at most {MOST} can be",
                self.tx, self.phase
            ));
        }
        if self.pending == 0 && self.tx < 0 {
            return Err(format!(
                "phase {} got {} bytes more than it expects",
                self.phase, -self.tx
            ));
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.pending == 0 && self.tx == 0
    }

    /// The phase completes.
    pub(super) fn complete(&mut self, now: &mut u32) {
        let mut released = std::mem::take(&mut self.arriving);
        for of in [0, GENERIC, PROGRESS] {
            released.know_warp(self.engine | of, *now);
        }
        self.released = Rc::new(released);
        self.released_peers = Rc::new(std::mem::take(&mut self.arriving_peers));
        self.completed.push(*now);
        *now += 1;
        self.phase += 1;
        self.pending = self.count;
    }

    /// Says in words what the phase lacks.
    pub(super) fn lacks(&self) -> String {
        let mut text = format!("phase {} lacks {} arrivals", self.phase, self.pending);
        match self.tx {
            0 => {}
            bytes @ 1.. => text.push_str(&format!(" and {bytes} bytes")),
            bytes => text.push_str(&format!(" and got {} bytes unexpected", -bytes)),
        }
        text
    }
}
