//! Element types, and the types of values at the two levels of the IR.

use std::fmt;

use cranelift_entity::packed_option::PackedOption;

use crate::linear_layout::pool::LayoutId;
use crate::linear_layout::shape::Shape;
use crate::num::Format;

/// A number format. Integers are signless: the op carries the sign, as in PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// A truth value; loads and stores go through whole bytes.
    I1,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of binary32.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// FP8 with 4 exponent and 3 fraction bits, no infinities (E4M3FN).
    F8E4M3,
    /// FP8 with 5 exponent and 2 fraction bits (E5M2).
    F8E5M2,
}

impl Scalar {
    /// Every number format, in the order of the declaration.
    pub const ALL: [Scalar; 11] = [
        Scalar::I1,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::F32,
        Scalar::F64,
        Scalar::F8E4M3,
        Scalar::F8E5M2,
    ];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::I1 => "i1",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::F16 => "f16",
            Scalar::Bf16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::F8E4M3 => "f8e4m3",
            Scalar::F8E5M2 => "f8e5m2",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Width of the value in bits.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::I1 => 1,
            Scalar::I8 | Scalar::F8E4M3 | Scalar::F8E5M2 => 8,
            Scalar::I16 | Scalar::F16 | Scalar::Bf16 => 16,
            Scalar::I32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::F64 => 64,
        }
    }

    /// Size in memory in bytes; a truth value takes one.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// The floating-point format, if this is one.
    pub fn format(self) -> Option<Format> {
        Some(match self {
            Scalar::F16 => Format::F16,
            Scalar::Bf16 => Format::BF16,
            Scalar::F32 => Format::F32,
            Scalar::F64 => Format::F64,
            Scalar::F8E4M3 => Format::E4M3,
            Scalar::F8E5M2 => Format::E5M2,
            Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => return None,
        })
    }

    /// Whether this is a floating-point format.
    pub fn is_float(self) -> bool {
        self.format().is_some()
    }

    /// Whether this is an integer, [`Scalar::I1`] included.
    pub fn is_int(self) -> bool {
        !self.is_float()
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Memory a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSpace {
    /// Device memory, 64-bit addresses.
    Global,
    /// Shared memory of the CTA, 32-bit addresses.
    Shared,
}

/// What one element of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    /// A number.
    Num(Scalar),
    /// The address of a number.
    Ptr(Scalar, AddressSpace),
    /// A tensor in device memory as the copy engine knows it: where it is, its extents and strides, and the box of it that is
    /// copied at once.
    Map(Scalar),
    /// Proof that asynchronous work was started; only waits consume it. A token has no bits: the
    /// commit-group counts and barrier phases it stands for are derived from distances between tokens.
    Token,
}

impl Elem {
    /// A truth value.
    pub const I1: Elem = Elem::Num(Scalar::I1);
    /// An 8-bit integer.
    pub const I8: Elem = Elem::Num(Scalar::I8);
    /// A 16-bit integer.
    pub const I16: Elem = Elem::Num(Scalar::I16);
    /// A 32-bit integer.
    pub const I32: Elem = Elem::Num(Scalar::I32);
    /// A 64-bit integer.
    pub const I64: Elem = Elem::Num(Scalar::I64);
    /// IEEE binary16.
    pub const F16: Elem = Elem::Num(Scalar::F16);
    /// bfloat16.
    pub const BF16: Elem = Elem::Num(Scalar::Bf16);
    /// IEEE binary32.
    pub const F32: Elem = Elem::Num(Scalar::F32);
    /// IEEE binary64.
    pub const F64: Elem = Elem::Num(Scalar::F64);

    /// A pointer to device memory.
    pub fn global(pointee: Scalar) -> Elem {
        Elem::Ptr(pointee, AddressSpace::Global)
    }

    /// The number format, unless this is a pointer or a token.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Elem::Num(s) => Some(s),
            Elem::Ptr(..) | Elem::Map(_) | Elem::Token => None,
        }
    }

    /// What a pointer points to.
    pub fn pointee(self) -> Option<Scalar> {
        match self {
            Elem::Ptr(s, _) => Some(s),
            Elem::Num(_) | Elem::Map(_) | Elem::Token => None,
        }
    }

    /// Whether this is an integer, truth values included.
    pub fn is_int(self) -> bool {
        self.scalar().is_some_and(Scalar::is_int)
    }

    /// Whether this is a floating-point number.
    pub fn is_float(self) -> bool {
        self.scalar().is_some_and(Scalar::is_float)
    }

    /// Whether this is a pointer.
    pub fn is_ptr(self) -> bool {
        matches!(self, Elem::Ptr(..))
    }

    /// Width in bits; a token has none.
    pub fn bits(self) -> u32 {
        match self {
            Elem::Num(s) => s.bits(),
            Elem::Ptr(_, AddressSpace::Global) | Elem::Map(_) => 64,
            Elem::Ptr(_, AddressSpace::Shared) => 32,
            Elem::Token => 0,
        }
    }

    /// The bits that a number of the type may have set.
    pub fn mask(self) -> u64 {
        u64::MAX.checked_shr(64 - self.bits()).unwrap_or(0)
    }

    /// Size in memory in bytes.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Num(s) => write!(f, "{s}"),
            Elem::Ptr(s, AddressSpace::Global) => write!(f, "ptr<{s}>"),
            Elem::Ptr(s, AddressSpace::Shared) => write!(f, "ptr<{s}, shared>"),
            Elem::Map(s) => write!(f, "map<{s}>"),
            Elem::Token => f.write_str("token"),
        }
    }
}

