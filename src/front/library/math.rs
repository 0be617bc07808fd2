//! Functions of single elements.

use ruff_python_ast::{CmpOp, Operator};

use super::{Args, Builtin, rows};
use crate::front::arith::Rules;
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty, show};
use crate::front::value::{Const, Known, PyNumber, Tensor, Value};
use crate::ir::attrs::NanRule;
use crate::ir::builder::TileBuilder;
use crate::ir::entities;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "exp"("x") |cx, args| float(cx, args, TileBuilder::exp);
    "exp2"("x") |cx, args| float(cx, args, TileBuilder::exp2);
    "log"("x") |cx, args| float(cx, args, TileBuilder::log);
    "log2"("x") |cx, args| float(cx, args, TileBuilder::log2);
    "sqrt"("x") |cx, args| float(cx, args, TileBuilder::sqrt);
    "sqrt_rn"("x") |cx, args| float(cx, args, TileBuilder::sqrt_rn);
    "rsqrt"("x") |cx, args| float(cx, args, TileBuilder::rsqrt);
    "sin"("x") |cx, args| float(cx, args, TileBuilder::sin);
    "cos"("x") |cx, args| float(cx, args, TileBuilder::cos);
    "erf"("x") |cx, args| float(cx, args, TileBuilder::erf);
    "floor"("x") |cx, args| float(cx, args, TileBuilder::floor);
    "ceil"("x") |cx, args| float(cx, args, TileBuilder::ceil);
    "abs"("x") abs;
    "sigmoid"("x") sigmoid;
    "fma"("x y z") fma;
    "fdiv"("x y; ieee_rounding") fdiv;
    "div_rn"("x y") div_rn;
    "where"("condition x y") select;
    "maximum"("x y; propagate_nan") |cx, args| min_max(cx, args, true);
    "minimum"("x y; propagate_nan") |cx, args| min_max(cx, args, false);
    "clamp"("x min max; propagate_nan") clamp;
    "cdiv"("x div") cdiv;
    "umulhi"("x y") umulhi;
    "add"("x y; sanitize_overflow") |cx, args| arithmetic(cx, args, Operator::Add);
    "sub"("x y; sanitize_overflow") |cx, args| arithmetic(cx, args, Operator::Sub);
    "mul"("x y; sanitize_overflow") |cx, args| arithmetic(cx, args, Operator::Mult);
    "expect_zero"("x mask") expect_zero;
};

pub(super) const METHODS: &[Builtin] = rows! { Method;
    "logical_and"("x y") |cx, args| logical(cx, args, Operator::BitAnd);
    "logical_or"("x y") |cx, args| logical(cx, args, Operator::BitOr);
};

/// An operator, with its check for overflow unless that is switched off.
fn arithmetic<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: Operator) -> Res<Value<'m>> {
    let outer = cx.sanitize_overflow;
    cx.sanitize_overflow = outer && cx.bool_arg(args, "sanitize_overflow", true)?;
    let result = cx.binary(op, &args.req("x"), &args.req("y"));
    cx.sanitize_overflow = outer;
    result
}

/// A float of the IR to a float.
pub(super) type Unary = fn(&mut TileBuilder, entities::Value) -> entities::Value;

/// A function of f32 and f64. Halves are refused, as they are in Triton.
pub(super) fn float<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Unary) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let value = make(&mut cx.b, t.value);
    Ok(cx.block(value, t.ty))
}

/// An f32 or f64 operand.
pub(super) fn wide_operand<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Tensor> {
    let t = cx.tensor_arg(args, name)?;
    match t.ty {
        Ty::Num(DType::Float32 | DType::Float64) => Ok(t),
        ty => {
            let (function, found) = (args.builtin.name, show(ty, t.shape));
            let message = format!("`{function}` is for float32 and float64, found {found}");
            let d = cx.error(Code::Type, message);
            Err(d.help("cast first: `x.to(tl.float32)`").into())
        }
    }
}

