//! What a program that embeds the crate names most: `use tilelift::prelude::*`.
//!
//! First what compiles and launches kernels, then what builds and compiles them by hand.
//! Names that exist more than once (launch arguments and memory of the emulator, the interpreter and the driver) are not
//! here; they come from [`crate::emu`], [`crate::interp`] and `tilelift::driver`.

pub use crate::compile::{CompiledKernel, compile};
pub use crate::error::CompileError;
pub use crate::ir::attrs::{Cache, Evict, FloatPred, IntPred, NanRule, make};
pub use crate::ir::builder::{BuildErrors, TileBuilder};
pub use crate::ir::dfg::ValueList;
pub use crate::ir::entities::Value;
pub use crate::ir::function::TileFunction;
pub use crate::ir::types::{Elem, Scalar, TileType};
pub use crate::linear_layout::shape::Shape;
pub use crate::runtime::{
    Buffer, Constants, Device, DeviceOptions, Event, Graph, Grid, Kernel, Pinned, Pointer, Program,
    RuntimeError, Stream, View,
};
pub use crate::settings::{Options, Target};
pub use crate::tune::{Config, Tuner};
