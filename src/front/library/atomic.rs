//! Atomic operations.
//!
//! Floats have no atomic maximum; the bits of non-negative ones are ordered as signed integers, those of negative ones
//! in reverse as unsigned ones, so a maximum is one of signed integers where the operand is not negative and a minimum of
//! unsigned ones elsewhere.

use super::block_ptr::TileAccess;
use super::{Args, Builtin, memory, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::{DType, Ty};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{IntPred, MemOrder, RmwOp, Rounding, Scope as Among};
use crate::ir::ops::rules::{cas_takes, rmw_takes};

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "atomic_add"("pointer val; mask sem scope") |cx, args| simple(cx, args, |d| if d.is_float() { RmwOp::Fadd } else { RmwOp::Add });
    "atomic_and"("pointer val; mask sem scope") |cx, args| simple(cx, args, |_| RmwOp::And);
    "atomic_or"("pointer val; mask sem scope") |cx, args| simple(cx, args, |_| RmwOp::Or);
    "atomic_xor"("pointer val; mask sem scope") |cx, args| simple(cx, args, |_| RmwOp::Xor);
    "atomic_xchg"("pointer val; mask sem scope") |cx, args| simple(cx, args, |_| RmwOp::Xchg);
    "atomic_max"("pointer val; mask sem scope") |cx, args| extreme(cx, args, true);
    "atomic_min"("pointer val; mask sem scope") |cx, args| extreme(cx, args, false);
    "atomic_cas"("pointer cmp val; sem scope") cas;
};

/// The parts of an atomic operation.
#[derive(Clone, Copy)]
struct Parts {
    ptr: Tensor,
    value: Tensor,
    mask: Option<Tensor>,
    sem: MemOrder,
    scope: Among,
}

/// What a text of the arguments means among named choices.
fn choice<'m, T: Copy>(
    cx: &Lower<'m>,
    args: &Args<'m>,
    name: &str,
    known: &[(&str, T)],
    default: T,
) -> Res<T> {
    let Some(text) = cx.str_arg(args, name)?.filter(|text| !text.is_empty()) else {
        return Ok(default);
    };
    let found = known.iter().find(|(known, _)| *known == &*text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let message = format!("`{name}` cannot be \"{text}\"");
        let names: Vec<String> = known.iter().map(|(n, _)| format!("\"{n}\"")).collect();
        let d = cx.arg_error(args, name, Code::Value, message);
        d.help(format!("known are {}", names.join(", "))).into()
    })
}

fn ordering<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<(MemOrder, Among)> {
    let orders = [
        ("acq_rel", MemOrder::AcqRel),
        ("acquire", MemOrder::Acquire),
        ("release", MemOrder::Release),
        ("relaxed", MemOrder::Relaxed),
    ];
    let scopes = [
        ("gpu", Among::Gpu),
        ("cta", Among::Cta),
        ("sys", Among::Sys),
    ];
    Ok((
        choice(cx, args, "sem", &orders, MemOrder::AcqRel)?,
        choice(cx, args, "scope", &scopes, Among::Gpu)?,
    ))
}

fn parts<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Parts> {
    let ptr = memory::writable(cx, args)?;
    let pointee = ptr.ty.pointee().unwrap_or(DType::Int8);
    let value = memory::fallback(cx, args, "val", pointee, ptr.shape)?;
    let mask = memory::mask(cx, args, ptr.shape)?;
    let (sem, scope) = ordering(cx, args)?;
    Ok(Parts {
        ptr,
        value,
        mask,
        sem,
        scope,
    })
}

/// Formats that have no such operation.
fn refuse<'m>(cx: &Lower<'m>, args: &Args<'m>, ty: Ty, takes: &str) -> Stop {
    let message = format!("`{}` of {ty} is not possible", args.builtin.name);
    let d = cx.arg_error(args, "pointer", Code::Type, message);
    d.help(format!("it takes {takes}")).into()
}

/// A step that targets have an instruction for; others are refused.
fn direct<'m>(cx: &mut Lower<'m>, args: &Args<'m>, p: Parts, op: RmwOp) -> Res<Value<'m>> {
    rmw_takes(op, cx.b.ty(p.value.value).elem).map_err(|takes| {
        let takes = takes.split(" for ").next().unwrap_or(takes);
        refuse(cx, args, p.value.ty, takes)
    })?;
    Ok(Value::Tensor(rmw(cx, p, op)))
}

