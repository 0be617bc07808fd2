//! Operands that are nothing but loads come to shared memory by copies, which need no registers.
//!
//! ```text
//! x = load p                        async_copy p -> s; t = async_commit
//! y = load q                 =>     async_copy q -> r; u = async_commit
//! a = dot x, z, ..                  async_wait t; x = shared_load s; a = dot x, z, ..
//! b = dot a, y, ..                  async_wait u; y = shared_load r; b = dot a, y, ..
//! ```
//!
//! What a block loads in front of its products is under way at once, however much it is; by way of registers each load waits until the ones
//! before it are stored, or what is loaded spills. That is the matter of loads that no pipeline takes: outside of loops, in choices, and where
//! the author asks for one stage. They move if nobody writes what they read meanwhile (`Used::is_settled`, and no store stands between), if only products of their block
//! read them, and if an SM holds as many CTAs with a place for each as their registers leave room for.

use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::loaded::Lifetimes;
use super::{first_entry, load, place_for, registers_needed};
use crate::analysis::axis::Axis;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{AttrKind, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::{Access, AccessSpace, How};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::layout::matrix;
use crate::settings::Target;
use crate::tile::pipeline_loops::is_copied;
use crate::tile::promote::used::Used;

/// Fewest bytes of each thread for which copies are worth their waits.
const LEAST_BYTES: u32 = 16;

/// Where a product reads a block: the product, which operand, and the changes of shape between, the last one first.
type Reader = (Inst, usize, Vec<Inst>);

/// Lets operands come by copies; gives how many loads became such.
pub fn copy_loaded(func: &mut TileFunction, target: Target) -> usize {
    let has_products = func.insts_with(TileOp::Dot).next().is_some();
    let loads: Vec<(Block, Inst)> = func.insts_with(TileOp::Load).collect();
    if target.sm < 80 || !has_products || loads.is_empty() {
        return 0;
    }
    let users = users(func);
    let mut found: Vec<(Block, Inst, Vec<Reader>)> = Vec::new();
    for (block, inst) in loads {
        let value = func.dfg.insts[inst].results[0];
        let bytes = func.dfg.ty(value).bytes();
        if bytes < LEAST_BYTES * func.num_threads() {
            continue;
        }
        if let Some(readers) = readers(func, &users, target, (block, value)) {
            found.push((block, inst, readers));
        }
    }
    if found.is_empty() {
        return 0;
    }
    let (axis, order) = (Axis::compute(func), ProgramOrder::compute(func));
    let (used, lifetimes) = (Used::compute(func), Lifetimes::of(func));
    let mut added = 0;
    found.retain(|(block, inst, readers)| {
        let bytes = func.dfg.ty(func.dfg.insts[*inst].results[0]).bytes();
        let taken = readers.iter().map(|&(it, ..)| lifetimes.bytes_at(it)).max();
        let shared = taken.unwrap_or(0) + added + bytes;
        let registers = registers_needed(func, *block);
        let ctas = Target::resident_by_registers(func.num_threads(), registers).max(1);
        let fits = target.resident_by_shared(shared).is_some_and(|n| ctas <= n);
        let is_so = fits
            && is_copied(func, &axis, *inst)
            && used.is_settled(func, &order, *inst)
            && are_together(func, *block, *inst, readers);
        added += if is_so { bytes } else { 0 };
        is_so
    });
    let mut before: FxHashMap<Inst, Vec<Inst>> = FxHashMap::default();
    for (_, inst, readers) in &found {
        copy(func, *inst, readers, &mut before);
    }
    for block in func.all_blocks() {
        let list = func.order.insts(block).iter();
        let list: Vec<Inst> = list
            .flat_map(|&inst| {
                let new = before.get(&inst).map_or(&[][..], |new| new);
                new.iter().copied().chain([inst])
            })
            .collect();
        func.order.replace(block, list);
    }
    found.len()
}

/// Who uses each value.
fn users(func: &TileFunction) -> SecondaryMap<Value, SmallVec<[Inst; 2]>> {
    let mut users: SecondaryMap<Value, SmallVec<[Inst; 2]>> = SecondaryMap::new();
    for (_, inst) in func.all_insts() {
        for value in func.dfg.uses(inst) {
            users[value].push(inst);
        }
    }
    users
}

/// The products of a block that read a value, if nobody else does.
fn readers(
    func: &TileFunction,
    users: &SecondaryMap<Value, SmallVec<[Inst; 2]>>,
    target: Target,
    (block, value): (Block, Value),
) -> Option<Vec<Reader>> {
    let mut found = Vec::new();
    for &user in &users[value] {
        if func.order.block_of(user) != Some(block) {
            return None;
        }
        let data = &func.dfg.insts[user];
        match data.op {
            // What is multiplied without a unit is read number by number.
            TileOp::Dot if data.args[2] != value && has_unit(func, user, target) => {
                let sides = (0..2).filter(|&side| data.args[side] == value);
                found.extend(sides.map(|side| (user, side, Vec::new())));
            }
            TileOp::Permute => {
                let behind = readers(func, users, target, (block, data.results[0]))?;
                found.extend(behind.into_iter().map(|(product, side, mut chain)| {
                    chain.push(user);
                    (product, side, chain)
                }));
            }
            _ => return None,
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Whether nothing stands between a load and its last reader that orders it before what follows, or may change what it reads under another
/// name: a copy may read until it is waited for.
fn are_together(func: &TileFunction, block: Block, load: Inst, readers: &[Reader]) -> bool {
    let behind = func.order.insts(block).iter().skip_while(|&&it| it != load);
    let is_reader = |inst: Inst| readers.iter().any(|&(product, ..)| product == inst);
    let list: Vec<Inst> = behind.copied().collect();
    let last = list.iter().rposition(|&inst| is_reader(inst)).unwrap_or(0);
    !list[..last].iter().any(|&inst| ends(func, inst))
}

/// Whether an instruction, or one in its regions, orders accesses to memory or writes device memory.
fn ends(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let is_write =
        |access: &Access| access.how != How::Read && matches!(access.space, AccessSpace::Global(_));
    let is_ordered = match data.op {
        TileOp::AsyncCommit | TileOp::AsyncWait => false,
        _ => data.orders_memory(),
    };
    let mut inner = func
        .regions(inst)
        .flat_map(|region| func.order.insts(region));
    is_ordered || func.accesses(inst).iter().any(is_write) || inner.any(|&inst| ends(func, inst))
}

fn has_unit(func: &TileFunction, product: Inst, target: Target) -> bool {
    matrix::unit(&matrix::dot_info(func, product), target).is_some()
}

/// Makes the copy of what is loaded, and the loads from its place; `before` learns what stands in front of which instruction.
fn copy(
    func: &mut TileFunction,
    inst: Inst,
    readers: &[Reader],
    before: &mut FxHashMap<Inst, Vec<Inst>>,
) {
    let given = func.dfg.insts[inst].clone();
    let ty = func.dfg.ty(given.results[0]);
    let Some(buffer) = place_for(ty) else {
        return;
    };
    let slot = func.add_buffer(buffer);
    let mut make =
        |func: &mut TileFunction, at: Inst, mut data: InstData<Tile>, ty: &[TileType]| {
            data.loc = given.loc;
            let new = func.dfg.make_inst(data, ty);
            before.entry(at).or_default().push(new);
            func.dfg.insts[new].results.first().copied()
        };
    let (number, of_number) = first_entry();
    let Some(entry) = make(func, inst, number.clone(), &[of_number]) else {
        return;
    };
    let mask = match given.args.get(1) {
        Some(&mask) => mask,
        None => {
            let mut all: InstData<Tile> = InstData::new(TileOp::Const, &[]);
            all.attrs.push(make::value(1));
            match make(func, inst, all, &[ty.with_elem(Elem::I1)]) {
                Some(all) => all,
                None => return,
            }
        }
    };
    let token = TileType::scalar(Elem::Token);
    let mut copy = InstData::new(TileOp::AsyncCopy, &[given.args[0], entry, mask]);
    let kept = [AttrKind::Cache, AttrKind::Evict];
    let kept = given.attrs.iter().filter(|a| kept.contains(&a.kind()));
    copy.attrs.extend(kept.cloned());
    copy.attrs.push(make::slot(slot));
    let copied = make(func, inst, copy, &[token]);
    let group = InstData::new(TileOp::AsyncCommit, copied.as_slice());
    let group = make(func, inst, group, &[token]);
    for (product, side, chain) in readers {
        let wait = InstData::new(TileOp::AsyncWait, group.as_slice());
        make(func, *product, wait, &[]);
        let Some(mut value) = make(func, *product, load(entry, slot), &[ty]) else {
            return;
        };
        for &change in chain.iter().rev() {
            let mut data = func.dfg.insts[change].clone();
            let ty = func.dfg.ty(data.results[0]);
            data.results.clear();
            data.args[0] = value;
            value = make(func, *product, data, &[ty]).unwrap_or(value);
        }
        func.dfg.insts[*product].args[*side] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::copy_loaded;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::eliminate_dead_code::eliminate_dead_code;
    use crate::tile::share_operands::tests::count;
    use crate::tile::testing::{parse, run, verified};

    /// A product of two blocks, of which the second is read transposed, with another line behind the loads.
    fn text(between: &str, stored: &str) -> String {
        format!(
            "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: ptr<f32> {{divisible = 16}}, v2: ptr<f32>) warps(1) {{
            block0:
                v3 = arange {{start = 0}} : i32[256]
                v4 = reshape v3 : i32[16,16]
                v5 = splat v0 : ptr<f32>[16,16]
                v6 = addptr v5, v4 : ptr<f32>[16,16]
                v7 = load v6 : f32[16,16]
                v8 = splat v1 : ptr<f32>[16,16]
                v9 = addptr v8, v4 : ptr<f32>[16,16]
                v10 = load v9 : f32[16,16]
                {between}
                v11 = permute v10 {{dims = [1, 0]}} : f32[16,16]
                v12 = const {{value = 0.0}} : f32[16,16]
                v13 = dot v7, v11, v12 {{precision = tf32}} : f32[16,16]
                v14 = splat v2 : ptr<f32>[16,16]
                v15 = addptr v14, v4 : ptr<f32>[16,16]
                store v15, {stored}
                return
            }}"
        )
    }

    fn copied(text: &str, target: Target) -> (usize, TileFunction) {
        let mut func = parse(text);
        let count = copy_loaded(&mut func, target);
        eliminate_dead_code(&mut func);
        verified(&func);
        (count, func)
    }

    #[test]
    fn operands_come_by_copies() {
        let text = text("", "v13");
        let (changes, func) = copied(&text, Target::SM_80);
        assert_eq!((changes, count(&func, TileOp::Load)), (2, 0));
        assert_eq!(count(&func, TileOp::AsyncCopy), 2);
        assert_eq!(count(&func, TileOp::AsyncWait), 2);
        let numbers = |by: u32| -> Vec<u8> {
            let numbers = (0..256).flat_map(|i| (((i * by) % 7) as f32 - 3.0).to_le_bytes());
            numbers.collect()
        };
        let buffers = [numbers(1), numbers(5), vec![0; 1024]];
        assert_eq!(run(&func, &buffers), run(&parse(&text), &buffers));
        assert_eq!(copied(&text, Target::SM_75).0, 0, "there are no copies");
    }

    #[test]
    fn what_others_read_or_may_change_is_loaded() {
        let sum = text("v20 = fadd v10, v10 : f32[16,16]", "v20");
        assert_eq!(copied(&sum, Target::SM_80).0, 1, "the sum needs it");
        let written = text("store v6, v7", "v13");
        assert_eq!(copied(&written, Target::SM_80).0, 0, "it may be both");
        let tell = text("barrier", "v13");
        assert_eq!(copied(&tell, Target::SM_80).0, 0, "others may be told");
    }
}
