//! Measures the errors of the accurate functions and prints the table of `src/tile/lower_math/ULP.md`.
//!
//! ```text
//! cargo run --release --example ulp                  the table, by samples
//! cargo run --release --example ulp -- sweep sin     all 2^32 arguments of a function of one f32
//! cargo run --release --example ulp -- sweep sin 64  every 64th of them
//! cargo run --example ulp -- kernels DIR             kernels for `tests/data/ulp_gpu/gpu.py`
//! cargo run --example ulp -- gpu                     the table of what that measured, which `tests/data/ulp_gpu/measured.txt` holds
//! ```

#[path = "../tests/common/ulp.rs"]
mod ulp;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tilelift::compile::compile;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};
use ulp::Function;

/// Samples of each function for the table.
const SAMPLES: [usize; 2] = [500_000, 8_000];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            print!("{}{}", table(SAMPLES), gpu_table());
            ExitCode::SUCCESS
        }
        ["gpu"] => {
            print!("{}", gpu_table());
            ExitCode::SUCCESS
        }
        ["kernels", folder] => kernels(Path::new(folder)),
        ["sweep", name] => sweep(name, 1),
        ["sweep", name, step] => match step.parse() {
            Ok(step) => sweep(name, step),
            Err(_) => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: ulp [sweep FUNCTION [STEP] | kernels DIR | gpu]");
    ExitCode::FAILURE
}

