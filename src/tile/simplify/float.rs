//! Floating-point arithmetic: only what holds for signed zeros, infinities, NaN and subnormal numbers too.

use super::{Rewrite, Simplifier};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;

/// Exact value of the second operand.
fn right(s: &Simplifier<'_, '_>, inst: Inst) -> Option<f64> {
    number(s, s.arg(inst, 1))
}

fn number(s: &Simplifier<'_, '_>, value: Value) -> Option<f64> {
    let (bits, elem) = s.known(value)?;
    elem.scalar()?.format().map(|format| format.to_f64(bits))
}

fn negated(s: &Simplifier<'_, '_>, value: Value) -> Option<Value> {
    s.edit.operand_of(value, TileOp::Fneg, 0)
}

/// The left operand, where that is what the instruction gives. Of `f8e5m2` it is not: results saturate, and an operand may be
/// an infinity.
fn left(s: &Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    gives_infinities(s, inst).then(|| Rewrite::Value(s.arg(inst, 0)))
}

/// Whether an infinite operand may become an infinite result.
fn gives_infinities(s: &Simplifier<'_, '_>, inst: Inst) -> bool {
    s.edit.ty(s.arg(inst, 0)).elem.scalar() != Some(Scalar::F8E5M2)
}

/// The smaller or larger of a number and itself is that number.
pub(super) fn same_operands(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    (s.arg(inst, 0) == s.arg(inst, 1)).then_some(())?;
    left(s, inst)
}

/// A constant on the left of a sum or product goes to the right.
pub(super) fn constant_right(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    super::int::constant_right(s, inst)
}

/// `x + -0` is `x`; `x + 0` is not, if `x` is -0.
pub(super) fn add_nothing(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    if c == 0.0 && c.is_sign_negative() {
        left(s, inst)
    } else {
        None
    }
}

/// `x - 0` is `x`; `x - -0` is not, if `x` is -0.
pub(super) fn subtract_nothing(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    if c == 0.0 && c.is_sign_positive() {
        left(s, inst)
    } else {
        None
    }
}

/// `x + -y` is `x - y`.
pub(super) fn add_negated(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (a, b) = (s.arg(inst, 0), s.arg(inst, 1));
    let (x, y) = match (negated(s, a), negated(s, b)) {
        (_, Some(y)) => (a, y),
        (Some(y), None) => (b, y),
        (None, None) => return None,
    };
    Some(Rewrite::Value(s.op(TileOp::Fsub, &[x, y])))
}

/// `x - -y` is `x + y`.
pub(super) fn subtract_negated(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, y) = (s.arg(inst, 0), negated(s, s.arg(inst, 1))?);
    Some(Rewrite::Value(s.op(TileOp::Fadd, &[x, y])))
}

/// `x * 1` is `x` and `x * -1` is `-x`.
pub(super) fn multiply_by_one(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    let x = s.arg(inst, 0);
    if c == 1.0 {
        left(s, inst)
    } else if c == -1.0 && gives_infinities(s, inst) {
        Some(Rewrite::Value(s.op(TileOp::Fneg, &[x])))
    } else {
        None
    }
}

/// `-x * -y` is `x * y`.
pub(super) fn multiply_negated(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let x = negated(s, s.arg(inst, 0))?;
    let y = negated(s, s.arg(inst, 1))?;
    Some(Rewrite::Value(s.op(TileOp::Fmul, &[x, y])))
}

/// `-x * c` is `x * -c`.
pub(super) fn multiply_negated_by_constant(
    s: &mut Simplifier<'_, '_>,
    inst: Inst,
) -> Option<Rewrite> {
    let ty = s.result_ty(inst);
    let x = negated(s, s.arg(inst, 0))?;
    let (c, _) = s.known(s.arg(inst, 1))?;
    let sign = 1 << (ty.elem.scalar()?.bits() - 1);
    let c = s.constant(c ^ sign, ty);
    Some(Rewrite::Value(s.op(TileOp::Fmul, &[x, c])))
}

/// `x / 1` is `x`.
pub(super) fn divide_by_one(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if right(s, inst)? == 1.0 {
        left(s, inst)
    } else {
        None
    }
}

/// The quotient within 2 ulp by a constant is a product: with a normal reciprocal of 24 bits rounded once, the error is
/// at most 1 ulp from the reciprocal and 0.5 from the product.
pub(super) fn divide_by_constant(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)? as f32;
    multiply_by(s, inst, f64::from(1.0 / c))
}

/// A quotient by 2^k is the product with 2^-k, rounded likewise.
pub(super) fn divide_by_power(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let c = right(s, inst)?;
    let is_power = c.to_bits() << 12 == 0 && c.is_normal();
    is_power.then_some(())?;
    multiply_by(s, inst, 1.0 / c)
}

/// The product with a number that is normal in the format, as is its reciprocal.
fn multiply_by(s: &mut Simplifier<'_, '_>, inst: Inst, factor: f64) -> Option<Rewrite> {
    let ty = s.result_ty(inst);
    let (bits, normal) = match ty.elem.scalar()? {
        Scalar::F32 => {
            let narrow = factor as f32;
            let divisor = right(s, inst)? as f32;
            let normal = narrow.is_normal() && divisor.is_normal();
            (u64::from(narrow.to_bits()), normal)
        }
        Scalar::F64 => (factor.to_bits(), factor.is_normal()),
        _ => return None,
    };
    if !normal {
        return None;
    }
    let factor = s.constant(bits, ty);
    let x = s.arg(inst, 0);
    Some(Rewrite::Value(s.op(TileOp::Fmul, &[x, factor])))
}

/// `--x` is `x`.
pub(super) fn negate_negated(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    negated(s, s.arg(inst, 0)).map(Rewrite::Value)
}

/// `|-x|` and `||x||` are `|x|`.
pub(super) fn absolute_of_signed(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let a = s.arg(inst, 0);
    if s.edit.operand_of(a, TileOp::Fabs, 0).is_some() {
        return Some(Rewrite::Value(a));
    }
    let x = negated(s, a)?;
    Some(Rewrite::Value(s.op(TileOp::Fabs, &[x])))
}
