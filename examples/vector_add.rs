//! Adds two vectors: from a kernel made in Rust to a checked result.
//!
//! ```text
//! cargo run --release --example vector_add                   # on the CPU
//! cargo run --release --example vector_add --features cuda   # on the GPU, if there is one
//! ```

mod common;

use std::error::Error;

use tilelift::ir::attrs::IntPred;
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;

use common::compile_and_run;

/// Elements that one program adds.
const BLOCK: u64 = 1024;

/// What one program does: load two blocks, add them, store the sum.
fn vector_add() -> Result<TileFunction, Box<dyn Error>> {
    let block = Shape::new(&[BLOCK])?;
    let pointer = TileType::scalar(Elem::global(Scalar::F32));
    let mut b = TileBuilder::new("vector_add", 4);
    let [x, y, out] = ["x", "y", "out"].map(|name| b.param_divisible(name, pointer, 16));
    // The promise that n is a multiple of 16 makes the accesses under the mask wide.
    let n = b.param_divisible("n", TileType::scalar(Elem::I32), 16);

    let program = b.program_id(0);
    let size = b.i32(BLOCK as i32, Shape::SCALAR);
    let start = b.imul(program, size);
    let start = b.to_shape(start, block);
    let range = b.arange(0, TileType::block(Elem::I32, block));
    let offsets = b.iadd(start, range);
    let end = b.to_shape(n, block);
    let mask = b.icmp(offsets, end, IntPred::Slt);

    let [x, y, out] = [x, y, out].map(|base| {
        let base = b.to_shape(base, block);
        b.addptr(base, offsets)
    });
    let x = b.load(x, Some(mask), None);
    let y = b.load(y, Some(mask), None);
    let sum = b.fadd(x, y);
    b.store(out, sum, Some(mask));
    b.ret();
    Ok(b.finish().map_err(|errors| format!("{errors:#?}"))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let n = 98_432_usize;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| 0.5 / (i + 1) as f32).collect();
    let programs = n.div_ceil(BLOCK as usize) as u32;
    let out = compile_and_run(&vector_add()?, programs, &[&x, &y], n, n as i32)?;
    let right = (0..n).all(|i| out[i] == x[i] + y[i]);
    println!("// {n} sums: {}", if right { "right" } else { "WRONG" });
    if right {
        Ok(())
    } else {
        Err("wrong result".into())
    }
}
