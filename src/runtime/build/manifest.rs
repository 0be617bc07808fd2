//! Manifests: kernels that are to be made before anybody launches them, as text.
//!
//! ```text
//! # What a service launches.
//! program 3fb2a1c09d4e python softmax.py
//! | import triton
//! | ..
//! kernel 3fb2a1c09d4e softmax "*fp32:16, *fp32:16, i32:16, i32" BLOCK=1024 num_warps=8 target=sm_90a
//! file attention kernels/attention.py
//! kernel attention forward "*fp16:16, *fp16:16, i32" HEAD=64
//! ```
//!
//! [`LaunchRecord`](crate::runtime::LaunchRecord) writes `program` and `kernel` lines, people `file` and `kernel` lines. [`Manifest`] is the
//! page for users.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::limits::{MANIFEST_BYTES, MANIFEST_KERNELS};
use crate::runtime::api::constant::Constant;
use crate::runtime::api::device::{Device, DeviceOptions};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::Kernel;
use crate::runtime::api::kernel_options::KernelOptions;
use crate::runtime::api::plain_file;
use crate::runtime::api::program::{PYTHON, Program, ProgramSource, TIR};
use crate::runtime::api::report::Timing;
use crate::runtime::build::blueprint::Blueprint;
use crate::runtime::build::build_variant::make_ptx;
use crate::runtime::build::stored::Stored;
use crate::runtime::cache::Origin;
use crate::runtime::specialize::arg_tree::{self, ArgTree};
use crate::runtime::specialize::class_key::Classes;
use crate::runtime::specialize::parse_signature;
use crate::settings::{Policy, Promote, Target};
use crate::text::closest::{closest, did_you_mean};

/// Kernels with what they are compiled for, to be made before they are launched ([`warm`](crate::warm)).
///
/// [`LaunchRecord`](crate::runtime::LaunchRecord) writes what an application made into one, and people write them:
///
/// ```text
/// # A file of kernels, relative to the manifest, by the name `attention`.
/// file attention kernels/attention.py
/// kernel attention forward "*fp16:16, *fp16:16, *fp16:16, i32" HEAD=64 num_warps=8
/// kernel attention forward "*fp16:16, *fp16:16, *fp16:16, i32:16" HEAD=64 num_warps=8 target=sm_90a
/// ```
///
/// A `kernel` line names the file, the kernel, the signature, and `KEY=VALUE` pairs. The signature has an entry for each parameter that
/// takes an argument, as [`Kernel::explain`] and [`Kernel::variants`] print it: a type, `*` before it for an address, `:16`,
/// `:8`, `:4` or `:2` behind it for a multiple, `:1` for the integer 1; `None`, tuples in brackets, `tensordesc<fp16[64, 32]>`. A key is a constant of the
/// kernel or one of these:
///
/// | key | as |
/// |---|---|
/// | `num_warps`, `num_ctas`, `num_stages`, `max_registers` | [`Kernel::warps`], [`Kernel::ctas`], [`Kernel::stages`], [`Kernel::max_registers`] |
/// | `fp_fusion=False`, `lines=True`, `debug=True` | [`Kernel::fp_fusion`], [`Kernel::line_info`], [`Kernel::debug`] |
/// | `promote=never`, `roles=always`, `persistent=never` | [`Kernel::promote`], [`Kernel::roles`], [`Kernel::persistent`] |
/// | `target=sm_90a` | what it is compiled for where whoever warms says nothing |
///
/// `program NAME python FILE` and the lines behind it, each with `| ` before it, are a program within the manifest; `tir` in place of
/// `python` is the text form of the IR. Empty lines and those that begin with `#` mean nothing. A kernel that stands there twice, in
/// the same words, is one.
#[derive(Clone, Debug)]
pub struct Manifest {
    entries: Vec<ManifestEntry>,
}

/// A kernel of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct ManifestEntry {
    /// Where it stands.
    pub(crate) place: String,
    program: Program,
    kernel: String,
    given: Vec<ArgTree>,
    /// Keys and values in order.
    settings: Vec<(String, String)>,
    pub(crate) target: Option<Target>,
    /// Why it cannot be made, where that is known already.
    problem: Option<String>,
}

