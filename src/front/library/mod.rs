//! The library: what `tl.*`, `libdevice`, Python's built-in functions and a few of the host's mean.
//!
//! Each function is a row: a name, its parameters, and a function that makes it. The parameters are a text,
//! `"required ... ; optional ... *rest"`, by which arguments are bound before the row's function runs, so that the
//! latter finds every required one. Adding to the library is adding a row to one of the tables here.

pub(crate) mod block;
mod create;
mod host;
mod math;
mod memory;
pub(crate) mod prelude;
mod reduce;
mod shape;

use std::sync::LazyLock;

use ruff_text_size::TextRange;
use rustc_hash::FxHashMap;

use super::call::Argument;
use super::constant;
use super::diagnostic::{Code, Diagnostic};
use super::lower::{Lower, Res, Stop};
use super::types::{DType, Ty};
use super::value::{Const, Tensor, Value};

/// Where a name is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// `triton.language` with its parts.
    Language,
    /// Methods of numbers and blocks that are no functions of the language.
    Method,
    /// Methods of tensor descriptors.
    Descriptor,
    /// Functions of types.
    Type,
    /// `libdevice` under all its names.
    Libdevice,
    /// `triton`.
    Triton,
    /// Python's built-in functions.
    Python,
    /// Python's `math`.
    Math,
    /// `torch` and `numpy`: a few constants and types.
    Host,
}

/// A row of the library.
pub(crate) struct Builtin {
    pub(crate) scope: Scope,
    pub(crate) name: &'static str,
    /// Parameters: required, then after `;` optional ones; `*rest` takes what is left.
    pub(crate) params: &'static str,
    pub(crate) run: for<'m> fn(&mut Lower<'m>, &Args<'m>) -> Res<Value<'m>>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Makes rows of a scope.
macro_rules! rows {
    ($scope:ident; $($name:literal ($params:literal) $run:expr;)*) => {
        &[$($crate::front::library::Builtin {
            scope: $crate::front::library::Scope::$scope,
            name: $name,
            params: $params,
            run: $run,
        }),*]
    };
}
pub(crate) use rows;

/// Every table.
const TABLES: &[&[Builtin]] = &[
    block::ROWS,
    block::METHODS,
    create::ROWS,
    memory::ROWS,
    math::ROWS,
    math::LIBDEVICE,
    shape::ROWS,
    reduce::ROWS,
    host::LANGUAGE,
    host::PYTHON,
    host::TRITON,
    host::MATH,
    host::HOST,
    host::METHODS,
    host::TYPES,
];

/// Functions of the language that this version lacks.
const MISSING: &[&str] = &[
    "dot",
    "dot_scaled",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "atomic_xchg",
    "atomic_cas",
    "associative_scan",
    "cumsum",
    "cumprod",
    "sort",
    "topk",
    "bitonic_merge",
    "gather",
    "histogram",
    "reshape",
    "view",
    "ravel",
    "trans",
    "permute",
    "join",
    "split",
    "interleave",
    "cat",
    "flip",
    "randn",
    "randn4x",
    "tensor_descriptor",
    "inline_asm_elementwise",
    "map_elementwise",
    "sin",
    "cos",
    "device_print",
    "gdc_wait",
    "gdc_launch_dependents",
    "globaltimer",
    "smid",
    "pair_uniform_to_normal",
    "extern_elementwise",
    "expect_zero",
];

/// Whether a path ends in a function that the language has and this version lacks.
pub(crate) fn is_known_missing(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path);
    path.contains("triton.language") && (MISSING.contains(&name) || path.contains("libdevice"))
}

static BY_NAME: LazyLock<FxHashMap<(Scope, &'static str), &'static Builtin>> =
    LazyLock::new(|| {
        let rows = TABLES.iter().flat_map(|table| table.iter());
        rows.map(|row| ((row.scope, row.name), row)).collect()
    });

/// The row of exactly this scope.
pub(crate) fn find_in(scope: Scope, name: &str) -> Option<&'static Builtin> {
    // The key borrows for as long as the table lives; a name that is in no row finds nothing.
    BY_NAME.get(&(scope, name)).copied()
}

