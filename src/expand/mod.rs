//! Expansion: from block programs with layouts to what one thread does.
//!
//! A tile value becomes the registers that its layout gives to each thread (`Expanded`): data
//! is a pack, on which one thread op works as a whole; indices, pointers and masks are a few bases plus
//! constants (`Parts`), so that what differs between registers by a constant becomes an
//! immediate of an address. Which accesses can be wide follows from that form and from the bits that can
//! be one (`PossibleBits`), without another analysis: neighbours have one base, one mask, and
//! offsets that count up from an aligned one.
//!
//! Values that depend on the thread index and constants alone are made once, in the entry block.
//! Structured control flow becomes a graph of blocks. Exchanges between warps write and read slots of
//! shared memory; barriers are placed later, by hazard analysis.
//!
//! What a thread may hold and do is bounded (`limits`): the text grows with the elements, so a block too large for its
//! threads would otherwise take minutes and gigabytes, here and in the assembler.
//!
//! Invariant: what is expanded was verified with layouts, so a mismatch is a bug of a pass; it is
//! returned as an error and never panics.

mod arg_reduction;
mod atomic;
mod boxes;
mod byte_transpose;
mod control;
mod convert;
mod dot;
mod elementwise;
mod gather;
mod histogram;
mod hold_loads;
mod index;
mod inline_ptx;
mod known_bits;
mod limits;
mod make;
mod memory;
mod own_elements;
mod packs;
mod partial_copy;
mod print_assert;
mod promise;
mod reduction;
mod reduction_across_lanes;
mod reduction_across_warps;
mod regs;
mod rings;
mod scan;
mod shape;
mod staged;
mod value_ranges;
mod warpgroup;

#[cfg(feature = "tool")]
pub(crate) use rings::drawn_layouts;

use std::cell::OnceCell;
use std::rc::Rc;

use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::FxHashMap;

use crate::analysis::async_groups::AsyncGroups;
use crate::analysis::axis::Axis;
use crate::error::CompileError;
use crate::ir::attrs::SpecialReg;
use crate::ir::builder::ThreadBuilder;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{
    Function, FunctionSize, PROGRAM_NUMBERS, ParamHints, SlotData, ThreadFunction, TileFunction,
};
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, ThreadType, TileType};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::settings::Target;
use crate::settings::diversity::Choices;

use hold_loads::LoadsInFlight;
use known_bits::PossibleBits;
use own_elements::OwnElements;
use regs::Expanded;

/// Expands a kernel whose block values all have layouts. Other `choices` change the ways of conversions and swizzles.
pub fn expand(
    tile: &TileFunction,
    target: Target,
    choices: Choices,
) -> Result<ThreadFunction, CompileError> {
    limits::check_elements(tile, target)?;
    let mut expander = Expander::new(tile, target, choices);
    expander.params();
    expander.find_group()?;
    expander.block(tile.entry)?;
    expander.finish()
}

type Result<T, E = CompileError> = std::result::Result<T, E>;

/// A mismatch that verification should have found.
fn bug<T>(message: impl Into<String>) -> Result<T> {
    Err(CompileError::Internal {
        pass: "expand",
        message: message.into(),
    })
}

/// The values that anything uses.
fn used_values(tile: &TileFunction) -> EntitySet<Value> {
    let mut used = EntitySet::with_capacity(tile.dfg.values.len());
    for (_, inst) in tile.all_insts() {
        used.extend(tile.dfg.uses(inst));
    }
    used
}

