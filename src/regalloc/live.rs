//! Where registers are live: ranges of groups, and the pressure at every instruction.
//!
//! Liveness is found per unit by the usual backward data flow, so that the pressure is exact where a part of a pack
//! dies before the rest. A group's range covers every place where one of its units is live.
//!
//! # Places
//! Every instruction has a slot, and so have the start and the end of each block. Slot `s` has two points: `2s`,
//! where it reads, and `2s + 1`, where it writes. A range is half open. Parameters are written at the start of
//! their block, arguments of a jump are read at its end.

use super::{AllocFunction, Delay, Ease, Input};
use cranelift_entity::EntitySet;

use crate::regalloc::reg::{Group, RegClass, Touch, Unit};

/// A stretch of points, half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Result of the analysis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Liveness {
    /// Ranges of all groups, ascending within each.
    ranges: Vec<LiveRange>,
    /// Where the ranges of each group begin in `ranges`; one more than there are groups.
    first_range: Vec<u32>,
    /// For each group a point before which its names must not be given away: later than its ranges' end where an
    /// instruction reads it while it writes others.
    pub(crate) keep_until: Vec<u32>,
    /// Most units of each class live at one place.
    pub(crate) peak: [u32; 4],
    /// Most 32-bit registers live at one place.
    pub(crate) peak_words: u32,
    /// The same, where of what is loaded and read once a quarter counts, and parameters do not.
    pub(crate) light_words: u32,
    /// The same as `light_words`, where of what is widened half counts.
    pub(crate) least_words: u32,
    /// The same as `light_words`, where what is read from shared memory counts from its first use on ([`Delay`]).
    pub(crate) late_words: u32,
    /// The same as `light_words`, around instructions that change what is in flight ([`AllocFunction::in_flight`]) alone.
    pub(crate) flight_words: u32,
    /// 32-bit registers live around each instruction.
    pub(crate) words_at: Vec<u32>,
    /// The units live at the start of each block, parameters left out.
    at_start: Vec<Set>,
}

/// A set of units: words of 64 bits that are not zero, by ascending number. Few units live on from block to block, and kernels
/// may have many of both.
type Set = Vec<(u32, u64)>;

/// Visits the units of a set in ascending order.
fn each(set: &Set, mut visit: impl FnMut(Unit)) {
    for &(word, bits) in set {
        let mut rest = bits;
        while rest != 0 {
            visit(Unit::from_u32(word * 64 + rest.trailing_zeros()));
            rest &= rest - 1;
        }
    }
}

/// Adds the units of `more` that are not in `but`; whether any was new.
fn add(set: &mut Set, more: &Set, but: &Set) -> bool {
    let mut changed = false;
    let (mut at, mut skip) = (0, 0);
    for &(word, bits) in more {
        while but.get(skip).is_some_and(|b| b.0 < word) {
            skip += 1;
        }
        let hidden = but.get(skip).filter(|b| b.0 == word).map_or(0, |b| b.1);
        let bits = bits & !hidden;
        while set.get(at).is_some_and(|s| s.0 < word) {
            at += 1;
        }
        match set.get_mut(at).filter(|s| s.0 == word) {
            Some(known) => {
                changed |= known.1 | bits != known.1;
                known.1 |= bits;
            }
            None if bits != 0 => {
                set.insert(at, (word, bits));
                changed = true;
            }
            None => {}
        }
    }
    changed
}

/// A set while it is put together: a bit for each unit, and the words that are not zero.
struct Gathered {
    words: Vec<u64>,
    used: Vec<u32>,
}

impl Gathered {
    fn new(units: usize) -> Gathered {
        Gathered {
            words: vec![0; units.div_ceil(64)],
            used: Vec::new(),
        }
    }

    fn has(&self, unit: Unit) -> bool {
        let i = unit.as_u32();
        self.words[i as usize / 64] >> (i % 64) & 1 != 0
    }

    fn insert(&mut self, unit: Unit) {
        let i = unit.as_u32();
        let word = &mut self.words[i as usize / 64];
        if *word == 0 {
            self.used.push(i / 64);
        }
        *word |= 1 << (i % 64);
    }

    /// The set; nothing is left.
    fn take(&mut self) -> Set {
        self.used.sort_unstable();
        let words = &mut self.words;
        let bits = |word: u32| (word, std::mem::take(&mut words[word as usize]));
        self.used.drain(..).map(bits).collect()
    }
}

