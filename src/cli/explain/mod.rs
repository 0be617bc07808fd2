//! `tilelift explain`: a kernel after every pass, as text or as a page.

pub(super) mod html;
mod page;

use std::fmt::Write as _;
use std::process::ExitCode;

use similar::TextDiff;

use super::args::ExplainArgs;
use super::input::Kernel;
use super::progress::Progress;
use super::{Failure, Result, write_out};
use crate::compile::compile_with;
use crate::pipeline::Snapshot;
use crate::text::print::{NoNotes, Numbering, print_with};
use crate::text::quote::{escape, quoted};

/// Unchanged lines around a difference.
const CONTEXT: usize = 2;
/// Column in which lines of the source start, if there is room.
const SOURCE_COLUMN: usize = 72;
/// What comes first and last, beside the passes.
const FIRST: &str = "read";
const LAST: &str = "ptx";

/// Shows the kernel after every pass. A pass that changes nothing is named all the same.
pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    let kernel = Kernel::load(&args.kernel)?;
    let progress = Progress::new(format!("compiling {}", kernel.func.name));
    if let Some(path) = &args.html {
        let page = page::page(args, &kernel, &progress)?.text();
        drop(progress);
        write_out(Some(path), &page)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut story = Story::new(args, &kernel);
    let result = compile_with(
        &kernel.func,
        kernel.target,
        &kernel.options,
        &mut |pass, snapshot| story.pass(pass, &snapshot),
    );
    drop(progress);
    // What was seen on the way helps most when the way ends early.
    if let Ok(compiled) = &result {
        if args.only.is_empty() {
            for load in &compiled.stats.promotions {
                story.out += &format!("\n; --- {load}\n");
            }
        }
        if story.shows(LAST) {
            story.head(&format!("PTX for {}", kernel.target));
            story.out += &compiled.ptx;
        }
    }
    write_out(None, &story.out)?;
    result.map_err(|e| kernel.refused(&e))?;
    story.check_names(&args.only)?;
    Ok(ExitCode::SUCCESS)
}

/// What is written as the passes go by.
struct Story<'a> {
    args: &'a ExplainArgs,
    /// The source, if lines of the IR are its lines.
    source: Option<Vec<&'a str>>,
    /// What the kernel was after the last pass: its text to be shown, and to be compared.
    last: (String, String),
    /// The level that it was on.
    level: &'static str,
    /// Passes so far.
    passes: Vec<String>,
    out: String,
}

impl<'a> Story<'a> {
    fn new(args: &'a ExplainArgs, kernel: &'a Kernel) -> Story<'a> {
        let read = Snapshot::Tile(&kernel.func);
        let mut story = Story {
            args,
            source: kernel
                .has_lines
                .then(|| kernel.source.text.lines().collect()),
            last: texts(&read),
            level: level(&read),
            passes: Vec::new(),
            out: String::new(),
        };
        if story.shows(FIRST) {
            story.head("as it was read");
            story.out += &story.beside_source(&story.last.0);
        }
        story
    }

    /// Whether a pass is wanted: by its name, or by what it has before `_again`.
    fn shows(&self, pass: &str) -> bool {
        let only = &self.args.only;
        only.is_empty() || only.iter().any(|name| is_called(pass, name))
    }

    fn head(&mut self, words: &str) {
        let gap = if self.out.is_empty() { "" } else { "\n" };
        _ = writeln!(self.out, "{gap}; --- {words}");
    }

    fn pass(&mut self, pass: &str, snapshot: &Snapshot<'_>) {
        let now = texts(snapshot);
        let is_same = now.0 == self.last.0;
        // Another level has no line in common with the one before.
        let level = level(snapshot);
        if self.shows(pass) {
            if is_same {
                self.head(&format!("{pass} changes nothing"));
            } else if (self.args.diff || self.args.html.is_some()) && level == self.level {
                self.head(&format!("what {pass} changes"));
                self.out += &self.difference(&now.1);
            } else {
                self.head(&format!("after {pass}"));
                self.out += &self.beside_source(&now.0);
            }
        }
        self.passes.push(pass.to_owned());
        (self.last, self.level) = (now, level);
    }
    /// The lines that a pass changes: `-` before, `+` after. Values have the numbers of the tables, which stay.
    fn difference(&self, now: &str) -> String {
        let (before, now) = (self.beside_source(&self.last.1), self.beside_source(now));
        let diff = TextDiff::from_lines(&before, &now);
        let mut text = diff.unified_diff().context_radius(CONTEXT).to_string();
        if text.is_empty() {
            text += "; numbers of values alone\n";
        }
        text
    }

    /// A text of the IR with the line of the source behind each instruction whose line is another than that above.
    fn beside_source(&self, text: &str) -> String {
        let Some(source) = &self.source else {
            return text.to_owned();
        };
        let mut out = String::new();
        let mut last = 0;
        for line in text.lines() {
            let number = line_of(line).unwrap_or(last);
            let words = source.get(number.wrapping_sub(1)).map(|line| line.trim());
            match words {
                Some(words) if number != last && !words.is_empty() => {
                    _ = writeln!(out, "{line:SOURCE_COLUMN$} ; {}", escape(words));
                }
                _ => _ = writeln!(out, "{line}"),
            }
            last = number;
        }
        out
    }

    /// A name that no pass has is a mistake of the command line.
    fn check_names(&self, only: &[String]) -> Result<()> {
        let known = |name: &&String| {
            let mut all = self.passes.iter().map(String::as_str).chain([FIRST, LAST]);
            all.any(|pass| is_called(pass, name))
        };
        let Some(name) = only.iter().find(|name| !known(name)) else {
            return Ok(());
        };
        let passes = self.passes.iter().map(String::as_str);
        let known: Vec<&str> = [FIRST].into_iter().chain(passes).chain([LAST]).collect();
        Err(Failure::Usage(format!(
            "--only {}: no pass has this name; there are {}",
            quoted(name),
            known.join(", ")
        )))
    }
}

/// Whether a name means a pass; one that runs twice has `_again` behind its name.
fn is_called(pass: &str, name: &str) -> bool {
    pass == name || pass.strip_suffix("_again") == Some(name)
}

/// The level of a snapshot; machine code before and after allocation has other registers.
fn level(snapshot: &Snapshot<'_>) -> &'static str {
    match snapshot {
        Snapshot::Tile(_) => "tile",
        Snapshot::Thread(_) => "thread",
        Snapshot::Machine(_) => "machine",
    }
}

/// The text to be shown, and one to be compared, whose numbers do not move when an instruction goes.
fn texts(snapshot: &Snapshot<'_>) -> (String, String) {
    let own = Numbering::Own;
    match snapshot {
        Snapshot::Tile(func) => (func.to_string(), print_with(func, own, &NoNotes)),
        Snapshot::Thread(func) => (func.to_string(), print_with(func, own, &NoNotes)),
        Snapshot::Machine(code) => (code.to_string(), code.to_string()),
    }
}

/// The line of the source that an instruction names at its end: `@7`, and ` {` where regions follow.
fn line_of(text: &str) -> Option<usize> {
    let text = text.strip_suffix(" {").unwrap_or(text);
    text.rsplit_once(" @")?.1.parse().ok()
}
