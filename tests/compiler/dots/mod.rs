//! Random products of matrices: interpreter and emulator agree, and a GPU with them.
//!
//! Small integers agree bit for bit. Otherwise a sum may differ by (K + 2) u S, with u the unit of the accumulator's type and S
//! the sum of the absolute values of the products, which the interpreter computes from the absolute values of the data; one
//! rounding to the type of the result is added, and for a chained product those of its factors.
//!
//! `TILELIFT_DOTS=2000` says how many cases there are, `TILELIFT_DOTS=17..18` that it is case 17, and
//! `TILELIFT_DOTS_TARGET=sm_70` that all are for this target.

mod case;
mod kernel;
mod special;

use crate::common::on_emu;
use crate::common::on_interp;
use crate::common::ptxas;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use self::case::{Case, Chain, GROUPS};
use crate::common::executor::HostArg;
#[cfg(feature = "serde")]
use crate::common::launches::{Close, Folder, Given, Launched};
use crate::common::package::Batch;
use tilelift::compile::{CompiledKernel, compile};
use tilelift::error::CompileError;
use tilelift::ir::attrs::DotPrecision;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Asserts, Options, Target};

/// Cases without `TILELIFT_DOTS`.
const FEW: u64 = 48;
/// The same for warpgroups: all their types, with the left operand in either place, are among them.
const GROUP_FEW: u64 = 160;

/// Most bytes of a case's buffers that are written for a GPU.
#[cfg(feature = "serde")]
const MOST_BYTES: usize = 1 << 15;

/// Half the distance from 1 to the next number.
fn unit(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => (-11f64).exp2(),
        Scalar::Bf16 => (-8f64).exp2(),
        Scalar::F32 => (-24f64).exp2(),
        _ => (-53f64).exp2(),
    }
}

/// What part of the sum of absolute values the result may differ by.
fn bound(case: &Case) -> f64 {
    let sum = unit(case.sum);
    let length = (case.block[2] * case.steps) as f64;
    let parts = match case.precision {
        // Each large part lacks 2^-10 of its number, of which the small part lacks as much again; the product of two small parts is left out.
        DotPrecision::Tf32x3 if case.imprecise.is_none() => 3.0 * (-20f64).exp2(),
        // Each step of 32 cuts 33 terms and their sum to 2^-13.
        _ if case.imprecise.is_some() => length / 32.0 * 34.0 * (-13f64).exp2(),
        _ => 0.0,
    };
    let first = (length + 2.0) * sum + parts;
    let second = match case.chain {
        Chain::None => return first,
        Chain::Left => case.block[1],
        Chain::Right => case.block[0],
        Chain::Inside => case.block[1] * case.steps,
    };
    // Both sides round what links the products.
    first + 2.0 * unit(case.link) + (second as f64 + 2.0) * sum + parts
}

fn numbers(scalar: Scalar, bytes: &[u8]) -> impl Iterator<Item = f64> {
    let words = bytes.chunks(scalar.bytes() as usize).map(|chunk| {
        let bytes = chunk.iter().rev();
        bytes.fold(0, |n, &byte| n << 8 | u64::from(byte))
    });
    words.map(move |bits| match scalar.format() {
        Some(format) => format.to_f64(bits),
        None => bits as f64,
    })
}

/// How much a sum may differ of which all products and sums are so large at most.
fn tolerance(case: &Case, most: f64) -> f64 {
    // The smallest numbers of f16 are further apart.
    (bound(case) + 2.0 * unit(case.result)) * most + (-24f64).exp2()
}

