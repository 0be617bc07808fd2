//! Block pointers and tensor descriptors: tiles of a tensor in memory, named by offsets.
//!
//! Both are tuples of numbers (base, extents, strides, offsets) with a mark that says what they are, so that they pass
//! through loops, branches and calls as tuples do. An access becomes one of pointers with a mask, by
//! [`crate::ir::tensor_ptr`]. A descriptor promises what bulk transfers need: a base at a multiple of 16 bytes, rows that
//! many bytes apart.

use std::rc::Rc;

use ruff_python_ast::{CmpOp, Operator};

use super::{Args, Builtin, rows};
use crate::front::call::Argument;
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::signature::HostDescriptor;
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Mark, Tensor, Tuple, Value};
use crate::ir::attrs::Rounding;
use crate::ir::entities;
use crate::ir::tensor_ptr::BlockPtr;
use crate::ir::types::{Elem, TileType};
use crate::linear::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "make_block_ptr"("base shape strides offsets block_shape order") make_block_ptr;
    "advance"("base offsets") advance;
    "make_tensor_descriptor"("base shape strides block_shape; padding_option") make_descriptor;
    "load_tensor_descriptor"("desc offsets; cache_modifier eviction_policy") load_descriptor;
    "store_tensor_descriptor"("desc offsets value") store_descriptor;
};

/// Methods of descriptors.
pub(super) const METHODS: &[Builtin] = rows! { Descriptor;
    "load"("desc offsets; cache_modifier eviction_policy") load_descriptor;
    "store"("desc offsets value") store_descriptor;
    "gather"("desc x_offsets y_offset; cache_modifier eviction_policy") gather_rows;
    "scatter"("desc value x_offsets y_offset") scatter_rows;
    "atomic_add"("desc offsets value") atomic;
    "atomic_min"("desc offsets value") atomic;
    "atomic_max"("desc offsets value") atomic;
    "atomic_and"("desc offsets value") atomic;
    "atomic_or"("desc offsets value") atomic;
    "atomic_xor"("desc offsets value") atomic;
};

/// Places of the parts in the tuple.
const BASE: usize = 0;
const SHAPE: usize = 1;
const STRIDES: usize = 2;
/// Where the offsets are; what a loop changes.
pub(crate) const OFFSETS: usize = 3;

fn items<'m>(cx: &Lower<'m>, args: &Args<'m>, name: &str) -> Res<Vec<Value<'m>>> {
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
fn wide<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Value<'m>> {
    let mut numbers = Vec::new();
    for item in items(cx, args, name)? {
        let (ty, shape) = cx.type_of(&item)?;
        if ty.dtype().is_none_or(|d| !d.is_int()) || !shape.is_scalar() {
            let message = format!("`{name}` is made of integers, found {}", item.describe());
            return Err(cx.arg_error(args, name, Code::Type, message).into());
        }
        let known = item.as_const().and_then(|c| constant::as_int(&c));
        numbers.push(
            match known
                .and_then(|n| constant::convert(crate::front::value::Number::Int(n), DType::Int64))
            {
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

fn make_descriptor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let nan = pads_nan(cx, args)?;
    let mark = Mark::Descriptor { nan };
    let made = make(cx, args, mark, Value::tuple(Vec::new()))?;
    let Value::Tuple(tuple) = &made else {
        return Ok(made);
    };
    if nan && !element(tuple).is_float() {
        padding(cx, element(tuple), nan)?;
    }
    let last = part(tuple, STRIDES).last().and_then(Value::as_const);
    if last.is_some_and(|last| last != Const::Int(1)) {
        let message = "the last dimension of a described tensor has stride 1";
        let d = cx.arg_error(args, "strides", Code::Value, message.to_owned());
        return Err(d.into());
    }
    let mut tuple = (**tuple).clone();
    if let Some(Value::Tensor(base)) = tuple.items.get(BASE).cloned() {
        let strides = aligned(cx, base.ty, part(&tuple, STRIDES).to_vec())?;
        tuple.items[STRIDES] = Value::tuple(strides);
        let value = cx.b.assume_multiple(base.value, [16].into_iter().collect());
        tuple.items[BASE] = cx.block(value, base.ty);
    }
    Ok(Value::Tuple(tuple.into()))
}

fn make<'m>(cx: &mut Lower<'m>, args: &Args<'m>, mark: Mark, offsets: Value<'m>) -> Res<Value<'m>> {
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

fn no_block<'m>(cx: &Lower<'m>, args: &Args<'m>, name: &str, expected: &str) -> Stop {
    match args.req(name) {
        Value::Poison => Stop::Reported,
        other => {
            let message = format!("expected {expected}, found {}", other.describe());
            cx.arg_error(args, name, Code::Type, message).into()
        }
    }
}

/// The block at coordinates, in the IR's terms.
fn at<'m>(cx: &mut Lower<'m>, tuple: &Tuple<'m>, offsets: &[Value<'m>]) -> Res<BlockPtr> {
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
fn part<'a, 'm>(tuple: &'a Tuple<'m>, i: usize) -> &'a [Value<'m>] {
    match tuple.items.get(i) {
        Some(Value::Tuple(part)) => &part.items,
        _ => &[],
    }
}

