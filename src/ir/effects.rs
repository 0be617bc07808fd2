//! What an instruction does beside computing its results, answered from the tables.
//!
//! A row of the table of ops says the [`OpClass`] of its op, what it reads and writes in memory, whether its operands commute, and
//! what it costs: it ends in calls of the methods of [`Effects`].
//! Passes ask here and list no ops of their own, so that a new op is known to all of them by its row.
//!
//! No row says which unit of the machine executes its op. Passes weigh ops by their cost alone; the
//! schedule of machine code orders by registers and not by time (`src/machine/schedule`); what an engine does beside the threads is
//! marked as such. Units of matrices are the exception: a product can go to one of several, so that the choice is part of the
//! instruction, and each has a row (`isa/matrix_units.rs`). The model of time alone tells the other units apart, and lists ops for it
//! (`src/predict/cost.rs`): an op that is dearer than an integer addition needs a line there.

use smallvec::SmallVec;

use super::attrs::Attrs;
use super::dfg::InstData;
use super::entities::{Inst, Slot, Value};
use super::function::Function;
use super::level::{Level, Tile};
use super::matrix_units::When;
use super::ops::{OpInfo, Opcode, TileOp};
use super::types::{AddressSpace, Elem, ValueType};

/// What kind of op it is. Branches are uniform over the threads that execute a function (but those around what is rare, which
/// come last), so that an exchange between them or a matrix product may be removed, repeated and moved as if a thread computed it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// Made from nothing.
    Constant,
    /// Each element is computed from those at the same place.
    Elementwise,
    /// The same elements in another shape or order.
    Shape,
    /// Elements cross from one thread to others.
    Exchange,
    /// Products of matrices.
    Matrix,
    /// Accesses memory.
    Memory,
    /// Tells the host something.
    Report,
    /// Waits for others, or is read where it stands.
    Sync,
    /// Does what nobody knows, unless the instruction says that it is pure.
    Foreign,
    /// Owns regions; has the effects of what they hold.
    Region,
    /// Ends a block.
    End,
}

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Changes it in one step that other atomic accesses see done or not begun.
    Atomic,
}

/// The way by which an access comes to memory. What the threads do is ordered by barriers among itself; between what they wrote
/// and an access that engines do for them there must be a fence, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// As loads and stores do.
    Generic,
    /// As an engine does: one of matrices, or one that moves blocks.
    Async,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessSpace {
    /// Device memory at this pointer.
    Global(Value),
    /// Shared memory in this slot or ring; none if the instruction does not say which.
    Shared(Option<Slot>),
    /// The module's log, to which no pointer of a kernel leads.
    Log,
}

/// One access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where it goes.
    pub space: AccessSpace,
    /// What it does there.
    pub how: How,
    /// By which way.
    pub proxy: Proxy,
    /// When it is over.
    pub when: When,
}

/// An access as a row states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedAccess {
    /// What it does.
    pub how: How,
    /// Where: the operand that points there, `slot` for the attribute, or `log`.
    pub place: &'static str,
    /// When it is over.
    pub when: When,
}

/// What a row says of its op beside types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The class.
    pub class: OpClass,
    accesses: [Option<StatedAccess>; 2],
    /// Whether the two operands may be exchanged.
    pub commutes: bool,
    /// Whether its result has the elements of its operand and no others, in another shape or layout.
    pub keeps: bool,
    /// Whether what it begins is done by an engine and not by the threads.
    pub engine: bool,
    /// Whether the unit of special functions computes it, which takes half a warp in a clock.
    pub special: bool,
    /// What computing an element costs, in instructions of one cycle.
    pub cost: u16,
    /// Operations per element that count where a block is computed again for each of its users; none if that is never done.
    pub again: Option<u16>,
}

impl Effects {
    pub(super) const fn of(class: OpClass) -> Effects {
        Effects {
            class,
            accesses: [None; 2],
            commutes: false,
            keeps: false,
            engine: false,
            special: false,
            cost: 1,
            again: None,
        }
    }

    const fn with_access(mut self, how: How, place: &'static str, when: When) -> Effects {
        let next = self.accesses[0].is_some() as usize;
        self.accesses[next] = Some(StatedAccess { how, place, when });
        self
    }

    pub(super) const fn reads(self, place: &'static str) -> Effects {
        self.with_access(How::Read, place, When::Now)
    }

    pub(super) const fn writes(self, place: &'static str) -> Effects {
        self.with_access(How::Write, place, When::Now)
    }

    pub(super) const fn reads_until_wait(self, place: &'static str) -> Effects {
        self.with_access(How::Read, place, When::UntilWait)
    }

