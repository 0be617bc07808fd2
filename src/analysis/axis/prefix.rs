//! Runs of a mask that are true up to some element and false from there on, as at the end of a row.
//!
//! What copies such a run needs no promise that the row ends with a whole run: it copies the elements in front of the end and
//! fills the rest with zeros. Other accesses have one truth value for all of their elements, and look at constancy alone.
//!
//! A mask has such runs where it is the conjunction of comparisons `x < n`, in each of which `x` counts up along the run without
//! wrapping and `n` stays the same, and of whatever is constant over the run.

use rustc_hash::FxHashSet;

use super::transfer::low_dim;
use super::{Axis, Exponent};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

impl Axis {
    /// Exponent of the length of aligned runs along `dim` in which no element of the mask is true behind one that is false.
    pub(super) fn prefix(&self, func: &TileFunction, mask: Value, dim: usize) -> Exponent {
        let mut shortest = Exponent::constant(u8::MAX);
        let mut stack = vec![(mask, dim)];
        let mut seen = FxHashSet::default();
        while let Some((value, dim)) = stack.pop() {
            if !seen.insert((value, dim)) {
                continue;
            }
            let constant = self.info(value).dim(dim).constancy;
            let Some(inst) = func.dfg.def_inst(value) else {
                shortest = shortest.min(&constant);
                continue;
            };
            let data = &func.dfg.insts[inst];
            match (data.op, self.dim_before(func, inst, dim)) {
                (TileOp::And, _) => stack.extend(data.args.iter().map(|&arg| (arg, dim))),
                (TileOp::Icmp, _) => {
                    shortest = shortest.min(&constant.max(&self.below(func, inst, dim)));
                }
                (_, Some((before, longest))) => {
                    shortest = shortest.min(&Exponent::constant(longest));
                    stack.push((data.args[0], before));
                }
                (_, None) => shortest = shortest.min(&constant),
            }
        }
        shortest
    }

    /// The dimension of the operand that a change of shape makes `dim` of, and the exponent of how far runs stay whole; none if
    /// it makes it of several, or of none.
    fn dim_before(&self, func: &TileFunction, inst: Inst, dim: usize) -> Option<(usize, u8)> {
        let data = &func.dfg.insts[inst];
        let from = func.dfg.ty(*data.args.first()?).shape;
        let to = func.dfg.ty(*data.results.first()?).shape;
        match data.op {
            TileOp::ExpandDims => {
                let axis = usize::from(data.axis().copied()?);
                (dim != axis).then(|| (dim - usize::from(axis < dim), u8::MAX))
            }
            TileOp::Broadcast => (from.log2()[dim] == to.log2()[dim]).then_some((dim, u8::MAX)),
            TileOp::Permute => Some((*data.dims()?.get(dim)? as usize, u8::MAX)),
            TileOp::Reshape => Some((low_dim(from, to, dim)?, to.log2()[dim])),
            _ => None,
        }
    }

    /// Exponent of the runs in which a comparison is true up to some element.
    fn below(&self, func: &TileFunction, inst: Inst, dim: usize) -> Exponent {
        let data = &func.dfg.insts[inst];
        let (x, bound) = match data.ipred() {
            Some(IntPred::Slt | IntPred::Ult | IntPred::Sle | IntPred::Ule) => (0, 1),
            Some(IntPred::Sgt | IntPred::Ugt | IntPred::Sge | IntPred::Uge) => (1, 0),
            _ => return Exponent::default(),
        };
        if func.dfg.ty(data.args[0]).elem.is_ptr() {
            return Exponent::default();
        }
        let (x, bound) = (
            self.info(data.args[x]).dim(dim),
            self.info(data.args[bound]).dim(dim),
        );
        // A run that starts at a multiple of its length does not wrap.
        x.contiguity.min(&x.divisibility).min(&bound.constancy)
    }
}
