//! What reductions and scans may come to where their order is open: orders whose partial results overflow or underflow.
//!
//! Roundings are followed where they happen, in the interpreter's order ([`super::elements`]). That is not enough where some order
//! has partial results beyond the largest number, or so small that they lose bits: such an order ends elsewhere. So for
//! each line of elements the ends of all partial results are found, in exact arithmetic, in which every order comes to the same: those
//! of a scan are combinations of neighbours, those of a reduction of any elements. What the region computes of any
//! two of them then says whether something on the way may be infinite, and how much an underflow may cost in the end.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::super::{Held, Machine, Outcome, Results};
use super::reach::Reach;
use super::{Off, number};
use crate::interp::error_bounds::{least_normal, limit, ulp, unit};
use crate::ir::attrs::Attrs;
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Value};
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};

/// A region that combines elements in an order that is open, and computes.
pub(in crate::interp::exec) struct Combination {
    region: Block,
    /// Whether any elements are combined, and not only neighbours.
    commutes: bool,
    parts: SmallVec<[Part; 2]>,
}

/// An operand of a reduction or scan.
#[derive(Clone, Copy)]
struct Part {
    elem: Elem,
    /// The op, if it is combined by one with the same operand alone.
    own: Option<TileOp>,
}

/// Ends of partial results, one for each operand.
type Ends = SmallVec<[Reach; 2]>;

/// What is known of the elements of a line so far.
#[derive(Default)]
pub(in crate::interp::exec) struct Partials {
    elements: u32,
    /// Of combinations that the last element is part of.
    last: Ends,
    /// Of all combinations.
    every: Ends,
    /// Of that of all elements.
    whole: Ends,
    /// Whether an element is infinite or NaN, or nothing is known of it.
    special: SmallVec<[bool; 2]>,
}

/// What a region computes.
struct Computed {
    ends: Ends,
    /// Whether something may be beyond the largest number.
    overflows: bool,
}

/// What follows for a result.
enum Verdict {
    /// It may be so much further off.
    Further(f64),
    /// It may be so far off, whatever was found.
    Settled(f64),
}