/// Where the elements of a block are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// In registers of the program's threads.
    #[default]
    Registers,
    /// In shared memory: an entry of a ring, or a view of one. Units of matrices read it there.
    Shared,
}

/// Type of a value of the tile IR: a scalar or a block, with a layout once layouts are assigned.
///
/// The layout is part of the type, so the rule that operands of an elementwise op agree covers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileType {
    /// What each element is.
    pub elem: Elem,
    /// Extents; rank zero is a scalar.
    pub shape: Shape,
    /// Where each element lives; none before assignment and for scalars.
    pub layout: PackedOption<LayoutId>,
    /// What kind of place that is.
    pub place: Place,
}

impl TileType {
    /// Bytes of all elements as they lie in memory.
    pub(crate) fn bytes(self) -> u32 {
        self.elem.bytes() << self.shape.log2_elements()
    }

    /// A scalar type.
    pub fn scalar(elem: Elem) -> TileType {
        TileType {
            elem,
            shape: Shape::SCALAR,
            layout: None.into(),
            place: Place::Registers,
        }
    }

    /// A block type without layout.
    pub fn block(elem: Elem, shape: Shape) -> TileType {
        TileType {
            elem,
            shape,
            layout: None.into(),
            place: Place::Registers,
        }
    }

    /// The same type with another shape and no layout.
    pub fn with_shape(self, shape: Shape) -> TileType {
        TileType {
            place: self.place,
            ..TileType::block(self.elem, shape)
        }
    }

    /// The same type in another place, without layout.
    pub fn at(self, place: Place) -> TileType {
        TileType {
            place,
            ..self.without_layout()
        }
    }

    /// Whether the block is in shared memory.
    pub fn is_shared(&self) -> bool {
        self.place == Place::Shared
    }

    /// The same type with a layout; scalars have none.
    pub fn with_layout(self, layout: LayoutId) -> TileType {
        TileType {
            layout: Some(layout).into(),
            ..self
        }
    }

    /// The same type without layout.
    pub fn without_layout(self) -> TileType {
        TileType {
            layout: None.into(),
            ..self
        }
    }

    /// Whether this is a scalar.
    pub fn is_scalar(&self) -> bool {
        self.shape.is_scalar()
    }
}

/// Type of a value of the thread IR: `count` numbers held by one thread.
///
/// A count above one is a pack. 16-bit numbers of a pack of even count lie two to a 32-bit register,
/// the one with the even index in the low half; every other number has a register of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadType {
    /// What each element is.
    pub elem: Elem,
    /// Number of elements, at least 1.
    pub count: u16,
}

impl ThreadType {
    /// One element.
    pub fn scalar(elem: Elem) -> ThreadType {
        ThreadType { elem, count: 1 }
    }

    /// `count` elements.
    pub fn pack(elem: Elem, count: u16) -> ThreadType {
        ThreadType { elem, count }
    }

    /// Whether two elements share each register.
    pub fn is_paired(&self) -> bool {
        self.elem.bits() == 16 && self.count >= 2 && self.count.is_multiple_of(2)
    }

    /// Number of PTX registers the value takes.
    pub fn registers(&self) -> u16 {
        if self.is_paired() {
            self.count / 2
        } else {
            self.count
        }
    }
}

/// How many elements a type has, as the text form states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One.
    Single,
    /// A block, perhaps with a layout (tile level).
    Block(Shape, Option<LayoutId>),
    /// A block in shared memory, perhaps with a layout (tile level).
    Shared(Shape, Option<LayoutId>),
    /// A pack (thread level).
    Pack(u16),
}

