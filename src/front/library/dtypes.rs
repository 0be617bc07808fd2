//! Types as values: what makes them, and what can be asked of them.

use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::names::type_predicate;
use crate::front::types::{DType, Ty, own_name};
use crate::front::value::{Const, TypeValue, Value};

pub(super) const LANGUAGE: &[Builtin] = rows! { Language;
    "pointer_type"("element_ty; address_space const") pointer_type;
    "block_type"("element_ty shape") block_type;
    "get_int_dtype"("bitwidth signed") int_dtype;
    "dtype"("name") dtype_by_name;
    "constexpr_type"("value") |cx, args| match args.req("value").as_const() {
        Some(c) => Ok(Value::ConstType(c)),
        None => {
            let found = args.req("value").describe();
            Err(cx.error(Code::Constant, format!("expected a constant, found {found}")).into())
        }
    };
    "constexpr_function"("fn") |_, args| Ok(args.req("fn"));
    "_log2"("i") log2;
    "_is_power_of_two"("i") |cx, args| {
        let number = cx.int_arg(args, "i")?.unwrap_or(0);
        Ok(Value::bool(number > 0 && number & (number - 1) == 0))
    };
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
    "get_int_max_value"("t") |cx, args| Ok(Value::int(int_of(cx, args)?.int_range().1));
    "get_int_min_value"("t") |cx, args| Ok(Value::int(int_of(cx, args)?.int_range().0));
    "codegen_name"("t") |cx, args| match type_of(cx, args)? {
        TypeValue { ty: Ty::Num(dtype), shape: None } => {
            Ok(Value::Const(Const::Str(dtype.name().into())))
        }
        TypeValue { ty, shape } => {
            Ok(Value::Const(Const::Str(own_name(ty, shape).into())))
        }
    };
    "get_block_shapes"("t") |cx, args| {
        let t = type_of(cx, args)?;
        let Some(shape) = t.shape else {
            let message = format!("{} is no type of a block", own_name(t.ty, None));
            return Err(cx.error(Code::Type, message).into());
        };
        Ok(Value::tuple(shape.extents().map(|e| Value::int(i128::from(e))).collect()))
    };
    "with_element_ty"("t element_ty") |cx, args| {
        let shape = type_of(cx, args)?.shape;
        match cx.type_arg(args, "element_ty")? {
            Some(ty) => Ok(Value::Type(TypeValue { ty, shape })),
            None => Err(cx.error(Code::Type, "expected a type, found None").into()),
        }
    };
};

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

/// The type whose method is called.
fn type_of<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<TypeValue> {
    match args.req("t") {
        Value::Type(t) => Ok(t),
        other => {
            let message = format!("expected a type, found {}", other.describe());
            Err(cx.error(Code::Type, message).into())
        }
    }
}

/// The integer format whose method is called.
fn int_of<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<DType> {
    let t = type_of(cx, args)?;
    let dtype = t.ty.dtype().filter(|d| d.is_int() && t.shape.is_none());
    dtype.ok_or_else(|| {
        let message = format!("{} is no integer", own_name(t.ty, t.shape));
        cx.error(Code::Type, message).into()
    })
}

fn predicate<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let holds = type_predicate(type_of(cx, args)?, args.builtin.name);
    Ok(Value::bool(holds.unwrap_or(false)))
}

fn pointer_type<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    match cx.type_arg(args, "element_ty")? {
        Some(Ty::Num(to)) => {
            if cx
                .int_arg(args, "address_space")?
                .is_some_and(|space| space != 1)
            {
                let message = "pointers are to global memory, address space 1".to_owned();
                return Err(cx
                    .arg_error(args, "address_space", Code::Unsupported, message)
                    .into());
            }
            let constant = cx.bool_arg(args, "const", false)?;
            Ok(Value::ty(Ty::Ptr { to, constant }))
        }
        _ => {
            let d = cx.error(Code::NotYet, "pointers to pointers are not supported yet");
            Err(d.help("load an int64 and cast it to a pointer").into())
        }
    }
}

fn block_type<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let shape = cx.shape_of(&args.req("shape"))?;
    match cx.type_arg(args, "element_ty")? {
        Some(ty) => Ok(Value::Type(TypeValue {
            ty,
            shape: Some(shape),
        })),
        None => Err(cx.error(Code::Type, "expected a type, found None").into()),
    }
}

fn int_dtype<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let bits = cx.int_arg(args, "bitwidth")?.unwrap_or(0);
    let signed = cx.bool_arg(args, "signed", true)?;
    let found = DType::ALL.iter().copied().find(|d| {
        let one = *d == DType::Int1;
        d.is_int() && i128::from(d.bits()) == bits && (one || d.is_signed() == signed)
    });
    match found {
        Some(dtype) => Ok(Value::ty(Ty::Num(dtype))),
        None => {
            let message = format!("there is no integer of {bits} bits");
            Err(cx.error(Code::Value, message).into())
        }
    }
}

fn dtype_by_name<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if let ty @ Value::Type(_) = args.req("name") {
        return Ok(ty);
    }
    let name = cx.str_arg(args, "name")?;
    let found = name.as_deref().and_then(|name| {
        let own = DType::ALL.iter().copied().find(|d| d.own_name() == name);
        own.or_else(|| DType::from_short_name(name))
    });
    match found {
        Some(dtype) => Ok(Value::ty(Ty::Num(dtype))),
        None => Err(cx
            .error(Code::Value, "there is no type of this name")
            .into()),
    }
}
