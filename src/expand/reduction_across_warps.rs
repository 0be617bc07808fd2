//! Reductions over warps, through shared memory.
//!
//! Each warp writes its partial results once. Where a thread needs few results it reads those of all warps in vectors and folds them in
//! registers; where there are many warps, lanes that need the same results divide these: one barrier suffices. Where each needs many, as of a sum over rows of which
//! a thread holds sixteen columns, they would all do the same sixteen sums: then each thread folds one result (or
//! as many as there are for it), writes it, and all read what they need behind a second barrier.

use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Slot, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::ThreadOp;
use crate::ir::types::ThreadType;
use crate::linear_layout::layout::{HwDim, LinearLayout};

use super::memory::slot_attrs;
use super::reduction::Plan;
use super::reduction_across_lanes::SHUFFLE;
use super::{Expander, Result};

/// Largest number of warp bits folded in registers after a vector read. With more, each of the lanes that need the same results reads a
/// part of them and butterflies fold the parts: fewer instructions and registers, and on an H100 no slower (8 warps and more).
const MAX_VECTOR_FOLD_BITS: usize = 2;

/// What a load of up to 16 bytes of shared memory costs, in instructions of arithmetic.
const LOAD: u32 = 8;

/// What a second trip costs beside its loads: a store, a barrier, and the wait for both.
const TRIP: u32 = 60;

/// Where the folded results of a reduction are, as bits of the index in shared memory.
struct Places {
    thread_bits: u32,
    /// Warps that are folded.
    fold_bits: u32,
    /// Bits of the thread that tell apart different results.
    kept: Vec<u32>,
    register_bits: u32,
}

impl Places {
    /// Bits of the number of a result.
    fn result_bits(&self) -> u32 {
        self.kept.len() as u32 + self.register_bits
    }

    /// What each bit of the thread adds to an index; the `n`th of those that are kept `1 << (from + n)`.
    fn columns(&self, from: u32) -> Vec<u32> {
        let mut columns = vec![0; self.thread_bits as usize];
        for (n, &bit) in (0..).zip(&self.kept) {
            columns[bit as usize] = 1 << (from + n);
        }
        columns
    }
}

