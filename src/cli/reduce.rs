//! `tilelift reduce`: a failing kernel made smaller by `reduce_test_case`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::ProgressBar;

use super::args::{Lang, ReduceArgs, Symptom};
use super::input::{Kernel, check_usage};
use super::messages::say_remark;
use super::python::python_run_notes;
use super::{Failure, Result, cubin, write_out};
use crate::compile::compile;
use crate::error::{CompileError, panic_text};
use crate::filetest::Failure as RunFailure;
use crate::filetest::run::{RunNote, Setup, run_kernel, run_notes};
use crate::ir::function::TileFunction;
use crate::reduce_test_case::{count, reduce_function};
use crate::runtime::{Diagnostic, Severity};
use crate::settings::{Asserts, Promote};

/// Order in which symptoms are looked for where none is named.
const ALL: [Symptom; 4] = [
    Symptom::Panics,
    Symptom::Refused,
    Symptom::Differs,
    Symptom::Ptxas,
];

/// Makes the kernel smaller as long as the same is wrong with it.
pub(super) fn reduce(args: &ReduceArgs) -> Result<ExitCode> {
    let kernel = Kernel::load(&args.kernel)?;
    let runs = match check_usage(&args.kernel)? {
        Lang::Py => python_run_notes(&kernel, &args.kernel)?,
        Lang::Tir => run_notes(&kernel.source.text, kernel.func.name.as_str()),
    };
    let case = Case {
        runs,
        kernel: &kernel,
        args,
    };
    let wanted: &[Symptom] = match &args.check {
        Some(symptom) => std::slice::from_ref(symptom),
        None => &ALL,
    };
    // What panics is told by its message, once.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = wanted
        .iter()
        .find_map(|&symptom| Some((symptom, case.message(&kernel.func, symptom)?)));
    let nothing = || case.nothing_wrong(wanted);
    let reduced = found.ok_or_else(nothing).map(|(symptom, message)| {
        let progress = ProgressBar::new_spinner();
        progress.set_message(message);
        let small = reduce_function(
            &kernel.func,
            Duration::from_secs(args.seconds),
            &mut |left| {
                progress.set_message(format!("{left} instructions"));
                progress.tick();
            },
            &|func| case.message(func, symptom).is_some(),
        );
        progress.finish_and_clear();
        (symptom, small)
    });
    std::panic::set_hook(hook);
    let (symptom, small) = reduced.map_err(Failure::Input)?;
    write_out(args.out.as_deref(), &case.text(&small))?;
    let message = case.message(&small, symptom).unwrap_or_default();
    let (left, all) = (count(&small), count(&kernel.func));
    let message = format!("{left} instructions of {all} are left: {message}");
    let note = Diagnostic {
        severity: Severity::Note,
        ..Diagnostic::error(&kernel.source.name, "", message)
    };
    say_remark(&note, args.kernel.json);
    Ok(ExitCode::SUCCESS)
}

/// A kernel and what is asked about it.
struct Case<'a> {
    kernel: &'a Kernel,
    args: &'a ReduceArgs,
    /// Its run lines.
    runs: Vec<RunNote>,
}

