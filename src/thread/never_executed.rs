//! Uses of values that are never executed: they stop the assembler where it takes registers for free, or moves what must stay.

use crate::ir::attrs::{IntPred, SpecialReg, make};
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::maker::Maker;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{AddressSpace, Elem, ThreadType};

/// Bytes of the widest store.
const WIDEST: u32 = 16;

/// Elements of a value that are used, and a slot that a store which is never executed names.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) value: Value,
    pub(super) elements: Vec<u32>,
    pub(super) slot: Slot,
}

/// Stores that are never executed, of some elements of each value: a launch has no programs along x then. They have no place yet.
pub(super) fn uses(func: &mut ThreadFunction, wanted: &[Use]) -> Vec<Inst> {
    let mut uses = Uses {
        maker: Maker::new(func),
        addresses: Vec::new(),
    };
    let i32 = ThreadType::scalar(Elem::I32);
    let of_x = [make::reg(SpecialReg::ProgramsX)];
    let programs = uses.maker.value(ThreadOp::Special, &[], &of_x, i32);
    let none = uses.maker.number(0, i32);
    let never = uses.maker.compare(IntPred::Eq, programs, none);
    for used in wanted {
        uses.store(used, never);
    }
    uses.maker.made
}

/// Instructions that have no place yet.
struct Uses<'a> {
    maker: Maker<'a, Thread>,
    addresses: Vec<(Slot, Elem, Value)>,
}

impl Uses<'_> {
    /// The address of a slot, as a pointer of the type.
    fn address(&mut self, slot: Slot, pointer: Elem) -> Value {
        let known = self
            .addresses
            .iter()
            .find(|it| (it.0, it.1) == (slot, pointer));
        if let Some(&(_, _, address)) = known {
            return address;
        }
        let ty = ThreadType::scalar(pointer);
        let address = self
            .maker
            .value(ThreadOp::SlotAddr, &[], &[make::slot(slot)], ty);
        self.addresses.push((slot, pointer, address));
        address
    }

    /// A store of elements to the slot, where `pred` holds.
    fn store(&mut self, used: &Use, pred: Value) {
        let elem = self.maker.func.dfg.ty(used.value).elem;
        let Some(scalar) = elem.scalar() else {
            return;
        };
        // As many as one access takes; it is enough to use some.
        let most = (WIDEST / scalar.bytes()).max(1) as usize;
        let count = 1 << used.elements.len().min(most).ilog2();
        let map = used.elements[..count].iter().copied();
        let ty = ThreadType::pack(elem, count as u16);
        let stored = self.maker.value(
            ThreadOp::Rearrange,
            &[used.value],
            &[make::map(map.collect())],
            ty,
        );
        let to = self.address(used.slot, Elem::Ptr(scalar, AddressSpace::Shared));
        self.maker.build(
            ThreadOp::St,
            &[to, stored, pred],
            &[make::slot(used.slot)],
            &[],
        );
    }
}
