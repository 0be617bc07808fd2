//! Targets and options: what a compilation depends on beside the kernel. Immutable once made, and part
//! of every cache key.

use std::fmt;
use std::ops::RangeInclusive;

mod availability;
mod ctas;
pub mod diversity;
pub(crate) mod occupancy;

pub use availability::Exists;
pub(crate) use availability::exists;
pub(crate) use ctas::{LANES, MOST_WARPS, one_cta, program_warps};
pub(crate) use occupancy::better_warps;
pub use occupancy::{Usage, is_expected_to_spill, spilled_bytes};

/// A PTX target: an architecture, and whether its code may use what later architectures lack (`a`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// Compute capability times ten: 75, 80, 90.
    pub sm: u32,
    /// Architecture-specific features, as in `sm_90a`.
    pub specific: bool,
}

/// Why a target's name is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{0}`;{serves} known are {known}", serves = serves(.0), known = names())]
pub struct TargetError(pub String);

/// The target whose code runs on the devices that a name is of, if there is one.
fn serves(name: &str) -> String {
    let digits = short_name(name).trim_end_matches(['a', 'f']);
    let number: Option<u32> = digits.parse().ok().filter(|n| (70..1000).contains(n));
    match number.and_then(|n| Target::for_device(n / 10, n % 10)) {
        Some(target) => format!(" code for {target} runs there, and that is the latest there is;"),
        None => String::new(),
    }
}

/// The part of a target's name behind `sm_`, however it is written.
fn short_name(name: &str) -> &str {
    match name.strip_prefix("cuda:") {
        Some(rest) => rest.strip_suffix(":32").unwrap_or(rest),
        None => name
            .strip_prefix("sm")
            .map_or(name, |n| n.strip_prefix('_').unwrap_or(n)),
    }
}

fn names() -> String {
    Target::ALL.map(|target| target.to_string()).join(", ")
}

/// A version of the PTX language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxVersion {
    /// Number before the dot.
    pub major: u8,
    /// Number after the dot.
    pub minor: u8,
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What is known of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TargetRow {
    target: Target,
    /// First PTX version that names the target.
    ptx: PtxVersion,
    /// Largest shared memory of a CTA in bytes, with the opt-in.
    shared_limit: u32,
}

const fn row(sm: u32, specific: bool, (major, minor): (u8, u8), shared_kib: u32) -> TargetRow {
    TargetRow {
        target: Target { sm, specific },
        ptx: PtxVersion { major, minor },
        shared_limit: shared_kib << 10,
    }
}

/// In ascending order. Sources: the PTX manual's target history; the CUDA programming guide's table of compute
/// capabilities.
const TARGETS: [TargetRow; 9] = [
    row(70, false, (6, 0), 96),
    row(75, false, (6, 3), 64),
    row(80, false, (7, 0), 163),
    row(86, false, (7, 1), 99),
    row(89, false, (7, 8), 99),
    row(90, false, (7, 8), 227),
    row(90, true, (8, 0), 227),
    row(100, false, (8, 6), 227),
    row(120, false, (8, 7), 99),
];

const fn plain(sm: u32) -> Target {
    Target {
        sm,
        specific: false,
    }
}

impl Target {
    /// Volta.
    pub const SM_70: Target = plain(70);
    /// Turing.
    pub const SM_75: Target = plain(75);
    /// Ampere, data centre.
    pub const SM_80: Target = plain(80);
    /// Ampere, consumer.
    pub const SM_86: Target = plain(86);
    /// Ada.
    pub const SM_89: Target = plain(89);
    /// Hopper, for this and later devices.
    pub const SM_90: Target = plain(90);
    /// Hopper alone.
    pub const SM_90A: Target = Target {
        sm: 90,
        specific: true,
    };
    /// Blackwell, data centre.
    pub const SM_100: Target = plain(100);
    /// Blackwell, consumer.
    pub const SM_120: Target = plain(120);
    /// Every target, in ascending order.
    pub const ALL: [Target; 9] = {
        let mut all = [Target::SM_70; 9];
        let mut i = 0;
        while i < all.len() {
            all[i] = TARGETS[i].target;
            i += 1;
        }
        all
    };

    /// The target with this name, as in `sm_80`; also `sm80`, `80`, and `cuda:80` or `cuda:80:32` as Triton's tools
    /// have it.
    pub fn parse(name: &str) -> Result<Target, TargetError> {
        let short = short_name(name);
        let is_named = |t: &Target| t.to_string().strip_prefix("sm_") == Some(short);
        let found = Target::ALL.into_iter().find(is_named);
        found.ok_or_else(|| TargetError(name.to_owned()))
    }

