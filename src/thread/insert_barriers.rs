//! Puts barriers where one thread reads shared memory that another may have written, or writes what
//! another may still read.
//!
//! # Shared memory
//! A forward dataflow analysis over the blocks keeps the slots that were read and written since the last
//! barrier. A read of bytes of a written slot, and a write to bytes of a read slot or of another written
//! one, needs a barrier before it, which empties both sets. Stores to one slot belong to one exchange and
//! never overlap, so a write after a write to the same slot needs none: a read, and with it a barrier,
//! stands between two exchanges through it. Atomic steps on one slot need no order among themselves, but one to all
//! else.
//!
//! Copies by `cp_async` write entries of rings that nothing reads meanwhile, which is how pipelines are made. So a copy waits
//! for the readers of its entry as a store does, and what it writes counts as written from the wait on that makes it arrive; what
//! it reads in device memory counts as read from there on.
//!
//! # Device memory
//! An update in place is a load and a store of the same element. Several threads may read that element, because
//! a scalar belongs to all of them or because addresses repeat, and one of them writes it: a barrier before the
//! store lets all have read. An atomic access is a store to plain loads, but no hazard to volatile ones. The barrier is placed
//! where load and store start from the same parameter of the kernel, or from a pointer whose origin is not known. Two
//! parameters may be given one pointer, too: where several threads read an element and one writes for those that hold copies,
//! a barrier stands between whatever the parameters are. Where each thread reads and writes its own elements, that is in order
//! by itself.
//!
//! All branches are uniform over the CTA (conditions are scalars of the program), so every thread reaches
//! every barrier. Sets at block entries only grow, so the iteration ends.

use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;

use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::{Access, How, Space};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;
use crate::ir::units::When;

/// Accesses since the last barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    read: BTreeSet<Slot>,
    written: BTreeSet<Slot>,
    /// Changed by atomic steps.
    counted: BTreeSet<Slot>,
    /// What is not over before a wait; a barrier alone changes nothing.
    under_way: UnderWay,
    /// Where the addresses of loads from device memory come from.
    loaded: BTreeSet<Origin>,
    /// The same for volatile loads, which are atomic.
    loaded_atomically: BTreeSet<Origin>,
    /// Whether several threads loaded the same.
    loaded_copies: bool,
}

/// Accesses that are over behind a wait, which makes them accesses like others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UnderWay {
    read: BTreeSet<Slot>,
    written: BTreeSet<Slot>,
    loaded: BTreeSet<Origin>,
}

/// What a pointer to device memory was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// Nothing seen yet; of the values that can be reached, none stays so.
    #[default]
    Unseen,
    /// This parameter of the kernel.
    Param(Value),
    /// The module's log.
    Log,
    /// Several, or something else.
    Unknown,
}

impl Origin {
    fn join(self, other: Origin) -> Origin {
        match (self, other) {
            (Origin::Unseen, x) | (x, Origin::Unseen) => x,
            (a, b) if a == b => a,
            _ => Origin::Unknown,
        }
    }

    /// Whether two pointers may be to the same element.
    fn meets(self, other: Origin) -> bool {
        let is_log = [self, other].contains(&Origin::Log);
        !is_log && (self == other || self == Origin::Unknown || other == Origin::Unknown)
    }
}

impl Pending {
    /// What is left after a barrier.
    fn pass_barrier(&mut self) {
        let under_way = std::mem::take(&mut self.under_way);
        *self = Pending {
            under_way,
            ..Pending::default()
        };
    }

    /// What is left after a wait.
    fn pass_wait(&mut self) {
        let over = std::mem::take(&mut self.under_way);
        self.read.extend(over.read);
        self.written.extend(over.written);
        self.loaded.extend(over.loaded);
    }

    fn join(&mut self, other: &Pending) -> bool {
        let sizes = |p: &Pending| {
            let loaded = (p.loaded.len(), p.loaded_atomically.len(), p.loaded_copies);
            let shared = (p.read.len(), p.written.len(), p.counted.len());
            let UnderWay {
                read,
                written,
                loaded: late,
            } = &p.under_way;
            (shared, loaded, [read.len(), written.len(), late.len()])
        };
        let before = sizes(self);
        self.read.extend(&other.read);
        self.written.extend(&other.written);
        self.counted.extend(&other.counted);
        self.under_way.read.extend(&other.under_way.read);
        self.under_way.written.extend(&other.under_way.written);
        self.under_way.loaded.extend(&other.under_way.loaded);
        self.loaded.extend(&other.loaded);
        self.loaded_atomically.extend(&other.loaded_atomically);
        self.loaded_copies |= other.loaded_copies;
        before != sizes(self)
    }
}

