//! What arguments kernels take, on the emulator.

use tilelift::runtime::{
    Arg, ArgList, Buffer, Constants, Descriptor, Graph, NONE, Program, RuntimeError,
};
use tilelift::tune::{Autotuned, Config, Tuner};

use crate::api::{numbers, setup};
use crate::tools::{add_program, emulator};

#[test]
fn wrong_arguments_are_told_by_name() {
    let device = emulator(None);
    let (kernel, [x, y, out]) = setup(&device, 64);
    let stream = device.stream();
    let told = |result: Result<(), RuntimeError>| result.expect_err("it is wrong").to_string();
    assert_eq!(
        told(kernel.launch(&stream, 1, (&x, &y))),
        "kernel `add` takes 4 arguments (x, y, out, n), 2 given"
    );
    let other = emulator(None);
    let foreign = Buffer::<f32>::new(&other, 64).expect("there is memory");
    assert_eq!(
        told(kernel.launch(&stream, 1, (&x, &foreign, &out, 64))),
        "kernel `add`, argument `y`: its memory belongs to another device"
    );
    assert_eq!(
        told(kernel.launch(&other.stream(), 1, (&x, &y, &out, 64))),
        "the stream belongs to another device"
    );
    let grid = |c: Constants| Some([c.int("SIZE")?, 1, 1]);
    assert!(
        told(kernel.launch(&stream, &grid, (&x, &y, &out, 64)))
            .contains("the function of the grid gave none")
    );
    assert!(told(kernel.launch(&stream, [1, 70_000], (&x, &y, &out, 64))).contains("70000"));
    kernel
        .launch(&stream, 0, (&x, &y, &out, 64))
        .expect("an empty grid is nothing to do");
    // A kernel that does not compile for its arguments shows the place in the source: that of the parameter, which makes an
    // address.
    let error = told(kernel.launch(&stream, 1, (1.5_f32, &y, &out, 64)));
    assert!(error.contains("add.py:6:9"), "{error}");
    let missing = device
        .kernel(&add_program(), "sub")
        .expect_err("there is no such kernel");
    assert_eq!(
        missing.to_string(),
        "there is no kernel `sub`; there is add"
    );
    let constant = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let error = told(constant.launch(&stream, 1, (&x, &y, &out, 64)));
    assert!(error.contains("`BLOCK` has no argument"), "{error}");
    assert!(
        kernel.warps(3).is_err() && kernel.stages(0).is_err() && kernel.max_registers(5).is_err()
    );
    assert!(x.write(&stream, &[1.0]).is_err() && x.slice(60..70).is_err());
}

