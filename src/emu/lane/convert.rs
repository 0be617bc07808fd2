//! `cvt`: every pair of types goes through one general function; the pairs that kernels use most
//! have their own.

use super::integer::{signed, unsigned};
use crate::emu::inst::{LaneFn, Mods};
use crate::emu::types::{Type, TypeKind};
use crate::num::{self, Format, Int, Overflow, Rounding, bf16, f16};

/// The function that converts as `m` says.
pub(in crate::emu) fn function(m: &Mods) -> LaneFn {
    let plain = !m.ftz
        && !m.sat
        && !m.relu
        && !m.finite
        && !m.integral
        && m.rounding == Rounding::NearestEven;
    match (m.from.kind, m.from.bits, m.ty.kind, m.ty.bits) {
        _ if m.from.is_integer() && m.ty.is_integer() && !m.sat => resize,
        (TypeKind::Float, 32, TypeKind::Float, 16) if plain => single_to_half,
        (TypeKind::Float, 32, TypeKind::Bfloat, 16) if plain => single_to_bfloat,
        (TypeKind::Float, 16, TypeKind::Float, 32) if plain => half_to_single,
        (TypeKind::Bfloat, 16, TypeKind::Float, 32) if plain => bfloat_to_single,
        (TypeKind::Signed, 32, TypeKind::Float, 32) if plain => signed_to_single,
        _ => convert,
    }
}

fn single_to_half(_: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(f16::from_f32(f32::from_bits(s[0] as u32)))
}

fn single_to_bfloat(_: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(bf16::from_f32(f32::from_bits(s[0] as u32)))
}

fn half_to_single(_: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(f16::to_f32(s[0] as u16).to_bits())
}

/// A shift on hardware: the one conversion between these formats that keeps a NaN's bits.
fn bfloat_to_single(_: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(s[0] as u16) << 16
}

fn signed_to_single(_: &Mods, s: &[u64; 4]) -> u64 {
    u64::from((s[0] as i32 as f32).to_bits())
}

/// Cuts to the narrower of the types, then extends by the sign of the one that was cut to.
fn resize(m: &Mods, s: &[u64; 4]) -> u64 {
    let ty = if m.ty.bits < m.from.bits {
        m.ty
    } else {
        m.from
    };
    let cut = if ty.is_signed() {
        signed(s[0], ty.bits) as u64
    } else {
        unsigned(s[0], ty.bits)
    };
    // The result is of the destination's type in a register that may be wider.
    if m.ty.is_signed() {
        signed(cut, m.ty.bits) as u64
    } else {
        unsigned(cut, m.ty.bits)
    }
}

fn int(ty: Type) -> Int {
    Int {
        signed: ty.is_signed(),
        bits: ty.bits,
    }
}

/// The format of a float type.
pub(in crate::emu) fn format(ty: Type) -> Format {
    match (ty.kind, ty.bits) {
        (TypeKind::Bfloat, _) => Format::BF16,
        (TypeKind::Tf32, _) => Format::TF32,
        (TypeKind::E4m3, _) => Format::E4M3,
        (TypeKind::E5m2, _) => Format::E5M2,
        (_, 16) => Format::F16,
        (_, 64) => Format::F64,
        _ => Format::F32,
    }
}

/// The exact value of float bits, flushed if the conversion says so.
fn widen(m: &Mods, bits: u64) -> f64 {
    match (m.from.kind, m.from.bits) {
        (TypeKind::Float, 64) => f64::from_bits(bits),
        (TypeKind::Float, 32) => {
            let x = f32::from_bits(bits as u32);
            f64::from(if m.ftz { num::ftz(x) } else { x })
        }
        (TypeKind::Float, _) => f16::to_f64(bits as u16),
        (TypeKind::Bfloat, _) => bf16::to_f64(bits as u16),
        _ => format(m.from).to_f64(unsigned(bits, m.from.bits)),
    }
}

