//! How far numbers reach: bounds that the host knows, and what it must check for them to hold.
//!
//! A range is one of all elements of a value, in all programs and iterations, of a launch for which its conditions hold. Numbers
//! that wrapped are excluded by conditions. Where only some elements matter, those with `x < E` of a mask or of what is demanded,
//! the range is theirs ([`Reach::limit`]).

use rustc_hash::FxHashMap;

use super::host::{Host, Hosts, Le};
use super::{Atom, Forms, Poly};
use crate::analysis::axis::Axis;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::Elem;
use crate::linear_layout::shape::Shape;

/// How deep expressions are followed.
const MAX_DEPTH: u32 = 200;

/// Most comparisons that are supposed at once: each doubles the work.
const MAX_SUPPOSED: usize = 2;

/// Most steps from the end of a loop to a comparison on which it depends.
const MAX_STEPS_OF_ENDS: usize = 40;

/// Bounds and their conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// No element is smaller.
    pub lo: Host,
    /// No element is larger.
    pub hi: Host,
    /// If these hold.
    pub conds: Vec<Le>,
}

impl Range {
    /// The number, if it is one that the host knows.
    pub fn point(&self) -> Option<Host> {
        (self.lo == self.hi).then_some(self.lo)
    }
}

/// Adds to conditions those that are not there.
pub fn extend(conds: &mut Vec<Le>, more: impl IntoIterator<Item = Le>) {
    for cond in more {
        if !conds.contains(&cond) {
            conds.push(cond);
        }
    }
}

/// Computes ranges.
#[derive(Debug)]
pub struct Reach<'a, 'f> {
    /// What values are.
    pub forms: &'a mut Forms<'f>,
    /// Which numbers are made of indices of programs.
    pub axis: &'a Axis,
    /// What the host computes.
    pub hosts: &'a mut Hosts,
    limits: Vec<(Poly, Host)>,
    memo: FxHashMap<Value, Option<Range>>,
    depth: u32,
    /// Comparisons of which it is supposed that they hold, or that they do not.
    supposed: Vec<(Inst, bool)>,
}

impl<'a, 'f> Reach<'a, 'f> {
    /// Ranges of all elements.
    pub fn new(forms: &'a mut Forms<'f>, axis: &'a Axis, hosts: &'a mut Hosts) -> Reach<'a, 'f> {
        Reach {
            forms,
            axis,
            hosts,
            limits: Vec::new(),
            memo: FxHashMap::default(),
            depth: 0,
            supposed: Vec::new(),
        }
    }

    /// From now on only elements matter for which `x < bound`; `x` has at most one index.
    pub fn limit(&mut self, x: &Poly, bound: Host) {
        self.limits.push((x.map_dims(|_| Some(0)), bound));
        self.memo.clear();
    }

    fn exactly(&mut self, number: i64) -> Range {
        let host = self.hosts.number(number);
        Range {
            lo: host,
            hi: host,
            conds: Vec::new(),
        }
    }

    fn point(&self, host: Host) -> Range {
        Range {
            lo: host,
            hi: host,
            conds: Vec::new(),
        }
    }

    /// Adds a condition; none if it never holds.
    fn demand(&self, conds: &mut Vec<Le>, a: Host, b: Host) -> Option<()> {
        extend(conds, self.hosts.le(a, b)?);
        Some(())
    }

