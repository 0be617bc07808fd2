//! Tilelift: a GPU compiler for block programs, in one crate.
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::prelude::*;
//!
//! let program = Program::python("add.py", r#"
//! import triton, triton.language as tl
//!
//! @triton.jit
//! def add(x, y, out, n, BLOCK: tl.constexpr):
//!     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
//!     tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)
//! "#)?;
//! let device = Device::best(); // a GPU if there is one, else the emulator
//! let add = device.kernel(&program, "add")?.constant("BLOCK", 1024)?;
//!
//! let x = Buffer::from_slice(&device, &[1.5_f32; 5000])?;
//! let y = Buffer::from_slice(&device, &[2.0_f32; 5000])?;
//! let out = Buffer::<f32>::new(&device, 5000)?;
//! let stream = device.stream();
//! add.launch(&stream, [5, 1, 1], (&x, &y, &out, 5000))?;
//! assert!(out.read(&stream)?.iter().all(|&sum| sum == 3.5));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A kernel is written for a *program* that works on blocks: arrays whose extents are powers of two. Tilelift
//! decides which thread holds which element, how threads exchange data, and which instructions do the work, and
//! writes PTX, which the NVIDIA driver alone turns into machine code. A PTX emulator runs the same kernels on any CPU.
//!
//! # Embed it
//!
//! [`prelude`] has what most programs name. [`runtime`] compiles at launch, specialises and caches; [`tune`] measures
//! configurations; [`warm`] makes kernels before anybody launches them. [`compile`] is the compiler alone, for one of the targets of
//! [`settings`]; [`error`] is why a kernel is refused, and `metadata` (feature `serde`) what a launcher must know. `build` compiles
//! kernels in build scripts. `driver` (feature `cuda`) is the driver layer, which starts without a driver. [`limits`] says for each
//! entry point how large its input may be, what bounds its time, memory and stack, and what nothing bounds.
//!
//! # Write kernels
//!
//! Begin with the `guide`: five minutes, Triton's tutorials, what to do if a kernel is wrong or slow. A kernel is written in the Triton
//! language (`front`; `guide::triton` is for those who know Triton), in Rust ([`ir::builder`]), or
//! as text ([`text`]). [`emu`] runs the PTX of a kernel on the CPU and reports races and accesses outside of buffers; [`interp`] runs
//! the kernel itself; [`device_print`] is what it prints. [`testing`] tests kernels in a suite of one's own, `fuzzing` (a feature)
//! with random cases, and `filetest` (feature `tool`) as files. [`verify`] says what is wrong with a kernel.
//!
//! # Work on the compiler
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
//! [`pipeline`] is this way on one page, [`compile::compile`] as one call, [`stages`] its texts; [`predict`] says how long
//! a launch takes. `guide::compiler` explains each stage with
//! pictures; `guide::contributing` says what is where and how to add things. At each stage:
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
//! Rooms that this page links but the list of modules below does not show (`linear_layout`, `analysis`, `layout`, `tile`,
//! `expand`, `thread`, `machine`, `ptx`, `num`, `cli`) are the compiler's own. They are reachable, for its tests and tools, and
//! hidden; **they change with any version**, and so does whatever stands in them. All else follows semantic versioning.

#[macro_use]
mod tracing_spans;
#[macro_use]
mod error_codes;
pub(crate) mod grid;

pub mod limits;
#[doc(hidden)]
pub mod num;
pub mod settings;

#[doc(hidden)]
pub mod linear_layout;

pub mod ir;

pub mod text;

pub mod device_print;

#[doc(hidden)]
pub mod analysis;

pub mod verify;

pub mod error;

#[doc(hidden)]
pub mod layout;

#[doc(hidden)]
pub mod tile;

#[doc(hidden)]
pub mod expand;

#[doc(hidden)]
pub mod thread;

pub(crate) mod regalloc;

#[doc(hidden)]
pub mod machine;

#[doc(hidden)]
pub mod ptx;

pub mod pipeline;

pub mod compile;

pub mod predict;

pub mod stages;

#[cfg(feature = "serde")]
pub mod metadata;

pub mod interp;

pub mod emu;

#[cfg(feature = "triton")]
pub mod front;

#[cfg(any(feature = "tool", feature = "fuzzing"))]
mod reduce_test_case;

#[cfg(feature = "tool")]
pub mod filetest;

#[cfg(feature = "tool")]
#[doc(hidden)]
pub mod cli;

#[cfg(feature = "cuda")]
#[expect(
    unsafe_code,
    reason = "the driver is reached through C calls; the only module where this is allowed"
)]
pub mod driver;

pub mod runtime;

pub mod tune;

pub mod warm;

pub mod testing;

#[cfg(feature = "triton")]
pub mod build;

pub mod prelude;

#[cfg(feature = "triton")]
pub mod guide;

/// Brings in the kernels of a file that the build script compiled (`tilelift::build::compile`): a module for each.
/// The name is the file's, without folder and ending. A file of that name that rustc "couldn't read" is one that the build script
/// does not compile.
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
