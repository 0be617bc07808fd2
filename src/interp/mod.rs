//! The reference interpreter of the tile IR: the prose of [`crate::ir`] in executable form.
//!
//! Plain, slow, obviously right. It shares nothing with the way kernels are compiled but the number formats
//! ([`crate::num`]), so that the emulator's and the GPU's results can be held against it.
//!
//! - A value is the list of its elements' bit patterns in row-major order, the upper bits zero; layouts
//!   mean nothing to it, so kernels run before and after layouts are assigned.
//! - Programs run one after the other, x fastest; of a persistent kernel three CTAs do. One that waits for a later one meets the step limit.
//! - The steps of an atomic op on a block happen in row-major order.
//! - What the IR calls undefined is reported as an error that names the program and the instruction: bytes
//!   nobody wrote, addresses outside of buffers or misaligned, one store with different values for one
//!   address, races between programs, broken promises, loop steps below 1. What it calls unspecified gets
//!   the value that the hardware gives (quotients and remainders by zero: all ones).
//! - A program's instructions run in order. Where the IR leaves the order of a program's accesses open, a load
//!   or store of a byte that the same program stored since its last barrier is reported; a store to a byte that
//!   it only loaded is not, as it may be an update in place.
//! - `assume_multiple` is checked as the axis analysis understands it: along each dimension the elements that
//!   begin a run counting up by one (a run of addresses counts up by the element's size) are multiples of the number.
//! - Approximate functions are computed in f64 and rounded once.
//! - `reduce` without `order` folds the bits of the index from the lowest up; `scan` without `tree` goes from element
//!   to element.
//!
//! Grids that CUDA does not launch are refused. Before anything runs, the function is verified ([`crate::verify`]); one that breaks a rule is an error.

mod bounded;
mod error;
mod error_bounds;
mod exec;
mod float;
mod int;
mod memory;
mod promise;
mod races;
#[cfg(test)]
mod tests;

pub use bounded::{Bounded, Cause, Distance, Open};
pub use error::{FaultSite, InterpError, InterpErrorKind, OtherProgram};
pub use memory::{Memory, MemoryError};

use crate::ir::dfg::SourceLoc;
use crate::ir::entities::AnyEntity;
use crate::ir::function::{ParamHints, TileFunction};
use crate::ir::types::{Elem, Scalar, TileType};
use crate::verify::{VerifierErrors, verify};

/// A kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// For a pointer: an address, of a buffer of [`Memory`] or of any byte.
    Ptr(u64),
    /// For an integer of any width that can hold it, as a signed or as an unsigned number.
    Int(i64),
    /// For an f32.
    F32(f32),
    /// For an f64.
    F64(f64),
    /// For anything: its bit pattern.
    Bits(u64),
}

/// What to run a kernel on.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Number of programs along the three axes.
    pub grid: [u32; 3],
    /// One argument per parameter.
    pub args: &'a [Arg],
}

/// What to look out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Largest number of steps in all programs together: [`INST_STEPS`] for each instruction, and one for each
    /// element it computes.
    pub step_limit: u64,
    /// Report programs that race with each other or with themselves; costs twenty bytes for each byte touched.
    pub check_races: bool,
    /// Report races between two stores of the same value, too.
    pub report_equal_writes: bool,
    /// Report `assume_*` ops and parameter hints that do not hold.
    pub check_promises: bool,
    /// Compute `fma` as a product and a sum, each rounded. Contraction then changes no bit, so that what it makes of a
    /// kernel can be held against the kernel before it; see [`crate::tile::fuse_multiply_adds`].
    pub split_fma: bool,
    /// Compute `dot` as the sum of products from zero and its sum with the accumulator, each rounded. What takes sums into
    /// products then changes no bit.
    pub split_dot: bool,
    /// Count the bytes of memory that are touched, [`Stats::bytes_read`] and [`Stats::bytes_written`]; costs one byte for each.
    pub count_bytes: bool,
}

