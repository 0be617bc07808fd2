//! Common subexpressions: an instruction that computes what another one has computed is replaced by it.
//!
//! One walk in program order keeps a table of pure instructions by op, operands, attributes and result type, the operands
//! of commutative ops sorted. An entry holds wherever its block is open: regions see what stands before them. Loads take
//! part while no store, barrier or border of a region lies between. Expected time is linear.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::Attr;
use crate::ir::dfg::ValueList;
use crate::ir::entities::{Block, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::TileType;

/// What makes two instructions compute the same.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: TileOp,
    args: ValueList,
    attrs: SmallVec<[Attr; 2]>,
    ty: TileType,
    /// For loads, the stretch of code without writes; else 0.
    epoch: u32,
}

/// Replaces repeated computations; gives their number.
pub fn merge_equal_values(func: &mut TileFunction) -> usize {
    let mut seen: FxHashMap<Key, (Value, Block)> = FxHashMap::default();
    let mut epoch = 0;
    let mut last_block = func.entry;
    edit::rewrite(func, |edit, inst| {
        if edit.block() != last_block {
            last_block = edit.block();
            epoch += 1;
        }
        let data = &edit.func.dfg.insts[inst];
        let load = data.only_reads();
        if data.writes() || data.orders_memory() || data.op.info().owns_regions() {
            epoch += 1;
        }
        let result = edit.func.dfg.single_result(inst);
        let Some(result) = result.filter(|_| load || data.is_pure()) else {
            return Fate::Keep;
        };
        let mut args = data.args.clone();
        if data.op.info().effects.commutes {
            args.sort_unstable();
        }
        let key = Key {
            op: data.op,
            args,
            attrs: data.attrs.clone(),
            ty: edit.func.dfg.ty(result),
            epoch: if load { epoch } else { 0 },
        };
        let here = edit.block();
        match seen.get(&key) {
            Some(&(value, block)) if is_open(edit, block, here) => Fate::Replace(value),
            _ => {
                seen.insert(key, (result, here));
                Fate::Keep
            }
        }
    })
}

/// Whether `block` is `here` or around it.
fn is_open(edit: &Editor<'_>, block: Block, here: Block) -> bool {
    let mut next = Some(here);
    while let Some(open) = next {
        if open == block {
            return true;
        }
        next = edit.around(open);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::merge_equal_values;
    use crate::tile::testing::{check_pass, fixed_point};

    #[test]
    fn regions_see_what_stands_before_them_but_not_each_other() {
        check_pass(
            merge_equal_values,
            "kernel @k(v0: i32, v1: i1, v2: ptr<i32>) warps(4) {
            block0:
                v3 = iadd v0, v0 : i32
                if v1 {
                block1:
                    v4 = iadd v0, v0 : i32
                    v5 = imul v0, v0 : i32
                    store v2, v4
                    store v2, v5
                    yield
                } {
                block2:
                    v6 = imul v0, v0 : i32
                    store v2, v6
                    yield
                }
                return
            }",
            "kernel @k(v0: i32, v1: i1, v2: ptr<i32>) warps(4) {
            block0:
                v3 = iadd v0, v0 : i32
                if v1 {
                block1:
                    v5 = imul v0, v0 : i32
                    store v2, v3
                    store v2, v5
                    yield
                } {
                block2:
                    v6 = imul v0, v0 : i32
                    store v2, v6
                    yield
                }
                return
            }",
        );
    }

    #[test]
    fn loads_are_merged_up_to_the_next_store() {
        check_pass(
            merge_equal_values,
            "kernel @k(v0: ptr<i32>, v1: ptr<i32>) warps(4) {
            block0:
                v2 = load v0 : i32
                v3 = load v0 : i32
                v4 = iadd v2, v3 : i32
                store v1, v4
                v5 = load v0 : i32
                store v1, v5
                return
            }",
            "kernel @k(v0: ptr<i32>, v1: ptr<i32>) warps(4) {
            block0:
                v2 = load v0 : i32
                v4 = iadd v2, v2 : i32
                store v1, v4
                v5 = load v0 : i32
                store v1, v5
                return
            }",
        );
    }

    #[test]
    fn operands_of_differences_are_not_exchanged() {
        fixed_point(
            merge_equal_values,
            "kernel @k(v0: i32, v1: i32, v2: ptr<i32>) warps(4) {
            block0:
                v3 = isub v0, v1 : i32
                v4 = isub v1, v0 : i32
                store v2, v3
                store v2, v4
                return
            }",
        );
    }
}
