//! Python's built-in functions.

use ruff_python_ast::Operator;

use super::{Args, Builtin, Scope, device, hints, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Mark, Value};
use crate::ir::attrs::{NanRule, Rounding};

/// Names of Python that the language has too.
pub(super) const LANGUAGE: &[Builtin] = rows! { Language;
    "tuple"("; x") tuple;
};

pub(super) const PYTHON: &[Builtin] = rows! { Python;
    "range"("arg1; arg2 step") hints::range;
    "len"("x") len;
    "int"("; x") int;
    "float"("; x") float;
    "bool"("; x") boolean;
    "str"("x") string;
    "abs"("x") abs;
    "min"("*values") |cx, args| extreme(cx, args, false);
    "max"("*values") |cx, args| extreme(cx, args, true);
    "sum"("values") sum;
    "tuple"("; x") tuple;
    "list"("; x") tuple;
    "isinstance"("x type") isinstance;
    "hasattr"("x name") hasattr;
    "print"("*values; sep end") device::print;
    "round"("x") round;
};

fn len<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args.req("x") {
        Value::Tuple(tuple) => Ok(Value::int(tuple.items.len() as i128)),
        Value::Const(Const::Str(s)) => Ok(Value::int(s.chars().count() as i128)),
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
        Some(Const::Str(s)) => match s.trim().parse() {
            Ok(n) => Ok(Value::int(n)),
            Err(_) => Err(cx.error(Code::Value, format!("{s:?} is no integer")).into()),
        },
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

fn float<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(value) = args.given("x").cloned() else {
        return Ok(Value::Const(Const::Float(0.0)));
    };
    match value.as_const() {
        Some(Const::Str(s)) => {
            let text = s.trim().to_ascii_lowercase();
            // Rust reads the names that Python reads, and no others.
            match text.parse::<f64>() {
                Ok(x) => Ok(Value::Const(Const::Float(x))),
                Err(_) => Err(cx.error(Code::Value, format!("{s:?} is no number")).into()),
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
        Some(Value::Tuple(tuple)) => Ok(Value::tuple(tuple.items.clone())),
        Some(Value::Range(range)) => Ok(Value::tuple(cx.constant_range(range)?)),
        Some(other) => {
            let message = format!("{} is no tuple", other.describe());
            Err(cx.error(Code::Type, message).into())
        }
    }
}

fn isinstance<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let value = args.req("x");
    let types = match args.req("type") {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    for ty in types {
        let name = match &ty {
            Value::Builtin(b) => b.name.to_owned(),
            Value::Path(p) => p.0.rsplit('.').next().unwrap_or_default().to_owned(),
            Value::Class(c) => {
                let same = matches!(&value, Value::Tuple(t) if t.class.is_some_and(|own| cx.inherits(own, c)));
                if same {
                    return Ok(Value::bool(true));
                }
                continue;
            }
            other => {
                let message = format!("{} is no class", other.describe());
                return Err(cx.error(Code::Type, message).into());
            }
        };
        let fits = match name.as_str() {
            "constexpr" => matches!(value, Value::Const(_)),
            "tensor" => matches!(value, Value::Tensor(_) | Value::Known(_)),
            "int" => matches!(value, Value::Const(Const::Int(_) | Const::Bool(_))),
            "float" => matches!(value, Value::Const(Const::Float(_))),
            "bool" => matches!(value, Value::Const(Const::Bool(_))),
            "str" => matches!(value, Value::Const(Const::Str(_))),
            "tensor_descriptor" | "tensor_descriptor_base" => {
                matches!(&value, Value::Tuple(t) if matches!(t.mark, Some((Mark::Descriptor { .. }, _))))
            }
            "tuple" | "list" => matches!(&value, Value::Tuple(t) if t.mark.is_none()),
            "dtype" | "pointer_type" | "block_type" => matches!(value, Value::Type(_)),
            _ => false,
        };
        if fits {
            return Ok(Value::bool(true));
        }
    }
    Ok(Value::bool(false))
}

fn hasattr<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(name) = cx.str_arg(args, "name")? else {
        return Err(cx.error(Code::Call, "`hasattr` needs a name").into());
    };
    let found = match args.req("x") {
        // Numbers have the attributes of scalars here, which is not how kernels tell them apart.
        Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => &*name == "value",
        // What a path leads to is a path if nobody knows it.
        value => cx
            .find_attribute(&value, &name)?
            .is_some_and(|found| !matches!(found, Value::Path(_))),
    };
    Ok(Value::bool(found))
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