impl Liveness {
    /// Analyses a program.
    pub(crate) fn compute(program: &impl AllocFunction) -> Liveness {
        let regs = program.regs();
        let mut scan = Scan {
            live: vec![0; regs.num_units().div_ceil(64)],
            n_live: vec![0; regs.groups.len()],
            end: vec![0; regs.groups.len()],
            found: Vec::new(),
            counts: [0; 4],
            loaded_once: 0,
            params: 0,
            widened: 0,
            put_off: vec![false; regs.num_units()],
            late: 0,
            settled: settled(program),
            in_flight: EntitySet::new(),
            result: Liveness {
                keep_until: vec![0; regs.groups.len()],
                at_start: live_sets(program),
                ..Liveness::default()
            },
        };
        program.in_flight(|unit| {
            scan.in_flight.insert(unit);
        });
        // Blocks and instructions from the last to the first, so ranges are found in descending order.
        let n_blocks = program.num_blocks();
        let mut slot = 0;
        for block in 0..n_blocks {
            slot += program.insts(block).len() as u32 + 2;
        }
        let n_insts = (0..n_blocks)
            .map(|b| program.insts(b).end)
            .max()
            .unwrap_or(0);
        scan.result.words_at = vec![0; n_insts];
        for block in (0..n_blocks).rev() {
            slot = scan.block(program, block, slot);
        }
        scan.finish()
    }

    /// Visits the units live at the start of a block, without its parameters.
    pub(crate) fn at_start(&self, block: usize, visit: impl FnMut(Unit)) {
        each(&self.at_start[block], visit);
    }

    /// The ranges of a group, ascending.
    pub(crate) fn ranges(&self, group: Group) -> &[LiveRange] {
        let g = group.as_u32() as usize;
        &self.ranges[self.first_range[g] as usize..self.first_range[g + 1] as usize]
    }
}

/// What is put off ([`Delay`]) by the instruction before which it must be there at the latest, in ascending order: the first that
/// reads it or orders accesses, or the last of the block.
fn settled(program: &impl AllocFunction) -> Vec<(usize, Unit)> {
    let mut settled = Vec::new();
    let mut waits = vec![false; program.regs().num_units()];
    let mut waiting: Vec<Unit> = Vec::new();
    for block in 0..program.num_blocks() {
        let insts = program.insts(block);
        let Some(last) = insts.clone().last() else {
            continue;
        };
        for inst in insts {
            let delay = program.delay(inst);
            program.visit(inst, |unit, touch| {
                let waits = &mut waits[unit.as_u32() as usize];
                if touch != Touch::Def && std::mem::take(waits) {
                    settled.push((inst, unit));
                }
            });
            if delay == Delay::Ends || inst == last {
                let units = waiting.drain(..);
                let left = units.filter(|u| std::mem::take(&mut waits[u.as_u32() as usize]));
                settled.extend(left.map(|unit| (inst, unit)));
            } else if delay == Delay::May {
                program.visit(inst, |unit, touch| {
                    if touch == Touch::Def {
                        waits[unit.as_u32() as usize] = true;
                        waiting.push(unit);
                    }
                });
            }
        }
    }
    settled
}

/// The units live at the start of each block.
fn live_sets(program: &impl AllocFunction) -> Vec<Set> {
    let n_blocks = program.num_blocks();
    if n_blocks < 2 {
        return vec![Set::new(); n_blocks];
    }
    let n_units = program.regs().num_units();
    let (mut exposed, mut killed) = (Gathered::new(n_units), Gathered::new(n_units));
    let mut live_in = Vec::with_capacity(n_blocks);
    let mut writes = Vec::with_capacity(n_blocks);
    for block in 0..n_blocks {
        program.params(block, |unit| killed.insert(unit));
        let mut read = |killed: &Gathered, unit| {
            if !killed.has(unit) {
                exposed.insert(unit);
            }
        };
        for inst in program.insts(block) {
            program.visit(inst, |unit, touch| match touch {
                Touch::Def => killed.insert(unit),
                Touch::Use | Touch::AlignedUse | Touch::LateUse | Touch::Mod => read(&killed, unit),
            });
        }
        if let Some(unit) = program.condition(block) {
            read(&killed, unit);
        }
        for edge in 0..program.num_edges(block) {
            program.inputs(block, edge, |_, input| {
                if let Input::Unit(unit) = input {
                    read(&killed, unit);
                }
            });
        }
        live_in.push(exposed.take());
        writes.push(killed.take());
    }
    // From the last block to the first: few loops need more than two rounds.
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..n_blocks).rev() {
            let mut own = std::mem::take(&mut live_in[block]);
            for edge in 0..program.num_edges(block) {
                // What lives at its own start lives there already.
                let target = program.target(block, edge);
                changed |= target != block && add(&mut own, &live_in[target], &writes[block]);
            }
            live_in[block] = own;
        }
    }
    live_in
}

