//! What lowering makes of functions: division by few, definitions by other ops, and no work for contraction. The bounds of
//! the functions are checked by `tests/compiler/ulp.rs`.

use super::lower_math;
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp, tile_functions};
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;
use crate::settings::Target;
use crate::tile::eliminate_dead_code::eliminate_dead_code;
use crate::tile::fuse_multiply_adds::fuse_multiply_adds;
use crate::tile::merge_equal_values::merge_equal_values;
use crate::tile::testing::{run, verified};

const LOG2_E: u32 = 0x3fb8_aa3b;
const BLOCK: usize = 1 << 14;

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn pointers(b: &mut TileBuilder, name: &str, shape: Shape) -> Value {
    let base = b.param(name, TileType::scalar(Elem::global(Scalar::F32)));
    let base = b.to_shape(base, shape);
    let range = b.arange(0, TileType::block(Elem::I32, shape));
    b.addptr(base, range)
}

fn lowered(b: TileBuilder, gone: TileOp) -> TileFunction {
    let mut func = b.finish().expect("well typed");
    assert!(lower_math(&mut func) > 0);
    verified(&func);
    let insts = func.order.insts(func.entry).iter();
    let mut ops = insts.map(|&inst| func.dfg.insts[inst].op);
    assert!(ops.all(|op| op != gone), "{gone} is lowered");
    func
}

/// The function as the interpreter computes it after lowering.
fn values_of(op: TileOp, xs: &[f32]) -> Vec<f32> {
    let mut b = TileBuilder::new("k", 4);
    let shape = Shape::new(&[BLOCK as u64]).expect("a power of two");
    let (input, output) = (pointers(&mut b, "x", shape), pointers(&mut b, "y", shape));
    let x = b.load(input, None, None);
    let y = match op {
        TileOp::Log => b.log(x),
        TileOp::Tanh => b.tanh(x),
        TileOp::Erf => b.erf(x),
        TileOp::Fdiv => one_over(&mut b, x, 1.0, TileOp::Fabs),
        _ => b.exp(x),
    };
    b.store(output, y, None);
    b.ret();
    let func = lowered(b, op);
    let mut out = Vec::new();
    for chunk in xs.chunks(BLOCK) {
        let mut padded = chunk.to_vec();
        padded.resize(BLOCK, 1.0);
        let buffers = run(&func, &[floats(&padded), vec![0; 4 * BLOCK]]);
        let words = buffers[1].chunks(4).take(chunk.len());
        out.extend(words.map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]])));
    }
    out
}

/// Error in units of the last place of the exact result, as f32 counts them.
fn ulps(found: f32, exact: f64) -> f64 {
    if f64::from(found) == exact || (found.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    if found == exact as f32 {
        // Overflow, and results that round to the same number.
        return ((f64::from(found) - exact) / ulp(exact)).abs().min(0.5);
    }
    ((f64::from(found) - exact) / ulp(exact)).abs()
}

fn ulp(exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.clamp(-126, 127) - 23)
}

const EDGES: [u32; 18] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fff_ffff,
    0xffc0_0000,
    0x3f19_999a,
    0x4080_0000,
];

/// Numbers of all magnitudes and of the range where the function bends.
fn samples(from: f32, to: f32) -> Vec<f32> {
    let mut out: Vec<f32> = EDGES.iter().map(|&bits| f32::from_bits(bits)).collect();
    let all = (0..u32::MAX).step_by(65_521);
    out.extend(all.map(f32::from_bits));
    let count = 200_000;
    out.extend((0..count).map(|i| from + (to - from) * (i as f32 + 0.37) / count as f32));
    out
}

/// Contraction would round a sum of products once where a formula counts on two roundings, or the other way round.
#[test]
fn contraction_finds_nothing_in_formulas() {
    let functions = TileOp::ALL
        .iter()
        .filter(|op| matches!(op, tile_functions!()));
    for (&op, elem) in functions.flat_map(|op| [(op, Elem::F32), (op, Elem::F64)]) {
        let mut b = TileBuilder::new("k", 4);
        let x = b.param("x", TileType::scalar(elem));
        let y = b.param("y", TileType::scalar(elem));
        let scalar = elem.scalar().expect("numbers");
        let p = b.param("p", TileType::scalar(Elem::global(scalar)));
        let count = op.info().operands.len();
        let inst = b.inst(InstData::new(op, &[x, y][..count]), &[]);
        let result = b.func().dfg.insts[inst].results[0];
        b.store(p, result, None);
        b.ret();
        let mut func = b.finish().expect("well typed");
        assert_eq!(lower_math(&mut func), 1);
        verified(&func);
        merge_equal_values(&mut func);
        eliminate_dead_code(&mut func);
        assert_eq!(
            fuse_multiply_adds(&mut func, Target::SM_90),
            0,
            "{op} {elem}"
        );
    }
}

#[test]
fn zeros_keep_their_sign() {
    for op in [TileOp::Tanh, TileOp::Erf] {
        let found = values_of(op, &[-0.0, 0.0]);
        let bits: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [0x8000_0000, 0]);
    }
}

#[test]
fn exponential_is_a_power_of_two_of_a_rounded_product() {
    let xs = samples(-100.0, 90.0);
    let found = values_of(TileOp::Exp, &xs);
    for (&x, &y) in xs.iter().zip(&found) {
        let power = x * f32::from_bits(LOG2_E);
        let exact = f64::from(power).exp2() as f32;
        let flushed = if exact.is_subnormal() { 0.0 } else { exact };
        let same = y == exact || y == flushed || (y.is_nan() && exact.is_nan());
        assert!(same, "exp({x:e}) is {y:e}, not {exact:e}");
    }
}