#[test]
fn numbers_become_what_annotations_say() {
    let device = emulator(None);
    let kernel = |ty: &str| {
        let text = format!(
            "import triton, triton.language as tl\n\n@triton.jit\ndef put(x, n: {ty}):\n    tl.store(x, n.to(tl.float64))\n"
        );
        let program = Program::python("put.py", &text).expect("it is Python");
        device.kernel(&program, "put").expect("there is a kernel")
    };
    let x = Buffer::from_slice(&device, &[0.0_f64]).expect("there is memory");
    let stream = device.stream();
    let (int, half) = (Arg::from(-7), Arg::from(half::f16::from_f32(0.1)));
    for (ty, given, signature, value) in [
        ("tl.int64", int, "i64", -7.0),
        // What has a type is one also where its value is 1: it has methods.
        ("tl.int64", Arg::from(1_u8), "i64", 1.0),
        ("tl.int64", Arg::from(32_i8), "i64", 32.0),
        ("tl.int32", Arg::from(5_i64), "i32", 5.0),
        ("\"i16\"", int, "i16", -7.0),
        ("\"tl.uint8\"", Arg::from(255), "u8", 255.0),
        ("int", Arg::from(3_u64), "i32", 3.0),
        ("tl.float32", int, "fp32", -7.0),
        ("tl.float32", Arg::from(0.1_f64), "fp32", f64::from(0.1_f32)),
        ("float", Arg::from(true), "fp32", 1.0),
        (
            "tl.float64",
            half,
            "fp64",
            f64::from(half::f16::from_f32(0.1)),
        ),
        ("tl.bfloat16", Arg::from(257), "bf16", 256.0),
        (
            "tl.float16",
            Arg::from(0.1_f32),
            "fp16",
            f64::from(half::f16::from_f32(0.1)),
        ),
        // Nothing is said, and nothing becomes of it.
        ("tl.tensor", Arg::from(5_i64), "i64", 5.0),
        ("tl.tensor", Arg::from(0.5_f32), "fp32", 0.5),
    ] {
        let args = [Arg::from(&x), given];
        let kernel = kernel(ty);
        let result = kernel.launch(&stream, 1, args);
        assert_eq!(result, Ok(()), "{ty} {given:?}");
        assert_eq!(x.read(&stream), Ok(vec![value]), "{ty} {given:?}");
        let explained = kernel.explain(args).expect("it was launched");
        assert_eq!(explained.arguments[1].1, signature, "{ty} {given:?}");
        assert!(explained.ready, "{ty} {given:?}");
    }
    for (ty, given, problem) in [
        (
            "tl.int32",
            Arg::from(1_i64 << 40),
            "1099511627776 does not fit i32",
        ),
        ("int", Arg::from(u32::MAX), "4294967295 does not fit i32"),
        ("tl.uint32", int, "-7 does not fit u32"),
        ("tl.int1", Arg::from(2), "2 does not fit i1"),
        (
            "tl.int32",
            Arg::from(2.0_f32),
            "it is fp32, and its annotation says i32",
        ),
        (
            "tl.float32",
            Arg::from(&x),
            "it is *fp64, and its annotation says fp32",
        ),
    ] {
        let error = kernel(ty).launch(&stream, 1, [Arg::from(&x), given]);
        let error = error.expect_err("it does not fit").to_string();
        assert!(
            error.contains("argument `n`") && error.contains(problem),
            "{error}"
        );
    }
    // The same in a list with tuples, and for kernels that tune themselves.
    let text = "import triton, triton.language as tl\n\n@triton.jit\ndef put(t, n: tl.int64, B: tl.constexpr):\n    tl.store(t[0], n.to(tl.float64) + t[1])\n";
    let program = Program::python("put.py", text).expect("it is Python");
    let put = device.kernel(&program, "put").expect("there is a kernel");
    let tuner = Tuner::new([1, 2].map(|b| Config::new().constant("B", b)));
    let put = Autotuned::new(put, tuner);
    for n in [1, 2] {
        put.launch(&stream, 1, ((&x, 3), n)).expect("it runs");
        assert_eq!(x.read(&stream), Ok(vec![f64::from(n + 3)]));
    }
}

#[test]
fn kernels_take_many_arguments() {
    let device = emulator(None);
    let names: Vec<String> = (0..40).map(|i| format!("p{i}")).collect();
    let sum = names[1..].join(" + ");
    let text = format!(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef many({}):\n    tl.store(p0, {sum})\n",
        names.join(", ")
    );
    let program = Program::python("many.py", &text).expect("it is Python");
    let kernel = device.kernel(&program, None).expect("there is one kernel");
    let out = Buffer::<i32>::new(&device, 1).expect("there is memory");
    let mut args = vec![Arg::from(&out)];
    // Among them is 1, which is a constant. What the others are multiples of makes no other code.
    args.extend((1..40).map(Arg::from));
    kernel.run(1, &args).expect("it runs");
    assert_eq!(out.read(&device.stream()), Ok(vec![(1..40).sum()]));
    args[39] = Arg::from(48);
    kernel.run(1, args.as_slice()).expect("it runs");
    assert_eq!(
        out.read(&device.stream()),
        Ok(vec![(1..40).sum::<i32>() + 9])
    );
    assert_eq!(kernel.variants().len(), 1);
}

/// Copies tiles of a matrix into another, turned over.
pub(crate) const TURN: &str = r#"
import triton
import triton.language as tl

@triton.jit
def turn(x, out, scale):
    i = tl.program_id(0) * 16
    j = tl.program_id(1) * 16
    tile = x.load([i, j])
    out.store([j, i], tl.trans(tile) * scale)
"#;

