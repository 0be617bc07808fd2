//! Ahead of time: kernels that were compiled before, as Rust modules state them.
//!
//! [`crate::build`] compiles kernels in a build script, in one line; `tilelift compile --emit rust` is the command for one kernel.
//! Both write what [`RustModule`](crate::runtime::RustModule) says. The program that includes it needs no compiler for the kernel, and
//! no language.

use crate::compile::{KernelMeta, ParamKind, ParamMeta};
use crate::ir::function::PROGRAM_NUMBERS;
use crate::ir::map_recipe::{MAP_BYTES, MapRecipe};
use crate::ir::types::{AddressSpace, Elem, Scalar};
use crate::settings::{LANES, MOST_WARPS, PtxVersion, Target};

use crate::runtime::api::device::Device;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::program::Param;
use crate::runtime::build::dump;
use crate::runtime::build::stored::{Stored, decode_sites};
use crate::runtime::specialize::class::Specialize;

/// A kernel that was compiled before, as the modules of [`RustModule`](crate::runtime::RustModule) state it.
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
    /// Whether each CTA executes several programs.
    pub persistent: bool,
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

/// The best of what a kernel was compiled for: the latest target that the device runs.
pub(in crate::runtime) fn best<'c>(
    device: &Device,
    list: &'c [Compiled],
) -> Result<&'c Compiled, RuntimeError> {
    let target = |compiled: &&Compiled| {
        let target = Target::parse(compiled.target).ok();
        target.filter(|&target| device.runs(target))
    };
    let best = list.iter().max_by_key(target);
    best.filter(|best| target(best).is_some())
        .ok_or_else(|| RuntimeError::Setup {
            kernel: list.first().map_or("", |first| first.name).to_owned(),
            problem: format!(
                "it was compiled for {}, and the device takes {}: name that or an older target (`target=` of its line in the file \
                 of kernels, `-t` of the command)",
                list.iter()
                    .map(|compiled| compiled.target)
                    .collect::<Vec<_>>()
                    .join(", "),
                device.target()
            ),
        })
}

/// The kernel as the cache would keep it, and its parameters.
pub(in crate::runtime) fn unpack(
    compiled: &Compiled,
) -> Result<(Stored, Vec<Param>), RuntimeError> {
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
    // Those that bring blocks count, too.
    if !(1..=MOST_WARPS).contains(&num_warps) {
        return Err(setup(format!(
            "it states {num_warps} warps; 1 to {MOST_WARPS} are possible"
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
    let programs = [4_u32; PROGRAM_NUMBERS]
        .into_iter()
        .filter(|_| compiled.persistent);
    let bytes: Vec<u32> = bytes
        .chain(programs)
        .chain(maps.iter().map(|_| MAP_BYTES))
        .collect();
    dump::check_entry(compiled.ptx, compiled.name, &bytes, LANES * num_warps)
        .map_err(|(line, problem)| setup(format!("line {line} of its PTX: {problem}")))?;
    let meta = KernelMeta {
        name: compiled.name.to_owned(),
        target,
        // The text says it again.
        ptx_version: PtxVersion { major: 0, minor: 0 },
        num_warps: compiled.num_warps,
        shared: compiled.shared_bytes,
        params: metas,
        persistent: compiled.persistent,
        maps,
        sites: decode_sites(compiled.sites)
            .ok_or_else(|| setup("what it prints cannot be read".to_owned()))?,
    };
    let stored = Stored {
        ptx: compiled.ptx.to_owned(),
        meta,
        predicted_registers: compiled.predicted_registers,
        needed_registers: compiled.predicted_registers,
        // Whatever arguments promise, there is no other one.
        asked: Vec::new(),
        constants: Vec::new(),
        replaced: None,
    };
    Ok((stored, params))
}

/// The kernel that is launched in place of another, of the same parameters, where arguments allow no tensor maps.
pub(in crate::runtime) fn unpack_fallback(
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
