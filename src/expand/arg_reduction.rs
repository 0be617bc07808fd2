//! Regions of arg-reductions, where it is known which of the two elements comes first.
//!
//! An index that ascends along the axis decides ties: `x > y | x == y & i < j`. Where registers are folded from the lowest bit of the index
//! upwards, all indices on the left are below those on the right, so that `i < j` holds and the rest is `x >= y`. Lanes that exchange what they
//! have by a butterfly know no left and right: they combine as written.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attr, Attrs, FloatPred, IntPred, make};
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::predicates::Outcomes;

/// How a region combines elements that are in order.
#[derive(Default)]
pub(super) struct InOrder {
    /// What instructions become: one comparison of two.
    merged: FxHashMap<Inst, InstData<Tile>>,
    /// Values that are others, which come before them.
    same: FxHashMap<Value, Value>,
    /// What nothing needs any more.
    dropped: EntitySet<Inst>,
}

/// What to do where an instruction of the region stands.
pub(super) enum RegionStep<'a> {
    /// What it does, or this in its place.
    Do(&'a InstData<Tile>),
    /// Its result is this one.
    Same(Value),
    Nothing,
}

/// A comparison and its operands; `is_signed` of integers that the order matters to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Comparison {
    outcomes: Outcomes,
    is_float: bool,
    is_signed: Option<bool>,
    operands: (Value, Value),
}

impl InOrder {
    /// What becomes of the region of `reduce`, if anything.
    pub(super) fn of(tile: &TileFunction, reduce: Inst) -> Option<InOrder> {
        let data = &tile.dfg.insts[reduce];
        let region = data.blocks.first()?.block;
        let axis = usize::from(data.axis().copied().unwrap_or(0));
        let params = &tile.dfg.blocks[region].params;
        let (left, right) = params.split_at(data.args.len());
        let insts = tile.order.insts(region);
        let yields = &tile.dfg.insts[*insts.last()?].args;
        let pairs: Vec<(Value, Value)> = (0..data.args.len())
            .filter(|&i| ascends(tile, data.args[i], axis))
            .map(|i| (i, (left[i], right[i])))
            .filter(|&(i, pair)| chooses(tile, yields[i], pair))
            .map(|(_, pair)| pair)
            .collect();
        let mut found = Finder {
            tile,
            pairs,
            known: FxHashMap::default(),
            comparisons: FxHashMap::default(),
            result: InOrder::default(),
        };
        for &inst in insts {
            found.visit(inst)?;
        }
        if found.known.is_empty() {
            return None;
        }
        let mut result = found.result;
        result.drop_unneeded(tile, region);
        Some(result)
    }

    /// What becomes of an instruction.
    pub(super) fn step<'a>(&'a self, tile: &'a TileFunction, inst: Inst) -> RegionStep<'a> {
        let data = &tile.dfg.insts[inst];
        if self.dropped.contains(inst) {
            return RegionStep::Nothing;
        }
        let result = data.results.first();
        match result.and_then(|result| self.same.get(result)) {
            Some(&value) => RegionStep::Same(value),
            None => RegionStep::Do(self.merged.get(&inst).unwrap_or(data)),
        }
    }

    /// What stands for a value.
    fn resolve(&self, value: Value) -> Value {
        self.same.get(&value).copied().unwrap_or(value)
    }

    fn drop_unneeded(&mut self, tile: &TileFunction, region: Block) {
        let mut needed: EntitySet<Value> = EntitySet::new();
        for &inst in tile.order.insts(region).iter().rev() {
            let data = self.merged.get(&inst).unwrap_or(&tile.dfg.insts[inst]);
            let results = &tile.dfg.insts[inst].results;
            if data.op != TileOp::Yield && !results.iter().any(|&r| needed.contains(r)) {
                self.dropped.insert(inst);
                continue;
            }
            match results.first().and_then(|result| self.same.get(result)) {
                Some(&same) => needed.extend([same]),
                None => needed.extend(data.args.iter().copied()),
            }
        }
    }
}

struct Finder<'a> {
    tile: &'a TileFunction,
    /// Parameters of which the first is below the second.
    pairs: Vec<(Value, Value)>,
    /// Truth values that are known.
    known: FxHashMap<Value, bool>,
    comparisons: FxHashMap<Value, Comparison>,
    result: InOrder,
}

