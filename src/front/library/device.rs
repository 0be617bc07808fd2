//! What a kernel does beside computing: printing, assertions, inline PTX, clocks and dependent launches.

use ruff_python_ast::Operator;

use super::{Args, Builtin, hints, rows};
use crate::front::diagnostic::{Code, Severity};
use crate::front::lower::{Combining, Lower, Res, Stop};
use crate::front::types::{DType, Ty};
use crate::front::value::{Const, Tensor, Value};
use crate::ir::attrs::{Flag, Rounding, Show, make};
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;
use crate::settings::LANES;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "device_print"("prefix *args; hex") device_print;
    "device_assert"("cond; msg mask") device_assert;
    "inline_asm_elementwise"("asm constraints args dtype is_pure pack") inline_asm;
    "gdc_wait"("") |cx, _| {
        cx.b.gdc_wait();
        Ok(Value::NONE)
    };
    "gdc_launch_dependents"("") |cx, _| {
        cx.b.gdc_launch_dependents();
        Ok(Value::NONE)
    };
    "globaltimer"("") |cx, _| {
        let value = cx.b.global_timer();
        Ok(cx.block(value, Ty::Num(DType::Int64)))
    };
    "smid"("") |cx, _| {
        let value = cx.b.sm_id();
        Ok(cx.block(value, Ty::Num(DType::Int32)))
    };
    "num_warps"("") |cx, _| Ok(Value::int(i128::from(fixed_warps(cx))));
    "num_threads"("") |cx, _| Ok(Value::int(i128::from(LANES * fixed_warps(cx))));
};

/// The number of warps, which is a hint no more once the text knows it.
fn fixed_warps(cx: &mut Lower<'_>) -> u32 {
    cx.b.func_mut().fixed_warps = true;
    cx.b.func().num_warps()
}

/// A text that may stand in a report, which is one line: what controls a terminal goes.
fn printable(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control());
    kept.take(500).collect()
}

/// One report for each value, under the same text.
fn device_print<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let Some(prefix) = cx.str_arg(args, "prefix")? else {
        let d = cx.error(Code::Call, "a print begins with a text");
        return Err(d.help("as in tl.device_print(\"x\", x)").into());
    };
    let hex = cx.bool_arg(args, "hex", false)?;
    report(cx, &prefix, &args.rest, hex)
}

fn report<'m>(cx: &mut Lower<'m>, prefix: &str, values: &[Value<'m>], hex: bool) -> Res<Value<'m>> {
    let text = printable(prefix);
    if values.is_empty() {
        cx.b.device_print(None, text);
        return Ok(Value::NONE);
    }
    for value in values {
        let t = cx.tensor(value)?;
        let signed = t.ty.dtype().is_some_and(DType::is_signed);
        cx.b.device_print(Some(t.value), text.clone());
        cx.b.with(make::show(match (hex, signed) {
            (true, _) => Show::Hex,
            (false, true) => Show::Signed,
            (false, false) => Show::Unsigned,
        }));
    }
    Ok(Value::NONE)
}

/// Python's `print`: of what is known at compile time then, else when the kernel runs.
pub(super) fn print<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    if !args.rest.iter().any(|v| matches!(v, Value::Tensor(_))) {
        return hints::static_print(cx, args);
    }
    match args.rest.split_first() {
        Some((Value::Const(Const::Str(prefix)), values)) => {
            report(cx, &prefix.clone(), values, false)
        }
        _ => report(cx, "", &args.rest, false),
    }
}

fn device_assert<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let mut cond = cx.tensor_arg(args, "cond")?;
    if let Some(mask) = args.get("mask").cloned() {
        // Where the mask is false nothing is asserted.
        let unmasked = cx.not(&mask)?;
        let cast = cx.cast_to_bool(cond)?;
        let either = cx.binary(Operator::BitOr, &Value::Tensor(cast), &unmasked)?;
        cond = cx.tensor(&either)?;
    }
    let message = args.get("msg").map(|msg| cx.display(msg));
    cx.device_assertion(cond, &message.unwrap_or_default())?;
    Ok(Value::NONE)
}

impl<'m> Lower<'m> {
    /// Asserts at run time; without `debug` an assertion is not there. Nor is it in a function that combines elements,
    /// whose order is the compiler's choice, or in one that has branched on an element.
    pub(crate) fn device_assertion(&mut self, cond: Tensor, message: &str) -> Res<()> {
        let cond = self.cast_to_bool(cond)?;
        match (self.debug, self.combining) {
            (false, _) => {}
            (true, Combining::No | Combining::Blocks { chose: false, .. }) => {
                self.b.device_assert(cond.value, printable(message))
            }
            (true, _) => {
                let message = "an assertion within a function of single elements is not checked";
                let d = self.error(Code::Suspicious, message);
                let d = d.help("assert what is given to the function, or what comes of it");
                self.add(d.with_severity(Severity::Warning));
            }
        }
        Ok(())
    }
}