/// Compares results, given what all products and sums are at most.
fn compare(case: &Case, ours: &[u8], theirs: &[u8], most: &[u8]) -> Result<(), String> {
    if case.exact {
        let first = ours.iter().zip(theirs).position(|(a, b)| a != b);
        return match first {
            None => Ok(()),
            Some(at) => {
                let size = case.result.bytes() as usize;
                let (at, start) = (at / size, at / size * size);
                let pick = |bytes: &[u8]| numbers(case.result, &bytes[start..start + size]).next();
                let pair = (pick(ours), pick(theirs));
                Err(format!("element {at} is {pair:?}"))
            }
        };
    }
    let all = numbers(case.result, ours).zip(numbers(case.result, theirs));
    for (i, ((a, b), most)) in all.zip(numbers(case.result, most)).enumerate() {
        let tolerance = tolerance(case, most);
        if !(tolerance.is_finite() && (a - b).abs() <= tolerance) {
            return Err(format!(
                "element {i} is {a:e} and {b:e}, within {tolerance:e}"
            ));
        }
    }
    Ok(())
}

/// A case that was run.
struct Done {
    kernel: CompiledKernel,
    args: Vec<HostArg>,
    /// The result on the interpreter and on the emulator, and that of the absolute values.
    ours: Vec<u8>,
    emulated: Vec<HostArg>,
    most: Vec<u8>,
}

/// Where the result stands among the arguments.
const RESULT: usize = 4;

/// Runs a case; none if it is too large for its target.
fn run(case: &Case) -> Result<Option<Done>, String> {
    run_with(case, kernel::arguments(case))
}

