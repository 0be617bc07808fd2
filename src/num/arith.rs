//! Correctly rounded f32 arithmetic in every direction, through f64 rounded to odd.

use super::{Format, Overflow, Rounding, canonical};

/// Moves the inexact `rounded` to its odd neighbour on the side where the exact value lies:
/// above if `above`. `rounded` must be finite and not zero.
fn to_odd(rounded: f64, above: bool) -> f64 {
    let bits = rounded.to_bits();
    if bits & 1 == 1 {
        return rounded;
    }
    let away = above == (rounded > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

/// `a + b` rounded to odd. Both must be far from overflow, as widened f32 values and their
/// products are.
pub(super) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's two-sum: `error` is exact.
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    if error == 0.0 {
        sum
    } else {
        to_odd(sum, error > 0.0)
    }
}

/// `a / b` rounded to odd, for widened f32 values.
pub(super) fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 {
        return quotient;
    }
    let rest = f64::mul_add(-quotient, b, a);
    // Not finite if b is infinite, but then the quotient is zero.
    if rest == 0.0 {
        quotient
    } else {
        to_odd(quotient, (rest > 0.0) == (b > 0.0))
    }
}

fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    let rest = f64::mul_add(-root, root, a);
    if rest == 0.0 {
        root
    } else {
        to_odd(root, rest > 0.0)
    }
}

fn narrow(x: f64, rounding: Rounding) -> f32 {
    f32::from_bits(Format::F32.from_f64(x, rounding, Overflow::Ieee) as u32)
}

/// The sign of an exact zero sum: negative only if both terms are, or when rounding down and the
/// terms' signs differ.
fn zero_sum(sum: f64, a: f64, b: f64, rounding: Rounding) -> f64 {
    if sum == 0.0 && rounding == Rounding::Down && a.is_sign_negative() != b.is_sign_negative() {
        -0.0
    } else {
        sum
    }
}

/// `add.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn add(a: f32, b: f32, rounding: Rounding) -> f32 {
    if rounding == Rounding::NearestEven {
        return canonical(a + b);
    }
    let (a, b) = (f64::from(a), f64::from(b));
    narrow(zero_sum(add_odd(a, b), a, b, rounding), rounding)
}

/// `sub.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn sub(a: f32, b: f32, rounding: Rounding) -> f32 {
    if rounding == Rounding::NearestEven {
        return canonical(a - b);
    }
    add(a, -b, rounding)
}

/// `mul.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn mul(a: f32, b: f32, rounding: Rounding) -> f32 {
    if rounding == Rounding::NearestEven {
        return canonical(a * b);
    }
    // 48 bits of product fit.
    narrow(f64::from(a) * f64::from(b), rounding)
}

/// `fma.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn fma(a: f32, b: f32, c: f32, rounding: Rounding) -> f32 {
    // The exact product plus c, rounded to odd and once more: also the fast way to `.rn`, since
    // without hardware support `f32::mul_add` is a slow library call.
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = zero_sum(add_odd(product, c), product, c, rounding);
    if rounding == Rounding::NearestEven {
        canonical(sum as f32)
    } else {
        narrow(sum, rounding)
    }
}

/// `div.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn div(a: f32, b: f32, rounding: Rounding) -> f32 {
    if rounding == Rounding::NearestEven {
        return canonical(a / b);
    }
    narrow(div_odd(f64::from(a), f64::from(b)), rounding)
}

/// `rcp.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn rcp(a: f32, rounding: Rounding) -> f32 {
    div(1.0, a, rounding)
}

/// `sqrt.{rn,rz,rm,rp}.f32`.
#[inline]
pub fn sqrt(a: f32, rounding: Rounding) -> f32 {
    if rounding == Rounding::NearestEven {
        return canonical(a.sqrt());
    }
    narrow(sqrt_odd(f64::from(a)), rounding)
}
