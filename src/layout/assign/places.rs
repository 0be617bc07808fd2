//! What it takes to load a block into registers that a unit reads in place, too.
//!
//! Where such a block stands is bound by the forms of [`warpgroup`](crate::layout::warpgroup), and a reader counts on the one among them
//! that serves it best. Rings that threads alone read take the shape of their readers ([`swizzle::layout`]), and those that are read to be
//! stored in another form pay for one of both whatever the layout is: they cost nothing here.

use rustc_hash::FxHashMap;

use super::graph::Node;
use super::pbqp::Cost;
use super::rings::{forms, readers};
use super::{Assignment, cost};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Slot};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::swizzle::{self, Offsets};
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::named;

/// Bytes of the widest access of a thread.
const WIDEST: u32 = 16;

/// The places that elements may have in the rings that units read.
#[derive(Default)]
pub(super) struct Places(FxHashMap<Slot, Vec<Offsets>>);

impl Places {
    /// What a load from a ring costs in a layout of registers: nothing if the ring adapts, or if it is no such load.
    pub(super) fn cost(&self, func: &TileFunction, inst: Inst, layout: &LinearLayout) -> Cost {
        let data = &func.dfg.insts[inst];
        let slot = data.slot().filter(|_| data.op == TileOp::SharedLoad);
        let places = slot.and_then(|slot| self.0.get(slot));
        let bytes = func.dfg.insts[inst]
            .results
            .first()
            .map_or(1, |&v| func.dfg.ty(v).elem.bytes());
        let trips = places
            .into_iter()
            .flatten()
            .map(|offsets| swizzle::trips(layout, offsets, bytes));
        trips.map(cost::shared).min().unwrap_or(0)
    }
}

impl Assignment {
    /// Looks at the rings that units read, and offers loads from them 16 bytes of a row for each thread.
    pub(super) fn find_places(&mut self, func: &TileFunction) {
        let nodes = self.graph.nodes.iter();
        let loads: Vec<(Node, Slot)> = nodes
            .filter_map(|(node, data)| {
                let data = &func.dfg.insts[data.inst?];
                let slot = data.slot().filter(|_| data.op == TileOp::SharedLoad)?;
                Some((node, *slot))
            })
            .collect();
        if loads.is_empty() {
            return;
        }
        let units = readers(func);
        for (node, slot) in loads {
            let (Some(buffer), Some(units)) = (func.buffers[slot], units.get(&slot)) else {
                continue;
            };
            let (shape, bytes) = (buffer.shape, buffer.elem.bytes());
            let forms = forms(func, slot, &buffer, units);
            self.places.0.entry(slot).or_insert_with(|| {
                let layouts = forms.iter().filter_map(|form| form.layout(shape, bytes));
                layouts
                    .filter_map(|layout| Offsets::new(&layout, bytes))
                    .collect()
            });
            let share = shape.elements() as u32 / (32 * self.num_warps);
            let per_thread = (WIDEST / bytes).min(share.max(1));
            for dim in [1, 0] {
                // The arguments are powers of two and a permutation, so nothing is refused.
                if forms.iter().any(|form| form.inner == dim)
                    && let Ok(layout) =
                        named::coalesced(shape, &[dim, 1 - dim], per_thread, self.num_warps)
                {
                    let layout = self.pool.intern(layout);
                    self.offer(node, layout);
                }
            }
        }
    }
}