    pub(super) const fn writes_until_wait(self, place: &'static str) -> Effects {
        self.with_access(How::Write, place, When::UntilWait)
    }

    pub(super) const fn atomic(self, place: &'static str) -> Effects {
        self.with_access(How::Atomic, place, When::Now)
    }

    pub(super) const fn commutes(mut self) -> Effects {
        self.commutes = true;
        self
    }

    pub(super) const fn keeps(mut self) -> Effects {
        self.keeps = true;
        self
    }

    pub(super) const fn engine(mut self) -> Effects {
        self.engine = true;
        self
    }

    pub(super) const fn special(mut self) -> Effects {
        self.special = true;
        self
    }

    pub(super) const fn cost(mut self, cost: u16) -> Effects {
        self.cost = cost;
        self
    }

    pub(super) const fn again(mut self, again: u16) -> Effects {
        self.again = Some(again);
        self
    }

    /// The accesses that the row states.
    pub fn accesses(&self) -> impl Iterator<Item = StatedAccess> {
        self.accesses.into_iter().flatten()
    }
}

impl OpInfo {
    /// Whether the op may be removed, repeated and moved, whatever its instruction says.
    pub fn is_pure(&self) -> bool {
        is_pure(self.effects.class)
    }

    /// Whether the op does nothing but read memory.
    pub fn only_reads(&self) -> bool {
        let mut accesses = self.effects.accesses();
        self.effects.class == OpClass::Memory && accesses.all(|access| access.how == How::Read)
    }

    /// Whether the result has the elements of the operand and no others, in another shape or layout.
    pub fn keeps_elements(&self) -> bool {
        self.effects.keeps
    }

    /// Whether the unit of special functions computes it.
    pub fn is_special(&self) -> bool {
        self.effects.special
    }

    /// Whether the op owns regions.
    pub fn owns_regions(&self) -> bool {
        self.effects.class == OpClass::Region
    }

    /// Whether the op ends a block.
    pub fn ends_block(&self) -> bool {
        self.effects.class == OpClass::End
    }
}

fn is_pure(class: OpClass) -> bool {
    match class {
        OpClass::Constant
        | OpClass::Elementwise
        | OpClass::Shape
        | OpClass::Exchange
        | OpClass::Matrix => true,
        OpClass::Memory
        | OpClass::Report
        | OpClass::Sync
        | OpClass::Foreign
        | OpClass::Region
        | OpClass::End => false,
    }
}

impl InstData<Tile> {
    /// Whether it is a product of matrices, waited for or not.
    pub fn is_product(&self) -> bool {
        matches!(self.op, TileOp::Dot | TileOp::DotStart)
    }
}

impl<L: Level> InstData<L> {
    /// The class of the op, or what the instruction says of itself.
    pub fn class(&self) -> OpClass {
        match self.op.info().effects.class {
            OpClass::Foreign if self.pure().is_some() => OpClass::Elementwise,
            class => class,
        }
    }

    /// Whether each element of the results is computed from those of the operands at the same place alone.
    pub fn is_elementwise(&self) -> bool {
        self.class() == OpClass::Elementwise && self.pack().is_none_or(|&pack| pack == 1)
    }

    /// Whether the instruction may be removed, repeated and moved: it computes its results and does nothing else.
    pub fn is_pure(&self) -> bool {
        let unit = self.unit().map(|unit| unit.info());
        is_pure(self.class()) && unit.is_none_or(|unit| unit.when == When::Now)
    }

    /// Whether the instruction does nothing but read memory that nobody is expected to change meanwhile: it may be removed, and
    /// repeated as long as nothing is written.
    pub fn only_reads(&self) -> bool {
        self.op.info().only_reads() && self.volatile().is_none()
    }

    /// Whether the instruction changes memory, or writes to the log.
    pub fn writes(&self) -> bool {
        let mut accesses = self.op.info().effects.accesses();
        accesses.any(|access| access.how != How::Read)
    }

