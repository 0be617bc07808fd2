//! Tests of kernels, in the test suite of whoever writes them: without a GPU, in milliseconds.
//!
//! A [`Case`] is a kernel with a grid and arguments. [`Case::check`] runs it on the emulator and compares what it wrote with
//! what closures say; races, addresses outside of a buffer, reads of what nobody wrote, barriers that not all threads reach and
//! launches without end are failures too. [`Case::expect`] compares what the compiler makes of it, the PTX or any other stage,
//! with a file that stands in the repository.
//!
//! ```
//! # #[cfg(feature = "triton")] {
//! use tilelift::runtime::{Kernel, Program};
//! use tilelift::testing::{self, Case, Failure, Stage, Tolerance};
//!
//! const SOFTPLUS: &str = r#"
//! import triton, triton.language as tl
//!
//! @triton.jit
//! def softplus(x, out, n, BLOCK: tl.constexpr):
//!     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
//!     v = tl.load(x + i, i < n)
//!     tl.store(out + i, tl.log(1 + tl.exp(v)), i < n)
//! "#;
//!
//! fn case() -> Result<Case, Failure> {
//!     let device = testing::emulator();
//!     let program = Program::python("softplus.py", SOFTPLUS)?;
//!     let kernel = device.kernel(&program, "softplus")?.constant("BLOCK", 64)?;
//!     let x: Vec<f32> = (0..100).map(|i| i as f32 / 10.0).collect();
//!     Ok(Case::new(&kernel, 2)
//!         .input(&x)
//!         .output(100, |i| x[i].exp().ln_1p())
//!         .within(Tolerance::relative(1e-6))
//!         .value(100))
//! }
//!
//! // #[test]
//! fn softplus_is_right() -> Result<(), Failure> {
//!     case()?.check()
//! }
//!
//! // #[test]
//! fn softplus_has_the_code_that_it_had() -> Result<(), Failure> {
//!     case()?.expect(Stage::Stats, "tests/expected/softplus.stats")
//! }
//!
//! softplus_is_right()?;
//! # let folder = std::env::temp_dir().join(format!("tilelift-doc-{}", std::process::id()));
//! # let missing = case()?.expect(Stage::Stats, folder.join("softplus.stats")).expect_err("there is no such file");
//! # assert!(missing.to_string().contains("TILELIFT_BLESS=1 writes it"), "{missing}");
//! # let _ = softplus_has_the_code_that_it_had;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With `TILELIFT_BLESS=1` in the environment [`Case::expect`] writes the file in place of comparing with it:
//! `TILELIFT_BLESS=1 cargo test`, and `git diff` shows what became of the code. A failure shows the lines that differ.
//!
//! Cases by the thousand, with sizes and data from a seed and the compiler deciding otherwise than it would: `tilelift::fuzzing`,
//! with the feature `fuzzing`.

mod case;
mod close;
mod difference;
mod failure;

pub use case::Case;
pub use close::Tolerance;
pub use difference::difference;
pub use failure::Failure;

/// What [`Case::expect`] compares with a file.
pub use crate::stages::Stage;

use std::path::Path;

use crate::runtime::{Device, DeviceOptions, environment};
use crate::settings::Target;

/// Has files written in place of being compared with.
const BLESS: &str = "TILELIFT_BLESS";

/// Instructions of a launch after which it is taken for one without end: some minutes.
const STEPS: u64 = 2_000_000_000;

/// An emulator for tests, with every check on, whatever the environment says: of an sm_80, without a cache on disk.
pub fn emulator() -> Device {
    emulator_for(Target::SM_80, 0)
}

/// [`emulator`] for a target. Warps run in an order that `seed` decides: results must not depend on it, and
/// [`Case::check`] is worth repeating with others where they might.
pub fn emulator_for(target: Target, seed: u64) -> Device {
    let mut options = DeviceOptions::plain();
    options.target = Some(target);
    options.emulator.seed = seed;
    options.emulator.check_races = true;
    options.emulator.check_uninit = true;
    options.emulator.step_limit = STEPS;
    Device::emulator_with(options)
}

/// Compares a text with that of a file, which `TILELIFT_BLESS=1` in the environment has written instead. Where lines end in
/// CR LF they count as ending in LF.
///
/// # Errors
///
/// They differ, and how; the file cannot be read or written.
pub fn expect_file(path: impl AsRef<Path>, text: &str) -> Result<(), Failure> {
    let bless = environment::switch(BLESS).unwrap_or(false);
    compare_file(path.as_ref(), text, bless)
}

fn compare_file(path: &Path, text: &str, bless: bool) -> Result<(), Failure> {
    let failed = |problem: String| Failure::File {
        path: path.display().to_string(),
        problem,
    };
    if bless {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        return folder
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| failed(error.to_string()));
    }
    let stored = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            failed(format!("there is no such file; {BLESS}=1 writes it"))
        }
        _ => failed(error.to_string()),
    })?;
    match difference(&stored.replace("\r\n", "\n"), text) {
        None => Ok(()),
        Some(difference) => Err(Failure::Different {
            path: path.display().to_string(),
            difference,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_and_written() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("deep/er/file.txt");
        let text = "one\ntwo\n";
        let missing = compare_file(&path, text, false).expect_err("it is not there");
        assert!(
            missing.to_string().contains("TILELIFT_BLESS=1"),
            "{missing}"
        );
        assert!(compare_file(&path, text, true).is_ok());
        assert!(compare_file(&path, text, false).is_ok());
        std::fs::write(&path, "one\r\ntwo\r\n").expect("it can be written");
        assert!(compare_file(&path, text, false).is_ok());
        let other = compare_file(&path, "one\n2\n", false).expect_err("they differ");
        let shown = other.to_string();
        assert!(
            shown.contains("-two\n+2") && shown.contains("file.txt"),
            "{shown}"
        );
        // What a failed test prints is the same.
        assert_eq!(format!("{other:?}"), shown);
        assert!(compare_file(folder.path(), text, false).is_err());
        assert!(compare_file(folder.path(), text, true).is_err());
    }
}
