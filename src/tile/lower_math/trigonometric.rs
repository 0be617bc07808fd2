//! Sine, cosine and tangent of any angle, and their inverses.
//!
//! The angle is a multiple of pi / 2 and a rest of at most pi / 4. Up to a limit the multiple is subtracted in three
//! parts; beyond, the angle is multiplied by those bits of 2 / pi that matter modulo 4, in integers (Payne and Hanek, "Radian
//! reduction for trigonometric functions", 1983).

use super::expr::X;
use super::tables::{
    ASIN, ATAN, COS, PI_2_A, PI_2_B, PI_2_C, PI_2_FACTORS, PI_HI, PI_LO, SIN, TAN, TWO_BY_PI,
    TWO_BY_PI_32, TWO_BY_PI_64,
};
use crate::ir::attrs::{FloatPred, IntPred};
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// An angle as a multiple of pi / 2 and a rest.
#[derive(Clone, Copy)]
struct Angle<'f> {
    /// The multiple, modulo 4 in its low bits.
    quadrant: X<'f>,
    /// The rest.
    r: X<'f>,
    /// What rounding the rest cut off, which counts in f64 only.
    lost: X<'f>,
}

impl<'f> Angle<'f> {
    /// The first where the condition holds, else the second.
    fn select(condition: X<'f>, yes: Angle<'f>, no: Angle<'f>) -> Angle<'f> {
        Angle {
            quadrant: condition.select(yes.quadrant, no.quadrant),
            r: condition.select(yes.r, no.r),
            lost: condition.select(yes.lost, no.lost),
        }
    }

    /// The angle mirrored.
    fn negated(self) -> Angle<'f> {
        Angle {
            quadrant: self.r.formula().int(0) - self.quadrant,
            r: -self.r,
            lost: -self.lost,
        }
    }
}

