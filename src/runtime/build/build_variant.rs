//! From a program and classes of arguments to code that can be launched.
//!
//! ```text
//!   program, classes, options --key--> cache: asked?  --miss--> lower, compile --> PTX, description
//!                                        | its classes                               |
//!                                      cache: kernel                                 |
//!                                        |                                           |
//!   emulator: parse  <-------------------+-------------------------------------------+
//!   GPU:      PTX, device, driver --key--> cache: cubin? --miss--> assemble --> machine code --> load
//! ```

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use smallvec::SmallVec;

use crate::compile::{self, KernelMeta, ParamKind};
use crate::emu;
use crate::ir::function::Asked;
use crate::pipeline::Snapshot;
use crate::settings::{Target, Usage, spilled_bytes};

use crate::runtime::api::constant::Constant;
use crate::runtime::api::deadline::{Deadline, FOREVER, Stopped};
use crate::runtime::api::device::Backend;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::program::{LoweredProgram, Param};
use crate::runtime::api::report::{Prediction, Report, Timing};
use crate::runtime::build::blueprint::Blueprint;
use crate::runtime::build::dump::file_name;
#[cfg(feature = "cuda")]
use crate::runtime::build::gpu;
use crate::runtime::build::locate;
use crate::runtime::build::pool;
use crate::runtime::build::stored::{Stored, decode_asked, encode_asked};
use crate::runtime::cache::{EntryKind, Key, KeyBuilder, Origin};
use crate::runtime::execute::executable::{Executable, LoadedCode};
use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class_key::Classes;
use crate::runtime::specialize::served_classes::Served;

#[cfg(feature = "cuda")]
use crate::runtime::execute::device_log::DeviceLog;

/// The build of the compiler, which decides what it makes of a program.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TILELIFT_BUILD"));

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
    fn of(self, kernel: &Blueprint) -> RuntimeError {
        match self {
            Problem::Stopped(stopped) => RuntimeError::Stopped {
                kernel: kernel.name.clone(),
                stopped,
            },
            Problem::Error(error) => error,
        }
    }
}

pub(in crate::runtime) fn build(
    kernel: &Blueprint,
    classes: &Classes,
    deadline: &Deadline,
) -> Result<Executable, RuntimeError> {
    let mut timing = Timing::default();
    let (stored, kernel_origin) =
        obtain_kernel(kernel, classes, deadline, &mut timing).map_err(|p| p.of(kernel))?;
    let served = Served::new(classes, &stored.asked);
    let params = argument_of_each_param(kernel, classes, &stored.meta)?;
    deadline
        .check()
        .map_err(|stopped| Problem::Stopped(stopped).of(kernel))?;
    let mut report = Report {
        kernel: kernel.name.clone(),
        signature: kernel.signature(&served.least),
        constants: stored.constants.clone(),
        target: stored.meta.target,
        num_warps: stored.meta.num_warps,
        shared_bytes: stored.meta.shared,
        predicted: prediction(kernel, &stored),
        resources: None,
        kernel_origin,
        cubin_origin: None,
        timing,
        assembler_log: String::new(),
    };
    let code = match kernel.device.backend() {
        Backend::Emulated(_) => {
            span!(DEBUG, "assemble", kernel = kernel.name.as_str());
            let clock = Instant::now();
            let module = emu::Module::parse(&stored.ptx)
                .map_err(|error| refused(kernel, &stored, &error))?;
            report.timing.assemble = clock.elapsed();
            LoadedCode::Emulated(module)
        }
        #[cfg(feature = "cuda")]
        Backend::Gpu(device) => {
            let loading = gpu::Loading {
                kernel,
                device,
                stored: &stored,
                name: &dump_name(kernel, &kernel_key(kernel, classes)),
            };
            let loaded = loading.load(&params, deadline, &mut report);
            loaded.map_err(|error| locate_error(kernel, classes, &stored, error))?
        }
    };
    #[cfg(feature = "cuda")]
    let log = match code.function() {
        Some(function) if !stored.meta.sites.is_empty() => {
            let module = function.module();
            let (name, file, sites) = (&kernel.name, kernel.source.file(), &stored.meta.sites);
            DeviceLog::new(module, name, file, sites)
                .map_err(|error| kernel.device.failed(Some(name), error))?
        }
        _ => None,
    };
    kernel.device.record().add(kernel, classes);
    Ok(Executable {
        report,
        served,
        asked: stored.asked,
        defaults: defaults(kernel, &stored.constants),
        is_plain: AtomicBool::new(false),
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
        replaced: stored.replaced,
    })
}

