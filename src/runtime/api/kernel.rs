//! Kernels: a function of a program, set up with constants and options for a device, and its launches.
//!
//! # Variants
//!
//! A kernel is compiled for the **classes** of its arguments: the type of each, whether an integer is one (it becomes a
//! constant then), and whether an integer or an address is a multiple of 2, 4, 8 or 16 (accesses become wider then). The first
//! launch with new classes compiles a variant, or finds it in the cache on disk; later ones find it in memory by an atomic load,
//! allocate nothing and take no lock. The compiler records which of these promises the code depends on, and launches that differ
//! in others alone share one variant. [`Kernel::explain`] tells which variant a launch uses and why;
//! [`Kernel::do_not_specialize`] and its kin, or `do_not_specialize` in the program, keep a parameter out of it.
//!
//! # Which parameters take arguments
//!
//! Those that are no `constexpr` and have no constant by [`Kernel::constant`], in order. Trailing ones with a default may
//! be left out. A number for a parameter with the annotation of a type (`n: tl.int64`, `x: float`) becomes that type: an
//! integer that it does not hold is an error, a float is rounded.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use crate::predict::Estimate;
use crate::settings::Promote;
use crate::stages::Stage;

use crate::runtime::api::argument::{Arg, ArgList, Args};
use crate::runtime::api::constant::Grid;
use crate::runtime::api::deadline::{Deadline, FOREVER};
use crate::runtime::api::device::Device;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel_options::KernelOptions;
use crate::runtime::api::program::{Program, ProgramSource};
use crate::runtime::api::report::{Explanation, Prediction, Report};
use crate::runtime::api::stream::Stream;
use crate::runtime::build::blueprint::{ArgSlot, Blueprint};
use crate::runtime::build::build_variant::{identity, predict};
use crate::runtime::cache::KeyBuilder;
use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class::Specialize;
use crate::runtime::specialize::class_key::{Classes, Masks};
use crate::runtime::specialize::interned_kernels::InternedKernels;
use crate::runtime::specialize::variant::Variant;
use crate::runtime::specialize::variant_table::Table;

/// Variants that a kernel may have where nothing is said.
pub const DEFAULT_VARIANTS: usize = 256;

/// A kernel on a device. Clones are the same kernel, and so is one that is set up the same way again; every method may
/// be called from any thread.
#[derive(Clone)]
pub struct Kernel {
    pub(in crate::runtime) inner: Arc<KernelInner>,
    setups: Arc<InternedKernels>,
    /// As long as there is such a handle, the program keeps variants.
    device: Device,
}

/// Launches that use the same set-up of a kernel.
#[derive(Debug)]
pub(crate) struct Call {
    classes: Classes,
    /// For each argument the value that it has to have, if any.
    values: Vec<Option<u64>>,
}

/// What launches a kernel: arguments become classes, and classes find the variant.
pub(crate) struct KernelInner {
    pub(in crate::runtime) blueprint: Blueprint,
    /// What it is found by among the kernels of its program.
    pub(in crate::runtime) setup: String,
    /// These kernels.
    pub(in crate::runtime) setups: Weak<InternedKernels>,
    /// For each parameter that takes an argument what the kernel may be specialised for.
    pub(in crate::runtime) allowed: Vec<Specialize>,
    /// The bits of their classes that count.
    pub(in crate::runtime) masks: Masks,
    /// How many of them must have one.
    pub(in crate::runtime) required: usize,
    /// Whether there is an argument that must have bits clear, or be of a certain type.
    pub(in crate::runtime) is_picky: bool,
    pub(crate) table: Table<Variant>,
    /// The same kernel without tensor maps, once a launch has needed it.
    plain: OnceLock<Arc<KernelInner>>,
}

impl Deref for KernelInner {
    type Target = Blueprint;

    fn deref(&self) -> &Blueprint {
        &self.blueprint
    }
}

impl Kernel {
    pub(crate) fn new(
        device: &Device,
        program: &Program,
        name: Option<&str>,
    ) -> Result<Kernel, RuntimeError> {
        let name = program.source.pick(name)?;
        Kernel::with(
            device,
            &program.source,
            &program.setups,
            name,
            KernelOptions::default(),
        )
    }

    fn with(
        device: &Device,
        source: &Arc<ProgramSource>,
        setups: &Arc<InternedKernels>,
        name: String,
        options: KernelOptions,
    ) -> Result<Kernel, RuntimeError> {
        let inner = KernelInner::set_up(device.quiet(), source, setups, name, options)?;
        Ok(Kernel {
            inner,
            setups: setups.clone(),
            device: device.clone(),
        })
    }

