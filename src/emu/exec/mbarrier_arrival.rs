//! Arrivals and bytes at barriers in shared memory, and the phases that they complete.

use super::super::async_work::{Transfer, Work};
use super::super::error::{Fault, Space};
use super::super::inst::{Dst, Inst, Op, PhaseOp, Scope};
use super::super::mbarrier::MBarrier;
use super::super::mem::SHARED_BASE;
use super::super::race::{GENERIC, PROGRESS, Record, lanes};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::warp::Warp;
use super::access::AccessTarget;
use super::mbarrier::trouble;

impl Machine<'_> {
    /// Arrivals and bytes of the lanes of `mask` at one barrier.
    #[expect(clippy::too_many_arguments, reason = "the parts of one instruction")]
    pub(super) fn change_barrier(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        mask: u32,
        place: AccessTarget,
        op: PhaseOp,
        values: &[u64; 32],
        (dst, line): (Dst, u32),
    ) -> Result<(), Trouble> {
        self.effects += 1;
        let in_cta = place.space == Space::Shared;
        let (reaches, is_release, may_complete) = match op {
            PhaseOp::Arrive {
                releases,
                may_complete,
                is_narrow,
                ..
            } => {
                let reaches = in_cta || !is_narrow;
                (reaches, reaches && releases, may_complete)
            }
            _ => (false, false, true),
        };
        self.use_barrier(cta, warp, mask.trailing_zeros(), place)?;
        if place.space == Space::Cluster && self.options.check_races {
            let (time, first) = (self.now, warp.clock.warp << 5);
            let barrier = self.use_barrier(cta, warp, mask.trailing_zeros(), place)?;
            lanes(mask).for_each(|lane| barrier.reach(Record::new(first | lane, time, line)));
        }
        let is_arrival = matches!(op, PhaseOp::Arrive { .. });
        if is_arrival && self.options.check_races {
            let scope = if in_cta { Scope::Cta } else { Scope::Cluster };
            let left = match is_release {
                true => warp.clock.release(mask, &mut self.now),
                false if reaches => warp.clock.release_fenced(mask, scope),
                false => Default::default(),
            };
            if let Some(barrier) = cta.mbarriers.get_mut(&place.offset) {
                match in_cta {
                    true => barrier.arriving.join(&left),
                    false => barrier.arriving_peers.join(&left),
                }
            }
        }
        for lane in lanes(mask) {
            let barrier = self.use_barrier(cta, warp, lane, place)?;
            let state = barrier.state();
            change(barrier, op, values[lane as usize])
                .map_err(|reason| trouble(lane, place, reason))?;
            warp.set(dst, lane, state);
            self.complete_phase(cta, lane, place.offset, may_complete)?;
        }
        warp.define(dst, mask, u32::MAX);
        // Who arrives knows how far the barrier is, though not what others did.
        if let PhaseOp::Arrive { .. } = op
            && self.options.check_races
            && let Some(barrier) = cta.mbarriers.get(&place.offset)
            && let Some(&time) = barrier.completed.last()
        {
            let all = warp.exists & !warp.exited;
            warp.clock.learn(mask, all, barrier.engine | PROGRESS, time);
        }
        Ok(())
    }

    /// Completes the phase of a barrier if it lacks nothing.
    pub(in crate::emu) fn complete_phase(
        &mut self,
        cta: &mut CtaState,
        lane: u32,
        offset: usize,
        may_complete: bool,
    ) -> Result<(), Trouble> {
        let Some(barrier) = cta.mbarriers.get_mut(&offset) else {
            return Ok(());
        };
        if !barrier.is_complete() {
            return Ok(());
        }
        let phase = barrier.phase;
        let fail = |reason: String| {
            let address = SHARED_BASE + offset as u64;
            Err((lane, Fault::MBarrier { address, reason }))
        };
        if !may_complete {
            return fail(format!(
                "an arrival with `.noComplete` completes phase {phase}"
            ));
        }
        let stray = cta
            .transfers
            .iter()
            .find_map(|transfer| match &transfer.work {
                Work::Move(moved) if moved.barrier == Some(offset) => {
                    Some((moved.tx, transfer.line))
                }
                _ => None,
            });
        if let Some((bytes, line)) = stray {
            return fail(format!(
                "phase {phase} completes while {bytes} bytes of line {line}, which it does not expect, are under way"
            ));
        }
        barrier.complete(&mut self.now);
        cta.woken = true;
        cta.polls = 0;
        self.effects += 1;
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: an arrival once the copies of each lane so far are there.
    pub(super) fn copy_arrive(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::CopyArrive { address, counts } = &inst.op else {
            unreachable!("called for these only")
        };
        self.addresses(cta, warp, active, *address)?;
        for lane in lanes(active) {
            let at = self.operands[3][lane as usize];
            let place = self.barrier_place(cta, warp, lane, address.space, at)?;
            let check_races = self.options.check_races;
            self.use_barrier(cta, warp, lane, place)?;
            let left = match check_races {
                true => warp.clock.release(1 << lane, &mut self.now),
                false => Default::default(),
            };
            let barrier = self.use_barrier(cta, warp, lane, place)?;
            if *counts {
                // It counts for itself: one more arrival is wanted.
                barrier.pending += 1;
            }
            let agent = barrier.engine | GENERIC;
            cta.transfers.push(Transfer {
                agent,
                warp: warp.index,
                lane,
                line: inst.line,
                group: 0,
                work: Work::Arrival {
                    copies: warp.copies_started,
                    barrier: place.offset,
                    left: Box::new(left),
                },
            });
            self.effects += 1;
        }
        Ok(())
    }
}

/// Arrivals and bytes.
fn change(barrier: &mut MBarrier, op: PhaseOp, value: u64) -> Result<(), String> {
    let bytes = i64::from(value as u32);
    match op {
        PhaseOp::Expect => barrier.expect(bytes),
        PhaseOp::Complete => barrier.expect(-bytes),
        PhaseOp::Arrive { expects, drops, .. } => {
            if expects {
                barrier.expect(bytes)?;
            }
            let count = if expects { 1 } else { value as u32 };
            if count == 0 {
                return Err("an arrival of none".to_owned());
            }
            barrier.arrive(count, drops)?;
            // Bytes too many show once nobody else can expect them.
            barrier.expect(0)
        }
        _ => Ok(()),
    }
}
