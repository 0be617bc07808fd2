//! Loops.
//!
//! A loop over constants is walked once for each. A run-time loop becomes a region that carries the names that its body
//! assigns and that exist before it ([`super::carry`]); a name that the body alone defines is gone after the loop. The
//! counter, where it is read after the loop, is what it was in the last iteration; with no iteration it is what it was before: a
//! number of its type, or the counter of a loop before. Where it was nothing before it is the loop's start. One that the body
//! assigns, or counts another loop with, is carried, so that it is what the last iteration left.

use std::rc::Rc;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt, StmtFor, StmtWhile};
use ruff_text_size::Ranged;

use super::carry::{Carry, WalkedLoop};
use super::constant;
use super::diagnostic::{Code, Severity};
use super::lower::{Gone, Local, Lower, Res, Stop, with_stack};
use super::stmt::Flow;
use super::types::{DType, Ty, promote_ints, show};
use super::value::{Const, RangeValue, Tensor, Value};
use crate::ir::attrs::{Attr, IntPred, Rounding, make};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::limits::UNROLLED_TRIPS;
use crate::linear_layout::shape::Shape;

/// Names that statements assign, each once, in the order of the text.
pub(crate) fn assigned_names<'m>(stmts: &'m [Stmt], names: &mut Vec<&'m str>) {
    Assigned { names }.visit_body(stmts);
}

struct Assigned<'a, 'm> {
    names: &'a mut Vec<&'m str>,
}

impl<'m> Visitor<'m> for Assigned<'_, 'm> {
    fn visit_stmt(&mut self, stmt: &'m Stmt) {
        match stmt {
            Stmt::Assign(s) => s.targets.iter().for_each(|t| target_names(t, self.names)),
            Stmt::AugAssign(s) => target_names(&s.target, self.names),
            Stmt::AnnAssign(s) => target_names(&s.target, self.names),
            Stmt::For(s) => target_names(&s.target, self.names),
            Stmt::With(s) => {
                let targets = s
                    .items
                    .iter()
                    .filter_map(|item| item.optional_vars.as_deref());
                targets.for_each(|target| target_names(target, self.names));
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'m Expr) {
        if let Expr::Named(e) = expr {
            target_names(&e.target, self.names);
        }
        walk_expr(self, expr);
    }
}

/// Names that a target gives values, each once.
pub(crate) fn target_names<'m>(target: &'m Expr, names: &mut Vec<&'m str>) {
    match target {
        Expr::Name(name) if !names.contains(&name.id.as_str()) => names.push(name.id.as_str()),
        Expr::Tuple(t) => t.elts.iter().for_each(|t| target_names(t, names)),
        Expr::List(t) => t.elts.iter().for_each(|t| target_names(t, names)),
        Expr::Starred(s) => target_names(&s.value, names),
        _ => {}
    }
}

/// A counted loop ready to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counted {
    lo: Tensor,
    hi: Tensor,
    step: Tensor,
    /// It counts down: the counter is `lo + hi - iv`.
    down: bool,
    /// It is known to have an iteration.
    runs: bool,
    stages: Option<u8>,
    copies: Option<u8>,
}

/// The counter of a run-time loop that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// The bounds say what it was, and where there was no iteration what it was before.
    Counted(Counted, Before),
    /// The body assigned it: a result of the loop; and what it was before.
    Left(Tensor, Before),
}

/// What a counter was before its loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Before {
    /// Nothing, or the loop has an iteration for certain.
    Nothing,
    /// A number that the type has which the loop counts in.
    Number(Tensor),
    /// The counter of a loop before; the type has all its numbers.
    Counter(Rc<Ended>),
    /// Something else, so that the counter has no value behind the loop.
    Other(Gone),
}

/// Whether a type of integers has all numbers of another.
fn has_all(ty: Ty, other: Ty) -> bool {
    match (ty.dtype(), other.dtype()) {
        _ if ty == other => true,
        (Some(a), Some(b)) if a.is_int() && b.is_int() => {
            let (a, b) = (a.int_range(), b.int_range());
            a.0 <= b.0 && b.1 <= a.1
        }
        _ => false,
    }
}

impl Ended {
    fn ty(&self) -> Ty {
        match self {
            Ended::Counted(counted, _) => counted.lo.ty,
            Ended::Left(left, _) => left.ty,
        }
    }

