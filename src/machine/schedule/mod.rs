//! Orders instructions by consumer, so that few values live at once.
//!
//! Selection writes an operation over packs element after element, operation after operation: a chain of operations on
//! 64 elements holds 64 or 128 values at every step. Where more is live than [`NARROW`], the repetitions are taken apart,
//! into as many as [`PARTS`] parts, and each block is walked once:
//!
//! - **Roots** stay in their order: accesses to memory, barriers, lines of the author that are not pure, and what is guarded or
//!   writes a register that is written elsewhere too. So loads stay as early as they were. Reads of shared memory are no roots,
//!   as their latency is short: they wait until their value is needed, or until a root comes that may write there or order
//!   accesses to it. Where that would read [`MANY`] registers at once, what is computed from them comes before such a root as
//!   well, in the old order: the sums of products without a unit of matrices.
//! - Where a block has more live than a thread has registers, and it helps, loads from other memory are no roots either: they wait for
//!   their use, or for a root that may write there. What is computed from them then comes before that root value by value, if it is no
//!   more than what was loaded, and before the block ends likewise. With a mask a load takes along what fills its registers where
//!   nothing is loaded. (An H200: the derivative of a layer norm over 8 x 2048 numbers on 16 warps 97 us, 73; on 4 warps 210,
//!   152. Of what needs more than twice the registers, attorch's norm over batches on one warp, 68 us became 72.)
//! - Everything else is put off until a root needs it, which evaluates what it needs depth first just before. A sum over
//!   many elements that are needed later as well is a tree that holds the logarithm of its leaves; a store of four
//!   elements takes four through the whole chain. What no root needs is needed by other blocks and stands at the end.
//!
//! Parts that still follow each other become one instruction again. Packs whose registers are no longer written and read
//! together fall apart into registers of their own, so that each is free when its own value ends.
//!
//! Instructions only move down, within their block, and a register that is written again is read in its old place; so no
//! value changes. ptxas orders anew, but starts from here, so that the number of registers it takes can be foretold.
//!
//! What is made from nothing is made again after a stretch of high pressure (`rematerialize`).
//!
//! Each read and write is looked at a fixed number of times; the order depends on the program alone.

mod rematerialize;

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::machine::accesses::{
    RegisterAccess, Reps, is_pure, orders_global, orders_shared, reads_global, reads_shared,
    visit_registers,
};
use crate::machine::function::{MachineFunction, Terminator};
use crate::machine::inst::{MInst, Operand, Ptx};
use crate::regalloc::reg::{Group, RegClass, Unit};
use crate::settings::diversity::Choices;

/// What needs no more 32-bit registers than this is left as it is: ptxas takes about as many to hide latencies.
const NARROW: u32 = 32;

/// 32-bit registers that are live where values are rather made again than kept.
const HIGH_PRESSURE: i32 = 24;

/// Instructions after which they are made again, if the pressure was high meanwhile.
const LONG: u32 = 32;

/// Parts that the repetitions of an instruction fall into, at most.
const PARTS: u16 = 8;

/// 32-bit registers that are read from shared memory before it changes which are too many to wait for their uses.
const MANY: u32 = 64;

/// 32-bit registers that are live at a barrier of the warp from which on what was loaded counts there, as no bound of registers is to make it
/// spill (a state of 128 registers and what replaces it: 154 us with a bound of 187 on an H200, 51 without). The assembler orders smaller
/// code as if there were no barrier.
const HELD: i32 = 160;

/// Times a thread's registers up to which it is worth it that loads wait: what needs even more is spilled anyway.
const MOST_WIDE: u32 = 2;

/// Stands for no item, no instruction and no block.
const NONE: u32 = u32::MAX;

/// An instruction or some of its repetitions.
#[derive(Clone, Copy)]
struct Item {
    inst: u32,
    /// Which repetitions.
    reps: Reps,
    /// Where what it reads and writes ends in the list of all; it begins where that of the item before ends.
    end: u32,
    /// Whether it has been written down.
    done: bool,
}

/// What is known of a register.
#[derive(Clone, Copy)]
struct Known {
    /// The item that writes it, of those reached.
    writer: u32,
    /// Reads not yet written down.
    reads_left: u32,
    /// The last instruction of the program that writes it.
    last_write: u32,
    /// The block that touches it first.
    block: u32,
    /// When it was written or read last, in instructions written down.
    touched: u32,
    /// What stands for it since it was made again.
    instead: Option<Unit>,
    /// Written more than once.
    rewritten: bool,
    fill: Fill,
    /// The item that fills it, of those reached, where a load under a mask follows.
    filler: u32,
    /// Needed beyond its block.
    escapes: bool,
    /// Read in places where nothing can stand for it.
    fixed: bool,
    words: i8,
}

