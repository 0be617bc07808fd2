//! Loads and stores through tensor maps in the place of those by pointers.
//!
//! ```text
//! p = a + m * stride_a + k;                 map = tensor_map a, cond, M, K, stride_a {values = [128, 64]}
//! x = load p, k < K - i * 64           =>   x = tensor_load map, row, i * 64
//! ```
//!
//! The copy engine of Hopper fetches a box of a tensor with one instruction of one thread: no addresses, no masks. Kernels that
//! were written with pointers have tensors, too, in the sums that their addresses are ([`crate::analysis::affine`]): a
//! dimension for each index of the block with its stride, one of stride 1 among them, and further ones, of which a box has one
//! index, for what differs by program or iteration with a stride of its own. Loads that feed products of warpgroups in loops
//! become boxes of them, where all of this is proved, or left to the launcher to check (`cond` of `tensor_map`):
//!
//! - **Bounds.** The mask is a conjunction of upper bounds `index < E`, in any form (`k < K - i * BK`, `i * BK + k < K`,
//!   `k < left`): then `E`, which the launcher must know, is the extent. So is it where the index is `x % E` and elements
//!   with `x >= E` do not matter ([`crate::analysis::demand`]): their rows read as zeros. What has no bound is read whole, as the
//!   kernel reads it, and any extent that covers it does. Fill values are zeros.
//! - **Starts.** Coordinates are not negative (the box would have zeros there), or the mask says `0 <= index`. The innermost one
//!   is a multiple of 16 bytes, as are base and strides: known by divisibility alone.
//! - **Wrap.** Addresses and bounds in i32 arithmetic are those of the integers in all programs of a launch that meets the
//!   condition.
//! - **Memory.** The kernel does not write through the parameter, nor through pointers of unknown origin, nor does it wait
//!   for what other programs write before it reads. Two parameters may be given one buffer: no barrier of the author stands between
//!   a store through any of them and the load, or the engine might not see what was stored.
//!
//! Maps of some kernels, the outermost dimension first (extents; strides; box):
//!
//! | kernel | load | extents | strides | box |
//! |---|---|---|---|---|
//! | `matmul` of `examples/kernels`, 128 x 256 x 64 | `a` | `M, K` | `stride_a` | 128, 64 |
//! | | `b` | `K, N` | `stride_bk` | 64, 256 |
//! | `batched_matmul` | `x` | any, `M, K` | `M * K, K` | 1, 128, 64 |
//! | | `weight` | any, `N, K` | `N * K, K` | 1, 128, 64 |
//! | tutorial 03 of Triton | `a` | `M, K` | `stride_am` | as `matmul` |
//! | | `b` | `K, N` | `stride_bk` | |
//! | `forward` of `attention.py`, and tutorial 06 | `k`, `v` | any, `D` | `D` | BN, D |
//!
//! "Any" is 2^31 - 1: attention's head `h` starts at row `h * N`. Accesses that differ by a number of rows or columns
//! in where they start may share a map (`maps`): both loops of attention's derivatives that mask have the same four.
//!
//! **Stores** of what products of warpgroups make, in loops or not, become boxes by the same analysis, and what is not in the tensor is
//! not written. So the mask must say exactly what the extents do: an index with a bound has that one as its extent, and one
//! without is written whole, as the kernel writes it. No index wraps around, rows of a box do not overlap (a condition), and what
//! is stored is read by nobody else in the kernel, nor are there other stores to the tensor by pointers. They pay from 2 KB on: the
//! sums leave the registers by `stmatrix` without conflicts of banks, where threads would exchange them through shared memory
//! and read them back for wide stores, and compute an address and a mask for each of those; and the threads are free while the
//! engine writes. So do sums of this with memory (`atomic_add`) that order nothing. Stores of other kernels have their elements in the order of memory already, which the engine would
//! only take a detour through shared memory to write.

mod maps;
mod nothing;
mod plan;
mod refusal;
mod rewrite;
mod sums;
pub(crate) mod used;
mod words;

