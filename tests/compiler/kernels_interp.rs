//! The kernels of `common` on the reference interpreter.

use crate::common::executor::{Executor, HostArg};
use crate::common::on_interp;
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
        let after = on_interp::run(func, grid, args)?;
        args.clone_from_slice(&after);
        Ok(())
    }
}

crate::common::kernel_suite!(Interpreter);
