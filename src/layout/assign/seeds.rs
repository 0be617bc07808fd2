//! The layouts that loads, stores and atomic accesses like.
//!
//! Along the dimension in which addresses run on, a thread takes as many neighbours as one instruction can
//! carry ([`Axis::vector_width`]: alignment, runs of addresses, 16 or 32 bytes, runs of the mask), unless threads
//! would then be idle. Accesses of one shape and direction may be connected, and one layout for all of them
//! saves conversions: so each is also offered the widest of the others. That is how a block read as f16 and
//! used with one of f32 gets 8 elements a thread: 16 bytes of f16, and two accesses of f32.
//!
//! Where rows are reduced or scanned, a second form deals the warps to the other dimensions first, so that a
//! reduction or scan stays in one warp. Where another dimension is scanned, a second form gives each thread a run of
//! neighbours along it, so that what lanes and warps exchange are totals of runs; also where a vector stands along it, of which
//! each thread then reads a run; and where another access runs on along it, of the block or of the block turned, a run that makes a word
//! of narrow elements. Sums of products of repeated matrices, which no access shapes, may stay in threads.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Assignment;
use super::cost::{self, AccessShape};
use super::graph::{Need, Node};
use crate::analysis::atomic::widest_atomic;
use crate::analysis::axis::Axis;
use crate::analysis::neighbours::{divisors_of_strides, runs};
use crate::analysis::strides::{AllStrides, Strides};
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::{NARROWEST_COPY, matrix};
use crate::linear_layout::layout::{LOG2_LANES, LayoutError, LinearLayout};
use crate::linear_layout::named;
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// Largest copy of one thread to shared memory in bytes.
const WIDEST_COPY: u32 = 16;

/// Dimensions, the one along which addresses run on first.
type DimOrder = SmallVec<[usize; 4]>;

/// Most values between a load and the products of which it is a factor.
const MOST_COMPUTED: usize = 8;

/// An access to memory of a block.
struct Memory {
    node: Node,
    shape: Shape,
    order: DimOrder,
    /// Elements a thread takes at a time.
    per_thread: u32,
    /// Bytes of an element.
    bytes: u32,
}

