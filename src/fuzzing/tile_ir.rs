//! The target `tile_ir`: generated kernels against every oracle there is.
//!
//! 1. A generated kernel verifies, and its text comes back the same.
//! 2. The interpreter runs it without a report.
//! 3. It compiles for its target (each case has one), or needs more shared memory than there is; the text compiles to the
//!    same bytes.
//! 4. After the passes on tiles the interpreter computes the same (where the IR leaves nothing open but what is fused; NaNs
//!    equal NaNs): up to contraction, across it with each `fma` taken apart (`fused_multiply_adds`), and from there on.
//! 5. The emulator, with every check on and under several seeds, leaves each buffer as the interpreter does after the
//!    passes: bit for bit, but that NaNs equal NaNs, whose bits the IR leaves open.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::fused_multiply_adds::across_fusion;
use super::generate::{Argument, Case, case};
use super::passes::{CONTRACTION, compare};
use super::reduce_case::reduce_case;
use crate::compile::{CompiledKernel, compile, compile_with};
use crate::emu;
use crate::error::{CompileError, panic_text};
use crate::interp;
use crate::ir::attrs::Attrs;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;
use crate::pipeline::Snapshot;
use crate::runtime::emulated;
use crate::settings::Options;
use crate::text::number::format_of;
use crate::text::parse::parse_tile;
use crate::text::print::print;
use crate::verify::verify;

/// Instructions that the interpreter may execute.
pub(super) const INTERPRETER_STEPS: u64 = 500_000;
/// Warp instructions that the emulator may execute.
const EMULATOR_STEPS: u64 = 20_000_000;
/// Schedules to try.
const SCHEDULES: u64 = 2;

/// What an oracle found: a name for the kind of failure, and the details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: &'static str,
    pub(super) details: String,
}

pub(super) enum Judgement {
    Passed(Vec<&'static str>),
    Skipped(&'static str),
    Failed(Failure),
}

/// Judges the case of a seed; a failure is shrunk.
pub fn check(seed: u64) -> Verdict {
    let case = match catch_unwind(|| case(seed)) {
        Ok(case) => case,
        Err(_) => return Verdict::Failed("the generator panicked".into()),
    };
    check_case(&case)
}

/// Judges a case; a failure is shrunk.
pub fn check_case(case: &Case) -> Verdict {
    verdict(case, judge)
}

/// What to say of a kernel that does not compile.
pub(super) fn refused(case: &Case, error: &CompileError) -> Result<Judgement, Failure> {
    match error {
        CompileError::SharedMemory { .. } => Ok(Judgement::Skipped("too much shared memory")),
        // Layouts that nobody likes may give few threads all the work.
        CompileError::Operations { .. } | CompileError::Elements { .. }
            if case.options.diversity.is_some() =>
        {
            Ok(Judgement::Skipped("too much for a thread"))
        }
        error => Err(fail("does not compile")(error.to_string())),
    }
}

/// Whether no oracle finds fault with a case.
pub fn is_sound(case: &Case) -> bool {
    matches!(judge(case), Judgement::Passed(_))
}

/// What an oracle says of a case; one that fails is reduced as long as it fails in the same way, and shown.
pub(super) fn verdict(case: &Case, judge: impl Fn(&Case) -> Judgement) -> Verdict {
    match judge(case) {
        Judgement::Passed(notes) => Verdict::Passed(notes),
        Judgement::Skipped(reason) => Verdict::Skipped(reason),
        Judgement::Failed(failure) => {
            let small = reduce_case(
                case,
                |case| matches!(judge(case), Judgement::Failed(found) if found.kind == failure.kind),
            );
            let details = match judge(&small) {
                Judgement::Failed(failure) => failure.details,
                Judgement::Passed(_) | Judgement::Skipped(_) => failure.details,
            };
            Verdict::Failed(format!("{}\n{details}\n{}", failure.kind, show(&small)))
        }
    }
}

/// What an oracle finds; a panic is a failure.
pub(super) fn guarded(judge: impl FnOnce() -> Result<Judgement, Failure>) -> Judgement {
    match catch_unwind(AssertUnwindSafe(judge)) {
        Ok(judged) => judged.unwrap_or_else(Judgement::Failed),
        Err(panic) => Judgement::Failed(panicked(&*panic)),
    }
}

/// The case as a file test, which says that its data are other numbers of the kind.
pub fn show(case: &Case) -> String {
    let args = case.func.param_names.iter().zip(&case.args);
    let args: Vec<String> = args
        .map(|(name, arg)| match arg {
            Argument::Buffer(scalar, bytes) => {
                let count = bytes.len() / scalar.bytes() as usize;
                format!("{name}={scalar}[{count}] uniform(1,-9,9) special")
            }
            Argument::Number(elem, bits) => format!("{name}={elem}:{bits:#x}"),
        })
        .collect();
    let [x, y, z] = case.grid;
    format!(
        "; {} {:?} exact {}; the case has other data, which its seed alone repeats\n; run: grid({x},{y},{z}) {}\n{}",
        case.target,
        case.options,
        case.exact,
        args.join(" "),
        print(&case.func)
    )
}

/// Runs every oracle on a case; a panic is a failure.
pub(super) fn judge(case: &Case) -> Judgement {
    guarded(|| Ok(oracles(case)))
}

/// What a panic says.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    Failure {
        kind: "panic",
        details: panic_text(panic),
    }
}

