//! The library of the Triton language: programs in `tests/data/triton/library`, one or more for each function, run on interpreter
//! and emulator.
//!
//! A program is a kernel of a Python file with comments of this form before it:
//!
//! ```text
//! # case KERNEL | PARAMETER=WHAT .. | OPTION | ..      arguments, in the order of the parameters
//! # case KERNEL/WORD | ..                              the same, with `WORD` for `FUNCTION` in the file
//! # prints LINE                                        what it reports when it runs, line by line
//! # covers FEATURE, ..                                 what real kernels use and this one executes (see `coverage`)
//! ```
//!
//! `WHAT` is a buffer `fp32[64]` that is written, or `fp32[64]:DATA` that is read or both; a descriptor
//! `desc[8x4]:fp32[32x16]:DATA`; a number `i32:5`; else a constant. Options are `ulp N`, `abs X` and `rel X` (without one,
//! results are equal bit for bit, one NaN to another), `warps N`, `grid X[,Y[,Z]]`, `target NAME`, `debug`, `emulator` (the
//! interpreter cannot run it).
//!
//! What must come out stands in a `.txt` file beside the program's: made by `tests/data/triton/library.py`, which runs the same
//! programs in Triton's interpreter, or has another reference for them.

mod case;
mod coverage;
mod data;
mod every_type;
mod run;
mod standard;

use std::path::{Path, PathBuf};

use self::case::File;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/triton/library")
}

/// The programs of all files.
fn files() -> Vec<File> {
    let entries = std::fs::read_dir(folder()).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    paths.sort();
    paths.iter().map(|path| File::read(path)).collect()
}

/// Runs the programs of a file.
fn check(name: &str) {
    let file = File::read(&folder().join(format!("{name}.py")));
    let only = std::env::var("CASE").ok();
    let mut failures = Vec::new();
    for case in &file.cases {
        if only.as_ref().is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        if let Err(problem) = run::run(&file, case) {
            failures.push(format!("{name}.py:{}: {}: {problem}", case.line, case.name));
        }
    }
    let (failed, all) = (failures.len(), file.cases.len());
    assert!(
        failures.is_empty(),
        "{failed} of {all}:\n{}",
        failures.join("\n")
    );
}

/// One test for each file, so that they run side by side.
macro_rules! suites {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_file_is_run() {
            let names: Vec<String> = files().into_iter().map(|file| file.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}
suites! { atomics, descriptors, device, libdevice, math, memory, order, products, random, reductions, rounding, shapes, syntax, traps, types }