    /// The range of the elements of an integer that matter; none if there is none that the host knows, or if it holds in no
    /// launch.
    pub fn range(&mut self, value: Value) -> Option<Range> {
        if let Some(known) = self.memo.get(&value) {
            return known.clone();
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        // What a loop carries may be made of itself.
        let any = self.any(value);
        self.memo.insert(value, any);
        self.depth += 1;
        let found = self.compute(value);
        self.depth -= 1;
        let found = found.and_then(|range| self.limited(value, range));
        let found = found.map(|range| self.supposed_of(value, range));
        self.memo.insert(value, found.clone());
        found
    }

    /// All numbers of the type.
    fn any(&mut self, value: Value) -> Option<Range> {
        let bits = match self.forms.func.dfg.ty(value).elem {
            Elem::Num(scalar) if scalar.is_int() && (8..=32).contains(&scalar.bits()) => {
                scalar.bits()
            }
            _ => return None,
        };
        let most = (1_i64 << (bits - 1)) - 1;
        Some(Range {
            lo: self.hosts.number(-most - 1),
            hi: self.hosts.number(most),
            conds: Vec::new(),
        })
    }

    /// Only elements that matter.
    fn limited(&mut self, value: Value, mut range: Range) -> Option<Range> {
        if self.limits.is_empty() {
            return Some(range);
        }
        let form = self.forms.form(value)?;
        if form.poly.dims().len() > 1 {
            return Some(range);
        }
        let poly = form.poly.map_dims(|_| Some(0));
        let limits = self.limits.iter().filter(|(x, _)| *x == poly);
        let bounds: Vec<Host> = limits.map(|&(_, bound)| bound).collect();
        let one = self.hosts.number(1);
        for bound in bounds {
            let last = self.hosts.sub(bound, one);
            // The bound itself is what the host knows anyway.
            range.hi = match self.hosts.constant(range.hi) {
                Some(_) => self.hosts.min(range.hi, last),
                None => last,
            };
        }
        Some(range)
    }

    fn compute(&mut self, value: Value) -> Option<Range> {
        let func = self.forms.func;
        let ty = func.dfg.ty(value);
        let inst = match func.dfg.values[value].def {
            ValueDef::Param(block, index) => {
                let is_known = block == func.entry && matches!(ty.elem, Elem::I32 | Elem::I64);
                if is_known && ty.is_scalar() {
                    let host = self.hosts.param(value, ty.elem.bits());
                    return Some(self.point(host));
                }
                return match self.forms.order.owner(block) {
                    Some(inst) if func.dfg.insts[inst].op == TileOp::For => {
                        self.of_loop(value, inst, index)
                    }
                    _ => self.any(value),
                };
            }
            ValueDef::Result(inst, _) => inst,
        };
        let data = &func.dfg.insts[inst];
        let arg = |i: usize| data.args[i];
        if matches!(data.op, TileOp::Iadd | TileOp::Isub)
            && let Some(cond) = self.divider(value)
        {
            return self.either_way(cond, value);
        }
        let found = match data.op {
            TileOp::Const => {
                let unused = 64 - ty.elem.bits().clamp(1, 64);
                let number = (*data.value()? << unused) as i64 >> unused;
                return Some(self.exactly(number));
            }
            TileOp::ProgramId => {
                let programs = self.hosts.programs(*data.axis()?);
                let one = self.hosts.number(1);
                Range {
                    lo: self.hosts.number(0),
                    hi: self.hosts.sub(programs, one),
                    conds: Vec::new(),
                }
            }
            TileOp::NumPrograms => {
                let programs = self.hosts.programs(*data.axis()?);
                self.point(programs)
            }
            TileOp::Arange => {
                let start = i64::from(*data.start()?);
                Range {
                    lo: self.hosts.number(start),
                    hi: self.hosts.number(start + ty.shape.extent(0) as i64 - 1),
                    conds: Vec::new(),
                }
            }
            op if op.info().keeps_elements() => return self.range(arg(0)),
            TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                return self.range(arg(0));
            }
            // What is made wider may have wrapped before.
            TileOp::Sext => {
                let known = self.widened(inst).or_else(|| self.range(arg(0)));
                return known.or_else(|| self.any(arg(0)));
            }
            TileOp::Zext => return self.widened(inst).or_else(|| self.any(value)),
            TileOp::Itrunc => self.range(arg(0))?,
            TileOp::Isub if let Some((from, less)) = self.at_least_zero(arg(0), arg(1)) => {
                let (from, less) = (self.range(from)?, self.range(less)?);
                let mut rest = self.sub(&from, &less);
                let zero = self.hosts.number(0);
                rest.lo = self.hosts.max(rest.lo, zero);
                rest.hi = self.hosts.max(rest.hi, zero);
                rest
            }
            TileOp::Iadd | TileOp::Isub | TileOp::Imul => {
                let (a, b) = (self.range(arg(0))?, self.range(arg(1))?);
                match data.op {
                    TileOp::Iadd => self.add(&a, &b),
                    TileOp::Isub => self.sub(&a, &b),
                    _ => self.mul(&a, &b)?,
                }
            }
            TileOp::Shl => {
                let (a, by) = (self.range(arg(0))?, self.range(arg(1))?);
                let by = by.point().and_then(|by| self.hosts.constant(by))?;
                let factor = 1_i64.checked_shl(u32::try_from(by).ok()?)?;
                if by >= i64::from(ty.elem.bits()) - 1 {
                    return None;
                }
                let factor = self.exactly(factor);
                self.mul(&a, &factor)?
            }
            TileOp::Sdiv => self.quotient(arg(0), arg(1))?,
            TileOp::Srem => self.remainder(arg(0), arg(1))?,
            TileOp::Smin | TileOp::Smax => {
                let (a, b) = (self.range(arg(0))?, self.range(arg(1))?);
                let (lo, hi) = match data.op {
                    TileOp::Smin => (self.hosts.min(a.lo, b.lo), self.hosts.min(a.hi, b.hi)),
                    _ => (self.hosts.max(a.lo, b.lo), self.hosts.max(a.hi, b.hi)),
                };
                merged(lo, hi, &a, &b)
            }
            TileOp::Select => self.selected(arg(0), arg(1), arg(2))?,
            TileOp::If => self.of_branches(value, inst)?,
            _ => return self.any(value),
        };
        self.in_type(found, ty.elem)
    }

