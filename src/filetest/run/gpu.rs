//! The first GPU of the machine.
//!
//! A GPU does not say which bytes were written. So a kernel with outputs that start as poison runs twice, on
//! different poison: what equals the poison both times was not written.

use std::sync::OnceLock;

use super::exec::{
    ArgValue, Executor, Finished, Job, Outcome, contents, failed, from_bytes, to_bytes, with_maps,
};
use crate::compile::{CompiledKernel, KernelMeta, compile};
use crate::device_print::{self, Log};
use crate::driver::{
    Arg, Buffer, Context, Device, Driver, DriverError, LaunchSpec, Module, ParamSize, RawPtr,
    Stream, TensorMap, launch,
};
use crate::runtime::{driver_launch, without_maps};

/// Bytes on each side of a buffer that no kernel may touch.
const GUARD: usize = 4096;
/// Fill of unwritten memory in the two runs.
const POISONS: [u8; 2] = [0xcd, 0x32];

/// An open device.
struct Open {
    context: Context,
    stream: Stream,
}

/// The GPU.
pub(super) struct Gpu;

impl Gpu {
    fn open() -> Result<&'static Open, String> {
        static OPEN: OnceLock<Result<Open, String>> = OnceLock::new();
        let open = || -> Result<Open, DriverError> {
            Driver::load()?;
            let context = Context::new(&Device::get(0)?)?;
            let stream = Stream::new(&context)?;
            Ok(Open { context, stream })
        };
        let opened = OPEN.get_or_init(|| open().map_err(|e| e.to_string()));
        opened.as_ref().map_err(String::clone)
    }
}

impl Executor for Gpu {
    fn name(&self) -> &'static str {
        "GPU"
    }

    fn is_seeded(&self) -> bool {
        false
    }

    fn run(&self, job: &Job<'_>) -> Outcome {
        let open = match Gpu::open() {
            Ok(open) => open,
            Err(reason) => return Outcome::Skipped(reason),
        };
        let capability = open.context.device().capability;
        if capability.runs(&job.target.to_string()) != Some(true) {
            return Outcome::Skipped(format!("it is {capability}, the target {}", job.target));
        }
        let kernel = match compile(job.func, job.target, job.options) {
            Ok(kernel) => kernel,
            Err(error) => return failed(format!("{}: {error}", job.target)),
        };
        let mut variant = String::new();
        let runs: Result<Vec<_>, String> = POISONS
            .iter()
            .map(|&poison| run_once(open, &kernel, job, poison, &mut variant))
            .collect();
        let (runs, logs): (Vec<_>, Vec<_>) = match runs {
            Ok(runs) => runs.into_iter().unzip(),
            Err(error) => return failed(format!("{}: {error}", job.target)),
        };
        let outputs = job.args.iter().enumerate().map(|(i, arg)| match &arg.it {
            ArgValue::Buffer {
                scalar,
                count,
                bytes,
            } => Some(contents(*scalar, *count, |at, size| {
                let element = |run: usize| &runs[run][i][at as usize..][..size];
                let poisoned = |run: usize| element(run).iter().all(|&byte| byte == POISONS[run]);
                let unwritten = bytes.is_none() && poisoned(0) && poisoned(1);
                (!unwritten).then(|| from_bytes(element(0)))
            })),
            ArgValue::Scalar { .. } | ArgValue::Null | ArgValue::Same(_) => None,
        });
        Finished::outcome(outputs.collect(), logs.first(), &kernel.meta.sites).of_variant(variant)
    }
}

/// Why a launch came to nothing, in words.
struct Problem(String);

impl From<DriverError> for Problem {
    fn from(error: DriverError) -> Problem {
        Problem(error.to_string())
    }
}

/// The bits of an argument.
fn word(arg: &Arg<'_>) -> u64 {
    match arg {
        Arg::Pointer(pointer) => pointer.address(),
        Arg::Bytes(bytes) => from_bytes(bytes),
        // No others are made here.
        _ => 0,
    }
}

