//! Kernels whose PTX is changed before it runs: what nobody would notice is superfluous, or a gap of the emulator.

use super::exec::{Finished, Job, Outcome, emulate};
use super::parse_line::RunLine;
use super::{Setup, arguments};
use crate::ir::function::TileFunction;

/// What a run left, to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left(Finished);

/// Runs what `edit` makes of a kernel's PTX on the emulator, under a seed, by what a run line says; what it expects does not
/// count.
///
/// The error is what the emulator reports, or what is wrong with the line.
pub fn run_edited(
    func: &TileFunction,
    words: &str,
    setup: &Setup<'_>,
    seed: u64,
    edit: impl FnOnce(String) -> String,
) -> Result<Left, String> {
    let run = RunLine::parse(words)?;
    let args = arguments(func, &run, setup)?;
    let job = Job {
        func,
        grid: run.grid,
        args: &args,
        target: setup.target,
        options: setup.options,
        seed,
        in_source: false,
        steps: run.steps.or(setup.steps),
    };
    match emulate(&job, edit) {
        Outcome::Done(finished) => Ok(Left(finished)),
        Outcome::Failed { message, .. }
        | Outcome::Skipped(message)
        | Outcome::NotExecutable(message) => Err(message),
    }
}
