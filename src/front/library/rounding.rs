//! The part of libdevice whose names end in a rounding: `_rn` to nearest even, `_rz` to zero, `_rd` down, `_ru` up.
//!
//! The machine's directed roundings are not among the ops of the IR. Each function here computes the result to nearest,
//! and the sign of what was lost; where that points against the rounding, the result goes to its neighbour. What is lost
//! is exact: of a sum by Knuth's two-sum, of a product by `fma`, of a quotient and a square root as the remainder, which
//! `fma` gives without error (barring results below the smallest normal number and above the largest).
//!
//! Source: D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2; P. Markstein, "IA-64 and elementary functions",
//! 2000, for the remainders.

use super::math::{like, wide_operand};
use super::{Args, Builtin, rows};
use crate::front::arith::Rules;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::{DType, Ty};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{FloatPred, IntPred, Rounding};
use crate::ir::entities;

pub(super) const ROWS: &[Builtin] = rows! { Libdevice;
    "add_rz"("x y") sum; "add_rd"("x y") sum; "add_ru"("x y") sum;
    "sub_rz"("x y") sum; "sub_rd"("x y") sum; "sub_ru"("x y") sum;
    "mul_rz"("x y") product; "mul_rd"("x y") product; "mul_ru"("x y") product;
    "div_rz"("x y") quotient; "div_rd"("x y") quotient; "div_ru"("x y") quotient;
    "rcp_rn"("x") reciprocal; "rcp_rz"("x") reciprocal; "rcp_rd"("x") reciprocal; "rcp_ru"("x") reciprocal;
    "sqrt_rz"("x") root; "sqrt_rd"("x") root; "sqrt_ru"("x") root;
    "fma_rz"("x y z") fused; "fma_rd"("x y z") fused; "fma_ru"("x y z") fused;

    "double2float_rn"("x") narrowed; "double2float_rz"("x") narrowed;
    "double2float_rd"("x") narrowed; "double2float_ru"("x") narrowed;

    "float2int_rn"("x") to_int; "float2int_rz"("x") to_int; "float2int_rd"("x") to_int; "float2int_ru"("x") to_int;
    "float2uint_rn"("x") to_int; "float2uint_rz"("x") to_int; "float2uint_rd"("x") to_int; "float2uint_ru"("x") to_int;
    "float2ll_rn"("x") to_int; "float2ll_rz"("x") to_int; "float2ll_rd"("x") to_int; "float2ll_ru"("x") to_int;
    "float2ull_rn"("x") to_int; "float2ull_rz"("x") to_int; "float2ull_rd"("x") to_int; "float2ull_ru"("x") to_int;
    "double2int_rn"("x") to_int; "double2int_rz"("x") to_int; "double2int_rd"("x") to_int; "double2int_ru"("x") to_int;
    "double2uint_rn"("x") to_int; "double2uint_rz"("x") to_int;
    "double2uint_rd"("x") to_int; "double2uint_ru"("x") to_int;
    "double2ll_rn"("x") to_int; "double2ll_rz"("x") to_int; "double2ll_rd"("x") to_int; "double2ll_ru"("x") to_int;
    "double2ull_rn"("x") to_int; "double2ull_rz"("x") to_int; "double2ull_rd"("x") to_int; "double2ull_ru"("x") to_int;

    "int2float_rn"("x") from_int; "int2float_rz"("x") from_int;
    "int2float_rd"("x") from_int; "int2float_ru"("x") from_int;
    "uint2float_rn"("x") from_int; "uint2float_rz"("x") from_int;
    "uint2float_rd"("x") from_int; "uint2float_ru"("x") from_int;
    "ll2float_rn"("x") from_int; "ll2float_rz"("x") from_int; "ll2float_rd"("x") from_int; "ll2float_ru"("x") from_int;
    "ull2float_rn"("x") from_int; "ull2float_rz"("x") from_int;
    "ull2float_rd"("x") from_int; "ull2float_ru"("x") from_int;
    "ll2double_rn"("x") from_int; "ll2double_rz"("x") from_int;
    "ll2double_rd"("x") from_int; "ll2double_ru"("x") from_int;
    "ull2double_rn"("x") from_int; "ull2double_rz"("x") from_int;
    "ull2double_rd"("x") from_int; "ull2double_ru"("x") from_int;
    "int2double_rn"("x") from_int; "uint2double_rn"("x") from_int;
};

/// A rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Nearest,
    Zero,
    Down,
    Up,
}

