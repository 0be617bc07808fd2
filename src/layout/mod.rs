//! Layouts of whole kernels: which value has which layout.

pub mod assign;
