//! Attributes of Python's numbers, at compile time.

use super::{Args, Builtin, find_in, rows};
use crate::front::constant::{as_float, as_int};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::value::{Const, Value};

pub(super) const ROWS: &[Builtin] = rows! { Number;
    "bit_length"("self") |cx, args| {
        let size = int(cx, args)?.unsigned_abs();
        Ok(Value::int(i128::from(u128::BITS - size.leading_zeros())))
    };
    "bit_count"("self") |cx, args| {
        let size = int(cx, args)?.unsigned_abs();
        Ok(Value::int(i128::from(size.count_ones())))
    };
    "is_integer"("self") |cx, args| {
        let float = args.req("self").as_const().and_then(|c| as_float(&c));
        match float {
            Some(x) => Ok(Value::bool(x.is_finite() && x.fract() == 0.0)),
            None => Err(no_number(cx, args)),
        }
    };
    "conjugate"("self") |cx, args| match args.req("self") {
        Value::Const(c) => part(&c, "real").ok_or_else(|| no_number(cx, args)),
        _ => Err(no_number(cx, args)),
    };
};

fn int<'m>(cx: &Lower<'m>, args: &Args<'m>) -> Res<i128> {
    let number = args.req("self").as_const().and_then(|c| as_int(&c));
    number.ok_or_else(|| no_number(cx, args))
}

fn no_number<'m>(cx: &Lower<'m>, args: &Args<'m>) -> crate::front::lower::Stop {
    let found = args.req("self").describe();
    let message = format!("`{}` is of numbers, found {found}", args.builtin.name);
    cx.error(Code::Type, message).into()
}

/// A part of a number that is no function.
fn part<'m>(c: &Const, name: &str) -> Option<Value<'m>> {
    let zero = |c: &Const| match c {
        Const::Float(_) => Value::Const(Const::Float(0.0)),
        _ => Value::int(0),
    };
    Some(match (name, c) {
        ("real", Const::Float(_)) => Value::Const(c.clone()),
        ("imag", c) => zero(c),
        ("real" | "numerator", c) => Value::int(as_int(c)?),
        ("denominator", c) => as_int(c).map(|_| Value::int(1))?,
        _ => return None,
    })
}

/// The attribute of a number that Python has, functions without the number.
pub(crate) fn attribute<'m>(c: &Const, name: &str) -> Option<Value<'m>> {
    let fits = match (c, name) {
        (Const::Bool(_) | Const::Int(_), "bit_length" | "bit_count" | "conjugate") => true,
        (Const::Float(_), "is_integer" | "conjugate") => true,
        (Const::None | Const::Str(_), _) => return None,
        _ => false,
    };
    match fits {
        true => find_in(super::Scope::Number, name).map(Value::Builtin),
        false => part(c, name),
    }
}
