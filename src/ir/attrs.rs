//! Attributes: what an instruction says beside its operands.
//!
//! One table gives the variants of [`Attr`], their keys in the text form, and typed access.

use smallvec::SmallVec;

use super::entities::Slot;
use super::literal::{Literal, Payload};
pub use super::matrix_units::MmaUnit;

/// Declares an enum whose variants have a text name.
macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every variant, in the order of the declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The variant with this name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl Payload for $name {
            fn to_literal(&self) -> Literal {
                Literal::Name(self.name().to_owned())
            }

            fn from_literal(literal: &Literal) -> Result<$name, String> {
                let found = match literal {
                    Literal::Name(name) => $name::from_name(name),
                    _ => None,
                };
                found.ok_or_else(|| format!("must be one of {}", [$($text),*].join(", ")))
            }
        }
    };
}
pub(super) use named_enum;

named_enum! {
    /// How two integers are compared.
    IntPred {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Signed below.
        Slt = "slt",
        /// Signed below or equal.
        Sle = "sle",
        /// Signed above.
        Sgt = "sgt",
        /// Signed above or equal.
        Sge = "sge",
        /// Unsigned below.
        Ult = "ult",
        /// Unsigned below or equal.
        Ule = "ule",
        /// Unsigned above.
        Ugt = "ugt",
        /// Unsigned above or equal.
        Uge = "uge",
    }
}

named_enum! {
    /// How two floating-point numbers are compared: ordered forms (`o`) are false and unordered forms
    /// (`u`) true when either is NaN.
    FloatPred {
        /// Ordered and equal.
        Oeq = "oeq",
        /// Ordered and different.
        One = "one",
        /// Ordered and below.
        Olt = "olt",
        /// Ordered and below or equal.
        Ole = "ole",
        /// Ordered and above.
        Ogt = "ogt",
        /// Ordered and above or equal.
        Oge = "oge",
        /// Unordered or equal.
        Ueq = "ueq",
        /// Unordered or different.
        Une = "une",
        /// Unordered or below.
        Ult = "ult",
        /// Unordered or below or equal.
        Ule = "ule",
        /// Unordered or above.
        Ugt = "ugt",
        /// Unordered or above or equal.
        Uge = "uge",
        /// Neither is NaN.
        Ord = "ord",
        /// Either is NaN.
        Uno = "uno",
    }
}

named_enum! {
    /// What a minimum or maximum does with one NaN operand.
    NanRule {
        /// The other operand is the result.
        Ignore = "ignore",
        /// NaN is the result.
        Propagate = "propagate",
    }
}

named_enum! {
    /// Rounding of a narrowing conversion.
    Rounding {
        /// To nearest, ties to even.
        Nearest = "rn",
        /// To zero.
        Zero = "rz",
    }
}

named_enum! {
    /// Where an access may be cached.
    Cache {
        /// All levels (loads).
        All = "ca",
        /// L2 and below.
        Global = "cg",
        /// Streaming: likely used once.
        Streaming = "cs",
        /// Not at all: fetched anew (loads).
        Volatile = "cv",
        /// Write back (stores).
        WriteBack = "wb",
        /// Write through (stores).
        WriteThrough = "wt",
    }
}

named_enum! {
    /// Which lines of the cache go first.
    Evict {
        /// This one early.
        First = "first",
        /// This one late.
        Last = "last",
    }
}

named_enum! {
    /// A special register.
    SpecialReg {
        /// Thread index in the CTA.
        Tid = "tid",
        /// Lane index in the warp.
        Lane = "lane",
        /// Program index along axis 0.
        ProgramX = "program_x",
        /// Program index along axis 1.
        ProgramY = "program_y",
        /// Program index along axis 2.
        ProgramZ = "program_z",
        /// Number of programs along axis 0.
        ProgramsX = "programs_x",
        /// Number of programs along axis 1.
        ProgramsY = "programs_y",
        /// Number of programs along axis 2.
        ProgramsZ = "programs_z",
        /// Number of the multiprocessor.
        SmId = "sm_id",
    }
}

named_enum! {
    /// How `redux` combines.
    RedOp {
        /// Sum.
        Add = "add",
        /// Signed minimum.
        Smin = "smin",
        /// Signed maximum.
        Smax = "smax",
        /// Unsigned minimum.
        Umin = "umin",
        /// Unsigned maximum.
        Umax = "umax",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
    }
}

