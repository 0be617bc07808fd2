//! What can go wrong: in the text, in a launch, and in the program while it runs.

use std::fmt;

use thiserror::Error;

/// PTX text that the emulator does not accept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("ptx line {line}: {kind}")]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: u32,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// The kinds of [`ParseError`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text does not have the shape of PTX.
    #[error("{0}")]
    Syntax(String),
    /// A name that nothing declares.
    #[error("`{0}` is not declared")]
    Undeclared(String),
    /// An instruction that the emulator does not know, or a form of it.
    #[error("unsupported instruction `{0}`")]
    UnsupportedInstruction(String),
    /// A modifier that this instruction does not take.
    #[error("`{opcode}` does not take `.{modifier}`")]
    UnknownModifier {
        /// The instruction with all modifiers.
        opcode: String,
        /// The one that was left over.
        modifier: String,
    },
    /// Operands that do not fit the instruction.
    #[error("`{opcode}`: {reason}")]
    Operands {
        /// The instruction with all modifiers.
        opcode: String,
        /// What does not fit.
        reason: String,
    },
    /// An instruction that the module's target or version does not have yet.
    #[error("`{opcode}` needs {needs}")]
    TooEarly {
        /// The instruction with all modifiers.
        opcode: String,
        /// The first target and version that have it.
        needs: String,
    },
    /// A directive that the emulator cannot honour.
    #[error("unsupported directive `{0}`")]
    UnsupportedDirective(String),
}

/// A line of the source that PTX was made from, as `.loc` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The number that `.file` gives the file.
    pub file: u32,
    /// Line of the file, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source line {}", self.line)?;
        // Most texts have one file.
        match self.file {
            1 => Ok(()),
            file => write!(f, " of file {file}"),
        }
    }
}

/// A line of PTX text beside that of its source, if the text names one.
pub(super) struct Line(pub(super) u32, pub(super) Option<SourceLine>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.0)?;
        match self.1 {
            None => Ok(()),
            Some(source) => write!(f, " ({source})"),
        }
    }
}

/// A place in a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSite {
    /// Line of the PTX text, from 1.
    pub line: u32,
    /// Line of the source, where the text has `.loc`.
    pub source: Option<SourceLine>,
    /// `%ctaid`.
    pub cta: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for FaultSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([cx, cy, cz], [tx, ty, tz]) = (self.cta, self.thread);
        write!(
            f,
            "ptx {}, cta ({cx}, {cy}, {cz}), thread ({tx}, {ty}, {tz})",
            Line(self.line, self.source)
        )
    }
}

/// State space of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory.
    Global,
    /// Memory of a CTA.
    Shared,
    /// Memory of any CTA of the cluster.
    Cluster,
    /// Memory of a thread.
    Local,
    /// Kernel parameters.
    Param,
    /// Read-only module variables.
    Const,
    /// One of the others, told apart by the address.
    Generic,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Cluster => "shared::cluster",
            Space::Local => "local",
            Space::Param => "param",
            Space::Const => "const",
            Space::Generic => "generic",
        })
    }
}

/// How an instruction touched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A plain load.
    Read,
    /// A plain store.
    Write,
    /// An atomic operation, or a load or store that the memory model calls strong.
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic access",
        })
    }
}

