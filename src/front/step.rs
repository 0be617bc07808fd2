//! Statements that change what a name stands for, of a module and of functions at compile time.
//!
//! Values do not change here; such a statement makes a new one of the old. That is the same where nothing else holds the old
//! one: in functions that is counted, for names of the module [`super::changes`] says it. Statements of the module, loops among
//! them, are run when what they leave is asked for.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall, ExprName, Operator, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::constant;
use super::diagnostic::{Code, Severity};
use super::lower::{Local, Lower, Res, Stop};
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
    /// The value of a name after a statement of the module that changes it, which is run in a frame of its own.
    pub(crate) fn after_step(&mut self, name: &'m str, stmt: &'m Stmt) -> Res<Value<'m>> {
        let known = self.messages.len();
        self.body(std::slice::from_ref(stmt), false)?;
        let is_error = |d: &super::diagnostic::Diagnostic| d.severity == Severity::Error;
        let failed = self.messages[known..].iter().position(is_error);
        if let Some(at) = failed {
            let error = self.messages.swap_remove(known + at);
            self.messages.truncate(known);
            return Err(error.into());
        }
        match self.local(name) {
            Some(Ok(value)) if !self.frame().broken => Ok(value),
            // It has not come to it.
            None if !self.frame().broken => self.lookup(name, TextRange::empty(stmt.start())),
            _ => Err(Stop::Reported),
        }
    }

    /// Runs a statement that changes a list or a dictionary, which is what a local name stands for, or one of the module where
    /// its statements are run. None if it is another statement.
    pub(crate) fn change_object(&mut self, stmt: &'m Stmt) -> Option<Res<()>> {
        let root = super::changes::step_of(stmt).filter(|_| self.frame().host)?;
        let name = root.id.as_str();
        let frame = self.frame();
        let is_object = match frame.locals.get(name) {
            Some(Local::Bound {
                value: Value::Tuple(list),
                ..
            }) => is_list(list),
            Some(Local::Bound { value, .. }) => matches!(value, Value::Dict(_)),
            _ => frame.function.is_none(),
        };
        if !is_object {
            return None;
        }
        Some(
            self.changed_object(root, stmt)
                .map(|value| self.bind(name, value, false)),
        )
    }

    fn changed_object(&mut self, root: &'m ExprName, stmt: &'m Stmt) -> Res<Value<'m>> {
        let name = root.id.as_str();
        let element = |lower: &mut Self, target: &'m Expr, change: Change<'_, 'm>| {
            let old = lower.own_object(name, root.range)?;
            lower.with_element(&old, target, change)
        };
        match stmt {
            Stmt::AugAssign(s) => {
                let change = |lower: &mut Self, old: Option<Value<'m>>| {
                    let old = old.ok_or_else(|| lower.no_element(s.target.range()))?;
                    let operand = lower.eval(&s.value)?;
                    lower.check_not_shared(&old)?;
                    lower.augmented(s.op, &old, &operand).map(Some)
                };
                element(self, &s.target, Box::new(change))
            }
            Stmt::Assign(s) if let [target] = &*s.targets => {
                let value = self.eval(&s.value)?;
                element(self, target, Box::new(|_, _| Ok(Some(value))))
            }
            Stmt::Delete(s) if let [target] = &*s.targets => {
                let change = |lower: &mut Self, old: Option<Value<'m>>| match old {
                    Some(_) => Ok(None),
                    None => Err(lower.no_element(target.range())),
                };
                element(self, target, Box::new(change))
            }
            Stmt::Expr(s) if let Expr::Call(call) = &*s.value => {
                let Expr::Attribute(method) = &*call.func else {
                    return Err(self.no_step(call.range()));
                };
                let old = self.own_object(name, root.range)?;
                self.after_method(old, method.attr.as_str(), call)
            }
            other => Err(self.no_step(other.range())),
        }
    }

    /// What a name stands for, which nothing else holds: a list is a value here.
    fn own_object(&mut self, name: &'m str, at: TextRange) -> Res<Value<'m>> {
        let value = self.lookup(name, at)?;
        let in_name = usize::from(self.frame().locals.contains_key(name));
        self.check_held(&value, 1 + in_name)?;
        Ok(value)
    }

    /// An error if more hold a list or a dictionary than are known to.
    pub(crate) fn check_held(&self, value: &Value<'m>, holders: usize) -> Res<()> {
        let held = match value {
            Value::Tuple(list) => Rc::strong_count(list),
            Value::Dict(dict) => Rc::strong_count(dict),
            _ => 0,
        };
        // A loop that goes through it comes to know what becomes of it.
        let walked = self.walked.iter().filter(|walked| is_one(walked, value));
        if held <= holders + walked.count() {
            return Ok(());
        }
        let d = self.error(Code::Unsupported, "a list with several names is changed");
        Err(d.help("make a new one: `x = x + ..`").into())
    }

    fn no_step(&mut self, at: TextRange) -> Stop {
        let outer = self.enter(at);
        let d = self.error(
            Code::Unsupported,
            "it is changed in a way that only Python knows",
        );
        self.enter(outer);
        d.into()
    }

    fn no_element(&mut self, at: TextRange) -> Stop {
        let outer = self.enter(at);
        let d = self.raises(Code::Value, "there is no such element");
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

    /// Lets loops that go through an object go on through what it has become.
    fn walk_on(&mut self, old: &Value<'m>, new: &Value<'m>) {
        let walked = self.walked.iter_mut().filter(|walked| is_one(walked, old));
        walked.for_each(|walked| walked.clone_from(new));
    }

    /// `old op= operand`, which a list is changed by and other values are not.
    pub(crate) fn augmented(
        &mut self,
        op: Operator,
        old: &Value<'m>,
        operand: &Value<'m>,
    ) -> Res<Value<'m>> {
        let new = match (old, operand, op) {
            (Value::Tuple(list), Value::Tuple(more), Operator::Add) if list.list => {
                Value::list(list.items.iter().chain(&more.items).cloned().collect())
            }
            _ => self.binary(op, old, operand)?,
        };
        self.walk_on(old, &new);
        Ok(new)
    }

    fn with_keys(
        &mut self,
        value: &Value<'m>,
        keys: &[&'m Expr],
        at: TextRange,
        change: Change<'_, 'm>,
    ) -> Res<Value<'m>> {
        let new = self.keyed(value, keys, at, change)?;
        self.walk_on(value, &new);
        Ok(new)
    }

    fn keyed(
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
            // The object around holds it too.
            (false, Some(old)) => lower
                .check_held(&old, 2)
                .and_then(|()| lower.with_keys(&old, inner, at, change).map(Some)),
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
                self.check_list(list, at)?;
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
                Ok(Value::list(items))
            }
            _ => Err(self.no_step(at)),
        }
    }

    /// That it is no tuple.
    fn check_list(&mut self, list: &Rc<Tuple<'m>>, at: TextRange) -> Res<()> {
        if list.list {
            return Ok(());
        }
        let outer = self.enter(at);
        let d = self.raises(Code::Type, "a tuple does not change");
        self.enter(outer);
        Err(d.help("make it a list: `[..]`").into())
    }

    /// What a method of a list or a dictionary leaves.
    fn after_method(&mut self, old: Value<'m>, name: &str, call: &'m ExprCall) -> Res<Value<'m>> {
        let new = self.method_of(&old, name, call)?;
        self.walk_on(&old, &new);
        Ok(new)
    }

    fn method_of(&mut self, old: &Value<'m>, name: &str, call: &'m ExprCall) -> Res<Value<'m>> {
        let args = self.items(&call.arguments.args)?;
        let mut named = Vec::new();
        for keyword in &call.arguments.keywords {
            let value = self.eval(&keyword.value)?;
            named.push((keyword.arg.as_ref().map(|name| name.as_str()), value));
        }
        match old {
            Value::Tuple(list) if is_list(list) && named.is_empty() => {
                self.check_list(list, call.range())?;
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
                Ok(Value::list(items))
            }
            Value::Dict(dict) => {
                let mut dict = (**dict).clone();
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

/// Whether two values are one list or dictionary.
fn is_one(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Tuple(a), Value::Tuple(b)) => Rc::ptr_eq(a, b),
        (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

/// Whether it is a list or a tuple, and no object.
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
