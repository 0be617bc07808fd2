//! Expansion of products by warpgroups.
//!
//! A product becomes a fence, an instruction for each 64 rows (and 256 columns) of a group's sums and each step along the summed
//! dimension, and a commitment; where the left operand is computed, a fence for each step, so that the next step's can be computed
//! meanwhile ([`crate::thread::slice_operands`]). An operand in shared memory is named by a descriptor: one for the start of its ring, made before
//! all loops with the part of the group of warps, to which the entry and the place of the step are added. The place needs no
//! permutation, as steps start where pieces are not permuted ([`crate::layout::warpgroup`]).
//!
//! Sums of 8-bit floats that may keep few bits for some products only are taken apart: so many products from zero, a wait, and an
//! addition to the rest.
//!
//! What an instruction reads and writes meanwhile goes through fence and wait, so that nothing moves past them: the sums, and
//! fragments of a left operand in registers.

use std::borrow::Cow;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::dot::{Factor, FactorSource, holders};
use super::regs::{Expanded, SharedBlock, Start};
use super::rings::{Sums, offsets_in};
use super::{Expander, Result, bug};
use crate::analysis::computed::is_computed;
use crate::ir::attrs::{Attr, Attrs, Flag, MmaUnit, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Slot, Value};
use crate::ir::function::{ThreadFunction, TileFunction};
use crate::ir::level::Thread;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, Scalar, ThreadType, TileType};
use crate::layout::matrix;
use crate::layout::swizzle::Offsets;
use crate::layout::warpgroup::{self, MatrixForm};
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::shape::Shape;

/// Bits of an address in shared memory that a descriptor holds.
const ADDRESS_BITS: i64 = 0x3_ffff;
/// Exponent of the bytes that a descriptor counts in.
const UNIT_BITS: u32 = 4;

/// Slots that engines access start where their patterns do.
pub(super) fn align_slots(
    tile: &TileFunction,
    rings: &FxHashMap<Slot, Rc<LinearLayout>>,
    func: &mut ThreadFunction,
) {
    for op in [TileOp::SharedView, TileOp::TensorCopy] {
        for (_, inst) in tile.insts_with(op) {
            let slot = tile.dfg.insts[inst].slot().copied();
            let ring = slot.and_then(|slot| Some((slot, rings.get(&slot)?, tile.buffers[slot]?)));
            let Some((slot, layout, buffer)) = ring else {
                continue;
            };
            if let Some(form) = MatrixForm::of(layout, buffer.elem.bytes()) {
                let align = &mut func.slots[slot].align;
                *align = (*align).max(form.alignment());
            }
        }
    }
}

/// Columns of the sums of all instructions of a step from which on a computed operand is worth a fence for each step. (An H100, weights of
/// signed bytes, blocks of 128 x 256 and 256 x 128: 1 to 8 % less time; blocks of 64 x 64 0 to 10 % more.)
const SLICED_COLUMNS: u32 = 128;

/// A matrix in shared memory as an operand.
struct Matrix {
    slot: Slot,
    /// The descriptor of its start for the thread's group.
    start: Value,
    shape: Shape,
    offsets: Offsets,
    is_transposed: bool,
}

/// Where the left operand is.
enum Left<'a> {
    Memory(Matrix),
    Registers(Box<Factor<'a>>),
}

/// A product as it is started.
struct Multiply<'a> {
    left: &'a Left<'a>,
    right: &'a Matrix,
    /// Row and column where each instruction's sums begin.
    parts: &'a [(u32, u32)],
    /// The rows of these, each once.
    rows: Vec<u32>,
    unit: MmaUnit,
    columns: u32,
}

impl<'a> Expander<'a> {
    pub(super) fn expand_shared_view(&mut self, inst: Inst) -> Result<Expanded> {
        Ok(Expanded::Shared(self.shared_block(inst, 0)?))
    }

