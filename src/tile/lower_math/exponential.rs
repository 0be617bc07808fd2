//! Powers of e, 2 and 10, and what is made of them.
//!
//! The argument is split into a multiple of a power of two's logarithm and a rest; a polynomial gives the rest's power less
//! 1, which is added last so that only one rounding is large; the power of two multiplies in two steps. In f32 the machine gives the
//! rest's power where 2 ulp are enough: that takes half of the instructions, which is what loops over bf16 wait for.

use super::expr::{FloatBits, Table, X};
use super::tables::{
    EXP, EXP2, EXP10, EXPM1, LN_2_HI, LN_2_LO, LN_10_HI, LN_10_LO, LOG2_10, LOG2_10_LO, LOG2_E_HI,
    LOG2_E_LO, LOG10_2_HI, LOG10_2_LO,
};
use crate::ir::ops::TileOp;

/// `e^(x + rest)` as a product: `(power + lost) 2^k`.
#[derive(Clone, Copy)]
pub(super) struct Power<'f> {
    /// A number between about 0.7 and 1.42.
    pub(super) power: X<'f>,
    /// What rounding cut off it.
    pub(super) lost: X<'f>,
    /// The exponent: an integer of which only the low 9 bits count (f64: 12).
    pub(super) k: X<'f>,
}

/// `e^(x + rest)`. The rest is far smaller than x.
pub(super) fn parts<'f>(x: X<'f>, rest: Option<X<'f>>) -> Power<'f> {
    let (k, int) = x.nearest(LOG2_E_HI);
    // Exact.
    let high = (-k).fma(LN_2_HI, x);
    let low = rest.map_or_else(|| -(k * LN_2_LO), |rest| (-k).fma(LN_2_LO, rest));
    let r = high + low;
    let tail = r.polynomial(&EXP).fma(r * r, low);
    let sum = high + tail;
    let one = x.formula().number(1.0);
    let power = sum + one;
    Power {
        power,
        lost: (one - power) + sum,
        k: int,
    }
}

/// e^x.
pub(super) fn exp(x: X<'_>) -> X<'_> {
    if !x.formula().is_double() {
        return single_power(x, (LOG2_E_HI, LOG2_E_LO), 87.3);
    }
    // Beyond, results are infinite and 0 as well.
    let Power { power, k, .. } = parts(x.clamped(-746.0, 710.0), None);
    power.times_power(k)
}

/// `base^x` in f32, given the base's logarithm, within 2 ulp. Beyond `most` the exponent would be no ordinary one: it stays there, the
/// rest grows, and the last product overflows, or is rounded where it is hardly a number.
fn single_power<'f>(x: X<'f>, log: (FloatBits, FloatBits), most: f64) -> X<'f> {
    let (k, power) = x.min(most).max(-most).nearest_power(log.0);
    let rest = x.fma(log.1, x.fma(log.0, -k));
    rest.op(TileOp::Exp2) * power
}

/// e^x / 2 for x not negative, without overflow where the half is finite, and what rounding cut off it.
pub(super) fn half_exp(x: X<'_>) -> (X<'_>, X<'_>) {
    let formula = x.formula();
    let Power { power, lost, k } = parts(x, None);
    let is_large = x.gt(formula.pick(90.0, 711.0));
    let half = is_large.select(formula.number(f64::INFINITY), power.times_power(k - 1));
    let lost = is_large.select(formula.number(0.0), lost.times_power(k - 1));
    (half, lost)
}

/// `base^(r + rest)`, given the base's logarithm, for small r.
fn small_power<'f>(
    r: X<'f>,
    rest: Option<X<'f>>,
    log: (FloatBits, FloatBits),
    table: &Table,
) -> X<'f> {
    let all = rest.map_or(r, |rest| r + rest);
    let tail = all.polynomial(table) * (all * all);
    let tail = r.fma(log.1, tail);
    let tail = rest.map_or(tail, |rest| rest.fma(log.0, tail));
    r.fma(log.0, tail) + 1.0
}

