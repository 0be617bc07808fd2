//! Programs: texts and functions that hold kernels.

use std::sync::Arc;

use crate::ir::function::{ParamHints, TileFunction};
use crate::ir::types::Elem;
use crate::settings::{Promote, Target, program_warps};
use crate::text::parse::parse_file;
use crate::tile::pipeline_loops::set_stages;
use crate::verify::verify;

#[cfg(feature = "triton")]
use crate::front;

use crate::runtime::api::argument::Arg;
use crate::runtime::api::constant::Constant;
use crate::runtime::api::device::Device;
use crate::runtime::api::diagnostic::SourceError;
use crate::runtime::api::dtype::DType;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel_options::KernelOptions;
use crate::runtime::build::ahead::{self, Compiled};
#[cfg(feature = "triton")]
use crate::runtime::build::python;
use crate::runtime::build::stored::Stored;
use crate::runtime::specialize::arg_tree::ArgTree;
use crate::runtime::specialize::class::{Class, Specialize};
use crate::runtime::specialize::interned_kernels::InternedKernels;

/// The Triton language in a manifest.
pub(in crate::runtime) const PYTHON: &str = "python";
/// The text form of the IR in a manifest.
pub(in crate::runtime) const TIR: &str = "tir";

/// A text in the Triton language, a text of the IR, or a function built in Rust. Clones are the same program; what was
/// compiled for one is there for all.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) source: Arc<ProgramSource>,
    pub(crate) setups: Arc<InternedKernels>,
}

/// What a program is made of.
#[derive(Debug)]
pub(crate) struct ProgramSource {
    /// Its name for messages.
    pub(crate) name: String,
    /// Its text, which with the compiler's build decides what its kernels are.
    pub(crate) text: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    #[cfg(feature = "triton")]
    Python(front::Module),
    Tile(Vec<TileFunction>),
    Compiled(Box<Ahead>),
}

/// A kernel that was compiled before.
#[derive(Debug)]
struct Ahead {
    code: AheadCode,
    params: Vec<Param>,
    /// The one without tensor maps, of the same parameters.
    plain: Option<AheadCode>,
}

#[derive(Debug)]
struct AheadCode {
    stored: Stored,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "it runs on GPUs"))]
    cubin: Option<&'static [u8]>,
}

impl Ahead {
    /// The code of a kernel that is set up so.
    fn code(&self, options: &KernelOptions) -> &AheadCode {
        match (&self.plain, options.promote) {
            (Some(plain), Promote::Never) => plain,
            _ => &self.code,
        }
    }
}

/// A parameter of a kernel as a launch sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) name: String,
    /// It takes a constant and no argument.
    pub(crate) constexpr: bool,
    /// It may be left out.
    pub(crate) default: bool,
    /// What of its value variants are made for.
    pub(crate) specialize: Specialize,
    /// Every argument is a multiple of it.
    pub(crate) divisible: u32,
    /// Its type, where the program states it.
    pub(crate) elem: Option<Elem>,
    /// Whether the program states that its integers have no sign.
    pub(crate) unsigned: bool,
    /// What every number becomes, as an annotation says.
    pub(crate) pinned: Option<DType>,
}

/// A kernel of the tile IR, made from a program.
pub(crate) struct LoweredProgram {
    pub(crate) func: TileFunction,
    /// Parameters that have become constants, with their values.
    pub(crate) constants: Vec<(String, String)>,
}

impl Program {
    /// A text in the Triton language: that of a Python file. `name` is for messages. Functions of other files that it imports
    /// are found where these stand behind it, each after a line that names it:
    ///
    /// ```
    /// use tilelift::runtime::Program;
    ///
    /// let text = "\
    /// import triton, triton.language as tl
    /// from .special import square
    ///
    /// @triton.jit
    /// def norm(x, out, N: tl.constexpr):
    ///     v = tl.load(x + tl.arange(0, N))
    ///     tl.store(out, tl.sum(square(v), 0))
    /// #--- special.py
    /// import triton
    ///
    /// @triton.jit
    /// def square(x):
    ///     return x * x
    /// ";
    /// let program = Program::python("norm.py", text)?;
    /// assert_eq!(program.kernels(), ["norm"]);
    /// # Ok::<(), tilelift::runtime::RuntimeError>(())
    /// ```
    ///
    /// [`Program::python_file`] makes such a text of files.
    ///
    /// # Errors
    ///
    /// The text is no Python; the error shows where.
    #[cfg(feature = "triton")]
    pub fn python(name: &str, text: &str) -> Result<Program, RuntimeError> {
        let module = front::Module::parse(name, text);
        let module = module.map_err(python::source_error)?;
        Ok(Program::with(name, text.to_owned(), Form::Python(module)))
    }