/// Launches once; gives the bytes of each buffer, none for other arguments, and what was printed.
fn run_once(
    open: &Open,
    kernel: &CompiledKernel,
    job: &Job<'_>,
    poison: u8,
    variant: &mut String,
) -> Result<(Vec<Vec<u8>>, Log), String> {
    let ran = try_run(open, kernel, job, poison, variant);
    let (result, log) = ran.map_err(|problem| problem.0)?;
    let mut buffers = Vec::new();
    for (bytes, arg) in result.into_iter().zip(job.args) {
        let Some(inner) = bytes.len().checked_sub(2 * GUARD) else {
            buffers.push(Vec::new());
            continue;
        };
        let (before, rest) = bytes.split_at(GUARD);
        let (inside, after) = rest.split_at(inner);
        if before.iter().chain(after).any(|&byte| byte != poison) {
            return Err(format!("it wrote outside of buffer `{}`", arg.name));
        }
        buffers.push(inside.to_vec());
    }
    Ok((buffers, log))
}

fn try_run(
    open: &Open,
    kernel: &CompiledKernel,
    job: &Job<'_>,
    poison: u8,
    variant: &mut String,
) -> Result<(Vec<Vec<u8>>, Log), Problem> {
    let Open { context, stream } = open;
    let mut buffers = Vec::new();
    let mut scalars = Vec::new();
    for arg in job.args {
        let inside = match &arg.it {
            ArgValue::Buffer {
                bytes: Some(bytes), ..
            } => bytes.clone(),
            ArgValue::Buffer {
                scalar,
                count,
                bytes: None,
            } => vec![poison; count * scalar.bytes() as usize],
            ArgValue::Scalar { scalar, bits } => {
                scalars.push(to_bytes(*scalar, *bits));
                buffers.push(None);
                continue;
            }
            ArgValue::Null | ArgValue::Same(_) => {
                scalars.push(Vec::new());
                buffers.push(None);
                continue;
            }
        };
        let guard = [poison; GUARD];
        let all = [&guard[..], &inside, &guard].concat();
        scalars.push(Vec::new());
        buffers.push(Some((Buffer::from_slice(stream, &all)?, inside.len())));
    }
    let mut args = Vec::new();
    for ((arg, buffer), bytes) in job.args.iter().zip(&buffers).zip(&scalars) {
        let buffer = match arg.it {
            ArgValue::Same(of) => &buffers[of],
            _ => buffer,
        };
        args.push(match (&arg.it, buffer) {
            (ArgValue::Scalar { .. }, _) => Arg::Bytes(bytes),
            (_, Some((buffer, size))) => Arg::Pointer(buffer.slice(GUARD..GUARD + size)?),
            (_, None) => Arg::Pointer(RawPtr::null()),
        });
    }
    let words: Vec<u64> = args.iter().map(word).collect();
    let resident = context.device().multiprocessors;
    let beside = |meta: &KernelMeta| driver_launch(meta, &words, job.grid, resident);
    let why = |meta: &KernelMeta| without_maps(meta, &words, job.grid);
    let made = with_maps(kernel.clone(), job, beside, why).map_err(Problem)?;
    let (kernel, beside) = (&made.0, &made.1);
    *variant = made.2;
    args.extend(beside.programs.iter().map(|bytes| Arg::Bytes(bytes)));
    args.extend(beside.maps.iter().map(TensorMap::arg));
    let module = Module::load(context, &kernel.ptx)?;
    let function = module.function(&kernel.meta.name)?;
    let mut params: Vec<ParamSize> = kernel.meta.params.iter().map(ParamSize::from).collect();
    let own = params.len();
    params.extend(args[own..].iter().map(Arg::size));
    let spec = LaunchSpec {
        name: &kernel.meta.name,
        block: kernel.meta.block(),
        cluster: [1, 1, 1],
        shared: kernel.meta.shared,
        params: &params,
    };
    launch(&function, &spec, beside.ctas, stream, &args)?;
    stream.synchronize()?;
    let contents: Result<Vec<Vec<u8>>, DriverError> = buffers
        .iter()
        .map(|buffer| match buffer {
            Some((buffer, _)) => buffer.to_vec::<u8>(stream),
            None => Ok(Vec::new()),
        })
        .collect();
    // A module that was just loaded has a log of zeros.
    let log = match module.global(device_print::SYMBOL)? {
        Some(variable) => {
            let mut bytes = vec![0u8; variable.bytes()];
            variable.read(stream, &mut bytes)?;
            Log::decode(&bytes)
        }
        None => Log::default(),
    };
    Ok((contents?, log))
}