/// 2^x.
pub(super) fn exp2(x: X<'_>) -> X<'_> {
    let (least, most) = x.formula().pick((-151.0, 129.0), (-1077.0, 1025.0));
    let x = x.clamped(least, most);
    let (k, int) = x.nearest(1.0);
    small_power(x - k, None, (LN_2_HI, LN_2_LO), &EXP2).times_power(int)
}

/// `2^(x + rest)` for x within the range of exponents and a few more, the rest below 2^-10.
/// `times` multiplies by a power of two.
pub(super) fn exp2_of_sum<'f>(
    x: X<'f>,
    rest: X<'f>,
    times: impl Fn(X<'f>, X<'f>) -> X<'f>,
) -> X<'f> {
    let (k, int) = x.nearest(1.0);
    let power = small_power(x - k, Some(rest), (LN_2_HI, LN_2_LO), &EXP2);
    times(power, int)
}

/// 10^x.
pub(super) fn exp10(x: X<'_>) -> X<'_> {
    if !x.formula().is_double() {
        return single_power(x, (LOG2_10, LOG2_10_LO), 37.9);
    }
    let x = x.clamped(-324.5, 308.4);
    let (k, int) = x.nearest(LOG2_10);
    let r = (-k).fma(LOG10_2_HI, x);
    let rest = -(k * LOG10_2_LO);
    small_power(r, Some(rest), (LN_10_HI, LN_10_LO), &EXP10).times_power(int)
}

/// A quarter of e^x for x from 0 to 89.7 in f32, to about an ulp.
pub(super) fn quarter_exp(x: X<'_>) -> X<'_> {
    let (k, int) = x.nearest(LOG2_E_HI);
    let r = (-k).fma(LN_2_LO, (-k).fma(LN_2_HI, x));
    let less_one = r.polynomial(&EXP).fma(r * r, r);
    (less_one + 1.0) * (int - 2).power_of_two()
}

/// e^x - 1: `2^k (e^r - 1) + (2^k - 1)`.
pub(super) fn expm1(x: X<'_>) -> X<'_> {
    match x.formula().is_double() {
        true => double_expm1(x),
        false => single_expm1(x),
    }
}

/// To about an ulp, without branches: half of it, as the largest k has no power of its own.
fn single_expm1(x: X<'_>) -> X<'_> {
    // Below it is -1, above infinite.
    let bounded = x.clamped(-20.0, 89.0);
    let (k, int) = bounded.nearest(LOG2_E_HI);
    let r = (-k).fma(LN_2_LO, (-k).fma(LN_2_HI, bounded));
    let less_one = r.polynomial(&EXPM1).fma(r * r, r);
    let power = (int - 1).power_of_two();
    let half = power.fma(less_one, power - 0.5);
    // Half of the smallest numbers is rounded, and 0 has a sign.
    x.abs().lt((-25f64).exp2()).select(x, half + half)
}

/// The large terms added with their error kept.
fn double_expm1(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let (k, int) = x.nearest(LOG2_E_HI);
    let r = (-k).fma(LN_2_HI, x);
    let rest = k * LN_2_LO;
    let exact = r - rest;
    // What the difference lost.
    let rest = (r - exact) - rest;
    let square = exact * exact;
    let tail = exact.polynomial(&EXPM1).fma(square, rest);
    let power = int.power_of_two();
    let base = power - 1.0;
    let term = power * exact;
    let high = base + term;
    let low = (base - high) + term;
    let y = high + power.fma(tail, low);
    // The largest k has no power of its own. One k beyond: e^x itself, from half of it.
    let most = formula.bias() as f64;
    let beyond = k.gt(most);
    let half = tail + exact + 1.0;
    let (ordinary, largest, smallest) = formula.pick((88.0, 89.0, -18.0), (709.0, 710.0, -40.0));
    let far = beyond.select(half * most.exp2() * 2.0, y);
    let far = x.gt(largest).select(formula.number(f64::INFINITY), far);
    let y = x.gt(ordinary).rare().select(far, y);
    let y = x.lt(smallest).select(formula.number(-1.0), y);
    x.equals(0.0).select(x, y)
}

/// `e^x` as `2^(x log2 e)` with a rounded product, by the machine's power of two.
pub(super) fn fast_exp(x: X<'_>) -> X<'_> {
    (x * LOG2_E_HI).op(TileOp::Exp2)
}
