//! Expansion of reductions: halves of registers, then lanes by butterfly shuffles, then warps through one
//! trip to shared memory, each bit of the index along the axis one fold.
//!
//! The folds go through register bits, lane bits and warp bits in this sequence, low bits first: the
//! sequence that the attribute `order` of the op states. After the butterflies all lanes of a group hold
//! the result; each warp writes it once, all threads read the results of all warps in vectors and fold
//! them in registers (or lane by lane where there are many warps), so one barrier suffices.

use smallvec::SmallVec;

use crate::ir::attrs::{IntPred, RedOp, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType, ValueType};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::shape::Shape;

use super::memory::slot_attrs;
use super::regs::Expanded;
use super::{Expander, Result, bug, own_bytes};

/// Largest number of warp bits folded in registers after a vector read. With more, each lane reads one partial
/// result and butterflies fold them: fewer instructions and registers, and on an H100 no slower (8 warps and more).
const MAX_VECTOR_FOLD_BITS: usize = 2;

/// What each bit of the thread index and of the register index means to a reduction.
struct Plan {
    axis_mask: u32,
    /// Lane bits to fold, ascending.
    lanes: Vec<u32>,
    /// Warp bits to fold, ascending.
    warps: Vec<u32>,
    /// Lane bits that tell apart different results.
    kept_lanes: Vec<u32>,
    /// Warp bits that tell apart different results.
    kept_warps: Vec<u32>,
    /// Bits of the thread index that only make copies or are folded.
    silent_threads: u32,
}

impl Plan {
    fn new(layout: &LinearLayout, axis: usize) -> Plan {
        let axis_mask = layout.shape().bit_mask(axis);
        let split = |dim: HwDim| {
            let free = layout.free_mask(dim);
            let columns = layout.columns(dim).iter().enumerate();
            let used = columns.filter(move |&(bit, _)| free >> bit & 1 == 0);
            let (folded, kept): (Vec<_>, Vec<_>) = used.partition(|&(_, &c)| c & axis_mask != 0);
            let bits = |list: Vec<(usize, &u32)>| {
                list.into_iter()
                    .map(|(bit, _)| bit as u32)
                    .collect::<Vec<_>>()
            };
            (bits(folded), bits(kept))
        };
        let (lanes, kept_lanes) = split(HwDim::Lane);
        let (warps, kept_warps) = split(HwDim::Warp);
        let lane_bits = layout.bits(HwDim::Lane);
        let all = (layout.size(HwDim::Lane) * layout.size(HwDim::Warp)) - 1;
        let kept = kept_lanes.iter().fold(0, |m, b| m | 1 << b)
            | kept_warps.iter().fold(0, |m, b| m | 1 << (b + lane_bits));
        Plan {
            axis_mask,
            lanes,
            warps,
            kept_lanes,
            kept_warps,
            silent_threads: all & !kept,
        }
    }
}

