//! What kernels use of the host at compile time: a few functions of `triton`, `math`, `torch` and `numpy`.

use ruff_python_ast::Operator;

use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::DType;
use crate::front::value::{Const, Tuple, Value};

pub(super) const TRITON: &[Builtin] = rows! { Triton;
    "cdiv"("x y") cdiv;
    "next_power_of_2"("n") next_power_of_2;
    "constexpr_function"("fn") |_, args| Ok(args.req("fn"));
    // Of the driver, `triton.runtime.driver.active`.
    "get_current_target"("") super::hints::current_target;
    "GPUTarget"("backend arch warp_size") |_, args| {
        let items = ["backend", "arch", "warp_size"].map(|name| args.req(name));
        Ok(super::hints::target_of(items.to_vec()))
    };
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
    "erf"("x") |cx, args| math(cx, args, |x| Some(libm::erf(x)));
    "floor"("x") |cx, args| whole(cx, args, f64::floor);
    "ceil"("x") |cx, args| whole(cx, args, f64::ceil);
    "prod"("values; start") prod;
};

pub(super) const HOST: &[Builtin] = rows! { Host;
    // Of `torch.cuda`: the device is the target.
    "get_device_capability"("; device") |cx, _| {
        let sm = i128::from(cx.target.sm);
        Ok(Value::tuple(vec![Value::int(sm / 10), Value::int(sm % 10)]))
    };
    "get_device_properties"("; device") |cx, _| {
        let sm = i128::from(cx.target.sm);
        let items = [sm / 10, sm % 10, 32].map(Value::int).to_vec();
        let names = vec!["major", "minor", "warp_size"];
        Ok(Value::Tuple(Tuple::new(items, None, names).into()))
    };
    "is_available"("") |_, _| Ok(Value::bool(true));
    "product"("*values") super::python::iterator;
    "finfo"("dtype") finfo;
    "iinfo"("dtype") iinfo;
    "sqrt"("x") |cx, args| math(cx, args, |x| (x >= 0.0).then(|| x.sqrt()));
};

pub(super) const PACKAGING: &[Builtin] = rows! { Packaging;
    "parse"("version") version;
    "Version"("version") version;
};

/// Numbers of a version that are compared; more are an error.
const MOST_NUMBERS: usize = 6;

/// A version as a tuple that compares as it does (PEP 440): its numbers, filled up with zeros, and what stands behind them, a release for
/// development before a first, a second, a last one to be tested, the version itself, and what came after it.
fn version<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let text = cx.str_arg(args, "version")?.unwrap_or_default();
    let Some(numbers) = numbers_of(&text) else {
        let message = format!("the version {text:?} is not understood");
        let d = cx.arg_error(args, "version", Code::Value, message);
        return Err(d
            .help("it is numbers with points, and at most one of .dev, a, b, rc and .post")
            .into());
    };
    Ok(Value::tuple(numbers.into_iter().map(Value::int).collect()))
}

fn numbers_of(text: &str) -> Option<Vec<i128>> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (release, more) = text.split_at(end.unwrap_or(text.len()));
    let release = match more {
        "" => release,
        more if more.starts_with(['d', 'p']) => release.strip_suffix('.')?,
        _ => release,
    };
    let numbers = release.split('.').map(|n| n.parse().ok());
    let mut numbers: Vec<i128> = numbers.collect::<Option<_>>()?;
    if numbers.len() > MOST_NUMBERS {
        return None;
    }
    numbers.resize(MOST_NUMBERS, 0);
    let kinds = [("dev", -4), ("a", -3), ("b", -2), ("rc", -1), ("post", 1)];
    let (kind, count) = match more {
        "" => (0, 0),
        more => kinds.iter().find_map(|&(name, kind)| {
            let count = more.strip_prefix(name)?;
            let count = if count.is_empty() {
                Some(0)
            } else {
                count.parse().ok()
            };
            Some((kind, count?))
        })?,
    };
    numbers.extend([kind, count]);
    Some(numbers)
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
        Some(x) => integer(cx, f(x)),
        None => {
            let name = args.builtin.name;
            let d = cx.error(Code::Constant, format!("`math.{name}` is for constants"));
            Err(d.help(format!("use tl.{name}")).into())
        }
    }
}

/// A whole number as an integer.
pub(super) fn integer<'m>(cx: &mut Lower<'m>, x: f64) -> Res<Value<'m>> {
    if x.abs() < 1e38 {
        return Ok(Value::int(x as i128));
    }
    let message = format!("{} is no integer", constant::repr(x));
    Err(cx.error(Code::Value, message).into())
}

fn prod<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Value::Tuple(tuple) = args.req("values") else {
        return Err(cx
            .error(Code::Type, "`math.prod` multiplies a tuple")
            .into());
    };
    let mut product = args.get("start").cloned().unwrap_or(Value::int(1));
    for item in &tuple.items {
        product = cx.binary(Operator::Mult, &product, item)?;
    }
    Ok(product)
}

/// `torch.iinfo(dtype)`: a tuple with names.
fn iinfo<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(dtype) = cx.dtype_arg(args, "dtype")?.filter(|d| d.is_int()) else {
        let message = "`iinfo` tells of integers".to_owned();
        return Err(cx.arg_error(args, "dtype", Code::Type, message).into());
    };
    let (low, high) = dtype.int_range();
    let items = [low, high, i128::from(dtype.bits())].map(Value::int);
    let tuple = Tuple::new(items.into(), None, vec!["min", "max", "bits"]);
    Ok(Value::Tuple(tuple.into()))
}

/// `torch.finfo(dtype)`: a tuple with names.
fn finfo<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let dtype = cx.dtype_arg(args, "dtype")?;
    let scalar = dtype.and_then(DType::scalar);
    let Some((scalar, format)) = scalar.and_then(|s| Some((s, s.format()?))) else {
        let message = "`finfo` tells of floating-point types".to_owned();
        return Err(cx.arg_error(args, "dtype", Code::Type, message).into());
    };
    let float = |x| Value::Const(Const::Float(x));
    let max = format.to_f64(format.max_finite);
    let tiny = format.to_f64(1 << format.mantissa_bits);
    let eps = (-f64::from(format.mantissa_bits)).exp2();
    let names = vec!["max", "min", "tiny", "smallest_normal", "eps", "bits"];
    let mut items: Vec<Value<'m>> = [max, -max, tiny, tiny, eps].map(float).into();
    items.push(Value::int(i128::from(scalar.bits())));
    Ok(Value::Tuple(Tuple::new(items, None, names).into()))
}

#[cfg(test)]
mod tests {
    use super::numbers_of;

    #[test]
    fn versions_are_in_order() {
        let ordered = [
            "2.10",
            "3.0.0.dev20250101",
            "3.0.0a1",
            "3.0.0b2",
            "3.0.0rc1",
            "3",
            "3.0.0.post1",
            "3.0.1",
            "3.2",
            "3.10.0",
        ];
        let found = ordered.map(|text| numbers_of(text).expect(text));
        assert!(found.is_sorted(), "{found:?}");
        assert_eq!(numbers_of("v3.0.0"), numbers_of("3.0"));
        for text in [
            "",
            "three",
            "3.x",
            "3.0.0rc",
            "1.2.3.4.5.6.7",
            "3.0-beta",
            "3.0.",
            "vv3",
            "3.0+cu128",
            "3.0.rc1.",
            "3dev",
        ] {
            let known = text == "3.0.0rc";
            assert_eq!(numbers_of(text).is_some(), known, "{text}");
        }
    }
}
