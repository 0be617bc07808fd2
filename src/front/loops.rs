//! Loops.
//!
//! A run-time loop carries the names that its body assigns and that exist before it. They are found by name first, and
//! the body is walked with all of them as parameters of the region; where one turns out not to change (it is assigned in a
//! branch that is not taken), the region is thrown away and made again without it, so that what is constant stays so.
//! A name that the body defines is gone after the loop.

use ruff_python_ast::{Expr, Stmt, StmtFor, StmtWhile};
use ruff_text_size::{Ranged, TextRange};

use super::branch::same;
use super::constant;
use super::diagnostic::Code;
use super::lower::{Local, Locals, Lower, Res, Stop, with_stack};
use super::stmt::Flow;
use super::types::{DType, Ty, promote_ints, show};
use super::value::{Const, RangeValue, Tensor, Tuple, Value};
use crate::ir::attrs::{Attr, Rounding, make};
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::{self, Block};
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::linear::shape::Shape;

/// Most iterations that one loop is unrolled to.
const MAX_UNROLL: i128 = 1 << 16;

/// Why a name has no value that is the counter of a loop elsewhere.
const LOST: &str = "it is the counter of a loop that has ended";

/// Names that statements assign, each once, in the order of the text.
pub(crate) fn assigned_names<'m>(stmts: &'m [Stmt], names: &mut Vec<&'m str>) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign(s) => s.targets.iter().for_each(|t| target_names(t, names)),
            Stmt::AugAssign(s) => target_names(&s.target, names),
            Stmt::AnnAssign(s) => target_names(&s.target, names),
            Stmt::For(s) => {
                target_names(&s.target, names);
                assigned_names(&s.body, names);
            }
            Stmt::While(s) => assigned_names(&s.body, names),
            Stmt::With(s) => assigned_names(&s.body, names),
            Stmt::If(s) => {
                assigned_names(&s.body, names);
                for clause in &s.elif_else_clauses {
                    assigned_names(&clause.body, names);
                }
            }
            _ => {}
        }
    }
}

fn target_names<'m>(target: &'m Expr, names: &mut Vec<&'m str>) {
    match target {
        Expr::Name(name) if !names.contains(&name.id.as_str()) => names.push(name.id.as_str()),
        Expr::Tuple(t) => t.elts.iter().for_each(|t| target_names(t, names)),
        Expr::List(t) => t.elts.iter().for_each(|t| target_names(t, names)),
        _ => {}
    }
}

/// A value whose tensors are parameters of a region.
#[derive(Clone, Debug)]
enum Carried<'m> {
    Tensor(Ty, Shape),
    Tuple(std::rc::Rc<Tuple<'m>>, Vec<Carried<'m>>),
}

/// What a loop carries.
#[derive(Default)]
struct Carry<'m> {
    names: Vec<(&'m str, Carried<'m>)>,
    inits: Vec<entities::Value>,
    types: Vec<TileType>,
}

/// A counted loop ready to be made.
struct Counted {
    lo: Tensor,
    hi: Tensor,
    step: Tensor,
    /// It counts down: the counter is `lo + hi - iv`.
    down: bool,
    stages: Option<u8>,
}

impl<'m> Lower<'m> {
    pub(crate) fn for_statement(&mut self, s: &'m StmtFor) -> Res<Flow<'m>> {
        if !s.orelse.is_empty() {
            let d = self.error(Code::Unsupported, "`for` has no `else` in kernels");
            return Err(d.help("put the statements behind the loop").into());
        }
        let range = match self.eval(&s.iter)? {
            Value::Range(range) => range,
            Value::Tuple(tuple) => return self.unrolled(s, tuple.items.clone()),
            Value::Poison => return Err(Stop::Reported),
            other => {
                let outer = self.enter(s.iter.range());
                let message = format!("{} cannot be looped over", other.describe());
                let d = self.error(Code::Type, message);
                self.enter(outer);
                return Err(d.help("use range, tl.range or tl.static_range").into());
            }
        };
        let outer = self.enter(s.iter.range());
        let bounds = if range.unroll || self.frame().host {
            self.constant_range(&range).map(Err)
        } else {
            self.counted(&range).map(Ok)
        };
        self.enter(outer);
        match bounds? {
            Err(items) => self.unrolled(s, items),
            Ok(counted) => self.run_time_for(s, &counted),
        }
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
        if count > MAX_UNROLL {
            let message = format!("a loop of {count} iterations cannot be unrolled");
            let d = self.error(Code::Budget, message);
            return Err(d
                .help(format!("at most {MAX_UNROLL} are; use tl.range"))
                .into());
        }
        Ok((0..count).map(|i| Value::int(start + i * step)).collect())
    }

    /// A loop that is walked once for each item.
    fn unrolled(&mut self, s: &'m StmtFor, items: Vec<Value<'m>>) -> Res<Flow<'m>> {
        for item in items {
            self.step()?;
            self.assign(&s.target, item, false)?;
            match with_stack(|| self.body(&s.body, false))? {
                Flow::Next => {}
                Flow::Returned(value) => return Ok(Flow::Returned(value)),
                Flow::Maybe(..) => {
                    let message = "a `return` that depends on data, inside of a loop";
                    let d = self.error(Code::Unsupported, message);
                    return Err(d
                        .help("keep the result in a variable and return after it")
                        .into());
                }
            }
        }
        Ok(Flow::Next)
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
        let lo = self.materialize(lo, dtype, Shape::SCALAR)?;
        let hi = self.materialize(hi, dtype, Shape::SCALAR)?;
        let step = match step {
            Some(n) => self.materialize(&Value::int(n.saturating_abs()), dtype, Shape::SCALAR)?,
            None => self.materialize(&range.step, dtype, Shape::SCALAR)?,
        };
        Ok(Counted {
            lo,
            hi,
            step,
            down,
            stages: range.stages,
        })
    }

