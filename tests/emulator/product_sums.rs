//! What a Hopper GPU computes for one element of a product of a warpgroup, to the bit.
//!
//! Measured on an H200 (CUDA 13.0, 2026-11-23) with 1,000 random operand sets a row of `products.txt`, every result of which
//! this gives:
//!
//! - All products of one instruction (16 of 16-bit floats, 8 of tf32, 32 of 8-bit floats) and the accumulator are added at once,
//!   in no order. Products are exact.
//! - Each term is cut, towards zero, to a multiple of `2^(e - F)`, where `e` is the largest exponent among the terms; that of a
//!   product is the sum of its factors' exponents, though the product of their significands may be 2 or more. `F` is 25, and 13
//!   for 8-bit floats, whatever the accumulator is. The sum of what is left is exact.
//! - An f32 sum is cut towards zero, to 24 significant bits, to 14 for 8-bit floats. An f16 sum is rounded to the nearest.
//! - A sum of zero is +0. Of tf32, 11 significant bits are looked at. Sums of integers are exact, and wrap or are cut.

use crate::products::{Case, Layout, sum_place};

/// Exponent of a term that is zero.
const NOTHING: i64 = -10_000;

/// An operand set, taken apart: the left operand by rows, the right one by columns, accumulators by rows.
pub(crate) struct Codes {
    a: Vec<u64>,
    b: Vec<u64>,
    sums: Vec<u64>,
}

/// A number as an integer and the power of two that it counts, which is its exponent less the significand's bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    number: i64,
    exponent: i64,
    /// Bits of the fraction.
    fraction: i64,
}

/// Exponent and fraction bits of a float.
fn format(name: &str) -> (u32, u32) {
    match name {
        "f16" => (5, 10),
        "bf16" => (8, 7),
        "tf32" => (8, 10),
        "f32" => (8, 23),
        "e4m3" => (4, 3),
        "e5m2" => (5, 2),
        _ => unreachable!("integers have no fraction"),
    }
}

fn scaled(name: &str, code: u64) -> Scaled {
    let code = if name == "tf32" { code >> 13 } else { code };
    let (bits, fraction) = format(name);
    let field = (code >> fraction & ((1 << bits) - 1)) as i64;
    let low = (code & ((1 << fraction) - 1)) as i64;
    let number = if field > 0 { low | 1 << fraction } else { low };
    let is_negative = code >> (bits + fraction) & 1 == 1;
    Scaled {
        number: if is_negative { -number } else { number },
        exponent: field.max(1) - ((1 << (bits - 1)) - 1),
        fraction: i64::from(fraction),
    }
}

impl Scaled {
    fn times(self, other: Scaled) -> Scaled {
        Scaled {
            number: self.number * other.number,
            exponent: self.exponent + other.exponent,
            fraction: self.fraction + other.fraction,
        }
    }

    fn magnitude(self) -> i64 {
        if self.number == 0 {
            NOTHING
        } else {
            self.exponent
        }
    }

    /// In units of `2^unit`, cut towards zero.
    fn cut(self, unit: i64) -> i64 {
        let left = self.exponent - self.fraction - unit;
        let size = self.number.abs();
        let size = match left {
            0.. => size << left.min(40),
            _ => size >> (-left).min(63),
        };
        self.number.signum() * size
    }
}

/// One sum: its bits, and how far the exact sum, rounded to the accumulator's type, may be from it.
fn sum(case: &Case, terms: &[Scaled]) -> (u64, f64) {
    let is_narrow = case.a.bits == 8;
    let kept = if is_narrow { 13 } else { 25 };
    let largest = terms.iter().map(|term| term.magnitude()).max();
    let largest = largest.unwrap_or(NOTHING);
    if largest == NOTHING {
        return (0, 0.0);
    }
    let unit = largest - kept;
    let total: i64 = terms.iter().map(|term| term.cut(unit)).sum();
    let (bits, fraction) = format(case.sum);
    let kept = if is_narrow && case.sum == "f32" {
        13
    } else {
        i64::from(fraction)
    };
    let size = total.unsigned_abs();
    let top = 63 - i64::from((size | 1).leading_zeros());
    let bias = (1_i64 << (bits - 1)) - 1;
    let exponent = (unit + top).max(1 - bias);
    // Bits that go, or zeros that come.
    let drop = exponent - kept - unit;
    let mut significand = match drop {
        ..=0 => size << -drop,
        _ if case.sum == "f16" => {
            let (whole, rest) = (size >> drop.min(63), size & ((1 << drop.min(62)) - 1));
            let half = 1 << (drop.min(62) - 1);
            whole + u64::from(rest > half || rest == half && whole & 1 == 1)
        }
        _ => size >> drop.min(63),
    };
    significand <<= i64::from(fraction) - kept;
    let mut field = exponent + bias;
    if significand >> (fraction + 1) > 0 {
        significand >>= 1;
        field += 1;
    }
    if significand >> fraction == 0 {
        field = 0;
    }
    let code = match significand {
        _ if field >= (1 << bits) - 1 => ((1 << bits) - 1) << fraction,
        0 => 0,
        _ => (field as u64) << fraction | significand & ((1 << fraction) - 1),
    };
    let is_negative = total < 0 && significand > 0;
    // Each term lost less than a unit, the sum less than one in its last place; the exact sum is rounded by half of one.
    let last = exponent + 1 - kept;
    let bound = terms.len() as f64 * (unit as f64).exp2() + 1.5 * (last as f64).exp2();
    (code | u64::from(is_negative) << (bits + fraction), bound)
}

