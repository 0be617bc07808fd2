//! One run line: the reference, and everybody else against it.

use super::compare::Bound;
use super::exec::{self, At, Executor, Finished, Job, Outcome, Printed};
use super::judge::Judge;
use super::parse_line::{Expect, RunLine};
use super::summary::Summary;
use super::{Setup, arguments, bound_of, files, place_of, stated};
use crate::filetest::directive::Note;
use crate::filetest::{Failure, TestReport};
use crate::ir::function::TileFunction;
use crate::limits::RUN_LINE_PROGRAMS;
use crate::text::parse::{Lines, Pos};
use crate::text::quote::{quoted, quoted_within};

/// How often an executor whose schedule depends on a seed runs each line.
const SEEDS: u64 = 3;

/// Characters of a printed line that a message shows.
pub(super) const SHOWN: usize = 200;

/// Where instructions stand.
#[derive(Clone, Copy)]
pub(super) enum Places<'a> {
    /// In the text of the function.
    Text(&'a Lines),
    /// In the source that it was made from.
    Source,
}

/// A run line and its kernel.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) func: &'a TileFunction,
    pub(super) places: Places<'a>,
    pub(super) note: &'a Note,
    pub(super) setup: &'a Setup<'a>,
}

impl Line<'_> {
    /// The place of a failure, and which line runs it if the place is another.
    pub(super) fn place(&self, at: Option<At>) -> (Pos, String) {
        let pos = match (at, self.places) {
            (Some(At::Inst(inst)), Places::Text(lines)) => Some(lines.pos(inst.into())),
            (Some(At::Inst(inst)), Places::Source) => {
                let place = self.func.dfg.insts[inst].loc.0.expand();
                place.map(|place| Pos {
                    line: place.0,
                    column: place.1,
                })
            }
            (Some(At::Source(line, column)), _) => Some(Pos { line, column }),
            (None, _) => None,
        };
        match pos {
            Some(pos) if self.note.line > 0 => (pos, format!(" (run of line {})", self.note.line)),
            Some(pos) => (pos, String::new()),
            None => (self.note.pos, String::new()),
        }
    }

    /// Runs it.
    pub(super) fn run(&self, report: &mut TestReport) {
        if let Err((pos, message)) = self.try_run(report) {
            report.failures.push(Failure::at(pos, message));
        }
    }

    fn try_run(&self, report: &mut TestReport) -> Result<(), (Pos, String)> {
        let Line {
            func, note, setup, ..
        } = *self;
        let here = |message: String| (note.pos, message);
        let run = RunLine::parse(&note.words).map_err(|problem| {
            // Of names that no parameter can have, such as `desc.base`.
            let is_name = problem.starts_with("unexpected character");
            here(match is_name {
                true => format!(
                    "{problem}, or write the name that has it in quotes; the kernel takes {}",
                    func.param_names.join(", ")
                ),
                false => problem,
            })
        })?;
        check_programs(&run, setup).map_err(here)?;
        if run.block.is_some() || run.shared.is_some() {
            let message = "block(..) and shared(..) are for PTX; a kernel states its warps and shared memory itself";
            return Err(here(message.to_owned()));
        }
        let args = arguments(func, &run, setup).map_err(here)?;
        let mut job = Job {
            func,
            grid: run.grid,
            args: &args,
            target: setup.target,
            options: setup.options,
            seed: 0,
            in_source: matches!(self.places, Places::Source),
            steps: run.steps.or(setup.steps),
        };
        let reference = exec::reference();
        let expected_error = run.expects.iter().find_map(|e| match e {
            Expect::Error(words) => Some(words),
            Expect::Within(..) | Expect::Values(..) | Expect::File(..) | Expect::Printed(_) => None,
        });
        let mut summary = Summary::new(note.line, &job);
        let finished = match (reference.run(&job), expected_error) {
            (Outcome::Done(finished), None) => finished,
            (Outcome::Done(_), Some(words)) => {
                let words = quoted_within(words, SHOWN);
                let message = format!("{} reports nothing, not `{words}`", reference.name());
                return Err(here(message));
            }
            (Outcome::Failed { message, .. }, Some(words)) if message.contains(words.as_str()) => {
                summary.add(reference.name(), format!("reports as expected: {message}"));
                report.runs.push(summary);
                return Ok(());
            }
            (
                Outcome::Failed {
                    message,
                    at,
                    printed,
                },
                _,
            ) => {
                if printed.count() > 0 {
                    summary.add(reference.name(), "fails".to_owned());
                    summary.printed(&printed, setup.prints);
                    report.runs.push(summary);
                }
                // The instruction is where one looks first; which line runs it stands in the message.
                let (pos, line) = self.place(at);
                return Err((pos, format!("{}: {message}{line}", reference.name())));
            }
            (Outcome::Skipped(reason), _) => {
                report.skip(reason);
                return Ok(());
            }
            (Outcome::NotExecutable(reason), _) => {
                summary.add(reference.name(), reason);
                self.check_stated(&mut job, &run, &mut summary, report);
                report.runs.push(summary);
                return Ok(());
            }
        };
        summary.add(reference.name(), "is the reference".to_owned());
        summary.buffers(&args, &finished.buffers);
        if let Some(printed) = &finished.printed {
            summary.printed(printed, setup.prints);
        }
        if let Err(message) = files::save(setup, &args, &finished.buffers) {
            report.failures.push(Failure::at(note.pos, message));
        }
        self.compare(&mut job, &run, &finished, &mut summary, report);
        report.runs.push(summary);
        Ok(())
    }

    /// Runs every other executor and compares what it leaves with the reference.
    fn compare(
        &self,
        job: &mut Job<'_>,
        run: &RunLine,
        expected: &Finished,
        summary: &mut Summary,
        report: &mut TestReport,
    ) {
        let args = job.args;
        let bounds: Vec<Bound> = args
            .iter()
            .map(|arg| bound_of(run, arg, self.setup))
            .collect();
        let mut judge = Judge::new(self, job, &bounds, expected);
        for expect in &run.expects {
            if let Expect::Printed(line) = expect
                && let Err(message) = judge.printed(line)
            {
                let pos = Pos {
                    column: 0,
                    ..self.note.pos
                };
                report.failures.push(Failure::at(pos, message));
            }
            let Some(name) = stated::name_of(expect) else {
                continue;
            };
            let buffers = stated::buffers(expect, args, &expected.buffers, self.setup);
            let buffers = match buffers {
                Ok(buffers) => buffers,
                Err(message) => {
                    let pos = place_of(self.note, name);
                    report.failures.push(Failure::at(pos, message));
                    continue;
                }
            };
            let verdict = judge.stated(expect, name, buffers);
            if let Err((pos, message)) = &verdict {
                let message = format!("{}: {message}", exec::reference().name());
                report.failures.push(Failure::at(*pos, message));
            }
            if let Expect::File(_, path) = expect {
                summary.add(&quoted(path), agrees(verdict.ok()).to_owned());
            }
        }
        for executor in exec::executors() {
            let seeds = if executor.is_seeded() { SEEDS } else { 1 };
            let mut is_exact = true;
            let mut verdict = None;
            let mut variant = String::new();
            for seed in 0..seeds {
                job.seed = seed;
                let result = match executor.run(job) {
                    Outcome::Done(found) => {
                        variant.clone_from(&found.variant);
                        let verdict = judge.executor(&found);
                        verdict.map(|kept_exactly| is_exact &= kept_exactly)
                    }
                    Outcome::Failed { message, at, .. } => {
                        let (pos, line) = self.place(at);
                        Err((pos, message + &line))
                    }
                    Outcome::NotExecutable(message) => Err((self.note.pos, message)),
                    Outcome::Skipped(reason) => {
                        report.skip(format!("{} skipped: {reason}", executor.name()));
                        verdict = Some(format!("skipped: {reason}"));
                        break;
                    }
                };
                if let Err((pos, message)) = result {
                    let message = format!("{} (seed {seed}): {message}", executor.name());
                    report.failures.push(Failure::at(pos, message));
                    verdict = Some(format!("differs{variant}"));
                    break;
                }
            }
            let verdict = verdict.unwrap_or_else(|| {
                let agrees = agrees(Some(is_exact));
                match seeds {
                    1 => format!("{agrees}{variant}"),
                    _ => format!("{agrees} on {seeds} schedules{variant}"),
                }
            });
            summary.add(executor.name(), verdict);
        }
        judge.finish(summary);
    }

    /// Without a reference: the executors leave what `expect NAME = [..]` says.
    fn check_stated(
        &self,
        job: &mut Job<'_>,
        run: &RunLine,
        summary: &mut Summary,
        report: &mut TestReport,
    ) {
        let line = self.note.line;
        let mut expects = run.expects.iter();
        if !expects.any(|expect| stated::name_of(expect).is_some()) {
            let message =
                "the interpreter cannot run this; state what comes out, as in `expect x = [1]`";
            return report.fail(line, message);
        }
        for executor in exec::executors() {
            let seeds = if executor.is_seeded() { SEEDS } else { 1 };
            let mut verdict = "leaves what is stated".to_owned();
            let mut printed = Printed::default();
            for seed in 0..seeds {
                job.seed = seed;
                let here = |message| (self.note.pos, message);
                let result = match executor.run(job) {
                    Outcome::Done(found) => {
                        printed = found.printed.unwrap_or_default();
                        stated::compare(run, job.args, &found.buffers, self.setup)
                            .and_then(|()| files::save(self.setup, job.args, &found.buffers))
                            .map_err(here)
                    }
                    Outcome::Failed {
                        message,
                        at,
                        printed: by_then,
                    } => {
                        printed = by_then;
                        let (pos, line) = self.place(at);
                        Err((pos, message + &line))
                    }
                    Outcome::NotExecutable(message) => Err(here(message)),
                    Outcome::Skipped(reason) => {
                        report.skip(format!("{} skipped: {reason}", executor.name()));
                        verdict = format!("skipped: {reason}");
                        break;
                    }
                };
                if let Err((pos, message)) = result {
                    let message = format!("{} (seed {seed}): {message}", executor.name());
                    report.failures.push(Failure::at(pos, message));
                    verdict = "differs".to_owned();
                    break;
                }
            }
            summary.add(executor.name(), verdict);
            summary.printed(&printed, self.setup.prints);
        }
    }
}

