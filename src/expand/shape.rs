//! Expansion of changes of shape: none moves an element to another thread, so each renames registers. Only a join whose
//! pairs lie in different threads has something to do: each thread selects the operand it shows.

use std::rc::Rc;

use crate::ir::attrs::{Attrs, IntPred, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::shape::Shape;

use super::regs::{Expanded, PartsBuilder, SharedBlock};
use super::{Expander, Result, bug};

impl Expander<'_> {
    /// A new dimension of extent 1 moves no element; registers may be numbered anew.
    pub(super) fn expand_expand_dims(&mut self, inst: Inst) -> Result<Expanded> {
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let source = self.arg(inst, 0)?;
        if from.is_scalar() {
            return Ok(source);
        }
        match source_registers(self.layout(to)?, self.layout(from)?, |flat| flat) {
            Some(map) => self.pick(&source, &map),
            None => bug("the layout of expand_dims does not follow from its operand's"),
        }
    }

    /// Each register reads the one that holds its element with the grown dimensions at 0.
    pub(super) fn expand_broadcast(&mut self, inst: Inst) -> Result<Expanded> {
        let source = self.arg(inst, 0)?;
        if let Expanded::Uniform(_) = source {
            return Ok(source);
        }
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let (small, big) = (self.layout(from)?, self.layout(to)?);
        let map = source_registers(big, small, |flat| {
            index_before_broadcast(flat, to.shape, from.shape)
        });
        match map {
            Some(map) => self.pick(&source, &map),
            None => bug("the layout of a broadcast does not follow from its operand's"),
        }
    }

    pub(super) fn expand_reshape(&mut self, inst: Inst) -> Result<Expanded> {
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let source = self.arg(inst, 0)?;
        if from.is_scalar() {
            return Ok(source);
        }
        if to.is_scalar() {
            return self.scalar_of(&source, from, 0);
        }
        let back = self.layout(to)?.reshape(from.shape);
        self.renamed(&source, &back, from)
    }

    pub(super) fn expand_permute(&mut self, inst: Inst) -> Result<Expanded> {
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let source = self.arg(inst, 0)?;
        if from.is_scalar() {
            return Ok(source);
        }
        let dims = self.tile.dfg.insts[inst].dims();
        let dims: Vec<usize> = dims.map_or_else(Vec::new, |list| {
            list.iter().map(|&dim| dim as usize).collect()
        });
        if let Expanded::Shared(block) = source {
            return Ok(Expanded::Shared(SharedBlock {
                layout: Rc::new(block.layout.permute(&dims)),
                ..block
            }));
        }
        let back = self.layout(to)?.before_permute(&dims);
        self.renamed(&source, &back, from)
    }

    /// The registers of a block of type `from` in the order of a layout that has the same elements in each thread.
    fn renamed(
        &mut self,
        source: &Expanded,
        to: &LinearLayout,
        from: TileType,
    ) -> Result<Expanded> {
        match source_registers(to, self.layout(from)?, |flat| flat) {
            Some(map) => self.pick(source, &map),
            None => bug("the layout of a change of shape does not follow from its operand's"),
        }
    }

    /// The element with a flat index of a block that every thread holds, as a scalar.
    fn scalar_of(&mut self, source: &Expanded, ty: TileType, flat: u32) -> Result<Expanded> {
        if let Expanded::Uniform(_) = source {
            return Ok(source.clone());
        }
        let layout = self.layout(ty)?;
        let elsewhere = [HwDim::Lane, HwDim::Warp]
            .iter()
            .any(|&dim| layout.columns(dim).iter().any(|&c| c != 0));
        let mut registers = 0..layout.num_registers();
        match registers.find(|&r| layout.apply(r, 0, 0, 0) == flat) {
            Some(register) if !elsewhere => {
                let picked = self.pick(source, &[register as u16])?;
                Ok(Expanded::Uniform(self.pack_of(&picked, 1)?))
            }
            _ => bug("a scalar is taken from a block that not all threads hold"),
        }
    }

    pub(super) fn expand_split(&mut self, inst: Inst) -> Result<Expanded> {
        let (from, to) = (self.arg_type(inst, 0)?, self.result_type(inst)?);
        let source = self.arg(inst, 0)?;
        let index = self.tile.dfg.insts[inst].index().copied().unwrap_or(0);
        if to.is_scalar() {
            return self.scalar_of(&source, from, u32::from(index));
        }
        match self.layout(to)?.half_registers(index, self.layout(from)?) {
            Some(map) => self.pick(&source, &map),
            None => bug("the layout of split does not follow from its operand's"),
        }
    }

    pub(super) fn expand_join(&mut self, inst: Inst) -> Result<Expanded> {
        let (to, from) = (self.result_type(inst)?, self.arg_type(inst, 0)?);
        let layout = self.layout(to)?;
        let parts = [self.arg(inst, 0)?, self.arg(inst, 1)?];
        let registers: Vec<u32> = (0..layout.num_registers()).collect();
        // For each operand, the register that each register of the result shows.
        let mut maps = Vec::new();
        for i in 0..2 {
            let ty = self.arg_type(inst, i)?;
            let map = if from.is_scalar() {
                Some(vec![0; registers.len()])
            } else {
                let last = from.shape.rank();
                layout.project(last).register_map(self.layout(ty)?)
            };
            match map {
                Some(map) => maps.push(map),
                None => return bug("the layout of join does not follow from its operands'"),
            }
        }
        let is_second = |r: &u32| layout.apply(*r, 0, 0, 0) & 1 == 1;
        let by_thread = Self::thread_columns(layout).iter().any(|c| c & 1 == 1);
        let has_pack = parts.iter().any(|p| matches!(p, Expanded::Pack(_)));
        if !by_thread && !has_pack && !to.elem.is_float() {
            let mut lists = Vec::new();
            for (part, map) in parts.iter().zip(&maps) {
                let picked = self.pick(part, map)?;
                lists.push(self.parts_of(&picked, registers.len())?);
            }
            let mut builder = PartsBuilder::default();
            for (i, r) in registers.iter().enumerate() {
                let (base, offset) = lists[usize::from(is_second(r))].at(i);
                builder.push(base, offset);
            }
            return Ok(Expanded::Parts(builder.finish()));
        }
        let mut packs = Vec::new();
        for (part, map) in parts.iter().zip(&maps) {
            let picked = self.pick(part, map)?;
            packs.push(self.pack_of(&picked, registers.len())?);
        }
        let count = registers.len() as u32;
        let chosen = |second: bool| -> Vec<u32> {
            let places = registers.iter();
            places
                .map(|r| r + if is_second(r) == second { 0 } else { count })
                .collect()
        };
        // What a thread shows whose own part of the index is 0, and the other element of each pair.
        let shown = self.rearrange(&packs, &chosen(false))?;
        if !by_thread {
            return Ok(Expanded::Pack(shown));
        }
        let other = self.rearrange(&packs, &chosen(true))?;
        let columns: Vec<u32> = Self::thread_columns(layout).iter().map(|c| c & 1).collect();
        let odd = self.thread_part(&columns)?;
        let zero = self.int(Elem::I32, 0);
        let mut data = InstData::new(ThreadOp::Icmp, &[odd, zero]);
        data.attrs.push(make::ipred(IntPred::Ne));
        let is_odd = self.op(data, &[])?;
        Ok(Expanded::Pack(self.select_all(is_odd, other, shown)?))
    }

    /// `a` where a single truth value holds, else `b`; both are packs of one type.
    pub(super) fn select_all(&mut self, cond: Value, a: Value, b: Value) -> Result<Value> {
        let count = usize::from(self.ty(a).count);
        let cond = self.pack_of(&Expanded::Uniform(cond), count)?;
        self.op(InstData::new(ThreadOp::Select, &[cond, a, b]), &[])
    }
}

