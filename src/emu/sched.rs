//! The machine: resident CTAs, their barriers, and who runs next.
//!
//! A seeded generator picks a CTA, a warp of it that can run, a group of its lanes, and for how
//! long it runs. Diverged groups: three times in four the one that is furthest behind runs, which
//! brings lanes together again soon; else any, so that no lane starves while others spin.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use super::async_work::{Sent, Transfer};
use super::error::{EmuError, Fault, FaultSite, Space};
use super::inst::{BarrierKind, BoolOp, Op};
use super::launch::{Launch, Options, Profile, Stats, WARP_STEPS};
use super::mbarrier::MBarrier;
use super::mem::{Memory, Region, SHARED_BASE};
use super::module::Entry;
use super::race::{
    Agents, FIRST_AGENT, Joined, Knowledge, Record, Releases, Shadow, WarpClock, lanes,
};
use super::setmaxnreg::Budget;
use super::warp::{State, Warp};
use super::wgmma_in_flight::Warpgroup;

/// A fault and the lane that caused it.
pub(super) type Trouble = (u32, Fault);

/// What an instruction did to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepResult {
    /// The group goes on, from wherever its program counter is now.
    Continue,
    /// The group does not run any further for now; others may have changed.
    Stop,
    /// The group arrived at a CTA barrier that is complete now.
    Complete(u8),
    /// The group goes on, and others that wait for what warps do should look again.
    Wake,
}

/// Kinds of waits that the report of a deadlock lists.
const MOST_WAITS: usize = 12;

/// A CTA barrier.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// Threads wanted; zero while nobody has arrived.
    pub(super) expected: u32,
    pub(super) arrived: u32,
    /// Warps of which a lane arrived.
    pub(super) warps: u32,
    /// Threads whose predicate held, and that gave one.
    pub(super) votes: u32,
    pub(super) voters: u32,
    pub(super) joined: Joined,
}

/// What the warps of a CTA share.
#[derive(Debug, Default)]
pub(super) struct CtaState {
    pub(super) index: [u32; 3],
    /// Number in its cluster.
    pub(super) rank: u32,
    /// All its threads have ended.
    pub(super) ended: bool,
    /// What its threads released that arrived at the cluster's barrier, and what those acquire that wait there.
    pub(super) cluster_released: Knowledge,
    pub(super) cluster_acquired: Rc<Knowledge>,
    pub(super) shared: Region,
    pub(super) shadow: Shadow,
    pub(super) releases: Releases,
    pub(super) barriers: [Barrier; 16],
    /// Barriers in shared memory, by offset.
    pub(super) mbarriers: BTreeMap<usize, MBarrier>,
    /// Loads that signal one of them, and arrivals behind copies.
    pub(super) transfers: Vec<Transfer>,
    /// What of other CTAs came here and is not settled there.
    pub(super) received: Vec<Sent>,
    /// A phase completed: who waits for one looks again.
    pub(super) woken: bool,
    /// A wait for a phase failed, so that transfers may land.
    pub(super) nudged: bool,
    /// Waits that failed since a phase completed.
    pub(super) polls: u32,
    /// How often nobody could do anything but give up waiting, and what had happened until then.
    pub(super) stalls: (u32, u64),
    /// Products under way, for each four warps; empty if the entry has none.
    pub(super) warpgroups: Vec<Warpgroup>,
    /// Its registers, if the entry moves them.
    pub(super) budget: Option<Budget>,
}

#[derive(Debug)]
pub(super) struct Cta {
    pub(super) state: CtaState,
    pub(super) warps: Vec<Warp>,
}

/// A small generator of random numbers (Steele, Lea and Flood's SplitMix64).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }

    /// A number below `end`, which must not be zero.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u64::from(self.next()) * end as u64) >> 32) as usize
    }
}

/// Warps of a grid that the race detector can tell apart: a lane of one is known by 32 bits.
const MAX_WARPS: u64 = FIRST_AGENT as u64;