/// Lines of PTX for the elements of blocks, which are broadcast to one shape.
fn inline_asm<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let text = |cx: &Lower<'m>, name: &str| {
        let found = cx.str_arg(args, name)?;
        found.ok_or_else(|| {
            let message = format!("`{name}` is a text");
            Stop::from(cx.arg_error(args, name, Code::Type, message))
        })
    };
    let (asm, constraints) = (text(cx, "asm")?, text(cx, "constraints")?);
    let pack = match cx.int_arg(args, "pack")? {
        Some(pack @ (1 | 2 | 4 | 8 | 16 | 32)) => pack as u8,
        other => {
            let message = format!(
                "`pack` is a power of two up to 32, not {}",
                other.unwrap_or(0)
            );
            return Err(cx.arg_error(args, "pack", Code::Value, message).into());
        }
    };
    let pure = cx.bool_arg(args, "is_pure", false)?;
    let dtype = args.req("dtype");
    let (types, several) = match &dtype {
        Value::Tuple(tuple) => (tuple.items.clone(), true),
        single => (vec![single.clone()], false),
    };
    let operands = match args.req("args") {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    let (asm, constraints, operands) = immediates(cx, args, (&asm, &constraints), pack, operands)?;
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut shape = Shape::SCALAR;
    for operand in &operands {
        let t = cx.tensor(operand)?;
        shape = cx.common_shape(shape, t.shape)?;
        tensors.push(t);
    }
    let mut inputs = Vec::new();
    for t in tensors {
        // The IR's lines take no truth values; as bytes they are 0 and 1.
        let t = match t.ty {
            Ty::Num(DType::Int1) => cx.cast(t, Ty::Num(DType::Uint8), Rounding::Nearest)?,
            _ => t,
        };
        inputs.push(cx.broadcast_to(t, shape)?.value);
    }
    let mut results: Vec<(Ty, Ty, TileType)> = Vec::new();
    let outputs = constraints.split(',').map(str::trim);
    let outputs: Vec<&str> = outputs.filter(|c| c.starts_with('=')).collect();
    for (i, ty) in types.iter().enumerate() {
        let ty = match ty {
            Value::Type(t) if t.shape.is_none() => t.ty,
            other => {
                let message = format!("`dtype` is a type, found {}", other.describe());
                return Err(cx.arg_error(args, "dtype", Code::Type, message).into());
            }
        };
        let held = match ty {
            Ty::Num(DType::Int1) => Ty::Num(DType::Int8),
            // A register of fewer bits is widened, without a sign, as LLVM does.
            Ty::Num(number) if number.is_int() && pack == 1 => {
                match (outputs.get(i), number.bits()) {
                    (Some(&("=r" | "=&r")), 64) => Ty::Num(DType::Uint32),
                    (Some(&("=h" | "=&h")), 32 | 64) => Ty::Num(DType::Uint16),
                    _ => ty,
                }
            }
            ty => ty,
        };
        results.push((ty, held, cx.tile_type(held, shape)?));
    }
    let given: Vec<TileType> = results.iter().map(|r| r.2).collect();
    check_asm(cx, args, (&asm, &constraints), pack, &inputs, &given)?;
    let values = cx.b.inline_ptx(&inputs, (&asm, &constraints), pack, &given);
    if pure {
        cx.b.with(make::pure(Flag));
    }
    let mut items = Vec::new();
    for (&value, &(ty, held, _)) in values.iter().zip(&results) {
        let result = Tensor {
            value,
            ty: held,
            shape,
        };
        items.push(Value::Tensor(match ty {
            Ty::Num(DType::Int1) => cx.is_nonzero(result)?,
            ty if ty != held => cx.cast(result, ty, Rounding::Nearest)?,
            _ => result,
        }));
    }
    if several {
        return Ok(Value::tuple(items));
    }
    Ok(items.into_iter().next().unwrap_or(Value::Poison))
}