    /// A Python file, with the files that it imports of which its kernels use something
    /// ([`with_imports`](crate::front::with_imports)).
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no Python; the error shows where.
    #[cfg(feature = "triton")]
    pub fn python_file(path: impl AsRef<std::path::Path>) -> Result<Program, RuntimeError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| SourceError::unread(&name, &error.to_string()))?;
        Program::python(&name, &front::with_imports(path, &text))
    }

    /// A text of the IR ([`crate::text`]). `name` is for messages.
    ///
    /// # Errors
    ///
    /// The text cannot be read, or its kernels break rules of the IR.
    pub fn tir(name: &str, text: &str) -> Result<Program, RuntimeError> {
        let file = parse_file(text).map_err(|errors| SourceError::of_text(name, &errors))?;
        let mut tile: Vec<TileFunction> = Vec::new();
        for parsed in &file.functions {
            if let Some(func) = parsed.func.as_tile() {
                let lines = Some(&parsed.lines);
                verify(func).map_err(|errors| SourceError::of_function(name, &errors, lines))?;
                tile.push(func.clone());
            }
        }
        Ok(Program::with(name, text.to_owned(), Form::Tile(tile)))
    }

    /// A function built in Rust.
    ///
    /// # Errors
    ///
    /// It breaks rules of the IR.
    pub fn function(func: TileFunction) -> Result<Program, RuntimeError> {
        verify(&func).map_err(|errors| SourceError::of_function(&func.name, &errors, None))?;
        let (name, text) = (func.name.clone(), func.to_string());
        Ok(Program::with(&name, text, Form::Tile(vec![func])))
    }

    /// A kernel that was compiled before ([`rust_module`](crate::runtime::rust_module)).
    ///
    /// # Errors
    ///
    /// The description names a target or a format that there is none of.
    pub fn compiled(compiled: &Compiled) -> Result<Program, RuntimeError> {
        let (stored, params) = ahead::unpack(compiled)?;
        let code = |stored, compiled: &Compiled| AheadCode {
            stored,
            cubin: compiled.cubin,
        };
        let plain = match compiled.fallback {
            Some(plain) => Some(code(ahead::unpack_fallback(compiled, plain)?, plain)),
            None => None,
        };
        let ahead = Ahead {
            code: code(stored, compiled),
            params,
            plain,
        };
        let form = Form::Compiled(Box::new(ahead));
        Ok(Program::with(compiled.name, compiled.ptx.to_owned(), form))
    }

    /// [`Program::compiled`] of the latest of several targets that a device runs.
    ///
    /// # Errors
    ///
    /// It runs none of them; those of [`Program::compiled`].
    pub fn compiled_for(device: &Device, list: &[Compiled]) -> Result<Program, RuntimeError> {
        Program::compiled(ahead::best(device, list)?)
    }

    fn with(name: &str, text: String, form: Form) -> Program {
        let source = ProgramSource {
            name: name.to_owned(),
            text,
            form,
        };
        Program {
            source: Arc::new(source),
            setups: Arc::default(),
        }
    }

    /// Its name for messages.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// A kernel's name, and what its decorators say about tuning.
    #[cfg(feature = "triton")]
    pub(crate) fn tuning(
        &self,
        kernel: Option<&str>,
    ) -> Result<(String, front::Tuning), RuntimeError> {
        let name = self.source.pick(kernel)?;
        let Form::Python(module) = &self.source.form else {
            return Ok((name, front::Tuning::default()));
        };
        let tuning = module.tuning(Some(&name));
        let tuning = tuning.map_err(python::source_error)?;
        Ok((name, tuning))
    }

    /// Names of a kernel's key: those of parameters, and the others.
    #[cfg(feature = "triton")]
    pub(crate) fn split_key(&self, kernel: &str, names: &[String]) -> (Vec<String>, Vec<String>) {
        let params = self.source.params(kernel);
        let is_known = |name: &&String| params.iter().any(|param| param.name == **name);
        names.iter().cloned().partition(|name| is_known(&name))
    }

    /// The names of its kernels, in order.
    pub fn kernels(&self) -> Vec<String> {
        self.source.kernels()
    }
}

