//! Loops, hints and assertions of the language, and what it tells of the target.

use super::{Args, Builtin, rows};
use crate::front::constant;
use crate::front::diagnostic::{Code, Severity};
use crate::front::lower::{Lower, Res};
use crate::front::value::{Const, RangeValue, Tuple, Value};
use crate::ir::attrs::List;
use crate::ir::entities;

pub(super) const LANGUAGE: &[Builtin] = rows! { Language;
    "range"("arg1; arg2 step num_stages loop_unroll_factor disallow_acc_multi_buffer flatten warp_specialize disable_licm") range;
    "static_range"("arg1; arg2 step") static_range;
    "multiple_of"("input values") |cx, args| hint(cx, args, crate::ir::builder::TileBuilder::assume_multiple);
    "max_contiguous"("input values") |cx, args| hint(cx, args, crate::ir::builder::TileBuilder::assume_contiguous);
    "max_constancy"("input values") |cx, args| hint(cx, args, crate::ir::builder::TileBuilder::assume_constant);
    "assume"("cond") assume;
    "condition"("arg1; disable_licm") |_, args| Ok(args.req("arg1"));
    "static_assert"("cond; msg") static_assert;
    "static_print"("*values; sep end file flush") static_print;
    "is_cuda"("") |_, _| Ok(Value::bool(true));
    "is_hip"("") |_, _| Ok(Value::bool(false));
    "is_hip_cdna3"("") |_, _| Ok(Value::bool(false));
    "is_hip_cdna4"("") |_, _| Ok(Value::bool(false));
    "current_target"("") current_target;
    "cuda_capability_geq"("major; minor") capability;
};

/// Most copies of what a loop repeats.
const MOST_COPIES: u8 = 128;

/// The target that the kernel is compiled for.
pub(super) fn current_target<'m>(cx: &mut Lower<'m>, _: &Args<'m>) -> Res<Value<'m>> {
    let arch = Value::int(i128::from(cx.target.sm));
    Ok(target_of(vec![
        Value::Const(Const::Str("cuda".into())),
        arch,
        Value::int(32),
    ]))
}

/// What the host calls a target: a tuple with names, equal to one of the same elements.
pub(super) fn target_of<'m>(items: Vec<Value<'m>>) -> Value<'m> {
    let names = vec!["backend", "arch", "warp_size"];
    Value::Tuple(Tuple::new(items, None, names).into())
}

/// A loop that is asked for nothing but its bounds.
fn counted<'m>(args: &Args<'m>) -> RangeValue<'m> {
    let first = args.req("arg1");
    let (start, stop) = match args.get("arg2") {
        Some(stop) => (first, stop.clone()),
        None => (Value::int(0), first),
    };
    RangeValue {
        start,
        stop,
        step: args.get("step").cloned().unwrap_or(Value::int(1)),
        unroll: false,
        stages: None,
        copies: None,
    }
}

/// What a loop can be asked for and changes nothing, as the guide says.
const WITHOUT_EFFECT: [&str; 4] = [
    "disallow_acc_multi_buffer",
    "flatten",
    "warp_specialize",
    "disable_licm",
];

/// `range` of Python, of which Triton passes over what it would take for one of the language.
pub(super) fn python_range<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let asked = ["num_stages", "loop_unroll_factor"].into_iter();
    let given = |name: &&str| args.get(name).is_some();
    if let Some(name) = asked.chain(WITHOUT_EFFECT).find(given) {
        let message = format!("`range` of Python takes no `{name}`; it is passed over");
        let d = cx.error(Code::Suspicious, message);
        let d = d.help("`tl.range` takes it");
        cx.add(d.with_severity(Severity::Warning));
    }
    Ok(Value::Range(counted(args).into()))
}

