//! Loops, hints and assertions of the language, and what kernels use of Python and the host.

use ruff_python_ast::Operator;

use super::{Args, Builtin, Scope, rows};
use crate::front::constant;
use crate::front::diagnostic::{Code, Severity};
use crate::front::lower::{Lower, Res};
use crate::front::names::type_predicate;
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, RangeValue, Tensor, Value};
use crate::ir::attrs::{List, NanRule, Rounding};
use crate::ir::entities;

pub(super) const LANGUAGE: &[Builtin] = rows! { Language;
    "range"("arg1; arg2 step num_stages loop_unroll_factor disallow_acc_multi_buffer flatten warp_specialize disable_licm") range;
    "static_range"("arg1; arg2 step") static_range;
    "multiple_of"("input values") |cx, args| hint(cx, args, crate::ir::builder::TileBuilder::assume_multiple);
    "max_contiguous"("input values") |cx, args| hint(cx, args, crate::ir::builder::TileBuilder::assume_contiguous);
    "max_constancy"("input values") |cx, args| hint(cx, args, crate::ir::builder::TileBuilder::assume_constant);
    "assume"("cond") assume;
    "static_assert"("cond; msg") static_assert;
    "static_print"("*values; sep end file flush") static_print;
    "device_assert"("cond; msg mask") device_assert;
    "_log2"("i") log2;
    "_is_power_of_two"("i") |cx, args| {
        let number = cx.int_arg(args, "i")?.unwrap_or(0);
        Ok(Value::bool(number > 0 && number & (number - 1) == 0))
    };
    "is_cuda"("") |_, _| Ok(Value::bool(true));
    "is_hip"("") |_, _| Ok(Value::bool(false));
    "cuda_capability_geq"("major; minor") capability;
    "num_warps"("") |cx, _| Ok(Value::int(i128::from(cx.b.func().num_warps())));
    "num_threads"("") |cx, _| Ok(Value::int(i128::from(cx.b.func().num_threads())));
};

pub(super) const PYTHON: &[Builtin] = rows! { Python;
    "range"("arg1; arg2 step") range;
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
    "print"("*values; sep end") print;
    "round"("x") round;
};

pub(super) const TRITON: &[Builtin] = rows! { Triton;
    "cdiv"("x y") cdiv;
    "next_power_of_2"("n") next_power_of_2;
};

pub(super) const MATH: &[Builtin] = rows! { Math;
    "sqrt"("x") |cx, args| math(cx, args, |x| (x >= 0.0).then(|| x.sqrt()));
    "exp"("x") |cx, args| math(cx, args, |x| Some(x.exp()));
    "log"("x; base") |cx, args| math(cx, args, |x| (x > 0.0).then(|| x.ln()));
    "log2"("x") |cx, args| math(cx, args, |x| (x > 0.0).then(|| x.log2()));
    "log10"("x") |cx, args| math(cx, args, |x| (x > 0.0).then(|| x.log10()));
    "sin"("x") |cx, args| math(cx, args, |x| Some(x.sin()));
    "cos"("x") |cx, args| math(cx, args, |x| Some(x.cos()));
    "tanh"("x") |cx, args| math(cx, args, |x| Some(x.tanh()));
    "erf"("x") no_erf;
    "floor"("x") |cx, args| whole(cx, args, f64::floor);
    "ceil"("x") |cx, args| whole(cx, args, f64::ceil);
    "prod"("x") no_erf;
};

pub(super) const HOST: &[Builtin] = rows! { Host;
    "finfo"("dtype") finfo;
    "iinfo"("dtype") finfo;
    "sqrt"("x") |cx, args| math(cx, args, |x| (x >= 0.0).then(|| x.sqrt()));
};

pub(super) const METHODS: &[Builtin] = rows! { Method;
    "logical_and"("x y") |cx, args| logical(cx, args, Operator::BitAnd);
    "logical_or"("x y") |cx, args| logical(cx, args, Operator::BitOr);
    "item"("x") item;
};

