//! Calls: functions of the text are walked with their arguments, those of the library do what their row says.

use indexmap::IndexMap;
use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::comparison::is_number;
use super::diagnostic::Code;
use super::expr::blame;
use super::library::{Args, Builtin, numbered, prelude};
use super::lower::{Frame, Local, Locals, Lower, Res, Stop, with_stack};
use super::module::{Index, decoration, last_name, params};
use super::stmt::Flow;
use super::value::{Const, Value};
use crate::ir::attrs::Rounding;
use crate::limits::EVALUATION_CALLS;

/// Decorators that leave a function of the host what it is.
const HARMLESS: [&str; 11] = [
    "constexpr",
    "constexpr_function",
    "extern",
    "builtin",
    "staticmethod",
    "classmethod",
    "property",
    "lru_cache",
    "cache",
    "wraps",
    "no_type_check",
];

/// An argument of a call.
#[derive(Clone, Debug)]
pub(crate) struct Argument<'m> {
    /// Its name, unless it is given by position.
    pub(crate) name: Option<&'m str>,
    pub(crate) value: Value<'m>,
    pub(crate) range: TextRange,
}

/// Arguments of a call.
pub(crate) type Given<'m> = Vec<Argument<'m>>;

impl<'m> Lower<'m> {
    pub(crate) fn call(&mut self, e: &'m ExprCall) -> Res<Value<'m>> {
        let callee = self.eval(&e.func)?;
        let mut given: Given<'m> = Vec::with_capacity(e.arguments.args.len());
        for expr in &e.arguments.args {
            let range = expr.range();
            // Functions of Python keep no list that they are given.
            let values = match (expr, &callee) {
                (Expr::Generator(_) | Expr::Call(_), Value::Builtin(_)) => {
                    vec![self.iterable(expr)?]
                }
                _ => self.items(std::slice::from_ref(expr))?,
            };
            for value in values {
                given.push(Argument {
                    name: None,
                    value,
                    range,
                });
            }
        }
        for keyword in &e.arguments.keywords {
            let Some(name) = &keyword.arg else {
                let d = self.error(Code::Unsupported, "`**` cannot be passed on");
                return Err(d.help("name the arguments").into());
            };
            // A hook of a configuration is Python's to call; that there is one is all that counts.
            let is_hook = matches!(&callee, Value::Path(path) if &*path.0 == "triton.Config")
                && name.as_str() == "pre_hook"
                && !keyword.value.is_none_literal_expr();
            let value = match is_hook {
                true => Value::Const(Const::Str("a hook".into())),
                false => self.eval(&keyword.value)?,
            };
            let (name, range) = (Some(name.as_str()), keyword.range);
            given.push(Argument { name, value, range });
        }
        self.call_value(&callee, given, e.func.range())
    }

    /// An argument by position that the whole call stands for.
    pub(crate) fn argument(&self, value: Value<'m>) -> Argument<'m> {
        Argument {
            name: None,
            value,
            range: self.range,
        }
    }

    /// Calls whatever can be called.
    pub(crate) fn call_value(
        &mut self,
        callee: &Value<'m>,
        given: Given<'m>,
        at: TextRange,
    ) -> Res<Value<'m>> {
        match callee {
            Value::Function(f) => self.call_function(f, given),
            Value::Builtin(builtin) => self.call_builtin(builtin, given),
            Value::Method(value, callee) => {
                let mut all = vec![self.argument((**value).clone())];
                all.extend(given);
                self.call_value(callee, all, at)
            }
            Value::Class(class) => self.construct(class, given),
            // A type called is a cast.
            Value::Type(t) => match (&given[..], t.shape) {
                ([argument], None) if argument.name.is_none() => {
                    let x = self.tensor(&argument.value)?;
                    self.cast(x, t.ty, Rounding::Nearest).map(Value::Tensor)
                }
                _ => Err(self
                    .error(Code::Call, "a type is called with one value")
                    .into()),
            },
            Value::Poison => Err(Stop::Reported),
            Value::Path(path) if &*path.0 == "triton.Config" => self.make_config(given),
            Value::Path(path)
                if self.in_condition && matches!(&*path.0, "os.environ.get" | "os.getenv") =>
            {
                self.asked_environment = true;
                Ok(given
                    .get(1)
                    .map_or(Value::NONE, |default| default.value.clone()))
            }
            Value::Path(path) => {
                let outer = self.enter(at);
                if let Some(found) = self.borrowed(&path.0) {
                    self.enter(outer);
                    return self.call_value(&found, given, at);
                }
                let name = &path.0;
                let (code, message, help) = if super::library::is_known_missing(name) {
                    let message = format!("`{name}` is not supported yet");
                    (
                        Code::NotYet,
                        message,
                        "it is part of the language but not of this version",
                    )
                } else if name.contains("triton") {
                    let stop = self.no_such_name(name);
                    self.enter(outer);
                    return Err(stop);
                } else {
                    let message = format!("`{name}` is not in this file");
                    (
                        Code::Name,
                        message,
                        "functions that kernels call stand in the same file, or in one beside or around it that it imports",
                    )
                };
                let d = self.error(code, message);
                self.enter(outer);
                Err(d.help(help).into())
            }
            other => {
                let outer = self.enter(at);
                let d = self.error(Code::Type, format!("{} cannot be called", other.describe()));
                self.enter(outer);
                Err(d.into())
            }
        }
    }

    /// Calls a function of the text.
    pub(crate) fn call_function(
        &mut self,
        f: &'m StmtFunctionDef,
        given: Given<'m>,
    ) -> Res<Value<'m>> {
        self.walk(f, given).map(|(value, _)| value)
    }