#[cfg(test)]
mod tests;

use rustc_hash::{FxHashMap, FxHashSet};

pub use self::nothing::nothing_to_promote;
use self::plan::Facts;
use self::refusal::Refused;
pub use self::refusal::{AccessOp, Promotion, Refusal};
use self::rewrite::Planned;
use self::used::Used;
use super::resources::ResourcePlan;
use super::start_dots::is_for_warpgroup;
use crate::analysis::affine::Forms;
use crate::analysis::affine::host::Hosts;
use crate::analysis::axis::Axis;
use crate::analysis::demand::Demand;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;
use crate::settings::Target;

/// How many programs a CTA is to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// One; what it reads in front of its loops stays a load by pointers.
    One,
    /// One after the other, so that what the next one reads first can come while this one is executed.
    Several,
}

/// Makes loads that feed products of warpgroups in loops ones of tensor maps, and as far as resources allow stores of what these
/// make; says of each what became of it.
pub fn promote(
    func: &mut TileFunction,
    target: Target,
    programs: Programs,
    resources: &ResourcePlan,
) -> Vec<Promotion> {
    let loads = candidates(func, target, programs);
    let (stores, transposed) = match resources.stored_boxes {
        true => sums::stores(func, &ProgramOrder::compute(func), target),
        false => Default::default(),
    };
    if loads.is_empty() && stores.is_empty() {
        return Vec::new();
    }
    let stores = stores.into_iter().map(|store| (store, None));
    let mut hosts = Hosts::default();
    let mut judged = Vec::new();
    {
        let func = &*func;
        let order = ProgramOrder::compute(func);
        let mut forms = Forms::new(func, &order);
        let mut whole = Forms::of_whole_numbers(func, &order);
        let facts = Facts {
            func,
            axis: &Axis::compute(func),
            demand: &Demand::compute(func, &order, &mut forms),
            used: &Used::compute(func),
            order: &order,
            added: &sums::with_memory(func, &order),
        };
        for (access, summed) in loads.into_iter().chain(stores) {
            let mut judge = |forms: &mut _, access| {
                judge(&facts, forms, &mut hosts, (access, summed), &transposed)
            };
            let plan = judge(&mut forms, access);
            // Of what is checked on both sides it does not matter how its start was computed.
            let is_load = func.dfg.insts[access].op == TileOp::Load;
            let whole = is_load.then(|| judge(&mut whole, access).ok()).flatten();
            let plan = match (plan, whole) {
                (_, Some(whole)) if whole.plan.starts_anywhere => Ok(whole),
                (Err(refused), Some(whole))
                    if matches!(refused.refusal, Refusal::Start | Refusal::Overflow) =>
                {
                    Ok(whole)
                }
                (plan, _) => plan,
            };
            judged.push((access, plan));
        }
        keep_together(&mut judged, facts.used);
        leave_small(func, &mut judged, resources.small_boxes);
    }
    let mut planned = Vec::new();
    let mut out = Vec::new();
    for (access, plan) in judged {
        let data = &func.dfg.insts[access];
        let refused = plan.as_ref().err();
        out.push(Promotion {
            access: match data.op {
                TileOp::Load => AccessOp::Load,
                TileOp::Store => AccessOp::Store,
                _ => AccessOp::AtomicAdd,
            },
            line: data.loc.0.expand(),
            refusal: refused.map(|refused| refused.refusal),
            detail: refused.and_then(|refused| refused.detail.clone()),
        });
        planned.extend(plan);
    }
    if !planned.is_empty() {
        rewrite::build(func, &mut hosts, &planned);
    }
    out
}

