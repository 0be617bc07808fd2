//! Software pipelines: loads that feed products of matrices become copies to shared memory, some iterations ahead.
//!
//! ```text
//! for i in 0..n {                     copy(0); commit -> t1; copy(1); commit -> t2      (where there are such iterations)
//!     x = load p(i)                   for i in 0..n carrying t1, t2 {
//!     acc = dot x, .., acc     =>         wait t1; copy(i + 2) to the entry read last; commit -> t
//! }                                       x = shared_load(i mod 3); acc = dot x, .., acc
//!                                         yield t2, t
//!                                     }
//!                                     wait t1, t2
//! ```
//!
//! A pipeline of S stages has a ring of S entries for each load, S - 1 iterations in flight, and no code of its own for the
//! first and the last iterations: copies of iterations that do not exist are masked off, and zeros arrive instead. What the
//! addresses and masks of the loads are computed from (their slice) runs ahead: before the loop for the first iterations, and
//! inside of it on carried values of its own. Loads in there, of a table's entries say, run one iteration further ahead, so that
//! no copy waits for one. Which group a wait means follows from the distance of its token.
//!
//! Where a row ends inside of a copy, the copy reads up to there ([`Axis::copy_width`]), so that rows may have any length. What
//! copies cannot move, 4 bytes or more at a time, goes through registers: an iteration loads what a later one needs when it
//! begins, and stores it to the entry of the ring when it ends; a few bytes for each thread the next iteration stores before it loads, as a load from
//! memory takes longer than an iteration may. (An H200: products of weights of four bits waited a fifth of their time for the scales of
//! later iterations.) Where nothing can be copied, as on targets without copies, that
//! is the next iteration and a ring of two. A load for which registers are short stays where it is.
//!
//! A loop is pipelined if it is innermost and has `stages` above 1 ([`DEFAULT_STAGES`] if it says nothing). A load takes part if
//! a product of matrices uses it through ops on elements and changes of shape, and if its slice has no effects; so does one of a few
//! bytes for each thread that meets sums alone, from memory that nothing in the kernel writes, where operands are copied, too. (Decays of gated linear
//! attention: an H200 took 33.8 us instead of 69.8. Where boxes alone are brought, which the threads wait for at no barrier, scales of 8-bit floats
//! took 139 us instead of 107.) There are fewer stages where shared memory is short.
//!
//! A loop without products is pipelined where it asks for stages itself: each thread has loads in flight anyway, and a ring
//! takes shared memory from other CTAs, so that more of them are better only if few warps run at once. Loads take part there
//! that copies can move, some bytes for each thread, from memory that nothing in the kernel writes.
//!
//! Where warpgroups multiply ([`crate::tile::start_dots`]), copies start behind the first products, as many as start one after the other: they
//! go on while those of the iteration before are waited for, whose entry the copies fill, and while the barrier between the two is passed. (An H200,
//! scales for groups of 128: behind the first one alone, of two, 339 us instead of 296. Of two stages copies have no time to lose: derivatives of
//! attention took 4 to 13 % more behind both of their first products.)
//!
//! A ring has an entry less where an SM then holds many more warps at once, as of small tiles, or one and a half times as many where there are few: copies go
//! to the entry that was just read, so they start behind the products, and a second barrier stands before them.
//!
//! ```text
//! for i in 0..n carrying t1, t2 {
//!     wait t1; x = shared_load(i mod 2); acc = dot x, .., acc
//!     copy(i + 2) to the entry read; commit -> t
//!     yield t2, t
//! }
//! ```
//!
//! A loop that is known to run fewer times than it has stages has an entry for each iteration: all copies start in front of it, and its
//! iterations start none.

mod rewrite;
mod slice;
#[cfg(test)]
mod tests;

use std::cell::LazyCell;

use cranelift_entity::EntitySet;

use crate::analysis::axis::Axis;
use crate::analysis::constants::iterations;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, MemOrder, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::layout::NARROWEST_COPY;
use crate::settings::diversity::Choices;
use crate::settings::{Target, Usage};
use crate::tile::edit::signed;
use crate::tile::promote::used::Used;
use crate::tile::resources::ResourcePlan;
use crate::tile::share_operands::registers_needed;
use crate::tile::start_dots;
use rewrite::Pipeliner;
use slice::{Ahead, Slice};

