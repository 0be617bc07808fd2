//! Arguments of a kernel, and what interpreter and emulator leave.

use super::kernel::{ELEMENTS, Kernel, Number};
use crate::compile::CompiledKernel;
use crate::emu;
use crate::fuzzing::random::Random;
use crate::interp::{self, Arg, InterpErrorKind, Launch, Memory};
use crate::ir::function::TileFunction;
use crate::ir::types::Scalar;
use crate::num::{Overflow, Rounding};
use crate::runtime::emulated;

/// What a parameter gets.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A pointer into a buffer of its own.
    Pointer {
        /// What the buffer holds.
        bytes: Vec<u8>,
        /// Bytes in front of what it points to.
        at: usize,
    },
    /// A number.
    Number {
        /// The number.
        value: i32,
        /// Bytes of its type, which may have no sign.
        bytes: usize,
    },
}

/// Buffers of small whole numbers, and the numbers of the kernel.
pub(super) fn arguments(kernel: &Kernel, random: &mut Random) -> Vec<Argument> {
    let mut args = Vec::new();
    for tensor in &kernel.tensors {
        let size = tensor.scalar.bytes() as usize;
        let numbers = (0..ELEMENTS).flat_map(|_| {
            let bits = whole(tensor.scalar, random.between(-4, 4));
            bits.to_le_bytes().into_iter().take(size)
        });
        args.push(Argument::Pointer {
            bytes: numbers.collect(),
            at: tensor.at * size,
        });
    }
    let numbers = kernel.numbers.iter();
    args.extend(numbers.map(|&Number { value, bytes, .. }| Argument::Number { value, bytes }));
    args
}

fn whole(scalar: Scalar, number: i64) -> u64 {
    match scalar.format() {
        Some(format) => format.from_f64(number as f64, Rounding::NearestEven, Overflow::Ieee),
        None => number as u64,
    }
}

/// What the interpreter looks out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Races {
    Ignored,
    /// Of programs that write different values.
    Reported,
    /// Of programs that write equal values, too: the emulator reports them of the copy engine.
    OfEqualWrites,
}

/// What the interpreter leaves in the buffers.
pub(super) fn interpret(
    func: &TileFunction,
    grid: [u32; 3],
    given: &[Argument],
    races: Races,
) -> Result<Vec<Vec<u8>>, InterpErrorKind> {
    let mut memory = Memory::new();
    let mut buffers = Vec::new();
    let args = given.iter().map(|arg| match arg {
        Argument::Pointer { bytes, at } => {
            let address = memory.alloc_bytes(bytes);
            buffers.push((address, bytes.len()));
            Arg::Ptr(address + *at as u64)
        }
        Argument::Number { value, .. } => Arg::Int(i64::from(*value)),
    });
    let args: Vec<Arg> = args.collect();
    let launch = Launch { grid, args: &args };
    let options = interp::Options {
        check_races: races != Races::Ignored,
        report_equal_writes: races == Races::OfEqualWrites,
        ..interp::Options::default()
    };
    interp::run(func, &launch, &mut memory, &options).map_err(|error| error.kind)?;
    let held = buffers.into_iter().map(|(address, bytes)| {
        let held = memory.read(address, bytes);
        held.expect("every byte was written").to_vec()
    });
    Ok(held.collect())
}

/// What the emulator leaves there, with every check on but perhaps that of races; nothing if the arguments allow no tensor maps.
pub(super) fn emulate(
    kernel: &CompiledKernel,
    grid: [u32; 3],
    given: &[Argument],
    check_races: bool,
    seed: u64,
) -> Result<Option<Vec<Vec<u8>>>, String> {
    let module = emu::Module::parse(&kernel.ptx).map_err(|e| e.to_string())?;
    let mut memory = emu::Memory::new();
    let mut buffers = Vec::new();
    let args = given.iter().map(|arg| match arg {
        Argument::Pointer { bytes, at } => {
            let address = memory.alloc_bytes(bytes);
            buffers.push((address, bytes.len()));
            emu::Arg::pointer(address + *at as u64)
        }
        Argument::Number { value, bytes } => emu::Arg::bytes(&value.to_le_bytes()[..*bytes]),
    });
    let mut args: Vec<emu::Arg> = args.collect();
    let Some(beside) = emulated(&kernel.meta, &args, grid) else {
        return Ok(None);
    };
    args.extend(beside.args);
    let launch = emu::Launch {
        grid: beside.ctas,
        block: kernel.meta.block(),
        shared_bytes: kernel.meta.shared,
        args: &args,
        options: emu::Options {
            seed,
            check_races,
            ..emu::Options::default()
        },
    };
    emu::run(&module, &kernel.meta.name, &launch, &mut memory).map_err(|e| e.to_string())?;
    let held = buffers.into_iter().map(|(address, bytes)| {
        let held = memory.read(address, bytes);
        held.map_err(|e| e.to_string())
    });
    held.collect::<Result<_, _>>().map(Some)
}
