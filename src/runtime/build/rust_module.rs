//! Rust modules of kernels that were compiled ahead of time: a type for the kernel, and its arguments by name.

use std::fmt::{self, Write};

use crate::compile::{CompiledKernel, ParamKind, ParamMeta};
use crate::ir::function::{ParamHints, TileFunction};
use crate::tile::promote::used::Used;

use crate::runtime::build::stored::encode_sites;

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
    "Args",
];

/// A name that Rust takes and that differs from those in use.
pub(crate) fn rust_name(name: &str, used: &[String]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(plain).collect();
    if name.is_empty()
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

/// The type of a number in Rust.
fn rust_type(element: &str) -> String {
    match element {
        "i1" => "::core::primitive::bool".to_owned(),
        "f16" | "bf16" => format!("::tilelift::runtime::{element}"),
        "f8e4m3" | "f8e5m2" => format!("::tilelift::runtime::{}", element.to_ascii_uppercase()),
        number => format!("::core::primitive::{number}"),
    }
}

/// A Rust module with a kernel and a typed function that launches it. `func` is what the kernel was compiled from.
/// [`RustModule`] says more.
pub fn rust_module(kernel: &CompiledKernel, func: &TileFunction) -> String {
    RustModule::new(kernel, func).to_string()
}

/// A Rust module with a kernel and a typed function that launches it; shown, it is the text.
///
/// The module has a type for the kernel, with a function that loads it and one that launches it, and `Args`, the arguments of a
/// launch by name. Numbers have their types there. Memory that the kernel only reads is whatever is
/// [`Readable`](crate::runtime::Readable) as the right type, such as `&buffer`; what it writes is [`Writable`](crate::runtime::Writable), such as
/// `&mut buffer`, so that the compiler of the application sees what changes. A name that is a word of Rust, such as `type`, has `p_`
/// before it. A [`Pointer`](crate::runtime::Pointer) is either, for memory
/// of others and for what is read and written through two parameters.
#[derive(Clone, Debug)]
pub struct RustModule<'a> {
    hints: &'a [ParamHints],
    /// For each parameter of the PTX entry whether its integers have no sign, as far as that is known.
    unsigned: Vec<bool>,
    /// For each whether the kernel may write what it points to.
    written: Vec<bool>,
    /// Names and values in Rust.
    constants: Vec<(String, &'static str, String)>,
    versions: Vec<Version<'a>>,
}

/// The kernel for one target.
#[derive(Clone, Copy, Debug)]
struct Version<'a> {
    kernel: &'a CompiledKernel,
    cubin: Option<&'a [u8]>,
    fallback: Option<&'a CompiledKernel>,
}

