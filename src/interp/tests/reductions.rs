//! Reductions and scans.

use super::{
    Memory, add_order, block, eval, eval_shape, f32s, finish, launch, pointer, row_major, shape,
};
use crate::interp::Arg;
use crate::ir::attrs::{FloatPred, IntPred, make};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::ValueList;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{F32, I32};
use crate::linear_layout::shape::Shape;

pub(super) const OPS: &[TileOp] = &[TileOp::Reduce, TileOp::Scan];

#[test]
fn an_axis_is_summed() {
    let x: Vec<u64> = (1..=8).collect();
    let sum = |extents: &[u64], axis| {
        eval_shape(extents, &[(I32, &x)], |b, xs| {
            b.reduce_one(xs[0], axis, |b, l, r| b.iadd(l, r))
        })
    };
    assert_eq!(sum(&[8], 0), Ok(vec![36]));
    assert_eq!(sum(&[2, 4], 0), Ok(vec![6, 8, 10, 12]));
    assert_eq!(sum(&[2, 4], 1), Ok(vec![10, 26]));
    assert_eq!(sum(&[2, 2, 2], 1), Ok(vec![4, 6, 12, 14]));
    // An extent of 1 leaves the elements.
    assert_eq!(sum(&[8, 1], 1), Ok(x.clone()));
}

#[test]
fn several_operands_find_the_first_largest() {
    let argmax = |numbers: &[f32]| {
        let x = f32s(numbers);
        eval(&[(F32, &x)], |b, xs| {
            let ty = b.ty(xs[0]);
            let index = b.arange(0, block(I32, &[ty.shape.extent(0)]));
            let best = b.reduce(&[xs[0], index], 0, |b, l, r| {
                // The right one wins if it is greater, or equal and earlier.
                let greater = b.fcmp(r[0], l[0], FloatPred::Ogt);
                let equal = b.fcmp(r[0], l[0], FloatPred::Oeq);
                let earlier = b.icmp(r[1], l[1], IntPred::Slt);
                let tie = b.and(equal, earlier);
                let wins = b.or(greater, tie);
                ValueList::from_slice(&[b.select(wins, r[0], l[0]), b.select(wins, r[1], l[1])])
            });
            b.splat(best[1], block(I32, &[ty.shape.extent(0)]))
        })[0]
    };
    assert_eq!(argmax(&[1.0, 5.0, 2.0, 5.0]), 1);
    assert_eq!(argmax(&[5.0, 1.0, 5.0, 5.0]), 0);
    assert_eq!(argmax(&[-3.0, -2.0, -2.5, -2.0]), 1);
}

