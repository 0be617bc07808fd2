//! A multiprocessor as it executes CTAs: the control flow of each role by the numbers of the launch, and when what is waited for is
//! there.
//!
//! Agents (four warps each) execute the kernel's instructions in order; what they compute is left out but for whole numbers of
//! one thread, which decide where branches go and what is copied. Who begins first is served first by what they share: issue,
//! arithmetic, shared memory, tensor cores, the way to the L2 cache, and the part of the memory's bandwidth that one
//! multiprocessor has.

use rustc_hash::{FxHashMap, FxHashSet};

use super::agent::{Agent, Async, Known, State, WARPS};
use super::cost::Cost;
use super::figures::Figures;
use super::step::Moved;
use super::prepared::Prepared;
use super::reuse::Source;
use super::setting::Setting;

/// What agents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Starting instructions.
    Issue,
    /// Integers, comparisons, conversions.
    Simple,
    /// Special functions.
    Special,
    /// Shared memory, and exchange within warps.
    Shared,
    /// Tensor cores.
    Products,
    /// The way to the L2 cache.
    L2,
    /// Device memory.
    Memory,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Resource; 7] = [
        Resource::Issue,
        Resource::Simple,
        Resource::Special,
        Resource::Shared,
        Resource::Products,
        Resource::L2,
        Resource::Memory,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Issue => "issue",
            Resource::Simple => "integers, conversions",
            Resource::Special => "special functions",
            Resource::Shared => "shared memory",
            Resource::Products => "tensor cores",
            Resource::L2 => "L2 cache",
            Resource::Memory => "device memory",
        }
    }
}

/// Who begins first is served first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Server {
    free: f64,
    pub(super) busy: f64,
}

impl Server {
    /// Takes so long from then on; when it is over.
    fn take(&mut self, now: f64, clocks: f64) -> f64 {
        self.free = self.free.max(now) + clocks;
        self.busy += clocks;
        self.free
    }
}

/// A barrier in shared memory.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
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
struct Meeting {
    threads: u32,
    latest: f64,
    /// How often it has ended, and when it last did.
    ended: u64,
    over: f64,
}

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
    servers: [Server; Resource::ALL.len()],
    phases: FxHashMap<(usize, u64), Phases>,
    /// Numbers that one agent leaves for another one in shared memory.
    pub(super) words: FxHashMap<(usize, u64), Known>,
    meetings: FxHashMap<(usize, u64), Meeting>,
    /// Maps of which a box was fetched.
    maps: FxHashSet<Source>,
    end: f64,
    pub(super) guessed: bool,
    steps: usize,
    /// Whether somebody who waited may go on, perhaps from an earlier time on.
    has_woken: bool,
    /// Whether nobody waits for anybody: what agents ask for is looked at, not when.
    pub(super) looks_only: bool,
}

/// Most steps of a simulation.
const STEPS: usize = 20_000_000;