    pub(super) fn expand_dot_start(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let [sum, token] = tile.dfg.insts[inst].results[..] else {
            return bug("a product that is started gives a sum and a token");
        };
        let layout = self.layout(tile.dfg.ty(sum))?;
        let unit = warpgroup::unit_of(tile, inst, self.target);
        let (Some(unit), Some(columns)) = (unit, warpgroup::columns_at_once(layout)) else {
            return bug("a product that no warpgroup computes");
        };
        let count = layout.num_registers();
        let acc = self.arg(inst, 2)?;
        let mut acc = self.pack_of(&acc, count as usize)?;
        let Expanded::Shared(block) = self.arg(inst, 1)? else {
            return bug("the right operand is not in shared memory");
        };
        let ty = self.arg_type(inst, 1)?;
        let right = self.matrix(&block, ty, (layout, 1), 0)?;
        let ty = self.arg_type(inst, 0)?;
        let left = match self.arg(inst, 0)? {
            Expanded::Shared(block) => Left::Memory(self.matrix(&block, ty, (layout, 0), 1)?),
            value => {
                let held = self.layout(ty)?;
                let pack = self.pack_of(&value, held.num_registers() as usize)?;
                Left::Registers(Box::new(Factor {
                    source: FactorSource::Pack(pack, holders(held)),
                    layout: Cow::Borrowed(held),
                    elem: ty.elem,
                    unit,
                    transposed: false,
                }))
            }
        };
        // Row and column where each instruction's sums begin.
        let each = columns / 2;
        let shape = layout.shape();
        let parts: Vec<(u32, u32)> = (0..count / each)
            .map(|part| {
                let element = layout.apply(part * each, 0, 0, 0);
                let at = |dim: usize| shape.coordinate(element, dim);
                (at(0), at(1))
            })
            .collect();
        let steps: Vec<u32> = (0..ty.shape.extent(1) as u32)
            .step_by(unit.info().inner as usize)
            .collect();

        let fragments = self.left_fragments(&left, layout, &parts, &steps)?;
        let multiply = Multiply {
            left: &left,
            right: &right,
            rows: distinct_rows(&parts),
            parts: &parts,
            unit,
            columns,
        };
        match warpgroup::summed_apart(tile, inst) {
            None => {
                // What is computed for a step stands behind the products of the steps before it.
                let is_long = SLICED_COLUMNS <= parts.len() as u32 * columns;
                let at_once = match is_long && is_computed(tile, tile.dfg.insts[inst].args[0]) {
                    true => 1,
                    false => steps.len(),
                };
                let each = fragments.len() / steps.len() * at_once;
                for (i, steps) in steps.chunks(at_once).enumerate() {
                    let own = &fragments[i * each..(i + 1) * each];
                    acc = self.multiply(&multiply, acc, steps, own)?;
                }
                self.effect(InstData::new(ThreadOp::WgmmaCommit, &[]))?;
            }
            // Each part is waited for, so that nothing is under way behind.
            Some(every) => {
                let every = (every / unit.info().inner) as usize;
                let each = fragments.len() / steps.len() * every;
                let ty = self.b.func().dfg.ty(acc);
                for (i, steps) in steps.chunks(every).enumerate() {
                    let own = &fragments[i * each..(i + 1) * each];
                    let zero = self.constant(ty, 0);
                    let sum = self.multiply(&multiply, zero, steps, own)?;
                    self.effect(InstData::new(ThreadOp::WgmmaCommit, &[]))?;
                    let held = [&[sum][..], own].concat();
                    let sum = self.give_back(ThreadOp::WgmmaWait, &held, &[make::pending(0)])?;
                    acc = self.binary(ThreadOp::Fadd, acc, sum)?;
                }
            }
        }
        self.fragments.insert(token, fragments);
        self.values[sum] = Some(Expanded::Pack(acc));
        self.values[token] = Some(Expanded::nothing());
        Ok(())
    }

    /// Starts products that are added to a sum: those of these steps along the summed dimension.
    fn multiply(
        &mut self,
        what: &Multiply<'_>,
        acc: Value,
        steps: &[u32],
        fragments: &[Value],
    ) -> Result<Value> {
        let (left, right) = (what.left, what.right);
        let mut attrs = vec![make::unit(what.unit), make::slot(right.slot)];
        if let Left::Memory(left) = left {
            attrs.push(make::left_slot(left.slot));
        }
        let held = [&[acc][..], fragments].concat();
        let acc = self.give_back(ThreadOp::WgmmaFence, &held, &attrs)?;
        let mut data = InstData::new(ThreadOp::Wgmma, &[acc]);
        data.attrs.extend(attrs);
        data.attrs.push(make::columns(what.columns));
        let crossed = right.is_transposed.then_some(make::trans_b(Flag));
        data.attrs.extend(crossed);
        if let Left::Memory(left) = left {
            let crossed = left.is_transposed.then_some(make::trans_a(Flag));
            data.attrs.extend(crossed);
        }
        // Parts beside each other share their rows.
        for (number, &k) in steps.iter().enumerate() {
            for &(row, column) in what.parts {
                let place = what.rows.iter().position(|&r| r == row).unwrap_or(0);
                let a = match left {
                    Left::Memory(left) => self.descriptor(left, [row, k])?,
                    Left::Registers(_) => fragments[number * what.rows.len() + place],
                };
                let b = self.descriptor(right, [k, column])?;
                data.args.extend([a, b]);
            }
        }
        self.op(data, &[])
    }

