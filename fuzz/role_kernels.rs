//! Generated kernels whose warps have roles, written for a machine with a GPU that has no Rust.
//!
//! With `TILELIFT_ROLE_KERNELS=DIR` each kernel of the target `roles` that gets roles is judged, compiled and executed on the
//! emulator, and PTX, description, arguments and results lie in `DIR`; `TILELIFT_FUZZ_KERNELS` says how many seeds are tried.
//! `fuzz/role_kernels.py` launches them. Sums are of small whole numbers, so every byte must be the same.

use std::path::Path;

use tilelift::compile::compile;
use tilelift::fuzzing::batch::emulate_launch;
use tilelift::fuzzing::generate::{Argument, Case};
use tilelift::fuzzing::{number, roles};
use tilelift::metadata;

/// The buffer with the sums, and how large they may be: a quarter of what f32 holds exactly, for what they were meanwhile.
const SUMS: usize = 2;
const LARGEST: f32 = 4194304.0;

/// Seeds that are tried if nobody says how many.
const KERNELS: u64 = 200;

/// The kernel of a seed, if it has roles and the emulator executes it. What cannot be compiled or executed is found by the target `roles`.
fn write(folder: &Path, seed: u64) -> Option<()> {
    let mut case = roles::case(seed).ok()?;
    case.options.line_info = false;
    let kernel = compile(&case.func, case.target, &case.options).ok()?;
    let has_roles = kernel.ptx.contains("mbarrier.arrive.shared");
    if !has_roles {
        return None;
    }
    let (results, _) = emulate_launch(&kernel, &case).ok()?;
    if case.func.to_string().contains("f32[")
        && !results.get(SUMS).is_some_and(|sums| are_exact(sums))
    {
        return None;
    }
    let mut bytes = Vec::new();
    for buffer in buffers(&case).chain(results.iter().map(Vec::as_slice)) {
        bytes.extend_from_slice(buffer);
    }
    let args: Vec<String> = case.args.iter().map(described).collect();
    let launch = format!(
        "{{\"grid\": {:?}, \"args\": [{}]}}",
        case.grid,
        args.join(", ")
    );
    let meta = metadata::json(&kernel.meta, 1, &[], None);
    let files = [
        ("ptx", kernel.ptx.as_bytes()),
        ("json", meta.as_bytes()),
        ("launch", launch.as_bytes()),
        ("bytes", &bytes),
    ];
    for (extension, content) in files {
        let path = folder.join(format!("k{seed}.{extension}"));
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
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

fn buffers(case: &Case) -> impl Iterator<Item = &[u8]> {
    case.args.iter().filter_map(|arg| match arg {
        Argument::Buffer(_, bytes) => Some(bytes.as_slice()),
        Argument::Number(..) => None,
    })
}

/// An argument: the bytes of a buffer by their number, a number by its bits.
fn described(arg: &Argument) -> String {
    match arg {
        Argument::Buffer(_, bytes) => format!("{{\"bytes\": {}}}", bytes.len()),
        Argument::Number(_, bits) => format!("{{\"bits\": {bits}}}"),
    }
}

#[test]
fn role_kernels() {
    let Some(folder) = std::env::var_os("TILELIFT_ROLE_KERNELS") else {
        eprintln!("skipped: TILELIFT_ROLE_KERNELS names no folder");
        return;
    };
    let count = number("TILELIFT_FUZZ_KERNELS").unwrap_or_else(|message| panic!("{message}"));
    let first = number("TILELIFT_FUZZ_SEED").unwrap_or_else(|message| panic!("{message}"));
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let first = first.unwrap_or(0);
    let seeds = first..first + count.unwrap_or(KERNELS);
    let written = seeds.filter_map(|seed| write(folder, seed)).count();
    println!("{written} kernels with roles");
    assert!(0 < written, "no kernel has roles");
}
