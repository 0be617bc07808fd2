//! The formats and operations against plain references.

use super::*;

/// A small generator of bit patterns (Knuth's MMIX constants).
struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    /// A finite f32, half the time near one in exponent so that roundings matter.
    fn float(&mut self) -> f32 {
        loop {
            let bits = (self.next() >> 16) as u32;
            let x = if bits & 1 == 0 {
                f32::from_bits(bits & 0x81ff_ffff | 0x3e00_0000)
            } else {
                f32::from_bits(bits)
            };
            if x.is_finite() {
                return x;
            }
        }
    }
}

#[test]
fn half_formats_decode_as_the_half_crate_does() {
    for bits in 0..=u16::MAX {
        let wide = u64::from(bits);
        let expected = half::f16::from_bits(bits).to_f64();
        let got = Format::F16.to_f64(wide);
        assert!(
            got == expected || got.is_nan() && expected.is_nan(),
            "f16 {bits:#06x}"
        );
        let expected = f64::from(f32::from_bits(u32::from(bits) << 16));
        let got = Format::BF16.to_f64(wide);
        assert!(
            got == expected || got.is_nan() && expected.is_nan(),
            "bf16 {bits:#06x}"
        );
    }
}

#[test]
fn every_half_value_survives_a_round_trip_in_every_direction() {
    for bits in 0..=u16::MAX {
        for rounding in [
            Rounding::NearestEven,
            Rounding::NearestAway,
            Rounding::Zero,
            Rounding::Down,
            Rounding::Up,
        ] {
            for (format, to, from) in [
                (
                    Format::F16,
                    f16::to_f64(bits),
                    f16::from_f64 as fn(f64, Rounding) -> u16,
                ),
                (Format::BF16, bf16::to_f64(bits), bf16::from_f64),
            ] {
                let expected = if to.is_nan() { format.nan as u16 } else { bits };
                assert_eq!(from(to, rounding), expected, "{format:?} {rounding:?}");
            }
        }
        if !f16::is_nan(bits) {
            assert_eq!(f16::from_f32(f16::to_f32(bits)), bits);
        }
    }
}

/// Between neighbours of a format, directed roundings pick the bound, nearest the closer one, and
/// a tie the even one.
#[test]
fn rounding_between_all_neighbours() {
    for (format, last) in [
        (Format::F16, 0x7bff_u64),
        (Format::BF16, 0x7f7f),
        (Format::E5M2, 0x7b),
        (Format::E4M3, 0x7e),
    ] {
        let sign = 1 << (format.exponent_bits + format.mantissa_bits);
        for low in 0..last {
            let (a, b) = (format.to_f64(low), format.to_f64(low + 1));
            assert!(a < b);
            let middle = a + (b - a) / 2.0;
            let even = if low & 1 == 0 { low } else { low + 1 };
            for (x, nearest, away) in [
                (middle, even, low + 1),
                (middle.next_down(), low, low),
                (middle.next_up(), low + 1, low + 1),
            ] {
                let round = |x: f64, rounding| format.from_f64(x, rounding, Overflow::Ieee);
                assert_eq!(round(x, Rounding::NearestEven), nearest);
                assert_eq!(round(x, Rounding::NearestAway), away);
                assert_eq!(round(x, Rounding::Zero), low);
                assert_eq!(round(x, Rounding::Down), low);
                assert_eq!(round(x, Rounding::Up), low + 1);
                assert_eq!(round(-x, Rounding::NearestEven), sign | nearest);
                assert_eq!(round(-x, Rounding::Zero), sign | low);
                assert_eq!(round(-x, Rounding::Down), sign | (low + 1));
                assert_eq!(round(-x, Rounding::Up), sign | low);
            }
        }
    }
}

