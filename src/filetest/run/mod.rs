//! `; run:` lines: a kernel on given arguments, on every executor there is.
//!
//! ```text
//! ; run: grid(4) x=f32[2051] normal(1) out=f32[2051] poison n=2051 ; expect out within ulp 2
//! ; run: grid(1) x=i32[4] [1,2,3,4] out=i32[4] poison ; expect out = [2,3,4,5]
//! ; run: grid(2) steps(1000) x=i32[4] poison ; expect error never written
//! ; run: grid(1) x=@input.npy out=f32[1000] poison
//! ```
//!
//! Every parameter gets an argument by its name, in any order: a number for a scalar, `null` or a buffer for
//! a pointer. A name that is no word stands in quotes (`"größe"=3`). A buffer states element type and length and what it holds:
//! - `poison`: nothing; reading an element that nobody wrote is an error;
//! - `zeros`, `const(c)`, `iota(start)`, a list `[1,2,3]` as long as the buffer;
//! - `normal(seed)`: mean 0, deviation 1; `uniform(seed,lo,hi)`: for integers both ends included;
//! - followed by `special`: every eleventh element is an infinity, NaN, zero, or an extreme of the type.
//!
//! `@FILE` is a buffer as long as the array in a file of NumPy (`.npy`, in C's order; `@"a name with spaces"`), whose type must be
//! that of the elements. The file's name is relative to the folder of the text. `y=x` gives a pointer the buffer that parameter `x`
//! gets, as kernels that work in place have it; what is expected of it is said of `x`.
//!
//! The buffers of a line have at most 256 MiB together. `grid(x,y,z)` is within CUDA's limits (1 to 2^31-1, 65535 and
//! 65535). An executor gives up after a number of steps that takes it seconds: 2^28 steps of the interpreter
//! ([`crate::interp::Options::step_limit`]), 2^24 of the emulator ([`crate::emu::Options::step_limit`]);
//! `steps(N)` beside `grid` gives another number to both. A grid has at most 2^20 programs
//! ([`RUN_LINE_PROGRAMS`](crate::limits::RUN_LINE_PROGRAMS)), each of which takes its time whether or not it does anything;
//! `programs(N)` allows more.
//!
//! The reference is the interpreter; what it reports as undefined fails the test, unless `expect error`
//! asks for it. The other executors must leave each buffer as the reference does: as `expect NAME, NAME within BOUND` says, where
//! a bound is `exact` (the same bits; NaNs equal NaNs), `stated`, `ulp N`, `rel X` or `abs X`. What no `expect` is about is
//! compared bit for bit in file tests and as `stated` by `tilelift run`.
//!
//! `stated` is what follows for each element from the bounds that the ops of the kernel state:
//! [`interp::run_bounded`](crate::interp::run_bounded) says how. Where nothing with a bound goes into an element it is exact, and so
//! are integers and copies. Elements of which nothing is known are not compared; the summary has their number, and the op that
//! leaves them open. Where a value with a bound decides what is executed or which address is accessed, nothing follows and
//! all is compared bit for bit.
//!
//! A quotient or remainder of integers by zero is not defined, nor is what is made of it. The summary says so of what is stored, with
//! the line of the division.
//!
//! What the reference leaves unwritten, the others must not write, and nobody writes outside of buffers. All print the same
//! lines, in whatever order.
//! `expect NAME = [..]` states the elements themselves, which keeps the reference honest, and `expect NAME = @FILE` what another
//! program left in that buffer. Both are judged as an executor is, within the same bound; a kernel with inline PTX, which
//! the interpreter cannot run, is held against these alone. In a list `poison` is what nobody wrote, and `any` what is not compared:
//! a number for what is not defined is an error. `expect printed LINE` states a line that is printed.

