//! Functions the machine lacks, in terms of those it has: argument reduction and polynomials of our own.
//!
//! - `exp` of f32 is `exp2(x * log2 e)`, as the IR defines it; `tanh` and `erf` of f32 use the machine's power of two and
//!   reciprocal. What they make of an argument depends on those units.
//! - Everything else is sums, products and fused multiply-adds in which every rounding is known, so that the machine, the
//!   emulator and the interpreter agree on every bit. The op table states the bounds, the table below what was
//!   measured.
//! - `pow` with a whole exponent that is known, up to 64 in size, is made of products; with 1/2 it is a root.
//! - Where an argument is so far out that much work is for it alone (angles to reduce by 2 / pi in 200 digits, results that are
//!   subnormal), a `rare` condition selects it, and `branch_around_rare` computes it behind a branch. Divisions and roots whose
//!   operands are no extremes are written out: they give the same bits as those that are right everywhere.
//! - `fdiv` by a block with fewer distinct elements than the dividend, or by integers, multiplies by reciprocals: `divide`.
//! - Contraction changes nothing: `expr` says why, a test that it does not.
//!
//! What else CUDA's `libdevice` has needs no op:
//!
//! | names | written as |
//! |---|---|
//! | `isnan`, `isinf`, `isfinited`, `finitef`, `signbit` | `fcmp uno`; `fabs` and a comparison with infinity; the sign bit |
//! | `rint`, `nearbyint`, `llrint`, `llround`, `float2int_rd`.. | `rint`, `round`, `floor`, `ceil`, `trunc`, then `fptosi` or `fptoui` |
//! | `fdim` | `x - y` where `x > y`, else 0 |
//! | `remainder` | `frem` by `2 y`, from which `y` is taken once or twice while more than half of it is left |
//! | `nextafter` | the bits as an integer, plus or minus 1 |
//! | `ldexp`, `scalbn` | two products with powers of two, whose bits are the exponent's |
//! | `ilogb`, `logb` | the exponent's bits; of subnormal numbers after a product with 2^24 or 2^53 |
//! | `rcbrt`, `rhypot`, `norm3d`.. | `rcp` of `cbrt` and `hypot`; `hypot` of `hypot` |
//! | `normcdf` | `erfc(-x / sqrt 2) / 2` |
//! | `ffs`, `sad`, `hadd`, `rhadd`, `mul24` | integer ops: `ffs` is 32 less `clz(x & -x)` |
//! | `add_rd`, `sqrt_rz`, `fma_ru`, `int2float_rd`.. | `inline_ptx` of that instruction, which the interpreter does not run |
//!
//! Not here but in the language's own library: `tgamma`, `erfcx`, `erfcinv`, `normcdfinv`, `sinpi`, `cospi`, and Bessel's functions.
//!
#![doc = include_str!("ULP.md")]

mod divide;
mod error_function;
mod exponential;
mod expr;
mod gamma;
mod hyperbolic;
mod integral;
mod logarithm;
mod power;
mod tables;
#[cfg(test)]
mod tests;
mod trigonometric;

use super::edit::{self, Editor, Fate};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{TileOp, tile_functions};

use expr::{Formula, X};

/// Replaces functions the machine lacks; gives their number.
pub fn lower_math(func: &mut TileFunction) -> usize {
    edit::rewrite(func, |edit, inst| match lower_inst(edit, inst) {
        Some(value) => Fate::Replace(value),
        None => Fate::Keep,
    })
}

fn lower_inst(edit: &mut Editor<'_>, inst: Inst) -> Option<Value> {
    let data = &edit.func.dfg.insts[inst];
    let is_function = matches!(
        data.op,
        tile_functions!() | TileOp::Exp2 | TileOp::Rsqrt | TileOp::Rcp | TileOp::Fdiv
    );
    if !is_function {
        return None;
    }
    let args = data.args.clone();
    let ty = edit.ty(*args.first()?);
    let formula = Formula::new(ty.elem);
    let x = formula.operand();
    let result = match (data.op, &args[..]) {
        (TileOp::Fdiv, &[x, divisor]) => return divide::by_reciprocal(edit, x, divisor),
        (TileOp::Pow, &[_, y]) => match known(edit, y).and_then(|y| power::of_known(x, y)) {
            Some(power) => power,
            None => power::pow(x, formula.operand()),
        },
        (op, [_]) => of_one(op, x)?,
        (op, [_, _]) => of_two(op, x, formula.operand())?,
        _ => return None,
    };
    Some(formula.place(edit, &args, ty, result.node()))
}

/// The number that every element of a value is.
fn known(edit: &Editor<'_>, value: Value) -> Option<f64> {
    let (few, _) = edit.source(value, divide::REPEATS);
    let format = edit.ty(few).elem.scalar()?.format()?;
    Some(format.to_f64(edit.bits(few)?))
}

/// The formula of a function of one number; none if the machine has it.
fn of_one(op: TileOp, x: X<'_>) -> Option<X<'_>> {
    let is_double = x.formula().is_double();
    let one = x.formula().number(1.0);
    Some(match op {
        TileOp::Exp2 if is_double => exponential::exp2(x),
        TileOp::Rsqrt if is_double => power::rsqrt(x),
        TileOp::Rcp if is_double => one.over(x),
        TileOp::Exp if !is_double => exponential::fast_exp(x),
        TileOp::Exp | TileOp::ExpPrecise => exponential::exp(x),
        TileOp::Exp10 => exponential::exp10(x),
        TileOp::Expm1 => exponential::expm1(x),
        TileOp::Log => logarithm::log(x),
        TileOp::Log2 => logarithm::log2(x),
        TileOp::Log10 => logarithm::log10(x),
        TileOp::Log1p => logarithm::log1p(x),
        TileOp::Sin => trigonometric::sin(x),
        TileOp::Cos => trigonometric::cos(x),
        TileOp::Tan => trigonometric::tan(x),
        TileOp::Asin => trigonometric::asin(x),
        TileOp::Acos => trigonometric::acos(x),
        TileOp::Atan => trigonometric::atan(x),
        TileOp::Sinh => hyperbolic::sinh(x),
        TileOp::Cosh => hyperbolic::cosh(x),
        TileOp::Tanh => hyperbolic::tanh(x),
        TileOp::Asinh => logarithm::asinh(x),
        TileOp::Acosh => logarithm::acosh(x),
        TileOp::Atanh => logarithm::atanh(x),
        TileOp::Erf => error_function::erf(x),
        TileOp::Erfc => error_function::erfc(x),
        TileOp::Erfinv => error_function::erfinv(x),
        TileOp::Lgamma => gamma::lgamma(x),
        TileOp::Cbrt => power::cbrt(x),
        TileOp::Round => integral::round(x),
        _ => return None,
    })
}

/// The formula of a function of two numbers; none if the machine has it.
fn of_two<'f>(op: TileOp, x: X<'f>, y: X<'f>) -> Option<X<'f>> {
    Some(match op {
        TileOp::Atan2 => trigonometric::atan2(x, y),
        TileOp::Hypot => power::hypot(x, y),
        TileOp::Frem => integral::frem(x, y),
        _ => return None,
    })
}
