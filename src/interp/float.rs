//! Floating-point operations on bit patterns, format by format, over [`crate::num`].
//!
//! The approximate functions (f32) are computed in f64 and rounded once, so they are within half an ulp of
//! f32 and a little more, inside every bound of the op table; where an op says that subnormal arguments or
//! results count as 0, they do here.

use super::int;
use crate::ir::attrs::{self, FloatPred, NanRule};
use crate::ir::types::Scalar;
use crate::num::{self, Format, Int, Overflow, Rounding, bf16, f16};

/// The exact value of a pattern; NaN is canonical.
pub(super) fn to_f64(s: Scalar, x: u64) -> f64 {
    match s {
        Scalar::F16 => f16::to_f64(x as u16),
        Scalar::Bf16 => bf16::to_f64(x as u16),
        Scalar::F32 => num::canonical64(f64::from(f32::from_bits(x as u32))),
        Scalar::F64 => num::canonical64(f64::from_bits(x)),
        Scalar::F8E4M3 => Format::E4M3.to_f64(x),
        Scalar::F8E5M2 => Format::E5M2.to_f64(x),
        Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => no_float(s),
    }
}

/// The format of a floating-point type.
fn format(s: Scalar) -> Format {
    s.format().unwrap_or_else(|| no_float(s))
}

/// The type rules, checked before anything runs, let no other type through.
fn no_float(s: Scalar) -> ! {
    unreachable!("{s} is no format of floating-point arithmetic")
}

/// The same operation in each of the four formats that arithmetic knows.
struct PerFormat<F16, Bf16, F32, F64> {
    f16: F16,
    bf16: Bf16,
    f32: F32,
    f64: F64,
}

impl<A, B, C, D> PerFormat<A, B, C, D>
where
    A: Fn(u16, u16) -> u16,
    B: Fn(u16, u16) -> u16,
    C: Fn(f32, f32) -> f32,
    D: Fn(f64, f64) -> f64,
{
    fn apply(&self, s: Scalar, a: u64, b: u64) -> u64 {
        match s {
            Scalar::F16 => u64::from((self.f16)(a as u16, b as u16)),
            Scalar::Bf16 => u64::from((self.bf16)(a as u16, b as u16)),
            Scalar::F32 => single((self.f32)(
                f32::from_bits(a as u32),
                f32::from_bits(b as u32),
            )),
            Scalar::F64 => (self.f64)(f64::from_bits(a), f64::from_bits(b)).to_bits(),
            // Both are exact in f64, whose result has more than twice as many bits and two.
            Scalar::F8E4M3 | Scalar::F8E5M2 => {
                let format = format(s);
                let result = (self.f64)(format.to_f64(a), format.to_f64(b));
                format.from_f64(result, Rounding::NearestEven, format.overflow())
            }
            Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => no_float(s),
        }
    }
}

fn single(x: f32) -> u64 {
    u64::from(x.to_bits())
}

pub(super) fn add(s: Scalar, a: u64, b: u64) -> u64 {
    PerFormat {
        f16: f16::add,
        bf16: bf16::add,
        f32: |a, b| num::add(a, b, Rounding::NearestEven),
        f64: |a: f64, b: f64| num::canonical64(a + b),
    }
    .apply(s, a, b)
}

pub(super) fn sub(s: Scalar, a: u64, b: u64) -> u64 {
    PerFormat {
        f16: f16::sub,
        bf16: bf16::sub,
        f32: |a, b| num::sub(a, b, Rounding::NearestEven),
        f64: |a: f64, b: f64| num::canonical64(a - b),
    }
    .apply(s, a, b)
}

pub(super) fn mul(s: Scalar, a: u64, b: u64) -> u64 {
    PerFormat {
        f16: f16::mul,
        bf16: bf16::mul,
        f32: |a, b| num::mul(a, b, Rounding::NearestEven),
        f64: |a: f64, b: f64| num::canonical64(a * b),
    }
    .apply(s, a, b)
}

/// Rounded to nearest even; `fdiv`, which allows 2 ulp, is the same here.
pub(super) fn div(s: Scalar, a: u64, b: u64) -> u64 {
    PerFormat {
        f16: f16::div,
        bf16: bf16::div,
        f32: |a, b| num::div(a, b, Rounding::NearestEven),
        f64: |a: f64, b: f64| num::canonical64(a / b),
    }
    .apply(s, a, b)
}