/// What the two levels' types have in common, for type rules that hold at both and for the text form.
pub trait ValueType: Copy + Eq + fmt::Display + fmt::Debug {
    /// The type with this extent; none if it is of the other level.
    fn from_extent(elem: Elem, extent: Extent) -> Option<Self>;
    /// How many elements it has.
    fn extent(&self) -> Extent;
    /// One element.
    fn from_elem(elem: Elem) -> Self;
    /// The layout, if it has one.
    fn layout(&self) -> Option<LayoutId>;
    /// The same type with its layout, if it has one, replaced.
    fn map_layout(self, change: impl FnOnce(LayoutId) -> LayoutId) -> Self;
    /// What each element is.
    fn elem(&self) -> Elem;
    /// The same extent with other elements.
    fn with_elem(self, elem: Elem) -> Self;
    /// Whether the value is a single element.
    fn is_single(&self) -> bool;
    /// Some type, for values that stand for what could not be made.
    fn stand_in() -> Self;
    /// Whether a thread holds a multiple of `count` elements; at tile level nobody knows yet.
    fn is_multiple_of(&self, count: u32) -> bool {
        match self.extent() {
            Extent::Single => count == 1 || self.counts_are_open(),
            Extent::Block(..) | Extent::Shared(..) => true,
            Extent::Pack(n) => u32::from(n).is_multiple_of(count),
        }
    }
    /// Whether the type leaves open how many elements each thread holds.
    fn counts_are_open(&self) -> bool;
    /// Whether two types differ in nothing but their elements.
    fn same_extent(&self, other: &Self) -> bool {
        self.with_elem(Elem::I1) == other.with_elem(Elem::I1)
    }
}

impl ValueType for TileType {
    fn from_extent(elem: Elem, extent: Extent) -> Option<Self> {
        match extent {
            Extent::Single => Some(TileType::scalar(elem)),
            Extent::Block(shape, layout) => Some(TileType {
                layout: layout.into(),
                ..TileType::block(elem, shape)
            }),
            Extent::Shared(shape, layout) => Some(TileType {
                layout: layout.into(),
                place: Place::Shared,
                ..TileType::block(elem, shape)
            }),
            Extent::Pack(_) => None,
        }
    }

    fn extent(&self) -> Extent {
        if self.is_scalar() && self.layout.is_none() {
            Extent::Single
        } else if self.is_shared() {
            Extent::Shared(self.shape, self.layout.expand())
        } else {
            Extent::Block(self.shape, self.layout.expand())
        }
    }

    fn from_elem(elem: Elem) -> Self {
        TileType::scalar(elem)
    }

    fn layout(&self) -> Option<LayoutId> {
        self.layout.expand()
    }

    fn map_layout(self, change: impl FnOnce(LayoutId) -> LayoutId) -> Self {
        TileType {
            layout: self.layout.expand().map(change).into(),
            ..self
        }
    }

    fn elem(&self) -> Elem {
        self.elem
    }

    fn with_elem(self, elem: Elem) -> Self {
        TileType { elem, ..self }
    }

    fn is_single(&self) -> bool {
        self.is_scalar()
    }

    fn counts_are_open(&self) -> bool {
        true
    }

    fn stand_in() -> Self {
        TileType::scalar(Elem::I32)
    }
}

impl ValueType for ThreadType {
    fn from_extent(elem: Elem, extent: Extent) -> Option<Self> {
        match extent {
            Extent::Single => Some(ThreadType::scalar(elem)),
            Extent::Pack(count) => Some(ThreadType::pack(elem, count)),
            Extent::Block(..) | Extent::Shared(..) => None,
        }
    }

    fn extent(&self) -> Extent {
        if self.count == 1 {
            Extent::Single
        } else {
            Extent::Pack(self.count)
        }
    }

    fn from_elem(elem: Elem) -> Self {
        ThreadType::scalar(elem)
    }

    fn layout(&self) -> Option<LayoutId> {
        None
    }

    fn map_layout(self, _change: impl FnOnce(LayoutId) -> LayoutId) -> Self {
        self
    }

    fn elem(&self) -> Elem {
        self.elem
    }

    fn with_elem(self, elem: Elem) -> Self {
        ThreadType { elem, ..self }
    }

    fn is_single(&self) -> bool {
        self.count == 1
    }

    fn counts_are_open(&self) -> bool {
        false
    }

    fn stand_in() -> Self {
        ThreadType::scalar(Elem::I32)
    }
}

impl fmt::Display for TileType {
    /// Writes `f32`, `f32[16,32]`, with a layout `f32[16,32; #0]`, and of a block in shared memory `f32[16,32; shared]` or
    /// `f32[16,32; shared #0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.elem)?;
        if !self.is_scalar() {
            write!(f, "[{}", self.shape)?;
            match (self.is_shared(), self.layout.expand()) {
                (false, None) => {}
                (false, Some(layout)) => write!(f, "; {layout}")?,
                (true, None) => f.write_str("; shared")?,
                (true, Some(layout)) => write!(f, "; shared {layout}")?,
            }
            write!(f, "]")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ThreadType {
    /// Writes `f32`, or `f32 x 8` for a pack.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.elem)?;
        if self.count > 1 {
            write!(f, " x {}", self.count)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ThreadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
