//! Block pointers and tensor descriptors: tiles of a tensor in memory, named by offsets.
//!
//! Both are tuples of numbers (base, extents, strides, offsets) with a mark that says what they are, so that they pass
//! through loops, branches and calls as tuples do. An access becomes one of pointers with a mask: the coordinates of
//! dimension `d` are `offset[d] + 0, 1, ..`, in 64 bits, and are compared with the extent where that is asked for.

use ruff_python_ast::{CmpOp, Operator};

use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Mark, Tensor, Tuple, Value};
use crate::ir::types::{Elem, TileType};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "make_block_ptr"("base shape strides offsets block_shape order") make_block_ptr;
    "advance"("base offsets") advance;
    "make_tensor_descriptor"("base shape strides block_shape; padding_option") make_descriptor;
    "load_tensor_descriptor"("desc offsets") load_descriptor;
    "store_tensor_descriptor"("desc offsets value") store_descriptor;
};

/// Methods of descriptors.
pub(super) const METHODS: &[Builtin] = rows! { Descriptor;
    "load"("desc offsets") load_descriptor;
    "store"("desc offsets value") store_descriptor;
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
    make(cx, args, Mark::BlockPointer, offsets)
}

fn make_descriptor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let nan = match cx.str_arg(args, "padding_option")?.as_deref() {
        None | Some("" | "zero") => false,
        Some("nan") => true,
        Some(other) => {
            let message = format!("unknown padding \"{other}\"");
            let d = cx.arg_error(args, "padding_option", Code::Value, message);
            return Err(d.help("it is \"zero\" or \"nan\"").into());
        }
    };
    make(cx, args, Mark::Descriptor { nan }, Value::tuple(Vec::new()))
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

/// Pointers to the elements of a tile, and whether each is inside where that is asked for.
struct Tile<'m> {
    pointers: Value<'m>,
    inside: Option<Value<'m>>,
}

fn tile<'m>(
    cx: &mut Lower<'m>,
    tuple: &Tuple<'m>,
    offsets: &[Value<'m>],
    checked: impl Fn(usize) -> bool,
) -> Res<Tile<'m>> {
    let Some((_, block)) = tuple.mark else {
        return Err(Stop::Reported);
    };
    let part = |i: usize| match tuple.items.get(i) {
        Some(Value::Tuple(part)) => part.items.clone(),
        _ => Vec::new(),
    };
    let (shape, strides) = (part(SHAPE), part(STRIDES));
    let mut pointers = tuple.items.get(BASE).cloned().unwrap_or(Value::Poison);
    let mut inside: Option<Value<'m>> = None;
    let rank = block.rank();
    for dim in 0..rank {
        let extent = cx.shape(&[i128::from(block.extent(dim))])?;
        let mut range = cx.b.arange(0, TileType::block(Elem::I32, extent));
        for other in 0..rank {
            if other < dim {
                range = cx.b.expand_dims(range, 0);
            } else if other > dim {
                let last = cx.b.ty(range).shape.rank();
                range = cx.b.expand_dims(range, last.min(255) as u8);
            }
        }
        let range = cx.block(range, Ty::Num(DType::Int32));
        let at = cx.binary(Operator::Add, &offsets[dim], &range)?;
        let distance = cx.binary(Operator::Mult, &at, &strides[dim])?;
        pointers = cx.binary(Operator::Add, &pointers, &distance)?;
        if checked(dim) {
            let low = cx.compare(CmpOp::GtE, &at, &Value::int(0))?;
            let high = cx.compare(CmpOp::Lt, &at, &shape[dim])?;
            let both = cx.binary(Operator::BitAnd, &low, &high)?;
            inside = Some(match inside {
                None => both,
                Some(inside) => cx.binary(Operator::BitAnd, &inside, &both)?,
            });
        }
    }
    Ok(Tile { pointers, inside })
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
    let offsets = match tuple.items.get(OFFSETS) {
        Some(Value::Tuple(offsets)) => offsets.items.clone(),
        _ => return Err(Stop::Reported),
    };
    tile(cx, tuple, &offsets, |dim| dims.contains(&dim))
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

/// `tl.load` of a block pointer.
pub(super) fn load<'m>(cx: &mut Lower<'m>, args: &Args<'m>, tuple: &Tuple<'m>) -> Res<Value<'m>> {
    let tile = pointed(cx, args, tuple)?;
    let nan = match cx.str_arg(args, "padding_option")?.as_deref() {
        None | Some("" | "zero") => false,
        Some("nan") => true,
        Some(other) => {
            let message = format!("unknown padding \"{other}\"");
            return Err(cx
                .arg_error(args, "padding_option", Code::Value, message)
                .into());
        }
    };
    read(cx, tile, element(tuple), nan)
}

fn read<'m>(cx: &mut Lower<'m>, tile: Tile<'m>, dtype: DType, nan: bool) -> Res<Value<'m>> {
    let mut given = vec![cx.argument(tile.pointers)];
    if let Some(inside) = tile.inside {
        given.push(cx.argument(inside));
        let other = padding(cx, dtype, nan)?;
        given.push(cx.argument(other));
    }
    super::call(cx, "load", given)
}

/// `tl.store` to a block pointer.
pub(super) fn store<'m>(cx: &mut Lower<'m>, args: &Args<'m>, tuple: &Tuple<'m>) -> Res<Value<'m>> {
    let tile = pointed(cx, args, tuple)?;
    write(cx, tile, args.req("value"))
}

fn write<'m>(cx: &mut Lower<'m>, tile: Tile<'m>, value: Value<'m>) -> Res<Value<'m>> {
    let mut given = vec![cx.argument(tile.pointers), cx.argument(value)];
    if let Some(inside) = tile.inside {
        given.push(cx.argument(inside));
    }
    super::call(cx, "store", given)
}

/// The descriptor and the tile at the offsets.
fn described<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tile<'m>, DType, bool)> {
    let Value::Tuple(tuple) = args.req("desc") else {
        return Err(no_block(cx, args, "desc", "a tensor descriptor"));
    };
    let Some((Mark::Descriptor { nan }, block)) = tuple.mark else {
        return Err(no_block(cx, args, "desc", "a tensor descriptor"));
    };
    let offsets = match wide(cx, args, "offsets")? {
        Value::Tuple(offsets) => offsets.items.clone(),
        _ => return Err(Stop::Reported),
    };
    if offsets.len() != block.rank() {
        let message = format!("{} offsets for {} dimensions", offsets.len(), block.rank());
        return Err(cx.arg_error(args, "offsets", Code::Shape, message).into());
    }
    let tile = tile(cx, &tuple, &offsets, |_| true)?;
    Ok((tile, element(&tuple), nan))
}

fn load_descriptor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, dtype, nan) = described(cx, args)?;
    read(cx, tile, dtype, nan)
}

fn store_descriptor<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (tile, _, _) = described(cx, args)?;
    write(cx, tile, args.req("value"))
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
