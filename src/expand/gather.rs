//! Expansion of gathers: within warps by shuffles where [`crate::layout::gather`] finds a plan, else through shared
//! memory, into which the source is written in row-major order and from which each thread reads what it looks for.
//!
//! An index is taken modulo the extent of the axis, so that whatever it is no address lies outside of the source.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attrs, IntPred, SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType, ValueType};
use crate::layout::gather::{WarpGather, cheap_within_warps};
use crate::linear_layout::layout::{HwDim, LinearLayout};

use super::memory::slot_attrs;
use super::regs::Expanded;
use super::{Expander, Result, bug};

impl Expander<'_> {
    pub(super) fn expand_gather(&mut self, inst: Inst) -> Result<Expanded> {
        let source = self.arg(inst, 0)?;
        if let Expanded::Uniform(_) = source {
            return Ok(source);
        }
        let (from, to) = (self.arg_type(inst, 0)?, self.arg_type(inst, 1)?);
        let (layout, wanted) = (self.layout(from)?, self.layout(to)?);
        let axis = usize::from(self.tile.dfg.insts[inst].axis().copied().unwrap_or(0));
        let count = wanted.num_registers() as usize;
        let index = self.arg(inst, 1)?;
        let index = self.pack_of(&index, count)?;
        let index = self.as_word(index)?;
        let pack = self.pack_of(&source, layout.num_registers() as usize)?;
        let carried = self.carrier_of(pack)?;
        let found = match cheap_within_warps(layout, wanted, axis) {
            Some(plan) => self.gather_in_warps(carried, index, &plan)?,
            None => self.gather_through_memory(carried, index, [layout, wanted], axis)?,
        };
        let ty = ThreadType::pack(from.elem, self.ty(found).count);
        Ok(Expanded::Pack(self.carried_as(found, ty)?))
    }

    /// Integers as 32-bit ones; of the wider ones the low bits, which are all that extents need.
    pub(super) fn as_word(&mut self, index: Value) -> Result<Value> {
        let ty = self.ty(index);
        let op = match ty.elem.bits() {
            32 => return Ok(index),
            64 => ThreadOp::Itrunc,
            _ => ThreadOp::Zext,
        };
        self.op(InstData::new(op, &[index]), &[ty.with_elem(Elem::I32)])
    }

    /// An operation of a pack of words and a number.
    fn with_number(&mut self, op: ThreadOp, x: Value, number: u32) -> Result<Value> {
        let number = self.constant(self.ty(x), u64::from(number));
        self.binary(op, x, number)
    }

    /// The bits of `x` that pairs name, moved from the first to the second; none if there are no pairs.
    fn moved_index_bits(&mut self, x: Value, pairs: &[(u8, u8)]) -> Result<Option<Value>> {
        let mut by_distance: Vec<(i32, u32)> = Vec::new();
        for &(from, to) in pairs {
            let distance = i32::from(to) - i32::from(from);
            match by_distance.iter_mut().find(|(d, _)| *d == distance) {
                Some((_, mask)) => *mask |= 1 << to,
                None => by_distance.push((distance, 1 << to)),
            }
        }
        let mut sum: Option<Value> = None;
        for (distance, mask) in by_distance {
            let by = distance.unsigned_abs();
            let moved = match distance {
                0 => x,
                1.. => self.with_number(ThreadOp::Shl, x, by)?,
                _ => self.with_number(ThreadOp::Ushr, x, by)?,
            };
            let kept = self.with_number(ThreadOp::And, moved, mask)?;
            sum = Some(match sum {
                Some(sum) => self.binary(ThreadOp::Or, sum, kept)?,
                None => kept,
            });
        }
        Ok(sum)
    }

    fn gather_in_warps(&mut self, source: Value, index: Value, plan: &WarpGather) -> Result<Value> {
        let count = self.ty(index).count;
        let lanes = match self.moved_index_bits(index, &plan.lanes)? {
            None => None,
            Some(asked) => {
                let named = plan.lanes.iter().fold(0u32, |m, &(_, lane)| m | 1 << lane);
                let own = if named == 31 {
                    asked
                } else {
                    let tid = self.special(SpecialReg::Tid);
                    let others = self.int(Elem::I32, i64::from(31 & !named));
                    let own = self.binary(ThreadOp::And, tid, others)?;
                    let own = self.pack_of(&Expanded::Uniform(own), usize::from(count))?;
                    self.binary(ThreadOp::Or, asked, own)?
                };
                Some(own)
            }
        };
        let mut conditions = Vec::new();
        for &(bit, _) in &plan.registers {
            let bit = self.with_number(ThreadOp::And, index, 1 << bit)?;
            let zero = self.constant(self.ty(bit), 0);
            let mut data = InstData::new(ThreadOp::Icmp, &[bit, zero]);
            data.attrs.push(make::ipred(IntPred::Ne));
            conditions.push(self.op(data, &[])?);
        }
        let mut results = Vec::new();
        for (i, &base) in plan.base.iter().enumerate() {
            let choices: Vec<u32> = (0..1u32 << plan.registers.len())
                .map(|choice| {
                    let set = plan.registers.iter().enumerate();
                    let set = set.filter(|&(k, _)| choice >> k & 1 == 1);
                    set.fold(u32::from(base), |r, (_, &(_, register))| r | 1 << register)
                })
                .collect();
            let mut word = self.rearrange(&[source], &choices)?;
            if let Some(lanes) = lanes {
                let lane = self.rearrange(&[lanes], &[i as u32])?;
                word = self.op(InstData::new(ThreadOp::ShflIdx, &[word, lane]), &[])?;
            }
            // The highest bit of the choice first: halves of what is left.
            for (k, &condition) in conditions.iter().enumerate().rev() {
                let half = 1u32 << k;
                let low: Vec<u32> = (0..half).collect();
                let high: Vec<u32> = (half..2 * half).collect();
                let (low, high) = (
                    self.rearrange(&[word], &low)?,
                    self.rearrange(&[word], &high)?,
                );
                let condition = self.rearrange(&[condition], &[i as u32])?;
                word = self.select_all(condition, high, low)?;
            }
            results.push(word);
        }
        let map: Vec<u32> = (0..results.len() as u32).collect();
        self.rearrange(&results, &map)
    }

    fn gather_through_memory(
        &mut self,
        source: Value,
        index: Value,
        [from, to]: [&LinearLayout; 2],
        axis: usize,
    ) -> Result<Value> {
        let elem = self.ty(source).elem;
        let size = elem.bytes();
        let shape = from.shape();
        let slot = self.b.func_mut().slots.push(SlotData {
            bytes: (shape.elements() as u32 * size).max(16),
            align: 16,
            offset: None,
            by_group: false,
        });
        let start = self.slot_address(slot, elem)?;
        let lanes = from.bits(HwDim::Lane);
        let copies = from.free_mask(HwDim::Lane) | from.free_mask(HwDim::Warp) << lanes;
        let writes = self.leader(copies)?;
        let free = from.free_mask(HwDim::Register);
        let last = shape.rank().saturating_sub(1);
        let width = from.vector_width(last, 16 / size);
        let columns = Self::thread_columns(from);
        let mut addresses = FxHashMap::default();
        let mut register = 0;
        while register < from.num_registers() {
            if register & free != 0 {
                register += 1;
                continue;
            }
            let own = from.apply_dim(HwDim::Register, register);
            let (address, offset) = self.element_address(start, &columns, own, &mut addresses)?;
            let group: Vec<u32> = (register..register + width).collect();
            let stored = self.rearrange(&[source], &group)?;
            let mut data = InstData::new(ThreadOp::St, &[address, stored]);
            data.args.extend(writes);
            data.attrs.extend(slot_attrs(slot, offset * size));
            self.effect(data)?;
            register += width;
        }

        // Where the index's other coordinates are in the source.
        let low = shape.bit_offset(axis);
        let place = |flat: u32| -> u32 {
            let dims = (0..shape.rank()).filter(|&dim| dim != axis);
            dims.fold(0, |sum, dim| {
                sum | to.shape().coordinate(flat, dim) << shape.bit_offset(dim)
            })
        };
        let mask = shape.extent(axis) as u32 - 1;
        let kept = self.with_number(ThreadOp::And, index, mask)?;
        let along = if low == 0 {
            kept
        } else {
            self.with_number(ThreadOp::Shl, kept, low)?
        };
        let columns: Vec<u32> = Self::thread_columns(to).iter().map(|&c| place(c)).collect();
        addresses.clear();
        let mut results = Vec::new();
        for register in 0..to.num_registers() {
            let own = place(to.apply_dim(HwDim::Register, register));
            let (base, offset) = self.element_address(start, &columns, own, &mut addresses)?;
            let index = self.rearrange(&[along], &[register])?;
            let address = self.moved_pointer(base, index)?;
            let mut data = InstData::new(ThreadOp::Ld, &[address]);
            data.attrs.extend(slot_attrs(slot, offset * size));
            results.push(self.op(data, &[ThreadType::scalar(elem)])?);
        }
        if results.is_empty() {
            return bug("a gather without registers");
        }
        let map: Vec<u32> = (0..results.len() as u32).collect();
        self.rearrange(&results, &map)
    }

    /// Address of the element `thread part ^ own` of a buffer, as a pointer and a number of elements further.
    pub(super) fn element_address(
        &mut self,
        start: Value,
        columns: &[u32],
        own: u32,
        known: &mut FxHashMap<u32, Value>,
    ) -> Result<(Value, u32)> {
        let threads = columns.iter().fold(0, |all, c| all | c);
        // What threads and registers both switch does not add up.
        let (switched, added) = (own & threads, own & !threads);
        if let Some(&address) = known.get(&switched) {
            return Ok((address, added));
        }
        let part = self.thread_part(columns)?;
        let part = if switched == 0 {
            part
        } else {
            self.with_number(ThreadOp::Xor, part, switched)?
        };
        let address = self.moved_pointer(start, part)?;
        known.insert(switched, address);
        Ok((address, added))
    }
}