/// Pointers to the elements of a tile, and whether each is inside of the checked dimensions.
fn tile<'m>(
    cx: &mut Lower<'m>,
    tuple: &Tuple<'m>,
    offsets: &[Value<'m>],
    checked: &[usize],
) -> Res<Tile<'m>> {
    let block = at(cx, tuple, offsets)?;
    let inside = block
        .inside(&mut cx.b, checked)
        .map_err(|e| cx.error(Code::Shape, e.to_string()))?;
    let pointers = block.pointers(&mut cx.b);
    let ty = match tuple.items.get(BASE) {
        Some(Value::Tensor(base)) => base.ty,
        _ => Ty::ptr(DType::Int8),
    };
    Ok(Tile {
        pointers: cx.block(pointers, ty),
        inside: inside.map(|mask| cx.block(mask, Ty::Num(DType::Int1))),
    })
}

/// Pointers to the elements of a tile, and whether each is inside where that is asked for.
struct Tile<'m> {
    pointers: Value<'m>,
    inside: Option<Value<'m>>,
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
fn padding<'m>(cx: &mut Lower<'m>, dtype: DType, nan: bool) -> Res<Value<'m>> {
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
fn pointed<'m>(cx: &mut Lower<'m>, args: &Args<'m>, tuple: &Tuple<'m>) -> Res<Tile<'m>> {
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

fn element<'m>(tuple: &Tuple<'m>) -> DType {
    match tuple.items.get(BASE) {
        Some(Value::Tensor(Tensor {
            ty: Ty::Ptr { to, .. },
            ..
        })) => *to,
        _ => DType::Float32,
    }
}

/// Whether NaN pads.
fn pads_nan<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<bool> {
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

fn read<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    tile: Tile<'m>,
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
fn handed_on<'m>(cx: &Lower<'m>, args: &Args<'m>, names: &[&'static str]) -> Vec<Argument<'m>> {
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
fn write<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: &str, tile: Tile<'m>) -> Res<Value<'m>> {
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

/// A descriptor among the arguments.
fn descriptor<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<(Rc<Tuple<'m>>, bool, Shape)> {
    if let Value::Tuple(tuple) = args.req("desc")
        && let Some((Mark::Descriptor { nan }, block)) = tuple.mark
    {
        return Ok((tuple, nan, block));
    }
    Err(no_block(cx, args, "desc", "a tensor descriptor"))
}

/// The descriptor and the tile at the offsets.
fn described<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tile<'m>, DType, bool)> {
    let (tuple, nan, block) = descriptor(cx, args)?;
    let offsets = match wide(cx, args, "offsets")? {
        Value::Tuple(offsets) => offsets.items.clone(),
        _ => return Err(Stop::Reported),
    };
    if offsets.len() != block.rank() {
        let message = format!("{} offsets for {} dimensions", offsets.len(), block.rank());
        return Err(cx.arg_error(args, "offsets", Code::Shape, message).into());
    }
    let all: Vec<usize> = (0..block.rank()).collect();
    let tile = tile(cx, &tuple, &offsets, &all)?;
    Ok((tile, element(&tuple), nan))
}

fn load_descriptor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, dtype, nan) = described(cx, args)?;
    read(cx, args, tile, dtype, nan)
}

fn store_descriptor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, _, _) = described(cx, args)?;
    write(cx, args, "store", tile)
}

/// `atomic_add` and its kin on a tile; nothing comes back.
fn atomic<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, _, _) = described(cx, args)?;
    write(cx, args, args.builtin.name, tile)?;
    Ok(Value::NONE)
}