    pub(super) fn expand_dot_done(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let [sum, token] = tile.dfg.insts[inst].results[..] else {
            return bug("a product that is done gives a sum and a token");
        };
        let acc = self.arg(inst, 0)?;
        let fenced = self.in_registers_of_products(&acc, tile.dfg.ty(sum))?;
        self.values[sum] = Some(fenced);
        self.values[token] = Some(Expanded::nothing());
        Ok(())
    }

    /// A sum in the registers that products will add to, before any does: ptxas serialises products whose registers get their
    /// first numbers on ways that join them (C7515).
    pub(super) fn in_registers_of_products(
        &mut self,
        acc: &Expanded,
        ty: TileType,
    ) -> Result<Expanded> {
        let layout = self.layout(ty)?;
        let acc = self.pack_of(acc, layout.num_registers() as usize)?;
        let fenced = self.give_back(ThreadOp::WgmmaFence, &[acc], &[])?;
        Ok(Expanded::Pack(fenced))
    }

    /// Whether products of warpgroups add to a value, or to what loops carry of it.
    pub(super) fn is_added_to_in_flight(&self, value: Value) -> bool {
        let tile = self.tile;
        tile.all_insts().any(|(_, inst)| {
            let data = &tile.dfg.insts[inst];
            let at = data.args.iter().position(|&arg| arg == value);
            match (data.op, at) {
                (TileOp::DotStart, _) => data.args.get(2) == Some(&value),
                (TileOp::DotDone, at) => at.is_some(),
                (TileOp::For, Some(at)) if 3 <= at => {
                    let body = data.blocks.first().map(|call| call.block);
                    let param = body.and_then(|b| tile.dfg.blocks[b].params.get(at - 2));
                    param.is_some_and(|&param| self.is_added_to_in_flight(param))
                }
                _ => false,
            }
        })
    }

    pub(super) fn expand_dot_sum(&mut self, inst: Inst) -> Result<Expanded> {
        let layout = self.layout(self.result_type(inst)?)?;
        let sum = self.arg(inst, 0)?;
        let sum = self.pack_of(&sum, layout.num_registers() as usize)?;
        let token = self.tile.dfg.insts[inst].args[1];
        let fragments = self.fragments.get(&token).cloned().unwrap_or_default();
        let pending = make::pending(self.groups.pending(inst));
        let held = [&[sum][..], &fragments].concat();
        let sum = self.give_back(ThreadOp::WgmmaWait, &held, &[pending])?;
        Ok(Expanded::Pack(sum))
    }

    /// Waits as the analysis of tokens says. What the products read in registers stays there until then.
    pub(super) fn expand_dot_wait(&mut self, inst: Inst) -> Result<()> {
        let tokens = &self.tile.dfg.insts[inst].args;
        let read = tokens.iter().filter_map(|token| self.fragments.get(token));
        let held: Vec<Value> = read.flatten().copied().collect();
        let pending = make::pending(self.groups.pending(inst));
        if !held.is_empty() {
            let attrs = [pending, make::unread(Flag)];
            self.give_back(ThreadOp::WgmmaWait, &held, &attrs)?;
            return Ok(());
        }
        let mut data = InstData::new(ThreadOp::WgmmaWait, &[]);
        data.attrs.push(pending);
        self.effect(data)
    }

    /// An op that gives its first operand back.
    fn give_back(&mut self, op: ThreadOp, values: &[Value], attrs: &[Attr]) -> Result<Value> {
        let mut data: InstData<Thread> = InstData::new(op, values);
        data.attrs.extend(attrs.iter().cloned());
        self.op(data, &[])
    }

    /// Fragments of a left operand in registers, for each step those of the distinct rows; none of one in memory.
    fn left_fragments(
        &mut self,
        left: &Left<'_>,
        sum: &LinearLayout,
        parts: &[(u32, u32)],
        steps: &[u32],
    ) -> Result<Vec<Value>> {
        let Left::Registers(factor) = left else {
            return Ok(Vec::new());
        };
        let shape = factor.layout.shape();
        let tile = matrix::tile(factor.unit);
        // Rows may be dealt out in any order.
        let places = tile.sums.iter().zip(0..);
        let places = places.map(|(&(row, _), register)| {
            let element = sum.apply(register, 0, 0, 0);
            (row, sum.shape().coordinate(element, 0))
        });
        let rows: FxHashMap<u32, u32> = places.collect();
        let mut found = Vec::new();
        for &k in steps {
            for row in distinct_rows(parts) {
                let flat = |(r, i): &(u32, u32)| {
                    let below = rows.get(r).copied().unwrap_or(*r);
                    (row + below) << shape.bit_offset(0) | (k + i) << shape.bit_offset(1)
                };
                let elements: Vec<u32> = tile.left.iter().map(flat).collect();
                found.push(self.fragments(factor, &mut Sums::default(), &elements)?);
            }
        }
        Ok(found)
    }