/// What is wrong with a manifest, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The manifest's name.
    pub name: String,
    /// The line, from 1; 0 for the whole.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: error: {}", self.name, self.problem),
            line => write!(f, "{}:{line}: error: {}", self.name, self.problem),
        }
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file, or one that it names, cannot be read; those of [`Manifest::parse`].
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let name = path.display().to_string();
        let text = read_file(path, MANIFEST_BYTES).map_err(|problem| ManifestError {
            name: name.clone(),
            line: 0,
            problem,
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Reader::new(&name, Some(folder), text.len()).read(&text)
    }

    /// Reads a text. It names no files: what strangers wrote opens none. `name` is for messages.
    ///
    /// # Errors
    ///
    /// A line that means nothing, a program that cannot be read, a kernel that cannot be set up so: with the line. Whether kernels
    /// compile is not looked at, and a name that no kernel of the program has is a kernel that cannot be made: the others are
    /// ([`WarmedKernel::problem`](crate::warm::WarmedKernel::problem)).
    pub fn parse(name: &str, text: &str) -> Result<Manifest, ManifestError> {
        Reader::new(name, None, 0).read(text)
    }

    /// How many kernels it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[ManifestEntry] {
        &self.entries
    }
}

/// A kernel of a manifest, as far as PTX.
pub(crate) struct MadeEntry {
    pub(crate) stored: Stored,
    pub(crate) origin: Origin,
    pub(crate) timing: Timing,
    /// Whether lines of the source are kept.
    pub(crate) lines: bool,
}

impl ManifestEntry {
    /// The kernel's name.
    pub(crate) fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Its signature.
    pub(crate) fn signature(&self) -> String {
        let given: Vec<String> = self.given.iter().map(ArgTree::to_string).collect();
        given.join(", ")
    }

    /// Makes it for a device's target, or finds it in the device's cache.
    pub(crate) fn make(&self, device: &Device) -> Result<MadeEntry, String> {
        let (kernel, classes) = self.set_up(device)?;
        let made = make_ptx(&kernel.inner.blueprint, &classes);
        let (stored, origin, timing) = made.map_err(|error| error.to_string())?;
        Ok(MadeEntry {
            stored,
            origin,
            timing,
            lines: kernel.inner.options.line_info,
        })
    }

    /// The kernel on a device, and the classes of what it is given.
    fn set_up(&self, device: &Device) -> Result<(Kernel, Classes), String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let kernel = device.kernel(&self.program, self.kernel.as_str());
        let mut kernel = kernel.map_err(|error| problem(&error))?;
        for (key, value) in &self.settings {
            kernel = set(&kernel, key, value)?;
        }
        let classes = classes(&kernel.inner.blueprint, &self.given)?;
        Ok((kernel, classes))
    }
}

/// An error without what its reader knows already.
fn problem(error: &RuntimeError) -> String {
    match error {
        RuntimeError::Setup { problem, .. } => problem.clone(),
        other => other.to_string(),
    }
}

/// The classes that arguments of such a signature have at a launch.
fn classes(kernel: &Blueprint, given: &[ArgTree]) -> Result<Classes, String> {
    let (least, most) = (kernel.required(), kernel.slots.len());
    if !(least..=most).contains(&given.len()) {
        let names = kernel
            .slots
            .iter()
            .map(|slot| &*kernel.params[slot.param].name);
        let names: Vec<&str> = names.collect();
        return Err(format!(
            "the signature has {} entries, and {most} parameters take arguments: {}",
            given.len(),
            names.join(", ")
        ));
    }
    for (given, slot) in given.iter().zip(&kernel.slots) {
        if let (Some(class), Some(dtype)) = (given.plain(), slot.pinned)
            && class.dtype() != Some(dtype)
        {
            let name = &kernel.params[slot.param].name;
            return Err(format!(
                "`{name}` is {given}, and the kernel takes {dtype} whatever it is given"
            ));
        }
    }
    Ok(arg_tree::written(given.iter().zip(kernel.allowed())))
}