/// How far a register is on the way to be one that is filled and then loaded under a mask, all in one block, before it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Untouched,
    Filled,
    Loaded,
    Other,
}

impl Known {
    /// 32-bit registers that become live where `inst` writes it.
    fn born(&self, inst: u32) -> i32 {
        // What is written twice is live since the first time.
        match self.rewritten && self.last_write == inst {
            true => 0,
            false => i32::from(self.words),
        }
    }
}

/// Most 32-bit registers live within each block, those apart that only other blocks read.
fn widths(code: &MachineFunction) -> Vec<u32> {
    let n_units = code.regs.num_units();
    let mut words = vec![0_u8; n_units];
    for group in code.regs.groups.values() {
        let first = group.first.as_u32() as usize;
        words[first..first + usize::from(group.count)].fill(group.class.words() as u8);
    }
    let mut is_live = vec![false; n_units];
    let mut widths = vec![0; code.blocks.len()];
    for (block, width) in code.blocks.iter().zip(&mut widths).rev() {
        let mut live = 0;
        for inst in code.insts[block.insts.clone()].iter().rev() {
            visit_registers(code, inst, Reps::all(inst), |unit, access| {
                let unit = unit.as_u32() as usize;
                match access {
                    RegisterAccess::Write
                        if is_live[unit] && inst.guard.is_none() && !inst.is_tied() =>
                    {
                        is_live[unit] = false;
                        live -= u32::from(words[unit]);
                    }
                    RegisterAccess::Read | RegisterAccess::FixedRead if !is_live[unit] => {
                        is_live[unit] = true;
                        live += u32::from(words[unit]);
                    }
                    _ => {}
                }
            });
            *width = live.max(*width);
        }
        // What is left comes from other blocks.
        if live != 0 {
            is_live.fill(false);
        }
    }
    widths
}

/// Most 32-bit registers live within a block.
pub(crate) fn widest(code: &MachineFunction) -> u32 {
    widths(code).into_iter().max().unwrap_or(0)
}

/// Bounds that other choices change.
#[derive(Clone, Copy)]
struct Bounds {
    parts: u16,
    high: i32,
    long: u32,
    /// In how many of 100 cases what could be put off stays where it is.
    early: usize,
}

impl Bounds {
    fn new(choices: &mut Choices, is_diverse: bool) -> Bounds {
        if !is_diverse {
            return Bounds {
                parts: PARTS,
                high: HIGH_PRESSURE,
                long: LONG,
                early: 0,
            };
        }
        Bounds {
            parts: 1 + choices.below(usize::from(PARTS)) as u16,
            high: [0, 8, HIGH_PRESSURE][choices.below(3)],
            long: [0, 4, LONG][choices.below(3)],
            early: [0, 20, 60][choices.below(3)],
        }
    }
}

/// Orders the instructions of all blocks, if much is live in one of them. By other `choices` some kernels stay as they are, or
/// are ordered though little is live, in any order that keeps to the rules. A thread has `most` registers.
pub(crate) fn schedule(code: &mut MachineFunction, most: u32, mut choices: Choices) {
    let is_diverse = choices.chance(70);
    if is_diverse && choices.chance(20) {
        return;
    }
    let widths = widths(code);
    let width = widths.iter().copied().max().unwrap_or(0);
    // What can be computed while warpgroups multiply would move behind the wait, to where it is needed, and what is read of the registers
    // that a product reads would move to where it has them.
    if code.insts.iter().any(MInst::is_tied) {
        code.params = warps_own(code);
        return;
    }
    if width <= NARROW && !is_diverse {
        return;
    }
    code.width = Some(width);
    let bounds = Bounds::new(&mut choices, is_diverse);
    if is_diverse {
        let waits: Vec<bool> = widths.iter().map(|_| choices.chance(30)).collect();
        return order(code, bounds, choices, &waits);
    }
    let unordered = (most < width).then(|| code.clone());
    order(code, bounds, Choices::none(), &vec![false; widths.len()]);
    let Some(mut waiting) = unordered else {
        return;
    };
    let widths = self::widths(code);
    let widest = widths.iter().copied().max().unwrap_or(0);
    let waits: Vec<bool> = widths.iter().map(|&width| most < width).collect();
    if !waits.contains(&true) {
        return;
    }
    order(&mut waiting, bounds, Choices::none(), &waits);
    let now = self::widest(&waiting);
    if now <= MOST_WIDE * most && 8 * now <= 7 * widest {
        *code = waiting;
    }
}

