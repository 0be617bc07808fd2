//! Stores of what products of warpgroups make.

use cranelift_entity::EntitySet;

use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::settings::Target;
use crate::tile::start_dots::is_for_warpgroup;

/// The stores of blocks that are computed from products of warpgroups.
pub(super) fn stores(func: &TileFunction, target: Target) -> Vec<Inst> {
    let mut made: EntitySet<Value> = EntitySet::new();
    // Values are only added, and each round goes through the program once.
    let mut changed = true;
    while changed {
        changed = false;
        for (_, inst) in func.all_insts() {
            for value in from_products(func, inst, target, &made) {
                changed |= made.insert(value);
            }
        }
    }
    let insts = func.all_insts().map(|(_, inst)| inst);
    let is_one = |&inst: &Inst| {
        let data = &func.dfg.insts[inst];
        data.op == TileOp::Store
            && made.contains(data.args[1])
            && !func.dfg.ty(data.args[1]).is_scalar()
    };
    insts.filter(is_one).collect()
}

/// What an instruction makes of products, of which `made` is known so far.
fn from_products(
    func: &TileFunction,
    inst: Inst,
    target: Target,
    made: &EntitySet<Value>,
) -> Vec<Value> {
    let data = &func.dfg.insts[inst];
    if is_for_warpgroup(func, inst, target) {
        return data.results.to_vec();
    }
    let yielded = |block: Block, i: usize| {
        let last = func.order.last(block);
        let value = last.and_then(|last| func.dfg.insts[last].args.get(i));
        value.is_some_and(|&value| made.contains(value))
    };
    let regions = || data.blocks.iter().map(|call| call.block);
    let numbered = data.results.iter().enumerate();
    match data.op {
        TileOp::For => {
            let Some(body) = regions().next() else {
                return Vec::new();
            };
            let params = &func.dfg.blocks[body].params;
            let carried = |&(i, _): &(usize, &Value)| {
                let first = data.args.get(3 + i);
                yielded(body, i) || first.is_some_and(|&first| made.contains(first))
            };
            let both = |(i, &result): (usize, &Value)| [Some(result), params.get(1 + i).copied()];
            numbered.filter(carried).flat_map(both).flatten().collect()
        }
        TileOp::If => {
            let chosen = |&(i, _): &(usize, &Value)| regions().any(|block| yielded(block, i));
            numbered.filter(chosen).map(|(_, &result)| result).collect()
        }
        _ if data.is_pure() && data.args.iter().any(|&arg| made.contains(arg)) => {
            data.results.to_vec()
        }
        _ => Vec::new(),
    }
}
