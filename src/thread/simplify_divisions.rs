//! Remainders from quotients, and quotients by constants from products.
//!
//! ```text
//! r = srem a, b                        q = sdiv a, b
//! q = sdiv a, b                 =>     r = isub a, (imul q, b)
//!
//!                                      h = umulhi a, m
//! q = udiv a, 113               =>     q = ushr h, k
//!
//!                                      h = iadd (smulhi a, m), a
//! q = sdiv a, 113               =>     q = iadd (sshr h, k), (ushr a, 31)
//! ```
//!
//! - **Remainders** where there is the quotient of the same numbers in the block, and those by other constants (below): from quotients.
//!   A division by a number that is known at run time alone takes dozens of instructions, and the assembler does not see that
//!   both are one. Kernels whose programs are numbered in groups begin with them, and nothing can be fetched before. (An H200: a
//!   product of 4096x4096x512 without any division is 1.03 times as fast.)
//! - **By powers of two** without a sign, or where the dividend is known not to be negative (`natural`): a shift, or a mask. With a sign
//!   the quotient stays; the assembler takes three instructions, two of them for what rounds to zero.
//! - **By other constants above one**, of 32 and 64 bits: the high half of a product, shifted (`Product`). Of 32 bits with a sign that is three or
//!   four machine instructions, two where the dividend is natural, and a remainder is one more; of 64 bits 12 to 16, 7 to 9, and three more.
//!   ptxas 13.0 takes seven for a reciprocal at run time, and then eleven for each signed quotient of 32 bits by 113 and nine for each
//!   remainder. Divisors below zero are left to it.
//!
//! Block programs keep their remainders, by which passes know that numbers are not negative. Numbers are exact modulo 2 to the
//! width, and what a division by zero gives is as little known before as after. What is said of one dividend with `natural` is said
//! for its division alone: others do not take its quotient. Time is linear.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::ir::attrs::{Attrs, Flag, make};
use crate::ir::dfg::{InstData, ValueList};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::maker::Maker;
use crate::ir::ops::ThreadOp;
use crate::ir::types::ThreadType;

/// Takes divisions apart; gives how many.
pub fn simplify_divisions(func: &mut ThreadFunction) -> usize {
    let blocks = func.order.blocks.clone();
    blocks.into_iter().map(|block| in_block(func, block)).sum()
}

fn in_block(func: &mut ThreadFunction, block: Block) -> usize {
    let list = func.order.insts(block).to_vec();
    let mut quotients = Quotients::default();
    let mut has_divisions = false;
    for &inst in &list {
        let Some(division) = Division::of(func, inst) else {
            continue;
        };
        has_divisions = true;
        if !division.is_remainder() {
            quotients.entry(division.key()).or_insert(inst);
        }
    }
    if !has_divisions {
        return 0;
    }
    let mut work = Work {
        maker: Maker::new(func),
        placed: EntitySet::new(),
        quotients,
        count: 0,
    };
    for inst in list {
        work.place(inst);
    }
    let Work { maker, count, .. } = work;
    let made = maker.made;
    if count > 0 {
        func.order.replace(block, made);
    }
    count
}

/// Quotients of a block: by op, dividend, divisor, and whether the dividend is said to be natural.
type Quotients = FxHashMap<(ThreadOp, Value, By, bool), Inst>;

/// By what is divided.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    /// A number above one; where the division has a sign, it would not be negative with one.
    Number(u64),
    Value(Value),
}

/// A division.
#[derive(Clone)]
struct Division {
    op: ThreadOp,
    operands: ValueList,
    by: By,
    ty: ThreadType,
    is_natural: bool,
}

impl Division {
    fn of(func: &ThreadFunction, inst: Inst) -> Option<Division> {
        let data = &func.dfg.insts[inst];
        let has_sign = match data.op {
            ThreadOp::Sdiv | ThreadOp::Srem => true,
            ThreadOp::Udiv | ThreadOp::Urem => false,
            _ => return None,
        };
        let &[_, b] = data.args.as_slice() else {
            return None;
        };
        let ty = func.dfg.ty(b);
        let is_negative = |by: u64| has_sign && by >> (ty.elem.bits() - 1) != 0;
        let number = constant(func, b).filter(|&by| by > 1 && !is_negative(by));
        Some(Division {
            op: data.op,
            operands: data.args.clone(),
            ty,
            by: number.map_or(By::Value(b), By::Number),
            is_natural: data.natural().is_some(),
        })
    }

    fn is_remainder(&self) -> bool {
        matches!(self.op, ThreadOp::Srem | ThreadOp::Urem)
    }