mod against_reference;
mod compare;
mod edited;
mod exec;
mod files;
mod fill;
#[cfg(feature = "cuda")]
mod gpu;
mod interpreter;
mod judge;
pub(crate) mod launch;
mod map;
mod named;
mod npy;
mod parse_line;
mod ptx;
mod shared_buffer;
mod stated;
mod summary;
#[cfg(feature = "triton")]
pub(crate) mod untyped;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::directive::{Directives, Note};
use super::stages::function_of;
use super::{TestReport, report_violations};
use crate::ir::function::TileFunction;
use crate::ir::types::Elem;
use crate::settings::{Options, Target};
use crate::text::closest::{closest, did_you_mean};
use crate::text::number;
use crate::text::parse::{ParsedFile, Pos};
use crate::text::quote::{listed, quoted};
use crate::verify::verify;

pub use edited::{Left, run_edited};
pub use ptx::{is_ptx, run_ptx};
pub use summary::Summary;

#[cfg(test)]
use against_reference::compare_printed;
use against_reference::{Line, Places};

use compare::Bound;
use exec::Argument;
use parse_line::{ArgSpec, Expect, MapOf, RunLine};
use shared_buffer::{owner, shared_buffer};

/// How `; run:` lines are run.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// What is compiled for.
    pub target: Target,
    /// How it is compiled.
    pub options: &'a Options,
    /// Steps that a line may take if it does not say so itself; none for those usual for the executor.
    pub steps: Option<u64>,
    /// Programs that a grid may have if the line does not say so itself; none for
    /// [`RUN_LINE_PROGRAMS`](crate::limits::RUN_LINE_PROGRAMS).
    pub programs: Option<u64>,
    /// The bound of what no `expect` is about: what the ops state, or else bits.
    pub by_ops: bool,
    /// The folder that names of files are relative to; none for that of the process.
    pub folder: Option<&'a Path>,
    /// Buffers to be written to files of NumPy after the run, by the names of their parameters.
    pub save: &'a [(String, PathBuf)],
    /// Parameters of the source that the signature has made constants, with their values: a line may leave them out or repeat the
    /// value.
    pub fixed: &'a [(String, String)],
    /// The most lines of what a kernel prints that a summary shows.
    pub prints: usize,
}

impl<'a> Setup<'a> {
    /// The usual bounds, and buffers compared bit for bit.
    pub fn new(target: Target, options: &'a Options) -> Setup<'a> {
        Setup {
            target,
            options,
            steps: None,
            programs: None,
            by_ops: false,
            folder: None,
            save: &[],
            fixed: &[],
            prints: summary::PRINTED,
        }
    }
}

/// Runs every `; run:` line of a file; `line` is that of the test.
pub(super) fn check(
    file: &ParsedFile,
    directives: &Directives,
    line: u32,
    setup: &Setup<'_>,
    report: &mut TestReport,
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
        let line = Line {
            func,
            places: Places::Text(&parsed.lines),
            note,
            setup,
        };
        line.run(report);
    }
}

/// Runs every `; run:` line of a text, for each of its `; with:` lines; the report says what failed and what was skipped.
pub fn run_lines(text: &str, setup: &Setup<'_>) -> TestReport {
    super::for_variants(text, |text| run_lines_of(text, setup))
}

fn run_lines_of(text: &str, setup: &Setup<'_>) -> TestReport {
    let mut report = TestReport::default();
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

/// Runs a kernel that was made from a source text, by what a run line says that stands in line `line` of that text. Failures
/// have places in it.
pub fn run_kernel(func: &TileFunction, words: &str, line: u32, setup: &Setup<'_>) -> TestReport {
    let mut report = TestReport::default();
    let note = Note {
        line,
        pos: Pos { line, column: 0 },
        words_column: 0,
        words: words.to_owned(),
    };
    let line = Line {
        func,
        places: Places::Source,
        note: &note,
        setup,
    };
    line.run(&mut report);
    report
}

/// A run line of a file.
#[derive(Clone, Debug)]
pub(crate) struct RunNote {
    /// Where it stands, first is 1.
    pub(crate) line: u32,
    /// What is run, behind `run:` and the kernel.
    pub(crate) words: String,
}

/// The `; run:` lines of a kernel in a text.
pub(crate) fn run_notes(text: &str, kernel: &str) -> Vec<RunNote> {
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
    let notes = notes.map(|note| RunNote {
        line: note.line,
        words: note.words.clone(),
    });
    notes.collect()
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
        Some((i, _)) if note.words_column > 0 => {
            let column = note.words_column + note.words[..i].chars().count() as u32;
            Pos { column, ..note.pos }
        }
        _ => note.pos,
    }
}