fn oracles(case: &Case) -> Judgement {
    match try_oracles(case) {
        Ok(judgement) => judgement,
        Err(failure) => Judgement::Failed(failure),
    }
}

pub(super) fn fail(kind: &'static str) -> impl Fn(String) -> Failure {
    move |details| Failure { kind, details }
}

fn try_oracles(case: &Case) -> Result<Judgement, Failure> {
    let func = &case.func;
    verify(func).map_err(|e| fail("generator: invalid")(e.to_string()))?;
    let text = print(func);
    let mut parsed =
        parse_tile(&text).map_err(|e| fail("text: does not parse")(format!("{e:?}")))?;
    if print(&parsed) != text {
        return Err(fail("text: changes")(print(&parsed)));
    }

    let before = match interpret(func, case, INTERPRETER_STEPS) {
        Ok(buffers) => buffers,
        Err(e) if is_step_limit(&e) => return Ok(Judgement::Skipped("interpreter's step limit")),
        Err(e) => return Err(fail("generator: undefined")(e.to_string())),
    };

    let mut notes = Vec::new();
    let (mut last, mut contraction) = (None, None);
    let compiled = compile_with(func, case.target, &case.options, &mut |pass, snapshot| {
        if let Snapshot::Tile(tile) = snapshot {
            let before = last.replace(tile.clone());
            if pass == CONTRACTION {
                let changed = before.filter(|before| print(before) != print(tile));
                contraction = changed.map(|before| [before, tile.clone()]);
            }
        }
    });
    let kernel = match compiled {
        Ok(kernel) => kernel,
        Err(e) => return refused(case, &e),
    };
    let tile = last.ok_or_else(|| fail("no tile level")(String::new()))?;
    // The first time the verifier looked on.
    let unwatched = Options {
        verify_passes: false,
        ..case.options
    };
    // And what nobody asked for is not promised.
    super::narrow(&mut parsed, &kernel.asked);
    let again = compile(&parsed, case.target, &unwatched)
        .map_err(|e| fail("text: does not compile")(e.to_string()))?;
    if again.ptx != kernel.ptx {
        let asked = format!("{:?}", kernel.asked);
        return Err(fail(
            "not deterministic, or it depends on more than it asked for",
        )(asked));
    }

    // What stands for approximate functions takes more steps than they did.
    let options = interp::Options {
        step_limit: 20 * INTERPRETER_STEPS,
        ..interp::Options::default()
    };
    let (after, stats) = match interpret_with(&tile, case, &options) {
        Ok(done) => done,
        Err(e) if is_step_limit(&e) => return Ok(Judgement::Skipped("interpreter's step limit")),
        Err(e) => return Err(fail("passes: undefined")(format!("{e}\n{}", print(&tile)))),
    };
    if case.exact {
        let expected = match &contraction {
            Some(contraction) => across_fusion(before, contraction, case, &mut notes)?,
            None => Some(before),
        };
        if let Some(expected) = expected {
            notes.push("compared before and after the passes");
            // Each product is apart from its accumulator on this side, too.
            let apart = match has_products(&tile) {
                true => Some(interpret(&tile, case, options.step_limit)),
                false => None,
            };
            let apart = apart
                .transpose()
                .map_err(|error| fail("passes: undefined")(error.to_string()))?;
            compare(&expected, apart.as_ref().unwrap_or(&after)).map_err(|message| {
                fail("passes: other result")(format!("{message}\n{}", print(&tile)))
            })?;
        }
    }
    if stats.rounded > 0 {
        return Ok(Judgement::Skipped("products that round"));
    }
    for seed in 0..SCHEDULES {
        let found = match emulate(&kernel, case, checked(seed)) {
            Ok((found, _)) => found,
            Err(e) if e.contains("step limit") => {
                return Ok(Judgement::Skipped("emulator's step limit"));
            }
            Err(e) => {
                return Err(fail("emulator: fault")(format!("{e}\n{}", kernel.ptx)));
            }
        };
        for (i, ((scalar, x), y)) in after.iter().zip(&found).enumerate() {
            if let Some(at) = first_difference(*scalar, x, y) {
                let size = scalar.bytes() as usize;
                let element = at * size..(at + 1) * size;
                return Err(fail("emulator: other result")(format!(
                    "buffer {i} ({scalar}) element {at}: interpreter {:02x?}, emulator {:02x?}\n{}\n{}",
                    &x[element.clone()],
                    &y[element],
                    print(&tile),
                    kernel.ptx
                )));
            }
        }
    }
    note_shape(func, &kernel, &mut notes);
    Ok(Judgement::Passed(notes))
}

