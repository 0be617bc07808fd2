//! Models of the approximate units: the f64 function of the host, rounded once to f32.
//!
//! Hardware differs from these within the documented bounds (PTX ISA): `ex2` 2 ulp, `lg2` absolute
//! 2^-22 on (0.5, 2) and relative 2^-22 elsewhere, `tanh` relative 2^-11, `sin` and `cos` absolute
//! 2^-20.5 on [-2 pi, 2 pi], `rsqrt` relative 2^-22.9. Code compared with hardware must allow for
//! them; a compiler must not fold these functions.

use super::canonical;

/// `ex2.approx.f32`: two to the power `x`.
pub fn ex2(x: f32) -> f32 {
    canonical(f64::from(x).exp2() as f32)
}

/// `lg2.approx.f32`: logarithm to base two.
pub fn lg2(x: f32) -> f32 {
    canonical(f64::from(x).log2() as f32)
}

/// `sin.approx.f32`.
pub fn sin(x: f32) -> f32 {
    canonical(f64::from(x).sin() as f32)
}

/// `cos.approx.f32`.
pub fn cos(x: f32) -> f32 {
    canonical(f64::from(x).cos() as f32)
}

/// `tanh.approx.f32`.
pub fn tanh(x: f32) -> f32 {
    canonical(f64::from(x).tanh() as f32)
}

/// `rsqrt.approx.f32`: one over the square root.
pub fn rsqrt(x: f32) -> f32 {
    // 1/sqrt in f64 is off by an ulp of f64, far below f32's.
    canonical((1.0 / f64::from(x).sqrt()) as f32)
}
