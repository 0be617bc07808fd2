//! Conversions between integers and floats by the rules of PTX's `cvt`.

use super::{Format, Rounding};

/// An integer type: signedness and width in bits (8, 16, 32 or 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// Whether the type has negative values.
    pub signed: bool,
    /// Width in bits.
    pub bits: u32,
}

impl Int {
    /// Smallest value.
    pub fn min(self) -> i128 {
        if self.signed {
            -(1 << (self.bits - 1))
        } else {
            0
        }
    }

    /// Largest value.
    pub fn max(self) -> i128 {
        (1 << (self.bits - u32::from(self.signed))) - 1
    }

    /// The value of the low bits of `raw` in this type.
    pub fn value(self, raw: u64) -> i128 {
        let shift = 64 - self.bits;
        if self.signed {
            i128::from((raw << shift) as i64 >> shift)
        } else {
            i128::from(raw << shift >> shift)
        }
    }
}

/// Rounds to an integral value (`cvt.{rni,rzi,rmi,rpi}` between floats); exact.
pub fn round_to_integral(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::NearestEven => x.round_ties_even(),
        Rounding::NearestAway => x.round(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
    }
}

/// `cvt.{rni,rzi,rmi,rpi}` from a float to an integer: clamps to the type's range; the result is
/// sign- or zero-extended to 64 bits.
///
/// NaN gives zero when neither side is 64 bits wide, else `1 << (bits - 1)`: `from_f64` says
/// whether the source was f64 (narrower sources widen to the `x` given without loss).
pub fn float_to_int(x: f64, rounding: Rounding, to: Int, from_f64: bool) -> u64 {
    if x.is_nan() {
        if !from_f64 && to.bits < 64 {
            return 0;
        }
        return to.value(1 << (to.bits - 1)) as u64;
    }
    // `as` clamps, and 128 bits hold every bound.
    (round_to_integral(x, rounding) as i128).clamp(to.min(), to.max()) as u64
}

/// Rounds to zero and clamps to the type's range; what is narrower than 32 bits is clamped from 32 bits, which decides
/// what becomes of NaN. The result is sign- or zero-extended to 64 bits.
pub fn float_to_saturated(x: f64, to: Int, from_f64: bool) -> u64 {
    let wide = Int {
        bits: to.bits.max(32),
        ..to
    };
    let result = wide.value(float_to_int(x, Rounding::Zero, wide, from_f64));
    result.clamp(to.min(), to.max()) as u64
}

/// An integer of type `from`, in the low bits of `raw`, rounded to a float format; what is too large for 8 bits
/// becomes the largest number.
pub fn int_to_float(raw: u64, from: Int, to: Format, rounding: Rounding) -> u64 {
    let value = from.value(raw);
    to.round(
        value < 0,
        value.unsigned_abs() as u64,
        0,
        rounding,
        to.overflow(),
    )
}
