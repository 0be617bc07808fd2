//! Functions of single elements.

use ruff_python_ast::{CmpOp, Operator};

use super::{Args, Builtin, rows};
use crate::front::arith::Rules;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty, show};
use crate::front::value::{Const, Known, Number, Tensor, Value};
use crate::ir::attrs::{FloatPred, NanRule};
use crate::ir::builder::TileBuilder;
use crate::ir::entities;
use crate::ir::types::{Elem, TileType};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "exp"("x") |cx, args| float(cx, args, TileBuilder::exp);
    "exp2"("x") |cx, args| float(cx, args, TileBuilder::exp2);
    "log"("x") |cx, args| float(cx, args, TileBuilder::log);
    "log2"("x") |cx, args| float(cx, args, TileBuilder::log2);
    "sqrt"("x") |cx, args| float(cx, args, TileBuilder::sqrt);
    "rsqrt"("x") |cx, args| float(cx, args, TileBuilder::rsqrt);
    "erf"("x") |cx, args| float(cx, args, TileBuilder::erf);
    "floor"("x") |cx, args| wide_float(cx, args, TileBuilder::floor);
    "ceil"("x") |cx, args| wide_float(cx, args, TileBuilder::ceil);
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
    "add"("x y; sanitize_overflow") |cx, args| cx.binary(Operator::Add, &args.req("x"), &args.req("y"));
    "sub"("x y; sanitize_overflow") |cx, args| cx.binary(Operator::Sub, &args.req("x"), &args.req("y"));
    "mul"("x y; sanitize_overflow") |cx, args| cx.binary(Operator::Mult, &args.req("x"), &args.req("y"));
};

/// `libdevice` under all its names, and `tl.math`.
pub(super) const LIBDEVICE: &[Builtin] = rows! { Libdevice;
    "exp"("x") |cx, args| float(cx, args, TileBuilder::exp);
    "exp2"("x") |cx, args| float(cx, args, TileBuilder::exp2);
    "fast_expf"("x") |cx, args| float(cx, args, TileBuilder::exp);
    "log"("x") |cx, args| float(cx, args, TileBuilder::log);
    "fast_logf"("x") |cx, args| float(cx, args, TileBuilder::log);
    "log2"("x") |cx, args| float(cx, args, TileBuilder::log2);
    "fast_log2f"("x") |cx, args| float(cx, args, TileBuilder::log2);
    "sqrt"("x") |cx, args| float(cx, args, TileBuilder::sqrt);
    "rsqrt"("x") |cx, args| float(cx, args, TileBuilder::rsqrt);
    "tanh"("x") |cx, args| float(cx, args, TileBuilder::tanh);
    "fast_tanhf"("x") |cx, args| float(cx, args, TileBuilder::tanh);
    "erf"("x") |cx, args| float(cx, args, TileBuilder::erf);
    "floor"("x") |cx, args| wide_float(cx, args, TileBuilder::floor);
    "ceil"("x") |cx, args| wide_float(cx, args, TileBuilder::ceil);
    "rint"("x") |cx, args| wide_float(cx, args, TileBuilder::rint);
    "nearbyint"("x") |cx, args| wide_float(cx, args, TileBuilder::rint);
    "trunc"("x") trunc;
    "round"("x") round;
    "abs"("x") abs;
    "fabs"("x") abs;
    "fma"("x y z") fma;
    "fma_rn"("x y z") fma;
    "mul_rn"("x y") |cx, args| cx.binary(Operator::Mult, &args.req("x"), &args.req("y"));
    "add_rn"("x y") |cx, args| cx.binary(Operator::Add, &args.req("x"), &args.req("y"));
    "div_rn"("x y") div_rn;
    "fast_dividef"("x y") fdiv;
    "max"("x y") |cx, args| min_max(cx, args, true);
    "min"("x y") |cx, args| min_max(cx, args, false);
    "fmax"("x y") |cx, args| min_max(cx, args, true);
    "fmin"("x y") |cx, args| min_max(cx, args, false);
    "isnan"("x") isnan;
    "isinf"("x") isinf;
    "isfinited"("x") isfinite;
    "finitef"("x") isfinite;
    "float_as_int"("x") |cx, args| reinterpret(cx, args, DType::Int32);
    "float_as_uint"("x") |cx, args| reinterpret(cx, args, DType::Uint32);
    "int_as_float"("x") |cx, args| reinterpret(cx, args, DType::Float32);
    "uint_as_float"("x") |cx, args| reinterpret(cx, args, DType::Float32);
    "double_as_longlong"("x") |cx, args| reinterpret(cx, args, DType::Int64);
    "longlong_as_double"("x") |cx, args| reinterpret(cx, args, DType::Float64);
};