pub(super) fn min(rule: NanRule, s: Scalar, a: u64, b: u64) -> u64 {
    match rule {
        NanRule::Ignore => PerFormat {
            f16: f16::min,
            bf16: bf16::min,
            f32: num::min,
            f64: num::min64,
        }
        .apply(s, a, b),
        NanRule::Propagate => PerFormat {
            f16: f16::min_nan,
            bf16: bf16::min_nan,
            f32: num::min_nan,
            f64: num::min_nan64,
        }
        .apply(s, a, b),
    }
}

pub(super) fn max(rule: NanRule, s: Scalar, a: u64, b: u64) -> u64 {
    match rule {
        NanRule::Ignore => PerFormat {
            f16: f16::max,
            bf16: bf16::max,
            f32: num::max,
            f64: num::max64,
        }
        .apply(s, a, b),
        NanRule::Propagate => PerFormat {
            f16: f16::max_nan,
            bf16: bf16::max_nan,
            f32: num::max_nan,
            f64: num::max_nan64,
        }
        .apply(s, a, b),
    }
}

pub(super) fn fma(s: Scalar, a: u64, b: u64, c: u64) -> u64 {
    match s {
        Scalar::F16 => u64::from(f16::fma(a as u16, b as u16, c as u16)),
        Scalar::Bf16 => u64::from(bf16::fma(a as u16, b as u16, c as u16)),
        Scalar::F32 => {
            let [a, b, c] = [a, b, c].map(|x| f32::from_bits(x as u32));
            single(num::fma(a, b, c, Rounding::NearestEven))
        }
        Scalar::F64 => {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            num::canonical64(a.mul_add(b, c)).to_bits()
        }
        // Product and sum are exact in f64.
        Scalar::F8E4M3 | Scalar::F8E5M2 => {
            let format = format(s);
            let [a, b, c] = [a, b, c].map(|x| format.to_f64(x));
            format.from_f64(a * b + c, Rounding::NearestEven, format.overflow())
        }
        Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => no_float(s),
    }
}

/// Flips the sign of any pattern.
pub(super) fn neg(s: Scalar, x: u64) -> u64 {
    x ^ (1 << (s.bits() - 1))
}

/// Clears the sign of any pattern.
pub(super) fn abs(s: Scalar, x: u64) -> u64 {
    x & !(1 << (s.bits() - 1))
}

/// The magnitude of `a` with the sign of `b`, of any patterns.
pub(super) fn copysign(s: Scalar, a: u64, b: u64) -> u64 {
    abs(s, a) | (b & (1 << (s.bits() - 1)))
}

/// Whether `a` and `b` compare as the predicate says.
pub(super) fn compare(pred: FloatPred, s: Scalar, a: u64, b: u64) -> bool {
    let order = to_f64(s, a).partial_cmp(&to_f64(s, b));
    pred.holds(order)
}

/// A function of f32 computed in f64 and rounded once.
fn via_f64(x: f32, f: impl Fn(f64) -> f64) -> f32 {
    num::canonical(f(f64::from(x)) as f32)
}

/// A function given for f32 and for f64 as a function of bits.
pub(super) fn function(
    single_form: impl Fn(f32) -> f32,
    double_form: impl Fn(f64) -> f64,
) -> impl Fn(Scalar, u64) -> u64 {
    move |s, x| match s {
        Scalar::F64 => num::canonical64(double_form(f64::from_bits(x))).to_bits(),
        _ => single(single_form(f32::from_bits(x as u32))),
    }
}

/// A function of f64 for both formats.
pub(super) fn accurate(f: impl Fn(f64) -> f64) -> impl Fn(Scalar, u64) -> u64 {
    move |s, x| match s {
        Scalar::F64 => num::canonical64(f(f64::from_bits(x))).to_bits(),
        _ => single(via_f64(f32::from_bits(x as u32), &f)),
    }
}