/// Divides a block by each of the divisors.
fn quotients(xs: &[f32], divisors: &[f32]) -> Vec<Vec<f32>> {
    let mut b = TileBuilder::new("k", 4);
    let shape = Shape::new(&[xs.len() as u64]).expect("a power of two");
    let (input, output) = (pointers(&mut b, "x", shape), pointers(&mut b, "y", shape));
    let divisor = b.param("d", TileType::scalar(Elem::global(Scalar::F32)));
    let divisor = b.load(divisor, None, None);
    let divisor = b.to_shape(divisor, shape);
    let x = b.load(input, None, None);
    let y = b.fdiv(x, divisor);
    b.store(output, y, None);
    b.ret();
    let func = lowered(b, TileOp::Fdiv);
    let one = |&d: &f32| {
        let buffers = [floats(xs), vec![0; 4 * xs.len()], floats(&[d])];
        let out = run(&func, &buffers);
        let words = out[1].chunks(4);
        words
            .map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]]))
            .collect()
    };
    divisors.iter().map(one).collect()
}

#[test]
fn division_by_few_is_within_two_ulp_everywhere() {
    let numbers = |step: usize| -> Vec<f32> {
        let sweep = (0..u32::MAX).step_by(step).map(f32::from_bits);
        EDGES
            .iter()
            .map(|&bits| f32::from_bits(bits))
            .chain(sweep)
            .collect()
    };
    let mut xs = numbers(2_097_143);
    xs.truncate(2048);
    xs.resize(2048, 3.0);
    let divisors = numbers(16_777_213);
    let mut worst = 0.0;
    for (row, &d) in quotients(&xs, &divisors).iter().zip(&divisors) {
        for (&x, &y) in xs.iter().zip(row) {
            let exact = f64::from(x) / f64::from(d);
            let error = ulps(y, exact);
            // One ulp of the reciprocal, half of one of the product, and none of the scaling.
            assert!(
                error <= 1.5,
                "{x:e} / {d:e} is {y:e}, not {exact:e}: {error} ulp"
            );
            worst = f64::max(worst, error);
        }
    }
    assert!(worst > 0.5, "the samples are harder than that: {worst}");
}

#[test]
fn rows_are_divided_by_one_reciprocal_each() {
    let mut b = TileBuilder::new("k", 4);
    let wide = Shape::new(&[4, 8]).expect("powers of two");
    let line = Shape::new(&[4]).expect("a power of two");
    let rows = pointers(&mut b, "rows", line);
    let row = b.load(rows, None, None);
    let column = b.expand_dims(row, 1);
    let divisor = b.to_shape(column, wide);
    let x = b.f32(1.0, wide);
    let y = b.fdiv(x, divisor);
    let total = b.reduce_one(y, 1, |b, x, y| b.fadd(x, y));
    b.store(rows, total, None);
    b.ret();
    let func = lowered(b, TileOp::Fdiv);
    let insts = func.order.insts(func.entry).iter();
    let data: Vec<_> = insts.map(|&inst| &func.dfg.insts[inst]).collect();
    let rcp = data
        .iter()
        .find(|d| d.op == TileOp::RcpFtz)
        .expect("one reciprocal");
    assert_eq!(func.dfg.ty(rcp.args[0]).shape, line);
}

/// Sums of a number and what is not negative are never small: the reciprocal needs one scale, others both or none.
#[test]
fn divisors_that_are_never_small_are_scaled_once() {
    let parts = |least: f32, op: TileOp| {
        let mut b = TileBuilder::new("k", 4);
        let at = pointers(&mut b, "x", Shape::new(&[32]).expect("a power of two"));
        let x = b.load(at, None, None);
        let y = one_over(&mut b, x, least, op);
        b.store(at, y, None);
        b.ret();
        let mut func = b.finish().expect("well typed");
        lower_math(&mut func);
        verified(&func);
        let insts = func.order.insts(func.entry).iter();
        let ops: Vec<_> = insts.map(|&inst| func.dfg.insts[inst].op).collect();
        [TileOp::Fcmp, TileOp::RcpFtz, TileOp::Fabs]
            .map(|op| ops.iter().filter(|&&o| o == op).count())
    };
    assert_eq!(parts(1.0, TileOp::Exp), [1, 1, 0]);
    assert_eq!(parts(1.0, TileOp::Fabs), [1, 1, 1]);
    assert_eq!(parts(0.0, TileOp::Exp), [0, 0, 0]);
    assert_eq!(parts(-1.0, TileOp::Exp), [0, 0, 0]);
    assert_eq!(parts(1.0, TileOp::Fneg), [0, 0, 0]);
}

/// Within two units, as a division, for all sizes up to the largest, whose quotients are subnormal.
#[test]
fn quotients_of_divisors_that_are_never_small() {
    let xs = samples(-4.0, 4.0);
    for (x, y) in xs.iter().zip(values_of(TileOp::Fdiv, &xs)) {
        let exact = 1.0 / f64::from(x.abs() + 1.0);
        assert!(ulps(y, exact) <= 2.0, "1 / (|{x}| + 1) is {y}, not {exact}");
    }
}

/// `1 / (op(x) + least)`.
fn one_over(b: &mut TileBuilder, x: Value, least: f32, op: TileOp) -> Value {
    let shape = b.ty(x).shape;
    let part = match op {
        TileOp::Exp => b.exp(x),
        TileOp::Fabs => b.fabs(x),
        _ => b.fneg(x),
    };
    let least = b.f32(least, shape);
    let divisor = b.fadd(part, least);
    let one = b.f32(1.0, shape);
    b.fdiv(one, divisor)
}
