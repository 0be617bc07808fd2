//! V13 to V16: the function as a whole.

use rustc_hash::FxHashSet;

use super::{Errors, Rule};
use crate::ir::entities::AnyEntity;
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::Opcode;
use crate::ir::types::{AddressSpace, Elem, ValueType};
use crate::settings::{MOST_WARPS, Target};
use crate::text::quote::quoted;

/// Most bytes of a slot: two of the largest blocks. No GPU has a fiftieth of that.
const MAX_BYTES: u32 = 1 << 24;
/// Most bytes of all slots that hold blocks, so that no place in shared memory is beyond 4 GiB.
const MAX_BYTES_OF_BLOCKS: u64 = 1 << 30;
/// Largest alignment of a slot in bytes; nothing in shared memory asks for more.
const MAX_ALIGN: u32 = 1024;

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    check_params(func, errors);
    check_warps(func, errors);
    if !is_ptx_identifier(&func.name) {
        let message = format!(
            "\"{}\" is not an identifier of PTX or is taken there; rename the function",
            quoted(&func.name)
        );
        errors.report(Rule::Name, AnyEntity::Function, message);
    }
    for (slot, data) in &func.slots {
        if data.bytes == 0 {
            errors.report(Rule::Slot, slot, "a slot has a size");
        }
        if data.bytes > MAX_BYTES {
            let message = format!("a slot takes {MAX_BYTES} bytes at most");
            errors.report(Rule::Slot, slot, message);
        }
        if !data.align.is_power_of_two() || data.align > MAX_ALIGN {
            let message = format!("the alignment must be a power of two up to {MAX_ALIGN}");
            errors.report(Rule::Slot, slot, message);
        } else if data.offset.is_some_and(|offset| offset % data.align != 0) {
            errors.report(
                Rule::Slot,
                slot,
                "the offset must be a multiple of the alignment",
            );
        }
        if data.offset.unwrap_or(0).checked_add(data.bytes).is_none() {
            errors.report(Rule::Slot, slot, "the slot ends beyond 4 GiB");
        }
    }
    let held = func
        .slots
        .iter()
        .filter(|(slot, _)| func.buffers[*slot].is_some());
    let together: u64 = held.map(|(_, data)| u64::from(data.bytes)).sum();
    if together > MAX_BYTES_OF_BLOCKS {
        let message = format!("blocks in shared memory take {MAX_BYTES_OF_BLOCKS} bytes at most");
        errors.report(Rule::Slot, AnyEntity::Function, message);
    }
    check_maps(func, errors);
}

/// Whether what executes the body is named as what it is.
pub(super) fn check_programs<L: Level>(func: &Function<L>, errors: &mut Errors) {
    for (_, inst) in func.all_insts() {
        let message = match (func.dfg.insts[inst].op.info().name, func.persistent) {
            ("program_id", true) => {
                "CTAs execute a persistent kernel, not programs: `cta_id` says which"
            }
            ("cta_id" | "num_ctas", false) => "only persistent kernels tell CTAs from programs",
            _ => continue,
        };
        errors.report(Rule::Persistent, inst, message);
    }
}

fn check_maps<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let params = func
        .dfg
        .blocks
        .get(func.entry)
        .map_or(&[][..], |data| &data.params);
    let elem = |index: u32| {
        let value = params.get(index as usize)?;
        Some(func.dfg.values.get(*value)?.ty.elem())
    };
    for (i, recipe) in (0..).zip(&func.maps) {
        let mut report = |message: String| errors.report(Rule::Maps, AnyEntity::Map(i), message);
        if let Err(message) = recipe.check() {
            report(message);
        }
        let (base, pointer) = (recipe.base, Elem::global(recipe.elem));
        if elem(base) != Some(pointer) {
            report(format!("parameter {base} is no {pointer}"));
        }
        for number in recipe.numbers() {
            if let Some(axis) = number.bad_axis() {
                report(format!("a grid has no axis {axis}"));
            }
            number.params(&mut |index| {
                if !elem(index).is_some_and(Elem::is_int) {
                    report(format!("parameter {index} is no integer"));
                }
            });
        }
    }
}

