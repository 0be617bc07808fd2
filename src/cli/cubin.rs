//! Machine code: from the driver, if there is a GPU that runs it, else from `ptxas`; and its text, from `nvdisasm` or `cuobjdump`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Failure, Result};
use crate::compile::CompiledKernel;
use crate::warm::{PtxasError, assemble_by_ptxas};

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
    let target = kernel.meta.target;
    // Lines of the source come along where there are some.
    let lines = kernel.ptx.contains("\t.loc ");
    assemble_by_ptxas(&kernel.ptx, target, lines, None).map_err(|error| match error {
        PtxasError::Io { path, error } => Failure::Io { path, error },
        PtxasError::Start { .. } => Failure::Usage(format!(
            "machine code needs a GPU of {target}, or ptxas (TILELIFT_PTXAS or the path), and {error}"
        )),
        PtxasError::Late(_) | PtxasError::Refused(_) => Failure::Input(format!("error: {error}")),
    })
}

/// The text of machine code, by the program that `TILELIFT_NVDISASM` names, or `nvdisasm` or `cuobjdump` of the path.
pub(super) fn disassemble(kernel: &CompiledKernel, code: &[u8]) -> Result<String> {
    let cubin = scratch(kernel, "sass.cubin");
    std::fs::write(&cubin, code).map_err(io(&cubin))?;
    let named = std::env::var_os("TILELIFT_NVDISASM").map(|program| vec![program]);
    let programs: Vec<OsString> =
        named.unwrap_or_else(|| vec!["nvdisasm".into(), "cuobjdump".into()]);
    let run = |program: &OsString| {
        // Only one of the two has a switch for it.
        let is_dump = program.to_string_lossy().contains("cuobjdump");
        let switches: &[&str] = match is_dump {
            true => &["--dump-sass"],
            false => &["--print-code", "--print-line-info"],
        };
        let mut command = Command::new(program);
        command.args(switches).arg(&cubin).output().ok()
    };
    let output = programs.iter().find_map(run);
    let _ = std::fs::remove_file(&cubin);
    let output = output.ok_or_else(|| {
        Failure::Usage(
            "--emit sass needs nvdisasm or cuobjdump (TILELIFT_NVDISASM or the path), and neither can be started"
                .to_owned(),
        )
    })?;
    check("the disassembler", &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A file of this process alone.
fn scratch(kernel: &CompiledKernel, ending: &str) -> PathBuf {
    let process = std::process::id();
    let name = format!("tilelift-{process}-{}.{ending}", kernel.meta.name);
    std::env::temp_dir().join(name)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |error| Failure::Io { path, error }
}

/// What a program says where it fails.
fn check(name: &str, output: &Output) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Input(format!("error: {name}: {}", log.trim_end())))
}
