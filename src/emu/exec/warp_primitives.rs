//! Instructions that the lanes of a warp execute together: shuffles, votes and their kin.

use super::super::error::Fault;
use super::super::inst::{Inst, Op, ReduxOp, ShuffleMode, Src, VoteMode};
use super::super::lane::integer::signed;
use super::super::race::lanes;
use super::super::sched::{CtaState, Machine, StepResult, Trouble};
use super::super::types::Type;
use super::super::warp::Warp;
use crate::num;

impl Machine<'_> {
    /// Executes a collective instruction, or makes the group wait for the lanes it wants.
    pub(super) fn collective(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
    ) -> Result<StepResult, Trouble> {
        let mask = match &inst.op {
            Op::Barrier {
                kind,
                aligned,
                id,
                count,
            } => {
                return self.barrier(cta, warp, group, inst, *kind, *aligned, *id, *count);
            }
            Op::ClusterArrive { aligned, .. } | Op::ClusterWait { aligned } => {
                return self.cluster_barrier(cta, warp, group, inst, *aligned);
            }
            of_whole_warp!() => return self.matrix(cta, warp, group, inst),
            of_members!(mask) => *mask,
            _ => unreachable!("called for collective instructions only"),
        };
        let (group, members) = self.members(cta, warp, group, mask)?;
        let Some(gathered) = warp.gather(group, members) else {
            return Ok(StepResult::Stop);
        };
        let moved = gathered != group;
        let group = gathered;
        let active = warp.groups[group].mask;
        match &inst.op {
            Op::Shuffle { .. } => self.shuffle(cta, warp, active, inst)?,
            Op::Vote {
                mode,
                dst,
                pred,
                value,
                ..
            } => {
                let (holds, known) = warp.predicate(*value);
                let holds = holds & active;
                let defined = if known & active == active {
                    u32::MAX
                } else {
                    0
                };
                let result = match mode {
                    VoteMode::All => holds == active,
                    VoteMode::Any | VoteMode::Ballot => holds != 0,
                    VoteMode::Uniform => holds == active || holds == 0,
                };
                if *mode == VoteMode::Ballot {
                    for lane in lanes(active) {
                        warp.set(*dst, lane, u64::from(holds));
                    }
                    warp.define(*dst, active, defined);
                } else if (*pred as usize) < warp.predicates.len() {
                    warp.set_predicate(*pred, active, if result { active } else { 0 }, defined);
                }
            }
            Op::Match {
                all,
                dst,
                pred,
                value,
                ..
            } => {
                let known = self.fetch(cta, warp, *value, active, 0)?;
                let defined = if known & active == active {
                    u32::MAX
                } else {
                    0
                };
                let values = &self.operands[0];
                let equal = |lane: u32| {
                    lanes(active)
                        .filter(|&other| values[other as usize] == values[lane as usize])
                        .fold(0_u32, |mask, other| mask | 1 << other)
                };
                let agree = equal(active.trailing_zeros()) == active;
                for lane in lanes(active) {
                    let result = match (*all, agree) {
                        (false, _) => equal(lane),
                        (true, true) => active,
                        (true, false) => 0,
                    };
                    warp.set(*dst, lane, u64::from(result));
                }
                warp.define(*dst, active, defined);
                if let Some(pred) = pred {
                    warp.set_predicate(*pred, active, if agree { active } else { 0 }, defined);
                }
            }
            Op::Redux {
                op,
                ty,
                nan,
                abs,
                dst,
                value,
                ..
            } => {
                let known = self.fetch(cta, warp, *value, active, 0)?;
                let defined = if known & active == active {
                    u32::MAX
                } else {
                    0
                };
                let result = lanes(active)
                    .map(|lane| self.operands[0][lane as usize])
                    .map(|x| if *abs { x & 0x7fff_ffff } else { x })
                    .reduce(|a, b| reduce(*op, *ty, *nan, a, b))
                    .unwrap_or(0);
                for lane in lanes(active) {
                    warp.set(*dst, lane, result);
                }
                warp.define(*dst, active, defined);
            }
            Op::Elect { dst, pred, .. } => {
                let leader = active.trailing_zeros();
                for lane in lanes(active) {
                    warp.set(*dst, lane, u64::from(leader));
                }
                warp.define(*dst, active, u32::MAX);
                warp.set_predicate(*pred, active, 1 << leader, u32::MAX);
            }
            Op::WarpBarrier { .. } => {
                let all = warp.exists & !warp.exited;
                warp.clock.sync_lanes(active, all, &mut self.now);
            }
            _ => unreachable!("matched above"),
        }
        warp.groups[group].pc += 1;
        // Where the caller's group stood there may be another one now, which perhaps waits, or none.
        Ok(if moved {
            StepResult::Stop
        } else {
            StepResult::Continue
        })
    }

    /// The group of all threads of the warp, for an instruction that all of them execute; none: some are missing yet.
    pub(super) fn whole_warp(
        &self,
        warp: &mut Warp,
        group: usize,
        inst: &Inst,
    ) -> Result<Option<usize>, Trouble> {
        let Some(whole) = warp.gather(group, warp.exists) else {
            return Ok(None);
        };
        if warp.exited == 0 {
            return Ok(Some(whole));
        }
        let lane = warp.groups[whole].mask.trailing_zeros();
        let missing = format!("lanes {:#010x} have exited", warp.exited);
        let opcode = inst.opcode.to_string();
        Err((lane, Fault::PartialWarp { opcode, missing }))
    }

    /// The member mask of a group's first lane; lanes that give another one are split off.
    fn members(
        &mut self,
        cta: &CtaState,
        warp: &mut Warp,
        group: usize,
        mask: Src,
    ) -> Result<(usize, u32), Trouble> {
        let active = warp.groups[group].mask;
        let defined = self.fetch(cta, warp, mask, active, 0)?;
        self.require(mask, active, defined)?;
        let members = self.operands[0][active.trailing_zeros() as usize] as u32;
        let others = lanes(active)
            .filter(|&lane| self.operands[0][lane as usize] as u32 != members)
            .fold(0_u32, |all, lane| all | 1 << lane);
        if others != 0 {
            warp.split(group, others);
        }
        let strangers = active & !others & !members;
        if strangers != 0 {
            return Err((
                strangers.trailing_zeros(),
                Fault::NotMember {
                    lane: strangers.trailing_zeros(),
                    mask: members,
                },
            ));
        }
        Ok((group, members))
    }

    fn shuffle(
        &mut self,
        cta: &CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::Shuffle {
            mode,
            dst,
            pred,
            value,
            lane: selector,
            clamp,
            ..
        } = &inst.op
        else {
            unreachable!("called for shuffles only")
        };
        let known = self.fetch(cta, warp, *value, active, 0)?;
        for (slot, source) in [(1, *selector), (2, *clamp)] {
            let defined = self.fetch(cta, warp, source, active, slot)?;
            self.require(source, active, defined)?;
        }
        let (mut defined, mut in_range) = (0, 0);
        for lane in lanes(active) {
            let by = self.operands[1][lane as usize] as u32 & 31;
            let control = self.operands[2][lane as usize] as u32;
            let (bound, segment) = (control & 31, control >> 8 & 31);
            let highest = (lane & segment) | (bound & !segment);
            let lowest = lane & segment;
            let (source, inside) = match mode {
                ShuffleMode::Up => {
                    let source = lane as i32 - by as i32;
                    // The bound of `up` is a lower one.
                    (source as u32, source >= highest as i32)
                }
                ShuffleMode::Down => (lane + by, lane + by <= highest),
                ShuffleMode::Butterfly => (lane ^ by, lane ^ by <= highest),
                ShuffleMode::Index => {
                    let source = lowest | (by & !segment);
                    (source, source <= highest)
                }
            };
            let source = if inside { source } else { lane };
            if active >> source & 1 == 0 {
                return Err((lane, Fault::InactiveLane { lane: source }));
            }
            warp.set(*dst, lane, self.operands[0][source as usize]);
            defined |= (known >> source & 1) << lane;
            in_range |= u32::from(inside) << lane;
        }
        warp.define(*dst, active, defined);
        if let Some(pred) = pred {
            warp.set_predicate(*pred, active, in_range, u32::MAX);
        }
        Ok(())
    }
}

fn reduce(op: ReduxOp, ty: Type, nan: bool, a: u64, b: u64) -> u64 {
    if ty.is_f32() {
        let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let result = match (op, nan) {
            (ReduxOp::Min, false) => num::min(a, b),
            (ReduxOp::Min, true) => num::min_nan(a, b),
            (_, false) => num::max(a, b),
            (_, true) => num::max_nan(a, b),
        };
        return u64::from(result.to_bits());
    }
    match op {
        ReduxOp::Add => a.wrapping_add(b),
        ReduxOp::And => a & b,
        ReduxOp::Or => a | b,
        ReduxOp::Xor => a ^ b,
        ReduxOp::Min if ty.is_signed() => signed(a, 32).min(signed(b, 32)) as u64,
        ReduxOp::Max if ty.is_signed() => signed(a, 32).max(signed(b, 32)) as u64,
        ReduxOp::Min => a.min(b),
        ReduxOp::Max => a.max(b),
    }
}