    /// What `a - b` is if that is positive, and zero if not: `a - min(a, x)` and `max(x, b) - b` are `x` from `a` and `b` from `x`.
    fn at_least_zero(&self, a: Value, b: Value) -> Option<(Value, Value)> {
        let dfg = &self.forms.func.dfg;
        let other = |of: Value, op: TileOp, value: Value| {
            let data = &dfg.insts[dfg.def_inst(of)?];
            let [x, y] = *data.args.get(..2)? else {
                return None;
            };
            let other = if y == value { x } else { y };
            (data.op == op && (x == value || y == value)).then_some(other)
        };
        let of_least = other(b, TileOp::Smin, a).map(|less| (a, less));
        of_least.or_else(|| other(a, TileOp::Smax, b).map(|from| (from, b)))
    }

    /// A parameter of 8 or 16 bits that is made wider, with its sign or without one; none of other values.
    fn widened(&mut self, inst: Inst) -> Option<Range> {
        let dfg = &self.forms.func.dfg;
        let data = &dfg.insts[inst];
        let mut narrow = data.args[0];
        while let ValueDef::Result(inst, _) = dfg.values[narrow].def
            && let TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant =
                dfg.insts[inst].op
        {
            narrow = dfg.insts[inst].args[0];
        }
        let ValueDef::Param(block, _) = dfg.values[narrow].def else {
            return None;
        };
        let ty = dfg.ty(narrow);
        let bits = ty.elem.bits();
        let is_small = ty.is_scalar() && ty.elem.is_int() && matches!(bits, 8 | 16);
        if block != self.forms.func.entry || !is_small {
            return None;
        }
        let host = match data.op {
            TileOp::Zext => self.hosts.unsigned(narrow, bits),
            _ => self.hosts.param(narrow, bits),
        };
        Some(self.point(host))
    }

    /// Without wrap.
    fn in_type(&mut self, mut range: Range, elem: Elem) -> Option<Range> {
        let bits = elem.bits();
        if bits < 64 {
            let most = (1_i64 << (bits - 1)) - 1;
            let (least, most) = (self.hosts.number(-most - 1), self.hosts.number(most));
            self.demand(&mut range.conds, least, range.lo)?;
            self.demand(&mut range.conds, range.hi, most)?;
        }
        Some(range)
    }

