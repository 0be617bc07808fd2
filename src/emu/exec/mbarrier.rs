//! Barriers in shared memory, and fences between proxies.
//!
//! An arrival leaves what its thread knows, a wait that succeeds takes over what all arrivals of that phase left and what
//! completed on it; what peers left only if its scope is the cluster. A wait that fails blocks its lanes until a phase completes, as `try_wait` may; one in four gives up at
//! once, as it may, too. `test_wait` never blocks unless it is polled again and again.
//!
//! A wait by parity means the phase behind the last one that its thread knows to be complete, or that one. Where the barrier
//! has gone on further than that, the parity says something else than the thread asked, and that is reported.

use std::mem::take;

use super::super::error::{Fault, Space};
use super::super::inst::{Inst, Op, PhaseOp};
use super::super::mbarrier::{MBarrier, MOST};
use super::super::race::{Observer, PROGRESS, Record, Starting, lanes};
use super::super::sched::{CtaState, Machine, StepResult, Trouble};
use super::super::warp::{State, Warp};
use super::access::AccessTarget;

/// Failing `test_wait`s of a CTA, with nothing between them, from which on they block.
const POLLS: u32 = 256;
/// Bytes of a barrier.
const BYTES: u32 = 8;

impl Machine<'_> {
    pub(super) fn phase(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
    ) -> Result<StepResult, Trouble> {
        let Op::Phase {
            op,
            address,
            value,
            dst,
            pred,
        } = &inst.op
        else {
            unreachable!("called for barriers only")
        };
        let active = warp.groups[group].mask;
        let defined = self.fetch(cta, warp, *value, active, 0)?;
        self.require(*value, active, defined)?;
        let values = self.operands[0];
        self.addresses(cta, warp, active, *address)?;
        let all = warp.exists & !warp.exited;
        let (mut rest, mut holds, mut blocked_at) = (active, 0_u32, 0);
        while rest != 0 {
            // Lanes at the same barrier go together.
            let lane = rest.trailing_zeros();
            let at = self.operands[3][lane as usize];
            let mask = lanes(rest)
                .filter(|&other| self.operands[3][other as usize] == at)
                .fold(0, |mask, other| mask | 1 << other);
            rest &= !mask;
            let place = self.barrier_place(cta, warp, lane, address.space, at)?;
            blocked_at = place.offset;
            let is_change = !matches!(
                op,
                PhaseOp::Init | PhaseOp::Invalidate | PhaseOp::Wait { .. }
            );
            if place.space == Space::Cluster && !is_change {
                let reason = "it is one of another CTA, which only arrivals and bytes reach";
                return Err(trouble(lane, place, reason.to_owned()));
            }
            match *op {
                PhaseOp::Init => {
                    for lane in lanes(mask) {
                        self.init_barrier(
                            cta,
                            warp,
                            lane,
                            inst.line,
                            place,
                            values[lane as usize],
                        )?;
                    }
                }
                PhaseOp::Invalidate => {
                    self.use_barrier(cta, warp, lane, place)?;
                    self.note_access(cta, warp, lane, inst.line, place, BYTES, true)?;
                    cta.mbarriers.remove(&place.offset);
                }
                PhaseOp::Wait {
                    acquires,
                    is_narrow,
                    ..
                } => {
                    let mut done = 0;
                    for lane in lanes(mask) {
                        let barrier = self.use_barrier(cta, warp, lane, place)?;
                        let value = values[lane as usize];
                        let test = test(barrier, warp, lane, *op, value, self.options.check_races);
                        done |= u32::from(test.map_err(|r| trouble(lane, place, r))?) << lane;
                    }
                    if done != 0 && self.options.check_races {
                        let barrier = &cta.mbarriers[&place.offset];
                        let peers = (!is_narrow).then_some(&barrier.released_peers);
                        let released = [Some(&barrier.released), peers];
                        for released in released.into_iter().flatten() {
                            if acquires {
                                warp.clock.acquire_all(done, all, released);
                            } else {
                                lanes(done).for_each(|lane| warp.clock.meet(lane, released));
                            }
                        }
                        if !acquires {
                            // That the phase is complete is known all the same.
                            let time = barrier.completed.last().copied().unwrap_or_default();
                            let engine = barrier.engine | PROGRESS;
                            warp.clock.learn(done, all, engine, time);
                        }
                    }
                    holds |= done;
                }
                _ => {
                    // The barrier may be one of another CTA of the cluster.
                    let is_remote = place.space == Space::Cluster;
                    let mut remote = is_remote.then(|| take(&mut self.peers[place.region]));
                    let target = remote.as_mut().unwrap_or(cta);
                    let result = self.change_barrier(
                        target,
                        warp,
                        mask,
                        place,
                        *op,
                        &values,
                        (*dst, inst.line),
                    );
                    if let Some(remote) = remote {
                        self.peers[place.region] = remote;
                    }
                    result?;
                }
            }
        }
        if let PhaseOp::Wait { blocks, .. } = *op {
            if holds != active {
                cta.polls += 1;
                cta.nudged = true;
            }
            let blocks = if blocks {
                self.random.below(4) != 0
            } else {
                cta.polls > POLLS
            };
            if holds == 0 && blocks {
                warp.groups[group].state = State::Phase(blocked_at as u32);
                return Ok(StepResult::Stop);
            }
            if let Some(pred) = *pred {
                warp.set_predicate(pred, active, holds, u32::MAX);
            }
            warp.groups[group].pc += 1;
            return Ok(if holds == active {
                StepResult::Continue
            } else {
                StepResult::Stop
            });
        }
        warp.groups[group].pc += 1;
        Ok(StepResult::Continue)
    }

    /// Where a barrier stands.
    pub(super) fn barrier_place(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        lane: u32,
        space: Space,
        address: u64,
    ) -> Result<AccessTarget, Trouble> {
        let place = self.locate(cta, warp, lane, space, address, BYTES)?;
        if !matches!(place.space, Space::Shared | Space::Cluster) {
            let reason = format!("the address is one of the {} space", place.space);
            return Err(trouble(lane, place, reason));
        }
        Ok(place)
    }

    fn init_barrier(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        lane: u32,
        line: u32,
        place: AccessTarget,
        count: u64,
    ) -> Result<(), Trouble> {
        let count = count as u32;
        if count == 0 || i64::from(count) > MOST {
            let reason = format!("a count of {count}; 1 to {MOST} are possible");
            return Err(trouble(lane, place, reason));
        }
        if cta.mbarriers.contains_key(&place.offset) && !is_overwritten(cta, place) {
            let reason = "it is initialised again without `mbarrier.inval`".to_owned();
            return Err(trouble(lane, place, reason));
        }
        self.note_access(cta, warp, lane, line, place, BYTES, true)?;
        cta.shared.mark(place.offset, BYTES as usize, false);
        let engine = self.agents.start(warp.clock.warp, 1);
        let init = Record::new(warp.clock.warp << 5 | lane, self.now, line);
        cta.mbarriers
            .insert(place.offset, MBarrier::new(count, init, engine));
        Ok(())
    }

    /// The barrier at a place, which a lane uses.
    pub(super) fn use_barrier<'b>(
        &self,
        cta: &'b mut CtaState,
        warp: &Warp,
        lane: u32,
        place: AccessTarget,
    ) -> Result<&'b mut MBarrier, Trouble> {
        let is_overwritten = is_overwritten(cta, place);
        let Some(barrier) = cta.mbarriers.get_mut(&place.offset) else {
            let reason = "none was initialised here, or it is invalidated".to_owned();
            return Err(trouble(lane, place, reason));
        };
        if is_overwritten {
            let reason = "its bytes were overwritten".to_owned();
            return Err(trouble(lane, place, reason));
        }
        if self.options.check_races
            && !warp.clock.knows_at_all(lane, barrier.init)
            && !warp.clock.sees(lane, Observer::Barriers, barrier.init)
        {
            let reason = format!(
                "nothing orders its initialisation in {} before this use",
                self.entry.line(barrier.init.line())
            );
            return Err(trouble(lane, place, reason));
        }
        Ok(barrier)
    }

    /// The barrier of a transfer, whose initialisation the async proxy must see.
    pub(super) fn use_barrier_async(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        lane: u32,
        place: AccessTarget,
    ) -> Result<(), Trouble> {
        let check_races = self.options.check_races;
        let barrier = self.use_barrier(cta, warp, lane, place)?;
        let party = Starting {
            clock: &warp.clock,
            agent: barrier.engine,
            view: Some(Observer::Barriers),
            copies: None,
        };
        if check_races && !party.knows_write(lane, barrier.init) {
            let reason = format!(
                "its initialisation in {} is not visible to the async proxy: \
                 `fence.mbarrier_init` or `fence.proxy.async` is missing between them",
                self.entry.line(barrier.init.line())
            );
            return Err(trouble(lane, place, reason));
        }
        Ok(())
    }
}

