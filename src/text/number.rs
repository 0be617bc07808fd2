//! Constants in the text form: bits to decimal and back, for every element type.

use super::quote::quoted;
use crate::ir::types::{Elem, Scalar};
use crate::num::{Format, Overflow, Rounding};

/// The floating-point format of an element type.
pub(crate) fn format_of(scalar: Scalar) -> Option<Format> {
    match scalar {
        Scalar::F16 => Some(Format::F16),
        Scalar::Bf16 => Some(Format::BF16),
        Scalar::F32 => Some(Format::F32),
        Scalar::F64 => Some(Format::F64),
        Scalar::F8E4M3 => Some(Format::E4M3),
        Scalar::F8E5M2 => Some(Format::E5M2),
        Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => None,
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits).unwrap_or(0)
}

/// The number of type `elem` with these bits. Bits above the type's width are dropped.
pub(crate) fn print(bits: u64, elem: Elem) -> String {
    let bits = bits & mask(elem.bits());
    let Some(scalar) = elem.scalar() else {
        return format!("{bits:#x}");
    };
    let Some(format) = format_of(scalar) else {
        let shift = 64 - scalar.bits();
        return match scalar {
            Scalar::I1 if bits == 0 => "false".to_owned(),
            Scalar::I1 => "true".to_owned(),
            _ => (((bits << shift) as i64) >> shift).to_string(),
        };
    };
    if bits == format.nan {
        return "nan".to_owned();
    }
    let value = format.to_f64(bits);
    if value.is_nan() {
        return format!("nan:{bits:#x}");
    }
    if value.is_infinite() {
        return value.to_string();
    }
    match scalar {
        Scalar::F64 => format!("{value:?}"),
        Scalar::F32 => format!("{:?}", value as f32),
        _ => shortest(value, bits, &format),
    }
}

/// A decimal that rounds to `bits`, whose value is `value`: the exact one if it is short, else the one
/// with the fewest digits.
fn shortest(value: f64, bits: u64, format: &Format) -> String {
    let exact = format!("{value:?}");
    if exact.len() <= 8 {
        return exact;
    }
    let candidates = (0..17).map(|digits| format!("{value:.digits$e}").parse::<f64>());
    let rounds_back = |&x: &f64| round(x, format) == bits;
    // Seventeen digits give the f64 itself, so the fallback only states what cannot happen.
    let found = candidates.flatten().find(rounds_back).unwrap_or(value);
    format!("{found:?}")
}

fn round(value: f64, format: &Format) -> u64 {
    format.from_f64(value, Rounding::NearestEven, Overflow::Ieee)
}

/// The bits of the number `text` as type `elem`, or what is wrong with it.
pub(crate) fn parse(text: &str, elem: Elem) -> Result<u64, String> {
    let width = elem.bits();
    let fits = |bits: u64| {
        if bits & !mask(width) == 0 {
            Ok(bits)
        } else {
            Err(format!("{} has more bits than {elem}", quoted(text)))
        }
    };
    if let Some(hex) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16);
        return bits.map_err(|_| not_a(text, elem)).and_then(fits);
    }
    let Some(scalar) = elem.scalar() else {
        return text.parse().map_err(|_| not_a(text, elem)).and_then(fits);
    };
    let Some(format) = format_of(scalar) else {
        return parse_int(text, scalar);
    };
    if let Some(hex) = text.strip_prefix("nan:0x") {
        let bits = u64::from_str_radix(hex, 16).map_err(|_| not_a(text, elem))?;
        return match fits(bits)? {
            bits if format.to_f64(bits).is_nan() => Ok(bits),
            _ => Err(format!("the bits of {} are no NaN of {elem}", quoted(text))),
        };
    }
    let sign = 1 << (width - 1);
    match (text, format.infinity) {
        ("nan", _) => return Ok(format.nan),
        ("-nan", _) => return Ok(format.nan | sign),
        ("inf", Some(bits)) => return Ok(bits),
        ("-inf", Some(bits)) => return Ok(bits | sign),
        ("inf" | "-inf", None) => return Err(format!("{elem} has no infinity")),
        _ => {}
    }
    // Words such as `infinity` are numbers to the standard library but not here.
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) || text.starts_with("-i") {
        return Err(not_a(text, elem));
    }
    // f32 is parsed as such: through f64 it would be rounded twice. The narrower formats are, which
    // differs from one rounding for no decimal of fewer than 17 digits.
    let bits = match scalar {
        Scalar::F32 => text
            .parse::<f32>()
            .map(|x| u64::from(x.to_bits()))
            .map_err(|_| not_a(text, elem))?,
        _ => round(text.parse().map_err(|_| not_a(text, elem))?, &format),
    };
    if format.to_f64(bits).is_finite() {
        Ok(bits)
    } else {
        Err(format!("{} is too large for {elem}", quoted(text)))
    }
}

