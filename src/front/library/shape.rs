//! Functions that change shapes and the places of elements.

use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, show};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::List;
use crate::linear_layout::shape::{MAX_RANK, Shape};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "expand_dims"("input axis") |cx, args| expand(cx, args, "axis");
    "unsqueeze"("input dim") |cx, args| expand(cx, args, "dim");
    "squeeze"("input dim") squeeze;
    "broadcast_to"("input *shape") broadcast_to;
    "broadcast"("input other") broadcast;
    "reshape"("input *shape; can_reorder") reshape;
    "view"("input *shape") reshape;
    "ravel"("x; can_reorder") |cx, args| {
        let t = cx.tensor_arg(args, "x")?;
        let shape = cx.shape(&[t.shape.elements() as i128])?;
        reshaped(cx, t, shape)
    };
    "item"("input") |cx, args| {
        let t = cx.tensor_arg(args, "input")?;
        reshaped(cx, t, Shape::SCALAR)
    };
    "trans"("input *dims") trans;
    "permute"("input *dims") permute;
    "join"("a b") join;
    "split"("a") split;
    "cat"("input other; can_reorder dim") cat;
    "gather"("src index axis") gather;
};

/// Constants that name dimensions.
fn dims<'m>(cx: &Lower<'m>, given: &[Value<'m>], rank: usize) -> Res<Vec<u8>> {
    let mut places = Vec::new();
    for dim in given {
        match dim.as_const().and_then(|c| constant::as_int(&c)) {
            Some(number) => places.push(cx.axis(number, rank)?),
            None if matches!(dim, Value::Poison) => return Err(Stop::Reported),
            None => {
                let message = format!("a dimension is a constant, found {}", dim.describe());
                return Err(cx.error(Code::Constant, message).into());
            }
        }
    }
    Ok(places)
}

/// A number or the elements of a tuple.
fn one_or_more<'m>(value: Value<'m>) -> Vec<Value<'m>> {
    match value {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    }
}

/// Adds dimensions of extent 1 at the places that the axes have in the result.
fn expand<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let axes = one_or_more(args.req(name));
    let rank = t.shape.rank() + axes.len();
    if rank > MAX_RANK {
        let message = format!("a block has at most {MAX_RANK} dimensions");
        return Err(cx.error(Code::Shape, message).into());
    }
    let mut places = dims(cx, &axes, rank)?;
    places.sort_unstable();
    if places.windows(2).any(|w| w[0] == w[1]) {
        return Err(cx.error(Code::Value, "an axis is given twice").into());
    }
    let mut value = t.value;
    for place in places {
        value = cx.b.expand_dims(value, place);
    }
    Ok(cx.block(value, t.ty))
}

fn squeeze<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let dim = dims(cx, &one_or_more(args.req("dim")), t.shape.rank())?;
    if let Some(&dim) = dim.iter().find(|&&d| t.shape.extent(usize::from(d)) != 1) {
        let extent = t.shape.extent(usize::from(dim));
        let message = format!("dimension {dim} has extent {extent} and cannot go");
        return Err(cx.error(Code::Shape, message).into());
    }
    let kept = (0..t.shape.rank()).filter(|&d| !dim.contains(&(d as u8)));
    let kept: Vec<i128> = kept.map(|d| i128::from(t.shape.extent(d))).collect();
    let shape = cx.shape(&kept)?;
    reshaped(cx, t, shape)
}

fn broadcast_to<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let shape = cx.shape_of(&Value::tuple(args.rest_items()))?;
    cx.broadcast_to(t, shape).map(Value::Tensor)
}

fn broadcast<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = (cx.tensor_arg(args, "input")?, cx.tensor_arg(args, "other")?);
    let (x, y) = together(cx, x, y)?;
    Ok(Value::tuple(vec![Value::Tensor(x), Value::Tensor(y)]))
}

/// Both brought to one shape.
fn together<'m>(cx: &mut Lower<'m>, x: Tensor, y: Tensor) -> Res<(Tensor, Tensor)> {
    let shape = cx.common_shape(x.shape, y.shape)?;
    Ok((cx.broadcast_to(x, shape)?, cx.broadcast_to(y, shape)?))
}

/// The same elements in row-major order; a promise that the order does not matter changes nothing.
fn reshape<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let shape = cx.shape_of(&Value::tuple(args.rest_items()))?;
    reshaped(cx, t, shape)
}

