//! Values out of nothing, and casts.

use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::{DType, Ty};
use crate::front::value::Value;
use crate::ir::attrs::Rounding;
use crate::ir::types::{Elem, TileType};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "program_id"("axis") program_id;
    "num_programs"("axis") num_programs;
    "arange"("start; end") arange;
    "full"("shape value; dtype") full;
    "zeros"("shape; dtype") zeros;
    "zeros_like"("input") zeros_like;
    "cast"("input dtype; fp_downcast_rounding bitcast") cast;
    "to"("input dtype; fp_downcast_rounding bitcast") cast;
    "to_tensor"("x") to_tensor;
    "constexpr"("value") constexpr;
    "tensor"("handle type") no_tensor;
};

fn program_id<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let axis = grid_axis(cx, args)?;
    let value = cx.b.program_id(axis);
    Ok(cx.block(value, Ty::Num(DType::Int32)))
}

fn num_programs<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let axis = grid_axis(cx, args)?;
    let value = cx.b.num_programs(axis);
    Ok(cx.block(value, Ty::Num(DType::Int32)))
}

fn grid_axis<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<u8> {
    match cx.int_arg(args, "axis")? {
        Some(axis @ 0..=2) => Ok(axis as u8),
        other => {
            let message = format!(
                "a grid has the axes 0, 1 and 2, not {}",
                other.unwrap_or(-1)
            );
            Err(cx.error(Code::Value, message).into())
        }
    }
}

/// `arange(start, end)`; with one argument it starts at zero.
fn arange<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let first = cx.int_arg(args, "start")?.unwrap_or(0);
    let (start, end) = match cx.int_arg(args, "end")? {
        Some(end) => (first, end),
        None => (0, first),
    };
    let (low, high) = DType::Int32.int_range();
    if start < low || end - 1 > high || end <= start {
        let (what, help) = match end <= start {
            true => (
                "is empty",
                "its end must be larger than its start; look at the constant that it comes from",
            ),
            false => (
                "exceeds int32",
                "start at 0, and add what is beyond as int64",
            ),
        };
        let message = format!("`arange` from {start} to {end} {what}");
        return Err(cx.error(Code::Value, message).help(help).into());
    }
    let shape = cx.shape(&[end - start])?;
    let value = cx.b.arange(start as i32, TileType::block(Elem::I32, shape));
    Ok(cx.block(value, Ty::Num(DType::Int32)))
}

fn full<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let shape = cx.shape_of(&args.req("shape"))?;
    let value = args.req("value");
    let dtype = match cx.dtype_arg(args, "dtype")? {
        Some(dtype) => dtype,
        None => match cx.type_of(&value)?.0 {
            Ty::Num(dtype) if !matches!(value, Value::Const(_)) => dtype,
            _ => {
                let d = cx.error(Code::Call, "`full` needs a dtype");
                return Err(d.help("as in tl.full((16,), 0, dtype=tl.int32)").into());
            }
        },
    };
    if let Value::Tensor(t) = &value
        && !t.shape.is_scalar()
    {
        return Err(cx.wrong_type("a scalar", *t));
    }
    if let (Some(number), true) = (
        value.as_const().and_then(|c| constant::as_int(&c)),
        dtype.is_int(),
    ) && dtype != DType::Int1
    {
        // What is too large keeps its low bits, as in Triton; what cannot be meant is worth a word.
        if number < -(1 << (dtype.bits() - 1)) || number >= 1 << dtype.bits() {
            cx.check_range(number, dtype)?;
        }
    }
    cx.materialize(&value, dtype, shape).map(Value::Tensor)
}

fn zeros<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let shape = cx.shape_of(&args.req("shape"))?;
    // Without a type the oldest kernels meant f32.
    let dtype = cx.dtype_arg(args, "dtype")?.unwrap_or(DType::Float32);
    cx.zero(Ty::Num(dtype), shape).map(Value::Tensor)
}

fn zeros_like<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (ty, shape) = cx.type_of(&args.req("input"))?;
    cx.zero(ty, shape).map(Value::Tensor)
}

/// `x.to(dtype)`.
fn cast<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(ty) = cx.type_arg(args, "dtype")? else {
        return Err(cx.error(Code::Type, "expected a type, found None").into());
    };
    let rounding = match cx.str_arg(args, "fp_downcast_rounding")?.as_deref() {
        None | Some("rtne") => Rounding::Nearest,
        Some("rtz") => Rounding::Zero,
        Some(other) => {
            let message = format!("unknown rounding \"{other}\"");
            return Err(cx
                .error(Code::Value, message)
                .help("it is \"rtne\" or \"rtz\"")
                .into());
        }
    };
    let value = args.req("input");
    if cx.bool_arg(args, "bitcast", false)? {
        let t = cx.tensor(&value)?;
        return cx.bitcast(t, ty).map(Value::Tensor);
    }
    if let (Some(c), Ty::Num(dtype)) = (value.as_const(), ty) {
        let known = cx.typed(&c)?;
        if let Some(known) = constant::convert(known.number, dtype)
            && rounding == Rounding::Nearest
        {
            return Ok(Value::Known(known));
        }
    }
    let t = cx.tensor_arg(args, "input")?;
    if args.get("fp_downcast_rounding").is_some() {
        let narrows = match (t.ty, ty) {
            (Ty::Num(a), Ty::Num(b)) => a.is_float() && b.is_float() && a.bits() > b.bits(),
            _ => false,
        };
        if !narrows && t.ty != ty {
            let message = format!(
                "a rounding is for narrower floats, here {} becomes {ty}",
                t.ty
            );
            return Err(cx.error(Code::Value, message).into());
        }
    }
    cx.cast(t, ty, rounding).map(Value::Tensor)
}

fn to_tensor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let value = args.req("x");
    match value {
        Value::Const(_) => cx.settle(value),
        value => cx.tensor(&value).map(Value::Tensor),
    }
}

fn constexpr<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let range = cx.range;
    if let Some(at) = cx.frame().index.changed_constexprs()
        && cx.frame().host
    {
        let place = cx.place_of(at);
        let message = format!("{place} sets the `value` of a `constexpr`, nobody knows of which");
        let d = cx.error(Code::Name, message);
        return Err(d
            .help("make another one, and leave `.value` as it is")
            .into());
    }
    let value = args.req("value");
    // Triton wraps data, too, and unwraps it again wherever it is used.
    if matches!(value, Value::Tensor(_)) && !cx.frame().host {
        return Ok(value);
    }
    cx.charge(cx.wrapped.len() / 8)?;
    if let Value::Const(c) = &value
        && cx.frame().host
        && !cx.wrapped.contains(c)
    {
        cx.wrapped.push(c.clone());
    }
    cx.require_constant(value, range)
}

fn no_tensor<'m>(cx: &mut Lower<'m>, _args: &Args<'m>) -> Res<Value<'m>> {
    let d = cx.error(Code::Unsupported, "blocks are not made by `tl.tensor`");
    Err(d.help("use tl.full, tl.arange or tl.load").into())
}
