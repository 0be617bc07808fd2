//! What instructions do beside computing: the registers that their repetitions read and write, and shared memory.

use super::function::MachineFunction;
use super::inst::{Address, InstGroup, MInst, Modifier, Operand, OperandForm};
use crate::ir::types::AddressSpace;
use crate::regalloc::reg::{RegView, Unit};

/// Repetitions of an instruction.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reps {
    pub(super) start: u16,
    pub(super) count: u16,
}

impl Reps {
    /// All of an instruction.
    pub(super) fn all(inst: &MInst) -> Reps {
        Reps {
            start: 0,
            count: inst.reps,
        }
    }
}

/// How repetitions of an instruction use a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RegisterAccess {
    Write,
    /// By an operand that is this register alone.
    Read,
    /// As a guard or as part of a vector.
    FixedRead,
    /// Keeps what it holds where the guard is false.
    Keep,
}

/// Calls `visit` for what repetitions of an instruction read and then for what they write.
pub(super) fn visit_registers(
    code: &MachineFunction,
    inst: &MInst,
    reps: Reps,
    mut visit: impl FnMut(Unit, RegisterAccess),
) {
    let args = code.args(inst);
    let forms = inst.op.info().operands;
    let each = |form: OperandForm, view: RegView| match form {
        form if form.is_row() => view.count / inst.reps.max(1),
        _ => 1,
    };
    let units = |form: OperandForm, view: RegView| {
        let each = each(form, view);
        match view.count {
            1 => 0..1,
            _ if view.is_uniform() => 0..1,
            _ => reps.start * each..(reps.start + reps.count) * each,
        }
    };
    for (&(form, _), arg) in forms.iter().zip(args) {
        match (form, arg) {
            (OperandForm::Def | OperandForm::VDef | OperandForm::Tied | OperandForm::Held, _) => {}
            (_, Operand::Regs(view) | Operand::Address(Address::Register(view, _))) => {
                let units = units(form, *view);
                let access = match units.len() {
                    1 if !form.is_row() => RegisterAccess::Read,
                    _ => RegisterAccess::FixedRead,
                };
                units.for_each(|i| visit(code.regs.unit(*view, i), access));
            }
            _ => {}
        }
    }
    if let Some(guard) = inst.guard {
        visit(guard.pred, RegisterAccess::FixedRead);
    }
    for (&(form, _), arg) in forms.iter().zip(args) {
        let is_tied = matches!(form, OperandForm::Tied | OperandForm::Held);
        if let (
            OperandForm::Def | OperandForm::VDef | OperandForm::Tied | OperandForm::Held,
            Operand::Regs(view),
        ) = (form, arg)
        {
            for i in units(form, *view) {
                if is_tied || inst.guard.is_some() {
                    visit(code.regs.unit(*view, i), RegisterAccess::Keep);
                }
                visit(code.regs.unit(*view, i), RegisterAccess::Write);
            }
        }
    }
}

/// Whether an instruction does nothing but compute.
pub(super) fn is_pure(inst: &MInst) -> bool {
    match inst.op.info().group {
        InstGroup::Int
        | InstGroup::Float
        | InstGroup::Compare
        | InstGroup::Convert
        | InstGroup::Move
        | InstGroup::Param
        | InstGroup::Exchange => true,
        InstGroup::Foreign => matches!(inst.modifier, Modifier::Inline(_, true)),
        InstGroup::Load
        | InstGroup::Store
        | InstGroup::Atomic
        | InstGroup::Reduce
        | InstGroup::Copy
        | InstGroup::Sync
        | InstGroup::Matrix => false,
    }
}

/// Whether an instruction only reads shared memory, so that it can wait until something orders or changes that.
pub(crate) fn reads_shared(inst: &MInst) -> bool {
    reads(inst, AddressSpace::Shared)
}

/// Whether an instruction only loads from memory that is not shared, so that it can wait until something orders or changes that.
pub(crate) fn reads_global(inst: &MInst) -> bool {
    reads(inst, AddressSpace::Global)
}

fn reads(inst: &MInst, space: AddressSpace) -> bool {
    inst.op.info().group == InstGroup::Load
        && matches!(
            inst.modifier,
            Modifier::Memory(access) if access.space == space && !access.volatile
        )
}

/// Whether loads from memory that is not shared must not move behind an instruction that stays where it is.
pub(crate) fn orders_global(inst: &MInst) -> bool {
    match inst.op.info().group {
        InstGroup::Matrix => false,
        InstGroup::Load => matches!(inst.modifier, Modifier::Memory(access) if access.volatile),
        InstGroup::Store => !matches!(
            inst.modifier,
            Modifier::Memory(access) if access.space == AddressSpace::Shared
        ),
        _ => !is_pure(inst),
    }
}

/// Whether reads of shared memory must not move behind an instruction that stays where it is.
pub(crate) fn orders_shared(inst: &MInst) -> bool {
    match inst.op.info().group {
        InstGroup::Store => match inst.modifier {
            Modifier::Memory(access) => access.space == AddressSpace::Shared,
            _ => true,
        },
        InstGroup::Atomic
        | InstGroup::Reduce
        | InstGroup::Copy
        | InstGroup::Sync
        | InstGroup::Foreign => true,
        InstGroup::Int
        | InstGroup::Float
        | InstGroup::Compare
        | InstGroup::Convert
        | InstGroup::Move
        | InstGroup::Param
        | InstGroup::Load
        | InstGroup::Exchange
        | InstGroup::Matrix => false,
    }
}
