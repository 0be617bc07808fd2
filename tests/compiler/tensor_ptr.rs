//! Block pointers and descriptors on interpreter and emulator: boundaries, padding, movement, strides.

use tilelift::compile::compile;
use tilelift::ir::attrs::{Cache, make};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::dfg::ValueList;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::tensor_ptr::{BlockPtr, Padding, TensorDesc, TensorPtrError};
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::settings::{Options, Target};
use tilelift::{emu, interp};

/// What the tests' buffers hold before a kernel: elements count up from here.
const FIRST: f32 = 100.0;
/// Stands for NaN in expectations.
const PADDED: f32 = -1.0;

fn pointer() -> TileType {
    TileType::scalar(Elem::global(Scalar::F32))
}

fn shape(extents: &[u64]) -> Shape {
    Shape::new(extents).expect("powers of two")
}

fn i32s(b: &mut TileBuilder, numbers: &[i32]) -> Vec<Value> {
    numbers.iter().map(|&n| b.i32(n, Shape::SCALAR)).collect()
}

/// Runs a kernel with parameters `x` (counting up) and `y` (zeros) on interpreter and emulator for every target; what `y`
/// holds afterwards.
fn run(func: &TileFunction, x_len: usize, y_len: usize) -> Vec<f32> {
    let bytes = |list: &[f32]| -> Vec<u8> { list.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let x: Vec<f32> = (0..x_len).map(|i| FIRST + i as f32).collect();
    let (x, y) = (bytes(&x), bytes(&vec![0.0; y_len]));
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let chunks = bytes.chunks_exact(4);
        let numbers = chunks.map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]));
        numbers
            .map(|x| if x.is_nan() { PADDED } else { x })
            .collect()
    };

    let mut memory = interp::Memory::new();
    let buffers = [&x, &y].map(|bytes| memory.alloc_bytes(bytes));
    let args = buffers.map(interp::Arg::Ptr);
    let launch = interp::Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    let options = interp::Options::default();
    interp::run(func, &launch, &mut memory, &options).expect("nothing is undefined");
    let expected = numbers(memory.read(buffers[1], y.len()).expect("written"));

    for target in Target::ALL {
        let kernel = compile(func, target, &Options::DEFAULT).expect("it compiles");
        let module = emu::Module::parse(&kernel.ptx).expect("our own text");
        let mut memory = emu::Memory::new();
        let buffers = [&x, &y].map(|bytes| memory.alloc_bytes(bytes));
        let args = buffers.map(emu::Arg::pointer);
        let launch = emu::Launch {
            grid: [1, 1, 1],
            block: kernel.meta.block(),
            shared_bytes: kernel.meta.shared,
            args: &args,
            options: emu::Options::default(),
        };
        emu::run(&module, &kernel.meta.name, &launch, &mut memory).expect("it runs");
        let found = numbers(&memory.read(buffers[1], y.len()).expect("written"));
        assert_eq!(found, expected, "{target}");
    }
    expected
}

/// A kernel that copies what `load` gives, of the block's extents, to `y` in row-major order.
fn copies(
    block: Shape,
    load: impl FnOnce(&mut TileBuilder, Value) -> Result<Value, TensorPtrError>,
) -> TileFunction {
    let mut b = TileBuilder::new("copies", 4);
    let x = b.param_divisible("x", pointer(), 16);
    let y = b.param_divisible("y", pointer(), 16);
    let value = load(&mut b, x).expect("a valid use");
    let width = block.extent(block.rank() - 1) as i32;
    let height = (block.elements() as i32) / width;
    let (extents, strides) = (i32s(&mut b, &[height, width]), i32s(&mut b, &[width, 1]));
    let zeros = i32s(&mut b, &[0, 0]);
    let out = BlockPtr::new(&mut b, y, (&extents, &strides), &zeros, block, &[1, 0]);
    let out = out.expect("a valid block pointer");
    out.store(&mut b, value, &[], &[make::cache(Cache::Streaming)])
        .expect("nothing is checked");
    b.ret();
    b.finish().expect("everything fits")
}

