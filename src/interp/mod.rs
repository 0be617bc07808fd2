//! The reference interpreter of the tile IR: the prose of [`crate::ir`] in executable form.
//!
//! Plain, slow, obviously right. It shares nothing with the way kernels are compiled but the number formats
//! ([`crate::num`]), so that the emulator's and the GPU's results can be held against it.
//!
//! - A value is the list of its elements' bit patterns in row-major order, the upper bits zero; layouts
//!   mean nothing to it, so kernels run before and after layouts are assigned.
//! - Programs run one after the other, x fastest.
//! - What the IR calls undefined is reported as an error that names the program and the instruction: bytes
//!   nobody wrote, addresses outside of buffers or misaligned, one store with different values for one
//!   address, races between programs, broken promises, loop steps below 1. What it calls unspecified gets
//!   some value (quotients by zero: all ones; remainders by zero: the dividend).
//! - A program's instructions run in order. Where the IR leaves the order of a program's accesses open, a load
//!   or store of a byte that the same program stored since its last barrier is reported; a store to a byte that
//!   it only loaded is not, as it may be an update in place.
//! - `assume_multiple` is checked as the axis analysis understands it: along each dimension the elements that
//!   begin a run counting up by one (a run of addresses counts up by the element's size) are multiples of the number.
//! - Approximate functions are computed in f64 and rounded once.
//! - `reduce` without `order` folds the bits of the index from the lowest up.
//!
//! Before anything runs, every instruction is checked by the type rules of the op table; beyond that the
//! function is taken for verified, and what is still malformed is an error, not a panic.

mod error;
mod exec;
mod float;
mod int;
mod memory;
mod promise;
#[cfg(test)]
mod tests;

pub use error::{InterpError, InterpErrorKind, OtherProgram, Place};
pub use memory::{Memory, MemoryError};

use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::level::{Level, Tile};
use crate::ir::ops::rules::Operands;
use crate::ir::types::{Elem, Scalar, TileType};

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
    /// Largest number of instructions to execute in all programs together.
    pub step_limit: u64,
    /// Report programs that race with each other or with themselves; costs twelve bytes for each byte of the
    /// buffers touched.
    pub check_races: bool,
    /// Report `assume_*` ops and parameter hints that do not hold.
    pub check_promises: bool,
}

impl Default for Options {
    /// Everything is checked, for at most 2^32 instructions.
    fn default() -> Options {
        Options {
            step_limit: 1 << 32,
            check_races: true,
            check_promises: true,
        }
    }
}

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
}

/// Runs all programs of a launch. After an error, memory holds what was written up to it.
pub fn run(
    func: &TileFunction,
    launch: &Launch<'_>,
    memory: &mut Memory,
    options: &Options,
) -> Result<Stats, InterpError> {
    for block in func.all_blocks() {
        for &inst in func.order.insts(block) {
            check_types(func, inst).map_err(|problem| InterpError {
                place: Place {
                    program: None,
                    inst: Some((inst, func.dfg.insts[inst].op)),
                    loc: func.dfg.insts[inst].loc,
                },
                kind: InterpErrorKind::Malformed(problem),
            })?;
        }
    }
    let args = arguments(func, launch.args, options).map_err(|kind| InterpError {
        place: Place::default(),
        kind,
    })?;
    exec::run(func, launch.grid, &args, memory, options)
}

/// Checks an instruction by the rules of the op table.
fn check_types(func: &TileFunction, inst: Inst) -> Result<(), String> {
    let data = &func.dfg.insts[inst];
    let types =
        |values: &[_]| -> Vec<TileType> { values.iter().map(|&v| func.dfg.ty(v)).collect() };
    let (args, given) = (types(&data.args), types(&data.results));
    let operands = Operands {
        args: &args,
        attrs: &data.attrs,
        given: &given,
    };
    let expected = Tile::result_types(data.op, &operands).map_err(|e| e.to_string())?;
    if expected[..] == given[..] {
        Ok(())
    } else {
        Err(format!("results are {given:?}, should be {expected:?}"))
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
        let divisible = func.param_hints.get(i).map_or(0, |hints| hints.divisible);
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
