//! Linear layouts over GF(2): which hardware location holds which element of a block.
//!
//! [`layout`] defines the one type all layouts have and explains the idea; [`named`] builds the layouts
//! that have names; [`digits`] reads an axis as scans do; [`pool`] interns them; `gf2` is the linear algebra below and [`shape`] the blocks.

pub mod digits;
pub(crate) mod gf2;
pub mod layout;
pub mod named;
pub mod pool;
pub mod shape;

mod text;
mod transform;