/// Element (row, column) of a tensor of 5 rows of 12, whose last column is padding of the rows.
fn element(row: i32, column: i32, outside: f32) -> f32 {
    if (0..5).contains(&row) && (0..11).contains(&column) {
        FIRST + (row * 12 + column) as f32
    } else {
        outside
    }
}

fn expected(offsets: [i32; 2], outside: f32, transposed: bool) -> Vec<f32> {
    let mut all = Vec::new();
    for i in 0..8 {
        for j in 0..16 {
            let (row, column) = if transposed {
                (offsets[1] + j, offsets[0] + i)
            } else {
                (offsets[0] + i, offsets[1] + j)
            };
            all.push(element(row, column, outside));
        }
    }
    all
}

#[test]
fn blocks_are_cut_at_every_boundary() {
    for offsets in [
        [0, 0],
        [-2, 3],
        [3, -5],
        [4, 10],
        [-7, -15],
        [5, 11],
        [-9, 40],
    ] {
        for (padding, outside) in [(Padding::Zero, 0.0), (Padding::Nan, PADDED)] {
            let block = shape(&[8, 16]);
            let func = copies(block, |b, x| {
                let (extents, strides) = (i32s(b, &[5, 11]), i32s(b, &[12, 1]));
                let offsets = i32s(b, &offsets);
                let block = BlockPtr::new(b, x, (&extents, &strides), &offsets, block, &[1, 0])?;
                block.load(b, &[0, 1], padding, &[])
            });
            assert_eq!(run(&func, 60, 128), expected(offsets, outside, false));
        }
    }
}

#[test]
fn strides_transpose_and_one_dimension_may_be_checked_alone() {
    let block = shape(&[8, 16]);
    let func = copies(block, |b, x| {
        let (extents, strides) = (i32s(b, &[11, 5]), i32s(b, &[1, 12]));
        let offsets = i32s(b, &[4, -1]);
        let block = BlockPtr::new(b, x, (&extents, &strides), &offsets, block, &[0, 1])?;
        block.load(b, &[0, 1], Padding::Zero, &[])
    });
    assert_eq!(run(&func, 60, 128), expected([4, -1], 0.0, true));

    // Columns are all there, rows are not.
    let func = copies(shape(&[4, 8]), |b, x| {
        let (extents, strides) = (i32s(b, &[3, 8]), i32s(b, &[8, 1]));
        let offsets = i32s(b, &[1, 0]);
        let block = shape(&[4, 8]);
        let block = BlockPtr::new(b, x, (&extents, &strides), &offsets, block, &[1, 0])?;
        block.load(b, &[0], Padding::Zero, &[])
    });
    let rows = (8..24).map(|i| FIRST + i as f32);
    let expected: Vec<f32> = rows.chain([0.0; 16]).collect();
    assert_eq!(run(&func, 24, 32), expected);
}

#[test]
fn a_loop_advances_a_block() {
    // Sums blocks of 4 by 4 along a row of 14 columns: the last block has two columns.
    let block = shape(&[4, 4]);
    let func = copies(block, |b, x| {
        let (extents, strides) = (i32s(b, &[4, 14]), i32s(b, &[14, 1]));
        let zeros = i32s(b, &[0, 0]);
        let first = BlockPtr::new(b, x, (&extents, &strides), &zeros, block, &[1, 0])?;
        let start = b.f32(0.0, block);
        let bounds = i32s(b, &[0, 4, 1]);
        let inits = [&[start], first.offsets()].concat();
        let results = b.for_loop(bounds[0], bounds[1], bounds[2], &inits, |b, _, carried| {
            let here = first.with_offsets(&carried[1..]);
            let x = here
                .load(b, &[1], Padding::Zero, &[])
                .expect("two dimensions");
            let sum = b.fadd(carried[0], x);
            let by = i32s(b, &[0, 4]);
            let next = here.advance(b, &by).expect("two distances");
            [&[sum], next.offsets()]
                .concat()
                .into_iter()
                .collect::<ValueList>()
        });
        Ok(results[0])
    });
    let mut expected: Vec<f32> = Vec::new();
    for row in 0..4 {
        for column in 0..4 {
            let columns = (0..4).map(|k| column + 4 * k).filter(|&c| c < 14);
            expected.push(columns.map(|c| FIRST + (row * 14 + c) as f32).sum());
        }
    }
    assert_eq!(run(&func, 56, 16), expected);
}

