//! From a file name to a kernel with its options, and messages that point into the file.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::args::{KernelArgs, Lang, PromoteArg};
use super::messages::say_remark;
use super::{Failure, Result};
use crate::error::CompileError;
use crate::filetest::run::is_ptx;
use crate::filetest::variants;
use crate::ir::entities::AnyEntity;
use crate::ir::function::TileFunction;
use crate::limits::FILE_BYTES;
use crate::runtime::{Diagnostic, Severity};
use crate::settings::{Asserts, Options, Promote, Target, one_cta, program_warps};
use crate::text::located;
use crate::text::parse::{ParseError, ParsedFile, ParsedFunction, Pos, parse_file};
use crate::text::quote::{listed, quoted};
pub(super) use crate::tile::pipeline_loops::set_stages;
use crate::verify::verify;

/// A text and where it comes from.
pub(super) struct Source {
    /// The file's name for messages.
    pub(super) name: String,
    /// Its contents.
    pub(super) text: String,
}

impl Source {
    /// Reads a file, or standard input for `-`.
    pub(super) fn read(path: &Path) -> Result<Source> {
        let (name, bytes) = Source::read_bytes(path)?;
        Source::of(path, name, bytes)
    }

    /// The text of what was read from a file.
    pub(super) fn of(path: &Path, name: String, bytes: Vec<u8>) -> Result<Source> {
        match String::from_utf8(bytes) {
            Ok(text) if is_ptx_file(path) || is_ptx(&text) => {
                let message = "this is PTX, which is written and not read, but by `tilelift run`; give a .tir or a .py file";
                Err(Failure::of_file(&name, None, message))
            }
            Ok(text) => Ok(Source { name, text }),
            Err(error) => {
                let offset = error.utf8_error().valid_up_to();
                let before = &error.as_bytes()[..offset];
                let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
                let byte = error.as_bytes()[offset];
                let message = format!("byte {offset}, {byte:#04x}, is no UTF-8");
                Err(Failure::of_file(&name, u32::try_from(line).ok(), &message))
            }
        }
    }

    /// The name and the bytes of a file, or of standard input for `-`; no more is read than any language takes.
    pub(super) fn read_bytes(path: &Path) -> Result<(String, Vec<u8>)> {
        let mut bytes = Vec::new();
        let mut fill = |from: &mut dyn Read| from.take(FILE_BYTES + 1).read_to_end(&mut bytes);
        let (name, read) = if path == Path::new("-") {
            ("<stdin>".to_owned(), fill(&mut std::io::stdin()))
        } else {
            let file = std::fs::File::open(path);
            let read = file.and_then(|mut file| fill(&mut file));
            (path.display().to_string(), read)
        };
        if bytes.len() as u64 > FILE_BYTES {
            let message = format!("the text has more than {FILE_BYTES} bytes");
            return Err(Failure::of_file(&name, None, &message));
        }
        let bytes = read.map(|_| bytes);
        match bytes {
            Ok(bytes) => Ok((name, bytes)),
            Err(error) => Err(Failure::Io {
                path: PathBuf::from(name),
                error,
            }),
        }
    }

    /// A message that points at a place of the text. Column 0 points at the whole line.
    pub(super) fn message(&self, pos: Pos, code: &str, message: &str) -> String {
        located::message(&self.name, &self.text, pos, code, message)
    }

    /// The text, as the first of its `; with:` lines makes it.
    fn first_variant(&self, as_json: bool) -> Result<Cow<'_, str>> {
        let variants = variants(&self.text)
            .map_err(|failure| Failure::Input(failure.show(&self.name, &self.text)))?;
        let count = variants.len();
        let first = variants.into_iter().next();
        if let Some(first) = &first
            && count > 1
        {
            let message = format!("taken with {}, the first of {count}", first.label);
            let remark = Diagnostic {
                severity: Severity::Note,
                ..Diagnostic::error(&self.name, "", message)
            };
            say_remark(&remark, as_json);
        }
        Ok(first.map_or(Cow::Borrowed(&self.text), |first| first.text))
    }

    fn parse_errors(&self, errors: &[ParseError]) -> Failure {
        let mistakes = errors.iter();
        self.mistakes(mistakes.map(|e| (e.pos, e.code.name(), e.message.as_str())))
    }
}

/// Whether a file's name is that of PTX.
pub(super) fn is_ptx_file(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ptx")
}

/// A kernel ready to be compiled.
pub(super) struct Kernel {
    pub(super) source: Source,
    pub(super) func: TileFunction,
    /// Where its name stands.
    pub(super) place: Pos,
    pub(super) target: Target,
    pub(super) options: Options,
    /// Whether lines of the kernel's operations are lines of the source.
    pub(super) has_lines: bool,
    /// Parameters of the source that have become constants, with their values.
    pub(super) constants: Vec<(String, String)>,
    /// The signature that it was made for; empty of a function of the IR.
    #[cfg(feature = "triton")]
    pub(super) signature: Vec<crate::front::ArgSpec>,
}

