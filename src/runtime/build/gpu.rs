//! From PTX to code on a GPU: the second level of the cache, and what the driver made of it.

use std::time::Instant;

use crate::compile::{ParamKind, ParamMeta};
use crate::driver::{
    Cubin, DriverError, JitOptions, LaunchAttributes, LaunchSpec, Module, ParamSize, Prepared,
    PreparedWithMaps, assemble,
};
use crate::ir::function::PROGRAM_NUMBERS;
use crate::settings::Target;

use crate::runtime::api::deadline::{Deadline, Stopped};
use crate::runtime::api::device::Gpu;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::report::{Report, Resources};
use crate::runtime::api::warning::warn;
use crate::runtime::build::blueprint::Blueprint;
use crate::runtime::build::build_variant::key_by_ptxas;
use crate::runtime::build::stored::Stored;
use crate::runtime::cache::{EntryKind, Key, KeyBuilder, Origin};
use crate::runtime::execute::executable::LoadedCode;
use crate::runtime::execute::kept_tensor_maps::Mapped;

/// A kernel on its way to a device.
pub(in crate::runtime) struct Loading<'a> {
    pub(in crate::runtime) kernel: &'a Blueprint,
    pub(in crate::runtime) device: &'a Gpu,
    pub(in crate::runtime) stored: &'a Stored,
    /// The beginning of the names of its dumps.
    pub(in crate::runtime) name: &'a str,
}

/// An error of making machine code.
enum Problem {
    Stopped(Stopped),
    Driver(DriverError),
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Problem {
        Problem::Stopped(stopped)
    }
}

// Here, as the driver knows nothing of the compiler and the compiler nothing of the driver.
impl From<&ParamMeta> for ParamSize {
    fn from(param: &ParamMeta) -> Self {
        match param.kind {
            ParamKind::Pointer => Self::Pointer,
            ParamKind::Scalar => Self::Bytes(param.bytes),
        }
    }
}

