//! Methods of strings, at compile time.

use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::format::{format_value, repr};
use crate::front::lower::{Lower, Res, Stop};
use crate::front::value::{Const, Value};
use crate::limits::STRING_BYTES;

pub(super) const ROWS: &[Builtin] = rows! { Text;
    "upper"("self") |cx, args| map(cx, args, |s| s.to_uppercase());
    "lower"("self") |cx, args| map(cx, args, |s| s.to_lowercase());
    "title"("self") |cx, args| map(cx, args, title);
    "capitalize"("self") |cx, args| map(cx, args, capitalize);
    "strip"("self; chars") |cx, args| strip(cx, args, true, true);
    "lstrip"("self; chars") |cx, args| strip(cx, args, true, false);
    "rstrip"("self; chars") |cx, args| strip(cx, args, false, true);
    "startswith"("self prefix") |cx, args| any(cx, args, "prefix", |s, p| s.starts_with(p));
    "endswith"("self suffix") |cx, args| any(cx, args, "suffix", |s, p| s.ends_with(p));
    "isdigit"("self") |cx, args| {
        let text = own(cx, args)?;
        Ok(Value::bool(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())))
    };
    "count"("self sub") |cx, args| {
        let (text, part) = (own(cx, args)?, string(cx, args, "sub")?);
        Ok(Value::int(text.matches(&*part).count() as i128))
    };
    "find"("self sub") |cx, args| {
        let (text, part) = (own(cx, args)?, string(cx, args, "sub")?);
        let at = text.find(&*part).map(|byte| text[..byte].chars().count() as i128);
        Ok(Value::int(at.unwrap_or(-1)))
    };
    "replace"("self old new") replace;
    "removeprefix"("self prefix") |cx, args| {
        let prefix = string(cx, args, "prefix")?;
        map(cx, args, |s| s.strip_prefix(&*prefix).unwrap_or(s).to_owned())
    };
    "removesuffix"("self suffix") |cx, args| {
        let suffix = string(cx, args, "suffix")?;
        map(cx, args, |s| s.strip_suffix(&*suffix).unwrap_or(s).to_owned())
    };
    "split"("self; sep") split;
    "join"("self parts") join;
    "format"("self; *values **named") format;
};

/// The text that the method is of.
fn own<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<std::rc::Rc<str>> {
    let text = string(cx, args, "self")?;
    cx.charge_text(&text)?;
    Ok(text)
}

fn string<'m>(cx: &Lower<'m>, args: &Args<'m>, name: &str) -> Res<std::rc::Rc<str>> {
    cx.str_arg(args, name)?.ok_or_else(|| {
        let message = format!("`{name}` of `{}` must be a string", args.builtin.name);
        Stop::from(cx.arg_error(args, name, Code::Type, message))
    })
}

/// A string of bounded length.
fn made<'m>(cx: &Lower<'m>, text: String) -> Res<Value<'m>> {
    if text.len() > STRING_BYTES {
        return Err(cx.error(Code::Budget, "the string is too long").into());
    }
    Ok(Value::Const(Const::Str(text.into())))
}

fn map<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    change: impl FnOnce(&str) -> String,
) -> Res<Value<'m>> {
    let text = own(cx, args)?;
    made(cx, change(&text))
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first
            .to_uppercase()
            .chain(chars.flat_map(char::to_lowercase))
            .collect(),
        None => String::new(),
    }
}

fn title(text: &str) -> String {
    let mut within = false;
    let mut result = String::new();
    for c in text.chars() {
        if within {
            result.extend(c.to_lowercase());
        } else {
            result.extend(c.to_uppercase());
        }
        within = c.is_alphabetic();
    }
    result
}

fn strip<'m>(cx: &mut Lower<'m>, args: &Args<'m>, left: bool, right: bool) -> Res<Value<'m>> {
    let chars = cx.str_arg(args, "chars")?;
    let gone = |c: char| match &chars {
        Some(chars) => chars.contains(c),
        None => c.is_whitespace(),
    };
    map(cx, args, |s| {
        let s = if left { s.trim_start_matches(gone) } else { s };
        let s = if right { s.trim_end_matches(gone) } else { s };
        s.to_owned()
    })
}