    /// Whether accesses to memory must not move from one side of the instruction to the other.
    pub fn orders_memory(&self) -> bool {
        match self.class() {
            OpClass::Sync | OpClass::Foreign => true,
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

    /// Whether the instruction stays though nothing needs its results. Regions are asked for what they hold.
    pub fn has_effect(&self) -> bool {
        match self.class() {
            OpClass::Memory => !self.only_reads(),
            OpClass::Report | OpClass::Sync | OpClass::Foreign | OpClass::End => true,
            OpClass::Region => false,
            OpClass::Constant
            | OpClass::Elementwise
            | OpClass::Shape
            | OpClass::Exchange
            | OpClass::Matrix => !self.is_pure(),
        }
    }
}

/// The accesses of an instruction.
pub type Accesses = SmallVec<[Access; 2]>;

impl<L: Level> Function<L> {
    /// What an instruction does to memory.
    pub fn accesses(&self, inst: Inst) -> Accesses {
        let data = &self.dfg.insts[inst];
        let info = data.op.info();
        let at = |value: Value| match self.dfg.ty(value).elem() {
            Elem::Ptr(_, AddressSpace::Shared) => AccessSpace::Shared(data.slot().copied()),
            _ => AccessSpace::Global(value),
        };
        // What is over behind a wait a unit does for the threads.
        let is_unit = data
            .unit()
            .is_some_and(|unit| unit.info().when == When::UntilWait);
        let by_engine = is_unit || info.effects.engine;
        let proxy = |when: When| match by_engine && when == When::UntilWait {
            true => Proxy::Async,
            false => Proxy::Generic,
        };
        let operand = |name| info.operands.iter().position(|o| o.name == name);
        let stated = info.effects.accesses().filter_map(|stated| {
            let space = match stated.place {
                "slot" if data.unit().is_some() => AccessSpace::Shared(Some(*data.slot()?)),
                "slot" => AccessSpace::Shared(data.slot().copied()),
                // An operand in registers is in no slot.
                "left_slot" => AccessSpace::Shared(Some(*data.left_slot()?)),
                "log" => AccessSpace::Log,
                "bar" => AccessSpace::Shared(data.bars().copied()),
                name => at(*data.args.get(operand(name)?)?),
            };
            Some(Access {
                space,
                how: stated.how,
                proxy: proxy(stated.when),
                when: stated.when,
            })
        });
        stated.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::attrs::AttrKind;
    use crate::ir::ops::{ThreadOp, TileOp};
    use crate::text::parse::parse_thread;

    fn check_level<O: Opcode>() {
        for &op in O::ALL {
            let info = op.info();
            let effects = &info.effects;
            for access in effects.accesses() {
                let is_operand = info.operands.iter().any(|o| o.name == access.place);
                let is_known = match access.place {
                    "slot" => info.allows(AttrKind::Slot),
                    "left_slot" => info.allows(AttrKind::LeftSlot),
                    "log" => true,
                    _ => is_operand,
                };
                assert!(is_known, "{op}: no operand {}", access.place);
            }
            let touches = effects.accesses().next().is_some();
            // What starts work of asynchronous units says what these access.
            let starts = matches!(effects.class, OpClass::Sync)
                && effects
                    .accesses()
                    .all(|access| access.when == When::UntilWait);
            assert_eq!(
                touches,
                matches!(effects.class, OpClass::Memory)
                    || info.name.starts_with("device_")
                    || touches && starts,
                "{op}"
            );
            if effects.commutes {
                assert!(info.is_pure() && info.operands.len() == 2, "{op}");
            }
            if effects.again.is_some() {
                assert!(info.is_pure(), "{op} is computed again");
            }
        }
    }

    #[test]
    fn rows_are_consistent() {
        check_level::<TileOp>();
        check_level::<ThreadOp>();
    }

    #[test]
    fn spaces_follow_from_the_operands() {
        let text = "thread @k(v0: ptr<f16>, v1: ptr<i8, shared>, v2: ptr<f32>) warps(1) {
                slot0 = 1024 bytes align 128 at 0
            block0:
                v3 = ld v2 : f32
                cp_async v1, v0 {bytes = 16, slot = slot0}
                v4 = ldmatrix v1 {slot = slot0} : f16 x 8
                st v2, v3
                return
            }";
        let func = parse_thread(text).expect("it is well-formed");
        let block = func.entry;
        let insts = func.order.insts(block);
        let params = func.params();
        let shared = AccessSpace::Shared(
            insts
                .iter()
                .find_map(|&i| func.dfg.insts[i].slot().copied()),
        );
        let access = |space, how, when| Access {
            space,
            how,
            proxy: Proxy::Generic,
            when,
        };
        let expected: [&[Access]; 5] = [
            &[access(AccessSpace::Global(params[2]), How::Read, When::Now)],
            &[
                access(shared, How::Write, When::UntilWait),
                access(AccessSpace::Global(params[0]), How::Read, When::UntilWait),
            ],
            &[access(shared, How::Read, When::Now)],
            &[access(
                AccessSpace::Global(params[2]),
                How::Write,
                When::Now,
            )],
            &[],
        ];
        for (&inst, expected) in insts.iter().zip(expected) {
            assert_eq!(func.accesses(inst)[..], *expected);
        }
    }
}
