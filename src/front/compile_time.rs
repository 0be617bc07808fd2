//! Python at compile time: functions that are no kernels' run on constants.
//!
//! What kernels lack is there for them: `break` and `continue`, `raise`, chained comparisons, dictionaries, lists of
//! several `for`. None of it makes code, so that nothing of it may stand under a condition that is only known at run time.

use indexmap::IndexMap;
use ruff_python_ast::{Comprehension, Expr, ExprCall, ExprCompare, ExprDict, StmtRaise};
use ruff_text_size::{Ranged, TextRange};

use super::constant;
use super::diagnostic::{Code, Diagnostic, Severity};
use super::lower::{Lower, Res, Stop};
use super::value::{Const, Value};

/// What keys of dictionaries begin with that are numbers, or nothing.
pub(crate) const NO_TEXT: char = '\u{0}';

/// A number as a key: a float that is whole is the whole number.
fn number_key(number: &Const) -> Option<String> {
    if let Some(whole) = constant::as_int(number) {
        return Some(whole.to_string());
    }
    let float = constant::as_float(number)?;
    let is_whole = float.fract() == 0.0 && float.abs() < (1_u64 << 53) as f64;
    Some(match is_whole {
        true => (float as i64).to_string(),
        false => float.to_string(),
    })
}

impl<'m> Lower<'m> {
    /// Whether the statement is in a loop that runs at compile time, with nothing of run time between.
    pub(crate) fn may_break(&mut self) -> bool {
        let regions = self.regions;
        let frame = self.frame();
        frame.host && frame.host_loop == Some(regions)
    }

