//! Kernels: a function of a program, set up with constants and options for a device, and its launches.
//!
//! # Variants
//!
//! A kernel is compiled for the **classes** of its arguments: the type of each, whether an integer is one (it becomes a
//! constant then), and whether an integer or an address is a multiple of 16 (accesses become wider then). The first launch
//! with new classes compiles a variant, or finds it in the cache on disk; later ones find it in memory by an atomic load,
//! allocate nothing and take no lock. [`Kernel::explain`] tells which variant a launch uses and why;
//! [`Kernel::do_not_specialize`] and its kin, or `do_not_specialize` in the program, keep a parameter out of it.
//!
//! # Which parameters take arguments
//!
//! Those that are no `constexpr` and have no constant by [`Kernel::constant`], in order. Trailing ones with a default may
//! be left out.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::grid;
use crate::settings::{Asserts, Options};

use super::argument::{Arg, Args, Class, DIVISIBLE, ONE, Specialize};
use super::cache::KeyBuilder;
use super::constant::{Constant, Constants, Grid};
use super::device::Device;
use super::error::RuntimeError;
use super::given::{self, Given};
use super::graph::Recorded;
use super::patience::Patience;
use super::pool;
use super::program::{Family, Param, Program, Source};
use super::report::{Explanation, Prediction, Report};
use super::stream::Stream;
use super::table::{Classes, Masks, Table};
use super::variant::{Ready, Variant, identity, predict};

/// Variants that a kernel may have where nothing is said.
pub const DEFAULT_VARIANTS: usize = 256;

/// The patience of a plain launch.
static FOREVER: Patience = Patience {
    deadline: None,
    cancel: None,
};

/// How a kernel is set up. Part of what its variants are found by on disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelOptions {
    /// Sorted by name.
    pub(crate) constants: Vec<(String, Constant)>,
    pub(crate) num_warps: Option<u32>,
    pub(crate) num_stages: Option<u8>,
    pub(crate) max_registers: Option<u16>,
    pub(crate) fp_fusion: bool,
    pub(crate) line_info: bool,
    pub(crate) debug: bool,
    pub(crate) dependent: bool,
    pub(crate) cooperative: bool,
    /// Programs of a cluster by axis.
    pub(crate) cluster: [u32; 3],
    /// Sorted by name.
    pub(crate) opted_out: Vec<(String, Specialize)>,
    pub(crate) variants: usize,
}

impl KernelOptions {
    /// The constant of a name.
    pub(crate) fn constant(&self, name: &str) -> Option<&Constant> {
        let found = self.constants.iter().find(|(n, _)| n == name);
        found.map(|(_, constant)| constant)
    }

    /// What the compiler is told.
    pub(crate) fn compiler(&self) -> Options {
        Options {
            fp_fusion: self.fp_fusion,
            max_registers: self.max_registers,
            line_info: self.line_info,
            asserts: if self.debug {
                Asserts::Report
            } else {
                Asserts::Off
            },
            ..Options::DEFAULT
        }
    }
}

/// A kernel on a device. Clones are the same kernel, and so is one that is set up the same way again; every method may
/// be called from any thread.
#[derive(Clone)]
pub struct Kernel {
    inner: Arc<KernelInner>,
    family: Arc<Family>,
}

pub(crate) struct KernelInner {
    pub(crate) device: Device,
    pub(crate) source: Arc<Source>,
    pub(crate) name: String,
    pub(crate) options: KernelOptions,
    pub(crate) params: Vec<Param>,
    /// The parameters that take an argument.
    pub(crate) slots: Vec<Slot>,
    /// For each of these the bits of an argument's class that count.
    masks: Masks,
    /// How many of them must have one.
    required: usize,
    /// Whether there is an argument that must have bits clear.
    is_picky: bool,
    pub(crate) table: Table<Variant>,
}

/// A parameter that takes an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Its index among all parameters.
    pub(crate) param: usize,
    /// Bits that every argument must have clear.
    clear: u64,
}

