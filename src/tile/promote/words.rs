//! Numbers of a kernel in the words of who wrote it: for what is said of accesses that are refused.

use crate::analysis::affine::{Atom, Monomial, Poly};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::Elem;
use crate::text::quote::quoted;

/// How deep expressions are written out; what is below is `..`.
const MAX_DEPTH: u32 = 5;

/// The name of a parameter of the kernel.
pub(super) fn name_of(func: &TileFunction, value: Value) -> Option<String> {
    match func.dfg.values[value].def {
        ValueDef::Param(block, index) if block == func.entry => {
            let name = func.param_names.get(usize::from(index))?;
            (!name.is_empty()).then(|| quoted(name))
        }
        _ => None,
    }
}

/// The parameter that a number is, with its name and its type in a signature, where it is one but for its width.
pub(super) fn parameter_of(func: &TileFunction, mut value: Value) -> Option<(String, String)> {
    let mut is_unsigned = false;
    while let Some(inst) = func.dfg.def_inst(value) {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Zext => is_unsigned = true,
            TileOp::Sext
            | TileOp::Itrunc
            | TileOp::AssumeMultiple
            | TileOp::AssumeContiguous
            | TileOp::AssumeConstant => {}
            _ => return None,
        }
        value = data.args[0];
    }
    let ty = func.dfg.ty(value).elem.to_string();
    let ty = match is_unsigned {
        true => ty.replacen('i', "u", 1),
        false => ty,
    };
    Some((name_of(func, value)?, ty))
}

/// What a loop counts or carries: who wrote it named it, but the name is not known here.
fn of_loop(func: &TileFunction, block: Block, index: u16) -> String {
    let mut all = func.all_insts().map(|(_, inst)| inst);
    let owner = all.find(|&inst| func.regions(inst).any(|region| region == block));
    let line = owner.and_then(|inst| func.dfg.insts[inst].loc.0.expand());
    let what = match index {
        0 => "the counter of the loop",
        _ => "what is carried by the loop",
    };
    match line {
        Some(line) => format!("<{what} in line {}>", line.0),
        None => format!("<{what}>"),
    }
}

/// A constant.
fn number(func: &TileFunction, value: Value) -> Option<i64> {
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    match data.op {
        TileOp::Const => {
            let unused = 64 - func.dfg.ty(value).elem.bits().clamp(1, 64);
            data.value().map(|&bits| (bits << unused) as i64 >> unused)
        }
        op if op.info().keeps_elements() => number(func, data.args[0]),
        _ => None,
    }
}

/// An expression, and whether it is a sum or difference, which stands in parentheses as a factor.
struct Phrase(String, bool);

impl Phrase {
    fn one(text: impl Into<String>) -> Phrase {
        Phrase(text.into(), false)
    }

    fn factor(self) -> String {
        match self.1 {
            true => format!("({})", self.0),
            false => self.0,
        }
    }
}

/// A number or block as the source might say it; what is not made of parameters, numbers and indices by the line that makes it.
pub(super) fn value(func: &TileFunction, value: Value) -> String {
    words(func, value, 0).0
}

fn words(func: &TileFunction, value: Value, depth: u32) -> Phrase {
    let (inst, index) = match func.dfg.values[value].def {
        ValueDef::Result(inst, index) => (inst, index),
        ValueDef::Param(block, index) => {
            let name = name_of(func, value);
            return Phrase::one(name.unwrap_or_else(|| of_loop(func, block, index)));
        }
    };
    if depth >= MAX_DEPTH {
        return Phrase::one("..");
    }
    let data = &func.dfg.insts[inst];
    let arg = |i: usize| words(func, data.args[i], depth + 1);
    let sum = |sign: &str| {
        let right = match sign {
            "-" => arg(1).factor(),
            _ => arg(1).0,
        };
        Phrase(format!("{} {sign} {right}", arg(0).0), true)
    };
    let product =
        |sign: &str| Phrase::one(format!("{} {sign} {}", arg(0).factor(), arg(1).factor()));
    let call = |name: &str| Phrase::one(format!("{name}({}, {})", arg(0).0, arg(1).0));
    let elem = func.dfg.ty(value).elem;
    match data.op {
        TileOp::Const if elem.is_int() => {
            Phrase::one(number(func, value).unwrap_or_default().to_string())
        }
        TileOp::ProgramId => {
            Phrase::one(format!("program_id({})", data.axis().copied().unwrap_or(0)))
        }
        TileOp::NumPrograms => Phrase::one(format!(
            "num_programs({})",
            data.axis().copied().unwrap_or(0)
        )),
        TileOp::Arange => {
            let start = i64::from(data.start().copied().unwrap_or(0));
            let end = start + func.dfg.ty(value).shape.extent(0) as i64;
            Phrase::one(format!("arange({start}, {end})"))
        }
        // Shapes and widths are not written where numbers are.
        op if op.info().keeps_elements() => words(func, data.args[0], depth),
        TileOp::AssumeMultiple
        | TileOp::AssumeContiguous
        | TileOp::AssumeConstant
        | TileOp::Sext
        | TileOp::Zext
        | TileOp::Itrunc => words(func, data.args[0], depth),
        TileOp::Iadd | TileOp::Addptr => sum("+"),
        TileOp::Isub => sum("-"),
        TileOp::Imul => product("*"),
        TileOp::Sdiv | TileOp::Udiv => product("//"),
        TileOp::Srem | TileOp::Urem => product("%"),
        TileOp::Shl => match number(func, data.args[1]) {
            Some(by @ 0..=31) => Phrase::one(format!("{} * {}", arg(0).factor(), 1_u64 << by)),
            _ => Phrase::one(format!("({} << {})", arg(0).factor(), arg(1).factor())),
        },
        TileOp::Smin | TileOp::Umin => call("minimum"),
        TileOp::Smax | TileOp::Umax => call("maximum"),
        TileOp::And => product("&"),
        TileOp::Or => product("|"),
        TileOp::Icmp => {
            let sign = data.ipred().map_or("?", |pred| pred.sign());
            Phrase(format!("{} {sign} {}", arg(0).0, arg(1).0), true)
        }
        op => {
            let what = match op {
                TileOp::Load | TileOp::TensorLoad => "what is loaded".to_owned(),
                TileOp::For | TileOp::While => format!("result {} of the loop", index + 1),
                TileOp::If => "what the branches give".to_owned(),
                TileOp::Fcmp => "the comparison".to_owned(),
                op => op.to_string(),
            };
            let line = data.loc.0.expand().map(|line| line.0);
            Phrase::one(match line {
                Some(line) => format!("<{what} in line {line}>"),
                None => format!("<{what}>"),
            })
        }
    }
}