fn reduce(x: X<'_>) -> Angle<'_> {
    let formula = x.formula();
    let (k, quadrant) = x.nearest(TWO_BY_PI);
    // Exact.
    let first = (-k).fma(PI_2_A, x);
    let near = if formula.is_double() {
        let second = k * PI_2_B;
        let r = first - second;
        let lost = (first - r) - second;
        let second_lost = k.fma(PI_2_B, -second);
        let lost = (-k).fma(PI_2_C, lost - second_lost);
        Angle { quadrant, r, lost }
    } else {
        let r = (-k).fma(PI_2_B, first);
        Angle {
            quadrant,
            r: (-k).fma(PI_2_C, r),
            lost: formula.number(0.0),
        }
    };
    // Beyond, the multiple has too many digits for the parts.
    let limit = formula.pick(48_039.0, 1_073_741_824.0);
    let far = reduce_far(x);
    let negative = x.bits().int_compare(IntPred::Slt, 0);
    let far = Angle::select(negative, far.negated(), far);
    let far = Angle {
        r: x.abs().lt(f64::INFINITY).select(far.r, formula.nan()),
        ..far
    };
    Angle::select(x.abs().gt(limit).rare(), far, near)
}

/// The words of a shifted number from position `index` on: each choice halves what is left.
fn select_words<'f>(mut words: Vec<X<'f>>, index: X<'f>, bits: u32, count: usize) -> Vec<X<'f>> {
    for bit in (0..bits).rev() {
        let step = 1 << bit;
        let kept = count + step - 1;
        let moves = (index & (1 << bit)).int_compare(IntPred::Ne, 0);
        let zero = index.formula().int(0);
        let at = |i: usize| words.get(i).copied().unwrap_or(zero);
        words = (0..kept)
            .map(|i| moves.select(at(i + step), at(i)))
            .collect();
    }
    words
}

/// For f32 of 2^15 and more, and f64 of 2^30 and more. With the significand as an integer M as wide as the number,
/// `x = M 2^(e - width + 1)`; of the product with 2 / pi the bits from 2^1 down to 2^(2 - 2 width) are kept.
fn reduce_far(x: X<'_>) -> Angle<'_> {
    let formula = x.formula();
    let (elem, width, mantissa) = match formula.is_double() {
        true => (Elem::I64, 64_i64, 52),
        false => (Elem::I32, 32, 23),
    };
    // The words of 2 / pi, and how many bits number those that may come first.
    let (table, choices) = match formula.is_double() {
        true => (TWO_BY_PI_64.map(|word| word as i64).to_vec(), 4),
        false => (TWO_BY_PI_32.map(i64::from).to_vec(), 2),
    };
    let exponent = width - 1 - mantissa;
    let bits = x.bits();
    let size = bits & !(-1_i64 << (width - 1));
    let significand = (size << exponent) | (1_i64 << (width - 1));
    // All bits but one stand before the first of 2 / pi, so that the number starts at bit e - 1.
    let start = (size >> mantissa) - (1 << (exponent - 1));
    let mut words = vec![formula.int(0)];
    words.extend(table.into_iter().map(|word| formula.int(word)));
    let words = select_words(words, start >> i64::from(width.ilog2()), choices, 4);
    let shift = start & (width - 1);
    let rest = formula.int(width) - shift;
    let word = |i: usize| (words[i] << shift) | (words[i + 1] >> rest);
    let (first, second, third) = (word(0), word(1), word(2));
    let low = significand * second;
    let carried = low + significand.op2(TileOp::Umulhi, third);
    let carry = carried
        .int_compare(IntPred::Ult, low)
        .cast(TileOp::Zext, elem);
    let high = significand * first + significand.op2(TileOp::Umulhi, second) + carry;
    let quadrant = (high + (1 << (width - 3))) >> (width - 2);
    let fraction = high - (quadrant << (width - 2));
    // In three pieces that are exact: without the bits that a float has no room for, with these and half a word more, and the rest.
    let (few, half) = ((1_i64 << exponent) - 1, width / 2);
    let first = (fraction & !few).to_float();
    let second = ((fraction & few) << half) | (carried >> half);
    let scale = |bits: i64| (-(bits as f64)).exp2();
    let second = second.to_float() * scale(half);
    let third = (carried & ((1_i64 << half) - 1)).to_float();
    far_angle(
        quadrant,
        [first, second, third],
        scale(width),
        scale(width - 2),
    )
}

/// The rest from a fraction of pi / 2 in three pieces: two, and one to be scaled; all are scaled again.
fn far_angle<'f>(
    quadrant: X<'f>,
    [first, second, third]: [X<'f>; 3],
    third_scale: f64,
    scale: f64,
) -> Angle<'f> {
    let sum = first + second;
    let rest = third.fma(third_scale, (first - sum) + second);
    let fraction = sum + rest;
    let lost = (sum - fraction) + rest;
    let (fraction, lost) = (fraction * scale, lost * scale);
    let high = fraction * PI_2_A;
    let low = fraction.fma(PI_2_A, -high);
    let low = fraction.fma(PI_2_B, lost.fma(PI_2_A, low));
    let r = high + low;
    Angle {
        quadrant,
        r,
        lost: (high - r) + low,
    }
}

/// Sine and cosine of a rest, in f64 each with what rounding cut off.
fn both(angle: Angle<'_>) -> [(X<'_>, X<'_>); 2] {
    let (r, lost) = (angle.r, angle.lost);
    let one = r.formula().number(1.0);
    let square = r * r;
    let sin_tail = square.polynomial(&SIN) * square;
    let cos_tail = square.polynomial(&COS).fma(square, -0.5);
    if !r.formula().is_double() {
        let none = r.formula().number(0.0);
        return [
            (sin_tail.fma(r, r), none),
            (cos_tail.fma(square, 1.0), none),
        ];
    }
    let sin_tail = sin_tail.fma(r, lost);
    let cos_tail = cos_tail.fma(square, -(r * lost));
    let (sin, cos) = (r + sin_tail, one + cos_tail);
    [(sin, (r - sin) + sin_tail), (cos, (one - cos) + cos_tail)]
}

/// Whether the multiple of pi / 2 is odd.
fn is_odd(quadrant: X<'_>) -> X<'_> {
    (quadrant & 1).int_compare(IntPred::Ne, 0)
}

/// The sine of an angle that is `quarters` times pi / 2 larger. Infinity gives NaN.
fn sine(x: X<'_>, quarters: i64) -> X<'_> {
    let formula = x.formula();
    let angle = reduce(x);
    let quadrant = if quarters == 0 {
        angle.quadrant
    } else {
        angle.quadrant + quarters
    };
    let [(sin, _), (cos, _)] = both(angle);
    let y = is_odd(quadrant).select(cos, sin);
    let flip = (quadrant & 2) << formula.pick(30, 62);
    (y.bits() ^ flip).float()
}

/// Sine.
pub(super) fn sin(x: X<'_>) -> X<'_> {
    // -0 has no other way to stay.
    x.equals(0.0).select(x, sine(x, 0))
}

/// Cosine.
pub(super) fn cos(x: X<'_>) -> X<'_> {
    sine(x, 1)
}

/// Tangent: in f32 a polynomial or minus its reciprocal; in f64 the quotient of sine and cosine, or minus its reciprocal, corrected
/// by what all three roundings cut off.
pub(super) fn tan(x: X<'_>) -> X<'_> {
    let angle = reduce(x);
    let odd = is_odd(angle.quadrant);
    if !x.formula().is_double() {
        let r = angle.r;
        let square = r * r;
        let near = (square.polynomial(&TAN) * square).fma(r, r);
        let y = odd.select((-near).reciprocal(), near);
        return x.equals(0.0).select(x, y);
    }
    let [(sin, sin_low), (cos, cos_low)] = both(angle);
    let above = odd.select(-cos, sin);
    let above_low = odd.select(-cos_low, sin_low);
    let below = odd.select(sin, cos);
    let below_low = odd.select(sin_low, cos_low);
    let inverse = below.reciprocal();
    let y = above * inverse;
    let rest = (-y).fma(below, above);
    let rest = (-y).fma(below_low, rest + above_low);
    let y = rest.fma(inverse, y);
    x.equals(0.0).select(x, y)
}

/// Where the arc sine of a size above 1/2 is that of the square root of `(1 - a) / 2`, which is half the arc cosine.
struct HalfAngle<'f> {
    /// Whether it is.
    is_far: X<'f>,
    /// The number of at most 1/2 whose arc sine is taken; none (NaN) above 1.
    s: X<'f>,
    /// The arc sine of `s`, less `s`, by `s`.
    bend: X<'f>,
}

impl<'f> HalfAngle<'f> {
    /// One polynomial serves both: of `near`, whose size is a, or of the root.
    fn new(near: X<'f>, a: X<'f>) -> HalfAngle<'f> {
        let is_far = a.gt(0.5);
        let half = a.fma(-0.5, 0.5);
        // What is added makes the reciprocal of a root of 0 finite, and changes no other.
        let root = if a.formula().is_double() {
            half.root()
        } else {
            half.root_by((half + (-100f64).exp2()).op(TileOp::Rsqrt))
        };
        let s = is_far.select(root, near);
        let square = is_far.select(half, near * near);
        let bend = square.polynomial(&ASIN) * square;
        HalfAngle { is_far, s, bend }
    }
}

/// A polynomial up to 1/2; above, `pi / 2 - 2 asin(sqrt((1 - x) / 2))`.
pub(super) fn asin(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let HalfAngle { is_far, s, bend } = HalfAngle::new(a, a);
    let far = (bend * s).fma(-2.0, PI_2_B) + s.fma(-2.0, PI_2_A);
    is_far.select(far, bend.fma(s, s)).with_sign_of(x)
}

/// `pi / 2 - asin(x)` up to 1/2 in size; twice the arc sine of the half angle, or what that leaves of pi, above.
pub(super) fn acos<'f>(x: X<'f>) -> X<'f> {
    let formula = x.formula();
    let HalfAngle { is_far, s, bend } = HalfAngle::new(x, x.abs());
    // The angle is a base plus a multiple of the arc sine.
    let is_positive = x.gt(0.0);
    let choose = |near: X<'f>, above: X<'f>, below: X<'f>| {
        is_far.select(is_positive.select(above, below), near)
    };
    let number = |x| formula.number(x);
    let constant = |x| formula.constant(x);
    let times = choose(number(-1.0), number(2.0), number(-2.0));
    let high = choose(constant(PI_2_A), number(0.0), constant(PI_HI));
    let low = choose(constant(PI_2_B), number(0.0), constant(PI_LO));
    s.fma(times, high) + (bend * s).fma(times, low)
}

/// The arc tangent of a quotient of two numbers that are not negative, which is at most 1.
fn atan_of(q: X<'_>) -> X<'_> {
    let square = q * q;
    (square.polynomial(&ATAN) * square).fma(q, q)
}

/// `pi / 2` less an angle. In f32 the product of two numbers is pi / 2 to twice the digits.
fn less_than_quarter(angle: X<'_>) -> X<'_> {
    let formula = angle.formula();
    if formula.is_double() {
        return formula.constant(PI_2_A) - (angle - formula.constant(PI_2_B));
    }
    let (first, second) = PI_2_FACTORS;
    formula.constant(first).fma(second, -angle)
}

/// Up to 1 a polynomial; above, `pi / 2 - atan(1 / x)`.
pub(super) fn atan(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let a = x.abs();
    let large = a.gt(1.0);
    let q = large.select(a.min(formula.pick(1e30, 1e300)).reciprocal(), a);
    let angle = atan_of(q);
    let y = large.select(less_than_quarter(angle), angle);
    let y = x.is_nan().select(formula.nan(), y);
    y.with_sign_of(x)
}

/// The angle of a point: the arc tangent of the smaller by the larger, mirrored as the point lies.
pub(super) fn atan2<'f>(y: X<'f>, x: X<'f>) -> X<'f> {
    let formula = x.formula();
    let (a, b) = (y.abs(), x.abs());
    let steep = a.gt(b);
    // An operand that is NaN is neither larger nor smaller.
    let (small, large) = (a.min(b), a.larger_or_nan(b));
    let q = small.over(large);
    // 0 / 0 and infinity by infinity.
    let q = large.equals(0.0).select(large, q);
    let q = small.equals(f64::INFINITY).select(formula.number(1.0), q);
    let q = y.compare(FloatPred::Uno, x).select(formula.nan(), q);
    let most = formula.pick(60f64, 500f64).exp2();
    let outside = large.is_outside(1.0 / most, most);
    let q = outside.select(q, small.quotient(large));
    let angle = atan_of(q);
    let zero = formula.number(0.0);
    let left = x.bits().int_compare(IntPred::Slt, 0);
    let minus = steep ^ left;
    let angle = minus.select(-angle, angle);
    // The multiple of pi / 2 from which the angle is taken off, or to which it is added.
    let angle = if formula.is_double() {
        let base = left.select(formula.constant(PI_HI), zero);
        let base_rest = left.select(formula.constant(PI_LO), zero);
        let base = steep.select(formula.constant(PI_2_A), base);
        let base_rest = steep.select(formula.constant(PI_2_B), base_rest);
        base + (angle + base_rest)
    } else {
        let (first, second) = PI_2_FACTORS;
        let first = formula.constant(first);
        let times = left.select(first + first, zero);
        steep.select(first, times).fma(second, angle)
    };
    angle.with_sign_of(y)
}
