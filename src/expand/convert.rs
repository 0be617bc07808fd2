//! Expansion of layout conversions, as [`crate::layout::convert`] plans them.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{IntPred, make};
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType, ValueType};
use crate::layout::convert::shared::{ExchangeSide, SharedPlan};
use crate::layout::convert::shuffle::{LaneMap, Predicate, ShufflePlan, ShuffleStep};
use crate::layout::convert::{Conversion, plan_any};
use crate::linear_layout::layout::HwDim;

use super::memory::slot_attrs;
use super::regs::Expanded;
use super::{Expander, Result};

/// How many values are looked at for where a block comes from.
const MOST_SOURCES: usize = 64;

impl Expander<'_> {
    pub(super) fn expand_convert(&mut self, inst: Inst) -> Result<Expanded> {
        let source = self.arg(inst, 0)?;
        if let Expanded::Uniform(_) = source {
            return Ok(source);
        }
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let (src, dst) = (self.layout(from)?, self.layout(to)?);
        if let Some(map) = dst.register_map(src) {
            return self.pick(&source, &map);
        }
        let pack = self.pack_of(&source, src.num_registers() as usize)?;
        let (carried, plan) = match from.elem {
            // In shared memory truth values are bytes, of which a word has four.
            Elem::I1 => match plan_any(src, dst, 1, &mut self.choices) {
                plan @ Conversion::Shared(_) => {
                    let bytes = self.ty(pack).with_elem(Elem::Num(Scalar::I8));
                    let bytes = self.op(InstData::new(ThreadOp::Zext, &[pack]), &[bytes])?;
                    (bytes, Some(plan))
                }
                _ => (self.carrier_of(pack)?, None),
            },
            _ => (self.carrier_of(pack)?, None),
        };
        let elem = self.ty(carried).elem;
        let plan = match plan {
            Some(plan) => plan,
            None => plan_any(src, dst, elem.bytes(), &mut self.choices),
        };
        let moved = match plan {
            Conversion::Identity => carried,
            Conversion::Registers(map) => {
                let map: Vec<u32> = map.iter().map(|&r| u32::from(r)).collect();
                self.rearrange(&[carried], &map)?
            }
            Conversion::Shuffle(plan) => self.convert_by_shuffles(carried, &plan)?,
            Conversion::Shared(plan) => {
                if !self.is_producer && self.is_loaded_here(self.tile.dfg.insts[inst].args[0]) {
                    self.effect(InstData::new(ThreadOp::WarpBarrier, &[]))?;
                }
                self.convert_through_memory(carried, elem, &plan)?
            }
        };
        let ty = ThreadType::pack(from.elem, self.ty(moved).count);
        let result = self.carried_as(moved, ty)?;
        // What comes from other threads has the bits that any element had there.
        let possible = self.bits.get(pack) & self.bits.get(result);
        self.bits.set(result, possible);
        Ok(Expanded::Pack(result))
    }

    /// Whether what is converted is made of what the same block loads from global memory. The assembler would move each of these loads down to
    /// the store of its value in shared memory, to save registers, and wait for one after the other (of ten loads of 16 bytes two under way
    /// at once). Stores do not pass a barrier of the warp, and loads do not either; it is no instruction where the warp is together. That costs
    /// no CTA: what is alive at once takes less of the registers than of shared memory.
    fn is_loaded_here(&self, value: Value) -> bool {
        let tile = self.tile;
        let block = |inst| tile.order.block_of(inst);
        let home = tile.dfg.def_inst(value).and_then(block);
        let mut from: Vec<Value> = vec![value];
        let mut next = 0;
        while let Some(&value) = from.get(next).filter(|_| next < MOST_SOURCES) {
            next += 1;
            let Some(inst) = tile.dfg.def_inst(value).filter(|&inst| block(inst) == home) else {
                continue;
            };
            let data = &tile.dfg.insts[inst];
            match data.class() {
                _ if data.op == TileOp::Load => return true,
                OpClass::Elementwise | OpClass::Shape => from.extend(&data.args),
                _ => {}
            }
        }
        false
    }

    /// Single elements of a pack.
    fn singles(&mut self, pack: Value) -> Result<Vec<Value>> {
        (0..u32::from(self.ty(pack).count))
            .map(|i| self.rearrange(&[pack], &[i]))
            .collect()
    }

    fn joined(&mut self, singles: &[Value]) -> Result<Value> {
        let map: Vec<u32> = (0..singles.len() as u32).collect();
        self.rearrange(singles, &map)
    }

    fn convert_by_shuffles(&mut self, pack: Value, plan: &ShufflePlan) -> Result<Value> {
        let mut values = self.singles(pack)?;
        let conditions: Vec<Value> = plan
            .predicates
            .iter()
            .map(|p| self.thread_parity(p))
            .collect::<Result<_>>()?;
        for step in &plan.steps {
            match step {
                ShuffleStep::Select {
                    predicate,
                    set,
                    clear,
                } => {
                    let operands = [
                        conditions[usize::from(*predicate)],
                        values[usize::from(*set)],
                        values[usize::from(*clear)],
                    ];
                    values.push(self.op(InstData::new(ThreadOp::Select, &operands), &[])?);
                }
                ShuffleStep::Shuffle { values: sent, xor } => {
                    let sent: Vec<Value> = sent.iter().map(|&v| values[usize::from(v)]).collect();
                    let word = self.joined(&sent)?;
                    let got = self.shuffle_word(word, plan.lane_map.as_ref(), u32::from(*xor))?;
                    values.extend(self.singles(got)?);
                }
            }
        }
        let results: Vec<Value> = plan
            .results
            .iter()
            .map(|&v| values[usize::from(v)])
            .collect();
        self.joined(&results)
    }

    fn shuffle_word(&mut self, word: Value, map: Option<&LaneMap>, xor: u32) -> Result<Value> {
        match map {
            None if xor == 0 => Ok(word),
            None => {
                let mut data = InstData::new(ThreadOp::ShflBfly, &[word]);
                data.attrs.push(make::mask(xor));
                self.op(data, &[])
            }
            Some(map) => {
                let columns: Vec<u32> = map
                    .lanes
                    .iter()
                    .chain(&map.warps)
                    .map(|&c| u32::from(c))
                    .collect();
                let base = self.thread_part(&columns)?;
                let lane = if xor == 0 {
                    base
                } else {
                    let xor = self.int(Elem::I32, i64::from(xor));
                    self.binary(ThreadOp::Xor, base, xor)?
                };
                self.op(InstData::new(ThreadOp::ShflIdx, &[word, lane]), &[])
            }
        }
    }

    /// Whether an odd number of the predicate's bits are set in the thread index.
    fn thread_parity(&mut self, predicate: &Predicate) -> Result<Value> {
        let lanes = (0..5).map(|bit| predicate.lane_mask >> bit & 1);
        let warps = self.tile.num_warps().ilog2();
        let columns: Vec<u32> = lanes
            .chain((0..warps).map(|bit| predicate.warp_mask >> bit & 1))
            .collect();
        let odd = self.thread_part(&columns)?;
        let zero = self.int(Elem::I32, 0);
        let mut data = InstData::new(ThreadOp::Icmp, &[odd, zero]);
        data.attrs.push(make::ipred(IntPred::Ne));
        self.op(data, &[])
    }

    fn convert_through_memory(
        &mut self,
        pack: Value,
        elem: Elem,
        plan: &SharedPlan,
    ) -> Result<Value> {
        let slot = self.b.func_mut().slots.push(SlotData {
            bytes: plan.bytes.max(16),
            align: 16,
            offset: None,
            by_group: false,
        });
        let lane_bits = 5;
        let idle = plan.store.idle_lanes | plan.store.idle_warps << lane_bits;
        let writes = self.leader(idle)?;
        // Groups differ by constants; only a change of the bits that are switched needs another address.
        let mut addresses = FxHashMap::default();
        for group in &plan.store.groups {
            let map: Vec<u32> = group.registers.iter().map(|&r| u32::from(r)).collect();
            let stored = self.rearrange(&[pack], &map)?;
            let address = match addresses.get(&group.xor) {
                Some(&address) => address,
                None => self.swizzled_address(slot, elem, &plan.store, group.xor)?,
            };
            addresses.insert(group.xor, address);
            let mut data = InstData::new(ThreadOp::St, &[address, stored]);
            data.args.extend(writes);
            data.attrs.extend(slot_attrs(slot, group.add));
            self.effect(data)?;
        }
        let mut loaded = Vec::new();
        let mut place = vec![0u32; plan.copies.len()];
        let mut next = 0;
        addresses.clear();
        for group in &plan.load.groups {
            let address = match addresses.get(&group.xor) {
                Some(&address) => address,
                None => self.swizzled_address(slot, elem, &plan.load, group.xor)?,
            };
            addresses.insert(group.xor, address);
            let mut data = InstData::new(ThreadOp::Ld, &[address]);
            data.attrs.extend(slot_attrs(slot, group.add));
            let width = group.registers.len() as u16;
            loaded.push(self.op(data, &[ThreadType::pack(elem, width)])?);
            for &register in &group.registers {
                place[usize::from(register)] = next;
                next += 1;
            }
        }
        let map: Vec<u32> = plan.copies.iter().map(|&r| place[usize::from(r)]).collect();
        self.rearrange(&loaded, &map)
    }

    /// Address of the thread's part with `xor` bytes switched.
    fn swizzled_address(
        &mut self,
        slot: Slot,
        elem: Elem,
        access: &ExchangeSide,
        xor: u32,
    ) -> Result<Value> {
        let mut columns = vec![0u32; 5 + self.tile.num_warps().ilog2() as usize];
        for column in &access.columns {
            let bit = usize::from(column.bit) + if column.dim == HwDim::Lane { 0 } else { 5 };
            if let Some(slot) = columns.get_mut(bit) {
                *slot = column.xor;
            }
        }
        let base = self.thread_part(&columns)?;
        let bytes = if xor == 0 {
            base
        } else {
            let xor = self.int(Elem::I32, i64::from(xor));
            self.binary(ThreadOp::Xor, base, xor)?
        };
        // Offsets are in bytes, so the pointer is moved as one to bytes.
        let start = self.slot_address(slot, Elem::Num(Scalar::I8))?;
        let moved = self.moved_pointer(start, bytes)?;
        let pointee = elem.scalar().unwrap_or(Scalar::I32);
        let ty = ThreadType::scalar(Elem::Ptr(pointee, AddressSpace::Shared));
        if pointee == Scalar::I8 {
            return Ok(moved);
        }
        self.op(InstData::new(ThreadOp::PtrCast, &[moved]), &[ty])
    }
}
