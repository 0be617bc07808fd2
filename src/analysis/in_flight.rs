//! Which values products in flight add to.

use cranelift_entity::EntitySet;

use crate::ir::entities::Value;
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::{Opcode, TypeRule};

/// Values that products in flight add to: sums of started ones, and what loops carry of them.
pub fn in_flight<L: Level>(func: &Function<L>) -> EntitySet<Value> {
    let mut found = EntitySet::new();
    let mut changed = true;
    while changed {
        changed = false;
        for (_, inst) in func.all_insts() {
            let data = &func.dfg.insts[inst];
            match data.op.info().rule {
                TypeRule::DotStart | TypeRule::DotDone => {
                    let sum = data.results.first();
                    changed |= sum.is_some_and(|&sum| found.insert(sum));
                }
                TypeRule::For => {
                    let Some(body) = data.blocks.first().map(|call| call.block) else {
                        continue;
                    };
                    let Some(last) = func.order.last(body) else {
                        continue;
                    };
                    let params = func.dfg.blocks[body].params.iter().skip(1);
                    let yielded = func.dfg.insts[last].args.iter();
                    for ((&value, &param), &result) in yielded.zip(params).zip(&data.results) {
                        if found.contains(value) {
                            changed |= found.insert(param);
                            changed |= found.insert(result);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found
}
