//! Rematerialization: what is made from nothing (numbers, parameters, special registers) is made again where it is needed after a stretch of
//! high pressure, instead of living over it.

use super::{Known, NONE, Scheduler};
use crate::machine::function::MachineFunction;
use crate::machine::inst::{Address, MInst, Operand, OperandForm, Ptx};

impl Scheduler {
    /// Makes operands again that were made from nothing before a stretch of high pressure; tells whether something
    /// stands for one of them.
    pub(super) fn rematerialize(&mut self, code: &mut MachineFunction, inst: &mut MInst) -> bool {
        let mut replaced = false;
        let n_args = inst.op.info().operands.len();
        for i in 0..n_args {
            let arg = code.args[inst.first_arg as usize + i];
            let form = inst.op.info().operands[i].0;
            if form == OperandForm::Def || form.is_row() {
                continue;
            }
            let (Operand::Regs(view) | Operand::Address(Address::Register(view, _))) = arg else {
                continue;
            };
            if !view.is_uniform() {
                continue;
            }
            let unit = code.regs.unit(view, 0);
            let known = self.known[unit.as_u32() as usize];
            let now = self.out.len() as u32;
            let again = known.touched < self.last_high
                && self.bounds.long <= now - known.touched
                && self.is_free(code, known);
            if again {
                let group = code.regs.make_group(code.regs.class_of(unit), 1);
                let whole = code.regs.whole(group);
                let mut maker = code.insts[self.items[known.writer as usize].inst as usize];
                let first = code.args.len();
                for i in 0..maker.op.info().operands.len() {
                    code.args.push(code.args[maker.first_arg as usize + i]);
                }
                code.args[first] = Operand::Regs(whole);
                (maker.first_arg, maker.reps) = (first as u32, 1);
                self.end_run(code);
                self.out.push(maker);
                let unit_again = code.regs.unit(whole, 0);
                if maker.op == Ptx::LdParam {
                    code.params.insert(unit_again);
                }
                self.known[unit.as_u32() as usize].instead = Some(unit_again);
            }
            if let Some(instead) = self.known[unit.as_u32() as usize].instead {
                let view = code.regs.view_of(&[instead]).repeat(view.count);
                let first = code.args.len();
                for i in 0..n_args {
                    code.args.push(code.args[inst.first_arg as usize + i]);
                }
                inst.first_arg = first as u32;
                replaced = true;
                code.args[first + i] = match arg {
                    Operand::Address(Address::Register(_, offset)) => {
                        Operand::Address(Address::Register(view, offset))
                    }
                    _ => Operand::Regs(view),
                };
            }
        }
        replaced
    }

    /// Whether a register's value is made from nothing and can be made again.
    fn is_free(&self, code: &MachineFunction, known: Known) -> bool {
        if known.writer == NONE || known.escapes || known.fixed || known.rewritten {
            return false;
        }
        let inst = &code.insts[self.items[known.writer as usize].inst as usize];
        inst.guard.is_none()
            && match inst.op {
                Ptx::LdParam | Ptx::Special | Ptx::Symbol => true,
                Ptx::Mov => matches!(code.args(inst)[1], Operand::Imm(_)),
                _ => false,
            }
    }
}
