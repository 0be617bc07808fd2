//! Integer ops.

use super::eval;
use crate::ir::attrs::IntPred;
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, I1, I8, I16, I32, I64};

pub(super) const OPS: &[TileOp] = &[
    TileOp::Iadd,
    TileOp::Isub,
    TileOp::Imul,
    TileOp::Sdiv,
    TileOp::Udiv,
    TileOp::Srem,
    TileOp::Urem,
    TileOp::Smin,
    TileOp::Smax,
    TileOp::Umin,
    TileOp::Umax,
    TileOp::And,
    TileOp::Or,
    TileOp::Xor,
    TileOp::Shl,
    TileOp::Sshr,
    TileOp::Ushr,
    TileOp::Icmp,
    TileOp::Smulhi,
    TileOp::Umulhi,
    TileOp::Iabs,
    TileOp::Popc,
    TileOp::Clz,
    TileOp::Brev,
    TileOp::BytePerm,
    TileOp::Rare,
];

type Op2 = fn(&mut TileBuilder, Value, Value) -> Value;

/// Checks rows of (a, b, expected).
fn check(scalar: Scalar, op: Op2, rows: &[(u64, u64, u64)]) {
    let column = |f: fn(&(u64, u64, u64)) -> u64| -> Vec<u64> { rows.iter().map(f).collect() };
    let (a, b) = (column(|r| r.0), column(|r| r.1));
    let found = eval(&[(scalar, &a), (scalar, &b)], |build, xs| {
        op(build, xs[0], xs[1])
    });
    assert_eq!(found, column(|r| r.2), "{scalar}: {rows:x?}");
}

