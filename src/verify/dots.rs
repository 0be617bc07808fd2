//! V22: sums of products in flight, and blocks in shared memory.

use super::{Errors, Rule};
use crate::analysis::in_flight::in_flight;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::{Opcode, TypeRule};
use crate::ir::types::{Extent, ValueType};

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let sums = in_flight(func);
    let is_sum = |value: Value| sums.contains(value);
    for block in func.all_blocks() {
        for &value in &func.dfg.blocks[block].params {
            if is_shared(func, value) {
                errors.report(
                    Rule::Products,
                    value,
                    "no block in shared memory is passed on",
                );
            }
        }
        for &inst in func.order.insts(block) {
            check_sums(func, inst, &is_sum, errors);
            check_shared(func, inst, errors);
        }
    }
}

fn is_shared<L: Level>(func: &Function<L>, value: Value) -> bool {
    matches!(func.dfg.ty(value).extent(), Extent::Shared(..))
}

/// What is added to in flight is touched by nobody but who knows.
fn check_sums<L: Level>(
    func: &Function<L>,
    inst: Inst,
    is_sum: &impl Fn(Value) -> bool,
    errors: &mut Errors,
) {
    let data = &func.dfg.insts[inst];
    let rule = data.op.info().rule;
    for (index, &value) in data.args.iter().enumerate() {
        let knows = match rule {
            TypeRule::DotStart => index == 2,
            TypeRule::DotSum => index == 0,
            // Bounds and step come first, and the parameters of the body begin with the counter.
            TypeRule::For => {
                let param = index.checked_sub(2).and_then(|at| {
                    let body = data.blocks.first()?.block;
                    func.dfg.blocks[body].params.get(at)
                });
                param.is_some_and(|&param| is_sum(param))
            }
            _ => data.op.info().name == "yield",
        };
        if is_sum(value) && !knows {
            let message = format!(
                "a product in flight adds to {value}, which `{}` cannot use; `dot_sum` waits for it",
                data.op
            );
            errors.report(Rule::Products, inst, message);
        }
    }
    // What regions give: only `for` passes on what is in flight, and then from the first iteration on.
    for call in &data.blocks {
        let Some(last) = func.order.last(call.block) else {
            continue;
        };
        if rule == TypeRule::For {
            check_carried(func, (inst, call.block, last), is_sum, errors);
        } else if func.dfg.insts[last].op.info().name == "yield" {
            check_given(func, inst, last, is_sum, errors);
        }
    }
}

/// A loop carries a sum in flight from the beginning or never.
fn check_carried<L: Level>(
    func: &Function<L>,
    (inst, body, last): (Inst, Block, Inst),
    is_sum: &impl Fn(Value) -> bool,
    errors: &mut Errors,
) {
    let inits = func.dfg.insts[inst].args.iter().skip(3);
    let params = func.dfg.blocks[body].params.iter().skip(1);
    let yielded = &func.dfg.insts[last].args;
    for ((&init, &param), &value) in inits.zip(params).zip(yielded) {
        if is_sum(param) && !is_sum(init) {
            let message = format!(
                "a product in flight adds to {value}, which comes after {init}: `dot_done` makes that one"
            );
            errors.report(Rule::Products, inst, message);
        }
    }
}

/// No other region gives one.
fn check_given<L: Level>(
    func: &Function<L>,
    inst: Inst,
    last: Inst,
    is_sum: &impl Fn(Value) -> bool,
    errors: &mut Errors,
) {
    let given = func.dfg.insts[last].args.iter();
    for &value in given.filter(|&&value| is_sum(value)) {
        let message = format!(
            "a product in flight adds to {value}, which `{}` cannot give; `dot_sum` waits for it",
            func.dfg.insts[inst].op
        );
        errors.report(Rule::Products, last, message);
    }
}

/// Blocks in shared memory are made, turned and multiplied; whoever wants their elements loads them.
fn check_shared<L: Level>(func: &Function<L>, inst: Inst, errors: &mut Errors) {
    let data = &func.dfg.insts[inst];
    let rule = data.op.info().rule;
    let makes = matches!(rule, TypeRule::SharedView | TypeRule::Permute);
    // Of those that pass one on the use is reported.
    let makes = makes || data.args.iter().any(|&value| is_shared(func, value));
    for &value in &data.results {
        if is_shared(func, value) && !makes {
            let message = format!("`{}` makes no block in shared memory", data.op);
            errors.report(Rule::Products, inst, message);
        }
    }
    for (index, &value) in data.args.iter().enumerate() {
        let takes = match rule {
            TypeRule::Permute => true,
            TypeRule::DotStart => index < 2,
            _ => false,
        };
        if is_shared(func, value) && !takes {
            let message = format!(
                "{value} is in shared memory, where `{}` cannot use it; `shared_load` gives its elements",
                data.op
            );
            errors.report(Rule::Products, inst, message);
        }
    }
}
