//! Gives products of matrices the types that they are computed in, and takes sums into them.
//!
//! - What is added to a product that starts from zero and has no other use becomes its accumulator; not of one whose sums may keep
//!   few bits, which would be those of the whole sum then.
//! - Where the target has a unit for the types, the product stays; where none sums in f16, such an accumulator makes a detour by f32.
//!   8-bit floats become f16 where only that has a unit, and `tf32x3` becomes three products.
//! - All else is computed with fused multiply-adds, in f32, f64 or i32, to which factors are widened as they are used.

use cranelift_entity::SecondaryMap;

use super::edit::{self, Editor, Fate, use_counts};
use crate::ir::attrs::{Attr, Attrs, DotPrecision, FloatPred, Rounding, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::layout::matrix::{DotInfo, unit};
use crate::settings::Target;

/// The bits of an f32 that `tf32` keeps.
const TF32_BITS: u64 = 0xffff_e000;

/// Rewrites products of matrices; gives how many changed. Products that became part of others stay behind, unused.
pub fn lower_dots(func: &mut TileFunction, target: Target) -> usize {
    if !func.dfg.insts.values().any(|data| data.op == TileOp::Dot) {
        return 0;
    }
    let uses = use_counts(func);
    let sums = edit::rewrite(func, |edit, inst| take_sum(edit, &uses, inst));
    let uses = use_counts(func);
    let lowered = edit::rewrite(func, |edit, inst| {
        let data = &edit.func.dfg.insts[inst];
        // What was taken into another product is not computed.
        let is_used = data.results.iter().any(|&v| uses[v] > 0);
        if data.op == TileOp::Dot && is_used {
            lower_dot(edit, inst, target)
        } else {
            Fate::Keep
        }
    });
    sums + lowered
}

/// A sum of a product and something else as a product with an accumulator.
fn take_sum(edit: &mut Editor<'_>, uses: &SecondaryMap<Value, u32>, inst: Inst) -> Fate {
    let data = &edit.func.dfg.insts[inst];
    if !matches!(data.op, TileOp::Fadd | TileOp::Iadd) {
        return Fate::Keep;
    }
    let (x, y) = (data.args[0], data.args[1]);
    for (value, other) in [(x, y), (y, x)] {
        let Some(dot) = edit.func.dfg.def_inst(value) else {
            continue;
        };
        let order = &edit.func.order;
        let data = &edit.func.dfg.insts[dot];
        let fits = data.op == TileOp::Dot
            && uses[value] == 1
            && data.imprecise().is_none()
            && order.block_of(dot) == order.block_of(inst)
            && is_zero(edit.func, data.args[2]);
        if fits {
            let mut data = data.clone();
            data.args[2] = other;
            let ty = edit.ty(other);
            return Fate::Replace(edit.build(TileOp::Dot, &data.args, &data.attrs, ty));
        }
    }
    Fate::Keep
}

/// Whether every element of a value is zero.
fn is_zero(func: &TileFunction, value: Value) -> bool {
    let Some(inst) = func.dfg.def_inst(value) else {
        return false;
    };
    let data = &func.dfg.insts[inst];
    match data.op {
        TileOp::Const => data.value() == Some(&0),
        TileOp::Splat | TileOp::Broadcast => is_zero(func, data.args[0]),
        _ => false,
    }
}

/// The types of a product of two factors.
fn product(left: TileType, right: TileType, sum: Elem, precision: DotPrecision) -> DotInfo {
    DotInfo {
        left: left.elem,
        right: right.elem,
        sum,
        precision,
        inner: left.shape.extents().last().unwrap_or(1),
    }
}

fn lower_dot(edit: &mut Editor<'_>, inst: Inst, target: Target) -> Fate {
    let data = &edit.func.dfg.insts[inst];
    let &[a, b, acc] = &data.args[..] else {
        return Fate::Keep;
    };
    let precision = data.precision().copied().unwrap_or(DotPrecision::Ieee);
    let imprecise = data.imprecise().copied();
    let ty = edit.ty(acc);
    let factors = [a, b].map(|x| edit.ty(x));
    let sums_in = |sum, [a, b]: [TileType; 2], precision| {
        unit(&product(a, b, sum, precision), target).is_some()
    };
    let sum = match ty.elem {
        Elem::F16 if !sums_in(Elem::F16, factors, precision) => Elem::F32,
        sum => sum,
    };
    let has_unit = |factors, precision| sums_in(sum, factors, precision);
    let halves = factors.map(|ty| ty.with_elem(Elem::F16));
    let splits = factors[0].elem == Elem::F32 && precision == DotPrecision::Tf32x3;
    if has_unit(factors, precision) {
        if sum == ty.elem {
            return Fate::Keep;
        }
        let start = widened(edit, acc, sum);
        let attrs = [
            Some(make::precision(precision)),
            imprecise.map(make::imprecise),
        ];
        finish(edit, [a, b, start], attrs.into_iter().flatten(), ty)
    } else if is_eight(factors[0]) && has_unit(halves, precision) {
        let [a, b] = [a, b].map(|x| widened(edit, x, Elem::F16));
        let start = widened(edit, acc, sum);
        finish(edit, [a, b, start], [make::precision(precision)], ty)
    } else if splits && has_unit(factors, DotPrecision::Tf32) {
        by_three_products(edit, [a, b, acc], ty)
    } else {
        by_multiply_adds(edit, [a, b, acc], precision, ty, sum)
    }
}

fn is_eight(ty: TileType) -> bool {
    ty.elem.is_float() && ty.elem.bits() == 8
}

/// The product of the first two operands, added to the third, as `ty`.
fn finish(
    edit: &mut Editor<'_>,
    operands: [Value; 3],
    attrs: impl IntoIterator<Item = Attr>,
    ty: TileType,
) -> Fate {
    let sum = edit.ty(operands[2]);
    let attrs: Vec<Attr> = attrs.into_iter().collect();
    let result = edit.build(TileOp::Dot, &operands, &attrs, sum);
    if sum == ty {
        return Fate::Replace(result);
    }
    let attrs = [make::round(Rounding::Nearest)];
    Fate::Replace(edit.build(TileOp::Fptrunc, &[result], &attrs, ty))
}

/// `tf32x3` as Triton computes it: the products of small parts from zero, then that of the large parts, then the accumulator.
///
/// Infinity has no small part, which the difference says by NaN, and its product with a small part of 0 is NaN too. Neither may
/// hide what the large parts say, so that NaN among the small products is 0. As the accumulator is not in that sum, its own NaN
/// stays.
fn by_three_products(edit: &mut Editor<'_>, [a, b, acc]: [Value; 3], ty: TileType) -> Fate {
    let [(a, small_a), (b, small_b)] = [a, b].map(|x| split(edit, x));
    let attrs = [make::precision(DotPrecision::Tf32)];
    let zero = edit.constant(0, ty);
    let first = edit.build(TileOp::Dot, &[small_a, b, zero], &attrs, ty);
    let second = edit.build(TileOp::Dot, &[a, small_b, first], &attrs, ty);
    let ordered = [make::fpred(FloatPred::Ord)];
    let is_number = edit.build(
        TileOp::Fcmp,
        &[second, second],
        &ordered,
        ty.with_elem(Elem::I1),
    );
    let small = edit.build(TileOp::Select, &[is_number, second, zero], &[], ty);
    let large = edit.build(TileOp::Dot, &[a, b, small], &attrs, ty);
    Fate::Replace(edit.op(TileOp::Fadd, &[large, acc]))
}

/// What is widened as it is used needs no op of its own; 8-bit floats become f16.
fn by_multiply_adds(
    edit: &mut Editor<'_>,
    [a, b, acc]: [Value; 3],
    precision: DotPrecision,
    ty: TileType,
    sum: Elem,
) -> Fate {
    let is_cut = precision == DotPrecision::Tf32 && edit.ty(a).elem == Elem::F32;
    let kept = if is_cut {
        precision
    } else {
        DotPrecision::Ieee
    };
    let mut narrow = |x: Value| match is_eight(edit.ty(x)) {
        true => widened(edit, x, Elem::F16),
        false => x,
    };
    let factors = [narrow(a), narrow(b)];
    let start = widened(edit, acc, sum);
    if factors == [a, b] && start == acc && precision == kept {
        return Fate::Keep;
    }
    let [a, b] = factors;
    finish(edit, [a, b, start], [make::precision(kept)], ty)
}

/// An f32 as the part that `tf32` keeps, and the rest. Cut and not rounded as Triton's, the largest numbers stay finite.
fn split(edit: &mut Editor<'_>, x: Value) -> (Value, Value) {
    let large = cut(edit, x);
    (large, edit.op(TileOp::Fsub, &[x, large]))
}

/// The value in a type with as many bits or more.
fn widened(edit: &mut Editor<'_>, x: Value, to: Elem) -> Value {
    let ty = edit.ty(x);
    let op = match ty.elem {
        elem if elem == to => return x,
        elem if elem.is_int() => TileOp::Sext,
        _ => TileOp::Fpext,
    };
    edit.build(op, &[x], &[], ty.with_elem(to))
}

/// An f32 without the bits that `tf32` drops.
fn cut(edit: &mut Editor<'_>, x: Value) -> Value {
    let ty = edit.ty(x);
    let int = ty.with_elem(Elem::I32);
    let bits = edit.build(TileOp::Bitcast, &[x], &[], int);
    let mask = edit.constant(TF32_BITS, int);
    let kept = edit.op(TileOp::And, &[bits, mask]);
    edit.build(TileOp::Bitcast, &[kept], &[], ty)
}

#[cfg(test)]
mod tests {
    use super::lower_dots;
    use crate::settings::Target;
    use crate::tile::eliminate_dead_code::eliminate_dead_code;
    use crate::tile::testing::{check_pass, fixed_point};

    #[test]
    fn without_a_unit_sums_of_halves_are_wider() {
        check_pass(
            |func| lower_dots(func, Target::SM_70),
            "kernel @k(v0: f16, v1: ptr<f16>) warps(4) {
            block0:
                v2 = splat v0 : f16[4,4]
                v3 = splat v0 : f16[4,4]
                v4 = splat v0 : f16[4,4]
                v5 = dot v2, v3, v4 {precision = tf32} : f16[4,4]
                v6 = splat v1 : ptr<f16>[4,4]
                store v6, v5
                return
            }",
            "kernel @k(v0: f16, v1: ptr<f16>) warps(4) {
            block0:
                v2 = splat v0 : f16[4,4]
                v3 = splat v0 : f16[4,4]
                v4 = splat v0 : f16[4,4]
                v5 = fpext v4 : f32[4,4]
                v6 = dot v2, v3, v5 {precision = ieee} : f32[4,4]
                v7 = fptrunc v6 {round = rn} : f16[4,4]
                v8 = splat v1 : ptr<f16>[4,4]
                store v8, v7
                return
            }",
        );
    }

    #[test]
    fn sums_of_halves_stay_where_a_unit_has_them() {
        let text = "kernel @k(v0: f16, v1: ptr<f16>) warps(4) {
            block0:
                v2 = splat v0 : f16[16,16]
                v3 = dot v2, v2, v2 {precision = tf32} : f16[16,16]
                v4 = splat v1 : ptr<f16>[16,16]
                store v4, v3
                return
            }";
        for target in [Target::SM_75, Target::SM_80, Target::SM_90A] {
            fixed_point(|func| lower_dots(func, target), text);
        }
    }

    #[test]
    fn without_a_unit_eights_become_halves() {
        check_pass(
            |func| lower_dots(func, Target::SM_70),
            "kernel @k(v0: f8e5m2, v1: ptr<f32>) warps(4) {
            block0:
                v2 = splat v0 : f8e5m2[4,4]
                v3 = const {value = 0.0} : f32[4,4]
                v4 = dot v2, v2, v3 {precision = tf32} : f32[4,4]
                v5 = splat v1 : ptr<f32>[4,4]
                store v5, v4
                return
            }",
            "kernel @k(v0: f8e5m2, v1: ptr<f32>) warps(4) {
            block0:
                v2 = splat v0 : f8e5m2[4,4]
                v3 = const {value = 0.0} : f32[4,4]
                v4 = fpext v2 : f16[4,4]
                v5 = fpext v2 : f16[4,4]
                v6 = dot v4, v5, v3 {precision = ieee} : f32[4,4]
                v7 = splat v1 : ptr<f32>[4,4]
                store v7, v6
                return
            }",
        );
    }

    #[test]
    fn a_sum_becomes_the_accumulator() {
        check_pass(
            |func| lower_dots(func, Target::SM_80) + eliminate_dead_code(func),
            "kernel @k(v0: f64, v1: ptr<f64>) warps(4) {
            block0:
                v2 = splat v0 : f64[8,8]
                v3 = const {value = 0.0} : f64[8,8]
                v4 = dot v2, v2, v3 {precision = ieee} : f64[8,8]
                v5 = fadd v2, v4 : f64[8,8]
                v6 = splat v1 : ptr<f64>[8,8]
                store v6, v5
                return
            }",
            "kernel @k(v0: f64, v1: ptr<f64>) warps(4) {
            block0:
                v2 = splat v0 : f64[8,8]
                v3 = dot v2, v2, v2 {precision = ieee} : f64[8,8]
                v4 = splat v1 : ptr<f64>[8,8]
                store v4, v3
                return
            }",
        );
    }

    #[test]
    fn a_sum_of_a_product_that_starts_from_something_stays() {
        fixed_point(
            |func| lower_dots(func, Target::SM_80),
            "kernel @k(v0: f64, v1: ptr<f64>, v2: f64) warps(4) {
            block0:
                v3 = splat v0 : f64[8,8]
                v4 = splat v2 : f64[8,8]
                v5 = dot v3, v3, v4 {precision = ieee} : f64[8,8]
                v6 = fadd v5, v3 : f64[8,8]
                v7 = splat v1 : ptr<f64>[8,8]
                store v7, v6
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

    #[test]
    fn what_is_cut_when_used_stays() {
        fixed_point(
            |func| lower_dots(func, Target::SM_70),
            "kernel @k(v0: f32, v1: ptr<f32>) warps(4) {
            block0:
                v2 = splat v0 : f32[4,4]
                v3 = dot v2, v2, v2 {precision = tf32} : f32[4,4]
                v4 = splat v1 : ptr<f32>[4,4]
                store v4, v3
                return
            }",
        );
    }
}
