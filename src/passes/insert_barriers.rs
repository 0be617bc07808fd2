//! Puts barriers where one thread reads shared memory that another may have written, or writes what
//! another may still read.
//!
//! A forward dataflow analysis over the blocks keeps the slots that were read and written since the last
//! barrier. A read of bytes of a written slot, and a write to bytes of a read slot or of another written
//! one, needs a barrier before it, which empties both sets. Stores to one slot belong to one exchange and
//! never overlap, so a write after a write to the same slot needs none: a read, and with it a barrier,
//! stands between two exchanges through it.
//!
//! All branches are uniform over the CTA (conditions are scalars of the program), so every thread reaches
//! every barrier. Sets at block entries only grow, so the iteration ends.

use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;

use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;

/// Accesses since the last barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    read: BTreeSet<Slot>,
    written: BTreeSet<Slot>,
}

impl Pending {
    fn join(&mut self, other: &Pending) -> bool {
        let before = (self.read.len(), self.written.len());
        self.read.extend(&other.read);
        self.written.extend(&other.written);
        before != (self.read.len(), self.written.len())
    }
}

/// Inserts barriers into a function whose slots are placed; returns how many.
pub fn insert_barriers(func: &mut ThreadFunction) -> usize {
    if func.slots.is_empty() {
        return 0;
    }
    let mut entry: SecondaryMap<Block, Pending> = SecondaryMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &func.order.blocks {
            let mut pending = entry[block].clone();
            for &inst in func.order.insts(block) {
                step(func, inst, &mut pending);
            }
            let Some(last) = func.order.last(block) else {
                continue;
            };
            for call in &func.dfg.insts[last].blocks {
                changed |= entry[call.block].join(&pending);
            }
        }
    }
    let mut count = 0;
    for block in func.order.blocks.clone() {
        let mut pending = entry[block].clone();
        let insts = func.order.insts(block).to_vec();
        let mut with_barriers = Vec::with_capacity(insts.len());
        for inst in insts {
            if step(func, inst, &mut pending) {
                with_barriers.push(make_barrier(func));
                count += 1;
            }
            with_barriers.push(inst);
        }
        func.order.replace(block, with_barriers);
    }
    count
}

fn make_barrier(func: &mut ThreadFunction) -> Inst {
    let mut data: InstData<Thread> = InstData::new(ThreadOp::Barrier, &[]);
    data.attrs
        .extend([make::id(0), make::threads(func.num_threads())]);
    func.dfg.make_inst(data, &[])
}

/// Updates `pending` across an instruction; gives whether a barrier must stand before it.
fn step(func: &ThreadFunction, inst: Inst, pending: &mut Pending) -> bool {
    let data = &func.dfg.insts[inst];
    if data.op == ThreadOp::Barrier {
        *pending = Pending::default();
        return false;
    }
    let Some(&slot) = data.slot() else {
        return false;
    };
    let clash = |set: &BTreeSet<Slot>, same: bool| {
        set.iter().any(|&other| {
            if other == slot {
                same
            } else {
                overlap(func, slot, other)
            }
        })
    };
    let hazard = match data.op {
        ThreadOp::Ld => clash(&pending.written, true),
        ThreadOp::St => clash(&pending.read, true) || clash(&pending.written, false),
        _ => return false,
    };
    if hazard {
        *pending = Pending::default();
    }
    match data.op {
        ThreadOp::Ld => pending.read.insert(slot),
        _ => pending.written.insert(slot),
    };
    hazard
}

/// Whether two placed slots share bytes; slots without a place might.
fn overlap(func: &ThreadFunction, a: Slot, b: Slot) -> bool {
    let range = |s: Slot| func.slots[s].offset.map(|o| (o, o + func.slots[s].bytes));
    match (range(a), range(b)) {
        (Some((a0, a1)), Some((b0, b1))) => a0 < b1 && b0 < a1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::builder::ThreadBuilder;
    use crate::ir::entities::Value;
    use crate::ir::function::SlotData;
    use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType};

    fn slot_at(b: &mut ThreadBuilder, offset: u32) -> (Slot, Value) {
        let slot = b.func_mut().slots.push(SlotData {
            bytes: 64,
            align: 16,
            offset: Some(offset),
        });
        let ty = ThreadType::scalar(Elem::Ptr(Scalar::F32, AddressSpace::Shared));
        (slot, b.slot_addr(slot, ty))
    }

    fn store(b: &mut ThreadBuilder, (slot, address): (Slot, Value), value: Value) {
        let mut data = InstData::new(ThreadOp::St, &[address, value]);
        data.attrs.push(make::slot(slot));
        b.inst(data, &[]);
    }

    fn load(b: &mut ThreadBuilder, (slot, address): (Slot, Value)) {
        let mut data = InstData::new(ThreadOp::Ld, &[address]);
        data.attrs.push(make::slot(slot));
        b.inst(data, &[ThreadType::scalar(Elem::F32)]);
    }

    /// Ops of the body in order, barriers included, without the address computations.
    fn trace(func: &ThreadFunction) -> String {
        let ops = func.order.blocks.iter().flat_map(|&b| func.order.insts(b));
        let letter = |&i: &Inst| match func.dfg.insts[i].op {
            ThreadOp::St => "w",
            ThreadOp::Ld => "r",
            ThreadOp::Barrier => "|",
            ThreadOp::Brif => "?",
            _ => "",
        };
        ops.map(letter).collect()
    }

    #[test]
    fn only_hazards_get_barriers() {
        for (second, expected) in [(64, "ww|rrww|rr"), (0, "ww|rr|ww|rr")] {
            let mut b = ThreadBuilder::new("k", 4);
            let one = b.const_bits(0, ThreadType::scalar(Elem::F32));
            for offset in [0, second] {
                let place = slot_at(&mut b, offset);
                store(&mut b, place, one);
                store(&mut b, place, one);
                load(&mut b, place);
                load(&mut b, place);
            }
            b.ret();
            let mut func = b.finish().expect("everything fits");
            insert_barriers(&mut func);
            assert_eq!(trace(&func), expected);
        }
    }

    #[test]
    fn a_loop_waits_for_the_readers_of_the_last_iteration() {
        let mut b = ThreadBuilder::new("k", 4);
        let one = b.const_bits(0, ThreadType::scalar(Elem::F32));
        let again = b.const_bits(1, ThreadType::scalar(Elem::I1));
        let (body, _) = b.new_block(&[]);
        let (exit, _) = b.new_block(&[]);
        b.jump(body, &[]);
        b.append_block(body);
        b.switch_to(body);
        let place = slot_at(&mut b, 0);
        store(&mut b, place, one);
        load(&mut b, place);
        b.brif(again, (body, &[]), (exit, &[]));
        b.append_block(exit);
        b.switch_to(exit);
        b.ret();
        let mut func = b.finish().expect("everything fits");
        assert_eq!(insert_barriers(&mut func), 2);
        assert_eq!(trace(&func), "|w|r?");
    }
}