    /// An operand in shared memory, which the groups share out as they do dimension `dim` of the sum.
    fn matrix(
        &mut self,
        block: &SharedBlock,
        ty: TileType,
        (sum, dim): (&LinearLayout, usize),
        summed: usize,
    ) -> Result<Matrix> {
        let elem_bytes = ty.elem.bytes();
        let Some(form) = MatrixForm::of(&block.layout, elem_bytes) else {
            return bug("a ring stands in no form that a unit reads");
        };
        let offsets = offsets_in(&block.layout, elem_bytes)?;
        let bits = form.descriptor(ty.shape, summed);
        let kept = 1 - summed;
        let own = warpgroup::group_columns(sum).iter().map(|&column| {
            let at = sum.shape().coordinate(column, dim);
            offsets.of(at << ty.shape.bit_offset(kept))
        });
        let own: Vec<u32> = own.collect();
        let mut start = self.descriptor_of(block.slot, &own, bits)?;
        match block.start {
            Start::Known(0) => {}
            Start::Known(bytes) => {
                let units = self.int(Elem::I64, i64::from(bytes >> UNIT_BITS));
                start = self.binary(ThreadOp::Iadd, start, units)?;
            }
            Start::Value(bytes) => {
                let by = self.int(Elem::I32, i64::from(UNIT_BITS));
                let units = self.binary(ThreadOp::Ushr, bytes, by)?;
                let wide = ThreadType::scalar(Elem::I64);
                let units = self.op(InstData::new(ThreadOp::Zext, &[units]), &[wide])?;
                start = self.binary(ThreadOp::Iadd, start, units)?;
            }
        }
        Ok(Matrix {
            slot: block.slot,
            start,
            shape: ty.shape,
            offsets,
            is_transposed: form.is_transposed(summed),
        })
    }

    /// The descriptor of a matrix at the start of a slot, `own` bytes for each bit of the group's number further on.
    fn descriptor_of(&mut self, slot: Slot, own: &[u32], bits: u64) -> Result<Value> {
        let key = (slot, own.to_vec(), bits);
        if let Some(&value) = self.descriptors.get(&key) {
            return Ok(value);
        }
        let value = self.in_prologue(|this| {
            let i32 = ThreadType::scalar(Elem::I32);
            let pointer = this.slot_address(slot, Elem::Num(Scalar::I8))?;
            let mut address = this.op(InstData::new(ThreadOp::PtrCast, &[pointer]), &[i32])?;
            if own.iter().any(|&bytes| bytes != 0) {
                // Lanes and the four warps of a group have one descriptor. ptxas knows that it is uniform as it comes from a lane.
                let columns: Vec<u32> = [0; 7].iter().chain(own).copied().collect();
                let part = this.thread_part(&columns)?;
                let lane = this.int(Elem::I32, 0);
                let part = this.binary(ThreadOp::ShflIdx, part, lane)?;
                address = this.binary(ThreadOp::Iadd, address, part)?;
            }
            let mask = this.int(Elem::I32, ADDRESS_BITS);
            let address = this.binary(ThreadOp::And, address, mask)?;
            let by = this.int(Elem::I32, i64::from(UNIT_BITS));
            let units = this.binary(ThreadOp::Ushr, address, by)?;
            let wide = ThreadType::scalar(Elem::I64);
            let units = this.op(InstData::new(ThreadOp::Zext, &[units]), &[wide])?;
            let bits = this.int(Elem::I64, bits as i64);
            this.binary(ThreadOp::Or, units, bits)
        })?;
        self.descriptors.insert(key, value);
        Ok(value)
    }

    /// The descriptor of the part of a matrix that starts at an element.
    fn descriptor(&mut self, matrix: &Matrix, [row, column]: [u32; 2]) -> Result<Value> {
        let flat = row << matrix.shape.bit_offset(0) | column;
        match matrix.offsets.of(flat) >> UNIT_BITS {
            0 => Ok(matrix.start),
            units => {
                let units = self.int(Elem::I64, i64::from(units));
                self.binary(ThreadOp::Iadd, matrix.start, units)
            }
        }
    }
}

/// The rows at which parts begin, each once.
fn distinct_rows(parts: &[(u32, u32)]) -> Vec<u32> {
    let mut rows: Vec<u32> = parts.iter().map(|&(row, _)| row).collect();
    rows.dedup();
    rows
}