    fn before(&self) -> &Before {
        match self {
            Ended::Counted(_, before) | Ended::Left(_, before) => before,
        }
    }
}

impl<'m> Lower<'m> {
    pub(crate) fn for_statement(&mut self, s: &'m StmtFor) -> Res<Flow<'m>> {
        if !s.orelse.is_empty() {
            let d = self.error(Code::Unsupported, "`for` has no `else` in kernels");
            return Err(d.help("put the statements behind the loop").into());
        }
        if self.frame().host {
            return self.python_for(s);
        }
        let range = match self.iterable(&s.iter)? {
            Value::Range(range) => range,
            Value::Tuple(tuple) => return self.unrolled(s, tuple.items.clone().into_iter()),
            Value::Poison => return Err(Stop::Reported),
            other => return Err(self.no_iterable(&other, &s.iter)),
        };
        let outer = self.enter(s.iter.range());
        let bounds = if range.unroll {
            self.constant_range(&range).map(Err)
        } else {
            self.counted(&range).map(Ok)
        };
        self.enter(outer);
        match bounds? {
            Err(items) => self.unrolled(s, items.into_iter()),
            Ok(counted) => self.run_time_for(s, &counted),
        }
    }

    /// That something cannot be looped over.
    pub(crate) fn no_iterable(&mut self, value: &Value<'m>, expr: &Expr) -> Stop {
        let outer = self.enter(expr.range());
        let message = format!("{} cannot be looped over", value.describe());
        let d = self.error(Code::Type, message);
        self.enter(outer);
        d.help("use range, tl.range or tl.static_range").into()
    }

    /// The numbers of a range that is unrolled.
    pub(crate) fn constant_range(&self, range: &RangeValue<'m>) -> Res<Vec<Value<'m>>> {
        let number = |value: &Value<'m>, what: &str| {
            let number = value.as_const().and_then(|c| constant::as_int(&c));
            number.ok_or_else(|| {
                let message = format!("the {what} of an unrolled loop must be a constant");
                let d = self.error(Code::Constant, message);
                Stop::from(
                    d.label(format!("found {}", value.describe()))
                        .help("use tl.range"),
                )
            })
        };
        let start = number(&range.start, "start")?;
        let stop = number(&range.stop, "end")?;
        let step = number(&range.step, "step")?;
        if step == 0 {
            return Err(self.error(Code::Value, "the step of a loop is zero").into());
        }
        let distance = if step > 0 {
            stop.saturating_sub(start)
        } else {
            start.saturating_sub(stop)
        };
        let count = match distance {
            ..=0 => 0,
            d => (d - 1) / step.saturating_abs() + 1,
        };
        if count > UNROLLED_TRIPS {
            let message = format!("a loop of {count} iterations cannot be unrolled");
            let d = self.error(Code::Budget, message);
            return Err(d
                .help(format!("at most {UNROLLED_TRIPS} are; use tl.range"))
                .into());
        }
        Ok((0..count).map(|i| Value::int(start + i * step)).collect())
    }

    /// Bounds and step in one integer type; a negative constant step counts down.
    fn counted(&mut self, range: &RangeValue<'m>) -> Res<Counted> {
        let mut dtype = DType::Int32;
        for value in [&range.start, &range.stop, &range.step] {
            match self.type_of(value)? {
                (Ty::Num(d), shape) if d.is_int() && shape.is_scalar() => {
                    dtype = promote_ints(dtype, d);
                }
                (ty, shape) => {
                    let found = show(ty, shape);
                    let message = format!("a loop counts integers, found {found}");
                    return Err(self.error(Code::Type, message).into());
                }
            }
        }
        let step = range.step.as_const().and_then(|c| constant::as_int(&c));
        let (lo, hi, down) = match step {
            Some(0) => return Err(self.error(Code::Value, "the step of a loop is zero").into()),
            Some(n) if n < 0 => (&range.stop, &range.start, true),
            _ => (&range.start, &range.stop, false),
        };
        let most = i128::from(u64::MAX >> (65 - dtype.bits().min(64)));
        if step.is_some_and(|n| n < -most) {
            let message = format!(
                "a loop over {} has no step of -2^{}",
                dtype.name(),
                dtype.bits() - 1
            );
            let d = self.error(Code::Value, message);
            return Err(d.help("a smaller one ends it as soon").into());
        }
        let lo = self.materialize(lo, dtype, Shape::SCALAR)?;
        let hi = self.materialize(hi, dtype, Shape::SCALAR)?;
        let step = match step {
            Some(n) => self.materialize(&Value::int(n.saturating_abs()), dtype, Shape::SCALAR)?,
            None => self.materialize(&range.step, dtype, Shape::SCALAR)?,
        };
        let bound = |value: &Value<'m>| value.as_const().and_then(|c| constant::as_int(&c));
        let (first, last) = if down {
            (&range.stop, &range.start)
        } else {
            (&range.start, &range.stop)
        };
        let runs = matches!((bound(first), bound(last)), (Some(first), Some(last)) if first < last);
        Ok(Counted {
            lo,
            hi,
            step,
            down,
            runs,
            stages: range.stages,
            copies: range.copies,
        })
    }

    fn run_time_for(&mut self, s: &'m StmtFor, counted: &Counted) -> Res<Flow<'m>> {
        let mut targets = Vec::new();
        target_names(&s.target, &mut targets);
        let mut names = Vec::new();
        assigned_names(&s.body, &mut names);
        let counter = match &*s.target {
            Expr::Name(name) => Some(name.id.as_str()),
            _ => None,
        };
        // What the body leaves in its counter is a number of the counter's type, or lost.
        let kept = counter.filter(|name| names.contains(name));
        names.retain(|name| !targets.contains(name));
        let iv_ty = counted.lo.ty;
        let before = match counter {
            Some(name) if !counted.runs => self.count_before(name, iv_ty),
            _ => Before::Nothing,
        };
        // What a counter's name was before the loop is not what it is in it or after it.
        for name in &targets {
            self.frame().locals.insert(name, Local::Gone(Gone::Counter));
        }
        if let Some(name) = kept {
            let start = if counted.down { counted.hi } else { counted.lo };
            let start = self.number_before(&before, iv_ty).unwrap_or(start);
            let start = Value::Tensor(start);
            self.bind(name, start, false);
            names.push(name);
        }
        let iv_tile = self.tile_type(iv_ty, Shape::SCALAR)?;
        let bounds = [counted.lo.value, counted.hi.value, counted.step.value];
        self.carrying(names, s.range, |lower, carry| {
            let params: Vec<TileType> = std::iter::once(iv_tile)
                .chain(carry.types.iter().copied())
                .collect();
            let at = lower.b.block();
            let (block, values) = lower.b.new_block(&params);
            lower.b.switch_to(block);
            let iv = if counted.down {
                let sum = lower.b.iadd(bounds[0], bounds[1]);
                lower.b.isub(sum, values[0])
            } else {
                values[0]
            };
            lower.bind_carried(carry, &values[1..]);
            let iv = lower.block(iv, iv_ty);
            let result = lower.assign(&s.target, iv, false);
            let result = result.and_then(|()| lower.loop_body(&s.body));
            if let Some(name) = kept {
                lower.settle_counter(name);
                lower.lose_unless(name, iv_ty);
            }
            let ends = result.map(|()| lower.loop_ends(carry));
            lower.b.switch_to(at);
            let ends = ends?;
            Ok(WalkedLoop {
                ends: ends.clone(),
                finish: Box::new(move |lower: &mut Lower<'m>, carry: &Carry<'m>| {
                    lower.yield_ends(block, carry, &ends)?;
                    let args: Vec<entities::Value> =
                        bounds.iter().chain(&carry.inits).copied().collect();
                    let mut data = InstData::new(TileOp::For, &args);
                    data.attrs
                        .extend(counted.stages.map(make::stages) as Option<Attr>);
                    data.attrs.extend(counted.copies.map(make::unroll));
                    data.blocks.push(BlockCall::region(block));
                    lower.b.switch_to(at);
                    let inst = lower.b.inst(data, &[]);
                    Ok(lower.b.func().dfg.insts[inst].results.to_vec())
                }),
            })
        })?;
        let ended = match (counter, kept) {
            (Some(name), None) => Some((name, Ended::Counted(*counted, before.clone()))),
            (_, Some(name)) => match self.frame().locals.get(name) {
                Some(Local::Bound {
                    value: Value::Tensor(left),
                    ..
                }) => Some((name, Ended::Left(*left, before.clone()))),
                _ => None,
            },
            (None, None) => None,
        };
        if let Some((name, ended)) = ended {
            let local = match ended.before() {
                Before::Other(why) => Local::Gone(*why),
                _ => Local::Counter(ended),
            };
            self.frame().locals.insert(name, local);
        }
        Ok(Flow::Next)
    }

    /// What a counter is before its loop, which counts in this type.
    fn count_before(&mut self, name: &str, ty: Ty) -> Before {
        let value = match self.frame().locals.get(name) {
            Some(Local::Bound { value, .. }) => value.clone(),
            Some(Local::Counter(ended)) if has_all(ty, ended.ty()) => {
                return Before::Counter(Rc::new(ended.clone()));
            }
            None | Some(Local::Gone(Gone::Later)) => return Before::Nothing,
            Some(Local::Counter(_)) => return Before::Other(Gone::Mixed),
            Some(Local::Gone(_)) => return Before::Other(Gone::LostBefore),
        };
        let number = match value {
            Value::Tensor(t) => (has_all(ty, t.ty) && t.shape.is_scalar()).then_some(t),
            value => {
                let is_whole = value.as_const().is_some_and(|c| matches!(c, Const::Int(_)));
                let dtype = ty.dtype().filter(|_| is_whole);
                dtype.and_then(|dtype| self.materialize(&value, dtype, Shape::SCALAR).ok())
            }
        };
        number.map_or(Before::Other(Gone::Mixed), Before::Number)
    }

    /// The number that a counter was before its loop, in the type of the loop and in the current block.
    fn number_before(&mut self, before: &Before, ty: Ty) -> Option<Tensor> {
        let number = match before {
            Before::Number(number) => *number,
            Before::Counter(ended) => match with_stack(|| self.counter_value(ended)) {
                Value::Tensor(number) => number,
                _ => return None,
            },
            Before::Nothing | Before::Other(_) => return None,
        };
        match number.ty == ty {
            true => Some(number),
            false => self.cast(number, ty, Rounding::Nearest).ok(),
        }
    }

    /// Takes the value of a name away unless it is a number of this type.
    fn lose_unless(&mut self, name: &'m str, ty: Ty) {
        let value = match self.frame().locals.get(name) {
            Some(Local::Bound { value, .. }) => value.clone(),
            _ => return,
        };
        let is_weak = matches!(value, Value::Const(_));
        let is_fit = |found: Ty| found == ty || is_weak && found.dtype().is_some_and(DType::is_int);
        let why = match self.type_of(&value) {
            Ok((found, shape)) if shape.is_scalar() && is_fit(found) => return,
            Ok(left) => Gone::Retyped { counts: ty, left },
            // What is wrong with it has been said.
            Err(_) if matches!(value, Value::Poison) => return,
            Err(_) => Gone::Counter,
        };
        self.frame().locals.insert(name, Local::Gone(why));
    }

    /// The counter of a loop as its last iteration left it; the start of a loop that had none.
    pub(crate) fn last_count(&mut self, name: &str, ended: &Ended) -> Value<'m> {
        let message = format!("`{name}` is the counter of a loop that has ended");
        let d = self.error(Code::Suspicious, message);
        let none = match ended.before() {
            Before::Nothing | Before::Other(_) => "the loop's start",
            Before::Number(_) | Before::Counter(_) => "what it was before",
        };
        let d = d
            .label(format!(
                "what it was in the last iteration, or {none} if there was none"
            ))
            .help("Triton leaves it undefined; give the value to a name of its own in the loop");
        self.add(d.with_severity(Severity::Warning));
        self.counter_value(ended)
    }

    /// The same without a warning, computed in the current block.
    pub(crate) fn counter_value(&mut self, ended: &Ended) -> Value<'m> {
        let (counted, before) = match ended {
            Ended::Counted(counted, before) => (counted, before),
            Ended::Left(left, _) => return Value::Tensor(*left),
        };
        let (lo, hi, step) = (counted.lo.value, counted.hi.value, counted.step.value);
        let signed = counted.lo.ty.dtype().is_some_and(DType::is_signed);
        let less = if signed { IntPred::Slt } else { IntPred::Ult };
        let runs = self.b.icmp(lo, hi, less);
        // The distance of bounds may exceed the signed numbers, but not the unsigned ones. Counted from the end, less
        // than one step before it: with `d` to go, `(d - 1) % step` is behind the last count.
        let bits = counted.lo.ty.bits();
        let ones = self.b.const_bits(u64::MAX >> (64 - bits), self.b.ty(lo));
        let highest = self.b.iadd(hi, ones);
        let distance = self.b.isub(highest, lo);
        let behind = self.b.urem(distance, step);
        let last = self.b.isub(highest, behind);
        let (last, start) = if counted.down {
            let sum = self.b.iadd(lo, hi);
            (self.b.isub(sum, last), hi)
        } else {
            (last, lo)
        };
        let start = self
            .number_before(before, counted.lo.ty)
            .map_or(start, |before| before.value);
        let value = self.b.select(runs, last, start);
        self.block(value, counted.lo.ty)
    }