/// Notes that what was made serves other classes, too: in the record, and in the cache, so that a process which meets these first
/// compiles nothing.
pub(in crate::runtime) fn note_served(kernel: &Blueprint, classes: &Classes, by: &Executable) {
    kernel.device.record().add(kernel, classes);
    if by.replaced.is_none() && kernel.source.language().is_some() {
        let asked = encode_asked(&kernel.name, &by.asked);
        let key = kernel_key(kernel, classes);
        kernel.device.cache().put(EntryKind::Asked, &key, &asked);
    }
}

/// Values of `constexpr` parameters that were not given, of all parameters that have become constants.
pub(in crate::runtime) fn defaults(
    kernel: &Blueprint,
    constants: &[(String, String)],
) -> Vec<(String, Constant)> {
    let defaults = constants.iter().filter_map(|(name, text)| {
        let is_constexpr = |param: &Param| param.constexpr && param.name == *name;
        let is_default =
            kernel.params.iter().any(is_constexpr) && kernel.options.constant(name).is_none();
        let value = is_default.then(|| kernel.source.read_constant(text))?;
        Some((name.clone(), value?))
    });
    defaults.collect()
}

/// PTX that the emulator does not accept: a mistake of ours, unless it was edited, or made who knows where.
fn refused(kernel: &Blueprint, stored: &Stored, error: &emu::ParseError) -> RuntimeError {
    match &stored.replaced {
        Some(path) => RuntimeError::File {
            path: format!("{path}:{}", error.line),
            problem: error.kind.to_string(),
        },
        None if kernel.source.is_compiled() => RuntimeError::Setup {
            kernel: kernel.name.clone(),
            problem: format!("the emulator does not accept its PTX: {error}"),
        },
        None => RuntimeError::Internal {
            kernel: kernel.name.clone(),
            message: format!("the emulator does not accept the kernel: {error}"),
        },
    }
}

/// A kernel as far as PTX, which may be in the cache already; and how long that took.
pub(crate) fn make_ptx(
    kernel: &Blueprint,
    classes: &Classes,
) -> Result<(Stored, Origin, Timing), RuntimeError> {
    let mut timing = Timing::default();
    let made = obtain_kernel(kernel, classes, &FOREVER, &mut timing);
    let (stored, origin) = made.map_err(|problem| problem.of(kernel))?;
    Ok((stored, origin, timing))
}

/// The key of machine code by ptxas, which every device takes that runs code for the target of the PTX.
pub(crate) fn key_by_ptxas(ptx: &str, lines: bool) -> Key {
    KeyBuilder::new()
        .part("ptx", ptx)
        .part("assembler", "ptxas")
        .part("lines", [u8::from(lines)])
        .finish()
}

/// What the compiler alone says of a variant.
///
/// A caller whose deadline may end leaves the work to a thread in the background, so that it can leave.
pub(crate) fn predict(
    kernel: &Blueprint,
    classes: &Classes,
    deadline: &Deadline,
) -> Result<Prediction, RuntimeError> {
    if deadline.is_endless() {
        return predict_here(kernel, classes, deadline);
    }
    let (maker, classes, mut own) = (kernel.clone(), classes.clone(), deadline.clone());
    if kernel.device.cache().settings().is_some() {
        // A later call finds what this one did not wait for.
        own.deadline = None;
    }
    let predicted = pool::within(deadline, move || predict_here(&maker, &classes, &own));
    let predicted = predicted.map_err(|stopped| Problem::Stopped(stopped).of(kernel))?;
    predicted.unwrap_or_else(|| {
        Err(RuntimeError::Internal {
            kernel: kernel.name.clone(),
            message: "a panic while the kernel was compiled".to_owned(),
        })
    })
}

