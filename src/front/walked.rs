//! What a `for` of Python goes through: what the body puts into a list or takes away is seen by the loop.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, ExprName, StmtFor};
use ruff_text_size::Ranged;

use super::diagnostic::Code;
use super::lower::{Lower, Res, Stop, with_stack};
use super::stmt::Flow;
use super::types::{DType, Ty, own_name};
use super::value::{Const, Value};

/// Where a loop stands.
enum Source<'m> {
    /// In what nobody changes.
    Fixed(std::vec::IntoIter<Value<'m>>),
    /// In a list or the keys of a dictionary, one of [`Lower::walked`]: in front of which place, and how many there were.
    Walked { at: usize, next: usize, len: usize },
    /// In `enumerate(..)`, with the next number.
    Numbered(i128, Box<Source<'m>>),
    /// In `zip(..)`.
    Rows(Vec<Source<'m>>),
}

impl<'m> Lower<'m> {
    /// A `for` of Python, which runs at compile time.
    pub(crate) fn python_for(&mut self, s: &'m StmtFor) -> Res<Flow<'m>> {
        let outer = self.walked.len();
        self.hold_names(&s.iter);
        let source = self.source(&s.iter);
        let flow = source.and_then(|mut source| self.go_through(s, &mut source));
        self.walked.truncate(outer);
        flow
    }

    /// A loop that is walked once for each item.
    pub(crate) fn unrolled(
        &mut self,
        s: &'m StmtFor,
        items: std::vec::IntoIter<Value<'m>>,
    ) -> Res<Flow<'m>> {
        self.go_through(s, &mut Source::Fixed(items))
    }

    fn go_through(&mut self, s: &'m StmtFor, source: &mut Source<'m>) -> Res<Flow<'m>> {
        while let Some(item) = self.next(source, &s.iter)? {
            self.step()?;
            self.assign(&s.target, item, false)?;
            match self.in_host_loop(|lower| with_stack(|| lower.body(&s.body, false)))? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                Flow::Returned(value) => return Ok(Flow::Returned(value)),
                // What is left of the loop is done on the way that has not returned.
                Flow::Maybe(flag, value) => {
                    return self.unless_returned(flag, value, |lower| lower.go_through(s, source));
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Makes lists and dictionaries of the module that an expression names those of the statement that is run, so that what it does
    /// to one is done to what it goes through.
    fn hold_names(&mut self, expr: &'m Expr) {
        if self.frame().function.is_some() {
            return;
        }
        let mut names = Names(Vec::new());
        names.visit_expr(expr);
        for name in names.0 {
            let (id, range) = (name.id.as_str(), name.range);
            if self.local(id).is_some() {
                continue;
            }
            // What it cannot be is told where it is asked for.
            let raised = self.raised;
            let value = self.lookup(id, range);
            self.raised = raised;
            if let Ok(value @ (Value::Tuple(_) | Value::Dict(_))) = value {
                self.bind(id, value, false);
            }
        }
    }

    fn source(&mut self, expr: &'m Expr) -> Res<Source<'m>> {
        if let Expr::Call(call) = expr
            && call.arguments.keywords.is_empty()
            && let Expr::Name(_) = &*call.func
            && let Value::Builtin(builtin) = self.eval(&call.func)?
            && builtin.is_iterator()
        {
            match (builtin.name, &*call.arguments.args) {
                ("enumerate", [list]) => {
                    return Ok(Source::Numbered(0, self.source(list)?.into()));
                }
                ("zip", lists) => {
                    let rows = lists.iter().map(|list| self.source(list));
                    return Ok(Source::Rows(rows.collect::<Res<_>>()?));
                }
                _ => {}
            }
        }
        let value = self.iterable(expr)?;
        let len = match &value {
            Value::Tuple(list) if list.list => list.items.len(),
            Value::Tuple(tuple) => return Ok(Source::Fixed(tuple.items.clone().into_iter())),
            Value::Range(range) => {
                let outer = self.enter(expr.range());
                let items = self.constant_range(range);
                self.enter(outer);
                return Ok(Source::Fixed(items?.into_iter()));
            }
            Value::Dict(dict) if dict.keys().all(|key| is_text(key)) => dict.len(),
            Value::Poison => return Err(Stop::Reported),
            other => return Err(self.no_iterable(other, expr)),
        };
        self.walked.push(value);
        let (at, next) = (self.walked.len() - 1, 0);
        Ok(Source::Walked { at, next, len })
    }

    fn next(&mut self, source: &mut Source<'m>, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        Ok(match source {
            Source::Fixed(items) => items.next(),
            Source::Walked { at, next, len } => {
                let item = match self.walked.get(*at) {
                    Some(Value::Tuple(list)) => list.items.get(*next).cloned(),
                    Some(Value::Dict(dict)) if dict.len() == *len => {
                        let key = dict.get_index(*next).map(|(key, _)| key.as_str());
                        key.map(|key| Value::Const(Const::Str(key.into())))
                    }
                    _ => {
                        let outer = self.enter(expr.range());
                        let d =
                            self.raises(Code::Value, "the dictionary changes its size in the loop");
                        self.enter(outer);
                        return Err(d.help("loop over a copy: `list(..)`").into());
                    }
                };
                *next += 1;
                item
            }
            Source::Numbered(number, list) => {
                let Some(item) = self.next(list, expr)? else {
                    return Ok(None);
                };
                *number += 1;
                Some(Value::tuple(vec![Value::int(*number - 1), item]))
            }
            Source::Rows(lists) => {
                let mut row = Vec::with_capacity(lists.len());
                for list in lists {
                    match self.next(list, expr)? {
                        Some(item) => row.push(item),
                        None => return Ok(None),
                    }
                }
                (!row.is_empty()).then(|| Value::tuple(row))
            }
        })
    }
}

/// The names in an expression.
struct Names<'m>(Vec<&'m ExprName>);

impl<'m> Visitor<'m> for Names<'m> {
    fn visit_expr(&mut self, expr: &'m Expr) {
        self.0.extend(expr.as_name_expr());
        walk_expr(self, expr);
    }
}

/// Whether a key of a dictionary can only be a text: types stand for theirs.
fn is_text(key: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let of_type = |dtype: &DType| own_name(Ty::Num(*dtype), None) == key;
    key.chars().all(is_word) && !DType::ALL.iter().any(of_type)
}
