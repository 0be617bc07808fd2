//! Types of the language, and how the operands of an operator get one type.
//!
//! Integers have a sign here; the tile IR has none, so the sign decides which op is made and is then forgotten. The
//! rules are those of Triton's implementation where its documentation says otherwise: a half beats a bfloat16, a
//! bfloat16 with anything else becomes f32, and numbers of the source text are weak (they take the type of what they
//! meet unless their kind is higher).

use std::fmt;

use crate::ir::types::{Elem, Scalar};
use crate::linear_layout::shape::Shape;

/// What a number of the language is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NumberKind {
    /// A truth value.
    Bool,
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
}

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $short:literal $bits:literal $kind:ident $signed:literal $scalar:expr;)*) => {
        /// A number format of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $($(#[doc = $doc])+ $variant,)* }

        impl DType {
            /// Every format, in the order of the declaration.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// Its name in the language, as in `float32`.
            pub fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Its name in a signature, as in `fp32`.
            pub fn short_name(self) -> &'static str {
                match self { $(DType::$variant => $short,)* }
            }

            /// Width in bits.
            pub fn bits(self) -> u32 {
                match self { $(DType::$variant => $bits,)* }
            }

            /// What it is.
            pub fn kind(self) -> NumberKind {
                match self { $(DType::$variant => NumberKind::$kind,)* }
            }

            /// Whether it is a signed integer or a float.
            pub fn is_signed(self) -> bool {
                match self { $(DType::$variant => $signed,)* }
            }

            /// The format of the IR; none if the IR has none.
            pub fn scalar(self) -> Option<Scalar> {
                match self { $(DType::$variant => $scalar,)* }
            }
        }
    };
}

dtypes! {
    /// A truth value; counted among the unsigned integers.
    Int1 "int1" "i1" 1 Bool false Some(Scalar::I1);
    /// Signed, 8 bits.
    Int8 "int8" "i8" 8 Int true Some(Scalar::I8);
    /// Signed, 16 bits.
    Int16 "int16" "i16" 16 Int true Some(Scalar::I16);
    /// Signed, 32 bits.
    Int32 "int32" "i32" 32 Int true Some(Scalar::I32);
    /// Signed, 64 bits.
    Int64 "int64" "i64" 64 Int true Some(Scalar::I64);
    /// Unsigned, 8 bits.
    Uint8 "uint8" "u8" 8 Int false Some(Scalar::I8);
    /// Unsigned, 16 bits.
    Uint16 "uint16" "u16" 16 Int false Some(Scalar::I16);
    /// Unsigned, 32 bits.
    Uint32 "uint32" "u32" 32 Int false Some(Scalar::I32);
    /// Unsigned, 64 bits.
    Uint64 "uint64" "u64" 64 Int false Some(Scalar::I64);
    /// IEEE binary16.
    Float16 "float16" "fp16" 16 Float true Some(Scalar::F16);
    /// The upper half of binary32.
    Bfloat16 "bfloat16" "bf16" 16 Float true Some(Scalar::Bf16);
    /// IEEE binary32.
    Float32 "float32" "fp32" 32 Float true Some(Scalar::F32);
    /// IEEE binary64.
    Float64 "float64" "fp64" 64 Float true Some(Scalar::F64);
    /// E5M2.
    Float8e5 "float8e5" "fp8e5" 8 Float true Some(Scalar::F8E5M2);
    /// E4M3 without infinities.
    Float8e4nv "float8e4nv" "fp8e4nv" 8 Float true Some(Scalar::F8E4M3);
    /// E4M3 with bias 15; the IR holds its bits.
    Float8e4b15 "float8e4b15" "fp8e4b15" 8 Float true Some(Scalar::I8);
    /// AMD's E4M3.
    Float8e4b8 "float8e4b8" "fp8e4b8" 8 Float true None;
    /// AMD's E5M2.
    Float8e5b16 "float8e5b16" "fp8e5b16" 8 Float true None;
}

impl DType {
    /// The format with this name of the language, its aliases included.
    pub fn from_name(name: &str) -> Option<DType> {
        let alias = (name == "uint1").then_some(DType::Int1);
        alias.or_else(|| DType::ALL.iter().copied().find(|d| d.name() == name))
    }

