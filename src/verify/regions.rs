//! V06 to V08 and V20: what goes into blocks and what comes out of them.

use cranelift_entity::SecondaryMap;

use super::{Errors, Rule, type_list};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::{Opcode, ThreadOp, TileOp, TypeRule, tile_functions};
use crate::ir::types::{Elem, ValueType};

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let mut in_body: SecondaryMap<Block, bool> = SecondaryMap::new();
    for &block in &func.order.blocks {
        in_body[block] = true;
    }
    for block in func.all_blocks() {
        for &inst in func.order.insts(block) {
            let info = func.dfg.insts[inst].op.info();
            if info.owns_regions() {
                check_regions(func, inst, errors);
            } else if info.ends_block() {
                check_branch(func, inst, &in_body, errors);
            }
        }
    }
    for &block in &func.order.blocks {
        if let Some(last) = func.order.last(block)
            && is_region_end(func, last)
        {
            let message = "only a region ends so; the body of a kernel ends in `return`";
            errors.report(Rule::RegionEnd, last, message);
        }
    }
}

fn is_region_end<L: Level>(func: &Function<L>, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].op.info().name, "yield" | "condition")
}

fn types_of<L: Level>(func: &Function<L>, values: &[Value]) -> Vec<L::Type> {
    values.iter().map(|&v| func.dfg.ty(v)).collect()
}

fn check_regions<L: Level>(func: &Function<L>, inst: Inst, errors: &mut Errors) {
    let data = &func.dfg.insts[inst];
    let args = types_of(func, &data.args);
    let results = types_of(func, &data.results);
    let mut region = |index: usize, end: &str, params: &[L::Type], ends_with: &[L::Type]| {
        let block = data.blocks[index].block;
        check_region(func, block, end, params, ends_with, errors);
    };
    match data.op.info().rule {
        // Fewer than three operands are V09's business.
        TypeRule::For if args.len() >= 3 => {
            let params = [&args[..1], &args[3..]].concat();
            region(0, "yield", &params, &args[3..]);
        }
        TypeRule::While => {
            region(0, "condition", &args, &results);
            region(1, "yield", &results, &args);
        }
        TypeRule::Producer => region(0, "yield", &[], &[]),
        TypeRule::If => {
            region(0, "yield", &[], &results);
            region(1, "yield", &[], &results);
        }
        TypeRule::Reduce | TypeRule::Scan => {
            let single = |ty: &L::Type| L::Type::from_elem(ty.elem());
            let elems: Vec<L::Type> = args.iter().map(single).collect();
            region(0, "yield", &[&elems[..], &elems].concat(), &elems);
            check_reduce(func, data.blocks[0].block, errors);
        }
        _ => {}
    }
}

/// One region: its parameters, the op that ends it, and what that op hands on.
fn check_region<L: Level>(
    func: &Function<L>,
    block: Block,
    end: &str,
    params: &[L::Type],
    ends_with: &[L::Type],
    errors: &mut Errors,
) {
    let found = types_of(func, &func.dfg.blocks[block].params);
    if found != params {
        let (expected, found) = (type_list(params), type_list(&found));
        let message = format!("the region's parameters must be {expected}, found {found}");
        errors.report(Rule::RegionParams, block, message);
    }
    let Some(last) = func.order.last(block) else {
        return;
    };
    let data = &func.dfg.insts[last];
    let name = data.op.info().name;
    if name != end {
        let message = format!("this region ends in `{end}`, found `{name}`");
        return errors.report(Rule::RegionEnd, last, message);
    }
    // The condition itself is V09's business.
    let skip = usize::from(end == "condition").min(data.args.len());
    if end == "condition" {
        let cond = data.args.first().map(|&v| func.dfg.ty(v));
        if cond.is_some_and(|ty| ty != L::Type::from_elem(Elem::I1)) {
            let message = "the condition must be a scalar of type i1";
            errors.report(Rule::RegionEnd, last, message);
        }
    }
    let found = types_of(func, &data.args[skip..]);
    if found != ends_with {
        let (expected, found) = (type_list(ends_with), type_list(&found));
        let message = format!("`{end}` must hand on {expected}, found {found}");
        errors.report(Rule::RegionEnd, last, message);
    }
}

/// Whether threads have the op, or what it is lowered to before they get it.
fn is_elementwise(name: &str) -> bool {
    let function = |op| matches!(op, tile_functions!());
    ThreadOp::from_name(name).is_some() || TileOp::from_name(name).is_some_and(function)
}

/// Whether an instruction computes single elements from single elements and does nothing else, so that the region of a reduction or
/// scan may hold it.
#[cfg(feature = "triton")]
pub(crate) fn combines<L: Level>(func: &Function<L>, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let info = data.op.info();
    let mut values = data.args.iter().chain(&data.results);
    data.is_pure() && is_elementwise(info.name) && values.all(|&v| func.dfg.ty(v).is_single())
}

/// V20.
fn check_reduce<L: Level>(func: &Function<L>, block: Block, errors: &mut Errors) {
    let Some((_, insts)) = func.order.insts(block).split_last() else {
        return;
    };
    for &inst in insts {
        let data = &func.dfg.insts[inst];
        let info = data.op.info();
        if !data.is_pure() || !is_elementwise(info.name) {
            let message = format!(
                "a reduction or scan combines single elements; `{}` cannot",
                info.name
            );
            errors.report(Rule::Reduce, inst, message);
        }
        let values = data.args.iter().chain(&data.results);
        if values.into_iter().any(|&v| !func.dfg.ty(v).is_single()) {
            let message = "a reduction or scan combines single elements, not blocks";
            errors.report(Rule::Reduce, inst, message);
        }
    }
}

/// V08.
fn check_branch<L: Level>(
    func: &Function<L>,
    inst: Inst,
    in_body: &SecondaryMap<Block, bool>,
    errors: &mut Errors,
) {
    let data = &func.dfg.insts[inst];
    if data.op.info().name == "brif" {
        let cond = data.args.first().map(|&v| func.dfg.ty(v));
        if cond.is_some_and(|ty| ty != L::Type::from_elem(Elem::I1)) {
            errors.report(Rule::Branch, inst, "the condition must be a single i1");
        }
    }
    for call in &data.blocks {
        let block = call.block;
        if block == func.entry {
            errors.report(Rule::Branch, inst, "nothing goes back to the entry block");
            continue;
        }
        if !in_body[block] {
            let message = format!("{block} is not a block of the body");
            errors.report(Rule::Branch, inst, message);
            continue;
        }
        let found = types_of(func, &call.args);
        let expected = types_of(func, &func.dfg.blocks[block].params);
        if found != expected {
            let (expected, found) = (type_list(&expected), type_list(&found));
            let message = format!("{block} takes {expected}, found {found}");
            errors.report(Rule::Branch, inst, message);
        }
    }
}
