//! Instructions of the thread level, and what is known of the bits of their results.

use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Thread;
use crate::ir::ops::{Opcode, ThreadOp};
use crate::ir::types::{Elem, ThreadType};

use super::known_bits::{constant, sign_extend};
use super::{Expander, Result, State, bug};

impl Expander<'_> {
    /// Makes an instruction of single or pack values; its bits are derived.
    pub(super) fn op(&mut self, data: InstData<Thread>, given: &[ThreadType]) -> Result<Value> {
        let op = data.op;
        let inst = self.b.inst(data, given);
        match self.b.func().dfg.single_result(inst) {
            Some(value) => {
                self.charge(u32::from(self.ty(value).count))?;
                self.note_bits(value);
                Ok(value)
            }
            None => bug(format!("{} gives no value", op.info().name)),
        }
    }

    /// Makes an instruction without result.
    pub(super) fn effect(&mut self, data: InstData<Thread>) -> Result<()> {
        self.charge(1)?;
        self.b.inst(data, &[]);
        Ok(())
    }

    pub(super) fn note_bits(&mut self, value: Value) {
        let threads = match self.tile.groups() {
            1 => self.tile.num_threads(),
            _ => self.tile.cta_threads(),
        };
        let State { b, bits, .. } = &mut self.state;
        bits.derive(b.func(), value, threads);
    }

    pub(super) fn binary(&mut self, op: ThreadOp, a: Value, b: Value) -> Result<Value> {
        self.op(InstData::new(op, &[a, b]), &[])
    }

    /// Runs `make` with the builder in the prologue.
    pub(super) fn in_prologue<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let (block, prologue) = (self.b.block(), self.prologue);
        self.b.switch_to(prologue);
        let result = make(self);
        self.b.switch_to(block);
        result
    }

    /// A constant, made once.
    pub(super) fn constant(&mut self, ty: ThreadType, raw: u64) -> Value {
        let raw = if ty.elem.bits() < 64 {
            raw & ((1 << ty.elem.bits()) - 1)
        } else {
            raw
        };
        if let Some(&value) = self.constants.get(&(ty, raw)) {
            return value;
        }
        let value = self.in_prologue(|this| this.b.const_bits(raw, ty));
        self.note_bits(value);
        self.constants.insert((ty, raw), value);
        value
    }

    pub(super) fn int(&mut self, elem: Elem, number: i64) -> Value {
        self.constant(ThreadType::scalar(elem), number as u64)
    }

    pub(super) fn ty(&self, value: Value) -> ThreadType {
        self.b.ty(value)
    }

    /// The number a single value is, if it is constant.
    pub(super) fn known(&self, value: Value) -> Option<i64> {
        constant(self.b.func(), value)
    }

    /// `base + offset` as one value; for pointers the offset counts bytes.
    pub(super) fn add_offset(&mut self, base: Value, offset: i64) -> Result<Value> {
        let elem = self.ty(base).elem;
        if offset == 0 {
            return Ok(base);
        }
        if let Some(number) = self.known(base) {
            return Ok(self.int(elem, number.wrapping_add(offset)));
        }
        if let Some(pointee) = elem.pointee() {
            let index = self.int(Elem::I64, offset / i64::from(pointee.bytes()));
            return self.binary(ThreadOp::Addptr, base, index);
        }
        let offset = self.int(elem, offset);
        self.binary(ThreadOp::Iadd, base, offset)
    }

    /// Bits of a constant as a number of its width.
    pub(super) fn wrap(elem: Elem, number: i64) -> i64 {
        sign_extend(number as u64, elem.bits())
    }
}
