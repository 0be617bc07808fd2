//! The text of a kernel at each stage of its way: what `--emit` prints and file tests compare.

use crate::compile::{CompileError, compile};
use crate::ir::function::TileFunction;
use crate::settings::{Options, Target};

/// A stage of compilation that has a text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Block programs as they were read.
    Tile,
    /// Block programs after simplification.
    Opt,
    /// Block programs with layouts.
    Layout,
    /// Live ranges of shared memory against offsets.
    Shared,
    /// What one thread does.
    Thread,
    /// PTX.
    Ptx,
    /// Conversions and their bytes.
    Stats,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 7] = [
        Stage::Tile,
        Stage::Opt,
        Stage::Layout,
        Stage::Shared,
        Stage::Thread,
        Stage::Ptx,
        Stage::Stats,
    ];

    /// Its name on the command line and in file tests.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Tile => "tile",
            Stage::Opt => "opt",
            Stage::Layout => "layout",
            Stage::Shared => "shared",
            Stage::Thread => "thread",
            Stage::Ptx => "ptx",
            Stage::Stats => "stats",
        }
    }

    /// The stage with this name.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// The text of a kernel after a stage.
pub fn emit(
    func: &TileFunction,
    target: Target,
    options: &Options,
    stage: Stage,
) -> Result<String, CompileError> {
    match stage {
        Stage::Tile => Ok(func.to_string()),
        Stage::Ptx => compile(func, target, options).map(|kernel| kernel.ptx),
        Stage::Opt | Stage::Layout | Stage::Shared | Stage::Thread | Stage::Stats => {
            Err(CompileError::Internal {
                pass: stage.name(),
                message: "the stage is not connected yet".to_owned(),
            })
        }
    }
}
