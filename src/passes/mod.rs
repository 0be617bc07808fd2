//! Passes over block programs, and their order.
//!
//! A pass is a function over `&mut TileFunction` in a file of its name. It leaves a valid function behind, says
//! what it changed, and ends in time linear in the function but for stated, bounded iteration.

pub mod add_invariants_first;
pub mod advance_scalars;
pub mod apply_promises;
pub mod contract;
pub mod defer_sums;
pub mod delay_copies;
pub mod drop_parameters;
pub mod eliminate_dead_code;
pub mod expand;
pub mod forget_layouts;
pub mod hoist_invariants;
pub mod insert_barriers;
pub mod legalize;
pub mod lower_dots;
pub mod lower_math;
pub mod merge_equal_values;
pub mod pipeline_loops;
pub mod place_shared;
pub mod settle_asserts;
pub mod share_operands;
pub mod simplify;

mod edit;
mod repeats;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use crate::analysis::axis::Axis;
use crate::compile::CompileError;
use crate::ir::function::TileFunction;
use crate::layout::assign::{LayoutStats, assign_layouts};
use crate::settings::diversity::{Choices, Site};
use crate::settings::{Options, Target};
use crate::verify::verify;
use add_invariants_first::add_invariants_first;
use advance_scalars::advance_scalars;
use apply_promises::apply_promises;
use contract::contract;
use defer_sums::defer_sums;
use eliminate_dead_code::eliminate_dead_code;
use forget_layouts::forget_layouts;
use hoist_invariants::hoist_invariants;
use legalize::legalize;
use lower_dots::lower_dots;
use lower_math::lower_math;
use merge_equal_values::merge_equal_values;
use pipeline_loops::{CutStages, pipeline_loops};
use settle_asserts::settle_asserts;
use share_operands::{share_invariant, share_loaded, split_readers};
use simplify::simplify;

/// What was done to a tile function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileStats {
    /// What layout assignment arrived at.
    pub layouts: LayoutStats,
    /// Stages that shared memory has too little room for.
    pub cut_stages: Option<CutStages>,
}

/// Everything between a verified block program and its expansion into what one thread does. `may_share` allows operands
/// of products to be kept in shared memory. `on_pass_end` sees the function after each pass, under the pass's name.
///
/// The order matters in four places: contraction looks for products with one use, so dead code and copies go
/// first; it comes before legalization, which takes products and sums apart; what lowering writes per element is
/// often uniform or invariant, so the cleaning passes run again after it; layouts come last, because they multiply
/// index arithmetic.
pub fn optimize(
    func: &mut TileFunction,
    target: Target,
    options: &Options,
    may_share: bool,
    on_pass_end: &mut dyn FnMut(&str, &TileFunction),
) -> Result<TileStats, CompileError> {
    let mut done = |pass: &'static str, func: &TileFunction| {
        on_pass_end(pass, func);
        check(pass, func, options)
    };

    settle_asserts(func, options.asserts);
    if forget_layouts(func) {
        done("forget_layouts", func)?;
    }
    if apply_promises(func) > 0 {
        done("apply_promises", func)?;
    }
    simplify(func);
    done("simplify", func)?;
    merge_equal_values(func);
    done("merge_equal_values", func)?;
    eliminate_dead_code(func);
    done("eliminate_dead_code", func)?;

    if defer_sums(func, options.fp_fusion) > 0 {
        done("defer_sums", func)?;
    }
    lower_dots(func, target);
    done("lower_dots", func)?;
    lower_math(func);
    done("lower_math", func)?;
    if options.fp_fusion {
        contract(func, target);
        done("contract", func)?;
    }
    legalize(func, target);
    done("legalize", func)?;

    simplify(func);
    done("simplify_again", func)?;
    merge_equal_values(func);
    done("merge_equal_values_again", func)?;
    hoist_invariants(func);
    done("hoist_invariants", func)?;
    if add_invariants_first(func) > 0 {
        done("add_invariants_first", func)?;
        hoist_invariants(func);
    }
    eliminate_dead_code(func);
    done("eliminate_dead_code_again", func)?;

    if may_share && share_invariant(func, target) > 0 {
        done("share_invariant", func)?;
    }
    let mut axis = Axis::compute(func);
    if advance_scalars(func, &axis) > 0 {
        axis = Axis::compute(func);
        done("advance_scalars", func)?;
    }
    let choices = |site| Choices::new(options.diversity, site);
    let pipelined = pipeline_loops(func, &axis, target, choices(Site::Stages));
    if pipelined.loops > 0 {
        done("pipeline_loops", func)?;
        simplify(func);
        merge_equal_values(func);
        hoist_invariants(func);
        eliminate_dead_code(func);
        done("eliminate_dead_code_last", func)?;
    }
    if may_share && share_loaded(func, target) > 0 {
        done("share_loaded", func)?;
    }
    if split_readers(func) > 0 {
        done("split_readers", func)?;
    }
    let axis = Axis::compute(func);
    let layouts = assign_layouts(func, &axis, target, choices(Site::Layouts));
    done("assign_layouts", func)?;
    Ok(TileStats {
        layouts,
        cut_stages: pipelined.cut,
    })
}

/// A pass that leaves an invalid function behind is a bug of ours.
fn check(pass: &'static str, func: &TileFunction, options: &Options) -> Result<(), CompileError> {
    if !options.verify_passes {
        return Ok(());
    }
    verify(func).map_err(|errors| CompileError::Internal {
        pass,
        message: errors.to_string(),
    })
}
