//! The kernels of `common` on the reference interpreter.

mod common;

use common::executor::{Executor, HostArg};
use tilelift::interp::{self, Arg, Launch, Memory, Options};
use tilelift::ir::function::TileFunction;

struct Interpreter;

impl Executor for Interpreter {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn run(
        &mut self,
        func: &TileFunction,
        grid: [u32; 3],
        args: &mut [HostArg],
    ) -> Result<(), String> {
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
        for (arg, &place) in args.iter_mut().zip(&device) {
            let bytes = match arg {
                HostArg::Buffer(bytes) => bytes.len(),
                HostArg::Output(bytes) => *bytes,
                HostArg::I32(_) | HostArg::F32(_) => continue,
            };
            let Arg::Ptr(address) = place else { continue };
            let bytes = memory.read(address, bytes).map_err(|e| e.to_string())?;
            *arg = HostArg::Buffer(bytes.to_vec());
        }
        Ok(())
    }
}

common::kernel_suite!(Interpreter);
