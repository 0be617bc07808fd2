//! Products of matrices: the rules of their types.
//!
//! Operands are two blocks of rank 2 or more, batches first, of one type (two 8-bit floats may differ). The type of the sum
//! follows from the operands, and from `out_dtype` for those of 8 and 16 bits. What passes the rules is a [`CheckedDot`] and goes
//! through [`emit`], the one place that knows how the IR multiplies: it has one dimension of batches, so that several become
//! one. Triton 3.6 has no more than one either; that of today has.

use super::shape::reshaped;
use super::{Args, Builtin, Scope, prelude, rows};
use crate::front::diagnostic::{Code, Severity};
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty, show};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{DotPrecision, List, MmaUnit, Rounding, make};
use crate::linear_layout::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "dot"("input other; acc input_precision allow_tf32 max_num_imprecise_acc out_dtype trans_a trans_b") dot;
    "dot_scaled"("lhs lhs_scale lhs_format rhs rhs_scale rhs_format; acc fast_math lhs_k_pack rhs_k_pack out_dtype") dot_scaled;
};

/// How exact products of f32 are. Parts of bfloat16 are no less exact than what stands for them.
const PRECISIONS: [(&str, DotPrecision); 5] = [
    ("tf32", DotPrecision::Tf32),
    ("tf32x3", DotPrecision::Tf32x3),
    ("bf16x3", DotPrecision::Tf32x3),
    ("bf16x6", DotPrecision::Ieee),
    ("ieee", DotPrecision::Ieee),
];

/// More products than any sum has.
const ANY_NUMBER: u32 = 1 << 30;

/// A product that keeps the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedDot {
    /// Left operand, `[.., m, k]`.
    pub(crate) a: Tensor,
    /// Right operand, `[.., k, n]`.
    pub(crate) b: Tensor,
    /// What is added, of the result's type.
    pub(crate) acc: Option<Tensor>,
    /// Type of the result.
    pub(crate) dtype: DType,
    /// Shape of the result.
    pub(crate) shape: Shape,
    /// For operands of f32.
    pub(crate) precision: DotPrecision,
    /// Of 8-bit floats: how many products in a row may be summed with few bits.
    pub(crate) imprecise: Option<u32>,
}

/// The product in the IR.
fn build_dot<'m>(cx: &mut Lower<'m>, product: &CheckedDot) -> Res<Value<'m>> {
    let ty = Ty::Num(product.dtype);
    let acc = match product.acc {
        Some(acc) => acc,
        None => cx.zero(ty, product.shape)?,
    };
    let (a, b) = (one_batch(cx, product.a)?, one_batch(cx, product.b)?);
    let acc = one_batch(cx, acc)?;
    let value = cx.b.dot(a.value, b.value, acc.value, product.precision);
    if let Some(imprecise) = product.imprecise {
        cx.b.with(make::imprecise(imprecise));
    }
    let shape = acc.shape;
    reshaped(cx, Tensor { value, ty, shape }, product.shape)
}

/// The block with its batches in one dimension.
fn one_batch(cx: &mut Lower<'_>, t: Tensor) -> Res<Tensor> {
    let rank = t.shape.rank();
    if rank <= 3 {
        return Ok(t);
    }
    let extents: Vec<i128> = t.shape.extents().map(i128::from).collect();
    let (batches, matrix) = extents.split_at(rank - 2);
    let shape = cx.shape(&[batches.iter().product(), matrix[0], matrix[1]])?;
    match reshaped(cx, t, shape)? {
        Value::Tensor(t) => Ok(t),
        _ => Err(cx.error(Code::Internal, "a reshape gives a block").into()),
    }
}

fn dot<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let a = operand(cx, args, "input", "trans_a")?;
    let b = operand(cx, args, "other", "trans_b")?;
    let dtype = operand_type(cx, args, a, b)?;
    let precision = precision(cx, args, dtype)?;
    let shape = result_shape(cx, a, b)?;
    let acc = match args.get("acc") {
        Some(Value::Type(_)) => {
            let message = "`acc` of `dot` is a block that the product is added to, found a type";
            let d = cx.arg_error(args, "acc", Code::Type, message.to_owned());
            return Err(d.help("the type of the sum is `out_dtype=`").into());
        }
        Some(_) => Some(cx.tensor_arg(args, "acc")?),
        None => None,
    };
    let wanted = cx.dtype_arg(args, "out_dtype")?;
    let dtype = result_type(cx, args, dtype, wanted, acc)?;
    let acc = match acc {
        Some(acc) => Some(accumulator(cx, args, acc, dtype, shape)?),
        None => None,
    };
    let imprecise = imprecise(cx, args, a, b)?.filter(|_| dtype != DType::Float16);
    let product = CheckedDot {
        a,
        b,
        acc,
        dtype,
        shape,
        precision,
        imprecise,
    };
    build_dot(cx, &product)
}

