//! Comparisons, and what is the same object.

use std::rc::Rc;

use ruff_python_ast::{CmpOp, Expr, ExprCompare};

use super::constant;
use super::diagnostic::{Code, Severity};
use super::lower::{Lower, Res, Stop};
use super::merge_branches::same;
use super::value::{Const, Value};

impl<'m> Lower<'m> {
    pub(crate) fn comparison(&mut self, e: &'m ExprCompare) -> Res<Value<'m>> {
        let (op, right) = match (&*e.ops, &*e.comparators) {
            ([op], [right]) => (*op, right),
            _ if self.frame().host => return self.chained(e),
            _ => return Err(self.no_chain()),
        };
        let a = self.eval(&e.left)?;
        let b = self.eval(right)?;
        if matches!(op, CmpOp::Is | CmpOp::IsNot) {
            let one = match (&*e.left, right) {
                (Expr::Name(a), Expr::Name(b)) => Some(a.id == b.id).filter(|one| *one),
                (a, b) => (is_new(a) || is_new(b)).then_some(false),
            };
            return self.identity(op, one, &a, &b);
        }
        self.compare_values(op, &a, &b)
    }

    /// `is` and `is not`; `one` if both sides are the same name, or one of them is made here.
    pub(crate) fn identity(
        &mut self,
        op: CmpOp,
        one: Option<bool>,
        a: &Value<'m>,
        b: &Value<'m>,
    ) -> Res<Value<'m>> {
        self.note_host(a);
        self.note_host(b);
        let host = self.frame().host;
        let is = match one {
            Some(one) => one,
            // Two that are equal may be one object to Python, which nothing here tells.
            None if host && self.may_be_one(a, b) => {
                let message = "only Python knows whether these are one object";
                let d = self.error(Code::Unsupported, message);
                return Err(d.help("compare values with `==`").into());
            }
            None => identical(a, b),
        };
        if !is && same(a, b) {
            let message =
                "`is` asks whether both sides are one object, and these are two that are equal";
            let d = self.error(Code::Suspicious, message);
            let d = d.help("compare values with `==`");
            self.add(d.with_severity(Severity::Warning));
        }
        Ok(Value::bool(is == (op == CmpOp::Is)))
    }

    /// Whether it is not certain if values are the same object: they are equal, and there may be several that are.
    fn may_be_one(&mut self, a: &Value<'m>, b: &Value<'m>) -> bool {
        match (a, b) {
            // A `constexpr` of a number is not the number.
            (Value::Const(c), _) => same(a, b) && (!identical(a, b) || self.wrapped.contains(c)),
            (Value::Tuple(x), Value::Tuple(_)) if x.mark.is_none() => {
                constant_equal(a, b, true) != Some(false)
            }
            (Value::Dict(_), Value::Dict(_)) => constant_equal(a, b, true) != Some(false),
            _ => false,
        }
    }

    /// What depends on numbers of run time and would have to be known.
    fn not_decided(&self, what: &str) -> Stop {
        let message = format!("{what} is decided at compile time, and this depends on data");
        let d = self.error(Code::Constant, message);
        d.help("compare the numbers one by one: `(x == a) | (x == b)`")
            .into()
    }

