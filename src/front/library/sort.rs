//! Sorting, reversing and counting, by the compositions of [`crate::ir::compose`].

use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::Rounding;
use crate::ir::compose::{self, ComposeError, SortOrder};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "sort"("x; dim descending") |cx, args| {
        let (t, order) = sortable(cx, args, false)?;
        let sorted = compose::sort(&mut cx.b, t.value, order);
        let value = made(cx, sorted)?;
        Ok(cx.block(value, t.ty))
    };
    "topk"("x k; dim descending") top;
    "bitonic_merge"("x; dim descending") |cx, args| {
        let (t, order) = sortable(cx, args, false)?;
        let merged = compose::bitonic_merge(&mut cx.b, t.value, order);
        let value = made(cx, merged)?;
        Ok(cx.block(value, t.ty))
    };
    "flip"("x; dim") |cx, args| {
        let t = block(cx, args, "x")?;
        let dim = cx.int_arg(args, "dim")?.unwrap_or(-1);
        let dim = cx.axis(dim, t.shape.rank())?;
        let flipped = compose::flip(&mut cx.b, t.value, dim);
        let value = made(cx, flipped)?;
        Ok(cx.block(value, t.ty))
    };
    "histogram"("input num_bins; mask") histogram;
};

/// What a composition refuses, told where the call stands.
fn made<'m, T>(cx: &Lower<'m>, result: Result<T, ComposeError>) -> Res<T> {
    result.map_err(|e| Stop::from(cx.error(Code::Value, e.to_string())))
}

fn block<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Tensor> {
    let t = cx.tensor_arg(args, name)?;
    match t.shape.is_scalar() {
        true => Err(cx.wrong_type("a block", t)),
        false => Ok(t),
    }
}

/// A block whose last dimension can be sorted, and the order.
fn sortable<'m>(cx: &mut Lower<'m>, args: &Args<'m>, down: bool) -> Res<(Tensor, SortOrder)> {
    let t = block(cx, args, "x")?;
    let rank = t.shape.rank();
    let dim = cx.int_arg(args, "dim")?.unwrap_or(-1);
    if usize::from(cx.axis(dim, rank)?) != rank - 1 {
        let message = "only the last dimension can be sorted".to_owned();
        let d = cx.arg_error(args, "dim", Code::Value, message);
        return Err(d.help("turn the block with tl.trans").into());
    }
    if t.ty == Ty::Num(DType::Float8e4b15) {
        return Err(cx.wrong_type("a format that can be compared", t));
    }
    let order = SortOrder {
        descending: cx.bool_arg(args, "descending", down)?,
        unsigned: t.ty.dtype().is_some_and(|d| !d.is_signed()),
    };
    Ok((t, order))
}

/// The first `k` in order. Where that drops elements, small types become those of a maximum, as in Triton.
fn top<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (t, order) = sortable(cx, args, true)?;
    let count = cx.int_arg(args, "k")?.unwrap_or(0);
    let all = t.shape.extent(t.shape.rank() - 1);
    let Ok(count) = u64::try_from(count) else {
        let message = format!("{count} elements cannot be kept");
        return Err(cx.arg_error(args, "k", Code::Value, message).into());
    };
    let first = compose::top(&mut cx.b, t.value, count, order);
    let value = made(cx, first)?;
    let kept = Tensor {
        value,
        shape: cx.b.ty(value).shape,
        ..t
    };
    let ty = match t.ty {
        Ty::Num(DType::Float16 | DType::Bfloat16) if count < all => Ty::Num(DType::Float32),
        Ty::Num(d) if d.is_int() && d.bits() < 32 && count < all => Ty::Num(DType::Int32),
        ty => ty,
    };
    cx.cast(kept, ty, Rounding::Nearest).map(Value::Tensor)
}

fn histogram<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = block(cx, args, "input")?;
    let Some(dtype) = t.ty.dtype().filter(|d| d.is_int()) else {
        return Err(cx.wrong_type("a block of integers", t));
    };
    // A negative number is in no bin.
    let t = match (dtype.bits(), dtype.is_signed()) {
        (..32, true) => cx.cast(t, Ty::Num(DType::Int32), Rounding::Nearest)?,
        (..32, false) => cx.cast(t, Ty::Num(DType::Uint32), Rounding::Nearest)?,
        _ => t,
    };
    let mask = match args.get("mask").cloned() {
        Some(mask) => Some(cx.materialize(&mask, DType::Int1, t.shape)?.value),
        None => None,
    };
    let bins = cx.int_arg(args, "num_bins")?.unwrap_or(0);
    let Ok(bins) = u64::try_from(bins) else {
        let message = format!("there cannot be {bins} bins");
        return Err(cx.arg_error(args, "num_bins", Code::Value, message).into());
    };
    let counted = compose::histogram(&mut cx.b, t.value, bins, mask);
    let value = made(cx, counted)?;
    Ok(cx.block(value, Ty::Num(DType::Int32)))
}
