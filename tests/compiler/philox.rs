//! Random numbers by Philox 4x32 with ten rounds, as `tl.rand` makes them: bit for bit those of the published vectors, on the
//! interpreter and on the emulator for every target.
//!
//! Source of algorithm and vectors: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy
//! as 1, 2, 3", 2011, and the known answers that come with its library.

use crate::common::executor::HostArg;
use crate::common::on_emu;
use tilelift::compile::compile;
use tilelift::interp::{self, Arg, Launch, Memory};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::settings::{Options, Target};

/// Counter, key and result.
const KNOWN: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
    (
        [0; 4],
        [0; 2],
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
    ),
    (
        [u32::MAX; 4],
        [u32::MAX; 2],
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
    ),
    (
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ),
];

/// Blocks of counters in each test.
const COUNT: usize = 128;

/// One result in plain Rust.
fn philox(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let product = |factor: u32, x: u32| {
            let wide = u64::from(factor) * u64::from(x);
            ((wide >> 32) as u32, wide as u32)
        };
        let (high0, low0) = product(0xd251_1f53, c[0]);
        let (high1, low1) = product(0xcd9e_8d57, c[2]);
        c = [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    c
}

/// The number in [0, 1) that `tl.rand` makes of 32 bits.
fn uniform(bits: u32) -> f32 {
    let x = bits as i32;
    let size = if x < 0 { -(x + 1) } else { x };
    size as f32 * 4.656_612_7e-10
}

/// Counters, keys and results lie word by word, [`COUNT`] each.
fn kernel() -> TileFunction {
    let mut b = TileBuilder::new("philox", 2);
    let shape = Shape::new(&[COUNT as u64]).expect("a power of two");
    let ints = TileType::block(Elem::I32, shape);
    let [counters, keys, out] = ["counters", "keys", "out"]
        .map(|n| b.param(n, TileType::scalar(Elem::global(Scalar::I32))));
    let floats = b.param("floats", TileType::scalar(Elem::global(Scalar::F32)));
    let at = |b: &mut TileBuilder, base: Value, word: usize| {
        let range = b.arange((word * COUNT) as i32, ints);
        let base = b.to_shape(base, shape);
        b.addptr(base, range)
    };
    let mut words = |base, word| {
        let p = at(&mut b, base, word);
        b.load(p, None, None)
    };
    let mut c = [0, 1, 2, 3].map(|i| words(counters, i));
    let mut key = [0, 1].map(|i| words(keys, i));
    for _ in 0..10 {
        let number = |b: &mut TileBuilder, x: u32| b.const_bits(u64::from(x), ints);
        let a = number(&mut b, 0xd251_1f53);
        let d = number(&mut b, 0xcd9e_8d57);
        let (high0, low0) = (b.umulhi(a, c[0]), b.imul(a, c[0]));
        let (high1, low1) = (b.umulhi(d, c[2]), b.imul(d, c[2]));
        let first = b.xor(high1, c[1]);
        let third = b.xor(high0, c[3]);
        c = [b.xor(first, key[0]), low1, b.xor(third, key[1]), low0];
        let steps = [0x9e37_79b9, 0xbb67_ae85].map(|x| number(&mut b, x));
        key = [b.iadd(key[0], steps[0]), b.iadd(key[1], steps[1])];
    }
    for (i, &word) in c.iter().enumerate() {
        let p = at(&mut b, out, i);
        b.store(p, word, None);
    }
    // -x - 1 is the complement.
    let shift = b.const_bits(31, ints);
    let sign = b.sshr(c[0], shift);
    let size = b.xor(c[0], sign);
    let size = b.sitofp(size, TileType::block(Elem::F32, shape));
    let scale = b.f32(4.656_612_7e-10, shape);
    let number = b.fmul(size, scale);
    let p = at(&mut b, floats, 0);
    b.store(p, number, None);
    b.ret();
    b.finish().expect("the kernel is built right")
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The first entries are the known ones, the others count up.
fn inputs() -> Vec<([u32; 4], [u32; 2])> {
    let known = KNOWN.iter().map(|&(counter, key, _)| (counter, key));
    let others = (0..).map(|i: u32| ([i, i.wrapping_mul(77), 0, i >> 3], [12_345, 678 ^ i]));
    known.chain(others).take(COUNT).collect()
}

#[test]
fn ten_rounds_give_the_published_numbers() {
    for (counter, key, result) in KNOWN {
        assert_eq!(philox(counter, key), result);
    }
    let inputs = inputs();
    let column = |f: &dyn Fn(usize) -> u32| (0..COUNT).map(f).collect::<Vec<u32>>();
    let counters: Vec<u32> = (0..4).flat_map(|w| column(&|i| inputs[i].0[w])).collect();
    let keys: Vec<u32> = (0..2).flat_map(|w| column(&|i| inputs[i].1[w])).collect();
    let results: Vec<[u32; 4]> = inputs.iter().map(|&(c, k)| philox(c, k)).collect();
    let words: Vec<u32> = (0..4).flat_map(|w| column(&|i| results[i][w])).collect();
    let floats: Vec<u32> = column(&|i| uniform(results[i][0]).to_bits());
    let (words, floats) = (bytes(&words), bytes(&floats));

    let func = kernel();
    let mut memory = Memory::new();
    let buffers = [
        bytes(&counters),
        bytes(&keys),
        vec![0; 16 * COUNT],
        vec![0; 4 * COUNT],
    ];
    let places = buffers.each_ref().map(|buffer| memory.alloc_bytes(buffer));
    let args = places.map(Arg::Ptr);
    let launch = Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    interp::run(&func, &launch, &mut memory, &interp::Options::default()).expect("it runs");
    assert_eq!(memory.read(places[2], 16 * COUNT).expect("written"), words);
    assert_eq!(memory.read(places[3], 4 * COUNT).expect("written"), floats);

    let args = buffers.map(HostArg::Buffer);
    for target in Target::ALL {
        let kernel = compile(&func, target, &Options::DEFAULT).expect("the kernel compiles");
        let after = on_emu::run(&kernel, [1, 1, 1], &args).expect("it runs");
        assert_eq!(after[2].bytes(), words, "{target}");
        assert_eq!(after[3].bytes(), floats, "{target}");
    }
}
