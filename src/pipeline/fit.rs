//! How a kernel comes to fit: into shared memory, and into the registers of its threads.
//!
//! What conversions of layouts need is known after expansion, and what a thread needs at the end, so a kernel is compiled in rounds,
//! each with a [`ResourcePlan`] that spends less, until it fits. What warpgroups save in time they lose if registers are short: then
//! the kernel does without.
//!
//! **Warps.** A program cannot see how many warps execute it, but for those that ask ([`Function::fixed_warps`]) or have PTX of their
//! author's. So the number that a kernel is given is a hint: where a thread needs far more registers than there are, or too many for
//! products by warpgroups, and those of more warps are enough, or half as many are lacking, it gets these. (A block of 128 x 128
//! sums and one of 128 x 128 products take all registers of four warps, and attention has both: what spills then is loaded
//! and stored in every iteration.)
//!
//! [`Function::fixed_warps`]: crate::ir::function::Function::fixed_warps

use rustc_hash::FxHashSet;

use super::{
    Output, Snapshot, Watch, checked_rings, expand_and_place, machine_code, order_accesses,
    tile_passes,
};
use crate::analysis::depends::dependents;
use crate::analysis::program::ProgramOrder;
use crate::device_print;
use crate::error::CompileError;
use crate::ir::attrs::Attrs;
use crate::ir::effects::How;
use crate::ir::entities::{Block, Inst};
use crate::ir::function::{ParamHints, TileFunction};
use crate::ir::ops::TileOp;
use crate::ptx;
use crate::settings::diversity::{ChoiceSite, Choices};
use crate::settings::{Options, Policy, Target, better_warps};
use crate::thread::check_shared::check_shared;
use crate::tile::promote::holds_small_boxes;
use crate::tile::resources::ResourcePlan;
use crate::tile::start_dots::{has_started_dots, least_registers};
use crate::verify::verify;

/// Registers by which what a kernel needs is too high at most: derivatives of attention for blocks of 64x128 keys are said to need 272
/// and have room in 242; with warpgroups an H100 takes 2.1 ms for them, without 2.4 ms.
const TOO_HIGH: u32 = 24;

/// Registers that a thread lacks from which on more warps share the work: 256 bytes, each of which is stored and loaded.
const MANY: u32 = 64;

/// The same where products go by warpgroups. Of a derivative of attention that lacks 28 nothing spills; products with scales of
/// groups that lack 37 store 544 bytes, attention that lacks 52 stores 2.7 KB.
const MANY_FOR_GROUPS: u32 = 32;

