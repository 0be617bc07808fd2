//! The target `ir_text`: broken and strange texts of kernels.
//!
//! Reading, verifying and printing never panic; what verifies compiles for the target of the case or is refused for
//! its size, and the interpreter runs it to an end or to an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::generate::{Case, case};
use super::mutate::{mutate_for, noise};
use super::random::Random;
use super::tile_ir::interpret;
use crate::compile::{CompileError, Snapshot, compile, compile_with};
use crate::settings::Options;
use crate::text::parse::{AnyFunction, Checks, parse_file, parse_file_with};
use crate::text::print::print;
use crate::verify::verify;

/// Largest block to compile; larger ones take their time.
const MAX_ELEMENTS: usize = 1 << 13;

/// Judges the text of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let mut source = case(random.below(1 << 20) as u64);
    let text = match random.below(10) {
        0 => noise(&mut random),
        1 | 2 => inside(&mut random, &source),
        _ => print(&source.func),
    };
    let other = print(&case(random.below(1 << 20) as u64).func);
    // A panic of the reader shows below, on the text that caused it.
    let reads = |text: &str| catch_unwind(|| parse_file(text).is_ok()).unwrap_or(true);
    let text = mutate_for(&mut random, &text, &other, reads);
    source.options = Options {
        verify_passes: true,
        ..source.options
    };
    catch_unwind(AssertUnwindSafe(|| judge(&text, &source)))
        .unwrap_or_else(|_| Verdict::Failed(format!("panic on\n{text}")))
}

/// The text of a kernel in the middle of its compilation, with layouts or as what a thread does.
fn inside(random: &mut Random, case: &Case) -> String {
    let mut texts = vec![print(&case.func)];
    let shown = compile_with(
        &case.func,
        case.target,
        &case.options,
        &mut |_, snapshot| {
            texts.push(match snapshot {
                Snapshot::Tile(func) => print(func),
                Snapshot::Thread(func) => print(func),
            });
        },
    );
    // What does not compile is the business of another target.
    drop(shown);
    texts.swap_remove(random.below(texts.len()))
}

fn judge(text: &str, case: &Case) -> Verdict {
    // Without the checks of types, verification has more to find.
    if let Ok(file) = parse_file_with(text, Checks::None) {
        for parsed in &file.functions {
            match &parsed.func {
                AnyFunction::Tile(func) => drop(verify(func)),
                AnyFunction::Thread(func) => drop(verify(func)),
            }
        }
    }
    let Ok(file) = parse_file(text) else {
        return Verdict::Passed(vec!["does not parse"]);
    };
    let mut notes = Vec::new();
    for parsed in &file.functions {
        let AnyFunction::Tile(func) = &parsed.func else {
            notes.push("thread level");
            continue;
        };
        if verify(func).is_err() {
            notes.push("does not verify");
            continue;
        }
        let too_large = func
            .dfg
            .values
            .values()
            .any(|v| MAX_ELEMENTS < v.ty.shape.elements());
        if too_large {
            return Verdict::Skipped("large blocks");
        }
        notes.push("verifies");
        // The arguments are those of the kernel before it was changed; where they do not fit, an error is right.
        drop(interpret(func, case, 2000));
        match compile(func, case.target, &case.options) {
            Ok(_)
            | Err(
                CompileError::SharedMemory { .. }
                | CompileError::Elements { .. }
                | CompileError::Operations { .. },
            ) => {}
            Err(e) => return Verdict::Failed(format!("{}: {e}\n{text}", case.target)),
        }
    }
    Verdict::Passed(notes)
}
