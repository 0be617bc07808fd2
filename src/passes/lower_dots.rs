//! Gives products of matrices the types that they are computed in.
//!
//! What no matrix unit takes is computed with fused multiply-adds, in f32, f64 or i32: operands are widened, f32 with `tf32`
//! is cut, and an accumulator in f16 makes a detour by f32.

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::{Attrs, DotPrecision, Rounding, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, ValueType};

/// The bits of an f32 that `tf32` keeps.
const TF32_BITS: u64 = 0xffff_e000;

/// Rewrites products of matrices; gives how many changed.
pub fn lower_dots(func: &mut TileFunction) -> usize {
    edit::rewrite(func, |edit, inst| {
        if edit.func.dfg.insts[inst].op == TileOp::Dot {
            lower(edit, inst)
        } else {
            Fate::Keep
        }
    })
}

fn lower(edit: &mut Editor<'_>, inst: Inst) -> Fate {
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
    let operands = [a, b].map(|x| widened(edit, x, sum));
    let operands = match (precision, sum) {
        (DotPrecision::Tf32, Elem::F32) if edit.ty(a).elem == Elem::F32 => {
            operands.map(|x| cut(edit, x))
        }
        _ => operands,
    };
    let start = widened(edit, acc, sum);
    let is_final = precision == DotPrecision::Ieee || sum != Elem::F32;
    if operands == [a, b] && start == acc && is_final {
        return Fate::Keep;
    }
    let attrs = [make::precision(DotPrecision::Ieee)];
    let [a, b] = operands;
    let result = edit.emit(TileOp::Dot, &[a, b, start], &attrs, ty.with_elem(sum));
    if sum == ty.elem {
        return Fate::Replace(result);
    }
    let attrs = [make::round(Rounding::Nearest)];
    Fate::Replace(edit.emit(TileOp::Fptrunc, &[result], &attrs, ty))
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

    #[test]
    fn operands_get_the_type_of_the_sum() {
        check_pass(
            lower_dots,
            "kernel @k(v0: f16[4,8], v1: f16[8,4], v2: f16[4,4], v3: ptr<f16>[4,4]) warps(4) {
            block0:
                v4 = dot v0, v1, v2 {precision = tf32} : f16[4,4]
                store v3, v4
                return
            }",
            "kernel @k(v0: f16[4,8], v1: f16[8,4], v2: f16[4,4], v3: ptr<f16>[4,4]) warps(4) {
            block0:
                v5 = fpext v0 : f32[4,8]
                v6 = fpext v1 : f32[8,4]
                v7 = fpext v2 : f32[4,4]
                v8 = dot v5, v6, v7 {precision = ieee} : f32[4,4]
                v9 = fptrunc v8 {round = rn} : f16[4,4]
                store v3, v9
                return
            }",
        );
    }

    #[test]
    fn tf32_cuts_its_operands() {
        check_pass(
            lower_dots,
            "kernel @k(v0: f32[4,8], v1: f32[8,4], v2: f32[4,4], v3: ptr<f32>[4,4]) warps(4) {
            block0:
                v4 = dot v0, v1, v2 {precision = tf32} : f32[4,4]
                store v3, v4
                return
            }",
            "kernel @k(v0: f32[4,8], v1: f32[8,4], v2: f32[4,4], v3: ptr<f32>[4,4]) warps(4) {
            block0:
                v5 = bitcast v0 : i32[4,8]
                v6 = const {value = 4294959104} : i32[4,8]
                v7 = and v5, v6 : i32[4,8]
                v8 = bitcast v7 : f32[4,8]
                v9 = bitcast v1 : i32[8,4]
                v10 = const {value = 4294959104} : i32[8,4]
                v11 = and v9, v10 : i32[8,4]
                v12 = bitcast v11 : f32[8,4]
                v13 = dot v8, v12, v2 {precision = ieee} : f32[4,4]
                store v3, v13
                return
            }",
        );
    }

    #[test]
    fn what_is_computed_as_it_stands_stays() {
        fixed_point(
            lower_dots,
            "kernel @k(v0: f64[4,8], v1: f64[8,4], v2: f64[4,4], v3: ptr<f64>[4,4]) warps(4) {
            block0:
                v4 = dot v0, v1, v2 {precision = tf32} : f64[4,4]
                store v3, v4
                return
            }",
        );
    }
}
