//! The same kernel gives the same bytes: whatever was compiled before, on whichever thread, in whichever process.

use crate::common::kernel_set;
use std::sync::OnceLock;

use crate::common::data::Random;
use tilelift::compile::{CompiledKernel, compile};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};

/// What users run: no verification between passes.
const OPTIONS: Options = Options {
    verify_passes: false,
    ..Options::DEFAULT
};

/// Rounds over the kernels; each thread takes its share.
const ROUNDS: usize = 100;
const THREADS: usize = 4;

/// A kernel, a target, and what the first compilation gave.
struct Sample {
    name: String,
    func: TileFunction,
    target: Target,
    kernel: CompiledKernel,
}

fn compiled(func: &TileFunction, target: Target) -> CompiledKernel {
    match compile(func, target, &OPTIONS) {
        Ok(kernel) => kernel,
        Err(error) => panic!("{error}\n{func}"),
    }
}

/// Every kernel of `common`, each for one target in turn.
fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let targets = Target::ALL.into_iter().cycle();
        let kernels = kernel_set::kernels().into_iter().zip(targets);
        kernels
            .map(|((name, func), target)| Sample {
                name,
                kernel: compiled(&func, target),
                func,
                target,
            })
            .collect()
    })
}

/// The samples whose recompilation is cheap; nine of ten.
fn small() -> Vec<&'static Sample> {
    let mut all: Vec<&Sample> = samples().iter().collect();
    all.sort_by_key(|sample| sample.kernel.ptx.len());
    all.truncate(all.len() * 9 / 10);
    all
}

/// Compiles samples in a random order and compares text, description and counts.
fn round(samples: &[&Sample], seed: u64) {
    let mut random = Random(seed);
    let mut order: Vec<&Sample> = samples.to_vec();
    for i in (1..order.len()).rev() {
        order.swap(i, (random.bits() % (i as u64 + 1)) as usize);
    }
    for sample in order {
        let kernel = compiled(&sample.func, sample.target);
        assert!(
            kernel == sample.kernel,
            "{} for {} differs:\n{}\n{}",
            sample.name,
            sample.target,
            sample.kernel.ptx,
            kernel.ptx
        );
    }
}

#[test]
fn order_and_thread_do_not_matter() {
    let (small, all) = (small(), samples().iter().collect::<Vec<_>>());
    assert!(small.len() > 50, "{} kernels", small.len());
    let (small, all) = (&small, &all);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                round(all, thread as u64);
                for i in (thread..ROUNDS).step_by(THREADS) {
                    round(small, (THREADS + i) as u64);
                }
            });
        }
    });
}

/// A hash that starts from a random number of the process would show here.
#[test]
#[cfg(feature = "tool")]
fn another_process_writes_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("kernel.tir");
    let samples = samples();
    // One of three: a process takes longer than a compilation.
    for sample in samples.iter().step_by(3) {
        std::fs::write(&path, sample.func.to_string()).expect("the folder is writable");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tilelift"))
            .args(["compile", "--target", &sample.target.to_string()])
            .arg(&path)
            .output()
            .expect("the command was built");
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{}: {err}", sample.name);
        assert!(
            out == sample.kernel.ptx,
            "{} for {} differs:\n{}\n{out}",
            sample.name,
            sample.target,
            sample.kernel.ptx
        );
    }
}
