//! Floating-point ops.

use super::{eval, f32s, finish, patterns, pointer};
use crate::interp::{Arg, Launch, Memory, Options, run};
use crate::ir::attrs::{FloatPred, NanRule};
use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar::{self, Bf16, F8E4M3, F8E5M2, F16, F32, F64, I1, I32};
use crate::ir::types::{Elem, TileType};

pub(super) const OPS: &[TileOp] = &[
    TileOp::Fadd,
    TileOp::Fsub,
    TileOp::Fmul,
    TileOp::Fma,
    TileOp::Fdiv,
    TileOp::FdivRn,
    TileOp::Fneg,
    TileOp::Fabs,
    TileOp::Fmin,
    TileOp::Fmax,
    TileOp::Fcmp,
    TileOp::Select,
    TileOp::Exp2,
    TileOp::Rsqrt,
    TileOp::Sqrt,
    TileOp::Rcp,
    TileOp::RcpFtz,
    TileOp::Log2Approx,
    TileOp::SinApprox,
    TileOp::CosApprox,
    TileOp::SqrtRn,
    TileOp::Floor,
    TileOp::Ceil,
    TileOp::Rint,
    TileOp::Trunc,
    TileOp::Copysign,
    TileOp::Exp,
    TileOp::ExpPrecise,
    TileOp::Exp10,
    TileOp::Expm1,
    TileOp::Log,
    TileOp::Log2,
    TileOp::Log10,
    TileOp::Log1p,
    TileOp::Pow,
    TileOp::Sin,
    TileOp::Cos,
    TileOp::Tan,
    TileOp::Asin,
    TileOp::Acos,
    TileOp::Atan,
    TileOp::Atan2,
    TileOp::Sinh,
    TileOp::Cosh,
    TileOp::Tanh,
    TileOp::Asinh,
    TileOp::Acosh,
    TileOp::Atanh,
    TileOp::Erf,
    TileOp::Erfc,
    TileOp::Erfinv,
    TileOp::Lgamma,
    TileOp::Cbrt,
    TileOp::Hypot,
    TileOp::Round,
    TileOp::Frem,
];

const NAN: u64 = 0x7fff_ffff;
const INF: u64 = 0x7f80_0000;
const MINUS: u64 = 0x8000_0000;
/// The largest subnormal f32.
const SUBNORMAL: u64 = 0x007f_ffff;

fn op1(scalar: Scalar, x: &[u64], op: fn(&mut TileBuilder, Value) -> Value) -> Vec<u64> {
    eval(&[(scalar, x)], |b, xs| op(b, xs[0]))
}

fn op2(
    scalar: Scalar,
    a: &[u64],
    b: &[u64],
    op: impl FnOnce(&mut TileBuilder, Value, Value) -> Value,
) -> Vec<u64> {
    eval(&[(scalar, a), (scalar, b)], |build, xs| {
        op(build, xs[0], xs[1])
    })
}

#[test]
fn arithmetic_rounds_once_to_even() {
    // 1 and half of its last bit: the tie goes to even.
    let cases = [
        (F32, 0x3f80_0000, 0x3380_0000, 0x3f80_0000),
        (F32, 0x3f80_0001, 0x3380_0000, 0x3f80_0002),
        (F16, 0x3c00, 0x1000, 0x3c00),
        (F16, 0x3c01, 0x1000, 0x3c02),
        (Bf16, 0x3f80, 0x3b80, 0x3f80),
        (Bf16, 0x3f81, 0x3b80, 0x3f82),
        (
            F64,
            0x3ff0_0000_0000_0001,
            0x3ca0_0000_0000_0000,
            0x3ff0_0000_0000_0002,
        ),
    ];
    for (scalar, a, b, sum) in cases {
        assert_eq!(
            op2(scalar, &[a], &[b], TileBuilder::fadd),
            [sum],
            "{scalar}"
        );
        // a - (-b) is the same.
        let minus = b | 1 << (scalar.bits() - 1);
        assert_eq!(
            op2(scalar, &[a], &[minus], TileBuilder::fsub),
            [sum],
            "{scalar}"
        );
    }
    assert_eq!(op2(F16, &[0x7bff], &[0x4000], TileBuilder::fmul), [0x7c00]);
    assert_eq!(
        op2(F32, &[SUBNORMAL], &[0x3f00_0000], TileBuilder::fmul),
        [0x0040_0000]
    );
    assert_eq!(op2(F32, &[INF], &[0], TileBuilder::fmul), [NAN]);
    assert_eq!(op2(F32, &[INF], &[INF | MINUS], TileBuilder::fadd), [NAN]);
    assert_eq!(op2(F32, &[0x7f80_1234], &[0], TileBuilder::fadd), [NAN]);
}

