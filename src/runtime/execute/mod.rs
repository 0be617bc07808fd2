//! From a variant and arguments to a launch.

#[cfg(feature = "cuda")]
pub(in crate::runtime) mod device_log;
pub(in crate::runtime) mod estimate;
pub(in crate::runtime) mod executable;
pub(in crate::runtime) mod graph_capture;
pub(in crate::runtime) mod kept_memory;
#[cfg(feature = "cuda")]
pub(in crate::runtime) mod kept_tensor_maps;
pub(in crate::runtime) mod launch;
pub(in crate::runtime) mod tensor_maps;
