//! Operands that a loop does not change would occupy registers over the whole loop. Where registers are short they are stored
//! to shared memory where they are made, and read in the loop.
//!
//! The largest go first, until what is left fits. What is needed is estimated from the sizes of the blocks that are alive in
//! the loop, as no layouts are known yet.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use super::{first_entry, load, place_for, store};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::settings::Target;

/// Registers of a thread that addresses, pieces of operands and what is counted by nobody take.
const ASIDE: u32 = 44;

/// Rows of a tile of a tensor core's product.
const TILE_ROWS: u32 = 16;

/// The part of shared memory, as a fraction, that operands may take from pipelines.
const PART: u32 = 2;

/// Moves operands that loops do not change to shared memory where registers are short; gives their number.
pub fn share_invariant(func: &mut TileFunction, target: Target) -> usize {
    let most = Target::most_registers(func.num_threads());
    let mut room = target.shared_limit() / PART;
    let mut shared: FxHashMap<Value, Slot> = FxHashMap::default();
    let mut count = 0;
    for body in loop_bodies(func) {
        let mut operands = invariant_operands(func, body);
        if operands.is_empty() {
            continue;
        }
        let kept = |v: &Value| !shared.contains_key(v);
        let sizes = operands.iter().filter(|(v, _)| kept(v));
        let mut needed = pressure(func, body) + sizes.map(|&(_, size)| size).sum::<u32>() + ASIDE;
        // What another loop reads from shared memory costs nothing to read here, too.
        operands.sort_by_key(|&(v, size)| (kept(&v), std::cmp::Reverse(size)));
        for (value, size) in operands {
            let slot = match shared.get(&value) {
                Some(&slot) => slot,
                None => {
                    let bytes = bytes(func.dfg.ty(value));
                    if needed <= most || bytes > room {
                        continue;
                    }
                    let Some(slot) = store_at(func, value) else {
                        continue;
                    };
                    room -= bytes;
                    needed -= size;
                    shared.insert(value, slot);
                    count += 1;
                    slot
                }
            };
            load_in(func, body, value, slot);
        }
    }
    count
}

/// Registers of a thread that a loop's body needs.
pub(in crate::tile) fn registers_needed(func: &TileFunction, body: Block) -> u32 {
    let operands = invariant_operands(func, body);
    let operands: u32 = operands.iter().map(|&(_, size)| size).sum();
    pressure(func, body) + operands + ASIDE
}

/// Bodies of loops without loops in them.
fn loop_bodies(func: &TileFunction) -> Vec<Block> {
    let loops = func.insts_with(TileOp::For);
    let bodies = loops.filter_map(|(_, i)| Some(func.dfg.insts[i].blocks.first()?.block));
    let is_plain = |&body: &Block| {
        let mut insts = func.order.insts(body).iter();
        insts.all(|&i| !func.dfg.insts[i].op.is_loop())
    };
    bodies.filter(is_plain).collect()
}

fn bytes(ty: TileType) -> u32 {
    ty.bytes()
}

/// Operands of the body's products that are made in front of the loop, and registers of a thread that each takes.
fn invariant_operands(func: &TileFunction, body: Block) -> Vec<(Value, u32)> {
    let mut found: Vec<(Value, u32)> = Vec::new();
    let mut others: EntitySet<Value> = EntitySet::new();
    for &inst in func.order.insts(body) {
        let data = &func.dfg.insts[inst];
        for (i, &value) in data.args.iter().enumerate() {
            let ValueDef::Result(def, _) = func.dfg.values[value].def else {
                continue;
            };
            // Boxes come to shared memory, and are read there.
            if func.order.block_of(def) == Some(body) || is_box(func, value) {
                continue;
            }
            if data.op != TileOp::Dot || i > 1 {
                others.insert(value);
                continue;
            }
            let registers = registers_of_operand(func, inst, i);
            match found.iter_mut().find(|(v, _)| *v == value) {
                Some((_, size)) => *size = (*size).max(registers),
                None => found.push((value, registers)),
            }
        }
    }
    // Blocks of eight bits have no matrices to be read by, and small ones little to gain.
    found.retain(|&(value, registers)| {
        let elem = func.dfg.ty(value).elem;
        !others.contains(value) && registers >= 8 && matches!(elem.bits(), 16 | 32)
    });
    found
}

