//! Products of matrices.

use super::{eval_shape, shape};
use crate::ir::attrs::DotPrecision;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{F32, I8};
use crate::ir::types::{Elem, TileType};

pub(super) const OPS: &[TileOp] = &[TileOp::Dot];

fn f32s(numbers: &[f32]) -> Vec<u64> {
    numbers.iter().map(|x| u64::from(x.to_bits())).collect()
}

#[test]
fn rows_meet_columns() {
    let (a, b) = (f32s(&[1.0, 2.0, 3.0, 4.0]), f32s(&[5.0, 6.0, 7.0, 8.0]));
    let c = f32s(&[100.0, 200.0, 300.0, 400.0]);
    let inputs: [(_, &[u64]); 3] = [(F32, &a), (F32, &b), (F32, &c)];
    let found = eval_shape(&[2, 2], &inputs, |b, xs| {
        b.dot(xs[0], xs[1], xs[2], DotPrecision::Ieee)
    });
    assert_eq!(found, Ok(f32s(&[119.0, 222.0, 343.0, 450.0])));
}

#[test]
fn batches_stay_apart_and_integers_have_signs() {
    let a: Vec<u64> = [1, 2, 3, 4, 255, 0, 0, 127].into();
    let inputs: [(_, &[u64]); 1] = [(I8, &a)];
    let found = eval_shape(&[2, 2, 2], &inputs, |b, xs| {
        let ty = TileType::block(Elem::I32, shape(&[2, 2, 2]));
        let zero = b.const_bits(0, ty);
        b.dot(xs[0], xs[0], zero, DotPrecision::Ieee)
    });
    assert_eq!(found, Ok(vec![7, 10, 15, 22, 1, 0, 0, 127 * 127]));
}

#[test]
fn tf32_drops_thirteen_bits() {
    // 1 + 2^-11 loses its last bit, 1 + 2^-10 does not.
    let a = f32s(&[1.0 + 2.0_f32.powi(-11), 1.0 + 2.0_f32.powi(-10), 0.0, 0.0]);
    let one = f32s(&[1.0, 0.0, 0.0, 1.0]);
    let zero = f32s(&[0.0; 4]);
    let inputs: [(_, &[u64]); 3] = [(F32, &a), (F32, &one), (F32, &zero)];
    for (precision, first) in [
        (DotPrecision::Tf32, 1.0),
        (DotPrecision::Ieee, 1.0 + 2.0_f32.powi(-11)),
    ] {
        let found = eval_shape(&[2, 2], &inputs, |b, xs| {
            b.dot(xs[0], xs[1], xs[2], precision)
        });
        let second = 1.0 + 2.0_f32.powi(-10);
        assert_eq!(found, Ok(f32s(&[first, second, 0.0, 0.0])));
    }
}
