//! Runs a problem twice at once: with a register for each unit, and with the registers of an allocation.
//!
//! Each write stores a number made of the place in the program and of what was read, so that two numbers are equal only if
//! they were computed alike; a copy stores what it reads. Ways out are chosen by the lowest bit of the condition's number,
//! mixed with the number of the run. Runs end at a return or after so many blocks.

use super::problem::{Problem, Step};
use crate::regalloc::reg::{RegClass, Unit};
use crate::regalloc::{AllocFunction, Allocation, Input, Move, MoveSource};

/// Blocks of a run.
const BLOCKS: usize = 60;

fn mix(seed: u64, x: u64) -> u64 {
    let x = (seed ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

/// What the two machines hold.
struct State<'a> {
    problem: &'a Problem,
    allocation: &'a Allocation,
    /// The number of each unit.
    units: Vec<u64>,
    /// The number of each register of each class.
    registers: [Vec<u64>; 4],
}

impl State<'_> {
    fn home(&self, unit: Unit) -> (usize, usize) {
        let class = self.problem.regs().class_of(unit).index();
        (
            class,
            self.allocation.names[unit.as_u32() as usize] as usize,
        )
    }

    fn read(&self, unit: Unit) -> Result<u64, String> {
        let (class, name) = self.home(unit);
        let (wanted, found) = (
            self.units[unit.as_u32() as usize],
            self.registers[class].get(name),
        );
        match found {
            Some(&found) if found == wanted => Ok(wanted),
            _ => Err(format!("register {name} of class {class} is not {unit}")),
        }
    }

    fn write(&mut self, unit: Unit, number: u64) {
        let (class, name) = self.home(unit);
        self.units[unit.as_u32() as usize] = number;
        if let Some(register) = self.registers[class].get_mut(name) {
            *register = number;
        }
    }

    fn run_moves(&mut self, moves: &[Move]) {
        for m in moves {
            let class = m.class.index();
            let number = match m.source {
                MoveSource::Register(name) => self.registers[class][name as usize],
                MoveSource::Number(bits) => bits,
            };
            self.registers[class][m.to as usize] = number;
        }
    }
}

/// Runs a problem; an error if a register does not hold what is read from it. `way` changes the choices of branches.
pub(super) fn execute(problem: &Problem, allocation: &Allocation, way: u64) -> Result<(), String> {
    let mut state = State {
        problem,
        allocation,
        units: vec![0; problem.regs().num_units()],
        // What nobody wrote is no unit's number.
        registers: RegClass::ALL.map(|class| {
            let names = u64::from(allocation.n_names[class.index()]);
            (0..names).map(|name| mix(u64::MAX - name, 1)).collect()
        }),
    };
    let mut block = 0;
    for round in 0..BLOCKS {
        for inst in problem.insts(block) {
            step(
                &mut state,
                &problem.steps[inst],
                mix(inst as u64, round as u64),
            )
            .map_err(|e| format!("instruction {inst} of block {block}: {e}"))?;
        }
        let ahead = allocation.ahead[block];
        if let Some(way) = ahead {
            state.run_moves(&allocation.moves[block][way]);
        }
        let edges = problem.num_edges(block);
        let edge = match problem.condition(block) {
            Some(unit) => {
                let at = |e| format!("the end of block {block}: {e}");
                (mix(state.read(unit).map_err(at)?, way) & 1) as usize
            }
            None if edges == 0 => return Ok(()),
            None => 0,
        };
        if ahead != Some(edge) {
            state.run_moves(&allocation.moves[block][edge]);
        }
        let mut given = Vec::new();
        problem.inputs(block, edge, |to, input| {
            given.push(match input {
                Input::Unit(from) => (to, state.units[from.as_u32() as usize]),
                Input::Number(bits) => (to, bits),
            });
        });
        for &(to, number) in &given {
            state.units[to.as_u32() as usize] = number;
        }
        for &(to, _) in &given {
            let at = |e| format!("way {edge} out of block {block}: {e}");
            state.read(to).map_err(at)?;
        }
        block = problem.target(block, edge);
    }
    Ok(())
}

fn step(state: &mut State<'_>, step: &Step, place: u64) -> Result<(), String> {
    for rep in 0..step.reps {
        let mut number = mix(place, u64::from(rep));
        for &unit in step.reads_of(rep) {
            let read = state.read(unit)?;
            number = if step.is_copy {
                read
            } else {
                mix(number, read)
            };
        }
        let happens = match step.guard {
            Some(guard) => state.read(guard)? & 1 == 1,
            None => true,
        };
        for (i, &unit) in step.writes_of(rep).iter().enumerate() {
            if step.guard.is_some() {
                state.read(unit)?;
            }
            if happens {
                let own = match step.is_copy {
                    true => number,
                    false => mix(number, i as u64),
                };
                state.write(unit, own);
            }
        }
    }
    Ok(())
}
