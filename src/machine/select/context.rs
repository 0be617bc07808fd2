//! What the selection rules call: extractors that look at the IR, constructors that emit.

use super::rules::InstView;
use super::{Selector, rules};
use crate::ir::attrs::{Attr, Attrs, FloatPred, IntPred, NanRule, RedOp, Rounding};
use crate::ir::dfg::Dfg;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Thread;
use crate::ir::types::Elem;
use crate::machine::inst::{Cmp, Kind, Modifier, Operand, OperandForm, Ptx, PtxType};
use crate::regalloc::reg::{RegClass, RegView};

/// All lanes of a warp.
const ALL_LANES: u64 = 0xffff_ffff;

impl Selector<'_> {
    /// An instruction as rules see it.
    pub(super) fn view_inst(&self, inst: Inst) -> InstView {
        let data = &self.func.dfg.insts[inst];
        let op = data.op;
        match data.args[..] {
            [] => InstView::Nullary { op },
            [a] => InstView::Unary { op, a },
            [a, b] => InstView::Binary { op, a, b },
            [a, b, c] => InstView::Ternary { op, a, b, c },
            _ => InstView::Other { op },
        }
    }

    /// Emits a row of the table; gives the registers of its result. `sources` are all operands but the first.
    pub(super) fn result_of(
        &mut self,
        op: Ptx,
        ty: PtxType,
        from: PtxType,
        modifier: Modifier,
        sources: &[Operand],
    ) -> Operand {
        let forms = op.info().operands;
        let inst = crate::machine::inst::MInst {
            op,
            ty,
            from,
            modifier,
            reps: 1,
            first_arg: 0,
            guard: None,
            loc: self.loc,
        };
        let mut args = [Operand::Imm(0); 6];
        let mut reps = 1;
        let all_numbers = sources.iter().all(|a| matches!(a, Operand::Imm(_)));
        for (i, &source) in sources.iter().enumerate() {
            let (form, _) = forms[i + 1];
            let number_fits = form == OperandForm::Imm
                && takes_numbers(inst.operand_type(i + 1))
                && !(all_numbers && i == 0);
            let source = match source {
                Operand::Imm(_) if !number_fits => {
                    Operand::Regs(self.in_register(source, inst.class(i + 1)))
                }
                other => other,
            };
            if let Operand::Regs(view) = source {
                reps = reps.max(if form == OperandForm::VUse {
                    view.count / 2
                } else {
                    view.count
                });
            }
            args[i + 1] = source;
        }
        let per_rep = match forms[0].0 {
            OperandForm::VDef => 2,
            _ => 1,
        };
        let dest = self.fresh(inst.class(0), per_rep * reps);
        args[0] = Operand::Regs(dest);
        self.push_inst(op, ty, from, modifier, reps, &args[..sources.len() + 1]);
        Operand::Regs(dest)
    }

    fn plain(&mut self, op: Ptx, ty: PtxType, sources: &[Operand]) -> Operand {
        self.result_of(op, ty, ty, Modifier::None, sources)
    }

    /// Words of two registers of 16 bits each. What a conversion to floats of 8 bits leaves is in `mov.b32 {l, h}` once: ptxas 12.9 makes one
    /// instruction of both, and may end by a signal where it finds another such word. With `prmt` the machine code is 0.4 %
    /// longer.
    fn words_of(&mut self, halves: RegView) -> Operand {
        let mut is_again = false;
        for i in 0..halves.count {
            let unit = self.code.regs.unit(halves, i);
            is_again |= self.converted.contains(unit) && !self.joined.insert(unit);
        }
        if !is_again {
            return self.plain(Ptx::Join32, PtxType::B32, &[Operand::Regs(halves)]);
        }
        let (to, from) = (PtxType::U32, PtxType::U16);
        let words = self.result_of(Ptx::Cvt, to, from, Modifier::None, &[Operand::Regs(halves)]);
        let (low, high) = (every_second(words, 0), every_second(words, 1));
        self.plain(Ptx::Prmt, PtxType::B32, &[low, high, Operand::Imm(0x5410)])
    }

    fn attrs(&self) -> &[Attr] {
        &self.func.dfg.insts[self.root].attrs
    }

    /// Bytes of what the pointer that `value` is points to.
    fn pointee_bytes(&self, value: Value) -> u64 {
        let pointee = self.func.dfg.ty(value).elem.pointee();
        u64::from(pointee.map_or(1, |s| s.bytes()))
    }

    fn root_arg_elem(&self, index: usize) -> Elem {
        let value = self.func.dfg.insts[self.root].args[index];
        self.func.dfg.ty(value).elem
    }
}

