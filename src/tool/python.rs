//! Kernels from Python files: the part of the command line that is Triton's.

#[cfg(not(feature = "triton"))]
use super::{Failure, Result, args::KernelArgs, input::Kernel};
#[cfg(not(feature = "triton"))]
use crate::settings::Target;

#[cfg(feature = "triton")]
mod with_front {
    use super::super::args::{KernelArgs, RunArgs};
    use super::super::input::{Kernel, Source, options};
    use super::super::{Failure, Result, say};
    use crate::filetest::Failure as RunFailure;
    use crate::filetest::run::{Setup, Summary, run_lines};
    use crate::front::{Constant, Diagnostics, Lowered, Module, Specialization, parse_signature};
    use crate::settings::Target;
    use crate::text::parse::Pos;

    /// What the command line specialises a kernel for.
    fn specialization(args: &KernelArgs, target: Target) -> Result<Specialization> {
        let signature = args.signature.as_deref().unwrap_or("");
        let signature = parse_signature(signature).map_err(|e| Failure::Usage(e.to_string()))?;
        let mut spec = Specialization::new(signature, target);
        for entry in &args.constants {
            spec.constants.push(constant(entry, "-c ")?);
        }
        spec.num_warps = args.num_warps.unwrap_or(4);
        spec.num_stages = args.num_stages;
        spec.num_ctas = args.num_ctas;
        spec.debug = args.debug;
        spec.sanitize_overflow = !args.no_sanitize_overflow;
        Ok(spec)
    }

    /// `NAME=VALUE`.
    fn constant(entry: &str, option: &str) -> Result<(String, Constant)> {
        let constant = entry
            .split_once('=')
            .and_then(|(name, value)| Some((name.trim().to_owned(), Constant::parse(value)?)));
        constant.ok_or_else(|| {
            Failure::Usage(format!(
                "{option}{entry}: expected NAME=VALUE, where VALUE is a number of at most 127 bits, True, False, None, \
                 a quoted string, a type, or @NAME for a function of the file"
            ))
        })
    }

    fn failed(diagnostics: Diagnostics) -> Failure {
        Failure::Input(diagnostics.to_string())
    }

    fn lower(module: &Module, kernel: Option<&str>, spec: &Specialization) -> Result<Lowered> {
        let lowered = module.lower(kernel, spec).map_err(failed)?;
        if !lowered.notes.list.is_empty() {
            say(&lowered.notes.to_string());
        }
        Ok(lowered)
    }

