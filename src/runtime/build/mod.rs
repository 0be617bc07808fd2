//! From what a kernel is built from to code that a device runs.

pub(in crate::runtime) mod ahead;
pub(in crate::runtime) mod blueprint;
pub(in crate::runtime) mod build_variant;
pub(in crate::runtime) mod dump;
#[cfg(feature = "cuda")]
pub(in crate::runtime) mod gpu;
pub(in crate::runtime) mod locate;
pub(crate) mod manifest;
pub(in crate::runtime) mod pool;
#[cfg(feature = "triton")]
pub(in crate::runtime) mod python;
pub(in crate::runtime) mod record;
pub(in crate::runtime) mod rust_module;
pub(crate) mod stored;
