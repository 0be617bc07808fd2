//! Ahead of time: kernels that were compiled before, as Rust modules.
//!
//! [`rust_module`] writes a module with the PTX of a kernel and a typed function that launches it; `tilelift compile --emit
//! rust` is the command for it. The program that includes the module needs no compiler for the kernel, and no language:
//!
//! ```text
//! // build.rs, with tilelift among the build-dependencies
//! let module = tilelift::front::Module::parse("add.py", &std::fs::read_to_string("add.py")?)?;
//! let signature = tilelift::front::parse_signature("*fp32:16, *fp32:16, *fp32:16, i32, 1024")?;
//! let target = tilelift::settings::Target::SM_80;
//! let lowered = module.lower(Some("add"), &tilelift::front::Specialization::new(signature, target))?;
//! let kernel = tilelift::compile::compile(&lowered.func, target, &tilelift::settings::Options::DEFAULT)?;
//! let text = tilelift::runtime::rust_module(&kernel, &lowered.func.param_hints);
//! std::fs::write(format!("{}/add.rs", std::env::var("OUT_DIR")?), text)?;
//!
//! // main.rs
//! mod add { include!(concat!(env!("OUT_DIR"), "/add.rs")); }
//! let add = add::Add::load(&device)?;
//! add.launch(&stream, n.div_ceil(1024), &x, &y, &out, n as i32)?;
//! ```

use std::fmt::{self, Write};

use crate::compile::{CompiledKernel, KernelMeta, ParamKind, ParamMeta};
use crate::ir::function::ParamHints;
use crate::ir::recipe::{MAP_BYTES, MapRecipe};
use crate::ir::types::{AddressSpace, Elem, Scalar};
use crate::settings::{PtxVersion, Target};

use super::argument::Specialize;
use super::dump;
use super::error::RuntimeError;
use super::program::Param;
use super::stored::{Stored, decode_sites, encode_sites};

/// A kernel that was compiled before, as the modules of [`rust_module`] state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Name of the PTX entry.
    pub name: &'static str,
    /// The PTX.
    pub ptx: &'static str,
    /// Machine code for the target, if there is some: devices that run it assemble nothing.
    pub cubin: Option<&'static [u8]>,
    /// What it was compiled for, as in `sm_80`.
    pub target: &'static str,
    /// Warps of a program.
    pub num_warps: u32,
    /// Bytes of dynamic shared memory of a program.
    pub shared_bytes: u32,
    /// Registers that the assembler is expected to use.
    pub predicted_registers: u32,
    /// The parameters of the PTX entry, in order.
    pub params: &'static [CompiledParam],
    /// Recipes of the tensor maps that it takes behind these, as [`MapRecipe`] reads them.
    pub maps: &'static [&'static str],
    /// The kernel for arguments that allow no such maps, if it takes some.
    pub fallback: Option<&'static Compiled>,
    /// What it prints and asserts, as the cache keeps it; empty if it does neither.
    pub sites: &'static [u8],
}

/// A parameter of a [`Compiled`] kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledParam {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a pointer.
    pub pointer: bool,
    /// The format of the number, or of what the pointer points to, as in `f32` or `u8`. Of `i8` it is not said whether it has
    /// a sign.
    pub element: &'static str,
    /// Every argument is a multiple of it.
    pub divisible: u32,
}

