//! Variants: from a program and classes of arguments to code that can be launched.
//!
//! ```text
//!   program, classes, options --key--> cache: kernel?  --miss--> lower, compile --> PTX, description
//!                                                                                     |
//!   emulator: parse  <------------------------------------------------------------------+
//!   GPU:      PTX, device, driver --key--> cache: cubin? --miss--> assemble --> machine code --> load
//! ```
//!
//! A variant is made once: who comes while it is being made waits. An error that would come again is kept with the
//! variant, one of the moment (no memory, a deadline) goes to one caller and the next tries anew.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::compile::{self, KernelMeta, ParamKind, Snapshot};
use crate::emu;
use crate::log::{self, Log};

use super::argument::Arg;
use super::cache::{Key, KeyBuilder, Kind, Origin};
use super::device::Backend;
use super::dump::file_name;
use super::error::RuntimeError;
use super::given::{self, Given};
use super::graph::Recorded;
use super::kernel::KernelInner;
use super::locate;
use super::patience::{CancelToken, Patience, Stopped};
use super::pool;
use super::report::{Prediction, Report, Timing};
use super::stored::Stored;
use super::stream::Stream;
use super::table::{Classes, Keyed};

#[cfg(feature = "cuda")]
use super::gpu;
#[cfg(feature = "cuda")]
use crate::driver::RawPtr;

/// The build of the compiler, which decides what it makes of a program.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TILELIFT_BUILD"));

/// How often a waiter looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(5);

/// A kernel for arguments of certain classes.
#[derive(Debug)]
pub(crate) struct Variant {
    classes: Classes,
    /// Set once; launches look here alone.
    pub(crate) ready: OnceLock<Ready>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    /// Nobody makes it.
    Idle,
    /// Somebody makes it.
    Busy,
    /// It cannot be made.
    Failed(RuntimeError),
}

/// A variant that can be launched.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) report: Report,
    /// For each parameter of the PTX entry the argument that it takes.
    params: SmallVec<[u16; 32]>,
    /// Whether that is each argument in its place.
    #[cfg(feature = "cuda")]
    is_direct: bool,
    code: Code,
    meta: KernelMeta,
    ptx: String,
    /// What the last launch printed, on the emulator.
    printed: Mutex<Vec<u8>>,
    /// Where a GPU writes what is printed: address and bytes.
    #[cfg(feature = "cuda")]
    log: Option<(u64, usize)>,
}

#[derive(Debug)]
enum Code {
    Emulated(emu::Module),
    #[cfg(feature = "cuda")]
    Gpu(crate::driver::Prepared),
}

impl Keyed for Variant {
    fn classes(&self) -> &Classes {
        &self.classes
    }
}

impl Variant {
    pub(crate) fn new(classes: Classes) -> Variant {
        Variant {
            classes,
            ready: OnceLock::new(),
            state: Mutex::new(State::Idle),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the variant, or waits for who makes it.
    ///
    /// A caller whose patience may end leaves the work to a thread in the background, so that it can leave.
    #[cold]
    pub(crate) fn obtain<'v>(
        kernel: &Arc<KernelInner>,
        variant: &'v Arc<Variant>,
        patience: &Patience,
    ) -> Result<&'v Ready, RuntimeError> {
        let stopped = |stopped| RuntimeError::Stopped {
            kernel: kernel.name.clone(),
            stopped,
        };
        loop {
            let mut state = variant.state();
            // Under the lock: who made it meanwhile has set it before.
            if let Some(ready) = variant.ready.get() {
                return Ok(ready);
            }
            match &*state {
                State::Failed(error) => {
                    let error = error.clone();
                    if !error.is_permanent() {
                        *state = State::Idle;
                    }
                    return Err(error);
                }
                State::Idle => {
                    patience.check().map_err(stopped)?;
                    *state = State::Busy;
                    drop(state);
                    let cancel = patience.cancel.clone();
                    if patience.is_endless() {
                        variant.make(kernel, None);
                    } else {
                        let (kernel, variant) = (kernel.clone(), variant.clone());
                        pool::spawn(move || variant.make(&kernel, cancel));
                    }
                }
                State::Busy => {
                    patience.check().map_err(stopped)?;
                    let mut wait = LOOK;
                    if patience.cancel.is_none() {
                        let left =
                            |deadline: Instant| deadline.saturating_duration_since(Instant::now());
                        wait = patience.deadline.map_or(Duration::from_secs(3600), left);
                    }
                    // Whether the time ran out shows at the next turn.
                    drop(self::wait(&variant.changed, state, wait));
                }
            }
        }
    }

