//! Kernels with a launch each, as files that `fuzz/launches.py` executes on a machine with a GPU and without Rust.
//!
//! Of each kernel there are `NAME.ptx`, its description `NAME.json`, the same of a text whose waits give up (`NAME.bounded.ptx`), if
//! it has any, the grid and the arguments `NAME.launch`, and `NAME.bytes`: the
//! buffers before the launch, then what the emulator leaves of those that change, then, if results need only be close, how close for
//! each element as f64.

use std::path::{Path, PathBuf};

use tilelift::compile::CompiledKernel;
use tilelift::metadata;

/// Names the folder to which tests write launches.
pub(crate) const FOLDER: &str = "TILELIFT_LAUNCHES";

/// What waits for boxes.
const WAIT: &str = "mbarrier.try_wait";

/// An argument.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    /// A place in device memory with these bytes, so many behind its begin.
    Buffer(&'a [u8], usize),
    /// A number, by its bits.
    Number(u64),
}

/// A buffer whose elements may differ.
pub(crate) struct Close {
    /// Which of the buffers.
    pub(crate) buffer: usize,
    /// The name of the elements' type.
    pub(crate) element: String,
    /// How much each may differ.
    pub(crate) within: Vec<f64>,
}

/// A launch and what it leaves.
pub(crate) struct Launched<'a> {
    pub(crate) kernel: &'a CompiledKernel,
    /// The same with assertions, where waits give up.
    pub(crate) bounded: Option<&'a CompiledKernel>,
    pub(crate) grid: [u32; 3],
    pub(crate) args: Vec<Given<'a>>,
    /// The buffers afterwards.
    pub(crate) after: Vec<&'a [u8]>,
    pub(crate) close: Option<Close>,
}

impl Launched<'_> {
    /// Writes the files of the launch; gives the bytes written.
    ///
    /// # Panics
    ///
    /// If they cannot be written.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> usize {
        let mut bytes = Vec::new();
        let mut changed = Vec::new();
        let mut args = Vec::new();
        let mut after = self.after.iter();
        for arg in &self.args {
            let (content, at) = match *arg {
                Given::Buffer(content, at) => (content, at),
                Given::Number(bits) => {
                    args.push(format!("{{\"bits\": {bits}}}"));
                    continue;
                }
            };
            let left = *after.next().expect("each buffer is left");
            bytes.extend_from_slice(content);
            let is_kept = left == content;
            if !is_kept {
                changed.extend_from_slice(left);
            }
            let length = content.len();
            args.push(format!(
                "{{\"bytes\": {length}, \"at\": {at}, \"kept\": {is_kept}}}"
            ));
        }
        bytes.append(&mut changed);
        let close = self.close.as_ref().map_or_else(String::new, |close| {
            close
                .within
                .iter()
                .for_each(|distance| bytes.extend(distance.to_le_bytes()));
            let (buffer, element) = (close.buffer, &close.element);
            format!(", \"close\": {{\"buffer\": {buffer}, \"element\": \"{element}\"}}")
        });
        let launch = format!(
            "{{\"grid\": {:?}, \"args\": [{}]{close}}}",
            self.grid,
            args.join(", ")
        );
        let json = |kernel: &CompiledKernel| metadata::json(&kernel.meta, 1, &[], None);
        let mut files = vec![
            ("ptx", self.kernel.ptx.clone().into_bytes()),
            ("json", json(self.kernel).into_bytes()),
            ("launch", launch.into_bytes()),
            ("bytes", bytes),
        ];
        if let Some(bounded) = self.bounded.filter(|bounded| bounded.ptx.contains(WAIT)) {
            files.push(("bounded.ptx", bounded.ptx.clone().into_bytes()));
            files.push(("bounded.json", json(bounded).into_bytes()));
        }
        for (extension, content) in &files {
            let path = folder.join(format!("{name}.{extension}"));
            std::fs::write(&path, content).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        }
        files.iter().map(|(_, content)| content.len()).sum()
    }
}

/// Where launches are written: the folder that [`FOLDER`] names, or else one of the test of that name, which is removed in the end.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// Whether somebody asked for the launches.
    pub(crate) is_wanted: bool,
}

impl Folder {
    /// # Panics
    ///
    /// If there can be no such folder.
    pub(crate) fn new(test: &str) -> Folder {
        let wanted = std::env::var_os(FOLDER).map(PathBuf::from);
        let is_wanted = wanted.is_some();
        let path = wanted.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("tilelift-{test}-{}", std::process::id()))
        });
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Folder { path, is_wanted }
    }

    /// Asserts that there are so many launches, each with all its files.
    pub(crate) fn check(&self, launches: usize) {
        assert!(0 < launches, "no launch was written");
        let entries = std::fs::read_dir(&self.path).expect("it was made");
        let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let ends = |name: &std::ffi::OsStr, extension: &str| {
            let name = name.to_string_lossy();
            let rest = name.split_once('.');
            rest.is_some_and(|(_, rest)| rest == extension)
        };
        let of = |extension: &str| {
            let name = |path: &&PathBuf| path.file_name().is_some_and(|name| ends(name, extension));
            files.iter().filter(name).count()
        };
        for extension in ["ptx", "json", "launch", "bytes"] {
            let found = of(extension);
            // Who asks for launches may add them to others.
            let is_right = found == launches || self.is_wanted && launches <= found;
            assert!(
                is_right,
                "{found} files .{extension} of {launches} launches"
            );
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_wanted {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