/// What a kernel covers, so that a generator that makes only trivial ones is noticed.
fn note_shape(func: &TileFunction, kernel: &CompiledKernel, notes: &mut Vec<&'static str>) {
    let has = |op: TileOp| func.insts_with(op).next().is_some();
    if has(TileOp::For) || has(TileOp::While) {
        notes.push("with loops");
    }
    if has(TileOp::Dot) {
        notes.push("with products");
    }
    if kernel.ptx.contains("mma.sync") {
        notes.push("with units for matrices");
    }
    if kernel.ptx.contains("cp.async") {
        notes.push("with pipelines");
    }
    if has(TileOp::Reduce) || has(TileOp::Scan) {
        notes.push("with reductions");
    }
    if func
        .all_insts()
        .any(|(_, i)| func.dfg.insts[i].volatile().is_some())
    {
        notes.push("with volatile loads");
    }
    if kernel.meta.shared > 0 {
        notes.push("with shared memory");
    }
    if kernel.meta.shared > 4096 {
        notes.push("with more than 4 KB of it");
    }
    if kernel.stats.layouts.conversions > 0 {
        notes.push("with conversions");
    }
    if kernel.ptx.contains(".v4") {
        notes.push("with wide accesses");
    }
}

pub(super) fn is_step_limit(error: &interp::InterpError) -> bool {
    matches!(error.kind, interp::InterpErrorKind::StepLimit(_))
}

/// Types and contents of a launch's buffers.
pub type Buffers = Vec<(Scalar, Vec<u8>)>;

/// The buffers as the interpreter leaves them, to be held against another kernel: each product apart from its accumulator, as passes
/// take sums into products.
///
/// # Errors
///
/// What the interpreter reports.
pub fn interpret(
    func: &TileFunction,
    case: &Case,
    step_limit: u64,
) -> Result<Buffers, interp::InterpError> {
    let options = interp::Options {
        step_limit,
        split_dot: true,
        ..interp::Options::default()
    };
    interpret_with(func, case, &options).map(|(buffers, _)| buffers)
}

