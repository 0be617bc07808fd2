//! The run time: what an application embeds. Text in, launches out, on a GPU or on the emulator.
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::runtime::{Buffer, Constants, Device, Program};
//!
//! let program = Program::python("add.py", r#"
//! import triton, triton.language as tl
//!
//! @triton.jit
//! def add(x, y, out, n, BLOCK: tl.constexpr):
//!     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
//!     tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)
//! "#)?;
//! let device = Device::best();                                  // a GPU if there is one, else the emulator
//! let add = device.kernel(&program, "add")?.constant("BLOCK", 1024)?;
//! let n = 5000_u32;
//! let x = Buffer::from_slice(&device, &vec![1.5_f32; n as usize])?;
//! let y = Buffer::from_slice(&device, &vec![2.0_f32; n as usize])?;
//! let out = Buffer::<f32>::new(&device, n as usize)?;
//! let stream = device.stream();
//! let grid = |c: Constants| Some([n.div_ceil(c.int("BLOCK")?), 1, 1]);
//! add.launch(&stream, &grid, (&x, &y, &out, n as i32))?;        // returns at once
//! assert!(out.read(&stream)?.iter().all(|&sum| sum == 3.5));    // waits
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! ```text
//!   Program --+                                  classes of arguments --table--> Variant in memory   variant
//!             +--> Kernel --launch(stream, grid, args)--+                          |
//!   Device ---+      |  constants, warps, ...           |                    Cache on disk: PTX, cubin
//!                    |                                  v
//!                Report, Explanation            GPU: driver    emulator: emu
//! ```
//!
//! - A [`Program`] is text or a function; a [`Device`] is a GPU or the emulator; both make a [`Kernel`], which
//!   [`Kernel::launch`] puts into a [`Stream`].
//! - Arguments are numbers, [`Buffer`]s, [`Pointer`]s to memory of others, tensor [`Descriptor`]s, and tuples of such;
//!   constants are given by name.
//! - Everything is [`Send`] and [`Sync`] and every error a value, [`RuntimeError`]; [`on_warning`] takes what is none.
//! - Compiled kernels stay: in memory ([`Kernel`]) and on disk ([`cache`]).
//!
//! # Memory and streams of others
//!
//! With the feature `cuda`, `Device::from_context`, `Stream::from_driver` and `Pointer::from_driver` take what
//! another library owns, by way of `tilelift::driver`, where the `unsafe` promise is made that a handle is valid:
//!
//! ```no_run
//! # #[cfg(feature = "cuda")]
//! # fn with(device: tilelift::runtime::Device, raw_stream: *mut core::ffi::c_void, address: u64, bytes: usize)
//! #     -> Result<(), Box<dyn std::error::Error>> {
//! use tilelift::driver;
//! use tilelift::runtime::{DType, Pointer, Stream};
//!
//! let context = device.as_driver().ok_or("not a GPU")?;
//! // SAFETY: the stream and the memory outlive what is done with them here.
//! let stream = unsafe { driver::Stream::from_raw(context, raw_stream) }?;
//! let stream = Stream::from_driver(&device, stream)?;
//! // SAFETY: as before.
//! let memory = unsafe { driver::RawPtr::from_raw(address, bytes) };
//! let x = Pointer::from_driver(memory, DType::F32);
//! # let _ = (stream, x);
//! # Ok(())
//! # }
//! ```
//!
//! # The environment
//!
//! | variable | meaning |
//! |---|---|
//! | `TILELIFT_CACHE_DIR`, `TILELIFT_CACHE`, `TILELIFT_CACHE_SIZE`, `TILELIFT_CACHE_SEED`, `TILELIFT_CACHE_KEY`, `TILELIFT_CACHE_SHARED`, `TILELIFT_CACHE_SHARED_WRITE` | the cache on disk and what machines share of it, see [`cache`] |
//! | `TILELIFT_LAUNCH_BLOCKING=1` | every launch waits, so that an error names the kernel at fault |
//! | `TILELIFT_RECORD=FILE` | adds every kernel that is made to a manifest, for [`warm`](crate::warm) |
//! | `TILELIFT_DUMP=DIR` | writes the IR after every pass, the PTX and the cubin of every kernel |
//! | `TILELIFT_OVERRIDE=DIR` | takes PTX from there in place of what is made: edited files of a dump, under their names |
//!
//! Switches are `1`, `on`, `true`, `yes` or the opposite, in any case; what cannot be read gives a warning.

mod api;
mod build;
pub mod cache;
mod execute;
mod specialize;

pub use api::argument::{Arg, ArgList, Args, Argument, NONE};
pub use api::buffer::{Buffer, Direct, Element, Plain, Pointer};
pub use api::constant::{Constant, Constants, Grid};
pub use api::deadline::{CancelToken, Deadline, Stopped};
pub use api::descriptor::Descriptor;
pub use api::device::{Device, DeviceOptions};
pub use api::diagnostic::{Diagnostic, Severity, SourceError};
pub use api::dtype::DType;
pub use api::error::RuntimeError;
pub use api::float8::{F8E4M3, F8E5M2};
pub use api::graph::Graph;
pub use api::kernel::{DEFAULT_VARIANTS, Kernel};
pub use api::program::Program;
pub use api::report::{Explanation, Prediction, Report, Resources, Timing};
pub use api::stream::{Event, Stream};
pub use api::view::{Readable, View, ViewMut, Writable};
pub use api::waiting::{Copying, Done, Pinned};
pub use api::warning::on_warning;
pub use build::ahead::{Compiled, CompiledParam};
pub use build::dump::Dump;
pub use build::manifest::{Manifest, ManifestError};
pub use build::record::LaunchRecord;
pub use build::rust_module::{RustModule, rust_module};
pub use execute::tensor_maps::{EmulatedLaunch, emulated};
pub use specialize::class::Specialize;

/// The 16-bit floats that buffers hold and launches take: those of the crate `half`.
pub use half::{bf16, f16};

pub(crate) use build::build_variant::key_by_ptxas;
#[cfg(feature = "cuda")]
pub(crate) use build::gpu::{jit_options, key_by_driver};
pub(crate) use build::manifest::ManifestEntry;

pub(crate) use api::environment;
pub(crate) use api::kernel::Call;
pub(crate) use api::memory::Memory;
#[cfg(feature = "triton")]
pub(crate) use api::warning::warn;
pub(crate) use api::warning::warn_once;
#[cfg(any(feature = "tool", feature = "triton"))]
pub(crate) use build::locate::name_source;
#[cfg(feature = "tool")]
pub(crate) use build::locate::source_place;
#[cfg(feature = "triton")]
pub(crate) use build::rust_module::rust_name;
#[cfg(any(feature = "tool", feature = "fuzzing"))]
pub(crate) use build::stored;
#[cfg(all(feature = "cuda", feature = "tool"))]
pub(crate) use execute::kept_tensor_maps::driver_launch;
#[cfg(all(feature = "cuda", feature = "tool"))]
pub(crate) use execute::tensor_maps::without_maps;
#[cfg(feature = "tool")]
pub(crate) use execute::tensor_maps::{element, emulated_without_maps};

/// Everything may be sent to and used from other threads.
const _: () = {
    const fn check<T: Send + Sync>() {}
    check::<Device>();
    check::<Program>();
    check::<Kernel>();
    check::<Stream>();
    check::<Event>();
    check::<Graph>();
    check::<Buffer<f32>>();
    check::<Pointer<'_>>();
    check::<Arg<'_>>();
    check::<cache::Cache>();
    check::<RuntimeError>();
};
