//! The driver layer over `cust`.

#![deny(clippy::undocumented_unsafe_blocks)]

mod loader;
mod symbols;

/// Loads.
pub fn load() -> Result<(), &'static str> {
    loader::load()
}
