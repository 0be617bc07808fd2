//! What was tried, and the rule of choice.

use std::fmt;
use std::time::Duration;

use super::config::Config;

/// What became of a configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Outcome {
    /// Its cost: milliseconds on a GPU, else what the emulator or a function says.
    Measured(#[cfg_attr(feature = "serde", serde(with = "cost"))] f64),
    /// Its cost after a few launches, far above the best so far.
    Hopeless(#[cfg_attr(feature = "serde", serde(with = "cost"))] f64),
    /// It was not tried, for this reason.
    Skipped(String),
    /// It was tried and did not work, for this reason.
    Failed(String),
}

/// A configuration and what became of it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Row {
    /// The configuration.
    pub config: Config,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Measured(cost) => write!(f, "{cost:>12.5}  {}", self.config),
            Outcome::Hopeless(cost) => write!(f, "{cost:>12.5}  {}  (given up early)", self.config),
            Outcome::Skipped(reason) => write!(f, "     skipped  {}: {reason}", self.config),
            Outcome::Failed(reason) => write!(f, "      failed  {}: {reason}", self.config),
        }
    }
}

/// A cost that is no number has no form in JSON but `null`.
#[cfg(feature = "serde")]
mod cost {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(cost: &f64, to: S) -> Result<S::Ok, S::Error> {
        cost.is_finite().then_some(cost).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Option::deserialize(from).map(|cost| cost.unwrap_or(f64::NAN))
    }
}

/// Whether the reasons differ in numbers alone, which are those of the configurations.
fn is_alike(a: &Outcome, b: &Outcome) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| c.is_ascii_digit());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    match (a, b) {
        (Outcome::Skipped(a), Outcome::Skipped(b)) | (Outcome::Failed(a), Outcome::Failed(b)) => {
            a == b || words(a) == words(b)
        }
        _ => false,
    }
}

/// The rows as lines, each with the number of its row. Rows that were skipped or failed alike are one line, at the first of
/// them and with its reason.
pub(super) fn lines(rows: &[Row]) -> impl Iterator<Item = (usize, String)> {
    /// Configurations that a line names.
    const NAMED: usize = 8;
    let is_cost = |row: &Row| matches!(row.outcome, Outcome::Measured(_) | Outcome::Hopeless(_));
    rows.iter().enumerate().filter_map(move |(i, row)| {
        if is_cost(row) {
            return Some((i, row.to_string()));
        }
        let alike = |other: &&Row| is_alike(&other.outcome, &row.outcome);
        if rows[..i].iter().any(|other| alike(&other)) {
            return None;
        }
        let configs: Vec<String> = rows[i..]
            .iter()
            .filter(alike)
            .map(|row| row.config.to_string())
            .collect();
        let (what, reason) = match &row.outcome {
            Outcome::Skipped(reason) => ("     skipped", reason),
            Outcome::Failed(reason) => ("      failed", reason),
            Outcome::Measured(_) | Outcome::Hopeless(_) => return None,
        };
        let named = configs[..configs.len().min(NAMED)].join(" | ");
        let more = match configs.len() - configs.len().min(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some((i, format!("{what}  {named}{more}: {reason}")))
    })
}

/// All that was tried, in the order of the list.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TuneReport {
    /// A row for each configuration.
    pub rows: Vec<Row>,
    /// The row that was chosen.
    pub chosen: usize,
    /// How many results were known from before.
    pub reused: usize,
    /// How long it took.
    pub wall: Duration,
}

impl fmt::Display for TuneReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, line) in lines(&self.rows) {
            let mark = if i == self.chosen { '*' } else { ' ' };
            writeln!(f, "{mark} {line}")?;
        }
        let (total, reused, wall) = (self.rows.len(), self.reused, self.wall.as_secs_f64());
        write!(
            f,
            "{total} configurations, {reused} known from before, {wall:.2} s"
        )
    }
}

/// The first row within a fraction `tie` of the lowest cost.
pub(super) fn choose(rows: &[Row], tie: f64) -> Option<usize> {
    let cost = |row: &Row| match row.outcome {
        Outcome::Measured(cost) if cost.is_finite() => Some(cost),
        _ => None,
    };
    let lowest = rows.iter().filter_map(cost).min_by(f64::total_cmp)?;
    let bound = lowest + lowest.abs() * tie;
    rows.iter()
        .position(|row| cost(row).is_some_and(|cost| cost <= bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_chosen() {
        let rows = |outcomes: &[Outcome]| -> Vec<Row> {
            let row = |outcome: &Outcome| Row {
                config: Config::new(),
                outcome: outcome.clone(),
            };
            outcomes.iter().map(row).collect()
        };
        let measured = Outcome::Measured;
        let failed = Outcome::Failed("broken".to_owned());
        let list = [
            measured(2.0),
            failed.clone(),
            measured(1.005),
            measured(1.0),
        ];
        assert_eq!(choose(&rows(&list), 0.01), Some(2));
        assert_eq!(choose(&rows(&list), 0.001), Some(3));
        assert_eq!(choose(&rows(&[failed, Outcome::Hopeless(0.1)]), 0.01), None);
        assert_eq!(
            choose(&rows(&[measured(f64::NAN), measured(3.0)]), 0.01),
            Some(1)
        );
        assert_eq!(choose(&[], 0.01), None);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn reports_come_back_from_json() {
        let row = |block: i32, outcome| Row {
            config: Config::new().constant("BLOCK", block),
            outcome,
        };
        let report = TuneReport {
            rows: vec![
                row(64, Outcome::Measured(0.1 + 0.2)),
                row(128, Outcome::Hopeless(3.5)),
                row(256, Outcome::Skipped("too large".to_owned())),
                row(512, Outcome::Failed("no memory".to_owned())),
            ],
            chosen: 0,
            reused: 1,
            wall: Duration::new(2, 5),
        };
        let json = serde_json::to_value(&report).expect("it is data");
        assert_eq!(
            json["rows"][2],
            serde_json::json!({
                "config": {"constants": {"BLOCK": 256}}, "outcome": {"skipped": "too large"},
            })
        );
        let read: TuneReport = serde_json::from_str(&json.to_string()).expect("as written");
        assert_eq!(read, report);
        let json = serde_json::to_string(&Outcome::Measured(f64::INFINITY)).expect("it is data");
        assert_eq!(json, r#"{"measured":null}"#);
        let read = serde_json::from_str(&json).expect("as written");
        assert!(matches!(read, Outcome::Measured(cost) if cost.is_nan()));
    }
}
