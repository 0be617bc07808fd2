//! Softmax of the rows of a matrix: a reduction over a block, one row per program.
//!
//! ```text
//! cargo run --release --example softmax                   # on the CPU
//! cargo run --release --example softmax --features cuda   # on the GPU, if there is one
//! ```

mod common;

use std::error::Error;

use tilelift::ir::attrs::{IntPred, NanRule};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;

use common::compile_and_run;

/// Softmax of one row; the block is a power of two that covers it.
fn softmax(n_cols: usize) -> Result<TileFunction, Box<dyn Error>> {
    let block = Shape::new(&[n_cols.next_power_of_two() as u64])?;
    let pointer = TileType::scalar(Elem::global(Scalar::F32));
    let mut b = TileBuilder::new("softmax", 4);
    let [x, out] = ["x", "out"].map(|name| b.param_divisible(name, pointer, 16));
    let n_cols = b.param("n_cols", TileType::scalar(Elem::I32));

    let row = b.program_id(0);
    let start = b.imul(row, n_cols);
    let cols = b.arange(0, TileType::block(Elem::I32, block));
    let end = b.to_shape(n_cols, block);
    let mask = b.icmp(cols, end, IntPred::Slt);
    let [x, out] = [x, out].map(|base| {
        let base = b.addptr(base, start);
        let base = b.to_shape(base, block);
        b.addptr(base, cols)
    });

    let other = b.f32(f32::NEG_INFINITY, block);
    let x = b.load(x, Some(mask), Some(other));
    let largest = b.reduce_one(x, 0, |b, l, r| b.fmax(l, r, NanRule::Ignore));
    let largest = b.to_shape(largest, block);
    let x = b.fsub(x, largest);
    let e = b.exp(x);
    let sum = b.reduce_one(e, 0, |b, l, r| b.fadd(l, r));
    let sum = b.to_shape(sum, block);
    let y = b.fdiv(e, sum);
    b.store(out, y, Some(mask));
    b.ret();
    Ok(b.finish().map_err(|errors| format!("{errors:#?}"))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rows, cols) = (583, 931);
    let number = |i: usize| (i * 7919 % 1000) as f32 / 100.0 - 5.0;
    let x: Vec<f32> = (0..rows * cols).map(number).collect();
    let out = compile_and_run(&softmax(cols)?, rows as u32, &[&x], x.len(), cols as i32)?;
    let mut largest_error = 0.0f64;
    for (x, out) in x.chunks(cols).zip(out.chunks(cols)) {
        let sum: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
        for (&x, &y) in x.iter().zip(out) {
            let expected = f64::from(x).exp() / sum;
            largest_error = largest_error.max((f64::from(y) - expected).abs() / expected);
        }
    }
    println!("// {rows} x {cols}: largest relative error {largest_error:.1e}");
    // A few roundings of f32, of which those of the exponent count up to ten times.
    if largest_error < 1e-5 {
        Ok(())
    } else {
        Err("wrong result".into())
    }
}