    /// Makes the variant if nobody has tried. It never waits for another: on a thread of the pool that could be one behind
    /// it in the queue.
    pub(crate) fn make_if_idle(&self, kernel: &KernelInner) {
        let mut state = self.state();
        if self.ready.get().is_some() || !matches!(*state, State::Idle) {
            return;
        }
        *state = State::Busy;
        drop(state);
        self.make(kernel, None);
    }

    /// Makes the variant and tells who waits.
    fn make(&self, kernel: &KernelInner, cancel: Option<CancelToken>) {
        let patience = Patience {
            deadline: None,
            cancel,
        };
        // The compiler's own panics are errors already; this is for the rest of the way.
        let built = catch_unwind(AssertUnwindSafe(|| build(kernel, &self.classes, &patience)));
        let built = built.unwrap_or_else(|_| {
            Err(RuntimeError::Internal {
                kernel: kernel.name.clone(),
                message: "a panic while the kernel was made".to_owned(),
            })
        });
        let mut state = self.state();
        *state = match built {
            Ok(ready) => {
                // Only who found the state idle comes here, so it is not set.
                let _ = self.ready.set(ready);
                State::Idle
            }
            Err(error) => State::Failed(error),
        };
        drop(state);
        self.changed.notify_all();
    }
}

/// Waits until something changed, or for so long.
fn wait<'s>(
    changed: &Condvar,
    state: MutexGuard<'s, State>,
    time: Duration,
) -> MutexGuard<'s, State> {
    let result = changed.wait_timeout(state, time);
    result.unwrap_or_else(PoisonError::into_inner).0
}

/// An error on the way, before it knows its kernel.
enum Problem {
    Stopped(Stopped),
    Error(RuntimeError),
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Problem {
        Problem::Stopped(stopped)
    }
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Problem {
        Problem::Error(error)
    }
}

impl Problem {
    fn of(self, kernel: &KernelInner) -> RuntimeError {
        match self {
            Problem::Stopped(stopped) => RuntimeError::Stopped {
                kernel: kernel.name.clone(),
                stopped,
            },
            Problem::Error(error) => error,
        }
    }
}

fn build(
    kernel: &KernelInner,
    classes: &Classes,
    patience: &Patience,
) -> Result<Ready, RuntimeError> {
    let mut timing = Timing::default();
    let (stored, kernel_origin) =
        obtain_kernel(kernel, classes, patience, &mut timing).map_err(|p| p.of(kernel))?;
    let params = argument_of_each_param(kernel, classes, &stored.meta)?;
    patience
        .check()
        .map_err(|stopped| Problem::Stopped(stopped).of(kernel))?;
    let mut report = Report {
        kernel: kernel.name.clone(),
        signature: kernel.signature(classes),
        constants: stored.constants.clone(),
        target: stored.meta.target,
        num_warps: stored.meta.num_warps,
        shared_bytes: stored.meta.shared,
        predicted_registers: stored.predicted_registers,
        resources: None,
        kernel_origin,
        cubin_origin: None,
        timing,
        assembler_log: String::new(),
    };
    let code = match kernel.device.backend() {
        Backend::Emulated(_) => {
            let clock = Instant::now();
            let module =
                emu::Module::parse(&stored.ptx).map_err(|error| RuntimeError::Internal {
                    kernel: kernel.name.clone(),
                    message: format!("the emulator does not accept the kernel: {error}"),
                })?;
            report.timing.assemble = clock.elapsed();
            Code::Emulated(module)
        }
        #[cfg(feature = "cuda")]
        Backend::Gpu(device) => {
            let loading = gpu::Loading {
                kernel,
                device,
                stored: &stored,
                name: &dump_name(kernel, &kernel_key(kernel, classes)),
            };
            let prepared = loading.load(patience, &mut report);
            Code::Gpu(prepared.map_err(|error| locate_error(kernel, classes, &stored, error))?)
        }
    };
    #[cfg(feature = "cuda")]
    let log = match &code {
        Code::Gpu(prepared) if !stored.meta.sites.is_empty() => {
            let global = prepared.function().module().global(log::SYMBOL);
            let global = global.map_err(|error| kernel.device.failed(Some(&kernel.name), error))?;
            global.map(|place| (place.address(), place.bytes()))
        }
        _ => None,
    };
    Ok(Ready {
        report,
        printed: Mutex::default(),
        #[cfg(feature = "cuda")]
        log,
        #[cfg(feature = "cuda")]
        is_direct: params
            .iter()
            .map(|&at| usize::from(at))
            .eq(0..classes.iter().count()),
        params,
        code,
        meta: stored.meta,
        ptx: stored.ptx,
    })
}

