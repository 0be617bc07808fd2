//! What the interpreter reports.

use std::fmt;

use super::bounded::Cause;
use super::memory::MemoryError;
use crate::ir::dfg::SourceLoc;
use crate::ir::entities::{Inst, Slot};
use crate::ir::ops::TileOp;

/// Why a kernel could not be run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct InterpError {
    /// Where it happened.
    pub place: FaultSite,
    /// What happened.
    pub kind: InterpErrorKind,
}

/// The program and the instruction at fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSite {
    /// Index of the program along the three axes of the grid; none before programs run.
    pub program: Option<[u32; 3]>,
    /// The instruction with its op; none for what concerns the kernel as a whole.
    pub inst: Option<(Inst, TileOp)>,
    /// Number of the element of a block, in row-major order, if it is one element's fault.
    pub element: Option<u32>,
    /// Where the instruction comes from.
    pub loc: SourceLoc,
}

impl fmt::Display for FaultSite {
    /// Writes `program (1, 0, 0), inst7 (load), line 12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.program {
            Some([x, y, z]) => write!(f, "program ({x}, {y}, {z})")?,
            None => f.write_str("launch")?,
        }
        if let Some((inst, op)) = self.inst {
            write!(f, ", {inst} ({op})")?;
        }
        if let Some(element) = self.element {
            write!(f, ", element {element}")?;
        }
        if let Some(line) = self.loc.0.expand() {
            write!(f, ", line {}", line.0)?;
        }
        Ok(())
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpErrorKind {
    /// An access to memory that is not there or that nobody wrote.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// An address that is no multiple of the element's size.
    #[error("address {address:#x} is not a multiple of {size}")]
    Misaligned {
        /// The address.
        address: u64,
        /// Size of the element in bytes.
        size: u32,
    },
    /// One store writes different values to one address.
    #[error("one store writes {first:#x} and {second:#x} to address {address:#x}")]
    StoreConflict {
        /// The address.
        address: u64,
        /// Bits of one value.
        first: u64,
        /// Bits of another.
        second: u64,
    },
    /// Two programs touch the same byte and one of them writes it.
    #[error(
        "race: address {address:#x} is {} here and was {} by {other}",
        touched(*writes), touched(*other_writes)
    )]
    Race {
        /// The byte's address.
        address: u64,
        /// Whether this access is a store.
        writes: bool,
        /// The other program.
        other: OtherProgram,
        /// Whether its access was a store.
        other_writes: bool,
    },
    /// A program touches a byte that it wrote before, without a barrier in between.
    #[error(
        "address {address:#x} is {} after this program wrote it, without a barrier between",
        touched(*writes)
    )]
    Unordered {
        /// The byte's address.
        address: u64,
        /// Whether this access is a store too.
        writes: bool,
    },
    /// An `assume_*` op or a parameter's hint that does not hold.
    #[error("broken promise: {0}")]
    BrokenPromise(String),
    /// A loop that counts by less than one.
    #[error("loop step {0} is below 1: a loop counts down by a constant step only")]
    LoopStep(i64),
    /// More steps than the limit allows.
    #[error("the limit of {0} steps is reached")]
    StepLimit(u64),
    /// A condition that the kernel's author took for true.
    #[error("assertion failed{}: {text}", at(*element))]
    AssertFailed {
        /// The author's text.
        text: String,
        /// Number of the element of a block, in row-major order.
        element: Option<u32>,
    },
    /// An entry that a ring of blocks does not have.
    #[error("{slot} has {stages} entries, not number {index}")]
    RingIndex {
        /// The ring.
        slot: Slot,
        /// Number of the entry, from 0.
        index: u64,
        /// How many there are.
        stages: u64,
    },
    /// An entry of a ring of blocks that nothing was copied to, or whose copy was not waited for.
    #[error("entry {index} of {slot} holds nothing yet")]
    EmptyEntry {
        /// The ring.
        slot: Slot,
        /// Number of the entry, from 0.
        index: u64,
    },
    /// An entry of a ring of blocks that changes while a product may still read it.
    #[error("entry {index} of {slot} changes while a product that was not waited for reads it")]
    EntryInUse {
        /// The ring.
        slot: Slot,
        /// Number of the entry, from 0.
        index: u64,
    },
    /// A launch for which the conditions of a tensor map do not hold: the kernel compiled without maps is meant for it.
    #[error(
        "the condition of a tensor map does not hold; such launches are of the kernel compiled without maps"
    )]
    NoMap,
    /// A box of a tensor whose innermost coordinate is no multiple of 16 bytes.
    #[error("a box starts at innermost coordinate {start}, which is no multiple of 16 bytes")]
    BoxStart {
        /// The coordinate.
        start: i64,
    },
    /// A box that is stored to a tensor whose rows are no multiple of 16 bytes: the engine would write behind their ends.
    #[error(
        "a box is stored to rows of {extent} elements, which are no multiple of 16 bytes: what is behind a row would change"
    )]
    BoxEnd {
        /// Elements of a row.
        extent: u64,
    },
    /// A box that is stored and begins in front of the tensor, which the engine does not take.
    #[error("a box is stored that starts at coordinate {start}, in front of the tensor")]
    BoxBefore {
        /// The coordinate.
        start: i64,
    },
    /// Something that is no barrier, or was not made.
    #[error("there is no barrier {index} in {slot}")]
    NoBarrier {
        /// The slot.
        slot: Slot,
        /// Number of the barrier, from 0.
        index: u64,
    },
    /// A wait for a phase of a barrier that nobody ends.
    #[error("nobody ends the phase of barrier {index} in {slot} that is waited for")]
    NoArrival {
        /// The slot.
        slot: Slot,
        /// Number of the barrier, from 0.
        index: u64,
    },
    /// A wait of a producer for what the program never gives back.
    #[error(
        "the producer waits for barrier {index} in {slot} for ever: the program does not give back what it waits for"
    )]
    Stuck {
        /// The slot.
        slot: Slot,
        /// Number of the barrier, from 0.
        index: u64,
    },
    /// An entry of a ring of blocks that a producer fills while the program has not released it.
    #[error("entry {index} of {slot} is filled again before it was released")]
    EntryHeld {
        /// The ring.
        slot: Slot,
        /// Number of the entry, from 0.
        index: u64,
    },
    /// Boxes of a producer that the program ended without.
    #[error("a producer brings boxes to barrier {index} in {slot} that nobody waits for")]
    Unwaited {
        /// The slot.
        slot: Slot,
        /// Number of the barrier, from 0.
        index: u64,
    },
    /// Entries given back more often than anybody waited for them.
    #[error("what arrives on barrier {index} in {slot} is more than anybody waits for")]
    Unasked {
        /// The slot.
        slot: Slot,
        /// Number of the barrier, from 0.
        index: u64,
    },
    /// What happens next depends on a value that is known within bounds only; and what that comes from, if no bound follows for it.
    #[error(
        "what is executed or accessed here depends on a value that the bounds of the ops leave open"
    )]
    Undecided(Option<Cause>),
    /// An op that only a machine can execute.
    #[error("`{0}` cannot be interpreted")]
    NotExecutable(&'static str),
    /// The arguments do not fit the kernel's parameters, or no GPU launches such a grid.
    #[error("{0}")]
    Arguments(String),
    /// The function breaks a rule of the IR.
    #[error("malformed function: {0}")]
    Malformed(String),
}

/// Who touched a byte before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherProgram {
    /// The program with this index in the grid, counted along x first.
    One(u32),
    /// The producer of a program, this or another: nothing orders it with what programs do to memory.
    Producer,
    /// Several that read it.
    Several,
}

impl fmt::Display for OtherProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OtherProgram::One(index) => write!(f, "program number {index}"),
            OtherProgram::Producer => f.write_str("a producer"),
            OtherProgram::Several => f.write_str("several programs"),
        }
    }
}

fn at(element: Option<u32>) -> String {
    element.map_or(String::new(), |element| format!(" at element {element}"))
}

fn touched(writes: bool) -> &'static str {
    if writes { "written" } else { "read" }
}
