//! Decoding of products that four warps compute together.

use super::matrix::shape;
use super::{Decoder, Result};
use crate::emu::inst::{Dests, GroupProduct, Left, MmaShape, Op, Sources, Src};
use crate::emu::module::{Literal, Operand};
use crate::emu::types::{Type, TypeKind};

const B32: Type = Type {
    kind: TypeKind::Bits,
    bits: 32,
    packed: false,
};
const B64: Type = Type {
    kind: TypeKind::Bits,
    bits: 64,
    packed: false,
};
/// Single bits, which only products have.
const B1: Type = Type {
    kind: TypeKind::Bits,
    bits: 1,
    packed: false,
};

impl Decoder<'_, '_> {
    /// `wgmma` and what goes with it.
    pub(super) fn warpgroup(&mut self) -> Result<Op> {
        if !self.take("sync") || !self.take("aligned") {
            return self.bad("`.sync.aligned` is missing");
        }
        if self.take("fence") {
            self.arity(0..=0)?;
            return Ok(Op::GroupFence);
        }
        if self.take("commit_group") {
            self.arity(0..=0)?;
            return Ok(Op::GroupCommit);
        }
        if self.take("wait_group") {
            self.arity(1..=1)?;
            let Src::Imm(pending) = self.source(0, B32)? else {
                return self.bad("the number of groups must be a number");
            };
            return Ok(Op::GroupWait {
                pending: pending as u32,
            });
        }
        if !self.take("mma_async") {
            return self.unsupported();
        }
        self.warpgroup_product()
    }

    /// `setmaxnreg`.
    pub(super) fn registers(&mut self) -> Result<Op> {
        let more = self.take("inc");
        if !more && !self.take("dec") {
            return self.bad("`.inc` or `.dec` is missing");
        }
        if !self.take("sync") || !self.take("aligned") {
            return self.bad("`.sync.aligned` is missing");
        }
        if !self.take("u32") {
            return self.bad("`.u32` is missing");
        }
        self.arity(1..=1)?;
        match self.number(0)? {
            Some(count) if (24..=256).contains(&count) && count % 8 == 0 => Ok(Op::Registers {
                more,
                count: count as u32,
            }),
            _ => self.bad("the count is a multiple of 8 from 24 to 256"),
        }
    }

    /// A type, or single bits.
    fn factor_type(&mut self) -> Result<Type> {
        if self.take("b1") {
            return Ok(B1);
        }
        self.ty()
    }

    fn warpgroup_product(&mut self) -> Result<Op> {
        let Some([m, n, k]) = self.take_with(shape) else {
            return self.bad("a shape is missing");
        };
        let saturates = self.take("satfinite");
        let sum = self.ty()?;
        let (a, b) = (self.factor_type()?, self.factor_type()?);
        if a.bits == 1 && !(self.take("and") && self.take("popc")) {
            return self.bad("`.and.popc` is missing");
        }
        let is_integer = a.is_integer();
        let columns = match is_integer {
            true => n % 16 == 0 || matches!(n, 8 | 24),
            false => n % 8 == 0,
        };
        let wants_k = 256 / a.bits;
        if m != 64 || !columns || !(8..=256).contains(&n) || k != wants_k {
            return self.bad(format!(
                "there is no product m{m}n{n}k{k} of .{a}: rows are 64, columns 8 to 256 in steps of {}, and k is {wants_k}",
                if is_integer { "16, or 8 or 24" } else { "8" }
            ));
        }
        let eights = [TypeKind::E4m3, TypeKind::E5m2];
        let ints = [TypeKind::Signed, TypeKind::Unsigned];
        let pairs = match (a.kind, a.bits) {
            (TypeKind::Float | TypeKind::Bfloat, 16)
            | (TypeKind::Tf32, _)
            | (TypeKind::Bits, 1) => a == b,
            (TypeKind::E4m3 | TypeKind::E5m2, 8) => eights.contains(&b.kind),
            (TypeKind::Signed | TypeKind::Unsigned, 8) => ints.contains(&b.kind) && b.bits == 8,
            _ => false,
        };
        let sums = match (a.kind, a.bits) {
            (TypeKind::Float, 16) | (TypeKind::E4m3 | TypeKind::E5m2, _) => {
                sum.kind == TypeKind::Float && matches!(sum.bits, 16 | 32)
            }
            (TypeKind::Bfloat | TypeKind::Tf32, _) => sum.is_f32(),
            _ => sum.kind == TypeKind::Signed && sum.bits == 32,
        };
        if !pairs || !sums || a.packed || b.packed || saturates && !(is_integer && a.bits == 8) {
            return self.unsupported();
        }
        let in_registers = matches!(self.operand(1)?, Operand::Vector(_));
        // Floats have signs, those of 16 bits also sides, but for a left operand in registers.
        let signs = if is_integer { 0 } else { 2 };
        let sides = match (a.bits, in_registers) {
            (16, false) => 2,
            (16, true) => 1,
            _ => 0,
        };
        self.arity(4 + signs + sides..=4 + signs + sides)?;
        let mut negated = [false; 2];
        for (i, negated) in negated.iter_mut().enumerate().take(signs) {
            *negated = match self.number(4 + i)? {
                Some(1) => false,
                Some(-1) => true,
                _ => return self.bad(format!("operand {} is 1 or -1", 5 + i)),
            };
        }
        let mut transposed = [false; 2];
        for (i, transposed) in transposed[2 - sides..].iter_mut().enumerate() {
            let at = 4 + signs + i;
            *transposed = match self.number(at)? {
                Some(0) => false,
                Some(1) => true,
                _ => return self.bad(format!("operand {} is 0 or 1", at + 1)),
            };
        }
        let registers = (n * sum.bits / 64) as usize;
        let found = self.elements(self.operand(0)?);
        if found.len() != registers {
            return self.bad(format!(
                "operand 1 has {} registers, not {registers}",
                found.len()
            ));
        }
        let is_register = |e: &Operand<'_>| matches!(e, Operand::Register(_));
        if !found.iter().all(is_register) {
            return self.bad("accumulators are registers");
        }
        let dests: Result<Dests> = found.iter().map(|e| self.dest_of(e, B32, false)).collect();
        let left = match self.operand(1)? {
            Operand::Vector(elements) => {
                if elements.len() != 4 {
                    return self.bad(format!("operand 2 has {} registers, not 4", elements.len()));
                }
                let sources: Result<Sources> = elements
                    .iter()
                    .map(|e| self.source_of(e, B32, false))
                    .collect();
                Left::Registers(sources?)
            }
            _ => Left::Shared(self.source(1, B64)?),
        };
        Ok(Op::GroupProduct(Box::new(GroupProduct {
            product: MmaShape {
                shape: [m, n, k],
                a,
                b,
                sum,
                transposed,
            },
            saturates,
            sum: dests?,
            a: left,
            b: self.source(2, B64)?,
            adds: self.pred_source(3)?,
            negated,
        })))
    }

    /// A literal integer.
    fn number(&self, index: usize) -> Result<Option<i64>> {
        Ok(match self.operand(index)? {
            Operand::Literal(Literal::Int(value)) => Some(*value as i64),
            _ => None,
        })
    }
}
