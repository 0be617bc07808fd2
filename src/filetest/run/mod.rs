//! `; run:` lines: a kernel on given arguments, on every executor there is.
//!
//! ```text
//! ; run: grid(4) x=f32[2051] normal(1) out=f32[2051] poison n=2051 ; expect out within ulp 2
//! ; run: grid(1) x=i32[4] [1,2,3,4] out=i32[4] poison ; expect out = [2,3,4,5]
//! ; run: grid(2) steps(1000) x=i32[4] poison ; expect error never written
//! ```
//!
//! Every parameter gets an argument by its name, in any order: a number for a scalar, `null` or a buffer for
//! a pointer. A buffer states element type and length and what it holds:
//! - `poison`: nothing; reading an element that nobody wrote is an error;
//! - `zeros`, `const(c)`, `iota(start)`, a list `[1,2,3]` as long as the buffer;
//! - `normal(seed)`: mean 0, deviation 1; `uniform(seed,lo,hi)`: for integers both ends included;
//! - followed by `special`: every eleventh element is an infinity, NaN, zero, or an extreme of the type.
//!
//! The buffers of a line have at most 256 MiB together. `grid(x,y,z)` is within CUDA's limits (1 to 2^31-1, 65535 and
//! 65535). An executor gives up after a number of steps that takes it seconds: 2^28 steps of the interpreter
//! ([`crate::interp::Options::step_limit`]), 2^24 of the emulator ([`crate::emu::Options::step_limit`]);
//! `steps(N)` beside `grid` gives another number to both.
//!
//! The reference is the interpreter; what it reports as undefined fails the test, unless `expect error`
//! asks for it. The other executors must leave each buffer as the reference does: bit for bit (NaNs equal
//! NaNs), or as `expect NAME, NAME within BOUND` says, where a bound is `exact`, `ulp N`, `rel X` or `abs X`.
//! What the reference leaves unwritten, the others must not write, and nobody writes outside of buffers. All print the same
//! lines, in whatever order.
//! `expect NAME = [..]` states the elements themselves, which keeps the reference honest; a kernel with inline PTX, which
//! the interpreter cannot run, is held against these alone. `expect printed LINE` states a line that is printed.

mod compare;
mod exec;
mod fill;
#[cfg(feature = "cuda")]
mod gpu;
mod line;
mod summary;

#[cfg(test)]
mod tests;

use super::directive::{Directives, Note};
use super::stages::function_of;
use super::{Failure, Report, report_violations};
use crate::ir::function::TileFunction;
use crate::ir::types::Elem;
use crate::settings::{Options, Target};
use crate::text::number;
use crate::text::parse::{Lines, ParsedFile, Pos};
use crate::text::quote::{quoted, quoted_within};
use crate::verify::verify;

pub use summary::Summary;

use compare::{Bound, compare_buffers, compare_values};
use exec::{Argument, Executor, Finished, Job, Outcome};
use line::{ArgSpec, Expect, RunLine};

/// How often an executor whose schedule depends on a seed runs each line.
const SEEDS: u64 = 3;

/// Characters of a printed line that a message shows.
const SHOWN: usize = 200;

/// How `; run:` lines are run.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// What is compiled for.
    pub target: Target,
    /// How it is compiled.
    pub options: &'a Options,
    /// Steps that a line may take if it does not say so itself; none for those usual for the executor.
    pub steps: Option<u64>,
}

/// Runs every `; run:` line of a file; `line` is that of the test.
pub(super) fn check(
    file: &ParsedFile,
    directives: &Directives,
    line: u32,
    setup: &Setup<'_>,
    report: &mut Report,
) {
    if directives.runs.is_empty() {
        report.fail(line, "the test has no `; run:` line");
    }
    let mut refused = Vec::new();
    for note in &directives.runs {
        let index = function_of(file, note.line);
        let Some(parsed) = file.functions.get(index) else {
            report.fail(note.line, "there is no function to run");
            continue;
        };
        let Some(func) = parsed.func.as_tile() else {
            report.fail(note.line, "only a `kernel` can be run");
            continue;
        };
        if let Err(errors) = verify(func) {
            // Once is enough, however many lines would run it.
            if !refused.contains(&index) {
                refused.push(index);
                report_violations(&errors, &parsed.lines, report);
            }
            continue;
        }
        run_line(func, &parsed.lines, note, setup, report);
    }
}

