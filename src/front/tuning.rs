//! What decorators say about how a kernel is to be launched: `autotune` and `heuristics` as data.
//!
//! The lists of configurations are evaluated at compile time, so that those that a comprehension or a function of the
//! same file makes are found too. A heuristic is a function of the arguments; [`Module::heuristics`] calls it.

use indexmap::IndexMap;
use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::call::Given;
use super::constant;
use super::diagnostic::{Code, Diagnostics};
use super::kernel::{Module, Specialization};
use super::lower::{Frame, Lower, Res, Stop};
use super::module::{decoration, last_name};
use super::signature::{ArgSpec, Constant};
use super::types::Ty;
use super::value::{Const, Path, Tuple, Value};
use crate::settings::Target;

/// One configuration of `autotune`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuneConfig {
    /// Constants of parameters.
    pub constants: Vec<(String, Constant)>,
    /// Warps of a CTA, if it says so.
    pub num_warps: Option<u32>,
    /// Stages of loops of products, if it says so.
    pub num_stages: Option<u32>,
    /// CTAs of a cluster, if it says so.
    pub num_ctas: Option<u32>,
    /// Most registers of a thread, if it says so.
    pub maxnreg: Option<u32>,
}

/// What the decorators of a kernel say about tuning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning {
    /// Configurations to choose from.
    pub configs: Vec<TuneConfig>,
    /// Arguments whose values decide anew which configuration is the best.
    pub key: Vec<String>,
    /// Arguments that are zeroed before each trial.
    pub reset_to_zero: Vec<String>,
    /// Arguments that are restored after each trial.
    pub restore_value: Vec<String>,
    /// Constants that functions of the arguments give, with these functions as they are written.
    pub heuristics: Vec<(String, String)>,
    /// Milliseconds of launches before those that are timed, if it says so.
    pub warmup: Option<f64>,
    /// Milliseconds of launches that are timed, if it says so.
    pub rep: Option<f64>,
    /// What is said and nothing is done with, with its line: functions of the host, such as `prune_configs_by` and hooks, and
    /// keywords that are not known.
    pub ignored: Vec<(String, usize)>,
}

/// The names of the parts of a configuration, in order.
const PARTS: [&str; 7] = [
    "kwargs",
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "pre_hook",
    "ir_override",
];

/// Those that are numbers.
const NUMBERS: [&str; 4] = ["num_warps", "num_stages", "num_ctas", "maxnreg"];

impl Module {
    /// What the decorators of a kernel say about tuning.
    pub fn tuning(&self, kernel: Option<&str>) -> Result<Tuning, Diagnostics> {
        self.on_host(kernel, |lower, f| {
            // A configuration that is missing costs time alone.
            lower.as_written = true;
            let mut tuning = Tuning::default();
            for call in decoration(f).tuning {
                if last_name(&call.func) == Some("heuristics") {
                    for (name, function) in lower.heuristic_entries(call)? {
                        let source = &self.text()[super::diagnostic::bytes(function.range())];
                        tuning.heuristics.push((name, source.to_owned()));
                    }
                } else {
                    lower.read_autotune(call, &mut tuning)?;
                }
            }
            Ok(tuning)
        })
    }

    /// The constants that the kernel's heuristics give for these arguments. A pointer or a number that is not known is
    /// given by its type: to these a heuristic can only say whether they are `None`.
    pub fn heuristics(
        &self,
        kernel: Option<&str>,
        args: &[(String, ArgSpec)],
    ) -> Result<Vec<(String, Constant)>, Diagnostics> {
        self.on_host(kernel, |lower, f| {
            // They are called when the kernel is launched.
            lower.frame().function = Some(f);
            let mut known: IndexMap<String, Value<'_>> = args
                .iter()
                .map(|(name, arg)| (name.clone(), argument(arg)))
                .collect();
            let mut found = Vec::new();
            // The innermost decorator runs last, on what those around it have given.
            for call in decoration(f).tuning {
                if last_name(&call.func) != Some("heuristics") {
                    continue;
                }
                for (name, function) in lower.heuristic_entries(call)? {
                    let at = lower.enter(function.range());
                    let value = lower.apply(function, Value::Dict(known.clone().into()))?;
                    let constant = lower.constant_of(&value)?;
                    lower.enter(at);
                    known.insert(name.clone(), value);
                    found.push((name, constant));
                }
            }
            Ok(found)
        })
    }

