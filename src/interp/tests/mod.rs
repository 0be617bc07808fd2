//! Every op by itself, with the edge cases that the op table names.

mod atomics;
mod boxes;
mod control;
mod convert;
mod counts;
mod dot;
mod floats;
mod ints;
mod machine;
mod memory;
mod orders;
mod reductions;
mod reports;
mod rings;
mod roles;
mod shapes;
mod tolerance;

use std::collections::BTreeSet;

use super::{Arg, InterpError, Launch, Memory, Options, Stats, run};
use crate::ir::attrs::{Attrs, make};
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("tests use powers of two")
}

fn block(scalar: Scalar, extents: &[u64]) -> TileType {
    TileType::block(Elem::Num(scalar), shape(extents))
}

fn pointer(pointee: Scalar) -> TileType {
    TileType::scalar(Elem::global(pointee))
}

fn bytes(scalar: Scalar, patterns: &[u64]) -> Vec<u8> {
    let size = scalar.bytes() as usize;
    let each = |x: &u64| x.to_le_bytes()[..size].to_vec();
    patterns.iter().flat_map(each).collect()
}

fn patterns(scalar: Scalar, bytes: &[u8]) -> Vec<u64> {
    let each = |chunk: &[u8]| {
        let mut wide = [0; 8];
        wide[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(wide)
    };
    bytes.chunks(scalar.bytes() as usize).map(each).collect()
}

fn finish(mut b: TileBuilder) -> TileFunction {
    b.ret();
    b.finish().expect("the test builds a valid function")
}

/// A block of pointers to the elements at `base` in row-major order.
fn row_major(b: &mut TileBuilder, base: Value, shape: Shape) -> Value {
    let mut offsets = b.i32(0, shape);
    for dim in 0..shape.rank() {
        let mut part = b.arange(
            0,
            TileType::block(
                Elem::I32,
                Shape::new(&[shape.extent(dim)]).expect("an extent"),
            ),
        );
        for axis in 0..shape.rank() {
            if axis != dim {
                part = b.expand_dims(part, axis as u8);
            }
        }
        let part = b.to_shape(part, shape);
        let stride = b.i32(1 << shape.bit_offset(dim), shape);
        let part = b.imul(part, stride);
        offsets = b.iadd(offsets, part);
    }
    let pointers = b.to_shape(base, shape);
    b.addptr(pointers, offsets)
}

/// Runs `make` on blocks of one shape that hold the given patterns and returns its result's patterns.
fn eval_shape(
    extents: &[u64],
    inputs: &[(Scalar, &[u64])],
    make: impl FnOnce(&mut TileBuilder, &[Value]) -> Value,
) -> Result<Vec<u64>, InterpError> {
    let mut b = TileBuilder::new("test", 1);
    let mut memory = Memory::new();
    let mut args = Vec::new();
    let mut xs = Vec::new();
    for (i, &(scalar, patterns)) in inputs.iter().enumerate() {
        let base = b.param(&format!("x{i}"), pointer(scalar));
        let pointers = row_major(&mut b, base, shape(extents));
        xs.push(b.load(pointers, None, None));
        args.push(Arg::Ptr(memory.alloc_bytes(&bytes(scalar, patterns))));
    }
    let result = make(&mut b, &xs);
    let ty = b.ty(result);
    let scalar = ty.elem.scalar().expect("the result is numbers");
    let out = b.param("out", pointer(scalar));
    let pointers = if ty.is_scalar() {
        out
    } else {
        row_major(&mut b, out, ty.shape)
    };
    b.store(pointers, result, None);
    let size = ty.shape.elements() * scalar.bytes() as usize;
    let place = memory.alloc(size);
    args.push(Arg::Ptr(place));
    let launch = Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    run(&finish(b), &launch, &mut memory, &Options::default())?;
    let out = memory.read(place, size).expect("the kernel stored it");
    Ok(patterns(scalar, out))
}

/// [`eval_shape`] for blocks of rank 1, filled up with the last pattern; gives as many patterns as went in.
fn eval(
    inputs: &[(Scalar, &[u64])],
    make: impl FnOnce(&mut TileBuilder, &[Value]) -> Value,
) -> Vec<u64> {
    let count = inputs[0].1.len();
    let filled: Vec<(Scalar, Vec<u64>)> = inputs
        .iter()
        .map(|(scalar, patterns)| {
            assert_eq!(patterns.len(), count);
            let last = *patterns.last().expect("tests have data");
            let mut patterns = patterns.to_vec();
            patterns.resize(count.next_power_of_two(), last);
            (*scalar, patterns)
        })
        .collect();
    let inputs: Vec<(Scalar, &[u64])> = filled.iter().map(|(s, p)| (*s, &p[..])).collect();
    let mut out = eval_shape(&[count.next_power_of_two() as u64], &inputs, make)
        .unwrap_or_else(|e| panic!("{e}"));
    out.truncate(count);
    out
}

fn f32s(numbers: &[f32]) -> Vec<u64> {
    numbers.iter().map(|x| u64::from(x.to_bits())).collect()
}

/// Runs a kernel of one program without looking at memory.
fn launch(func: &TileFunction, args: &[Arg], memory: &mut Memory) -> Result<Stats, InterpError> {
    let launch = Launch {
        grid: [1, 1, 1],
        args,
    };
    run(func, &launch, memory, &Options::default())
}

/// The text of the error that a kernel of one program ends with.
fn failure(func: &TileFunction, args: &[Arg], memory: &mut Memory) -> String {
    let error = launch(func, args, memory).expect_err("the kernel is wrong");
    error.kind.to_string()
}

#[test]
fn wrong_arguments_are_refused() {
    let mut b = TileBuilder::new("k", 1);
    b.param_divisible("p", pointer(Scalar::F32), 16);
    b.param("n", TileType::scalar(Elem::Num(Scalar::I8)));
    let func = finish(b);
    let mut memory = Memory::new();
    let mut failure = |args: &[Arg]| failure(&func, args, &mut memory);
    assert_eq!(
        failure(&[Arg::Ptr(16)]),
        "the kernel has 2 parameters, the launch 1 arguments"
    );
    assert_eq!(
        failure(&[Arg::Int(16), Arg::Int(0)]),
        "parameter `p` is ptr<f32>, not Int(16)"
    );
    assert_eq!(
        failure(&[Arg::Ptr(16), Arg::Int(256)]),
        "parameter `n` is i8, not Int(256)"
    );
    assert_eq!(
        failure(&[Arg::Ptr(20), Arg::Int(-128)]),
        "broken promise: argument `p` is 0x14, not a multiple of 16"
    );
    let args = [Arg::Bits(32), Arg::Int(255)];
    assert_eq!(launch(&func, &args, &mut memory).map(|s| s.programs), Ok(1));
}

#[test]
fn types_are_checked_before_anything_runs() {
    let mut b = TileBuilder::new("k", 1);
    let x = b.f32(1.0, Shape::SCALAR);
    let y = b.fadd(x, x);
    let mut func = finish(b);
    let inst = func.dfg.def_inst(y).expect("an instruction made it");
    func.dfg.insts[inst].op = TileOp::Iadd;
    let error = launch(&func, &[], &mut Memory::new()).expect_err("iadd takes no f32");
    assert_eq!(
        error.to_string(),
        "launch, inst1 (iadd): malformed function: V09: iadd: operand 1 must be an integer of 8 bits or more, found f32"
    );
}

#[test]
fn a_value_without_definition_is_no_panic() {
    let mut b = TileBuilder::new("k", 1);
    let x = b.i32(1, Shape::SCALAR);
    b.iadd(x, x);
    let mut func = finish(b);
    let entry = func.entry;
    let first = func.order.insts(entry)[0];
    func.order.retain(entry, |inst| inst != first);
    let error = launch(&func, &[], &mut Memory::new()).expect_err("v0 is not defined");
    assert_eq!(
        error.to_string(),
        "launch, inst1 (iadd): malformed function: V11: v0 is not defined on the way here"
    );
}

#[test]
fn malformed_structure_is_an_error_and_not_a_crash() {
    // An operand that no function has.
    let mut b = TileBuilder::new("k", 1);
    let x = b.i32(1, Shape::SCALAR);
    let y = b.iadd(x, x);
    let mut func = finish(b);
    let inst = func.dfg.def_inst(y).expect("an instruction made it");
    func.dfg.insts[inst].args[0] = Value::from_u32(1000);
    let error = launch(&func, &[], &mut Memory::new()).expect_err("v1000 does not exist");
    assert_eq!(
        error.to_string(),
        "launch, inst1 (iadd): malformed function: V01: v1000 does not exist"
    );
    // A loop whose body is the block that it stands in.
    let mut b = TileBuilder::new("k", 1);
    let zero = b.i32(0, Shape::SCALAR);
    b.for_loop(zero, zero, zero, &[], |_, _, _| Default::default());
    let mut func = finish(b);
    let entry = func.entry;
    let inst = func.order.insts(entry)[1];
    func.dfg.insts[inst].blocks[0].block = entry;
    assert_eq!(func.all_blocks(), [entry]);
    let error = launch(&func, &[], &mut Memory::new()).expect_err("the region holds itself");
    assert!(
        error.to_string().contains("malformed function: V0"),
        "{error}"
    );
}

/// The ops that the tests of this folder run are all there are: each file lists its own.
#[test]
fn every_op_is_tested() {
    let tested: BTreeSet<TileOp> = [
        ints::OPS,
        floats::OPS,
        convert::OPS,
        shapes::OPS,
        dot::OPS,
        rings::OPS,
        boxes::OPS,
        roles::OPS,
        memory::OPS,
        atomics::OPS,
        machine::OPS,
        reports::OPS,
        reductions::OPS,
        control::OPS,
    ]
    .concat()
    .into_iter()
    .collect();
    let missing: Vec<&TileOp> = TileOp::ALL
        .iter()
        .filter(|op| !tested.contains(op))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// An attribute that the builder's method does not take, on the instruction that made `value`.
fn add_order(func: &mut TileFunction, value: Value, order: &[u32]) {
    let inst = func.dfg.def_inst(value).expect("an instruction made it");
    assert!(func.dfg.insts[inst].order().is_none());
    func.dfg.insts[inst].attrs.push(make::order(order.into()));
}
