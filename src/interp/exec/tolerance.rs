//! How far results of other executors may be from the interpreter's: see [`crate::interp::run_bounded`].

mod causes;
mod dots;
mod elements;
mod memory;
mod orders;
mod reach;
mod regions;

pub(super) use memory::combined;
pub(super) use orders::Partials;

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Machine, Outcome, operand};
use crate::device_print::Record;
use crate::interp::error::InterpErrorKind;
use crate::interp::{Bounded, Cause, Distance, Open, float, int};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, Scalar};

/// How far an element may be from what it is elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Off {
    pub(super) by: f64,
    /// Where it came to be that no bound follows, of this element or one that it is made of.
    pub(super) cause: Option<Cause>,
}

impl Off {
    /// Tells where it came to be that no bound follows, if nobody has yet.
    pub(super) fn begun_at(&mut self, inst: Inst, why: Open) {
        if self.by.is_infinite() && self.cause.is_none() {
            self.cause = Some(Cause { inst, why });
        }
    }
}

/// What is known about distances while a kernel runs.
#[derive(Debug)]
pub(in crate::interp) struct Slack {
    /// For each element; empty where all are exact.
    pub(super) values: SecondaryMap<Value, Vec<Off>>,
    /// By address.
    memory: FxHashMap<u64, Distance>,
    /// Whether products may be contracted.
    fused: bool,
    /// Reductions and scans around, whose order is open.
    combining: u32,
    /// Sums that a loop carries of what is reduced in it.
    deferred: FxHashSet<Inst>,
    /// Sums of a product of matrices from zero and something else, which may become its accumulator; with the place of the product
    /// among the terms, and the length of its sums.
    taken: FxHashMap<Inst, (usize, u64)>,
    /// Whether something was printed that is not exact.
    pub(super) is_printed: bool,
    /// Records of values that are not defined.
    pub(super) undefined_records: Vec<(Record, Cause)>,
}

impl Slack {
    /// Of a launch in which everything given is exact.
    pub(in crate::interp) fn new(func: &TileFunction, fused: bool) -> Slack {
        let deferred = if fused {
            deferred_sums(func)
        } else {
            FxHashSet::default()
        };
        Slack {
            values: SecondaryMap::new(),
            memory: FxHashMap::default(),
            fused,
            combining: 0,
            deferred,
            taken: taken_sums(func),
            is_printed: false,
            undefined_records: Vec::new(),
        }
    }

    /// What it comes to.
    pub(in crate::interp) fn finish(self) -> Bounded {
        Bounded {
            elements: self.memory,
            is_printed: self.is_printed,
            undefined_records: self.undefined_records,
        }
    }

    pub(super) fn of(&self, value: Value, i: usize) -> f64 {
        self.off(value, i).by
    }

    pub(super) fn off(&self, value: Value, i: usize) -> Off {
        self.values[value].get(i).copied().unwrap_or_default()
    }

    pub(super) fn is_loose(&self, value: Value) -> bool {
        !self.values[value].is_empty()
    }

    /// An error if one of the values is not exact, as what happens next depends on it.
    pub(super) fn decides(&self, values: &[Value]) -> Outcome<()> {
        match values.iter().any(|&v| self.is_loose(v)) {
            true => Err(self.undecided(values)),
            false => Ok(()),
        }
    }

    /// The error, with what the values come from: something that is not defined rather than something without a bound.
    pub(super) fn undecided(&self, values: &[Value]) -> InterpErrorKind {
        let offs = values.iter().flat_map(|&value| &self.values[value]);
        let causes = offs.filter_map(|off| off.cause);
        InterpErrorKind::Undecided(causes.reduce(|first, next| {
            let is_better = next.why.is_undefined() && !first.why.is_undefined();
            if is_better { next } else { first }
        }))
    }

    pub(super) fn keep(&mut self, address: u64, stored: Scalar, off: Off) {
        let Off { by, cause } = off;
        if by > 0.0 {
            let kept = Distance { stored, by, cause };
            self.memory.insert(address, kept);
        } else {
            self.memory.remove(&address);
        }
    }

