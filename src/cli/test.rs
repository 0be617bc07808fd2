//! `tilelift test`.

use std::path::Path;
use std::process::ExitCode;

use super::args::{HowArgs, TestArgs};
use super::input::Source;
use super::run::{Request, run_file};
use super::{Failure, Result, say, write_out};
use crate::filetest::{Config, find_tests, run_text};

/// Runs file tests and counts.
pub(super) fn test(args: &TestArgs) -> Result<ExitCode> {
    let from_env = Config::from_env();
    let config = Config {
        bless: args.bless || from_env.bless,
        steps: args.limits.steps,
        ..from_env
    };
    let request = Request {
        line: None,
        exact: false,
        save: &[],
        limits: args.limits,
    };
    let (mut passed, mut failed, mut blessed) = (0, 0, 0);
    let mut skipped: Vec<String> = Vec::new();
    for path in &args.paths {
        let is_stdin = path == Path::new("-");
        let files = if is_stdin {
            vec![path.clone()]
        } else {
            find_tests(path).map_err(|error| Failure::Io {
                path: path.clone(),
                error,
            })?
        };
        for file in files {
            if file.extension().is_some_and(|ending| ending == "py") {
                let failures = match run_file(&file, &HowArgs::of_files(), &request) {
                    Ok(ran) => ran.failures,
                    Err(failure) => vec![failure.to_string()],
                };
                for failure in &failures {
                    say(failure);
                }
                *(if failures.is_empty() {
                    &mut passed
                } else {
                    &mut failed
                }) += 1;
                continue;
            }
            let source = Source::read(&file)?;
            let config = Config {
                folder: file.parent(),
                ..config
            };
            let report = run_text(&source.text, config);
            if let Some(text) = &report.blessed {
                // What came from standard input goes on to standard output.
                write_out(Some(&file), text)?;
                blessed += 1;
            }
            for reason in report.skipped {
                if !skipped.contains(&reason) {
                    skipped.push(reason);
                }
            }
            if report.failures.is_empty() {
                passed += 1;
                continue;
            }
            failed += 1;
            for failure in &report.failures {
                say(&failure.show(&source.name, &source.text));
            }
        }
    }
    for reason in &skipped {
        say(reason);
    }
    if passed + failed == 0 {
        say("there are no .tir files there, and no .py files with `# run:` lines");
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
