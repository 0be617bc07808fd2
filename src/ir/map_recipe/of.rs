//! From values of a kernel to numbers that a launcher computes.

use super::number::{MAX_DEPTH, MAX_NODES};
use super::{HostNumber, NumberOp};
use crate::ir::attrs::{Attrs as _, IntPred};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};

impl HostNumber {
    /// The number that a scalar of integer type is, signed, in every program of a launch (truth values as 0 and 1).
    ///
    /// It is exact or nothing: arithmetic of the kernel wraps and that of numbers does not, so wherever a step could wrap or
    /// read a sign otherwise the number holds a check ([`NumberOp::Signed`], [`NumberOp::Unsigned`]) that leaves no number for
    /// arguments that make it so. `a + 63` of an `i32` becomes `signed(add(p0, 63), 32)`. Whoever uses a number must have a way
    /// to go where it has none.
    ///
    /// None for values that depend on more than parameters, constants and the extents of the grid, for ops that have no
    /// counterpart, and for what would become too large to be worth it.
    pub fn of(func: &TileFunction, value: Value) -> Option<HostNumber> {
        let mut nodes = MAX_NODES;
        of(func, value, 0, &mut nodes)
    }

    /// This number if it has so many bits with sign; the check is left out where it always holds.
    fn signed(self, bits: u32) -> Option<HostNumber> {
        self.checked(NumberOp::Signed, bits)
    }

    /// This number if it has so many bits without sign.
    fn unsigned(self, bits: u32) -> Option<HostNumber> {
        self.checked(NumberOp::Unsigned, bits)
    }

    fn checked(self, op: NumberOp, bits: u32) -> Option<HostNumber> {
        match (&self, op) {
            // Numbers have 64 bits themselves.
            (_, NumberOp::Signed) if bits >= 64 => Some(self),
            // A constant is there or it is not.
            (HostNumber::Const(number), _) => {
                op.eval(*number, i64::from(bits)).map(HostNumber::Const)
            }
            _ => Some(HostNumber::op(op, self, HostNumber::Const(i64::from(bits)))),
        }
    }
}

