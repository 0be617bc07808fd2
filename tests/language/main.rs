//! The Triton language by example: source files are compiled as their authors wrote them and run on the interpreter and
//! the emulator against values that others computed.
//!
//! - `seeds`: the files that this project starts from, byte for byte;
//! - `traps`: where the language is not what it looks like, against Triton's own interpreter;
//! - `programs`: the ways in which people write, against Triton's own interpreter;
//! - `kernels`, `products`: kernels in the style of real ones, against NumPy.
#![cfg(feature = "triton")]

#[path = "../common/kernels/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "other tests use the other kernels"
)]
mod built;
mod cases;
mod constants;
mod kernels;
mod products;
mod programs;
#[path = "../common/ptxas.rs"]
mod ptxas;
mod run;
mod seeds;
mod traps;
