//! `libdevice` under all its names, and what older kernels call `tl.math`.
//!
//! Functions that the IR has are rows here; the others are written in the language, in `libdevice.py`.

use ruff_python_ast::{CmpOp, Operator};

use super::math::{Unary, abs, div_rn, fdiv, float, fma, like, min_max, wide_operand};
use super::{Args, Builtin, rows};
use crate::front::arith::Rules;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Tensor, Value};
use crate::ir::attrs::{FloatPred, Rounding};
use crate::ir::builder::TileBuilder;
use crate::ir::entities;

pub(super) const ROWS: &[Builtin] = rows! { Libdevice;
    "exp"("x") |cx, args| float(cx, args, TileBuilder::exp_precise);
    "exp2"("x") |cx, args| float(cx, args, TileBuilder::exp2);
    "exp10"("x") |cx, args| float(cx, args, TileBuilder::exp10);
    "expm1"("x") |cx, args| float(cx, args, TileBuilder::expm1);
    "log"("x") |cx, args| float(cx, args, TileBuilder::log);
    "log2"("x") |cx, args| float(cx, args, TileBuilder::log2);
    "log10"("x") |cx, args| float(cx, args, TileBuilder::log10);
    "log1p"("x") |cx, args| float(cx, args, TileBuilder::log1p);
    "pow"("x y") |cx, args| float2(cx, args, TileBuilder::pow);
    "sqrt"("x") |cx, args| float(cx, args, TileBuilder::sqrt_rn);
    "sqrt_rn"("x") |cx, args| float(cx, args, TileBuilder::sqrt_rn);
    "rsqrt"("x") |cx, args| float(cx, args, TileBuilder::rsqrt);
    "erfinv"("x") |cx, args| float(cx, args, TileBuilder::erfinv);
    "cbrt"("x") |cx, args| float(cx, args, TileBuilder::cbrt);
    "hypot"("x y") |cx, args| float2(cx, args, TileBuilder::hypot);
    "sin"("x") |cx, args| float(cx, args, TileBuilder::sin);
    "cos"("x") |cx, args| float(cx, args, TileBuilder::cos);
    "tan"("x") |cx, args| float(cx, args, TileBuilder::tan);
    "asin"("x") |cx, args| float(cx, args, TileBuilder::asin);
    "acos"("x") |cx, args| float(cx, args, TileBuilder::acos);
    "atan"("x") |cx, args| float(cx, args, TileBuilder::atan);
    "atan2"("x y") |cx, args| float2(cx, args, TileBuilder::atan2);
    "sinh"("x") |cx, args| float(cx, args, TileBuilder::sinh);
    "cosh"("x") |cx, args| float(cx, args, TileBuilder::cosh);
    "tanh"("x") |cx, args| float(cx, args, TileBuilder::tanh);
    "asinh"("x") |cx, args| float(cx, args, TileBuilder::asinh);
    "acosh"("x") |cx, args| float(cx, args, TileBuilder::acosh);
    "atanh"("x") |cx, args| float(cx, args, TileBuilder::atanh);
    "erf"("x") |cx, args| float(cx, args, TileBuilder::erf);
    "erfc"("x") |cx, args| float(cx, args, TileBuilder::erfc);
    "floor"("x") |cx, args| float(cx, args, TileBuilder::floor);
    "ceil"("x") |cx, args| float(cx, args, TileBuilder::ceil);
    "rint"("x") |cx, args| float(cx, args, TileBuilder::rint);
    "nearbyint"("x") |cx, args| float(cx, args, TileBuilder::rint);
    "trunc"("x") |cx, args| float(cx, args, TileBuilder::trunc);
    "round"("x") |cx, args| float(cx, args, TileBuilder::round);
    "fmod"("x y") |cx, args| float2(cx, args, TileBuilder::frem);
    "copysign"("x y") |cx, args| float2(cx, args, TileBuilder::copysign);
    "abs"("x") abs;
    "fabs"("x") abs;
    "fma"("x y z") fma;
    "fma_rn"("x y z") fma;
    "add_rn"("x y") |cx, args| apart(cx, args, Operator::Add);
    "sub_rn"("x y") |cx, args| apart(cx, args, Operator::Sub);
    "mul_rn"("x y") |cx, args| apart(cx, args, Operator::Mult);
    "div_rn"("x y") div_rn;
    "max"("x y") |cx, args| min_max(cx, args, true);
    "min"("x y") |cx, args| min_max(cx, args, false);
    "fmax"("x y") |cx, args| min_max(cx, args, true);
    "fmin"("x y") |cx, args| min_max(cx, args, false);

    "fast_expf"("x") |cx, args| float(cx, args, TileBuilder::exp);
    "fast_log2f"("x") |cx, args| approx(cx, args, TileBuilder::log2_approx);
    "fast_sinf"("x") |cx, args| approx(cx, args, TileBuilder::sin_approx);
    "fast_cosf"("x") |cx, args| approx(cx, args, TileBuilder::cos_approx);
    "fast_tanhf"("x") |cx, args| float(cx, args, TileBuilder::tanh);
    "fast_dividef"("x y") fdiv;

    "clz"("x") |cx, args| count(cx, args, TileBuilder::clz);
    "popc"("x") |cx, args| count(cx, args, TileBuilder::popc);
    "brev"("x") |cx, args| {
        let t = word(cx, args, "x")?;
        let value = cx.b.brev(t.value);
        Ok(cx.block(value, t.ty))
    };
    "mulhi"("x y") mulhi;
    "byte_perm"("x y s") byte_perm;

    "isnan"("x") |cx, args| {
        let t = wide_operand(cx, args, "x")?;
        let value = cx.b.fcmp(t.value, t.value, FloatPred::Uno);
        Ok(cx.block(value, Ty::Num(DType::Int1)))
    };
    "isinf"("x") |cx, args| {
        let t = wide_operand(cx, args, "x")?;
        let size = cx.b.fabs(t.value);
        let infinity = like(cx, t, f64::INFINITY)?;
        let value = cx.b.fcmp(size, infinity.value, FloatPred::Oeq);
        Ok(cx.block(value, Ty::Num(DType::Int1)))
    };
    "isfinited"("x") is_finite;
    "finitef"("x") is_finite;

    "llrint"("x") |cx, args| to_int(cx, args, TileBuilder::rint);
    "llround"("x") |cx, args| to_int(cx, args, TileBuilder::round);
    "float_as_int"("x") |cx, args| reinterpret(cx, args, DType::Int32);
    "float_as_uint"("x") |cx, args| reinterpret(cx, args, DType::Int32);
    "int_as_float"("x") |cx, args| reinterpret(cx, args, DType::Float32);
    "uint_as_float"("x") |cx, args| reinterpret(cx, args, DType::Float32);
    "double_as_longlong"("x") |cx, args| reinterpret(cx, args, DType::Int64);
    "longlong_as_double"("x") |cx, args| reinterpret(cx, args, DType::Float64);
};