    /// Makes a name that was a counter a number like any other: what a loop assigns is carried from there.
    pub(crate) fn settle_counter(&mut self, name: &'m str) {
        if let Some(Local::Counter(ended)) = self.frame().locals.get(name) {
            let ended = ended.clone();
            let value = self.counter_value(&ended);
            self.bind(name, value, false);
        }
    }

    pub(crate) fn while_statement(&mut self, s: &'m StmtWhile) -> Res<Flow<'m>> {
        if !s.orelse.is_empty() {
            let d = self.error(Code::Unsupported, "`while` has no `else` in kernels");
            return Err(d.help("put the statements behind the loop").into());
        }
        if self.frame().host {
            return self.host_while(s);
        }
        let mut names = Vec::new();
        assigned_names(&s.body, &mut names);
        self.carrying(names, s.range, |lower, carry| {
            let at = lower.b.block();
            let (first, values) = lower.b.new_block(&carry.types);
            lower.b.switch_to(first);
            lower.bind_carried(carry, &values);
            let cond = lower.loop_condition(&s.test);
            let cond = match cond {
                Ok(cond) => cond,
                Err(stop) => {
                    lower.b.switch_to(at);
                    return Err(stop);
                }
            };
            lower.b.condition(cond, &values);
            let (second, values) = lower.b.new_block(&carry.types);
            lower.b.switch_to(second);
            lower.bind_carried(carry, &values);
            let result = lower.loop_body(&s.body);
            let ends = result.map(|()| lower.loop_ends(carry));
            lower.b.switch_to(at);
            let ends = ends?;
            Ok(WalkedLoop {
                ends: ends.clone(),
                finish: Box::new(move |lower: &mut Lower<'m>, carry: &Carry<'m>| {
                    lower.yield_ends(second, carry, &ends)?;
                    let mut data = InstData::new(TileOp::While, &carry.inits);
                    data.blocks.push(BlockCall::region(first));
                    data.blocks.push(BlockCall::region(second));
                    lower.b.switch_to(at);
                    let inst = lower.b.inst(data, &carry.types);
                    Ok(lower.b.func().dfg.insts[inst].results.to_vec())
                }),
            })
        })?;
        Ok(Flow::Next)
    }

    /// The condition of a run-time loop.
    fn loop_condition(&mut self, test: &'m Expr) -> Res<entities::Value> {
        self.check_names_nothing(test, "the condition of a loop")?;
        let outer = self.enter(test.range());
        let value = self.eval(test);
        let cond = value.and_then(|value| self.condition(&value));
        let result = match cond {
            Ok(Err(value)) => Ok(value),
            Ok(Ok(true)) => {
                let d = self.error(Code::Condition, "the condition of the loop is always true");
                Err(d
                    .help("a loop ends by its condition; kernels have no `break`")
                    .into())
            }
            Ok(Ok(false)) => {
                let value = self.constant(super::value::Known::boolean(false), Shape::SCALAR);
                value.map(|t| t.value)
            }
            Err(stop) => Err(stop),
        };
        self.enter(outer);
        result
    }

    /// A loop at compile time.
    fn host_while(&mut self, s: &'m StmtWhile) -> Res<Flow<'m>> {
        loop {
            self.step()?;
            let value = self.eval(&s.test)?;
            match self.condition(&value)? {
                Ok(false) => return Ok(Flow::Next),
                Ok(true) => {}
                Err(_) => {
                    let message = "the condition is not known at compile time";
                    return Err(self.error(Code::Constant, message).into());
                }
            }
            match self.in_host_loop(|lower| with_stack(|| lower.body(&s.body, false)))? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                flow => return Ok(flow),
            }
        }
    }

    fn loop_body(&mut self, stmts: &'m [Stmt]) -> Res<()> {
        self.frame().loops += 1;
        let flow = with_stack(|| self.body(stmts, false));
        self.frame().loops -= 1;
        // A return inside is an error that has been reported.
        flow.map(|_| ())
    }
}
