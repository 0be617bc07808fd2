//! Numbers that are known when a kernel is compiled.

use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// The number that a scalar is.
pub(crate) fn signed(func: &TileFunction, value: Value) -> Option<i64> {
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    let bits = func.dfg.ty(value).elem.bits();
    let raw = *data.value()?;
    Some((raw << (64 - bits)) as i64 >> (64 - bits))
}

/// How often a `for` loop runs, if that is known and not never.
pub(crate) fn iterations(func: &TileFunction, inst: Inst) -> Option<i64> {
    let data = &func.dfg.insts[inst];
    let args = data.args.get(..3).filter(|_| data.op == TileOp::For)?;
    let [lo, hi, step] = [0, 1, 2].map(|i| signed(func, args[i]));
    let (lo, hi, step) = (lo?, hi?, step.filter(|&step| step > 0)?);
    let distance = hi.checked_sub(lo).filter(|&distance| distance > 0)?;
    Some((distance - 1) / step + 1)
}
