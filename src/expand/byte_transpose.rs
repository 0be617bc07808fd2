//! Blocks of bytes that go from one block in shared memory to another one, in which other neighbours stand side by side.
//!
//! The unit of matrices reads bytes along the summed dimension alone, and a matrix whose rows run along the other one is turned on its way.
//! A thread has single bytes in registers of their own, which take an instruction each way. Here it has words: it loads four of them
//! that stand across each other, turns the square of 16 bytes by eight permutations of bytes, and stores four words.

use crate::ir::attrs::{Flag, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, Scalar, ThreadType};
use crate::layout::swizzle::{self, Offsets, RunOrder};
use crate::linear_layout::layout::{HwDim, LinearLayout};

use super::memory::slot_attrs;
use super::regs::{SharedBlock, Start};
use super::rings::{MAX_ACCESS_BYTES, SharedAddress, Sums, offsets_in};
use super::{Expander, Result};

/// Bytes of a word, and words of a square.
const SIDE: u32 = 4;

/// Whether a value is a block of bytes that is loaded for this store and nothing else, with nothing between that may change memory:
/// such a block is loaded where it is stored.
pub(super) fn is_loaded_for_store(tile: &TileFunction, store: Inst, value: Value) -> bool {
    let data = &tile.dfg.insts[store];
    let is_stored = data.op == TileOp::SharedStore && data.args.first() == Some(&value);
    if !is_stored || tile.dfg.ty(value).elem.bytes() != 1 {
        return false;
    }
    let (Some(load), Some(block)) = (tile.dfg.def_inst(value), tile.order.block_of(store)) else {
        return false;
    };
    let mut between = tile
        .order
        .insts(block)
        .iter()
        .skip_while(|&&inst| inst != load)
        .skip(1)
        .take_while(|&&inst| inst != store);
    tile.dfg.insts[load].op == TileOp::SharedLoad
        && between.all(|&inst| {
            let data = &tile.dfg.insts[inst];
            data.is_pure() || data.only_reads()
        })
}

/// One side of the way: where the bytes stand, and which registers take them in what order.
struct Side {
    slot: Slot,
    start: Start,
    offsets: Offsets,
    columns: Vec<u32>,
    runs: RunOrder,
}

impl Side {
    fn new(block: &SharedBlock, held: &LinearLayout) -> Result<Side> {
        let offsets = offsets_in(&block.layout, 1)?;
        Ok(Side {
            slot: block.slot,
            start: block.start,
            columns: Expander::offset_columns(held, &offsets),
            runs: swizzle::runs_first(held, &offsets, 1),
            offsets,
        })
    }

    /// Bytes of an access, as far as all threads have all of them at a multiple of their number.
    fn width(&self, held: &LinearLayout) -> u32 {
        let others = self.runs.run_bits()..held.bits(HwDim::Register);
        let others = others.map(|bit| self.place(held, self.runs.register(1 << bit)));
        let columns = self.columns.iter().copied().chain(others);
        let varying = columns.fold(MAX_ACCESS_BYTES, |all, c| all | c);
        (1 << self.runs.run_bits()).min(varying & varying.wrapping_neg())
    }

    /// The place of a register's byte in the first thread.
    fn place(&self, held: &LinearLayout, register: u32) -> u32 {
        self.offsets.of(held.apply(register, 0, 0, 0))
    }

    fn address(&self, is_held: bool) -> SharedAddress<'_> {
        SharedAddress {
            slot: self.slot,
            start: self.start,
            columns: &self.columns,
            is_held,
        }
    }
}

impl Expander<'_> {
    /// Stores what stands in one block to another one, by way of registers that hold it by `held`; gives whether it did, which takes
    /// words of bytes on both sides.
    pub(super) fn transpose_bytes(
        &mut self,
        from: &SharedBlock,
        to: &SharedBlock,
        held: &LinearLayout,
        is_apart: bool,
    ) -> Result<bool> {
        let (source, dest) = (Side::new(from, held)?, Side::new(to, held)?);
        let (register_copies, thread_copies) = self.copies_of(held);
        let across: Vec<u32> = (0..2).map(|bit| dest.runs.register(1 << bit)).collect();
        let count = held.num_registers();
        let width = source.width(held);
        let row: Vec<u32> = (0..width).map(|at| source.runs.register(at)).collect();
        let taken = row.iter().fold(0, |all, r| all | r) | across[0] | across[1];
        let is_square = width >= SIDE
            && dest.width(held) >= SIDE
            && row.iter().all(|r| r & (across[0] | across[1]) == 0);
        if !is_square || register_copies != 0 || thread_copies != 0 {
            return Ok(false);
        }
        let reads = source.address(self.tile.slots.is_valid(source.slot));
        let writes = dest.address(self.holds_addresses_of_stores(dest.slot));
        let [mut read_sums, mut write_sums] = [Sums::default(), Sums::default()];
        for first in (0..count).filter(|register| register & taken == 0) {
            let below = |k: u32| first | (across[0] * (k & 1)) | (across[1] * (k >> 1));
            let mut rows = Vec::new();
            for k in 0..SIDE {
                let place = source.place(held, below(k));
                let (pointer, offset) = self.shared_place(&reads, &mut read_sums, place)?;
                let pointer = self.typed(pointer, Scalar::I32)?;
                let mut load = InstData::new(ThreadOp::Ld, &[pointer]);
                load.attrs.extend(slot_attrs(source.slot, offset));
                let words = (width / SIDE) as u16;
                rows.push(self.op(load, &[ThreadType::pack(Elem::Num(Scalar::I32), words)])?);
            }
            for word in 0..width / SIDE {
                let mut square = Vec::new();
                for &row in &rows {
                    square.push(self.rearrange(&[row], &[word])?);
                }
                let turned = self.turn(&square)?;
                for (n, column) in (0..).zip(turned) {
                    let register = first | row[(SIDE * word + n) as usize];
                    let place = dest.place(held, register);
                    let (pointer, offset) = self.shared_place(&writes, &mut write_sums, place)?;
                    let pointer = self.typed(pointer, Scalar::I32)?;
                    let mut store = InstData::new(ThreadOp::St, &[pointer, column]);
                    store.attrs.extend(slot_attrs(dest.slot, offset));
                    if is_apart {
                        store.attrs.push(make::apart(Flag));
                    }
                    self.effect(store)?;
                }
            }
        }
        Ok(true)
    }

    /// The columns of a square of bytes whose rows are four words.
    fn turn(&mut self, rows: &[Value]) -> Result<[Value; 4]> {
        // Bytes 0 and 1 of two words in turns, then bytes 2 and 3; halves that belong together.
        const PAIRS: [i64; 2] = [0x5140, 0x7362];
        const HALVES: [i64; 2] = [0x5410, 0x7632];
        let mut pairs = Vec::new();
        for two in rows.chunks(2) {
            for selector in PAIRS {
                pairs.push(self.permute_bytes(two[0], two[two.len() - 1], selector)?);
            }
        }
        let mut columns = [rows[0]; 4];
        for (n, column) in columns.iter_mut().enumerate() {
            *column = self.permute_bytes(pairs[n / 2], pairs[2 + n / 2], HALVES[n % 2])?;
        }
        Ok(columns)
    }

    fn permute_bytes(&mut self, low: Value, high: Value, selector: i64) -> Result<Value> {
        let selector = self.int(Elem::I32, selector);
        let data = InstData::new(ThreadOp::BytePerm, &[low, high, selector]);
        self.op(data, &[ThreadType::scalar(Elem::I32)])
    }
}