/// Stages of loops that say nothing.
pub const DEFAULT_STAGES: u8 = 3;

/// Most stages.
pub(super) const MAX_STAGES: u32 = 8;

/// Most bytes for each thread that registers keep for an iteration more.
const HELD_BYTES: u32 = 8;

/// Warps by which an SM must hold more for an entry less, so that they hide more than a second barrier costs.
const MORE_WARPS: u32 = 8;

/// Warps of an SM that leave its schedulers with nothing to do while they wait: one and a half times as many pay for an entry less, too. (A state of
/// linear attention in blocks of 64 x 32, 2 warps, 3 stages: an SM has room for one of 119 KB, and for two of 82 KB. Attention over 64
/// compressed keys on one warp: for two of 98 KB, and three of 66 KB.)
const FEW_WARPS: u32 = 4;

/// Gives loops of products that state no number of stages this one.
pub(crate) fn set_stages(func: &mut TileFunction, stages: u8) {
    let loops = func.all_insts().map(|(_, inst)| inst);
    let silent = loops.filter(|&inst| {
        let data = &func.dfg.insts[inst];
        data.op.is_loop() && data.stages().is_none() && {
            let mut regions = func.regions(inst);
            regions.any(|body| func.any_inside(body, &InstData::is_product))
        }
    });
    for inst in silent.collect::<Vec<Inst>>() {
        func.dfg.insts[inst].attrs.push(make::stages(stages));
    }
}

/// What was pipelined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pipelined {
    /// Number of loops.
    pub loops: usize,
    /// Of the loops that say how many stages they want and do not get them, the one that asks for most.
    pub cut: Option<CutStages>,
}

/// Stages of a loop that shared memory has too little room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CutStages {
    /// Stages it asks for.
    pub asked: u32,
    /// Stages it has.
    pub used: u32,
}

/// Pipelines loops as far as the `resources` reach. `axis` was computed for the function as it is.
/// Other `choices` change the number of stages and the way.
pub fn pipeline_loops(
    func: &mut TileFunction,
    axis: &Axis,
    target: Target,
    resources: &ResourcePlan,
    mut choices: Choices,
) -> Pipelined {
    let loops: Vec<(Block, Inst)> = func.insts_with(TileOp::For).collect();
    let buffers = func.buffers.values().flatten();
    let taken: u32 = buffers.map(|b| b.stage_bytes() * b.stages).sum();
    let room = target
        .shared_limit()
        .saturating_sub(taken)
        .saturating_sub(resources.reserved);
    let order = ProgramOrder::compute(func);
    let outwards = |func: &TileFunction, inst| -> Vec<Inst> {
        std::iter::successors(Some(inst), |&inst| order.parent(func, inst)).collect()
    };
    let nests: Vec<Vec<Inst>> = loops
        .iter()
        .map(|&(_, inst)| outwards(func, inst))
        .collect();
    let mut found = Pipelined::default();
    let mut bytes = vec![0; loops.len()];
    for (at, &(block, inst)) in loops.iter().enumerate() {
        // Rings of loops that follow each other share their bytes, but not in a loop around both: there they live on.
        let is_beside = |&other: &usize| {
            let mut around = nests[at].iter().filter(|it| nests[other].contains(it));
            around.any(|&it| func.dfg.insts[it].op.is_loop())
        };
        let beside = (0..loops.len()).filter(is_beside).map(|other| bytes[other]);
        let room = room.saturating_sub(beside.sum());
        let room_of = (target, room, resources.warpgroup_units);
        if let Some(plan) = plan(func, axis, inst, room_of, &mut found.cut, &mut choices) {
            bytes[at] = plan.loads.iter().map(|l| l.bytes * plan.entries).sum();
            Pipeliner::new(func, plan).run(block, inst);
            found.loops += 1;
        }
    }
    found
}

/// A load that reads from a ring.
struct Load {
    inst: Inst,
    ty: TileType,
    /// Bytes of a block.
    bytes: u32,
    way: Way,
}

/// How a block comes to its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each thread copies some of it.
    Copied,
    /// Through registers.
    Staged,
    /// Through registers, which keep it for an iteration more.
    Held,
    /// The copy engine brings a box of a tensor.
    Box,
}

