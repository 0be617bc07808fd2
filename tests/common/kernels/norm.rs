//! Layer normalisation, forward and backward.

use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::Scalar;

use super::Config;
use super::kit::{Kit, kernel};

/// Parameters of the forward kernels.
struct Forward {
    x: Value,
    out: Value,
    weight: Value,
    bias: Value,
    mean: Value,
    rstd: Value,
    n: Value,
    eps: Value,
    row: Value,
}

/// Declares x, out, weight, bias, mean, rstd, stride, n, eps; `x` and `out` are moved to the program's row.
fn forward_params(k: &mut Kit<'_>, config: Config) -> Forward {
    let [x, out, weight, bias] =
        ["x", "out", "weight", "bias"].map(|p| k.pointer(p, config.scalar));
    let [mean, rstd] = ["mean", "rstd"].map(|p| k.pointer(p, Scalar::F32));
    let stride = k.size_param("stride", config);
    let n = k.size_param("n", config);
    let eps = k.f32_param("eps");
    let row = k.b.program_id(0);
    Forward {
        x: k.row(x, row, stride),
        out: k.row(out, row, stride),
        weight,
        bias,
        mean,
        rstd,
        n,
        eps,
        row,
    }
}

/// Stores mean and 1/sqrt(variance + eps), and gives the latter.
fn store_statistics(k: &mut Kit<'_>, p: &Forward, mean: Value, variance: Value) -> Value {
    let shifted = k.b.fadd(variance, p.eps);
    let rstd = k.b.rsqrt(shifted);
    for (pointer, x) in [(p.mean, mean), (p.rstd, rstd)] {
        let place = k.b.addptr(pointer, p.row);
        k.b.store(place, x, None);
    }
    rstd
}

/// Stores `centred * rstd * weight + bias`.
fn store_normalised(
    k: &mut Kit<'_>,
    p: &Forward,
    cols: Value,
    mask: Value,
    centred: Value,
    rstd: Value,
) {
    let mut load = |pointer| {
        let pointers = k.at(pointer, cols);
        k.load_f32(pointers, mask)
    };
    let (weight, bias) = (load(p.weight), load(p.bias));
    let rstd = k.spread(rstd, centred);
    let normalised = k.b.fmul(centred, rstd);
    let scaled = k.b.fmul(normalised, weight);
    let y = k.b.fadd(scaled, bias);
    let pointers = k.at(p.out, cols);
    k.store_f32(pointers, y, mask);
}

/// Forward, one row per program, the block covering the row.
/// Parameters: x, out, weight, bias, mean, rstd, stride, n, eps.
pub(crate) fn layer_norm(config: Config) -> TileFunction {
    let name = format!("layer_norm_{}_{}", config.scalar, config.block);
    kernel(name, config.warps, |k| {
        let p = forward_params(k, config);
        let cols = k.range(config.block);
        let mask = k.below(cols, p.n);
        let pointers = k.at(p.x, cols);
        let x = k.load_f32(pointers, mask);
        let n = k.float(p.n);
        let mean = k.mean(x, n);
        let mean_block = k.spread(mean, x);
        let centred = k.b.fsub(x, mean_block);
        let centred = k.or_zero(mask, centred);
        let squares = k.b.fmul(centred, centred);
        let variance = k.mean(squares, n);
        let rstd = store_statistics(k, &p, mean, variance);
        store_normalised(k, &p, cols, mask, centred, rstd);
    })
}