    /// The format with this name of a signature, its aliases included.
    pub fn from_short_name(name: &str) -> Option<DType> {
        let alias = match name {
            "u1" | "B" => Some(DType::Int1),
            "f16" => Some(DType::Float16),
            "f32" => Some(DType::Float32),
            "f64" => Some(DType::Float64),
            _ => None,
        };
        alias.or_else(|| DType::ALL.iter().copied().find(|d| d.short_name() == name))
    }

    /// What Triton itself calls it, in texts and as `.name`: `int32`, but `fp32`.
    pub fn own_name(self) -> &'static str {
        if self.is_int() {
            self.name()
        } else {
            self.short_name()
        }
    }

    /// Whether it is an integer, truth values included.
    pub fn is_int(self) -> bool {
        self.kind() != NumberKind::Float
    }

    /// Whether it is a floating-point format.
    pub fn is_float(self) -> bool {
        self.kind() == NumberKind::Float
    }

    /// Whether it has 8 bits and is a floating-point format.
    pub fn is_fp8(self) -> bool {
        self.is_float() && self.bits() == 8
    }

    /// Bits of the fraction, the implied one not counted, of a floating-point format.
    pub fn mantissa_bits(self) -> u32 {
        match self {
            DType::Float16 => 10,
            DType::Bfloat16 => 7,
            DType::Float32 => 23,
            DType::Float64 => 52,
            DType::Float8e5 | DType::Float8e5b16 => 2,
            DType::Float8e4nv | DType::Float8e4b15 | DType::Float8e4b8 => 3,
            _ => 0,
        }
    }

    /// What is added to the exponent of a floating-point format.
    pub fn exponent_bias(self) -> u32 {
        match self {
            DType::Float16 | DType::Float8e5 | DType::Float8e4b15 => 15,
            DType::Bfloat16 | DType::Float32 => 127,
            DType::Float64 => 1023,
            DType::Float8e4nv => 7,
            DType::Float8e4b8 => 8,
            DType::Float8e5b16 => 16,
            _ => 0,
        }
    }

    /// The least and largest number of an integer format.
    pub fn int_range(self) -> (i128, i128) {
        let bits = self.bits();
        if self.is_signed() {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }

    /// The low bits of a number, read as this integer format reads them.
    pub fn wrap(self, number: i128) -> i128 {
        let shift = 128 - self.bits();
        if self.is_signed() {
            (number << shift) >> shift
        } else {
            (((number as u128) << shift) >> shift) as i128
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_name())
    }
}

/// What one element of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// A number.
    Num(DType),
    /// The address of a number; stores through a constant one are errors.
    Ptr {
        /// What it points to.
        to: DType,
        /// Whether it may not be written through.
        constant: bool,
    },
}

impl Ty {
    /// A pointer that may be written through.
    pub fn ptr(to: DType) -> Ty {
        Ty::Ptr {
            to,
            constant: false,
        }
    }

    /// The number format, unless it is a pointer.
    pub fn dtype(self) -> Option<DType> {
        match self {
            Ty::Num(dtype) => Some(dtype),
            Ty::Ptr { .. } => None,
        }
    }

    /// What a pointer points to.
    pub fn pointee(self) -> Option<DType> {
        match self {
            Ty::Ptr { to, .. } => Some(to),
            Ty::Num(_) => None,
        }
    }

    /// Whether it is a pointer.
    pub fn is_ptr(self) -> bool {
        matches!(self, Ty::Ptr { .. })
    }

    /// The element of the IR; none if the IR has none.
    pub fn elem(self) -> Option<Elem> {
        match self {
            Ty::Num(dtype) => dtype.scalar().map(Elem::Num),
            Ty::Ptr { to, .. } => to.scalar().map(Elem::global),
        }
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Ty::Num(dtype) => dtype.bits(),
            Ty::Ptr { .. } => 64,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Num(dtype) => write!(f, "{dtype}"),
            Ty::Ptr { to, constant } => write!(f, "*{}{to}", if *constant { "k" } else { "" }),
        }
    }
}