    /// Of an element in memory, read as a type.
    pub(super) fn at(&self, address: u64, scalar: Scalar) -> Off {
        match self.memory.get(&address) {
            None => Off::default(),
            Some(&Distance { stored, by, cause }) => Off {
                by: if stored == scalar { by } else { f64::INFINITY },
                cause,
            },
        }
    }
}

/// Sums in loops of a carried value and a reduction: the only ones whose order compilation changes.
fn deferred_sums(func: &TileFunction) -> FxHashSet<Inst> {
    let mut bodies = FxHashSet::default();
    let mut sums = FxHashSet::default();
    for (_, inst) in func.all_insts() {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::For => bodies.extend(data.blocks.iter().map(|call| call.block)),
            TileOp::Fadd => {
                let is_carried = |&value: &Value| {
                    let def = func.dfg.values[value].def;
                    matches!(def, ValueDef::Param(block, _) if bodies.contains(&block))
                };
                let is_reduced = |&value: &Value| is_reduced(func, value);
                if data.args.iter().any(is_carried) && data.args.iter().any(is_reduced) {
                    sums.insert(inst);
                }
            }
            _ => {}
        }
    }
    sums
}

/// Sums of which one term is a product of matrices from zero that nobody else uses, and that does not ask for fewer bits: those that
/// `lower_dots` makes accumulators.
fn taken_sums(func: &TileFunction) -> FxHashMap<Inst, (usize, u64)> {
    if func.insts_with(TileOp::Dot).next().is_none() {
        return FxHashMap::default();
    }
    let mut uses: FxHashMap<Value, u32> = FxHashMap::default();
    for (_, inst) in func.all_insts() {
        for value in func.dfg.uses(inst) {
            *uses.entry(value).or_default() += 1;
        }
    }
    let is_zero = |value: Value| {
        let zero = |value: Value| {
            let def = func.dfg.def_inst(value);
            def.is_some_and(|def| func.dfg.insts[def].value() == Some(&0))
        };
        let def = func.dfg.def_inst(value).map(|def| &func.dfg.insts[def]);
        zero(value) || def.is_some_and(|data| data.op == TileOp::Splat && zero(data.args[0]))
    };
    let sums = func.insts_with(TileOp::Fadd).filter_map(|(_, inst)| {
        let args = &func.dfg.insts[inst].args;
        let inner = |value: Value| {
            let dot = func.dfg.def_inst(value)?;
            let data = &func.dfg.insts[dot];
            let is_here = func.order.block_of(dot) == func.order.block_of(inst);
            let is_alone = is_here && uses.get(&value) == Some(&1);
            let is_full = data.imprecise().is_none();
            if data.op != TileOp::Dot || !is_alone || !is_full || !is_zero(data.args[2]) {
                return None;
            }
            func.dfg.ty(data.args[0]).shape.extents().last()
        };
        let found = args.iter().position(|&arg| inner(arg).is_some())?;
        Some((inst, (found, inner(args[found])?)))
    });
    sums.collect()
}

/// Whether a value is the result of a reduction, in whatever shape.
fn is_reduced(func: &TileFunction, mut value: Value) -> bool {
    while let Some(inst) = func.dfg.def_inst(value) {
        let data = &func.dfg.insts[inst];
        match (data.op, data.args.first()) {
            (TileOp::Reduce, _) => return true,
            (
                TileOp::ExpandDims
                | TileOp::Reshape
                | TileOp::ConvertLayout
                | TileOp::Splat
                | TileOp::Broadcast,
                Some(&from),
            ) => value = from,
            _ => return false,
        }
    }
    false
}

impl<'a> Machine<'a> {
    /// An error if one of the values is not exact, as what happens next depends on it.
    pub(super) fn check_decided(&self, values: &[Value]) -> Outcome<()> {
        self.slack
            .as_ref()
            .map_or(Ok(()), |slack| slack.decides(values))
    }

