//! The kernels of `common`, compiled for every target, on the PTX emulator, with every check of the emulator on.

use crate::common::on_emu;
use std::collections::BTreeSet;

use crate::common::executor::{Executor, HostArg};
use tilelift::compile::compile;
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
        // Many targets differ in the header alone.
        let mut seen = BTreeSet::new();
        for target in Target::ALL {
            let kernel =
                compile(func, target, &Options::DEFAULT).map_err(|e| format!("{target}: {e}"))?;
            let (_, body) = kernel
                .ptx
                .split_once(".address_size")
                .expect("every text has it");
            if !seen.insert(body.to_owned()) {
                continue;
            }
            let after = on_emu::run(&kernel, grid, &before)
                .map_err(|e| format!("{target}: {e}\n{}", kernel.ptx))?;
            args.clone_from_slice(&after);
        }
        Ok(())
    }
}

crate::common::kernel_suite!(Emulator);
