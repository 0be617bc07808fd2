//! Kernels made with the builder, parametrised by element type, block size and warps.

mod kit;
mod matrix;
mod norm;
mod order;
mod rows;
mod tiles;

use tilelift::ir::types::Scalar;

pub(crate) use matrix::{sum, transpose};
pub(crate) use norm::{layer_norm, layer_norm_backward, layer_norm_looped};
pub(crate) use order::{scan, sort};
pub(crate) use rows::{Gelu, gelu, softmax, vector_add};
pub(crate) use tiles::{Sizes, TILES, tile_kernel};

/// What a kernel is specialised for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// Element type of the data in memory; arithmetic on floats is in f32 unless the kernel says otherwise.
    pub(crate) scalar: Scalar,
    /// Elements of a block.
    pub(crate) block: u64,
    /// Warps of a program.
    pub(crate) warps: u32,
    /// What the caller promises of sizes and strides: multiples of this, 1 for no promise. It decides how wide
    /// accesses under a mask may be.
    pub(crate) divisible: u32,
}

/// The same for blocks of two dimensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config2 {
    /// Element type of the data in memory.
    pub(crate) scalar: Scalar,
    /// Extents of a block.
    pub(crate) block: [u64; 2],
    /// Warps of a program.
    pub(crate) warps: u32,
}
