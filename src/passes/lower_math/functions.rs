//! Logarithm, hyperbolic tangent and error function in f32.
//!
//! Coefficients are minimax fits of our own, given as bits, constant term first.

use super::LOG2_E;
use crate::ir::attrs::{FloatPred, make};
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::passes::edit::Editor;

/// `(log(1 + r) - r) / r^2` for r in [-1/3, 1/3).
const LOG: [u32; 9] = [
    0xbf00_0000,
    0x3eaa_aa83,
    0xbe7f_ff7d,
    0x3e4c_e82e,
    0xbe2a_ce18,
    0x3e0f_6a29,
    0xbdf9_9e05,
    0x3e0f_3950,
    0xbe03_d5b8,
];
/// `(tanh(x) - x) / x^3` in x^2, for x below 0.6.
const TANH: [u32; 5] = [
    0xbeaa_aa9f,
    0x3e08_84df,
    0xbd5c_4d5d,
    0x3caa_61e1,
    0xbbc1_43bb,
];
/// `(erf(x) - x) / x` in x^2, for x below 1.00295.
const ERF_SMALL: [u32; 7] = [
    0x3e03_75d4,
    0xbec0_939f,
    0x3de7_1673,
    0xbcdb_fb8d,
    0x3ba9_f912,
    0xba51_a8af,
    0x38a3_b8ff,
];
/// `(-log2(1 - erf(x)) - x) / x` for x from 1.00295 to 4.
const ERF_LARGE: [u32; 7] = [
    0x3f20_dc50,
    0x3f6a_8366,
    0x3e1d_6147,
    0xbd0d_e1b0,
    0x3bb1_a11a,
    0xba04_9610,
    0x37a8_f4d6,
];

/// Short ways to write arithmetic on blocks of one extent.
struct Math<'a, 'f> {
    edit: &'a mut Editor<'f>,
    ty: TileType,
}

impl Math<'_, '_> {
    fn int(&self) -> TileType {
        self.ty.with_elem(Elem::I32)
    }

    fn bits(&mut self, bits: u32) -> Value {
        self.edit.f32_bits(bits, self.ty)
    }

    fn number(&mut self, x: f32) -> Value {
        self.bits(x.to_bits())
    }

    fn int_bits(&mut self, bits: u32) -> Value {
        let ty = self.int();
        self.edit.constant(u64::from(bits), ty)
    }

    fn op(&mut self, op: TileOp, args: &[Value]) -> Value {
        self.edit.op(op, args)
    }

    fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.op(TileOp::Fma, &[a, b, c])
    }

    fn compare(&mut self, pred: FloatPred, a: Value, b: f32) -> Value {
        let b = self.number(b);
        let ty = self.ty.with_elem(Elem::I1);
        let attrs = [make::fpred(pred)];
        self.edit.emit(TileOp::Fcmp, &[a, b], &attrs, ty)
    }

    fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.edit.ty(a);
        self.edit.emit(TileOp::Select, &[cond, a, b], &[], ty)
    }

    fn bits_of(&mut self, x: Value) -> Value {
        let ty = self.int();
        self.edit.emit(TileOp::Bitcast, &[x], &[], ty)
    }

    fn number_of(&mut self, x: Value) -> Value {
        self.edit.emit(TileOp::Bitcast, &[x], &[], self.ty)
    }

    /// Horner's rule.
    fn polynomial(&mut self, coefficients: &[u32], x: Value) -> Value {
        let (&last, rest) = coefficients.split_last().expect("a polynomial has terms");
        let mut sum = self.bits(last);
        for &coefficient in rest.iter().rev() {
            let coefficient = self.bits(coefficient);
            sum = self.fma(sum, x, coefficient);
        }
        sum
    }

    /// The magnitude, not negative, with the sign of `x`; NaN stays.
    fn with_sign_of(&mut self, magnitude: Value, x: Value) -> Value {
        let (bits, sign) = (self.bits_of(magnitude), self.bits_of(x));
        let mask = self.int_bits(0x8000_0000);
        let sign = self.op(TileOp::And, &[sign, mask]);
        let bits = self.op(TileOp::Or, &[bits, sign]);
        self.number_of(bits)
    }
}

