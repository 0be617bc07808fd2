//! The target `passes`: each pass alone.
//!
//! 1. After each pass the interpreter computes what it computed before the pass: bit for bit, but that NaNs equal NaNs.
//!    A pass may change bits where the IR leaves them open: those in `CHOICES` decide for a rounding, and only they, and
//!    only in kernels that leave something open. Contraction decides in all kernels: what it leaves is compared with each
//!    `fma` taken apart again (`fused_multiply_adds`).
//! 2. The text after each pass, of both levels, comes back the same.
//! 3. The verifier accepts what each pass leaves; the pipeline asks it.

use super::Verdict;
use super::fused_multiply_adds::{COMPARED, compare_fused};
use super::generate::{Case, case};
use super::tile_ir::{
    Buffers, Failure, INTERPRETER_STEPS, Judgement, fail, first_difference, guarded, interpret,
    is_step_limit, refused, verdict,
};
use crate::compile::compile_with;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::pipeline::Snapshot;
use crate::text::parse::{parse_thread, parse_tile};
use crate::text::print::print;

/// Passes that decide what the IR leaves open in inexact kernels: what approximate functions give, and in which order sums
/// are formed.
const CHOICES: &[&str] = &[
    "defer_sums",
    "spread_sums",
    "lower_math",
    "legalize",
    "assign_layouts",
];
/// The pass that decides for one rounding instead of two.
pub(super) const CONTRACTION: &str = "fuse_multiply_adds";
/// The pass that makes products of quotients by constants, which are exact to 2 ulp alone.
const QUOTIENTS: &str = "simplify";

/// Judges the case of a seed; a failure is shrunk.
pub fn check(seed: u64) -> Verdict {
    verdict(&case(seed), judge)
}

/// What the oracles of this target find.
pub(super) fn judge(case: &Case) -> Judgement {
    guarded(|| try_judge(case))
}

fn try_judge(case: &Case) -> Result<Judgement, Failure> {
    // A kernel that got too few registers or bytes is compiled again from what was given.
    let mut rounds: Vec<Vec<(String, TileFunction)>> = vec![Vec::new()];
    let mut is_behind_tiles = false;
    let mut texts = Ok(());
    let compiled = compile_with(
        &case.func,
        case.target,
        &case.options,
        &mut |pass, snapshot| {
            let text = match snapshot {
                Snapshot::Tile(tile) => {
                    let text = print(tile);
                    let same = parse_tile(&text).is_ok_and(|parsed| print(&parsed) == text);
                    if std::mem::take(&mut is_behind_tiles) {
                        rounds.push(Vec::new());
                    }
                    if let Some(round) = rounds.last_mut() {
                        round.push((pass.to_owned(), tile.clone()));
                    }
                    (!same).then_some(text)
                }
                Snapshot::Thread(thread) => {
                    is_behind_tiles = true;
                    let text = print(thread);
                    let same = parse_thread(&text).is_ok_and(|parsed| print(&parsed) == text);
                    (!same).then_some(text)
                }
                // What machine code does is judged where its PTX runs.
                Snapshot::Machine(_) => None,
            };
            if let Some(text) = text
                && texts.is_ok()
            {
                texts = Err(fail("text: changes")(format!("after {pass}:\n{text}")));
            }
        },
    );
    texts?;
    // The passes in front of the one that refuses the kernel are compared all the same.
    if let Err(error) = &compiled {
        refused(case, error)?;
    }
    let given = match interpret(&case.func, case, INTERPRETER_STEPS) {
        Ok(buffers) => buffers,
        Err(e) if is_step_limit(&e) => return Ok(Judgement::Skipped("interpreter's step limit")),
        Err(e) => return Err(fail("generator: undefined")(e.to_string())),
    };
    let mut notes = Vec::new();
    for round in &rounds {
        let (mut before, mut last) = (given.clone(), &case.func);
        for (pass, tile) in round {
            if print(tile) == print(last) {
                continue;
            }
            let after = match interpret(tile, case, 20 * INTERPRETER_STEPS) {
                Ok(buffers) => buffers,
                Err(e) if is_step_limit(&e) => {
                    return Ok(Judgement::Skipped("interpreter's step limit"));
                }
                Err(e) => {
                    return Err(fail("pass: undefined")(format!(
                        "{pass}: {e}\n{}",
                        print(tile)
                    )));
                }
            };
            let may_choose = !case.exact && CHOICES.contains(&pass.as_str())
                || pass == QUOTIENTS && has_quotients(last);
            if pass == CONTRACTION {
                if compare_fused(last, tile, case)? {
                    notes.push(COMPARED);
                }
            } else if !may_choose {
                compare(&before, &after).map_err(|message| {
                    let (last, tile) = (print(last), print(tile));
                    fail("pass: other result")(format!("{pass}: {message}\n{last}\nbecame\n{tile}"))
                })?;
                notes.push("passes that changed a kernel");
            }
            (before, last) = (after, tile);
        }
    }
    Ok(Judgement::Passed(notes))
}

/// Whether a kernel has quotients that need not be exact.
fn has_quotients(func: &TileFunction) -> bool {
    func.insts_with(TileOp::Fdiv).next().is_some()
}

/// Where buffers differ.
pub(super) fn compare(before: &Buffers, after: &Buffers) -> Result<(), String> {
    for (i, ((scalar, x), (_, y))) in before.iter().zip(after).enumerate() {
        if let Some(at) = first_difference(*scalar, x, y) {
            let size = scalar.bytes() as usize;
            let element = at * size..(at + 1) * size;
            let (x, y) = (&x[element.clone()], &y[element]);
            return Err(format!(
                "buffer {i} ({scalar}) element {at}: {x:02x?}, then {y:02x?}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::ir::types::Scalar;

    #[test]
    fn the_element_that_differs_is_named() {
        let same = vec![(Scalar::I32, vec![0; 8])];
        let before = [same.clone(), vec![(Scalar::I16, vec![1, 0, 2, 0, 3, 0])]].concat();
        let after = [same, vec![(Scalar::I16, vec![1, 0, 2, 7, 4, 0])]].concat();
        assert_eq!(compare(&before, &before), Ok(()));
        let message = "buffer 1 (i16) element 1: [02, 00], then [02, 07]";
        assert_eq!(compare(&before, &after), Err(message.to_owned()));
    }
}
