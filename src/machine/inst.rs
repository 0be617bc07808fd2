//! Machine instructions: rows of the PTX table over virtual registers.
//!
//! An [`MInst`] is a row repeated for each register of its operands' views. What it reads and writes follows
//! from the row's operand forms, so there is no list of instructions here beside the table.

use crate::ir::attrs::{Cache, Evict, MemOrder, RedOp, RmwOp, Scope, SpecialReg};
use crate::ir::dfg::SourceLoc;
use crate::ir::types::AddressSpace;
use crate::regalloc::reg::{RegClass, RegView, Registers, Touch, Unit};
use crate::settings::{Exists, PtxVersion, exists};

#[macro_use]
#[path = "../../isa/table.rs"]
mod table;

/// Form of an operand; the table's doc says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandForm {
    Def,
    Use,
    Imm,
    VDef,
    VUse,
    /// Read and written as a vector.
    Tied,
    /// Read and written by what goes on meanwhile, not in the text.
    Held,
    /// Read by what goes on meanwhile, not in the text.
    Kept,
    /// Coordinates behind a map.
    Coords,
    /// The address of a tensor map.
    Map,
    Addr,
    Name,
}

impl OperandForm {
    /// Whether a repetition takes a row of registers, the view divided by the repetitions.
    pub(crate) fn is_row(self) -> bool {
        match self {
            OperandForm::VDef
            | OperandForm::VUse
            | OperandForm::Tied
            | OperandForm::Held
            | OperandForm::Kept
            | OperandForm::Coords => true,
            OperandForm::Def
            | OperandForm::Use
            | OperandForm::Imm
            | OperandForm::Map
            | OperandForm::Addr
            | OperandForm::Name => false,
        }
    }
}

/// Register class of an operand, possibly that of the instruction's types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassOf {
    T,
    U,
    P,
    H,
    W,
    D,
}

/// What an instruction is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum InstGroup {
    /// Integer arithmetic and bits.
    Int,
    /// Floating-point arithmetic.
    Float,
    /// Comparison and selection.
    Compare,
    /// Conversion.
    Convert,
    /// Copies, special registers, joining and splitting.
    Move,
    /// Lines of the kernel's author, of which nobody knows what they do, and what is read where it stands.
    Foreign,
    /// Reads a parameter, which nothing changes.
    Param,
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Changes memory in one step, and gives what was there.
    Atomic,
    /// Changes memory in one step.
    Reduce,
    /// Begins to read device memory and to write shared memory.
    Copy,
    /// Exchange of registers within a warp, or a choice among its lanes. All lanes are there wherever the block runs, and it orders nothing else.
    Exchange,
    /// Barriers, waits, and what else stays where it is.
    Sync,
    /// Matrices held by a warp.
    Matrix,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PtxInfo {
    /// Mnemonic with places for types and modifiers.
    pub(crate) mnemonic: &'static str,
    pub(crate) operands: &'static [(OperandForm, ClassOf)],
    /// On which targets it exists.
    pub(crate) exists: Exists,
    pub(crate) version: PtxVersion,
    pub(crate) group: InstGroup,
}

macro_rules! form {
    (def) => {
        OperandForm::Def
    };
    (use) => {
        OperandForm::Use
    };
    (imm) => {
        OperandForm::Imm
    };
    (vdef) => {
        OperandForm::VDef
    };
    (vuse) => {
        OperandForm::VUse
    };
    (tied) => {
        OperandForm::Tied
    };
    (held) => {
        OperandForm::Held
    };
    (kept) => {
        OperandForm::Kept
    };
    (coords) => {
        OperandForm::Coords
    };
    (map) => {
        OperandForm::Map
    };
    (addr) => {
        OperandForm::Addr
    };
    (name) => {
        OperandForm::Name
    };
}