#[test]
fn fma_rounds_once() {
    // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 exactly, which a rounded product loses.
    let a = f32s(&[1.0 + 2f32.powi(-12)]);
    let c = f32s(&[-(1.0 + 2f32.powi(-11))]);
    let found = eval(&[(F32, &a), (F32, &a), (F32, &c)], |b, xs| {
        b.fma(xs[0], xs[1], xs[2])
    });
    assert_eq!(found, f32s(&[2f32.powi(-24)]));
    // The same in f16: (1 + 2^-6)^2 - (1 + 2^-5) = 2^-12.
    let found = eval(
        &[(F16, &[0x3c10]), (F16, &[0x3c10]), (F16, &[0xbc20])],
        |b, xs| b.fma(xs[0], xs[1], xs[2]),
    );
    assert_eq!(found, [0x0c00]);
    let one = [1f64.to_bits()];
    let found = eval(&[(F64, &one), (F64, &one), (F64, &one)], |b, xs| {
        b.fma(xs[0], xs[1], xs[2])
    });
    assert_eq!(found, [2f64.to_bits()]);
    let found = eval(
        &[(Bf16, &[0x3f80]), (Bf16, &[0x4000]), (Bf16, &[0x3f80])],
        |b, xs| b.fma(xs[0], xs[1], xs[2]),
    );
    assert_eq!(found, [0x4040]);
}

#[test]
fn a_split_fma_rounds_twice() {
    let mut b = TileBuilder::new("split", 1);
    let [x, y] = ["x", "y"].map(|name| b.param(name, TileType::scalar(Elem::F32)));
    let out = b.param("out", pointer(F32));
    let result = b.fma(x, x, y);
    b.store(out, result, None);
    let func = finish(b);
    let computed = |split_fma| {
        let mut memory = Memory::new();
        let place = memory.alloc(4);
        // As above: the square is 1 + 2^-11 + 2^-24, whose last bit f32 does not have.
        let (a, c) = (1.0 + 2f32.powi(-12), -(1.0 + 2f32.powi(-11)));
        let launch = Launch {
            grid: [1, 1, 1],
            args: &[Arg::F32(a), Arg::F32(c), Arg::Ptr(place)],
        };
        let options = Options {
            split_fma,
            ..Options::default()
        };
        run(&func, &launch, &mut memory, &options).expect("it computes a number");
        patterns(F32, memory.read(place, 4).expect("it was stored"))
    };
    assert_eq!(computed(false), f32s(&[2f32.powi(-24)]));
    assert_eq!(computed(true), [0]);
}

#[test]
fn quotients_keep_special_values() {
    let a = [0x3f80_0000, 0, 0x3f80_0000, 0x3f80_0000, INF];
    let b = [0x4040_0000, 0, 0, MINUS, INF];
    let expected = [0x3eaa_aaab, NAN, INF, INF | MINUS, NAN];
    assert_eq!(op2(F32, &a, &b, TileBuilder::fdiv), expected);
    assert_eq!(op2(F32, &a, &b, TileBuilder::fdiv_rn), expected);
    let third = op2(
        F64,
        &[1f64.to_bits()],
        &[3f64.to_bits()],
        TileBuilder::fdiv_rn,
    );
    assert_eq!(third, [(1.0f64 / 3.0).to_bits()]);
}