/// The kernel as the cache would keep it, and its parameters.
pub(super) fn unpack(compiled: &Compiled) -> Result<(Stored, Vec<Param>), RuntimeError> {
    let setup = |problem: String| RuntimeError::Setup {
        kernel: compiled.name.to_owned(),
        problem,
    };
    let target = Target::parse(compiled.target).map_err(|error| setup(error.to_string()))?;
    let Compiled {
        num_warps,
        shared_bytes,
        ..
    } = *compiled;
    if !num_warps.is_power_of_two() || num_warps > 32 {
        return Err(setup(format!(
            "it states {num_warps} warps; 1, 2, 4, 8, 16 or 32 are possible"
        )));
    }
    if shared_bytes > target.shared_limit() {
        let most = target.shared_limit();
        return Err(setup(format!(
            "it states {shared_bytes} bytes of shared memory; {target} has {most}"
        )));
    }
    let (mut metas, mut params) = (Vec::new(), Vec::new());
    for param in compiled.params {
        let digits = param.element.strip_prefix('u');
        let signed = digits.map(|digits| format!("i{digits}"));
        let scalar = Scalar::from_name(signed.as_deref().unwrap_or(param.element))
            .filter(|&scalar| digits.is_none() || scalar != Scalar::I1)
            .ok_or_else(|| setup(format!("`{}` is no format of a number", param.element)))?;
        if !param.divisible.is_power_of_two() {
            let (name, divisible) = (param.name, param.divisible);
            return Err(setup(format!(
                "`{name}` is a multiple of {divisible}; powers of two are possible"
            )));
        }
        let elem = match param.pointer {
            true => Elem::Ptr(scalar, AddressSpace::Global),
            false => Elem::Num(scalar),
        };
        metas.push(ParamMeta {
            name: param.name.to_owned(),
            kind: match param.pointer {
                true => ParamKind::Pointer,
                false => ParamKind::Scalar,
            },
            ty: scalar.name(),
            bytes: elem.bytes(),
        });
        params.push(Param {
            name: param.name.to_owned(),
            constexpr: false,
            default: false,
            specialize: Specialize::NOTHING,
            divisible: param.divisible,
            elem: Some(elem),
            unsigned: digits.is_some(),
            pinned: None,
        });
    }
    let maps: Vec<MapRecipe> = compiled
        .maps
        .iter()
        .map(|text| {
            text.parse()
                .map_err(|error| setup(format!("the recipe `{text}`: {error}")))
        })
        .collect::<Result<_, _>>()?;
    for recipe in &maps {
        recipe
            .check()
            .map_err(|problem| setup(format!("the recipe `{recipe}`: {problem}")))?;
    }
    let bytes = metas.iter().map(|param| param.bytes);
    let bytes: Vec<u32> = bytes.chain(maps.iter().map(|_| MAP_BYTES)).collect();
    dump::check_entry(compiled.ptx, compiled.name, &bytes, 32 * num_warps)
        .map_err(|(line, problem)| setup(format!("line {line} of its PTX: {problem}")))?;
    let meta = KernelMeta {
        name: compiled.name.to_owned(),
        target,
        // The text says it again.
        ptx_version: PtxVersion { major: 0, minor: 0 },
        num_warps: compiled.num_warps,
        shared: compiled.shared_bytes,
        params: metas,
        maps,
        sites: decode_sites(compiled.sites)
            .ok_or_else(|| setup("what it prints cannot be read".to_owned()))?,
    };
    let stored = Stored {
        ptx: compiled.ptx.to_owned(),
        meta,
        predicted_registers: compiled.predicted_registers,
        needed_registers: compiled.predicted_registers,
        constants: Vec::new(),
        replaced: None,
    };
    Ok((stored, params))
}

/// The kernel that is launched in place of another, of the same parameters, where arguments allow no tensor maps.
pub(super) fn unpack_fallback(
    compiled: &Compiled,
    fallback: &Compiled,
) -> Result<Stored, RuntimeError> {
    let problem = if fallback.name != compiled.name || fallback.params != compiled.params {
        "its fallback has another name or other parameters"
    } else if !fallback.maps.is_empty() {
        "its fallback takes tensor maps, too"
    } else {
        return Ok(unpack(fallback)?.0);
    };
    Err(RuntimeError::Setup {
        kernel: compiled.name.to_owned(),
        problem: problem.to_owned(),
    })
}

/// Words that are no names in Rust; the one that this crate does not say either is in two parts.
const KEYWORDS: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    concat!("un", "safe"),
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Names that mean something else where a parameter stands: the patterns of the prelude, and what the module holds.
const PATTERNS: &[&str] = &[
    "Some",
    "None",
    "Ok",
    "Err",
    "COMPILED",
    "PTX",
    "CUBIN",
    "FALLBACK",
    "FALLBACK_PTX",
];

/// A name that Rust takes and that differs from those in use.
fn rust_name(name: &str, used: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(plain).collect();
    // Names of the function itself, and what does not begin as a name does.
    let is_taken = matches!(name.as_str(), "stream" | "grid" | "");
    if is_taken
        || name.starts_with(|c: char| c.is_ascii_digit())
        || KEYWORDS.contains(&name.as_str())
        || PATTERNS.contains(&name.as_str())
    {
        name.insert_str(0, "p_");
    }
    while used.contains(&name) || name.chars().all(|c| c == '_') {
        name.push_str("_2");
    }
    name
}

/// The name of a kernel's type.
fn type_name(kernel: &str) -> String {
    let mut name = String::new();
    for part in rust_name(kernel, &[]).split('_').filter(|p| !p.is_empty()) {
        let (first, rest) = part.split_at(1);
        name += &first.to_ascii_uppercase();
        name += rest;
    }
    let is_taken = name == "Self" || PATTERNS.contains(&name.as_str());
    if is_taken || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "Kernel");
    }
    name
}

/// The type of a number in Rust; none if the language has none.
fn rust_type(element: &str) -> Option<&'static str> {
    Some(match element {
        "i1" => "bool",
        "i8" => "i8",
        "i16" => "i16",
        "i32" => "i32",
        "i64" => "i64",
        "u8" => "u8",
        "u16" => "u16",
        "u32" => "u32",
        "u64" => "u64",
        "f32" => "f32",
        "f64" => "f64",
        _ => return None,
    })
}