/// State of an expansion.
struct Expander<'a> {
    tile: &'a TileFunction,
    target: Target,
    /// Entry block: holds what depends on constants and the thread index alone.
    prologue: Block,
    /// First block of the body; joined to the prologue at the end.
    body: Block,
    /// For each loop of which an attempt failed, what was still assumed of its carried values then.
    weakened: FxHashMap<Inst, Vec<control::CarriedForm>>,
    /// Values that anything uses.
    used: EntitySet<Value>,
    /// What is loaded and to be held, as one instruction reads it.
    read_once: EntitySet<Value>,
    /// Groups of copies that may be under way at waits.
    groups: AsyncGroups,
    /// Fragments in registers that products under way read, by their tokens.
    fragments: FxHashMap<Value, Vec<Value>>,
    /// Blocks in shared memory that only units of matrices read, tile by tile.
    lazy: EntitySet<Value>,
    /// Where the elements of blocks stand in rings.
    rings: FxHashMap<Slot, Rc<LinearLayout>>,
    /// How blocks change their layouts.
    choices: Choices,
    /// Facts about numbers, computed when they are asked for first.
    axis: OnceCell<Axis>,
    /// The same about updates in place.
    own: OnceCell<OwnElements>,
    /// Parameters of a persistent kernel: the numbers of programs along the axes.
    programs: Vec<Value>,
    /// Whether what is expanded is the producer's, of which one thread is left.
    is_producer: bool,
    /// Where groups of warps take turns, the number of the thread's group and of the thread in the CTA.
    group: Option<Group>,
    /// Slots that groups share: rings and barriers, and what goes from one group to the next.
    for_all: EntitySet<Slot>,
    /// Numbers of the places that write to the log.
    sites: FxHashMap<Inst, u32>,
    state: State,
}

/// Bytes of a slot that one group has for itself, so that the next one's begin where any access may.
fn own_bytes(slot: &SlotData) -> u32 {
    slot.bytes.next_multiple_of(slot.align.max(16))
}

/// Which group of warps a thread is of.
#[derive(Clone, Copy, Debug)]
struct Group {
    number: Value,
    thread: Value,
    /// Whether every group goes its own way by now.
    is_apart: bool,
}

/// A place to which an attempt may be taken back.
struct Mark {
    extent: FunctionSize,
    block: Block,
    work: limits::WorkMark,
}

/// What grows while a kernel is expanded.
struct State {
    b: ThreadBuilder,
    values: SecondaryMap<Value, Option<Expanded>>,
    bits: PossibleBits,
    constants: FxHashMap<(ThreadType, u64), Value>,
    thread_parts: FxHashMap<Vec<u32>, Value>,
    specials: FxHashMap<crate::ir::attrs::SpecialReg, Value>,
    leaders: FxHashMap<u32, Value>,
    /// Addresses in slots: of the thread's part given by its columns, with some bits switched.
    shared_bases: FxHashMap<(Option<Block>, Slot, Vec<u32>, u32), Value>,
    /// Descriptors of matrices at the start of a slot: of the group's part given by its columns, and the bits beside the start.
    descriptors: FxHashMap<(Slot, Vec<u32>, u64), Value>,
    /// Addresses of maps, by the numbers of their recipes.
    maps: FxHashMap<usize, Value>,
    staged: staged::Staged,
    /// How much a thread has to do so far.
    work: limits::Work,
}