fn is_overwritten(cta: &CtaState, place: AccessTarget) -> bool {
    (0..BYTES as usize).any(|i| cta.shared.is_written(place.offset + i, 1))
}

pub(super) fn trouble(lane: u32, place: AccessTarget, reason: String) -> Trouble {
    let address = place.address;
    (lane, Fault::MBarrier { address, reason })
}

/// Whether the phase that a wait asks for is complete.
fn test(
    barrier: &MBarrier,
    warp: &Warp,
    lane: u32,
    op: PhaseOp,
    value: u64,
    has_clocks: bool,
) -> Result<bool, String> {
    let phase = barrier.phase;
    let PhaseOp::Wait { by_parity, .. } = op else {
        return Ok(false);
    };
    if !by_parity {
        let asked = MBarrier::phase_of(value);
        if asked > phase || phase > asked + 1 {
            return Err(format!(
                "the state is of phase {asked}, and phase {phase} is the one that is not complete: \
                 only it and the one before can be told"
            ));
        }
        return Ok(asked != phase);
    }
    if value as u32 > 1 {
        return Err(format!("a parity of {}", value as u32));
    }
    let parity = value & 1;
    let done = phase & 1 != parity;
    if has_clocks {
        let until = warp.clock.known_time(lane, barrier.engine | PROGRESS);
        let known = barrier.completed.partition_point(|&time| time <= until) as u64;
        // The phase before `known` is complete, as this thread knows; it asks for that or the next one.
        let asks_next = known & 1 == parity;
        if phase > known + u64::from(asks_next) {
            return Err(format!(
                "{known} phases are complete as far as this thread knows, and in truth {phase}: parity {parity} no longer \
                 tells the phase that it waits for from another"
            ));
        }
    }
    Ok(done)
}