/// The results of an operand set by rows: what hardware gives, and how far an exact sum that is rounded once may be from it.
pub(crate) fn hardware(case: &Case, codes: &Codes) -> Vec<(u64, f64)> {
    let (k, n) = (case.k(), case.n);
    let sign = if case.negated[0] != case.negated[1] {
        -1
    } else {
        1
    };
    let mut all = Vec::with_capacity(64 * n);
    if case.sum == "s32" {
        let number = |name: &str, code: u64| match name {
            "s8" => i64::from(code as u8 as i8),
            _ => code as i64,
        };
        let a: Vec<i64> = codes.a.iter().map(|&x| number(case.a.name, x)).collect();
        let b: Vec<i64> = codes.b.iter().map(|&x| number(case.b.name, x)).collect();
        for (a, starts) in a.chunks_exact(k).zip(codes.sums.chunks_exact(n)) {
            for (b, &start) in b.chunks_exact(k).zip(starts) {
                let start = i64::from(start as u32 as i32) * i64::from(case.adds);
                let total = start + a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>();
                let total = match case.saturates {
                    true => total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
                    false => total,
                };
                all.push((u64::from(total as u32), 0.0));
            }
        }
        return all;
    }
    let side = |name: &str, codes: &[u64]| -> Vec<Scaled> {
        codes.iter().map(|&code| scaled(name, code)).collect()
    };
    let (a, b) = (side(case.a.name, &codes.a), side(case.b.name, &codes.b));
    let mut terms = Vec::with_capacity(k + 1);
    for (a, starts) in a.chunks_exact(k).zip(codes.sums.chunks_exact(n)) {
        for (b, &start) in b.chunks_exact(k).zip(starts) {
            terms.clear();
            terms.extend(a.iter().zip(b).map(|(a, b)| {
                let product = a.times(*b);
                Scaled {
                    number: sign * product.number,
                    ..product
                }
            }));
            if case.adds {
                terms.push(scaled(case.sum, start));
            }
            all.push(sum(case, &terms));
        }
    }
    all
}

/// Takes an operand set apart.
pub(crate) fn codes(case: &Case, set: &[u8]) -> Codes {
    let (start, bytes) = case.image();
    let k = case.k();
    let each = case.registers() + 4;
    let registers: Vec<u32> = set[bytes..]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| u32::from_le_bytes(word))
        .collect();
    let in_memory = |layout: Layout, bits: usize, rows: usize, start: usize| -> Vec<u64> {
        let element = |i: usize| {
            let (outer, inner) = (i / k, i % k);
            let bit = inner * bits;
            let at = match layout.across {
                true => layout.byte(rows, outer, inner),
                false => layout.byte(rows, outer, bit / 8),
            };
            let mut word = [0; 8];
            let size = bits.div_ceil(8);
            word[..size].copy_from_slice(&set[start + at..start + at + size]);
            let low = if bits == 1 { bit % 8 } else { 0 };
            u64::from_le_bytes(word) >> low & (u64::MAX >> (64 - bits))
        };
        (0..rows * k).map(element).collect()
    };
    let bits = case.a.bits;
    let a = match case.left {
        Some(layout) => in_memory(layout, bits, 64, 0),
        None => {
            let mut a = vec![0; 64 * k];
            let width = 32 / bits;
            for (thread, words) in registers.chunks_exact(each).enumerate() {
                let (warp, group, quad) = (thread / 32, thread % 32 / 4, thread % 4);
                for (register, &word) in words[case.registers()..].iter().enumerate() {
                    for i in 0..width {
                        let row = 16 * warp + group + 8 * (register & 1);
                        let inner = width * quad + i + 4 * width * (register >> 1);
                        a[row * k + inner] =
                            u64::from(word >> (i * bits) & (u32::MAX >> (32 - bits)));
                    }
                }
            }
            a
        }
    };
    let mut sums = vec![0; 64 * case.n];
    for (thread, words) in registers.chunks_exact(each).enumerate() {
        for i in 0..case.n / 2 {
            let (row, column) = sum_place(thread, i);
            sums[row * case.n + column] = u64::from(match case.sum {
                "f16" => words[i / 2] >> (16 * (i % 2)) & 0xffff,
                _ => words[i],
            });
        }
    }
    Codes {
        a,
        b: in_memory(case.right, bits, case.n, start),
        sums,
    }
}

/// Results by rows as the 128 threads store them.
pub(crate) fn stored(case: &Case, sums: &[u64]) -> Vec<u8> {
    let registers = case.registers();
    let mut words = vec![0_u32; 128 * registers];
    for (thread, words) in words.chunks_exact_mut(registers).enumerate() {
        for i in 0..case.n / 2 {
            let (row, column) = sum_place(thread, i);
            let code = sums[row * case.n + column] as u32;
            match case.sum {
                "f16" => words[i / 2] |= code << (16 * (i % 2)),
                _ => words[i] = code,
            }
        }
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
