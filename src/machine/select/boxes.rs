//! Boxes of tensors and the barriers on which they arrive.

use super::memory::When;
use super::{Selector, internal};
use crate::error::CompileError;
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::machine::inst::{Address, Modifier, Operand, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, Unit};
use crate::settings::Target;

impl Selector<'_> {
    /// The address of a tensor map, which is a parameter.
    pub(super) fn select_map(&mut self, inst: Inst) -> Option<Operand> {
        let &index = self.func.dfg.insts[inst].index().unwrap_or(&0);
        let (ty, none) = (PtxType::B64, Modifier::None);
        let map = Operand::Map(u32::from(index));
        let place = self.result_of(Ptx::ParamAddr, ty, ty, none, &[map]);
        Some(self.result_of(Ptx::ParamToGeneric, ty, ty, none, &[place]))
    }

    /// What an instruction about a barrier names: the pointer that is operand 0, at its distance.
    fn barrier_place(&mut self, inst: Inst) -> Address {
        let data = &self.func.dfg.insts[inst];
        let (pointer, offset) = (data.args[0], *data.offset().unwrap_or(&0));
        self.place(pointer, offset)
    }

    pub(super) fn select_mbar(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let (op, number) = match data.op {
            ThreadOp::MbarInit => (Ptx::MbarInit, data.count().copied()),
            ThreadOp::MbarInval => (Ptx::MbarInval, None),
            ThreadOp::MbarExpect => (Ptx::MbarExpect, data.bytes().copied()),
            ThreadOp::MbarArrive => (Ptx::MbarArrive, None),
            op => return Err(internal(format!("{op} is nothing about a barrier"))),
        };
        let pred = data.args[1];
        let place = self.barrier_place(inst);
        let number = number.map(|number| Operand::Imm(u64::from(number)));
        let args: Vec<Operand> = [Operand::Address(place)]
            .into_iter()
            .chain(number)
            .collect();
        self.emit_if(pred, op, Modifier::None, &args);
        Ok(())
    }

    /// All lanes wait for each other.
    pub(super) fn select_warp_barrier(&mut self) -> Result<Option<Operand>, CompileError> {
        let (ty, none) = (PtxType::B32, Modifier::None);
        let all = Operand::Imm(u64::from(u32::MAX));
        self.push_inst(Ptx::WarpBarrier, ty, ty, none, 1, &[all]);
        Ok(None)
    }

    pub(super) fn select_elect(&mut self) -> Operand {
        let (ty, none) = (PtxType::B32, Modifier::None);
        let is_chosen = Operand::Regs(self.fresh(RegClass::P, 1));
        let all = Operand::Imm(u64::from(u32::MAX));
        self.push_inst(Ptx::Elect, ty, ty, none, 1, &[is_chosen, all]);
        is_chosen
    }

    /// The threads of a group wait for each other.
    pub(super) fn select_group_barrier(
        &mut self,
        inst: Inst,
    ) -> Result<Option<Operand>, CompileError> {
        let data = &self.func.dfg.insts[inst];
        let (id, threads) = (data.args[0], data.threads().copied().unwrap_or(0));
        let id = self.use_value(id);
        let id = self.in_register(id, RegClass::W);
        let (ty, none) = (PtxType::U32, Modifier::None);
        let args = [Operand::Regs(id), Operand::Imm(u64::from(threads))];
        self.push_inst(Ptx::BarGroup, ty, ty, none, 1, &args);
        Ok(None)
    }

    /// The threads of a group come to a barrier and go on.
    pub(super) fn select_group_arrive(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        let (id, pred, threads) = (data.args[0], data.args[1], data.threads().copied());
        let id = self.use_value(id);
        let id = self.in_register(id, RegClass::W);
        let threads = Operand::Imm(u64::from(threads.unwrap_or(0)));
        self.emit_if(
            pred,
            Ptx::BarArrive,
            Modifier::None,
            &[Operand::Regs(id), threads],
        );
    }

    pub(super) fn select_set_registers(
        &mut self,
        inst: Inst,
    ) -> Result<Option<Operand>, CompileError> {
        let &count = self.func.dfg.insts[inst].count().unwrap_or(&0);
        let (ty, none) = (PtxType::U32, Modifier::None);
        // A warp begins with as many as the CTA's threads can have at most.
        let op = match count < Target::most_registers(self.func.cta_threads()) {
            true => Ptx::FewerRegisters,
            false => Ptx::MoreRegisters,
        };
        let count = Operand::Imm(u64::from(count));
        self.push_inst(op, ty, ty, none, 1, &[count]);
        Ok(None)
    }

    pub(super) fn select_mbar_try(&mut self, inst: Inst) -> Option<Operand> {
        let parity = self.func.dfg.insts[inst].args[1];
        let place = Operand::Address(self.barrier_place(inst));
        let parity = self.use_value(parity);
        let (ty, none) = (PtxType::U32, Modifier::None);
        Some(self.result_of(Ptx::MbarTry, ty, ty, none, &[place, parity]))
    }

    pub(super) fn select_box_copy(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let args = data.args.clone();
        let to = self.place(args[0], *data.offset().unwrap_or(&0));
        let map = self.use_value(args[1]);
        let map = self.in_register(map, RegClass::D);
        let bar = self.place(args[2], 0);
        let (dims, coords) = self.coordinates(&args[4..]);
        let operands = [
            Operand::Address(to),
            Operand::Regs(map),
            coords,
            Operand::Address(bar),
        ];
        self.emit_if(args[3], Ptx::BoxCopy, dims, &operands);
        Ok(())
    }

    pub(super) fn select_box_store(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let op = match data.rmw() {
            Some(_) => Ptx::BoxAdd,
            None => Ptx::BoxStore,
        };
        let args = data.args.clone();
        let from = self.place(args[0], *data.offset().unwrap_or(&0));
        let map = self.use_value(args[1]);
        let map = self.in_register(map, RegClass::D);
        let (dims, coords) = self.coordinates(&args[3..]);
        let operands = [Operand::Regs(map), coords, Operand::Address(from)];
        self.emit_if(args[2], op, dims, &operands);
        Ok(())
    }

    /// How many coordinates there are, and their registers: the innermost one comes first.
    fn coordinates(&mut self, values: &[Value]) -> (Modifier, Operand) {
        let coords: Vec<Unit> = values.iter().rev().map(|&v| self.coordinate(v)).collect();
        let dims = Modifier::Dims(coords.len() as u16);
        (dims, Operand::Regs(self.code.regs.view_of(&coords)))
    }

    fn coordinate(&mut self, value: Value) -> Unit {
        let arg = self.use_value(value);
        let view = self.in_register(arg, RegClass::W);
        self.code.regs.unit(view, 0)
    }

    /// An instruction that happens where a value is true.
    fn emit_if(&mut self, pred: Value, op: Ptx, modifier: Modifier, args: &[Operand]) {
        let when = self.when(Some(pred));
        if matches!(when, When::Never) {
            return;
        }
        let ty = PtxType::U32;
        self.push_inst(op, ty, ty, modifier, 1, args);
        if let When::If(guard) = when {
            self.guard_last(Some(guard));
        }
    }
}
