//! Compares buffers element by element.

use super::exec::{ArgValue, Argument, Contents};
use crate::ir::types::{Elem, Scalar};
use crate::text::number;

/// How far an element may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// The same bits, or both NaN.
    Exact,
    /// As many representable numbers away; the zeros are one number.
    Ulp(u64),
    /// Away by this part of the reference's size.
    Relative(f64),
    /// Away by this much.
    Absolute(f64),
}

/// Compares every buffer; the message names the worst element of the first that differs.
pub(super) fn compare_buffers(
    args: &[Argument],
    bounds: &[Bound],
    expected: &[Option<Contents>],
    found: &[Option<Contents>],
) -> Result<(), String> {
    for (((arg, bound), expected), found) in args.iter().zip(bounds).zip(expected).zip(found) {
        let ArgValue::Buffer { scalar, .. } = &arg.it else {
            continue;
        };
        let (Some(expected), Some(found)) = (expected, found) else {
            return Err(format!("buffer `{}` is missing", arg.name));
        };
        compare_buffer(*scalar, *bound, expected, found)
            .map_err(|message| format!("`{}`: {message}", arg.name))?;
    }
    Ok(())
}

fn compare_buffer(
    scalar: Scalar,
    bound: Bound,
    expected: &Contents,
    found: &Contents,
) -> Result<(), String> {
    if expected.0.len() != found.0.len() {
        return Err(format!(
            "{} elements, not {}",
            found.0.len(),
            expected.0.len()
        ));
    }
    let text = |bits: Option<u64>| match bits {
        Some(bits) => number::print(bits, Elem::Num(scalar)),
        None => "nothing".to_owned(),
    };
    let mut wrong = 0;
    let mut first = None;
    for (i, (&e, &f)) in expected.0.iter().zip(&found.0).enumerate() {
        let fits = match (e, f) {
            (Some(e), Some(f)) => is_within(scalar, bound, e, f),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !fits {
            wrong += 1;
            first.get_or_insert((i, e, f));
        }
    }
    match first {
        None => Ok(()),
        Some((i, e, f)) => Err(format!(
            "{wrong} of {} elements are not within {bound:?}; the first is [{i}], {} instead of {}",
            expected.0.len(),
            text(f),
            text(e)
        )),
    }
}

/// Compares what the reference left in a buffer with numbers in text form.
pub(super) fn compare_values(
    args: &[Argument],
    expected: &[Option<Contents>],
    name: &str,
    texts: &[String],
) -> Result<(), String> {
    for (arg, contents) in args.iter().zip(expected) {
        let (ArgValue::Buffer { scalar, .. }, Some(contents)) = (&arg.it, contents) else {
            continue;
        };
        if arg.name != name {
            continue;
        }
        let elem = Elem::Num(*scalar);
        let stated = texts.iter().map(|text| match text.as_str() {
            "poison" => Ok(None),
            _ => number::parse(text, elem).map(Some),
        });
        let stated = Contents(stated.collect::<Result<_, _>>()?);
        return compare_buffer(*scalar, Bound::Exact, &stated, contents)
            .map_err(|message| format!("`{name}`: {message}"));
    }
    Err(format!("there is no buffer `{name}`"))
}

fn is_within(scalar: Scalar, bound: Bound, expected: u64, found: u64) -> bool {
    if expected == found {
        return true;
    }
    let Some(format) = number::format_of(scalar) else {
        let value = |bits: u64| {
            let shift = 64 - scalar.bits();
            i128::from(((bits << shift) as i64) >> shift)
        };
        let distance = (value(expected) - value(found)).unsigned_abs();
        return match bound {
            Bound::Exact => false,
            Bound::Ulp(n) => distance <= u128::from(n),
            Bound::Relative(x) => distance as f64 <= x * value(expected).unsigned_abs() as f64,
            Bound::Absolute(x) => distance as f64 <= x,
        };
    };
    let (e, f) = (format.to_f64(expected), format.to_f64(found));
    if e.is_nan() || f.is_nan() {
        return e.is_nan() && f.is_nan();
    }
    match bound {
        Bound::Exact => false,
        Bound::Ulp(n) => {
            // Signed magnitude to a number line on which neighbours differ by one.
            let sign = 1u64 << (scalar.bits() - 1);
            let line = |bits: u64| {
                let magnitude = i128::from(bits & (sign - 1));
                if bits & sign == 0 {
                    magnitude
                } else {
                    -magnitude
                }
            };
            (line(expected) - line(found)).unsigned_abs() <= u128::from(n)
        }
        // An infinity is matched by itself alone, which was seen above.
        Bound::Relative(_) | Bound::Absolute(_) if e.is_infinite() || f.is_infinite() => false,
        Bound::Relative(x) => (e - f).abs() <= x * e.abs(),
        Bound::Absolute(x) => (e - f).abs() <= x,
    }
}