/// A Rust module with a kernel and a typed function that launches it. `hints` are those of the kernel's parameters.
/// [`RustModule`] says more.
pub fn rust_module(kernel: &CompiledKernel, hints: &[ParamHints]) -> String {
    RustModule::new(kernel, hints).to_string()
}

/// A Rust module with a kernel and a typed function that launches it; shown, it is the text.
#[derive(Clone, Debug)]
pub struct RustModule<'a> {
    kernel: &'a CompiledKernel,
    hints: &'a [ParamHints],
    /// For each parameter of the PTX entry whether its integers have no sign, as far as that is known.
    unsigned: Vec<bool>,
    cubin: Option<&'a [u8]>,
    fallback: Option<&'a CompiledKernel>,
}

impl<'a> RustModule<'a> {
    /// The module of a kernel. `hints` are those of its parameters.
    pub fn new(kernel: &'a CompiledKernel, hints: &'a [ParamHints]) -> RustModule<'a> {
        RustModule {
            kernel,
            hints,
            unsigned: Vec::new(),
            cubin: None,
            fallback: None,
        }
    }

    /// With the signature that the kernel was made for, which knows which integers have no sign.
    #[cfg(feature = "triton")]
    #[must_use]
    pub fn signature(mut self, args: &[crate::front::Arg]) -> RustModule<'a> {
        fn read(arg: &crate::front::Arg, unsigned: &mut Vec<bool>) {
            use crate::front::{Arg, types::Ty};
            match arg {
                Arg::Typed { ty, .. } => {
                    let (Ty::Num(dtype) | Ty::Ptr { to: dtype, .. }) = *ty;
                    unsigned.push(dtype.to_string().starts_with('u'));
                }
                Arg::Constant(_) => {}
                Arg::Tuple(tuple) => tuple.items.iter().for_each(|item| read(item, unsigned)),
                Arg::Descriptor(descriptor) => {
                    unsigned.push(descriptor.dtype.to_string().starts_with('u'));
                    // Sizes and strides.
                    unsigned.extend(vec![false; 2 * descriptor.block.len() - 1]);
                }
            }
        }
        self.unsigned.clear();
        args.iter().for_each(|arg| read(arg, &mut self.unsigned));
        self
    }

    /// With machine code for the kernel's target, which the driver or `ptxas` made of its PTX.
    #[must_use]
    pub fn cubin(self, cubin: &'a [u8]) -> RustModule<'a> {
        RustModule {
            cubin: Some(cubin),
            ..self
        }
    }

    /// With the kernel that was compiled to take no tensor maps ([`Promote::Never`](crate::settings::Promote::Never)), for
    /// arguments that allow none. A kernel without maps needs no such.
    #[must_use]
    pub fn fallback(self, plain: &'a CompiledKernel) -> RustModule<'a> {
        RustModule {
            fallback: Some(plain),
            ..self
        }
    }

    /// A description, and the name of its machine code.
    fn compiled(
        &self,
        kernel: &CompiledKernel,
        [ptx, cubin, fallback]: [&str; 3],
        table: &str,
    ) -> String {
        let meta = &kernel.meta;
        let maps: Vec<String> = meta.maps.iter().map(|r| format!("\"{r}\"")).collect();
        format!(
            "::tilelift::runtime::Compiled {{
    name: {name:?},
    ptx: {ptx},
    cubin: {cubin},
    target: \"{target}\",
    num_warps: {warps},
    shared_bytes: {shared},
    predicted_registers: {registers},
    params: &[
{table}    ],
    maps: &[{maps}],
    fallback: {fallback},
    sites: b\"{sites}\",
}}",
            name = meta.name,
            target = meta.target,
            warps = meta.num_warps,
            shared = meta.shared,
            registers = kernel.stats.machine.predicted_registers,
            maps = maps.join(", "),
            sites = encode_sites(&meta.sites).escape_ascii(),
        )
    }

    /// The format of a parameter.
    fn element(&self, at: usize, param: &ParamMeta) -> String {
        let is_unsigned = self.unsigned.get(at).is_some_and(|&unsigned| unsigned);
        match param.ty.strip_prefix('i') {
            Some(bits) if is_unsigned && bits != "1" => format!("u{bits}"),
            _ => param.ty.to_owned(),
        }
    }
}

/// A text as Rust takes it raw: the fence is longer than any in it. PTX is ASCII.
fn raw_string(text: &str) -> String {
    let mut fence = "#".to_owned();
    while text.contains(&format!("\"{fence}")) {
        fence.push('#');
    }
    format!("r{fence}\"{text}\"{fence}")
}

/// What the modules do about lints, of which there may or may not be cause.
const ALLOW: &str = "allow";

