//! Fuzzing: generators of test cases, the oracles that judge them, and the loop that runs them. With the feature `fuzzing`.
//!
//! # Kernels of one's own
//!
//! [`check_kernel`] runs cases of a kernel ([`crate::testing`]) with sizes and data from a seed, in every order of its warps
//! and compiled in ways that the compiler hardly ever chooses. It stands in a test:
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::fuzzing::check_kernel;
//! use tilelift::runtime::Program;
//! use tilelift::settings::Target;
//! use tilelift::testing::{Case, Failure};
//!
//! const SUMS: &str = r#"
//! import triton, triton.language as tl
//!
//! @triton.jit
//! def row_sums(x, out, n, BLOCK: tl.constexpr):
//!     row, i = tl.program_id(0), tl.arange(0, BLOCK)
//!     tl.store(out + row, tl.sum(tl.load(x + row * n + i, i < n, 0)))
//! "#;
//!
//! // #[test]
//! fn row_sums_are_right() -> Result<(), Failure> {
//!     let program = Program::python("row_sums.py", SUMS)?;
//!     check_kernel("row_sums", &[Target::SM_80, Target::SM_90A], |device, random| {
//!         let (rows, n) = (1 + random.below(5), 1 + random.below(100));
//!         let x: Vec<i32> = (0..rows * n).map(|_| random.between(-1000, 1000) as i32).collect();
//!         let block = n.next_power_of_two() as i32;
//!         let kernel = device.kernel(&program, "row_sums")?.constant("BLOCK", block)?;
//!         Ok(Case::new(&kernel, rows as u32)
//!             .input(&x)
//!             .output(rows, |row| x[row * n..][..n].iter().sum::<i32>())
//!             .value(n as i32))
//!     })
//!     .map(drop)
//! }
//!
//! row_sums_are_right()?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo test` gives it a second, `TILELIFT_FUZZ_SECONDS=600 cargo test row_sums` ten minutes. A failure says which seed it was;
//! `TILELIFT_FUZZ_SEED=SEED` runs that case alone.
//!
//! # The compiler itself
//!
//! Each target is a module with a function from a seed to a [`Verdict`]; a case depends on its seed alone, so a
//! failure is repeated by its number. `fuzz/main.rs` only calls [`run`]; each runs
//! for a second under `cargo test`, longer if the environment says so.
//!
//! | target | cases | oracles |
//! |---|---|---|
//! | `tile_ir` | valid kernels with their arguments | verifier, interpreter before and after the passes, emulator, text |
//! | `passes` | the same, pass by pass | interpreter before and after each pass, text |
//! | `metamorphic` | the same, changed so that results must not change | emulator and interpreter on both |
//! | `batch` | the same, on other inputs | as `tile_ir`; a GPU |
//! | `ir_text` | broken and strange texts of kernels | no panic; what verifies compiles |
//! | `ptx_text` | broken and strange PTX | no panic; the step limit holds |
//! | `source_text` | texts of the Triton language, made by a grammar or broken | no panic; what is accepted compiles |
//! | `promotion` | kernels of that language that multiply matrices | interpreter before and after promotion to tensor maps, emulator with maps and without |
//! | `rotation` | kernels of that language with products of products in loops | interpreter before and after loops are rotated |
//! | `cache_files` | broken and strange files in the place of cache entries | what is read is what was written |
//! | `launch_inputs` | broken and strange manifests, recipes of tensor maps and descriptors | no panic; what is refused is refused with its place; what is read is what was written |
//! | `layouts` | conversions between random layouts | simulation of the plan |
//! | `allocation` | problems for the register allocator | its checker, execution before and after |
//! | `roles` | products of boxes in loops and choices, brought by warps of their own | as `tile_ir` and `passes` |
//!
//! These targets are not part of the crate's promises.