/// Whether a value is what a tensor map brings, but for changes of shape.
fn is_box(func: &TileFunction, mut value: Value) -> bool {
    while let Some(def) = func.dfg.def_inst(value) {
        match func.dfg.insts[def].op {
            TileOp::TensorLoad => return true,
            TileOp::Permute => value = func.dfg.insts[def].args[0],
            _ => return false,
        }
    }
    false
}

/// Registers of a thread that a product's operand takes, where the warps stand in as many rows as there are tiles for.
fn registers_of_operand(func: &TileFunction, dot: Inst, operand: usize) -> u32 {
    let data = &func.dfg.insts[dot];
    let result = func.dfg.ty(data.results[0]).shape;
    let rank = result.rank();
    let rows = result.extent(rank.saturating_sub(2)) as u32;
    let down = (rows / TILE_ROWS).clamp(1, func.num_warps());
    let across = func.num_warps() / down;
    let copies = if operand == 0 { across } else { down };
    bytes(func.dfg.ty(data.args[operand])) * copies / (4 * func.num_threads())
}

/// Registers of a thread that hold blocks of numbers where most of them are alive in a loop's body.
fn pressure(func: &TileFunction, body: Block) -> u32 {
    let threads = 4 * func.num_threads();
    let size = |value: Value| match func.dfg.ty(value) {
        ty if ty.is_scalar() || !is_number(ty.elem) || is_offset(func, value) => 0,
        ty => bytes(ty) / threads,
    };
    let mut alive: EntitySet<Value> = EntitySet::new();
    let mut now = 0;
    let mut most = 0;
    for &inst in func.order.insts(body).iter().rev() {
        let data = &func.dfg.insts[inst];
        for &result in &data.results {
            if alive.remove(result) {
                now -= size(result);
            }
        }
        for &arg in &data.args {
            let is_here = match func.dfg.values[arg].def {
                ValueDef::Param(block, _) => block == body,
                ValueDef::Result(def, _) => {
                    // What a product reads from shared memory, where a pipeline will put it, is never here as a whole.
                    let reads = matches!(func.dfg.insts[def].op, TileOp::Load | TileOp::Permute);
                    func.order.block_of(def) == Some(body) && !reads
                }
            };
            if is_here && alive.insert(arg) {
                now += size(arg);
            }
        }
        most = most.max(now);
    }
    most
}

/// Whether elements are floats or results of products.
fn is_number(elem: Elem) -> bool {
    !matches!(elem, Elem::I1 | Elem::Token | Elem::Map(_) | Elem::Ptr(..))
}

/// Whether a block repeats integers of fewer elements, as offsets do: a thread has one register for each that differs.
fn is_offset(func: &TileFunction, value: Value) -> bool {
    let is_integer = matches!(func.dfg.ty(value).elem, Elem::I32 | Elem::I64);
    let def = func.dfg.def_inst(value).map(|def| func.dfg.insts[def].op);
    is_integer && matches!(def, Some(TileOp::Splat | TileOp::Broadcast))
}

/// Stores a block where it is made.
fn store_at(func: &mut TileFunction, value: Value) -> Option<Slot> {
    let def = func.dfg.def_inst(value)?;
    let slot = func.add_buffer(place_for(func.dfg.ty(value))?);
    let entry = first_entry_near(func, def);
    let number = func.dfg.insts[entry].results[0];
    let mut data = store(value, number, slot);
    data.loc = func.dfg.insts[def].loc;
    let stored = func.dfg.make_inst(data, &[]);
    func.order.insert_after(def, &[entry, stored]);
    Some(slot)
}

/// The number of a place's only entry, with the location of an instruction.
fn first_entry_near(func: &mut TileFunction, near: Inst) -> Inst {
    let (mut data, ty) = first_entry();
    data.loc = func.dfg.insts[near].loc;
    func.dfg.make_inst(data, &[ty])
}

/// Lets the products of a loop's body load an operand.
fn load_in(func: &mut TileFunction, body: Block, value: Value, slot: Slot) {
    let mut list = Vec::new();
    for inst in func.order.insts(body).to_vec() {
        if func.dfg.insts[inst].args.contains(&value) {
            let entry = first_entry_near(func, inst);
            let mut data = load(func.dfg.insts[entry].results[0], slot);
            data.loc = func.dfg.insts[inst].loc;
            let loaded = func.dfg.make_inst(data, &[func.dfg.ty(value)]);
            let new = func.dfg.insts[loaded].results[0];
            func.dfg
                .map_uses(inst, |v| if v == value { new } else { v });
            list.extend([entry, loaded]);
        }
        list.push(inst);
    }
    func.order.replace(body, list);
}

