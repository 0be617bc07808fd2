//! Distances of what stands in memory, by what loads, stores and atomic steps do.

use super::super::{Machine, Outcome, operand, required};
use super::{Off, Slack};
use crate::interp::error::InterpErrorKind;
use crate::interp::error_bounds::unit;
use crate::interp::{Open, float};
use crate::ir::attrs::{Attrs, RmwOp};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Inst, Value};
use crate::ir::level::Tile;
use crate::ir::types::Scalar;

impl Machine<'_> {
    pub(super) fn load_slack(&self, slack: &Slack, data: &InstData<Tile>) -> Outcome<Vec<Off>> {
        slack.decides(data.args.get(..2).unwrap_or(&data.args))?;
        let other = data.args.get(2);
        if slack.memory.is_empty() && other.is_none_or(|&v| !slack.is_loose(v)) {
            return Ok(Vec::new());
        }
        let scalar = self.pointee(data)?;
        let mask = data.args.get(1).map(|&v| self.get(v)).transpose()?;
        let of = |(i, &address): (usize, &u64)| match mask {
            Some(mask) if mask[i] != 1 => other.map_or(Off::default(), |&v| slack.off(v, i)),
            _ => slack.at(address, scalar),
        };
        Ok(self.arg(data, 0)?.iter().enumerate().map(of).collect())
    }

    /// Keeps what a store, which was just done, says about memory.
    pub(in crate::interp::exec) fn store_slack(&mut self, data: &InstData<Tile>) -> Outcome<()> {
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
        slack.decides(&[pointer])?;
        slack.decides(data.args.get(2..).unwrap_or_default())?;
        if slack.memory.is_empty() && !slack.is_loose(value) {
            return Ok(());
        }
        let scalar = self.pointee(data)?;
        let mask = mask.map(|&v| self.get(v)).transpose()?;
        for (i, &address) in self.get(pointer)?.iter().enumerate() {
            if mask.is_none_or(|mask| mask[i] == 1) {
                slack.keep(address, scalar, slack.off(value, i));
            }
        }
        Ok(())
    }

    pub(super) fn rmw_slack(
        &self,
        slack: &mut Slack,
        inst: Inst,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<Off>> {
        let (pointer, value) = (operand(data, 0)?, operand(data, 1)?);
        let mask = data.args.get(2);
        slack.decides(&[pointer])?;
        slack.decides(data.args.get(2..).unwrap_or_default())?;
        let scalar = self.pointee(data)?;
        let rmw: RmwOp = required(data.rmw())?;
        let mask = mask.map(|&v| self.get(v)).transpose()?;
        let (pointers, values) = (self.get(pointer)?, self.get(value)?);
        let mut found = vec![Off::default(); pointers.len()];
        for (i, (&address, &old)) in pointers.iter().zip(self.get(result)?).enumerate() {
            if mask.is_some_and(|mask| mask[i] != 1) {
                continue;
            }
            let (before, added) = (slack.at(address, scalar), slack.off(value, i));
            found[i] = before;
            let mut after = combined(rmw, scalar, [before, added], [old, values[i]]);
            after.begun_at(inst, Open::Unfollowed);
            slack.keep(address, scalar, after);
        }
        Ok(found)
    }

    pub(super) fn cas_slack(
        &self,
        slack: &mut Slack,
        data: &InstData<Tile>,
        result: Value,
    ) -> Outcome<Vec<Off>> {
        let [pointer, expected, value] = [operand(data, 0)?, operand(data, 1)?, operand(data, 2)?];
        let scalar = self.pointee(data)?;
        let pointers = self.get(pointer)?;
        slack.decides(&[pointer, expected])?;
        let mut held = pointers.iter().map(|&address| slack.at(address, scalar));
        if let Some(off) = held.find(|off| off.by > 0.0) {
            return Err(InterpErrorKind::Undecided(off.cause));
        }
        let (olds, expected) = (self.get(result)?, self.get(expected)?);
        for (i, &address) in pointers.iter().enumerate() {
            if olds[i] == expected[i] {
                slack.keep(address, scalar, slack.off(value, i));
            }
        }
        Ok(Vec::new())
    }
}

/// How far what was combined may be off, of numbers that may be so far off each.
pub(in crate::interp::exec) fn combined(
    rmw: RmwOp,
    scalar: Scalar,
    [before, added]: [Off; 2],
    numbers: [u64; 2],
) -> Off {
    let by = match rmw {
        RmwOp::Fadd => {
            let [old, new] = numbers.map(|bits| float::to_f64(scalar, bits).abs());
            let terms = old + new;
            // A sum with zero is exact; larger ones may be formed in another order.
            let is_exact = old == 0.0 || new == 0.0;
            let own = match is_exact || !terms.is_finite() {
                true => 0.0,
                false => 2.0 * unit(scalar) * terms,
            };
            before.by + added.by + own
        }
        RmwOp::Add => before.by + added.by,
        RmwOp::Xchg => return added,
        RmwOp::Smax | RmwOp::Smin | RmwOp::Umax | RmwOp::Umin => before.by.max(added.by),
        RmwOp::And | RmwOp::Or | RmwOp::Xor if before.by + added.by > 0.0 => f64::INFINITY,
        RmwOp::And | RmwOp::Or | RmwOp::Xor => 0.0,
    };
    let cause = before.cause.or(added.cause);
    Off { by, cause }
}
