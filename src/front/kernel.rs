//! Files as modules, and kernels lowered for given arguments.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use ruff_python_ast::StmtFunctionDef;
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::argument::{bind_parameters, unknown_constant};
use super::conditions::{Decided, index_of};
use super::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use super::files::Parts;
use super::import::Import;
use super::imported::{Imported, line_starts};
use super::links::{File, Linker, Surroundings, joined};
use super::lower::{Frame, Lower, Res, Stop};
use super::module::{Definition, Index, decoration, params};
use super::names::{closest, did_you_mean};
use super::signature::{ArgSpec, Constant};
use super::source;
use super::stmt::Flow;
use super::types::DType;
use super::value::Value;
use crate::ir::builder::TileBuilder;
use crate::ir::function::TileFunction;
use crate::settings::{Target, one_cta, program_warps};
use crate::tile::pipeline_loops::set_stages;
use crate::verify::{is_ptx_identifier, verify};

/// A file that has been parsed, with those in the same text that its kernels use something of.
#[derive(Debug)]
pub struct Module {
    name: String,
    text: Arc<str>,
    /// The first is the file itself.
    files: Vec<File>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name.
    pub name: String,
    /// Whether it is a `constexpr`.
    pub constexpr: bool,
    /// Whether it has a value where none is given.
    pub default: bool,
    /// Its annotation as it is written.
    pub annotation: Option<String>,
    /// The type that the annotation gives to a number, whatever the caller has.
    pub dtype: Option<DType>,
    /// Whether a caller should specialise the kernel for its value (divisible by 16, equal to 1).
    pub specialize: bool,
    /// Whether a caller should specialise the kernel for its divisibility by 16.
    pub specialize_alignment: bool,
}

/// A function with `@jit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Line of its name, first is 1.
    pub line: usize,
    /// Its parameters, in order.
    pub params: Vec<ParamInfo>,
    /// Whether it takes named constants (`**META`).
    pub meta: bool,
    /// Calls of `autotune` and `heuristics` among its decorators, as they are written.
    pub tuning: Vec<String>,
}

/// What a kernel is lowered for.
#[derive(Clone, Debug)]
pub struct Specialization {
    /// Arguments by position.
    pub args: Vec<ArgSpec>,
    /// Constants by name: of parameters, of `**META`, of names of the module.
    pub constants: Vec<(String, Constant)>,
    /// Warps of a CTA, a power of two up to 32.
    pub num_warps: u32,
    /// Stages of loops of products that do not state their own, if any.
    pub num_stages: Option<u8>,
    /// CTAs whose warps a program gets, all in one CTA: up to 32 warps together.
    pub num_ctas: u32,
    /// Device assertions are kept.
    pub debug: bool,
    /// With `debug`: sums, differences and products of integers below 64 bits assert that they do not overflow.
    pub sanitize_overflow: bool,
    /// The target, for what kernels ask of it.
    pub target: Target,
}

/// Warps of a program that asks for no number, as in Triton.
pub(crate) const DEFAULT_WARPS: u32 = 4;

impl Specialization {
    /// With arguments, 4 warps and no constants.
    pub fn new(args: Vec<ArgSpec>, target: Target) -> Specialization {
        Specialization {
            args,
            constants: Vec::new(),
            num_warps: DEFAULT_WARPS,
            num_stages: None,
            num_ctas: 1,
            debug: false,
            sanitize_overflow: true,
            target,
        }
    }
}

/// A kernel of the tile IR.
#[derive(Debug)]
pub struct Lowered {
    /// The kernel, verified.
    pub func: TileFunction,
    /// Line of its name, first is 1.
    pub line: u32,
    /// Column of its name in characters, first is 1.
    pub column: u32,
    /// Parameters that have become constants, as texts.
    pub constants: Vec<(String, String)>,
    /// Warnings, and what `static_print` printed.
    pub notes: Diagnostics,
}