impl Default for Options {
    /// Everything is checked but stores of equal values, for at most 2^28 steps, which take seconds.
    fn default() -> Options {
        Options {
            step_limit: 1 << 28,
            check_races: true,
            report_equal_writes: false,
            check_promises: true,
            split_fma: false,
            split_dot: false,
            count_bytes: false,
        }
    }
}

/// Steps that an instruction counts for beside its elements: executing it costs about as much as so many.
pub const INST_STEPS: u64 = 7;

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Programs that ran.
    pub programs: u64,
    /// Instructions executed; those of a reduction's region once for each pair.
    pub instructions: u64,
    /// Elements read from memory.
    pub loaded: u64,
    /// Elements written to memory.
    pub stored: u64,
    /// Elements of products of matrices whose terms are no whole numbers, or so large that their sum in f32 depends on the
    /// order, which the IR leaves open.
    pub rounded: u64,
    /// Sums, differences, products, quotients and functions of floating-point numbers; a fused product and sum are two, and so
    /// is each term of a product of matrices of any type. Comparisons, conversions and signs are none.
    pub flops: u64,
    /// Bytes of memory that were read, each counted once however often it was; 0 unless [`Options::count_bytes`] asks for it.
    pub bytes_read: u64,
    /// Bytes of memory that were written, likewise.
    pub bytes_written: u64,
    /// The first instruction that made a quotient or remainder of integers that is not defined: others may give another number.
    pub undefined: Option<Cause>,
}

/// As [`run`], and tells how far other executors may be from it; `fused` is whether they may contract. Where a value with
/// a bound decides what is executed or accessed, no bound follows: [`InterpErrorKind::Undecided`].
///
/// Each value has a *slack* for each element, 0 where it is exact. The result of an op is computed for all combinations of
/// operands moved by their slack up and down; the largest distance from the result, and what the op states as its own
/// error, are the result's slack. That is sound where ops are monotone within the slack; a quotient by what may be zero,
/// remainders, bitwise ops, angles that are not known to a sixteenth, and quotients of integers by zero have no bound, nor has what
/// integer arithmetic makes of such a number. Where it began goes along as the [`Cause`], also into what has a bound again, as a
/// comparison has. One value that is both operands moves as one, but what two operands have in common is not seen: bounds err on the
/// large side.
///
/// - An op that rounds correctly states nothing; a product may be exact where it may be contracted (half an ulp).
/// - Other functions err by what the op table states, and the interpreter's rounding.
/// - `reduce` and `scan` leave the order open. For *every* order a sum of n terms has the bound (n - 1) u S, S being the sum of
///   sizes: so wide that a term left out would not show. Here each sum of the interpreter's balanced tree errs by
///   2 u (|a| + |b|), enough for trees whose leaves are sums of some dozens of terms, as threads form them. So do sums of
///   reductions that a loop carries, and atomic sums. Where some order of any region has partial results (of a scan those of
///   neighbours, of a reduction those of any elements) beyond the largest number, and others have not, there is no bound, nor where the
///   region computes what cannot be followed. Partial results below the normal numbers widen the bound by what may be lost of them.
///   Whether the region does what it must is tried with the elements: where it does not, there is no bound either ([`Open::Order`]).
/// - `dot` errs by what [`crate::ir`] states.
pub fn run_bounded(
    func: &TileFunction,
    launch: &Launch<'_>,
    memory: &mut Memory,
    options: &Options,
    fused: bool,
) -> Result<Bounded, InterpError> {
    let slack = exec::Slack::new(func, fused);
    let (_, slack) = checked_run(func, launch, memory, options, Some(slack))?;
    Ok(slack.map_or(Bounded::default(), exec::Slack::finish))
}

/// Runs all programs of a launch. After an error, memory holds what was written up to it.
pub fn run(
    func: &TileFunction,
    launch: &Launch<'_>,
    memory: &mut Memory,
    options: &Options,
) -> Result<Stats, InterpError> {
    checked_run(func, launch, memory, options, None).map(|(stats, _)| stats)
}