/// State of the backward scan.
struct Scan {
    live: Vec<u64>,
    /// Live units of each group.
    n_live: Vec<u16>,
    /// End of the range of each group that is live.
    end: Vec<u32>,
    found: Vec<(Group, LiveRange)>,
    counts: [u32; 4],
    /// 32-bit registers that were loaded and are read once.
    loaded_once: u32,
    /// 32-bit registers of parameters.
    params: u32,
    /// 32-bit registers that were widened.
    widened: u32,
    /// Units live that need not be there yet, and are not counted as any of the above.
    put_off: Vec<bool>,
    /// Their 32-bit registers.
    late: u32,
    /// See [`settled`]; those left to come.
    settled: Vec<(usize, Unit)>,
    in_flight: EntitySet<Unit>,
    result: Liveness,
}

impl Scan {
    /// Scans a block whose end has the slot before `slot`; gives the slot of its start.
    fn block(&mut self, program: &impl AllocFunction, block: usize, slot: u32) -> u32 {
        let regs = program.regs();
        let mut slot = slot - 1;
        let at_start = std::mem::take(&mut self.result.at_start);
        for edge in 0..program.num_edges(block) {
            let target = program.target(block, edge);
            each(&at_start[target], |unit| {
                self.read(program, unit, 2 * slot + 2)
            });
        }
        for edge in 0..program.num_edges(block) {
            program.inputs(block, edge, |_, input| {
                if let Input::Unit(unit) = input {
                    self.read(program, unit, 2 * slot + 1);
                }
            });
        }
        if let Some(unit) = program.condition(block) {
            self.read(program, unit, 2 * slot + 1);
        }
        self.note_peak();
        for inst in program.insts(block).rev() {
            slot -= 1;
            let mut around = self.words();
            program.visit(inst, |unit, touch| {
                if touch == Touch::Def {
                    self.born(program, unit, 2 * slot + 1);
                }
            });
            // What is written and never read takes a register for a moment.
            around = around.max(self.words());
            self.note_peak();
            program.visit(inst, |unit, touch| {
                if touch == Touch::Def {
                    self.write(program, unit, 2 * slot + 1);
                }
            });
            program.visit(inst, |unit, touch| {
                let group = regs.group_of(unit).as_u32() as usize;
                match touch {
                    Touch::Def => {}
                    Touch::Use => self.read(program, unit, 2 * slot + 1),
                    Touch::AlignedUse => {
                        self.read(program, unit, 2 * slot + 1);
                        let keep = &mut self.result.keep_until[group];
                        *keep = (*keep).max(2 * slot + 2);
                    }
                    Touch::LateUse | Touch::Mod => self.read(program, unit, 2 * slot + 2),
                }
            });
            self.note_peak();
            self.result.words_at[inst] = around.max(self.words());
            let mut changes = false;
            program.visit(inst, |unit, touch| {
                changes |= touch == Touch::Mod && self.in_flight.contains(unit);
            });
            if changes {
                self.result.flight_words = self.result.flight_words.max(self.light());
            }
            while let Some((_, unit)) = self.settled.pop_if(|s| s.0 == inst) {
                self.put_off(program, unit);
            }
        }
        slot -= 1;
        // Parameters are written all at once.
        program.params(block, |unit| self.born(program, unit, 2 * slot));
        self.note_peak();
        program.params(block, |unit| self.write(program, unit, 2 * slot));
        // Nothing else is live here, so nothing is when the next block begins.
        each(&at_start[block], |unit| self.write(program, unit, 2 * slot));
        self.result.at_start = at_start;
        slot
    }

