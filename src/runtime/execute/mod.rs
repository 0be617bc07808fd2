//! From a variant and arguments to a launch.

#[cfg(feature = "cuda")]
pub(in crate::runtime) mod asserting;
pub(in crate::runtime) mod call;
pub(in crate::runtime) mod estimate;
pub(in crate::runtime) mod executable;
#[cfg(feature = "cuda")]
pub(in crate::runtime) mod mapped;
pub(in crate::runtime) mod maps;
pub(in crate::runtime) mod recording;
