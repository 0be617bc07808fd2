//! What a `; run:` line did, as a table for people.

use std::fmt;

use super::exec::{ArgValue, Argument, Contents, Job, Printed};
use crate::device_print::CAPACITY;
use crate::ir::types::Elem;
use crate::text::number;

/// Elements of a buffer that are shown.
const SHOWN: usize = 8;
/// Lines that a kernel prints that are shown where nothing is said.
pub(super) const PRINTED: usize = 64;

/// A run: who ran it, and what the reference left in the buffers that it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Line of the file, first is 1.
    pub line: u32,
    /// Kernel, grid and target.
    pub title: String,
    /// Names and what is said of them, in order.
    pub rows: Vec<(String, String)>,
}

impl Summary {
    pub(super) fn new(line: u32, job: &Job<'_>) -> Summary {
        let [x, y, z] = job.grid;
        let title = format!(
            "@{} on a grid of {x} x {y} x {z} for {}",
            job.func.name, job.target
        );
        Summary {
            line,
            title,
            rows: Vec::new(),
        }
    }

    pub(super) fn of_ptx(name: &str, [x, y, z]: [u32; 3], block: [u32; 3]) -> Summary {
        let [bx, by, bz] = block;
        Summary {
            line: 0,
            title: format!(
                "{name} on a grid of {x} x {y} x {z} CTAs of {bx} x {by} x {bz} threads"
            ),
            rows: Vec::new(),
        }
    }

    /// The first lines that a kernel printed, at most so many, and how many there are beside these.
    pub(super) fn printed(&mut self, printed: &Printed, most: usize) {
        for line in printed.lines.iter().take(most) {
            self.add("prints", line.clone());
        }
        let more = printed.lines.len().saturating_sub(most);
        if more > 0 {
            let all = printed.lines.len();
            self.add(
                "prints",
                format!("and {more} lines more (--prints {all} shows them)"),
            );
        }
        if printed.lost > 0 {
            let lost = format!(
                "and {} lines that are lost: the log of a launch holds {CAPACITY} (run fewer programs, or print under a condition)",
                printed.lost
            );
            self.add("prints", lost);
        }
    }

    pub(super) fn add(&mut self, name: &str, verdict: String) {
        self.rows.push((name.to_owned(), verdict));
    }

    /// The first elements of each buffer that is not as it was before.
    pub(super) fn buffers(&mut self, args: &[Argument], after: &[Option<Contents>]) {
        for (arg, after) in args.iter().zip(after) {
            let (ArgValue::Buffer { scalar, bytes, .. }, Some(after)) = (&arg.it, after) else {
                continue;
            };
            if after.is_still(bytes.as_deref()) {
                continue;
            }
            let shown = after.iter().take(SHOWN).map(|element| match element {
                Some(bits) => number::print(bits, Elem::Num(*scalar)),
                None => "poison".to_owned(),
            });
            let mut text = shown.collect::<Vec<_>>().join(", ");
            if after.len() > SHOWN {
                text += ", ..";
            }
            let name = format!("{}: {scalar}[{}]", arg.name, after.len());
            self.add(&name, format!("[{text}]"));
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            // The line is not that of a file.
            0 => writeln!(f, "{}", self.title)?,
            line => writeln!(f, "line {line}: {}", self.title)?,
        }
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0);
        for (name, verdict) in &self.rows {
            writeln!(f, "  {name:width$}  {verdict}")?;
        }
        Ok(())
    }
}
