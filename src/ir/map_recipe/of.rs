//! From values of a kernel to numbers that a launcher computes.

use rustc_hash::FxHashMap;

use super::NumberOp;
use super::list::{Nodes, Written};
use crate::ir::attrs::{Attrs as _, IntPred};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};

/// Most numbers that those of a map are made of.
const MAX_NUMBERS: usize = 512;
/// Most values in a row of which each is made of the next one.
const MAX_DEPTH: usize = 128;

/// A number of a [`HostNumbers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

/// The numbers that values of a function are, signed, in every program of a launch (truth values as 0 and 1).
///
/// A number is exact or there is none: arithmetic of the kernel wraps and that of numbers does not, so wherever a step could wrap or
/// read a sign otherwise the number holds a check ([`NumberOp::Signed`], [`NumberOp::Unsigned`]) that leaves no number for
/// arguments that make it so. `a + 63` of an `i32` becomes `signed(add(p0, 63), 32)`. Whoever uses a number must have a way
/// to go where it has none.
pub struct HostNumbers<'f> {
    func: &'f TileFunction,
    nodes: Nodes,
    known: FxHashMap<Value, Option<u32>>,
}

impl HostNumbers<'_> {
    /// None yet.
    pub fn new(func: &TileFunction) -> HostNumbers<'_> {
        HostNumbers {
            func,
            nodes: Nodes::default(),
            known: FxHashMap::default(),
        }
    }

    /// The number that a scalar of integer type is.
    ///
    /// None for values that depend on more than parameters, constants and the extents of the grid, for ops that have no
    /// counterpart, and for what would make the numbers too many to be worth it.
    pub fn of(&mut self, value: Value) -> Option<Place> {
        self.at(value, 0).map(Place)
    }

    /// A constant.
    pub fn constant(&mut self, number: i64) -> Place {
        Place(self.nodes.number(number))
    }

    /// The sum.
    pub fn sum(&mut self, a: Place, b: Place) -> Place {
        Place(self.nodes.op(NumberOp::Add, a.0, b.0))
    }

    /// Numbers as a recipe has them.
    pub fn written(&self, numbers: &[Place]) -> Written {
        let numbers: Vec<u32> = numbers.iter().map(|place| place.0).collect();
        self.nodes.written(&numbers)
    }

    /// A number if it has so many bits with sign; the check is left out where it always holds.
    fn signed(&mut self, number: u32, bits: u32) -> Option<u32> {
        self.checked(number, NumberOp::Signed, bits)
    }

    /// A number if it has so many bits without sign.
    fn unsigned(&mut self, number: u32, bits: u32) -> Option<u32> {
        self.checked(number, NumberOp::Unsigned, bits)
    }

    fn checked(&mut self, number: u32, op: NumberOp, bits: u32) -> Option<u32> {
        match (self.nodes.constant(number), op) {
            // Numbers have 64 bits themselves.
            (_, NumberOp::Signed) if bits >= 64 => Some(number),
            // A constant is there or it is not.
            (Some(constant), _) => {
                let constant = op.eval(constant, i64::from(bits))?;
                Some(self.nodes.number(constant))
            }
            _ => {
                let bits = self.nodes.number(i64::from(bits));
                Some(self.nodes.op(op, number, bits))
            }
        }
    }

    fn at(&mut self, value: Value, depth: usize) -> Option<u32> {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        if depth > MAX_DEPTH || self.nodes.len() > MAX_NUMBERS {
            return None;
        }
        let found = self.made(value, depth);
        self.known.insert(value, found);
        found
    }

    fn made(&mut self, value: Value, depth: usize) -> Option<u32> {
        let func = self.func;
        let data = func.dfg.values.get(value)?;
        let Elem::Num(scalar) = data.ty.elem else {
            return None;
        };
        if !data.ty.is_scalar() || !scalar.is_int() {
            return None;
        }
        let bits = scalar.bits();
        let is_truth = scalar == Scalar::I1;
        let inst = match data.def {
            ValueDef::Param(block, index) => {
                return (block == func.entry).then(|| self.nodes.param(u32::from(index)));
            }
            ValueDef::Result(inst, _) => func.dfg.insts.get(inst)?,
        };
        match inst.op {
            TileOp::Const => {
                let value = *inst.value()?;
                let unused = 64 - bits;
                let number = match is_truth {
                    true => (value & 1) as i64,
                    false => (value << unused) as i64 >> unused,
                };
                return Some(self.nodes.number(number));
            }
            TileOp::NumPrograms => return Some(self.nodes.programs(*inst.axis()?)),
            op if !is_known(op, is_truth) => return None,
            _ => {}
        }
        let a = self.at(*inst.args.first()?, depth + 1)?;
        let Some(&second) = inst.args.get(1) else {
            let from = func.dfg.ty(inst.args[0]).elem.bits();
            return self.converted(inst.op, a, from, bits);
        };
        let b = self.at(second, depth + 1)?;
        // What a shift multiplies or divides by.
        let shift = self.nodes.constant(b);
        let shift = shift.filter(|shift| (0..i64::from(bits) - 1).contains(shift));
        let shifted = |nodes: &mut Nodes| shift.map(|shift| nodes.number(1 << shift));
        let exact = |this: &mut Self, op: NumberOp, a: u32, b: u32| {
            let number = this.nodes.op(op, a, b);
            this.signed(number, bits)
        };
        match inst.op {
            TileOp::Iadd => exact(self, NumberOp::Add, a, b),
            TileOp::Isub => exact(self, NumberOp::Sub, a, b),
            TileOp::Imul => exact(self, NumberOp::Mul, a, b),
            TileOp::Shl => {
                let by = shifted(&mut self.nodes)?;
                exact(self, NumberOp::Mul, a, by)
            }
            // The quotient has no more bits than the dividend.
            TileOp::Sdiv if self.nodes.constant(b) > Some(0) => {
                Some(self.nodes.op(NumberOp::Div, a, b))
            }
            TileOp::Sdiv => exact(self, NumberOp::Div, a, b),
            // Of numbers that are not negative the signed quotient is the unsigned one, and a shift to the right is one too.
            TileOp::Udiv => {
                let (a, b) = (self.unsigned(a, bits - 1)?, self.unsigned(b, bits - 1)?);
                Some(self.nodes.op(NumberOp::Div, a, b))
            }
            TileOp::Sshr | TileOp::Ushr => {
                let a = self.unsigned(a, bits - 1)?;
                let by = shifted(&mut self.nodes)?;
                Some(self.nodes.op(NumberOp::Div, a, by))
            }
            TileOp::Smin => Some(self.nodes.op(NumberOp::Min, a, b)),
            TileOp::Smax => Some(self.nodes.op(NumberOp::Max, a, b)),
            TileOp::And => Some(self.nodes.op(NumberOp::And, a, b)),
            TileOp::Or => Some(self.nodes.op(NumberOp::Or, a, b)),
            TileOp::Xor => Some(self.nodes.op(NumberOp::Ne, a, b)),
            TileOp::Icmp => {
                let from = func.dfg.ty(inst.args[0]).elem.bits();
                self.compared(*inst.ipred()?, a, b, from)
            }
            _ => None,
        }
    }

    /// A number of `from` bits that is made one of `bits`.
    fn converted(&mut self, op: TileOp, number: u32, from: u32, bits: u32) -> Option<u32> {
        match (op, from) {
            // A truth value is 0 or 1 already; with sign it would be -1.
            (TileOp::Zext, 1) => Some(number),
            (TileOp::Sext, 1) => {
                let zero = self.nodes.number(0);
                Some(self.nodes.op(NumberOp::Sub, zero, number))
            }
            // Few bits are sizes that may need all of them: 2^bits more where they are negative with sign.
            (TileOp::Zext, 2..=16) => {
                let (zero, by) = (self.nodes.number(0), self.nodes.number(1 << from));
                let is_negative = self.nodes.op(NumberOp::Lt, number, zero);
                let more = self.nodes.op(NumberOp::Mul, is_negative, by);
                Some(self.nodes.op(NumberOp::Add, number, more))
            }
            (TileOp::Zext, _) => self.unsigned(number, from - 1),
            (TileOp::Sext, _) => Some(number),
            (TileOp::Itrunc, _) => self.signed(number, bits),
            _ => None,
        }
    }

    /// Whether one number of so many bits is as another one.
    fn compared(&mut self, pred: IntPred, a: u32, b: u32, bits: u32) -> Option<u32> {
        let (op, is_turned) = match pred {
            IntPred::Eq => (NumberOp::Eq, false),
            IntPred::Ne => (NumberOp::Ne, false),
            IntPred::Slt | IntPred::Ult => (NumberOp::Lt, false),
            IntPred::Sle | IntPred::Ule => (NumberOp::Le, false),
            IntPred::Sgt | IntPred::Ugt => (NumberOp::Lt, true),
            IntPred::Sge | IntPred::Uge => (NumberOp::Le, true),
        };
        let is_unsigned = matches!(
            pred,
            IntPred::Ult | IntPred::Ule | IntPred::Ugt | IntPred::Uge
        );
        let is_order = !matches!(pred, IntPred::Eq | IntPred::Ne);
        let (a, b) = match bits {
            // What has one bit is ordered otherwise by sign.
            1 if is_order && !is_unsigned => return None,
            2.. if is_unsigned => (self.unsigned(a, bits - 1)?, self.unsigned(b, bits - 1)?),
            _ => (a, b),
        };
        let (a, b) = if is_turned { (b, a) } else { (a, b) };
        Some(self.nodes.op(op, a, b))
    }
}

/// Whether there may be a number of what an op makes of its operands.
fn is_known(op: TileOp, is_truth: bool) -> bool {
    match op {
        TileOp::And | TileOp::Or | TileOp::Xor => is_truth,
        TileOp::Sext | TileOp::Zext | TileOp::Icmp | TileOp::Shl => true,
        TileOp::Iadd | TileOp::Isub | TileOp::Imul | TileOp::Sdiv | TileOp::Udiv => !is_truth,
        TileOp::Sshr | TileOp::Ushr | TileOp::Smin | TileOp::Smax | TileOp::Itrunc => !is_truth,
        _ => false,
    }
}
