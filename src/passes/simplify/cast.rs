//! Conversions of conversions.

use super::{Rewrite, Simplifier};
use crate::ir::entities::Inst;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};

/// Widening twice is widening once: with zeros if the first did.
pub(super) fn widen_twice(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    let op = s.op_of(inst);
    for first in [TileOp::Sext, TileOp::Zext] {
        // Zeros put over copies of the sign are no single extension.
        if op == TileOp::Zext && first == TileOp::Sext {
            continue;
        }
        if let Some(source) = s.edit.operand_of(x, first, 0) {
            return Some(Rewrite::Value(s.emit(first, &[source], &[], ty)));
        }
    }
    None
}

/// Narrowing what was widened: to the first type it is nothing, else one conversion.
pub(super) fn narrow_widened(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    for first in [TileOp::Sext, TileOp::Zext, TileOp::Itrunc] {
        let Some(source) = s.edit.operand_of(x, first, 0) else {
            continue;
        };
        let (from, to) = (s.ty(source).elem.bits(), ty.elem.bits());
        return Some(Rewrite::Value(if from == to {
            source
        } else if from < to {
            s.emit(first, &[source], &[], ty)
        } else {
            s.emit(TileOp::Itrunc, &[source], &[], ty)
        }));
    }
    None
}

/// Narrowing a float to the type it was widened from is nothing.
pub(super) fn narrow_float(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let source = s.edit.operand_of(s.arg(inst, 0), TileOp::Fpext, 0)?;
    // The 8-bit format with an infinity does not round to it.
    let keeps = s.result_ty(inst).elem != Elem::Num(Scalar::F8E5M2);
    (keeps && s.ty(source) == s.result_ty(inst)).then_some(Rewrite::Value(source))
}

/// Reading bits as one type and then another.
pub(super) fn bitcast_twice(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let source = s.edit.operand_of(s.arg(inst, 0), TileOp::Bitcast, 0)?;
    let ty = s.result_ty(inst);
    if s.ty(source) == ty {
        return Some(Rewrite::Value(source));
    }
    Some(Rewrite::Value(s.emit(TileOp::Bitcast, &[source], &[], ty)))
}
