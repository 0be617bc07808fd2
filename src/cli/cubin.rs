//! Machine code for `--emit rust --cubin`: from the driver, if there is a GPU that runs it, else from `ptxas`.

use std::path::PathBuf;
use std::process::Command;

use super::{Failure, Result};
use crate::compile::CompiledKernel;

/// The machine code of a kernel for its target.
pub(super) fn assemble(kernel: &CompiledKernel) -> Result<Vec<u8>> {
    #[cfg(feature = "cuda")]
    if let Some(code) = by_driver(kernel)? {
        return Ok(code);
    }
    by_ptxas(kernel)
}

/// The driver's; none if there is no device of the very target. A device assembles for itself alone.
#[cfg(feature = "cuda")]
fn by_driver(kernel: &CompiledKernel) -> Result<Option<Vec<u8>>> {
    use crate::driver::{Context, Device, JitOptions, assemble};
    let target = kernel.meta.target;
    let is_it = |device: &Device| {
        let is = device.capability;
        10 * is.major + is.minor == target.sm
    };
    let devices = Device::all().unwrap_or_default();
    let Some(device) = devices.iter().find(|device| is_it(device)) else {
        return Ok(None);
    };
    let context = Context::new(device);
    let code = context.and_then(|c| assemble(&c, &kernel.ptx, &JitOptions::default()));
    let code = code.map_err(|error| Failure::Input(format!("error: {error}")))?;
    Ok(Some(code.bytes))
}

/// That of the program that `TILELIFT_PTXAS` names, or the path has.
pub(super) fn by_ptxas(kernel: &CompiledKernel) -> Result<Vec<u8>> {
    let program = std::env::var_os("TILELIFT_PTXAS").unwrap_or_else(|| "ptxas".into());
    let folder = std::env::temp_dir();
    let file = |ending: &str| -> PathBuf {
        let process = std::process::id();
        folder.join(format!("tilelift-{process}-{}.{ending}", kernel.meta.name))
    };
    let (from, to) = (file("ptx"), file("cubin"));
    let io = |path: &PathBuf| {
        let path = path.clone();
        move |error| Failure::Io { path, error }
    };
    std::fs::write(&from, &kernel.ptx).map_err(io(&from))?;
    let output = Command::new(&program)
        .arg(format!("-arch={}", kernel.meta.target))
        .arg("-o")
        .args([&to, &from])
        .output();
    // What is left behind is in the folder for that.
    let _ = std::fs::remove_file(&from);
    let output = output.map_err(|error| {
        let name = program.to_string_lossy();
        let target = kernel.meta.target;
        Failure::Usage(format!(
            "--cubin needs a GPU of {target}, or ptxas (TILELIFT_PTXAS or the path), and {name} cannot be started: {error}"
        ))
    })?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Input(format!("error: ptxas: {}", log.trim_end())));
    }
    let code = std::fs::read(&to).map_err(io(&to));
    let _ = std::fs::remove_file(&to);
    code
}