/// A float of the IR to a float.
type Unary = fn(&mut TileBuilder, entities::Value) -> entities::Value;

/// A function of f32. Halves are refused, as they are in Triton; f64 has no code yet.
fn float<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Unary) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    if t.ty == Ty::Num(DType::Float64) {
        let message = format!("`{}` of float64 is not supported yet", args.builtin.name);
        return Err(cx
            .error(Code::NotYet, message)
            .help("cast to float32")
            .into());
    }
    let value = make(&mut cx.b, t.value);
    Ok(cx.block(value, t.ty))
}

/// A function of f32 and f64.
fn wide_float<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Unary) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let value = make(&mut cx.b, t.value);
    Ok(cx.block(value, t.ty))
}

/// An f32 or f64 operand.
fn wide_operand<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Tensor> {
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

fn abs<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if let Some(known) = args.req("x").as_const() {
        match known {
            Const::Int(n) => return Ok(Value::int(n.saturating_abs())),
            Const::Float(x) => return Ok(Value::Const(Const::Float(x.abs()))),
            _ => {}
        }
    }
    let t = cx.tensor_arg(args, "x")?;
    let value = match t.ty {
        Ty::Num(d) if d.is_fp8() => return Err(cx.wrong_type("a wider float", t)),
        Ty::Num(d) if d.is_float() => cx.b.fabs(t.value),
        Ty::Num(d) if d.is_signed() => {
            let zero = cx.zero(t.ty, t.shape)?;
            let negative = cx.b.isub(zero.value, t.value);
            cx.b.smax(t.value, negative)
        }
        Ty::Num(_) => t.value,
        Ty::Ptr { .. } => return Err(cx.wrong_type("a number", t)),
    };
    Ok(cx.block(value, t.ty))
}

/// A number of the type and shape of a block.
fn like<'m>(cx: &mut Lower<'m>, t: Tensor, number: f64) -> Res<Tensor> {
    let dtype = t.ty.dtype().unwrap_or(DType::Float32);
    let known = Known {
        dtype,
        number: Number::Float(number),
    };
    cx.constant(known, t.shape)
}

/// 1 / (1 + exp(-x)).
fn sigmoid<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    if t.ty != Ty::Num(DType::Float32) {
        let message = "`sigmoid` of float64 is not supported yet";
        return Err(cx
            .error(Code::NotYet, message)
            .help("cast to float32")
            .into());
    }
    let one = like(cx, t, 1.0)?;
    let negative = cx.b.fneg(t.value);
    let power = cx.b.exp(negative);
    let sum = cx.b.fadd(one.value, power);
    let value = cx.b.fdiv(one.value, sum);
    Ok(cx.block(value, t.ty))
}

fn fma<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y, z) = (args.req("x"), args.req("y"), args.req("z"));
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

fn fdiv<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let exact = cx.bool_arg(args, "ieee_rounding", false)?;
    let (x, y) = dividends(cx, args)?;
    if exact {
        return exact_quotient(cx, x, y);
    }
    cx.divide(x, y)
}

fn div_rn<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
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

/// What `propagate_nan` says; the library has no enumeration of its own, `tl.PropagateNan.ALL` is a path.
fn nan_rule<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<NanRule> {
    match args.get("propagate_nan") {
        None => Ok(NanRule::Ignore),
        Some(Value::Path(path)) if path.0.ends_with("PropagateNan.ALL") => Ok(NanRule::Propagate),
        Some(Value::Path(path)) if path.0.ends_with("PropagateNan.NONE") => Ok(NanRule::Ignore),
        Some(other) => {
            let message = format!(
                "`propagate_nan` is of tl.PropagateNan, found {}",
                other.describe()
            );
            let d = cx.error(Code::Value, message);
            Err(d
                .help("it is tl.PropagateNan.ALL or tl.PropagateNan.NONE")
                .into())
        }
    }
}

