//! Kernels compiled when the application is built, and launched through types of their own.
//!
//! A file of kernels says in comments what they are compiled for:
//!
//! ```python
//! # kernel: add "*fp32:16, *fp32:16, *fp32:16, i32" BLOCK=1024 target=sm_80,sm_90a
//! @triton.jit
//! def add(x, y, out, n, BLOCK: tl.constexpr):
//!     ...
//! ```
//!
//! The build script, with this crate among the build-dependencies, is a line:
//!
//! ```no_run
//! fn main() -> Result<(), tilelift::build::Failure> {
//!     tilelift::build::compile("kernels/add.py")
//! }
//! ```
//!
//! and the application, which needs neither the language nor the command (`default-features = false`), has for each kernel a
//! module with a type and its arguments by name:
//!
//! ```text
//! tilelift::include_kernels!("add");
//!
//! let kernel = add::Add::load(&device)?;
//! let programs = n.div_ceil(add::Add::BLOCK);
//! kernel.launch(&stream, programs, add::Args { x: &x, y: &y, out: &mut out, n: n as i32 })?;
//! ```
//!
//! The compiler of the application checks that arguments are there and of the right types, and that what the kernel writes is
//! borrowed to be written, and its message points to the argument; [`RustModule`] says more. What is known at run time alone, that addresses
//! are the multiples that the signature promises, is checked at the launch.
//!
//! A parameter whose name is a word of Rust has `p_` before it, as in `p_type`. The modules are for the version of this crate that
//! wrote them: the two lines in the manifest, of dependencies and build-dependencies, name one version.
//!
//! # The lines
//!
//! `# kernel: NAME "SIGNATURE" [KEY=VALUE]..`, as many as one likes, also several of one kernel. The signature is that of
//! [`crate::front::signature`]. A key is a constant of the kernel or of the file, `num_warps`, `num_stages`, `num_ctas`,
//! `max_registers`, or one of these:
//!
//! | key | meaning |
//! |---|---|
//! | `target` | what it is compiled for, a list with commas, sm_80 if nothing is said. PTX for a target runs on later devices too; a device gets the latest that it runs |
//! | `as` | the name of its module, if it is to be another than the kernel's |
//! | `lines=True` | profilers show the lines of the file |
//!
//! For targets whose kernels take tensor maps the module has the kernel without them as well, which is launched where the
//! arguments allow none.

use std::fmt;
use std::fmt::Write;
use std::path::Path;

use crate::compile::{self, CompiledKernel};
use crate::front::{self, Constant, Module, Specialization};
use crate::ir::function::TileFunction;
use crate::runtime::{RustModule, name_source};
use crate::settings::{Options, Promote, Target};

/// Why kernels are not compiled. `Debug`, which is what a build script that ends with an `Err` prints, is the readable text.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// In a build script: compiles the kernels of a Python file, for [`include_kernels!`](crate::include_kernels), and has the script
/// run again when the file changes, or one that it imports. A relative path is one in the folder of the crate.
///
/// # Errors
///
/// The file cannot be read, or says of no kernel what it is to be compiled for; a kernel is not accepted, and where.
pub fn compile(path: impl AsRef<Path>) -> Result<(), Failure> {
    let folder = std::env::var_os("OUT_DIR").ok_or_else(|| {
        Failure(
            "there is no OUT_DIR: this is for build scripts; rust_source() gives the text"
                .to_owned(),
        )
    })?;
    compile_into(path.as_ref(), Path::new(&folder))
}

fn compile_into(path: &Path, folder: &Path) -> Result<(), Failure> {
    let shown = path.display();
    println!("cargo::rerun-if-changed={shown}");
    let text = std::fs::read_to_string(path).map_err(|error| {
        let folder = std::env::current_dir().unwrap_or_default();
        Failure(format!(
            "{shown}: error: the file of kernels cannot be read: {error}; it is UTF-8 text, and a relative path is one in {}",
            folder.display()
        ))
    })?;
    let (text, imported) = front::imported_files(path, &text);
    println!("cargo::rerun-if-env-changed=PYTHONPATH");
    for path in imported {
        println!("cargo::rerun-if-changed={path}");
    }
    let source = rust_source(&shown.to_string(), &text)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let target = folder.join(format!("{stem}.kernels.rs"));
    std::fs::write(&target, source).map_err(|error| {
        Failure(format!(
            "{}: error: the module of the kernels of {shown} cannot be written: {error}; cargo makes OUT_DIR, where it goes, \
             before a build script runs, and the script may write there",
            target.display()
        ))
    })
}