#[test]
fn sign_ops_keep_payloads() {
    let x = [0x7fc0_1234, MINUS, 0xff80_0000];
    assert_eq!(op1(F32, &x, TileBuilder::fneg), [0xffc0_1234, 0, INF]);
    assert_eq!(op1(F32, &x, TileBuilder::fabs), [0x7fc0_1234, 0, INF]);
    assert_eq!(op1(F16, &[0x7e01], TileBuilder::fneg), [0xfe01]);
    assert_eq!(op1(Bf16, &[0xff81], TileBuilder::fabs), [0x7f81]);
    assert_eq!(op1(F64, &[1], TileBuilder::fneg), [1 << 63 | 1]);
    let found = eval(
        &[
            (I1, &[1, 0]),
            (F32, &[0x7fc0_1234, 1]),
            (F32, &[2, 0xffff_0000]),
        ],
        |b, xs| b.select(xs[0], xs[1], xs[2]),
    );
    assert_eq!(found, [0x7fc0_1234, 0xffff_0000]);
}

#[test]
fn extremes_order_zeros_and_treat_nan_as_told() {
    // In units of the format: -0, 1, NaN.
    let formats = [
        (F32, MINUS, 0x3f80_0000, NAN),
        (F16, 0x8000, 0x3c00, 0x7fff),
        (Bf16, 0x8000, 0x3f80, 0x7fff),
        (F64, 1 << 63, 1f64.to_bits(), 0x7fff_ffff_ffff_ffff),
    ];
    for (scalar, minus_zero, one, nan) in formats {
        let a = [0, minus_zero, one, nan, nan];
        let b = [minus_zero, 0, nan, one, nan];
        let min = |rule| op2(scalar, &a, &b, |build, a, b| build.fmin(a, b, rule));
        let max = |rule| op2(scalar, &a, &b, |build, a, b| build.fmax(a, b, rule));
        let zeros = [minus_zero, minus_zero];
        assert_eq!(
            min(NanRule::Ignore),
            [&zeros[..], &[one, one, nan]].concat(),
            "{scalar}"
        );
        assert_eq!(
            min(NanRule::Propagate),
            [&zeros[..], &[nan, nan, nan]].concat(),
            "{scalar}"
        );
        assert_eq!(max(NanRule::Ignore), [0, 0, one, one, nan], "{scalar}");
        assert_eq!(max(NanRule::Propagate), [0, 0, nan, nan, nan], "{scalar}");
    }
}

#[test]
fn comparisons_know_nan() {
    // Against each other: less, equal (zeros of both signs), greater, unordered.
    let formats = [
        (F32, MINUS, 0x3f80_0000, NAN),
        (F16, 0x8000, 0x3c00, 0x7e00),
        (Bf16, 0x8000, 0x3f80, 0x7fc0),
        (F64, 1 << 63, 1f64.to_bits(), f64::NAN.to_bits()),
    ];
    let table: [(FloatPred, [u64; 4]); 14] = [
        (FloatPred::Oeq, [0, 1, 0, 0]),
        (FloatPred::One, [1, 0, 1, 0]),
        (FloatPred::Olt, [1, 0, 0, 0]),
        (FloatPred::Ole, [1, 1, 0, 0]),
        (FloatPred::Ogt, [0, 0, 1, 0]),
        (FloatPred::Oge, [0, 1, 1, 0]),
        (FloatPred::Ueq, [0, 1, 0, 1]),
        (FloatPred::Une, [1, 0, 1, 1]),
        (FloatPred::Ult, [1, 0, 0, 1]),
        (FloatPred::Ule, [1, 1, 0, 1]),
        (FloatPred::Ugt, [0, 0, 1, 1]),
        (FloatPred::Uge, [0, 1, 1, 1]),
        (FloatPred::Ord, [1, 1, 1, 0]),
        (FloatPred::Uno, [0, 0, 0, 1]),
    ];
    assert_eq!(table.len(), FloatPred::ALL.len());
    for (scalar, minus_zero, one, nan) in formats {
        for (pred, expected) in table {
            let found = op2(
                scalar,
                &[minus_zero, minus_zero, one, one],
                &[one, 0, 0, nan],
                |build, a, b| build.fcmp(a, b, pred),
            );
            assert_eq!(found, expected, "{scalar} {pred:?}");
        }
    }
}