    /// Evaluates something about a kernel as the host would.
    fn on_host<T>(
        &self,
        kernel: Option<&str>,
        run: impl for<'m> FnOnce(&mut Lower<'m>, &'m StmtFunctionDef) -> Res<T>,
    ) -> Result<T, Diagnostics> {
        let spec = Specialization::new(Vec::new(), Target::SM_80);
        self.with_lower(kernel, &spec, |lower, f| {
            lower.enter(f.name.range());
            lower
                .frames
                .push(Frame::new(lower.index, None, f.name.range(), true));
            let result = run(lower, f);
            lower.frames.truncate(1);
            result
        })
    }
}

/// An argument as a heuristic sees it.
fn argument<'m>(arg: &ArgSpec) -> Value<'m> {
    match arg {
        ArgSpec::Constant(Constant::Type(dtype)) => Value::ty(Ty::Num(*dtype)),
        ArgSpec::Constant(Constant::Function(_)) => Value::Path(Path("a function".into())),
        ArgSpec::Constant(c) => c.to_const().map_or(Value::NONE, Value::Const),
        ArgSpec::Tuple(tuple) => Value::tuple(tuple.items.iter().map(argument).collect()),
        ArgSpec::Typed { .. } | ArgSpec::Descriptor(_) => Value::Path(Path("an argument".into())),
    }
}

impl<'m> Lower<'m> {
    /// The entries of `heuristics({"NAME": function})`.
    fn heuristic_entries(&mut self, call: &'m ExprCall) -> Res<Vec<(String, &'m Expr)>> {
        let given = call.arguments.find_argument_value("values", 0);
        let (dict, added) = match given {
            Some(Expr::Dict(dict)) => (dict, Vec::new()),
            Some(Expr::Name(name)) => match self.index.table(name.id.as_str()) {
                Some(table) => table,
                None => return Err(self.no_table(call)),
            },
            _ => return Err(self.no_table(call)),
        };
        let mut entries: IndexMap<String, &'m Expr> = IndexMap::new();
        for item in &dict.items {
            match &item.key {
                Some(Expr::StringLiteral(name)) => {
                    entries.insert(name.value.to_str().to_owned(), &item.value);
                }
                _ => return Err(self.no_table(call)),
            }
        }
        entries.extend(
            added
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        Ok(entries.into_iter().collect())
    }

    fn no_table(&mut self, call: &ExprCall) -> Stop {
        let outer = self.enter(call.range());
        let d = self.error(
            Code::Unsupported,
            "heuristics are a table of functions by name",
        );
        self.enter(outer);
        d.help("write `@triton.heuristics({\"NAME\": lambda args: ...})`")
            .into()
    }

    /// Calls a lambda or a function with one argument.
    fn apply(&mut self, function: &'m Expr, argument: Value<'m>) -> Res<Value<'m>> {
        if let Expr::Lambda(lambda) = function {
            let name = lambda.parameters.as_ref().and_then(|p| p.args.first());
            let outer = self.frame().locals.clone();
            if let Some(param) = name {
                self.bind(param.parameter.name.as_str(), argument, false);
            }
            let value = self.eval(&lambda.body);
            self.frame().locals = outer;
            return value;
        }
        let callee = self.eval(function)?;
        let given = vec![self.argument(argument)];
        self.call_value(&callee, given, function.range())
    }