/// Orders the instructions of all blocks; `waits` says in which loads wait for their use.
fn order(code: &mut MachineFunction, bounds: Bounds, choices: Choices, waits: &[bool]) {
    let mut order = Scheduler::new(code, bounds, choices);
    let mut first = 0;
    for (block, &waits) in waits.iter().enumerate() {
        let start = order.out.len();
        let insts = code.blocks[block].insts.end as u32;
        let behind = order.items[first..].partition_point(|item| item.inst < insts);
        order.loads_wait = waits;
        order.block(code, first as u32..(first + behind) as u32);
        first += behind;
        code.blocks[block].insts = start..order.out.len();
    }
    code.insts = order.out;
    // The set counts up to its largest group.
    for group in order.torn.keys().filter(|&g| order.torn.contains(g)) {
        code.regs.dissolve(group);
    }
}

/// What hardly takes registers of threads where warpgroups multiply: parameters, and descriptors, which are the same for the
/// whole warp and stand in registers of its own.
fn warps_own(code: &MachineFunction) -> EntitySet<Unit> {
    let mut own = EntitySet::new();
    for inst in &code.insts {
        let is_param = inst.op == Ptx::LdParam;
        visit_registers(code, inst, Reps::all(inst), |unit, access| {
            let is_descriptor = inst.is_tied()
                && access != RegisterAccess::Write
                && code.regs.class_of(unit) == RegClass::D;
            if is_descriptor || is_param && access == RegisterAccess::Write {
                own.insert(unit);
            }
        });
    }
    own
}

/// Makes an instruction some of its repetitions.
fn take(code: &mut MachineFunction, inst: &mut MInst, reps: Reps) {
    let first = code.args.len() as u32;
    let n_args = inst.op.info().operands.len();
    code.args.resize(code.args.len() + n_args, Operand::Imm(0));
    parts(code, inst, first, reps);
    (inst.first_arg, inst.reps) = (first, reps.count);
}

/// Writes the operands of some repetitions of an instruction into the list from `to` on.
fn parts(code: &mut MachineFunction, inst: &MInst, to: u32, Reps { start, count }: Reps) {
    for (i, &(form, _)) in inst.op.info().operands.iter().enumerate() {
        let arg = match code.args[inst.first_arg as usize + i] {
            Operand::Regs(view) => Operand::Regs(match form {
                form if form.is_row() => {
                    let each = view.count / inst.reps;
                    view.part(start * each, count * each)
                }
                _ if view.is_uniform() => view.part(0, 1),
                _ => view.part(start, count),
            }),
            other => other,
        };
        code.args[to as usize + i] = arg;
    }
}

/// Repetitions of an instruction, written down one after the other.
#[derive(Default)]
struct Run {
    inst: u32,
    reps: Reps,
    /// Whether these are not all of them.
    is_split: bool,
    /// Whether the next ones can join.
    open: bool,
}

/// State of the walk.
struct Scheduler {
    known: Vec<Known>,
    items: Vec<Item>,
    /// What the items read and write.
    touches: Vec<(Unit, RegisterAccess)>,
    /// Items to be written down: each before those below it.
    stack: Vec<u32>,
    out: Vec<MInst>,
    /// What was written down last.
    run: Run,
    /// Groups of which parts are written or read alone.
    torn: EntitySet<Group>,
    /// Words live after what was written down.
    live: i32,
    /// When the pressure was high last.
    last_high: u32,
    /// Whether loads wait for their use in this block.
    loads_wait: bool,
    /// What was loaded to be read once.
    loaded: Vec<Unit>,
    bounds: Bounds,
    choices: Choices,
}

