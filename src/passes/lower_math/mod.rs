//! Functions the machine lacks, in terms of those it has: polynomials and the approximate units.
//!
//! - `exp(x)` is `exp2(x * log2 e)`, as the IR defines it.
//! - `log`, `tanh`, `erf` (f32): see their files' functions; argument reduction and polynomials of our own fit, every
//!   product that is added written as `fma`, so that contraction changes nothing. The bounds of the op table hold with
//!   `exp2` and `rcp` rounded correctly, which tests check on all edge cases and samples of all magnitudes.
//! - `fdiv` by a block with fewer distinct elements than the dividend, or by integers, multiplies by reciprocals: `divide`.

mod divide;
mod functions;
#[cfg(test)]
mod tests;

use super::edit::{self, Editor, Fate};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// log2(e) as f32.
const LOG2_E: u32 = 0x3fb8_aa3b;

/// Replaces functions the machine lacks; gives their number.
pub fn lower_math(func: &mut TileFunction) -> usize {
    edit::rewrite(func, |edit, inst| match lower(edit, inst) {
        Some(value) => Fate::Replace(value),
        None => Fate::Keep,
    })
}

fn lower(edit: &mut Editor<'_>, inst: Inst) -> Option<Value> {
    let data = &edit.func.dfg.insts[inst];
    let op = data.op;
    let x = *data.args.first()?;
    Some(match op {
        TileOp::Exp => {
            let factor = edit.f32_bits(LOG2_E, edit.ty(x));
            let power = edit.op(TileOp::Fmul, &[x, factor]);
            edit.op(TileOp::Exp2, &[power])
        }
        TileOp::Log => functions::log(edit, x),
        TileOp::Tanh => functions::tanh(edit, x),
        TileOp::Erf => functions::erf(edit, x),
        TileOp::Fdiv => {
            let divisor = data.args[1];
            return divide::by_reciprocal(edit, x, divisor);
        }
        _ => return None,
    })
}
