//! Tilelift: a GPU compiler for block programs, in one crate.
//!
//! A kernel is written for a *program* that works on blocks: arrays whose extents are powers of two. Tilelift
//! decides which thread holds which element, how threads exchange data, and which instructions do the work, and
//! writes PTX, which the NVIDIA driver alone turns into machine code. A PTX emulator runs the same kernels on any CPU.
//!
//! # The way of a kernel
//!
//! ```text
//!   Rust code --ir::builder--> tile IR <--text::parse-- .tir text      ir      blocks, structured control flow
//!                                |
//!                                |  verify                             verify  every broken rule, with its place
//!                                |  optimize                           passes  simplify, legalize, math, fma, cse, licm
//!                                |  assign layouts                     layout  who holds which element; conversions
//!                                v
//!                             tile IR with layouts
//!                                |
//!                                |  expand                             passes  packs, wide accesses, shuffles, exchanges
//!                                |  place shared memory                passes  offsets by liveness
//!                                |  insert barriers                    passes  by hazard analysis
//!                                v
//!                            thread IR                                 ir      what one thread does; a graph of blocks
//!                                |
//!                                |  select instructions                isa     ISLE rules over the PTX table
//!                                |  allocate registers                 regalloc
//!                                v
//!                             PTX text --driver--> GPU                 driver  (feature `cuda`)
//!                                      \--emu----> CPU                 emu
//!
//!   text, arguments --runtime--> launch                                runtime specialisation, caches, both devices
//! ```
//!
//! [`compile::compile`] is this way as one function. At each stage:
//!
//! - **tile IR**: typed SSA; what verified compiles without panic, or is refused with numbers (shared memory).
//! - **tile IR with layouts**: every block value has a layout; operands of an elementwise op share it; data changes
//!   hands only at `convert_layout`, `reduce` and memory.
//! - **thread IR**: every value is a number or a pack of one thread; branches are uniform over the CTA; shared memory is
//!   touched through slots only.
//! - **PTX**: nothing is left to fuse or reassociate: floating-point results are those of the tile IR.
//!
//! The reference interpreter ([`interp`]) runs the tile IR and is its specification in executable form; it shares no code
//! with what it judges but the number formats of [`num`].
//!
//! # Limits
//!
//! [`limits`] has a row for each entry point: how large its input may be, what bounds its time, memory and stack, which
//! tests hold that, and what nothing bounds.

pub(crate) mod grid;
#[macro_use]
mod coded;

pub mod limits;
pub mod num;
pub mod settings;

pub mod linear;

pub mod ir;

pub mod text;

pub mod log;

pub mod analysis;

pub mod verify;

pub mod layout;

pub mod passes;

pub(crate) mod isa;

pub(crate) mod regalloc;

pub mod ptx;

pub mod compile;

pub mod emit;

pub mod interp;

pub mod emu;

#[cfg(feature = "triton")]
pub mod front;

#[cfg(feature = "tool")]
pub mod filetest;

#[cfg(feature = "tool")]
pub mod tool;

#[cfg(feature = "cuda")]
#[expect(
    unsafe_code,
    reason = "the driver is reached through C calls; the only module where this is allowed"
)]
pub mod driver;

pub mod runtime;

pub mod tune;

pub mod prelude;

/// The README's examples are tests.
#[cfg(all(doctest, feature = "triton"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[doc(hidden)]
pub mod fuzzing;
