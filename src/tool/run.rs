//! `tilelift run`.

use std::process::ExitCode;

use super::args::RunArgs;
use super::input::{Source, target};
use super::{Result, say, write_out};
use crate::filetest::run::run_lines;
use crate::settings::Options;

/// Runs the `; run:` lines of a file.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    let target = target(args.target.as_deref())?;
    let source = Source::read(&args.file)?;
    let report = run_lines(&source.text, target, &Options::DEFAULT);
    for reason in &report.skipped {
        say(&format!("{}: {reason}", source.name));
    }
    for failure in &report.failures {
        say(&source.at_line(failure.line.max(1), "", &failure.message));
    }
    if !report.failures.is_empty() {
        return Ok(ExitCode::from(1));
    }
    write_out(None, &format!("{}: ok\n", source.name))?;
    Ok(ExitCode::SUCCESS)
}