/// A kernel set up otherwise by one key.
fn set(kernel: &Kernel, key: &str, value: &str) -> Result<Kernel, String> {
    let wrong = |wanted: &str| format!("{key}={value}: expected {wanted}");
    let flag = || match value {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(wrong("True or False")),
    };
    let policy = || match value {
        "auto" => Ok(Policy::Auto),
        "always" => Ok(Policy::Always),
        "never" => Ok(Policy::Never),
        _ => Err(wrong("auto, always or never")),
    };
    let number = || {
        value
            .parse::<u16>()
            .map_err(|_| wrong("a whole number from 0 to 65535"))
    };
    let changed = match key {
        "num_warps" => kernel.warps(number()?.into()),
        "num_ctas" => kernel.ctas(number()?.into()),
        "num_stages" => kernel.stages(value.parse().map_err(|_| wrong("1 to 32"))?),
        "max_registers" => kernel.max_registers(number()?),
        "fp_fusion" => kernel.fp_fusion(flag()?),
        "lines" => kernel.line_info(flag()?),
        "debug" => kernel.debug(flag()?),
        "promote" => kernel.promote(match value {
            "auto" => Promote::Auto,
            "never" => Promote::Never,
            _ => return Err(wrong("auto or never")),
        }),
        "roles" => kernel.roles(policy()?),
        "persistent" => kernel.persistent(policy()?),
        _ => {
            let params = kernel.inner.params.iter().map(|param| &*param.name);
            if let Some(meant) = closest(key, KEYS.into_iter().chain(params.clone()))
                && !params.clone().any(|param| param == key)
                && kernel
                    .inner
                    .source
                    .check_constant(&kernel.inner.name, key)
                    .is_err()
            {
                return Err(format!(
                    "`{key}` is no key and no constant of the kernel; {}",
                    did_you_mean(meant)
                ));
            }
            let constant = kernel.inner.source.read_constant(value);
            let wanted =
                "a constant: a number, True, False, None, a quoted text, a type, @FUNCTION";
            kernel.constant(key, constant.ok_or_else(|| wrong(wanted))?)
        }
    };
    changed.map_err(|error| problem(&error))
}

/// Keys that are no constants.
const KEYS: [&str; 11] = [
    "num_warps",
    "num_ctas",
    "num_stages",
    "max_registers",
    "fp_fusion",
    "lines",
    "debug",
    "promote",
    "roles",
    "persistent",
    "target",
];

/// The lines of a program, behind the name by which kernels refer to it; none of one that has no text.
pub(in crate::runtime) fn program_lines(source: &ProgramSource) -> Option<(String, String)> {
    let language = source.language()?;
    let name = &source.name;
    if name.is_empty() || name.contains(['\n', '\r']) || name.trim() != name {
        return None;
    }
    let mut hash = blake3::Hasher::new();
    for part in [language, &source.name, &source.text] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let id = hash.finalize().to_hex()[..12].to_owned();
    let mut lines = format!("program {id} {language} {}\n", source.name);
    for line in source.text.split('\n') {
        lines += "| ";
        lines += line;
        lines.push('\n');
    }
    Some((id, lines))
}

/// The line of a kernel; what cannot be said in one is the error.
pub(in crate::runtime) fn kernel_line(
    program: &str,
    kernel: &Blueprint,
    classes: &Classes,
) -> Result<String, String> {
    let options = &kernel.options;
    if kernel
        .name
        .contains(|c: char| c.is_whitespace() || c == '"')
    {
        return Err("its name".to_owned());
    }
    if options.diversity.is_some() {
        return Err("a seed of the compiler's choices, which is for tests".to_owned());
    }
    let signature = kernel.signature(classes);
    let mut line = format!("kernel {program} {} \"{signature}\"", kernel.name);
    let mut add = |key: &str, value: &dyn fmt::Display| line += &format!(" {key}={value}");
    for (name, value) in &options.constants {
        let shown = value.to_string();
        let read = kernel.source.read_constant(&shown);
        let is_read = read.is_some_and(|read| read.identity() == value.identity());
        let is_plain =
            |name: &str| !name.contains(|c: char| c.is_whitespace() || "=\"".contains(c));
        if !is_read || KEYS.contains(&&**name) || !is_plain(name) {
            return Err(format!("the constant {name}={shown}"));
        }
        add(name, &shown);
    }
    settings(options, &mut add);
    // What the emulator takes where nobody asked for a target is not what a GPU would.
    if kernel.device.has_own_target() {
        add("target", &kernel.device.target());
    }
    line.push('\n');
    Ok(line)
}

