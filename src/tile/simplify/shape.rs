//! Constant folding, moving `splat`, `broadcast` and `expand_dims` behind arithmetic, and changes of shape that cancel.

use super::fold::{self, TypedBits};
use super::{Rewrite, Simplifier};
use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::ValueList;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// Arithmetic on constants is a constant.
pub(super) fn constants(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let data = &s.edit.func.dfg.insts[inst];
    let args: Option<smallvec::SmallVec<[TypedBits; 3]>> =
        data.args.iter().map(|&v| s.known(v)).collect();
    let args = args?;
    let ty = s.result_ty(inst);
    if data.op == TileOp::Select {
        let chosen = if args[0].0 & 1 == 1 { 1 } else { 2 };
        return Some(Rewrite::Value(data.args[chosen]));
    }
    let bits = fold::fold(data, &args, ty.elem)?;
    Some(Rewrite::Value(s.constant(bits, ty)))
}

/// Arithmetic on splats is the splat of arithmetic on scalars.
pub(super) fn uniform(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let ty = s.result_ty(inst);
    let args = s.edit.func.dfg.insts[inst].args.clone();
    let any_splat = args
        .iter()
        .any(|&v| s.edit.operand_of(v, TileOp::Splat, 0).is_some());
    if ty.is_scalar() || !any_splat || !args.iter().all(|&v| s.is_uniform(v)) {
        return None;
    }
    let scalars: ValueList = args
        .iter()
        .map(|&v| uniform_of_shape(s, v, Shape::SCALAR))
        .collect();
    let scalar = again(s, inst, &scalars, TileType::scalar(ty.elem));
    Some(Rewrite::Value(s.build(TileOp::Splat, &[scalar], &[], ty)))
}

/// Arithmetic on broadcasts from one shape is the broadcast of arithmetic on that shape.
pub(super) fn broadcasts(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let ty = s.result_ty(inst);
    let args = s.edit.func.dfg.insts[inst].args.clone();
    let sources = args
        .iter()
        .filter_map(|&v| s.edit.operand_of(v, TileOp::Broadcast, 0));
    let mut shapes = sources.map(|v| s.ty(v).shape);
    let small = shapes.next()?;
    let same = shapes.all(|shape| shape == small);
    let fits = |s: &Simplifier<'_, '_>, v: Value| {
        s.is_uniform(v) || s.edit.operand_of(v, TileOp::Broadcast, 0).is_some()
    };
    if !same || !args.iter().all(|&v| fits(s, v)) {
        return None;
    }
    let small_args: ValueList = args
        .iter()
        .map(|&v| match s.edit.operand_of(v, TileOp::Broadcast, 0) {
            Some(source) => source,
            None => uniform_of_shape(s, v, small),
        })
        .collect();
    let result = again(s, inst, &small_args, TileType::block(ty.elem, small));
    Some(Rewrite::Value(s.build(
        TileOp::Broadcast,
        &[result],
        &[],
        ty,
    )))
}

/// Arithmetic on blocks expanded at one axis is the expansion of arithmetic on the smaller blocks.
pub(super) fn expansions(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let ty = s.result_ty(inst);
    let args = s.edit.func.dfg.insts[inst].args.clone();
    let source = |s: &Simplifier<'_, '_>, v: Value| {
        let data = s.edit.def(v).filter(|d| d.op == TileOp::ExpandDims)?;
        Some((data.args[0], *data.axis()?))
    };
    let (first, axis) = args.iter().find_map(|&v| source(s, v))?;
    let small = s.ty(first).shape;
    let fits = |s: &Simplifier<'_, '_>, v: Value| match source(s, v) {
        Some((_, other)) => other == axis,
        None => s.is_uniform(v),
    };
    if !args.iter().all(|&v| fits(s, v)) {
        return None;
    }
    let small_args: ValueList = args
        .iter()
        .map(|&v| match source(s, v) {
            Some((source, _)) => source,
            None => uniform_of_shape(s, v, small),
        })
        .collect();
    let result = again(s, inst, &small_args, TileType::block(ty.elem, small));
    let attrs = [make::axis(axis)];
    Some(Rewrite::Value(s.build(
        TileOp::ExpandDims,
        &[result],
        &attrs,
        ty,
    )))
}

/// The instruction's op on other operands.
fn again(s: &mut Simplifier<'_, '_>, inst: Inst, args: &[Value], ty: TileType) -> Value {
    let op = s.op_of(inst);
    let attrs = s.edit.func.dfg.insts[inst].attrs.clone();
    s.build(op, args, &attrs, ty)
}

