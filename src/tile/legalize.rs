//! Rewrites what a target lacks in terms of what it has.
//!
//! | lacking | on | instead |
//! |---|---|---|
//! | bf16 `fadd fsub fmul` | sm_80 | `fma` with 1, -1 or -0: exact, rounded once |
//! | bf16 arithmetic, `fcmp` | sm_75 | through f32: 24 bits are more than twice 8 and two, so rounding twice is harmless |
//! | bf16 `fma` | sm_75 | through f64 and numbers rounded to odd: see `narrow` |
//! | bf16 `fneg`, `fabs` | sm_75 | on bits |
//! | f32 to and from bf16 | sm_75 | on bits, nearest even by hand |
//! | integers and f64 to and from bf16, bf16 `fcmp`, `floor`.. | below sm_90 | through f32 |
//! | f16 `fmin`, `fmax` | sm_75 | through f32, exact |
//! | f8 to and from other numbers | everywhere | through f16 and f32; those below sm_89, and f32 to f8 towards zero, on bits: see `eight` |
//! | f8 arithmetic, `fcmp` | everywhere | through f32, `fma` through f64 |
//! | f16 and bf16 `fdiv_rn` | everywhere | through f32 |
//! | `load` of what another masked load left out | everywhere | both loads, then a choice: see `apart` |
//! | `fmin`, `fmax` that propagate NaN | f64 everywhere, f32 on sm_75 | with a test for NaN |
//!
//! What a rewrite emits is legalized in turn, to a depth of at most `MAX_DEPTH`; the chains above end well before. Sources:
//! the PTX manual's target notes of each instruction.

mod eight;
mod narrow;
#[cfg(test)]
mod tests;

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::{Attr, Attrs, FloatPred, NanRule, Rounding, make};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, TileType, ValueType};
use crate::settings::Target;

/// Longest chain of rewrites of rewrites.
const MAX_DEPTH: u32 = 6;

/// Rewrites ops that the target lacks; gives their number.
pub fn legalize(func: &mut TileFunction, target: Target) -> usize {
    edit::rewrite(func, |edit, inst| {
        let mut legalizer = Legalizer {
            edit,
            target,
            depth: 0,
        };
        match legalizer.rewrite(inst) {
            Some(value) => Fate::Replace(value),
            None => Fate::Keep,
        }
    })
}

struct Legalizer<'a, 'f> {
    edit: &'a mut Editor<'f>,
    target: Target,
    depth: u32,
}

impl Legalizer<'_, '_> {
    fn ty(&self, value: Value) -> TileType {
        self.edit.ty(value)
    }

