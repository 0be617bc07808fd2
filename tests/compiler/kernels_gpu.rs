//! The kernels of `common` on the first GPU, compiled for every target that it runs. Without a driver the tests say so
//! and pass.

use crate::common::executor::{Executor, HostArg};
use tilelift::compile::{CompiledKernel, compile};
use tilelift::driver::{
    Arg, Buffer, Context, Device, Driver, LaunchSpec, Module, ParamSize, Stream, launch,
};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

/// Fills outputs before a kernel runs; as any float it is a large negative number.
const POISON: u8 = 0xcd;

/// Bytes behind each buffer that no kernel may touch.
const GUARD: usize = 4096;

struct Gpu {
    device: Option<(Context, Stream, Vec<Target>)>,
}

impl Gpu {
    fn new() -> Gpu {
        let open = || -> Result<_, tilelift::driver::DriverError> {
            Driver::load()?;
            let device = Device::get(0)?;
            let capability = device.capability;
            let context = Context::new(&device)?;
            let stream = Stream::new(&context)?;
            let all = Target::ALL.into_iter();
            let targets = all.filter(|t| t.runs_on(capability.major, capability.minor));
            Ok((context, stream, targets.collect()))
        };
        let device = open();
        if let Err(error) = &device {
            eprintln!("skipped: {error}");
        }
        Gpu {
            device: device.ok(),
        }
    }
}

/// Compiles, launches on copies of the buffers, and gives what they hold afterwards.
fn run_on(
    (context, stream): (&Context, &Stream),
    kernel: &CompiledKernel,
    grid: [u32; 3],
    args: &[HostArg],
) -> Result<Vec<HostArg>, Box<dyn std::error::Error>> {
    let module = Module::load(context, &kernel.ptx)?;
    let function = module.function(&kernel.meta.name)?;
    let mut buffers: Vec<Option<(Buffer, usize)>> = Vec::new();
    for arg in args {
        let contents = match arg {
            HostArg::Buffer(bytes) => bytes.clone(),
            HostArg::Output(bytes) => vec![POISON; *bytes],
            HostArg::I32(_) | HostArg::F32(_) => {
                buffers.push(None);
                continue;
            }
        };
        let size = contents.len();
        let guarded = [contents, vec![POISON; GUARD]].concat();
        buffers.push(Some((Buffer::from_slice(stream, &guarded)?, size)));
    }
    let params: Vec<ParamSize> = kernel.meta.params.iter().map(ParamSize::from).collect();
    let values: Vec<Arg<'_>> = args
        .iter()
        .zip(&buffers)
        .map(|(arg, buffer)| match (arg, buffer) {
            (_, Some((buffer, _))) => Arg::Pointer(buffer.ptr()),
            (HostArg::F32(number), None) => Arg::F32(*number),
            (HostArg::I32(number), None) => Arg::I32(*number),
            (HostArg::Buffer(_) | HostArg::Output(_), None) => {
                unreachable!("buffers were made above")
            }
        })
        .collect();
    let spec = LaunchSpec {
        name: &kernel.meta.name,
        block: kernel.meta.block(),
        cluster: [1, 1, 1],
        shared: kernel.meta.shared,
        params: &params,
    };
    launch(&function, &spec, grid, stream, &values)?;
    stream.synchronize()?;
    let mut results = Vec::new();
    for (arg, buffer) in args.iter().zip(&buffers) {
        results.push(match buffer {
            None => arg.clone(),
            Some((buffer, size)) => {
                let mut bytes = buffer.to_vec::<u8>(stream)?;
                if bytes[*size..].iter().any(|&b| b != POISON) {
                    return Err("the kernel wrote behind a buffer".into());
                }
                bytes.truncate(*size);
                HostArg::Buffer(bytes)
            }
        });
    }
    Ok(results)
}

impl Executor for Gpu {
    fn name(&self) -> &str {
        "GPU"
    }

    fn run(
        &mut self,
        func: &TileFunction,
        grid: [u32; 3],
        args: &mut [HostArg],
    ) -> Result<(), String> {
        let Some((context, stream, targets)) = &self.device else {
            return Err("no GPU".into());
        };
        let before = args.to_vec();
        for &target in targets {
            let kernel = compile(func, target, &Options::DEFAULT).map_err(|e| e.to_string())?;
            let after = run_on((context, stream), &kernel, grid, &before)
                .map_err(|e| format!("{target}: {e}"))?;
            args.clone_from_slice(&after);
        }
        Ok(())
    }

    fn is_present(&self) -> bool {
        self.device.is_some()
    }
}

crate::common::kernel_suite!(Gpu::new());
