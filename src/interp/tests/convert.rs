//! Conversions.

use super::{block, eval, f32s};
use crate::ir::attrs::Rounding;
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::level::Level;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, Bf16, F8E4M3, F8E5M2, F16, F32, F64, I1, I8, I16, I32, I64};
use crate::ir::types::{Elem, TileType, ValueType};

pub(super) const OPS: &[TileOp] = &[
    TileOp::Sext,
    TileOp::Zext,
    TileOp::Itrunc,
    TileOp::Sitofp,
    TileOp::Uitofp,
    TileOp::Fptosi,
    TileOp::Fptoui,
    TileOp::Fpext,
    TileOp::Fptrunc,
    TileOp::Bitcast,
    TileOp::PtrCast,
    TileOp::Addptr,
];

type Cast = fn(&mut TileBuilder, Value, <Tile as Level>::Type) -> Value;

fn cast(op: Cast, from: Scalar, to: Scalar, x: &[u64]) -> Vec<u64> {
    eval(&[(from, x)], |b, xs| {
        let ty = b.ty(xs[0]).with_elem(Elem::Num(to));
        op(b, xs[0], ty)
    })
}

fn narrow(rounding: Rounding, from: Scalar, to: Scalar, x: &[u64]) -> Vec<u64> {
    eval(&[(from, x)], |b, xs| {
        let ty = b.ty(xs[0]).with_elem(Elem::Num(to));
        b.fptrunc(xs[0], rounding, ty)
    })
}

#[test]
fn integers_change_width() {
    assert_eq!(
        cast(TileBuilder::sext, I8, I32, &[0x80, 0x7f]),
        [0xffff_ff80, 0x7f]
    );
    assert_eq!(cast(TileBuilder::sext, I1, I64, &[1, 0]), [u64::MAX, 0]);
    assert_eq!(cast(TileBuilder::zext, I8, I32, &[0x80]), [0x80]);
    assert_eq!(cast(TileBuilder::zext, I1, I8, &[1]), [1]);
    assert_eq!(cast(TileBuilder::itrunc, I64, I16, &[0x1_8765]), [0x8765]);
    assert_eq!(cast(TileBuilder::itrunc, I32, I1, &[2, 3]), [0, 1]);
}

#[test]
fn integers_become_floats_by_rounding_to_even() {
    let x = [0x0100_0001, 0x0100_0003, 0xffff_ffff];
    assert_eq!(
        cast(TileBuilder::sitofp, I32, F32, &x),
        f32s(&[16_777_216.0, 16_777_220.0, -1.0])
    );
    assert_eq!(
        cast(TileBuilder::uitofp, I32, F32, &x),
        f32s(&[16_777_216.0, 16_777_220.0, 4_294_967_296.0])
    );
    assert_eq!(
        cast(TileBuilder::uitofp, I32, F16, &[65_519, 65_520]),
        [0x7bff, 0x7c00]
    );
    assert_eq!(
        cast(TileBuilder::sitofp, I64, F64, &[u64::MAX]),
        [(-1f64).to_bits()]
    );
    assert_eq!(
        cast(TileBuilder::uitofp, I64, F64, &[u64::MAX]),
        [2f64.powi(64).to_bits()]
    );
    assert_eq!(cast(TileBuilder::sitofp, I8, Bf16, &[0x80]), [0xc300]);
    assert_eq!(cast(TileBuilder::uitofp, I1, F32, &[1]), f32s(&[1.0]));
    assert_eq!(cast(TileBuilder::sitofp, I1, F32, &[1]), f32s(&[-1.0]));
}

#[test]
fn floats_become_integers_by_saturation() {
    let x = f32s(&[1.9, -1.9, 3e9, -3e9, f32::NAN, f32::INFINITY, -0.9]);
    assert_eq!(
        cast(TileBuilder::fptosi, F32, I32, &x),
        [1, 0xffff_ffff, 0x7fff_ffff, 0x8000_0000, 0, 0x7fff_ffff, 0]
    );
    assert_eq!(
        cast(TileBuilder::fptoui, F32, I32, &x),
        [1, 0, 3_000_000_000, 0, 0, 0xffff_ffff, 0]
    );
    assert_eq!(
        cast(TileBuilder::fptosi, F32, I8, &x),
        [1, 0xff, 0x7f, 0x80, 0, 0x7f, 0]
    );
    assert_eq!(
        cast(TileBuilder::fptosi, F16, I16, &[0x7c00, 0xfc00]),
        [0x7fff, 0x8000]
    );
    // NaN gives the top bit alone where a side has 64 bits.
    let nan = f32s(&[f32::NAN]);
    assert_eq!(cast(TileBuilder::fptosi, F32, I64, &nan), [1 << 63]);
    assert_eq!(cast(TileBuilder::fptoui, F32, I64, &nan), [1 << 63]);
    assert_eq!(
        cast(TileBuilder::fptosi, F64, I32, &[f64::NAN.to_bits()]),
        [1 << 31]
    );
    assert_eq!(
        cast(TileBuilder::fptosi, F64, I64, &[1e300f64.to_bits()]),
        [i64::MAX as u64]
    );
}