impl Kernel {
    /// What a command line asks for.
    pub(super) fn load(args: &KernelArgs) -> Result<Kernel> {
        let target = target(args.how.target.as_deref())?;
        if check_usage(args)? == Lang::Py {
            return Kernel::load_python(args, target);
        }
        let source = Source::read(&args.file)?;
        let text = source.first_variant(args.json)?;
        let file = parse_file(&text).map_err(|errors| source.parse_errors(&errors))?;
        let parsed = pick(&source, file, args.how.name.as_deref())?;
        let place = parsed.lines.pos(AnyEntity::Function);
        let Some(func) = parsed.func.as_tile() else {
            let message = "a `thread` is what a kernel becomes; compile the `kernel`";
            return Err(source.mistake(place, "", message));
        };
        let mut func = func.clone();
        if let Some(num_warps) = args.how.num_warps {
            if !num_warps.is_power_of_two() || num_warps > 32 {
                let message =
                    format!("-w {num_warps}: the number of warps is 1, 2, 4, 8, 16 or 32");
                return Err(Failure::Usage(message));
            }
            func.set_num_warps(num_warps);
        }
        if args.how.num_ctas != 1 {
            let warps = program_warps(func.num_warps(), args.how.num_ctas)
                .map_err(|problem| Failure::Usage(format!("--num-ctas: {problem}")))?;
            func.set_num_warps(warps);
            let remark = Diagnostic {
                severity: Severity::Warning,
                ..source.diagnostic(place, "", &one_cta(args.how.num_ctas))
            };
            say_remark(&remark, args.json);
        }
        if let Some(stages) = args.how.num_stages {
            set_stages(&mut func, stages);
        }
        if let Err(errors) = verify(&func) {
            let places = errors.0.iter().map(|e| {
                let place = parsed.lines.pos(e.entity);
                (place, e.rule.code(), e.message.as_str())
            });
            return Err(source.mistakes(places));
        }
        Ok(Kernel {
            source,
            func,
            place,
            target,
            options: options(args),
            has_lines: false,
            constants: Vec::new(),
            #[cfg(feature = "triton")]
            signature: Vec::new(),
        })
    }

    /// Why the kernel cannot be compiled, at its place.
    pub(super) fn refused(&self, error: &CompileError) -> Failure {
        let place = match error.line() {
            Some(line) if self.has_lines => Pos { line, column: 0 },
            _ => self.place,
        };
        self.source.mistake(place, "", &error.to_string())
    }
}

/// How the command line wants a kernel compiled.
pub(super) fn options(args: &KernelArgs) -> Options {
    Options {
        fp_fusion: !args.how.no_fp_fusion,
        max_registers: args.how.maxnreg,
        line_info: args.how.line_info,
        asserts: if args.how.debug {
            Asserts::Report
        } else {
            Asserts::Off
        },
        promote: match args.how.promote {
            PromoteArg::Auto => Promote::Auto,
            PromoteArg::Never => Promote::Never,
        },
        roles: args.how.roles.into(),
        persistent: args.how.persistent.into(),
        fixed_warps: args.how.fixed_warps,
        ..Options::DEFAULT
    }
}

/// The language of the input; an error for options that do not belong to it.
pub(super) fn check_usage(args: &KernelArgs) -> Result<Lang> {
    let is_py = args.file.extension().is_some_and(|ext| ext == "py");
    let lang = args
        .how
        .lang
        .unwrap_or(if is_py { Lang::Py } else { Lang::Tir });
    let problem = match lang {
        Lang::Py => return Ok(lang),
        Lang::Tir if args.how.signature.is_some() => {
            "-s is for .py files; a .tir file states the types of its parameters"
        }
        Lang::Tir if !args.how.constants.is_empty() => {
            "-c is for .py files; a .tir file has no names to give values to"
        }
        Lang::Tir if args.how.no_sanitize_overflow => {
            "--no-sanitize-overflow is for .py files; a .tir file states the checks it wants"
        }
        Lang::Tir => return Ok(lang),
    };
    Err(Failure::Usage(problem.to_owned()))
}

/// The kernel asked for, or the only one.
fn pick(source: &Source, file: ParsedFile, name: Option<&str>) -> Result<ParsedFunction> {
    let names = listed(file.functions.iter().map(|f| f.func.name()));
    let count = file.functions.len();
    let mut functions = file.functions.into_iter();
    let found = match name {
        Some(name) => functions.find(|f| f.func.name() == name),
        None if count <= 1 => functions.next(),
        None => {
            let name = &source.name;
            let message = format!("{name} has several kernels ({names}); choose one with -n");
            return Err(Failure::Usage(message));
        }
    };
    found.ok_or_else(|| {
        let message = match name {
            Some(name) if count == 0 => {
                format!("there is no kernel `{}`, and no other in it", quoted(name))
            }
            Some(name) => format!("there is no kernel `{}`; there is {names}", quoted(name)),
            None => "there is no kernel in it".to_owned(),
        };
        Failure::of_file(&source.name, None, &message)
    })
}

/// The target of this name, or the one of the machine.
pub(super) fn target(name: Option<&str>) -> Result<Target> {
    match name {
        Some(name) => Target::parse(name).map_err(|e| Failure::Usage(e.to_string())),
        None => Ok(present_target().unwrap_or(Target::SM_80)),
    }
}

/// The target of the GPU that is present.
#[cfg(feature = "cuda")]
fn present_target() -> Option<Target> {
    let device = crate::driver::Device::get(0).ok()?;
    Target::for_device(device.capability.major, device.capability.minor)
}

/// Without the driver layer there is no GPU.
#[cfg(not(feature = "cuda"))]
fn present_target() -> Option<Target> {
    None
}