impl Machine<'_> {
    /// The region of a reduction or scan, if orders may differ by more than roundings.
    pub(in crate::interp::exec) fn combination(
        &self,
        region: Block,
        commutes: bool,
    ) -> Option<Combination> {
        let func = self.func;
        if self.slack.as_ref()?.combining == 0 {
            return None;
        }
        let insts = func.order.insts(region);
        let is_computed = |data: &InstData<Tile>| {
            let result = data.results.first();
            computes(data.op) && result.is_some_and(|&r| func.dfg.ty(r).elem.is_float())
        };
        if !insts.iter().any(|&inst| is_computed(&func.dfg.insts[inst])) {
            return None;
        }
        let params = &func.dfg.blocks[region].params;
        let (left, right) = params.split_at(params.len() / 2);
        let part = |((&a, &b), &end): ((&Value, &Value), &Value)| {
            let own = func.dfg.def_inst(end).map(|inst| &func.dfg.insts[inst]);
            let own = own.filter(|data| data.args[..] == [a, b] || data.args[..] == [b, a]);
            let elem = func.dfg.ty(a).elem;
            let is_known = |op: &TileOp| {
                let is_followed = matches!(op, TileOp::Fadd | TileOp::Fmul);
                is_followed || !elem.is_float() || !computes(*op)
            };
            Part {
                elem,
                own: own.map(|data| data.op).filter(is_known),
            }
        };
        let ends = &func.dfg.insts[*insts.last()?].args;
        Some(Combination {
            region,
            commutes,
            parts: left.iter().zip(right).zip(ends).map(part).collect(),
        })
    }

    /// Takes in the next element of a line.
    pub(in crate::interp::exec) fn take_in(
        &self,
        by: &Combination,
        line: &mut Partials,
        element: &Results,
    ) -> Outcome<()> {
        let mut new = Ends::new();
        line.special.resize(by.parts.len(), false);
        let parts = by.parts.iter().zip(element).zip(&mut line.special);
        for ((part, held), special) in parts {
            let slack = held.off(0).by;
            let x = number(part.elem, held.elems[0]);
            let is_known = x.is_finite() && slack.is_finite();
            *special |= !is_known;
            // The others are looked at as if it was none of these.
            let (x, slack) = if is_known { (x, slack) } else { (1.0, 0.0) };
            new.push(Reach::of(x, slack));
        }
        line.elements += 1;
        if line.elements == 1 {
            (line.last, line.every, line.whole) = (new.clone(), new.clone(), new);
            return Ok(());
        }
        let before = if by.commutes { &line.every } else { &line.last };
        let longer = self.computed(by, before, &new, None)?.ends;
        line.whole = self.computed(by, &line.whole, &new, None)?.ends;
        line.last = both(&longer, &new, Reach::or);
        line.every = both(&line.every, &line.last, Reach::or);
        Ok(())
    }

    /// Says of the combination of all elements so far, element `i` of `held`, how far it may be off.
    pub(in crate::interp::exec) fn settle(
        &self,
        by: &Combination,
        line: &Partials,
        held: &mut [Held],
        i: usize,
    ) -> Outcome<()> {
        // Of two elements there is one order.
        let has_orders = line.elements > 2;
        let is_mixed = |part: &Part| part.own.is_none();
        let mixed = match has_orders && by.parts.iter().any(is_mixed) {
            true => self.mixed(by, line)?,
            false => None,
        };
        for (c, (part, held)) in by.parts.iter().zip(held).enumerate() {
            let verdict = match (part.own, part.elem, &mixed) {
                (Some(op), Elem::Num(scalar), _) => alone(op, scalar, line, c),
                (Some(_), ..) => continue,
                (None, ..) if !has_orders => continue,
                (None, _, Some(further)) => Verdict::Further(further[c]),
                (None, _, None) => Verdict::Settled(f64::INFINITY),
            };
            match verdict {
                Verdict::Settled(by) => held.set_slack(i, Off { by, ..held.off(i) }),
                Verdict::Further(more) if more > 0.0 => {
                    let Off { by, cause } = held.off(i);
                    let by = by + more;
                    held.set_slack(i, Off { by, cause });
                }
                Verdict::Further(_) => {}
            }
        }
        Ok(())
    }

    /// How much further off the operands may be that are combined with others; none if that may be anything.
    fn mixed(&self, by: &Combination, line: &Partials) -> Outcome<Option<SmallVec<[f64; 2]>>> {
        let every = &line.every;
        let of_any = self.computed(by, every, every, Some(line))?;
        if of_any.overflows || line.special.contains(&true) {
            return Ok(None);
        }
        // What one combination loses goes on into those with what is before and behind it.
        let lossy = |ends: &Ends| both(every, ends, |every, end| every.off_by(end.off));
        let lost = lossy(&of_any.ends);
        let behind = self.computed(by, every, &lost, None)?.ends;
        let before = self.computed(by, &lost, every, None)?.ends;
        let between = self.computed(by, &lossy(&behind), every, None)?.ends;
        let times = f64::from(line.elements - 1);
        let worst = |c: usize| {
            let offs = [&lost, &behind, &before, &between].map(|ends| ends[c].off);
            times * offs.into_iter().fold(0.0, f64::max)
        };
        Ok(Some((0..every.len()).map(worst).collect()))
    }

    /// What the region makes of combinations on the left and on the right. Of any that a line has, it says whether something may be
    /// beyond the largest number and what underflows cost; what comes out is then a combination of the line again.
    fn computed(
        &self,
        by: &Combination,
        left: &Ends,
        right: &Ends,
        of_line: Option<&Partials>,
    ) -> Outcome<Computed> {
        let dfg = &self.func.dfg;
        let mut overflows = false;
        let params = &dfg.blocks[by.region].params;
        let given = params
            .iter()
            .copied()
            .zip(left.iter().chain(right).copied());
        let mut known: FxHashMap<Value, Reach> = given.collect();
        let insts = self.func.order.insts(by.region);
        let ends = insts.last().map(|&inst| &dfg.insts[inst].args[..]);
        let ends = ends.unwrap_or_default();
        for &inst in insts {
            let data = &dfg.insts[inst];
            let Some(&result) = data.results.first() else {
                continue;
            };
            let Elem::Num(scalar) = dfg.ty(result).elem else {
                continue;
            };
            if !scalar.is_float() {
                continue;
            }
            let mut found = self.reach_of(&known, data)?;
            if let Some(line) = of_line {
                if let Some(c) = ends.iter().position(|&end| end == result) {
                    found = found.and(line.every[c]);
                }
                let roundings = 2.0 * f64::from(line.elements) * unit(scalar);
                overflows |= computes(data.op) && found.size() * (1.0 + roundings) >= limit(scalar);
                if found.least < least_normal(scalar) {
                    found.off += underflow(data.op, scalar);
                    found.zero |= underflow(data.op, scalar) > 0.0;
                }
            }
            known.insert(result, found);
        }
        let end = |end: &Value| known.get(end).copied().unwrap_or(Reach::ANY);
        Ok(Computed {
            ends: ends.iter().map(end).collect(),
            overflows,
        })
    }

    /// Where the result of an instruction is, by where its operands are.
    fn reach_of(&self, known: &FxHashMap<Value, Reach>, data: &InstData<Tile>) -> Outcome<Reach> {
        let func = self.func;
        let operand = |index: usize| -> Reach {
            let Some(&value) = data.args.get(index) else {
                return Reach::ANY;
            };
            // What is computed outside of the region is a number.
            let outside = || {
                let x = number(func.dfg.ty(value).elem, *self.values[value].first()?);
                let slack = self.slack.as_ref().map_or(0.0, |slack| slack.of(value, 0));
                (x + slack).is_finite().then(|| Reach::of(x, slack))
            };
            let inside = known.get(&value).copied();
            inside.or_else(outside).unwrap_or(Reach::ANY)
        };
        let (a, b) = (operand(0), operand(1));
        Ok(match data.op {
            TileOp::Const => {
                let elem = data.results.first().map(|&r| func.dfg.ty(r).elem);
                let x = elem
                    .zip(data.value())
                    .map(|(elem, &bits)| number(elem, bits));
                x.filter(|x| x.is_finite())
                    .map_or(Reach::ANY, |x| Reach::of(x, 0.0))
            }
            TileOp::Fadd => a.plus(b),
            TileOp::Fsub if self.is_of_larger(data) => a.plus(b.negated()).not_above_zero(),
            TileOp::Fsub => a.plus(b.negated()),
            TileOp::Fmul => a.times(b),
            TileOp::Fma => a.times(b).plus(operand(2)),
            TileOp::Fdiv | TileOp::FdivRn => a.by(b),
            TileOp::Fneg => a.negated(),
            TileOp::Fabs => a.without_sign(),
            TileOp::Fmax => a.larger(b),
            TileOp::Fmin => a.smaller(b),
            TileOp::Select => b.or(operand(2)),
            TileOp::Rare | TileOp::Fpext | TileOp::Fptrunc => a,
            TileOp::Exp | TileOp::ExpPrecise => a.power_of(std::f64::consts::E),
            TileOp::Exp2 => a.power_of(2.0),
            TileOp::Log => a.logarithm(std::f64::consts::E),
            TileOp::Log2 => a.logarithm(2.0),
            TileOp::Log1p => a.logarithm_of_more(),
            _ => Reach::ANY,
        })
    }

    /// Whether a difference is that of a number, or the smaller of two, and the larger of it and another.
    fn is_of_larger(&self, data: &InstData<Tile>) -> bool {
        let dfg = &self.func.dfg;
        let &[a, b] = &data.args[..] else {
            return false;
        };
        let of = |value: Value, op: TileOp| -> &[Value] {
            let made = dfg.def_inst(value).map(|inst| &dfg.insts[inst]);
            made.filter(|made| made.op == op)
                .map_or(&[], |made| &made.args)
        };
        let (least, most) = (of(a, TileOp::Fmin), of(b, TileOp::Fmax));
        most.contains(&a) || least.contains(&b) || least.iter().any(|x| most.contains(x))
    }
}

