//! Expansion of rings of blocks in shared memory: copies into them, and loads from them.
//!
//! Where an element stands is linear in its index, and which element a thread accesses is linear in the number of the
//! thread, so an address is the exclusive or of a part for each bit of the thread's number. That part, and what the
//! constant of an access switches in it, is computed once, before all loops; where the constant touches no bit of it, it goes
//! into the immediate of the instruction. The entry of the ring is added.

use std::borrow::Cow;
use std::rc::Rc;

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attr, Attrs, Flag, MmaUnit, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType};
use crate::layout::swizzle::{self, Offsets};
use crate::layout::{matrix, warpgroup};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::settings::Target;
use crate::settings::diversity::Choices;

use super::byte_transpose;
use super::memory::slot_attrs;
use super::partial_copy::{Ends, Sizes};
use super::regs::{Expanded, SharedBlock, Start};
use super::{Expander, Result, bug};

/// Widest access in bytes.
pub(super) const MAX_ACCESS_BYTES: u32 = 16;

/// Fewest bytes that a copy moves at once.
const MIN_COPY_BYTES: u32 = 4;

/// Blocks in shared memory that only products of matrices in the same block of code read, and blocks of bytes that are only stored to
/// another place.
pub(super) fn lazy_values(tile: &TileFunction) -> EntitySet<Value> {
    let is_view = |data: &InstData<Tile>| matches!(data.op, TileOp::SharedLoad | TileOp::Permute);
    let mut lazy = EntitySet::new();
    if !tile
        .dfg
        .insts
        .values()
        .any(|data| data.op == TileOp::SharedLoad)
    {
        return lazy;
    }
    // What anything else uses must be in registers; a change of shape passes that on to its operand.
    let mut others: EntitySet<Value> = EntitySet::new();
    for block in tile.all_blocks().into_iter().rev() {
        for &inst in tile.order.insts(block).iter().rev() {
            let data = &tile.dfg.insts[inst];
            let passes = data.op == TileOp::Permute && !others.contains(data.results[0]);
            for (i, value) in tile.dfg.uses(inst).enumerate() {
                let made = tile.dfg.def_inst(value);
                let is_near = made.is_some_and(|m| tile.order.block_of(m) == Some(block));
                let reads_there = data.op == TileOp::Dot && i < 2
                    || byte_transpose::is_loaded_for_store(tile, inst, value);
                if !(is_near && (reads_there || passes)) {
                    others.insert(value);
                }
            }
            if is_view(data) && !others.contains(data.results[0]) {
                lazy.insert(data.results[0]);
            }
        }
    }
    lazy
}

/// Of the blocks in shared memory that are `lazy` those that m8n8k4 reads.
fn read_in_quad_pairs(
    tile: &TileFunction,
    target: Target,
    lazy: &EntitySet<Value>,
) -> EntitySet<Value> {
    let mut found = EntitySet::new();
    for block in tile.all_blocks().into_iter().rev() {
        for &inst in tile.order.insts(block).iter().rev() {
            let data = &tile.dfg.insts[inst];
            let reads = match data.op {
                TileOp::Dot => matrix::unit(&matrix::dot_info(tile, inst), target)
                    .is_some_and(MmaUnit::is_quad_pairs),
                TileOp::Permute => found.contains(data.results[0]),
                _ => false,
            };
            if reads {
                let operands = data.args.iter().take(2);
                found.extend(operands.copied().filter(|&value| lazy.contains(value)));
            }
        }
    }
    found
}

/// Where the elements of each ring stand in a kernel with layouts, for pictures.
#[cfg(feature = "tool")]
pub(crate) fn drawn_layouts(tile: &TileFunction, target: Target) -> Vec<(Slot, LinearLayout)> {
    let layouts = ring_layouts(tile, target, &lazy_values(tile), &mut Choices::none());
    let mut layouts: Vec<(Slot, LinearLayout)> = layouts
        .into_iter()
        .map(|(slot, layout)| (slot, (*layout).clone()))
        .collect();
    layouts.sort_by_key(|&(slot, _)| slot);
    layouts
}