pub(super) fn abs<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match args.req("x") {
        Value::Const(Const::Float(x)) => return Ok(Value::Const(Const::Float(x.abs()))),
        Value::Const(c) => match constant::as_int(&c).map(i128::checked_abs) {
            Some(Some(n)) => return Ok(Value::int(n)),
            Some(None) => return Err(cx.error(Code::Arithmetic, constant::WIDE).into()),
            None => {}
        },
        Value::Known(known) => {
            let number = match known.number {
                PyNumber::Int(n) => PyNumber::Int(known.dtype.wrap(n.saturating_abs())),
                PyNumber::Float(x) => PyNumber::Float(x.abs()),
            };
            return Ok(Value::Known(Known { number, ..known }));
        }
        _ => {}
    }
    let t = cx.tensor_arg(args, "x")?;
    let value = match t.ty {
        // The IR holds its bits, of which the top one is the sign.
        Ty::Num(DType::Float8e4b15) => {
            let tile = cx.tile_type(t.ty, t.shape)?;
            let size = cx.b.const_bits(0x7f, tile);
            cx.b.and(t.value, size)
        }
        Ty::Num(d) if d.is_float() => cx.b.fabs(t.value),
        Ty::Num(d) if d.is_signed() => cx.b.iabs(t.value),
        Ty::Num(_) => t.value,
        Ty::Ptr { .. } => return Err(cx.wrong_type("a number", t)),
    };
    Ok(cx.block(value, t.ty))
}

/// A number of the type and shape of a block.
pub(super) fn like<'m>(cx: &mut Lower<'m>, t: Tensor, number: f64) -> Res<Tensor> {
    let dtype = t.ty.dtype().unwrap_or(DType::Float32);
    let known = Known {
        dtype,
        number: PyNumber::Float(number),
    };
    cx.constant(known, t.shape)
}

/// 1 / (1 + exp(-x)).
fn sigmoid<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let one = like(cx, t, 1.0)?;
    let negative = cx.b.fneg(t.value);
    let power = cx.b.exp(negative);
    let sum = cx.b.fadd(one.value, power);
    let sum = Tensor { value: sum, ..t };
    cx.divide(one, sum)
}

pub(super) fn fma<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    // Numbers count as tensors of their own type: halves and a number make f32.
    let strong = |name| cx.strong(&args.req(name));
    let (x, y, z) = (strong("x")?, strong("y")?, strong("z")?);
    let first = cx.pair(&x, &y, Rules::default())?;
    let product = Value::Tensor(Tensor {
        value: first.a,
        ty: first.ty,
        shape: first.shape,
    });
    let all = cx.pair(&product, &z, Rules::default())?;
    let Ty::Num(dtype) = all.ty else {
        return Err(Stop::Reported);
    };
    if !dtype.is_float() || dtype.is_fp8() {
        let d = cx.error(Code::Type, format!("`fma` is for floats, found {dtype}"));
        return Err(d.help("write `x * y + z`").into());
    }
    let x = cx.materialize(&x, dtype, all.shape)?;
    let y = cx.materialize(&y, dtype, all.shape)?;
    let value = cx.b.fma(x.value, y.value, all.b);
    Ok(cx.block(value, all.ty))
}

/// Two floats of one type for a division.
fn dividends<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tensor, Tensor)> {
    let (x, y) = (args.req("x"), args.req("y"));
    let p = cx.pair(
        &x,
        &y,
        Rules {
            division: true,
            ..Rules::default()
        },
    )?;
    let with = |value| Tensor {
        value,
        ty: p.ty,
        shape: p.shape,
    };
    if p.ty.dtype().is_none_or(|d| !d.is_float()) {
        let message = format!("`{}` is for floats, found {}", args.builtin.name, p.ty);
        return Err(cx.error(Code::Type, message).help("use `/` or `//`").into());
    }
    Ok((with(p.a), with(p.b)))
}

pub(super) fn fdiv<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let exact = cx.bool_arg(args, "ieee_rounding", false)?;
    let (x, y) = dividends(cx, args)?;
    if exact {
        return exact_quotient(cx, x, y);
    }
    cx.divide(x, y)
}

pub(super) fn div_rn<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = dividends(cx, args)?;
    exact_quotient(cx, x, y)
}

