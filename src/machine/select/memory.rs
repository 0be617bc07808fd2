//! Accesses to memory, parameters, special registers and barriers.
//!
//! An access is one PTX instruction: elements of 32 and 64 bits as they are, 16-bit pairs as words, 8-bit elements
//! as words that are taken apart. A masked load is predicated and leaves its destination as it was, so the
//! destination gets `other` (or zero) first.

use super::{Selector, bits_type, class, internal, rules};
use crate::error::CompileError;
use crate::ir::attrs::{Attrs, Cache, Evict, SpecialReg};
use crate::ir::entities::{Inst, Value};
use crate::ir::types::{AddressSpace, Elem, Scalar, ThreadType};
use crate::machine::inst::{AccessMode, Address, Cmp, Guard, Modifier, Operand, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, RegView};

/// How a value lies in the registers of an access.
pub(super) struct Words {
    pub(super) ty: PtxType,
    pub(super) count: u16,
    /// Whether the registers hold packed bytes.
    bytes: bool,
}

impl Words {
    /// Whether the access takes more than 16 bytes.
    fn is_wide(&self) -> bool {
        128 < u32::from(self.count) * self.ty.bits()
    }
}

/// The registers that an access to a value of a type reads or writes.
pub(super) fn words(ty: ThreadType) -> Words {
    let (ptx, count, bytes) = match (ty.elem.bytes(), ty.count) {
        (1, 1) => (PtxType::U8, 1, false),
        (1, 2) => (PtxType::B16, 1, true),
        (1, n) => (PtxType::B32, n / 4, true),
        (2, n) if ty.is_paired() => (PtxType::B32, n / 2, false),
        (2, n) => (PtxType::B16, n, false),
        (4, n) => (PtxType::B32, n, false),
        (_, n) => (PtxType::B64, n, false),
    };
    Words {
        ty: ptx,
        count,
        bytes,
    }
}

/// Whether an access happens.
pub(super) enum When {
    Always,
    Never,
    If(Guard),
}

