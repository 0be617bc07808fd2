//! Loads and stores, and what they may not do.

use super::{Memory, block, bytes, failure, finish, launch, patterns, pointer, row_major, shape};
use crate::interp::{
    Arg, InterpError, InterpErrorKind, Launch, MemoryError, Options, OtherProgram, run,
};
use crate::ir::attrs::IntPred;
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::{SourceLine, SourceLoc};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, F32, I1, I8, I32, I64};
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

pub(super) const OPS: &[TileOp] = &[TileOp::Load, TileOp::Store, TileOp::Barrier];

#[test]
fn masked_off_elements_touch_nothing() {
    for with_other in [false, true] {
        let mut b = TileBuilder::new("k", 1);
        let p = b.param("p", pointer(F32));
        let out = b.param("out", pointer(F32));
        let index = b.arange(0, block(I32, &[4]));
        let two = b.i32(2, shape(&[4]));
        let mask = b.icmp(index, two, IntPred::Slt);
        // Beyond the second element the addresses are wild and misaligned.
        let far = b.const_bits(0xdead_beef_dead_beef, block(I64, &[4]));
        let far = b.ptr_cast(far, TileType::block(Elem::global(F32), shape(&[4])));
        let pointers = row_major(&mut b, p, shape(&[4]));
        let pointers = b.select(mask, pointers, far);
        let other = with_other.then(|| b.f32(7.0, shape(&[4])));
        let x = b.load(pointers, Some(mask), other);
        b.store(pointers, x, Some(mask));
        let pointers = row_major(&mut b, out, shape(&[4]));
        b.store(pointers, x, None);
        let func = finish(b);
        let mut memory = Memory::new();
        let p = memory.alloc_bytes(&bytes(F32, &[1, 2]));
        let out = memory.alloc(16);
        let stats = launch(&func, &[Arg::Ptr(p), Arg::Ptr(out)], &mut memory);
        let stats = stats.expect("nothing wild is touched");
        assert_eq!((stats.loaded, stats.stored), (2, 6));
        let found = patterns(F32, memory.read(out, 16).expect("stored"));
        let rest = if with_other { 0x40e0_0000 } else { 0 };
        assert_eq!(found, [1, 2, rest, rest]);
    }
}

#[test]
fn truth_values_are_bytes() {
    let mut b = TileBuilder::new("k", 1);
    let p = b.param("p", pointer(I1));
    let out = b.param("out", pointer(I1));
    let pointers = row_major(&mut b, p, shape(&[4]));
    let x = b.load(pointers, None, None);
    let pointers = row_major(&mut b, out, shape(&[4]));
    b.store(pointers, x, None);
    let func = finish(b);
    let mut memory = Memory::new();
    let p = memory.alloc_bytes(&[0, 1, 2, 0xff]);
    let out = memory.alloc(4);
    launch(&func, &[Arg::Ptr(p), Arg::Ptr(out)], &mut memory).expect("all bytes are there");
    assert_eq!(memory.read(out, 4), Ok(&[0, 1, 1, 1][..]));
}

/// Loads one i32.
fn load_one() -> TileFunction {
    let mut b = TileBuilder::new("k", 1);
    let p = b.param("p", pointer(I32));
    b.set_loc(SourceLoc(Some(SourceLine(12, 0)).into()));
    b.load(p, None, None);
    finish(b)
}

#[test]
fn bad_addresses_are_reported_with_their_place() {
    let mut memory = Memory::new();
    let p = memory.alloc(8);
    memory.write(p, &[1, 2, 3]).expect("inside");
    let func = load_one();
    let error = launch(&func, &[Arg::Ptr(p)], &mut memory).expect_err("one byte is missing");
    assert_eq!(
        error.to_string(),
        format!(
            "program (0, 0, 0), inst0 (load), line 12: the byte at {:#x} was never written (buffer of 8 bytes at {p:#x})",
            p + 3
        )
    );
    let mut failure = |address| failure(&func, &[Arg::Ptr(address)], &mut memory);
    assert_eq!(
        failure(p + 2),
        format!("address {:#x} is not a multiple of 4", p + 2)
    );
    assert!(failure(p + 8).contains("not inside a buffer"));
    assert!(failure(0).contains("not inside a buffer"));
}

