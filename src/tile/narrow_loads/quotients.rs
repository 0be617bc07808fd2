//! Quotients of indices for the first elements of runs.

use super::{Narrower, PROMISES, Runs, again, every, narrowed, of_fewer};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::tile::edit::signed;

/// A division by 2^`by`.
#[derive(Clone, Copy)]
struct Division {
    op: TileOp,
    by: u8,
}

impl Narrower<'_> {
    /// A quotient of indices by a power of two of which the first elements of runs are multiples, without division; none if they are not
    /// known to be, part by part.
    pub(super) fn quotient(&mut self, inst: Inst, runs: &Runs) -> Option<Value> {
        let data = &self.func.dfg.insts[inst];
        if !matches!(data.op, TileOp::Sdiv | TileOp::Udiv) {
            return None;
        }
        let divisor = self.axis.info(data.args[1]).constant()?;
        let division = Division {
            op: data.op,
            by: u8::try_from(divisor.checked_ilog2()?).ok()?,
        };
        let dividend = data.args[0];
        (divisor.count_ones() == 1).then_some(())?;
        self.divided(dividend, division, runs)
    }

    /// The first elements of runs, divided.
    fn divided(&mut self, value: Value, division: Division, runs: &Runs) -> Option<Value> {
        let by = division.by;
        let inst = self.func.dfg.def_inst(value)?;
        let data = self.func.dfg.insts[inst].clone();
        if PROMISES.contains(&data.op) {
            return self.divided(data.args[0], division, runs);
        }
        let remainder = match division.op {
            TileOp::Udiv => TileOp::Urem,
            _ => TileOp::Srem,
        };
        let fewer = of_fewer(self.func, &data, runs);
        let args: Vec<Value> = match (data.op, fewer) {
            (_, Some((source, runs))) => vec![self.divided(source, division, &runs)?],
            (TileOp::Arange | TileOp::Const | TileOp::Splat, _) => data.args.to_vec(),
            // What multiples of eight leave of a multiple of eight is eight times what the quotients leave. Sums of what is not negative
            // are taken not to wrap.
            (op, _) if op == remainder || op == TileOp::Iadd && self.is_natural_sum(&data.args) => {
                let parts = data.args.iter();
                parts
                    .map(|&arg| self.divided(arg, division, runs))
                    .collect::<Option<_>>()?
            }
            _ => return None,
        };
        // Numbers whose lowest bits are zero.
        let is_multiple = |number: i64| 0 <= number && number.trailing_zeros() >= u32::from(by);
        let fits = match data.op {
            TileOp::Arange => by <= runs[0] && is_multiple(i64::from(*data.start()?)),
            TileOp::Const => is_multiple(signed(self.func, value)?),
            TileOp::Splat => {
                let info = self.axis.info(args[0]);
                self.axis.at_least(&info.dim(0).divisibility, by)
            }
            _ => true,
        };
        fits.then_some(())?;
        Some(self.near(inst, |maker| {
            let ty = narrowed(maker.func.dfg.ty(value), runs);
            match data.op {
                TileOp::Arange => {
                    let start = *data.start().unwrap_or(&0) >> by;
                    every(maker, start, ty, runs[0] - by)
                }
                TileOp::Const => {
                    let number = signed(maker.func, value).unwrap_or(0);
                    maker.number(number >> by, ty)
                }
                TileOp::Splat => {
                    let scalar = maker.func.dfg.ty(args[0]);
                    let divisor = maker.number(1 << by, scalar);
                    let quotient = maker.value(division.op, &[args[0], divisor], &[], scalar);
                    maker.value(TileOp::Splat, &[quotient], &[], ty)
                }
                _ => again(maker, &data, &args, ty),
            }
        }))
    }

    fn is_natural_sum(&self, parts: &[Value]) -> bool {
        let mut parts = parts.iter();
        parts.all(|&part| self.axis.info(part).is_non_negative())
    }
}
