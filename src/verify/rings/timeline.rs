//! The steps of a scheduled kernel, and what stands in its rings behind each: what a picture of the schedule shows.
//!
//! The kernel is executed as the check of rings executes it. A step has no duration: copies and products take as long as the program lets
//! them, until it waits for them.

use super::machine::Machine;
pub(crate) use super::state::Content;
use super::{SAMPLES, state::Entry};
use crate::ir::effects::OpClass;
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::ValueType;

/// Steps that a timeline has, if there are executions that long.
const WANTED: usize = 120;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingStep {
    /// Starts a copy into a ring.
    Copy,
    /// Waits for copies or for entries that are free.
    Wait,
    /// Reads a block into registers.
    Read,
    /// Writes a block from registers.
    Store,
    /// Multiplies, or starts a product.
    Multiply,
    /// Waits for a product.
    Finish,
    /// Gives an entry back.
    Release,
    /// Computes blocks in registers.
    Compute,
}

/// A step and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) inst: Inst,
    pub(crate) step: RingStep,
    /// Whether warps of their own do it, which run ahead.
    pub(crate) is_ahead: bool,
    /// Of each entry of the timeline.
    pub(crate) contents: Vec<Content>,
    /// Products under way.
    pub(crate) products: u64,
}

/// An execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// Entries of rings.
    pub(crate) entries: Vec<Entry>,
    pub(crate) ticks: Vec<Tick>,
}

/// An execution whose loops run several times; without steps if the kernel has no rings.
pub(crate) fn timeline(func: &TileFunction) -> Timeline {
    let rings = func
        .slots
        .keys()
        .filter_map(|slot| Some((slot, func.buffers[slot]?)));
    let entries =
        rings.flat_map(|(slot, ring)| (0..u64::from(ring.stages)).map(move |i| (slot, i)));
    let entries: Vec<Entry> = entries.collect();
    let mut best = Timeline::default();
    if entries.is_empty() {
        return best;
    }
    for sample in 0..SAMPLES {
        let ticks = ticks(func, &entries, sample);
        let is_better = match best.ticks.len() {
            have if have < WANTED => ticks.len() > have,
            have => WANTED <= ticks.len() && ticks.len() < have,
        };
        if is_better {
            best = Timeline {
                entries: entries.clone(),
                ticks,
            };
        }
    }
    best
}

fn ticks(func: &TileFunction, entries: &[Entry], sample: u64) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    let mut watch = |inst: Inst, is_ahead: bool, state: &super::state::State| {
        let Some(step) = step(func, inst) else {
            return;
        };
        let last = ticks.last().filter(|last| !last.is_ahead);
        if step == RingStep::Compute && last.is_some_and(|last| last.step == RingStep::Compute) {
            return;
        }
        ticks.push(Tick {
            inst,
            step,
            is_ahead,
            contents: entries.iter().map(|&entry| state.content(entry)).collect(),
            products: state.products(),
        });
    };
    // What is wrong with a kernel the check says; here it ends the picture.
    let _ = Machine::watched(func, sample, &mut watch).run();
    ticks
}

/// What an instruction does; none if a picture has nothing of it.
fn step(func: &TileFunction, inst: Inst) -> Option<RingStep> {
    let data = &func.dfg.insts[inst];
    Some(match data.op {
        TileOp::AsyncCopy | TileOp::TensorCopy => RingStep::Copy,
        TileOp::AsyncWait | TileOp::MbarWait | TileOp::MbarWaitFor => RingStep::Wait,
        TileOp::SharedLoad => RingStep::Read,
        TileOp::SharedStore => RingStep::Store,
        TileOp::DotStart | TileOp::Dot => RingStep::Multiply,
        TileOp::DotWait | TileOp::DotSum => RingStep::Finish,
        TileOp::Release => RingStep::Release,
        TileOp::SharedView
        | TileOp::AsyncCommit
        | TileOp::DotDone
        | TileOp::MbarInit
        | TileOp::MbarDrop
        | TileOp::MbarExpect
        | TileOp::MbarArrive
        | TileOp::SlotPut
        | TileOp::SlotGet => return None,
        _ => {
            let &result = data.results.first()?;
            let ty = func.dfg.ty(result);
            let effects = &data.op.info().effects;
            let is_work = match effects.class {
                OpClass::Elementwise => effects.cost > 0,
                OpClass::Exchange | OpClass::Region | OpClass::Foreign => true,
                _ => false,
            };
            return (is_work && !ty.is_single()).then_some(RingStep::Compute);
        }
    })
}