/// The keys of what is not as it is where nothing is said; what [`set`] reads.
fn settings(options: &KernelOptions, add: &mut dyn FnMut(&str, &dyn fmt::Display)) {
    let flag = |value: bool| Constant::Bool(value);
    let policy = |policy: Policy| match policy {
        Policy::Auto => "auto",
        Policy::Always => "always",
        Policy::Never => "never",
    };
    if let Some(warps) = options.num_warps {
        add("num_warps", &warps);
    }
    if options.num_ctas != 1 {
        add("num_ctas", &options.num_ctas);
    }
    if let Some(stages) = options.num_stages {
        add("num_stages", &stages);
    }
    if let Some(registers) = options.max_registers {
        add("max_registers", &registers);
    }
    if !options.fp_fusion {
        add("fp_fusion", &flag(false));
    }
    if options.line_info {
        add("lines", &flag(true));
    }
    if options.debug {
        add("debug", &flag(true));
    }
    if options.promote == Promote::Never {
        add("promote", &"never");
    }
    if options.roles != Policy::Auto {
        add("roles", &policy(options.roles));
    }
    if options.persistent != Policy::Auto {
        add("persistent", &policy(options.persistent));
    }
}

/// A manifest that is being read.
struct Reader<'t> {
    name: &'t str,
    /// Where files are; none if there may be none.
    folder: Option<&'t Path>,
    /// What was read so far.
    bytes: usize,
    programs: HashMap<&'t str, Program>,
    /// What kernels are set up for to see whether they can be.
    device: Device,
    entries: Vec<ManifestEntry>,
}

