//! Puts barriers where one thread reads shared memory that another may have written, or writes what
//! another may still read.
//!
//! # Shared memory
//! A forward dataflow analysis over the blocks keeps the slots that were read and written since the last
//! barrier. A read of bytes of a written slot, and a write to bytes of a read slot or of another written
//! one, needs a barrier before it, which empties both sets. Stores to one slot belong to one exchange and
//! never overlap, so a write after a write to the same slot needs none: a read, and with it a barrier,
//! stands between two exchanges through it. Not so where a loop stands in another one: its last iterations fill entries of
//! a ring that nobody reads, and what fills the ring again in front of the loop waits for that; after copies, what stores do so, as
//! their threads may be others. Atomic steps on one slot need no order among themselves, but one to all
//! else.
//!
//! Copies by `cp_async` write entries of rings that nothing reads meanwhile, which is how pipelines are made. So a copy waits
//! for the readers of its entry as a store does, and what it writes counts as written from the wait on that makes it arrive; what
//! it reads in device memory counts as read from there on. A copy that is `apart` goes to another entry than its iteration reads: it waits for
//! readers of iterations before alone, behind which there is a barrier as a rule.
//!
//! Products by warpgroups read their slots until a wait ([`ThreadOp::WgmmaWait`]), which counts the groups committed
//! since. What is stored there meanwhile, or to bytes they share with other slots, needs a wait and a barrier, both of which are put
//! in front of it. Copies go to entries that no product under way reads, so they need a barrier alone, behind the wait for those
//! that did. The units see what threads stored only behind a fence of each writer ([`ThreadOp::FenceAsync`]) and a barrier. Such a
//! fence waits for all that a thread has under way, copies of later iterations too, so it stands only where what was stored is read by
//! an engine, or where an engine fills its bytes. What copies by `cp_async` brought needs none: the units see it behind the wait for the
//! copies and a barrier. The manual asks for a fence there as well; CUTLASS's products by `cp.async` and Triton's do without.
//!
//! Boxes that the copy engine brings arrive on barriers of their own, at which every thread waits, so that no other stands between
//! a box and its readers. The engine writes where threads wrote before only behind a fence, and where they read behind a barrier, to which
//! [`super::fence_copies`] adds a fence of its own.
//!
//! Boxes that the engine stores are read from their slots, and written to device memory, until a wait of the thread that started
//! them. Who writes to bytes of such a slot waits for the reading alone ([`ThreadOp::BulkWaitRead`]), as does the end of the
//! kernel, behind which shared memory belongs to others; all of them are in memory before anything that tells others about it
//! (atomic steps, barriers of the author, dependent launches, unknown instructions) and before accesses by pointers that may
//! meet theirs ([`ThreadOp::BulkWait`]). Waits stand there and not behind the stores, so that these go on meanwhile.
//!
//! # Device memory
//! An update in place is a load and a store of the same element. Several threads may read that element, because
//! a scalar belongs to all of them or because addresses repeat, and one of them writes it: a barrier before the
//! store lets all have read. An atomic access is a store to plain loads, but no hazard to volatile ones. The barrier is placed
//! where load and store start from the same parameter of the kernel, or from a pointer whose origin is not known. Two
//! parameters may be given one pointer, too: where several threads read an element and one writes for those that hold copies,
//! a barrier stands between whatever the parameters are. Where each thread reads and writes its own elements, that is in order
//! by itself: such stores say so. Of loads that one thread alone executes, as it alone needs the element, there are no copies.
//!
//! Of two barriers with nothing but computation between, as the author's and that of an atomic step behind it, one is left.
//!
//! All branches are uniform over the CTA (conditions are scalars of the program), so every thread reaches
//! every barrier. Sets at block entries only grow, so the iteration ends.

mod origins;
mod pending;

use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;

use self::origins::{Origin, origins};
use self::pending::{BulkWait, Pending, Waiters, both};
use super::group_barriers::{OF_GROUPS, at_barrier, group, group_threads};
use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::{Access, AccessSpace, How, OpClass, Proxy};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::maker::Maker;
use crate::ir::matrix_units::When;
use crate::ir::ops::ThreadOp;

