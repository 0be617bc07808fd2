//! The pipeline: every pass by name, in order, from a block program to PTX.
//!
//! ```text
//! tile IR --tile passes--> tile IR with layouts --expand--> thread IR --thread passes--> thread IR with placed memory
//!         --select, schedule, allocate--> machine code --write--> PTX
//! ```
//!
//! Each stage is a function below; what a pass does stands in its own file. After each pass the program is shown to whoever
//! watches and, if [`Options::verify_passes`] is set, verified, so that an error names the pass at fault.
//!
//! **Resources.** Some passes spend shared memory on what could stay in registers. How much conversions of layouts need besides
//! is known only after expansion, so the first of the [`ResourcePlan`] plans with which the kernel fits is the one that counts (`pipeline/fit.rs`).

mod fit;

use std::fmt;

pub(crate) use self::fit::run;
use crate::analysis::axis::Axis;
use crate::device_print;
use crate::error::CompileError;
use crate::expand::expand;
use crate::ir::entities::Inst;
use crate::ir::function::{Asked, Function, ThreadFunction, TileFunction};
use crate::ir::level::Level;
use crate::ir::map_recipe::HostNumbers;
use crate::ir::ops::TileOp;
use crate::layout::assign::{LayoutStats, assign_layouts};
use crate::machine::allocator_view::CodeProgram;
use crate::machine::listing::MachineCode;
use crate::machine::remake_predicates::remake_predicates;
use crate::machine::schedule::schedule;
use crate::machine::select::select;
use crate::ptx;
use crate::regalloc;
use crate::settings::diversity::{ChoiceSite, Choices};
use crate::settings::{Asserts, Options, Promote, PtxVersion, Target};
use crate::thread::branch_around_copies::branch_around_copies;
use crate::thread::branch_around_rare::branch_around_rare;
use crate::thread::delay_copies::delay_copies;
use crate::thread::drop_parameters::drop_parameters;
use crate::thread::fence_copies::fence_copies;
use crate::thread::hold_waits::hold_waits;
use crate::thread::insert_barriers::insert_barriers;
use crate::thread::keep_operands::keep_operands;
use crate::thread::multiply_by_reciprocals::multiply_by_reciprocals;
use crate::thread::place_shared::place_shared;
use crate::thread::simplify_divisions::simplify_divisions;
use crate::thread::slice_operands::slice_operands;
use crate::thread::start_in_turns::start_in_turns;
use crate::thread::start_sums::start_sums;
use crate::thread::unmask_loops::unmask_loops;
use crate::thread::wait_before_joins::wait_before_joins;
use crate::tile::add_invariants_first::add_invariants_first;
use crate::tile::advance_scalars::advance_scalars;
use crate::tile::apply_promises::apply_promises;
use crate::tile::bound_waits::bound_waits;
use crate::tile::compare_narrow::compare_narrow;
use crate::tile::compute_again::compute_again;
use crate::tile::count_loops::count_loops;
use crate::tile::defer_sums::defer_sums;
use crate::tile::eliminate_dead_code::eliminate_dead_code;
use crate::tile::fetch_boxes::fetch_boxes;
use crate::tile::flatten_loops::flatten_loops;
use crate::tile::forget_layouts::forget_layouts;
use crate::tile::form_roles::{form_roles, has_warpgroup_alone};
use crate::tile::fuse_multiply_adds::fuse_multiply_adds;
use crate::tile::hoist_invariants::hoist_invariants;
use crate::tile::join_branches::join_branches;
use crate::tile::legalize::legalize;
use crate::tile::lift_integers::lift_integers;
use crate::tile::load_ahead::load_ahead;
use crate::tile::load_early::load_early;
use crate::tile::loop_over_programs::{can_loop_over_programs, loop_over_programs};
use crate::tile::lower_dots::lower_dots;
use crate::tile::lower_math::lower_math;
use crate::tile::merge_equal_values::merge_equal_values;
use crate::tile::narrow_loads::narrow_loads;
use crate::tile::nest_loops::nest_loops;
use crate::tile::order_programs::{order_programs, uneven};
use crate::tile::order_sums::order_sums;
use crate::tile::orient_packs::orient_packs;
use crate::tile::pipeline_loops::{CutStages, pipeline_loops};
use crate::tile::predicate_loads::predicate_loads;
use crate::tile::promote::{Programs, Promotion, Refusal, promote};
use crate::tile::resources::ResourcePlan;
use crate::tile::rotate_loops::rotate_loops;
use crate::tile::settle_asserts::settle_asserts;
use crate::tile::settle_comparisons::settle_comparisons;
use crate::tile::share_counters::share_counters;
use crate::tile::share_operands::{copy_loaded, share_invariant, share_loaded, split_readers};
use crate::tile::simplify::simplify;
use crate::tile::split_quotients::split_quotients;
use crate::tile::spread_sums::spread_sums;
use crate::tile::start_dots::start_dots;
use crate::tile::transpose_products::transpose_products;
use crate::tile::unroll_loops::unroll_loops;
use crate::verify::{VerifierErrors, verify, verify_rings, verify_roles};

