//! What runs a kernel: the interpreter, which is the reference, and whatever runs compiled code.

use std::fmt;

use super::named::named_address;
use crate::compile::{CompiledKernel, KernelMeta, compile};
use crate::device_print::{self, Log, Site};
use crate::emu;
use crate::interp::Cause;
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_STEPS;
use crate::runtime::{emulated as emulated_beside, emulated_without_maps, source_place};
use crate::settings::{Options, Promote, Target};

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    /// What a file says about the extents of a buffer.
    pub(super) shape: Option<Vec<usize>>,
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
    /// The buffer of the argument with this number.
    Same(usize),
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

    /// The elements as they lie in memory, zeros where nobody wrote, and whether all were written.
    pub(super) fn bytes(&self) -> (&[u8], bool) {
        (&self.bytes, self.written.iter().all(|&w| w))
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
    /// Whether places are those of a source text that the kernel was made from.
    pub(super) in_source: bool,
    /// Steps to give up after, if not those that are usual for the executor.
    pub(super) steps: Option<u64>,
}

/// What a run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finished {
    /// What each argument's buffer holds, none for other arguments.
    pub(super) buffers: Vec<Option<Contents>>,
    /// What the kernel printed; none where nobody can know.
    pub(super) printed: Option<Printed>,
    /// Which of its variants ran, behind what is said of the run; empty of a kernel that has one.
    pub(super) variant: String,
    /// The first quotient of integers that is not defined, if the executor knows and there is one.
    pub(super) undefined: Option<Cause>,
}

/// The lines that a kernel printed, by place, program and element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) lines: Vec<String>,
    /// How many more there were than the log of a launch holds.
    pub(super) lost: u32,
}

impl Finished {
    /// What was printed, or that assertions failed.
    pub(super) fn outcome(
        buffers: Vec<Option<Contents>>,
        log: Option<&Log>,
        sites: &[Site],
    ) -> Outcome {
        if let Some(failure) = log.and_then(|log| log.failures(sites).next()) {
            return Outcome::Failed {
                message: failure.to_string(),
                at: None,
                printed: log.map_or_else(Printed::default, |log| Printed::of(log, sites)),
            };
        }
        Outcome::Done(Finished {
            buffers,
            printed: log.map(|log| Printed::of(log, sites)),
            variant: String::new(),
            undefined: None,
        })
    }
}

impl Printed {
    /// Those of a log.
    pub(super) fn of(log: &Log, sites: &[Site]) -> Printed {
        let Log { records, lost } = log.clone();
        let kept = Log { records, lost: 0 };
        Printed {
            lines: kept.lines(sites),
            lost,
        }
    }

    /// How many were printed, those that are lost included.
    pub(super) fn count(&self) -> usize {
        self.lines.len() + self.lost as usize
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
        /// Where it is, if that is known.
        at: Option<At>,
        /// What the kernel had printed by then.
        printed: Printed,
    },
}

impl Outcome {
    /// The same of a variant of the kernel.
    pub(super) fn of_variant(mut self, variant: String) -> Outcome {
        if let Outcome::Done(finished) = &mut self {
            finished.variant = variant;
        }
        self
    }
}

/// The place of a failure.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// The instruction of the kernel that did it.
    Inst(Inst),
    /// Line and column of the source.
    Source(u32, u32),
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
    super::interpreter::Interpreter
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
pub(super) const STEPS_ADVICE: &str = "; if it comes to an end, raise it with steps(..) or --steps";

/// The first lines of a PTX text that fault messages refer to would drown a report; this is the line itself.
pub(super) fn line_of(ptx: &str, line: Option<u32>) -> String {
    let text = line.and_then(|line| ptx.lines().nth(line as usize - 1));
    text.map_or(String::new(), |text| format!("\n    {}", text.trim()))
}

