//! Assignments: names get values, which get types, and tuples are taken apart.

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use super::diagnostic::Code;
use super::lower::{Local, Lower, Res, Stop};
use super::value::{Const, Value};

impl<'m> Lower<'m> {
    /// Gives a local name a value.
    pub(crate) fn bind(&mut self, name: &'m str, value: Value<'m>, fixed: bool) {
        self.frame()
            .locals
            .insert(name, Local::Bound { value, fixed });
    }

    /// A number given to a name gets a type, those of a tuple too.
    pub(crate) fn settle(&mut self, value: Value<'m>) -> Res<Value<'m>> {
        if self.frame().host {
            return Ok(value);
        }
        match value {
            Value::Const(c @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                Ok(Value::Known(self.typed(&c)?))
            }
            Value::Tuple(t)
                if t.items
                    .iter()
                    .any(|v| matches!(v, Value::Const(_) | Value::Tuple(_))) =>
            {
                self.charge(t.items.len())?;
                let mut tuple = (*t).clone();
                for (i, item) in tuple.items.iter_mut().enumerate() {
                    if !self.is_constant_field(&t, i) {
                        *item = self.settle(item.clone())?;
                    }
                }
                Ok(Value::Tuple(tuple.into()))
            }
            other => Ok(other),
        }
    }

    /// A value that must be known at compile time, in its weak form.
    pub(crate) fn require_constant(
        &mut self,
        value: Value<'m>,
        range: ruff_text_size::TextRange,
    ) -> Res<Value<'m>> {
        match value {
            Value::Known(known) => Ok(Value::Const(known.to_const())),
            Value::Tensor(_) => {
                let what = value.describe();
                let message = format!("expected a compile-time constant, found {what}");
                let outer = self.enter(range);
                let d = self.error(Code::Constant, message);
                self.enter(outer);
                Err(d
                    .help("only what does not depend on data can be `tl.constexpr`")
                    .into())
            }
            Value::Tuple(t) => {
                self.charge(t.items.len())?;
                let items = t.items.iter().cloned();
                let items: Vec<Value<'m>> = items
                    .map(|item| self.require_constant(item, range))
                    .collect::<Res<_>>()?;
                let mut tuple = (*t).clone();
                tuple.items = items;
                Ok(Value::Tuple(tuple.into()))
            }
            other => Ok(other),
        }
    }

    /// Gives a value to a target: a name, or a tuple of targets.
    pub(crate) fn assign(&mut self, target: &'m Expr, value: Value<'m>, fixed: bool) -> Res<()> {
        match target {
            Expr::Name(name) => {
                let name = name.id.as_str();
                self.bind(name, value, fixed);
                Ok(())
            }
            Expr::Tuple(targets) => self.unpack(target, &targets.elts, value, fixed),
            Expr::List(targets) => self.unpack(target, &targets.elts, value, fixed),
            Expr::Attribute(field) => match self.assign_field(field, value)? {
                true => Ok(()),
                false => Err(self.bad_target(target)),
            },
            other => Err(self.bad_target(other)),
        }
    }

    fn unpack(
        &mut self,
        target: &'m Expr,
        targets: &'m [Expr],
        value: Value<'m>,
        fixed: bool,
    ) -> Res<()> {
        let tuple = match value {
            Value::Tuple(tuple) => tuple,
            Value::Poison => return Err(Stop::Reported),
            other => {
                let n = targets.len();
                let message = format!("expected a tuple of {n}, found {}", other.describe());
                return Err(self.error(Code::Type, message).into());
            }
        };
        if let Some(starred) = targets.iter().find(|t| t.is_starred_expr()) {
            return Err(self.bad_target(starred));
        }
        if tuple.items.len() != targets.len() {
            let outer = self.enter(target.range());
            let (n, found) = (targets.len(), tuple.items.len());
            let names = super::kernel::count(n, "name");
            let d = self.error(Code::Type, format!("{names} for a tuple of {found}"));
            self.enter(outer);
            return Err(d.into());
        }
        for (target, item) in targets.iter().zip(&tuple.items) {
            self.assign(target, item.clone(), fixed)?;
        }
        Ok(())
    }

    pub(super) fn bad_target(&mut self, target: &Expr) -> Stop {
        let outer = self.enter(target.range());
        let (message, help) = match target {
            Expr::Subscript(_) => (
                "elements of a block cannot be assigned",
                "make a new block with tl.where",
            ),
            Expr::Attribute(_) => (
                "attributes cannot be assigned",
                "objects do not change; make a new one, or use a local name",
            ),
            Expr::Starred(_) => ("`*name` cannot be assigned to", "name each element"),
            _ => ("this cannot be assigned to", "assign to a name"),
        };
        let d = self.error(Code::Unsupported, message);
        self.enter(outer);
        d.help(help).into()
    }
}