/// Inserts barriers into a function whose slots are placed; returns how many.
pub fn insert_barriers(func: &mut ThreadFunction) -> usize {
    let origins = origins(func);
    let mut entry: SecondaryMap<Block, Pending> = SecondaryMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &func.order.blocks {
            let mut pending = entry[block].clone();
            for &inst in func.order.insts(block) {
                step(func, &origins, inst, &mut pending);
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
            if step(func, &origins, inst, &mut pending) {
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
fn step(
    func: &ThreadFunction,
    origins: &SecondaryMap<Value, Origin>,
    inst: Inst,
    pending: &mut Pending,
) -> bool {
    let data = &func.dfg.insts[inst];
    if data.op == ThreadOp::Barrier {
        pending.pass_barrier();
        return false;
    }
    if data.op == ThreadOp::CpAsyncWait {
        pending.pass_wait();
        return false;
    }
    let accesses = func.accesses(inst);
    let clashes = |access: &Access| match access.space {
        Space::Shared(Some(slot)) => {
            pending.clashes_in(func, slot, access.how, data.apart().is_some())
        }
        Space::Global(pointer) => {
            pending.clashes_at(origins[pointer], access.how, data.copied().is_some())
        }
        // Of what names no slot nobody knows whom it meets.
        Space::Shared(None) | Space::Log => false,
    };
    let hazard = accesses.iter().any(clashes);
    if hazard {
        pending.pass_barrier();
    }
    for access in &accesses {
        match access.space {
            Space::Shared(Some(slot)) => pending.note_slot(slot, access),
            Space::Global(pointer) => pending.note_load(origins[pointer], data, access),
            Space::Shared(None) | Space::Log => {}
        }
    }
    hazard
}

impl Pending {
    /// Whether an access to a slot must wait for those before; `apart` says that it is to other entries of a ring than those
    /// that are read meanwhile.
    fn clashes_in(&self, func: &ThreadFunction, slot: Slot, how: How, apart: bool) -> bool {
        let clash = |set: &BTreeSet<Slot>, same: bool| {
            set.iter().any(|&other| match other == slot {
                true => same,
                false => overlap(func, slot, other),
            })
        };
        let (read, written) = (&self.read, &self.written);
        match how {
            How::Read => clash(written, true) || clash(&self.counted, true),
            How::Write => {
                let read = clash(read, !apart) || clash(&self.counted, true);
                read || clash(&self.under_way.read, !apart) || clash(written, false)
            }
            How::Atomic => {
                let plain = clash(read, true) || clash(written, true);
                plain || clash(&self.counted, false)
            }
        }
    }

    /// The same for device memory.
    fn clashes_at(&self, origin: Origin, how: How, copied: bool) -> bool {
        let meets = |set: &BTreeSet<Origin>| set.iter().any(|o| o.meets(origin));
        match how {
            How::Read => false,
            How::Write => {
                let copies = copied && self.loaded_copies;
                copies || meets(&self.loaded) || meets(&self.loaded_atomically)
            }
            How::Atomic => meets(&self.loaded),
        }
    }

    fn note_slot(&mut self, slot: Slot, access: &Access) {
        let set = match (access.how, access.when) {
            (How::Read, When::Now) => &mut self.read,
            (How::Write, When::Now) => &mut self.written,
            (How::Atomic, _) => &mut self.counted,
            (How::Read, When::UntilWait) => &mut self.under_way.read,
            (How::Write, When::UntilWait) => &mut self.under_way.written,
        };
        set.insert(slot);
    }

    fn note_load(&mut self, origin: Origin, data: &InstData<Thread>, access: &Access) {
        let set = match (access.how, access.when) {
            (How::Read, When::Now) if data.volatile().is_some() => &mut self.loaded_atomically,
            (How::Read, When::Now) => &mut self.loaded,
            (How::Read, When::UntilWait) => &mut self.under_way.loaded,
            (How::Write | How::Atomic, _) => return,
        };
        set.insert(origin);
        self.loaded_copies |= data.copied().is_some();
    }
}

/// Where each pointer to device memory comes from. Values only move from unseen to a parameter to unknown, so the
/// iteration ends.
fn origins(func: &ThreadFunction) -> SecondaryMap<Value, Origin> {
    let mut origins: SecondaryMap<Value, Origin> = SecondaryMap::new();
    for &param in func.params() {
        origins[param] = Origin::Param(param);
    }
    let is_ptr = |v: Value| func.dfg.ty(v).elem.is_ptr();
    let mut changed = true;
    while changed {
        changed = false;
        let mut flow = |origins: &mut SecondaryMap<Value, Origin>, to: Value, from: Origin| {
            let joined = origins[to].join(from);
            changed |= joined != origins[to];
            origins[to] = joined;
        };
        for &block in &func.order.blocks {
            for &inst in func.order.insts(block) {
                let data = &func.dfg.insts[inst];
                for &result in data.results.iter().filter(|&&v| is_ptr(v)) {
                    let pointers = data.args.iter().filter(|&&v| is_ptr(v));
                    let from = pointers.fold(Origin::Unseen, |o, &v| o.join(origins[v]));
                    let made_here = !data.args.iter().any(|&v| is_ptr(v));
                    let from = match data.op {
                        // No pointer of the kernel leads there.
                        ThreadOp::LogAddr => Origin::Log,
                        _ if made_here => Origin::Unknown,
                        _ => from,
                    };
                    flow(&mut origins, result, from);
                }
                for call in &data.blocks {
                    let params = func.dfg.blocks[call.block].params.iter();
                    for (&param, &arg) in params.zip(&call.args).filter(|&(&p, _)| is_ptr(p)) {
                        let from = origins[arg];
                        flow(&mut origins, param, from);
                    }
                }
            }
        }
    }
    origins
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
mod tests;
