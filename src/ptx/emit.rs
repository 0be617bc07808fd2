//! Writes machine code as PTX text: pure ASCII, one instruction a line.
//!
//! Everything goes into one string; numbers are written digit by digit, and the mnemonic of an instruction that is
//! repeated for each register of a pack is copied from its first line.

use super::register_bound::RegisterBound;
use super::{Stats, params};
use crate::ir::attrs::{Cache, Evict, MemOrder, RedOp, RmwOp, Scope, SpecialReg};
use crate::ir::dfg::SourceLoc;
use crate::ir::function::ThreadFunction;
use crate::ir::inline;
use crate::ir::types::{AddressSpace, Elem};
use crate::isa::code::{Code, Edge, End};
use crate::isa::inst::{
    Access, Arg, Atomic, Form, InstGroup, MInst, Modifier, Place, Ptx, PtxType,
};
use crate::isa::lower::bits_type;
use crate::isa::lower::memory::param_type;
use crate::isa::reg::{RegClass, Unit};
use crate::log;
use crate::regalloc::{Allocation, Move, Source};
use crate::settings::{Options, PtxVersion, Target};

/// Least alignment of the shared memory's start in bytes; PTX vectors need no more.
const SHARED_ALIGN: u32 = 16;

/// The text of a kernel, the PTX version it needs, and its numbers.
pub(crate) fn write(
    func: &ThreadFunction,
    code: &Code,
    allocation: &Allocation,
    target: Target,
    options: &Options,
) -> (String, PtxVersion, Stats) {
    let version = code
        .insts
        .iter()
        .map(|inst| inst.op.info().version)
        .chain(params::version(func))
        .fold(target.min_ptx(), Ord::max);
    let name = legal_name(&func.name);
    let mut writer = Writer {
        out: String::with_capacity(1024 + 48 * code.insts.len()),
        code,
        allocation,
        shared: if name == "smem" { "smem_" } else { "smem" },
        name,
        n_labels: code.blocks.len(),
        line: SourceLoc::default(),
        stats: Stats {
            predicted_registers: allocation.predicted,
            needed_registers: allocation.needed,
            peak: allocation.peak,
            ..Stats::default()
        },
        options,
    };
    writer.header(func, target, version);
    writer.body();
    (writer.out, version, writer.stats)
}

/// A name that PTX takes as an identifier; legal names stay as they are.
fn legal_name(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut legal: String = name
        .chars()
        .map(|c| if is_word(c) { c } else { '_' })
        .collect();
    // An identifier starts with a letter, or with `_`, `$` or `%` and something behind.
    if !legal.starts_with(|c: char| c.is_ascii_alphabetic())
        && (legal.len() < 2 || legal.starts_with(|c: char| c.is_ascii_digit()))
    {
        legal.insert_str(0, "k_");
    }
    legal
}

struct Writer<'a> {
    out: String,
    code: &'a Code,
    allocation: &'a Allocation,
    name: String,
    /// Name of the shared memory.
    shared: &'static str,
    n_labels: usize,
    /// Line that `.loc` named last.
    line: SourceLoc,
    stats: Stats,
    options: &'a Options,
}