impl Load {
    fn new(func: &TileFunction, inst: Inst, way: Way) -> Load {
        let ty = func.dfg.ty(func.dfg.insts[inst].results[0]);
        let bytes = ty.bytes();
        Load {
            inst,
            ty,
            bytes,
            way,
        }
    }
}

/// What becomes of a loop.
struct Plan {
    body: Block,
    loads: Vec<Load>,
    /// One more than the iterations under way.
    stages: u32,
    /// Entries of the rings: as many, or one less, so that copies wait for the readers of their iteration.
    entries: u32,
    /// Whether no iteration starts a later one, as all are started before the first.
    starts_all: bool,
    /// Whether warpgroups multiply.
    is_for_warpgroup: bool,
    /// The loop's step, if it is known.
    step: Option<i64>,
    /// What runs ahead as far as the loads do.
    near: Ahead,
    /// What runs one iteration further ahead, the slices of `tables`.
    far: Ahead,
    /// Loads that slices need, in order.
    tables: Vec<Inst>,
}

/// The loop's pipeline, if there is to be one within so many bytes of shared memory; `cut` learns of it if that makes stages fewer.
fn plan(
    func: &TileFunction,
    axis: &Axis,
    inst: Inst,
    (target, room, warpgroup_units): (Target, u32, bool),
    cut: &mut Option<CutStages>,
    choices: &mut Choices,
) -> Option<Plan> {
    let data = &func.dfg.insts[inst];
    let body = data.blocks.first()?.block;
    let stages = match choices.chance(50) {
        true => 1 + choices.below(5) as u32,
        false => u32::from(data.stages().copied().unwrap_or(DEFAULT_STAGES)).min(MAX_STAGES),
    };
    if stages < 2 {
        return None;
    }
    let insts = func.order.insts(body);
    if !insts.iter().all(|&i| may_stand(func, i)) {
        return None;
    }
    let step = signed(func, data.args[2]);
    if step.is_some_and(|step| step < 1) {
        return None;
    }
    let is_asked = data.stages().is_some() && !func.any_inside(body, &InstData::is_product);
    let feeding = feeding(func, body);
    let no_copies = target.sm < 80 || choices.chance(15);
    let is_for_warpgroup = warpgroup_units
        && insts
            .iter()
            .any(|&i| start_dots::is_for_warpgroup(func, i, target));
    let settled = LazyCell::new(|| (Used::compute(func), ProgramOrder::compute(func)));
    let finds_the_same = |load: &Load| settled.0.is_settled(func, &settled.1, load.inst);
    let a_copy_each = NARROWEST_COPY * func.num_threads();
    let pays_asked = |load: &Load| {
        load.way == Way::Copied && !no_copies && a_copy_each <= load.bytes && finds_the_same(load)
    };
    // What meets sums, as scales do, is waited for at the end of an iteration, and by all of it in rings of hardly any bytes.
    let pays_beside = |load: &Load| {
        let is_few = load.bytes <= a_copy_each;
        load.way == Way::Copied && !no_copies && is_few && finds_the_same(load)
    };
    let mut loads = Vec::new();
    let mut slice = Slice::new(func, body);
    let needed = registers_needed(func, body);
    let mut left = Target::most_registers(func.num_threads()).saturating_sub(needed);
    for &inst in insts {
        let load = &func.dfg.insts[inst];
        let feeds = load.results.iter().any(|&v| feeding.contains(v));
        let found = match load.op {
            TileOp::Load if is_asked => as_copy(func, axis, inst).filter(pays_asked),
            TileOp::Load if feeds => as_copy(func, axis, inst),
            TileOp::TensorLoad => Some(Load::new(func, inst, Way::Box)),
            _ => None,
        };
        let Some(mut found) = found else {
            continue;
        };
        // What copies cannot move are elements of a register each, and pointers to some of them.
        let registers = 2 * (found.ty.shape.elements() as u32).div_ceil(func.num_threads());
        // One thread copies for several, and all wait for it: that takes longer than what arrives while a unit multiplies, but less than
        // what takes several iterations to arrive.
        let is_few = found.bytes < a_copy_each;
        if is_for_warpgroup && found.way == Way::Copied && is_few && stages == 2 {
            found.way = Way::Staged;
        }
        if found.way == Way::Staged && !no_copies {
            match left.checked_sub(registers) {
                Some(rest) => left = rest,
                None => continue,
            }
        }
        if found.way == Way::Copied && (no_copies || choices.chance(15)) {
            found.way = Way::Staged;
        }
        let mut with = slice.clone();
        if load.args.iter().all(|&arg| with.add(arg)) && with.tables().is_some() {
            slice = with;
            loads.push(found);
        }
    }
    let has_company = stages > 2 && loads.iter().any(|load| load.way == Way::Copied);
    for &inst in insts.iter().filter(|_| has_company) {
        let load = &func.dfg.insts[inst];
        let is_other = load.op == TileOp::Load && !feeding.contains(load.results[0]);
        let found = match is_other && !is_asked {
            true => as_copy(func, axis, inst).filter(pays_beside),
            false => None,
        };
        let Some(found) = found else {
            continue;
        };
        let mut with = slice.clone();
        let runs_ahead = load.args.iter().all(|&arg| with.add(arg));
        // What addresses are computed from is loaded ahead of the rest, and read there alone.
        let is_table = |(tables, _): (Vec<Inst>, _)| {
            let mut all = loads.iter().map(|load: &Load| load.inst).chain([inst]);
            all.any(|inst| tables.contains(&inst))
        };
        if runs_ahead && !with.tables().is_none_or(is_table) {
            slice = with;
            loads.push(found);
        }
    }
    let all_staged = loads.iter().all(|load| load.way == Way::Staged);
    let wanted = if all_staged { 2 } else { stages };
    let bytes_of_stage: u32 = loads.iter().map(|load| load.bytes).sum();
    let fit = room.checked_div(bytes_of_stage)?;
    let count = iterations(func, inst).and_then(|count| u32::try_from(count).ok());
    let count = count.filter(|&count| 1 < count && count < wanted);
    if fit < count.unwrap_or(wanted) && data.stages().is_some() {
        let (asked, used) = (stages, fit.max(1));
        *cut = (*cut).max(Some(CutStages { asked, used }));
    }
    let count = count.filter(|&count| count <= fit && !choices.chance(25));
    let stages = count.map_or(wanted.min(fit), |count| count + 1);
    let can_lack =
        !is_for_warpgroup && stages > 2 && loads.iter().all(|load| load.way == Way::Copied);
    let scratch = scratch(func, body, &loads);
    // Warps that an SM holds, by their registers and shared memory.
    let resident = |entries: u32| {
        let usage = Usage {
            threads: func.num_threads(),
            registers: needed,
            shared: target.shared_limit() - room + entries * bytes_of_stage + scratch,
        };
        target.resident(usage) * func.num_warps()
    };
    let pays = || {
        let (now, then) = (resident(stages), resident(stages - 1));
        now + MORE_WARPS <= then || (1..=FEW_WARPS).contains(&now) && 3 * now <= 2 * then
    };
    let lacks = count.is_some() || can_lack && (pays() || choices.chance(25));
    let entries = stages - u32::from(lacks);
    let fits = i64::from(stages).checked_mul(step.unwrap_or(1))? <= i64::from(i32::MAX);
    if stages < 2 || !fits {
        return None;
    }
    // What an iteration stores is read two iterations later at the earliest.
    if stages > 2 && entries == stages {
        let few = |load: &&mut Load| {
            load.way == Way::Staged && load.bytes <= HELD_BYTES * func.num_threads()
        };
        let held = loads.iter_mut().filter(few);
        held.for_each(|load| load.way = Way::Held);
    }
    let (tables, far) = slice.tables()?;
    Some(Plan {
        body,
        loads,
        stages,
        entries,
        starts_all: count.is_some(),
        is_for_warpgroup,
        step,
        near: slice.ahead(),
        far: far.ahead(),
        tables,
    })
}

