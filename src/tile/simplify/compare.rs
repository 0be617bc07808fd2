//! Comparisons of integers.

use std::cmp::Ordering;

use super::fold::signed;
use super::{Rewrite, Simplifier};
use crate::ir::attrs::{Attr, Attrs, IntPred, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

fn pred(s: &Simplifier<'_, '_>, inst: Inst) -> Option<IntPred> {
    s.edit.func.dfg.insts[inst].ipred().copied()
}

/// A constant on the left goes to the right.
pub(super) fn constant_right(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (a, b) = (s.arg(inst, 0), s.arg(inst, 1));
    if s.known(a).is_none() || s.known(b).is_some() {
        return None;
    }
    let exchanged = pred(s, inst)?.exchanged()?;
    s.swap(inst);
    for attr in &mut s.edit.func.dfg.insts[inst].attrs {
        if let Attr::IntPred(pred) = attr {
            *pred = exchanged;
        }
    }
    Some(Rewrite::Updated)
}

/// A value compared with itself.
pub(super) fn with_itself(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if s.arg(inst, 0) != s.arg(inst, 1) {
        return None;
    }
    let holds = pred(s, inst)?.holds(Ordering::Equal);
    let ty = s.result_ty(inst);
    Some(Rewrite::Value(s.constant(u64::from(holds), ty)))
}

/// `x + c == d` is `x == d - c`, modulo 2^bits.
pub(super) fn shifted_equality(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if !matches!(pred(s, inst)?, IntPred::Eq | IntPred::Ne) {
        return None;
    }
    let d = s.known(s.arg(inst, 1))?;
    let (x, c) = s.pair(s.arg(inst, 0), TileOp::Iadd)?;
    let c = s.known(c)?;
    let ty = s.ty(x);
    let difference = signed(d).wrapping_sub(signed(c)) as u64 & d.1.mask();
    let difference = s.constant(difference, ty);
    s.edit.func.dfg.insts[inst].args = [x, difference].into_iter().collect();
    Some(Rewrite::Updated)
}

/// A comparison of truth values is logic. Without a sign true is the larger one, with a sign the smaller.
pub(super) fn truths(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (pred, [a, b]) = (pred(s, inst)?, [0, 1].map(|i| s.arg(inst, i)));
    let ty = s.ty(a);
    if ty.elem != Elem::I1 {
        return None;
    }
    let (a, b) = match pred.is_signed() {
        Some(true) => (b, a),
        _ => (a, b),
    };
    let one = s.constant(1, ty);
    let negation = |s: &mut Simplifier<'_, '_>, x| s.build(TileOp::Xor, &[x, one], &[], ty);
    let (op, args) = match pred {
        IntPred::Eq | IntPred::Ne => (TileOp::Xor, [a, b]),
        IntPred::Ult | IntPred::Slt => (TileOp::And, [negation(s, a), b]),
        IntPred::Ule | IntPred::Sle => (TileOp::Or, [negation(s, a), b]),
        IntPred::Ugt | IntPred::Sgt => (TileOp::And, [a, negation(s, b)]),
        IntPred::Uge | IntPred::Sge => (TileOp::Or, [a, negation(s, b)]),
    };
    let mut value = s.build(op, &args, &[], ty);
    if pred == IntPred::Eq {
        value = negation(s, value);
    }
    Some(Rewrite::Value(value))
}

/// What was widened from 32 bits is compared before, which takes one instruction and not two: with what was widened, too, or with a constant.
pub(super) fn widened(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (pred, [a, b]) = (pred(s, inst)?, [0, 1].map(|i| s.arg(inst, i)));
    let (op, x) = [TileOp::Sext, TileOp::Zext]
        .into_iter()
        .find_map(|op| Some((op, s.edit.operand_of(a, op, 0)?)))?;
    let narrow = s.ty(x);
    if narrow.elem != Elem::I32 {
        return None;
    }
    let is_signed = pred.is_signed().map(|signed| signed && op == TileOp::Sext);
    let narrowed = IntPred::with_outcomes(pred.outcomes(), is_signed)?;
    let y = match s.edit.operand_of(b, op, 0) {
        Some(y) => y,
        None => {
            let number = signed(s.known(b)?);
            let (least, most) = match op {
                TileOp::Sext => (i64::from(i32::MIN), i64::from(i32::MAX)),
                _ => (0, i64::from(u32::MAX)),
            };
            let order = if number < least {
                Some(Ordering::Greater)
            } else if number > most {
                Some(Ordering::Less)
            } else {
                None
            };
            // Without a sign, negative numbers are the largest.
            let has_sign = pred.is_signed() != Some(false);
            if !has_sign && (order.is_some() || op == TileOp::Sext && number < 0) {
                return None;
            }
            if let Some(order) = order {
                let ty = s.result_ty(inst);
                return Some(Rewrite::Value(s.constant(u64::from(pred.holds(order)), ty)));
            }
            s.constant(number as u64 & narrow.elem.mask(), narrow)
        }
    };
    if s.ty(y) != narrow {
        return None;
    }
    let ty = s.result_ty(inst);
    let attr = make::ipred(narrowed);
    Some(Rewrite::Value(s.build(TileOp::Icmp, &[x, y], &[attr], ty)))
}

/// `x ^ true` where it negates a truth value.
pub(super) fn negation_of(s: &Simplifier<'_, '_>, value: Value) -> Option<Value> {
    let (x, c) = s.pair(value, TileOp::Xor)?;
    let (bits, elem) = s.known(c)?;
    (elem.bits() == 1 && bits == 1).then_some(x)
}

/// A negated comparison is the opposite comparison, a negation twice is nothing.
pub(super) fn negated(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, c) = (s.arg(inst, 0), s.known(s.arg(inst, 1))?);
    if c.1.bits() != 1 || c.0 != 1 {
        return None;
    }
    if let Some(inner) = negation_of(s, x) {
        return Some(Rewrite::Value(inner));
    }
    let data = s.edit.def(x).filter(|data| data.op == TileOp::Icmp)?;
    let args = data.args.clone();
    let attr = make::ipred(data.ipred()?.opposite()?);
    let ty = s.result_ty(inst);
    Some(Rewrite::Value(s.build(TileOp::Icmp, &args, &[attr], ty)))
}
