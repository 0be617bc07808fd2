//! Compares buffers element by element.

use std::fmt;

use rustc_hash::FxHashMap;

use super::exec::{ArgValue, Argument, Contents};
use crate::interp::{Cause, Distance, Open};
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
    /// Away by this part of the size of what is expected.
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

/// How far elements of a buffer may be from the reference; others are exact.
pub(super) type Distances = FxHashMap<usize, Distance>;

/// A buffer that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The parameter's name.
    pub(super) name: String,
    /// What is wrong with it.
    pub(super) message: String,
    /// What the first element that differs is made of that no bound follows for.
    pub(super) cause: Option<Cause>,
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
                compare_buffer(*scalar, *bound, stated, expected, found)
            }
            _ => Err(("the buffer is missing".to_owned(), None)),
        };
        result.map_err(|(message, cause)| Mismatch {
            name: arg.name.clone(),
            message,
            cause,
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
) -> Result<(), (String, Option<Cause>)> {
    if expected.len() != found.len() {
        // Executors leave buffers as long as they are.
        let message = format!(
            "{} elements are stated of a buffer of {}",
            expected.len(),
            found.len()
        );
        return Err((message, None));
    }
    // What no bound follows for is told whatever the bound, and allowed where it is this.
    let causes = stated;
    let stated = stated.filter(|_| bound == Bound::Stated);
    let text = |bits: Option<u64>| match bits {
        Some(bits) => number::print(bits, Elem::Num(scalar)),
        None => "nothing".to_owned(),
    };
    let mut wrong = 0;
    let mut first = None;
    // Where all that is wrong has no bound but its bits, these are what is told.
    let mut has_bound = false;
    // The least bound in ulp that allows all; none for what is not near.
    let mut near = NEAR;
    for i in expected.differing(found).flatten() {
        let (e, f) = (expected.get(i), found.get(i));
        let fits = match (e, f) {
            (Some(e), Some(f)) => match stated.and_then(|stated| stated.get(&i)) {
                Some(distance) => is_near(scalar, distance, e, f),
                None => is_within(scalar, bound, e, f),
            },
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !fits {
            wrong += 1;
            first.get_or_insert((i, e, f));
            has_bound |= stated.is_some_and(|stated| stated.contains_key(&i));
            near = match (e, f) {
                (Some(e), Some(f)) => near_enough(near, |n| is_within(scalar, Bound::Ulp(n), e, f)),
                _ => &[],
            };
        }
    }
    match first {
        None => Ok(()),
        Some((i, e, f)) => {
            let bound = match bound {
                Bound::Stated if !has_bound => Bound::Exact,
                bound => bound,
            };
            let hint = match near {
                _ if bound == Bound::Stated => {
                    let distance = stated.and_then(|stated| stated.get(&i));
                    let distance = distance.filter(|distance| distance.by.is_finite());
                    distance.map_or(String::new(), |distance| {
                        format!(" (bound {:.3e})", distance.by)
                    })
                }
                [n, ..] if scalar.is_float() && bound == Bound::Exact => {
                    format!("; `expect NAME {}` would allow all", Bound::Ulp(*n))
                }
                _ => String::new(),
            };
            let message = format!(
                "{wrong} of {} elements are not {bound}; the first is [{i}], {} instead of {}{hint}",
                expected.len(),
                text(f),
                text(e)
            );
            let cause = causes.and_then(|causes| causes.get(&i)?.cause);
            Err((message, cause))
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

/// How many elements nothing is known of, beside those that are not defined, and what the first of them comes from.
pub(super) fn unbounded(scalar: Scalar, distances: &Distances) -> (usize, Option<Cause>) {
    counted(distances, |distance| {
        !is_undefined(distance) && is_open(scalar, distance)
    })
}

/// Whether nothing is known of an element, and it is another number than the reference has.
pub(super) fn is_open_and_other(
    scalar: Scalar,
    distance: &Distance,
    stated: &Contents,
    reference: &Contents,
    i: usize,
) -> bool {
    let both = [stated, reference].map(|held| (i < held.len()).then(|| held.get(i)).flatten());
    let [Some(e), Some(f)] = both else {
        return false;
    };
    is_open(scalar, distance) && !is_within(scalar, Bound::Exact, e, f)
}

/// How many elements are made of what is not defined, and what the first of them comes from.
pub(super) fn undefined(distances: &Distances) -> (usize, Option<Cause>) {
    counted(distances, is_undefined)
}

fn counted(distances: &Distances, is_meant: impl Fn(&Distance) -> bool) -> (usize, Option<Cause>) {
    let meant = distances.iter().filter(|(_, distance)| is_meant(distance));
    let first = meant.clone().min_by_key(|(index, _)| **index);
    let cause = first.and_then(|(_, distance)| distance.cause);
    (meant.count(), cause)
}

/// Whether there is no right number.
pub(super) fn is_undefined(distance: &Distance) -> bool {
    distance.cause.is_some_and(|cause| cause.why.is_undefined())
}

/// Whether nothing is known of an element of a type. Where a region does not do what it must, there is a right number nonetheless,
/// or else that would not show.
fn is_open(scalar: Scalar, distance: &Distance) -> bool {
    if distance.cause.is_some_and(|cause| cause.why == Open::Order) {
        return false;
    }
    distance.by.is_infinite() || (distance.stored != scalar && distance.stored.is_float())
}

/// Whether an element is as far from the reference as its bound allows, which is one of the type it was stored as.
fn is_near(scalar: Scalar, distance: &Distance, expected: u64, found: u64) -> bool {
    if is_open(scalar, distance) {
        return true;
    }
    let Distance { stored, by, .. } = *distance;
    if by.is_infinite() {
        return is_within(scalar, Bound::Exact, expected, found);
    }
    let bound = match scalar.is_float() && !stored.is_float() {
        true => Bound::Ulp(by.ceil() as u64),
        false => Bound::Absolute(by),
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
