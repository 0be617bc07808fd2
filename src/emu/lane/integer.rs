//! Integer and bit instructions.

use crate::emu::inst::Mods;

/// Sign-extends the low `bits` of `x`.
#[inline]
pub(in crate::emu) fn signed(x: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    (x << shift) as i64 >> shift
}

/// Zero-extends the low `bits` of `x`.
#[inline]
pub(in crate::emu) fn unsigned(x: u64, bits: u32) -> u64 {
    let shift = 64 - bits;
    x << shift >> shift
}

/// The value as the type of the operation sees it.
#[inline]
fn value(m: &Mods, x: u64) -> i128 {
    if m.ty.is_signed() {
        i128::from(signed(x, m.ty.bits))
    } else {
        i128::from(unsigned(x, m.ty.bits))
    }
}

/// `.sat` of s32 sums clamps to the type's range.
fn clamp(m: &Mods, x: i128) -> u64 {
    let top = 1_i128 << (m.ty.bits - 1);
    x.clamp(-top, top - 1) as u64
}

pub(in crate::emu) fn mov(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0]
}

pub(in crate::emu) fn add(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0].wrapping_add(s[1])
}

pub(in crate::emu) fn sub(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0].wrapping_sub(s[1])
}

pub(in crate::emu) fn add_sat(m: &Mods, s: &[u64; 4]) -> u64 {
    clamp(m, value(m, s[0]) + value(m, s[1]))
}

pub(in crate::emu) fn sub_sat(m: &Mods, s: &[u64; 4]) -> u64 {
    clamp(m, value(m, s[0]) - value(m, s[1]))
}

pub(in crate::emu) fn mul_lo(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0].wrapping_mul(s[1])
}

pub(in crate::emu) fn mad_lo(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0].wrapping_mul(s[1]).wrapping_add(s[2])
}

/// The upper half of the double-width product. 64-bit factors need 128 bits of product; for
/// unsigned ones `i128` would lose the top bit, so they are multiplied as `u128`.
pub(in crate::emu) fn mul_hi(m: &Mods, s: &[u64; 4]) -> u64 {
    if m.ty.is_signed() {
        ((value(m, s[0]) * value(m, s[1])) >> m.ty.bits) as u64
    } else {
        let (a, b) = (unsigned(s[0], m.ty.bits), unsigned(s[1], m.ty.bits));
        ((u128::from(a) * u128::from(b)) >> m.ty.bits) as u64
    }
}

pub(in crate::emu) fn mad_hi(m: &Mods, s: &[u64; 4]) -> u64 {
    mul_hi(m, s).wrapping_add(s[2])
}

pub(in crate::emu) fn mad_hi_sat(m: &Mods, s: &[u64; 4]) -> u64 {
    clamp(
        m,
        i128::from(signed(mul_hi(m, s), m.ty.bits)) + value(m, s[2]),
    )
}

pub(in crate::emu) fn mul_wide(m: &Mods, s: &[u64; 4]) -> u64 {
    if m.ty.is_signed() {
        (signed(s[0], m.ty.bits)).wrapping_mul(signed(s[1], m.ty.bits)) as u64
    } else {
        unsigned(s[0], m.ty.bits).wrapping_mul(unsigned(s[1], m.ty.bits))
    }
}

pub(in crate::emu) fn mad_wide(m: &Mods, s: &[u64; 4]) -> u64 {
    mul_wide(m, s).wrapping_add(s[2])
}

/// `mul24.lo` and `mul24.hi`: the 48-bit product of the low 24 bits.
fn product24(m: &Mods, s: &[u64; 4]) -> u64 {
    if m.ty.is_signed() {
        signed(s[0], 24).wrapping_mul(signed(s[1], 24)) as u64
    } else {
        unsigned(s[0], 24).wrapping_mul(unsigned(s[1], 24))
    }
}

pub(in crate::emu) fn mul24_lo(m: &Mods, s: &[u64; 4]) -> u64 {
    product24(m, s)
}

pub(in crate::emu) fn mul24_hi(m: &Mods, s: &[u64; 4]) -> u64 {
    product24(m, s) >> 16
}

pub(in crate::emu) fn mad24_lo(m: &Mods, s: &[u64; 4]) -> u64 {
    product24(m, s).wrapping_add(s[2])
}

pub(in crate::emu) fn mad24_hi(m: &Mods, s: &[u64; 4]) -> u64 {
    (product24(m, s) >> 16).wrapping_add(s[2])
}

/// Sum of absolute difference.
pub(in crate::emu) fn sad(m: &Mods, s: &[u64; 4]) -> u64 {
    ((value(m, s[0]) - value(m, s[1])).unsigned_abs() as u64).wrapping_add(s[2])
}

/// Division by zero is machine-specific in PTX; NVIDIA hardware yields all ones.
pub(in crate::emu) fn div(m: &Mods, s: &[u64; 4]) -> u64 {
    let (a, b) = (value(m, s[0]), value(m, s[1]));
    if b == 0 { u64::MAX } else { (a / b) as u64 }
}