#[test]
fn rounding_at_the_ends_of_f16() {
    use Rounding::{Down, NearestEven, Up, Zero};
    // 65520 is the tie between the largest finite value and what would follow.
    assert_eq!(f16::from_f64(65519.9, NearestEven), 0x7bff);
    assert_eq!(f16::from_f64(65520.0, NearestEven), 0x7c00);
    assert_eq!(f16::from_f64(1e9, Zero), 0x7bff);
    assert_eq!(f16::from_f64(1e9, Down), 0x7bff);
    assert_eq!(f16::from_f64(-1e9, Down), 0xfc00);
    assert_eq!(f16::from_f64(-1e9, Up), 0xfbff);
    assert_eq!(f16::from_f64(1e-300, NearestEven), 0);
    assert_eq!(f16::from_f64(1e-300, Up), 1);
    assert_eq!(f16::from_f64(-1e-300, Down), 0x8001);
    assert_eq!(f16::from_f64(f64::from_bits(1), Up), 1);
    assert_eq!(f16::from_f64(-0.0, NearestEven), 0x8000);
    assert_eq!(f16::from_f64(f64::NEG_INFINITY, Zero), 0xfc00);
    assert_eq!(f16::from_f32(f32::from_bits(0xff80_0001)), 0x7fff);
    assert_eq!(bf16::from_f32(f32::MAX), 0x7f80);
}

#[test]
fn format_f32_rounds_as_the_host_does() {
    let mut random = Lcg(1);
    for _ in 0..200_000 {
        let x = f64::from(random.float()) * (1.0 + random.next() as f64 * 1e-22);
        let got = Format::F32.from_f64(x, Rounding::NearestEven, Overflow::Ieee) as u32;
        assert_eq!(got, (x as f32).to_bits(), "{x:e}");
    }
}

/// The exact product of two 16-bit floats plus a third, by integers: an independent reference.
fn exact_fma(format: &Format, a: u16, b: u16, c: u16) -> Option<u64> {
    let parts = |bits: u16| {
        let field = i32::from(bits & 0x7fff) >> format.mantissa_bits;
        if field == (1 << format.exponent_bits) - 1 {
            return None;
        }
        let fraction = i128::from(bits) & ((1 << format.mantissa_bits) - 1);
        let hidden = i128::from(field > 0) << format.mantissa_bits;
        let sign = if bits >> 15 == 1 { -1 } else { 1 };
        Some((sign * (fraction | hidden), field.max(1)))
    };
    let ((a, ea), (b, eb), (c, ec)) = (parts(a)?, parts(b)?, parts(c)?);
    let bias = (1 << (format.exponent_bits - 1)) - 1 + format.mantissa_bits as i32;
    let (mut sum, mut exponent) = (a * b, ea + eb - 2 * bias);
    let shift = ec - bias - exponent;
    if !(-80..=80).contains(&shift) {
        return None;
    }
    if shift >= 0 {
        sum += c << shift;
    } else {
        sum = (sum << -shift) + c;
        exponent += shift;
    }
    let magnitude = sum.unsigned_abs();
    // Sticky compression to 64 bits.
    let drop = (128 - magnitude.leading_zeros()).saturating_sub(62);
    let sticky = u128::from(magnitude & ((1 << drop) - 1) != 0);
    let compressed = (magnitude >> drop) << 1 | sticky;
    if sum == 0 {
        return None;
    }
    Some(format.round(
        sum < 0,
        compressed as u64,
        exponent + drop as i32 - 1,
        Rounding::NearestEven,
        Overflow::Ieee,
    ))
}

#[test]
fn half_fma_rounds_once() {
    let mut random = Lcg(2);
    let mut checked = 0;
    for round in 0..400_000 {
        let bits = random.next();
        let (a, b) = (bits as u16, (bits >> 16) as u16);
        let mut c = (bits >> 32) as u16;
        if round % 2 == 0 {
            // Near the negated product, so that cancellation is common.
            c = f16::mul(a, b) ^ 0x8000 ^ (bits >> 60) as u16;
        }
        if let Some(expected) = exact_fma(&Format::F16, a, b, c) {
            assert_eq!(
                u64::from(f16::fma(a, b, c)),
                expected,
                "f16 {a:#x} {b:#x} {c:#x}"
            );
            checked += 1;
        }
        if let Some(expected) = exact_fma(&Format::BF16, a, b, c) {
            assert_eq!(
                u64::from(bf16::fma(a, b, c)),
                expected,
                "bf16 {a:#x} {b:#x} {c:#x}"
            );
            checked += 1;
        }
    }
    assert!(checked > 400_000);
}

