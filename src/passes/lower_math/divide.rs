//! Division of many by few: the reciprocal is taken before the divisor is repeated.
//!
//! With a scale `s` that keeps the reciprocal normal, `a / b = (a * s) * rcp(b * s)`:
//!
//! | size of b | s | rcp(b s) | a s |
//! |---|---|---|---|
//! | above 2^126 | 2^-2 | at least 2^-126 | inexact only where the quotient is below 2^-250, hence 0 |
//! | below 2^-126 | 2^24 | at most 2^125 | overflows only where the quotient is above 2^230, hence infinite |
//! | else, and NaN | 1 | normal | exact |
//!
//! Products with a power of two are exact otherwise, so the error is that of `a * rcp(b)`: the product of the
//! reciprocal and one rounding, the very sequence behind PTX's `div.approx.f32` and its bound of 2 ulp for these sizes
//! of b. Zero and infinite divisors and dividends come out right: `rcp` of zero is infinity and of infinity zero,
//! and 0 times infinity NaN.

use crate::ir::attrs::{Attrs, FloatPred, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::passes::edit::Editor;

/// 2^126 and 2^-126.
const LARGE: f32 = 8.507_059e37;
const SMALL: f32 = f32::MIN_POSITIVE;

/// A way from few elements to many: instructions to be repeated on something else.
type Path = smallvec::SmallVec<[(InstData<Tile>, TileType); 2]>;

/// The quotient, if the divisor repeats fewer elements.
pub(super) fn by_few(edit: &mut Editor<'_>, a: Value, b: Value) -> Option<Value> {
    let (few, path) = source(edit, b)?;
    let ty = edit.ty(few);
    let number = |edit: &mut Editor<'_>, x: f32| edit.f32_bits(x.to_bits(), ty);
    let size = edit.op(TileOp::Fabs, &[few]);
    let mut scale = number(edit, 1.0);
    let bounds = [
        (FloatPred::Olt, SMALL, 16_777_216.0),
        (FloatPred::Ogt, LARGE, 0.25),
    ];
    for (pred, bound, factor) in bounds {
        let bound = number(edit, bound);
        let factor = number(edit, factor);
        let truth = ty.with_elem(Elem::I1);
        let cond = edit.emit(TileOp::Fcmp, &[size, bound], &[make::fpred(pred)], truth);
        scale = edit.emit(TileOp::Select, &[cond, factor, scale], &[], ty);
    }
    let scaled = edit.op(TileOp::Fmul, &[few, scale]);
    let reciprocal = edit.op(TileOp::Rcp, &[scaled]);
    let scale = repeat(edit, scale, &path);
    let reciprocal = repeat(edit, reciprocal, &path);
    let a = edit.op(TileOp::Fmul, &[a, scale]);
    Some(edit.op(TileOp::Fmul, &[a, reciprocal]))
}

/// The block of fewer elements that a value repeats, and the ops that repeat it, outermost first.
fn source(edit: &Editor<'_>, mut value: Value) -> Option<(Value, Path)> {
    let many = edit.ty(value).shape.elements();
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
    (edit.ty(value).shape.elements() < many).then_some((value, path))
}

/// The value repeated in the same way.
fn repeat(edit: &mut Editor<'_>, mut value: Value, path: &Path) -> Value {
    for (data, ty) in path.iter().rev() {
        value = edit.emit(data.op, &[value], data.attrs(), *ty);
    }
    value
}