impl<'a> RustModule<'a> {
    /// The module of a kernel that was compiled from a function.
    pub fn new(kernel: &'a CompiledKernel, func: &'a TileFunction) -> RustModule<'a> {
        let written = Used::compute(func);
        RustModule {
            hints: &func.param_hints,
            unsigned: Vec::new(),
            written: func
                .params()
                .iter()
                .map(|&p| written.is_written(p))
                .collect(),
            constants: Vec::new(),
            versions: vec![Version {
                kernel,
                cubin: None,
                fallback: None,
            }],
        }
    }

    /// With the signature that the kernel was made for, which knows which integers have no sign.
    #[cfg(feature = "triton")]
    #[must_use]
    pub fn signature(mut self, args: &[crate::front::ArgSpec]) -> RustModule<'a> {
        fn read(arg: &crate::front::ArgSpec, unsigned: &mut Vec<bool>) {
            use crate::front::{ArgSpec, types::Ty};
            match arg {
                ArgSpec::Typed { ty, .. } => {
                    let (Ty::Num(dtype) | Ty::Ptr { to: dtype, .. }) = *ty;
                    unsigned.push(dtype.to_string().starts_with('u'));
                }
                ArgSpec::Constant(_) => {}
                ArgSpec::Tuple(tuple) => tuple.items.iter().for_each(|item| read(item, unsigned)),
                ArgSpec::Descriptor(descriptor) => {
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

    /// With the parameters that have become constants ([`Lowered::constants`](crate::front::Lowered::constants)), for the
    /// grid to be computed of: `Add::BLOCK` for a kernel `add`. Those that are no numbers, truth values or texts are left out.
    #[cfg(feature = "triton")]
    #[must_use]
    pub fn constants(mut self, constants: &[(String, String)]) -> RustModule<'a> {
        use crate::front::Constant;
        self.constants.clear();
        for (name, text) in constants {
            let value = match Constant::parse(text) {
                Some(Constant::Bool(truth)) => ("bool", truth.to_string()),
                Some(Constant::Int(n)) if u32::try_from(n).is_ok() => ("u32", n.to_string()),
                Some(Constant::Int(n)) if i64::try_from(n).is_ok() => ("i64", n.to_string()),
                Some(Constant::Float(x)) if x.is_finite() => ("f64", format!("{x:?}")),
                Some(Constant::Str(text)) => ("str", format!("{text:?}")),
                _ => continue,
            };
            // One that Rust does not take as it is has no place.
            let is_plain = rust_name(name, &[]) == *name && !FUNCTIONS.contains(&name.as_str());
            if is_plain && !self.constants.iter().any(|(known, ..)| known == name) {
                self.constants.push((name.clone(), value.0, value.1));
            }
        }
        self
    }

    /// The version that was given last.
    fn last(&mut self) -> Option<&mut Version<'a>> {
        self.versions.last_mut()
    }

    /// With machine code for the target of the kernel given last, which the driver or `ptxas` made of its PTX.
    #[must_use]
    pub fn cubin(mut self, cubin: &'a [u8]) -> RustModule<'a> {
        if let Some(last) = self.last() {
            last.cubin = Some(cubin);
        }
        self
    }

    /// With the kernel given last as it was compiled to take no tensor maps
    /// ([`Promote::Never`](crate::settings::Promote::Never)), for arguments that allow none. A kernel without maps needs no such.
    #[must_use]
    pub fn fallback(mut self, plain: &'a CompiledKernel) -> RustModule<'a> {
        if let Some(last) = self.last() {
            last.fallback = Some(plain);
        }
        self
    }

    /// With the same kernel for another target: a device gets the latest that it runs.
    #[must_use]
    pub fn also(mut self, kernel: &'a CompiledKernel) -> RustModule<'a> {
        self.versions.push(Version {
            kernel,
            cubin: None,
            fallback: None,
        });
        self
    }

    /// A description.
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
    persistent: {persistent},
    maps: &[{maps}],
    fallback: {fallback},
    sites: b\"{sites}\",
}}",
            name = meta.name,
            target = meta.target,
            warps = meta.num_warps,
            shared = meta.shared,
            registers = kernel.stats.machine.predicted_registers,
            persistent = meta.persistent,
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

    /// The texts of a version: what it is compiled to, under names with this ending.
    fn write_version(
        &self,
        f: &mut fmt::Formatter<'_>,
        version: &Version<'_>,
        ending: &str,
        table: &str,
    ) -> fmt::Result {
        let some = |is_some, name: &str| match is_some {
            true => format!("::core::option::Option::Some({name}{ending})"),
            false => "::core::option::Option::None".to_owned(),
        };
        let target = version.kernel.meta.target;
        let cubin = some(version.cubin.is_some(), "CUBIN");
        let fallback = some(version.fallback.is_some(), "&FALLBACK");
        write!(
            f,
            "
/// The kernel, compiled for {target}.
pub const COMPILED{ending}: ::tilelift::runtime::Compiled = {compiled};

/// Its PTX.
pub const PTX{ending}: &::core::primitive::str = {ptx};
",
            compiled = self.compiled(
                version.kernel,
                [&format!("PTX{ending}"), &cubin, &fallback],
                table
            ),
            ptx = raw_string(&version.kernel.ptx),
        )?;
        if let Some(plain) = version.fallback {
            let none = "::core::option::Option::None";
            write!(
                f,
                "
/// The kernel for arguments that allow no tensor maps.
pub const FALLBACK{ending}: ::tilelift::runtime::Compiled = {compiled};

/// Its PTX.
pub const FALLBACK_PTX{ending}: &::core::primitive::str = {ptx};
",
                compiled =
                    self.compiled(plain, [&format!("FALLBACK_PTX{ending}"), none, none], table),
                ptx = raw_string(&plain.ptx),
            )?;
        }
        match version.cubin {
            None => Ok(()),
            Some(code) => write!(
                f,
                "\n/// Its machine code.\npub const CUBIN{ending}: &[::core::primitive::u8] = b\"{}\";\n",
                code.escape_ascii()
            ),
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

/// The functions of a kernel's type.
#[cfg(feature = "triton")]
const FUNCTIONS: &[&str] = &["load", "launch"];

/// The ending of the names of a version.
fn ending(at: usize) -> String {
    match at {
        0 => String::new(),
        at => format!("_{at}"),
    }
}

impl fmt::Display for RustModule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.versions.first() else {
            return Ok(());
        };
        let meta = &first.kernel.meta;
        let type_name = type_name(&meta.name);
        let (mut table, mut fields, mut values) = (String::new(), String::new(), String::new());
        let (mut generics, mut bounds) = (Vec::new(), Vec::new());
        let mut names = Vec::new();
        for (at, param) in meta.params.iter().enumerate() {
            let divisible = self.hints.get(at).map_or(1, |hint| hint.promised().max(1));
            let element = self.element(at, param);
            let is_pointer = param.kind == ParamKind::Pointer;
            writeln!(
                table,
                "        ::tilelift::runtime::CompiledParam {{ name: {:?}, pointer: {is_pointer}, element: {element:?}, divisible: {divisible} }},",
                param.name,
            )?;
            let name = rust_name(&param.name, &names);
            let number = rust_type(&element);
            let promise = match (divisible, is_pointer) {
                (1, _) => String::new(),
                (n, false) => format!(", a multiple of {n}"),
                (n, true) => format!(", at a multiple of {n} bytes"),
            };
            let is_written = self.written.get(at).is_none_or(|&written| written);
            let (ty, value) = match is_pointer {
                false => (number, format!("args.{name}")),
                true => {
                    let (bound, function) = match is_written {
                        true => ("Writable", "into_view_mut"),
                        false => ("Readable", "into_view"),
                    };
                    let bound = format!("::tilelift::runtime::{bound}<{number}>");
                    let value = format!("{bound}::{function}(args.{name})").replacen('<', "::<", 1);
                    generics.push(format!("P{at}"));
                    bounds.push(format!("P{at}: {bound}"));
                    (format!("P{at}"), value)
                }
            };
            let role = match (is_pointer, is_written) {
                (false, _) => "A number",
                (true, false) => "Memory that is read",
                (true, true) => "Memory that is written, or may be",
            };
            let shown = param.ty;
            writeln!(
                fields,
                "    /// {role}: `{shown}`{promise}.\n    pub {name}: {ty},"
            )?;
            writeln!(
                values,
                "            ::core::convert::Into::<::tilelift::runtime::Arg<'_>>::into({value}),"
            )?;
            names.push(name);
        }
        let list = |list: &[String]| match list {
            [] => String::new(),
            list => format!("<{}>", list.join(", ")),
        };
        let mut constants = String::new();
        for (name, ty, value) in &self.constants {
            let reference = if *ty == "str" { "&" } else { "" };
            writeln!(
                constants,
                "    /// The constant of this name.\n    #[{ALLOW}(non_upper_case_globals, dead_code)]\n    pub const {name}: {reference}::core::primitive::{ty} = {value};\n"
            )?;
        }
        let versions = (0..self.versions.len()).map(|at| format!("COMPILED{}", ending(at)));
        write!(
            f,
            "// Written by tilelift {version} from the kernel `{name}`; not to be edited, and for an application with that version:
// where another one does not compile it, write it again.

/// The kernel `{name}` on a device.
#[derive(::core::clone::Clone, ::core::fmt::Debug)]
pub struct {type_name}(pub ::tilelift::runtime::Kernel);

/// What a launch of the kernel takes.
#[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
#[{ALLOW}(non_snake_case)]
pub struct Args{bounds} {{
{fields}}}

impl {type_name} {{
{constants}    /// Loads the kernel: of what it was compiled for the latest target that the device runs.
    pub fn load(device: &::tilelift::runtime::Device) -> ::core::result::Result<Self, ::tilelift::runtime::RuntimeError> {{
        let program = ::tilelift::runtime::Program::compiled_for(device, &[{versions}])?;
        device.kernel(&program, ::core::option::Option::None).map(Self)
    }}

    /// Puts a launch into `stream`.
    pub fn launch<'g{more}>(
        &self,
        stream: &::tilelift::runtime::Stream,
        grid: impl ::core::convert::Into<::tilelift::runtime::Grid<'g>>,
        {args}: Args{generics},
    ) -> ::core::result::Result<(), ::tilelift::runtime::RuntimeError> {{
        let arguments: [::tilelift::runtime::Arg<'_>; {count}] = [
{values}        ];
        self.0.launch(stream, grid, arguments)
    }}
}}
",
            version = env!("CARGO_PKG_VERSION"),
            name = meta.name,
            args = if names.is_empty() { "_" } else { "args" },
            generics = list(&generics),
            bounds = list(&bounds),
            more = bounds.iter().map(|bound| format!(", {bound}")).collect::<String>(),
            versions = versions.collect::<Vec<_>>().join(", "),
            count = names.len(),
        )?;
        for (at, version) in self.versions.iter().enumerate() {
            self.write_version(f, version, &ending(at), &table)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rust_and_apart() {
        assert_eq!(rust_name("x", &[]), "x");
        assert_eq!(rust_name("grid", &[]), "grid");
        assert_eq!(rust_name("", &[]), "p_");
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
