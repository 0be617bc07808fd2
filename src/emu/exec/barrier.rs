//! Barriers of a CTA (`bar.sync`, `bar.arrive`, `bar.red`).

use super::super::error::Fault;
use super::super::inst::{BarrierKind, Inst, Src};
use super::super::race::lanes;
use super::super::sched::{CtaState, Machine, StepResult, Trouble};
use super::super::warp::{State, Warp};

impl Machine<'_> {
    /// Threads of a CTA arrive at one of its barriers, or wait there.
    #[expect(clippy::too_many_arguments, reason = "the fields of one instruction")]
    pub(super) fn barrier(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
        kind: BarrierKind,
        aligned: bool,
        id: Src,
        count: Option<Src>,
    ) -> Result<StepResult, Trouble> {
        let mut group = group;
        if aligned {
            let Some(whole) = self.whole_warp(warp, group, inst)? else {
                return Ok(StepResult::Stop);
            };
            group = whole;
        }
        let active = warp.groups[group].mask;
        let lane = active.trailing_zeros();
        let id = u64::from(self.uniform(cta, warp, active, id, "number")?);
        let fail = |reason: String| Err((lane, Fault::Barrier { id, reason }));
        let threads = self.threads();
        let all = threads.next_multiple_of(32);
        let expected = match count {
            None => all,
            Some(count) => self.uniform(cta, warp, active, count, "thread count")?,
        };
        if id >= 16 {
            return fail("there are 16 barriers".to_owned());
        }
        if expected == 0 || expected % 32 != 0 {
            return fail(format!(
                "a count of {expected} is not a positive multiple of 32"
            ));
        }
        if expected > all {
            return fail(format!(
                "it waits for {expected} threads and the CTA has {threads}"
            ));
        }
        let barrier = &mut cta.barriers[id as usize];
        if barrier.expected != 0 && barrier.expected != expected {
            return fail(format!(
                "entered for {expected} threads, and for {} before",
                barrier.expected
            ));
        }
        barrier.expected = expected;
        // Lanes that stand for no thread count with the first lane of their warp.
        let first = barrier.warps >> warp.index & 1 == 0;
        barrier.warps |= 1 << warp.index;
        barrier.arrived += active.count_ones()
            + if first {
                (!warp.exists).count_ones()
            } else {
                0
            };
        if barrier.arrived > expected {
            return fail(format!(
                "{} threads arrived and {expected} were expected",
                barrier.arrived
            ));
        }
        if let BarrierKind::Count(_, value) | BarrierKind::Reduce(_, _, value) = kind {
            let (holds, known) = warp.predicate(value);
            barrier.votes += (holds & active).count_ones();
            barrier.voters += active.count_ones();
            self.require_predicate(value, active, known)?;
        }
        let barrier = &mut cta.barriers[id as usize];
        let complete = barrier.arrived == expected;
        if self.options.check_races {
            warp.clock.arrive(&mut barrier.joined, &mut self.now);
        }
        if kind == BarrierKind::Arrive {
            warp.groups[group].pc += 1;
        } else {
            warp.groups[group].state = State::Barrier(id as u8);
        }
        Ok(match (complete, kind) {
            (true, _) => StepResult::Complete(id as u8),
            (false, BarrierKind::Arrive) => StepResult::Continue,
            (false, _) => StepResult::Stop,
        })
    }

    /// An operand that must be the same in all lanes.
    fn uniform(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        active: u32,
        source: Src,
        what: &str,
    ) -> Result<u32, Trouble> {
        let defined = self.fetch(cta, warp, source, active, 0)?;
        self.require(source, active, defined)?;
        let first = self.operands[0][active.trailing_zeros() as usize] as u32;
        match lanes(active).find(|&lane| self.operands[0][lane as usize] as u32 != first) {
            None => Ok(first),
            Some(lane) => {
                let reason = format!("the {what} differs among the lanes");
                Err((
                    lane,
                    Fault::Barrier {
                        id: u64::from(first),
                        reason,
                    },
                ))
            }
        }
    }
}
