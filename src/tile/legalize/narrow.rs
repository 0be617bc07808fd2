//! Conversions to bf16 by hand, rounded once.
//!
//! Where the exact value has more bits than f32, it is first *rounded to odd*: an inexact result takes the neighbour whose
//! last bit is one. Rounding the result to a format shorter by two bits or more is then as good as rounding
//! the exact value (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding
//! to odd", 2008).

use super::Legalizer;
use crate::ir::attrs::{Attrs, FloatPred, IntPred, Rounding, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, ValueType};

impl Legalizer<'_, '_> {
    /// A bf16 is the upper half of an f32.
    pub(super) fn f32_from_bf16(&mut self, x: Value) -> Value {
        let bits = self.cast(TileOp::Bitcast, x, Elem::I16);
        let bits = self.cast(TileOp::Zext, bits, Elem::I32);
        let ty = self.ty(bits);
        let sixteen = self.constant(16, ty);
        let bits = self.op(TileOp::Shl, &[bits, sixteen]);
        self.cast(TileOp::Bitcast, bits, Elem::F32)
    }

    /// Adds half of the last place kept, less one if that is even, and cuts off; NaN apart, lest it become infinite.
    pub(super) fn bf16_from_f32(&mut self, inst: Inst) -> Value {
        let data = &self.edit.func.dfg.insts[inst];
        let (x, nearest) = (data.args[0], data.round() == Some(&Rounding::Nearest));
        let bits = self.cast(TileOp::Bitcast, x, Elem::I32);
        let ty = self.ty(bits);
        let sixteen = self.constant(16, ty);
        // Rounding to zero turns infinity into infinity and all else into what is cut off.
        let mut sum = bits;
        if nearest {
            let last = self.op(TileOp::Ushr, &[bits, sixteen]);
            let one = self.constant(1, ty);
            let last = self.op(TileOp::And, &[last, one]);
            let half = self.constant(0x7fff, ty);
            let half = self.op(TileOp::Iadd, &[last, half]);
            sum = self.op(TileOp::Iadd, &[bits, half]);
        }
        let unordered = self.compare(FloatPred::Uno, x, x);
        let nan = self.constant(0x7fff_0000, ty);
        let sum = self.select(unordered, nan, sum);
        let upper = self.op(TileOp::Ushr, &[sum, sixteen]);
        let upper = self.cast(TileOp::Itrunc, upper, Elem::I16);
        self.cast(TileOp::Bitcast, upper, Elem::BF16)
    }

    /// Through f32 rounded to odd; to zero, cutting off twice is cutting off once.
    pub(super) fn bf16_from_f64(&mut self, inst: Inst) -> Value {
        let data = &self.edit.func.dfg.insts[inst];
        let (x, nearest) = (data.args[0], data.round() == Some(&Rounding::Nearest));
        if nearest {
            return self.bf16_from_exact(x);
        }
        let zero = [make::round(Rounding::Zero)];
        let ty = self.ty(x);
        let single = self.build(TileOp::Fptrunc, &[x], &zero, ty.with_elem(Elem::F32));
        self.build(TileOp::Fptrunc, &[single], &zero, ty.with_elem(Elem::BF16))
    }

    /// An f64 rounded to nearest.
    fn bf16_from_exact(&mut self, x: Value) -> Value {
        let odd = self.f32_rounded_to_odd(x);
        self.cast(TileOp::Fptrunc, odd, Elem::BF16)
    }

    /// An f64 rounded to odd.
    pub(super) fn f32_rounded_to_odd(&mut self, x: Value) -> Value {
        let ty = self.ty(x);
        let zero = [make::round(Rounding::Zero)];
        let single = self.build(TileOp::Fptrunc, &[x], &zero, ty.with_elem(Elem::F32));
        let back = self.cast(TileOp::Fpext, single, Elem::F64);
        // False for NaN, whose last bit does not matter, and for infinity.
        let inexact = self.compare(FloatPred::One, back, x);
        let bits = self.cast(TileOp::Bitcast, single, Elem::I32);
        let last = self.cast(TileOp::Zext, inexact, Elem::I32);
        let bits = self.op(TileOp::Or, &[bits, last]);
        self.cast(TileOp::Bitcast, bits, Elem::F32)
    }

