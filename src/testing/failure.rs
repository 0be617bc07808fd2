//! Why a test fails.

use std::fmt;

use crate::runtime::RuntimeError;

/// Why a test of a kernel fails. `Debug`, which is what the test harness prints of an `Err`, is the readable text as well.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The kernel is not accepted, or goes wrong where it runs.
    #[error(transparent)]
    Kernel(#[from] RuntimeError),

    /// What it wrote is not what was expected.
    #[error("kernel `{kernel}`, argument `{argument}`: {problem}")]
    Values {
        /// The kernel.
        kernel: String,
        /// The parameter whose memory it is.
        argument: String,
        /// Which elements, what they are, and what they should be.
        problem: String,
    },

    /// A text is not the one of a file.
    #[error(
        "{path} differs from what there is now (-: the file, +: now; TILELIFT_BLESS=1 rewrites it)\n{difference}"
    )]
    Different {
        /// The file.
        path: String,
        /// The lines that differ, with some around them.
        difference: String,
    },

    /// A file cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        problem: String,
    },

    /// A case that says nothing that could be checked.
    #[error("kernel `{kernel}`: {problem}")]
    Case {
        /// The kernel.
        kernel: String,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// A case that was made from a seed failed.
    #[error("seed {seed}: {failure}")]
    Seed {
        /// The seed.
        seed: u64,
        /// What went wrong, and how to run the case again.
        failure: String,
    },
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