    /// The counter of a loop, or what it carries.
    fn of_loop(&mut self, value: Value, inst: Inst, index: u16) -> Option<Range> {
        let args = &self.forms.func.dfg.insts[inst].args;
        if index == 0 {
            let (lo, end) = (self.range(args[0])?, self.range(args[1])?);
            let one = self.hosts.number(1);
            let last = self.hosts.sub(end.hi, one);
            return Some(merged(lo.lo, last, &lo, &end));
        }
        let form = self.forms.form(value)?;
        if form.poly == Poly::atom(Atom::Value(value)) {
            return self.any(value);
        }
        let ty = self.forms.func.dfg.ty(value);
        let mut range = self.sum(&form.poly, ty.shape)?;
        for &part in &form.exact {
            let part = self.range(part)?;
            extend(&mut range.conds, part.conds);
        }
        self.in_type(range, ty.elem)
    }

    /// How many iterations of a loop may be over.
    fn trips(&mut self, inst: Inst) -> Option<Range> {
        let args = &self.forms.func.dfg.insts[inst].args;
        let (lo, end, step) = (
            self.range(args[0])?,
            self.range(args[1])?,
            self.range(args[2])?,
        );
        let one = self.hosts.number(1);
        let last = self.hosts.sub(end.hi, one);
        let far = self.hosts.sub(last, lo.lo);
        // A step is at least 1.
        let by = match self.hosts.constant(step.lo) {
            Some(step) if step > 1 => self.hosts.number(step),
            _ => one,
        };
        let hi = self.hosts.div(far, by);
        let zero = self.hosts.number(0);
        Some(merged(zero, hi, &lo, &end))
    }

    fn add(&mut self, a: &Range, b: &Range) -> Range {
        let (lo, hi) = (self.hosts.add(a.lo, b.lo), self.hosts.add(a.hi, b.hi));
        merged(lo, hi, a, b)
    }

    fn sub(&mut self, a: &Range, b: &Range) -> Range {
        let (lo, hi) = (self.hosts.sub(a.lo, b.hi), self.hosts.sub(a.hi, b.lo));
        merged(lo, hi, a, b)
    }

    fn mul(&mut self, a: &Range, b: &Range) -> Option<Range> {
        for (a, b) in [(a, b), (b, a)] {
            if let Some(by) = b.point().and_then(|by| self.hosts.constant(by)) {
                let ends = match by >= 0 {
                    true => (a.lo, a.hi),
                    false => (a.hi, a.lo),
                };
                let by = self.hosts.number(by);
                let (lo, hi) = (self.hosts.mul(ends.0, by), self.hosts.mul(ends.1, by));
                return Some(merged(lo, hi, a, b));
            }
        }
        // Of other products the host checks that nothing is negative.
        let (lo, hi) = (self.hosts.mul(a.lo, b.lo), self.hosts.mul(a.hi, b.hi));
        let mut out = merged(lo, hi, a, b);
        let zero = self.hosts.number(0);
        self.demand(&mut out.conds, zero, a.lo)?;
        self.demand(&mut out.conds, zero, b.lo)?;
        Some(out)
    }

    /// The dividend without negative numbers and the divisor without those below 1, where the op says nothing about others.
    fn taken(&mut self, a: Value, b: Value) -> Option<(Range, Range)> {
        let (mut x, mut y) = (self.range(a)?, self.range(b)?);
        let info = self.axis.info(a);
        let (zero, one) = (self.hosts.number(0), self.hosts.number(1));
        let is_known = x.point().is_some() && y.point().is_some();
        if info.is_non_negative() && !is_known {
            x.lo = self.hosts.max(x.lo, zero);
            x.hi = self.hosts.max(x.hi, zero);
            // Nor about those of sums that wrapped.
            x.conds.clear();
        }
        match info.is_index() && !is_known {
            true => {
                y.lo = self.hosts.max(y.lo, one);
                y.hi = self.hosts.max(y.hi, one);
            }
            false => self.demand(&mut y.conds, one, y.lo)?,
        }
        Some((x, y))
    }