    /// A new instruction, legalized.
    fn build(&mut self, op: TileOp, args: &[Value], attrs: &[Attr], ty: TileType) -> Value {
        let inst = self.edit.make(op, args, attrs, ty);
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            let value = self.rewrite(inst);
            self.depth -= 1;
            if let Some(value) = value {
                return value;
            }
        }
        self.edit.place(inst)
    }

    fn op(&mut self, op: TileOp, args: &[Value]) -> Value {
        let ty = self.ty(args[0]);
        self.build(op, args, &[], ty)
    }

    fn cast(&mut self, op: TileOp, x: Value, to: Elem) -> Value {
        let ty = self.ty(x).with_elem(to);
        let attrs = [make::round(Rounding::Nearest)];
        let attrs = if op == TileOp::Fptrunc {
            &attrs[..]
        } else {
            &[]
        };
        self.build(op, &[x], attrs, ty)
    }

    fn constant(&mut self, bits: u64, ty: TileType) -> Value {
        self.edit.constant(bits, ty)
    }

    fn compare(&mut self, pred: FloatPred, a: Value, b: Value) -> Value {
        let ty = self.ty(a).with_elem(Elem::I1);
        self.build(TileOp::Fcmp, &[a, b], &[make::fpred(pred)], ty)
    }

    fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.build(TileOp::Select, &[cond, a, b], &[], ty)
    }

    /// What computes the same as the instruction, if the target lacks it.
    fn rewrite(&mut self, inst: Inst) -> Option<Value> {
        let data = &self.edit.func.dfg.insts[inst];
        let op = data.op;
        let arg = *data.args.first()?;
        let (from, sm) = (self.ty(arg).elem, self.target.sm);
        let to = self.ty(*data.results.first()?).elem;
        let bf16 = from == Elem::BF16 || to == Elem::BF16;
        let eight = from.is_float() && from.bits() == 8;
        match op {
            TileOp::Fadd | TileOp::Fsub | TileOp::Fmul | TileOp::FdivRn if eight => {
                self.through(inst, Elem::F32)
            }
            TileOp::Fmin | TileOp::Fmax | TileOp::Fcmp if eight => self.through(inst, Elem::F32),
            // Sums of products of these are exact in f64.
            TileOp::Fma if eight => self.through(inst, Elem::F64),
            TileOp::FdivRn if from.bits() == 16 => self.through(inst, Elem::F32),
            TileOp::Fptosi | TileOp::Fptoui if eight => {
                let single = self.cast(TileOp::Fpext, arg, Elem::F32);
                Some(self.cast(op, single, to))
            }
            // Integers that f32 rounds are far above the largest 8-bit number.
            TileOp::Sitofp | TileOp::Uitofp if to.bits() == 8 => {
                let single = self.cast(op, arg, Elem::F32);
                Some(self.cast(TileOp::Fptrunc, single, to))
            }
            TileOp::Fadd | TileOp::Fsub | TileOp::Fmul if bf16 && sm < 80 => {
                self.through(inst, Elem::F32)
            }
            TileOp::Fadd | TileOp::Fsub | TileOp::Fmul if bf16 && sm < 90 => self.as_fma(inst),
            TileOp::Fma if bf16 && sm < 80 => Some(self.fma_of_bf16(inst)),
            TileOp::Fneg if bf16 && sm < 80 => Some(self.on_bits(inst, TileOp::Xor, 0x8000)),
            TileOp::Fabs if bf16 && sm < 80 => Some(self.on_bits(inst, TileOp::And, 0x7fff)),
            TileOp::Fmin | TileOp::Fmax => {
                let narrow = matches!(from, Elem::F16 | Elem::BF16);
                let propagates = data.nan() == Some(&NanRule::Propagate);
                if narrow && sm < 80 {
                    self.through(inst, Elem::F32)
                } else if propagates && (from == Elem::F64 || sm < 80) {
                    Some(self.propagate_nan(inst))
                } else {
                    None
                }
            }
            TileOp::Load => self.apart(inst),
            TileOp::Fpext if from.bits() == 8 => self.wider_from_f8(arg, to),
            TileOp::Fptrunc if to.bits() == 8 => self.f8_from_wider(inst),
            TileOp::Fcmp if bf16 && sm < 90 => self.through(inst, Elem::F32),
            TileOp::Fptrunc if to == Elem::BF16 && from == Elem::F64 && sm < 90 => {
                Some(self.bf16_from_f64(inst))
            }
            TileOp::Fptrunc if to == Elem::BF16 && sm < 80 => Some(self.bf16_from_f32(inst)),
            TileOp::Fpext if from == Elem::BF16 && to == Elem::F64 && sm < 90 => {
                let single = self.cast(TileOp::Fpext, arg, Elem::F32);
                Some(self.cast(TileOp::Fpext, single, Elem::F64))
            }
            TileOp::Fpext if from == Elem::BF16 && sm < 80 => Some(self.f32_from_bf16(arg)),
            TileOp::Sitofp | TileOp::Uitofp if to == Elem::BF16 && sm < 90 => {
                Some(self.bf16_from_int(op, arg))
            }
            TileOp::Fptosi | TileOp::Fptoui if from == Elem::BF16 && sm < 90 => {
                let single = self.cast(TileOp::Fpext, arg, Elem::F32);
                Some(self.cast(op, single, to))
            }
            _ => None,
        }
    }

    /// The same op on wider operands, its result narrowed; comparisons need no narrowing. f32 has more than twice the
    /// bits of the narrower formats and two, so rounding twice is harmless.
    fn through(&mut self, inst: Inst, via: Elem) -> Option<Value> {
        let data = self.edit.func.dfg.insts[inst].clone();
        let wide: Vec<Value> = data
            .args
            .iter()
            .map(|&arg| self.cast(TileOp::Fpext, arg, via))
            .collect();
        let ty = self.ty(data.results[0]);
        if data.op == TileOp::Fcmp {
            return Some(self.build(data.op, &wide, data.attrs(), ty));
        }
        let result = self.build(data.op, &wide, data.attrs(), ty.with_elem(via));
        Some(self.cast(TileOp::Fptrunc, result, ty.elem))
    }

    /// Sum, difference and product as fused multiply-add: `a * 1 + b`, `b * -1 + a`, `a * b + -0`. The zero is
    /// negative so that a product of -0 stays so.
    fn as_fma(&mut self, inst: Inst) -> Option<Value> {
        let data = self.edit.func.dfg.insts[inst].clone();
        let (a, b) = (data.args[0], data.args[1]);
        let ty = self.ty(a);
        let mut number = |bits| self.constant(bits, ty);
        let args = match data.op {
            TileOp::Fadd => [a, number(0x3f80), b],
            TileOp::Fsub => [b, number(0xbf80), a],
            _ => [a, b, number(0x8000)],
        };
        Some(self.op(TileOp::Fma, &args))
    }

    /// A bitwise op on the 16 bits of the operand.
    fn on_bits(&mut self, inst: Inst, op: TileOp, mask: u64) -> Value {
        let x = self.edit.func.dfg.insts[inst].args[0];
        let ty = self.ty(x);
        let bits = self.cast(TileOp::Bitcast, x, Elem::I16);
        let mask = self.constant(mask, ty.with_elem(Elem::I16));
        let bits = self.op(op, &[bits, mask]);
        self.cast(TileOp::Bitcast, bits, ty.elem)
    }

    /// A masked load that falls back on what another one loaded gets registers of its own. Into the same registers ptxas (CUDA
    /// 12.8 to 13.0) makes both one, where their masks compare the same 32-bit registers by the same relation, for it does
    /// not look at the type: `x < n` with signs, then without, or of floats.
    fn apart(&mut self, inst: Inst) -> Option<Value> {
        let data = self.edit.func.dfg.insts[inst].clone();
        let &[pointers, mask, other] = &data.args[..] else {
            return None;
        };
        const THROUGH: &[TileOp] = &[
            TileOp::Bitcast,
            TileOp::Splat,
            TileOp::Broadcast,
            TileOp::ExpandDims,
            TileOp::Reshape,
        ];
        let (first, _) = self.edit.source(other, THROUGH);
        let is_masked_load = self
            .edit
            .def(first)
            .is_some_and(|data| data.op == TileOp::Load && 1 < data.args.len());
        is_masked_load.then_some(())?;
        let ty = self.ty(other);
        let loaded = self.build(data.op, &[pointers, mask], data.attrs(), ty);
        Some(self.select(mask, loaded, other))
    }

    /// The op that ignores NaN, and NaN where either operand is.
    fn propagate_nan(&mut self, inst: Inst) -> Value {
        let data = self.edit.func.dfg.insts[inst].clone();
        let (a, b) = (data.args[0], data.args[1]);
        let ty = self.ty(a);
        let attrs = [make::nan(NanRule::Ignore)];
        let number = self.build(data.op, &[a, b], &attrs, ty);
        let unordered = self.compare(FloatPred::Uno, a, b);
        let nan = match ty.elem {
            Elem::Num(Scalar::F64) => 0x7fff_ffff_ffff_ffff,
            Elem::Num(Scalar::F32) => 0x7fff_ffff,
            _ => 0x7fff,
        };
        let nan = self.constant(nan, ty);
        self.select(unordered, nan, number)
    }
}
