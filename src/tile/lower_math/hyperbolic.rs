//! Hyperbolic functions.

use super::exponential::{Power, half_exp, parts};
use super::expr::X;
use super::tables::{LOG2_E_HI, SINH, TANH};
use crate::ir::ops::TileOp;

/// A polynomial up to 1; above, `h - 1 / (4 h)` with h half the power of e.
pub(super) fn sinh(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let square = a * a;
    let small = (square.polynomial(&SINH) * square).fma(a, a);
    let (half, lost) = half_exp(a);
    let large = half - (x.formula().number(0.25).over(half) - lost);
    // NaN is not below 1.
    a.lt(1.0).select(small, large).with_sign_of(x)
}

/// `h + 1 / (4 h)` with h half the power of e.
pub(super) fn cosh(x: X<'_>) -> X<'_> {
    let (half, lost) = half_exp(x.abs());
    half + (x.formula().number(0.25).over(half) + lost)
}

/// A polynomial near 0, else `1 - 2 / (e^(2 |x|) + 1)`. In f32 the power and the reciprocal are the machine's, which overflow to
/// infinity and 0.
pub(super) fn tanh(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let square = a * a;
    let small = (square.polynomial(&TANH) * square).fma(a, a);
    let (large, limit) = if formula.is_double() {
        // 1 from 20 on.
        let a = a.min(20.0);
        let Power { power, k, .. } = parts(a + a, None);
        let shift = i64::from(formula.mantissa_bits());
        let scale = ((k + formula.bias()) << shift).float();
        let sum = power.fma(scale, 1.0);
        let rest = formula.number(2.0).over(sum);
        (formula.number(1.0) - rest, 1.0)
    } else {
        let power = ((a * LOG2_E_HI) * 2.0).op(TileOp::Exp2);
        let reciprocal = (power + 1.0).op(TileOp::Rcp);
        (reciprocal.fma(-2.0, 1.0), 0.6)
    };
    let y = a.lt(limit).select(small, large);
    let y = x.is_nan().select(x, y);
    y.with_sign_of(x)
}