    fn quotient(&mut self, a: Value, b: Value) -> Option<Range> {
        let (x, y) = self.taken(a, b)?;
        if let (Some(x_is), Some(y_is)) = (x.point(), y.point()) {
            let quotient = self.hosts.div(x_is, y_is);
            return Some(merged(quotient, quotient, &x, &y));
        }
        let zero = self.hosts.number(0);
        let (lo, hi) = (self.hosts.min(x.lo, zero), self.hosts.max(x.hi, zero));
        let (lo, hi) = (self.hosts.div(lo, y.lo), self.hosts.div(hi, y.lo));
        Some(merged(lo, hi, &x, &y))
    }

    fn remainder(&mut self, a: Value, b: Value) -> Option<Range> {
        let (x, y) = self.taken(a, b)?;
        if let (Some(x_is), Some(y_is)) = (x.point(), y.point()) {
            let quotient = self.hosts.div(x_is, y_is);
            let whole = self.hosts.mul(quotient, y_is);
            let rest = self.hosts.sub(x_is, whole);
            return Some(merged(rest, rest, &x, &y));
        }
        let (zero, one) = (self.hosts.number(0), self.hosts.number(1));
        let lo = self.hosts.min(x.lo, zero);
        let (hi, most) = (self.hosts.max(x.hi, zero), self.hosts.sub(y.hi, one));
        let hi = self.hosts.min(hi, most);
        Some(merged(lo, hi, &x, &y))
    }

    /// What is in one range or the other.
    fn either(&mut self, x: &Range, y: &Range) -> Range {
        let (lo, hi) = (self.hosts.min(x.lo, y.lo), self.hosts.max(x.hi, y.hi));
        merged(lo, hi, x, y)
    }

    /// A number below what it is supposed to be below.
    fn supposed_of(&mut self, value: Value, mut range: Range) -> Range {
        for (cond, holds) in self.supposed.clone() {
            let data = &self.forms.func.dfg.insts[cond];
            if !holds || data.args[0] != value {
                continue;
            }
            if let Some(bound) = self.range(data.args[1]) {
                let one = self.hosts.number(1);
                let last = self.hosts.sub(bound.hi, one);
                range.hi = self.hosts.min(range.hi, last);
                extend(&mut range.conds, bound.conds);
            }
        }
        range
    }

    /// Whether the condition of a choice is supposed to hold.
    fn is_supposed(&self, cond: Value) -> Option<bool> {
        let inst = self.forms.func.dfg.def_inst(cond)?;
        let mut all = self.supposed.iter();
        all.find(|(of, _)| *of == inst).map(|&(_, holds)| holds)
    }

    /// A comparison `x < bound` on which depends how often a loop runs that moves on a number which begins with `x`: the tiles of a
    /// program, of which the first ones have one more. The ends of both ways are nearer than those of what either may be.
    fn divider(&mut self, value: Value) -> Option<Inst> {
        let func = self.forms.func;
        if !func.dfg.ty(value).is_scalar() || self.supposed.len() >= MAX_SUPPOSED {
            return None;
        }
        let form = self.forms.form(value)?;
        let trip = form.poly.atoms().find_map(|atom| match atom {
            Atom::Trip(inst) => Some(inst),
            Atom::Value(_) => None,
        })?;
        let begins = |x: Value| form.poly.atoms().any(|atom| atom == Atom::Value(x));
        let mut todo = vec![func.dfg.insts[trip].args[1]];
        for _ in 0..MAX_STEPS_OF_ENDS {
            let Some(inst) = func.dfg.def_inst(todo.pop()?) else {
                continue;
            };
            let data = &func.dfg.insts[inst];
            if matches!(data.op, TileOp::Select | TileOp::If) {
                let cond = func.dfg.def_inst(data.args[0]);
                let cond = cond.filter(|&cond| {
                    let data = &func.dfg.insts[cond];
                    let is_below = data.ipred() == Some(&IntPred::Slt) && begins(data.args[0]);
                    is_below && self.supposed.iter().all(|(of, _)| *of != cond)
                });
                if cond.is_some() {
                    return cond;
                }
            }
            todo.extend(
                data.args
                    .iter()
                    .filter(|&&arg| func.dfg.ty(arg).is_scalar()),
            );
        }
        None
    }

