//! What the passes on tiles leave of each kernel of `common`, on the interpreter, against the emulator: bit for bit.
//!
//! After layout assignment each reduction says in which order it folds, nothing is left to contract, and approximate
//! functions are made of operations that interpreter and emulator model alike. So any difference is an error of
//! expansion, selection, allocation or emission, or of one of the two.

use crate::common::executor::{Executor, HostArg};
use crate::common::on_emu;
use crate::common::on_interp;
use tilelift::compile::compile_with;
use tilelift::ir::function::TileFunction;
use tilelift::pipeline::Snapshot;
use tilelift::settings::{Options, Target};

struct Both;

impl Executor for Both {
    fn name(&self) -> &str {
        "interpreter after the passes"
    }

    fn run(
        &mut self,
        func: &TileFunction,
        grid: [u32; 3],
        args: &mut [HostArg],
    ) -> Result<(), String> {
        let mut last = None;
        let kernel = compile_with(
            func,
            Target::SM_80,
            &Options::DEFAULT,
            &mut |_, snapshot| {
                if let Snapshot::Tile(tile) = snapshot {
                    last = Some(tile.clone());
                }
            },
        )
        .map_err(|e| e.to_string())?;
        let tile = last.ok_or("the pipeline shows no tile IR")?;
        let expected = on_interp::run(&tile, grid, args)?;
        let found = on_emu::run(&kernel, grid, args).map_err(|e| format!("{e}\n{}", kernel.ptx))?;
        for (i, pair) in found.iter().zip(&expected).enumerate() {
            if let (HostArg::Buffer(found), HostArg::Buffer(expected)) = pair
                && let Some(byte) = found.iter().zip(expected).position(|(a, b)| a != b)
            {
                return Err(format!(
                    "argument {i} differs from the emulator's at byte {byte}"
                ));
            }
        }
        args.clone_from_slice(&expected);
        Ok(())
    }
}

crate::common::kernel_suite!(Both);
