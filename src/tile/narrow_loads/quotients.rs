//! Quotients of indices for the first elements of runs.

use super::{Narrower, Runs, every, narrowed, of_source, without};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{Inst, Value};
use crate::ir::ops::TileOp;
use crate::tile::edit::signed;
use crate::tile::maker::Maker;

impl Narrower<'_> {
    /// A quotient of indices by a power of two that each run is a multiple of, without division.
    pub(super) fn quotient(&mut self, inst: Inst, runs: &Runs) -> Option<Value> {
        let data = &self.func.dfg.insts[inst];
        if !matches!(data.op, TileOp::Sdiv | TileOp::Udiv) {
            return None;
        }
        let divisor = self.axis.info(data.args[1]).constant()?;
        let by = u8::try_from(divisor.checked_ilog2()?).ok()?;
        let dividend = data.args[0];
        let is_exact = divisor.count_ones() == 1 && self.divides(dividend, by, runs);
        is_exact.then(|| self.divided(dividend, by, runs))
    }

    /// Whether the first elements of runs can be divided without a remainder, part by part.
    fn divides(&self, value: Value, by: u8, runs: &Runs) -> bool {
        let Some(inst) = self.func.dfg.def_inst(value) else {
            return false;
        };
        let data = &self.func.dfg.insts[inst];
        match data.op {
            TileOp::Arange => {
                let start = data.start().copied().unwrap_or(0);
                by <= runs[0] && start.trailing_zeros() >= u32::from(by)
            }
            TileOp::Const => data
                .value()
                .is_some_and(|bits| bits.trailing_zeros() >= u32::from(by)),
            TileOp::Splat => {
                let info = self.axis.info(data.args[0]);
                self.axis.at_least(&info.dim(0).divisibility, by)
            }
            // What multiples of eight leave of a multiple of eight is eight times what the quotients leave.
            TileOp::Srem | TileOp::Urem => data.args.iter().all(|&arg| self.divides(arg, by, runs)),
            TileOp::Iadd => data
                .args
                .iter()
                .all(|&arg| self.axis.info(arg).is_non_negative() && self.divides(arg, by, runs)),
            TileOp::ExpandDims => data
                .axis()
                .is_some_and(|&axis| self.divides(data.args[0], by, &without(runs, axis as usize))),
            TileOp::Broadcast => {
                let source = data.args[0];
                self.divides(source, by, &of_source(self.func.dfg.ty(source).shape, runs))
            }
            _ => false,
        }
    }

    /// The first elements of runs, divided.
    fn divided(&mut self, value: Value, by: u8, runs: &Runs) -> Value {
        let Some(inst) = self.func.dfg.def_inst(value) else {
            return value;
        };
        let data = self.func.dfg.insts[inst].clone();
        let args: Vec<Value> = match data.op {
            TileOp::Iadd | TileOp::Srem | TileOp::Urem => data
                .args
                .iter()
                .map(|&arg| self.divided(arg, by, runs))
                .collect(),
            TileOp::ExpandDims => {
                let axis = data.axis().map_or(0, |&axis| axis as usize);
                vec![self.divided(data.args[0], by, &without(runs, axis))]
            }
            TileOp::Broadcast => {
                let source = data.args[0];
                vec![self.divided(source, by, &of_source(self.func.dfg.ty(source).shape, runs))]
            }
            _ => data.args.to_vec(),
        };
        let ty = narrowed(self.func.dfg.ty(value), runs);
        let mut maker = Maker::new(self.func);
        maker.loc = data.loc;
        let new = match data.op {
            TileOp::Arange => {
                let start = *data.start().unwrap_or(&0) >> by;
                every(&mut maker, start, ty, runs[0] - by)
            }
            TileOp::Const => {
                let number = signed(maker.func, value).unwrap_or(0);
                maker.number(number >> by, ty)
            }
            TileOp::Splat => {
                let scalar = maker.func.dfg.ty(args[0]);
                let divisor = maker.number(1 << by, scalar);
                let quotient = maker.value(TileOp::Sdiv, &[args[0], divisor], &[], scalar);
                maker.value(TileOp::Splat, &[quotient], &[], ty)
            }
            _ if data.op == TileOp::Broadcast && maker.func.dfg.ty(args[0]) == ty => args[0],
            _ => maker.value(data.op, &args, &data.attrs, ty),
        };
        let made = maker.made;
        self.place(inst, 1, &made);
        new
    }
}