/// Rounds to the destination's format and applies `.relu`, `.sat`, `.satfinite` and `.ftz`.
pub(in crate::emu) fn narrow(m: &Mods, x: f64) -> u64 {
    // -0 becomes +0 too.
    let x = if m.relu && x <= 0.0 { 0.0 } else { x };
    let x = if m.sat { num::saturate64(x) } else { x };
    let overflow = if m.finite {
        Overflow::Finite
    } else {
        Overflow::Ieee
    };
    let bits = format(m.ty).from_f64(x, m.rounding, overflow);
    match m.ty.kind {
        // The 19 bits stand at the top of the word.
        TypeKind::Tf32 => bits << 13,
        TypeKind::Float if m.ty.bits == 32 && m.ftz => {
            u64::from(num::ftz(f32::from_bits(bits as u32)).to_bits())
        }
        _ => bits,
    }
}

/// The NaNs that hardware passes on instead of making them canonical: narrowed from f64 they keep
/// their sign and the upper bits of their payload and become quiet, rounded to tf32 by `.rna` they
/// lose the low bits.
fn kept_nan(m: &Mods, bits: u64) -> Option<u64> {
    if m.sat || m.relu {
        return None;
    }
    match (m.ty.kind, m.ty.bits) {
        (TypeKind::Float | TypeKind::Bfloat, 16 | 32)
            if m.from.is_f64() && f64::from_bits(bits).is_nan() =>
        {
            let to = format(m.ty);
            let payload = bits & ((1 << 52) - 1);
            let quiet = 1 << (to.mantissa_bits - 1);
            let sign = bits >> 63 << (m.ty.bits - 1);
            let kept = payload >> (52 - to.mantissa_bits);
            Some(sign | (to.max_finite + 1) | quiet | kept)
        }
        (TypeKind::Tf32, _)
            if m.rounding == Rounding::NearestAway && f32::from_bits(bits as u32).is_nan() =>
        {
            Some(bits & 0xffff_e000)
        }
        _ => None,
    }
}

fn convert(m: &Mods, s: &[u64; 4]) -> u64 {
    match (m.from.is_integer(), m.ty.is_integer()) {
        (true, true) => {
            let to = int(m.ty);
            int(m.from).value(s[0]).clamp(to.min(), to.max()) as u64
        }
        (true, false) => {
            let bits = num::int_to_float(s[0], int(m.from), format(m.ty), m.rounding);
            if m.sat {
                narrow(m, format(m.ty).to_f64(bits))
            } else {
                bits
            }
        }
        (false, true) => num::float_to_int(widen(m, s[0]), m.rounding, int(m.ty), m.from.is_f64()),
        (false, false) => {
            if let Some(nan) = kept_nan(m, s[0]) {
                return nan;
            }
            let x = widen(m, s[0]);
            if m.integral {
                // Integral values that came from the same format are exact in it.
                let whole = num::round_to_integral(x, m.rounding);
                return narrow(
                    &Mods {
                        rounding: Rounding::NearestEven,
                        ..*m
                    },
                    whole,
                );
            }
            narrow(m, x)
        }
    }
}

/// The function for `cvt.*x2.f32 d, a, b`.
pub(in crate::emu) fn pack_function(m: &Mods) -> LaneFn {
    let plain = !m.ftz && !m.sat && !m.relu && !m.finite && m.rounding == Rounding::NearestEven;
    match (m.from.is_f32() && plain, m.ty.kind, m.ty.bits) {
        (true, TypeKind::Float, 16) => {
            |m, s| single_to_half(m, &[s[0]; 4]) << 16 | single_to_half(m, &[s[1]; 4])
        }
        (true, TypeKind::Bfloat, 16) => {
            |m, s| single_to_bfloat(m, &[s[0]; 4]) << 16 | single_to_bfloat(m, &[s[1]; 4])
        }
        _ => pack,
    }
}

/// `a` to the upper half, `b` to the lower.
fn pack(m: &Mods, s: &[u64; 4]) -> u64 {
    narrow(m, widen(m, s[0])) << m.ty.bits | narrow(m, widen(m, s[1]))
}

/// Between two packed types, element by element.
pub(in crate::emu) fn repack(m: &Mods, s: &[u64; 4]) -> u64 {
    let part = |x: u64| narrow(m, widen(m, unsigned(x, m.from.bits)));
    part(s[0] >> m.from.bits) << m.ty.bits | part(s[0])
}
