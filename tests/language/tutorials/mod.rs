//! Triton's tutorials, from the files as they are: every kernel compiles, and those whose work needs no more than one
//! GPU of ours runs on the emulator, with the results that a few lines of Rust give.
//!
//! The files are Triton's and not here: `TILELIFT_TRITON_TUTORIALS` names the folder `python/tutorials` of its sources.
//! Without it nothing is tested, and the tests say so.
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

/// The launches of `cases.txt`.
fn cases() -> Vec<(Case, Vec<Target>)> {
    let lines = include_str!("../../data/tutorials.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    let case = |line: &'static str| {
        let mut words = line.splitn(6, ' ');
        let mut word = || {
            words
                .next()
                .unwrap_or_else(|| panic!("`{line}` lacks a word"))
        };
        let (file, kernel) = (word(), word());
        let warps = word().parse().expect("a number of warps");
        let stages = word().parse().expect("a number of stages");
        let targets = match word() {
            "both" => vec![Target::SM_80, Target::SM_90],
            "new" => vec![Target::SM_90],
            other => panic!("`{other}` are no targets"),
        };
        (Case::new(file, kernel, word(), warps, stages), targets)
    };
    lines.map(case).collect()
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
            for &target in targets {
                if let Err(e) = compiled(&module, case, target) {
                    let (kernel, signature) = (case.kernel, &case.signature);
                    failures += &format!("{file} {kernel} \"{signature}\" {target}:\n{e}\n");
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
