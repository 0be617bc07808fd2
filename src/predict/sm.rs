//! A multiprocessor as it executes CTAs: the control flow of each role by the numbers of the launch, and when what is waited for is
//! there.
//!
//! Agents (four warps each) execute the kernel's instructions in order; what they compute is left out but for whole numbers of
//! one thread, which decide where branches go and what is copied. Who begins first is served first by what they share: issue,
//! arithmetic, shared memory, tensor cores, the way to the L2 cache, and the part of the memory's bandwidth that one
//! multiprocessor has.

use rustc_hash::{FxHashMap, FxHashSet};

use super::agent::{Agent, Async, Known, State};
use super::figures::Figures;
use super::prepared::Prepared;
use super::reuse::Source;
use super::servers::{Resource, Server};
use super::setting::Setting;
use super::waiting::{Meeting, Phases};

/// How a simulation ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Clocks until the last CTA's results are on their way.
    pub(super) clocks: f64,
    /// Clocks that each resource was busy.
    pub(super) busy: [f64; Resource::ALL.len()],
    /// Whether a branch depends on what is in memory.
    pub(super) guessed: bool,
}

/// The multiprocessor.
pub(super) struct Sm<'a> {
    pub(super) kernel: &'a Prepared,
    pub(super) setting: &'a Setting<'a>,
    pub(super) figures: &'a Figures,
    pub(super) agents: Vec<Agent>,
    pub(super) servers: [Server; Resource::ALL.len()],
    /// Barriers in shared memory, and those of CTAs, by CTA and address or number.
    pub(super) phases: FxHashMap<(usize, u64), Phases>,
    /// Numbers that one agent leaves for another one in shared memory.
    pub(super) words: FxHashMap<(usize, u64), Known>,
    pub(super) meetings: FxHashMap<(usize, u64), Meeting>,
    /// Maps of which a box was fetched.
    pub(super) maps: FxHashSet<Source>,
    /// When all that was done by now is over.
    pub(super) end: f64,
    pub(super) guessed: bool,
    steps: usize,
    /// Whether somebody who waited may go on, perhaps from an earlier time on.
    pub(super) has_woken: bool,
    /// Whether nobody waits for anybody: what agents ask for is looked at, not when.
    pub(super) looks_only: bool,
}

/// Most steps of a simulation.
const STEPS: usize = 20_000_000;

impl<'a> Sm<'a> {
    pub(super) fn new(
        kernel: &'a Prepared,
        setting: &'a Setting<'a>,
        figures: &'a Figures,
    ) -> Sm<'a> {
        Sm {
            kernel,
            setting,
            figures,
            agents: Vec::new(),
            servers: Default::default(),
            phases: FxHashMap::default(),
            words: FxHashMap::default(),
            meetings: FxHashMap::default(),
            maps: FxHashSet::default(),
            end: 0.0,
            guessed: false,
            steps: 0,
            has_woken: false,
            looks_only: false,
        }
    }

    /// Executes CTAs of these numbers, so many at a time; none if they come to nothing.
    pub(super) fn run(mut self, ctas: &[u64], resident: usize) -> Option<Outcome> {
        let mut waiting = ctas.iter().enumerate();
        for (at, &cta) in waiting.by_ref().take(resident) {
            self.begin(at, cta, at as f64 * self.figures.stagger);
        }
        let mut left = vec![self.kernel.chunks.len(); ctas.len()];
        loop {
            let running = self.agents.iter().enumerate();
            let running = running.filter(|(_, agent)| agent.state == State::Runs);
            let Some((next, _)) = running.min_by(|(_, a), (_, b)| a.time.total_cmp(&b.time)) else {
                break;
            };
            // The others' earliest time: until then nobody comes in between.
            let others = self.agents.iter().enumerate();
            let others = others.filter(|&(at, agent)| at != next && agent.state == State::Runs);
            let until = others.fold(f64::INFINITY, |until, (_, agent)| until.min(agent.time));
            while self.agents[next].state == State::Runs && self.agents[next].time <= until {
                self.steps += 1;
                if self.steps > STEPS {
                    return None;
                }
                self.step(next)?;
                if std::mem::take(&mut self.has_woken) {
                    break;
                }
            }
            if self.agents[next].state == State::Ended {
                let (cta, time) = (self.agents[next].cta, self.agents[next].time);
                self.end = self.end.max(time);
                left[cta] -= 1;
                if left[cta] == 0 {
                    self.agents.retain(|agent| agent.cta != cta);
                    if let Some((at, &number)) = waiting.next() {
                        self.begin(at, number, time + self.figures.cta);
                    }
                }
            }
        }
        // Who waits still waits for ever: it is not what the kernel does.
        let stuck = self.agents.iter().any(|agent| agent.state == State::Waits);
        let busy = self.servers.map(|server| server.busy);
        (!stuck).then_some(Outcome {
            clocks: self.end,
            busy,
            guessed: self.guessed,
        })
    }

    /// Starts the agents of a CTA.
    pub(super) fn begin(&mut self, cta: usize, number: u64, time: f64) {
        for &(warp, warps) in &self.kernel.chunks {
            let mut agent = Agent {
                cta,
                warp,
                warps,
                block: self.kernel.thread.entry,
                at: 0,
                time,
                state: State::Runs,
                seen: None,
                number,
                values: vec![Known::default(); self.kernel.thread.dfg.values.len()],
                copies: Async::default(),
                products: Async::default(),
                boxes: Async::default(),
            };
            self.setting.give_arguments(self.kernel, &mut agent);
            self.agents.push(agent);
            if 0 < self.kernel.needs.spilled && self.kernel.busiest == self.kernel.thread.entry {
                self.spill(self.agents.len() - 1);
            }
        }
    }
}
