//! V26: what stands in the rings of a scheduled kernel, and when.
//!
//! Whoever schedules a loop decides how far copies run ahead, which entry each fills, which barrier or group each read waits for, and
//! when an entry may be filled again. This check knows nothing of these decisions. It executes the kernel as it is, prologue, loop and
//! epilogue, without its blocks: scalars have values, blocks only names, and of shared memory it keeps what is in each entry of each ring
//! ([`state`]). Copies and products take as long as they may: what is copied is there only behind a wait that covers it, and what a
//! product reads is read until a wait for it. Arguments, and what is loaded, are chosen at random, small, and so that loops run no time,
//! once and a few times more than rings have entries ([`scalar`]); equal computations give equal numbers. As indices and phases repeat
//! after twice as many iterations as a ring has entries, more of them show nothing new.
//!
//! Kernels with roles are executed in every compilation, a few times: whoever waits for a barrier that nobody completes hangs the GPU.
//! Where passes are verified, and of kernels without a producer there alone, it is [`SAMPLES`] executions. These take 10 % of the
//! instructions to compile the product of examples/kernels in blocks of 128 x 256 x 64 with all passes verified, 5 % of attention's
//! (counted by callgrind, 2026-11-26); a quarter of them stays in every compilation.
//!
//! A kernel whose loops do not come to an end within [`MOST_STEPS`] instructions is judged up to there. What groups of threads
//! do to the same bytes between barriers is judged at the level of threads.
//!
//! # What is reported
//! - a read of an entry that nothing filled, whose copy is not known to have arrived, or that was given back
//! - a read that leaves out what was filled earlier: rings are read in the order in which they are filled
//! - a copy or store to an entry that a copy is under way to, that a product under way reads, or whose copy nobody read
//! - a producer's copy to an entry that was not given back; an entry that is given back while a product reads it, or twice
//! - an index behind the last entry, or behind the last barrier
//! - a wait that nobody ends; a barrier that is two phases ahead of who waits for it
//! - a sum that is used before its product is done, and copies and products that are under way at the end

mod machine;
mod scalar;
mod state;
#[cfg(test)]
mod tests;
#[cfg(feature = "tool")]
pub(crate) mod timeline;

use super::{Rule, VerifierError, VerifierErrors};
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use machine::Machine;

/// Choices of arguments where passes are verified.
const SAMPLES: u64 = 24;

/// Choices of arguments in every compilation of a kernel with roles.
const FEW_SAMPLES: u64 = 6;

/// Most instructions of an execution.
const MOST_STEPS: u32 = 20_000;

/// What is wrong, and where it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    inst: Option<Inst>,
    message: String,
}

/// Checks rule V26.
///
/// # Errors
///
/// The first violation that an execution comes to.
pub fn verify_rings(func: &TileFunction) -> Result<(), VerifierErrors> {
    executed(func, SAMPLES)
}

/// The same with fewer executions, and only of kernels that could hang, as a producer and the program wait for each other.
pub(crate) fn verify_roles(func: &TileFunction) -> Result<(), VerifierErrors> {
    match func.producer() {
        Some(_) => executed(func, FEW_SAMPLES),
        None => Ok(()),
    }
}

fn executed(func: &TileFunction, samples: u64) -> Result<(), VerifierErrors> {
    let has_rings = func.slots.keys().any(|slot| func.buffers[slot].is_some());
    if !has_rings {
        return Ok(());
    }
    for sample in 0..samples {
        if let Err(Fault { inst, message }) = Machine::new(func, sample).run() {
            let entity = inst.map_or(func.entry.into(), Into::into);
            return Err(VerifierErrors(vec![VerifierError {
                rule: Rule::Rings,
                entity,
                message,
            }]));
        }
    }
    Ok(())
}
