//! Triton's tutorials, from the files as they are: every kernel compiles, and those whose work needs no more than one
//! GPU of ours runs on the emulator, with the results that a few lines of Rust give.
//!
//! The files are Triton's and not here: `TILELIFT_TRITON_TUTORIALS` names the folder `python/tutorials` of its sources.
//! Without it nothing is tested, and the tests say so.
#![cfg(feature = "triton")]

mod attention;
mod launch;
mod products;
mod rows;

use std::collections::BTreeSet;
use std::path::PathBuf;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::settings::{Options, Target};

/// The folder of the tutorials.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TILELIFT_TRITON_TUTORIALS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!(
            "skipped: TILELIFT_TRITON_TUTORIALS does not name the folder of Triton's tutorials"
        );
    }
    folder
}

/// How a tutorial launches a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The file's name up to the first `-`.
    pub(crate) file: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) signature: String,
    pub(crate) warps: u32,
    pub(crate) stages: u8,
}

impl Case {
    pub(crate) fn new(
        file: &'static str,
        kernel: &'static str,
        signature: impl Into<String>,
        warps: u32,
        stages: u8,
    ) -> Case {
        Case {
            file,
            kernel,
            signature: signature.into(),
            warps,
            stages,
        }
    }
}

pub(crate) fn module(folder: &std::path::Path, file: &str) -> Module {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut paths = entries.map(|entry| entry.expect("readable").path());
    let is_it = |path: &PathBuf| {
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        name.starts_with(&format!("{file}-")) && name.ends_with(".py")
    };
    let path = paths
        .find(is_it)
        .unwrap_or_else(|| panic!("there is no tutorial {file}"));
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    Module::parse(&path.display().to_string(), &text).unwrap_or_else(|e| panic!("{e}"))
}

/// The kernel for a target.
pub(crate) fn compiled(
    module: &Module,
    case: &Case,
    target: Target,
) -> Result<CompiledKernel, String> {
    let args = parse_signature(&case.signature).map_err(|e| e.to_string())?;
    let mut spec = Specialization::new(args, target);
    spec.num_warps = case.warps;
    spec.num_stages = Some(case.stages);
    let lowered = module
        .lower(Some(case.kernel), &spec)
        .map_err(|e| e.to_string())?;
    compile(&lowered.func, target, &Options::DEFAULT).map_err(|e| e.to_string())
}

