//! Logarithms, and the inverse hyperbolic functions that are made of them.
//!
//! A number is `2^k m` with m in [2/3, 4/3) in f64, in [3/4, 3/2) in f32. With `r = m - 1`, `log m = r - r^2 / 2 + r^3 P(r)`. In f64
//! terms are added from the largest to the smallest with the error of the first sum kept. In f32 the logarithm of 2 to a base is
//! exact enough as one number: k, in its place among the bits, is converted and multiplied in one step with the last sum.

use super::expr::{FloatBits, X};
use super::tables::{
    LN_2_HI, LN_2_REST, LN_2_TOP, LOG, LOG_2, LOG_10, LOG2_E_HI, LOG2_E_LO, LOG10_2_REST,
    LOG10_2_TOP, LOG10_E_HI, LOG10_E_LO,
};
use crate::ir::attrs::{FloatPred, IntPred};
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// The bits of the least mantissa, 3/4 in f32: there `x / 2 - 1 / 2` is exact for an x of 1/2 and more.
const LEAST: (i64, i64) = (0x3f40_0000, 0x3fe5_5555_5555_5555);

/// The bits of the root of 1/2: a mantissa from there on has a logarithm of at most half of that of 2, so that the sum with k
/// times that loses nothing.
const ROOT_HALF: i64 = 0x3f35_04f3;

/// A positive number as the exponent's bits in their place, and a mantissa in [3/4, 3/2), in f64 in [2/3, 4/3).
fn split(x: X<'_>) -> (X<'_>, X<'_>) {
    let formula = x.formula();
    let mask = -1 << formula.mantissa_bits();
    let bits = x.bits();
    let power = (bits - formula.pick(LEAST.0, LEAST.1)) & mask;
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

/// A positive number of f32 in parts.
struct Single<'f> {
    /// The number, if it was subnormal times a power of two.
    scaled: X<'f>,
    /// The exponent in units of 2^-23.
    k: X<'f>,
    /// How far the mantissa is above 1.
    r: X<'f>,
}

/// A factor of exponents as one of exponents in units of 2^-23, in f32.
fn placed(factor: FloatBits) -> FloatBits {
    FloatBits(factor.0 - (23 << 23), 0)
}

impl<'f> Single<'f> {
    /// The parts of a number, with the bits of the least mantissa.
    fn new(x: X<'f>, least: i64) -> Single<'f> {
        let tiny = x.lt(f64::from(f32::MIN_POSITIVE));
        let scaled = tiny.select(x * 23f64.exp2(), x);
        let bits = scaled.bits();
        let power = (bits - least) & (-1 << 23);
        let r = (bits - power).float() - 1.0;
        let power = tiny.select(power - (23 << 23), power);
        let k = power.to_float();
        Single { scaled, k, r }
    }
}

/// What a logarithm is at 0, below, at infinity and NaN; `y` elsewhere.
fn at_edges<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let infinity = formula.number(f64::INFINITY);
    // Those below 0 have the sign's bit.
    let least_beyond = formula.pick(0x7f80_0000, 0x7ff0_0000_0000_0000);
    let is_below = x.bits().int_compare(IntPred::Ult, least_beyond);
    let y = is_below.select(y, x.fma(infinity, infinity));
    x.equals(0.0).select(-infinity, y)
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

/// In f32, `log(1 + r)` but for r, which is `r^2 (r P(r) - 1 / 2)`, plus r and what else is to be added.
fn log_single<'f>(r: X<'f>, more: X<'f>) -> X<'f> {
    let p = r.polynomial(&LOG).fma(r, -0.5);
    (p * r).fma(r, more)
}

/// Natural logarithm.
pub(super) fn log(x: X<'_>) -> X<'_> {
    if x.formula().is_double() {
        let (k, mantissa) = split_all(x);
        let r = mantissa - 1.0;
        return at_edges(x, sum(k * LN_2_TOP, r, curve(r, k * LN_2_REST)));
    }
    let Single { scaled, k, r } = Single::new(x, LEAST.0);
    // Edges of the scaled number, so that the other is not needed any more.
    at_edges(scaled, k.fma(placed(LN_2_HI), log_single(r, r)))
}

/// Logarithm to a base in f64: `k` times one number, and the natural logarithm of the mantissa times another.
fn to_base<'f>(
    x: X<'f>,
    scale: (FloatBits, FloatBits),
    two: Option<(FloatBits, FloatBits)>,
) -> X<'f> {
    let (k, mantissa) = split_all(x);
    let r = mantissa - 1.0;
    let high = r * scale.0;
    let low = r.fma(scale.0, -high);
    let low = r.fma(scale.1, low);
    let rest = curve(r, x.formula().number(0.0)).fma(scale.0, low);
    match two {
        None => sum(k, high, rest),
        Some((top, last)) => sum(k * top, high, k.fma(last, rest)),
    }
}

