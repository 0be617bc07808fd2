//! Why an access stays one of pointers.

use std::fmt;

use crate::ir::dfg::SourceLine;

/// The condition of promotion that a load or store does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum Refusal {
    /// Other programs may change what is read.
    Volatile,
    /// The copy engine knows no such elements.
    Elements,
    /// A block of few bytes.
    Small,
    /// Elements that are not read are not zero.
    Fill,
    /// The addresses are no sums of indices times strides.
    Addresses,
    /// They do not start from a parameter.
    Base,
    /// What they start from is not known to be a multiple of 16 bytes.
    BaseAlignment,
    /// The kernel writes there, or may do so.
    Written,
    /// A barrier lets the load see what the kernel wrote through another parameter, which may be given the same buffer.
    Seen,
    /// The kernel reads what it stores, or may do so.
    Read,
    /// Another store there stays one of pointers.
    Mixed,
    /// The kernel waits for what other programs write.
    Acquires,
    /// Not exactly one dimension has neighbours next to each other.
    NoUnitStride,
    /// A stride that the launcher does not know.
    Stride,
    /// A stride that is not known to be a multiple of 16 bytes.
    StrideAlignment,
    /// A stride that is zero or negative.
    StrideSign,
    /// The mask is no conjunction of upper bounds of the indices.
    Mask,
    /// A lower bound other than zero.
    LowerBound,
    /// An upper bound that the launcher does not know.
    Bound,
    /// Rows of what is stored that are known to be no multiple of 16 bytes.
    Pieces,
    /// Elements behind a bound are taken from elsewhere, and what becomes of them matters.
    Wraps,
    /// An index that may be negative, or larger than the copy engine's.
    Start,
    /// The innermost index is not known to start at a multiple of 16 bytes.
    StartAlignment,
    /// A number of 32 bits that may wrap.
    Overflow,
    /// A block of more than two dimensions, or a tensor of more than five.
    Rank,
    /// Products sum across rows of bytes.
    Across,
    /// What is stored stands transposed in registers.
    Transposed,
    /// More to compute at launch than is worth it.
    Launch,
    /// A block that is too wide, or has rows of less than 16 bytes.
    Box,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Volatile => "it is volatile",
            Refusal::Elements => "tensor maps have no such elements",
            Refusal::Small => "it and what comes with it have less than 2 KB",
            Refusal::Fill => "elements that are masked off are not zero",
            Refusal::Addresses => "its addresses are no sums of indices times strides",
            Refusal::Base => "its addresses do not start from a pointer that is a parameter",
            Refusal::BaseAlignment => "the tensor is not known to start at a multiple of 16 bytes",
            Refusal::Written => "the kernel may write to the tensor",
            Refusal::Seen => "a barrier stands between the kernel's stores and it, and two parameters may be given one buffer",
            Refusal::Read => "the kernel may read the tensor, or change it by other pointers",
            Refusal::Mixed => "another store to the tensor stays one of pointers",
            Refusal::Acquires => "the kernel waits for what other programs write",
            Refusal::NoUnitStride => "not exactly one dimension is known to have stride 1",
            Refusal::Stride => "a stride is not made of parameters",
            Refusal::StrideAlignment => "a stride is not known to be a multiple of 16 bytes",
            Refusal::StrideSign => "a stride is zero or negative",
            Refusal::Mask => "its mask is no conjunction of upper bounds of its indices",
            Refusal::LowerBound => "its mask has a lower bound other than zero",
            Refusal::Bound => "the bound of an index is not made of parameters",
            Refusal::Pieces => "the engine stores 16 bytes at a time, and the tensor's rows are no multiple of that",
            Refusal::Wraps => "indices wrap around at a bound, and what is there matters",
            Refusal::Start => "an index is not known to lie between 0 and 2^31",
            Refusal::StartAlignment => {
                "its rows are not known to start at a multiple of 16 bytes within the tensor's"
            }
            Refusal::Overflow => "an index of 32 bits may overflow",
            Refusal::Launch => "the launcher would have to compute too much",
            Refusal::Rank => "a box has two dimensions, and a tensor at most five",
            Refusal::Across => {
                "products sum across its rows, which units do not read of elements of 8 bits"
            }
            Refusal::Transposed => {
                "what it stores was summed transposed, and threads have whole sectors of it"
            }
            Refusal::Box => "a box has rows of 16 bytes or more, and at most 256 elements along each dimension",
        })
    }
}

/// A refusal, and what of the access it is about, in the words of its author.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    /// Which number or tensor, what is known of it, and what would help.
    pub(super) detail: Option<String>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let detail = None;
        Refused { refusal, detail }
    }
}

impl Refusal {
    /// The same with what it is about.
    pub(super) fn of(self, detail: String) -> Refused {
        Refused {
            refusal: self,
            detail: (!detail.is_empty()).then_some(detail),
        }
    }
}

/// What a kernel does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum AccessOp {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It adds to what is there.
    AtomicAdd,
}

impl fmt::Display for AccessOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessOp::Load => "load",
            AccessOp::Store => "store",
            AccessOp::AtomicAdd => "atomic_add",
        })
    }
}

/// What became of a load that feeds products of warpgroups in a loop, or of a store of what they make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Promotion {
    /// What it does.
    pub access: AccessOp,
    /// Where it stands in the source; for `serde` the line.
    #[cfg_attr(feature = "serde", serde(serialize_with = "line_alone"))]
    pub line: Option<SourceLine>,
    /// Why it stays one of pointers; none if it became one of a tensor map.
    pub refusal: Option<Refusal>,
    /// Which stride, index or tensor the refusal is about, what is known of it, and what would help; none where the refusal says
    /// all.
    pub detail: Option<String>,
}

impl Promotion {
    /// Whether it became one of a tensor map.
    pub fn is_by_map(&self) -> bool {
        self.refusal.is_none()
    }
}

#[cfg(feature = "serde")]
fn line_alone<S: serde::Serializer>(line: &Option<SourceLine>, to: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&line.map(|SourceLine(line, _)| line), to)
}

impl fmt::Display for Promotion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.access)?;
        match self.line {
            Some(SourceLine(line, _)) => write!(f, " in line {line}: ")?,
            None => f.write_str(": ")?,
        }
        match (&self.refusal, &self.detail) {
            (None, _) => f.write_str("by tensor map"),
            (Some(refusal), None) => write!(f, "by pointers, because {refusal}"),
            (Some(refusal), Some(detail)) => write!(f, "by pointers, because {refusal}: {detail}"),
        }
    }
}
