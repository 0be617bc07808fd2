//! Register allocation.

use std::ops::Range;

use crate::isa::reg::{RegClass, Registers, Touch, Unit, View};

pub(crate) mod moves;

/// What a parameter gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A register's value.
    Unit(Unit),
    /// A number.
    Number(u64),
}

/// A program as the allocator sees it.
pub(crate) trait Program {
    /// Groups of units.
    fn regs(&self) -> &Registers;
    /// Number of blocks; the first is the entry, which has no parameters and no predecessors.
    fn num_blocks(&self) -> usize;
    /// Instructions of a block; the ranges of the blocks follow each other.
    fn insts(&self, block: usize) -> Range<usize>;
    /// What an instruction reads and writes, reads first.
    fn visit(&self, inst: usize, visit: impl FnMut(Unit, Touch));
    /// Destination and source of an instruction that only copies registers, element by element.
    fn copied(&self, inst: usize) -> Option<(View, View)>;
    /// The units of a block's parameters.
    fn params(&self, block: usize, visit: impl FnMut(Unit));
    /// The unit that the end of a block reads to choose among its ways out.
    fn condition(&self, block: usize) -> Option<Unit>;
    /// Number of ways out of a block.
    fn num_edges(&self, block: usize) -> usize;
    /// Where a way out leads.
    fn target(&self, block: usize, edge: usize) -> usize;
    /// The parameters of the target and what each gets.
    fn inputs(&self, block: usize, edge: usize, visit: impl FnMut(Unit, Input));
}

/// What a move reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A register of the destination's class.
    Register(u32),
    /// A number.
    Number(u64),
}

/// A move between named registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) class: RegClass,
    pub(crate) to: u32,
    pub(crate) source: Source,
}

/// Names of registers, and the moves on the edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocation {
    /// Number of each unit within its class.
    pub(crate) names: Vec<u32>,
    /// How many names each class has.
    pub(crate) n_names: [u32; 4],
    /// Moves on each way out, in sequence.
    pub(crate) moves: Vec<[Vec<Move>; 2]>,
}

/// Gives each unit a name.
pub(crate) fn allocate(program: &impl Program) -> Allocation {
    let regs = program.regs();
    let mut n_names = [0; 4];
    let names = (0..regs.num_units())
        .map(|u| {
            let class = regs.class_of(Unit::from_u32(u as u32)).index();
            n_names[class] += 1;
            n_names[class] - 1
        })
        .collect();
    let mut allocation = Allocation {
        names,
        n_names,
        moves: Vec::new(),
    };
    place_moves(program, &mut allocation);
    allocation
}

/// Writes the moves on the edges.
fn place_moves(program: &impl Program, allocation: &mut Allocation) {
    let mut spares: [Option<u32>; 4] = [None; 4];
    for block in 0..program.num_blocks() {
        let mut out: [Vec<Move>; 2] = Default::default();
        for (edge, sequence) in out.iter_mut().enumerate().take(program.num_edges(block)) {
            let mut parallel = Vec::new();
            program.inputs(block, edge, |to, input| {
                let class = program.regs().class_of(to);
                let source = match input {
                    Input::Unit(unit) => Source::Register(allocation.names[unit.as_u32() as usize]),
                    Input::Number(bits) => Source::Number(bits),
                };
                parallel.push(Move {
                    class,
                    to: allocation.names[to.as_u32() as usize],
                    source,
                });
            });
            *sequence = moves::sequentialize(&mut parallel, |class| {
                *spares[class.index()].get_or_insert_with(|| {
                    allocation.n_names[class.index()] += 1;
                    allocation.n_names[class.index()] - 1
                })
            });
        }
        allocation.moves.push(out);
    }
}