impl Assignment {
    /// Offers accesses to memory what they like.
    pub(super) fn seed(&mut self, func: &TileFunction, axis: &Axis, target: Target) {
        let mut strides = AllStrides::new(func);
        let mut supposed = AllStrides::supposing_ones(func);
        let mut all = Vec::new();
        let mut row_reductions = Vec::new();
        let mut dots = Vec::new();
        let mut started = Vec::new();
        let mut runs = self.spread_vectors();
        let mut repeated = Vec::new();
        let multiplies = func
            .all_insts()
            .any(|(_, inst)| func.dfg.insts[inst].is_product());
        for (node, data) in &self.graph.nodes {
            if let Some(reduced) = data.reduced.or(data.scanned)
                && data.shape.rank() > 1
            {
                row_reductions.push((data.shape, usize::from(reduced)));
            }
            if let Some(reduced) = data.reduced
                && self.repeats_matrix(data.shape)
            {
                repeated.push((node, data.shape, usize::from(reduced)));
            }
            if let (Some(scanned), Some(inst)) = (data.scanned, data.inst) {
                let words = super::operand_bits(func, inst).div_ceil(32);
                runs.push((data.shape, usize::from(scanned), words));
            }
            if let Some(inst) = data.inst
                && func.dfg.insts[inst].op == TileOp::Dot
            {
                dots.push((node, data.shape, data.unit));
            }
            if let Some(inst) = data.inst
                && matches!(func.dfg.insts[inst].op, TileOp::DotStart | TileOp::DotDone)
            {
                started.push((node, data.shape));
            }
            let Some((ptr, mask)) = data.inst.and_then(|inst| pointers(func, inst)) else {
                continue;
            };
            let op = data.inst.map(|inst| func.dfg.insts[inst].op);
            let most = match data.inst {
                Some(inst) => widest_access(func, inst, target),
                None => target.widest_access(),
            };
            let mut moves = strides.of(ptr);
            let place = (ptr, mask, &moves);
            let (memory, access) = self.look_at(func, axis, node, op, place, most);
            if access.contiguity == 0 && !moves.iter().any(shares_line) {
                suppose(&mut moves, memory.shape, access.dim, &supposed.of(ptr));
            }
            let is_store = !matches!(op, Some(TileOp::Load | TileOp::AsyncCopy));
            let access = AccessShape {
                is_store,
                counts_lines: is_store && !multiplies && memory.shape.rank() > 1,
                looks_up: !is_store && (data.depth > 0 || !self.is_factor_alone(func, node)),
                strides: apart(&access, moves),
                ..access
            };
            self.accesses.insert(node, access);
            all.push(memory);
        }
        for (node, shape) in started {
            if let Some(layout) = self.sums.of(shape, self.num_warps) {
                let layout = self.pool.intern(layout);
                self.offer(node, layout);
            }
        }
        for (node, shape, unit) in dots {
            let Some(unit) = unit else {
                self.offer_squares(node, shape);
                continue;
            };
            for layout in matrix::accumulators(shape, unit, self.num_warps) {
                let layout = self.pool.intern(layout);
                self.offer(node, layout);
            }
        }
        for (node, shape, reduced) in repeated {
            self.offer_sums_in_threads(node, shape, reduced);
        }
        let directions = self.directions(&all);
        let mut widest: FxHashMap<(Shape, &[usize]), u32> = FxHashMap::default();
        for memory in &all {
            let width = widest.entry((memory.shape, &memory.order)).or_default();
            *width = memory.per_thread.max(*width);
        }
        for memory in &all {
            let widest = widest[&(memory.shape, &memory.order[..])];
            let reduces_rows = row_reductions.contains(&(memory.shape, memory.order[0]));
            for per_thread in [widest, memory.per_thread] {
                self.offer_coalesced(memory, per_thread, false);
                if reduces_rows {
                    self.offer_coalesced(memory, per_thread, true);
                }
            }
            for &(shape, axis, words) in &runs {
                if shape == memory.shape && axis != memory.order[0] {
                    self.offer_runs(memory, widest, axis, words);
                }
            }
            let is_load = !self.accesses[&memory.node].is_store;
            for &(shape, axis, bytes) in &directions {
                if is_load && shape == memory.shape && axis != memory.order[0] {
                    self.offer_words(memory, widest, axis, bytes);
                }
            }
        }
    }

    /// Whether a block is nothing but a factor of products, itself or by the few things that are computed of it element by element.
    fn is_factor_alone(&self, func: &TileFunction, node: Node) -> bool {
        let mut nodes: SmallVec<[Node; MOST_COMPUTED]> = SmallVec::from_elem(node, 1);
        let mut next = 0;
        while let Some(&node) = nodes.get(next) {
            next += 1;
            for &edge in &self.graph.nodes[node].edges {
                let edge = &self.graph.edges[edge as usize];
                if edge.from != node || edge.need.is_factor() || nodes.contains(&edge.to) {
                    continue;
                }
                let op = self.graph.nodes[edge.to]
                    .inst
                    .map(|inst| func.dfg.insts[inst].class());
                let is_computed = edge.need == Need::Same && op == Some(OpClass::Elementwise);
                if !is_computed || nodes.len() == MOST_COMPUTED {
                    return false;
                }
                nodes.push(edge.to);
            }
        }
        true
    }

    /// Offers a product of matrices squares of neighbours for each thread, which take the fewest operands.
    fn offer_squares(&mut self, node: Node, shape: Shape) {
        let rank = shape.rank();
        let threads = LOG2_LANES + self.num_warps.ilog2();
        let bits = shape.log2_elements().saturating_sub(threads);
        let mut size = vec![1; rank];
        size[rank - 1] = 1 << bits.div_ceil(2).min(2);
        size[rank - 2] = 1 << (bits / 2).min(2);
        let order: DimOrder = (0..rank).rev().collect();
        // The arguments are powers of two and a permutation, so nothing is refused.
        if let Ok(layout) = named::blocked(shape, &size, &order, self.num_warps) {
            let layout = self.pool.intern(layout);
            self.offer(node, layout);
        }
    }

