//! Ops that make and rearrange blocks, and promises.

use super::{Memory, block, eval, eval_shape, failure, finish, launch, shape};
use crate::interp::{Arg, Launch, Options, run};
use crate::ir::attrs::List;
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{F32, I8, I32};
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

pub(super) const OPS: &[TileOp] = &[
    TileOp::Const,
    TileOp::Splat,
    TileOp::ProgramId,
    TileOp::NumPrograms,
    TileOp::Arange,
    TileOp::Broadcast,
    TileOp::ExpandDims,
    TileOp::Reshape,
    TileOp::Permute,
    TileOp::Join,
    TileOp::Split,
    TileOp::Gather,
    TileOp::Histogram,
    TileOp::ConvertLayout,
    TileOp::AssumeMultiple,
    TileOp::AssumeContiguous,
    TileOp::AssumeConstant,
];

#[test]
fn constants_are_cut_to_their_type() {
    let found = eval(&[(I32, &[0; 4])], |b, _| {
        b.const_bits(0x1ff, block(I8, &[4]))
    });
    assert_eq!(found, [0xff; 4]);
    let found = eval(&[(F32, &[0; 2])], |b, _| {
        let x = b.f32(1.5, Shape::SCALAR);
        b.splat(x, block(F32, &[2]))
    });
    assert_eq!(found, [0x3fc0_0000; 2]);
    let found = eval(&[(I32, &[0; 4])], |b, _| b.arange(-2, block(I32, &[4])));
    assert_eq!(found, [0xffff_fffe, 0xffff_ffff, 0, 1]);
}

#[test]
fn shapes_change_in_row_major_order() {
    let x: Vec<u64> = (0..8).collect();
    let y: Vec<u64> = (10..18).collect();
    let found = eval(&[(I32, &x)], |b, xs| {
        let cube = b.reshape(xs[0], block(I32, &[2, 2, 2]));
        // Element (i, j, k) of the result is (j, k, i) of the operand.
        let transposed = b.permute(cube, List::from_slice(&[2, 0, 1]));
        b.reshape(transposed, block(I32, &[8]))
    });
    assert_eq!(found, [0, 2, 4, 6, 1, 3, 5, 7]);
    let inputs: [(_, &[u64]); 2] = [(I32, &x), (I32, &y)];
    let found = eval_shape(&[8], &inputs, |b, xs| b.join(xs[0], xs[1]));
    assert_eq!(
        found.as_deref().map(|f| &f[..6]),
        Ok(&[0, 10, 1, 11, 2, 12][..])
    );
    for (axis, extents, first) in [(0, &[8][..], [6, 7, 10, 11]), (1, &[2, 4], [2, 3, 10, 11])] {
        let found = eval_shape(extents, &inputs, |b, xs| b.cat(xs[0], xs[1], axis));
        let found = found.expect("defined");
        let at = if axis == 0 { 6 } else { 2 };
        assert_eq!(found[at..at + 4], first, "side by side along axis {axis}");
    }
    let found = eval_shape(&[4, 2], &[(I32, &x)], |b, xs| b.split(xs[0], 1));
    assert_eq!(found, Ok(vec![1, 3, 5, 7]));
}

#[test]
fn a_gather_looks_up_along_its_axis() {
    let x: Vec<u64> = (0..8).collect();
    let index = [3, 0, 1, 1, 2, 3, 0, 7];
    let inputs: [(_, &[u64]); 2] = [(I32, &x), (I8, &index)];
    let along = |axis| {
        let found = eval_shape(&[2, 4], &inputs, |b, xs| b.gather(xs[0], xs[1], axis));
        found.expect("any index is defined")
    };
    // The last index lies outside: some element, here the one modulo the extent.
    assert_eq!(along(1), [3, 0, 1, 1, 6, 7, 4, 7]);
    assert_eq!(along(0), [4, 1, 6, 7, 0, 5, 2, 7]);
}

