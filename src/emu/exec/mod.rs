//! Executing one instruction for one group of lanes.
//!
//! Operands are read into arrays of 32 first; a lane function then runs for each lane that the
//! guard leaves. Beside values, "holds a defined value" is computed for each lane: a result is
//! defined if all operands are.

/// A pattern for the instructions that a whole warp executes together.
macro_rules! of_whole_warp {
    () => {
        Op::LoadMatrices { .. }
            | Op::StoreMatrices { .. }
            | Op::TurnMatrix { .. }
            | Op::Multiply { .. }
            | Op::GroupProduct(_)
            | Op::GroupFence
            | Op::GroupCommit
            | Op::GroupWait { .. }
            | Op::Registers { .. }
    };
}

/// A pattern for those that the lanes of a mask execute together.
macro_rules! of_members {
    ($mask:pat) => {
        Op::Shuffle { mask: $mask, .. }
            | Op::Vote { mask: $mask, .. }
            | Op::Match { mask: $mask, .. }
            | Op::Redux { mask: $mask, .. }
            | Op::Elect { mask: $mask, .. }
            | Op::WarpBarrier { mask: $mask }
    };
}

/// A pattern for all that lanes execute together, which `step` does.
macro_rules! of_lanes_together {
    () => {
        Op::Phase { .. }
            | Op::Barrier { .. }
            | Op::ClusterArrive { .. }
            | Op::ClusterWait { .. }
            | of_whole_warp!()
            | of_members!(_)
    };
}

mod access;
mod atomic;
mod barrier;
mod bulk;
mod cluster;
mod completion;
mod copy;
mod cost;
mod descriptor;
mod hint;
mod matrix;
mod mbarrier;
mod mbarrier_arrival;
mod plain_access;
mod product;
mod remote;
mod tensor;
mod warp_primitives;
mod warpgroup;

use super::error::{Fault, Space};
use super::inst::{BoolOp, Dst, Inst, Op, PredSrc, Special, Src};
use super::race::{Observer, lanes};
use super::sched::{CtaState, Machine, StepResult, Trouble};
use super::warp::{State, Warp};

impl Warp {
    /// Writes a lane of a destination.
    #[inline]
    pub(super) fn set(&mut self, dst: Dst, lane: u32, value: u64) {
        if dst.reg != Dst::SINK {
            self.registers[dst.reg as usize][lane as usize] = value & dst.mask;
        }
    }

    /// Records in which lanes of `mask` a destination holds a defined value now.
    #[inline]
    pub(super) fn define(&mut self, dst: Dst, mask: u32, defined: u32) {
        if dst.reg != Dst::SINK {
            let old = &mut self.defined[dst.reg as usize];
            *old = *old & !mask | defined & mask;
        }
    }

    /// Writes the lanes of `mask` of a predicate.
    #[inline]
    pub(super) fn set_predicate(&mut self, index: u32, mask: u32, value: u32, defined: u32) {
        let index = index as usize;
        self.predicates[index] = self.predicates[index] & !mask | value & mask;
        self.predicates_defined[index] = self.predicates_defined[index] & !mask | defined & mask;
    }

    /// A predicate operand as lanes in which it holds and lanes in which it is defined.
    #[inline]
    pub(super) fn predicate(&self, source: PredSrc) -> (u32, u32) {
        match source {
            PredSrc::Const(true) => (u32::MAX, u32::MAX),
            PredSrc::Const(false) => (0, u32::MAX),
            PredSrc::Reg { index, negated } => {
                let value = self.predicates[index as usize];
                (
                    if negated { !value } else { value },
                    self.predicates_defined[index as usize],
                )
            }
        }
    }
}