pub(super) const TYPES: &[Builtin] = rows! { Type;
    "is_floating"("t") predicate; "is_standard_floating"("t") predicate; "is_int"("t") predicate;
    "is_int_signed"("t") predicate; "is_int_unsigned"("t") predicate; "is_bool"("t") predicate;
    "is_fp8"("t") predicate; "is_ptr"("t") predicate; "is_const"("t") predicate;
    "is_block"("t") predicate; "is_fp16"("t") predicate; "is_bf16"("t") predicate;
    "is_fp32"("t") predicate; "is_fp64"("t") predicate; "is_fp8e5"("t") predicate;
    "is_fp8e4nv"("t") predicate; "is_fp8e4b15"("t") predicate; "is_fp8e4b8"("t") predicate;
    "is_fp8e5b16"("t") predicate; "is_int1"("t") predicate; "is_int8"("t") predicate;
    "is_int16"("t") predicate; "is_int32"("t") predicate; "is_int64"("t") predicate;
    "is_uint8"("t") predicate; "is_uint16"("t") predicate; "is_uint32"("t") predicate;
    "is_uint64"("t") predicate;
};

fn bounds<'m>(args: &Args<'m>) -> (Value<'m>, Value<'m>, Value<'m>) {
    let first = args.req("arg1");
    let (start, stop) = match args.get("arg2") {
        Some(stop) => (first, stop.clone()),
        None => (Value::int(0), first),
    };
    (
        start,
        stop,
        args.get("step").cloned().unwrap_or(Value::int(1)),
    )
}

fn range<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (start, stop, step) = bounds(args);
    let stages = if args.builtin.scope == Scope::Language {
        cx.int_arg(args, "num_stages")?
    } else {
        None
    };
    let stages = match stages {
        None | Some(0) => None,
        Some(n @ 1..=32) => Some(n as u8),
        Some(n) => {
            let message = format!("a loop has 1 to 32 stages, not {n}");
            return Err(cx.error(Code::Value, message).into());
        }
    };
    let range = RangeValue {
        start,
        stop,
        step,
        unroll: false,
        stages,
    };
    Ok(Value::Range(range.into()))
}

fn static_range<'m>(_cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (start, stop, step) = bounds(args);
    let range = RangeValue {
        start,
        stop,
        step,
        unroll: true,
        stages: None,
    };
    Ok(Value::Range(range.into()))
}

/// A hint of the IR.
type Hint = fn(&mut crate::ir::builder::TileBuilder, entities::Value, List) -> entities::Value;

/// `multiple_of` and its kin: one number for each dimension.
fn hint<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Hint) -> Res<Value<'m>> {
    let value = args.req("input");
    if value.as_const().is_some() {
        // A number that is known needs no promise.
        return Ok(value);
    }
    let t = cx.tensor_arg(args, "input")?;
    let items = match args.req("values") {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    let mut values = List::new();
    for item in &items {
        let number = item.as_const().and_then(|c| constant::as_int(&c));
        match number.and_then(|n| u32::try_from(n).ok()) {
            // What is no power of two is a multiple of one.
            Some(n) if n > 0 => values.push(1 << n.trailing_zeros()),
            _ => {
                let message = format!("expected constants above zero, found {}", item.describe());
                return Err(cx.error(Code::Constant, message).into());
            }
        }
    }
    let rank = t.shape.rank().max(1);
    if values.len() != rank {
        let message = format!("{} numbers for a value of {rank} dimensions", values.len());
        return Err(cx
            .error(Code::Value, message)
            .help("give one for each dimension")
            .into());
    }
    if t.ty.dtype().is_some_and(|d| !d.is_int()) {
        return Err(cx.wrong_type("integers or pointers", t));
    }
    let value = make(&mut cx.b, t.value, values);
    Ok(cx.block(value, t.ty))
}

/// A promise that nothing is made of yet.
fn assume<'m>(_cx: &mut Lower<'m>, _args: &Args<'m>) -> Res<Value<'m>> {
    Ok(Value::NONE)
}

fn static_assert<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let cond = args.req("cond");
    match cx.condition(&cond)? {
        Ok(true) => Ok(Value::NONE),
        Ok(false) => {
            let message = match args.get("msg") {
                Some(msg) => format!("static assertion failed: {}", cx.display(msg)),
                None => "static assertion failed".to_owned(),
            };
            Err(cx
                .error(Code::Assertion, message.trim_end_matches(": "))
                .into())
        }
        Err(_) => {
            let message = "the condition is not known at compile time";
            let d = cx.error(Code::Constant, message);
            Err(d
                .help("use tl.device_assert for what depends on data")
                .into())
        }
    }
}

