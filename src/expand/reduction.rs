//! Expansion of reductions: halves of registers, then lanes by butterfly shuffles, then warps through one
//! trip to shared memory, each bit of the index along the axis one fold.
//!
//! The folds go through register bits, lane bits and warp bits in this sequence, low bits first: the
//! sequence that the attribute `order` of the op states. Lanes are folded in [`super::reduction_across_lanes`], warps in
//! [`super::reduction_across_warps`].

use crate::ir::attrs::{IntPred, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType, ValueType};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::shape::Shape;

use super::arg_reduction::{InOrder, RegionStep};
use super::regs::Expanded;
use super::{Expander, Result, bug, own_bytes};

/// What each bit of the thread index and of the register index means to a reduction.
pub(super) struct Plan {
    pub(super) axis_mask: u32,
    /// Lane bits to fold, ascending.
    pub(super) lanes: Vec<u32>,
    /// Warp bits to fold, ascending.
    pub(super) warps: Vec<u32>,
    /// Lane bits that tell apart different results.
    pub(super) kept_lanes: Vec<u32>,
    /// Warp bits that tell apart different results.
    pub(super) kept_warps: Vec<u32>,
    /// Bits of the thread index that only make copies or are folded.
    pub(super) silent_threads: u32,
    /// How elements are combined of which the left one comes first, if otherwise.
    in_order: Option<InOrder>,
    /// The bits of registers, lanes and warps where it does.
    ordered: Vec<(HwDim, u32)>,
}

impl Plan {
    fn new(layout: &LinearLayout, axis: usize, in_order: Option<InOrder>) -> Plan {
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
            ordered: match in_order {
                Some(_) => ordered_bits(layout, axis_mask),
                None => Vec::new(),
            },
            in_order,
        }
    }

    /// How elements are combined that differ in a bit.
    pub(super) fn in_order(&self, dim: HwDim, bit: u32) -> Option<&InOrder> {
        self.in_order
            .as_ref()
            .filter(|_| self.ordered.contains(&(dim, bit)))
    }
}

/// The bits at which everything on the left comes before everything on the right: above all bits of the index that were folded before.
fn ordered_bits(layout: &LinearLayout, axis_mask: u32) -> Vec<(HwDim, u32)> {
    let mut ordered = Vec::new();
    let mut folded = 0;
    for dim in [HwDim::Register, HwDim::Lane, HwDim::Warp] {
        let free = layout.free_mask(dim);
        for (bit, &column) in (0..).zip(layout.columns(dim)) {
            if free >> bit & 1 == 1 || column & axis_mask == 0 {
                continue;
            }
            if !column.is_power_of_two() {
                return Vec::new();
            }
            if folded < column {
                ordered.push((dim, bit));
            }
            folded |= column;
        }
    }
    ordered
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
        let plan = Plan::new(layout, axis, InOrder::of(tile, inst));

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
                let in_order = plan.in_order(HwDim::Register, bit as u32);
                (held, values) = self.fold_registers(region, &held, values, bit, in_order)?;
            }
        }
        let exchanged = self.fold_lanes(region, &plan, &mut values)?;
        if plan.warps.is_empty() {
            self.gather_halves(exchanged, &mut values)?;
        } else {
            self.fold_warps(region, &plan, layout, exchanged, &mut values)?;
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
    pub(super) fn fold_registers(
        &mut self,
        region: Block,
        held: &[u32],
        values: Vec<Value>,
        bit: usize,
        in_order: Option<&InOrder>,
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
        let combined = self.combine_region(region, &lefts, &rights, in_order)?;
        Ok((low, combined))
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
        let op = match ty.elem {
            Elem::I1 => ThreadOp::Zext,
            Elem::Ptr(..) => ThreadOp::PtrCast,
            Elem::Num(_) | Elem::Map(_) | Elem::Token => return Ok(value),
        };
        self.op(InstData::new(op, &[value]), &[Self::carried_type(ty)])
    }

    /// The type of [`Self::carrier_of`].
    pub(super) fn carried_type(ty: ThreadType) -> ThreadType {
        match ty.elem {
            Elem::I1 => ty.with_elem(Elem::I32),
            Elem::Ptr(..) => ty.with_elem(Elem::I64),
            Elem::Num(_) | Elem::Map(_) | Elem::Token => ty,
        }
    }

    /// The inverse of [`Self::carrier_of`].
    pub(super) fn carried_as(&mut self, value: Value, ty: ThreadType) -> Result<Value> {
        match ty.elem {
            Elem::I1 => {
                let zero = self.constant(self.ty(value), 0);
                let mut data = InstData::new(ThreadOp::Icmp, &[value, zero]);
                data.attrs.push(make::ipred(IntPred::Ne));
                self.op(data, &[])
            }
            Elem::Ptr(..) => self.op(InstData::new(ThreadOp::PtrCast, &[value]), &[ty]),
            Elem::Num(_) | Elem::Map(_) | Elem::Token => Ok(value),
        }
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

    /// Runs the combining region on packs, element by element, or what it is of those in order.
    pub(super) fn combine_region(
        &mut self,
        region: Block,
        left: &[Value],
        right: &[Value],
        in_order: Option<&InOrder>,
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
            let step = in_order.map_or(RegionStep::Do(&tile.dfg.insts[inst]), |o| {
                o.step(tile, inst)
            });
            let result = match step {
                RegionStep::Nothing => continue,
                RegionStep::Same(value) => self.expanded(value)?,
                RegionStep::Do(data) if data.op == TileOp::Yield => {
                    let mut results = Vec::new();
                    for &value in &data.args {
                        let expanded = self.expanded(value)?;
                        results.push(self.pack_of(&expanded, count)?);
                    }
                    return Ok(results);
                }
                RegionStep::Do(data) if data.op == TileOp::Const => self.expand_const(inst)?,
                RegionStep::Do(data) if data.op == TileOp::InlinePtx => {
                    let made = self.inline_ptx(inst, count)?;
                    for (&result, value) in data.results.iter().zip(made) {
                        self.values[result] = Some(Expanded::Pack(value));
                    }
                    continue;
                }
                RegionStep::Do(data) => {
                    let elem = self.result_type(inst)?.elem;
                    self.elementwise(data, elem, count)?
                }
            };
            self.set_result(inst, result)?;
        }
        bug("a reduction's region does not end in yield")
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