impl<'t> Reader<'t> {
    fn new(name: &'t str, folder: Option<&'t Path>, bytes: usize) -> Reader<'t> {
        Reader {
            name,
            folder,
            bytes,
            programs: HashMap::new(),
            device: Device::emulator_with(DeviceOptions::plain()),
            entries: Vec::new(),
        }
    }

    fn read(mut self, text: &'t str) -> Result<Manifest, ManifestError> {
        let error = |name: &str, line, problem| ManifestError {
            name: name.to_owned(),
            line,
            problem,
        };
        if text.len() > MANIFEST_BYTES {
            let problem = format!("it is longer than {MANIFEST_BYTES} bytes");
            return Err(error(self.name, 0, problem));
        }
        let mut lines = (1..).zip(text.split('\n')).peekable();
        let mut seen = HashSet::new();
        while let Some((number, line)) = lines.next() {
            let line = line.trim();
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let rest = rest.trim_start();
            let done = match word {
                "" => Ok(()),
                _ if word.starts_with('#') => Ok(()),
                "program" => {
                    let mut body: Vec<&str> = Vec::new();
                    while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with('|')) {
                        let line = &line[1..];
                        body.push(line.strip_prefix(' ').unwrap_or(line));
                    }
                    self.program(rest, &body.join("\n"))
                }
                "file" => self.file(rest),
                "kernel" if !seen.insert(rest) => Ok(()),
                "kernel" => self.kernel(number, rest),
                _ if word.starts_with('|') => {
                    Err("a line of a program without its `program` line".to_owned())
                }
                _ => {
                    let shown: String = word.chars().take(40).collect();
                    Err(format!(
                        "`{shown}`: a line begins with program, file, kernel or #"
                    ))
                }
            };
            done.map_err(|problem| error(self.name, number, problem))?;
        }
        Ok(Manifest {
            entries: self.entries,
        })
    }

    /// `NAME LANGUAGE FILE`, and a text.
    fn program(&mut self, words: &'t str, text: &str) -> Result<(), String> {
        let mut parts = words.splitn(3, char::is_whitespace);
        let (Some(id), Some(language), Some(name)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("such a line reads `program NAME python FILE`".to_owned());
        };
        self.add(id, language, name.trim(), text)
    }

    /// `NAME PATH`.
    fn file(&mut self, words: &'t str) -> Result<(), String> {
        let Some((id, path)) = words.split_once(char::is_whitespace) else {
            return Err("such a line reads `file NAME PATH`".to_owned());
        };
        let Some(folder) = self.folder else {
            return Err("this manifest is no file, and names none".to_owned());
        };
        let path: PathBuf = folder.join(path.trim());
        let shown = path.display().to_string();
        let text = read_file(&path, MANIFEST_BYTES.saturating_sub(self.bytes))
            .map_err(|problem| format!("{shown}: {problem}"))?;
        let language = match path.extension().is_some_and(|ending| ending == "tir") {
            true => TIR,
            false => PYTHON,
        };
        #[cfg(feature = "triton")]
        let text = match language {
            PYTHON => crate::front::with_imports(&path, &text),
            _ => text,
        };
        self.bytes += text.len();
        self.add(id, language, &shown, &text)
    }

    fn add(&mut self, id: &'t str, language: &str, name: &str, text: &str) -> Result<(), String> {
        let program = match language {
            TIR => Program::tir(name, text),
            #[cfg(feature = "triton")]
            PYTHON => Program::python(name, text),
            #[cfg(not(feature = "triton"))]
            PYTHON => return Err("Python needs the feature `triton`".to_owned()),
            _ => {
                let shown: String = language.chars().take(40).collect();
                return Err(format!("`{shown}`: a program is in python or tir"));
            }
        };
        let program = program.map_err(|error| format!("the program is not accepted:\n{error}"))?;
        match self.programs.get(id) {
            // Several processes may have recorded it.
            Some(known) if known.source.text == program.source.text => Ok(()),
            Some(_) => Err(format!("there is another program `{id}` already")),
            None => {
                self.programs.insert(id, program);
                Ok(())
            }
        }
    }

    /// `PROGRAM NAME "SIGNATURE" [KEY=VALUE]..`.
    fn kernel(&mut self, line: usize, words: &str) -> Result<(), String> {
        const FORM: &str = "such a line reads `kernel PROGRAM NAME \"SIGNATURE\" [KEY=VALUE]..`";
        if self.entries.len() == MANIFEST_KERNELS {
            return Err(format!("more than {MANIFEST_KERNELS} kernels"));
        }
        let mut parts = words.splitn(3, '"');
        let (Some(names), Some(signature), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(FORM.to_owned());
        };
        let names: Vec<&str> = names.split_whitespace().collect();
        let [id, kernel] = names[..] else {
            return Err(FORM.to_owned());
        };
        let Some(program) = self.programs.get(id) else {
            let shown: String = id.chars().take(40).collect();
            return Err(format!("no line above says what program `{shown}` is"));
        };
        let mut entry = ManifestEntry {
            place: format!("{}:{line}", self.name),
            program: program.clone(),
            kernel: kernel.to_owned(),
            given: parse_signature::parse(signature)?,
            settings: Vec::new(),
            target: None,
            problem: None,
        };
        for word in split(rest)? {
            let Some((key, value)) = word.split_once('=') else {
                return Err(format!("`{word}`: expected KEY=VALUE"));
            };
            if entry.settings.iter().any(|(known, _)| known == key) {
                return Err(format!("`{key}` is given twice"));
            }
            match key {
                "target" if entry.target.is_some() => {
                    return Err("`target` is given twice".to_owned());
                }
                "target" => {
                    let target = Target::parse(value).map_err(|error| error.to_string())?;
                    entry.target = Some(target);
                }
                _ => entry.settings.push((key.to_owned(), value.to_owned())),
            }
        }
        // The program may be another one than it was; its other kernels are as good as before.
        entry.problem = match program.source.pick(Some(kernel)) {
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        if entry.problem.is_none() {
            entry.set_up(&self.device)?;
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Words between blanks that stand in no quotation marks.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut is_quoted = false;
    let is_end = |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && c.is_whitespace()
    };
    let words: Vec<&str> = text.split(is_end).filter(|word| !word.is_empty()).collect();
    match text.matches('"').count() % 2 {
        0 => Ok(words),
        _ => Err("a quotation mark is not closed".to_owned()),
    }
}

/// The text of a plain file.
fn read_file(path: &Path, most: usize) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("it cannot be read: {error}");
    let opened = plain_file::open(path).map_err(cannot)?;
    let (file, _) = opened.ok_or("it cannot be read: it is no plain file")?;
    let mut text = String::new();
    let read = file.take(most as u64 + 1).read_to_string(&mut text);
    if read.map_err(cannot)? > most {
        return Err(format!(
            "a manifest and the files that it names have {MANIFEST_BYTES} bytes at most together"
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