/// The layout of each ring, which follows from the layouts of what is written to and read from it.
pub(super) fn ring_layouts(
    tile: &TileFunction,
    target: Target,
    lazy: &EntitySet<Value>,
    choices: &mut Choices,
) -> FxHashMap<Slot, Rc<LinearLayout>> {
    let mut layouts = FxHashMap::default();
    let quad_pairs = read_in_quad_pairs(tile, target, lazy);
    let accesses = |slot: Slot| {
        let insts = tile.dfg.insts.values();
        insts.filter(move |data| data.slot() == Some(&slot))
    };
    let layout_of = |value: Value| tile.layouts.get(tile.dfg.ty(value).layout.expand()?);
    for slot in tile.slots.keys() {
        let Some(buffer) = tile.buffers[slot] else {
            continue;
        };
        // A unit that reads the ring in place has decided.
        let mut views = accesses(slot).filter(|data| data.op == TileOp::SharedView);
        if let Some(layout) = views.find_map(|data| layout_of(data.results[0])) {
            layouts.insert(slot, Rc::new(layout.clone()));
            continue;
        }
        if accesses(slot).any(|data| data.op == TileOp::TensorCopy) {
            let reads = accesses(slot).filter(|data| data.op == TileOp::SharedLoad);
            let readers: Vec<&LinearLayout> = reads
                .filter_map(|data| layout_of(data.results[0]))
                .collect();
            let layout = warpgroup::box_layout(buffer.shape, buffer.elem.bytes(), &readers);
            layouts.insert(slot, Rc::new(layout));
            continue;
        }
        let is_write = |op| matches!(op, TileOp::AsyncCopy | TileOp::SharedStore);
        let writes = accesses(slot).filter(|data| is_write(data.op));
        let writer = writes.filter_map(|data| layout_of(data.args[0])).next();
        let reads = accesses(slot).filter(|data| data.op == TileOp::SharedLoad);
        // What nobody writes holds anything, in the order in which it is read.
        let mut read = reads.clone().filter_map(|data| layout_of(data.results[0]));
        if let Some(writer) = writer.or_else(|| read.next()) {
            let readers: Vec<Cow<'_, LinearLayout>> = reads
                .filter_map(|data| {
                    let reader = layout_of(data.results[0])?;
                    let transposed = match quad_pairs.contains(data.results[0]) {
                        true => swizzle::transposed_by(writer, reader),
                        false => None,
                    };
                    Some(transposed.map_or(Cow::Borrowed(reader), Cow::Owned))
                })
                .collect();
            let readers: Vec<&LinearLayout> = readers.iter().map(|reader| &**reader).collect();
            let is_copied = accesses(slot).any(|data| data.op == TileOp::AsyncCopy);
            let choose = match is_copied || !quad_pairs.is_empty() {
                true => swizzle::layout,
                false => swizzle::layout_of_stored,
            };
            let layout = choose(buffer.elem.bytes(), writer, &readers, choices);
            layouts.insert(slot, Rc::new(layout));
        }
    }
    layouts
}

/// Bytes from the start of a block in a ring with the layout.
pub(super) fn offsets_in(layout: &LinearLayout, elem_bytes: u32) -> Result<Offsets> {
    match Offsets::new(layout, elem_bytes) {
        Some(offsets) => Ok(offsets),
        None => bug("a ring without place for an element"),
    }
}

/// Where one access goes: the thread's part and a constant.
pub(super) struct SharedAddress<'a> {
    pub(super) slot: Slot,
    pub(super) start: Start,
    /// Bytes that each bit of the thread's number switches.
    pub(super) columns: &'a [u32],
    /// Whether its addresses are made in front of all loops. What is one access alone has them made for it, or loops would hold
    /// registers for nothing.
    pub(super) is_held: bool,
}

/// Addresses of one expansion: a base with the start of an entry added.
pub(super) type Sums = FxHashMap<(Value, Value), Value>;

/// Whether an instruction reads a ring.
pub(super) fn reads(data: &InstData<Tile>, slot: Slot) -> bool {
    matches!(data.op, TileOp::SharedLoad | TileOp::SharedView) && data.slot() == Some(&slot)
}

