//! Expansion of loads and stores: wide accesses where neighbours allow it.
//!
//! Consecutive registers make one access when their addresses share a base and count up, their masks
//! are one value, and the first address is aligned to the whole, at most what the target reads or writes at once. Registers that read
//! the same address read it once; of threads and registers that hold copies, one writes.

use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attr, AttrKind, Attrs, Flag, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};
use crate::linear_layout::layout::HwDim;

use super::regs::{Expanded, Parts};
use super::{Expander, Result};

/// Attributes of an access `offset` bytes into a slot, beside what its address adds.
pub(super) fn slot_attrs(slot: Slot, offset: u32) -> impl Iterator<Item = Attr> {
    let distance = (offset != 0).then(|| make::offset(offset as i32));
    std::iter::once(make::slot(slot)).chain(distance)
}

/// Where an access goes: base, distance in bytes, and predicate.
pub(super) type GuardedAddress = (Value, i64, Option<Value>);

impl Expander<'_> {
    pub(super) fn expand_load(&mut self, inst: Inst) -> Result<Expanded> {
        let ty = self.result_type(inst)?;
        let count = self.registers(ty)?;
        let pointers = self.arg(inst, 0)?;
        let pointers = self.parts_of(&pointers, count)?;
        let mask = self.mask(inst, 1, count)?;
        let other = self.fallback(inst, 2)?;
        let mut leader = None;
        let (_, copies) = self.copies(ty)?;
        // Where nobody else needs the elements, of threads that hold copies one loads them.
        let copies = match self.own_elements().loads.contains(inst) {
            true => {
                leader = self.leader(copies)?;
                0
            }
            false => copies,
        };
        let attrs = self.access_attrs(inst, copies);

        let widest = self.target.widest_access();
        let mut sources: Vec<Value> = Vec::new();
        let mut elements = 0;
        let mut map: Vec<u32> = Vec::with_capacity(count);
        let mut loaded: FxHashMap<GuardedAddress, u32> = FxHashMap::default();
        let mut reg = 0;
        while reg < count {
            let place = self.place(&pointers, mask.as_ref(), reg);
            let shared_other = !matches!(other, Some(Expanded::Pack(_) | Expanded::Parts(_)));
            if let (Some(&element), true) = (loaded.get(&place), shared_other) {
                map.push(element);
                reg += 1;
                continue;
            }
            let size = ty.elem.bytes();
            let width = self.access_width(&pointers, mask.as_ref(), reg, size, widest);
            let other = match &other {
                Some(other) if place.2.is_some() => Some(self.slice(other, count, reg, width)?),
                _ => None,
            };
            let (base, offset, masked) = place;
            let pred = self.both(masked, leader)?;
            let result = self.load_one(
                (base, offset, pred),
                other,
                ThreadType::pack(ty.elem, width as u16),
                &attrs,
            )?;
            for i in 0..width {
                let (base, offset, pred) = place;
                let bytes = i as i64 * i64::from(ty.elem.bytes());
                loaded
                    .entry((base, offset + bytes, pred))
                    .or_insert(elements);
                map.push(elements);
                elements += 1;
            }
            sources.push(result);
            reg += width;
        }
        let pack = self.rearrange(&sources, &map)?;
        Ok(if ty.is_scalar() {
            Expanded::Uniform(pack)
        } else {
            Expanded::Pack(pack)
        })
    }

    pub(super) fn expand_store(&mut self, inst: Inst) -> Result<()> {
        let ty = self.arg_type(inst, 1)?;
        let count = self.registers(ty)?;
        let pointers = self.arg(inst, 0)?;
        let pointers = self.parts_of(&pointers, count)?;
        let mask = self.mask(inst, 2, count)?;
        let value = self.arg(inst, 1)?;
        let (register_copies, thread_copies) = self.copies(ty)?;
        let mut attrs = self.access_attrs(inst, thread_copies);
        attrs.extend(
            self.own_elements()
                .stores
                .contains(inst)
                .then(|| make::apart(Flag)),
        );
        let leader = self.leader(thread_copies)?;
        let mut preds: FxHashMap<Option<Value>, Option<Value>> = FxHashMap::default();
        let mut reg = 0;
        while reg < count {
            if reg & register_copies != 0 {
                reg += 1;
                continue;
            }
            let (base, offset, masked) = self.place(&pointers, mask.as_ref(), reg);
            let size = ty.elem.bytes();
            let widest = self.target.widest_access();
            let mut width = self.access_width(&pointers, mask.as_ref(), reg, size, widest);
            while width > 1 && (reg..reg + width).any(|r| r & register_copies != 0) {
                width /= 2;
            }
            let pred = match preds.get(&masked) {
                Some(&pred) => pred,
                None => {
                    let pred = self.both(masked, leader)?;
                    preds.insert(masked, pred);
                    pred
                }
            };
            let stored = self.slice(&value, count, reg, width)?;
            let (address, offset) = self.address(base, offset)?;
            let mut data = InstData::new(ThreadOp::St, &[address, stored]);
            data.args.extend(pred);
            data.attrs.extend(attrs.iter().cloned());
            if offset != 0 {
                data.attrs.push(make::offset(offset));
            }
            self.effect(data)?;
            reg += width;
        }
        Ok(())
    }

    /// One access of `ty`.
    pub(super) fn load_one(
        &mut self,
        (base, offset, pred): GuardedAddress,
        other: Option<Value>,
        ty: ThreadType,
        attrs: &[Attr],
    ) -> Result<Value> {
        let (address, offset) = self.address(base, offset)?;
        let mut data = InstData::new(ThreadOp::Ld, &[address]);
        data.args.extend(pred);
        data.args.extend(other);
        data.attrs.extend(attrs.iter().cloned());
        if offset != 0 {
            data.attrs.push(make::offset(offset));
        }
        self.op(data, &[ty])
    }

    /// The attributes of a tile access that the thread accesses keep, and that threads hold copies.
    fn access_attrs(&self, inst: Inst, copies: u32) -> Vec<Attr> {
        let kept = [AttrKind::Cache, AttrKind::Evict, AttrKind::Volatile];
        let attrs = self.tile.dfg.insts[inst].attrs();
        attrs
            .iter()
            .filter(|a| kept.contains(&a.kind()))
            .cloned()
            .chain((copies != 0).then(|| make::copied(Flag)))
            .collect()
    }

    /// The mask operand register by register; none where it is absent or always true.
    pub(super) fn mask(&mut self, inst: Inst, index: usize, count: usize) -> Result<Option<Parts>> {
        if self.tile.dfg.insts[inst].args.len() <= index {
            return Ok(None);
        }
        let mask = self.arg(inst, index)?;
        if self.uniform_constant(&mask).is_some_and(|bits| bits != 0) {
            return Ok(None);
        }
        let parts = self.parts_of(&mask, count)?;
        if !matches!(mask, Expanded::Pack(_)) || count == 1 {
            return Ok(Some(parts));
        }
        let equal = self.equal_registers(self.tile.dfg.insts[inst].args[index], true)?;
        let first: Vec<u16> = (0..count as u16).map(|reg| reg & !equal).collect();
        Ok(Some(parts.select(&first)))
    }

    /// The bits of a register's number that change nothing of what it holds, as runs along a dimension are proved to be equal, by promises
    /// of arguments too if that `may_ask` for them. It is asked of comparisons, and of values of which the registers do not show it, such as
    /// what went through memory to another layout.
    pub(super) fn equal_registers(&self, value: Value, may_ask: bool) -> Result<u16> {
        let ty = self.tile.dfg.ty(value);
        let info = self.axis().info(value);
        let is_equal = |column: u32| {
            let mut dims = (0..ty.shape.rank()).filter(|&dim| column & ty.shape.bit_mask(dim) != 0);
            let (Some(dim), None) = (dims.next(), dims.next()) else {
                return false;
            };
            let run = (column >> ty.shape.bit_offset(dim)).ilog2() + 1;
            let constancy = &info.dim(dim).constancy;
            match may_ask {
                true => self.axis().at_least(constancy, run as u8),
                false => run as u8 <= constancy.firm(),
            }
        };
        let columns = self.layout(ty)?.columns(HwDim::Register).iter();
        let equal = columns
            .enumerate()
            .filter(|&(_, &column)| is_equal(column))
            .map(|(bit, _)| 1 << bit);
        Ok(equal.sum())
    }

    /// The elements for masked-off places; none for zero, which is what a load gives by itself.
    fn fallback(&mut self, inst: Inst, index: usize) -> Result<Option<Expanded>> {
        if self.tile.dfg.insts[inst].args.len() <= index {
            return Ok(None);
        }
        let other = self.arg(inst, index)?;
        Ok(if self.uniform_constant(&other) == Some(0) {
            None
        } else {
            Some(other)
        })
    }

    pub(super) fn place(
        &self,
        pointers: &Parts,
        mask: Option<&Parts>,
        reg: usize,
    ) -> GuardedAddress {
        let (base, offset) = pointers.at(reg);
        (base, offset, mask.map(|m| m.at(reg).0))
    }

    /// How many registers from `reg` on, of `bytes` each, one access of at most `most` bytes can serve.
    pub(super) fn access_width(
        &self,
        pointers: &Parts,
        mask: Option<&Parts>,
        reg: usize,
        bytes: u32,
        most: u32,
    ) -> usize {
        let first = self.place(pointers, mask, reg);
        let aligned = (self.bits.get(first.0) | first.1 as u64).trailing_zeros();
        let mut width = (most / bytes) as usize;
        let follows = |i: usize| {
            let (base, offset, pred) = self.place(pointers, mask, reg + i);
            base == first.0 && pred == first.2 && offset == first.1 + i as i64 * i64::from(bytes)
        };
        while width > 1 {
            let fits = reg.is_multiple_of(width)
                && reg + width <= pointers.regs.len()
                && aligned >= (width as u32 * bytes).trailing_zeros()
                && (1..width).all(follows);
            if fits {
                break;
            }
            width /= 2;
        }
        width
    }

    /// Elements `reg..reg + width` of a value of `count` registers.
    pub(super) fn slice(
        &mut self,
        value: &Expanded,
        count: usize,
        reg: usize,
        width: usize,
    ) -> Result<Value> {
        match value {
            Expanded::Uniform(_) | Expanded::Shared(_) => self.pack_of(value, width),
            Expanded::Parts(parts) => {
                let map: Vec<u16> = (reg..reg + width).map(|r| r as u16).collect();
                let part = Expanded::Parts(parts.select(&map));
                self.pack_of(&part, width)
            }
            Expanded::Pack(pack) if count == width => Ok(*pack),
            Expanded::Pack(pack) => {
                let map: Vec<u32> = (reg..reg + width).map(|r| r as u32).collect();
                self.rearrange(&[*pack], &map)
            }
        }
    }

    /// A base and a distance that fits an instruction.
    pub(super) fn address(&mut self, base: Value, offset: i64) -> Result<(Value, i32)> {
        match i32::try_from(offset) {
            Ok(offset) => Ok((base, offset)),
            Err(_) => Ok((self.add_offset(base, offset)?, 0)),
        }
    }

    /// Whether the thread is the one that acts for those that hold copies: the `copies` bits of its index
    /// are zero. None if there are no copies.
    pub(super) fn leader(&mut self, copies: u32) -> Result<Option<Value>> {
        if copies == 0 {
            return Ok(None);
        }
        if let Some(&value) = self.leaders.get(&copies) {
            return Ok(Some(value));
        }
        let value = self.in_prologue(|this| {
            let tid = this.special(crate::ir::attrs::SpecialReg::Tid);
            let zero = this.int(Elem::I32, 0);
            let all = this.tile.num_threads() - 1;
            let kept = if copies == all {
                tid
            } else {
                let mask = this.int(Elem::I32, i64::from(copies));
                this.binary(ThreadOp::And, tid, mask)?
            };
            Result::Ok(this.b.icmp(kept, zero, crate::ir::attrs::IntPred::Eq))
        })?;
        self.leaders.insert(copies, value);
        Ok(Some(value))
    }

    /// Both predicates; none stands for true.
    pub(super) fn both(&mut self, a: Option<Value>, b: Option<Value>) -> Result<Option<Value>> {
        match (a, b) {
            (Some(a), Some(b)) => self.binary(ThreadOp::And, a, b).map(Some),
            (a, b) => Ok(a.or(b)),
        }
    }
}
