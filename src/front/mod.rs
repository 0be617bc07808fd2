//! The Triton language: the text of a Python file to kernels of the tile IR.
//!
//! ```text
//!   text --source--> tree --module--> definitions      bounds first, then the parser; nothing is executed
//!                                        |
//!        signature, constants ---------> | lower        one kernel with its arguments, walked in order of execution
//!                                        v
//!                                     tile IR           calls inlined, constants folded, structured control flow
//! ```
//!
//! # Semantics
//! - **Values** have one of three grades: constants (weak in promotion, Python's arithmetic), known numbers (a variable that was
//!   given a constant: typed, strong, still good for shapes), and tensors (values of the IR).
//! - **Types** are promoted by [`types`]; comparisons, `minimum` and `maximum` take numbers as strong.
//! - **Control flow** on constants is decided here and what is not taken is not looked at. At run time `if`, `for` and
//!   `while` become regions (`if_else`, `merge_branches`, `loops`); a return moves what follows into the other branch.
//! - **Calls** of functions of the text are inlined, each with its own arguments; calls of the library are looked up in its
//!   tables (`library`).
//! - **Objects** of the text's classes are tuples with names (`object`); functions that are no kernels' run at compile time
//!   with Python's rules (`compile_time`); what decorators say about launches is data (`tuning`).
//! - **Names** of the module are evaluated when used: constants, expressions of them, aliases, re-exports of the library
//!   under any module's name. Constants of the caller come first.
//!
//! Where Triton's documentation and behaviour differ, its behaviour counts. Where this is more lenient: `if` on a variable
//! that was given a number is decided at compile time, and such a variable may give a shape.
//!
//! # Limits
//! Nothing that a text says makes this panic, hang or use memory without bound: `source` holds the bounds of the text,
//! `lower` the budgets of evaluation; [`crate::limits`] has the numbers.

pub mod diagnostic;
pub mod signature;
pub mod types;

mod argument;
mod arith;
mod assign;
mod call;
mod carry;
mod changes;
mod comparison;
mod compile_time;
mod conditions;
mod constant;
mod decorated;
mod expr;
mod files;
mod format;
mod if_else;
mod import;
mod imported;
mod kernel;
mod library;
mod links;
mod loops;
mod lower;
mod materialise;
mod merge_branches;
mod misplaced_argument;
mod module;
mod names;
mod narrow;
mod object;
mod power;
mod request;
mod source;
mod step;
mod stmt;
mod tuning;
mod value;
mod walked;

pub(crate) use argument::OPTIONS;
pub use diagnostic::{CallSite, Diagnostic, Diagnostics};
pub(crate) use files::collect as imported_files;
pub use files::with_imports;
pub(crate) use kernel::DEFAULT_WARPS;
pub use kernel::{KernelInfo, Lowered, Module, ParamInfo, Specialization};
pub(crate) use names::GIVEN;
#[cfg(any(feature = "tool", test))]
pub(crate) use request::named_constant;
pub(crate) use request::read_request;
pub use signature::{ArgSpec, Constant, HostDescriptor, SignatureError, TupleArg, parse_signature};
pub use tuning::{TuneConfig, Tuning};
