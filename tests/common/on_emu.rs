//! Runs a compiled kernel on the PTX emulator, with every check on.

use tilelift::compile::CompiledKernel;
use tilelift::emu::{self, Arg, Launch, Memory, Module};
use tilelift::runtime::emulated;

use crate::common::executor::HostArg;

/// Launches and gives the arguments as they are afterwards.
pub(crate) fn run(
    kernel: &CompiledKernel,
    grid: [u32; 3],
    args: &[HostArg],
) -> Result<Vec<HostArg>, String> {
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
    let beside = emulated(&kernel.meta, &device, grid);
    let beside = beside.ok_or("the arguments allow no tensor maps")?;
    device.extend(beside.args);
    let launch = Launch {
        grid: beside.ctas,
        block: kernel.meta.block(),
        shared_bytes: kernel.meta.shared,
        args: &device,
        options: emu::Options::default(),
    };
    emu::run(&module, &kernel.meta.name, &launch, &mut memory).map_err(|e| e.to_string())?;
    let results = args.iter().zip(buffers).map(|(arg, buffer)| match buffer {
        None => Ok(arg.clone()),
        Some((address, bytes)) => memory
            .read(address, bytes)
            .map(HostArg::Buffer)
            .map_err(|e| e.to_string()),
    });
    results.collect()
}