fn parse_int(text: &str, scalar: Scalar) -> Result<u64, String> {
    match (scalar, text) {
        (Scalar::I1, "true") => return Ok(1),
        (Scalar::I1, "false") => return Ok(0),
        _ => {}
    }
    let number: i128 = text.parse().map_err(|_| not_a(text, Elem::Num(scalar)))?;
    let (low, high) = (-(1i128 << (scalar.bits() - 1)), 1i128 << scalar.bits());
    if number < low || number >= high {
        return Err(format!("{} does not fit {scalar}", quoted(text)));
    }
    Ok(number as u64 & mask(scalar.bits()))
}

fn not_a(text: &str, elem: Elem) -> String {
    let word = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
    let hint = match word.as_str() {
        "nan" | "inf" | "infinity" if elem.is_float() => "; write nan, inf or -inf",
        _ => "",
    };
    format!("{} is not a number of type {elem}{hint}", quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_float_round_trips() {
        for scalar in [Scalar::F16, Scalar::Bf16, Scalar::F8E4M3, Scalar::F8E5M2] {
            let elem = Elem::Num(scalar);
            for bits in 0..1u64 << scalar.bits() {
                let text = print(bits, elem);
                assert_eq!(parse(&text, elem), Ok(bits), "{scalar} {bits:#x} as {text}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        let f16 = |x| Format::F16.from_f64(x, Rounding::NearestEven, Overflow::Ieee);
        let cases = [
            (f16(0.1), Elem::F16, "0.1"),
            (0x7e, Elem::Num(Scalar::F8E4M3), "448.0"),
            (u64::from(0.1f32.to_bits()), Elem::F32, "0.1"),
            (u64::from((-0.0f32).to_bits()), Elem::F32, "-0.0"),
            (0x7fff_ffff, Elem::F32, "nan"),
            (0xffc0_0001, Elem::F32, "nan:0xffc00001"),
            (f64::NEG_INFINITY.to_bits(), Elem::F64, "-inf"),
            (1e300f64.to_bits(), Elem::F64, "1e300"),
            (0xff, Elem::Num(Scalar::I8), "-1"),
            (u64::MAX, Elem::I64, "-1"),
            (1, Elem::I1, "true"),
            (0x1000, Elem::global(Scalar::F32), "0x1000"),
        ];
        for (bits, elem, text) in cases {
            assert_eq!(print(bits, elem), text);
            assert_eq!(parse(text, elem), Ok(bits), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cases = [
            ("256", Elem::Num(Scalar::I8)),
            ("-129", Elem::Num(Scalar::I8)),
            ("0x100", Elem::Num(Scalar::I8)),
            ("1.5", Elem::I32),
            ("1e39", Elem::F32),
            ("1e5", Elem::F16),
            ("inf", Elem::Num(Scalar::F8E4M3)),
            ("infinity", Elem::F32),
            ("-infinity", Elem::F64),
            ("nan:0x0", Elem::F32),
            ("2", Elem::I1),
            ("-1", Elem::global(Scalar::F32)),
        ];
        for (text, elem) in cases {
            assert!(parse(text, elem).is_err(), "{text} as {elem}");
        }
        assert_eq!(parse("255", Elem::Num(Scalar::I8)), Ok(255));
    }
}