/// Runs a case on these data and their absolute values.
fn run_with(case: &Case, [args, absolute]: [Vec<HostArg>; 2]) -> Result<Option<Done>, String> {
    let func = kernel::kernel(case);
    let grid = [case.grid, 1, 1];
    let compiled = |diversity| {
        let options = Options {
            diversity,
            ..Options::DEFAULT
        };
        compile(&func, case.target, &options)
    };
    // By choices that nobody likes a kernel may take too much.
    let seed = (case.number % 3 == 2).then_some(case.number);
    let kernel = match compiled(seed) {
        Err(
            CompileError::SharedMemory { .. }
            | CompileError::Operations { .. }
            | CompileError::Elements { .. },
        ) if seed.is_some() => compiled(None),
        result => result,
    };
    let kernel = match kernel {
        Ok(kernel) => kernel,
        Err(CompileError::SharedMemory { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let interpreted =
        |args| on_interp::run(&func, grid, args).map_err(|e| format!("interpreter: {e}"));
    let ours = interpreted(&args)?[RESULT].bytes().to_vec();
    let most = match case.exact {
        true => Vec::new(),
        false => interpreted(&absolute)?[RESULT].bytes().to_vec(),
    };
    let emulated = on_emu::run(&kernel, grid, &args).map_err(|e| format!("emulator: {e}"))?;
    Ok(Some(Done {
        kernel,
        args,
        ours,
        emulated,
        most,
    }))
}

/// The cases that `TILELIFT_DOTS` asks for, or as many as `few`.
fn wanted(few: u64) -> Range<u64> {
    let Ok(text) = std::env::var("TILELIFT_DOTS") else {
        return 0..few;
    };
    let number = |text: &str| text.parse().expect("a number or two with `..` between");
    match text.split_once("..") {
        Some((first, last)) => number(first)..number(last),
        None => 0..number(&text),
    }
}

/// The same of the cases for warpgroups.
fn wanted_of_groups() -> Range<u64> {
    let wanted = wanted(GROUP_FEW);
    GROUPS + wanted.start..GROUPS + wanted.end
}

/// The target that `TILELIFT_DOTS_TARGET` asks for.
fn wanted_target() -> Option<Target> {
    let text = std::env::var("TILELIFT_DOTS_TARGET").ok()?;
    Some(Target::parse(&text).expect("the name of a target"))
}

/// Runs those of the cases that `is_wanted` names on all cores, hands over what became of them, and fails with the problems.
/// Cases that do not fit into the target's shared memory are left out, of which there may be few.
fn run_all(
    wanted: impl Iterator<Item = u64> + Send,
    is_wanted: impl Fn(&Case) -> bool + Sync,
    on_done: impl Fn(&Case, Done) -> Result<(), String> + Sync,
) {
    let target = wanted_target();
    let wanted: Mutex<_> = Mutex::new(wanted);
    let (failures, large, all) = (Mutex::new(Vec::new()), AtomicU64::new(0), AtomicU64::new(0));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let next = wanted.lock().expect("no thread panics with it").next();
            let Some(number) = next else {
                break;
            };
            all.fetch_add(1, Ordering::Relaxed);
            let case = match target {
                Some(target) => Case::new(number).on(target),
                None => Case::new(number),
            };
            if !is_wanted(&case) {
                continue;
            }
            let problem = match run(&case) {
                Ok(Some(done)) => on_done(&case, done).err(),
                Ok(None) => {
                    large.fetch_add(1, Ordering::Relaxed);
                    None
                }
                Err(problem) => Some(problem),
            };
            if let Some(problem) = problem {
                let mut failures = failures.lock().expect("no thread panics with it");
                failures.push(format!("{problem}\n    {case:?}"));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("no thread panicked");
    let (few, all) = (failures.len(), all.into_inner());
    assert!(
        failures.is_empty(),
        "{few} of {all} cases:\n{}",
        failures.join("\n")
    );
    assert!(
        large.into_inner() <= all / 50,
        "too many cases are too large"
    );
}

#[test]
fn interpreter_and_emulator_agree() {
    agree(wanted(FEW), |_| ());
}

/// Both operands in shared memory, and the left one in registers, of every type that has such units here.
#[test]
fn units_of_four_warps_agree() {
    let forms = Mutex::new(BTreeSet::new());
    agree(wanted_of_groups(), |ptx| {
        let found = ptx.lines().filter_map(form_of_group);
        forms
            .lock()
            .expect("no thread panics with it")
            .extend(found);
    });
    let forms = forms.into_inner().expect("no thread panicked");
    let types = [
        "k16.f32.f16.f16",
        "k16.f32.bf16.bf16",
        "k8.f32.tf32.tf32",
        "k32.s32.s8.s8",
        "k32.f32.e4m3.e4m3",
        "k32.f32.e5m2.e5m2",
        "k32.f16.e5m2.e4m3",
    ];
    let wanted = wanted_of_groups();
    let is_few = wanted.end - wanted.start < GROUP_FEW;
    for ty in types {
        for in_registers in [false, true] {
            let form = (ty.to_owned(), in_registers);
            assert!(is_few || forms.contains(&form), "no {form:?} in {forms:?}");
        }
    }
}

/// The types of a product by four warps with the extent of its sums, and whether its left operand is in registers.
fn form_of_group(line: &str) -> Option<(String, bool)> {
    let (_, rest) = line.split_once("wgmma.mma_async.sync.aligned.m64n")?;
    let (head, operands) = rest.split_once(' ')?;
    let types = head.trim_start_matches(|c: char| c.is_ascii_digit());
    Some((types.to_owned(), operands.matches('{').count() == 2))
}

/// Interpreter and emulator agree on cases, and the assembler takes the first of them; `on_ptx` sees the text of all.
fn agree(wanted: Range<u64>, on_ptx: impl Fn(&str) + Sync) {
    let modules: Mutex<BTreeMap<Target, Batch>> = Mutex::default();
    run_all(
        wanted,
        |_| true,
        |case, done| {
            on_ptx(&done.kernel.ptx);
            // The assembler takes minutes for thousands.
            if case.number % GROUPS < FEW {
                let mut modules = modules.lock().expect("no thread panics with it");
                modules.entry(case.target).or_default().add(&done.kernel);
            }
            let emulated = done.emulated[RESULT].bytes();
            compare(case, &done.ours, emulated, &done.most)
        },
    );
    for (target, batch) in modules.into_inner().expect("no thread panicked") {
        if let Some(text) = batch.module(target) {
            // Only whether it is accepted matters, so nothing is optimised.
            ptxas::assemble_with(&text, &target.to_string(), &["-O0"]);
        }
    }
}

/// Ptxas (CUDA 13.0) writes products of 8-bit floats with other units for sm_90, and stores sums before it has read all
/// accumulators, so that a sum may only stand where its own accumulator stood. Found on an H100.
#[test]
fn sums_of_eight_bits_take_the_place_of_their_accumulators_alone() {
    let is_eight = |case: &Case| {
        let elem = case.operand.unwrap_or(case.factors[0].stored);
        matches!(elem, Scalar::F8E4M3 | Scalar::F8E5M2) && 89 <= case.target.sm
    };
    let mut products = 0;
    for case in (0..).map(Case::new).filter(is_eight).take(40) {
        let func = kernel::kernel(&case);
        let Ok(compiled) = compile(&func, case.target, &Options::DEFAULT) else {
            continue;
        };
        let is_product = |line: &&str| line.contains("mma.sync") && line.contains("k32.row.col.f");
        for line in compiled.ptx.lines().filter(is_product) {
            let lists: Vec<Vec<&str>> = line
                .split('{')
                .skip(1)
                .filter_map(|list| Some(list.split_once('}')?.0.split(", ").collect()))
                .collect();
            let [sums, left, right, accumulators] = &lists[..] else {
                panic!("four lists of registers in {line}");
            };
            for (i, sum) in sums.iter().enumerate() {
                let others = accumulators.iter().enumerate();
                let others = others.filter(|&(j, _)| i != j).map(|(_, other)| other);
                let mut all = left.iter().chain(right).chain(others);
                assert!(all.all(|other| other != sum), "{line} of {case:?}");
            }
            products += 1;
        }
    }
    assert!(products > 40, "{products} products");
}

/// Writes launches of the cases, which `fuzz/launches.py` executes on a GPU, to the folder that `TILELIFT_LAUNCHES` names.
#[cfg(feature = "serde")]
#[test]
fn launches_for_a_gpu_are_written() {
    let folder = Folder::new("dots");
    let can_run = |case: &Case| case.target.runs_on(9, 0);
    let both: Vec<u64> = match folder.is_wanted {
        true => wanted(FEW).chain(wanted_of_groups()).collect(),
        false => (0..4).chain(GROUPS..GROUPS + 4).collect(),
    };
    let (written, left_out) = (AtomicU64::new(0), AtomicU64::new(0));
    run_all(both.into_iter(), can_run, |case, mut done| {
        // The driver of a GPU with units for 8-bit floats has forgotten sm_70, but not its instructions.
        done.kernel.ptx = done
            .kernel
            .ptx
            .replace(".version 6.0\n.target sm_70", ".version 6.3\n.target sm_75");
        let poison = vec![0xa5; done.ours.len()];
        let args = done.args.iter().map(|arg| match arg {
            HostArg::Buffer(bytes) => Given::Buffer(bytes, 0),
            HostArg::Output(_) => Given::Buffer(&poison, 0),
            HostArg::I32(number) => Given::Number(u64::from(*number as u32)),
            HostArg::F32(number) => Given::Number(u64::from(number.to_bits())),
        });
        let args: Vec<Given<'_>> = args.collect();
        let held = |arg: &&HostArg| matches!(arg, HostArg::Buffer(_));
        let after: Vec<&[u8]> = done
            .emulated
            .iter()
            .filter(held)
            .map(HostArg::bytes)
            .collect();
        let bytes: usize = after.iter().map(|content| content.len()).sum();
        if MOST_BYTES < bytes {
            left_out.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let close = (!case.exact).then(|| Close {
            buffer: RESULT,
            element: case.result.to_string(),
            within: numbers(case.result, &done.most)
                .map(|most| tolerance(case, most))
                .collect(),
        });
        let options = Options {
            asserts: Asserts::Report,
            ..Options::DEFAULT
        };
        let bounded = compile(&kernel::kernel(case), case.target, &options).ok();
        let launched = Launched {
            kernel: &done.kernel,
            bounded: bounded.as_ref(),
            grid: [case.grid, 1, 1],
            args,
            after,
            close,
        };
        launched.write(&folder.path, &format!("k{}", case.number));
        written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let written = written.into_inner() as usize;
    println!("{written} launches, {} left out", left_out.into_inner());
    folder.check(written);
}
