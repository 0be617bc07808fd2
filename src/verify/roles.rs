//! V24: the producer, and what it may do.

use super::{Errors, Rule};
use crate::ir::entities::{Block, Inst};
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::{Opcode, TypeRule};
use crate::ir::types::{Elem, ValueType};

/// Ops of a producer that are not pure.
const OPS: [&str; 12] = [
    "for",
    "while",
    "condition",
    "if",
    "yield",
    "gdc_wait",
    "load",
    "tensor_copy",
    "mbar_wait",
    "mbar_wait_for",
    "mbar_expect",
    "device_assert",
];

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let mut is_first = true;
    for block in func.all_blocks() {
        for &inst in func.order.insts(block) {
            if func.dfg.insts[inst].op.info().rule != TypeRule::Producer {
                continue;
            }
            let message = match () {
                () if !is_first => Some("a kernel has one producer"),
                () if block != func.entry => {
                    Some("a producer starts with the kernel, outside of regions")
                }
                () if func.producer().is_none() => {
                    Some("a producer needs warps of its own, those of part1")
                }
                () => None,
            };
            if let Some(message) = message {
                errors.report(Rule::Producer, inst, message);
            }
            is_first = false;
            let regions = func.regions(inst).collect();
            check_regions(func, regions, errors);
        }
    }
}

/// One thread executes these blocks and what is inside of them.
fn check_regions<L: Level>(func: &Function<L>, mut blocks: Vec<Block>, errors: &mut Errors) {
    while let Some(block) = blocks.pop() {
        for &inst in func.order.insts(block) {
            check_inst(func, inst, errors);
            blocks.extend(func.regions(inst));
        }
    }
}

fn check_inst<L: Level>(func: &Function<L>, inst: Inst, errors: &mut Errors) {
    let data = &func.dfg.insts[inst];
    let info = data.op.info();
    if !info.is_pure() && !OPS.contains(&info.name) {
        let message = format!(
            "a producer brings boxes and waits for barriers; `{}` it leaves to the program",
            info.name
        );
        return errors.report(Rule::Producer, inst, message);
    }
    let mut values = data.args.iter().chain(&data.results);
    let is_scalar = |ty: L::Type| ty.is_single() && ty.elem() != Elem::Token;
    if !values.all(|&value| is_scalar(func.dfg.ty(value))) {
        let message = format!("a producer has scalars only; `{}` is of more", info.name);
        errors.report(Rule::Producer, inst, message);
    }
}