    /// Runs the body of a loop at compile time.
    pub(crate) fn in_host_loop<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let regions = self.regions;
        let outer = self.frame().host_loop.replace(regions);
        let result = run(self);
        self.frame().host_loop = outer;
        result
    }

    /// `raise`, where it is certain to be reached: an error with its message.
    pub(crate) fn raise(&mut self, s: &'m StmtRaise) -> Stop {
        if self.regions > 0 {
            let d = self.error(Code::Unsupported, "kernels cannot use `raise` at run time");
            return d
                .help("use tl.static_assert at compile time, tl.device_assert at run time")
                .into();
        }
        let message = match s.exc.as_deref() {
            Some(Expr::Call(call)) => {
                let what = super::module::last_name(&call.func).unwrap_or("an exception");
                let first = call.arguments.args.first().map(|arg| self.eval(arg));
                match first {
                    Some(Ok(value)) => format!("{what}: {}", self.display(&value)),
                    _ => what.to_owned(),
                }
            }
            Some(other) => super::module::last_name(other)
                .unwrap_or("an exception")
                .to_owned(),
            None => "an exception".to_owned(),
        };
        let who = match self.frame().function {
            Some(_) => "kernel",
            None => "module",
        };
        self.raises(Code::Assertion, format!("the {who} raises {message}"))
            .into()
    }

    /// `a < b < c` of constants.
    pub(crate) fn chained(&mut self, e: &'m ExprCompare) -> Res<Value<'m>> {
        let mut left = self.eval(&e.left)?;
        for (op, right) in e.ops.iter().zip(&e.comparators) {
            let right = self.eval(right)?;
            let holds = self.compare_values(*op, &left, &right)?;
            match holds.as_const() {
                Some(c) if constant::truth(&c) => left = right,
                Some(_) => return Ok(Value::bool(false)),
                None => return Err(self.no_chain()),
            }
        }
        Ok(Value::bool(true))
    }

    /// The error for a chain of comparisons at run time.
    pub(crate) fn no_chain(&self) -> Stop {
        let d = self.error(Code::Unsupported, "comparisons cannot be chained");
        d.help("write `(a < b) & (b < c)`").into()
    }

    /// A dictionary whose keys are texts, whole numbers, or types and tuples of types, which stand for their texts.
    pub(crate) fn dictionary(&mut self, e: &'m ExprDict) -> Res<Value<'m>> {
        let mut dict: IndexMap<String, Value<'m>> = IndexMap::new();
        for item in &e.items {
            let value = self.eval(&item.value)?;
            let Some(key) = &item.key else {
                let Value::Dict(other) = value else {
                    let message = format!("`**` needs a dictionary, found {}", value.describe());
                    return Err(self.error(Code::Type, message).into());
                };
                dict.extend(other.iter().map(|(k, v)| (k.clone(), v.clone())));
                continue;
            };
            let key = self.eval(key)?;
            dict.insert(self.key_of(&key)?, value);
        }
        Ok(Value::Dict(dict.into()))
    }

    /// The text that a key of a dictionary stands for. That of a number begins as no text does.
    pub(crate) fn key_of(&self, key: &Value<'m>) -> Res<String> {
        let is_type = |value: &Value<'m>| matches!(value, Value::Type(_));
        match key {
            Value::Const(Const::Str(key)) => Ok(key.to_string()),
            Value::Tuple(types) if types.items.iter().all(is_type) => Ok(self.display(key)),
            key if is_type(key) => Ok(self.display(key)),
            Value::Const(Const::None) => Ok(format!("{NO_TEXT}None")),
            key => {
                if let Some(number) = key.as_const().and_then(|c| number_key(&c)) {
                    return Ok(format!("{NO_TEXT}{number}"));
                }
                let found = key.describe();
                let message = format!(
                    "the keys of a dictionary are texts, whole numbers or types, found {found}"
                );
                Err(self.error(Code::Unsupported, message).into())
            }
        }
    }

    /// What a `for` of Python, or a function of it, goes through. What can be gone through once alone is made here, where
    /// nothing else comes to hold it.
    pub(crate) fn iterable(&mut self, expr: &'m Expr) -> Res<Value<'m>> {
        if !self.frame().host {
            return self.eval(expr);
        }
        let call = match expr {
            Expr::Generator(e) => return self.comprehension(&e.generators, &e.elt),
            Expr::Call(call) if is_path(&call.func) => call,
            expr => return self.eval(expr),
        };
        let name = match self.eval(&call.func)? {
            Value::Builtin(builtin) if builtin.is_iterator() => builtin.name,
            _ => return self.eval(expr),
        };
        let outer = self.enter(expr.range());
        let value = match (name, &*call.arguments.args) {
            ("filter", [function, items]) => self.filter(function, items),
            (name, lists) => self.rows(name, lists, call),
        };
        self.enter(outer);
        value
    }

    /// What `enumerate`, `zip` and `itertools.product` go through.
    fn rows(&mut self, name: &str, exprs: &'m [Expr], call: &'m ExprCall) -> Res<Value<'m>> {
        let mut lists = Vec::new();
        for expr in exprs {
            let value = self.iterable(expr)?;
            lists.push(self.list_of(&value)?);
        }
        let rows: Vec<Vec<Value<'m>>> = match (name, &*lists, &*call.arguments.keywords) {
            ("enumerate", [items], []) => {
                let pairs = items.iter().enumerate();
                pairs
                    .map(|(i, item)| vec![Value::int(i as i128), item.clone()])
                    .collect()
            }
            ("zip", lists, []) => {
                let count = lists.iter().map(Vec::len).min().unwrap_or(0);
                self.charge(count.saturating_mul(lists.len()))?;
                let row = |i: usize| lists.iter().map(|list| list[i].clone()).collect();
                (0..count).map(row).collect()
            }
            ("product", lists, []) => {
                let mut rows = vec![Vec::new()];
                for items in lists {
                    self.charge(rows.len().saturating_mul(items.len()))?;
                    let longer = rows.iter().flat_map(|row: &Vec<Value<'m>>| {
                        let more =
                            |item: &Value<'m>| [&row[..], std::slice::from_ref(item)].concat();
                        items.iter().map(more)
                    });
                    rows = longer.collect();
                }
                rows
            }
            _ => {
                let d = self.error(Code::Unsupported, format!("`{name}` with these arguments"));
                return Err(d.help("give the lists alone").into());
            }
        };
        Ok(Value::tuple(rows.into_iter().map(Value::tuple).collect()))
    }

    /// The elements of a list or a range.
    pub(crate) fn list_of(&self, value: &Value<'m>) -> Res<Vec<Value<'m>>> {
        match value {
            Value::Tuple(tuple) => Ok(tuple.items.clone()),
            Value::Range(range) => self.constant_range(range),
            other => {
                let message = format!("{} is no tuple", other.describe());
                Err(self.error(Code::Type, message).into())
            }
        }
    }

    /// The lists that `[element for .. for ..]` makes, outermost `for` first, which goes through `first`.
    pub(crate) fn generate(
        &mut self,
        generators: &'m [Comprehension],
        first: Option<Value<'m>>,
        element: &'m Expr,
        results: &mut Vec<Value<'m>>,
    ) -> Res<()> {
        let Some((generator, inner)) = generators.split_first() else {
            let value = self.eval(element)?;
            results.push(value);
            return Ok(());
        };
        let list = match first {
            Some(first) => first,
            None => self.iterable(&generator.iter)?,
        };
        let items = match list {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Range(range) => self.constant_range(&range)?,
            other => {
                let message = format!("a list is made from a tuple, found {}", other.describe());
                return Err(self.error(Code::Type, message).into());
            }
        };
        for item in items {
            self.step()?;
            self.assign(&generator.target, item, false)?;
            let mut kept = true;
            for test in &generator.ifs {
                let value = self.eval(test)?;
                match self.condition(&value)? {
                    Ok(truth) => kept &= truth,
                    Err(_) => {
                        let message = "what filters a list must be known at compile time";
                        return Err(self.error(Code::Constant, message).into());
                    }
                }
                if !self.frame().host {
                    self.warn_of_filter(test);
                }
            }
            if kept {
                self.generate(inner, None, element, results)?;
            }
        }
        Ok(())
    }

    /// Triton passes over the `if` of a list.
    fn warn_of_filter(&mut self, test: &Expr) {
        let message = "this filters the list, which Triton does not do";
        let d = Diagnostic::error(Code::Suspicious, test.range(), message);
        self.add(d.with_severity(Severity::Warning));
    }

    /// Triton takes the annotation `tl.constexpr` of what is computed at run time.
    pub(crate) fn warn_of_data(&mut self, value: &Value<'m>, range: TextRange) {
        let message = format!("this is no compile-time constant but {}", value.describe());
        let d = Diagnostic::error(Code::Suspicious, range, message);
        let d = d.help("only what does not depend on data is one; the annotation changes nothing");
        self.add(d.with_severity(Severity::Warning));
    }

    /// Notes that something was asked of a value that may be the host's: nothing is known of it but its name.
    pub(crate) fn note_host(&mut self, value: &Value<'m>) {
        if let Value::Path(path) = value {
            self.asked_host = true;
            // Of arguments it is known whether they are given.
            self.guessed |= !path.0.contains(' ');
        }
    }
}

/// Whether an expression is a name, or a name of a name.
fn is_path(expr: &Expr) -> bool {
    match expr {
        Expr::Attribute(e) => e.value.is_name_expr(),
        expr => expr.is_name_expr(),
    }
}