#[test]
fn widening_is_exact() {
    // The smallest subnormal number, the largest number, infinity, a NaN.
    assert_eq!(
        cast(TileBuilder::fpext, F16, F32, &[1, 0x7bff, 0xfc00, 0x7c01]),
        [
            f32s(&[2f32.powi(-24), 65504.0, f32::NEG_INFINITY]),
            vec![0x7fff_ffff]
        ]
        .concat()
    );
    assert_eq!(
        cast(TileBuilder::fpext, Bf16, F32, &[0x0001, 0x3f80]),
        [0x1_0000, 0x3f80_0000]
    );
    assert_eq!(
        cast(TileBuilder::fpext, F32, F64, &[1]),
        [2f64.powi(-149).to_bits()]
    );
    assert_eq!(
        cast(TileBuilder::fpext, F8E4M3, F32, &[0x7e, 0x01]),
        f32s(&[448.0, 2f32.powi(-9)])
    );
    assert_eq!(
        cast(TileBuilder::fpext, F8E5M2, F16, &[0x7b, 0xfc]),
        [0x7b00, 0xfc00]
    );
}

#[test]
fn narrowing_rounds_as_told() {
    let x = f32s(&[
        65519.0,
        65520.0,
        -1e30,
        2f32.powi(-25),
        1.5 * 2f32.powi(-25),
    ]);
    assert_eq!(
        narrow(Rounding::Nearest, F32, F16, &x),
        [0x7bff, 0x7c00, 0xfc00, 0, 1]
    );
    assert_eq!(
        narrow(Rounding::Zero, F32, F16, &x),
        [0x7bff, 0x7bff, 0xfbff, 0, 0]
    );
    // Ties to even.
    assert_eq!(
        narrow(Rounding::Nearest, F32, Bf16, &[0x3f80_8000, 0x3f81_8000]),
        [0x3f80, 0x3f82]
    );
    assert_eq!(
        narrow(Rounding::Nearest, F32, Bf16, &[0xff80_0001]),
        [0x7fff]
    );
    // One rounding: through f32 the tie would break the other way.
    let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(
        narrow(Rounding::Nearest, F64, F16, &[x.to_bits()]),
        [0x3c01]
    );
    assert_eq!(
        narrow(Rounding::Nearest, F64, F32, &[1e40f64.to_bits()]),
        [0x7f80_0000]
    );
    assert_eq!(
        narrow(Rounding::Zero, F64, F32, &[1e40f64.to_bits()]),
        [0x7f7f_ffff]
    );
    assert_eq!(
        narrow(Rounding::Nearest, F32, F8E5M2, &f32s(&[57344.0, 1e6, 1.25])),
        [0x7b, 0x7b, 0x3d]
    );
    // The 8-bit formats saturate.
    let x = f32s(&[448.0, 1e6, f32::NEG_INFINITY, f32::NAN]);
    assert_eq!(
        narrow(Rounding::Nearest, F32, F8E4M3, &x),
        [0x7e, 0x7e, 0xfe, 0x7f]
    );
    assert_eq!(
        cast(TileBuilder::sitofp, I32, F8E4M3, &[1_000_000, 3]),
        [0x7e, 0x44]
    );
    assert_eq!(cast(TileBuilder::fptosi, F8E5M2, I32, &[0x7b]), [57344]);
    assert_eq!(narrow(Rounding::Zero, F32, F8E4M3, &f32s(&[1e6])), [0x7e]);
}

#[test]
fn bits_stay_when_only_the_type_changes() {
    assert_eq!(
        cast(TileBuilder::bitcast, F32, I32, &[0x7fc0_1234]),
        [0x7fc0_1234]
    );
    assert_eq!(cast(TileBuilder::bitcast, I16, Bf16, &[0x7f81]), [0x7f81]);
    assert_eq!(cast(TileBuilder::bitcast, F8E4M3, I8, &[0xff]), [0xff]);
}

/// An address comes back from a pointer moved by `offset` elements of a type.
fn moved(pointee: Scalar, offset_type: Scalar, address: u64, offset: u64) -> u64 {
    let inputs = [(I64, &[address][..]), (offset_type, &[offset][..])];
    eval(&inputs, |b, xs| {
        let pointers = TileType {
            elem: Elem::global(pointee),
            ..block(I64, &[1])
        };
        let p = b.ptr_cast(xs[0], pointers);
        let p = b.addptr(p, xs[1]);
        b.ptr_cast(p, block(I64, &[1]))
    })[0]
}

#[test]
fn pointers_move_by_elements() {
    assert_eq!(moved(F32, I32, 0x1000, 3), 0x100c);
    assert_eq!(moved(F64, I32, 0x1000, 0xffff_ffff), 0xff8);
    assert_eq!(moved(I1, I64, 0, u64::MAX), u64::MAX);
    assert_eq!(moved(I16, I64, 0x1000, 1 << 40), 0x1000 + (2 << 40));
}
