//! A kernel in the Triton language, from its source text to its result: no Python, no CUDA toolkit.
//!
//! ```text
//! cargo run --release --example triton                   # on the CPU
//! cargo run --release --example triton --features cuda   # on the GPU, if there is one
//! ```

use std::error::Error;

use tilelift::compile::compile;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::runtime::{Buffer, Device, Program};
use tilelift::settings::{Options, Target};

/// What a kernel author writes; Triton compiles the same text.
const SOURCE: &str = include_str!("kernels/softmax.py");

/// The PTX of the kernel for a target, by way of the compiler alone.
fn ptx(block: i64, target: Target) -> Result<String, Box<dyn Error>> {
    let args = parse_signature(&format!("*fp32:16, *fp32:16, i32, i32, {block}"))?;
    let module = Module::parse("softmax.py", SOURCE)?;
    let lowered = module.lower(Some("softmax"), &Specialization::new(args, target))?;
    Ok(compile(&lowered.func, target, &Options::DEFAULT)?.ptx)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rows, columns) = (583, 931);
    let number = |i: usize| (i * 7919 % 1000) as f32 / 100.0 - 5.0;
    let data: Vec<f32> = (0..rows * columns).map(number).collect();

    // A GPU if there is one, else the emulator.
    let device = Device::best();
    let program = Program::python("softmax.py", SOURCE)?;
    let block = i64::try_from(columns.next_power_of_two())?;
    let softmax = device
        .kernel(&program, "softmax")?
        .constant("BLOCK", block)?;
    println!("{}", ptx(block, device.target())?);
    let stream = device.stream();
    let x = Buffer::from_slice(&device, &data)?;
    let out = Buffer::<f32>::new(&device, data.len())?;
    let (stride, size) = (i32::try_from(columns)?, i32::try_from(columns)?);
    let args = (&out, &x, stride, size);
    println!("{}", softmax.explain(args)?);
    softmax.launch(&stream, [u32::try_from(rows)?, 1, 1], args)?;

    let mut largest_error = 0.0f64;
    for (x, out) in data.chunks(columns).zip(out.read(&stream)?.chunks(columns)) {
        let sum: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
        for (&x, &y) in x.iter().zip(out) {
            let expected = f64::from(x).exp() / sum;
            largest_error = largest_error.max((f64::from(y) - expected).abs() / expected);
        }
    }
    println!(
        "// {}: {rows} x {columns}, largest relative error {largest_error:.1e}",
        device.name()
    );
    // A few roundings of f32, of which those of the exponent count up to ten times.
    if largest_error < 1e-5 {
        Ok(())
    } else {
        Err("wrong result".into())
    }
}