/// Whether a kernel has products.
pub(super) fn has_products(func: &TileFunction) -> bool {
    let ops = [TileOp::Dot, TileOp::DotStart];
    ops.iter().any(|&op| func.insts_with(op).next().is_some())
}

/// As [`interpret`] with options, and what was counted.
pub(super) fn interpret_with(
    func: &TileFunction,
    case: &Case,
    options: &interp::Options,
) -> Result<(Buffers, interp::Stats), interp::InterpError> {
    let mut memory = interp::Memory::new();
    let args: Vec<interp::Arg> = case
        .args
        .iter()
        .map(|arg| match arg {
            Argument::Buffer(_, bytes) => interp::Arg::Ptr(memory.alloc_bytes(bytes)),
            Argument::Number(_, bits) => interp::Arg::Bits(*bits),
        })
        .collect();
    let launch = interp::Launch {
        grid: case.grid,
        args: &args,
    };
    let stats = interp::run(func, &launch, &mut memory, options)?;
    let buffers = case.args.iter().zip(&args).filter_map(|(arg, place)| {
        let (Argument::Buffer(scalar, bytes), interp::Arg::Ptr(address)) = (arg, place) else {
            return None;
        };
        let bytes = memory
            .read(*address, bytes.len())
            .expect("the whole buffer was written before the launch");
        Some((*scalar, bytes.to_vec()))
    });
    Ok((buffers.collect(), stats))
}

/// The emulator with every check on, under the schedule of a seed.
pub(super) fn checked(seed: u64) -> emu::Options {
    emu::Options {
        seed,
        step_limit: EMULATOR_STEPS,
        ..emu::Options::default()
    }
}

/// The buffers as the emulator leaves them, and the warp instructions it took.
///
/// # Errors
///
/// What the emulator reports.
pub fn emulate(
    kernel: &CompiledKernel,
    case: &Case,
    options: emu::Options,
) -> Result<(Vec<Vec<u8>>, u64), String> {
    let module = emu::Module::parse(&kernel.ptx).map_err(|e| e.to_string())?;
    let mut memory = emu::Memory::new();
    let mut buffers = Vec::new();
    let mut args: Vec<emu::Arg> = case
        .args
        .iter()
        .map(|arg| match arg {
            Argument::Buffer(_, bytes) => {
                let address = memory.alloc_bytes(bytes);
                buffers.push((address, bytes.len()));
                emu::Arg::pointer(address)
            }
            Argument::Number(elem, bits) => {
                emu::Arg::bytes(&bits.to_le_bytes()[..elem.bytes() as usize])
            }
        })
        .collect();
    let beside = emulated(&kernel.meta, &args, case.grid);
    let beside = beside.ok_or("the arguments allow no tensor maps")?;
    args.extend(beside.args);
    let launch = emu::Launch {
        grid: beside.ctas,
        block: kernel.meta.block(),
        shared_bytes: kernel.meta.shared,
        args: &args,
        options,
    };
    let stats =
        emu::run(&module, &kernel.meta.name, &launch, &mut memory).map_err(|e| e.to_string())?;
    let read = |&(address, bytes): &(u64, usize)| {
        memory
            .read(address, bytes)
            .expect("the whole buffer was written before the launch")
    };
    let buffers = buffers.iter().map(read).collect();
    Ok((buffers, stats.warp_instructions))
}

