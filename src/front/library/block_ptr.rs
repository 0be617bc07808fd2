//! Block pointers and tensor descriptors: tiles of a tensor in memory, named by offsets.
//!
//! Both are tuples of numbers (base, extents, strides, offsets) with a mark that says what they are, so that they pass
//! through loops, branches and calls as tuples do. An access becomes one of pointers with a mask, by
//! [`crate::ir::tensor_ptr`]. This is what both share, and the functions of block pointers; those of descriptors are in
//! [`super::descriptor`].

use ruff_python_ast::Operator;

use super::{Args, Builtin, rows};
use crate::front::call::Argument;
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Mark, Tensor, Tuple, Value};
use crate::ir::entities;
use crate::ir::tensor_ptr::BlockPtr;
use crate::linear_layout::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "make_block_ptr"("base shape strides offsets block_shape order") make_block_ptr;
    "advance"("base offsets") advance;
};

/// Places of the parts in the tuple.
pub(super) const BASE: usize = 0;
pub(super) const SHAPE: usize = 1;
pub(super) const STRIDES: usize = 2;
/// Where the offsets are; what a loop changes.
pub(crate) const OFFSETS: usize = 3;

pub(super) fn items<'m>(cx: &Lower<'m>, args: &Args<'m>, name: &str) -> Res<Vec<Value<'m>>> {
    match args.req(name) {
        Value::Tuple(tuple) => Ok(tuple.items.clone()),
        Value::Poison => Err(Stop::Reported),
        other => {
            let message = format!("`{name}` is a tuple, found {}", other.describe());
            Err(cx.arg_error(args, name, Code::Type, message).into())
        }
    }
}

/// Integers of 64 bits; known ones stay known.
pub(super) fn wide<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Value<'m>> {
    let mut numbers = Vec::new();
    for item in items(cx, args, name)? {
        let (ty, shape) = cx.type_of(&item)?;
        if ty.dtype().is_none_or(|d| !d.is_int()) || !shape.is_scalar() {
            let message = format!("`{name}` is made of integers, found {}", item.describe());
            return Err(cx.arg_error(args, name, Code::Type, message).into());
        }
        let known = item.as_const().and_then(|c| constant::as_int(&c));
        numbers.push(
            match known.and_then(|n| {
                constant::convert(crate::front::value::PyNumber::Int(n), DType::Int64)
            }) {
                Some(known) => Value::Known(known),
                None => Value::Tensor(cx.materialize(&item, DType::Int64, shape)?),
            },
        );
    }
    Ok(Value::tuple(numbers))
}

fn make_block_ptr<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let offsets = wide(cx, args, "offsets")?;
    let order = items(cx, args, "order")?;
    let order = order
        .iter()
        .map(|v| v.as_const().and_then(|c| constant::as_int(&c)));
    let mut order: Vec<i128> = order.map(|n| n.unwrap_or(-1)).collect();
    order.sort_unstable();
    if !order.iter().copied().eq(0..order.len() as i128) {
        let message = "`order` names each dimension once, the one that runs fastest first";
        let d = cx.arg_error(args, "order", Code::Value, message.to_owned());
        return Err(d.into());
    }
    make(cx, args, Mark::BlockPointer, offsets)
}

pub(super) fn make<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    mark: Mark,
    offsets: Value<'m>,
) -> Res<Value<'m>> {
    let base = cx.tensor_arg(args, "base")?;
    if !base.ty.is_ptr() || !base.shape.is_scalar() {
        let message = format!(
            "`base` is one pointer, found {}",
            Value::Tensor(base).describe()
        );
        return Err(cx.arg_error(args, "base", Code::Type, message).into());
    }
    let block = cx.shape_of(&args.req("block_shape"))?;
    let (shape, strides) = (wide(cx, args, "shape")?, wide(cx, args, "strides")?);
    let rank = |value: &Value<'m>| match value {
        Value::Tuple(tuple) => tuple.items.len(),
        _ => 0,
    };
    let ranks = [rank(&shape), rank(&strides), rank(&offsets)];
    let described = if mark == Mark::BlockPointer { 3 } else { 2 };
    if ranks[..described].iter().any(|&r| r != block.rank()) {
        let message = "shape, strides, offsets and block shape have one entry for each dimension";
        return Err(cx.error(Code::Shape, message).into());
    }
    let parts = vec![Value::Tensor(base), shape, strides, offsets];
    let mut tuple = Tuple::new(parts, None, Vec::new());
    tuple.mark = Some((mark, block));
    Ok(Value::Tuple(tuple.into()))
}