    /// Whether PTX for the target runs on a device of compute capability `major`.`minor`.
    pub fn runs_on(self, major: u32, minor: u32) -> bool {
        let capability = 10 * major + minor;
        if self.specific {
            self.sm == capability
        } else {
            self.sm <= capability
        }
    }

    /// The best target for a device of compute capability `major`.`minor`; none if it is too old. Of two that differ
    /// in `a` alone it is the one with: what is compiled for a device need not run on later ones, and the units of matrices that
    /// four warps feed are there alone.
    pub fn for_device(major: u32, minor: u32) -> Option<Target> {
        let fits = |t: &Target| t.runs_on(major, minor);
        Target::ALL.into_iter().rev().find(fits)
    }

    fn row(self) -> &'static TargetRow {
        TARGETS
            .iter()
            .find(|row| row.target == self)
            .unwrap_or(&TARGETS[0])
    }

    /// First PTX version that names the target.
    pub fn min_ptx(self) -> PtxVersion {
        self.row().ptx
    }

    /// Largest shared memory of a CTA in bytes.
    pub fn shared_limit(self) -> u32 {
        self.row().shared_limit
    }

    /// Whether there are instructions that compute with two f32 at once. sm_120 takes their text and computes with one.
    pub fn packs_f32(self) -> bool {
        (100..120).contains(&self.sm)
    }

    /// Most bytes that a thread reads from device memory, or writes to it, in one instruction.
    pub fn widest_access(self) -> u32 {
        if self.sm >= 100 { 32 } else { 16 }
    }

    /// Whether `cvt` knows the 8-bit floating-point formats.
    pub fn converts_f8(self) -> bool {
        self.sm >= 89
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, if self.specific { "a" } else { "" })
    }
}

/// As its name.
#[cfg(feature = "serde")]
impl serde::Serialize for Target {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// As its name.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Target {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Target, D::Error> {
        let name = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(from)?;
        Target::parse(&name).map_err(serde::de::Error::custom)
    }
}

/// What becomes of assertions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Asserts {
    /// They are left out.
    #[default]
    Off,
    /// One that fails is recorded in the module's log, and the kernel goes on.
    Report,
    /// One that fails ends the launch, and with it the context.
    Trap,
}

/// Whether loads and stores through plain pointers may become copies by the copy engine of Hopper and later devices (TMA), where the
/// launcher makes tensor maps from the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Promote {
    /// Where that is faster. The launcher needs what the compiler says of maps, and compiles the kernel without maps, too, when
    /// a launch's arguments ask for it.
    #[default]
    Auto,
    /// Nowhere: the kernel is launched with pointers and numbers alone.
    Never,
}

/// Whether something is done that may make a kernel faster or slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Policy {
    /// Where that is faster.
    #[default]
    Auto,
    /// Wherever it is possible.
    Always,
    /// Nowhere.
    Never,
}

/// How to compile. Read by `serde`, what is not said is as in [`Options::DEFAULT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Options {
    /// Turn products that only a sum uses into fused multiply-adds, and take sums that a loop adds up behind it.
    pub fp_fusion: bool,
    /// Upper bound of registers per thread for the assembler.
    pub max_registers: Option<u16>,
    /// Verify the IR after every pass and the register allocation; a failure is an internal error.
    pub verify_passes: bool,
    /// Write `.file` and `.loc` so that tools show the lines of the source.
    pub line_info: bool,
    /// What becomes of assertions.
    pub asserts: Asserts,
    /// Whether the kernel may take tensor maps.
    pub promote: Promote,
    /// Whether warps of their own may bring what the program multiplies, while its warps multiply: a CTA then has more threads
    /// than the program.
    pub roles: Policy,
    /// Whether a CTA may execute several programs, one after the other: a launch then has as many CTAs as the device holds at a time.
    /// Only kernels with roles and tensor maps do.
    pub persistent: Policy,
    /// Whether the program has the warps it is given, whatever registers they need; else it may get more where they lack many.
    pub fixed_warps: bool,
    /// For tests: make what may be one way or another (layouts, stages, swizzles, offsets in shared memory, order of
    /// instructions, registers) by this seed instead of by cost, so that rare ways run. See [`diversity`].
    pub diversity: Option<u64>,
}

/// Why a compilation cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No such target.
    #[error(transparent)]
    Target(TargetError),
    /// The bound on registers is out of range.
    #[error("a bound of {bound} registers per thread; {} to {} are possible", Options::REGISTERS.start(), Options::REGISTERS.end())]
    Registers {
        /// What was asked for.
        bound: u16,
    },
}

