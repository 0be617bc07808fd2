//! How far results of other executors may be from the interpreter's: see [`crate::interp::run_bounded`].

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Elems, Machine, Outcome, operand, required};
use crate::interp::error::InterpErrorKind;
use crate::interp::stated::{Stated, contracted, format, stated, ulp, unit};
use crate::interp::{Bounded, float, int};
use crate::ir::attrs::{Attrs, DotPrecision, RmwOp};
use crate::ir::dfg::{InstData, ValueDef};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, Scalar};
use crate::num::Rounding;

/// What is known about distances while a kernel runs.
#[derive(Debug)]
pub(in crate::interp) struct Slack {
    /// For each element; empty where all are exact.
    pub(super) values: SecondaryMap<Value, Vec<f64>>,
    /// By address, with the type that the element was stored as.
    memory: FxHashMap<u64, (Scalar, f64)>,
    /// Whether products may be contracted.
    fused: bool,
    /// Reductions and scans around, whose order is open.
    combining: u32,
    /// Sums that a loop carries of what is reduced in it.
    deferred: FxHashSet<Inst>,
    /// Whether something was printed that is not exact.
    pub(super) is_printed: bool,
}

impl Slack {
    /// Of a launch in which everything given is exact.
    pub(in crate::interp) fn new(func: &TileFunction, fused: bool) -> Slack {
        let deferred = if fused {
            deferred_sums(func)
        } else {
            FxHashSet::default()
        };
        Slack {
            values: SecondaryMap::new(),
            memory: FxHashMap::default(),
            fused,
            combining: 0,
            deferred,
            is_printed: false,
        }
    }

    /// What it comes to.
    pub(in crate::interp) fn finish(self) -> Bounded {
        Bounded {
            elements: self.memory,
            is_printed: self.is_printed,
        }
    }

    fn of(&self, value: Value, i: usize) -> f64 {
        self.values[value].get(i).copied().unwrap_or(0.0)
    }

    fn is_loose(&self, value: Value) -> bool {
        !self.values[value].is_empty()
    }

    fn keep(&mut self, address: u64, scalar: Scalar, slack: f64) {
        if slack > 0.0 {
            self.memory.insert(address, (scalar, slack));
        } else {
            self.memory.remove(&address);
        }
    }

    /// Of an element in memory, read as a type.
    fn at(&self, address: u64, scalar: Scalar) -> f64 {
        match self.memory.get(&address) {
            None => 0.0,
            Some(&(stored, slack)) if stored == scalar => slack,
            Some(_) => f64::INFINITY,
        }
    }
}

/// Sums in loops of a carried value and a reduction: the only ones whose order compilation changes.
fn deferred_sums(func: &TileFunction) -> FxHashSet<Inst> {
    let mut bodies = FxHashSet::default();
    let mut sums = FxHashSet::default();
    for block in func.all_blocks() {
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            match data.op {
                TileOp::For => bodies.extend(data.blocks.iter().map(|call| call.block)),
                TileOp::Fadd => {
                    let is_carried = |&value: &Value| {
                        let def = func.dfg.values[value].def;
                        matches!(def, ValueDef::Param(block, _) if bodies.contains(&block))
                    };
                    let is_reduced = |&value: &Value| is_reduced(func, value);
                    if data.args.iter().any(is_carried) && data.args.iter().any(is_reduced) {
                        sums.insert(inst);
                    }
                }
                _ => {}
            }
        }
    }
    sums
}

/// Whether a value is the result of a reduction, in whatever shape.
fn is_reduced(func: &TileFunction, mut value: Value) -> bool {
    while let Some(inst) = func.dfg.def_inst(value) {
        let data = &func.dfg.insts[inst];
        match (data.op, data.args.first()) {
            (TileOp::Reduce, _) => return true,
            (
                TileOp::ExpandDims
                | TileOp::Reshape
                | TileOp::ConvertLayout
                | TileOp::Splat
                | TileOp::Broadcast,
                Some(&from),
            ) => value = from,
            _ => return false,
        }
    }
    false
}