fn advance<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Value::Tuple(tuple) = args.req("base") else {
        return Err(no_block(cx, args, "base", "a block pointer"));
    };
    let Some((Mark::BlockPointer, _)) = tuple.mark else {
        return Err(no_block(cx, args, "base", "a block pointer"));
    };
    let steps = match wide(cx, args, "offsets")? {
        Value::Tuple(steps) => steps,
        _ => return Err(Stop::Reported),
    };
    let mut moved = (*tuple).clone();
    if let Some(Value::Tuple(offsets)) = tuple.items.get(OFFSETS) {
        if offsets.items.len() != steps.items.len() {
            let message = format!(
                "{} steps for {} dimensions",
                steps.items.len(),
                offsets.items.len()
            );
            return Err(cx.arg_error(args, "offsets", Code::Shape, message).into());
        }
        let mut sums = Vec::new();
        for (offset, step) in offsets.items.iter().zip(&steps.items) {
            let still = step.as_const() == Some(Const::Int(0));
            sums.push(if still {
                offset.clone()
            } else {
                cx.binary(Operator::Add, offset, step)?
            });
        }
        moved.items[OFFSETS] = Value::tuple(sums);
    }
    Ok(Value::Tuple(moved.into()))
}

pub(super) fn no_block<'m>(cx: &Lower<'m>, args: &Args<'m>, name: &str, expected: &str) -> Stop {
    match args.req(name) {
        Value::Poison => Stop::Reported,
        other => {
            let message = format!("expected {expected}, found {}", other.describe());
            cx.arg_error(args, name, Code::Type, message).into()
        }
    }
}

/// The block at coordinates, in the IR's terms.
pub(super) fn at<'m>(
    cx: &mut Lower<'m>,
    tuple: &Tuple<'m>,
    offsets: &[Value<'m>],
) -> Res<BlockPtr> {
    let (Some((_, block)), Some(Value::Tensor(base))) = (tuple.mark, tuple.items.get(BASE)) else {
        return Err(Stop::Reported);
    };
    let mut words = |items: &[Value<'m>]| -> Res<Vec<entities::Value>> {
        let one = |item| cx.materialize(item, DType::Int64, Shape::SCALAR);
        items.iter().map(one).map(|t| Ok(t?.value)).collect()
    };
    let shape = words(part(tuple, SHAPE))?;
    let strides = words(part(tuple, STRIDES))?;
    let offsets = words(offsets)?;
    let order: Vec<usize> = (0..block.rank()).collect();
    let parts = (&shape[..], &strides[..]);
    BlockPtr::new(&mut cx.b, base.value, parts, &offsets, block, &order)
        .map_err(|e| cx.error(Code::Shape, e.to_string()).into())
}

/// A part of the tuple that is a tuple.
pub(super) fn part<'a, 'm>(tuple: &'a Tuple<'m>, i: usize) -> &'a [Value<'m>] {
    match tuple.items.get(i) {
        Some(Value::Tuple(part)) => &part.items,
        _ => &[],
    }
}

/// Pointers to the elements of a tile, and whether each is inside of the checked dimensions.
pub(super) fn tile<'m>(
    cx: &mut Lower<'m>,
    tuple: &Tuple<'m>,
    offsets: &[Value<'m>],
    checked: &[usize],
) -> Res<TileAccess<'m>> {
    let block = at(cx, tuple, offsets)?;
    let inside = block
        .inside(&mut cx.b, checked)
        .map_err(|e| cx.error(Code::Shape, e.to_string()))?;
    let pointers = block.pointers(&mut cx.b);
    let ty = match tuple.items.get(BASE) {
        Some(Value::Tensor(base)) => base.ty,
        _ => Ty::ptr(DType::Int8),
    };
    Ok(TileAccess {
        pointers: cx.block(pointers, ty),
        inside: inside.map(|mask| cx.block(mask, Ty::Num(DType::Int1))),
    })
}

/// Pointers to the elements of a tile, and whether each is inside where that is asked for.
pub(super) struct TileAccess<'m> {
    pub(super) pointers: Value<'m>,
    pub(super) inside: Option<Value<'m>>,
}

/// The dimensions that `boundary_check` names.
fn checked_dims<'m>(cx: &Lower<'m>, args: &Args<'m>, rank: usize) -> Res<Vec<usize>> {
    let given = match args.get("boundary_check") {
        None => return Ok(Vec::new()),
        Some(Value::Tuple(tuple)) => tuple.items.clone(),
        Some(single) => vec![single.clone()],
    };
    let mut dims = Vec::new();
    for dim in given {
        match dim.as_const().and_then(|c| constant::as_int(&c)) {
            Some(n) => dims.push(usize::from(cx.axis(n, rank)?)),
            None => {
                let message = format!(
                    "`boundary_check` names dimensions, found {}",
                    dim.describe()
                );
                return Err(cx
                    .arg_error(args, "boundary_check", Code::Constant, message)
                    .into());
            }
        }
    }
    Ok(dims)
}

/// What is read outside of the tensor.
pub(super) fn padding<'m>(cx: &mut Lower<'m>, dtype: DType, nan: bool) -> Res<Value<'m>> {
    if nan && !dtype.is_float() {
        let message = format!("{dtype} has no NaN to pad with");
        return Err(cx.error(Code::Type, message).into());
    }
    Ok(Value::Const(if nan {
        Const::Float(f64::NAN)
    } else {
        Const::Int(0)
    }))
}

