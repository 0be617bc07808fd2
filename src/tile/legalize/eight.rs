//! Conversions of the two 8-bit formats by hand.
//!
//! e5m2 is the upper half of an f16. e4m3 has its bits in the places of an f16 whose exponent is 8 too small.
//! Towards 8 bits, a number in f32 is rounded in one of two ways, both on all elements: normal results on its bits, as
//! for bf16, subnormal ones as an integral number of the format's smallest.

use super::Legalizer;
use crate::ir::attrs::{Attrs, FloatPred, IntPred, Rounding, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, ValueType};
use crate::num::Format;

/// Bits of the mantissa of f32, and what is added to its exponents.
const F32_MANTISSA: u32 = 23;
const F32_BIAS: u32 = 127;

impl Legalizer<'_, '_> {
    /// A number in 8 bits, exactly, in a wider format; none if the target does that.
    pub(super) fn wider_from_f8(&mut self, x: Value, to: Elem) -> Option<Value> {
        if self.target.converts_f8() && to == Elem::F16 {
            return None;
        }
        let half = if self.target.converts_f8() {
            self.cast(TileOp::Fpext, x, Elem::F16)
        } else {
            self.f16_from_f8(x)
        };
        Some(match to {
            Elem::F16 => half,
            Elem::BF16 => {
                let single = self.cast(TileOp::Fpext, half, Elem::F32);
                self.cast(TileOp::Fptrunc, single, to)
            }
            _ => self.cast(TileOp::Fpext, half, to),
        })
    }

    fn f16_from_f8(&mut self, x: Value) -> Value {
        let is_e5m2 = self.ty(x).elem == Elem::Num(Scalar::F8E5M2);
        let bits = self.cast(TileOp::Bitcast, x, Elem::Num(Scalar::I8));
        let bits = self.cast(TileOp::Zext, bits, Elem::I16);
        let ty = self.ty(bits);
        let eight = self.constant(8, ty);
        let upper = self.op(TileOp::Shl, &[bits, eight]);
        if is_e5m2 {
            return self.cast(TileOp::Bitcast, upper, Elem::F16);
        }
        let sign = self.constant(0x8000, ty);
        let sign = self.op(TileOp::And, &[upper, sign]);
        let seven = self.constant(7, ty);
        let moved = self.op(TileOp::Shl, &[bits, seven]);
        let magnitude = self.constant(0x3f80, ty);
        let magnitude = self.op(TileOp::And, &[moved, magnitude]);
        let nan = self.constant(0x3f80, ty);
        let is_nan = self.icmp(IntPred::Eq, magnitude, nan);
        let small = self.op(TileOp::Or, &[sign, magnitude]);
        let small = self.cast(TileOp::Bitcast, small, Elem::F16);
        let half = self.ty(small);
        // 2^8, the distance of the exponents.
        let scale = self.constant(0x5c00, half);
        let number = self.op(TileOp::Fmul, &[small, scale]);
        let nan = self.constant(0x7fff, half);
        self.select(is_nan, nan, number)
    }

    /// A wider number rounded to 8 bits; none if the target does that.
    pub(super) fn f8_from_wider(&mut self, inst: Inst) -> Option<Value> {
        let data = &self.edit.func.dfg.insts[inst];
        let (x, result) = (data.args[0], data.results[0]);
        let nearest = data.round() == Some(&Rounding::Nearest);
        let to = self.ty(result).elem;
        let format = match to {
            Elem::Num(Scalar::F8E5M2) => Format::E5M2,
            _ => Format::E4M3,
        };
        let native = nearest && self.target.converts_f8();
        let single = match self.ty(x).elem {
            Elem::F32 if native => return None,
            Elem::F32 => x,
            // Cutting off twice is cutting off once.
            Elem::F64 if !nearest => {
                let ty = self.ty(x).with_elem(Elem::F32);
                let zero = [make::round(Rounding::Zero)];
                self.build(TileOp::Fptrunc, &[x], &zero, ty)
            }
            Elem::F64 => self.f32_rounded_to_odd(x),
            _ => self.cast(TileOp::Fpext, x, Elem::F32),
        };
        if native {
            return Some(self.cast(TileOp::Fptrunc, single, to));
        }
        let rounded = self.f8_bits(single, &format, nearest);
        let byte = self.cast(TileOp::Itrunc, rounded, Elem::Num(Scalar::I8));
        Some(self.cast(TileOp::Bitcast, byte, to))
    }

    /// The bits of an f32 in the format, as i32.
    fn f8_bits(&mut self, x: Value, format: &Format, nearest: bool) -> Value {
        let mantissa = format.mantissa_bits;
        let bias = (1 << (format.exponent_bits - 1)) - 1;
        let cut = F32_MANTISSA - mantissa;
        let bits = self.cast(TileOp::Bitcast, x, Elem::I32);
        let (ty, float) = (self.ty(bits), self.ty(x));
        let twenty_four = self.constant(24, ty);
        let sign = self.op(TileOp::Ushr, &[bits, twenty_four]);
        let sign_bit = self.constant(0x80, ty);
        let sign = self.op(TileOp::And, &[sign, sign_bit]);
        let all_but_sign = self.constant(0x7fff_ffff, ty);
        let size = self.op(TileOp::And, &[bits, all_but_sign]);

        // Normal: the exponent moved, half of the last place kept added (less one if that is even), the rest cut off.
        let distance = u64::from((F32_BIAS - bias) << F32_MANTISSA);
        let distance = self.constant(distance, ty);
        let mut sum = self.op(TileOp::Isub, &[size, distance]);
        let cut_off = self.constant(u64::from(cut), ty);
        if nearest {
            let last = self.op(TileOp::Ushr, &[size, cut_off]);
            let one = self.constant(1, ty);
            let last = self.op(TileOp::And, &[last, one]);
            let half = self.constant((1 << (cut - 1)) - 1, ty);
            let half = self.op(TileOp::Iadd, &[last, half]);
            sum = self.op(TileOp::Iadd, &[sum, half]);
        }
        let normal = self.op(TileOp::Ushr, &[sum, cut_off]);

        // Subnormal: how often the smallest number goes into it.
        let smallest = F32_BIAS + bias - 1 + mantissa;
        let scale = self.constant(u64::from(smallest << F32_MANTISSA), float);
        let positive = self.cast(TileOp::Bitcast, size, Elem::F32);
        let mut times = self.op(TileOp::Fmul, &[positive, scale]);
        if nearest {
            times = self.op(TileOp::Rint, &[times]);
        }
        let subnormal = self.cast(TileOp::Fptosi, times, Elem::I32);
        let first_normal = self.constant(u64::from((F32_BIAS + 1 - bias) << F32_MANTISSA), ty);
        let is_small = self.icmp(IntPred::Ult, size, first_normal);
        let number = self.select(is_small, subnormal, normal);

        // Too large and infinite: the largest number.
        let largest = self.constant(format.max_finite, ty);
        let number = self.op(TileOp::Smin, &[number, largest]);
        let unordered = self.compare(FloatPred::Uno, x, x);
        let nan = self.constant(format.nan, ty);
        let number = self.select(unordered, nan, number);
        self.op(TileOp::Or, &[number, sign])
    }

    fn icmp(&mut self, pred: IntPred, a: Value, b: Value) -> Value {
        let ty = self.ty(a).with_elem(Elem::I1);
        self.build(TileOp::Icmp, &[a, b], &[make::ipred(pred)], ty)
    }
}
