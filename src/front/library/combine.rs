//! Blocks combined along an axis by a function of scalars: what reductions and scans share.

use rustc_hash::FxHashSet;

use super::reductions::indices;
use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Combining, Lower, Res, Stop};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{Flag, make};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;
use crate::verify::combines;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "reduce"("input axis combine_fn; keep_dims") reduce;
    "_reduce_with_indices"("input axis combine_fn; keep_dims") reduce_with_indices;
    "associative_scan"("input axis combine_fn; reverse") scan;
};

/// Combines left and right values of the region.
pub(super) type Combine<'a, 'm> =
    &'a mut dyn FnMut(&mut Lower<'m>, &[Tensor], &[Tensor]) -> Res<Vec<Tensor>>;

/// What becomes of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It goes.
    Reduce,
    /// Each element becomes the combination up to it.
    Scan {
        /// From the end.
        reverse: bool,
    },
}

/// Reduces blocks of one shape along an axis, or along all of them.
pub(super) fn reduce_blocks<'m>(
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
        values = along(cx, &values, axis, Way::Reduce, combine)?;
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

/// One reduction or scan of the IR.
pub(super) fn along<'m>(
    cx: &mut Lower<'m>,
    values: &[Tensor],
    axis: u8,
    way: Way,
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
    // What is combined is no operator of the text: nothing asserts that it does not overflow.
    let sanitized = std::mem::replace(&mut cx.sanitize_overflow, false);
    let outer = std::mem::replace(&mut cx.combining, Combining::Scalars);
    let result = combine(cx, left, right);
    cx.combining = outer;
    cx.sanitize_overflow = sanitized;
    let result = match result {
        Ok(result) => result,
        Err(stop) => {
            cx.b.switch_to(at);
            return Err(stop);
        }
    };
    let only_combines = |func: &TileFunction| {
        let mut insts = func.order.insts(block).iter();
        insts.all(|&inst| combines(func, inst))
    };
    if !only_combines(cx.b.func()) {
        drop_unused(cx.b.func_mut(), block, &result);
    }
    if !only_combines(cx.b.func()) {
        cx.b.switch_to(at);
        let message =
            "a function that combines elements computes with single elements and does nothing else";
        let d = cx.error(Code::Unsupported, message);
        return Err(d
            .help(
                "load, store, loop and change shapes outside of it; inline PTX says `is_pure=True`",
            )
            .into());
    }
    let yields: Vec<entities::Value> = result.iter().map(|t| t.value).collect();
    cx.b.yield_values(&yields);
    cx.b.switch_to(at);
    let operands: Vec<entities::Value> = values.iter().map(|t| t.value).collect();
    let op = match way {
        Way::Reduce => TileOp::Reduce,
        Way::Scan { .. } => TileOp::Scan,
    };
    let mut data = InstData::new(op, &operands);
    data.attrs.push(make::axis(axis));
    if way == (Way::Scan { reverse: true }) {
        data.attrs.push(make::reverse(Flag));
    }
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

/// Takes out of a region what its results do not need, such as a block of which only the type was asked for.
fn drop_unused(func: &mut TileFunction, block: entities::Block, results: &[Tensor]) {
    let mut needed: FxHashSet<entities::Value> = results.iter().map(|t| t.value).collect();
    let mut unused: FxHashSet<entities::Inst> = FxHashSet::default();
    for &inst in func.order.insts(block).iter().rev() {
        let data = &func.dfg.insts[inst];
        if data.is_pure() && !data.results.iter().any(|r| needed.contains(r)) {
            unused.insert(inst);
        } else {
            needed.extend(&data.args);
        }
    }
    func.order.retain(block, |inst| !unused.contains(&inst));
}

/// Blocks of one shape that a function of the text combines.
fn inputs<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Vec<Tensor>, Shape)> {
    let items = match args.req("input") {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    let mut inputs: Vec<Tensor> = Vec::new();
    for item in &items {
        inputs.push(cx.tensor(item)?);
    }
    let Some(first) = inputs.first() else {
        return Err(cx.error(Code::Call, "there is nothing to combine").into());
    };
    let mut shape = first.shape;
    for t in &inputs {
        shape = cx.common_shape(shape, t.shape)?;
    }
    for t in &mut inputs {
        *t = cx.broadcast_to(*t, shape)?;
    }
    Ok((inputs, shape))
}

/// Calls the function of the text, which takes the left values and then the right ones.
fn call_combine<'m>(
    cx: &mut Lower<'m>,
    combine: &Value<'m>,
    left: &[Tensor],
    right: &[Tensor],
) -> Res<Vec<Tensor>> {
    let given = left.iter().chain(right);
    let given = given.map(|&t| cx.argument(Value::Tensor(t))).collect();
    let at = cx.range;
    let value = cx.call_value(combine, given, at)?;
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
}

/// As many values as were given, in a tuple if they were.
fn results<'m>(args: &Args<'m>, results: Vec<Tensor>) -> Value<'m> {
    let mut values = results.into_iter().map(Value::Tensor);
    if matches!(args.req("input"), Value::Tuple(_)) {
        Value::tuple(values.collect())
    } else {
        values.next().unwrap_or(Value::Poison)
    }
}

fn reduce<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (inputs, shape) = inputs(cx, args)?;
    let axis = match cx.int_arg(args, "axis")? {
        Some(axis) => Some(cx.axis(axis, shape.rank())?),
        None => None,
    };
    let combine = args.req("combine_fn");
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    let reduced = reduce_blocks(cx, inputs, axis, keep_dims, &mut |cx, left, right| {
        call_combine(cx, &combine, left, right)
    })?;
    Ok(results(args, reduced))
}

/// A block and the indices of its elements, combined by a function of the text: what Triton's own library calls.
fn reduce_with_indices<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let axis = match cx.int_arg(args, "axis")? {
        Some(axis) => Some(cx.axis(axis, t.shape.rank())?),
        None => None,
    };
    let (index, axis) = indices(cx, t, axis)?;
    let combine = args.req("combine_fn");
    let keep_dims = cx.bool_arg(args, "keep_dims", false)?;
    let both = vec![t, index];
    let reduced = reduce_blocks(cx, both, Some(axis), keep_dims, &mut |cx, left, right| {
        call_combine(cx, &combine, left, right)
    })?;
    Ok(Value::tuple(
        reduced.into_iter().map(Value::Tensor).collect(),
    ))
}

fn scan<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (inputs, shape) = inputs(cx, args)?;
    let axis = cx.int_arg(args, "axis")?.unwrap_or(0);
    let axis = cx.axis(axis, shape.rank())?;
    let combine = args.req("combine_fn");
    let reverse = cx.bool_arg(args, "reverse", false)?;
    let way = Way::Scan { reverse };
    let scanned = along(cx, &inputs, axis, way, &mut |cx, left, right| {
        call_combine(cx, &combine, left, right)
    })?;
    Ok(results(args, scanned))
}
