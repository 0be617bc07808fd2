//! Tilelift: a GPU compiler for block programs, in one crate.
//!
//! A kernel is written for a *program* that works on blocks: arrays whose extents are powers of two. Tilelift
//! decides which thread holds which element, how threads exchange data, and which instructions do the work, and
//! writes PTX, which the NVIDIA driver alone turns into machine code. A PTX emulator runs the same kernels on any CPU.
//!
//! # The way of a kernel
//!
//! ```text
//!   Python text --front--\
//!   Rust code --ir::builder--> tile IR <--text::parse-- .tir text      ir       blocks, structured control flow
//!                                |
//!                                |  verify                             verify   every broken rule, with its place
//!                                |  tile passes                        tile     simplify, legalize, math, fma, pipelines
//!                                |  assign layouts                     layout   who holds which element; conversions
//!                                v
//!                             tile IR with layouts
//!                                |
//!                                |  expand                             expand   packs, wide accesses, shuffles, exchanges
//!                                v
//!                            thread IR                                 ir       what one thread does; a graph of blocks
//!                                |
//!                                |  thread passes                      thread   places in shared memory, barriers
//!                                |  select, schedule                   machine  ISLE rules over the PTX table
//!                                |  allocate registers                 regalloc
//!                                v
//!                           machine code                               machine  instructions with registers
//!                                |
//!                                |  write                              ptx
//!                                v
//!                             PTX text --driver--> GPU                 driver   (feature `cuda`)
//!                                      \--emu----> CPU                 emu
//!
//!   text, arguments --runtime--> launch                                runtime  specialisation, caches, both devices
//! ```
//!
//! [`pipeline`] is this way on one page, [`compile::compile`] as one call. At each stage:
//!
//! - **tile IR**: typed SSA; what verified compiles without panic, or is refused with numbers (shared memory).
//! - **tile IR with layouts**: every block value has a layout; operands of an elementwise op share it; data changes
//!   hands only at `convert_layout`, `reduce` and memory.
//! - **thread IR**: every value is a number or a pack of one thread; branches are uniform over a role (the program or its producer); shared memory is
//!   touched through slots only.
//! - **machine code**: rows of the PTX table over virtual registers, then over named ones (`--emit machine` shows both).
//! - **PTX**: nothing is left to fuse or reassociate: floating-point results are those of the tile IR.
//!
//! The reference interpreter ([`interp`]) runs the tile IR and is its specification in executable form; it shares no code
//! with what it judges but the number formats of [`num`].
//!
//! # Limits
//!
//! [`limits`] has a row for each entry point: how large its input may be, what bounds its time, memory and stack, which
//! tests hold that, and what nothing bounds.

#[macro_use]
mod coded;
pub(crate) mod grid;

pub mod limits;
pub mod num;
pub mod settings;

pub mod linear_layout;

pub mod ir;

pub mod text;

pub mod device_print;

pub mod analysis;

pub mod verify;

pub mod error;

pub mod layout;

pub mod tile;

pub mod expand;

pub mod thread;

pub(crate) mod regalloc;

pub mod machine;

pub mod ptx;

pub mod pipeline;

pub mod compile;

pub mod stages;

#[cfg(feature = "json")]
pub mod metadata;

pub mod interp;

pub mod emu;

#[cfg(feature = "triton")]
pub mod front;

#[cfg(feature = "tool")]
pub mod filetest;

#[cfg(feature = "tool")]
pub mod cli;

#[cfg(feature = "cuda")]
#[expect(
    unsafe_code,
    reason = "the driver is reached through C calls; the only module where this is allowed"
)]
pub mod driver;

pub mod runtime;

pub mod tune;

pub mod testing;

#[cfg(feature = "triton")]
pub mod build;

pub mod prelude;

#[cfg(feature = "triton")]
pub mod guide;

/// Brings in the kernels of a file that the build script compiled (`tilelift::build::compile`): a module for each.
/// The name is the file's, without folder and ending.
#[macro_export]
macro_rules! include_kernels {
    ($name:literal) => {
        ::core::include!(::core::concat!(
            ::core::env!("OUT_DIR"),
            "/",
            $name,
            ".kernels.rs"
        ));
    };
}

/// The README's examples are tests.
#[cfg(all(doctest, feature = "triton"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
