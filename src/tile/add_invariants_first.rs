//! Adds to a pointer what a loop does not change before what it does.
//!
//! ```text
//! for .. {
//!     p = addptr (splat a), rows            =>      for .. {
//!     x = load (addptr p, columns)                      p = addptr (splat a), columns
//!                                                       x = load (addptr p, rows)
//! ```
//!
//! where the loop changes `rows` and not `columns`: the first sum then moves in front of the loop, and each address takes one
//! multiply-add in place of two that wait for each other. Addresses are exact modulo 2^64, so the order of the sums does not matter.
//!
//! Only in loops that may be pipelined, where copies wait for addresses: pointers take twice the registers of offsets, which other
//! loops put to better use.

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;

/// Changes the order of sums in loops; gives how many. Invariants have been hoisted before, and can be again.
pub fn add_invariants_first(func: &mut TileFunction) -> usize {
    edit::rewrite(func, |edit, inst| match reordered(edit, inst) {
        Some(value) => Fate::Replace(value),
        None => Fate::Keep,
    })
}

fn reordered(edit: &mut Editor<'_>, inst: Inst) -> Option<Value> {
    let data = edit.func.dfg.insts[inst].clone();
    let is_sum = |data: &InstData<Tile>| data.op == TileOp::Addptr;
    is_sum(&data).then_some(())?;
    let owner = edit.owner(edit.block())?;
    let owner = &edit.func.dfg.insts[owner];
    let runs_ahead = owner.op == TileOp::For && owner.stages() != Some(&1);
    runs_ahead.then_some(())?;
    let last = data.args[1];
    // Down to the first sum, through what repeats its elements.
    let (first, repeats) = edit.source(data.args[0], &[TileOp::Broadcast, TileOp::ExpandDims]);
    let sum = edit.def(first).filter(|data| is_sum(data))?;
    let (base, offset) = (sum.args[0], sum.args[1]);
    let scalar = edit.operand_of(base, TileOp::Splat, 0)?;
    let worthwhile = is_changed(edit, offset) && !is_changed(edit, base) && !is_changed(edit, last);
    worthwhile.then_some(())?;
    let ty = edit.ty(data.args[0]);
    let base = edit.build(TileOp::Splat, &[scalar], &[], ty);
    let base = edit.op(TileOp::Addptr, &[base, last]);
    let offset = edit.repeat(offset, &repeats);
    Some(edit.op(TileOp::Addptr, &[base, offset]))
}

/// Whether a value is made in the block that is visited.
fn is_changed(edit: &Editor<'_>, value: Value) -> bool {
    let home = match edit.func.dfg.values[value].def {
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Result(inst, _) => edit.func.order.block_of(inst),
    };
    // What was just emitted stands nowhere yet.
    home.is_none_or(|home| home == edit.block())
}

#[cfg(test)]
mod tests {
    use super::add_invariants_first;
    use crate::tile::testing::{check_pass, fixed_point};

    /// What the loop changes stays last, or there is nothing to gain.
    #[test]
    fn sums_without_invariants_stay() {
        fixed_point(
            add_invariants_first,
            "kernel @k(v0: i32, v1: ptr<i32>) warps(1) {
            block0:
                v2 = const {value = 1} : i32
                v3 = arange {start = 0} : i32[8]
                v4 = splat v1 : ptr<i32>[8]
                v5 = addptr v4, v3 : ptr<i32>[8]
                v6 = addptr v5, v3 : ptr<i32>[8]
                for v2, v0, v2 {
                block1(v7: i32):
                    v8 = splat v7 : i32[8]
                    v9 = addptr v6, v8 : ptr<i32>[8]
                    v10 = addptr v9, v8 : ptr<i32>[8]
                    v11 = addptr v10, v3 : ptr<i32>[8]
                    store v11, v3
                    yield
                }
                return
            }",
        );
    }

    #[test]
    fn columns_come_before_rows_that_a_loop_changes() {
        check_pass(
            add_invariants_first,
            "kernel @k(v0: i32, v1: ptr<i32>) warps(1) {
            block0:
                v2 = const {value = 1} : i32
                v3 = arange {start = 0} : i32[8]
                v4 = expand_dims v3 {axis = 0} : i32[1,8]
                v5 = broadcast v4 : i32[4,8]
                v6 = splat v1 : ptr<i32>[4]
                v7 = arange {start = 0} : i32[4]
                for v2, v0, v2 {
                block1(v8: i32):
                    v9 = splat v8 : i32[4]
                    v10 = imul v9, v7 : i32[4]
                    v11 = addptr v6, v10 : ptr<i32>[4]
                    v12 = expand_dims v11 {axis = 1} : ptr<i32>[4,1]
                    v13 = broadcast v12 : ptr<i32>[4,8]
                    v14 = addptr v13, v5 : ptr<i32>[4,8]
                    store v14, v5
                    yield
                }
                return
            }",
            "kernel @k(v0: i32, v1: ptr<i32>) warps(1) {
            block0:
                v2 = const {value = 1} : i32
                v3 = arange {start = 0} : i32[8]
                v4 = expand_dims v3 {axis = 0} : i32[1,8]
                v5 = broadcast v4 : i32[4,8]
                v6 = splat v1 : ptr<i32>[4]
                v7 = arange {start = 0} : i32[4]
                for v2, v0, v2 {
                block1(v8: i32):
                    v9 = splat v8 : i32[4]
                    v10 = imul v9, v7 : i32[4]
                    v11 = addptr v6, v10 : ptr<i32>[4]
                    v12 = expand_dims v11 {axis = 1} : ptr<i32>[4,1]
                    v13 = broadcast v12 : ptr<i32>[4,8]
                    v15 = splat v1 : ptr<i32>[4,8]
                    v16 = addptr v15, v5 : ptr<i32>[4,8]
                    v17 = expand_dims v10 {axis = 1} : i32[4,1]
                    v18 = broadcast v17 : i32[4,8]
                    v14 = addptr v16, v18 : ptr<i32>[4,8]
                    store v14, v5
                    yield
                }
                return
            }",
        );
    }
}