#[doc(hidden)]
pub mod allocation;
#[doc(hidden)]
pub mod batch;
#[doc(hidden)]
pub mod cache_files;
mod fused_multiply_adds;
#[doc(hidden)]
pub mod generate;
#[doc(hidden)]
pub mod ir_text;
mod kernels;
mod last;
#[cfg(feature = "triton")]
#[doc(hidden)]
pub mod launch_inputs;
#[doc(hidden)]
pub mod layouts;
#[doc(hidden)]
pub mod metamorphic;
#[doc(hidden)]
pub mod mutate;
#[doc(hidden)]
pub mod passes;
#[cfg(feature = "triton")]
#[doc(hidden)]
pub mod promotion;
#[doc(hidden)]
pub mod ptx_text;
pub mod random;
#[doc(hidden)]
pub mod reduce_case;
#[doc(hidden)]
pub mod roles;
#[cfg(feature = "triton")]
#[doc(hidden)]
pub mod rotation;
#[cfg(feature = "triton")]
#[doc(hidden)]
pub mod source_text;
#[doc(hidden)]
pub mod tile_ir;

pub use kernels::check_kernel;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::ir::function::{Asked, ParamHints, TileFunction};

/// How long a target runs, in seconds; a whole number.
pub const SECONDS: &str = "TILELIFT_FUZZ_SECONDS";
/// The first seed. With it set and no time given, that one case runs alone.
pub const SEED: &str = "TILELIFT_FUZZ_SEED";