    /// The same kernel set up otherwise.
    pub(in crate::runtime) fn changed(
        &self,
        change: impl FnOnce(&mut KernelOptions),
    ) -> Result<Kernel, RuntimeError> {
        let inner = &self.inner;
        let mut options = inner.options.clone();
        change(&mut options);
        if options == inner.options {
            return Ok(self.clone());
        }
        if inner.source.is_compiled() && !options.compiles_as(&inner.options) {
            return Err(RuntimeError::Setup {
                kernel: inner.name.clone(),
                problem: "it was compiled ahead of time: its warps, its stages and what else the compiler is told are fixed; \
                          compile it so"
                    .to_owned(),
            });
        }
        let name = inner.name.clone();
        Kernel::with(&self.device, &inner.source, &self.setups, name, options)
    }

    /// Everything that decides what a launch with such arguments does, but for values that are not specialised for.
    pub(crate) fn identity(&self, args: &[Arg<'_>]) -> Result<KeyBuilder, RuntimeError> {
        Ok(identity(&self.inner, &self.inner.classes(args)?))
    }

    /// Whether such a launch has no programs.
    pub(crate) fn is_empty(&self, grid: Grid<'_>, args: &[Arg<'_>]) -> Result<bool, RuntimeError> {
        Ok(self.inner.grid_of_launch(grid, args)?.contains(&0))
    }