/// Rows of a tensor of two dimensions, named by a block of numbers, from column `y_offset` on.
fn rows_at<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tile<'m>, DType, bool)> {
    let (tuple, nan, block) = descriptor(cx, args)?;
    if block.rank() != 2 || block.extent(0) != 1 {
        let message = format!("a block of one row is gathered and scattered, here {block:?}");
        return Err(cx.arg_error(args, "desc", Code::Shape, message).into());
    }
    let rows = cx.tensor_arg(args, "x_offsets")?;
    if rows.shape.rank() != 1 || rows.ty.dtype().is_none_or(|d| !d.is_int()) {
        return Err(cx.wrong_type("a block of integers of one dimension", rows));
    }
    let rows = cx.cast(rows, Ty::Num(DType::Int64), Rounding::Nearest)?;
    let rows = cx.b.expand_dims(rows.value, 1);
    let rows = cx.block(rows, Ty::Num(DType::Int64));
    let line = cx.shape(&[i128::from(block.extent(1))])?;
    let columns = cx.b.arange(0, TileType::block(Elem::I32, line));
    let columns = cx.b.expand_dims(columns, 0);
    let columns = cx.block(columns, Ty::Num(DType::Int32));
    let columns = cx.binary(Operator::Add, &args.req("y_offset"), &columns)?;
    let mut pointers = tuple.items.get(BASE).cloned().unwrap_or(Value::Poison);
    let mut inside = Value::bool(true);
    for (dim, at) in [rows, columns].iter().enumerate() {
        let one = |i| part(&tuple, i).get(dim).cloned().unwrap_or(Value::Poison);
        let distance = cx.binary(Operator::Mult, at, &one(STRIDES))?;
        pointers = cx.binary(Operator::Add, &pointers, &distance)?;
        let low = cx.compare(CmpOp::GtE, at, &Value::int(0))?;
        let high = cx.compare(CmpOp::Lt, at, &one(SHAPE))?;
        let both = cx.binary(Operator::BitAnd, &low, &high)?;
        inside = cx.binary(Operator::BitAnd, &inside, &both)?;
    }
    let inside = Some(inside);
    Ok((Tile { pointers, inside }, element(&tuple), nan))
}

fn gather_rows<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, dtype, nan) = rows_at(cx, args)?;
    read(cx, args, tile, dtype, nan)
}

fn scatter_rows<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, _, _) = rows_at(cx, args)?;
    write(cx, args, "store", tile)
}

/// A descriptor that the host gives: the kernel gets a pointer, extents and strides as parameters of their own.
pub(crate) fn from_host<'m>(
    cx: &mut Lower<'m>,
    name: &str,
    desc: &HostDescriptor,
) -> Res<Value<'m>> {
    let extents: Vec<i128> = desc.block.iter().map(|&e| i128::from(e)).collect();
    let block = cx.shape(&extents)?;
    let base = Ty::ptr(desc.dtype);
    let elem = cx.tile_type(base, Shape::SCALAR)?;
    let value = cx.b.param_divisible(name, elem, 16);
    let base = Tensor {
        value,
        ty: base,
        shape: Shape::SCALAR,
    };
    let word = |cx: &mut Lower<'m>, what: &str, dim: usize, dtype: DType| -> Res<Value<'m>> {
        let ty = cx.tile_type(Ty::Num(dtype), Shape::SCALAR)?;
        let value = cx.b.param(&format!("{name}_{what}{dim}"), ty);
        let value = cx.block(value, Ty::Num(dtype));
        let t = cx.tensor(&value)?;
        let wide = cx.cast(t, Ty::Num(DType::Int64), Rounding::Nearest)?;
        Ok(Value::Tensor(wide))
    };
    let rank = block.rank();
    let mut shape = Vec::new();
    for dim in 0..rank {
        shape.push(word(cx, "size", dim, DType::Int32)?);
    }
    let mut strides = Vec::new();
    for dim in 0..rank.saturating_sub(1) {
        strides.push(word(cx, "stride", dim, DType::Int64)?);
    }
    strides.push(Value::int(1));
    let strides = aligned(cx, base.ty, strides)?;
    let parts = vec![
        Value::Tensor(base),
        Value::tuple(shape),
        Value::tuple(strides),
        Value::tuple(Vec::new()),
    ];
    let mut tuple = Tuple::new(parts, None, Vec::new());
    tuple.mark = Some((Mark::Descriptor { nan: desc.nan }, block));
    Ok(Value::Tuple(tuple.into()))
}

/// Rows of a described tensor lie 16 bytes apart, or a multiple of that.
fn aligned<'m>(cx: &mut Lower<'m>, base: Ty, mut strides: Vec<Value<'m>>) -> Res<Vec<Value<'m>>> {
    let bytes = base.pointee().map_or(1, |d| d.bits().div_ceil(8));
    let rows = strides.len().saturating_sub(1);
    for stride in strides.iter_mut().take(rows) {
        if let Value::Tensor(t) = stride {
            let values = [16 / bytes.min(16)].into_iter().collect();
            let value = cx.b.assume_multiple(t.value, values);
            *stride = cx.block(value, t.ty);
        }
    }
    Ok(strides)
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