/// Natural logarithm within 1 ulp: `x = 2^k m` with m in [2/3, 4/3), `log x = k log 2 + log(1 + (m - 1))`. Subnormal numbers
/// are scaled first.
pub(super) fn log(edit: &mut Editor<'_>, x: Value) -> Value {
    let ty = edit.ty(x);
    let mut m = Math { edit, ty };
    let tiny = m.compare(FloatPred::Olt, x, f32::MIN_POSITIVE);
    let scale = m.number(8_388_608.0);
    let scaled = m.op(TileOp::Fmul, &[x, scale]);
    let scaled = m.select(tiny, scaled, x);
    let (minus_23, zero) = (m.number(-23.0), m.number(0.0));
    let exponent = m.select(tiny, minus_23, zero);

    let bits = m.bits_of(scaled);
    let two_thirds = m.int_bits(0x3f2a_aaab);
    let above = m.op(TileOp::Isub, &[bits, two_thirds]);
    let exponent_mask = m.int_bits(0xff80_0000);
    let power = m.op(TileOp::And, &[above, exponent_mask]);
    let mantissa = m.op(TileOp::Isub, &[bits, power]);
    let mantissa = m.number_of(mantissa);
    let one = m.number(1.0);
    let r = m.op(TileOp::Fsub, &[mantissa, one]);
    let power = m.edit.emit(TileOp::Sitofp, &[power], &[], ty);
    let unit = m.number(1.0 / 8_388_608.0);
    let k = m.fma(power, unit, exponent);

    let p = m.polynomial(&LOG, r);
    let pr = m.op(TileOp::Fmul, &[p, r]);
    let y = m.fma(pr, r, r);
    let ln_2 = m.bits(0x3f31_7218);
    let y = m.fma(k, ln_2, y);

    // Infinity and NaN stay, 0 gives -infinity, what is below gives NaN.
    let infinity = m.number(f32::INFINITY);
    let finite = m.compare(FloatPred::Olt, x, f32::INFINITY);
    let y = m.select(finite, y, x);
    let negative = m.compare(FloatPred::Olt, x, 0.0);
    let nan = m.bits(0x7fff_ffff);
    let y = m.select(negative, nan, y);
    let is_zero = m.compare(FloatPred::Oeq, x, 0.0);
    let minus_infinity = m.op(TileOp::Fneg, &[infinity]);
    m.select(is_zero, minus_infinity, y)
}

/// Hyperbolic tangent within 2 ulp: a polynomial near 0, else `1 - 2 / (e^(2 |x|) + 1)`, whose power overflows to
/// infinity and whose reciprocal is then 0.
pub(super) fn tanh(edit: &mut Editor<'_>, x: Value) -> Value {
    let ty = edit.ty(x);
    let mut m = Math { edit, ty };
    let a = m.op(TileOp::Fabs, &[x]);
    let factor = m.bits(LOG2_E + (1 << 23));
    let power = m.op(TileOp::Fmul, &[a, factor]);
    let power = m.op(TileOp::Exp2, &[power]);
    let one = m.number(1.0);
    let sum = m.op(TileOp::Fadd, &[power, one]);
    let reciprocal = m.op(TileOp::Rcp, &[sum]);
    let minus_two = m.number(-2.0);
    let large = m.fma(reciprocal, minus_two, one);

    let square = m.op(TileOp::Fmul, &[a, a]);
    let p = m.polynomial(&TANH, square);
    let p = m.op(TileOp::Fmul, &[p, square]);
    let small = m.fma(p, a, a);
    let is_small = m.compare(FloatPred::Olt, a, 0.6);
    let y = m.select(is_small, small, large);
    m.with_sign_of(y, x)
}

/// Error function within 2 ulp: a polynomial near 0, else 1 less a power of two whose exponent is a polynomial; 1 from 4 on.
pub(super) fn erf(edit: &mut Editor<'_>, x: Value) -> Value {
    let ty = edit.ty(x);
    let mut m = Math { edit, ty };
    let a = m.op(TileOp::Fabs, &[x]);
    let p = m.polynomial(&ERF_LARGE, a);
    let exponent = m.fma(p, a, a);
    let exponent = m.op(TileOp::Fneg, &[exponent]);
    let rest = m.op(TileOp::Exp2, &[exponent]);
    let one = m.number(1.0);
    let large = m.op(TileOp::Fsub, &[one, rest]);

    let square = m.op(TileOp::Fmul, &[a, a]);
    let p = m.polynomial(&ERF_SMALL, square);
    let small = m.fma(p, a, a);
    let is_small = m.compare(FloatPred::Olt, a, 1.002_95);
    let y = m.select(is_small, small, large);
    let is_huge = m.compare(FloatPred::Ogt, a, 4.0);
    let y = m.select(is_huge, one, y);
    m.with_sign_of(y, x)
}
