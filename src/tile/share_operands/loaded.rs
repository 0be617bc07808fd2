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
//! in registers. Nothing is put there that takes more than half of what the rings of pipelines leave at the product: those of loops
//! that are over, or have not begun, have bytes to share.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use super::{first_entry, load, place_for, store};
use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::attrs::Attrs;
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
    let mut sharing = Sharing {
        limit: target.shared_limit(),
        lifetimes: Lifetimes::of(func),
        slots: FxHashMap::default(),
        added: 0,
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
    /// Bytes that there are.
    limit: u32,
    lifetimes: Lifetimes,
    /// Bytes that operands take.
    added: u32,
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
            let Some(slot) = known.or_else(|| self.store_at(edit, inst, value)) else {
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
    fn store_at(&mut self, edit: &mut Editor<'_>, product: Inst, value: Value) -> Option<Slot> {
        let buffer = place_for(edit.ty(value))?;
        // What finds no place is converted, which takes as much room for a while.
        let bytes = buffer.stage_bytes();
        let taken = self.lifetimes.bytes_at(product) + self.added;
        if self.limit.saturating_sub(taken) / 2 < bytes {
            return None;
        }
        self.added += bytes;
        let slot = edit.func.add_buffer(buffer);
        let entry = entry(edit);
        edit.append(store(value, entry, slot));
        Some(slot)
    }
}

/// When rings hold something, in steps of the program.
pub(super) struct Lifetimes {
    at: FxHashMap<Inst, usize>,
    /// Bytes, first and last step.
    rings: Vec<(u32, usize, usize)>,
}

impl Lifetimes {
    pub(super) fn of(func: &TileFunction) -> Lifetimes {
        let mut at = FxHashMap::default();
        let mut ends: FxHashMap<Slot, (usize, usize)> = FxHashMap::default();
        let mut loops = Vec::new();
        for (step, walk) in ProgramOrder::compute(func).steps().iter().enumerate() {
            match *walk {
                WalkStep::Inst(inst) | WalkStep::Enter(inst) => {
                    at.insert(inst, step);
                    if let Some(&slot) = func.dfg.insts[inst].slot() {
                        ends.entry(slot).or_insert((step, step)).1 = step;
                    }
                }
                WalkStep::Leave(inst) if func.dfg.insts[inst].op.is_loop() => {
                    loops.push((at[&inst], step));
                }
                WalkStep::Region(_) | WalkStep::Leave(_) => {}
            }
        }
        // What goes into a loop, or out of it, is there in all iterations. Inner loops come first.
        let mut rings = Vec::new();
        for (slot, (mut first, mut last)) in ends {
            for &(begin, end) in &loops {
                let goes_in = first < begin && (begin..end).contains(&last);
                let goes_out = end < last && (begin..end).contains(&first);
                (first, last) = match (goes_in, goes_out) {
                    (true, _) => (first, end),
                    (_, true) => (begin, last),
                    _ => (first, last),
                };
            }
            let ring = func.buffers[slot];
            rings.extend(ring.map(|ring| (ring.stages * ring.stage_bytes(), first, last)));
        }
        Lifetimes { at, rings }
    }

    /// Bytes of all that are held where an instruction stands.
    pub(super) fn bytes_at(&self, inst: Inst) -> u32 {
        let step = self.at.get(&inst).copied().unwrap_or(0);
        let held = self.rings.iter();
        held.filter(|&&(_, first, last)| (first..=last).contains(&step))
            .map(|&(bytes, ..)| bytes)
            .sum()
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

    /// A product before a loop that fills and reads a ring of so many entries of 32 KB.
    fn before_a_ring(entries: u32, first: &str, then: &str) -> (usize, TileFunction) {
        shared(&format!(
            "kernel @k(v0: ptr<f32> {{divisible = 16}}, v1: i32) warps(4) {{
                slot0 = {} bytes align 128 holds {entries} of f32[64,128]
            block0:
                v2 = const {{value = 0}} : i32
                v3 = const {{value = 1}} : i32
                v4 = arange {{start = 0}} : i32[8192]
                v5 = reshape v4 : i32[64,128]
                v6 = splat v0 : ptr<f32>[64,128]
                v7 = addptr v6, v5 : ptr<f32>[64,128]
                v8 = const {{value = 0.0}} : f32[64,128]
                v9 = reshape v4 : i32[128,64]
                v10 = splat v0 : ptr<f32>[128,64]
                v11 = addptr v10, v9 : ptr<f32>[128,64]
                v12 = const {{value = 0.0}} : f32[64,64]
                {first}
                v13 = load v7 : f32[64,128]
                v14 = load v11 : f32[128,64]
                v15 = dot v13, v14, v12 {{precision = ieee}} : f32[64,64]
                {then}
                for v2, v1, v3 {{
                block1(v20: i32):
                    v21 = shared_load v2 {{slot = slot0}} : f32[64,128]
                    store v7, v21
                    yield
                }}
                v22 = reshape v15 : f32[4096]
                v23 = arange {{start = 0}} : i32[4096]
                v24 = splat v0 : ptr<f32>[4096]
                v25 = addptr v24, v23 : ptr<f32>[4096]
                store v25, v22
                return
            }}",
            entries << 15
        ))
    }

    #[test]
    fn rings_take_their_bytes_where_they_hold_something() {
        let store = "shared_store v8, v2 {slot = slot0}";
        assert_eq!(before_a_ring(4, store, "").0, 0, "the ring is full already");
        assert_eq!(before_a_ring(4, "", store).0, 2, "nothing is in it yet");
        assert_eq!(before_a_ring(1, store, "").0, 2, "it is small");
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