/// What must stand in front of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needed {
    /// A barrier.
    barrier: Option<Waiters>,
    /// Before it a fence for units that read for the threads.
    fence: bool,
    /// Before that a wait for products.
    wait: bool,
    /// And one for boxes that are stored, which leaves so many groups of them under way.
    bulk: Option<(BulkWait, u32)>,
}

/// What is known of the function beside what is pending.
struct Facts {
    /// Where pointers to device memory come from.
    origins: SecondaryMap<Value, Origin>,
    /// Slots that engines read for the threads.
    read: BTreeSet<Slot>,
    /// Slots that engines fill for the threads, and those that share bytes with them.
    filled: BTreeSet<Slot>,
    /// Slots from which boxes are stored.
    stored: BTreeSet<Slot>,
}

/// Inserts barriers into a function whose slots are placed; returns how many.
pub fn insert_barriers(func: &mut ThreadFunction) -> usize {
    let facts = Facts {
        origins: origins(func),
        read: by_engines(func, |_, how| how == How::Read),
        filled: filled(func),
        stored: by_engines(func, |op, how| {
            op == ThreadOp::TensorStore && how == How::Read
        }),
    };
    let mut entry: SecondaryMap<Block, Pending> = SecondaryMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        for (at, &block) in func.order.blocks.iter().enumerate() {
            let mut pending = entry[block].clone();
            for &inst in func.order.insts(block) {
                step(func, &facts, inst, &mut pending);
            }
            let Some(last) = func.order.last(block) else {
                continue;
            };
            for call in &func.dfg.insts[last].blocks {
                let mut given = pending.clone();
                if func.order.blocks[..=at].contains(&call.block) {
                    given.turn();
                }
                changed |= entry[call.block].join(&given);
            }
        }
    }
    let mut count = 0;
    let mut own_group = None;
    for block in func.order.blocks.clone() {
        let mut pending = entry[block].clone();
        let insts = func.order.insts(block).to_vec();
        let mut with_barriers = Vec::with_capacity(insts.len());
        // The barrier of all threads behind which nothing happened but computation.
        let mut behind: Option<Inst> = None;
        for inst in insts {
            let is_barrier = func.dfg.insts[inst].op == ThreadOp::Barrier;
            let is_same = |before: Inst| func.dfg.insts[before].attrs == func.dfg.insts[inst].attrs;
            if is_barrier && behind.is_some_and(is_same) {
                // The author's, and that of an atomic step: one is enough.
                continue;
            }
            let needed = step(func, &facts, inst, &mut pending);
            if needed.wait {
                let mut data: InstData<Thread> = InstData::new(ThreadOp::WgmmaWait, &[]);
                data.attrs.push(make::pending(0));
                with_barriers.push(func.dfg.make_inst(data, &[]));
            }
            if let Some((how, left)) = needed.bulk {
                let op = match how {
                    BulkWait::Read => ThreadOp::BulkWaitRead,
                    BulkWait::Whole => ThreadOp::BulkWait,
                };
                let mut data: InstData<Thread> = InstData::new(op, &[]);
                data.attrs.push(make::pending(left));
                with_barriers.push(func.dfg.make_inst(data, &[]));
            }
            if needed.fence {
                let data = InstData::new(ThreadOp::FenceAsync, &[]);
                with_barriers.push(func.dfg.make_inst(data, &[]));
            }
            if let Some(waiters) = needed.barrier {
                // Groups that take turns wait for themselves.
                with_barriers.push(match waiters {
                    Waiters::All if func.groups() == 1 => make_barrier(func),
                    Waiters::All | Waiters::Group => {
                        let (_, own) = own_group.get_or_insert_with(|| {
                            let mut head = Maker::new(func);
                            let own = group(&mut head, OF_GROUPS);
                            (head.made, own)
                        });
                        at_barrier(func, ThreadOp::GroupBarrier, &[*own], group_threads())
                    }
                });
                count += 1;
            }
            with_barriers.push(inst);
            behind = match func.dfg.insts[inst].class() {
                _ if is_barrier => Some(inst),
                OpClass::Constant | OpClass::Elementwise | OpClass::Shape => behind,
                _ => None,
            };
        }
        func.order.replace(block, with_barriers);
    }
    if let Some((head, _)) = own_group {
        let list = [&head, func.order.insts(func.entry)].concat();
        func.order.replace(func.entry, list);
    }
    count
}

