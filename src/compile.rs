//! From a kernel of the tile IR to PTX: the pipeline.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ir::entities::Slot;
use crate::ir::function::{BufferData, ThreadFunction, TileFunction};
use crate::ir::types::{Elem, ThreadType};
use crate::layout::assign::LayoutStats;
use crate::limits::PARAMETER_BYTES;
use crate::log::{self, Site};
use crate::passes::delay_copies::delay_copies;
use crate::passes::drop_parameters::drop_parameters;
use crate::passes::expand::expand;
use crate::passes::insert_barriers::insert_barriers;
use crate::passes::optimize;
use crate::passes::pipeline_loops::CutStages;
use crate::passes::place_shared::{fullest, place_shared};
use crate::passes::share_operands::holds_operands;
use crate::ptx;
use crate::settings::diversity::{self, Choices};
use crate::settings::{Options, PtxVersion, SettingsError, Target};
use crate::verify::{VerifierErrors, verify};

/// What a kernel parameter is to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
pub struct KernelMeta {
    /// Name of the PTX entry.
    pub name: String,
    /// Target it was compiled for.
    pub target: Target,
    /// Version of the PTX text.
    pub ptx_version: PtxVersion,
    /// Warps of a CTA; the block is 32 times as many threads in x.
    pub num_warps: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Parameters of the entry, in order.
    pub params: Vec<ParamMeta>,
    /// What the kernel prints and asserts, by the number in a record; with none it has no log. See [`crate::log`].
    pub sites: Vec<Site>,
}

/// What the compiler did, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStats {
    /// What layout assignment arrived at.
    pub layouts: LayoutStats,
    /// Stages of a loop that shared memory has too little room for.
    pub cut_stages: Option<CutStages>,
    /// Barriers placed.
    pub barriers: usize,
    /// What instruction selection and register allocation counted.
    pub machine: ptx::Stats,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledKernel {
    /// PTX text, pure ASCII.
    pub ptx: String,
    /// How to launch it.
    pub meta: KernelMeta,
    /// What the compiler did.
    pub stats: KernelStats,
}

/// Why a kernel cannot be compiled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompileError {
    /// The kernel breaks rules of the IR.
    #[error("{0}")]
    Invalid(VerifierErrors),
    /// The target or the options are not possible.
    #[error(transparent)]
    Settings(SettingsError),
    /// The kernel's parameters take more room than PTX has for them.
    #[error(
        "the kernel's parameters take {needed} bytes, PTX has room for {limit}; pass fewer, or a pointer to them"
    )]
    Parameters {
        /// Bytes of all parameters, aligned.
        needed: u32,
        /// Bytes there may be.
        limit: u32,
    },
    /// The kernel needs more shared memory than the target has.
    #[error(
        "the kernel needs {needed} bytes of shared memory, {target} has {limit}: {uses}; {advice}"
    )]
    SharedMemory {
        /// Bytes the kernel needs.
        needed: u32,
        /// Bytes a CTA may have.
        limit: u32,
        /// The target.
        target: Target,
        /// What takes most of it where most is taken, the largest first.
        uses: String,
        /// What to change.
        advice: String,
    },
    /// The compiler has no code for an operation on the target.
    #[error("{what} has no form on {target}{}", place(*.line))]
    Unsupported {
        /// The operation with its types.
        what: String,
        /// The target.
        target: Target,
        /// Line of the source it comes from, if the kernel says so.
        line: Option<u32>,
    },
    /// A block is too large for the threads that hold it.
    #[error(
        "{what} gives each thread {elements} elements, more than {limit}; use more warps or smaller blocks, together by a factor of {factor}{tf32}{}",
        place(*.line), factor = elements.div_ceil(*limit).next_power_of_two(), tf32 = by_unit(*.tf32)
    )]
    Elements {
        /// The operation that makes the block, with its type.
        what: String,
        /// Elements that one thread holds.
        elements: u32,
        /// Elements that a thread may hold.
        limit: u32,
        /// Whether it belongs to a product in f32 for which the target has a unit with fewer bits.
        tf32: bool,
        /// Line of the source it comes from, if the kernel says so.
        line: Option<u32>,
    },
    /// What one thread does is too long.
    #[error(
        "the kernel takes more than {limit} operations of each thread, most of them for {what} with {elements} elements for each \
         thread; use more warps or smaller blocks{tf32}{}", place(*.line), tf32 = by_unit(*.tf32)
    )]
    Operations {
        /// The operation that takes most of them, with its type.
        what: String,
        /// Elements that one thread holds of it.
        elements: u32,
        /// Operations there may be.
        limit: u32,
        /// Whether it belongs to a product in f32 for which the target has a unit with fewer bits.
        tf32: bool,
        /// Line of the source it comes from, if the kernel says so.
        line: Option<u32>,
    },
    /// A bug of ours: a pass broke the kernel or met something it does not expect.
    #[error("internal error in {pass}: {message}")]
    Internal {
        /// The pass.
        pass: &'static str,
        /// What happened.
        message: String,
    },
}

