//! The Triton language by example: source files are compiled as their authors wrote them and run on the interpreter and
//! the emulator against values that others computed.
//!
//! - `seeds`: the files that this project starts from, byte for byte;
//! - `traps`: where the language is not what it looks like, against Triton's own interpreter;
//! - `programs`: the ways in which people write, against Triton's own interpreter;
//! - `kernels`, `products`: kernels in the style of real ones, against NumPy;
//! - `imports`: kernels that use functions of other files;
//! - `library`: each function of the language's library, and which features public kernels use;
//! - `tutorials`: Triton's own tutorials, where their files are;
//! - `front`, and those beside it: messages, the interface of `tilelift::front`, its limits, its types.

#[path = "../common/kernels/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "other tests use the other kernels"
)]
mod built;
mod cases;
mod constants;
#[cfg(feature = "tool")]
mod front;
mod front_api;
mod front_limits;
mod front_types;
mod imports;
mod kernels;
mod library;
mod products;
mod programs;
#[path = "../common/ptxas.rs"]
mod ptxas;
#[cfg(feature = "tool")]
mod removals;
mod run;
mod seeds;
mod traps;
mod tutorials;
mod variants;
