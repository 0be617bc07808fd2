//! What depends on some values: through operands, and through what loops and choices hand on.

use cranelift_entity::EntitySet;

use super::program::ProgramOrder;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// The results of the instructions that `begins` names and all values that are made of them, by data or because they decide how often a
/// loop runs or which way is taken. What went through memory is no such value.
pub fn dependents(
    func: &TileFunction,
    order: &ProgramOrder,
    begins: impl Fn(Inst) -> bool,
) -> EntitySet<Value> {
    let mut found: EntitySet<Value> = EntitySet::new();
    // What a loop carries may turn out later to depend on them.
    let mut changed = true;
    while changed {
        changed = false;
        for (block, inst) in func.all_insts() {
            let data = &func.dfg.insts[inst];
            if begins(inst) {
                for &value in &data.results {
                    changed |= found.insert(value);
                }
            }
            for (i, value) in data.args.iter().enumerate() {
                if !found.contains(*value) {
                    continue;
                }
                let to = match (data.op, order.owner(block)) {
                    (TileOp::For, _) if i >= 3 => carried(func, inst, i - 3),
                    (TileOp::For | TileOp::While, _) => whole(func, inst),
                    (TileOp::Condition, Some(owner)) => whole(func, owner),
                    (TileOp::Yield, Some(owner)) if func.dfg.insts[owner].op == TileOp::While => {
                        whole(func, owner)
                    }
                    (TileOp::Yield, Some(owner)) => carried(func, owner, i),
                    _ => data.results.to_vec(),
                };
                for value in to {
                    changed |= found.insert(value);
                }
            }
        }
    }
    found
}

/// What a loop or choice hands on as number `i`: a parameter of a loop's body, and a result.
fn carried(func: &TileFunction, inst: Inst, i: usize) -> Vec<Value> {
    let data = &func.dfg.insts[inst];
    let param = func
        .regions(inst)
        .next()
        .filter(|_| data.op == TileOp::For)
        .and_then(|body| func.dfg.blocks[body].params.get(i + 1));
    param
        .into_iter()
        .chain(data.results.get(i))
        .copied()
        .collect()
}

/// All that a loop hands on.
fn whole(func: &TileFunction, inst: Inst) -> Vec<Value> {
    let params = func
        .regions(inst)
        .flat_map(|body| func.dfg.blocks[body].params.iter());
    params
        .chain(&func.dfg.insts[inst].results)
        .copied()
        .collect()
}