fn exact_quotient<'m>(cx: &mut Lower<'m>, x: Tensor, y: Tensor) -> Res<Value<'m>> {
    match x.ty {
        Ty::Num(DType::Float32 | DType::Float64) => {
            let value = cx.b.fdiv_rn(x.value, y.value);
            Ok(cx.block(value, x.ty))
        }
        _ => Err(cx.wrong_type("float32 or float64", x)),
    }
}

fn select<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    cx.select(&args.req("condition"), &args.req("x"), &args.req("y"))
}

/// What a member of `tl.PropagateNan` says; the library has no enumeration of its own, members are paths.
pub(crate) fn nan_rule_of(path: &str) -> Option<NanRule> {
    match path.rsplit_once("PropagateNan.")?.1 {
        "ALL" => Some(NanRule::Propagate),
        "NONE" => Some(NanRule::Ignore),
        _ => None,
    }
}

/// What `propagate_nan` says.
fn nan_rule<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<NanRule> {
    let Some(given) = args.get("propagate_nan") else {
        return Ok(NanRule::Ignore);
    };
    if let Value::Path(path) = given
        && let Some(rule) = nan_rule_of(&path.0)
    {
        return Ok(rule);
    }
    let message = format!(
        "`propagate_nan` is of tl.PropagateNan, found {}",
        given.describe()
    );
    let d = cx.error(Code::Value, message);
    Err(d
        .help("it is tl.PropagateNan.ALL or tl.PropagateNan.NONE")
        .into())
}

pub(super) fn min_max<'m>(cx: &mut Lower<'m>, args: &Args<'m>, max: bool) -> Res<Value<'m>> {
    let nan = nan_rule(cx, args)?;
    cx.min_max(max, &args.req("x"), &args.req("y"), nan)
}

fn clamp<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let nan = nan_rule(cx, args)?;
    let (low, high) = (args.req("min"), args.req("max"));
    let raised = cx.min_max(true, &args.req("x"), &low, nan)?;
    let clamped = cx.min_max(false, &raised, &high, nan)?;
    let (ty, shape) = cx.type_of(&clamped)?;
    if ty.dtype().is_none_or(|d| !d.is_float()) {
        let message = format!("`clamp` is for floats, found {}", show(ty, shape));
        let d = cx.error(Code::Type, message);
        return Err(d.help("use tl.minimum and tl.maximum").into());
    }
    Ok(clamped)
}

/// (x + (div - 1)) // div.
fn cdiv<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, div) = (args.req("x"), args.req("div"));
    let less = cx.binary(Operator::Sub, &div, &Value::int(1))?;
    let sum = cx.binary(Operator::Add, &x, &less)?;
    let quotient = cx.binary(Operator::FloorDiv, &sum, &div)?;
    // What a function of kernels returns has a type.
    cx.settle(quotient)
}

/// The upper half of the unsigned product.
fn umulhi<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let p = cx.pair(&args.req("x"), &args.req("y"), Rules::default())?;
    if p.ty.dtype().is_none_or(|d| !d.is_int() || d.bits() < 32) {
        let message = format!("`umulhi` is for integers of 32 and 64 bits, found {}", p.ty);
        return Err(cx.error(Code::Type, message).into());
    }
    let value = cx.b.umulhi(p.a, p.b);
    Ok(cx.block(value, p.ty))
}

/// What the author promises to be zero where the mask is false: checked with `debug`.
fn expect_zero<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let zero = cx.compare(CmpOp::Eq, &args.req("x"), &Value::int(0))?;
    let mask = cx.tensor_arg(args, "mask")?;
    let holds = cx.binary(Operator::BitOr, &zero, &Value::Tensor(mask))?;
    let holds = cx.tensor(&holds)?;
    cx.device_assertion(holds, "expected zero where the mask is false")?;
    Ok(args.req("x"))
}

fn logical<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: Operator) -> Res<Value<'m>> {
    let (x, y) = (cx.tensor_arg(args, "x")?, cx.tensor_arg(args, "y")?);
    let (x, y) = (cx.cast_to_bool(x)?, cx.cast_to_bool(y)?);
    cx.binary(op, &Value::Tensor(x), &Value::Tensor(y))
}
