//! The table of an estimate.

use std::fmt;

use super::{Estimate, Resource};

/// Resources that are less busy than this are left out.
const LEAST: f64 = 0.01;

impl Estimate {
    /// What bounds the launch: the busiest resource, or none if nothing is busy most of the time and what counts is waiting.
    #[must_use]
    pub fn bound(&self) -> Option<Resource> {
        let &(resource, busy) = self.busy.first()?;
        (busy > 0.5).then_some(resource)
    }
}

/// As in
///
/// ```text
/// expected time            163.2 us
/// bound by                 tensor cores
/// busy: tensor cores       93 %
/// busy: L2 cache           72 %
/// ```
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:24} {value}");
        row("expected time", format!("{:.1} us", self.micros))?;
        row(
            "bound by",
            self.bound().map_or("latency", Resource::name).to_owned(),
        )?;
        for &(resource, busy) in self.busy.iter().filter(|(_, busy)| *busy >= LEAST) {
            row(
                &format!("busy: {}", resource.name()),
                format!("{:.0} %", 100.0 * busy),
            )?;
        }
        row("resident CTAs", self.resident.to_string())?;
        row("waves", format!("{:.2}", self.waves))?;
        row("persistent", self.persistent.to_string())?;
        if self.guessed {
            row(
                "depends on data",
                "branches are taken not to be taken".to_owned(),
            )?;
        }
        Ok(())
    }
}