/// The kernel as it stands after a pass.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Snapshot<'a> {
    /// A block program.
    Tile(&'a TileFunction),
    /// What one thread does.
    Thread(&'a ThreadFunction),
    /// Instructions of the machine, over virtual registers or over those that were allocated.
    Machine(MachineCode<'a>),
}

impl fmt::Display for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Snapshot::Tile(func) => func.fmt(f),
            Snapshot::Thread(func) => func.fmt(f),
            Snapshot::Machine(code) => code.fmt(f),
        }
    }
}

/// What was done to a tile function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TileStats {
    /// What layout assignment arrived at.
    pub layouts: LayoutStats,
    /// Stages that shared memory has too little room for.
    pub cut_stages: Option<CutStages>,
    /// What became of loads and stores that could be those of tensor maps.
    pub promotions: Vec<Promotion>,
}

/// What comes out at the end.
pub(crate) struct Output {
    /// What the kernel prints and asserts.
    pub(crate) sites: Vec<device_print::Site>,
    /// What was done to the block program.
    pub(crate) tile: TileStats,
    /// Which promises of its parameters were asked for.
    pub(crate) asked: Vec<Asked>,
    /// What one thread does.
    pub(crate) thread: ThreadFunction,
    /// Whether a CTA executes several programs.
    pub(crate) persistent: bool,
    /// Bytes of shared memory.
    pub(crate) shared: u32,
    /// Barriers placed.
    pub(crate) barriers: usize,
    pub(crate) ptx: String,
    pub(crate) ptx_version: PtxVersion,
    pub(crate) machine: ptx::Stats,
}

/// Shows what each pass leaves behind, and verifies it.
struct Watch<'a> {
    show: &'a mut dyn FnMut(&str, Snapshot<'_>),
    verifies: bool,
    /// What is asked of the rings that loops were scheduled with.
    rings: fn(&TileFunction, bool) -> Result<(), VerifierErrors>,
}

impl Watch<'_> {
    fn tile(&mut self, pass: &'static str, func: &TileFunction) -> Result<(), CompileError> {
        (self.show)(pass, Snapshot::Tile(func));
        self.check(pass, func)
    }

    fn thread(&mut self, pass: &'static str, func: &ThreadFunction) -> Result<(), CompileError> {
        (self.show)(pass, Snapshot::Thread(func));
        self.check(pass, func)
    }

    fn machine(&mut self, pass: &'static str, code: MachineCode<'_>) {
        (self.show)(pass, Snapshot::Machine(code));
    }

    /// A pass that leaves an invalid function behind is a bug of ours.
    fn check<L: Level>(&self, pass: &'static str, func: &Function<L>) -> Result<(), CompileError> {
        if !self.verifies {
            return Ok(());
        }
        verify(func).map_err(|errors| internal(pass, &errors))
    }

    fn rings(&self, func: &TileFunction) -> Result<(), CompileError> {
        (self.rings)(func, self.verifies).map_err(|errors| internal("schedule", &errors))
    }
}

/// Verifies rings: of kernels with roles in every compilation, so that none that hangs is launched.
fn checked_rings(func: &TileFunction, verifies: bool) -> Result<(), VerifierErrors> {
    match verifies {
        true => verify_rings(func),
        false => verify_roles(func),
    }
}

fn internal(pass: &'static str, errors: &VerifierErrors) -> CompileError {
    CompileError::Internal {
        pass,
        message: errors.to_string(),
    }
}

