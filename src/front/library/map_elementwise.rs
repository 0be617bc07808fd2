//! Functions of single elements, mapped over blocks.
//!
//! The function is called once, with the blocks: what it does element by element is the same. Where it branches on an
//! element both ways are gone, and each element takes the result of its own.

use super::shape::reshaped;
use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Combining, Lower, Res, Stop};
use crate::front::value::{Tensor, Value};
use crate::ir::entities::Inst;
use crate::ir::ops::{Opcode, TileOp};
use crate::linear_layout::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "map_elementwise"("scalar_fn *args; pack") map_elementwise;
};

fn map_elementwise<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let mut tensors = Vec::new();
    let mut whole = Shape::SCALAR;
    for value in args.rest_items() {
        let t = cx.tensor(&value)?;
        whole = cx.common_shape(whole, t.shape)?;
        tensors.push(t);
    }
    let pack = pack_of(cx, args, whole)?;
    let shape = match pack {
        1 => whole,
        pack => cx.shape(&[whole.elements() as i128 / pack])?,
    };
    let mut given = Vec::new();
    for t in tensors {
        let t = cx.broadcast_to(t, whole)?;
        for part in parts(cx, t, shape, pack)? {
            given.push(cx.argument(Value::Tensor(part)));
        }
    }
    let (block, at) = (cx.b.block(), cx.range);
    let start = cx.b.func().order.insts(block).len();
    let chose = false;
    let outer = std::mem::replace(&mut cx.combining, Combining::Blocks { shape, chose });
    let value = cx.call_value(&args.req("scalar_fn"), given, at);
    let mode = std::mem::replace(&mut cx.combining, outer);
    let value = value?;
    let insts = cx.b.func().order.insts(block)[start..].to_vec();
    if let Some(op) = of_blocks(cx, insts) {
        let name = op.info().name;
        let message = format!(
            "a mapped function computes with single elements, and `{name}` is one of blocks"
        );
        let d = cx.error(Code::Unsupported, message);
        return Err(d.help("reduce and change shapes outside of it").into());
    }
    if let Combining::Blocks { chose: true, .. } = mode {
        let func = cx.b.func();
        let mut insts = func.order.insts(block)[start..].iter();
        let computes = |op: TileOp| op.info().is_pure() || op == TileOp::DeviceAssert;
        if !insts.all(|&inst| computes(func.dfg.insts[inst].op)) {
            let message =
                "a mapped function that branches on elements computes and does nothing else";
            let d = cx.error(Code::Unsupported, message);
            return Err(d.help("load, store and loop outside of it").into());
        }
    }
    gathered(cx, &value, whole, shape, pack)
}

/// What treats an element as the block that it stands for, among instructions and those of their regions.
fn of_blocks(cx: &Lower<'_>, mut insts: Vec<Inst>) -> Option<TileOp> {
    let func = cx.b.func();
    while let Some(inst) = insts.pop() {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Arange
            | TileOp::ExpandDims
            | TileOp::Reshape
            | TileOp::Permute
            | TileOp::Join
            | TileOp::Split
            | TileOp::Gather
            | TileOp::Histogram
            | TileOp::Reduce
            | TileOp::Scan
            | TileOp::Dot => return Some(data.op),
            _ => {}
        }
        for call in &data.blocks {
            insts.extend(func.order.insts(call.block));
        }
    }
    None
}

/// How many elements a call takes of each block.
fn pack_of<'m>(cx: &mut Lower<'m>, args: &Args<'m>, whole: Shape) -> Res<i128> {
    let pack = cx.int_arg(args, "pack")?.unwrap_or(1);
    if pack < 1 || !(pack as u128).is_power_of_two() || pack > whole.elements() as i128 {
        let most = whole.elements();
        let message =
            format!("`pack` is a power of two up to the block's {most} elements, not {pack}");
        return Err(cx.arg_error(args, "pack", Code::Value, message).into());
    }
    Ok(pack)
}

/// A block's elements 0, 1, .. of each `pack` that follow each other.
fn parts<'m>(cx: &mut Lower<'m>, t: Tensor, shape: Shape, pack: i128) -> Res<Vec<Tensor>> {
    if pack == 1 {
        let whole = reshaped(cx, t, shape)?;
        return Ok(vec![cx.tensor(&whole)?]);
    }
    let pairs = cx.shape(&[t.shape.elements() as i128 / 2, 2])?;
    let pairs = reshaped(cx, t, pairs)?;
    let pairs = cx.tensor(&pairs)?;
    let mut halves = [Vec::new(), Vec::new()];
    for (i, half) in halves.iter_mut().enumerate() {
        let value = cx.b.split(pairs.value, i as u8);
        let value = cx.block(value, t.ty);
        let value = cx.tensor(&value)?;
        *half = parts(cx, value, shape, pack / 2)?;
    }
    let [even, odd] = halves;
    Ok(even
        .into_iter()
        .zip(odd)
        .flat_map(|(a, b)| [a, b])
        .collect())
}

/// The block whose parts these are.
fn joined<'m>(cx: &mut Lower<'m>, parts: &[Tensor], whole: Shape) -> Res<Tensor> {
    let value = match parts {
        [one] => Value::Tensor(*one),
        parts => {
            let part = cx.shape(&[whole.elements() as i128 / 2])?;
            let every_other = |first: usize| -> Vec<Tensor> {
                parts.iter().skip(first).step_by(2).copied().collect()
            };
            let even = joined(cx, &every_other(0), part)?;
            let odd = joined(cx, &every_other(1), part)?;
            let value = cx.b.join(even.value, odd.value);
            cx.block(value, even.ty)
        }
    };
    let t = cx.tensor(&value)?;
    let value = reshaped(cx, t, whole)?;
    cx.tensor(&value)
}

/// The results of the function as blocks of the whole shape, in a tuple if it gave one.
fn gathered<'m>(
    cx: &mut Lower<'m>,
    value: &Value<'m>,
    whole: Shape,
    shape: Shape,
    pack: i128,
) -> Res<Value<'m>> {
    let items = match value {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single.clone()],
    };
    let pack = pack as usize;
    if items.len() % pack != 0 {
        let found = items.len();
        let message =
            format!("the function must give {pack} values of each block, it gives {found}");
        return Err(cx.error(Code::Type, message).into());
    }
    let mut results = Vec::new();
    for group in items.chunks(pack) {
        let mut parts = Vec::new();
        for item in group {
            let t = cx.tensor(item)?;
            parts.push(cx.broadcast_to(t, shape)?);
        }
        if let Some(odd) = parts.iter().find(|t| t.ty != parts[0].ty) {
            let (a, b) = (parts[0].ty, odd.ty);
            let message = format!("of one block the function gives {a} and {b}");
            let d = cx.error(Code::Type, message);
            return Err(Stop::from(d.help("cast the results with `.to(...)`")));
        }
        results.push(Value::Tensor(joined(cx, &parts, whole)?));
    }
    match (value, results.pop()) {
        (Value::Tuple(_), last) => {
            results.extend(last);
            Ok(Value::tuple(results))
        }
        (_, Some(single)) => Ok(single),
        (_, None) => Err(Stop::Reported),
    }
}