fn of(func: &TileFunction, value: Value, depth: usize, nodes: &mut usize) -> Option<HostNumber> {
    // A value that is used often is written out at each use, so the number's size is what must be bounded.
    *nodes = nodes.checked_sub(1)?;
    if depth > MAX_DEPTH / 2 {
        return None;
    }
    let data = func.dfg.values.get(value)?;
    let Elem::Num(scalar) = data.ty.elem else {
        return None;
    };
    if !data.ty.is_scalar() || !scalar.is_int() {
        return None;
    }
    let bits = scalar.bits();
    let inst = match data.def {
        ValueDef::Param(block, index) => {
            return (block == func.entry).then_some(HostNumber::Param(u32::from(index)));
        }
        ValueDef::Result(inst, _) => func.dfg.insts.get(inst)?,
    };
    let mut operand = |index: usize| of(func, *inst.args.get(index)?, depth + 1, nodes);
    let is_truth = scalar == Scalar::I1;
    let constant = |index: usize| match operand_const(func, *inst.args.get(index)?)? {
        shift if (0..i64::from(bits) - 1).contains(&shift) => Some(HostNumber::Const(1 << shift)),
        _ => None,
    };
    let two = |op, a, b| Some(HostNumber::op(op, a, b));
    match inst.op {
        TileOp::Const => {
            let value = *inst.value()?;
            let unused = 64 - bits;
            Some(HostNumber::Const(match is_truth {
                true => (value & 1) as i64,
                false => (value << unused) as i64 >> unused,
            }))
        }
        TileOp::NumPrograms => Some(HostNumber::Programs(*inst.axis()?)),
        TileOp::Iadd if !is_truth => two(NumberOp::Add, operand(0)?, operand(1)?)?.signed(bits),
        TileOp::Isub if !is_truth => two(NumberOp::Sub, operand(0)?, operand(1)?)?.signed(bits),
        TileOp::Imul if !is_truth => two(NumberOp::Mul, operand(0)?, operand(1)?)?.signed(bits),
        TileOp::Shl => two(NumberOp::Mul, operand(0)?, constant(1)?)?.signed(bits),
        TileOp::Sdiv if !is_truth => {
            let (a, b) = (operand(0)?, operand(1)?);
            match b {
                // The quotient has no more bits than the dividend.
                HostNumber::Const(by) if by > 0 => two(NumberOp::Div, a, b),
                _ => two(NumberOp::Div, a, b)?.signed(bits),
            }
        }
        // Of numbers that are not negative the signed quotient is the unsigned one, and a shift to the right is one too.
        TileOp::Udiv if !is_truth => {
            let (a, b) = (operand(0)?, operand(1)?);
            two(NumberOp::Div, a.unsigned(bits - 1)?, b.unsigned(bits - 1)?)
        }
        TileOp::Sshr | TileOp::Ushr if !is_truth => {
            two(NumberOp::Div, operand(0)?.unsigned(bits - 1)?, constant(1)?)
        }
        TileOp::Smin if !is_truth => two(NumberOp::Min, operand(0)?, operand(1)?),
        TileOp::Smax if !is_truth => two(NumberOp::Max, operand(0)?, operand(1)?),
        TileOp::And if is_truth => two(NumberOp::And, operand(0)?, operand(1)?),
        TileOp::Or if is_truth => two(NumberOp::Or, operand(0)?, operand(1)?),
        TileOp::Xor if is_truth => two(NumberOp::Ne, operand(0)?, operand(1)?),
        TileOp::Sext | TileOp::Zext => {
            let from = func.dfg.ty(inst.args[0]).elem.bits();
            let number = operand(0)?;
            match (inst.op, from) {
                // A truth value is 0 or 1 already; with sign it would be -1.
                (TileOp::Zext, 1) => Some(number),
                (_, 1) => two(NumberOp::Sub, HostNumber::Const(0), number),
                // Few bits are sizes that may need all of them: 2^bits more where they are negative with sign.
                (TileOp::Zext, 2..=16) => {
                    let is_negative = two(NumberOp::Lt, number.clone(), HostNumber::Const(0))?;
                    let more = two(NumberOp::Mul, is_negative, HostNumber::Const(1 << from))?;
                    two(NumberOp::Add, number, more)
                }
                (TileOp::Zext, _) => number.unsigned(from - 1),
                _ => Some(number),
            }
        }
        TileOp::Itrunc if !is_truth => operand(0)?.signed(bits),
        TileOp::Icmp => {
            let from = func.dfg.ty(inst.args[0]).elem.bits();
            let (a, b) = (operand(0)?, operand(1)?);
            let (a, b) = match *inst.ipred()? {
                IntPred::Ult | IntPred::Ule | IntPred::Ugt | IntPred::Uge if from > 1 => {
                    (a.unsigned(from - 1)?, b.unsigned(from - 1)?)
                }
                IntPred::Eq | IntPred::Ne => (a, b),
                // What has one bit is ordered otherwise by sign.
                _ if from == 1 => return None,
                _ => (a, b),
            };
            match *inst.ipred()? {
                IntPred::Eq => two(NumberOp::Eq, a, b),
                IntPred::Ne => two(NumberOp::Ne, a, b),
                IntPred::Slt | IntPred::Ult => two(NumberOp::Lt, a, b),
                IntPred::Sle | IntPred::Ule => two(NumberOp::Le, a, b),
                IntPred::Sgt | IntPred::Ugt => two(NumberOp::Lt, b, a),
                IntPred::Sge | IntPred::Uge => two(NumberOp::Le, b, a),
            }
        }
        _ => None,
    }
}

/// A constant operand, with sign.
fn operand_const(func: &TileFunction, value: Value) -> Option<i64> {
    match of(func, value, 0, &mut 1)? {
        HostNumber::Const(number) => Some(number),
        _ => None,
    }
}
