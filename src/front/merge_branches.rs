//! What is known after an `if` at run time: its results, and the scope.
//!
//! Where both branches go on, each name that differs becomes a result of the `if`; a name that only one branch defines is gone.

use super::diagnostic::Code;
use super::lower::{Combining, Gone, Local, Locals, Lower, Res, Stop};
use super::stmt::Flow;
use super::types::{DType, Ty, show};
use super::value::{Const, Known, Tensor, Tuple, Value};
use crate::ir::attrs::Rounding;
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::{self, Block};
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// A branch after it was walked.
pub(super) struct Branch<'m> {
    pub(super) block: Block,
    pub(super) flow: Flow<'m>,
    pub(super) locals: Locals<'m>,
}

/// What a name is on one of the ways.
enum Side<'m> {
    /// It has a value.
    Has(Value<'m>),
    /// The way ends before anyone could look.
    Any,
    /// It has none.
    Lacks,
}

/// The results of an `if` being put together.
struct Merge {
    then: Block,
    other: Block,
    /// Results so far, as the branches yield them.
    yields: [Vec<entities::Value>; 2],
    types: Vec<(Ty, Shape)>,
}

/// Where a merged value is found when the `if` is there.
#[derive(Clone, Debug)]
enum Slot<'m> {
    /// The same on both ways.
    Same(Value<'m>),
    /// A result.
    Result(usize),
    /// A tuple of such.
    Tuple(std::rc::Rc<Tuple<'m>>, Vec<Slot<'m>>),
}

/// Why a name has no value behind an `if` after whose branches these are the names.
fn lost_in(name: &str, then: &Locals<'_>, other: &Locals<'_>) -> Gone {
    let of_counter = |locals: &Locals<'_>| match locals.get(name) {
        Some(Local::Counter(_)) => Some(Gone::CounterInBranch),
        Some(Local::Gone(Gone::InLoop | Gone::InBranch | Gone::Later)) => None,
        Some(Local::Gone(why)) => Some(*why),
        Some(Local::Bound { .. }) | None => None,
    };
    let found = of_counter(then).or_else(|| of_counter(other));
    found.unwrap_or(Gone::InBranch)
}

impl<'m> Lower<'m> {
    /// The shape of what is a number to the text: in a function that is mapped over blocks, theirs.
    fn mapped(&self, found: Shape) -> Shape {
        match self.combining {
            Combining::Blocks { shape, .. } if found.is_scalar() => shape,
            _ => found,
        }
    }

