//! Whether the region of a reduction or scan does what it must, as far as the elements at hand show.

use smallvec::SmallVec;

use super::super::{Held, Machine, Outcome, Results};
use super::elements::distance;
use super::{Off, number};
use crate::interp::{Cause, Open};
use crate::ir::entities::{Block, Inst};
use crate::ir::ops::TileOp;

/// How many times beyond its bounds a result must be before the region is blamed: bounds are close.
const BEYOND: f64 = 4.0;

impl Machine<'_> {
    /// Says of the combinations of a line's elements up to each, from where the order of the elements shows on, that it does;
    /// `places` are those of the elements in `held`, or the one of the combination of all.
    pub(in crate::interp::exec) fn try_order(
        &mut self,
        inst: Inst,
        region: Block,
        line: &[Results],
        places: &[usize],
        held: &mut [Held],
    ) -> Outcome<()> {
        let is_open = self.slack.as_ref().is_some_and(|slack| slack.combining > 0);
        if !is_open || line.len() < 3 || self.is_known(region) {
            return Ok(());
        }
        // What is tried counts for nothing.
        let (steps, stats) = (self.steps, self.stats);
        let first = self.first_to_show(inst, region, line, places, held);
        (self.steps, self.stats) = (steps, stats);
        self.current = Some(inst);
        let Some(first) = first? else {
            return Ok(());
        };
        let cause = Some(Cause {
            inst,
            why: Open::Order,
        });
        let from = first.min(places.len() - 1);
        for &place in &places[from..] {
            for held in &mut *held {
                // A bound stays, which says how far roundings reach.
                let by = held.off(place).by;
                let by = if by > 0.0 { by } else { f64::INFINITY };
                held.set_slack(place, Off { by, cause });
            }
        }
        Ok(())
    }

    /// The number of the element with which another order first shows.
    fn first_to_show(
        &mut self,
        inst: Inst,
        region: Block,
        line: &[Results],
        places: &[usize],
        held: &[Held],
    ) -> Outcome<Option<usize>> {
        let must_commute = self.func.dfg.insts[inst].op == TileOp::Reduce;
        let place = |i: usize| places[i.min(places.len() - 1)];
        let mut before = line[0].clone();
        for i in 1..line.len() - 1 {
            let (x, y) = (&line[i], &line[i + 1]);
            let at_end: SmallVec<[f64; 2]> = held.iter().map(|h| h.off(place(i + 1)).by).collect();
            let to_here = self.combine(region, &before, x)?;
            let one_by_one = self.combine(region, &to_here, y)?;
            let pair = self.combine(region, x, y)?;
            let other = self.combine(region, &before, &pair)?;
            if self.shows(inst, &one_by_one, &other, &at_end) {
                return Ok(Some(i + 1));
            }
            if must_commute {
                let turned = self.combine(region, y, x)?;
                if self.shows(inst, &pair, &turned, &at_end) {
                    return Ok(Some(i + 1));
                }
            }
            before = to_here;
        }
        Ok(None)
    }

    /// Whether two ways to one result differ by more than roundings.
    fn shows(&self, inst: Inst, one: &Results, other: &Results, more: &[f64]) -> bool {
        let args = &self.func.dfg.insts[inst].args;
        let pairs = args.iter().zip(one).zip(other).zip(more);
        pairs.into_iter().any(|(((&arg, one), other), more)| {
            let elem = self.func.dfg.ty(arg).elem;
            let (a, b) = (one.elems[0], other.elems[0]);
            // Infinities are what `Open::Extremes` is about.
            let is_number = |bits| number(elem, bits).is_finite();
            let allowed = one.off(0).by + other.off(0).by + more;
            is_number(a) && is_number(b) && distance(elem, a, b) > BEYOND * allowed
        })
    }

    /// Whether the region is one op that is known to be associative and to commute.
    fn is_known(&self, region: Block) -> bool {
        use TileOp::{And, Fadd, Fmax, Fmin, Fmul, Iadd, Imul, Or, Smax, Smin, Umax, Umin, Xor};
        let dfg = &self.func.dfg;
        let params = &dfg.blocks[region].params;
        let &[op, end] = self.func.order.insts(region) else {
            return false;
        };
        let (op, end) = (&dfg.insts[op], &dfg.insts[end]);
        let is_all = matches!(op.args[..], [a, b] if params[..] == [a, b] || params[..] == [b, a]);
        let is_one = matches!(
            op.op,
            Iadd | Imul | Smin | Smax | Umin | Umax | And | Or | Xor | Fadd | Fmul | Fmin | Fmax
        );
        is_all && is_one && end.args[..] == op.results[..]
    }
}
