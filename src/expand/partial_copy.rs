//! Copies that end inside of their bytes: how many a copy reads, and that the rest is zeros.
//!
//! At the end of a row a mask is true for the first elements of a copy and false for the others. The mask of the first says
//! whether there are any; how many follows from the comparison `x < n` that the mask was made of: `n - x` of the first element,
//! where that is less than the copy's. As `x < n` holds, the difference is right as a number without sign, whatever the signs are.
//!
//! What is read off here are comparisons of the registers that a copy takes: `x` must count up from one to the next, from a
//! multiple of their number on, so that it does not wrap. Nothing else makes a copy end.
//!
//! ptxas writes the bytes that are left out into the low bits of the address, which is a multiple of the copy's width: no copy
//! reaches out of its aligned 16 bytes. `compute-sanitizer` (CUDA 13.0) takes each for a read of the whole width all the same, and
//! reports one that ends where an allocation does.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{Elem, ThreadType};

use super::regs::Parts;
use super::{Expander, Result};

/// Most masks that are looked at for one copy.
const MOST_MASKS: usize = 16;

/// Where a copy ends: in front of the element that is not below `bound`, `first` being that of the first element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CopyEnd {
    first: Value,
    bound: Value,
    /// Whether the bound itself is inside.
    inclusive: bool,
}

/// Ends of one copy, all of which hold.
pub(super) type Ends = SmallVec<[CopyEnd; 2]>;

/// Bytes that were computed, by ends and elements of a copy.
pub(super) type Sizes = FxHashMap<(Ends, usize), Value>;

