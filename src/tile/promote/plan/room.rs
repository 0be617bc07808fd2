//! How many bits sums may need.

use crate::ir::attrs::Attrs;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// How many sums and products are looked through.
const MAX_SUMS: u32 = 32;

/// Whether a sum of 64 bits is made of narrower numbers, so that it cannot have wrapped.
pub(super) fn has_room(func: &TileFunction, value: Value) -> bool {
    func.dfg.ty(value).elem == Elem::I64
        && bits_of(func, value, MAX_SUMS).is_some_and(|bits| bits <= 64)
}

/// Bits of a number with its sign, as far as that is seen from what it is computed of.
fn bits_of(func: &TileFunction, value: Value, depth: u32) -> Option<u32> {
    let own = func.dfg.ty(value).elem.bits();
    if own < 64 {
        return Some(own);
    }
    let depth = depth.checked_sub(1)?;
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    let of = |arg: usize| bits_of(func, data.args[arg], depth);
    match data.op {
        TileOp::Const => Some(65 - (*data.value()? as i64).unsigned_abs().leading_zeros()),
        TileOp::Sext | TileOp::Splat | TileOp::Broadcast | TileOp::ExpandDims => of(0),
        TileOp::Zext => Some(of(0)? + 1),
        TileOp::Iadd | TileOp::Isub => Some(of(0)?.max(of(1)?) + 1),
        TileOp::Imul => Some(of(0)? + of(1)?),
        _ => None,
    }
}
