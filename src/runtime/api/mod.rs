//! What callers name: devices, memory, programs, kernels, streams, and what is reported of them.

pub(in crate::runtime) mod argument;
pub(in crate::runtime) mod buffer;
pub(in crate::runtime) mod constant;
pub(in crate::runtime) mod deadline;
pub(in crate::runtime) mod descriptor;
pub(in crate::runtime) mod device;
pub(in crate::runtime) mod diagnostic;
pub(in crate::runtime) mod dtype;
pub(crate) mod environment;
pub(in crate::runtime) mod error;
pub(in crate::runtime) mod float8;
pub(in crate::runtime) mod graph;
pub(in crate::runtime) mod kernel;
pub(in crate::runtime) mod kernel_options;
pub(in crate::runtime) mod memory;
#[cfg(feature = "cuda")]
pub(in crate::runtime) mod of_cust;
pub(in crate::runtime) mod plain_file;
pub(in crate::runtime) mod program;
pub(in crate::runtime) mod report;
pub(in crate::runtime) mod stream;
pub(in crate::runtime) mod transfer;
pub(in crate::runtime) mod view;
pub(in crate::runtime) mod waiting;
pub(in crate::runtime) mod warning;
