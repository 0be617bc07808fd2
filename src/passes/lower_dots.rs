//! Gives products of matrices the types that they are computed in.
//!
//! - Where the target has a unit for the types, the product stays; an accumulator in f16 makes a detour by f32, 8-bit floats
//!   become f16 where only that has a unit, and `tf32x3` becomes three products, those of the small parts first.
//! - All else is computed with fused multiply-adds, in f32, f64 or i32: operands are widened, and f32 with `tf32` is cut.

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::{Attrs, DotPrecision, FloatPred, Rounding, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::layout::matrix::{Product, unit};
use crate::settings::Target;

/// The bits of an f32 that `tf32` keeps.
const TF32_BITS: u64 = 0xffff_e000;

/// Rewrites products of matrices; gives how many changed.
pub fn lower_dots(func: &mut TileFunction, target: Target) -> usize {
    edit::rewrite(func, |edit, inst| {
        if edit.func.dfg.insts[inst].op == TileOp::Dot {
            lower(edit, inst, target)
        } else {
            Fate::Keep
        }
    })
}

/// The types of a product of two factors.
fn product(left: TileType, right: TileType, sum: Elem, precision: DotPrecision) -> Product {
    Product {
        left: left.elem,
        right: right.elem,
        sum,
        precision,
        inner: left.shape.extents().last().unwrap_or(1),
    }
}

fn lower(edit: &mut Editor<'_>, inst: Inst, target: Target) -> Fate {
    let data = &edit.func.dfg.insts[inst];
    let &[a, b, acc] = &data.args[..] else {
        return Fate::Keep;
    };
    let precision = data.precision().copied().unwrap_or(DotPrecision::Ieee);
    let ty = edit.ty(acc);
    let sum = if ty.elem == Elem::F16 {
        Elem::F32
    } else {
        ty.elem
    };
    let factors = [a, b].map(|x| edit.ty(x));
    let has_unit =
        |[a, b]: [TileType; 2], precision| unit(&product(a, b, sum, precision), target).is_some();
    let halves = factors.map(|ty| ty.with_elem(Elem::F16));
    let is_eight = a_is_eight(factors[0]);
    let splits = factors[0].elem == Elem::F32 && precision == DotPrecision::Tf32x3;
    if has_unit(factors, precision) {
        if sum == ty.elem {
            return Fate::Keep;
        }
        let start = widened(edit, acc, sum);
        finish(edit, [a, b, start], precision, ty)
    } else if is_eight && has_unit(halves, precision) {
        let [a, b] = [a, b].map(|x| widened(edit, x, Elem::F16));
        let start = widened(edit, acc, sum);
        finish(edit, [a, b, start], precision, ty)
    } else if splits && has_unit(factors, DotPrecision::Tf32) {
        let [(a, small_a), (b, small_b)] = [a, b].map(|x| split(edit, x));
        let precision = DotPrecision::Tf32;
        let attrs = [make::precision(precision)];
        let first = edit.emit(TileOp::Dot, &[small_a, b, acc], &attrs, ty);
        let second = edit.emit(TileOp::Dot, &[a, small_b, first], &attrs, ty);
        finish(edit, [a, b, second], precision, ty)
    } else {
        by_multiply_adds(edit, [a, b, acc], precision, ty, sum)
    }
}

fn a_is_eight(ty: TileType) -> bool {
    ty.elem.is_float() && ty.elem.bits() == 8
}

/// The product of the first two operands, added to the third, as `ty`.
fn finish(
    edit: &mut Editor<'_>,
    operands: [Value; 3],
    precision: DotPrecision,
    ty: TileType,
) -> Fate {
    let sum = edit.ty(operands[2]);
    let attrs = [make::precision(precision)];
    let result = edit.emit(TileOp::Dot, &operands, &attrs, sum);
    if sum == ty {
        return Fate::Replace(result);
    }
    let attrs = [make::round(Rounding::Nearest)];
    Fate::Replace(edit.emit(TileOp::Fptrunc, &[result], &attrs, ty))
}

fn by_multiply_adds(
    edit: &mut Editor<'_>,
    [a, b, acc]: [Value; 3],
    precision: DotPrecision,
    ty: TileType,
    sum: Elem,
) -> Fate {
    let is_cut = precision == DotPrecision::Tf32 && edit.ty(a).elem == Elem::F32;
    let mut factors = [a, b].map(|x| widened(edit, x, sum));
    if is_cut {
        factors = factors.map(|x| cut(edit, x));
    }
    let start = widened(edit, acc, sum);
    if factors == [a, b] && start == acc && precision == DotPrecision::Ieee {
        return Fate::Keep;
    }
    let [a, b] = factors;
    finish(edit, [a, b, start], DotPrecision::Ieee, ty)
}

/// An f32 as the part that `tf32` keeps, and the rest, which of infinity is 0.
fn split(edit: &mut Editor<'_>, x: Value) -> (Value, Value) {
    let ty = edit.ty(x);
    let large = cut(edit, x);
    let rest = edit.op(TileOp::Fsub, &[x, large]);
    let attrs = [make::fpred(FloatPred::Ord)];
    let is_number = edit.emit(TileOp::Fcmp, &[rest, rest], &attrs, ty.with_elem(Elem::I1));
    let zero = edit.constant(0, ty);
    let small = edit.emit(TileOp::Select, &[is_number, rest, zero], &[], ty);
    (large, small)
}

/// The value in a type with as many bits or more.
fn widened(edit: &mut Editor<'_>, x: Value, to: Elem) -> Value {
    let ty = edit.ty(x);
    let op = match ty.elem {
        elem if elem == to => return x,
        elem if elem.is_int() => TileOp::Sext,
        _ => TileOp::Fpext,
    };
    edit.emit(op, &[x], &[], ty.with_elem(to))
}

/// An f32 without the bits that `tf32` drops.
fn cut(edit: &mut Editor<'_>, x: Value) -> Value {
    let ty = edit.ty(x);
    let int = ty.with_elem(Elem::I32);
    let bits = edit.emit(TileOp::Bitcast, &[x], &[], int);
    let mask = edit.constant(TF32_BITS, int);
    let kept = edit.op(TileOp::And, &[bits, mask]);
    edit.emit(TileOp::Bitcast, &[kept], &[], ty)
}

#[cfg(test)]
mod tests {
    use super::lower_dots;
    use crate::passes::testing::{check_pass, fixed_point};
    use crate::settings::Target;

    #[test]
    fn operands_get_the_type_of_the_sum() {
        check_pass(
            |func| lower_dots(func, Target::SM_70),
            "kernel @k(v0: f16, v1: ptr<f16>) warps(4) {
            block0:
                v2 = splat v0 : f16[4,8]
                v3 = splat v0 : f16[8,4]
                v4 = splat v0 : f16[4,4]
                v5 = dot v2, v3, v4 {precision = tf32} : f16[4,4]
                v6 = splat v1 : ptr<f16>[4,4]
                store v6, v5
                return
            }",
            "kernel @k(v0: f16, v1: ptr<f16>) warps(4) {
            block0:
                v2 = splat v0 : f16[4,8]
                v3 = splat v0 : f16[8,4]
                v4 = splat v0 : f16[4,4]
                v5 = fpext v2 : f32[4,8]
                v6 = fpext v3 : f32[8,4]
                v7 = fpext v4 : f32[4,4]
                v8 = dot v5, v6, v7 {precision = ieee} : f32[4,4]
                v9 = fptrunc v8 {round = rn} : f16[4,4]
                v10 = splat v1 : ptr<f16>[4,4]
                store v10, v9
                return
            }",
        );
    }

    #[test]
    fn tf32_cuts_its_operands() {
        check_pass(
            |func| lower_dots(func, Target::SM_70),
            "kernel @k(v0: f32, v1: ptr<f32>) warps(4) {
            block0:
                v2 = splat v0 : f32[4,4]
                v3 = dot v2, v2, v2 {precision = tf32} : f32[4,4]
                v4 = splat v1 : ptr<f32>[4,4]
                store v4, v3
                return
            }",
            "kernel @k(v0: f32, v1: ptr<f32>) warps(4) {
            block0:
                v2 = splat v0 : f32[4,4]
                v3 = bitcast v2 : i32[4,4]
                v4 = const {value = -8192} : i32[4,4]
                v5 = and v3, v4 : i32[4,4]
                v6 = bitcast v5 : f32[4,4]
                v7 = bitcast v2 : i32[4,4]
                v8 = const {value = -8192} : i32[4,4]
                v9 = and v7, v8 : i32[4,4]
                v10 = bitcast v9 : f32[4,4]
                v11 = dot v6, v10, v2 {precision = ieee} : f32[4,4]
                v12 = splat v1 : ptr<f32>[4,4]
                store v12, v11
                return
            }",
        );
    }

    #[test]
    fn what_is_computed_as_it_stands_stays() {
        fixed_point(
            |func| lower_dots(func, Target::SM_80),
            "kernel @k(v0: f64, v1: ptr<f64>) warps(4) {
            block0:
                v2 = splat v0 : f64[8,8]
                v3 = dot v2, v2, v2 {precision = tf32} : f64[8,8]
                v4 = splat v1 : ptr<f64>[8,8]
                store v4, v3
                return
            }",
        );
    }
}
