//! Where the blocks of rings stand that warpgroups read in place.
//!
//! Of the forms that every such reader takes ([`warpgroup::forms`]), the one that is filled, and read otherwise, with the fewest bank
//! conflicts; of equal ones the one with the longest rows. The views get it as their layout.

use rustc_hash::FxHashMap;

use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::layout::warpgroup::{MatrixForm, Reader};
use crate::layout::{swizzle, warpgroup};
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::named;
use crate::linear_layout::shape::Shape;

/// Gives the views of rings, and their changes of shape, layouts of memory.
pub(super) fn assign(func: &mut TileFunction) {
    let views: Vec<Inst> = func
        .all_insts()
        .map(|(_, inst)| inst)
        .filter(|&inst| {
            let results = &func.dfg.insts[inst].results;
            results.iter().any(|&v| func.dfg.ty(v).is_shared())
        })
        .collect();
    if views.is_empty() {
        return;
    }
    let readers = readers(func);
    let mut layouts: FxHashMap<Slot, LinearLayout> = FxHashMap::default();
    for inst in views {
        let data = &func.dfg.insts[inst];
        let layout = match (data.op, data.slot().copied()) {
            (TileOp::SharedView, Some(slot)) => {
                let known = layouts.entry(slot);
                known
                    .or_insert_with(|| choose(func, slot, readers.get(&slot).map_or(&[], |r| r)))
                    .clone()
            }
            // Operands come first.
            (TileOp::Permute, _) => {
                let from = func.dfg.ty(data.args[0]).layout.expand();
                let dims = data.dims().map_or(&[][..], |d| d);
                let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
                match from.and_then(|id| func.layouts.get(id)) {
                    Some(from) => from.permute(&dims),
                    None => continue,
                }
            }
            _ => continue,
        };
        let id = func.layouts.intern(layout);
        let result = func.dfg.insts[inst].results[0];
        func.dfg.values[result].ty = func.dfg.ty(result).with_layout(id);
    }
}

/// How units read each ring in place.
pub(super) fn readers(func: &TileFunction) -> FxHashMap<Slot, Vec<Reader>> {
    let mut found: FxHashMap<Slot, Vec<Reader>> = FxHashMap::default();
    for (_, inst) in func.insts_with(TileOp::DotStart) {
        let data = &func.dfg.insts[inst];
        let sums = func.dfg.ty(data.results[0]).shape;
        let operands = warpgroup::readers(sums, func.num_warps());
        let operands = operands.into_iter().flatten();
        for (&value, (summed, kept)) in data.args.iter().zip(operands) {
            let Some(view) = func.view_of(value) else {
                continue;
            };
            let slot = func.dfg.insts[view.inst].slot();
            if let (Some(&slot), Some(&dim)) = (slot, view.dims.get(summed)) {
                found.entry(slot).or_default().push((dim, kept));
            }
        }
    }
    found
}

/// The forms of a ring's blocks that units read so.
pub(super) fn forms(
    func: &TileFunction,
    slot: Slot,
    buffer: &BufferData,
    readers: &[Reader],
) -> Vec<MatrixForm> {
    let mut found = warpgroup::forms(buffer.shape, buffer.elem.bytes(), readers);
    let mut copies = func.insts_with(TileOp::TensorCopy);
    if copies.any(|(_, inst)| func.dfg.insts[inst].slot() == Some(&slot)) {
        // Boxes come row by row.
        found.retain(|form| form.inner + 1 == buffer.shape.rank());
    }
    found
}

fn choose(func: &TileFunction, slot: Slot, readers: &[Reader]) -> LinearLayout {
    let accesses = |is_meant: fn(&InstData<Tile>) -> Option<Value>| {
        let insts = func.dfg.insts.values();
        let here = insts.filter(move |data| data.slot() == Some(&slot));
        let values = here.filter_map(is_meant);
        values.filter_map(|v| func.layouts.get(func.dfg.ty(v).layout.expand()?))
    };
    let written = accesses(|data| match data.op {
        TileOp::AsyncCopy | TileOp::SharedStore => data.args.first().copied(),
        _ => None,
    });
    let read = accesses(|data| match data.op {
        TileOp::SharedLoad => data.results.first().copied(),
        _ => None,
    });
    let writers: Vec<&LinearLayout> = written.collect();
    let others: Vec<&LinearLayout> = read.collect();
    let Some(buffer) = func.buffers[slot] else {
        return named::shared_row_major(Shape::SCALAR);
    };
    let (shape, elem_bytes) = (buffer.shape, buffer.elem.bytes());
    let candidates = forms(func, slot, &buffer, readers);
    let writer = writers.first();
    // Neighbours that a thread brings together stand together, if the readers allow it.
    let inner = writer.map(|writer| swizzle::inner_dim(writer));
    let best = candidates.iter().min_by_key(|form| {
        let conflicts = writer.zip(form.layout(shape, elem_bytes));
        let conflicts = conflicts.map(|(w, layout)| swizzle::cost(&layout, elem_bytes, w, &others));
        (inner.is_some_and(|inner| inner != form.inner), conflicts)
    });
    let layout = best.and_then(|form| form.layout(shape, elem_bytes));
    layout.unwrap_or_else(|| named::shared_row_major(shape))
}
