//! Kernels that tests of analyses, layouts and passes share, and a check that a function is well typed.

use crate::ir::attrs::{Attrs, IntPred, NanRule};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::ValueList;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Level;
use crate::ir::level::Tile;
use crate::ir::ops::{TileOp, rules};
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;

/// A shape from extents that are powers of two.
pub(crate) fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("powers of two")
}

/// Elements per program of the kernels of one dimension.
pub(crate) const BLOCK: u64 = 1024;

fn ptr(b: &mut TileBuilder, name: &str, pointee: Scalar) -> Value {
    b.param_divisible(name, TileType::scalar(Elem::global(pointee)), 16)
}

/// An i32 parameter that is a multiple of 16.
fn size(b: &mut TileBuilder, name: &str) -> Value {
    b.param_divisible(name, TileType::scalar(Elem::I32), 16)
}

/// `base + offsets` for a scalar base.
fn at(b: &mut TileBuilder, base: Value, offsets: Value) -> Value {
    let shape = b.ty(offsets).shape;
    let base = b.to_shape(base, shape);
    b.addptr(base, offsets)
}

fn below(b: &mut TileBuilder, x: Value, limit: Value) -> Value {
    let shape = b.ty(x).shape;
    let limit = b.to_shape(limit, shape);
    b.icmp(x, limit, IntPred::Slt)
}

fn range(b: &mut TileBuilder, n: u64) -> Value {
    b.arange(0, TileType::block(Elem::I32, shape(&[n])))
}

pub(crate) fn finish(mut b: TileBuilder) -> TileFunction {
    b.ret();
    let func = b.finish().expect("the kernel is well typed");
    check(&func);
    func
}

/// The offsets of the running program: `program_id * n + arange`.
pub(crate) fn program_offsets(b: &mut TileBuilder, n: u64) -> Value {
    let pid = b.program_id(0);
    let width = b.i32(n as i32, Shape::SCALAR);
    let start = b.imul(pid, width);
    let start = b.to_shape(start, shape(&[n]));
    let range = range(b, n);
    b.iadd(start, range)
}

/// `z = x + y`, elements converted to and from f32 if they are narrower.
pub(crate) fn vector_add(x_elem: Scalar, y_elem: Scalar, z_elem: Scalar) -> TileFunction {
    let mut b = TileBuilder::new("add", 4);
    let (x, y, z) = (
        ptr(&mut b, "x", x_elem),
        ptr(&mut b, "y", y_elem),
        ptr(&mut b, "z", z_elem),
    );
    let n = size(&mut b, "n");
    let offsets = program_offsets(&mut b, BLOCK);
    let mask = below(&mut b, offsets, n);
    let wide = TileType::block(Elem::F32, shape(&[BLOCK]));
    let load = |b: &mut TileBuilder, base| {
        let p = at(b, base, offsets);
        let v = b.load(p, Some(mask), None);
        if b.ty(v).elem == Elem::F32 {
            v
        } else {
            b.fpext(v, wide)
        }
    };
    let x = load(&mut b, x);
    let y = load(&mut b, y);
    let mut sum = b.fadd(x, y);
    if z_elem != Scalar::F32 {
        let narrow = TileType::block(Elem::Num(z_elem), shape(&[BLOCK]));
        sum = b.fptrunc(sum, crate::ir::attrs::Rounding::Nearest, narrow);
    }
    let p = at(&mut b, z, offsets);
    b.store(p, sum, Some(mask));
    finish(b)
}

pub(crate) fn max(b: &mut TileBuilder, x: Value, axis: u8) -> Value {
    b.reduce_one(x, axis, |b, x, y| b.fmax(x, y, NanRule::Ignore))
}

pub(crate) fn sum(b: &mut TileBuilder, x: Value, axis: u8) -> Value {
    b.reduce_one(x, axis, |b, x, y| b.fadd(x, y))
}

/// Softmax of one row per program.
pub(crate) fn softmax(n: u64) -> TileFunction {
    let mut b = TileBuilder::new("softmax", 4);
    let (out, input) = (
        ptr(&mut b, "out", Scalar::F32),
        ptr(&mut b, "in", Scalar::F32),
    );
    let (stride, cols) = (size(&mut b, "stride"), size(&mut b, "cols"));
    let row = b.program_id(0);
    let start = b.imul(row, stride);
    let input = b.addptr(input, start);
    let s = shape(&[n]);
    let offsets = range(&mut b, n);
    let p = at(&mut b, input, offsets);
    let mask = below(&mut b, offsets, cols);
    let other = b.f32(f32::NEG_INFINITY, s);
    let x = b.load(p, Some(mask), Some(other));
    let top = max(&mut b, x, 0);
    let top = b.to_shape(top, s);
    let shifted = b.fsub(x, top);
    let e = b.exp(shifted);
    let total = sum(&mut b, e, 0);
    let total = b.to_shape(total, s);
    let y = b.fdiv(e, total);
    let out = b.addptr(out, start);
    let p = at(&mut b, out, offsets);
    b.store(p, y, Some(mask));
    finish(b)
}

