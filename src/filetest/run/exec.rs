//! What runs a kernel: the interpreter, which is the reference, and whatever runs compiled code.

use crate::interp;
use crate::ir::function::TileFunction;
use crate::ir::types::Scalar;
use crate::settings::{Options, Target};

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) it: ArgValue,
}

/// What a parameter gets.
#[derive(Clone, Debug)]
pub(super) enum ArgValue {
    Scalar {
        scalar: Scalar,
        bits: u64,
    },
    Null,
    /// A buffer of its own; without bits nobody may read it before it is written.
    Buffer {
        scalar: Scalar,
        count: usize,
        bits: Option<Vec<u64>>,
    },
}

/// The elements of a buffer after a run; none where nobody wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents(pub(super) Vec<Option<u64>>);

/// A kernel with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) func: &'a TileFunction,
    pub(super) grid: [u32; 3],
    pub(super) args: &'a [Argument],
    pub(super) target: Target,
    pub(super) options: &'a Options,
    /// Chooses a schedule where there is a choice.
    pub(super) seed: u64,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It came to its end; what each argument's buffer holds, none for other arguments.
    Done(Vec<Option<Contents>>),
    /// It cannot be run here.
    Skipped(String),
    /// It did not come to its end, or did something undefined.
    Failed(String),
}

/// Something that runs kernels.
pub(super) trait Executor {
    /// Its name for messages.
    fn name(&self) -> &'static str;
    /// Whether the seed changes what it does.
    fn is_seeded(&self) -> bool;
    /// Runs a kernel.
    fn run(&self, job: &Job<'_>) -> Outcome;
}

/// What the others are compared with.
pub(super) fn reference() -> impl Executor {
    Interpreter
}

/// Those that are compared with the reference.
pub(super) fn executors() -> Vec<Box<dyn Executor>> {
    Vec::new()
}

/// The bytes of elements as they lie in memory.
fn to_bytes(scalar: Scalar, bits: &[u64]) -> Vec<u8> {
    let size = scalar.bytes() as usize;
    let bytes = bits.iter().map(|bits| bits.to_le_bytes());
    bytes
        .flat_map(|bytes| bytes.into_iter().take(size))
        .collect()
}

/// The bits of an element as it lies in memory.
fn from_bytes(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// The elements of a buffer that `read` gives by byte offset and size, or not if nobody wrote them.
fn contents(scalar: Scalar, count: usize, read: impl Fn(u64, usize) -> Option<u64>) -> Contents {
    let size = scalar.bytes() as usize;
    Contents((0..count).map(|i| read((i * size) as u64, size)).collect())
}

struct Interpreter;

impl Executor for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn is_seeded(&self) -> bool {
        false
    }

    fn run(&self, job: &Job<'_>) -> Outcome {
        let mut memory = interp::Memory::new();
        let mut addresses = Vec::new();
        for arg in job.args {
            addresses.push(match &arg.it {
                ArgValue::Buffer {
                    scalar,
                    bits: Some(bits),
                    ..
                } => memory.alloc_bytes(&to_bytes(*scalar, bits)),
                ArgValue::Buffer {
                    scalar,
                    count,
                    bits: None,
                } => memory.alloc(count * scalar.bytes() as usize),
                ArgValue::Scalar { .. } | ArgValue::Null => 0,
            });
        }
        let args: Vec<interp::Arg> = job
            .args
            .iter()
            .zip(&addresses)
            .map(|(arg, &address)| match &arg.it {
                ArgValue::Scalar { bits, .. } => interp::Arg::Bits(*bits),
                ArgValue::Null | ArgValue::Buffer { .. } => interp::Arg::Ptr(address),
            })
            .collect();
        let launch = interp::Launch {
            grid: job.grid,
            args: &args,
        };
        let result = interp::run(job.func, &launch, &mut memory, &interp::Options::default());
        if let Err(error) = result {
            return Outcome::Failed(error.to_string());
        }
        let read = |address: u64, bytes: usize| memory.read(address, bytes).ok().map(from_bytes);
        let outputs = job
            .args
            .iter()
            .zip(&addresses)
            .map(|(arg, &address)| match &arg.it {
                ArgValue::Buffer { scalar, count, .. } => {
                    Some(contents(*scalar, *count, |at, size| {
                        read(address + at, size)
                    }))
                }
                ArgValue::Scalar { .. } | ArgValue::Null => None,
            });
        Outcome::Done(outputs.collect())
    }
}