/// Stores the i32 numbers 0, 1, .. shifted right by `shift` at offsets shifted likewise.
fn store_shifted(offset_shift: i32, value_shift: i32) -> TileFunction {
    let mut b = TileBuilder::new("k", 1);
    let out = b.param("out", pointer(I32));
    let index = b.arange(0, block(I32, &[4]));
    let shift = b.i32(offset_shift, shape(&[4]));
    let offsets = b.ushr(index, shift);
    let pointers = b.splat(out, TileType::block(Elem::global(I32), shape(&[4])));
    let pointers = b.addptr(pointers, offsets);
    let shift = b.i32(value_shift, shape(&[4]));
    let x = b.ushr(index, shift);
    b.store(pointers, x, None);
    finish(b)
}

#[test]
fn one_store_may_not_contradict_itself() {
    let mut memory = Memory::new();
    let out = memory.alloc(16);
    let error = launch(&store_shifted(1, 0), &[Arg::Ptr(out)], &mut memory);
    assert_eq!(
        error.expect_err("0 and 1 go to one address").kind,
        InterpErrorKind::StoreConflict {
            address: out,
            first: 0,
            second: 1
        }
    );
    // Equal values are no contradiction.
    launch(&store_shifted(1, 1), &[Arg::Ptr(out)], &mut memory).expect("values are equal");
    assert_eq!(memory.read(out, 8), Ok(&bytes(I32, &[0, 1])[..]));
    assert!(memory.read(out + 8, 1).is_err());
}

/// Each program loads an element at `load * program` and stores it at `store * program + 1`, in bytes.
fn load_and_store(load: Option<i32>, store: Option<i32>) -> TileFunction {
    let mut b = TileBuilder::new("k", 1);
    let p = b.param("p", pointer(I8));
    let pid = b.program_id(0);
    let at = |b: &mut TileBuilder, factor: i32, offset: i32| {
        let factor = b.i32(factor, Shape::SCALAR);
        let offset = b.i32(offset, Shape::SCALAR);
        let at = b.imul(pid, factor);
        let at = b.iadd(at, offset);
        b.addptr(p, at)
    };
    if let Some(factor) = load {
        let place = at(&mut b, factor, 0);
        b.load(place, None, None);
    }
    if let Some(factor) = store {
        let place = at(&mut b, factor, 1);
        let x = b.const_bits(5, TileType::scalar(Elem::Num(Scalar::I8)));
        b.store(place, x, None);
    }
    finish(b)
}

fn run_four(func: &TileFunction, check_races: bool) -> Result<(), InterpError> {
    let mut memory = Memory::new();
    let p = memory.alloc_bytes(&[0; 16]);
    let launch = Launch {
        grid: [4, 1, 1],
        args: &[Arg::Ptr(p)],
    };
    let options = Options {
        check_races,
        ..Options::default()
    };
    run(func, &launch, &mut memory, &options).map(|_| ())
}