/// The rounding that a function's name ends in.
fn mode(args: &Args<'_>) -> Mode {
    match args.builtin.name.get(args.builtin.name.len() - 2..) {
        Some("rz") => Mode::Zero,
        Some("rd") => Mode::Down,
        Some("ru") => Mode::Up,
        _ => Mode::Nearest,
    }
}

/// `nearest` or its neighbour; `lost` is what is exact less `nearest`, or has its sign.
fn directed<'m>(cx: &mut Lower<'m>, nearest: Tensor, lost: Tensor, mode: Mode) -> Res<Tensor> {
    if mode == Mode::Nearest {
        return Ok(nearest);
    }
    let word = match nearest.ty {
        Ty::Num(DType::Float64) => DType::Int64,
        _ => DType::Int32,
    };
    let x = nearest.value;
    let zero = like(cx, nearest, 0.0)?.value;
    let bits = cx.bitcast(nearest, Ty::Num(word))?;
    let tile = cx.tile_type(bits.ty, bits.shape)?;
    let one = cx.b.const_bits(1, tile);
    let no_bits = cx.b.const_bits(0, tile);
    let b = &mut cx.b;
    let below = b.fcmp(lost.value, zero, FloatPred::Olt);
    let above = b.fcmp(lost.value, zero, FloatPred::Ogt);
    // The bits of a number's size count up with it. Zero goes to the smallest number of either sign.
    let outward = b.iadd(bits.value, one);
    let inward = b.isub(bits.value, one);
    let negative = b.icmp(bits.value, no_bits, IntPred::Slt);
    let is_zero = b.fcmp(x, zero, FloatPred::Oeq);
    let up = b.select(negative, inward, outward);
    let up = b.select(is_zero, one, up);
    let top = b.const_bits(1 << (word.bits() - 1), tile);
    let smallest = b.or(top, one);
    let down = b.select(negative, outward, inward);
    let down = b.select(is_zero, smallest, down);
    let moved = match mode {
        Mode::Up => b.select(above, up, bits.value),
        Mode::Down => b.select(below, down, bits.value),
        Mode::Nearest | Mode::Zero => {
            let high = b.fcmp(x, zero, FloatPred::Ogt);
            let low = b.fcmp(x, zero, FloatPred::Olt);
            let (high, low) = (b.and(high, below), b.and(low, above));
            let off = b.or(high, low);
            b.select(off, inward, bits.value)
        }
    };
    let moved = Tensor {
        value: moved,
        ..bits
    };
    cx.bitcast(moved, nearest.ty)
}

/// Two numbers of f32 or f64, of one type and shape.
fn operands<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<(Tensor, Tensor)> {
    let p = cx.pair(&args.req("x"), &args.req("y"), Rules::default())?;
    let with = |value| Tensor {
        value,
        ty: p.ty,
        shape: p.shape,
    };
    match p.ty {
        Ty::Num(DType::Float32 | DType::Float64) => Ok((with(p.a), with(p.b))),
        _ => Err(cx.wrong_type("float32 or float64", with(p.a))),
    }
}

/// The sum and what it lost. There is no product in it that could be contracted.
fn two_sum<'m>(
    cx: &mut Lower<'m>,
    x: Tensor,
    y: Tensor,
) -> Res<(entities::Value, entities::Value)> {
    let b = &mut cx.b;
    let s = b.fadd(x.value, y.value);
    let of_y = b.fsub(s, x.value);
    let of_x = b.fsub(s, of_y);
    let (lost_x, lost_y) = (b.fsub(x.value, of_x), b.fsub(y.value, of_y));
    let lost = b.fadd(lost_x, lost_y);
    Ok((s, lost))
}

fn finish<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    like: Tensor,
    (nearest, lost): (entities::Value, entities::Value),
) -> Res<Value<'m>> {
    let with = |value| Tensor { value, ..like };
    directed(cx, with(nearest), with(lost), mode(args)).map(Value::Tensor)
}

fn sum<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, mut y) = operands(cx, args)?;
    if args.builtin.name.starts_with("sub") {
        y.value = cx.b.fneg(y.value);
    }
    let parts = two_sum(cx, x, y)?;
    finish(cx, args, x, parts)
}

fn product<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = operands(cx, args)?;
    let p = cx.b.fmul(x.value, y.value);
    let negative = cx.b.fneg(p);
    let lost = cx.b.fma(x.value, y.value, negative);
    finish(cx, args, x, (p, lost))
}