fn check_params<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let Some(entry) = func.dfg.blocks.get(func.entry) else {
        return;
    };
    let (params, names, hints) = (
        entry.params.len(),
        func.param_names.len(),
        func.param_hints.len(),
    );
    if names != params || hints != params {
        let message = format!("{params} parameters have {names} names and {hints} sets of hints");
        errors.report(Rule::Params, AnyEntity::Function, message);
    }
    let mut seen = FxHashSet::default();
    for (&value, name) in entry.params.iter().zip(&func.param_names) {
        if !seen.insert(name) {
            let name = quoted(name);
            let message = format!("a parameter before it is named \"{name}\", too; rename one");
            errors.report(Rule::Params, value, message);
        }
    }
    for (&value, hints) in entry.params.iter().zip(&func.param_hints) {
        let Some(ty) = func.dfg.values.get(value).map(|data| data.ty) else {
            continue;
        };
        if !ty.is_single() {
            errors.report(
                Rule::Params,
                value,
                format!("a parameter is a scalar, not {ty}"),
            );
        }
        if matches!(ty.elem(), Elem::Ptr(_, AddressSpace::Shared)) {
            errors.report(
                Rule::Params,
                value,
                "no caller has a pointer to shared memory",
            );
        }
        let divisible = hints.promised();
        if divisible != 0 && !divisible.is_power_of_two() {
            let message = format!("`divisible` must be a power of two, found {divisible}");
            errors.report(Rule::Params, value, message);
        }
        if divisible > 1 && !(ty.elem().is_int() || ty.elem().is_ptr()) {
            let message = format!("only integers and pointers are divisible, not {ty}");
            errors.report(Rule::Params, value, message);
        }
    }
}

fn check_warps<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let Some(whole) = func.partitions.values().next() else {
        let message = "there is no partition, so no warps";
        return errors.report(Rule::Warps, AnyEntity::Function, message);
    };
    if !whole.num_warps.is_power_of_two() || whole.num_warps > MOST_WARPS {
        let message = format!(
            "the number of warps must be 1, 2, 4, 8, 16 or 32, not {}",
            whole.num_warps
        );
        errors.report(Rule::Warps, AnyEntity::Function, message);
    }
    if whole.first_warp != 0 {
        errors.report(
            Rule::Warps,
            AnyEntity::Function,
            "the first partition starts at warp 0",
        );
    }
    // What belongs to no program is nobody's own, so that groups have to find their programs themselves.
    if !(whole.groups == 1 || whole.groups == 2 && func.persistent) {
        let message =
            "one group of warps executes the program, or two take turns if it is persistent";
        errors.report(Rule::Warps, AnyEntity::Function, message);
    }
    for (part, data) in func.partitions.iter().skip(1) {
        let end = data.first_warp.checked_add(data.num_warps);
        let is_behind = data.first_warp == whole.all_warps() && part.as_u32() == 1;
        if !is_behind || !data.num_warps.is_power_of_two() || end.is_none_or(|end| end > MOST_WARPS)
        {
            let message = "there are a power of two of warps behind the program's, and 32 at most";
            errors.report(Rule::Warps, part, message);
        }
    }
    check_registers(func, errors);
}

/// A group that asks for more registers than others leave would wait for ever.
fn check_registers<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let parts = func.partitions.values();
    let threads: u64 = parts
        .clone()
        .map(|part| 32 * u64::from(part.all_warps()))
        .sum();
    let first = u64::from(Target::most_registers(threads.min(1024) as u32));
    let taken = parts.map(|part| {
        let registers = part.max_registers.map_or(first, u64::from);
        32 * u64::from(part.all_warps()) * registers
    });
    if taken.sum::<u64>() > first * threads {
        let message =
            format!("the warps begin with {first} registers a thread, and take more in all");
        errors.report(Rule::Warps, AnyEntity::Function, message);
    }
}

/// Section 4.4 of the PTX manual: a letter, then letters, digits, `_` and `$`; or `_`, `$` or `%` and at least
/// one of those. `%` is left to registers. The manual's predefined identifier and the module's log are taken.
pub(crate) fn is_ptx_identifier(name: &str) -> bool {
    if ["WARP_SZ", crate::device_print::SYMBOL].contains(&name) {
        return false;
    }
    let follows = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    match name.chars().next() {
        Some('_' | '$') => name.len() > 1 && name.chars().all(follows),
        Some(c) => c.is_ascii_alphabetic() && name.chars().all(follows),
        None => false,
    }
}
