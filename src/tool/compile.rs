//! `tilelift compile`.

use std::process::ExitCode;

use super::args::CompileArgs;
use super::input::Kernel;
use super::metadata;
use super::{Failure, Result, write_out};
use crate::compile;
use crate::emit::{Stage, emit};
use crate::ir::attrs::Attrs;
use crate::ir::function::TileFunction;

/// Compiles a kernel and writes what was asked for.
pub(super) fn compile(args: &CompileArgs) -> Result<ExitCode> {
    let Some(stage) = args.emit.stage() else {
        let message = "--emit rust is not there yet; --emit tile gives the text form";
        return Err(Failure::Usage(message.to_owned()));
    };
    let kernel = Kernel::load(&args.kernel)?;
    let (func, target, options) = (&kernel.func, kernel.target, &kernel.options);
    let refused = |e| kernel.refused(&e);
    // The description needs the whole way; the text may stop earlier.
    let compiled = match (&args.meta, stage) {
        (None, stage) if stage != Stage::Ptx => None,
        _ => Some(compile::compile(func, target, options).map_err(refused)?),
    };
    let text = match (&compiled, stage) {
        (Some(compiled), Stage::Ptx) => compiled.ptx.clone(),
        _ => emit(func, target, options, stage).map_err(refused)?,
    };
    if let (Some(path), Some(compiled)) = (&args.meta, &compiled) {
        let json = metadata::json(&compiled.meta, num_stages(func), &kernel.constants);
        write_out(Some(path), &json)?;
    }
    write_out(args.out.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// The most stages that a loop of the kernel asks for.
fn num_stages(func: &TileFunction) -> u8 {
    let blocks = func.all_blocks();
    let insts = blocks.iter().flat_map(|&block| func.order.insts(block));
    let stages = insts.filter_map(|&inst| func.dfg.insts[inst].stages());
    stages.copied().max().unwrap_or(1)
}