fn rmw(cx: &mut Lower<'_>, p: Parts, op: RmwOp) -> Tensor {
    let mask = p.mask.map(|t| t.value);
    let value =
        cx.b.atomic_rmw(p.ptr.value, p.value.value, mask, op, p.sem, p.scope);
    Tensor { value, ..p.value }
}

fn simple<'m>(cx: &mut Lower<'m>, args: &Args<'m>, op: fn(DType) -> RmwOp) -> Res<Value<'m>> {
    let p = parts(cx, args)?;
    let op = op(p.value.ty.dtype().unwrap_or(DType::Int32));
    direct(cx, args, p, op)
}

/// The step after which the larger or the smaller integer stays.
fn of_integers(max: bool, signed: bool) -> RmwOp {
    match (max, signed) {
        (true, true) => RmwOp::Smax,
        (true, false) => RmwOp::Umax,
        (false, true) => RmwOp::Smin,
        (false, false) => RmwOp::Umin,
    }
}

fn extreme<'m>(cx: &mut Lower<'m>, args: &Args<'m>, max: bool) -> Res<Value<'m>> {
    let p = parts(cx, args)?;
    let word = match p.value.ty {
        Ty::Num(d) if d.is_int() => {
            return direct(cx, args, p, of_integers(max, d.is_signed()));
        }
        Ty::Num(DType::Float32) => DType::Int32,
        Ty::Num(DType::Float64) => DType::Int64,
        ty => return Err(refuse(cx, args, ty, "32-bit and 64-bit numbers")),
    };
    extreme_by_bits(cx, p, word, max)
}

/// The largest or smallest of floats of 16 bits at the places of a tile. Pointers to these are refused, as in Triton; copies by the
/// copy engine, which descriptors stand for, can do it.
pub(super) fn extreme_of_halves<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    tile: &TileAccess<'m>,
    dtype: DType,
    max: bool,
) -> Res<()> {
    let ptr = cx.tensor(&tile.pointers)?;
    let value = memory::fallback(cx, args, "value", dtype, ptr.shape)?;
    let mask = tile.inside.as_ref();
    let mask = mask.map(|inside| cx.materialize(inside, DType::Int1, ptr.shape));
    let p = Parts {
        ptr,
        value,
        mask: mask.transpose()?,
        sem: MemOrder::Relaxed,
        scope: Among::Gpu,
    };
    extreme_by_bits(cx, p, DType::Int16, max).map(|_| ())
}

/// By integers as wide as the floats.
fn extreme_by_bits<'m>(cx: &mut Lower<'m>, p: Parts, word: DType, max: bool) -> Res<Value<'m>> {
    let bits = cx.bitcast(p.value, Ty::Num(word))?;
    let ptr = cx.cast(p.ptr, Ty::ptr(word), Rounding::Nearest)?;
    let zero = cx.zero(bits.ty, bits.shape)?;
    let truth = |value| Tensor {
        value,
        ty: Ty::Num(DType::Int1),
        shape: bits.shape,
    };
    let above = truth(cx.b.icmp(bits.value, zero.value, IntPred::Sge));
    let below = truth(cx.b.icmp(bits.value, zero.value, IntPred::Slt));
    let within = |cx: &mut Lower<'m>, side: Tensor| {
        let both = match p.mask {
            Some(mask) => cx.b.and(mask.value, side.value),
            None => side.value,
        };
        Some(truth(both))
    };
    let whole = Parts {
        ptr,
        value: bits,
        ..p
    };
    let mask = within(cx, above);
    let first = rmw(cx, Parts { mask, ..whole }, of_integers(max, true));
    let mask = within(cx, below);
    // Of negative numbers the larger one has the smaller bits.
    let second = if max { RmwOp::Umin } else { RmwOp::Umax };
    let second = rmw(cx, Parts { mask, ..whole }, second);
    let old = cx.b.select(above.value, first.value, second.value);
    let old = Tensor { value: old, ..bits };
    cx.bitcast(old, p.value.ty).map(Value::Tensor)
}

fn cas<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let ptr = memory::writable(cx, args)?;
    let pointee = ptr.ty.pointee().unwrap_or(DType::Int8);
    let expected = memory::fallback(cx, args, "cmp", pointee, ptr.shape)?;
    let value = memory::fallback(cx, args, "val", pointee, ptr.shape)?;
    let (sem, scope) = ordering(cx, args)?;
    cas_takes(cx.b.ty(value.value).elem).map_err(|takes| refuse(cx, args, value.ty, takes))?;
    let old =
        cx.b.atomic_cas(ptr.value, expected.value, value.value, sem, scope);
    Ok(cx.block(old, value.ty))
}
