//! Where blocks live and how they move: conversions between layouts, and which value has which layout.

pub mod convert;
pub mod warpgroup;

pub(crate) mod gather;
pub mod matrix;
pub mod swizzle;

pub mod assign;
