//! f16, bf16 and the two fp8 formats, as bits.

macro_rules! half_format {
    ($(#[$doc:meta])* $name:ident, $format:expr, $wide:path) => {
        $(#[$doc])*
        pub mod $name {
            use crate::num::{Format, NAN_16, Overflow, Rounding, arith};

            /// The format as data.
            pub const FORMAT: Format = $format;

            /// The exact value as f32; a NaN becomes the canonical one.
            #[inline]
            pub fn to_f32(bits: u16) -> f32 {
                super::super::canonical(<$wide>::from_bits(bits).to_f32())
            }

            /// The exact value as f64; a NaN becomes the canonical one.
            #[inline]
            pub fn to_f64(bits: u16) -> f64 {
                super::super::canonical64(f64::from(<$wide>::from_bits(bits).to_f32()))
            }

            /// Rounds to nearest even.
            #[inline]
            pub fn from_f32(x: f32) -> u16 {
                if x.is_nan() {
                    NAN_16
                } else {
                    <$wide>::from_f32(x).to_bits()
                }
            }

            /// Rounds in the given direction.
            pub fn from_f64(x: f64, rounding: Rounding) -> u16 {
                FORMAT.from_f64(x, rounding, Overflow::Ieee) as u16
            }

            fn nearest(x: f64) -> u16 {
                from_f64(x, Rounding::NearestEven)
            }

            /// `a + b`, correctly rounded.
            pub fn add(a: u16, b: u16) -> u16 {
                nearest(arith::add_odd(to_f64(a), to_f64(b)))
            }

            /// `a - b`, correctly rounded.
            pub fn sub(a: u16, b: u16) -> u16 {
                nearest(arith::add_odd(to_f64(a), -to_f64(b)))
            }

            /// `a * b`, correctly rounded.
            pub fn mul(a: u16, b: u16) -> u16 {
                nearest(to_f64(a) * to_f64(b))
            }

            /// `a * b + c`, rounded once.
            pub fn fma(a: u16, b: u16, c: u16) -> u16 {
                nearest(arith::add_odd(to_f64(a) * to_f64(b), to_f64(c)))
            }

            /// `a / b`, correctly rounded. PTX has no such instruction; front ends widen.
            pub fn div(a: u16, b: u16) -> u16 {
                nearest(arith::div_odd(to_f64(a), to_f64(b)))
            }

            /// `min`: the number if one operand is NaN; -0 is below +0.
            pub fn min(a: u16, b: u16) -> u16 {
                from_f32(super::super::min(to_f32(a), to_f32(b)))
            }

            /// `max`: the number if one operand is NaN; -0 is below +0.
            pub fn max(a: u16, b: u16) -> u16 {
                from_f32(super::super::max(to_f32(a), to_f32(b)))
            }

            /// `min.NaN`: the canonical NaN if either operand is NaN.
            pub fn min_nan(a: u16, b: u16) -> u16 {
                from_f32(super::super::min_nan(to_f32(a), to_f32(b)))
            }

            /// `max.NaN`: the canonical NaN if either operand is NaN.
            pub fn max_nan(a: u16, b: u16) -> u16 {
                from_f32(super::super::max_nan(to_f32(a), to_f32(b)))
            }

            /// Whether the pattern is a NaN.
            pub fn is_nan(bits: u16) -> bool {
                <$wide>::from_bits(bits).is_nan()
            }

            /// A subnormal becomes the zero of its sign.
            pub fn ftz(bits: u16) -> u16 {
                let fraction = (1 << FORMAT.mantissa_bits) - 1;
                if bits & 0x7fff <= fraction { bits & 0x8000 } else { bits }
            }
        }
    };
}

half_format!(
    /// IEEE binary16 held in a `u16`.
    f16, Format::F16, ::half::f16
);
half_format!(
    /// bfloat16 held in a `u16`.
    bf16, Format::BF16, ::half::bf16
);

/// The 8-bit formats: e4m3 (no infinity, largest value 448) and e5m2.
pub mod fp8 {
    use crate::num::{Format, Overflow, Rounding};

    /// The exact value of an e4m3 pattern.
    pub fn e4m3_to_f32(bits: u8) -> f32 {
        super::super::canonical(Format::E4M3.to_f64(u64::from(bits)) as f32)
    }

    /// The exact value of an e5m2 pattern.
    pub fn e5m2_to_f32(bits: u8) -> f32 {
        super::super::canonical(Format::E5M2.to_f64(u64::from(bits)) as f32)
    }

    /// `cvt.rn.satfinite` to e4m3: too large and infinite become 448, NaN becomes `0x7f`.
    pub fn e4m3_from_f32(x: f32) -> u8 {
        Format::E4M3.from_f64(f64::from(x), Rounding::NearestEven, Overflow::Finite) as u8
    }

    /// `cvt.rn.satfinite` to e5m2: too large and infinite become 57344, NaN becomes `0x7f`.
    pub fn e5m2_from_f32(x: f32) -> u8 {
        Format::E5M2.from_f64(f64::from(x), Rounding::NearestEven, Overflow::Finite) as u8
    }
}