/// The Rust text for the kernels of a Python text, which [`compile()`] writes to a file; `name` is for messages. Of files that
/// it imports what stands behind it in the text counts ([`with_imports`](crate::front::with_imports)).
///
/// # Errors
///
/// As [`compile()`].
///
/// ```
/// let text = r#"
/// import triton, triton.language as tl
///
/// ## kernel: twice "*fp32:16, *fp32:16, i32" BLOCK=256
/// @triton.jit
/// def twice(x, out, n, BLOCK: tl.constexpr):
///     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
///     tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)
/// "#;
/// let module = tilelift::build::rust_source("twice.py", text)?;
/// assert!(module.contains("pub const BLOCK: ::core::primitive::u32 = 256;"));
/// assert!(module.contains("::tilelift::runtime::Writable<::core::primitive::f32>"));
/// # Ok::<(), tilelift::build::Failure>(())
/// ```
pub fn rust_source(name: &str, text: &str) -> Result<String, Failure> {
    let module = Module::parse(name, text).map_err(|error| Failure(error.to_string()))?;
    let mut source = String::new();
    let mut names: Vec<String> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let Some(line) = line.trim_start().strip_prefix("# kernel: ") else {
            continue;
        };
        let wrong = |problem: String| {
            Failure(format!(
                "{name}:{}: error: {problem}; such a line reads `# kernel: NAME \"SIGNATURE\" [KEY=VALUE]..`",
                i + 1
            ))
        };
        let request = Request::read(line).map_err(wrong)?;
        let module_name = request.module_name(&module).map_err(wrong)?;
        if names.contains(&module_name) {
            return Err(wrong(format!(
                "there is a module `{module_name}` already: give another name, as in `as={module_name}_2`"
            )));
        }
        let text = request.compile(&module, name).map_err(|Failure(error)| {
            Failure(format!(
                "{name}:{}: error: the kernel that this line asks for is not compiled:\n{error}",
                i + 1
            ))
        })?;
        // Text has a place in memory: writing there does not fail.
        let _ = writeln!(
            source,
            "/// The kernel of this name.\n#[{ALLOW}(dead_code)]\npub mod {module_name} {{\n{text}}}\n"
        );
        names.push(module_name);
    }
    if names.is_empty() {
        return Err(Failure(format!(
            "{name}: error: no line says what a kernel is compiled for; such a line reads \
             `# kernel: NAME \"SIGNATURE\" [KEY=VALUE]..`"
        )));
    }
    Ok(source)
}

/// What the modules do about lints, of which there may or may not be cause.
const ALLOW: &str = "allow";

/// What a line asks for.
struct Request {
    kernel: Option<String>,
    name: Option<String>,
    spec: Specialization,
    targets: Vec<Target>,
    options: Options,
}

/// A kernel for a target, and without tensor maps if it takes some.
struct Version {
    kernel: CompiledKernel,
    plain: Option<CompiledKernel>,
}

impl Request {
    fn read(line: &str) -> Result<Request, String> {
        let mut request = Request {
            kernel: None,
            name: None,
            spec: Specialization::new(Vec::new(), Target::SM_80),
            targets: Vec::new(),
            options: Options::DEFAULT,
        };
        let Request {
            name,
            spec,
            targets,
            options,
            ..
        } = &mut request;
        let mut take = |key: &str, value: &str| {
            match key {
                "target" => {
                    for target in value.split(',') {
                        let target = Target::parse(target).map_err(|error| error.to_string())?;
                        targets.push(target);
                    }
                }
                "as" => *name = Some(value.to_owned()),
                "lines" => {
                    options.line_info = match Constant::parse(value) {
                        Some(Constant::Bool(lines)) => lines,
                        _ => return Err(format!("lines={value}: expected True or False")),
                    };
                }
                "max_registers" => {
                    let bound = value.parse().map_err(|_| {
                        format!("max_registers={value}: expected a number of registers")
                    })?;
                    options.max_registers = Some(bound);
                }
                _ => return Ok(false),
            }
            Ok(true)
        };
        let kernel = front::read_request(line, spec, &mut take)?;
        targets.sort_unstable();
        targets.dedup();
        request.kernel = kernel;
        if request.targets.is_empty() {
            request.targets.push(Target::SM_80);
        }
        Ok(request)
    }