/// What a name stands for in a scope: a type, a constant or a function.
pub(crate) fn find<'m>(scope: Scope, name: &str) -> Option<Value<'m>> {
    let dtype = match scope {
        Scope::Language => DType::from_name(name),
        Scope::Host => match name {
            "half" => Some(DType::Float16),
            "float" => Some(DType::Float32),
            "bool" => Some(DType::Int1),
            name => DType::from_name(name),
        },
        _ => None,
    };
    if let Some(dtype) = dtype {
        return Some(Value::ty(Ty::Num(dtype)));
    }
    let number = match (scope, name) {
        (Scope::Math | Scope::Host, "pi") => Some(std::f64::consts::PI),
        (Scope::Math | Scope::Host, "e") => Some(std::f64::consts::E),
        (Scope::Math, "tau") => Some(std::f64::consts::TAU),
        (Scope::Math | Scope::Host, "inf") => Some(f64::INFINITY),
        (Scope::Math | Scope::Host, "nan") => Some(f64::NAN),
        _ => None,
    };
    if let Some(number) = number {
        return Some(Value::Const(Const::Float(number)));
    }
    let prelude = || match scope {
        Scope::Language => prelude::find(name).map(Value::Function),
        _ => None,
    };
    find_in(scope, name).map(Value::Builtin).or_else(prelude)
}

/// Calls a function of the language.
pub(crate) fn call<'m>(
    cx: &mut Lower<'m>,
    name: &str,
    given: super::call::Given<'m>,
) -> Res<Value<'m>> {
    match find(Scope::Language, name) {
        Some(callee) => {
            let at = cx.range;
            cx.call_value(&callee, given, at)
        }
        None => Err(cx
            .error(Code::Internal, format!("the library lacks `{name}`"))
            .into()),
    }
}

/// A name of Python.
pub(crate) fn python_name<'m>(name: &str) -> Option<Value<'m>> {
    find_in(Scope::Python, name).map(Value::Builtin)
}

/// A function that can be called as a method of a number or block.
pub(crate) fn method<'m>(name: &str) -> Option<Value<'m>> {
    const NOT_METHODS: &[&str] = &[
        "load",
        "store",
        "arange",
        "full",
        "zeros",
        "program_id",
        "num_programs",
        "where",
        "static_assert",
        "static_print",
        "range",
        "static_range",
        "constexpr",
        "debug_barrier",
    ];
    if NOT_METHODS.contains(&name) || DType::from_name(name).is_some() {
        return None;
    }
    let own = find_in(Scope::Method, name).map(Value::Builtin);
    own.or_else(|| find(Scope::Language, name))
}

/// Arguments bound to the parameters of a row.
#[derive(Debug)]
pub(crate) struct Args<'m> {
    pub(crate) builtin: &'static Builtin,
    values: Vec<(&'static str, Option<Argument<'m>>)>,
    /// What `*rest` took.
    pub(crate) rest: Vec<Value<'m>>,
}

