//! V09, V10, V12 and V21: each instruction by itself.

use smallvec::SmallVec;

use super::{Errors, Rule, type_list};
use crate::ir::attrs::Attrs;
use crate::ir::entities::Inst;
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::rules;
use crate::ir::types::{Elem, ValueType};

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    for block in func.all_blocks() {
        for &value in &func.dfg.blocks[block].params {
            if func.dfg.ty(value).elem() == Elem::Token {
                errors.report(Rule::Token, value, "no value is a token");
            }
        }
        for &inst in func.order.insts(block) {
            check_inst(func, inst, errors);
        }
    }
}

fn check_inst<L: Level>(func: &Function<L>, inst: Inst, errors: &mut Errors) {
    let dfg = &func.dfg;
    let data = &dfg.insts[inst];
    let args: SmallVec<[L::Type; 4]> = data.args.iter().map(|&v| dfg.ty(v)).collect();
    let given: SmallVec<[L::Type; 2]> = data.results.iter().map(|&v| dfg.ty(v)).collect();
    let operands = rules::Operands {
        args: &args,
        attrs: &data.attrs,
        given: &given,
    };
    match L::result_types(data.op, &operands) {
        Ok(types) if types[..] != given[..] => {
            let (expected, found) = (type_list(&types), type_list(&given));
            let message = format!("{} gives {expected}, found {found}", data.op);
            errors.report(Rule::Results, inst, message);
        }
        Ok(_) => {}
        Err(problem @ rules::TypeError::Result { .. }) => {
            errors.report(Rule::Results, inst, format!("{}: {problem}", data.op));
        }
        Err(problem) => errors.report(Rule::Operands, inst, format!("{}: {problem}", data.op)),
    }
    for &value in &data.results {
        if dfg.ty(value).elem() == Elem::Token {
            errors.report(Rule::Token, value, "no value is a token");
        }
    }
    let (id, threads) = (data.id().copied(), data.threads().copied());
    if id.is_some_and(|id| id >= 16) {
        errors.report(Rule::Barrier, inst, "the id of a barrier must be below 16");
    }
    let limit = func
        .partitions
        .values()
        .map(|p| p.num_warps)
        .max()
        .unwrap_or(1)
        .saturating_mul(32);
    if threads.is_some_and(|t| t == 0 || t % 32 != 0 || t > limit) {
        let message = format!("a barrier waits for a multiple of 32 threads, at most {limit}");
        errors.report(Rule::Barrier, inst, message);
    }
}