/// The kernel with tensor maps, before pipelines are made, and what became of loads and stores that could be those of maps.
pub(crate) fn promoted(
    func: &TileFunction,
    target: Target,
    options: &Options,
) -> Result<(TileFunction, Vec<Promotion>), CompileError> {
    options.check(target).map_err(CompileError::Settings)?;
    verify(func).map_err(CompileError::Invalid)?;
    let mut watch = Watch {
        show: &mut |_, _| {},
        verifies: options.verify_passes,
        rings: checked_rings,
    };
    let mut func = func.clone();
    let resources = ResourcePlan::ALL;
    clean_passes(&mut func, target, options, &mut watch)?;
    transpose_passes(&mut func, target, &resources, &mut watch)?;
    let promotions = map_passes(
        &mut func,
        Programs::One,
        target,
        options,
        &resources,
        &mut watch,
    )?;
    Ok((func, promotions))
}

/// The tile passes alone. `on_pass_end` sees the function after each.
#[cfg(test)]
pub(crate) fn optimize(
    func: &mut TileFunction,
    target: Target,
    options: &Options,
    resources: ResourcePlan,
    on_pass_end: &mut dyn FnMut(&str, &TileFunction),
) -> Result<TileStats, CompileError> {
    let mut show = |pass: &str, snapshot: Snapshot<'_>| {
        if let Snapshot::Tile(func) = snapshot {
            on_pass_end(pass, func);
        }
    };
    let mut watch = Watch {
        show: &mut show,
        verifies: options.verify_passes,
        rings: checked_rings,
    };
    tile_passes(func, target, options, resources, &mut watch)
}

/// Block programs: cleaned, lowered to what the target has, pipelined, and with a layout for every block.
///
/// The order matters in four places: contraction looks for products with one use, so dead code and copies go
/// first; it comes before legalization, which takes products and sums apart; what lowering writes per element is
/// often uniform or invariant, so the cleaning passes run again after it; layouts come last, because they multiply
/// index arithmetic.
fn tile_passes(
    func: &mut TileFunction,
    target: Target,
    options: &Options,
    resources: ResourcePlan,
    watch: &mut Watch<'_>,
) -> Result<TileStats, CompileError> {
    span!(TRACE, "tile");
    // What rings of the kernel's own hold is its author's business.
    let has_rings = func.slots.keys().any(|slot| func.buffers[slot].is_some());
    clean_passes(func, target, options, watch)?;
    transpose_passes(func, target, &resources, watch)?;
    let mut several = func.clone();
    let uneven = uneven(func);
    let mut promotions = fetch_passes(func, Programs::One, target, options, &resources, watch)?;
    if let Some(uneven) = uneven {
        order_programs(func, uneven);
        watch.tile("order_programs", func)?;
    }
    let choices = |site| Choices::new(options.diversity, site);
    let mut has_roles = form_roles(func, target, &resources);
    if has_roles {
        watch.tile("form_roles", func)?;
    }
    // Of programs in a loop the warps of one multiply while those of another one store.
    let may_turn = has_warpgroup_alone(func, target, &resources);
    if (has_roles || may_turn) && can_loop_over_programs(&several, uneven, &resources) {
        let mut unseen = Watch {
            show: &mut |_, _| {},
            verifies: watch.verifies,
            rings: watch.rings,
        };
        let promoted = fetch_passes(
            &mut several,
            Programs::Several,
            target,
            options,
            &resources,
            &mut unseen,
        )?;
        loop_over_programs(&mut several, uneven);
        hoist_invariants(&mut several);
        if form_roles(&mut several, target, &resources) && (has_roles || 1 < several.groups()) {
            *func = several;
            has_roles = true;
            promotions = promoted;
            watch.tile("loop_over_programs", func)?;
        }
    }
    if load_early(func) > 0 {
        watch.tile("load_early", func)?;
    }
    let axis = Axis::compute(func);
    let pipelined = pipeline_loops(func, &axis, target, &resources, choices(ChoiceSite::Stages));
    if pipelined.loops > 0 || has_roles {
        watch.tile("pipeline_loops", func)?;
        simplify(func);
        merge_equal_values(func);
        hoist_invariants(func);
        eliminate_dead_code(func);
        watch.tile("eliminate_dead_code_last", func)?;
    }
    if fetch_boxes(func) > 0 {
        watch.tile("fetch_boxes", func)?;
    }
    if resources.shared_operands && copy_loaded(func, target) > 0 {
        eliminate_dead_code(func);
        watch.tile("copy_loaded", func)?;
    }
    if resources.shared_operands && share_loaded(func, target) > 0 {
        watch.tile("share_loaded", func)?;
    }
    if options.asserts == Asserts::Report && bound_waits(func) > 0 {
        watch.tile("bound_waits", func)?;
    }
    if split_readers(func) > 0 {
        watch.tile("split_readers", func)?;
    }
    if resources.warpgroup_units && start_dots(func, target) > 0 {
        eliminate_dead_code(func);
        watch.tile("start_dots", func)?;
    }
    let axis = Axis::compute(func);
    if !has_rings {
        watch.rings(func)?;
    }
    let layouts = assign_layouts(func, &axis, target, choices(ChoiceSite::Layouts));
    watch.tile("assign_layouts", func)?;
    if compare_narrow(func, target) > 0 {
        eliminate_dead_code(func);
        watch.tile("compare_narrow", func)?;
    }
    if load_ahead(func) > 0 {
        watch.tile("load_ahead", func)?;
    }
    let most = Target::most_registers(func.num_threads());
    let most = most.min(options.max_registers.map_or(most, u32::from));
    if compute_again(func, most) > 0 {
        eliminate_dead_code(func);
        watch.tile("compute_again", func)?;
    }
    if order_sums(func) > 0 {
        eliminate_dead_code(func);
        watch.tile("order_sums", func)?;
    }
    Ok(TileStats {
        layouts,
        cut_stages: pipelined.cut,
        promotions,
    })
}

