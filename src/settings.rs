//! Targets and options: what a compilation depends on beside the kernel. Immutable once made, and part
//! of every cache key.

use std::fmt;
use std::ops::RangeInclusive;

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
#[error("unknown target `{0}`; known are sm_75, sm_80 and sm_90")]
pub struct TargetError(pub String);

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
struct TargetRow {
    sm: u32,
    /// First PTX version that names the target.
    ptx: PtxVersion,
    /// Largest shared memory of a CTA in bytes, with the opt-in.
    shared_limit: u32,
}

const fn ptx(major: u8, minor: u8) -> PtxVersion {
    PtxVersion { major, minor }
}

/// Sources: the PTX manual's target history; the CUDA programming guide's table of compute capabilities.
const TARGETS: &[TargetRow] = &[
    TargetRow {
        sm: 75,
        ptx: ptx(6, 3),
        shared_limit: 64 << 10,
    },
    TargetRow {
        sm: 80,
        ptx: ptx(7, 0),
        shared_limit: 163 << 10,
    },
    TargetRow {
        sm: 90,
        ptx: ptx(7, 8),
        shared_limit: 227 << 10,
    },
];

impl Target {
    /// Turing.
    pub const SM_75: Target = Target {
        sm: 75,
        specific: false,
    };
    /// Ampere.
    pub const SM_80: Target = Target {
        sm: 80,
        specific: false,
    };
    /// Hopper.
    pub const SM_90: Target = Target {
        sm: 90,
        specific: false,
    };
    /// Every target.
    pub const ALL: [Target; 3] = [Target::SM_75, Target::SM_80, Target::SM_90];

    /// The target with this name, as in `sm_80`.
    pub fn parse(name: &str) -> Result<Target, TargetError> {
        let found = Target::ALL.into_iter().find(|t| t.to_string() == name);
        found.ok_or_else(|| TargetError(name.to_owned()))
    }

    /// The best target for a device of compute capability `major`.`minor`; none if it is too old.
    pub fn for_device(major: u32, minor: u32) -> Option<Target> {
        let capability = 10 * major + minor;
        Target::ALL.into_iter().rev().find(|t| t.sm <= capability)
    }

    fn row(self) -> &'static TargetRow {
        TARGETS
            .iter()
            .find(|row| row.sm == self.sm)
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
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, if self.specific { "a" } else { "" })
    }
}

/// How to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Turn products that only a sum uses into fused multiply-adds.
    pub fp_fusion: bool,
    /// Upper bound of registers per thread for the assembler.
    pub max_registers: Option<u16>,
    /// Verify the IR after every pass and the register allocation; a failure is an internal error.
    pub verify_passes: bool,
    /// Write `.file` and `.loc` so that tools show the lines of the source.
    pub line_info: bool,
}

/// Why a compilation cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    };
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

    #[test]
    fn names_round_trip() {
        for target in Target::ALL {
            assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
        assert!(Target::parse("sm_81").is_err());
        assert_eq!(Target::for_device(8, 9), Some(Target::SM_80));
        assert_eq!(Target::for_device(6, 1), None);
    }
}
