//! Predicates that are needed again behind loads are made again there.
//!
//! ```text
//! setp p1, i1, n; @p1 ld x1, [..]            setp p1, i1, n; @p1 ld x1, [..]
//! ..                                         ..
//! setp p9, i9, n; @p9 ld x9, [..]      =>    setp p9, i9, n; @p9 ld x9, [..]
//! sub y1, x1, m; selp z1, y1, 0, p1          sub y1, x1, m; setp q1, i1, n; selp z1, y1, 0, q1
//! ```
//!
//! A thread has seven registers for predicates. Where more of them are live until what was loaded is there, ptxas keeps some in other
//! registers, or rather moves the uses up, so that the thread waits for a load before it issues the next one: the derivative of a layer
//! norm over one row of 41,000 numbers that no alignment is known of took 2.2 times as long as with all loads of an iteration
//! under way (ptxas 13.0, H200).
//!
//! This is done in loops, where such waits add up. What a predicate is made of is numbers that are there anyway, or that are made again
//! as well; of others a few may be kept for it. Each read and write is looked at a fixed number of times, and a predicate is made of a
//! bounded number of instructions.

use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::FxHashMap;

use super::accesses::{RegisterAccess, Reps, is_pure, reads_global, visit_registers};
use super::function::{MachineFunction, Terminator};
use super::inst::{InstGroup, MInst, Operand, OperandForm};
use super::schedule::widest;
use crate::regalloc::reg::{RegClass, Unit};

/// Predicates that a thread keeps without effort: one of seven is free for what is computed meanwhile.
const KEPT: i32 = 6;

/// Most instructions that a predicate is made of again.
const MOST: usize = 6;

/// Most 32-bit registers of a block that are kept longer so that predicates can be made of them.
const MOST_HELD: u32 = 4;

/// Instructions within which what was made again is used again.
const NEAR: usize = 8;

/// Makes predicates again, unless more 32-bit registers are live in a block than the `most` of a thread, as what is spilled is not
/// helped by more instructions; gives how many.
pub(crate) fn remake_predicates(code: &mut MachineFunction, most: u32) -> usize {
    let groups = code.regs.groups.values();
    let predicates = groups.filter(|group| group.class == RegClass::P);
    let count: i32 = predicates.map(|group| i32::from(group.count)).sum();
    if count <= KEPT || most < widest(code) {
        return 0;
    }
    let facts = Facts::new(code);
    let mut out = Vec::with_capacity(code.insts.len());
    let mut count = 0;
    let in_loops = in_loops(code);
    for (block, is_in_loop) in in_loops.into_iter().enumerate() {
        let start = out.len();
        match is_in_loop {
            true => count += Walk::new(code, &facts, block).run(&mut out),
            false => out.extend_from_slice(&code.insts[code.blocks[block].insts.clone()]),
        }
        code.blocks[block].insts = start..out.len();
    }
    code.insts = out;
    count
}

/// Which blocks stand between one that goes back and where it goes to.
fn in_loops(code: &MachineFunction) -> Vec<bool> {
    let mut found = vec![false; code.blocks.len()];
    for (at, block) in code.blocks.iter().enumerate() {
        for edge in block.end.edges().filter(|edge| edge.target <= at) {
            found[edge.target..=at].fill(true);
        }
    }
    found
}

/// What holds of registers over the whole program.
struct Facts {
    /// How many instructions write each.
    writes: SecondaryMap<Unit, u8>,
    /// Read in another block than the one that touches it first, or where a block ends.
    escapes: EntitySet<Unit>,
}

impl Facts {
    fn new(code: &MachineFunction) -> Facts {
        let mut facts = Facts {
            writes: SecondaryMap::new(),
            escapes: EntitySet::new(),
        };
        let mut homes: SecondaryMap<Unit, u32> = SecondaryMap::new();
        for (index, block) in (1..).zip(&code.blocks) {
            for inst in &code.insts[block.insts.clone()] {
                visit_registers(code, inst, Reps::all(inst), |unit, access| {
                    if access == RegisterAccess::Write {
                        facts.writes[unit] = facts.writes[unit].saturating_add(1);
                    }
                    if homes[unit] == 0 {
                        homes[unit] = index;
                    }
                    if homes[unit] != index {
                        facts.escapes.insert(unit);
                    }
                });
            }
            if let Terminator::Branch { cond, .. } = block.end {
                facts.escapes.insert(cond);
            }
            for edge in block.end.edges() {
                for arg in &code.edge_args[edge.args.clone()] {
                    if let Operand::Regs(view) = arg {
                        facts.escapes.extend(code.regs.units(*view));
                    }
                }
            }
        }
        facts
    }
}

