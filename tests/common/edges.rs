//! Edge cases of types: zeros, ones, infinities, a NaN, subnormals, the largest and the least, halves and ties of
//! conversions to integers. Results of hardware for them are committed (`tests/data/ptx/hardware`): a change here changes the operands
//! that those belong to.

/// Bits of f32.
pub(crate) const F32: [u64; 16] = [
    0,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0001,
    1,
    0x807f_ffff,
    0x0080_0000,
    0x7f7f_ffff,
    0x3f00_0000,
    0x4020_0000,
    0x4f00_0000,
    0xcf00_0001,
    0x7f00_0001,
];

/// Bits of f16.
pub(crate) const F16: [u64; 16] = [
    0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 1, 0x83ff, 0x0400, 0x7bff, 0x3800, 0x4100,
    0x7801, 0x5bff, 0xf7ff,
];

/// Bits of bf16.
pub(crate) const BF16: [u64; 16] = [
    0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc1, 1, 0x807f, 0x0080, 0x7f7f, 0x3f00, 0x4020,
    0x4f00, 0xcf01, 0x7f01,
];

/// Bits of f64.
pub(crate) const F64: [u64; 16] = [
    0,
    1 << 63,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0001,
    1,
    0x800f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x3fe0_0000_0000_0000,
    0x4004_0000_0000_0000,
    0x41e0_0000_0000_0000,
    0xc3e0_0000_0000_0001,
    0x47ef_ffff_f000_0000,
];

/// Integers; narrower types take the low bits.
pub(crate) const INT: [u64; 16] = [
    0,
    1,
    u64::MAX,
    2,
    0x7f,
    0x80,
    0x7fff,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    1 << 63,
    0x0123_4567_89ab_cdef,
    31,
    0xffff_fffe,
];

/// Bits of 8-bit floats, of either format.
pub(crate) const F8: [u64; 16] = [
    0, 0x80, 0x38, 0xbc, 0x7c, 0xfb, 0x7f, 1, 0x83, 0x04, 0x7e, 0x30, 0x41, 0x78, 0x5b, 0xf7,
];