fn predict_here(
    kernel: &Blueprint,
    classes: &Classes,
    deadline: &Deadline,
) -> Result<Prediction, RuntimeError> {
    let made = obtain_kernel(kernel, classes, deadline, &mut Timing::default());
    let (stored, _) = made.map_err(|problem| problem.of(kernel))?;
    Ok(prediction(kernel, &stored))
}

/// What the driver's assembler is expected to make of it.
fn prediction(kernel: &Blueprint, stored: &Stored) -> Prediction {
    let threads = stored.meta.threads();
    let bound = kernel.options.max_registers.map_or(u32::MAX, u32::from);
    let most = Target::most_registers(threads).min(bound);
    // The assembler knows the device, whose code this becomes.
    let target = kernel.device.target();
    let resident = target.resident(Usage {
        threads,
        registers: stored.predicted_registers.min(most),
        shared: stored.meta.shared,
    });
    let spilled_bytes = spilled_bytes(stored.needed_registers, most);
    Prediction {
        registers: stored.predicted_registers,
        needed_registers: stored.needed_registers,
        most_registers: most,
        spilled_bytes,
        // Kernels declare nothing in local memory.
        local_bytes: spilled_bytes,
        shared_bytes: stored.meta.shared,
        threads,
        resident,
        occupancy_percent: target.occupancy_percent(resident, threads),
    }
}

/// PTX and description, from the cache or made now.
fn obtain_kernel(
    kernel: &Blueprint,
    classes: &Classes,
    deadline: &Deadline,
    timing: &mut Timing,
) -> Result<(Stored, Origin), Problem> {
    let key = kernel_key(kernel, classes);
    let by_param = kernel.by_param(classes);
    if let Some(stored) = kernel.source.compiled(&kernel.options, &by_param) {
        let stored = stored?;
        if !kernel.device.runs(stored.meta.target) {
            let problem = format!(
                "it was compiled for {}, and the device takes {}",
                stored.meta.target,
                kernel.device.target()
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
        let mut stored = compile_kernel(kernel, classes, &key, deadline, timing)?;
        let name = dump_name(kernel, &key);
        if let Some((ptx, path)) =
            dump.replacement(&kernel.name, &name, &stored.ptx, &kernel.device)?
        {
            stored.ptx = ptx;
            stored.replaced = Some(path);
        }
        return Ok((stored, Origin::Made));
    }
    let clock = Instant::now();
    let cache = kernel.device.cache();
    // It is kept by the promises that the code depends on, which other classes may have, too.
    let kept_by = |asked: &[Asked]| kernel_key(kernel, &Served::new(classes, asked).least);
    let mut made = None;
    let mut make = || {
        let stored = compile_kernel(kernel, classes, &key, deadline, timing)?;
        cache.put(EntryKind::Kernel, &kept_by(&stored.asked), &stored.encode());
        let asked = encode_asked(&kernel.name, &stored.asked);
        made = Some(stored);
        Ok::<_, Problem>(asked)
    };
    let (asked, mut origin) = cache.get_or_make(EntryKind::Asked, &key, deadline, &mut make)?;
    let is_made = origin == Origin::Made;
    let asked = decode_asked(&asked).filter(|_| !is_made);
    let found = asked.and_then(|(_, asked)| {
        let (bytes, from) = cache.get_within(EntryKind::Kernel, &kept_by(&asked), deadline)?;
        origin = from;
        Stored::decode(&bytes)
    });
    if found.is_none() && !is_made {
        // It is gone, or a build of the same number with other contents wrote it.
        let asked = make()?;
        cache.put(EntryKind::Asked, &key, &asked);
        origin = Origin::Made;
    }
    timing.cache += clock
        .elapsed()
        .saturating_sub(timing.lower + timing.compile);
    match made.or(found) {
        Some(stored) => Ok((stored, origin)),
        None => Err(Problem::Error(RuntimeError::Internal {
            kernel: kernel.name.clone(),
            message: "a kernel was neither found nor made".to_owned(),
        })),
    }
}

/// Everything that a kernel depends on.
fn kernel_key(kernel: &Blueprint, classes: &Classes) -> Key {
    identity(kernel, classes).finish()
}

/// As [`kernel_key`], for more to be added.
pub(crate) fn identity(kernel: &Blueprint, classes: &Classes) -> KeyBuilder {
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
        .part("ctas", options.num_ctas.to_string())
        .part("stages", format!("{:?}", options.num_stages));
    for slot in &kernel.slots {
        key = key.part("argument", &kernel.params[slot.param].name);
    }
    for (name, value) in &options.constants {
        key = key.part(name, value.identity());
    }
    key
}

/// The beginning of the names of a variant's dumps.
fn dump_name(kernel: &Blueprint, key: &Key) -> String {
    format!("{}-{}", file_name(&kernel.name), &key.to_string()[..12])
}

/// The kernel as the compiler takes it.
pub(in crate::runtime) fn lower(
    kernel: &Blueprint,
    classes: &Classes,
) -> Result<LoweredProgram, RuntimeError> {
    span!(DEBUG, "lower", kernel = kernel.name.as_str());
    let classes = kernel.by_param(classes);
    let (source, target) = (&kernel.source, kernel.device.target());
    source.make(
        &kernel.name,
        &kernel.options,
        target,
        &kernel.params,
        &classes,
    )
}

/// The compiler's own work.
fn compile_kernel(
    kernel: &Blueprint,
    classes: &Classes,
    key: &Key,
    deadline: &Deadline,
    timing: &mut Timing,
) -> Result<Stored, Problem> {
    let options = kernel.options.compiler();
    compile_as(kernel, classes, &options, Some(key), deadline, timing)
}

/// [`compile_kernel`] with other options; dumped with a key.
fn compile_as(
    kernel: &Blueprint,
    classes: &Classes,
    options: &crate::settings::Options,
    key: Option<&Key>,
    deadline: &Deadline,
    timing: &mut Timing,
) -> Result<Stored, Problem> {
    let clock = Instant::now();
    let target = kernel.device.target();
    let made = lower(kernel, classes)?;
    timing.lower = clock.elapsed();
    deadline.check()?;
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
            let ending = match snapshot {
                Snapshot::Tile(_) | Snapshot::Thread(_) => "tir",
                Snapshot::Machine(_) => "machine",
            };
            save(
                &snapshot.to_string(),
                &format!("{number:02}-{pass}.{ending}"),
            );
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
        needed_registers: compiled.stats.machine.needed_registers,
        asked: compiled.asked,
        constants: made.constants,
        replaced: None,
    })
}