impl Scheduler {
    /// Makes the items, and notes what holds of registers over the whole program.
    fn new(code: &MachineFunction, bounds: Bounds, choices: Choices) -> Scheduler {
        let unknown = Known {
            writer: NONE,
            reads_left: 0,
            last_write: NONE,
            block: NONE,
            touched: 0,
            instead: None,
            rewritten: false,
            fill: Fill::Untouched,
            filler: NONE,
            escapes: false,
            fixed: false,
            words: 0,
        };
        let mut order = Scheduler {
            known: vec![unknown; code.regs.num_units()],
            items: Vec::with_capacity(2 * code.insts.len()),
            touches: Vec::with_capacity(6 * code.insts.len()),
            stack: Vec::new(),
            out: Vec::with_capacity(2 * code.insts.len()),
            run: Run::default(),
            torn: EntitySet::new(),
            live: 0,
            last_high: 0,
            loads_wait: false,
            loaded: Vec::new(),
            bounds,
            choices,
        };
        for group in code.regs.groups.values() {
            let first = group.first.as_u32() as usize;
            for unit in &mut order.known[first..first + usize::from(group.count)] {
                unit.words = group.class.words() as i8;
            }
        }
        for (index, block) in (0..).zip(&code.blocks) {
            let known = |unit: Unit| unit.as_u32() as usize;
            for &param in &block.params {
                for unit in code.regs.units(param) {
                    order.known[known(unit)].escapes = true;
                }
            }
            for i in block.insts.clone() {
                let inst = &code.insts[i];
                let step = match is_pure(inst) && inst.guard.is_none() {
                    true => inst.reps.div_ceil(bounds.parts),
                    false => inst.reps,
                };
                for start in (0..inst.reps.max(1)).step_by(usize::from(step.max(1))) {
                    let count = step.min(inst.reps - start);
                    order.item(code, i, Reps { start, count }, index);
                }
            }
            let mut escape = |unit: Unit| {
                let unit = &mut order.known[known(unit)];
                (unit.escapes, unit.fixed) = (true, true);
            };
            if let Terminator::Branch { cond, .. } = block.end {
                escape(cond);
            }
            for edge in block.end.edges() {
                for arg in &code.edge_args[edge.args.clone()] {
                    if let Operand::Regs(view) = arg {
                        code.regs.units(*view).for_each(&mut escape);
                    }
                }
            }
        }
        order
    }

    /// Makes an item.
    fn item(&mut self, code: &MachineFunction, inst: usize, reps: Reps, block: u32) {
        let (known, touches) = (&mut self.known, &mut self.touches);
        let data = &code.insts[inst];
        let fills = is_pure(data) && data.guard.is_none();
        let loads = reads_global(data) && data.guard.is_some();
        visit_registers(code, data, reps, |unit, access| {
            touches.push((unit, access));
            let unit = &mut known[unit.as_u32() as usize];
            if unit.block == NONE {
                unit.block = block;
            }
            unit.escapes |= unit.block != block;
            unit.fixed |= matches!(access, RegisterAccess::FixedRead | RegisterAccess::Keep);
            match access {
                RegisterAccess::Keep => {}
                RegisterAccess::Write => {
                    unit.rewritten |= unit.last_write != NONE;
                    unit.last_write = inst as u32;
                    unit.fill = match unit.fill {
                        Fill::Untouched if fills => Fill::Filled,
                        Fill::Filled if loads && unit.block == block => Fill::Loaded,
                        _ => Fill::Other,
                    };
                }
                RegisterAccess::Read | RegisterAccess::FixedRead => {
                    unit.reads_left += 1;
                    if unit.fill != Fill::Loaded {
                        unit.fill = Fill::Other;
                    }
                }
            }
        });
        self.items.push(Item {
            inst: inst as u32,
            reps,
            end: self.touches.len() as u32,
            done: false,
        });
    }

    /// What an item reads and writes.
    fn touches(&self, k: u32) -> std::ops::Range<usize> {
        let start = k
            .checked_sub(1)
            .map_or(0, |before| self.items[before as usize].end);
        start as usize..self.items[k as usize].end as usize
    }

    /// Orders a block with these items.
    fn block(&mut self, code: &mut MachineFunction, items: std::ops::Range<u32>) {
        self.loaded.clear();
        let mut waiting = Vec::new();
        let mut loads = Vec::new();
        for k in items.clone() {
            let inst = code.insts[self.items[k as usize].inst as usize];
            if !self.is_root(code, k) {
                waiting.extend(reads_shared(&inst).then_some(k));
                loads.extend(reads_global(&inst).then_some(k));
                if self.choices.chance(self.bounds.early) {
                    self.evaluate(code, k);
                }
                continue;
            }
            if orders_shared(&inst) {
                if MANY <= self.words(&waiting) {
                    self.consume(code, &waiting, k);
                }
                for read in waiting.drain(..) {
                    self.evaluate(code, read);
                }
            }
            if orders_global(&inst) {
                self.reduce(code, &loads, k);
                for load in loads.drain(..) {
                    self.evaluate(code, load);
                }
            }
            self.evaluate(code, k);
        }
        self.reduce(code, &loads, items.end);
        for k in items {
            self.evaluate(code, k);
        }
        self.end_run(code);
    }

