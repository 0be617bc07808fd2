//! Atomic operations.

use super::super::error::{Fault, Space};
use super::super::inst::{AtomicOp, Inst, Op};
use super::super::lane::integer::{signed, unsigned};
use super::super::race::{CheckedAccess, Strong, lanes, scope_bits};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::types::{Type, TypeKind};
use super::super::warp::Warp;
use crate::num::{self, Rounding, bf16, f16};

impl Machine<'_> {
    pub(super) fn atomic(
        &mut self,
        cta: &mut CtaState,
        warp: &mut Warp,
        active: u32,
        inst: &Inst,
    ) -> Result<(), Trouble> {
        let Op::Atomic {
            address,
            op,
            ty,
            dsts,
            src,
            compare,
            order,
        } = &inst.op
        else {
            unreachable!("called for atomics only")
        };
        self.effects += 1;
        let element = ty.bytes() as usize;
        let bytes = ty.bytes() * src.len() as u32;
        let mut values = [[0_u64; 32]; 8];
        for (index, &source) in src.iter().enumerate() {
            let defined = self.fetch(cta, warp, source, active, 0)?;
            self.require(source, active, defined)?;
            values[index] = self.operands[0];
        }
        let defined = self.fetch(cta, warp, *compare, active, 0)?;
        self.require(*compare, active, defined)?;
        let wanted = self.operands[0];
        self.addresses(cta, warp, active, *address)?;
        self.count_access(active, address.space, bytes);
        for lane in lanes(active) {
            let place = self.locate(
                cta,
                warp,
                lane,
                address.space,
                self.operands[3][lane as usize],
                bytes,
            )?;
            if !matches!(place.space, Space::Global | Space::Shared | Space::Cluster) {
                return Err((lane, Fault::ReadOnly { space: place.space }));
            }
            let check_uninit = self.options.check_uninit;
            let region = self.region(cta, warp, lane, place);
            if check_uninit && !region.is_written(place.offset, bytes as usize) {
                return Err(place.uninitialised(lane, bytes));
            }
            let mut old = [0; 8];
            // A comparison that fails writes nothing.
            let mut wrote = true;
            for (index, values) in values[..src.len()].iter().enumerate() {
                let offset = place.offset + index * element;
                old[index] = region.load(offset, element);
                // f32 sums in global memory flush subnormals, those in shared memory do not.
                let ftz = place.space == Space::Global && ty.is_f32();
                wrote &= *op != AtomicOp::CompareSwap
                    || unsigned(old[index], ty.bits) == unsigned(wanted[lane as usize], ty.bits);
                let new = modify(
                    *op,
                    *ty,
                    ftz,
                    old[index],
                    values[lane as usize],
                    wanted[lane as usize],
                );
                region.store(offset, element, new);
            }
            region.mark(place.offset, bytes as usize, true);
            if self.options.check_races {
                let scope = self.scope(order.scope, place.space);
                let access = CheckedAccess {
                    lane,
                    line: inst.line | scope_bits(scope),
                    read: true,
                    write: wrote,
                    strong: true,
                    same_value: false,
                };
                let strong = Strong {
                    read: true,
                    write: wrote,
                    acquire: order.acquire,
                    release: order.release,
                    scope,
                };
                self.synchronise(cta, warp, lane, place, strong);
                self.check_race(cta, warp, place, bytes, access)?;
            }
            for (&dst, &value) in dsts.iter().zip(&old) {
                warp.set(dst, lane, value);
            }
        }
        for &dst in dsts {
            warp.define(dst, active, u32::MAX);
        }
        Ok(())
    }
}

/// The value that an atomic operation leaves.
pub(super) fn modify(op: AtomicOp, ty: Type, ftz: bool, old: u64, value: u64, compare: u64) -> u64 {
    if ty.packed {
        let half = Type {
            packed: false,
            ..ty
        };
        let part = |shift: u32| {
            modify(
                op,
                half,
                ftz,
                old >> shift & 0xffff,
                value >> shift & 0xffff,
                0,
            ) & 0xffff
        };
        return part(16) << 16 | part(0);
    }
    let bits = ty.bits;
    match op {
        AtomicOp::Add if ty.is_f32() => {
            let flush = |x: f32| if ftz { num::ftz(x) } else { x };
            let (a, b) = (
                flush(f32::from_bits(old as u32)),
                flush(f32::from_bits(value as u32)),
            );
            u64::from(flush(num::add(a, b, Rounding::NearestEven)).to_bits())
        }
        AtomicOp::Add if ty.is_f64() => {
            num::canonical64(f64::from_bits(old) + f64::from_bits(value)).to_bits()
        }
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max if ty.is_half() => {
            let (a, b) = (old as u16, value as u16);
            u64::from(match (ty.kind, op) {
                (TypeKind::Bfloat, AtomicOp::Add) => bf16::add(a, b),
                (TypeKind::Bfloat, AtomicOp::Min) => bf16::min(a, b),
                (TypeKind::Bfloat, _) => bf16::max(a, b),
                (_, AtomicOp::Add) => f16::add(a, b),
                (_, AtomicOp::Min) => f16::min(a, b),
                _ => f16::max(a, b),
            })
        }
        AtomicOp::Add => old.wrapping_add(value),
        AtomicOp::Min if ty.is_signed() => signed(old, bits).min(signed(value, bits)) as u64,
        AtomicOp::Max if ty.is_signed() => signed(old, bits).max(signed(value, bits)) as u64,
        AtomicOp::Min => old.min(unsigned(value, bits)),
        AtomicOp::Max => old.max(unsigned(value, bits)),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Exchange => value,
        AtomicOp::CompareSwap => {
            if unsigned(old, bits) == unsigned(compare, bits) {
                value
            } else {
                old
            }
        }
        AtomicOp::Increment => {
            if old >= unsigned(value, bits) {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Decrement => {
            let limit = unsigned(value, bits);
            if old == 0 || old > limit {
                limit
            } else {
                old - 1
            }
        }
    }
}