impl Machine<'_> {
    /// Executes the next instruction of a group.
    pub(super) fn step(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        group: usize,
    ) -> Result<StepResult, Trouble> {
        let entry = self.entry;
        let here = warp.groups[group];
        let Some(inst) = entry.code.get(here.pc as usize) else {
            // Falling off the end ends a thread as `ret` does.
            warp.exit(group, here.mask);
            return Ok(StepResult::Stop);
        };
        let active = match inst.guard {
            None => here.mask,
            Some(guard) => {
                let (holds, defined) = warp.predicate(guard);
                self.require_predicate(guard, here.mask, defined)?;
                holds & here.mask
            }
        };
        if let Some(profile) = &mut self.profile {
            profile.enter(inst.line, self.stats);
        }
        self.stats.warp_instructions += 1;
        self.stats.lane_instructions += u64::from(active.count_ones());
        if let Some(flight) = &mut warp.flight
            && active != 0
            && !matches!(inst.op, Op::GroupProduct(_))
        {
            let touched = flight.touch(&inst.registers, inst.line);
            touched.map_err(|refused| self.refusal(active, refused))?;
        }
        match inst.op {
            Op::Branch { target, uniform } => {
                return self.branch(warp, group, active, target, uniform);
            }
            _ if active == 0 => {
                warp.groups[group].pc += 1;
                return Ok(StepResult::Continue);
            }
            Op::Exit => {
                warp.groups[group].pc += 1;
                warp.exit(group, active);
                return Ok(StepResult::Stop);
            }
            Op::Trap => return Err((active.trailing_zeros(), Fault::Trap)),
            Op::Unsupported => {
                return Err((
                    active.trailing_zeros(),
                    Fault::Unsupported(inst.opcode.to_string()),
                ));
            }
            of_lanes_together!() => {
                let mut group = group;
                if active != here.mask {
                    // The lanes that skip the instruction go on by themselves.
                    let skipping = group;
                    group = warp.split(skipping, active);
                    warp.groups[skipping].pc += 1;
                }
                if let Op::Phase { .. } = inst.op {
                    return self.phase(cta, warp, group, inst);
                }
                return self.collective(cta, warp, group, inst);
            }
            _ => {}
        }
        self.compute(cta, warp, active, inst)?;
        warp.groups[group].pc += 1;
        Ok(StepResult::Continue)
    }

    fn branch(
        &mut self,
        warp: &mut Warp,
        group: usize,
        taken: u32,
        target: u32,
        uniform: bool,
    ) -> Result<StepResult, Trouble> {
        let all = warp.groups[group].mask;
        if taken == all {
            warp.groups[group].pc = target;
        } else if taken == 0 {
            warp.groups[group].pc += 1;
        } else if uniform {
            return Err((taken.trailing_zeros(), Fault::DivergentUniform));
        } else {
            let other = warp.split(group, taken);
            warp.groups[other].pc = target;
            warp.groups[group].pc += 1;
            debug_assert_eq!(warp.groups[other].state, State::Ready);
            return Ok(StepResult::Stop);
        }
        Ok(StepResult::Continue)
    }

    /// Faults if a predicate is not defined in a lane of `mask` and that is to be checked.
    pub(super) fn require_predicate(
        &self,
        source: PredSrc,
        mask: u32,
        defined: u32,
    ) -> Result<(), Trouble> {
        let missing = mask & !defined;
        match source {
            PredSrc::Reg { index, .. } if missing != 0 && self.options.check_uninit => {
                let name = self.entry.registers.name(index, true);
                Err((missing.trailing_zeros(), Fault::UnwrittenRegister { name }))
            }
            _ => Ok(()),
        }
    }

    /// Faults if an operand is not defined in a lane of `mask` and that is to be checked.
    pub(super) fn require(&self, source: Src, mask: u32, defined: u32) -> Result<(), Trouble> {
        let missing = mask & !defined;
        match source {
            Src::Reg(index) if missing != 0 && self.options.check_uninit => {
                let name = self.entry.registers.name(index, false);
                Err((missing.trailing_zeros(), Fault::UnwrittenRegister { name }))
            }
            _ => Ok(()),
        }
    }

    /// Reads an operand into slot `slot` of the operand arrays; the lanes in which it is defined.
    #[inline]
    pub(super) fn fetch(
        &mut self,
        cta: &CtaState,
        warp: &Warp,
        source: Src,
        mask: u32,
        slot: usize,
    ) -> Result<u32, Trouble> {
        match source {
            Src::Reg(index) => {
                self.operands[slot] = warp.registers[index as usize];
                let defined = warp.defined[index as usize];
                if self.options.strict_registers {
                    self.require(source, mask, defined)?;
                }
                return Ok(defined);
            }
            Src::Imm(value) => self.operands[slot] = [value; 32],
            Src::Variable(index, offset) => {
                self.operands[slot] =
                    [self.variables[index as usize].wrapping_add_signed(offset); 32];
            }
            Src::Special(special) => {
                for lane in 0..32 {
                    self.operands[slot][lane as usize] = self.special(cta, warp, special, lane);
                }
            }
        }
        Ok(u32::MAX)
    }

    fn special(&self, cta: &CtaState, warp: &Warp, special: Special, lane: u32) -> u64 {
        u64::from(match special {
            Special::Tid(part) => self.thread(warp.index, lane)[usize::from(part)],
            Special::Ntid(part) => self.block[usize::from(part)],
            Special::Ctaid(part) => cta.index[usize::from(part)],
            Special::Nctaid(part) => self.grid[usize::from(part)],
            Special::LaneId => lane,
            Special::WarpId => warp.index,
            Special::WarpCount => self.warps(),
            // Work is spread over as many multiprocessors as CTAs are resident.
            Special::SmId => cta.index[0] % self.options.resident_ctas.max(1),
            Special::SmCount => self.options.resident_ctas.max(1),
            // Time passes with the instructions executed.
            Special::Clock | Special::Time => return self.stats.warp_instructions,
            Special::DynamicShared => self.dynamic_shared,
            Special::TotalShared => self.entry.dynamic_start + self.dynamic_shared,
            Special::MaskEq => 1 << lane,
            Special::MaskLt => (1 << lane) - 1,
            Special::MaskLe => u32::MAX >> (31 - lane),
            Special::MaskGt => !(u32::MAX >> (31 - lane)),
            Special::MaskGe => !((1 << lane) - 1),
            Special::ClusterId(part) => {
                let part = usize::from(part);
                cta.index[part] / self.cluster[part]
            }
            Special::ClusterCount(part) => {
                let part = usize::from(part);
                self.grid[part] / self.cluster[part]
            }
            Special::ClusterCta(part) => {
                let part = usize::from(part);
                cta.index[part] % self.cluster[part]
            }
            Special::ClusterShape(part) => self.cluster[usize::from(part)],
            Special::ClusterRank => cta.rank,
            Special::ClusterSize => self.cluster.iter().product(),
            Special::Constant(value) => value,
        })
    }

    fn compute(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        match &inst.op {
            Op::Lane {
                f,
                mods,
                dst,
                src,
                count,
                packed,
            } => {
                let mut defined = u32::MAX;
                for (slot, &source) in src[..usize::from(*count)].iter().enumerate() {
                    defined &= self.fetch(cta, warp, source, active, slot)?;
                }
                if dst.reg == Dst::SINK {
                    return Ok(());
                }
                let [a, b, c, d] = &*self.operands;
                let out = &mut warp.registers[dst.reg as usize];
                for lane in 0..32 {
                    if active >> lane & 1 == 0 {
                        continue;
                    }
                    let operands = [a[lane], b[lane], c[lane], d[lane]];
                    let value = if *packed {
                        let (bits, half) = (mods.ty.bits, super::decode::mask(mods.ty.bits));
                        let low = f(mods, &operands.map(|x| x & half)) & half;
                        (f(mods, &operands.map(|x| x >> bits & half)) << bits) | low
                    } else {
                        f(mods, &operands)
                    };
                    out[lane] = value & dst.mask;
                }
                warp.define(*dst, active, defined);
            }
            Op::Select { dst, a, b, pred } => {
                let a_defined = self.fetch(cta, warp, *a, active, 0)?;
                let b_defined = self.fetch(cta, warp, *b, active, 1)?;
                let (holds, known) = warp.predicate(*pred);
                if self.options.strict_registers {
                    self.require_predicate(*pred, active, known)?;
                }
                for lane in lanes(active) {
                    let slot = usize::from(holds >> lane & 1 == 0);
                    warp.set(*dst, lane, self.operands[slot][lane as usize]);
                }
                warp.define(
                    *dst,
                    active,
                    known & (holds & a_defined | !holds & b_defined),
                );
            }
            Op::Compare {
                f,
                mods,
                p,
                q,
                a,
                b,
                combine,
            } => {
                let mut defined = self.fetch(cta, warp, *a, active, 0)?;
                defined &= self.fetch(cta, warp, *b, active, 1)?;
                let (mut low, mut high) = (0, 0);
                for lane in lanes(active) {
                    let (x, y) = (
                        self.operands[0][lane as usize],
                        self.operands[1][lane as usize],
                    );
                    if mods.ty.packed {
                        low |= u32::from(f(mods, x & 0xffff, y & 0xffff)) << lane;
                        high |= u32::from(f(mods, x >> 16, y >> 16)) << lane;
                    } else {
                        low |= u32::from(f(mods, x, y)) << lane;
                    }
                }
                if !mods.ty.packed {
                    high = !low;
                }
                if let Some((op, pred)) = combine {
                    let (other, known) = warp.predicate(*pred);
                    defined &= known;
                    low = apply(*op, low, other);
                    high = apply(*op, high, other);
                }
                for (dst, value) in [(p, low), (q, high)] {
                    if let Some(dst) = dst {
                        warp.set_predicate(*dst, active, value, defined);
                    }
                }
            }
            Op::Set {
                f,
                mods,
                dst,
                one,
                a,
                b,
                combine,
            } => {
                let mut defined = self.fetch(cta, warp, *a, active, 0)?;
                defined &= self.fetch(cta, warp, *b, active, 1)?;
                let mut holds = 0;
                for lane in lanes(active) {
                    let (x, y) = (
                        self.operands[0][lane as usize],
                        self.operands[1][lane as usize],
                    );
                    holds |= u32::from(f(mods, x, y)) << lane;
                }
                if let Some((op, pred)) = combine {
                    let (other, known) = warp.predicate(*pred);
                    defined &= known;
                    holds = apply(*op, holds, other);
                }
                for lane in lanes(active) {
                    warp.set(*dst, lane, if holds >> lane & 1 == 1 { *one } else { 0 });
                }
                warp.define(*dst, active, defined);
            }
            Op::Logic { op, dst, a, b } => {
                let ((a, a_known), (b, b_known)) = (warp.predicate(*a), warp.predicate(*b));
                // A false side settles `and`, a true side settles `or`, whatever the other holds.
                let settled = match op {
                    BoolOp::And => (!a & a_known) | (!b & b_known),
                    BoolOp::Or => (a & a_known) | (b & b_known),
                    BoolOp::Xor => 0,
                };
                warp.set_predicate(
                    *dst,
                    active,
                    apply(*op, a, b),
                    (a_known & b_known) | settled,
                );
            }
            Op::Carry {
                subtract,
                carry_in,
                carry_out,
                bits,
                dst,
                a,
                b,
            } => {
                let mut defined = self.fetch(cta, warp, *a, active, 0)?;
                defined &= self.fetch(cta, warp, *b, active, 1)?;
                for lane in lanes(active) {
                    let (x, y) = (
                        self.operands[0][lane as usize],
                        self.operands[1][lane as usize],
                    );
                    let flag = u128::from(*carry_in && warp.carry >> lane & 1 == 1);
                    let (x, y) = (u128::from(x), u128::from(y));
                    // A borrow shows in the bit above, too.
                    let sum = if *subtract {
                        x.wrapping_sub(y).wrapping_sub(flag)
                    } else {
                        x + y + flag
                    };
                    if *carry_out {
                        warp.carry = warp.carry & !(1 << lane) | ((sum >> bits & 1) as u32) << lane;
                    }
                    warp.set(*dst, lane, sum as u64);
                }
                warp.define(*dst, active, defined);
            }
            Op::Pack { dst, parts, bits } => {
                let mut words = [0_u64; 32];
                let mut defined = u32::MAX;
                for (index, &part) in parts.iter().enumerate() {
                    defined &= self.fetch(cta, warp, part, active, 0)?;
                    for (word, &value) in words.iter_mut().zip(&self.operands[0]) {
                        *word |= (value & super::decode::mask(*bits)) << (*bits * index as u32);
                    }
                }
                for lane in lanes(active) {
                    warp.set(*dst, lane, words[lane as usize]);
                }
                warp.define(*dst, active, defined);
            }
            Op::Unpack { dsts, src, bits } => {
                let defined = self.fetch(cta, warp, *src, active, 0)?;
                for (index, &dst) in dsts.iter().enumerate() {
                    for lane in lanes(active) {
                        let value = self.operands[0][lane as usize] >> (*bits * index as u32);
                        warp.set(dst, lane, value & super::decode::mask(*bits));
                    }
                    warp.define(dst, active, defined);
                }
            }
            Op::MapAddress { .. } => self.map_address(cta, warp, active, inst)?,
            Op::ActiveMask { dst } => {
                for lane in lanes(active) {
                    warp.set(*dst, lane, u64::from(active));
                }
                warp.define(*dst, active, u32::MAX);
            }
            Op::Fence { scope } => {
                if self.options.check_races {
                    let scope = self.scope(*scope, Space::Global);
                    for lane in lanes(active) {
                        warp.clock.fence(lane, scope, &mut self.now);
                    }
                }
            }
            Op::Load {
                address,
                ty,
                dsts,
                order,
            } => {
                self.load(cta, warp, active, inst.line, *address, *ty, dsts, *order)?;
            }
            Op::Store {
                address,
                ty,
                src,
                order,
            } => {
                self.store(cta, warp, active, inst.line, *address, *ty, src, *order)?;
            }
            Op::Atomic { .. } => self.atomic(cta, warp, active, inst)?,
            Op::Nop => {}
            Op::Copy { .. } => self.start_copies(cta, warp, active, inst)?,
            Op::CopyCommit => {
                for lane in lanes(active) {
                    warp.commits[lane as usize] += 1;
                }
            }
            Op::CopyWait { pending } => self.finish_copies(cta, warp, active, *pending)?,
            Op::CopyArrive { .. } => self.copy_arrive(cta, warp, active, inst)?,
            Op::Bulk(bulk) => self.start_bulk(cta, warp, active, inst, bulk)?,
            Op::Remote(remote) => self.start_remote(cta, warp, active, inst, remote)?,
            Op::Hint(hint) => self.hint(cta, warp, active, inst, hint)?,
            Op::BulkCommit => {
                for lane in lanes(active) {
                    warp.bulk_commits[lane as usize] += 1;
                }
            }
            Op::BulkWait { pending, reads } => {
                self.finish_bulk(cta, warp, active, *pending, *reads)?;
            }
            Op::ProxyFence { views } => {
                if self.options.check_races {
                    let all = warp.exists & !warp.exited;
                    if views[..] == [Observer::Barriers] {
                        warp.clock.fence_initialised(active, self.now);
                    }
                    warp.clock.fence_views(active, all, views, &mut self.now);
                }
            }
            Op::ReplaceMap { .. } => self.replace_map(cta, warp, active, inst)?,
            Op::Branch { .. } | Op::Exit | Op::Trap | Op::Unsupported | of_lanes_together!() => {
                unreachable!("handled by `step`")
            }
        }
        Ok(())
    }
}

fn apply(op: BoolOp, a: u32, b: u32) -> u32 {
    match op {
        BoolOp::And => a & b,
        BoolOp::Or => a | b,
        BoolOp::Xor => a ^ b,
    }
}
