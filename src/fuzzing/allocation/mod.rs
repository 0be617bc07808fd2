//! The target `allocation`: random problems for the register allocator.
//!
//! A problem is made of what the allocator sees, not of instructions of a machine: groups of units of every class; blocks with
//! parameters, branches, loops, also such with two entries; instructions that repeat themselves over packs, copy, write under
//! a predicate or write again what was written; arguments that change places on the way back.
//!
//! Oracles: the checker accepts the allocation; a run of the problem with a register for each unit and one with the
//! registers of the allocation read the same numbers, on several ways through the blocks; there are as many names as units
//! are live at once; the same problem gets the same allocation. Then the allocation is damaged: whatever the checker
//! accepts must still run right.

mod execute;
mod problem;

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::random::Random;
use crate::error::panic_text;
use crate::regalloc::check::check as prove;
use crate::regalloc::reg::RegClass;
use crate::regalloc::{AllocFunction, Allocation, allocate};
use crate::settings::diversity::{ChoiceSite, Choices};
use execute::execute;
use problem::Problem;

/// Ways through the blocks to run.
const WAYS: u64 = 4;
/// Damages to try.
const DAMAGES: usize = 6;

/// Judges the problem of a seed.
pub fn check(seed: u64) -> Verdict {
    let judged = catch_unwind(AssertUnwindSafe(|| judge(seed)));
    match judged {
        Ok(Ok(notes)) => Verdict::Passed(notes),
        Ok(Err(message)) => Verdict::Failed(message),
        Err(panic) => Verdict::Failed(panic_text(&*panic)),
    }
}

fn judge(seed: u64) -> Result<Vec<&'static str>, String> {
    let mut random = Random::new(seed);
    let problem = Problem::new(&mut random);
    let mut notes = problem.notes();
    for diversity in [None, Some(seed)] {
        let allocated = || allocate(&problem, Choices::new(diversity, ChoiceSite::Registers));
        let found = allocated();
        let fail = |what: &str| format!("{what}, choices {diversity:?}\n{problem}\n{found:?}");
        prove(&problem, &found).map_err(|error| fail(&error.to_string()))?;
        for way in 0..WAYS {
            execute(&problem, &found, way).map_err(|error| fail(&error))?;
        }
        for class in RegClass::ALL {
            if found.n_names[class.index()] < found.peak[class.index()] {
                return Err(fail("fewer names than units that live at once"));
            }
        }
        let again = allocated();
        if (&again.names, &again.moves, &again.ahead) != (&found.names, &found.moves, &found.ahead)
        {
            return Err(fail("not deterministic"));
        }
        if found.ahead.iter().any(Option::is_some) {
            notes.push("with moves before a branch");
        }
        for _ in 0..DAMAGES {
            let Some(damaged) = damage(&problem, &found, &mut random) else {
                continue;
            };
            if prove(&problem, &damaged).is_err() {
                notes.push("damage was found");
                continue;
            }
            notes.push("damage does no harm");
            for way in 0..WAYS {
                execute(&problem, &damaged, way).map_err(|error| {
                    format!("the checker accepts {damaged:?}\n{error}\n{problem}\n{found:?}")
                })?;
            }
        }
    }
    Ok(notes)
}

/// The allocation with something else in it; none if what was picked is not there.
fn damage(problem: &Problem, sound: &Allocation, random: &mut Random) -> Option<Allocation> {
    let mut damaged = sound.clone();
    let block = random.below(sound.moves.len());
    let way = random.below(2);
    let moves = &mut damaged.moves[block][way];
    match random.below(6) {
        // A group elsewhere.
        0..3 => {
            let groups = &problem.regs().groups;
            let data = groups.values().nth(random.below(groups.len()))?;
            let names = sound.n_names[data.class.index()];
            let to = random.below(names.max(1) as usize) as u32;
            let first = data.first.as_u32() as usize;
            if names < to + u32::from(data.count) || sound.names[first] == to {
                return None;
            }
            for i in 0..usize::from(data.count) {
                damaged.names[first + i] = to + i as u32;
            }
        }
        3 if !moves.is_empty() => {
            moves.remove(random.below(moves.len()));
        }
        4 if moves.len() > 1 => {
            let at = random.below(moves.len() - 1);
            moves.swap(at, at + 1);
        }
        5 if problem.num_edges(block) == 2 && damaged.ahead[block].is_none() => {
            damaged.ahead[block] = Some(way);
        }
        _ => return None,
    }
    Some(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator reaches what it is for, and the checker finds most damages.
    #[test]
    fn problems_are_not_trivial() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..300 {
            let Verdict::Passed(notes) = check(seed) else {
                panic!("seed {seed}: {:?}", check(seed));
            };
            for note in notes {
                *counts.entry(note).or_insert(0) += 1;
            }
        }
        let count = |note: &str| counts.get(note).copied().unwrap_or(0);
        for note in [
            "with loops",
            "with moves before a branch",
            "with two ways into a loop",
            "with writes under a predicate",
        ] {
            assert!(20 < count(note), "{note}: {counts:?}");
        }
        assert!(
            count("damage does no harm") < 2 * count("damage was found"),
            "{counts:?}"
        );
    }
}
