//! Reductions and scans with functions of the library.

use ruff_python_ast::Operator;

use super::combine::{Way, along, reduce_blocks};
use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::{DType, Ty};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{FloatPred, IntPred, NanRule, Rounding};
use crate::ir::entities;
use crate::ir::types::{Elem, TileType};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "sum"("input; axis keep_dims dtype") sum;
    "max"("input; axis return_indices return_indices_tie_break_left keep_dims") |cx, args| extreme(cx, args, true);
    "min"("input; axis return_indices return_indices_tie_break_left keep_dims") |cx, args| extreme(cx, args, false);
    "argmax"("input axis; tie_break_left keep_dims") |cx, args| arg_extreme(cx, args, true);
    "argmin"("input axis; tie_break_left keep_dims") |cx, args| arg_extreme(cx, args, false);
    "xor_sum"("input; axis keep_dims") |cx, args| bits(cx, args, Operator::BitXor);
    "reduce_or"("input; axis keep_dims") |cx, args| bits(cx, args, Operator::BitOr);
    "_promote_bfloat16_to_float32"("t") |cx, args| {
        let t = cx.tensor_arg(args, "t")?;
        from_bfloat(cx, t).map(Value::Tensor)
    };
    "cumsum"("input; axis reverse dtype") cumsum;
    "cumprod"("input; axis reverse") cumprod;
};

/// The operand as a block, and the axis.
fn operand<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tensor, Option<u8>)> {
    let t = cx.tensor_arg(args, "input")?;
    if t.ty.is_ptr() {
        return Err(cx.wrong_type("a block of numbers", t));
    }
    let axis = match cx.int_arg(args, "axis")? {
        Some(axis) => Some(cx.axis(axis, t.shape.rank())?),
        None => None,
    };
    Ok((t, axis))
}

/// Small integers are reduced with 32 bits.
fn widen<'m>(cx: &mut Lower<'m>, t: Tensor, narrow: DType) -> Res<Tensor> {
    match t.ty {
        Ty::Num(d) if d.is_int() && d.bits() < 32 => cx.cast(t, Ty::Num(narrow), Rounding::Nearest),
        _ => Ok(t),
    }
}

fn sum<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (t, axis) = operand(cx, args)?;
    let t = summand(cx, args, t)?;
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    fold(cx, t, axis, keep_dims, &mut |cx, a, b| {
        cx.binary(Operator::Add, &Value::Tensor(a), &Value::Tensor(b))
    })
}

/// Reduces one block with a function of two values.
fn fold<'m>(
    cx: &mut Lower<'m>,
    t: Tensor,
    axis: Option<u8>,
    keep_dims: bool,
    combine: &mut dyn FnMut(&mut Lower<'m>, Tensor, Tensor) -> Res<Value<'m>>,
) -> Res<Value<'m>> {
    let results = reduce_blocks(cx, vec![t], axis, keep_dims, &mut |cx, left, right| {
        let value = combine(cx, left[0], right[0])?;
        Ok(vec![cx.tensor(&value)?])
    })?;
    Ok(results.first().map_or(Value::Poison, |&t| Value::Tensor(t)))
}

/// `tl.max` and `tl.min`; of two values, as older kernels have it, the larger or smaller one.
fn extreme<'m>(cx: &mut Lower<'m>, args: &Args<'m>, max: bool) -> Res<Value<'m>> {
    if let Some(other @ Value::Tensor(_)) = args.get("axis") {
        return cx.min_max(max, &args.req("input"), other, NanRule::Ignore);
    }
    let (t, axis) = operand(cx, args)?;
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    if cx.bool_arg(args, "return_indices", false)? {
        let left = cx.bool_arg(args, "return_indices_tie_break_left", true)?;
        let results = with_indices(cx, t, axis, keep_dims, max, left)?;
        return Ok(Value::tuple(
            results.into_iter().map(Value::Tensor).collect(),
        ));
    }
    let t = match t.ty {
        Ty::Num(DType::Bfloat16 | DType::Float16) => {
            cx.cast(t, Ty::Num(DType::Float32), Rounding::Nearest)?
        }
        _ => widen(cx, t, DType::Int32)?,
    };
    fold(cx, t, axis, keep_dims, &mut |cx, a, b| {
        cx.extreme(max, a, b, NanRule::Ignore)
    })
}

fn arg_extreme<'m>(cx: &mut Lower<'m>, args: &Args<'m>, max: bool) -> Res<Value<'m>> {
    let (t, axis) = operand(cx, args)?;
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    let left = cx.bool_arg(args, "tie_break_left", true)?;
    let results = with_indices(cx, t, axis, keep_dims, max, left)?;
    Ok(results.get(1).map_or(Value::Poison, |&t| Value::Tensor(t)))
}

/// The index of each element along the axis, which is needed unless there is only one.
pub(super) fn indices<'m>(cx: &mut Lower<'m>, t: Tensor, axis: Option<u8>) -> Res<(Tensor, u8)> {
    let axis = match (axis, t.shape.rank()) {
        (Some(axis), _) => axis,
        (None, 1) => 0,
        (None, _) => {
            let d = cx.error(Code::Call, "indices need an axis");
            return Err(d.help("give `axis`").into());
        }
    };
    let extent = t.shape.extent(usize::from(axis));
    let row = cx.shape(&[i128::from(extent)])?;
    let mut index = cx.b.arange(0, TileType::block(Elem::I32, row));
    for dim in 0..t.shape.rank() {
        if dim < usize::from(axis) {
            index = cx.b.expand_dims(index, 0);
        } else if dim > usize::from(axis) {
            let last = cx.b.ty(index).shape.rank() as u8;
            index = cx.b.expand_dims(index, last);
        }
    }
    let ty = Ty::Num(DType::Int32);
    let index = Tensor {
        value: index,
        ty,
        shape: cx.b.ty(index).shape,
    };
    Ok((cx.broadcast_to(index, t.shape)?, axis))
}

