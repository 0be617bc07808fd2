//! Loads and stores.

use super::{Args, Builtin, block_ptr, rows};
use crate::front::constant;
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::types::{DType, Ty, show};
use crate::front::value::{Tensor, Value};
use crate::ir::attrs::{Cache, Evict, Flag, Rounding, make};
use crate::linear_layout::shape::Shape;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "load"("pointer; mask other boundary_check padding_option cache_modifier eviction_policy volatile") load;
    "store"("pointer value; mask boundary_check cache_modifier eviction_policy") store;
    "debug_barrier"("") debug_barrier;
};

fn load<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if let Value::Tuple(tuple) = args.req("pointer") {
        return block_ptr::load(cx, args, &tuple);
    }
    let mut ptr = pointer(cx, args)?;
    refuse_block_pointer_options(cx, args)?;
    let pointee = ptr.ty.pointee().unwrap_or(DType::Int8);
    // What goes with a load gives its pointers their full shape; what goes with a store does not.
    for name in ["mask", "other"] {
        if let Some(value) = args.get(name).filter(|_| !ptr.shape.is_scalar())
            && let Ok((_, own)) = cx.type_of(value)
            && let Ok(shape) = cx.common_shape(ptr.shape, own)
        {
            ptr = cx.broadcast_to(ptr, shape)?;
        }
    }
    let mask = mask(cx, args, ptr.shape)?;
    if mask.is_none() && args.get("other").is_some() {
        let d = cx.error(
            Code::Call,
            "`other` of `load` is for what a mask leaves out",
        );
        return Err(d.help("give a mask, or leave `other` out").into());
    }
    let other = match args.get("other") {
        Some(_) => Some(fallback(cx, args, "other", pointee, ptr.shape)?),
        None => None,
    };
    let cache = cache(
        cx,
        args,
        &[
            ("", None),
            (".ca", Some(Cache::All)),
            (".cg", Some(Cache::Global)),
            (".cs", Some(Cache::Streaming)),
            (".cv", Some(Cache::Volatile)),
        ],
    )?;
    let evict = evict(cx, args)?;
    let value =
        cx.b.load(ptr.value, mask.map(|t| t.value), other.map(|t| t.value));
    if let Some(cache) = cache {
        cx.b.with(make::cache(cache));
    }
    if let Some(evict) = evict {
        cx.b.with(make::evict(evict));
    }
    if cx.bool_arg(args, "volatile", false)? {
        cx.b.with(make::volatile(Flag));
    }
    Ok(cx.block(value, Ty::Num(pointee)))
}

fn store<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if let Value::Tuple(tuple) = args.req("pointer") {
        return block_ptr::store(cx, args, &tuple);
    }
    let ptr = pointer(cx, args)?;
    refuse_block_pointer_options(cx, args)?;
    refuse_constant(cx, ptr)?;
    let pointee = ptr.ty.pointee().unwrap_or(DType::Int8);
    let value = args.req("value");
    let (ty, shape) = cx.type_of(&value)?;
    if ptr.shape.is_scalar() && !shape.is_scalar() {
        let found = show(ty, shape);
        let message = format!("a block ({found}) cannot be stored through one pointer");
        let d = cx.error(Code::Shape, message);
        return Err(d.help("add a tl.arange to the pointer").into());
    }
    let value = fallback(cx, args, "value", pointee, ptr.shape)?;
    let mask = mask(cx, args, ptr.shape)?;
    let cache = cache(
        cx,
        args,
        &[
            ("", None),
            (".wb", Some(Cache::WriteBack)),
            (".cg", Some(Cache::Global)),
            (".cs", Some(Cache::Streaming)),
            (".wt", Some(Cache::WriteThrough)),
        ],
    )?;
    let evict = evict(cx, args)?;
    cx.b.store(ptr.value, value.value, mask.map(|t| t.value));
    if let Some(cache) = cache {
        cx.b.with(make::cache(cache));
    }
    if let Some(evict) = evict {
        cx.b.with(make::evict(evict));
    }
    Ok(Value::NONE)
}

fn debug_barrier<'m>(cx: &mut Lower<'m>, _args: &Args<'m>) -> Res<Value<'m>> {
    cx.b.barrier();
    Ok(Value::NONE)
}

fn refuse_constant<'m>(cx: &Lower<'m>, ptr: Tensor) -> Res<()> {
    if matches!(ptr.ty, Ty::Ptr { constant: true, .. }) {
        let message = "a store through a pointer to constant data";
        return Err(cx.error(Code::Type, message).into());
    }
    Ok(())
}

