//! Powers with any exponent, cube roots, and lengths.

use super::exponential::exp2_of_sum;
use super::expr::X;
use super::tables::{POW, POW_1_HI, POW_1_LO, POW_3_HI, POW_3_LO};
use crate::ir::attrs::FloatPred;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// The base-2 logarithm of a positive number as a sum of two. With m in [sqrt(1/2), sqrt 2) and `f = (m - 1) / (m + 1)`
/// the logarithm of m is an odd series in f, whose first two terms are kept to twice the digits.
fn log2_sum(a: X<'_>) -> (X<'_>, X<'_>) {
    let formula = a.formula();
    let digits = f64::from(formula.mantissa_bits());
    let tiny = a.lt(formula.pick(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
    let scaled = tiny.select(a * digits.exp2(), a);
    log2_parts(scaled, Some(tiny.select(formula.number(-digits), 0.0)))
}

/// [`log2_sum`] of a normal number; `more` is added to its exponent.
fn log2_parts<'f>(a: X<'f>, more: Option<X<'f>>) -> (X<'f>, X<'f>) {
    let formula = a.formula();
    let bits = a.bits();
    let root_half = formula.pick(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd);
    let power = (bits - root_half) & (-1 << formula.mantissa_bits());
    let m = (bits - power).float();
    let k = power.signed_shift(i64::from(formula.mantissa_bits()));
    let k = if formula.is_double() {
        let k = k.cast(TileOp::Itrunc, Elem::I32);
        k.cast(TileOp::Sitofp, Elem::F64)
    } else {
        k.to_float()
    };
    let k = more.map_or(k, |more| k + more);

    let u = m - 1.0;
    let v = m + 1.0;
    let v_low = m - (v - 1.0);
    let inverse = v.reciprocal();
    let f = u * inverse;
    let rest = (-f).fma(v, u);
    let f_low = (-f).fma(v_low, rest) * inverse;

    let square = f * f;
    let square_low = (f + f).fma(f_low, f.fma(f, -square));
    let fifth = square.polynomial(&POW) * square;
    let third = square * POW_3_HI;
    let third_low = square.fma(POW_3_HI, -third);
    let third_low = square.fma(POW_3_LO, third_low);
    let third_low = square_low.fma(POW_3_HI, third_low);
    let third_low = fifth.fma(square, third_low);
    let first = formula.constant(POW_1_HI);
    let sum = first + third;
    let sum_low = ((first - sum) + third) + (third_low + formula.constant(POW_1_LO));
    let high = f * sum;
    let low = f.fma(sum, -high);
    let low = f.fma(sum_low, low);
    let low = f_low.fma(sum, low);

    let y = k + high;
    let y_low = ((k - y) + high) + low;
    let all = y + y_low;
    (all, (y - all) + y_low)
}

/// x^y. Whatever is not the normal power of a normal positive number goes one way, behind one branch: what two selections
/// share could be left to neither.
pub(super) fn pow<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let (log, log_low) = log2_parts(x, None);
    let exponent = y * log;
    let low = y.fma(log, -exponent);
    let near = exp2_of_sum(exponent, y.fma(log_low, low), X::times_ordinary_power);
    let (least, most) = formula.pick(
        (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        (f64::MIN_POSITIVE, f64::MAX),
    );
    let limit = formula.pick(125.0, 1021.0);
    let is_ordinary = x.compare(FloatPred::Oge, least)
        & x.compare(FloatPred::Ole, most)
        & exponent.abs().lt(limit);
    (is_ordinary ^ 1).rare().select(any_pow(x, y), near)
}

/// The power of a size as that of a number: with its sign where y is an odd integer, no number where it is negative and y is no
/// integer.
fn signed_power<'f>(x: X<'f>, y: X<'f>, size: X<'f>) -> X<'f> {
    let half = y * 0.5;
    let whole = y.op(TileOp::Trunc);
    let is_odd = whole.equals(y) & half.op(TileOp::Trunc).compare(FloatPred::Une, half);
    let signed = is_odd.select(size.with_sign_of(x), size);
    let no_number = x.lt(0.0) & whole.compare(FloatPred::Une, y);
    let finite = x.abs().lt(f64::INFINITY);
    (no_number & finite).select(x.formula().nan(), signed)
}

/// x^y of any numbers.
fn any_pow<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let (zero, one) = (formula.number(0.0), formula.number(1.0));
    let infinity = formula.number(f64::INFINITY);
    let a = x.abs();
    let (log, log_low) = log2_sum(a);
    let log = a.equals(0.0).select(-infinity, log);
    let log = a.equals(f64::INFINITY).select(infinity, log);

    let exponent = y * log;
    let low = y.fma(log, -exponent);
    let low = y.fma(log_low, low);
    let (most, least) = formula.pick((130.0, -152.0), (1026.0, -1078.0));
    let is_large = exponent.gt(most);
    let is_small = exponent.lt(least);
    // NaN stays.
    let inside = is_large.select(zero, exponent);
    let inside = is_small.select(zero, inside);
    let low = (is_large | is_small).select(zero, low);
    let size = exp2_of_sum(inside, low, X::times_power);
    let size = is_large.select(infinity, size);
    let size = is_small.select(zero, size);

    let result = signed_power(x, y, size);
    // 1 to any power, and -1 to an infinite one.
    let is_unit = x.equals(1.0) | (a.equals(1.0) & y.abs().equals(f64::INFINITY));
    let result = x.compare(FloatPred::Uno, y).select(formula.nan(), result);
    (is_unit | y.equals(0.0)).select(one, result)
}

/// Largest size of a whole exponent that products are made of.
const MOST_PRODUCTS: f64 = 64.0;

