//! Address arithmetic: what is the same for all elements is added first, as scalars.
//!
//! An i32 offset is sign-extended by itself, and `sext(a + b)` is not `sext(a) + sext(b)` if the sum wraps. So an
//! offset is taken apart only where it has 64 bits, or where its terms share no bit.

use super::{Rewrite, Simplifier};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};
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

/// `p + (u + t)` with uniform `p` and `u` is `(p + u) + t`, if the inner sum cannot wrap.
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
    let wide = s.ty(offset).elem == Elem::I64;
    if !wide && bits_needed(s, t)? > known_zeros(s, u, 0) {
        return None;
    }
    let base = s.op(TileOp::Addptr, &[p, u]);
    Some(Rewrite::Value(s.op(TileOp::Addptr, &[base, t])))
}

/// Number of low bits that hold every element of a range that has no negative one.
fn bits_needed(s: &Simplifier<'_, '_>, mut value: Value) -> Option<u32> {
    loop {
        let data = s.edit.def(value)?;
        match data.op {
            TileOp::Broadcast | TileOp::ExpandDims => value = data.args[0],
            TileOp::Arange => {
                let start = u64::try_from(*data.start()?).ok()?;
                let last = start + s.ty(value).shape.elements() as u64 - 1;
                return Some(64 - last.leading_zeros());
            }
            _ => return None,
        }
    }
}

/// Number of low bits that are clear in every element.
fn known_zeros(s: &Simplifier<'_, '_>, value: Value, depth: u32) -> u32 {
    let analysed = u32::from(s.axis.info(value).known_zero_bits());
    if let Some((bits, _)) = s.known(value) {
        return bits.trailing_zeros();
    }
    let Some(data) = s.edit.def(value).filter(|_| depth < 4) else {
        return analysed;
    };
    // Values made by this pass are not analysed yet.
    let of = |i: usize| known_zeros(s, data.args[i], depth + 1);
    let derived = match data.op {
        TileOp::Splat => of(0),
        TileOp::Imul => of(0) + of(1),
        TileOp::Iadd | TileOp::Isub | TileOp::Or => of(0).min(of(1)),
        TileOp::Shl => {
            let amount = s.known(data.args[1]).map_or(0, |(bits, _)| bits.min(64));
            of(0) + amount as u32
        }
        _ => 0,
    };
    analysed.max(derived)
}