named_enum! {
    /// How an atomic op combines what memory holds with its operand.
    RmwOp {
        /// Sum of integers, modulo 2^bits.
        Add = "add",
        /// Sum of floats.
        Fadd = "fadd",
        /// Larger of two signed numbers.
        Smax = "smax",
        /// Smaller of two signed numbers.
        Smin = "smin",
        /// Larger of two unsigned numbers.
        Umax = "umax",
        /// Smaller of two unsigned numbers.
        Umin = "umin",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// The operand alone.
        Xchg = "xchg",
    }
}

named_enum! {
    /// What else an atomic op orders.
    MemOrder {
        /// Nothing.
        Relaxed = "relaxed",
        /// What follows comes after it.
        Acquire = "acquire",
        /// What precedes comes before it.
        Release = "release",
        /// Both.
        AcqRel = "acq_rel",
    }
}

impl RmwOp {
    /// Whether the larger or smaller of two integers stays.
    pub fn is_extreme(self) -> bool {
        matches!(self, RmwOp::Smax | RmwOp::Smin | RmwOp::Umax | RmwOp::Umin)
    }
}

impl MemOrder {
    /// Whether what follows comes after it.
    pub fn acquires(self) -> bool {
        matches!(self, MemOrder::Acquire | MemOrder::AcqRel)
    }

    /// Whether what precedes comes before it.
    pub fn releases(self) -> bool {
        matches!(self, MemOrder::Release | MemOrder::AcqRel)
    }
}

named_enum! {
    /// Among whom an op is atomic.
    Scope {
        /// The threads of one program.
        Cta = "cta",
        /// The programs on one device.
        Gpu = "gpu",
        /// All devices and the host.
        Sys = "sys",
    }
}

named_enum! {
    /// How exact a product of matrices of f32 is; other types do not ask.
    DotPrecision {
        /// Each operand is cut to 11 significant bits: the low 13 bits of its fraction count as 0.
        Tf32 = "tf32",
        /// Sums of three such products: errors are as small as those of f32.
        Tf32x3 = "tf32x3",
        /// Operands as they are.
        Ieee = "ieee",
    }
}

named_enum! {
    /// How a printed number reads.
    Show {
        /// As a signed number.
        Signed = "signed",
        /// As an unsigned number.
        Unsigned = "unsigned",
        /// By its bits.
        Hex = "hex",
    }
}

/// Presence is the information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flag;

/// A list of numbers.
pub type List = SmallVec<[u32; 4]>;

