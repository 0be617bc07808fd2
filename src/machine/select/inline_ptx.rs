//! Inline PTX: the registers that its lines take and leave.
//!
//! Operands are packed into registers as the constraints want them, for all runs at once; then come the runs; then
//! results are taken apart and copied to the registers of their values.

use super::{Selector, bits_type, internal, rules};
use crate::error::CompileError;
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};
use crate::ir::inline_ptx::{self, Constraints};
use crate::machine::inst::{Modifier, Operand, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, RegView, Unit};

impl Selector<'_> {
    pub(super) fn select_inline(&mut self, inst: Inst) -> Result<(), CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let (Some(text), Some(constraints), Some(&pack)) =
            (data.ptx(), data.constraints(), data.pack())
        else {
            return Err(self.not_selected(data.op));
        };
        let constraints = Constraints::parse(constraints).map_err(internal)?;
        let pack = u32::from(pack);
        let count = data.results.first().map_or(1, |&v| func.dfg.ty(v).count);
        let runs = u32::from(count) / pack;
        let registers = |v: Value| inline_ptx::registers(func.dfg.ty(v).elem.bits(), pack);

        // For each value its registers, run by run.
        let mut letters = constraints.inputs.iter().copied();
        let mut inputs: Vec<(usize, Vec<Unit>)> = Vec::new();
        for &arg in &data.args {
            let (each, held) = registers(arg);
            let widths: Vec<u32> = letters.by_ref().take(each as usize).collect();
            let packed = self.packed(arg, count, held);
            let units = self.widened_to(&packed, held, &widths);
            inputs.push((each as usize, units));
        }
        let mut letters = constraints.outputs.iter().copied();
        let mut outputs: Vec<(usize, Vec<u32>, Vec<Unit>)> = Vec::new();
        for &result in &data.results {
            let each = registers(result).0 as usize;
            let widths: Vec<u32> = letters.by_ref().take(each).collect();
            let mut units = Vec::new();
            for _ in 0..runs {
                for &width in &widths {
                    let view = self.fresh(class_of(width), 1);
                    units.push(self.code.regs.unit(view, 0));
                }
            }
            outputs.push((each, widths, units));
        }

        let text_is_pure = data.is_pure();
        let number = self.code.texts.len() as u32;
        self.code.texts.push(text.clone());
        for run in 0..runs as usize {
            let of_run = |(each, units): (usize, &[Unit])| units[run * each..][..each].to_vec();
            let written: Vec<Unit> = outputs
                .iter()
                .flat_map(|(each, _, units)| of_run((*each, units)))
                .collect();
            let read: Vec<Unit> = inputs
                .iter()
                .flat_map(|(each, units)| of_run((*each, units)))
                .collect();
            let args = [written, read].map(|units| Operand::Regs(self.code.regs.view_of(&units)));
            let ty = PtxType::B32;
            self.push_inst(
                Ptx::Inline,
                ty,
                ty,
                Modifier::Inline(number, text_is_pure),
                1,
                &args,
            );
        }
        for (&result, (_, widths, units)) in data.results.iter().zip(&outputs) {
            if self.needed.contains(result) {
                self.unpack(result, pack, widths, units)?;
            }
        }
        Ok(())
    }

    /// Registers that hold `held` bits of a value's elements each, of 16 bits at least.
    fn packed(&mut self, value: Value, count: u16, held: u32) -> Vec<Unit> {
        let ty = self.func.dfg.ty(value);
        // Words as loads left them need not be taken apart first.
        let fills_words = ty.elem.bits() == 8 && held == 32 && ty.count == count;
        if let Some(words) = fills_words.then(|| self.loaded_words(value)).flatten() {
            return self.code.regs.units(words).collect();
        }
        let arg = self.use_value(value);
        let natural = super::class(ty);
        let view = self.in_register(arg, natural);
        let of_all = if ty.is_paired() { count / 2 } else { count };
        let view = if view.count == of_all {
            view
        } else {
            view.repeat(of_all)
        };
        let packed = match (ty.elem.bits(), held) {
            (16, 16) if ty.is_paired() => rules::Context::halves(self, Operand::Regs(view)),
            (8, 8) => self.widened(view),
            (8, 16) => self.byte_pairs(view),
            (8, _) => Operand::Regs(self.put_together(view)),
            _ => Operand::Regs(view),
        };
        let view = self.in_register(packed, natural);
        self.code.regs.units(view).collect()
    }

    /// Two bytes in each register of 16 bits.
    fn byte_pairs(&mut self, bytes: RegView) -> Operand {
        let clean = self.widened(bytes);
        let low = rules::Context::even(self, clean);
        let high = rules::Context::odd(self, clean);
        let b16 = PtxType::B16;
        let high = self.result_of(Ptx::Shl, b16, b16, Modifier::None, &[high, Operand::Imm(8)]);
        self.result_of(Ptx::Or, b16, b16, Modifier::None, &[low, high])
    }

    /// Registers as wide as the constraints want; `widths` repeats from run to run.
    fn widened_to(&mut self, units: &[Unit], held: u32, widths: &[u32]) -> Vec<Unit> {
        let held = held.max(16);
        let mut wide = Vec::new();
        for (&unit, &width) in units.iter().zip(widths.iter().cycle()) {
            if width == held {
                wide.push(unit);
                continue;
            }
            let narrow = Operand::Regs(self.code.regs.view_of(&[unit]));
            let (to, from) = (unsigned(width), unsigned(held));
            let result = self.result_of(Ptx::Cvt, to, from, Modifier::None, &[narrow]);
            let view = self.in_register(result, class_of(width));
            wide.push(self.code.regs.unit(view, 0));
        }
        wide
    }

    /// Takes a result apart and copies it to its value's registers.
    fn unpack(
        &mut self,
        result: Value,
        pack: u32,
        widths: &[u32],
        units: &[Unit],
    ) -> Result<(), CompileError> {
        let ty = self.func.dfg.ty(result);
        let Some(Operand::Regs(own)) = self.values[result] else {
            return Err(internal("a result has no register"));
        };
        let (_, held) = inline_ptx::registers(ty.elem.bits(), pack);
        let natural = held.max(16);
        let mut narrow = Vec::new();
        for (&unit, &width) in units.iter().zip(widths.iter().cycle()) {
            if width == natural {
                narrow.push(unit);
                continue;
            }
            let wide = Operand::Regs(self.code.regs.view_of(&[unit]));
            let (to, from) = (unsigned(natural), unsigned(width));
            let cut = self.result_of(Ptx::Cvt, to, from, Modifier::None, &[wide]);
            let view = self.in_register(cut, class_of(natural));
            narrow.push(self.code.regs.unit(view, 0));
        }
        let view = self.code.regs.view_of(&narrow);
        let elements = match (ty.elem.bits(), held) {
            (16, 16) if ty.is_paired() => rules::Context::pair(self, Operand::Regs(view)),
            (8, 16 | 32) => Operand::Regs(self.take_apart(view)),
            _ => Operand::Regs(view),
        };
        let class = super::class(ty);
        self.copy(own, elements, bits_type(class));
        Ok(())
    }
}

fn class_of(bits: u32) -> RegClass {
    match bits {
        16 => RegClass::H,
        32 => RegClass::W,
        _ => RegClass::D,
    }
}

fn unsigned(bits: u32) -> PtxType {
    match bits {
        16 => PtxType::U16,
        32 => PtxType::U32,
        _ => PtxType::U64,
    }
}