impl Loading<'_> {
    /// Loads the kernel, whose parameters take these arguments of a launch, and fills in what the report lacks.
    pub(in crate::runtime) fn load(
        &self,
        arguments: &[u16],
        deadline: &Deadline,
        report: &mut Report,
    ) -> Result<LoadedCode, RuntimeError> {
        let failed = |error| self.kernel.device.failed(Some(&self.kernel.name), error);
        let (module, origin) = self
            .module(deadline, report)
            .map_err(|problem| match problem {
                Problem::Driver(error) => failed(error),
                Problem::Stopped(stopped) => RuntimeError::Stopped {
                    kernel: self.kernel.name.clone(),
                    stopped,
                },
            })?;
        report.cubin_origin = Some(origin);
        let clock = Instant::now();
        let meta = &self.stored.meta;
        let function = module.function(&meta.name).map_err(failed)?;
        let mut params: Vec<ParamSize> = meta.params.iter().map(ParamSize::from).collect();
        if meta.persistent {
            params.extend([ParamSize::Bytes(4); PROGRAM_NUMBERS]);
        }
        let spec = LaunchSpec {
            name: &meta.name,
            block: meta.block(),
            // Older devices have none.
            cluster: if meta.target >= Target::SM_90 {
                self.kernel.options.cluster
            } else {
                [1, 1, 1]
            },
            shared: meta.shared,
            params: &params,
        };
        let options = &self.kernel.options;
        let attributes = LaunchAttributes {
            // Older devices have no such attribute and run one launch after the other.
            dependent: options.dependent && meta.target >= Target::SM_90,
            cooperative: options.cooperative,
        };
        let resident = function.blocks_per_multiprocessor(meta.threads(), meta.shared);
        let resident = resident.map_err(failed)?;
        let used = function.attributes();
        let room = self
            .device
            .context
            .device()
            .threads_per_multiprocessor
            .max(1);
        report.resources = Some(Resources {
            registers: used.registers,
            // Kernels declare nothing in local memory; what is there the assembler put there.
            spilled_bytes: used.local_bytes,
            local_bytes: used.local_bytes,
            shared_bytes: used.static_shared + meta.shared,
            max_threads: used.max_threads,
            resident,
            occupancy_percent: 100 * resident * meta.threads() / room,
        });
        let code = if meta.maps.is_empty() {
            Prepared::new(function, &spec, attributes).map(LoadedCode::Gpu)
        } else {
            PreparedWithMaps::new(function, &spec, attributes, meta.maps.len()).map(|prepared| {
                let all = resident * self.device.context.device().multiprocessors;
                // Clusters are made of programs, so the kernel without maps forms them.
                let all = if spec.cluster == [1; 3] { all } else { 0 };
                LoadedCode::Mapped(Box::new(Mapped::new(prepared, meta, arguments, all)))
            })
        };
        report.timing.load += clock.elapsed();
        code.map_err(failed)
    }

    /// The loaded machine code, and where it came from.
    fn module(
        &self,
        deadline: &Deadline,
        report: &mut Report,
    ) -> Result<(Module, Origin), Problem> {
        if let Some(module) = self.compiled_ahead(report)? {
            return Ok((module, Origin::Ahead));
        }
        let cache = self.kernel.device.cache();
        let key = self.key();
        let mut log = String::new();
        let mut assembling = std::time::Duration::ZERO;
        let clock = Instant::now();
        let mut by_ptxas = None;
        let found = cache.get_or_make(EntryKind::Cubin, &key, deadline, || {
            let (ptx, lines) = (&self.stored.ptx, self.kernel.options.line_info);
            // Machine code is for the devices of one generation.
            let is = self.device.context.device().capability;
            let by_other = (self.stored.meta.target.sm / 10 == is.major)
                .then(|| cache.get_within(EntryKind::Cubin, &key_by_ptxas(ptx, lines), deadline));
            if let Some((code, origin)) = by_other.flatten() {
                by_ptxas = Some(origin);
                return Ok(code);
            }
            let clock = Instant::now();
            let cubin = self.assemble()?;
            assembling = clock.elapsed();
            log = cubin.info_log;
            Ok::<_, Problem>(cubin.bytes)
        });
        let (bytes, origin) = found?;
        let origin = by_ptxas.unwrap_or(origin);
        report.timing.assemble = assembling;
        report.timing.cache += clock.elapsed().saturating_sub(assembling);
        report.assembler_log = log;
        self.kernel
            .device
            .dump()
            .save(&format!("{}.cubin", self.name), &bytes);
        let clock = Instant::now();
        let loaded = self.load_cubin(&bytes);
        report.timing.load = clock.elapsed();
        match loaded {
            Ok(module) => Ok((module, origin)),
            Err(error) if origin != Origin::Made && !error.is_sticky() => {
                // Whole, and of no use to this driver all the same: assembled anew.
                let kernel = &self.kernel.name;
                warn(&format!(
                    "the cached code of kernel `{kernel}` does not load: {error}"
                ));
                cache.discard(EntryKind::Cubin, &key);
                let clock = Instant::now();
                let cubin = self.assemble()?;
                report.timing.assemble = clock.elapsed();
                cache.put(EntryKind::Cubin, &key, &cubin.bytes);
                let module = self.load_cubin(&cubin.bytes).map_err(Problem::Driver)?;
                Ok((module, Origin::Made))
            }
            Err(error) => Err(Problem::Driver(error)),
        }
    }

    /// The machine code that the program holds, loaded; none if it holds none for this device, or the driver refuses it.
    fn compiled_ahead(&self, report: &mut Report) -> Result<Option<Module>, Problem> {
        let is = self.device.context.device().capability;
        let Some(code) = self
            .kernel
            .source
            .machine_code(&self.kernel.options, is.major, is.minor)
        else {
            return Ok(None);
        };
        let clock = Instant::now();
        let loaded = self.load_cubin(code);
        report.timing.load = clock.elapsed();
        match loaded {
            Ok(module) => Ok(Some(module)),
            Err(error) if error.is_sticky() => Err(Problem::Driver(error)),
            Err(error) => {
                let kernel = &self.kernel.name;
                warn(&format!(
                    "the machine code of kernel `{kernel}` does not load, its PTX is assembled: {error}"
                ));
                Ok(None)
            }
        }
    }

    fn load_cubin(&self, cubin: &[u8]) -> Result<Module, DriverError> {
        span!(DEBUG, "load", kernel = self.kernel.name.as_str());
        Module::load_cubin(&self.device.context, cubin)
    }

    fn assemble(&self) -> Result<Cubin, Problem> {
        span!(DEBUG, "assemble", kernel = self.kernel.name.as_str());
        let options = self.jit_options();
        assemble(&self.device.context, &self.stored.ptx, &options).map_err(Problem::Driver)
    }

    fn jit_options(&self) -> JitOptions {
        jit_options(self.kernel.options.line_info)
    }

    fn key(&self) -> Key {
        let lines = self.kernel.options.line_info;
        key_by_driver(&self.stored.ptx, self.device.context.device(), lines)
    }
}

/// How kernels are assembled.
pub(crate) fn jit_options(lines: bool) -> JitOptions {
    // The bound on registers stands in the PTX.
    JitOptions {
        verbose: true,
        line_info: lines,
        ..JitOptions::default()
    }
}

/// Everything that machine code by a device's driver depends on.
pub(crate) fn key_by_driver(ptx: &str, device: &crate::driver::Device, lines: bool) -> Key {
    KeyBuilder::new()
        .part("ptx", ptx)
        .part("device", format!("{} {}", device.capability, device.name))
        .part("driver", device.driver.version().to_string())
        .part("options", format!("{:?}", jit_options(lines)))
        .finish()
}