/// A block of rank 2 or more; older kernels ask for its transpose.
fn operand<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str, transposed: &str) -> Res<Tensor> {
    let t = cx.tensor_arg(args, name)?;
    let rank = t.shape.rank();
    if rank < 2 {
        let found = show(t.ty, t.shape);
        let message = format!("a product is of blocks of 2 or more dimensions, found {found}");
        return Err(cx.arg_error(args, name, Code::Shape, message).into());
    }
    // No matrix unit has this format.
    let t = match t.ty {
        Ty::Num(DType::Float8e4b15) => cx.cast(t, Ty::Num(DType::Float16), Rounding::Nearest)?,
        _ => t,
    };
    if !cx.bool_arg(args, transposed, false)? {
        return Ok(t);
    }
    let mut order: List = (0..rank as u32).collect();
    order.swap(rank - 1, rank - 2);
    let value = cx.b.permute(t.value, order);
    let shape = cx.b.ty(value).shape;
    Ok(Tensor { value, shape, ..t })
}

/// The type of the operands, the wider one of two 8-bit floats.
fn operand_type<'m>(cx: &Lower<'m>, args: &Args<'m>, a: Tensor, b: Tensor) -> Res<DType> {
    let fits = |t: Tensor| match t.ty {
        Ty::Num(d) if d.is_float() => Some(d),
        Ty::Num(DType::Int8) => Some(DType::Int8),
        _ => None,
    };
    for (name, t) in [("input", a), ("other", b)] {
        if fits(t).is_none() {
            let message = format!("there is no product of {}", t.ty);
            let d = cx.arg_error(args, name, Code::Type, message);
            return Err(d.help("operands are floats or int8").into());
        }
    }
    match (fits(a), fits(b)) {
        (Some(x), Some(y)) if x == y || x.is_fp8() && y.is_fp8() => Ok(x),
        _ => {
            let message = format!("the operands of a product are {} and {}", a.ty, b.ty);
            let d = cx.error(Code::Type, message);
            Err(d.help("cast one to the type of the other").into())
        }
    }
}

/// Shape of the result; the sizes that a product needs.
fn result_shape<'m>(cx: &Lower<'m>, a: Tensor, b: Tensor) -> Res<Shape> {
    let error = |message: String| Stop::from(cx.error(Code::Shape, message));
    let rank = a.shape.rank();
    if b.shape.rank() != rank {
        let message = format!("{:?} and {:?} differ in rank", a.shape, b.shape);
        return Err(error(message));
    }
    let (k, other) = (a.shape.extent(rank - 1), b.shape.extent(rank - 2));
    if k != other {
        let message = format!(
            "{:?} and {:?} cannot be multiplied: [m, k] goes with [k, n]",
            a.shape, b.shape
        );
        return Err(error(message));
    }
    let batches = |t: Tensor| -> Vec<u64> { t.shape.extents().take(rank - 2).collect() };
    let (batches_a, batches_b) = (batches(a), batches(b));
    if batches_a != batches_b {
        let message =
            format!("batches of {batches_a:?} and of {batches_b:?} matrices cannot be multiplied");
        let d = cx.error(Code::Shape, message);
        let help = "both have the same dimensions in front; `tl.broadcast_to` repeats a matrix";
        return Err(d.help(help).into());
    }
    let least = 256 / u64::from(a.ty.bits().max(8));
    if k < least {
        let message = format!(
            "a product of {} adds {least} elements or more, here {k}",
            a.ty
        );
        let d = cx.error(Code::Shape, message);
        let help = format!(
            "load `tl.arange(0, {least})` of them and mask those from {k} on with `other=0`"
        );
        return Err(d.help(help).into());
    }
    let mut extents: Vec<i128> = a.shape.extents().map(i128::from).collect();
    extents[rank - 1] = i128::from(b.shape.extent(rank - 1));
    cx.shape(&extents)
}

fn result_type<'m>(
    cx: &Lower<'m>,
    args: &Args<'m>,
    operands: DType,
    wanted: Option<DType>,
    acc: Option<Tensor>,
) -> Res<DType> {
    if wanted == Some(DType::Bfloat16) {
        let message = "a product is not summed in bfloat16";
        let d = cx.arg_error(args, "out_dtype", Code::Type, message.to_owned());
        return Err(d.help("use float32 and cast the result").into());
    }
    Ok(match operands {
        DType::Int8 => DType::Int32,
        DType::Float64 => DType::Float64,
        DType::Float32 | DType::Bfloat16 => DType::Float32,
        _ => match (wanted, acc.and_then(|t| t.ty.dtype())) {
            (Some(DType::Float16), _) | (None, Some(DType::Float16)) => DType::Float16,
            _ => DType::Float32,
        },
    })
}

