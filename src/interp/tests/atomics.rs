//! Atomic ops: what they compute, and what they order between programs.

use super::{Memory, block, bytes, finish, patterns, pointer, row_major, shape};
use crate::interp::{Arg, InterpErrorKind, Launch, Options, OtherProgram, Stats, run};
use crate::ir::attrs::{IntPred, MemOrder, RmwOp, Scope};
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, Bf16, F16, F32, F64, I16, I32, I64};
use crate::linear_layout::shape::Shape;

pub(super) const OPS: &[TileOp] = &[TileOp::AtomicRmw, TileOp::AtomicCas];

fn launch(
    func: &TileFunction,
    programs: u32,
    args: &[Arg],
    memory: &mut Memory,
) -> Result<Stats, InterpErrorKind> {
    let launch = Launch {
        grid: [programs, 1, 1],
        args,
    };
    run(func, &launch, memory, &Options::default()).map_err(|error| error.kind)
}

/// One op on blocks of the given elements: what memory holds afterwards, and the results.
fn step(
    scalar: Scalar,
    held: &[u64],
    values: &[u64],
    op: impl FnOnce(&mut TileBuilder, Value, Value) -> Value,
) -> (Vec<u64>, Vec<u64>) {
    let mut b = TileBuilder::new("k", 1);
    let [p, x, out] = ["p", "x", "out"].map(|name| b.param(name, pointer(scalar)));
    let extent = shape(&[held.len() as u64]);
    let [p, x, out] = [p, x, out].map(|base| row_major(&mut b, base, extent));
    let x = b.load(x, None, None);
    let old = op(&mut b, p, x);
    b.store(out, old, None);
    let func = finish(b);
    let mut memory = Memory::new();
    let buffers = [held, values, held].map(|list| memory.alloc_bytes(&bytes(scalar, list)));
    let args = buffers.map(Arg::Ptr);
    launch(&func, 1, &args, &mut memory).expect("nothing is undefined");
    let size = held.len() * scalar.bytes() as usize;
    let [held, results] = [buffers[0], buffers[2]].map(|buffer| {
        let read = memory.read(buffer, size).expect("written");
        patterns(scalar, read)
    });
    (held, results)
}

fn rmw(scalar: Scalar, rmw: RmwOp, held: &[u64], values: &[u64]) -> Vec<u64> {
    let (after, results) = step(scalar, held, values, |b, p, x| {
        b.atomic_rmw(p, x, None, rmw, MemOrder::Relaxed, Scope::Gpu)
    });
    assert_eq!(results, held, "{rmw:?}");
    after
}

#[test]
fn elements_are_combined_and_the_old_ones_result() {
    let minus = |n: u64| n.wrapping_neg() & 0xffff_ffff;
    let (held, values) = ([5, minus(3), 0xf0, 7], [minus(1), 2, 0x3c, 7]);
    for (op, expected) in [
        (RmwOp::Add, [4, minus(1), 0x12c, 14]),
        (RmwOp::Smax, [5, 2, 0xf0, 7]),
        (RmwOp::Smin, [minus(1), minus(3), 0x3c, 7]),
        (RmwOp::Umax, [minus(1), minus(3), 0xf0, 7]),
        (RmwOp::Umin, [5, 2, 0x3c, 7]),
        (RmwOp::And, [5, 0, 0x30, 7]),
        (RmwOp::Or, [minus(1), minus(1), 0xfc, 7]),
        (RmwOp::Xor, [minus(6), minus(1), 0xcc, 0]),
        (RmwOp::Xchg, values),
    ] {
        assert_eq!(rmw(I32, op, &held, &values), expected, "{op:?}");
    }
    assert_eq!(rmw(I64, RmwOp::Smin, &[1], &[u64::MAX]), [u64::MAX]);
    assert_eq!(rmw(F16, RmwOp::Fadd, &[0x3c00], &[0x3c01]), [0x4000]);
    // Half-way between two numbers: to even.
    assert_eq!(rmw(Bf16, RmwOp::Fadd, &[0x3f80], &[0x3b80]), [0x3f80]);
    assert_eq!(
        rmw(F64, RmwOp::Fadd, &[1.5f64.to_bits()], &[0.25f64.to_bits()]),
        [1.75f64.to_bits()]
    );
}

#[test]
fn sums_of_f32_flush_subnormals_and_others_do_not() {
    let minimum = 0x0080_0000;
    let held = [1, 0x8000_0001, minimum + 1, 0x3f80_0000];
    let values = [1, 0, 0x8000_0000 | minimum, 1];
    let expected = [0, 0, 0, 0x3f80_0000];
    assert_eq!(rmw(F32, RmwOp::Fadd, &held, &values), expected);
    assert_eq!(rmw(F16, RmwOp::Fadd, &[1], &[1]), [2]);
    assert_eq!(rmw(Bf16, RmwOp::Fadd, &[1], &[1]), [2]);
    assert_eq!(rmw(F64, RmwOp::Fadd, &[1], &[1]), [2]);
}

#[test]
fn exchange_needs_equal_bits() {
    let negative_zero = 0x8000;
    for scalar in [I16, F16] {
        let (after, results) = step(
            scalar,
            &[0, negative_zero, 3, 0],
            &[7, 8, 9, 10],
            |b, p, x| {
                let zero = b.const_bits(0, b.ty(x));
                b.atomic_cas(p, zero, x, MemOrder::AcqRel, Scope::Sys)
            },
        );
        assert_eq!(results, [0, negative_zero, 3, 0]);
        assert_eq!(after, [7, negative_zero, 3, 10]);
    }
}

