//! Seeded data, number formats on the host, and comparison within a tolerance.

use half::{bf16, f16};
use tilelift::ir::types::Scalar;

/// Unit roundoff of f32.
pub(crate) const U32: f64 = 1.0 / (1 << 24) as f64;

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, mean 0 and variance 1: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// How data is distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Data {
    /// Normal, mean 0 and variance 1.
    Normal,
    /// Uniform between -10,000 and 10,000.
    Wide,
    /// Normal with a quarter of negative infinities.
    Masked,
}

/// `count` numbers of a format, as f64.
pub(crate) fn numbers(data: Data, scalar: Scalar, count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let mut draw = || match data {
        Data::Normal => random.normal(),
        Data::Wide => (random.unit() - 0.5) * 2e4,
        Data::Masked if random.bits().is_multiple_of(4) => f64::NEG_INFINITY,
        Data::Masked => random.normal(),
    };
    (0..count).map(|_| rounded(scalar, draw())).collect()
}

/// `x` rounded to a format, to nearest even.
pub(crate) fn rounded(scalar: Scalar, x: f64) -> f64 {
    decode(scalar, &encode(scalar, &[x]))[0]
}

/// The bytes of numbers in a format.
pub(crate) fn encode(scalar: Scalar, numbers: &[f64]) -> Vec<u8> {
    let each = |x: &f64| -> Vec<u8> {
        match scalar {
            Scalar::F16 => f16::from_f64(*x).to_le_bytes().into(),
            Scalar::Bf16 => bf16::from_f64(*x).to_le_bytes().into(),
            Scalar::F32 => (*x as f32).to_le_bytes().into(),
            Scalar::F64 => x.to_le_bytes().into(),
            Scalar::I32 => (*x as i32).to_le_bytes().into(),
            Scalar::I8 => (*x as i8).to_le_bytes().into(),
            _ => panic!("no data of type {scalar}"),
        }
    };
    numbers.iter().flat_map(each).collect()
}

/// The numbers that bytes are in a format.
pub(crate) fn decode(scalar: Scalar, bytes: &[u8]) -> Vec<f64> {
    let each = |b: &[u8]| match (scalar, b) {
        (Scalar::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        (Scalar::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
        (Scalar::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (Scalar::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        (Scalar::I32, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
        _ => panic!("no data of type {scalar}"),
    };
    bytes.chunks(scalar.bytes() as usize).map(each).collect()
}

/// Unit roundoff of a format: half the distance from 1 to the next number.
pub(crate) fn unit_roundoff(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => 2f64.powi(-11),
        Scalar::Bf16 => 2f64.powi(-8),
        Scalar::F32 => U32,
        Scalar::F64 => 2f64.powi(-53),
        _ => panic!("no tolerance for type {scalar}"),
    }
}

/// Half the distance between subnormal numbers of the format; for formats with f32's exponents the smallest
/// normal f32, as subnormal f32 numbers may have been taken for 0 on the way.
pub(crate) fn smallest_error(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => 2f64.powi(-25),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Compares with expected numbers of which each has its tolerance for arithmetic in f32; one rounding to the format
/// is added. NaN equals NaN only, an infinity itself only.
pub(crate) fn close(
    what: &str,
    scalar: Scalar,
    found: &[u8],
    expected: impl ExactSizeIterator<Item = (f64, f64)>,
) -> Result<(), String> {
    let found = decode(scalar, found);
    if found.len() != expected.len() {
        return Err(format!(
            "{what}: {} elements, not {}",
            found.len(),
            expected.len()
        ));
    }
    for (i, (&found, (expected, tolerance))) in found.iter().zip(expected).enumerate() {
        let tolerance = tolerance
            + unit_roundoff(scalar) * (expected.abs() + tolerance)
            + smallest_error(scalar);
        let equal = found == expected || (found.is_nan() && expected.is_nan());
        let near = (found - expected).abs() <= tolerance;
        if !(equal || near) {
            return Err(format!(
                "{what}[{i}] is {found:e}, expected {expected:e} within {tolerance:e}"
            ));
        }
    }
    Ok(())
}
