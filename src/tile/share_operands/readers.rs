//! A load for each product that reads a block in shared memory.
//!
//! A block that several products use, or one product both ways round, is loaded for each of them, so that each load has the
//! layout that its product wants. Otherwise one of them would have to convert the whole block, by way of shared memory.

use cranelift_entity::EntitySet;

use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Gives each product that reads a block in shared memory a load of its own; gives their number.
pub fn split_readers(func: &mut TileFunction) -> usize {
    let mut count = 0;
    let mut taken: EntitySet<Value> = EntitySet::new();
    for block in func.all_blocks() {
        let insts = func.order.insts(block).to_vec();
        let mut list = Vec::with_capacity(insts.len());
        for &inst in &insts {
            if func.dfg.insts[inst].op == TileOp::Dot {
                for i in 0..2 {
                    let value = func.dfg.insts[inst].args[i];
                    let Some(chain) = chain(func, block, value) else {
                        continue;
                    };
                    // The first keeps what is there.
                    if !chain
                        .iter()
                        .any(|&i| taken.contains(func.dfg.insts[i].results[0]))
                    {
                        taken.extend(chain.iter().map(|&i| func.dfg.insts[i].results[0]));
                        continue;
                    }
                    let mut last = None;
                    for &old in chain.iter().rev() {
                        let mut data = func.dfg.insts[old].clone();
                        let ty = func.dfg.ty(data.results[0]);
                        data.results.clear();
                        if let Some(value) = last {
                            data.args[0] = value;
                        }
                        let copy = func.dfg.make_inst(data, &[ty]);
                        list.push(copy);
                        last = Some(func.dfg.insts[copy].results[0]);
                    }
                    if let Some(value) = last {
                        func.dfg.insts[inst].args[i] = value;
                    }
                    count += 1;
                }
            }
            list.push(inst);
        }
        func.order.replace(block, list);
    }
    count
}

/// The changes of shape through which a value comes from a load from shared memory in the same block, the load last.
pub(in crate::tile) fn chain(
    func: &TileFunction,
    block: Block,
    mut value: Value,
) -> Option<Vec<Inst>> {
    let mut found = Vec::new();
    loop {
        let def = func.dfg.def_inst(value)?;
        if func.order.block_of(def) != Some(block) {
            return None;
        }
        found.push(def);
        match func.dfg.insts[def].op {
            TileOp::SharedLoad => return Some(found),
            TileOp::Permute => value = func.dfg.insts[def].args[0],
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split_readers;
    use crate::analysis::axis::Axis;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::settings::diversity::Choices;
    use crate::tile::pipeline_loops::pipeline_loops;
    use crate::tile::resources::ResourcePlan;
    use crate::tile::share_operands::invariant::tests::products;
    use crate::tile::share_operands::tests::{count, small};
    use crate::tile::testing::{run, verified};

    #[test]
    fn each_product_has_a_load_of_its_own() {
        let before = products(32, 4, 3);
        let mut func = before.clone();
        let axis = Axis::compute(&func);
        let changes = pipeline_loops(
            &mut func,
            &axis,
            Target::SM_80,
            &ResourcePlan::ALL,
            Choices::none(),
        );
        assert_eq!(changes.loops, 1);
        assert_eq!(count(&func, TileOp::SharedLoad), 1);
        assert_eq!(split_readers(&mut func), 1);
        assert_eq!(count(&func, TileOp::SharedLoad), 2);
        assert_eq!(split_readers(&mut func), 0, "nothing is left to split");
        verified(&func);
        let buffers = [small(32 * 64), small(4096), vec![0; 256 * 32]];
        assert_eq!(run(&func, &buffers), run(&before, &buffers));
    }
}
