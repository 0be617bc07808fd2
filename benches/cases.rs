//! The kernels and shapes of the GPU comparison, with the configurations that each side chooses its best from.
//!
//! Included by the GPU bench and by the example that writes the kernels for `benches/gpu/compare.py`, both of which
//! have `kernels` at their root.

use tilelift::ir::function::TileFunction;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

use crate::kernels::{self, Config};

/// What users run: no verification between passes.
pub(crate) const OPTIONS: Options = Options {
    verify_passes: false,
    ..Options::DEFAULT
};

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Vector addition.
    Add,
    /// Softmax of rows.
    Softmax,
    /// Layer normalisation of rows, forward.
    LayerNorm,
}

impl Kind {
    /// Its name in the index and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Add => "add",
            Kind::Softmax => "softmax",
            Kind::LayerNorm => "layer_norm",
        }
    }
}

/// One row of the comparison.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The kernel.
    pub(crate) kind: Kind,
    /// Element type of the data.
    pub(crate) scalar: Scalar,
    /// Rows of the data; a vector has one.
    pub(crate) rows: u64,
    /// Elements of a row.
    pub(crate) cols: u64,
    /// Blocks and warps to choose from.
    pub(crate) configs: Vec<(u64, u32)>,
    /// The target of the PTX.
    pub(crate) target: Target,
}

impl Case {
    /// Its name in the index and in tables.
    pub(crate) fn name(&self) -> String {
        match self.kind {
            Kind::Add => format!("add {} {}", self.scalar, self.cols),
            kind => format!(
                "{} {} {}x{}",
                kind.name(),
                self.scalar,
                self.rows,
                self.cols
            ),
        }
    }

    /// Whether the caller may promise that sizes are multiples of 16, as Triton finds out at run time.
    pub(crate) fn divisible(&self) -> bool {
        self.cols.is_multiple_of(16)
    }

    /// The kernel in one configuration.
    pub(crate) fn kernel(&self, block: u64, warps: u32) -> TileFunction {
        let config = Config {
            scalar: self.scalar,
            block,
            warps,
            divisible: if self.divisible() { 16 } else { 1 },
        };
        match self.kind {
            Kind::Add => kernels::vector_add(config),
            Kind::Softmax => kernels::softmax(config),
            Kind::LayerNorm => kernels::layer_norm(config),
        }
    }
}

/// Warps from 1 to 32 that give each thread 1 to 128 elements of a row.
fn row_configs(cols: u64) -> Vec<(u64, u32)> {
    let block = cols.next_power_of_two();
    let warps = [1u32, 2, 4, 8, 16, 32].into_iter();
    let fits = |w: &u32| (1..=128).contains(&(block / (32 * u64::from(*w))));
    warps.filter(fits).map(|w| (block, w)).collect()
}

/// All rows of the comparison.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let add = |scalar, cols| Case {
        kind: Kind::Add,
        scalar,
        rows: 1,
        cols,
        configs: vec![
            (512, 4),
            (1024, 4),
            (1024, 8),
            (2048, 8),
            (4096, 8),
            (2048, 4),
        ],
        target: Target::SM_90,
    };
    cases.extend([1 << 20, 1 << 24, 1 << 28].map(|n| add(Scalar::F32, n)));
    cases.extend([Scalar::F16, Scalar::Bf16].map(|s| add(s, 1 << 28)));
    let softmax = |scalar, rows, cols| Case {
        kind: Kind::Softmax,
        scalar,
        rows,
        cols,
        configs: row_configs(cols),
        target: Target::SM_90,
    };
    cases.push(softmax(Scalar::F32, 583, 931));
    let widths = [256, 1024, 2048, 4096, 8192, 12672, 16384, 32768];
    cases.extend(widths.map(|n| softmax(Scalar::F32, 4096, n)));
    cases.push(softmax(Scalar::F16, 4096, 8192));
    let norm = |scalar, cols| Case {
        kind: Kind::LayerNorm,
        ..softmax(scalar, 4096, cols)
    };
    cases.extend([1024, 4096, 8192].map(|n| norm(Scalar::F32, n)));
    cases.push(norm(Scalar::F16, 8192));
    cases
}
