//! The driver layer: what this crate needs of the CUDA driver, as safe Rust, over `cust`.
//!
//! # No toolkit, no driver
//!
//! A program with the feature `cuda` **builds on a machine without CUDA** and **starts on a
//! machine without a driver**, where [`Driver::load`] returns [`DriverError::NoDriver`] and the
//! emulator takes over.
//!
//! Two things stand in the way of that, and both are met here:
//!
//! - The build script of `cust_raw` stops unless it finds a toolkit, and links `-lcuda`. A
//!   directory named by `CUDA_LIBRARY_PATH` that holds `lib64/libcuda.so`, a linker script of
//!   one comment, satisfies both (GNU ld and gold refuse `INPUT()` and lld takes either). This repository has one, named in `.cargo/config.toml`. A
//!   crate that depends on this one needs nothing where the toolkit is installed, and else
//!
//!   ```text
//!   mkdir -p no-cuda/lib64
//!   echo '/* empty */' > no-cuda/lib64/libcuda.so
//!   export CUDA_LIBRARY_PATH=$PWD/no-cuda
//!   ```
//!
//!   or, in its own `.cargo/config.toml`,
//!
//!   ```text
//!   [env]
//!   CUDA_LIBRARY_PATH = { value = "no-cuda", relative = true }
//!   ```
//!
//! - The 353 functions that `cust_raw` declares have to be defined somewhere. They are defined
//!   in this crate, as trampolines that `dlopen("libcuda.so.1")` fills at the first use
//!   (`loader`, `symbols`). A program that uses `cust` directly gets them as well, provided it
//!   refers to something of this module, so that the linker takes the object they are in. A
//!   real `libcuda.so` on the command line does no harm: shared libraries come second.
//!
//! # The parts
//!
//! ```text
//!   Driver -- Device -- Context --+-- Buffer -- RawPtr --+
//!                                 +-- Module -- Function +-- launch -- Stream -- Event, Graph
//!                                 +-- assemble           |
//!                                     TensorMap ---------+
//! ```
//!
//! A [`Context`] is the device's *primary* one, retained through `cust`; buffers, modules,
//! streams and events hold a clone of it and may be used from any thread, in any order of
//! dropping. Foreign streams and pointers are borrowed by [`Stream::from_raw`] and
//! [`RawPtr::from_raw`].
//!
//! # Why not `cust` alone
//!
//! Version 0.3.2 knows the driver of CUDA 11.4. Its result type lacks newer codes; it loses the
//! assembler's log; its linker passes PTX without the final NUL; its streams drop the flag
//! `NON_BLOCKING` and cannot adopt a foreign handle; there is no way to ask for more than 48 KB
//! of shared memory, for clusters or for tensor maps; device attributes end at number 91;
//! `DeviceBuffer::cast` to an element of another size frees twice. Its results are an enum: a
//! newer code, which after a kernel's fault every call can return, is undefined behaviour there.
//!
//! So `cust` does what cannot meet such a code, and its objects are taken wherever that costs a
//! launch nothing; the rest is called through own declarations (`ffi`) of the same symbols. The
//! crate itself is at [`cust`], so that an application has the version that fits.
//!
//! | of `cust` | inside | at the API |
//! |---|---|---|
//! | `Device` | finds, names and measures devices | |
//! | `Context` | holds the primary context | [`Context::from_cust`], [`Context::cust`] |
//! | `Stream` | held by the streams that are made of one | [`Stream::from_cust`], shared with the application |
//! | `DeviceBuffer`, `DeviceSlice` | not: they free without a context of their own, and end recordings | borrowed as [`RawPtr`], as arguments and views of the run time |
//! | `DevicePointer` | | [`RawPtr::to_cust`] |
//! | `CudaError` | becomes a [`DriverError`] | `From`, [`DriverError::to_cust`] |
//! | `Event` | not: it records streams of `cust` alone, and `query` meets kernels' errors | its handle is private; it can be recorded in a stream that is shared |
//! | `Module` | not: it loses the log, and its handle is private | the application's kernels go into the same stream |
//!
//! # What is safe
//!
//! Whatever is called here with values made here is memory safe for the host, in any order and
//! from any thread. Kernels are trusted as code is: a kernel can be wrong about *device* memory,
//! which shows as a wrong result or as an error of a later call, and after a fault the context
//! stays unusable. Two doors need `unsafe`, as only the caller knows: borrowing a stream and
//! borrowing an address. No function panics; every failure is a [`DriverError`].

#![deny(clippy::undocumented_unsafe_blocks)]

mod context;
mod device;
mod error;
mod ffi;
mod fork;
mod graph;
mod jit;
mod launch;
mod loader;
mod mapped;
mod memory;
mod module;
mod pinned;
mod prepared;
mod stream;
// Elsewhere the linker binds the symbols: see `loader`.
#[cfg(any(
    test,
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )
))]
mod symbols;
mod tensor_map;
mod version;

/// The crate whose objects are taken here, in the version that fits.
pub use cust;

pub use context::Context;
pub use device::{Device, Driver};
pub use error::DriverError;
pub use graph::Graph;
pub use jit::{Cubin, JitOptions, assemble};
pub use launch::{Arg, LaunchSpec, ParamSize, launch};
pub use mapped::PreparedWithMaps;
pub use memory::{Buffer, Element, RawPtr};
pub use module::{Attributes, Function, Module};
pub use pinned::{Copying, Notice, Pinned};
pub use prepared::{LaunchAttributes, Prepared};
pub use stream::{Event, Stream};
pub use tensor_map::{TensorElement, TensorMap, TensorShape, TensorSwizzle};
pub use version::{Capability, CudaVersion, PtxVersion};
