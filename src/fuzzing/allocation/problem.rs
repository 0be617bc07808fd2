//! Problems: programs as the allocator sees them, valid by construction.
//!
//! The blocks are a tree to which other ways are added, back or forth. A block may read what is written in the blocks that
//! dominate it, which are filled before it.

use std::fmt;
use std::ops::Range;

use crate::fuzzing::random::Random;
use crate::regalloc::reg::{Group, RegClass, RegView, Registers, Touch, Unit};
use crate::regalloc::{AllocFunction, Delay, Ease, Input};

/// Most blocks.
const BLOCKS: usize = 10;
/// Most values that a block may read.
const VALUES: usize = 40;

/// An instruction: what each repetition reads, and then writes.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) reps: u16,
    /// What the repetitions read, as many each.
    reads: Vec<Unit>,
    /// What they write, as many each.
    writes: Vec<Unit>,
    /// Writes only where this holds.
    pub(super) guard: Option<Unit>,
    /// Whether each repetition writes what it reads.
    pub(super) is_copy: bool,
    /// Destination and source, if they are views.
    copied: Option<(RegView, RegView)>,
    /// How the allocator is told that it is read.
    touches: Vec<(Unit, Touch)>,
}

impl Step {
    /// What a repetition reads.
    pub(super) fn reads_of(&self, rep: u16) -> &[Unit] {
        part(&self.reads, rep, self.reps)
    }

    /// What a repetition writes.
    pub(super) fn writes_of(&self, rep: u16) -> &[Unit] {
        part(&self.writes, rep, self.reps)
    }
}

fn part(units: &[Unit], rep: u16, reps: u16) -> &[Unit] {
    let each = units.len() / usize::from(reps);
    &units[usize::from(rep) * each..][..each]
}

/// A way out of a block.
#[derive(Clone, Debug)]
struct Way {
    target: usize,
    inputs: Vec<(Unit, Input)>,
}

#[derive(Clone, Debug, Default)]
struct BlockData {
    steps: Range<usize>,
    params: Vec<Group>,
    ways: Vec<Way>,
    condition: Option<Unit>,
}

/// A problem.
#[derive(Debug)]
pub(super) struct Problem {
    regs: Registers,
    blocks: Vec<BlockData>,
    pub(super) steps: Vec<Step>,
    width: Option<u32>,
}

/// The targets of the ways out of each block: a tree and more.
fn ways(random: &mut Random) -> Vec<Vec<usize>> {
    let count = 1 + random.below(BLOCKS);
    let mut ways: Vec<Vec<usize>> = vec![Vec::new(); count];
    for block in 1..count {
        let open: Vec<usize> = (0..block).filter(|&b| ways[b].len() < 2).collect();
        // Mostly the block before, so that there are long ways.
        let from = match random.chance(60) && ways[block - 1].len() < 2 {
            true => block - 1,
            false => random.pick(&open),
        };
        ways[from].push(block);
    }
    if count > 1 {
        for out in &mut ways {
            // Back or forth, but not to the entry.
            while out.len() < 2 && random.chance(55) {
                out.push(1 + random.below(count - 1));
            }
            if out.len() == 2 && random.chance(50) {
                out.swap(0, 1);
            }
        }
    }
    ways
}

/// For each block those that every way to it comes through, itself among them.
fn dominators(ways: &[Vec<usize>]) -> Vec<u32> {
    let all = u32::MAX >> (32 - ways.len());
    let mut dominators = vec![all; ways.len()];
    dominators[0] = 1;
    loop {
        let before = dominators.clone();
        for (block, out) in ways.iter().enumerate() {
            for &target in out {
                dominators[target] &= dominators[block] | 1 << target;
            }
        }
        if dominators == before {
            return dominators;
        }
    }
}

/// Fills the blocks.
struct Maker<'a> {
    random: &'a mut Random,
    problem: Problem,
    /// Groups that the current block may read.
    known: Vec<Group>,
}

