//! Kernels with a launch each, as files that `fuzz/launches.py` executes on a machine with a GPU and without Rust.
//!
//! Of each kernel there are `NAME.ptx`, its description `NAME.json`, the grid and the arguments `NAME.launch`, and `NAME.bytes`: the
//! buffers before the launch, then those that the emulator leaves, then, if results need only be close, how close for each element as f64.

use std::path::{Path, PathBuf};

use tilelift::compile::CompiledKernel;
use tilelift::metadata;

/// Names the folder to which tests write launches.
pub(crate) const FOLDER: &str = "TILELIFT_LAUNCHES";

/// An argument.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    /// Device memory with these bytes.
    Buffer(&'a [u8]),
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
        let mut args = Vec::new();
        for arg in &self.args {
            args.push(match arg {
                Given::Buffer(content) => {
                    bytes.extend_from_slice(content);
                    format!("{{\"bytes\": {}}}", content.len())
                }
                Given::Number(bits) => format!("{{\"bits\": {bits}}}"),
            });
        }
        self.after
            .iter()
            .for_each(|content| bytes.extend_from_slice(content));
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
        let meta = metadata::json(&self.kernel.meta, 1, &[], None);
        let files = [
            ("ptx", self.kernel.ptx.as_bytes()),
            ("json", meta.as_bytes()),
            ("launch", launch.as_bytes()),
            ("bytes", &bytes),
        ];
        for (extension, content) in files {
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
        let of = |extension: &str| {
            let those = files
                .iter()
                .filter(|path| path.extension().is_some_and(|of| of == extension));
            those.count()
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
