//! Tensor descriptors, made by a kernel or given by the host.
//!
//! A descriptor promises what bulk transfers need: a base at a multiple of 16 bytes, rows that many bytes apart. Every
//! dimension is checked; what lies outside reads as zero or NaN and is not written.

use std::rc::Rc;

use ruff_python_ast::{CmpOp, Operator};

use super::atomic::extreme_of_halves;
use super::block_ptr::{
    BASE, SHAPE, STRIDES, TileAccess, element, make, no_block, padding, pads_nan, part, read, tile,
    wide, write,
};
use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::signature::HostDescriptor;
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Mark, Tensor, Tuple, Value};
use crate::ir::attrs::Rounding;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
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
    // Extents are numbers of 32 bits, as in Triton.
    let mut extents = Vec::new();
    for extent in part(&tuple, SHAPE).to_vec() {
        extents.push(match extent {
            Value::Tensor(t) => {
                Value::Tensor(cx.cast(t, Ty::Num(DType::Int32), Rounding::Nearest)?)
            }
            Value::Known(k) => match constant::convert(k.number, DType::Int32) {
                Some(narrow) => Value::Known(narrow),
                None => Value::Known(k),
            },
            other => other,
        });
    }
    tuple.items[SHAPE] = Value::tuple(extents);
    if let Some(Value::Tensor(base)) = tuple.items.get(BASE).cloned() {
        let strides = aligned(cx, base.ty, part(&tuple, STRIDES).to_vec())?;
        tuple.items[STRIDES] = Value::tuple(strides);
        let value = cx.b.assume_multiple(base.value, [16].into_iter().collect());
        tuple.items[BASE] = cx.block(value, base.ty);
    }
    Ok(Value::Tuple(tuple.into()))
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
fn described<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(TileAccess<'m>, DType, bool)> {
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
    let (tile, dtype, _) = described(cx, args)?;
    match (args.builtin.name, dtype) {
        (name @ ("atomic_max" | "atomic_min"), DType::Float16 | DType::Bfloat16) => {
            extreme_of_halves(cx, args, &tile, dtype, name == "atomic_max")?;
        }
        (name, _) => {
            write(cx, args, name, tile)?;
        }
    }
    Ok(Value::NONE)
}

/// Rows of a tensor of two dimensions, named by a block of numbers, from column `y_offset` on.
fn rows_at<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(TileAccess<'m>, DType, bool)> {
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
    Ok((TileAccess { pointers, inside }, element(&tuple), nan))
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
    let word = |cx: &mut Lower<'m>, what: String, dtype: DType, divisible: u32| {
        let ty = cx.tile_type(Ty::Num(dtype), Shape::SCALAR)?;
        let value =
            cx.b.param_divisible(&format!("{name}_{what}"), ty, divisible);
        Res::Ok(cx.block(value, Ty::Num(dtype)))
    };
    let rank = block.rank();
    let mut shape = Vec::new();
    for dim in 0..rank {
        let divisible = desc.divisible.get(dim).copied().unwrap_or(1);
        shape.push(word(cx, format!("size{dim}"), DType::Int32, divisible)?);
    }
    let mut strides = Vec::new();
    for dim in 0..rank.saturating_sub(1) {
        strides.push(word(cx, format!("stride{dim}"), DType::Int64, 1)?);
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