/// The type of a value as messages show it: `fp32`, `*i8`, `i32[16, 64]`.
pub(crate) fn show(ty: Ty, shape: Shape) -> String {
    if shape.is_scalar() {
        return ty.to_string();
    }
    let extents: Vec<String> = shape.extents().map(|e| e.to_string()).collect();
    format!("{ty}[{}]", extents.join(", "))
}

/// A type in Triton's own writing, as texts and `.name` have it: `fp32`, `pointer<int8>`, `<['16', '64'], fp16>`.
pub(crate) fn own_name(ty: Ty, shape: Option<Shape>) -> String {
    let element = match ty {
        Ty::Num(dtype) => dtype.own_name().to_owned(),
        Ty::Ptr { to, constant } => {
            let prefix = if constant { "const_" } else { "" };
            format!("{prefix}pointer<{}>", to.own_name())
        }
    };
    let Some(shape) = shape else { return element };
    let extents: Vec<String> = shape.extents().map(|e| format!("'{e}'")).collect();
    format!("<[{}], {element}>", extents.join(", "))
}

/// An operand of an operator as the rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedOperand {
    /// Its format; for a number of the source text the one it would have alone.
    pub(crate) dtype: DType,
    /// Whether it is a number of the source text.
    pub(crate) weak: bool,
}

/// Why operands have no common type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromotionError {
    /// No rule for the pair.
    Incompatible,
    /// Division of integers of which one has a sign.
    Signedness,
}

/// The format in which an operator computes.
pub(crate) fn promote(
    a: TypedOperand,
    b: TypedOperand,
    division: bool,
) -> Result<DType, PromotionError> {
    use DType::{Bfloat16, Float16, Float32, Float64};
    let half_division = |dtype| match dtype {
        Float16 | Bfloat16 if division => Float32,
        dtype => dtype,
    };
    if a.weak != b.weak {
        let (number, tensor) = if a.weak { (a, b) } else { (b, a) };
        if number.dtype.kind() <= tensor.dtype.kind() {
            return Ok(half_division(tensor.dtype));
        }
    }
    let (a, b) = (a.dtype, b.dtype);
    let any = |dtype| a == dtype || b == dtype;
    if any(Float64) {
        Ok(Float64)
    } else if any(Float32) {
        Ok(Float32)
    } else if any(Float16) {
        Ok(half_division(Float16))
    } else if a == Bfloat16 && b == Bfloat16 {
        Ok(half_division(Bfloat16))
    } else if any(Bfloat16) {
        Ok(Float32)
    } else if a.is_fp8() && b.is_fp8() {
        Ok(if a == b { a } else { Float16 })
    } else if !a.is_int() || !b.is_int() {
        Err(PromotionError::Incompatible)
    } else if division && a.is_signed() != b.is_signed() {
        Err(PromotionError::Signedness)
    } else {
        Ok(promote_ints(a, b))
    }
}

/// C's usual conversions: the wider one; of mixed signs the unsigned one if it is at least as wide.
pub(crate) fn promote_ints(a: DType, b: DType) -> DType {
    if a.is_signed() == b.is_signed() {
        if a.bits() > b.bits() { a } else { b }
    } else {
        let (unsigned, signed) = if a.is_signed() { (b, a) } else { (a, b) };
        if unsigned.bits() >= signed.bits() {
            unsigned
        } else {
            signed
        }
    }
}

/// The format of an integer of the source text that must have one.
pub(crate) fn int_dtype(number: i128) -> Option<DType> {
    [DType::Int32, DType::Uint32, DType::Int64, DType::Uint64]
        .into_iter()
        .find(|d| {
            let (low, high) = d.int_range();
            (low..=high).contains(&number)
        })
}

/// The format of a float of the source text that must have one: f64 only where f32 would lose it.
pub(crate) fn float_dtype(number: f64) -> DType {
    let size = number.abs();
    let fits = size == 0.0
        || !size.is_finite()
        || (size >= f64::from(f32::MIN_POSITIVE) && size <= f64::from(f32::MAX));
    if fits { DType::Float32 } else { DType::Float64 }
}
