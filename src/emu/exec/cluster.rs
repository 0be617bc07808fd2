//! Instructions by which CTAs of a cluster find and wait for each other.

use super::super::error::{Fault, Space};
use super::super::inst::{Inst, Op, Scope};
use super::super::mem::{RANK_BIT, SHARED_WINDOW};
use super::super::race::lanes;
use super::super::sched::{CtaState, Machine, StepResult, Trouble};
use super::super::warp::{State, Warp};

impl Machine<'_> {
    /// `mapa` and `getctarank`.
    pub(super) fn map_address(
        &mut self,
        cta: &CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::MapAddress {
            dst,
            address,
            rank,
            is_generic,
        } = &inst.op
        else {
            unreachable!("called for addresses of clusters only")
        };
        let mut defined = self.fetch(cta, warp, *address, active, 0)?;
        if let Some(rank) = rank {
            defined &= self.fetch(cta, warp, *rank, active, 1)?;
            self.require(*rank, active, defined)?;
        }
        let size = self.cluster.iter().product::<u32>();
        let window = if *is_generic { SHARED_WINDOW.start } else { 0 };
        for lane in lanes(active) {
            let address = self.operands[0][lane as usize].wrapping_sub(window);
            let in_cta = address & ((1 << RANK_BIT) - 1);
            let value = match rank {
                None => (address >> RANK_BIT)
                    .checked_sub(1)
                    .unwrap_or(u64::from(cta.rank)),
                Some(_) => {
                    let rank = self.operands[1][lane as usize];
                    if rank >= u64::from(size) {
                        let reason = format!("there is no CTA of rank {rank} among {size}");
                        return Err((lane, Fault::Cluster(reason)));
                    }
                    window + (in_cta | (rank + 1) << RANK_BIT)
                }
            };
            warp.set(*dst, lane, value);
        }
        warp.define(*dst, active, defined);
        Ok(())
    }

    /// `barrier.cluster`.
    pub(super) fn cluster_barrier(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
        aligned: bool,
    ) -> Result<StepResult, Trouble> {
        let mut group = group;
        if aligned {
            let Some(whole) = self.whole_warp(warp, group, inst)? else {
                return Ok(StepResult::Stop);
            };
            group = whole;
        }
        let active = warp.groups[group].mask;
        let fail = |lanes: u32, reason: &str| {
            let reason = format!("`{}`: {reason}", inst.opcode);
            Err((lanes.trailing_zeros(), Fault::Cluster(reason)))
        };
        let (arrived, passed) = (warp.arrived & active, warp.passed & active);
        let Op::ClusterArrive { releases, .. } = inst.op else {
            if arrived | passed != active {
                return fail(active & !(arrived | passed), "the thread has not arrived");
            }
            if arrived != 0 {
                warp.groups[group].state = State::Cluster;
                return Ok(StepResult::Stop);
            }
            warp.passed &= !active;
            if self.options.check_races {
                let all = warp.exists & !warp.exited;
                let acquired = std::rc::Rc::clone(&cta.cluster_acquired);
                warp.clock.acquire_all(active, all, &acquired);
            }
            warp.groups[group].pc += 1;
            return Ok(StepResult::Stop);
        };
        if arrived | passed != 0 {
            return fail(
                arrived | passed,
                "the thread arrived before and has not waited",
            );
        }
        warp.arrived |= active;
        if self.options.check_races {
            let released = match releases {
                true => warp.clock.release(active, &mut self.now),
                false => {
                    let scope = self.scope(Scope::Cluster, Space::Global);
                    warp.clock.release_fenced(active, scope)
                }
            };
            cta.cluster_released.join(&released);
        }
        warp.groups[group].pc += 1;
        // Perhaps all have arrived now.
        Ok(StepResult::Stop)
    }
}