impl Writer<'_> {
    fn header(&mut self, func: &ThreadFunction, target: Target, version: PtxVersion) {
        self.out += &format!(".version {version}\n.target {target}\n.address_size 64\n\n");
        if self.options.line_info {
            self.out += &format!(".file 1 \"{}\"\n\n", self.name);
        }
        if !func.slots.is_empty() {
            let align = func
                .slots
                .values()
                .map(|s| s.align)
                .fold(SHARED_ALIGN, u32::max);
            self.out += &format!(".extern .shared .align {align} .b8 {}[];\n\n", self.shared);
        }
        if self.code.insts.iter().any(|inst| inst.op == Ptx::LogAddr) {
            let (name, bytes) = (log::SYMBOL, log::BYTES);
            self.out += &format!(".visible .global .align 16 .b8 {name}[{bytes}];\n\n");
        }
        self.out += ".visible .entry ";
        self.out += &self.name;
        self.out.push('(');
        for (i, (&param, hints)) in (0..).zip(func.params().iter().zip(&func.param_hints)) {
            self.out += if i == 0 {
                "\n\t.param ."
            } else {
                ",\n\t.param ."
            };
            let elem = func.dfg.ty(param).elem;
            self.out += match param_type(elem) {
                PtxType::B16 => "u16",
                ty => ty.name(),
            };
            if let Elem::Ptr(_, AddressSpace::Global) = elem {
                self.out += " .ptr .global .align ";
                self.number(u64::from(hints.divisible.max(1)));
            }
            self.out.push(' ');
            self.param(i);
        }
        self.out += &format!("\n)\n.reqntid {}, 1, 1\n", func.num_threads());
        let bound = match self.options.max_registers {
            Some(most) => Some(RegisterBound::at_most(most, func.num_threads())),
            None => RegisterBound::of(func, target, self.stats.predicted_registers),
        };
        if let Some(bound) = bound {
            self.out += &format!("{bound}\n");
        }
        self.out += "{\n";
        for class in RegClass::ALL {
            let count = self.allocation.n_names[class.index()];
            if count != 0 {
                self.out += "\t.reg ";
                self.out += class.declaration();
                self.out.push(' ');
                self.out += class.prefix();
                self.out.push('<');
                self.number(u64::from(count));
                self.out += ">;\n";
            }
        }
        self.out.push('\n');
    }

    fn body(&mut self) {
        let code = self.code;
        let mut is_target = vec![false; code.blocks.len()];
        for block in &code.blocks {
            for edge in block.end.edges() {
                is_target[edge.target] = true;
            }
        }
        for (i, block) in code.blocks.iter().enumerate() {
            if is_target[i] {
                self.label(i);
                self.out += ":\n";
            }
            for inst in &code.insts[block.insts.clone()] {
                self.loc(inst.loc);
                self.inst(inst, code.args(inst));
            }
            self.loc(block.end_loc);
            self.end(i, &block.end);
        }
        self.out += "}\n";
    }

    /// The end of block `index`; the next one is fallen into where that is possible.
    fn end(&mut self, index: usize, end: &End) {
        let next = index + 1;
        let moves = &self.allocation.moves[index];
        match end {
            End::Return => {
                self.out += "\tret;\n";
                self.stats.branches += 1;
            }
            End::Jump(edge) => self.leave(edge, &moves[0], next),
            End::Branch {
                cond,
                then,
                otherwise,
            } => {
                const NONE: &Vec<Move> = &Vec::new();
                let ahead = self.allocation.ahead[index];
                if let Some(way) = ahead {
                    self.moves(&moves[way]);
                }
                let after = |way: usize| {
                    if ahead == Some(way) {
                        NONE
                    } else {
                        &moves[way]
                    }
                };
                let (mut taken, mut rest, mut negated) =
                    ((then, after(0)), (otherwise, after(1)), false);
                // The way that needs moves or leads to the next block is the one not branched to.
                let falls = |way: (&Edge, &Vec<Move>)| way.0.target == next;
                if (taken.1.is_empty(), falls(rest)) != (true, true)
                    && (rest.1.is_empty(), falls(taken)) > (taken.1.is_empty(), falls(rest))
                {
                    (taken, rest, negated) = (rest, taken, true);
                }
                self.out += if negated { "\t@!" } else { "\t@" };
                self.unit(*cond);
                self.out += " bra ";
                self.stats.branches += 1;
                let split = (!taken.1.is_empty()).then_some(self.n_labels);
                self.label(split.unwrap_or(taken.0.target));
                self.out += ";\n";
                match split {
                    None => self.leave(rest.0, rest.1, next),
                    Some(label) => {
                        self.n_labels += 1;
                        // Falling through is not possible: the other way's moves stand in between.
                        self.leave(rest.0, rest.1, usize::MAX);
                        self.label(label);
                        self.out += ":\n";
                        self.leave(taken.0, taken.1, next);
                    }
                }
            }
        }
    }

    fn moves(&mut self, moves: &[Move]) {
        for m in moves {
            self.out += "\tmov.";
            self.out += bits_type(m.class).name();
            self.out.push(' ');
            self.name(m.class, m.to);
            self.out += ", ";
            match m.source {
                Source::Register(name) => self.name(m.class, name),
                Source::Number(bits) => self.immediate(bits, bits_type(m.class)),
            }
            self.out += ";\n";
            self.stats.moves += 1;
        }
    }

    fn leave(&mut self, edge: &Edge, moves: &[Move], next: usize) {
        self.moves(moves);
        if edge.target != next {
            self.out += "\tbra ";
            self.label(edge.target);
            self.out += ";\n";
            self.stats.branches += 1;
        }
    }

    fn loc(&mut self, loc: SourceLoc) {
        if self.options.line_info
            && loc != self.line
            && let Some(line) = loc.0.expand()
        {
            self.line = loc;
            self.out += "\t.loc 1 ";
            self.number(u64::from(line.0));
            self.out += " ";
            self.number(u64::from(line.1.max(1)));
            self.out += "\n";
        }
    }

    fn inst(&mut self, inst: &MInst, args: &[Arg]) {
        if let Modifier::Inline(text) = inst.modifier {
            return self.inline(text, args);
        }
        let start = self.out.len();
        self.mnemonic(inst);
        let head = start..self.out.len();
        let mut n_written = 0;
        for rep in 0..inst.reps {
            if inst.op == Ptx::Mov && self.is_idle(args, rep) {
                continue;
            }
            if n_written != 0 {
                self.out.extend_from_within(head.clone());
            }
            n_written += 1;
            for (i, (&(form, _), &arg)) in inst.op.info().operands.iter().zip(args).enumerate() {
                self.out += if i == 0 { " " } else { ", " };
                self.operand(inst, i, form, arg, rep);
            }
            self.out += ";\n";
        }
        if n_written == 0 {
            self.out.truncate(start);
        }
        let count = match inst.op.info().group {
            InstGroup::Int => &mut self.stats.int,
            InstGroup::Float => &mut self.stats.float,
            InstGroup::Compare => &mut self.stats.compare,
            InstGroup::Convert => &mut self.stats.convert,
            InstGroup::Move => &mut self.stats.moves,
            InstGroup::Memory => &mut self.stats.memory,
            InstGroup::Sync | InstGroup::Matrix => &mut self.stats.sync,
        };
        *count += n_written;
    }

    /// The author's lines in a scope of their own.
    fn inline(&mut self, text: u32, args: &[Arg]) {
        let code = self.code;
        let views = args.iter().filter_map(|arg| match arg {
            Arg::Regs(view) => Some(*view),
            _ => None,
        });
        let units: Vec<Unit> = views.flat_map(|view| code.regs.units(view)).collect();
        let template = code.texts.get(text as usize).map_or("", |text| text.trim());
        self.out += "\t{\n\t";
        // Verified: every number names a register.
        for piece in inline::pieces(template, units.len()).unwrap_or_default() {
            match piece {
                inline::Piece::Text(text) => self.out += text,
                inline::Piece::Register(number) => self.unit(units[number]),
            }
        }
        self.out += "\n\t}\n";
        self.stats.moves += 1;
    }

    /// Whether a copy's source and destination have one name.
    fn is_idle(&self, args: &[Arg], rep: u16) -> bool {
        match args {
            [Arg::Regs(to), Arg::Regs(from)] => {
                let name = |view| self.allocation.names[self.element(view, rep).as_u32() as usize];
                name(*to) == name(*from)
            }
            _ => false,
        }
    }

    /// The unit that repetition `rep` reads or writes.
    fn element(&self, view: crate::isa::reg::View, rep: u16) -> Unit {
        self.code
            .regs
            .unit(view, if view.count == 1 { 0 } else { rep })
    }

    fn mnemonic(&mut self, inst: &MInst) {
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
            Modifier::Turned([left, right]) => {
                self.out += if left { ".col" } else { ".row" };
                self.out += if right { ".row" } else { ".col" };
            }
            Modifier::Copy(past_l1) => self.out += if past_l1 { ".cg" } else { ".ca" },
            // Written as a whole.
            Modifier::Inline(_) => {}
        }
    }

    fn access(&mut self, access: Access) {
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
            (Form::VDef | Form::VUse, Arg::Regs(view)) => Some(view.count),
            _ => None,
        });
        self.out += match vector {
            None | Some(1) => "",
            Some(2) => ".v2",
            Some(3..=4) => ".v4",
            Some(_) => ".v8",
        };
    }

    fn operand(&mut self, inst: &MInst, index: usize, form: Form, arg: Arg, rep: u16) {
        match (form, arg) {
            (Form::VDef | Form::VUse, Arg::Regs(view)) => {
                let each = view.count / inst.reps;
                let is_list = each != 1 || inst.op.info().group == InstGroup::Matrix;
                self.out += if is_list { "{" } else { "" };
                for i in 0..each {
                    if i != 0 {
                        self.out += ", ";
                    }
                    self.unit(self.code.regs.unit(view, rep * each + i));
                }
                self.out += if is_list { "}" } else { "" };
            }
            (_, Arg::Regs(view)) => self.unit(self.element(view, rep)),
            (_, Arg::Imm(bits)) => self.immediate(bits, inst.operand_type(index)),
            (Form::Addr, Arg::Place(place)) => {
                self.out.push('[');
                match place {
                    Place::Register(view, offset) => {
                        self.unit(self.code.regs.unit(view, 0));
                        self.offset(offset);
                    }
                    Place::Shared(offset) => {
                        self.out += self.shared;
                        self.offset(offset);
                    }
                }
                self.out.push(']');
            }
            (_, Arg::Place(Place::Shared(offset))) => {
                self.out += self.shared;
                self.offset(offset);
            }
            (_, Arg::Place(Place::Register(view, _))) => self.unit(self.code.regs.unit(view, 0)),
            (_, Arg::Special(reg)) => {
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
            (_, Arg::Log) => self.out += log::SYMBOL,
            (_, Arg::Timer) => self.out += "%globaltimer",
            (_, Arg::Param(i)) => {
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
    fn immediate(&mut self, bits: u64, ty: PtxType) {
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

    fn number(&mut self, number: u64) {
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

    fn unit(&mut self, unit: Unit) {
        let name = self.allocation.names[unit.as_u32() as usize];
        self.name(self.code.regs.class_of(unit), name);
    }

    fn name(&mut self, class: RegClass, name: u32) {
        self.out += class.prefix();
        self.number(u64::from(name));
    }

    fn label(&mut self, index: usize) {
        self.out += "$L";
        self.number(index as u64);
    }

    fn param(&mut self, index: u32) {
        let start = self.out.len();
        self.out += &self.name;
        debug_assert!(start < self.out.len());
        self.out += "_param_";
        self.number(u64::from(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_legal_and_legal_ones_stay() {
        for (name, legal) in [
            ("add_kernel", "add_kernel"),
            ("_k", "_k"),
            ("a b", "a_b"),
            ("7up", "k_7up"),
            ("_", "k__"),
            ("", "k_"),
            ("k\u{e4}se", "k_se"),
        ] {
            assert_eq!(legal_name(name), legal);
        }
    }
}