#[test]
fn descriptors_are_arguments() {
    let device = emulator(None);
    let program = Program::python("turn.py", TURN).expect("it is Python");
    let turn = device.kernel(&program, "turn").expect("there is a kernel");
    assert_eq!(turn.arguments(), ["x", "out", "scale"]);
    let (rows, columns) = (20_u64, 36_u64);
    let matrix = numbers((rows * columns) as usize);
    let x = Buffer::from_slice(&device, &matrix).expect("there is memory");
    // Rows of the result have a gap behind them.
    let out = Buffer::from_slice(&device, &vec![-1.0_f32; 36 * 24]).expect("there is memory");
    let from = Descriptor::contiguous(x.ptr(), &[rows, columns], &[16, 16]).expect("it fits");
    let to = Descriptor::new(out.ptr(), &[columns, rows], &[24, 1], &[16, 16]).expect("it fits");
    let grid = [2, 3, 1];
    turn.run(grid, (from, to, 2.0_f32)).expect("it runs");
    let check = |factor: f32| {
        let result = out.read(&device.stream()).expect("it ran");
        for (i, row) in result.chunks(24).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                let expected = if j < 20 {
                    factor * matrix[j * 36 + i]
                } else {
                    -1.0
                };
                assert_eq!(value, expected, "{i}, {j}");
            }
        }
    };
    check(2.0);
    // The same from a list, and recorded.
    let mut list = ArgList::new();
    list.push(from);
    list.push(to);
    list.push(3.0_f32);
    let graph = Graph::capture(&device.stream(), |stream| turn.launch(stream, grid, &list));
    let graph = graph.expect("it is recorded");
    check(2.0);
    graph.launch(&device.stream()).expect("it runs");
    check(3.0);

    let variants = turn.variants();
    assert_eq!(variants.len(), 1);
    assert_eq!(
        variants[0].signature,
        "tensordesc<fp32[16, 16:4]>, tensordesc<fp32[16, 16:4]>, fp32"
    );
    let explained = turn
        .explain((from.pad_with_nan(), to, 2.0_f32))
        .expect("they fit");
    assert!(
        !explained.ready
            && explained
                .signature
                .starts_with("tensordesc<fp32[16:4, 16:4]>:nan")
    );
    assert!(
        explained.to_string().contains("x: tensordesc"),
        "{explained}"
    );

    // What does not fit is told.
    let other = emulator(None);
    let foreign = Buffer::<f32>::new(&other, 720).expect("there is memory");
    let foreign = Descriptor::contiguous(foreign.ptr(), &[20, 36], &[16, 16]).expect("it fits");
    let text = |result: Result<(), RuntimeError>| result.expect_err("it does not fit").to_string();
    assert_eq!(
        text(turn.run(grid, (from, foreign, 2.0_f32))),
        "kernel `turn`, argument `out`: its memory belongs to another device"
    );
    assert!(text(turn.run(grid, (from, to))).contains("takes 3 arguments"));
    assert!(text(turn.run(grid, (from, to, 1.0_f32, 1))).contains("takes 3 arguments"));
    let parts = from.parts();
    assert!(text(turn.run(grid, parts[..3].to_vec())).contains("takes 3 arguments"));
    assert!(turn.run(grid, (from, &x, 2.0_f32)).is_err());
}

/// Takes a pair of which the second element is a pair.
const WEIGH: &str = r#"
import triton
import triton.language as tl

