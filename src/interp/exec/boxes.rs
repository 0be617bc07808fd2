//! Boxes of tensors, and barriers on which copies of them arrive.
//!
//! A copy reads memory at once, but what it brings stands in the ring only when somebody waits for its barrier, or when the
//! barrier's next phase begins; until then the entry holds nothing.

use rustc_hash::FxHashMap;

use super::rings::Entry;
use super::{Elems, Machine, Outcome, Slack, operand, required};
use crate::interp::error::InterpErrorKind;
use crate::interp::int;
use crate::interp::order::Kind;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::Slot;
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
}

/// Tensors and barriers of a program.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    tensors: Vec<Tensor>,
    barriers: FxHashMap<Entry, Mbar>,
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
                Some(address) => self.memory.load(address, elem.bytes(), Kind::Read)?,
                None => 0,
            });
            self.stats.loaded += u64::from(place.is_some());
        }
        self.element = None;
        Ok(elems)
    }

    /// How far elements of a box may be from what other executors read.
    pub(super) fn box_slack(&self, slack: &Slack, data: &InstData<Tile>) -> Outcome<Vec<f64>> {
        if data.args.iter().any(|&v| slack.is_loose(v)) {
            return Err(InterpErrorKind::Undecided);
        }
        let (places, elem) = self.places(data, 1)?;
        let of = |place: Option<u64>| place.map_or(0.0, |address| slack.at(address, elem));
        Ok(places.into_iter().map(of).collect())
    }

    pub(super) fn tensor_load(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        self.read_box(data, 1)
    }

    /// Writes what is inside of the tensor.
    pub(super) fn tensor_store(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let (places, elem) = self.places(data, 2)?;
        let value = operand(data, 1)?;
        let elems = self.get(value)?.clone();
        let mut slack = self.slack.take();
        if slack
            .as_ref()
            .is_some_and(|slack| data.args[2..].iter().any(|&v| slack.is_loose(v)))
        {
            return Err(InterpErrorKind::Undecided);
        }
        for (i, (place, bits)) in places.into_iter().zip(elems).enumerate() {
            let Some(address) = place else {
                continue;
            };
            self.element = Some(i);
            self.memory.store(address, elem.bytes(), bits)?;
            self.stats.stored += 1;
            if let Some(slack) = &mut slack {
                slack.keep(address, elem, slack.of(value, i));
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
        self.rings.begin_change(entry)?;
        let bytes = elems.len() as i64 * i64::from(elem.bytes());
        let bars = required(data.bars())?;
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
        self.boxes.barriers.retain(|&(of, _), _| of != slot);
        Ok(())
    }

    pub(super) fn mbar_expect(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        if self.single(data, 1)? != 1 {
            return Ok(());
        }
        let (slot, index) = (required(data.slot())?, self.single(data, 0)?);
        let bytes = i64::from(required(data.bytes())?);
        let barrier = self.barrier(slot, index)?;
        barrier.arrived += 1;
        barrier.missing += bytes;
        Ok(())
    }

    pub(super) fn mbar_wait(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let slot = required(data.slot())?;
        let (index, phase) = (self.single(data, 0)?, self.single(data, 1)?);
        let known = self.boxes.barriers.get(&(slot, index));
        let goes_on = |barrier: &Mbar| barrier.ended & 1 == phase;
        if known.is_some_and(|barrier| !goes_on(barrier)) || !goes_on(self.barrier(slot, index)?) {
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
