//! `tilelift run`: kernels on interpreter, emulator and GPU, by their run lines.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::args::{HowArgs, KernelArgs, Lang, LimitArgs, RunArgs};
use super::input::{Source, check_usage, is_ptx_file, options, target};
use super::progress::Progress;
use super::python::run_python;
use super::{Failure, Result, say, write_out};
use crate::filetest::run::{Setup, Summary, is_ptx, run_lines, run_ptx};
use crate::filetest::{Failure as RunFailure, TestReport};
use crate::settings::{Asserts, Options, Target};

/// What is asked for beside the kernels.
pub(super) struct Request<'a> {
    /// A line in place of those in the file.
    pub(super) line: Option<&'a str>,
    /// Whether bits are compared.
    pub(super) exact: bool,
    /// Names of buffers and files that they go to.
    pub(super) save: &'a [(String, PathBuf)],
    /// How many lines are shown of what a kernel prints, if not as many as usual.
    pub(super) prints: Option<usize>,
    pub(super) limits: LimitArgs,
}

impl Request<'_> {
    /// How the lines of a file are run.
    pub(super) fn setup<'b>(
        &'b self,
        target: Target,
        options: &'b Options,
        file: &'b Path,
    ) -> Setup<'b> {
        let usual = Setup::new(target, options);
        Setup {
            steps: self.limits.steps,
            programs: self.limits.programs,
            by_ops: !self.exact,
            // What the command line says is relative to where it is said.
            folder: file.parent().filter(|_| self.line.is_none()),
            save: self.save,
            prints: self.prints.unwrap_or(usual.prints),
            ..usual
        }
    }

    /// An error if one run would overwrite what another one saved.
    pub(super) fn check_save(&self, runs: usize) -> Result<()> {
        if self.save.is_empty() || runs <= 1 {
            return Ok(());
        }
        let message = "--save is for one run, and there are several lines: choose one with -n, or give --args";
        Err(Failure::Usage(message.to_owned()))
    }
}

/// What running a file came to.
pub(super) struct Ran {
    pub(super) source: Source,
    pub(super) runs: Vec<Summary>,
    /// Messages with their places.
    pub(super) failures: Vec<String>,
}

impl Ran {
    /// Nothing so far.
    pub(super) fn of(source: Source) -> Ran {
        Ran {
            source,
            runs: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Takes over what a run reports; what has no place is about the file, or the line that was given in place of one of it.
    pub(super) fn add(&mut self, report: TestReport, request: &Request<'_>) {
        let Source { name, text } = &self.source;
        let show = |failure: &RunFailure| match failure.pos.line {
            0 if request.line.is_some() => format!("{name}: error: --args: {failure}"),
            0 => format!("{name}: error: {failure}"),
            _ => failure.show(name, text),
        };
        self.failures.extend(report.failures.iter().map(show));
        self.runs.extend(report.runs);
    }
}

/// Runs the run lines of files.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    if args.line.is_some() && args.files.len() > 1 {
        let message = "--args is for one file";
        return Err(Failure::Usage(message.to_owned()));
    }
    if !args.save.is_empty() && args.files.len() > 1 {
        return Err(Failure::Usage("--save is for one file".to_owned()));
    }
    let save = args.save.iter().map(|entry| save(entry));
    let save: Vec<(String, PathBuf)> = save.collect::<Result<_>>()?;
    let request = Request {
        line: args.line.as_deref(),
        exact: args.exact,
        save: &save,
        prints: args.prints,
        limits: args.limits,
    };
    let mut code = 0;
    for file in &args.files {
        let progress = Progress::new(format!("running {}", file.display()));
        let ran = run_file(file, &args.how, &request);
        drop(progress);
        match ran {
            Ok(ran) => {
                for failure in &ran.failures {
                    say(failure);
                }
                let tables: String = ran.runs.iter().map(ToString::to_string).collect();
                if ran.failures.is_empty() {
                    write_out(None, &format!("{tables}{}: ok\n", ran.source.name))?;
                } else {
                    if !tables.is_empty() {
                        say(tables.trim_end());
                    }
                    code = code.max(1);
                }
            }
            // The other files are run all the same.
            Err(failure) if args.files.len() > 1 => {
                say(&failure.to_string());
                code = code.max(failure.code());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(ExitCode::from(code))
}

/// `[NAME=]FILE`: without a name the file's says it.
fn save(entry: &str) -> Result<(String, PathBuf)> {
    if let Some((name, path)) = entry.split_once('=') {
        return Ok((name.to_owned(), PathBuf::from(path)));
    }
    let path = PathBuf::from(entry);
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let stem =
        stem.ok_or_else(|| Failure::Usage(format!("--save {entry}: expected [NAME=]FILE")))?;
    Ok((stem, path))
}

/// Runs what a file says, or what the request says of it.
pub(super) fn run_file(file: &Path, how: &HowArgs, request: &Request<'_>) -> Result<Ran> {
    let kernel = KernelArgs {
        file: file.to_owned(),
        how: how.clone(),
        json: false,
    };
    let target = target(how.target.as_deref())?;
    if check_usage(&kernel)? == Lang::Py {
        return run_python(&kernel, request, target);
    }
    let (name, bytes) = Source::read_bytes(file)?;
    let text = String::from_utf8_lossy(&bytes);
    if is_ptx_file(file) || is_ptx(&text) {
        let text = text.into_owned();
        return run_ptx_file(Source { name, text }, how, request, target);
    }
    check_tir(how, request)?;
    let source = Source::of(file, name, bytes)?;
    let options = Options {
        asserts: Asserts::Report,
        ..options(&kernel)
    };
    let runs = source
        .text
        .lines()
        .filter(|line| line.trim_start().starts_with("; run:"));
    request.check_save(runs.count())?;
    let report = run_lines(&source.text, &request.setup(target, &options, file));
    let mut ran = Ran::of(source);
    ran.add(report, request);
    Ok(ran)
}

/// Runs an entry of a PTX file on the emulator.
fn run_ptx_file(
    source: Source,
    how: &HowArgs,
    request: &Request<'_>,
    target: Target,
) -> Result<Ran> {
    let Some(line) = request.line else {
        return Err(Failure::Usage(format!(
            "{} is PTX, which has no run lines: give --args, as in --args \"grid(1) block(128) param_0=f32[128] zeros\"",
            source.name
        )));
    };
    let setup = request.setup(target, &Options::DEFAULT, Path::new(""));
    let mut ran = Ran::of(source);
    match run_ptx(&ran.source.text, how.name.as_deref(), line, &setup) {
        Ok(summary) => ran.runs.push(summary),
        Err(message) => ran
            .failures
            .push(format!("{}: error: {message}", ran.source.name)),
    }
    Ok(ran)
}

/// An error for options that a file of the IR states itself.
fn check_tir(how: &HowArgs, request: &Request<'_>) -> Result<()> {
    let problem = if request.line.is_some() {
        "--args is for .py and .ptx files; a .tir file has `; run:` lines"
    } else if how.name.is_some() {
        "-n is for .py and .ptx files; of a .tir file every `; run:` line is run"
    } else if how.num_warps.is_some() || how.num_stages.is_some() {
        "-w and --num-stages are for .py files; a .tir file states its warps and stages"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(problem.to_owned()))
}