/// Compiles a kernel and shows it to `show` after each pass.
pub(crate) fn run(
    func: &TileFunction,
    target: Target,
    options: &Options,
    show: &mut dyn FnMut(&str, Snapshot<'_>),
) -> Result<Output, CompileError> {
    let mut watch = Watch {
        show,
        verifies: options.verify_passes,
        rings: checked_rings,
    };
    run_watched(func, target, options, &mut watch)
}

pub(super) fn run_watched(
    func: &TileFunction,
    target: Target,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Output, CompileError> {
    options.check(target).map_err(CompileError::Settings)?;
    verify(func).map_err(CompileError::Invalid)?;
    let asked = fit(func, target, options, watch)?;
    let enough = match asked.is_short_for_groups {
        true => MANY_FOR_GROUPS,
        false => MANY,
    };
    if asked.lacking <= enough || !may_have_more_warps(func, options) {
        return Ok(asked.output);
    }
    let Some(warps) = better_warps(func.num_warps(), asked.output.machine.needed_registers) else {
        return Ok(asked.output);
    };
    let mut wider = func.clone();
    wider.set_num_warps(warps);
    match fit(&wider, target, options, watch) {
        Ok(wider) if 2 * wider.lacking * warps <= asked.lacking * func.num_warps() => {
            Ok(wider.output)
        }
        // What is shown last is what counts.
        _ => fit(func, target, options, watch).map(|asked| asked.output),
    }
}

/// Whether a kernel does the same in more warps than it is given: its author has not said what each thread holds, none of its PTX knows
/// threads, and its programs do not wait for each other, for which so many of them may have to be resident.
fn may_have_more_warps(func: &TileFunction, options: &Options) -> bool {
    let is_given = options.fixed_warps
        || func.fixed_warps
        || options.max_registers.is_some()
        || !func.slots.is_empty()
        || func.partitions.len() > 1
        || func.dfg.values.values().any(|v| v.ty.layout.is_some());
    let mut all = func.all_insts();
    !is_given && !all.any(|(_, inst)| knows_threads(func, inst)) && !waits(func)
}

/// Whether an instruction is PTX of the author's that may name threads or count them: it has effects, or reads registers of the
/// machine's.
fn knows_threads(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let reads = || data.ptx().is_none_or(|ptx| ptx.contains('%'));
    data.op == TileOp::InlinePtx && (!data.is_pure() || reads())
}

/// Whether a loop ends by what is read in it, which another program may have to write.
fn waits(func: &TileFunction) -> bool {
    let order = ProgramOrder::compute(func);
    func.insts_with(TileOp::While).any(|(_, inst)| {
        let mut read = FxHashSet::default();
        let mut regions: Vec<Block> = func.regions(inst).collect();
        while let Some(region) = regions.pop() {
            for &inst in func.order.insts(region) {
                regions.extend(func.regions(inst));
                let is_ptx = func.dfg.insts[inst].op == TileOp::InlinePtx;
                if is_ptx
                    || func
                        .accesses(inst)
                        .iter()
                        .any(|access| access.how != How::Write)
                {
                    read.insert(inst);
                }
            }
        }
        let made = dependents(func, &order, |inst| read.contains(&inst));
        let ends = func.regions(inst).next().and_then(|head| {
            let end = func.order.last(head)?;
            func.dfg.insts[end].args.first()
        });
        !read.is_empty() && ends.is_none_or(|&cond| made.contains(cond))
    })
}

/// A kernel that fits as well as it can.
struct Fitted {
    output: Output,
    /// Registers that a thread lacks.
    lacking: u32,
    /// Whether products by warpgroups lack registers. The assembler has them wait for each other then, which costs more than what
    /// spills.
    is_short_for_groups: bool,
}

/// Compiles a kernel with the first plan with which it fits.
fn fit(
    func: &TileFunction,
    target: Target,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Fitted, CompileError> {
    let mut resources = ResourcePlan {
        shared_operands: !Choices::new(options.diversity, ChoiceSite::Sharing).chance(30),
        roles: options.roles,
        persistent: options.persistent,
        max_registers: options.max_registers,
        ..ResourcePlan::ALL
    };
    // What this compilation asks for, in every round.
    let hints: Vec<ParamHints> = func.param_hints.iter().map(ParamHints::unasked).collect();
    // Said of the first plan, which is what the author asked for.
    let mut refusal = None;
    // The registers that products by warpgroups need, which are too many.
    let mut by_groups = None;
    let (tile, thread, done, shared, barriers, (ptx, ptx_version, machine), lacking) = loop {
        let mut tile = func.clone();
        tile.param_hints.clone_from(&hints);
        let done = match tile_passes(&mut tile, target, options, resources, watch) {
            // A schedule that could hang is a bug of ours. Without roles nobody waits for a producer.
            Err(CompileError::Internal { .. })
                if !options.verify_passes && resources.roles != Policy::Never =>
            {
                resources.roles = Policy::Never;
                continue;
            }
            done => done?,
        };
        let (mut thread, shared) = expand_and_place(&tile, target, options, watch)?;
        if let Err(error) = check_shared(shared, target, &tile, &thread) {
            let error = refusal.get_or_insert(error);
            match resources.less(&tile, shared, target.shared_limit()) {
                Some(less) => resources = less,
                None => return Err(error.clone()),
            }
            continue;
        }
        ptx::check_params(&thread)?;
        let barriers = order_accesses(&mut thread, watch)?;
        let mut code = machine_code(&thread, target, options, watch)?;
        let needed = code.2.needed_registers;
        let bound = options.max_registers.map_or(u32::MAX, u32::from);
        let first = Target::most_registers(thread.cta_threads()).min(bound);
        let whole = tile.partitions.values().next();
        let most = whole
            .and_then(|whole| whole.max_registers)
            .map_or(first, u32::from);
        let cannot = least_registers(&tile) > most;
        if has_started_dots(&tile) && (cannot || needed > most + TOO_HIGH && by_groups.is_none()) {
            match tile.producer() {
                _ if resources.small_boxes && holds_small_boxes(&tile) => {
                    resources.small_boxes = false;
                }
                Some(_) => resources.roles = Policy::Never,
                None => {
                    // What has no room for an instruction's sums stays with other units, which spill.
                    by_groups = Some(if cannot { u32::MAX } else { needed });
                    resources.warpgroup_units = false;
                }
            }
            continue;
        }
        if !resources.warpgroup_units && by_groups.is_some_and(|groups| groups < needed) {
            // Other units need even more.
            resources.warpgroup_units = true;
            continue;
        }
        if most > first {
            // All warps begin with as many as there can be, and the program takes the producer's.
            code.2.predicted_registers = first;
            code.2.needed_registers = needed.saturating_sub(most - first);
        }
        let lacking = needed.saturating_sub(most);
        break (tile, thread, done, shared, barriers, code, lacking);
    };
    let sites = device_print::sites(&tile);
    let output = Output {
        sites: sites.into_iter().map(|(_, site)| site).collect(),
        tile: done,
        asked: hints.iter().map(ParamHints::asked).collect(),
        persistent: tile.persistent,
        thread,
        shared,
        barriers,
        ptx,
        ptx_version,
        machine,
    };
    Ok(Fitted {
        output,
        lacking,
        is_short_for_groups: by_groups.is_some(),
    })
}
