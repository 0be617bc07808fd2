//! Passes over what one thread does: what it hardly ever computes, what is computed between products, which products begin a sum, which bytes of shared memory a slot gets, where threads wait for each other.

pub mod branch_around_copies;
pub mod branch_around_rare;
pub(crate) mod check_shared;
pub mod delay_copies;
pub mod drop_parameters;
pub mod fence_copies;
mod group_barriers;
pub mod hold_waits;
pub mod insert_barriers;
pub mod keep_operands;
pub mod multiply_by_reciprocals;
mod never_executed;
pub mod place_shared;
pub mod simplify_divisions;
pub mod slice_operands;
pub mod start_in_turns;
pub mod start_sums;
pub mod unmask_loops;
pub mod wait_before_joins;