macro_rules! attrs {
    ($($(#[$doc:meta])* $variant:ident $key:ident : $ty:ty;)*) => {
        /// One attribute.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Attr { $($(#[$doc])* $variant($ty),)* }

        /// Which attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AttrKind { $($(#[$doc])* $variant,)* }

        impl Attr {
            /// Which attribute this is.
            pub fn kind(&self) -> AttrKind {
                match self { $(Attr::$variant(_) => AttrKind::$variant,)* }
            }

            /// What stands after the key in the text form.
            pub fn to_literal(&self) -> Literal {
                match self { $(Attr::$variant(payload) => payload.to_literal(),)* }
            }
        }

        impl AttrKind {
            /// Every kind, in the order of the declaration.
            pub const ALL: &'static [AttrKind] = &[$(AttrKind::$variant),*];

            /// The key in the text form.
            pub fn key(self) -> &'static str {
                match self { $(AttrKind::$variant => stringify!($key),)* }
            }

            /// The kind with this key.
            pub fn from_key(key: &str) -> Option<AttrKind> {
                $(if key == stringify!($key) { return Some(AttrKind::$variant); })*
                None
            }

            /// The attribute of this kind that the text form states as `literal`, or what would be right there.
            pub fn attr(self, literal: &Literal) -> Result<Attr, String> {
                match self {
                    $(AttrKind::$variant => <$ty as Payload>::from_literal(literal).map(Attr::$variant),)*
                }
            }
        }

        /// Constructors named by key, for the builder.
        pub mod make {
            #[allow(clippy::wildcard_imports, reason = "the payload types are all of the parent's")]
            use super::*;
            $(
                #[doc = concat!("The attribute `", stringify!($key), "`.")]
                pub fn $key(payload: $ty) -> Attr { Attr::$variant(payload) }
            )*
        }

        /// Typed access to a list of attributes.
        pub trait Attrs {
            /// The attributes.
            fn attrs(&self) -> &[Attr];
            $(
                #[doc = concat!("The attribute `", stringify!($key), "`, if present.")]
                fn $key(&self) -> Option<&$ty> {
                    self.attrs().iter().find_map(|a| match a {
                        Attr::$variant(payload) => Some(payload),
                        _ => None,
                    })
                }
            )*
        }
    };
}

attrs! {
    /// Bits of a constant.
    Value value: u64;
    /// Dimension, first is 0.
    Axis axis: u8;
    /// First number of a range.
    Start start: i32;
    /// Comparison of integers.
    IntPred ipred: IntPred;
    /// Comparison of floats.
    FloatPred fpred: FloatPred;
    /// NaN rule.
    Nan nan: NanRule;
    /// Rounding.
    Round round: Rounding;
    /// Cache modifier.
    Cache cache: Cache;
    /// Eviction priority.
    Evict evict: Evict;
    /// The access must happen as written.
    Volatile volatile: Flag;
    /// One number per dimension.
    Values values: List;
    /// Sequence of index bits in which a reduction folds.
    Order order: List;
    /// Dimension of the operand that each dimension of the result is.
    Dims dims: List;
    /// Index in the last dimension.
    Index index: u8;
    /// From the last element to the first.
    Reverse reverse: Flag;
    /// Digits of the index in which a scan combines.
    Tree tree: List;
    /// Stages of a software pipeline.
    Stages stages: u8;
    /// How often what a loop repeats is written out.
    Unroll unroll: u8;
    /// Special register.
    Reg reg: SpecialReg;
    /// Where each element comes from.
    Map map: List;
    /// Shared-memory buffer; on an access: the buffer it stays within.
    Slot slot: Slot;
    /// Distance in bytes.
    Offset offset: i32;
    /// Unit that multiplies matrices.
    Unit unit: MmaUnit;
    /// Bytes that one access moves.
    Bytes bytes: u32;
    /// Distance in bytes from the address read.
    ReadOffset read_offset: i32;
    /// Groups of copies or of products that may be under way still.
    Pending pending: u32;
    /// Nothing that is written was read since the last barrier; nothing that a copy writes was since it, or in this iteration.
    Apart apart: Flag;
    /// Whether threads hold copies of what is accessed.
    Copied copied: Flag;
    /// Nothing is written where a predicate is false, not even zeros.
    Skips skips: Flag;
    /// Rows become columns.
    Trans trans: Flag;
    /// Of the left operand elements next to each other belong to different terms of a sum.
    TransA trans_a: Flag;
    /// The same of the right operand.
    TransB trans_b: Flag;
    /// Nobody reads what the sums hold.
    Unread unread: Flag;
    /// Columns of sums that an instruction adds to.
    Columns columns: u32;
    /// Shared-memory buffer that the left operand stands in.
    LeftSlot left_slot: Slot;
    /// Slot of the barriers on which copies arrive.
    Bars bars: Slot;
    /// How often a wait asks before it gives up.
    Tries tries: u32;
    /// Arrivals that end a phase of a barrier.
    Count count: u32;
    /// How exact a product of matrices is.
    Precision precision: DotPrecision;
    /// How many products of 8-bit floats may be summed with few bits.
    Imprecise imprecise: u32;
    /// Bits of the lane index.
    Mask mask: u32;
    /// Distance in lanes.
    Delta delta: u32;
    /// How lanes are combined.
    RedOp redop: RedOp;
    /// How an atomic op combines.
    Rmw rmw: RmwOp;
    /// What else an atomic op orders.
    Sem sem: MemOrder;
    /// Among whom an op is atomic.
    Scope scope: Scope;
    /// Lines of PTX.
    Ptx ptx: String;
    /// The registers that lines of PTX take.
    Constraints constraints: String;
    /// Elements that lines of PTX take at a time.
    Pack pack: u8;
    /// Nothing but the results comes of it.
    Pure pure: Flag;
    /// Text for the reader of a report.
    Text text: String;
    /// How a printed number reads.
    Show show: Show;
    /// What fails ends the launch.
    Trap trap: Flag;
    /// What is divided is not negative as a signed number, nor what divides it without a sign.
    Natural natural: Flag;
    /// Barrier number.
    Id id: u8;
    /// Number of threads.
    Threads threads: u32;
}
