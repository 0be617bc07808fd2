//! File tests: `.tir` files that say in comments what is to be done with them and what comes out.
//!
//! ```text
//! ; test: parse                 the file can be read; with `; error:` comments: it has exactly these mistakes
//! ; test: roundtrip             printing what was read gives the text of the file, comments aside
//! ; test: verify                every function is valid; with `; error:` comments: it breaks exactly these rules
//! ; test: ptx sm_80 [flags]     the text at a stage (opt, layout, shared, thread, ptx, stats) is as expected
//! ; test: run [sm_80] [flags]   the `; run:` lines hold on interpreter, emulator and GPU
//! ```
//!
//! Flags are `no-fp-fusion`, `no-promotion`, `debug` (assertions report), `trap` (they trap), `line-info`, `maxnreg=N` and `diversity=SEED`
//! ([`crate::settings::diversity`]). A comment belongs to the function it stands in or follows, or to the first one.
//!
//! - `; error: CODE words` stands on the guilty line. Code, line and words must all match, and a violation
//!   without a comment fails the test. Without a code it expects the compiler to refuse the function.
//! - `; check: words` lines must occur in the text in this order, `; not: words` must not occur between its neighbours.
//! - Without `check` lines the expected text of a stage is the block of comments right after the
//!   function, compared as a whole. In a file with several stage tests it has a section for each, headed by the
//!   words of the test: `; == ptx sm_80`. `BLESS=1` rewrites it in place.
//! - `; run:` lines are described in [`run`].
//!
//! A file with `; with: N=16 type=f32` lines stands for one file for each of them, in which `$N` and `$type` are what the line says.

mod directive;
mod expect;
pub(crate) mod expression;
pub mod run;
mod stages;
mod with;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::text::located;
use crate::text::parse::{Checks, Lines, ParseError, Pos, parse_file, parse_file_with};
use crate::verify::VerifierErrors;

use directive::{Directives, TestKind};
pub use with::{FileVariant, variants};

/// How file tests are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestConfig<'a> {
    /// Rewrite expectations instead of comparing with them.
    pub bless: bool,
    /// Steps that a `; run:` line may take if it does not say so itself; see [`run`].
    pub steps: Option<u64>,
    /// The folder that names of files in `; run:` lines are relative to; none for that of the process.
    pub folder: Option<&'a Path>,
}

impl TestConfig<'_> {
    /// What the environment asks for: `BLESS=1` rewrites.
    pub fn from_env() -> Self {
        TestConfig {
            bless: std::env::var_os("BLESS").is_some_and(|value| value == "1"),
            steps: None,
            folder: None,
        }
    }
}

/// Why a file test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where; line 0 for the file as a whole, column 0 for the line as a whole.
    pub pos: Pos,
    /// Code of a mistake in the text or of a broken rule, else empty.
    pub code: &'static str,
    /// What is not as it should be.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Failure {
        Failure::at(Pos { line, column: 0 }, message)
    }

    pub(crate) fn at(pos: Pos, message: impl Into<String>) -> Failure {
        Failure {
            pos,
            code: "",
            message: message.into(),
        }
    }

    /// The failure as commands print it, with the line of the file's `text` and a caret under the place.
    pub fn show(&self, file: &str, text: &str) -> String {
        located::message(file, text, self.pos, self.code, &self.message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pos.line, self.pos.column) {
            (0, _) => {}
            (line, 0) => write!(f, "line {line}: ")?,
            (line, column) => write!(f, "line {line}:{column}: ")?,
        }
        if !self.code.is_empty() {
            write!(f, "{}: ", self.code)?;
        }
        f.write_str(&self.message)
    }
}

/// What a test did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestReport {
    /// What is not as it should be.
    pub failures: Vec<Failure>,
    /// What could not be tried here, each once.
    pub skipped: Vec<String>,
    /// What `; run:` lines did.
    pub runs: Vec<run::Summary>,
    /// The text with expectations rewritten, if that was asked for and changes it.
    pub blessed: Option<String>,
    /// Lines of the text that expectations are rewritten in, and what takes their place.
    edits: Vec<(Range<usize>, String)>,
}

impl TestReport {
    fn fail(&mut self, line: u32, message: impl Into<String>) {
        self.failures.push(Failure::new(line, message));
    }

    /// Applies the edits to the text; those of one place in the order in which they were made.
    fn bless(&mut self, text: &str) {
        let mut edits = std::mem::take(&mut self.edits);
        if edits.is_empty() {
            return;
        }
        edits.sort_by_key(|(range, _)| range.start);
        let lines: Vec<&str> = text.lines().collect();
        let mut blessed = String::new();
        let copy = |blessed: &mut String, range: Range<usize>| {
            blessed.extend(lines[range].iter().flat_map(|line| [line, "\n"]));
        };
        let mut kept = 0;
        for (range, new) in edits {
            copy(&mut blessed, kept..range.start);
            blessed.push_str(&new);
            kept = range.end;
        }
        copy(&mut blessed, kept..lines.len());
        self.blessed = Some(blessed);
    }

    fn skip(&mut self, reason: String) {
        if !self.skipped.contains(&reason) {
            self.skipped.push(reason);
        }
    }
}

/// Runs the test that a text describes, for each of its `; with:` lines.
pub fn run_text(text: &str, config: TestConfig<'_>) -> TestReport {
    for_variants(text, |text| run_variant(text, config))
}