    /// Whether a matrix is repeated over blocks of this shape: a product written as a sum of products.
    fn repeats_matrix(&self, shape: Shape) -> bool {
        self.graph.edges.iter().any(|edge| match edge.need {
            Need::BeforeBroadcast(from) => {
                let extents = (0..from.rank()).filter(|&dim| from.extent(dim) > 1);
                extents.count() > 1 && self.graph.nodes[edge.to].shape == shape
            }
            _ => false,
        })
    }

    /// Offers a sum of products that lanes and warps share what is kept, and that each thread adds up its own, alone or with the
    /// few lanes beside it.
    fn offer_sums_in_threads(&mut self, node: Node, shape: Shape, reduced: usize) {
        let kept = (0..shape.rank()).rev().filter(|&dim| dim != reduced);
        let order: DimOrder = kept.chain([reduced]).collect();
        let extent = shape.extent(reduced);
        for run in [extent, extent / 4, extent / 8] {
            let mut size = vec![1; shape.rank()];
            size[reduced] = run.max(1) as u32;
            let mut lanes = order.clone();
            if run < extent {
                lanes.rotate_right(1);
            }
            if let Ok(layout) = tiled(shape, &lanes, &order, &size, self.num_warps) {
                let layout = self.pool.intern(layout);
                self.offer(node, layout);
            }
        }
    }

    /// Along which dimension of blocks of a shape addresses run on in some access, be it one of the block turned, and the bytes of an
    /// element there.
    fn directions(&self, all: &[Memory]) -> Vec<(Shape, usize, u32)> {
        let mut found = Vec::new();
        let mut add = |shape: Shape, dim: usize, bytes: u32| {
            let entry = (shape, dim, bytes);
            if !found.contains(&entry) {
                found.push(entry);
            }
        };
        for memory in all {
            add(memory.shape, memory.order[0], memory.bytes);
        }
        for edge in &self.graph.edges {
            let Need::BeforePermute(dims) = edge.need else {
                continue;
            };
            let dims = dims.list();
            let [from, to] = [edge.from, edge.to].map(|node| self.graph.nodes[node].shape);
            for memory in all {
                if memory.shape == to {
                    add(from, dims[memory.order[0]], memory.bytes);
                }
                let turned = dims.iter().position(|&dim| dim == memory.order[0]);
                if let Some(dim) = turned.filter(|_| memory.shape == from) {
                    add(to, dim, memory.bytes);
                }
            }
        }
        found
    }

    /// Blocks over which loaded vectors are repeated, the dimension along which the vector stands, and its words for an element.
    fn spread_vectors(&self) -> Vec<(Shape, usize, u32)> {
        let mut found = Vec::new();
        for edge in &self.graph.edges {
            let Need::BeforeBroadcast(from) = edge.need else {
                continue;
            };
            let mut dims = (0..from.rank()).filter(|&dim| from.extent(dim) > 1);
            if let (Some(dim), None) = (dims.next(), dims.next()) {
                let entry = (self.graph.nodes[edge.to].shape, dim, 1);
                if !found.contains(&entry) {
                    found.push(entry);
                }
            }
        }
        found
    }