fn static_print<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let values: Vec<String> = args.rest.iter().map(|v| cx.display(v)).collect();
    let separator = cx.str_arg(args, "sep")?.unwrap_or_else(|| " ".into());
    let mut text = values.join(&separator);
    if let Some((end, _)) = text.char_indices().nth(1000) {
        text.truncate(end);
        text += "...";
    }
    let d = cx.error(Code::Print, text).with_severity(Severity::Note);
    cx.add(d);
    Ok(Value::NONE)
}

fn device_assert<'m>(cx: &mut Lower<'m>, _args: &Args<'m>) -> Res<Value<'m>> {
    cx.device_assertion()?;
    Ok(Value::NONE)
}

/// The exponent of a power of two.
fn log2<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let number = cx.int_arg(args, "i")?.unwrap_or(0);
    match u128::try_from(number).ok().and_then(u128::checked_ilog2) {
        Some(exponent) => Ok(Value::int(i128::from(exponent))),
        None => {
            let message = format!("{number} has no logarithm");
            Err(cx.error(Code::Arithmetic, message).into())
        }
    }
}

/// Whether the target has at least this compute capability.
fn capability<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let major = cx.int_arg(args, "major")?.unwrap_or(0);
    let minor = cx.int_arg(args, "minor")?.unwrap_or(0);
    let own = i128::from(cx.target.sm);
    Ok(Value::bool((own / 10, own % 10) >= (major, minor)))
}

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
    let Some(value) = args.get("x").cloned() else {
        return Ok(Value::int(0));
    };
    match value.as_const() {
        Some(Const::Float(x)) if x.is_finite() && x.abs() < 1e38 => {
            Ok(Value::int(x.trunc() as i128))
        }
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
    let Some(value) = args.get("x").cloned() else {
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
    match args.get("x") {
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
                let same = matches!(&value, Value::Tuple(t) if t.class.is_some_and(|k| std::ptr::eq(k, *c)));
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
            "tuple" | "list" => matches!(value, Value::Tuple(_)),
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
        Value::Tuple(t) => t.names.contains(&&*name),
        Value::Tensor(_) | Value::Known(_) => {
            matches!(&*name, "dtype" | "type" | "shape" | "numel" | "T")
                || super::method(&name).is_some()
        }
        _ => false,
    };
    Ok(Value::bool(found))
}

fn print<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if args.rest.iter().any(|v| matches!(v, Value::Tensor(_))) {
        let d = cx.error(Code::NotYet, "printing at run time is not supported yet");
        return Err(d.help("store what is of interest to memory").into());
    }
    static_print(cx, args)
}

fn round<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args
        .req("x")
        .as_const()
        .and_then(|c| constant::as_float(&c))
    {
        Some(x) if x.abs() < 1e18 => Ok(Value::int(x.round_ties_even() as i128)),
        _ => {
            let d = cx.error(Code::Constant, "`round` of Python is for constants");
            Err(d.help("use libdevice.rint or tl.floor(x + 0.5)").into())
        }
    }
}

fn cdiv<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = (args.req("x"), args.req("y"));
    let less = cx.binary(Operator::Sub, &y, &Value::int(1))?;
    let sum = cx.binary(Operator::Add, &x, &less)?;
    cx.binary(Operator::FloorDiv, &sum, &y)
}

fn next_power_of_2<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match cx.int_arg(args, "n")? {
        Some(n @ ..=1) => Ok(Value::int(if n <= 0 { 0 } else { 1 })),
        Some(n) if n <= 1 << 64 => Ok(Value::int((n as u128).next_power_of_two() as i128)),
        _ => Err(cx.error(Code::Value, "the number is too large").into()),
    }
}

