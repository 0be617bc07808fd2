//! Machine code as text for readers, before and after registers are allocated: what `--emit machine` prints.
//!
//! ```text
//! words  instruction
//!     3  %r1 = ..                    32-bit registers that are live around it, and the instruction as PTX has it;
//!     7  ld.global.v4.b32 .. * 2     one that is repeated for each part of a pack is shown once
//!
//! group      registers            live
//! g4         %r8 .. %r11          ..########....   from the first place where one of its registers is live to the last
//! ```
//!
//! Before allocation a register has the number of its unit, after it the name that the unit got.

use std::fmt;

use super::allocator_view::CodeProgram;
use super::function::{MachineFunction, Terminator};
use super::inst::{MInst, Modifier};
use super::print::Printer;
use crate::regalloc::live::Liveness;
use crate::regalloc::reg::{Group, Unit};
use crate::regalloc::{AllocFunction, Allocation, Move, MoveSource};

/// Columns of the drawing of live ranges.
const COLUMNS: u32 = 60;

/// Machine code to be shown.
#[derive(Clone, Copy)]
pub struct MachineCode<'a> {
    code: &'a MachineFunction,
    allocation: Option<&'a Allocation>,
}

impl<'a> MachineCode<'a> {
    /// Code over virtual registers.
    pub(crate) fn virtual_registers(code: &'a MachineFunction) -> MachineCode<'a> {
        MachineCode {
            code,
            allocation: None,
        }
    }

    /// Code with the registers that it got.
    pub(crate) fn allocated(
        code: &'a MachineFunction,
        allocation: &'a Allocation,
    ) -> MachineCode<'a> {
        MachineCode {
            code,
            allocation: Some(allocation),
        }
    }

    /// An instruction, one line for all its repetitions.
    fn inst(text: &mut Printer<'_>, code: &MachineFunction, inst: &MInst) {
        let args = code.args(inst);
        if let Modifier::Inline(lines, _) = inst.modifier {
            return text.inline(lines, args);
        }
        text.mnemonic(inst);
        for (i, (&(form, _), &arg)) in inst.op.info().operands.iter().zip(args).enumerate() {
            text.out += if i == 0 { " " } else { ", " };
            text.operand(inst, i, form, arg, 0);
        }
        if 1 < inst.reps {
            text.out += &format!(" * {}", inst.reps);
        }
    }

    /// The ways out of block `index`, with the moves on each.
    fn end(self, text: &mut Printer<'_>, index: usize, end: &Terminator) {
        if let Terminator::Branch { cond, .. } = end {
            text.out += "\tbranch ";
            text.unit(*cond);
        }
        for (way, edge) in end.edges().enumerate() {
            text.out += "\t-> ";
            text.label(edge.target);
            let moves = self.allocation.map_or(&[][..], |a| &a.moves[index][way]);
            for &Move { class, to, source } in moves {
                text.out += ", ";
                text.name(class, to);
                text.out += " = ";
                match source {
                    MoveSource::Register(name) => text.name(class, name),
                    MoveSource::Number(bits) => text.number(bits),
                }
            }
        }
        if let Terminator::Return = end {
            text.out += "\treturn";
        }
    }

    /// The registers of a group, and where they are live.
    fn range(
        text: &mut Printer<'_>,
        code: &MachineFunction,
        live: &Liveness,
        group: Group,
        end: u32,
    ) -> Option<String> {
        let ranges = live.ranges(group);
        let (first, last) = (ranges.first()?.start, ranges.last()?.end);
        let data = code.regs.groups[group];
        text.out.clear();
        text.unit(data.first);
        if 1 < data.count {
            text.out += " .. ";
            let last = data.first.as_u32() + u32::from(data.count) - 1;
            text.unit(Unit::from_u32(last));
        }
        let column = |point: u32| point * COLUMNS / end.max(1);
        let bar: String = (0..COLUMNS)
            .map(|c| {
                let is_live = |r: &crate::regalloc::live::LiveRange| {
                    column(r.start) <= c && c <= column(r.end.saturating_sub(1))
                };
                if ranges.iter().any(is_live) { '#' } else { '.' }
            })
            .collect();
        let (first, last) = (first / 2, last.saturating_sub(1) / 2);
        let name = group.to_string();
        let registers = &text.out;
        Some(format!("{name:6} {registers:20} {bar} {first}..{last}\n"))
    }
}

impl fmt::Display for MachineCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code;
        let program = CodeProgram(code);
        let live = Liveness::compute(&program);
        let own: Vec<u32> = (0..code.regs.num_units() as u32).collect();
        let mut text = Printer {
            out: String::new(),
            code,
            names: self.allocation.map_or(&own, |a| &a.names),
            entry: "kernel",
            shared: "smem",
        };
        let [predicates, halves, words, doubles] = live.peak;
        writeln!(
            f,
            "{} instructions, {} blocks; most registers live at once: {words} of 32 bits, {doubles} of 64, {halves} of 16, \
             {predicates} predicates\n\nwords  instruction",
            code.insts.len(),
            code.blocks.len(),
        )?;
        for (index, block) in code.blocks.iter().enumerate() {
            text.out.clear();
            text.label(index);
            let params = block.params.iter().flat_map(|&p| code.regs.units(p));
            for (i, unit) in params.enumerate() {
                text.out += if i == 0 { " " } else { ", " };
                text.unit(unit);
            }
            writeln!(f, "{}:", text.out)?;
            for i in block.insts.clone() {
                text.out.clear();
                Self::inst(&mut text, code, &code.insts[i]);
                writeln!(f, "{:5}{}", live.words_at[i], text.out)?;
            }
            text.out.clear();
            self.end(&mut text, index, &block.end);
            writeln!(f, "     {}", text.out)?;
        }
        let slots: u32 = (0..code.blocks.len())
            .map(|b| program.insts(b).len() as u32 + 2)
            .sum();
        writeln!(f, "\ngroup  registers            live")?;
        for group in code.regs.groups.keys() {
            if let Some(row) = Self::range(&mut text, code, &live, group, 2 * slots) {
                f.write_str(&row)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for MachineCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
