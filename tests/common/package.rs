//! Launches packed into files, for `gpu.py` beside this file to run where there is a GPU but no Rust:
//!
//! - `kernels.ptx`: the modules, each ended by a zero byte.
//! - `kernels.bin`: the buffers before the launches.
//! - `kernels.plan`: a line for each launch: name of the entry, number of the module, programs along three axes, threads,
//!   bytes of shared memory, digest of all buffers as the emulator leaves them, where the first buffer starts in
//!   `kernels.bin`, and for each argument `b` and the size of a buffer or `i` and a number.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use tilelift::compile::CompiledKernel;
use tilelift::settings::{PtxVersion, Target};

use crate::common::executor::HostArg;

/// Kernels of one target, to be one module.
#[derive(Default)]
pub(crate) struct Batch {
    version: Option<PtxVersion>,
    globals: BTreeSet<String>,
    text: String,
}

impl Batch {
    /// Adds a kernel.
    pub(crate) fn add(&mut self, kernel: &CompiledKernel) {
        self.version = self.version.max(Some(kernel.meta.ptx_version));
        let is_global =
            |line: &&str| line.starts_with(".extern") || line.starts_with(".visible .global");
        let globals = kernel.ptx.lines().filter(is_global);
        self.globals.extend(globals.map(str::to_owned));
        let start = kernel.ptx.find(".visible .entry");
        self.text += &kernel.ptx[start.expect("every kernel has an entry")..];
    }

    /// The text of all kernels, if there is one.
    pub(crate) fn module(&self, target: Target) -> Option<String> {
        let globals: Vec<&str> = self.globals.iter().map(String::as_str).collect();
        let (globals, text) = (globals.join("\n"), &self.text);
        self.version.map(|version| {
            format!(".version {version}\n.target {target}\n.address_size 64\n{globals}\n{text}")
        })
    }
}

/// Launches, to be written.
#[derive(Default)]
pub(crate) struct Package {
    modules: Vec<String>,
    plan: String,
    data: Vec<u8>,
}

impl Package {
    /// Adds a launch of a kernel of module `module`; `after` are its arguments as the emulator leaves them.
    pub(crate) fn launch(
        &mut self,
        kernel: &CompiledKernel,
        module: usize,
        [x, y, z]: [u32; 3],
        args: &[HostArg],
        after: &[HostArg],
    ) {
        let meta = &kernel.meta;
        let (name, threads, shared) = (&meta.name, meta.threads(), meta.shared);
        let buffers = after.iter().filter_map(|arg| match arg {
            HostArg::Buffer(bytes) => Some(bytes.as_slice()),
            HostArg::Output(_) | HostArg::I32(_) | HostArg::F32(_) => None,
        });
        let wanted = digest(buffers.flatten());
        let start = self.data.len();
        let _ = write!(
            self.plan,
            "{name} {module} {x} {y} {z} {threads} {shared} {wanted} {start}"
        );
        for arg in args {
            let _ = match arg {
                HostArg::Buffer(bytes) => {
                    self.data.extend(bytes);
                    write!(self.plan, " b{}", bytes.len())
                }
                HostArg::Output(size) => {
                    self.data.resize(self.data.len() + size, 0xa5);
                    write!(self.plan, " b{size}")
                }
                HostArg::I32(number) => write!(self.plan, " i{}", *number as u32),
                HostArg::F32(number) => write!(self.plan, " i{}", number.to_bits()),
            };
        }
        self.plan.push('\n');
    }

    /// Adds a module; gives its number.
    pub(crate) fn module(&mut self, text: String) -> usize {
        self.modules.push(text);
        self.modules.len() - 1
    }

    /// Writes the files.
    pub(crate) fn write(&self, folder: &Path) {
        let mut text = self.modules.join("\0");
        text.push('\0');
        let files = [
            ("kernels.ptx", text.as_bytes()),
            ("kernels.plan", self.plan.as_bytes()),
            ("kernels.bin", &self.data),
        ];
        for (name, bytes) in files {
            std::fs::write(folder.join(name), bytes).expect("the folder can be written");
        }
    }
}

/// FNV-1a.
fn digest<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
