//! Loop-invariant code motion: pure instructions whose operands come from outside of a loop move in front of it, as far
//! out as their operands allow.
//!
//! One walk in program order suffices, because operands have moved before their users are met. Nothing leaves a branch of
//! `if` (it might not run) or the region of a reduction. Pure ops cannot fail, so running one for a loop that does not
//! run is harmless. Time is linear in the function times the depth of nesting that instructions leave.

use rustc_hash::FxHashMap;

use super::edit::{self, Editor, Fate};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;

/// Moves invariant instructions out of loops; gives their number.
pub fn hoist_invariants(func: &mut TileFunction) -> usize {
    let mut moved: FxHashMap<Inst, Block> = FxHashMap::default();
    edit::rewrite(func, |edit, inst| {
        if !edit.func.dfg.insts[inst].is_pure() {
            return Fate::Keep;
        }
        let mut target = edit.block();
        while let Some(owner) = edit.owner(target) {
            let is_loop = edit.func.dfg.insts[owner].op.is_loop();
            let inside = edit.func.dfg.uses(inst);
            let mut inside = inside.map(|value| home(edit, &moved, value));
            if !is_loop || inside.any(|block| block == Some(target)) {
                break;
            }
            // Registers that blocks would take through all programs are worth more than the blocks.
            let is_last = edit.func.persistent
                && edit.owner(target).is_some()
                && edit.around(target) == Some(edit.func.entry);
            if is_last && !is_scalar(edit, inst) {
                break;
            }
            let Some(around) = edit.around(target) else {
                break;
            };
            target = around;
        }
        if target == edit.block() {
            return Fate::Keep;
        }
        moved.insert(inst, target);
        Fate::Move(target)
    })
}

fn is_scalar(edit: &Editor<'_>, inst: Inst) -> bool {
    let results = &edit.func.dfg.insts[inst].results;
    let mut types = results.iter().map(|&value| edit.func.dfg.ty(value));
    types.all(|ty| ty.is_scalar())
}

/// The block in which a value is defined by now.
fn home(edit: &Editor<'_>, moved: &FxHashMap<Inst, Block>, value: Value) -> Option<Block> {
    match edit.func.dfg.values[value].def {
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Result(inst, _) => match moved.get(&inst) {
            Some(&block) => Some(block),
            None => edit.func.order.block_of(inst),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::hoist_invariants;
    use crate::tile::testing::check_pass;

    #[test]
    fn invariants_leave_every_loop_they_can() {
        check_pass(
            hoist_invariants,
            "kernel @k(v0: i32, v1: ptr<i32>, v2: i1) warps(4) {
            block0:
                v3 = const {value = 1} : i32
                for v3, v0, v3 {
                block1(v4: i32):
                    for v3, v0, v3 {
                    block2(v5: i32):
                        v6 = imul v0, v0 : i32
                        v7 = iadd v6, v4 : i32
                        v8 = iadd v7, v5 : i32
                        store v1, v8
                        if v2 {
                        block3:
                            v9 = isub v0, v3 : i32
                            store v1, v9
                            yield
                        } {
                        block4:
                            yield
                        }
                        yield
                    }
                    yield
                }
                return
            }",
            "kernel @k(v0: i32, v1: ptr<i32>, v2: i1) warps(4) {
            block0:
                v3 = const {value = 1} : i32
                v6 = imul v0, v0 : i32
                for v3, v0, v3 {
                block1(v4: i32):
                    v7 = iadd v6, v4 : i32
                    for v3, v0, v3 {
                    block2(v5: i32):
                        v8 = iadd v7, v5 : i32
                        store v1, v8
                        if v2 {
                        block3:
                            v9 = isub v0, v3 : i32
                            store v1, v9
                            yield
                        } {
                        block4:
                            yield
                        }
                        yield
                    }
                    yield
                }
                return
            }",
        );
    }
}