    /// Walks a function of the text with arguments; gives its result and what its names are at the end.
    pub(crate) fn walk(
        &mut self,
        f: &'m StmtFunctionDef,
        given: Given<'m>,
    ) -> Res<(Value<'m>, Locals<'m>)> {
        let decorated = decoration(f);
        if self.frames.len() > EVALUATION_CALLS {
            let message = format!("calls are nested more than {EVALUATION_CALLS} deep");
            let d = self.error(Code::Budget, message);
            return self.abort(d.help("recursion must end at compile time, by constants"));
        }
        let host = !decorated.jit || decorated.host;
        if f.is_async {
            return Err(self
                .error(Code::Unsupported, "kernels cannot be `async`")
                .into());
        }
        let index = prelude::index_of(f).unwrap_or_else(|| self.index_at(f.range));
        if !index.of_library && !decoration(f).jit {
            self.check_decorators(f)?;
        }
        let locals = self.bind_arguments(f, given, index)?;
        let call = self.range;
        let mut frame = Frame::new(index, Some(f), call, host);
        frame.locals = locals;
        self.frames.push(frame);
        let guessed = std::mem::take(&mut self.guessed);
        let flow = with_stack(|| self.body(&f.body, true));
        let guess = std::mem::replace(&mut self.guessed, guessed);
        let frame = self.frames.pop();
        self.enter(call);
        if guess && host && flow.is_ok() {
            let message = format!(
                "what `{}` gives depends on what only the host knows",
                f.name
            );
            let d = self.error(Code::Constant, message);
            return Err(d.help("give the kernel a constant in place of it").into());
        }
        match (flow?, frame) {
            // What is wrong in it has been reported; its result means nothing.
            (Flow::Returned(Value::Poison), _) => Err(Stop::Reported),
            (Flow::Returned(value), Some(frame)) if !frame.broken => Ok((value, frame.locals)),
            // The end of a function's body is a return.
            _ => Err(Stop::Reported),
        }
    }

    /// That the function of the host is the one that is written, and not what a decorator makes of it.
    fn check_decorators(&self, f: &StmtFunctionDef) -> Res<()> {
        let mut names = f
            .decorator_list
            .iter()
            .map(|d| last_name(&d.expression).unwrap_or_default());
        let Some(other) = names.find(|name| !HARMLESS.contains(name)) else {
            return Ok(());
        };
        let message = format!("what `{other}` makes of `{}` is not known", f.name);
        let d = self.error(Code::Unsupported, message);
        Err(d.help("call a function without decorators").into())
    }

    /// No two parameters share a name, which the parser does not look at.
    pub(crate) fn check_names(&mut self, f: &StmtFunctionDef) -> Res<()> {
        let all: Vec<_> = params(f).collect();
        let twice = all.iter().enumerate();
        let mut twice = twice.filter(|(i, p)| all[..*i].iter().any(|other| other.name == p.name));
        match twice.next() {
            None => Ok(()),
            Some((_, param)) => {
                let message = format!("two parameters are called `{}`", param.name);
                Err(super::diagnostic::Diagnostic::error(Code::Syntax, param.range, message).into())
            }
        }
    }

