//! The logarithm of the gamma function's size.
//!
//! With `a = |x|`: below 5/2 it is `r P(r)` around the zero of the function at 1 or at 2, less `log a` below 1/2; up to 8 the
//! product of what is taken off to come to the zero at 2 adds its logarithm; from 8 on it is Stirling's formula. For
//! negative numbers `gamma(-a) gamma(1 + a) = -pi / sin(pi a)`.

use super::expr::X;
use super::logarithm::log;
use super::tables::{COS, LGAMMA_1, LGAMMA_2, LGAMMA_FAR, SIN};
use crate::ir::attrs::FloatPred;
use crate::ir::ops::TileOp;

/// Where Stirling's formula begins.
const FAR: f64 = 8.0;

/// `|sin(pi a)|`, of a number that is not negative.
fn sine(a: X<'_>) -> X<'_> {
    let pi = std::f64::consts::PI;
    let rest = (a - a.op(TileOp::Rint)).abs();
    let near = rest * pi;
    let square = near * near;
    let low = (square.polynomial(&SIN) * square).fma(near, near);
    let far = (-rest + 0.5) * pi;
    let square = far * far;
    let bend = square.polynomial(&COS).fma(square, -0.5);
    let high = bend.fma(square, 1.0);
    rest.lt(0.25).select(low, high)
}

/// `log |gamma(x)|`.
pub(super) fn lgamma(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let is_small = a.lt(0.5);
    let is_far = a.compare(FloatPred::Oge, FAR);

    // Down to [3/2, 5/2), with the product of what stood above.
    let (mut z, mut product) = (a, formula.number(1.0));
    for _ in 0..6 {
        let less = z - 1.0;
        let more = z.compare(FloatPred::Oge, 2.5);
        product = more.select(product * less, product);
        z = more.select(less, z);
    }
    let first = a.lt(1.5);
    let r = z - first.select(formula.number(1.0), 2.0);
    let r = is_small.select(a, r);
    let bend = first.select(r.polynomial(&LGAMMA_1), r.polynomial(&LGAMMA_2));

    let argument = is_small.select(a, product);
    let log_of = log(is_far.select(a, argument));
    let near = bend.fma(r, log_of);
    let inverse = formula.number(1.0).over(a);
    let rest = (inverse * inverse).polynomial(&LGAMMA_FAR);
    let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
    let rest = rest.fma(inverse, half_log_tau - 0.5);
    let far = (a - 0.5).fma(log_of - 1.0, rest);
    let above = is_far.select(far, near);
    // Below 1/2 the logarithm is that of a itself, and is taken off; the product's is added.
    let below_half = bend.fma(r, -log_of);
    let positive = is_small.select(below_half, above);

    // Of a negative number: log(pi / sin) less log gamma(1 + a), which is log a + log gamma(a).
    let scale = is_small.select(formula.number(1.0), a) * std::f64::consts::FRAC_1_PI;
    let log_sine = log(sine(a) * scale);
    let shifted = is_small.select(bend * r, above);
    let is_pole = a.op(TileOp::Rint).equals(a);
    let negative = is_pole.select(formula.number(f64::INFINITY), -(log_sine + shifted));
    let y = x.lt(0.0).select(negative, positive);
    x.is_nan().select(x, y)
}