impl Module {
    /// Parses a text; `name` is for messages. Other files that it imports stand behind it
    /// ([`with_imports`](super::with_imports)).
    pub fn parse(name: &str, text: &str) -> Result<Module, Diagnostics> {
        span!(DEBUG, "parse", program = name);
        let text: Arc<str> = text.into();
        let parts = Parts::of(&text);
        match source::parse(&text[parts.first.clone()]) {
            Ok(tree) => {
                let path = parts.first_path(name);
                let end = parts.first.end;
                let mut read = |path: &str| {
                    let range = parts.find(path)?.range.clone();
                    Some((text[range.clone()].to_owned(), range.start))
                };
                let mut missing = |folders: &[String], module: &str, _: bool| {
                    let mut paths = folders.iter().map(|folder| joined(folder, module));
                    paths.find(|path| parts.without.contains(&&**path))
                };
                let around = Surroundings {
                    read: &mut read,
                    missing: &mut missing,
                };
                let files = match parts.others.is_empty() {
                    true => vec![File::new(path, 0..end, Ok(tree))],
                    false => Linker::follow(&path, tree, end, &parts.roots, around).0,
                };
                Ok(Module {
                    name: name.to_owned(),
                    text,
                    files,
                })
            }
            Err(list) => Err(Diagnostics {
                name: name.to_owned(),
                text,
                list,
            }),
        }
    }