macro_rules! define_ptx {
    ($($(#[doc = $doc:literal])+ $variant:ident $text:literal ($($form:tt $class:ident),*) sm $sm:tt ptx $major:literal $minor:literal, $group:ident;)*) => {
        /// A form of a PTX instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Ptx { $($(#[doc = $doc])+ $variant,)* }

        impl Ptx {
            /// The row of the table.
            pub(crate) fn info(self) -> &'static PtxInfo {
                match self {
                    $(Ptx::$variant => {
                        const INFO: &PtxInfo = &PtxInfo {
                            mnemonic: $text,
                            operands: &[$((form!($form), ClassOf::$class)),*],
                            exists: exists!($sm),
                            version: PtxVersion { major: $major, minor: $minor },
                            group: InstGroup::$group,
                        };
                        INFO
                    })*
                }
            }
        }
    };
}
for_each_ptx!(define_ptx);

macro_rules! define_types {
    ($($variant:ident $text:literal $class:ident $bits:literal;)*) => {
        /// A type in a mnemonic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum PtxType { $(#[doc = $text] $variant,)* }

        impl PtxType {
            /// Its text.
            pub(crate) fn name(self) -> &'static str {
                match self { $(PtxType::$variant => $text,)* }
            }

            /// The class of registers that hold it.
            pub(crate) fn class(self) -> RegClass {
                match self { $(PtxType::$variant => RegClass::$class,)* }
            }

            /// Width of the number.
            pub(crate) fn bits(self) -> u32 {
                match self { $(PtxType::$variant => $bits,)* }
            }
        }
    };
}
for_each_ptx_type!(define_types);

macro_rules! define_kinds {
    ($($variant:ident)*) => {
        /// What selection tells apart: the element, and whether two share a register (`x2`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Kind { $(#[doc = stringify!($variant)] $variant,)* }
    };
}
for_each_kind!(define_kinds);

macro_rules! define_cmps {
    ($($variant:ident $text:literal;)*) => {
        /// A comparison of `setp`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Cmp { $(#[doc = $text] $variant,)* }

        impl Cmp {
            /// Its text.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Cmp::$variant => $text,)* }
            }
        }
    };
}
for_each_cmp!(define_cmps);

/// Modifier in a mnemonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modifier {
    None,
    Cmp(Cmp),
    Red(RedOp),
    Memory(AccessMode),
    Atomic(Atomic),
    /// How many matrices, and whether their rows become columns.
    Matrices(u16, bool),
    /// Whether the left operand is given by columns, and the right one by rows.
    Transposed([bool; 2]),
    /// Columns of the sums of a product of four warps.
    Columns(u16),
    /// Dimensions of a box.
    Dims(u16),
    /// Whether a copy leaves the L1 cache out.
    Copy(bool),
    /// Number of a text in [`super::function::MachineFunction::texts`], and whether the author says that it is pure.
    Inline(u32, bool),
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessMode {
    pub(crate) space: AddressSpace,
    pub(crate) cache: Option<Cache>,
    /// Priority in the L1 cache.
    pub(crate) evict: Option<Evict>,
    /// Whether a policy for the L2 cache follows.
    pub(crate) hint: bool,
    pub(crate) volatile: bool,
}

/// What an atomic access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atomic {
    pub(crate) space: AddressSpace,
    /// How it combines; none for comparison and exchange.
    pub(crate) rmw: Option<RmwOp>,
    /// Whether it sums floats of 16 bits, whose subnormal numbers stay.
    pub(crate) is_half: bool,
    pub(crate) sem: MemOrder,
    pub(crate) scope: Scope,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Registers.
    Regs(RegView),
    /// Bits of a number, the same in every repetition.
    Imm(u64),
    /// Memory.
    Address(Address),
    /// A special register.
    Special(SpecialReg),
    /// The clock of the device.
    Timer,
    /// The module's log.
    Log,
    /// A kernel parameter.
    Param(u32),
    /// The parameter that is the tensor map of this number.
    Map(u32),
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// What a register holds, plus bytes.
    Register(RegView, i32),
    /// Bytes from the start of the kernel's shared memory.
    Shared(i32),
}

/// A predicate under which an instruction runs; otherwise its destination keeps what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) pred: Unit,
    pub(crate) negated: bool,
}

/// A machine instruction. Its operands are a range of [`super::function::MachineFunction::args`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MInst {
    pub(crate) op: Ptx,
    pub(crate) ty: PtxType,
    pub(crate) from: PtxType,
    pub(crate) modifier: Modifier,
    /// How often the row is written.
    pub(crate) reps: u16,
    pub(crate) first_arg: u32,
    pub(crate) guard: Option<Guard>,
    pub(crate) loc: SourceLoc,
}

