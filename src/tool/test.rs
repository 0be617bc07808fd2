//! `tilelift test`.

use std::process::ExitCode;

use super::args::TestArgs;
use super::{Failure, Result, say, write_out};
use crate::filetest::{Config, find_files, run_file};

/// Runs file tests and counts.
pub(super) fn test(args: &TestArgs) -> Result<ExitCode> {
    let config = Config::from_env();
    let (mut passed, mut failed, mut blessed) = (0, 0, 0);
    let mut skipped: Vec<String> = Vec::new();
    for path in &args.paths {
        let io = |error| Failure::Io {
            path: path.clone(),
            error,
        };
        for file in find_files(path).map_err(io)? {
            let report = run_file(&file, config).map_err(|error| Failure::Io {
                path: file.clone(),
                error,
            })?;
            for reason in report.skipped {
                if !skipped.contains(&reason) {
                    skipped.push(reason);
                }
            }
            blessed += usize::from(report.blessed.is_some());
            if report.failures.is_empty() {
                passed += 1;
                continue;
            }
            failed += 1;
            for failure in &report.failures {
                let place = match failure.line {
                    0 => file.display().to_string(),
                    line => format!("{}:{line}", file.display()),
                };
                say(&format!("{place}: {}", failure.message));
            }
        }
    }
    for reason in &skipped {
        say(reason);
    }
    if passed + failed == 0 {
        say("there are no .tir files there");
        return Ok(ExitCode::from(1));
    }
    let rewritten = if blessed > 0 {
        format!(", {blessed} rewritten")
    } else {
        String::new()
    };
    write_out(
        None,
        &format!("{passed} passed, {failed} failed{rewritten}\n"),
    )?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}
