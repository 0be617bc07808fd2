//! Kernels from Python files: the part of the command line that is Triton's.

use super::args::KernelArgs;
use super::input::Kernel;
use super::{Failure, Result};
use crate::settings::Target;

#[cfg(feature = "triton")]
impl Kernel {
    /// What a command line asks for of a .py file.
    pub(super) fn load_python(args: &KernelArgs, target: Target) -> Result<Kernel> {
        use super::input::{Source, options};
        use super::say;
        use crate::front::{Constant, Module, Specialization, parse_signature};
        use crate::text::parse::Pos;

        let signature = args.signature.as_deref().unwrap_or("");
        let signature = parse_signature(signature).map_err(|e| Failure::Usage(e.to_string()))?;
        let mut spec = Specialization::new(signature, target);
        for entry in &args.constants {
            let constant = entry
                .split_once('=')
                .and_then(|(name, value)| Some((name.trim().to_owned(), Constant::parse(value)?)));
            let Some(constant) = constant else {
                let message = format!(
                    "-c {entry}: expected NAME=VALUE, where VALUE is a number, True, False, None, a quoted string or a type"
                );
                return Err(Failure::Usage(message));
            };
            spec.constants.push(constant);
        }
        spec.num_warps = args.num_warps.unwrap_or(4);
        spec.num_stages = args.num_stages;
        spec.num_ctas = args.num_ctas;
        spec.debug = args.debug;
        spec.sanitize_overflow = !args.no_sanitize_overflow;

        let (name, bytes) = Source::read_bytes(&args.file)?;
        let failed = |d: crate::front::Diagnostics| Failure::Input(d.to_string());
        let module = Module::parse_bytes(&name, &bytes).map_err(failed)?;
        let lowered = module.lower(args.name.as_deref(), &spec).map_err(failed)?;
        if !lowered.notes.list.is_empty() {
            say(&lowered.notes.to_string());
        }
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
        })
    }
}

#[cfg(not(feature = "triton"))]
impl Kernel {
    /// Without the feature there is no language.
    pub(super) fn load_python(_args: &KernelArgs, _target: Target) -> Result<Kernel> {
        let message = "this build has no Triton language; build it with the feature `triton`";
        Err(Failure::Usage(message.to_owned()))
    }
}