impl<'a> Machine<'a> {
    /// An error if one of the values is not exact, as what happens next depends on it.
    pub(super) fn check_decided(&self, values: &[Value]) -> Outcome<()> {
        match &self.slack {
            Some(slack) if values.iter().any(|&v| slack.is_loose(v)) => {
                Err(InterpErrorKind::Undecided)
            }
            _ => Ok(()),
        }
    }

    /// Runs a reduction or scan, whose order is open or not.
    pub(super) fn combining<T>(
        &mut self,
        is_open: bool,
        run: impl FnOnce(&mut Machine<'a>) -> Outcome<T>,
    ) -> Outcome<T> {
        let levels = u32::from(is_open);
        if let Some(slack) = &mut self.slack {
            slack.combining += levels;
        }
        let result = run(self)?;
        if let Some(slack) = &mut self.slack {
            slack.combining -= levels;
        }
        Ok(result)
    }

    /// Finds the slack of an op's result, which was just computed.
    pub(super) fn widen(
        &mut self,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<()> {
        // While it is out, the op is executed for other operands without any.
        let Some(mut slack) = self.slack.take() else {
            return Ok(());
        };
        let found = self.result_slack(&mut slack, inst, data, result);
        self.slack = Some(slack);
        let found = found?;
        if let Some(slack) = &mut self.slack {
            let is_exact = found.iter().all(|&s| s == 0.0);
            slack.values[result] = if is_exact { Vec::new() } else { found };
        }
        Ok(())
    }

    fn result_slack(
        &mut self,
        slack: &mut Slack,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<f64>> {
        let mut loose: SmallVec<[Value; 4]> = SmallVec::new();
        for &value in &data.args {
            if slack.is_loose(value) && !loose.contains(&value) {
                loose.push(value);
            }
        }
        let mut found = match data.op {
            TileOp::Load => return self.load_slack(slack, data),
            TileOp::AtomicRmw => return self.rmw_slack(slack, data, result),
            TileOp::AtomicCas => return self.cas_slack(slack, data, result),
            TileOp::Dot | TileOp::DotStart => return self.dot_slack(slack, data, result),
            TileOp::AsyncCopy | TileOp::SharedLoad | TileOp::SharedView
                if !slack.memory.is_empty() =>
            {
                return Err(InterpErrorKind::Undecided);
            }
            _ if loose.is_empty() => Vec::new(),
            TileOp::DotSum | TileOp::DotDone => return Ok(slack.values[operand(data, 0)?].clone()),
            _ if !data.op.info().is_pure() => return Err(InterpErrorKind::Undecided),
            TileOp::Icmp | TileOp::Fcmp => self.comparison_slack(slack, data)?,
            op if is_followed(op, self.func.dfg.ty(result).elem) => {
                self.corners(slack, inst, data, result, &loose)?
            }
            _ => self.all_loose(slack, &loose, result)?,
        };
        self.add_own(slack, inst, data, result, &mut found)?;
        Ok(found)
    }

    /// The largest distances of the results for operands at the ends of where they may be.
    fn corners(
        &mut self,
        slack: &Slack,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
        loose: &[Value],
    ) -> Outcome<Vec<f64>> {
        let func = self.func;
        let kept: SmallVec<[Elems; 4]> = loose.iter().map(|&v| self.values[v].clone()).collect();
        let exact = self.values[result].clone();
        let to = func.dfg.ty(result).elem;
        let mut found = vec![0.0f64; exact.len()];
        for corner in 0..1u32 << loose.len() {
            for (i, (&value, kept)) in loose.iter().zip(&kept).enumerate() {
                let elem = func.dfg.ty(value).elem;
                let up = corner >> i & 1 == 1;
                let moved = kept.iter().enumerate();
                let moved = moved.map(|(i, &bits)| moved_by(elem, bits, slack.of(value, i), up));
                self.values[value] = moved.collect();
            }
            // What the op finds wrong with an operand that may not occur says nothing.
            self.inst(inst).map_err(|_| InterpErrorKind::Undecided)?;
            for ((found, &exact), &moved) in found.iter_mut().zip(&exact).zip(&self.values[result])
            {
                *found = found.max(distance(to, exact, moved));
            }
        }
        for (&value, kept) in loose.iter().zip(kept) {
            self.values[value] = kept;
        }
        self.values[result] = exact;
        self.forget_poles(slack, data, &mut found)?;
        Ok(found)
    }

    /// Functions that have poles or turn around between the ends.
    fn forget_poles(&self, slack: &Slack, data: &InstData<Tile>, found: &mut [f64]) -> Outcome<()> {
        let index = match data.op {
            TileOp::Fdiv | TileOp::FdivRn => 1,
            TileOp::Rcp
            | TileOp::RcpFtz
            | TileOp::Sin
            | TileOp::Cos
            | TileOp::Tan
            | TileOp::SinApprox
            | TileOp::CosApprox
            | TileOp::Lgamma => 0,
            _ => return Ok(()),
        };
        let is_quotient = matches!(
            data.op,
            TileOp::Fdiv | TileOp::FdivRn | TileOp::Rcp | TileOp::RcpFtz
        );
        let (value, scalar) = (operand(data, index)?, self.scalar(data, index)?);
        for (i, (found, &bits)) in found.iter_mut().zip(self.get(value)?).enumerate() {
            let x = float::to_f64(scalar, bits);
            let most = if is_quotient { x.abs() } else { 1.0 / 16.0 };
            let moves = slack.of(value, i);
            if moves > 0.0 && moves >= most {
                *found = f64::INFINITY;
            }
        }
        Ok(())
    }

    /// Nothing is known of results that a loose element goes into.
    fn all_loose(&self, slack: &Slack, loose: &[Value], result: Value) -> Outcome<Vec<f64>> {
        let count = self.get(result)?.len();
        let unknown = |i: usize| {
            let is_loose = |&v: &Value| slack.values[v].len() != count || slack.of(v, i) > 0.0;
            if loose.iter().any(is_loose) {
                f64::INFINITY
            } else {
                0.0
            }
        };
        Ok((0..count).map(unknown).collect())
    }

    /// A comparison is open where its operands may be equal.
    fn comparison_slack(&self, slack: &Slack, data: &InstData<Tile>) -> Outcome<Vec<f64>> {
        let (x, y) = (operand(data, 0)?, operand(data, 1)?);
        let elem = self.func.dfg.ty(x).elem;
        let pairs = self.get(x)?.iter().zip(self.get(y)?).enumerate();
        let open = pairs.map(|(i, (&a, &b))| {
            let slack = slack.of(x, i) + slack.of(y, i);
            let apart = (number(elem, a) - number(elem, b)).abs();
            let is_open = x != y && slack > 0.0 && (apart <= slack || slack.is_infinite());
            f64::from(u8::from(is_open))
        });
        Ok(open.collect())
    }

    /// Adds what the op itself may err by.
    fn add_own(
        &self,
        slack: &Slack,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
        found: &mut Vec<f64>,
    ) -> Outcome<()> {
        let Elem::Num(scalar) = self.func.dfg.ty(result).elem else {
            return Ok(());
        };
        if !scalar.is_float() {
            return Ok(());
        }
        let is_sum = matches!(data.op, TileOp::Fadd | TileOp::Fsub | TileOp::Fma);
        let own = match data.op {
            _ if is_sum && (slack.combining > 0 || slack.deferred.contains(&inst)) => None,
            TileOp::Fmul if slack.combining > 0 => Some(Stated::ulps(2.0)),
            TileOp::Fmul if slack.fused => Some(contracted()),
            op => match stated(op, scalar) {
                Some(stated) => Some(stated),
                None => return Ok(()),
            },
        };
        let results = self.get(result)?;
        let first = self.arg(data, 0)?;
        found.resize(results.len(), 0.0);
        for (i, (found, &bits)) in found.iter_mut().zip(results).enumerate() {
            let y = float::to_f64(scalar, bits);
            if !y.is_finite() {
                continue;
            }
            *found += match own {
                Some(own) => own.at(scalar, float::to_f64(scalar, first[i]), y),
                None => {
                    let size = |index: usize| -> Outcome<f64> {
                        Ok(float::to_f64(scalar, self.arg(data, index)?[i]).abs())
                    };
                    let terms = match data.op {
                        TileOp::Fma => size(0)? * size(1)? + size(2)?,
                        _ => size(0)? + size(1)?,
                    };
                    2.0 * unit(scalar) * terms
                }
            };
        }
        Ok(())
    }

    fn load_slack(&self, slack: &Slack, data: &InstData<Tile>) -> Outcome<Vec<f64>> {
        if data.args.iter().take(2).any(|&v| slack.is_loose(v)) {
            return Err(InterpErrorKind::Undecided);
        }
        let other = data.args.get(2);
        if slack.memory.is_empty() && other.is_none_or(|&v| !slack.is_loose(v)) {
            return Ok(Vec::new());
        }
        let scalar = self.pointee(data)?;
        let mask = data.args.get(1).map(|&v| self.get(v)).transpose()?;
        let of = |(i, &address): (usize, &u64)| match mask {
            Some(mask) if mask[i] != 1 => other.map_or(0.0, |&v| slack.of(v, i)),
            _ => slack.at(address, scalar),
        };
        Ok(self.arg(data, 0)?.iter().enumerate().map(of).collect())
    }

    /// Keeps what a store, which was just done, says about memory.
    pub(super) fn store_slack(&mut self, data: &InstData<Tile>) -> Outcome<()> {
        let Some(mut slack) = self.slack.take() else {
            return Ok(());
        };
        let kept = self.keep_stored(&mut slack, data);
        self.slack = Some(slack);
        kept
    }

    fn keep_stored(&self, slack: &mut Slack, data: &InstData<Tile>) -> Outcome<()> {
        let (pointer, value) = (operand(data, 0)?, operand(data, 1)?);
        let mask = data.args.get(2);
        if slack.is_loose(pointer) || mask.is_some_and(|&v| slack.is_loose(v)) {
            return Err(InterpErrorKind::Undecided);
        }
        if slack.memory.is_empty() && !slack.is_loose(value) {
            return Ok(());
        }
        let scalar = self.pointee(data)?;
        let mask = mask.map(|&v| self.get(v)).transpose()?;
        for (i, &address) in self.get(pointer)?.iter().enumerate() {
            if mask.is_none_or(|mask| mask[i] == 1) {
                slack.keep(address, scalar, slack.of(value, i));
            }
        }
        Ok(())
    }

    fn rmw_slack(
        &self,
        slack: &mut Slack,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<f64>> {
        let (pointer, value) = (operand(data, 0)?, operand(data, 1)?);
        let mask = data.args.get(2);
        if slack.is_loose(pointer) || mask.is_some_and(|&v| slack.is_loose(v)) {
            return Err(InterpErrorKind::Undecided);
        }
        let scalar = self.pointee(data)?;
        let rmw: RmwOp = required(data.rmw())?;
        let mask = mask.map(|&v| self.get(v)).transpose()?;
        let (pointers, values) = (self.get(pointer)?, self.get(value)?);
        let mut found = vec![0.0; pointers.len()];
        for (i, (&address, &old)) in pointers.iter().zip(self.get(result)?).enumerate() {
            if mask.is_some_and(|mask| mask[i] != 1) {
                continue;
            }
            let (before, added) = (slack.at(address, scalar), slack.of(value, i));
            found[i] = before;
            let after = match rmw {
                RmwOp::Fadd => {
                    let size = |bits| float::to_f64(scalar, bits).abs();
                    let terms = size(old) + size(values[i]);
                    // A sum with zero is exact; larger ones may be formed in another order.
                    let is_exact = size(old) == 0.0 || size(values[i]) == 0.0;
                    let own = if is_exact {
                        0.0
                    } else {
                        2.0 * unit(scalar) * terms
                    };
                    before + added + if terms.is_finite() { own } else { 0.0 }
                }
                RmwOp::Add => before + added,
                RmwOp::Xchg => added,
                RmwOp::Smax | RmwOp::Smin | RmwOp::Umax | RmwOp::Umin => before.max(added),
                RmwOp::And | RmwOp::Or | RmwOp::Xor if before + added > 0.0 => f64::INFINITY,
                RmwOp::And | RmwOp::Or | RmwOp::Xor => 0.0,
            };
            slack.keep(address, scalar, after);
        }
        Ok(found)
    }

    fn cas_slack(
        &self,
        slack: &mut Slack,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<f64>> {
        let [pointer, expected, value] = [operand(data, 0)?, operand(data, 1)?, operand(data, 2)?];
        let scalar = self.pointee(data)?;
        let pointers = self.get(pointer)?;
        let is_open = |&address: &u64| slack.at(address, scalar) > 0.0;
        if slack.is_loose(pointer) || slack.is_loose(expected) || pointers.iter().any(is_open) {
            return Err(InterpErrorKind::Undecided);
        }
        let (olds, expected) = (self.get(result)?, self.get(expected)?);
        for (i, &address) in pointers.iter().enumerate() {
            if olds[i] == expected[i] {
                slack.keep(address, scalar, slack.of(value, i));
            }
        }
        Ok(Vec::new())
    }

    /// See the section on products of matrices in [`crate::ir`].
    fn dot_slack(&self, slack: &Slack, data: &InstData<Tile>, result: Value) -> Outcome<Vec<f64>> {
        let [x, y, acc] = [operand(data, 0)?, operand(data, 1)?, operand(data, 2)?];
        let shape = |value| self.func.dfg.ty(value).shape;
        let (left, to) = (shape(x), shape(result));
        let rank = to.rank();
        let extent = |dim: usize| to.extent(dim) as usize;
        let (rows, columns) = (extent(rank - 2), extent(rank - 1));
        let inner = left.extent(rank - 1) as usize;
        let scalar = self.result_scalar(data)?;
        let elem = |value| self.func.dfg.ty(value).elem;
        let precision: DotPrecision = required(data.precision())?;
        let is_wide = elem(x) == Elem::Num(Scalar::F32);
        let u = match scalar {
            _ if is_wide && precision == DotPrecision::Tf32x3 => (2.0f64).powi(-19),
            Scalar::F64 => unit(Scalar::F64),
            _ => unit(Scalar::F32),
        };
        // An operand that moves may be cut to another number of 11 bits.
        let cut = match is_wide && precision == DotPrecision::Tf32 {
            true => (2.0f64).powi(-10),
            false => 0.0,
        };
        let (xs, ys, accs) = (self.get(x)?, self.get(y)?, self.get(acc)?);
        let size = |elem, bits| number(elem, bits).abs();
        let of = |(flat, &bits): (usize, &u64)| {
            let (column, row) = (flat % columns, flat / columns % rows);
            let batch = flat / columns / rows;
            let mut sizes = size(elem(acc), accs[flat]);
            let mut moved = slack.of(acc, flat);
            let mut is_whole = sizes.fract() == 0.0;
            for k in 0..inner {
                let (i, j) = (
                    (batch * rows + row) * inner + k,
                    (batch * inner + k) * columns + column,
                );
                let (a, b) = (size(elem(x), xs[i]), size(elem(y), ys[j]));
                let (da, db) = (slack.of(x, i), slack.of(y, j));
                sizes += a * b;
                is_whole &= (a * b).fract() == 0.0;
                if da > 0.0 || db > 0.0 {
                    moved += a * db + b * da + da * db + cut * a * b;
                }
            }
            let total = number(elem(acc), bits);
            if !scalar.is_float() || !total.is_finite() {
                return moved;
            }
            let is_exact = is_whole && cut == 0.0 && sizes <= 1.0 / u;
            let own = match is_exact {
                true => 0.0,
                false => (inner as f64 + 2.0) * u * sizes,
            };
            moved
                + own
                + if moved + own > 0.0 {
                    ulp(scalar, total)
                } else {
                    0.0
                }
        };
        Ok(self.get(result)?.iter().enumerate().map(of).collect())
    }
}

/// Whether results at the ends of where operands may be say where the result may be.
fn is_followed(op: TileOp, to: Elem) -> bool {
    match op {
        TileOp::And | TileOp::Or | TileOp::Xor => to == Elem::Num(Scalar::I1),
        TileOp::Sdiv
        | TileOp::Udiv
        | TileOp::Srem
        | TileOp::Urem
        | TileOp::Shl
        | TileOp::Sshr
        | TileOp::Ushr
        | TileOp::Smulhi
        | TileOp::Umulhi
        | TileOp::Popc
        | TileOp::Clz
        | TileOp::Brev
        | TileOp::BytePerm
        | TileOp::Itrunc
        | TileOp::Frem
        | TileOp::Gather
        | TileOp::Histogram
        | TileOp::InlinePtx => false,
        _ => true,
    }
}

/// The number that bits stand for; integers are signed, but for truth values.
fn number(elem: Elem, bits: u64) -> f64 {
    match elem {
        Elem::Num(scalar) if scalar.is_float() => float::to_f64(scalar, bits),
        Elem::Num(Scalar::I1) => bits as f64,
        _ => int::signed(elem.bits(), bits) as f64,
    }
}

/// How far an element is from what it is for other operands.
fn distance(elem: Elem, exact: u64, moved: u64) -> f64 {
    if exact == moved {
        return 0.0;
    }
    let (a, b) = (number(elem, exact), number(elem, moved));
    if a.is_nan() && b.is_nan() {
        return 0.0;
    }
    let apart = (a - b).abs();
    if apart.is_nan() { f64::INFINITY } else { apart }
}

/// The element moved by its slack, away from itself to a number of the type.
fn moved_by(elem: Elem, bits: u64, slack: f64, up: bool) -> u64 {
    if slack == 0.0 {
        return bits;
    }
    let Elem::Num(scalar) = elem else {
        return bits;
    };
    let sign = if up { 1.0 } else { -1.0 };
    if !scalar.is_float() {
        let (low, high) = match scalar {
            Scalar::I1 => (0, 1),
            _ => (
                -1i128 << (scalar.bits() - 1),
                (1i128 << (scalar.bits() - 1)) - 1,
            ),
        };
        let from = match scalar {
            Scalar::I1 => bits as i128,
            _ => i128::from(int::signed(scalar.bits(), bits)),
        };
        // What does not fit saturates.
        let by = (sign * slack.ceil()) as i128;
        return int::low_bits(
            scalar.bits(),
            from.saturating_add(by).clamp(low, high) as u64,
        );
    }
    let x = float::to_f64(scalar, bits);
    if !x.is_finite() {
        return bits;
    }
    let rounding = if up { Rounding::Up } else { Rounding::Down };
    let format = format(scalar);
    let by = slack.max(f64::MIN_POSITIVE);
    let mut target = x + sign * by;
    if target == x {
        target = if up { x.next_up() } else { x.next_down() };
    }
    format.from_f64(target, rounding, format.overflow())
}
