//! A kernel as machine instructions over virtual registers, in program order.

use std::ops::Range;

use cranelift_entity::EntitySet;

use super::inst::{Arg, MInst};
use crate::ir::dfg::SourceLoc;
use crate::regalloc::reg::{Registers, Unit, View};

/// A way from the end of one block to the start of another; each parameter of the target gets the argument at its place.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// Position of the target in [`Code::blocks`].
    pub(crate) target: usize,
    /// Arguments: a range of [`Code::edge_args`].
    pub(crate) args: Range<usize>,
}

/// How a block ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
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

impl End {
    /// The ways out.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &Edge> {
        let (first, second) = match self {
            End::Return => (None, None),
            End::Jump(edge) => (Some(edge), None),
            End::Branch {
                then, otherwise, ..
            } => (Some(then), Some(otherwise)),
        };
        first.into_iter().chain(second)
    }
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct CodeBlock {
    /// Range of [`Code::insts`].
    pub(crate) insts: Range<usize>,
    /// Parameters, each a whole group; empty for the entry.
    pub(crate) params: Vec<View>,
    /// How it ends.
    pub(crate) end: End,
    /// Source line of its end.
    pub(crate) end_loc: SourceLoc,
}

/// A kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    /// Virtual registers.
    pub(crate) regs: Registers,
    /// Instructions, block by block.
    pub(crate) insts: Vec<MInst>,
    /// Operands of all instructions.
    pub(crate) args: Vec<Arg>,
    /// Templates of inline PTX.
    pub(crate) texts: Vec<String>,
    /// Arguments of all edges.
    pub(crate) edge_args: Vec<Arg>,
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

impl Code {
    /// The operands of an instruction.
    pub(crate) fn args(&self, inst: &MInst) -> &[Arg] {
        let first = inst.first_arg as usize;
        &self.args[first..first + inst.op.info().operands.len()]
    }
}
