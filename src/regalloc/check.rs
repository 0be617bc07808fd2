//! Proves that an allocation is right, without knowing how it was made.
//!
//! The program is run symbolically on named registers. The state says for each register which values it holds for
//! sure: a set of units and numbers, because a copy between equal names makes a register hold two. Where ways meet, sets
//! are intersected; states only shrink, so an error found on the way is an error. The order in which the repetitions
//! of an instruction read and write is that of the text ([`AllocFunction::replay`]), not what the allocator was told.
//!
//! - A read must find its unit in its register. A write leaves its unit alone there, and nothing else holds it: what was
//!   copied from a unit before it is written once more is no longer that unit. (Where a unit has one place that writes it,
//!   no register holds it on the first way there, and so none does where ways meet.)
//! - The moves of an edge run one after the other; then each parameter's register must hold the parameter's argument as it
//!   was before the moves. From there on it holds the parameter, and nothing holds an older value of it.
//! - The units of a group have adjacent names.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::{AllocFunction, Allocation, Input, Move, MoveSource};
use crate::regalloc::reg::{RegClass, Unit};

/// A value that a register may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    Unit(Unit),
    Number(u64),
}

/// What is wrong with an allocation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CheckError {
    /// A register does not hold what is read from it.
    #[error("instruction {inst} reads {unit} from register {name}, which does not hold it")]
    WrongRead { inst: usize, unit: Unit, name: u32 },
    /// A parameter does not get its argument.
    #[error("on way {edge} out of block {block}, parameter {param} does not get its argument")]
    WrongParameter {
        block: usize,
        edge: usize,
        param: Unit,
    },
    /// The choice at a block's end reads something else.
    #[error("the end of block {block} reads {unit}, which its register does not hold")]
    WrongCondition { block: usize, unit: Unit },
    /// A pack is torn apart.
    #[error("the registers of the group of {unit} are not adjacent")]
    Torn { unit: Unit },
    /// A name that is not declared.
    #[error("register {name} of class {class:?} is not declared")]
    Undeclared { class: RegClass, name: u32 },
}

/// The units and numbers that each register holds for sure.
type State = Vec<SmallVec<[Held; 2]>>;

