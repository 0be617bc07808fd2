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

use tilelift::compile::compile;

#[path = "../tests/common/kernels/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the other kernels")]
mod kernels;

#[path = "../benches/cases.rs"]
mod cases;

#[path = "common/meta.rs"]
mod meta;

use cases::{Case, OPTIONS, cases};
use meta::meta_json;

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
        case.kind.name(),
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