/// A constant or splat with another shape.
fn uniform_of_shape(s: &mut Simplifier<'_, '_>, value: Value, shape: Shape) -> Value {
    let ty = TileType::block(s.ty(value).elem, shape);
    match s.known(value) {
        Some((bits, _)) => s.constant(bits, ty),
        None => {
            let scalar = s.edit.operand_of(value, TileOp::Splat, 0);
            let scalar = scalar.expect("a uniform block is a constant or a splat");
            if shape.is_scalar() {
                scalar
            } else {
                s.build(TileOp::Splat, &[scalar], &[], ty)
            }
        }
    }
}

/// The splat of a constant is a constant, to a scalar it is nothing.
pub(super) fn splat(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    if ty.is_scalar() {
        return Some(Rewrite::Value(x));
    }
    let (bits, _) = s.known(x)?;
    Some(Rewrite::Value(s.constant(bits, ty)))
}

/// A broadcast of a uniform block or of a broadcast is one, and one that changes no extent is nothing.
pub(super) fn broadcast(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    if s.ty(x).shape == ty.shape {
        return Some(Rewrite::Value(x));
    }
    if s.is_uniform(x) {
        return Some(Rewrite::Value(uniform_of_shape(s, x, ty.shape)));
    }
    let source = s.edit.operand_of(x, TileOp::Broadcast, 0)?;
    s.edit.func.dfg.insts[inst].args[0] = source;
    Some(Rewrite::Updated)
}

/// The expansion of a scalar or of a uniform block is a splat.
pub(super) fn expand_dims(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    if s.is_uniform(x) {
        return Some(Rewrite::Value(uniform_of_shape(s, x, ty.shape)));
    }
    let scalar = s.ty(x).is_scalar();
    scalar.then(|| Rewrite::Value(s.build(TileOp::Splat, &[x], &[], ty)))
}

/// A reshape of a uniform block is one, of a reshape too, and one that changes nothing is nothing. Dimensions of
/// extent 1 that come and go leave the order alone, so `expand_dims` below one is passed over.
pub(super) fn reshape(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    if s.ty(x).shape == ty.shape {
        return Some(Rewrite::Value(x));
    }
    if s.is_uniform(x) {
        return Some(Rewrite::Value(uniform_of_shape(s, x, ty.shape)));
    }
    if s.ty(x).is_scalar() {
        return Some(Rewrite::Value(s.build(TileOp::Splat, &[x], &[], ty)));
    }
    let source = s
        .edit
        .operand_of(x, TileOp::Reshape, 0)
        .or_else(|| s.edit.operand_of(x, TileOp::ExpandDims, 0))?;
    s.edit.func.dfg.insts[inst].args[0] = source;
    Some(Rewrite::Updated)
}

/// A permutation of a permutation is one; the one that changes nothing, or moves extents of 1 alone, is no permutation.
pub(super) fn permute(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    if s.is_uniform(x) {
        return Some(Rewrite::Value(uniform_of_shape(s, x, ty.shape)));
    }
    let dims = s.edit.func.dfg.insts[inst].dims()?.clone();
    let from = s.ty(x).shape;
    let long = dims.iter().filter(|&&d| from.extent(d as usize) > 1);
    if long.is_sorted() {
        return Some(Rewrite::Value(s.build(TileOp::Reshape, &[x], &[], ty)));
    }
    let data = s.edit.def(x).filter(|d| d.op == TileOp::Permute)?;
    let (source, inner) = (data.args[0], data.dims()?.clone());
    let both = dims.iter().map(|&d| inner[d as usize]).collect();
    let attrs = [make::dims(both)];
    Some(Rewrite::Value(s.build(
        TileOp::Permute,
        &[source],
        &attrs,
        ty,
    )))
}

/// The halves of one block, joined again.
pub(super) fn join(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let half = |v: Value, index: u8| {
        let data = s.edit.def(v).filter(|d| d.op == TileOp::Split)?;
        (data.index().copied() == Some(index)).then_some(data.args[0])
    };
    let whole = half(s.arg(inst, 0), 0)?;
    (half(s.arg(inst, 1), 1) == Some(whole)).then_some(Rewrite::Value(whole))
}

/// A half of a join is what was joined, and of a uniform block a uniform one.
pub(super) fn split(s: &mut Simplifier<'_, '_>, inst: Inst) -> Option<Rewrite> {
    let (x, ty) = (s.arg(inst, 0), s.result_ty(inst));
    if s.is_uniform(x) {
        return Some(Rewrite::Value(uniform_of_shape(s, x, ty.shape)));
    }
    let index = usize::from(*s.edit.func.dfg.insts[inst].index()?);
    let half = s.edit.operand_of(x, TileOp::Join, index)?;
    Some(Rewrite::Value(half))
}