impl Expander<'_> {
    pub(super) fn expand_reduce(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let Some(region) = data.blocks.first().map(|call| call.block) else {
            return bug("a reduction without region");
        };
        let axis = usize::from(crate::ir::attrs::Attrs::axis(data).copied().unwrap_or(0));
        let operand = self.arg_type(inst, 0)?;
        let layout = self.layout(operand)?;
        let plan = Plan::new(layout, axis);

        // Registers that hold no copies, then one fold per register bit.
        let free = layout.free_mask(HwDim::Register);
        let all: Vec<u32> = (0..layout.num_registers())
            .filter(|r| r & free == 0)
            .collect();
        let mut held = all.clone();
        let map: Vec<u16> = all.iter().map(|&r| r as u16).collect();
        let mut values = Vec::new();
        for i in 0..data.args.len() {
            let arg = self.arg(inst, i)?;
            let picked = self.pick(&arg, &map)?;
            values.push(self.pack_of(&picked, map.len())?);
        }
        for (bit, &column) in layout.columns(HwDim::Register).iter().enumerate() {
            if column & plan.axis_mask != 0 && free >> bit & 1 == 0 {
                (held, values) = self.fold_registers(region, &held, values, bit)?;
            }
        }
        self.fold_lanes(region, &plan, &mut values)?;
        if !plan.warps.is_empty() {
            self.fold_warps(region, &plan, layout, &mut values)?;
        }

        for (i, &result) in data.results.iter().enumerate() {
            let ty = tile.dfg.ty(result);
            let expanded = if ty.is_scalar() {
                Expanded::Uniform(values[i])
            } else {
                let map = self.result_registers(layout, axis, ty.shape, self.layout(ty)?, &held)?;
                self.pick(&Expanded::Pack(values[i]), &map)?
            };
            self.values[result] = Some(expanded);
        }
        Ok(())
    }

    /// Combines registers whose index differs in `bit`.
    fn fold_registers(
        &mut self,
        region: Block,
        held: &[u32],
        values: Vec<Value>,
        bit: usize,
    ) -> Result<(Vec<u32>, Vec<Value>)> {
        let place = |r: u32| held.iter().position(|&h| h == r).map(|p| p as u32);
        let low: Vec<u32> = held.iter().copied().filter(|r| r >> bit & 1 == 0).collect();
        let halves: Option<(Vec<u32>, Vec<u32>)> = low
            .iter()
            .map(|&r| Some((place(r)?, place(r | 1 << bit)?)))
            .collect();
        let Some((left, right)) = halves else {
            return bug("registers of a reduction do not pair up");
        };
        let mut lefts = Vec::new();
        let mut rights = Vec::new();
        for &value in &values {
            lefts.push(self.rearrange(&[value], &left)?);
            rights.push(self.rearrange(&[value], &right)?);
        }
        let combined = self.combine_region(region, &lefts, &rights)?;
        Ok((low, combined))
    }

    fn fold_lanes(&mut self, region: Block, plan: &Plan, values: &mut Vec<Value>) -> Result<()> {
        if plan.lanes.len() == 5
            && self.target.sm >= 80
            && let (Some(redop), &[value]) = (self.redux_op(region), &values[..])
            && self.ty(value).elem == Elem::I32
        {
            let mut data = InstData::new(ThreadOp::Redux, &[value]);
            data.attrs.push(make::redop(redop));
            values[0] = self.op(data, &[])?;
            return Ok(());
        }
        for &bit in &plan.lanes {
            self.fold_lane_bit(region, 1 << bit, values)?;
        }
        Ok(())
    }

    fn fold_lane_bit(&mut self, region: Block, mask: u32, values: &mut Vec<Value>) -> Result<()> {
        let mut others: Vec<Value> = Vec::with_capacity(values.len());
        for (i, &value) in values.iter().enumerate() {
            // One trip serves all operands that are one value.
            others.push(match values[..i].iter().position(|&v| v == value) {
                Some(same) => others[same],
                None => self.shuffled(value, mask)?,
            });
        }
        *values = self.combine_region(region, values, &others)?;
        Ok(())
    }

    /// The values of lane `lane ^ mask`, of any element type.
    pub(super) fn shuffled(&mut self, value: Value, mask: u32) -> Result<Value> {
        let ty = self.ty(value);
        let carried = self.carrier_of(value)?;
        let mut data = InstData::new(ThreadOp::ShflBfly, &[carried]);
        data.attrs.push(make::mask(mask));
        let moved = self.op(data, &[])?;
        self.carried_as(moved, ty)
    }

    /// Truth values and pointers as integers, which can move between threads.
    pub(super) fn carrier_of(&mut self, value: Value) -> Result<Value> {
        let ty = self.ty(value);
        match ty.elem {
            Elem::I1 => self.op(
                InstData::new(ThreadOp::Zext, &[value]),
                &[ty.with_elem(Elem::I32)],
            ),
            Elem::Ptr(..) => self.op(
                InstData::new(ThreadOp::PtrCast, &[value]),
                &[ty.with_elem(Elem::I64)],
            ),
            Elem::Num(_) | Elem::Map(_) | Elem::Token => Ok(value),
        }
    }

    /// The inverse of [`Self::carrier_of`].
    pub(super) fn carried_as(&mut self, value: Value, ty: ThreadType) -> Result<Value> {
        match ty.elem {
            Elem::I1 => {
                let zero = self.constant(ty.with_elem(Elem::I32), 0);
                let mut data = InstData::new(ThreadOp::Icmp, &[value, zero]);
                data.attrs.push(make::ipred(IntPred::Ne));
                self.op(data, &[])
            }
            Elem::Ptr(..) => self.op(InstData::new(ThreadOp::PtrCast, &[value]), &[ty]),
            Elem::Num(_) | Elem::Map(_) | Elem::Token => Ok(value),
        }
    }

    fn fold_warps(
        &mut self,
        region: Block,
        plan: &Plan,
        layout: &LinearLayout,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let lane_bits = layout.bits(HwDim::Lane);
        let thread_bits = (lane_bits + layout.bits(HwDim::Warp)) as usize;
        let fold_bits = plan.warps.len();
        // Index of a partial result: register, then kept thread bits, then the folded warp bits.
        let mut writer = vec![0u32; thread_bits];
        for (k, &bit) in plan.warps.iter().enumerate() {
            writer[(bit + lane_bits) as usize] = 1 << k;
        }
        let mut reader = vec![0u32; thread_bits];
        let kept = plan
            .kept_lanes
            .iter()
            .copied()
            .chain(plan.kept_warps.iter().map(|b| b + lane_bits));
        let mut next = fold_bits;
        for bit in kept {
            writer[bit as usize] = 1 << next;
            reader[bit as usize] = 1 << next;
            next += 1;
        }
        let by_lane = fold_bits > MAX_VECTOR_FOLD_BITS && plan.kept_lanes.is_empty();
        if by_lane {
            for (k, column) in reader
                .iter_mut()
                .take(fold_bits.min(lane_bits as usize))
                .enumerate()
            {
                *column = 1 << k;
            }
        }
        // Of the threads that hold one partial result, the one whose lanes and copies are 0 writes; the folded warps differ.
        let folded_warps = plan.warps.iter().fold(0, |m, b| m | 1 << (b + lane_bits));
        let leader = self.leader(plan.silent_threads & !folded_warps)?;
        let write_at = self.thread_part(&writer)?;
        let read_at = self.thread_part(&reader)?;

        let operands = values.clone();
        let same = |i: usize| operands[..i].iter().position(|&v| v == operands[i]);
        let types: Vec<ThreadType> = values.iter().map(|&v| self.ty(v)).collect();
        let mut slots: Vec<(Slot, Value)> = Vec::new();
        for (i, value) in values.iter_mut().enumerate() {
            if let Some(same) = same(i) {
                slots.push(slots[same]);
                continue;
            }
            *value = self.carrier_of(*value)?;
            let ty = self.ty(*value);
            let size = ty.elem.bytes();
            let bytes = (u32::from(ty.count) << next) * size;
            let slot = self.b.func_mut().slots.push(SlotData {
                bytes,
                align: 16,
                offset: None,
                by_group: false,
            });
            let address = self.slot_address(slot, ty.elem)?;
            let place = self.moved_pointer(address, write_at)?;
            for reg in 0..ty.count {
                let single = self.rearrange(&[*value], &[u32::from(reg)])?;
                let mut data = InstData::new(ThreadOp::St, &[place, single]);
                data.args.extend(leader);
                data.attrs
                    .extend(slot_attrs(slot, (u32::from(reg) << next) * size));
                self.effect(data)?;
            }
            slots.push((slot, address));
        }
        for i in 0..values.len() {
            if let Some(same) = same(i) {
                values[i] = values[same];
                continue;
            }
            let value = &mut values[i];
            let ty = self.ty(*value);
            let (slot, address) = slots[i];
            let place = self.moved_pointer(address, read_at)?;
            let each = if by_lane { 1 } else { 1u32 << fold_bits };
            let mut parts = Vec::new();
            for reg in 0..u32::from(ty.count) {
                let width = each.min(16 / ty.elem.bytes());
                for chunk in 0..each / width {
                    let offset = ((reg << next) + chunk * width) * ty.elem.bytes();
                    let mut data = InstData::new(ThreadOp::Ld, &[place]);
                    data.attrs.extend(slot_attrs(slot, offset));
                    parts.push(self.op(data, &[ThreadType::pack(ty.elem, width as u16)])?);
                }
            }
            let total = u32::from(ty.count) * each;
            let map: Vec<u32> = (0..total).collect();
            let joined = self.rearrange(&parts, &map)?;
            *value = self.carried_as(joined, ThreadType::pack(types[i].elem, total as u16))?;
        }
        if by_lane {
            for k in 0..fold_bits {
                self.fold_lane_bit(region, 1 << k, values)?;
            }
        } else {
            let mut held: Vec<u32> = (0..u32::from(self.ty(values[0]).count)).collect();
            for bit in 0..fold_bits {
                let list = std::mem::take(values);
                (held, *values) = self.fold_registers(region, &held, list, bit)?;
            }
        }
        Ok(())
    }

    /// Address of a slot as a pointer to `elem`.
    pub(super) fn slot_address(&mut self, slot: Slot, elem: Elem) -> Result<Value> {
        let pointee = elem.scalar().unwrap_or(Scalar::I32);
        let ty = ThreadType::scalar(Elem::Ptr(pointee, AddressSpace::Shared));
        let mut data = InstData::new(ThreadOp::SlotAddr, &[]);
        data.attrs.push(make::slot(slot));
        let address = self.op(data, &[ty])?;
        self.in_own_part(slot, address)
    }

    /// The address in a slot, moved to the part of the thread's group if each has its own.
    fn in_own_part(&mut self, slot: Slot, address: Value) -> Result<Value> {
        let Some(group) = self.group.filter(|_| !self.for_all.contains(slot)) else {
            return Ok(address);
        };
        let bytes = own_bytes(&self.b.func().slots[slot]);
        let pointee = self.ty(address).elem.pointee().map_or(1, |p| p.bytes());
        let elements = self.int(Elem::I32, i64::from(bytes / pointee));
        let further = self.binary(ThreadOp::Imul, group.number, elements)?;
        self.moved_pointer(address, further)
    }

    /// `pointer` moved by `index` elements.
    pub(super) fn moved_pointer(&mut self, pointer: Value, index: Value) -> Result<Value> {
        if self.known(index) == Some(0) {
            Ok(pointer)
        } else {
            self.binary(ThreadOp::Addptr, pointer, index)
        }
    }

    /// Runs the combining region on packs, element by element.
    pub(super) fn combine_region(
        &mut self,
        region: Block,
        left: &[Value],
        right: &[Value],
    ) -> Result<Vec<Value>> {
        let tile = self.tile;
        let params = &tile.dfg.blocks[region].params;
        if params.len() != left.len() + right.len() {
            return bug("a reduction's region has the wrong number of parameters");
        }
        let count = left
            .iter()
            .map(|&v| usize::from(self.ty(v).count))
            .max()
            .unwrap_or(1);
        for (&param, &value) in params.iter().zip(left.iter().chain(right)) {
            self.values[param] = Some(Expanded::Pack(value));
        }
        for &inst in tile.order.insts(region) {
            let data = &tile.dfg.insts[inst];
            if data.op == TileOp::Yield {
                let mut results = Vec::new();
                for &value in &data.args {
                    let expanded = self.expanded(value)?;
                    results.push(self.pack_of(&expanded, count)?);
                }
                return Ok(results);
            }
            let result = if data.op == TileOp::Const {
                self.expand_const(inst)?
            } else {
                self.expand_elementwise(inst, count)?
            };
            self.set_result(inst, result)?;
        }
        bug("a reduction's region does not end in yield")
    }

    /// The op that `redux.sync` has for the region, if it is a single one.
    fn redux_op(&self, region: Block) -> Option<RedOp> {
        let insts = self.tile.order.insts(region);
        let &[only, _yield] = insts else { return None };
        let data = &self.tile.dfg.insts[only];
        let params: SmallVec<[Value; 4]> = self.tile.dfg.blocks[region].params.clone();
        let reversed: SmallVec<[Value; 4]> = params.iter().rev().copied().collect();
        let yielded = self
            .tile
            .order
            .last(region)
            .map(|y| &self.tile.dfg.insts[y].args);
        if (data.args != params && data.args != reversed) || yielded?[..] != data.results[..] {
            return None;
        }
        Some(match data.op {
            TileOp::Iadd => RedOp::Add,
            TileOp::Smin => RedOp::Smin,
            TileOp::Smax => RedOp::Smax,
            TileOp::Umin => RedOp::Umin,
            TileOp::Umax => RedOp::Umax,
            TileOp::And => RedOp::And,
            TileOp::Or => RedOp::Or,
            TileOp::Xor => RedOp::Xor,
            _ => return None,
        })
    }

    /// For each register of the result's layout, the position among the registers left that holds its element.
    fn result_registers(
        &self,
        operand: &LinearLayout,
        axis: usize,
        shape: Shape,
        result: &LinearLayout,
        held: &[u32],
    ) -> Result<Vec<u16>> {
        let from = operand.shape();
        let low = from.bit_offset(axis);
        let width = from.log2()[axis];
        let drop = |flat: u32| (flat >> (low + u32::from(width))) << low | flat & ((1 << low) - 1);
        for dim in [HwDim::Lane, HwDim::Warp] {
            let dropped = operand
                .columns(dim)
                .iter()
                .map(|&c| drop(c & !from.bit_mask(axis)));
            if !dropped.eq(result.columns(dim).iter().copied()) {
                return bug(format!(
                    "the layout of a reduction's result [{shape}] does not follow from its operand's"
                ));
            }
        }
        let mut places = rustc_hash::FxHashMap::default();
        for (place, &register) in held.iter().enumerate() {
            let flat = operand.apply(register, 0, 0, 0) & !from.bit_mask(axis);
            places.entry(drop(flat)).or_insert(place as u16);
        }
        let found =
            (0..result.num_registers()).map(|r| places.get(&result.apply(r, 0, 0, 0)).copied());
        match found.collect::<Option<Vec<u16>>>() {
            Some(map) => Ok(map),
            None => bug("a reduction's result has registers that no thread computes"),
        }
    }
}