/// The sign of a word.
const SIGN: u64 = 1 << 31;

/// Whether ptxas takes a number where an instruction has an operand of the type.
fn takes_numbers(ty: PtxType) -> bool {
    !matches!(
        ty,
        PtxType::F16
            | PtxType::F16x2
            | PtxType::Bf16
            | PtxType::Bf16x2
            | PtxType::S16x2
            | PtxType::U16x2
            | PtxType::F32x2
    )
}

/// Attributes without the trait's name in the way.
struct AttrsOf<'a>(&'a [Attr]);

impl Attrs for AttrsOf<'_> {
    fn attrs(&self) -> &[Attr] {
        self.0
    }
}

fn every_second(arg: Operand, start: u16) -> Operand {
    match arg {
        // One register stands for all.
        Operand::Regs(view) if view.count > 1 => Operand::Regs(view.every_second(start)),
        other => other,
    }
}

/// PTX's type of two 8-bit floats.
fn pair_of_eight(kind: Kind) -> PtxType {
    match kind {
        Kind::E4m3 => PtxType::E4m3x2,
        _ => PtxType::E5m2x2,
    }
}

impl rules::Context for Selector<'_> {
    fn use_value(&mut self, value: Value) -> Operand {
        Selector::use_value(self, value)
    }

    fn imm(&mut self, bits: u64) -> Operand {
        Operand::Imm(bits)
    }

    fn def(&mut self, value: Value) -> Option<InstView> {
        let inst = self.func.dfg.def_inst(value)?;
        Some(self.view_inst(inst))
    }

    fn uniform(&mut self, value: Value) -> Option<()> {
        match self.values[value]? {
            Operand::Regs(view) => view.is_uniform().then_some(()),
            _ => Some(()),
        }
    }

    fn one_register(&mut self, value: Value) -> Operand {
        let arg = Selector::use_value(self, value);
        Operand::Regs(self.in_register(arg, RegClass::P).part(0, 1))
    }

    fn has_sm(&mut self, sm: u32) -> bool {
        sm <= self.target.sm
    }

    fn op1(&mut self, op: &Ptx, ty: &PtxType, a: Operand) -> Operand {
        match (op, ty, a) {
            (Ptx::Not, PtxType::Pred, Operand::Imm(truth)) => Operand::Imm(truth ^ 1),
            _ => self.plain(*op, *ty, &[a]),
        }
    }

    // No truth value is combined with a number: of many such, whose registers serve again, `ptxas` 13.0 lost a masked store.
    fn op2(&mut self, op: &Ptx, ty: &PtxType, a: Operand, b: Operand) -> Operand {
        match (op, ty, a, b) {
            (Ptx::And, PtxType::Pred, x, Operand::Imm(1))
            | (Ptx::And, PtxType::Pred, Operand::Imm(1), x) => x,
            (Ptx::Or, PtxType::Pred, x, Operand::Imm(0))
            | (Ptx::Or, PtxType::Pred, Operand::Imm(0), x) => x,
            (Ptx::And, PtxType::Pred, zero @ Operand::Imm(0), _)
            | (Ptx::And, PtxType::Pred, _, zero @ Operand::Imm(0)) => zero,
            (Ptx::Or, PtxType::Pred, one @ Operand::Imm(1), _)
            | (Ptx::Or, PtxType::Pred, _, one @ Operand::Imm(1)) => one,
            _ => self.plain(*op, *ty, &[a, b]),
        }
    }

    fn op3(&mut self, op: &Ptx, ty: &PtxType, a: Operand, b: Operand, c: Operand) -> Operand {
        self.plain(*op, *ty, &[a, b, c])
    }

    fn op4(
        &mut self,
        op: &Ptx,
        ty: &PtxType,
        a: Operand,
        b: Operand,
        c: Operand,
        d: Operand,
    ) -> Operand {
        self.plain(*op, *ty, &[a, b, c, d])
    }

    fn cvt(&mut self, op: &Ptx, ty: &PtxType, from: &PtxType, a: Operand) -> Operand {
        match (op, ty, from, a) {
            (Ptx::Cvt, PtxType::U32, PtxType::U16, Operand::Imm(bits)) => {
                Operand::Imm(bits & 0xffff)
            }
            _ => self.result_of(*op, *ty, *from, Modifier::None, &[a]),
        }
    }

    fn cvt2(&mut self, op: &Ptx, ty: &PtxType, from: &PtxType, a: Operand, b: Operand) -> Operand {
        match (op, ty, from, a, b) {
            (Ptx::MulWide, PtxType::S64, PtxType::S32, Operand::Imm(a), Operand::Imm(b)) => {
                let wide = |bits: u64| i64::from(bits as u32 as i32);
                Operand::Imm((wide(a) * wide(b)) as u64)
            }
            _ => self.result_of(*op, *ty, *from, Modifier::None, &[a, b]),
        }
    }

    fn setp(&mut self, op: &Ptx, cmp: &Cmp, ty: &PtxType, a: Operand, b: Operand) -> Operand {
        self.result_of(*op, *ty, *ty, Modifier::Cmp(*cmp), &[a, b])
    }

    fn halves(&mut self, arg: Operand) -> Operand {
        match arg {
            Operand::Imm(bits) => Operand::Imm(bits & 0xffff),
            other => self.plain(Ptx::Split32, PtxType::B32, &[other]),
        }
    }

    fn pair(&mut self, arg: Operand) -> Operand {
        match arg {
            Operand::Imm(bits) => Operand::Imm(bits & 0xffff | bits << 16 & 0xffff_0000),
            // One register that stands for all.
            Operand::Regs(view) if view.count == 1 => {
                self.plain(Ptx::Join32, PtxType::B32, &[Operand::Regs(view.repeat(2))])
            }
            Operand::Regs(view) => self.words_of(view),
            other => self.plain(Ptx::Join32, PtxType::B32, &[other]),
        }
    }

    fn even(&mut self, arg: Operand) -> Operand {
        every_second(arg, 0)
    }

    fn odd(&mut self, arg: Operand) -> Operand {
        every_second(arg, 1)
    }

    fn interleave(&mut self, a: Operand, b: Operand) -> Operand {
        let a = self.in_register(a, RegClass::W);
        let b = self.in_register(b, RegClass::W);
        Operand::Regs(self.alternating(a, b))
    }

    fn joined(&mut self, low: Operand, high: Operand) -> Operand {
        if let (Operand::Imm(low), Operand::Imm(high)) = (low, high) {
            return Operand::Imm(low & 0xffff | high << 16 & 0xffff_0000);
        }
        let low = self.in_register(low, RegClass::H);
        let high = self.in_register(high, RegClass::H);
        let both = self.alternating(low, high);
        self.words_of(both)
    }

    fn packs_two(&mut self) -> bool {
        let data = &self.func.dfg.insts[self.root];
        let count = data
            .results
            .first()
            .map_or(1, |&v| self.func.dfg.ty(v).count);
        // Of operands that are one register each there is one result.
        let differ = data.args.iter().any(
            |&arg| matches!(self.values[arg], Some(Operand::Regs(view)) if !view.is_uniform()),
        );
        count.is_multiple_of(2) && differ && self.target.packs_f32()
    }

    fn twos(&mut self, arg: Operand) -> Operand {
        match arg {
            Operand::Imm(bits) => Operand::Imm(bits & 0xffff_ffff | bits << 32),
            // One register that stands for all.
            Operand::Regs(view) if view.count == 1 => {
                self.plain(Ptx::Join64, PtxType::B64, &[Operand::Regs(view.repeat(2))])
            }
            other => self.plain(Ptx::Join64, PtxType::B64, &[other]),
        }
    }

    fn split64(&mut self, arg: Operand) -> Operand {
        self.plain(Ptx::Split64, PtxType::B64, &[arg])
    }

    fn join64(&mut self, arg: Operand) -> Operand {
        self.plain(Ptx::Join64, PtxType::B64, &[arg])
    }

    fn signed(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::I1 => PtxType::Pred,
            Kind::I32 | Kind::F32 => PtxType::S32,
            Kind::I64 | Kind::F64 => PtxType::S64,
            _ => PtxType::S16,
        }
    }

    fn unsigned(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::I1 => PtxType::Pred,
            Kind::I32 | Kind::F32 => PtxType::U32,
            Kind::I64 | Kind::F64 => PtxType::U64,
            _ => PtxType::U16,
        }
    }

    fn bits(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::I1 => PtxType::Pred,
            Kind::I8 | Kind::I16 | Kind::F16 | Kind::Bf16 | Kind::E4m3 | Kind::E5m2 => PtxType::B16,
            Kind::I16x2 | Kind::F16x2 | Kind::Bf16x2 | Kind::I32 | Kind::F32 => PtxType::B32,
            Kind::I64 | Kind::F64 => PtxType::B64,
        }
    }

    fn one_bits(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::I16x2 | Kind::F16x2 | Kind::Bf16x2 => PtxType::B16,
            other => self.bits(other),
        }
    }

    fn float(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::F16 => PtxType::F16,
            Kind::F16x2 => PtxType::F16x2,
            Kind::Bf16 => PtxType::Bf16,
            Kind::Bf16x2 => PtxType::Bf16x2,
            Kind::F64 => PtxType::F64,
            _ => PtxType::F32,
        }
    }

    fn one_float(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::F16x2 => PtxType::F16,
            Kind::Bf16x2 => PtxType::Bf16,
            other => self.float(other),
        }
    }

    fn exact_signed(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::I1 => PtxType::S32,
            Kind::I8 => PtxType::S8,
            other => self.signed(other),
        }
    }

    fn exact_unsigned(&mut self, kind: &Kind) -> PtxType {
        match kind {
            Kind::I1 => PtxType::U32,
            Kind::I8 => PtxType::U8,
            other => self.unsigned(other),
        }
    }

    fn wide_float(&mut self, kind: &Kind) -> Option<()> {
        matches!(kind, Kind::F32 | Kind::F64).then_some(())
    }

    fn paired(&mut self, kind: &Kind) -> Option<()> {
        matches!(kind, Kind::I16x2 | Kind::F16x2 | Kind::Bf16x2).then_some(())
    }

    fn native(&mut self, kind: &Kind) -> Option<Kind> {
        matches!(kind, Kind::F16 | Kind::F16x2 | Kind::F32 | Kind::F64).then_some(*kind)
    }

    fn bf16(&mut self, kind: &Kind) -> Option<Kind> {
        matches!(kind, Kind::Bf16 | Kind::Bf16x2).then_some(*kind)
    }

    fn not_bf16(&mut self, kind: &Kind) -> Option<Kind> {
        (!matches!(kind, Kind::Bf16 | Kind::Bf16x2)).then_some(*kind)
    }

    fn not_i8(&mut self, kind: &Kind) -> Option<Kind> {
        (*kind != Kind::I8).then_some(*kind)
    }

    fn eight(&mut self, kind: &Kind) -> Option<Kind> {
        matches!(kind, Kind::E4m3 | Kind::E5m2).then_some(*kind)
    }

    fn eight_from_single(&mut self, to: &Kind, a: Operand) -> Operand {
        let ty = pair_of_eight(*to);
        let cvt = |this: &mut Self, high: Operand, low: Operand| {
            let sources = [high, low];
            this.result_of(Ptx::CvtRnF8, ty, PtxType::F32, Modifier::None, &sources)
        };
        match a {
            Operand::Regs(view) if view.count > 1 => {
                let low = cvt(self, every_second(a, 1), every_second(a, 0));
                let high = self.plain(Ptx::Shr, PtxType::U16, &[low, Operand::Imm(8)]);
                self.interleave_halves(low, high)
            }
            one => cvt(self, Operand::Imm(0), one),
        }
    }

    fn half_from_eight(&mut self, from: &Kind, a: Operand) -> Operand {
        let ty = pair_of_eight(*from);
        let both = self.close(a, a);
        let result = self.result_of(Ptx::CvtF8, PtxType::F16x2, ty, Modifier::None, &[both]);
        // The lower of the two.
        every_second(self.plain(Ptx::Split32, PtxType::B32, &[result]), 0)
    }

    fn spread_bytes(&mut self, value: Value) -> Operand {
        Selector::spread_bytes(self, value)
    }

    fn close_bytes(&mut self, value: Value) -> Operand {
        Selector::close_bytes(self, value)
    }

    fn pair_type(&mut self, kind: &Kind) -> PtxType {
        pair_of_eight(*kind)
    }

    fn spare_bits(&mut self, kind: &Kind) -> Operand {
        Operand::Imm(if *kind == Kind::I8 { 24 } else { 16 })
    }

    fn half(&mut self, kind: &Kind) -> Option<Kind> {
        matches!(kind, Kind::F16 | Kind::F16x2 | Kind::Bf16 | Kind::Bf16x2).then_some(*kind)
    }

    fn narrow_int(&mut self, kind: &Kind) -> Option<Kind> {
        matches!(kind, Kind::I8 | Kind::I16 | Kind::I16x2).then_some(*kind)
    }

    fn wide_int(&mut self, ty: &PtxType) -> Option<PtxType> {
        (32 <= ty.bits()).then_some(*ty)
    }

    fn one_half(&mut self, kind: &Kind) -> Option<()> {
        (self.bits(kind) == PtxType::B16).then_some(())
    }

    fn two_words(&mut self, kind: &Kind) -> Option<()> {
        (self.bits(kind) == PtxType::B64).then_some(())
    }

    fn exponent(&mut self, value: Value) -> Option<u64> {
        let dfg = &self.func.dfg;
        let bits = number(dfg, value)?;
        let exponent = u64::from(bits.trailing_zeros());
        let is_positive = exponent + 1 < u64::from(dfg.ty(value).elem.bits());
        (bits.is_power_of_two() && 0 < exponent && is_positive).then_some(exponent)
    }

    fn bits_but(&mut self, kind: &Kind, n: u64) -> Operand {
        Operand::Imm(u64::from(self.one_bits(kind).bits()) - n)
    }

    fn upper_bits(&mut self, kind: &Kind, n: u64) -> Operand {
        let width = self.one_bits(kind).bits();
        Operand::Imm(u64::MAX >> (64 - width) & u64::MAX << n)
    }

    fn shift_of_halves(&mut self, value: Value) -> Option<u64> {
        number(&self.func.dfg, value).filter(|amount| (1..16).contains(amount))
    }

    fn upper_of_halves(&mut self, n: u64) -> Operand {
        Operand::Imm((0xffff << n & 0xffff) * 0x1_0001)
    }

    fn lower_of_halves(&mut self, n: u64) -> Operand {
        Operand::Imm((0xffff >> n) * 0x1_0001)
    }

    fn shift_to(&mut self, amount: Value, mask: Value) -> Option<u64> {
        let (n, mask) = (self.shift_of_halves(amount)?, number(&self.func.dfg, mask)?);
        (mask & !(0xffff << n) == 0).then_some(n)
    }

    fn shift_from(&mut self, amount: Value, mask: Value) -> Option<u64> {
        let (n, mask) = (self.shift_of_halves(amount)?, number(&self.func.dfg, mask)?);
        (mask & !(0xffff >> n) == 0).then_some(n)
    }

    fn are_numbers(&mut self, a: Value, b: Value) -> bool {
        let dfg = &self.func.dfg;
        number(dfg, a).is_some() && number(dfg, b).is_some()
    }

    fn is_number(&mut self, value: Value, bits: u64) -> bool {
        number(&self.func.dfg, value) == Some(bits)
    }

    fn is_i32(&mut self, value: Value) -> bool {
        self.func.dfg.ty(value).elem == Elem::I32
    }

    fn elem_bytes(&mut self) -> u64 {
        self.pointee_bytes(self.func.dfg.insts[self.root].args[0])
    }

    fn elem_shift(&mut self) -> u64 {
        u64::from(self.elem_bytes().trailing_zeros())
    }

    fn bf16_number(&mut self, of: &Kind, bits: u64) -> Operand {
        match of {
            Kind::Bf16x2 => Operand::Imm(bits << 16 | bits),
            _ => Operand::Imm(bits),
        }
    }

    fn sign_mask(&mut self, of: &Kind) -> Operand {
        Operand::Imm(match of {
            Kind::F16 | Kind::Bf16 => 0x8000,
            Kind::F16x2 | Kind::Bf16x2 => 0x8000_8000,
            Kind::F64 => 1 << 63,
            Kind::E4m3 | Kind::E5m2 => 0x80,
            _ => 1 << 31,
        })
    }

    fn magnitude_mask(&mut self, of: &Kind) -> Operand {
        Operand::Imm(match of {
            Kind::F16 | Kind::Bf16 => 0x7fff,
            Kind::F16x2 | Kind::Bf16x2 => 0x7fff_7fff,
            Kind::F64 => i64::MAX as u64,
            Kind::E4m3 | Kind::E5m2 => 0x7f,
            _ => 0x7fff_ffff,
        })
    }

    fn only_computed_with(&mut self) -> bool {
        let results = &self.func.dfg.insts[self.root].results;
        results.iter().all(|&r| !self.read_as_bits.contains(r))
    }

    fn propagates(&mut self) -> bool {
        AttrsOf(self.attrs()).nan() == Some(&NanRule::Propagate)
    }

    fn to_zero(&mut self) -> bool {
        AttrsOf(self.attrs()).round() == Some(&Rounding::Zero)
    }

    fn root_float(&mut self) -> PtxType {
        match self.root_arg_elem(0) {
            Elem::F64 => PtxType::F64,
            _ => PtxType::F32,
        }
    }

    fn canonical_nan(&mut self) -> Operand {
        match self.root_arg_elem(0) {
            Elem::F64 => Operand::Imm(i64::MAX as u64),
            _ => Operand::Imm(0x7fff_ffff),
        }
    }

    fn root_cmp(&mut self) -> Cmp {
        let attrs = AttrsOf(self.attrs());
        if let Some(pred) = attrs.ipred() {
            if let Some(equality) = self.equality(self.root) {
                return equality;
            }
            return match pred {
                IntPred::Eq => Cmp::Eq,
                IntPred::Ne => Cmp::Ne,
                IntPred::Slt => Cmp::Lt,
                IntPred::Sle => Cmp::Le,
                IntPred::Sgt => Cmp::Gt,
                IntPred::Sge => Cmp::Ge,
                IntPred::Ult => Cmp::Lo,
                IntPred::Ule => Cmp::Ls,
                IntPred::Ugt => Cmp::Hi,
                IntPred::Uge => Cmp::Hs,
            };
        }
        match attrs.fpred().unwrap_or(&FloatPred::Uno) {
            FloatPred::Oeq => Cmp::Eq,
            FloatPred::One => Cmp::Ne,
            FloatPred::Olt => Cmp::Lt,
            FloatPred::Ole => Cmp::Le,
            FloatPred::Ogt => Cmp::Gt,
            FloatPred::Oge => Cmp::Ge,
            FloatPred::Ueq => Cmp::Equ,
            FloatPred::Une => Cmp::Neu,
            FloatPred::Ult => Cmp::Ltu,
            FloatPred::Ule => Cmp::Leu,
            FloatPred::Ugt => Cmp::Gtu,
            FloatPred::Uge => Cmp::Geu,
            FloatPred::Ord => Cmp::Num,
            FloatPred::Uno => Cmp::Nan,
        }
    }

    fn flipped_cmp(&mut self) -> Cmp {
        match self.root_cmp() {
            Cmp::Lt => Cmp::Lo,
            Cmp::Le => Cmp::Ls,
            Cmp::Gt => Cmp::Hi,
            Cmp::Ge => Cmp::Hs,
            other => other,
        }
    }

    fn flip_sign(&mut self, arg: Operand) -> Operand {
        match arg {
            Operand::Imm(bits) => Operand::Imm((bits ^ SIGN) & 0xffff_ffff),
            _ => self.plain(Ptx::Xor, PtxType::B32, &[arg, Operand::Imm(SIGN)]),
        }
    }

    fn taken_for_float(&mut self, a: Value, b: Value) -> bool {
        let ordered_unsigned = matches!(self.root_cmp(), Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs);
        let is_recast = |value: Value| match self.values[value] {
            Some(Operand::Regs(view)) => {
                let units = (0..view.count).map(|i| self.code.regs.unit(view, i));
                units.into_iter().any(|unit| self.recast.contains(unit))
            }
            _ => false,
        };
        !ordered_unsigned && [a, b].into_iter().any(is_recast)
    }

    fn cmp_is_signed(&mut self) -> bool {
        matches!(
            AttrsOf(self.attrs()).ipred(),
            Some(IntPred::Slt | IntPred::Sle | IntPred::Sgt | IntPred::Sge)
        )
    }

    fn least_signed(&mut self, of: &Kind) -> Operand {
        Operand::Imm(if *of == Kind::I8 { -128_i64 } else { -32768 } as u64)
    }

    fn most_signed(&mut self, of: &Kind) -> Operand {
        Operand::Imm(if *of == Kind::I8 { 127 } else { 32767 })
    }

    fn most_unsigned(&mut self, of: &Kind) -> Operand {
        Operand::Imm(if *of == Kind::I8 { 255 } else { 65535 })
    }

    fn lane_mask(&mut self) -> Operand {
        let attrs = AttrsOf(self.attrs());
        let bits = attrs.mask().or(attrs.delta());
        Operand::Imm(u64::from(*bits.unwrap_or(&0)))
    }

    fn op2_lanes(&mut self, op: &Ptx, a: Operand, b: Operand) -> Operand {
        // The last lane that is read; going up it is the first.
        let bound = if matches!(op, Ptx::ShflUp) { 0 } else { 31 };
        self.plain(
            *op,
            PtxType::B32,
            &[a, b, Operand::Imm(bound), Operand::Imm(ALL_LANES)],
        )
    }

    fn redux(&mut self, a: Operand) -> Operand {
        let op = *AttrsOf(self.attrs()).redop().unwrap_or(&RedOp::Add);
        let ty = match op {
            RedOp::Add | RedOp::Smin | RedOp::Smax => PtxType::S32,
            RedOp::Umin | RedOp::Umax => PtxType::U32,
            RedOp::And | RedOp::Or | RedOp::Xor => PtxType::B32,
        };
        self.result_of(
            Ptx::Redux,
            ty,
            ty,
            Modifier::Red(op),
            &[a, Operand::Imm(ALL_LANES)],
        )
    }

    fn shuffle_tree(&mut self, a: Operand) -> Operand {
        let op = *AttrsOf(self.attrs()).redop().unwrap_or(&RedOp::Add);
        let (op, ty) = match op {
            RedOp::Add => (Ptx::Add, PtxType::S32),
            RedOp::Smin => (Ptx::Min, PtxType::S32),
            RedOp::Smax => (Ptx::Max, PtxType::S32),
            RedOp::Umin => (Ptx::Min, PtxType::U32),
            RedOp::Umax => (Ptx::Max, PtxType::U32),
            RedOp::And => (Ptx::And, PtxType::B32),
            RedOp::Or => (Ptx::Or, PtxType::B32),
            RedOp::Xor => (Ptx::Xor, PtxType::B32),
        };
        let mut sum = a;
        for lane_bit in [16, 8, 4, 2, 1] {
            let other = self.op2_lanes(&Ptx::ShflBfly, sum, Operand::Imm(lane_bit));
            sum = self.plain(op, ty, &[sum, other]);
        }
        sum
    }
}

/// The bits of a value that is a number, or one for each of its elements.
fn number(dfg: &Dfg<Thread>, value: Value) -> Option<u64> {
    dfg.insts[dfg.def_inst(value)?].value().copied()
}

impl Selector<'_> {
    /// The registers of two results in turns, 16 bits each.
    fn interleave_halves(&mut self, a: Operand, b: Operand) -> Operand {
        let a = self.in_register(a, RegClass::H);
        let b = self.in_register(b, RegClass::H);
        Operand::Regs(self.alternating(a, b))
    }

    /// The units of two views in turns.
    pub(super) fn alternating(&mut self, a: RegView, b: RegView) -> RegView {
        let regs = &self.code.regs;
        let units: smallvec::SmallVec<[_; 16]> = (0..a.count.max(b.count))
            .flat_map(|i| [a, b].map(|view| regs.unit(view, if view.count == 1 { 0 } else { i })))
            .collect();
        self.code.regs.view_of(&units)
    }
}