    /// Integers of up to 24 bits are exact in f32, of up to 53 in f64. Of longer ones the last twelve bits become one that
    /// is set if any was: it stands below all that is kept.
    pub(super) fn bf16_from_int(&mut self, op: TileOp, x: Value) -> Value {
        let ty = self.ty(x);
        match ty.elem.bits() {
            1 | 8 | 16 => {
                let single = self.cast(op, x, Elem::F32);
                self.cast(TileOp::Fptrunc, single, Elem::BF16)
            }
            32 => {
                let exact = self.cast(op, x, Elem::F64);
                self.bf16_from_exact(exact)
            }
            _ => {
                let low = self.constant(0xfff, ty);
                let high = self.constant(!0xfff, ty);
                let rest = self.op(TileOp::And, &[x, low]);
                let zero = self.constant(0, ty);
                let truth = ty.with_elem(Elem::I1);
                let any = self.build(
                    TileOp::Icmp,
                    &[rest, zero],
                    &[make::ipred(IntPred::Ne)],
                    truth,
                );
                let sticky = self.constant(0x800, ty);
                let sticky = self.select(any, sticky, zero);
                let folded = self.op(TileOp::And, &[x, high]);
                let folded = self.op(TileOp::Or, &[folded, sticky]);
                // Below 2^52 in size nothing needs folding, and folding would be wrong.
                let half = self.constant(1 << 52, ty);
                let (shifted, limit) = match op {
                    TileOp::Sitofp => (
                        self.op(TileOp::Iadd, &[x, half]),
                        self.constant(1 << 53, ty),
                    ),
                    _ => (x, half),
                };
                let ult = [make::ipred(IntPred::Ult)];
                let small = self.build(TileOp::Icmp, &[shifted, limit], &ult, truth);
                let number = self.select(small, x, folded);
                let exact = self.cast(op, number, Elem::F64);
                self.bf16_from_exact(exact)
            }
        }
    }

    /// The product of two bf16 is exact in f64. The sum with the third is rounded to odd with its error, which Knuth's
    /// two-sum gives exactly.
    pub(super) fn fma_of_bf16(&mut self, inst: Inst) -> Value {
        let data = self.edit.func.dfg.insts[inst].clone();
        let wide: Vec<Value> = data
            .args
            .iter()
            .map(|&arg| self.cast(TileOp::Fpext, arg, Elem::F64))
            .collect();
        let product = self.op(TileOp::Fmul, &[wide[0], wide[1]]);
        let c = wide[2];
        let sum = self.op(TileOp::Fadd, &[product, c]);
        let c_part = self.op(TileOp::Fsub, &[sum, product]);
        let product_part = self.op(TileOp::Fsub, &[sum, c_part]);
        let product_error = self.op(TileOp::Fsub, &[product, product_part]);
        let c_error = self.op(TileOp::Fsub, &[c, c_part]);
        let error = self.op(TileOp::Fadd, &[product_error, c_error]);

        let ty = self.ty(sum);
        let zero = self.constant(0, ty);
        // False where the sum is infinite or NaN: then the error is NaN.
        let inexact = self.compare(FloatPred::One, error, zero);
        let bits = self.cast(TileOp::Bitcast, sum, Elem::I64);
        let int = self.ty(bits);
        let one = self.constant(1, int);
        let last = self.op(TileOp::And, &[bits, one]);
        let no_bits = self.constant(0, int);
        let truth = int.with_elem(Elem::I1);
        let even = self.build(
            TileOp::Icmp,
            &[last, no_bits],
            &[make::ipred(IntPred::Eq)],
            truth,
        );
        let moves = self.op(TileOp::And, &[inexact, even]);
        // Away from zero if the error has the sum's sign.
        let error_bits = self.cast(TileOp::Bitcast, error, Elem::I64);
        let signs = self.op(TileOp::Xor, &[bits, error_bits]);
        let away = self.build(
            TileOp::Icmp,
            &[signs, no_bits],
            &[make::ipred(IntPred::Sge)],
            truth,
        );
        let minus_one = self.constant(u64::MAX, int);
        let step = self.select(away, one, minus_one);
        let step = self.select(moves, step, no_bits);
        let odd = self.op(TileOp::Iadd, &[bits, step]);
        let odd = self.cast(TileOp::Bitcast, odd, Elem::F64);
        self.bf16_from_exact(odd)
    }
}
