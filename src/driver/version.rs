//! Versions: of the driver, of PTX, of devices; and which goes with which.

use std::fmt;

/// The CUDA version that a driver implements, as it reports it: 13000 is 13.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion(pub u32);

impl CudaVersion {
    /// The newest PTX that a driver of this version accepts.
    ///
    /// A driver's assembler takes every version up to its own and nothing newer. Drivers newer
    /// than this crate count as the newest one known; for those older than CUDA 10.1, the answer
    /// is 6.3, the lowest version that this crate has any use for.
    #[must_use]
    pub fn newest_ptx(self) -> PtxVersion {
        // From the release notes of the PTX ISA ("PTX ISA and CUDA driver version").
        const TABLE: [(u32, u32, u32); 25] = [
            (10_010, 6, 4),
            (10_020, 6, 5),
            (11_000, 7, 0),
            (11_010, 7, 1),
            (11_020, 7, 2),
            (11_030, 7, 3),
            (11_040, 7, 4),
            (11_050, 7, 5),
            (11_060, 7, 6),
            (11_070, 7, 7),
            (11_080, 7, 8),
            (12_000, 8, 0),
            (12_010, 8, 1),
            (12_020, 8, 2),
            (12_030, 8, 3),
            (12_040, 8, 4),
            (12_050, 8, 5),
            (12_070, 8, 6),
            (12_080, 8, 7),
            (12_090, 8, 8),
            (13_000, 9, 0),
            (13_010, 9, 1),
            (13_020, 9, 2),
            (13_030, 9, 3),
            (13_050, 9, 5),
        ];
        let row = TABLE.iter().rev().find(|row| row.0 <= self.0);
        let &(_, major, minor) = row.unwrap_or(&(0, 6, 3));
        PtxVersion { major, minor }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// A version of the PTX language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxVersion {
    /// The number before the point.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

impl PtxVersion {
    /// The version that `ptx` states in its `.version` line.
    #[must_use]
    pub fn stated_in(ptx: &str) -> Option<PtxVersion> {
        let (major, minor) = directive(ptx, ".version")?.split_once('.')?;
        Some(PtxVersion {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a device can do, in NVIDIA's numbering: 9.0 is Hopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    /// The number before the point.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

impl Capability {
    /// Whether PTX for `target` (`sm_80`, `sm_90a`, `sm_100f`) runs on such a device.
    ///
    /// Plain targets run on every later device, those with an `a` on exactly theirs, those with
    /// an `f` on later ones of the same family. `None` if the name is not of that form.
    #[must_use]
    pub fn runs(self, target: &str) -> Option<bool> {
        let digits = target.strip_prefix("sm_")?;
        let (digits, suffix) = match digits.strip_suffix(['a', 'f']) {
            Some(rest) => (rest, digits.chars().last()),
            None => (digits, None),
        };
        let number: u32 = digits.parse().ok()?;
        let least = Capability {
            major: number / 10,
            minor: number % 10,
        };
        Some(match suffix {
            Some('a') => self == least,
            Some(_) => self.major == least.major && self >= least,
            None => self >= least,
        })
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The target that `ptx` states in its `.target` line.
pub(super) fn target_in(ptx: &str) -> Option<&str> {
    directive(ptx, ".target").map(|rest| rest.split(',').next().unwrap_or(rest).trim())
}

/// The first word after the directive `name`, which has to begin a line.
fn directive<'a>(ptx: &'a str, name: &str) -> Option<&'a str> {
    ptx.lines()
        .find_map(|line| line.trim_start().strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(version: u32) -> String {
        CudaVersion(version).newest_ptx().to_string()
    }

    #[test]
    fn newest_ptx_follows_the_release_notes() {
        assert_eq!(newest(9_000), "6.3");
        assert_eq!(newest(11_040), "7.4");
        assert_eq!(newest(12_060), "8.5", "12.6 brought no version of its own");
        assert_eq!(newest(12_080), "8.7");
        assert_eq!(newest(13_000), "9.0");
        assert_eq!(
            newest(99_000),
            "9.5",
            "unknown drivers count as the newest known"
        );
        assert_eq!(CudaVersion(12_040).to_string(), "12.4");
    }

    #[test]
    fn header_lines_are_read() {
        let ptx = "// .version 1.0\n\t.version 8.7\n.target sm_90a, debug\n.address_size 64";
        assert_eq!(
            PtxVersion::stated_in(ptx),
            Some(PtxVersion { major: 8, minor: 7 })
        );
        assert_eq!(target_in(ptx), Some("sm_90a"));
        assert_eq!(PtxVersion::stated_in("nothing"), None);
        assert_eq!(PtxVersion::stated_in(".version x.y"), None);
    }

    #[test]
    fn targets_run_where_nvidia_says() {
        let hopper = Capability { major: 9, minor: 0 };
        let next = Capability {
            major: 10,
            minor: 3,
        };
        assert_eq!(hopper.runs("sm_80"), Some(true));
        assert_eq!(hopper.runs("sm_90a"), Some(true));
        assert_eq!(hopper.runs("sm_100"), Some(false));
        assert_eq!(next.runs("sm_90a"), Some(false));
        assert_eq!(next.runs("sm_100f"), Some(true));
        assert_eq!(next.runs("sm_100a"), Some(false));
        assert_eq!(next.runs("compute_90"), None);
    }
}
