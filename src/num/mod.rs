//! Bit-exact number formats and arithmetic, as NVIDIA GPUs define them.
//!
//! This is the one piece of code that the constant folder, the tile interpreter and the PTX
//! emulator share, so that the three agree on every bit; it is compared with plain references
//! here and with hardware elsewhere.
//!
//! Conventions:
//! - 16-bit and 8-bit floats travel as their bits (`u16`, `u8`); f32 and f64 as Rust values.
//! - Every result that is not a number is the canonical NaN of its format: `0x7fffffff` for f32,
//!   `0x7fff` for f16 and bf16, `0x7f` for both fp8 formats. Payloads never survive an operation
//!   of these formats. For f64 the canonical NaN is this crate's choice: PTX leaves it open. The few
//!   conversions in which hardware passes a payload on are the emulator's affair (`emu::lane`).
//! - Nothing flushes subnormals unless [`ftz`] is applied by the caller to operands and results.
//!
//! Method: a value of any format narrower than f64 widens to f64 exactly. An operation is done in
//! f64 and *rounded to odd* (an inexact result takes the neighbour whose last bit is one); f64 has
//! more than two bits beyond each narrower format, so one further rounding to the destination, in
//! any direction, gives the correctly rounded result (Boldo and Melquiond, "Emulation of a FMA
//! and correctly rounded sums: proved algorithms using rounding to odd", 2008).

mod approx;
mod arith;
mod convert;
mod format;
mod small;

pub use approx::{cos, ex2, lg2, rsqrt, sin, tanh};
pub use arith::{add, div, fma, mul, rcp, sqrt, sub};
pub use convert::{Int, float_to_int, float_to_saturated, int_to_float, round_to_integral};
pub use format::{Format, Overflow};
pub use small::{bf16, f16, fp8};

/// The NaN that f32 arithmetic yields.
pub const NAN_F32: f32 = f32::from_bits(0x7fff_ffff);
/// The NaN that f64 arithmetic yields here; PTX leaves the pattern open.
pub const NAN_F64: f64 = f64::from_bits(0x7fff_ffff_ffff_ffff);
/// The NaN that f16 and bf16 arithmetic yields.
pub const NAN_16: u16 = 0x7fff;

/// Direction of rounding, with PTX's names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even.
    NearestEven,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward negative infinity.
    Down,
    /// `.rp`: toward positive infinity.
    Up,
}

/// Replaces any f32 NaN by the canonical one.
#[inline]
pub fn canonical(x: f32) -> f32 {
    // Compared as bits: `sqrt` followed by `is_nan` is taken by LLVM to be one instruction, whose NaN on
    // x86 is another one.
    if x.to_bits() & 0x7fff_ffff > 0x7f80_0000 {
        NAN_F32
    } else {
        x
    }
}

/// Replaces any f64 NaN by the canonical one.
#[inline]
pub fn canonical64(x: f64) -> f64 {
    // As bits for the reason given in `canonical`.
    if x.to_bits() & i64::MAX as u64 > f64::INFINITY.to_bits() {
        NAN_F64
    } else {
        x
    }
}

/// `.ftz`: a subnormal becomes the zero of its sign.
#[inline]
pub fn ftz(x: f32) -> f32 {
    if x.is_subnormal() {
        f32::from_bits(x.to_bits() & 0x8000_0000)
    } else {
        x
    }
}

/// `.sat` for f32: clamps to [0, 1]; NaN and -0 become +0.
#[inline]
pub fn saturate(x: f32) -> f32 {
    // The order of the tests sends NaN and both zeros to +0.
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// `.sat` for f64: clamps to [0, 1]; NaN and -0 become +0.
#[inline]
pub fn saturate64(x: f64) -> f64 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

macro_rules! min_max {
    ($min:ident, $max:ident, $min_nan:ident, $max_nan:ident, $float:ty, $nan:expr) => {
        /// `min`: the operand that is a number if the other is NaN; -0 is below +0.
        #[inline]
        pub fn $min(a: $float, b: $float) -> $float {
            if a.is_nan() {
                return if b.is_nan() { $nan } else { b };
            }
            if a < b || b.is_nan() || (a == b && a.is_sign_negative()) {
                a
            } else {
                b
            }
        }

        /// `max`: the operand that is a number if the other is NaN; -0 is below +0.
        #[inline]
        pub fn $max(a: $float, b: $float) -> $float {
            if a.is_nan() {
                return if b.is_nan() { $nan } else { b };
            }
            if a > b || b.is_nan() || (a == b && a.is_sign_positive()) {
                a
            } else {
                b
            }
        }

        /// `min.NaN`: the canonical NaN if either operand is NaN.
        #[inline]
        pub fn $min_nan(a: $float, b: $float) -> $float {
            if a.is_nan() || b.is_nan() {
                $nan
            } else {
                $min(a, b)
            }
        }

        /// `max.NaN`: the canonical NaN if either operand is NaN.
        #[inline]
        pub fn $max_nan(a: $float, b: $float) -> $float {
            if a.is_nan() || b.is_nan() {
                $nan
            } else {
                $max(a, b)
            }
        }
    };
}
min_max!(min, max, min_nan, max_nan, f32, NAN_F32);
min_max!(min64, max64, min_nan64, max_nan64, f64, NAN_F64);

#[cfg(test)]
mod tests;
