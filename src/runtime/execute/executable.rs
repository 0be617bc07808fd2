//! Variants that can be launched, on a GPU and on the emulator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::compile::KernelMeta;
use crate::device_print::{self, Log};
use crate::emu;

use crate::ir::function::Asked;
use crate::runtime::api::argument::Arg;
use crate::runtime::api::constant::Constant;
use crate::runtime::api::deadline::Deadline;
use crate::runtime::api::device::{Backend, Device};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::api::report::Report;
use crate::runtime::api::stream::Stream;
use crate::runtime::build::build_variant::locate;
use crate::runtime::execute::graph_capture::{self, Recorded};
use crate::runtime::execute::tensor_maps::emulated;
use crate::runtime::specialize::class_key::Classes;
use crate::runtime::specialize::served_classes::Served;

#[cfg(feature = "cuda")]
use crate::runtime::execute::device_log::DeviceLog;
#[cfg(feature = "cuda")]
use crate::runtime::execute::kept_tensor_maps::Mapped;

/// A variant that can be launched.
#[derive(Debug)]
pub(crate) struct Executable {
    pub(crate) report: Report,
    /// Which arguments it is for.
    pub(in crate::runtime) served: Served,
    /// What its code depends on, of each parameter.
    pub(in crate::runtime) asked: Vec<Asked>,
    /// Values of `constexpr` parameters that were not given.
    pub(in crate::runtime) defaults: Vec<(String, Constant)>,
    /// For each parameter of the PTX entry the argument that it takes.
    pub(in crate::runtime) params: SmallVec<[u16; 32]>,
    /// Whether that is each argument in its place.
    #[cfg(feature = "cuda")]
    pub(in crate::runtime) is_direct: bool,
    pub(in crate::runtime) code: LoadedCode,
    pub(in crate::runtime) meta: KernelMeta,
    pub(in crate::runtime) ptx: String,
    /// The file that the PTX was taken from in place of what was made.
    pub(in crate::runtime) replaced: Option<String>,
    /// Whether the last launch needed the kernel without tensor maps.
    pub(in crate::runtime) is_plain: AtomicBool,
    /// What the last launch printed, on the emulator.
    pub(in crate::runtime) printed: Mutex<Vec<u8>>,
    /// Where a GPU writes what is printed.
    #[cfg(feature = "cuda")]
    pub(in crate::runtime) log: Option<Arc<DeviceLog>>,
}

#[derive(Debug)]
pub(in crate::runtime) enum LoadedCode {
    Emulated(emu::Module),
    #[cfg(feature = "cuda")]
    Gpu(crate::driver::Prepared),
    #[cfg(feature = "cuda")]
    Mapped(Box<Mapped>),
}

#[cfg(feature = "cuda")]
impl LoadedCode {
    /// The kernel on a GPU.
    pub(in crate::runtime) fn function(&self) -> Option<&crate::driver::Function> {
        match self {
            LoadedCode::Emulated(_) => None,
            LoadedCode::Gpu(prepared) => Some(prepared.function()),
            LoadedCode::Mapped(mapped) => Some(mapped.prepared().function()),
        }
    }
}

