//! Softmax of the rows of a matrix: a reduction over a block, one row per program.
//!
//! ```text
//! cargo run --release --example softmax                   # on the CPU
//! cargo run --release --example softmax --features cuda   # on the GPU, if there is one
//! ```

use std::error::Error;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::ir::attrs::{IntPred, NanRule};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear::shape::Shape;
use tilelift::settings::{Options, Target};

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

/// Launches on the PTX emulator, which stands for the GPU where there is none.
fn run_on_cpu(
    kernel: &CompiledKernel,
    programs: u32,
    inputs: &[&[f32]],
    out_len: usize,
    n: i32,
) -> Result<Vec<f32>, Box<dyn Error>> {
    use tilelift::emu::{Arg, Launch, Memory, Module, Options, run};
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for input in inputs {
        let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
        args.push(Arg::pointer(memory.alloc_bytes(&bytes)));
    }
    let out = memory.alloc(4 * out_len);
    args.extend([Arg::pointer(out), Arg::from(n)]);
    let launch = Launch {
        grid: [programs, 1, 1],
        block: [32 * kernel.meta.num_warps, 1, 1],
        shared_bytes: kernel.meta.shared,
        args: &args,
        options: Options::default(),
    };
    let module = Module::parse(&kernel.ptx)?;
    let stats = run(&module, &kernel.meta.name, &launch, &mut memory)?;
    println!("// emulator: {} instructions", stats.lane_instructions);
    let bytes = memory.read(out, 4 * out_len)?;
    let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    Ok(bytes.chunks_exact(4).map(number).collect())
}

/// The same through the driver.
#[cfg(feature = "cuda")]
fn run_on_gpu(
    kernel: &CompiledKernel,
    programs: u32,
    inputs: &[&[f32]],
    out_len: usize,
    n: i32,
) -> Result<Vec<f32>, Box<dyn Error>> {
    use tilelift::compile::ParamKind;
    use tilelift::driver::{
        Arg, Buffer, Context, Device, LaunchSpec, Module, ParamSize, Stream, launch,
    };
    let context = Context::new(&Device::get(0)?)?;
    let stream = Stream::new(&context)?;
    let mut buffers = Vec::new();
    for input in inputs {
        buffers.push(Buffer::from_slice(&stream, input)?);
    }
    let out = Buffer::new(&context, 4 * out_len)?;
    let mut args: Vec<Arg<'_>> = buffers.iter().map(|b| Arg::Pointer(b.ptr())).collect();
    args.extend([Arg::Pointer(out.ptr()), Arg::I32(n)]);
    let params = kernel.meta.params.iter().map(|p| match p.kind {
        ParamKind::Pointer => ParamSize::Pointer,
        ParamKind::Scalar => ParamSize::Bytes(p.bytes),
    });
    let spec = LaunchSpec {
        name: &kernel.meta.name,
        block: [32 * kernel.meta.num_warps, 1, 1],
        cluster: [1, 1, 1],
        shared: kernel.meta.shared,
        params: &params.collect::<Vec<_>>(),
    };
    let function = Module::load(&context, &kernel.ptx)?.function(&kernel.meta.name)?;
    launch(&function, &spec, [programs, 1, 1], &stream, &args)?;
    println!("// GPU: {}", context.device().name);
    Ok(out.to_vec(&stream)?)
}

/// The GPU's target if there is one, else none.
#[cfg(feature = "cuda")]
fn gpu_target() -> Option<Target> {
    let device = tilelift::driver::Device::get(0).ok()?;
    Target::for_device(device.capability.major, device.capability.minor)
}

/// Compiles for the GPU and runs there if there is one, else on the emulator.
fn compile_and_run(
    func: &TileFunction,
    programs: u32,
    inputs: &[&[f32]],
    out_len: usize,
    n: i32,
) -> Result<Vec<f32>, Box<dyn Error>> {
    #[cfg(feature = "cuda")]
    if let Some(target) = gpu_target() {
        let kernel = compile(func, target, &Options::DEFAULT)?;
        println!("{}", kernel.ptx);
        return run_on_gpu(&kernel, programs, inputs, out_len, n);
    }
    let kernel = compile(func, Target::SM_80, &Options::DEFAULT)?;
    println!("{}", kernel.ptx);
    run_on_cpu(&kernel, programs, inputs, out_len, n)
}
