//! Bounds on what one thread holds and does.
//!
//! Both are far above what a GPU runs well: a thread has 255 registers, and `ptxas` takes long for what spills, as their
//! definitions say. Elements are looked at before anything is expanded, operations are counted while it is.

use std::collections::BTreeMap;

use crate::error::CompileError;
use crate::ir::attrs::DotPrecision;
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::TileType;
use crate::layout::matrix::{self, DotInfo};
use crate::limits::{THREAD_ELEMENTS, THREAD_OPERATIONS};
use crate::settings::Target;

use super::Expander;

/// What a thread has to do so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    operations: u32,
    /// The instruction of the tile level that is being expanded, and what was counted when it began or went on.
    current: Option<(Inst, u32)>,
    /// What instructions took, in order; one may stand there several times.
    taken: Vec<(Inst, u32)>,
}

/// A state of [`Work`] to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkMark {
    operations: u32,
    current: Option<(Inst, u32)>,
    taken: usize,
}

impl Work {
    /// Marks the state as it is.
    pub(super) fn mark(&self) -> WorkMark {
        WorkMark {
            operations: self.operations,
            current: self.current,
            taken: self.taken.len(),
        }
    }

    /// Forgets what was done since.
    pub(super) fn take_back(&mut self, mark: WorkMark) {
        self.operations = mark.operations;
        self.current = mark.current;
        self.taken.truncate(mark.taken);
    }

    /// Begins an instruction; gives what is to be handed to [`Work::leave`].
    pub(super) fn enter(&mut self, inst: Inst) -> Option<(Inst, u32)> {
        self.note();
        self.current.replace((inst, self.operations))
    }

    /// Ends the instruction. One that has others in it counts without them.
    pub(super) fn leave(&mut self, outer: Option<(Inst, u32)>) {
        self.note();
        self.current = outer.map(|(inst, _)| (inst, self.operations));
    }

    fn note(&mut self) {
        if let Some((inst, before)) = self.current {
            let taken = self.operations.saturating_sub(before);
            if taken > 0 {
                self.taken.push((inst, taken));
            }
        }
    }

    /// An instruction of those that took most: of the line that did, or of all if there are no lines, the op that did.
    fn largest(&self, tile: &TileFunction) -> Option<Inst> {
        let line = |inst: Inst| tile.dfg.insts[inst].loc.0.expand().map(|line| line.0);
        let op = |inst: Inst| tile.dfg.insts[inst].op.info().name;
        let taken = || self.taken.iter().copied();
        let most_of = most(taken().map(|(inst, n)| (line(inst), n)))?;
        let of_line = || taken().filter(|&(inst, _)| line(inst) == most_of);
        let most_of = most(of_line().map(|(inst, n)| (op(inst), n)))?;
        most(of_line().filter(|&(inst, _)| op(inst) == most_of))
    }
}

/// The key with the largest sum.
fn most<K: Copy + Ord>(counts: impl Iterator<Item = (K, u32)>) -> Option<K> {
    let mut sums = BTreeMap::new();
    for (key, n) in counts {
        *sums.entry(key).or_insert(0) += u64::from(n);
    }
    let (key, _) = sums.into_iter().rev().max_by_key(|&(_, n)| n)?;
    Some(key)
}

impl Expander<'_> {
    /// Counts operations.
    pub(super) fn charge(&mut self, operations: u32) -> Result<(), CompileError> {
        let work = &mut self.state.work;
        work.operations = work.operations.saturating_add(operations);
        if work.operations <= THREAD_OPERATIONS {
            return Ok(());
        }
        work.note();
        let largest = work.largest(self.tile);
        let (what, elements, line) = match largest {
            Some(inst) => describe(self.tile, inst),
            None => ("constants".to_owned(), 1, None),
        };
        let tf32 = largest.is_some_and(|inst| tf32_helps(self.tile, inst, self.target));
        Err(CompileError::Operations {
            what,
            elements,
            limit: THREAD_OPERATIONS,
            tf32,
            line,
        })
    }
}

/// Refuses blocks of which a thread holds too much. What only repeats a scalar says less than what uses it.
pub(super) fn check_elements(tile: &TileFunction, target: Target) -> Result<(), CompileError> {
    for (_, inst) in tile.all_insts() {
        let (what, elements, line) = describe(tile, inst);
        if elements > THREAD_ELEMENTS && tile.dfg.insts[inst].op != TileOp::Splat {
            return Err(CompileError::Elements {
                what,
                elements,
                limit: THREAD_ELEMENTS,
                tf32: tf32_helps(tile, inst, target),
                line,
            });
        }
    }
    Ok(())
}

/// Whether an instruction is, or computes a factor for, a product without a unit that had one if its factors were cut.
fn tf32_helps(tile: &TileFunction, inst: Inst, target: Target) -> bool {
    let results = &tile.dfg.insts[inst].results;
    let is_helped = |(_, dot): (_, Inst)| {
        let data = &tile.dfg.insts[dot];
        let is_part = || dot == inst || data.args[..2].iter().any(|arg| results.contains(arg));
        if !is_part() {
            return false;
        }
        let product = matrix::dot_info(tile, dot);
        let cut = DotInfo {
            precision: DotPrecision::Tf32,
            ..product
        };
        matrix::unit(&product, target).is_none() && matrix::unit(&cut, target).is_some()
    };
    tile.insts_with(TileOp::Dot).any(is_helped)
}

/// An instruction with the type of its largest result, or else operand, the elements that a thread holds of it, and its line.
fn describe(tile: &TileFunction, inst: Inst) -> (String, u32, Option<u32>) {
    let data = &tile.dfg.insts[inst];
    let held = |ty: TileType| {
        let layout = ty.layout.expand().and_then(|id| tile.layouts.get(id));
        layout.map_or(1, |layout| layout.num_registers())
    };
    let values = if data.results.is_empty() {
        &data.args[..]
    } else {
        &data.results[..]
    };
    let types = values.iter().map(|&v| tile.dfg.ty(v));
    let largest = types.max_by_key(|&ty| held(ty));
    let name = data.op.info().name;
    let what = match largest {
        // The layout says nothing to the kernel's author.
        Some(ty) => format!("`{name}` of {}", TileType::block(ty.elem, ty.shape)),
        None => format!("`{name}`"),
    };
    let line = data.loc.0.expand().map(|line| line.0);
    (what, largest.map_or(1, held), line)
}
