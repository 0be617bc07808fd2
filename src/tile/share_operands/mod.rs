//! Operands of products of matrices in shared memory instead of registers.
//!
//! A unit wants its operands dealt to threads in its own way, while loads want neighbours side by side. A conversion of layouts
//! brings a whole block through shared memory at once; a product that reads shared memory itself takes what each of its steps
//! needs ([`crate::expand`]), by `ldmatrix` from an arrangement made for it, so that the block is never in registers as a whole.
//! Four rewrites, each a heuristic about speed that leaves the values the same, make more of that:
//!
//! - [`share_invariant`], before loops are pipelined: operands that a loop does not change, where registers are short.
//! - [`copy_loaded`], after it: operands that are loads and nothing else, which come by copies.
//! - [`share_loaded`], then: operands that are computed from loads in the block of the product.
//! - [`split_readers`], last: a load for each product that reads a block.
//!
//! What they put into shared memory stands in rings of one entry, those of pipelines have more.

mod copied;
mod invariant;
mod loaded;
mod readers;

pub use copied::copy_loaded;
pub(super) use invariant::registers_needed;
pub use invariant::share_invariant;
pub use loaded::share_loaded;
pub(super) use readers::chain;
pub use readers::split_readers;

use crate::ir::attrs::make;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Whether an operand of a product is kept in shared memory.
pub fn holds_operands(func: &TileFunction) -> bool {
    func.buffers.values().flatten().any(|b| b.stages == 1)
}

/// A place for a block; none for truth values and what is no number.
pub(super) fn place_for(ty: TileType) -> Option<BufferData> {
    Some(BufferData {
        elem: ty.elem.scalar().filter(|_| 8 <= ty.elem.bits())?,
        shape: ty.shape,
        stages: 1,
    })
}

/// The number of the only entry of a place, and its type.
pub(super) fn first_entry() -> (InstData<Tile>, TileType) {
    let mut data = InstData::new(TileOp::Const, &[]);
    data.attrs.push(make::value(0));
    (data, TileType::scalar(Elem::I32))
}

/// Puts a block into the entry of a place.
pub(super) fn store(value: Value, entry: Value, slot: Slot) -> InstData<Tile> {
    let mut data = InstData::new(TileOp::SharedStore, &[value, entry]);
    data.attrs.push(make::slot(slot));
    data
}

/// Reads the block in the entry of a place.
fn load(entry: Value, slot: Slot) -> InstData<Tile> {
    let mut data = InstData::new(TileOp::SharedLoad, &[entry]);
    data.attrs.push(make::slot(slot));
    data
}

#[cfg(test)]
mod tests {
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;

    /// Instructions with an op.
    pub(super) fn count(func: &TileFunction, op: TileOp) -> usize {
        func.insts_with(op).count()
    }

    /// Small numbers, of which sums of products are exact.
    pub(super) fn small(count: u32) -> Vec<u8> {
        let number = |i: u32| ((i * 7) % 5) as f32 - 2.0;
        (0..count).flat_map(|i| number(i).to_le_bytes()).collect()
    }
}
