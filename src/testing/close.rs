//! Whether numbers are what they should be.

use crate::runtime::DType;

/// How far a number may be from what is expected: by `absolute + relative * |expected|` at most. NaN goes with NaN alone, and
/// infinities with themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// In parts of what is expected.
    pub relative: f64,
    /// In itself.
    pub absolute: f64,
}

impl Tolerance {
    /// Not at all, but for the sign of zero and the bits of a NaN.
    pub const EXACT: Tolerance = Tolerance {
        relative: 0.0,
        absolute: 0.0,
    };

    /// In parts of what is expected: 1e-6 is about ten roundings of `f32`.
    pub const fn relative(relative: f64) -> Tolerance {
        Tolerance {
            relative,
            absolute: 0.0,
        }
    }

    /// In itself, as is right for sums whose parts cancel.
    pub const fn absolute(absolute: f64) -> Tolerance {
        Tolerance {
            relative: 0.0,
            absolute,
        }
    }

    /// Whether a number is near enough.
    fn allows(self, found: f64, expected: f64) -> bool {
        found == expected
            || found.is_nan() && expected.is_nan()
            || expected.is_finite()
                && (found - expected).abs() <= self.absolute + self.relative * expected.abs()
    }
}

/// A number as bytes hold it.
#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Int(i128),
}

impl Number {
    fn read(dtype: DType, bytes: &[u8]) -> Number {
        let mut raw = [0; 8];
        raw[..bytes.len()].copy_from_slice(bytes);
        let raw = u64::from_le_bytes(raw);
        match dtype.scalar().format() {
            Some(format) => Number::Float(format.to_f64(raw)),
            None if dtype.is_unsigned() || dtype == DType::BOOL => Number::Int(raw.into()),
            None => {
                let unused = 64 - 8 * bytes.len() as u32;
                Number::Int((((raw << unused) as i64) >> unused).into())
            }
        }
    }

    fn text(self) -> String {
        match self {
            Number::Float(x) => format!("{x:?}"),
            Number::Int(n) => n.to_string(),
        }
    }
}

/// Elements that a message names.
const NAMED: usize = 4;

/// What is wrong with numbers of a format, as bytes; none if nothing is.
pub(super) fn wrong(
    dtype: DType,
    found: &[u8],
    expected: &[u8],
    tolerance: Tolerance,
) -> Option<String> {
    let size = dtype.bytes();
    let mut named = Vec::new();
    let (mut count, mut total) = (0_usize, 0_usize);
    let mut furthest = 0.0_f64;
    let pairs = found.chunks_exact(size).zip(expected.chunks_exact(size));
    for (i, (found, expected)) in pairs.enumerate() {
        total += 1;
        if found == expected {
            continue;
        }
        let (found, expected) = (Number::read(dtype, found), Number::read(dtype, expected));
        let off = match (found, expected) {
            (Number::Float(found), Number::Float(expected)) => {
                if tolerance.allows(found, expected) {
                    continue;
                }
                Some((found - expected).abs())
            }
            _ => None,
        };
        count += 1;
        furthest = off.map_or(furthest, |off| furthest.max(off));
        if named.len() < NAMED {
            named.push(format!(
                "[{i}] is {}, expected {}",
                found.text(),
                expected.text()
            ));
        }
    }
    if count == 0 {
        return None;
    }
    let more = if count > NAMED { "; and more" } else { "" };
    let bound = match dtype.scalar().format() {
        Some(_) => format!(
            " (off by {furthest:e} at most; allowed are {:e} + {:e} of what is expected)",
            tolerance.absolute, tolerance.relative
        ),
        None => String::new(),
    };
    Some(format!(
        "{count} of {total} elements are wrong: {}{more}{bound}",
        named.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_near_enough_or_not() {
        let bytes =
            |list: &[f32]| -> Vec<u8> { list.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let check = |found: f32, expected: f32, tolerance| {
            wrong(DType::F32, &bytes(&[found]), &bytes(&[expected]), tolerance).is_none()
        };
        let inf = f32::INFINITY;
        for (found, expected, tolerance, is_right) in [
            (1.0, 1.0, Tolerance::EXACT, true),
            (0.0, -0.0, Tolerance::EXACT, true),
            (f32::NAN, -f32::NAN, Tolerance::EXACT, true),
            (f32::NAN, 1.0, Tolerance::absolute(f64::INFINITY), false),
            (1.0, f32::NAN, Tolerance::absolute(9.0), false),
            (1.0, inf, Tolerance::relative(1.0), false),
            (inf, -inf, Tolerance::absolute(9.0), false),
            (1.125, 1.0, Tolerance::relative(0.125), true),
            (1.25, 1.0, Tolerance::relative(0.125), false),
            (1.25, 1.0, Tolerance::absolute(0.25), true),
        ] {
            assert_eq!(
                check(found, expected, tolerance),
                is_right,
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn messages_name_the_first() {
        let found: Vec<u8> = (0..8_i16).flat_map(|n| (-n).to_le_bytes()).collect();
        let expected: Vec<u8> = (0..8_i16).flat_map(i16::to_le_bytes).collect();
        let message = wrong(DType::I16, &found, &expected, Tolerance::relative(9.0));
        let text = "7 of 8 elements are wrong: [1] is -1, expected 1; [2] is -2, expected 2; [3] is -3, expected 3; [4] is -4, \
                    expected 4; and more";
        assert_eq!(message.as_deref(), Some(text));
        let message = wrong(DType::U8, &[255], &[1], Tolerance::EXACT);
        assert_eq!(
            message.as_deref(),
            Some("1 of 1 elements are wrong: [0] is 255, expected 1")
        );
        let message = wrong(DType::F8E5M2, &[0x3c], &[0x40], Tolerance::EXACT);
        assert!(message.is_some_and(|m| m.contains("[0] is 1.0, expected 2.0 (off by 1e0")));
    }
}