/// A failure that no instruction of the kernel is to blame for.
pub(super) fn failed(message: impl Into<String>) -> Outcome {
    Outcome::Failed {
        message: message.into(),
        at: None,
        printed: Printed::default(),
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

/// Allocates the buffers in the memory of an executor; gives the address for each argument. `allocate` makes room for so many bytes,
/// and writes the ones that are given.
pub(super) fn allocated<E: fmt::Display>(
    args: &[Argument],
    mut allocate: impl FnMut(usize, Option<&[u8]>) -> Result<u64, E>,
) -> Result<Vec<u64>, String> {
    let address = |arg: &Argument| match &arg.it {
        ArgValue::Buffer {
            scalar,
            count,
            bytes,
        } => allocate(count * scalar.bytes() as usize, bytes.as_deref())
            .map_err(|error| format!("`{}`: {error}", arg.name)),
        ArgValue::Scalar { .. } | ArgValue::Null | ArgValue::Same(_) => Ok(0),
    };
    let mut addresses: Vec<u64> = args.iter().map(address).collect::<Result<_, _>>()?;
    for (i, arg) in args.iter().enumerate() {
        if let ArgValue::Same(of) = arg.it {
            addresses[i] = addresses[of];
        }
    }
    Ok(addresses)
}

/// The same in the emulator's memory.
pub(super) fn emulated(args: &[Argument], memory: &mut emu::Memory) -> Result<Vec<u64>, String> {
    allocated(args, |size, bytes| {
        let address = memory.try_alloc(size)?;
        bytes.map_or(Ok(()), |bytes| memory.write(address, bytes))?;
        Ok::<_, emu::MemoryError>(address)
    })
}

/// What the buffers hold.
pub(super) fn emulated_buffers(
    args: &[Argument],
    addresses: &[u64],
    memory: &emu::Memory,
) -> Vec<Option<Contents>> {
    let outputs = args.iter().zip(addresses);
    let held = outputs.map(|(arg, &address)| match &arg.it {
        ArgValue::Buffer { scalar, count, .. } => {
            let size = scalar.bytes() as usize;
            let held = memory.snapshot(address, count * size, size).ok();
            held.map(|held| Contents::of_memory(*scalar, held))
        }
        ArgValue::Scalar { .. } | ArgValue::Null | ArgValue::Same(_) => None,
    });
    held.collect()
}

/// The source's place for a line of PTX, if the kernel has a source.
fn source_of(job: &Job<'_>, ptx: &str, line: Option<u32>) -> Option<At> {
    let line = line.filter(|_| job.in_source)?;
    let options = Options {
        line_info: true,
        ..*job.options
    };
    let located = compile(job.func, job.target, &options).ok()?;
    let (line, column) = source_place(ptx, line, &located.ptx)?;
    Some(At::Source(line, column))
}

/// The kernel with what it takes beside its arguments, as `make` makes it, or the kernel without tensor maps where the arguments allow
/// none, for which `why` has the reason; and which of the two it is, in words.
pub(super) fn with_maps<T>(
    kernel: CompiledKernel,
    job: &Job<'_>,
    make: impl Fn(&KernelMeta) -> Option<T>,
    why: impl Fn(&KernelMeta) -> String,
) -> Result<(CompiledKernel, T, String), String> {
    if let Some(maps) = make(&kernel.meta) {
        let variant = match kernel.meta.maps.is_empty() {
            true => String::new(),
            false => ", with tensor maps".to_owned(),
        };
        return Ok((kernel, maps, variant));
    }
    let variant = format!(", without tensor maps: {}", why(&kernel.meta));
    let options = Options {
        promote: Promote::Never,
        ..*job.options
    };
    let plain =
        compile(job.func, job.target, &options).map_err(|e| format!("{}: {e}", job.target))?;
    // A text may state maps itself.
    let maps = make(&plain.meta).ok_or_else(|| {
        let why = why(&kernel.meta);
        format!("these arguments allow no tensor map, and the kernel reads by nothing else: {why}")
    })?;
    Ok((plain, maps, variant))
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
        emulate(job, |ptx| ptx)
    }
}

/// A kernel that is ready for the emulator.
struct Prepared {
    kernel: CompiledKernel,
    module: emu::Module,
    memory: emu::Memory,
    /// Of the buffers, for each argument.
    addresses: Vec<u64>,
    args: Vec<emu::Arg>,
    ctas: [u32; 3],
    /// Which of the kernel's variants it is, in words.
    variant: String,
}

impl Prepared {
    /// Compiles the kernel of a job, takes what is made of its PTX, and allocates the buffers.
    fn new(job: &Job<'_>, edit: impl FnOnce(String) -> String) -> Result<Prepared, String> {
        let kernel = compile(job.func, job.target, job.options)
            .map_err(|error| format!("{}: {error}", job.target))?;
        let mut memory = emu::Memory::new();
        let addresses = emulated(job.args, &mut memory)?;
        let args = job.args.iter().zip(&addresses);
        let args = args.map(|(arg, &address)| match &arg.it {
            ArgValue::Scalar { scalar, bits } => emu::Arg::bytes(&to_bytes(*scalar, *bits)),
            ArgValue::Null | ArgValue::Same(_) | ArgValue::Buffer { .. } => {
                emu::Arg::pointer(address)
            }
        });
        let mut args: Vec<emu::Arg> = args.collect();
        let beside = |meta: &KernelMeta| emulated_beside(meta, &args, job.grid);
        let why = |meta: &KernelMeta| emulated_without_maps(meta, &args, job.grid);
        let (kernel, beside, variant) = with_maps(kernel, job, beside, why)?;
        args.extend(beside.args);
        let kernel = CompiledKernel {
            ptx: edit(kernel.ptx),
            ..kernel
        };
        let module =
            emu::Module::parse(&kernel.ptx).map_err(|error| format!("{error}\n{}", kernel.ptx))?;
        Ok(Prepared {
            kernel,
            module,
            memory,
            addresses,
            args,
            ctas: beside.ctas,
            variant,
        })
    }

    /// The launch of a job.
    fn launch<'a>(
        job: &Job<'_>,
        kernel: &CompiledKernel,
        ctas: [u32; 3],
        args: &'a [emu::Arg],
    ) -> emu::Launch<'a> {
        emu::Launch {
            grid: ctas,
            block: kernel.meta.block(),
            shared_bytes: kernel.meta.shared,
            args,
            options: emu::Options {
                seed: job.seed,
                step_limit: job.steps.unwrap_or(RUN_LINE_STEPS),
                ..emu::Options::default()
            },
        }
    }
}