/// The difference of pairs shows the tree: `order` is what is written, none the lowest bit first.
fn differences(order: Option<&[u32]>) -> u64 {
    let mut b = TileBuilder::new("k", 1);
    let p = b.param("p", pointer(I32));
    let out = b.param("out", pointer(I32));
    let pointers = row_major(&mut b, p, shape(&[8]));
    let x = b.load(pointers, None, None);
    // Not associative, which `reduce` asks for; that is how the tree shows: (l, r) -> 10 l + r.
    let mixed = b.reduce_one(x, 0, |b, l, r| {
        let ten = b.i32(10, Shape::SCALAR);
        let l = b.imul(l, ten);
        b.iadd(l, r)
    });
    b.store(out, mixed, None);
    let mut func = finish(b);
    if let Some(order) = order {
        add_order(&mut func, mixed, order);
    }
    let mut memory = Memory::new();
    let numbers = super::bytes(I32, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let p = memory.alloc_bytes(&numbers);
    let out = memory.alloc(4);
    launch(&func, &[Arg::Ptr(p), Arg::Ptr(out)], &mut memory).expect("all is defined");
    super::patterns(I32, memory.read(out, 4).expect("stored"))[0]
}

#[test]
fn the_order_of_bits_decides_the_tree() {
    let fold = |l: u64, r: u64| 10 * l + r;
    // Bit 0: neighbours; then bit 1, then bit 2.
    let [a, b, c, d] = [fold(1, 2), fold(3, 4), fold(5, 6), fold(7, 8)];
    let lowest_first = fold(fold(a, b), fold(c, d));
    assert_eq!(differences(None), lowest_first);
    assert_eq!(differences(Some(&[0, 1, 2])), lowest_first);
    // Bit 2: the halves; then bit 1, then bit 0.
    let [a, b, c, d] = [fold(1, 5), fold(2, 6), fold(3, 7), fold(4, 8)];
    assert_eq!(differences(Some(&[2, 1, 0])), fold(fold(a, c), fold(b, d)));
    // Bit 1, then 2, then 0.
    let [a, b, c, d] = [fold(1, 3), fold(2, 4), fold(5, 7), fold(6, 8)];
    assert_eq!(differences(Some(&[1, 2, 0])), fold(fold(a, c), fold(b, d)));
}

#[test]
fn an_axis_is_scanned_both_ways() {
    let x: Vec<u64> = (1..=8).collect();
    let sums = |extents: &[u64], axis, reverse| {
        let found = eval_shape(extents, &[(I32, &x)], |b, xs| {
            b.scan_one(xs[0], axis, reverse, |b, l, r| b.iadd(l, r))
        });
        found.expect("defined")
    };
    assert_eq!(sums(&[8], 0, false), [1, 3, 6, 10, 15, 21, 28, 36]);
    assert_eq!(sums(&[8], 0, true), [36, 35, 33, 30, 26, 21, 15, 8]);
    assert_eq!(sums(&[2, 4], 0, false), [1, 2, 3, 4, 6, 8, 10, 12]);
    assert_eq!(sums(&[2, 4], 1, true), [10, 9, 7, 4, 26, 21, 15, 8]);
    assert_eq!(sums(&[8, 1], 1, false), x);
    // What comes first stands on the left: the first of all stays.
    let found = eval_shape(&[8], &[(I32, &x)], |b, xs| {
        b.scan_one(xs[0], 0, true, |_, l, _| l)
    });
    assert_eq!(found, Ok(vec![8; 8]));
}

/// Differences, which are not associative, show the tree.
#[test]
fn a_scan_follows_its_tree() {
    let scan = |tree: Option<&[u32]>| -> Vec<i32> {
        let mut b = TileBuilder::new("k", 1);
        let p = b.param("p", pointer(I32));
        let pointers = row_major(&mut b, p, shape(&[8]));
        let x = b.load(pointers, None, None);
        let y = b.scan_one(x, 0, false, |b, l, r| b.isub(l, r));
        b.store(pointers, y, None);
        let mut func = finish(b);
        if let Some(tree) = tree {
            let inst = func.dfg.def_inst(y).expect("an instruction made it");
            func.dfg.insts[inst].attrs.push(make::tree(tree.into()));
        }
        let mut memory = Memory::new();
        let powers: Vec<u8> = (0..8).flat_map(|i| (1i32 << i).to_le_bytes()).collect();
        let address = memory.alloc_bytes(&powers);
        launch(&func, &[Arg::Ptr(address)], &mut memory).expect("defined");
        let bytes = memory.read(address, 32).expect("written");
        let numbers = bytes.chunks(4).map(|b| b.try_into().expect("four bytes"));
        numbers.map(i32::from_le_bytes).collect()
    };
    let chain = [1, -1, -5, -13, -29, -61, -125, -253];
    assert_eq!(scan(None), chain);
    assert_eq!(scan(Some(&[3])), chain);
    // Pairs -1, -4, -16, -64; by doubling 3 and 48; handed down: nothing and 3, then -1 and 3 + 16. The last of each pair is
    // what comes before it, less the pair.
    assert_eq!(scan(Some(&[1, 33, 1])), [1, -1, -5, 3, -13, 19, -45, -45]);
    // By doubling alone: differences of neighbours, then of those two places apart.
    assert_eq!(scan(Some(&[34, 1]))[..4], [1, -1, 3, 3]);
}
