//! Expansion of atomic accesses.
//!
//! Each element's step is done by one thread: of registers and threads that hold copies of an element, the first. Where
//! anybody looks at the old values they are handed to the others, by a shuffle if all copies are in one warp, else
//! through shared memory. Neighbours share an instruction as far as the target has vector forms: pairs of f16
//! everywhere, 16 bytes of f16, bf16 and f32 on sm_90.
//!
//! A scalar's step speaks for the program: a barrier before it lets it release what all threads did, and the trip of its
//! result through shared memory, or a barrier, lets all threads acquire. What a target lacks (sums of bf16 before
//! sm_90, the largest of 16 bits anywhere) is a loop around a comparison and exchange of 16 bits; threads leave it one by one.

use crate::analysis::atomic::{lacks_atomic, widest_atomic};
use crate::ir::attrs::{Attr, Attrs, Flag, FloatPred, IntPred, MemOrder, RmwOp, Scope, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::SlotData;
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, ThreadType, TileType, ValueType};
use crate::linear_layout::layout::HwDim;

use super::memory::{GuardedAddress, slot_attrs};
use super::regs::Expanded;
use super::{Expander, Result, bug};

/// What an atomic access does at each element.
#[derive(Clone, Copy)]
enum Step {
    Rmw(RmwOp),
    Cas,
}

/// What is the same at each element.
#[derive(Clone, Copy)]
struct Manner {
    step: Step,
    sem: MemOrder,
    scope: Scope,
}

impl Manner {
    fn attrs(self) -> Vec<Attr> {
        let rmw = match self.step {
            Step::Rmw(rmw) => Some(make::rmw(rmw)),
            Step::Cas => None,
        };
        let order = [make::sem(self.sem), make::scope(self.scope)];
        rmw.into_iter().chain(order).collect()
    }
}

