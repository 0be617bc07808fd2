//! Atomic accesses.
//!
//! One whose result nobody asks for is a `red`, which saves the way back, unless it acquires: that form has only
//! `atom`. A predicated one leaves its destination as it was, so the destination gets zeros first.

use super::memory::When;
use super::{Selector, bits_type};
use crate::error::CompileError;
use crate::ir::attrs::{Attrs, RmwOp};
use crate::ir::entities::Inst;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::machine::inst::{Atomic, Modifier, Operand, Ptx, PtxType};

impl Selector<'_> {
    pub(super) fn select_atomic(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let ty = func.dfg.ty(data.args[1]);
        let (Some(&sem), Some(&scope)) = (data.sem(), data.scope()) else {
            return Err(self.not_selected(data.op));
        };
        let is_cas = data.op == ThreadOp::AtomCas;
        let rmw = data.rmw().copied().filter(|_| !is_cas);
        let Some(ptx_type) = atomic_type(rmw, ty) else {
            return Err(self.not_selected(data.op));
        };
        let class = ptx_type.class();
        let n_values = if is_cas { 2 } else { 1 };
        let when = self.when(data.args.get(1 + n_values).copied());
        let result = data.results.first();
        let is_wanted = result.is_some_and(|&v| self.needed.contains(v));
        let is_silent = !is_wanted && !is_cas && !sem.acquires() && rmw != Some(RmwOp::Xchg);
        let count = ty.registers();

        let dest = (!is_silent).then(|| self.fresh(class, count));
        if let Some(dest) = dest
            && !matches!(when, When::Always)
        {
            self.copy(dest, Operand::Imm(0), bits_type(class));
        }
        if !matches!(when, When::Never) {
            let mut values = Vec::new();
            for &value in &data.args[1..=n_values] {
                let arg = self.use_value(value);
                let view = self.in_register(arg, class);
                values.push(Operand::Regs(if view.count == count {
                    view
                } else {
                    view.repeat(count)
                }));
            }
            let offset = *data.offset().unwrap_or(&0);
            let place = self.place(data.args[0], offset);
            let op = row(is_cas, is_silent, ty, count);
            let mut args: Vec<Operand> = dest.map(Operand::Regs).into_iter().collect();
            args.push(Operand::Address(place));
            args.extend(values);
            let Elem::Ptr(_, space) = func.dfg.ty(data.args[0]).elem else {
                return Err(self.not_selected(data.op));
            };
            let modifier = Modifier::Atomic(Atomic {
                space,
                rmw,
                is_half: ty.elem.bits() == 16,
                sem,
                scope,
            });
            self.push_inst(op, ptx_type, ptx_type, modifier, 1, &args);
            if let When::If(guard) = when {
                self.guard_last(Some(guard));
            }
        }
        Ok(dest.filter(|_| is_wanted).map(Operand::Regs))
    }
}

/// The type in the mnemonic; none for what no target has.
fn atomic_type(rmw: Option<RmwOp>, ty: ThreadType) -> Option<PtxType> {
    let by_width = |narrow, middle, wide| match ty.elem.bits() {
        16 => narrow,
        32 => Some(middle),
        64 => Some(wide),
        _ => None,
    };
    match rmw {
        None => by_width(Some(PtxType::B16), PtxType::B32, PtxType::B64),
        Some(RmwOp::Add | RmwOp::Umax | RmwOp::Umin) => by_width(None, PtxType::U32, PtxType::U64),
        Some(RmwOp::Smax | RmwOp::Smin) => by_width(None, PtxType::S32, PtxType::S64),
        Some(RmwOp::And | RmwOp::Or | RmwOp::Xor | RmwOp::Xchg) => {
            by_width(None, PtxType::B32, PtxType::B64)
        }
        Some(RmwOp::Fadd) => match (ty.elem, ty.is_paired()) {
            (Elem::F16, false) => Some(PtxType::F16),
            (Elem::F16, true) => Some(PtxType::F16x2),
            (Elem::BF16, false) => Some(PtxType::Bf16),
            (Elem::BF16, true) => Some(PtxType::Bf16x2),
            (Elem::F32, _) => Some(PtxType::F32),
            (Elem::F64, _) => Some(PtxType::F64),
            _ => None,
        },
    }
}

/// The row of the table, by what the type needs of the target.
fn row(is_cas: bool, is_silent: bool, ty: ThreadType, registers: u16) -> Ptx {
    let is_half = ty.elem.bits() == 16;
    match (is_cas, is_silent) {
        (true, _) if is_half => Ptx::AtomCasHalf,
        (true, _) => Ptx::AtomCas,
        (false, true) => match ty.elem {
            _ if registers > 1 => Ptx::RedVec,
            Elem::BF16 => Ptx::RedBf,
            _ if is_half => Ptx::RedHalf,
            _ => Ptx::Red,
        },
        (false, false) => match ty.elem {
            _ if registers > 1 => Ptx::AtomVec,
            Elem::BF16 => Ptx::AtomBf,
            _ if is_half => Ptx::AtomHalf,
            _ => Ptx::Atom,
        },
    }
}