/// Writes the kernels that a GPU runs, and `functions.txt`: the edge cases of both types, then a line for each
/// function with label, type, file, kernel, operands, arguments and threads of a program, bound, range, and the name of
/// the reference.
fn kernels(folder: &Path) -> ExitCode {
    const BLOCK: usize = 1024;
    const WARPS: u32 = 8;
    let mut lines = String::new();
    for scalar in [Scalar::F32, Scalar::F64] {
        let digits = 2 * scalar.bytes() as usize;
        let edges = ulp::edges(scalar);
        let edges: Vec<String> = edges.iter().map(|x| format!("{x:0digits$x}")).collect();
        lines += &format!("{scalar} {}\n", edges.join(" "));
    }
    let functions = [ulp::functions(), ulp::machine_functions()].concat();
    for function in &functions {
        for (place, scalar) in [Scalar::F32, Scalar::F64].into_iter().enumerate() {
            let name = function.op_name();
            let reference = match function.name {
                "lgamma (below 0)" => "lgamma_below",
                _ => name,
            };
            // A function of one f32 is tried with all numbers at once.
            let again = name != function.name && name == reference && scalar == Scalar::F32;
            let Some(bound) = function.bounds[place].filter(|_| !again) else {
                continue;
            };
            let func = function.build(name, scalar, BLOCK, WARPS);
            let kernel = match compile(&func, Target::SM_90, &Options::DEFAULT) {
                Ok(kernel) => kernel,
                Err(error) => {
                    eprintln!("{name}: {error}");
                    return ExitCode::FAILURE;
                }
            };
            let file = format!("{name}_{scalar}.ptx");
            if let Err(error) = std::fs::write(folder.join(&file), kernel.ptx) {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
            let [low, high] = function.range;
            lines += &format!(
                "{};{scalar};{file};{};{};{BLOCK};{};{bound};{low};{high};{reference}\n",
                function.name,
                kernel.meta.name,
                function.operands(),
                32 * WARPS
            );
        }
    }
    match std::fs::write(folder.join("functions.txt"), lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("functions.txt: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Every `step`th f32 as the argument, on all cores.
fn sweep(name: &str, step: u64) -> ExitCode {
    let functions = ulp::functions();
    let found = functions
        .iter()
        .find(|f| f.name == name && f.operands() == 1);
    let Some(function) = found else {
        eprintln!("no function of one number is called `{name}`");
        return ExitCode::FAILURE;
    };
    let next = AtomicU64::new(0);
    let worst = Mutex::new((0.0, 0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| sweep_batches(function, step.max(1), &next, &worst));
        }
    });
    let (error, bits) = worst.into_inner().expect("no thread panics under the lock");
    let x = f32::from_bits(bits as u32);
    println!("| `{name}` | f32 | {error:.4} | {x:e} ({bits:#010x}) | every {step} of 2^32 |");
    ExitCode::SUCCESS
}

/// Takes ranges of arguments until there are none.
fn sweep_batches(function: &Function, step: u64, next: &AtomicU64, worst: &Mutex<(f64, u64)>) {
    const RANGE: u64 = 1 << 16;
    let func = function.lowered(Scalar::F32);
    loop {
        let first = next.fetch_add(RANGE, Ordering::Relaxed) * step;
        if first > u64::from(u32::MAX) {
            return;
        }
        let column: Vec<u64> = (0..RANGE)
            .map(|i| first + i * step)
            .take_while(|&bits| bits <= u64::from(u32::MAX))
            .collect();
        let found = ulp::evaluate(&func, Scalar::F32, &[&column]);
        let mut local = (0.0, 0);
        for (&bits, &y) in column.iter().zip(&found) {
            let x = ulp::number(Scalar::F32, bits);
            let error = function.error(Scalar::F32, [x, 0.0], y);
            if error > local.0 {
                local = (error, bits);
            }
        }
        let mut worst = worst.lock().expect("no thread panics under the lock");
        if local.0 > worst.0 {
            *worst = local;
        }
    }
}

/// The functions and their errors as a table in Markdown, by so many samples of f32 and f64.
fn table(samples: [usize; 2]) -> String {
    let mut out = String::from(
        "# Errors of the accurate functions\n\n\
         Printed by `cargo run --release --example ulp`: the largest error in units of the last place on samples (edge cases,\n\
         all magnitudes, and the range where the function bends), of what the interpreter computes with the lowered function.\n\
         The machine computes the same bits, but for `exp_precise`, `exp10`, `tanh`, `erf`, `sinh`, `cosh` and `asinh` of f32, in which its\n\
         power of two and reciprocal (within 2 and 1 ulp) are taken as rounded correctly.\n\n\
         | function | type | bound | measured | at |\n|---|---|---|---|---|\n",
    );
    for function in ulp::functions() {
        for (place, scalar) in [Scalar::F32, Scalar::F64].into_iter().enumerate() {
            let Some(bound) = function.bounds[place] else {
                continue;
            };
            let (error, args) = ulp::worst(&function, scalar, samples[place]);
            let at: Vec<String> = args
                .iter()
                .map(|&bits| format!("{:e}", ulp::number(scalar, bits)))
                .collect();
            let at = if error == 0.0 {
                String::new()
            } else {
                at.join(", ")
            };
            let name = function.name;
            out += &format!("| `{name}` | {scalar} | {bound} | {error:.3} | {at} |\n");
        }
    }
    out
}

/// What a GPU computes, against CUDA's functions of double, from `tests/data/ulp_gpu/measured.txt`.
fn gpu_table() -> String {
    let (device, _) = ulp::on_gpu::measured();
    let mut out = format!(
        "{}\n\n\
         {device} `cargo run --example ulp -- kernels DIR`, then `tests/data/ulp_gpu/gpu.py DIR` there: what the machine makes of our\n\
         PTX, against CUDA's functions of double on the same GPU; a function of one f32 with all 2^32 arguments, others with the\n\
         edge cases against each other and samples. In f32 the error is in units of the last place, against the exact number:\n\
         tables that count from the correctly rounded result give up to half a unit less. The last column is the error of\n\
         CUDA's own function of float (of the intrinsic such as `__expf` for `exp`, the `approx` ops and `fdiv`). For `log2_approx`\n\
         the unit is the op's bound, for `sin_approx` and `cos_approx` it is 2^-23, within 2 pi. In f64 the error is computed with\n\
         140 bits (for `erfc`, `erfinv` and `lgamma` by the host) for the arguments where we differ most from CUDA; the last\n\
         column is by how many units.\n\n\
         | function | type | arguments | bound | measured | at | CUDA |\n|---|---|---|---|---|---|---|\n",
        ulp::on_gpu::GPU_TITLE
    );
    let functions = [ulp::functions(), ulp::machine_functions()].concat();
    for (row, line) in ulp::on_gpu::measured_rows(&functions) {
        let bound = row.function.bounds[usize::from(row.scalar == Scalar::F64)];
        if bound.is_none_or(|bound| row.error > bound) {
            eprintln!("beyond its bound, see {:x?}: {line}", row.cases);
        }
        out += &line;
        out.push('\n');
    }
    out
}
