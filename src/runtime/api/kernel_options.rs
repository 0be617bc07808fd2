//! How a kernel is set up: constants, warps and stages, what it is specialised for, and how it is launched.

use crate::settings::{Asserts, Options, Policy, Promote, one_cta, program_warps};

use crate::runtime::api::constant::Constant;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::{DEFAULT_VARIANTS, Kernel};
use crate::runtime::api::warning::warn_once;
use crate::runtime::specialize::class::Specialize;

/// How a kernel is set up. Part of what its variants are found by on disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelOptions {
    /// Sorted by name.
    pub(crate) constants: Vec<(String, Constant)>,
    pub(crate) num_warps: Option<u32>,
    pub(crate) num_ctas: u32,
    pub(crate) num_stages: Option<u8>,
    pub(crate) max_registers: Option<u16>,
    pub(crate) fp_fusion: bool,
    pub(crate) line_info: bool,
    pub(crate) debug: bool,
    pub(crate) promote: Promote,
    pub(crate) roles: Policy,
    /// Whether a CTA may execute several programs.
    pub(crate) persistent: Policy,
    pub(crate) diversity: Option<u64>,
    pub(crate) dependent: bool,
    pub(crate) cooperative: bool,
    /// Programs of a cluster by axis.
    pub(crate) cluster: [u32; 3],
    /// Sorted by name.
    pub(crate) opted_out: Vec<(String, Specialize)>,
    pub(crate) variants: usize,
}

impl Default for KernelOptions {
    fn default() -> KernelOptions {
        KernelOptions {
            constants: Vec::new(),
            num_warps: None,
            num_ctas: 1,
            num_stages: None,
            max_registers: None,
            fp_fusion: true,
            line_info: false,
            debug: false,
            promote: Promote::Auto,
            roles: Policy::Auto,
            persistent: Policy::Auto,
            diversity: None,
            dependent: false,
            cooperative: false,
            cluster: [1; 3],
            opted_out: Vec::new(),
            variants: DEFAULT_VARIANTS,
        }
    }
}

impl KernelOptions {
    /// A text that no other set-up has.
    pub(in crate::runtime) fn identity(&self) -> String {
        let constants = self.constants.iter();
        let constants: Vec<String> = constants
            .map(|(name, value)| format!("{name:?} {}", value.identity()))
            .collect();
        let rest = KernelOptions {
            constants: Vec::new(),
            ..self.clone()
        };
        format!("{constants:?} {rest:?}")
    }

    /// Whether another set-up, of the same constants, asks the compiler for the same.
    pub(in crate::runtime) fn compiles_as(&self, other: &KernelOptions) -> bool {
        let alike = KernelOptions {
            dependent: other.dependent,
            cooperative: other.cooperative,
            cluster: other.cluster,
            variants: other.variants,
            constants: other.constants.clone(),
            opted_out: other.opted_out.clone(),
            ..self.clone()
        };
        alike == *other
    }

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
            promote: self.promote,
            roles: self.roles,
            persistent: self.persistent,
            // All programs are to be resident, of which there may be fewer with more warps.
            fixed_warps: self.cooperative,
            diversity: self.diversity,
            ..Options::DEFAULT
        }
    }
}

impl Kernel {
    /// Gives a constant: the value of a `constexpr` or another parameter, which takes no argument then, of `**META`, or of
    /// a name of the module.
    ///
    /// # Errors
    ///
    /// Nothing in the program has this name; it has no names, being a function of the IR.
    pub fn constant(&self, name: &str, value: impl Into<Constant>) -> Result<Kernel, RuntimeError> {
        let value = value.into();
        let inner = &self.inner;
        if !inner.params.iter().any(|param| param.name == name) {
            inner.source.check_constant(&inner.name, name)?;
        }
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

    /// Runs a program that is written for so many CTAs of a cluster: in one CTA, on so many times the warps, 32 at most
    /// together. The results are the same; a warning says once that no cluster is formed.
    ///
    /// # Errors
    ///
    /// Another number than 1, 2, 4, 8, 16 or 32, or one that takes too many warps with those of [`Kernel::warps`]. Where that
    /// says nothing, the number of warps is known when a variant is made, which fails then.
    pub fn ctas(&self, num_ctas: u32) -> Result<Kernel, RuntimeError> {
        let name = &self.inner.name;
        let given = self.inner.options.num_warps.unwrap_or(1);
        program_warps(given, num_ctas).map_err(|problem| RuntimeError::Setup {
            kernel: name.clone(),
            problem,
        })?;
        if num_ctas != 1 {
            warn_once(&format!("kernel `{name}`: {}", one_cta(num_ctas)));
        }
        self.changed(|options| options.num_ctas = num_ctas)
    }

    /// Pipelines loops of products of matrices that do not say so themselves in so many stages.
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

    /// Whether device assertions are kept. The kernel goes on after one that fails; it is an error of the launch on the
    /// emulator, and on a GPU of what waits next ([`Stream::synchronize`](crate::runtime::Stream::synchronize),
    /// [`Buffer::read`](crate::runtime::Buffer::read), a blocking launch): [`RuntimeError::Assertion`]. The device stays usable, and
    /// [`Kernel::printed`] has the failures among the lines.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn debug(&self, debug: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.debug = debug)
    }

