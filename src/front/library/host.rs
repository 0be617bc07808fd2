//! What kernels use of the host at compile time: a few functions of `triton`, `math`, `torch` and `numpy`.

use ruff_python_ast::Operator;

use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::DType;
use crate::front::value::{Const, Value};

pub(super) const TRITON: &[Builtin] = rows! { Triton;
    "cdiv"("x y") cdiv;
    "next_power_of_2"("n") next_power_of_2;
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
