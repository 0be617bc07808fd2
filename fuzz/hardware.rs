//! Generated kernels on several inputs each: interpreter and emulator, and a GPU with them.
//!
//! With `TILELIFT_HARDWARE=DIR` writes there what `gpu.py` beside this file runs on a GPU: `TILELIFT_FUZZ_KERNELS` kernels
//! (2,500) from `TILELIFT_FUZZ_SEED` (0) on, on 8 inputs each. Inputs are made from numbers on both sides and results are
//! compared by digest (`src/fuzzing/batch.rs`), so the package holds little more than PTX. With `TILELIFT_LAUNCH=SEED,INPUT`
//! writes the buffers that the emulator leaves of one launch, to be compared with those that `gpu.py` brought back.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tilelift::compile::CompiledKernel;
use tilelift::fuzzing::batch::{
    Tables, check, digest, emulate_launch, exact_kernel, is_small, launch_number, with_input,
};
use tilelift::fuzzing::generate::{Argument, Case, case};
use tilelift::fuzzing::{number, run};
use tilelift::ir::types::Scalar;
use tilelift::settings::Target;

/// Inputs of a kernel.
const INPUTS: u64 = 8;
/// Kernels of a module: the driver assembles modules side by side.
const IN_MODULE: usize = 12;
/// Most warp instructions of a launch that tools watch, which make it slower by orders of magnitude.
const MAX_WATCHED_STEPS: u64 = 8_000;

#[test]
fn other_inputs() {
    if std::env::var_os("TILELIFT_HARDWARE").is_some() {
        return;
    }
    let report = run("hardware", check);
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(report.passed > 0, "nothing was judged");
}

/// The number that the environment asks for; none if it asks for none.
fn asked(key: &str) -> Option<u64> {
    number(key).unwrap_or_else(|message| panic!("{message}"))
}

/// The targets whose PTX an H100's driver takes, the device's own most often.
const TARGETS: [Target; 8] = [
    Target::SM_90,
    Target::SM_90,
    Target::SM_90,
    Target::SM_90A,
    Target::SM_75,
    Target::SM_80,
    Target::SM_86,
    Target::SM_89,
];

/// The case of a seed as it is packed.
fn packed_case(seed: u64) -> Case {
    let mut case = case(seed);
    case.func.name = format!("k{seed}");
    // The lines are those of no file.
    case.options.line_info = false;
    case.target = TARGETS[(seed % 8) as usize];
    case
}

/// What the plan says of a kernel and its launches; none if it is not for the GPU.
fn plan(seed: u64, tables: &Tables) -> Option<(Case, CompiledKernel, String, u64)> {
    let case = packed_case(seed);
    let kernel = exact_kernel(&case)?;
    let (meta, [x, y, z]) = (&kernel.meta, case.grid);
    let mut lines = format!("{x} {y} {z} {} {}", meta.threads(), meta.shared);
    for arg in &case.args {
        let _ = match arg {
            Argument::Buffer(scalar, bytes) => {
                let count = bytes.len() / scalar.bytes() as usize;
                let small = u8::from(is_small(*scalar, bytes));
                write!(lines, " b:{scalar}:{small}:{count}")
            }
            Argument::Number(elem, _) => write!(lines, " n:{}", elem.bytes()),
        };
    }
    lines.push('\n');
    let mut most = 0;
    for input in 0..INPUTS {
        let launch = launch_number(seed, input);
        let other = with_input(&case, tables, launch);
        let (buffers, steps) = emulate_launch(&kernel, &other, false).ok()?;
        most = most.max(steps);
        let _ = write!(
            lines,
            "L {input} {launch:x} {:x}",
            digest(typed(&other, &buffers))
        );
        for arg in &other.args {
            if let Argument::Number(_, bits) = arg {
                let _ = write!(lines, " {bits:x}");
            }
        }
        lines.push('\n');
    }
    Some((case, kernel, lines, most))
}

/// Buffers with their types.
fn typed<'a>(case: &'a Case, buffers: &'a [Vec<u8>]) -> impl Iterator<Item = (Scalar, &'a [u8])> {
    let scalars = case.args.iter().filter_map(|arg| match arg {
        Argument::Buffer(scalar, _) => Some(*scalar),
        Argument::Number(..) => None,
    });
    scalars.zip(buffers.iter().map(Vec::as_slice))
}

/// Kernels of one target, to be one module.
#[derive(Default)]
struct Module {
    kernels: Vec<(CompiledKernel, String)>,
}

