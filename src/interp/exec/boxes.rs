//! Boxes of tensors, and barriers on which copies of them arrive.
//!
//! A copy reads memory at once, but what it brings stands in the ring only when somebody waits for its barrier, or when the
//! barrier's next phase begins; until then the entry holds nothing.
//!
//! # Why producers need no turns
//!
//! A producer and its program run at the same time, and here one after the other: the producer to its end, then the program. That
//! shows the same as taking turns would. What a producer does depends on nothing that its program does meanwhile: it has scalars
//! that pure ops and loads make of the kernel's (V24), and reads blocks of memory by `tensor_copy`, into rings that it never looks at. So
//! its waits and what it brings are one list, whoever runs when. The list is kept, and the program takes from it: what is brought
//! comes when every wait in front of it in the list is over, as the phases that the program ended until then say. The program waits
//! in vain exactly where no order of turns could let it go on; so does the producer if a wait of it is not over when the program
//! ends. A wait that may give up (`mbar_wait_for`) counts as one that does not. Memory that a producer reads must be written by
//! nobody while the kernel runs: it counts as a party of its own when races are searched for, ordered with nothing.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::rings::Entry;
use super::tolerance::{Off, combined};
use super::{Elems, Machine, Outcome, Results, Slack, operand, required};
use crate::interp::error::InterpErrorKind;
use crate::interp::races::AccessKind;
use crate::interp::{float, int};
use crate::ir::attrs::{Attrs, MemOrder, RmwOp};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Slot};
use crate::ir::function::MBAR_BYTES;
use crate::ir::level::Tile;
use crate::ir::types::Scalar;

/// A tensor in memory, and the box of it that is copied at once; the outermost dimension comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    base: u64,
    elem: Scalar,
    extents: Vec<u64>,
    /// In bytes.
    strides: Vec<u64>,
    tile: Vec<u64>,
}

/// A barrier for copies.
#[derive(Clone, Debug, Default)]
struct Mbar {
    /// Arrivals that end a phase.
    count: u64,
    /// Arrivals in the phase that goes on.
    arrived: u64,
    /// Bytes that arrivals announced less those that came.
    missing: i64,
    /// Phases that ended.
    ended: u64,
    /// What is on its way.
    copies: Vec<(Entry, Elems)>,
    /// What a producer brings for phases to come, the next first.
    batches: VecDeque<Batch>,
    /// Waits of a producer so far.
    waits: u64,
    /// Phases that somebody waited for.
    asked: u64,
    /// Whether the program gives entries back on it.
    is_given: bool,
}

/// What a producer brings for one phase of a barrier.
#[derive(Clone, Debug)]
struct Batch {
    /// Bytes announced less those that come.
    missing: i64,
    copies: Vec<(Entry, Elems)>,
    /// How many waits of the producer stand in front of it.
    behind: usize,
}

/// A wait of a producer: the barrier, and how many of its phases must have ended.
#[derive(Clone, Copy, Debug)]
struct Wait {
    barrier: Entry,
    ended: u64,
}

/// Tensors and barriers of a program.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    tensors: Vec<Tensor>,
    barriers: FxHashMap<Entry, Mbar>,
    /// What was left in slots.
    numbers: FxHashMap<Slot, u64>,
    /// Whether the producer runs. It runs ahead of the program, to its end: what it brings waits at its barriers.
    produces: bool,
    /// All waits of the producer in order, and how many of them are over.
    waits: Vec<Wait>,
    passed: usize,
}

