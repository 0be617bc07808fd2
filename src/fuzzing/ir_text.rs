//! The target `ir_text`: broken and strange texts of kernels.
//!
//! Reading, verifying and printing never panic; what verifies compiles for the target of the case or is refused for
//! its size, and the interpreter runs it to an end or to an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::generate::{self, Case, case};
use super::last::Last;
use super::mutate::{mutate_for, noise};
use super::random::Random;
use super::tile_ir::interpret;
use crate::compile::{compile, compile_with};
use crate::error::CompileError;
use crate::pipeline::Snapshot;
use crate::text::parse::{AnyFunction, Checks, parse_file, parse_file_with};
use crate::text::print::print;
use crate::verify::verify;

/// Largest block to compile; larger ones take their time.
const MAX_ELEMENTS: usize = 1 << 13;

/// A kernel, its texts on its way through the passes, with layouts or as what a thread does, and the text of another.
struct Source {
    case: Case,
    texts: Vec<String>,
    other: String,
}

thread_local! {
    static LAST: Last<Source> = const { Last::new() };
}

/// A kernel, most often the smallest of a few: what breaks a reader is small, and small texts are broken more often.
fn small_case(random: &mut Random) -> Case {
    let draws = if random.chance(80) { 4 } else { 1 };
    let cases = (0..draws).map(|_| case(random.bits() >> 32));
    cases
        .min_by_key(|case| case.func.dfg.insts.len())
        .unwrap_or_else(|| case(0))
}

fn source(random: &mut Random) -> Source {
    let mut case = small_case(random);
    let mut texts = vec![print(&case.func)];
    let shown = compile_with(
        &case.func,
        case.target,
        &case.options,
        &mut |_, snapshot| match snapshot {
            Snapshot::Tile(func) => texts.push(print(func)),
            Snapshot::Thread(func) => texts.push(print(func)),
            Snapshot::Machine(_) => {}
        },
    );
    // What does not compile is the business of another target.
    drop(shown);
    case.options.verify_passes = true;
    let other = print(&generate::case(random.bits() >> 32).func);
    Source { case, texts, other }
}

/// Judges the text of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let source = LAST.with(|last| last.of(seed, source));
    let noise = random.chance(10).then(|| noise(&mut random));
    let text = match &noise {
        Some(noise) => noise,
        None if random.chance(20) => &source.texts[random.below(source.texts.len())],
        None => &source.texts[0],
    };
    // A panic of the reader shows below, on the text that caused it.
    let reads = |text: &str| catch_unwind(|| parse_file(text).is_ok()).unwrap_or(true);
    let text = mutate_for(&mut random, text, &source.other, reads);
    catch_unwind(AssertUnwindSafe(|| judge(&text, &source.case)))
        .unwrap_or_else(|_| Verdict::Failed(format!("panic on\n{text}")))
}

/// Judges any text. Kernels are compiled for the target of one generated case and run on its arguments. Does not catch panics.
pub fn check_text(text: &str) -> Verdict {
    thread_local! {
        static CASE: Case = case(0);
    }
    CASE.with(|case| judge(text, case))
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
