//! Where blocks live and how they move: conversions between layouts, and which value has which layout.

pub mod convert;
pub mod warpgroup;

pub(crate) mod gather;
pub mod matrix;
pub mod swizzle;

pub mod assign;

/// Fewest bytes that one copy of a thread to shared memory moves (`cp.async`, section on its sizes in the PTX manual).
pub(crate) const NARROWEST_COPY: u32 = 4;