impl Machine<'_> {
    /// The number of the tensor among those of the program.
    pub(super) fn tensor_map(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        if self.single(data, 1)? != 1 {
            return Err(InterpErrorKind::NoMap);
        }
        let tile: Vec<u64> = required(data.values())?
            .iter()
            .map(|&e| u64::from(e))
            .collect();
        let elem = self.pointee(data)?;
        let bytes = u64::from(elem.bytes());
        let numbers: Vec<u64> = (2..data.args.len())
            .map(|i| self.single(data, i))
            .collect::<Outcome<_>>()?;
        let (extents, strides) = numbers.split_at(tile.len());
        let strides = strides.iter().map(|s| s.wrapping_mul(bytes));
        let tensor = Tensor {
            base: self.single(data, 0)?,
            elem,
            extents: extents.to_vec(),
            strides: strides.chain([bytes]).collect(),
            tile,
        };
        let tensors = &mut self.boxes.tensors;
        let known = tensors.iter().position(|known| *known == tensor);
        let number = known.unwrap_or_else(|| {
            tensors.push(tensor);
            tensors.len() - 1
        });
        Ok(Elems::from_elem(number as u64, 1))
    }

    /// Addresses of the box of the tensor that is operand 0, whose coordinates begin at operand `first`: none for what is
    /// outside. And what it holds.
    fn places(&self, data: &InstData<Tile>, first: usize) -> Outcome<(Vec<Option<u64>>, Scalar)> {
        let number = self.single(data, 0)? as usize;
        let tensor = required(self.boxes.tensors.get(number))?;
        let start: Vec<i64> = (first..data.args.len())
            .map(|i| Ok(int::signed(32, self.single(data, i)?)))
            .collect::<Outcome<_>>()?;
        let bytes = tensor.elem.bytes();
        let innermost = start.last().copied().unwrap_or(0);
        if innermost * i64::from(bytes) % 16 != 0 {
            return Err(InterpErrorKind::BoxStart { start: innermost });
        }
        let count: u64 = tensor.tile.iter().product();
        let place = |i: u64| {
            let (mut rest, mut address, mut is_inside) = (i, tensor.base, true);
            for dim in (0..tensor.tile.len()).rev() {
                let at = start[dim] + (rest % tensor.tile[dim]) as i64;
                rest /= tensor.tile[dim];
                is_inside &= u64::try_from(at).is_ok_and(|at| at < tensor.extents[dim]);
                address = address.wrapping_add((at as u64).wrapping_mul(tensor.strides[dim]));
            }
            is_inside.then_some(address)
        };
        Ok(((0..count).map(place).collect(), tensor.elem))
    }

    fn read_box(&mut self, data: &InstData<Tile>, first: usize) -> Outcome<Elems> {
        let (places, elem) = self.places(data, first)?;
        let mut elems = Elems::new();
        for (i, place) in places.into_iter().enumerate() {
            self.element = Some(i);
            elems.push(match place {
                Some(address) => self.memory.load(address, elem.bytes(), AccessKind::Read)?,
                None => 0,
            });
            self.stats.loaded += u64::from(place.is_some());
        }
        self.element = None;
        Ok(elems)
    }

    /// How far elements of a box may be from what other executors read.
    pub(super) fn box_slack(&self, slack: &Slack, data: &InstData<Tile>) -> Outcome<Vec<Off>> {
        slack.decides(&data.args)?;
        let (places, elem) = self.places(data, 1)?;
        let of =
            |place: Option<u64>| place.map_or(Off::default(), |address| slack.at(address, elem));
        Ok(places.into_iter().map(of).collect())
    }

    pub(super) fn tensor_load(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        self.read_box(data, 1)
    }

    /// Writes what is inside of the tensor, or adds it.
    pub(super) fn tensor_store(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let (places, elem) = self.places(data, 2)?;
        let number = self.single(data, 0)? as usize;
        let tensor = required(self.boxes.tensors.get(number))?;
        let extent = tensor.extents.last().copied().unwrap_or(0);
        let columns = tensor.tile.last().copied().unwrap_or(0);
        let start = int::signed(32, self.single(data, data.args.len() - 1)?);
        let is_cut =
            start < extent as i64 && (extent as i64) < start.saturating_add(columns as i64);
        if is_cut && extent.wrapping_mul(u64::from(elem.bytes())) % 16 != 0 {
            return Err(InterpErrorKind::BoxEnd { extent });
        }
        for i in 2..data.args.len() {
            let start = int::signed(32, self.single(data, i)?);
            if start < 0 {
                return Err(InterpErrorKind::BoxBefore { start });
            }
        }
        let value = operand(data, 1)?;
        let elems = self.get(value)?.clone();
        self.check_decided(&data.args[2..])?;
        let mut slack = self.slack.take();
        for (i, (place, bits)) in places.into_iter().zip(elems).enumerate() {
            let Some(address) = place else {
                continue;
            };
            self.element = Some(i);
            self.stats.stored += 1;
            let mut off = slack
                .as_ref()
                .map_or(Off::default(), |slack| slack.off(value, i));
            match data.rmw() {
                None => self.memory.store(address, elem.bytes(), bits)?,
                Some(&rmw) => {
                    let old = self
                        .memory
                        .load(address, elem.bytes(), AccessKind::Atomic)?;
                    self.stats.loaded += 1;
                    let sum = added(rmw, elem, old, bits);
                    self.memory.replace(address, elem.bytes(), sum)?;
                    self.memory.synchronise(address, MemOrder::Relaxed, false);
                    let before = slack
                        .as_ref()
                        .map_or(Off::default(), |slack| slack.at(address, elem));
                    off = combined(rmw, elem, [before, off], [old, bits]);
                }
            }
            if let Some(slack) = &mut slack {
                slack.keep(address, elem, off);
            }
        }
        self.element = None;
        self.slack = slack;
        Ok(())
    }

    pub(super) fn tensor_copy(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        if self.single(data, 2)? != 1 {
            return Ok(());
        }
        let entry = self.entry(data, 1)?;
        let elems = self.read_box(data, 3)?;
        let number = self.single(data, 0)? as usize;
        let elem = required(self.boxes.tensors.get(number))?.elem;
        let bytes = elems.len() as i64 * i64::from(elem.bytes());
        let bars = required(data.bars())?;
        if self.boxes.produces {
            let barrier = self.barrier(bars, entry.1)?;
            let batch = barrier.batches.back_mut();
            let batch = batch.ok_or(InterpErrorKind::NoBarrier {
                slot: bars,
                index: entry.1,
            })?;
            batch.missing -= bytes;
            batch.copies.push((entry, elems));
            return Ok(());
        }
        self.rings.begin_change(entry)?;
        let barrier = self.barrier(bars, entry.1)?;
        barrier.missing -= bytes;
        barrier.copies.push((entry, elems));
        Ok(())
    }

    pub(super) fn mbar_init(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let slot = required(data.slot())?;
        let count = u64::from(required(data.count())?);
        for index in 0..self.func.slots[slot].bytes / MBAR_BYTES {
            let barrier = Mbar {
                count,
                ..Mbar::default()
            };
            let entry = (slot, u64::from(index));
            self.boxes.barriers.insert(entry, barrier);
        }
        Ok(())
    }

    pub(super) fn mbar_drop(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let slot = required(data.slot())?;
        self.check_balance(|of| of == slot)?;
        self.boxes.barriers.retain(|&(of, _), _| of != slot);
        Ok(())
    }

    /// Whether the program took all that its producer brings to these barriers, and gave nothing back that nobody waits for.
    pub(super) fn check_balance(&mut self, is_meant: impl Fn(Slot) -> bool) -> Outcome<()> {
        self.pass_waits()?;
        let stuck = &self.boxes.waits[self.boxes.passed..];
        if let Some(&Wait { barrier, .. }) = stuck.iter().find(|wait| is_meant(wait.barrier.0)) {
            let (slot, index) = barrier;
            return Err(InterpErrorKind::Stuck { slot, index });
        }
        let mut meant: Vec<Entry> = self.boxes.barriers.keys().copied().collect();
        meant.retain(|&(slot, _)| is_meant(slot));
        meant.sort_unstable();
        for (slot, index) in meant {
            let barrier = self.barrier(slot, index)?;
            if !barrier.batches.is_empty() {
                return Err(InterpErrorKind::Unwaited { slot, index });
            }
            let arrivals = barrier.ended * barrier.count + barrier.arrived;
            if barrier.is_given && barrier.asked * barrier.count < arrivals {
                return Err(InterpErrorKind::Unasked { slot, index });
            }
        }
        Ok(())
    }

    pub(super) fn mbar_expect(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        if self.single(data, 1)? != 1 {
            return Ok(());
        }
        let (slot, index) = (required(data.slot())?, self.single(data, 0)?);
        let bytes = i64::from(required(data.bytes())?);
        let behind = self.boxes.waits.len();
        let produces = self.boxes.produces;
        let barrier = self.barrier(slot, index)?;
        if produces {
            barrier.batches.push_back(Batch {
                missing: bytes,
                copies: Vec::new(),
                behind,
            });
            return Ok(());
        }
        barrier.arrived += 1;
        barrier.missing += bytes;
        Ok(())
    }

    /// All warps arrive.
    pub(super) fn mbar_arrive(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        if self.single(data, 1)? != 1 {
            return Ok(());
        }
        let (slot, index) = (required(data.slot())?, self.single(data, 0)?);
        let warps = u64::from(self.func.num_warps());
        let barrier = self.barrier(slot, index)?;
        barrier.is_given = true;
        barrier.arrived += warps;
        self.barrier(slot, index).map(|_| ())
    }

    /// Leaves a number in a slot.
    pub(super) fn slot_put(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let (slot, number) = (required(data.slot())?, self.single(data, 0)?);
        self.boxes.numbers.insert(slot, number);
        Ok(())
    }

    /// The number that was left in a slot.
    pub(super) fn slot_get(&mut self, data: &InstData<Tile>) -> Outcome<u64> {
        let slot = required(data.slot())?;
        let number = self.boxes.numbers.get(&slot).copied();
        number.ok_or(InterpErrorKind::EmptyEntry { slot, index: 0 })
    }

    /// Nobody reads an entry before it is filled again.
    pub(super) fn release(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        if self.single(data, 1)? != 1 {
            return Ok(());
        }
        let entry = self.entry(data, 0)?;
        self.rings.begin_change(entry)
    }

    /// Runs the producer to its end: what it brings is kept for those who wait for it, and stands in the rings when all that had
    /// to be given back before was.
    pub(super) fn produce(&mut self, region: Block) -> Outcome<()> {
        self.boxes.produces = true;
        let known = self.memory.enter_producer();
        let done = self.region(region, Results::new());
        self.memory.leave_producer(known);
        self.boxes.produces = false;
        done.map(|_| ())
    }

    /// The producer waits for what the program has given back: it goes on, and what it brings does not.
    fn wait_ahead(&mut self, slot: Slot, index: u64, phase: u64) -> Outcome<()> {
        let barrier = self.barrier(slot, index)?;
        let ended = barrier.waits;
        barrier.waits += 1;
        // The first wait is for nothing. What the last one lets in is given back once more.
        barrier.asked = barrier.waits;
        if (ended + 1) & 1 != phase {
            return Err(InterpErrorKind::NoArrival { slot, index });
        }
        let barrier = (slot, index);
        self.boxes.waits.push(Wait { barrier, ended });
        Ok(())
    }

    /// The producer goes on as far as the phases that ended let it.
    fn pass_waits(&mut self) -> Outcome<()> {
        while let Some(&Wait { barrier, ended }) = self.boxes.waits.get(self.boxes.passed) {
            if self.barrier(barrier.0, barrier.1)?.ended < ended {
                break;
            }
            self.boxes.passed += 1;
        }
        Ok(())
    }

    /// Lets the next batch of a producer arrive, if it may.
    fn land(&mut self, slot: Slot, index: u64) -> Outcome<()> {
        self.pass_waits()?;
        let passed = self.boxes.passed;
        let barrier = self.barrier(slot, index)?;
        let batch = barrier.batches.front().cloned();
        let Some(batch) = batch.filter(|batch| batch.behind <= passed) else {
            return Ok(());
        };
        for &(entry, _) in &batch.copies {
            self.rings.check_free(entry)?;
        }
        let barrier = self.barrier(slot, index)?;
        barrier.batches.pop_front();
        barrier.missing += batch.missing;
        barrier.arrived += 1;
        barrier.copies.extend(batch.copies);
        Ok(())
    }

    pub(super) fn mbar_wait(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let slot = required(data.slot())?;
        let (index, phase) = (self.single(data, 0)?, self.single(data, 1)?);
        if self.boxes.produces {
            return self.wait_ahead(slot, index, phase);
        }
        let is_over = |barrier: &mut Mbar| {
            let is_over = barrier.ended & 1 != phase;
            if is_over {
                barrier.asked = barrier.asked.max(barrier.ended);
            }
            is_over
        };
        // A wait for the phase before the one that goes on does not end that.
        let known = self.boxes.barriers.get_mut(&(slot, index));
        if known.is_some_and(is_over) || is_over(self.barrier(slot, index)?) {
            return Ok(());
        }
        self.land(slot, index)?;
        if is_over(self.barrier(slot, index)?) {
            return Ok(());
        }
        // Nobody else is there who could still arrive.
        Err(InterpErrorKind::NoArrival { slot, index })
    }

    /// The barrier, whose phase has ended if nothing is missing.
    fn barrier(&mut self, slot: Slot, index: u64) -> Outcome<&mut Mbar> {
        let Some(barrier) = self.boxes.barriers.get_mut(&(slot, index)) else {
            return Err(InterpErrorKind::NoBarrier { slot, index });
        };
        if barrier.arrived == barrier.count && barrier.missing == 0 {
            barrier.arrived = 0;
            barrier.ended += 1;
            for (entry, elems) in barrier.copies.drain(..) {
                self.rings.fill(entry, elems);
            }
        }
        Ok(barrier)
    }
}

/// What the copy engine makes of an element in memory: subnormal numbers of all types stay.
fn added(rmw: RmwOp, elem: Scalar, old: u64, new: u64) -> u64 {
    match rmw {
        RmwOp::Fadd => float::add(elem, old, new),
        _ => int::add(elem.bits(), old, new),
    }
}
