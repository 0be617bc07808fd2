//! Comparisons, and other instructions whose result is a predicate.

use super::integer::{signed, unsigned};
use crate::emu::inst::{Mods, TestFn};
use crate::emu::mem;
use crate::emu::types::{Type, TypeKind};
use crate::num::{bf16, f16, ftz};

/// The comparisons, as kept in `Mods::imm`.
const NAMES: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];

/// The number and function of a comparison of operands of type `ty`.
pub(in crate::emu) fn comparison(name: &str, ty: Type) -> Option<(u32, TestFn)> {
    let number = NAMES.iter().position(|&known| known == name)? as u32;
    let f: TestFn = match (ty.kind, ty.bits) {
        (TypeKind::Bits, _) if number > 1 => return None,
        (TypeKind::Signed, _) if number > 5 => return None,
        (TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed, _) if number > 9 => return None,
        (TypeKind::Bits | TypeKind::Unsigned, _) => compare_unsigned,
        (TypeKind::Signed, _) => compare_signed,
        _ if (6..=9).contains(&number) => return None,
        (TypeKind::Float, 32) if !ty.packed => compare32,
        (TypeKind::Float, 64) => compare64,
        (TypeKind::Float | TypeKind::Bfloat, 16) => compare16,
        _ => return None,
    };
    Some((number, f))
}

fn holds<T: PartialOrd>(number: u32, a: T, b: T) -> bool {
    match number {
        0 => a == b,
        // False if either is NaN, unlike Rust's `!=`.
        1 => a.partial_cmp(&b).is_some_and(|order| order.is_ne()),
        2 | 6 => a < b,
        3 | 7 => a <= b,
        4 | 8 => a > b,
        _ => a >= b,
    }
}

fn compare_unsigned(m: &Mods, a: u64, b: u64) -> bool {
    holds(m.imm, unsigned(a, m.ty.bits), unsigned(b, m.ty.bits))
}

fn compare_signed(m: &Mods, a: u64, b: u64) -> bool {
    holds(m.imm, signed(a, m.ty.bits), signed(b, m.ty.bits))
}

/// The unordered forms hold if either operand is NaN; `num` wants two numbers, `nan` a NaN.
fn compare_float(number: u32, a: f64, b: f64) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match number {
        16 => !unordered,
        17 => unordered,
        10..=15 => unordered || holds(number - 10, a, b),
        _ => holds(number, a, b),
    }
}

fn compare32(m: &Mods, a: u64, b: u64) -> bool {
    let value = |x: u64| {
        let x = f32::from_bits(x as u32);
        f64::from(if m.ftz { ftz(x) } else { x })
    };
    compare_float(m.imm, value(a), value(b))
}

fn compare64(m: &Mods, a: u64, b: u64) -> bool {
    compare_float(m.imm, f64::from_bits(a), f64::from_bits(b))
}

fn compare16(m: &Mods, a: u64, b: u64) -> bool {
    let value = |x: u64| {
        let x = x as u16;
        if m.ty.kind == TypeKind::Bfloat {
            bf16::to_f64(x)
        } else {
            f16::to_f64(if m.ftz { f16::ftz(x) } else { x })
        }
    };
    compare_float(m.imm, value(a), value(b))
}

/// `testp`'s properties.
pub(in crate::emu) fn property(name: &str) -> Option<u32> {
    let names = [
        "finite",
        "infinite",
        "number",
        "notanumber",
        "normal",
        "subnormal",
    ];
    names
        .iter()
        .position(|&known| known == name)
        .map(|number| number as u32)
}

/// `testp`.
pub(in crate::emu) fn has_property(m: &Mods, a: u64, _: u64) -> bool {
    let (finite, infinite, nan, subnormal) = if m.ty.bits == 32 {
        let x = f32::from_bits(a as u32);
        (x.is_finite(), x.is_infinite(), x.is_nan(), x.is_subnormal())
    } else {
        let x = f64::from_bits(a);
        (x.is_finite(), x.is_infinite(), x.is_nan(), x.is_subnormal())
    };
    match m.imm {
        0 => finite,
        1 => infinite,
        2 => !nan,
        3 => nan,
        // PTX counts zeros as normal.
        4 => finite && !subnormal,
        _ => subnormal,
    }
}

/// `isspacep.shared`.
pub(in crate::emu) fn is_shared(_: &Mods, a: u64, _: u64) -> bool {
    mem::SHARED_WINDOW.contains(&a)
}

/// `isspacep.local`.
pub(in crate::emu) fn is_local(_: &Mods, a: u64, _: u64) -> bool {
    mem::LOCAL_WINDOW.contains(&a)
}

/// `isspacep.global`: whatever is in no window.
pub(in crate::emu) fn is_global(_: &Mods, a: u64, _: u64) -> bool {
    !mem::SHARED_WINDOW.contains(&a)
        && !mem::LOCAL_WINDOW.contains(&a)
        && !mem::PARAM_WINDOW.contains(&a)
}