impl Case<'_> {
    /// How the symptom shows on a function; none if it does not, or not with the words asked for.
    fn message(&self, func: &TileFunction, symptom: Symptom) -> Option<String> {
        let shown = catch_unwind(AssertUnwindSafe(|| self.show(func, symptom)));
        let message = match (shown, symptom) {
            (Ok(message), _) => message?,
            (Err(panic), Symptom::Panics) => panic_text(&*panic),
            (Err(_), _) => return None,
        };
        let words = self.args.message.as_deref().unwrap_or("");
        message.contains(words).then_some(message)
    }

    fn show(&self, func: &TileFunction, symptom: Symptom) -> Option<String> {
        let Kernel {
            target, options, ..
        } = self.kernel;
        match symptom {
            Symptom::Panics => match compile(func, *target, options) {
                Err(error @ CompileError::Internal { .. }) => Some(error.to_string()),
                Ok(_) | Err(_) => {
                    self.difference(func);
                    None
                }
            },
            Symptom::Refused => match compile(func, *target, options) {
                Ok(_) | Err(CompileError::Internal { .. }) => None,
                Err(error) => Some(error.to_string()),
            },
            Symptom::Differs => {
                // What does not compile differs in nothing.
                compile(func, *target, options).ok()?;
                self.difference(func)
            }
            Symptom::Ptxas => {
                let compiled = compile(func, *target, options).ok()?;
                match cubin::by_ptxas(&compiled) {
                    Err(Failure::Input(log)) => Some(log),
                    Ok(_) | Err(_) => None,
                }
            }
        }
    }

    /// What an executor says that leaves other buffers than the interpreter, or ends early.
    fn difference(&self, func: &TileFunction) -> Option<String> {
        let mut failures = self.failures(func).map(|failure| failure.to_string());
        failures.find(|message| is_by_executor(message))
    }

    /// What is wrong with the runs of a function, with lines of the file that is reduced.
    fn failures<'b>(&'b self, func: &'b TileFunction) -> impl Iterator<Item = RunFailure> + 'b {
        let setup = Setup {
            steps: self.args.limits.steps,
            programs: self.args.limits.programs,
            by_ops: true,
            folder: self.args.kernel.file.parent(),
            fixed: &self.kernel.constants,
            ..Setup::new(self.kernel.target, &self.kernel.options)
        };
        let run = move |note: &RunNote| run_kernel(func, &note.words, note.line, &setup).failures;
        self.runs.iter().flat_map(run)
    }

    /// A function as a file test.
    fn text(&self, func: &TileFunction) -> String {
        let options = &self.kernel.options;
        let mut words = self.kernel.target.to_string();
        if !options.fp_fusion {
            words += " no-fp-fusion";
        }
        if options.promote == Promote::Never {
            words += " no-promotion";
        }
        if options.asserts == Asserts::Report {
            words += " debug";
        }
        if options.line_info {
            words += " line-info";
        }
        if let Some(bound) = options.max_registers {
            words += &format!(" maxnreg={bound}");
        }
        let (kind, runs) = match self.runs.as_slice() {
            [] => ("ptx", String::new()),
            runs => {
                let lines = runs.iter().map(|note| format!("\n; run: {}", note.words));
                ("run", lines.collect())
            }
        };
        format!("; test: {kind} {words}\n{runs}\n{func}")
    }

    fn nothing_wrong(&self, looked_for: &[Symptom]) -> String {
        let name = &self.kernel.source.name;
        let mut message = match looked_for {
            [Symptom::Panics] => format!("{name}: error: nothing panics"),
            [Symptom::Refused] => format!("{name}: error: the kernel compiles"),
            [Symptom::Differs] => {
                format!("{name}: error: no executor differs from the interpreter")
            }
            [Symptom::Ptxas] => format!("{name}: error: ptxas takes the kernel, or is not there"),
            _ => format!("{name}: error: nothing is wrong with the kernel"),
        };
        if let Some(words) = &self.args.message {
            message += &format!(" with a message that contains `{words}`");
        }
        if self.runs.is_empty() && looked_for.contains(&Symptom::Differs) {
            message += "; it has no run lines, without which nothing is run";
        }
        if looked_for.contains(&Symptom::Differs) {
            let find = || {
                self.failures(&self.kernel.func)
                    .find(|found| !is_by_executor(&found.message))
            };
            // A panic was not among what was looked for.
            if let Ok(Some(found)) = catch_unwind(AssertUnwindSafe(find)) {
                message += &format!(
                    "; but a run line fails without the compiler, and so either the kernel or the line is to be mended, \
                     not reduced: {found}"
                );
            }
        }
        message
    }
}

/// Whether a message is of what runs compiled code. What the interpreter reports is wrong with the kernel, or with what a
/// run line expects, and not with what was made of it.
fn is_by_executor(message: &str) -> bool {
    message.contains(" (seed ")
}
