//! Address arithmetic: what is the same for all elements is added first, as scalars.
//!
//! An i32 offset is sign-extended by itself, and `sext(a + b)` is not `sext(a) + sext(b)` if the sum wraps. Where
//! it provably does not wrap it stays together all the same: such sums are compared with a bound too, so they are
//! there anyway, and one product per index is less than two per pointer. So only 64-bit offsets are taken apart.

use super::{Rewrite, Simplifier};
use crate::ir::entities::Inst;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// `p + 0` is `p`.
pub(super) fn add_nothing(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (bits, _) = s.known(s.arg(inst, 1))?;
    (bits == 0).then_some(Rewrite::Value(s.arg(inst, 0)))
}

/// `(p + t) + u` with uniform `p` and `u` is `(p + u) + t`.
pub(super) fn uniform_offset_first(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (sum, u) = (s.arg(inst, 0), s.arg(inst, 1));
    let (p, t) = s.pair(sum, TileOp::Addptr)?;
    if !s.is_uniform(u) || !s.is_uniform(p) || s.is_uniform(t) {
        return None;
    }
    let base = s.op(TileOp::Addptr, &[p, u]);
    Some(Rewrite::Value(s.op(TileOp::Addptr, &[base, t])))
}

/// `p + (u + t)` with uniform `p` and `u` and 64-bit offsets is `(p + u) + t`.
pub(super) fn split_offset(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (p, offset) = (s.arg(inst, 0), s.arg(inst, 1));
    if !s.is_uniform(p) {
        return None;
    }
    let (x, y) = s.pair(offset, TileOp::Iadd)?;
    let (u, t) = match (s.is_uniform(x), s.is_uniform(y)) {
        (true, false) => (x, y),
        (false, true) => (y, x),
        _ => return None,
    };
    if s.ty(offset).elem != Elem::I64 {
        return None;
    }
    let base = s.op(TileOp::Addptr, &[p, u]);
    Some(Rewrite::Value(s.op(TileOp::Addptr, &[base, t])))
}