    /// Parses bytes, which must be UTF-8.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> Result<Module, Diagnostics> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Module::parse(name, text),
            Err(e) => {
                // What is valid before the mistake is enough to locate it.
                let valid = String::from_utf8_lossy(&bytes[..e.valid_up_to()]).into_owned();
                let at = TextSize::try_from(valid.len()).unwrap_or_default();
                let message = "the text is not UTF-8";
                let d = Diagnostic::error(Code::Syntax, TextRange::empty(at), message);
                let list = vec![
                    d.label("the first byte that is none")
                        .help("save the file as UTF-8"),
                ];
                Err(Diagnostics {
                    name: name.to_owned(),
                    text: valid.into(),
                    list,
                })
            }
        }
    }

    fn diagnostics(&self, list: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics {
            name: self.name.clone(),
            text: self.text.clone(),
            list: told_once(list),
        }
    }

    /// The functions with `@jit`, in the order of the file, and behind them those of its classes (`Class.kernel`).
    pub fn kernels(&self) -> Vec<KernelInfo> {
        let index = index_of(self.file(), &[], &IndexMap::new(), Target::SM_80);
        let own = index.jit_functions().map(|f| (f.name.to_string(), f));
        let all = own.chain(index.kernels_of_classes());
        all.map(|(name, f)| KernelInfo {
            name,
            ..self.info(f)
        })
        .collect()
    }

    fn info(&self, f: &StmtFunctionDef) -> KernelInfo {
        let slice = |range: TextRange| self.text[super::diagnostic::bytes(range)].to_owned();
        let decorated = decoration(f);
        let skipped = |option: &str, name: &str, i: usize| {
            decorated.options.iter().any(|(given, value)| {
                *given == option
                    && match value {
                        ruff_python_ast::Expr::List(list) => {
                            list.elts.iter().any(|e| named(e, name, i))
                        }
                        ruff_python_ast::Expr::Tuple(t) => t.elts.iter().any(|e| named(e, name, i)),
                        _ => false,
                    }
            })
        };
        let params = params(f).enumerate().map(|(i, p)| ParamInfo {
            name: p.name.to_owned(),
            constexpr: p.is_constexpr(),
            default: p.default.is_some(),
            annotation: p.annotation.map(|a| slice(a.range())),
            dtype: p.annotation.and_then(super::argument::pinned),
            specialize: !p.is_constexpr() && !skipped("do_not_specialize", p.name, i),
            specialize_alignment: !p.is_constexpr()
                && !skipped("do_not_specialize", p.name, i)
                && !skipped("do_not_specialize_on_alignment", p.name, i),
        });
        let before = &self.text[..usize::from(f.name.range().start())];
        KernelInfo {
            name: f.name.to_string(),
            line: before.bytes().filter(|&b| b == b'\n').count() + 1,
            params: params.collect(),
            meta: f.parameters.kwarg.is_some(),
            tuning: decorated
                .tuning
                .iter()
                .map(|call| slice(call.range()))
                .collect(),
        }
    }

    /// The file itself.
    fn file(&self) -> &File {
        // There is always one.
        &self.files[0]
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Lowers the kernel of this name, or the only one.
    pub fn lower(
        &self,
        kernel: Option<&str>,
        spec: &Specialization,
    ) -> Result<Lowered, Diagnostics> {
        self.with_lower(kernel, spec, |lower, f| {
            let mut folded = Vec::new();
            lower_kernel(lower, f, spec, &mut folded)?;
            if lower.has_errors() {
                return Err(Stop::Reported);
            }
            let mut func = finish(lower, f)?;
            if let Some(stages) = spec.num_stages {
                set_stages(&mut func, stages);
            }
            let name_at = usize::from(f.name.range().start());
            let (line, column) = super::diagnostic::position(&self.text, name_at);
            Ok(Lowered {
                func,
                line: line as u32,
                column: column as u32,
                constants: folded,
                notes: self.diagnostics(std::mem::take(&mut lower.messages)),
            })
        })
    }

    /// What is wrong with a constant of this name for a kernel: nothing in the file asks for it.
    pub(crate) fn unknown_constant(&self, kernel: &str, name: &str) -> Option<Diagnostics> {
        let index = Index::new(self.file(), Decided::default());
        let f = self.pick(&index, Some(kernel)).ok()?;
        let spec = Specialization {
            constants: vec![(name.to_owned(), Constant::None)],
            ..Specialization::new(Vec::new(), Target::SM_80)
        };
        let unknown = unknown_constant(&self.file().tree, &index, f, &spec)?;
        Some(self.diagnostics(vec![unknown]))
    }

    /// Runs something on a kernel with the state that lowering has.
    pub(crate) fn with_lower<T>(
        &self,
        kernel: Option<&str>,
        spec: &Specialization,
        run: impl for<'m> FnOnce(&mut Lower<'m>, &'m StmtFunctionDef) -> Res<T>,
    ) -> Result<T, Diagnostics> {
        let constants: IndexMap<String, Constant> = spec.constants.iter().cloned().collect();
        let imported = Imported::all(&self.files[1..], &self.text, spec.target);
        let index = index_of(self.file(), &imported, &constants, spec.target);
        let f = self
            .pick(&index, kernel)
            .map_err(|d| self.diagnostics(vec![*d]))?;
        if let Some(d) = unknown_constant(&self.file().tree, &index, f, spec) {
            return Err(self.diagnostics(vec![d]));
        }
        let lines: Rc<[u32]> = line_starts(&self.text[..self.file().end], 0).collect();
        let import = Import {
            index: &index,
            constants: &constants,
            target: spec.target,
            line_starts: lines.clone(),
            steps: Cell::default(),
        };
        if let Some(d) = import.refusal(&self.file().tree.body) {
            return Err(self.diagnostics(vec![d]));
        }
        // What does not fit is reported when the kernel is lowered.
        let warps = program_warps(spec.num_warps, spec.num_ctas).unwrap_or(1);
        let builder = TileBuilder::new(ptx_name(f.name.as_str()), warps);
        let mut lower = Lower::new(&index, &constants, spec.target, builder, lines);
        lower.path = &self.file().path;
        lower.imported = &imported;
        let files = Lower::indices(&imported).chain([&index]);
        lower.altered = Rc::new(files.flat_map(Index::alterations).collect());
        lower.debug = spec.debug;
        lower.sanitize_overflow = spec.debug && spec.sanitize_overflow;
        lower.messages.extend(
            index
                .warning(f.name.as_str(), Definition::Function(f))
                .cloned(),
        );
        match run(&mut lower, f) {
            Ok(result) if !lower.has_errors() => return Ok(result),
            Ok(_) => {}
            // What went wrong last is not reported yet.
            Err(stop) => drop(lower.report(stop)),
        }
        if let Some(d) = super::misplaced_argument::misplaced(f, spec, &lower.messages) {
            // Other types that do not fit follow from it.
            lower.messages.retain(|d| d.code != Code::Type);
            lower.messages.insert(0, d);
        }
        Err(self.diagnostics(lower.messages))
    }

    /// That several functions of the host have a kernel of one name.
    fn made_by_several(&self, made: &[&StmtFunctionDef]) -> Diagnostic {
        let line = |f: &&StmtFunctionDef| {
            let at = usize::from(f.name.range().start());
            super::diagnostic::position(&self.text, at).0.to_string()
        };
        let lines: Vec<String> = made.iter().map(line).collect();
        let (last, first) = lines
            .split_last()
            .map_or(("", &[][..]), |(l, f)| (l.as_str(), f));
        let name = made.first().map_or("", |f| f.name.as_str());
        let first = first.join(", ");
        let message = format!("there are several kernels `{name}`, in lines {first} and {last}");
        let at = made
            .last()
            .map_or_else(TextRange::default, |f| f.name.range());
        let d = Diagnostic::error(Code::NoKernel, at, message);
        d.help("give them different names: functions of the host do not tell them apart")
    }

    fn pick<'m>(
        &self,
        index: &Index<'m>,
        kernel: Option<&str>,
    ) -> Result<&'m StmtFunctionDef, Box<Diagnostic>> {
        let all: Vec<&'m StmtFunctionDef> = index.jit_functions().collect();
        let of_classes = index.kernels_of_classes();
        let start = TextRange::empty(TextSize::new(0));
        let names = || {
            let own = all.iter().map(|f| f.name.as_str());
            let others = of_classes.iter().map(|(path, _)| path.as_str());
            own.chain(others).collect::<Vec<_>>()
        };
        // A method by its own name, if there is one of that name.
        let method = |name: &str| {
            let is_it = |(path, f): &&(String, &StmtFunctionDef)| path == name || f.name == *name;
            let mut found = of_classes.iter().filter(is_it);
            let first = found.next()?.1;
            found.next().is_none().then_some(first)
        };
        let found = match kernel {
            Some(name) => {
                let own = all.iter().find(|f| f.name.as_str() == name).copied();
                own.or_else(|| method(name))
            }
            None if all.is_empty() && of_classes.len() == 1 => Some(of_classes[0].1),
            None if all.len() == 1 => all.first().copied(),
            None if all.is_empty() => None,
            None => {
                let message = format!("the file has several kernels: {}", shorten(&names()));
                let d = Diagnostic::error(Code::NoKernel, start, message);
                return Err(Box::new(d.help("choose one with -n")));
            }
        };
        if let Some(several) = found.and_then(|f| index.made_by_several(f)) {
            return Err(Box::new(self.made_by_several(several)));
        }
        found.ok_or_else(|| {
            let d = match kernel {
                Some(name) => {
                    let message = format!("there is no kernel `{name}`");
                    let help = match closest(name, names().into_iter()) {
                        Some(other) => did_you_mean(other),
                        None if names().is_empty() => {
                            "a kernel is a function with @triton.jit".to_owned()
                        }
                        None => format!("there is {}", shorten(&names())),
                    };
                    Diagnostic::error(Code::NoKernel, start, message).help(help)
                }
                None => Diagnostic::error(Code::NoKernel, start, "there is no kernel in the file")
                    .help("a kernel is a function with @triton.jit"),
            };
            Box::new(d)
        })
    }
}

