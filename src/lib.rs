//! Tilelift: block programs in, PTX out.

pub mod num;
pub mod settings;

pub mod linear;

pub mod ir;

pub mod analysis;

pub mod layout;

pub mod passes;

pub mod compile;

pub mod emu;

#[cfg(feature = "cuda")]
#[expect(
    unsafe_code,
    reason = "the driver is reached through C calls; the only module where this is allowed"
)]
pub mod driver;