impl Finder<'_> {
    /// Looks at one instruction; none if what is known reaches where it is of no use.
    fn visit(&mut self, inst: Inst) -> Option<()> {
        let data = &self.tile.dfg.insts[inst];
        let args: Vec<Value> = data
            .args
            .iter()
            .map(|&arg| self.result.resolve(arg))
            .collect();
        let truth = |this: &Self, value: &Value| this.known.get(value).copied();
        match (data.op, &args[..], data.results.first()) {
            (TileOp::Icmp | TileOp::Fcmp, &[a, b], Some(&result)) => {
                let comparison = compared(data, (a, b))?;
                let signs = comparison.is_signed;
                let outcome = match () {
                    () if self.pairs.contains(&(a, b)) => Some(Outcomes::LESS),
                    () if self.pairs.contains(&(b, a)) => Some(Outcomes::GREATER),
                    () => None,
                };
                // A range holds no negative numbers, so that signs make no difference.
                match outcome.filter(|_| !comparison.is_float || signs.is_some()) {
                    Some(outcome) => {
                        let holds = comparison.outcomes.contains(outcome);
                        self.known.insert(result, holds);
                    }
                    None => {
                        self.comparisons.insert(result, comparison);
                    }
                }
            }
            (TileOp::And | TileOp::Or, &[a, b], Some(&result)) => {
                let decides = data.op == TileOp::Or;
                match (truth(self, &a), truth(self, &b)) {
                    (Some(known), _) | (_, Some(known)) if known == decides => {
                        self.known.insert(result, known);
                    }
                    (Some(_), Some(known)) => {
                        self.known.insert(result, known);
                    }
                    (Some(_), None) => self.is_same(result, b),
                    (None, Some(_)) => self.is_same(result, a),
                    (None, None) => self.merge(inst, result, (a, b)),
                }
            }
            (TileOp::Select, &[cond, a, b], Some(&result)) if truth(self, &cond).is_some() => {
                let chosen = if truth(self, &cond) == Some(true) {
                    a
                } else {
                    b
                };
                (truth(self, &chosen).is_none()).then_some(())?;
                self.is_same(result, chosen);
            }
            _ if args.iter().any(|arg| truth(self, arg).is_some()) => return None,
            _ => {}
        }
        Some(())
    }

    fn is_same(&mut self, value: Value, other: Value) {
        self.result.same.insert(value, other);
    }

    /// Two comparisons of the same operands are one.
    fn merge(&mut self, inst: Inst, result: Value, (a, b): (Value, Value)) {
        let comparison = |value| self.comparisons.get(&value).copied();
        let (Some(left), Some(right)) = (comparison(a), comparison(b)) else {
            return;
        };
        let is_signed = left.is_signed.or(right.is_signed);
        let both = Comparison {
            outcomes: Outcomes::empty(),
            is_signed,
            ..left
        };
        let agree = |one: Comparison| {
            let signed = one.is_signed.or(is_signed);
            both == Comparison {
                outcomes: Outcomes::empty(),
                is_signed: signed,
                ..one
            }
        };
        if !agree(left) || !agree(right) {
            return;
        }
        let outcomes = match self.tile.dfg.insts[inst].op {
            TileOp::Or => left.outcomes | right.outcomes,
            _ => left.outcomes & right.outcomes,
        };
        let merged = Comparison { outcomes, ..both };
        let Some(pred) = pred(merged) else { return };
        let op = if merged.is_float {
            TileOp::Fcmp
        } else {
            TileOp::Icmp
        };
        let mut data = InstData::new(op, &[merged.operands.0, merged.operands.1]);
        data.attrs.push(pred);
        self.result.merged.insert(inst, data);
        self.comparisons.insert(result, merged);
    }
}

/// Whether the elements of a value ascend along an axis and are not negative: those of a range, repeated along others.
fn ascends(tile: &TileFunction, mut value: Value, mut axis: usize) -> bool {
    loop {
        let ValueDef::Result(inst, _) = tile.dfg.values[value].def else {
            return false;
        };
        let data = &tile.dfg.insts[inst];
        let extent = |value: Value| tile.dfg.ty(value).shape.extent(axis);
        match data.op {
            TileOp::Arange => {
                let start = data.start().copied().unwrap_or(0);
                let end = u64::from(start.unsigned_abs()) + extent(value);
                return 0 <= start && end <= 1 << 31;
            }
            TileOp::Broadcast if extent(data.args[0]) == extent(value) => {}
            TileOp::ExpandDims => match data.axis().map(|&new| usize::from(new)) {
                Some(new) if new < axis => axis -= 1,
                Some(new) if new > axis => {}
                _ => return false,
            },
            _ => return false,
        }
        value = data.args[0];
    }
}

/// Whether a value is one of two, whichever.
fn chooses(tile: &TileFunction, value: Value, (left, right): (Value, Value)) -> bool {
    let is_one = |value: Value| value == left || value == right;
    let ValueDef::Result(inst, _) = tile.dfg.values[value].def else {
        return is_one(value);
    };
    let data = &tile.dfg.insts[inst];
    match (data.op, &data.args[..]) {
        (TileOp::Select, &[_, a, b])
        | (TileOp::Smin | TileOp::Smax | TileOp::Umin | TileOp::Umax, &[a, b]) => {
            is_one(a) && is_one(b)
        }
        _ => false,
    }
}

fn compared(data: &InstData<Tile>, operands: (Value, Value)) -> Option<Comparison> {
    let (outcomes, is_signed) = match (data.ipred(), data.fpred()) {
        (Some(pred), _) => (pred.outcomes(), pred.is_signed()),
        (_, Some(pred)) => (pred.outcomes(), None),
        _ => return None,
    };
    Some(Comparison {
        outcomes,
        is_float: data.op == TileOp::Fcmp,
        is_signed,
        operands,
    })
}

fn pred(comparison: Comparison) -> Option<Attr> {
    let Comparison {
        outcomes,
        is_float,
        is_signed,
        ..
    } = comparison;
    match is_float {
        true => FloatPred::with_outcomes(outcomes).map(make::fpred),
        false => IntPred::with_outcomes(outcomes, is_signed).map(make::ipred),
    }
}
