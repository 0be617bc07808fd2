//! `if`, `elif`, `else`, `.. if .. else ..`, and early return: which branches are walked, and what follows them.
//!
//! Both branches of an `if` at run time are walked from the same scope and then merged ([`super::merge_branches`]). Where one
//! branch returns and the other goes on, what follows the `if` is walked inside of the branch that goes on. Where a branch has returned or not depending on data, the `if` has a truth
//! value "has returned" among its results and what follows is put under it; results that do not exist on a way are
//! zeros on it. So every statement is walked once, however returns are nested.

use ruff_python_ast::{ElifElseClause, Expr, Stmt, StmtIf};
use ruff_text_size::Ranged;

use super::diagnostic::Code;
use super::lower::{Combining, Locals, Lower, Res, Stop, with_stack};
use super::merge_branches::{Branch, ResultOf};
use super::stmt::Flow;
use super::types::{DType, Ty};
use super::value::Value;
use crate::ir::attrs::Rounding;
use crate::ir::entities::{self, Block};
use crate::limits::EVALUATION_REGIONS;

impl<'m> Lower<'m> {
    /// An `if` with what follows it; the flag says that what follows has been walked.
    pub(crate) fn if_statement(
        &mut self,
        s: &'m StmtIf,
        rest: &'m [Stmt],
        tail: bool,
    ) -> Res<(Flow<'m>, bool)> {
        self.branches(&s.test, &s.body, &s.elif_else_clauses, rest, tail)
    }

    fn branches(
        &mut self,
        test: &'m Expr,
        body: &'m [Stmt],
        clauses: &'m [ElifElseClause],
        rest: &'m [Stmt],
        tail: bool,
    ) -> Res<(Flow<'m>, bool)> {
        let outer = self.enter(test.range());
        let value = self.eval(test);
        let cond = value.and_then(|value| self.choice(&value));
        self.enter(outer);
        let cond = match cond? {
            Ok(true) => return self.body(body, false).map(|flow| (flow, false)),
            Ok(false) => return with_stack(|| self.otherwise(clauses, rest, tail)),
            Err(cond) => cond,
        };
        self.open_region()?;
        let at = self.b.block();
        let before = self.scope()?;
        // A branch that ends the function in both its ways needs to know that nothing follows.
        let last = tail && rest.is_empty();

        let then = self.new_region();
        let flow = with_stack(|| self.body(body, last))?;
        let then = self.close(then, flow, before.clone());
        let other = self.new_region();
        let (flow, _) = with_stack(|| self.otherwise_in_region(clauses, last))?;
        let other = self.close(other, flow, before.clone());
        self.regions -= 1;

        let (then, other, consumed) = self.continue_inside(then, other, rest, tail)?;
        self.b.switch_to(at);
        let flow = self.merge(cond, then, other, &before, ResultOf::Function)?;
        Ok((flow, consumed))
    }

    /// The `elif` and `else` branches where the condition is a constant: they stand in this list of statements.
    fn otherwise(
        &mut self,
        clauses: &'m [ElifElseClause],
        rest: &'m [Stmt],
        tail: bool,
    ) -> Res<(Flow<'m>, bool)> {
        let Some((clause, later)) = clauses.split_first() else {
            return Ok((Flow::Next, false));
        };
        match &clause.test {
            Some(test) => self.branches(test, &clause.body, later, rest, tail),
            None => self.body(&clause.body, false).map(|flow| (flow, false)),
        }
    }

    /// The same inside of a region, where nothing follows them.
    fn otherwise_in_region(
        &mut self,
        clauses: &'m [ElifElseClause],
        last: bool,
    ) -> Res<(Flow<'m>, bool)> {
        let Some((clause, later)) = clauses.split_first() else {
            return Ok(match last {
                true => (Flow::Returned(Value::NONE), false),
                false => (Flow::Next, false),
            });
        };
        let result = match &clause.test {
            Some(test) => self.branches(test, &clause.body, later, &[], last),
            None => self.body(&clause.body, last).map(|flow| (flow, false)),
        };
        match result {
            Ok((Flow::Next, consumed)) if last => Ok((Flow::Returned(Value::NONE), consumed)),
            Err(stop) => {
                self.report(stop)?;
                Ok((Flow::Next, false))
            }
            other => other,
        }
    }

