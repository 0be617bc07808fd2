//! Dump and override: looking at what was made, and trying something else.
//!
//! With a folder to dump to (`TILELIFT_DUMP`), each kernel that is built writes there its IR after every pass, its PTX, and
//! on a GPU its machine code, in files that begin with the kernel's name and a hash of what it was built for. With a folder
//! to override from (`TILELIFT_OVERRIDE`), a file `NAME.ptx` there takes the place of the PTX of every kernel of that
//! name: an edited dump, for instance. Both leave the cache of kernels aside, so that what is seen is what was made.

use std::path::{Path, PathBuf};

use super::error::RuntimeError;
use super::warning::warn;

/// Where to write what is made, and where to take edited PTX from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The folder to write to.
    pub write: Option<PathBuf>,
    /// The folder to take from.
    pub replace: Option<PathBuf>,
}

impl Dump {
    /// What the environment says.
    pub fn from_env() -> Dump {
        let folder = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Dump {
            write: folder("TILELIFT_DUMP"),
            replace: folder("TILELIFT_OVERRIDE"),
        }
    }

    /// Whether kernels are to be made anew.
    pub(crate) fn is_on(&self) -> bool {
        self.write.is_some() || self.replace.is_some()
    }

    /// Writes a file; that it cannot be written is told.
    pub(crate) fn save(&self, name: &str, contents: &[u8]) {
        let Some(folder) = &self.write else {
            return;
        };
        let path = folder.join(name);
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, contents));
        if let Err(error) = written {
            warn(&format!(
                "{}: a dump cannot be written: {error}",
                path.display()
            ));
        }
    }

    /// The PTX that takes the place of a kernel's, if there is any.
    pub(crate) fn replacement(&self, kernel: &str) -> Result<Option<String>, RuntimeError> {
        let Some(folder) = &self.replace else {
            return Ok(None);
        };
        let path = folder.join(Path::new(&file_name(kernel)).with_extension("ptx"));
        if !path.exists() {
            return Ok(None);
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(RuntimeError::File {
                path: path.display().to_string(),
                problem: error.to_string(),
            }),
        }
    }
}

/// A kernel's name as part of a file's.
pub(crate) fn file_name(kernel: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    kernel.chars().take(100).map(plain).collect()
}