/// Forward in three loops over the row, as in Triton's tutorial: mean, variance, result. Parameters as above.
pub(crate) fn layer_norm_looped(config: Config) -> TileFunction {
    let name = format!("layer_norm_looped_{}_{}", config.scalar, config.block);
    kernel(name, config.warps, |k| {
        let p = forward_params(k, config);
        let bounds = [k.int(0), p.n, k.int(config.block as i32)];
        let n = k.float(p.n);
        let part = |k: &mut Kit<'_>, start: Value| {
            let cols = k.range_from(start, config.block);
            let mask = k.below(cols, p.n);
            let pointers = k.at(p.x, cols);
            (cols, mask, k.load_f32(pointers, mask))
        };
        let centred = |k: &mut Kit<'_>, x: Value, mask: Value, mean: Value| {
            let mean = k.spread(mean, x);
            let centred = k.b.fsub(x, mean);
            k.or_zero(mask, centred)
        };
        let range = k.range(config.block);
        let zeros = k.constant(0.0, range);

        let sums = k.for_loop(bounds, &[zeros], |k, start, carried| {
            let (_, _, x) = part(k, start);
            vec![k.b.fadd(carried[0], x)]
        });
        let mean = k.mean(sums[0], n);
        let sums = k.for_loop(bounds, &[zeros], |k, start, carried| {
            let (_, mask, x) = part(k, start);
            let x = centred(k, x, mask, mean);
            let square = k.b.fmul(x, x);
            vec![k.b.fadd(carried[0], square)]
        });
        let variance = k.mean(sums[0], n);
        let rstd = store_statistics(k, &p, mean, variance);
        k.for_loop(bounds, &[], |k, start, _| {
            let (cols, mask, x) = part(k, start);
            let x = centred(k, x, mask, mean);
            store_normalised(k, &p, cols, mask, x, rstd);
            vec![]
        });
    })
}

/// Backward: the gradient of x, and this program's share of those of weight and bias, as row `program_id` of
/// two f32 matrices. Each program takes every `num_programs`-th row; the block covers a row.
/// Parameters: dx, dy, x, weight, mean, rstd, dw, db, stride, rows, n.
pub(crate) fn layer_norm_backward(config: Config) -> TileFunction {
    let name = format!("layer_norm_backward_{}_{}", config.scalar, config.block);
    kernel(name, config.warps, |k| {
        let [dx, dy, x, weight] = ["dx", "dy", "x", "weight"].map(|p| k.pointer(p, config.scalar));
        let [mean, rstd, dw, db] = ["mean", "rstd", "dw", "db"].map(|p| k.pointer(p, Scalar::F32));
        let stride = k.size_param("stride", config);
        let rows = k.i32_param("rows");
        let n = k.size_param("n", config);
        let pid = k.b.program_id(0);
        let programs = k.b.num_programs(0);
        let cols = k.range(config.block);
        let mask = k.below(cols, n);
        let n_float = k.float(n);
        let pointers = k.at(weight, cols);
        let weight = k.load_f32(pointers, mask);
        let zeros = k.constant(0.0, cols);
        let shares = k.for_loop([pid, rows, programs], &[zeros, zeros], |k, row, carried| {
            let mut load_row = |pointer| {
                let pointer = k.row(pointer, row, stride);
                let pointers = k.at(pointer, cols);
                k.load_f32(pointers, mask)
            };
            let (x, dy) = (load_row(x), load_row(dy));
            let mut statistic = |pointer| {
                let place = k.b.addptr(pointer, row);
                let number = k.b.load(place, None, None);
                k.spread(number, cols)
            };
            let (mean, rstd) = (statistic(mean), statistic(rstd));
            let centred = k.b.fsub(x, mean);
            let normalised = k.b.fmul(centred, rstd);
            let normalised = k.or_zero(mask, normalised);
            let weighted = k.b.fmul(weight, dy);
            let product = k.b.fmul(normalised, weighted);
            let c1 = k.mean(product, n_float);
            let c1 = k.spread(c1, cols);
            let c2 = k.mean(weighted, n_float);
            let c2 = k.spread(c2, cols);
            let projected = k.b.fmul(normalised, c1);
            let projected = k.b.fadd(projected, c2);
            let gradient = k.b.fsub(weighted, projected);
            let gradient = k.b.fmul(gradient, rstd);
            let dx = k.row(dx, row, stride);
            let pointers = k.at(dx, cols);
            k.store_f32(pointers, gradient, mask);
            let share = k.b.fmul(dy, normalised);
            vec![k.b.fadd(carried[0], share), k.b.fadd(carried[1], dy)]
        });
        for (pointer, share) in [dw, db].into_iter().zip(shares) {
            let pointer = k.row(pointer, pid, n);
            let pointers = k.at(pointer, cols);
            k.b.store(pointers, share, Some(mask));
        }
    })
}