/// The same elements in row-major order.
pub(super) fn reshaped<'m>(cx: &mut Lower<'m>, t: Tensor, shape: Shape) -> Res<Value<'m>> {
    if t.shape == shape {
        return Ok(Value::Tensor(t));
    }
    if t.shape.elements() != shape.elements() {
        let (from, to) = (t.shape.elements(), shape.elements());
        let message = format!(
            "a block of {from} elements ({}) cannot have the shape {shape:?}, which has {to}",
            show(t.ty, t.shape)
        );
        return Err(cx.error(Code::Shape, message).into());
    }
    let ty = cx.tile_type(t.ty, shape)?;
    let value = cx.b.reshape(t.value, ty);
    Ok(cx.block(value, t.ty))
}

/// Without dimensions the last two are exchanged.
fn trans<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if !args.rest_items().is_empty() {
        return permute(cx, args);
    }
    let t = cx.tensor_arg(args, "input")?;
    let rank = t.shape.rank();
    if rank < 2 {
        return Err(cx.wrong_type("a block of 2 or more dimensions", t));
    }
    let mut order: List = (0..rank as u32).collect();
    order.swap(rank - 1, rank - 2);
    let value = cx.b.permute(t.value, order);
    Ok(cx.block(value, t.ty))
}

fn permute<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let rank = t.shape.rank();
    let order = dims(cx, &args.rest_items(), rank)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank as u8) {
        let message = format!("{order:?} does not name each of {rank} dimensions once");
        return Err(cx.error(Code::Value, message).into());
    }
    let order: List = order.into_iter().map(u32::from).collect();
    let value = cx.b.permute(t.value, order);
    Ok(cx.block(value, t.ty))
}

/// Two blocks of one type, brought to one shape.
fn alike<'m>(cx: &mut Lower<'m>, args: &Args<'m>, a: &str, b: &str) -> Res<(Tensor, Tensor)> {
    let (x, y) = (cx.tensor_arg(args, a)?, cx.tensor_arg(args, b)?);
    if x.ty != y.ty {
        let message = format!(
            "`{}` puts blocks of one type together, found {} and {}",
            args.builtin.name, x.ty, y.ty
        );
        let d = cx.error(Code::Type, message);
        return Err(d.help("cast one of them with `.to(...)`").into());
    }
    Ok((x, y))
}

fn room<'m>(cx: &Lower<'m>, t: Tensor) -> Res<()> {
    if t.shape.rank() >= MAX_RANK {
        let message = format!("a block has at most {MAX_RANK} dimensions");
        return Err(cx.error(Code::Shape, message).into());
    }
    let twice = Shape::from_log2(&[&[1], t.shape.log2()].concat());
    let twice = twice.map(|_| ());
    twice.map_err(|e| cx.error(Code::Shape, e.to_string()).into())
}

fn join<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = alike(cx, args, "a", "b")?;
    let (x, y) = together(cx, x, y)?;
    room(cx, x)?;
    let value = cx.b.join(x.value, y.value);
    Ok(cx.block(value, x.ty))
}

fn split<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "a")?;
    let last = t.shape.rank().checked_sub(1);
    if last.is_none_or(|last| t.shape.extent(last) != 2) {
        return Err(cx.wrong_type("a block whose last extent is 2", t));
    }
    let halves = [0, 1].map(|index| {
        let value = cx.b.split(t.value, index);
        cx.block(value, t.ty)
    });
    Ok(Value::tuple(halves.to_vec()))
}

fn cat<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = alike(cx, args, "input", "other")?;
    let dim = cx.int_arg(args, "dim")?.unwrap_or(0);
    let dim = cx.axis(dim, x.shape.rank())?;
    if x.shape != y.shape {
        let message = format!(
            "`cat` puts blocks of one shape together, found {:?} and {:?}",
            x.shape, y.shape
        );
        return Err(cx.error(Code::Shape, message).into());
    }
    room(cx, x)?;
    let value = cx.b.cat(x.value, y.value, dim);
    Ok(cx.block(value, x.ty))
}

fn gather<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (t, index) = (cx.tensor_arg(args, "src")?, cx.tensor_arg(args, "index")?);
    if index
        .ty
        .dtype()
        .is_none_or(|d| !d.is_int() || d == DType::Int1)
    {
        return Err(cx.wrong_type("an index of integers", index));
    }
    let rank = t.shape.rank();
    let axis = cx.int_arg(args, "axis")?.unwrap_or(0);
    let axis = cx.axis(axis, rank)?;
    let at = usize::from(axis);
    let same = (0..rank).all(|d| d == at || t.shape.extent(d) == index.shape.extent(d));
    if index.shape.rank() != rank || !same {
        let message = format!(
            "an index of shape {:?} into a block of shape {:?} along dimension {axis}",
            index.shape, t.shape
        );
        let d = cx.error(Code::Shape, message);
        return Err(d.help("they differ in that dimension alone").into());
    }
    let value = cx.b.gather(t.value, index.value, axis);
    Ok(cx.block(value, t.ty))
}
