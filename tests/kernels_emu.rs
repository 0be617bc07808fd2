//! The kernels of `common`, compiled for every target, on the PTX emulator, with every check of the emulator on.

mod common;

use common::executor::{Executor, HostArg};
use tilelift::compile::{CompiledKernel, compile};
use tilelift::emu::{self, Arg, Launch, Memory, Module};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

struct Emulator;

fn run_one(kernel: &CompiledKernel, grid: [u32; 3], args: &[HostArg]) -> Result<Vec<HostArg>, String> {
    let module = Module::parse(&kernel.ptx).map_err(|e| e.to_string())?;
    let mut memory = Memory::new();
    let mut buffers = Vec::new();
    let mut device = Vec::new();
    for arg in args {
        let (value, buffer) = match arg {
            HostArg::Buffer(bytes) => {
                let address = memory.alloc_bytes(bytes);
                (Arg::pointer(address), Some((address, bytes.len())))
            }
            HostArg::Output(bytes) => {
                let address = memory.alloc(*bytes);
                (Arg::pointer(address), Some((address, *bytes)))
            }
            HostArg::I32(number) => (Arg::from(*number), None),
            HostArg::F32(number) => (Arg::from(*number), None),
        };
        device.push(value);
        buffers.push(buffer);
    }
    let launch = Launch {
        grid,
        block: [32 * kernel.meta.num_warps, 1, 1],
        shared_bytes: kernel.meta.shared,
        args: &device,
        options: emu::Options::default(),
    };
    emu::run(&module, &kernel.meta.name, &launch, &mut memory).map_err(|e| e.to_string())?;
    let results = args.iter().zip(buffers).map(|(arg, buffer)| match buffer {
        None => Ok(arg.clone()),
        Some((address, bytes)) => {
            memory.read(address, bytes).map(HostArg::Buffer).map_err(|e| e.to_string())
        }
    });
    results.collect()
}

impl Executor for Emulator {
    fn name(&self) -> &str {
        "emulator"
    }

    fn run(&mut self, func: &TileFunction, grid: [u32; 3], args: &mut [HostArg]) -> Result<(), String> {
        let before = args.to_vec();
        for target in Target::ALL {
            let kernel = compile(func, target, &Options::DEFAULT).map_err(|e| format!("{target}: {e}"))?;
            let after =
                run_one(&kernel, grid, &before).map_err(|e| format!("{target}: {e}\n{}", kernel.ptx))?;
            args.clone_from_slice(&after);
        }
        Ok(())
    }
}

common::kernel_suite!(Emulator);