/// Which argument each parameter of the PTX entry takes: those that have not become constants, in order.
fn argument_of_each_param(
    kernel: &Blueprint,
    classes: &Classes,
    meta: &KernelMeta,
) -> Result<SmallVec<[u16; 32]>, RuntimeError> {
    let given = arg_tree::read(classes);
    let params = arg_tree::places(&given);
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

/// The place of a line of a kernel's PTX, as `name:line`: in the source, or in the file that the PTX was taken from.
pub(in crate::runtime) fn locate(
    kernel: &Blueprint,
    classes: &Classes,
    ptx: &str,
    replaced: Option<&str>,
    line: u32,
) -> Option<String> {
    if let Some(path) = replaced {
        return Some(format!("{path}:{line}"));
    }
    if !kernel.source.has_lines() {
        return None;
    }
    let options = crate::settings::Options {
        line_info: true,
        ..kernel.options.compiler()
    };
    let mut timing = Timing::default();
    let located = compile_as(kernel, classes, &options, None, &FOREVER, &mut timing).ok()?;
    let (line, _) = locate::source_place(ptx, line, &located.ptx)?;
    Some(format!("{}:{line}", kernel.source.name))
}

/// Adds the place in the source to an error of the driver's assembler.
#[cfg(feature = "cuda")]
fn locate_error(
    kernel: &Blueprint,
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
            let line = line.and_then(|line| {
                let replaced = stored.replaced.as_deref();
                locate(kernel, classes, &stored.ptx, replaced, line)
            });
            RuntimeError::Driver {
                kernel: name,
                line,
                error,
            }
        }
        other => other,
    }
}