#[test]
fn fma_that_double_rounding_would_spoil() {
    // 1 + 2^-10 * 2^-1 + a crumb: nearest even of the f32 sum alone would fall on the tie.
    let one = 0x3c00;
    let crumb_half = f16::from_f64(2f64.powi(-11), Rounding::NearestEven);
    assert_eq!(f16::fma(crumb_half, one, one), one);
    let above_half = f16::from_f64(
        2f64.powi(-11) * (1.0 + 2f64.powi(-10)),
        Rounding::NearestEven,
    );
    assert_eq!(f16::fma(above_half, one, one), 0x3c01);
    // Product 2^-24 lies below f32's last place of 2^14: only an exact sum sees it.
    let big = f16::from_f64(2050.0, Rounding::NearestEven);
    let small = f16::from_f64(2f64.powi(-12), Rounding::NearestEven);
    assert_eq!(f16::to_f64(f16::fma(small, small, big)), 2050.0);
}

#[test]
fn half_sums_and_products_agree_with_f64() {
    let mut random = Lcg(3);
    for _ in 0..300_000 {
        let bits = random.next();
        let (a, b) = (bits as u16, (bits >> 16) as u16);
        // f16 sums and products are exact in f64; bf16 products too.
        let (x, y) = (f16::to_f64(a), f16::to_f64(b));
        assert_eq!(f16::add(a, b), f16::from_f64(x + y, Rounding::NearestEven));
        assert_eq!(f16::sub(a, b), f16::from_f64(x - y, Rounding::NearestEven));
        assert_eq!(f16::mul(a, b), f16::from_f64(x * y, Rounding::NearestEven));
        // A quotient of 11-bit numbers is never within 2^-24 of a tie without being one, so f64's
        // rounding does no harm.
        assert_eq!(f16::div(a, b), f16::from_f64(x / y, Rounding::NearestEven));
        let (x, y) = (bf16::to_f64(a), bf16::to_f64(b));
        assert_eq!(
            bf16::mul(a, b),
            bf16::from_f64(x * y, Rounding::NearestEven)
        );
        assert_eq!(
            bf16::div(a, b),
            bf16::from_f64(x / y, Rounding::NearestEven)
        );
    }
}

#[test]
fn f32_fma_equals_the_host_fma() {
    let mut random = Lcg(4);
    for _ in 0..300_000 {
        let (a, b) = (random.float(), random.float());
        let c = if random.next() & 1 == 0 {
            random.float()
        } else {
            -(a * b)
        };
        let expected = canonical(a.mul_add(b, c));
        assert_eq!(
            fma(a, b, c, Rounding::NearestEven).to_bits(),
            expected.to_bits(),
            "{a:e} {b:e} {c:e}"
        );
    }
}

/// Directed results bracket the nearest one, differ by at most one place, and agree when exact.
#[test]
fn directed_f32_roundings_bracket_the_exact_value() {
    let mut random = Lcg(5);
    for _ in 0..200_000 {
        let (a, b, c) = (random.float(), random.float(), random.float());
        let results = |rounding| {
            [
                add(a, b, rounding),
                mul(a, b, rounding),
                div(a, b, rounding),
                fma(a, b, c, rounding),
                sqrt(a.abs(), rounding),
            ]
        };
        let (down, up, zero, near) = (
            results(Rounding::Down),
            results(Rounding::Up),
            results(Rounding::Zero),
            results(Rounding::NearestEven),
        );
        for i in 0..5 {
            let (d, u, z, n) = (down[i], up[i], zero[i], near[i]);
            if n.is_nan() {
                assert!(d.is_nan() && u.is_nan());
                continue;
            }
            assert!(d <= n && n <= u, "{d:e} {n:e} {u:e}");
            assert!(d == u || d.next_up() == u, "op {i}: {d:e} {u:e}");
            assert_eq!(z, if n.is_sign_negative() { u } else { d });
        }
        let exact = f64::from(a) * f64::from(b);
        assert!(f64::from(down[1]) <= exact && exact <= f64::from(up[1]));
    }
    assert_eq!(add(1.0, -1.0, Rounding::Down).to_bits(), 0x8000_0000);
    assert_eq!(add(1.0, -1.0, Rounding::Zero).to_bits(), 0);
}

