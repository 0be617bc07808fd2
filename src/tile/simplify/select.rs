//! Choices between two values.

use super::compare::negation_of;
use super::{Rewrite, Simplifier};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;

/// A choice that is known, makes no difference, or chooses between true and false.
pub(super) fn known(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let [cond, a, b] = [0, 1, 2].map(|i| s.arg(inst, i));
    if a == b {
        return Some(Rewrite::Value(a));
    }
    if let Some((bits, _)) = s.known(cond) {
        return Some(Rewrite::Value(if bits == 1 { a } else { b }));
    }
    let truth = s.ty(a).elem.bits() == 1;
    let known = |v: Value| s.known(v).map(|(bits, _)| bits);
    (truth && known(a) == Some(1) && known(b) == Some(0)).then_some(Rewrite::Value(cond))
}

/// A negated condition exchanges the alternatives.
pub(super) fn negated(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let cond = negation_of(s, s.arg(inst, 0))?;
    let args = &mut s.edit.func.dfg.insts[inst].args;
    args[0] = cond;
    args.swap(1, 2);
    Some(Rewrite::Updated)
}

/// Of a choice whose alternative is another one by the same condition, what that one chooses then.
pub(super) fn nested(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let cond = s.arg(inst, 0);
    let chosen = |place: usize| {
        let inner = s.edit.def(s.arg(inst, place))?;
        let is_same = inner.op == TileOp::Select && inner.args[0] == cond;
        is_same.then(|| inner.args[place])
    };
    let found = [1, 2].map(|place| chosen(place).map(|value| (place, value)));
    let args = &mut s.edit.func.dfg.insts[inst].args;
    for &(place, value) in found.iter().flatten() {
        args[place] = value;
    }
    found.iter().flatten().next().map(|_| Rewrite::Updated)
}
