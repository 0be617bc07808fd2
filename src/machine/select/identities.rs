//! Results that are a number or an operand, as an operand is the least or the largest number.
//!
//! The tile level has simplified before, yet numbers also appear where tiles become what each thread does, and what reads such
//! a result may become a number in turn, as far as a masked store that never happens. Values only get names here, from
//! definitions to uses, so that what nobody reads is never selected.
//!
//! What ptxas would find out must be found here where it decides masks: of `setp.ge.s32 p, 0, 0; and.pred p, p, q; setp q, ..; @p st`
//! ptxas 12.9 to 13.5 drops the store, as it takes the later `q` for the one in the mask.
//!
//! No unsigned minimum, maximum or comparison with 0 may be left, for `ptxas` 12.8 to 13.0 takes some for signed:
//!
//! - `min.s32 r, x, 0; max.u32 r, r, 0` is 0 to it, and so are `max.s32` then `min.u32` and both in the other order;
//! - after `selp.s32 r, -1, 0, p`, or with 0 and -1, it takes `setp.lt.u32 q, r, 0` for the sign.

use std::cmp::Ordering;

use super::Selector;
use super::values::repeated;
use crate::error::CompileError;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::machine::inst::{Cmp, Operand};

/// A number by its place among those of its width.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    /// All bits clear.
    Zero,
    /// All bits set: the largest without sign.
    Ones,
}

/// A result that needs no instruction.
#[derive(Clone, Copy)]
enum Known {
    Operand(Value),
    Truth(bool),
}

impl Selector<'_> {
    /// The registers or the number that the result of an instruction is without an instruction; none if it needs one.
    pub(super) fn known(&self, inst: Inst) -> Option<Operand> {
        match self.find_known(inst)? {
            Known::Operand(value) => self.values[value],
            Known::Truth(holds) => Some(Operand::Imm(u64::from(holds))),
        }
    }

    /// Passes on the need for a known result.
    pub(super) fn select_known(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        if let Some(Known::Operand(value)) = self.find_known(inst) {
            self.use_value(value);
        }
        // A renamed number may itself be referred to by register.
        self.select_const(inst)
    }

    fn find_known(&self, inst: Inst) -> Option<Known> {
        let data = &self.func.dfg.insts[inst];
        match (data.op, &data.args[..]) {
            (
                op @ (ThreadOp::And
                | ThreadOp::Or
                | ThreadOp::Xor
                | ThreadOp::Umin
                | ThreadOp::Umax),
                &[a, b],
            ) => {
                let (other, number, bound) = match (self.bound(a), self.bound(b)) {
                    (_, Some(bound)) => (a, b, bound),
                    (Some(bound), None) => (b, a, bound),
                    (None, None) => return None,
                };
                match (op, bound) {
                    (ThreadOp::And | ThreadOp::Umin, Bound::Zero)
                    | (ThreadOp::Or | ThreadOp::Umax, Bound::Ones) => Some(Known::Operand(number)),
                    (ThreadOp::Xor, Bound::Ones) => None,
                    _ => Some(Known::Operand(other)),
                }
            }
            (ThreadOp::Icmp, &[a, b]) if let Some(holds) = self.decided(*data.ipred()?, a, b) => {
                Some(Known::Truth(holds))
            }
            (ThreadOp::Icmp, &[a, b]) => match (data.ipred()?, self.bound(a), self.bound(b)) {
                (IntPred::Ult, _, Some(Bound::Zero))
                | (IntPred::Ult, Some(Bound::Ones), _)
                | (IntPred::Ugt, Some(Bound::Zero), _)
                | (IntPred::Ugt, _, Some(Bound::Ones)) => Some(Known::Truth(false)),
                (IntPred::Ule, _, Some(Bound::Ones))
                | (IntPred::Ule, Some(Bound::Zero), _)
                | (IntPred::Uge, Some(Bound::Ones), _)
                | (IntPred::Uge, _, Some(Bound::Zero)) => Some(Known::Truth(true)),
                _ => None,
            },
            (ThreadOp::Select, &[condition, a, b]) => match self.bound(condition) {
                Some(Bound::Ones) => Some(Known::Operand(a)),
                Some(Bound::Zero) => Some(Known::Operand(b)),
                None => {
                    let is_truth = self.func.dfg.ty(a).elem.bits() == 1;
                    let is_itself =
                        (self.bound(a), self.bound(b)) == (Some(Bound::Ones), Some(Bound::Zero));
                    (is_truth && is_itself).then_some(Known::Operand(condition))
                }
            },
            _ => None,
        }
    }

    /// Whether a comparison holds that is one of a value with itself, of two numbers, or with the least or the largest number with
    /// a sign; none if that depends.
    fn decided(&self, pred: IntPred, a: Value, b: Value) -> Option<bool> {
        let ty = self.func.dfg.ty(a);
        let mask = ty.elem.mask();
        let number = |value: Value| match self.values[value] {
            Some(Operand::Imm(bits)) if bits & repeated(mask, ty) == repeated(bits & mask, ty) => {
                Some(bits & mask)
            }
            _ => None,
        };
        let (least, most) = (Some(mask ^ mask >> 1), Some(mask >> 1));
        match (number(a), number(b)) {
            _ if a == b => Some(pred.holds(Ordering::Equal)),
            (Some(x), Some(y)) => Some(pred.compare(ty.elem.bits(), x, y)),
            (x, y) => match pred {
                IntPred::Slt if x == most || y == least => Some(false),
                IntPred::Sgt if x == least || y == most => Some(false),
                IntPred::Sle if x == least || y == most => Some(true),
                IntPred::Sge if x == most || y == least => Some(true),
                _ => None,
            },
        }
    }

    /// The comparison for equality that a comparison without signs is, as one of its operands is a bound.
    pub(super) fn equality(&self, inst: Inst) -> Option<Cmp> {
        let data = &self.func.dfg.insts[inst];
        let &[a, b] = &data.args[..] else {
            return None;
        };
        match (data.ipred()?, self.bound(a), self.bound(b)) {
            (IntPred::Ugt, _, Some(Bound::Zero))
            | (IntPred::Ult, Some(Bound::Zero), _)
            | (IntPred::Ult, _, Some(Bound::Ones))
            | (IntPred::Ugt, Some(Bound::Ones), _) => Some(Cmp::Ne),
            (IntPred::Ule, _, Some(Bound::Zero))
            | (IntPred::Uge, Some(Bound::Zero), _)
            | (IntPred::Uge, _, Some(Bound::Ones))
            | (IntPred::Ule, Some(Bound::Ones), _) => Some(Cmp::Eq),
            _ => None,
        }
    }

    /// The bound that a value is in all its elements.
    fn bound(&self, value: Value) -> Option<Bound> {
        let Some(Operand::Imm(bits)) = self.values[value] else {
            return None;
        };
        let ty = self.func.dfg.ty(value);
        let all = repeated(ty.elem.mask(), ty);
        match bits & all {
            0 => Some(Bound::Zero),
            bits if bits == all => Some(Bound::Ones),
            _ => None,
        }
    }
}