fn range<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let stages = cx.int_arg(args, "num_stages")?;
    for name in WITHOUT_EFFECT {
        cx.bool_arg(args, name, false)?;
    }
    let copies = cx.int_arg(args, "loop_unroll_factor")?;
    let between = |number: Option<i128>, most: u8, what: &str| match number {
        None | Some(0) => Ok(None),
        Some(n) => match u8::try_from(n).ok().filter(|n| (1..=most).contains(n)) {
            Some(n) => Ok(Some(n)),
            None => {
                let message = format!("a loop {what}, not {n}");
                Err(cx.error(Code::Value, message))
            }
        },
    };
    let stages = between(stages, 32, "has 1 to 32 stages")?;
    let copies = between(copies, MOST_COPIES, "repeats 1 to 128 copies")?;
    let range = RangeValue {
        stages,
        copies: copies.filter(|&n| 1 < n),
        ..counted(args)
    };
    Ok(Value::Range(range.into()))
}

fn static_range<'m>(_cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let range = RangeValue {
        unroll: true,
        ..counted(args)
    };
    Ok(Value::Range(range.into()))
}

/// A hint of the IR.
type Hint = fn(&mut crate::ir::builder::TileBuilder, entities::Value, List) -> entities::Value;

/// `multiple_of` and its kin: one number for each dimension.
fn hint<'m>(cx: &mut Lower<'m>, args: &Args<'m>, make: Hint) -> Res<Value<'m>> {
    let value = args.req("input");
    if value.as_const().is_some() {
        // A number that is known needs no promise.
        return Ok(value);
    }
    let t = cx.tensor_arg(args, "input")?;
    let items = match args.req("values") {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    let mut values = List::new();
    for item in &items {
        let number = item.as_const().and_then(|c| constant::as_int(&c));
        match number.and_then(|n| u32::try_from(n).ok()) {
            // What is no power of two is a multiple of one.
            Some(n) if n > 0 => values.push(1 << n.trailing_zeros()),
            _ => {
                let message = format!("expected constants above zero, found {}", item.describe());
                return Err(cx.error(Code::Constant, message).into());
            }
        }
    }
    let rank = t.shape.rank().max(1);
    if values.len() != rank {
        let message = format!("{} numbers for a value of {rank} dimensions", values.len());
        return Err(cx
            .error(Code::Value, message)
            .help("give one for each dimension")
            .into());
    }
    if t.ty.dtype().is_some_and(|d| !d.is_int()) {
        return Err(cx.wrong_type("integers or pointers", t));
    }
    let value = make(&mut cx.b, t.value, values);
    Ok(cx.block(value, t.ty))
}

/// A promise that nothing is made of yet.
fn assume<'m>(_cx: &mut Lower<'m>, _args: &Args<'m>) -> Res<Value<'m>> {
    Ok(Value::NONE)
}

fn static_assert<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let cond = args.req("cond");
    match cx.condition(&cond)? {
        Ok(true) => Ok(Value::NONE),
        Ok(false) => {
            let message = match args.get("msg") {
                Some(msg) => format!("static assertion failed: {}", cx.display(msg)),
                None => "static assertion failed".to_owned(),
            };
            Err(cx
                .error(Code::Assertion, message.trim_end_matches(": "))
                .into())
        }
        Err(_) => {
            let message = "the condition is not known at compile time";
            let d = cx.error(Code::Constant, message);
            Err(d
                .help("use tl.device_assert for what depends on data")
                .into())
        }
    }
}

pub(super) fn static_print<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let values: Vec<String> = args.rest.iter().map(|v| cx.display(v)).collect();
    let separator = cx.str_arg(args, "sep")?.unwrap_or_else(|| " ".into());
    let mut text = values.join(&separator);
    if let Some((end, _)) = text.char_indices().nth(1000) {
        text.truncate(end);
        text += "...";
    }
    let d = cx.error(Code::Print, text).with_severity(Severity::Note);
    cx.add(d);
    Ok(Value::NONE)
}

/// Whether the target has at least this compute capability.
fn capability<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let major = cx.int_arg(args, "major")?.unwrap_or(0);
    let minor = cx.int_arg(args, "minor")?.unwrap_or(0);
    let own = i128::from(cx.target.sm);
    Ok(Value::bool((own / 10, own % 10) >= (major, minor)))
}