    fn bind_arguments(
        &mut self,
        f: &'m StmtFunctionDef,
        given: Given<'m>,
        index: &'m Index<'m>,
    ) -> Res<Locals<'m>> {
        let wrong = |lower: &Self, message: String| {
            let d = lower.error(Code::Call, message);
            let names: Vec<&str> = params(f).map(|p| p.name).collect();
            Stop::from(d.help(format!("it is `{}({})`", f.name, names.join(", "))))
        };
        let all: Vec<_> = params(f).collect();
        self.check_names(f)?;
        let mut values: Vec<Option<Value<'m>>> = vec![None; all.len()];
        let mut extra = Vec::new();
        let mut dict = IndexMap::new();
        let positional = all.iter().filter(|p| p.positional).count();
        let scope = prelude::index_of(f).and_then(prelude::scope_of);
        let at = |name: &str| {
            let found = all.iter().position(|p| p.name == name);
            let by_number = || scope.and_then(|scope| numbered(scope, name));
            found.or_else(|| by_number().filter(|&i| i < all.len()))
        };
        for (i, Argument { name, value, .. }) in given.into_iter().enumerate() {
            match name {
                None if i < positional => values[i] = Some(value),
                None if f.parameters.vararg.is_some() => extra.push(value),
                None => {
                    let most = super::kernel::count(positional, "argument");
                    let message = format!("`{}` takes {most} by position", f.name);
                    return Err(wrong(self, message));
                }
                Some(name) => match at(name) {
                    Some(i) if values[i].is_none() => values[i] = Some(value),
                    Some(_) => {
                        let message = format!("`{}` gets `{name}` twice", f.name);
                        return Err(wrong(self, message));
                    }
                    None if f.parameters.kwarg.is_some() => {
                        dict.insert(name.to_owned(), value);
                    }
                    None => {
                        let names = all.iter().map(|p| p.name);
                        let message = super::names::no_parameter(f.name.as_str(), name, names);
                        return Err(wrong(self, message));
                    }
                },
            }
        }
        let mut locals = Locals::default();
        for (param, value) in all.iter().zip(values) {
            let value = match (value, param.default) {
                (Some(value), _) if self.frame().host => value,
                (Some(value), _) => self.keep(value),
                // There is one for all calls.
                (None, Some(default)) => {
                    let value = self.default_value(default, index)?;
                    self.keep(value)
                }
                (None, None) => {
                    let message = format!("`{}` lacks its argument `{}`", f.name, param.name);
                    return Err(wrong(self, message));
                }
            };
            // Only a launch is bound by the annotation `constexpr`: what a function of the kernel is handed stays what
            // it is, and what is needed at compile time fails where it is needed.
            locals.insert(
                param.name,
                Local::Bound {
                    value,
                    fixed: false,
                },
            );
        }
        if let Some(vararg) = &f.parameters.vararg {
            let value = Value::tuple(extra);
            locals.insert(
                vararg.name.as_str(),
                Local::Bound {
                    value,
                    fixed: false,
                },
            );
        }
        if let Some(kwarg) = &f.parameters.kwarg {
            let value = Value::Dict(dict.into());
            locals.insert(
                kwarg.name.as_str(),
                Local::Bound {
                    value,
                    fixed: false,
                },
            );
        }
        Ok(locals)
    }

    /// Notes that others hold a list, so that it is not changed.
    fn keep(&mut self, value: Value<'m>) -> Value<'m> {
        if matches!(value, Value::Tuple(_) | Value::Dict(_)) {
            self.kept.push(value.clone());
        }
        value
    }

    /// The value of a parameter that is not given: an expression of the module.
    pub(crate) fn default_value(&mut self, expr: &'m Expr, index: &'m Index<'m>) -> Res<Value<'m>> {
        let call = self.range;
        self.frames.push(Frame::new(index, None, call, true));
        let value = self.eval(expr);
        self.frames.pop();
        value
    }

    /// Does what a row of the library says.
    pub(crate) fn call_builtin(
        &mut self,
        builtin: &'static Builtin,
        given: Given<'m>,
    ) -> Res<Value<'m>> {
        let odd: Vec<(Value<'m>, TextRange)> = given
            .iter()
            .filter(|argument| !is_number(&argument.value))
            .map(|argument| (argument.value.clone(), argument.range))
            .collect();
        let args = Args::bind(self, builtin, given)?;
        (builtin.run)(self, &args).map_err(|stop| {
            let odd: Vec<_> = odd.iter().map(|(value, range)| (value, *range)).collect();
            blame(stop, &odd)
        })
    }
}