/// What is reported of the texts that a text stands for, with the words that make them.
fn for_variants(text: &str, mut run: impl FnMut(&str) -> TestReport) -> TestReport {
    let variants = match variants(text) {
        Ok(variants) => variants,
        Err(failure) => {
            return TestReport {
                failures: vec![failure],
                ..TestReport::default()
            };
        }
    };
    let mut all = TestReport::default();
    for variant in variants {
        let mut report = run(&variant.text);
        if variant.label.is_empty() {
            return report;
        }
        for failure in &mut report.failures {
            failure.message += &format!(" (with {})", variant.label);
        }
        for run in &mut report.runs {
            run.title += &format!(" (with {})", variant.label);
        }
        if report.blessed.is_some() {
            let message =
                "a text with `; with:` lines has `; check:` lines in place of a whole expectation";
            report.fail(0, message);
        }
        all.failures.append(&mut report.failures);
        all.runs.append(&mut report.runs);
        report
            .skipped
            .into_iter()
            .for_each(|reason| all.skip(reason));
    }
    all
}

fn run_variant(text: &str, config: TestConfig<'_>) -> TestReport {
    let mut report = TestReport::default();
    let directives = match Directives::parse(text) {
        Ok(directives) => directives,
        Err(failures) => {
            report.failures = failures;
            return report;
        }
    };
    if directives.tests.is_empty() {
        let message = "the file has no `; test:` line; see the documentation of file tests";
        report.fail(0, message);
    }
    for test in &directives.tests {
        match &test.kind {
            TestKind::Parse => expect::check_parse(parse_file(text), &directives, &mut report),
            TestKind::Verify => match parse_file_with(text, Checks::None) {
                Ok(file) => expect::check_verify(&file, &directives, &mut report),
                Err(errors) => report_parse_errors(&errors, &mut report),
            },
            TestKind::RoundTrip => match parse_file(text) {
                Ok(file) => expect::check_round_trip(text, &file, &mut report),
                Err(errors) => report_parse_errors(&errors, &mut report),
            },
            TestKind::Stage(stage) => match parse_file(text) {
                Ok(file) => {
                    let context = stages::Context {
                        text,
                        directives: &directives,
                        test,
                        stage: *stage,
                        config,
                    };
                    stages::check(&file, &context, &mut report);
                }
                Err(errors) => report_parse_errors(&errors, &mut report),
            },
            TestKind::Run => match parse_file(text) {
                Ok(file) => {
                    let setup = run::Setup {
                        steps: config.steps,
                        folder: config.folder,
                        ..run::Setup::new(test.target, &test.options)
                    };
                    run::check(&file, &directives, test.line, &setup, &mut report);
                }
                Err(errors) => report_parse_errors(&errors, &mut report),
            },
        }
    }
    report.bless(text);
    report
}

fn report_parse_errors(errors: &[ParseError], report: &mut TestReport) {
    report.failures.extend(errors.iter().map(|error| Failure {
        pos: error.pos,
        code: error.code.name(),
        message: error.message.clone(),
    }));
}

/// Reports every broken rule at the place of what breaks it.
fn report_violations(errors: &VerifierErrors, lines: &Lines, report: &mut TestReport) {
    report.failures.extend(errors.0.iter().map(|error| Failure {
        pos: lines.pos(error.entity),
        code: error.rule.code(),
        message: error.message.clone(),
    }));
}

/// Runs the test in a file; rewrites the file if the test was blessed.
pub fn run_file(path: &Path, config: TestConfig<'_>) -> io::Result<TestReport> {
    let text = std::fs::read_to_string(path)?;
    let config = TestConfig {
        folder: config.folder.or(path.parent()),
        ..config
    };
    let report = run_text(&text, config);
    if let Some(blessed) = &report.blessed {
        write_atomically(path, blessed.as_bytes())?;
    }
    Ok(report)
}

/// Every `.tir` file at or below a path, sorted. Links to folders below it are not followed: they may lead back.
pub fn find_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    find(path, &|path| has_ending(path, "tir"))
}

/// The same with every `.py` file that has a line that starts with `# run: `. What it is encoded in does not matter here: who reads it
/// says what is wrong with it.
pub fn find_tests(path: &Path) -> io::Result<Vec<PathBuf>> {
    let is_run = |text: &[u8]| {
        let mut lines = text.split(|&byte| byte == b'\n');
        lines.any(|line| line.trim_ascii_start().starts_with(b"# run: "))
    };
    find(path, &|path| {
        let reads = || std::fs::read(path).is_ok_and(|text| is_run(&text));
        has_ending(path, "tir") || has_ending(path, "py") && reads()
    })
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|ext| ext == ending) && !path.is_dir()
}

fn find(path: &Path, is_test: &dyn Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if is_test(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Writes a file so that at any time it has its old or its new contents: to a temporary file in the same
/// folder, which then takes its place and has its permissions. A file that may not be written is left alone. A link is
/// followed; what is no regular file (a terminal, a pipe, the null device) is written to and not replaced.
pub fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    let linked = std::fs::canonicalize(path);
    let path = linked.as_deref().unwrap_or(path);
    let old = std::fs::metadata(path).ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        return std::fs::write(path, contents);
    }
    if old.as_ref().is_some_and(|m| m.permissions().readonly()) {
        let message = "the file is read-only";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let mut name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?
        .to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let result = std::fs::write(&temporary, contents)
        .and_then(|()| match &old {
            Some(old) => std::fs::set_permissions(&temporary, old.permissions()),
            None => Ok(()),
        })
        .and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one worth reporting.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}