impl<'m> Args<'m> {
    /// Binds arguments to a row's parameters.
    pub(crate) fn bind(
        lower: &Lower<'m>,
        builtin: &'static Builtin,
        given: super::call::Given<'m>,
    ) -> Res<Args<'m>> {
        let (required, optional) = match builtin.params.split_once(';') {
            Some((required, optional)) => (required, optional),
            None => (builtin.params, ""),
        };
        let mut values: Vec<(&'static str, Option<Argument<'m>>)> = Vec::new();
        let mut rest_at = None;
        let count = required.split_whitespace().count();
        for name in required
            .split_whitespace()
            .chain(optional.split_whitespace())
        {
            match name.strip_prefix('*') {
                Some(_) => rest_at = Some(values.len()),
                None => values.push((name, None)),
            }
        }
        let wrong = |message: String| {
            let d = lower.error(Code::Call, message);
            let params = builtin.params.replace(" ;", ";").replace("; ", " ; ");
            let shown: Vec<String> = signature(&params);
            Stop::from(d.help(format!("it is `{}({})`", builtin.name, shown.join(", "))))
        };
        let mut rest = Vec::new();
        for (position, argument) in given.into_iter().enumerate() {
            let Some(name) = argument.name else {
                if rest_at.is_some_and(|at| position >= at) {
                    rest.push(argument.value);
                } else if let Some(slot) = values.get_mut(position) {
                    slot.1 = Some(argument);
                } else {
                    let message = format!("`{}` takes {} arguments", builtin.name, values.len());
                    return Err(wrong(message));
                }
                continue;
            };
            match values.iter_mut().find(|(param, _)| *param == name) {
                Some((_, slot @ None)) => *slot = Some(argument),
                Some(_) => return Err(wrong(format!("`{}` gets `{name}` twice", builtin.name))),
                // Options of other back ends and older versions that change nothing here.
                None if matches!(name, "_semantic" | "_builder" | "_generator") => {}
                None => {
                    return Err(wrong(format!(
                        "`{}` has no parameter `{name}`",
                        builtin.name
                    )));
                }
            }
        }
        let required = count - usize::from(rest_at.is_some_and(|at| at < count));
        if let Some((name, _)) = values[..required].iter().find(|(_, value)| value.is_none()) {
            return Err(wrong(format!(
                "`{}` lacks its argument `{name}`",
                builtin.name
            )));
        }
        Ok(Args {
            builtin,
            values,
            rest,
        })
    }

    /// An argument, if it was given and is not `None`.
    pub(crate) fn get(&self, name: &str) -> Option<&Value<'m>> {
        let (_, argument) = self.values.iter().find(|(param, _)| *param == name)?;
        let value = argument.as_ref().map(|argument| &argument.value);
        value.filter(|value| !value.is_none())
    }

    /// Where an argument stands, if it was given.
    fn range(&self, name: &str) -> Option<TextRange> {
        let (_, argument) = self.values.iter().find(|(param, _)| *param == name)?;
        argument.as_ref().map(|argument| argument.range)
    }

    /// A required argument.
    pub(crate) fn req(&self, name: &str) -> Value<'m> {
        let found = self.values.iter().find(|(param, _)| *param == name);
        // A required parameter has a value once the arguments are bound.
        found
            .and_then(|(_, argument)| argument.as_ref())
            .map_or(Value::Poison, |argument| argument.value.clone())
    }

    /// The arguments of `*rest`, or the elements of the one tuple that it took.
    pub(crate) fn rest_items(&self) -> Vec<Value<'m>> {
        match &self.rest[..] {
            [Value::Tuple(tuple)] => tuple.items.clone(),
            rest => rest.to_vec(),
        }
    }
}

/// Parameters as Python writes them.
fn signature(params: &str) -> Vec<String> {
    let (required, optional) = params.split_once(';').unwrap_or((params, ""));
    let required = required.split_whitespace().map(str::to_owned);
    let optional = optional
        .split_whitespace()
        .map(|name| match name.starts_with('*') {
            true => name.to_owned(),
            false => format!("{name}=..."),
        });
    required.chain(optional).collect()
}

/// Access to arguments of a kind.
impl<'m> Lower<'m> {
    /// An error about an argument.
    pub(crate) fn arg_error(
        &self,
        args: &Args<'m>,
        name: &str,
        code: Code,
        message: String,
    ) -> Diagnostic {
        Diagnostic::error(code, args.range(name).unwrap_or(self.range), message)
    }