/// x^y for an exponent that is known, if few products make it.
pub(super) fn of_known<'f>(x: X<'f>, y: f64) -> Option<X<'f>> {
    let formula = x.formula();
    let infinity = formula.number(f64::INFINITY);
    if y == 0.5 {
        // Roots of -0 and of minus infinity are positive here.
        let root = (x + 0.0).root();
        return Some(x.equals(-infinity).select(infinity, root));
    }
    if y.fract() != 0.0 || y.abs() > MOST_PRODUCTS {
        return None;
    }
    let square = x * x;
    Some(match y as i32 {
        0 => formula.number(1.0),
        1 => x,
        2 => square,
        // Within 1.5 ulp, and within 1.92: where the square's error is largest, it is a small part of a unit.
        3 => square * x,
        4 => square * square,
        -1 if formula.is_double() => formula.number(1.0).over(x),
        -1 => x.op(TileOp::Rcp),
        n => whole_power(x, n),
    })
}

/// A number as a sum of two, the second far smaller.
type Pair<'f> = (X<'f>, Option<X<'f>>);

/// The product, to about twice the digits.
fn product<'f>(a: Pair<'f>, b: Pair<'f>) -> Pair<'f> {
    let high = a.0 * b.0;
    let low = a.0.fma(b.0, -high);
    let low = b.1.map_or(low, |b_low| a.0.fma(b_low, low));
    let low = a.1.map_or(low, |a_low| a_low.fma(b.0, low));
    (high, Some(low))
}

/// x^n by squares and products. No power on the way lies farther from 1 than the result, so that none overflows or
/// loses digits before that does.
fn whole_power(x: X<'_>, n: i32) -> X<'_> {
    let formula = x.formula();
    let base = if n > 0 {
        (x, None)
    } else {
        let one = formula.number(1.0);
        let high = if formula.is_double() {
            one.over(x)
        } else {
            x.op(TileOp::Rcp)
        };
        (high, Some((-x).fma(high, 1.0) * high))
    };
    let n = n.unsigned_abs();
    let mut power = base;
    for bit in (0..n.ilog2()).rev() {
        power = product(power, power);
        if n >> bit & 1 == 1 {
            power = product(power, base);
        }
    }
    let (high, low) = power;
    let sum = low.map_or(high, |low| high + low);
    // Of a zero the sign would be lost, of an infinity the second number is none.
    let size = high.abs();
    (size.gt(0.0) & size.lt(f64::INFINITY)).select(sum, high)
}

/// The reciprocal of the cube root by Newton's iteration from a third of the exponent; the root from that, with a last
/// correction.
pub(super) fn cbrt(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let tiny = a.lt(formula.pick(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
    let a = tiny.select(a * formula.pick(24f64.exp2(), 54f64.exp2()), a);
    let scale = tiny.select(
        formula.number(formula.pick((-8f64).exp2(), (-18f64).exp2())),
        1.0,
    );
    let third = a.bits().op2(
        TileOp::Umulhi,
        formula.pick(0x5555_5556, 0x5555_5555_5555_5556),
    );
    let guess = formula.int(formula.pick(0x54a2_fa8c, 0x553e_f0ff_289d_d796));
    let mut y = (guess - third).float();
    for _ in 0..formula.pick(3, 4) {
        let cube = (y * y) * y;
        let error = (-a).fma(cube, 1.0);
        y = (y * (1.0 / 3.0)).fma(error, y);
    }
    let inverse_square = y * y;
    let root = a * inverse_square;
    let square = root * root;
    let square_low = root.fma(root, -square);
    let rest = (-root).fma(square, a);
    let rest = (-root).fma(square_low, rest);
    let root = (inverse_square * (1.0 / 3.0)).fma(rest, root);
    let y = root * scale;
    let keeps = x.equals(0.0) | a.compare(FloatPred::Uge, f64::INFINITY);
    keeps.select(x, y.with_sign_of(x))
}

/// The reciprocal of the root with one step of Newton's, for f64.
pub(super) fn rsqrt(x: X<'_>) -> X<'_> {
    let y = x.formula().number(1.0).over(x.root());
    let root = x * y;
    let root_low = x.fma(y, -root);
    let error = (-root_low).fma(y, (-root).fma(y, 1.0));
    let better = (y * 0.5).fma(error, y);
    // Infinity times 0.
    better.is_nan().select(y, better)
}

/// The root of a sum of squares, of numbers scaled where their squares are no normal numbers.
pub(super) fn hypot<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let (a, b) = (x.abs(), y.abs());
    let (large, small) = (a.max(b), a.min(b));
    let near = small.fma(small, large * large).ordinary_root();
    let most = formula.pick(40f64, 400f64).exp2();
    let unordered = x.compare(FloatPred::Uno, y).rare();
    let outside = large.is_outside(1.0 / most, most) | unordered;
    outside.rare().select(any_hypot(x, y), near)
}

fn any_hypot<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let (a, b) = (x.abs(), y.abs());
    let (large, small) = (a.max(b), a.min(b));
    let step = formula.pick(100.0, 600.0);
    let limit = formula.pick(60f64.exp2(), 500f64.exp2());
    let (up, down) = (
        formula.number(f64::exp2(step)),
        formula.number(f64::exp2(-step)),
    );
    let one = formula.number(1.0);
    let (is_large, is_small) = (large.gt(limit), large.lt(1.0 / limit));
    let scale = is_small.select(up, is_large.select(down, one));
    let back = is_small.select(down, is_large.select(up, one));
    let (l, s) = (large * scale, small * scale);
    let square = l * l;
    let root = s.fma(s, square).root() * back;
    let root = x.compare(FloatPred::Uno, y).select(formula.nan(), root);
    let infinity = formula.number(f64::INFINITY);
    (a.equals(f64::INFINITY) | b.equals(f64::INFINITY)).select(infinity, root)
}