    /// 32-bit registers that what is live takes. The machine has seven predicates, one of them always true; what is
    /// beyond lives in ordinary registers, as bits or as what it was computed from.
    fn words(&self) -> u32 {
        let [predicates, ..] = self.counts;
        let numbers: u32 = RegClass::ALL
            .iter()
            .map(|c| c.words() * self.counts[c.index()])
            .sum();
        numbers + predicates.saturating_sub(6)
    }

    /// The same, where of the loads that can wait a quarter is in flight.
    fn light(&self) -> u32 {
        self.words() - self.loaded_once * 3 / 4 - self.params
    }

    fn note_peak(&mut self) {
        for (peak, count) in self.result.peak.iter_mut().zip(self.counts) {
            *peak = (*peak).max(count);
        }
        let (words, light) = (self.words(), self.light());
        self.result.peak_words = self.result.peak_words.max(words);
        self.result.light_words = self.result.light_words.max(light);
        self.result.least_words = self.result.least_words.max(light - self.widened / 2);
        self.result.late_words = self.result.late_words.max(light - self.late);
    }

    /// A unit need not be there before this place.
    fn put_off(&mut self, program: &impl AllocFunction, unit: Unit) {
        let i = unit.as_u32() as usize;
        if self.live[i / 64] >> (i % 64) & 1 != 0 && program.ease(unit) == Ease::None {
            self.put_off[i] = true;
            self.late += program.regs().class_of(unit).words();
        }
    }

    /// A unit is live before `end`.
    fn read(&mut self, program: &impl AllocFunction, unit: Unit, end: u32) {
        let i = unit.as_u32() as usize;
        let group = program.regs().group_of(unit);
        if self.live[i / 64] >> (i % 64) & 1 != 0 {
            // An instruction may read it a second time, and later.
            let known = &mut self.end[group.as_u32() as usize];
            *known = (*known).max(end);
            return;
        }
        self.live[i / 64] |= 1 << (i % 64);
        let class = program.regs().groups[group].class;
        self.counts[class.index()] += 1;
        match program.ease(unit) {
            Ease::None => {}
            Ease::LoadedOnce => self.loaded_once += class.words(),
            Ease::Param => self.params += class.words(),
            Ease::Widened => self.widened += class.words(),
        }
        let g = group.as_u32() as usize;
        self.end[g] = match self.n_live[g] {
            0 => end,
            _ => self.end[g].max(end),
        };
        self.n_live[g] += 1;
    }

    /// A unit that is written is live at least while it is.
    fn born(&mut self, program: &impl AllocFunction, unit: Unit, point: u32) {
        self.read(program, unit, point + 1);
    }

    /// A unit is not live before `start`.
    fn write(&mut self, program: &impl AllocFunction, unit: Unit, start: u32) {
        let i = unit.as_u32() as usize;
        if self.live[i / 64] >> (i % 64) & 1 == 0 {
            return;
        }
        self.live[i / 64] &= !(1 << (i % 64));
        let group = program.regs().group_of(unit);
        let class = program.regs().groups[group].class;
        self.counts[class.index()] -= 1;
        if std::mem::take(&mut self.put_off[i]) {
            self.late -= class.words();
        }
        match program.ease(unit) {
            Ease::None => {}
            Ease::LoadedOnce => self.loaded_once -= class.words(),
            Ease::Param => self.params -= class.words(),
            Ease::Widened => self.widened -= class.words(),
        }
        let g = group.as_u32() as usize;
        self.n_live[g] -= 1;
        if self.n_live[g] == 0 {
            let end = self.end[g];
            self.found.push((group, LiveRange { start, end }));
        }
    }

    /// Sorts the ranges by group.
    fn finish(mut self) -> Liveness {
        let n_groups = self.n_live.len();
        let mut first = vec![0_u32; n_groups + 1];
        for (group, _) in &self.found {
            first[group.as_u32() as usize + 1] += 1;
        }
        for g in 0..n_groups {
            first[g + 1] += first[g];
        }
        let mut next: Vec<u32> = first[1..].to_vec();
        let mut ranges = vec![LiveRange { start: 0, end: 0 }; self.found.len()];
        for &(group, range) in &self.found {
            let place = &mut next[group.as_u32() as usize];
            *place -= 1;
            ranges[*place as usize] = range;
        }
        self.result.ranges = ranges;
        self.result.first_range = first;
        self.result
    }
}