    /// The name of the kernel's module: one that Rust takes.
    fn module_name(&self, module: &Module) -> Result<String, String> {
        let kernels = module.kernels();
        let name = match (&self.name, &self.kernel, &kernels[..]) {
            (Some(name), ..) | (None, Some(name), _) => name.clone(),
            (None, None, [only]) => only.name.clone(),
            _ => return Err("there is not exactly one kernel, and none is named".to_owned()),
        };
        match crate::runtime::rust_name(&name, &[]) == name {
            true => Ok(name),
            false => Err(format!(
                "`{name}` is no name of a module in Rust: give another, as in `as={}`",
                crate::runtime::rust_name(&format!("kernel_{name}"), &[])
            )),
        }
    }

    /// The text of the kernel's module.
    fn compile(&self, module: &Module, file: &str) -> Result<String, Failure> {
        let mut versions: Vec<Version> = Vec::new();
        let mut first: Option<(TileFunction, Vec<(String, String)>)> = None;
        for &target in &self.targets {
            let mut spec = self.spec.clone();
            spec.target = target;
            let lowered = module.lower(self.kernel.as_deref(), &spec);
            let lowered = lowered.map_err(|error| Failure(error.to_string()))?;
            if !lowered.notes.list.is_empty() {
                for line in lowered.notes.to_string().lines() {
                    println!("cargo::warning={line}");
                }
            }
            let made = |options: &Options| {
                let mut made =
                    compile::compile(&lowered.func, target, options).map_err(|error| {
                        let (line, kernel) = (lowered.line, &lowered.func.name);
                        Failure(format!(
                            "{file}:{line}: error: kernel `{kernel}` for {target}: {error}"
                        ))
                    })?;
                if options.line_info {
                    made.ptx = name_source(&made.ptx, file);
                }
                Ok::<_, Failure>(made)
            };
            let kernel = made(&self.options)?;
            let plain = match kernel.meta.maps.is_empty() {
                true => None,
                false => Some(made(&Options {
                    promote: Promote::Never,
                    ..self.options
                })?),
            };
            versions.push(Version { kernel, plain });
            first.get_or_insert((lowered.func, lowered.constants));
        }
        let (Some((func, constants)), [oldest, later @ ..]) = (&first, &versions[..]) else {
            return Ok(String::new());
        };
        let mut text = RustModule::new(&oldest.kernel, func)
            .signature(&self.spec.args)
            .constants(constants);
        if let Some(plain) = &oldest.plain {
            text = text.fallback(plain);
        }
        for version in later {
            text = text.also(&version.kernel);
            if let Some(plain) = &version.plain {
                text = text.fallback(plain);
            }
        }
        Ok(text.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_read_or_written_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("twice.py");
        let error = compile_into(&file, folder.path()).expect_err("there is none");
        assert!(
            error
                .to_string()
                .contains("twice.py: error: the file of kernels cannot be read: "),
            "{error}"
        );
        let text = "import triton, triton.language as tl\n# kernel: twice \"*fp32\"\n@triton.jit\ndef twice(x):\n    tl.store(x, 2 * tl.load(x))\n";
        std::fs::write(&file, text).expect("it can be written");
        // A file is no folder, whoever asks.
        let error = compile_into(&file, &file).expect_err("it is a file");
        assert!(
            error.to_string().contains("twice.py cannot be written: ")
                && error.to_string().contains("twice.kernels.rs: error: "),
            "{error}"
        );
        compile_into(&file, folder.path()).expect("it is right");
        let module = std::fs::read_to_string(folder.path().join("twice.kernels.rs"));
        assert!(module.expect("it is there").contains("pub mod twice {"));
    }
}