    fn has_sign(&self) -> bool {
        matches!(self.op, ThreadOp::Sdiv | ThreadOp::Srem)
    }

    /// Whether no dividend counts as negative.
    fn has_no_negative(&self) -> bool {
        self.is_natural || !self.has_sign()
    }

    /// By what its quotient is known.
    fn key(&self) -> (ThreadOp, Value, By, bool) {
        let op = self.quotient_op();
        (op, self.operands[0], self.by, self.is_natural)
    }

    /// The divisor, if it is a number whose quotients are products.
    fn product_divisor(&self) -> Option<u64> {
        let is_multiplied = matches!(self.ty.elem.bits(), 32 | 64);
        match self.by {
            By::Number(by) if is_multiplied && !by.is_power_of_two() => Some(by),
            _ => None,
        }
    }

    /// The op of the quotient.
    fn quotient_op(&self) -> ThreadOp {
        match self.has_sign() {
            true => ThreadOp::Sdiv,
            false => ThreadOp::Udiv,
        }
    }

    /// The bits of dividends: all, or all but that of the sign.
    fn dividend_bits(&self) -> u32 {
        self.ty.elem.bits() - u32::from(self.has_sign() || self.is_natural)
    }
}

fn constant(func: &ThreadFunction, mut value: Value) -> Option<u64> {
    loop {
        let data = &func.dfg.insts[func.dfg.def_inst(value)?];
        match data.op {
            ThreadOp::Const => return data.value().map(|&v| v & func.dfg.ty(value).elem.mask()),
            ThreadOp::Splat => value = data.args[0],
            _ => return None,
        }
    }
}

/// `a / by` for `a` of `w` bits as `a factor / 2^(w + shift)`, rounded down.
///
/// With `factor by = 2^(w + shift) + e` and `0 < e`, `a factor / 2^(w + shift)` is above `a / by` by `a e / (by 2^(w + shift))`. Where
/// `a e < 2^(w + shift)` that is less than `1 / by`, so that both have the same whole part. Of `-a`, what is rounded down is one below the
/// quotient that is rounded to zero, also where `a e = 2^(w + shift)` (T. Granlund and P. Montgomery, "Division by invariant integers using
/// multiplication", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Product {
    /// Up to `w + 1` bits.
    factor: u128,
    shift: u32,
}

impl Product {
    /// For dividends below `2^dividend_bits`, and down to `-2^dividend_bits`, where `w` is `bits`, 32 or 64. `by` is above one and no power of two.
    /// The factor has more than `bits` bits only if `dividend_bits` are `bits`.
    fn of(by: u64, bits: u32, dividend_bits: u32) -> Product {
        let by = u128::from(by);
        // The power of two may be 2^128. As `by` does not divide it, the number before has the same quotient.
        let product = |shift: u32| Product {
            factor: (u128::MAX >> (u128::BITS - bits - shift)) / by + 1,
            shift,
        };
        // With a shift by as many bits as `by` has, `e <= by < 2^shift`: enough for all dividends.
        let enough = u128::BITS - by.leading_zeros();
        let is_exact = |it: &Product| {
            let e = it.factor * by - (1 << (bits + it.shift));
            e <= 1 << (bits + it.shift - dividend_bits)
        };
        let mut all = (0..enough).map(product);
        all.find(is_exact).unwrap_or_else(|| product(enough))
    }
}

/// A block on its way.
struct Work<'a> {
    /// Makes the new list.
    maker: Maker<'a, Thread>,
    /// What of the old list is in the new one; quotients come before their places.
    placed: EntitySet<Inst>,
    quotients: Quotients,
    count: usize,
}