/// Whether one of the texts given, a text or a tuple of them, fits.
fn any<'m>(
    cx: &mut Lower<'m>,
    args: &Args<'m>,
    name: &str,
    fits: impl Fn(&str, &str) -> bool,
) -> Res<Value<'m>> {
    let text = own(cx, args)?;
    let items = match args.req(name) {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    let mut found = false;
    for item in &items {
        match item {
            Value::Const(Const::Str(part)) => found |= fits(&text, part),
            other => {
                let message = format!("`{name}` must be a string, found {}", other.describe());
                return Err(cx.arg_error(args, name, Code::Type, message).into());
            }
        }
    }
    Ok(Value::bool(found))
}

fn replace<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (text, old, new) = (
        own(cx, args)?,
        string(cx, args, "old")?,
        string(cx, args, "new")?,
    );
    // Before it is made: each place could grow by all of the new text.
    let places = text.matches(&*old).count();
    if places.saturating_mul(new.len()) > STRING_BYTES {
        return Err(cx.error(Code::Budget, "the string is too long").into());
    }
    made(cx, text.replace(&*old, &new))
}

fn split<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let text = own(cx, args)?;
    let part = |s: &str| Value::Const(Const::Str(s.into()));
    let parts: Vec<Value<'m>> = match cx.str_arg(args, "sep")? {
        Some(sep) if sep.is_empty() => {
            return Err(cx
                .arg_error(args, "sep", Code::Value, "the separator is empty".into())
                .into());
        }
        Some(sep) => text.split(&*sep).map(part).collect(),
        None => text.split_whitespace().map(part).collect(),
    };
    cx.charge(parts.len())?;
    Ok(cx.list(parts))
}

fn join<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let separator = own(cx, args)?;
    let Value::Tuple(parts) = args.req("parts") else {
        let message = "`join` puts the strings of a tuple together".to_owned();
        return Err(cx.arg_error(args, "parts", Code::Type, message).into());
    };
    let mut text = String::new();
    for (i, part) in parts.items.iter().enumerate() {
        let Value::Const(Const::Str(part)) = part else {
            let message = format!("`join` takes strings, found {}", part.describe());
            return Err(cx.arg_error(args, "parts", Code::Type, message).into());
        };
        if i > 0 {
            text += &separator;
        }
        text += part;
        if text.len() > STRING_BYTES {
            break;
        }
    }
    made(cx, text)
}

/// `"{} {0:>4} {name}".format(..)`: values by position and by name.
fn format<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let text = own(cx, args)?;
    let values: Vec<Const> = args.rest.iter().map(|value| cx.as_shown(value)).collect();
    let by_name = args.named.iter();
    let named: Vec<(&str, Const)> = by_name
        .map(|(name, value)| (*name, cx.as_shown(value)))
        .collect();
    match fill(&text, &values, &named) {
        Ok(text) => made(cx, text),
        Err(message) => {
            let d = cx.error(Code::Value, message);
            Err(d.help("an f-string takes any expression").into())
        }
    }
}

fn fill(text: &str, values: &[Const], named: &[(&str, Const)]) -> Result<String, String> {
    let mut result = String::new();
    let (mut rest, mut next) = (text, 0);
    while let Some(at) = rest.find(['{', '}']) {
        result += &rest[..at];
        let twice = rest[at + 1..].chars().next() == rest[at..].chars().next();
        if twice {
            result += &rest[at..=at];
            rest = &rest[at + 2..];
            continue;
        }
        let end = rest[at..].find('}').map(|n| at + n);
        let Some(end) = end.filter(|&end| end > at) else {
            return Err("a brace stands alone".to_owned());
        };
        let field = &rest[at + 1..end];
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let (name, as_repr) = match name.strip_suffix("!r") {
            Some(name) => (name, true),
            None => (name.strip_suffix("!s").unwrap_or(name), false),
        };
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let number = name.parse::<usize>().ok().filter(|_| is_number);
        let of_name = || named.iter().find(|(other, _)| *other == name);
        let value = match (name, number) {
            ("", _) => {
                next += 1;
                values.get(next - 1)
            }
            (_, Some(index)) => values.get(index),
            (_, None) => of_name().map(|(_, value)| value),
        };
        let value = value.ok_or_else(|| match number {
            None if !name.is_empty() => format!("no value is named `{name}`"),
            _ => "there are fewer values than fields".to_owned(),
        })?;
        let shown = match as_repr {
            true => format_value(&Const::Str(repr(value).into()), spec)?,
            false => format_value(value, spec)?,
        };
        result += &shown;
        rest = &rest[end + 1..];
        if result.len() > STRING_BYTES {
            return Err("the string is too long".to_owned());
        }
    }
    Ok(result + rest)
}