/// The box of an access, with its starts.
fn judge<'f>(
    facts: &Facts<'f>,
    forms: &mut Forms<'f>,
    hosts: &mut Hosts,
    (access, summed): (Inst, Option<usize>),
    transposed: &[Inst],
) -> Result<Planned, Refused> {
    let plan = plan::plan(facts, forms, hosts, access)?;
    if !suits_boxes(facts.func, &plan, summed) {
        return Err(Refusal::Across.into());
    }
    if transposed.contains(&access) {
        return Err(Refusal::Transposed.into());
    }
    let starts = plan.dims.iter().map(|dim| {
        let start = rewrite::number(forms, access, &dim.start);
        start.ok_or_else(|| {
            let start = words::sum(facts.func, &dim.start);
            let detail =
                format!("a box would start at `{start}`, which the kernel does not compute");
            Refusal::Addresses.of(detail)
        })
    });
    let starts = starts.collect::<Result<Vec<_>, Refused>>()?;
    Ok(Planned { plan, starts })
}

/// Of the stores to a tensor all become boxes or none: what threads and the engine write has no order.
fn keep_together(judged: &mut [(Inst, Result<Planned, Refused>)], used: &Used) {
    let stays = |access: Inst| {
        judged
            .iter()
            .all(|(of, plan)| *of != access || plan.is_err())
    };
    let is_mixed = |plan: &Result<Planned, Refused>| {
        let base = plan.as_ref().map(|planned| planned.plan.base);
        base.is_ok_and(|base| used.writes(base).iter().any(|&write| stays(write)))
    };
    let mixed: Vec<bool> = judged.iter().map(|(_, plan)| is_mixed(plan)).collect();
    for ((_, plan), is_mixed) in judged.iter_mut().zip(mixed) {
        if is_mixed {
            *plan = Err(Refusal::Mixed.into());
        }
    }
}

/// Whether there are boxes of small blocks.
pub fn holds_small_boxes(func: &TileFunction) -> bool {
    let mut maps = func.insts_with(TileOp::TensorMap);
    maps.any(|(_, map)| {
        let data = &func.dfg.insts[map];
        let count: u64 = data.values().map_or(0, |tile| tile.iter().copied().map(u64::from).product());
        let elem = func.dfg.ty(data.results[0]).elem;
        matches!(elem, Elem::Map(scalar) if count * u64::from(scalar.bytes()) < u64::from(plan::MIN_BYTES))
    })
}

/// Small boxes pay where a large one comes at the same time, and is waited for together with them, and where registers are left: who
/// loads from memory has the numbers of one loop at a time. (Weights of four bits times 16 rows, whose four products of an iteration read
/// 1 KB each: the fastest with boxes alone took 20.5 us on an H100, with copies by threads 18.8.)
fn leave_small(
    func: &TileFunction,
    judged: &mut [(Inst, Result<Planned, Refused>)],
    may_come: bool,
) {
    let is_small = |access: Inst| {
        let read = func.dfg.insts[access].results.first();
        let ty = read.map(|&read| func.dfg.ty(read));
        let bytes = ty.map_or(0, |ty| ty.bytes());
        bytes < plan::MIN_BYTES
    };
    let comes = judged.iter().filter(|(_, plan)| plan.is_ok());
    let beside: FxHashSet<Block> = comes
        .filter(|&&(access, _)| !is_small(access))
        .filter_map(|&(access, _)| func.order.block_of(access))
        .collect();
    for (access, plan) in judged {
        let is_load = func.dfg.insts[*access].op == TileOp::Load;
        let block = func.order.block_of(*access);
        let pays = may_come && block.is_some_and(|block| beside.contains(&block));
        if is_load && is_small(*access) && !pays && plan.is_ok() {
            *plan = Err(Refusal::Small.into());
        }
    }
}

/// Loads that products of warpgroups in pipelined loops are made of, through ops on elements and changes of shape: those in the loops,
/// and for several programs those in front of them.
fn candidates(func: &TileFunction, target: Target, programs: Programs) -> Loads {
    let loops = func.insts_with(TileOp::For);
    let bodies = loops.filter_map(|(block, inst)| {
        let data = &func.dfg.insts[inst];
        let is_pipelined = data.stages().is_none_or(|&stages| stages > 1);
        is_pipelined.then(|| (block, data.blocks[0].block))
    });
    let mut found = Loads::new();
    for (outside, body) in bodies {
        let Some((inside, operands)) = feeding(func, body, target) else {
            continue;
        };
        found.extend(inside);
        found.extend(rows(func, body, &operands));
        if programs == Programs::One {
            continue;
        }
        let loads = loads_for(func, outside, target, operands);
        for load in loads.map_or(Vec::new(), |(loads, _)| loads) {
            if found.iter().all(|(other, _)| *other != load.0) {
                found.push(load);
            }
        }
    }
    found
}