@triton.jit
def weigh(pair, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, weighted = pair
    total = tl.load(x + i)
    if weighted[0] is not None:
        total += tl.load(weighted[0] + i) * weighted[1]
    tl.store(out + i, total)
"#;

#[test]
fn tuples_are_arguments() {
    let device = emulator(None);
    let program = Program::python("weigh.py", WEIGH).expect("it is Python");
    let weigh = device.kernel(&program, "weigh");
    let weigh = weigh.and_then(|kernel| kernel.constant("BLOCK", 64));
    let weigh = weigh.expect("there is a kernel");
    let x = Buffer::from_slice(&device, &numbers(64)).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let check = |factor: f32| {
        let sums = out.read(&device.stream()).expect("it ran");
        let expected: Vec<f32> = numbers(64).iter().map(|x| x * factor).collect();
        assert_eq!(sums, expected);
    };
    weigh.run(1, ((&x, (&x, 3.0_f32)), &out)).expect("it runs");
    check(4.0);
    weigh.run(1, ((&x, (&x, 1)), &out)).expect("it runs");
    check(2.0);
    weigh.run(1, ((&x, (NONE, 5)), &out)).expect("it runs");
    check(1.0);
    let variants = weigh.variants();
    let signatures: Vec<&str> = variants.iter().map(|v| v.signature.as_str()).collect();
    assert_eq!(
        signatures,
        [
            "(*fp32:16, (*fp32:16, fp32)), *fp32:16",
            "(*fp32:16, (*fp32:16, i32:1)), *fp32:16",
            "(*fp32:16, (None, i32)), *fp32:16",
        ]
    );
    assert!(weigh.run(1, (&x, &out)).is_err(), "a pair is expected");
}

/// Takes an object of a class of the file.
const NAMED: &str = r#"
from typing import NamedTuple
import triton
import triton.language as tl

class Scaled(NamedTuple):
    x: tl.tensor
    factor: tl.tensor

@triton.jit
def scale(scaled: Scaled, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(scaled.x + i) * scaled.factor)

@triton.jit
def unknown(scaled, out, BLOCK: tl.constexpr):
    tl.store(out, scaled.factor)
"#;

#[test]
fn tuples_are_objects_of_the_class_that_a_parameter_names() {
    let device = emulator(None);
    let program = Program::python("named.py", NAMED).expect("it is Python");
    let kernel = |name: &str| {
        let kernel = device.kernel(&program, name);
        let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 64));
        kernel.expect("there is a kernel")
    };
    let x = Buffer::from_slice(&device, &numbers(64)).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let scale = kernel("scale");
    scale.run(1, ((&x, 3.0_f32), &out)).expect("it runs");
    let expected: Vec<f32> = numbers(64).iter().map(|x| x * 3.0).collect();
    assert_eq!(out.read(&device.stream()), Ok(expected));
    let told = |result: Result<(), RuntimeError>| result.expect_err("it is wrong").to_string();
    let text = told(scale.run(1, ((&x, 3.0_f32, 1), &out)));
    assert!(
        text.contains("Scaled") && text.contains("named.py:"),
        "{text}"
    );
    let text = told(kernel("unknown").run(1, ((&x, 3.0_f32), &out)));
    assert!(text.contains("if its parameter is annotated"), "{text}");
}

#[test]
fn tensors_that_cannot_be_described_are_told() {
    let device = emulator(None);
    let x = Buffer::<f32>::new(&device, 1000).expect("there is memory");
    let of = |shape: &[u64], strides: &[u64], block: &[u64]| {
        let made = Descriptor::new(x.ptr(), shape, strides, block);
        made.err().map(|error| error.to_string())
    };
    assert_eq!(of(&[10, 100], &[100, 1], &[8, 32]), None);
    for (text, error) in [
        ("0 dimensions", of(&[], &[], &[])),
        ("6 dimensions", of(&[1; 6], &[1; 6], &[1; 6])),
        ("1 strides and 2 extents", of(&[2, 2], &[1], &[2, 2])),
        ("stride 2 in the last", of(&[10], &[2], &[4])),
        ("stride 3 of dimension 0", of(&[10, 3], &[3, 1], &[4, 4])),
        ("blocks of 6", of(&[10, 4], &[4, 1], &[6, 4])),
        ("blocks of 0", of(&[10, 4], &[4, 1], &[0, 4])),
        ("has 4004 bytes, its memory 4000", of(&[1001], &[1], &[4])),
        ("is too large", of(&[1 << 31], &[1], &[4])),
        (
            "stride 4611686018427387904 of dimension 0",
            of(&[2, 4], &[1 << 62, 1], &[4, 4]),
        ),
        (
            "bytes, its memory 4000",
            of(&[1 << 30, 4], &[1 << 60, 1], &[4, 4]),
        ),
    ] {
        let error = error.expect("it is refused");
        assert!(error.contains(text), "{error}");
    }
    let odd = x.slice(1..1000).expect("inside");
    let error = Descriptor::contiguous(odd, &[999], &[4]).expect_err("it is refused");
    assert!(
        error.to_string().contains("is not a multiple of 16"),
        "{error}"
    );
}
