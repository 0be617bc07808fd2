//! Writes the kernels of `benches/gpu/tiles.py`: PTX and metadata for each number of warps, and an index.
//!
//! ```text
//! cargo run --release --example bench_tiles -- FOLDER
//! python3 benches/gpu/tiles.py FOLDER
//! ```

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use tilelift::compile::compile;
use tilelift::settings::{Options, Target};

#[path = "../tests/common/kernels/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the other kernels")]
mod kernels;

#[path = "common/meta.rs"]
mod meta;

use kernels::{Sizes, TILES, tile_kernel};

const SIZES: Sizes = Sizes {
    tile: 64,
    matrix: 8192,
    line: 1024,
    bins: 256,
};
const WARPS: [u32; 4] = [1, 2, 4, 8];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: bench_tiles FOLDER")?;
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder)?;
    let target = Target::SM_90;
    let options = Options {
        verify_passes: false,
        ..Options::DEFAULT
    };
    let mut rows = Vec::new();
    for (name, scalars) in TILES {
        for warps in WARPS {
            let func = tile_kernel(name, SIZES, warps).ok_or("no such kernel")?;
            let compiled = compile(&func, target, &options)?;
            let stem = format!("{name}_{warps}");
            fs::write(folder.join(format!("{stem}.ptx")), &compiled.ptx)?;
            fs::write(
                folder.join(format!("{stem}.json")),
                meta::meta_json(&compiled),
            )?;
        }
        let types: Vec<String> = scalars.iter().map(|s| format!("\"{s}\"")).collect();
        rows.push(format!(
            r#"{{"name": "{name}", "types": [{}], "warps": {WARPS:?}}}"#,
            types.join(", ")
        ));
    }
    let Sizes {
        tile,
        matrix,
        line,
        bins,
    } = SIZES;
    let index = format!(
        "{{\"tile\": {tile}, \"matrix\": {matrix}, \"line\": {line}, \"bins\": {bins}, \"kernels\": [\n{}]}}\n",
        rows.join(",\n")
    );
    fs::write(folder.join("index.json"), index)?;
    println!("wrote {}", folder.display());
    Ok(())
}
