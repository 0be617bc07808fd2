//! The target `ptx_text`: broken and strange PTX for the emulator.
//!
//! Reading and running never panic, and the step limit holds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::generate::{Argument, Case, case};
use super::mutate::{mutate_for, noise};
use super::random::Random;
use crate::compile::compile;
use crate::emu::{Arg, EmuError, Fault, Launch, Memory, Module, Options, run};

/// Warp instructions to run at most.
const STEPS: u64 = 3000;

/// Judges the text of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let source = case(random.below(1 << 20) as u64);
    let other = case(random.below(1 << 20) as u64);
    let ptx = |case: &Case| compile(&case.func, case.target, &case.options).map(|k| k.ptx);
    let (Ok(text), Ok(other)) = (ptx(&source), ptx(&other)) else {
        return Verdict::Skipped("does not compile");
    };
    let text = match random.chance(10) {
        true => noise(&mut random),
        false => text,
    };
    // A panic of the reader shows below, on the text that caused it.
    let reads = |text: &str| catch_unwind(|| Module::parse(text).is_ok()).unwrap_or(true);
    let text = mutate_for(&mut random, &text, &other, reads);
    let seed = random.bits();
    catch_unwind(AssertUnwindSafe(|| judge(&text, &source, seed)))
        .unwrap_or_else(|_| Verdict::Failed(format!("panic on\n{text}")))
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
