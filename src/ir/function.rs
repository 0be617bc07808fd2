//! Functions, their parameters and what belongs to a function as a whole.

use std::fmt;

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use super::dfg::{Dfg, InstData};
use super::entities::{Block, Inst, Partition, Slot, Value};
pub use super::hints::{Asked, ParamHints};
use super::level::{Level, Thread, Tile};
use super::ops::{Opcode, TileOp};

use super::map_recipe::MapRecipe;
use super::order::Order;
use super::types::Scalar;
use crate::linear_layout::pool::LayoutPool;
use crate::linear_layout::shape::Shape;
use crate::settings::LANES;

/// Alignment of rings of blocks: the banks start anew every 128 bytes.
const BUFFER_ALIGN: u32 = 128;

/// Bytes of a barrier on which copies arrive, and their alignment.
pub const MBAR_BYTES: u32 = 8;

/// Numbers that a persistent kernel gets by value behind its parameters, in front of its maps: how many programs there are along each
/// axis, i32.
pub const PROGRAM_NUMBERS: usize = 3;

/// A buffer in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotData {
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Distance from the start of the kernel's shared memory in bytes, once placed.
    pub offset: Option<u32>,
    /// Whether each group of warps that an engine takes together accesses a part of its own, so that its threads wait for each
    /// other alone.
    pub by_group: bool,
}

/// What a slot of the tile level holds: a ring of blocks in shared memory. Where elements stand in it follows from the
/// layouts of what accesses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferData {
    /// Elements of the blocks.
    pub elem: Scalar,
    /// Extents of the blocks.
    pub shape: Shape,
    /// Number of blocks.
    pub stages: u32,
}

/// As in `3 blocks of f16[64,32]`.
impl fmt::Display for BufferData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = if self.stages == 1 { "block" } else { "blocks" };
        let (stages, elem, shape) = (self.stages, self.elem, self.shape);
        write!(f, "{stages} {blocks} of {elem}[{shape}]")
    }
}

impl BufferData {
    /// Bytes of one block.
    pub fn stage_bytes(&self) -> u32 {
        self.elem.bytes() << self.shape.log2_elements()
    }
}

/// A range of warps that executes code of its own: the program, and what brings it blocks of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionData {
    /// First warp of the range.
    pub first_warp: u32,
    /// Number of warps, a power of two.
    pub num_warps: u32,
    /// How many groups of so many warps execute the code, each for itself: more than one only of a persistent program, whose groups
    /// take turns.
    pub groups: u32,
    /// Registers each thread may use, if the range has a budget of its own.
    pub max_registers: Option<u16>,
}

impl PartitionData {
    /// Warps of all groups.
    pub fn all_warps(&self) -> u32 {
        self.num_warps.saturating_mul(self.groups)
    }
}

/// A kernel at one of the two levels.
#[derive(Clone, Debug)]
pub struct Function<L: Level> {
    /// Name of the kernel.
    pub name: String,
    /// Hints, one per parameter of the entry block.
    pub param_hints: Vec<ParamHints>,
    /// Names of the parameters for messages and metadata, one per parameter of the entry block.
    pub param_names: Vec<String>,
    /// Data flow.
    pub dfg: Dfg<L>,
    /// Program order.
    pub order: Order,
    /// First block; its parameters are the kernel's.
    pub entry: Block,
    /// Layouts that types refer to.
    pub layouts: LayoutPool,
    /// Shared-memory buffers.
    pub slots: PrimaryMap<Slot, SlotData>,
    /// What the slots of the tile level hold.
    pub buffers: SecondaryMap<Slot, Option<BufferData>>,
    /// Warp ranges: the program's, and that of its producer if there is one ([`TileOp::Producer`]).
    pub partitions: PrimaryMap<Partition, PartitionData>,
    /// Whether the body is executed once for each CTA of a launch, of which there may be any number, and not once for each program:
    /// a loop in it goes through programs, whose number `num_programs` still gives.
    pub persistent: bool,
    /// Whether the program has as many warps as its partition says, whatever registers they need; else that is a hint.
    pub fixed_warps: bool,
    /// Tensor maps that the launcher makes from the other arguments. The kernel gets them by value behind its parameters.
    pub maps: Vec<MapRecipe>,
}