/// Bytes of shared memory by which factors of products go from thread to thread that the loop computes, as far as that is known before
/// there are layouts: those of the largest one.
fn scratch(func: &TileFunction, body: Block, loads: &[Load]) -> u32 {
    let is_computed = |&value: &Value| {
        let mut value = value;
        while let Some(inst) = func.dfg.def_inst(value) {
            let data = &func.dfg.insts[inst];
            if loads.iter().any(|load| load.inst == inst) {
                return false;
            }
            match (data.class(), data.args.first()) {
                (OpClass::Shape, Some(&whole)) => value = whole,
                _ => break,
            }
        }
        true
    };
    let insts = func.order.insts(body).iter();
    let products = insts.filter(|&&inst| func.dfg.insts[inst].op == TileOp::Dot);
    let factors = products.flat_map(|&inst| &func.dfg.insts[inst].args[..2]);
    let computed = factors.filter(|value| is_computed(value));
    computed.map(|&v| func.dfg.ty(v).bytes()).max().unwrap_or(0)
}

/// Whether a loop with the instruction in it can be pipelined: it is no loop, and nothing in it orders accesses to memory. Of
/// atomic steps those on a scalar do, unless they are relaxed; what those on a block order lies beyond the nearest barriers,
/// and there are none in the loop.
fn may_stand(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let is_ordered = match data.op {
        TileOp::For | TileOp::While => true,
        TileOp::AtomicRmw | TileOp::AtomicCas => {
            let is_relaxed = data.sem() == Some(&MemOrder::Relaxed);
            func.dfg.ty(data.args[0]).is_scalar() && !is_relaxed
        }
        _ => data.orders_memory(),
    };
    let inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    !is_ordered && inner.into_iter().all(|&inst| may_stand(func, inst))
}

