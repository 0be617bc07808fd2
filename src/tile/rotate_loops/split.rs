//! The parts of a loop's body.

use cranelift_entity::EntitySet;

use crate::ir::dfg::ValueDef;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::Elem;
use crate::tile::edit::read_by;

/// What costs as much is not computed again for a block.
const MOST_AGAIN: u16 = 8;

/// How a body is taken apart. Lists are in program order.
pub(super) struct Split {
    /// The body.
    pub body: Block,
    /// What it yields.
    pub yields: Vec<Value>,
    /// The first products, and what they are computed from.
    pub first: Vec<Inst>,
    /// The second half, and of the rest what it computes again.
    pub second: Vec<Inst>,
    /// Neither.
    pub rest: Vec<Inst>,
    /// Values of an iteration that are carried from its first half and the rest to the second half or the next iteration, the
    /// counter not among them.
    pub crossing: Vec<Value>,
    /// Whether the counter is needed as they are.
    pub counter_crosses: bool,
    /// Instructions of the rest for each element of the first products, weighed by their cost.
    pub work: u64,
    /// All products.
    pub products: Vec<Inst>,
}

impl Split {
    /// The parts of a loop's body, if it can be rotated.
    pub(super) fn of(func: &TileFunction, looped: Inst) -> Option<Split> {
        let body = func.dfg.insts[looped].blocks.first()?.block;
        let (&last, list) = func.order.insts(body).split_last()?;
        if !list.iter().all(|&inst| may_stand(func, inst)) {
            return None;
        }
        let mut halves = Halves {
            func,
            body,
            list,
            yields: func.dfg.insts[last].args.to_vec(),
            behind: EntitySet::new(),
            first: EntitySet::new(),
            second: EntitySet::new(),
        };
        halves.add_products();
        if halves.second.is_empty() {
            return None;
        }
        halves.add_slices()?;
        halves.sink();
        Some(halves.split())
    }
}

/// Whether a loop with the instruction in it can be rotated: it only computes and reads, and there is no loop and no product in
/// its regions.
fn may_stand(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let is_plain = |inst: Inst| {
        let data = &func.dfg.insts[inst];
        data.op != TileOp::Dot && (data.op.info().ends_block() || may_stand(func, inst))
    };
    let mut inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    !data.op.is_loop() && !data.has_effect() && inner.all(|&inst| is_plain(inst))
}

/// Where a value of the loop comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// It is the same in all iterations.
    Outside,
    Counter,
    /// The iteration before, at this position.
    Carried(usize),
    /// An instruction of the body.
    Made(Inst),
}

/// The halves as they are found.
struct Halves<'a> {
    func: &'a TileFunction,
    body: Block,
    list: &'a [Inst],
    yields: Vec<Value>,
    /// Values that depend on a product of the iteration.
    behind: EntitySet<Value>,
    first: EntitySet<Inst>,
    second: EntitySet<Inst>,
}