impl Kernel {
    pub(crate) fn new(
        device: &Device,
        program: &Program,
        name: Option<&str>,
    ) -> Result<Kernel, RuntimeError> {
        let name = program.source.pick(name)?;
        let options = KernelOptions {
            constants: Vec::new(),
            num_warps: None,
            num_stages: None,
            max_registers: None,
            fp_fusion: true,
            line_info: false,
            debug: false,
            dependent: false,
            cooperative: false,
            cluster: [1; 3],
            opted_out: Vec::new(),
            variants: DEFAULT_VARIANTS,
        };
        Kernel::with(device, &program.source, &program.family, name, options)
    }

    fn with(
        device: &Device,
        source: &Arc<Source>,
        family: &Arc<Family>,
        name: String,
        options: KernelOptions,
    ) -> Result<Kernel, RuntimeError> {
        let setup = format!("{} {name} {options:?}", device.instance());
        let inner = family.intern(setup, || {
            KernelInner::new(device.clone(), source.clone(), name, options)
        })?;
        Ok(Kernel {
            inner,
            family: family.clone(),
        })
    }

    /// The same kernel set up otherwise.
    fn changed(&self, change: impl FnOnce(&mut KernelOptions)) -> Result<Kernel, RuntimeError> {
        let inner = &self.inner;
        let mut options = inner.options.clone();
        change(&mut options);
        if options == inner.options {
            return Ok(self.clone());
        }
        let name = inner.name.clone();
        Kernel::with(&inner.device, &inner.source, &self.family, name, options)
    }

    /// Gives a constant: the value of a `constexpr` or another parameter, which takes no argument then, of `**META`, or of
    /// a name of the module.
    ///
    /// # Errors
    ///
    /// The program has no names, being a function of the IR.
    pub fn constant(&self, name: &str, value: impl Into<Constant>) -> Result<Kernel, RuntimeError> {
        let value = value.into();
        self.changed(|options| {
            match options
                .constants
                .binary_search_by(|(n, _)| n.as_str().cmp(name))
            {
                Ok(at) => options.constants[at].1 = value,
                Err(at) => options.constants.insert(at, (name.to_owned(), value)),
            }
        })
    }

    /// Runs a program on so many warps: 1, 2, 4, 8, 16 or 32.
    ///
    /// # Errors
    ///
    /// Another number.
    pub fn warps(&self, num_warps: u32) -> Result<Kernel, RuntimeError> {
        if !num_warps.is_power_of_two() || num_warps > 32 {
            return Err(RuntimeError::Setup {
                kernel: self.inner.name.clone(),
                problem: format!("{num_warps} warps; 1, 2, 4, 8, 16 or 32 are possible"),
            });
        }
        self.changed(|options| options.num_warps = Some(num_warps))
    }

    /// Pipelines loops that do not say so themselves in so many stages.
    ///
    /// # Errors
    ///
    /// A number outside of 1 to 32.
    pub fn stages(&self, num_stages: u8) -> Result<Kernel, RuntimeError> {
        if !(1..=32).contains(&num_stages) {
            return Err(RuntimeError::Setup {
                kernel: self.inner.name.clone(),
                problem: format!("{num_stages} stages; 1 to 32 are possible"),
            });
        }
        self.changed(|options| options.num_stages = Some(num_stages))
    }

    /// Bounds the registers of a thread.
    ///
    /// # Errors
    ///
    /// A number that the assembler does not take.
    pub fn max_registers(&self, registers: u16) -> Result<Kernel, RuntimeError> {
        if !Options::REGISTERS.contains(&registers) {
            let (first, last) = (Options::REGISTERS.start(), Options::REGISTERS.end());
            return Err(RuntimeError::Setup {
                kernel: self.inner.name.clone(),
                problem: format!("{registers} registers a thread; {first} to {last} are possible"),
            });
        }
        self.changed(|options| options.max_registers = Some(registers))
    }

