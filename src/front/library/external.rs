//! Functions of libraries by their symbols: those of libdevice are ours, others cannot be linked.
//!
//! Kernels reach them through functions with `@core.extern`, whose dictionary says for which types of arguments there is
//! which symbol: `{(core.dtype("fp32"),): ("__nv_sinf", core.dtype("fp32"))}`. The text is Python that runs at compile
//! time, as everything that is no `@jit` function.

use super::{Args, Builtin, Scope, find, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res, Stop};
use crate::front::types::Ty;
use crate::front::value::{Const, Tensor, Value};
use crate::ir::attrs::Rounding;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "extern_elementwise"("lib_name lib_path args arg_type_symbol_dict; is_pure") call_external;
    "dispatch"("func lib_name lib_path args arg_type_symbol_dict ret_type is_pure") |cx, _| {
        let d = cx.error(Code::NotYet, "`dispatch` is not supported");
        Err(d.help("call `extern_elementwise`").into())
    };
};

/// Names of libdevice's symbols that are not those of its functions with a suffix for the type.
const RENAMED: &[(&str, &str)] = &[
    ("fmaxf", "max"),
    ("fmax", "max"),
    ("fminf", "min"),
    ("fmin", "min"),
    ("umax", "max"),
    ("umin", "min"),
    ("ullmax", "max"),
    ("ullmin", "min"),
    ("llmax", "max"),
    ("llmin", "min"),
    ("fabsf", "abs"),
    ("fabs", "abs"),
    ("llabs", "abs"),
    ("umulhi", "mulhi"),
    ("mul64hi", "mulhi"),
    ("umul64hi", "mulhi"),
    ("umul24", "mul24"),
    ("usad", "sad"),
    ("uhadd", "hadd"),
    ("urhadd", "rhadd"),
    ("finitef", "finitef"),
    ("isnand", "isnan"),
    ("isinfd", "isinf"),
    ("signbitd", "signbit"),
];

/// The function that a symbol of libdevice stands for.
fn by_symbol<'m>(symbol: &str) -> Option<Value<'m>> {
    let name = symbol.strip_prefix("__nv_")?;
    let renamed = RENAMED
        .iter()
        .find(|(from, _)| *from == name)
        .map(|(_, to)| *to);
    let shorter = ["f", "ll"].map(|suffix| name.strip_suffix(suffix));
    // `__nv_fadd_rn` and `__nv_dadd_rn` are `add_rn`.
    let unmarked = ["f", "d"].map(|prefix| name.strip_prefix(prefix).filter(|n| n.contains('_')));
    let names = renamed.into_iter().chain([name]);
    let mut names = names
        .chain(shorter.into_iter().flatten())
        .chain(unmarked.into_iter().flatten());
    names.find_map(|name| {
        find(Scope::Libdevice, name).or_else(|| match name {
            "max" => find(Scope::Language, "maximum"),
            "min" => find(Scope::Language, "minimum"),
            _ => None,
        })
    })
}

fn call_external<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Value::Tuple(operands) = args.req("args") else {
        let message = "`args` is a list of numbers and blocks".to_owned();
        return Err(cx.arg_error(args, "args", Code::Type, message).into());
    };
    let mut tensors: Vec<Tensor> = Vec::new();
    for operand in &operands.items {
        tensors.push(cx.tensor(operand)?);
    }
    let Value::Dict(symbols) = args.req("arg_type_symbol_dict") else {
        let message = "`arg_type_symbol_dict` is a dictionary from types to symbols".to_owned();
        return Err(cx
            .arg_error(args, "arg_type_symbol_dict", Code::Type, message)
            .into());
    };
    let types: Vec<Value<'m>> = tensors.iter().map(|t| Value::ty(t.ty)).collect();
    let key = cx.display(&Value::tuple(types));
    let Some(entry) = symbols.get(&key) else {
        let known: Vec<&str> = symbols.keys().map(String::as_str).take(10).collect();
        let message = format!("there is no symbol for {key}");
        let d = cx.error(Code::Type, message);
        return Err(d
            .help(format!("there are symbols for {}", known.join(", ")))
            .into());
    };
    let malformed = |cx: &Lower<'m>| {
        let message = "an entry is a symbol and the type of its result".to_owned();
        Stop::from(cx.arg_error(args, "arg_type_symbol_dict", Code::Type, message))
    };
    let Value::Tuple(entry) = entry else {
        return Err(malformed(cx));
    };
    let [Value::Const(Const::Str(symbol)), Value::Type(result)] = &entry.items[..] else {
        return Err(malformed(cx));
    };
    let (symbol, result) = (symbol.clone(), *result);
    let Some(callee) = by_symbol(&symbol) else {
        let message = format!("the symbol `{symbol}` is not there");
        let d = cx.error(Code::Unsupported, message);
        return Err(d
            .help(
                "those of libdevice are (`__nv_*`); other libraries cannot be linked: write the function in the \
                 language, or with tl.inline_asm_elementwise",
            )
            .into());
    };
    let given = tensors
        .into_iter()
        .map(|t| cx.argument(Value::Tensor(t)))
        .collect();
    let at = cx.range;
    let value = cx.call_value(&callee, given, at)?;
    let value = cx.tensor(&value)?;
    match result.ty {
        // Truth values come as the integers of C.
        Ty::Num(_) => cx
            .cast(value, result.ty, Rounding::Nearest)
            .map(Value::Tensor),
        Ty::Ptr { .. } => Err(malformed(cx)),
    }
}
