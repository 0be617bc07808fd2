//! Conversions of conversions.

use super::fold::{TypedBits, fold};
use super::{Rewrite, Simplifier};
use crate::ir::entities::{Inst, Value};
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
            return Some(Rewrite::Value(s.build(first, &[source], &[], ty)));
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
            s.build(first, &[source], &[], ty)
        } else {
            s.build(TileOp::Itrunc, &[source], &[], ty)
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
    Some(Rewrite::Value(s.build(TileOp::Bitcast, &[source], &[], ty)))
}

/// A conversion of one of two floats is one of the two converted. Some such floats are the bits of a truth value, of which ptxas
/// 12.8 to 13.5 thinks that 1 stays 1 in whatever conversion.
pub(super) fn convert_choice(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let ty = s.result_ty(inst);
    let (condition, numbers) = choice(s, s.arg(inst, 0))?;
    let data = &s.edit.func.dfg.insts[inst];
    let [a, b] = numbers.map(|number| fold(data, &[number], ty.elem));
    let (a, b) = (a?, b?);
    if a == b {
        return Some(Rewrite::Value(s.constant(a, ty)));
    }
    let (a, b) = (s.constant(a, ty), s.constant(b, ty));
    Some(Rewrite::Value(s.build(
        TileOp::Select,
        &[condition, a, b],
        &[],
        ty,
    )))
}

/// The condition and the numbers of which a value is one.
fn choice(s: &Simplifier<'_, '_>, x: Value) -> Option<(Value, [TypedBits; 2])> {
    let elem = s.ty(x).elem;
    if let Some(condition) = s.edit.operand_of(x, TileOp::Select, 0) {
        let arm = |i| s.known(s.edit.operand_of(x, TileOp::Select, i)?);
        return Some((condition, [arm(1)?, arm(2)?]));
    }
    let bits = s.edit.operand_of(x, TileOp::Bitcast, 0)?;
    let condition = s.edit.operand_of(bits, TileOp::Zext, 0)?;
    (s.ty(condition).elem == Elem::I1).then_some((condition, [(1, elem), (0, elem)]))
}