    /// Whether products that only a sum uses become fused multiply-adds; they do if nothing is said.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn fp_fusion(&self, fuse: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.fp_fusion = fuse)
    }

    /// Whether profilers and debuggers see the lines of the source.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn line_info(&self, lines: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.line_info = lines)
    }

    /// Whether device assertions are kept.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn debug(&self, debug: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.debug = debug)
    }

    /// Lets a launch begin before the one ahead of it in the stream has ended: the kernel itself waits for what it needs
    /// (`gdc_wait`). From sm_90; the emulator and older devices run one after the other.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn dependent(&self, dependent: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.dependent = dependent)
    }

    /// Launches only if all programs can be resident at once, so that they may wait for one another.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn cooperative(&self, cooperative: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.cooperative = cooperative)
    }

    /// Launches programs in clusters, so many by axis, that the device runs on neighbouring multiprocessors. A grid has to
    /// be whole clusters on each axis. From sm_90; older devices and the emulator form none.
    ///
    /// # Errors
    ///
    /// No program or more than 16 in a cluster. Above 8 the device may refuse the launch.
    pub fn cluster(&self, cluster: [u32; 3]) -> Result<Kernel, RuntimeError> {
        /// What Hopper forms when asked for more than the portable 8.
        const MOST: u64 = 16;
        let programs = cluster.iter().map(|&side| u64::from(side)).product::<u64>();
        if cluster.iter().any(|&side| side > 16) || !(1..=MOST).contains(&programs) {
            let [x, y, z] = cluster;
            return Err(RuntimeError::Setup {
                kernel: self.inner.name.clone(),
                problem: format!("clusters of {x} x {y} x {z} programs; 1 to {MOST} are possible"),
            });
        }
        self.changed(|options| options.cluster = cluster)
    }

    /// Makes no variants for values of a parameter.
    ///
    /// # Errors
    ///
    /// There is no such parameter.
    pub fn do_not_specialize(&self, param: &str) -> Result<Kernel, RuntimeError> {
        self.opt_out(param, Specialize::NOTHING)
    }

    /// Makes no variants for the alignment of a parameter.
    ///
    /// # Errors
    ///
    /// There is no such parameter.
    pub fn do_not_specialize_on_alignment(&self, param: &str) -> Result<Kernel, RuntimeError> {
        let value = Specialize {
            value: true,
            alignment: false,
        };
        self.opt_out(param, value)
    }

    fn opt_out(&self, param: &str, allowed: Specialize) -> Result<Kernel, RuntimeError> {
        if !self.inner.params.iter().any(|p| p.name == param) {
            return Err(RuntimeError::Setup {
                kernel: self.inner.name.clone(),
                problem: format!("there is no parameter `{param}`"),
            });
        }
        self.changed(|options| {
            options.opted_out.retain(|(name, _)| name != param);
            options.opted_out.push((param.to_owned(), allowed));
            options.opted_out.sort_by(|a, b| a.0.cmp(&b.0));
        })
    }

    /// Bounds the number of variants. A launch beyond the bound uses the variant that knows only the types, if there is
    /// room for that, and is an error otherwise.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn variant_limit(&self, variants: usize) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.variants = variants.clamp(1, 1 << 16))
    }

    /// Everything that decides what a launch with such arguments does, but for values that are not specialised for.
    pub(crate) fn identity(&self, args: &[Arg<'_>]) -> Result<KeyBuilder, RuntimeError> {
        Ok(identity(&self.inner, &self.inner.classes(args)?))
    }

    /// The arguments, of those of a launch, that the parameter of a name takes.
    pub(crate) fn arguments_of<'s, 'a>(
        &self,
        args: &'s [Arg<'a>],
        name: &str,
    ) -> Option<&'s [Arg<'a>]> {
        self.inner.arguments_of(args, name)
    }

    /// Whether it was given a constant of this name.
    pub(crate) fn has_constant(&self, name: &str) -> bool {
        self.inner.options.constant(name).is_some()
    }

    /// With the constants that the program's heuristics give for these arguments.
    pub(crate) fn with_heuristics(&self, args: &[Arg<'_>]) -> Result<Kernel, RuntimeError> {
        let inner = &self.inner;
        // To a tuple or a descriptor a heuristic can say no more than that it is there.
        let firsts = given::split(args).into_iter().filter_map(<[_]>::first);
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
        &self.inner.device
    }

    /// The parameters that take an argument, in order.
    pub fn arguments(&self) -> Vec<&str> {
        self.inner.arguments().collect()
    }

    /// Puts a launch into `stream` and returns at once; a variant that is not there yet is compiled first.
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
        args.with(|args| self.inner.launch(stream, grid, args, &FOREVER))
    }

    /// [`Kernel::launch`] that waits for a compilation only so long.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Stopped`] at the end of patience; those of [`Kernel::launch`].
    pub fn launch_with<'g>(
        &self,
        stream: &Stream,
        grid: impl Into<Grid<'g>>,
        args: impl Args,
        patience: &Patience,
    ) -> Result<(), RuntimeError> {
        let grid = grid.into();
        args.with(|args| self.inner.launch(stream, grid, args, patience))
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
    pub fn prepare(&self, args: impl Args, patience: &Patience) -> Result<Report, RuntimeError> {
        args.with(|args| {
            let classes = self.inner.classes(args)?;
            Ok(self.inner.ready(&classes, patience)?.report.clone())
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
        patience: &Patience,
    ) -> Result<Prediction, RuntimeError> {
        args.with(|args| predict(&self.inner, &self.inner.classes(args)?, patience))
    }

    /// Begins to compile the variant for such arguments on another thread. A launch that comes earlier waits for it.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit.
    pub fn prepare_in_background(&self, args: impl Args) -> Result<(), RuntimeError> {
        let classes = args.with(|args| self.inner.classes(args))?;
        let kernel = self.inner.clone();
        pool::spawn(move || kernel.prepare(&classes));
        Ok(())
    }

    /// Which variant a launch with such arguments uses, and why.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit.
    pub fn explain(&self, args: impl Args) -> Result<Explanation, RuntimeError> {
        args.with(|args| {
            let classes = self.inner.classes(args)?;
            Ok(self.inner.explain(args, &classes))
        })
    }

    /// What the last launch with arguments of these classes printed, and which of its assertions failed, a line each.
    /// Waits for what `stream` holds. Nothing if there was no such launch.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran.
    pub fn printed(&self, stream: &Stream, args: impl Args) -> Result<Vec<String>, RuntimeError> {
        let classes = args.with(|args| self.inner.classes(args))?;
        let variant = self.inner.table.get(&classes);
        match variant.and_then(|variant| variant.ready.get()) {
            Some(ready) => ready.printed(&self.inner, stream),
            None => Ok(Vec::new()),
        }
    }

    /// The variants that are ready, sorted by signature.
    pub fn variants(&self) -> Vec<Report> {
        let ready = self.inner.table.iter().filter_map(|v| v.ready.get());
        let mut reports: Vec<Report> = ready.map(|ready| ready.report.clone()).collect();
        reports.sort_by(|a, b| a.signature.cmp(&b.signature));
        reports
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({} on {:?})", self.inner.name, self.inner.device)
    }
}

impl KernelInner {
    fn new(
        device: Device,
        source: Arc<Source>,
        name: String,
        options: KernelOptions,
    ) -> Result<KernelInner, RuntimeError> {
        let params = source.params(&name);
        let opted_out: HashMap<&str, Specialize> = options
            .opted_out
            .iter()
            .map(|(name, allowed)| (name.as_str(), *allowed))
            .collect();
        let (mut slots, mut masks) = (Vec::new(), Vec::new());
        let mut required = 0;
        for (index, param) in params.iter().enumerate() {
            if param.constexpr || options.constant(&param.name).is_some() {
                continue;
            }
            let allowed = opted_out.get(param.name.as_str());
            let allowed = allowed.copied().unwrap_or(Specialize::ALL);
            masks.push(param.specialize.mask() & allowed.mask());
            slots.push(Slot {
                param: index,
                clear: u64::from(param.divisible.max(1)) - 1,
            });
            if !param.default {
                required = slots.len();
            }
        }
        if !source.has_lines()
            && let Some((constant, _)) = options.constants.first()
        {
            return Err(RuntimeError::Setup {
                kernel: name,
                problem: format!("a function of the IR has no constant `{constant}`"),
            });
        }
        let table = Table::new(options.variants);
        Ok(KernelInner {
            device,
            source,
            name,
            options,
            params,
            is_picky: slots.iter().any(|slot: &Slot| slot.clear != 0),
            slots,
            masks: Masks::new(&masks),
            required,
            table,
        })
    }

    fn arguments(&self) -> impl Iterator<Item = &str> {
        let slots = self.slots.iter();
        slots.map(|slot| self.params[slot.param].name.as_str())
    }

    /// The classes of arguments.
    fn classes(&self, args: &[Arg<'_>]) -> Result<Classes, RuntimeError> {
        let mut classes = Classes::none();
        if self.classify(args, &mut classes) {
            return Ok(classes);
        }
        self.marked(args)
    }

    /// The classes of arguments among which there are tuples or descriptors; else what is wrong with them.
    #[cold]
    fn marked(&self, args: &[Arg<'_>]) -> Result<Classes, RuntimeError> {
        if !args.iter().any(Arg::is_mark) {
            return Err(self.wrong(args));
        }
        let by_param = given::split(args);
        if !(self.required..=self.slots.len()).contains(&by_param.len()) {
            return Err(self.wrong_count(by_param.len()));
        }
        for (args, slot) in by_param.iter().zip(&self.slots) {
            let is_foreign =
                |arg: &Arg<'_>| !arg.is_mark() && arg.device != 0 && arg.device != self.device.id();
            if args.iter().any(is_foreign) {
                let problem = "its memory belongs to another device".to_owned();
                return Err(self.wrong_argument(slot, problem));
            }
            if let [arg] = args
                && arg.bits & slot.clear != 0
            {
                return Err(self.not_a_multiple(arg, slot));
            }
        }
        given::classify(args, self.masks.iter()).ok_or_else(|| RuntimeError::Setup {
            kernel: self.name.clone(),
            problem: "a tuple among the arguments is too large, or not whole".to_owned(),
        })
    }

    /// The arguments of the parameter of a name.
    pub(crate) fn arguments_of<'s, 'a>(
        &self,
        args: &'s [Arg<'a>],
        name: &str,
    ) -> Option<&'s [Arg<'a>]> {
        let at = self.arguments().position(|n| n == name)?;
        given::split(args).get(at).copied()
    }

    /// Fills in the classes of arguments; whether these can be launched with.
    #[inline(always)]
    fn classify(&self, args: &[Arg<'_>], classes: &mut Classes) -> bool {
        if args.len() > self.slots.len() || args.len() < self.required {
            return false;
        }
        // Mistakes are gathered and looked for afterwards: there are none on the way that has to be fast. No device's number
        // is part of another's, so that numbers put together are this device's only if each is.
        let devices = classes.fill(args, &self.masks);
        (devices == 0 || devices == self.device.id()) && !(self.is_picky && self.is_uneven(args))
    }

    /// Whether an argument is no multiple of what it must be.
    #[inline(never)]
    fn is_uneven(&self, args: &[Arg<'_>]) -> bool {
        let mut pairs = args.iter().zip(&self.slots);
        pairs.any(|(arg, slot)| arg.bits & slot.clear != 0)
    }

    /// What is wrong with arguments: their number, or the first that is no multiple of what it must be or belongs to another
    /// device.
    #[cold]
    fn wrong(&self, args: &[Arg<'_>]) -> RuntimeError {
        if args.len() > self.slots.len() || args.len() < self.required {
            return self.wrong_count(args.len());
        }
        for (arg, slot) in args.iter().zip(&self.slots) {
            if arg.bits & slot.clear != 0 {
                return self.not_a_multiple(arg, slot);
            }
            if arg.device != 0 && arg.device != self.device.id() {
                let problem = "its memory belongs to another device".to_owned();
                return self.wrong_argument(slot, problem);
            }
        }
        self.wrong_count(args.len())
    }

    #[cold]
    fn wrong_count(&self, got: usize) -> RuntimeError {
        RuntimeError::ArgumentCount {
            kernel: self.name.clone(),
            expected: self.arguments().map(str::to_owned).collect(),
            got,
        }
    }

    #[cold]
    fn not_a_multiple(&self, arg: &Arg<'_>, slot: &Slot) -> RuntimeError {
        let wanted = slot.clear + 1;
        self.wrong_argument(
            slot,
            format!("{:#x} is not a multiple of {wanted}", arg.bits),
        )
    }

    #[cold]
    fn wrong_argument(&self, slot: &Slot, problem: String) -> RuntimeError {
        RuntimeError::Argument {
            kernel: self.name.clone(),
            name: self.params[slot.param].name.clone(),
            problem,
        }
    }

    /// The variant for these classes, ready to be launched.
    #[inline(always)]
    fn ready(
        self: &Arc<Self>,
        classes: &Classes,
        patience: &Patience,
    ) -> Result<&Ready, RuntimeError> {
        let variant = match self.table.get(classes) {
            Some(variant) => variant,
            None => self.insert(classes)?,
        };
        match variant.ready.get() {
            Some(ready) => Ok(ready),
            None => Variant::obtain(self, variant, patience),
        }
    }

    /// Makes the variant of these classes unless it is there or being made. An error waits for the launch that needs it.
    fn prepare(&self, classes: &Classes) {
        if let Ok(variant) = self.insert(classes) {
            variant.make_if_idle(self);
        }
    }

    /// A place for the variant of these classes; beyond the bound, that of the types alone.
    #[cold]
    fn insert(&self, classes: &Classes) -> Result<&Arc<Variant>, RuntimeError> {
        let make = |classes: &Classes| Variant::new(classes.clone());
        // A quarter of the room is kept for variants that know only the types, which serve all that are too many.
        let plain = given::plain(classes);
        let limit = self.table.limit();
        let is_crowded = self.table.len() >= limit - limit / 4;
        let found = if is_crowded && plain != *classes {
            self.table.get_or_insert(&plain, || make(&plain))
        } else {
            self.table.get_or_insert(classes, || make(classes))
        };
        found.ok_or_else(|| RuntimeError::TooManyVariants {
            kernel: self.name.clone(),
            limit,
            signature: self.signature(classes),
        })
    }

    /// Classes as a signature.
    pub(crate) fn signature(&self, classes: &Classes) -> String {
        let entries: Vec<String> = given::read(classes).iter().map(Given::to_string).collect();
        entries.join(", ")
    }

    fn launch(
        self: &Arc<Self>,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        patience: &Patience,
    ) -> Result<(), RuntimeError> {
        let mut classes = Classes::none();
        if !self.classify(args, &mut classes) {
            return self.launch_marked(stream, grid, args, patience);
        }
        self.launch_classes(&classes, stream, grid, args, patience)
    }

    /// [`KernelInner::launch`] with tuples or descriptors among the arguments.
    #[cold]
    fn launch_marked(
        self: &Arc<Self>,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        patience: &Patience,
    ) -> Result<(), RuntimeError> {
        let classes = self.marked(args)?;
        self.launch_classes(&classes, stream, grid, args, patience)
    }

    #[inline(always)]
    fn launch_classes(
        self: &Arc<Self>,
        classes: &Classes,
        stream: &Stream,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        patience: &Patience,
    ) -> Result<(), RuntimeError> {
        let ready = self.ready(classes, patience)?;
        let grid = match grid {
            Grid::Fixed(grid) => grid,
            Grid::Of(function) => self.grid_of(function, ready)?,
        };
        stream.expect_device(&self.device)?;
        ready.launch(self, classes, grid, stream, args)?;
        if self.device.is_blocking() {
            return self.wait(stream);
        }
        Ok(())
    }

    /// Waits for a launch.
    #[cold]
    fn wait(&self, stream: &Stream) -> Result<(), RuntimeError> {
        stream.synchronize().map_err(|error| self.at_fault(error))
    }

    /// Runs a launch that was recorded.
    pub(crate) fn replay(
        self: &Arc<Self>,
        recorded: &Recorded,
        stream: &Stream,
    ) -> Result<(), RuntimeError> {
        let Recorded {
            classes,
            grid,
            args,
            ..
        } = recorded;
        let ready = self.ready(classes, &FOREVER)?;
        ready.launch(self, classes, *grid, stream, args)
    }

    /// The error of waiting for a launch of this kernel alone.
    #[cold]
    fn at_fault(&self, error: RuntimeError) -> RuntimeError {
        match error {
            #[cfg(feature = "cuda")]
            RuntimeError::Driver {
                kernel: None,
                line,
                error,
            } => RuntimeError::Driver {
                kernel: Some(self.name.clone()),
                line,
                error,
            },
            other => other,
        }
    }

    fn grid_of(
        &self,
        function: &dyn Fn(Constants<'_>) -> Option<[u32; 3]>,
        ready: &Ready,
    ) -> Result<[u32; 3], RuntimeError> {
        let constants = Constants {
            list: &self.options.constants,
            num_warps: ready.report.num_warps,
        };
        let grid = function(constants).ok_or_else(|| RuntimeError::Grid {
            kernel: self.name.clone(),
            problem: "the grid asks for a constant that is not there, or is no positive integer"
                .to_owned(),
        })?;
        Ok(grid)
    }

    /// An error for a grid that nothing launches.
    pub(crate) fn check_grid(&self, programs: [u32; 3]) -> Result<(), RuntimeError> {
        grid::check(programs).map_err(|error| RuntimeError::Grid {
            kernel: self.name.clone(),
            problem: error.to_string(),
        })?;
        self.check_clusters(programs)
    }

    /// An error for a grid that is not made of whole clusters.
    fn check_clusters(&self, programs: [u32; 3]) -> Result<(), RuntimeError> {
        let cluster = self.options.cluster;
        let Some(axis) = (0..3).find(|&axis| !programs[axis].is_multiple_of(cluster[axis])) else {
            return Ok(());
        };
        Err(RuntimeError::Grid {
            kernel: self.name.clone(),
            problem: format!(
                "{} programs along axis {axis} are not clusters of {}",
                programs[axis], cluster[axis]
            ),
        })
    }

    fn explain(&self, args: &[Arg<'_>], classes: &Classes) -> Explanation {
        let slots = self.slots.iter().zip(self.masks.iter());
        let given = given::read(classes);
        let reasons = given::split(args).into_iter().zip(slots).zip(&given);
        let arguments = reasons.map(|((args, (slot, mask)), given)| {
            let reason = match (given, args) {
                (Given::Plain(class), [arg]) => reason(*class, arg, mask),
                (Given::Descriptor { .. }, _) => {
                    "a tensor; its address, sizes and strides are no part of it".to_owned()
                }
                _ => "a tuple, each element for itself".to_owned(),
            };
            let name = self.params[slot.param].name.clone();
            (name, given.to_string(), reason)
        });
        let variant = self.table.get(classes);
        Explanation {
            signature: self.signature(classes),
            ready: variant.is_some_and(|variant| variant.ready.get().is_some()),
            arguments: arguments.collect(),
        }
    }
}

/// Why an argument has its class.
fn reason(class: Class, arg: &Arg<'_>, mask: u8) -> String {
    let kind = if class.is_pointer() {
        "address"
    } else {
        "value"
    };
    match class.0 & (ONE | DIVISIBLE) {
        ONE => "its value is 1 and becomes a constant".to_owned(),
        DIVISIBLE => format!("its {kind} {:#x} is a multiple of 16", arg.bits),
        _ if mask & (ONE | DIVISIBLE) == 0 => "it is not specialised for values".to_owned(),
        _ if class.dtype().is_none() => "it is absent".to_owned(),
        _ => format!("its {kind} {:#x} promises nothing", arg.bits),
    }
}

impl fmt::Debug for KernelInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {:?}", self.name, self.device)
    }
}
