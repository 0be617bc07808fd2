//! The class of an argument, by which variants of a kernel are found: one byte for its type, whether it is a pointer, and what the
//! value promises; and of which promises a kernel makes use.

use std::fmt;

use crate::ir::types::Scalar;

use crate::runtime::api::dtype::DType;

/// The bits of a class that tell the format.
const CODE: u8 = 0x0f;
/// The class of an absent argument: a format that there is none of.
pub(in crate::runtime) const ABSENT: u8 = 0x0f;
/// The class of the mark of a tuple.
pub(crate) const TUPLE: u8 = ABSENT | HALF;
/// The class of the mark of a tensor descriptor.
pub(crate) const DESCRIPTOR: u8 = ABSENT | (2 * HALF);
/// The bit of a class that tells a pointer.
pub(crate) const POINTER: u8 = 0x10;
/// The bits of a class that tell what the value promises: how often it can be halved, up to four times, or that it is one.
pub(crate) const PROMISE: u8 = 0xe0;
/// What a class has more for each time.
const HALF: u8 = 0x20;
/// The most often.
const MOST_HALVES: u8 = 4;
/// The promise of the number one.
pub(crate) const ONE: u8 = PROMISE;

/// The bits of a class that tell the type.
pub(crate) const PLAIN: u8 = CODE | POINTER;

/// What a number promises to be a multiple of. By a table, as this is done for each argument of each launch.
#[inline]
pub(in crate::runtime) const fn multiple(number: u64) -> u8 {
    (number | 1 << MOST_HALVES).trailing_zeros() as u8 * HALF
}

impl DType {
    /// Its number in a class.
    pub(in crate::runtime) const fn code(self) -> u8 {
        // The four unsigned integers, whose scalars begin with `I8`, come behind the scalars.
        match self.unsigned {
            false => self.scalar as u8,
            true => Scalar::ALL.len() as u8 + self.scalar as u8 - Scalar::I8 as u8,
        }
    }

    /// The format of a class.
    pub(crate) fn of_code(code: u8) -> Option<DType> {
        DType::ALL
            .iter()
            .copied()
            .find(|dtype| dtype.code() == code & CODE)
    }
}

/// What of an argument's value a kernel may be specialised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Specialize {
    /// That an integer is one.
    pub value: bool,
    /// That an integer or an address is a multiple of 2, 4, 8 or 16.
    pub alignment: bool,
}

impl Specialize {
    /// For everything.
    pub const ALL: Specialize = Specialize {
        value: true,
        alignment: true,
    };
    /// For the type alone.
    pub const NOTHING: Specialize = Specialize {
        value: false,
        alignment: false,
    };
}

impl Specialize {
    /// What counts of a class: its type, and the promise if it is made use of.
    pub(crate) fn kept(self, class: u8) -> u8 {
        let counts = match class & PROMISE {
            ONE => self.value,
            _ => self.alignment,
        };
        if counts { class } else { class & PLAIN }
    }

    /// Bits of classes of which one that counts has no others.
    pub(crate) fn mask(self) -> u8 {
        if self == Specialize::NOTHING {
            PLAIN
        } else {
            PLAIN | PROMISE
        }
    }

    /// What both allow.
    pub(crate) fn and(self, other: Specialize) -> Specialize {
        Specialize {
            value: self.value && other.value,
            alignment: self.alignment && other.alignment,
        }
    }
}

/// A class, shown as an entry of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Class(pub(crate) u8);

impl Class {
    /// The format; none of an absent argument.
    pub(crate) fn dtype(self) -> Option<DType> {
        DType::of_code(self.0)
    }

    pub(crate) fn is_pointer(self) -> bool {
        self.0 & POINTER != 0
    }

    /// Whether the argument becomes a constant and is no parameter of the PTX entry.
    pub(crate) fn is_constant(self) -> bool {
        self.is_one() || self.dtype().is_none()
    }

