//! What runs ahead of a loop: what the addresses and masks of its loads are computed from.

use cranelift_entity::EntitySet;

use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::tile::edit::read_by;

/// Most bytes of a thread that what is loaded for an address may take: it is carried from one iteration to the next.
const MOST_BYTES: u32 = 16;

/// A part of a loop's body that runs ahead.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// Instructions, in order.
    pub insts: Vec<Inst>,
    /// Positions of the carried values that run ahead.
    pub carried: Vec<usize>,
}

/// What values of a loop's body are computed from.
#[derive(Clone)]
pub(super) struct Slice<'a> {
    func: &'a TileFunction,
    body: Block,
    insts: EntitySet<Inst>,
    carried: Vec<usize>,
    /// Loads among what they are computed from, with slices of their own.
    tables: Vec<Inst>,
}

impl<'a> Slice<'a> {
    pub(super) fn new(func: &'a TileFunction, body: Block) -> Slice<'a> {
        Slice {
            func,
            body,
            insts: EntitySet::new(),
            carried: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Adds what a value is computed from; false if that cannot run ahead.
    pub(super) fn add(&mut self, value: Value) -> bool {
        let mut stack = vec![value];
        while let Some(value) = stack.pop() {
            match self.func.dfg.values[value].def {
                ValueDef::Param(block, 0) if block == self.body => {}
                ValueDef::Param(block, number) if block == self.body => {
                    let position = usize::from(number) - 1;
                    if !self.carried.contains(&position) {
                        self.carried.push(position);
                        let last = self.func.order.last(self.body);
                        let yielded = last.map(|y| &self.func.dfg.insts[y].args);
                        match yielded.and_then(|args| args.get(position)) {
                            Some(&next) => stack.push(next),
                            None => return false,
                        }
                    }
                }
                ValueDef::Param(..) => {}
                ValueDef::Result(inst, _) => {
                    if self.func.order.block_of(inst) != Some(self.body) {
                        continue;
                    }
                    if is_table(self.func, inst) {
                        if !self.tables.contains(&inst) {
                            self.tables.push(inst);
                        }
                        continue;
                    }
                    if !only_computes(self.func, inst) {
                        return false;
                    }
                    if self.insts.insert(inst) {
                        read_by(self.func, inst, &mut stack);
                    }
                }
            }
        }
        true
    }

    /// The loads that run one iteration further ahead than the rest, and what they are computed from; none if there are loads
    /// in that, too.
    pub(super) fn tables(&self) -> Option<(Vec<Inst>, Slice<'a>)> {
        let mut slice = Slice::new(self.func, self.body);
        for &table in &self.tables {
            for &arg in &self.func.dfg.insts[table].args {
                if !slice.add(arg) {
                    return None;
                }
            }
        }
        slice
            .tables
            .is_empty()
            .then(|| (self.tables.clone(), slice))
    }

    pub(super) fn ahead(self) -> Ahead {
        let insts = self.func.order.insts(self.body).iter().copied();
        Ahead {
            insts: insts.filter(|&i| self.insts.contains(i)).collect(),
            carried: self.carried,
        }
    }
}

/// Whether the instruction is a load that an address may be computed from.
fn is_table(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let small = data.results.first().is_some_and(|&v| {
        let ty = func.dfg.ty(v);
        let bytes = ty.bytes();
        ty.is_scalar() || bytes <= MOST_BYTES * func.num_threads()
    });
    data.op == TileOp::Load && data.volatile().is_none() && small
}

/// Whether the instruction does nothing but compute: a pure one, or a choice between such.
fn only_computes(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let mut inner = func.regions(inst).flat_map(|block| func.order.insts(block));
    match data.op {
        TileOp::If => inner.all(|&inst| only_computes(func, inst)),
        TileOp::Yield => true,
        _ => data.is_pure(),
    }
}