/// Two floats of the IR to a float.
type Binary = fn(&mut TileBuilder, entities::Value, entities::Value) -> entities::Value;

/// A function of two numbers of f32 or f64.
fn float2<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Binary) -> Res<Value<'m>> {
    let (x, y) = floats(cx, args)?;
    let value = make(&mut cx.b, x.value, y.value);
    Ok(cx.block(value, x.ty))
}

fn floats<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tensor, Tensor)> {
    let p = cx.pair(&args.req("x"), &args.req("y"), Rules::default())?;
    let with = |value| Tensor {
        value,
        ty: p.ty,
        shape: p.shape,
    };
    match p.ty {
        Ty::Num(DType::Float32 | DType::Float64) => Ok((with(p.a), with(p.b))),
        ty => {
            let message = format!(
                "`{}` is for float32 and float64, found {ty}",
                args.builtin.name
            );
            let d = cx.error(Code::Type, message);
            Err(d.help("cast first: `x.to(tl.float32)`").into())
        }
    }
}

/// A sum, difference or product that is rounded on its own: written as `fma`, it is contracted with nothing.
fn apart<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: Operator) -> Res<Value<'m>> {
    let (x, y) = floats(cx, args)?;
    let value = match op {
        Operator::Mult => {
            // The sum with -0 keeps the sign of a product that is zero.
            let zero = like(cx, x, -0.0)?;
            cx.b.fma(x.value, y.value, zero.value)
        }
        op => {
            let one = like(cx, x, if op == Operator::Add { 1.0 } else { -1.0 })?;
            cx.b.fma(y.value, one.value, x.value)
        }
    };
    Ok(cx.block(value, x.ty))
}

