//! Register allocation.
//!
//! PTX registers are virtual and without number; the driver's assembler assigns the real ones. So nothing is ever
//! spilled here. The allocator leaves SSA with as few moves as it can, keeps packs in one piece, gives names again
//! that are free, so that the assembler has less to look at, and says how many registers are live where.
//!
//! ```text
//! program --live--> ranges, pressure --bundles--> groups that share registers --scan--> names --moves--> edges
//!                                                                                           \--check--> proof
//! ```
//!
//! The allocator sees a program through [`AllocFunction`] and knows nothing of instructions.

use std::ops::Range;

use bundles::Bundles;
use live::Liveness;

use crate::regalloc::reg::{RegClass, RegView, Registers, Touch, Unit};
use crate::settings::diversity::Choices;

mod bundles;
pub(crate) mod check;
mod linear_scan;
pub(crate) mod live;
mod moves;
pub(crate) mod reg;

/// What a parameter gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A register's value.
    Unit(Unit),
    /// A number.
    Number(u64),
}

/// How little a register counts where the assembler makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ease {
    /// It takes its place.
    None,
    /// It is loaded and read once, so that the load can wait.
    LoadedOnce,
    /// A parameter, which can be read again from constant memory.
    Param,
    /// Made from half of a register, which can stay in its place.
    Widened,
}

/// What an instruction means for reads of shared memory, which the assembler puts off until their values are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delay {
    /// It is one.
    May,
    /// None of them may wait beyond it.
    Ends,
    /// Nothing.
    None,
}

/// A program as the allocator sees it.
pub(crate) trait AllocFunction {
    /// Groups of units.
    fn regs(&self) -> &Registers;
    /// Number of blocks; the first is the entry, which has no parameters and no predecessors.
    fn num_blocks(&self) -> usize;
    /// Instructions of a block; the ranges of the blocks follow each other.
    fn insts(&self, block: usize) -> Range<usize>;
    /// How little a unit counts where the assembler makes room.
    fn ease(&self, unit: Unit) -> Ease;
    /// What an instruction means for reads of shared memory.
    fn delay(&self, inst: usize) -> Delay;
    /// Most 32-bit registers live within a block before it was ordered by consumer; none if it was not.
    fn width(&self) -> Option<u32>;
    /// What an instruction reads and writes, reads first.
    fn visit(&self, inst: usize, visit: impl FnMut(Unit, Touch));
    /// The same in the order of the text, for the checker: the repetition, the unit, and whether it is written. A
    /// unit that is written only under a predicate is read before.
    fn replay(&self, inst: usize, visit: impl FnMut(u16, Unit, bool));
    /// Destination and source of an instruction that only copies registers, element by element.
    fn copied(&self, inst: usize) -> Option<(RegView, RegView)>;
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
    /// Units that change behind the back of the program, where a move would read what is not there yet. They share registers with
    /// what they become and come from, and their names with nothing else.
    fn in_flight(&self, _visit: impl FnMut(Unit)) {}
}

/// What a move reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveSource {
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
    pub(crate) source: MoveSource,
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
    /// For each block the way back whose moves come before the branch, because they change nothing that the other way needs:
    /// the loop then ends in one branch, and ptxas need not turn it.
    pub(crate) ahead: Vec<Option<usize>>,
    /// Most units of each class that are live at one place.
    pub(crate) peak: [u32; 4],
    /// Registers that the assembler is expected to use.
    pub(crate) predicted: u32,
    /// Registers with fewer than which it is expected to spill.
    pub(crate) needed: u32,
}

/// What ptxas adds to small kernels, and how many it takes for them.
const SMALL: [u32; 2] = [3, 34];
/// What it adds to ordered code, and to the width of the order before.
const ORDERED: [u32; 2] = [12, 6];

/// The registers that ptxas will use.
///
/// It keeps the order of small kernels as far as latencies allow, adds a few registers of its own, and is seldom above 34.
///
/// Where code was ordered by consumer it moves between two bounds. Our order needs [`Liveness::light_words`] if the loads
/// that can wait do so ([`Ease`]); ptxas adds what lets latencies overlap, but hardly takes more than the order that it
/// had before. As long as that is little, it spreads the code instead, to as many as the old order took, but not beyond 40.
///
/// Where warpgroups multiply, code keeps its order, and ptxas too may not move what is around their sums: it takes what is live, but
/// for what stands in registers of the whole warp. `tests/compiler/spills.rs` asserts that nine of ten such kernels are within 32.
///
/// The constants are fitted to the kernels of `tests/compiler/ptxas.rs` and `tests/compiler/registers.rs`; both tests assert that nine of
/// ten are within 8 of ptxas.
fn predict(program: &impl AllocFunction, live: &Liveness) -> u32 {
    /// What it adds where it spreads code, and how far it does.
    const SPREAD: [u32; 2] = [4, 40];
    if has_in_flight(program) {
        return live.light_words;
    }
    let Some(width) = program.width() else {
        return (live.peak_words + SMALL[0]).min(SMALL[1]);
    };
    let tight = (live.light_words + ORDERED[0]).min(width + ORDERED[1]);
    tight.max((width + SPREAD[0]).min(SPREAD[1]))
}

