//! Every op on every type for every target: what the compiler makes of it, whether the assembler takes it, and that
//! interpreter and emulator agree on edge cases.

mod kernels;

use crate::common::edges;
use crate::common::on_emu;
use crate::common::on_interp;
use crate::common::ptxas;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use self::kernels::{Domain, Judge, Kernel};
use crate::common::data::Random;
use crate::common::executor::HostArg;
use crate::common::package::{Batch, Package};
use tilelift::compile::{CompiledKernel, compile_with};
use tilelift::error::CompileError;
use tilelift::ir::function::ThreadFunction;
use tilelift::ir::ops::{ThreadOp, TileOp};
use tilelift::ir::types::{Scalar, ValueType};
use tilelift::num::{Overflow, Rounding};
use tilelift::pipeline::Snapshot;
use tilelift::settings::{Options, Target};

/// What a target makes of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Support {
    /// The op reaches instruction selection, which has a form for it.
    Yes,
    /// Passes write it with other ops.
    Software,
    /// It is refused.
    No,
}

impl Support {
    fn word(self) -> &'static str {
        match self {
            Support::Yes => "yes",
            Support::Software => "software",
            Support::No => "no",
        }
    }
}

/// A kernel compiled, and what became of its op.
fn build(kernel: &Kernel, target: Target) -> (Support, Result<CompiledKernel, CompileError>) {
    let mut thread = None;
    let result = compile_with(
        &kernel.func,
        target,
        &Options::DEFAULT,
        &mut |_, snapshot| {
            if let Snapshot::Thread(func) = snapshot {
                thread = Some(func.clone());
            }
        },
    );
    let support = match (&result, thread) {
        (Ok(_), Some(thread)) if is_lowered(kernel, &thread) => Support::Software,
        (Ok(_), _) => Support::Yes,
        (Err(_), _) => Support::No,
    };
    (support, result)
}

/// Whether the op is gone from what one thread does.
fn is_lowered(kernel: &Kernel, thread: &ThreadFunction) -> bool {
    let has = |op: ThreadOp, types: Option<[Scalar; 2]>| {
        thread.dfg.insts.values().any(|inst| {
            let scalar = |value| thread.dfg.ty(value).elem().scalar();
            let is_alike = types.is_none_or(|[from, to]| {
                inst.args.last().and_then(|&v| scalar(v)) == Some(from)
                    && inst.results.first().and_then(|&v| scalar(v)) == Some(to)
            });
            let has_attr = |attr| inst.attrs.contains(attr);
            let keeps_attrs = types.is_none() || kernel.attrs.iter().all(has_attr);
            inst.op == op && is_alike && keeps_attrs
        })
    };
    match kernel.op {
        TileOp::AtomicRmw => !has(ThreadOp::Atom, None),
        TileOp::AtomicCas => !has(ThreadOp::AtomCas, None),
        TileOp::Dot => !has(ThreadOp::Mma, None),
        op if kernel.is_arithmetic => {
            let from = kernel.inputs[kernel.inputs.len() - 1];
            let types = [from, kernel.outputs[0]];
            op.on_threads().is_none_or(|op| !has(op, Some(types)))
        }
        _ => false,
    }
}

/// Edge cases of a type, then numbers of ordinary size and any bits.
fn operand(scalar: Scalar, place: usize, index: usize, random: &mut Random) -> u64 {
    let edges = match scalar {
        Scalar::F16 => &edges::F16,
        Scalar::Bf16 => &edges::BF16,
        Scalar::F32 => &edges::F32,
        Scalar::F64 => &edges::F64,
        Scalar::F8E4M3 | Scalar::F8E5M2 => &edges::F8,
        _ => &edges::INT,
    };
    let at = match place {
        0 => index % 16,
        1 => index / 16 % 16,
        _ => (index / 16 + index) % 16,
    };
    // A fifth of the sets is random.
    let bits = if index % 5 == 4 {
        random.bits()
    } else {
        edges[at]
    };
    bits & u64::MAX >> (64 - scalar.bits())
}

/// Operand columns that the op defines a result for.
fn columns(kernel: &Kernel) -> Vec<Vec<u64>> {
    let mut random = Random(5);
    let mut columns = vec![Vec::new(); kernel.inputs.len()];
    for index in 0..kernel.count {
        for (place, &scalar) in kernel.inputs.iter().enumerate() {
            let mask = u64::MAX >> (64 - scalar.bits());
            let bits = operand(scalar, place, index, &mut random);
            let small = (index as f64 - 100.0) / 8.0;
            let bits = match (kernel.domain, place) {
                (Domain::Divisor, 1) if bits == 0 || bits == mask => 3,
                (Domain::Moderate, _) => {
                    let number = if place == 0 { small * small } else { small };
                    match scalar {
                        Scalar::F32 => u64::from((number as f32).to_bits()),
                        _ => number.to_bits(),
                    }
                }
                (Domain::Index, 1) => bits % kernel.count as u64,
                (Domain::Small, _) => {
                    let number = (random.bits() >> 40) as i64 % 8 - 4;
                    match scalar.format() {
                        Some(format) => {
                            format.from_f64(number as f64, Rounding::NearestEven, Overflow::Ieee)
                        }
                        None => number as u64 & mask,
                    }
                }
                (Domain::Angle, _) => u64::from((small as f32 / 4.0).to_bits()),
                _ => bits,
            };
            columns[place].push(bits);
        }
    }
    columns
}