impl Expander<'_> {
    pub(super) fn expand_atomic(&mut self, inst: Inst) -> Result<()> {
        let tile = self.tile;
        let data = &tile.dfg.insts[inst];
        let (Some(&sem), Some(&scope)) = (data.sem(), data.scope()) else {
            return bug("an atomic op without its attributes");
        };
        let (step, mask) = match (data.op, data.rmw()) {
            (TileOp::AtomicRmw, Some(&rmw)) => (Step::Rmw(rmw), Some(2)),
            (TileOp::AtomicCas, _) => (Step::Cas, None),
            _ => return bug("an atomic op without its attributes"),
        };
        let ty = self.arg_type(inst, 1)?;
        let wanted = data.results.first().copied().filter(|&v| self.is_used(v));
        let is_scalar = ty.is_scalar();
        // Nothing can be acquired by who does not look; a scalar's step also stands for a fence.
        let sem = match sem {
            MemOrder::Acquire if wanted.is_none() && !is_scalar => MemOrder::Relaxed,
            MemOrder::AcqRel if wanted.is_none() && !is_scalar => MemOrder::Release,
            sem => sem,
        };
        let manner = Manner { step, sem, scope };
        if is_scalar && sem.releases() {
            self.wait_for_all()?;
        }
        let olds = self.steps(inst, ty, mask, manner, wanted.is_some())?;
        let threads_apart = is_scalar && sem.acquires();
        match wanted {
            None => {
                if threads_apart {
                    self.wait_for_all()?;
                }
                // Unused, but every value stands for something.
                if let Some(&result) = data.results.first() {
                    let zero = self.constant(ThreadType::scalar(ty.elem), 0);
                    self.values[result] = Some(Expanded::Uniform(zero));
                }
            }
            Some(result) => {
                let shared = self.share(olds, ty, threads_apart)?;
                self.values[result] = Some(if is_scalar {
                    Expanded::Uniform(shared)
                } else {
                    Expanded::Pack(shared)
                });
            }
        }
        Ok(())
    }

    /// The steps of a thread; gives the old values of all registers, those of copies of other threads' being 0.
    fn steps(
        &mut self,
        inst: Inst,
        ty: TileType,
        mask: Option<usize>,
        manner: Manner,
        wanted: bool,
    ) -> Result<Value> {
        let count = self.registers(ty)?;
        let pointers = self.arg(inst, 0)?;
        let pointers = self.parts_of(&pointers, count)?;
        let mask = match mask {
            Some(index) => self.mask(inst, index, count)?,
            None => None,
        };
        let n_values = if matches!(manner.step, Step::Cas) {
            2
        } else {
            1
        };
        let operands: Vec<Expanded> = (1..=n_values)
            .map(|i| self.arg(inst, i))
            .collect::<Result<_>>()?;
        let (register_copies, thread_copies) = self.copies(ty)?;
        let leader = self.leader(thread_copies)?;
        let size = ty.elem.bytes();
        let Some(scalar) = ty.elem.scalar() else {
            return bug("an atomic op on what is no number");
        };
        let rmw = match manner.step {
            Step::Rmw(rmw) => Some(rmw),
            Step::Cas => None,
        };
        let widest = widest_atomic(rmw, scalar, self.target);
        let lacks = lacks_atomic(rmw, scalar, self.target);

        if lacks {
            // Barriers that order earlier loads before the steps must not fall among threads that go different ways.
            self.wait_for_all()?;
        }
        let mut olds = Vec::new();
        let mut map = vec![0u32; count];
        let mut n_elements = 0;
        let mut reg = 0;
        while reg < count {
            if reg & register_copies != 0 {
                map[reg] = map[reg & !register_copies];
                reg += 1;
                continue;
            }
            let mut width = self.access_width(&pointers, mask.as_ref(), reg, size, widest);
            while width > 1 && (reg..reg + width).any(|r| r & register_copies != 0) {
                width /= 2;
            }
            let (base, offset, masked) = self.place(&pointers, mask.as_ref(), reg);
            let place = (base, offset, self.both(masked, leader)?);
            let values: Vec<Value> = operands
                .iter()
                .map(|operand| self.slice(operand, count, reg, width))
                .collect::<Result<_>>()?;
            let old = if let (true, Some(rmw)) = (lacks, rmw) {
                self.by_exchange(place, values[0], rmw, manner)?
            } else {
                self.atomic_access(place, &values, manner)?
            };
            for place in &mut map[reg..reg + width] {
                *place = n_elements;
                n_elements += 1;
            }
            olds.push(old);
            reg += width;
        }
        if wanted {
            self.rearrange(&olds, &map)
        } else {
            Ok(olds[0])
        }
    }

    /// One instruction; `values` is what is combined, or what is expected and what replaces it.
    fn atomic_access(
        &mut self,
        (base, offset, pred): GuardedAddress,
        values: &[Value],
        manner: Manner,
    ) -> Result<Value> {
        let (address, offset) = self.address(base, offset)?;
        let op = match manner.step {
            Step::Rmw(_) => ThreadOp::Atom,
            Step::Cas => ThreadOp::AtomCas,
        };
        let mut data = InstData::new(op, &[address]);
        data.args.extend(values.iter().copied());
        data.args.extend(pred);
        data.attrs.extend(manner.attrs());
        if offset != 0 {
            data.attrs.push(make::offset(offset));
        }
        self.op(data, &[])
    }

    /// A step by comparison and exchange, until nobody came between.
    fn by_exchange(
        &mut self,
        (base, offset, pred): GuardedAddress,
        value: Value,
        rmw: RmwOp,
        manner: Manner,
    ) -> Result<Value> {
        let (address, offset) = self.address(base, offset)?;
        let ty = self.ty(value);
        let zero = self.constant(ty, 0);
        let (head, carried) = self.b.new_block(&[ty]);
        let (done, results) = self.b.new_block(&[ty]);
        if let Some(pred) = pred {
            let (start, _) = self.b.new_block(&[]);
            self.b.brif(pred, (start, &[]), (done, &[zero]));
            self.enter(start);
        }
        let first = self.load_one(
            (address, i64::from(offset), None),
            None,
            ty,
            &[make::volatile(Flag)],
        )?;
        self.b.jump(head, &[first]);

        self.enter(head);
        let old = carried[0];
        let combined = match rmw {
            RmwOp::Fadd => self.add_bf16(old, value)?,
            RmwOp::Smax => self.binary(ThreadOp::Smax, old, value)?,
            RmwOp::Smin => self.binary(ThreadOp::Smin, old, value)?,
            RmwOp::Umax => self.binary(ThreadOp::Umax, old, value)?,
            RmwOp::Umin => self.binary(ThreadOp::Umin, old, value)?,
            _ => return bug("a step that is no loop"),
        };
        let exchange = Manner {
            step: Step::Cas,
            ..manner
        };
        let place = (address, i64::from(offset), None);
        let found = self.atomic_access(place, &[old, combined], exchange)?;
        let bits = ThreadType::scalar(Elem::I16);
        let [a, b] = [found, old].map(|v| match ty == bits {
            true => Ok(v),
            false => self.op(InstData::new(ThreadOp::Bitcast, &[v]), &[bits]),
        });
        let same = self.b.icmp(a?, b?, IntPred::Eq);
        self.b.brif(same, (done, &[found]), (head, &[found]));

        self.enter(done);
        Ok(results[0])
    }

    /// The sum of two bf16, rounded once.
    fn add_bf16(&mut self, a: Value, b: Value) -> Result<Value> {
        let ty = ThreadType::scalar(Elem::BF16);
        if self.target.sm >= 80 {
            let one = self.constant(ty, 0x3f80);
            return self.op(InstData::new(ThreadOp::Fma, &[a, one, b]), &[]);
        }
        // Through f32, which is wide enough that rounding twice is harmless; there and back on bits.
        let [i16, i32, f32] = [Elem::I16, Elem::I32, Elem::F32].map(ThreadType::scalar);
        let sixteen = self.int(Elem::I32, 16);
        let mut wide = [a, b];
        for x in &mut wide {
            let bits = self.op(InstData::new(ThreadOp::Bitcast, &[*x]), &[i16])?;
            let bits = self.op(InstData::new(ThreadOp::Zext, &[bits]), &[i32])?;
            let bits = self.binary(ThreadOp::Shl, bits, sixteen)?;
            *x = self.op(InstData::new(ThreadOp::Bitcast, &[bits]), &[f32])?;
        }
        let sum = self.binary(ThreadOp::Fadd, wide[0], wide[1])?;
        let bits = self.op(InstData::new(ThreadOp::Bitcast, &[sum]), &[i32])?;
        let last = self.binary(ThreadOp::Ushr, bits, sixteen)?;
        let one = self.int(Elem::I32, 1);
        let last = self.binary(ThreadOp::And, last, one)?;
        let half = self.int(Elem::I32, 0x7fff);
        let half = self.binary(ThreadOp::Iadd, last, half)?;
        let rounded = self.binary(ThreadOp::Iadd, bits, half)?;
        let mut data = InstData::new(ThreadOp::Fcmp, &[sum, sum]);
        data.attrs.push(make::fpred(FloatPred::Uno));
        let is_nan = self.op(data, &[])?;
        let nan = self.int(Elem::I32, 0x7fff_0000);
        let bits = self.op(
            InstData::new(ThreadOp::Select, &[is_nan, nan, rounded]),
            &[],
        )?;
        let upper = self.binary(ThreadOp::Ushr, bits, sixteen)?;
        let upper = self.op(InstData::new(ThreadOp::Itrunc, &[upper]), &[i16])?;
        self.op(InstData::new(ThreadOp::Bitcast, &[upper]), &[ty])
    }

    /// Hands what the threads hold that act for others to those others. `through_memory` asks for the way that also
    /// orders the accesses of the threads.
    pub(super) fn share(
        &mut self,
        olds: Value,
        ty: TileType,
        through_memory: bool,
    ) -> Result<Value> {
        let (register_copies, thread_copies) = self.copies(ty)?;
        if thread_copies == 0 {
            return Ok(olds);
        }
        let tid = self.special(crate::ir::attrs::SpecialReg::Tid);
        let held = self.ty(olds);
        let carried = self.carrier_of(olds)?;
        if thread_copies >> 5 == 0 && !through_memory {
            // The lane without the bits that make copies.
            let kept = self.int(Elem::I32, i64::from(!thread_copies & 31));
            let lane = self.binary(ThreadOp::And, tid, kept)?;
            let moved = self.op(InstData::new(ThreadOp::ShflIdx, &[carried, lane]), &[])?;
            return self.carried_as(moved, held);
        }
        let carrier = self.ty(carried);
        let size = carrier.elem.bytes();
        // A place in memory: the bits of the thread index that tell elements apart, then the register.
        let threads = self.tile.num_threads();
        let mut columns = vec![0u32; threads.trailing_zeros() as usize];
        let mut next = 0;
        for (bit, column) in columns.iter_mut().enumerate() {
            if thread_copies >> bit & 1 == 0 {
                *column = 1 << next;
                next += 1;
            }
        }
        let kept: Vec<u32> = (0..u32::from(carrier.count))
            .filter(|&r| r as usize & register_copies == 0)
            .collect();
        let slot = self.b.func_mut().slots.push(SlotData {
            bytes: ((kept.len() as u32) << next) * size,
            align: 16,
            offset: None,
            by_group: false,
        });
        let index = self.thread_part(&columns)?;
        let start = self.slot_address(slot, carrier.elem)?;
        let address = self.moved_pointer(start, index)?;
        let leader = self.leader(thread_copies)?;
        let distance = |i: usize| ((i as u32) << next) * size;
        for (i, &reg) in kept.iter().enumerate() {
            let single = self.rearrange(&[carried], &[reg])?;
            let mut data = InstData::new(ThreadOp::St, &[address, single]);
            data.args.extend(leader);
            data.attrs.extend(slot_attrs(slot, distance(i)));
            self.effect(data)?;
        }
        let mut singles = Vec::new();
        for i in 0..kept.len() {
            let mut data = InstData::new(ThreadOp::Ld, &[address]);
            data.attrs.extend(slot_attrs(slot, distance(i)));
            singles.push(self.op(data, &[ThreadType::scalar(carrier.elem)])?);
        }
        let map: Vec<u32> = (0..u32::from(carrier.count))
            .map(|reg| {
                let source = reg & !(register_copies as u32);
                kept.iter().position(|&k| k == source).unwrap_or(0) as u32
            })
            .collect();
        let joined = self.rearrange(&singles, &map)?;
        self.carried_as(joined, held.with_elem(held.elem))
    }

    /// Bits of the register index and of the thread index that only make copies of elements of a block; all threads
    /// hold copies of a scalar.
    pub(super) fn copies(&self, ty: TileType) -> Result<(usize, u32)> {
        if ty.is_scalar() {
            return Ok((0, self.tile.num_threads() - 1));
        }
        let layout = self.layout(ty)?;
        let lanes = layout.bits(HwDim::Lane);
        let copies = layout.free_mask(HwDim::Lane) | layout.free_mask(HwDim::Warp) << lanes;
        Ok((layout.free_mask(HwDim::Register) as usize, copies))
    }
}