/// A line at the end of a message.
/// What else helps a product in f32.
fn by_unit(is_helped: bool) -> &'static str {
    match is_helped {
        true => ", or `input_precision=\"tf32\"`, for which the target has a unit",
        false => "",
    }
}

fn place(line: Option<u32>) -> String {
    line.map_or(String::new(), |line| format!(" (line {line})"))
}

impl CompileError {
    /// Line of the source that the error is about, if it is about one and the kernel says so.
    pub fn line(&self) -> Option<u32> {
        match self {
            CompileError::Unsupported { line, .. }
            | CompileError::Elements { line, .. }
            | CompileError::Operations { line, .. } => *line,
            CompileError::Invalid(_)
            | CompileError::Settings(_)
            | CompileError::Parameters { .. }
            | CompileError::SharedMemory { .. }
            | CompileError::Internal { .. } => None,
        }
    }
}

/// The kernel as it stands after a pass.
#[derive(Clone, Copy, Debug)]
pub enum Snapshot<'a> {
    /// A block program.
    Tile(&'a TileFunction),
    /// What one thread does.
    Thread(&'a ThreadFunction),
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
    let run = AssertUnwindSafe(|| pipeline(func, target, options, on_pass_end));
    catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        Err(CompileError::Internal {
            pass: "compile",
            message: text.unwrap_or_else(|| "a panic".into()),
        })
    })
}

