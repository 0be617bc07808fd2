//! Writes the kernels of the GPU comparison: PTX and metadata of every configuration, and an index.
//!
//! ```text
//! cargo run --release --example bench_kernels -- FOLDER
//! python3 benches/gpu/compare.py FOLDER
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tilelift::compile::{CompiledKernel, ParamKind, compile};
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

#[path = "../tests/common/kernels/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the other kernels")]
mod kernels;

use kernels::Config;

/// What users run: no verification between passes.
const OPTIONS: Options = Options {
    verify_passes: false,
    ..Options::DEFAULT
};

/// One row of the comparison.
struct Case {
    kind: &'static str,
    scalar: Scalar,
    rows: u64,
    cols: u64,
    /// Blocks and warps to choose from.
    configs: Vec<(u64, u32)>,
    target: Target,
}

impl Case {
    fn name(&self) -> String {
        match self.kind {
            "add" => format!("add {} {}", self.scalar, self.cols),
            kind => format!("{kind} {} {}x{}", self.scalar, self.rows, self.cols),
        }
    }

    /// Whether the caller may promise that sizes are multiples of 16, as Triton finds out at run time.
    fn divisible(&self) -> bool {
        self.cols.is_multiple_of(16)
    }

    fn kernel(&self, block: u64, warps: u32) -> TileFunction {
        // A multiple of 16 is promised where Triton would find it out at run time.
        let divisible = if self.divisible() { 16 } else { 1 };
        let config = Config {
            scalar: self.scalar,
            block,
            warps,
            divisible,
        };
        match self.kind {
            "add" => kernels::vector_add(config),
            "softmax" => kernels::softmax(config),
            _ => kernels::layer_norm(config),
        }
    }
}

/// Warps from 1 to 32 that give each thread 1 to 64 elements of a row.
fn row_configs(cols: u64) -> Vec<(u64, u32)> {
    let block = cols.next_power_of_two();
    let warps = [1u32, 2, 4, 8, 16, 32].into_iter();
    let fits = |w: &u32| (1..=64).contains(&(block / (32 * u64::from(*w))));
    warps.filter(fits).map(|w| (block, w)).collect()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let add = |scalar, cols| {
        let configs = [
            (512, 4),
            (1024, 4),
            (1024, 8),
            (2048, 8),
            (4096, 8),
            (2048, 4),
        ]
        .to_vec();
        Case {
            kind: "add",
            scalar,
            rows: 1,
            cols,
            configs,
            target: Target::SM_90,
        }
    };
    cases.extend([1 << 20, 1 << 24, 1 << 28].map(|n| add(Scalar::F32, n)));
    cases.extend([Scalar::F16, Scalar::Bf16].map(|s| add(s, 1 << 28)));
    let softmax = |scalar, rows, cols| Case {
        kind: "softmax",
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
        kind: "layer_norm",
        ..softmax(scalar, 4096, cols)
    };
    cases.extend([1024, 4096, 8192].map(|n| norm(Scalar::F32, n)));
    cases.push(norm(Scalar::F16, 8192));
    cases
}

fn meta_json(kernel: &CompiledKernel) -> String {
    let meta = &kernel.meta;
    let params: Vec<String> = meta
        .params
        .iter()
        .map(|p| {
            let kind = if p.kind == ParamKind::Pointer {
                "pointer"
            } else {
                "scalar"
            };
            format!(
                r#"{{"name": "{}", "kind": "{kind}", "type": "{}"}}"#,
                p.name, p.ty
            )
        })
        .collect();
    format!(
        r#"{{"name": "{}", "target": "{}", "ptx_version": "{}", "num_warps": {}, "block": [{}, 1, 1], "shared": {}, "params": [{}]}}"#,
        meta.name,
        meta.target,
        meta.ptx_version,
        meta.num_warps,
        32 * meta.num_warps,
        meta.shared,
        params.join(", ")
    )
}

/// Configurations whose machine code is compared: about 8 to 16 elements per thread, as kernels are written by hand.
fn is_usual(block: u64, warps: u32) -> bool {
    (8..=16).contains(&(block / (32 * u64::from(warps)))) && warps >= 4
}

fn write_case(folder: &Path, case: &Case, index: &mut String) -> Result<(), Box<dyn Error>> {
    let stem = case.name().replace(' ', "_");
    let mut configs = Vec::new();
    for &(block, warps) in &case.configs {
        let kernel = compile(&case.kernel(block, warps), case.target, &OPTIONS)?;
        let file = format!("{stem}_{block}_{warps}");
        fs::write(folder.join(format!("{file}.ptx")), &kernel.ptx)?;
        fs::write(folder.join(format!("{file}.json")), meta_json(&kernel))?;
        configs.push(format!(
            r#"{{"block": {block}, "warps": {warps}, "ptx": "{file}.ptx", "meta": "{file}.json", "sass": {}}}"#,
            is_usual(block, warps)
        ));
    }
    let comma = if index.is_empty() { "" } else { ",\n" };
    write!(
        index,
        r#"{comma}{{"name": "{}", "kind": "{}", "dtype": "{}", "m": {}, "n": {}, "target": "{}", "divisible": {}, "configs": [{}]}}"#,
        case.name(),
        case.kind,
        case.scalar,
        case.rows,
        case.cols,
        case.target,
        case.divisible(),
        configs.join(", ")
    )?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .ok_or("usage: bench_kernels FOLDER")?,
    );
    fs::create_dir_all(&folder)?;
    let mut index = String::new();
    for case in cases() {
        write_case(&folder, &case, &mut index)?;
    }
    fs::write(folder.join("index.json"), format!("[{index}]"))?;
    println!("wrote {}", folder.display());
    Ok(())
}
