//! Passes over what one thread does: which bytes of shared memory a slot gets, where threads wait for each other.

pub(crate) mod check_shared;
pub mod delay_copies;
pub mod drop_parameters;
pub mod insert_barriers;
pub mod place_shared;
