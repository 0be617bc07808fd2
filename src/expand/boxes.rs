//! Expansion of tensor maps, of copies of boxes to shared memory and from there, and of the barriers on which they arrive.
//!
//! A map becomes a recipe of the function, by which the launcher makes a parameter; how its boxes stand in shared memory follows
//! from the ring that they are copied to. The copy engine writes rows of 128 bytes at most, so a wider block is cut into panels
//! that stand one behind the other, and one with more rows than a box may have into pieces of its panels.
//!
//! One thread speaks to the engine and to the barriers for all, or a lane that is elected in its place later
//! ([`crate::thread::branch_around_copies`]); waits are everybody's, as what has arrived is seen by those who waited.

use std::rc::Rc;

use super::memory::slot_attrs;
use super::regs::{Expanded, SharedBlock, Start};
use super::{Expander, Result, bug};
use crate::ir::attrs::{Attrs, IntPred, SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::{MBAR_BYTES, SlotData};
use crate::ir::map_recipe::{HostNumbers, MapRecipe, Place};
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, Scalar, ThreadType};
use crate::layout::warpgroup::{self, MatrixForm};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::shape::Shape;
use crate::settings::LANES;

/// Most extents of a box along a dimension.
const MAX_BOX: u32 = 256;

/// Boxes start at a multiple of so many bytes.
const BOX_ALIGN: u32 = 128;

/// How a block in shared memory is cut into boxes.
struct Cut {
    /// Rows and columns of the block.
    block: [u32; 2],
    /// Bytes within which pieces of a row are exchanged.
    swizzle: u32,
    /// Rows and columns of a box.
    rows: u32,
    columns: u32,
}

impl Cut {
    /// Of a block that stands so.
    fn of(layout: &LinearLayout, elem_bytes: u32) -> Cut {
        let block = extents(layout.shape().extents());
        let form = MatrixForm::of(layout, elem_bytes);
        Cut {
            block,
            swizzle: form.map_or(0, |form| form.swizzle),
            rows: block[0].min(MAX_BOX),
            columns: form.map_or(block[1], |form| form.swizzle / elem_bytes),
        }
    }
}

