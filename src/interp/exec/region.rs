//! Reductions and loops.

use smallvec::smallvec;

use crate::interp::error::InterpErrorKind;
use crate::interp::int;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::level::Tile;

use super::{Elems, Flow, Machine, Outcome, Results, malformed, operand, owned, required};

impl Machine<'_> {
    /// Folds the bits of the index along the axis, one after the other: see [`crate::ir`].
    pub(super) fn reduce(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let axis = usize::from(required(data.axis())?);
        let shape = self.func.dfg.ty(operand(data, 0)?).shape;
        let region = owned(data, 0)?;
        let low = shape.bit_offset(axis);
        let bits = shape.log2().get(axis).map_or(0, |&b| u32::from(b));
        let order: Vec<u32> = match data.order() {
            Some(order) => order.to_vec(),
            None => (0..bits).collect(),
        };
        let mut xs = self.many(&data.args)?;
        let mut folded = 0;
        for bit in order {
            let flag = 1 << (low + bit);
            folded |= flag;
            for left in 0..shape.elements() {
                // What still counts are the elements whose folded bits are clear.
                if left & folded != 0 {
                    continue;
                }
                let right = left | flag;
                let pick = |x: &Elems, i: usize| -> Elems { smallvec![x[i]] };
                let lefts = xs.iter().map(|x| pick(x, left));
                let rights = xs.iter().map(|x| pick(x, right));
                let args = lefts.chain(rights).collect();
                let combined = self.region(region, args)?;
                if combined.len() != xs.len() {
                    return Err(malformed("a region yields the wrong number of values"));
                }
                for (x, c) in xs.iter_mut().zip(combined) {
                    x[left] = c[0];
                }
            }
        }
        let survivors = |x: &Elems| -> Elems {
            let kept = (0..shape.elements()).filter(|i| i & folded == 0);
            kept.map(|i| x[i]).collect()
        };
        Ok(xs.iter().map(survivors).collect())
    }

    pub(super) fn for_loop(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let bits = self.scalar(data, 0)?.bits();
        let number =
            |m: &Self, index| -> Outcome<i64> { Ok(int::signed(bits, m.single(data, index)?)) };
        let (lo, hi, step) = (number(self, 0)?, number(self, 1)?, number(self, 2)?);
        let mut carried = self.many(&data.args[3..])?;
        if step < 1 {
            return Err(InterpErrorKind::LoopStep(step));
        }
        // Wider than any counter, so that the sum past the last value does not wrap around.
        let mut iv = i128::from(lo);
        while iv < i128::from(hi) {
            let counter: Elems = smallvec![iv as u64];
            let args = std::iter::once(counter).chain(carried).collect();
            carried = self.region(owned(data, 0)?, args)?;
            iv += i128::from(step);
        }
        Ok(carried)
    }

    pub(super) fn while_loop(&mut self, data: &InstData<Tile>) -> Outcome<Results> {
        let mut carried = self.many(&data.args)?;
        loop {
            match self.block(owned(data, 0)?, carried)? {
                Flow::Condition(true, passed) => carried = self.region(owned(data, 1)?, passed)?,
                Flow::Condition(false, passed) => return Ok(passed),
                Flow::Yield(_) | Flow::Return => {
                    return Err(malformed("the first region does not end in `condition`"));
                }
            }
        }
    }
}
