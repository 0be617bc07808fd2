//! `tilelift run`.

use std::process::ExitCode;

use super::args::{KernelArgs, Lang, RunArgs};
use super::input::{Source, check_usage, options, target};
use super::python::run_python;
use super::{Failure, Result, say, write_out};
use crate::filetest::run::{Setup, run_lines};

/// Runs the run lines of a file.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    let target = target(args.kernel.target.as_deref())?;
    let (name, runs, failures) = if check_usage(&args.kernel)? == Lang::Py {
        run_python(args, target)?
    } else {
        check_tir(&args.kernel, args)?;
        let options = options(&args.kernel);
        let setup = Setup {
            target,
            options: &options,
            steps: args.steps,
        };
        let source = Source::read(&args.kernel.file)?;
        let report = run_lines(&source.text, &setup);
        let failures = report.failures.iter();
        let failures = failures.map(|failure| failure.show(&source.name, &source.text));
        let failures = failures.collect();
        (source.name, report.runs, failures)
    };
    for failure in &failures {
        say(failure);
    }
    let tables: String = runs.iter().map(ToString::to_string).collect();
    if !failures.is_empty() {
        say(tables.trim_end());
        return Ok(ExitCode::from(1));
    }
    write_out(None, &format!("{tables}{name}: ok\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// An error for options that a file of the IR states itself.
fn check_tir(kernel: &KernelArgs, args: &RunArgs) -> Result<()> {
    let problem = if args.line.is_some() {
        "--args is for .py files; a .tir file has `; run:` lines"
    } else if kernel.name.is_some() {
        "-n is for .py files; of a .tir file every `; run:` line is run"
    } else if kernel.num_warps.is_some() || kernel.num_stages.is_some() {
        "-w and --num-stages are for .py files; a .tir file states its warps and stages"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(problem.to_owned()))
}