    impl Kernel {
        /// What a command line asks for of a .py file.
        pub(in super::super) fn load_python(args: &KernelArgs, target: Target) -> Result<Kernel> {
            let spec = specialization(args, target)?;
            let (name, bytes) = Source::read_bytes(&args.file)?;
            let module = Module::parse_bytes(&name, &bytes).map_err(failed)?;
            let lowered = lower(&module, args.name.as_deref(), &spec)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Kernel {
                source: Source { name, text },
                func: lowered.func,
                place: Pos {
                    line: lowered.line,
                    column: lowered.column,
                },
                target,
                options: options(args),
                has_lines: true,
                constants: lowered.constants,
                signature: spec.args,
            })
        }
    }

    /// A kernel of the file to be run.
    struct Run {
        /// The line that says so, first is 1; 0 for the command line.
        line: u32,
        kernel: Option<String>,
        spec: Specialization,
        words: String,
    }

    /// `# run: NAME "SIGNATURE" [CONSTANT=VALUE].. : LINE` in the lines of a file.
    fn runs(name: &str, text: &str, args: &KernelArgs, target: Target) -> Result<Vec<Run>> {
        let mut found = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("# run: ") else {
                continue;
            };
            let parts = rest.split_once(" : ").and_then(|(head, words)| {
                let (kernel, rest) = head.split_once('"')?;
                let (signature, constants) = rest.rsplit_once('"')?;
                Some((kernel.trim(), signature, constants, words))
            });
            let wrong = |problem: &str| {
                let line = i + 1;
                Failure::Input(format!(
                    "{name}:{line}: error: {problem}; a run line reads `# run: NAME \"SIGNATURE\" [CONSTANT=VALUE].. : grid(..) ..`"
                ))
            };
            let Some((kernel, signature, constants, words)) = parts else {
                return Err(wrong("this cannot be read"));
            };
            let signature = parse_signature(signature).map_err(|e| wrong(&e.to_string()))?;
            let mut spec = specialization(args, target)?;
            spec.args = signature;
            for entry in constants.split_whitespace() {
                let (name, value) = constant(entry, "").map_err(|e| wrong(&e.to_string()))?;
                match (name.as_str(), &value) {
                    ("num_warps", Constant::Int(n)) => {
                        spec.num_warps = u32::try_from(*n).unwrap_or(0);
                    }
                    ("num_ctas", Constant::Int(n)) => {
                        spec.num_ctas = u32::try_from(*n).unwrap_or(0);
                    }
                    _ => spec.constants.push((name, value)),
                }
            }
            found.push(Run {
                line: i as u32 + 1,
                kernel: (!kernel.is_empty()).then(|| kernel.to_owned()),
                spec,
                words: words.to_owned(),
            });
        }
        Ok(found)
    }

    /// The run lines of a file that are of this kernel, for the same signature and constants, as a .tir file has them.
    pub(in super::super) fn python_run_notes(
        kernel: &Kernel,
        args: &KernelArgs,
    ) -> Result<Vec<String>> {
        let Source { name, text } = &kernel.source;
        let module = Module::parse_bytes(name, text.as_bytes()).map_err(failed)?;
        let program = kernel.func.to_string();
        let is_same = |run: &Run| {
            let lowered = module.lower(run.kernel.as_deref(), &run.spec);
            lowered.is_ok_and(|lowered| lowered.func.to_string() == program)
        };
        let runs = runs(name, text, args, kernel.target)?;
        let notes = runs.iter().filter(|run| is_same(run));
        Ok(notes.map(|run| format!("; run: {}", run.words)).collect())
    }

    /// Runs kernels of a .py file: gives the tables of what was run, and what failed.
    pub(in super::super) fn run_python(
        args: &RunArgs,
        target: Target,
    ) -> Result<(String, Vec<Summary>, Vec<String>)> {
        let (name, bytes) = Source::read_bytes(&args.kernel.file)?;
        let module = Module::parse_bytes(&name, &bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let runs = match &args.line {
            Some(words) => vec![Run {
                line: 0,
                kernel: args.kernel.name.clone(),
                spec: specialization(&args.kernel, target)?,
                words: words.clone(),
            }],
            None if args.kernel.signature.is_some() => {
                let message = "-s gives a signature, but what the arguments hold is missing: give --args, as in \
                               --args \"grid(1) x=f32[16] iota(0) n=16\"";
                return Err(Failure::Usage(message.to_owned()));
            }
            None => runs(&name, &text, &args.kernel, target)?,
        };
        let wanted = |run: &Run| match (&args.line, &args.kernel.name, &run.kernel) {
            (None, Some(name), Some(kernel)) => name == kernel,
            _ => true,
        };
        let runs: Vec<Run> = runs.into_iter().filter(wanted).collect();
        if runs.is_empty() {
            return Err(Failure::Usage(format!(
                "{name} has no `# run:` line: write one (see `tilelift run --help`), or give -n, -s and --args"
            )));
        }
        let options = options(&args.kernel);
        let setup = Setup {
            target,
            options: &options,
            steps: args.steps,
        };
        let (mut summaries, mut failures) = (Vec::new(), Vec::new());
        for run in runs {
            let lowered = lower(&module, run.kernel.as_deref(), &run.spec)?;
            // The run line stands last, where nothing of the kernel's text can be mistaken for it.
            let program = format!("{}; run: {}\n", lowered.func, run.words);
            let report = run_lines(&program, &setup);
            for failure in &report.failures {
                failures.push(show(failure, &program, &name, &text, &run));
            }
            summaries.extend(report.runs.into_iter().map(|mut summary| {
                summary.line = run.line;
                summary
            }));
        }
        Ok((name, summaries, failures))
    }

    /// A failure with its place in the Python file if it is about the run line, else in the kernel's text.
    fn show(failure: &RunFailure, program: &str, name: &str, text: &str, run: &Run) -> String {
        let last = program.lines().count() as u32;
        if failure.pos.line != last {
            return failure.show(&format!("{name} as .tir"), program);
        }
        if run.line == 0 {
            return format!("error: --args: {}", failure.message);
        }
        let mut failure = failure.clone();
        failure.pos = Pos {
            line: run.line,
            column: 0,
        };
        failure.show(name, text)
    }
}

#[cfg(feature = "triton")]
pub(super) use with_front::{python_run_notes, run_python};

#[cfg(not(feature = "triton"))]
impl Kernel {
    /// Without the feature there is no language.
    pub(super) fn load_python(_args: &KernelArgs, _target: Target) -> Result<Kernel> {
        Err(missing())
    }
}

/// Without the feature there is no language.
#[cfg(not(feature = "triton"))]
pub(super) fn run_python(
    _args: &super::args::RunArgs,
    _target: Target,
) -> Result<(String, Vec<crate::filetest::run::Summary>, Vec<String>)> {
    Err(missing())
}

/// Without the feature there is no language.
#[cfg(not(feature = "triton"))]
pub(super) fn python_run_notes(_kernel: &Kernel, _args: &KernelArgs) -> Result<Vec<String>> {
    Err(missing())
}

#[cfg(not(feature = "triton"))]
fn missing() -> Failure {
    let message = "this build has no Triton language; build it with the feature `triton`";
    Failure::Usage(message.to_owned())
}
