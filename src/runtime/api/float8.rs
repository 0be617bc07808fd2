//! The floats of 8 bits that buffers hold. They are data: numbers are computed with in `f32`.

use std::fmt;

use crate::ir::types::Scalar;
use crate::num::Rounding;

macro_rules! floats {
    ($($(#[doc = $doc:literal])+ $name:ident)*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(u8);

        impl $name {
            /// The float of these bits.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// Its bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest to a number, of two the even one; beyond the largest as the conversions of kernels have it.
            pub fn from_f32(number: f32) -> $name {
                // It is a float, and has a format.
                let bits = Scalar::$name.format().map_or(0, |format| {
                    format.from_f64(number.into(), Rounding::NearestEven, format.overflow())
                });
                $name(bits as u8)
            }

            /// The number, which `f32` holds.
            pub fn to_f32(self) -> f32 {
                let number = Scalar::$name.format().map(|format| format.to_f64(self.0.into()));
                number.unwrap_or_default() as f32
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )*};
}

floats! {
    /// FP8 with 4 exponent bits and no infinities.
    ///
    /// ```
    /// use tilelift::runtime::F8E4M3;
    ///
    /// assert_eq!(F8E4M3::from_f32(1.06).to_f32(), 1.0);
    /// assert_eq!(F8E4M3::from_f32(-448.0).to_bits(), 0xfe);
    /// assert!(F8E4M3::from_f32(f32::NAN).to_f32().is_nan());
    /// ```
    F8E4M3
    /// FP8 with 5 exponent bits.
    F8E5M2
}