    /// The range of a number, whether a comparison holds or not.
    fn either_way(&mut self, cond: Inst, value: Value) -> Option<Range> {
        let memo = std::mem::take(&mut self.memo);
        let [x, y] = [true, false].map(|holds| {
            self.supposed.push((cond, holds));
            let range = self.range(value);
            self.supposed.pop();
            self.memo.clear();
            range
        });
        self.memo = memo;
        let (x, y) = (x?, y?);
        Some(self.either(&x, &y))
    }

    /// One of two; the first only where it is below what it is compared with.
    fn selected(&mut self, cond: Value, a: Value, b: Value) -> Option<Range> {
        if let Some(holds) = self.is_supposed(cond) {
            return self.range(if holds { a } else { b });
        }
        let (mut x, y) = (self.range(a)?, self.range(b)?);
        let inst = self.forms.func.dfg.def_inst(cond);
        let data = inst.map(|inst| &self.forms.func.dfg.insts[inst]);
        if let Some(data) = data.filter(|data| data.ipred() == Some(&IntPred::Slt))
            && data.args[0] == a
            && let Some(bound) = self.range(data.args[1])
        {
            let one = self.hosts.number(1);
            let last = self.hosts.sub(bound.hi, one);
            x.hi = self.hosts.min(x.hi, last);
            extend(&mut x.conds, bound.conds);
        }
        Some(self.either(&x, &y))
    }

    /// What one of two branches gives.
    fn of_branches(&mut self, value: Value, inst: Inst) -> Option<Range> {
        let func = self.forms.func;
        let ValueDef::Result(_, index) = func.dfg.values[value].def else {
            return None;
        };
        let mut ranges = Vec::new();
        let supposed = self.is_supposed(func.dfg.insts[inst].args[0]);
        for (way, body) in func.regions(inst).enumerate() {
            // The first one where the condition holds.
            if supposed.is_some_and(|holds| holds != (way == 0)) {
                continue;
            }
            let yielded = &func.dfg.insts[func.order.last(body)?];
            ranges.push(self.range(*yielded.args.get(usize::from(index))?)?);
        }
        let (Some(x), Some(y)) = (ranges.first(), ranges.last()) else {
            return None;
        };
        Some(self.either(x, y))
    }

    /// The range of a sum of products, of all indices of a block of this shape.
    pub fn sum(&mut self, poly: &Poly, shape: Shape) -> Option<Range> {
        let known = self.forms.known(poly).first().copied();
        if let Some(value) = known.filter(|&value| !self.memo_is_open(value)) {
            return self.range(value);
        }
        let mut sum = self.exactly(0);
        for (monomial, c) in poly.terms() {
            let mut product = self.exactly(1);
            if let Some(dim) = monomial.dim() {
                let last = shape.extent(usize::from(dim)) as i64 - 1;
                product.lo = self.hosts.number(0);
                product.hi = self.hosts.number(last);
            }
            for &atom in monomial.atoms() {
                let factor = match atom {
                    Atom::Value(value) => self.range(value)?,
                    Atom::Trip(inst) => self.trips(inst)?,
                };
                product = self.mul(&product, &factor)?;
            }
            let c = self.exactly(c);
            product = self.mul(&product, &c)?;
            sum = self.add(&sum, &product);
        }
        Some(sum)
    }

    /// Whether the range of a value is being computed.
    fn memo_is_open(&self, value: Value) -> bool {
        self.memo.contains_key(&value) && self.depth > 0
    }

    /// A sum of products that the host knows.
    pub fn known(&mut self, poly: &Poly) -> Option<Range> {
        let range = self.sum(poly, Shape::SCALAR)?;
        if range.point().is_some() {
            return Some(range);
        }
        None
    }
}

fn merged(lo: Host, hi: Host, a: &Range, b: &Range) -> Range {
    let mut conds = a.conds.clone();
    extend(&mut conds, b.conds.iter().copied());
    Range { lo, hi, conds }
}