/// Takes from a function the promises that nobody asked for, without which it is to become the same code.
fn narrow(func: &mut TileFunction, asked: &[Asked]) {
    for (hints, asked) in func.param_hints.iter_mut().zip(asked) {
        *hints = ParamHints::divisible(1 << asked.least);
    }
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every oracle agreed; what was notable about the case, to be counted.
    Passed(Vec<&'static str>),
    /// It could not be judged.
    Skipped(&'static str),
    /// An oracle disagreed: all that is needed to understand and repeat it.
    Failed(String),
}

/// Counts of verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Cases that passed.
    pub passed: u64,
    /// Cases that could not be judged, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Notable things about those that passed.
    pub notes: BTreeMap<&'static str, u64>,
    /// Seeds and reports of those that failed.
    pub failures: Vec<(u64, String)>,
    /// The case that took longest, and how long.
    pub slowest: (u64, Duration),
    /// Time of all cases.
    pub time: Duration,
}

/// Failures after which a run ends.
const MAX_FAILURES: usize = 8;

/// The time that this thread was given so far, where the system tells (to some milliseconds), so that a machine with
/// other work to do does not make cases slow; else the time of day.
fn own_time(start: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// The number that an environment variable holds; none if it is not set or empty.
///
/// # Errors
///
/// What is expected, if it is no whole number: a run that ignored it would judge other cases than those meant.
pub fn number(key: &str) -> Result<Option<u64>, String> {
    match std::env::var_os(key) {
        Some(value) if !value.is_empty() => parse_number(key, &value.to_string_lossy()).map(Some),
        _ => Ok(None),
    }
}

fn parse_number(key: &str, value: &str) -> Result<u64, String> {
    let expected = |_| {
        format!(
            "{key}={value}: expected a whole number from 0 to {}",
            u64::MAX
        )
    };
    value.parse().map_err(expected)
}

/// What runs a case again, which a printed kernel need not: its data may be other, and its options.
fn how_to_repeat(name: &str, seed: u64) -> String {
    format!("the seed repeats it: {SEED}={seed} cargo test --test fuzz {name} -- --nocapture")
}

/// Fewest seeds that [`run`] tries, also on a machine that takes longer for them: what is asked of all together holds for as many.
const FEWEST: u64 = 16;

/// Runs `check` on one seed after the other until the time is up, and prints the counts. The target's file is
/// `fuzz/main.rs`. What the environment asks for and nobody understands is a failure.
pub fn run(name: &str, check: impl Fn(u64) -> Verdict) -> Verdicts {
    run_with(name, check, &|seed| how_to_repeat(name, seed))
}

/// [`run`] with another word on how a case is repeated.
fn run_with(
    name: &str,
    check: impl Fn(u64) -> Verdict,
    repeat: &dyn Fn(u64) -> String,
) -> Verdicts {
    match number(SECONDS).and_then(|seconds| Ok((seconds, number(SEED)?))) {
        Ok((seconds, seed)) => run_from(name, seconds, seed, check, repeat),
        Err(message) => {
            eprintln!("{name}: {message}");
            Verdicts {
                failures: vec![(0, message)],
                ..Verdicts::default()
            }
        }
    }
}

fn run_from(
    name: &str,
    seconds: Option<u64>,
    seed: Option<u64>,
    check: impl Fn(u64) -> Verdict,
    repeat: &dyn Fn(u64) -> String,
) -> Verdicts {
    let start = Instant::now();
    let limit = Duration::from_secs(seconds.unwrap_or(1));
    let only_one = seed.is_some() && seconds.is_none();
    let mut report = Verdicts::default();
    let begin = own_time(start);
    let mut before = begin;
    for (tried, seed) in (1..).zip(seed.unwrap_or(0)..) {
        let verdict = check(seed);
        let after = own_time(start);
        let taken = after.saturating_sub(before);
        if report.slowest.1 < taken && !matches!(verdict, Verdict::Failed(_)) {
            report.slowest = (seed, taken);
        }
        before = after;
        match verdict {
            Verdict::Passed(notes) => {
                report.passed += 1;
                for note in notes {
                    *report.notes.entry(note).or_default() += 1;
                }
            }
            Verdict::Skipped(reason) => *report.skipped.entry(reason).or_default() += 1,
            Verdict::Failed(message) => {
                let message = format!("{message}\n{}", repeat(seed));
                eprintln!("{name}: seed {seed} failed: {message}");
                report.failures.push((seed, message));
            }
        }
        let is_over = FEWEST <= tried && start.elapsed() > limit;
        if only_one || is_over || MAX_FAILURES <= report.failures.len() {
            break;
        }
    }
    report.time = before.saturating_sub(begin);
    let (slowest, longest) = report.slowest;
    eprintln!(
        "{name}: {} passed {:?}, {} failed, skipped {:?}, {:.1} s, {:.1} s of them its own; seed {slowest} took {:.3} s",
        report.passed,
        report.notes,
        report.failures.len(),
        report.skipped,
        start.elapsed().as_secs_f64(),
        report.time.as_secs_f64(),
        longest.as_secs_f64(),
    );
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused() {
        let key = "TILELIFT_FUZZ_SEED";
        for number in [0, 7, u64::MAX] {
            assert_eq!(parse_number(key, &number.to_string()), Ok(number));
        }
        for text in ["abc", "1e999", "-1", "1.5", " 7", "18446744073709551616"] {
            let message = parse_number(key, text).expect_err("it is refused");
            let expected = format!("{key}={text}: expected a whole number from 0 to ");
            assert!(message.starts_with(&expected), "{message}");
        }
        assert_eq!(number("TILELIFT_SET_BY_NOBODY"), Ok(None));
    }

    #[test]
    fn a_failure_says_how_to_repeat_it() {
        let check = |seed| match seed {
            5 => Verdict::Failed("why".to_owned()),
            _ => Verdict::Passed(Vec::new()),
        };
        let report = run_from("tile_ir", None, Some(5), check, &|seed| {
            how_to_repeat("tile_ir", seed)
        });
        assert_eq!(report.failures.len(), 1);
        let (seed, message) = &report.failures[0];
        let command = "TILELIFT_FUZZ_SEED=5 cargo test --test fuzz tile_ir";
        assert!(*seed == 5 && message.starts_with("why\n") && message.contains(command));
    }
}
