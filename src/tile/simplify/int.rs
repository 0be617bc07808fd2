//! Integer arithmetic: identities modulo 2^bits.

use super::fold::signed;
use super::{Rewrite, Simplifier};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;

/// The number that the second operand is, as bits.
fn right(s: &Simplifier<'_, '_>, inst: Inst) -> Option<u64> {
    s.known(s.arg(inst, 1)).map(|(bits, _)| bits)
}

/// All bits of the result's type set.
fn ones(s: &Simplifier<'_, '_>, inst: Inst) -> u64 {
    s.result_ty(inst).elem.mask()
}

fn left(s: &Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    Some(Rewrite::Value(s.arg(inst, 0)))
}

/// A constant on the left of a commutative op goes to the right.
pub(super) fn constant_right(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (a, b) = (s.arg(inst, 0), s.arg(inst, 1));
    if s.known(a).is_none() || s.known(b).is_some() {
        return None;
    }
    s.swap(inst);
    Some(Rewrite::Updated)
}

/// `x + 0` is `x`.
pub(super) fn add_zero(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if right(s, inst)? == 0 {
        left(s, inst)
    } else {
        None
    }
}

/// `(x + c) + d` is `x + (c + d)`.
pub(super) fn add_constants(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    reassociate(s, inst, TileOp::Iadd, u64::wrapping_add)
}

/// `(x * c) * d` is `x * (c * d)`.
pub(super) fn multiply_constants(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    reassociate(s, inst, TileOp::Imul, u64::wrapping_mul)
}

fn reassociate(
    s: &mut Simplifier<'_, '_>,
    inst: Inst,
    op: TileOp,
    combine: fn(u64, u64) -> u64,
) -> Option<Rewrite> {
    let d = right(s, inst)?;
    let (x, c) = s.pair(s.arg(inst, 0), op)?;
    let (c, _) = s.known(c)?;
    let ty = s.result_ty(inst);
    let sum = s.constant(combine(c, d) & ones(s, inst), ty);
    Some(Rewrite::Value(s.op(op, &[x, sum])))
}

/// `(t + u) + v` with uniform `u` and `v` is `t + (u + v)`: the sum in parentheses is one of scalars.
pub(super) fn gather_uniform_terms(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (a, b) = (s.arg(inst, 0), s.arg(inst, 1));
    let (sum, v) = match (s.is_uniform(a), s.is_uniform(b)) {
        (false, true) => (a, b),
        (true, false) => (b, a),
        _ => return None,
    };
    let (x, y) = s.pair(sum, TileOp::Iadd)?;
    let (t, u) = match (s.is_uniform(x), s.is_uniform(y)) {
        (false, true) => (x, y),
        (true, false) => (y, x),
        _ => return None,
    };
    let terms = s.op(TileOp::Iadd, &[u, v]);
    Some(Rewrite::Value(s.op(TileOp::Iadd, &[t, terms])))
}

/// `x - x` is 0.
pub(super) fn subtract_itself(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    zero_if_same(s, inst)
}

/// `x ^ x` is 0.
pub(super) fn xor_itself(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    zero_if_same(s, inst)
}

fn zero_if_same(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if s.arg(inst, 0) != s.arg(inst, 1) {
        return None;
    }
    let ty = s.result_ty(inst);
    Some(Rewrite::Value(s.constant(0, ty)))
}

/// `x - c` is `x + -c`.
pub(super) fn subtract_constant(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    let ty = s.result_ty(inst);
    let negated = s.constant(c.wrapping_neg() & ones(s, inst), ty);
    let x = s.arg(inst, 0);
    Some(Rewrite::Value(s.op(TileOp::Iadd, &[x, negated])))
}

/// `x * 0` is 0, `x * 1` is `x`, and `x * 2^k` is a shift.
pub(super) fn multiply_by_constant(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    match c {
        0 => return Some(Rewrite::Value(s.arg(inst, 1))),
        1 => return left(s, inst),
        _ => {}
    }
    if !c.is_power_of_two() {
        return None;
    }
    let ty = s.result_ty(inst);
    let amount = s.constant(u64::from(c.trailing_zeros()), ty);
    let x = s.arg(inst, 0);
    Some(Rewrite::Value(s.op(TileOp::Shl, &[x, amount])))
}

/// `x / 1` is `x`.
pub(super) fn divide_by_one(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if right(s, inst)? == 1 {
        left(s, inst)
    } else {
        None
    }
}