impl ProgramSource {
    fn kernels(&self) -> Vec<String> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(module) => module.kernels().into_iter().map(|k| k.name).collect(),
            Form::Tile(functions) => functions.iter().map(|f| f.name.clone()).collect(),
            Form::Compiled(ahead) => vec![ahead.code.stored.meta.name.clone()],
        }
    }

    /// The kernel of this name, or the only one.
    pub(crate) fn pick(&self, name: Option<&str>) -> Result<String, RuntimeError> {
        let known = self.kernels();
        match name {
            Some(name) if known.iter().any(|k| k == name) => Ok(name.to_owned()),
            None if known.len() == 1 => Ok(known[0].clone()),
            _ => Err(RuntimeError::NoKernel {
                name: name.map(str::to_owned),
                known,
            }),
        }
    }

    /// The machine code of a kernel that was compiled before, if it has some that a device of this compute capability
    /// runs.
    #[cfg(feature = "cuda")]
    pub(crate) fn machine_code(
        &self,
        options: &KernelOptions,
        major: u32,
        minor: u32,
    ) -> Option<&'static [u8]> {
        let Form::Compiled(ahead) = &self.form else {
            return None;
        };
        let code = ahead.code(options);
        // Later devices of the same generation run it, and no others.
        let target = code.stored.meta.target;
        let fits = target.runs_on(major, minor) && target.sm / 10 == major;
        code.cubin.filter(|_| fits)
    }

    /// Whether lines of operations are lines of the text.
    pub(crate) fn has_lines(&self) -> bool {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(_) => true,
            Form::Tile(_) | Form::Compiled(_) => false,
        }
    }

    /// What its text is written in, for manifests; none of a kernel that was compiled before.
    pub(in crate::runtime) fn language(&self) -> Option<&'static str> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(_) => Some(PYTHON),
            Form::Tile(_) => Some(TIR),
            Form::Compiled(_) => None,
        }
    }

    /// The name of the file that lines of operations are lines of.
    pub(crate) fn file(&self) -> Option<&str> {
        self.has_lines().then_some(&*self.name)
    }

    /// The constants that a kernel's heuristics give for these arguments.
    #[cfg_attr(
        not(feature = "triton"),
        expect(unused_variables, reason = "only the language has heuristics")
    )]
    pub(crate) fn heuristics(
        &self,
        kernel: &str,
        options: &KernelOptions,
        args: &[(&str, &Arg<'_>)],
    ) -> Result<Vec<(String, Constant)>, RuntimeError> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(module) => python::heuristics(module, kernel, options, args),
            Form::Tile(_) | Form::Compiled(_) => Ok(Vec::new()),
        }
    }

    /// A constant that the program gives itself, such as a default, by its text.
    #[cfg_attr(
        not(feature = "triton"),
        expect(unused_variables, reason = "only the language has defaults")
    )]
    pub(crate) fn read_constant(&self, text: &str) -> Option<Constant> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(_) => python::read_constant(text),
            Form::Tile(_) | Form::Compiled(_) => None,
        }
    }

    /// An error for a constant by a name that is no parameter's, and that nothing else in the text has.
    #[cfg_attr(
        not(feature = "triton"),
        expect(unused_variables, reason = "only the language has names")
    )]
    pub(crate) fn check_constant(&self, kernel: &str, name: &str) -> Result<(), RuntimeError> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(module) => {
                let unknown = module.unknown_constant(kernel, name);
                unknown.map_or(Ok(()), |unknown| Err(python::source_error(unknown)))
            }
            // That there are none is told where the kernel is set up.
            Form::Tile(_) | Form::Compiled(_) => Ok(()),
        }
    }

    /// The parameters of a kernel.
    pub(crate) fn params(&self, kernel: &str) -> Vec<Param> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(module) => {
                let infos = module.kernels();
                let info = infos.into_iter().find(|info| info.name == kernel);
                let params = info.map_or_else(Vec::new, |info| info.params);
                let param = |p: front::ParamInfo| Param {
                    name: p.name,
                    constexpr: p.constexpr,
                    default: p.default,
                    specialize: Specialize {
                        // What is of a type stays one also where it is one, as in Triton.
                        value: p.specialize && p.dtype.is_none(),
                        alignment: p.specialize && p.specialize_alignment,
                    },
                    divisible: 1,
                    elem: None,
                    unsigned: false,
                    pinned: p.dtype.and_then(python::dtype),
                };
                params.into_iter().map(param).collect()
            }
            Form::Compiled(ahead) => ahead.params.clone(),
            Form::Tile(functions) => {
                let func = functions.iter().find(|f| f.name == kernel);
                let params = func.map_or_else(Vec::new, |f| {
                    let hints = f.param_hints.iter().zip(&f.param_names);
                    f.params().iter().zip(hints).collect()
                });
                let param = |(&value, (hint, name)): (_, (&ParamHints, &String))| {
                    Param {
                        name: name.clone(),
                        constexpr: false,
                        default: false,
                        // A parameter that is always one is a matter of who built the function.
                        specialize: Specialize {
                            value: false,
                            alignment: true,
                        },
                        divisible: hint.promised().max(1),
                        elem: func.map(|f| f.dfg.ty(value).elem),
                        unsigned: false,
                        pinned: None,
                    }
                };
                params.into_iter().map(param).collect()
            }
        }
    }

    /// Whether it was compiled before.
    pub(crate) fn is_compiled(&self) -> bool {
        matches!(self.form, Form::Compiled(_))
    }

    /// Whether a kernel that was compiled before is there without tensor maps, too.
    pub(crate) fn has_fallback(&self) -> bool {
        matches!(&self.form, Form::Compiled(ahead) if ahead.plain.is_some())
    }

    /// The kernel, if it was compiled before.
    pub(crate) fn compiled(
        &self,
        options: &KernelOptions,
        given: &[(usize, ArgTree)],
    ) -> Option<Result<Stored, RuntimeError>> {
        let Form::Compiled(ahead) = &self.form else {
            return None;
        };
        let (stored, params) = (&ahead.code(options).stored, &ahead.params);
        let check = |(param, given): &(usize, ArgTree)| {
            check_elem(&stored.meta.name, &params[*param], given).map(drop)
        };
        Some(given.iter().try_for_each(check).map(|()| stored.clone()))
    }

    /// Warps that programs of a kernel are asked to have, which a grid may be made of. A kernel that was compiled before tells those it
    /// has.
    pub(crate) fn asked_warps(&self, kernel: &str, options: &KernelOptions) -> u32 {
        let of_kernel = match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(_) => front::DEFAULT_WARPS,
            Form::Tile(functions) => {
                let func = functions.iter().find(|f| f.name == kernel);
                func.map_or(1, TileFunction::num_warps)
            }
            Form::Compiled(ahead) => return ahead.code(options).stored.meta.num_warps,
        };
        options.num_warps.unwrap_or(of_kernel) * options.num_ctas
    }

    /// The kernel for arguments of these classes.
    #[cfg_attr(
        not(feature = "triton"),
        expect(unused_variables, reason = "only the language can ask for the target")
    )]
    pub(crate) fn make(
        &self,
        kernel: &str,
        options: &KernelOptions,
        target: Target,
        params: &[Param],
        given: &[(usize, ArgTree)],
    ) -> Result<LoweredProgram, RuntimeError> {
        match &self.form {
            #[cfg(feature = "triton")]
            Form::Python(module) => python::make(module, kernel, options, target, params, given),
            Form::Compiled(_) => Err(RuntimeError::Internal {
                kernel: kernel.to_owned(),
                message: "it is compiled already".to_owned(),
            }),
            Form::Tile(functions) => {
                let Some(func) = functions.iter().find(|f| f.name == kernel) else {
                    return Err(RuntimeError::NoKernel {
                        name: Some(kernel.to_owned()),
                        known: self.kernels(),
                    });
                };
                let mut func = func.clone();
                for (param, given) in given {
                    let (param, class) = (*param, check_elem(kernel, &params[*param], given)?);
                    let hint = &mut func.param_hints[param];
                    *hint = ParamHints::divisible(hint.promised().max(class.divisor()));
                }
                if let Some(num_warps) = options.num_warps {
                    func.set_num_warps(num_warps);
                }
                let warps = program_warps(func.num_warps(), options.num_ctas);
                func.set_num_warps(warps.map_err(|problem| RuntimeError::Setup {
                    kernel: kernel.to_owned(),
                    problem,
                })?);
                if let Some(stages) = options.num_stages {
                    set_stages(&mut func, stages);
                }
                Ok(LoweredProgram {
                    func,
                    constants: Vec::new(),
                })
            }
        }
    }
}

