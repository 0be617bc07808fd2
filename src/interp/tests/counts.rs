//! What a run counts: floating-point operations and bytes.

use super::{Memory, block, bytes, finish, pointer, row_major, shape};
use crate::interp::{Arg, Launch, Options, Stats, run};
use crate::ir::attrs::DotPrecision;
use crate::ir::builder::TileBuilder;
use crate::ir::types::Scalar::{F16, F32, I32};

fn counted(build: impl FnOnce(&mut TileBuilder), args: &[Arg], memory: &mut Memory) -> Stats {
    let mut b = TileBuilder::new("k", 1);
    build(&mut b);
    let func = finish(b);
    let options = Options {
        count_bytes: true,
        ..Options::default()
    };
    let launch = Launch {
        grid: [2, 1, 1],
        args,
    };
    run(&func, &launch, memory, &options).expect("nothing is undefined")
}

#[test]
fn arithmetic_counts_and_the_rest_does_not() {
    let mut memory = Memory::new();
    let stats = counted(
        |b| {
            let x = b.f32(3.0, shape(&[8]));
            let sum = b.fadd(x, x);
            let fused = b.fma(sum, x, x);
            let root = b.sqrt(fused);
            let _ = b.fneg(root);
            let index = b.arange(0, block(I32, &[8]));
            let _ = b.iadd(index, index);
            let a = b.const_bits(0, block(F16, &[16, 32]));
            let c = b.const_bits(0, block(F16, &[32, 8]));
            let acc = b.f32(0.0, shape(&[16, 8]));
            b.dot(a, c, acc, DotPrecision::Ieee);
        },
        &[],
        &mut memory,
    );
    // Of each of two programs: 8 sums, 8 fused, 8 roots, and 16 * 8 sums of 32 products.
    assert_eq!(stats.flops, 2 * (8 + 16 + 8 + 2 * 16 * 8 * 32));
    assert_eq!((stats.bytes_read, stats.bytes_written), (0, 0));
}

#[test]
fn a_byte_counts_once_however_often_it_is_read() {
    let mut memory = Memory::new();
    let x = memory.alloc_bytes(&bytes(F32, &[1; 8]));
    let out = memory.alloc(64);
    let stats = counted(
        |b| {
            let (p, out) = (b.param("x", pointer(F32)), b.param("out", pointer(F32)));
            let pointers = row_major(b, p, shape(&[8]));
            let x = b.load(pointers, None, None);
            let y = b.load(pointers, None, None);
            let sum = b.fadd(x, y);
            let pointers = row_major(b, out, shape(&[8]));
            b.store(pointers, sum, None);
        },
        &[Arg::Ptr(x), Arg::Ptr(out)],
        &mut memory,
    );
    // Both programs do the same.
    assert_eq!((stats.loaded, stats.stored), (32, 16));
    assert_eq!((stats.bytes_read, stats.bytes_written), (32, 32));
}