    fn run_time_for(&mut self, s: &'m StmtFor, counted: &Counted) -> Res<Flow<'m>> {
        let mut assigned = Vec::new();
        target_names(&s.target, &mut assigned);
        let targets = assigned.len();
        assigned_names(&s.body, &mut assigned);
        let names: Vec<&'m str> = assigned.split_off(targets);
        let names = names
            .into_iter()
            .filter(|name| !assigned.contains(name))
            .collect();
        let iv_ty = counted.lo.ty;
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
            let ends = result.and_then(|()| lower.loop_ends(carry));
            lower.b.switch_to(at);
            let ends = ends?;
            Ok(Made {
                ends: ends.clone(),
                finish: Box::new(move |lower: &mut Lower<'m>, carry: &Carry<'m>| {
                    lower.yield_ends(block, carry, &ends)?;
                    let args: Vec<entities::Value> =
                        bounds.iter().chain(&carry.inits).copied().collect();
                    let mut data = InstData::new(TileOp::For, &args);
                    data.attrs
                        .extend(counted.stages.map(make::stages) as Option<Attr>);
                    data.blocks.push(BlockCall::region(block));
                    lower.b.switch_to(at);
                    let inst = lower.b.inst(data, &[]);
                    Ok(lower.b.func().dfg.insts[inst].results.to_vec())
                }),
            })
        })?;
        for name in assigned {
            self.frame().locals.insert(name, Local::Gone(LOST));
        }
        Ok(Flow::Next)
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
            let ends = result.and_then(|()| lower.loop_ends(carry));
            lower.b.switch_to(at);
            let ends = ends?;
            Ok(Made {
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
            match with_stack(|| self.body(&s.body, false))? {
                Flow::Next => {}
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

    /// Makes a loop that carries those of the names that exist and change, and the scope after it.
    fn carrying<'a>(
        &mut self,
        mut names: Vec<&'m str>,
        range: TextRange,
        walk: impl Fn(&mut Lower<'m>, &Carry<'m>) -> Res<Made<'a, 'm>>,
    ) -> Res<()> {
        self.open_region()?;
        let before = self.frame().locals.clone();
        let messages = self.messages.len();
        // Names that the body leaves without a value: counters of loops inside.
        let mut gone: Vec<&'m str> = Vec::new();
        let result = loop {
            for &name in &gone {
                self.frame().locals.insert(name, Local::Gone(LOST));
            }
            let carry = match self.carry(&names, &before) {
                Ok(carry) => carry,
                Err(stop) => break Err(stop),
            };
            let made = walk(self, &carry);
            let after = std::mem::replace(&mut self.frame().locals, before.clone());
            let made = match made {
                Ok(made) => made,
                Err(stop) => break Err(stop),
            };
            let unchanged: Vec<&'m str> = carry
                .names
                .iter()
                .zip(&made.ends)
                .filter(|(_, end)| end.unchanged)
                .map(|((name, _), _)| *name)
                .collect();
            if !unchanged.is_empty() {
                let lost = |name: &&'m str| matches!(after.get(*name), Some(Local::Gone(_)));
                gone.extend(unchanged.iter().copied().filter(lost));
                names.retain(|name| !unchanged.contains(name));
                self.messages.truncate(messages);
                if let Err(stop) = self.step() {
                    break Err(stop);
                }
                continue;
            }
            break self.after_loop(&carry, made, &before, &after, range);
        };
        self.regions -= 1;
        result
    }

    fn after_loop(
        &mut self,
        carry: &Carry<'m>,
        made: Made<'_, 'm>,
        before: &Locals<'m>,
        after: &Locals<'m>,
        range: TextRange,
    ) -> Res<()> {
        let outer = self.enter(range);
        let results = (made.finish)(self, carry);
        self.enter(outer);
        self.bind_carried(carry, &results?);
        for (name, local) in after {
            match before.get(name) {
                None => {
                    let gone = Local::Gone("it is defined inside of a loop only");
                    self.frame().locals.insert(name, gone);
                }
                Some(_) if matches!(local, Local::Gone(_)) => {
                    self.frame().locals.insert(name, local.clone());
                }
                Some(Local::Bound { value: old, .. })
                    if !carry.names.iter().any(|(carried, _)| carried == name) =>
                {
                    if let Local::Bound { value, .. } = local
                        && !same(old, value)
                    {
                        self.changed_constant(name, old, value, range)?;
                    }
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// A name that is no number before the loop got another value in it.
    fn changed_constant(
        &mut self,
        name: &'m str,
        old: &Value<'m>,
        new: &Value<'m>,
        range: TextRange,
    ) -> Res<()> {
        self.bind(name, Value::Poison, false);
        if matches!(old, Value::Poison) || matches!(new, Value::Poison) {
            return Ok(());
        }
        let outer = self.enter(range);
        let (old, new) = (old.describe(), new.describe());
        let message = format!("`{name}` is {old} before the loop and {new} after an iteration");
        let d = self.error(Code::Loop, message);
        self.enter(outer);
        self.report(
            d.help("give it a value of the final type before the loop")
                .into(),
        )
    }

    /// The names that can be carried, with their first values.
    fn carry(&mut self, names: &[&'m str], before: &Locals<'m>) -> Res<Carry<'m>> {
        let mut carry = Carry::default();
        for &name in names {
            if let Some(Local::Bound {
                value,
                fixed: false,
            }) = before.get(name)
                && let Some(carried) = self.carried(value, &mut carry)?
            {
                carry.names.push((name, carried));
            }
        }
        Ok(carry)
    }

    fn carried(&mut self, value: &Value<'m>, carry: &mut Carry<'m>) -> Res<Option<Carried<'m>>> {
        match value {
            Value::Tensor(_)
            | Value::Known(_)
            | Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => {
                let t = self.tensor(value)?;
                carry.inits.push(t.value);
                carry.types.push(self.tile_type(t.ty, t.shape)?);
                Ok(Some(Carried::Tensor(t.ty, t.shape)))
            }
            Value::Tuple(tuple) if tuple.items.iter().all(can_be_carried) => {
                let mut items = Vec::new();
                for item in &tuple.items {
                    items.extend(self.carried(item, carry)?);
                }
                Ok(Some(Carried::Tuple(tuple.clone(), items)))
            }
            _ => Ok(None),
        }
    }

    /// Gives the carried names the values of a region's parameters, or of the loop's results.
    fn bind_carried(&mut self, carry: &Carry<'m>, values: &[entities::Value]) {
        let mut values = values.iter().copied();
        for (name, carried) in &carry.names {
            let value = rebuild(carried, &mut values);
            self.bind(name, value, false);
        }
    }

    /// What the carried names are at the end of the body.
    fn loop_ends(&mut self, carry: &Carry<'m>) -> Res<Vec<End<'m>>> {
        let block = self.b.block();
        let skip = self.b.func().dfg.blocks[block].params.len() - carry.types.len();
        let params: Vec<entities::Value> = self.b.func().dfg.blocks[block].params[skip..].to_vec();
        let mut params = params.into_iter();
        let mut ends = Vec::new();
        for (name, carried) in &carry.names {
            let start = rebuild(carried, &mut params);
            let value = match self.frame().locals.get(name) {
                Some(Local::Bound { value, .. }) => value.clone(),
                Some(Local::Gone(_)) | None => {
                    ends.push(End {
                        value: Value::Poison,
                        unchanged: true,
                    });
                    continue;
                }
            };
            let unchanged = same(&start, &value);
            ends.push(End { value, unchanged });
        }
        Ok(ends)
    }

    /// Ends a region with the carried names' values.
    fn yield_ends(&mut self, block: Block, carry: &Carry<'m>, ends: &[End<'m>]) -> Res<()> {
        self.b.switch_to(block);
        let mut yields = Vec::new();
        for ((name, carried), end) in carry.names.iter().zip(ends) {
            let mark = yields.len();
            if let Err(stop) = self.push_end(name, carried, &end.value, &mut yields) {
                self.report(stop)?;
                // The kernel is not handed out; anything of the type will do.
                yields.truncate(mark);
                self.push_zeros(carried, &mut yields)?;
            }
        }
        self.b.yield_values(&yields);
        Ok(())
    }

    fn push_end(
        &mut self,
        name: &str,
        carried: &Carried<'m>,
        value: &Value<'m>,
        yields: &mut Vec<entities::Value>,
    ) -> Res<()> {
        match (carried, value) {
            (_, Value::Poison) => Err(Stop::Reported),
            (Carried::Tuple(_, items), Value::Tuple(t)) if t.items.len() == items.len() => items
                .iter()
                .zip(&t.items)
                .try_for_each(|(carried, value)| self.push_end(name, carried, value, yields)),
            (Carried::Tensor(ty, shape), value) => {
                let fits = match self.type_of(value) {
                    Ok((t, s)) => {
                        let weak = matches!(value, Value::Const(_)) && !ty.is_ptr();
                        s == *shape && (t == *ty || weak)
                    }
                    Err(_) => false,
                };
                if !fits {
                    return Err(self.loop_type(name, *ty, *shape, value));
                }
                let t = match ty {
                    Ty::Num(dtype) => self.materialize(value, *dtype, *shape)?,
                    ty => {
                        let t = self.tensor(value)?;
                        self.cast(t, *ty, Rounding::Nearest)?
                    }
                };
                yields.push(t.value);
                Ok(())
            }
            (Carried::Tuple(tuple, _), value) => {
                let (old, new) = (Value::Tuple(tuple.clone()).describe(), value.describe());
                let message =
                    format!("`{name}` is {old} before the loop and {new} after an iteration");
                Err(self.error(Code::Loop, message).into())
            }
        }
    }

    fn loop_type(&self, name: &str, ty: Ty, shape: Shape, value: &Value<'m>) -> Stop {
        let before = show(ty, shape);
        let (after, help) = match self.type_of(value) {
            Ok((t, s)) => {
                let help = match (t, s == shape) {
                    (Ty::Num(d), false) => {
                        let extents: Vec<String> = s.extents().map(|e| e.to_string()).collect();
                        let extents = extents.join(", ");
                        format!(
                            "start with `tl.zeros([{extents}], tl.{})` or `tl.full`",
                            d.name()
                        )
                    }
                    (Ty::Num(d), true) => format!("cast one of them with `.to(tl.{})`", d.name()),
                    (Ty::Ptr { .. }, _) => "give it its final type before the loop".to_owned(),
                };
                (show(t, s), help)
            }
            Err(_) => (
                value.describe(),
                "give it its final type before the loop".to_owned(),
            ),
        };
        let message =
            format!("`{name}` is {before} before the loop and {after} after an iteration");
        let d = self.error(Code::Loop, message);
        d.label("what a loop carries keeps its type")
            .help(help)
            .into()
    }

    fn push_zeros(&mut self, carried: &Carried<'m>, yields: &mut Vec<entities::Value>) -> Res<()> {
        match carried {
            Carried::Tensor(ty, shape) => {
                let zero = self.zero(*ty, *shape)?;
                yields.push(zero.value);
            }
            Carried::Tuple(_, items) => {
                for item in items {
                    self.push_zeros(item, yields)?;
                }
            }
        }
        Ok(())
    }
}

/// A carried name at the end of the body.
#[derive(Clone, Debug)]
struct End<'m> {
    value: Value<'m>,
    unchanged: bool,
}

/// The rest of a loop's making, given the region and what it carries.
type Finish<'a, 'm> = Box<dyn FnOnce(&mut Lower<'m>, &Carry<'m>) -> Res<Vec<entities::Value>> + 'a>;

/// A loop whose body has been walked.
struct Made<'a, 'm> {
    ends: Vec<End<'m>>,
    finish: Finish<'a, 'm>,
}

fn can_be_carried(value: &Value<'_>) -> bool {
    match value {
        Value::Tensor(_) | Value::Known(_) => true,
        Value::Const(c) => matches!(c, Const::Bool(_) | Const::Int(_) | Const::Float(_)),
        Value::Tuple(t) => t.items.iter().all(can_be_carried),
        _ => false,
    }
}

/// A carried value made of the next values.
fn rebuild<'m>(
    carried: &Carried<'m>,
    values: &mut impl Iterator<Item = entities::Value>,
) -> Value<'m> {
    match carried {
        Carried::Tensor(ty, shape) => match values.next() {
            Some(value) => Value::Tensor(Tensor {
                value,
                ty: *ty,
                shape: *shape,
            }),
            None => Value::Poison,
        },
        Carried::Tuple(tuple, items) => {
            let mut tuple = (**tuple).clone();
            tuple.items = items.iter().map(|item| rebuild(item, values)).collect();
            Value::Tuple(tuple.into())
        }
    }
}