/// The slots that engines access so, by which instruction and how.
fn by_engines(func: &ThreadFunction, is_so: impl Fn(ThreadOp, How) -> bool) -> BTreeSet<Slot> {
    let accesses = func.all_insts().flat_map(|(_, inst)| {
        let op = func.dfg.insts[inst].op;
        let of_op = func.accesses(inst).into_iter();
        of_op.map(move |access| (op, access))
    });
    let by_engines =
        accesses.filter(|(op, access)| access.proxy == Proxy::Async && is_so(*op, access.how));
    let slots = by_engines.filter_map(|(_, access)| match access.space {
        AccessSpace::Shared(slot) => slot,
        AccessSpace::Global(_) | AccessSpace::Log => None,
    });
    slots.collect()
}

/// The slots that engines fill, and those that share bytes with them.
fn filled(func: &ThreadFunction) -> BTreeSet<Slot> {
    let slots = by_engines(func, |_, how| how == How::Write);
    let meets = |slot: &Slot| slots.iter().any(|&s| s == *slot || overlap(func, s, *slot));
    func.slots.keys().filter(meets).collect()
}

fn make_barrier(func: &mut ThreadFunction) -> Inst {
    let mut data: InstData<Thread> = InstData::new(ThreadOp::Barrier, &[]);
    data.attrs
        .extend([make::id(0), make::threads(func.num_threads())]);
    func.dfg.make_inst(data, &[])
}

/// Updates `pending` across an instruction; gives what must stand before it.
fn step(func: &ThreadFunction, facts: &Facts, inst: Inst, pending: &mut Pending) -> Needed {
    let data = &func.dfg.insts[inst];
    let mut needed = Needed::default();
    match data.op {
        ThreadOp::Barrier => {
            needed.bulk = pending.wait_for_boxes(None, true);
            pending.pass_barrier();
        }
        ThreadOp::Return => needed.bulk = pending.wait_for_boxes(Some(0), false),
        ThreadOp::BulkCommit => pending.commit_boxes(),
        ThreadOp::BulkWaitRead => {
            pending.pass_bulk_wait(BulkWait::Read, data.pending().copied().unwrap_or(0));
        }
        ThreadOp::BulkWait => {
            pending.pass_bulk_wait(BulkWait::Whole, data.pending().copied().unwrap_or(0));
        }
        ThreadOp::CpAsyncWait => {
            pending.pass_wait(facts, data.pending().copied().unwrap_or(0));
        }
        ThreadOp::WgmmaCommit => pending.commit(),
        ThreadOp::WgmmaWait => pending.finish(data.pending().copied().unwrap_or(0)),
        _ => return access_step(func, facts, inst, pending),
    }
    needed
}

/// Whether an instruction may tell others of what is in device memory.
fn publishes(data: &InstData<Thread>) -> bool {
    match data.class() {
        OpClass::Foreign => true,
        // What threads and engines say to each other.
        OpClass::Sync => !matches!(
            data.op,
            ThreadOp::WgmmaFence
                | ThreadOp::Wgmma
                | ThreadOp::WgmmaCommit
                | ThreadOp::WgmmaWait
                | ThreadOp::CpAsyncCommit
                | ThreadOp::CpAsyncWait
                | ThreadOp::FenceAsync
                | ThreadOp::FenceMbarInit
                | ThreadOp::WarpBarrier
                | ThreadOp::BulkCommit
                | ThreadOp::BulkWaitRead
                | ThreadOp::BulkWait
        ),
        OpClass::Constant
        | OpClass::Elementwise
        | OpClass::Shape
        | OpClass::Exchange
        | OpClass::Matrix
        | OpClass::Memory
        | OpClass::Report
        | OpClass::Region
        | OpClass::End => false,
    }
}