impl Module {
    /// One text: what stands outside of kernels once, then all kernels.
    fn text(&self, target: Target) -> String {
        let versions = self
            .kernels
            .iter()
            .map(|(kernel, _)| kernel.meta.ptx_version);
        let version = versions.max().unwrap_or(target.min_ptx());
        let mut globals: Vec<&str> = Vec::new();
        let mut text = String::new();
        for (kernel, _) in &self.kernels {
            let start = kernel.ptx.find(".visible .entry");
            let (head, body) = kernel
                .ptx
                .split_at(start.expect("every kernel has an entry"));
            let is_global =
                |line: &&str| line.starts_with(".extern") || line.starts_with(".visible");
            for line in head.lines().filter(is_global) {
                if !globals.contains(&line) {
                    globals.push(line);
                }
            }
            text += body;
        }
        let globals = globals.join("\n");
        format!(".version {version}\n.target {target}\n.address_size 64\n{globals}\n{text}")
    }
}

/// What `gpu.py` must know of a type.
fn type_line(scalar: Scalar, tables: &[Vec<u64>; 2]) -> String {
    let bytes = scalar.bytes();
    // NaNs are the numbers whose bits without the sign are above a limit.
    let (mask, limit, nan) = match scalar.format() {
        Some(format) => {
            let mask = u64::MAX >> (65 - scalar.bits());
            (
                mask,
                format.infinity.unwrap_or(format.max_finite),
                format.nan,
            )
        }
        None => (u64::MAX, u64::MAX, 0),
    };
    let mut line = format!("T {scalar} {bytes} {mask:x} {limit:x} {nan:x}");
    for entry in tables.iter().flatten() {
        let _ = write!(line, " {entry:x}");
    }
    line.push('\n');
    line
}

#[test]
fn a_gpu_agrees() {
    let Some(folder) = std::env::var_os("TILELIFT_HARDWARE") else {
        eprintln!("skipped: TILELIFT_HARDWARE names no folder");
        return;
    };
    let folder = Path::new(&folder);
    let tables = Tables::new(1);
    if let Ok(launch) = std::env::var("TILELIFT_LAUNCH") {
        return write_launch(folder, &tables, &launch);
    }
    let wanted = asked("TILELIFT_FUZZ_KERNELS").unwrap_or(2500) as usize;
    let next = AtomicU64::new(asked("TILELIFT_FUZZ_SEED").unwrap_or(0));
    let (done, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while done.load(Ordering::Relaxed) < wanted {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if let Some((case, kernel, lines, steps)) = plan(seed, &tables) {
                let count = 1 + done.fetch_add(1, Ordering::Relaxed);
                if count.is_multiple_of(100) {
                    eprintln!("{count} kernels, seed {seed}");
                }
                let mut found = found.lock().expect("no thread panics with it");
                found.push((seed, case.target, kernel, lines, steps));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner().expect("no thread panicked");
    found.sort_by_key(|(seed, target, ..)| (*target, *seed));
    let mut out = String::new();
    for (scalar, tables) in Scalar::ALL.into_iter().zip(&tables.entries) {
        out += &type_line(scalar, tables);
    }
    let mut modules: Vec<(Target, Module)> = Vec::new();
    for (_, target, kernel, lines, steps) in found {
        let fits = modules
            .last()
            .is_some_and(|(t, m)| *t == target && m.kernels.len() < IN_MODULE);
        if !fits {
            modules.push((target, Module::default()));
        }
        let number = modules.len() - 1;
        let watched = if steps <= MAX_WATCHED_STEPS { "w" } else { "-" };
        let _ = write!(out, "K {} {number} {watched} {lines}", kernel.meta.name);
        if let Some((_, module)) = modules.last_mut() {
            module.kernels.push((kernel, lines));
        }
    }
    let texts: Vec<String> = modules
        .iter()
        .map(|(target, module)| module.text(*target))
        .collect();
    std::fs::create_dir_all(folder).expect("the folder can be made");
    for (name, text) in [("kernels.ptx", texts.join("\0")), ("kernels.plan", out)] {
        std::fs::write(folder.join(name), text).expect("the folder can be written");
    }
}

/// Writes `launch.bin`: the buffers of a launch before and after, on the emulator.
fn write_launch(folder: &Path, tables: &Tables, launch: &str) {
    let (seed, input) = launch.split_once(',').expect("SEED,INPUT");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let (seed, input) = (number(seed), number(input));
    let case = packed_case(seed);
    let kernel = exact_kernel(&case).expect("it was packed");
    let other = with_input(&case, tables, launch_number(seed, input));
    let (buffers, _) = emulate_launch(&kernel, &other, false).expect("it ran before");
    std::fs::write(folder.join("launch.ptx"), &kernel.ptx).expect("writable");
    std::fs::write(folder.join("launch.tir"), case.func.to_string()).expect("writable");
    std::fs::write(folder.join("launch.bin"), buffers.concat()).expect("writable");
}
