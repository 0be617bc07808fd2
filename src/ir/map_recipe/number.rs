//! Numbers that a launcher computes.

use std::fmt;

/// Deepest nesting of a number.
pub(super) const MAX_DEPTH: usize = 64;

/// A number made of a kernel's arguments and the extents of its grid, in 64 bits with sign. Nothing wraps: where an operation
/// overflows there is no number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostNumber {
    /// This number.
    Const(i64),
    /// The parameter of the kernel with this index, of integer type, sign-extended (truth values as 0 and 1).
    Param(u32),
    /// The extent of the grid along an axis.
    Programs(u8),
    /// The part of the recipe with this index ([`MapRecipe::parts`](super::MapRecipe::parts)).
    Part(u32),
    /// Two numbers combined.
    Op(NumberOp, Box<[HostNumber; 2]>),
}

coded_enum! {
    /// How two numbers are combined. Truth values are 0 and 1; what is not zero counts as true.
    NumberOp,
    /// The name in the text form.
    name;

    /// Sum.
    Add = "add",
    /// Difference.
    Sub = "sub",
    /// Product.
    Mul = "mul",
    /// Quotient, rounded to zero; by zero there is none.
    Div = "div",
    /// Quotient, rounded up; by zero there is none.
    CeilDiv = "cdiv",
    /// The smaller one.
    Min = "min",
    /// The larger one.
    Max = "max",
    /// Whether both are true. There is none where either has none.
    And = "and",
    /// Whether one of them is true. There is none where either has none.
    Or = "or",
    /// Whether they are equal.
    Eq = "eq",
    /// Whether they differ.
    Ne = "ne",
    /// Whether the first one is smaller.
    Lt = "lt",
    /// Whether the first one is not larger.
    Le = "le",
    /// The first one, if it is a number with sign of as many bits as the second one says; else there is none.
    Signed = "signed",
    /// The first one, if it is a number without sign of as many bits as the second one says; else there is none.
    Unsigned = "unsigned",
}

impl NumberOp {
    /// The operation on two numbers.
    #[inline]
    pub fn eval(self, a: i64, b: i64) -> Option<i64> {
        match self {
            NumberOp::Add => a.checked_add(b),
            NumberOp::Sub => a.checked_sub(b),
            NumberOp::Mul => a.checked_mul(b),
            NumberOp::Div => a.checked_div(b),
            NumberOp::CeilDiv => {
                let down = a.checked_div(b)?;
                // The quotient rounded to zero is below the exact one where that is positive.
                let more = a % b != 0 && (a < 0) == (b < 0);
                Some(down + i64::from(more))
            }
            NumberOp::Min => Some(a.min(b)),
            NumberOp::Max => Some(a.max(b)),
            NumberOp::And => Some(i64::from(a != 0 && b != 0)),
            NumberOp::Or => Some(i64::from(a != 0 || b != 0)),
            NumberOp::Eq => Some(i64::from(a == b)),
            NumberOp::Ne => Some(i64::from(a != b)),
            NumberOp::Lt => Some(i64::from(a < b)),
            NumberOp::Le => Some(i64::from(a <= b)),
            NumberOp::Signed => {
                let beyond = bits(b)?.checked_sub(1)?;
                let top = a >> beyond.min(63);
                (top == 0 || top == -1).then_some(a)
            }
            NumberOp::Unsigned => {
                let beyond = bits(b)?;
                (a >= 0 && (beyond >= 63 || a >> beyond == 0)).then_some(a)
            }
        }
    }
}

/// A number of bits.
fn bits(bits: i64) -> Option<u32> {
    u32::try_from(bits).ok().filter(|bits| *bits <= 64)
}

impl HostNumber {
    /// The number for these arguments, this grid and these values of parts. None where an operation has no result and where a
    /// parameter or a part is not known. Allocates nothing.
    pub fn eval(
        &self,
        params: &dyn Fn(u32) -> Option<i64>,
        grid: [u32; 3],
        parts: &[i64],
    ) -> Option<i64> {
        match self {
            HostNumber::Const(number) => Some(*number),
            HostNumber::Param(index) => params(*index),
            HostNumber::Programs(axis) => grid.get(usize::from(*axis)).map(|&n| i64::from(n)),
            HostNumber::Part(index) => parts.get(*index as usize).copied(),
            HostNumber::Op(op, operands) => {
                let [a, b] = &**operands;
                op.eval(a.eval(params, grid, parts)?, b.eval(params, grid, parts)?)
            }
        }
    }

    /// Calls `visit` for every parameter that it reads.
    pub fn params(&self, visit: &mut dyn FnMut(u32)) {
        match self {
            HostNumber::Const(_) | HostNumber::Programs(_) | HostNumber::Part(_) => {}
            HostNumber::Param(index) => visit(*index),
            HostNumber::Op(_, operands) => operands.iter().for_each(|number| number.params(visit)),
        }
    }

    /// A part with this index or a later one that it names.
    pub(super) fn part_from(&self, least: u32) -> Option<u32> {
        match self {
            HostNumber::Const(_) | HostNumber::Param(_) | HostNumber::Programs(_) => None,
            HostNumber::Part(index) => (*index >= least).then_some(*index),
            HostNumber::Op(_, operands) => operands.iter().find_map(|n| n.part_from(least)),
        }
    }

    /// Whether the extent of the grid along some axis is named in it.
    pub fn reads_grid(&self) -> bool {
        match self {
            HostNumber::Const(_) | HostNumber::Param(_) | HostNumber::Part(_) => false,
            HostNumber::Programs(_) => true,
            HostNumber::Op(_, operands) => operands.iter().any(HostNumber::reads_grid),
        }
    }

    /// An axis that it names and grids do not have.
    pub(crate) fn bad_axis(&self) -> Option<u8> {
        match self {
            HostNumber::Const(_) | HostNumber::Param(_) | HostNumber::Part(_) => None,
            HostNumber::Programs(axis) => (*axis > 2).then_some(*axis),
            HostNumber::Op(_, operands) => operands.iter().find_map(HostNumber::bad_axis),
        }
    }
}

/// As in `add(p3, mul(64, cdiv(n0, 64)))`; extents of the grid are `gridx`, `gridy` and `gridz`, parts `n0`, `n1`, ..
impl fmt::Display for HostNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostNumber::Const(number) => write!(f, "{number}"),
            HostNumber::Param(index) => write!(f, "p{index}"),
            HostNumber::Programs(axis) => match AXES.get(usize::from(*axis)) {
                Some(name) => f.write_str(name),
                None => write!(f, "grid{axis}"),
            },
            HostNumber::Part(index) => write!(f, "n{index}"),
            HostNumber::Op(op, operands) => {
                let [a, b] = &**operands;
                write!(f, "{}({a}, {b})", op.name())
            }
        }
    }
}

/// Names of the extents of the grid.
pub(super) const AXES: [&str; 3] = ["gridx", "gridy", "gridz"];
