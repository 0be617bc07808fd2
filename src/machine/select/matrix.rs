//! Matrices: loads of fragments, products, and copies to shared memory that do not go through registers.
//!
//! A product of packs is one row of the table for each instruction of the unit that a tile takes, repeated for every tile: the
//! operands are lists in which the fragments of a row or column of tiles stand as often as they are read.

use super::{Selector, internal};
use crate::error::CompileError;
use crate::ir::attrs::{Attrs, MmaUnit};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Thread;
use crate::ir::matrix_units::{Fragments, for_each_unit};
use crate::ir::ops::ThreadOp;
use crate::ir::types::Elem;
use crate::machine::inst::{Modifier, Operand, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, RegView, Unit};

use super::memory::When;

macro_rules! forms {
    ($($(#[$doc:meta])+ $variant:ident $name:literal ($($scalar:ident)*)
        m $rows:literal n $columns:literal $(to $most:literal)? k $inner:literal, tile $tile:expr, sm $sm:tt,
        warps $warps:literal, $when:ident, $fragments:ident $(($($crossed:literal),*))?,
        $ptx:ident ($left:ident $right:ident);)*) => {
        /// The instruction of a unit, and its types.
        fn form(unit: MmaUnit) -> (Ptx, PtxType, PtxType) {
            match unit { $(MmaUnit::$variant => (Ptx::$ptx, PtxType::$left, PtxType::$right),)* }
        }
    };
}
for_each_unit!(forms);

/// The instruction of four warps that reads the left matrix from registers, for the one that reads both from shared memory.
fn with_left_in_registers(op: Ptx) -> Option<Ptx> {
    match op {
        Ptx::Wgmma16 => Some(Ptx::Wgmma16Regs),
        Ptx::WgmmaTf32 => Some(Ptx::WgmmaTf32Regs),
        Ptx::WgmmaF8 => Some(Ptx::WgmmaF8Regs),
        Ptx::WgmmaF8Halves => Some(Ptx::WgmmaF8HalvesRegs),
        Ptx::WgmmaS8 => Some(Ptx::WgmmaS8Regs),
        _ => None,
    }
}

impl Selector<'_> {
    pub(super) fn select_ldmatrix(&mut self, inst: Inst) -> Result<Operand, CompileError> {
        let data = &self.func.dfg.insts[inst];
        let count = self.func.dfg.ty(data.results[0]).registers();
        let place = self.place(data.args[0], *data.offset().unwrap_or(&0));
        let dest = Operand::Regs(self.fresh(RegClass::W, count));
        let modifier = Modifier::Matrices(count, data.trans().is_some());
        let ty = PtxType::B16;
        let args = [dest, Operand::Address(place)];
        self.push_inst(Ptx::LdMatrix, ty, ty, modifier, 1, &args);
        Ok(dest)
    }

    pub(super) fn select_stmatrix(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let (pointer, x, trans) = (data.args[0], data.args[1], data.trans().is_some());
        let place = self.place(pointer, *data.offset().unwrap_or(&0));
        let units = self.all_units(x);
        let count = units.len() as u16;
        let view = self.code.regs.view_of(&units);
        let ty = PtxType::B16;
        let args = [Operand::Address(place), Operand::Regs(view)];
        self.push_inst(
            Ptx::StMatrix,
            ty,
            ty,
            Modifier::Matrices(count, trans),
            1,
            &args,
        );
        Ok(())
    }

    pub(super) fn select_mma(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let (Some(&unit), &[a, b, c]) = (data.unit(), &data.args[..]) else {
            return Err(self.not_selected(data.op));
        };
        let Some(Operand::Regs(own)) = self.values[data.results[0]] else {
            return Err(internal("a product has no registers"));
        };
        let (op, ty, from) = form(unit);
        let modifier = match unit.info().fragments {
            Fragments::Rows => Modifier::None,
            Fragments::QuadPairs(left, right) => Modifier::Transposed([left, right]),
        };
        let (a, b) = (self.all_units(a), self.all_units(b));
        let c = self.all_units(c);
        let mut sums = self.code.regs.view_of(&c);
        let [words_a, words_b, _] = unit.tile_registers().map(|n| n as usize);
        let (rows, columns) = (a.len() / words_a, b.len() / words_b);
        let [halves, steps] = unit.steps().map(|n| n as usize);
        let (each_a, each_b) = (words_a / steps / halves, words_b / steps);
        for step in 0..steps {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for row in 0..rows {
                for column in 0..columns {
                    for half in 0..halves {
                        let first = words_a * row + step * words_a / steps + half;
                        left.extend_from_slice(&a[first..first + each_a]);
                        let first = words_b * column + step * each_b;
                        right.extend_from_slice(&b[first..first + each_b]);
                    }
                }
            }
            let args = [
                own,
                self.code.regs.view_of(&left),
                self.code.regs.view_of(&right),
                sums,
            ];
            let reps = (rows * columns * halves) as u16;
            self.push_inst(op, ty, from, modifier, reps, &args.map(Operand::Regs));
            sums = own;
        }
        Ok(())
    }

    /// The registers of a result that is tied to an operand: the same, or, where the operand is needed later or is a number, others
    /// with a copy of it.
    fn tied(&mut self, result: Value, from: Value) -> Result<RegView, CompileError> {
        let Some(Operand::Regs(own)) = self.values[result] else {
            return Err(internal("a tied value has no registers"));
        };
        let from = match self.use_value(from) {
            Operand::Regs(view) if view == own => return Ok(own),
            Operand::Regs(_) => {
                let units = self.all_units(from);
                Operand::Regs(self.code.regs.view_of(&units))
            }
            number => number,
        };
        let class = super::class(self.func.dfg.ty(result));
        self.copy(own, from, super::bits_type(class));
        Ok(own)
    }

    /// Whether a sum that goes to products alone is zero so far: then the first of them do not add, and no zeros are written. ptxas
    /// serialises products if sums of others get their first numbers meanwhile (C7515).
    fn starts_from_zero(&self, sum: Value) -> bool {
        let fence = self
            .func
            .dfg
            .def_inst(sum)
            .map(|inst| &self.func.dfg.insts[inst]);
        let is_zero = |data: &InstData<Thread>| {
            let first = data.args.first().and_then(|&value| self.values[value]);
            data.op == ThreadOp::WgmmaFence && first == Some(Operand::Imm(0))
        };
        self.n_uses[sum] == 1 && fence.is_some_and(is_zero)
    }

    pub(super) fn select_wgmma(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let (Some(&unit), Some(&columns), Some((&c, pairs)), &[result]) = (
            data.unit(),
            data.columns(),
            data.args.split_first(),
            &data.results[..],
        ) else {
            return Err(self.not_selected(data.op));
        };
        let (adds, pairs) = match pairs.split_last() {
            Some((&last, pairs)) if self.func.dfg.ty(last).elem == Elem::I1 => (Some(last), pairs),
            _ => (None, pairs),
        };
        let pairs = pairs.to_vec();
        let adds = match adds {
            Some(adds) => {
                let adds = self.use_value(adds);
                Some(self.in_register(adds, RegClass::P))
            }
            None => None,
        };
        let transposed = [data.trans_a().is_some(), data.trans_b().is_some()];
        // Two columns of each eight are this thread's, in two rows.
        let sum = self.func.dfg.ty(result).elem;
        let each = (columns / 2 * sum.bytes() / 4) as u16;
        let own = self.tied(result, c)?;
        let from_zero = self.starts_from_zero(c);
        if from_zero {
            self.unread.insert(c);
        }
        let parts = usize::from(own.count / each.max(1));
        for (i, pair) in pairs.chunks(2).enumerate() {
            let &[a, b] = pair else {
                return Err(internal("an operand without another"));
            };
            let in_registers = self.func.dfg.ty(a).elem != Elem::I64;
            let left = match in_registers {
                true => {
                    let units = self.fragment(a)?;
                    self.code.regs.view_of(&units)
                }
                false => {
                    let a = self.use_value(a);
                    self.in_register(a, RegClass::D)
                }
            };
            let b = self.use_value(b);
            let right = self.in_register(b, RegClass::D);
            let (both, ty, from) = form(unit);
            let op = match in_registers {
                true => with_left_in_registers(both)
                    .ok_or_else(|| internal("a unit that reads no fragments"))?,
                false => both,
            };
            let sums = own.part((i % parts) as u16 * each, each);
            let mut args = vec![
                Operand::Regs(sums),
                Operand::Regs(left),
                Operand::Regs(right),
            ];
            // Whether it adds, and the signs as they are.
            args.push(match adds {
                Some(adds) if i < parts => Operand::Regs(adds),
                _ => Operand::Imm(u64::from(!from_zero || i >= parts)),
            });
            let signs = if sum.is_float() { 2 } else { 0 };
            args.extend(vec![Operand::Imm(1); signs]);
            if matches!(op, Ptx::Wgmma16 | Ptx::Wgmma16Regs) {
                let flags = transposed.map(|flag| Operand::Imm(u64::from(flag)));
                args.extend(&flags[usize::from(in_registers)..]);
            }
            self.push_inst(op, ty, from, Modifier::Columns(columns as u16), 1, &args);
        }
        Ok(())
    }

    /// A fence or wait that gives its first operand back and reads the others, all of them in registers of 32 bits.
    pub(super) fn select_held(
        &mut self,
        inst: Inst,
        op: Ptx,
    ) -> Result<Option<Operand>, CompileError> {
        let data = &self.func.dfg.insts[inst];
        let pending = data.pending().map(|&count| Operand::Imm(u64::from(count)));
        let is_unread = data.unread().is_some();
        let (first, others) = match data.args.split_first() {
            Some((&first, others)) if !(is_unread && op == Ptx::WgmmaWait) => {
                (Some(first), others.to_vec())
            }
            _ => (None, data.args.to_vec()),
        };
        let result = data.results.first().copied();
        let held = match (result, first) {
            (Some(result), Some(_)) if is_unread || self.unread.contains(result) => {
                let Some(Operand::Regs(own)) = self.values[result] else {
                    return Err(internal("a tied value has no registers"));
                };
                let (ty, args) = (PtxType::U32, [Operand::Regs(own)]);
                self.push_inst(Ptx::Undefined, ty, ty, Modifier::None, 1, &args);
                own
            }
            (Some(result), Some(first)) => self.tied(result, first)?,
            _ => self.code.regs.view_of(&[]),
        };
        let mut kept = Vec::new();
        for value in others {
            kept.extend(self.fragment(value)?);
        }
        let kept = self.code.regs.view_of(&kept);
        let all = [Operand::Regs(held), Operand::Regs(kept)];
        let args: Vec<Operand> = pending.into_iter().chain(all).collect();
        self.push_inst(op, PtxType::U32, PtxType::U32, Modifier::None, 1, &args);
        Ok(None)
    }

    /// The registers of a fragment that stays as it is from a fence to a wait. A number has one where it is defined: made at each
    /// use it would be written behind the fence, and its register be free while the unit reads.
    fn fragment(&mut self, value: Value) -> Result<Vec<Unit>, CompileError> {
        match self.use_value(value) {
            Operand::Imm(_) => {
                let unit = self.element_unit(value, 0);
                let unit = unit.ok_or_else(|| internal("a number has no register"))?;
                let count = self.func.dfg.ty(value).registers();
                Ok(vec![unit; usize::from(count)])
            }
            _ => Ok(self.all_units(value)),
        }
    }

    /// Every register of a pack, in order.
    fn all_units(&mut self, value: Value) -> Vec<Unit> {
        let ty = self.func.dfg.ty(value);
        let arg = self.use_value(value);
        let view = self.in_register(arg, super::class(ty));
        let count = ty.registers();
        let place = |i| if view.count == count { i } else { 0 };
        (0..count)
            .map(|i| self.code.regs.unit(view, place(i)))
            .collect()
    }

    pub(super) fn select_copy(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let &bytes = data.bytes().unwrap_or(&16);
        let to = self.place(data.args[0], *data.offset().unwrap_or(&0));
        let from = *data.read_offset().unwrap_or(&0);
        let from = self.place(data.args[1], from);
        let mut args = vec![
            Operand::Address(to),
            Operand::Address(from),
            Operand::Imm(u64::from(bytes)),
        ];
        let (pred, size) = (data.args.get(2).copied(), data.args.get(3).copied());
        let (mut when, mut guard) = (self.when(pred), None);
        if data.skips().is_some() {
            guard = match std::mem::replace(&mut when, When::Always) {
                When::Never => return Ok(()),
                When::Always => None,
                When::If(guard) => Some(guard),
            };
        }
        let size = size.map(|size| self.use_value(size));
        let op = match (when, size) {
            (When::Always, None) => Ptx::CpAsync,
            (When::Always, Some(size)) => {
                args.push(size);
                Ptx::CpAsyncFill
            }
            (When::Never, _) => {
                args.push(Operand::Imm(0));
                Ptx::CpAsyncFill
            }
            (When::If(guard), size) => {
                let pred = Operand::Regs(self.code.regs.view_of(&[guard.pred]));
                let u32 = PtxType::U32;
                let whole = Operand::Imm(u64::from(bytes));
                let sources = [size.unwrap_or(whole), Operand::Imm(0), pred];
                args.push(self.result_of(Ptx::Selp, u32, u32, Modifier::None, &sources));
                Ptx::CpAsyncFill
            }
        };
        // For sm_90 and later ptxas (12.8 to 13.0) loses the address of a copy that has a policy where that is a place in shared memory
        // and a number of the thread: the GPU stops at an illegal instruction.
        let has_policy = self.target.sm < 90;
        let policy = self.func.dfg.insts[inst].evict().copied();
        let policy = policy.filter(|_| has_policy);
        let op = match (policy, op) {
            (None, op) => op,
            (Some(_), Ptx::CpAsync) => Ptx::CpAsyncHint,
            (Some(_), _) => Ptx::CpAsyncFillHint,
        };
        args.extend(policy.map(|evict| self.policy(evict)));
        let ty = PtxType::U32;
        self.push_inst(op, ty, ty, Modifier::Copy(bytes == 16), 1, &args);
        self.guard_last(guard);
        Ok(())
    }

    /// A wait for all but some groups of what the thread has under way.
    pub(super) fn select_pending(
        &mut self,
        inst: Inst,
        op: Ptx,
    ) -> Result<Option<Operand>, CompileError> {
        let pending = *self.func.dfg.insts[inst].pending().unwrap_or(&0);
        let (ty, args) = (PtxType::U32, [Operand::Imm(u64::from(pending))]);
        self.push_inst(op, ty, ty, Modifier::None, 1, &args);
        Ok(None)
    }

    /// Bytes in words; what lies in words already was renamed.
    pub(super) fn select_words(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let arg = self.func.dfg.insts[inst].args[0];
        let ty = self.func.dfg.ty(arg);
        let used = self.use_value(arg);
        if ty.elem.bits() != 8 {
            return Ok(None);
        }
        let bytes: RegView = match used {
            Operand::Imm(byte) => return Ok(Some(Operand::Imm((byte & 0xff) * 0x0101_0101))),
            arg => self.in_register(arg, RegClass::H),
        };
        let all = match bytes.count {
            count if count == ty.count => bytes,
            _ => bytes.repeat(ty.count),
        };
        Ok(Some(Operand::Regs(self.put_together(all))))
    }
}
