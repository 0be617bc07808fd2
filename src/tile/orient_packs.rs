//! Which elements inline PTX of several takes together: neighbours in memory, as far as that is known.
//!
//! Lines that read one element to make another, as those that unpack words, mean neighbours of the tensor that was loaded. Nothing in the
//! text says along which dimension these are: Triton deals registers out in the order of the loads. Here an instruction has an axis of its own,
//! so that no choice of layouts changes what is computed.
//!
//! Invariant: inline PTX of several elements has the attribute `axis` where its operands were loaded along another dimension than the last.
//! One walk.

use crate::analysis::axis::Axis;
use crate::analysis::neighbours::runs;
use crate::ir::attrs::{Attrs, make};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// How many instructions are followed from inline PTX to what was loaded.
const MAX_DEPTH: usize = 32;

/// Says along which dimension elements are taken together where that is not the last; gives the number of instructions.
pub fn orient_packs(func: &mut TileFunction) -> usize {
    let packed = func.insts_with(TileOp::InlinePtx).map(|(_, inst)| inst);
    let packed = packed.filter(|&inst| func.dfg.insts[inst].pack().is_some_and(|&pack| pack > 1));
    let packed: Vec<Inst> = packed.collect();
    if packed.is_empty() {
        return 0;
    }
    let axis = Axis::compute(func);
    let mut turned = 0;
    for inst in packed {
        let data = &func.dfg.insts[inst];
        let dims = data
            .args
            .iter()
            .filter_map(|&arg| nearest(func, &axis, arg, MAX_DEPTH));
        let rank = func.dfg.ty(data.results[0]).shape.rank();
        let dim = dims.into_iter().next().filter(|dim| dim + 1 < rank);
        if let Some(dim) = dim.filter(|_| data.axis().is_none()) {
            func.dfg.insts[inst].attrs.push(make::axis(dim as u8));
            turned += 1;
        }
    }
    turned
}

/// The dimension along which a block stands in memory, as far as it is loaded and computed from that element by element.
fn nearest(func: &TileFunction, axis: &Axis, value: Value, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    match data.op {
        TileOp::Load => {
            let rank = func.dfg.ty(value).shape.rank();
            let length = |dim: usize| runs(func, axis, data.args[0], dim);
            // Of several the last.
            let longest = (0..rank).max_by_key(|&dim| length(dim))?;
            (length(longest) > 0).then_some(longest)
        }
        TileOp::Permute => {
            let of = nearest(func, axis, data.args[0], depth)?;
            data.dims()?.iter().position(|&dim| dim as usize == of)
        }
        _ if data.class() == OpClass::Elementwise || data.op == TileOp::InlinePtx => {
            let mut args = data.args.iter();
            args.find_map(|&arg| nearest(func, axis, arg, depth))
        }
        _ => None,
    }
}
