//! Loops, branches, and limits.

use super::{Memory, bytes, failure, finish, launch, patterns, pointer};
use crate::interp::{Arg, InterpErrorKind, Launch, Options, run};
use crate::ir::attrs::IntPred;
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::ValueList;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::I32;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

pub(super) const OPS: &[TileOp] = &[
    TileOp::For,
    TileOp::While,
    TileOp::If,
    TileOp::Yield,
    TileOp::Condition,
    TileOp::Return,
];

/// A kernel that gets three i32 numbers and stores what `make` makes of them.
fn kernel(make: impl FnOnce(&mut TileBuilder, [Value; 3]) -> Value) -> TileFunction {
    let mut b = TileBuilder::new("k", 1);
    let out = b.param("out", pointer(I32));
    let xs = ["a", "b", "c"].map(|name| b.param(name, TileType::scalar(Elem::I32)));
    let result = make(&mut b, xs);
    b.store(out, result, None);
    finish(b)
}

fn call(func: &TileFunction, args: [i64; 3]) -> Result<i32, InterpErrorKind> {
    let mut memory = Memory::new();
    let out = memory.alloc(4);
    let args = [
        Arg::Ptr(out),
        Arg::Int(args[0]),
        Arg::Int(args[1]),
        Arg::Int(args[2]),
    ];
    launch(func, &args, &mut memory).map_err(|e| e.kind)?;
    let found = memory.read(out, 4).expect("the kernel stores its result");
    Ok(patterns(I32, found)[0] as i32)
}

fn one(value: Value) -> ValueList {
    ValueList::from_slice(&[value])
}

#[test]
fn loops_count() {
    // sum = sum * 10 + i
    let func = kernel(|b, [lo, hi, step]| {
        let zero = b.i32(0, Shape::SCALAR);
        b.for_loop(lo, hi, step, &[zero], |b, i, carried| {
            let ten = b.i32(10, Shape::SCALAR);
            let sum = b.imul(carried[0], ten);
            one(b.iadd(sum, i))
        })[0]
    });
    assert_eq!(call(&func, [1, 5, 1]), Ok(1234));
    assert_eq!(call(&func, [1, 6, 2]), Ok(135));
    assert_eq!(call(&func, [5, 5, 1]), Ok(0));
    assert_eq!(call(&func, [5, -5, 1]), Ok(0));
    assert_eq!(call(&func, [-2, 1, 1]), Ok(-210));
    // The sum past the last number does not wrap around.
    let top = i64::from(i32::MAX);
    assert_eq!(call(&func, [top - 1, top, 2]), Ok(i32::MAX - 1));
    assert_eq!(call(&func, [0, 5, 0]), Err(InterpErrorKind::LoopStep(0)));
    assert_eq!(call(&func, [0, 5, -1]), Err(InterpErrorKind::LoopStep(-1)));
    assert_eq!(call(&func, [9, 5, 0]), Err(InterpErrorKind::LoopStep(0)));
}

#[test]
fn loops_nest_and_carry_several_values() {
    // Fibonacci numbers, a steps, each step b times over with values swapped.
    let func = kernel(|b, [n, _, _]| {
        let (zero, step) = (b.i32(0, Shape::SCALAR), b.i32(1, Shape::SCALAR));
        let results = b.for_loop(zero, n, step, &[zero, step], |b, i, outer| {
            let sum = b.iadd(outer[0], outer[1]);
            // An inner loop that adds i - i, i times.
            let same = b.for_loop(zero, i, step, &[sum], |b, _, inner| {
                let nothing = b.isub(i, i);
                one(b.iadd(inner[0], nothing))
            });
            ValueList::from_slice(&[outer[1], same[0]])
        });
        results[0]
    });
    assert_eq!(call(&func, [10, 0, 0]), Ok(55));
    assert_eq!(call(&func, [0, 0, 0]), Ok(0));
}

#[test]
fn while_loops_pass_values_on() {
    // Collatz steps of a; the results of the loop are what its condition passes on.
    let func = kernel(|b, [n, _, _]| {
        let zero = b.i32(0, Shape::SCALAR);
        let results = b.while_loop(
            &[n, zero],
            |b, values| {
                let stop = b.i32(1, Shape::SCALAR);
                let more = b.icmp(values[0], stop, IntPred::Ne);
                // In the other order, to tell carried values from passed ones.
                (more, ValueList::from_slice(&[values[1], values[0]]))
            },
            |b, passed| {
                let step = b.i32(1, Shape::SCALAR);
                let odd = b.and(passed[1], step);
                let odd = b.icmp(odd, step, IntPred::Eq);
                let next = b.if_else(
                    odd,
                    |b| {
                        let three = b.i32(3, Shape::SCALAR);
                        let x = b.imul(passed[1], three);
                        one(b.iadd(x, step))
                    },
                    |b| one(b.ushr(passed[1], step)),
                );
                ValueList::from_slice(&[next[0], b.iadd(passed[0], step)])
            },
        );
        results[0]
    });
    assert_eq!(call(&func, [1, 0, 0]), Ok(0));
    assert_eq!(call(&func, [6, 0, 0]), Ok(8));
    assert_eq!(call(&func, [27, 0, 0]), Ok(111));
}

#[test]
fn only_the_branch_taken_runs() {
    let mut b = TileBuilder::new("k", 1);
    let out = b.param("out", pointer(I32));
    let wild = b.param("wild", pointer(I32));
    let which = b.param("which", TileType::scalar(Elem::I1));
    let x = b.if_else(
        which,
        |b| one(b.load(out, None, None)),
        |b| one(b.load(wild, None, None)),
    );
    b.if_else(
        which,
        |b| {
            b.store(out, x[0], None);
            ValueList::new()
        },
        |_| ValueList::new(),
    );
    let func = finish(b);
    let mut memory = Memory::new();
    let out = memory.alloc_bytes(&bytes(I32, &[7]));
    let mut args = [Arg::Ptr(out), Arg::Ptr(12), Arg::Int(1)];
    assert_eq!(launch(&func, &args, &mut memory).map(|s| s.stored), Ok(1));
    args[2] = Arg::Int(0);
    assert!(failure(&func, &args, &mut memory).contains("not inside a buffer"));
}

#[test]
fn endless_loops_hit_the_limit() {
    let func = kernel(|b, [x, _, _]| {
        let forever = b.const_bits(1, TileType::scalar(Elem::I1));
        b.while_loop(
            &[x],
            |_, values| (forever, one(values[0])),
            |_, values| one(values[0]),
        )[0]
    });
    let launch = Launch {
        grid: [1, 1, 1],
        args: &[Arg::Ptr(0), Arg::Int(0), Arg::Int(0), Arg::Int(0)],
    };
    let options = Options {
        step_limit: 1000,
        ..Options::default()
    };
    let error = run(&func, &launch, &mut Memory::new(), &options).expect_err("it never ends");
    assert_eq!(error.kind, InterpErrorKind::StepLimit(1000));
}

#[test]
fn the_deepest_nesting_is_no_crash() {
    fn nested(b: &mut TileBuilder, depth: usize, x: Value) -> Value {
        if depth == 0 {
            return x;
        }
        let yes = b.const_bits(1, TileType::scalar(Elem::I1));
        let results = b.if_else(yes, |b| one(nested(b, depth - 1, x)), |_| one(x));
        results[0]
    }
    let func = kernel(|b, [x, _, _]| nested(b, crate::text::parse::MAX_NESTING, x));
    assert_eq!(call(&func, [5, 0, 0]), Ok(5));
}