#[test]
fn what_is_rare_is_as_true_as_before() {
    let found = eval(&[(I1, &[0, 1, 1])], |build, xs| build.rare(xs[0]));
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn sums_and_products_wrap() {
    let top64 = 1 << 63;
    check(I32, TileBuilder::iadd, &[(0xffff_ffff, 2, 1), (3, 4, 7)]);
    check(I8, TileBuilder::iadd, &[(0x80, 0x80, 0)]);
    check(I64, TileBuilder::iadd, &[(u64::MAX, 1, 0)]);
    check(I32, TileBuilder::isub, &[(0, 1, 0xffff_ffff)]);
    check(I16, TileBuilder::isub, &[(0x8000, 1, 0x7fff)]);
    check(I32, TileBuilder::imul, &[(0x1_0001, 0x1_0001, 0x2_0001)]);
    check(I64, TileBuilder::imul, &[(top64 + 1, 2, 2)]);
}

#[test]
fn upper_halves_of_products() {
    let rows = [(0xffff_ffff, 0xffff_ffff, 0), (0x8000_0000, 2, 0xffff_ffff)];
    check(I32, TileBuilder::smulhi, &rows);
    let rows = [(0xffff_ffff, 0xffff_ffff, 0xffff_fffe), (0x8000_0000, 2, 1)];
    check(I32, TileBuilder::umulhi, &rows);
    check(
        I8,
        TileBuilder::smulhi,
        &[(0x80, 0x80, 0x40), (0x80, 0x7f, 0xc0)],
    );
    check(
        I64,
        TileBuilder::umulhi,
        &[(u64::MAX, u64::MAX, u64::MAX - 1)],
    );
    check(I64, TileBuilder::smulhi, &[(1 << 63, 1 << 63, 1 << 62)]);
}

#[test]
fn bits_are_counted_and_reversed() {
    let one = |scalar, x: &[u64], op: fn(&mut TileBuilder, Value) -> Value| {
        eval(&[(scalar, x)], |b, xs| op(b, xs[0]))
    };
    assert_eq!(
        one(I16, &[0, 0xffff, 0x0101], TileBuilder::popc),
        [0, 16, 2]
    );
    assert_eq!(one(I8, &[0, 1, 0x80], TileBuilder::clz), [8, 7, 0]);
    assert_eq!(one(I64, &[0, 1], TileBuilder::clz), [64, 63]);
    assert_eq!(
        one(I32, &[1, 0xf000_0000], TileBuilder::brev),
        [1 << 31, 15]
    );
    assert_eq!(one(I8, &[0x13], TileBuilder::brev), [0xc8]);
    assert_eq!(
        one(I32, &[0xffff_fffe, 1 << 31], TileBuilder::iabs),
        [2, 1 << 31]
    );
}

#[test]
fn bytes_go_where_digits_say() {
    let words = [0x3322_1180, 0x7766_5544];
    // As they stand, the other way round, every second one; signs of the first byte and of the last but one.
    let digits = [0x3210, 0x4567, 0x6420, 0x0ee8, 0xffff_0000];
    let wanted = [
        0x3322_1180,
        0x4455_6677,
        0x6644_2280,
        0x8000_00ff,
        0x8080_8080,
    ];
    let repeated = words.map(|word| [word; 5]);
    let found = eval(
        &[(I32, &repeated[0]), (I32, &repeated[1]), (I32, &digits)],
        |b, xs| b.byte_perm(xs[0], xs[1], xs[2]),
    );
    assert_eq!(found, wanted);
}

#[test]
fn quotients_and_remainders_have_their_signs() {
    let minus = |x: u64| x.wrapping_neg() & 0xffff_ffff;
    check(
        I32,
        TileBuilder::sdiv,
        &[
            (7, 2, 3),
            (minus(7), 2, minus(3)),
            (7, minus(2), minus(3)),
            (minus(7), minus(2), 3),
        ],
    );
    check(
        I32,
        TileBuilder::srem,
        &[
            (7, 3, 1),
            (minus(7), 3, minus(1)),
            (7, minus(3), 1),
            (minus(7), minus(3), minus(1)),
        ],
    );
    check(I32, TileBuilder::udiv, &[(minus(1), 2, 0x7fff_ffff)]);
    check(I32, TileBuilder::urem, &[(minus(1), 16, 15)]);
    check(I8, TileBuilder::sdiv, &[(0xf0, 4, 0xfc)]);
    check(I8, TileBuilder::udiv, &[(0xf0, 4, 0x3c)]);
}

/// The numbers are unspecified: only that there is one, and that nothing traps.
#[test]
fn division_by_zero_does_not_trap() {
    for scalar in [I8, I16, I32, I64] {
        let lowest = 1 << (scalar.bits() - 1);
        let ones = u64::MAX >> (64 - scalar.bits());
        let ops: [Op2; 4] = [
            TileBuilder::sdiv,
            TileBuilder::udiv,
            TileBuilder::srem,
            TileBuilder::urem,
        ];
        for op in ops {
            let found = eval(
                &[(scalar, &[1, lowest, lowest]), (scalar, &[0, 0, ones])],
                |b, xs| op(b, xs[0], xs[1]),
            );
            assert!(found.iter().all(|&x| x <= ones), "{scalar}: {found:x?}");
            // What the hardware gives, and so the emulator.
            assert_eq!(found[..2], [ones, ones], "{scalar}");
        }
    }
}

#[test]
fn the_smaller_depends_on_the_sign() {
    check(I16, TileBuilder::smin, &[(0xffff, 1, 0xffff)]);
    check(I16, TileBuilder::smax, &[(0xffff, 1, 1)]);
    check(I16, TileBuilder::umin, &[(0xffff, 1, 1)]);
    check(I16, TileBuilder::umax, &[(0xffff, 1, 0xffff)]);
}

#[test]
fn bits_are_combined_in_every_width() {
    for scalar in [I1, I8, I64] {
        check(scalar, TileBuilder::and, &[(0, 1, 0), (1, 1, 1)]);
        check(scalar, TileBuilder::or, &[(0, 1, 1), (0, 0, 0)]);
        check(scalar, TileBuilder::xor, &[(0, 1, 1), (1, 1, 0)]);
    }
}

#[test]
fn shifts_past_the_width_lose_everything() {
    check(
        I32,
        TileBuilder::shl,
        &[
            (1, 31, 1 << 31),
            (1, 32, 0),
            (3, 31, 1 << 31),
            (1, 0xffff_ffff, 0),
        ],
    );
    check(I8, TileBuilder::shl, &[(0xff, 7, 0x80), (0xff, 8, 0)]);
    check(I64, TileBuilder::shl, &[(1, 63, 1 << 63), (1, 64, 0)]);
    check(
        I32,
        TileBuilder::ushr,
        &[(1 << 31, 31, 1), (1 << 31, 32, 0), (8, 0, 8)],
    );
    check(I64, TileBuilder::ushr, &[(u64::MAX, 64, 0)]);
    check(
        I32,
        TileBuilder::sshr,
        &[
            (1 << 31, 31, 0xffff_ffff),
            (1 << 31, 32, 0xffff_ffff),
            (1 << 31, 0xffff_ffff, 0xffff_ffff),
            (1 << 30, 100, 0),
        ],
    );
    check(I8, TileBuilder::sshr, &[(0x80, 3, 0xf0), (0x80, 200, 0xff)]);
}

#[test]
fn comparisons_know_signs() {
    use IntPred::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    // For each predicate: -1 against 1, 1 against -1, 1 against 1.
    let table: [(IntPred, [u64; 3]); 10] = [
        (Eq, [0, 0, 1]),
        (Ne, [1, 1, 0]),
        (Slt, [1, 0, 0]),
        (Sle, [1, 0, 1]),
        (Sgt, [0, 1, 0]),
        (Sge, [0, 1, 1]),
        (Ult, [0, 1, 0]),
        (Ule, [0, 1, 1]),
        (Ugt, [1, 0, 0]),
        (Uge, [1, 0, 1]),
    ];
    for scalar in [I8, I16, I32, I64] {
        let minus = u64::MAX >> (64 - scalar.bits());
        for (pred, expected) in table {
            let found = eval(
                &[(scalar, &[minus, 1, 1]), (scalar, &[1, minus, 1])],
                |b, xs| b.icmp(xs[0], xs[1], pred),
            );
            assert_eq!(found, expected, "{scalar} {pred:?}");
        }
    }
    // A single bit is 0 or -1 as a signed number.
    let found = eval(&[(I1, &[1]), (I1, &[0])], |b, xs| b.icmp(xs[0], xs[1], Slt));
    assert_eq!(found, [1]);
}
