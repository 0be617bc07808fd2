//! Factors of products of matrices wait in shared memory, where a unit reads them piece by piece.
//!
//! ```text
//! x = load p                        x = load p; shared_store x -> s
//! y = fmul x, ..             =>     y' = ..
//! acc = dot y, z, acc               y = shared_load s; acc = dot y, z, acc
//! ```
//!
//! A unit wants its factors dealt to threads in its own way, while loads want neighbours side by side, so that what comes from
//! memory goes through shared memory in between. A conversion of layouts brings it all back into registers at once; a product
//! that reads shared memory itself takes what each step needs, by `ldmatrix` from an arrangement made for it.
//!
//! - What is computed from loads in the block of the product always waits there: loops that are not pipelined, and products
//!   outside of loops.
//! - What was computed before a loop stays in registers throughout, which is faster, unless they are short: if the blocks of
//!   numbers that live at once in the loop take more than [`SPARE`] leaves of a thread's registers, the largest such factors
//!   wait in shared memory. Ptxas would otherwise keep some of them in device memory.
//!
//! Products of sums and of values that are combined across threads keep their conversions: an accumulator may become a factor
//! in registers. Nothing is put there that takes more than half of what the rings of pipelines leave.

use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::edit::{self, Editor, Fate};
use crate::ir::attrs::make;
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{BufferData, TileFunction};
use crate::ir::ops::{Effect, TileOp};
use crate::ir::types::{Elem, TileType};
use crate::settings::Target;

/// 32-bit registers of a thread, at most.
const REGISTERS: u32 = 255;

/// Registers that are kept for pieces of factors, addresses and loop counters.
const SPARE: u32 = 40;

/// Puts factors into shared memory; gives how many operands of products are read from there.
pub fn share_factors(func: &mut TileFunction, target: Target) -> usize {
    if !func.dfg.insts.values().any(|data| data.op == TileOp::Dot) {
        return 0;
    }
    let rings = func.slots.keys().filter_map(|slot| func.buffers[slot]);
    let taken: u32 = rings.map(|ring| ring.stages * ring.stage_bytes()).sum();
    let mut sharing = Sharing {
        room: target.shared_limit().saturating_sub(taken),
        slots: FxHashMap::default(),
        outer: FxHashSet::default(),
    };
    edit::rewrite(func, |edit, inst| {
        match edit.func.dfg.insts[inst].op {
            TileOp::For => sharing.before_loop(edit, inst),
            TileOp::Dot => sharing.before_dot(edit, inst),
            _ => {}
        }
        Fate::Keep
    })
}

/// What has been put into shared memory.
struct Sharing {
    /// Bytes that are left.
    room: u32,
    /// Where a value waits for products in a block.
    slots: FxHashMap<(Block, Value), Slot>,
    /// Values from before a loop and the blocks whose products read them from shared memory.
    outer: FxHashSet<(Block, Value)>,
}

impl Sharing {
    /// Puts what lives throughout a loop aside, if too much does.
    fn before_loop(&mut self, edit: &mut Editor<'_>, inst: Inst) {
        let Some(body) = edit.func.regions(inst).next() else {
            return;
        };
        let mut most = pressure(edit.func, body);
        let mut factors = invariant_factors(edit.func, body);
        factors.sort_by_key(|&v| std::cmp::Reverse(registers(edit.func, v)));
        for value in factors {
            if most <= REGISTERS - SPARE {
                break;
            }
            if let Some(slot) = self.put(edit, value) {
                most = most.saturating_sub(registers(edit.func, value));
                self.slots.insert((body, value), slot);
                self.outer.insert((body, value));
            }
        }
    }

    /// Lets a product read its factors from shared memory.
    fn before_dot(&mut self, edit: &mut Editor<'_>, inst: Inst) {
        for i in 0..2 {
            let value = edit.func.dfg.insts[inst].args[i];
            let key = (edit.block(), value);
            if !self.outer.contains(&key) && !is_loaded(edit, value) {
                continue;
            }
            let known = self.slots.get(&key).copied();
            let Some(slot) = known.or_else(|| self.put(edit, value)) else {
                continue;
            };
            self.slots.insert(key, slot);
            let ty = edit.ty(value);
            let entry = edit.constant(0, TileType::scalar(Elem::I32));
            let attrs = [make::slot(slot)];
            let read = edit.emit(TileOp::SharedLoad, &[entry], &attrs, ty);
            edit.func.dfg.insts[inst].args[i] = read;
            edit.changed();
        }
    }