/// Lines, constraints and operands without the numbers that the lines hold: operands with the constraint `n`, one element at a time.
fn immediates<'m>(
    cx: &Lower<'m>,
    args: &Args<'m>,
    (asm, constraints): (&str, &str),
    pack: u8,
    operands: Vec<Value<'m>>,
) -> Res<(String, String, Vec<Value<'m>>)> {
    let all: Vec<&str> = constraints.split(',').map(str::trim).collect();
    // What the lines change besides stands behind.
    let clobbers = all.iter().rev().take_while(|c| c.starts_with('~')).count();
    let (all, clobbers) = all.split_at(all.len() - clobbers);
    let results = all.iter().filter(|c| c.starts_with('=')).count();
    let is_number = |c: &str| matches!(c, "n" | "i");
    if pack != 1 || all.len() != results + operands.len() || !all.iter().any(|c| is_number(c)) {
        return Ok((asm.to_owned(), constraints.to_owned(), operands));
    }
    let mut kept: Vec<&str> = all[..results].to_vec();
    // What stands for each operand in the lines.
    let mut places: Vec<String> = (0..results).map(|i| format!("${i}")).collect();
    let mut others = Vec::new();
    for (constraint, operand) in all[results..].iter().zip(operands) {
        match (is_number(constraint), &operand) {
            (true, Value::Const(Const::Int(number))) => {
                places.push(immediate(*number).ok_or_else(|| {
                    let message = format!("{number} does not fit into 64 bits");
                    Stop::from(cx.arg_error(args, "args", Code::Value, message))
                })?)
            }
            (true, other) => {
                let message = format!(
                    "the constraint `{constraint}` asks for a constant, found {}",
                    other.describe()
                );
                let d = cx.arg_error(args, "args", Code::Constant, message);
                return Err(d
                    .help("ask for a register (`r`), or give a constexpr")
                    .into());
            }
            (false, _) => {
                places.push(format!("${}", kept.len()));
                kept.push(constraint);
                others.push(operand);
            }
        }
    }
    let mut lines = String::with_capacity(asm.len());
    let mut rest = asm;
    while let Some(at) = rest.find('$') {
        lines += &rest[..at];
        let after = &rest[at + 1..];
        let (open, inner) = match after.strip_prefix('{') {
            Some(inner) => (true, inner),
            None => (false, after),
        };
        let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
        let place = inner[..digits]
            .parse::<usize>()
            .ok()
            .and_then(|n| places.get(n));
        let end = match open {
            true if inner[digits..].starts_with('}') => Some(at + 2 + digits + 1),
            true => {
                let d = cx.arg_error(
                    args,
                    "asm",
                    Code::Value,
                    "lines with numbers in them take no modifiers of operands".to_owned(),
                );
                return Err(d.help("write `$1` or `${1}`").into());
            }
            false => Some(at + 1 + digits),
        };
        match (place, end) {
            (Some(place), Some(end)) => {
                lines += place;
                rest = &rest[end..];
            }
            // `$$` is one sign, and anything else is told by who reads the lines.
            _ => {
                let width = if after.starts_with('$') { 2 } else { 1 };
                lines += &rest[at..at + width];
                rest = &rest[at + width..];
            }
        }
    }
    lines += rest;
    kept.extend(clobbers);
    Ok((lines, kept.join(","), others))
}

/// A number as LLVM writes it, which has the 32 bits of Triton's type for it, or 64, and is printed with its sign.
fn immediate(number: i128) -> Option<String> {
    let number = match number {
        0x8000_0000..=0xffff_ffff => i128::from(number as u32 as i32),
        number if number > i128::from(i64::MAX) => i128::from(u64::try_from(number).ok()? as i64),
        number => i128::from(i64::try_from(number).ok()?),
    };
    Some(number.to_string())
}

/// What the IR would refuse is a mistake of the text, told where it stands.
fn check_asm<'m>(
    cx: &Lower<'m>,
    args: &Args<'m>,
    (asm, constraints): (&str, &str),
    pack: u8,
    inputs: &[crate::ir::entities::Value],
    given: &[TileType],
) -> Res<()> {
    use crate::ir::ops::TileOp;
    use crate::ir::ops::rules::{Operands, tile};
    let types: Vec<TileType> = inputs.iter().map(|&v| cx.b.ty(v)).collect();
    let attrs = [
        make::ptx(asm.to_owned()),
        make::constraints(constraints.to_owned()),
        make::pack(pack),
    ];
    let operands = Operands {
        args: &types,
        attrs: &attrs,
        given,
    };
    match tile::result_types(TileOp::InlinePtx, &operands) {
        Ok(_) => Ok(()),
        Err(problem) => {
            let d = cx.arg_error(args, "asm", Code::Value, problem.to_string());
            Err(d
                .help(
                    "constraints name registers as in \"=r,r,r\", results first; `$0` is the first",
                )
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_of_one_line() {
        assert_eq!(printable("x\u{e4}\n\t = \u{7}"), "x\u{e4} = ");
        assert_eq!(printable(&"y".repeat(600)).len(), 500);
    }
}