/// Checks an allocation.
pub(crate) fn check(
    program: &impl AllocFunction,
    allocation: &Allocation,
) -> Result<(), CheckError> {
    let regs = program.regs();
    let mut base = [0; 4];
    let mut n_registers = 0;
    for class in RegClass::ALL {
        base[class.index()] = n_registers;
        n_registers += allocation.n_names[class.index()] as usize;
    }
    let locate = |class: RegClass, name: u32| {
        if name < allocation.n_names[class.index()] {
            Ok(base[class.index()] + name as usize)
        } else {
            Err(CheckError::Undeclared { class, name })
        }
    };
    let name_of = |unit: Unit| allocation.names[unit.as_u32() as usize];
    let home = |unit: Unit| locate(regs.class_of(unit), name_of(unit));
    for data in regs.groups.values() {
        let name = |i: u16| name_of(Unit::from_u32(data.first.as_u32() + u32::from(i)));
        // A group that never lives has no names.
        if (1..data.count).any(|i| name(i) != name(0) + u32::from(i))
            && (0..data.count).any(|i| name(i) != 0)
        {
            return Err(CheckError::Torn { unit: data.first });
        }
    }

    let n_blocks = program.num_blocks();
    let often = written_often(program);
    let mut entered: Vec<Option<State>> = vec![None; n_blocks];
    // Blocks in their order, so that most see all ways to them before they are run.
    let mut pending = BTreeSet::new();
    if n_blocks != 0 {
        entered[0] = Some(vec![SmallVec::new(); n_registers]);
        pending.insert(0);
    }
    let mut is_param = vec![false; regs.num_units()];
    while let Some(block) = pending.pop_first() {
        let Some(mut state) = entered[block].clone() else {
            continue;
        };
        for inst in program.insts(block) {
            let mut problem = None;
            let copied = program.copied(inst);
            program.replay(inst, |rep, unit, writes| {
                let register = match home(unit) {
                    Ok(register) => register,
                    Err(error) => {
                        problem = Some(error);
                        return;
                    }
                };
                if !writes {
                    if !state[register].contains(&Held::Unit(unit)) {
                        let name = name_of(unit);
                        problem =
                            problem
                                .take()
                                .or(Some(CheckError::WrongRead { inst, unit, name }));
                    }
                    return;
                }
                // A copy onto itself leaves what was there.
                let stays =
                    copied.is_some_and(|(_, from)| home(regs.unit(from, rep)) == Ok(register));
                if often[unit.as_u32() as usize] {
                    for other in &mut state {
                        other.retain(|h| *h != Held::Unit(unit));
                    }
                }
                let held = &mut state[register];
                if stays {
                    held.retain(|h| *h != Held::Unit(unit));
                } else {
                    held.clear();
                }
                held.push(Held::Unit(unit));
            });
            if let Some(problem) = problem {
                return Err(problem);
            }
        }
        let ahead = allocation.ahead.get(block).copied().flatten();
        if let Some(way) = ahead {
            run_moves(&mut state, &allocation.moves[block][way], locate)?;
        }
        if let Some(unit) = program.condition(block)
            && !state[home(unit)?].contains(&Held::Unit(unit))
        {
            return Err(CheckError::WrongCondition { block, unit });
        }
        let n_edges = program.num_edges(block);
        for edge in 0..n_edges {
            let mut after = if edge + 1 < n_edges {
                state.clone()
            } else {
                std::mem::take(&mut state)
            };
            if ahead != Some(edge) {
                run_moves(&mut after, &allocation.moves[block][edge], locate)?;
            }
            let mut problem = None;
            let mut params: SmallVec<[Unit; 16]> = SmallVec::new();
            program.inputs(block, edge, |param, input| {
                params.push(param);
                let wanted = match input {
                    Input::Unit(unit) => Held::Unit(unit),
                    Input::Number(bits) => Held::Number(bits),
                };
                if !home(param).is_ok_and(|r| after[r].contains(&wanted)) {
                    problem = Some(CheckError::WrongParameter { block, edge, param });
                }
            });
            if let Some(problem) = problem {
                return Err(problem);
            }
            for &param in &params {
                is_param[param.as_u32() as usize] = true;
            }
            for held in &mut after {
                held.retain(|h| matches!(h, Held::Unit(unit) if !is_param[unit.as_u32() as usize]));
            }
            for &param in &params {
                after[home(param)?].push(Held::Unit(param));
                is_param[param.as_u32() as usize] = false;
            }
            let target = program.target(block, edge);
            if meet(&mut entered[target], after) {
                pending.insert(target);
            }
        }
    }
    Ok(())
}

/// For each unit whether more than one place writes it.
fn written_often(program: &impl AllocFunction) -> Vec<bool> {
    let mut times = vec![0_u8; program.regs().num_units()];
    let mut count = |unit: Unit| {
        let times = &mut times[unit.as_u32() as usize];
        *times = times.saturating_add(1);
    };
    for block in 0..program.num_blocks() {
        program.params(block, &mut count);
        for inst in program.insts(block) {
            program.replay(inst, |_, unit, writes| {
                if writes {
                    count(unit);
                }
            });
        }
    }
    times.into_iter().map(|times| 1 < times).collect()
}

/// Runs moves one after the other.
fn run_moves(
    state: &mut State,
    moves: &[Move],
    locate: impl Fn(RegClass, u32) -> Result<usize, CheckError>,
) -> Result<(), CheckError> {
    for m in moves {
        let to = locate(m.class, m.to)?;
        state[to] = match m.source {
            MoveSource::Register(name) => state[locate(m.class, name)?].clone(),
            MoveSource::Number(bits) => SmallVec::from_slice(&[Held::Number(bits)]),
        };
    }
    Ok(())
}

/// Intersects what is known at a block's start with one more way to it; whether anything changed.
fn meet(known: &mut Option<State>, incoming: State) -> bool {
    let Some(known) = known else {
        *known = Some(incoming);
        return true;
    };
    let mut changed = false;
    for (held, new) in known.iter_mut().zip(&incoming) {
        let before = held.len();
        held.retain(|h| new.contains(h));
        changed |= held.len() != before;
    }
    changed
}
