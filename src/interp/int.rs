//! Integer operations on bit patterns.
//!
//! Every function takes the width in bits and operands whose upper bits are zero. Upper bits of a result
//! may hold anything: the caller cuts them off.

use super::Open;

/// `x` without the bits above the width.
pub(super) fn low_bits(bits: u32, x: u64) -> u64 {
    match bits {
        64 => x,
        _ => x & ((1 << bits) - 1),
    }
}

/// `x` as a signed number.
pub(super) fn signed(bits: u32, x: u64) -> i64 {
    let unused = 64 - bits;
    (x << unused) as i64 >> unused
}

pub(super) fn add(_: u32, a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

pub(super) fn sub(_: u32, a: u64, b: u64) -> u64 {
    a.wrapping_sub(b)
}

pub(super) fn mul(_: u32, a: u64, b: u64) -> u64 {
    a.wrapping_mul(b)
}

/// What quotient and remainder of two numbers are where they are not defined.
pub(super) fn undefined(is_signed: bool, bits: u32, a: u64, b: u64) -> Option<Open> {
    let least = signed(bits, a) == i64::MIN >> (64 - bits);
    match b {
        0 => Some(Open::ByZero),
        _ if is_signed && least && signed(bits, b) == -1 => Some(Open::Overflow),
        _ => None,
    }
}

/// Division by zero is unspecified and gives all ones here; the quotient that overflows wraps.
pub(super) fn sdiv(bits: u32, a: u64, b: u64) -> u64 {
    match b {
        0 => u64::MAX,
        _ => signed(bits, a).wrapping_div(signed(bits, b)) as u64,
    }
}

/// Division by zero is unspecified and gives all ones here.
pub(super) fn udiv(_: u32, a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

/// The remainder by zero is unspecified and all ones here, as on the hardware.
pub(super) fn srem(bits: u32, a: u64, b: u64) -> u64 {
    match b {
        0 => u64::MAX,
        _ => signed(bits, a).wrapping_rem(signed(bits, b)) as u64,
    }
}

/// The remainder by zero is unspecified and all ones here, as on the hardware.
pub(super) fn urem(_: u32, a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(u64::MAX)
}

pub(super) fn smin(bits: u32, a: u64, b: u64) -> u64 {
    signed(bits, a).min(signed(bits, b)) as u64
}

pub(super) fn smax(bits: u32, a: u64, b: u64) -> u64 {
    signed(bits, a).max(signed(bits, b)) as u64
}

pub(super) fn umin(_: u32, a: u64, b: u64) -> u64 {
    a.min(b)
}

pub(super) fn umax(_: u32, a: u64, b: u64) -> u64 {
    a.max(b)
}

pub(super) fn and(_: u32, a: u64, b: u64) -> u64 {
    a & b
}

pub(super) fn or(_: u32, a: u64, b: u64) -> u64 {
    a | b
}

pub(super) fn xor(_: u32, a: u64, b: u64) -> u64 {
    a ^ b
}

pub(super) fn shl(bits: u32, a: u64, b: u64) -> u64 {
    if b < u64::from(bits) { a << b } else { 0 }
}

pub(super) fn sshr(bits: u32, a: u64, b: u64) -> u64 {
    (signed(bits, a) >> b.min(63)) as u64
}

pub(super) fn ushr(bits: u32, a: u64, b: u64) -> u64 {
    if b < u64::from(bits) { a >> b } else { 0 }
}

pub(super) fn smulhi(bits: u32, a: u64, b: u64) -> u64 {
    ((i128::from(signed(bits, a)) * i128::from(signed(bits, b))) >> bits) as u64
}

pub(super) fn umulhi(bits: u32, a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> bits) as u64
}

pub(super) fn abs(bits: u32, x: u64) -> u64 {
    signed(bits, x).wrapping_abs() as u64
}

pub(super) fn popc(_: u32, x: u64) -> u64 {
    u64::from(x.count_ones())
}

pub(super) fn clz(bits: u32, x: u64) -> u64 {
    u64::from(x.leading_zeros() + bits - 64)
}

pub(super) fn brev(bits: u32, x: u64) -> u64 {
    x.reverse_bits() >> (64 - bits)
}

/// The bytes of `a` and `b` that the digits of `selector` name, or their signs.
pub(super) fn byte_perm(a: u64, b: u64, selector: u64) -> u64 {
    let both = a & 0xffff_ffff | b << 32;
    (0..4).fold(0, |result, i| {
        let digit = selector >> (4 * i);
        let byte = (both >> (8 * (digit & 7))) as u8;
        let byte = match digit & 8 {
            0 => byte,
            _ => (byte as i8 >> 7) as u8,
        };
        result | u64::from(byte) << (8 * i)
    })
}
