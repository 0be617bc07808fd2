//! Loads and stores.

use crate::interp::error::InterpErrorKind;
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;
use crate::ir::types::Scalar;

use super::{Elems, Machine, Outcome, defined, malformed, operand};

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
        let mut elems = Elems::with_capacity(pointers.len());
        for (i, &address) in pointers.iter().enumerate() {
            let elem = if mask.is_none_or(|m| m[i] == 1) {
                self.stats.loaded += 1;
                let elem = self.memory.load(address, pointee.bytes())?;
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
        self.stats.stored += writes.len() as u64;
        // What is left of equal addresses has equal values: written once, it is no second store.
        writes.dedup();
        for (address, elem) in writes {
            self.memory.store(address, pointee.bytes(), elem)?;
        }
        Ok(())
    }
}
