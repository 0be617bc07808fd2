//! Comparisons of integers.

use std::cmp::Ordering;

use super::fold::signed;
use super::{Rewrite, Simplifier};
use crate::ir::attrs::{Attr, Attrs, IntPred, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;

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
