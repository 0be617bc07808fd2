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

use std::fmt::Write;

use crate::compile::{CompiledKernel, KernelMeta, ParamKind, ParamMeta};
use crate::ir::function::ParamHints;
use crate::ir::types::{AddressSpace, Elem, Scalar};
use crate::settings::{PtxVersion, Target};

use super::argument::Specialize;
use super::error::RuntimeError;
use super::program::Param;
use super::stored::Stored;

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
}

/// A parameter of a [`Compiled`] kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledParam {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a pointer.
    pub pointer: bool,
    /// The format of the number, or of what the pointer points to, as in `f32`.
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
    let (mut metas, mut params) = (Vec::new(), Vec::new());
    for param in compiled.params {
        let scalar = Scalar::from_name(param.element)
            .ok_or_else(|| setup(format!("`{}` is no format of a number", param.element)))?;
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
            divisible: param.divisible.max(1),
            elem: Some(elem),
        });
    }
    let meta = KernelMeta {
        name: compiled.name.to_owned(),
        target,
        // The text says it again.
        ptx_version: PtxVersion { major: 0, minor: 0 },
        num_warps: compiled.num_warps,
        shared: compiled.shared_bytes,
        params: metas,
        sites: Vec::new(),
    };
    let stored = Stored {
        ptx: compiled.ptx.to_owned(),
        meta,
        predicted_registers: compiled.predicted_registers,
        constants: Vec::new(),
    };
    Ok((stored, params))
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

/// A name that Rust takes and that differs from those in use.
fn rust_name(name: &str, used: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(plain).collect();
    // Names of the function itself, and what does not begin as a name does.
    let is_taken = matches!(name.as_str(), "stream" | "grid" | "");
    if is_taken
        || name.starts_with(|c: char| c.is_ascii_digit())
        || KEYWORDS.contains(&name.as_str())
    {
        name.insert_str(0, "p_");
    }
    while used.contains(&name) || name.chars().all(|c| c == '_') {
        name.push_str("_2");
    }
    name
}

/// The type of a number in Rust; none if the language has none.
fn rust_type(scalar: &str) -> Option<&'static str> {
    Some(match scalar {
        "i1" => "bool",
        "i8" => "i8",
        "i16" => "i16",
        "i32" => "i32",
        "i64" => "i64",
        "f32" => "f32",
        "f64" => "f64",
        _ => return None,
    })
}

/// A Rust module with a kernel and a typed function that launches it. `hints` are those of the kernel's parameters.
pub fn rust_module(kernel: &CompiledKernel, hints: &[ParamHints]) -> String {
    rust_module_with(kernel, hints, None)
}

/// [`rust_module`] with machine code for the kernel's target, which the driver or `ptxas` made of its PTX.
pub fn rust_module_with(
    kernel: &CompiledKernel,
    hints: &[ParamHints],
    cubin: Option<&[u8]>,
) -> String {
    let meta = &kernel.meta;
    let mut type_name = String::new();
    for part in rust_name(&meta.name, &[])
        .split('_')
        .filter(|part| !part.is_empty())
    {
        let (first, rest) = part.split_at(1);
        type_name += &first.to_ascii_uppercase();
        type_name += rest;
    }
    if !type_name.starts_with(|c: char| c.is_ascii_alphabetic()) || type_name == "Self" {
        type_name.insert_str(0, "Kernel");
    }
    let (mut table, mut params, mut values) = (String::new(), String::new(), Vec::new());
    for (at, param) in meta.params.iter().enumerate() {
        let divisible = hints.get(at).map_or(1, |hint| hint.divisible.max(1));
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "        ::tilelift::runtime::CompiledParam {{ name: {:?}, pointer: {}, element: {:?}, divisible: {divisible} }},",
            param.name,
            param.kind == ParamKind::Pointer,
            param.ty,
        );
        let name = rust_name(&param.name, &values);
        let ty = match param.kind {
            ParamKind::Scalar => rust_type(param.ty),
            ParamKind::Pointer => None,
        };
        let ty = ty.unwrap_or("impl Into<::tilelift::runtime::Arg<'a>>");
        let _ = writeln!(params, "        {name}: {ty},");
        values.push(name);
    }
    let arguments: Vec<String> = values.iter().map(|name| format!("{name}.into()")).collect();
    // The text is ASCII; the fence is longer than any in it.
    let mut fence = "#".to_owned();
    while kernel.ptx.contains(&format!("\"{fence}")) {
        fence.push('#');
    }
    format!(
        "// Written by tilelift {version} from the kernel `{name}`, for {target}; not to be edited.

/// The kernel, compiled.
pub const COMPILED: ::tilelift::runtime::Compiled = ::tilelift::runtime::Compiled {{
    name: {name:?},
    ptx: PTX,
    cubin: {cubin},
    target: \"{target}\",
    num_warps: {warps},
    shared_bytes: {shared},
    predicted_registers: {registers},
    params: &[
{table}    ],
}};

/// The kernel on a device.
#[derive(Clone, Debug)]
pub struct {type_name}(pub ::tilelift::runtime::Kernel);

impl {type_name} {{
    /// Loads the kernel.
    pub fn load(device: &::tilelift::runtime::Device) -> Result<Self, ::tilelift::runtime::RuntimeError> {{
        let program = ::tilelift::runtime::Program::compiled(&COMPILED)?;
        Ok(Self(device.kernel(&program, None)?))
    }}

    /// Puts a launch into `stream`.
    #[{allow}(clippy::too_many_arguments)]
    pub fn launch<'a>(
        &self,
        stream: &::tilelift::runtime::Stream,
        grid: impl Into<::tilelift::runtime::Grid<'a>>,
{params}    ) -> Result<(), ::tilelift::runtime::RuntimeError> {{
        let args: [::tilelift::runtime::Arg<'_>; {count}] = [{arguments}];
        self.0.launch(stream, grid, args)
    }}
}}

/// The kernel's PTX.
pub const PTX: &str = r{fence}\"{ptx}\"{fence};
{code}",
        cubin = if cubin.is_some() { "Some(CUBIN)" } else { "None" },
        code = cubin.map_or_else(String::new, |code| format!(
            "\n/// The kernel's machine code.\npub const CUBIN: &[u8] = b\"{}\";\n",
            code.escape_ascii()
        )),
        version = env!("CARGO_PKG_VERSION"),
        // There may or may not be too many of them.
        allow = "allow",
        name = meta.name,
        target = meta.target,
        warps = meta.num_warps,
        shared = meta.shared,
        registers = kernel.stats.machine.predicted_registers,
        count = values.len(),
        arguments = arguments.join(", "),
        ptx = kernel.ptx,
    )
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
    }
}
