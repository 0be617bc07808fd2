//! Expansion of indices: of programs, groups of threads, threads and elements (`arange`).

use crate::ir::attrs::{Attrs, SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, ThreadType};
use crate::linear_layout::layout::{HwDim, LinearLayout};

use super::regs::{Expanded, PartsBuilder};
use super::{Expander, Group, Result};

impl Expander<'_> {
    pub(super) fn expand_const(&mut self, inst: Inst) -> Result<Expanded> {
        let raw = self.tile.dfg.insts[inst].value().copied().unwrap_or(0);
        let elem = self.result_type(inst)?.elem;
        Ok(Expanded::Uniform(
            self.constant(ThreadType::scalar(elem), raw),
        ))
    }

    pub(super) fn expand_program(&mut self, inst: Inst) -> Expanded {
        let data = &self.tile.dfg.insts[inst];
        let axis = data.axis().copied().unwrap_or(0);
        if let Some(&number) = self.programs.get(usize::from(axis))
            && data.op == TileOp::NumPrograms
        {
            return Expanded::Uniform(number);
        }
        let reg = match (data.op, axis) {
            (TileOp::CtaId, _) | (TileOp::ProgramId, 0) => SpecialReg::ProgramX,
            (TileOp::ProgramId, 1) => SpecialReg::ProgramY,
            (TileOp::ProgramId, _) => SpecialReg::ProgramZ,
            (TileOp::NumCtas, _) | (_, 0) => SpecialReg::ProgramsX,
            (_, 1) => SpecialReg::ProgramsY,
            (_, _) => SpecialReg::ProgramsZ,
        };
        Expanded::Uniform(self.special(reg))
    }

    /// Of a kernel whose groups of warps take turns, finds the group and the thread in it, which is the thread from then on.
    pub(super) fn find_group(&mut self) -> Result<()> {
        if self.tile.groups() == 1 {
            return Ok(());
        }
        let thread = self.special(SpecialReg::Tid);
        let threads = self.tile.num_threads();
        let bits = self.int(Elem::I32, i64::from(threads.trailing_zeros()));
        let mask = self.int(Elem::I32, i64::from(threads - 1));
        let (number, own) = self.in_prologue(|this| {
            let number = this.binary(ThreadOp::Ushr, thread, bits);
            (number, this.binary(ThreadOp::And, thread, mask))
        });
        let number = number?;
        self.specials.insert(SpecialReg::Tid, own?);
        for (_, inst) in self.tile.all_insts() {
            let data = &self.tile.dfg.insts[inst];
            let hands_on = matches!(
                data.op,
                TileOp::TensorCopy | TileOp::MbarArrive | TileOp::MbarExpect | TileOp::SlotPut
            );
            if hands_on {
                self.for_all.extend(data.slot().copied());
            }
        }
        self.group = Some(Group {
            number,
            thread,
            is_apart: false,
        });
        Ok(())
    }

    /// Waits for all threads of the program, or of the group that executes it.
    pub(super) fn wait_for_all(&mut self) -> Result<()> {
        let threads = self.tile.num_threads();
        let Some(group) = self.group else {
            self.b.barrier(0, threads);
            return Ok(());
        };
        // The first barrier is for the threads of all groups.
        let id = self.add_offset(group.number, 1)?;
        let mut data = InstData::new(ThreadOp::GroupBarrier, &[id]);
        data.attrs.push(make::threads(threads));
        self.effect(data)
    }

    /// A special register, read once in the prologue.
    pub(super) fn special(&mut self, reg: SpecialReg) -> Value {
        if let Some(&value) = self.specials.get(&reg) {
            return value;
        }
        let value = self.in_prologue(|this| this.b.special(reg));
        self.note_bits(value);
        self.specials.insert(reg, value);
        value
    }

    /// The exclusive or of `columns[bit]` over the bits that are set in the thread index (lane bits first,
    /// then warp bits), an i32 made once in the prologue.
    pub(super) fn thread_part(&mut self, columns: &[u32]) -> Result<Value> {
        let key: Vec<u32> = columns.to_vec();
        if let Some(&value) = self.thread_parts.get(&key) {
            return Ok(value);
        }
        let value = self.in_prologue(|this| this.make_thread_part(&key))?;
        self.thread_parts.insert(key, value);
        Ok(value)
    }

    /// Thread bits that go equally far up or down move together, wherever they stand: a swizzle, where a bit switches two index
    /// bits, is two such moves. A bit that would need two of its own is multiplied, which is one step less.
    fn make_thread_part(&mut self, columns: &[u32]) -> Result<Value> {
        // How far up each thread bit goes to the index bits of its column.
        let ways = |(bit, &column): (i32, &u32)| {
            let reached = (0..32).filter(move |i| column >> i & 1 == 1);
            reached.map(move |index_bit| index_bit - bit)
        };
        let every: Vec<i32> = (0..).zip(columns).flat_map(ways).collect();
        let is_alone = |up: &i32| every.iter().filter(|&other| other == up).count() == 1;
        // Moves with the index bits that are reached by each, and bits with their columns.
        let mut moves: Vec<(i32, u32)> = Vec::new();
        let mut multiplied: Vec<(i32, u32)> = Vec::new();
        for (bit, column) in (0..).zip(columns) {
            if 2 <= ways((bit, column)).filter(is_alone).count() {
                multiplied.push((bit, *column));
                continue;
            }
            for up in ways((bit, column)) {
                let reached = 1 << (bit + up);
                match moves.iter_mut().find(|(known, _)| *known == up) {
                    Some((_, others)) => *others |= reached,
                    None => moves.push((up, reached)),
                }
            }
        }
        let mut sum: Option<(Value, u32)> = None;
        for (up, reached) in moves {
            let term = self.moved_bits(columns.len(), up, reached)?;
            sum = Some(self.switched(sum, term, reached)?);
        }
        for (bit, column) in multiplied {
            let on = self.moved_bits(columns.len(), -bit, 1)?;
            let factor = self.int(Elem::I32, i64::from(column));
            let term = self.binary(ThreadOp::Imul, on, factor)?;
            sum = Some(self.switched(sum, term, column)?);
        }
        Ok(match sum {
            Some((value, _)) => value,
            None => self.int(Elem::I32, 0),
        })
    }

    /// Of the thread index, which has `width` bits, those that `up` places higher are the bits of `reached`.
    fn moved_bits(&mut self, width: usize, up: i32, reached: u32) -> Result<Value> {
        let mut value = self.special(SpecialReg::Tid);
        let every = (1u64 << width) - 1;
        let there = match up {
            0 => every,
            ..0 => {
                let by = self.int(Elem::I32, i64::from(-up));
                value = self.binary(ThreadOp::Ushr, value, by)?;
                every >> -up
            }
            _ => {
                let by = self.int(Elem::I32, i64::from(up));
                value = self.binary(ThreadOp::Shl, value, by)?;
                every << up
            }
        };
        if there != u64::from(reached) {
            let mask = self.int(Elem::I32, i64::from(reached));
            value = self.binary(ThreadOp::And, value, mask)?;
        }
        Ok(value)
    }

    /// `sum`, a number and the bits that it can have, with `term`, which can have those of `reached`, switched.
    fn switched(
        &mut self,
        sum: Option<(Value, u32)>,
        term: Value,
        reached: u32,
    ) -> Result<(Value, u32)> {
        let Some((rest, covered)) = sum else {
            return Ok((term, reached));
        };
        let op = if covered & reached == 0 {
            ThreadOp::Or
        } else {
            ThreadOp::Xor
        };
        Ok((self.binary(op, rest, term)?, covered | reached))
    }

    /// Columns of a layout for each bit of the thread index: lanes, then warps.
    pub(super) fn thread_columns(layout: &LinearLayout) -> Vec<u32> {
        [layout.columns(HwDim::Lane), layout.columns(HwDim::Warp)].concat()
    }

    /// A range: the thread's part plus a constant per register.
    pub(super) fn expand_arange(&mut self, inst: Inst) -> Result<Expanded> {
        let layout = self.layout(self.result_type(inst)?)?;
        let start = i64::from(self.tile.dfg.insts[inst].start().copied().unwrap_or(0));
        let base = self.thread_part(&Self::thread_columns(layout))?;
        let registers = layout.columns(HwDim::Register);
        let thread_bits = Self::thread_columns(layout)
            .iter()
            .fold(0, |all, c| all | c);
        let register_bits = registers.iter().fold(0, |all, c| all | c);
        let mut parts = PartsBuilder::default();
        for register in 0..layout.num_registers() {
            let offset = layout.apply(register, 0, 0, 0);
            if thread_bits & register_bits == 0 {
                parts.push(base, i64::from(offset) + start);
            } else {
                // A swizzled range: registers and threads switch common bits, so nothing adds up.
                let offset = self.int(Elem::I32, i64::from(offset));
                let place = self.binary(ThreadOp::Xor, base, offset)?;
                parts.push(place, start);
            }
        }
        Ok(Expanded::Parts(parts.finish()))
    }
}
