//! Library compositions on interpreter and emulator, on random data, for every element type, several numbers of warps and
//! degenerate shapes, beside plain Rust.

use tilelift::compile::compile;
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::compose::{self, ComposeError, SortOrder};
use tilelift::ir::entities::Value;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::settings::{Options, Target};
use tilelift::{emu, interp};

/// Shapes, with the warps that share them.
const SHAPES: &[(&[u64], u32)] = &[
    (&[1], 1),
    (&[1], 4),
    (&[2], 1),
    (&[1, 1], 2),
    (&[8, 1], 4),
    (&[1, 16], 2),
    (&[64], 8),
    (&[4, 32], 1),
    (&[16, 8], 4),
    (&[2, 4, 8], 2),
    (&[256], 4),
];

/// Element types that have an order.
const SORTED: [Scalar; 10] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::F16,
    Scalar::Bf16,
    Scalar::F32,
    Scalar::F64,
    Scalar::F8E4M3,
    Scalar::F8E5M2,
];

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("powers of two")
}

/// A generator of bits (xorshift64*).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Elements as their bits.
fn encoded(scalar: Scalar, elements: &[u64]) -> Vec<u8> {
    let size = scalar.bytes() as usize;
    let bytes = elements
        .iter()
        .flat_map(|e| e.to_le_bytes()[..size].to_vec());
    bytes.collect()
}

