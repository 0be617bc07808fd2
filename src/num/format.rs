//! Floating-point formats as data, and the one routine that rounds into them.

use super::Rounding;

/// A binary floating-point format of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Width of the exponent field in bits.
    pub exponent_bits: u32,
    /// Stored bits of the significand.
    pub mantissa_bits: u32,
    /// Bits of the largest finite value.
    pub max_finite: u64,
    /// Bits of positive infinity, if the format has one.
    pub infinity: Option<u64>,
    /// Bits of the canonical NaN.
    pub nan: u64,
}

/// What a finite value too large for the format becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// What the rounding direction says: infinity or the largest finite value.
    Ieee,
    /// `.satfinite`: the largest finite value, for infinities too.
    Finite,
}

impl Format {
    const fn ieee(exponent_bits: u32, mantissa_bits: u32, nan: u64) -> Format {
        let infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
        Format {
            exponent_bits,
            mantissa_bits,
            max_finite: infinity - 1,
            infinity: Some(infinity),
            nan,
        }
    }

    /// IEEE binary64.
    pub const F64: Format = Format::ieee(11, 52, 0x7fff_ffff_ffff_ffff);
    /// IEEE binary32.
    pub const F32: Format = Format::ieee(8, 23, 0x7fff_ffff);
    /// IEEE binary16.
    pub const F16: Format = Format::ieee(5, 10, 0x7fff);
    /// The upper half of binary32.
    pub const BF16: Format = Format::ieee(8, 7, 0x7fff);
    /// The 19 upper bits of binary32; a tf32 register holds them shifted left by 13.
    pub const TF32: Format = Format::ieee(8, 10, 0x3ffff);
    /// fp8 e5m2: a short binary16.
    pub const E5M2: Format = Format::ieee(5, 2, 0x7f);
    /// fp8 e4m3: no infinity, one NaN of each sign, largest value 448.
    pub const E4M3: Format = Format {
        exponent_bits: 4,
        mantissa_bits: 3,
        max_finite: 0x7e,
        infinity: None,
        nan: 0x7f,
    };

    /// What the IR makes of results too large for the format: those of 8 bits saturate, the others have infinity.
    pub fn overflow(&self) -> Overflow {
        if self.sign_bit() < 8 {
            Overflow::Finite
        } else {
            Overflow::Ieee
        }
    }

    const fn sign_bit(&self) -> u32 {
        self.exponent_bits + self.mantissa_bits
    }

    const fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Rounds `significand * 2^exponent` (negated if `negative`) to this format.
    pub fn round(
        &self,
        negative: bool,
        significand: u64,
        exponent: i32,
        rounding: Rounding,
        overflow: Overflow,
    ) -> u64 {
        let sign = u64::from(negative) << self.sign_bit();
        if significand == 0 {
            return sign;
        }
        let mantissa = self.mantissa_bits as i32;
        let smallest_normal = 1 - self.bias();
        let top = 63 - significand.leading_zeros() as i32 + exponent;
        // The exponent of the last bit kept.
        let quantum = top.max(smallest_normal) - mantissa;
        let shift = quantum - exponent;
        let (mut kept, rest, half) = if shift <= 0 {
            (significand << -shift, 0, 1)
        } else if shift < 64 {
            let rest = significand & ((1 << shift) - 1);
            (significand >> shift, rest, 1 << (shift - 1))
        } else {
            // Less than half a quantum: any non-zero rest below `half` will do.
            (
                0,
                1,
                if shift == 64 {
                    significand_half(significand)
                } else {
                    2
                },
            )
        };
        let up = rest != 0
            && match rounding {
                Rounding::NearestEven => rest > half || (rest == half && kept & 1 == 1),
                Rounding::NearestAway => rest >= half,
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
        kept += u64::from(up);
        // A carry out of the significand moves to the exponent field by itself, from subnormals
        // to normals too.
        let field = (top - smallest_normal).max(0) as u64;
        let bits = (field << mantissa) + kept;
        if bits <= self.max_finite {
            return sign | bits;
        }
        let to_infinity = match rounding {
            Rounding::NearestEven | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        let bits = match (overflow, to_infinity) {
            (Overflow::Ieee, true) => self.infinity.unwrap_or(self.nan),
            _ => self.max_finite,
        };
        sign | bits
    }

    /// Rounds an f64 to this format; NaN becomes the canonical one.
    pub fn from_f64(&self, x: f64, rounding: Rounding, overflow: Overflow) -> u64 {
        let bits = x.to_bits();
        let negative = bits >> 63 == 1;
        let field = (bits >> 52 & 0x7ff) as i32;
        let mantissa = bits & ((1 << 52) - 1);
        match field {
            0x7ff if mantissa != 0 => self.nan,
            0x7ff => {
                let sign = u64::from(negative) << self.sign_bit();
                match (overflow, self.infinity) {
                    (Overflow::Ieee, Some(infinity)) => sign | infinity,
                    (Overflow::Ieee, None) => sign | self.nan,
                    (Overflow::Finite, _) => sign | self.max_finite,
                }
            }
            0 => self.round(negative, mantissa, -1074, rounding, overflow),
            _ => self.round(
                negative,
                mantissa | 1 << 52,
                field - 1075,
                rounding,
                overflow,
            ),
        }
    }

    /// The exact value of `bits`, which must be a pattern of this format; NaN is canonical.
    pub fn to_f64(&self, bits: u64) -> f64 {
        let magnitude = bits & ((1 << self.sign_bit()) - 1);
        let negative = bits >> self.sign_bit() & 1 == 1;
        let value = if magnitude <= self.max_finite {
            let field = (magnitude >> self.mantissa_bits) as i32;
            let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
            let scale = field.max(1) - self.bias() - self.mantissa_bits as i32;
            let hidden = u64::from(field > 0) << self.mantissa_bits;
            let all = Format::F64.round(
                false,
                mantissa | hidden,
                scale,
                Rounding::NearestEven,
                Overflow::Ieee,
            );
            f64::from_bits(all)
        } else if Some(magnitude) == self.infinity {
            f64::INFINITY
        } else {
            return super::NAN_F64;
        };
        if negative { -value } else { value }
    }
}

/// Stands for half a quantum where the quantum is 2^64 units: compares with a rest of one as the
/// significand compares with 2^63.
fn significand_half(significand: u64) -> u64 {
    match significand.cmp(&(1 << 63)) {
        std::cmp::Ordering::Less => 2,
        std::cmp::Ordering::Equal => 1,
        std::cmp::Ordering::Greater => 0,
    }
}
