//! The back end: from the thread IR to PTX text.

use crate::compile::CompileError;
use crate::ir::function::ThreadFunction;
use crate::isa::{lower, order};
use crate::regalloc;
use crate::settings::diversity::{Choices, Site};
use crate::settings::{Options, PtxVersion, Target};

mod emit;
mod params;
mod program;
mod register_bound;

pub(crate) use params::param_bytes;

/// What was emitted, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Integer arithmetic and bits.
    pub int: u32,
    /// Floating-point arithmetic.
    pub float: u32,
    /// Comparisons and selections.
    pub compare: u32,
    /// Conversions.
    pub convert: u32,
    /// Accesses to memory and parameters.
    pub memory: u32,
    /// Exchange between lanes and barriers.
    pub sync: u32,
    /// Copies, joining and splitting of registers.
    pub moves: u32,
    /// Branches.
    pub branches: u32,
    /// Registers of a thread that the assembler is expected to use.
    pub predicted_registers: u32,
    /// Registers of a thread with fewer than which the assembler is expected to spill.
    pub needed_registers: u32,
    /// Most registers that are live at one place: predicates, 16, 32 and 64 bits.
    pub peak: [u32; 4],
}

/// PTX of a kernel, and the version of the language it is in: the lowest that has the target and all instructions used.
pub fn emit(
    func: &ThreadFunction,
    target: Target,
    options: &Options,
) -> Result<(String, PtxVersion, Stats), CompileError> {
    let mut code = lower::lower(func, target)?;
    order::order(&mut code, Choices::new(options.diversity, Site::Order));
    let program = program::CodeProgram(&code);
    let choices = Choices::new(options.diversity, Site::Registers);
    let allocation = regalloc::allocate(&program, choices);
    if options.verify_passes {
        regalloc::check::check(&program, &allocation).map_err(|error| CompileError::Internal {
            pass: "register allocation",
            message: error.to_string(),
        })?;
    }
    Ok(emit::write(func, &code, &allocation, target, options))
}

#[cfg(test)]
mod tests;