/// Small blocks that a body loads for what its products make, as scales.
fn rows(func: &TileFunction, body: Block, operands: &Operands) -> Loads {
    let insts = func.order.insts(body).iter();
    let rows = insts.filter(|&&inst| {
        let data = &func.dfg.insts[inst];
        data.op == TileOp::Load && {
            let ty = func.dfg.ty(data.results[0]);
            let feeds = operands.contains_key(&data.results[0]);
            !feeds && !ty.is_scalar() && ty.bytes() < plan::MIN_BYTES
        }
    });
    rows.map(|&inst| (inst, None)).collect()
}

/// Whether boxes are a good way for a load to come to its products: not where these sum across rows of bytes, which are turned around
/// on their way through registers. Threads copy what that takes better than the engine. (Of elements of four bytes boxes do: a unit's left
/// operand can be in registers, and tf32 of 4096^3 with both blocks the wrong way around takes 452 us on an H100, by copies 511.)
fn suits_boxes(func: &TileFunction, plan: &plan::Plan, summed: Option<usize>) -> bool {
    let inner = plan.dims.last().and_then(|dim| dim.of);
    let read = func.dfg.insts[plan.access].results.first();
    read.is_none_or(|&read| func.dfg.ty(read).elem.bytes() != 1)
        || summed.is_none()
        || inner == summed
}

/// Values that products are made of, each with the dimension that these sum along, if only changes of shape are between.
type Operands = FxHashMap<Value, Option<usize>>;

/// Loads that they are made of, with the same.
type Loads = Vec<(Inst, Option<usize>)>;

/// The loads of a body that products there are made of, and all else that these are made of; none if the body holds loops.
fn feeding(func: &TileFunction, body: Block, target: Target) -> Option<(Loads, Operands)> {
    loads_for(func, body, target, Operands::default())
}

/// The loads of a block that these operands and those of its products are made of, and all else that they are made of.
fn loads_for(
    func: &TileFunction,
    block: Block,
    target: Target,
    operands: Operands,
) -> Option<(Loads, Operands)> {
    let is_body = operands.is_empty();
    let mut found = operands;
    let mut loads = Vec::new();
    for &inst in func.order.insts(block).iter().rev() {
        let data = &func.dfg.insts[inst];
        if data.op.is_loop() {
            match is_body {
                true => return None,
                false => continue,
            }
        }
        let is_used = data.results.iter().any(|v| found.contains_key(v));
        if is_body && is_for_warpgroup(func, inst, target) {
            for (&operand, summed) in data.args.iter().zip([1, 0]) {
                found.insert(operand, Some(summed));
            }
            // What an operand is made of by a product begins with what the product adds to.
            if is_used {
                found.extend(data.args.get(2).map(|&first| (first, None)));
            }
            continue;
        }
        let Some(&summed) = data.results.first().and_then(|v| found.get(v)) else {
            continue;
        };
        match data.op {
            TileOp::Load if !func.dfg.ty(data.results[0]).is_scalar() => loads.push((inst, summed)),
            TileOp::Permute => {
                let dims = data.dims().map_or(&[][..], |dims| dims);
                let dim = summed
                    .and_then(|dim| dims.get(dim))
                    .map(|&dim| dim as usize);
                found.insert(data.args[0], dim);
            }
            _ if data.is_pure() => found.extend(data.args.iter().map(|&arg| (arg, None))),
            _ => {}
        }
    }
    loads.reverse();
    Some((loads, found))
}
