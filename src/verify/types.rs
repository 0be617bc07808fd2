//! V09, V10, V12 and V21: each instruction by itself.

use smallvec::SmallVec;

use super::{Errors, Rule, type_list};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Slot};
use crate::ir::function::{Function, MBAR_BYTES};
use crate::ir::level::{Level, Tile};
use crate::ir::ops::{Opcode, TypeRule, rules};
use crate::ir::types::{Elem, Extent, ValueType};
use crate::linear_layout::shape::Shape;

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    for block in func.all_blocks() {
        let is_region = L::KEYWORD == Tile::KEYWORD && block != func.entry;
        for &value in &func.dfg.blocks[block].params {
            if func.dfg.ty(value).elem() == Elem::Token && !is_region {
                errors.report(
                    Rule::Token,
                    value,
                    "a token is a parameter of regions alone",
                );
            }
            if matches!(func.dfg.ty(value).elem(), Elem::Map(_)) {
                errors.report(
                    Rule::Token,
                    value,
                    "a tensor map is no parameter of a block",
                );
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
        TypeRule::TensorCopy => return check_box_copy(func, inst),
        TypeRule::TensorLoad | TypeRule::TensorStore => return check_box_block(func, inst),
        TypeRule::MbarExpect
        | TypeRule::MbarWait
        | TypeRule::MbarWaitFor
        | TypeRule::MbarArrive => {
            return check_barriers(func, data.slot().copied());
        }
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

/// The box of the map that an instruction reads, which stands among the kernel's first instructions.
fn box_of<L: Level>(func: &Function<L>, inst: Inst, coords: usize) -> Result<Vec<u32>, String> {
    let data = &func.dfg.insts[inst];
    let map = data.args.first().and_then(|&map| func.dfg.def_inst(map));
    let map = map.map(|map| &func.dfg.insts[map]);
    let made = map.filter(|map| map.op.info().rule == TypeRule::TensorMap);
    let Some(extents) = made.and_then(|map| map.values().cloned()) else {
        return Err("the map is none that `tensor_map` makes".to_owned());
    };
    match data.args.len() - coords == extents.len() {
        true => Ok(extents.to_vec()),
        false => Err(format!("the map has {} dimensions", extents.len())),
    }
}

/// A block has the elements of the box that it is read from or written to.
fn check_box_block<L: Level>(func: &Function<L>, inst: Inst) -> Result<(), String> {
    let data = &func.dfg.insts[inst];
    let (block, coords) = match data.results.first() {
        Some(read) => (Some(read), 1),
        None => (data.args.get(1), 2),
    };
    let extents = box_of(func, inst, coords)?;
    match block.map(|&v| func.dfg.ty(v).extent()) {
        Some(Extent::Block(shape, _)) if is_box(&extents, shape) => Ok(()),
        _ => Err(format!("the box has extents {extents:?}")),
    }
}

/// A ring holds boxes, and there are barriers for its entries.
fn check_box_copy<L: Level>(func: &Function<L>, inst: Inst) -> Result<(), String> {
    let data = &func.dfg.insts[inst];
    let extents = box_of(func, inst, 3)?;
    let Some((slot, buffer)) = data.slot().and_then(|&s| Some((s, func.buffers[s]?))) else {
        return Err("the slot holds no blocks".to_owned());
    };
    let elem = data.args.first().map(|&map| func.dfg.ty(map).elem());
    if elem != Some(Elem::Map(buffer.elem)) || !is_box(&extents, buffer.shape) {
        let (elem, shape) = (buffer.elem, buffer.shape);
        return Err(format!("{slot} holds blocks of type {elem}[{shape}]"));
    }
    let needed = u64::from(buffer.stages) * u64::from(buffer.stage_bytes());
    if buffer.stages == 0 || u64::from(func.slots[slot].bytes) < needed {
        return Err(format!("{slot} is too small for what it holds"));
    }
    check_barriers(func, data.bars().copied())
}

/// A slot holds barriers.
fn check_barriers<L: Level>(func: &Function<L>, slot: Option<Slot>) -> Result<(), String> {
    let is_for_barriers = |slot: Slot| {
        let data = func.slots[slot];
        func.buffers[slot].is_none()
            && data.align.is_multiple_of(MBAR_BYTES)
            && data.bytes.is_multiple_of(MBAR_BYTES)
    };
    match slot {
        Some(slot) if !is_for_barriers(slot) => {
            Err(format!("{slot} holds no barriers, of 8 bytes each"))
        }
        _ => Ok(()),
    }
}

/// Whether a block has the extents of a box, but for dimensions of extent 1.
fn is_box(extents: &[u32], shape: Shape) -> bool {
    let wide = |extents: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
        extents.filter(|&extent| extent != 1).collect()
    };
    wide(&mut extents.iter().map(|&e| u64::from(e))) == wide(&mut shape.extents())
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
            errors.report(
                Rule::Token,
                value,
                "a token is a parameter of regions alone",
            );
        }
    }
    let (id, threads) = (data.id().copied(), data.threads().copied());
    if id.is_some_and(|id| id >= 16) {
        errors.report(Rule::Barrier, inst, "the id of a barrier must be below 16");
    }
    let limit = func.cta_threads();
    if threads.is_some_and(|t| t == 0 || t % 32 != 0 || t > limit) {
        let message = format!("a barrier waits for a multiple of 32 threads, at most {limit}");
        errors.report(Rule::Barrier, inst, message);
    }
}