    /// The arguments, of those of a launch, that the parameter of a name takes.
    pub(crate) fn arguments_of<'s, 'a>(
        &self,
        args: &'s [Arg<'a>],
        name: &str,
    ) -> Option<&'s [Arg<'a>]> {
        self.inner.arguments_of(args, name)
    }

    /// What of a launch decides which set-up it uses: the classes, the values of some arguments, and of all numbers if
    /// `numbers`. None if there are tuples or descriptors among the arguments.
    pub(crate) fn call(&self, args: &[Arg<'_>], names: &[String], numbers: bool) -> Option<Call> {
        let mut classes = Classes::none();
        if !self.inner.classify(args, &mut classes) {
            return None;
        }
        let counts = |(name, arg): (&str, &Arg<'_>)| {
            numbers && !arg.is_pointer() || names.iter().any(|n| n == name)
        };
        let counts: Vec<bool> = self.inner.arguments().zip(args).map(counts).collect();
        let values = args.iter().zip(counts);
        let values = values.map(|(arg, counts)| counts.then_some(arg.bits));
        Some(Call {
            classes,
            values: values.collect(),
        })
    }

    /// The arguments with numbers of the types that the program gives its parameters; none if they are that already.
    pub(crate) fn typed<'a>(&self, args: &[Arg<'a>]) -> Result<Option<ArgList<'a>>, RuntimeError> {
        self.inner.typed(args)
    }

    /// Whether a launch with these arguments is one of that kind. It allocates nothing for up to 32 arguments.
    pub(crate) fn is_call(&self, call: &Call, args: &[Arg<'_>]) -> bool {
        let mut classes = Classes::none();
        let is_same = |(arg, value): (&Arg<'_>, &Option<u64>)| value.is_none_or(|v| v == arg.bits);
        args.len() == call.values.len()
            && self.inner.classify(args, &mut classes)
            && classes == call.classes
            && args.iter().zip(&call.values).all(is_same)
    }

    /// Whether it has a parameter of this name, with an argument or without.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.inner.params.iter().any(|param| param.name == name)
    }

    /// Whether it was given a constant of this name.
    pub(crate) fn has_constant(&self, name: &str) -> bool {
        self.inner.options.constant(name).is_some()
    }

    /// With the constants that the program's heuristics give for these arguments.
    pub(crate) fn with_heuristics(&self, args: &[Arg<'_>]) -> Result<Kernel, RuntimeError> {
        let inner = &self.inner;
        // To a tuple or a descriptor a heuristic can say no more than that it is there.
        let firsts = arg_tree::split(args).into_iter().filter_map(<[_]>::first);
        let given: Vec<(&str, &Arg<'_>)> = inner.arguments().zip(firsts).collect();
        let mut kernel = self.clone();
        for (name, value) in inner
            .source
            .heuristics(&inner.name, &inner.options, &given)?
        {
            kernel = kernel.constant(&name, value)?;
        }
        Ok(kernel)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The parameters that take an argument, in order.
    pub fn arguments(&self) -> Vec<&str> {
        self.inner.arguments().collect()
    }

    /// Puts a launch into `stream` and returns at once; a variant that is not there yet is compiled first. The emulator runs
    /// the kernel before this returns, for as long as [`DeviceOptions::emulator`](crate::runtime::DeviceOptions::emulator) allows.
    ///
    /// # Errors
    ///
    /// Arguments, grid or stream that do not fit; a kernel that does not compile. A kernel that goes wrong shows here on
    /// the emulator, and on a GPU in a later call that waits, see [`Device`].
    #[inline(always)]
    pub fn launch<'g>(
        &self,
        stream: &Stream,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
    ) -> Result<(), RuntimeError> {
        let grid = grid.into();
        span!(TRACE, "launch", kernel = self.name());
        args.with(|args| self.inner.launch(stream, grid, args, &FOREVER))
    }

    /// [`Kernel::launch`] that waits for a compilation only so long.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Stopped`] at the end of the deadline; those of [`Kernel::launch`].
    pub fn launch_with<'g>(
        &self,
        stream: &Stream,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
        deadline: &Deadline,
    ) -> Result<(), RuntimeError> {
        let grid = grid.into();
        span!(TRACE, "launch", kernel = self.name());
        args.with(|args| self.inner.launch(stream, grid, args, deadline))
    }

    /// Launches on the device's own stream and waits for the end.
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::launch`], and what the kernel does wrong.
    pub fn run<'g>(&self, grid: impl Into<Grid<'g>>, args: impl Args) -> Result<(), RuntimeError> {
        let stream = self.inner.device.stream();
        self.launch(&stream, grid, args)?;
        stream.synchronize()
    }

    /// Compiles the variant for such arguments, whose values count only for what they promise, and reports on it.
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::launch_with`].
    pub fn prepare(&self, args: impl Args, deadline: &Deadline) -> Result<Report, RuntimeError> {
        args.with(|args| {
            let classes = self.inner.classes(args)?;
            Ok(self.inner.ready(&classes, deadline)?.report.clone())
        })
    }

    /// Compiles the variant for such arguments as far as PTX, and tells what it is expected to use.
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::prepare`].
    pub fn predict(
        &self,
        args: impl Args,
        deadline: &Deadline,
    ) -> Result<Prediction, RuntimeError> {
        args.with(|args| predict(&self.inner, &self.inner.classes(args)?, deadline))
    }

    /// What the model of time expects of such a launch on the device's target ([`predict`](crate::predict)), without
    /// assembling or launching anything. None for devices of which the model knows too little, for kernels compiled ahead of time, and for
    /// launches that it does not follow.
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::launch`] that are known before anything is assembled.
    pub fn estimate<'g>(
        &self,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
    ) -> Result<Option<Estimate>, RuntimeError> {
        let grid = grid.into();
        args.with(|args| {
            let typed = self.inner.typed(args)?;
            let args = typed.as_ref().map_or(args, ArgList::as_slice);
            self.inner.estimate(grid, args, &self.inner.classes(args)?)
        })
    }

    /// Begins to compile the variant for such arguments on another thread. A launch that comes earlier waits for it.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit.
    pub fn prepare_in_background(&self, args: impl Args) -> Result<(), RuntimeError> {
        let classes = args.with(|args| self.inner.classes(args))?;
        self.inner.prepare_in_background(&classes);
        Ok(())
    }

    /// Which variant a launch with such arguments uses, and why.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit.
    pub fn explain(&self, args: impl Args) -> Result<Explanation, RuntimeError> {
        args.with(|args| {
            let typed = self.inner.typed(args)?;
            let args = typed.as_ref().map_or(args, ArgList::as_slice);
            let classes = self.inner.classes(args)?;
            Ok(self.inner.explain(args, &classes))
        })
    }

    /// The text at a stage of the variant for such arguments: its PTX, its layouts, what the compiler counted.
    /// [`testing`](crate::testing) compares it with files.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit; a kernel that does not compile, or that was compiled ahead of time and has PTX alone.
    pub fn emit(&self, stage: Stage, args: impl Args) -> Result<String, RuntimeError> {
        args.with(|args| {
            let typed = self.inner.typed(args)?;
            let args = typed.as_ref().map_or(args, ArgList::as_slice);
            self.inner.emit(&self.inner.classes(args)?, stage)
        })
    }

    /// What the last launch with arguments of these classes printed, and which of its assertions failed, a line each. That
    /// one failed is an error of the launch on the emulator and of what waits on a GPU, [`RuntimeError::Assertion`].
    /// Waits for what `stream` holds. Nothing if there was no such launch.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran.
    pub fn printed(&self, stream: &Stream, args: impl Args) -> Result<Vec<String>, RuntimeError> {
        let classes = args.with(|args| self.inner.classes(args))?;
        self.inner.printed(stream, &classes)
    }

    /// Whether it is the same kernel, set up in the same way.
    pub(crate) fn is(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether its program keeps it, as it does what was launched.
    pub(crate) fn is_kept(&self) -> bool {
        self.setups.is_kept(&self.inner)
    }

    /// Lets it go with its last handle.
    pub(crate) fn release(&self) {
        self.setups.release(&self.inner);
    }

    /// The variants that are ready, sorted by signature.
    pub fn variants(&self) -> Vec<Report> {
        let ready = self.inner.table.iter().filter_map(|v| v.ready.get());
        let mut ready: Vec<_> = ready.collect();
        ready.sort_by(|a, b| a.report.signature.cmp(&b.report.signature));
        // Launches of several classes may share one.
        ready.dedup_by(|a, b| Arc::ptr_eq(a, b));
        ready
            .into_iter()
            .map(|ready| ready.report.clone())
            .collect()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({} on {:?})", self.inner.name, self.inner.device)
    }
}

