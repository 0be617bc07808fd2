//! Logarithms, and the inverse hyperbolic functions that are made of them.
//!
//! A number is `2^k m` with m in [2/3, 4/3). With `r = m - 1`, `log m = r - r^2 / 2 + r^3 P(r)`. Terms are added from the largest
//! to the smallest with the error of the first sum kept.

use super::expr::{Number, X};
use super::tables::{
    LN_2_HI, LN_2_REST, LN_2_TOP, LOG, LOG2_E_HI, LOG2_E_LO, LOG10_2_REST, LOG10_2_TOP, LOG10_E_HI,
    LOG10_E_LO,
};
use crate::ir::attrs::FloatPred;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// A positive number as the exponent's bits in their place, and a mantissa in [2/3, 4/3).
fn split(x: X<'_>) -> (X<'_>, X<'_>) {
    let formula = x.formula();
    let two_thirds = formula.pick(0x3f2a_aaab, 0x3fe5_5555_5555_5555);
    let mask = -1 << formula.mantissa_bits();
    let bits = x.bits();
    let power = (bits - two_thirds) & mask;
    (power, (bits - power).float())
}

/// An exponent's bits in their place as a number.
fn exponent(power: X<'_>) -> X<'_> {
    let formula = power.formula();
    let k = power.signed_shift(i64::from(formula.mantissa_bits()));
    if formula.is_double() {
        return k
            .cast(TileOp::Itrunc, Elem::I32)
            .cast(TileOp::Sitofp, Elem::F64);
    }
    k.to_float()
}

/// [`split`] of any positive number, subnormal ones too, the exponent as a number.
fn split_all(x: X<'_>) -> (X<'_>, X<'_>) {
    let formula = x.formula();
    let tiny = x.lt(formula.pick(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
    let digits = f64::from(formula.mantissa_bits());
    let scaled = tiny.select(x * digits.exp2(), x);
    let less = tiny.select(formula.number(-digits), 0.0);
    let (power, mantissa) = split(scaled);
    (exponent(power) + less, mantissa)
}

/// What a logarithm is at 0, below, at infinity and NaN; `y` elsewhere.
fn at_edges<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let y = x.lt(f64::INFINITY).select(y, x);
    let y = x.lt(0.0).select(formula.nan(), y);
    x.equals(0.0).select(formula.number(f64::NEG_INFINITY), y)
}

/// `a + p + rest`, where `a` is 0 or larger than p, and the rest small.
fn sum<'f>(a: X<'f>, p: X<'f>, rest: X<'f>) -> X<'f> {
    let high = a + p;
    let low = (a - high) + p;
    high + (low + rest)
}

/// `log(1 + r) - r`, plus a rest far smaller than r.
fn curve<'f>(r: X<'f>, rest: X<'f>) -> X<'f> {
    let square = r * r;
    let cube = (r.polynomial(&LOG) * r).fma(square, rest);
    square.fma(-0.5, cube)
}

/// Natural logarithm.
pub(super) fn log(x: X<'_>) -> X<'_> {
    let (k, mantissa) = split_all(x);
    let r = mantissa - 1.0;
    let y = if x.formula().is_double() {
        sum(k * LN_2_TOP, r, curve(r, k * LN_2_REST))
    } else {
        let p = r.polynomial(&LOG).fma(r, -0.5);
        let y = (p * r).fma(r, r);
        k.fma(LN_2_HI, y)
    };
    at_edges(x, y)
}

/// Logarithm to a base: `k` times one number, and the natural logarithm of the mantissa times another.
fn to_base<'f>(x: X<'f>, scale: (Number, Number), two: Option<(Number, Number)>) -> X<'f> {
    let (k, mantissa) = split_all(x);
    let r = mantissa - 1.0;
    let high = r * scale.0;
    let low = r.fma(scale.0, -high);
    let low = r.fma(scale.1, low);
    let rest = curve(r, x.formula().number(0.0)).fma(scale.0, low);
    let y = match two {
        None => sum(k, high, rest),
        Some((top, last)) => sum(k * top, high, k.fma(last, rest)),
    };
    at_edges(x, y)
}