    /// The 32-bit registers that items write.
    fn words(&self, items: &[u32]) -> u32 {
        let touches = items.iter().flat_map(|&k| &self.touches[self.touches(k)]);
        let writes = touches.filter(|&&(_, access)| access == RegisterAccess::Write);
        let words = writes.map(|&(unit, _)| self.known[unit.as_u32() as usize].words as u32);
        words.sum()
    }

    /// Writes down what is computed before item `end` from what is read, in the old order.
    fn consume(&mut self, code: &mut MachineFunction, reads: &[u32], end: u32) {
        for k in self.consumers(reads, end) {
            self.evaluate(code, k);
        }
    }

    /// Writes down what is computed before item `end` from what is loaded, value by value as it is needed behind it, unless that is
    /// more than what is loaded.
    fn reduce(&mut self, code: &mut MachineFunction, loads: &[u32], end: u32) {
        let consumers = self.consumers(loads, end);
        let mut reads: FxHashMap<Unit, u32> = FxHashMap::default();
        for &k in &consumers {
            for &(unit, access) in &self.touches[self.touches(k)] {
                if matches!(access, RegisterAccess::Read | RegisterAccess::FixedRead) {
                    *reads.entry(unit).or_default() += 1;
                }
            }
        }
        let is_needed = |&k: &u32| {
            self.touches[self.touches(k)].iter().any(|(unit, access)| {
                let known = &self.known[unit.as_u32() as usize];
                let within = reads.get(unit).copied().unwrap_or(0);
                *access == RegisterAccess::Write && (known.escapes || within < known.reads_left)
            })
        };
        let needed: Vec<u32> = consumers.iter().copied().filter(is_needed).collect();
        if self.words(&needed) <= self.words(loads) {
            for k in needed {
                self.evaluate(code, k);
            }
        }
    }

    /// What is computed before item `end` from what these items read, and is not written down.
    fn consumers(&self, reads: &[u32], end: u32) -> Vec<u32> {
        let Some(&first) = reads.first() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut is_made = EntitySet::new();
        let mut next = 0;
        for k in first..end {
            let is_read = reads.get(next) == Some(&k);
            next += usize::from(is_read);
            let touches = &self.touches[self.touches(k)];
            let is_consumer = touches.iter().any(|&(unit, access)| {
                matches!(access, RegisterAccess::Read | RegisterAccess::FixedRead)
                    && is_made.contains(unit)
            });
            if is_read || is_consumer {
                let writes = touches
                    .iter()
                    .filter(|(_, access)| *access == RegisterAccess::Write);
                is_made.extend(writes.map(|&(unit, _)| unit));
            }
            if is_consumer && !self.items[k as usize].done {
                found.push(k);
            }
        }
        found
    }

    /// Whether an item stays where it is.
    fn is_root(&mut self, code: &MachineFunction, k: u32) -> bool {
        let item = self.items[k as usize];
        let inst = &code.insts[item.inst as usize];
        let waits = self.loads_wait && reads_global(inst);
        let mut is_root =
            !waits && (!(is_pure(inst) || reads_shared(inst)) || inst.guard.is_some());
        for &(unit, access) in &self.touches[self.touches(k)] {
            let known = &mut self.known[unit.as_u32() as usize];
            match access {
                RegisterAccess::Keep => {}
                RegisterAccess::Write if self.loads_wait && known.fill == Fill::Loaded => {
                    (known.filler, known.writer) = (known.writer, k);
                }
                RegisterAccess::Write => {
                    known.writer = k;
                    is_root |= known.rewritten;
                }
                RegisterAccess::Read | RegisterAccess::FixedRead => {
                    // Read before it is written for the last time, perhaps in a loop.
                    is_root |= known.rewritten && item.inst <= known.last_write;
                }
            }
        }
        is_root
    }

