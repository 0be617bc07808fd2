//! Kernels from Python files: the part of the command line that is Triton's.

#[cfg(not(feature = "triton"))]
use super::{Failure, Result, args::KernelArgs, input::Kernel};
#[cfg(not(feature = "triton"))]
use crate::settings::Target;

#[cfg(feature = "triton")]
mod with_front {
    use std::path::Path;

    use super::super::args::KernelArgs;
    use super::super::input::{Kernel, Source, options};
    use super::super::messages::say_python;
    use super::super::run::{Ran, Request};
    use super::super::{Failure, Result};
    use crate::filetest::run::{RunNote, Setup, run_kernel};
    use crate::front::{
        CallSite, Constant, Diagnostics, Lowered, Module, Specialization, named_constant,
        parse_signature, read_request, with_imports,
    };
    use crate::settings::{Asserts, Options, Target};
    use crate::text::parse::Pos;

    /// What the command line specialises a kernel for.
    fn specialization(args: &KernelArgs, target: Target) -> Result<Specialization> {
        let signature = args.how.signature.as_deref().unwrap_or("");
        let signature = parse_signature(signature).map_err(|e| Failure::Usage(e.to_string()))?;
        let mut spec = Specialization::new(signature, target);
        for entry in &args.how.constants {
            spec.constants.push(constant(entry, "-c ")?);
        }
        spec.num_warps = args.how.num_warps.unwrap_or(spec.num_warps);
        spec.num_stages = args.how.num_stages;
        spec.num_ctas = args.how.num_ctas;
        spec.debug = args.how.debug;
        spec.sanitize_overflow = !args.how.no_sanitize_overflow;
        Ok(spec)
    }

    /// `NAME=VALUE`.
    fn constant(entry: &str, option: &str) -> Result<(String, Constant)> {
        named_constant(entry).map_err(|problem| Failure::Usage(format!("{option}{problem}")))
    }

    fn failed(diagnostics: Diagnostics) -> Failure {
        Failure::Python(Box::new(diagnostics))
    }

    /// A file with what its kernels need of files that it imports.
    fn module(path: &Path, name: &str, bytes: &[u8]) -> Result<Module> {
        let text = std::str::from_utf8(bytes);
        let module = match text {
            Ok(text) => Module::parse(name, &with_imports(path, text)),
            Err(_) => Module::parse_bytes(name, bytes),
        };
        module.map_err(failed)
    }

    fn lower(
        module: &Module,
        kernel: Option<&str>,
        spec: &Specialization,
        as_json: bool,
    ) -> Result<Lowered> {
        let lowered = module.lower(kernel, spec).map_err(failed)?;
        if !lowered.notes.list.is_empty() {
            say_python(&lowered.notes, as_json);
        }
        Ok(lowered)
    }

    /// A failure with the run line that asked for the kernel, as the outermost call.
    fn asked_by(mut failure: Failure, run: &Run) -> Failure {
        if let Failure::Python(diagnostics) = &mut failure
            && let Some(before) = run.line.checked_sub(1)
        {
            let lines = diagnostics.text.split_inclusive('\n');
            let start: usize = lines.take(before as usize).map(str::len).sum();
            let rest = &diagnostics.text[start..];
            let length = rest.find('\n').unwrap_or(rest.len());
            let call = CallSite {
                function: run.kernel.clone().unwrap_or_default(),
                span: start..start + length,
            };
            for diagnostic in &mut diagnostics.list {
                diagnostic.calls.push(call.clone());
            }
        }
        failure
    }

    impl Kernel {
        /// What a command line asks for of a .py file.
        pub(in super::super) fn load_python(args: &KernelArgs, target: Target) -> Result<Kernel> {
            let spec = specialization(args, target)?;
            let (name, bytes) = Source::read_bytes(&args.file)?;
            let module = module(&args.file, &name, &bytes)?;
            let lowered = lower(&module, args.how.name.as_deref(), &spec, args.json)?;
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
    /// What is wrong with lines that cannot be read comes beside the others.
    fn runs(
        name: &str,
        text: &str,
        args: &KernelArgs,
        target: Target,
    ) -> Result<(Vec<Run>, Vec<Failure>)> {
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        for (i, line) in text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("# run:") else {
                continue;
            };
            let wrong = |problem: &str| {
                let line = i + 1;
                let message = format!(
                    "{problem}; a run line reads `# run: NAME \"SIGNATURE\" [CONSTANT=VALUE].. : grid(..) ..`"
                );
                Failure::of_file(name, u32::try_from(line).ok(), &message)
            };
            let Some((head, words)) = rest.split_once(" : ") else {
                unread.push(wrong("there is no ` : ` in front of the grid"));
                continue;
            };
            let mut spec = specialization(args, target)?;
            let kernel = match read_request(head, &mut spec, &mut |_, _| Ok(false)) {
                Ok(kernel) => kernel,
                Err(problem) => {
                    unread.push(wrong(&problem));
                    continue;
                }
            };
            found.push(Run {
                line: i as u32 + 1,
                kernel,
                spec,
                words: words.to_owned(),
            });
        }
        Ok((found, unread))
    }