/// One launch in progress.
pub(super) struct Machine<'a> {
    pub(super) entry: &'a Entry,
    pub(super) options: &'a Options,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// CTAs of a cluster.
    pub(super) cluster: [u32; 3],
    /// The CTAs of the cluster that runs, by rank, but for the one that does; empty if there are no others.
    pub(super) peers: Vec<CtaState>,
    pub(super) dynamic_shared: u32,
    pub(super) memory: &'a mut Memory,
    pub(super) params: Region,
    /// Addresses of the module's variables.
    pub(super) variables: Vec<u64>,
    /// One for each allocation, made when it is touched first.
    pub(super) shadows: Vec<Option<Shadow>>,
    pub(super) releases: Releases,
    /// Asynchronous work, for the race detector.
    pub(super) agents: Agents,
    /// Lines of `cp.async`.
    pub(super) copy_lines: Rc<BTreeSet<u32>>,
    /// Time of the race detector; zero means never.
    pub(super) now: u32,
    pub(super) stats: Stats,
    /// What lines do, if somebody asks.
    pub(super) profile: Option<Profile>,
    /// Stores, arrivals and whatever else others may wait for.
    pub(super) effects: u64,
    /// What the limit is on.
    steps: u64,
    pub(super) random: Random,
    /// Operands of the instruction in execution.
    pub(super) operands: Box<[[u64; 32]; 4]>,
    /// The allocation found last.
    pub(super) hint: usize,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        entry: &'a Entry,
        launch: &'a Launch<'_>,
        memory: &'a mut Memory,
        params: Vec<u8>,
        variables: Vec<u64>,
    ) -> Machine<'a> {
        let mut region = Region::new(0, params.len());
        region.data.copy_from_slice(&params);
        region.mark(0, params.len(), true);
        let shadows = (0..memory.region_count()).map(|_| None).collect();
        let copies = entry
            .code
            .iter()
            .filter(|inst| matches!(inst.op, Op::Copy { .. }));
        Machine {
            entry,
            options: &launch.options,
            grid: launch.grid,
            block: launch.block,
            cluster: entry.cluster.unwrap_or(launch.options.cluster),
            peers: Vec::new(),
            dynamic_shared: launch.shared_bytes,
            memory,
            params: region,
            variables,
            shadows,
            releases: Releases::default(),
            agents: Agents::default(),
            copy_lines: Rc::new(copies.map(|inst| inst.line).collect()),
            now: 1,
            stats: Stats::default(),
            profile: None,
            effects: 0,
            steps: 0,
            random: Random(launch.options.seed),
            operands: Box::new([[0; 32]; 4]),
            hint: 0,
        }
    }

    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub(super) fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    fn budget(&self) -> Budget {
        let declared = self.entry.reqntid.or(self.entry.maxntid);
        let sizes = declared.unwrap_or(self.block);
        let most = sizes
            .iter()
            .fold(1, |all: u64, &n| all.saturating_mul(n.into()));
        let (ctas, limit) = (self.entry.min_ctas, self.entry.max_registers);
        Budget::new(self.warps(), most, ctas, limit)
    }

    /// The CTA of a rank in the cluster of a number.
    pub(super) fn cta(&self, cluster: u64, rank: u32) -> Cta {
        let shape = self.cluster;
        let [x, y, _] = self.grid.map(u64::from);
        let clusters: [u64; 2] = [0, 1].map(|axis| u64::from(self.grid[axis] / shape[axis]));
        let number = [
            cluster % clusters[0],
            cluster / clusters[0] % clusters[1],
            cluster / clusters[0] / clusters[1],
        ];
        let index_of = |rank: u32| -> [u32; 3] {
            let place = [
                rank % shape[0],
                rank / shape[0] % shape[1],
                rank / shape[0] / shape[1],
            ];
            std::array::from_fn(|axis| number[axis] as u32 * shape[axis] + place[axis])
        };
        let index = index_of(rank);
        // The number of a CTA's first warp.
        let first_of = |rank: u32| {
            let [i, j, k] = index_of(rank).map(u64::from);
            (i + x * (j + y * k)) as u32 * self.warps()
        };
        let first = first_of(rank);
        let of_cluster: Rc<[u32]> = (0..shape.iter().product()).map(first_of).collect();
        let bytes =
            (self.entry.dynamic_start + self.dynamic_shared).max(self.entry.static_shared) as usize;
        let warps = self.warps();
        let shadow_bytes = if self.options.check_races { bytes } else { 0 };
        Cta {
            state: CtaState {
                index,
                rank,
                ended: false,
                cluster_released: Knowledge::default(),
                cluster_acquired: Rc::default(),
                shared: Region::new(SHARED_BASE, bytes),
                shadow: Shadow::new(shadow_bytes),
                releases: Releases::default(),
                barriers: Default::default(),
                mbarriers: BTreeMap::new(),
                transfers: Vec::new(),
                received: Vec::new(),
                woken: false,
                nudged: false,
                polls: 0,
                stalls: (0, 0),
                warpgroups: match self.entry.has_products {
                    true => (0..warps.div_ceil(4))
                        .map(|_| Warpgroup::default())
                        .collect(),
                    false => Vec::new(),
                },
                budget: self.entry.moves_registers.then(|| self.budget()),
            },
            warps: (0..warps)
                .map(|index| {
                    let clock = WarpClock::new(first, index, warps, Rc::clone(&of_cluster));
                    Warp::new(self.entry, index, self.threads(), clock)
                })
                .collect(),
        }
    }

    /// Runs the grid to its end.
    pub(super) fn run(&mut self) -> Result<Stats, EmuError> {
        let size = self.cluster.iter().product::<u32>();
        // Grids were checked: x y z is below 2^63.
        let ctas: u64 = self.grid.iter().map(|&n| u64::from(n)).product();
        let total = ctas / u64::from(size);
        let most = (self.options.resident_ctas / size).max(1) as usize;
        let mut next = 0;
        let mut resident: Vec<Vec<Cta>> = Vec::new();
        loop {
            while next < total && resident.len() < most {
                let warps = u64::from(size) * u64::from(self.warps());
                if (next + 1) * warps > MAX_WARPS {
                    let message =
                        format!("more than {MAX_WARPS} warps have run, which are all there can be");
                    return Err(EmuError::Configuration(message));
                }
                self.steps += WARP_STEPS * warps;
                resident.push((0..size).map(|rank| self.cta(next, rank)).collect());
                next += 1;
            }
            if resident.is_empty() {
                return Ok(self.stats);
            }
            let index = self.random.below(resident.len());
            let cluster = &mut resident[index];
            let rank = match size {
                1 => 0,
                _ => self.random.below(cluster.len()),
            };
            self.wake(&mut cluster[rank])?;
            let cta = &cluster[rank];
            let start = self.random.below(cta.warps.len());
            let count = cta.warps.len();
            let ready = (0..count)
                .map(|i| (start + i) % count)
                .find(|&warp| cta.warps[warp].is_ready());
            if let Some(warp) = ready {
                self.slice_of(cluster, rank, warp)?;
                if self.entry.waits_for_cluster {
                    Machine::pass_cluster_barrier(cluster);
                }
                continue;
            }
            if cta.warps.iter().all(|warp| warp.groups.is_empty()) {
                self.end(cluster, rank)?;
                if cluster.iter().all(|cta| cta.state.ended) {
                    resident.swap_remove(index);
                    continue;
                }
            }
            let is_ready = |cta: &Cta| cta.warps.iter().any(Warp::is_ready);
            let goes_on =
                |cta: &Cta| !cta.state.ended && cta.warps.iter().all(|w| w.groups.is_empty());
            if !cluster.iter().any(|cta| is_ready(cta) || goes_on(cta)) && !self.unblock(cluster)? {
                return Err(self.deadlock(cluster));
            }
        }
    }

    /// Warps of a group that ended without doing what the others of it did.
    pub(super) fn check_groups(&self, cta: &CtaState) -> Result<(), EmuError> {
        let fail = |warp: u32, pc: u32| {
            let inst = &self.entry.code[pc as usize];
            let opcode = inst.opcode.to_string();
            let reason = format!("warp {warp} of its group ended without executing it");
            let fault = Fault::Warpgroup { opcode, reason };
            Err(self.fault(cta, warp, inst.line, (0, fault)))
        };
        if let Some((warp, change)) = cta.budget.as_ref().and_then(Budget::unfinished) {
            return fail(warp, change.pc);
        }
        for (index, group) in cta.warpgroups.iter().enumerate() {
            if let Some((member, product)) = group.unfinished() {
                return fail(index as u32 * 4 + member, product.pc);
            }
        }
        Ok(())
    }

    /// Runs one warp for a while.
    pub(super) fn slice(&mut self, cta: &mut Cta, warp_index: usize) -> Result<(), EmuError> {
        let quantum = 1 + self.random.below(128);
        let (mut group, insists) = self.pick(&cta.warps[warp_index]);
        for _ in 0..quantum {
            let warp = &mut cta.warps[warp_index];
            group = warp.merge_equal(group);
            let pc = warp.groups[group].pc;
            let first_lane = warp.groups[group].mask.trailing_zeros();
            let line = self.entry.code.get(pc as usize).map_or(0, |inst| inst.line);
            self.steps += 1;
            if self.steps > self.options.step_limit {
                let fault = Fault::StepLimit(self.options.step_limit);
                return Err(self.fault(&cta.state, warp.index, line, (first_lane, fault)));
            }
            match self.step(&mut cta.state, warp, group) {
                Err(trouble) => return Err(self.fault(&cta.state, warp.index, line, trouble)),
                Ok(StepResult::Stop) => return Ok(()),
                Ok(StepResult::Complete(id)) => {
                    self.complete(cta, id);
                    return Ok(());
                }
                Ok(StepResult::Wake) => {
                    let groups = cta.warps.iter_mut().flat_map(|warp| &mut warp.groups);
                    for group in groups {
                        if matches!(group.state, State::Products(_) | State::Registers(_)) {
                            group.state = State::Ready;
                        }
                    }
                    return Ok(());
                }
                Ok(StepResult::Continue) => {
                    // With others about, a group lets them run when it goes round a loop, in which
                    // it may wait for them, and when one of them is behind.
                    let warp = &cta.warps[warp_index];
                    let now = warp.groups[group].pc;
                    let behind = |other: &super::warp::LaneGroup| {
                        other.state == State::Ready && other.pc < now
                    };
                    if warp.groups.len() > 1
                        && (now <= pc || !insists && warp.groups.iter().any(behind))
                    {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// The group of a ready warp that runs next, and whether it runs on although others are behind.
    fn pick(&mut self, warp: &Warp) -> (usize, bool) {
        if warp.groups.len() == 1 {
            return (0, true);
        }
        let ready = || {
            warp.groups
                .iter()
                .enumerate()
                .filter(|(_, group)| group.state == State::Ready)
        };
        let insists = self.random.below(4) == 0;
        let choice = if insists {
            let count = ready().count();
            ready().nth(self.random.below(count))
        } else {
            ready().min_by_key(|(_, group)| group.pc)
        };
        (
            choice
                .map(|(index, _)| index)
                .expect("the warp has a ready group"),
            insists,
        )
    }

    /// Lets everybody go who waits at a barrier that is complete.
    fn complete(&mut self, cta: &mut Cta, id: u8) {
        let barrier = std::mem::take(&mut cta.state.barriers[usize::from(id)]);
        self.stats.barriers += 1;
        for warp in &mut cta.warps {
            let mut waited = false;
            for index in 0..warp.groups.len() {
                if warp.groups[index].state != State::Barrier(id) {
                    continue;
                }
                waited = true;
                let group = &mut warp.groups[index];
                let (pc, mask) = (group.pc as usize, group.mask);
                group.state = State::Ready;
                group.pc += 1;
                match &self.entry.code[pc].op {
                    Op::Barrier {
                        kind: BarrierKind::Count(dst, _),
                        ..
                    } => {
                        for lane in lanes(mask) {
                            warp.set(*dst, lane, u64::from(barrier.votes));
                        }
                        warp.define(*dst, mask, u32::MAX);
                    }
                    Op::Barrier {
                        kind: BarrierKind::Reduce(op, dst, _),
                        ..
                    } => {
                        let holds = match op {
                            BoolOp::And => barrier.votes == barrier.voters,
                            BoolOp::Or | BoolOp::Xor => barrier.votes > 0,
                        };
                        warp.set_predicate(*dst, mask, if holds { mask } else { 0 }, u32::MAX);
                    }
                    _ => {}
                }
            }
            if waited {
                warp.clock.leave(&barrier.joined);
            }
        }
    }

    pub(super) fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        let linear = warp * 32 + lane;
        let [x, y, _] = self.block;
        [linear % x, linear / x % y, linear / x / y]
    }

    pub(super) fn fault(
        &self,
        cta: &CtaState,
        warp: u32,
        line: u32,
        (lane, fault): Trouble,
    ) -> EmuError {
        let at = FaultSite {
            line,
            source: self.entry.source(line),
            cta: cta.index,
            thread: self.thread(warp, lane),
        };
        EmuError::Fault { at, fault }
    }

    /// The place of an access that the race detector remembers.
    pub(super) fn place(&self, record: Record) -> FaultSite {
        let (warp, lane) = (self.agents.warp(record.who >> 5), record.who & 31);
        let cta = warp / self.warps();
        let [x, y, _] = self.grid;
        FaultSite {
            line: record.line(),
            source: self.entry.source(record.line()),
            cta: [cta % x, cta / x % y, cta / x / y],
            thread: self.thread(warp % self.warps(), lane),
        }
    }

    /// Says who waits for what in a cluster in which nobody can run.
    fn deadlock(&self, cluster: &[Cta]) -> EmuError {
        // Warps that wait alike are named together.
        let mut waits: Vec<((u32, u32, String), Vec<String>)> = Vec::new();
        let mut note = |what: (u32, u32, String), warp: u32| {
            let warp = warp.to_string();
            match waits.iter_mut().find(|(other, _)| *other == what) {
                Some((_, warps)) => warps.push(warp),
                None => waits.push((what, vec![warp])),
            }
        };
        let place = |rank: u32| match cluster.len() {
            1 => String::new(),
            _ => format!("in the CTA of rank {rank}: "),
        };
        let (mut message, mut at) = (String::new(), None);
        for cta in cluster.iter().filter(|cta| !cta.state.ended) {
            let rank = cta.state.rank;
            for (id, barrier) in cta.state.barriers.iter().enumerate() {
                if barrier.expected > 0 {
                    let _ = write!(
                        message,
                        "{}barrier {id} waits for {} threads and {} have arrived; ",
                        place(rank),
                        barrier.expected,
                        barrier.arrived
                    );
                }
            }
            for warp in &cta.warps {
                for group in &warp.groups {
                    let line = self.entry.code[group.pc as usize].line;
                    at.get_or_insert((cta, warp.index, line, group.mask.trailing_zeros()));
                    let what = self.what_it_waits_for(&cta.state, group.state);
                    let line = self.entry.line(line);
                    let what = format!("wait {what} in {line}");
                    note((rank, group.mask, what), warp.index);
                }
                if warp.exited != 0 {
                    note((rank, warp.exited, "have exited".to_owned()), warp.index);
                }
            }
        }
        let more = waits.len().saturating_sub(MOST_WAITS);
        for ((rank, mask, what), warps) in waits.iter().take(MOST_WAITS) {
            let (place, plural) = (place(*rank), if warps.len() == 1 { "" } else { "s" });
            let warps = warps.join(", ");
            let _ = write!(
                message,
                "{place}lanes {mask:#010x} of warp{plural} {warps} {what}; "
            );
        }
        if more > 0 {
            let _ = write!(message, "and {more} more");
        }
        let message = message.trim_end_matches("; ").to_owned();
        let (cta, warp, line, lane) = at.unwrap_or((&cluster[0], 0, 0, 0));
        self.fault(&cta.state, warp, line, (lane, Fault::Deadlock(message)))
    }

    /// What lanes in a state wait for.
    fn what_it_waits_for(&self, cta: &CtaState, state: State) -> String {
        match state {
            State::Barrier(id) => format!("at barrier {id}"),
            State::Sync(mask) => format!("for the lanes {mask:#010x}"),
            State::Phase(offset) => self.waits_for(cta, offset),
            State::Cluster => "for the other threads of the cluster".to_owned(),
            State::Registers(count) => format!(
                "for {count} registers of each thread, with {} in the pool of the CTA",
                cta.budget.as_ref().map_or(0, Budget::pool)
            ),
            State::Products(line) => format!(
                "for the other warps of its group to issue the product of {}",
                self.entry.line(line)
            ),
            State::Ready => "nowhere".to_owned(),
        }
    }

    /// The space that an address in the generic space belongs to.
    pub(super) fn generic_space(address: u64) -> (Space, u64) {
        use super::mem::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
        if SHARED_WINDOW.contains(&address) {
            (Space::Shared, address - SHARED_WINDOW.start)
        } else if LOCAL_WINDOW.contains(&address) {
            (Space::Local, address - LOCAL_WINDOW.start)
        } else if PARAM_WINDOW.contains(&address) {
            (Space::Param, address - PARAM_WINDOW.start)
        } else {
            (Space::Global, address)
        }
    }
}
