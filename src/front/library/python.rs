//! Python's built-in functions.

use ruff_python_ast::Operator;

use super::{Args, Builtin, Scope, device, hints, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::module::decoration;
use crate::front::names::closest_of_library;
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Mark, Value};
use crate::ir::attrs::{NanRule, Rounding};

/// Names of Python that the language has too.
pub(super) const LANGUAGE: &[Builtin] = rows! { Language;
    "tuple"("; x") tuple;
};

pub(super) const PYTHON: &[Builtin] = rows! { Python;
    "range"("arg1; arg2 step num_stages loop_unroll_factor disallow_acc_multi_buffer flatten warp_specialize disable_licm") hints::python_range;
    "len"("x") len;
    "int"("; x base") int;
    "float"("; x") float;
    "bool"("; x") boolean;
    "str"("x") string;
    "abs"("x") abs;
    "min"("*values") |cx, args| extreme(cx, args, false);
    "max"("*values") |cx, args| extreme(cx, args, true);
    "sum"("values") sum;
    "tuple"("; x") tuple;
    "list"("; x") list;
    "enumerate"("*values") iterator;
    "zip"("*values") iterator;
    "filter"("*values") iterator;
    "isinstance"("x type") isinstance;
    "hasattr"("x name") hasattr;
    "getattr"("x name; default") getattr;
    "print"("*values; sep end") device::print;
    "round"("x") round;
};

fn len<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args.req("x") {
        Value::Tuple(tuple) => Ok(Value::int(tuple.items.len() as i128)),
        Value::Const(Const::Str(s)) => Ok(Value::int(s.chars().count() as i128)),
        Value::Range(range) => Ok(Value::int(cx.constant_range(&range)?.len() as i128)),
        Value::Tensor(t) if !t.shape.is_scalar() => Ok(Value::int(i128::from(t.shape.extent(0)))),
        other => {
            let message = format!("{} has no length", other.describe());
            Err(cx.error(Code::Type, message).into())
        }
    }
}

fn int<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(value) = args.given("x").cloned() else {
        return Ok(Value::int(0));
    };
    match value.as_const() {
        Some(Const::Float(x)) => super::host::integer(cx, x.trunc()),
        Some(Const::Str(s)) => {
            let base = cx.int_arg(args, "base")?.unwrap_or(10);
            let number = u32::try_from(base)
                .ok()
                .filter(|base| (2..=36).contains(base));
            let number = number.and_then(|base| integer_of(&s, base));
            number.map(Value::int).ok_or_else(|| {
                let message = format!("{s:?} is no integer of base {base}");
                cx.error(Code::Value, message).into()
            })
        }
        _ if args.given("base").is_some() => {
            let message = "a base is for strings".to_owned();
            Err(cx.arg_error(args, "base", Code::Type, message).into())
        }
        Some(c) => match constant::as_int(&c) {
            Some(n) => Ok(Value::int(n)),
            None => Err(cx
                .error(
                    Code::Value,
                    format!("{} is no integer", constant::display(&c)),
                )
                .into()),
        },
        None => {
            let t = cx.tensor(&value)?;
            cx.cast(t, Ty::Num(DType::Int32), Rounding::Nearest)
                .map(Value::Tensor)
        }
    }
}

/// A number's text without the underscores that may stand between digits.
fn digits_of(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let digit = |i: Option<usize>| {
        let c = i.and_then(|i| chars.get(i));
        c.is_some_and(char::is_ascii_alphanumeric)
    };
    let mut places = chars.iter().enumerate().filter(|(_, c)| **c == '_');
    let fits = places.all(|(i, _)| digit(i.checked_sub(1)) && digit(Some(i + 1)));
    fits.then(|| text.replace('_', ""))
}

/// The integer that a text states in a base, whose prefix it may have.
fn integer_of(text: &str, base: u32) -> Option<i128> {
    let text = digits_of(text.trim())?.to_ascii_lowercase();
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => return i128::from_str_radix(&text, base).ok(),
    };
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (&text[..1], digits),
        None => ("", &text[..]),
    };
    let digits = digits.strip_prefix(prefix).unwrap_or(digits);
    if digits.starts_with(['-', '+']) {
        return None;
    }
    i128::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

