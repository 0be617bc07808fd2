//! Generated kernels with products by warpgroups, written for a machine with a GPU that has no Rust.
//!
//! Each kernel of the target `roles` with such products, with roles or without, is judged, compiled and executed on the emulator, and its launch is written to
//! the folder that `TILELIFT_LAUNCHES` names ([`crate::launches`]); `TILELIFT_FUZZ_KERNELS` says how many seeds are tried. Sums are of
//! small whole numbers, so every byte must be the same.

use std::path::Path;

use tilelift::compile::compile;
use tilelift::fuzzing::batch::emulate_launch;
use tilelift::fuzzing::generate::Argument;
use tilelift::fuzzing::roles;
use tilelift::settings::{Asserts, Options};

use crate::launches::{Folder, Given, Launched};
use crate::seeds;

/// The buffer with the sums, and how large they may be: a quarter of what f32 holds exactly, for what they were meanwhile.
const SUMS: usize = 2;
const LARGEST: f32 = 4194304.0;

/// Seeds that are tried if nobody says how many.
const KERNELS: u64 = 200;
/// The same if nobody names a folder.
const FEW: u64 = 8;

/// The kernel of a seed, if it has products by warpgroups and the emulator executes it. What cannot be compiled or executed is found by the target `roles`.
fn write(folder: &Path, seed: u64) -> Option<()> {
    let mut case = roles::case(seed).ok()?;
    case.options.line_info = false;
    let kernel = compile(&case.func, case.target, &case.options).ok()?;
    if !kernel.ptx.contains("wgmma.mma_async") {
        return None;
    }
    let options = Options {
        asserts: Asserts::Report,
        ..case.options
    };
    let bounded = compile(&case.func, case.target, &options).ok()?;
    let (results, _) = match emulate_launch(&kernel, &case, true) {
        Err(message) if message.contains("race on") => {
            panic!(
                "seed {seed}: {message}\n{} {:?}\n{}\n{}",
                case.target, case.options, case.func, kernel.ptx
            )
        }
        done => done.ok()?,
    };
    if case.func.to_string().contains("f32[")
        && !results.get(SUMS).is_some_and(|sums| are_exact(sums))
    {
        return None;
    }
    let args = case.args.iter().map(|arg| match arg {
        Argument::Buffer(_, bytes) => Given::Buffer(bytes, 0),
        Argument::Number(_, bits) => Given::Number(*bits),
    });
    let launched = Launched {
        kernel: &kernel,
        bounded: Some(&bounded),
        grid: case.grid,
        args: args.collect(),
        after: results.iter().map(Vec::as_slice).collect(),
        close: None,
    };
    launched.write(folder, &format!("k{seed}"));
    // For who looks for the cause of a difference.
    let text = format!("; {:?}\n{}", case.options, case.func);
    std::fs::write(folder.join(format!("k{seed}.tir")), text).expect("the folder can be written");
    Some(())
}

/// Whether sums are so small that f32 and the units of matrices hold them exactly: units cut what they add to behind the point of the
/// largest.
fn are_exact(sums: &[u8]) -> bool {
    let mut words = sums.chunks_exact(4);
    words.all(|word| {
        let sum = f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        sum.abs() < LARGEST
    })
}

#[test]
fn role_kernels() {
    let folder = Folder::new("role-kernels");
    let count = if folder.is_wanted { KERNELS } else { FEW };
    let written = seeds(count)
        .filter_map(|seed| write(&folder.path, seed))
        .count();
    println!("{written} kernels with products by warpgroups");
    folder.check(written);
}