impl MInst {
    /// The register class that operand `index` needs.
    pub(crate) fn class(&self, index: usize) -> RegClass {
        match self.op.info().operands[index].1 {
            ClassOf::T => self.ty.class(),
            ClassOf::U => self.from.class(),
            ClassOf::P => RegClass::P,
            ClassOf::H => RegClass::H,
            ClassOf::W => RegClass::W,
            ClassOf::D => RegClass::D,
        }
    }

    /// The type that operand `index` is printed as, for numbers.
    pub(crate) fn operand_type(&self, index: usize) -> PtxType {
        match self.op.info().operands[index].1 {
            ClassOf::T => self.ty,
            ClassOf::U => self.from,
            ClassOf::P => PtxType::Pred,
            ClassOf::H => PtxType::B16,
            ClassOf::W => PtxType::B32,
            ClassOf::D => PtxType::B64,
        }
    }

    /// Whether it writes nothing but what it also reads.
    pub(crate) fn is_tied(&self) -> bool {
        let mut operands = self.op.info().operands.iter();
        operands.any(|(form, _)| matches!(form, OperandForm::Tied | OperandForm::Held))
    }

    /// Calls `visit` for every unit read or written. Reads come before writes.
    pub(crate) fn visit(
        &self,
        regs: &Registers,
        args: &[Operand],
        mut visit: impl FnMut(Unit, Touch),
    ) {
        let operands = self.op.info().operands;
        // For targets that lack this unit ptxas (CUDA 13.0, sm_90) writes it with others, and stores sums before it has
        // read all accumulators: of a sum whose columns share registers, the second one came out wrong.
        let is_written_out = matches!(self.op, Ptx::MmaF8 | Ptx::MmaF8Halves);
        let repeated = 1 < self.reps || is_written_out;
        // A single repetition reads everything before it writes. With more, a whole group read in step
        // with a whole group written is safe to share, everything else is not.
        let dest_is_whole = operands
            .iter()
            .zip(args)
            .all(|((form, _), arg)| match (form, arg) {
                (OperandForm::Def, Operand::Regs(view)) => regs.is_whole(*view),
                (OperandForm::VDef | OperandForm::Tied | OperandForm::Held, _) => false,
                _ => true,
            });
        for (i, ((form, _), arg)) in operands.iter().zip(args).enumerate() {
            let view = match (form, arg) {
                (
                    OperandForm::Def | OperandForm::VDef | OperandForm::Tied | OperandForm::Held,
                    _,
                ) => continue,
                (_, Operand::Regs(view)) | (_, Operand::Address(Address::Register(view, _))) => {
                    *view
                }
                _ => continue,
            };
            // The sums of a product of matrices are read where they are written, tile by tile.
            let in_place = self.op.info().group == InstGroup::Matrix
                && (!is_written_out || i + 1 == operands.len())
                && matches!(args[0], Operand::Regs(dest) if dest.count == view.count && regs.is_whole(dest));
            let in_step = dest_is_whole && view.count == self.reps || in_place;
            let aligned = in_step && regs.is_whole(view);
            // Lines of text write some results before they read all operands.
            let late = self.op == Ptx::Inline;
            let access = match (repeated || late, aligned && !late) {
                (false, _) => Touch::Use,
                (true, true) => Touch::AlignedUse,
                (true, false) => Touch::LateUse,
            };
            let count = if view.is_uniform() { 1 } else { view.count };
            (0..count).for_each(|i| visit(regs.unit(view, i), access));
        }
        if let Some(guard) = self.guard {
            visit(guard.pred, Touch::Use);
        }
        let write = if self.guard.is_some() {
            Touch::Mod
        } else {
            Touch::Def
        };
        for ((form, _), arg) in operands.iter().zip(args) {
            match (form, arg) {
                (OperandForm::Def | OperandForm::VDef, Operand::Regs(view)) => {
                    regs.units(*view).for_each(|unit| visit(unit, write));
                }
                (OperandForm::Tied | OperandForm::Held, Operand::Regs(view)) => {
                    regs.units(*view).for_each(|unit| visit(unit, Touch::Mod));
                }
                _ => {}
            }
        }
    }
}