fn bytes_of(scalar: Scalar, column: &[u64]) -> Vec<u8> {
    let size = scalar.bytes() as usize;
    let bytes = column
        .iter()
        .flat_map(|x| x.to_le_bytes().into_iter().take(size));
    bytes.collect()
}

/// Whether two results are the same as the op's kind asks.
fn agree(scalar: Scalar, judge: Judge, a: u64, b: u64) -> bool {
    if a == b || judge == Judge::Free {
        return true;
    }
    let Some(format) = scalar.format() else {
        return false;
    };
    let (x, y) = (format.to_f64(a), format.to_f64(b));
    if x.is_nan() || y.is_nan() {
        return x.is_nan() && y.is_nan();
    }
    if judge == Judge::Absolute {
        return (x - y).abs() <= (-20f64).exp2();
    }
    // Some functions take subnormal numbers for 0.
    let is_tiny = |v: f64| scalar == Scalar::F32 && v.abs() < f64::from(f32::MIN_POSITIVE);
    judge == Judge::Near && (a.abs_diff(b) <= 4 || is_tiny(x) && is_tiny(y))
}

/// The buffers of a launch: inputs, then outputs.
fn arguments(kernel: &Kernel, columns: &[Vec<u64>]) -> Vec<HostArg> {
    let inputs = kernel.inputs.iter().zip(columns);
    let inputs = inputs.map(|(&s, column)| HostArg::Buffer(bytes_of(s, column)));
    let output = |s: &Scalar| HostArg::Output(kernel.count * s.bytes() as usize);
    inputs.chain(kernel.outputs.iter().map(output)).collect()
}

/// Runs a kernel on interpreter and emulator; what they differ in.
fn differences(kernel: &Kernel, compiled: &CompiledKernel) -> Result<(), String> {
    let columns = columns(kernel);
    let args = arguments(kernel, &columns);
    let ours = match kernel.judge {
        Judge::Copy => vec![args[0].clone(); 2],
        _ => on_interp::run(&kernel.func, [1, 1, 1], &args)?,
    };
    let theirs = on_emu::run(compiled, [1, 1, 1], &args)?;
    let bytes =
        |args: &[HostArg]| -> Vec<u8> { args.iter().flat_map(|a| a.bytes().to_vec()).collect() };
    compare(kernel, &columns, &bytes(&ours), &bytes(&theirs))
}

/// Compares what two executors left in all buffers.
fn compare(
    kernel: &Kernel,
    columns: &[Vec<u64>],
    ours: &[u8],
    theirs: &[u8],
) -> Result<(), String> {
    let word = |chunk: &[u8]| {
        let bytes = chunk.iter().rev();
        bytes.fold(0, |n, &byte| n << 8 | u64::from(byte))
    };
    let mut start = 0;
    for (place, &scalar) in kernel.inputs.iter().chain(&kernel.outputs).enumerate() {
        let size = scalar.bytes() as usize;
        for index in 0..kernel.count {
            let at = start + index * size..start + (index + 1) * size;
            let (our, their) = (word(&ours[at.clone()]), word(&theirs[at]));
            if !agree(scalar, kernel.judge, our, their) {
                let operands: Vec<u64> = columns.iter().map(|column| column[index]).collect();
                return Err(format!(
                    "buffer {place}, element {index} of {operands:x?}: {our:#x} and {their:#x}"
                ));
            }
        }
        start += size * kernel.count;
    }
    Ok(())
}

/// Assembles the kernels of a target.
fn assemble(batch: &Batch, target: Target) {
    if let Some(text) = batch.module(target) {
        // Only whether it is accepted matters, so nothing is optimised.
        ptxas::assemble_with(&text, &target.to_string(), &["-O0"]);
    }
}

/// The generations of targets on which the kernels run; those between differ in nothing that the emulator knows.
const RUN_ON: [Target; 4] = [Target::SM_75, Target::SM_80, Target::SM_89, Target::SM_90A];