    /// Whether the kernel may take tensor maps, which a launch makes of its arguments; it may if nothing is said. Where the
    /// arguments of a launch allow no map, the kernel of [`Promote::Never`] is launched in its place, and compiled for that when
    /// it is first needed.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn promote(&self, promote: Promote) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.promote = promote)
    }

    /// Whether warps of their own may bring what the program multiplies; they may if nothing is said.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn roles(&self, roles: Policy) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.roles = roles)
    }

    /// Whether a CTA may execute several programs, one after the other; it may if nothing is said. See
    /// [`Options::persistent`](crate::settings::Options::persistent).
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn persistent(&self, persistent: Policy) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.persistent = persistent)
    }

    /// For tests: has the compiler choose by a seed in place of by cost, so that rare ways run
    /// ([`diversity`](crate::settings::diversity)). A right kernel has the same results, but for the order of sums that it
    /// leaves open.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn diversity(&self, seed: Option<u64>) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.diversity = seed)
    }

    /// Whether it was compiled ahead of time, so that nothing of what the compiler is told can change.
    pub fn is_compiled_ahead(&self) -> bool {
        self.inner.source.is_compiled()
    }

    /// Lets a launch begin before the one ahead of it in the stream has ended, if that one allows it (`gdc_launch_dependents`): the kernel
    /// itself waits for what it needs (`gdc_wait`). From sm_90; the emulator and older devices run one after the other. `guide::slow` says
    /// what is right, under "Do launches wait for each other?".
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn dependent(&self, dependent: bool) -> Result<Kernel, RuntimeError> {
        self.changed(|options| options.dependent = dependent)
    }

    /// Launches only if all programs can be resident at once, so that they may wait for one another. The emulator refuses
    /// no number: of more programs than [`emu::Options::resident_ctas`](crate::emu::Options::resident_ctas), which run in turns,
    /// the others begin when those have ended, whatever waits for them.
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
        let programs = cluster
            .iter()
            .fold(1_u64, |all, &side| all.saturating_mul(side.into()));
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

    /// Bounds the number of variants, [`DEFAULT_VARIANTS`](crate::runtime::DEFAULT_VARIANTS) if nothing is said. A launch beyond the
    /// bound uses the variant that knows only the types, if there is room for that, and is an error otherwise. A quarter of
    /// the bound, one at least, is kept for such variants: a bound of 1 makes the only variant one that knows only the types. Launches
    /// that differ in what the code does not depend on share a variant, and count each.
    ///
    /// It bounds too what is kept of set-ups that nobody holds, such as those of constants that vary without end: all
    /// set-ups of the kernel together keep so many variants, and the next use of one that had to go makes its variants
    /// anew, or finds them in the cache on disk.
    ///
    /// # Errors
    ///
    /// None at all, or more than 65,536.
    pub fn variant_limit(&self, variants: usize) -> Result<Kernel, RuntimeError> {
        const MOST: usize = 1 << 16;
        if !(1..=MOST).contains(&variants) {
            return Err(RuntimeError::Setup {
                kernel: self.inner.name.clone(),
                problem: format!("a bound of {variants} variants; 1 to {MOST} are possible"),
            });
        }
        self.changed(|options| options.variants = variants)
    }
}
