//! Number formats as callers know them.

use std::fmt;

use crate::ir::types::Scalar;

/// A number format as callers know it: that of the IR, and for integers whether they have a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType {
    pub(in crate::runtime) scalar: Scalar,
    pub(in crate::runtime) unsigned: bool,
}

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])+ $name:ident $scalar:ident $unsigned:literal;)*) => {
        impl DType {
            $($(#[doc = $doc])+
            pub const $name: DType = DType { scalar: Scalar::$scalar, unsigned: $unsigned };)*

            /// Every format.
            pub const ALL: &'static [DType] = &[$(DType::$name),*];
        }
    };
}

dtypes! {
    /// A truth value, in a byte.
    BOOL I1 false;
    /// Signed, 8 bits.
    I8 I8 false;
    /// Signed, 16 bits.
    I16 I16 false;
    /// Signed, 32 bits.
    I32 I32 false;
    /// Signed, 64 bits.
    I64 I64 false;
    /// Unsigned, 8 bits.
    U8 I8 true;
    /// Unsigned, 16 bits.
    U16 I16 true;
    /// Unsigned, 32 bits.
    U32 I32 true;
    /// Unsigned, 64 bits.
    U64 I64 true;
    /// IEEE binary16.
    F16 F16 false;
    /// The upper half of binary32.
    BF16 Bf16 false;
    /// IEEE binary32.
    F32 F32 false;
    /// IEEE binary64.
    F64 F64 false;
    /// FP8 with 4 exponent bits and no infinities.
    F8E4M3 F8E4M3 false;
    /// FP8 with 5 exponent bits.
    F8E5M2 F8E5M2 false;
}

impl DType {
    /// The format in the IR.
    pub fn scalar(self) -> Scalar {
        self.scalar
    }

    /// Its size in memory.
    pub fn bytes(self) -> usize {
        self.scalar.bits().div_ceil(8) as usize
    }

    /// Whether it is an integer without sign.
    pub(crate) fn is_unsigned(self) -> bool {
        self.unsigned
    }

    /// Whether it is an integer and no truth value.
    pub(in crate::runtime) const fn is_integer(self) -> bool {
        matches!(
            self.scalar,
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64
        )
    }

    /// The format of numbers of a kernel.
    pub(crate) fn of_scalar(scalar: Scalar, unsigned: bool) -> Option<DType> {
        let mut all = DType::ALL.iter().copied();
        all.find(|dtype| dtype.scalar == scalar && dtype.unsigned == unsigned)
    }
}

impl fmt::Display for DType {
    /// Its name in a signature of the Triton language.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scalar, self.scalar.name()) {
            (Scalar::F8E4M3, _) => f.write_str("fp8e4nv"),
            (Scalar::F8E5M2, _) => f.write_str("fp8e5"),
            (Scalar::Bf16, name) => f.write_str(name),
            (_, name) if self.unsigned => write!(f, "u{}", &name[1..]),
            (_, name) if name.starts_with('f') => write!(f, "fp{}", &name[1..]),
            (_, name) => f.write_str(name),
        }
    }
}