/// `TARGETS.md` says for each op, type and target what the compiler does; `BLESS=1` rewrites it.
#[test]
fn every_op_type_and_target() {
    let kernels = kernels::kernels();
    let mut rows: Vec<(String, String, Vec<Support>)> = Vec::new();
    let mut refusals: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut batches: Vec<Batch> = Target::ALL.iter().map(|_| Batch::default()).collect();
    let mut failures = String::new();
    for kernel in &kernels {
        let mut name = format!("`{}`", kernel.op);
        if !kernel.variant.is_empty() {
            name += &format!(" {}", kernel.variant);
        }
        let mut supports = Vec::new();
        for (target, batch) in Target::ALL.into_iter().zip(&mut batches) {
            let (support, result) = build(kernel, target);
            supports.push(support);
            match result {
                Ok(compiled) => {
                    batch.add(&compiled);
                    if RUN_ON.contains(&target)
                        && let Err(problem) = differences(kernel, &compiled)
                    {
                        let types = &kernel.types;
                        let _ = writeln!(failures, "{name} of {types} on {target}: {problem}");
                    }
                }
                Err(error) => {
                    assert!(
                        !matches!(error, CompileError::Internal { .. }),
                        "{name} of {} on {target}: {error}",
                        kernel.types
                    );
                    let place = format!("{name} of {} on {target}", kernel.types);
                    refusals.entry(error.to_string()).or_default().push(place);
                }
            }
        }
        rows.push((name, kernel.types.clone(), supports));
    }
    assert!(failures.is_empty(), "\n{failures}");
    std::thread::scope(|scope| {
        for (target, batch) in Target::ALL.into_iter().zip(&batches) {
            scope.spawn(move || assemble(batch, target));
        }
    });
    let table = table(&rows, &refusals);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/TARGETS.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &table).expect("writable");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(listed == table, "BLESS=1 rewrites TARGETS.md:\n{table}");
}

/// With `TILELIFT_HARDWARE=DIR` writes there what `tests/common/gpu.py` runs on a GPU. Once that wrote `device.txt` there,
/// compares instead.
#[test]
fn a_gpu_agrees_with_the_emulator() {
    let Some(folder) = std::env::var_os("TILELIFT_HARDWARE") else {
        eprintln!("skipped: TILELIFT_HARDWARE names no folder");
        return;
    };
    let folder = Path::new(&folder);
    let (mut batch, mut package) = (Batch::default(), Package::default());
    let (mut failures, mut closer) = (String::new(), 0);
    let is_done = folder.join("device.txt").exists();
    for kernel in &kernels::kernels() {
        let (_, result) = build(kernel, Target::SM_90);
        let compiled = result.expect("the table lists what is refused");
        let columns = columns(kernel);
        let args = arguments(kernel, &columns);
        let after = on_emu::run(&compiled, [1, 1, 1], &args).expect("the other test runs it");
        if !is_done {
            package.launch(&compiled, 0, [1, 1, 1], &args, &after);
            batch.add(&compiled);
            continue;
        }
        let name = &compiled.meta.name;
        if let Ok(bytes) = std::fs::read(folder.join(format!("{name}.bin"))) {
            closer += 1;
            let emulated: Vec<u8> = after.iter().flat_map(|arg| arg.bytes().to_vec()).collect();
            if let Err(problem) = compare(kernel, &columns, &emulated, &bytes) {
                let Kernel {
                    op, variant, types, ..
                } = kernel;
                let _ = writeln!(failures, "{op} {variant} of {types}: {problem}");
            }
        }
    }
    if is_done {
        eprintln!("{closer} kernels left other bits than on the emulator");
        assert!(failures.is_empty(), "\n{failures}");
        return;
    }
    package.module(batch.module(Target::SM_90).unwrap_or_default());
    package.write(folder);
}

fn table(
    rows: &[(String, String, Vec<Support>)],
    refusals: &BTreeMap<String, Vec<String>>,
) -> String {
    let mut out = String::from(
        "# Ops, types and targets\n\n\
         Written by `tests/compiler/op_targets`, which compiles a kernel for each row and target, assembles it with `ptxas`, and compares\n\
         interpreter and emulator on edge cases; `BLESS=1` rewrites it. *yes*: the op reaches instruction selection, which\n\
         has a form for it. *software*: passes write it with other ops (`legalize`, `lower_math`; for atomics a loop of\n\
         `atomic_cas`, for `dot` sums of products in place of the units for matrices). *no*: it is refused, with the error that stands below the table.\n\n\
         With `TILELIFT_HARDWARE` the kernels go to a GPU. On an H100 (2026-11-21) the 895 for sm_90, of every op here, gave what the\n\
         emulator gives: in every bit, or within 4 units for ops that the op table gives a bound.\n\n",
    );
    let targets: Vec<String> = Target::ALL.iter().map(Target::to_string).collect();
    let _ = writeln!(out, "| op | types | {} |", targets.join(" | "));
    let _ = writeln!(out, "|---|---|{}", "---|".repeat(targets.len()));
    let mut done: Vec<(&str, &[Support])> = Vec::new();
    for (name, _, supports) in rows {
        if done.contains(&(name, supports)) {
            continue;
        }
        done.push((name, supports));
        let mut types: Vec<&str> = Vec::new();
        for (n, of, s) in rows {
            if n == name && s == supports && !types.contains(&of.as_str()) {
                types.push(of);
            }
        }
        let words: Vec<&str> = supports.iter().map(|s| s.word()).collect();
        let _ = writeln!(
            out,
            "| {name} | {} | {} |",
            types.join(", "),
            words.join(" | ")
        );
    }
    if !refusals.is_empty() {
        out += "\nRefused:\n\n";
        for (error, places) in refusals {
            let _ = writeln!(out, "- {error}: {}", places.join(", "));
        }
    }
    out
}