/// The name of a kernel in PTX: its own where that is an identifier there. Other characters stand as `$` with their number,
/// which no name of Python has, so that two kernels never share one.
fn ptx_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '_' => out.push(c),
            c if c.is_ascii_alphanumeric() => out.push(c),
            c => out += &format!("${:x}$", u32::from(c)),
        }
    }
    // `_` alone, and what is taken there.
    if !is_ptx_identifier(&out) {
        out.push('$');
    }
    out
}

/// Whether an entry of `do_not_specialize` means the parameter.
fn named(entry: &ruff_python_ast::Expr, name: &str, index: usize) -> bool {
    match entry {
        ruff_python_ast::Expr::StringLiteral(s) => s.value.to_str() == name,
        ruff_python_ast::Expr::NumberLiteral(n) => match &n.value {
            ruff_python_ast::Number::Int(i) => i.as_usize() == Some(index),
            _ => false,
        },
        _ => false,
    }
}

fn shorten(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().take(10).copied().collect();
    let more = if names.len() > 10 { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn lower_kernel<'m>(
    lower: &mut Lower<'m>,
    f: &'m StmtFunctionDef,
    spec: &Specialization,
    folded: &mut Vec<(String, String)>,
) -> Res<()> {
    lower.enter(f.name.range());
    if !spec.num_warps.is_power_of_two() || spec.num_warps > 32 {
        let message = format!(
            "a kernel has 1, 2, 4, 8, 16 or 32 warps, not {}",
            spec.num_warps
        );
        return Err(lower.error(Code::Argument, message).into());
    }
    if let Err(message) = program_warps(spec.num_warps, spec.num_ctas) {
        return Err(lower.error(Code::Argument, message).into());
    }
    if spec.num_ctas != 1 {
        let d = lower.error(Code::Suspicious, one_cta(spec.num_ctas));
        lower.add(d.with_severity(Severity::Warning));
    }
    let call = f.name.range();
    let frame = Frame::new(lower.index, Some(f), call, false);
    lower.frames.push(frame);
    bind_parameters(lower, f, spec, folded)?;
    match lower.body(&f.body, true)? {
        Flow::Returned(value) if value.is_none() || matches!(value, Value::Poison) => {}
        _ => {
            lower.enter(f.name.range());
            let d = lower.error(
                Code::Return,
                format!("the kernel `{}` returns a value", f.name),
            );
            return Err(d.help("a kernel stores its results to memory").into());
        }
    }
    // What was given up is left out; nobody is to find that out by the results.
    if lower.frame().broken && !lower.has_errors() {
        lower.enter(f.name.range());
        let message = "a statement was given up, and nothing says why";
        let d = lower.error(Code::Internal, message);
        return Err(d.help(OUR_MISTAKE).into());
    }
    lower.b.ret();
    Ok(())
}

/// What to do about a mistake of the compiler.
const OUR_MISTAKE: &str = "this is a mistake of the compiler; please report it with the file";

/// A number of things.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The function, verified. That it does not verify is a mistake of ours, told as such.
fn finish<'m>(lower: &mut Lower<'m>, f: &'m StmtFunctionDef) -> Res<TileFunction> {
    let builder = std::mem::replace(&mut lower.b, TileBuilder::new("", 1));
    let internal = |message: String| {
        let d = Diagnostic::error(Code::Internal, f.name.range(), message);
        Stop::from(d.help(OUR_MISTAKE))
    };
    let func = builder
        .finish()
        .map_err(|errors| internal(format!("the kernel was not built: {errors}")))?;
    verify(&func).map_err(|errors| internal(format!("the kernel is not valid: {errors}")))?;
    Ok(func)
}

/// Of warnings of something suspicious that say the same of a name in several places the first, with the number of the others.
fn told_once(list: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut told: Vec<(Diagnostic, usize)> = Vec::new();
    for d in list {
        let is_same = |(first, _): &&mut (Diagnostic, usize)| {
            let span = first.span.clone();
            let is_warning = d.code == Code::Suspicious && d.severity != Severity::Error;
            let names = d.message.starts_with('`');
            is_warning && names && *first == Diagnostic { span, ..d.clone() }
        };
        match told.iter_mut().find(is_same) {
            Some((_, more)) => *more += 1,
            None => told.push((d, 0)),
        }
    }
    let counted = told.into_iter().map(|(mut d, more)| {
        if more > 0 {
            let gap = if d.label.is_empty() { "" } else { "; " };
            d.label += &format!("{gap}also in {}", count(more, "further place"));
        }
        d
    });
    counted.collect()
}
