//! Distances of what ops compute element by element, and what they may err by themselves.

use smallvec::SmallVec;

use super::super::{Elems, Machine, Outcome, operand};
use super::{Off, Slack, number};
use crate::interp::error_bounds::{Stated, contracted, format, stated, unit};
use crate::interp::{Cause, float, int};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Tile;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};
use crate::num::Rounding;

impl Machine<'_> {
    /// The largest distances of the results for operands at the ends of where they may be.
    pub(super) fn corners(
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
            self.inst(inst).map_err(|_| slack.undecided(loose))?;
            for ((found, &exact), &moved) in found.iter_mut().zip(&exact).zip(&self.values[result])
            {
                *found = found.max(distance(to, exact, moved));
            }
        }
        for (&value, kept) in loose.iter().zip(kept) {
            self.values[value] = kept;
        }
        self.values[result] = exact;
        if to.is_int() && to != Elem::Num(Scalar::I1) {
            // Arithmetic of integers wraps around: what lies between the ends may go anywhere.
            let is_anything = |v: &Value, i: usize| slack.of(*v, i).is_infinite();
            for (i, found) in found.iter_mut().enumerate() {
                if *found > 0.0 && loose.iter().any(|v| is_anything(v, i)) {
                    *found = f64::INFINITY;
                }
            }
        }
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

    /// Nothing is known of results that a loose element goes into; of ops that work element by element.
    pub(super) fn all_loose(
        &self,
        slack: &Slack,
        loose: &[Value],
        result: Value,
    ) -> Outcome<Vec<f64>> {
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
    pub(super) fn comparison_slack(
        &self,
        slack: &Slack,
        data: &InstData<Tile>,
    ) -> Outcome<Vec<f64>> {
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

    /// Nothing is known of quotients and remainders of integers that are not defined.
    pub(super) fn open_quotients(
        &self,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
        found: &mut Vec<Off>,
    ) -> Outcome<()> {
        use TileOp::{Sdiv, Srem, Udiv, Urem};
        if matches!(data.op, Sdiv | Udiv | Srem | Urem) {
            found.resize(self.get(result)?.len(), Off::default());
            for (found, why) in found.iter_mut().zip(self.undefined_quotients(data)?) {
                if let Some(why) = why {
                    let cause = Some(Cause { inst, why });
                    let by = f64::INFINITY;
                    *found = Off { by, cause };
                }
            }
        }
        Ok(())
    }

    /// Adds what a sum may err by that becomes the accumulator of a product of so long sums: the unit cuts it in each of its steps. Of
    /// small whole numbers it cuts nothing.
    fn add_taken(
        &self,
        slack: &Slack,
        data: &InstData<Tile>,
        (product, inner): (usize, u64),
        scalar: Scalar,
        found: &mut Vec<f64>,
    ) -> Outcome<()> {
        let (products, others) = (self.arg(data, product)?, self.arg(data, 1 - product)?);
        let u = match scalar {
            Scalar::F64 => unit(Scalar::F64),
            _ => unit(Scalar::F32),
        };
        found.resize(products.len(), 0.0);
        for (i, found) in found.iter_mut().enumerate() {
            let [p, other] = [products[i], others[i]].map(|bits| float::to_f64(scalar, bits));
            let is_whole = p.fract() == 0.0 && other.fract() == 0.0;
            let is_small = p.abs() + other.abs() < 0.5 / u;
            let is_exact = is_whole && is_small && slack.of(data.args[product], i) == 0.0;
            if !is_exact && p.is_finite() && other.is_finite() {
                *found += (inner as f64 + 2.0) * u * other.abs();
            }
        }
        Ok(())
    }

    /// Adds what the op itself may err by.
    pub(super) fn add_own(
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
        if let Some(&(product, inner)) = slack.taken.get(&inst) {
            self.add_taken(slack, data, (product, inner), scalar, found)?;
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
                // Of finite terms another order may not get there.
                let is_finite = |index: usize| -> Outcome<bool> {
                    Ok(float::to_f64(scalar, self.arg(data, index)?[i]).is_finite())
                };
                if own.is_none()
                    && is_finite(0)?
                    && is_finite(1)?
                    && is_finite(data.args.len() - 1)?
                {
                    *found = f64::INFINITY;
                }
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
}

/// Whether results at the ends of where operands may be say where the result may be.
pub(super) fn is_followed(op: TileOp, to: Elem) -> bool {
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
        | TileOp::InlinePtx => false,
        _ => true,
    }
}

/// How far an element is from what it is for other operands.
pub(super) fn distance(elem: Elem, exact: u64, moved: u64) -> f64 {
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
    let rounding = if up { Rounding::Up } else { Rounding::Down };
    let format = format(scalar);
    if !x.is_finite() {
        // Elsewhere it may be any number.
        let other = format.from_f64(sign * f64::INFINITY, rounding, format.overflow());
        return if slack.is_infinite() { other } else { bits };
    }
    let by = slack.max(f64::MIN_POSITIVE);
    let mut target = x + sign * by;
    if target == x {
        target = if up { x.next_up() } else { x.next_down() };
    }
    format.from_f64(target, rounding, format.overflow())
}