impl Executable {
    /// Launches with arguments of these classes, which the variant serves.
    #[inline(always)]
    pub(crate) fn launch(
        &self,
        kernel: &Arc<KernelInner>,
        classes: &Classes,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        match &self.code {
            LoadedCode::Emulated(module) => {
                self.emulate(module, kernel, classes, grid, stream, args, deadline)
            }
            #[cfg(feature = "cuda")]
            LoadedCode::Mapped(mapped) => {
                self.launch_mapped(mapped, kernel, classes, grid, stream, args, deadline)
            }
            #[cfg(feature = "cuda")]
            LoadedCode::Gpu(prepared) => {
                let raw = stream.driver()?;
                if let Some(log) = &self.log {
                    log.begin(&kernel.device, raw)?;
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

    /// Launches with tensor maps, or the kernel without where the arguments allow none.
    #[cfg(feature = "cuda")]
    #[expect(clippy::too_many_arguments, reason = "they are those of a launch")]
    #[inline(never)]
    fn launch_mapped(
        &self,
        mapped: &Mapped,
        kernel: &Arc<KernelInner>,
        classes: &Classes,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        // Of no programs there is no telling how many, and nothing to do.
        if grid.contains(&0) {
            return Ok(());
        }
        let raw = stream.driver()?;
        let last = mapped.parameters(self, grid, args);
        let ctas = last.ctas();
        // Threads that launch one kernel at a time share what is not written.
        if self.is_plain.load(Ordering::Relaxed) != ctas.is_none() {
            self.is_plain.store(ctas.is_none(), Ordering::Relaxed);
        }
        let Some(ctas) = ctas else {
            drop(last);
            return kernel.launch_plain(classes, grid, stream, args, deadline);
        };
        if let Some(log) = &self.log {
            log.begin(&kernel.device, raw)?;
        }
        let launched = mapped.launch(ctas, &last, raw);
        launched.map_err(|error| kernel.device.failed(Some(&kernel.name), error))
    }

    /// What the last launch printed and asserted, a line each, after everything in the stream.
    pub(crate) fn printed(
        &self,
        kernel: &KernelInner,
        stream: &Stream,
    ) -> Result<Vec<String>, RuntimeError> {
        stream.expect_device(&kernel.device)?;
        #[cfg(feature = "cuda")]
        if let Some(log) = &self.log {
            let log = log.read(stream.driver()?);
            let log = log.map_err(|error| kernel.device.failed(Some(&kernel.name), error))?;
            return Ok(Log::decode(&log).lines_of(&self.meta.sites, kernel.source.file()));
        }
        stream.expect_no_recording("reading what a kernel printed")?;
        let log = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Log::decode(&log).lines_of(&self.meta.sites, kernel.source.file()))
    }

    /// The arguments that the PTX entry takes: some of those that the variant's classes were taken from.
    #[inline]
    fn picked<'a, 'b>(&'a self, args: &'a [Arg<'b>]) -> impl ExactSizeIterator<Item = &'a Arg<'b>> {
        self.params.iter().map(|&at| &args[usize::from(at)])
    }

    #[expect(clippy::too_many_arguments, reason = "they are those of a launch")]
    #[inline(never)]
    fn emulate(
        &self,
        module: &emu::Module,
        kernel: &Arc<KernelInner>,
        classes: &Classes,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        Device::note_counts(emu::Stats::ZERO);
        if grid.contains(&0) {
            self.printed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
            return Ok(());
        }
        kernel.check_grid(grid)?;
        let is_recorded = stream.record(|| {
            Recorded::Launch(Arc::new(graph_capture::Launch {
                kernel: kernel.clone(),
                classes: classes.clone(),
                grid,
                args: args.iter().map(Arg::detached).collect(),
            }))
        });
        if is_recorded {
            return Ok(());
        }
        let params = self.picked(args).zip(&self.meta.params);
        let mut given: Vec<emu::Arg> = params
            .map(|(arg, param)| {
                let bytes = arg.bits.to_le_bytes();
                emu::Arg::bytes(&bytes[..(param.bytes as usize).min(8)])
            })
            .collect();
        let beside = emulated(&self.meta, &given, grid);
        self.is_plain.store(beside.is_none(), Ordering::Relaxed);
        let Some(beside) = beside else {
            return kernel.launch_plain(classes, grid, stream, args, deadline);
        };
        given.extend(beside.args);
        match stream.device().backend() {
            Backend::Emulated(emulated) => {
                let launch = emu::Launch {
                    grid: beside.ctas,
                    block: self.meta.block(),
                    shared_bytes: self.meta.shared,
                    args: &given,
                    options: emulated.options.clone(),
                };
                let mut memory = emulated.memory();
                let is_whole = |arg: &&Arg<'_>| {
                    let (address, bytes) = arg.range();
                    !arg.is_borrowed() || bytes == 0 || memory.holds(address, bytes)
                };
                if let Some(arg) = args.iter().find(|arg| !is_whole(arg)) {
                    let (address, bytes) = arg.range();
                    let problem = format!("there are no {bytes} bytes of memory at {address:#x}");
                    return Err(kernel.wrong_memory(args, arg, problem));
                }
                // Of a buffer that was borrowed in part the kernel may touch that part.
                memory.limit(args.iter().filter(|arg| arg.is_pointer()).map(Arg::range));
                let run = emu::run(module, &self.meta.name, &launch, &mut memory);
                let mut failed = None;
                if !self.meta.sites.is_empty() {
                    let log = memory
                        .variable(device_print::SYMBOL)
                        .unwrap_or_default()
                        .to_vec();
                    failed = Log::failed(&log, &self.meta.sites, kernel.source.file());
                    *self.printed.lock().unwrap_or_else(PoisonError::into_inner) = log;
                }
                memory.limit(std::iter::empty());
                drop(memory);
                run.map(Device::note_counts)
                    .map_err(|error| self.emulator_error(kernel, classes, args, error))?;
                match failed {
                    None => Ok(()),
                    Some(failures) => Err(RuntimeError::Assertion {
                        kernel: kernel.name.clone(),
                        failures,
                    }),
                }
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
        args: &[Arg<'_>],
        error: emu::EmuError,
    ) -> RuntimeError {
        let line = error.line();
        let line = line.and_then(|line| {
            let replaced = self.replaced.as_deref();
            locate(kernel, &kernel.in_use(classes), &self.ptx, replaced, line)
        });
        RuntimeError::Emulator {
            kernel: kernel.name.clone(),
            argument: error
                .fault()
                .and_then(|fault| kernel.concerned(args, fault)),
            line,
            error: Box::new(error),
        }
    }
}
