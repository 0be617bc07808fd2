//! Rounding with ties away from 0, and remainders.

use super::expr::X;
use crate::ir::attrs::{FloatPred, IntPred};
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;

/// The number cut off, and one more if half or more was cut off.
pub(super) fn round(x: X<'_>) -> X<'_> {
    let formula = x.formula();
    let whole = x.op(TileOp::Trunc);
    // Exact; NaN for infinity.
    let cut = (x - whole).abs();
    let one = formula.number(1.0).with_sign_of(x);
    let more = cut.compare(FloatPred::Oge, 0.5).select(one, 0.0);
    (whole + more).with_sign_of(x)
}

/// Stages of [`frem`] before the last: each takes about 52 bits off the quotient, of which f32 has 277.
const STAGES: [usize; 2] = [5, 1];

/// In f64: multiples of y with as many digits as fit are taken off x, each exactly.
pub(super) fn frem<'f>(x: X<'f>, y: X<'f>) -> X<'f> {
    let formula = x.formula();
    let wide = |x: X<'f>| {
        if formula.is_double() {
            x.abs()
        } else {
            x.abs().cast(TileOp::Fpext, Elem::F64)
        }
    };
    let (mut rest, by) = (wide(x), wide(y));
    for _ in 0..formula.pick(STAGES[0], STAGES[1]) {
        let times = rest.over(by).op(TileOp::Trunc);
        rest = (-times).fma(by, rest);
    }
    let times = rest.over(by).op(TileOp::Trunc);
    let rest = (-times).fma(by, rest);
    // The quotients were rounded: what is left may have crossed 0.
    let negative = rest
        .cast(TileOp::Bitcast, Elem::I64)
        .int_compare(IntPred::Slt, 0);
    let rest = negative.select(rest + by, rest);
    let rest = if formula.is_double() {
        rest
    } else {
        rest.cast(TileOp::Fptrunc, Elem::F32)
    };
    let rest = y.abs().equals(f64::INFINITY).select(x, rest);
    let rest = rest.with_sign_of(x);
    let defined = x.abs().lt(f64::INFINITY) & y.compare(FloatPred::Une, 0.0);
    let rest = defined.select(rest, formula.nan());
    x.compare(FloatPred::Uno, y).select(formula.nan(), rest)
}