fn accumulator<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    acc: Tensor,
    dtype: DType,
    shape: Shape,
) -> Res<Tensor> {
    if acc.shape != shape || acc.ty != Ty::Num(dtype) {
        let found = show(acc.ty, acc.shape);
        let expected = show(Ty::Num(dtype), shape);
        let message = format!("`acc` must be {expected}, found {found}");
        return Err(cx.arg_error(args, "acc", Code::Type, message).into());
    }
    cx.cast(acc, Ty::Num(dtype), Rounding::Nearest)
}

fn precision<'m>(cx: &mut Lower<'m>, args: &Args<'m>, dtype: DType) -> Res<DotPrecision> {
    if let Some(name) = cx.str_arg(args, "input_precision")? {
        let found = PRECISIONS.iter().find(|(known, _)| *known == &*name);
        return found.map(|(_, p)| *p).ok_or_else(|| {
            let message = format!("unknown precision \"{name}\"");
            let d = cx.arg_error(args, "input_precision", Code::Value, message);
            let names = PRECISIONS.map(|(name, _)| format!("\"{name}\""));
            d.help(format!("known are {}", names.join(", "))).into()
        });
    }
    // To Triton a number that is passed at launch is an object, and so true.
    let is_known = args
        .get("allow_tf32")
        .is_none_or(|v| v.as_const().is_some());
    if !is_known {
        if dtype == DType::Float32 {
            let message = "`allow_tf32` is known at launch alone; operands are rounded to tf32, whatever it is, as Triton does";
            let d = cx.arg_error(args, "allow_tf32", Code::Suspicious, message.to_owned());
            let d = d.help("a `tl.constexpr` parameter decides it");
            cx.add(d.with_severity(Severity::Warning));
        }
        return Ok(DotPrecision::Tf32);
    }
    Ok(match cx.bool_arg(args, "allow_tf32", true)? {
        true => DotPrecision::Tf32,
        false => DotPrecision::Ieee,
    })
}

/// How many products of 8-bit floats in a row may be summed with few bits. Nobody says so: on targets whose units sum so any number.
fn imprecise<'m>(cx: &Lower<'m>, args: &Args<'m>, a: Tensor, b: Tensor) -> Res<Option<u32>> {
    let is_narrow = |t: Tensor| t.ty.dtype().is_some_and(DType::is_fp8);
    let narrow = is_narrow(a) && is_narrow(b);
    let Some(number) = cx.int_arg(args, "max_num_imprecise_acc")? else {
        let sums_so = MmaUnit::WarpgroupE4m3.info().exists.on(cx.target);
        return Ok((narrow && sums_so).then_some(ANY_NUMBER));
    };
    let k = a.shape.extent(a.shape.rank() - 1);
    if number < 0 || narrow && number > i128::from(k) {
        let message = format!("`max_num_imprecise_acc` is at most {k} here, not {number}");
        let d = cx.arg_error(args, "max_num_imprecise_acc", Code::Value, message);
        return Err(d.into());
    }
    let said = u32::try_from(number).ok().filter(|&n| n > 0);
    Ok(said.filter(|_| narrow))
}

/// A format of a scaled operand: how many elements a byte or number holds, and what it is held in.
fn scaled_format<'m>(cx: &Lower<'m>, args: &Args<'m>, name: &str) -> Res<(u64, &'static [DType])> {
    let text = cx.str_arg(args, name)?;
    Ok(match text.as_deref() {
        Some("e2m1") => (2, &[DType::Uint8]),
        Some("e4m3") => (1, &[DType::Float8e4nv, DType::Uint8]),
        Some("e5m2") => (1, &[DType::Float8e5, DType::Uint8]),
        Some("bf16") => (1, &[DType::Bfloat16, DType::Uint16]),
        Some("fp16") => (1, &[DType::Float16, DType::Uint16]),
        other => {
            let message = format!("unknown format \"{}\"", other.unwrap_or("None"));
            let d = cx.arg_error(args, name, Code::Value, message);
            let help = "known are \"e2m1\", \"e4m3\", \"e5m2\", \"bf16\" and \"fp16\"";
            return Err(d.help(help).into());
        }
    })
}