/// Of an operand that is combined by one op with itself alone.
fn alone(op: TileOp, scalar: Scalar, line: &Partials, c: usize) -> Verdict {
    let (every, whole, special) = (line.every[c], line.whole[c], line.special[c]);
    if !matches!(op, TileOp::Fadd | TileOp::Fmul) {
        return Verdict::Further(0.0);
    }
    let most = limit(scalar);
    let rounded = f64::from(line.elements) * unit(scalar);
    let overflows = every.size() * (1.0 + rounded) >= most;
    let is_sum = op == TileOp::Fadd;
    let underflows = !is_sum && every.least * (1.0 - rounded) < least_normal(scalar);
    // Infinity times what was too small is NaN, and so is infinity with the other infinity.
    let is_open = match special {
        true if is_sum => overflows,
        true => underflows || every.zero && overflows,
        false => false,
    };
    if is_open {
        return Verdict::Settled(f64::INFINITY);
    }
    if overflows && !special {
        // Where no partial result takes back what another one has, every order ends in infinity, or none.
        let (stays, size) = match is_sum {
            true => (every.has_one_sign(), whole.size()),
            false => (!every.zero && !underflows, whole.least),
        };
        return Verdict::Settled(match stays && size * (1.0 - rounded) >= most {
            true => 0.0,
            false => f64::INFINITY,
        });
    }
    match underflows && line.elements > 2 {
        true => {
            let others = every.size().max(1.0);
            let times = f64::from(line.elements - 1);
            Verdict::Further(times * ulp(scalar, 0.0) * others * others)
        }
        false => Verdict::Further(0.0),
    }
}

/// One by one.
fn both(a: &Ends, b: &Ends, of: impl Fn(Reach, Reach) -> Reach) -> Ends {
    a.iter().zip(b).map(|(&a, &b)| of(a, b)).collect()
}

/// Whether an op gives other numbers than its operands, but for their signs.
fn computes(op: TileOp) -> bool {
    !matches!(
        op,
        TileOp::Const
            | TileOp::Select
            | TileOp::Rare
            | TileOp::Fneg
            | TileOp::Fabs
            | TileOp::Fmax
            | TileOp::Fmin
            | TileOp::Copysign
            | TileOp::Fpext
    )
}

/// What is lost at most where a result is below the normal numbers.
fn underflow(op: TileOp, scalar: Scalar) -> f64 {
    match op {
        // Such sums are exact.
        TileOp::Fadd | TileOp::Fsub => 0.0,
        op if !computes(op) => 0.0,
        TileOp::Fmul | TileOp::Fma | TileOp::FdivRn | TileOp::Fptrunc => ulp(scalar, 0.0),
        _ => least_normal(scalar),
    }
}
