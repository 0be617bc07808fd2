//! Atomic accesses that targets have: the widest, and which lack an instruction.

use crate::ir::attrs::RmwOp;
use crate::ir::types::Scalar;
use crate::settings::Target;

/// Most bytes that one atomic instruction of a thread does steps on: pairs of f16 everywhere, vectors of floats on sm_90,
/// else one element (PTX manual, `atom`). None for `rmw` stands for comparison and exchange.
pub(crate) fn widest_atomic(rmw: Option<RmwOp>, scalar: Scalar, target: Target) -> u32 {
    match (rmw, scalar) {
        (Some(RmwOp::Fadd), Scalar::F16 | Scalar::Bf16 | Scalar::F32) if target.sm >= 90 => 16,
        (Some(RmwOp::Fadd), Scalar::F16) => 4,
        _ => scalar.bytes(),
    }
}

/// Whether the target has no instruction for the step, so that comparison and exchange must do.
pub(crate) fn lacks_atomic(rmw: Option<RmwOp>, scalar: Scalar, target: Target) -> bool {
    match (rmw, scalar) {
        (Some(RmwOp::Fadd), Scalar::Bf16) => target.sm < 90,
        (Some(rmw), Scalar::I16) => rmw.is_extreme(),
        _ => false,
    }
}