impl<'a> Sm<'a> {
    pub(super) fn new(kernel: &'a Prepared, setting: &'a Setting<'a>, figures: &'a Figures) -> Sm<'a> {
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
            if 0 < self.kernel.spilled && self.kernel.busiest == self.kernel.thread.entry {
                self.spill(self.agents.len() - 1);
            }
        }
    }

    /// Serves an instruction of an agent; when it has issued it, and when its last result is there.
    pub(super) fn serve(&mut self, agent: usize, start: f64, cost: &Cost) -> (f64, f64) {
        let warps = f64::from(self.agents[agent].warps);
        let alone = warps / WARPS as f64;
        let figures = self.figures;
        let mut take = |resource: Resource, clocks: f64| match clocks > 0.0 {
            true => self.servers[resource as usize].take(start, clocks),
            false => start,
        };
        let issued = take(Resource::Issue, cost.issued * alone).max(start + cost.issued);
        let over = take(Resource::Simple, cost.simple * warps / figures.simple)
            .max(start + cost.simple * WARPS as f64 / figures.simple)
            .max(take(Resource::Special, cost.special * warps / figures.special))
            .max(start + cost.special * WARPS as f64 / figures.special)
            .max(take(Resource::Shared, cost.shared * warps / figures.shared))
            .max(take(Resource::Products, cost.products * warps / figures.warp_products))
            .max(start + cost.products * WARPS as f64 / figures.warp_products);
        (issued, issued.max(over))
    }

    /// Serves products that warpgroups start; when they are over.
    pub(super) fn multiply(&mut self, agent: usize, start: f64, cost: &Cost) -> f64 {
        let warps = f64::from(self.agents[agent].warps);
        let clocks = cost.products * warps / self.figures.warpgroup_products;
        let reads = cost.shared * warps / self.figures.shared;
        self.servers[Resource::Shared as usize].busy += reads;
        self.servers[Resource::Products as usize].take(start, clocks.max(reads)) + self.figures.product_latency
    }

    /// Moves bytes in so many rows from device memory, where this part is in no cache; when they are there.
    pub(super) fn fetch(&mut self, start: f64, bytes: f64, rows: f64, missed: f64, more: f64) -> f64 {
        let figures = self.figures;
        let clocks = bytes / figures.l2 + rows * figures.row;
        let by_cache = self.servers[Resource::L2 as usize].take(start, clocks);
        let by_memory = self.servers[Resource::Memory as usize].take(start, bytes * missed / self.setting.memory);
        let latency = figures.l2_latency + missed.min(1.0) * figures.dram_latency + more;
        by_cache.max(by_memory) + latency
    }

    /// Moves a box from device memory; when it is there.
    pub(super) fn fetch_box(&mut self, start: f64, moved: &Moved) -> f64 {
        let missed = self.setting.missed(moved.source);
        let longer = (moved.longer - 1.0) * (moved.bytes / self.figures.l2 + moved.rows * self.figures.row);
        self.servers[Resource::L2 as usize].take(start, longer);
        // The map itself is fetched before its first box.
        let described = match self.maps.insert(moved.source) {
            true => self.figures.map_latency,
            false => 0.0,
        };
        let more = self.figures.box_latency + described;
        self.fetch(start, moved.bytes, moved.rows, missed, more)
    }

    /// Moves bytes to device memory.
    pub(super) fn store(&mut self, start: f64, bytes: f64) -> f64 {
        let by_cache = self.servers[Resource::L2 as usize].take(start, bytes / self.figures.l2);
        let by_memory = self.servers[Resource::Memory as usize].take(start, bytes / self.setting.memory);
        self.end = self.end.max(by_memory);
        by_cache
    }

    /// Changes what others change, too.
    pub(super) fn change(&mut self, start: f64, others: f64) -> f64 {
        let clocks = others * self.figures.atomic;
        let over = self.servers[Resource::Memory as usize].take(start, clocks);
        self.end = self.end.max(over);
        over
    }

    /// Writes and reads what registers have no room for, which passes through the caches.
    pub(super) fn spill(&mut self, agent: usize) {
        let Agent { warps, time, .. } = self.agents[agent];
        let bytes = f64::from(2 * 32 * warps * self.kernel.spilled);
        let over = self.servers[Resource::Memory as usize].take(time, bytes / self.setting.memory);
        self.servers[Resource::L2 as usize].take(time, bytes / self.figures.l2);
        self.agents[agent].time = over;
    }

    /// Makes a barrier in shared memory.
    pub(super) fn make_barrier(&mut self, cta: usize, address: u64, count: u32) {
        let made = Phases {
            count,
            ..Phases::default()
        };
        self.phases.insert((cta, address), made);
    }

    /// Arrives there.
    pub(super) fn arrive(&mut self, cta: usize, address: u64, arrivals: u32, bytes: i64, then: f64) {
        let phases = self.phases.entry((cta, address)).or_default();
        let before = phases.phase;
        phases.arrive(arrivals, bytes, then);
        if phases.phase != before {
            self.wake(cta);
        }
    }

    /// When the phase of this parity was over, if it was.
    pub(super) fn phase_over(&self, cta: usize, address: u64, parity: u64) -> Option<f64> {
        let phases = self.phases.get(&(cta, address)).copied().unwrap_or_default();
        (self.looks_only || phases.phase & 1 != parity & 1).then_some(phases.over)
    }

    /// Comes to a barrier of so many threads of the CTA; when all are there.
    pub(super) fn meet(&mut self, agent: usize, id: u64, threads: u32) -> Option<f64> {
        let (cta, time) = (self.agents[agent].cta, self.agents[agent].time);
        if self.looks_only {
            return Some(time);
        }
        let own = 32 * self.agents[agent].warps;
        let meeting = self.meetings.entry((cta, id)).or_default();
        if let Some(ended) = self.agents[agent].seen {
            // Its threads are counted already.
            let is_over = ended < meeting.ended;
            if is_over {
                self.agents[agent].seen = None;
            }
            return is_over.then_some(meeting.over);
        }
        meeting.threads += own;
        meeting.latest = meeting.latest.max(time);
        if meeting.threads < threads {
            self.agents[agent].seen = Some(meeting.ended);
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
