//! What the examples share: a kernel of f32 inputs, one f32 output and an i32 is compiled and launched once, on the GPU
//! if the feature `cuda` is on and there is one, else on the PTX emulator.

use std::error::Error;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

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
        block: kernel.meta.block(),
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
    let params = kernel.meta.params.iter().map(ParamSize::from);
    let spec = LaunchSpec {
        name: &kernel.meta.name,
        block: kernel.meta.block(),
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

/// What is compiled for: the GPU if there is one, else sm_80.
pub(crate) fn target() -> Target {
    #[cfg(feature = "cuda")]
    if let Some(target) = gpu_target() {
        return target;
    }
    Target::SM_80
}

/// Compiles for the GPU and runs there if there is one, else on the emulator.
pub(crate) fn compile_and_run(
    func: &TileFunction,
    programs: u32,
    inputs: &[&[f32]],
    out_len: usize,
    n: i32,
) -> Result<Vec<f32>, Box<dyn Error>> {
    let kernel = compile(func, target(), &Options::DEFAULT)?;
    println!("{}", kernel.ptx);
    #[cfg(feature = "cuda")]
    if gpu_target().is_some() {
        return run_on_gpu(&kernel, programs, inputs, out_len, n);
    }
    run_on_cpu(&kernel, programs, inputs, out_len, n)
}