/// A pointer that may be written through.
pub(super) fn writable<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Tensor> {
    let ptr = pointer(cx, args)?;
    refuse_constant(cx, ptr)?;
    Ok(ptr)
}

fn pointer<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Tensor> {
    let t = cx.tensor_arg(args, "pointer")?;
    if t.ty.is_ptr() {
        return Ok(t);
    }
    let found = show(t.ty, t.shape);
    let message = format!("`{}` needs a pointer, found {found}", args.builtin.name);
    let d = cx
        .arg_error(args, "pointer", Code::Type, message)
        .label("expected a pointer or a block of pointers");
    Err(d
        .help("add the offsets to a pointer argument: `tl.load(ptr + offsets)`")
        .into())
}

/// `boundary_check` and padding belong to block pointers.
fn refuse_block_pointer_options<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<()> {
    let given = |name| match args.get(name) {
        Some(Value::Tuple(t)) => !t.items.is_empty(),
        Some(value) => value.as_const().is_none_or(|c| constant::truth(&c)),
        None => false,
    };
    if given("boundary_check") || given("padding_option") {
        let d = cx.error(Code::Call, "boundary checks are for block pointers");
        return Err(d.help("use a mask").into());
    }
    Ok(())
}

pub(super) fn mask<'m>(cx: &mut Lower<'m>, args: &Args<'m>, shape: Shape) -> Res<Option<Tensor>> {
    let Some(value) = args.get("mask").cloned() else {
        return Ok(None);
    };
    let (ty, own) = cx.type_of(&value)?;
    let number = value.as_const().is_some();
    if ty != Ty::Num(DType::Int1) && !number {
        let found = show(ty, own);
        let message = format!("a mask is made of truth values, found {found}");
        let d = cx.arg_error(args, "mask", Code::Type, message);
        return Err(d.help("compare with something: `mask != 0`").into());
    }
    fits(cx, args, "mask", own, shape)?;
    cx.materialize(&value, DType::Int1, shape).map(Some)
}

/// A value for each element of the pointers' shape, cast as a store casts.
pub(super) fn fallback<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    name: &str,
    dtype: DType,
    shape: Shape,
) -> Res<Tensor> {
    let value = &cx.strong(&args.req(name))?;
    let (ty, own) = cx.type_of(value)?;
    fits(cx, args, name, own, shape)?;
    if ty.is_ptr() {
        let t = cx.tensor(value)?;
        let t = cx.cast(t, Ty::Num(dtype), Rounding::Nearest)?;
        return cx.broadcast_to(t, shape);
    }
    cx.materialize(value, dtype, shape)
}

/// The pointers' shape is not changed by what goes with them.
fn fits<'m>(cx: &Lower<'m>, args: &Args<'m>, what: &str, own: Shape, shape: Shape) -> Res<()> {
    if cx.common_shape(own, shape).is_ok_and(|s| s == shape) {
        return Ok(());
    }
    let message = format!("`{what}` has shape {own:?}, the pointers {shape:?}");
    let d = cx.arg_error(args, what, Code::Shape, message);
    Err(d
        .help("the pointers are not broadcast; add offsets that give them the full shape")
        .into())
}

fn cache<'m>(
    cx: &Lower<'m>,
    args: &Args<'m>,
    known: &[(&str, Option<Cache>)],
) -> Res<Option<Cache>> {
    let Some(name) = cx.str_arg(args, "cache_modifier")? else {
        return Ok(None);
    };
    match known.iter().find(|(known, _)| *known == &*name) {
        Some((_, cache)) => Ok(*cache),
        None => {
            let names: Vec<String> = known.iter().map(|(n, _)| format!("\"{n}\"")).collect();
            let d = cx.error(Code::Value, format!("unknown cache modifier \"{name}\""));
            Err(d.help(format!("known are {}", names.join(", "))).into())
        }
    }
}

fn evict<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<Option<Evict>> {
    match cx.str_arg(args, "eviction_policy")?.as_deref() {
        None | Some("" | "evict_normal") => Ok(None),
        Some("evict_first") => Ok(Some(Evict::First)),
        Some("evict_last") => Ok(Some(Evict::Last)),
        Some(other) => {
            let d = cx.error(Code::Value, format!("unknown eviction policy \"{other}\""));
            Err(d
                .help("known are \"evict_first\" and \"evict_last\"")
                .into())
        }
    }
}
