//! The ops of the two levels, generated from one table.
//!
//! [`TileOp`] and [`ThreadOp`] are different types, so a mixture of levels does not type-check. Both
//! answer the same questions through [`Opcode::info`].

#[macro_use]
mod table;
pub mod rules;

use std::fmt;

use super::attrs::AttrKind;
use super::dfg::ValueList;
use super::effects::{Effects, OpClass};
use super::entities::Value;

/// How the types of operands and results belong together; [`rules`] states each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each rule is stated where it is checked")]
pub enum TypeRule {
    Const,
    Splat,
    SameInt,
    SameBits,
    SameI32,
    SameFloat,
    SameF32,
    SameWideFloat,
    Function,
    IntCompare,
    FloatCompare,
    Select,
    IntWiden,
    IntNarrow,
    IntToFloat,
    FloatToInt,
    FloatWiden,
    FloatNarrow,
    Bitcast,
    PtrCast,
    AddPtr,
    NoResult,
    GroupBarrier,
    InlinePtx,
    Print,
    Assert,
    I32Scalar,
    I64Scalar,
    Arange,
    Broadcast,
    ExpandDims,
    Reshape,
    Permute,
    Join,
    Split,
    Gather,
    Histogram,
    Dot,
    AsyncCopy,
    AsyncCommit,
    AsyncWait,
    TensorMap,
    TensorLoad,
    TensorCopy,
    TensorStore,
    ThreadTensorCopy,
    ThreadTensorStore,
    Mbar,
    MbarExpect,
    MbarTry,
    MbarWait,
    MbarWaitFor,
    MbarArrive,
    Release,
    Producer,
    SharedLoad,
    SharedStore,
    SlotPut,
    SharedView,
    DotStart,
    DotSum,
    DotDone,
    ConvertLayout,
    Hint,
    Load,
    Store,
    AtomicRmw,
    AtomicCas,
    Reduce,
    Scan,
    For,
    While,
    If,
    Rearrange,
    SlotAddr,
    LogAddr,
    Ld,
    St,
    Atom,
    AtomCas,
    Shuffle,
    Redux,
    LdMatrix,
    StMatrix,
    Mma,
    SameFirst,
    Wgmma,
    CpAsync,
    Words,
    Elect,
}

/// How many values an operand stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one.
    One,
    /// One or none.
    Optional,
    /// Any number.
    Many,
}

/// An operand as the table states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandInfo {
    /// Its name.
    pub name: &'static str,
    /// How many values it stands for.
    pub arity: Arity,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// Name in the text form.
    pub name: &'static str,
    /// Operands, in order.
    pub operands: &'static [OperandInfo],
    /// Attributes that must be present.
    pub required: &'static [&'static str],
    /// Attributes that may be present.
    pub optional: &'static [&'static str],
    /// Whether the result type is stated and not derived.
    pub result_is_given: bool,
    /// Type rule.
    pub rule: TypeRule,
    /// What the op does to memory, and what it costs.
    pub effects: Effects,
    /// The meaning, as the table's doc comment has it.
    pub doc: &'static str,
}

impl OpInfo {
    /// Smallest number of operand values.
    pub fn min_operands(&self) -> usize {
        self.operands
            .iter()
            .filter(|o| o.arity == Arity::One)
            .count()
    }

    /// Largest number of operand values; none if there is no limit.
    pub fn max_operands(&self) -> Option<usize> {
        let unbounded = self.operands.iter().any(|o| o.arity == Arity::Many);
        (!unbounded).then_some(self.operands.len())
    }

    /// Whether the attribute may stand on this op.
    pub fn allows(&self, attr: AttrKind) -> bool {
        self.required
            .iter()
            .chain(self.optional)
            .any(|&key| key == attr.key())
    }
}

/// An op of one of the levels.
pub trait Opcode: Copy + Eq + fmt::Debug + fmt::Display + 'static {
    /// Every op of the level, in table order.
    const ALL: &'static [Self];

    /// The op's row of the table.
    fn info(self) -> &'static OpInfo;

    /// The op with this text name.
    fn from_name(name: &str) -> Option<Self>;
}

/// A way to pass an operand to the builder.
pub trait OperandArg {
    /// How many values it stands for.
    const ARITY: Arity;
    /// Appends the values to a list of operands.
    fn push_to(self, args: &mut ValueList);
}

impl OperandArg for Value {
    const ARITY: Arity = Arity::One;
    fn push_to(self, args: &mut ValueList) {
        args.push(self);
    }
}