/// Values of the body that products of matrices are made of, in its own iteration or the next one, through ops on elements and changes
/// of shape: of a loop that was turned ([`crate::tile::rotate_loops`]) operands arrive from the iteration before. What a product that is
/// among them begins its sums with is one, too.
fn feeding(func: &TileFunction, body: Block) -> EntitySet<Value> {
    let mut found = EntitySet::new();
    let carried = func.dfg.blocks[body].params.iter().skip(1);
    let last = func.order.last(body).map(|last| &func.dfg.insts[last].args);
    loop {
        for &inst in func.order.insts(body).iter().rev() {
            let data = &func.dfg.insts[inst];
            let is_used = data.results.iter().any(|&v| found.contains(v));
            if data.op == TileOp::Dot {
                let operands = if is_used { 3 } else { 2 };
                found.extend(data.args.iter().take(operands).copied());
            } else if is_used && data.is_pure() {
                found.extend(data.args.iter().copied());
            }
        }
        let yields = last.into_iter().flatten();
        let pairs = carried.clone().zip(yields);
        let earlier =
            pairs.filter(|&(param, next)| found.contains(*param) && !found.contains(*next));
        let earlier: Vec<Value> = earlier.map(|(_, &next)| next).collect();
        if earlier.is_empty() {
            return found;
        }
        found.extend(earlier);
    }
}

/// The load as a copy, or by way of registers if copies cannot move it, if it can be one.
fn as_copy(func: &TileFunction, axis: &Axis, inst: Inst) -> Option<Load> {
    let data = &func.dfg.insts[inst];
    let ty = func.dfg.ty(data.results[0]);
    if ty.is_scalar() || data.volatile().is_some() || ty.elem.bits() < 8 {
        return None;
    }
    let (ptr, mask) = (data.args[0], data.args.get(1).copied());
    let bytes = ty.bytes();
    // A copy that ends inside of its bytes is one thread's; of what is less for each thread, several hold copies.
    let may_end = bytes >= NARROWEST_COPY * func.num_threads();
    let width = |dim: usize| match may_end {
        true => axis.copy_width(func, ptr, mask, dim, NARROWEST_COPY),
        false => axis.vector_width(func, ptr, mask, dim, NARROWEST_COPY),
    };
    let widest = (0..ty.shape.rank()).map(width).max()? as u32;
    let way = match widest * ty.elem.bytes() < NARROWEST_COPY {
        true => Way::Staged,
        false => Way::Copied,
    };
    Some(Load::new(func, inst, way))
}

/// Whether copies can bring what is loaded, and zeros in place of what is masked off.
pub(super) fn is_copied(func: &TileFunction, axis: &Axis, inst: Inst) -> bool {
    let other = func.dfg.insts[inst].args.get(2);
    let is_zero = other.is_none_or(|&other| uniform_bits(func, other) == Some(0));
    is_zero && as_copy(func, axis, inst).is_some_and(|load| load.way == Way::Copied)
}

/// The bits in every element of a block.
fn uniform_bits(func: &TileFunction, value: Value) -> Option<u64> {
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    match data.op {
        TileOp::Const => data.value().copied(),
        TileOp::Splat | TileOp::Broadcast => uniform_bits(func, data.args[0]),
        _ => None,
    }
}