impl Maker<'_> {
    fn group(&mut self) -> Group {
        let class = match self.random.below(10) {
            0 => RegClass::P,
            1 => RegClass::H,
            2..4 => RegClass::D,
            _ => RegClass::W,
        };
        let count = self.random.pick(&[1, 1, 1, 1, 2, 2, 3, 4, 4, 8]);
        self.problem.regs.make_group(class, count)
    }

    /// A group that may be read, the last ones more often.
    fn any(&mut self) -> Group {
        let count = self.known.len();
        let back = match self.random.chance(50) {
            true => self.random.below(count.min(4)),
            false => self.random.below(count),
        };
        self.known[count - 1 - back]
    }

    fn unit(&mut self, class: Option<RegClass>) -> Option<Unit> {
        let regs = &self.problem.regs;
        let fits = |g: &&Group| class.is_none_or(|c| regs.groups[**g].class == c);
        let fitting: Vec<Group> = self.known.iter().filter(fits).copied().collect();
        if fitting.is_empty() {
            return None;
        }
        let data = self.problem.regs.groups[self.random.pick(&fitting)];
        let i = self.random.below(usize::from(data.count)) as u32;
        Some(Unit::from_u32(data.first.as_u32() + i))
    }

    /// A view of `count` units, perhaps of a class: a whole group, one unit many times, or any units.
    fn view(&mut self, count: u16, class: Option<RegClass>) -> Option<RegView> {
        let regs = &self.problem.regs;
        let fits = |g: &&Group| {
            let data = regs.groups[**g];
            data.count == count && class.is_none_or(|c| data.class == c)
        };
        let fitting: Vec<Group> = self.known.iter().filter(fits).copied().collect();
        if !fitting.is_empty() && self.random.chance(60) {
            let group = self.random.pick(&fitting);
            return Some(self.problem.regs.whole(group));
        }
        let first = self.unit(class)?;
        let class = self.problem.regs.class_of(first);
        let units: Vec<Unit> = match self.random.chance(40) {
            true => vec![first; usize::from(count)],
            false => (0..count)
                .map(|_| self.unit(Some(class)).unwrap_or(first))
                .collect(),
        };
        Some(self.problem.regs.view_of(&units))
    }

    /// How the allocator may be told of reads: exactly, or more carefully.
    fn touches(
        &mut self,
        step: &Step,
        to: Option<RegView>,
        sources: &[RegView],
    ) -> Vec<(Unit, Touch)> {
        let regs = &self.problem.regs;
        let is_whole = to.is_some_and(|to| regs.is_whole(to));
        let mut touches = Vec::new();
        for &source in sources {
            let in_step =
                is_whole && to.is_some_and(|to| to.count == source.count) && regs.is_whole(source);
            let late = match in_step {
                true => Touch::AlignedUse,
                false => Touch::LateUse,
            };
            let touch = match step.reps {
                1 => Touch::Use,
                _ if self.random.chance(10) => Touch::LateUse,
                _ => late,
            };
            touches.extend(regs.units(source).map(|unit| (unit, touch)));
        }
        touches.extend(step.guard.map(|guard| (guard, Touch::Use)));
        touches
    }

    /// An instruction that writes a group, which stays unknown until then.
    fn write(&mut self, to: Group) {
        let data = self.problem.regs.groups[to];
        let whole = self.problem.regs.whole(to);
        let copied = match self.random.chance(25) {
            true => self.view(data.count, Some(data.class)),
            false => None,
        };
        // A pack at once, or one repetition for each of its units or pairs.
        let reps = match self.random.below(4) {
            _ if copied.is_some() => data.count,
            0 => 1,
            1 if data.count.is_multiple_of(2) => data.count / 2,
            _ => data.count,
        };
        let mut sources: Vec<RegView> = copied.into_iter().collect();
        if copied.is_none() && !self.known.is_empty() {
            for _ in 0..self.random.below(4) {
                let count = match self.random.chance(80) {
                    true => data.count,
                    false => reps,
                };
                sources.extend(self.view(count, None));
            }
        }
        self.step(reps, Some(whole), &sources, None, copied.is_some());
    }

    fn step(
        &mut self,
        reps: u16,
        to: Option<RegView>,
        sources: &[RegView],
        guard: Option<Unit>,
        is_copy: bool,
    ) {
        let regs = &self.problem.regs;
        let mut reads = Vec::new();
        for rep in 0..reps {
            for &source in sources {
                let units: Vec<Unit> = regs.units(source).collect();
                reads.extend_from_slice(part(&units, rep, reps));
            }
        }
        let writes: Vec<Unit> = to.into_iter().flat_map(|to| regs.units(to)).collect();
        let copied = match (is_copy, to, sources) {
            (true, Some(to), &[from]) => Some((to, from)),
            _ => None,
        };
        let mut step = Step {
            reps,
            reads,
            writes,
            guard,
            is_copy,
            copied,
            touches: Vec::new(),
        };
        step.touches = self.touches(&step, to, sources);
        // The guard is read in each repetition.
        if let (Some(guard), true) = (guard, reps > 1) {
            step.touches.push((guard, Touch::LateUse));
        }
        self.problem.steps.push(step);
    }

    fn body(&mut self) {
        for _ in 0..self.random.below(12) {
            match self.random.below(10) {
                // Read by something that writes nothing.
                0 if !self.known.is_empty() => {
                    let group = self.any();
                    let view = self.problem.regs.whole(group);
                    self.step(1, None, &[view], None, false);
                }
                // Under a predicate, over what is there.
                1 if !self.known.is_empty() => {
                    let group = self.any();
                    let data = self.problem.regs.groups[group];
                    let whole = self.problem.regs.whole(group);
                    let source = self.view(data.count, None);
                    let guard = self.unit(Some(RegClass::P));
                    if let (Some(source), Some(guard)) = (source, guard)
                        && self.problem.regs.group_of(guard) != group
                    {
                        self.step(data.count, Some(whole), &[source], Some(guard), false);
                    }
                }
                // Once more.
                2 if !self.known.is_empty() => {
                    let group = self.any();
                    self.write(group);
                }
                _ => {
                    let group = self.group();
                    self.write(group);
                    self.known.push(group);
                }
            }
        }
    }

    /// What a parameter gets.
    fn argument(&mut self, param: Group) -> Vec<(Unit, Input)> {
        let data = self.problem.regs.groups[param];
        let whole = self.problem.regs.whole(param);
        let view = match self.random.chance(15) {
            true => None,
            false => self.view(data.count, Some(data.class)),
        };
        let regs = &self.problem.regs;
        let to: Vec<Unit> = regs.units(whole).collect();
        match view {
            Some(view) => to
                .into_iter()
                .zip(regs.units(view).map(Input::Unit))
                .collect(),
            None => {
                let bits = self.random.bits();
                to.into_iter().map(|to| (to, Input::Number(bits))).collect()
            }
        }
    }
}