#[test]
fn min_and_max_order_zeros_and_drop_nan() {
    let nan = f32::from_bits(0xffc0_0001);
    assert_eq!(min(0.0, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(min(-0.0, 0.0).to_bits(), 0x8000_0000);
    assert_eq!(max(0.0, -0.0).to_bits(), 0);
    assert_eq!(max(-0.0, 0.0).to_bits(), 0);
    assert_eq!(max(nan, 3.0), 3.0);
    assert_eq!(min(3.0, nan), 3.0);
    assert_eq!(max(nan, nan).to_bits(), 0x7fff_ffff);
    assert_eq!(max_nan(nan, 3.0).to_bits(), 0x7fff_ffff);
    assert_eq!(min_nan(1.0, 3.0), 1.0);
    assert_eq!(min64(f64::NAN, 2.0), 2.0);
    assert_eq!(max_nan64(2.0, f64::NAN).to_bits(), NAN_F64.to_bits());
    assert_eq!(f16::max(0x7e00, 0x3c00), 0x3c00);
    assert_eq!(bf16::max_nan(0x3f80, 0x7fc0), 0x7fff);
}

#[test]
fn float_to_int_clamps_and_treats_nan_by_width() {
    let s32 = Int {
        signed: true,
        bits: 32,
    };
    let u32_ = Int {
        signed: false,
        bits: 32,
    };
    let s64 = Int {
        signed: true,
        bits: 64,
    };
    let u64_ = Int {
        signed: false,
        bits: 64,
    };
    let s8 = Int {
        signed: true,
        bits: 8,
    };
    let zero = Rounding::Zero;
    assert_eq!(float_to_int(3e9, zero, s32, false), 0x7fff_ffff);
    assert_eq!(float_to_int(-3e9, zero, s32, false) as u32, 0x8000_0000);
    assert_eq!(float_to_int(-1.0, zero, u32_, false), 0);
    assert_eq!(float_to_int(1e30, zero, u64_, false), u64::MAX);
    assert_eq!(
        float_to_int(f64::INFINITY, zero, s64, false),
        i64::MAX as u64
    );
    assert_eq!(float_to_int(-200.0, zero, s8, false) as i64, -128);
    assert_eq!(float_to_int(f64::NAN, zero, s32, false), 0);
    assert_eq!(float_to_int(f64::NAN, zero, s32, true) as u32, 0x8000_0000);
    assert_eq!(
        float_to_int(f64::NAN, zero, s64, false),
        0x8000_0000_0000_0000
    );
    assert_eq!(
        float_to_int(f64::NAN, zero, u64_, false),
        0x8000_0000_0000_0000
    );
    assert_eq!(float_to_int(2.5, Rounding::NearestEven, s32, false), 2);
    assert_eq!(float_to_int(-2.5, Rounding::Down, s32, false) as i64, -3);
    assert_eq!(float_to_int(2.1, Rounding::Up, s32, false), 3);
}

#[test]
fn ints_round_to_floats_as_the_host_does() {
    let int_to_f32 =
        |raw, from, rounding| f32::from_bits(int_to_float(raw, from, Format::F32, rounding) as u32);
    let int_to_f64 =
        |raw, from, rounding| f64::from_bits(int_to_float(raw, from, Format::F64, rounding));
    let mut random = Lcg(6);
    let s64 = Int {
        signed: true,
        bits: 64,
    };
    let u32_ = Int {
        signed: false,
        bits: 32,
    };
    for _ in 0..200_000 {
        let raw = random.next() >> (random.next() % 64);
        assert_eq!(
            int_to_f32(raw, s64, Rounding::NearestEven),
            raw as i64 as f32
        );
        assert_eq!(
            int_to_f64(raw, s64, Rounding::NearestEven),
            raw as i64 as f64
        );
        assert_eq!(
            int_to_f32(raw, u32_, Rounding::NearestEven),
            raw as u32 as f32
        );
    }
    assert_eq!(int_to_f32(0x01ff_ffff, u32_, Rounding::Zero), 33_554_430.0);
    assert_eq!(
        int_to_float(65535, u32_, Format::F16, Rounding::NearestEven),
        0x7c00
    );
}

#[test]
fn fp8_saturates_and_decodes() {
    assert_eq!(fp8::e4m3_to_f32(0x7e), 448.0);
    assert_eq!(fp8::e4m3_to_f32(0x01), 2f32.powi(-9));
    assert!(fp8::e4m3_to_f32(0xff).is_nan());
    assert_eq!(fp8::e5m2_to_f32(0x7b), 57344.0);
    assert_eq!(fp8::e5m2_to_f32(0xfc), f32::NEG_INFINITY);
    assert_eq!(fp8::e4m3_from_f32(1e9), 0x7e);
    assert_eq!(fp8::e4m3_from_f32(f32::NEG_INFINITY), 0xfe);
    assert_eq!(fp8::e4m3_from_f32(f32::NAN), 0x7f);
    assert_eq!(fp8::e5m2_from_f32(61440.0), 0x7b);
    assert_eq!(fp8::e5m2_from_f32(f32::NAN), 0x7f);
    for bits in 0..=255_u8 {
        if fp8::e4m3_to_f32(bits).is_finite() {
            assert_eq!(fp8::e4m3_from_f32(fp8::e4m3_to_f32(bits)), bits);
        }
        if fp8::e5m2_to_f32(bits).is_finite() {
            assert_eq!(fp8::e5m2_from_f32(fp8::e5m2_to_f32(bits)), bits);
        }
    }
}

#[test]
fn flushing_and_saturation() {
    assert_eq!(ftz(f32::from_bits(0x8000_0001)).to_bits(), 0x8000_0000);
    assert_eq!(ftz(f32::MIN_POSITIVE), f32::MIN_POSITIVE);
    assert_eq!(f16::ftz(0x83ff), 0x8000);
    assert_eq!(f16::ftz(0x0400), 0x0400);
    assert_eq!(saturate(f32::NAN).to_bits(), 0);
    assert_eq!(saturate(-0.0).to_bits(), 0);
    assert_eq!(saturate(7.0), 1.0);
    assert_eq!(saturate64(0.25), 0.25);
}

#[test]
fn approximations_meet_exact_points() {
    assert_eq!(ex2(10.0), 1024.0);
    assert_eq!(ex2(f32::NEG_INFINITY), 0.0);
    assert_eq!(lg2(8.0), 3.0);
    assert_eq!(lg2(0.0), f32::NEG_INFINITY);
    assert_eq!(lg2(-1.0).to_bits(), 0x7fff_ffff);
    assert_eq!(rsqrt(0.25), 2.0);
    assert_eq!(tanh(f32::INFINITY), 1.0);
    assert_eq!(sin(0.0), 0.0);
    assert_eq!(cos(0.0), 1.0);
}

/// LLVM knows that the root of a negative number is NaN and would leave out its replacement.
#[test]
fn a_negative_root_is_the_canonical_nan() {
    let x = std::hint::black_box(-2.0f32);
    assert_eq!(sqrt(x, Rounding::NearestEven).to_bits(), 0x7fff_ffff);
    assert_eq!(
        canonical64(f64::from(x).sqrt()).to_bits(),
        NAN_F64.to_bits()
    );
}