/// The tuple of a block pointer that `tl.load` or `tl.store` got, with its tile.
fn pointed<'m>(cx: &mut Lower<'m>, args: &Args<'m>, tuple: &Tuple<'m>) -> Res<TileAccess<'m>> {
    if args.get("mask").is_some() || args.get("other").is_some() {
        let d = cx.error(Code::Call, "a block pointer takes no mask");
        return Err(d
            .help("name dimensions to be checked: `boundary_check=(0, 1)`")
            .into());
    }
    let Some((Mark::BlockPointer, block)) = tuple.mark else {
        return Err(no_block(cx, args, "pointer", "a pointer"));
    };
    let dims = checked_dims(cx, args, block.rank())?;
    tile(cx, tuple, part(tuple, OFFSETS), &dims)
}

pub(super) fn element<'m>(tuple: &Tuple<'m>) -> DType {
    match tuple.items.get(BASE) {
        Some(Value::Tensor(Tensor {
            ty: Ty::Ptr { to, .. },
            ..
        })) => *to,
        _ => DType::Float32,
    }
}

/// Whether NaN pads.
pub(super) fn pads_nan<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<bool> {
    match cx.str_arg(args, "padding_option")?.as_deref() {
        None | Some("" | "zero") => Ok(false),
        Some("nan") => Ok(true),
        Some(other) => {
            let message = format!("unknown padding \"{other}\"");
            let d = cx.arg_error(args, "padding_option", Code::Value, message);
            Err(d.help("it is \"zero\" or \"nan\"").into())
        }
    }
}

/// `tl.load` of a block pointer.
pub(super) fn load<'m>(cx: &mut Lower<'m>, args: &Args<'m>, tuple: &Tuple<'m>) -> Res<Value<'m>> {
    let tile = pointed(cx, args, tuple)?;
    let nan = pads_nan(cx, args)?;
    read(cx, args, tile, element(tuple), nan)
}

pub(super) fn read<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    tile: TileAccess<'m>,
    dtype: DType,
    nan: bool,
) -> Res<Value<'m>> {
    let mut given = vec![cx.argument(tile.pointers)];
    if let Some(inside) = tile.inside {
        given.push(cx.argument(inside));
        let other = padding(cx, dtype, nan)?;
        given.push(cx.argument(other));
    }
    given.extend(handed_on(
        cx,
        args,
        &["cache_modifier", "eviction_policy", "volatile"],
    ));
    super::call(cx, "load", given)
}

/// Options of an access that concern block pointers and plain ones alike.
pub(super) fn handed_on<'m>(
    cx: &Lower<'m>,
    args: &Args<'m>,
    names: &[&'static str],
) -> Vec<Argument<'m>> {
    let given = names.iter().filter_map(|&name| {
        let mut argument = cx.argument(args.get(name)?.clone());
        argument.name = Some(name);
        Some(argument)
    });
    given.collect()
}

/// `tl.store` to a block pointer.
pub(super) fn store<'m>(cx: &mut Lower<'m>, args: &Args<'m>, tuple: &Tuple<'m>) -> Res<Value<'m>> {
    let tile = pointed(cx, args, tuple)?;
    write(cx, args, "store", tile)
}

/// A store or an atomic operation on a tile.
pub(super) fn write<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    op: &str,
    tile: TileAccess<'m>,
) -> Res<Value<'m>> {
    let mut given = vec![cx.argument(tile.pointers), cx.argument(args.req("value"))];
    if let Some(inside) = tile.inside {
        given.push(cx.argument(inside));
    }
    if op == "store" {
        given.extend(handed_on(cx, args, &["cache_modifier", "eviction_policy"]));
    } else {
        let mut sem = cx.argument(Value::Const(Const::Str("relaxed".into())));
        sem.name = Some("sem");
        given.push(sem);
    }
    super::call(cx, op, given)
}

/// `.shape` and its like of block pointers and descriptors.
pub(crate) fn attribute<'m>(tuple: &Tuple<'m>, name: &str) -> Option<Value<'m>> {
    let (mark, block) = tuple.mark?;
    let extents = || block.extents().map(|e| Value::int(i128::from(e))).collect();
    match (name, mark) {
        ("shape", Mark::Descriptor { .. }) => tuple.items.get(SHAPE).cloned(),
        ("strides", Mark::Descriptor { .. }) => tuple.items.get(STRIDES).cloned(),
        ("block_shape", Mark::Descriptor { .. }) => Some(Value::tuple(extents())),
        ("dtype", Mark::Descriptor { .. }) => Some(Value::ty(Ty::Num(element(tuple)))),
        ("dtype" | "type", Mark::BlockPointer) => Some(Value::ty(Ty::ptr(element(tuple)))),
        _ => None,
    }
}
