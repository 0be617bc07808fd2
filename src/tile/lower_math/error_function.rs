//! The error function, its complement and its inverse.
//!
//! The complement is `e^(-a^2) / (1 + 2 a)` times a function that bends little, a polynomial in `(a - 4) / (a + 4)` (after
//! M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981).

use super::exponential::{Power, parts};
use super::expr::X;
use super::logarithm::log;
use super::tables::{ERF_LARGE, ERF_SMALL, ERFC, ERFINV_LARGE, ERFINV_SMALL};
use crate::ir::ops::TileOp;

/// The complement for a number that is not negative.
fn complement(a: X<'_>) -> X<'_> {
    // Beyond, it is 0; there the square must stay finite.
    let a = a.min(a.formula().pick(10.5, 27.5));
    let square = a * a;
    let lost = a.fma(a, -square);
    let Power { power, k, .. } = parts(-square, Some(-lost));
    let t = match a.formula().is_double() {
        true => (a - 4.0).quotient(a + 4.0),
        false => (a - 4.0) * (a + 4.0).reciprocal(),
    };
    let bend = t.polynomial(&ERFC).quotient((a + a) + 1.0);
    if !a.formula().is_double() {
        return (power * bend).times_power(k);
    }
    let (small, near) = (power * bend, (power * bend).times_ordinary_power(k));
    a.is_beyond(26.0).select(small.times_power(k), near)
}

/// `1 - erf(x)`, near 0 as that difference.
pub(super) fn erfc(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let far = complement(a);
    let far = x.lt(0.0).select(formula.number(2.0) - far, far);
    let near = formula.number(1.0) - (x * x).polynomial(&ERF_SMALL).fma(x, x);
    let y = a.lt(0.75).select(near, far);
    x.is_nan().select(x, y)
}

/// A polynomial near 0, else 1 less the complement. In f32 that is a power of two by the machine, whose exponent is a
/// polynomial; 1 from 4 on.
pub(super) fn erf(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let small = (a * a).polynomial(&ERF_SMALL).fma(a, a);
    let (large, limit) = if formula.is_double() {
        (formula.number(1.0) - complement(a), 1.0)
    } else {
        let exponent = -a.polynomial(&ERF_LARGE).fma(a, a);
        let y = formula.number(1.0) - exponent.op(TileOp::Exp2);
        (a.gt(4.0).select(formula.number(1.0), y), 1.002_95)
    };
    let y = a.lt(limit).select(small, large);
    let y = x.is_nan().select(x, y);
    y.with_sign_of(x)
}

/// The inverse: below 3/4 a polynomial; above, `w` plus little, where `w^2 = -log(1 - |x|)`.
pub(super) fn erfinv(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let small = (a * a).polynomial(&ERFINV_SMALL).fma(a, a);
    let square = -log(formula.number(1.0) - a);
    let w = square.root();
    // What rounding the root cut off.
    let lost = (-w).fma(w, square).quotient(w + w);
    let large = w + ((w - 3.0).polynomial(&ERFINV_LARGE) + lost);
    let large = a.equals(1.0).select(formula.number(f64::INFINITY), large);
    let y = a.lt(0.75).select(small, large);
    x.is_nan().select(x, y.with_sign_of(x))
}
