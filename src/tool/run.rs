//! `tilelift run`.

use std::process::ExitCode;

use super::args::RunArgs;
use super::input::{Source, target};
use super::{Result, say, write_out};
use crate::filetest::run::{Setup, run_lines};
use crate::settings::Options;

/// Runs the `; run:` lines of a file.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    let setup = Setup {
        target: target(args.target.as_deref())?,
        options: &Options::DEFAULT,
        steps: args.steps,
    };
    let source = Source::read(&args.file)?;
    let report = run_lines(&source.text, &setup);
    for failure in &report.failures {
        say(&failure.show(&source.name, &source.text));
    }
    let tables: String = report.runs.iter().map(ToString::to_string).collect();
    if !report.failures.is_empty() {
        say(tables.trim_end());
        return Ok(ExitCode::from(1));
    }
    write_out(None, &format!("{tables}{}: ok\n", source.name))?;
    Ok(ExitCode::SUCCESS)
}
