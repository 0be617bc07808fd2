//! Registers of values, and the ops that only rename them.

use smallvec::SmallVec;

use super::{Selector, class, internal};
use crate::error::CompileError;
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;
use crate::ir::types::ThreadType;
use crate::machine::inst::{Modifier, Operand, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, RegView, Unit};

impl Selector<'_> {
    /// Gives registers to the parameters of a block and the results of its instructions.
    pub(super) fn assign_values(&mut self, block: Block) -> Result<(), CompileError> {
        let func = self.func;
        for &param in &func.dfg.blocks[block].params {
            self.assign_group(param);
        }
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            let Some((&result, others)) = data.results.split_first() else {
                continue;
            };
            for &other in others {
                self.assign_group(other);
            }
            if let Some(&early) = data.args.iter().find(|&&a| self.values[a].is_none()) {
                return Err(internal(format!("{early} is used before it is defined")));
            }
            if let Some(view) = self.tied_to(inst) {
                self.values[result] = Some(Operand::Regs(view));
                continue;
            }
            match self.renamed(inst, result) {
                Some(arg) => {
                    self.values[result] = Some(arg);
                    self.renames.insert(result);
                }
                None => self.assign_group(result),
            }
        }
        Ok(())
    }

    /// The registers of the operand that products in flight change, if nothing else needs it: the result is there, too.
    fn tied_to(&self, inst: Inst) -> Option<RegView> {
        let data = &self.func.dfg.insts[inst];
        let is_tied = matches!(
            data.op,
            ThreadOp::Wgmma | ThreadOp::WgmmaFence | ThreadOp::WgmmaWait
        );
        let &from = data.args.first().filter(|_| is_tied)?;
        match self.values[from]? {
            Operand::Regs(view) if self.n_uses[from] == 1 && self.code.regs.is_whole(view) => {
                Some(view)
            }
            _ => None,
        }
    }

    fn assign_group(&mut self, value: Value) {
        let ty = self.func.dfg.ty(value);
        let view = self.fresh(class(ty), ty.registers());
        self.values[value] = Some(Operand::Regs(view));
        let def = self.func.dfg.def_inst(value);
        let op = def.map(|def| self.func.dfg.insts[def].op);
        // From sm_89 on two are one conversion.
        if op == Some(ThreadOp::Fptrunc) && ty.elem.bits() == 8 && 89 <= self.target.sm {
            let low = (0..view.count).step_by(2);
            let low = low.map(|i| self.code.regs.unit(view, i));
            self.converted.extend(low);
        }
    }

    /// The registers of a result that are those of other values; none if it needs its own.
    fn renamed(&mut self, inst: Inst, result: Value) -> Option<Operand> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let ty = func.dfg.ty(result);
        match data.op {
            ThreadOp::Const => Some(Operand::Imm(repeated(*data.value().unwrap_or(&0), ty))),
            ThreadOp::Splat => {
                let arg = self.values[data.args[0]]?;
                match arg {
                    Operand::Imm(bits) => Some(Operand::Imm(repeated(bits, ty))),
                    // Both halves of one register, which stands for all.
                    Operand::Regs(_) if ty.is_paired() => {
                        let one = self.fresh(RegClass::W, 1);
                        Some(Operand::Regs(one.repeat(ty.registers())))
                    }
                    Operand::Regs(view) => Some(Operand::Regs(view.repeat(ty.count))),
                    _ => None,
                }
            }
            ThreadOp::Bitcast | ThreadOp::PtrCast | ThreadOp::Rare => {
                let arg = self.values[data.args[0]];
                if let (Some(Operand::Regs(view)), RegClass::W) = (arg, class(ty)) {
                    let units = (0..view.count).map(|i| self.code.regs.unit(view, i));
                    self.recast.extend(units);
                }
                arg
            }
            // Pairs lie in words already, and so do words.
            ThreadOp::Words if func.dfg.ty(data.args[0]).elem.bits() != 8 => {
                self.values[data.args[0]]
            }
            ThreadOp::Rearrange => self.renamed_elements(inst, ty),
            _ => self.known(inst),
        }
    }

    fn renamed_elements(&mut self, inst: Inst, ty: ThreadType) -> Option<Operand> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let map = data.map()?;
        // Each operand with the index of its first element.
        let sources: SmallVec<[(u32, Value); 8]> = data
            .args
            .iter()
            .scan(0, |next, &v| {
                let first = *next;
                *next += u32::from(func.dfg.ty(v).count);
                Some((first, v))
            })
            .collect();
        let find = |element: u32| {
            let place = sources.partition_point(|&(first, _)| first <= element) - 1;
            let (first, value) = sources[place];
            (value, element - first)
        };
        // A number everywhere.
        let bits = |element: u32| match self.values[find(element).0] {
            Some(Operand::Imm(bits)) => Some(bits & ty.elem.mask()),
            _ => None,
        };
        if let Some(first) = map.first().and_then(|&m| bits(m))
            && map.iter().all(|&m| bits(m) == Some(first))
        {
            return Some(Operand::Imm(repeated(first, ty)));
        }
        let per_register = if ty.is_paired() { 2 } else { 1 };
        let mut units: SmallVec<[Unit; 16]> = SmallVec::new();
        for chunk in map.chunks(per_register) {
            let (value, element) = find(chunk[0]);
            let whole = !ty.is_paired() || (chunk[1] == chunk[0] + 1 && element.is_multiple_of(2));
            let source = func.dfg.ty(value);
            if !whole
                || source.is_paired() != ty.is_paired()
                || find(chunk[per_register - 1]).0 != value
            {
                return None;
            }
            units.push(self.element_unit(value, element)?);
        }
        Some(Operand::Regs(self.code.regs.view_of(&units)))
    }

    /// The register that holds an element of a value.
    pub(super) fn element_unit(&mut self, value: Value, element: u32) -> Option<Unit> {
        let ty = self.func.dfg.ty(value);
        match self.values[value]? {
            Operand::Regs(view) => {
                let per_register = if ty.is_paired() { 2 } else { 1 };
                Some(self.code.regs.unit(view, (element / per_register) as u16))
            }
            Operand::Imm(_) => {
                if let Some(unit) = self.const_units[value].expand() {
                    return Some(unit);
                }
                let view = self.fresh(class(ty), 1);
                let unit = self.code.regs.unit(view, 0);
                self.const_units[value] = Some(unit).into();
                Some(unit)
            }
            _ => None,
        }
    }

    /// Puts a constant in a register if a renaming op refers to it.
    pub(super) fn select_const(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let result = self.func.dfg.insts[inst].results[0];
        if let (Some(unit), Some(bits)) = (self.const_units[result].expand(), self.values[result]) {
            let to = self.code.regs.view_of(&[unit]);
            let ty = super::bits_type(self.code.regs.class_of(unit));
            self.copy(to, bits, ty);
        }
        Ok(None)
    }

    /// Passes on the need for an op that only renames; emits what moves halves of registers.
    pub(super) fn select_rename(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let result = data.results[0];
        let ty = func.dfg.ty(result);
        let moves_halves = data.op == ThreadOp::Rearrange && !self.renames.contains(result);
        if moves_halves && matches!(self.values[result], Some(Operand::Regs(_))) {
            return self.select_halves(inst, ty).map(Some);
        }
        for &arg in &data.args {
            self.use_value(arg);
        }
        let own = match self.values[result] {
            Some(Operand::Regs(view)) => view,
            // A renamed number may itself be referred to by register.
            _ => return self.select_const(inst),
        };
        match data.op {
            ThreadOp::Splat if ty.is_paired() => {
                let x = self.use_value(data.args[0]);
                let x = self.in_register(x, RegClass::H).repeat(2);
                let dest = Operand::Regs(own.part(0, 1));
                self.push_inst(
                    Ptx::Join32,
                    PtxType::B32,
                    PtxType::B32,
                    Modifier::None,
                    1,
                    &[dest, Operand::Regs(x)],
                );
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Moves halves of registers: two words give a word by `prmt`, anything else goes through single halves.
    fn select_halves(&mut self, inst: Inst, ty: ThreadType) -> Result<Operand, CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let map = data.map().map_or(&[][..], |m| m);
        let find = |element: u32| {
            element_of(func, &data.args, element)
                .ok_or_else(|| internal("a rearrangement names an element that is not there"))
        };
        if !ty.is_paired() {
            let mut units: SmallVec<[Unit; 16]> = SmallVec::new();
            for &m in map {
                let (value, element) = find(m)?;
                units.push(self.half(value, element)?);
            }
            return Ok(Operand::Regs(self.code.regs.view_of(&units)));
        }
        let dest = self.fresh(RegClass::W, ty.registers());
        for (i, chunk) in (0..).zip(map.chunks(2)) {
            let (a, b) = (find(chunk[0])?, find(chunk[1])?);
            let to = Operand::Regs(dest.part(i, 1));
            if func.dfg.ty(a.0).is_paired() && func.dfg.ty(b.0).is_paired() {
                let low = self.word(a.0, a.1)?;
                let high = self.word(b.0, b.1)?;
                let selector = (if a.1 % 2 == 0 { 0x10 } else { 0x32 })
                    | (if b.1 % 2 == 0 { 0x5400 } else { 0x7600 });
                self.push_inst(
                    Ptx::Prmt,
                    PtxType::B32,
                    PtxType::B32,
                    Modifier::None,
                    1,
                    &[to, low, high, Operand::Imm(selector)],
                );
            } else {
                let halves = [self.half(a.0, a.1)?, self.half(b.0, b.1)?];
                let both = Operand::Regs(self.code.regs.view_of(&halves));
                self.push_inst(
                    Ptx::Join32,
                    PtxType::B32,
                    PtxType::B32,
                    Modifier::None,
                    1,
                    &[to, both],
                );
            }
        }
        Ok(Operand::Regs(dest))
    }

    /// The word of a paired value that holds an element.
    fn word(&mut self, value: Value, element: u32) -> Result<Operand, CompileError> {
        match self.use_value(value) {
            Operand::Regs(view) => Ok(Operand::Regs(view.part((element / 2) as u16, 1))),
            imm => Ok(Operand::Regs(self.in_register(imm, RegClass::W))),
        }
    }

    /// The element of a value without pairs that stands unchanged in an element of pairs.
    fn single_half(&self, value: Value, element: u32) -> Option<(Value, u32)> {
        let func = self.func;
        let mut place = (value, element);
        while func.dfg.ty(place.0).is_paired() {
            let data = &func.dfg.insts[func.dfg.def_inst(place.0)?];
            if data.op != ThreadOp::Rearrange {
                return None;
            }
            let from = *data.map()?.get(place.1 as usize)?;
            place = element_of(func, &data.args, from)?;
        }
        Some(place)
    }

    /// A register of 16 bits that holds an element: the one that it was in before pairs were made, if there is one.
    fn half(&mut self, value: Value, element: u32) -> Result<Unit, CompileError> {
        let (value, element) = self.single_half(value, element).unwrap_or((value, element));
        let paired = self.func.dfg.ty(value).is_paired();
        let view = match self.use_value(value) {
            Operand::Regs(view) if paired => {
                let split = self.fresh(RegClass::H, 2);
                let word = view.part((element / 2) as u16, 1);
                let args = [Operand::Regs(split), Operand::Regs(word)];
                self.push_inst(
                    Ptx::Split32,
                    PtxType::B32,
                    PtxType::B32,
                    Modifier::None,
                    1,
                    &args,
                );
                split.part((element % 2) as u16, 1)
            }
            Operand::Regs(view) => view.part(element as u16, 1),
            Operand::Imm(bits) => self.in_register(Operand::Imm(bits & 0xffff), RegClass::H),
            _ => return Err(internal("a value is neither register nor number")),
        };
        Ok(self.code.regs.unit(view, 0))
    }
}

/// Which of several values an element is in, these one behind the other, and its place there.
pub(super) fn element_of(
    func: &ThreadFunction,
    values: &[Value],
    element: u32,
) -> Option<(Value, u32)> {
    let mut first = 0;
    for &value in values {
        let count = u32::from(func.dfg.ty(value).count);
        if element < first + count {
            return Some((value, element - first));
        }
        first += count;
    }
    None
}

/// The bits of a number in a register of the type: twice for pairs.
pub(super) fn repeated(bits: u64, ty: ThreadType) -> u64 {
    let bits = bits & ty.elem.mask();
    if ty.is_paired() {
        bits | bits << 16
    } else {
        bits
    }
}
