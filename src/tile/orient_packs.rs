//! Which elements inline PTX of several takes together: neighbours in memory, as far as that is known.
//!
//! Lines that read one element to make another, as those that unpack words, mean neighbours of the tensor that was loaded. Nothing in the
//! text says along which dimension these are: Triton deals registers out in the order of the loads. Here an instruction has an axis of its own,
//! so that no choice of layouts changes what is computed.
//!
//! Invariant: inline PTX of several elements has the attribute `axis` where its operands were loaded along another dimension than the last.
//! One walk.

use crate::analysis::axis::Axis;
use crate::analysis::neighbours::{carried_first, runs};
use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::ValueDef;
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
        let mut args = data.args.iter();
        let dim = args.find_map(|&arg| nearest(func, &axis, arg, MAX_DEPTH));
        let rank = func.dfg.ty(data.results[0]).shape.rank();
        let dim = dim.filter(|dim| dim + 1 < rank);
        if let Some(dim) = dim.filter(|_| data.axis().is_none()) {
            func.dfg.insts[inst].attrs.push(make::axis(dim as u8));
            turned += 1;
        }
    }
    turned
}

/// The dimension along which a block stands in memory, as far as it is loaded, or computed from that element by element, in another shape,
/// or handed on by loops and branches. Of several operands the first of which this is known tells.
fn nearest(func: &TileFunction, axis: &Axis, value: Value, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    let ValueDef::Result(inst, index) = func.dfg.values[value].def else {
        // What a loop begins with.
        return nearest(func, axis, carried_first(func, value)?, depth);
    };
    let data = &func.dfg.insts[inst];
    let shape = |value| func.dfg.ty(value).shape;
    let source = || nearest(func, axis, *data.args.first()?, depth);
    match data.op {
        TileOp::Load => {
            let length = |dim: usize| runs(func, axis, data.args[0], dim);
            // Of several the last.
            let longest = (0..shape(value).rank()).max_by_key(|&dim| length(dim))?;
            (length(longest) > 0).then_some(longest)
        }
        TileOp::Permute => {
            let of = source()?;
            data.dims()?.iter().position(|&dim| dim as usize == of)
        }
        TileOp::ExpandDims => {
            let (of, axis) = (source()?, usize::from(*data.axis()?));
            Some(of + usize::from(axis <= of))
        }
        TileOp::Broadcast | TileOp::Join => source(),
        // Neighbours may have been the two that come apart.
        TileOp::Split => source().filter(|&of| of < shape(value).rank()),
        // The dimension whose neighbours are as far from each other in the order of all elements.
        TileOp::Reshape => {
            let of = source()?;
            let (from, to) = (shape(data.args[0]), shape(value));
            let mut dims = 0..to.rank();
            dims.find(|&dim| to.extent(dim) > 1 && to.place(dim) == from.place(of))
        }
        TileOp::For => nearest(func, axis, *data.args.get(3 + usize::from(index))?, depth),
        TileOp::While => nearest(func, axis, *data.args.get(usize::from(index))?, depth),
        TileOp::If => data.blocks.iter().find_map(|call| {
            let last = &func.dfg.insts[func.order.last(call.block)?];
            nearest(func, axis, *last.args.get(usize::from(index))?, depth)
        }),
        _ if data.class() == OpClass::Elementwise || data.op == TileOp::InlinePtx => {
            let mut args = data.args.iter();
            args.find_map(|&arg| nearest(func, axis, arg, depth))
        }
        _ => None,
    }
}