/// The launches of the tutorials, with one of the configurations that they try.
fn cases() -> Vec<(Case, &'static [Target])> {
    const BOTH: &[Target] = &[Target::SM_80, Target::SM_90];
    // 8-bit floats of four exponent bits, and dependent launches, came with later GPUs.
    const NEW: &[Target] = &[Target::SM_90];
    let sizes = "i32:16, i32:16, i32:16";
    let halves = "*fp16:16, *fp16:16, *fp16:16";
    let groups = "*i64:16, *i64:16, *i64:16, *i32:16, *i32:16, i32";
    let tiles = |c: &str| {
        let ab = "tensordesc<fp16[128, 64]>, tensordesc<fp16[128, 64]>";
        format!("{ab}, tensordesc<fp16[{c}]>, {sizes}")
    };
    let attention = "fp32, *fp32:16, i32, i32";
    let backward = format!(
        "{halves}, fp32, *fp16:16, {halves}, *fp32:16, *fp32:16, i32:16, i32:16, i32:16, i32:1, i32, i32:16"
    );
    let scaled = |a: &str, b: &str, scale: &str| {
        let scale = format!("tensordesc<{scale}, 2, 256]>");
        format!(
            "tensordesc<{a}]>, {scale}, tensordesc<{b}]>, {scale}, tensordesc<fp16[128, 128]>, 512, 512, 512, 1"
        )
    };
    let case = |file, kernel, signature: String, warps, stages, targets| {
        (Case::new(file, kernel, signature, warps, stages), targets)
    };
    let text = str::to_owned;
    vec![
        case(
            "01",
            "add_kernel",
            text("*fp32:16, *fp32:16, *fp32:16, i32, 1024"),
            4,
            3,
            BOTH,
        ),
        case(
            "02",
            "softmax_kernel",
            text("*fp32:16, *fp32:16, i32, i32, i32, i32, 1024, 4"),
            8,
            3,
            BOTH,
        ),
        case(
            "03",
            "matmul_kernel",
            format!(
                "{halves}, {sizes}, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, 128, 64, 32, 8, 'leaky_relu'"
            ),
            4,
            4,
            BOTH,
        ),
        case(
            "03",
            "matmul_kernel",
            format!(
                "*fp8e5:16, *fp8e5:16, *fp16:16, {sizes}, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, 128, 256, 128, 8, ''"
            ),
            8,
            3,
            BOTH,
        ),
        case(
            "04",
            "_dropout",
            text("*fp32:16, *i32:16, *fp32:16, i32, fp32, 1024"),
            4,
            3,
            BOTH,
        ),
        case(
            "04",
            "_seeded_dropout",
            text("*fp32:16, *fp32:16, i32, fp32, i32, 1024"),
            4,
            3,
            BOTH,
        ),
        case(
            "05",
            "_layer_norm_fwd_fused",
            text(
                "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32, i32, fp32, 8192",
            ),
            8,
            3,
            BOTH,
        ),
        case(
            "05",
            "_layer_norm_bwd_dx_fused",
            format!("{halves}, {halves}, *fp32:16, *fp32:16, *i32:16, i32, i32, 64, 8192"),
            8,
            3,
            BOTH,
        ),
        case(
            "05",
            "_layer_norm_bwd_dwdb",
            text("*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, i32, 32, 128"),
            4,
            3,
            BOTH,
        ),
        case(
            "06",
            "_attn_fwd",
            format!("{attention}, {halves}, *fp16:16, i32:16, 64, 64, 32, False, 3, False, False"),
            4,
            2,
            BOTH,
        ),
        case(
            "06",
            "_attn_fwd",
            format!("{attention}, {halves}, *fp16:16, i32:16, 128, 128, 64, False, 3, True, True"),
            4,
            2,
            BOTH,
        ),
        case(
            "06",
            "_attn_fwd",
            format!(
                "{attention}, tensordesc<fp16[128, 128]>, tensordesc<fp16[64, 128]>, tensordesc<fp16[64, 128]>, tensordesc<fp16[128, 128]>, i32:16, 128, 128, 64, False, 1, True, False"
            ),
            8,
            2,
            BOTH,
        ),
        case(
            "06",
            "_attn_fwd",
            format!(
                "{attention}, *fp8e5:16, *fp8e5:16, *fp8e5:16, *fp8e5:16, i32:16, 64, 64, 32, True, 1, True, False"
            ),
            4,
            2,
            BOTH,
        ),
        case(
            "06",
            "_attn_bwd_preprocess",
            text("*fp16:16, *fp16:16, *fp32:16, i32, i32, i32:16, 128, 64"),
            4,
            3,
            BOTH,
        ),
        case(
            "06",
            "_attn_bwd",
            format!("{backward}, 32, 128, 128, 32, 2, 64, True"),
            4,
            5,
            BOTH,
        ),
        case(
            "06",
            "_attn_bwd",
            format!("{backward}, 32, 128, 128, 32, 2, 64, False"),
            4,
            5,
            BOTH,
        ),
        case(
            "07",
            "asin_kernel",
            text("*fp32:16, *fp32:16, i32, 1024"),
            4,
            3,
            BOTH,
        ),
        case(
            "08",
            "grouped_matmul_kernel",
            format!("{groups}, 84, 128, 128, 32"),
            4,
            3,
            BOTH,
        ),
        case(
            "08",
            "grouped_matmul_tma_kernel",
            format!("{groups}, 84, 128, 128, 64, False"),
            4,
            3,
            BOTH,
        ),
        case(
            "08",
            "grouped_matmul_tma_kernel",
            format!("{groups}, 84, 128, 128, 64, True"),
            4,
            3,
            NEW,
        ),
        case(
            "09",
            "matmul_kernel",
            format!(
                "{halves}, {sizes}, i32:16, i32:1, i32:1, i32:16, i32:16, i32:1, 128, 256, 64, 8"
            ),
            8,
            3,
            BOTH,
        ),
        case(
            "09",
            "matmul_kernel_tma",
            format!("{}, 128, 128, 64, 8, False, True", tiles("128, 128")),
            8,
            3,
            BOTH,
        ),
        case(
            "09",
            "matmul_kernel_persistent",
            format!(
                "{halves}, {sizes}, i32:16, i32:1, i32:1, i32:16, i32:16, i32:1, 128, 128, 64, 8, 132"
            ),
            8,
            3,
            BOTH,
        ),
        case(
            "09",
            "matmul_kernel_persistent",
            format!(
                "*fp8e4nv:16, *fp8e4nv:16, *fp8e4nv:16, {sizes}, i32:16, i32:1, i32:1, i32:16, i32:16, i32:1, 128, 128, 128, 8, 132"
            ),
            8,
            3,
            NEW,
        ),
        case(
            "09",
            "matmul_kernel_tma_persistent",
            format!(
                "{}, 128, 128, 64, 8, False, True, 132, False",
                tiles("128, 64")
            ),
            8,
            3,
            BOTH,
        ),
        case(
            "09",
            "matmul_kernel_descriptor_persistent",
            format!("{halves}, {sizes}, 128, 128, 64, 8, True, 132, False, True"),
            8,
            3,
            BOTH,
        ),
        // nvfp4, mxfp4, mxfp8, and mxfp8 with mxfp4.
        case(
            "10",
            "block_scaled_matmul_kernel",
            format!(
                "{}, 2, 2, 16, 128, 128, 256, 1, 1, 4, 2",
                scaled("u8[128, 128", "u8[128, 128", "fp8e4nv[1, 1, 4")
            ),
            4,
            2,
            NEW,
        ),
        case(
            "10",
            "block_scaled_matmul_kernel",
            format!(
                "{}, 2, 2, 32, 128, 128, 256, 1, 1, 2, 2",
                scaled("u8[128, 128", "u8[128, 128", "u8[1, 1, 2")
            ),
            4,
            2,
            BOTH,
        ),
        case(
            "10",
            "block_scaled_matmul_kernel",
            format!(
                "{}, 1, 1, 32, 128, 128, 128, 1, 1, 1, 2",
                scaled("fp8e4nv[128, 128", "fp8e4nv[128, 128", "u8[1, 1, 1")
            ),
            4,
            2,
            NEW,
        ),
        case(
            "10",
            "block_scaled_matmul_kernel",
            format!(
                "{}, 1, 2, 32, 128, 128, 128, 1, 1, 1, 2",
                scaled("fp8e4nv[128, 128", "u8[128, 64", "u8[1, 1, 1")
            ),
            4,
            2,
            NEW,
        ),
        case(
            "10",
            "block_scaled_matmul_kernel_cdna4",
            format!(
                "*u8:16, *u8:16, *fp16:16, *u8:16, *u8:16, {sizes}, i32:16, i32:1, i32:1, i32:16, 0, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, 128, 128, 256, 16"
            ),
            8,
            2,
            BOTH,
        ),
        case(
            "11",
            "add_kernel",
            text("*fp32:16, *fp32:16, *fp32:16, i32, 1024, False"),
            4,
            3,
            BOTH,
        ),
        case(
            "11",
            "add_kernel",
            text("*fp32:16, *fp32:16, *fp32:16, i32, 1024, True"),
            4,
            3,
            NEW,
        ),
    ]
}

#[test]
fn every_kernel_compiles() {
    let Some(folder) = folder() else { return };
    let cases = cases();
    let files: BTreeSet<&str> = cases.iter().map(|(case, _)| case.file).collect();
    let mut failures = String::new();
    for file in files {
        let module = module(&folder, file);
        // What kernels call is compiled with them.
        let called = [
            "leaky_relu",
            "_attn_fwd_inner",
            "_maybe_make_tensor_desc",
            "_attn_bwd_dkdv",
            "_attn_bwd_dq",
            "_compute_pid",
        ];
        for kernel in module.kernels() {
            let named = |(case, _): &(Case, _)| case.file == file && case.kernel == kernel.name;
            assert!(
                called.contains(&&*kernel.name) || cases.iter().any(named),
                "{file}: no case for {}",
                kernel.name
            );
        }
        for (case, targets) in cases.iter().filter(|(case, _)| case.file == file) {
            for &target in *targets {
                if let Err(e) = compiled(&module, case, target) {
                    let (kernel, signature) = (case.kernel, &case.signature);
                    failures += &format!("{file} {kernel} \"{signature}\" {target}:\n{e}\n");
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