/// An approximation of the machine, of f32 alone.
fn approx<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Unary) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    if t.ty != Ty::Num(DType::Float32) {
        return Err(cx.wrong_type("float32", t));
    }
    let value = make(&mut cx.b, t.value);
    Ok(cx.block(value, t.ty))
}

/// An integer of 32 or 64 bits.
fn word<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Tensor> {
    let t = cx.tensor_arg(args, name)?;
    match t.ty {
        Ty::Num(d) if d.is_int() && d.bits() >= 32 => Ok(t),
        _ => Err(cx.wrong_type("an integer of 32 or 64 bits", t)),
    }
}

/// A number of bits, as int32.
fn count<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Unary) -> Res<Value<'m>> {
    let t = word(cx, args, "x")?;
    let value = make(&mut cx.b, t.value);
    let counted = Tensor { value, ..t };
    cx.cast(counted, Ty::Num(DType::Int32), Rounding::Nearest)
        .map(Value::Tensor)
}

/// Bytes of two words that the digits of a third one name, of which the highest bit does not count.
fn byte_perm<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let mut word = |name| {
        let t = cx.tensor_arg(args, name)?;
        cx.bitcast(t, Ty::Num(DType::Int32))
    };
    let (x, y, s) = (word("x")?, word("y")?, word("s")?);
    let shape = cx.common_shape(x.shape, y.shape)?;
    let shape = cx.common_shape(shape, s.shape)?;
    let mut whole = |t| cx.materialize(&t, DType::Int32, shape);
    let [x, y, s] = [
        whole(Value::Tensor(x))?,
        whole(Value::Tensor(y))?,
        whole(Value::Tensor(s))?,
    ];
    let bits = whole(Value::Const(Const::Int(0x7777)))?;
    let digits = cx.b.and(s.value, bits.value);
    let value = cx.b.byte_perm(x.value, y.value, digits);
    Ok(cx.block(value, Ty::Num(DType::Int32)))
}

/// The upper half of the product, by the sign of the operands.
fn mulhi<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let p = cx.pair(&args.req("x"), &args.req("y"), Rules::default())?;
    let value = match p.ty {
        Ty::Num(d) if d.is_int() && d.bits() >= 32 => {
            if d.is_signed() {
                cx.b.smulhi(p.a, p.b)
            } else {
                cx.b.umulhi(p.a, p.b)
            }
        }
        ty => {
            let message = format!("`mulhi` is for integers of 32 and 64 bits, found {ty}");
            return Err(cx.error(Code::Type, message).into());
        }
    };
    Ok(cx.block(value, p.ty))
}

fn is_finite<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let size = cx.b.fabs(t.value);
    let infinity = Value::Const(Const::Float(f64::INFINITY));
    let size = cx.block(size, t.ty);
    cx.compare(CmpOp::Lt, &size, &infinity)
}

/// Rounded, as int64.
fn to_int<'m>(cx: &mut Lower<'m>, args: &Args<'m>, round: Unary) -> Res<Value<'m>> {
    let t = wide_operand(cx, args, "x")?;
    let value = round(&mut cx.b, t.value);
    let rounded = Tensor { value, ..t };
    cx.cast(rounded, Ty::Num(DType::Int64), Rounding::Nearest)
        .map(Value::Tensor)
}

fn reinterpret<'m>(cx: &mut Lower<'m>, args: &Args<'m>, dtype: DType) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "x")?;
    cx.bitcast(t, Ty::Num(dtype)).map(Value::Tensor)
}
