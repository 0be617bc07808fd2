//! Accesses to memory whose mask is known.

use super::{Rewrite, Simplifier};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};

/// Whether the operand at `index` is true everywhere, or false everywhere.
fn mask(s: &Simplifier<'_, '_>, inst: Inst, index: usize) -> Option<bool> {
    let mask: Value = *s.edit.func.dfg.insts[inst].args.get(index)?;
    s.known(mask).map(|(bits, _)| bits == 1)
}

/// A mask that is true everywhere goes, with what would stand elsewhere; one that is false everywhere leaves only that.
pub(super) fn load_known_mask(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if mask(s, inst, 1)? {
        s.edit.func.dfg.insts[inst].args.truncate(1);
        return Some(Rewrite::Updated);
    }
    let data = &s.edit.func.dfg.insts[inst];
    if data.volatile().is_some() {
        return None;
    }
    let ty = s.result_ty(inst);
    Some(Rewrite::Value(match data.args.get(2) {
        Some(&other) => other,
        None => s.constant(0, ty),
    }))
}

/// Zero elsewhere is what happens without saying so.
pub(super) fn load_zero_elsewhere(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let other: Value = *s.edit.func.dfg.insts[inst].args.get(2)?;
    let (bits, _) = s.known(other)?;
    if bits != 0 {
        return None;
    }
    s.edit.func.dfg.insts[inst].args.truncate(2);
    Some(Rewrite::Updated)
}

/// A mask that is true everywhere goes; with one that is false everywhere the store goes.
pub(super) fn store_known_mask(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if !mask(s, inst, 2)? {
        return Some(Rewrite::Removed);
    }
    s.edit.func.dfg.insts[inst].args.truncate(2);
    Some(Rewrite::Updated)
}

/// A mask that is true everywhere goes; with one that is false everywhere nothing happens and the results are 0.
pub(super) fn atomic_known_mask(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    if !mask(s, inst, 2)? {
        let ty = s.result_ty(inst);
        return Some(Rewrite::Value(s.constant(0, ty)));
    }
    s.edit.func.dfg.insts[inst].args.truncate(2);
    Some(Rewrite::Updated)
}