impl OperandArg for Option<Value> {
    const ARITY: Arity = Arity::Optional;
    fn push_to(self, args: &mut ValueList) {
        args.extend(self);
    }
}

impl OperandArg for &[Value] {
    const ARITY: Arity = Arity::Many;
    fn push_to(self, args: &mut ValueList) {
        args.extend_from_slice(self);
    }
}

macro_rules! op_enum {
    ($(#[$edoc:meta])* $enum:ident;
     $($(#[doc = $doc:literal])+ $variant:ident $text:literal $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} {$($opt:ident : $pty:ty),*} [$($given:ident)?] $rule:ident, $class:ident $({$($detail:ident($($arg:literal),*)),*})?;)*) => {
        $(#[$edoc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $($(#[doc = $doc])+ $variant,)* }

        impl Opcode for $enum {
            const ALL: &'static [$enum] = &[$($enum::$variant),*];

            fn info(self) -> &'static OpInfo {
                match self {
                    $($enum::$variant => {
                        const INFO: &OpInfo = &OpInfo {
                            name: $text,
                            operands: &[$(OperandInfo {
                                name: stringify!($operand),
                                arity: <$oty as OperandArg>::ARITY,
                            }),*],
                            required: &[$(stringify!($req)),*],
                            optional: &[$(stringify!($opt)),*],
                            result_is_given: GIVEN.len() == 1,
                            rule: TypeRule::$rule,
                            effects: Effects::of(OpClass::$class)$($(.$detail($($arg),*))*)?,
                            doc: concat!($($doc, "\n"),+),
                        };
                        const GIVEN: &[&str] = &[$(stringify!($given))?];
                        INFO
                    })*
                }
            }

            fn from_name(name: &str) -> Option<$enum> {
                match name { $($text => Some($enum::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.info().name)
            }
        }
    };
}

macro_rules! same_op {
    ($($(#[doc = $doc:literal])+ $variant:ident $text:literal $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} {$($opt:ident : $pty:ty),*} [$($given:ident)?] $rule:ident, $class:ident $({$($detail:ident($($arg:literal),*)),*})?;)*) => {
        impl TileOp {
            /// The op of the thread level that does the same element by element, if there is one.
            pub fn on_threads(self) -> Option<ThreadOp> {
                match self { $(TileOp::$variant => Some(ThreadOp::$variant),)* _ => None }
            }

            /// Whether it is a loop, whatever ends it.
            pub(crate) fn is_loop(self) -> bool {
                matches!(self, TileOp::For | TileOp::While)
            }
        }
    };
}

macro_rules! function_pattern {
    ($($(#[doc = $doc:literal])+ $variant:ident $text:literal $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} {$($opt:ident : $pty:ty),*} [$($given:ident)?] $rule:ident, $class:ident $({$($detail:ident($($arg:literal),*)),*})?;)*) => {
        /// A pattern for the functions of the table, where all are treated alike.
        macro_rules! tile_functions {
            () => { $($crate::ir::ops::TileOp::$variant)|* };
        }
    };
}

macro_rules! define_ops {
    (both {$($both:tt)*} functions {$($function:tt)*} tile {$($tile:tt)*} thread {$($thread:tt)*}) => {
        same_op! { $($both)* }
        function_pattern! { $($function)* }
        op_enum! {
            /// Ops of the tile IR.
            TileOp; $($both)* $($function)* $($tile)*
        }
        op_enum! {
            /// Ops of the thread IR.
            ThreadOp; $($both)* $($thread)*
        }
    };
}
for_each_op!(define_ops);
pub(crate) use tile_functions;

#[cfg(test)]
mod tests {
    use super::*;

    fn check_level<O: Opcode>() {
        for &op in O::ALL {
            let info = op.info();
            assert_eq!(O::from_name(info.name), Some(op));
            for key in info.required.iter().chain(info.optional) {
                assert!(
                    AttrKind::from_key(key).is_some(),
                    "{op}: no attribute {key}"
                );
            }
            let many = info.operands.iter().position(|o| o.arity != Arity::One);
            let tail = many.map_or(&[][..], |i| &info.operands[i..]);
            let optional_tail = tail.iter().all(|o| o.arity == Arity::Optional);
            assert!(
                optional_tail || tail.len() == 1,
                "{op}: operands cannot be told apart"
            );
        }
    }

    #[test]
    fn rows_are_consistent() {
        check_level::<TileOp>();
        check_level::<ThreadOp>();
    }
}