    /// Writes an item down, after what it needs.
    fn evaluate(&mut self, code: &mut MachineFunction, k: u32) {
        self.stack.push(k);
        while let Some(&k) = self.stack.last() {
            if self.items[k as usize].done {
                self.stack.pop();
                continue;
            }
            let first = self.stack.len();
            let (known, items, stack) = (&self.known, &self.items, &mut self.stack);
            let start = k
                .checked_sub(1)
                .map_or(0, |before| items[before as usize].end);
            let touches = start as usize..items[k as usize].end as usize;
            for &(unit, access) in &self.touches[touches] {
                let known = known[unit.as_u32() as usize];
                let writer = match access {
                    RegisterAccess::Read | RegisterAccess::FixedRead => known.writer,
                    RegisterAccess::Keep => known.filler,
                    RegisterAccess::Write => NONE,
                };
                if writer < k && !items[writer as usize].done {
                    stack.push(writer);
                }
            }
            match self.stack.len() - first {
                0 => {
                    self.stack.pop();
                    self.write(code, k);
                }
                1 => {}
                // What stood first goes first.
                _ => {
                    self.stack[first..].sort_unstable_by(|a, b| b.cmp(a));
                    self.choices.shuffle(&mut self.stack[first..]);
                }
            }
        }
    }

    fn write(&mut self, code: &mut MachineFunction, k: u32) {
        self.items[k as usize].done = true;
        let item = self.items[k as usize];
        let mut inst = code.insts[item.inst as usize];
        let is_split = item.reps.count != inst.reps;
        if is_split {
            take(code, &mut inst, item.reps);
        }
        let is_whole = !self.rematerialize(code, &mut inst);
        let now = self.out.len() as u32;
        let is_param = inst.op == Ptx::LdParam;
        let is_load = matches!(inst.op, Ptx::Ld | Ptx::LdEvict | Ptx::LdWide);
        let reads_half = |&(unit, access): &(Unit, RegisterAccess)| {
            access != RegisterAccess::Write && code.regs.class_of(unit) == RegClass::H
        };
        // What is not read by now cannot wait any longer, where that is much.
        if inst.op == Ptx::WarpBarrier && HELD <= self.live {
            for unit in self.loaded.drain(..) {
                if self.known[unit.as_u32() as usize].reads_left > 0 {
                    code.loaded_once.remove(unit);
                }
            }
        }
        let is_widening =
            inst.op == Ptx::Cvt && self.touches[self.touches(k)].iter().any(reads_half);
        for &(unit, access) in &self.touches[self.touches(k)] {
            let known = &mut self.known[unit.as_u32() as usize];
            known.touched = now;
            match access {
                RegisterAccess::Keep => {}
                RegisterAccess::Write => {
                    self.live += known.born(item.inst);
                    if is_param {
                        code.params.insert(unit);
                    } else if is_load && known.reads_left == 1 && !known.escapes {
                        code.loaded_once.insert(unit);
                        self.loaded.push(unit);
                    } else if is_widening && code.regs.class_of(unit) == RegClass::W {
                        code.widened.insert(unit);
                    }
                }
                RegisterAccess::Read | RegisterAccess::FixedRead => {
                    known.reads_left -= 1;
                    if known.reads_left == 0 && !known.escapes {
                        self.live -= i32::from(known.words);
                    }
                }
            }
        }
        if self.bounds.high <= self.live {
            self.last_high = now;
        }
        let run = &mut self.run;
        let next = (run.inst, run.reps.start + run.reps.count);
        if is_whole && run.open && next == (item.inst, item.reps.start) {
            run.reps.count += item.reps.count;
            code.args.truncate(inst.first_arg as usize);
            return;
        }
        self.end_run(code);
        self.run = Run {
            inst: item.inst,
            reps: item.reps,
            is_split,
            open: is_split && is_whole,
        };
        self.out.push(inst);
    }

    /// Makes repetitions that follow each other one instruction again, and notes which packs fell apart.
    fn end_run(&mut self, code: &mut MachineFunction) {
        let run = std::mem::take(&mut self.run);
        if !run.is_split {
            return;
        }
        let original = code.insts[run.inst as usize];
        if run.reps.count == original.reps {
            if let Some(last) = self.out.last_mut() {
                *last = original;
            }
            return;
        }
        if let Some(last) = self.out.last_mut().filter(|_| run.open) {
            last.reps = run.reps.count;
            parts(code, &original, last.first_arg, run.reps);
        }
        for i in 0..original.op.info().operands.len() {
            if let Operand::Regs(view) = code.args[original.first_arg as usize + i] {
                for unit in code.regs.units(view) {
                    self.torn.insert(code.regs.group_of(unit));
                }
            }
        }
    }
}