/// Flat index in the small shape of the element at `flat` in the big one, where extents of 1 grew.
fn index_before_broadcast(flat: u32, big: Shape, small: Shape) -> u32 {
    let dims = 0..big.rank();
    let kept = dims.filter(|&d| small.extent(d) == big.extent(d));
    kept.fold(0, |sum, d| {
        sum | big.coordinate(flat, d) << small.bit_offset(d)
    })
}

/// For each register of `to`, a register of `from` in the same thread that holds the element `element`
/// maps to; none if a thread would need an element that it does not hold. `element` is linear.
fn source_registers(
    to: &LinearLayout,
    from: &LinearLayout,
    element: impl Fn(u32) -> u32,
) -> Option<Vec<u16>> {
    for dim in [HwDim::Lane, HwDim::Warp] {
        let mapped = to.columns(dim).iter().map(|&c| element(c));
        if !mapped.eq(from.columns(dim).iter().copied()) {
            return None;
        }
    }
    let mut holders = rustc_hash::FxHashMap::default();
    for register in 0..from.num_registers() {
        holders
            .entry(from.apply(register, 0, 0, 0))
            .or_insert(register as u16);
    }
    (0..to.num_registers())
        .map(|r| holders.get(&element(to.apply(r, 0, 0, 0))).copied())
        .collect()
}