    /// Stores a block to shared memory in front of the visited instruction, if there is room.
    fn put(&mut self, edit: &mut Editor<'_>, value: Value) -> Option<Slot> {
        let ty = edit.ty(value);
        let buffer = BufferData {
            elem: ty.elem.scalar().filter(|_| 8 <= ty.elem.bits())?,
            shape: ty.shape,
            stages: 1,
        };
        // What finds no place is converted, which takes as much room for a while.
        let bytes = buffer.stage_bytes();
        if self.room / 2 < bytes {
            return None;
        }
        self.room -= bytes;
        let slot = edit.func.add_buffer(buffer);
        let entry = edit.constant(0, TileType::scalar(Elem::I32));
        let mut data = InstData::new(TileOp::SharedStore, &[value, entry]);
        data.attrs.push(make::slot(slot));
        edit.append(data);
        Some(slot)
    }
}

/// Whether a value is computed in the visited block from loads there, by ops on elements and changes of shape.
fn is_loaded(edit: &Editor<'_>, value: Value) -> bool {
    let func = &edit.func;
    let mut stack = vec![value];
    let mut seen = EntitySet::new();
    let mut found = false;
    while let Some(value) = stack.pop() {
        if !seen.insert(value) || func.dfg.ty(value).is_scalar() {
            continue;
        }
        let Some(inst) = func.dfg.def_inst(value) else {
            return false;
        };
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Load if func.order.block_of(inst) == Some(edit.block()) => found = true,
            TileOp::Const | TileOp::Splat | TileOp::Arange => {}
            TileOp::Dot | TileOp::Gather | TileOp::Histogram | TileOp::ConvertLayout => {
                return false;
            }
            _ if data.effect() != Effect::Pure => return false,
            _ => stack.extend(&data.args),
        }
    }
    found
}

/// Blocks from before a loop that nothing but products in its body uses.
fn invariant_factors(func: &TileFunction, body: Block) -> Vec<Value> {
    let mut factors: Vec<Value> = Vec::new();
    for &inst in func.order.insts(body) {
        let data = &func.dfg.insts[inst];
        if data.op != TileOp::Dot {
            continue;
        }
        for &value in &data.args[..2] {
            let is_outer = match func.dfg.values[value].def {
                ValueDef::Param(block, _) => block != body,
                ValueDef::Result(inst, _) => func.order.block_of(inst) != Some(body),
            };
            if is_outer && !factors.contains(&value) {
                factors.push(value);
            }
        }
    }
    for block in func.all_blocks() {
        for &inst in func.order.insts(block) {
            let is_product = block == body && func.dfg.insts[inst].op == TileOp::Dot;
            let others = func.dfg.uses(inst).enumerate();
            let others = others.filter(|&(i, _)| !(is_product && i < 2));
            for (_, value) in others {
                factors.retain(|&factor| factor != value);
            }
        }
    }
    factors
}

/// 32-bit registers that a block takes of each thread, if it is held in registers and costs any: numbers to compute with.
/// Addresses and truth values are mostly the same in all of them but for constants.
fn registers(func: &TileFunction, value: Value) -> u32 {
    let ty = func.dfg.ty(value);
    let op = func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].op);
    let is_counted = ty.elem.is_float() || op == Some(TileOp::Dot);
    let is_free = matches!(
        op,
        Some(TileOp::SharedLoad | TileOp::Const | TileOp::Splat | TileOp::Broadcast)
    );
    if ty.is_scalar() || !is_counted || is_free {
        return 0;
    }
    let bits = u64::from(ty.elem.bits()) << ty.shape.log2_elements();
    bits.div_ceil(32 * 32 * u64::from(func.num_warps())) as u32
}

/// Most registers of a thread that blocks of numbers take at once in the body of a loop.
fn pressure(func: &TileFunction, body: Block) -> u32 {
    let mut live: FxHashSet<Value> = FxHashSet::default();
    let (mut count, mut most) = (0, 0);
    // What comes from outside lives throughout.
    let mut inside: FxHashSet<Value> = func.dfg.blocks[body].params.iter().copied().collect();
    for &inst in func.order.insts(body) {
        for value in all_uses(func, inst) {
            if !inside.contains(&value) && live.insert(value) {
                count += registers(func, value);
            }
        }
        inside.extend(&func.dfg.insts[inst].results);
    }
    for &inst in func.order.insts(body).iter().rev() {
        let data = &func.dfg.insts[inst];
        for &result in &data.results {
            if live.remove(&result) {
                count -= registers(func, result);
            }
        }
        for value in all_uses(func, inst) {
            if live.insert(value) {
                count += registers(func, value);
            }
        }
        // The sum of a product is where its accumulator was.
        most = most.max(count);
    }
    most
}

/// What an instruction and those in its regions use.
fn all_uses(func: &TileFunction, inst: Inst) -> Vec<Value> {
    let mut found: Vec<Value> = func.dfg.uses(inst).collect();
    for block in func.regions(inst) {
        for &inner in func.order.insts(block) {
            found.extend(all_uses(func, inner));
        }
    }
    found
}