fn min_max<'m>(cx: &mut Lower<'m>, args: &Args<'m>, max: bool) -> Res<Value<'m>> {
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
    cx.binary(Operator::FloorDiv, &sum, &div)
}

/// The upper half of the unsigned product.
fn umulhi<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let p = cx.pair(&args.req("x"), &args.req("y"), Rules::default())?;
    let Some(dtype) = p.ty.dtype().filter(|d| d.is_int() && d.bits() >= 32) else {
        let message = format!("`umulhi` is for integers of 32 and 64 bits, found {}", p.ty);
        return Err(cx.error(Code::Type, message).into());
    };
    let wide = TileType::block(Elem::I64, p.shape);
    let number = |cx: &mut Lower<'m>, n: i128| {
        let known = Known {
            dtype: DType::Uint64,
            number: Number::Int(n),
        };
        cx.constant(known, p.shape).map(|t| t.value)
    };
    let half = number(cx, 32)?;
    if dtype.bits() == 32 {
        let (x, y) = (cx.b.zext(p.a, wide), cx.b.zext(p.b, wide));
        let product = cx.b.imul(x, y);
        let upper = cx.b.ushr(product, half);
        let narrow = cx.tile_type(p.ty, p.shape)?;
        let value = cx.b.itrunc(upper, narrow);
        return Ok(cx.block(value, p.ty));
    }
    // Of 64 bits: the products of the halves, whose middle ones carry.
    let low_bits = number(cx, 0xffff_ffff)?;
    let b = &mut cx.b;
    let (x0, x1) = (b.and(p.a, low_bits), b.ushr(p.a, half));
    let (y0, y1) = (b.and(p.b, low_bits), b.ushr(p.b, half));
    let (low, cross) = (b.imul(x0, y0), b.imul(x1, y0));
    let carried = b.ushr(low, half);
    let middle = b.iadd(cross, carried);
    let (kept, over) = (b.and(middle, low_bits), b.ushr(middle, half));
    let other = b.imul(x0, y1);
    let second = b.iadd(kept, other);
    let second = b.ushr(second, half);
    let high = b.imul(x1, y1);
    let sum = b.iadd(high, over);
    let value = b.iadd(sum, second);
    Ok(cx.block(value, p.ty))
}

/// Rounded to zero: `floor` of what is positive, `ceil` of what is not.
fn trunc<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let zero = cx.zero(t.ty, t.shape)?;
    let (down, up) = (cx.b.floor(t.value), cx.b.ceil(t.value));
    let negative = cx.b.fcmp(t.value, zero.value, FloatPred::Olt);
    let value = cx.b.select(negative, up, down);
    Ok(cx.block(value, t.ty))
}

/// To nearest, halves away from zero: one more than the truncated number where the rest is half or more.
fn round<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let (zero, half, one) = (
        cx.zero(t.ty, t.shape)?,
        like(cx, t, 0.5)?,
        like(cx, t, 1.0)?,
    );
    let size = cx.b.fabs(t.value);
    let whole = cx.b.floor(size);
    let rest = cx.b.fsub(size, whole);
    let more = cx.b.fadd(whole, one.value);
    let up = cx.b.fcmp(rest, half.value, FloatPred::Oge);
    let rounded = cx.b.select(up, more, whole);
    let opposite = cx.b.fneg(rounded);
    let negative = cx.b.fcmp(t.value, zero.value, FloatPred::Olt);
    let value = cx.b.select(negative, opposite, rounded);
    Ok(cx.block(value, t.ty))
}

fn isnan<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let value = cx.b.fcmp(t.value, t.value, FloatPred::Uno);
    Ok(cx.block(value, Ty::Num(DType::Int1)))
}

fn isinf<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let size = cx.b.fabs(t.value);
    let infinity = like(cx, t, f64::INFINITY)?;
    let value = cx.b.fcmp(size, infinity.value, FloatPred::Oeq);
    Ok(cx.block(value, Ty::Num(DType::Int1)))
}

fn isfinite<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let size = cx.b.fabs(t.value);
    let infinity = Value::Const(Const::Float(f64::INFINITY));
    let size = cx.block(size, t.ty);
    cx.compare(CmpOp::Lt, &size, &infinity)
}

fn reinterpret<'m>(cx: &mut Lower<'m>, args: &Args<'m>, dtype: DType) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "x")?;
    cx.bitcast(t, Ty::Num(dtype)).map(Value::Tensor)
}