    /// One comparison of anything.
    pub(crate) fn compare_values(
        &mut self,
        op: CmpOp,
        a: &Value<'m>,
        b: &Value<'m>,
    ) -> Res<Value<'m>> {
        if let (CmpOp::In | CmpOp::NotIn, Value::Path(path), true) = (op, b, self.in_condition)
            && &*path.0 == "os.environ"
        {
            self.asked_environment = true;
            return Ok(Value::bool(op == CmpOp::NotIn));
        }
        self.note_host(a);
        self.note_host(b);
        let host = self.frame().host;
        match op {
            CmpOp::Is | CmpOp::IsNot => self.identity(op, None, a, b),
            CmpOp::In | CmpOp::NotIn => {
                let found = match (a, b) {
                    (_, Value::Tuple(tuple)) => {
                        let found = tuple.items.iter().map(|item| constant_equal(a, item, host));
                        let found: Vec<Option<bool>> = found.collect();
                        match found.contains(&Some(true)) {
                            false if found.contains(&None) => return Err(self.not_decided("`in`")),
                            found => found,
                        }
                    }
                    (Value::Const(Const::Str(a)), Value::Const(Const::Str(b))) => b.contains(&**a),
                    (key, Value::Dict(dict)) => dict.contains_key(&self.key_of(key)?),
                    _ => {
                        let message = format!("`in` looks into a tuple, found {}", b.describe());
                        return Err(self.error(Code::Type, message).into());
                    }
                };
                Ok(Value::bool(found == (op == CmpOp::In)))
            }
            CmpOp::Eq | CmpOp::NotEq if !is_number(a) || !is_number(b) => {
                let Some(equal) = constant_equal(a, b, host) else {
                    return Err(self.not_decided("a comparison of tuples"));
                };
                Ok(Value::bool(equal == (op == CmpOp::Eq)))
            }
            op => match (a, b) {
                (Value::Tuple(x), Value::Tuple(y))
                    if host && x.mark.is_none() && y.mark.is_none() =>
                {
                    self.compare_in_turn(op, &x.items, &y.items)
                }
                _ => self.compare(op, a, b),
            },
        }
    }

    /// The order of tuples: that of the first items that differ, or else of their lengths.
    fn compare_in_turn(&mut self, op: CmpOp, a: &[Value<'m>], b: &[Value<'m>]) -> Res<Value<'m>> {
        for (x, y) in a.iter().zip(b) {
            match constant_equal(x, y, true) {
                Some(true) => {}
                Some(false) => return self.compare_values(op, x, y),
                None => return Err(self.not_decided("a comparison of tuples")),
            }
        }
        let [a, b] = [a, b].map(|items| Value::int(items.len() as i128));
        self.compare(op, &a, &b)
    }
}

/// Whether an expression makes an object that nothing else is.
fn is_new(expr: &Expr) -> bool {
    match expr {
        Expr::List(_) | Expr::ListComp(_) | Expr::Dict(_) => true,
        Expr::Named(e) => is_new(&e.value),
        _ => false,
    }
}

/// Whether it can be compared as a number.
pub(crate) fn is_number(value: &Value<'_>) -> bool {
    match value {
        Value::Const(c) => !matches!(c, Const::None | Const::Str(_)),
        Value::Known(_) | Value::Tensor(_) => true,
        _ => false,
    }
}

/// `is`: whether two values are one object. Of Python's constants only those are that it makes once: `None`, truth
/// values, small integers, and texts of at most one character.
fn identical(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Const(Const::Int(x)), Value::Const(Const::Int(y))) => {
            x == y && (-5..=256).contains(x)
        }
        (Value::Const(Const::Float(_)), Value::Const(_)) => false,
        (Value::Const(Const::Str(x)), Value::Const(Const::Str(y))) => {
            Rc::ptr_eq(x, y) || x == y && x.chars().count() <= 1
        }
        (Value::Tuple(x), Value::Tuple(y)) if x.mark.is_none() => Rc::ptr_eq(x, y),
        _ => same(a, b),
    }
}

/// `==` of what is no number, and of tuples; none where it depends on numbers of run time. On the `host` a list is no tuple.
pub(crate) fn constant_equal(a: &Value<'_>, b: &Value<'_>, host: bool) -> Option<bool> {
    match (a.as_const(), b.as_const()) {
        (Some(x), Some(y)) => Some(constant::compare(CmpOp::Eq, &x, &y).unwrap_or(false)),
        _ => match (a, b) {
            (Value::Tuple(x), Value::Tuple(y)) => {
                if x.items.len() != y.items.len() || host && x.list != y.list {
                    return Some(false);
                }
                let pairs = x.items.iter().zip(&y.items);
                let parts: Vec<Option<bool>> =
                    pairs.map(|(x, y)| constant_equal(x, y, host)).collect();
                if parts.contains(&Some(false)) {
                    return Some(false);
                }
                (!parts.contains(&None)).then_some(true)
            }
            (Value::Dict(x), Value::Dict(y)) => {
                let part = |(key, x)| {
                    y.get(key)
                        .map_or(Some(false), |y| constant_equal(x, y, host))
                };
                let parts: Vec<Option<bool>> = x.iter().map(part).collect();
                match x.len() != y.len() || parts.contains(&Some(false)) {
                    true => Some(false),
                    false => (!parts.contains(&None)).then_some(true),
                }
            }
            (Value::Tensor(_), other) | (other, Value::Tensor(_)) if is_number(other) => None,
            _ => Some(same(a, b)),
        },
    }
}