#[test]
fn descriptors_check_every_dimension() {
    let block = shape(&[4, 8]);
    for (padding, outside) in [(Padding::Zero, 0.0), (Padding::Nan, PADDED)] {
        let mut b = TileBuilder::new("descriptors", 2);
        let x = b.param_divisible("x", pointer(), 16);
        let y = b.param_divisible("y", pointer(), 16);
        let (extents, stride) = (i32s(&mut b, &[5, 11]), i32s(&mut b, &[12]));
        let from = TensorDesc::new(&mut b, x, (&extents, &stride), block, padding);
        let to = TensorDesc::new(&mut b, y, (&extents, &stride), block, padding);
        let (from, to) = (from.expect("valid"), to.expect("valid"));
        let (source, place) = (i32s(&mut b, &[3, 6]), i32s(&mut b, &[2, 5]));
        let value = from.load(&mut b, &source).expect("two offsets");
        to.store(&mut b, &place, value).expect("two offsets");
        b.ret();
        let func = b.finish().expect("everything fits");
        let found = run(&func, 60, 60);
        for row in 0..5 {
            for column in 0..12 {
                let is_written = (2..5).contains(&row) && (5..11).contains(&column);
                let wanted = if is_written {
                    element(row + 1, column + 1, outside)
                } else {
                    0.0
                };
                let at = (row * 12 + column) as usize;
                assert_eq!(found[at], wanted, "({row}, {column})");
            }
        }
    }
}

#[test]
fn mistakes_are_named() {
    let mut b = TileBuilder::new("mistakes", 1);
    let x = b.param("x", pointer());
    let n = b.param("n", TileType::scalar(Elem::global(Scalar::I32)));
    let two = i32s(&mut b, &[4, 4]);
    let block = shape(&[4, 4]);
    let make = |b: &mut TileBuilder, base, offsets: &[Value], order: &[usize]| {
        BlockPtr::new(b, base, (&two, &two), offsets, block, order)
    };
    let text =
        |result: Result<BlockPtr, TensorPtrError>| result.map(|_| ()).map_err(|e| e.to_string());
    let is = |message: &str| Err(message.to_owned());
    assert_eq!(
        text(make(&mut b, x, &two[..1], &[1, 0])),
        is("the block has 2 dimensions, 1 offsets are given")
    );
    assert_eq!(
        text(make(&mut b, x, &two, &[1, 1])),
        is("the order [1, 1] does not name each dimension once")
    );
    assert_eq!(
        text(make(&mut b, two[0], &two, &[1, 0])),
        is("the base is i32, not a pointer")
    );
    let ints = make(&mut b, n, &two, &[0, 1]).expect("a valid block pointer");
    let message = |result: Result<Value, TensorPtrError>| result.map_err(|e| e.to_string()).err();
    assert_eq!(
        message(ints.load(&mut b, &[0], Padding::Nan, &[])).as_deref(),
        Some("elements of type i32 cannot be padded with NaN")
    );
    assert_eq!(
        message(ints.load(&mut b, &[2], Padding::Zero, &[])).as_deref(),
        Some("there is no dimension 2 to check")
    );
    let short = ints.advance(&mut b, &two[..1]).map(|_| ());
    let expected = TensorPtrError::Rank {
        what: "distances",
        rank: 2,
        found: 1,
    };
    assert_eq!(short, Err(expected));
}
