//! What agents wait for each other at: barriers in shared memory, and those of the CTA.

use super::agent::State;
use super::sm::Sm;

/// A barrier in shared memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phases {
    count: u32,
    arrived: u32,
    bytes: i64,
    latest: f64,
    phase: u64,
    over: f64,
}

impl Phases {
    fn arrive(&mut self, arrivals: u32, bytes: i64, then: f64) {
        self.arrived += arrivals;
        self.bytes += bytes;
        self.latest = self.latest.max(then);
        if self.arrived >= self.count && self.bytes == 0 {
            self.phase += 1;
            self.over = self.latest;
            self.arrived = 0;
            self.latest = 0.0;
        }
    }
}

/// Threads that have come to a barrier of the CTA, and the last one's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meeting {
    threads: u32,
    latest: f64,
    /// How often it has ended, and when it last did.
    ended: u64,
    over: f64,
}

impl Sm<'_> {
    /// Makes a barrier in shared memory.
    pub(super) fn make_barrier(&mut self, cta: usize, address: u64, count: u32) {
        let made = Phases {
            count,
            ..Phases::default()
        };
        self.phases.insert((cta, address), made);
    }

    /// Arrives there.
    pub(super) fn arrive(
        &mut self,
        cta: usize,
        address: u64,
        arrivals: u32,
        bytes: i64,
        then: f64,
    ) {
        let phases = self.phases.entry((cta, address)).or_default();
        let before = phases.phase;
        phases.arrive(arrivals, bytes, then);
        if phases.phase != before {
            self.wake(cta);
        }
    }

    /// When the phase of this parity was over, if it was.
    pub(super) fn phase_over(&self, cta: usize, address: u64, parity: u64) -> Option<f64> {
        let phases = self
            .phases
            .get(&(cta, address))
            .copied()
            .unwrap_or_default();
        (self.looks_only || phases.phase & 1 != parity & 1).then_some(phases.over)
    }

    /// Comes to a barrier of so many threads of the CTA; when all are there.
    pub(super) fn meet(&mut self, agent: usize, id: u64, threads: u32) -> Option<f64> {
        let cta = self.agents[agent].cta;
        let meeting = self.meetings.entry((cta, id)).or_default();
        if let Some(ended) = self.agents[agent].seen {
            // Its threads are counted already.
            let is_over = ended < meeting.ended;
            if is_over {
                self.agents[agent].seen = None;
            }
            return is_over.then_some(meeting.over);
        }
        let ended = meeting.ended;
        let over = self.come(agent, id, threads);
        if over.is_none() {
            self.agents[agent].seen = Some(ended);
        }
        over
    }

    /// Comes to a barrier and goes on; when all are there, if this was the last.
    pub(super) fn come(&mut self, agent: usize, id: u64, threads: u32) -> Option<f64> {
        let (cta, time) = (self.agents[agent].cta, self.agents[agent].time);
        if self.looks_only {
            return Some(time);
        }
        let meeting = self.meetings.entry((cta, id)).or_default();
        meeting.threads += 32 * self.agents[agent].warps;
        meeting.latest = meeting.latest.max(time);
        if meeting.threads < threads {
            return None;
        }
        meeting.threads = 0;
        meeting.ended += 1;
        meeting.over = meeting.latest;
        meeting.latest = 0.0;
        let over = meeting.over;
        self.wake(cta);
        Some(over)
    }

    /// Lets those who wait look again.
    fn wake(&mut self, cta: usize) {
        self.has_woken = true;
        for agent in &mut self.agents {
            if agent.cta == cta && agent.state == State::Waits {
                agent.state = State::Runs;
            }
        }
    }
}