#[test]
fn programs_know_their_place() {
    let mut b = TileBuilder::new("k", 1);
    let out = b.param("out", super::pointer(I32));
    let ids: Vec<Value> = (0..3).map(|axis| b.program_id(axis)).collect();
    let counts: Vec<Value> = (0..3).map(|axis| b.num_programs(axis)).collect();
    // Row number z * (y extent * x extent) + y * (x extent) + x of six numbers each.
    let row = b.imul(ids[2], counts[1]);
    let row = b.iadd(row, ids[1]);
    let row = b.imul(row, counts[0]);
    let row = b.iadd(row, ids[0]);
    let six = b.i32(6, Shape::SCALAR);
    let first = b.imul(row, six);
    for (i, &number) in ids.iter().chain(&counts).enumerate() {
        let i = b.i32(i as i32, Shape::SCALAR);
        let at = b.iadd(first, i);
        let p = b.addptr(out, at);
        b.store(p, number, None);
    }
    let func = finish(b);
    let mut memory = Memory::new();
    let out = memory.alloc(4 * 6 * 24);
    let launch = Launch {
        grid: [4, 3, 2],
        args: &[Arg::Ptr(out)],
    };
    let stats = run(&func, &launch, &mut memory, &Options::default()).expect("all is defined");
    assert_eq!((stats.programs, stats.stored), (24, 144));
    let found = super::patterns(
        I32,
        memory.read(out, 4 * 6 * 24).expect("every row is there"),
    );
    assert_eq!(found[..6], [0, 0, 0, 4, 3, 2]);
    assert_eq!(found[6..12], [1, 0, 0, 4, 3, 2]);
    assert_eq!(found[4 * 6..5 * 6], [0, 1, 0, 4, 3, 2]);
    assert_eq!(found[23 * 6..], [3, 2, 1, 4, 3, 2]);
}

#[test]
fn extents_grow() {
    let column = eval_shape(&[4, 1], &[(I32, &[1, 2, 3, 4])], |b, xs| {
        b.broadcast(xs[0], block(I32, &[4, 2]))
    });
    assert_eq!(column, Ok(vec![1, 1, 2, 2, 3, 3, 4, 4]));
    let row = eval_shape(&[1, 4], &[(I32, &[1, 2, 3, 4])], |b, xs| {
        b.broadcast(xs[0], block(I32, &[2, 4]))
    });
    assert_eq!(row, Ok(vec![1, 2, 3, 4, 1, 2, 3, 4]));
    let middle = eval_shape(&[2, 1, 2], &[(I32, &[1, 2, 3, 4])], |b, xs| {
        b.broadcast(xs[0], block(I32, &[2, 2, 2]))
    });
    assert_eq!(middle, Ok(vec![1, 2, 1, 2, 3, 4, 3, 4]));
    let outer = eval_shape(&[2], &[(I32, &[1, 2])], |b, xs| {
        let column = b.expand_dims(xs[0], 1);
        let row = b.expand_dims(xs[0], 0);
        let column = b.broadcast(column, block(I32, &[2, 2]));
        let row = b.broadcast(row, block(I32, &[2, 2]));
        let ten = b.i32(10, shape(&[2, 2]));
        let column = b.imul(column, ten);
        b.iadd(column, row)
    });
    assert_eq!(outer, Ok(vec![11, 12, 21, 22]));
}