/// The remainder by zero is machine-specific in PTX; NVIDIA hardware yields all ones.
pub(in crate::emu) fn rem(m: &Mods, s: &[u64; 4]) -> u64 {
    let (a, b) = (value(m, s[0]), value(m, s[1]));
    if b == 0 { u64::MAX } else { (a % b) as u64 }
}

pub(in crate::emu) fn abs(m: &Mods, s: &[u64; 4]) -> u64 {
    signed(s[0], m.ty.bits).unsigned_abs()
}

pub(in crate::emu) fn neg(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0].wrapping_neg()
}

fn relu(m: &Mods, x: i128) -> u64 {
    if m.relu && x < 0 { 0 } else { x as u64 }
}

pub(in crate::emu) fn min(m: &Mods, s: &[u64; 4]) -> u64 {
    relu(m, value(m, s[0]).min(value(m, s[1])))
}

pub(in crate::emu) fn max(m: &Mods, s: &[u64; 4]) -> u64 {
    relu(m, value(m, s[0]).max(value(m, s[1])))
}

pub(in crate::emu) fn and(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0] & s[1]
}

pub(in crate::emu) fn or(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0] | s[1]
}

pub(in crate::emu) fn xor(_: &Mods, s: &[u64; 4]) -> u64 {
    s[0] ^ s[1]
}

pub(in crate::emu) fn not(_: &Mods, s: &[u64; 4]) -> u64 {
    !s[0]
}

pub(in crate::emu) fn cnot(m: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(unsigned(s[0], m.ty.bits) == 0)
}

/// Any function of three bits: `imm` is its truth table, indexed by a, b, c from the top.
pub(in crate::emu) fn lop3(m: &Mods, s: &[u64; 4]) -> u64 {
    let mut out = 0;
    for row in 0..8 {
        if m.imm >> row & 1 == 1 {
            let pick = |x: u64, bit: u32| if row >> bit & 1 == 1 { x } else { !x };
            out |= pick(s[0], 2) & pick(s[1], 1) & pick(s[2], 0);
        }
    }
    out
}

/// Shift amounts are 32-bit and clamp to the width.
fn amount(x: u64) -> u32 {
    x as u32
}

pub(in crate::emu) fn shl(m: &Mods, s: &[u64; 4]) -> u64 {
    if amount(s[1]) >= m.ty.bits {
        0
    } else {
        s[0] << amount(s[1])
    }
}

pub(in crate::emu) fn shr(m: &Mods, s: &[u64; 4]) -> u64 {
    let by = amount(s[1]).min(m.ty.bits);
    if m.ty.is_signed() {
        (signed(s[0], m.ty.bits) >> by.min(63)) as u64
    } else {
        unsigned(s[0], m.ty.bits).checked_shr(by).unwrap_or(0)
    }
}

fn funnel_amount(m: &Mods, x: u64) -> u32 {
    if m.flag {
        x as u32 & 31
    } else {
        (x as u32).min(32)
    }
}

/// The upper word of `{s1, s0}` shifted left.
pub(in crate::emu) fn shf_left(m: &Mods, s: &[u64; 4]) -> u64 {
    let both = unsigned(s[1], 32) << 32 | unsigned(s[0], 32);
    // A shift by 32 moves the low word up entirely.
    (u128::from(both) << funnel_amount(m, s[2])) as u64 >> 32
}

/// The lower word of `{s1, s0}` shifted right.
pub(in crate::emu) fn shf_right(m: &Mods, s: &[u64; 4]) -> u64 {
    (unsigned(s[1], 32) << 32 | unsigned(s[0], 32)) >> funnel_amount(m, s[2])
}

/// Bit field extract: position and length are bytes; bits beyond the value repeat its sign.
pub(in crate::emu) fn bfe(m: &Mods, s: &[u64; 4]) -> u64 {
    let (position, length) = (s[1] as u32 & 255, s[2] as u32 & 255);
    let bits = m.ty.bits;
    if length == 0 {
        return 0;
    }
    if m.ty.is_signed() {
        let wide = signed(s[0], bits);
        let kept = length.min(64);
        // The arithmetic shift supplies the sign beyond the value's own bits.
        let field = wide >> position.min(63);
        let missing = position + kept > bits;
        if missing {
            field as u64
        } else {
            signed(field as u64, kept) as u64
        }
    } else {
        let field = unsigned(s[0], bits).checked_shr(position).unwrap_or(0);
        if length >= 64 {
            field
        } else {
            field & ((1 << length) - 1)
        }
    }
}

/// Bit field insert: `s0` into `s1` at position `s2`, length `s3`.
pub(in crate::emu) fn bfi(m: &Mods, s: &[u64; 4]) -> u64 {
    let (position, length) = (s[2] as u32 & 255, s[3] as u32 & 255);
    if position >= m.ty.bits || length == 0 {
        return s[1];
    }
    let field = if length >= 64 {
        u64::MAX
    } else {
        (1 << length) - 1
    };
    let mask = field << position;
    s[1] & !mask | s[0] << position & mask
}

