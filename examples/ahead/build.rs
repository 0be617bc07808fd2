//! Compiles the kernel to PTX and writes a Rust module that launches it.

use std::error::Error;
use std::path::Path;

use tilelift::compile::compile;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::runtime::rust_module;
use tilelift::settings::{Options, Target};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=add.py");
    let module = Module::parse("add.py", &std::fs::read_to_string("add.py")?)?;
    let signature = parse_signature("*fp32:16, *fp32:16, *fp32:16, i32, 1024")?;
    let lowered = module.lower(Some("add"), &Specialization::new(signature, Target::SM_80))?;
    // With the lines of `add.py`, which profilers then show.
    let options = Options {
        line_info: true,
        ..Options::DEFAULT
    };
    let kernel = compile(&lowered.func, Target::SM_80, &options)?;
    let text = rust_module(&kernel, &lowered.func.param_hints);
    let folder = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&folder).join("add.rs"), text)?;
    Ok(())
}