    fn look_at(
        &self,
        func: &TileFunction,
        axis: &Axis,
        node: Node,
        op: Option<TileOp>,
        (ptr, mask, strides): (Value, Option<Value>, &Strides),
        most: u32,
    ) -> (Memory, AccessShape) {
        let shape = func.dfg.ty(ptr).shape;
        let mut order: DimOrder = (0..shape.rank()).rev().collect();
        let lengths: SmallVec<[u8; 4]> = (0..shape.rank())
            .map(|dim| runs(func, axis, ptr, dim))
            .collect();
        // Stable: dimensions of equal contiguity keep the last one first, but for one whose elements share lines or seem to be nearer.
        let key = |dim: usize| {
            let first = strides.get(shape.bit_offset(dim) as usize);
            let is_far = lengths[dim] > 0 || !first.is_some_and(shares_line);
            (std::cmp::Reverse(lengths[dim]), is_far)
        };
        order.sort_by_key(|&dim| key(dim));
        if order.len() > 1 && key(order[0]) == key(order[1]) {
            let divisors = divisors_of_strides(func, axis, ptr);
            order.sort_by_key(|&dim| (key(dim), divisors[dim]));
        }
        let dim = order[0];
        // Whatever the layout is in the end, what accesses along any dimension rest on has been asked for.
        let width = |dim: usize| {
            // Of copies, too: those that end with their rows at the latest need no size.
            let whole = axis.vector_width(func, ptr, mask, dim, most);
            match op {
                Some(TileOp::AsyncCopy) => axis.copy_width(func, ptr, mask, dim, most),
                _ => whole,
            }
        };
        let widths: SmallVec<[u64; 4]> = (0..shape.rank()).map(width).collect();
        let vector = widths[dim] as u32;
        let threads = 32 * u64::from(self.num_warps);
        let bytes = func.dfg.ty(ptr).elem.pointee().map_or(1, |s| s.bytes());
        // Less than a word is not copied: the thread would load and store it, and wait in between.
        let least = match op {
            Some(TileOp::AsyncCopy) => (NARROWEST_COPY / bytes).max(1),
            _ => 1,
        };
        let share = (shape.elements() as u64 / threads).max(u64::from(least));
        let access = AccessShape {
            dim,
            vector,
            contiguity: u32::from(lengths[dim]),
            bytes,
            is_store: false,
            counts_lines: false,
            looks_up: false,
            strides: None,
        };
        let memory = Memory {
            node,
            shape,
            order,
            per_thread: u64::from(vector).min(share) as u32,
            bytes: access.bytes,
        };
        (memory, access)
    }

    /// Lanes along the direction of addresses, and what each thread holds beside one access along `axis`, as far as it can hold
    /// it until the threads have exchanged totals, `words` words for each element.
    fn offer_runs(&mut self, memory: &Memory, per_thread: u32, axis: usize, words: u32) {
        let shape = memory.shape;
        let threads = 32 * u64::from(self.num_warps);
        let share = shape.elements() as u64 / threads / u64::from(per_thread);
        let mut run = share.clamp(1, shape.extent(axis));
        while run > 1 && run * u64::from(per_thread * words) > cost::MOST_LIVE {
            run /= 2;
        }
        let mut size = vec![1; shape.rank()];
        size[memory.order[0]] = per_thread;
        size[axis] = run as u32;
        if let Ok(layout) = tiled(shape, &memory.order, &memory.order, &size, self.num_warps) {
            let layout = self.pool.intern(layout);
            self.offer(memory.node, layout);
        }
    }

    /// Offers a load what makes a word along `axis` beside what a thread takes at a time, as far as the thread has room for it: where
    /// elements of fewer than four bytes go to an access along `axis`, a conversion then moves words, and not element by element.
    fn offer_words(&mut self, memory: &Memory, per_thread: u32, axis: usize, bytes: u32) {
        let shape = memory.shape;
        let threads = 32 * u64::from(self.num_warps);
        let share = shape.elements() as u64 / threads / u64::from(per_thread);
        let run = u64::from(4 / bytes.min(memory.bytes).clamp(1, 4));
        let run = run.min(shape.extent(axis)).min(share);
        if run < 2 {
            return;
        }
        let mut size = vec![1; shape.rank()];
        size[memory.order[0]] = per_thread;
        size[axis] = run as u32;
        if let Ok(layout) = tiled(shape, &memory.order, &memory.order, &size, self.num_warps) {
            let layout = self.pool.intern(layout);
            self.offer(memory.node, layout);
        }
    }

    fn offer_coalesced(&mut self, memory: &Memory, per_thread: u32, warps_on_rows: bool) {
        let made = if warps_on_rows {
            warps_on_other_dims(memory.shape, &memory.order, per_thread, self.num_warps)
        } else {
            named::coalesced(memory.shape, &memory.order, per_thread, self.num_warps)
        };
        // The arguments are powers of two and a permutation, so nothing is refused.
        if let Ok(layout) = made {
            let layout = self.pool.intern(layout);
            self.offer(memory.node, layout);
        }
    }
}

/// The distances between an access's elements, if they are not side by side and some share a line all the same.
fn apart(access: &AccessShape, strides: Strides) -> Option<Strides> {
    let is_apart = access.bytes << access.contiguity < cost::SECTOR_BYTES;
    (is_apart && strides.iter().any(shares_line)).then_some(strides)
}

