//! PTX's fundamental types and the modifiers that name them.

use std::fmt;

/// What the bits of a type mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// `.bN`: bits without meaning.
    Bits,
    /// `.uN`.
    Unsigned,
    /// `.sN`.
    Signed,
    /// `.fN`: IEEE floats.
    Float,
    /// `.bf16`.
    Bfloat,
    /// `.tf32`.
    Tf32,
    /// `.e4m3`.
    E4m3,
    /// `.e5m2`.
    E5m2,
    /// `.pred`.
    Predicate,
}

/// A type: family, bits of one element, and whether a register holds two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The family.
    pub kind: TypeKind,
    /// Bits of an element.
    pub bits: u32,
    /// Whether two elements share a register (`.f16x2`).
    pub packed: bool,
}

impl Type {
    pub(super) const PRED: Type = Type {
        kind: TypeKind::Predicate,
        bits: 1,
        packed: false,
    };

    /// Reads the name without its dot.
    pub(super) fn parse(name: &str) -> Option<Type> {
        let (base, packed) = match name.strip_suffix("x2") {
            Some(base) => (base, true),
            None => (name, false),
        };
        let (kind, bits) = match base {
            "pred" => (TypeKind::Predicate, 1),
            "bf16" => (TypeKind::Bfloat, 16),
            "tf32" => (TypeKind::Tf32, 32),
            "e4m3" => (TypeKind::E4m3, 8),
            "e5m2" => (TypeKind::E5m2, 8),
            _ => {
                let (letter, bits) = base.split_at_checked(1)?;
                let bits = match bits {
                    "8" => 8,
                    "16" => 16,
                    "32" => 32,
                    "64" => 64,
                    "128" => 128,
                    _ => return None,
                };
                let kind = match letter {
                    "b" => TypeKind::Bits,
                    "u" => TypeKind::Unsigned,
                    "s" => TypeKind::Signed,
                    "f" if matches!(bits, 16 | 32 | 64) => TypeKind::Float,
                    _ => return None,
                };
                if bits == 128 && kind != TypeKind::Bits {
                    return None;
                }
                (kind, bits)
            }
        };
        let packable = matches!(
            (kind, bits),
            (
                TypeKind::Float | TypeKind::Bfloat | TypeKind::Unsigned | TypeKind::Signed,
                16
            ) | (TypeKind::E4m3 | TypeKind::E5m2, _)
                | (TypeKind::Float, 32)
        );
        (!packed || packable).then_some(Type { kind, bits, packed })
    }

    /// Bits that a register of this type must have.
    pub(super) fn register_bits(self) -> u32 {
        self.bits << u32::from(self.packed)
    }

    /// Bytes in memory.
    pub(super) fn bytes(self) -> u32 {
        self.register_bits().div_ceil(8)
    }

    pub(super) fn is_signed(self) -> bool {
        self.kind == TypeKind::Signed
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(
            self.kind,
            TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed
        )
    }

    pub(super) fn is_float(self) -> bool {
        !self.is_integer() && self.kind != TypeKind::Predicate
    }

    /// Whether it is `.f32` alone.
    pub(super) fn is_f32(self) -> bool {
        self.kind == TypeKind::Float && self.bits == 32 && !self.packed
    }

    /// Whether it is `.f64`.
    pub(super) fn is_f64(self) -> bool {
        self.kind == TypeKind::Float && self.bits == 64
    }

    /// Whether its elements are 16-bit floats.
    pub(super) fn is_half(self) -> bool {
        self.bits == 16 && matches!(self.kind, TypeKind::Float | TypeKind::Bfloat)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TypeKind::Predicate => return f.write_str("pred"),
            TypeKind::Bits => write!(f, "b{}", self.bits)?,
            TypeKind::Unsigned => write!(f, "u{}", self.bits)?,
            TypeKind::Signed => write!(f, "s{}", self.bits)?,
            TypeKind::Float => write!(f, "f{}", self.bits)?,
            TypeKind::Bfloat => f.write_str("bf16")?,
            TypeKind::Tf32 => f.write_str("tf32")?,
            TypeKind::E4m3 => f.write_str("e4m3")?,
            TypeKind::E5m2 => f.write_str("e5m2")?,
        }
        if self.packed {
            f.write_str("x2")
        } else {
            Ok(())
        }
    }
}
