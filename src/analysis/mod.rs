<<<<<<< HEAD
//! Facts about functions, computed without changing them.

pub mod cfg;
pub mod domtree;
=======
//! Facts about kernels of the tile IR, computed without changing them.

pub mod axis;
pub mod program;

#[cfg(test)]
pub(crate) mod testing;
>>>>>>> passes