impl Expander<'_> {
    /// Where a copy of `width` registers from `reg` on ends if the mask of the first one is true, no ends standing for the whole;
    /// none if the mask does not come to an end once.
    pub(super) fn ends(&self, mask: Option<&Parts>, reg: usize, width: usize) -> Option<Ends> {
        let mut ends = Ends::new();
        let Some(mask) = mask else {
            return Some(ends);
        };
        let masks: SmallVec<[Value; 16]> = (reg..reg + width).map(|r| mask.at(r).0).collect();
        let mut stack = vec![masks];
        let mut seen = 0;
        while let Some(masks) = stack.pop() {
            seen += 1;
            if masks.iter().all(|&mask| mask == masks[0]) {
                continue;
            }
            let made: SmallVec<[&InstData<Thread>; 16]> = masks
                .iter()
                .map(|&mask| self.made_by(mask))
                .collect::<Option<_>>()?;
            let is_alike = made
                .iter()
                .all(|data| data.op == made[0].op && data.ipred() == made[0].ipred());
            let operands = |i: usize| made.iter().map(|data| data.args[i]).collect();
            match made[0].op {
                ThreadOp::And if is_alike && seen < MOST_MASKS => {
                    stack.extend([operands(0), operands(1)]);
                }
                ThreadOp::Icmp if is_alike => {
                    let end = self.end(made[0].ipred().copied()?, [operands(0), operands(1)])?;
                    if !ends.contains(&end) {
                        ends.push(end);
                    }
                }
                _ => return None,
            }
        }
        Some(ends)
    }

    fn made_by(&self, value: Value) -> Option<&InstData<Thread>> {
        let dfg = &self.b.func().dfg;
        Some(&dfg.insts[dfg.def_inst(value)?])
    }

    /// Where comparisons of registers that follow each other become false.
    fn end(&self, pred: IntPred, [left, right]: [SmallVec<[Value; 16]>; 2]) -> Option<CopyEnd> {
        let (numbers, bounds, inclusive) = match pred {
            IntPred::Slt | IntPred::Ult => (left, right, false),
            IntPred::Sle | IntPred::Ule => (left, right, true),
            IntPred::Sgt | IntPred::Ugt => (right, left, false),
            IntPred::Sge | IntPred::Uge => (right, left, true),
            IntPred::Eq | IntPred::Ne => return None,
        };
        let (first, bound) = (numbers[0], bounds[0]);
        let width = numbers.len();
        let (base, offset) = self.base_and_offset(first);
        let zeros = |base: Option<Value>, offset: i64| {
            let possible = base.map_or(0, |base| self.bits.get(base));
            (possible | offset as u64).trailing_zeros()
        };
        let is_plain = bounds.iter().all(|&b| b == bound)
            && matches!(self.ty(first).elem, Elem::I32 | Elem::I64)
            && zeros(base, offset) >= width.ilog2();
        // Neighbours are compared as one where the bound is a multiple of their number.
        let (limit, distance) = self.base_and_offset(bound);
        let most = if inclusive {
            0
        } else {
            zeros(limit, distance).min(width.ilog2())
        };
        let counts_up = |step: u32| {
            numbers.iter().enumerate().all(|(i, &number)| {
                let place = (i >> step << step) as i64;
                self.base_and_offset(number) == (base, offset.wrapping_add(place))
            })
        };
        let found = is_plain && (0..=most).any(counts_up);
        found.then_some(CopyEnd {
            first,
            bound,
            inclusive,
        })
    }

    /// An integer as a value that is no constant, if there is one, and what is added to it.
    fn base_and_offset(&self, mut value: Value) -> (Option<Value>, i64) {
        let mut offset = 0_i64;
        loop {
            if let Some(number) = self.known(value) {
                return (None, offset.wrapping_add(number));
            }
            let added = self.made_by(value).filter(|data| data.op == ThreadOp::Iadd);
            let added = added.and_then(|data| Some((data.args[0], self.known(data.args[1])?)));
            let Some((base, number)) = added else {
                return (Some(value), offset);
            };
            value = base;
            offset = offset.wrapping_add(number);
        }
    }

    /// Bytes that a copy of `width` elements of `bytes` bytes reads if the mask of the first one is true; none if all.
    pub(super) fn size_of_copy(
        &mut self,
        ends: &Ends,
        width: usize,
        bytes: u32,
        sizes: &mut Sizes,
    ) -> Result<Option<Value>> {
        if ends.is_empty() {
            return Ok(None);
        }
        let key = (ends.clone(), width);
        if let Some(&size) = sizes.get(&key) {
            return Ok(Some(size));
        }
        let mut count: Option<Value> = None;
        for end in ends {
            let own = self.elements_in_front(*end, width)?;
            count = Some(match count {
                Some(count) => self.binary(ThreadOp::Umin, count, own)?,
                None => own,
            });
        }
        let size = match count {
            Some(count) if bytes > 1 => {
                let log2 = self.int(Elem::I32, i64::from(bytes.ilog2()));
                Some(self.binary(ThreadOp::Shl, count, log2)?)
            }
            count => count,
        };
        sizes.extend(size.map(|size| (key, size)));
        Ok(size)
    }

    /// The bytes that a copy of `bytes` reads, `part` of them if it ends, where none are read where `pred` is false; none where it
    /// reads all.
    pub(super) fn size_where(
        &mut self,
        pred: Option<Value>,
        part: Option<Value>,
        bytes: u32,
    ) -> Result<Option<Value>> {
        let Some(pred) = pred else {
            return Ok(part);
        };
        let [whole, nothing] = [bytes, 0].map(|bytes| self.int(Elem::I32, i64::from(bytes)));
        let args = [pred, part.unwrap_or(whole), nothing];
        let size = InstData::new(ThreadOp::Select, &args);
        self.op(size, &[ThreadType::scalar(Elem::I32)]).map(Some)
    }

    /// How many of `width` elements stand in front of an end behind the first of them, as an i32.
    fn elements_in_front(&mut self, end: CopyEnd, width: usize) -> Result<Value> {
        let elem = self.ty(end.first).elem;
        let left = match self.known(end.first) {
            Some(0) => end.bound,
            _ => self.binary(ThreadOp::Isub, end.bound, end.first)?,
        };
        let most = self.int(elem, width as i64 - i64::from(end.inclusive));
        let mut count = self.binary(ThreadOp::Umin, left, most)?;
        if elem != Elem::I32 {
            let narrow = InstData::new(ThreadOp::Itrunc, &[count]);
            count = self.op(narrow, &[ThreadType::scalar(Elem::I32)])?;
        }
        if end.inclusive {
            let one = self.int(Elem::I32, 1);
            count = self.binary(ThreadOp::Iadd, count, one)?;
        }
        Ok(count)
    }
}