fn decoded(scalar: Scalar, bytes: &[u8]) -> Vec<u64> {
    let wide = |chunk: &[u8]| {
        let mut all = [0; 8];
        all[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(all)
    };
    let chunks = bytes.chunks_exact(scalar.bytes() as usize);
    chunks.map(wide).collect()
}

/// Random elements; among floats some NaNs, infinities and zeros of both signs. Few distinct ones, so that some are equal.
fn elements(scalar: Scalar, count: usize, random: &mut Random) -> Vec<u64> {
    let mask = u64::MAX >> (64 - scalar.bits());
    let mut all: Vec<u64> = Vec::with_capacity(count);
    for _ in 0..count {
        let bits = random.bits();
        all.push(match bits % 8 {
            0 if !all.is_empty() => all[(bits >> 8) as usize % all.len()],
            1 => 0,
            2 => 1 << (scalar.bits() - 1),
            _ => random.bits() & mask,
        });
    }
    all
}

/// Runs a function of blocks of the given shape on interpreter and emulator; what it gives.
fn run(
    inputs: &[(Scalar, &[u64])],
    extents: &[u64],
    warps: u32,
    body: impl FnOnce(&mut TileBuilder, &[Value]) -> Value,
) -> Vec<u64> {
    let extents = shape(extents);
    let mut b = TileBuilder::new("composed", warps);
    let mut pointers = Vec::new();
    for (i, &(scalar, _)) in inputs.iter().enumerate() {
        let ty = TileType::scalar(Elem::global(scalar));
        pointers.push(b.param_divisible(&format!("x{i}"), ty, 16));
    }
    let blocks: Vec<Value> = inputs
        .iter()
        .zip(&pointers)
        .map(|(&(scalar, _), &pointer)| {
            let addresses = addresses(&mut b, pointer, extents);
            let flat = b.load(addresses, None, None);
            b.reshape(flat, TileType::block(Elem::Num(scalar), extents))
        })
        .collect();
    // The result's type is known once it is made, its pointer must be a parameter: one of bytes is cast.
    let out = b.param_divisible("out", TileType::scalar(Elem::global(Scalar::I8)), 16);
    let result = body(&mut b, &blocks);
    let ty = b.ty(result);
    let scalar = ty.elem.scalar().expect("a number");
    let address = b.ptr_cast(out, TileType::scalar(Elem::I64));
    let out = b.ptr_cast(address, TileType::scalar(Elem::global(scalar)));
    let addresses = addresses(&mut b, out, ty.shape);
    let flat = b.reshape(result, TileType::block(ty.elem, b.ty(addresses).shape));
    b.store(addresses, flat, None);
    b.ret();
    let func = b.finish().expect("everything fits");
    let data: Vec<Vec<u8>> = inputs.iter().map(|&(s, x)| encoded(s, x)).collect();
    let size = ty.shape.elements() * scalar.bytes() as usize;

    let mut memory = interp::Memory::new();
    let mut buffers: Vec<_> = data.iter().map(|x| memory.alloc_bytes(x)).collect();
    buffers.push(memory.alloc_bytes(&vec![0xa5; size]));
    let args: Vec<_> = buffers.iter().map(|&x| interp::Arg::Ptr(x)).collect();
    let launch = interp::Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    let options = interp::Options::default();
    interp::run(&func, &launch, &mut memory, &options).expect("nothing is undefined");
    let last = buffers[buffers.len() - 1];
    let expected = decoded(scalar, memory.read(last, size).expect("written"));

    for target in [Target::SM_75, Target::SM_80, Target::SM_90] {
        let kernel = compile(&func, target, &Options::DEFAULT).expect("it compiles");
        let module = emu::Module::parse(&kernel.ptx).expect("our own text");
        let mut memory = emu::Memory::new();
        let mut buffers: Vec<_> = data.iter().map(|x| memory.alloc_bytes(x)).collect();
        buffers.push(memory.alloc_bytes(&vec![0xa5; size]));
        let args: Vec<_> = buffers.iter().map(|&x| emu::Arg::pointer(x)).collect();
        let launch = emu::Launch {
            grid: [1, 1, 1],
            block: kernel.meta.block(),
            shared_bytes: kernel.meta.shared,
            args: &args,
            options: emu::Options::default(),
        };
        emu::run(&module, &kernel.meta.name, &launch, &mut memory).expect("it runs");
        let last = buffers[buffers.len() - 1];
        let found = decoded(scalar, &memory.read(last, size).expect("written"));
        assert_eq!(found, expected, "{target}: {ty} over {warps} warps");
    }
    expected
}

/// Addresses of as many elements as the shape has, side by side.
fn addresses(b: &mut TileBuilder, pointer: Value, extents: Shape) -> Value {
    let flat = shape(&[extents.elements() as u64]);
    let range = b.arange(0, TileType::block(Elem::I32, flat));
    let pointers = b.to_shape(pointer, flat);
    b.addptr(pointers, range)
}

/// A number whose order among unsigned numbers is that of the element.
fn rank(scalar: Scalar, unsigned: bool, bits: u64) -> u64 {
    let sign = 1u64 << (scalar.bits() - 1);
    let is_float = Elem::Num(scalar).is_float();
    if unsigned && !is_float {
        bits
    } else if is_float && bits & sign != 0 {
        !bits & (sign | (sign - 1))
    } else if is_float {
        bits | sign
    } else {
        bits ^ sign
    }
}

fn sorted(
    scalar: Scalar,
    order: SortOrder,
    elements: &[u64],
    width: usize,
    keep: usize,
) -> Vec<u64> {
    let rows = elements.chunks(width).flat_map(|row| {
        let mut row = row.to_vec();
        row.sort_by_key(|&x| rank(scalar, order.unsigned, x));
        if order.descending {
            row.reverse();
        }
        row.truncate(keep);
        row
    });
    rows.collect()
}

#[test]
fn sorts_every_type() {
    let mut random = Random(1);
    for (i, &(extents, warps)) in SHAPES.iter().enumerate() {
        let count = extents.iter().product::<u64>() as usize;
        let width = extents[extents.len() - 1];
        for (j, scalar) in SORTED.into_iter().enumerate() {
            let order = SortOrder {
                descending: (i + j) % 2 == 1,
                unsigned: j % 3 == 0,
            };
            let x = elements(scalar, count, &mut random);
            let found = run(&[(scalar, &x)], extents, warps, |b, xs| {
                compose::sort(b, xs[0], order).expect("a block of numbers")
            });
            let expected = sorted(scalar, order, &x, width as usize, width as usize);
            assert_eq!(found, expected, "{scalar} {extents:?}");
        }
    }
}

#[test]
fn finds_the_best() {
    let mut random = Random(2);
    for &(extents, warps) in SHAPES {
        let count = extents.iter().product::<u64>() as usize;
        let width = extents[extents.len() - 1];
        for (i, keep) in [1, 2, 8, 64]
            .into_iter()
            .filter(|&k| k <= width)
            .enumerate()
        {
            let scalar = [Scalar::F32, Scalar::I32, Scalar::F16, Scalar::I64][i];
            let order = SortOrder {
                descending: i != 1,
                unsigned: i == 3,
            };
            let x = elements(scalar, count, &mut random);
            let found = run(&[(scalar, &x)], extents, warps, |b, xs| {
                compose::top(b, xs[0], keep, order).expect("a block of numbers")
            });
            let expected = sorted(scalar, order, &x, width as usize, keep as usize);
            assert_eq!(found, expected, "{keep} of {extents:?}");
        }
    }
}

#[test]
fn merges_what_goes_up_and_down() {
    let mut random = Random(3);
    for &(extents, warps) in SHAPES {
        let count = extents.iter().product::<u64>() as usize;
        let width = extents[extents.len() - 1] as usize;
        let order = SortOrder::default();
        let mut x = elements(Scalar::F32, count, &mut random);
        for row in x.chunks_mut(width) {
            let top = random.bits() as usize % (width + 1);
            row[..top].sort_by_key(|&x| rank(Scalar::F32, false, x));
            row[top..].sort_by_key(|&x| u64::MAX - rank(Scalar::F32, false, x));
        }
        let found = run(&[(Scalar::F32, &x)], extents, warps, |b, xs| {
            compose::bitonic_merge(b, xs[0], order).expect("a block of numbers")
        });
        assert_eq!(
            found,
            sorted(Scalar::F32, order, &x, width, width),
            "{extents:?}"
        );
    }
}

#[test]
fn reverses_interleaves_and_adds_up() {
    let mut random = Random(4);
    for &(extents, warps) in SHAPES {
        let shape = shape(extents);
        let count = shape.elements();
        for axis in 0..shape.rank() {
            // Along the axis: elements `stride` apart, `extent` of them.
            let (stride, extent) = (
                1usize << shape.bit_offset(axis),
                shape.extent(axis) as usize,
            );
            let place = |at: usize| at / stride % extent;
            for scalar in [Scalar::I8, Scalar::F16, Scalar::I32, Scalar::F64] {
                let x = elements(scalar, count, &mut random);
                let found = run(&[(scalar, &x)], extents, warps, |b, xs| {
                    compose::flip(b, xs[0], axis as u8).expect("a dimension")
                });
                let expected: Vec<u64> = (0..count)
                    .map(|at| x[at + (extent - 1) * stride - 2 * place(at) * stride])
                    .collect();
                assert_eq!(found, expected, "{scalar} {extents:?} along {axis}");
            }
            let x = elements(Scalar::I32, count, &mut random);
            for reverse in [false, true] {
                let along = |at: usize| {
                    let first = at - place(at) * stride;
                    let range = if reverse {
                        place(at)..extent
                    } else {
                        0..place(at) + 1
                    };
                    range.map(move |i| first + i * stride)
                };
                let found = run(&[(Scalar::I32, &x)], extents, warps, |b, xs| {
                    compose::cumsum(b, xs[0], axis as u8, reverse)
                });
                let low = |n: u64| n & 0xffff_ffff;
                let sum = |at| low(along(at).fold(0, |sum: u64, i| sum.wrapping_add(x[i])));
                assert_eq!(
                    found,
                    (0..count).map(sum).collect::<Vec<_>>(),
                    "{extents:?} along {axis}"
                );
                let found = run(&[(Scalar::I32, &x)], extents, warps, |b, xs| {
                    compose::cumprod(b, xs[0], axis as u8, reverse)
                });
                let product =
                    |at| low(along(at).fold(1, |all: u64, i| low(all).wrapping_mul(x[i])));
                assert_eq!(
                    found,
                    (0..count).map(product).collect::<Vec<_>>(),
                    "{extents:?} along {axis}"
                );
            }
        }
        let (x, y) = (
            elements(Scalar::I16, count, &mut random),
            elements(Scalar::I16, count, &mut random),
        );
        let inputs: [(_, &[u64]); 2] = [(Scalar::I16, &x), (Scalar::I16, &y)];
        let found = run(&inputs, extents, warps, |b, xs| {
            compose::interleave(b, xs[0], xs[1]).expect("a small block")
        });
        let expected: Vec<u64> = x.iter().zip(&y).flat_map(|(&x, &y)| [x, y]).collect();
        assert_eq!(found, expected, "{extents:?}");
    }
}

#[test]
fn counts_what_the_mask_shows() {
    let mut random = Random(5);
    for &(extents, warps) in SHAPES {
        let count = extents.iter().product::<u64>() as usize;
        for (i, scalar) in [
            Scalar::I1,
            Scalar::I8,
            Scalar::I16,
            Scalar::I32,
            Scalar::I64,
        ]
        .into_iter()
        .enumerate()
        {
            for bins in [1u64, 4, 256, 1024] {
                let limit = (u64::MAX >> (64 - scalar.bits())).min(2 * bins - 1);
                let x: Vec<u64> = (0..count).map(|_| random.bits() & limit).collect();
                let shown: Vec<u64> = (0..count).map(|_| random.bits() & 1).collect();
                let masked = (i + bins as usize).is_multiple_of(2);
                let inputs: [(_, &[u64]); 2] = [(scalar, &x), (Scalar::I1, &shown)];
                let found = run(&inputs, extents, warps, |b, xs| {
                    let mask = masked.then_some(xs[1]);
                    compose::histogram(b, xs[0], bins, mask).expect("integers")
                });
                let mut expected = vec![0; bins as usize];
                for (&x, &shown) in x.iter().zip(&shown) {
                    if x < bins && (!masked || shown == 1) {
                        expected[x as usize] += 1;
                    }
                }
                assert_eq!(found, expected, "{scalar} {extents:?} in {bins}");
            }
        }
    }
}

#[test]
fn mistakes_are_told() {
    let mut b = TileBuilder::new("k", 1);
    let scalar = b.i32(1, Shape::SCALAR);
    let block = b.i32(1, shape(&[4, 8]));
    let truths = b.bool(true, shape(&[4]));
    let order = SortOrder::default();
    let unsorted = ComposeError::Unordered(Elem::I1);
    assert_eq!(compose::sort(&mut b, truths, order), Err(unsorted));
    assert_eq!(
        compose::sort(&mut b, scalar, order),
        Err(ComposeError::Block("i32".into()))
    );
    for wanted in [0, 3, 16] {
        let error = ComposeError::Count { wanted, extent: 8 };
        assert_eq!(compose::top(&mut b, block, wanted, order), Err(error));
    }
    let axis = ComposeError::Axis { axis: 2, rank: 2 };
    assert_eq!(compose::flip(&mut b, block, 2), Err(axis));
    assert!(compose::histogram(&mut b, block, 3, None).is_err());
    let float = b.f32(1.0, shape(&[4]));
    let counted = ComposeError::NotInteger(Elem::F32);
    assert_eq!(compose::histogram(&mut b, float, 4, None), Err(counted));
}