/// A sum of products; indices of the block are `i0`, `i1`, ..
pub(super) fn sum(func: &TileFunction, poly: &Poly) -> String {
    let term = |(monomial, c): (&Monomial, i64)| {
        let atoms = monomial.atoms().iter().map(|&atom| match atom {
            Atom::Value(value) => words(func, value, 0).factor(),
            Atom::Trip(inst) => match func.dfg.insts[inst].loc.0.expand() {
                Some(line) => format!("<iterations of the loop in line {}>", line.0),
                None => "<iterations of a loop>".to_owned(),
            },
        });
        let index = monomial.dim().map(|dim| format!("i{dim}"));
        let factors: Vec<String> = atoms.chain(index).collect();
        let size = c.unsigned_abs();
        let text = match (size, factors.is_empty()) {
            (1, false) => factors.join(" * "),
            (_, true) => size.to_string(),
            (_, false) => format!("{size} * {}", factors.join(" * ")),
        };
        (c < 0, text)
    };
    // What is known when it is compiled comes last.
    let mut text = String::new();
    for (is_negative, term) in poly.terms().rev().map(term) {
        text += match (text.is_empty(), is_negative) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        };
        text += &term;
    }
    match text.is_empty() {
        true => "0".to_owned(),
        false => text,
    }
}

/// The part of a mask that is no comparison which could be a bound; the whole mask where all are.
pub(super) fn no_bound_in(func: &TileFunction, mask: Value) -> Value {
    let mut stack = vec![mask];
    while let Some(value) = stack.pop() {
        let Some(inst) = func.dfg.def_inst(value) else {
            return value;
        };
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::And => stack.extend(data.args.iter().rev()),
            op if op.info().keeps_elements() => stack.push(data.args[0]),
            TileOp::Const => {}
            TileOp::Icmp if !matches!(data.ipred(), Some(IntPred::Eq | IntPred::Ne)) => {}
            _ => return value,
        }
    }
    mask
}

/// The first number without sign that a mask compares or an address is made of, if there is one: none of a few bits, which has a
/// sign once it is wider.
pub(super) fn unsigned_in(func: &TileFunction, value: Value) -> Option<String> {
    let mut stack = vec![value];
    let mut steps = 0;
    while let Some(value) = stack.pop() {
        steps += 1;
        if steps > 200 {
            return None;
        }
        let Some(inst) = func.dfg.def_inst(value) else {
            continue;
        };
        let data = &func.dfg.insts[inst];
        let is_unsigned = match data.op {
            TileOp::Icmp => data.ipred().and_then(|pred| pred.is_signed()) == Some(false),
            TileOp::Zext => func.dfg.ty(data.args[0]).elem == Elem::I32,
            TileOp::Udiv | TileOp::Urem | TileOp::Umin | TileOp::Umax => true,
            _ => false,
        };
        if is_unsigned {
            return Some(self::value(func, value));
        }
        stack.extend(
            data.args
                .iter()
                .filter(|&&arg| func.dfg.ty(arg).elem.is_int() || func.dfg.ty(arg).elem.is_ptr()),
        );
    }
    None
}
