//! Hyperbolic functions.

use std::f64::consts::LOG2_E;

use super::exponential::{Power, half_exp, parts, quarter_exp};
use super::expr::X;
use super::tables::{SINH, TANH};
use crate::ir::ops::TileOp;

/// `h` with `sign / (4 h)`, which is added, where h is half the power of e of a number that is not negative.
fn with_inverse(a: X<'_>, sign: f64) -> X<'_> {
    let formula = a.formula();
    if !formula.is_double() {
        // From there on it is infinite.
        let quarter = quarter_exp(a.clamped(0.0, 89.7));
        return quarter
            .op(TileOp::RcpFtz)
            .fma(sign * 0.125, quarter + quarter);
    }
    let Power { power, lost, k } = parts(a, None);
    let scale = (k - 1).power_of_two();
    let half = power * scale;
    let near = half + half.reciprocal().fma(sign * 0.25, lost * scale);
    let (half, lost) = half_exp(a);
    let far = half + (formula.number(sign * 0.25).over(half) + lost);
    a.is_beyond(708.0).select(far, near)
}

/// A polynomial up to 1; above, `h - 1 / (4 h)` with h half the power of e.
pub(super) fn sinh(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let square = a * a;
    let small = (square.polynomial(&SINH) * square).fma(a, a);
    // NaN is not below 1.
    let large = with_inverse(a, -1.0);
    a.lt(1.0).select(small, large).with_sign_of(x)
}

/// `h + 1 / (4 h)` with h half the power of e.
pub(super) fn cosh(x: X<'_>) -> X<'_> {
    with_inverse(x.abs(), 1.0)
}

/// A polynomial near 0, else `1 - 2 / (e^(2 |x|) + 1)`. In f32 the power and the reciprocal are the machine's, which overflow to
/// infinity and 0, and give NaN for NaN, which is not below any limit.
pub(super) fn tanh(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let square = a * a;
    let small = (square.polynomial(&TANH) * square).fma(a, a);
    if !formula.is_double() {
        let power = (a * (2.0 * LOG2_E)).op(TileOp::Exp2);
        let large = (power + 1.0).op(TileOp::RcpFtz).fma(-2.0, 1.0);
        return a.lt(0.6).select(small, large).with_sign_of(x);
    }
    // 1 from 20 on.
    let near = a.min(20.0);
    let Power { power, k, .. } = parts(near + near, None);
    let sum = power.fma(k.power_of_two(), 1.0);
    let large = formula.number(1.0) - formula.number(2.0).over(sum);
    let y = a.lt(1.0).select(small, large);
    x.is_nan().select(x, y).with_sign_of(x)
}
