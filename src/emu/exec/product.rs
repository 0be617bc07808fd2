//! Sums of products: what a matrix unit computes for one element of its result.
//!
//! Products are exact, the sum of the accumulator and of all products of one instruction is taken in f64 in the order of the index
//! and rounded once to the accumulator's type, to the nearest; integers wrap, or are cut with `.satfinite`. The
//! hardware cuts terms and sums, so it may differ by a few units in the last place of the largest term. Operands of tf32 are cut to 11
//! significant bits. NaN results are canonical.
//!
//! Measured on an H200, 2026-11-23, with 1,000 operand sets for each of 325 rows (`tests/data/ptx/hardware/products.txt`): products
//! of whole numbers by `wgmma`, of every type, extent and layout, agree bit for bit. Of random numbers what the hardware gives is,
//! to the bit: all products of an instruction and the accumulator, each cut towards zero to a multiple of `2^(e - 25)`, `e` being the
//! largest exponent among them; their exact sum, cut towards zero to an f32 or rounded to the nearest f16. Of 8-bit floats the
//! multiple is `2^(e - 13)`, and an f32 sum is cut to 14 significant bits, so that half of the result may be lost where terms
//! cancel: for these the page of the IR states a second bound ([`crate::ir`], `imprecise`). What is computed here is the exact sum
//! all the same; `tests/emulator/product_sums.rs` has the other one, and the bound between them.

use super::super::types::{Type, TypeKind};
use crate::num::{self, Format, Overflow, Rounding};

/// Bits of an f32 that tf32 looks at.
const TF32_BITS: u64 = 0xffff_e000;

/// The number that the bits of an element are.
pub(super) fn number(ty: Type, bits: u64) -> f64 {
    let format = match (ty.kind, ty.bits) {
        (TypeKind::Bfloat, _) => Format::BF16,
        (TypeKind::E4m3, _) => Format::E4M3,
        (TypeKind::E5m2, _) => Format::E5M2,
        (TypeKind::Tf32, _) => return Format::F32.to_f64(bits & TF32_BITS),
        (TypeKind::Signed, 8) => return f64::from(bits as u8 as i8),
        (TypeKind::Signed, _) => return f64::from(bits as u32 as i32),
        (TypeKind::Unsigned | TypeKind::Bits, _) => return bits as f64,
        (_, 16) => Format::F16,
        (_, 32) => Format::F32,
        _ => Format::F64,
    };
    format.to_f64(bits)
}

/// A sum as bits of the accumulator's type.
pub(super) fn rounded(sum: Type, total: f64, saturates: bool) -> u64 {
    match (sum.kind, sum.bits) {
        (TypeKind::Signed, _) if saturates => u64::from(total as i32 as u32),
        // Sums of integers are exact.
        (TypeKind::Signed, _) => total as i64 as u64 & u64::from(u32::MAX),
        (_, 64) => num::canonical64(total).to_bits(),
        (_, 32) => u64::from(num::canonical(total as f32).to_bits()),
        _ => Format::F16.from_f64(total, Rounding::NearestEven, Overflow::Ieee),
    }
}
