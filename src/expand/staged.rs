//! Blocks that the copy engine takes from shared memory: those of one run of stores are sent together, and a unit that multiplies one
//! reads it where it stands.
//!
//! ```text
//! tensor_store m, x                 st x -> a; st y -> b                fence, barrier once
//! tensor_store m, y           =>    tensor_store a; tensor_store b
//! shared_store x -> s               (s stands for a)
//! dot_start (shared_view s), ..     wgmma a, ..
//! ```
//!
//! A block goes to the place of its own at once, and is sent in front of the first instruction behind it that does more than compute. Each
//! send behind a fence and a barrier of its own is what a chain of small products would wait for. (The states of a gated delta rule, which are stored and
//! multiplied in each iteration.)

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::regs::SharedBlock;
use super::rings::reads;
use super::{Expander, Result};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::level::Thread;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::linear_layout::layout::LinearLayout;

/// What is known of such blocks.
#[derive(Default)]
pub(super) struct Staged {
    /// Values of the block of instructions at hand that stand in places, with how they do.
    blocks: Vec<(Value, Slot, Rc<LinearLayout>)>,
    /// Places that stand for rings of one entry.
    stand_in: FxHashMap<Slot, Slot>,
    /// What is to be sent.
    sends: Vec<InstData<Thread>>,
}

impl Staged {
    /// Notes where a value stands.
    pub(super) fn note(&mut self, value: Value, block: &SharedBlock) {
        self.blocks.push((value, block.slot, block.layout.clone()));
    }

    /// Sends a box later.
    pub(super) fn send(&mut self, store: InstData<Thread>) {
        self.sends.push(store);
    }
}

impl Expander<'_> {
    /// Expands the instructions of a tile block. What stands somewhere does so in its own block alone: a branch may not be taken. Nothing waits to
    /// be sent here: what has regions does not stand behind it.
    pub(super) fn block(&mut self, block: Block) -> Result<()> {
        let outer = std::mem::take(&mut self.staged.blocks);
        self.staged.sends.clear();
        let expanded = self.insts(block);
        self.staged.blocks = outer;
        expanded
    }

    /// Sends what waits for that, in one group.
    pub(super) fn send_boxes(&mut self) -> Result<()> {
        let sends = std::mem::take(&mut self.staged.sends);
        if sends.is_empty() {
            return Ok(());
        }
        for store in sends {
            self.effect(store)?;
        }
        self.effect(InstData::new(ThreadOp::BulkCommit, &[]))
    }

    /// Sends what waits for that, unless the next instruction is one more store, or computes.
    pub(super) fn send_boxes_before(&mut self, inst: Inst) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let is_quiet = data.op == TileOp::TensorStore || data.is_pure();
        match is_quiet && data.blocks.is_empty() {
            true => Ok(()),
            false => self.send_boxes(),
        }
    }

    /// The entry of a ring that operand `index` names.
    pub(super) fn shared_block(&mut self, inst: Inst, index: usize) -> Result<SharedBlock> {
        let (slot, start) = self.entry(inst, index)?;
        let layout = self.ring(slot)?;
        Ok(SharedBlock {
            slot: self.staged.stand_in.get(&slot).copied().unwrap_or(slot),
            start,
            layout,
        })
    }

    /// Whether what is stored to a ring of one entry stands somewhere already in the same way, where whoever reads the ring finds it.
    pub(super) fn stands_already(&mut self, inst: Inst) -> bool {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let Some(&slot) = data.slot() else {
            return false;
        };
        self.staged.stand_in.remove(&slot);
        let (Some(layout), Some(buffer)) = (self.rings.get(&slot), tile.buffers[slot]) else {
            return false;
        };
        let mut blocks = self.staged.blocks.iter();
        let is_it = |(value, _, stands): &&(Value, Slot, Rc<LinearLayout>)| {
            *value == data.args[0] && stands == layout
        };
        let Some(&(_, place, _)) = blocks.find(is_it).filter(|_| buffer.stages == 1) else {
            return false;
        };
        // Nobody reads the ring elsewhere, or before.
        let list = tile.order.block_of(inst).map(|home| tile.order.insts(home));
        let mut behind = list
            .into_iter()
            .flatten()
            .skip_while(|&&other| other != inst);
        let is_read = |other: &&Inst| reads(&tile.dfg.insts[**other], slot);
        let behind = behind.by_ref().filter(is_read).count();
        let all = tile.all_insts();
        let all = all.filter(|&(_, other)| tile.dfg.insts[other].slot() == Some(&slot));
        // Beside the store itself.
        let is_alone = all.count() == behind + 1;
        if is_alone {
            self.staged.stand_in.insert(slot, place);
        }
        is_alone
    }
}
