//! Loads, stores and atomic accesses.

use smallvec::SmallVec;

use crate::interp::error::InterpErrorKind;
use crate::interp::races::AccessKind;
use crate::interp::{float, int};
use crate::ir::attrs::{Attrs, MemOrder, RmwOp};
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;
use crate::ir::types::Scalar;
use crate::num;

use super::{Elems, Machine, Outcome, defined, malformed, operand, required};

impl Machine<'_> {
    pub(super) fn pointee(&self, data: &InstData<Tile>) -> Outcome<Scalar> {
        let elem = self.func.dfg.ty(operand(data, 0)?).elem;
        elem.pointee()
            .ok_or_else(|| malformed("an operand is no pointer"))
    }

    pub(super) fn load(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let pointee = self.pointee(data)?;
        let pointers = defined(&self.values, operand(data, 0)?)?;
        let optional = |i: usize| data.args.get(i).map(|&v| defined(&self.values, v));
        let (mask, other) = (optional(1).transpose()?, optional(2).transpose()?);
        let kind = match data.volatile() {
            Some(_) => AccessKind::StrongRead,
            None => AccessKind::Read,
        };
        let mut elems = Elems::with_capacity(pointers.len());
        let is_block = pointers.len() > 1;
        for (i, &address) in pointers.iter().enumerate() {
            self.element = is_block.then_some(i);
            let elem = if mask.is_none_or(|m| m[i] == 1) {
                self.stats.loaded += 1;
                let elem = self.memory.load(address, pointee.bytes(), kind)?;
                if pointee == Scalar::I1 {
                    u64::from(elem != 0)
                } else {
                    elem
                }
            } else {
                other.map_or(0, |o| o[i])
            };
            elems.push(elem);
        }
        Ok(elems)
    }

    pub(super) fn store(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let pointee = self.pointee(data)?;
        let pointers = defined(&self.values, operand(data, 0)?)?;
        let elems = defined(&self.values, operand(data, 1)?)?;
        let mask = data.args.get(2).map(|&v| defined(&self.values, v));
        let mask = mask.transpose()?;
        let mut writes: Vec<(u64, u64)> = (0..pointers.len())
            .filter(|&i| mask.is_none_or(|m| m[i] == 1))
            .map(|i| (pointers[i], elems[i]))
            .collect();
        // Equal addresses become neighbours.
        writes.sort_unstable();
        for pair in writes.windows(2) {
            let [(address, first), (same, second)] = [pair[0], pair[1]];
            if address == same && first != second {
                return Err(InterpErrorKind::StoreConflict {
                    address,
                    first,
                    second,
                });
            }
        }
        let place = |address| {
            let is_it = |i: &usize| pointers[*i] == address && mask.is_none_or(|m| m[*i] == 1);
            (0..pointers.len())
                .filter(|_| pointers.len() > 1)
                .find(is_it)
        };
        self.stats.stored += writes.len() as u64;
        // What is left of equal addresses has equal values: written once, it is no second store.
        writes.dedup();
        for (address, elem) in writes {
            let stored = self.memory.store(address, pointee.bytes(), elem);
            if let Err(error) = stored {
                self.element = place(address);
                return Err(error);
            }
        }
        Ok(())
    }

    pub(super) fn atomic_rmw(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let rmw = required(data.rmw())?;
        let pointee = self.pointee(data)?;
        let elems: Elems = defined(&self.values, operand(data, 1)?)?.clone();
        let mask = data.args.get(2).map(|&v| defined(&self.values, v));
        let mask: Option<Elems> = mask.transpose()?.cloned();
        self.atomic(
            data,
            |i, old| {
                let takes_part = mask.as_ref().is_none_or(|m| m[i] == 1);
                takes_part.then(|| combine(rmw, pointee, old, elems[i]))
            },
            mask.as_deref(),
        )
    }

    pub(super) fn atomic_cas(&mut self, data: &InstData<Tile>) -> Outcome<Elems> {
        let expected: Elems = defined(&self.values, operand(data, 1)?)?.clone();
        let elems: Elems = defined(&self.values, operand(data, 2)?)?.clone();
        self.atomic(
            data,
            |i, old| (old == expected[i]).then_some(elems[i]),
            None,
        )
    }

    /// One step per element under the mask: `step` gives what the element becomes, none if it stays.
    fn atomic(
        &mut self,
        data: &InstData<Tile>,
        step: impl Fn(usize, u64) -> Option<u64>,
        mask: Option<&[u64]>,
    ) -> Outcome<Elems> {
        let bytes = self.pointee(data)?.bytes();
        let sem: MemOrder = required(data.sem())?;
        let address = operand(data, 0)?;
        let is_scalar = self.func.dfg.ty(address).is_scalar();
        let pointers: Elems = defined(&self.values, address)?.clone();
        let orders = is_scalar && sem != MemOrder::Relaxed;
        if orders {
            self.memory.barrier();
        }
        let mut olds: Elems = SmallVec::with_capacity(pointers.len());
        for (i, &address) in pointers.iter().enumerate() {
            self.element = (pointers.len() > 1).then_some(i);
            if mask.is_some_and(|m| m[i] == 0) {
                olds.push(0);
                continue;
            }
            let old = self.memory.load(address, bytes, AccessKind::Atomic)?;
            self.stats.loaded += 1;
            if let Some(new) = step(i, old) {
                self.stats.stored += 1;
                self.memory.replace(address, bytes, new)?;
            }
            self.memory.synchronise(address, sem, is_scalar);
            olds.push(old);
        }
        if orders {
            self.memory.barrier();
        }
        Ok(olds)
    }
}

/// What an element becomes.
fn combine(rmw: RmwOp, scalar: Scalar, old: u64, value: u64) -> u64 {
    let bits = scalar.bits();
    match rmw {
        RmwOp::Add => int::add(bits, old, value),
        RmwOp::Fadd if scalar == Scalar::F32 => {
            let flush = |bits: u64| u64::from(num::ftz(f32::from_bits(bits as u32)).to_bits());
            flush(float::add(scalar, flush(old), flush(value)))
        }
        RmwOp::Fadd => float::add(scalar, old, value),
        RmwOp::Smax => int::smax(bits, old, value),
        RmwOp::Smin => int::smin(bits, old, value),
        RmwOp::Umax => int::umax(bits, old, value),
        RmwOp::Umin => int::umin(bits, old, value),
        RmwOp::And => old & value,
        RmwOp::Or => old | value,
        RmwOp::Xor => old ^ value,
        RmwOp::Xchg => value,
    }
}
