//! What it takes to load a block into registers that a unit reads in place, too, and to store one that it reads.
//!
//! Where such a block stands is bound by the forms of [`warpgroup`](crate::layout::warpgroup), and a reader or writer counts on the one
//! among them that serves it best. Rings that threads alone read take the shape of their readers ([`swizzle::layout`]).
//!
//! A block that is computed from a ring of narrow elements takes them as they stand there, several at a time: element by element attention
//! with keys and values of 8 bits took a quarter longer on an H100.
//!
//! Of the types of four bytes and of one the unit reads no operand in place whose neighbours stand across the summed dimension. Such a right
//! operand (of four bytes where the product cannot be computed transposed, [`crate::tile::transpose_products`]) is
//! loaded from its ring and stored again, and pays for what no shape of the ring makes good: neighbours stand there along the dimension of
//! the copies. Threads side by side then stand along the summed dimension, as in the block that is stored,
//! and each holds a run of the other one, as in the ring (and of bytes as many as make a word along both): both accesses
//! are wide, or free of conflicts, or both.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::graph::Node;
use super::pbqp::Cost;
use super::rings::{forms, readers};
use super::seeds::tiled;
use super::{Assignment, cost};
use crate::analysis::axis::Axis;
use crate::analysis::neighbours::{neighbours, neighbours_in_ring};
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::swizzle::{self, Offsets};
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::named;
use crate::linear_layout::shape::Shape;
use crate::settings::LANES;

/// Bytes of the widest access of a thread.
const WIDEST: u32 = 16;

/// Bytes of a word.
const WORD: u32 = 4;

/// Where blocks in shared memory may stand.
#[derive(Default)]
pub(super) struct Places(FxHashMap<Slot, Place>);

/// Where a block may stand.
enum Place {
    /// In one of these ways, as units read it.
    OfUnits(Vec<Offsets>),
    /// As suits the threads that read it, with neighbours along a dimension.
    Along(usize),
}

impl Places {
    /// What a load or a store of a block costs in a layout of registers.
    pub(super) fn cost(&self, func: &TileFunction, inst: Inst, layout: &LinearLayout) -> Cost {
        let data = &func.dfg.insts[inst];
        let value = match data.op {
            TileOp::SharedLoad => data.results.first(),
            TileOp::SharedStore => data.args.first(),
            _ => None,
        };
        let place = value.and_then(|_| self.0.get(data.slot()?));
        let bytes = value.map_or(1, |&v| func.dfg.ty(v).elem.bytes());
        let trips = match (place, data.op) {
            (Some(Place::OfUnits(places)), TileOp::SharedLoad) => {
                let trips = places.iter();
                let trips = trips.map(|place| swizzle::trips(layout, place, bytes));
                trips.map(cost::shared).min()
            }
            (Some(Place::OfUnits(places)), _) => {
                let trips = places.iter();
                let trips = trips.map(|place| swizzle::trips_of_runs(layout, place, bytes));
                trips.map(cost::shared).min()
            }
            (Some(&Place::Along(dim)), TileOp::SharedLoad) => {
                swizzle::trips_where_best(layout, dim, bytes).map(cost::shared)
            }
            // Who stores counts on the readers.
            (Some(Place::Along(_)), _) | (None, _) => None,
        };
        trips.unwrap_or(0)
    }
}

impl Assignment {
    /// Looks at the blocks that units read, and offers loads from them 16 bytes of a row for each thread.
    pub(super) fn find_places(&mut self, func: &TileFunction, axis: &Axis) {
        let nodes = self.graph.nodes.iter();
        let accesses: Vec<(Node, Inst, Slot)> = nodes
            .filter_map(|(node, data)| {
                let inst = data.inst?;
                let data = &func.dfg.insts[inst];
                let is_access = matches!(data.op, TileOp::SharedLoad | TileOp::SharedStore);
                let slot = data.slot().filter(|_| is_access)?;
                Some((node, inst, *slot))
            })
            .collect();
        if accesses.is_empty() {
            return;
        }
        let units = readers(func);
        for (node, inst, slot) in accesses {
            let Some(buffer) = func.buffers[slot] else {
                continue;
            };
            let (shape, bytes) = (buffer.shape, buffer.elem.bytes());
            let Some(readers) = units.get(&slot) else {
                continue;
            };
            let forms = forms(func, slot, &buffer, readers);
            self.places.0.entry(slot).or_insert_with(|| {
                let layouts = forms.iter().filter_map(|form| form.layout(shape, bytes));
                let places = layouts.filter_map(|layout| Offsets::new(&layout, bytes));
                Place::OfUnits(places.collect())
            });
            let share = shape.elements() as u32 / (LANES * self.num_warps);
            let most = (WIDEST / bytes).min(share.max(1));
            let is_form = |dim: usize| forms.iter().any(|form| form.inner == dim);
            if func.dfg.insts[inst].op == TileOp::SharedStore {
                let value = func.dfg.insts[inst].args[0];
                let rings = rings_of(func, value);
                let run = neighbours(func, axis, value).filter(|&run| run < 2);
                let Some(run) = run.filter(|_| !rings.is_empty()) else {
                    continue;
                };
                // Whole words come from anywhere in a ring without conflicts.
                let is_narrow = |&ring: &Slot| {
                    let buffer = func.buffers[ring];
                    buffer.is_some_and(|buffer| buffer.elem.bytes() < WORD)
                };
                if is_form(run) && !rings.iter().any(is_narrow) {
                    continue;
                }
                for &ring in &rings {
                    // A ring that units read, too, stands as they ask.
                    if let Some(run) = neighbours_in_ring(func, axis, ring)
                        && !units.contains_key(&ring)
                    {
                        self.places.0.insert(ring, Place::Along(run));
                    }
                }
                if is_form(run) {
                    self.offer_rows(node, shape, run, most);
                    continue;
                }
                let summed = 1 - run;
                let word = (WORD / bytes).clamp(1, share.max(1));
                let mut size = [1; 2];
                size[run] = (WIDEST / bytes).min((share / word).max(1));
                size[summed] = word;
                let order = [run, summed];
                if let Ok(layout) = tiled(shape, &[summed, run], &order, &size, self.num_warps) {
                    let layout = self.pool.intern(layout);
                    self.offer(node, layout);
                }
                continue;
            }
            for dim in [1, 0] {
                if is_form(dim) {
                    self.offer_rows(node, shape, dim, most);
                }
            }
        }
    }

    /// Offers each thread so many neighbours along a dimension, and threads side by side along it.
    fn offer_rows(&mut self, node: Node, shape: Shape, dim: usize, most: u32) {
        // The arguments are powers of two and a permutation, so nothing is refused.
        if let Ok(layout) = named::coalesced(shape, &[dim, 1 - dim], most, self.num_warps) {
            let layout = self.pool.intern(layout);
            self.offer(node, layout);
        }
    }
}

/// The rings of blocks from which a block is computed, element by element.
fn rings_of(func: &TileFunction, value: Value) -> SmallVec<[Slot; 2]> {
    let (mut found, mut pending) = (SmallVec::new(), vec![value]);
    let mut seen = EntitySet::new();
    while let Some(value) = pending.pop() {
        let def = func.dfg.def_inst(value);
        let Some(inst) = def.filter(|&inst| seen.insert(inst)) else {
            continue;
        };
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::SharedLoad => found.extend(data.slot().copied()),
            TileOp::Permute => pending.extend(&data.args),
            _ if data.class() == OpClass::Elementwise => pending.extend(&data.args),
            _ => {}
        }
    }
    found
}
