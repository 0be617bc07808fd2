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
    let axis = Axis::compute(func);
    let stats = assign_layouts(func, &axis);
    on_pass_end("assign_layouts", func);
    stats
}