impl fmt::Display for RustModule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = &self.kernel.meta;
        let type_name = type_name(&meta.name);
        let (mut table, mut params) = (String::new(), String::new());
        // A parameter of the type's name would be a pattern too.
        let mut values = vec![type_name.clone()];
        for (at, param) in meta.params.iter().enumerate() {
            let divisible = self.hints.get(at).map_or(1, |hint| hint.divisible.max(1));
            let element = self.element(at, param);
            writeln!(
                table,
                "        ::tilelift::runtime::CompiledParam {{ name: {:?}, pointer: {}, element: {element:?}, divisible: {divisible} }},",
                param.name,
                param.kind == ParamKind::Pointer,
            )?;
            let name = rust_name(&param.name, &values);
            let ty = match param.kind {
                ParamKind::Scalar => rust_type(&element),
                ParamKind::Pointer => None,
            };
            let ty = ty.unwrap_or("impl ::core::convert::Into<::tilelift::runtime::Arg<'a>>");
            writeln!(params, "        {name}: {ty},")?;
            values.push(name);
        }
        let arguments: Vec<String> = values
            .iter()
            .skip(1)
            .map(|name| format!("::core::convert::Into::into({name})"))
            .collect();
        let cubin = match self.cubin {
            Some(_) => "::core::option::Option::Some(CUBIN)",
            None => "::core::option::Option::None",
        };
        let fallback = match self.fallback {
            Some(_) => "::core::option::Option::Some(&FALLBACK)",
            None => "::core::option::Option::None",
        };
        write!(
            f,
            "// Written by tilelift {version} from the kernel `{name}`, for {target}; not to be edited.

/// The kernel, compiled.
pub const COMPILED: ::tilelift::runtime::Compiled = {compiled};

/// The kernel on a device.
#[derive(::core::clone::Clone, ::core::fmt::Debug)]
pub struct {type_name}(pub ::tilelift::runtime::Kernel);

impl {type_name} {{
    /// Loads the kernel.
    pub fn load(device: &::tilelift::runtime::Device) -> ::core::result::Result<Self, ::tilelift::runtime::RuntimeError> {{
        let program = ::tilelift::runtime::Program::compiled(&COMPILED)?;
        device.kernel(&program, ::core::option::Option::None).map(Self)
    }}

    /// Puts a launch into `stream`.
    #[{allow}(clippy::too_many_arguments, non_snake_case)]
    pub fn launch<'a>(
        &self,
        stream: &::tilelift::runtime::Stream,
        grid: impl ::core::convert::Into<::tilelift::runtime::Grid<'a>>,
{params}    ) -> ::core::result::Result<(), ::tilelift::runtime::RuntimeError> {{
        let arguments: [::tilelift::runtime::Arg<'_>; {count}] = [{arguments}];
        self.0.launch(stream, grid, arguments)
    }}
}}

/// The kernel's PTX.
pub const PTX: &::core::primitive::str = {ptx};
",
            version = env!("CARGO_PKG_VERSION"),
            allow = ALLOW,
            name = meta.name,
            target = meta.target,
            compiled = self.compiled(self.kernel, ["PTX", cubin, fallback], &table),
            count = arguments.len(),
            arguments = arguments.join(", "),
            ptx = raw_string(&self.kernel.ptx),
        )?;
        if let Some(plain) = self.fallback {
            let none = "::core::option::Option::None";
            write!(
                f,
                "
/// The kernel for arguments that allow no tensor maps.
pub const FALLBACK: ::tilelift::runtime::Compiled = {compiled};

/// Its PTX.
pub const FALLBACK_PTX: &::core::primitive::str = {ptx};
",
                compiled = self.compiled(plain, ["FALLBACK_PTX", none, none], &table),
                ptx = raw_string(&plain.ptx),
            )?;
        }
        match self.cubin {
            None => Ok(()),
            Some(code) => write!(
                f,
                "\n/// The kernel's machine code.\npub const CUBIN: &[::core::primitive::u8] = b\"{}\";\n",
                code.escape_ascii()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rust_and_apart() {
        assert_eq!(rust_name("x", &[]), "x");
        assert_eq!(rust_name("grid", &[]), "p_grid");
        assert_eq!(rust_name("type", &[]), "p_type");
        assert_eq!(rust_name("2nd", &[]), "p_2nd");
        assert_eq!(rust_name("x", &["x".to_owned()]), "x_2");
        assert_eq!(rust_name("_", &[]), "__2");
        assert_eq!(rust_name("Err", &[]), "p_Err");
        assert_eq!(rust_name("PTX", &[]), "p_PTX");
        assert_eq!(type_name("layer_norm"), "LayerNorm");
        assert_eq!(type_name("result"), "Result");
        assert_eq!(type_name("ok"), "KernelOk");
        assert_eq!(type_name("self"), "PSelf");
        assert_eq!(type_name("__3x"), "Kernel3x");
    }
}