/// The extreme element, of its own type but for bf16, and its index along the axis; of equal ones the first if `left`.
fn with_indices<'m>(
    cx: &mut Lower<'m>,
    t: Tensor,
    axis: Option<u8>,
    keep_dims: bool,
    max: bool,
    left: bool,
) -> Res<Vec<Tensor>> {
    let t = match t.ty {
        Ty::Num(DType::Float8e4b15) => return Err(cx.wrong_type("a wider float", t)),
        Ty::Num(DType::Bfloat16) => cx.cast(t, Ty::Num(DType::Float32), Rounding::Nearest)?,
        _ => t,
    };
    let (index, axis) = indices(cx, t, axis)?;
    reduce_blocks(
        cx,
        vec![t, index],
        Some(axis),
        keep_dims,
        &mut |cx, a, b| {
            let better = wins(cx, a[0], b[0], max);
            let wins = if left {
                let equal = equal(cx, a[0], b[0]);
                let first = cx.b.icmp(a[1].value, b[1].value, IntPred::Slt);
                let tie = cx.b.and(equal, first);
                cx.b.or(better, tie)
            } else {
                better
            };
            let value = cx.b.select(wins, a[0].value, b[0].value);
            let index = cx.b.select(wins, a[1].value, b[1].value);
            Ok(vec![
                Tensor { value, ..a[0] },
                Tensor {
                    value: index,
                    ..a[1]
                },
            ])
        },
    )
}

fn wins<'m>(cx: &mut Lower<'m>, a: Tensor, b: Tensor, max: bool) -> entities::Value {
    match a.ty {
        Ty::Num(d) if d.is_float() => {
            let pred = if max { FloatPred::Ogt } else { FloatPred::Olt };
            cx.b.fcmp(a.value, b.value, pred)
        }
        ty => {
            let signed = ty.dtype().is_some_and(DType::is_signed);
            let pred = match (max, signed) {
                (true, true) => IntPred::Sgt,
                (true, false) => IntPred::Ugt,
                (false, true) => IntPred::Slt,
                (false, false) => IntPred::Ult,
            };
            cx.b.icmp(a.value, b.value, pred)
        }
    }
}

fn equal<'m>(cx: &mut Lower<'m>, a: Tensor, b: Tensor) -> entities::Value {
    match a.ty {
        Ty::Num(d) if d.is_float() => cx.b.fcmp(a.value, b.value, FloatPred::Oeq),
        _ => cx.b.icmp(a.value, b.value, IntPred::Eq),
    }
}

fn bits<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: Operator) -> Res<Value<'m>> {
    let (t, axis) = operand(cx, args)?;
    if t.ty.dtype().is_none_or(|d| !d.is_int()) {
        return Err(cx.wrong_type("a block of integers", t));
    }
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    fold(cx, t, axis, keep_dims, &mut |cx, a, b| {
        cx.binary(op, &Value::Tensor(a), &Value::Tensor(b))
    })
}

/// The type in which sums are made: small integers have 32 bits.
fn summand<'m>(cx: &mut Lower<'m>, args: &Args<'m>, t: Tensor) -> Res<Tensor> {
    match cx.dtype_arg(args, "dtype")? {
        Some(dtype) => cx.cast(t, Ty::Num(dtype), Rounding::Nearest),
        None => {
            let signed = t.ty.dtype().is_some_and(DType::is_signed);
            widen(cx, t, if signed { DType::Int32 } else { DType::Uint32 })
        }
    }
}

fn cumsum<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let t = from_bfloat(cx, t)?;
    let t = summand(cx, args, t)?;
    running(cx, args, t, Operator::Add)
}

fn cumprod<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let t = from_bfloat(cx, t)?;
    running(cx, args, t, Operator::Mult)
}

fn from_bfloat<'m>(cx: &mut Lower<'m>, t: Tensor) -> Res<Tensor> {
    match t.ty {
        Ty::Num(DType::Bfloat16) => cx.cast(t, Ty::Num(DType::Float32), Rounding::Nearest),
        _ => Ok(t),
    }
}

/// The combinations up to each element.
fn running<'m>(cx: &mut Lower<'m>, args: &Args<'m>, t: Tensor, op: Operator) -> Res<Value<'m>> {
    let axis = cx.int_arg(args, "axis")?.unwrap_or(0);
    let axis = cx.axis(axis, t.shape.rank())?;
    let reverse = cx.bool_arg(args, "reverse", false)?;
    let way = Way::Scan { reverse };
    let results = along(cx, &[t], axis, way, &mut |cx, left, right| {
        let value = cx.binary(op, &Value::Tensor(left[0]), &Value::Tensor(right[0]))?;
        Ok(vec![cx.tensor(&value)?])
    })?;
    Ok(results.first().map_or(Value::Poison, |&t| Value::Tensor(t)))
}