    /// That of a number about which nothing is promised.
    pub(crate) fn number(dtype: DType) -> Class {
        Class(dtype.code())
    }

    /// That of an address about which nothing is promised.
    pub(crate) fn pointer(dtype: DType) -> Class {
        Class(dtype.code() | POINTER)
    }

    /// Whether it is that of the number one.
    pub(crate) fn is_one(self) -> bool {
        self.0 & PROMISE == ONE
    }

    /// Exponent of the power of two that the value is a multiple of.
    pub(crate) fn halves(self) -> u8 {
        if self.is_one() { 0 } else { self.0 / HALF }
    }

    /// The same type with a multiple of another power of two.
    pub(crate) fn with_halves(self, halves: u8) -> Class {
        Class(self.plain().0 | (halves.min(MOST_HALVES) * HALF))
    }

    /// That of an integer or an address which is a multiple of a power of two, or of the integer 1; none of others.
    pub(in crate::runtime) fn promising(self, multiple: u64) -> Option<Class> {
        let is_promised = self.is_pointer() || self.dtype().is_some_and(DType::is_integer);
        match multiple {
            1 if self.is_pointer() || !is_promised => None,
            1 => Some(Class(self.0 | ONE)),
            _ => is_promised.then(|| Class(self.0 | self::multiple(multiple))),
        }
    }

    /// What the value is a multiple of.
    pub(crate) fn divisor(self) -> u32 {
        1 << self.halves()
    }

    /// The same without what the value promises.
    pub(crate) fn plain(self) -> Class {
        Class(self.0 & PLAIN)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dtype) = self.dtype() else {
            return f.write_str("None");
        };
        let star = if self.is_pointer() { "*" } else { "" };
        write!(f, "{star}{dtype}")?;
        match self.0 & PROMISE {
            0 => Ok(()),
            _ => write!(f, ":{}", self.divisor()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::api::argument::{Arg, NONE};

    fn shown<'a>(arg: impl Into<Arg<'a>>, specialize: Specialize) -> String {
        Class(specialize.kept(arg.into().class)).to_string()
    }

    #[test]
    fn classes_are_those_of_triton() {
        for (entry, arg) in [
            ("i32", Arg::from(7)),
            ("i32:1", Arg::from(1)),
            ("i32:16", Arg::from(-32)),
            ("i32:8", Arg::from(-24)),
            ("i64:8", Arg::from(1000_i64)),
            ("i32:4", Arg::from(12)),
            ("u16:2", Arg::from(0xfffe_u16)),
            ("i32:16", Arg::from(0)),
            ("u64:1", Arg::from(1_u64)),
            ("u8:16", Arg::from(16_u8)),
            ("fp32", Arg::from(16.0_f32)),
            ("fp64", Arg::from(0.0)),
            ("fp16", Arg::from(half::f16::ONE)),
            ("bf16", Arg::from(half::bf16::ZERO)),
            ("i1", Arg::from(true)),
            ("None", NONE),
        ] {
            assert_eq!(shown(arg, Specialize::ALL), entry);
        }
        assert_eq!(shown(1, Specialize::NOTHING), "i32");
        let alignment = Specialize {
            value: false,
            alignment: true,
        };
        assert_eq!(shown(1, alignment), "i32");
        assert_eq!(shown(16, alignment), "i32:16");
        assert_eq!(shown(8, alignment), "i32:8");
        let value = Specialize {
            value: true,
            alignment: false,
        };
        assert_eq!(shown(8, value), "i32");
        assert_eq!(shown(16, value), "i32");
        assert_eq!(shown(1, value), "i32:1");
    }

    #[test]
    fn codes_tell_formats_apart() {
        for &dtype in DType::ALL {
            assert_eq!(DType::of_code(dtype.code()), Some(dtype));
            assert!(dtype.code() < ABSENT);
            let same = DType::ALL.iter().filter(|d| d.code() == dtype.code());
            assert_eq!(same.count(), 1);
        }
        assert_eq!(DType::of_code(ABSENT), None);
    }
}
