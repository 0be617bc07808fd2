//! Division by one reciprocal for many, and by numbers whose size is known.
//!
//! With a scale `s` that keeps the reciprocal normal, `a / b = (a * s) * rcp_ftz(b * s)`:
//!
//! | size of b | s | rcp(b s) | a s |
//! |---|---|---|---|
//! | above 2^125 | 2^-3 | above 2^-125 | inexact only where the quotient is below 2^-248, hence 0 |
//! | below 2^-126 | 2^24 | at most 2^125 | overflows only where the quotient is above 2^230, hence infinite |
//! | else, and NaN | 1 | normal | exact |
//!
//! Products with a power of two are exact otherwise, so the error is that of `a * rcp(b)`: the product of the
//! reciprocal and one rounding, the very sequence behind PTX's `div.approx.f32` and its bound of 2 ulp for these sizes
//! of b. Zero and infinite divisors and dividends come out right: `rcp` of zero is infinity and of infinity zero,
//! and 0 times infinity NaN.
//!
//! A divisor known to be no less than a normal number, such as `1 + exp(x)`, is never small: neither its sign nor the second
//! line counts.
//!
//! A divisor that was converted from an integer is 0 or between 1 and 2^64, so it needs no scale: the quotient is
//! `a * rcp_ftz(b)`, and quotients by the same number share the reciprocal. A layer norm divides by the length of its rows
//! twice.

use crate::ir::attrs::{FloatPred, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, ValueType};
use crate::tile::edit::Editor;

/// 2^125 and 2^-126.
const LARGE: f32 = 4.253_529_6e37;
const SMALL: f32 = f32::MIN_POSITIVE;

/// What repeats elements.
pub(super) const REPEATS: &[TileOp] = &[TileOp::Splat, TileOp::Broadcast, TileOp::ExpandDims];

/// The quotient, if the divisor repeats fewer elements, comes from integers or is never small.
pub(super) fn by_reciprocal(edit: &mut Editor<'_>, a: Value, b: Value) -> Option<Value> {
    let (few, repeats) = edit.source(b, REPEATS);
    let from_integer = edit
        .def(few)
        .is_some_and(|data| matches!(data.op, TileOp::Sitofp | TileOp::Uitofp));
    if from_integer {
        let reciprocal = edit.op(TileOp::RcpFtz, &[few]);
        let reciprocal = edit.repeat(reciprocal, &repeats);
        return Some(edit.op(TileOp::Fmul, &[a, reciprocal]));
    }
    let never_small = is_never_small(edit, few);
    if !never_small && edit.ty(b).shape.elements() <= edit.ty(few).shape.elements() {
        return None;
    }
    let ty = edit.ty(few);
    let number = |edit: &mut Editor<'_>, x: f32| edit.f32_bits(x.to_bits(), ty);
    let size = if never_small {
        few
    } else {
        edit.op(TileOp::Fabs, &[few])
    };
    let mut scale = number(edit, 1.0);
    let bounds = [
        (FloatPred::Olt, SMALL, 16_777_216.0),
        (FloatPred::Ogt, LARGE, 0.125),
    ];
    for (pred, bound, factor) in bounds.into_iter().skip(usize::from(never_small)) {
        let bound = number(edit, bound);
        let factor = number(edit, factor);
        let truth = ty.with_elem(Elem::I1);
        let cond = edit.build(TileOp::Fcmp, &[size, bound], &[make::fpred(pred)], truth);
        scale = edit.build(TileOp::Select, &[cond, factor, scale], &[], ty);
    }
    let scaled = edit.op(TileOp::Fmul, &[few, scale]);
    let reciprocal = edit.op(TileOp::RcpFtz, &[scaled]);
    let scale = edit.repeat(scale, &repeats);
    let reciprocal = edit.repeat(reciprocal, &repeats);
    let a = edit.op(TileOp::Fmul, &[a, scale]);
    Some(edit.op(TileOp::Fmul, &[a, reciprocal]))
}

/// Whether a value is a sum of a number that is not small and one that is not negative; NaN is allowed.
fn is_never_small(edit: &Editor<'_>, value: Value) -> bool {
    let Some(sum) = edit.def(value).filter(|data| data.op == TileOp::Fadd) else {
        return false;
    };
    let (rest, number) = (sum.args[0], sum.args[1]);
    let is_large = edit
        .bits(number)
        .is_some_and(|bits| f32::from_bits(bits as u32) >= SMALL);
    let is_positive =
        |data: &InstData<Tile>| matches!(data.op, TileOp::Exp | TileOp::Exp2 | TileOp::Fabs);
    is_large && edit.def(rest).is_some_and(is_positive)
}