    /// A constant integer.
    pub(crate) fn int_arg(&self, args: &Args<'m>, name: &str) -> Res<Option<i128>> {
        let Some(value) = args.get(name) else {
            return Ok(None);
        };
        match value.as_const().and_then(|c| constant::as_int(&c)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.not_constant(args, name, "a constant integer", value)),
        }
    }

    /// A constant truth value.
    pub(crate) fn bool_arg(&self, args: &Args<'m>, name: &str, default: bool) -> Res<bool> {
        match args.get(name) {
            None => Ok(default),
            Some(value) => match value.as_const() {
                Some(c) => Ok(constant::truth(&c)),
                None => Err(self.not_constant(args, name, "True or False", value)),
            },
        }
    }

    /// A string.
    pub(crate) fn str_arg(&self, args: &Args<'m>, name: &str) -> Res<Option<std::rc::Rc<str>>> {
        match args.get(name) {
            None => Ok(None),
            Some(Value::Const(Const::Str(s))) => Ok(Some(s.clone())),
            Some(value) => Err(self.not_constant(args, name, "a string", value)),
        }
    }

    /// A type.
    pub(crate) fn type_arg(&self, args: &Args<'m>, name: &str) -> Res<Option<Ty>> {
        match args.get(name) {
            None => Ok(None),
            Some(Value::Type(t)) if t.shape.is_none() => Ok(Some(t.ty)),
            // A name of a type, as older kernels have it, or Python's own types.
            Some(Value::Const(Const::Str(s))) if DType::from_short_name(s).is_some() => {
                Ok(DType::from_short_name(s).map(Ty::Num))
            }
            Some(Value::Builtin(b)) if b.name == "float" => Ok(Some(Ty::Num(DType::Float32))),
            Some(Value::Builtin(b)) if b.name == "int" => Ok(Some(Ty::Num(DType::Int32))),
            Some(Value::Poison) => Err(Stop::Reported),
            Some(value) => Err(self.not_constant(args, name, "a type like tl.float32", value)),
        }
    }

    /// A number format.
    pub(crate) fn dtype_arg(&self, args: &Args<'m>, name: &str) -> Res<Option<DType>> {
        match self.type_arg(args, name)? {
            None => Ok(None),
            Some(Ty::Num(dtype)) => Ok(Some(dtype)),
            Some(ty) => {
                let message = format!(
                    "`{name}` of `{}` is a number's type, found {ty}",
                    args.builtin.name
                );
                Err(self.arg_error(args, name, Code::Type, message).into())
            }
        }
    }

    /// A number or block.
    pub(crate) fn tensor_arg(&mut self, args: &Args<'m>, name: &str) -> Res<Tensor> {
        let value = args.req(name);
        self.tensor(&value).map_err(|stop| match stop {
            Stop::Error(d) => {
                let message = format!("`{name}` of `{}`: {}", args.builtin.name, d.message);
                self.arg_error(args, name, d.code, message).into()
            }
            other => other,
        })
    }

    /// A dimension of a block, negative ones from the end.
    pub(crate) fn axis(&self, axis: i128, rank: usize) -> Res<u8> {
        let at = if axis < 0 { axis + rank as i128 } else { axis };
        match u8::try_from(at) {
            Ok(at) if usize::from(at) < rank => Ok(at),
            _ => {
                let message = format!("a block of {rank} dimensions has no dimension {axis}");
                Err(self.error(Code::Shape, message).into())
            }
        }
    }

    fn not_constant(&self, args: &Args<'m>, name: &str, expected: &str, found: &Value<'m>) -> Stop {
        if matches!(found, Value::Poison) {
            return Stop::Reported;
        }
        let (function, found) = (args.builtin.name, found.describe());
        let message = format!("`{name}` of `{function}` must be {expected}, found {found}");
        self.arg_error(args, name, Code::Constant, message).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_and_no_two_share_a_name() {
        let count: usize = TABLES.iter().map(|table| table.len()).sum();
        assert_eq!(BY_NAME.len(), count);
        for row in TABLES.iter().flat_map(|table| table.iter()) {
            let found = find_in(row.scope, row.name).map(|b| b.params);
            assert_eq!(found, Some(row.params), "{}", row.name);
        }
    }

    #[test]
    fn what_is_missing_is_not_there() {
        for name in MISSING {
            assert!(find_in(Scope::Language, name).is_none(), "{name} is there");
        }
    }
}
