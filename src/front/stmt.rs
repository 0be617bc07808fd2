//! Statements one after the other, and which of them are refused; a file has each kind that takes more: [`super::assign`],
//! [`super::if_else`], [`super::loops`].
//!
//! A list of statements ends in one of three ways ([`Flow`]): it goes on, it has returned, or whether it has returned is
//! known at run time. The tile IR has no early return; [`super::if_else`] moves what follows into the other branch.

use ruff_python_ast::{Alias, Expr, Stmt, StmtAssert};
use ruff_text_size::Ranged;

use super::constant;
use super::diagnostic::Code;
use super::lower::{Lower, Res, Stop};
use super::module::is_constexpr;
use super::value::Value;
use crate::ir::entities;

/// The name that an import gives.
fn imported(alias: &Alias) -> &str {
    alias.asname.as_ref().unwrap_or(&alias.name).as_str()
}

/// How a list of statements ends.
#[derive(Clone, Debug)]
pub(crate) enum Flow<'m> {
    /// What follows is next.
    Next,
    /// The function has returned.
    Returned(Value<'m>),
    /// The function has returned if the truth value is true, then with this result.
    Maybe(entities::Value, Value<'m>),
    /// A loop at compile time has ended.
    Break,
    /// An iteration of a loop at compile time has ended.
    Continue,
}

impl<'m> Lower<'m> {
    /// Runs statements. With `tail` the end of the list is the end of the function.
    pub(crate) fn body(&mut self, stmts: &'m [Stmt], tail: bool) -> Res<Flow<'m>> {
        let mut rest = stmts;
        while let Some((stmt, after)) = rest.split_first() {
            rest = after;
            let outer = self.enter(stmt.range());
            let result = self.step().and_then(|()| match stmt {
                Stmt::If(s) => self.if_statement(s, rest, tail),
                stmt => self.statement(stmt).map(|flow| (flow, false)),
            });
            self.enter(outer);
            match result {
                Ok((flow, true)) => return Ok(flow),
                Ok((Flow::Next, false)) => {}
                Ok((Flow::Returned(value), false)) => return Ok(Flow::Returned(value)),
                Ok((flow @ (Flow::Break | Flow::Continue), false)) => return Ok(flow),
                Ok((Flow::Maybe(flag, value), false)) => {
                    return self.unless_returned(flag, value, |lower| lower.body(rest, tail));
                }
                Err(stop) => {
                    self.report(stop)?;
                    self.poison_targets(stmt);
                }
            }
        }
        Ok(if tail {
            Flow::Returned(Value::NONE)
        } else {
            Flow::Next
        })
    }

    /// What a statement that was given up would have named is unknown, silently.
    fn poison_targets(&mut self, stmt: &'m Stmt) {
        let mut names = Vec::new();
        super::loops::assigned_names(std::slice::from_ref(stmt), &mut names);
        if self.frame().host {
            names.extend(super::changes::step_of(stmt).map(|name| name.id.as_str()));
        }
        match stmt {
            Stmt::FunctionDef(f) => names.push(f.name.as_str()),
            Stmt::ClassDef(c) => names.push(c.name.as_str()),
            Stmt::Import(s) => names.extend(s.names.iter().map(imported)),
            Stmt::ImportFrom(s) => names.extend(s.names.iter().map(imported)),
            _ => {}
        }
        for name in names {
            self.bind(name, Value::Poison, false);
        }
    }

    fn statement(&mut self, stmt: &'m Stmt) -> Res<Flow<'m>> {
        if let Some(done) = self.change_object(stmt) {
            return done.map(|()| Flow::Next);
        }
        match stmt {
            Stmt::Expr(s) => {
                // A text that stands alone is a comment, and `...` nothing.
                if !s.value.is_string_literal_expr() && !s.value.is_ellipsis_literal_expr() {
                    self.eval(&s.value)?;
                }
            }
            Stmt::Assign(s) => {
                let value = self.eval(&s.value)?;
                let value = self.settle(value)?;
                for target in &s.targets {
                    self.assign(target, value.clone(), false)?;
                }
            }
            Stmt::AugAssign(s) => {
                let Expr::Name(name) = &*s.target else {
                    return Err(self.bad_target(&s.target));
                };
                let old = self.lookup(name.id.as_str(), name.range)?;
                self.check_not_shared(&old)?;
                let operand = self.eval(&s.value)?;
                let value = self.augmented(s.op, &old, &operand)?;
                let value = self.settle(value)?;
                self.assign(&s.target, value, false)?;
            }
            Stmt::AnnAssign(s) => {
                if let Some(value) = &s.value {
                    let value = self.eval(value)?;
                    if is_constexpr(&s.annotation) && matches!(value, Value::Tensor(_)) {
                        self.warn_of_data(&value, s.range);
                        self.assign(&s.target, value, false)?;
                    } else if is_constexpr(&s.annotation) {
                        let value = self.require_constant(value, s.range)?;
                        self.assign(&s.target, value, true)?;
                    } else {
                        let value = self.settle(value)?;
                        self.assign(&s.target, value, false)?;
                    }
                }
            }
            Stmt::Return(s) => {
                let value = match &s.value {
                    Some(value) => {
                        let value = self.eval(value)?;
                        self.settle(value)?
                    }
                    None => Value::NONE,
                };
                if self.frame().loops > 0 {
                    let d = self.error(Code::Unsupported, "a `return` inside of a run-time loop");
                    return Err(d
                        .help("let a condition end the loop (`while`), and return after it")
                        .into());
                }
                return Ok(Flow::Returned(value));
            }
            Stmt::Pass(_) => {}
            Stmt::For(s) => return self.for_statement(s),
            Stmt::While(s) => return self.while_statement(s),
            Stmt::Assert(s) => self.assertion(s)?,
            Stmt::If(_) => return Err(Stop::Reported),
            Stmt::With(s) => return self.with_statement(s),
            Stmt::Break(_) if self.may_break() => return Ok(Flow::Break),
            Stmt::Continue(_) if self.may_break() => return Ok(Flow::Continue),
            Stmt::Raise(s) => return Err(self.raise(s)),
            other => return Err(self.unsupported_statement(other)),
        }
        Ok(Flow::Next)
    }

    fn unsupported_statement(&self, stmt: &Stmt) -> Stop {
        let (what, help) = match stmt {
            Stmt::Break(_) => (
                "`break`",
                "let the condition of a `while` end the loop, or mask what follows",
            ),
            Stmt::Continue(_) => ("`continue`", "put what follows into an `if`"),
            Stmt::FunctionDef(_) => (
                "a function within a kernel",
                "define it at the top level, with @triton.jit",
            ),
            Stmt::ClassDef(_) => ("a class within a kernel", "define it at the top level"),
            Stmt::Try(_) => ("`try`", "kernels have no exceptions"),
            Stmt::Import(_) | Stmt::ImportFrom(_) => {
                ("an import within a kernel", "import at the top of the file")
            }
            Stmt::Global(_) | Stmt::Nonlocal(_) => (
                "`global` and `nonlocal`",
                "kernels can read constants of the module but not change them",
            ),
            Stmt::Delete(_) => ("`del`", "leave it out"),
            Stmt::Match(_) => ("`match`", "use `if` and `elif`"),
            _ => (
                "this statement",
                "see the page for people who come from Triton",
            ),
        };
        let d = self.error(Code::Unsupported, format!("kernels cannot use {what}"));
        d.help(help).into()
    }

    /// That `list += ..` of Python changes no list that something else holds too.
    pub(crate) fn check_not_shared(&mut self, old: &Value<'m>) -> Res<()> {
        let is_tuple = matches!(old, Value::Tuple(tuple) if !tuple.list);
        match !self.frame().host || is_tuple {
            true => Ok(()),
            // One of the two is in the name, the other is this.
            false => self.check_held(old, 2),
        }
    }

    /// `assert`: at compile time if it can be told then, else a device assertion.
    fn assertion(&mut self, s: &'m StmtAssert) -> Res<()> {
        let test = self.eval(&s.test)?;
        match test.as_const() {
            Some(c) if constant::truth(&c) => Ok(()),
            Some(_) => {
                let message = match &s.msg {
                    Some(msg) => self.eval(msg).map(|v| match v {
                        Value::Const(c) => constant::display(&c),
                        other => other.describe(),
                    })?,
                    None => String::new(),
                };
                let message = format!("assertion failed: {message}");
                let message = message.trim_end_matches([':', ' ']).to_owned();
                Err(self.raises(Code::Assertion, message).into())
            }
            None => {
                let message = match &s.msg {
                    Some(msg) => {
                        let msg = self.eval(msg)?;
                        self.display(&msg)
                    }
                    None => String::new(),
                };
                let test = self.tensor(&test)?;
                self.device_assertion(test, &message)
            }
        }
    }
}