#[test]
fn a_mask_keeps_elements_and_gives_zero() {
    let (after, results) = step(I32, &[10, 20, 30, 40], &[1, 1, 1, 1], |b, p, x| {
        let index = b.arange(0, block(I32, &[4]));
        let two = b.i32(2, shape(&[4]));
        let mask = b.icmp(index, two, IntPred::Slt);
        b.atomic_rmw(p, x, Some(mask), RmwOp::Add, MemOrder::Relaxed, Scope::Cta)
    });
    assert_eq!(after, [11, 21, 30, 40]);
    assert_eq!(results, [10, 20, 0, 0]);
}

/// Each program writes its own element, counts, and the one that finds the counter at `last` reads the first.
fn hand_over(sem: MemOrder, extent: Option<Shape>) -> TileFunction {
    let mut b = TileBuilder::new("k", 1);
    let [x, count, out] = ["x", "count", "out"].map(|name| b.param(name, pointer(I32)));
    let id = b.program_id(0);
    let own = b.addptr(x, id);
    b.store(own, id, None);
    let one = b.i32(1, Shape::SCALAR);
    let seen = match extent {
        None => b.atomic_rmw(count, one, None, RmwOp::Add, sem, Scope::Gpu),
        Some(extent) => {
            b.barrier();
            let counts = row_major(&mut b, count, extent);
            let ones = b.to_shape(one, extent);
            let seen = b.atomic_rmw(counts, ones, None, RmwOp::Add, sem, Scope::Gpu);
            b.barrier();
            b.reduce_one(seen, 0, |b, x, y| b.smin(x, y))
        }
    };
    let is_last = b.icmp(seen, one, IntPred::Eq);
    b.if_else(
        is_last,
        |b| {
            let first = b.load(x, None, None);
            b.store(out, first, None);
            Default::default()
        },
        |_| Default::default(),
    );
    finish(b)
}

#[test]
fn release_and_acquire_order_programs_and_nothing_less_does() {
    for extent in [None, Some(shape(&[4]))] {
        for &sem in MemOrder::ALL {
            let func = hand_over(sem, extent);
            let mut memory = Memory::new();
            let x = memory.alloc(8);
            let count = memory.alloc_bytes(&[0; 16]);
            let out = memory.alloc(4);
            let args = [x, count, out].map(Arg::Ptr);
            let result = launch(&func, 2, &args, &mut memory);
            if sem == MemOrder::AcqRel {
                assert!(result.is_ok(), "{sem:?}: {result:?}");
                assert_eq!(memory.read(out, 4), Ok(&[0; 4][..]));
            } else {
                let race = InterpErrorKind::Race {
                    address: x,
                    writes: false,
                    other: OtherProgram::One(0),
                    other_writes: true,
                };
                assert_eq!(result, Err(race), "{sem:?}");
            }
        }
    }
}

#[test]
fn plain_and_atomic_accesses_race() {
    for store_first in [true, false] {
        let mut b = TileBuilder::new("k", 1);
        let x = b.param("x", pointer(I32));
        let zero = b.i32(0, Shape::SCALAR);
        let id = b.program_id(0);
        let is_first = b.icmp(id, zero, IntPred::Eq);
        let store = |b: &mut TileBuilder| {
            b.store(x, zero, None);
            Default::default()
        };
        let count = |b: &mut TileBuilder| {
            b.atomic_rmw(x, zero, None, RmwOp::Add, MemOrder::AcqRel, Scope::Gpu);
            Default::default()
        };
        if store_first {
            b.if_else(is_first, store, count);
        } else {
            b.if_else(is_first, count, store);
        }
        let func = finish(b);
        let mut memory = Memory::new();
        let x = memory.alloc_bytes(&[0; 4]);
        let race = InterpErrorKind::Race {
            address: x,
            writes: true,
            other: OtherProgram::One(0),
            other_writes: true,
        };
        assert_eq!(launch(&func, 2, &[Arg::Ptr(x)], &mut memory), Err(race));
    }
}

#[test]
fn many_readers_are_told_apart_where_steps_order_them() {
    // Every program reads x and counts; the last one overwrites it.
    let mut b = TileBuilder::new("k", 1);
    let [x, count, out] = ["x", "count", "out"].map(|name| b.param(name, pointer(I32)));
    let id = b.program_id(0);
    let value = b.load(x, None, None);
    let own = b.addptr(out, id);
    b.store(own, value, None);
    let one = b.i32(1, Shape::SCALAR);
    let seen = b.atomic_rmw(count, one, None, RmwOp::Add, MemOrder::AcqRel, Scope::Gpu);
    let last = b.i32(3, Shape::SCALAR);
    let is_last = b.icmp(seen, last, IntPred::Eq);
    b.if_else(
        is_last,
        |b| {
            b.store(x, one, None);
            Default::default()
        },
        |_| Default::default(),
    );
    let func = finish(b);
    for (programs, fits) in [(4, true), (5, false)] {
        let mut memory = Memory::new();
        let buffers = [4, 4, 20].map(|n| memory.alloc_bytes(&vec![0; n]));
        let result = launch(&func, programs, &buffers.map(Arg::Ptr), &mut memory);
        assert_eq!(result.is_ok(), fits, "{result:?}");
    }
}
