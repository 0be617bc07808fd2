//! `tilelift compile`: a kernel's PTX, or its text at one stage, and what a launcher must know of it.

mod stats;
mod warnings;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::args::{CompileArgs, Emit};
use super::cubin;
use super::input::Kernel;
use super::messages::say_remark;
use super::{Failure, Result, write_bytes, write_out};
use crate::compile::{self, CompiledKernel};
use crate::ir::attrs::Attrs;
use crate::ir::function::TileFunction;
use crate::metadata;
use crate::runtime::{Diagnostic, RustModule, Severity, name_source};
use crate::settings::{Options, Promote};
use crate::stages::{Stage, emit};

/// Compiles a kernel and writes what was asked for.
pub(super) fn compile(args: &CompileArgs) -> Result<ExitCode> {
    // A Rust module holds the PTX.
    let stage = args.emit.stage().unwrap_or(Stage::Ptx);
    if let (Some(out), Some(meta)) = (&args.out, &args.meta)
        && is_same(out, meta)
    {
        let message = "-o and --meta name the same file; one would replace the other";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.cubin && args.emit != Emit::Rust {
        let message = "--cubin goes with --emit rust";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.line.is_some() && args.emit != Emit::Stats {
        let message = "--args goes with --emit stats";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.emit == Emit::Cubin && args.out.is_none() && std::io::stdout().is_terminal() {
        let message = "machine code is not for a terminal: -o FILE, or `-o -` all the same";
        return Err(Failure::Usage(message.to_owned()));
    }
    let kernel = Kernel::load(&args.kernel)?;
    let (func, target, options) = (&kernel.func, kernel.target, &kernel.options);
    let refused = |e| kernel.refused(&e);
    // The description needs the whole way, and so does what is said of spills; the text may stop earlier.
    let compiled = match (&args.meta, stage) {
        (None, stage) if !matches!(stage, Stage::Ptx | Stage::Stats) => None,
        _ => Some(compile::compile(func, target, options).map_err(refused)?),
    };
    let compiled = compiled.map(|mut compiled| {
        if options.line_info && kernel.has_lines {
            compiled.ptx = name_source(&compiled.ptx, &kernel.source.name);
        }
        compiled
    });
    if let Some(compiled) = &compiled {
        let warnings = [
            warnings::of_spills(compiled, options),
            warnings::of_cut_stages(compiled),
        ];
        for (message, help) in warnings.into_iter().flatten() {
            let warning = Diagnostic {
                severity: Severity::Warning,
                help: Some(help),
                ..kernel.source.diagnostic(kernel.place, "", &message)
            };
            say_remark(&warning, args.kernel.json);
        }
    }
    let plain = match &compiled {
        Some(compiled) if !compiled.meta.maps.is_empty() => {
            let options = Options {
                promote: Promote::Never,
                ..*options
            };
            Some(compile::compile(func, target, &options).map_err(refused)?)
        }
        _ => None,
    };
    let expected = args.line.as_deref();
    let expected = expected.map(|line| stats::expected(&kernel, line));
    let expected = expected.transpose()?;
    let mut machine_code = None;
    let text = match (&compiled, stage) {
        (Some(compiled), _) if args.emit == Emit::Rust => {
            let cubin = match args.cubin {
                true => Some(cubin::assemble(compiled)?),
                false => None,
            };
            let mut module = RustModule::new(compiled, func);
            #[cfg(feature = "triton")]
            {
                module = module
                    .signature(&kernel.signature)
                    .constants(&kernel.constants);
            }
            if let Some(plain) = &plain {
                module = module.fallback(plain);
            }
            if let Some(cubin) = &cubin {
                module = module.cubin(cubin);
            }
            module.to_string()
        }
        (Some(compiled), _) if matches!(args.emit, Emit::Cubin | Emit::Sass) => {
            let code = cubin::assemble(compiled)?;
            if args.emit == Emit::Cubin {
                machine_code = Some(code);
                String::new()
            } else {
                cubin::disassemble(compiled, &code)?
            }
        }
        (Some(compiled), Stage::Ptx) => compiled.ptx.clone(),
        (Some(compiled), Stage::Stats) if args.kernel.json => {
            stats::json(compiled, options, expected.as_ref())
        }
        _ => {
            let expected = expected.map_or(String::new(), |expected| expected.to_string());
            emit(func, target, options, stage).map_err(refused)? + &expected
        }
    };
    if let (Some(path), Some(compiled)) = (&args.meta, &compiled) {
        let beside = path.with_extension("plain.ptx");
        let fallback = plain.as_ref().map(|plain| {
            let file = beside.file_name().unwrap_or_default().to_string_lossy();
            (plain, file)
        });
        if let Some((plain, _)) = &fallback {
            write_out(Some(&beside), &plain.ptx)?;
        }
        let json = metadata::json(
            &compiled.meta,
            num_stages(func, compiled),
            &kernel.constants,
            fallback
                .as_ref()
                .map(|(plain, file)| (&plain.meta, &**file)),
        );
        write_out(Some(path), &json)?;
    }
    let bytes = machine_code.as_deref().unwrap_or(text.as_bytes());
    write_bytes(args.out.as_deref(), bytes)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether two paths lead to one place, as far as can be told before anything is written there.
fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| -> PathBuf {
        if let Ok(place) = path.canonicalize() {
            return place;
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.join(path.file_name().unwrap_or_default())
    };
    // What is no regular file, such as the null device, takes several texts.
    let replaces = |path: &Path| path.metadata().map_or(true, |m| m.is_file());
    (a == b || place(a) == place(b)) && replaces(a)
}

/// The most stages that a loop of the kernel asks for; if shared memory has too little room for them, those there is room for.
fn num_stages(func: &TileFunction, compiled: &CompiledKernel) -> u32 {
    if let Some(cut) = compiled.stats.cut_stages {
        return cut.used;
    }
    let insts = func.all_insts();
    let stages = insts.filter_map(|(_, inst)| func.dfg.insts[inst].stages());
    stages.copied().max().map_or(1, u32::from)
}