impl Expander<'_> {
    /// Folds the warps of what lanes have that exchanged halves of their registers, see [`Self::fold_lanes`]; gives all
    /// threads all registers.
    pub(super) fn fold_warps(
        &mut self,
        region: Block,
        plan: &Plan,
        layout: &LinearLayout,
        exchanged: &[u32],
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let lane_bits = layout.bits(HwDim::Lane);
        let kept_warps = plan.kept_warps.iter().map(|b| b + lane_bits);
        let registers = u32::from(self.ty(values[0]).count) << exchanged.len();
        let places = Places {
            thread_bits: lane_bits + layout.bits(HwDim::Warp),
            fold_bits: plan.warps.len() as u32,
            kept: plan.kept_lanes.iter().copied().chain(kept_warps).collect(),
            register_bits: registers.ilog2(),
        };
        // Index of a partial result: register, then kept thread bits, then the folded warp bits.
        let above = places.fold_bits + places.kept.len() as u32;
        let mut writer = places.columns(places.fold_bits);
        for (k, &bit) in plan.warps.iter().enumerate() {
            writer[(bit + lane_bits) as usize] = 1 << k;
        }
        // What lanes exchanged is the upper bits of the register.
        for (k, &bit) in exchanged.iter().enumerate() {
            writer[bit as usize] = (registers >> (k + 1)) << above;
        }
        // Of the threads that hold one partial result, the one whose lanes and copies are 0 writes; the folded warps differ.
        let folded_warps = plan.warps.iter().fold(0, |m, b| m | 1 << (b + lane_bits));
        let differ = exchanged.iter().fold(folded_warps, |m, bit| m | 1 << bit);
        let leader = self.leader(plan.silent_threads & !differ)?;
        let types: Vec<ThreadType> = values.iter().map(|&v| self.ty(v)).collect();
        let write_at = self.thread_part(&writer)?;
        let slots = self.leave(values, (write_at, above), registers << above, leader)?;

        let alike = (0..lane_bits).filter(|bit| plan.silent_threads >> bit & 1 == 1);
        let lanes: Vec<u32> = match plan.warps.len() {
            0..=MAX_VECTOR_FOLD_BITS => Vec::new(),
            folded => alike.take(folded).collect(),
        };
        let in_registers = places.fold_bits - lanes.len() as u32;
        if self.folds_apart(region, &places, &types, in_registers) {
            return self.fold_apart((region, plan), &places, &slots, &types, values);
        }
        let mut reader = places.columns(places.fold_bits);
        for (k, &lane) in (in_registers..).zip(&lanes) {
            reader[lane as usize] = 1 << k;
        }
        let read_at = self.thread_part(&reader)?;
        let parts = (registers, 1 << in_registers);
        *values = self.take(&slots, &types, (read_at, above), parts)?;
        self.fold_parts((region, plan), in_registers, values)?;
        for lane in lanes {
            self.fold_lane_bit(region, 1 << lane, values)?;
        }
        Ok(())
    }

    /// Whether it is less work that each thread folds its share of the results, and all read what they need in a second trip.
    fn folds_apart(
        &self,
        region: Block,
        places: &Places,
        types: &[ThreadType],
        in_registers: u32,
    ) -> bool {
        let (warps, registers) = (1 << places.fold_bits, 1 << places.register_bits);
        let (parts, by_lanes) = (1 << in_registers, places.fold_bits - in_registers);
        let shares = 1 << places.result_bits().saturating_sub(places.thread_bits);
        let loads = |count: u32| -> u32 {
            let vectors = |ty: &ThreadType| (count * ty.elem.bytes()).div_ceil(16);
            types.iter().map(|ty| LOAD * vectors(ty)).sum()
        };
        let combine = self.tile.order.insts(region).len() as u32 - 1;
        let shuffles = SHUFFLE * types.len() as u32;
        let here =
            registers * (loads(parts) + (parts - 1) * combine + by_lanes * (shuffles + combine));
        let apart = shares * (loads(warps) + (warps - 1) * combine) + loads(registers) + TRIP;
        4 * apart <= 3 * here
    }

    /// Each thread folds the results of its number, and of its number and as many as there are threads, and so on.
    fn fold_apart(
        &mut self,
        (region, plan): (Block, &Plan),
        places: &Places,
        slots: &[(Slot, Value)],
        types: &[ThreadType],
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let result_bits = places.result_bits();
        let own_bits = result_bits.min(places.thread_bits);
        let own = |column: &dyn Fn(u32) -> u32| -> Vec<u32> {
            let bits = 0..places.thread_bits;
            bits.map(|bit| if bit < own_bits { column(bit) } else { 0 })
                .collect()
        };
        let read_at = self.thread_part(&own(&|bit| 1 << (bit + places.fold_bits)))?;
        let shares = 1 << (result_bits - own_bits);
        let step = places.thread_bits + places.fold_bits;
        let each = 1 << places.fold_bits;
        *values = self.take(slots, types, (read_at, step), (shares, each))?;
        self.fold_parts((region, plan), places.fold_bits, values)?;

        // Registers come first in the index of a result, so that threads read vectors of them.
        let kept_bits = places.kept.len() as u32;
        let place = |bit: u32| match bit.checked_sub(kept_bits) {
            Some(register) => 1 << register,
            None => 1 << (places.register_bits + bit),
        };
        let write_at = self.thread_part(&own(&place))?;
        let threads = |bits: u32| (1u32 << bits) - 1;
        let others = threads(places.thread_bits) & !threads(own_bits);
        let leader = self.leader(others)?;
        // Shares of a thread differ in registers: there are no more kept bits than threads have.
        let share_step = places.thread_bits.saturating_sub(kept_bits);
        let slots = self.leave(values, (write_at, share_step), 1 << result_bits, leader)?;
        let read_at = self.thread_part(&places.columns(places.register_bits))?;
        let registers = 1 << places.register_bits;
        *values = self.take(&slots, types, (read_at, 0), (1, registers))?;
        Ok(())
    }

    /// Folds packs whose lowest bits of the index, so many of them, are of different warps.
    fn fold_parts(
        &mut self,
        (region, plan): (Block, &Plan),
        bits: u32,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let mut held: Vec<u32> = (0..u32::from(self.ty(values[0]).count)).collect();
        for (bit, &warp) in plan.warps.iter().take(bits as usize).enumerate() {
            let list = std::mem::take(values);
            let in_order = plan.in_order(HwDim::Warp, warp);
            (held, *values) = self.fold_registers(region, &held, list, bit, in_order)?;
        }
        Ok(())
    }

    /// Stores packs in slots of their own for `total` elements: register r at the index, further by `r << step`.
    fn leave(
        &mut self,
        values: &[Value],
        (index, step): (Value, u32),
        total: u32,
        leader: Option<Value>,
    ) -> Result<Vec<(Slot, Value)>> {
        let mut slots: Vec<(Slot, Value)> = Vec::new();
        for (i, &value) in values.iter().enumerate() {
            if let Some(same) = values[..i].iter().position(|&v| v == value) {
                slots.push(slots[same]);
                continue;
            }
            let value = self.carrier_of(value)?;
            let ty = self.ty(value);
            let size = ty.elem.bytes();
            let slot = self.b.func_mut().slots.push(SlotData {
                bytes: total * size,
                align: 16,
                offset: None,
                by_group: false,
            });
            let address = self.slot_address(slot, ty.elem)?;
            let place = self.moved_pointer(address, index)?;
            for register in 0..u32::from(ty.count) {
                let single = self.rearrange(&[value], &[register])?;
                let mut data = InstData::new(ThreadOp::St, &[place, single]);
                data.args.extend(leader);
                let offset = (register << step) * size;
                data.attrs.extend(slot_attrs(slot, offset));
                self.effect(data)?;
            }
            slots.push((slot, address));
        }
        Ok(slots)
    }

    /// Loads packs from slots: `count` times `each` elements that lie together at the index, the nth further by `n << step`.
    fn take(
        &mut self,
        slots: &[(Slot, Value)],
        types: &[ThreadType],
        (index, step): (Value, u32),
        (count, each): (u32, u32),
    ) -> Result<Vec<Value>> {
        let mut values: Vec<Value> = Vec::new();
        for (i, (&(slot, address), ty)) in slots.iter().zip(types).enumerate() {
            if let Some(same) = slots[..i].iter().position(|&(other, _)| other == slot) {
                values.push(values[same]);
                continue;
            }
            let elem = Self::carried_type(*ty).elem;
            let place = self.moved_pointer(address, index)?;
            let width = each.min(16 / elem.bytes());
            let mut parts = Vec::new();
            for n in 0..count {
                for chunk in 0..each / width {
                    let offset = ((n << step) + chunk * width) * elem.bytes();
                    let mut data = InstData::new(ThreadOp::Ld, &[place]);
                    data.attrs.extend(slot_attrs(slot, offset));
                    parts.push(self.op(data, &[ThreadType::pack(elem, width as u16)])?);
                }
            }
            let all: Vec<u32> = (0..count * each).collect();
            let joined = self.rearrange(&parts, &all)?;
            let ty = ThreadType::pack(ty.elem, all.len() as u16);
            values.push(self.carried_as(joined, ty)?);
        }
        Ok(values)
    }
}