/// The walk over a block.
struct Walk<'a> {
    code: &'a mut MachineFunction,
    facts: &'a Facts,
    insts: Vec<MInst>,
    /// Where the block writes a register that is written once.
    made_at: FxHashMap<Unit, usize>,
    /// Where it reads one last.
    last_read: FxHashMap<Unit, usize>,
    /// For each place the last one, up to it, with more predicates than are kept.
    last_full: Vec<Option<usize>>,
    /// What was loaded, and what was computed from it.
    loaded: EntitySet<Unit>,
    /// What was made again, and where.
    again: FxHashMap<Unit, (Unit, usize)>,
    /// Registers that are kept for it.
    held: Vec<Unit>,
}

impl<'a> Walk<'a> {
    fn new(code: &'a mut MachineFunction, facts: &'a Facts, block: usize) -> Walk<'a> {
        let insts = code.insts[code.blocks[block].insts.clone()].to_vec();
        let mut walk = Walk {
            code,
            facts,
            made_at: FxHashMap::default(),
            last_read: FxHashMap::default(),
            last_full: Vec::with_capacity(insts.len()),
            loaded: EntitySet::new(),
            again: FxHashMap::default(),
            held: Vec::new(),
            insts,
        };
        // By how many more predicates are live from a place on.
        let mut changes = vec![0; walk.insts.len() + 1];
        for (i, inst) in walk.insts.iter().enumerate() {
            visit_registers(
                walk.code,
                inst,
                Reps::all(inst),
                |unit, access| match access {
                    RegisterAccess::Read | RegisterAccess::FixedRead => {
                        walk.last_read.insert(unit, i);
                    }
                    RegisterAccess::Write if walk.facts.writes[unit] == 1 => {
                        walk.made_at.insert(unit, i);
                    }
                    _ => {}
                },
            );
        }
        let is_predicate = |unit: Unit| walk.code.regs.class_of(unit) == RegClass::P;
        for (&unit, &last) in &walk.last_read {
            if is_predicate(unit) && !walk.facts.escapes.contains(unit) {
                changes[walk.made_at.get(&unit).copied().unwrap_or(0)] += 1;
                changes[last] -= 1;
            }
        }
        let (mut live, mut last) = (0, None);
        for (i, change) in changes.iter().enumerate().take(walk.insts.len()) {
            live += change;
            if KEPT < live {
                last = Some(i);
            }
            walk.last_full.push(last);
        }
        walk
    }

    /// Writes the block down.
    fn run(&mut self, out: &mut Vec<MInst>) -> usize {
        let mut count = 0;
        for i in 0..self.insts.len() {
            let mut inst = self.insts[i];
            if self.reads_loaded(&inst) {
                count += self.renew(&mut inst, i, out);
            }
            if reads_global(&inst) || self.reads_loaded(&self.insts[i]) {
                let loaded = &mut self.loaded;
                visit_registers(self.code, &inst, Reps::all(&inst), |unit, access| {
                    if access == RegisterAccess::Write {
                        loaded.insert(unit);
                    }
                });
            }
            out.push(inst);
        }
        count
    }

    /// Whether an instruction needs what was loaded in this block.
    fn reads_loaded(&self, inst: &MInst) -> bool {
        let mut reads = false;
        visit_registers(self.code, inst, Reps::all(inst), |unit, access| {
            reads |= access != RegisterAccess::Write && self.loaded.contains(unit);
        });
        reads
    }

    /// Gives an instruction predicates that are made again; how many.
    fn renew(&mut self, inst: &mut MInst, i: usize, out: &mut Vec<MInst>) -> usize {
        let mut count = 0;
        if let Some(guard) = &mut inst.guard
            && let Some(again) = self.renewed(guard.pred, i, out)
        {
            guard.pred = again;
            count += 1;
        }
        let operands = inst.op.info().operands;
        for (at, &(form, _)) in operands.iter().enumerate() {
            let place = inst.first_arg as usize + at;
            let Operand::Regs(view) = self.code.args[place] else {
                continue;
            };
            let is_predicate = self.code.regs.class_of(self.code.regs.unit(view, 0)) == RegClass::P;
            if !is_predicate || form == OperandForm::Def || form.is_row() {
                continue;
            }
            let mut units: Vec<Unit> = self.code.regs.units(view).collect();
            if view.is_uniform() {
                units.truncate(1);
            }
            let before = count;
            for unit in &mut units {
                if let Some(again) = self.renewed(*unit, i, out) {
                    *unit = again;
                    count += 1;
                }
            }
            if before == count {
                continue;
            }
            let view = match self.code.regs.view_of(&units) {
                one if view.is_uniform() => one.repeat(view.count),
                all => all,
            };
            let first = self.code.args.len();
            for k in 0..operands.len() {
                self.code
                    .args
                    .push(self.code.args[inst.first_arg as usize + k]);
            }
            inst.first_arg = first as u32;
            self.code.args[first + at] = Operand::Regs(view);
        }
        count
    }

    /// The predicate made again for place `i`, if many are live in between.
    fn renewed(&mut self, unit: Unit, i: usize, out: &mut Vec<MInst>) -> Option<Unit> {
        let made = *self.made_at.get(&unit)?;
        self.last_full[i].filter(|&full| made < full)?;
        let (mut list, held) = (Vec::new(), self.held.len());
        let again = self.made_again(unit, i, &mut list);
        if again.is_none() {
            self.forget(&mut list, 0);
            self.held.truncate(held);
        }
        out.extend(list.into_iter().map(|(_, inst)| inst));
        again
    }

    /// Takes back what was made again since the list had so many instructions.
    fn forget(&mut self, list: &mut Vec<(Unit, MInst)>, len: usize) {
        for (unit, _) in list.drain(len..) {
            self.again.remove(&unit);
        }
    }

    /// What computes a register's value for place `i`, of numbers that are there; none if that takes too much. The list has instructions
    /// with the registers that they make again.
    fn made_again(&mut self, unit: Unit, i: usize, list: &mut Vec<(Unit, MInst)>) -> Option<Unit> {
        if let Some(&(again, at)) = self.again.get(&unit)
            && i <= at + NEAR
        {
            return Some(again);
        }
        let made = *self.made_at.get(&unit)?;
        let inst = self.insts[made];
        let is_simple = matches!(
            inst.op.info().group,
            InstGroup::Int | InstGroup::Compare | InstGroup::Convert | InstGroup::Move
        );
        if !is_simple || !is_pure(&inst) || inst.guard.is_some() || self.loaded.contains(unit) {
            return None;
        }
        let operands = inst.op.info().operands;
        let is_def = |&&(form, _): &&(OperandForm, _)| form == OperandForm::Def;
        if operands.iter().filter(is_def).count() != 1
            || !operands.first().is_some_and(|x| is_def(&x))
        {
            return None;
        }
        let mut args = Vec::with_capacity(operands.len());
        let mut rep = None;
        for (at, &(form, _)) in operands.iter().enumerate() {
            if form.is_row() {
                return None;
            }
            let arg = self.code.args[inst.first_arg as usize + at];
            args.push(match arg {
                Operand::Regs(view) if form == OperandForm::Def => {
                    rep = (0..view.count).find(|&k| self.code.regs.unit(view, k) == unit);
                    rep?;
                    arg
                }
                Operand::Regs(view) => {
                    let one = match view.is_uniform() {
                        true => 0,
                        false => rep?,
                    };
                    let source = self.code.regs.unit(view, one);
                    let source = self.there(source, i, list)?;
                    Operand::Regs(self.code.regs.view_of(&[source]))
                }
                Operand::Address(_) => return None,
                other => other,
            });
        }
        if MOST <= list.len() {
            return None;
        }
        let group = self.code.regs.make_group(self.code.regs.class_of(unit), 1);
        let whole = self.code.regs.whole(group);
        args[0] = Operand::Regs(whole);
        let first = self.code.args.len() as u32;
        self.code.args.append(&mut args);
        let inst = MInst {
            reps: 1,
            first_arg: first,
            ..inst
        };
        list.push((unit, inst));
        let again = self.code.regs.unit(whole, 0);
        self.again.insert(unit, (again, i));
        Some(again)
    }

    /// A register with a value at place `i`: itself if it is live there, or made again, or kept until then.
    fn there(&mut self, unit: Unit, i: usize, list: &mut Vec<(Unit, MInst)>) -> Option<Unit> {
        if 1 < self.facts.writes[unit] || self.loaded.contains(unit) {
            return None;
        }
        let is_outside = !self.made_at.contains_key(&unit);
        let is_read = self.last_read.get(&unit).is_some_and(|&last| i <= last);
        let class = self.code.regs.class_of(unit);
        let is_predicate = class == RegClass::P;
        if is_outside || self.facts.escapes.contains(unit) || is_read && !is_predicate {
            return Some(unit);
        }
        let before = list.len();
        if let Some(again) = self.made_again(unit, i, list) {
            return Some(again);
        }
        self.forget(list, before);
        if is_predicate {
            return None;
        }
        if !self.held.contains(&unit) {
            self.held.push(unit);
        }
        let words = |&unit: &Unit| self.code.regs.class_of(unit).words();
        let held: u32 = self.held.iter().map(words).sum();
        (held <= MOST_HELD).then_some(unit)
    }
}