    /// `filter(function, items)`, as a list.
    pub(crate) fn filter(&mut self, function: &'m Expr, items: &'m Expr) -> Res<Value<'m>> {
        let items = self.iterable(items)?;
        let mut kept = Vec::new();
        for item in self.list_of(&items)? {
            self.step()?;
            let value = match function {
                Expr::NoneLiteral(_) => item.clone(),
                function => self.apply(function, item.clone())?,
            };
            match self.condition(&value)? {
                Ok(true) => kept.push(item),
                Ok(false) => {}
                Err(_) => {
                    let message = "what filters a list must be known at compile time";
                    return Err(self.error(Code::Constant, message).into());
                }
            }
        }
        Ok(Value::list(kept))
    }

    fn constant_of(&mut self, value: &Value<'m>) -> Res<Constant> {
        match (value, value.as_const()) {
            (_, Some(c)) => Ok(match c {
                Const::None => Constant::None,
                Const::Bool(b) => Constant::Bool(b),
                Const::Int(n) => Constant::Int(n),
                Const::Float(x) => Constant::Float(x),
                Const::Str(s) => Constant::Str(s.to_string()),
            }),
            (Value::Type(t), None) if t.shape.is_none() && t.ty.dtype().is_some() => {
                Ok(t.ty.dtype().map_or(Constant::None, Constant::Type))
            }
            (other, None) => {
                let message = format!("expected a constant, found {}", other.describe());
                Err(self.error(Code::Constant, message).into())
            }
        }
    }

    fn read_autotune(&mut self, call: &'m ExprCall, tuning: &mut Tuning) -> Res<()> {
        for (position, name) in ["configs", "key"].into_iter().enumerate() {
            let Some(expr) = call.arguments.find_argument_value(name, position) else {
                continue;
            };
            let outer = self.enter(expr.range());
            let value = self.eval(expr)?;
            if name == "key" {
                tuning.key = self.names(&value)?;
            } else {
                self.read_configs(&value, tuning)?;
            }
            self.enter(outer);
        }
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_ref().map(|name| name.as_str());
            match name {
                Some(what @ ("reset_to_zero" | "restore_value")) => {
                    let outer = self.enter(keyword.value.range());
                    let value = self.eval(&keyword.value)?;
                    let names = self.names(&value)?;
                    self.enter(outer);
                    match what {
                        "reset_to_zero" => tuning.reset_to_zero = names,
                        _ => tuning.restore_value = names,
                    }
                }
                Some("warmup") => tuning.warmup = self.milliseconds(&keyword.value)?,
                Some("rep") => tuning.rep = self.milliseconds(&keyword.value)?,
                // Where the file's kernels are kept and how a graph is timed is not its matter here.
                None | Some("configs" | "key" | "use_cuda_graph" | "cache_results") => {}
                Some(name) => {
                    if !matches!(keyword.value, Expr::NoneLiteral(_)) {
                        let line = self.line_of(keyword.range());
                        tuning.ignored.push((name.to_owned(), line));
                    }
                }
            }
        }
        Ok(())
    }

    /// The names of parameters in a list of a decorator; none for `None`.
    fn names(&mut self, value: &Value<'m>) -> Res<Vec<String>> {
        let name = |item: &Value<'m>| match item {
            Value::Const(Const::Str(s)) => Some(s.to_string()),
            _ => None,
        };
        let names = match value {
            Value::Tuple(list) => list.items.iter().map(name).collect(),
            value if value.as_const() == Some(Const::None) => Some(Vec::new()),
            _ => None,
        };
        names.ok_or_else(|| {
            let message = format!("expected a list of names, found {}", value.describe());
            self.error(Code::Type, message).into()
        })
    }

    /// A time that a decorator states; none for `None`.
    fn milliseconds(&mut self, expr: &'m Expr) -> Res<Option<f64>> {
        let outer = self.enter(expr.range());
        let value = self.eval(expr)?;
        let time = match value.as_const() {
            Some(Const::None) => None,
            Some(Const::Int(n)) if n >= 0 => Some(n as f64),
            Some(Const::Float(x)) if x >= 0.0 => Some(x),
            _ => {
                let message = format!("expected milliseconds, found {}", value.describe());
                return Err(self.error(Code::Type, message).into());
            }
        };
        self.enter(outer);
        Ok(time)
    }

    fn read_configs(&mut self, value: &Value<'m>, tuning: &mut Tuning) -> Res<()> {
        let Value::Tuple(list) = value else {
            let message = format!(
                "expected a list of configurations, found {}",
                value.describe()
            );
            return Err(self.error(Code::Type, message).into());
        };
        for item in &list.items {
            let config = match item {
                Value::Tuple(config) if config.names == PARTS => config,
                _ => {
                    let message = format!("expected triton.Config, found {}", item.describe());
                    return Err(self.error(Code::Type, message).into());
                }
            };
            let part = |name: &str| {
                let at = config.names.iter().position(|n| *n == name);
                at.and_then(|i| config.items.get(i))
            };
            let number = |name: &str| {
                let c = part(name).and_then(Value::as_const);
                c.and_then(|c| constant::as_int(&c))
                    .and_then(|n| u32::try_from(n).ok())
            };
            for what in ["pre_hook", "ir_override"] {
                let is_given =
                    part(what).is_some_and(|given| given.as_const() != Some(Const::None));
                if is_given && !tuning.ignored.iter().any(|(name, _)| name == what) {
                    let line = self.line_of(self.range);
                    tuning.ignored.push((what.to_owned(), line));
                }
            }
            let mut constants = Vec::new();
            if let Some(Value::Dict(dict)) = part(PARTS[0]) {
                for (name, value) in dict.iter() {
                    constants.push((name.clone(), self.constant_of(value)?));
                }
            }
            tuning.configs.push(TuneConfig {
                constants,
                num_warps: number("num_warps"),
                num_stages: number("num_stages"),
                num_ctas: number("num_ctas"),
                maxnreg: number("maxnreg"),
            });
        }
        Ok(())
    }

    /// `triton.Config(kwargs, num_warps=.., ..)`: a tuple with names.
    pub(crate) fn make_config(&mut self, given: Given<'m>) -> Res<Value<'m>> {
        let mut items = vec![Value::NONE; PARTS.len()];
        for (position, argument) in given.into_iter().enumerate() {
            let at = match argument.name {
                None => Some(position),
                Some(name) => PARTS.iter().position(|part| *part == name),
            };
            let Some((slot, name)) = at.and_then(|at| Some((items.get_mut(at)?, PARTS[at]))) else {
                let outer = self.enter(argument.range);
                let message = match argument.name {
                    Some(name) => format!("`triton.Config` has no parameter `{name}`"),
                    None => format!("`triton.Config` takes {} arguments", PARTS.len()),
                };
                let error = self.error(Code::Type, message);
                self.enter(outer);
                return Err(error.help(format!("there is {}", PARTS.join(", "))).into());
            };
            if NUMBERS.contains(&name) {
                self.check_config_number(name, &argument)?;
            }
            *slot = argument.value;
        }
        let tuple = Tuple::new(items, None, PARTS.to_vec());
        Ok(Value::Tuple(tuple.into()))
    }

    /// An error, at the argument, unless it is a number that a configuration can hold.
    fn check_config_number(&mut self, name: &str, argument: &super::call::Argument<'m>) -> Res<()> {
        let fits = match argument.value.as_const() {
            Some(Const::None) => true,
            Some(Const::Int(n)) => u32::try_from(n).is_ok(),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let outer = self.enter(argument.range);
        let found = argument.value.describe();
        let message = format!("`{name}` of a configuration is {found}, expected a whole number");
        let error = self.error(Code::Type, message);
        self.enter(outer);
        Err(error.into())
    }
}
