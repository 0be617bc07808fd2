//! `tilelift test`: file tests, and what they expect rewritten (`--bless`).

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::{HowArgs, TestArgs};
use super::input::Source;
use super::run::{Request, run_file};
use super::{Failure, Result, say, write_out};
use crate::filetest::{TestConfig, find_tests, run_text};

/// The stack of a thread that runs files: as deep as that of a program.
const STACK: usize = 8 << 20;

/// What became of a file.
struct Outcome {
    /// What failed.
    failures: Vec<String>,
    /// What could not be tried here.
    skipped: Vec<String>,
    /// The text with what it expects rewritten.
    blessed: Option<String>,
}

/// What became of all.
#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    blessed: usize,
    skipped: Vec<String>,
}

impl Totals {
    /// Takes over what became of a file, and says what failed.
    fn add(&mut self, file: &Path, outcome: Outcome, bar: &ProgressBar) -> Result<()> {
        for reason in outcome.skipped {
            if !self.skipped.contains(&reason) {
                self.skipped.push(reason);
            }
        }
        if let Some(text) = &outcome.blessed {
            // What came from standard input goes on to standard output.
            bar.suspend(|| write_out(Some(file), text))?;
            self.blessed += 1;
        }
        match outcome.failures.is_empty() {
            true => self.passed += 1,
            false => self.failed += 1,
        }
        bar.suspend(|| outcome.failures.iter().for_each(|failure| say(failure)));
        Ok(())
    }
}

/// Runs file tests and counts.
pub(super) fn test(args: &TestArgs) -> Result<ExitCode> {
    let mut files = Vec::new();
    for path in &args.paths {
        match path == Path::new("-") {
            true => files.push(path.clone()),
            false => files.extend(find_tests(path).map_err(|error| Failure::Io {
                path: path.clone(),
                error,
            })?),
        }
    }
    let jobs = args.jobs.or(thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get).min(files.len());
    // It is not drawn where nobody looks.
    let bar = ProgressBar::new(files.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    let mut totals = Totals::default();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (done, outcomes) = channel();
        for _ in 0..jobs {
            let (done, files, next) = (done.clone(), &files, &next);
            let work = move || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Nobody listens any more if an earlier file could not be read.
                    if done.send((file, test_file(file, args))).is_err() {
                        return;
                    }
                }
            };
            let spawned = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, work);
            spawned.map_err(|error| Failure::Usage(format!("no thread to run files: {error}")))?;
        }
        drop(done);
        in_order(&files, &outcomes, &bar, &mut totals)
    })?;
    bar.finish_and_clear();
    for reason in &totals.skipped {
        say(reason);
    }
    let Totals {
        passed,
        failed,
        blessed,
        ..
    } = totals;
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

/// Adds up what becomes of files, in their order.
fn in_order<'a>(
    files: &'a [PathBuf],
    outcomes: &Receiver<(&'a PathBuf, Result<Outcome>)>,
    bar: &ProgressBar,
    totals: &mut Totals,
) -> Result<()> {
    let mut early: Vec<(&PathBuf, Result<Outcome>)> = Vec::new();
    for file in files {
        let outcome = loop {
            if let Some(at) = early
                .iter()
                .position(|(other, _)| std::ptr::eq(*other, file))
            {
                break early.swap_remove(at).1;
            }
            match outcomes.recv() {
                Ok((done, outcome)) => {
                    bar.inc(1);
                    bar.set_message(done.display().to_string());
                    early.push((done, outcome));
                }
                // Every thread is at its end, and the file was none of theirs.
                Err(_) => return Ok(()),
            }
        };
        totals.add(file, outcome?, bar)?;
    }
    Ok(())
}

fn test_file(file: &Path, args: &TestArgs) -> Result<Outcome> {
    if file.extension().is_some_and(|ending| ending == "py") {
        let request = Request {
            line: None,
            exact: false,
            save: &[],
            prints: None,
            limits: args.limits,
        };
        let mut failures = match run_file(file, &HowArgs::of_files(), &request) {
            Ok(ran) => ran.failures,
            Err(failure) => vec![failure.to_string()],
        };
        if args.bless && !failures.is_empty() {
            failures.push(format!(
                "{}: note: --bless leaves `# run:` lines as they are: what an `expect` states is the author's claim, to be edited by hand",
                file.display()
            ));
        }
        return Ok(Outcome {
            failures,
            skipped: Vec::new(),
            blessed: None,
        });
    }
    let source = Source::read(file)?;
    let from_env = TestConfig::from_env();
    let config = TestConfig {
        bless: args.bless || from_env.bless,
        steps: args.limits.steps,
        folder: file.parent(),
    };
    let report = run_text(&source.text, config);
    let show = |failure: &crate::filetest::Failure| failure.show(&source.name, &source.text);
    Ok(Outcome {
        failures: report.failures.iter().map(show).collect(),
        skipped: report.skipped,
        blessed: report.blessed,
    })
}
