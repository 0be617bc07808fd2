//! Floating-point instructions.

use crate::emu::inst::Mods;
use crate::emu::types::TypeKind;
use crate::num::{self, Rounding, bf16, f16};

fn single(m: &Mods, x: u64) -> f32 {
    let x = f32::from_bits(x as u32);
    if m.ftz { num::ftz(x) } else { x }
}

/// Applies `.ftz` and `.sat` to an f32 result.
fn finish(m: &Mods, x: f32) -> u64 {
    let x = if m.ftz { num::ftz(x) } else { x };
    let x = if m.sat { num::saturate(x) } else { x };
    u64::from(x.to_bits())
}

macro_rules! single_ops {
    ($($name:ident($m:ident, $($arg:ident),+) = $result:expr;)+) => {$(
        pub(in crate::emu) fn $name($m: &Mods, s: &[u64; 4]) -> u64 {
            let [$($arg),+, ..] = *s;
            $(let $arg = single($m, $arg);)+
            finish($m, $result)
        }
    )+};
}

single_ops! {
    add32(m, a, b) = num::add(a, b, m.rounding);
    sub32(m, a, b) = num::sub(a, b, m.rounding);
    mul32(m, a, b) = num::mul(a, b, m.rounding);
    fma32(m, a, b, c) = num::fma(a, b, c, m.rounding);
    div32(m, a, b) = num::div(a, b, m.rounding);
    div_approx32(m, a, b) = div_approx(a, b);
    rcp32(m, a) = num::rcp(a, m.rounding);
    sqrt32(m, a) = num::sqrt(a, m.rounding);
    rsqrt32(m, a) = num::rsqrt(a);
    ex2_32(m, a) = num::ex2(a);
    lg2_32(m, a) = num::lg2(a);
    sin32(m, a) = num::sin(a);
    cos32(m, a) = num::cos(a);
    tanh32(m, a) = num::tanh(a);
    min32(m, a, b) = xorsign(m, a, b, |a, b| if m.nan { num::min_nan(a, b) } else { num::min(a, b) });
    max32(m, a, b) = xorsign(m, a, b, |a, b| if m.nan { num::max_nan(a, b) } else { num::max(a, b) });
    // Additions on hardware, not operations on the sign: a NaN becomes the canonical one.
    neg32(m, a) = num::canonical(-a);
    abs32(m, a) = num::canonical(a.abs());
    copysign32(m, a, b) = b.copysign(a);
}

/// `div.approx`: the quotient is flushed to zero for divisors above 2^126, as PTX documents.
fn div_approx(a: f32, b: f32) -> f32 {
    const LARGE: f32 = f32::from_bits(0x7e80_0000);
    if b.abs() > LARGE && b.is_finite() {
        if a.is_infinite() || a.is_nan() {
            return num::NAN_F32;
        }
        return if a.is_sign_negative() == b.is_sign_negative() {
            0.0
        } else {
            -0.0
        };
    }
    num::div(a, b, Rounding::NearestEven)
}

/// `.xorsign.abs`: the operation on magnitudes, with the product of the signs.
fn xorsign(m: &Mods, a: f32, b: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    if !m.flag {
        return f(a, b);
    }
    let negative = a.is_sign_negative() != b.is_sign_negative();
    let result = f(a.abs(), b.abs());
    if negative && !result.is_nan() {
        -result
    } else {
        result
    }
}

fn double(x: u64) -> f64 {
    f64::from_bits(x)
}

macro_rules! double_ops {
    ($($name:ident($m:ident, $($arg:ident),+) = $result:expr;)+) => {$(
        pub(in crate::emu) fn $name($m: &Mods, s: &[u64; 4]) -> u64 {
            let [$($arg),+, ..] = *s;
            $(let $arg = double($arg);)+
            let x = num::canonical64($result);
            let x = if $m.sat { num::saturate64(x) } else { x };
            x.to_bits()
        }
    )+};
}

double_ops! {
    add64(m, a, b) = a + b;
    sub64(m, a, b) = a - b;
    mul64(m, a, b) = a * b;
    fma64(m, a, b, c) = a.mul_add(b, c);
    div64(m, a, b) = a / b;
    rcp64(m, a) = 1.0 / a;
    sqrt64(m, a) = a.sqrt();
    min64(m, a, b) = if m.nan { num::min_nan64(a, b) } else { num::min64(a, b) };
    max64(m, a, b) = if m.nan { num::max_nan64(a, b) } else { num::max64(a, b) };
    neg64(m, a) = -a;
    abs64(m, a) = a.abs();
    copysign64(m, a, b) = b.copysign(a);
}

/// `rcp.approx.ftz.f64`: the upper 32 bits of the reciprocal, the lower ones zero.
pub(in crate::emu) fn rcp_approx64(_: &Mods, s: &[u64; 4]) -> u64 {
    upper(1.0 / flush64(double(s[0])))
}