impl Work<'_> {
    /// Puts an instruction at the end, behind what it becomes a part of.
    fn place(&mut self, inst: Inst) {
        if !self.placed.insert(inst) {
            return;
        }
        if let Some(division) = Division::of(self.maker.func, inst) {
            // Quotients of other lines may come in front of it.
            let around = self.maker.loc;
            self.maker.loc = self.maker.func.dfg.insts[inst].loc;
            let becomes = self.becomes(&division);
            self.maker.loc = around;
            if let Some((op, args)) = becomes {
                let data = &mut self.maker.func.dfg.insts[inst];
                data.op = op;
                data.attrs.clear();
                data.args = args;
                self.count += 1;
            }
        }
        self.maker.made.push(inst);
    }

    /// What a division becomes, if it does.
    fn becomes(&mut self, division: &Division) -> Option<(ThreadOp, ValueList)> {
        let a = division.operands[0];
        if let By::Number(by) = division.by
            && by.is_power_of_two()
            && division.has_no_negative()
        {
            let (op, number) = match division.is_remainder() {
                true => (ThreadOp::And, by - 1),
                false => (ThreadOp::Ushr, u64::from(by.ilog2())),
            };
            let number = self.number(number, division.ty);
            return Some((op, ValueList::from_slice(&[a, number])));
        }
        let known = division.product_divisor();
        if division.is_remainder() {
            let quotient = match self.quotient(division) {
                Some(quotient) => quotient,
                None => known.map(|_| self.new_quotient(division))?,
            };
            let whole = self
                .maker
                .op(ThreadOp::Imul, &[quotient, division.operands[1]]);
            return Some((ThreadOp::Isub, ValueList::from_slice(&[a, whole])));
        }
        known.map(|by| self.quotient_by(division, by))
    }

    /// A quotient of the block that serves a remainder; if it comes later, it is put here.
    fn quotient(&mut self, remainder: &Division) -> Option<Value> {
        // Of divisors that are known at run time alone only single numbers were measured.
        if remainder.ty.count > 1 && matches!(remainder.by, By::Value(_)) {
            return None;
        }
        let natural = remainder.key();
        let plain = (natural.0, natural.1, natural.2, false);
        let inst = [natural, plain]
            .iter()
            .find_map(|key| self.quotients.get(key).copied())?;
        if !self.placed.contains(inst) {
            // Its own divisor may be the same number of an instruction that comes later.
            self.maker.func.dfg.insts[inst].args = remainder.operands.clone();
        }
        self.place(inst);
        Some(self.maker.func.dfg.insts[inst].results[0])
    }

    fn number(&mut self, number: u64, ty: ThreadType) -> Value {
        self.maker.number(number as i64, ty)
    }

    /// The quotient for a remainder that has none, kept for others.
    fn new_quotient(&mut self, remainder: &Division) -> Value {
        let attrs = remainder.is_natural.then(|| make::natural(Flag));
        let mut data = InstData::new(remainder.quotient_op(), &remainder.operands);
        data.attrs.extend(attrs);
        data.loc = self.maker.loc;
        let dfg = &mut self.maker.func.dfg;
        let inst = dfg.make_inst(data, &[remainder.ty]);
        let quotient = dfg.insts[inst].results[0];
        self.quotients.insert(remainder.key(), inst);
        self.place(inst);
        quotient
    }

    /// The quotient by a constant that is no power of two.
    fn quotient_by(&mut self, division: &Division, by: u64) -> (ThreadOp, ValueList) {
        let bits = division.ty.elem.bits();
        let Product { factor, shift } = Product::of(by, bits, division.dividend_bits());
        let a = division.operands[0];
        let low = self.number(factor as u64, division.ty);
        if division.has_no_negative() {
            let high = (ThreadOp::Umulhi, ValueList::from_slice(&[a, low]));
            if factor >> bits == 0 {
                return self.shifted(ThreadOp::Ushr, high, shift);
            }
            // Of `a + high` half, as the whole may not fit.
            let high = self.maker.op(high.0, &high.1);
            let rest = (ThreadOp::Isub, ValueList::from_slice(&[a, high]));
            let (op, args) = self.shifted(ThreadOp::Ushr, rest, 1);
            let half = self.maker.op(op, &args);
            let half = (ThreadOp::Iadd, ValueList::from_slice(&[half, high]));
            return self.shifted(ThreadOp::Ushr, half, shift - 1);
        }
        let mut high = (ThreadOp::Smulhi, ValueList::from_slice(&[a, low]));
        // As a number with a sign the factor is less by 2^bits.
        if factor >> (bits - 1) != 0 {
            let less = self.maker.op(high.0, &high.1);
            high = (ThreadOp::Iadd, ValueList::from_slice(&[less, a]));
        }
        let (op, args) = self.shifted(ThreadOp::Sshr, high, shift);
        let down = self.maker.op(op, &args);
        let sign = self.number(u64::from(bits - 1), division.ty);
        let is_negative = self.maker.op(ThreadOp::Ushr, &[a, sign]);
        (ThreadOp::Iadd, ValueList::from_slice(&[down, is_negative]))
    }

    /// The value of an op to the right by so many bits: the op itself if there are none.
    fn shifted(
        &mut self,
        op: ThreadOp,
        (of, args): (ThreadOp, ValueList),
        by: u32,
    ) -> (ThreadOp, ValueList) {
        if by == 0 {
            return (of, args);
        }
        let value = self.maker.op(of, &args);
        let ty = self.maker.func.dfg.ty(value);
        let by = self.number(u64::from(by), ty);
        (op, ValueList::from_slice(&[value, by]))
    }
}

#[cfg(test)]
mod tests;