/// The registers with fewer than which ptxas spills: the larger of two bounds.
///
/// - What it will use if it need not spread code, and leaves what can be widened again as narrow as it is.
/// - What our order needs if reads of shared memory are put off until their values are used ([`Delay`]), as the operands of one
///   step of a product need not all be there at once, less what ptxas saves whatever the kernel: it folds offsets into
///   addresses, makes again what is cheap, and keeps what is the same for the whole warp in registers apart.
///
/// How much that is was chosen on one half of the kernels of `tests/compiler/spills.rs`, where 5 of 75 that spill are missed and 6 of 76
/// that are foretold do not spill; of the other half these are 5 of 64 and 6 of 65. From 12 to 6 little changes. The test asserts
/// less than a tenth each over all.
fn need(program: &impl AllocFunction, live: &Liveness) -> u32 {
    /// What ptxas saves.
    const SAVED: u32 = 10;
    /// What it adds to what lives around sums in flight, which stays where it is: exactly so much for plain products.
    const AROUND_FLIGHT: u32 = 8;
    if has_in_flight(program) {
        return live.flight_words + AROUND_FLIGHT;
    }
    match program.width() {
        None => (live.peak_words + SMALL[0]).min(SMALL[1]),
        Some(width) => {
            let used = (live.least_words + ORDERED[0]).min(width + ORDERED[1]);
            used.max(live.late_words.saturating_sub(SAVED))
        }
    }
}

/// Whether something changes behind the back of the program, as sums of warpgroups do.
fn has_in_flight(program: &impl AllocFunction) -> bool {
    let mut any = false;
    program.in_flight(|_| any = true);
    any
}

/// Allocates registers. By other `choices` fewer of them are shared, names are any free ones, and moves come in any order.
pub(crate) fn allocate(program: &impl AllocFunction, mut choices: Choices) -> Allocation {
    let mut choices = match choices.chance(70) {
        true => choices,
        false => Choices::none(),
    };
    let live = Liveness::compute(program);
    let bundles = Bundles::compute(program, &live, &mut choices);
    let (names, n_names) = linear_scan::assign_names(program, &live, &bundles, &mut choices);
    let mut allocation = Allocation {
        names,
        n_names,
        moves: Vec::with_capacity(program.num_blocks()),
        ahead: Vec::with_capacity(program.num_blocks()),
        peak: live.peak,
        predicted: predict(program, &live),
        needed: need(program, &live),
    };
    place_moves(program, &mut allocation, &mut choices);
    for block in 0..program.num_blocks() {
        let stays = choices.chance(30);
        let way = (0..program.num_edges(block))
            .find(|&way| !stays && may_run_ahead(program, &live, &allocation, block, way));
        allocation.ahead.push(way);
    }
    allocation
}

/// Whether the moves of a way back to a loop's start can come before the branch at the end of `block`.
fn may_run_ahead(
    program: &impl AllocFunction,
    live: &Liveness,
    allocation: &Allocation,
    block: usize,
    way: usize,
) -> bool {
    let moves = &allocation.moves[block];
    let is_branch = program.num_edges(block) == 2;
    if !is_branch || program.target(block, way) > block || moves[way].is_empty() {
        return false;
    }
    let other = 1 - way;
    let place = |unit: Unit| {
        let class = program.regs().class_of(unit);
        (class, allocation.names[unit.as_u32() as usize])
    };
    let is_changed = |place| moves[way].iter().any(|m| (m.class, m.to) == place);
    let mut is_free = !program
        .condition(block)
        .is_some_and(|c| is_changed(place(c)));
    for m in &moves[other] {
        if let MoveSource::Register(name) = m.source {
            is_free &= !is_changed((m.class, name));
        }
    }
    // A parameter that is where its argument was needs no move.
    program.inputs(block, other, |_, input| {
        if let Input::Unit(unit) = input {
            is_free &= !is_changed(place(unit));
        }
    });
    live.at_start(program.target(block, other), |unit| {
        is_free &= !is_changed(place(unit));
    });
    is_free
}

/// Writes the moves on the edges.
fn place_moves(program: &impl AllocFunction, allocation: &mut Allocation, choices: &mut Choices) {
    let mut spares: [Option<u32>; 4] = [None; 4];
    for block in 0..program.num_blocks() {
        let mut out: [Vec<Move>; 2] = Default::default();
        for (edge, sequence) in out.iter_mut().enumerate().take(program.num_edges(block)) {
            let mut parallel = Vec::new();
            program.inputs(block, edge, |to, input| {
                let class = program.regs().class_of(to);
                let source = match input {
                    Input::Unit(unit) => {
                        MoveSource::Register(allocation.names[unit.as_u32() as usize])
                    }
                    Input::Number(bits) => MoveSource::Number(bits),
                };
                parallel.push(Move {
                    class,
                    to: allocation.names[to.as_u32() as usize],
                    source,
                });
            });
            choices.shuffle(&mut parallel);
            *sequence = moves::sequentialize(&parallel, |class| {
                *spares[class.index()].get_or_insert_with(|| {
                    allocation.n_names[class.index()] += 1;
                    allocation.n_names[class.index()] - 1
                })
            });
        }
        allocation.moves.push(out);
    }
}
