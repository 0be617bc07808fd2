//! Contents of buffers: the same on every machine, because nothing but integer arithmetic and sums of
//! floats goes into them.

use crate::ir::types::{Elem, Scalar};
use crate::num::{Overflow, Rounding};
use crate::text::number;

/// What a buffer holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fill {
    /// Nothing that anyone may read.
    Poison,
    /// One number, as text.
    Const(String),
    /// Numbers that count up.
    Iota(i64),
    /// Mean 0, deviation 1, from a seed.
    Normal(u64),
    /// Between two numbers, from a seed.
    Uniform(u64, f64, f64),
    /// The numbers, as text.
    List(Vec<String>),
}

/// Distance between special values.
const SPECIAL_STRIDE: usize = 11;

/// The bytes of the elements as they lie in memory, or none for poison.
pub(super) fn fill(
    scalar: Scalar,
    count: usize,
    fill: &Fill,
    special: bool,
) -> Result<Option<Vec<u8>>, String> {
    let elem = Elem::Num(scalar);
    let size = scalar.bytes() as usize;
    let bytes = |bits: u64| bits.to_le_bytes().into_iter().take(size);
    let mut all: Vec<u8> = match fill {
        Fill::Poison if special => return Err("poison has no special values".into()),
        Fill::Poison => return Ok(None),
        Fill::Const(text) => {
            let element: Vec<u8> = bytes(number::parse(text, elem)?).collect();
            element.repeat(count)
        }
        Fill::Iota(start) => (0..count as i64)
            .flat_map(|i| bytes(from_i64(scalar, start.wrapping_add(i))))
            .collect(),
        Fill::Normal(_) if scalar.is_int() => {
            return Err("integers are not normal; use uniform".into());
        }
        Fill::Normal(seed) => {
            let mut random = Random::new(*seed);
            let mut all = Vec::with_capacity(count * size);
            for _ in 0..count {
                let element = from_f64(scalar, random.normal()).to_le_bytes();
                all.extend_from_slice(&element[..size]);
            }
            all
        }
        Fill::Uniform(_, low, high) if !(low.is_finite() && high.is_finite()) => {
            return Err("the ends of a range are finite numbers".into());
        }
        Fill::Uniform(_, low, high) if low > high => return Err("the range is empty".into()),
        Fill::Uniform(seed, low, high) => {
            let mut random = Random::new(*seed);
            let mut next = || {
                let x = random.unit();
                if scalar.is_int() {
                    (low + x * (high - low + 1.0)).floor()
                } else {
                    low + x * (high - low)
                }
            };
            (0..count)
                .flat_map(|_| bytes(from_f64(scalar, next())))
                .collect()
        }
        Fill::List(texts) if texts.len() != count => {
            return Err(format!("{} numbers for {count} elements", texts.len()));
        }
        Fill::List(texts) => {
            let bits = texts.iter().map(|text| number::parse(text, elem));
            let bits: Vec<u64> = bits.collect::<Result<_, _>>()?;
            bits.into_iter().flat_map(bytes).collect()
        }
    };
    if special {
        let values = special_values(scalar);
        let places = all.chunks_mut(size).skip(3).step_by(SPECIAL_STRIDE);
        for (place, &value) in places.zip(values.iter().cycle()) {
            place.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    Ok(Some(all))
}

/// The number nearest to `x` in the type; integers wrap, and i64 is exact.
fn from_i64(scalar: Scalar, x: i64) -> u64 {
    match number::format_of(scalar) {
        Some(_) => from_f64(scalar, x as f64),
        None => x as u64 & (u64::MAX >> (64 - scalar.bits())),
    }
}

/// The number nearest to `x` in the type; integers wrap.
fn from_f64(scalar: Scalar, x: f64) -> u64 {
    match number::format_of(scalar) {
        Some(format) => format.from_f64(x, Rounding::NearestEven, Overflow::Ieee),
        None => (x as i64 as u64) & (u64::MAX >> (64 - scalar.bits())),
    }
}

/// Numbers at which code goes wrong.
fn special_values(scalar: Scalar) -> Vec<u64> {
    let ones = u64::MAX >> (64 - scalar.bits());
    let sign = 1 << (scalar.bits() - 1);
    let Some(format) = number::format_of(scalar) else {
        return vec![0, ones, sign, sign - 1];
    };
    let mut values = vec![
        sign,
        format.max_finite,
        format.max_finite | sign,
        1,
        format.nan,
        (1 << format.mantissa_bits) | sign,
        0,
    ];
    if let Some(infinity) = format.infinity {
        values.extend([infinity, infinity | sign]);
    }
    values
}

/// A generator of 64-bit numbers: splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Twelve uniform numbers have variance 1 and nearly a normal sum.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}
