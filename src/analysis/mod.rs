//! Facts about functions, computed without changing them.

pub mod affine;
pub mod async_groups;
pub(crate) mod atomic;
pub mod axis;
pub mod cfg;
pub mod computed;
pub(crate) mod constants;
pub mod demand;
pub mod depends;
pub mod domtree;
pub mod in_flight;
pub(crate) mod loops;
pub mod neighbours;
pub mod program;
pub(crate) mod strides;

#[cfg(test)]
pub(crate) mod testing;