/// Cleans up behind a pass that rewrote loads or loops.
fn clean_again(func: &mut TileFunction) {
    simplify(func);
    merge_equal_values(func);
    eliminate_dead_code(func);
}

/// Block programs cleaned, and lowered to what the target has.
fn clean_passes(
    func: &mut TileFunction,
    target: Target,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<(), CompileError> {
    settle_asserts(func, options.asserts);
    if forget_layouts(func) {
        watch.tile("forget_layouts", func)?;
    }
    if apply_promises(func) > 0 {
        watch.tile("apply_promises", func)?;
    }
    simplify(func);
    watch.tile("simplify", func)?;
    merge_equal_values(func);
    watch.tile("merge_equal_values", func)?;
    eliminate_dead_code(func);
    watch.tile("eliminate_dead_code", func)?;

    if orient_packs(func) > 0 {
        watch.tile("orient_packs", func)?;
    }
    if join_branches(func) > 0 {
        watch.tile("join_branches", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_branches_joined", func)?;
    }
    if count_loops(func) > 0 {
        watch.tile("count_loops", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_counted_loops", func)?;
    }
    if nest_loops(func) > 0 {
        watch.tile("nest_loops", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_nests", func)?;
    }
    if settle_comparisons(func) > 0 {
        watch.tile("settle_comparisons", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_comparisons", func)?;
    }
    if split_quotients(func) > 0 {
        watch.tile("split_quotients", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_quotients", func)?;
    }
    if predicate_loads(func) > 0 {
        watch.tile("predicate_loads", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_branches", func)?;
    }
    if share_counters(func) > 0 {
        watch.tile("share_counters", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_counters", func)?;
    }
    if unroll_loops(func, target) > 0 {
        watch.tile("unroll_loops", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_loops", func)?;
    }
    if narrow_loads(func) > 0 {
        watch.tile("narrow_loads", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_narrow_loads", func)?;
    }
    if lift_integers(func, target) > 0 {
        watch.tile("lift_integers", func)?;
    }
    if defer_sums(func, options.fp_fusion) > 0 {
        watch.tile("defer_sums", func)?;
    }
    if spread_sums(func, target, options.fp_fusion) > 0 {
        watch.tile("spread_sums", func)?;
    }
    lower_dots(func, target);
    watch.tile("lower_dots", func)?;
    lower_math(func);
    watch.tile("lower_math", func)?;
    if options.fp_fusion {
        fuse_multiply_adds(func, target);
        watch.tile("fuse_multiply_adds", func)?;
    }
    legalize(func, target);
    watch.tile("legalize", func)?;

    simplify(func);
    watch.tile("simplify_again", func)?;
    merge_equal_values(func);
    watch.tile("merge_equal_values_again", func)?;
    hoist_invariants(func);
    watch.tile("hoist_invariants", func)?;
    if add_invariants_first(func) > 0 {
        watch.tile("add_invariants_first", func)?;
        hoist_invariants(func);
    }
    eliminate_dead_code(func);
    watch.tile("eliminate_dead_code_again", func)?;

    Ok(())
}

/// Products as those of the transposes, where units read these better.
fn transpose_passes(
    func: &mut TileFunction,
    target: Target,
    resources: &ResourcePlan,
    watch: &mut Watch<'_>,
) -> Result<(), CompileError> {
    if resources.warpgroup_units && transpose_products(func, target) > 0 {
        watch.tile("transpose_products", func)?;
        clean_again(func);
        watch.tile("eliminate_dead_code_of_transposes", func)?;
    }
    Ok(())
}

/// How blocks of memory come to products: by tensor maps where they can, and in loops that are turned to begin in the middle.
fn fetch_passes(
    func: &mut TileFunction,
    programs: Programs,
    target: Target,
    options: &Options,
    resources: &ResourcePlan,
    watch: &mut Watch<'_>,
) -> Result<Vec<Promotion>, CompileError> {
    // What a program reads once can come while the one before is executed, and then stands in shared memory by itself.
    if programs == Programs::One && resources.shared_operands && share_invariant(func, target) > 0 {
        watch.tile("share_invariant", func)?;
    }
    let promotions = map_passes(func, programs, target, options, resources, watch)?;
    // What counts a nest's iterations is to stand in front of the loop around it.
    while flatten_loops(func) > 0 {
        watch.tile("flatten_loops", func)?;
        clean_again(func);
        hoist_invariants(func);
        watch.tile("hoist_invariants_of_flat_loops", func)?;
    }
    let choices = Choices::new(options.diversity, ChoiceSite::Rotation);
    if rotate_loops(func, target, resources, choices) > 0 {
        watch.tile("rotate_loops", func)?;
        simplify(func);
        merge_equal_values(func);
        hoist_invariants(func);
        eliminate_dead_code(func);
        watch.tile("eliminate_dead_code_of_rotations", func)?;
    }
    let axis = Axis::compute(func);
    if advance_scalars(func, &axis) > 0 {
        watch.tile("advance_scalars", func)?;
    }
    Ok(promotions)
}

/// Loads and stores by tensor maps.
fn map_passes(
    func: &mut TileFunction,
    programs: Programs,
    target: Target,
    options: &Options,
    resources: &ResourcePlan,
    watch: &mut Watch<'_>,
) -> Result<Vec<Promotion>, CompileError> {
    if !resources.warpgroup_units || options.promote == Promote::Never {
        return Ok(Vec::new());
    }
    let plain = func.clone();
    let mut promotions = promote(func, target, programs, resources);
    if promotions.iter().any(Promotion::is_by_map) {
        watch.tile("promote", func)?;
        simplify(func);
        merge_equal_values(func);
        hoist_invariants(func);
        eliminate_dead_code(func);
        watch.tile("eliminate_dead_code_of_pointers", func)?;
    }
    // What a launcher would compute for each launch is bounded.
    if !func
        .insts_with(TileOp::TensorMap)
        .all(|(_, inst)| is_for_the_host(func, inst))
    {
        *func = plain;
        for promotion in promotions.iter_mut().filter(|it| it.is_by_map()) {
            promotion.refusal = Some(Refusal::Launch);
        }
    }
    Ok(promotions)
}

/// Whether a launcher can compute all numbers of a tensor map.
fn is_for_the_host(func: &TileFunction, map: Inst) -> bool {
    let mut numbers = HostNumbers::new(func);
    let all = &func.dfg.insts[map].args[1..];
    all.iter().all(|&number| numbers.of(number).is_some())
}

/// What one thread does, with a place for each slot of shared memory; and the bytes that these take.
fn expand_and_place(
    tile: &TileFunction,
    target: Target,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<(ThreadFunction, u32), CompileError> {
    span!(TRACE, "expand");
    let choices = |site| Choices::new(options.diversity, site);
    let mut thread = expand(tile, target, choices(ChoiceSite::Exchange))?;
    watch.thread("expand", &thread)?;
    if branch_around_rare(&mut thread) > 0 {
        watch.thread("branch_around_rare", &thread)?;
    }
    if drop_parameters(&mut thread) > 0 {
        watch.thread("drop_parameters", &thread)?;
    }
    if simplify_divisions(&mut thread) > 0 {
        watch.thread("simplify_divisions", &thread)?;
    }
    if multiply_by_reciprocals(&mut thread) > 0 {
        watch.thread("multiply_by_reciprocals", &thread)?;
    }
    if slice_operands(&mut thread) > 0 {
        watch.thread("slice_operands", &thread)?;
    }
    if start_sums(&mut thread) > 0 {
        watch.thread("start_sums", &thread)?;
    }
    if wait_before_joins(&mut thread) > 0 {
        watch.thread("wait_before_joins", &thread)?;
    }
    let shared = place_shared(&mut thread, target, &mut choices(ChoiceSite::Offsets));
    watch.thread("place_shared", &thread)?;
    Ok((thread, shared))
}

/// Barriers between accesses that must not overtake each other, and copies behind what waits for the last ones; the number of
/// barriers.
fn order_accesses(
    thread: &mut ThreadFunction,
    watch: &mut Watch<'_>,
) -> Result<usize, CompileError> {
    span!(TRACE, "order");
    let barriers = insert_barriers(thread);
    watch.thread("insert_barriers", thread)?;
    if start_in_turns(thread) > 0 {
        watch.thread("start_in_turns", thread)?;
    }
    if fence_copies(thread) > 0 {
        watch.thread("fence_copies", thread)?;
    }
    if delay_copies(thread) > 0 {
        watch.thread("delay_copies", thread)?;
    }
    if branch_around_copies(thread) > 0 {
        watch.thread("branch_around_copies", thread)?;
    }
    if keep_operands(thread) > 0 {
        watch.thread("keep_operands", thread)?;
    }
    if hold_waits(thread) > 0 {
        watch.thread("hold_waits", thread)?;
    }
    // Threads part there: barriers are where they will be.
    if unmask_loops(thread) > 0 {
        watch.thread("unmask_loops", thread)?;
    }
    Ok(barriers)
}

/// PTX of what one thread does, and the version of the language it is in: the lowest that has the target and all instructions
/// used.
fn machine_code(
    thread: &ThreadFunction,
    target: Target,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<(String, PtxVersion, ptx::Stats), CompileError> {
    span!(TRACE, "machine");
    let choices = |site| Choices::new(options.diversity, site);
    let mut code = select(thread, target)?;
    watch.machine("select", MachineCode::virtual_registers(&code));
    let most = Target::most_registers(thread.cta_threads());
    let most = options
        .max_registers
        .map_or(most, |bound| most.min(u32::from(bound)));
    schedule(&mut code, most, choices(ChoiceSite::Order));
    watch.machine("schedule", MachineCode::virtual_registers(&code));
    if remake_predicates(&mut code, most) > 0 {
        watch.machine("remake_predicates", MachineCode::virtual_registers(&code));
    }
    let program = CodeProgram(&code);
    let allocation = regalloc::allocate(&program, choices(ChoiceSite::Registers));
    if options.verify_passes {
        regalloc::check::check(&program, &allocation).map_err(|error| CompileError::Internal {
            pass: "allocate",
            message: error.to_string(),
        })?;
    }
    watch.machine("allocate", MachineCode::allocated(&code, &allocation));
    Ok(ptx::module::write(
        thread,
        &code,
        &allocation,
        target,
        options,
    ))
}

/// PTX of what one thread does.
#[cfg(test)]
pub(crate) fn compile_thread(
    thread: &ThreadFunction,
    target: Target,
    options: &Options,
) -> Result<(String, PtxVersion, ptx::Stats), CompileError> {
    let mut watch = Watch {
        show: &mut |_, _| {},
        verifies: options.verify_passes,
        rings: checked_rings,
    };
    machine_code(thread, target, options, &mut watch)
}

#[cfg(test)]
mod tests;
