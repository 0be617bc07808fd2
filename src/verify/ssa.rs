//! V11: definitions come before uses.
//!
//! From the place of the use one climbs out of regions until the block of the definition is reached,
//! where positions decide, or the body, where dominators do.

use smallvec::SmallVec;

use super::structure::Tree;
use super::{Errors, Rule};
use crate::analysis::cfg::Cfg;
use crate::analysis::domtree::DomTree;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::level::Level;

pub(super) fn check<L: Level>(func: &Function<L>, tree: &Tree, errors: &mut Errors) {
    let domtree = DomTree::with_cfg(&Cfg::with_function(func));
    for &block in &tree.blocks {
        // What cannot be reached has no dominators.
        let in_body = tree.owner[block].is_none();
        if in_body && !domtree.is_reachable(block) {
            continue;
        }
        for &inst in func.order.insts(block) {
            let uses: SmallVec<[Value; 8]> = func.dfg.uses(inst).collect();
            for (i, &value) in uses.iter().enumerate() {
                // Used twice, it is still one mistake.
                if !uses[..i].contains(&value)
                    && !is_defined_before(func, tree, &domtree, value, inst)
                {
                    let message = format!("{value} is not defined on the way here");
                    errors.report(Rule::Dominance, inst, message);
                }
            }
        }
    }
}

fn is_defined_before<L: Level>(
    func: &Function<L>,
    tree: &Tree,
    domtree: &DomTree,
    value: Value,
    at: Inst,
) -> bool {
    let (home, def) = match func.dfg.values[value].def {
        ValueDef::Param(block, _) => (Some(block), None),
        ValueDef::Result(inst, _) => (func.order.block_of(inst), Some(inst)),
    };
    let Some(home) = home else {
        return false;
    };
    // A parameter of a block, or a result of an instruction, that is itself in use.
    let listed = match func.dfg.values[value].def {
        ValueDef::Param(block, i) => func.dfg.blocks[block].params.get(usize::from(i)),
        ValueDef::Result(inst, i) => func.dfg.insts[inst].results.get(usize::from(i)),
    };
    if listed != Some(&value) {
        return false;
    }
    let mut inst = at;
    // Nesting is bounded, and structure is sound, so this ends in the body.
    while let Some(block) = func.order.block_of(inst) {
        if block == home {
            return def.is_none_or(|def| tree.position[def] < tree.position[inst]);
        }
        match tree.owner[block].expand() {
            Some(owner) => inst = owner,
            None => return tree.owner[home].is_none() && domtree.dominates(home, block),
        }
    }
    false
}
