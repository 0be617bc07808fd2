//! Elementwise kernels and softmax.

use tilelift::ir::attrs::NanRule;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;

use super::Config;
use super::kit::{Kit, kernel};

/// `out[i] = a[i] + b[i]` in the type of the data, integers wrapping. Parameters: a, b, out, n.
pub(crate) fn vector_add(config: Config) -> TileFunction {
    let name = format!("vector_add_{}_{}", config.scalar, config.block);
    kernel(name, config.warps, |k| {
        let [a, b, out] = ["a", "b", "out"].map(|name| k.pointer(name, config.scalar));
        let n = k.size_param("n", config);
        let offsets = k.own_range(0, config.block);
        let mask = k.below(offsets, n);
        let mut load = |pointer| {
            let pointers = k.at(pointer, offsets);
            k.b.load(pointers, Some(mask), None)
        };
        let (x, y) = (load(a), load(b));
        let sum = if config.scalar.is_float() {
            k.b.fadd(x, y)
        } else {
            k.b.iadd(x, y)
        };
        let pointers = k.at(out, offsets);
        k.b.store(pointers, sum, Some(mask));
    })
}

/// Softmax of one row per program; the block covers the row. Parameters: out, out_stride, x, x_stride, n_cols.
pub(crate) fn softmax(config: Config) -> TileFunction {
    let name = format!("softmax_{}_{}", config.scalar, config.block);
    kernel(name, config.warps, |k| {
        let out = k.pointer("out", config.scalar);
        let out_stride = k.size_param("out_stride", config);
        let x = k.pointer("x", config.scalar);
        let x_stride = k.size_param("x_stride", config);
        let n_cols = k.size_param("n_cols", config);
        let row = k.b.program_id(0);
        let cols = k.range(config.block);
        let mask = k.below(cols, n_cols);
        let x = k.row(x, row, x_stride);
        let pointers = k.at(x, cols);
        let x = k.load_f32_or_minus_infinity(pointers, mask);
        let largest =
            k.b.reduce_one(x, 0, |b, l, r| b.fmax(l, r, NanRule::Ignore));
        let largest = k.spread(largest, x);
        let x = k.b.fsub(x, largest);
        let e = k.b.exp(x);
        let sum = k.sum(e, 0);
        let sum = k.spread(sum, e);
        let y = k.b.fdiv(e, sum);
        let out = k.row(out, row, out_stride);
        let pointers = k.at(out, cols);
        k.store_f32(pointers, y, mask);
    })
}

/// Which formula of GELU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gelu {
    /// `x/2 * (1 + erf(x / sqrt 2))`.
    Erf,
    /// `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))`.
    Tanh,
}

/// GELU of each element. Parameters: x, out, n.
pub(crate) fn gelu(config: Config, formula: Gelu) -> TileFunction {
    let name = format!("gelu_{formula:?}_{}", config.scalar).to_lowercase();
    kernel(name, config.warps, |k| {
        let x = k.pointer("x", config.scalar);
        let out = k.pointer("out", config.scalar);
        let n = k.size_param("n", config);
        let offsets = k.own_range(0, config.block);
        let mask = k.below(offsets, n);
        let pointers = k.at(x, offsets);
        let x = k.load_f32(pointers, mask);
        let inner = match formula {
            Gelu::Erf => {
                let z = scaled(k, x, std::f32::consts::FRAC_1_SQRT_2);
                k.b.erf(z)
            }
            Gelu::Tanh => {
                let square = k.b.fmul(x, x);
                let cube = k.b.fmul(square, x);
                let cube = scaled(k, cube, 0.044715);
                let z = k.b.fadd(x, cube);
                let z = scaled(k, z, (2.0 / std::f32::consts::PI).sqrt());
                k.b.tanh(z)
            }
        };
        let one = k.constant(1.0, x);
        let inner = k.b.fadd(one, inner);
        let half = scaled(k, x, 0.5);
        let y = k.b.fmul(half, inner);
        let pointers = k.at(out, offsets);
        k.store_f32(pointers, y, mask);
    })
}

fn scaled(k: &mut Kit<'_>, x: Value, factor: f32) -> Value {
    let factor = k.constant(factor, x);
    k.b.fmul(x, factor)
}
