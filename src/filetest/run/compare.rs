//! Compares buffers element by element.

use std::fmt;

use rustc_hash::FxHashMap;

use super::exec::{ArgValue, Argument, Contents};
use crate::ir::types::{Elem, Scalar};
use crate::text::number;
use crate::text::quote::quoted;

/// How far an element may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// The same bits, or both NaN.
    Exact,
    /// As far as the bounds that the ops state allow, see [`crate::interp::run_bounded`]; exact as long as these are not known.
    Stated,
    /// As many representable numbers away; the zeros are one number.
    Ulp(u64),
    /// Away by this part of the reference's size.
    Relative(f64),
    /// Away by this much.
    Absolute(f64),
}

impl fmt::Display for Bound {
    /// What elements are that keep the bound.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Exact => f.write_str("equal"),
            Bound::Stated => f.write_str("within the bounds of their ops"),
            Bound::Ulp(n) => write!(f, "within ulp {n}"),
            Bound::Relative(x) => write!(f, "within rel {x:?}"),
            Bound::Absolute(x) => write!(f, "within abs {x:?}"),
        }
    }
}

/// How far elements of a buffer may be from the reference, and the type that they were stored as; others are exact.
pub(super) type Distances = FxHashMap<usize, (Scalar, f64)>;

/// A buffer that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The parameter's name.
    pub(super) name: String,
    /// What is wrong with it.
    pub(super) message: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", quoted(&self.name), self.message)
    }
}

/// Compares every buffer; the message names the first element of the first that differs.
pub(super) fn compare_buffers(
    args: &[Argument],
    bounds: &[Bound],
    stated: Option<&[Distances]>,
    expected: &[Option<Contents>],
    found: &[Option<Contents>],
) -> Result<(), Mismatch> {
    let all = args.iter().zip(bounds).zip(expected).zip(found);
    for (index, (((arg, bound), expected), found)) in all.enumerate() {
        let ArgValue::Buffer { scalar, .. } = &arg.it else {
            continue;
        };
        let result = match (expected, found) {
            (Some(expected), Some(found)) => {
                let stated = stated.and_then(|stated| stated.get(index));
                let stated = stated.filter(|_| *bound == Bound::Stated);
                compare_buffer(*scalar, *bound, stated, expected, found)
            }
            _ => Err("the buffer is missing".to_owned()),
        };
        result.map_err(|message| Mismatch {
            name: arg.name.clone(),
            message,
        })?;
    }
    Ok(())
}

fn compare_buffer(
    scalar: Scalar,
    bound: Bound,
    stated: Option<&Distances>,
    expected: &Contents,
    found: &Contents,
) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} elements, not {}", found.len(), expected.len()));
    }
    let text = |bits: Option<u64>| match bits {
        Some(bits) => number::print(bits, Elem::Num(scalar)),
        None => "nothing".to_owned(),
    };
    let mut wrong = 0;
    let mut first = None;
    // The least bound in ulp that allows all; none for what is not near.
    let mut near = NEAR;
    for i in expected.differing(found).flatten() {
        let (e, f) = (expected.get(i), found.get(i));
        let fits = match (e, f) {
            (Some(e), Some(f)) => match stated.and_then(|stated| stated.get(&i)) {
                Some(&(stored, distance)) => is_near(scalar, stored, distance, e, f),
                None => is_within(scalar, bound, e, f),
            },
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !fits {
            wrong += 1;
            first.get_or_insert((i, e, f));
            near = match (e, f) {
                (Some(e), Some(f)) => near_enough(near, |n| is_within(scalar, Bound::Ulp(n), e, f)),
                _ => &[],
            };
        }
    }
    match first {
        None => Ok(()),
        Some((i, e, f)) => {
            let hint = match near {
                _ if bound == Bound::Stated => {
                    let distance = stated.and_then(|stated| stated.get(&i));
                    distance.map_or(String::new(), |(_, distance)| {
                        format!(" (bound {distance:.3e})")
                    })
                }
                [n, ..] if scalar.is_float() && bound == Bound::Exact => {
                    format!("; `expect NAME {}` would allow all", Bound::Ulp(*n))
                }
                _ => String::new(),
            };
            Err(format!(
                "{wrong} of {} elements are not {bound}; the first is [{i}], {} instead of {}{hint}",
                expected.len(),
                text(f),
                text(e)
            ))
        }
    }
}

/// Bounds in ulp that what PTX approximates may need.
const NEAR: &[u64] = &[1, 2, 4];

/// The bounds from the first on that fits.
fn near_enough(bounds: &[u64], fits: impl Fn(u64) -> bool) -> &[u64] {
    let first = bounds.iter().position(|&n| fits(n));
    &bounds[first.unwrap_or(bounds.len())..]
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
        let stated: Vec<Option<u64>> = stated.collect::<Result<_, String>>()?;
        let stated = Contents::new(*scalar, stated.into_iter());
        return compare_buffer(*scalar, Bound::Exact, None, &stated, contents)
            .map_err(|message| format!("`{}`: {message}", quoted(name)));
    }
    Err(format!("there is no buffer `{}`", quoted(name)))
}

/// Elements that nothing is known of.
pub(super) fn unbounded(scalar: Scalar, distances: &Distances) -> usize {
    let all = distances.values();
    all.filter(|&&(stored, distance)| is_open(scalar, stored, distance))
        .count()
}

/// Whether nothing is known of an element of a type, by the type that it was stored as and its distance.
fn is_open(scalar: Scalar, stored: Scalar, distance: f64) -> bool {
    distance.is_infinite() || (stored != scalar && stored.is_float())
}

/// Whether an element is as far from the reference as its bound allows, which is one of the type it was stored as.
fn is_near(scalar: Scalar, stored: Scalar, distance: f64, expected: u64, found: u64) -> bool {
    if is_open(scalar, stored, distance) {
        return true;
    }
    let steps = distance.ceil() as u64;
    let bound = match scalar.is_float() && !stored.is_float() {
        true => Bound::Ulp(steps),
        false => Bound::Absolute(distance),
    };
    is_within(scalar, bound, expected, found)
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
            Bound::Exact | Bound::Stated => false,
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
        Bound::Exact | Bound::Stated => false,
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