/// Runs a function of f32 and compares with the function of f64 within `ulps` of the result.
fn check_function(
    op: fn(&mut TileBuilder, Value) -> Value,
    exact: fn(f64) -> f64,
    xs: &[f32],
    ulps: f64,
) {
    let found = op1(F32, &f32s(xs), op);
    for (&x, &bits) in xs.iter().zip(&found) {
        let found = f64::from(f32::from_bits(bits as u32));
        let expected = exact(f64::from(x));
        let ulp = f64::from(f32::EPSILON) * expected.abs().max(f64::from(f32::MIN_POSITIVE));
        assert!(
            found == expected || (found - expected).abs() <= ulps * ulp,
            "at {x:e}: {found:e}, expected {expected:e}"
        );
    }
}

#[test]
fn functions_are_within_their_bounds() {
    let positive = [1e-30, 0.1, 0.5, 0.99, 1.0, 1.01, 2.0, 10.0, 1e5, 3e38];
    let both = [
        -80.0, -5.0, -1.0, -0.3, -1e-20, 0.0, 1e-20, 0.3, 1.0, 3.5, 5.0, 8.0,
    ];
    check_function(TileBuilder::log, f64::ln, &positive, 1.0);
    check_function(TileBuilder::log2, f64::log2, &positive, 1.0);
    check_function(TileBuilder::sqrt, f64::sqrt, &positive, 1.0);
    check_function(TileBuilder::rsqrt, |x| 1.0 / x.sqrt(), &positive, 1.0);
    check_function(TileBuilder::rcp, |x| 1.0 / x, &positive[..9], 1.0);
    check_function(TileBuilder::tanh, f64::tanh, &both, 1.0);
    check_function(TileBuilder::erf, libm::erf, &both, 1.0);
    check_function(TileBuilder::exp2, f64::exp2, &both, 1.0);
    type Pair = (fn(&mut TileBuilder, Value) -> Value, fn(f64) -> f64);
    let functions: [Pair; 19] = [
        (TileBuilder::exp_precise, f64::exp),
        (TileBuilder::exp10, |x| 10f64.powf(x)),
        (TileBuilder::expm1, f64::exp_m1),
        (TileBuilder::sin, f64::sin),
        (TileBuilder::cos, f64::cos),
        (TileBuilder::tan, f64::tan),
        (TileBuilder::sin_approx, f64::sin),
        (TileBuilder::cos_approx, f64::cos),
        (TileBuilder::atan, f64::atan),
        (TileBuilder::sinh, f64::sinh),
        (TileBuilder::cosh, f64::cosh),
        (TileBuilder::asinh, libm::asinh),
        (TileBuilder::cbrt, f64::cbrt),
        (TileBuilder::round, f64::round),
        (TileBuilder::trunc, f64::trunc),
        (TileBuilder::erfc, libm::erfc),
        (TileBuilder::erf, libm::erf),
        (TileBuilder::tanh, f64::tanh),
        (TileBuilder::exp2, f64::exp2),
    ];
    for (op, exact) in functions {
        check_function(op, exact, &both[1..], 1.0);
    }
    check_function(TileBuilder::log10, f64::log10, &positive, 1.0);
    check_function(TileBuilder::log1p, f64::ln_1p, &positive, 1.0);
    check_function(TileBuilder::log2_approx, f64::log2, &positive, 1.0);
    check_function(TileBuilder::sqrt_rn, f64::sqrt, &positive, 0.5);
    check_function(TileBuilder::acosh, libm::acosh, &positive[4..], 1.0);
    let small = [-1.0, -0.7, -1e-20, 0.3, 0.99, 1.0];
    check_function(TileBuilder::asin, f64::asin, &small, 1.0);
    check_function(TileBuilder::acos, f64::acos, &small, 1.0);
    check_function(TileBuilder::atanh, f64::atanh, &small, 1.0);
    // The rounded product costs up to half an ulp of 130 times log 2.
    check_function(TileBuilder::exp, f64::exp, &both, 100.0);
}

