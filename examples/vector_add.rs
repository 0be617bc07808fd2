//! Adds two vectors: from a kernel made in Rust to a checked result.
//!
//! ```text
//! cargo run --release --example vector_add                   # on the CPU
//! cargo run --release --example vector_add --features cuda   # on the GPU, if there is one
//! ```

use std::error::Error;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::ir::attrs::IntPred;
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear::shape::Shape;
use tilelift::settings::{Options, Target};

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
