//! The target `ptx_text`: broken and strange PTX for the emulator.
//!
//! Reading and running never panic, and the step limit holds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::generate::{Argument, Case, case};
use super::last::Last;
use super::mutate::{mutate_for, noise};
use super::random::Random;
use crate::compile::compile;
use crate::emu::{Arg, EmuError, Fault, Launch, Memory, Module, Options, run};

/// Warp instructions to run at most.
const STEPS: u64 = 3000;

/// A kernel, its PTX, and that of another.
struct Source {
    case: Case,
    ptx: String,
    other: String,
}

thread_local! {
    static LAST: Last<Option<Source>> = const { Last::new() };
}

/// Makes a source; none if a kernel does not compile.
fn source(random: &mut Random) -> Option<Source> {
    let (case, other) = (case(random.bits() >> 32), case(random.bits() >> 32));
    let ptx = |case: &Case| compile(&case.func, case.target, &case.options).map(|k| k.ptx);
    let (ptx, other) = (ptx(&case).ok()?, ptx(&other).ok()?);
    Some(Source { case, ptx, other })
}

/// Judges the text of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let source = LAST.with(|last| last.of(seed, source));
    let Some(source) = &*source else {
        return Verdict::Skipped("does not compile");
    };
    let noise = random.chance(10).then(|| noise(&mut random));
    let text = noise.as_ref().unwrap_or(&source.ptx);
    // A panic of the reader shows below, on the text that caused it.
    let reads = |text: &str| catch_unwind(|| Module::parse(text).is_ok()).unwrap_or(true);
    let text = mutate_for(&mut random, text, &source.other, reads);
    let seed = random.bits();
    catch_unwind(AssertUnwindSafe(|| judge(&text, &source.case, seed)))
        .unwrap_or_else(|_| Verdict::Failed(format!("panic on\n{text}")))
}

/// Judges any text; its kernels run on the arguments of one generated case. Does not catch panics.
pub fn check_text(text: &str) -> Verdict {
    thread_local! {
        static CASE: Case = case(0);
    }
    CASE.with(|case| judge(text, case, 0))
}

fn judge(text: &str, case: &Case, seed: u64) -> Verdict {
    let Ok(module) = Module::parse(text) else {
        return Verdict::Passed(vec!["does not parse"]);
    };
    let mut notes = vec!["parses"];
    for entry in module.entries() {
        let mut memory = Memory::new();
        let mut buffers = case.args.iter().filter_map(|arg| match arg {
            Argument::Buffer(_, bytes) => Some(memory.alloc_bytes(bytes)),
            Argument::Number(..) => None,
        });
        let args: Vec<Arg> = entry
            .params
            .iter()
            .map(|param| match param.size {
                8 => Arg::pointer(buffers.next().unwrap_or(seed)),
                size => Arg::bytes(&vec![seed as u8; size.min(4096) as usize]),
            })
            .collect();
        drop(buffers);
        let launch = Launch {
            grid: case.grid,
            block: entry.reqntid.unwrap_or([64, 1, 1]),
            shared_bytes: 8192,
            args: &args,
            options: Options {
                seed,
                step_limit: STEPS,
                // Of four the registers alone may take 512 MB, the limit of `fuzz/limited.sh`.
                resident_ctas: 2,
                ..Options::default()
            },
        };
        match run(&module, &entry.name, &launch, &mut memory) {
            Ok(stats) if STEPS < stats.warp_instructions => {
                return Verdict::Failed(format!(
                    "{} warp instructions of {STEPS}\n{text}",
                    stats.warp_instructions
                ));
            }
            Ok(_) => notes.push("runs"),
            Err(EmuError::Fault {
                fault: Fault::StepLimit(_),
                ..
            }) => notes.push("reaches the step limit"),
            Err(EmuError::Fault { .. }) => notes.push("faults"),
            Err(_) => notes.push("does not launch"),
        }
    }
    Verdict::Passed(notes)
}