#[test]
fn races_between_programs_are_reported() {
    let race = |func: &TileFunction| {
        let error = run_four(func, true).expect_err("the programs race");
        assert!(run_four(func, false).is_ok());
        match error.kind {
            InterpErrorKind::Race {
                writes,
                other,
                other_writes,
                ..
            } => (error.place.program, writes, other, other_writes),
            kind => panic!("{kind}"),
        }
    };
    // All store one value to one byte: nobody can tell who was last.
    let equal = load_and_store(None, Some(0));
    assert!(run_four(&equal, true).is_ok());
    // Unless one asks for it.
    let mut memory = Memory::new();
    let args = [Arg::Ptr(memory.alloc(16))];
    let grid = [2, 1, 1];
    let options = Options {
        report_equal_writes: true,
        ..Options::default()
    };
    let launch = Launch { grid, args: &args };
    let error = run(&equal, &launch, &mut memory, &options).expect_err("they race");
    assert!(error.to_string().contains("race"), "{error}");
    // Different values are a race.
    let mut b = TileBuilder::new("k", 1);
    let p = b.param("p", pointer(I32));
    let pid = b.program_id(0);
    b.store(p, pid, None);
    assert_eq!(
        race(&finish(b)),
        (Some([1, 0, 0]), true, OtherProgram::One(0), true)
    );
    // Program 1 reads what program 0 wrote.
    assert_eq!(
        race(&load_and_store(Some(1), Some(1))),
        (Some([1, 0, 0]), false, OtherProgram::One(0), true)
    );
    // Program p reads 5 * p and writes 2 * p + 1: program 2 writes what 1 read.
    assert_eq!(
        race(&load_and_store(Some(5), Some(2))),
        (Some([2, 0, 0]), true, OtherProgram::One(1), false)
    );
    // Reading alone is no race, nor are accesses of one program.
    assert!(run_four(&load_and_store(Some(0), None), true).is_ok());
    assert!(run_four(&load_and_store(Some(2), Some(2)), true).is_ok());
}

#[test]
fn many_readers_are_remembered() {
    let mut b = TileBuilder::new("k", 1);
    let p = b.param("p", pointer(I8));
    b.load(p, None, None);
    let pid = b.program_id(0);
    let three = b.i32(3, Shape::SCALAR);
    let last = b.icmp(pid, three, IntPred::Eq);
    let x = b.const_bits(0, TileType::scalar(Elem::Num(I8)));
    b.store(p, x, Some(last));
    let error = run_four(&finish(b), true).expect_err("the last program writes what all read");
    assert!(
        error
            .to_string()
            .ends_with("is written here and was read by several programs"),
        "{error}"
    );
}

#[test]
fn a_launch_starts_with_a_clean_record() {
    let func = load_and_store(None, Some(1));
    let mut memory = Memory::new();
    let p = memory.alloc_bytes(&[0; 16]);
    for _ in 0..2 {
        let launch = Launch {
            grid: [4, 1, 1],
            args: &[Arg::Ptr(p)],
        };
        let stats = run(&func, &launch, &mut memory, &Options::default());
        assert_eq!(stats.map(|s| s.stored), Ok(4));
    }
}

#[test]
fn a_scalar_access_outside_of_memory_names_the_buffer_below() {
    let mut memory = Memory::new();
    let p = memory.alloc_bytes(&[0; 4]);
    let error = launch(&load_one(), &[Arg::Ptr(p + 4)], &mut memory).expect_err("past the end");
    assert_eq!(
        error.kind,
        InterpErrorKind::Memory(MemoryError::OutOfBounds {
            address: p + 4,
            bytes: 4,
            nearest: Some((p, 4))
        })
    );
}

#[test]
fn a_program_orders_its_accesses_by_barriers() {
    // One byte is read, then written, then accessed once more.
    let kernel = |barrier: bool, writes: bool| {
        let mut b = TileBuilder::new("k", 1);
        let p = b.param("p", pointer(I8));
        let x = b.load(p, None, None);
        b.store(p, x, None);
        if barrier {
            b.barrier();
        }
        if writes {
            let ones = b.const_bits(255, TileType::scalar(Elem::Num(I8)));
            let other = b.xor(x, ones);
            b.store(p, other, None);
        } else {
            b.load(p, None, None);
        }
        finish(b)
    };
    for writes in [false, true] {
        let mut memory = Memory::new();
        let p = memory.alloc_bytes(&[9]);
        let args = [Arg::Ptr(p)];
        assert!(launch(&kernel(true, writes), &args, &mut memory).is_ok());
        let error = launch(&kernel(false, writes), &args, &mut memory);
        assert_eq!(
            error.expect_err("no barrier").kind,
            InterpErrorKind::Unordered { address: p, writes }
        );
    }
}
