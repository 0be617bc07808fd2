//! The values that a sweep gives to names.

use std::collections::BTreeMap;

use crate::cli::{Failure, Result};
use crate::filetest::expression::{Bindings, name_length, replace};

/// Most points of a sweep.
const MOST: usize = 4096;

/// A name and what it is, one after the other.
pub(super) struct Swept {
    pub(super) name: String,
    values: Vec<String>,
}

/// Values of all names at once.
pub(super) type Point = Vec<(String, String)>;

impl Swept {
    /// `NAME=a,b,c`, or `NAME=FIRST..LAST` by doubling, or by `+STEP` or `*FACTOR` behind it; pieces may be mixed.
    pub(super) fn parse(entry: &str) -> Result<Swept> {
        let wrong = |why: &str| Failure::Usage(format!("--sweep {entry}: {why}"));
        let (name, list) = entry
            .split_once('=')
            .filter(|(name, _)| !name.is_empty() && name_length(name) == name.len())
            .ok_or_else(|| wrong("expected NAME=VALUES"))?;
        let mut values = Vec::new();
        for piece in list.split(',').map(str::trim) {
            match piece.split_once("..") {
                None if piece.is_empty() => return Err(wrong("a value is missing")),
                None => values.push(piece.to_owned()),
                Some((first, rest)) => values.extend(range(first, rest).ok_or_else(|| {
                    wrong("a range is FIRST..LAST, FIRST..LAST+STEP or FIRST..LAST*FACTOR, upwards")
                })?),
            }
        }
        let name = name.to_owned();
        Ok(Swept { name, values })
    }
}

/// The numbers of a range.
fn range(first: &str, rest: &str) -> Option<Vec<String>> {
    let (last, step, factor) = match (rest.split_once('+'), rest.split_once('*')) {
        (Some((last, step)), _) => (last, step.parse().ok()?, 1),
        (None, Some((last, factor))) => (last, 0, factor.parse().ok()?),
        (None, None) => (rest, 0, 2),
    };
    let (mut at, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let mut values = Vec::new();
    while at <= last {
        values.push(at.to_string());
        let next = at.checked_mul(factor)?.checked_add(step)?;
        if next <= at || values.len() > MOST {
            return None;
        }
        at = next;
    }
    (!values.is_empty()).then_some(values)
}

/// Every combination, the last name fastest; one without names if nothing is swept.
pub(super) fn points(sweep: &[Swept]) -> Result<Vec<Point>> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for Swept { name, values } in sweep {
        if sweep.iter().filter(|other| other.name == *name).count() > 1 {
            return Err(Failure::Usage(format!("--sweep {name}: it is swept twice")));
        }
        let each = |point: &Point| -> Vec<Point> {
            let with = |value: &String| {
                let mut point = point.clone();
                point.push((name.clone(), value.clone()));
                point
            };
            values.iter().map(with).collect()
        };
        points = points.iter().flat_map(each).collect();
        if points.len() > MOST {
            let message = format!("--sweep: more than {MOST} points");
            return Err(Failure::Usage(message));
        }
    }
    Ok(points)
}

/// Names with their values, in one list for a text's `$`.
#[derive(Clone)]
pub(in crate::cli) struct Names(Point);

impl Names {
    /// What is given from outside.
    pub(in crate::cli) fn new(given: &[(String, String)]) -> Names {
        Names(given.to_vec())
    }

    /// Adds what is not known yet.
    pub(in crate::cli) fn add(&mut self, name: &str, value: &str) {
        if !self.0.iter().any(|(known, _)| known == name) {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Adds the numbers that a run line gives to parameters.
    pub(in crate::cli) fn add_numbers_of(&mut self, line: &str) {
        let arguments = line.split(';').next().unwrap_or_default();
        for word in arguments.split_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            if let Ok(value) = self.replace(value)
                && value.parse::<i64>().is_ok()
            {
                self.add(name, &value);
            }
        }
    }

    /// A text with `$NAME` and `$(..)` replaced.
    pub(in crate::cli) fn replace(&self, text: &str) -> std::result::Result<String, String> {
        let values = self.0.iter();
        let values: Bindings<'_> = values.map(|(name, value)| (&**name, &**value)).collect();
        replace(text, &values)
    }

    /// What an option's text comes to.
    pub(in crate::cli) fn option(&self, option: &str, text: &str) -> Result<String> {
        let made = self.replace(text);
        made.map_err(|problem| Failure::Usage(format!("{option}: {problem}")))
    }

    /// The number that an expression without `$` comes to.
    pub(super) fn number(&self, option: &str, text: &str) -> Result<u64> {
        let values: BTreeMap<&str, &str> = self
            .0
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let number = crate::filetest::expression::evaluate(text, &values);
        let number = number.and_then(|number| {
            number
                .parse()
                .map_err(|_| format!("{number} is no whole number"))
        });
        number.map_err(|problem| Failure::Usage(format!("{option}: {problem}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_double_or_step() {
        for (entry, expected) in [
            ("N=1,5,tl.x", "1 5 tl.x"),
            ("N=128..1024", "128 256 512 1024"),
            ("N=3..20", "3 6 12"),
            ("N=100..130+10", "100 110 120 130"),
            ("N=1..30*3,64", "1 3 9 27 64"),
        ] {
            let swept = Swept::parse(entry).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(swept.values.join(" "), expected, "{entry}");
        }
        for wrong in [
            "N",
            "=1",
            "a-b=1",
            "N=",
            "N=1,",
            "N=8..4",
            "N=0..8",
            "N=1..9+0",
            "N=1..9*1",
            "N=a..b",
            "N=1..99999999+1",
        ] {
            assert!(Swept::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_combinations_are_points() {
        let sweep = ["M=1,2", "N=3,4"].map(|e| Swept::parse(e).unwrap_or_else(|e| panic!("{e}")));
        let points = points(&sweep).unwrap_or_else(|e| panic!("{e}"));
        let texts = points.iter().map(|point| {
            let values = point.iter().map(|(name, value)| format!("{name}{value}"));
            values.collect::<String>()
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["M1N3", "M1N4", "M2N3", "M2N4"]);
    }

    #[test]
    fn numbers_of_a_line_have_their_names() {
        let mut names = Names::new(&[("N".to_owned(), "100".to_owned())]);
        let line = "grid($(cdiv(n,64))) x=f32[$(m*N)] zeros n=$N m=3 s=0.5 ; expect x = [1]";
        names.add_numbers_of(line);
        assert_eq!(
            names.replace(line).as_deref(),
            Ok("grid(2) x=f32[300] zeros n=100 m=3 s=0.5 ; expect x = [1]")
        );
        let number = names
            .number("--flops", "2*n*m")
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(number, 600);
        assert!(names.number("--flops", "n-200").is_err());
    }
}
