//! Loads through tensor maps in the place of loads of pointers.
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
//!   for what other programs write.
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
//! "Any" is 2^31 - 1: attention's head `h` starts at row `h * N`.

mod emit;
mod plan;
mod refusal;
pub(crate) mod written;

#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use self::emit::Planned;
use self::plan::Facts;
pub use self::refusal::{Promotion, Refusal};
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
use crate::settings::Target;

/// Makes loads that feed products of warpgroups in loops ones of tensor maps; says of each what became of it.
pub fn promote(func: &mut TileFunction, target: Target) -> Vec<Promotion> {
    let loads = candidates(func, target);
    if loads.is_empty() {
        return Vec::new();
    }
    let mut hosts = Hosts::default();
    let mut planned = Vec::new();
    let mut out = Vec::new();
    {
        let func = &*func;
        let order = ProgramOrder::compute(func);
        let mut forms = Forms::new(func, &order);
        let facts = Facts {
            func,
            axis: &Axis::compute(func),
            demand: &Demand::compute(func, &order, &mut forms),
            written: &written::Written::compute(func),
        };
        for (load, summed) in loads {
            let plan = plan::plan(&facts, &mut forms, &mut hosts, load).and_then(|plan| {
                if !is_read_in_place(func, &plan, summed) {
                    return Err(Refusal::Across);
                }
                let starts = plan.dims.iter();
                let starts = starts.map(|dim| emit::number(&mut forms, load, &dim.start));
                let starts: Option<Vec<_>> = starts.collect();
                let starts = starts.ok_or(Refusal::Addresses)?;
                Ok(Planned { plan, starts })
            });
            out.push(Promotion {
                line: func.dfg.insts[load].loc.0.expand(),
                refusal: plan.as_ref().err().copied(),
            });
            planned.extend(plan);
        }
    }
    if !planned.is_empty() {
        emit::emit(func, &mut hosts, &planned);
    }
    out
}

/// Loads in pipelined loops that products of warpgroups there are made of, through ops on elements and changes of shape.
fn candidates(func: &TileFunction, target: Target) -> Vec<(Inst, Option<usize>)> {
    let loops = func.insts_with(TileOp::For);
    let bodies = loops.filter_map(|(_, inst)| {
        let data = &func.dfg.insts[inst];
        let is_pipelined = data.stages().is_none_or(|&stages| stages > 1);
        is_pipelined.then(|| data.blocks[0].block)
    });
    bodies
        .flat_map(|body| feeding(func, body, target))
        .collect()
}

/// Whether a unit can read the box of a load where it stands, if nothing but changes of shape is between: elements of other than 16
/// bits stand side by side along the sum. Else the block is turned around on its way through registers, to which threads copy what
/// they need better than the engine.
fn is_read_in_place(func: &TileFunction, plan: &plan::Plan, summed: Option<usize>) -> bool {
    let ty = func.dfg.ty(func.dfg.insts[plan.load].results[0]);
    let inner = plan.dims.last().and_then(|dim| dim.of);
    ty.elem.bytes() == 2 || summed.is_none() || inner == summed
}

/// The loads of a body that products are made of; with each the dimension that these sum along, if only changes of shape are
/// between.
fn feeding(func: &TileFunction, body: Block, target: Target) -> Vec<(Inst, Option<usize>)> {
    let mut found: FxHashMap<Value, Option<usize>> = FxHashMap::default();
    let mut loads = Vec::new();
    for &inst in func.order.insts(body).iter().rev() {
        let data = &func.dfg.insts[inst];
        if matches!(data.op, TileOp::For | TileOp::While) {
            return Vec::new();
        }
        if is_for_warpgroup(func, inst, target) {
            for (&operand, summed) in data.args.iter().zip([1, 0]) {
                found.insert(operand, Some(summed));
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
    loads
}