    /// What follows an `if` of which one branch returns goes into the other.
    fn continue_inside(
        &mut self,
        mut then: Branch<'m>,
        mut other: Branch<'m>,
        rest: &'m [Stmt],
        tail: bool,
    ) -> Res<(Branch<'m>, Branch<'m>, bool)> {
        let open = match (&then.flow, &other.flow) {
            (Flow::Returned(_), Flow::Next) => &mut other,
            (Flow::Next, Flow::Returned(_)) => &mut then,
            _ => return Ok((then, other, false)),
        };
        self.b.switch_to(open.block);
        self.frame().locals = std::mem::take(&mut open.locals);
        self.regions += 1;
        let flow = with_stack(|| self.body(rest, tail))?;
        self.regions -= 1;
        open.flow = flow;
        open.locals = std::mem::take(&mut self.frame().locals);
        Ok((then, other, true))
    }

    /// What follows statements that have returned if `flag` is true.
    pub(crate) fn unless_returned(
        &mut self,
        flag: entities::Value,
        value: Value<'m>,
        rest: impl FnOnce(&mut Self) -> Res<Flow<'m>>,
    ) -> Res<Flow<'m>> {
        self.open_region()?;
        let at = self.b.block();
        let before = self.scope()?;
        let then = self.new_region();
        let then = self.close(then, Flow::Returned(value), before.clone());
        let other = self.new_region();
        let flow = with_stack(|| rest(self))?;
        let other = self.close(other, flow, before.clone());
        self.regions -= 1;
        self.b.switch_to(at);
        self.merge(flag, then, other, &before, ResultOf::Function)
    }

    pub(crate) fn open_region(&mut self) -> Res<()> {
        if self.regions >= EVALUATION_REGIONS {
            let message =
                format!("loops and conditions are nested more than {EVALUATION_REGIONS} deep");
            let d = self.error(Code::Budget, message);
            // What follows would be as deep, and lacks the names that are given here.
            return self.abort(d.help(
                "each `elif` and each `return` under a condition nests what follows it: move parts to functions, \
                 choose values with tl.where, or decide by constants",
            ));
        }
        self.regions += 1;
        Ok(())
    }

    /// A copy of the scope; what it costs counts.
    pub(crate) fn scope(&mut self) -> Res<Locals<'m>> {
        let locals = self.frame().locals.clone();
        self.charge(locals.len())?;
        Ok(locals)
    }

    /// A new region, in which instructions are appended from now on; in a combining function, which has none, this place.
    fn new_region(&mut self) -> Block {
        if self.combining != Combining::No {
            return self.b.block();
        }
        let (block, _) = self.b.new_block(&[]);
        self.b.switch_to(block);
        block
    }

    /// A branch with its scope; the scope before it is restored.
    fn close(&mut self, block: Block, flow: Flow<'m>, before: Locals<'m>) -> Branch<'m> {
        let locals = std::mem::replace(&mut self.frame().locals, before);
        Branch {
            block,
            flow,
            locals,
        }
    }

    /// The condition of an `if`: a constant, or a value of the IR. In a function that is mapped over blocks it may differ
    /// between their elements.
    pub(crate) fn choice(&mut self, value: &Value<'m>) -> Res<Result<bool, entities::Value>> {
        let Combining::Blocks { shape, .. } = self.combining else {
            return self.condition(value);
        };
        match value {
            Value::Tensor(t) => {
                let chose = true;
                self.combining = Combining::Blocks { shape, chose };
                let t = self.cast(*t, Ty::Num(DType::Int1), Rounding::Nearest)?;
                Ok(Err(self.broadcast_to(t, shape)?.value))
            }
            value => self.condition(value),
        }
    }

    /// `a if test else b` with a test at run time: an `if` with one result.
    pub(crate) fn conditional(
        &mut self,
        cond: entities::Value,
        a: &'m Expr,
        b: &'m Expr,
    ) -> Res<Value<'m>> {
        for side in [a, b] {
            self.check_names_nothing(side, "one side of a choice at run time")?;
        }
        self.open_region()?;
        let at = self.b.block();
        let before = self.scope()?;
        let side = |lower: &mut Self, expr: &'m Expr| {
            let block = lower.new_region();
            let value = lower.eval(expr).and_then(|value| lower.settle(value));
            let flow = value.map(Flow::Returned);
            flow.map(|flow| lower.close(block, flow, before.clone()))
        };
        let then = side(self, a);
        let other = then.is_ok().then(|| side(self, b));
        self.b.switch_to(at);
        self.regions -= 1;
        let then = then?;
        let other = other.unwrap_or(Err(Stop::Reported))?;
        let locals = self.frame().locals.clone();
        let flow = self.merge(cond, then, other, &before, ResultOf::Expression)?;
        self.frame().locals = locals;
        match flow {
            Flow::Returned(Value::Poison) => Err(Stop::Reported),
            Flow::Returned(value) => Ok(value),
            // Both sides have a value.
            _ => Err(Stop::Reported),
        }
    }
}