    /// The `if` instruction with its results, and the scope after it.
    pub(super) fn merge(
        &mut self,
        cond: entities::Value,
        then: Branch<'m>,
        other: Branch<'m>,
        before: &Locals<'m>,
        result_of: ResultOf,
    ) -> Res<Flow<'m>> {
        let at = self.b.block();
        let mut merge = Merge {
            then: then.block,
            other: other.block,
            yields: [Vec::new(), Vec::new()],
            types: Vec::new(),
        };
        let returned = |flow: &Flow<'m>| matches!(flow, Flow::Returned(_));
        let ended = (returned(&then.flow), returned(&other.flow));
        let mut names = Vec::new();
        let mut counters: Vec<(&'m str, Local<'m>)> = Vec::new();
        if ended != (true, true) {
            let (a, b) = (then.locals.keys(), other.locals.keys());
            for name in a
                .chain(b.filter(|name| !then.locals.contains_key(**name)))
                .copied()
            {
                if let (Some(Local::Gone(a)), Some(Local::Gone(b))) =
                    (then.locals.get(name), other.locals.get(name))
                    && a == b
                {
                    counters.push((name, Local::Gone(*a)));
                    continue;
                }
                // Where a branch keeps the counter of a loop before the `if`, and the other one does not, it is a number.
                let mut kept = None;
                if let Some(Local::Counter(counter)) = before.get(name) {
                    let keeps = |branch: &Branch<'m>| matches!(branch.locals.get(name), Some(Local::Counter(found)) if found == counter);
                    let (a, b) = (keeps(&then), keeps(&other));
                    if (a || ended.0) && (b || ended.1) {
                        counters.push((name, Local::Counter(counter.clone())));
                        continue;
                    }
                    kept = (a || b).then(|| (counter, self.counter_value(counter)));
                }
                let side = |branch: &Branch<'m>, ended| match (branch.locals.get(name), &kept) {
                    _ if ended => Side::Any,
                    (Some(Local::Bound { value, .. }), _) => Side::Has(value.clone()),
                    (Some(Local::Counter(found)), Some((counter, value))) if found == *counter => {
                        Side::Has(value.clone())
                    }
                    _ => Side::Lacks,
                };
                let (a, b) = (side(&then, ended.0), side(&other, ended.1));
                if let (Side::Has(value), Side::Any) | (Side::Any, Side::Has(value)) = (&a, &b)
                    && let Some(Local::Bound { value: old, .. }) = before.get(name)
                    && same(old, value)
                {
                    names.push((name, Some(Slot::Same(value.clone()))));
                    continue;
                }
                let slot = match self.merge_values(&mut merge, a, b, &|| format!("`{name}`")) {
                    Ok(slot) => slot,
                    Err(stop) => {
                        self.report(stop)?;
                        Some(Slot::Same(Value::Poison))
                    }
                };
                names.push((name, slot));
            }
        }
        let flows = (&then.flow, &other.flow);
        let result = self.merge_flows(&mut merge, flows, result_of)?;

        let results: Vec<Tensor> = if self.combining != Combining::No {
            // What is computed has no effects, so that both ways are gone and one result is taken.
            let pairs = merge.yields[0].iter().zip(&merge.yields[1]);
            let chosen = pairs.zip(&merge.types).map(|((&a, &b), &(ty, shape))| {
                let value = self.b.select(cond, a, b);
                Tensor { value, ty, shape }
            });
            chosen.collect()
        } else {
            self.make_if(cond, &merge, at)?
        };

        let mut locals = Locals::default();
        for (name, slot) in names {
            // A constant that a branch gave another value is a number like any other.
            let fixed = matches!(slot, Some(Slot::Same(_)))
                && matches!(before.get(name), Some(Local::Bound { fixed: true, .. }));
            let local = match slot {
                Some(slot) => Local::Bound {
                    value: resolve(slot, &results),
                    fixed,
                },
                None => Local::Gone(lost_in(name, &then.locals, &other.locals)),
            };
            locals.insert(name, local);
        }
        locals.extend(counters);
        self.frame().locals = locals;
        Ok(match result {
            Ended::No => Flow::Next,
            Ended::Yes(value) => Flow::Returned(resolve(value, &results)),
            Ended::Maybe(flag, value) => match resolve(flag, &results) {
                Value::Tensor(flag) => Flow::Maybe(flag.value, resolve(value, &results)),
                // The flag is always made as a result.
                _ => Flow::Next,
            },
        })
    }

    /// The `if` instruction at the end of a block, with its results.
    fn make_if(&mut self, cond: entities::Value, merge: &Merge, at: Block) -> Res<Vec<Tensor>> {
        self.b.switch_to(merge.then);
        self.b.yield_values(&merge.yields[0]);
        self.b.switch_to(merge.other);
        self.b.yield_values(&merge.yields[1]);
        self.b.switch_to(at);
        let types: Vec<TileType> = merge
            .types
            .iter()
            .map(|&(ty, shape)| self.tile_type(ty, shape))
            .collect::<Res<_>>()?;
        let mut data = InstData::new(TileOp::If, &[cond]);
        data.blocks.push(BlockCall::region(merge.then));
        data.blocks.push(BlockCall::region(merge.other));
        let inst = self.b.inst(data, &types);
        let values = self.b.func().dfg.insts[inst].results.clone();
        let typed = merge.types.iter().zip(values);
        Ok(typed
            .map(|(&(ty, shape), value)| Tensor { value, ty, shape })
            .collect())
    }

    fn merge_flows(
        &mut self,
        merge: &mut Merge,
        (a, b): (&Flow<'m>, &Flow<'m>),
        result_of: ResultOf,
    ) -> Res<Ended<'m>> {
        let side = |flow: &Flow<'m>| match flow {
            Flow::Next | Flow::Break | Flow::Continue => Side::Any,
            Flow::Returned(value) | Flow::Maybe(_, value) => Side::Has(value.clone()),
        };
        if matches!((a, b), (Flow::Next, Flow::Next)) {
            return Ok(Ended::No);
        }
        let what = || match result_of {
            ResultOf::Function => "the result of the function".to_owned(),
            ResultOf::Expression => "the value of `.. if .. else ..`".to_owned(),
        };
        let value = self.merge_values(merge, side(a), side(b), &what);
        let value = match value {
            Ok(value) => value.unwrap_or(Slot::Same(Value::NONE)),
            Err(Stop::Error(mut d)) if d.code == Code::Branch => {
                if result_of == ResultOf::Function {
                    d.code = Code::Return;
                }
                self.report(Stop::Error(d))?;
                Slot::Same(Value::Poison)
            }
            Err(stop) => return Err(stop),
        };
        if let (Flow::Returned(_), Flow::Returned(_)) = (a, b) {
            return Ok(Ended::Yes(value));
        }
        let shape = self.mapped(Shape::SCALAR);
        let flag = |flow: &Flow<'m>| match flow {
            Flow::Next | Flow::Break | Flow::Continue => Value::Known(Known::boolean(false)),
            Flow::Returned(_) => Value::Known(Known::boolean(true)),
            Flow::Maybe(flag, _) => Value::Tensor(Tensor {
                value: *flag,
                ty: Ty::Num(DType::Int1),
                shape,
            }),
        };
        let flag = self.add_result(
            merge,
            &Side::Has(flag(a)),
            &Side::Has(flag(b)),
            (Ty::Num(DType::Int1), shape),
        )?;
        Ok(Ended::Maybe(flag, value))
    }

    /// One value from the values of both ways; none if a way lacks it.
    fn merge_values(
        &mut self,
        merge: &mut Merge,
        a: Side<'m>,
        b: Side<'m>,
        what: &dyn Fn() -> String,
    ) -> Res<Option<Slot<'m>>> {
        let (x, y) = match (&a, &b) {
            (Side::Lacks, _) | (_, Side::Lacks) | (Side::Any, Side::Any) => return Ok(None),
            (Side::Has(x), Side::Has(y)) => (x, Some(y)),
            (Side::Has(x), Side::Any) | (Side::Any, Side::Has(x)) => (x, None),
        };
        if let Some(y) = y {
            if matches!(x, Value::Poison) || matches!(y, Value::Poison) {
                return Ok(Some(Slot::Same(Value::Poison)));
            }
            if same(x, y) {
                return Ok(Some(Slot::Same(x.clone())));
            }
        }
        if let Value::Tuple(tuple) = x {
            let others = match y {
                None => None,
                Some(Value::Tuple(t)) if t.is_like(tuple) => Some(t),
                Some(y) => return Err(self.disagree(x, y, what)),
            };
            let (has_a, has_b) = (matches!(a, Side::Has(_)), matches!(b, Side::Has(_)));
            let mut slots = Vec::new();
            for (i, item) in tuple.items.iter().enumerate() {
                let first = Side::Has(item.clone());
                let (p, q) = match (has_a, has_b, others) {
                    (true, true, Some(others)) => (first, Side::Has(others.items[i].clone())),
                    (true, _, _) => (first, Side::Any),
                    (false, _, _) => (Side::Any, first),
                };
                let slot = self.merge_values(merge, p, q, what)?;
                slots.push(slot.unwrap_or(Slot::Same(Value::NONE)));
            }
            return Ok(Some(Slot::Tuple(tuple.clone(), slots)));
        }
        let Some(y) = y else {
            return match x {
                Value::Tensor(t) => {
                    let shape = self.mapped(t.shape);
                    self.add_result(merge, &a, &b, (t.ty, shape)).map(Some)
                }
                x => Ok(Some(Slot::Same(x.clone()))),
            };
        };
        let (Ok((tx, sx)), Ok((ty, sy))) = (self.type_of(x), self.type_of(y)) else {
            return Err(self.disagree(x, y, what));
        };
        // A number of the source text takes the type of the other way.
        let weak = |v: &Value<'m>| {
            matches!(
                v,
                Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_))
            )
        };
        let ty = match (tx, ty) {
            (tx, ty) if tx == ty => tx,
            (Ty::Num(_), Ty::Num(d)) if weak(x) => Ty::Num(d),
            (Ty::Num(d), Ty::Num(_)) if weak(y) => Ty::Num(d),
            _ => return Err(self.disagree(x, y, what)),
        };
        let (sx, sy) = (self.mapped(sx), self.mapped(sy));
        if sx != sy {
            return Err(self.disagree(x, y, what));
        }
        self.add_result(merge, &a, &b, (ty, sx)).map(Some)
    }

    fn disagree(&self, x: &Value<'m>, y: &Value<'m>, what: &dyn Fn() -> String) -> Stop {
        let show = |v: &Value<'m>| match v {
            Value::Tensor(t) => show(t.ty, t.shape),
            v => v.describe(),
        };
        let (x, y) = (show(x), show(y));
        let d = self.error(
            Code::Branch,
            format!("{} is {x} on one way and {y} on the other", what()),
        );
        d.help("both ways through an `if` must give the same type; cast with `.to(...)`")
            .into()
    }

    /// A result of the `if`: each branch yields its value, or zero if it ends before.
    fn add_result(
        &mut self,
        merge: &mut Merge,
        a: &Side<'m>,
        b: &Side<'m>,
        (ty, shape): (Ty, Shape),
    ) -> Res<Slot<'m>> {
        let at = self.b.block();
        let blocks = [merge.then, merge.other];
        for (i, side) in [a, b].into_iter().enumerate() {
            self.b.switch_to(blocks[i]);
            let t = match (side, ty) {
                (Side::Has(value), Ty::Num(dtype)) => self.materialize(value, dtype, shape),
                (Side::Has(value), ty) => {
                    let t = self.tensor(value);
                    let t = t.and_then(|t| self.cast(t, ty, Rounding::Nearest));
                    t.and_then(|t| self.broadcast_to(t, shape))
                }
                (Side::Any | Side::Lacks, ty) => self.zero(ty, shape),
            };
            self.b.switch_to(at);
            merge.yields[i].push(t?.value);
        }
        merge.types.push((ty, shape));
        Ok(Slot::Result(merge.types.len() - 1))
    }
}