/// What a program did wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A register was used that this thread never wrote, or whose value depends on such a one.
    #[error("register `{name}` is used but holds no defined value")]
    UnwrittenRegister {
        /// Its name in the text.
        name: String,
    },
    /// A load of bytes that nobody wrote.
    #[error("read of {bytes} bytes at {space} address {address:#x}, not all of them written")]
    Uninitialised {
        /// Where.
        space: Space,
        /// First byte of the access.
        address: u64,
        /// Length of the access.
        bytes: u32,
    },
    /// An access outside every allocation.
    #[error("access to {bytes} bytes at {space} address {address:#x}, out of bounds: {nearest}")]
    OutOfBounds {
        /// Where.
        space: Space,
        /// First byte of the access.
        address: u64,
        /// Length of the access.
        bytes: u32,
        /// The nearest allocation, in words.
        nearest: String,
    },
    /// An address that is not a multiple of the access size.
    #[error("misaligned {space} address {address:#x}: not a multiple of {align}")]
    Misaligned {
        /// Where.
        space: Space,
        /// The address.
        address: u64,
        /// What it should be a multiple of.
        align: u32,
    },
    /// A store to memory that is only read.
    #[error("store to the read-only {space} space")]
    ReadOnly {
        /// Which.
        space: Space,
    },
    /// Two accesses that nothing orders, at least one of them a write.
    #[error(
        "race on {space} address {address:#x}: this {kind} and the {other_kind} at {other} are not ordered"
    )]
    Race {
        /// Where.
        space: Space,
        /// The byte.
        address: u64,
        /// This access.
        kind: AccessKind,
        /// The earlier access.
        other_kind: AccessKind,
        /// Its place.
        other: FaultSite,
    },
    /// An access of the async proxy behind one of the generic proxy, ordered but without a fence between them.
    #[error(
        "{space} address {address:#x}: no fence makes the {other_kind} at {other} visible to this asynchronous {kind}; \
         the thread that made it lacks a `fence.proxy.async` before it synchronises"
    )]
    Proxy {
        /// Where.
        space: Space,
        /// The byte.
        address: u64,
        /// What the asynchronous work does.
        kind: AccessKind,
        /// The earlier access.
        other_kind: AccessKind,
        /// Its place.
        other: FaultSite,
    },
    /// A load by `.nc`, of memory that nobody may write while the kernel runs, behind a write of it.
    #[error("`.nc` load of global address {address:#x}, which the kernel writes at {other}")]
    Constant {
        /// The byte.
        address: u64,
        /// Where it is written.
        other: FaultSite,
    },
    /// A write of memory that a load by `.nc` takes for constant, whether it is ordered behind that or not.
    #[error(
        "write of global address {address:#x}, which the `.nc` load at {other} takes for constant: \
         where the kernel writes, it must load without `.nc`"
    )]
    ConstantWritten {
        /// The byte.
        address: u64,
        /// Where it is loaded.
        other: FaultSite,
    },
    /// A barrier in shared memory used in a way that has no meaning.
    #[error("mbarrier at shared address {address:#x}: {reason}")]
    MBarrier {
        /// Where it is.
        address: u64,
        /// What is wrong.
        reason: String,
    },
    /// A bulk copy, or a tensor map, that the hardware would not take.
    #[error("bulk copy: {0}")]
    BulkCopy(String),
    /// A thread or CTA ends while asynchronous work still needs it.
    #[error("the end is reached {0}")]
    UnderWay(String),
    /// An aligned instruction that only a part of the warp executes.
    #[error("`{opcode}` must be executed by the whole warp; {missing}")]
    PartialWarp {
        /// The instruction.
        opcode: String,
        /// Who is missing, in words.
        missing: String,
    },
    /// A register was touched that belongs to a product under way.
    #[error(
        "register `{name}` belongs to the product of line {line}, which is in flight: no `wgmma.wait_group` has covered it"
    )]
    InFlight {
        /// Its name in the text.
        name: String,
        /// The product.
        line: u32,
    },
    /// A product of a warpgroup uses a register that was touched since the last `wgmma.fence`.
    #[error(
        "register `{name}` of this product was used in line {line}, and no `wgmma.fence` came since"
    )]
    Unfenced {
        /// Its name in the text.
        name: String,
        /// Where it was used; zero if no fence ever came.
        line: u32,
    },
    /// Something that CTAs of a cluster do with each other, and must not.
    #[error("cluster: {0}")]
    Cluster(String),
    /// An instruction of a warpgroup that its warps or lanes do not execute alike, or that makes no sense.
    #[error("`{opcode}`: {reason}")]
    Warpgroup {
        /// The instruction.
        opcode: String,
        /// What is wrong.
        reason: String,
    },
    /// Threads wait for something that cannot happen any more.
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// A barrier used in a way that has no meaning.
    #[error("barrier {id}: {reason}")]
    Barrier {
        /// Barrier number.
        id: u64,
        /// What is wrong.
        reason: String,
    },
    /// A lane that executes a `.sync` instruction without being in its member mask.
    #[error("lane {lane} is not in the member mask {mask:#010x}")]
    NotMember {
        /// The lane.
        lane: u32,
        /// The mask.
        mask: u32,
    },
    /// A shuffle that reads a lane which does not take part.
    #[error("shuffle reads lane {lane}, which does not take part")]
    InactiveLane {
        /// The lane.
        lane: u32,
    },
    /// `bra.uni` whose predicate differs among the lanes.
    #[error("`bra.uni` diverges")]
    DivergentUniform,
    /// A copy that reads more than it writes.
    #[error("a copy of {bytes} bytes is told to read {read}")]
    CopySize {
        /// What it is told to read.
        read: u32,
        /// What it writes.
        bytes: u32,
    },
    /// `trap` was executed.
    #[error("trap")]
    Trap,
    /// Something that the emulator cannot run, found only when reached.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The step limit was reached.
    #[error("the limit of {0} steps is reached; a step is an instruction of a warp")]
    StepLimit(u64),
}

impl Fault {
    /// The address in device memory that it is about.
    pub fn global_address(&self) -> Option<u64> {
        match self {
            Fault::Uninitialised { space, address, .. }
            | Fault::OutOfBounds { space, address, .. }
            | Fault::Misaligned { space, address, .. }
            | Fault::Race { space, address, .. }
            | Fault::Proxy { space, address, .. } => {
                matches!(space, Space::Global | Space::Generic).then_some(*address)
            }
            Fault::Constant { address, .. } | Fault::ConstantWritten { address, .. } => {
                Some(*address)
            }
            _ => None,
        }
    }
}

/// Why a launch failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmuError {
    /// The module has no entry of that name.
    #[error("no entry `{0}`")]
    NoEntry(String),
    /// The arguments do not fit the entry's parameters.
    #[error("arguments: {0}")]
    Arguments(String),
    /// Grid, block or shared memory are out of range or contradict the entry's directives.
    #[error("launch configuration: {0}")]
    Configuration(String),
    /// The program did something wrong.
    #[error("{at}: {fault}")]
    Fault {
        /// Where.
        at: FaultSite,
        /// What.
        fault: Fault,
    },
}

impl EmuError {
    /// The fault, if the program ran.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            EmuError::Fault { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// The PTX line, if the program ran.
    pub fn line(&self) -> Option<u32> {
        match self {
            EmuError::Fault { at, .. } => Some(at.line),
            _ => None,
        }
    }
}

/// A host access to device memory that is not inside one allocation, or reads unwritten bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// Not inside one allocation.
    #[error("{bytes} bytes at {address:#x} are not inside one allocation")]
    OutOfBounds {
        /// First byte.
        address: u64,
        /// Length.
        bytes: usize,
    },
    /// An allocation that host or device have no room for.
    #[error("there is no memory for an allocation of {bytes} bytes")]
    TooLarge {
        /// Length.
        bytes: usize,
    },
    /// A byte that neither host nor kernel wrote.
    #[error("byte at {address:#x} was never written")]
    Uninitialised {
        /// The first such byte.
        address: u64,
    },
}
