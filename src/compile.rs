//! From a kernel of the tile IR to PTX: the pipeline.

use crate::ir::function::TileFunction;
use crate::settings::{Options, PtxVersion, Target};

/// What a kernel parameter is to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// An address in device memory.
    Pointer,
    /// A number.
    Scalar,
}

/// A parameter of the PTX entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMeta {
    /// Its name in the source.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
    /// Its type's name: of the number, or of what the pointer points to (`f32`).
    pub ty: &'static str,
    /// Size in bytes.
    pub bytes: u32,
}

/// What a launcher must know of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMeta {
    /// Name of the PTX entry.
    pub name: String,
    /// Target it was compiled for.
    pub target: Target,
    /// Version of the PTX text.
    pub ptx_version: PtxVersion,
    /// Warps of a CTA; the block is 32 times as many threads in x.
    pub num_warps: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Parameters of the entry, in order.
    pub params: Vec<ParamMeta>,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledKernel {
    /// PTX text, pure ASCII.
    pub ptx: String,
    /// How to launch it.
    pub meta: KernelMeta,
}

/// Why a kernel cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The kernel needs more shared memory than the target has.
    #[error(
        "the kernel needs {needed} bytes of shared memory, {target} has {limit}; use smaller blocks or more warps"
    )]
    SharedMemory {
        /// Bytes the kernel needs.
        needed: u32,
        /// Bytes a CTA may have.
        limit: u32,
        /// The target.
        target: Target,
    },
    /// A bug of ours: a pass broke the kernel or met something it does not expect.
    #[error("internal error in {pass}: {message}")]
    Internal {
        /// The pass.
        pass: &'static str,
        /// What happened.
        message: String,
    },
}

/// Compiles a kernel.
pub fn compile(
    func: &TileFunction,
    target: Target,
    options: &Options,
) -> Result<CompiledKernel, CompileError> {
    let _ = (func, target, options);
    Err(CompileError::Internal {
        pass: "compile",
        message: "the pipeline is not connected yet".into(),
    })
}