impl Problem {
    /// A random problem.
    pub(super) fn new(random: &mut Random) -> Problem {
        let ways = ways(random);
        let dominators = dominators(&ways);
        let problem = Problem {
            regs: Registers::default(),
            blocks: vec![BlockData::default(); ways.len()],
            steps: Vec::new(),
            width: random.chance(30).then_some(40),
        };
        let mut maker = Maker {
            random,
            problem,
            known: Vec::new(),
        };
        for block in 1..ways.len() {
            for _ in 0..maker.random.below(5) {
                let param = maker.group();
                maker.problem.blocks[block].params.push(param);
            }
        }
        // What each block adds. A block stands behind those that dominate it.
        let mut added: Vec<Vec<Group>> = Vec::new();
        for (block, out) in ways.iter().enumerate() {
            let above = (0..block).filter(|&b| dominators[block] >> b & 1 == 1);
            maker.known = above.flat_map(|b| added[b].clone()).collect();
            while maker.known.len() > VALUES {
                let at = maker.random.below(maker.known.len());
                maker.known.swap_remove(at);
            }
            let given = maker.known.len();
            let params = maker.problem.blocks[block].params.clone();
            maker.known.extend(params);
            let first = maker.problem.steps.len();
            maker.body();
            let mut condition = None;
            if out.len() == 2 {
                let found = maker.unit(Some(RegClass::P));
                condition = Some(found.unwrap_or_else(|| {
                    let group = maker.problem.regs.make_group(RegClass::P, 1);
                    maker.write(group);
                    maker.known.push(group);
                    maker.problem.regs.groups[group].first
                }));
            }
            let mut made = Vec::new();
            for &target in out {
                let mut inputs = Vec::new();
                for param in maker.problem.blocks[target].params.clone() {
                    inputs.extend(maker.argument(param));
                }
                made.push(Way { target, inputs });
            }
            added.push(maker.known.split_off(given));
            let steps = first..maker.problem.steps.len();
            let data = &mut maker.problem.blocks[block];
            (data.steps, data.ways, data.condition) = (steps, made, condition);
        }
        maker.problem
    }

