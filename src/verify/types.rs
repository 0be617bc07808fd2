//! V09, V10, V12 and V21: each instruction by itself.

use smallvec::SmallVec;

use super::{Errors, Rule, type_list};
use crate::ir::attrs::Attrs;
use crate::ir::entities::Inst;
use crate::ir::function::Function;
use crate::ir::level::{Level, Tile};
use crate::ir::ops::{Opcode, TypeRule, rules};
use crate::ir::types::{Elem, Extent, ValueType};

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    for block in func.all_blocks() {
        let is_region = L::KEYWORD == Tile::KEYWORD && block != func.entry;
        for &value in &func.dfg.blocks[block].params {
            if func.dfg.ty(value).elem() == Elem::Token && !is_region {
                errors.report(Rule::Token, value, "no value is a token");
            }
        }
        for &inst in func.order.insts(block) {
            check_inst(func, inst, errors);
        }
    }
}

/// A ring that an instruction accesses holds blocks of what is accessed, and has room for them.
fn check_buffer<L: Level>(func: &Function<L>, inst: Inst) -> Result<(), String> {
    let data = &func.dfg.insts[inst];
    let (block, elem) = match data.op.info().rule {
        TypeRule::AsyncCopy | TypeRule::SharedStore => data.args.first().map(|&v| func.dfg.ty(v)),
        TypeRule::SharedLoad | TypeRule::SharedView => {
            data.results.first().map(|&v| func.dfg.ty(v))
        }
        _ => return Ok(()),
    }
    .map_or((None, None), |ty| {
        let elem = ty.elem().pointee().or(ty.elem().scalar());
        (Some(ty.extent()), elem)
    });
    let Some((slot, buffer)) = data.slot().and_then(|&s| Some((s, func.buffers[s]?))) else {
        return Err("the slot holds no blocks".to_owned());
    };
    let fits = elem == Some(buffer.elem)
        && matches!(block, Some(Extent::Block(shape, _) | Extent::Shared(shape, _)) if shape == buffer.shape);
    if !fits {
        let (elem, shape) = (buffer.elem, buffer.shape);
        return Err(format!("{slot} holds blocks of type {elem}[{shape}]"));
    }
    let needed = u64::from(buffer.stages) * u64::from(buffer.stage_bytes());
    if buffer.stages == 0 || u64::from(func.slots[slot].bytes) < needed {
        return Err(format!("{slot} is too small for what it holds"));
    }
    Ok(())
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
    if let Err(message) = check_buffer(func, inst) {
        errors.report(Rule::Operands, inst, format!("{}: {message}", data.op));
    }
    for &value in &data.results {
        let is_made = L::KEYWORD == Tile::KEYWORD && dfg.ty(value).is_single();
        if dfg.ty(value).elem() == Elem::Token && !is_made {
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
