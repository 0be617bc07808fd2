//! Loads that are to be under way together.
//!
//! The assembler moves the load of a value that is read once down to where it is read, as that takes fewer registers: of 32 loads of
//! 16 bytes whose elements are added up, three or four are under way at a time then, and where few warps run, memory waits. A
//! load does not pass a barrier of the warp, which is no instruction where the warp is together. So one stands behind such
//! loads, in front of what reads of them first or stores. (An H200, with such barriers written into the texts: the parts of attention
//! split 64 ways are added up in 5.6 us instead of 8.2, and a state that each block of a sequence reads and replaces takes 218 us instead of 448.
//! Values that are read more often stay in registers by themselves: with a barrier norms are as fast as without.) Products need their registers for sums, and many warps have
//! as much under way together.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use super::{Expander, Result};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::settings::Target;

/// Most warps of a program whose loads are held.
const MOST_WARPS: u32 = 4;
/// Fewest bytes for each thread that are held: eight of the widest loads.
const FEWEST_BYTES: u32 = 128;
/// Most bytes for each register that a thread may have, of 4 bytes: what is held and what is computed of it share them.
const MOST_BYTES: u32 = 3;

/// Loads of a block of instructions that are to be under way together. What is read in front of others of them counts on: it is read
/// while these are under way.
#[derive(Default)]
pub(super) struct LoadsInFlight {
    values: SmallVec<[Value; 8]>,
    /// Bytes that each thread gets by them.
    bytes: u32,
}

/// What is loaded and read by one instruction; nothing where loads need not be held.
pub(super) fn read_once(tile: &TileFunction) -> EntitySet<Value> {
    let is_product = |(_, inst): (_, Inst)| tile.dfg.insts[inst].is_product();
    if tile.num_warps() > MOST_WARPS || tile.all_insts().any(is_product) {
        return EntitySet::new();
    }
    let mut once = EntitySet::with_capacity(tile.dfg.values.len());
    let mut again = EntitySet::with_capacity(tile.dfg.values.len());
    for (_, inst) in tile.all_insts() {
        for value in tile.dfg.uses(inst) {
            if !once.insert(value) {
                again.insert(value);
            }
        }
    }
    let loads = tile.insts_with(TileOp::Load);
    let values = loads.flat_map(|(_, inst)| tile.dfg.insts[inst].results.iter().copied());
    let mut found = EntitySet::with_capacity(tile.dfg.values.len());
    found.extend(values.filter(|&value| once.contains(value) && !again.contains(value)));
    found
}

impl Expander<'_> {
    /// Whether more is loaded behind an instruction, in front of what stores or branches: a barrier would keep that from being under way, too.
    /// (Probabilities of drafts, three blocks of a vocabulary at a time: with a barrier behind the second 384 us on an H200, without 330.)
    fn loads_behind(&self, inst: Inst) -> bool {
        let tile = self.tile;
        let block = tile.order.block_of(inst);
        let insts = block.map_or(&[][..], |block| tile.order.insts(block));
        let behind = insts.iter().skip_while(|&&other| other != inst).skip(1);
        let mut behind = behind.take_while(|&&other| {
            let data = &tile.dfg.insts[other];
            data.op != TileOp::Store && data.blocks.is_empty()
        });
        behind.any(|&other| {
            let data = &tile.dfg.insts[other];
            let held =
                |value: &Value| self.read_once.contains(*value) && !tile.dfg.ty(*value).is_scalar();
            data.op == TileOp::Load && data.results.iter().any(held)
        })
    }

    /// Keeps what was loaded in front of an instruction that is about to be expanded, and notes what that one loads.
    pub(super) fn hold_loads(&mut self, loads: &mut LoadsInFlight, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let reads = tile
            .dfg
            .uses(inst)
            .any(|value| loads.values.contains(&value));
        // What is read in a branch or a loop is not held in front of it.
        let is_control = data.op.is_loop() || data.op == TileOp::If;
        let waits = reads && !self.loads_behind(inst);
        if waits || is_control || data.op == TileOp::Store {
            let held = std::mem::take(loads);
            let most = MOST_BYTES * Target::most_registers(tile.num_threads());
            // Conversions put a barrier there themselves.
            let is_seen_to = data.op == TileOp::ConvertLayout || is_control;
            if !is_seen_to && !self.is_producer && (FEWEST_BYTES..=most).contains(&held.bytes) {
                self.effect(InstData::new(ThreadOp::WarpBarrier, &[]))?;
            }
        }
        if data.op == TileOp::Load {
            for &value in data.results.iter().filter(|&&v| self.read_once.contains(v)) {
                let ty = tile.dfg.ty(value);
                if !ty.is_scalar() {
                    loads.bytes += self.registers(ty)? as u32 * ty.elem.bytes();
                    loads.values.push(value);
                }
            }
        }
        Ok(())
    }
}