#[test]
fn exp_is_exp2_of_the_rounded_product() {
    let xs = f32s(&[-20.7, 0.1, 33.3]);
    let direct = op1(F32, &xs, TileBuilder::exp);
    let by_hand = op1(F32, &xs, |b, x| {
        let shape = b.ty(x).shape;
        let factor = b.f32(std::f32::consts::LOG2_E, shape);
        let product = b.fmul(x, factor);
        b.exp2(product)
    });
    assert_eq!(direct, by_hand);
}

#[test]
fn functions_keep_special_values_and_drop_subnormals_where_they_say_so() {
    let x = [NAN, INF, INF | MINUS, 0, MINUS, SUBNORMAL];
    let one = 0x3f80_0000;
    assert_eq!(
        op1(F32, &x, TileBuilder::exp2),
        [NAN, INF, 0, one, one, one]
    );
    assert_eq!(op1(F32, &x, TileBuilder::exp), [NAN, INF, 0, one, one, one]);
    // 2^-127 would be subnormal.
    assert_eq!(
        op1(F32, &f32s(&[-127.0, -126.0, 128.0]), TileBuilder::exp2),
        [0, 0x0080_0000, INF]
    );
    assert_eq!(
        op1(F32, &x, TileBuilder::sqrt),
        [NAN, INF, NAN, 0, MINUS, 0]
    );
    assert_eq!(
        op1(F32, &x, TileBuilder::rsqrt),
        [NAN, 0, NAN, INF, INF | MINUS, INF]
    );
    assert_eq!(
        op1(F32, &x[..5], TileBuilder::rcp),
        [NAN, 0, MINUS, INF, INF | MINUS]
    );
    assert_eq!(
        op1(F32, &x[..5], TileBuilder::log),
        [NAN, INF, NAN, INF | MINUS, INF | MINUS]
    );
    assert_eq!(
        op1(F32, &x[..5], TileBuilder::log2),
        [NAN, INF, NAN, INF | MINUS, INF | MINUS]
    );
    assert_eq!(
        op1(F32, &x[..5], TileBuilder::tanh),
        [NAN, one, one | MINUS, 0, MINUS]
    );
    assert_eq!(
        op1(F32, &x[..5], TileBuilder::erf),
        [NAN, one, one | MINUS, 0, MINUS]
    );
    // Subnormal numbers stay where nothing is said.
    assert_eq!(op1(F32, &[1], TileBuilder::tanh), [1]);
}

#[test]
fn integral_numbers_are_found_in_every_direction() {
    let x = f32s(&[-2.5, -0.5, 0.5, 1.5, 2.5, 1e10]);
    assert_eq!(
        op1(F32, &x, TileBuilder::floor),
        f32s(&[-3.0, -1.0, 0.0, 1.0, 2.0, 1e10])
    );
    assert_eq!(
        op1(F32, &x, TileBuilder::ceil),
        f32s(&[-2.0, -0.0, 1.0, 2.0, 3.0, 1e10])
    );
    assert_eq!(
        op1(F32, &x, TileBuilder::rint),
        f32s(&[-2.0, -0.0, 0.0, 2.0, 2.0, 1e10])
    );
    assert_eq!(
        op1(F32, &[NAN, INF | MINUS], TileBuilder::rint),
        [NAN, INF | MINUS]
    );
    assert_eq!(
        op1(F64, &[(-2.5f64).to_bits()], TileBuilder::floor),
        [(-3f64).to_bits()]
    );
}