/// An error unless arguments of a class are what a parameter of the IR takes, whose integers may have a sign or not unless
/// something is said about it.
fn check_elem(kernel: &str, param: &Param, given: &ArgTree) -> Result<Class, RuntimeError> {
    let Some(class) = given.plain() else {
        return Err(RuntimeError::Argument {
            kernel: kernel.to_owned(),
            name: param.name.clone(),
            problem: format!("it is {given}, and the kernel takes one number or address"),
        });
    };
    let fits = match (param.elem, class.dtype()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(Elem::Ptr(pointee, _)), Some(dtype)) => {
            class.is_pointer() && dtype.scalar() == pointee
        }
        (Some(Elem::Num(scalar)), Some(dtype)) => !class.is_pointer() && dtype.scalar() == scalar,
        (Some(Elem::Token | Elem::Map(_)), Some(_)) => false,
    };
    let fits_sign = !param.unsigned || class.dtype().is_none_or(DType::is_unsigned);
    if fits && fits_sign {
        return Ok(class);
    }
    let wanted = match param.elem {
        Some(elem @ (Elem::Ptr(scalar, _) | Elem::Num(scalar))) => {
            let star = if matches!(elem, Elem::Ptr(..)) {
                "*"
            } else {
                ""
            };
            let dtype = DType::of_scalar(scalar, param.unsigned);
            dtype.map_or(String::new(), |dtype| format!("{star}{dtype}"))
        }
        elem => elem.map_or(String::new(), |elem| elem.to_string()),
    };
    Err(RuntimeError::Argument {
        kernel: kernel.to_owned(),
        name: param.name.clone(),
        problem: format!("it is {}, expected {wanted}", class.plain()),
    })
}
