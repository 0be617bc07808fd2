//! Arguments of library functions: bound to the parameters of their row, and read as what is expected.

use ruff_text_size::TextRange;

use super::{Builtin, Scope};
use crate::front::call::{Argument, Given};
use crate::front::constant;
use crate::front::diagnostic::{Code, Diagnostic};
use crate::front::lower::{Lower, Res, Stop};
use crate::front::names::{did_you_mean, meant_of, no_parameter};
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Tensor, Value};

/// Arguments bound to the parameters of a row.
#[derive(Debug)]
pub(crate) struct Args<'m> {
    pub(crate) builtin: &'static Builtin,
    values: Vec<(&'static str, Option<Argument<'m>>)>,
    /// What `*rest` took.
    pub(crate) rest: Vec<Value<'m>>,
    /// What `**named` took.
    pub(crate) named: Vec<(&'m str, Value<'m>)>,
}

impl<'m> Args<'m> {
    /// Binds arguments to a row's parameters.
    pub(crate) fn bind(
        lower: &Lower<'m>,
        builtin: &'static Builtin,
        given: Given<'m>,
    ) -> Res<Args<'m>> {
        let (required, optional) = match builtin.params.split_once(';') {
            Some((required, optional)) => (required, optional),
            None => (builtin.params, ""),
        };
        let mut values: Vec<(&'static str, Option<Argument<'m>>)> = Vec::new();
        let mut rest_at = None;
        let mut rest_name = None;
        let mut takes_named = false;
        let count = required.split_whitespace().count();
        for name in required
            .split_whitespace()
            .chain(optional.split_whitespace())
        {
            match name.strip_prefix('*') {
                Some(name) if name.starts_with('*') => takes_named = true,
                Some(name) => {
                    rest_at = Some(values.len());
                    rest_name = Some(name);
                }
                None => values.push((name, None)),
            }
        }
        let wrong = |message: String| {
            let d = lower.error(Code::Call, message);
            let params = builtin.params.replace(" ;", ";").replace("; ", " ; ");
            let shown: Vec<String> = signature(&params);
            Stop::from(d.help(format!("it is `{}({})`", builtin.name, shown.join(", "))))
        };
        let (mut rest, mut named) = (Vec::new(), Vec::new());
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
            if rest_name == Some(name) && rest.is_empty() {
                // `shape=(4, 4)`, as older kernels have it.
                rest.push(argument.value);
                continue;
            }
            let found = values.iter().position(|(param, _)| *param == name);
            let found = found.or_else(|| numbered(builtin.scope, name));
            match found.and_then(|position| values.get_mut(position)) {
                Some((_, slot @ None)) => *slot = Some(argument),
                _ if takes_named => named.push((name, argument.value)),
                Some(_) => return Err(wrong(format!("`{}` gets `{name}` twice", builtin.name))),
                // Options of other back ends and older versions that change nothing here.
                None if matches!(name, "_semantic" | "_builder" | "_generator") => {}
                None => {
                    let names = values.iter().map(|(param, _)| *param);
                    return Err(wrong(no_parameter(builtin.name, name, names)));
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
            named,
        })
    }

    /// An argument, if it was given and is not `None`.
    pub(crate) fn get(&self, name: &str) -> Option<&Value<'m>> {
        self.given(name).filter(|value| !value.is_none())
    }

    /// An argument, if it was given, even as `None`.
    pub(crate) fn given(&self, name: &str) -> Option<&Value<'m>> {
        let (_, argument) = self.values.iter().find(|(param, _)| *param == name)?;
        argument.as_ref().map(|argument| &argument.value)
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

/// The position of a parameter that Triton names by its number, as it does those of libdevice.
pub(crate) fn numbered(scope: Scope, name: &str) -> Option<usize> {
    let number = name
        .strip_prefix("arg")
        .filter(|_| scope == Scope::Libdevice)?;
    number.parse().ok()
}

/// What helps where a type stands for a number, be it written there or what a signature has for a `constexpr`.
pub(crate) const IS_TYPE: &str = "a type is no number; if a `tl.constexpr` is one here, its entry in the signature has to be a number";

/// What an argument that is a text must be, where it is not.
const A_TEXT: &str = "a string";

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
            Some(value) => Err(self.not_constant(args, name, A_TEXT, value)),
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
                let span = self.arg_error(args, name, d.code, String::new()).span;
                Diagnostic {
                    message,
                    span,
                    ..*d
                }
                .into()
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
        let is_data = matches!(found, Value::Tensor(_));
        let is_type = matches!(found, Value::Type(_));
        let meant = meant_of(found);
        let (function, found) = (args.builtin.name, found.describe());
        let message = format!("`{name}` of `{function}` must be {expected}, found {found}");
        let d = self.arg_error(args, name, Code::Constant, message);
        if is_data {
            return d.help(super::NEEDS_CONSTANT).into();
        }
        if let Some(meant) = meant {
            return d.help(did_you_mean(meant)).into();
        }
        if is_type && expected != A_TEXT {
            return d.help(IS_TYPE).into();
        }
        d.into()
    }
}