/// Offsets `row * stride + col` of a block, the rows and columns given as ranges of rank 1.
fn matrix(b: &mut TileBuilder, rows: Value, cols: Value, stride: Value, s: Shape) -> Value {
    let rows = b.expand_dims(rows, 1);
    let cols = b.expand_dims(cols, 0);
    let row_shape = b.ty(rows).shape;
    let stride = b.to_shape(stride, row_shape);
    let rows = b.imul(rows, stride);
    let rows = b.to_shape(rows, s);
    let cols = b.to_shape(cols, s);
    b.iadd(rows, cols)
}

/// Softmax of `m` rows per program.
pub(crate) fn softmax_rows(m: u64, n: u64) -> TileFunction {
    let mut b = TileBuilder::new("softmax_rows", 4);
    let (out, input) = (
        ptr(&mut b, "out", Scalar::F32),
        ptr(&mut b, "in", Scalar::F32),
    );
    let stride = size(&mut b, "stride");
    let s = shape(&[m, n]);
    let rows = program_offsets(&mut b, m);
    let cols = range(&mut b, n);
    let offsets = matrix(&mut b, rows, cols, stride, s);
    let p = at(&mut b, input, offsets);
    let x = b.load(p, None, None);
    let spread = |b: &mut TileBuilder, x: Value| {
        let x = b.expand_dims(x, 1);
        b.to_shape(x, s)
    };
    let top = max(&mut b, x, 1);
    let top = spread(&mut b, top);
    let shifted = b.fsub(x, top);
    let e = b.exp(shifted);
    let total = sum(&mut b, e, 1);
    let total = spread(&mut b, total);
    let y = b.fdiv(e, total);
    let p = at(&mut b, out, offsets);
    b.store(p, y, None);
    finish(b)
}

/// Layer norm of one row, f16 in and out with f32 weights, which loops over the row twice.
pub(crate) fn layer_norm(n: u64) -> TileFunction {
    let mut b = TileBuilder::new("layer_norm", 4);
    let (x, y) = (ptr(&mut b, "x", Scalar::F16), ptr(&mut b, "y", Scalar::F16));
    let (w, bias) = (
        ptr(&mut b, "w", Scalar::F32),
        ptr(&mut b, "bias", Scalar::F32),
    );
    let (stride, cols) = (size(&mut b, "stride"), size(&mut b, "cols"));
    let s = shape(&[n]);
    let row = b.program_id(0);
    let start = b.imul(row, stride);
    let x = b.addptr(x, start);
    let y = b.addptr(y, start);
    let (lo, step) = (b.i32(0, Shape::SCALAR), b.i32(n as i32, Shape::SCALAR));
    let zero = b.f32(0.0, s);
    let wide = TileType::block(Elem::F32, s);
    let read = |b: &mut TileBuilder, base: Value, iv: Value| {
        let range = range(b, n);
        let iv = b.to_shape(iv, s);
        let offsets = b.iadd(iv, range);
        let mask = below(b, offsets, cols);
        let p = at(b, base, offsets);
        (b.load(p, Some(mask), None), offsets, mask)
    };
    let sums = b.for_loop(lo, cols, step, &[zero, zero], |b, iv, carried| {
        let (v, _, _) = read(b, x, iv);
        let v = b.fpext(v, wide);
        let first = b.fadd(carried[0], v);
        let square = b.fmul(v, v);
        ValueList::from_slice(&[first, b.fadd(carried[1], square)])
    });
    let count = b.sitofp(cols, TileType::scalar(Elem::F32));
    let mean = sum(&mut b, sums[0], 0);
    let mean = b.fdiv(mean, count);
    let square = sum(&mut b, sums[1], 0);
    let square = b.fdiv(square, count);
    let mean_square = b.fmul(mean, mean);
    let variance = b.fsub(square, mean_square);
    let scale = b.rsqrt(variance);
    b.for_loop(lo, cols, step, &[], |b, iv, _| {
        let (v, offsets, mask) = read(b, x, iv);
        let v = b.fpext(v, wide);
        let (weight, _, _) = read(b, w, iv);
        let (offset, _, _) = read(b, bias, iv);
        let mean = b.to_shape(mean, s);
        let scale = b.to_shape(scale, s);
        let v = b.fsub(v, mean);
        let v = b.fmul(v, scale);
        let v = b.fmul(v, weight);
        let v = b.fadd(v, offset);
        let narrow = TileType::block(Elem::F16, s);
        let v = b.fptrunc(v, crate::ir::attrs::Rounding::Nearest, narrow);
        let p = at(b, y, offsets);
        b.store(p, v, Some(mask));
        ValueList::new()
    });
    finish(b)
}