/// Base-2 logarithm.
pub(super) fn log2(x: X<'_>) -> X<'_> {
    to_base(x, (LOG2_E_HI, LOG2_E_LO), None)
}

/// Base-10 logarithm.
pub(super) fn log10(x: X<'_>) -> X<'_> {
    to_base(
        x,
        (LOG10_E_HI, LOG10_E_LO),
        Some((LOG10_2_TOP, LOG10_2_REST)),
    )
}

/// `log(1 + x)` for x above -1 and finite: of the rounded sum, and what rounding cut off. `less` is added to x.
fn log1p_inner<'f>(x: X<'f>, less: Option<X<'f>>) -> X<'f> {
    let formula = x.formula();
    let one = formula.number(1.0);
    let u = x + 1.0;
    // Knuth's two-sum.
    let x_part = u - 1.0;
    let cut = (one - (u - x_part)) + (x - x_part);
    let cut = less.map_or(cut, |less| cut + less);
    let (power, mantissa) = split(u);
    let k = exponent(power);
    let inverse = (one.bits() - power).op2(TileOp::Smax, 0).float();
    let low = cut * inverse;
    let high = mantissa - 1.0;
    let r = high + low;
    sum(k * LN_2_TOP, high, curve(r, k.fma(LN_2_REST, low)))
}

/// `log(1 + x)`.
pub(super) fn log1p(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let y = log1p_inner(x, None);
    let y = x.lt(f64::INFINITY).select(y, x);
    let y = x.lt(-1.0).select(formula.nan(), y);
    let y = x.equals(-1.0).select(formula.number(f64::NEG_INFINITY), y);
    // -0, and what is too small for the square.
    let tiny = formula.pick(1e-30, 1e-300);
    x.abs().lt(tiny).select(x, y)
}

/// The logarithm of twice a positive number.
fn log_of_double(x: X<'_>) -> X<'_> {
    let (k, mantissa) = split_all(x);
    let r = mantissa - 1.0;
    let k = k + 1.0;
    sum(k * LN_2_TOP, r, curve(r, k * LN_2_REST))
}

/// `log1p(|x| + x^2 / (1 + sqrt(1 + x^2)))`, and `log |x| + log 2` where the square is too large.
pub(super) fn asinh(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let square = a * a;
    let root = a.fma(a, 1.0).ordinary_root();
    let more = square.quotient(root + 1.0);
    let argument = a + more;
    let lost = (a - argument) + more;
    let near = log1p_inner(argument, Some(lost));
    let far = a.lt(f64::INFINITY).select(log_of_double(a), a);
    let y = a.is_beyond(formula.pick(1e9, 1e100)).select(far, near);
    y.with_sign_of(x)
}

/// With `t = x - 1`: `log1p(t + sqrt(2 t + t^2))`, and `log x + log 2` where the square is too large.
pub(super) fn acosh(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let t = x - 1.0;
    let square = t.fma(t, t + t);
    let root = square.root();
    let argument = t + root;
    // What the root and the sum lost.
    let error = (-root)
        .fma(root, square)
        .quotient((root + root).max(f64::from(f32::MIN_POSITIVE)));
    let bigger = t.gt(root);
    let (first, second) = (bigger.select(t, root), bigger.select(root, t));
    let lost = ((first - argument) + second) + error;
    let near = log1p_inner(argument, Some(lost));
    let far = x.lt(f64::INFINITY).select(log_of_double(x), x);
    let far = x.lt(1.0).select(formula.nan(), far);
    x.is_outside(1.0, formula.pick(1e9, 1e100))
        .select(far, near)
}

/// `log1p(2 |x| / (1 - |x|)) / 2`.
pub(super) fn atanh(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let rest = formula.number(1.0) - a;
    let argument = (a + a).quotient(rest);
    // Exact: the remainder of the division, and 1 - |x| but for what rounding cut off.
    let cut = (formula.number(1.0) - rest) - a;
    let remainder = (-argument).fma(rest, a + a);
    let lost = (-argument).fma(cut, remainder).quotient(rest);
    let near = log1p_inner(argument, Some(lost)) * 0.5;
    let infinity = formula.number(f64::INFINITY);
    let far = a.equals(1.0).select(infinity, formula.nan());
    let far = x.is_nan().select(x, far);
    let least_beyond = a.compare(FloatPred::Uge, 1.0).rare();
    least_beyond.select(far, near).with_sign_of(x)
}