impl Options {
    /// Bounds that the assembler takes for the registers of a thread.
    pub const REGISTERS: RangeInclusive<u16> = 16..=255;

    /// Whether a kernel can be compiled for the target with these options.
    pub fn check(&self, target: Target) -> Result<(), SettingsError> {
        if !Target::ALL.contains(&target) {
            return Err(SettingsError::Target(TargetError(target.to_string())));
        }
        match self.max_registers {
            Some(bound) if !Options::REGISTERS.contains(&bound) => {
                Err(SettingsError::Registers { bound })
            }
            _ => Ok(()),
        }
    }

    /// What is used where nothing is said.
    pub const DEFAULT: Options = Options {
        fp_fusion: true,
        max_registers: None,
        verify_passes: cfg!(debug_assertions),
        line_info: false,
        asserts: Asserts::Off,
        promote: Promote::Auto,
        roles: Policy::Auto,
        persistent: Policy::Auto,
        fixed_warps: false,
        diversity: None,
    };
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        let odd = Target {
            sm: 12,
            specific: true,
        };
        let message = |options: Options, target| options.check(target).map_err(|e| e.to_string());
        assert!(
            message(Options::DEFAULT, odd).is_err_and(|m| m.contains("unknown target `sm_12a`"))
        );
        let bounded = |bound| Options {
            max_registers: Some(bound),
            ..Options::DEFAULT
        };
        assert_eq!(message(bounded(64), Target::SM_80), Ok(()));
        assert_eq!(
            message(bounded(0), Target::SM_80),
            Err("a bound of 0 registers per thread; 16 to 255 are possible".to_owned())
        );
    }

    #[cfg(feature = "serde")]
    #[test]
    fn options_come_back_from_json() {
        let options = Options {
            max_registers: Some(64),
            asserts: Asserts::Trap,
            roles: Policy::Never,
            promote: Promote::Never,
            diversity: Some(u64::MAX),
            ..Options::DEFAULT
        };
        let json = serde_json::to_string(&options).expect("it is data");
        let read: Options = serde_json::from_str(&json).expect("as written");
        assert_eq!(read, options);
        let read: Options = serde_json::from_str(r#"{"asserts": "report"}"#).expect("a part");
        let expected = Options {
            asserts: Asserts::Report,
            ..Options::DEFAULT
        };
        assert_eq!(read, expected);
        let wrong: Result<Options, _> = serde_json::from_str(r#"{"fusion": true}"#);
        assert!(wrong.is_err_and(|e| e.to_string().contains("unknown field `fusion`")));
    }

    #[test]
    fn names_round_trip() {
        for target in Target::ALL {
            assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
        let error = Target::parse("sm_81").expect_err("no such target");
        assert!(
            error
                .to_string()
                .contains("sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100")
        );
        // Members of families of which another has a name here.
        for (name, served) in [
            ("sm_103", "sm_100"),
            ("sm_103a", "sm_100"),
            ("sm_103f", "sm_100"),
            ("sm_100f", "sm_100"),
            ("sm_110", "sm_100"),
            ("sm_110a", "sm_100"),
            ("sm_110f", "sm_100"),
            ("sm_121", "sm_120"),
            ("sm_121a", "sm_120"),
            ("sm_121f", "sm_120"),
            ("cuda:88:32", "sm_86"),
        ] {
            let error = Target::parse(name).expect_err("no such target").to_string();
            let text = format!("unknown target `{name}`; code for {served} runs there,");
            assert!(error.starts_with(&text), "{error}");
        }
        for name in ["sm_6", "sm_60", "sm_99999", "hopper", "sm_a", ""] {
            let error = Target::parse(name).expect_err("no such target").to_string();
            assert!(
                error.starts_with(&format!("unknown target `{name}`; known are")),
                "{error}"
            );
        }
        assert!(Target::ALL.is_sorted());
        assert_eq!(Target::for_device(8, 7), Some(Target::SM_86));
        assert_eq!(Target::for_device(9, 0), Some(Target::SM_90A));
        // Devices of a generation have the code of its first.
        for (device, served) in [((10, 3), 100), ((11, 0), 100), ((12, 1), 120)] {
            assert_eq!(Target::for_device(device.0, device.1), Some(plain(served)));
        }
        assert!(Target::SM_90A.runs_on(9, 0) && !Target::SM_90A.runs_on(10, 0));
        assert_eq!(Target::for_device(6, 1), None);
    }
}