/// A function of Python's `math` on a constant.
fn math<'m>(cx: &mut Lower<'m>, args: &Args<'m>, f: fn(f64) -> Option<f64>) -> Res<Value<'m>> {
    let name = args.builtin.name;
    let Some(x) = args
        .req("x")
        .as_const()
        .and_then(|c| constant::as_float(&c))
    else {
        let found = args.req("x").describe();
        let message = format!("`math.{name}` is for constants, found {found}");
        return Err(cx
            .error(Code::Constant, message)
            .help(format!("use tl.{name}"))
            .into());
    };
    let Some(mut result) = f(x) else {
        let message = format!("`math.{name}` of {} is not a number", constant::repr(x));
        return Err(cx.error(Code::Arithmetic, message).into());
    };
    if let Some(base) = args.get("base") {
        let base = base
            .as_const()
            .and_then(|c| constant::as_float(&c))
            .filter(|b| *b > 0.0 && *b != 1.0);
        match base {
            Some(base) => result /= base.ln(),
            None => {
                return Err(cx
                    .error(Code::Arithmetic, "the base is no number above 0")
                    .into());
            }
        }
    }
    Ok(Value::Const(Const::Float(result)))
}

fn whole<'m>(cx: &mut Lower<'m>, args: &Args<'m>, f: fn(f64) -> f64) -> Res<Value<'m>> {
    match args
        .req("x")
        .as_const()
        .and_then(|c| constant::as_float(&c))
    {
        Some(x) if x.abs() < 1e18 => Ok(Value::int(f(x) as i128)),
        _ => {
            let name = args.builtin.name;
            let d = cx.error(Code::Constant, format!("`math.{name}` is for constants"));
            Err(d.help(format!("use tl.{name}")).into())
        }
    }
}

fn no_erf<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let message = format!("`math.{}` is not supported yet", args.builtin.name);
    Err(cx
        .error(Code::NotYet, message)
        .help("write the number")
        .into())
}

/// `torch.finfo(dtype)`: a tuple with names.
fn finfo<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(dtype) = cx.dtype_arg(args, "dtype")? else {
        return Err(cx.error(Code::Type, "expected a type, found None").into());
    };
    let (names, items) = if dtype.is_int() {
        let (low, high) = dtype.int_range();
        (
            vec!["min", "max", "bits"],
            vec![
                Value::int(low),
                Value::int(high),
                Value::int(i128::from(dtype.bits())),
            ],
        )
    } else {
        let (max, tiny, eps) = match dtype {
            DType::Float16 => (65504.0, 2f64.powi(-14), 2f64.powi(-10)),
            DType::Bfloat16 => (
                f64::from(f32::from_bits(0x7f7f_0000)),
                2f64.powi(-126),
                2f64.powi(-7),
            ),
            DType::Float64 => (f64::MAX, f64::MIN_POSITIVE, f64::EPSILON),
            DType::Float8e4nv => (448.0, 2f64.powi(-6), 0.125),
            DType::Float8e5 => (57344.0, 2f64.powi(-14), 0.25),
            _ => (
                f64::from(f32::MAX),
                f64::from(f32::MIN_POSITIVE),
                f64::from(f32::EPSILON),
            ),
        };
        let float = |x| Value::Const(Const::Float(x));
        (
            vec!["max", "min", "tiny", "smallest_normal", "eps"],
            vec![
                float(max),
                float(-max),
                float(tiny),
                float(tiny),
                float(eps),
            ],
        )
    };
    let tuple = crate::front::value::Tuple::new(items, None, names);
    Ok(Value::Tuple(tuple.into()))
}

fn logical<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: Operator) -> Res<Value<'m>> {
    let (x, y) = (cx.tensor_arg(args, "x")?, cx.tensor_arg(args, "y")?);
    let x = cx.cast(x, Ty::Num(DType::Int1), Rounding::Nearest)?;
    let y = cx.cast(y, Ty::Num(DType::Int1), Rounding::Nearest)?;
    cx.binary(op, &Value::Tensor(x), &Value::Tensor(y))
}

/// The one element of a block: its sum.
fn item<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t: Tensor = cx.tensor_arg(args, "x")?;
    if t.shape.elements() != 1 {
        return Err(cx.wrong_type("one element", t));
    }
    if t.shape.is_scalar() {
        return Ok(Value::Tensor(t));
    }
    let given = vec![cx.argument(Value::Tensor(t))];
    super::call(cx, "max", given)
}

fn predicate<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args.req("t") {
        Value::Type(t) => Ok(Value::bool(
            type_predicate(t, args.builtin.name).unwrap_or(false),
        )),
        other => Err(cx
            .error(
                Code::Type,
                format!("expected a type, found {}", other.describe()),
            )
            .into()),
    }
}