/// What the compiler alone says of a variant.
pub(crate) fn predict(
    kernel: &KernelInner,
    classes: &Classes,
    patience: &Patience,
) -> Result<Prediction, RuntimeError> {
    let made = obtain_kernel(kernel, classes, patience, &mut Timing::default());
    let (stored, _) = made.map_err(|problem| problem.of(kernel))?;
    Ok(Prediction {
        registers: stored.predicted_registers,
        shared_bytes: stored.meta.shared,
        threads: 32 * stored.meta.num_warps,
    })
}

/// PTX and description, from the cache or made now.
fn obtain_kernel(
    kernel: &KernelInner,
    classes: &Classes,
    patience: &Patience,
    timing: &mut Timing,
) -> Result<(Stored, Origin), Problem> {
    let key = kernel_key(kernel, classes);
    let slots = kernel.slots.iter().map(|slot| slot.param);
    let by_param: Vec<(usize, Given)> = slots.zip(given::read(classes)).collect();
    if let Some(stored) = kernel.source.compiled(&by_param) {
        let target = kernel.device.target();
        let stored = stored?;
        if !stored.meta.target.runs_on(target.sm / 10, target.sm % 10) {
            let problem = format!(
                "it was compiled for {}, and the device takes {target}",
                stored.meta.target
            );
            return Err(Problem::Error(RuntimeError::Setup {
                kernel: kernel.name.clone(),
                problem,
            }));
        }
        return Ok((stored, Origin::Made));
    }
    let dump = kernel.device.dump();
    if dump.is_on() {
        let mut stored = compile_kernel(kernel, classes, &key, timing)?;
        if let Some(ptx) = dump.replacement(&kernel.name)? {
            stored.ptx = ptx;
        }
        return Ok((stored, Origin::Made));
    }
    let clock = Instant::now();
    let cache = kernel.device.cache();
    let mut made = None;
    let found = cache.get_or_make(Kind::Kernel, &key, patience, || {
        let stored = compile_kernel(kernel, classes, &key, timing)?;
        let bytes = stored.encode();
        made = Some(stored);
        Ok::<_, Problem>(bytes)
    });
    let (bytes, origin) = found?;
    timing.cache += clock
        .elapsed()
        .saturating_sub(timing.lower + timing.compile);
    if let Some(stored) = made {
        return Ok((stored, origin));
    }
    match Stored::decode(&bytes) {
        Some(stored) => Ok((stored, origin)),
        None => {
            // The sum fits and the contents do not: a build of the same number with other contents wrote it.
            let stored = compile_kernel(kernel, classes, &key, timing)?;
            cache.put(Kind::Kernel, &key, &stored.encode());
            Ok((stored, Origin::Made))
        }
    }
}

/// Everything that a kernel depends on.
fn kernel_key(kernel: &KernelInner, classes: &Classes) -> Key {
    identity(kernel, classes).finish()
}

/// As [`kernel_key`], for more to be added.
pub(crate) fn identity(kernel: &KernelInner, classes: &Classes) -> KeyBuilder {
    let options = &kernel.options;
    let mut key = KeyBuilder::new()
        .part("build", BUILD)
        .part("source", &kernel.source.text)
        // It stands in the PTX where lines do.
        .part(
            "file",
            if options.line_info {
                &kernel.source.name
            } else {
                ""
            },
        )
        .part("kernel", &kernel.name)
        .part("target", kernel.device.target().to_string())
        .part("signature", kernel.signature(classes))
        .part("options", format!("{:?}", options.compiler()))
        .part("warps", format!("{:?}", options.num_warps))
        .part("stages", format!("{:?}", options.num_stages));
    for slot in &kernel.slots {
        key = key.part("argument", &kernel.params[slot.param].name);
    }
    for (name, value) in &options.constants {
        key = key.part(name, format!("{value:?}"));
    }
    key
}

/// The beginning of the names of a variant's dumps.
fn dump_name(kernel: &KernelInner, key: &Key) -> String {
    format!("{}-{}", file_name(&kernel.name), &key.to_string()[..12])
}

/// The compiler's own work.
fn compile_kernel(
    kernel: &KernelInner,
    classes: &Classes,
    key: &Key,
    timing: &mut Timing,
) -> Result<Stored, RuntimeError> {
    let options = kernel.options.compiler();
    compile_as(kernel, classes, &options, Some(key), timing)
}