/// Sums of the columns of an `m` by `n` block, added up over the rows of the matrix in a loop.
pub(crate) fn column_sum(m: u64, n: u64) -> TileFunction {
    let mut b = TileBuilder::new("column_sum", 4);
    let (out, input) = (
        ptr(&mut b, "out", Scalar::F32),
        ptr(&mut b, "in", Scalar::F32),
    );
    let (height, stride) = (size(&mut b, "height"), size(&mut b, "stride"));
    let s = shape(&[m, n]);
    let cols = program_offsets(&mut b, n);
    let (lo, step) = (b.i32(0, Shape::SCALAR), b.i32(m as i32, Shape::SCALAR));
    let zero = b.f32(0.0, s);
    let acc = b.for_loop(lo, height, step, &[zero], |b, iv, carried| {
        let rows = range(b, m);
        let iv = b.to_shape(iv, shape(&[m]));
        let rows = b.iadd(iv, rows);
        let offsets = matrix(b, rows, cols, stride, s);
        let p = at(b, input, offsets);
        let v = b.load(p, None, None);
        ValueList::from_slice(&[b.fadd(carried[0], v)])
    });
    let total = sum(&mut b, acc[0], 0);
    let p = at(&mut b, out, cols);
    b.store(p, total, None);
    finish(b)
}

/// `out[j, i] = in[i, j]` for a square block.
pub(crate) fn transposed_copy(n: u64) -> TileFunction {
    let mut b = TileBuilder::new("transpose", 4);
    let (out, input) = (
        ptr(&mut b, "out", Scalar::F32),
        ptr(&mut b, "in", Scalar::F32),
    );
    let stride = size(&mut b, "stride");
    let s = shape(&[n, n]);
    let (rows, cols) = (range(&mut b, n), range(&mut b, n));
    let offsets = matrix(&mut b, rows, cols, stride, s);
    let p = at(&mut b, input, offsets);
    let x = b.load(p, None, None);
    let rows = b.expand_dims(rows, 1);
    let cols = b.expand_dims(cols, 0);
    let across = b.ty(cols).shape;
    let stride = b.to_shape(stride, across);
    let cols = b.imul(cols, stride);
    let rows = b.to_shape(rows, s);
    let cols = b.to_shape(cols, s);
    let offsets = b.iadd(rows, cols);
    let p = at(&mut b, out, offsets);
    b.store(p, x, None);
    finish(b)
}

/// Derives the type of every result again and compares, and checks that values are defined before their uses.
pub(crate) fn check(func: &TileFunction) {
    use crate::analysis::program::{ProgramOrder, WalkStep};
    let order = ProgramOrder::compute(func);
    let mut known: Vec<bool> = vec![false; func.dfg.values.len()];
    for &param in func.params() {
        known[param.as_u32() as usize] = true;
    }
    let one = |known: &mut Vec<bool>, inst: Inst| {
        let data = &func.dfg.insts[inst];
        let args: Vec<TileType> = data.args.iter().map(|&v| func.dfg.ty(v)).collect();
        let given: Vec<TileType> = data.results.iter().map(|&v| func.dfg.ty(v)).collect();
        let operands = rules::Operands {
            args: &args,
            attrs: data.attrs(),
            given: &given,
        };
        let types = Tile::result_types(data.op, &operands);
        assert_eq!(types.as_deref(), Ok(&given[..]), "{} {args:?}", data.op);
        for arg in func.dfg.uses(inst) {
            assert!(
                known[arg.as_u32() as usize],
                "{} uses {arg} before it exists",
                data.op
            );
        }
    };
    let define = |known: &mut Vec<bool>, inst: Inst| {
        for &result in &func.dfg.insts[inst].results {
            known[result.as_u32() as usize] = true;
        }
    };
    for &step in order.steps() {
        match step {
            WalkStep::Inst(inst) => {
                one(&mut known, inst);
                define(&mut known, inst);
            }
            WalkStep::Enter(inst) => one(&mut known, inst),
            WalkStep::Region(block) => {
                for &param in &func.dfg.blocks[block].params {
                    known[param.as_u32() as usize] = true;
                }
            }
            WalkStep::Leave(inst) => define(&mut known, inst),
        }
    }
}

/// The instructions with this op, in program order.
pub(crate) fn all(func: &TileFunction, op: TileOp) -> Vec<Inst> {
    func.insts_with(op).map(|(_, inst)| inst).collect()
}
