//! Writes machine code as PTX text: pure ASCII, one instruction a line.
//!
//! Everything goes into one string; numbers are written digit by digit, and the mnemonic of an instruction that is
//! repeated for each register of a pack is copied from its first line.

use std::ops::Range;

use super::register_bound::RegisterBound;
use super::{Stats, params};
use crate::device_print;
use crate::ir::dfg::SourceLoc;
use crate::ir::function::ThreadFunction;
use crate::ir::map_recipe::{MAP_ALIGN, MAP_BYTES};
use crate::ir::types::{AddressSpace, Elem};
use crate::machine::function::{CodeBlock, Edge, MachineFunction, Terminator};
use crate::machine::inst::{InstGroup, MInst, Modifier, Operand, OperandForm, Ptx, PtxType};
use crate::machine::print::Printer;
use crate::machine::select::bits_type;
use crate::machine::select::memory::param_type;
use crate::regalloc::reg::RegClass;
use crate::regalloc::{Allocation, Move, MoveSource};
use crate::settings::{Options, PtxVersion, Target};

/// Least alignment of the shared memory's start in bytes; PTX vectors need no more.
const SHARED_ALIGN: u32 = 16;

/// The text of a kernel, the PTX version it needs, and its numbers.
pub(crate) fn write(
    func: &ThreadFunction,
    code: &MachineFunction,
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
    let text = Printer {
        out: String::with_capacity(1024 + 48 * code.insts.len()),
        code,
        names: &allocation.names,
        entry: &name,
        shared: if name == "smem" { "smem_" } else { "smem" },
    };
    let mut writer = Writer {
        text,
        code,
        allocation,
        n_labels: code.blocks.len(),
        line: SourceLoc::default(),
        wait: None,
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
    (writer.text.out, version, writer.stats)
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
    text: Printer<'a>,
    code: &'a MachineFunction,
    allocation: &'a Allocation,
    n_labels: usize,
    /// Line that `.loc` named last.
    line: SourceLoc,
    /// Where the last wait for products begins and ends in the text, and what it leaves under way.
    wait: Option<(Range<usize>, u64)>,
    stats: Stats,
    options: &'a Options,
}

impl Writer<'_> {
    fn header(&mut self, func: &ThreadFunction, target: Target, version: PtxVersion) {
        self.text.out += &format!(".version {version}\n.target {target}\n.address_size 64\n\n");
        if self.options.line_info {
            self.text.out += &format!(".file 1 \"{}\"\n\n", self.text.entry);
        }
        if !func.slots.is_empty() {
            let align = func
                .slots
                .values()
                .map(|s| s.align)
                .fold(SHARED_ALIGN, u32::max);
            self.text.out += &format!(
                ".extern .shared .align {align} .b8 {}[];\n\n",
                self.text.shared
            );
        }
        if self.code.insts.iter().any(|inst| inst.op == Ptx::LogAddr) {
            let (name, bytes) = (device_print::SYMBOL, device_print::BYTES);
            self.text.out += &format!(".visible .global .align 16 .b8 {name}[{bytes}];\n\n");
        }
        self.text.out += ".visible .entry ";
        self.text.out += self.text.entry;
        self.text.out.push('(');
        for (i, (&param, hints)) in (0..).zip(func.params().iter().zip(&func.param_hints)) {
            self.text.out += if i == 0 {
                "\n\t.param ."
            } else {
                ",\n\t.param ."
            };
            let elem = func.dfg.ty(param).elem;
            self.text.out += match param_type(elem) {
                PtxType::B16 => "u16",
                ty => ty.name(),
            };
            if let Elem::Ptr(_, AddressSpace::Global) = elem {
                self.text.out += " .ptr .global .align ";
                self.text.number(u64::from(hints.promised().max(1)));
            }
            self.text.out.push(' ');
            self.text.param(i);
        }
        for i in (0..).take(func.maps.len()) {
            let separator = if i == 0 && func.params().is_empty() {
                ""
            } else {
                ","
            };
            self.text.out += &format!("{separator}\n\t.param .align {MAP_ALIGN} .b8 ");
            self.text.map(i);
            self.text.out += &format!("[{MAP_BYTES}]");
        }
        self.text.out += &format!("\n)\n.reqntid {}, 1, 1\n", func.cta_threads());
        let bound = match self.options.max_registers {
            Some(most) => Some(RegisterBound::at_most(most, func)),
            None => {
                let Stats {
                    predicted_registers,
                    needed_registers,
                    ..
                } = self.stats;
                RegisterBound::of(func, target, predicted_registers, needed_registers)
            }
        };
        if let Some(bound) = bound {
            self.text.out += &format!("{bound}\n");
        }
        self.text.out += "{\n";
        for class in RegClass::ALL {
            let count = self.allocation.n_names[class.index()];
            if count != 0 {
                self.text.out += "\t.reg ";
                self.text.out += class.declaration();
                self.text.out.push(' ');
                self.text.out += class.prefix();
                self.text.out.push('<');
                self.text.number(u64::from(count));
                self.text.out += ">;\n";
            }
        }
        self.text.out.push('\n');
    }

    fn body(&mut self) {
        let code = self.code;
        let mut is_target = vec![false; code.blocks.len()];
        let mut has_products = vec![false; code.blocks.len()];
        for (i, block) in code.blocks.iter().enumerate() {
            for edge in block.end.edges() {
                is_target[edge.target] = true;
                let mut body = code.blocks.get(edge.target..=i).into_iter().flatten();
                has_products[edge.target] |= body.any(|block| self.multiplies(block));
            }
        }
        for (i, block) in code.blocks.iter().enumerate() {
            if is_target[i] {
                self.text.label(i);
                self.text.out += ":\n";
            }
            // ptxas 12.9 and 13.0 unroll a loop whose number of iterations they see, and drop all products of warpgroups but the first
            // where their sums are changed in between.
            if has_products[i] {
                self.text.out += "\t.pragma \"nounroll\";\n";
            }
            for inst in &code.insts[block.insts.clone()] {
                self.loc(inst.loc);
                self.inst(inst, code.args(inst));
            }
            self.loc(block.end_loc);
            self.end(i, &block.end);
        }
        self.text.out += "}\n";
    }

    /// Whether a block has products of warpgroups.
    fn multiplies(&self, block: &CodeBlock) -> bool {
        let mut insts = self.code.insts[block.insts.clone()].iter();
        insts.any(|inst| inst.op == Ptx::WgmmaCommit)
    }

    /// The end of block `index`; the next one is fallen into where that is possible.
    fn end(&mut self, index: usize, end: &Terminator) {
        let next = index + 1;
        let moves = &self.allocation.moves[index];
        match end {
            Terminator::Return => {
                self.text.out += "\tret;\n";
                self.stats.branches += 1;
            }
            Terminator::Jump(edge) => self.leave(edge, &moves[0], next),
            Terminator::Branch {
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
                self.text.out += if negated { "\t@!" } else { "\t@" };
                self.text.unit(*cond);
                self.text.out += " bra ";
                self.stats.branches += 1;
                let split = (!taken.1.is_empty()).then_some(self.n_labels);
                self.text.label(split.unwrap_or(taken.0.target));
                self.text.out += ";\n";
                match split {
                    None => self.leave(rest.0, rest.1, next),
                    Some(label) => {
                        self.n_labels += 1;
                        // Falling through is not possible: the other way's moves stand in between.
                        self.leave(rest.0, rest.1, usize::MAX);
                        self.text.label(label);
                        self.text.out += ":\n";
                        self.leave(taken.0, taken.1, next);
                    }
                }
            }
        }
    }

    fn moves(&mut self, moves: &[Move]) {
        for m in moves {
            self.text.out += "\tmov.";
            self.text.out += bits_type(m.class).name();
            self.text.out.push(' ');
            self.text.name(m.class, m.to);
            self.text.out += ", ";
            match m.source {
                MoveSource::Register(name) => self.text.name(m.class, name),
                MoveSource::Number(bits) => self.text.immediate(bits, bits_type(m.class)),
            }
            self.text.out += ";\n";
            self.stats.moves += 1;
        }
    }

    fn leave(&mut self, edge: &Edge, moves: &[Move], next: usize) {
        self.moves(moves);
        if edge.target != next {
            self.text.out += "\tbra ";
            self.text.label(edge.target);
            self.text.out += ";\n";
            self.stats.branches += 1;
        }
    }

    fn loc(&mut self, loc: SourceLoc) {
        if self.options.line_info
            && loc != self.line
            && let Some(line) = loc.0.expand()
        {
            self.line = loc;
            self.text.out += "\t.loc 1 ";
            self.text.number(u64::from(line.0));
            self.text.out += " ";
            self.text.number(u64::from(line.1.max(1)));
            self.text.out += "\n";
        }
    }

    fn inst(&mut self, inst: &MInst, args: &[Operand]) {
        if inst.op == Ptx::Undefined {
            return;
        }
        if let Modifier::Inline(text, _) = inst.modifier {
            self.text.inline(text, args);
            self.stats.moves += 1;
            return;
        }
        if let (Ptx::WgmmaWait, Some(Operand::Imm(left))) = (inst.op, args.first()) {
            self.replace_wait(*left);
        }
        let start = self.text.out.len();
        self.text.mnemonic(inst);
        let head = start..self.text.out.len();
        let mut n_written = 0;
        for rep in 0..inst.reps {
            if inst.op == Ptx::Mov && self.is_idle(args, rep) {
                continue;
            }
            if n_written != 0 {
                self.text.out.extend_from_within(head.clone());
            }
            n_written += 1;
            for (i, (&(form, _), &arg)) in inst.op.info().operands.iter().zip(args).enumerate() {
                if matches!(form, OperandForm::Held | OperandForm::Kept) {
                    continue;
                }
                self.text.out += if i == 0 { " " } else { ", " };
                self.text.operand(inst, i, form, arg, rep);
            }
            self.text.out += ";\n";
        }
        if n_written == 0 {
            self.text.out.truncate(start);
        }
        let count = match inst.op.info().group {
            InstGroup::Int => &mut self.stats.int,
            InstGroup::Float => &mut self.stats.float,
            InstGroup::Compare => &mut self.stats.compare,
            InstGroup::Convert => &mut self.stats.convert,
            InstGroup::Move | InstGroup::Foreign => &mut self.stats.moves,
            InstGroup::Param
            | InstGroup::Load
            | InstGroup::Store
            | InstGroup::Atomic
            | InstGroup::Reduce
            | InstGroup::Copy => &mut self.stats.memory,
            InstGroup::Exchange | InstGroup::Sync | InstGroup::Matrix => &mut self.stats.sync,
        };
        *count += n_written;
        if let (Ptx::WgmmaWait, Some(Operand::Imm(left))) = (inst.op, args.first()) {
            self.wait = Some((start..self.text.out.len(), *left));
        }
    }

    /// Takes a wait for products back that one for more of them would follow at once.
    fn replace_wait(&mut self, left: u64) {
        if let Some((text, before)) = self.wait.take()
            && text.end == self.text.out.len()
            && left <= before
        {
            self.text.out.truncate(text.start);
            self.stats.sync -= 1;
        }
    }

    /// Whether a copy's source and destination have one name.
    fn is_idle(&self, args: &[Operand], rep: u16) -> bool {
        match args {
            [Operand::Regs(to), Operand::Regs(from)] => {
                let name =
                    |view| self.allocation.names[self.text.element(view, rep).as_u32() as usize];
                name(*to) == name(*from)
            }
            _ => false,
        }
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