/// Whether somebody agrees with the reference: bit for bit, within the bounds of ops, or not at all.
fn agrees(is_exact: Option<bool>) -> &'static str {
    match is_exact {
        Some(true) => "agrees",
        Some(false) => "agrees within the bounds of its ops",
        None => "differs",
    }
}

/// An error for a grid with more programs than anybody wants to wait for.
pub(super) fn check_programs(run: &RunLine, setup: &Setup<'_>) -> Result<(), String> {
    let most = run.programs.or(setup.programs).unwrap_or(RUN_LINE_PROGRAMS);
    let [x, y, z] = run.grid;
    let programs = u128::from(x) * u128::from(y) * u128::from(z);
    if programs <= u128::from(most) {
        return Ok(());
    }
    Err(format!(
        "the grid of {x} x {y} x {z} has {programs} programs, and a run line at most {most}: run fewer, or allow them with \
         programs({programs}) in the line or --programs {programs}"
    ))
}

/// Compares what was printed, where both know. Of more lines than a log holds those that it has are compared, and their number.
pub(super) fn compare_printed(
    expected: Option<&Printed>,
    found: Option<&Printed>,
) -> Result<(), String> {
    let (Some(expected), Some(found)) = (expected, found) else {
        return Ok(());
    };
    let sorted = |printed: &Printed| {
        let mut lines = printed.lines.clone();
        lines.sort_unstable();
        lines
    };
    let (all, lines) = (sorted(expected), sorted(found));
    // Without those that were lost, whichever they are.
    let mut rest = all.iter();
    let is_lost = found.lost > 0;
    let mut differs = lines.iter().position(|line| match is_lost {
        true => !rest.any(|other| other == line),
        false => rest.next() != Some(line),
    });
    if differs.is_none() && !is_lost && lines.len() < all.len() {
        differs = Some(lines.len());
    }
    if differs.is_none() && expected.count() == found.count() {
        return Ok(());
    }
    let at = differs.unwrap_or(lines.len());
    let shown = |line: Option<&String>| {
        let line = line.map(|line| quoted_within(line, SHOWN));
        line.map_or("nothing".into(), |line| format!("`{line}`"))
    };
    let other = match is_lost {
        true => "a line of the others".to_owned(),
        false => shown(all.get(at)),
    };
    Err(format!(
        "{} lines printed, not {}; the first that differs is {} instead of {other}",
        found.count(),
        expected.count(),
        shown(lines.get(at)),
    ))
}