impl std::ops::Deref for Expander<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl std::ops::DerefMut for Expander<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl<'a> Expander<'a> {
    fn new(tile: &'a TileFunction, target: Target, mut choices: Choices) -> Expander<'a> {
        let mut func: ThreadFunction = Function::new(tile.name.clone(), tile.num_warps());
        func.partitions = tile.partitions.clone();
        func.persistent = tile.persistent;
        func.slots = tile.slots.clone();
        let lazy = rings::lazy_values(tile);
        let rings = rings::ring_layouts(tile, target, &lazy, &mut choices);
        warpgroup::align_slots(tile, &rings, &mut func);
        let mut b = ThreadBuilder::on(func);
        let prologue = b.block();
        let (body, _) = b.new_block(&[]);
        b.append_block(body);
        b.switch_to(body);
        Expander {
            tile,
            target,
            prologue,
            body,
            weakened: FxHashMap::default(),
            used: used_values(tile),
            read_once: hold_loads::read_once(tile),
            axis: OnceCell::new(),
            own: OnceCell::new(),
            groups: AsyncGroups::compute(tile),
            fragments: FxHashMap::default(),
            rings,
            lazy,
            choices,
            programs: Vec::new(),
            is_producer: false,
            group: None,
            for_all: EntitySet::new(),
            sites: (0..)
                .zip(crate::device_print::sites(tile))
                .map(|(number, (inst, _))| (inst, number))
                .collect(),
            state: State {
                b,
                values: SecondaryMap::new(),
                bits: PossibleBits::default(),
                constants: FxHashMap::default(),
                thread_parts: FxHashMap::default(),
                specials: FxHashMap::default(),
                leaders: FxHashMap::default(),
                shared_bases: FxHashMap::default(),
                descriptors: FxHashMap::default(),
                maps: FxHashMap::default(),
                staged: staged::Staged::default(),
                work: limits::Work::default(),
            },
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            extent: self.b.func().extent(),
            block: self.b.block(),
            work: self.work.mark(),
        }
    }

    /// Takes back what was made since. What tile values became stays: those of a region are found anew before they are asked for.
    fn take_back(&mut self, mark: &Mark) {
        let state = &mut self.state;
        state.b.func_mut().shrink_to(&mark.extent);
        state.b.switch_to(mark.block);
        state.work.take_back(mark.work);
        state.bits.forget(mark.extent.values);
        let is_old = |value: &mut Value| value.as_u32() < mark.extent.values;
        state.constants.retain(|_, value| is_old(value));
        state.thread_parts.retain(|_, value| is_old(value));
        state.specials.retain(|_, value| is_old(value));
        state.leaders.retain(|_, value| is_old(value));
        state.shared_bases.retain(|_, value| is_old(value));
        state.descriptors.retain(|_, value| is_old(value));
        state.maps.retain(|_, value| is_old(value));
    }

    fn params(&mut self) {
        for (i, &param) in self.tile.params().iter().enumerate() {
            let ty = ThreadType::scalar(self.tile.dfg.ty(param).elem);
            // What the layouts were chosen by: no more is asked for from here on.
            let hints = self.tile.param_hints[i].relied_on();
            let name = self.tile.param_names[i].clone();
            let zeros = hints.promised().max(1).trailing_zeros();
            let value = self.b.func_mut().append_param(name, ty, hints);
            self.bits.set(value, u64::MAX << zeros);
            self.values[param] = Some(Expanded::Uniform(value));
        }
        if self.tile.persistent {
            self.programs = (0..PROGRAM_NUMBERS)
                .map(|axis| {
                    let mut name = format!("programs.{axis}");
                    while self.tile.param_names.contains(&name) {
                        name.push('.');
                    }
                    let ty = ThreadType::scalar(Elem::I32);
                    self.state
                        .b
                        .func_mut()
                        .append_param(name, ty, ParamHints::default())
                })
                .collect();
        }
    }

    /// Joins prologue and body and hands out the function.
    fn finish(mut self) -> Result<ThreadFunction> {
        let (prologue, body) = (self.prologue, self.body);
        let groups = self.tile.groups();
        let func = self.state.b.func_mut();
        for (slot, data) in func.slots.iter_mut().filter(|_| 1 < groups) {
            if !self.for_all.contains(slot) {
                data.bytes = own_bytes(data).saturating_mul(groups);
            }
        }
        let joined = [func.order.insts(prologue), func.order.insts(body)].concat();
        func.order.replace(body, Vec::new());
        func.order.replace(prologue, joined);
        func.order.blocks.retain(|&b| b != body);
        self.state
            .b
            .finish()
            .or_else(|errors| bug(errors.to_string()))
    }

    /// Expands the instructions of a tile block up to its terminator, which is the caller's business
    /// unless it ends the kernel.
    fn insts(&mut self, block: Block) -> Result<()> {
        let tile = self.tile;
        let mut loads = LoadsInFlight::default();
        for &inst in tile.order.insts(block) {
            let op = tile.dfg.insts[inst].op;
            if matches!(op, TileOp::Yield | TileOp::Condition) {
                break;
            }
            self.send_boxes_before(inst)?;
            self.b.set_loc(tile.dfg.insts[inst].loc);
            self.hold_loads(&mut loads, inst)?;
            let outer = self.work.enter(inst);
            self.inst(inst)?;
            self.work.leave(outer);
        }
        self.send_boxes()
    }

    fn inst(&mut self, inst: Inst) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let result = match data.op {
            TileOp::Return => {
                self.b.ret();
                return Ok(());
            }
            TileOp::Barrier => {
                self.wait_for_all()?;
                return Ok(());
            }
            TileOp::GdcWait if self.target.sm >= 90 => {
                self.b.gdc_wait();
                return Ok(());
            }
            TileOp::GdcLaunchDependents if self.target.sm >= 90 => {
                self.b.gdc_launch_dependents();
                return Ok(());
            }
            TileOp::GdcWait | TileOp::GdcLaunchDependents => return Ok(()),
            TileOp::GroupId => Expanded::Uniform(match self.group {
                Some(group) => group.number,
                None => self.int(Elem::I32, 0),
            }),
            TileOp::NumGroups => {
                let groups = i64::from(self.tile.groups());
                Expanded::Uniform(self.int(Elem::I32, groups))
            }
            TileOp::SlotPut => return self.expand_slot_put(inst),
            TileOp::SlotGet => self.expand_slot_get(inst)?,
            TileOp::SmId => Expanded::Uniform(self.special(SpecialReg::SmId)),
            TileOp::GlobalTimer => {
                // Threads read at different times: one reads for all.
                let read = self.b.global_timer();
                let ty = self.result_type(inst)?;
                Expanded::Uniform(self.share(read, ty, false)?)
            }
            TileOp::Const => self.expand_const(inst)?,
            TileOp::ProgramId | TileOp::NumPrograms | TileOp::CtaId | TileOp::NumCtas => {
                self.expand_program(inst)
            }
            TileOp::Arange => self.expand_arange(inst)?,
            TileOp::Splat => self.arg(inst, 0)?,
            TileOp::ExpandDims => self.expand_expand_dims(inst)?,
            TileOp::Broadcast => self.expand_broadcast(inst)?,
            TileOp::Reshape => self.expand_reshape(inst)?,
            TileOp::Permute => self.expand_permute(inst)?,
            TileOp::Join => self.expand_join(inst)?,
            TileOp::Split => self.expand_split(inst)?,
            TileOp::Gather => self.expand_gather(inst)?,
            TileOp::Histogram => self.expand_histogram(inst)?,
            TileOp::Dot => self.expand_dot(inst)?,
            TileOp::DotStart => return self.expand_dot_start(inst),
            TileOp::DotWait => return self.expand_dot_wait(inst),
            TileOp::DotSum => self.expand_dot_sum(inst)?,
            TileOp::DotDone => return self.expand_dot_done(inst),
            TileOp::TensorMap => Expanded::nothing(),
            TileOp::TensorLoad => return bug("a box that no ring takes"),
            TileOp::TensorCopy => return self.expand_tensor_copy(inst),
            TileOp::TensorStore => return self.expand_tensor_store(inst),
            TileOp::MbarInit => return self.expand_mbar_init(inst),
            TileOp::MbarDrop => return self.expand_mbar_drop(inst),
            TileOp::MbarExpect => return self.expand_mbar_expect(inst),
            TileOp::MbarWait => return self.expand_mbar_wait(inst),
            TileOp::MbarArrive => return self.expand_mbar_arrive(inst),
            // What was read of it is there: sums are waited for, and loads are in registers.
            TileOp::Release => return Ok(()),
            TileOp::Producer => return self.expand_producer(inst),
            TileOp::MbarWaitFor => self.expand_mbar_wait_for(inst)?,
            TileOp::SharedView => self.expand_shared_view(inst)?,
            TileOp::AsyncCopy => self.expand_async_copy(inst)?,
            TileOp::AsyncCommit => {
                self.commit();
                Expanded::nothing()
            }
            TileOp::AsyncWait => {
                let pending = self.groups.pending(inst);
                self.wait(pending);
                return Ok(());
            }
            TileOp::SharedStore => return self.expand_shared_store(inst),
            TileOp::SharedLoad => self.expand_shared_load(inst)?,
            TileOp::ConvertLayout => self.expand_convert(inst)?,
            TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                self.expand_promise(inst)?
            }
            TileOp::Load => self.expand_load(inst)?,
            TileOp::Store => return self.expand_store(inst),
            TileOp::AtomicRmw | TileOp::AtomicCas => return self.expand_atomic(inst),
            TileOp::Reduce => return self.expand_reduce(inst),
            TileOp::DevicePrint | TileOp::DeviceAssert => return self.expand_report(inst),
            TileOp::InlinePtx => return self.expand_inline_ptx(inst),
            TileOp::Scan => return self.expand_scan(inst),
            TileOp::For => return self.expand_for(inst),
            TileOp::While => return self.expand_while(inst),
            TileOp::If => return self.expand_if(inst),
            TileOp::Yield | TileOp::Condition => return bug("a region's terminator out of place"),
            _ => {
                let count = self.registers(self.result_type(inst)?)?;
                self.expand_elementwise(inst, count)?
            }
        };
        self.set_result(inst, result)
    }

    // Tile-side queries.

    /// Whether anything uses the value.
    fn is_used(&self, value: Value) -> bool {
        self.used.contains(value)
    }

    /// Whether no element of a value of the tile level is taken to be negative.
    fn is_non_negative(&self, value: Value) -> bool {
        self.axis().info(value).is_non_negative()
    }

    /// What is known of numbers of the tile level.
    fn axis(&self) -> &Axis {
        self.axis.get_or_init(|| Axis::compute(self.tile))
    }

    /// What other threads have to do with what loads and stores access.
    fn own_elements(&self) -> &OwnElements {
        let copies = |ty| self.copies(ty).ok().map(|(_, threads)| threads);
        self.own
            .get_or_init(|| OwnElements::compute(self.tile, copies))
    }

    fn result_type(&self, inst: Inst) -> Result<TileType> {
        match self.tile.dfg.single_result(inst) {
            Some(value) => Ok(self.tile.dfg.ty(value)),
            None => bug(format!(
                "{} has no single result",
                self.tile.dfg.insts[inst].op
            )),
        }
    }

    fn set_result(&mut self, inst: Inst, expanded: Expanded) -> Result<()> {
        match self.tile.dfg.single_result(inst) {
            Some(value) => {
                let expanded = self.without_copies(expanded, self.tile.dfg.ty(value))?;
                self.values[value] = Some(expanded);
                Ok(())
            }
            None => bug("a result was expected"),
        }
    }

    /// The value; of a pack that may lead to addresses, registers that the layout makes copies become the same value.
    fn without_copies(&mut self, expanded: Expanded, ty: TileType) -> Result<Expanded> {
        if !matches!(expanded, Expanded::Pack(_)) || ty.is_scalar() {
            return Ok(expanded);
        }
        let copies = self.layout(ty)?.free_mask(HwDim::Register) as usize;
        if copies == 0 {
            return Ok(expanded);
        }
        let map: Vec<u16> = (0..self.registers(ty)?)
            .map(|r| (r & !copies) as u16)
            .collect();
        if let Expanded::Pack(pack) = expanded
            && self.is_repeated_index(pack, &map)
        {
            return self.pick(&expanded, &map);
        }
        Ok(expanded)
    }

    fn arg(&self, inst: Inst, index: usize) -> Result<Expanded> {
        match self.tile.dfg.insts[inst].args.get(index) {
            Some(&value) => self.expanded(value),
            None => bug("an operand is missing"),
        }
    }

    fn arg_type(&self, inst: Inst, index: usize) -> Result<TileType> {
        match self.tile.dfg.insts[inst].args.get(index) {
            Some(&value) => Ok(self.tile.dfg.ty(value)),
            None => bug("an operand is missing"),
        }
    }

    fn expanded(&self, value: Value) -> Result<Expanded> {
        match &self.values[value] {
            Some(expanded) => Ok(expanded.clone()),
            None => bug(format!("{value} was not expanded")),
        }
    }

    fn layout(&self, ty: TileType) -> Result<&'a LinearLayout> {
        match ty.layout.expand().and_then(|id| self.tile.layouts.get(id)) {
            Some(layout) => Ok(layout),
            None => bug(format!("a block without layout: {ty}")),
        }
    }

    /// Registers of each thread that hold a value of the type.
    fn registers(&self, ty: TileType) -> Result<usize> {
        if ty.is_scalar() {
            Ok(1)
        } else {
            Ok(self.layout(ty)?.num_registers() as usize)
        }
    }
}