/// The first element that differs; NaNs equal NaNs.
pub fn first_difference(scalar: Scalar, x: &[u8], y: &[u8]) -> Option<usize> {
    let size = scalar.bytes() as usize;
    let is_nan = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        format_of(scalar).is_some_and(|f| f.to_f64(u64::from_le_bytes(word)).is_nan())
    };
    x.chunks(size)
        .zip(y.chunks(size))
        .position(|(a, b)| a != b && !(is_nan(a) && is_nan(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce_test_case::count;

    fn holds(func: &TileFunction, op: TileOp) -> bool {
        func.insts_with(op).next().is_some()
    }

    /// Generated kernels of several warps and programs, with loops and choices, that hold an op.
    fn cases_with(op: TileOp) -> impl Iterator<Item = Case> {
        let suits = move |case: &Case| {
            let ops = [op, TileOp::For, TileOp::If];
            ops.iter().all(|&op| holds(&case.func, op))
                && case.func.num_warps() > 1
                && case.grid != [1; 3]
                && case.options.diversity.is_some()
        };
        (0..).map(case).filter(suits)
    }

    fn kind(judgement: Judgement) -> &'static str {
        match judgement {
            Judgement::Failed(failure) => failure.kind,
            Judgement::Passed(_) => "passed",
            Judgement::Skipped(reason) => reason,
        }
    }

    #[test]
    fn what_fails_is_shown_with_little_else() {
        for op in [TileOp::Store, TileOp::Reduce, TileOp::For, TileOp::While] {
            let mut cases = cases_with(op);
            let case = cases.next().expect("there are infinitely many");
            let planted = |case: &Case| match holds(&case.func, op) {
                true => Judgement::Failed(fail("planted")("the details".to_owned())),
                false => Judgement::Passed(Vec::new()),
            };
            let Verdict::Failed(message) = verdict(&case, planted) else {
                panic!("the oracle fails");
            };
            let text = message.strip_prefix("planted\nthe details\n; ");
            let text = text.expect("the kind, the details, the options");
            let (options, kernel) = text.split_once("\n").expect("a line for the options");
            assert!(
                options.ends_with("which its seed alone repeats"),
                "{message}"
            );
            let (line, kernel) = kernel.split_once('\n').expect("a line for the launch");
            let func = parse_tile(kernel).expect("a kernel");
            assert!(holds(&func, op), "{message}");
            assert_eq!(func.num_warps(), 1, "{message}");
            // Operands are made of numbers and parameters; a loop has what it carries, a reduction its sum.
            assert!(
                count(&func) <= 16 && count(&func) < count(&case.func),
                "{message}"
            );
            // No argument is left that nothing uses.
            let given: Vec<&str> = line
                .split(' ')
                .filter_map(|word| word.split_once('='))
                .map(|(name, _)| name)
                .collect();
            assert!(line.starts_with("; run: grid(1,1,1)"), "{message}");
            assert_eq!(given, func.param_names, "{message}");
        }
    }

    #[test]
    fn oracles_say_what_is_wrong() {
        // One that both sides have the steps for.
        let is_run = |case: &Case| !matches!(judge(case), Judgement::Skipped(_));
        let case = cases_with(TileOp::Store).find(is_run);
        let case = case.expect("there are infinitely many");
        assert_eq!(kind(judge(&case)), "passed");
        let mut invalid = case.clone();
        invalid.func.set_num_warps(3);
        assert_eq!(kind(judge(&invalid)), "generator: invalid");
        let mut short = case.clone();
        for arg in &mut short.args {
            if let Argument::Buffer(_, bytes) = arg {
                bytes.clear();
            }
        }
        assert_eq!(kind(judge(&short)), "generator: undefined");
        let judged = guarded(|| panic!("number {}", 7));
        assert!(matches!(&judged, Judgement::Failed(f) if f.details == "number 7"));
        assert_eq!(kind(judged), "panic");
    }

    #[test]
    fn all_nans_are_equal_and_nothing_else_is() {
        let words = |xs: [u32; 3]| xs.map(u32::to_le_bytes).concat();
        let x = words([0x7fc0_0000, 0x3f80_0000, 0]);
        let other_nan = words([0xffff_ffff, 0x3f80_0000, 0]);
        assert_eq!(first_difference(Scalar::F32, &x, &other_nan), None);
        assert_eq!(first_difference(Scalar::I32, &x, &other_nan), Some(0));
        let minus_zero = words([0x7fc0_0000, 0x3f80_0000, 0x8000_0000]);
        assert_eq!(first_difference(Scalar::F32, &x, &minus_zero), Some(2));
        let number = words([0x7fc0_0000, 0x7fc0_0000, 0]);
        assert_eq!(first_difference(Scalar::F32, &x, &number), Some(1));
    }
}
