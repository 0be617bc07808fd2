//! What runs a kernel: the interpreter, which is the reference, and whatever runs compiled code.

use crate::compile::compile;
use crate::emu;
use crate::interp;
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_STEPS;
use crate::log::{self, Log, Site};
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
    /// A buffer of its own, as it lies in memory; without bytes nobody may read it before it is written.
    Buffer {
        scalar: Scalar,
        count: usize,
        bytes: Option<Vec<u8>>,
    },
}

/// The elements of a buffer after a run; none where nobody wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    scalar: Scalar,
    bytes: Vec<u8>,
    /// For each element.
    written: Vec<bool>,
}

impl Contents {
    /// The elements in order.
    pub(super) fn new(scalar: Scalar, elements: impl Iterator<Item = Option<u64>>) -> Contents {
        let mut contents = Contents {
            scalar,
            bytes: Vec::with_capacity(elements.size_hint().0 * scalar.bytes() as usize),
            written: Vec::with_capacity(elements.size_hint().0),
        };
        for element in elements {
            contents.written.push(element.is_some());
            let bytes = element.unwrap_or(0).to_le_bytes();
            let size = scalar.bytes() as usize;
            contents.bytes.extend_from_slice(&bytes[..size]);
        }
        contents
    }

    /// The elements as they lie in memory, and which of them were written; the others are zero.
    pub(super) fn of_memory(scalar: Scalar, (bytes, written): (Vec<u8>, Vec<bool>)) -> Contents {
        Contents {
            scalar,
            bytes,
            written,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// Ranges of elements that differ from those of another, in order; what lies between is the same bit for bit.
    pub(super) fn differing<'a>(
        &'a self,
        other: &'a Contents,
    ) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        const RUN: usize = 4096;
        let size = self.scalar.bytes() as usize;
        let runs = (0..self.len()).step_by(RUN);
        let runs = runs.map(|start| start..(start + RUN).min(self.len()));
        runs.filter(move |run| {
            let bytes = run.start * size..run.end * size;
            self.bytes[bytes.clone()] != other.bytes[bytes]
                || self.written[run.clone()] != other.written[run.clone()]
        })
    }

    /// An element; none if nobody wrote it.
    pub(super) fn get(&self, i: usize) -> Option<u64> {
        let size = self.scalar.bytes() as usize;
        self.written[i].then(|| from_bytes(&self.bytes[i * size..][..size]))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        let elements = self.bytes.chunks_exact(self.scalar.bytes() as usize);
        let written = self.written.iter();
        elements
            .zip(written)
            .map(|(bytes, &written)| written.then(|| from_bytes(bytes)))
    }

    /// Whether this is what a buffer held that started with these bytes.
    pub(super) fn is_still(&self, bytes: Option<&[u8]>) -> bool {
        match bytes {
            Some(bytes) => self.bytes == bytes && self.written.iter().all(|&w| w),
            None => self.written.iter().all(|&w| !w),
        }
    }
}

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
    /// Steps to give up after, if not those that are usual for the executor.
    pub(super) steps: Option<u64>,
}

/// What a run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finished {
    /// What each argument's buffer holds, none for other arguments.
    pub(super) buffers: Vec<Option<Contents>>,
    /// What the kernel printed, sorted; none where nobody can know.
    pub(super) printed: Option<Vec<String>>,
}

impl Finished {
    /// What was printed, or that assertions failed.
    pub(super) fn outcome(
        buffers: Vec<Option<Contents>>,
        log: Option<&Log>,
        sites: &[Site],
    ) -> Outcome {
        if let Some(failure) = log.and_then(|log| log.failures(sites).next()) {
            return failed(failure.to_string());
        }
        let lines = |log: &Log| {
            let mut lines = log.lines(sites);
            // What was lost is said last.
            let records = lines.len() - usize::from(log.lost > 0);
            lines[..records].sort();
            lines
        };
        Outcome::Done(Finished {
            buffers,
            printed: log.map(lines),
        })
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It came to its end.
    Done(Finished),
    /// It cannot be run here.
    Skipped(String),
    /// It has an op that this executor never runs.
    NotExecutable(String),
    /// It did not come to its end, or did something undefined.
    Failed {
        /// What happened.
        message: String,
        /// Which instruction of the kernel did it, if that is known.
        inst: Option<Inst>,
    },
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
    vec![
        Box::new(Emulator),
        #[cfg(feature = "cuda")]
        Box::new(super::gpu::Gpu),
        #[cfg(not(feature = "cuda"))]
        Box::new(NoGpu),
    ]
}

/// What helps a kernel that only needs more time.
const STEPS_ADVICE: &str = "; if it comes to an end, raise it with steps(..) or --steps";

/// The first lines of a PTX text that fault messages refer to would drown a report; this is the line itself.
fn line_of(ptx: &str, line: Option<u32>) -> String {
    let text = line.and_then(|line| ptx.lines().nth(line as usize - 1));
    text.map_or(String::new(), |text| format!("\n    {}", text.trim()))
}

/// A failure that no instruction of the kernel is to blame for.
pub(super) fn failed(message: impl Into<String>) -> Outcome {
    Outcome::Failed {
        message: message.into(),
        inst: None,
    }
}

/// The bytes of an element as it lies in memory.
pub(super) fn to_bytes(scalar: Scalar, bits: u64) -> Vec<u8> {
    bits.to_le_bytes()[..scalar.bytes() as usize].to_vec()
}

/// The bits of an element as it lies in memory.
pub(super) fn from_bytes(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// The elements of a buffer that `read` gives by byte offset and size, or not if nobody wrote them.
#[cfg(feature = "cuda")]
pub(super) fn contents(
    scalar: Scalar,
    count: usize,
    read: impl Fn(u64, usize) -> Option<u64>,
) -> Contents {
    let size = scalar.bytes() as usize;
    Contents::new(scalar, (0..count).map(|i| read((i * size) as u64, size)))
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
            let address = match &arg.it {
                ArgValue::Buffer {
                    scalar,
                    count,
                    bytes,
                } => {
                    let address = memory.try_alloc(count * scalar.bytes() as usize);
                    address.and_then(|address| {
                        if let Some(bytes) = bytes {
                            memory.write(address, bytes)?;
                        }
                        Ok(address)
                    })
                }
                ArgValue::Scalar { .. } | ArgValue::Null => Ok(0),
            };
            match address {
                Ok(address) => addresses.push(address),
                Err(error) => return failed(format!("`{}`: {error}", arg.name)),
            }
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
        let mut options = interp::Options::default();
        options.step_limit = job.steps.unwrap_or(options.step_limit);
        let result = interp::run(job.func, &launch, &mut memory, &options);
        if let Err(error) = result {
            if let interp::InterpErrorKind::NotExecutable(_) = error.kind {
                return Outcome::NotExecutable(error.to_string());
            }
            let place = match error.place.program {
                Some([x, y, z]) => format!("program ({x}, {y}, {z}): "),
                None => String::new(),
            };
            let advice = match error.kind {
                interp::InterpErrorKind::StepLimit(_) => STEPS_ADVICE,
                _ => "",
            };
            return Outcome::Failed {
                message: format!("{place}{}{advice}", error.kind),
                inst: error.place.inst.map(|(inst, _)| inst),
            };
        }
        let outputs = job
            .args
            .iter()
            .zip(&addresses)
            .map(|(arg, &address)| match &arg.it {
                ArgValue::Buffer { scalar, count, .. } => {
                    let size = scalar.bytes() as usize;
                    let held = memory.snapshot(address, count * size, size).ok();
                    held.map(|held| Contents::of_memory(*scalar, held))
                }
                ArgValue::Scalar { .. } | ArgValue::Null => None,
            });
        let buffers = outputs.collect();
        let sites: Vec<Site> = log::sites(job.func).into_iter().map(|(_, s)| s).collect();
        Finished::outcome(buffers, Some(&memory.take_log()), &sites)
    }
}

/// The PTX emulator, with every check on.
struct Emulator;

impl Executor for Emulator {
    fn name(&self) -> &'static str {
        "emulator"
    }