#[cfg(test)]
pub(super) mod tests {
    use super::{invariant_operands, loop_bodies, pressure, share_invariant};
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::share_operands::tests::{count, small};
    use crate::tile::testing::{parse, run, verified};

    /// `rows` rows of q times each of `count` blocks of k, the sums of which are stored; and q times blocks the other way.
    pub(in crate::tile::share_operands) fn products(
        rows: u32,
        warps: u32,
        count: u32,
    ) -> TileFunction {
        let block = format!("[{rows},64]");
        parse(&format!(
            "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: ptr<f32> {{divisible = 16}}, v2: ptr<f32>) warps({warps}) {{
            block0:
                v3 = const {{value = 0}} : i32
                v4 = const {{value = {count}}} : i32
                v5 = const {{value = 1}} : i32
                v6 = arange {{start = 0}} : i32[{all}]
                v7 = reshape v6 : i32{block}
                v8 = splat v0 : ptr<f32>{block}
                v9 = addptr v8, v7 : ptr<f32>{block}
                v10 = load v9 : f32{block}
                v11 = arange {{start = 0}} : i32[4096]
                v12 = reshape v11 : i32[64,64]
                v13 = splat v1 : ptr<f32>[64,64]
                v14 = addptr v13, v12 : ptr<f32>[64,64]
                v15 = const {{value = 0.0}} : f32{block}
                v16 = for v3, v4, v5, v15 {{stages = 2}} : f32{block} {{
                block1(v17: i32, v18: f32{block}):
                    v19 = load v14 : f32[64,64]
                    v20 = permute v19 {{dims = [1, 0]}} : f32[64,64]
                    v21 = dot v10, v20, v15 {{precision = ieee}} : f32{block}
                    v22 = dot v21, v19, v18 {{precision = ieee}} : f32{block}
                    yield v22
                }}
                v23 = splat v2 : ptr<f32>{block}
                v24 = addptr v23, v7 : ptr<f32>{block}
                store v24, v16
                return
            }}",
            all = rows * 64
        ))
    }

    #[test]
    fn operands_leave_registers_where_these_are_short() {
        // With four warps each block of 256 rows takes 128 registers: both sums and the operand are more than there are.
        for (rows, warps, expected) in [(256, 4, 1), (256, 8, 0), (64, 4, 0)] {
            let before = products(rows, warps, 2);
            let mut func = before.clone();
            let moved = share_invariant(&mut func, Target::SM_80);
            assert_eq!(moved, expected, "{rows} rows, {warps} warps");
            assert_eq!(count(&func, TileOp::SharedStore), expected);
            assert_eq!(count(&func, TileOp::SharedLoad), expected);
            verified(&func);
            let buffers = [small(rows * 64), small(4096), vec![0; 256 * rows as usize]];
            assert_eq!(run(&func, &buffers), run(&before, &buffers));
        }
    }

    #[test]
    fn the_estimate_counts_what_is_alive_and_what_the_operand_takes() {
        // Registers of each thread for the operand of f32, of which warps in one row of tiles hold copies; and for the two sums
        // that are alive at once, where the other operands come from loads and count nothing.
        for (rows, warps, operand, sums) in [
            (256, 4, 128, 256),
            (256, 8, 64, 128),
            (64, 4, 32, 64),
            // Two rows of tiles, and two warps in each.
            (32, 4, 32, 32),
            // One row of tiles, which all warps read.
            (16, 8, 32, 8),
        ] {
            let func = products(rows, warps, 2);
            let body = loop_bodies(&func)[0];
            let found = invariant_operands(&func, body);
            let sizes: Vec<u32> = found.iter().map(|&(_, size)| size).collect();
            assert_eq!(sizes, [operand], "{rows} rows, {warps} warps");
            assert_eq!(pressure(&func, body), sums, "{rows} rows, {warps} warps");
        }
    }

    #[test]
    fn what_a_loop_computes_is_no_invariant_operand() {
        let func = products(64, 4, 2);
        let body = loop_bodies(&func)[0];
        // Of four operands one is made in front of the loop.
        assert_eq!(count(&func, TileOp::Dot), 2);
        assert_eq!(invariant_operands(&func, body).len(), 1);
    }
}