impl Expander<'_> {
    /// Closes a group of copies.
    pub(super) fn commit(&mut self) {
        if self.copies_are_async() {
            self.b.cp_async_commit();
        }
    }

    /// Waits until at most so many groups are under way.
    pub(super) fn wait(&mut self, pending: u32) {
        if self.copies_are_async() {
            self.b.cp_async_wait(pending);
        }
    }

    fn copies_are_async(&self) -> bool {
        self.target.sm >= 80
    }

    pub(super) fn ring(&self, slot: Slot) -> Result<Rc<LinearLayout>> {
        match self.rings.get(&slot) {
            Some(layout) => Ok(layout.clone()),
            None => bug(format!("nothing is copied to {slot}")),
        }
    }

    /// The entry that operand `index` names.
    pub(super) fn entry(&mut self, inst: Inst, index: usize) -> Result<(Slot, Start)> {
        let Some(&slot) = self.tile.dfg.insts[inst].slot() else {
            return bug("an access to no slot");
        };
        let Some(buffer) = self.tile.buffers[slot] else {
            return bug("an access to a slot that holds no blocks");
        };
        let number = self.arg(inst, index)?;
        let number = self.pack_of(&number, 1)?;
        let bytes = buffer.stage_bytes();
        let start = match self.known(number) {
            Some(number) => Start::Known(number as u32 * bytes),
            None => {
                let bits = self.int(Elem::I32, i64::from(bytes.trailing_zeros()));
                Start::Value(self.binary(ThreadOp::Shl, number, bits)?)
            }
        };
        Ok((slot, start))
    }

    /// The address of the element whose offset differs from the thread's part by `offset`: a pointer and a distance.
    pub(super) fn shared_place(
        &mut self,
        target: &SharedAddress<'_>,
        sums: &mut Sums,
        offset: u32,
    ) -> Result<(Value, u32)> {
        let varying = target.columns.iter().fold(0, |all, c| all | c);
        let (xor, add) = (offset & varying, offset & !varying);
        let home = (!target.is_held).then(|| self.b.block());
        let key = (home, target.slot, target.columns.to_vec(), xor);
        let base = match self.shared_bases.get(&key) {
            Some(&base) => base,
            None => {
                let make = |this: &mut Self| {
                    let part = this.thread_part(target.columns)?;
                    let part = if xor == 0 {
                        part
                    } else {
                        let xor = this.int(Elem::I32, i64::from(xor));
                        this.binary(ThreadOp::Xor, part, xor)?
                    };
                    let start = this.slot_address(target.slot, Elem::Num(Scalar::I8))?;
                    this.moved_pointer(start, part)
                };
                let base = match target.is_held {
                    true => self.in_prologue(make)?,
                    false => make(self)?,
                };
                self.shared_bases.insert(key, base);
                base
            }
        };
        Ok(match target.start {
            Start::Known(start) => (base, add + start),
            Start::Value(start) => match sums.get(&(base, start)) {
                Some(&sum) => (sum, add),
                None => {
                    let sum = self.binary(ThreadOp::Addptr, base, start)?;
                    sums.insert((base, start), sum);
                    (sum, add)
                }
            },
        })
    }

    /// A pointer to bytes as one to elements.
    pub(super) fn typed(&mut self, pointer: Value, scalar: Scalar) -> Result<Value> {
        if scalar == Scalar::I8 {
            return Ok(pointer);
        }
        let ty = ThreadType::scalar(Elem::Ptr(scalar, AddressSpace::Shared));
        self.op(InstData::new(ThreadOp::PtrCast, &[pointer]), &[ty])
    }

    /// Bytes that each bit of the thread's number switches, for a block of registers with a layout.
    pub(super) fn offset_columns(layout: &LinearLayout, offsets: &Offsets) -> Vec<u32> {
        let columns = Self::thread_columns(layout).into_iter();
        columns.map(|column| offsets.of(column)).collect()
    }

    pub(super) fn expand_async_copy(&mut self, inst: Inst) -> Result<Expanded> {
        let ty = self.arg_type(inst, 0)?;
        let Some(scalar) = ty.elem.pointee() else {
            return bug("a copy from no pointer");
        };
        let layout = self.layout(ty)?;
        let count = layout.num_registers() as usize;
        let pointers = self.arg(inst, 0)?;
        let pointers = self.parts_of(&pointers, count)?;
        let (slot, start) = self.entry(inst, 1)?;
        let mask = self.mask(inst, 2, count)?;
        let data = &self.tile.dfg.insts[inst];
        let evict = data.evict().copied();
        // A copy of 16 bytes passes the L1 cache by, others do not; that is no choice.
        let cache = data.cache().copied().map(make::cache);
        let kept: Vec<Attr> = cache.into_iter().chain(evict.map(make::evict)).collect();
        let size = scalar.bytes();
        let offsets = offsets_in(&*self.ring(slot)?, size)?;
        let columns = Self::offset_columns(layout, &offsets);
        let target = SharedAddress {
            slot,
            start,
            columns: &columns,
            is_held: true,
        };
        let place = |r: usize| offsets.of(layout.apply(r as u32, 0, 0, 0));
        let (register_copies, thread_copies) = self.copies_of(layout);
        let leader = self.leader(thread_copies)?;
        // Less than a copy moves for each register is loaded and stored.
        let widest = self.access_width(&pointers, None, 0, size, MAX_ACCESS_BYTES) as u32 * size;
        let is_async = self.copies_are_async() && (leader.is_none() || widest >= MIN_COPY_BYTES);
        let is_apart = self.copies_to_another_entry(inst, slot);
        let mut sums = Sums::default();
        let mut sizes = Sizes::default();
        let mut reg = 0;
        while reg < count {
            if reg & register_copies != 0 {
                reg += 1;
                continue;
            }
            let mut width = self.access_width(&pointers, None, reg, size, MAX_ACCESS_BYTES);
            let follows = |width: usize| {
                let bytes = width as u32 * size;
                place(reg).is_multiple_of(bytes)
                    && (0..width).all(|i| place(reg + i) == place(reg) + i as u32 * size)
                    && (reg..reg + width).all(|r| r & register_copies == 0)
            };
            while !follows(width) {
                width /= 2;
            }
            // Only what is copied that way can be filled.
            let may_end = |width: usize| is_async && width as u32 * size >= MIN_COPY_BYTES;
            let ends = loop {
                match self.ends(mask.as_ref(), reg, width) {
                    Some(ends) if ends.is_empty() || may_end(width) => break ends,
                    _ if width == 1 => break Ends::new(),
                    _ => width /= 2,
                }
            };
            let (from, read_offset, pred) = self.place(&pointers, mask.as_ref(), reg);
            let (to, offset) = self.shared_place(&target, &mut sums, place(reg))?;
            let bytes = width as u32 * size;
            let (from, read_offset) = self.address(from, read_offset)?;
            if is_async && bytes >= MIN_COPY_BYTES {
                let mut data = InstData::new(ThreadOp::CpAsync, &[to, from]);
                let part = self.size_of_copy(&ends, width, size, &mut sizes)?;
                match leader {
                    None => data.args.extend(pred.into_iter().chain(part)),
                    // One of the threads that hold it copies; where it would be masked off, zeros arrive.
                    Some(leader) => {
                        data.args.push(leader);
                        data.args.extend(self.size_where(pred, part, bytes)?);
                        data.attrs.push(make::skips(Flag));
                    }
                }
                data.attrs.push(make::bytes(bytes));
                if read_offset != 0 {
                    data.attrs.push(make::read_offset(read_offset));
                }
                data.attrs.extend(evict.map(make::evict));
                data.attrs.extend(slot_attrs(slot, offset));
                if is_apart {
                    data.attrs.push(make::apart(Flag));
                }
                self.effect(data)?;
            } else {
                let ty = ThreadType::pack(Elem::Num(scalar), width as u16);
                let place = (from, i64::from(read_offset), pred);
                let loaded = self.load_one(place, None, ty, &kept)?;
                let to = self.typed(to, scalar)?;
                let mut data = InstData::new(ThreadOp::St, &[to, loaded]);
                data.args.extend(leader);
                data.attrs.extend(slot_attrs(slot, offset));
                self.effect(data)?;
            }
            reg += width;
        }
        Ok(Expanded::nothing())
    }

    /// Register and thread bits that make copies.
    pub(super) fn copies_of(&self, layout: &LinearLayout) -> (usize, u32) {
        let threads = layout.free_mask(HwDim::Lane)
            | layout.free_mask(HwDim::Warp) << layout.bits(HwDim::Lane);
        (layout.free_mask(HwDim::Register) as usize, threads)
    }

    pub(super) fn expand_shared_store(&mut self, inst: Inst) -> Result<()> {
        let ty = self.arg_type(inst, 0)?;
        let layout = self.layout(ty)?;
        let count = layout.num_registers() as usize;
        let value = self.arg(inst, 0)?;
        if self.stands_already(inst) {
            return Ok(());
        }
        let block = self.shared_block(inst, 1)?;
        let slot = block.slot;
        let is_apart = self.tile.buffers[slot].is_some_and(|b| b.stages > 1)
            && self.is_read_beside(inst, slot);
        let pack = match &value {
            Expanded::Shared(from) if self.transpose_bytes(from, &block, layout, is_apart)? => {
                return Ok(());
            }
            Expanded::Shared(from) => self.load_block(from, layout, ty.elem)?,
            _ => self.pack_of(&value, count)?,
        };
        if !is_apart && self.store_matrices(&block, layout, ty.elem, pack)? {
            return Ok(());
        }
        self.store_elements(&block, layout, ty.elem, pack, is_apart)
    }

    /// Whether the iteration that stores to a ring reads another entry of it. What fills a ring in front of its loop meets entries that the loop
    /// read last, where it stands in another loop.
    fn is_read_beside(&self, inst: Inst, slot: Slot) -> bool {
        let block = self.tile.order.block_of(inst);
        let mut insts = block
            .into_iter()
            .flat_map(|block| self.tile.order.insts(block));
        insts.any(|&other| reads(&self.tile.dfg.insts[other], slot))
    }

    /// Whether a copy goes to another entry of a ring than its iteration reads: those of a pipeline with as many entries as stages do, whose
    /// loop carries both places.
    fn copies_to_another_entry(&self, inst: Inst, slot: Slot) -> bool {
        let Some(block) = self.tile.order.block_of(inst) else {
            return false;
        };
        let carried = &self.tile.dfg.blocks[block].params;
        let entry = |inst: Inst, at: usize| {
            let entry = self.tile.dfg.insts[inst].args.get(at);
            entry.copied().filter(|entry| carried.contains(entry))
        };
        let Some(written) = entry(inst, 1) else {
            return false;
        };
        let is_read = |data: &InstData<Tile>| reads(data, slot);
        let insts = self.tile.order.insts(block);
        let mut inner = insts.iter().flat_map(|&inst| self.tile.regions(inst));
        if inner.any(|block| self.tile.any_inside(block, &is_read)) {
            return false;
        }
        let mut reads = insts
            .iter()
            .filter(|&&inst| is_read(&self.tile.dfg.insts[inst]))
            .peekable();
        reads.peek().is_some()
            && reads.all(|&inst| entry(inst, 0).is_some_and(|read| read != written))
    }

    /// Whether the addresses at which a slot is written are made in front of all loops: where a ring has several entries. A ring
    /// of one is written once in an iteration.
    pub(super) fn holds_addresses_of_stores(&self, slot: Slot) -> bool {
        let is_ring = self.tile.slots.is_valid(slot);
        is_ring && self.tile.buffers[slot].is_none_or(|ring| ring.stages > 1)
    }

    /// Writes what threads hold by `layout` to a block in shared memory.
    pub(super) fn store_elements(
        &mut self,
        block: &SharedBlock,
        layout: &LinearLayout,
        elem: Elem,
        pack: Value,
        is_apart: bool,
    ) -> Result<()> {
        let count = layout.num_registers() as usize;
        let Some(scalar) = elem.scalar() else {
            return bug("blocks in shared memory hold numbers");
        };
        let (slot, size) = (block.slot, scalar.bytes());
        let offsets = offsets_in(&block.layout, size)?;
        let columns = Self::offset_columns(layout, &offsets);
        let varying = columns.iter().fold(0, |all, c| all | c);
        let target = SharedAddress {
            slot,
            start: block.start,
            columns: &columns,
            is_held: self.holds_addresses_of_stores(slot),
        };
        // What follows each other in memory may lie apart in registers.
        let runs = swizzle::runs_first(layout, &offsets, size);
        let register = |at: usize| runs.register(at as u32) as usize;
        let place = |at: usize| offsets.of(layout.apply(register(at) as u32, 0, 0, 0));
        let (register_copies, thread_copies) = self.copies_of(layout);
        let is_copy = |at: usize| register(at) & register_copies != 0;
        let leader = self.leader(thread_copies)?;
        let mut sums = Sums::default();
        let mut at = 0;
        while at < count {
            if is_copy(at) {
                at += 1;
                continue;
            }
            let mut width = 1;
            while 2 * width as u32 * size <= MAX_ACCESS_BYTES
                && at.is_multiple_of(2 * width)
                && at + 2 * width <= count
                && (place(at) | varying).is_multiple_of(2 * width as u32 * size)
                && (at..at + 2 * width)
                    .all(|i| place(i) == place(at) + (i - at) as u32 * size && !is_copy(i))
            {
                width *= 2;
            }
            let map: Vec<u32> = (at..at + width).map(|at| register(at) as u32).collect();
            let stored = self.rearrange(&[pack], &map)?;
            let (to, offset) = self.shared_place(&target, &mut sums, place(at))?;
            let to = self.typed(to, scalar)?;
            let mut data = InstData::new(ThreadOp::St, &[to, stored]);
            data.args.extend(leader);
            data.attrs.extend(slot_attrs(slot, offset));
            if is_apart {
                data.attrs.push(make::apart(Flag));
            }
            self.effect(data)?;
            at += width;
        }
        Ok(())
    }

    pub(super) fn expand_shared_load(&mut self, inst: Inst) -> Result<Expanded> {
        let ty = self.result_type(inst)?;
        let block = self.shared_block(inst, 0)?;
        let result = self.tile.dfg.insts[inst].results[0];
        if self.lazy.contains(result) {
            return Ok(Expanded::Shared(block));
        }
        let layout = self.layout(ty)?;
        Ok(Expanded::Pack(self.load_block(&block, layout, ty.elem)?))
    }

    /// A block in shared memory as a pack of the registers of a layout.
    fn load_block(
        &mut self,
        block: &SharedBlock,
        layout: &LinearLayout,
        elem: Elem,
    ) -> Result<Value> {
        let count = layout.num_registers();
        let elements: Vec<u32> = (0..count).map(|r| layout.apply(r, 0, 0, 0)).collect();
        let mut sums = Sums::default();
        let matrices = self.load_matrices(block, &mut sums, layout, elem, &elements)?;
        if let Some(pack) = matrices {
            return Ok(pack);
        }
        let offsets = offsets_in(&block.layout, elem.bytes())?;
        let runs = swizzle::runs_first(layout, &offsets, elem.bytes());
        let in_memory: Vec<u32> = (0..count).map(|at| runs.register(at)).collect();
        let wanted: Vec<u32> = in_memory.iter().map(|&r| elements[r as usize]).collect();
        let pack = self.load_elements(block, &mut sums, layout, elem, &wanted)?;
        let mut map = vec![0; in_memory.len()];
        for (at, &register) in (0..).zip(&in_memory) {
            map[register as usize] = at;
        }
        self.rearrange(&[pack], &map)
    }

    /// The elements that stand at flat indices `elements` in thread 0 and where `layout` says in the others, as a pack.
    pub(super) fn load_elements(
        &mut self,
        block: &SharedBlock,
        sums: &mut Sums,
        layout: &LinearLayout,
        elem: Elem,
        elements: &[u32],
    ) -> Result<Value> {
        let Some(scalar) = elem.scalar() else {
            return bug("blocks in shared memory hold numbers");
        };
        let size = scalar.bytes();
        let offsets = offsets_in(&block.layout, size)?;
        let columns = Self::offset_columns(layout, &offsets);
        let varying = columns.iter().fold(0, |all, c| all | c);
        let target = SharedAddress {
            slot: block.slot,
            start: block.start,
            columns: &columns,
            is_held: self.tile.slots.is_valid(block.slot),
        };
        let mut sources = Vec::new();
        let mut map = Vec::with_capacity(elements.len());
        let mut loaded: FxHashMap<u32, u32> = FxHashMap::default();
        let mut next = 0;
        for (i, &element) in elements.iter().enumerate() {
            if let Some(&place) = loaded.get(&element) {
                map.push(place);
                continue;
            }
            let first = offsets.of(element);
            // As many as follow each other, and start at a multiple of their size in every thread.
            let mut width = 1;
            while width * 2 * size <= MAX_ACCESS_BYTES
                && i + 2 * width as usize <= elements.len()
                && (first | varying).is_multiple_of(width * 2 * size)
                && (0..2 * width).all(|j| {
                    let other = elements[i + j as usize];
                    offsets.of(other) == first + j * size && !loaded.contains_key(&other)
                })
            {
                width *= 2;
            }
            let (to, offset) = self.shared_place(&target, sums, first)?;
            let to = self.typed(to, scalar)?;
            let mut data = InstData::new(ThreadOp::Ld, &[to]);
            data.attrs.extend(slot_attrs(block.slot, offset));
            sources.push(self.op(data, &[ThreadType::pack(elem, width as u16)])?);
            for j in 0..width {
                loaded.insert(elements[i + j as usize], next + j);
            }
            map.push(next);
            next += width;
        }
        self.rearrange(&sources, &map)
    }
}
