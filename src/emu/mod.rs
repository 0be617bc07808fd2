//! A PTX emulator: runs PTX text on the CPU.
//!
//! It reads text and shares nothing with the compiler but the number formats, so it checks
//! selection, allocation and emission together. It is also the device of machines without a GPU.
//!
//! ```
//! use tilelift::emu::{Arg, Launch, Memory, Module, Options, run};
//!
//! let text = "
//! .version 7.0
//! .target sm_80
//! .address_size 64
//! .visible .entry double(.param .u64 data) {
//!     .reg .b32 %r<3>; .reg .b64 %rd<3>;
//!     ld.param.u64 %rd0, [data];
//!     mov.u32 %r0, %tid.x;
//!     mad.wide.u32 %rd1, %r0, 4, %rd0;
//!     ld.global.u32 %r1, [%rd1];
//!     add.u32 %r2, %r1, %r1;
//!     st.global.u32 [%rd1], %r2;
//!     ret;
//! }";
//! let module = Module::parse(text)?;
//! let mut memory = Memory::new();
//! let data = memory.alloc_bytes(&[1, 0, 0, 0, 21, 0, 0, 0]);
//! let args = [Arg::pointer(data)];
//! let launch = Launch { grid: [1, 1, 1], block: [2, 1, 1], shared_bytes: 0, args: &args, options: Options::default() };
//! let stats = run(&module, "double", &launch, &mut memory)?;
//! assert_eq!(memory.read(data, 8)?, [2, 0, 0, 0, 42, 0, 0, 0]);
//! assert_eq!(stats.warp_instructions, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it runs
//!
//! Text is parsed, names resolve while parsing, and each instruction is decoded once into a form
//! that a warp executes with one match and a loop over lanes. Registers are arrays of 32 lanes.
//! Lanes of a warp that diverge run as groups in an order that a seed decides; they meet again at
//! `.sync` instructions and where one group happens to come to another. Several CTAs are resident
//! and interleave.
//!
//! # What it reports
//!
//! See [`Fault`]. Every report names the line of the text, the CTA and the thread. Registers carry
//! whether they hold a defined value; by default an undefined one is an error where it has an
//! effect, because compilers compute with undefined values in lanes whose results they drop.
//! Races are found by what synchronisation orders, not by what happened to collide, so that one
//! run under one seed finds them.
//!
//! # Numbers
//!
//! IEEE operations are exact to the bit. The approximate ones (`ex2`, `lg2`, `sin`, `cos`, `tanh`,
//! `rsqrt`, and `rcp`, `sqrt`, `div` with `.approx` or `.full`) give the correctly rounded result,
//! from which hardware may differ by the bounds of the PTX manual.
//!
//! # Work under way
//!
//! Copies (`cp.async`, `cp.async.bulk` also between CTAs of a cluster, boxes of tensors by [`TensorMap`]) and products of warpgroups happen as late as the
//! rules allow, or by seed at another allowed time: seeds that 3 divides are late, the others early now and then. Until the
//! wait that covers them, what they write counts as unwritten, what they touch is an access under way, and registers of
//! products are nobody's. The race detector knows what fences make visible to the async proxy; barriers in shared memory
//! count arrivals and bytes exactly, and a wait whose parity no longer tells one phase from another is reported. Where
//! nobody can go on any more, the report says who waits for what, in which line. A wait that fails 32 times while nothing
//! else happens counts as one that never succeeds.
//!
//! # What it does not model
//!
//! Caches, timing, and the order in which weak accesses become visible: memory is sequentially consistent, and code that
//! relies on more than PTX promises shows as a race. A fence between proxies counts anywhere between the write and the
//! asynchronous work that it is ordered before; of `fence.proxy.tensormap` either side is enough. An asynchronous write
//! to shared memory behind generic reads needs a fence, too, of the readers or of who starts it: on an H200 (2026-11-23) threads read words by
//! `ld.shared` that were not used yet at a `bar.sync`, `bar.arrive` or arrival at an mbarrier, behind which a thread filled the buffer by
//! `cp.async.bulk`; of 1.8e12 reads 3.3e10 found the new bytes, for each kind of barrier, and of 1e12 with a fence none. A wait at an mbarrier takes over what peers release if it names
//! the scope of the cluster; without a name it has the CTA's. A tensor map counts as read where its copy starts. Copies by im2col,
//! `tensormap.cp_fenceproxy`, boxes narrower than their swizzle (the driver takes them; where their rows stand is not modelled), and device functions are not there. `bar.warp.sync` releases lanes that wait at the
//! same instruction only. Grids run one after the other, so that `griddepcontrol` does nothing. Registers are as many as the
//! text names: what `setmaxnreg` moves is counted, use beyond it is not seen.

mod async_work;
mod cluster;
mod decode;
mod error;
mod exec;
mod inst;
mod lane;
mod launch;
mod lex;
mod mbarrier;
mod mem;
mod module;
mod parse;
mod race;
mod sched;
mod setmaxnreg;
mod tensor_map;
mod types;
mod warp;
mod wgmma_in_flight;

pub use error::{
    AccessKind, EmuError, Fault, FaultSite, MemoryError, ParseError, ParseErrorKind, SourceLine,
    Space,
};
pub use launch::{Arg, Launch, Options, Stats, WARP_STEPS, run, run_by_lines};
pub use mem::Memory;
pub use module::{Entry, Module, Param};
pub use tensor_map::{Fill, Swizzle, TensorElement, TensorMap, TensorMapError};
pub use types::{Type, TypeKind};