impl Expander<'_> {
    /// Barriers that a kernel begins with are made by one thread behind a branch: the assembler branches around each that has a
    /// predicate, and for as long nothing can be fetched.
    pub(super) fn expand_mbar_init(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let list = tile.order.insts(tile.entry);
        let is_init = |inst: &&Inst| tile.dfg.insts[**inst].op == TileOp::MbarInit;
        // Nothing else has been accessed, so that no barrier of all threads is needed in front.
        let is_quiet = |&inst: &Inst| {
            let data = &tile.dfg.insts[inst];
            let class = data.class();
            let is_number = matches!(
                class,
                OpClass::Constant | OpClass::Elementwise | OpClass::Shape
            );
            is_number || data.op == TileOp::MbarInit
        };
        let first = list.iter().take_while(|inst| is_quiet(inst));
        let inits: Vec<&Inst> = first.filter(is_init).collect();
        match inits.iter().position(|&&other| other == inst) {
            Some(0) => {}
            // The first of them has made all.
            Some(_) => return Ok(()),
            None => {
                let pred = self.speaker()?;
                self.make_barriers(inst, pred)?;
                return self.effect(InstData::new(ThreadOp::FenceMbarInit, &[]));
            }
        }
        let [making, behind] = [(); 2].map(|()| self.b.new_block(&[]).0);
        let pred = self.speaker()?;
        self.b.brif(pred, (making, &[]), (behind, &[]));
        self.enter(making);
        let always = self.int(Elem::I1, 1);
        for &init in inits {
            self.make_barriers(init, always)?;
        }
        self.effect(InstData::new(ThreadOp::FenceMbarInit, &[]))?;
        self.b.jump(behind, &[]);
        self.enter(behind);
        Ok(())
    }

    fn make_barriers(&mut self, inst: Inst, pred: Value) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let (Some(&slot), Some(&count)) = (data.slot(), data.count()) else {
            return bug("barriers without a slot or a count");
        };
        self.each_barrier(slot, ThreadOp::MbarInit, Some(count), pred)
    }

    pub(super) fn expand_mbar_drop(&mut self, inst: Inst) -> Result<()> {
        let Some(&slot) = self.tile.dfg.insts[inst].slot() else {
            return bug("barriers without a slot");
        };
        let pred = self.speaker()?;
        self.each_barrier(slot, ThreadOp::MbarInval, None, pred)
    }

    fn each_barrier(
        &mut self,
        slot: Slot,
        op: ThreadOp,
        count: Option<u32>,
        pred: Value,
    ) -> Result<()> {
        let pointer = self.slot_address(slot, Elem::Num(Scalar::I64))?;
        for i in 0..self.tile.slots[slot].bytes / MBAR_BYTES {
            let mut data = InstData::new(op, &[pointer, pred]);
            data.attrs.extend(count.map(make::count));
            data.attrs.push(make::offset((i * MBAR_BYTES) as i32));
            data.attrs.push(make::slot(slot));
            self.effect(data)?;
        }
        Ok(())
    }

    /// Whether this is the thread that speaks for all.
    fn speaker(&mut self) -> Result<Value> {
        let threads = self.tile.num_threads();
        if self.is_producer {
            return Ok(self.int(Elem::I1, 1));
        }
        if let Some(group) = self.group.filter(|group| !group.is_apart) {
            let first = self.int(Elem::I32, 0);
            return Ok(self.b.icmp(group.thread, first, IntPred::Eq));
        }
        match self.leader(threads - 1)? {
            Some(pred) => Ok(pred),
            None => Ok(self.int(Elem::I1, 1)),
        }
    }

    /// Whether this is the thread that speaks for all, and operand `index` is true.
    fn speaker_if(&mut self, inst: Inst, index: usize) -> Result<Value> {
        let speaker = self.speaker()?;
        self.if_exists(speaker, inst, index)
    }

    /// The predicate, and that operand `index` is true.
    fn if_exists(&mut self, pred: Value, inst: Inst, index: usize) -> Result<Value> {
        let exists = self.arg(inst, index)?;
        let exists = self.pack_of(&exists, 1)?;
        match self.known(exists) {
            Some(0) | None => self.binary(ThreadOp::And, pred, exists),
            Some(_) => Ok(pred),
        }
    }

    /// A pointer to the barrier of a slot that operand `index` names.
    fn barrier(&mut self, slot: Slot, inst: Inst, index: usize) -> Result<Value> {
        let start = self.slot_address(slot, Elem::Num(Scalar::I64))?;
        let number = self.arg(inst, index)?;
        let number = self.pack_of(&number, 1)?;
        match self.known(number) {
            Some(number) => self.add_offset(start, number * i64::from(MBAR_BYTES)),
            None => self.binary(ThreadOp::Addptr, start, number),
        }
    }

    pub(super) fn expand_mbar_expect(&mut self, inst: Inst) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let (Some(&slot), Some(&bytes)) = (data.slot(), data.bytes()) else {
            return bug("an arrival without barriers or bytes");
        };
        let pointer = self.barrier(slot, inst, 0)?;
        let pred = self.speaker_if(inst, 1)?;
        let mut data = InstData::new(ThreadOp::MbarExpect, &[pointer, pred]);
        data.attrs.extend([make::bytes(bytes), make::slot(slot)]);
        self.effect(data)
    }

    /// The first lane arrives for its warp.
    pub(super) fn expand_mbar_arrive(&mut self, inst: Inst) -> Result<()> {
        let Some(&slot) = self.tile.dfg.insts[inst].slot() else {
            return bug("an arrival without barriers");
        };
        let pointer = self.barrier(slot, inst, 0)?;
        let leader = match self.leader(LANES - 1)? {
            Some(pred) => pred,
            None => self.int(Elem::I1, 1),
        };
        let pred = self.if_exists(leader, inst, 1)?;
        self.effect(InstData::new(ThreadOp::WarpBarrier, &[]))?;
        let mut data = InstData::new(ThreadOp::MbarArrive, &[pointer, pred]);
        data.attrs.push(make::slot(slot));
        self.effect(data)
    }

    /// Lets the warps of the producer leave the program's way. What the program did so far is done by all warps, and waited for.
    pub(super) fn expand_producer(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let region = tile.regions(inst).next();
        let (Some(region), Some(part)) = (region, tile.producer()) else {
            return bug("a producer without warps");
        };
        let threads = tile.groups() * tile.num_threads();
        self.b.barrier(0, tile.cta_threads());
        let [behind, beside, bringing, idle] = [(); 4].map(|()| self.b.new_block(&[]).0);
        let tid = match &mut self.group {
            Some(group) => {
                group.is_apart = true;
                group.thread
            }
            None => self.special(SpecialReg::Tid),
        };
        let end = self.int(Elem::I32, i64::from(threads));
        let is_program = self.b.icmp(tid, end, IntPred::Slt);
        self.b.brif(is_program, (behind, &[]), (beside, &[]));
        self.enter(beside);
        if let Some(budget) = part.max_registers {
            self.set_registers(budget)?;
        }
        let is_first = self.b.icmp(tid, end, IntPred::Eq);
        self.b.brif(is_first, (bringing, &[]), (idle, &[]));
        self.enter(bringing);
        self.is_producer = true;
        self.block(region)?;
        self.is_producer = false;
        self.b.ret();
        self.enter(idle);
        self.b.ret();
        self.enter(behind);
        let whole = tile.partitions.values().next();
        if let Some(budget) = whole.and_then(|whole| whole.max_registers) {
            self.set_registers(budget)?;
        }
        Ok(())
    }

    /// Leaves a number for the next group: one thread does.
    pub(super) fn expand_slot_put(&mut self, inst: Inst) -> Result<()> {
        let Some(&slot) = self.tile.dfg.insts[inst].slot() else {
            return bug("a number without a slot");
        };
        let address = self.slot_address(slot, Elem::I32)?;
        let number = self.arg(inst, 0)?;
        let number = self.pack_of(&number, 1)?;
        let speaker = self.speaker()?;
        let mut data = InstData::new(ThreadOp::St, &[address, number, speaker]);
        data.attrs.extend(slot_attrs(slot, 0));
        self.effect(data)
    }

    pub(super) fn expand_slot_get(&mut self, inst: Inst) -> Result<Expanded> {
        let Some(&slot) = self.tile.dfg.insts[inst].slot() else {
            return bug("a number without a slot");
        };
        let address = self.slot_address(slot, Elem::I32)?;
        let mut data = InstData::new(ThreadOp::Ld, &[address]);
        data.attrs.extend(slot_attrs(slot, 0));
        let number = self.op(data, &[ThreadType::scalar(Elem::I32)])?;
        Ok(Expanded::Uniform(number))
    }

    fn set_registers(&mut self, count: u16) -> Result<()> {
        let mut data = InstData::new(ThreadOp::SetRegisters, &[]);
        data.attrs.push(make::count(u32::from(count)));
        self.effect(data)
    }

    /// Asks again and again.
    pub(super) fn expand_mbar_wait(&mut self, inst: Inst) -> Result<()> {
        let (asking, _) = self.b.new_block(&[]);
        let (behind, _) = self.b.new_block(&[]);
        let [pointer, parity] = self.barrier_and_parity(inst)?;
        self.b.jump(asking, &[]);
        self.enter(asking);
        let is_over = self.ask(inst, [pointer, parity])?;
        self.b.brif(is_over, (behind, &[]), (asking, &[]));
        self.enter(behind);
        Ok(())
    }

    /// Asks as often as the instruction says; whether the phase has ended.
    pub(super) fn expand_mbar_wait_for(&mut self, inst: Inst) -> Result<Expanded> {
        let Some(&tries) = self.tile.dfg.insts[inst].tries() else {
            return bug("a wait that never gives up");
        };
        let [pointer, parity] = self.barrier_and_parity(inst)?;
        let i32 = ThreadType::scalar(Elem::I32);
        let (asking, left) = self.b.new_block(&[i32]);
        let (behind, found) = self.b.new_block(&[ThreadType::scalar(Elem::I1)]);
        let tries = self.int(Elem::I32, i64::from(tries));
        let [zero, less] = [0, -1].map(|number| self.int(Elem::I32, number));
        self.b.jump(asking, &[tries]);
        self.enter(asking);
        let is_over = self.ask(inst, [pointer, parity])?;
        let left = self.binary(ThreadOp::Iadd, left[0], less)?;
        let gives_up = self.b.icmp(left, zero, IntPred::Eq);
        let ends = self.binary(ThreadOp::Or, is_over, gives_up)?;
        self.b.brif(ends, (behind, &[is_over]), (asking, &[left]));
        self.enter(behind);
        Ok(Expanded::Uniform(found[0]))
    }

    /// The barrier that a wait names, and the parity of the phase.
    fn barrier_and_parity(&mut self, inst: Inst) -> Result<[Value; 2]> {
        let Some(&slot) = self.tile.dfg.insts[inst].slot() else {
            return bug("a wait without barriers");
        };
        let pointer = self.barrier(slot, inst, 0)?;
        let parity = self.arg(inst, 1)?;
        Ok([pointer, self.pack_of(&parity, 1)?])
    }

    fn ask(&mut self, inst: Inst, args: [Value; 2]) -> Result<Value> {
        let mut data = InstData::new(ThreadOp::MbarTry, &args);
        let slot = self.tile.dfg.insts[inst].slot();
        data.attrs.extend(slot.map(|&slot| make::slot(slot)));
        self.op(data, &[])
    }

    pub(super) fn expand_tensor_copy(&mut self, inst: Inst) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let (Some(&slot), Some(&bars)) = (data.slot(), data.bars()) else {
            return bug("a copy of a box without slots");
        };
        let Some(buffer) = self.tile.buffers[slot] else {
            return bug("a copy to a slot that holds no blocks");
        };
        let cut = self.cut(slot)?;
        let map = self.map(inst, &cut)?;
        let (_, start) = self.entry(inst, 1)?;
        let bar = self.barrier(bars, inst, 1)?;
        let pred = self.speaker_if(inst, 2)?;
        let mut coords = Vec::new();
        for i in 3..data.args.len() {
            let coord = self.arg(inst, i)?;
            coords.push(self.pack_of(&coord, 1)?);
        }
        let elem_bytes = buffer.elem.bytes();
        let mut to = self.slot_address(slot, Elem::Num(Scalar::I8))?;
        let mut first = 0;
        match start {
            Start::Known(bytes) => first = bytes,
            Start::Value(bytes) => to = self.binary(ThreadOp::Addptr, to, bytes)?,
        }
        let copy = InstData::new(ThreadOp::TensorCopy, &[to, map, bar, pred]);
        for (bytes, at) in self.boxes(inst, &cut, elem_bytes, &coords, 0)? {
            let mut data = copy.clone();
            data.args.extend(at);
            data.attrs.push(make::offset((first + bytes) as i32));
            data.attrs.extend([make::slot(slot), make::bars(bars)]);
            self.effect(data)?;
        }
        Ok(())
    }

    /// The block goes to a place of its own, from which the copy engine takes it, or piece by piece to as many places as the instruction
    /// says. When that has been read, and when all of it is in memory, somebody asks who needs it
    /// ([`crate::thread::insert_barriers`]).
    pub(super) fn expand_tensor_store(&mut self, inst: Inst) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let ty = self.arg_type(inst, 1)?;
        let Some(elem) = ty.elem.scalar() else {
            return bug("boxes hold numbers");
        };
        let layout = self.layout(ty)?;
        let value = self.arg(inst, 1)?;
        let pack = self.pack_of(&value, layout.num_registers() as usize)?;
        let places = data.stages().copied();
        let pieces = places.and_then(|_| warpgroup::pieces(layout, elem.bytes()));
        let Some((places, pieces)) = places.zip(pieces) else {
            let slot = self.place_of_box(layout.shape(), elem.bytes());
            return self.store_box(inst, slot, (layout, layout), pack, [0, 0]);
        };
        let shape = pieces.layout.shape();
        let slots: Vec<Slot> = (0..places)
            .map(|_| self.place_of_box(shape, elem.bytes()))
            .collect();
        for ((registers, start), &slot) in pieces.places.iter().zip(slots.iter().cycle()) {
            let piece = self.rearrange(&[pack], registers)?;
            self.store_box(inst, slot, (&pieces.layout, layout), piece, *start)?;
        }
        Ok(())
    }

    /// A place for what the copy engine is to take.
    fn place_of_box(&mut self, shape: Shape, elem_bytes: u32) -> Slot {
        let stands = warpgroup::staging_layout(shape, elem_bytes);
        self.b.func_mut().slots.push(SlotData {
            bytes: elem_bytes << shape.log2_elements(),
            align: MatrixForm::of(&stands, elem_bytes)
                .map_or(BOX_ALIGN, MatrixForm::alignment)
                .max(BOX_ALIGN),
            offset: None,
            by_group: false,
        })
    }

    /// Stores a piece of a block, or all of it, by way of its place. The piece begins at a row and a column of the block, whose layout is the
    /// second one.
    fn store_box(
        &mut self,
        inst: Inst,
        slot: Slot,
        (layout, block_layout): (&LinearLayout, &LinearLayout),
        pack: Value,
        [row, column]: [u32; 2],
    ) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let ty = self.arg_type(inst, 1)?;
        let elem_bytes = ty.elem.bytes();
        let stands = warpgroup::staging_layout(layout.shape(), elem_bytes);
        let mut cut = Cut::of(&stands, elem_bytes);
        let rows = self.rows_of_groups(layout, &cut);
        if let Some(&first) = rows.iter().min() {
            cut.rows = cut.rows.min(first);
            self.b.func_mut().slots[slot].by_group = true;
        }
        let block = SharedBlock {
            slot,
            start: Start::Known(0),
            layout: Rc::new(stands),
        };
        if !self.store_matrices(&block, layout, ty.elem, pack)? {
            self.store_elements(&block, layout, ty.elem, pack, false)?;
        }
        let map = self.map(inst, &cut)?;
        let mut from = self.slot_address(slot, Elem::Num(Scalar::I8))?;
        let row_dim = self.row_dim(inst)?;
        let mut coords = Vec::new();
        for i in 2..data.args.len() {
            let coord = self.arg(inst, i)?;
            coords.push(self.pack_of(&coord, 1)?);
        }
        if let Some(last) = coords.last_mut() {
            *last = self.add_offset(*last, i64::from(column))?;
        }
        if let Some(dim) = row_dim {
            coords[dim] = self.add_offset(coords[dim], i64::from(row))?;
        }
        let mut pred = self.speaker()?;
        if !rows.is_empty() {
            if let Some(leader) = self.leader(LANES * warpgroup::group_warps() - 1)? {
                pred = leader;
            }
            let below = [0; 7];
            let first = self.thread_part(&[&below[..], &rows].concat())?;
            let row_bytes = self.int(Elem::I32, i64::from(cut.columns * elem_bytes));
            let bytes = self.binary(ThreadOp::Imul, first, row_bytes)?;
            from = self.binary(ThreadOp::Addptr, from, bytes)?;
            if let Some(dim) = row_dim {
                let columns = block_layout.shape().extent(1) as u32;
                let groups = warpgroup::group_columns(block_layout).iter();
                let rows: Vec<u32> = groups.map(|column| column / columns).collect();
                let first = self.thread_part(&[&below[..], &rows].concat())?;
                coords[dim] = self.binary(ThreadOp::Iadd, coords[dim], first)?;
            }
        }
        // What a group of warps stores, and what is a piece and shares its place with others, is sent at once.
        let waits = layout == block_layout && rows.is_empty() && self.group.is_none();
        if waits {
            self.staged.note(data.args[1], &block);
        } else {
            self.send_boxes()?;
        }
        let mut store = InstData::new(ThreadOp::TensorStore, &[from, map, pred]);
        store.attrs.extend(data.rmw().map(|&rmw| make::rmw(rmw)));
        let others = rows.iter().sum();
        for (bytes, at) in self.boxes(inst, &cut, elem_bytes, &coords, others)? {
            let mut data = store.clone();
            data.args.extend(at);
            data.attrs.extend(slot_attrs(slot, bytes));
            self.staged.send(data);
        }
        if waits {
            return Ok(());
        }
        self.send_boxes()
    }

    /// Where each bit of the number of a group of warps goes among the rows of a block, if each group has rows of its own, which
    /// it can store without the others. Empty if not, and where there is one group alone.
    fn rows_of_groups(&self, layout: &LinearLayout, cut: &Cut) -> Vec<u32> {
        /// Rows after which swizzles repeat.
        const PERIOD: u32 = 8;
        let groups = warpgroup::group_columns(layout);
        let of_groups: u32 = groups.iter().fold(0, |all, column| all | column);
        let all = [HwDim::Register, HwDim::Lane, HwDim::Warp].map(|dim| layout.columns(dim));
        let reaching = all
            .into_iter()
            .flatten()
            .filter(|&&column| column & of_groups != 0);
        let rows: Vec<u32> = groups.iter().map(|column| column / cut.block[1]).collect();
        let is_rows = |(&column, &row): (&u32, &u32)| {
            column.is_power_of_two() && column % cut.block[1] == 0 && PERIOD <= row
        };
        let has_own = groups.iter().zip(&rows).all(is_rows) && reaching.count() == groups.len();
        let knows_barriers = self.tile.all_insts().all(|(_, inst)| {
            let data = &self.tile.dfg.insts[inst];
            data.class() != OpClass::Foreign
        });
        if !has_own || !knows_barriers {
            return Vec::new();
        }
        rows
    }

    /// The boxes that a block is cut into: how many bytes from its start each stands, and the coordinates of its start. No rows
    /// that have a bit of `others`.
    fn boxes(
        &mut self,
        inst: Inst,
        cut: &Cut,
        elem_bytes: u32,
        coords: &[Value],
        others: u32,
    ) -> Result<Vec<(u32, Vec<Value>)>> {
        let [rows, columns] = cut.block;
        // The dimension of the tensor whose extent the rows of the block are.
        let row_dim = self.row_dim(inst)?;
        let mut found = Vec::new();
        for column in (0..columns).step_by(cut.columns as usize) {
            let others = |row: &u32| others & row == 0;
            for row in (0..rows).step_by(cut.rows as usize).filter(others) {
                let bytes = (column * rows + row * cut.columns) * elem_bytes;
                let mut at = coords.to_vec();
                if let Some(last) = at.last_mut() {
                    *last = self.add_offset(*last, i64::from(column))?;
                }
                if let Some(dim) = row_dim.filter(|_| row != 0) {
                    at[dim] = self.add_offset(at[dim], i64::from(row))?;
                }
                found.push((bytes, at));
            }
        }
        Ok(found)
    }

    /// How the blocks of a ring come from the copy engine.
    fn cut(&self, slot: Slot) -> Result<Cut> {
        let layout = self.ring(slot)?;
        match self.tile.buffers[slot] {
            Some(buffer) => Ok(Cut::of(&layout, buffer.elem.bytes())),
            None => bug("a copy to a slot that holds no blocks"),
        }
    }

    /// The `tensor_map` that a copy names.
    fn map_inst(&self, inst: Inst) -> Result<Inst> {
        let tile = self.tile;
        let map = tile.dfg.def_inst(tile.dfg.insts[inst].args[0]);
        match map.filter(|&map| tile.dfg.insts[map].op == TileOp::TensorMap) {
            Some(map) => Ok(map),
            None => bug("a copy of a box of no map"),
        }
    }

    /// The dimension of a copy's tensor along which the rows of the block lie: the last but one with an extent above 1.
    fn row_dim(&self, inst: Inst) -> Result<Option<usize>> {
        let map = self.map_inst(inst)?;
        let tile = self.tile.dfg.insts[map].values().map_or(&[][..], |v| v);
        let outer = &tile[..tile.len().saturating_sub(1)];
        Ok(outer.iter().rposition(|&extent| extent != 1))
    }

    /// The address of the map of a copy whose blocks are cut so.
    fn map(&mut self, inst: Inst, cut: &Cut) -> Result<Value> {
        let tile = self.tile;
        let map = self.map_inst(inst)?;
        let data = &tile.dfg.insts[map];
        let row_dim = self.row_dim(inst)?;
        let mut numbers = HostNumbers::new(tile);
        let (base, offset) = self.base_of(data.args[0], &mut numbers)?;
        let Elem::Map(elem) = tile.dfg.ty(data.results[0]).elem else {
            return bug("a map that is none");
        };
        let mut extents = data.values().map_or(Vec::new(), |v| v.to_vec());
        let rank = extents.len();
        if let Some(dim) = row_dim {
            extents[dim] = cut.rows;
        }
        if let Some(last) = extents.last_mut() {
            *last = cut.columns;
        }
        let mut places = vec![offset];
        for &value in &data.args[1..] {
            let Some(place) = numbers.of(value) else {
                return bug(format!("{value} of a tensor map is no number of the host"));
            };
            places.push(place);
        }
        let written = numbers.written(&places);
        let [offset, condition, others @ ..] = &written.numbers[..] else {
            return bug("a map without a condition");
        };
        let recipe = MapRecipe {
            base,
            offset: offset.clone(),
            elem,
            extents: others[..rank].to_vec(),
            strides: others[rank..].to_vec(),
            tile: extents,
            swizzle: cut.swizzle,
            nan: false,
            parts: written.parts,
            condition: condition.clone(),
        };
        let maps = &mut self.b.func_mut().maps;
        let known = maps.iter().position(|known| *known == recipe);
        let index = known.unwrap_or_else(|| {
            maps.push(recipe);
            maps.len() - 1
        });
        if let Some(&address) = self.maps.get(&index) {
            return Ok(address);
        }
        let Ok(short) = u8::try_from(index) else {
            return bug("more maps than parameters");
        };
        let address = self.in_prologue(|this| {
            let mut data = InstData::new(ThreadOp::MapAddr, &[]);
            data.attrs.push(make::index(short));
            this.op(data, &[ThreadType::scalar(Elem::I64)])
        })?;
        self.maps.insert(index, address);
        Ok(address)
    }

    /// The parameter that a pointer starts from, and how many elements it is further on.
    fn base_of(&self, pointer: Value, numbers: &mut HostNumbers<'_>) -> Result<(u32, Place)> {
        let tile = self.tile;
        let mut offset = numbers.constant(0);
        let mut at = pointer;
        loop {
            if let Some(index) = tile.params().iter().position(|&param| param == at) {
                return Ok((index as u32, offset));
            }
            let data = tile.dfg.def_inst(at).map(|inst| &tile.dfg.insts[inst]);
            let Some(data) = data.filter(|data| data.op == TileOp::Addptr) else {
                return bug("the base of a tensor map is no parameter");
            };
            let Some(by) = numbers.of(data.args[1]) else {
                return bug("the base of a tensor map is not the host's to know");
            };
            offset = numbers.sum(offset, by);
            at = data.args[0];
        }
    }
}

/// Rows and columns of a block: the extents above 1, of which there are two at most.
fn extents(all: impl Iterator<Item = u64>) -> [u32; 2] {
    let mut found = [1, 1];
    for extent in all {
        if extent != 1 {
            found = [found[1], extent as u32];
        }
    }
    found
}
