//! A kernel as machine instructions over virtual registers, in program order.

use std::ops::Range;

use cranelift_entity::EntitySet;

use super::inst::{MInst, Operand};
use crate::ir::dfg::SourceLoc;
use crate::regalloc::reg::{RegView, Registers, Unit};

/// A way from the end of one block to the start of another; each parameter of the target gets the argument at its place.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// Position of the target in [`MachineFunction::blocks`].
    pub(crate) target: usize,
    /// Arguments: a range of [`MachineFunction::edge_args`].
    pub(crate) args: Range<usize>,
}

/// How a block ends.
#[derive(Clone, Debug)]
pub(crate) enum Terminator {
    /// The kernel is finished.
    Return,
    /// To one block.
    Jump(Edge),
    /// To the first if the predicate is true, else to the second.
    Branch {
        /// The predicate.
        cond: Unit,
        /// Where to if it is true.
        then: Edge,
        /// Where to if it is false.
        otherwise: Edge,
    },
}

impl Terminator {
    /// The ways out.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &Edge> {
        let (first, second) = match self {
            Terminator::Return => (None, None),
            Terminator::Jump(edge) => (Some(edge), None),
            Terminator::Branch {
                then, otherwise, ..
            } => (Some(then), Some(otherwise)),
        };
        first.into_iter().chain(second)
    }
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct CodeBlock {
    /// Range of [`MachineFunction::insts`].
    pub(crate) insts: Range<usize>,
    /// Parameters, each a whole group; empty for the entry.
    pub(crate) params: Vec<RegView>,
    /// How it ends.
    pub(crate) end: Terminator,
    /// Source line of its end.
    pub(crate) end_loc: SourceLoc,
}

/// A kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineFunction {
    /// Virtual registers.
    pub(crate) regs: Registers,
    /// Instructions, block by block.
    pub(crate) insts: Vec<MInst>,
    /// Operands of all instructions.
    pub(crate) args: Vec<Operand>,
    /// Templates of inline PTX.
    pub(crate) texts: Vec<String>,
    /// Arguments of all edges.
    pub(crate) edge_args: Vec<Operand>,
    /// Blocks, entry first.
    pub(crate) blocks: Vec<CodeBlock>,
    /// Registers that a load writes and one instruction of the block reads.
    pub(crate) loaded_once: EntitySet<Unit>,
    /// Registers that hold what is in a register of half the size, too.
    pub(crate) widened: EntitySet<Unit>,
    /// Parameters of the kernel; where warpgroups multiply also descriptors, which as little take registers of threads.
    pub(crate) params: EntitySet<Unit>,
    /// Most 32-bit registers live within a block before it was ordered by consumer; none if it was not.
    pub(crate) width: Option<u32>,
}

impl MachineFunction {
    /// The operands of an instruction.
    pub(crate) fn args(&self, inst: &MInst) -> &[Operand] {
        let first = inst.first_arg as usize;
        &self.args[first..first + inst.op.info().operands.len()]
    }
}
