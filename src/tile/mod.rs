//! Passes over block programs. [`crate::pipeline`] has their order.
//!
//! A pass is a function over `&mut TileFunction` in a file of its name. It leaves a valid function behind, says
//! what it changed, and ends in time linear in the function but for stated, bounded iteration.

pub mod add_invariants_first;
pub mod advance_scalars;
pub mod apply_promises;
pub mod bound_waits;
mod carried;
pub mod compare_narrow;
pub mod compute_again;
pub mod count_loops;
pub mod defer_sums;
pub mod eliminate_dead_code;
pub mod fetch_boxes;
pub mod flatten_loops;
pub mod forget_layouts;
pub mod form_roles;
pub mod fuse_multiply_adds;
pub mod hoist_invariants;
pub mod join_branches;
pub mod legalize;
pub mod lift_integers;
pub mod load_ahead;
pub mod load_early;
pub mod loop_over_programs;
pub mod lower_dots;
pub mod lower_math;
pub mod merge_equal_values;
pub mod narrow_loads;
pub mod nest_loops;
pub mod order_programs;
pub mod order_sums;
pub mod orient_packs;
pub mod pipeline_loops;
pub mod predicate_loads;
pub mod promote;
pub mod resources;
pub mod rotate_loops;
pub mod settle_asserts;
pub mod settle_comparisons;
pub mod share_counters;
pub mod share_operands;
pub mod simplify;
pub mod split_quotients;
pub mod spread_sums;
pub mod start_dots;
pub mod transpose_products;
pub mod unroll_loops;

mod edit;
mod repeats;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
