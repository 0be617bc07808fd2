//! Expansion of prints and assertions: records in the module's log, as [`crate::device_print`] lays them out.
//!
//! Of threads and registers that hold copies of an element the first writes. What is printed takes some twenty
//! instructions an element; kernels that print are not timed.

use crate::device_print::{CAPACITY, COUNTER_BYTES, HEADER_BYTES, RECORD_BYTES};
use crate::ir::attrs::{Attrs, MemOrder, RmwOp, Scope, SpecialReg, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::{Elem, Scalar, ThreadType, TileType, ValueType};

use super::{Expander, Result, bug};

/// A register, what it holds, and whether that is reported.
type Told = (u32, Value, Option<Value>);

impl Expander<'_> {
    pub(super) fn expand_report(&mut self, inst: Inst) -> Result<()> {
        let data = &self.tile.dfg.insts[inst];
        let is_assert = data.op == TileOp::DeviceAssert;
        let traps = data.trap().is_some();
        let Some(&site) = self.sites.get(&inst) else {
            return bug("a print without a number");
        };
        if data.args.is_empty() {
            let zero = self.int(Elem::I32, 0);
            let first = self.leader(self.tile.num_threads() - 1)?;
            return self.record(site, zero, [zero, zero], first);
        }
        let ty = self.arg_type(inst, 0)?;
        let count = self.registers(ty)?;
        let arg = self.arg(inst, 0)?;
        let pack = self.pack_of(&arg, count)?;
        let (register_copies, thread_copies) = self.copies(ty)?;
        let leader = self.leader(thread_copies)?;
        let mut told = Vec::new();
        for reg in (0..count).filter(|reg| reg & register_copies == 0) {
            let single = self.rearrange(&[pack], &[reg as u32])?;
            let mut pred = leader;
            if is_assert {
                let yes = self.constant(ThreadType::scalar(Elem::I1), 1);
                let fails = self.binary(ThreadOp::Xor, single, yes)?;
                pred = self.both(Some(fails), leader)?;
            }
            match pred.filter(|_| traps) {
                Some(pred) => self.b.trap(pred),
                None => told.push((reg as u32, single, pred)),
            }
        }
        match is_assert {
            true => self.assertions(site, ty, &told),
            false => self.records(site, ty, &told),
        }
    }

    /// Reports which of these elements failed. That is hardly ever any, so it stands behind a branch, but for products of matrices, which are
    /// better off in one block.
    fn assertions(&mut self, site: u32, ty: TileType, told: &[Told]) -> Result<()> {
        let mut failed = None;
        for &(_, _, pred) in told {
            failed = match (failed, pred) {
                (Some(a), Some(b)) => Some(self.binary(ThreadOp::Or, a, b)?),
                (failed, pred) => failed.or(pred),
            };
        }
        let Some(failed) = failed else {
            return Ok(());
        };
        if self
            .tile
            .all_insts()
            .any(|(_, i)| self.tile.dfg.insts[i].is_product())
        {
            self.records(site, ty, told)?;
            return self.note_failure(site, Some(failed));
        }
        let [failing, behind] = [(); 2].map(|()| self.b.new_block(&[]).0);
        self.b.brif(failed, (failing, &[]), (behind, &[]));
        self.enter(failing);
        self.records(site, ty, told)?;
        self.note_failure(site, None)?;
        self.b.jump(behind, &[]);
        self.enter(behind);
        Ok(())
    }

    /// Writes a record for each of these elements whose predicate is true.
    fn records(&mut self, site: u32, ty: TileType, told: &[Told]) -> Result<()> {
        for &(reg, single, pred) in told {
            let element = self.element(ty, reg)?;
            let bits = self.bits_of(single)?;
            self.record(site, element, bits, pred)?;
        }
        Ok(())
    }

    /// Number of the element that a register holds.
    fn element(&mut self, ty: TileType, reg: u32) -> Result<Value> {
        if ty.is_scalar() {
            return Ok(self.int(Elem::I32, 0));
        }
        let layout = self.layout(ty)?;
        let of_register = self.int(Elem::I32, i64::from(layout.apply(reg, 0, 0, 0)));
        let of_thread = self.thread_part(&Self::thread_columns(layout))?;
        self.binary(ThreadOp::Xor, of_thread, of_register)
    }

    /// The low and the high word of a value's bits.
    fn bits_of(&mut self, value: Value) -> Result<[Value; 2]> {
        let ty = self.ty(value);
        let as_int = match ty.elem {
            Elem::Num(s) if s.is_float() => Some(match s.bits() {
                8 => Elem::Num(Scalar::I8),
                16 => Elem::I16,
                32 => Elem::I32,
                _ => Elem::I64,
            }),
            _ => None,
        };
        let mut value = match as_int {
            Some(int) => self.op(
                InstData::new(ThreadOp::Bitcast, &[value]),
                &[ty.with_elem(int)],
            )?,
            None => self.carrier_of(value)?,
        };
        let word = ThreadType::scalar(Elem::I32);
        let width = self.ty(value).elem.bits();
        if width < 32 {
            value = self.op(InstData::new(ThreadOp::Zext, &[value]), &[word])?;
        }
        if width <= 32 {
            return Ok([value, self.int(Elem::I32, 0)]);
        }
        let half = self.int(Elem::I64, 32);
        let upper = self.binary(ThreadOp::Ushr, value, half)?;
        let low = self.op(InstData::new(ThreadOp::Itrunc, &[value]), &[word])?;
        let high = self.op(InstData::new(ThreadOp::Itrunc, &[upper]), &[word])?;
        Ok([low, high])
    }

    /// Notes where `failed` is true, or at all, that an assertion failed, which later launches do not take back.
    fn note_failure(&mut self, site: u32, failed: Option<Value>) -> Result<()> {
        let ty = ThreadType::scalar(Elem::global(Scalar::I32));
        let log = self.op(InstData::new(ThreadOp::LogAddr, &[]), &[ty])?;
        let distance = self.int(Elem::I32, i64::from(COUNTER_BYTES / 4));
        let place = self.binary(ThreadOp::Addptr, log, distance)?;
        let number = self.int(Elem::I32, i64::from(site) + 1);
        self.b.atom(
            place,
            number,
            failed,
            RmwOp::Umax,
            MemOrder::Relaxed,
            Scope::Gpu,
        );
        Ok(())
    }

    /// Writes a record where `pred` is true.
    fn record(
        &mut self,
        site: u32,
        element: Value,
        [low, high]: [Value; 2],
        pred: Option<Value>,
    ) -> Result<()> {
        let ty = ThreadType::scalar(Elem::global(Scalar::I32));
        let log = self.op(InstData::new(ThreadOp::LogAddr, &[]), &[ty])?;
        let one = self.int(Elem::I32, 1);
        let number = self
            .b
            .atom(log, one, pred, RmwOp::Add, MemOrder::Relaxed, Scope::Gpu);
        let room = self.int(Elem::I32, i64::from(CAPACITY));
        let fits = self.b.icmp(number, room, crate::ir::attrs::IntPred::Ult);
        let pred = self.both(Some(fits), pred)?;
        let words = self.int(Elem::I32, i64::from(RECORD_BYTES / 4));
        let distance = self.binary(ThreadOp::Imul, number, words)?;
        let place = self.binary(ThreadOp::Addptr, log, distance)?;
        let site = self.int(Elem::I32, i64::from(site));
        let zero = self.int(Elem::I32, 0);
        let regs = [
            SpecialReg::ProgramX,
            SpecialReg::ProgramY,
            SpecialReg::ProgramZ,
        ];
        let [x, y, z] = regs.map(|reg| self.special(reg));
        let halves = [[site, x, y, z], [element, zero, low, high]];
        for (half, offset) in halves.iter().zip([HEADER_BYTES, HEADER_BYTES + 16]) {
            let pack = self.rearrange(half, &[0, 1, 2, 3])?;
            let mut data = InstData::new(ThreadOp::St, &[place, pack]);
            data.args.extend(pred);
            data.attrs.push(make::offset(offset as i32));
            self.effect(data)?;
        }
        Ok(())
    }
}