/// How much a function holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionSize {
    insts: u32,
    pub(crate) values: u32,
    blocks: u32,
    placed: usize,
    slots: usize,
}

/// A kernel of the tile IR.
pub type TileFunction = Function<Tile>;

/// A kernel of the thread IR.
pub type ThreadFunction = Function<Thread>;

impl<L: Level> Function<L> {
    /// How much it holds by now.
    pub(crate) fn extent(&self) -> FunctionSize {
        FunctionSize {
            insts: self.dfg.insts.next_key().as_u32(),
            values: self.dfg.values.next_key().as_u32(),
            blocks: self.dfg.blocks.next_key().as_u32(),
            placed: self.order.blocks.len(),
            slots: self.slots.len(),
        }
    }

    /// Takes back what was added since it held this much: instructions at the ends of blocks, values, blocks and slots. Takes
    /// the time of what goes.
    pub(crate) fn shrink_to(&mut self, extent: &FunctionSize) {
        self.order
            .truncate(extent.insts, extent.blocks, extent.placed);
        truncate(&mut self.dfg.insts, extent.insts as usize);
        truncate(&mut self.dfg.values, extent.values as usize);
        truncate(&mut self.dfg.blocks, extent.blocks as usize);
        truncate(&mut self.slots, extent.slots);
    }

    /// An empty kernel without parameters.
    pub fn new(name: impl Into<String>, num_warps: u32) -> Function<L> {
        let mut dfg = Dfg::default();
        let entry = dfg.make_block();
        let mut order = Order::default();
        order.blocks.push(entry);
        let mut partitions = PrimaryMap::new();
        partitions.push(PartitionData {
            first_warp: 0,
            num_warps,
            groups: 1,
            max_registers: None,
        });
        Function {
            name: name.into(),
            param_hints: Vec::new(),
            param_names: Vec::new(),
            dfg,
            order,
            entry,
            layouts: LayoutPool::default(),
            slots: PrimaryMap::new(),
            buffers: SecondaryMap::new(),
            partitions,
            persistent: false,
            fixed_warps: false,
            maps: Vec::new(),
        }
    }

    /// Adds a parameter to the kernel.
    pub fn append_param(
        &mut self,
        name: impl Into<String>,
        ty: L::Type,
        hints: ParamHints,
    ) -> Value {
        self.param_names.push(name.into());
        self.param_hints.push(hints);
        self.dfg.append_param(self.entry, ty)
    }

    /// The kernel's parameters.
    pub fn params(&self) -> &[Value] {
        &self.dfg.blocks[self.entry].params
    }

    /// Adds a ring of blocks in shared memory.
    pub fn add_buffer(&mut self, data: BufferData) -> Slot {
        let slot = self.slots.push(SlotData {
            bytes: data.stages * data.stage_bytes(),
            align: BUFFER_ALIGN,
            offset: None,
            by_group: false,
        });
        self.buffers[slot] = Some(data);
        slot
    }

    /// Adds barriers in shared memory.
    pub fn add_barriers(&mut self, count: u32) -> Slot {
        self.slots.push(SlotData {
            bytes: count * MBAR_BYTES,
            align: MBAR_BYTES,
            offset: None,
            by_group: false,
        })
    }

    /// Groups of warps that execute the program.
    pub fn groups(&self) -> u32 {
        self.partitions.values().next().map_or(1, |p| p.groups)
    }

    /// Warps of the program, or of each group that executes it.
    pub fn num_warps(&self) -> u32 {
        self.partitions.values().next().map_or(1, |p| p.num_warps)
    }