/// The quotient, and the remainder with the sign of what the quotient lost.
fn divided<'m>(cx: &mut Lower<'m>, args: &Args<'m>, x: Tensor, y: Tensor) -> Res<Value<'m>> {
    let zero = like(cx, x, 0.0)?.value;
    let b = &mut cx.b;
    let q = b.fdiv_rn(x.value, y.value);
    let negative = b.fneg(q);
    let rest = b.fma(negative, y.value, x.value);
    let opposite = b.fneg(rest);
    let below = b.fcmp(y.value, zero, FloatPred::Olt);
    let lost = b.select(below, opposite, rest);
    finish(cx, args, x, (q, lost))
}

fn quotient<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = operands(cx, args)?;
    divided(cx, args, x, y)
}

fn reciprocal<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let x = wide_operand(cx, args, "x")?;
    let one = like(cx, x, 1.0)?;
    divided(cx, args, one, x)
}

fn root<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let x = wide_operand(cx, args, "x")?;
    let s = cx.b.sqrt_rn(x.value);
    let negative = cx.b.fneg(s);
    let lost = cx.b.fma(negative, s, x.value);
    finish(cx, args, x, (s, lost))
}

/// The product and sum of three numbers of f32, or of three of f64.
fn fused<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let mut parts = Vec::new();
    let mut wanted = None;
    for name in ["x", "y", "z"] {
        let t = cx.tensor_arg(args, name)?;
        let both = [DType::Float32, DType::Float64].map(Ty::Num);
        if !both.contains(&t.ty) || t.ty != *wanted.get_or_insert(t.ty) {
            let message = format!(
                "`{}` takes three float32 or three float64",
                args.builtin.name
            );
            return Err(cx.arg_error(args, name, Code::Type, message).into());
        }
        parts.push(t);
    }
    let mut shape = parts[0].shape;
    for t in &parts {
        shape = cx.common_shape(shape, t.shape)?;
    }
    let mut equal = Vec::new();
    for t in parts {
        equal.push(cx.broadcast_to(t, shape)?);
    }
    match equal[0].ty {
        Ty::Num(DType::Float64) => fused_double(cx, args, (equal[0], equal[1], equal[2])),
        _ => fused_single(cx, args, equal),
    }
}

/// Of f64: what `fma` loses is the sum of two numbers (S. Boldo and J.-M. Muller, "Exact and approximated error of the
/// FMA", IEEE Transactions on Computers 60, 2011, algorithm ErrFmaNearest), whose rounded sum has its sign.
fn fused_double<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    (x, y, z): (Tensor, Tensor, Tensor),
) -> Res<Value<'m>> {
    let zero = like(cx, x, -0.0)?;
    let nearest = cx.b.fma(x.value, y.value, z.value);
    // The sum with -0 is the product on its own, which no later sum takes in.
    let high = cx.b.fma(x.value, y.value, zero.value);
    let negative = cx.b.fneg(high);
    let low = cx.b.fma(x.value, y.value, negative);
    let with = |value| Tensor { value, ..x };
    let (first, second) = two_sum(cx, z, with(low))?;
    let (third, fourth) = two_sum(cx, with(high), with(first))?;
    let b = &mut cx.b;
    let rest = b.fsub(third, nearest);
    let rest = b.fadd(rest, fourth);
    let lost = b.fadd(rest, second);
    finish(cx, args, x, (nearest, lost))
}

/// Of f32: the product is exact in f64, the sum there has its error beside it.
fn fused_single<'m>(cx: &mut Lower<'m>, args: &Args<'m>, parts: Vec<Tensor>) -> Res<Value<'m>> {
    let mut wide = Vec::new();
    for t in parts {
        wide.push(cx.cast(t, Ty::Num(DType::Float64), Rounding::Nearest)?);
    }
    // The sum with -0 is the product on its own, which no later sum takes in.
    let zero = like(cx, wide[0], -0.0)?;
    let value = cx.b.fma(wide[0].value, wide[1].value, zero.value);
    let (s, lost) = two_sum(cx, Tensor { value, ..wide[0] }, wide[2])?;
    let with = |value| Tensor { value, ..wide[0] };
    to_single(cx, args, with(s), with(lost))
}

