//! Kernels on blocks of two dimensions.

use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};

use super::Config2;
use super::kit::{kernel, shape};

/// Copies a matrix transposed, both with a row stride. Parameters: x, out, rows, cols, x_stride, out_stride.
/// The grid has one program per block of rows and block of columns.
pub(crate) fn transpose(config: Config2) -> TileFunction {
    let name = format!("transpose_{}", config.scalar);
    kernel(name, config.warps, |k| {
        let x = k.pointer("x", config.scalar);
        let out = k.pointer("out", config.scalar);
        let [m, n] = ["rows", "cols"].map(|p| k.i32_param(p));
        let [x_stride, out_stride] = ["x_stride", "out_stride"].map(|p| k.i32_param(p));
        let rows = k.own_range(0, config.block[0]);
        let cols = k.own_range(1, config.block[1]);
        let (row_mask, col_mask) = (k.below(rows, m), k.below(cols, n));
        let mask = k.matrix_mask(row_mask, col_mask);
        let one = k.int(1);
        let offsets = k.matrix((rows, x_stride), (cols, one));
        let pointers = k.at(x, offsets);
        let block = k.b.load(pointers, Some(mask), None);
        let offsets = k.matrix((rows, one), (cols, out_stride));
        let pointers = k.at(out, offsets);
        k.b.store(pointers, block, Some(mask));
    })
}

/// Sums a matrix with a row stride along `axis`: floats in f32, integers wrapping. Each program takes the block of
/// results that its index along axis 0 of the grid names, and loops over the axis.
/// Parameters: x, out, rows, cols, stride.
pub(crate) fn sum(config: Config2, axis: u8) -> TileFunction {
    let name = format!("sum_{axis}_{}", config.scalar);
    kernel(name, config.warps, |k| {
        let x = k.pointer("x", config.scalar);
        let out = k.pointer("out", config.scalar);
        let [m, n, stride] = ["rows", "cols", "stride"].map(|p| k.i32_param(p));
        let along = usize::from(axis);
        let kept = k.own_range(0, config.block[1 - along]);
        let bounds = [m, n];
        let kept_mask = k.below(kept, bounds[1 - along]);
        let sum_type = if config.scalar == Scalar::I32 {
            Elem::I32
        } else {
            Elem::F32
        };
        let zeros =
            k.b.const_bits(0, TileType::block(sum_type, shape(&config.block)));
        let range = [k.int(0), bounds[along], k.int(config.block[along] as i32)];
        let one = k.int(1);
        let sums = k.for_loop(range, &[zeros], |k, start, carried| {
            let moving = k.range_from(start, config.block[along]);
            let moving_mask = k.below(moving, bounds[along]);
            let (rows, cols, row_mask, col_mask) = if axis == 0 {
                (moving, kept, moving_mask, kept_mask)
            } else {
                (kept, moving, kept_mask, moving_mask)
            };
            let offsets = k.matrix((rows, stride), (cols, one));
            let mask = k.matrix_mask(row_mask, col_mask);
            let pointers = k.at(x, offsets);
            if config.scalar == Scalar::I32 {
                let block = k.b.load(pointers, Some(mask), None);
                vec![k.b.iadd(carried[0], block)]
            } else {
                let block = k.load_f32(pointers, mask);
                vec![k.b.fadd(carried[0], block)]
            }
        });
        let total = k.sum(sums[0], axis);
        let pointers = k.at(out, kept);
        if config.scalar == Scalar::I32 {
            k.b.store(pointers, total, Some(kept_mask));
        } else {
            k.store_f32(pointers, total, kept_mask);
        }
    })
}
