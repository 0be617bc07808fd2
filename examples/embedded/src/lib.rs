//! Kernels of the application: texts in the Triton language.

/// Softmax of the rows of a matrix.
pub const SOFTMAX: &str = include_str!("../kernels/softmax.py");
/// A product of matrices with its own autotuning.
pub const MATMUL: &str = include_str!("../kernels/matmul.py");