    /// The run lines of a file that are of this kernel, for the same signature and constants, with their lines.
    pub(in super::super) fn python_run_notes(
        kernel: &Kernel,
        args: &KernelArgs,
    ) -> Result<Vec<RunNote>> {
        let Source { name, text } = &kernel.source;
        let module = module(&args.file, name, text.as_bytes())?;
        let program = kernel.func.to_string();
        let is_same = |run: &Run| {
            let lowered = module.lower(run.kernel.as_deref(), &run.spec);
            lowered.is_ok_and(|lowered| lowered.func.to_string() == program)
        };
        let (runs, unread) = runs(name, text, args, kernel.target)?;
        if let Some(failure) = unread.into_iter().next() {
            return Err(failure);
        }
        let notes = runs.into_iter().filter(is_same).map(|run| RunNote {
            line: run.line,
            words: run.words,
        });
        Ok(notes.collect())
    }

    /// Runs kernels of a .py file.
    pub(in super::super) fn run_python(
        args: &KernelArgs,
        request: &Request<'_>,
        target: Target,
    ) -> Result<Ran> {
        let (name, bytes) = Source::read_bytes(&args.file)?;
        let module = module(&args.file, &name, &bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut unread = Vec::new();
        let runs = match request.line {
            Some(words) => vec![Run {
                line: 0,
                kernel: args.how.name.clone(),
                spec: specialization(args, target)?,
                words: words.to_owned(),
            }],
            None if args.how.signature.is_some() => {
                let message = "-s gives a signature, but what the arguments hold is missing: give --args, as in \
                               --args \"grid(1) x=f32[16] iota(0) n=16\"";
                return Err(Failure::Usage(message.to_owned()));
            }
            None => {
                let (runs, wrong) = runs(&name, &text, args, target)?;
                unread = wrong;
                runs
            }
        };
        let lines = runs.len() + unread.len();
        let wanted = |run: &Run| match (request.line, &args.how.name, &run.kernel) {
            (None, Some(name), Some(kernel)) => name == kernel,
            _ => true,
        };
        let runs: Vec<Run> = runs.into_iter().filter(wanted).collect();
        if runs.is_empty() && unread.len() == 1 {
            return Err(unread.remove(0));
        }
        if runs.is_empty() && unread.is_empty() && lines > 0 {
            let kernel = args.how.name.as_deref().unwrap_or_default();
            return Err(Failure::Usage(format!(
                "none of the `# run:` lines of {name} is of a kernel `{kernel}`: write one, or give -s and --args"
            )));
        }
        if lines == 0 {
            return Err(Failure::Usage(format!(
                "{name} has no `# run:` line: write one (see `tilelift run --help`), or give -n, -s and --args"
            )));
        }
        request.check_save(runs.len())?;
        let options = Options {
            asserts: Asserts::Report,
            ..options(args)
        };
        let setup = request.setup(target, &options, &args.file);
        let mut ran = Ran::of(Source { name, text });
        let unread = unread.iter().map(Failure::to_string);
        ran.failures.extend(unread);
        for mut run in runs {
            // A run is there to find what is wrong. What `debug` asserts of itself, overflow, it does if it is asked for.
            run.spec.sanitize_overflow &= run.spec.debug;
            run.spec.debug = true;
            let lowered = match lower(&module, run.kernel.as_deref(), &run.spec, args.json) {
                Ok(lowered) => lowered,
                // What is wrong with the other lines is told as well.
                Err(failure) if lines > 1 => {
                    ran.failures.push(asked_by(failure, &run).to_string());
                    continue;
                }
                Err(failure) => return Err(asked_by(failure, &run)),
            };
            let setup = Setup {
                fixed: &lowered.constants,
                ..setup
            };
            let report = run_kernel(&lowered.func, &run.words, run.line, &setup);
            ran.add(report, request);
        }
        Ok(ran)
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
    _args: &KernelArgs,
    _request: &super::run::Request<'_>,
    _target: Target,
) -> Result<super::run::Ran> {
    Err(missing())
}

/// Without the feature there is no language.
#[cfg(not(feature = "triton"))]
pub(super) fn python_run_notes(
    _kernel: &Kernel,
    _args: &KernelArgs,
) -> Result<Vec<crate::filetest::run::RunNote>> {
    Err(missing())
}

#[cfg(not(feature = "triton"))]
fn missing() -> Failure {
    let message = "this build has no Triton language; build it with the feature `triton`";
    Failure::Usage(message.to_owned())
}
