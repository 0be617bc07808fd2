//! The kernels of `common` on the PTX emulator, compiled for every target.

mod common;

use common::executor::{Executor, HostArg};
use tilelift::compile::compile;
use tilelift::emu::{self, Arg, Launch, Memory, Module};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

struct Emulator;

impl Executor for Emulator {
    fn name(&self) -> &str {
        "emulator"
    }

    fn run(
        &mut self,
        func: &TileFunction,
        grid: [u32; 3],
        args: &mut [HostArg],
    ) -> Result<(), String> {
        let before = args.to_vec();
        for target in Target::ALL {
            args.clone_from_slice(&before);
            run_for(target, func, grid, args).map_err(|e| format!("{target}: {e}"))?;
        }
        Ok(())
    }
}

/// Compiles for a target, runs, and copies buffers back.
fn run_for(
    target: Target,
    func: &TileFunction,
    grid: [u32; 3],
    args: &mut [HostArg],
) -> Result<(), String> {
    let kernel = compile(func, target, &Options::DEFAULT).map_err(|e| e.to_string())?;
    let with_text = |e: String| format!("{e}\n{}", kernel.ptx);
    let module = Module::parse(&kernel.ptx).map_err(|e| with_text(e.to_string()))?;
    let mut memory = Memory::new();
    let mut places = Vec::new();
    let device: Vec<Arg> = args
        .iter()
        .enumerate()
        .map(|(i, arg)| {
            let (address, bytes) = match arg {
                HostArg::Buffer(bytes) => (memory.alloc_bytes(bytes), bytes.len()),
                HostArg::Output(bytes) => (memory.alloc(*bytes), *bytes),
                HostArg::I32(number) => return Arg::from(*number),
                HostArg::F32(number) => return Arg::from(*number),
            };
            places.push((i, address, bytes));
            Arg::pointer(address)
        })
        .collect();
    let launch = Launch {
        grid,
        block: [32 * kernel.meta.num_warps, 1, 1],
        shared_bytes: kernel.meta.shared,
        args: &device,
        options: emu::Options {
            step_limit: 1 << 40,
            ..emu::Options::default()
        },
    };
    emu::run(&module, &kernel.meta.name, &launch, &mut memory)
        .map_err(|e| with_text(e.to_string()))?;
    for (i, address, bytes) in places {
        let bytes = memory.read(address, bytes).map_err(|e| e.to_string())?;
        args[i] = HostArg::Buffer(bytes);
    }
    Ok(())
}

common::kernel_suite!(Emulator);
