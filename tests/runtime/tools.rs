//! What the tests share: programs, and this test program started again as another process.

use std::path::Path;
use std::process::Command;

use tilelift::runtime::cache::{Cache, Settings};
use tilelift::runtime::{Device, DeviceOptions, Program};

/// Adds vectors; `SCALE` tells variants apart.
pub(crate) const ADD: &str = r#"
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr, SCALE: tl.constexpr = 1):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    sum = tl.load(x + i, mask) + tl.load(y + i, mask)
    tl.store(out + i, sum * SCALE, mask)
"#;

pub(crate) fn add_program() -> Program {
    Program::python("add.py", ADD).expect("it is Python")
}

/// The emulator with a cache in `dir`, or without.
pub(crate) fn emulator(dir: Option<&Path>) -> Device {
    Device::emulator_with(DeviceOptions {
        cache: dir.map_or_else(Cache::off, |dir| Cache::new(Settings::new(dir))),
        ..DeviceOptions::plain()
    })
}

/// The command that runs one test of this program in a process of its own, which sees `ROLE` as its role.
pub(crate) fn another_process(test: &str, role: &str) -> Command {
    let this = std::env::current_exe().expect("a program knows its file");
    let mut command = Command::new(this);
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("TILELIFT_TEST_ROLE", role);
    command
}

/// The role of this process; none in the one that the tests were started in.
pub(crate) fn role() -> Option<String> {
    std::env::var("TILELIFT_TEST_ROLE").ok()
}