    /// Warps of a CTA: the program's, and those that bring it blocks of memory.
    pub fn cta_warps(&self) -> u32 {
        self.partitions
            .values()
            .map(|p| p.first_warp.saturating_add(p.all_warps()))
            .max()
            .unwrap_or(1)
    }

    /// The warps that bring the program blocks of memory, if there are any.
    pub fn producer(&self) -> Option<PartitionData> {
        self.partitions.values().nth(1).copied()
    }

    /// Sets the number of warps of a kernel with a single partition.
    pub fn set_num_warps(&mut self, num_warps: u32) {
        if let Some(whole) = self.partitions.values_mut().next() {
            whole.num_warps = num_warps;
        }
    }

    /// Threads of the program.
    pub fn num_threads(&self) -> u32 {
        self.num_warps().saturating_mul(LANES)
    }

    /// Threads of a CTA.
    pub fn cta_threads(&self) -> u32 {
        self.cta_warps().saturating_mul(LANES)
    }

    /// Every block in use in an order in which definitions come before uses: the blocks of the body,
    /// each followed by the regions its instructions own. Each block is there once, even where a function that
    /// the verifier refuses has regions inside of themselves.
    pub fn all_blocks(&self) -> Vec<Block> {
        let mut out = Vec::new();
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &self.order.blocks {
            self.push_nested(block, &mut seen, &mut out);
        }
        out
    }

    /// Every instruction in use, with the block that it stands in, in the same order.
    pub fn all_insts(&self) -> impl Iterator<Item = (Block, Inst)> + '_ {
        let blocks = self.all_blocks().into_iter();
        blocks.flat_map(|block| {
            let insts = self.order.insts(block).iter();
            insts.map(move |&inst| (block, inst))
        })
    }

    /// Of these the ones with an op.
    pub fn insts_with(&self, op: L::Op) -> impl Iterator<Item = (Block, Inst)> + '_ {
        let all = self.all_insts();
        all.filter(move |&(_, inst)| self.dfg.insts[inst].op == op)
    }

    fn push_nested(&self, root: Block, seen: &mut SecondaryMap<Block, bool>, out: &mut Vec<Block>) {
        // An explicit stack: nesting depth is the input's to choose.
        let mut stack = vec![root];
        while let Some(block) = stack.pop() {
            if std::mem::replace(&mut seen[block], true) {
                continue;
            }
            out.push(block);
            let from = stack.len();
            for &inst in self.order.insts(block) {
                stack.extend(self.regions(inst));
            }
            stack[from..].reverse();
        }
    }

    /// Whether anything in a region satisfies the condition, regions of its instructions among it.
    pub fn any_inside(&self, region: Block, is: &dyn Fn(&InstData<L>) -> bool) -> bool {
        self.order.insts(region).iter().any(|&inst| {
            is(&self.dfg.insts[inst]) || self.regions(inst).any(|inner| self.any_inside(inner, is))
        })
    }

    /// The regions an instruction owns.
    pub fn regions(&self, inst: Inst) -> impl Iterator<Item = Block> + '_ {
        let data = &self.dfg.insts[inst];
        let owns = data.op.info().owns_regions();
        data.blocks
            .iter()
            .filter(move |_| owns)
            .map(|call| call.block)
    }
}

/// Takes the last entries of a map.
fn truncate<K: EntityRef, V>(map: &mut PrimaryMap<K, V>, len: usize) {
    let mut entries: Vec<V> = std::mem::take(map).into();
    entries.truncate(len);
    *map = entries.into();
}

impl TileFunction {
    /// The op of a region that combines its parameters by a single one, whose operands commute.
    pub fn single_op(&self, region: Block) -> Option<TileOp> {
        let &[only, end] = self.order.insts(region) else {
            return None;
        };
        let data = &self.dfg.insts[only];
        let params = &self.dfg.blocks[region].params;
        let are_params = data.args == *params || data.args.iter().eq(params.iter().rev());
        let is_yielded = self.dfg.insts[end].args[..] == data.results[..];
        (are_params && is_yielded && data.op.info().effects.commutes).then_some(data.op)
    }
}
