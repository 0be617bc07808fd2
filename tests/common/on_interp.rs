//! Runs a kernel on the reference interpreter, with every check on.

use tilelift::interp::{self, Arg, Launch, Memory, Options};
use tilelift::ir::function::TileFunction;

use crate::common::executor::HostArg;

/// Launches and gives the arguments as they are afterwards.
pub(crate) fn run(
    func: &TileFunction,
    grid: [u32; 3],
    args: &[HostArg],
) -> Result<Vec<HostArg>, String> {
    let mut memory = Memory::new();
    let device: Vec<Arg> = args
        .iter()
        .map(|arg| match arg {
            HostArg::Buffer(bytes) => Arg::Ptr(memory.alloc_bytes(bytes)),
            HostArg::Output(bytes) => Arg::Ptr(memory.alloc(*bytes)),
            HostArg::I32(number) => Arg::Int(i64::from(*number)),
            HostArg::F32(number) => Arg::F32(*number),
        })
        .collect();
    let launch = Launch {
        grid,
        args: &device,
    };
    interp::run(func, &launch, &mut memory, &Options::default()).map_err(|e| e.to_string())?;
    let after = args.iter().zip(&device).map(|(arg, place)| {
        let bytes = match arg {
            HostArg::Buffer(bytes) => bytes.len(),
            HostArg::Output(bytes) => *bytes,
            HostArg::I32(_) | HostArg::F32(_) => return Ok(arg.clone()),
        };
        let Arg::Ptr(address) = *place else {
            unreachable!("buffers became pointers above")
        };
        let bytes = memory.read(address, bytes).map_err(|e| e.to_string())?;
        Ok(HostArg::Buffer(bytes.to_vec()))
    });
    after.collect()
}