    /// Runs a reduction or scan, whose order is open or not.
    pub(super) fn combining<T>(
        &mut self,
        is_open: bool,
        run: impl FnOnce(&mut Machine<'a>) -> Outcome<T>,
    ) -> Outcome<T> {
        let levels = u32::from(is_open);
        if let Some(slack) = &mut self.slack {
            slack.combining += levels;
        }
        let result = run(self)?;
        if let Some(slack) = &mut self.slack {
            slack.combining -= levels;
        }
        Ok(result)
    }

    /// Finds the slack of an op's result, which was just computed.
    pub(super) fn widen(
        &mut self,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<()> {
        // While it is out, the op is executed for other operands without any.
        let Some(mut slack) = self.slack.take() else {
            return Ok(());
        };
        let found = self.result_slack(&mut slack, inst, data, result);
        self.slack = Some(slack);
        let mut found = found?;
        for off in &mut found {
            off.begun_at(inst, Open::Unfollowed);
        }
        if let Some(slack) = &mut self.slack {
            let is_exact = found.iter().all(|off| off.by == 0.0);
            slack.values[result] = if is_exact { Vec::new() } else { found };
        }
        Ok(())
    }

    fn result_slack(
        &mut self,
        slack: &mut Slack,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<Off>> {
        let mut loose: SmallVec<[Value; 4]> = SmallVec::new();
        for &value in &data.args {
            if slack.is_loose(value) && !loose.contains(&value) {
                loose.push(value);
            }
        }
        let mut found = match data.op {
            TileOp::Load => return self.load_slack(slack, data),
            TileOp::TensorLoad if !slack.memory.is_empty() => return self.box_slack(slack, data),
            TileOp::AtomicRmw => return self.rmw_slack(slack, inst, data, result),
            TileOp::AtomicCas => return self.cas_slack(slack, data, result),
            TileOp::Dot | TileOp::DotStart => self.dot_slack(slack, data, result)?,
            TileOp::AsyncCopy | TileOp::TensorCopy | TileOp::SharedLoad | TileOp::SharedView
                if !slack.memory.is_empty() =>
            {
                return Err(slack.undecided(&data.args));
            }
            _ if loose.is_empty() => Vec::new(),
            TileOp::DotSum | TileOp::DotDone => return Ok(slack.values[operand(data, 0)?].clone()),
            _ if !data.op.info().is_pure() => return Err(slack.undecided(&loose)),
            TileOp::Icmp | TileOp::Fcmp => self.comparison_slack(slack, data)?,
            // What is taken from where no index is open goes with it.
            TileOp::Gather if !slack.is_loose(operand(data, 1)?) => {
                return self.moved(slack, inst, data, result);
            }
            TileOp::ConvertLayout => return self.moved(slack, inst, data, result),
            op if op.info().effects.class == OpClass::Shape => {
                return self.moved(slack, inst, data, result);
            }
            TileOp::Gather | TileOp::Histogram => vec![f64::INFINITY; self.get(result)?.len()],
            op if elements::is_followed(op, self.func.dfg.ty(result).elem) => {
                self.corners(slack, inst, data, result, &loose)?
            }
            _ => self.all_loose(slack, &loose, result)?,
        };
        match data.op {
            TileOp::Dot | TileOp::DotStart => {}
            _ => self.add_own(slack, inst, data, result, &mut found)?,
        }
        let mut found = self.caused(slack, data, found);
        self.open_quotients(inst, data, result, &mut found)?;
        Ok(found)
    }
}

/// The number that bits stand for; integers are signed, but for truth values.
fn number(elem: Elem, bits: u64) -> f64 {
    match elem {
        Elem::Num(scalar) if scalar.is_float() => float::to_f64(scalar, bits),
        Elem::Num(Scalar::I1) => bits as f64,
        _ => int::signed(elem.bits(), bits) as f64,
    }
}
