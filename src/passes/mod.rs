//! Passes over block programs, and their order.
//!
//! A pass is a function over `&mut TileFunction` in a file of its name. It leaves a valid function behind, says
//! what it changed, and ends in time linear in the function but for stated, bounded iteration.

pub mod contract;
pub mod eliminate_dead_code;
pub mod expand;
pub mod hoist_invariants;
pub mod insert_barriers;
pub mod legalize;
pub mod lower_math;
pub mod merge_equal_values;
pub mod place_shared;
pub mod simplify;

mod edit;
#[cfg(test)]
mod testing;

use crate::analysis::axis::Axis;
use crate::ir::function::TileFunction;
use crate::layout::assign::{LayoutStats, assign_layouts};
use crate::settings::{Options, Target};

/// Everything between a verified block program and its expansion into what one thread does. `on_pass_end` sees
/// the function after each pass, under the pass's name.
pub fn optimize(
    func: &mut TileFunction,
    target: Target,
    options: &Options,
    on_pass_end: &mut dyn FnMut(&str, &TileFunction),
) -> LayoutStats {
    let _ = (target, options);
    scratch_exp(func);
    let axis = Axis::compute(func);
    let stats = assign_layouts(func, &axis);
    on_pass_end("assign_layouts", func);
    stats
}

fn scratch_exp(func: &mut TileFunction) {
    use crate::ir::{attrs::make, dfg::InstData, ops::TileOp};
    for block in func.all_blocks() {
        let mut out = Vec::new();
        for inst in func.order.insts(block).to_vec() {
            if func.dfg.insts[inst].op == TileOp::Exp {
                let ty = func.dfg.ty(func.dfg.insts[inst].results[0]);
                let mut c = InstData::new(TileOp::Const, &[]);
                c.attrs
                    .push(make::value(u64::from(std::f32::consts::LOG2_E.to_bits())));
                let c = func.dfg.make_inst(c, &[ty]);
                let cv = func.dfg.insts[c].results[0];
                let x = func.dfg.insts[inst].args[0];
                let m = func
                    .dfg
                    .make_inst(InstData::new(TileOp::Fmul, &[x, cv]), &[ty]);
                let mv = func.dfg.insts[m].results[0];
                func.dfg.insts[inst].op = TileOp::Exp2;
                func.dfg.insts[inst].args[0] = mv;
                out.extend([c, m]);
            }
            out.push(inst);
        }
        func.order.replace(block, out);
    }
}
