//! Statements of a module that change the value of a name: what it is after them.
//!
//! Values do not change here; a step makes a new one of the old. [`super::changes`] says for which names that is the same.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::constant;
use super::diagnostic::Code;
use super::lower::{Lower, Res};
use super::value::{Tuple, Value};

/// Methods of lists and dictionaries whose effect is known.
pub(crate) const METHODS: &[&str] = &[
    "append",
    "extend",
    "insert",
    "pop",
    "clear",
    "update",
    "setdefault",
];

/// What becomes of one element, given what it is: a value, or none if it is taken away.
type Change<'a, 'm> =
    Box<dyn FnOnce(&mut Lower<'m>, Option<Value<'m>>) -> Res<Option<Value<'m>>> + 'a>;

impl<'m> Lower<'m> {
    /// The value of a name after a statement that changes it.
    pub(crate) fn after_step(&mut self, name: &'m str, stmt: &'m Stmt) -> Res<Value<'m>> {
        let root = |target: &'m Expr| {
            super::changes::root_of_elements(target).map_or(target.range(), Ranged::range)
        };
        match stmt {
            Stmt::AugAssign(s) if s.target.is_name_expr() => {
                let old = self.lookup(name, s.target.range())?;
                let operand = self.eval(&s.value)?;
                self.binary(s.op, &old, &operand)
            }
            Stmt::AugAssign(s) => {
                let old = self.lookup(name, root(&s.target))?;
                let change = |lower: &mut Self, old: Option<Value<'m>>| {
                    let old = old.ok_or_else(|| lower.no_element(s.target.range()))?;
                    let operand = lower.eval(&s.value)?;
                    lower.binary(s.op, &old, &operand).map(Some)
                };
                self.with_element(&old, &s.target, Box::new(change))
            }
            Stmt::Assign(s) if let [target] = &*s.targets => {
                let old = self.lookup(name, root(target))?;
                let value = self.eval(&s.value)?;
                self.with_element(&old, target, Box::new(|_, _| Ok(Some(value))))
            }
            Stmt::Delete(s) if let [target] = &*s.targets => {
                let old = self.lookup(name, root(target))?;
                let change = |lower: &mut Self, old: Option<Value<'m>>| match old {
                    Some(_) => Ok(None),
                    None => Err(lower.no_element(target.range())),
                };
                self.with_element(&old, target, Box::new(change))
            }
            Stmt::Expr(s) if let Expr::Call(call) = &*s.value => {
                let Expr::Attribute(method) = &*call.func else {
                    return Err(self.no_step(call.range()));
                };
                let old = self.lookup(name, method.value.range())?;
                self.after_method(old, method.attr.as_str(), call)
            }
            other => Err(self.no_step(other.range())),
        }
    }

    fn no_step(&mut self, at: TextRange) -> super::lower::Stop {
        let outer = self.enter(at);
        let d = self.error(
            Code::Unsupported,
            "it is changed in a way that only Python knows",
        );
        self.enter(outer);
        d.into()
    }

    fn no_element(&mut self, at: TextRange) -> super::lower::Stop {
        let outer = self.enter(at);
        let d = self.error(Code::Value, "there is no such element");
        self.enter(outer);
        d.into()
    }

    /// A value with one of its elements changed, which the target names from the outside in.
    fn with_element(
        &mut self,
        value: &Value<'m>,
        target: &'m Expr,
        change: Change<'_, 'm>,
    ) -> Res<Value<'m>> {
        let mut keys = Vec::new();
        let mut at = target;
        while let Expr::Subscript(e) = at {
            keys.push(&*e.slice);
            at = &e.value;
        }
        keys.reverse();
        self.with_keys(value, &keys, target.range(), change)
    }

    fn with_keys(
        &mut self,
        value: &Value<'m>,
        keys: &[&'m Expr],
        at: TextRange,
        change: Change<'_, 'm>,
    ) -> Res<Value<'m>> {
        let Some((key, inner)) = keys.split_first() else {
            return Ok(value.clone());
        };
        let found = self.eval(key)?;
        let change = |lower: &mut Self, old: Option<Value<'m>>| match (inner.is_empty(), old) {
            (true, old) => change(lower, old),
            (false, Some(old)) => lower.with_keys(&old, inner, at, change).map(Some),
            (false, None) => Err(lower.no_element(at)),
        };
        match value {
            Value::Dict(dict) => {
                let key = self.key_of(&found)?;
                let new = change(self, dict.get(&key).cloned())?;
                let mut dict = (**dict).clone();
                self.charge(dict.len())?;
                match new {
                    Some(value) => drop(dict.insert(key, value)),
                    None => drop(dict.shift_remove(&key)),
                }
                Ok(Value::Dict(dict.into()))
            }
            Value::Tuple(list) if is_list(list) => {
                let number = found.as_const().and_then(|c| constant::as_int(&c));
                let place = number.and_then(|n| place_in(n, list.items.len()));
                let Some(place) = place.filter(|place| *place < list.items.len()) else {
                    return Err(self.no_element(at));
                };
                let new = change(self, list.items.get(place).cloned())?;
                let mut items = list.items.clone();
                self.charge(items.len())?;
                match new {
                    Some(value) => items[place] = value,
                    None => drop(items.remove(place)),
                }
                Ok(Value::tuple(items))
            }
            _ => Err(self.no_step(at)),
        }
    }

    /// What a method of a list or a dictionary leaves.
    fn after_method(&mut self, old: Value<'m>, name: &str, call: &'m ExprCall) -> Res<Value<'m>> {
        let args = self.items(&call.arguments.args)?;
        let mut named = Vec::new();
        for keyword in &call.arguments.keywords {
            let value = self.eval(&keyword.value)?;
            named.push((keyword.arg.as_ref().map(|name| name.as_str()), value));
        }
        match old {
            Value::Tuple(list) if is_list(&list) && named.is_empty() => {
                let mut items = list.items.clone();
                self.charge(items.len())?;
                let index = |value: &Value<'m>| value.as_const().and_then(|c| constant::as_int(&c));
                match (name, &*args) {
                    ("append", [item]) => items.push(item.clone()),
                    ("extend", [Value::Tuple(more)]) => items.extend(more.items.iter().cloned()),
                    ("insert", [at, item]) if let Some(at) = index(at) => {
                        let len = items.len() as i128;
                        let at = if at < 0 { at.saturating_add(len) } else { at };
                        items.insert(at.clamp(0, len) as usize, item.clone());
                    }
                    ("pop", []) if !items.is_empty() => drop(items.pop()),
                    ("pop", [at])
                        if let Some(at) = index(at).and_then(|at| place_in(at, items.len())) =>
                    {
                        drop(items.remove(at));
                    }
                    ("clear", []) => items.clear(),
                    _ => return Err(self.no_step(call.range())),
                }
                Ok(Value::tuple(items))
            }
            Value::Dict(dict) => {
                let mut dict = (*dict).clone();
                self.charge(dict.len())?;
                match (name, &*args, named.is_empty()) {
                    ("update", [] | [Value::Dict(_)], _) => {
                        if let [Value::Dict(more)] = &*args {
                            dict.extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
                        }
                        for (key, value) in named {
                            match (key, value) {
                                (Some(key), value) => drop(dict.insert(key.to_owned(), value)),
                                (None, Value::Dict(more)) => {
                                    dict.extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
                                }
                                (None, _) => return Err(self.no_step(call.range())),
                            }
                        }
                    }
                    ("setdefault", [key, value], true) => {
                        let key = self.key_of(key)?;
                        dict.entry(key).or_insert_with(|| value.clone());
                    }
                    ("pop", [key] | [key, _], true) => {
                        let key = self.key_of(key)?;
                        let had = dict.shift_remove(&key).is_some();
                        if !had && args.len() == 1 {
                            return Err(self.no_element(call.range()));
                        }
                    }
                    ("clear", [], true) => dict.clear(),
                    _ => return Err(self.no_step(call.range())),
                }
                Ok(Value::Dict(dict.into()))
            }
            _ => Err(self.no_step(call.range())),
        }
    }
}

/// Whether it is a list or a tuple, which are not told apart, and no object.
fn is_list(tuple: &Rc<Tuple<'_>>) -> bool {
    tuple.class.is_none() && tuple.mark.is_none() && tuple.names.is_empty()
}

/// The place of an element that is counted from the start, or if negative from the end.
fn place_in(number: i128, len: usize) -> Option<usize> {
    let len = len as i128;
    let at = if number < 0 {
        number.saturating_add(len)
    } else {
        number
    };
    (0..len).contains(&at).then_some(at as usize)
}
