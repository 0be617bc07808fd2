//! How far other executors may be from the interpreter, in the words of who asks; `exec` finds it.

use rustc_hash::FxHashMap;

use crate::device_print::Record;
use crate::ir::entities::Inst;
use crate::ir::types::Scalar;

/// How far elements of memory may be from what the interpreter left and still keep the bounds that the ops state.
#[derive(Clone, Debug, Default)]
pub struct Bounded {
    /// By address; what is not there is exact.
    pub elements: FxHashMap<u64, Distance>,
    /// Whether something was printed that has a bound.
    pub is_printed: bool,
    /// Records that were printed of values that are not defined, and what these come from.
    pub undefined_records: Vec<(Record, Cause)>,
}

/// How far an element of memory may be from what the interpreter left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// What type the element was stored as.
    pub stored: Scalar,
    /// How far it may be; infinite where no bound follows.
    pub by: f64,
    /// What it comes from that no bound follows for, if it does: a number made of that may have a bound all the same.
    pub cause: Option<Cause>,
}

/// An instruction that no bound follows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The instruction.
    pub inst: Inst,
    /// Why there is none.
    pub why: Open,
}

/// Why no bound follows for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// It is a quotient or remainder of integers by zero.
    ByZero,
    /// It is the quotient or remainder of the least signed number by -1.
    Overflow,
    /// It is a reduction or scan by a region that does not do what it must: the order of the elements shows.
    Order,
    /// It is a reduction or scan of which some orders have partial results beyond the numbers of the type.
    Extremes,
    /// It is made of a number within bounds, and may be anything.
    Unfollowed,
}

impl Open {
    /// Whether there is no right result at all.
    pub fn is_undefined(self) -> bool {
        matches!(self, Open::ByZero | Open::Overflow)
    }
}