fn dot_scaled<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (a, b) = (cx.tensor_arg(args, "lhs")?, cx.tensor_arg(args, "rhs")?);
    let mut sizes = Vec::new();
    // Where K is: the last dimension of the left operand, the one before it of the right.
    for (t, name, format, packed, k_place) in [
        (a, "lhs", "lhs_format", "lhs_k_pack", 1),
        (b, "rhs", "rhs_format", "rhs_k_pack", 0),
    ] {
        let (per, held) = scaled_format(cx, args, format)?;
        let rank = t.shape.rank();
        if rank < 2 || t.ty.dtype().is_none_or(|d| !held.contains(&d)) {
            let found = show(t.ty, t.shape);
            let names: Vec<&str> = held.iter().map(|d| d.name()).collect();
            let message = format!(
                "`{name}` is a block of 2 or more dimensions of {}, found {found}",
                names.join(" or ")
            );
            return Err(cx.arg_error(args, name, Code::Type, message).into());
        }
        let along = cx.bool_arg(args, packed, true)?;
        if !along && per == 1 {
            let message = format!(
                "only numbers of the format \"e2m1\" are packed, so `{packed}` must be true"
            );
            return Err(cx.arg_error(args, packed, Code::Value, message).into());
        }
        let mut extents = [t.shape.extent(rank - 2), t.shape.extent(rank - 1)];
        extents[if along { k_place } else { 1 - k_place }] *= per;
        sizes.push(extents);
    }
    let ([m, k], [other, n]) = (sizes[0], sizes[1]);
    if k != other {
        let message = format!("{k} elements of each row cannot be multiplied with {other}");
        let d = cx.error(Code::Shape, message);
        let help = "numbers of the format \"e2m1\" count twice along the dimension in which they are packed: `lhs_k_pack` and `rhs_k_pack` say whether that is K";
        return Err(d.help(help).into());
    }
    let batch = |t: Tensor| -> Vec<i128> {
        let outer = 0..t.shape.rank() - 2;
        outer.map(|dim| i128::from(t.shape.extent(dim))).collect()
    };
    let outer = batch(a);
    if outer != batch(b) {
        let message = format!(
            "the dimensions in front of the last two are the same, found {:?} and {:?}",
            a.shape, b.shape
        );
        return Err(cx.error(Code::Shape, message).into());
    }
    let of =
        |rows: u64, columns: u64| [&outer[..], &[i128::from(rows), i128::from(columns)]].concat();
    for (name, rows) in [("lhs_scale", m), ("rhs_scale", n)] {
        if args.get(name).is_none() {
            continue;
        }
        let scale = cx.tensor_arg(args, name)?;
        // Bytes are exponents of two (e8m0), in Triton of either sign.
        let per = match scale.ty {
            Ty::Num(DType::Float8e4nv) => 16,
            Ty::Num(DType::Uint8 | DType::Int8) => 32,
            _ => {
                let found = show(scale.ty, scale.shape);
                let message = format!(
                    "`{name}` is of uint8, one exponent of two for 32 elements, or of float8e4nv, one number for 16, found {found}"
                );
                return Err(cx.arg_error(args, name, Code::Type, message).into());
            }
        };
        let expected = cx.shape(&of(rows, k / per))?;
        if scale.shape != expected {
            let message = format!(
                "`{name}` has the shape {expected:?} here, found {:?}",
                scale.shape
            );
            return Err(cx.arg_error(args, name, Code::Shape, message).into());
        }
    }
    let shape = cx.shape(&of(m, n))?;
    let dtype = cx.dtype_arg(args, "out_dtype")?.unwrap_or(DType::Float32);
    if args.get("acc").is_some() {
        let acc = cx.tensor_arg(args, "acc")?;
        accumulator(cx, args, acc, dtype, shape)?;
    }
    // Without matrix units for scaled operands both become bfloat16, or half if either is.
    let Some(decomposed) = prelude::own(Scope::Language, "_scaled_product") else {
        return Err(cx
            .error(Code::Internal, "the library lacks its own part")
            .into());
    };
    let optional = |name: &str| args.get(name).cloned().unwrap_or(Value::NONE);
    let flag = |name: &str| {
        args.get(name)
            .cloned()
            .unwrap_or(Value::bool(name != "fast_math"))
    };
    let given = [
        args.req("lhs"),
        optional("lhs_scale"),
        args.req("lhs_format"),
        flag("lhs_k_pack"),
        args.req("rhs"),
        optional("rhs_scale"),
        args.req("rhs_format"),
        flag("rhs_k_pack"),
        optional("acc"),
        flag("fast_math"),
        Value::ty(Ty::Num(dtype)),
    ];
    let given = given.map(|value| cx.argument(value)).into();
    cx.call_function(decomposed, given)
}
