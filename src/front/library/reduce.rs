//! Reductions.

use ruff_python_ast::Operator;

use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{FloatPred, IntPred, NanRule, Rounding, make};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::linear::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "sum"("input; axis keep_dims dtype") sum;
    "max"("input; axis return_indices return_indices_tie_break_left keep_dims") |cx, args| extreme(cx, args, true);
    "min"("input; axis return_indices return_indices_tie_break_left keep_dims") |cx, args| extreme(cx, args, false);
    "argmax"("input axis; tie_break_left keep_dims") |cx, args| arg_extreme(cx, args, true);
    "argmin"("input axis; tie_break_left keep_dims") |cx, args| arg_extreme(cx, args, false);
    "xor_sum"("input; axis keep_dims") |cx, args| bits(cx, args, Operator::BitXor);
    "reduce_or"("input; axis keep_dims") |cx, args| bits(cx, args, Operator::BitOr);
    "reduce"("input axis combine_fn; keep_dims") reduce;
};

/// Combines left and right values of the region.
type Combine<'a, 'm> = &'a mut dyn FnMut(&mut Lower<'m>, &[Tensor], &[Tensor]) -> Res<Vec<Tensor>>;

/// Reduces blocks of one shape along an axis, or along all of them.
fn reduce_blocks<'m>(
    cx: &mut Lower<'m>,
    inputs: Vec<Tensor>,
    axis: Option<u8>,
    keep_dims: bool,
    combine: Combine<'_, 'm>,
) -> Res<Vec<Tensor>> {
    let rank = inputs.first().map_or(0, |t| t.shape.rank());
    let axes: Vec<u8> = match axis {
        Some(axis) => vec![axis],
        // The last one first, so that the numbers of the others stay.
        None => (0..rank as u8).rev().collect(),
    };
    let mut values = inputs;
    for &axis in &axes {
        values = reduce_axis(cx, &values, axis, combine)?;
    }
    if keep_dims {
        for &axis in axes.iter().rev() {
            for t in &mut values {
                t.value = cx.b.expand_dims(t.value, axis);
                t.shape = cx.b.ty(t.value).shape;
            }
        }
    }
    Ok(values)
}

/// One reduction of the IR.
fn reduce_axis<'m>(
    cx: &mut Lower<'m>,
    values: &[Tensor],
    axis: u8,
    combine: Combine<'_, 'm>,
) -> Res<Vec<Tensor>> {
    let scalars: Vec<TileType> = values
        .iter()
        .map(|t| cx.tile_type(t.ty, Shape::SCALAR))
        .collect::<Res<_>>()?;
    let params = [&scalars[..], &scalars[..]].concat();
    let at = cx.b.block();
    let (block, args) = cx.b.new_block(&params);
    cx.b.switch_to(block);
    let sides: Vec<Tensor> = args
        .iter()
        .zip(values.iter().chain(values))
        .map(|(&value, t)| Tensor {
            value,
            ty: t.ty,
            shape: Shape::SCALAR,
        })
        .collect();
    let (left, right) = sides.split_at(values.len());
    let result = combine(cx, left, right);
    let result = match result {
        Ok(result) => result,
        Err(stop) => {
            cx.b.switch_to(at);
            return Err(stop);
        }
    };
    let yields: Vec<entities::Value> = result.iter().map(|t| t.value).collect();
    cx.b.yield_values(&yields);
    cx.b.switch_to(at);
    let operands: Vec<entities::Value> = values.iter().map(|t| t.value).collect();
    let mut data = InstData::new(TileOp::Reduce, &operands);
    data.attrs.push(make::axis(axis));
    data.blocks.push(BlockCall::region(block));
    let inst = cx.b.inst(data, &[]);
    let results = cx.b.func().dfg.insts[inst].results.clone();
    Ok(results
        .iter()
        .zip(values)
        .map(|(&value, t)| Tensor {
            value,
            ty: t.ty,
            shape: cx.b.ty(value).shape,
        })
        .collect())
}

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
    let t = match cx.dtype_arg(args, "dtype")? {
        Some(dtype) => cx.cast(t, Ty::Num(dtype), Rounding::Nearest)?,
        None => {
            let signed = t.ty.dtype().is_some_and(DType::is_signed);
            widen(cx, t, if signed { DType::Int32 } else { DType::Uint32 })?
        }
    };
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

/// The extreme element and its index along the axis; of equal ones the first if `left`.
fn with_indices<'m>(
    cx: &mut Lower<'m>,
    t: Tensor,
    axis: Option<u8>,
    keep_dims: bool,
    max: bool,
    left: bool,
) -> Res<Vec<Tensor>> {
    let t = match t.ty {
        Ty::Num(DType::Bfloat16) => cx.cast(t, Ty::Num(DType::Float32), Rounding::Nearest)?,
        _ => widen(cx, t, DType::Int32)?,
    };
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
    let index = cx.broadcast_to(index, t.shape)?;
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

/// `tl.reduce` with a function of the text, which takes the left values and then the right ones.
fn reduce<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let input = args.req("input");
    let is_tuple = matches!(input, Value::Tuple(_));
    let items = match &input {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single.clone()],
    };
    let mut inputs: Vec<Tensor> = Vec::new();
    for item in &items {
        inputs.push(cx.tensor(item)?);
    }
    let Some(first) = inputs.first().copied() else {
        return Err(cx.error(Code::Call, "there is nothing to reduce").into());
    };
    let mut shape = first.shape;
    for t in &inputs {
        shape = cx.common_shape(shape, t.shape)?;
    }
    for t in &mut inputs {
        *t = cx.broadcast_to(*t, shape)?;
    }
    let axis = match cx.int_arg(args, "axis")? {
        Some(axis) => Some(cx.axis(axis, shape.rank())?),
        None => None,
    };
    let combine = args.req("combine_fn");
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    let at = cx.range;
    let results = reduce_blocks(cx, inputs, axis, keep_dims, &mut |cx, left, right| {
        let given = left.iter().chain(right);
        let given = given.map(|&t| cx.argument(Value::Tensor(t))).collect();
        let value = cx.call_value(&combine, given, at)?;
        let items = match &value {
            Value::Tuple(tuple) => tuple.items.clone(),
            single => vec![single.clone()],
        };
        if items.len() != left.len() {
            let (n, found) = (left.len(), items.len());
            let message = format!("the function must give {n} values, it gives {found}");
            return Err(cx.error(Code::Type, message).into());
        }
        let mut combined = Vec::new();
        for (item, t) in items.iter().zip(left) {
            let value = cx.tensor(item)?;
            if value.ty != t.ty || !value.shape.is_scalar() {
                let message = format!(
                    "the function gives {}, the block has {}",
                    item.describe(),
                    t.ty
                );
                let d = cx.error(Code::Type, message);
                return Err(Stop::from(d.help("cast the result with `.to(...)`")));
            }
            combined.push(value);
        }
        Ok(combined)
    })?;
    let mut values = results.into_iter().map(Value::Tensor);
    if is_tuple {
        Ok(Value::tuple(values.collect()))
    } else {
        Ok(values.next().unwrap_or(Value::Poison))
    }
}