fn float<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(value) = args.given("x").cloned() else {
        return Ok(Value::Const(Const::Float(0.0)));
    };
    match value.as_const() {
        Some(Const::Str(s)) => {
            let text = digits_of(s.trim()).map(|text| text.to_ascii_lowercase());
            // Rust reads the names that Python reads, and no others.
            match text.and_then(|text| text.parse::<f64>().ok()) {
                Some(x) => Ok(Value::Const(Const::Float(x))),
                None => Err(cx.error(Code::Value, format!("{s:?} is no number")).into()),
            }
        }
        Some(c) => match constant::as_float(&c) {
            Some(x) => Ok(Value::Const(Const::Float(x))),
            None => Err(cx
                .error(
                    Code::Value,
                    format!("{} is no number", constant::display(&c)),
                )
                .into()),
        },
        None => {
            let t = cx.tensor(&value)?;
            cx.cast(t, Ty::Num(DType::Float32), Rounding::Nearest)
                .map(Value::Tensor)
        }
    }
}

fn boolean<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let value = args.get("x").cloned().unwrap_or(Value::bool(false));
    if let Value::Tuple(tuple) = &value {
        return Ok(Value::bool(!tuple.items.is_empty()));
    }
    match value.as_const() {
        Some(c) => Ok(Value::bool(constant::truth(&c))),
        None => {
            let t = cx.tensor(&value)?;
            cx.cast(t, Ty::Num(DType::Int1), Rounding::Nearest)
                .map(Value::Tensor)
        }
    }
}

fn string<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    cx.note_host(&args.req("x"));
    let text = cx.display(&args.req("x"));
    Ok(Value::Const(Const::Str(text.into())))
}

fn abs<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match super::find_in(Scope::Language, "abs") {
        Some(row) => (row.run)(cx, args),
        None => Ok(Value::Poison),
    }
}

/// `min` and `max` of several values, or of a tuple.
fn extreme<'m>(cx: &mut Lower<'m>, args: &Args<'m>, max: bool) -> Res<Value<'m>> {
    let mut items = args.rest_items().into_iter();
    let Some(mut result) = items.next() else {
        return Err(cx.error(Code::Call, "there is nothing to compare").into());
    };
    for item in items {
        result = match (&result, &item) {
            (Value::Const(x), Value::Const(y)) => {
                let op = if max {
                    ruff_python_ast::CmpOp::Gt
                } else {
                    ruff_python_ast::CmpOp::Lt
                };
                match constant::compare(op, y, x) {
                    Some(true) => item,
                    Some(false) => result,
                    None => {
                        let (x, y) = (result.describe(), item.describe());
                        let message = format!("{x} and {y} have no order");
                        return Err(cx.error(Code::Type, message).into());
                    }
                }
            }
            _ => cx.min_max(max, &result, &item, NanRule::Ignore)?,
        };
    }
    Ok(result)
}

fn sum<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Value::Tuple(tuple) = args.req("values") else {
        return Err(cx
            .error(Code::Type, "`sum` of Python adds a tuple")
            .help("use tl.sum")
            .into());
    };
    let mut total = Value::int(0);
    for item in &tuple.items {
        total = cx.binary(Operator::Add, &total, item)?;
    }
    Ok(total)
}

fn tuple<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args.given("x") {
        None => Ok(Value::tuple(Vec::new())),
        Some(list) => Ok(Value::tuple(cx.list_of(list)?)),
    }
}

fn list<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let items = match args.given("x") {
        None => Vec::new(),
        Some(list) => cx.list_of(list)?,
    };
    Ok(cx.list(items))
}

/// What can be gone through once, in a place where it might be kept ([`Lower::iterable`] makes it where it is not).
pub(super) fn iterator<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let name = args.builtin.name;
    let d = cx.error(Code::Unsupported, format!("`{name}` of Python here"));
    let help = format!(
        "in a function of the host, write it in a `for` or make a list: `list({name}(..))`"
    );
    Err(d.help(help).into())
}

