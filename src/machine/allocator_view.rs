//! Machine code as the register allocator sees it.

use std::ops::Range;

use crate::machine::accesses::{orders_shared, reads_shared};
use crate::machine::function::{MachineFunction, Terminator};
use crate::machine::inst::{Address, Operand, OperandForm, Ptx};
use crate::regalloc::reg::{RegView, Registers, Touch, Unit};
use crate::regalloc::{AllocFunction, Delay, Ease, Input};

/// A kernel to allocate registers for.
pub(crate) struct CodeProgram<'a>(pub(crate) &'a MachineFunction);

impl AllocFunction for CodeProgram<'_> {
    fn regs(&self) -> &Registers {
        &self.0.regs
    }

    fn num_blocks(&self) -> usize {
        self.0.blocks.len()
    }

    fn insts(&self, block: usize) -> Range<usize> {
        self.0.blocks[block].insts.clone()
    }

    fn ease(&self, unit: Unit) -> Ease {
        match unit {
            _ if self.0.loaded_once.contains(unit) => Ease::LoadedOnce,
            _ if self.0.params.contains(unit) => Ease::Param,
            _ if self.0.widened.contains(unit) => Ease::Widened,
            _ => Ease::None,
        }
    }

    fn delay(&self, inst: usize) -> Delay {
        let inst = &self.0.insts[inst];
        match inst.op == Ptx::LdMatrix || reads_shared(inst) {
            true if inst.guard.is_none() => Delay::May,
            _ if orders_shared(inst) => Delay::Ends,
            _ => Delay::None,
        }
    }

    fn width(&self) -> Option<u32> {
        self.0.width
    }

    fn in_flight(&self, mut visit: impl FnMut(Unit)) {
        let code = self.0;
        for inst in &code.insts {
            for ((form, _), arg) in inst.op.info().operands.iter().zip(code.args(inst)) {
                if let (OperandForm::Tied, Operand::Regs(view)) = (form, arg) {
                    (0..view.count).for_each(|i| visit(code.regs.unit(*view, i)));
                }
            }
        }
    }

    fn visit(&self, inst: usize, visit: impl FnMut(Unit, Touch)) {
        let inst = &self.0.insts[inst];
        inst.visit(&self.0.regs, self.0.args(inst), visit);
    }

    fn replay(&self, inst: usize, mut visit: impl FnMut(u16, Unit, bool)) {
        let code = self.0;
        let inst = &code.insts[inst];
        let operands = inst.op.info().operands;
        for rep in 0..inst.reps {
            for writes in [false, true] {
                for ((form, _), arg) in operands.iter().zip(code.args(inst)) {
                    let is_tied = matches!(form, OperandForm::Tied | OperandForm::Held);
                    let is_dest = is_tied || matches!(form, OperandForm::Def | OperandForm::VDef);
                    let view = match arg {
                        Operand::Regs(view) | Operand::Address(Address::Register(view, _)) => *view,
                        _ => continue,
                    };
                    // The destination of a guarded instruction is read as well.
                    if is_dest != writes && !(is_dest && (is_tied || inst.guard.is_some())) {
                        continue;
                    }
                    let each = match form {
                        form if form.is_row() => view.count / inst.reps,
                        _ => 1,
                    };
                    for i in rep * each..(rep + 1) * each {
                        let unit = code.regs.unit(view, if view.count == 1 { 0 } else { i });
                        visit(rep, unit, writes);
                    }
                }
                if let (Some(guard), false) = (inst.guard, writes) {
                    visit(rep, guard.pred, false);
                }
            }
        }
    }

    fn copied(&self, inst: usize) -> Option<(RegView, RegView)> {
        let inst = &self.0.insts[inst];
        match (inst.op, self.0.args(inst)) {
            (Ptx::Mov, &[Operand::Regs(to), Operand::Regs(from)]) if to.count == from.count => {
                Some((to, from))
            }
            _ => None,
        }
    }

    fn params(&self, block: usize, mut visit: impl FnMut(Unit)) {
        for &param in &self.0.blocks[block].params {
            self.0.regs.units(param).for_each(&mut visit);
        }
    }

    fn condition(&self, block: usize) -> Option<Unit> {
        match self.0.blocks[block].end {
            Terminator::Branch { cond, .. } => Some(cond),
            Terminator::Return | Terminator::Jump(_) => None,
        }
    }

    fn num_edges(&self, block: usize) -> usize {
        self.0.blocks[block].end.edges().count()
    }

    fn target(&self, block: usize, edge: usize) -> usize {
        let mut edges = self.0.blocks[block].end.edges();
        edges.nth(edge).map_or(block, |e| e.target)
    }

    fn inputs(&self, block: usize, edge: usize, mut visit: impl FnMut(Unit, Input)) {
        let code = self.0;
        let Some(edge) = code.blocks[block].end.edges().nth(edge) else {
            return;
        };
        let params = &code.blocks[edge.target].params;
        for (&param, &arg) in params.iter().zip(&code.edge_args[edge.args.clone()]) {
            for i in 0..param.count {
                let to = code.regs.unit(param, i);
                match arg {
                    Operand::Regs(view) => {
                        let i = if view.count == 1 { 0 } else { i };
                        visit(to, Input::Unit(code.regs.unit(view, i)));
                    }
                    Operand::Imm(bits) => visit(to, Input::Number(bits)),
                    // Edges carry values, which are registers or numbers.
                    Operand::Address(_)
                    | Operand::Special(_)
                    | Operand::Param(_)
                    | Operand::Map(_)
                    | Operand::Timer
                    | Operand::Log => {}
                }
            }
        }
    }
}