/// Base-2 logarithm.
pub(super) fn log2(x: X<'_>) -> X<'_> {
    if x.formula().is_double() {
        return at_edges(x, to_base(x, (LOG2_E_HI, LOG2_E_LO), None));
    }
    let Single { scaled, k, r } = Single::new(x, ROOT_HALF);
    let low = r.polynomial(&LOG_2).fma(r, LOG2_E_LO);
    let y = k.fma((-23f64).exp2(), r.fma(LOG2_E_HI, low * r));
    at_edges(scaled, y)
}

/// Base-10 logarithm.
pub(super) fn log10(x: X<'_>) -> X<'_> {
    if x.formula().is_double() {
        let two = (LOG10_2_TOP, LOG10_2_REST);
        return at_edges(x, to_base(x, (LOG10_E_HI, LOG10_E_LO), Some(two)));
    }
    let Single { scaled, k, r } = Single::new(x, ROOT_HALF);
    let low = r.polynomial(&LOG_10).fma(r, LOG10_E_LO);
    let low = low.fma(r, k * placed(LOG10_2_REST));
    let y = k.fma(placed(LOG10_2_TOP), r.fma(LOG10_E_HI, low));
    at_edges(scaled, y)
}

/// `log(1 + x)` for x above -1 and finite. `less` is added to x.
fn log1p_inner<'f>(x: X<'f>, less: Option<X<'f>>) -> X<'f> {
    if x.formula().is_double() {
        log1p_double(x, less)
    } else {
        log1p_single(x, less)
    }
}

/// In f64: of the rounded sum, and what rounding cut off.
fn log1p_double<'f>(x: X<'f>, less: Option<X<'f>>) -> X<'f> {
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

/// In f32, with the exponent k of `1 + x`: `r = x 2^-k - (1 - 2^-k)`, which rounds once. With `less` x is not negative, and k at most
/// 126.
fn log1p_single<'f>(x: X<'f>, less: Option<X<'f>>) -> X<'f> {
    let formula = x.formula();
    // k is 0 from -1/4 to 1/2, where r is x, also where the sum is rounded to 3/4 from above and to 3/2 from below.
    let most = formula.int(LEAST.0 + 1 + 0x7f_ffff);
    let most = match less {
        None => most - (x.bits() >> 31),
        Some(_) => most,
    };
    // -k in its place: times a negative number it is -0 where k is 0, and -0 stays -0 in the last sum. That is also why what is
    // left of 1 is taken off.
    let down = (most - (x + 1.0).bits()) & (-1 << 23);
    let scaled = (x.bits() + down).float();
    // 2^(2 - k) is a number for the largest k too.
    let scale = |power: f64| (formula.number(power).bits() + down).float();
    let y = match less {
        None => {
            let r = scaled - scale(4.0).fma(-0.25, 1.0);
            log_single(r, r)
        }
        Some(less) => {
            let scale = scale(1.0);
            let r = scaled - (formula.number(1.0) - scale);
            r + log_single(r, less * scale)
        }
    };
    down.to_float().fma(-formula.constant(placed(LN_2_HI)), y)
}

/// `log(1 + x)`.
pub(super) fn log1p(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let y = at_edges(x + 1.0, log1p_inner(x, None));
    if !formula.is_double() {
        return y;
    }
    // -0, and what is too small for the square.
    x.abs().lt(1e-300).select(x, y)
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
    if !formula.is_double() {
        let is_large = a.gt(1e9);
        let more = is_large.select(
            formula.number(0.0),
            (root + 1.0).op(TileOp::RcpFtz) * square,
        );
        let log = is_large.select(formula.constant(LN_2_HI), 0.0);
        let y = log1p_inner(a + more, None) + log;
        return a.lt(f64::INFINITY).select(y, a).with_sign_of(x);
    }
    let more = square.quotient(root + 1.0);
    let argument = a + more;
    let near = log1p_inner(argument, Some((a - argument) + more));
    let far = a.lt(f64::INFINITY).select(log_of_double(a), a);
    let y = a.is_beyond(1e100).select(far, near);
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