fn isinstance<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let value = args.req("x");
    cx.note_host(&value);
    let types = match args.req("type") {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    for ty in types {
        let name = match &ty {
            Value::Builtin(b) => b.name,
            Value::Path(p) => p.0.rsplit('.').next().unwrap_or_default(),
            Value::Class(c) => {
                // In kernels a named tuple is a tuple like every other.
                let named = cx.is_named_tuple(c) && !cx.frame().host;
                let own = match &value {
                    Value::Tuple(t) => t.class.filter(|_| !named),
                    Value::Member(member) => Some(member.class),
                    _ => None,
                };
                if own.is_some_and(|own| cx.inherits(own, c)) {
                    return Ok(Value::bool(true));
                }
                continue;
            }
            other => {
                let message = format!("{} is no class", other.describe());
                return Err(cx.error(Code::Type, message).into());
            }
        };
        let is_block_pointer =
            matches!(&value, Value::Tuple(t) if matches!(t.mark, Some((Mark::BlockPointer, _))));
        let is_tensor = is_block_pointer || matches!(value, Value::Tensor(_) | Value::Known(_));
        let fits = match name {
            // Python is asked about what is in it.
            "constexpr" => false,
            "base_value" => is_tensor || matches!(value, Value::Tuple(_)),
            "base_type" => matches!(value, Value::Type(_) | Value::ConstType(_)),
            "constexpr_type" => matches!(value, Value::ConstType(_)),
            "tensor" => is_tensor,
            "int" => matches!(value, Value::Const(Const::Int(_) | Const::Bool(_))),
            "float" => matches!(value, Value::Const(Const::Float(_))),
            "bool" => matches!(value, Value::Const(Const::Bool(_))),
            "str" => matches!(value, Value::Const(Const::Str(_))),
            "tensor_descriptor" | "tensor_descriptor_base" => {
                matches!(&value, Value::Tuple(t) if matches!(t.mark, Some((Mark::Descriptor { .. }, _))))
            }
            "tuple" => {
                let host = cx.frame().host;
                matches!(&value, Value::Tuple(t) if t.mark.is_none() && !(t.list && host))
            }
            "list" => matches!(&value, Value::Tuple(t) if t.list && cx.frame().host),
            "dtype" => matches!(value, Value::Type(_)),
            "pointer_type" => {
                matches!(value, Value::Type(t) if t.ty.is_ptr() && t.shape.is_none())
            }
            "block_type" => matches!(value, Value::Type(t) if t.shape.is_some()),
            "JITFunction" => matches!(value, Value::Function(f) if decoration(f).jit),
            "JITCallable" => matches!(value, Value::Function(_)),
            // What is an integer too is not told from one.
            "Enum" if matches!(value, Value::Const(_)) => {
                let d = cx.error(
                    Code::Unsupported,
                    "members of enumerations are not told from their values",
                );
                return Err(d.help("compare with the members").into());
            }
            "Enum" => matches!(value, Value::Member(_)),
            // Nothing here is one of these, nor of a class of another project.
            "tuple_type" | "slice_type" | "slice" => false,
            _ if !matches!(&ty, Value::Path(p) if p.0.starts_with("triton")) => false,
            name => {
                let message = format!("nothing is known of the class `{name}`");
                return Err(cx.error(Code::NotYet, message).into());
            }
        };
        if fits {
            return Ok(Value::bool(true));
        }
    }
    Ok(Value::bool(false))
}

/// Notes that a module of the host was asked for what nobody knows it has; what the language has is known.
fn note_module<'m>(cx: &mut Lower<'m>, value: &Value<'m>) {
    match value {
        Value::Path(path) if &*path.0 == "triton.language" => {}
        value => cx.note_host(value),
    }
}

fn hasattr<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(name) = cx.str_arg(args, "name")? else {
        return Err(cx.error(Code::Call, "`hasattr` needs a name").into());
    };
    if name.starts_with("__") {
        let d = cx.error(
            Code::Unsupported,
            "the special methods of objects are not known",
        );
        return Err(d.help("ask with `isinstance`").into());
    }
    let found = cx.bare_attribute(&args.req("x"), &name)?;
    if found.is_none() {
        note_module(cx, &args.req("x"));
    }
    Ok(Value::bool(found.is_some()))
}

/// `getattr(x, "name")`, of the library too: `getattr(tl, "exp")`.
fn getattr<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(name) = cx.str_arg(args, "name")? else {
        return Err(cx.error(Code::Call, "`getattr` needs a name").into());
    };
    let value = args.req("x");
    let found = cx.bare_attribute(&value, &name)?;
    if found.is_none() {
        note_module(cx, &value);
    }
    found.or(args.given("default").cloned()).ok_or_else(|| {
        let message = format!("{} has no attribute `{name}`", value.describe());
        let d = cx.arg_error(args, "name", Code::Attribute, message);
        let path = match &value {
            Value::Path(path) => closest_of_library(&format!("{}.{name}", path.0)),
            _ => None,
        };
        match path {
            Some(other) => d.help(super::super::names::did_you_mean(other)).into(),
            None => d.into(),
        }
    })
}

fn round<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args
        .req("x")
        .as_const()
        .and_then(|c| constant::as_float(&c))
    {
        Some(x) => super::host::integer(cx, x.round_ties_even()),
        None => {
            let d = cx.error(Code::Constant, "`round` of Python is for constants");
            Err(d.help("use libdevice.rint or tl.floor(x + 0.5)").into())
        }
    }
}