/// Takes the distances along a dimension whose stride is not known to be those of neighbours: of all dimensions it is the one that seems
/// to be nearest, and the arguments of most launches are tensors whose elements are side by side along one.
fn suppose(moves: &mut Strides, shape: Shape, dim: usize, supposed: &Strides) {
    let start = shape.bit_offset(dim) as usize;
    for bit in start..start + usize::from(shape.log2()[dim]) {
        moves[bit] = moves[bit].or(supposed[bit]);
    }
}

/// Whether elements of this distance, in bytes, share a line.
fn shares_line(by: &Option<i64>) -> bool {
    by.is_some_and(|by| by != 0 && by.unsigned_abs() < u64::from(cost::LINE_BYTES))
}

/// Pointers and mask of an access to memory.
fn pointers(func: &TileFunction, inst: Inst) -> Option<(Value, Option<Value>)> {
    let data = &func.dfg.insts[inst];
    match data.op {
        TileOp::Load => Some((data.args[0], data.args.get(1).copied())),
        TileOp::AsyncCopy => Some((data.args[0], data.args.get(2).copied())),
        TileOp::Store | TileOp::AtomicRmw => Some((data.args[0], data.args.get(2).copied())),
        TileOp::AtomicCas => Some((data.args[0], None)),
        _ => None,
    }
}

/// Most bytes that one instruction of a thread accesses.
fn widest_access(func: &TileFunction, inst: Inst, target: Target) -> u32 {
    let data = &func.dfg.insts[inst];
    let elem = data
        .args
        .first()
        .and_then(|&ptr| func.dfg.ty(ptr).elem.pointee());
    match (data.op, elem) {
        (TileOp::AtomicRmw, Some(scalar)) => widest_atomic(data.rmw().copied(), scalar, target),
        (TileOp::AtomicCas, Some(scalar)) => scalar.bytes(),
        (TileOp::AsyncCopy, _) => WIDEST_COPY,
        _ => target.widest_access(),
    }
}

/// Lanes along the first dimension of `order`, warps along the others as far as they reach.
fn warps_on_other_dims(
    shape: Shape,
    order: &[usize],
    per_thread: u32,
    num_warps: u32,
) -> Result<LinearLayout, LayoutError> {
    let mut size = vec![1; shape.rank()];
    size[order[0]] = per_thread;
    let warp_order: DimOrder = order[1..].iter().chain(&order[..1]).copied().collect();
    tiled(shape, order, &warp_order, &size, num_warps)
}

/// `size` elements for each thread, lanes along the dimensions of `order` and warps along those of `warp_order`, as far as they
/// reach.
pub(super) fn tiled(
    shape: Shape,
    order: &[usize],
    warp_order: &[usize],
    size: &[u32],
    num_warps: u32,
) -> Result<LinearLayout, LayoutError> {
    let mut lanes = vec![1; shape.rank()];
    let mut warps = vec![1; shape.rank()];
    let extents = shape.log2().iter().zip(size);
    let mut left: Vec<u32> = extents
        .map(|(&e, n)| u32::from(e).saturating_sub(n.trailing_zeros()))
        .collect();
    let mut lane_bits = LOG2_LANES;
    for &dim in order {
        let bits = left[dim].min(lane_bits);
        lanes[dim] = 1 << bits;
        left[dim] -= bits;
        lane_bits -= bits;
    }
    let mut warp_bits = num_warps.trailing_zeros();
    for &dim in warp_order {
        let bits = left[dim].min(warp_bits);
        warps[dim] = 1 << bits;
        warp_bits -= bits;
    }
    // Lanes and warps beyond the block hold copies.
    lanes[order[0]] <<= lane_bits;
    warps[order[0]] <<= warp_bits;
    named::blocked_tile(shape, size, &lanes, &warps, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_warps_beyond_the_block_hold_copies() {
        for extents in [[1, 1], [2, 8], [2, 32], [8, 64]] {
            let shape = Shape::new(&extents).expect("powers of two");
            let layout = warps_on_other_dims(shape, &[1, 0], 1, 4).expect("every shape has one");
            assert_eq!((layout.num_lanes(), layout.num_warps()), (32, 4));
            let held = extents.iter().product::<u64>().div_ceil(32 * 4);
            assert_eq!(u64::from(layout.num_registers()), held, "{extents:?}");
        }
    }
}