impl Halves<'_> {
    fn home(&self, value: Value) -> Home {
        match self.func.dfg.values[value].def {
            ValueDef::Param(block, 0) if block == self.body => Home::Counter,
            ValueDef::Param(block, i) if block == self.body => Home::Carried(usize::from(i) - 1),
            ValueDef::Result(inst, _) if self.func.order.block_of(inst) == Some(self.body) => {
                Home::Made(inst)
            }
            // What stands in a region of the body is read there alone.
            ValueDef::Param(..) | ValueDef::Result(..) => Home::Outside,
        }
    }

    fn is_late(&self, value: Value) -> bool {
        matches!(self.home(value), Home::Made(inst) if self.second.contains(inst))
    }

    fn reads(&self, inst: Inst) -> Vec<Value> {
        let mut values = Vec::new();
        read_by(self.func, inst, &mut values);
        values
    }

    fn is_product(&self, inst: Inst) -> bool {
        self.func.dfg.insts[inst].op == TileOp::Dot
    }

    /// Deals products to the halves: those that depend on one of the iteration go to the second, with what depends on them.
    fn add_products(&mut self) {
        for &inst in self.list {
            let reads = self.reads(inst);
            let is_behind = reads.iter().any(|&v| self.behind.contains(v));
            let is_late = reads.iter().any(|&v| self.is_late(v));
            let is_product = self.is_product(inst);
            if is_behind || is_product {
                let results = self.func.dfg.insts[inst].results.iter();
                self.behind.extend(results.copied());
            }
            if is_late || is_behind && is_product {
                self.second.insert(inst);
            } else if is_product {
                self.first.insert(inst);
            }
        }
    }

    /// Adds to the first half what its products are computed from; none if that is the second half of the iteration before.
    fn add_slices(&mut self) -> Option<()> {
        for &inst in self.list.iter().rev() {
            if !self.first.contains(inst) {
                continue;
            }
            for value in self.reads(inst) {
                match self.home(value) {
                    Home::Made(def) => _ = self.first.insert(def),
                    Home::Carried(i) if self.is_late(self.yields[i]) => return None,
                    Home::Carried(_) | Home::Counter | Home::Outside => {}
                }
            }
        }
        Some(())
    }

    /// Moves to the second half what it alone needs: loads, and what makes more of less, so that less is carried.
    fn sink(&mut self) {
        // What is needed before the second half, in this iteration and the next.
        let mut early: EntitySet<Value> = EntitySet::new();
        let mut needed: EntitySet<Value> = EntitySet::new();
        for inst in self.first.iter() {
            early.extend(self.reads(inst));
        }
        let carried_early = |halves: &Self, value: Value, early: &EntitySet<Value>| {
            let params = &halves.func.dfg.blocks[halves.body].params[1..];
            let mut pairs = params.iter().zip(&halves.yields);
            pairs.any(|(&param, &y)| y == value && early.contains(param))
        };
        for &inst in self.list.iter().rev() {
            let reads = self.reads(inst);
            if self.second.contains(inst) {
                needed.extend(reads);
                continue;
            }
            let data = &self.func.dfg.insts[inst];
            let is_behind = data.results.iter().any(|&v| self.behind.contains(v));
            let may = match data.class() {
                OpClass::Shape => true,
                _ => !is_behind && (data.is_pure() || data.only_reads()),
            };
            let is_held = |v: &Value| needed.contains(*v) || self.yields.contains(v);
            let gain = data.results.iter().filter(|v| is_held(v));
            let gain: u64 = gain.map(|&v| self.weight(v)).sum();
            let cost = reads.iter().filter(|v| !is_held(v));
            let cost: u64 = cost.map(|&v| self.weight(v)).sum();
            let sinks = !self.first.contains(inst)
                && may
                && (data.only_reads() || cost <= gain)
                && data
                    .results
                    .iter()
                    .all(|&v| !early.contains(v) && !carried_early(self, v, &early));
            match sinks {
                true => {
                    self.second.insert(inst);
                    needed.extend(reads);
                }
                false => early.extend(reads),
            }
        }
    }

    /// What it takes to carry a value of the body.
    fn weight(&self, value: Value) -> u64 {
        let ty = self.func.dfg.ty(value);
        let bytes = match ty.elem {
            Elem::Ptr(..) => 8,
            elem => elem.bytes(),
        };
        match self.home(value) {
            Home::Outside | Home::Counter => 0,
            Home::Made(inst) if self.second.contains(inst) => 0,
            Home::Made(_) | Home::Carried(_) if ty.is_scalar() => 0,
            Home::Made(_) | Home::Carried(_) => u64::from(bytes) << ty.shape.log2_elements(),
        }
    }

    /// Of the first half and the rest what takes the counter alone and little time to compute again.
    fn cheap(&self) -> EntitySet<Inst> {
        let mut found = EntitySet::new();
        for &inst in self.list {
            let data = &self.func.dfg.insts[inst];
            let is_simple = matches!(
                data.class(),
                OpClass::Constant | OpClass::Elementwise | OpClass::Shape
            );
            let is_scalar = data
                .results
                .iter()
                .all(|&v| self.func.dfg.ty(v).is_scalar());
            let is_cheap = is_scalar || data.op.info().effects.cost < MOST_AGAIN;
            let is_known = |&value: &Value| match self.home(value) {
                Home::Outside | Home::Counter => true,
                Home::Carried(_) => false,
                Home::Made(def) => found.contains(def),
            };
            if data.is_pure()
                && is_simple
                && is_cheap
                && !self.second.contains(inst)
                && self.reads(inst).iter().all(is_known)
            {
                found.insert(inst);
            }
        }
        found
    }

    fn split(self) -> Split {
        let cheap = self.cheap();
        let mut second = self.second.clone();
        let mut crossing: Vec<Value> = Vec::new();
        let mut counter_crosses = false;
        for &inst in self.list.iter().rev() {
            if !second.contains(inst) {
                continue;
            }
            for value in self.reads(inst) {
                match self.home(value) {
                    Home::Outside => {}
                    Home::Counter => counter_crosses = true,
                    Home::Made(def) if cheap.contains(def) => _ = second.insert(def),
                    Home::Made(def) if self.second.contains(def) => {}
                    Home::Made(_) | Home::Carried(_) => crossing.push(value),
                }
            }
        }
        for &value in &self.yields {
            match self.home(value) {
                Home::Outside => {}
                Home::Counter => counter_crosses = true,
                Home::Made(_) if self.is_late(value) => {}
                Home::Made(_) | Home::Carried(_) => crossing.push(value),
            }
        }
        // In one order, whatever the order in which they were found.
        crossing.sort_unstable();
        crossing.dedup();
        let part = |has: &dyn Fn(Inst) -> bool| -> Vec<Inst> {
            let list = self.list.iter().copied();
            list.filter(|&inst| has(inst)).collect()
        };
        let rest = part(&|i| !self.first.contains(i) && !self.second.contains(i));
        let elements = |values: &[Value]| -> u64 {
            let all = values.iter();
            let all = all.map(|&v| self.func.dfg.ty(v).shape.elements() as u64);
            all.max().unwrap_or(0)
        };
        let is_behind = |&&inst: &&Inst| {
            let mut results = self.func.dfg.insts[inst].results.iter();
            results.any(|&v| self.behind.contains(v))
        };
        let work = rest.iter().filter(is_behind).map(|&inst| {
            let data = &self.func.dfg.insts[inst];
            let each = elements(&data.args).max(elements(&data.results));
            u64::from(data.op.info().effects.cost) * each
        });
        let work: u64 = work.sum();
        let products = part(&|i| self.is_product(i));
        let sums = products.iter().filter(|&&i| self.first.contains(i));
        let sums: u64 = sums
            .map(|&i| elements(&self.func.dfg.insts[i].results))
            .sum();
        Split {
            body: self.body,
            first: part(&|i| self.first.contains(i)),
            second: part(&|i| second.contains(i)),
            rest,
            yields: self.yields.clone(),
            crossing,
            counter_crosses,
            work: work / sums.max(1),
            products,
        }
    }
}
