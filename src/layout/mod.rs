<<<<<<< HEAD
//! Where blocks live and how they move: conversions between layouts.

pub mod convert;
=======
//! Layouts of whole kernels: which value has which layout.

pub mod assign;
>>>>>>> passes