/// [`compile_kernel`] with other options; dumped with a key.
fn compile_as(
    kernel: &KernelInner,
    classes: &Classes,
    options: &crate::settings::Options,
    key: Option<&Key>,
    timing: &mut Timing,
) -> Result<Stored, RuntimeError> {
    let clock = Instant::now();
    let target = kernel.device.target();
    let slots = kernel.slots.iter().map(|slot| slot.param);
    let classes: Vec<(usize, Given)> = slots.zip(given::read(classes)).collect();
    let made = kernel.source.make(
        &kernel.name,
        &kernel.options,
        target,
        &kernel.params,
        &classes,
    )?;
    timing.lower = clock.elapsed();
    let clock = Instant::now();
    let dump = kernel.device.dump();
    let name = key.map(|key| dump_name(kernel, key));
    let name = name.filter(|_| dump.write.is_some());
    let mut number = 0;
    let save = |text: &str, ending: &str| {
        if let Some(name) = &name {
            dump.save(&format!("{name}.{ending}"), text.as_bytes());
        }
    };
    let compiled = compile::compile_with(&made.func, target, options, &mut |pass, snapshot| {
        if name.is_some() {
            let text = match snapshot {
                Snapshot::Tile(func) => func.to_string(),
                Snapshot::Thread(func) => func.to_string(),
            };
            save(&text, &format!("{number:02}-{pass}.tir"));
            number += 1;
        }
    });
    let mut compiled = compiled.map_err(|error| RuntimeError::Compile {
        kernel: kernel.name.clone(),
        error: Box::new(error),
    })?;
    if options.line_info && kernel.source.has_lines() {
        compiled.ptx = locate::name_source(&compiled.ptx, &kernel.source.name);
    }
    timing.compile = clock.elapsed();
    save(&compiled.ptx, "ptx");
    Ok(Stored {
        ptx: compiled.ptx,
        meta: compiled.meta,
        predicted_registers: compiled.stats.machine.predicted_registers,
        constants: made.constants,
    })
}

/// Which argument each parameter of the PTX entry takes: those that have not become constants, in order.
fn argument_of_each_param(
    kernel: &KernelInner,
    classes: &Classes,
    meta: &KernelMeta,
) -> Result<SmallVec<[u16; 32]>, RuntimeError> {
    let given = given::read(classes);
    let params = given::places(&given);
    if params.len() != meta.params.len() {
        return Err(RuntimeError::Internal {
            kernel: kernel.name.clone(),
            message: format!(
                "{} arguments for the {} parameters of the PTX entry",
                params.len(),
                meta.params.len()
            ),
        });
    }
    for (place, param) in params.iter().zip(&meta.params) {
        let Some(class) = place.class else {
            continue;
        };
        let bytes = match class.is_pointer() {
            true => Some(8),
            false => class.dtype().map(|dtype| dtype.bytes() as u32),
        };
        if bytes != Some(param.bytes) && param.kind == ParamKind::Scalar {
            let at = kernel.slots[place.param].param;
            return Err(RuntimeError::Argument {
                kernel: kernel.name.clone(),
                name: kernel.params[at].name.clone(),
                problem: format!("it is {}, and the kernel takes {}", class.plain(), param.ty),
            });
        }
    }
    Ok(params.iter().map(|place| place.argument as u16).collect())
}

/// The place in the source for a line of a kernel's PTX, as `name:line`.
fn locate(kernel: &KernelInner, classes: &Classes, ptx: &str, line: u32) -> Option<String> {
    if !kernel.source.has_lines() {
        return None;
    }
    let options = crate::settings::Options {
        line_info: true,
        ..kernel.options.compiler()
    };
    let mut timing = Timing::default();
    let located = compile_as(kernel, classes, &options, None, &mut timing).ok()?;
    let line = locate::source_line(ptx, line, &located.ptx)?;
    Some(format!("{}:{line}", kernel.source.name))
}

/// Adds the place in the source to an error of the driver's assembler.
#[cfg(feature = "cuda")]
fn locate_error(
    kernel: &KernelInner,
    classes: &Classes,
    stored: &Stored,
    error: RuntimeError,
) -> RuntimeError {
    match error {
        RuntimeError::Driver {
            kernel: name,
            line: None,
            error,
        } => {
            let log = match &*error {
                crate::driver::DriverError::Assemble { log, .. } => log.as_str(),
                _ => "",
            };
            let line = locate::line_in_log(log);
            let line = line.and_then(|line| locate(kernel, classes, &stored.ptx, line));
            RuntimeError::Driver {
                kernel: name,
                line,
                error,
            }
        }
        other => other,
    }
}

