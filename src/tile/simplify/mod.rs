//! Simplification: constants are folded, identities applied, and work moved to where it is done once.
//!
//! One walk in program order tries the `rules` of each instruction's op, one function each, in files by class. What a
//! rule emits is simplified in turn, at most `MAX_DEPTH` deep; an instruction changed in place is tried again at
//! most `MAX_ROUNDS` times. So the walk is linear in the function.
//!
//! Every rule is exact: bit for bit for integers and pointers, for floating point up to the NaN patterns that the
//! IR leaves open, and for ops with an error bound within that bound. There is no rule that holds for real numbers
//! only.
//!
//! Canonical forms that other rules and passes rely on: a constant block is one `const`; constants stand on the
//! right of commutative ops and comparisons; `splat`, `broadcast` and `expand_dims` come after the arithmetic that
//! they are operands of, as far as all operands allow; the uniform terms of a sum are added up first.

mod cast;
mod compare;
mod float;
mod fold;
mod int;
mod memory;
mod pointer;
mod regions;
mod select;
mod shape;

#[cfg(test)]
mod tests;

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::Attr;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::TileType;

/// How deep emitted instructions are simplified.
const MAX_DEPTH: u32 = 12;

/// How often one instruction is changed in place.
const MAX_ROUNDS: u32 = 8;

/// What a rule did.
enum Rewrite {
    /// The result is this value.
    Value(Value),
    /// The instruction was changed in place.
    Updated,
    /// The instruction goes.
    Removed,
}

/// A rule: looks at an instruction and perhaps rewrites it.
type Rule = fn(&mut Simplifier<'_, '_>, Inst) -> Option<Rewrite>;

/// Simplifies the function; gives the number of changes.
pub fn simplify(func: &mut TileFunction) -> usize {
    let changes = edit::rewrite(func, |edit, inst| {
        let mut simplifier = Simplifier { edit, depth: 0 };
        simplifier.simplify(inst)
    });
    changes + regions::drop_idle(func)
}

/// The rules for an op, in the order in which they are tried.
fn rules(op: TileOp) -> &'static [Rule] {
    macro_rules! list {
        ($($rule:path),*) => { &[shape::constants, $($rule,)* shape::uniform, shape::broadcasts, shape::expansions] };
    }
    match op {
        TileOp::Splat => &[shape::splat],
        TileOp::Broadcast => &[shape::broadcast],
        TileOp::ExpandDims => &[shape::expand_dims],
        TileOp::Reshape => &[shape::reshape],
        TileOp::Permute => &[shape::permute],
        TileOp::Join => &[shape::join],
        TileOp::Split => &[shape::split],
        TileOp::Iadd => list![
            int::constant_right,
            int::add_zero,
            int::add_constants,
            int::gather_uniform_terms
        ],
        TileOp::Isub => list![int::subtract_itself, int::subtract_constant],
        TileOp::Imul => list![
            int::constant_right,
            int::multiply_by_constant,
            int::multiply_constants
        ],
        TileOp::Sdiv => list![int::divide_by_one, int::signed_by_power],
        TileOp::Udiv => list![int::divide_by_one, int::unsigned_by_power],
        TileOp::Srem => list![int::remainder_by_one, int::signed_by_power],
        TileOp::Urem => list![int::remainder_by_one, int::unsigned_by_power],
        TileOp::Smin | TileOp::Smax | TileOp::Umin | TileOp::Umax => {
            list![int::constant_right, int::same_operands]
        }
        TileOp::And | TileOp::Or => {
            list![int::constant_right, int::same_operands, int::neutral_bits]
        }
        TileOp::Xor => list![
            int::constant_right,
            int::xor_itself,
            int::neutral_bits,
            compare::negated
        ],
        TileOp::Shl => list![int::shift_by_constant, int::shift_there_and_back],
        TileOp::Ushr | TileOp::Sshr => list![int::shift_by_constant],
        TileOp::Icmp => list![
            compare::constant_right,
            compare::with_itself,
            compare::shifted_equality,
            compare::truths,
            compare::widened
        ],
        TileOp::Select => list![select::known, select::negated, select::nested],
        TileOp::Fadd => list![
            float::constant_right,
            float::add_nothing,
            float::add_negated
        ],
        TileOp::Fsub => list![float::subtract_nothing, float::subtract_negated],
        TileOp::Fmul => list![
            float::constant_right,
            float::multiply_by_one,
            float::multiply_negated,
            float::multiply_negated_by_constant
        ],
        TileOp::Fdiv => list![float::divide_by_one, float::divide_by_constant],
        TileOp::FdivRn => list![float::divide_by_one, float::divide_by_power],
        TileOp::Fneg => list![float::negate_negated],
        TileOp::Fabs => list![float::absolute_of_signed],
        TileOp::Fmin | TileOp::Fmax => list![float::same_operands],
        TileOp::Fptosi | TileOp::Fptoui | TileOp::Fpext => list![cast::convert_choice],
        TileOp::Sext | TileOp::Zext => list![cast::widen_twice],
        TileOp::Itrunc => list![cast::narrow_widened],
        TileOp::Fptrunc => list![cast::narrow_float, cast::convert_choice],
        TileOp::Bitcast => list![cast::bitcast_twice],
        TileOp::Addptr => list![
            pointer::add_nothing,
            pointer::uniform_offset_first,
            pointer::split_offset
        ],
        TileOp::Load => &[memory::load_known_mask, memory::load_zero_elsewhere],
        TileOp::Store => &[memory::store_known_mask],
        TileOp::AtomicRmw => &[memory::atomic_known_mask],
        TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => &[],
        _ => match op.info().effects.class {
            OpClass::Elementwise => list![],
            OpClass::Constant
            | OpClass::Shape
            | OpClass::Exchange
            | OpClass::Matrix
            | OpClass::Memory
            | OpClass::Report
            | OpClass::Sync
            | OpClass::Foreign
            | OpClass::Region
            | OpClass::End => &[],
        },
    }
}

