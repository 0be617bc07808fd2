//! Facts about functions, computed without changing them.

pub mod cfg;
pub mod domtree;