    fn is_seeded(&self) -> bool {
        true
    }

    fn run(&self, job: &Job<'_>) -> Outcome {
        let kernel = match compile(job.func, job.target, job.options) {
            Ok(kernel) => kernel,
            Err(error) => return failed(format!("{}: {error}", job.target)),
        };
        let module = match emu::Module::parse(&kernel.ptx) {
            Ok(module) => module,
            Err(error) => return failed(format!("{error}\n{}", kernel.ptx)),
        };
        let mut memory = emu::Memory::new();
        let mut addresses = Vec::new();
        let mut args = Vec::new();
        for arg in job.args {
            let address = match &arg.it {
                ArgValue::Buffer {
                    scalar,
                    count,
                    bytes,
                } => {
                    let address = memory.try_alloc(count * scalar.bytes() as usize);
                    address.and_then(|address| {
                        if let Some(bytes) = bytes {
                            memory.write(address, bytes)?;
                        }
                        Ok(address)
                    })
                }
                ArgValue::Scalar { .. } | ArgValue::Null => Ok(0),
            };
            let address = match address {
                Ok(address) => address,
                Err(error) => return failed(format!("`{}`: {error}", arg.name)),
            };
            addresses.push(address);
            args.push(match &arg.it {
                ArgValue::Scalar { scalar, bits } => emu::Arg::bytes(&to_bytes(*scalar, *bits)),
                ArgValue::Null | ArgValue::Buffer { .. } => emu::Arg::pointer(address),
            });
        }
        let defaults = emu::Options::default();
        let launch = emu::Launch {
            grid: job.grid,
            block: [32 * kernel.meta.num_warps, 1, 1],
            shared_bytes: kernel.meta.shared,
            args: &args,
            options: emu::Options {
                seed: job.seed,
                step_limit: job.steps.unwrap_or(RUN_LINE_STEPS),
                ..defaults
            },
        };
        if let Err(error) = emu::run(&module, &kernel.meta.name, &launch, &mut memory) {
            let line = line_of(&kernel.ptx, error.line());
            let advice = match error.fault() {
                Some(emu::Fault::StepLimit(_)) => STEPS_ADVICE,
                _ => "",
            };
            return failed(format!("{}: {error}{advice}{line}", job.target));
        }
        let outputs = job.args.iter().zip(&addresses);
        let buffers = outputs
            .map(|(arg, &address)| match &arg.it {
                ArgValue::Buffer { scalar, count, .. } => {
                    let size = scalar.bytes() as usize;
                    let held = memory.snapshot(address, count * size, size).ok();
                    held.map(|held| Contents::of_memory(*scalar, held))
                }
                ArgValue::Scalar { .. } | ArgValue::Null => None,
            })
            .collect();
        let log = memory.variable(log::SYMBOL).map(Log::decode);
        Finished::outcome(buffers, Some(&log.unwrap_or_default()), &kernel.meta.sites)
    }
}

/// Stands for the GPU in a build that cannot reach one.
#[cfg(not(feature = "cuda"))]
struct NoGpu;

#[cfg(not(feature = "cuda"))]
impl Executor for NoGpu {
    fn name(&self) -> &'static str {
        "GPU"
    }

    fn is_seeded(&self) -> bool {
        false
    }

    fn run(&self, _job: &Job<'_>) -> Outcome {
        Outcome::Skipped("built without the feature `cuda`".to_owned())
    }
}
