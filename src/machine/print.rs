//! The text of machine instructions: those of PTX, with whatever names registers have.
//!
//! Everything goes into one string; numbers are written digit by digit.

use super::function::MachineFunction;
use super::inst::{
    AccessMode, Address, Atomic, InstGroup, MInst, Modifier, Operand, OperandForm, PtxType,
};
use crate::device_print;
use crate::ir::attrs::{Cache, Evict, MemOrder, RedOp, RmwOp, Scope, SpecialReg};
use crate::ir::inline_ptx;
use crate::ir::types::AddressSpace;
use crate::regalloc::reg::{RegClass, RegView, Unit};

/// Writes instructions of a kernel, one after the other.
pub(crate) struct Printer<'a> {
    /// What was written.
    pub(crate) out: String,
    pub(crate) code: &'a MachineFunction,
    /// Number of each unit among the registers of its class.
    pub(crate) names: &'a [u32],
    /// Name of the kernel, which is part of its parameters' names.
    pub(crate) entry: &'a str,
    /// Name of the shared memory.
    pub(crate) shared: &'static str,
}

impl Printer<'_> {
    /// The author's lines in a scope of their own.
    pub(crate) fn inline(&mut self, text: u32, args: &[Operand]) {
        let code = self.code;
        let views = args.iter().filter_map(|arg| match arg {
            Operand::Regs(view) => Some(*view),
            _ => None,
        });
        let units: Vec<Unit> = views.flat_map(|view| code.regs.units(view)).collect();
        let template = code.texts.get(text as usize).map_or("", |text| text.trim());
        self.out += "\t{\n\t";
        // Verified: every number names a register.
        for piece in inline_ptx::pieces(template, units.len()).unwrap_or_default() {
            match piece {
                inline_ptx::Piece::Text(text) => self.out += text,
                inline_ptx::Piece::Register(number) => self.unit(units[number]),
            }
        }
        self.out += "\n\t}\n";
    }

    /// The unit that repetition `rep` reads or writes.
    pub(crate) fn element(&self, view: RegView, rep: u16) -> Unit {
        self.code
            .regs
            .unit(view, if view.count == 1 { 0 } else { rep })
    }

    /// The name of an instruction with its guard, types and modifiers, behind a tab.
    pub(crate) fn mnemonic(&mut self, inst: &MInst) {
        self.out.push('\t');
        if let Some(guard) = inst.guard {
            self.out += if guard.negated { "@!" } else { "@" };
            self.unit(guard.pred);
            self.out.push(' ');
        }
        let mut rest = inst.op.info().mnemonic;
        while let Some((text, tail)) = rest.split_once('{') {
            self.out += text;
            match tail.as_bytes()[0] {
                b't' => self.out += inst.ty.name(),
                b'u' => self.out += inst.from.name(),
                b'm' => self.modifier(inst.modifier),
                // How many registers a memory access takes.
                _ => self.vector_suffix(inst),
            }
            rest = &tail[2..];
        }
        self.out += rest;
    }

    fn modifier(&mut self, modifier: Modifier) {
        match modifier {
            Modifier::None => {}
            Modifier::Cmp(cmp) => self.out += cmp.name(),
            Modifier::Red(op) => {
                self.out += match op {
                    RedOp::Add => ".add",
                    RedOp::Smin | RedOp::Umin => ".min",
                    RedOp::Smax | RedOp::Umax => ".max",
                    RedOp::And => ".and",
                    RedOp::Or => ".or",
                    RedOp::Xor => ".xor",
                };
            }
            Modifier::Memory(access) => self.access(access),
            Modifier::Atomic(atomic) => self.atomic(atomic),
            Modifier::Matrices(count, trans) => {
                self.out += ".x";
                self.number(u64::from(count));
                self.out += if trans { ".trans" } else { "" };
            }
            Modifier::Transposed([left, right]) => {
                self.out += if left { ".col" } else { ".row" };
                self.out += if right { ".row" } else { ".col" };
            }
            Modifier::Columns(count) => {
                self.out.push('n');
                self.number(u64::from(count));
            }
            Modifier::Dims(count) => {
                self.out.push('.');
                self.number(u64::from(count));
                self.out.push('d');
            }
            Modifier::Copy(past_l1) => self.out += if past_l1 { ".cg" } else { ".ca" },
            // Written as a whole.
            Modifier::Inline(..) => {}
        }
    }

    fn access(&mut self, access: AccessMode) {
        if access.volatile {
            self.out += ".volatile";
        }
        self.space(access.space);
        self.out += match access.cache {
            None => "",
            Some(Cache::All) => ".ca",
            Some(Cache::Global) => ".cg",
            Some(Cache::Streaming) => ".cs",
            Some(Cache::Volatile) => ".cv",
            Some(Cache::WriteBack) => ".wb",
            Some(Cache::WriteThrough) => ".wt",
        };
        self.out += match access.evict {
            None => "",
            Some(Evict::First) => ".L1::evict_first",
            Some(Evict::Last) => ".L1::evict_last",
        };
        if access.hint {
            self.out += ".L2::cache_hint";
        }
    }

    fn space(&mut self, space: AddressSpace) {
        self.out += match space {
            AddressSpace::Global => ".global",
            AddressSpace::Shared => ".shared",
        };
    }

    fn atomic(&mut self, atomic: Atomic) {
        self.out += match atomic.sem {
            MemOrder::Relaxed => ".relaxed",
            MemOrder::Acquire => ".acquire",
            MemOrder::Release => ".release",
            MemOrder::AcqRel => ".acq_rel",
        };
        self.out += match atomic.scope {
            Scope::Cta => ".cta",
            Scope::Gpu => ".gpu",
            Scope::Sys => ".sys",
        };
        self.space(atomic.space);
        self.out += match atomic.rmw {
            None => ".cas",
            Some(RmwOp::Add) => ".add",
            Some(RmwOp::Fadd) if atomic.is_half => ".add.noftz",
            Some(RmwOp::Fadd) => ".add",
            Some(RmwOp::Smax | RmwOp::Umax) => ".max",
            Some(RmwOp::Smin | RmwOp::Umin) => ".min",
            Some(RmwOp::And) => ".and",
            Some(RmwOp::Or) => ".or",
            Some(RmwOp::Xor) => ".xor",
            Some(RmwOp::Xchg) => ".exch",
        };
    }

    fn vector_suffix(&mut self, inst: &MInst) {
        let operands = inst.op.info().operands;
        let mut args = operands.iter().zip(self.code.args(inst));
        let vector = args.find_map(|(&(form, _), arg)| match (form, arg) {
            (OperandForm::VDef | OperandForm::VUse | OperandForm::Tied, Operand::Regs(view)) => {
                Some(view.count)
            }
            _ => None,
        });
        self.out += match vector {
            None | Some(1) => "",
            Some(2) => ".v2",
            Some(3..=4) => ".v4",
            Some(_) => ".v8",
        };
    }

    /// Operand `index` as repetition `rep` has it.
    pub(crate) fn operand(
        &mut self,
        inst: &MInst,
        index: usize,
        form: OperandForm,
        arg: Operand,
        rep: u16,
    ) {
        match (form, arg) {
            (
                OperandForm::VDef
                | OperandForm::VUse
                | OperandForm::Tied
                | OperandForm::Held
                | OperandForm::Kept,
                Operand::Regs(view),
            ) => {
                let each = view.count / inst.reps;
                let has_matrices = matches!(inst.modifier, Modifier::Matrices(..));
                let is_list =
                    each != 1 || has_matrices || inst.op.info().group == InstGroup::Matrix;
                self.out += if is_list { "{" } else { "" };
                for i in 0..each {
                    if i != 0 {
                        self.out += ", ";
                    }
                    self.unit(self.code.regs.unit(view, rep * each + i));
                }
                self.out += if is_list { "}" } else { "" };
            }
            (OperandForm::Coords, Operand::Regs(view)) => {
                self.out.push('{');
                for i in 0..view.count {
                    self.out += if i == 0 { "" } else { ", " };
                    self.unit(self.code.regs.unit(view, i));
                }
                self.out += "}]";
            }
            (OperandForm::Map, Operand::Regs(view)) => {
                self.out.push('[');
                self.unit(self.element(view, rep));
            }
            (_, Operand::Regs(view)) => self.unit(self.element(view, rep)),
            (_, Operand::Imm(bits)) => self.immediate(bits, inst.operand_type(index)),
            (OperandForm::Addr, Operand::Address(place)) => {
                self.out.push('[');
                match place {
                    Address::Register(view, offset) => {
                        self.unit(self.code.regs.unit(view, 0));
                        self.offset(offset);
                    }
                    Address::Shared(offset) => {
                        self.out += self.shared;
                        self.offset(offset);
                    }
                }
                self.out.push(']');
            }
            (_, Operand::Address(Address::Shared(offset))) => {
                self.out += self.shared;
                self.offset(offset);
            }
            (_, Operand::Address(Address::Register(view, _))) => {
                self.unit(self.code.regs.unit(view, 0))
            }
            (_, Operand::Special(reg)) => {
                self.out += match reg {
                    SpecialReg::Tid => "%tid.x",
                    SpecialReg::Lane => "%laneid",
                    SpecialReg::ProgramX => "%ctaid.x",
                    SpecialReg::ProgramY => "%ctaid.y",
                    SpecialReg::ProgramZ => "%ctaid.z",
                    SpecialReg::ProgramsX => "%nctaid.x",
                    SpecialReg::ProgramsY => "%nctaid.y",
                    SpecialReg::ProgramsZ => "%nctaid.z",
                    SpecialReg::SmId => "%smid",
                };
            }
            (_, Operand::Map(i)) => self.map(i),
            (_, Operand::Log) => self.out += device_print::SYMBOL,
            (_, Operand::Timer) => self.out += "%globaltimer",
            (_, Operand::Param(i)) => {
                self.out.push('[');
                self.param(i);
                self.out.push(']');
            }
        }
    }

    fn offset(&mut self, offset: i32) {
        if offset != 0 {
            self.out += if offset < 0 { "+-" } else { "+" };
            self.number(u64::from(offset.unsigned_abs()));
        }
    }

    /// A number as PTX writes it for a type: floats by their bits, large patterns of bits in hexadecimal.
    pub(crate) fn immediate(&mut self, bits: u64, ty: PtxType) {
        match ty {
            PtxType::F32 => {
                self.out += "0f";
                self.hex(bits, 8);
            }
            PtxType::F64 => {
                self.out += "0d";
                self.hex(bits, 16);
            }
            PtxType::S8 | PtxType::S16 | PtxType::S32 | PtxType::S64 => {
                let unused = 64 - ty.bits();
                let number = (bits << unused) as i64 >> unused;
                if number < 0 {
                    self.out.push('-');
                }
                self.number(number.unsigned_abs());
            }
            PtxType::U8 | PtxType::U16 | PtxType::U32 | PtxType::U64 => {
                self.number(bits & u64::MAX >> (64 - ty.bits()));
            }
            _ => {
                let bits = bits & u64::MAX >> (64 - ty.bits());
                if bits < 1000 {
                    self.number(bits);
                } else {
                    self.out += "0x";
                    self.hex(bits, bits.ilog2() / 4 + 1);
                }
            }
        }
    }

    fn hex(&mut self, bits: u64, digits: u32) {
        for i in (0..digits).rev() {
            let digit = (bits >> (4 * i) & 15) as u8;
            self.out.push(char::from(if digit < 10 {
                b'0' + digit
            } else {
                b'A' - 10 + digit
            }));
        }
    }

    /// A number in decimal.
    pub(crate) fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        for &digit in &digits[start..] {
            self.out.push(char::from(digit));
        }
    }

    /// The register that a unit has.
    pub(crate) fn unit(&mut self, unit: Unit) {
        let name = self.names[unit.as_u32() as usize];
        self.name(self.code.regs.class_of(unit), name);
    }

    /// Register `name` of a class.
    pub(crate) fn name(&mut self, class: RegClass, name: u32) {
        self.out += class.prefix();
        self.number(u64::from(name));
    }

    /// The label of a block.
    pub(crate) fn label(&mut self, index: usize) {
        self.out += "$L";
        self.number(index as u64);
    }

    /// A parameter of the kernel.
    pub(crate) fn param(&mut self, index: u32) {
        self.out += self.entry;
        self.out += "_param_";
        self.number(u64::from(index));
    }

    /// The name of the parameter that holds a tensor map.
    pub(crate) fn map(&mut self, index: u32) {
        self.out += self.entry;
        self.out += "_map_";
        self.number(u64::from(index));
    }
}