/// The same for two operands.
pub(super) fn accurate2(f: impl Fn(f64, f64) -> f64) -> impl Fn(Scalar, u64, u64) -> u64 {
    move |s, x, y| match s {
        Scalar::F64 => num::canonical64(f(f64::from_bits(x), f64::from_bits(y))).to_bits(),
        _ => {
            let y = f64::from(f32::from_bits(y as u32));
            single(via_f64(f32::from_bits(x as u32), |x| f(x, y)))
        }
    }
}

/// Inverse hyperbolic cosine; `libm`'s gives numbers where there are none.
pub(super) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The number whose error function is x, by Newton's iteration on the function or, towards 1, on the logarithm of its
/// complement.
pub(super) fn erfinv(x: f64) -> f64 {
    use std::f64::consts::FRAC_2_SQRT_PI;
    let a = x.abs();
    if a >= 1.0 || a == 0.0 || x.is_nan() {
        return match a {
            0.0 => x,
            1.0 => f64::INFINITY.copysign(x),
            _ => f64::NAN,
        };
    }
    let mut y = a / FRAC_2_SQRT_PI;
    if a > 0.75 {
        y = (-(1.0 - a).ln()).sqrt() - 0.3;
    }
    for _ in 0..8 {
        let slope = FRAC_2_SQRT_PI * (-y * y).exp();
        y -= if a > 0.75 {
            let complement = libm::erfc(y);
            -(complement / (1.0 - a)).ln() * complement / slope
        } else {
            (libm::erf(y) - a) / slope
        };
    }
    y.copysign(x)
}

/// 2 to the power x; what is subnormal counts as 0.
pub(super) fn exp2(x: f32) -> f32 {
    num::ftz(via_f64(num::ftz(x), f64::exp2))
}

/// e to the power x by [`exp2`], which magnifies the rounding of the product: that is the op's definition.
pub(super) fn exp(x: f32) -> f32 {
    exp2(num::mul(x, std::f32::consts::LOG2_E, Rounding::NearestEven))
}

/// Subnormal arguments count as 0, with their sign.
pub(super) fn rsqrt(x: f32) -> f32 {
    via_f64(num::ftz(x), |x| 1.0 / x.sqrt())
}

/// Subnormal arguments count as 0, with their sign.
pub(super) fn sqrt(x: f32) -> f32 {
    via_f64(num::ftz(x), f64::sqrt)
}

pub(super) fn rcp(x: f32) -> f32 {
    num::rcp(x, Rounding::NearestEven)
}

/// The reciprocal without subnormal numbers.
pub(super) fn rcp_ftz(x: f32) -> f32 {
    num::ftz(rcp(num::ftz(x)))
}

/// Rounds to an integral number of the same format.
pub(super) fn integral(rounding: Rounding) -> impl Fn(Scalar, u64) -> u64 {
    move |s, x| {
        let rounded = num::round_to_integral(to_f64(s, x), rounding);
        format(s).from_f64(rounded, Rounding::NearestEven, Overflow::Ieee)
    }
}

/// From one floating-point format to another.
pub(super) fn convert(rounding: attrs::Rounding, from: Scalar, to: Scalar, x: u64) -> u64 {
    let rounding = match rounding {
        attrs::Rounding::Nearest => Rounding::NearestEven,
        attrs::Rounding::Zero => Rounding::Zero,
    };
    let to = format(to);
    to.from_f64(to_f64(from, x), rounding, to.overflow())
}

/// The number nearest to one of f64, ties to even.
pub(super) fn from_f64(to: Scalar, x: f64) -> u64 {
    let to = format(to);
    to.from_f64(num::canonical64(x), Rounding::NearestEven, to.overflow())
}

/// From an integer, signed or not.
pub(super) fn from_int(is_signed: bool, from: Scalar, to: Scalar, x: u64) -> u64 {
    let from = Int {
        signed: is_signed,
        bits: from.bits(),
    };
    num::int_to_float(x, from, format(to), Rounding::NearestEven)
}

/// To an integer, rounding to zero; too large saturates.
pub(super) fn to_int(is_signed: bool, from: Scalar, to: Scalar, x: u64) -> u64 {
    let target = Int {
        signed: is_signed,
        bits: to.bits(),
    };
    let result = num::float_to_saturated(to_f64(from, x), target, from == Scalar::F64);
    int::low_bits(to.bits(), result)
}