impl Ready {
    /// Launches with arguments whose classes are these, the variant's own.
    #[inline(always)]
    pub(crate) fn launch(
        &self,
        kernel: &Arc<KernelInner>,
        classes: &Classes,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
    ) -> Result<(), RuntimeError> {
        match &self.code {
            Code::Emulated(module) => self.emulate(module, kernel, classes, grid, stream, args),
            #[cfg(feature = "cuda")]
            Code::Gpu(prepared) => {
                let raw = stream.driver()?;
                if let Some((address, _)) = self.log {
                    self.clear_log(kernel, address, raw)?;
                }
                let launched = if self.is_direct {
                    prepared.launch(grid, raw, args, |arg| &arg.bits)
                } else {
                    prepared.launch(grid, raw, &self.params, |&at| &args[usize::from(at)].bits)
                };
                if let Err(error) = launched {
                    return Err(kernel.device.failed(Some(&kernel.name), error));
                }
                Ok(())
            }
        }
    }

    /// Makes room for what a launch prints.
    #[cfg(feature = "cuda")]
    #[cold]
    fn clear_log(
        &self,
        kernel: &KernelInner,
        address: u64,
        stream: &crate::driver::Stream,
    ) -> Result<(), RuntimeError> {
        let header = RawPtr::from_parts(address, log::HEADER_BYTES as usize);
        let cleared = header.fill(stream, 0);
        cleared.map_err(|error| kernel.device.failed(Some(&kernel.name), error))
    }

    /// What the last launch printed and asserted, a line each, after everything in the stream.
    pub(crate) fn printed(
        &self,
        kernel: &KernelInner,
        stream: &Stream,
    ) -> Result<Vec<String>, RuntimeError> {
        stream.expect_device(&kernel.device)?;
        #[cfg(feature = "cuda")]
        if let Some((address, bytes)) = self.log {
            let mut log = vec![0_u8; bytes];
            let read = RawPtr::from_parts(address, bytes).read(stream.driver()?, &mut log);
            read.map_err(|error| kernel.device.failed(Some(&kernel.name), error))?;
            return Ok(Log::decode(&log).lines(&self.meta.sites));
        }
        let log = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Log::decode(&log).lines(&self.meta.sites))
    }

    /// The arguments that the PTX entry takes: some of those that the variant's classes were taken from.
    #[inline]
    fn picked<'a, 'b>(&'a self, args: &'a [Arg<'b>]) -> impl ExactSizeIterator<Item = &'a Arg<'b>> {
        self.params.iter().map(|&at| &args[usize::from(at)])
    }

    #[inline(never)]
    fn emulate(
        &self,
        module: &emu::Module,
        kernel: &Arc<KernelInner>,
        classes: &Classes,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
    ) -> Result<(), RuntimeError> {
        if grid.contains(&0) {
            return Ok(());
        }
        kernel.check_grid(grid)?;
        let is_recorded = stream.record(|| Recorded {
            kernel: kernel.clone(),
            classes: classes.clone(),
            grid,
            args: args.iter().map(Arg::detached).collect(),
        });
        if is_recorded {
            return Ok(());
        }
        let params = self.picked(args).zip(&self.meta.params);
        let args: Vec<emu::Arg> = params
            .map(|(arg, param)| {
                let bytes = arg.bits.to_le_bytes();
                emu::Arg::bytes(&bytes[..(param.bytes as usize).min(8)])
            })
            .collect();
        match stream.device().backend() {
            Backend::Emulated(emulated) => {
                let launch = emu::Launch {
                    grid,
                    block: [32 * self.meta.num_warps, 1, 1],
                    shared_bytes: self.meta.shared,
                    args: &args,
                    options: emulated.options.clone(),
                };
                let mut memory = emulated.memory();
                let run = emu::run(module, &self.meta.name, &launch, &mut memory);
                if !self.meta.sites.is_empty() {
                    let log = memory.variable(log::SYMBOL).unwrap_or_default().to_vec();
                    *self.printed.lock().unwrap_or_else(PoisonError::into_inner) = log;
                }
                drop(memory);
                run.map(|stats| *emulated.stats() = stats)
                    .map_err(|error| self.emulator_error(kernel, classes, error))
            }
            #[cfg(feature = "cuda")]
            Backend::Gpu(_) => Ok(()),
        }
    }

    #[cold]
    fn emulator_error(
        &self,
        kernel: &KernelInner,
        classes: &Classes,
        error: emu::EmuError,
    ) -> RuntimeError {
        let line = error.line();
        let line = line.and_then(|line| locate(kernel, classes, &self.ptx, line));
        RuntimeError::Emulator {
            kernel: kernel.name.clone(),
            line,
            error: Box::new(error),
        }
    }
}