/// The bound that an `expect` states for an argument.
fn bound_of(run: &RunLine, arg: &Argument, setup: &Setup<'_>) -> Bound {
    let stated = run.expects.iter().find_map(|expect| match expect {
        Expect::Within(names, bound) if names.contains(&arg.name) => Some(*bound),
        _ => None,
    });
    stated.unwrap_or(match setup.by_ops {
        true => Bound::Stated,
        false => Bound::Exact,
    })
}

/// The arguments in order of the parameters.
fn arguments(
    func: &TileFunction,
    run: &RunLine,
    setup: &Setup<'_>,
) -> Result<Vec<Argument>, String> {
    let names = &func.param_names;
    for (name, spec) in &run.args {
        if !names.contains(name) {
            check_fixed(func, name, spec, setup)?;
        }
    }
    check_names(run, setup)?;
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut args = Vec::new();
    for (name, &param) in names.iter().zip(func.params()) {
        let elem = func.dfg.ty(param).elem;
        let missing = || {
            let needs = match elem {
                Elem::Ptr(pointee, _) => format!("a buffer of {pointee}, or null"),
                _ => format!("a number of type {elem}"),
            };
            format!(
                "parameter `{}` gets no argument; it takes {needs}",
                quoted(name)
            )
        };
        let spec = spec_of(run, name)?.ok_or_else(missing)?;
        if elem.is_ptr() {
            let of = shared_buffer(run, &all, name);
            if let Some(of) = of.map_err(|e| format!("`{}`: {e}", quoted(name)))? {
                args.push(same(name, of));
                continue;
            }
        }
        args.push(
            argument(name, elem, spec, setup).map_err(|e| format!("`{}`: {e}", quoted(name)))?,
        );
    }
    Ok(args)
}

/// An error for what a line gives to a name that takes no argument, unless it is the value that the parameter has anyway.
fn check_fixed(
    func: &TileFunction,
    name: &str,
    spec: &ArgSpec,
    setup: &Setup<'_>,
) -> Result<(), String> {
    let Some((_, value)) = setup.fixed.iter().find(|(fixed, _)| fixed == name) else {
        return Err(unknown_name(func, name));
    };
    let is_it = matches!(spec, ArgSpec::Number(text) if text == value);
    if is_it {
        return Ok(());
    }
    let name = quoted(name);
    Err(format!(
        "`{name}` is fixed: the signature makes it the constant {} (`i32:1` is the number 1), so leave it out of the line, or give \
         the signature a type",
        quoted(value)
    ))
}

/// That a kernel takes no argument of a name, and which it takes.
fn unknown_name(func: &TileFunction, name: &str) -> String {
    let known = func.param_names.iter().map(String::as_str);
    let meant = closest(name, known.clone());
    let meant = meant.map_or_else(String::new, |other| {
        format!("; {}", did_you_mean(quoted(other)))
    });
    let known: Vec<String> = known.map(quoted).collect();
    let takes = match known.is_empty() {
        true => "nothing".to_owned(),
        false => known.join(", "),
    };
    format!(
        "@{} has no parameter `{}`; it takes {takes}{meant}",
        quoted(&func.name),
        quoted(name)
    )
}

