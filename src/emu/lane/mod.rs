//! What one lane computes: pure functions of operand bits, chosen when an instruction is decoded.
//!
//! Registers are held zero-extended in 64 bits and results are cut to the destination's width by
//! the caller, so a function may leave junk above the width of its type.

pub(super) mod compare;
pub(super) mod convert;
pub(super) mod float;
pub(super) mod integer;