#[test]
fn layouts_do_not_change_values() {
    let text = "
kernel @k(v0 \"out\": ptr<i32>) warps(1) {
    layout #0 = {reg=[1], lane=[2,0,0,0,0]} : [4]
    layout #1 = {reg=[2], lane=[1,0,0,0,0]} : [4]
block0:
    v1 = arange {start = 3} : i32[4; #0]
    v2 = convert_layout v1 : i32[4; #1]
    v3 = reduce v2 {axis = 0} : i32 {
    block1(v4: i32, v5: i32):
        v6 = iadd v4, v5 : i32
        yield v6
    }
    store v0, v3
    return
}
";
    let func = crate::text::parse::parse_tile(text).expect("valid");
    let mut memory = super::Memory::new();
    let out = memory.alloc(4);
    super::launch(&func, &[super::Arg::Ptr(out)], &mut memory).expect("nothing is undefined");
    // 3 + 4 + 5 + 6.
    assert_eq!(memory.read(out, 4), Ok(&18i32.to_le_bytes()[..]));
}

type Hint = fn(&mut TileBuilder, Value, List) -> Value;

fn hinted(extents: &[u64], numbers: &[u64], hint: Hint, values: &[u32]) -> Result<(), String> {
    let inputs = [(I32, numbers)];
    let result = eval_shape(extents, &inputs, |b, xs| hint(b, xs[0], values.into()));
    match result {
        Ok(found) => {
            assert_eq!(found, numbers);
            Ok(())
        }
        Err(error) => Err(error.kind.to_string()),
    }
}

#[test]
fn broken_promises_are_reported() {
    let multiple: Hint = TileBuilder::assume_multiple;
    let contiguous: Hint = TileBuilder::assume_contiguous;
    let constant: Hint = TileBuilder::assume_constant;
    // What counts up is judged by its first element.
    assert_eq!(hinted(&[4], &[8, 9, 10, 11], multiple, &[8]), Ok(()));
    assert_eq!(hinted(&[4], &[8, 16, 8, 9], multiple, &[8]), Ok(()));
    assert_eq!(
        hinted(&[4], &[8, 9, 11, 16], multiple, &[8]),
        Err("broken promise: element 2 (0xb) is not a multiple of 8 along dimension 0".into())
    );
    assert_eq!(hinted(&[4], &[8, 9, 3, 4], contiguous, &[2]), Ok(()));
    assert_eq!(
        hinted(&[4], &[8, 9, 3, 5], contiguous, &[2]),
        Err(
            "broken promise: element 3 (0x5) does not follow the one before it in a run of 2 along dimension 0"
                .into()
        )
    );
    assert_eq!(hinted(&[4], &[8, 8, 3, 3], constant, &[2]), Ok(()));
    assert_eq!(
        hinted(&[4], &[8, 8, 3, 4], constant, &[2]),
        Err(
            "broken promise: element 3 (0x4) differs from the one before it in a run of 2 along dimension 0"
                .into()
        )
    );
    // Two dimensions: equal down the columns, counting along the rows.
    let block = [4, 5, 4, 5];
    assert_eq!(hinted(&[2, 2], &block, contiguous, &[1, 2]), Ok(()));
    assert_eq!(hinted(&[2, 2], &block, constant, &[2, 1]), Ok(()));
    assert!(hinted(&[2, 2], &block, constant, &[1, 2]).is_err());
    assert!(hinted(&[2, 2], &block, contiguous, &[2, 1]).is_err());
}

#[test]
fn promises_of_pointers_count_bytes() {
    let kernel = |contiguous: bool| {
        let mut b = TileBuilder::new("k", 1);
        let p = b.param("p", super::pointer(F32));
        let p = b.assume_multiple(p, List::from_slice(&[16]));
        let offsets = b.arange(0, block(I32, &[8]));
        let stride = b.i32(if contiguous { 1 } else { 2 }, shape(&[8]));
        let offsets = b.imul(offsets, stride);
        let pointers = b.splat(p, TileType::block(Elem::global(F32), shape(&[8])));
        let pointers = b.addptr(pointers, offsets);
        b.assume_contiguous(pointers, List::from_slice(&[8]));
        finish(b)
    };
    let mut memory = Memory::new();
    assert!(launch(&kernel(true), &[Arg::Ptr(32)], &mut memory).is_ok());
    assert!(failure(&kernel(false), &[Arg::Ptr(32)], &mut memory).starts_with("broken promise"));
    assert!(failure(&kernel(true), &[Arg::Ptr(36)], &mut memory).starts_with("broken promise"));
    let unchecked = Options {
        check_promises: false,
        ..Options::default()
    };
    let launch = Launch {
        grid: [1, 1, 1],
        args: &[Arg::Ptr(36)],
    };
    assert!(run(&kernel(false), &launch, &mut memory, &unchecked).is_ok());
}