/// What a line gives to a parameter.
fn spec_of<'a>(run: &'a RunLine, name: &str) -> Result<Option<&'a ArgSpec>, String> {
    let mut specs = run.args.iter().filter(|(n, _)| n == name);
    match (specs.next(), specs.next()) {
        (_, Some(_)) => Err(format!("parameter `{}` gets two arguments", quoted(name))),
        (first, None) => Ok(first.map(|(_, spec)| spec)),
    }
}

/// An error for what is expected of, or saved to a file from, something that is no buffer.
fn check_names(run: &RunLine, setup: &Setup<'_>) -> Result<(), String> {
    let is_buffer = |name: &String| {
        let is_it = |(n, spec): &(String, ArgSpec)| {
            let has_own = matches!(
                spec,
                ArgSpec::Buffer { .. } | ArgSpec::File(_) | ArgSpec::Map(MapOf::Own(_), _)
            );
            n == name && has_own
        };
        run.args.iter().any(is_it)
    };
    if let Some((name, _)) = setup.save.iter().find(|(name, _)| !is_buffer(name)) {
        let there = match owner(run, name) {
            Some(owner) => format!("; it is that of `{}`, which can be saved", quoted(owner)),
            None => String::new(),
        };
        return Err(format!(
            "there is no buffer `{}` to save{there}",
            quoted(name)
        ));
    }
    for expect in &run.expects {
        let expected = match expect {
            Expect::Within(names, _) => &names[..],
            Expect::Values(name, _) | Expect::File(name, _) => std::slice::from_ref(name),
            Expect::Error(_) | Expect::Printed(_) => &[],
        };
        for name in expected {
            if !is_buffer(name) {
                let buffers = run.args.iter().map(|(name, _)| name.as_str());
                let buffers = buffers.filter(|name| is_buffer(&(*name).to_owned()));
                let meant = closest(name, buffers.clone());
                let there = match (meant, buffers.collect::<Vec<_>>()) {
                    _ if owner(run, name).is_some() => {
                        let owner = owner(run, name).unwrap_or_default();
                        format!("it is that of `{}`, of which it can be said", quoted(owner))
                    }
                    (Some(meant), _) => did_you_mean(quoted(meant)),
                    (None, buffers) if buffers.is_empty() => "there is none".to_owned(),
                    (None, buffers) => format!("there is {}", listed(buffers.into_iter())),
                };
                let name = quoted(name);
                return Err(format!(
                    "there is no buffer `{name}` to expect anything of; {there}"
                ));
            }
        }
    }
    Ok(())
}

/// The argument that is the buffer of another one.
fn same(name: &str, of: usize) -> Argument {
    Argument {
        name: name.to_owned(),
        shape: None,
        it: exec::ArgValue::Same(of),
    }
}

fn argument(name: &str, elem: Elem, spec: &ArgSpec, setup: &Setup<'_>) -> Result<Argument, String> {
    let (it, shape) = match (elem, spec) {
        (Elem::Ptr(pointee, _), ArgSpec::File(path)) => {
            let array = files::read(path, pointee, setup)?;
            let value = exec::ArgValue::Buffer {
                scalar: pointee,
                count: array.shape.iter().product(),
                bytes: Some(array.bytes),
            };
            (value, Some(array.shape))
        }
        _ => (value(elem, spec)?, None),
    };
    Ok(Argument {
        name: name.to_owned(),
        shape,
        it,
    })
}

fn value(elem: Elem, spec: &ArgSpec) -> Result<exec::ArgValue, String> {
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
        (Elem::Ptr(..), ArgSpec::Number(_)) => {
            Err("a pointer takes a buffer, the name of a parameter that gets one, or null, not a number".into())
        }
        (_, ArgSpec::Map(..)) => {
            Err("tensor maps are for PTX; what a kernel needs of them its launch makes".into())
        }
        (_, ArgSpec::Null) => Err(format!(
            "the parameter is {elem} and takes a number, not null"
        )),
        _ => Err(format!(
            "the parameter is {elem} and takes a number, not a buffer"
        )),
    }
}