/// What the values that branches end with are the result of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultOf {
    Function,
    Expression,
}

/// How the `if` as a whole ends.
enum Ended<'m> {
    No,
    Yes(Slot<'m>),
    Maybe(Slot<'m>, Slot<'m>),
}

fn resolve<'m>(slot: Slot<'m>, results: &[Tensor]) -> Value<'m> {
    match slot {
        Slot::Same(value) => value,
        Slot::Result(i) => results.get(i).map_or(Value::Poison, |&t| Value::Tensor(t)),
        Slot::Tuple(tuple, slots) => {
            let mut tuple = (*tuple).clone();
            tuple.items = slots.into_iter().map(|s| resolve(s, results)).collect();
            Value::Tuple(tuple.into())
        }
    }
}

/// Whether two values are one, so that nothing need be merged.
pub(crate) fn same<'m>(a: &Value<'m>, b: &Value<'m>) -> bool {
    match (a, b) {
        (Value::Const(Const::Float(x)), Value::Const(Const::Float(y))) => {
            x.to_bits() == y.to_bits()
        }
        (Value::Const(x), Value::Const(y)) => {
            std::mem::discriminant(x) == std::mem::discriminant(y) && x == y
        }
        (Value::Known(x), Value::Known(y)) => {
            x.dtype == y.dtype
                && super::constant::bits(x.dtype, x.number)
                    == super::constant::bits(y.dtype, y.number)
        }
        (Value::Tensor(x), Value::Tensor(y)) => x == y,
        (Value::Tuple(x), Value::Tuple(y)) => {
            x.is_like(y) && x.items.iter().zip(&y.items).all(|(x, y)| same(x, y))
        }
        (Value::Type(x), Value::Type(y)) => x == y,
        (Value::ConstType(x), Value::ConstType(y)) => {
            super::constant::compare(ruff_python_ast::CmpOp::Eq, x, y) == Some(true)
        }
        (Value::Function(x), Value::Function(y)) => std::ptr::eq(*x, *y),
        (Value::Class(x), Value::Class(y)) => std::ptr::eq(*x, *y),
        (Value::Member(x), Value::Member(y)) => std::ptr::eq(x.class, y.class) && x.name == y.name,
        (Value::Builtin(x), Value::Builtin(y)) => std::ptr::eq(*x, *y),
        (Value::Path(x), Value::Path(y)) => x == y,
        (Value::Dict(x), Value::Dict(y)) => std::rc::Rc::ptr_eq(x, y),
        (Value::Range(x), Value::Range(y)) => std::rc::Rc::ptr_eq(x, y),
        _ => false,
    }
}