/// The same across an instruction that accesses memory, or does not.
fn access_step(func: &ThreadFunction, facts: &Facts, inst: Inst, pending: &mut Pending) -> Needed {
    let data = &func.dfg.insts[inst];
    let accesses = func.accesses(inst);
    let apart = data.apart().is_some();
    let meets_product = |access: &Access| match access.space {
        AccessSpace::Shared(Some(slot)) => pending.meets_product(func, slot, access, apart),
        AccessSpace::Shared(None) | AccessSpace::Global(_) | AccessSpace::Log => false,
    };
    let wait = accesses.iter().any(meets_product);
    if wait {
        pending.finish(0);
    }
    let clashes = |access: &Access| match access.space {
        AccessSpace::Shared(Some(slot)) => pending.clashes_in(func, slot, access, apart),
        AccessSpace::Global(pointer) => {
            let copied = data.copied().is_some();
            let clash = pending.clashes_at(facts.origins[pointer], access.how, copied, apart);
            clash.then_some(Waiters::All)
        }
        // Of what names no slot nobody knows whom it meets.
        AccessSpace::Shared(None) | AccessSpace::Log => None,
    };
    let mut barrier = accesses.iter().filter_map(clashes).max();
    if wait {
        barrier = Some(Waiters::All);
    }
    let meets_bytes = |access: &Access| match access.space {
        AccessSpace::Shared(Some(slot)) if access.how != How::Read => {
            pending.is_sent_from(func, slot)
        }
        AccessSpace::Shared(_) | AccessSpace::Global(_) | AccessSpace::Log => None,
    };
    let meets_boxes = |access: &Access| match access.space {
        // What is written twice has a barrier between.
        AccessSpace::Global(_) if data.op == ThreadOp::TensorStore => false,
        AccessSpace::Global(pointer) => {
            let meets = |&sent: &Origin| sent.meets(facts.origins[pointer]);
            access.how == How::Atomic || pending.sent.iter().any(meets)
        }
        AccessSpace::Shared(_) | AccessSpace::Log => false,
    };
    let is_whole = publishes(data) || accesses.iter().any(meets_boxes);
    let sent_from = accesses.iter().filter_map(meets_bytes).reduce(both);
    let bulk = pending.wait_for_boxes(sent_from.map(|(_, left)| left), is_whole);
    if let Some((how, _)) = bulk {
        let all = (how == BulkWait::Whole).then_some(Waiters::All);
        barrier = barrier.max(all.or(sent_from.map(|(waiters, _)| waiters)));
    }
    let fence = barrier.is_some() && !pending.unfenced.is_empty();
    match barrier {
        Some(Waiters::All) => {
            pending.pass_barrier();
            pending.unfenced.clear();
        }
        Some(Waiters::Group) => {
            pending.pass_group_barrier(func);
            pending.unfenced.retain(|&slot| !func.slots[slot].by_group);
        }
        None => {}
    }
    for access in &accesses {
        match access.space {
            AccessSpace::Shared(Some(slot)) if data.op == ThreadOp::TensorStore => {
                pending.sending.insert((slot, 0));
            }
            AccessSpace::Shared(Some(slot)) => {
                if apart && access.when == When::Now {
                    pending.written_apart.insert(slot);
                }
                pending.note_slot(facts, slot, access);
            }
            AccessSpace::Global(pointer) if data.op == ThreadOp::TensorStore => {
                pending.sent.insert(facts.origins[pointer]);
            }
            AccessSpace::Global(pointer) => pending.note_load(facts.origins[pointer], data, access),
            AccessSpace::Shared(None) | AccessSpace::Log => {}
        }
    }
    Needed {
        barrier,
        fence,
        wait,
        bulk,
    }
}

/// Whether two placed slots share bytes; slots without a place might.
pub(super) fn overlap(func: &ThreadFunction, a: Slot, b: Slot) -> bool {
    let range = |s: Slot| func.slots[s].offset.map(|o| (o, o + func.slots[s].bytes));
    match (range(a), range(b)) {
        (Some((a0, a1)), Some((b0, b1))) => a0 < b1 && b0 < a1,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
