//! Boxes of tensors that no pipelined loop brings: copied to shared memory where they are read, and waited for at once.
//!
//! ```text
//!                               mbar_init b; mbar_expect b, bytes
//! x = tensor_load map, i, j =>  tensor_copy map, i, j to the entry of a place; mbar_wait b
//!                               x = shared_load; mbar_drop b
//! ```

use super::edit::{Editor, Fate, rewrite};
use super::share_operands::place_for;
use crate::ir::attrs::{Attr, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};

/// Lets boxes come through shared memory; gives how many.
pub fn fetch_boxes(func: &mut TileFunction) -> usize {
    rewrite(func, fetch)
}

fn fetch(edit: &mut Editor<'_>, inst: Inst) -> Fate {
    let data = edit.func.dfg.insts[inst].clone();
    if data.op != TileOp::TensorLoad {
        return Fate::Keep;
    }
    let ty = edit.func.dfg.ty(data.results[0]);
    let Some(buffer) = place_for(ty) else {
        return Fate::Keep;
    };
    let slot = edit.func.add_buffer(buffer);
    let bars = edit.func.add_barriers(1);
    let barrier = |op, args: &[Value], attrs: &[Attr]| {
        let mut data: InstData<Tile> = InstData::new(op, args);
        data.attrs.push(make::slot(bars));
        data.attrs.extend(attrs.iter().cloned());
        data
    };
    let zero = edit.constant(0, TileType::scalar(Elem::I32));
    let exists = edit.constant(1, TileType::scalar(Elem::I1));
    let bytes = make::bytes(buffer.stage_bytes());
    edit.append(barrier(TileOp::MbarInit, &[], &[make::count(1)]));
    edit.append(barrier(TileOp::MbarExpect, &[zero, exists], &[bytes]));
    let mut copy = InstData::new(TileOp::TensorCopy, &[data.args[0], zero, exists]);
    copy.args.extend(data.args[1..].iter().copied());
    copy.attrs.extend([make::slot(slot), make::bars(bars)]);
    edit.append(copy);
    edit.append(barrier(TileOp::MbarWait, &[zero, zero], &[]));
    let value = edit.build(TileOp::SharedLoad, &[zero], &[make::slot(slot)], ty);
    edit.append(barrier(TileOp::MbarDrop, &[], &[]));
    Fate::Replace(value)
}