/// The PTX of a kernel, and what each of its lines does on the emulator.
pub(super) fn by_lines(job: &Job<'_>) -> Result<(String, Vec<(u32, emu::Stats)>), String> {
    let Prepared {
        kernel,
        module,
        mut memory,
        args,
        ctas,
        ..
    } = Prepared::new(job, |ptx| ptx)?;
    let launch = Prepared::launch(job, &kernel, ctas, &args);
    let counts = emu::run_by_lines(&module, &kernel.meta.name, &launch, &mut memory)
        .map_err(|error| error.to_string())?;
    Ok((kernel.ptx, counts))
}

/// Runs what is made of the PTX of a kernel.
pub(super) fn emulate(job: &Job<'_>, edit: impl FnOnce(String) -> String) -> Outcome {
    let Prepared {
        kernel,
        module,
        mut memory,
        addresses,
        args,
        ctas,
        variant,
    } = match Prepared::new(job, edit) {
        Ok(prepared) => prepared,
        Err(message) => return failed(message),
    };
    let launch = Prepared::launch(job, &kernel, ctas, &args);
    let log = |memory: &emu::Memory| {
        let log = memory.variable(device_print::SYMBOL).map(Log::decode);
        log.unwrap_or_default()
    };
    if let Err(error) = emu::run(&module, &kernel.meta.name, &launch, &mut memory) {
        let at = source_of(job, &kernel.ptx, error.line());
        let advice = match error.fault() {
            Some(emu::Fault::StepLimit(_)) => STEPS_ADVICE,
            _ => "",
        };
        let what = match (&error, &at) {
            // The place says the line.
            (emu::EmuError::Fault { at, fault }, Some(_)) => {
                let ([x, y, z], [thread, ..]) = (at.cta, at.thread);
                format!("program ({x}, {y}, {z}), thread {thread}: {fault}")
            }
            _ => error.to_string(),
        };
        let line = match at {
            Some(_) => String::new(),
            None => line_of(&kernel.ptx, error.line()),
        };
        let named = error.fault().and_then(emu::Fault::global_address);
        let named = named.map_or(String::new(), |address| {
            named_address(job.args, &addresses, address)
        });
        return Outcome::Failed {
            message: format!("{}: {what}{named}{advice}{line}", job.target),
            at,
            printed: Printed::of(&log(&memory), &kernel.meta.sites),
        };
    }
    let buffers = emulated_buffers(job.args, &addresses, &memory);
    Finished::outcome(buffers, Some(&log(&memory)), &kernel.meta.sites).of_variant(variant)
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
