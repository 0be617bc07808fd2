//! Tilelift: block programs in, PTX out.

pub mod num;
pub mod settings;

pub mod linear;

pub mod ir;

pub(crate) mod isa;

pub(crate) mod regalloc;

pub mod ptx;

pub mod compile;

pub mod emu;

#[cfg(feature = "cuda")]
#[expect(
    unsafe_code,
    reason = "the driver is reached through C calls; the only module where this is allowed"
)]
pub mod driver;
