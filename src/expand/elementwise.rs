//! Expansion of ops that work element by element.
//!
//! Data goes pack by pack. Integers, pointers and masks that are not data go part by part: one thread op
//! for each distinct combination of operand parts, constants kept apart where arithmetic allows.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::attrs::{Attrs, Flag, IntPred, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::{Thread, Tile};
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

use super::regs::{Expanded, Part, Parts, PartsBuilder};
use super::{Expander, Result, bug};

/// Most comparisons of a thread that are each made, though neighbours are proved to come out alike. They take next to no time, and what ptxas makes
/// of a loop hangs on little: with four masks of copies as one a convolution took 64 us instead of 56 on an H200. (Attention by one query has 32.)
const FEW_COMPARISONS: usize = 4;

/// How one combination of parts becomes the part of the result.
struct Combination {
    /// Operands with their constants; a zero constant means the base as it is.
    operands: SmallVec<[(Value, i64); 3]>,
    /// Constant added to the op's result.
    offset: i64,
}

impl Expander<'_> {
    pub(super) fn expand_elementwise(&mut self, inst: Inst, count: usize) -> Result<Expanded> {
        let elem = self.result_type(inst)?.elem;
        self.elementwise(&self.tile.dfg.insts[inst], elem, count)
    }

    /// The result, of elements `elem`, of an op that need not be one of the function.
    pub(super) fn elementwise(
        &mut self,
        data: &InstData<Tile>,
        elem: Elem,
        count: usize,
    ) -> Result<Expanded> {
        let Some(op) = data.op.on_threads() else {
            return bug(format!("{} has no form for threads", data.op));
        };
        let args: Vec<Expanded> = data
            .args
            .iter()
            .map(|&v| self.expanded(v))
            .collect::<Result<_>>()?;
        if args.iter().all(|a| matches!(a, Expanded::Uniform(_))) {
            let singles: Vec<Value> = args
                .iter()
                .map(|a| self.pack_of(a, 1))
                .collect::<Result<_>>()?;
            return Ok(Expanded::Uniform(self.apply(op, data, elem, &singles)?));
        }
        let is_index = elem.is_int() || elem.is_ptr();
        let has_pack = args.iter().any(|a| matches!(a, Expanded::Pack(_)));
        if is_index && !has_pack {
            let mut parts: Vec<Parts> = args
                .iter()
                .map(|a| self.parts_of(a, count))
                .collect::<Result<_>>()?;
            if let (ThreadOp::Icmp, Some(&truth)) = (op, data.results.first())
                && count > FEW_COMPARISONS
            {
                let equal = self.equal_registers(truth, false)?;
                let first: Vec<u16> = (0..count as u16).map(|reg| reg & !equal).collect();
                parts = parts.iter().map(|part| part.select(&first)).collect();
            }
            return Ok(Expanded::Parts(self.part_by_part(op, data, elem, &parts)?));
        }
        let packs: Vec<Value> = args
            .iter()
            .map(|a| self.pack_of(a, count))
            .collect::<Result<_>>()?;
        Ok(Expanded::Pack(self.apply(op, data, elem, &packs)?))
    }

    /// The op on single values or packs.
    fn apply(
        &mut self,
        op: ThreadOp,
        data: &InstData<Tile>,
        elem: Elem,
        args: &[Value],
    ) -> Result<Value> {
        if let Some(folded) = self.fold(op, elem, args) {
            return folded;
        }
        let mut new: InstData<Thread> = InstData::new(op, args);
        new.attrs.extend(data.attrs.iter().cloned());
        self.divide_natural_numbers(data, &mut new);
        let count = args.iter().map(|&a| self.ty(a).count).max().unwrap_or(1);
        self.op(new, &[ThreadType::pack(elem, count)])
    }

    /// Says of a division what is proved of the sign of its operands, and without signs divides as without.
    fn divide_natural_numbers(&self, data: &InstData<Tile>, new: &mut InstData<Thread>) {
        use ThreadOp::{Sdiv, Srem, Udiv, Urem};
        if !matches!(new.op, Sdiv | Srem | Udiv | Urem) {
            return;
        }
        let info = |i: usize| self.axis().info(data.args[i]);
        let is_said = data.natural().is_some();
        let has_sign = matches!(new.op, Sdiv | Srem);
        let dividend = is_said || info(0).is_natural();
        let divisor = (is_said && !has_sign) || info(1).is_natural();
        let is_natural = dividend && (divisor || has_sign);
        if is_natural && divisor {
            new.op = match new.op {
                Sdiv => Udiv,
                Srem => Urem,
                op => op,
            };
        }
        if is_natural && !is_said {
            new.attrs.push(make::natural(Flag));
        }
    }

    /// Sums and products of single integers that constants decide. The rest is the simplifier's, which saw
    /// the program before offsets came apart.
    fn fold(&mut self, op: ThreadOp, elem: Elem, args: &[Value]) -> Option<Result<Value>> {
        let [a, b] = *args else { return None };
        if !elem.is_int() || self.ty(a).count != 1 {
            return None;
        }
        match (op, self.known(a), self.known(b)) {
            (ThreadOp::Iadd, Some(x), Some(y)) => Some(Ok(self.int(elem, x.wrapping_add(y)))),
            (ThreadOp::Imul, Some(x), Some(y)) => Some(Ok(self.int(elem, x.wrapping_mul(y)))),
            (ThreadOp::Iadd, Some(0), _) | (ThreadOp::Imul, Some(1), _) => Some(Ok(b)),
            (ThreadOp::Iadd | ThreadOp::Isub, _, Some(0)) | (ThreadOp::Imul, _, Some(1)) => {
                Some(Ok(a))
            }
            _ => None,
        }
    }

    fn part_by_part(
        &mut self,
        op: ThreadOp,
        data: &InstData<Tile>,
        elem: Elem,
        args: &[Parts],
    ) -> Result<Parts> {
        let count = args[0].regs.len();
        if args.iter().any(|a| a.regs.len() != count) {
            return bug(format!("{}: operands in different layouts", data.op));
        }
        let mut seen: FxHashMap<SmallVec<[Part; 3]>, (Value, i64)> = FxHashMap::default();
        let mut made: FxHashMap<SmallVec<[(Value, i64); 3]>, Value> = FxHashMap::default();
        let mut result = PartsBuilder::default();
        for reg in 0..count {
            let key: SmallVec<[Part; 3]> = args.iter().map(|a| a.regs[reg]).collect();
            let (base, offset) = match seen.get(&key) {
                Some(&known) => known,
                None => {
                    let operands: SmallVec<[(Value, i64); 3]> =
                        args.iter().map(|a| a.at(reg)).collect();
                    let combination = self.combine(op, data, elem, operands);
                    let base = match made.get(&combination.operands) {
                        Some(&value) => value,
                        None => {
                            let mut values = SmallVec::<[Value; 3]>::new();
                            for &(base, offset) in &combination.operands {
                                values.push(self.add_offset(base, offset)?);
                            }
                            let value = self.apply(op, data, elem, &values)?;
                            made.insert(combination.operands, value);
                            value
                        }
                    };
                    seen.insert(key, (base, combination.offset));
                    (base, combination.offset)
                }
            };
            result.push(base, offset);
        }
        Ok(result.finish())
    }

    /// Takes constants out of the operands where the op lets them through.
    fn combine(
        &mut self,
        op: ThreadOp,
        data: &InstData<Tile>,
        elem: Elem,
        operands: SmallVec<[(Value, i64); 3]>,
    ) -> Combination {
        let stay = |operands: SmallVec<[(Value, i64); 3]>| Combination {
            operands,
            offset: 0,
        };
        match (op, &operands[..]) {
            (ThreadOp::Iadd, &[(a, x), (b, y)]) => Combination {
                operands: [(a, 0), (b, 0)].into_iter().collect(),
                offset: Self::wrap(elem, x.wrapping_add(y)),
            },
            (ThreadOp::Isub, &[(a, x), (b, y)]) => Combination {
                operands: [(a, 0), (b, 0)].into_iter().collect(),
                offset: Self::wrap(elem, x.wrapping_sub(y)),
            },
            // (a + x) * c = a * c + x * c, modulo the width.
            (ThreadOp::Imul, &[(a, x), (b, y)])
                if self.known(b).is_some() || self.known(a).is_some() =>
            {
                let factor =
                    |this: &Self, v: Value, o: i64| this.known(v).map(|k| k.wrapping_add(o));
                match (factor(self, a, x), factor(self, b, y)) {
                    (_, Some(c)) => {
                        let c_value = self.int(elem, c);
                        Combination {
                            operands: [(a, 0), (c_value, 0)].into_iter().collect(),
                            offset: Self::wrap(elem, x.wrapping_mul(c)),
                        }
                    }
                    (Some(c), None) => {
                        let c_value = self.int(elem, c);
                        Combination {
                            operands: [(c_value, 0), (b, 0)].into_iter().collect(),
                            offset: Self::wrap(elem, y.wrapping_mul(c)),
                        }
                    }
                    (None, None) => stay(operands),
                }
            }
            (ThreadOp::Shl, &[(a, x), (b, 0)]) => match self.known(b) {
                Some(by @ 0..=62) => Combination {
                    operands: [(a, 0), (b, 0)].into_iter().collect(),
                    offset: Self::wrap(elem, x.wrapping_shl(by as u32)),
                },
                _ => stay(operands),
            },
            (ThreadOp::Sext | ThreadOp::Zext, &[(a, x)]) => {
                let bits = self.ty(a).elem.bits();
                let has_sign = op == ThreadOp::Sext;
                let (kept, offset) = self.bits.without_carry(a, x, bits, has_sign);
                Combination {
                    operands: [(a, kept)].into_iter().collect(),
                    offset,
                }
            }
            // Truth values cannot be added to.
            (ThreadOp::Itrunc, &[(a, x)]) if elem != Elem::I1 => Combination {
                operands: [(a, 0)].into_iter().collect(),
                offset: Self::wrap(elem, x),
            },
            (ThreadOp::Addptr, &[(p, x), (i, y)]) => {
                let size = i64::from(elem.pointee().map_or(1, |s| s.bytes()));
                let index_bits = self.ty(i).elem.bits();
                // A narrow index is sign-extended, which a constant passes only if it cannot carry.
                let (kept, passes) = match index_bits {
                    64 => (0, y),
                    _ => self.bits.without_carry(i, y, index_bits, true),
                };
                Combination {
                    operands: [(p, 0), (i, kept)].into_iter().collect(),
                    offset: x.wrapping_add(passes.wrapping_mul(size)),
                }
            }
            // Below a common power of two nothing is carried into quotients, and remainders keep it.
            (
                ThreadOp::Urem | ThreadOp::Srem | ThreadOp::Udiv | ThreadOp::Sdiv,
                &[(a, x), (n, 0)],
            ) => {
                let is_signed = matches!(op, ThreadOp::Srem | ThreadOp::Sdiv);
                let zeros = self.bits.trailing_zeros(a).min(self.bits.trailing_zeros(n));
                let mask = (1i64 << zeros.min(elem.bits() - 2)) - 1;
                if is_signed && !self.is_non_negative(data.args[0]) {
                    return stay(operands);
                }
                let kept = matches!(op, ThreadOp::Urem | ThreadOp::Srem);
                Combination {
                    operands: [(a, x & !mask), (n, 0)].into_iter().collect(),
                    offset: if kept { x & mask } else { 0 },
                }
            }
            (ThreadOp::Icmp, &[left, right]) => {
                stay(self.round_down_compared(data.ipred().copied(), left, right))
            }
            _ => stay(operands),
        }
    }

    /// Where both sides are multiples of 2^k but for the constant of one, `x < n` and `x >= n` do not depend on the
    /// low k bits of that constant: clearing them lets neighbours share one comparison.
    fn round_down_compared(
        &self,
        pred: Option<IntPred>,
        left: (Value, i64),
        right: (Value, i64),
    ) -> SmallVec<[(Value, i64); 3]> {
        use IntPred::{Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
        let zeros =
            |(base, offset): (Value, i64)| (self.bits.get(base) | offset as u64).trailing_zeros();
        let round = |(base, offset): (Value, i64), limit: (Value, i64)| {
            let k = zeros(limit).min(self.bits.trailing_zeros(base)).min(31);
            (base, offset & (-1i64 << k))
        };
        match pred {
            Some(Slt | Sge | Ult | Uge) => [round(left, right), right].into_iter().collect(),
            Some(Sgt | Sle | Ugt | Ule) => [left, round(right, left)].into_iter().collect(),
            _ => [left, right].into_iter().collect(),
        }
    }
}
