//! What the assembler is told of the registers that it may use. Unless told it looks for fewer and fewer, for CTAs that find no
//! room in shared memory, of which it knows nothing if it is dynamic.
//!
//! - Where far too much is alive: one CTA is enough. Without that ptxas 12 and 13 fall back to 32 registers for some kernels, and
//!   spill ten times as much as they do with all 255.
//! - Products of matrices that need more than [`ROOMY`] registers whatever it does: the same. Most often the code stays the same,
//!   but the assembler takes a tenth to a fifth less time, as it does not look.
//! - Products that need somewhat less: as many. Of kernels with one prediction ptxas gives some 162 registers and some 128, in
//!   which it cannot load operands before the units have taken the last ones (a product of 1024^3: 13.5 and 16.0 us).
//! - Of products of 8-bit floats nothing: for later targets it writes them as conversions, with registers that nobody predicts.
//! - Few registers: how many CTAs shared memory has room for, if these are few and registers would do for more.

use std::fmt;

use crate::ir::attrs::{Attrs, MmaUnit};
use crate::ir::function::ThreadFunction;
use crate::settings::Target;

/// Registers by which a prediction may be too low.
const UNSURE: u32 = 24;

/// Registers above which the assembler seldom saves any.
const CHOICE: u32 = 144;

/// Registers with which three CTAs of four warps find room, and one of eight.
const ROOMY: u32 = 168;

/// Most CTAs beside each other of which the assembler is told.
const MOST_BESIDE: u32 = 3;

/// A directive that bounds registers; its text is that of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterBound {
    /// Most registers of a thread.
    Registers(u32),
    /// CTAs for which registers must do.
    Ctas(u32),
}

impl RegisterBound {
    /// The bound that was asked for. The assembler takes its word for it, and gives a kernel more registers than there are for its
    /// threads, so that no launch succeeds.
    pub(super) fn at_most(registers: u16, threads: u32) -> Self {
        RegisterBound::Registers(u32::from(registers).min(Target::most_registers(threads)))
    }

    /// The bound for a kernel of which so many registers are predicted.
    pub(super) fn of(func: &ThreadFunction, target: Target, predicted: u32) -> Option<Self> {
        let most = Target::most_registers(func.num_threads());
        if predicted > most {
            return Some(RegisterBound::Ctas(1));
        }
        // What is predicted may be too little.
        let registers = predicted + UNSURE;
        if registers > CHOICE {
            let insts = func.order.blocks.iter().flat_map(|&b| func.order.insts(b));
            let mut units = insts.filter_map(|&inst| func.dfg.insts[inst].unit());
            return match units.next()? {
                MmaUnit::E4m3 | MmaUnit::E4m3E5m2 | MmaUnit::E5m2E4m3 | MmaUnit::E5m2 => None,
                _ if registers > ROOMY => Some(RegisterBound::Ctas(1)),
                _ => Some(RegisterBound::Registers(ROOMY.min(most))),
            };
        }
        let slots = func.slots.values();
        let ends = slots.filter_map(|s| Some(s.offset? + s.bytes));
        let ctas = target.resident_by_shared(ends.max()?)?;
        let by_registers = Target::resident_by_registers(func.num_threads(), registers);
        let is_few = (1..=MOST_BESIDE).contains(&ctas) && ctas <= by_registers;
        is_few.then_some(RegisterBound::Ctas(ctas))
    }
}

impl fmt::Display for RegisterBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterBound::Registers(most) => write!(f, ".maxnreg {most}"),
            RegisterBound::Ctas(ctas) => write!(f, ".minnctapersm {ctas}"),
        }
    }
}
