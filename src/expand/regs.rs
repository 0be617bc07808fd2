//! What stands for a block inside a thread while it is expanded.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::entities::{Slot, Value};
use crate::linear_layout::layout::LinearLayout;

/// The registers of one thread that hold a tile value.
#[derive(Clone, Debug)]
pub(super) enum Expanded {
    /// Every register holds this single value; also a scalar, of which each thread has a copy.
    Uniform(Value),
    /// Few values plus constants: indices, pointers and masks.
    Parts(Parts),
    /// A pack with one element per register.
    Pack(Value),
    /// A block in shared memory, which units of matrices fetch tile by tile.
    Shared(SharedBlock),
}

impl Expanded {
    /// What stands for a token.
    pub(super) fn nothing() -> Expanded {
        Expanded::Parts(Parts {
            bases: SmallVec::new(),
            regs: Vec::new(),
        })
    }
}

/// A block in shared memory.
#[derive(Clone, Debug)]
pub(super) struct SharedBlock {
    /// The ring it stands in.
    pub(super) slot: Slot,
    /// Bytes from the start of the ring.
    pub(super) start: Start,
    /// Which element stands at each offset.
    pub(super) layout: Rc<LinearLayout>,
}

/// Bytes from the start of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// As many.
    Known(u32),
    /// An i32.
    Value(Value),
}

/// One register of [`Parts`]: a base plus a constant (elements for integers, bytes for pointers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    /// Index into the bases.
    pub(super) base: u16,
    /// What is added, modulo the width.
    pub(super) offset: i64,
}

/// Registers as bases plus constants. Most indices of a block differ between the registers of a thread
/// by constants alone, which become immediates of addresses instead of additions.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Distinct values, numbered by first use.
    pub(super) bases: SmallVec<[Value; 4]>,
    /// One entry per register.
    pub(super) regs: Vec<Part>,
}

impl Parts {
    /// The value of register `reg` as base and constant.
    pub(super) fn at(&self, reg: usize) -> (Value, i64) {
        let part = self.regs[reg];
        (self.bases[usize::from(part.base)], part.offset)
    }

    /// The registers at `map`, in this order.
    pub(super) fn select(&self, map: &[u16]) -> Parts {
        let mut builder = PartsBuilder::default();
        for &reg in map {
            let (base, offset) = self.at(usize::from(reg));
            builder.push(base, offset);
        }
        builder.finish()
    }

    /// Whether the registers are made of bases in the same way, whatever the bases are.
    pub(super) fn same_structure(&self, other: &Parts) -> bool {
        self.regs == other.regs
    }
}

/// Collects registers and numbers their bases.
#[derive(Debug, Default)]
pub(super) struct PartsBuilder {
    numbers: FxHashMap<Value, u16>,
    parts: Vec<Part>,
    bases: SmallVec<[Value; 4]>,
}

impl PartsBuilder {
    /// Adds a register.
    pub(super) fn push(&mut self, base: Value, offset: i64) {
        let next = self.bases.len() as u16;
        let number = *self.numbers.entry(base).or_insert(next);
        if number == next {
            self.bases.push(base);
        }
        self.parts.push(Part {
            base: number,
            offset,
        });
    }

    /// The registers collected.
    pub(super) fn finish(self) -> Parts {
        Parts {
            bases: self.bases,
            regs: self.parts,
        }
    }
}
