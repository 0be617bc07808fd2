//! Compiling a kernel: what goes in, and what comes out. [`crate::pipeline`] is the way between.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::device_print::Site;
use crate::error::{CompileError, panic_text};
use crate::ir::function::{Asked, ThreadFunction, TileFunction};
use crate::ir::map_recipe::MapRecipe;
use crate::ir::types::{Elem, ThreadType};
use crate::layout::assign::LayoutStats;
use crate::pipeline::{self, Snapshot};
use crate::ptx;
use crate::settings::{LANES, Options, PtxVersion, Target};
use crate::tile::pipeline_loops::CutStages;
use crate::tile::promote::Promotion;

/// What a kernel parameter is to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParamKind {
    /// An address in device memory.
    Pointer,
    /// A number.
    Scalar,
}

/// A parameter of the PTX entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMeta {
    /// Its name in the source.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
    /// Its type's name: of the number, or of what the pointer points to (`f32`).
    pub ty: &'static str,
    /// Size in bytes.
    pub bytes: u32,
}

/// What a launcher must know of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelMeta {
    /// Name of the PTX entry.
    pub name: String,
    /// Target it was compiled for.
    pub target: Target,
    /// Version of the PTX text.
    pub ptx_version: PtxVersion,
    /// Warps of a CTA; [`KernelMeta::block`] has its threads.
    pub num_warps: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Parameters of the entry, in order.
    pub params: Vec<ParamMeta>,
    /// Whether each CTA executes several programs: a launch has as many as [`KernelMeta::ctas`] says, and the kernel takes the numbers
    /// of programs along the three axes, each an i32, behind [`KernelMeta::params`].
    pub persistent: bool,
    /// Tensor maps that the launcher makes, each a parameter of 128 bytes behind all others. The recipes refer to the indices of
    /// [`KernelMeta::params`]. Where one cannot be made, the launcher needs the kernel of [`Promote::Never`].
    ///
    /// [`Promote::Never`]: crate::settings::Promote::Never
    pub maps: Vec<MapRecipe>,
    /// What the kernel prints and asserts, by the number in a record; with none it has no log. See [`crate::device_print`].
    pub sites: Vec<Site>,
}

impl KernelMeta {
    /// Threads of a CTA.
    #[must_use]
    pub fn threads(&self) -> u32 {
        LANES * self.num_warps
    }

    /// The block of a launch: threads of a CTA along each axis.
    #[must_use]
    pub fn block(&self) -> [u32; 3] {
        [self.threads(), 1, 1]
    }

    /// The CTAs to launch for a grid of programs, if the device executes `resident` at a time. None if a persistent kernel cannot
    /// count its programs, or if that is 0; then the launcher needs the kernel of [`Promote::Never`], which is not persistent.
    ///
    /// [`Promote::Never`]: crate::settings::Promote::Never
    #[must_use]
    pub fn ctas(&self, grid: [u32; 3], resident: u32) -> Option<[u32; 3]> {
        if !self.persistent {
            return Some(grid);
        }
        let programs = grid
            .iter()
            .try_fold(1_u32, |product, &n| product.checked_mul(n))?;
        // The last CTA's count goes further by the number of CTAs.
        let counts = programs < 1 << 30 && 0 < resident;
        counts.then(|| [programs.min(resident), 1, 1])
    }
}

/// What the compiler did, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct KernelStats {
    /// What layout assignment arrived at.
    pub layouts: LayoutStats,
    /// Stages of a loop that shared memory has too little room for.
    pub cut_stages: Option<CutStages>,
    /// What became of loads and stores that could be those of tensor maps.
    pub promotions: Vec<Promotion>,
    /// Barriers placed.
    pub barriers: usize,
    /// What instruction selection and register allocation counted.
    pub machine: ptx::Stats,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompiledKernel {
    /// PTX text, pure ASCII.
    pub ptx: String,
    /// How to launch it.
    pub meta: KernelMeta,
    /// What the compiler did.
    pub stats: KernelStats,
    /// For each parameter of the function the promises with which it is this very kernel.
    pub asked: Vec<Asked>,
}

/// Compiles a kernel.
pub fn compile(
    func: &TileFunction,
    target: Target,
    options: &Options,
) -> Result<CompiledKernel, CompileError> {
    compile_with(func, target, options, &mut |_, _| {})
}

/// Compiles a kernel and shows it to `on_pass_end` after each pass.
///
/// A panic inside of the compiler does not pass: it becomes [`CompileError::Internal`].
pub fn compile_with(
    func: &TileFunction,
    target: Target,
    options: &Options,
    on_pass_end: &mut dyn FnMut(&str, Snapshot<'_>),
) -> Result<CompiledKernel, CompileError> {
    span!(
        DEBUG,
        "compile",
        kernel = func.name.as_str(),
        target = tracing::field::display(target)
    );
    let run = AssertUnwindSafe(|| pipeline::run(func, target, options, on_pass_end));
    let output = catch_unwind(run).unwrap_or_else(|panic| {
        Err(CompileError::Internal {
            pass: "compile",
            message: panic_text(&*panic),
        })
    })?;
    Ok(CompiledKernel {
        meta: KernelMeta {
            name: output.thread.name.clone(),
            target,
            ptx_version: output.ptx_version,
            num_warps: output.thread.cta_warps(),
            shared: output.shared,
            persistent: output.persistent,
            params: param_metas(&output.thread, func.params().len()),
            maps: output.thread.maps,
            sites: output.sites,
        },
        stats: KernelStats {
            layouts: output.tile.layouts,
            cut_stages: output.tile.cut_stages,
            promotions: output.tile.promotions,
            barriers: output.barriers,
            machine: output.machine,
        },
        asked: output.asked,
        ptx: output.ptx,
    })
}

/// The first parameters, which the caller sees.
fn param_metas(func: &ThreadFunction, count: usize) -> Vec<ParamMeta> {
    let params = func.params().iter().zip(&func.param_names);
    params
        .take(count)
        .map(|(&value, name)| param_meta(name.clone(), func.dfg.ty(value)))
        .collect()
}

fn param_meta(name: String, ty: ThreadType) -> ParamMeta {
    let (kind, ty_name) = match ty.elem {
        Elem::Ptr(pointee, _) => (ParamKind::Pointer, pointee.name()),
        Elem::Num(scalar) => (ParamKind::Scalar, scalar.name()),
        Elem::Map(_) => (ParamKind::Scalar, "map"),
        Elem::Token => (ParamKind::Scalar, "token"),
    };
    ParamMeta {
        name,
        kind,
        ty: ty_name,
        bytes: ty.elem.bytes(),
    }
}