impl Selector<'_> {
    pub(super) fn select_load(&mut self, inst: Inst) -> Result<Option<Operand>, CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let ty = func.dfg.ty(data.results[0]);
        let shape = words(ty);
        let class = shape.ty.class();
        let when = self.when(data.args.get(1).copied());
        let packed = self.packed[data.results[0]];
        let dest = packed.unwrap_or_else(|| self.fresh(class, shape.count));
        if !matches!(when, When::Always) {
            let other = match data.args.get(2) {
                Some(&other) => self.value_words(other, &shape),
                None => Operand::Imm(0),
            };
            self.copy(dest, other, bits_type(class));
        }
        if !matches!(when, When::Never) {
            let (place, access) = self.access(inst)?;
            let op = match (shape.is_wide(), access.hint, access.evict) {
                (false, true, _) => Ptx::LdHint,
                (false, false, Some(_)) => Ptx::LdEvict,
                (false, false, None) => Ptx::Ld,
                (true, true, _) => Ptx::LdWideHint,
                (true, false, _) => Ptx::LdWide,
            };
            let mut args = vec![Operand::Regs(dest), Operand::Address(place)];
            args.extend(self.policy_of(inst, access));
            self.push_inst(op, shape.ty, shape.ty, Modifier::Memory(access), 1, &args);
            if let When::If(guard) = when {
                self.guard_last(Some(guard));
            }
        }
        if !self.needed.contains(data.results[0]) && packed.is_some() {
            return Ok(None);
        }
        if ty.elem == Elem::I1 && shape.bytes {
            return Ok(Some(self.not_zero(dest)));
        }
        let elements = if shape.bytes {
            self.take_apart(dest)
        } else {
            dest
        };
        if ty.elem == Elem::I1 {
            let bytes = self.widened(elements);
            let not_zero = Modifier::Cmp(Cmp::Ne);
            return Ok(Some(self.result_of(
                Ptx::Setp,
                PtxType::S16,
                PtxType::S16,
                not_zero,
                &[bytes, Operand::Imm(0)],
            )));
        }
        Ok(Some(Operand::Regs(elements)))
    }

    pub(super) fn select_store(&mut self, inst: Inst) -> Result<(), CompileError> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let shape = words(func.dfg.ty(data.args[1]));
        let when = self.when(data.args.get(2).copied());
        if matches!(when, When::Never) {
            return Ok(());
        }
        let value = self.value_words(data.args[1], &shape);
        let mut value = self.in_register(value, shape.ty.class());
        if value.count != shape.count {
            value = value.repeat(shape.count);
        }
        let (place, access) = self.access(inst)?;
        let op = match (shape.is_wide(), access.hint, access.evict) {
            (false, true, _) => Ptx::StHint,
            (false, false, Some(_)) => Ptx::StEvict,
            (false, false, None) => Ptx::St,
            (true, true, _) => Ptx::StWideHint,
            (true, false, _) => Ptx::StWide,
        };
        let mut args = vec![Operand::Address(place), Operand::Regs(value)];
        args.extend(self.policy_of(inst, access));
        self.push_inst(op, shape.ty, shape.ty, Modifier::Memory(access), 1, &args);
        if let When::If(guard) = when {
            self.guard_last(Some(guard));
        }
        Ok(())
    }

    pub(super) fn when(&mut self, pred: Option<Value>) -> When {
        let Some(pred) = pred else {
            return When::Always;
        };
        match self.use_value(pred) {
            Operand::Regs(view) => When::If(Guard {
                pred: self.code.regs.unit(view, 0),
                negated: false,
            }),
            Operand::Imm(0) => When::Never,
            _ => When::Always,
        }
    }

    /// Where and how an instruction accesses memory.
    fn access(&mut self, inst: Inst) -> Result<(Address, AccessMode), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let Elem::Ptr(_, space) = self.func.dfg.ty(data.args[0]).elem else {
            return Err(self.not_selected(data.op));
        };
        let offset = *data.offset().unwrap_or(&0);
        let is_store = data.results.is_empty();
        let volatile = data.volatile().is_some();
        // Caches are a matter of global memory; a modifier of the other kind of access says nothing here.
        let is_global = space == AddressSpace::Global && !volatile;
        let evict = data.evict().copied().filter(|_| is_global);
        let has_policies = 80 <= self.target.sm;
        let cache = data.cache().copied().filter(|cache| {
            let fits = match cache {
                Cache::All | Cache::Volatile => !is_store,
                Cache::Global | Cache::Streaming => true,
                Cache::WriteBack | Cache::WriteThrough => is_store,
            };
            // PTX has either a cache operator or a priority in the L1 cache.
            is_global && fits && (evict.is_none() || has_policies)
        });
        let hint = evict.is_some() && has_policies;
        let evict = evict.filter(|_| cache.is_none());
        let place = self.place(data.args[0], offset);
        let access = AccessMode {
            space,
            cache,
            evict,
            hint,
            volatile,
        };
        Ok((place, access))
    }

    /// What stands `offset` bytes from a pointer.
    pub(super) fn place(&mut self, pointer: Value, offset: i32) -> Address {
        let class = class(self.func.dfg.ty(pointer));
        let pointer = self.use_value(pointer);
        Address::Register(self.in_register(pointer, class).part(0, 1), offset)
    }

    /// The register that holds the policy of an access which has one.
    fn policy_of(&mut self, inst: Inst, access: AccessMode) -> Option<Operand> {
        let evict = *self.func.dfg.insts[inst].evict().filter(|_| access.hint)?;
        Some(self.policy(evict))
    }

    /// The register that holds a policy; filled at the start of the kernel.
    pub(super) fn policy(&mut self, evict: Evict) -> Operand {
        let view = match self.policies[evict as usize] {
            Some(view) => view,
            None => self.fresh(RegClass::D, 1),
        };
        self.policies[evict as usize] = Some(view);
        Operand::Regs(view)
    }

    /// Makes the policies that any access has.
    pub(super) fn make_policies(&mut self) {
        for (evict, op) in [
            (Evict::First, Ptx::PolicyFirst),
            (Evict::Last, Ptx::PolicyLast),
        ] {
            if let Some(view) = self.policies[evict as usize] {
                let ty = PtxType::B64;
                self.push_inst(op, ty, ty, Modifier::None, 1, &[Operand::Regs(view)]);
            }
        }
    }

    /// A value in the registers that an access to it takes.
    fn value_words(&mut self, value: Value, shape: &Words) -> Operand {
        if shape.bytes
            && let Some(words) = self.loaded_words(value)
        {
            return Operand::Regs(words);
        }
        let ty = self.func.dfg.ty(value);
        let mut arg = self.use_value(value);
        if ty.elem == Elem::I1 {
            arg = match arg {
                Operand::Imm(bit) => Operand::Imm(bit & 1),
                pred => self.result_of(
                    Ptx::Selp,
                    PtxType::U16,
                    PtxType::U16,
                    Modifier::None,
                    &[Operand::Imm(1), Operand::Imm(0), pred],
                ),
            };
        }
        match arg {
            Operand::Imm(byte) if shape.bytes => {
                Operand::Imm(((byte & 0xff) * 0x0101_0101) & shape_elem(shape).mask())
            }
            Operand::Regs(view) if shape.bytes => {
                let all = if view.count == ty.count {
                    view
                } else {
                    view.repeat(ty.count)
                };
                Operand::Regs(self.put_together(all))
            }
            other => other,
        }
    }

    /// Bytes of packed registers, each in a register of its own with anything above.
    pub(super) fn take_apart(&mut self, packed: RegView) -> RegView {
        let low = match self.code.regs.class_of(self.code.regs.unit(packed, 0)) {
            RegClass::W => rules::Context::halves(self, Operand::Regs(packed)),
            _ => Operand::Regs(packed),
        };
        let high = self.result_of(
            Ptx::Shr,
            PtxType::U16,
            PtxType::U16,
            Modifier::None,
            &[low, Operand::Imm(8)],
        );
        match (low, high) {
            (Operand::Regs(low), Operand::Regs(high)) => self.alternating(low, high),
            _ => packed,
        }
    }

    /// Bytes in registers of their own, packed.
    pub(super) fn put_together(&mut self, bytes: RegView) -> RegView {
        let pairs = rules::Context::pair(self, Operand::Regs(bytes));
        let (a, b, selector) = match bytes.count {
            2 => (pairs, Operand::Imm(0), 0x4420),
            _ => (
                rules::Context::even(self, pairs),
                rules::Context::odd(self, pairs),
                0x6420,
            ),
        };
        let words = self.result_of(
            Ptx::Prmt,
            PtxType::B32,
            PtxType::B32,
            Modifier::None,
            &[a, b, Operand::Imm(selector)],
        );
        let packed = match bytes.count {
            2 => self.result_of(
                Ptx::Cvt,
                PtxType::U16,
                PtxType::U32,
                Modifier::None,
                &[words],
            ),
            _ => words,
        };
        self.in_register(packed, RegClass::W)
    }

    /// Bytes with zeros above.
    pub(super) fn widened(&mut self, bytes: RegView) -> Operand {
        self.result_of(
            Ptx::Cvt,
            PtxType::U16,
            PtxType::U8,
            Modifier::None,
            &[Operand::Regs(bytes)],
        )
    }

    /// Reads the kernel's parameters that anything needs.
    pub(super) fn load_params(&mut self) -> Result<(), CompileError> {
        for (i, &param) in (0..).zip(self.func.params()) {
            if !self.needed.contains(param) {
                continue;
            }
            let ty = self.func.dfg.ty(param);
            let Some(Operand::Regs(own)) = self.values[param] else {
                return Err(internal(format!("parameter {param} has no register")));
            };
            if ty.count != 1 {
                return Err(internal(format!("parameter {param} is a pack")));
            }
            if ty.elem == Elem::I1 {
                let byte = self.fresh(RegClass::H, 1);
                self.push_inst(
                    Ptx::LdParam,
                    PtxType::U8,
                    PtxType::U8,
                    Modifier::None,
                    1,
                    &[Operand::Regs(byte), Operand::Param(i)],
                );
                let args = [Operand::Regs(own), Operand::Regs(byte), Operand::Imm(0)];
                self.push_inst(
                    Ptx::Setp,
                    PtxType::S16,
                    PtxType::S16,
                    Modifier::Cmp(Cmp::Ne),
                    1,
                    &args,
                );
            } else {
                let ptx = param_type(ty.elem);
                self.push_inst(
                    Ptx::LdParam,
                    ptx,
                    ptx,
                    Modifier::None,
                    1,
                    &[Operand::Regs(own), Operand::Param(i)],
                );
            }
        }
        Ok(())
    }

    pub(super) fn select_special(&mut self, inst: Inst) -> Option<Operand> {
        let reg: SpecialReg = *self.func.dfg.insts[inst].reg()?;
        Some(self.result_of(
            Ptx::Special,
            PtxType::U32,
            PtxType::U32,
            Modifier::None,
            &[Operand::Special(reg)],
        ))
    }

    pub(super) fn select_slot(&mut self, inst: Inst) -> Option<Operand> {
        let slot = *self.func.dfg.insts[inst].slot()?;
        let offset = i32::try_from(self.func.slots[slot].offset?).ok()?;
        let place = Operand::Address(Address::Shared(offset));
        Some(self.result_of(
            Ptx::Symbol,
            PtxType::U32,
            PtxType::U32,
            Modifier::None,
            &[place],
        ))
    }

    pub(super) fn select_barrier(&mut self, inst: Inst) -> Result<(), CompileError> {
        let data = &self.func.dfg.insts[inst];
        let (Some(&id), Some(&threads)) = (data.id(), data.threads()) else {
            return Err(self.not_selected(data.op));
        };
        let id = Operand::Imm(u64::from(id));
        if threads == self.func.cta_threads() {
            self.push_inst(
                Ptx::Bar,
                PtxType::U32,
                PtxType::U32,
                Modifier::None,
                1,
                &[id],
            );
        } else {
            let args = [id, Operand::Imm(u64::from(threads))];
            self.push_inst(
                Ptx::BarCount,
                PtxType::U32,
                PtxType::U32,
                Modifier::None,
                1,
                &args,
            );
        }
        Ok(())
    }
}

fn shape_elem(shape: &Words) -> Elem {
    match shape.ty {
        PtxType::B16 => Elem::Num(Scalar::I16),
        _ => Elem::I32,
    }
}

/// The type of a kernel parameter.
pub(crate) fn param_type(elem: Elem) -> PtxType {
    match elem.bits() {
        1 | 8 => PtxType::U8,
        16 => PtxType::B16,
        32 if elem == Elem::F32 => PtxType::F32,
        32 => PtxType::U32,
        _ if elem == Elem::F64 => PtxType::F64,
        _ => PtxType::U64,
    }
}
