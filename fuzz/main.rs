//! Smoke runs of the fuzz targets, a second each; `README.md` beside this file says how to run one for longer.

#[cfg(feature = "cuda")]
mod gpu;
mod hardware;
#[cfg(feature = "serde")]
#[path = "../tests/common/launches.rs"]
mod launches;
#[cfg(all(feature = "serde", feature = "triton"))]
mod promoted_kernels;
mod ptxas;
#[cfg(feature = "serde")]
mod role_kernels;

#[cfg(feature = "triton")]
use std::collections::BTreeSet;
#[cfg(feature = "serde")]
use tilelift::fuzzing::{SEED, number};
use tilelift::fuzzing::{
    Verdict, Verdicts, allocation, cache_files, ir_text, layouts, metamorphic, passes, ptx_text,
    roles, run, tile_ir,
};
#[cfg(feature = "triton")]
use tilelift::fuzzing::{launch_inputs, promotion, rotation, source_text};

/// Runs a target, which must judge something and find nothing.
fn judge(name: &str, check: impl Fn(u64) -> Verdict) -> Verdicts {
    let report = run(name, check);
    let failures = report.failures.len();
    assert!(failures == 0, "{failures} failures");
    assert!(report.passed > 0, "nothing was judged");
    report
}

/// The seeds that kernels are written of: so many, if the environment does not say how many, or from where on.
#[cfg(feature = "serde")]
fn seeds(count: u64) -> std::ops::Range<u64> {
    let asked = |name| number(name).unwrap_or_else(|message| panic!("{message}"));
    let first = asked(SEED).unwrap_or(0);
    first..first + asked("TILELIFT_FUZZ_KERNELS").unwrap_or(count)
}

/// Generated kernels: verifier, interpreter before and after the passes, emulator, text.
#[test]
fn tile_ir() {
    judge("tile_ir", tile_ir::check);
}

/// Each pass alone: what it leaves computes what it was given; texts of the middle of the pipeline come back the same.
#[test]
fn passes() {
    judge("passes", passes::check);
}

/// Kernels changed so that their results must not change: numbers of programs, constants, masks, sizes of blocks.
#[test]
fn metamorphic() {
    judge("metamorphic", metamorphic::check);
}

/// Broken and strange texts of kernels: no panic, and what verifies compiles.
#[test]
fn ir_text() {
    judge("ir_text", ir_text::check);
}

/// Broken and strange PTX: the emulator never panics and keeps its step limit.
#[test]
fn ptx_text() {
    judge("ptx_text", ptx_text::check);
}

/// Texts of the Triton language: no panic, no mistake of ours, and what is accepted compiles.
#[cfg(feature = "triton")]
#[test]
fn source_text() {
    judge("source_text", source_text::check);
}

/// Broken and strange files in the place of cache entries: no panic, no wrong contents, and what is damaged is reported.
#[test]
fn cache_files() {
    // There is one for each damaged file.
    tilelift::runtime::on_warning(|_| {});
    judge("cache_files", cache_files::check);
}

/// Broken and strange manifests, recipes and descriptors: no panic, and what is refused says where.
#[cfg(feature = "triton")]
#[test]
fn launch_inputs() {
    judge("launch_inputs", launch_inputs::check);
    // By number and not by time: one in seventy is a map.
    let notes = (0..1000).flat_map(|seed| match launch_inputs::check(seed) {
        Verdict::Passed(notes) => notes,
        other => panic!("seed {seed}: {other:?}"),
    });
    let notes: BTreeSet<&str> = notes.collect();
    for note in ["a manifest", "a map", "a descriptor"] {
        assert!(notes.contains(note), "{note} was never read");
    }
}

/// Conversions between random layouts, simulated.
#[test]
fn layouts() {
    judge("layouts", layouts::check);
}

/// Random problems for the register allocator: checker and execution.
#[test]
fn allocation() {
    judge("allocation", allocation::check);
}

/// Products of matrices: loads and stores that become those of tensor maps do what they did before.
#[cfg(feature = "triton")]
#[test]
fn promotion() {
    let report = judge("promotion", promotion::check);
    for note in ["both loads promoted", "stores promoted", "emulated"] {
        assert!(report.notes.contains_key(note), "none had {note}");
    }
}

/// Loops with products of products: they compute what they did when they begin the next iteration early.
#[cfg(feature = "triton")]
#[test]
fn rotation() {
    let report = judge("rotation", rotation::check);
    let rotated = report.notes.get("rotated").copied().unwrap_or(0);
    assert!(rotated > 0, "nothing was rotated");
}

/// Products whose boxes warps of their own bring: interpreter after each pass, and emulator.
#[test]
fn roles() {
    let report = judge("roles", roles::check);
    let formed = report.notes.get("with roles").copied().unwrap_or(0);
    assert!(formed > 0, "no kernel got roles");
}