impl KernelInner {
    fn new(blueprint: Blueprint, setup: String, setups: Weak<InternedKernels>) -> KernelInner {
        let is_picky = |slot: &ArgSlot| slot.clear != 0 || slot.pinned.is_some();
        let allowed = blueprint.allowed();
        KernelInner {
            setup,
            setups,
            masks: Masks::new(&allowed),
            allowed,
            required: blueprint.required(),
            is_picky: blueprint.slots.iter().any(is_picky),
            table: Table::new(blueprint.options.variants),
            blueprint,
            plain: OnceLock::new(),
        }
    }

    /// The same kernel without tensor maps.
    pub(in crate::runtime) fn plain(self: &Arc<Self>) -> Result<&Arc<KernelInner>, RuntimeError> {
        if let Some(plain) = self.plain.get() {
            return Ok(plain);
        }
        let options = KernelOptions {
            promote: Promote::Never,
            ..self.options.clone()
        };
        if self.source.is_compiled() && !self.source.has_fallback() {
            return Err(RuntimeError::Setup {
                kernel: self.name.clone(),
                problem: "it was compiled ahead of time to take tensor maps, which these arguments do not allow, and without \
                          a fallback for such; compile it with `--promote never`"
                    .to_owned(),
            });
        }
        if options == self.options {
            return Err(RuntimeError::Internal {
                kernel: self.name.clone(),
                message: "it takes tensor maps and was compiled to take none".to_owned(),
            });
        }
        let plain = match self.setups.upgrade() {
            Some(setups) => KernelInner::set_up(
                self.device.clone(),
                &self.source,
                &setups,
                self.name.clone(),
                options,
            )?,
            None => {
                let (device, source) = (self.device.clone(), self.source.clone());
                let blueprint = Blueprint::new(device, source, self.name.clone(), options)?;
                Arc::new(KernelInner::new(blueprint, String::new(), Weak::new()))
            }
        };
        Ok(self.plain.get_or_init(|| plain))
    }

    /// The kernel of a program that is set up so.
    fn set_up(
        device: Device,
        source: &Arc<ProgramSource>,
        setups: &Arc<InternedKernels>,
        name: String,
        options: KernelOptions,
    ) -> Result<Arc<KernelInner>, RuntimeError> {
        let setup = format!("{} {name} {}", device.instance(), options.identity());
        setups.intern(&setup, || {
            let blueprint = Blueprint::new(device, source.clone(), name, options)?;
            Ok(KernelInner::new(
                blueprint,
                setup.clone(),
                Arc::downgrade(setups),
            ))
        })
    }
}

impl KernelInner {
    fn printed(&self, stream: &Stream, classes: &Classes) -> Result<Vec<String>, RuntimeError> {
        let variant = self.table.get(&self.in_use(classes));
        let ready = variant.and_then(|variant| variant.ready.get());
        match (ready, self.plain.get()) {
            (Some(ready), Some(plain)) if ready.is_plain.load(Ordering::Relaxed) => {
                plain.printed(stream, classes)
            }
            (Some(ready), _) => ready.printed(self, stream),
            (None, _) => Ok(Vec::new()),
        }
    }
}

impl fmt::Debug for KernelInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {:?}", self.name, self.device)
    }
}