/// The f64 number `x`, of which `lost` was lost before, as f32.
fn to_single<'m>(cx: &mut Lower<'m>, args: &Args<'m>, x: Tensor, lost: Tensor) -> Res<Value<'m>> {
    let nearest = cx.cast(x, Ty::Num(DType::Float32), Rounding::Nearest)?;
    let back = cx.cast(nearest, Ty::Num(DType::Float64), Rounding::Nearest)?;
    let zero = like(cx, x, 0.0)?.value;
    let now = cx.b.fsub(x.value, back.value);
    let any = cx.b.fcmp(now, zero, FloatPred::Une);
    let lost = cx.b.select(any, now, lost.value);
    // The sign alone counts; as f32 the number could become zero.
    let below = cx.b.fcmp(lost, zero, FloatPred::Olt);
    let above = cx.b.fcmp(lost, zero, FloatPred::Ogt);
    let [none, minus, plus] = [0.0, -1.0, 1.0].map(|n| like(cx, nearest, n));
    let (none, minus, plus) = (none?.value, minus?.value, plus?.value);
    let sign = cx.b.select(above, plus, none);
    let sign = cx.b.select(below, minus, sign);
    finish(cx, args, nearest, (nearest.value, sign))
}

fn narrowed<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let x = cx.tensor_arg(args, "x")?;
    if x.ty != Ty::Num(DType::Float64) {
        return Err(cx.wrong_type("float64", x));
    }
    let zero = like(cx, x, 0.0)?;
    to_single(cx, args, x, zero)
}

/// A float to an integer of the name's kind; unsigned ones come as signed ones of their bits, as in Triton.
fn to_int<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let x = wide_operand(cx, args, "x")?;
    let value = match mode(args) {
        Mode::Nearest => cx.b.rint(x.value),
        Mode::Zero => x.value,
        Mode::Down => cx.b.floor(x.value),
        Mode::Up => cx.b.ceil(x.value),
    };
    let name = args.builtin.name;
    let (to, bits) = match (name.contains("2u"), name.contains("ll_")) {
        (false, false) => (DType::Int32, DType::Int32),
        (false, true) => (DType::Int64, DType::Int64),
        (true, false) => (DType::Uint32, DType::Int32),
        (true, true) => (DType::Uint64, DType::Int64),
    };
    let whole = Tensor { value, ..x };
    let converted = cx.cast(whole, Ty::Num(to), Rounding::Nearest)?;
    cx.cast(converted, Ty::Num(bits), Rounding::Nearest)
        .map(Value::Tensor)
}

/// An integer to a float of the name's kind: upper and lower half are exact in f64, their sum has its error beside it.
fn from_int<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let x = cx.tensor_arg(args, "x")?;
    let name = args.builtin.name;
    let (unsigned, long) = (name.starts_with('u'), name.contains("ll2"));
    let from = match (unsigned, long) {
        (false, false) => DType::Int32,
        (false, true) => DType::Int64,
        (true, false) => DType::Uint32,
        (true, true) => DType::Uint64,
    };
    if x.ty
        .dtype()
        .is_none_or(|d| !d.is_int() || d.bits() != from.bits())
    {
        return Err(cx.wrong_type(from.name(), x));
    }
    let x = cx.cast(x, Ty::Num(from), Rounding::Nearest)?;
    let to = match name.contains("2double") {
        true => DType::Float64,
        false => DType::Float32,
    };
    if mode(args) == Mode::Nearest {
        return cx
            .cast(x, Ty::Num(to), Rounding::Nearest)
            .map(Value::Tensor);
    }
    let word = if unsigned {
        DType::Uint64
    } else {
        DType::Int64
    };
    let wide = cx.cast(x, Ty::Num(word), Rounding::Nearest)?;
    let tile = cx.tile_type(wide.ty, wide.shape)?;
    let half = cx.b.const_bits(32, tile);
    let low_bits = cx.b.const_bits(0xffff_ffff, tile);
    let high = match unsigned {
        true => cx.b.ushr(wide.value, half),
        false => cx.b.sshr(wide.value, half),
    };
    let low = cx.b.and(wide.value, low_bits);
    let mut parts = Vec::new();
    for value in [high, low] {
        let part = Tensor { value, ..wide };
        parts.push(cx.cast(part, Ty::Num(DType::Float64), Rounding::Nearest)?);
    }
    let scale = like(cx, parts[0], 4_294_967_296.0)?;
    let zero = like(cx, parts[0], 0.0)?;
    let value = cx.b.fma(parts[0].value, scale.value, zero.value);
    let (s, lost) = two_sum(cx, Tensor { value, ..parts[0] }, parts[1])?;
    let with = |value| Tensor { value, ..parts[0] };
    if to == DType::Float64 {
        return finish(cx, args, parts[0], (s, lost));
    }
    to_single(cx, args, with(s), with(lost))
}