/// The remainder by 1 is 0; by -1 too, but for the minimum, where it is unspecified.
pub(super) fn remainder_by_one(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = s.known(s.arg(inst, 1))?;
    let is_one = c.0 == 1 || (s.op_of(inst) == TileOp::Srem && signed(c) == -1);
    let ty = s.result_ty(inst);
    is_one.then(|| Rewrite::Value(s.constant(0, ty)))
}

/// Unsigned quotients and remainders by 2^k are shifts and masks.
pub(super) fn unsigned_by_power(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst).filter(|c| c.is_power_of_two())?;
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    let (op, number) = match s.op_of(inst) {
        TileOp::Udiv => (TileOp::Ushr, u64::from(c.trailing_zeros())),
        _ => (TileOp::And, c - 1),
    };
    let number = s.constant(number, ty);
    Some(Rewrite::Value(s.op(op, &[x, number])))
}

/// How many operands deep zeros at the end are looked for.
const DEPTH: u32 = 4;

/// Zeros at the end of a number, as far as shifts and factors tell; what wraps around keeps them.
fn zeros(s: &Simplifier<'_, '_>, value: Value, depth: u32) -> u32 {
    let bits = s.ty(value).elem.bits();
    if let Some((c, _)) = s.known(value) {
        return c.trailing_zeros().min(bits);
    }
    let pair = |op| s.pair(value, op).filter(|_| depth < DEPTH);
    let of = |value| zeros(s, value, depth + 1);
    let found = if let Some((x, by)) = pair(TileOp::Shl) {
        let by = s.known(by).map_or(0, |(by, _)| by.min(u64::from(bits)));
        of(x) + by as u32
    } else if let Some((x, y)) = pair(TileOp::Imul) {
        of(x) + of(y)
    } else if let Some((x, y)) = pair(TileOp::Iadd).or_else(|| pair(TileOp::Isub)) {
        of(x).min(of(y))
    } else {
        0
    };
    found.min(bits)
}

/// The signed quotient by 2^k of a number with k zeros at its end is a shift, and the remainder is 0.
pub(super) fn signed_by_power(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst).filter(|c| c.is_power_of_two())?;
    let (x, ty, k) = (s.arg(inst, 0), s.result_ty(inst), c.trailing_zeros());
    // The largest power of all is negative.
    if k + 1 >= ty.elem.bits() || zeros(s, x, 0) < k {
        return None;
    }
    if s.op_of(inst) == TileOp::Srem {
        return Some(Rewrite::Value(s.constant(0, ty)));
    }
    let number = s.constant(u64::from(k), ty);
    Some(Rewrite::Value(s.op(TileOp::Sshr, &[x, number])))
}

/// `(x >> k) << k` is `x` if that has k zeros at its end.
pub(super) fn shift_there_and_back(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let k = right(s, inst)?;
    let shifted = s.arg(inst, 0);
    let pair = s.pair(shifted, TileOp::Sshr);
    let (x, by) = pair.or_else(|| s.pair(shifted, TileOp::Ushr))?;
    let (by, _) = s.known(by)?;
    (by == k && k <= u64::from(zeros(s, x, 0))).then_some(Rewrite::Value(x))
}

/// Minimum, maximum, and, or of a value with itself.
pub(super) fn same_operands(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if s.arg(inst, 0) == s.arg(inst, 1) {
        left(s, inst)
    } else {
        None
    }
}

/// Bits combined with all zeros or all ones.
pub(super) fn neutral_bits(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    let all = ones(s, inst);
    match (s.op_of(inst), c) {
        (TileOp::And, c) if c == all => left(s, inst),
        (TileOp::Or | TileOp::Xor, 0) => left(s, inst),
        (TileOp::And, 0) => Some(Rewrite::Value(s.arg(inst, 1))),
        (TileOp::Or, c) if c == all => Some(Rewrite::Value(s.arg(inst, 1))),
        _ => None,
    }
}

/// A shift by nothing is nothing; one that shifts everything out leaves 0 (`sshr` keeps the sign).
pub(super) fn shift_by_constant(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    if c == 0 {
        return left(s, inst);
    }
    let ty = s.result_ty(inst);
    let all_out = c >= u64::from(ty.elem.bits()) && s.op_of(inst) != TileOp::Sshr;
    all_out.then(|| Rewrite::Value(s.constant(0, ty)))
}