/// Runs every `; run:` line of a text; the report says what failed and what was skipped.
pub fn run_lines(text: &str, setup: &Setup<'_>) -> Report {
    let mut report = Report::default();
    let directives = match Directives::parse(text) {
        Ok(directives) => directives,
        Err(failures) => {
            report.failures = failures;
            return report;
        }
    };
    match crate::text::parse::parse_file(text) {
        Ok(file) => check(&file, &directives, 0, setup, &mut report),
        Err(errors) => super::report_parse_errors(&errors, &mut report),
    }
    report
}

/// The `; run:` lines of a kernel in a text, as they would be written.
pub(crate) fn run_notes(text: &str, kernel: &str) -> Vec<String> {
    let (Ok(directives), Ok(file)) = (
        Directives::parse(text),
        crate::text::parse::parse_file(text),
    ) else {
        return Vec::new();
    };
    let belongs = |note: &&Note| {
        let function = file.functions.get(function_of(&file, note.line));
        function.is_some_and(|parsed| parsed.func.name() == kernel)
    };
    let notes = directives.runs.iter().filter(belongs);
    notes.map(|note| format!("; run: {}", note.words)).collect()
}

fn run_line(
    func: &TileFunction,
    lines: &Lines,
    note: &Note,
    setup: &Setup<'_>,
    report: &mut Report,
) {
    let mut fail = |pos: Pos, message: String| report.failures.push(Failure::at(pos, message));
    let run = match RunLine::parse(&note.words) {
        Ok(run) => run,
        Err(message) => return fail(note.pos, message),
    };
    let args = match arguments(func, &run) {
        Ok(args) => args,
        Err(message) => return fail(note.pos, message),
    };
    let mut job = Job {
        func,
        grid: run.grid,
        args: &args,
        target: setup.target,
        options: setup.options,
        seed: 0,
        steps: run.steps.or(setup.steps),
    };
    let reference = exec::reference();
    let expected_error = run.expects.iter().find_map(|e| match e {
        Expect::Error(words) => Some(words),
        Expect::Within(..) | Expect::Values(..) | Expect::Printed(_) => None,
    });
    let mut summary = Summary::new(note.line, &job);
    let Finished {
        buffers: expected,
        printed,
    } = match (reference.run(&job), expected_error) {
        (Outcome::Done(finished), None) => finished,
        (Outcome::Done(_), Some(words)) => {
            let words = quoted_within(words, SHOWN);
            let message = format!("{} reports nothing, not `{words}`", reference.name());
            return fail(note.pos, message);
        }
        (Outcome::Failed { message, .. }, Some(words)) if message.contains(words.as_str()) => {
            summary.add(reference.name(), format!("reports as expected: {message}"));
            return report.runs.push(summary);
        }
        (Outcome::Failed { message, inst }, _) => {
            // The instruction is where one looks first; which line runs it stands in the message.
            let (pos, line) = match inst {
                Some(inst) => (
                    lines.pos(inst.into()),
                    format!(" (run of line {})", note.line),
                ),
                None => (note.pos, String::new()),
            };
            return fail(pos, format!("{}: {message}{line}", reference.name()));
        }
        (Outcome::Skipped(reason), _) => return report.skip(reason),
        (Outcome::NotExecutable(reason), _) => {
            summary.add(reference.name(), reason);
            check_stated(&mut job, &run, note.line, &mut summary, report);
            return report.runs.push(summary);
        }
    };
    summary.add(reference.name(), "is the reference".to_owned());
    summary.buffers(&args, &expected);
    for expect in &run.expects {
        if let Expect::Values(name, texts) = expect
            && let Err(message) = compare_values(&args, &expected, name, texts)
        {
            let message = format!("{}: {message}", reference.name());
            fail(place_of(note, name), message);
        }
    }
    for expect in &run.expects {
        if let Expect::Printed(line) = expect
            && !printed.iter().flatten().any(|printed| printed == line)
        {
            let line = quoted_within(line, SHOWN);
            let message = format!("{} does not print `{line}`", reference.name());
            report.fail(note.line, message);
        }
    }
    let bounds: Vec<Bound> = args.iter().map(|arg| bound_of(&run, arg)).collect();
    for executor in exec::executors() {
        let seeds = if executor.is_seeded() { SEEDS } else { 1 };
        let mut verdict = match seeds {
            1 => "agrees".to_owned(),
            _ => format!("agrees on {seeds} schedules"),
        };
        for seed in 0..seeds {
            job.seed = seed;
            let result = match executor.run(&job) {
                Outcome::Done(found) => compare_buffers(&args, &bounds, &expected, &found.buffers)
                    .map_err(|m| (place_of(note, &m.name), m.to_string()))
                    .and_then(|()| {
                        compare_printed(printed.as_deref(), found.printed.as_deref())
                            .map_err(|message| (note.pos, message))
                    }),
                Outcome::Failed { message, .. } | Outcome::NotExecutable(message) => {
                    Err((note.pos, message))
                }
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
    }
    report.runs.push(summary);
}

/// Compares what was printed, where both know.
fn compare_printed(expected: Option<&[String]>, found: Option<&[String]>) -> Result<(), String> {
    let (Some(expected), Some(found)) = (expected, found) else {
        return Ok(());
    };
    let mut pairs = expected.iter().zip(found);
    let differs = pairs.position(|(e, f)| e != f);
    if differs.is_none() && expected.len() == found.len() {
        return Ok(());
    }
    let at = differs.unwrap_or(expected.len().min(found.len()));
    let line = |lines: &[String]| {
        let line = lines.get(at).map(|line| quoted_within(line, SHOWN));
        line.map_or("nothing".into(), |line| format!("`{line}`"))
    };
    Err(format!(
        "{} lines printed, not {}; the first that differs is {} instead of {}",
        found.len(),
        expected.len(),
        line(found),
        line(expected)
    ))
}

/// Without a reference: the executors leave what `expect NAME = [..]` says.
fn check_stated(
    job: &mut Job<'_>,
    run: &RunLine,
    line: u32,
    summary: &mut Summary,
    report: &mut Report,
) {
    let stated: Vec<(&String, &Vec<String>)> = run
        .expects
        .iter()
        .filter_map(|expect| match expect {
            Expect::Values(name, texts) => Some((name, texts)),
            Expect::Within(..) | Expect::Error(_) | Expect::Printed(_) => None,
        })
        .collect();
    if stated.is_empty() {
        let message =
            "the interpreter cannot run this; state what comes out, as in `expect x = [1]`";
        return report.fail(line, message);
    }
    for executor in exec::executors() {
        let seeds = if executor.is_seeded() { SEEDS } else { 1 };
        let mut verdict = "leaves what is stated".to_owned();
        for seed in 0..seeds {
            job.seed = seed;
            let result = match executor.run(job) {
                Outcome::Done(found) => stated.iter().try_for_each(|(name, texts)| {
                    compare_values(job.args, &found.buffers, name, texts)
                }),
                Outcome::Failed { message, .. } | Outcome::NotExecutable(message) => Err(message),
                Outcome::Skipped(reason) => {
                    report.skip(format!("{} skipped: {reason}", executor.name()));
                    verdict = format!("skipped: {reason}");
                    break;
                }
            };
            if let Err(message) = result {
                report.fail(
                    line,
                    format!("{} (seed {seed}): {message}", executor.name()),
                );
                verdict = "differs".to_owned();
                break;
            }
        }
        summary.add(executor.name(), verdict);
    }
}

/// Where a `; run:` line gives a buffer to the parameter of this name.
fn place_of(note: &Note, name: &str) -> Pos {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let found = note
        .words
        .match_indices(&format!("{name}="))
        .find(|(i, _)| {
            let before = note.words[..*i].chars().next_back();
            !before.is_some_and(is_word)
        });
    match found {
        Some((i, _)) => {
            let column = note.words_column + note.words[..i].chars().count() as u32;
            Pos { column, ..note.pos }
        }
        None => note.pos,
    }
}

/// The bound that an `expect` states for an argument.
fn bound_of(run: &RunLine, arg: &Argument) -> Bound {
    let stated = run.expects.iter().find_map(|expect| match expect {
        Expect::Within(names, bound) if names.contains(&arg.name) => Some(*bound),
        _ => None,
    });
    stated.unwrap_or(Bound::Exact)
}

/// The arguments in order of the parameters.
fn arguments(func: &TileFunction, run: &RunLine) -> Result<Vec<Argument>, String> {
    let names = &func.param_names;
    for (name, _) in &run.args {
        if !names.contains(name) {
            let (func, name) = (quoted(&func.name), quoted(name));
            return Err(format!("@{func} has no parameter `{name}`"));
        }
    }
    for expect in &run.expects {
        let expected = match expect {
            Expect::Within(names, _) => &names[..],
            Expect::Values(name, _) => std::slice::from_ref(name),
            Expect::Error(_) | Expect::Printed(_) => &[],
        };
        for name in expected {
            let is_buffer =
                |(n, spec): &(String, ArgSpec)| n == name && matches!(spec, ArgSpec::Buffer { .. });
            if !run.args.iter().any(is_buffer) {
                let name = quoted(name);
                return Err(format!("there is no buffer `{name}` to expect anything of"));
            }
        }
    }
    let mut args = Vec::new();
    for (name, &param) in names.iter().zip(func.params()) {
        let mut specs = run.args.iter().filter(|(n, _)| n == name);
        let spec = match (specs.next(), specs.next()) {
            (Some((_, spec)), None) => spec,
            (None, _) => return Err(format!("parameter `{}` gets no argument", quoted(name))),
            (Some(_), Some(_)) => {
                return Err(format!("parameter `{}` gets two arguments", quoted(name)));
            }
        };
        let elem = func.dfg.ty(param).elem;
        args.push(Argument {
            name: name.clone(),
            it: argument(elem, spec).map_err(|e| format!("`{}`: {e}", quoted(name)))?,
        });
    }
    Ok(args)
}

fn argument(elem: Elem, spec: &ArgSpec) -> Result<exec::ArgValue, String> {
    match (elem, spec) {
        (Elem::Num(scalar), ArgSpec::Number(text)) => Ok(exec::ArgValue::Scalar {
            scalar,
            bits: number::parse(text, elem)?,
        }),
        (Elem::Ptr(..), ArgSpec::Null) => Ok(exec::ArgValue::Null),
        (Elem::Ptr(pointee, _), ArgSpec::Buffer { scalar, .. }) if pointee != *scalar => Err(
            format!("the parameter points to {pointee}, the buffer holds {scalar}"),
        ),
        (
            Elem::Ptr(..),
            ArgSpec::Buffer {
                scalar,
                count,
                fill,
                special,
            },
        ) => {
            let bytes = fill::fill(*scalar, *count, fill, *special)?;
            Ok(exec::ArgValue::Buffer {
                scalar: *scalar,
                count: *count,
                bytes,
            })
        }
        (Elem::Ptr(..), ArgSpec::Number(_)) => Err("a pointer gets a buffer or null".into()),
        _ => Err(format!("the parameter is {elem} and gets a number")),
    }
}