fn checked_run(
    func: &TileFunction,
    launch: &Launch<'_>,
    memory: &mut Memory,
    options: &Options,
    slack: Option<exec::Slack>,
) -> Result<(Stats, Option<exec::Slack>), InterpError> {
    verify(func).map_err(|errors| malformed(func, &errors))?;
    crate::grid::check(launch.grid).map_err(|error| InterpError {
        place: FaultSite::default(),
        kind: InterpErrorKind::Arguments(error.to_string()),
    })?;
    let args = arguments(func, launch.args, options).map_err(|kind| InterpError {
        place: FaultSite::default(),
        kind,
    })?;
    exec::run(func, launch.grid, &args, memory, options, slack)
}

/// The first of the verifier's errors, at its instruction.
fn malformed(func: &TileFunction, errors: &VerifierErrors) -> InterpError {
    let first = errors.0.first();
    let inst = match first.map(|e| e.entity) {
        Some(AnyEntity::Inst(inst)) => func.dfg.insts.get(inst).map(|data| (inst, data)),
        _ => None,
    };
    InterpError {
        place: FaultSite {
            program: None,
            inst: inst.map(|(inst, data)| (inst, data.op)),
            element: None,
            loc: inst.map_or(SourceLoc::default(), |(_, data)| data.loc),
        },
        kind: InterpErrorKind::Malformed(
            first.map_or(String::new(), |e| format!("{}: {}", e.rule, e.message)),
        ),
    }
}

/// The bit patterns of the arguments, which must fit the parameters and their hints.
fn arguments(
    func: &TileFunction,
    args: &[Arg],
    options: &Options,
) -> Result<Vec<u64>, InterpErrorKind> {
    let params = func.params();
    if args.len() != params.len() {
        return Err(InterpErrorKind::Arguments(format!(
            "the kernel has {} parameters, the launch {} arguments",
            params.len(),
            args.len()
        )));
    }
    let mut out = Vec::with_capacity(args.len());
    for (i, (&arg, &param)) in args.iter().zip(params).enumerate() {
        let ty = func.dfg.ty(param);
        let name = func.param_names.get(i).map_or("?", |n| n);
        let bits = bits_of(arg, ty).ok_or_else(|| {
            InterpErrorKind::Arguments(format!("parameter `{name}` is {ty}, not {arg:?}"))
        })?;
        let divisible = func.param_hints.get(i).map_or(0, ParamHints::promised);
        if options.check_promises && divisible > 1 && !bits.is_multiple_of(u64::from(divisible)) {
            return Err(InterpErrorKind::BrokenPromise(format!(
                "argument `{name}` is {bits:#x}, not a multiple of {divisible}"
            )));
        }
        out.push(bits);
    }
    Ok(out)
}

/// The pattern of an argument for a parameter of this type, if it fits.
fn bits_of(arg: Arg, ty: TileType) -> Option<u64> {
    if !ty.is_scalar() {
        return None;
    }
    match (arg, ty.elem) {
        (Arg::Ptr(address), Elem::Ptr(..)) => Some(address),
        (Arg::Int(number), elem) if elem.is_int() => {
            let bits = elem.bits();
            let low = int::low_bits(bits, number as u64);
            // Either reading of the pattern may be meant.
            (low as i64 == number || int::signed(bits, low) == number).then_some(low)
        }
        (Arg::F32(number), Elem::Num(Scalar::F32)) => Some(u64::from(number.to_bits())),
        (Arg::F64(number), Elem::Num(Scalar::F64)) => Some(number.to_bits()),
        (Arg::Bits(bits), elem) => (int::low_bits(elem.bits(), bits) == bits).then_some(bits),
        (Arg::Ptr(_) | Arg::Int(_) | Arg::F32(_) | Arg::F64(_), _) => None,
    }
}