/// The walk at one instruction.
struct Simplifier<'a, 'f> {
    edit: &'a mut Editor<'f>,
    depth: u32,
}

impl Simplifier<'_, '_> {
    fn simplify(&mut self, inst: Inst) -> Fate {
        for _ in 0..MAX_ROUNDS {
            let rules = rules(self.edit.func.dfg.insts[inst].op);
            let rewrite = rules.iter().find_map(|rule| rule(self, inst));
            match rewrite {
                None => break,
                Some(Rewrite::Value(value)) => return Fate::Replace(value),
                Some(Rewrite::Removed) => return Fate::Remove,
                Some(Rewrite::Updated) => self.edit.changed(),
            }
        }
        Fate::Keep
    }

    /// A new instruction in front of the visited one, simplified.
    fn build(&mut self, op: TileOp, args: &[Value], attrs: &[Attr], ty: TileType) -> Value {
        let inst = self.edit.make(op, args, attrs, ty);
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            let fate = self.simplify(inst);
            self.depth -= 1;
            if let Fate::Replace(value) = fate {
                return value;
            }
        }
        self.edit.place(inst)
    }

    /// A new instruction whose result has the type of its first operand.
    fn op(&mut self, op: TileOp, args: &[Value]) -> Value {
        let ty = self.ty(args[0]);
        self.build(op, args, &[], ty)
    }

    fn constant(&mut self, bits: u64, ty: TileType) -> Value {
        self.edit.constant(bits, ty)
    }

    fn op_of(&self, inst: Inst) -> TileOp {
        self.edit.func.dfg.insts[inst].op
    }

    fn arg(&self, inst: Inst, i: usize) -> Value {
        self.edit.func.dfg.insts[inst].args[i]
    }

    fn ty(&self, value: Value) -> TileType {
        self.edit.ty(value)
    }

    /// Type of the only result.
    fn result_ty(&self, inst: Inst) -> TileType {
        self.ty(self.edit.func.dfg.insts[inst].results[0])
    }

    /// The bits and element type of a constant.
    fn known(&self, value: Value) -> Option<fold::TypedBits> {
        let bits = self.edit.bits(value)?;
        Some((bits, self.ty(value).elem))
    }

    /// Whether every element is known to be equal because the value is a constant or a splat; a scalar only
    /// counts if it is constant.
    fn is_uniform(&self, value: Value) -> bool {
        let op = self.edit.def(value).map(|data| data.op);
        matches!(op, Some(TileOp::Const | TileOp::Splat))
    }

    /// The operands of the instruction with the op that makes a value, if there are two.
    fn pair(&self, value: Value, op: TileOp) -> Option<(Value, Value)> {
        let data = self.edit.def(value).filter(|data| data.op == op)?;
        match data.args[..] {
            [a, b] => Some((a, b)),
            _ => None,
        }
    }

    /// Exchanges the two operands.
    fn swap(&mut self, inst: Inst) {
        self.edit.func.dfg.insts[inst].args.swap(0, 1);
    }
}
