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
//! A divisor that was converted from an integer is 0 or between 1 and 2^64, so it needs no scale: the quotient is
//! `a * rcp_ftz(b)`, and quotients by the same number share the reciprocal. A layer norm divides by the length of its rows
//! twice.

use crate::ir::attrs::{Attrs, FloatPred, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::passes::edit::Editor;

/// 2^125 and 2^-126.
const LARGE: f32 = 4.253_529_6e37;
const SMALL: f32 = f32::MIN_POSITIVE;

/// A way from few elements to many: instructions to be repeated on something else.
type Path = smallvec::SmallVec<[(InstData<Tile>, TileType); 2]>;

/// The quotient, if the divisor repeats fewer elements or comes from integers.
pub(super) fn by_reciprocal(edit: &mut Editor<'_>, a: Value, b: Value) -> Option<Value> {
    let (few, path) = source(edit, b);
    let from_integer = edit
        .def(few)
        .is_some_and(|data| matches!(data.op, TileOp::Sitofp | TileOp::Uitofp));
    if from_integer {
        let reciprocal = edit.op(TileOp::RcpFtz, &[few]);
        let reciprocal = repeat(edit, reciprocal, &path);
        return Some(edit.op(TileOp::Fmul, &[a, reciprocal]));
    }
    if edit.ty(b).shape.elements() <= edit.ty(few).shape.elements() {
        return None;
    }
    let ty = edit.ty(few);
    let number = |edit: &mut Editor<'_>, x: f32| edit.f32_bits(x.to_bits(), ty);
    let size = edit.op(TileOp::Fabs, &[few]);
    let mut scale = number(edit, 1.0);
    let bounds = [
        (FloatPred::Olt, SMALL, 16_777_216.0),
        (FloatPred::Ogt, LARGE, 0.125),
    ];
    for (pred, bound, factor) in bounds {
        let bound = number(edit, bound);
        let factor = number(edit, factor);
        let truth = ty.with_elem(Elem::I1);
        let cond = edit.emit(TileOp::Fcmp, &[size, bound], &[make::fpred(pred)], truth);
        scale = edit.emit(TileOp::Select, &[cond, factor, scale], &[], ty);
    }
    let scaled = edit.op(TileOp::Fmul, &[few, scale]);
    let reciprocal = edit.op(TileOp::RcpFtz, &[scaled]);
    let scale = repeat(edit, scale, &path);
    let reciprocal = repeat(edit, reciprocal, &path);
    let a = edit.op(TileOp::Fmul, &[a, scale]);
    Some(edit.op(TileOp::Fmul, &[a, reciprocal]))
}

/// The block that a value repeats, and the ops that repeat it, outermost first.
fn source(edit: &Editor<'_>, mut value: Value) -> (Value, Path) {
    let mut path = Path::new();
    loop {
        let data = edit.def(value).filter(|data| {
            matches!(
                data.op,
                TileOp::Splat | TileOp::Broadcast | TileOp::ExpandDims
            )
        });
        let Some(data) = data else {
            break;
        };
        path.push((data.clone(), edit.ty(value)));
        value = data.args[0];
    }
    (value, path)
}

/// The value repeated in the same way.
fn repeat(edit: &mut Editor<'_>, mut value: Value, path: &Path) -> Value {
    for (data, ty) in path.iter().rev() {
        value = edit.emit(data.op, &[value], data.attrs(), *ty);
    }
    value
}
