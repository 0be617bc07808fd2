//! Operands that are computed from loads in the block of their product wait in shared memory, where a unit reads them piece by
//! piece.
//!
//! ```text
//! x = load p                        x = load p
//! y = fmul x, ..             =>     y' = ..; shared_store y' -> s
//! acc = dot y, z, acc               y = shared_load s; acc = dot y, z, acc
//! ```
//!
//! That is the case in loops that are not pipelined, and for products outside of loops. What was computed before a loop is the
//! matter of [`share_invariant`](super::share_invariant).
//!
//! Products of sums and of values that are combined across threads keep their conversions: an accumulator may become an operand
//! in registers. Nothing is put there that takes more than half of what the rings of pipelines leave.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use super::{first_entry, load, place_for, store};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::settings::Target;
use crate::tile::edit::{self, Editor, Fate};

/// Puts operands into shared memory; gives how many are read from there.
pub fn share_loaded(func: &mut TileFunction, target: Target) -> usize {
    if !func.dfg.insts.values().any(|data| data.op == TileOp::Dot) {
        return 0;
    }
    let rings = func.slots.keys().filter_map(|slot| func.buffers[slot]);
    let taken: u32 = rings.map(|ring| ring.stages * ring.stage_bytes()).sum();
    let mut sharing = Sharing {
        room: target.shared_limit().saturating_sub(taken),
        slots: FxHashMap::default(),
    };
    edit::rewrite(func, |edit, inst| {
        if edit.func.dfg.insts[inst].op == TileOp::Dot {
            sharing.before_dot(edit, inst);
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
}

impl Sharing {
    /// Lets a product read its operands from shared memory.
    fn before_dot(&mut self, edit: &mut Editor<'_>, inst: Inst) {
        for i in 0..2 {
            let value = edit.func.dfg.insts[inst].args[i];
            let key = (edit.block(), value);
            if !is_loaded(edit, value) {
                continue;
            }
            let known = self.slots.get(&key).copied();
            let Some(slot) = known.or_else(|| self.store_at(edit, value)) else {
                continue;
            };
            self.slots.insert(key, slot);
            let ty = edit.ty(value);
            let entry = entry(edit);
            let read = edit.insert(load(entry, slot), ty);
            edit.func.dfg.insts[inst].args[i] = read;
            edit.changed();
        }
    }

    /// Stores a block to shared memory in front of the visited instruction, if there is room.
    fn store_at(&mut self, edit: &mut Editor<'_>, value: Value) -> Option<Slot> {
        let buffer = place_for(edit.ty(value))?;
        // What finds no place is converted, which takes as much room for a while.
        let bytes = buffer.stage_bytes();
        if self.room / 2 < bytes {
            return None;
        }
        self.room -= bytes;
        let slot = edit.func.add_buffer(buffer);
        let entry = entry(edit);
        edit.append(store(value, entry, slot));
        Some(slot)
    }
}

/// The number of a place's only entry, in front of the visited instruction.
fn entry(edit: &mut Editor<'_>) -> Value {
    let (data, ty) = first_entry();
    edit.insert(data, ty)
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
            _ if !data.is_pure() => return false,
            _ => stack.extend(&data.args),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::share_loaded;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::share_operands::tests::count;
    use crate::tile::testing::{fixed_point, parse, run, verified};

    fn shared(text: &str) -> (usize, TileFunction) {
        let mut func = parse(text);
        let count = share_loaded(&mut func, Target::SM_80);
        verified(&func);
        (count, func)
    }

    #[test]
    fn what_was_loaded_is_stored_once() {
        let text = "kernel @k(v0: ptr<f32> {divisible = 16}, v1: ptr<f32>) warps(1) {
            block0:
                v2 = arange {start = 0} : i32[256]
                v3 = reshape v2 : i32[16,16]
                v4 = splat v0 : ptr<f32>[16,16]
                v5 = addptr v4, v3 : ptr<f32>[16,16]
                v6 = load v5 : f32[16,16]
                v7 = fmul v6, v6 : f32[16,16]
                v8 = const {value = 0.0} : f32[16,16]
                v9 = dot v7, v7, v8 {precision = ieee} : f32[16,16]
                v10 = dot v7, v9, v8 {precision = ieee} : f32[16,16]
                v11 = splat v1 : ptr<f32>[16,16]
                v12 = addptr v11, v3 : ptr<f32>[16,16]
                store v12, v10
                return
            }";
        let (changes, func) = shared(text);
        // The sum of the first product stays where it is.
        assert_eq!((changes, count(&func, TileOp::SharedLoad)), (3, 3));
        assert_eq!(count(&func, TileOp::SharedStore), 1);
        let numbers = (0..256).flat_map(|i| ((i % 7) as f32 - 3.0).to_le_bytes());
        let buffers = [numbers.collect(), vec![0; 1024]];
        assert_eq!(run(&func, &buffers), run(&parse(text), &buffers));
    }

    #[test]
    fn what_no_product_uses_stays() {
        fixed_point(
            |func| share_loaded(func, Target::SM_80),
            "kernel @k(v0: ptr<f32>) warps(1) {
            block0:
                v1 = splat v0 : ptr<f32>[16,16]
                v2 = load v1 : f32[16,16]
                v3 = fmul v2, v2 : f32[16,16]
                store v1, v3
                return
            }",
        );
    }
}
