//! `tilelift explain`.

use std::process::ExitCode;

use super::args::ExplainArgs;
use super::input::Kernel;
use super::{Result, write_out};
use crate::compile::compile_with;

/// Shows the kernel after every pass. A pass that changes nothing is named all the same.
pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    let kernel = Kernel::load(&args.kernel)?;
    let mut last = kernel.func.to_string();
    let mut out = format!("; --- as it was read\n{last}");
    let result = compile_with(
        &kernel.func,
        kernel.target,
        &kernel.options,
        &mut |pass, snapshot| {
            let text = snapshot.to_string();
            if text == last {
                out += &format!("\n; --- {pass} changes nothing\n");
            } else {
                out += &format!("\n; --- after {pass}\n{text}");
                last = text;
            }
        },
    );
    // What was seen on the way helps most when the way ends early.
    if let Ok(compiled) = &result {
        for load in &compiled.stats.promotions {
            out += &format!("\n; --- {load}\n");
        }
        out += &format!("\n; --- PTX for {}\n{}", kernel.target, compiled.ptx);
    }
    write_out(None, &out)?;
    result.map_err(|e| kernel.refused(&e))?;
    Ok(ExitCode::SUCCESS)
}