/// `rsqrt.approx.ftz.f64`, likewise.
pub(in crate::emu) fn rsqrt_approx64(_: &Mods, s: &[u64; 4]) -> u64 {
    upper(1.0 / flush64(double(s[0])).sqrt())
}

fn flush64(x: f64) -> f64 {
    if x.is_subnormal() {
        0.0_f64.copysign(x)
    } else {
        x
    }
}

fn upper(x: f64) -> u64 {
    num::canonical64(flush64(x)).to_bits() & 0xffff_ffff_0000_0000
}

fn is_bf16(m: &Mods) -> bool {
    m.ty.kind == TypeKind::Bfloat
}

fn flush16(m: &Mods, x: u16) -> u16 {
    match (m.ftz, is_bf16(m)) {
        (false, _) => x,
        (true, true) => bf16::ftz(x),
        (true, false) => f16::ftz(x),
    }
}

fn half(m: &Mods, x: u64) -> u16 {
    flush16(m, x as u16)
}

fn is_nan16(m: &Mods, x: u16) -> bool {
    if is_bf16(m) {
        bf16::is_nan(x)
    } else {
        f16::is_nan(x)
    }
}

/// Applies `.ftz`, `.sat` and `.relu` to a 16-bit result.
fn finish16(m: &Mods, x: u16) -> u64 {
    let mut x = flush16(m, x);
    let negative = x >> 15 == 1;
    let nan = is_nan16(m, x);
    let one = if is_bf16(m) { 0x3f80 } else { 0x3c00 };
    if m.sat {
        x = if nan || negative { 0 } else { x.min(one) };
    }
    if m.relu && negative && !nan {
        x = 0;
    }
    u64::from(x)
}

macro_rules! half_ops {
    ($($name:ident, $function:ident, $($index:literal),+;)+) => {$(
        pub(in crate::emu) fn $name(m: &Mods, s: &[u64; 4]) -> u64 {
            let x = if is_bf16(m) {
                bf16::$function($(s[$index] as u16),+)
            } else {
                f16::$function($(half(m, s[$index])),+)
            };
            finish16(m, x)
        }
    )+};
}

half_ops! {
    add16, add, 0, 1;
    sub16, sub, 0, 1;
    mul16, mul, 0, 1;
    fma16, fma, 0, 1, 2;
}

/// Computes in f32 what is exact or a single rounding there.
fn through_single(m: &Mods, x: u64, f: impl Fn(f32) -> f32) -> u64 {
    let bits = half(m, x);
    let rounded = if is_bf16(m) {
        bf16::from_f32(f(bf16::to_f32(bits)))
    } else {
        f16::from_f32(f(f16::to_f32(bits)))
    };
    finish16(m, rounded)
}

pub(in crate::emu) fn ex2_16(m: &Mods, s: &[u64; 4]) -> u64 {
    through_single(m, s[0], num::ex2)
}

pub(in crate::emu) fn tanh16(m: &Mods, s: &[u64; 4]) -> u64 {
    through_single(m, s[0], num::tanh)
}

fn pick16(m: &Mods, s: &[u64; 4], f: impl Fn(f32, f32) -> f32) -> u64 {
    let operand = |x: u64| {
        let x = half(m, x);
        // `.xorsign.abs` takes the sign of a NaN too, which widening drops.
        let sign = if m.flag { x & 0x8000 } else { 0 };
        let wide = if is_bf16(m) {
            bf16::to_f32(x)
        } else {
            f16::to_f32(x)
        };
        (wide, sign)
    };
    let ((a, a_sign), (b, b_sign)) = (operand(s[0]), operand(s[1]));
    let wide = if m.flag { f(a.abs(), b.abs()) } else { f(a, b) };
    let x = if is_bf16(m) {
        bf16::from_f32(wide)
    } else {
        f16::from_f32(wide)
    };
    let sign = if wide.is_nan() { 0 } else { a_sign ^ b_sign };
    finish16(m, x | sign)
}

pub(in crate::emu) fn min16(m: &Mods, s: &[u64; 4]) -> u64 {
    pick16(m, s, |a, b| {
        if m.nan {
            num::min_nan(a, b)
        } else {
            num::min(a, b)
        }
    })
}

pub(in crate::emu) fn max16(m: &Mods, s: &[u64; 4]) -> u64 {
    pick16(m, s, |a, b| {
        if m.nan {
            num::max_nan(a, b)
        } else {
            num::max(a, b)
        }
    })
}

/// A 16-bit operation on the sign; hardware makes a NaN the canonical one.
fn sign16(m: &Mods, x: u64, f: impl Fn(u16) -> u16) -> u64 {
    let x = half(m, x);
    u64::from(if is_nan16(m, x) { num::NAN_16 } else { f(x) })
}

pub(in crate::emu) fn neg16(m: &Mods, s: &[u64; 4]) -> u64 {
    sign16(m, s[0], |x| x ^ 0x8000)
}

pub(in crate::emu) fn abs16(m: &Mods, s: &[u64; 4]) -> u64 {
    sign16(m, s[0], |x| x & 0x7fff)
}