/// The way of a kernel.
fn pipeline(
    func: &TileFunction,
    target: Target,
    options: &Options,
    on_pass_end: &mut dyn FnMut(&str, Snapshot<'_>),
) -> Result<CompiledKernel, CompileError> {
    options.check(target).map_err(CompileError::Settings)?;
    verify(func).map_err(CompileError::Invalid)?;
    let choices = |site| Choices::new(options.diversity, site);
    let mut may_share = !choices(diversity::Site::Sharing).chance(30);
    let (tile, mut thread, done, shared) = loop {
        let mut tile = func.clone();
        let done = optimize(&mut tile, target, options, may_share, &mut |pass, f| {
            on_pass_end(pass, Snapshot::Tile(f))
        })?;
        let mut thread = expand(&tile, target, choices(diversity::Site::Exchange))?;
        on_pass_end("expand", Snapshot::Thread(&thread));
        if drop_parameters(&mut thread) > 0 {
            on_pass_end("drop_parameters", Snapshot::Thread(&thread));
        }
        let shared = place_shared(&mut thread, &mut choices(diversity::Site::Offsets));
        on_pass_end("place_shared", Snapshot::Thread(&thread));
        match check_shared(shared, target, &tile, &thread) {
            Ok(()) => break (tile, thread, done, shared),
            // What conversions need besides is known only here.
            Err(_) if may_share && holds_operands(&tile) => may_share = false,
            Err(error) => return Err(error),
        }
    };
    check_params(&thread)?;
    let barriers = insert_barriers(&mut thread);
    on_pass_end("insert_barriers", Snapshot::Thread(&thread));
    if delay_copies(&mut thread) > 0 {
        on_pass_end("delay_copies", Snapshot::Thread(&thread));
    }
    if options.verify_passes {
        verify(&thread).map_err(|e| CompileError::Internal {
            pass: "expand",
            message: e.to_string(),
        })?;
    }

    let (ptx, ptx_version, machine) = ptx::emit(&thread, target, options)?;
    let meta = KernelMeta {
        name: thread.name.clone(),
        target,
        ptx_version,
        num_warps: thread.num_warps(),
        shared,
        params: param_metas(&thread),
        sites: log::sites(&tile)
            .into_iter()
            .map(|(_, site)| site)
            .collect(),
    };
    let stats = KernelStats {
        layouts: done.layouts,
        cut_stages: done.cut_stages,
        barriers,
        machine,
    };
    Ok(CompiledKernel { ptx, meta, stats })
}

/// Most uses of shared memory that an error names.
const SHOWN_USES: usize = 4;

fn check_shared(
    needed: u32,
    target: Target,
    tile: &TileFunction,
    thread: &ThreadFunction,
) -> Result<(), CompileError> {
    let limit = target.shared_limit();
    if needed <= limit {
        return Ok(());
    }
    let fullest = fullest(thread);
    let ring = |slot: Slot| tile.buffers.get(slot).copied().flatten();
    let uses = fullest.iter().take(SHOWN_USES).map(|range| {
        let bytes = thread.slots[range.slot].bytes;
        let line = thread.dfg.insts[range.inst].loc.0.expand();
        let line = line.map_or(String::new(), |line| format!(" (line {})", line.0));
        match ring(range.slot) {
            Some(ring) => format!("{bytes} for {ring}{line}"),
            None => format!("{bytes} to exchange values between threads{line}"),
        }
    });
    let mut uses: Vec<String> = uses.collect();
    if SHOWN_USES < fullest.len() {
        uses.push("and others".to_owned());
    }
    let largest = fullest.first();
    let rings = fullest.iter().filter_map(|range| ring(range.slot));
    let pipelined: Vec<BufferData> = rings.filter(|ring| 1 < ring.stages).collect();
    Err(CompileError::SharedMemory {
        needed,
        limit,
        target,
        uses: uses.join(", "),
        advice: advice(
            needed,
            limit,
            &pipelined,
            largest.map_or(0, |r| thread.slots[r.slot].bytes),
        ),
    })
}

/// What makes a kernel fit: as many stages as there is room for, or the largest use as much smaller as it takes, if that alone
/// is enough. More warps would not do, which hold the same blocks.
fn advice(needed: u32, limit: u32, pipelined: &[BufferData], largest: u32) -> String {
    let a_stage: u32 = pipelined.iter().map(BufferData::stage_bytes).sum();
    let rings: u32 = pipelined.iter().map(|r| r.stages * r.stage_bytes()).sum();
    let room = (limit + rings).saturating_sub(needed);
    if 0 < a_stage && a_stage <= room {
        let stages = room / a_stage;
        return format!(
            "use {stages} stages, each of which takes {a_stage} bytes, or smaller blocks"
        );
    }
    match (limit + largest).checked_sub(needed) {
        Some(room) if 0 < room => {
            let factor = largest.div_ceil(room).next_power_of_two();
            format!("use smaller blocks, the first of these by a factor of {factor}")
        }
        _ => "use smaller blocks".to_owned(),
    }
}

fn check_params(func: &ThreadFunction) -> Result<(), CompileError> {
    let (needed, limit) = (ptx::param_bytes(func), PARAMETER_BYTES);
    if needed > limit {
        Err(CompileError::Parameters { needed, limit })
    } else {
        Ok(())
    }
}

fn param_metas(func: &ThreadFunction) -> Vec<ParamMeta> {
    let params = func.params().iter().zip(&func.param_names);
    params
        .map(|(&value, name)| param_meta(name.clone(), func.dfg.ty(value)))
        .collect()
}

fn param_meta(name: String, ty: ThreadType) -> ParamMeta {
    let (kind, ty_name) = match ty.elem {
        Elem::Ptr(pointee, _) => (ParamKind::Pointer, pointee.name()),
        Elem::Num(scalar) => (ParamKind::Scalar, scalar.name()),
        Elem::Token => (ParamKind::Scalar, "token"),
    };
    ParamMeta {
        name,
        kind,
        ty: ty_name,
        bytes: ty.elem.bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::advice;
    use crate::ir::function::BufferData;
    use crate::ir::types::Scalar;
    use crate::linear::shape::Shape;

    #[test]
    fn advice_makes_a_kernel_fit() {
        let ring = |rows, stages| BufferData {
            elem: Scalar::F16,
            shape: Shape::new(&[rows, 64]).expect("powers of two"),
            stages,
        };
        // Two rings of 4 * 16 KiB and 8 KiB beside them: three stages take 96 + 8 of 100 KiB, two 64 + 8.
        let rings = [ring(128, 4), ring(128, 4)];
        let text = advice(136 << 10, 100 << 10, &rings, 64 << 10);
        let expected = "use 2 stages, each of which takes 32768 bytes, or smaller blocks";
        assert_eq!(text, expected);
        // 200 KiB of which 160 are one block: with a quarter of it, 40, there are 80, with half of it 120.
        let text = advice(200 << 10, 100 << 10, &[], 160 << 10);
        let expected = "use smaller blocks, the first of these by a factor of 4";
        assert_eq!(text, expected);
        // Without the largest there is still too much.
        let text = advice(200 << 10, 100 << 10, &[], 64 << 10);
        assert_eq!(text, "use smaller blocks");
    }
}