/// Position of the most significant bit that differs from the sign, or all ones.
pub(in crate::emu) fn bfind(m: &Mods, s: &[u64; 4]) -> u64 {
    let x = unsigned(s[0], m.ty.bits);
    let negative = m.ty.is_signed() && x >> (m.ty.bits - 1) == 1;
    let x = if negative { unsigned(!x, m.ty.bits) } else { x };
    if x == 0 {
        return u64::MAX;
    }
    let position = 63 - x.leading_zeros();
    u64::from(if m.flag {
        m.ty.bits - 1 - position
    } else {
        position
    })
}

/// A run of `s1` ones from position `s0`; both clamp, or wrap with `.wrap`.
pub(in crate::emu) fn bmsk(m: &Mods, s: &[u64; 4]) -> u64 {
    let limit = |x: u64| {
        if m.flag {
            x as u32 & 31
        } else {
            (x as u32).min(32)
        }
    };
    let ones = (1_u64 << limit(s[1])) - 1;
    ones << limit(s[0])
}

pub(in crate::emu) fn clz(m: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(unsigned(s[0], m.ty.bits).leading_zeros() - (64 - m.ty.bits))
}

pub(in crate::emu) fn popc(m: &Mods, s: &[u64; 4]) -> u64 {
    u64::from(unsigned(s[0], m.ty.bits).count_ones())
}

pub(in crate::emu) fn brev(m: &Mods, s: &[u64; 4]) -> u64 {
    s[0].reverse_bits() >> (64 - m.ty.bits)
}

/// Byte permute: each selector nibble names a byte of `{s1, s0}`, or its replicated sign.
pub(in crate::emu) fn prmt(m: &Mods, s: &[u64; 4]) -> u64 {
    let both = unsigned(s[1], 32) << 32 | unsigned(s[0], 32);
    let byte = |index: u32| both >> (8 * (index & 7)) & 255;
    let base = s[2] as u32 & 3;
    let pick = |lane: u32| -> u64 {
        match m.imm {
            // f4e and b4e walk forward or backward from the base.
            1 => byte(base + lane),
            2 => byte(base.wrapping_sub(lane)),
            // rc8 replicates.
            3 => byte(base),
            // ecl clamps at the base from below, ecr from above.
            4 => byte(base.max(lane)),
            5 => byte(base.min(lane)),
            // rc16 replicates half words.
            6 => byte((base & 1) * 2 + (lane & 1)),
            _ => {
                let nibble = s[2] as u32 >> (4 * lane) & 15;
                let picked = byte(nibble);
                if nibble & 8 == 0 {
                    picked
                } else {
                    255 * (picked >> 7)
                }
            }
        }
    };
    (0..4).fold(0, |word, lane| word | pick(lane) << (8 * lane))
}

/// Four-way dot product of bytes; `ty` is the type of `s0`'s bytes, `from` that of `s1`'s.
pub(in crate::emu) fn dp4a(m: &Mods, s: &[u64; 4]) -> u64 {
    let mut sum = s[2];
    for lane in 0..4 {
        let part = |x: u64, is_signed: bool| {
            let byte = x >> (8 * lane);
            if is_signed {
                signed(byte, 8) as u64
            } else {
                byte & 255
            }
        };
        sum = sum.wrapping_add(
            part(s[0], m.ty.is_signed()).wrapping_mul(part(s[1], m.from.is_signed())),
        );
    }
    sum
}

/// Two-way dot product of half words with the low (`imm` 0) or high (1) two bytes of `s1`.
pub(in crate::emu) fn dp2a(m: &Mods, s: &[u64; 4]) -> u64 {
    let mut sum = s[2];
    for lane in 0..2 {
        let half = s[0] >> (16 * lane);
        let half = if m.ty.is_signed() {
            signed(half, 16) as u64
        } else {
            half & 0xffff
        };
        let byte = s[1] >> (8 * (lane + 2 * m.imm));
        let byte = if m.from.is_signed() {
            signed(byte, 8) as u64
        } else {
            byte & 255
        };
        sum = sum.wrapping_add(half.wrapping_mul(byte));
    }
    sum
}

/// `slct` with an s32 selector.
pub(in crate::emu) fn slct_int(_: &Mods, s: &[u64; 4]) -> u64 {
    if s[2] as i32 >= 0 { s[0] } else { s[1] }
}

/// `slct` with an f32 selector; NaN selects the second operand.
pub(in crate::emu) fn slct_float(m: &Mods, s: &[u64; 4]) -> u64 {
    let selector = f32::from_bits(s[2] as u32);
    let selector = if m.ftz {
        crate::num::ftz(selector)
    } else {
        selector
    };
    if selector >= 0.0 { s[0] } else { s[1] }
}
