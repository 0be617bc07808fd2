//! The compiler as a whole: file tests of its passes, and kernels whose results and texts are judged.

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "triton")]
mod accesses;
mod compose;
mod determinism;
mod dots;
#[cfg(feature = "triton")]
mod few_numbers;
#[cfg(feature = "tool")]
mod filetests;
mod fingerprint;
mod kernels_emu;
#[cfg(feature = "cuda")]
mod kernels_gpu;
mod kernels_interp;
mod kernels_passes;
mod limits;
mod matmul;
mod op_targets;
mod philox;
#[cfg(feature = "triton")]
mod pipelines;
mod ptxas;
mod registers;
mod reports;
#[cfg(feature = "triton")]
mod spills;
#[cfg(feature = "triton")]
mod staged;
mod targets;
mod tensor_ptr;
#[cfg(feature = "triton")]
mod times;
mod ulp;
#[cfg(feature = "triton")]
mod units;
#[cfg(feature = "triton")]
mod walks;
