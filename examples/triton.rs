//! A kernel in the Triton language, from its source text to its result: no Python, no CUDA toolkit.
//!
//! ```text
//! cargo run --release --example triton                   # on the CPU
//! cargo run --release --example triton --features cuda   # on the GPU, if there is one
//! ```

mod common;

use std::error::Error;

use tilelift::front::{Arg, Constant, Module, Specialization, parse_signature};
use tilelift::ir::function::TileFunction;
use tilelift::settings::Target;

use common::compile_and_run;

/// What a kernel author writes; Triton compiles the same text.
const SOURCE: &str = r#"
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
    powers = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=mask)
"#;

/// The kernel for rows of a length: two pointers to f32 that are aligned to 16 bytes, an i32, and a constant.
fn softmax(columns: usize, target: Target) -> Result<TileFunction, Box<dyn Error>> {
    let module = Module::parse("softmax.py", SOURCE)?;
    let mut args = parse_signature("*fp32:16, *fp32:16, i32")?;
    let block = columns.next_power_of_two();
    args.push(Arg::Constant(Constant::Int(i128::try_from(block)?)));
    let lowered = module.lower(Some("softmax"), &Specialization::new(args, target))?;
    for note in &lowered.notes.list {
        eprintln!("{}", lowered.notes.render(note));
    }
    Ok(lowered.func)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rows, columns) = (583, 931);
    let number = |i: usize| (i * 7919 % 1000) as f32 / 100.0 - 5.0;
    let x: Vec<f32> = (0..rows * columns).map(number).collect();
    let func = softmax(columns, common::target())?;
    // The PTX is shown on the way.
    let out = compile_and_run(&func, rows as u32, &[&x], x.len(), columns as i32)?;
    let mut largest_error = 0.0f64;
    for (x, out) in x.chunks(columns).zip(out.chunks(columns)) {
        let sum: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
        for (&x, &y) in x.iter().zip(out) {
            let expected = f64::from(x).exp() / sum;
            largest_error = largest_error.max((f64::from(y) - expected).abs() / expected);
        }
    }
    println!("// {rows} x {columns}: largest relative error {largest_error:.1e}");
    // A few roundings of f32, of which those of the exponent count up to ten times.
    if largest_error < 1e-5 {
        Ok(())
    } else {
        Err("wrong result".into())
    }
}