    /// What is notable.
    pub(super) fn notes(&self) -> Vec<&'static str> {
        let mut notes = Vec::new();
        let targets: Vec<Vec<usize>> = self
            .blocks
            .iter()
            .map(|block| block.ways.iter().map(|way| way.target).collect())
            .collect();
        let dominators = dominators(&targets);
        let back = targets.iter().enumerate().flat_map(|(block, out)| {
            let out = out.iter().filter(move |&&target| target <= block);
            out.map(move |&target| (block, target))
        });
        let (mut loops, mut entries) = (false, false);
        for (block, target) in back {
            loops = true;
            entries |= dominators[block] >> target & 1 == 0;
        }
        if loops {
            notes.push("with loops");
        }
        if entries {
            notes.push("with two ways into a loop");
        }
        if self.steps.iter().any(|step| step.guard.is_some()) {
            notes.push("with writes under a predicate");
        }
        notes
    }
}

impl AllocFunction for Problem {
    fn regs(&self) -> &Registers {
        &self.regs
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn insts(&self, block: usize) -> Range<usize> {
        self.blocks[block].steps.clone()
    }

    fn ease(&self, unit: Unit) -> Ease {
        match unit.as_u32() % 5 {
            0 => Ease::LoadedOnce,
            1 => Ease::Param,
            2 => Ease::Widened,
            _ => Ease::None,
        }
    }

    fn delay(&self, inst: usize) -> Delay {
        match inst % 4 {
            0 => Delay::May,
            1 => Delay::Ends,
            _ => Delay::None,
        }
    }

    fn width(&self) -> Option<u32> {
        self.width
    }

    fn visit(&self, inst: usize, mut visit: impl FnMut(Unit, Touch)) {
        let step = &self.steps[inst];
        for &(unit, touch) in &step.touches {
            visit(unit, touch);
        }
        let write = match step.guard {
            Some(_) => Touch::Mod,
            None => Touch::Def,
        };
        step.writes.iter().for_each(|&unit| visit(unit, write));
    }

    fn replay(&self, inst: usize, mut visit: impl FnMut(u16, Unit, bool)) {
        let step = &self.steps[inst];
        for rep in 0..step.reps {
            let writes = step.writes_of(rep);
            step.reads_of(rep)
                .iter()
                .for_each(|&u| visit(rep, u, false));
            if let Some(guard) = step.guard {
                writes.iter().for_each(|&u| visit(rep, u, false));
                visit(rep, guard, false);
            }
            writes.iter().for_each(|&u| visit(rep, u, true));
        }
    }

    fn copied(&self, inst: usize) -> Option<(RegView, RegView)> {
        self.steps[inst].copied
    }

    fn params(&self, block: usize, mut visit: impl FnMut(Unit)) {
        for &param in &self.blocks[block].params {
            self.regs.units(self.regs.whole(param)).for_each(&mut visit);
        }
    }

    fn condition(&self, block: usize) -> Option<Unit> {
        self.blocks[block].condition
    }

    fn num_edges(&self, block: usize) -> usize {
        self.blocks[block].ways.len()
    }

    fn target(&self, block: usize, edge: usize) -> usize {
        self.blocks[block].ways[edge].target
    }

    fn inputs(&self, block: usize, edge: usize, mut visit: impl FnMut(Unit, Input)) {
        for &(to, input) in &self.blocks[block].ways[edge].inputs {
            visit(to, input);
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, block) in self.blocks.iter().enumerate() {
            writeln!(f, "block {number}, parameters {:?}:", block.params)?;
            for inst in block.steps.clone() {
                let step = &self.steps[inst];
                writeln!(
                    f,
                    "  {inst}: {:?} = {:?} x{} if {:?}{}",
                    step.writes,
                    step.reads,
                    step.reps,
                    step.guard,
                    if step.is_copy { ", a copy" } else { "" }
                )?;
            }
            writeln!(f, "  by {:?} to {:?}", block.condition, block.ways)?;
        }
        for (group, data) in &self.regs.groups {
            write!(f, "{group}: {data:?}; ")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regalloc::check::{CheckError, check};
    use crate::regalloc::{Move, MoveSource, allocate};
    use crate::settings::diversity::Choices;

    /// `a` is written; a loop whose parameter gets `a` writes it again and hands it over once more.
    fn written_in_a_loop() -> (Problem, [Unit; 2]) {
        let mut regs = Registers::default();
        let [a, param, cond] =
            [RegClass::W, RegClass::W, RegClass::P].map(|class| regs.make_group(class, 1));
        let [a, p, c] = [a, param, cond].map(|group| regs.groups[group].first);
        let write = |unit: Unit, read: Option<Unit>| Step {
            reps: 1,
            reads: read.into_iter().collect(),
            writes: vec![unit],
            guard: None,
            is_copy: false,
            copied: None,
            touches: read.map(|unit| (unit, Touch::Use)).into_iter().collect(),
        };
        let to_loop = Way {
            target: 1,
            inputs: vec![(p, Input::Unit(a))],
        };
        let out = Way {
            target: 2,
            inputs: Vec::new(),
        };
        let blocks = vec![
            BlockData {
                steps: 0..1,
                ways: vec![to_loop.clone()],
                ..BlockData::default()
            },
            BlockData {
                steps: 1..3,
                params: vec![param],
                ways: vec![to_loop, out],
                condition: Some(c),
            },
            BlockData {
                steps: 3..3,
                ..BlockData::default()
            },
        ];
        let problem = Problem {
            regs,
            blocks,
            steps: vec![write(a, None), write(a, Some(p)), write(c, Some(a))],
            width: None,
        };
        (problem, [a, p])
    }

    /// `a` is copied to `b` where `earlier`, whose registers come first, is dead already.
    fn copied(count: u16) -> (Problem, [Group; 2]) {
        let mut regs = Registers::default();
        let [earlier, a, b] = [(); 3].map(|()| regs.make_group(RegClass::W, count));
        let step = |to: Option<Group>, from: Option<Group>| {
            let units = |group: Option<Group>| -> Vec<Unit> {
                let views = group.into_iter().map(|group| regs.whole(group));
                views.flat_map(|view| regs.units(view)).collect()
            };
            Step {
                reps: count,
                reads: units(from),
                writes: units(to),
                guard: None,
                is_copy: to.is_some() && from.is_some(),
                copied: to
                    .zip(from)
                    .map(|(to, from)| (regs.whole(to), regs.whole(from))),
                touches: units(from)
                    .into_iter()
                    .map(|unit| (unit, Touch::AlignedUse))
                    .collect(),
            }
        };
        let steps = vec![
            step(Some(earlier), None),
            step(Some(a), None),
            step(None, Some(earlier)),
            step(Some(b), Some(a)),
            step(None, Some(b)),
        ];
        let block = BlockData {
            steps: 0..steps.len(),
            ..BlockData::default()
        };
        let problem = Problem {
            regs,
            blocks: vec![block],
            steps,
            width: None,
        };
        (problem, [a, b])
    }

    #[test]
    fn a_copy_shares_the_registers_of_what_it_copies() {
        for count in [1, 4] {
            let (problem, groups) = copied(count);
            let allocation = allocate(&problem, Choices::none());
            let [a, b] = groups.map(|group| {
                let units = problem.regs.units(problem.regs.whole(group));
                units
                    .map(|unit| allocation.names[unit.as_u32() as usize])
                    .collect::<Vec<u32>>()
            });
            assert_eq!(a, b);
        }
    }

    #[test]
    fn a_copy_is_not_what_is_written_later() {
        let (problem, [a, p]) = written_in_a_loop();
        let mut allocation = allocate(&problem, Choices::none());
        assert_eq!(check(&problem, &allocation), Ok(()));
        // In registers of their own the parameter must be moved on each way, also on the way back.
        let (at_a, at_p) = (0, 1);
        allocation.names[a.as_u32() as usize] = at_a;
        allocation.names[p.as_u32() as usize] = at_p;
        allocation.n_names[RegClass::W.index()] = 2;
        allocation.ahead.fill(None);
        let to_p = Move {
            class: RegClass::W,
            to: at_p,
            source: MoveSource::Register(at_a),
        };
        allocation.moves[0][0] = vec![to_p];
        allocation.moves[1][0] = vec![to_p];
        assert_eq!(check(&problem, &allocation), Ok(()));
        allocation.moves[1][0].clear();
        let wrong = CheckError::WrongParameter {
            block: 1,
            edge: 0,
            param: p,
        };
        assert_eq!(check(&problem, &allocation), Err(wrong));
    }
}
