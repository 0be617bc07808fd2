//! Where blocks live and how they move: conversions between layouts.

pub mod convert;
