//! Parameters of blocks that nothing reads go, with the arguments for them.
//!
//! A loop hands all that it carries to the block behind it, also what nobody asks for there: places in rings, addresses. Each
//! such parameter costs a register or a move, and a move on the way out of a loop is one that may not run ahead of its branch.
//! A parameter is read if an instruction reads it, or if it is the argument for a parameter that is read. Time is linear.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Value};
use crate::ir::function::ThreadFunction;

/// Drops parameters that nothing reads; gives their number.
pub fn drop_parameters(func: &mut ThreadFunction) -> usize {
    let insts: Vec<_> = func.all_insts().map(|(_, inst)| inst).collect();
    let mut incoming: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    let mut stack: Vec<Value> = Vec::new();
    for &inst in &insts {
        let data = &func.dfg.insts[inst];
        stack.extend(&data.args);
        for call in &data.blocks {
            let params = &func.dfg.blocks[call.block].params;
            for (&param, &arg) in params.iter().zip(&call.args) {
                incoming.entry(param).or_default().push(arg);
            }
        }
    }
    let mut read: EntitySet<Value> = EntitySet::new();
    while let Some(value) = stack.pop() {
        if read.insert(value) {
            stack.extend(incoming.get(&value).into_iter().flatten());
        }
    }
    let mut count = 0;
    let mut kept: FxHashMap<Block, Vec<bool>> = FxHashMap::default();
    for &block in func.all_blocks().iter().filter(|&&b| b != func.entry) {
        let params = &func.dfg.blocks[block].params;
        let keeps: Vec<bool> = params.iter().map(|&p| read.contains(p)).collect();
        let dropped = keeps.iter().filter(|&&keep| !keep).count();
        if dropped > 0 {
            count += dropped;
            kept.insert(block, keeps);
        }
    }
    for (&block, keeps) in &kept {
        let params = &mut func.dfg.blocks[block].params;
        let mut keep = keeps.iter();
        params.retain(|_| keep.next() != Some(&false));
        for (number, &param) in (0..).zip(params.iter()) {
            func.dfg.values[param].def = ValueDef::Param(block, number);
        }
    }
    for inst in insts {
        for call in &mut func.dfg.insts[inst].blocks {
            if let Some(keeps) = kept.get(&call.block) {
                let mut keep = keeps.iter();
                call.args.retain(|_| keep.next() != Some(&false));
            }
        }
    }
    count
}