#[test]
fn functions_of_two_operands() {
    let (x, y) = (f32s(&[3.0, -2.0, 7.5]), f32s(&[4.0, 3.0, -2.0]));
    let found = |op: fn(&mut TileBuilder, Value, Value) -> Value| op2(F32, &x, &y, op);
    assert_eq!(
        found(TileBuilder::pow),
        f32s(&[81.0, -8.0, 7.5f32.powi(-2)])
    );
    assert_eq!(
        found(TileBuilder::hypot),
        f32s(&[5.0, 13f32.sqrt(), 60.25f32.sqrt()])
    );
    assert_eq!(found(TileBuilder::frem), f32s(&[3.0, -2.0, 1.5]));
    assert_eq!(found(TileBuilder::copysign), f32s(&[3.0, 2.0, -7.5]));
    let angles = [3f64.atan2(4.0), (-2f64).atan2(3.0), 7.5f64.atan2(-2.0)];
    assert_eq!(found(TileBuilder::atan2), f32s(&angles.map(|x| x as f32)));
    // Powers with the exceptions of C.
    let one = 0x3f80_0000;
    assert_eq!(
        op2(F32, &[NAN, one, INF], &[0, NAN, 0], TileBuilder::pow),
        [one; 3]
    );
    assert_eq!(op2(F32, &[INF], &[NAN], TileBuilder::hypot), [INF]);
}

#[test]
fn functions_of_f64_are_those_of_f64() {
    let x = [0.7f64.to_bits()];
    assert_eq!(op1(F64, &x, TileBuilder::exp), [0.7f64.exp().to_bits()]);
    assert_eq!(op1(F64, &x, TileBuilder::sin), [0.7f64.sin().to_bits()]);
    assert_eq!(op1(F64, &x, TileBuilder::sqrt), [0.7f64.sqrt().to_bits()]);
    assert_eq!(
        op1(F64, &x, TileBuilder::rsqrt),
        [(1.0 / 0.7f64.sqrt()).to_bits()]
    );
    assert_eq!(
        op1(F64, &[0x7ff8_0000_0000_0001], TileBuilder::log),
        [0x7fff_ffff_ffff_ffff]
    );
    // Subnormal numbers count in full.
    assert_eq!(
        op1(F64, &[1], TileBuilder::sqrt),
        [f64::from_bits(1).sqrt().to_bits()]
    );
}

#[test]
fn numbers_of_8_bits_are_computed_with_and_saturate() {
    // 448 + 448 and 1.125 * 1.125 = 1.265625, between 1.25 and 1.375.
    assert_eq!(
        op2(F8E4M3, &[0x7e, 0x39], &[0x7e, 0x39], TileBuilder::fadd),
        [0x7e, 0x41]
    );
    assert_eq!(op2(F8E4M3, &[0x39], &[0x39], TileBuilder::fmul), [0x3a]);
    assert_eq!(op2(F8E5M2, &[0x7c], &[0x3c], TileBuilder::fadd), [0x7b]);
    assert_eq!(op2(F8E5M2, &[0x7c], &[0xfc], TileBuilder::fadd), [0x7f]);
    assert_eq!(op2(F8E4M3, &[0x38], &[0x40], TileBuilder::fdiv_rn), [0x30]);
    // A tie that the third operand breaks, far below the last bit of f32: 1.25 * 1.5 + 2^-16 = 1.875 and a little.
    let found = eval(
        &[(F8E5M2, &[0x3d]), (F8E5M2, &[0x3e]), (F8E5M2, &[0x01])],
        |b, xs| b.fma(xs[0], xs[1], xs[2]),
    );
    assert_eq!(found, [0x40]);
    assert_eq!(op1(F8E5M2, &[0x01], TileBuilder::fneg), [0x81]);
}

#[test]
fn select_takes_integers_too() {
    let found = eval(&[(I1, &[0, 1]), (I32, &[1, 2]), (I32, &[3, 4])], |b, xs| {
        b.select(xs[0], xs[1], xs[2])
    });
    assert_eq!(found, [3, 2]);
}
