//! Reductions over lanes.
//!
//! A butterfly of `l` lane bits moves all `r` registers `l` times and leaves all lanes with the same. If lanes exchange halves
//! instead, each lane goes on with the half that it received, so that the first steps move `r/2`, `r/4`, ... registers; what each has in
//! the end is gathered in as many steps backwards, or through the shared memory that a reduction over warps goes through
//! anyway. (The reduce-scatter and all-gather of Rabenseifner's all-reduce, 2004.)

use crate::ir::attrs::{RedOp, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Value};
use crate::ir::ops::{ThreadOp, TileOp};
use crate::ir::types::Elem;
use crate::linear_layout::layout::HwDim;

use super::arg_reduction::InOrder;
use super::reduction::Plan;
use super::{Expander, Result};

/// What a shuffle of 32 bits costs, in instructions of arithmetic: an SM executes 32 lanes of it a cycle, of those 128.
pub(super) const SHUFFLE: u32 = 4;

impl Expander<'_> {
    /// Folds the lanes; gives those that exchanged halves, which hold different registers from then on: the first has the upper half
    /// of all of them if it is 1, the next the upper half of those.
    pub(super) fn fold_lanes<'p>(
        &mut self,
        region: Block,
        plan: &'p Plan,
        values: &mut Vec<Value>,
    ) -> Result<&'p [u32]> {
        if plan.lanes.len() == 5
            && self.target.sm >= 80
            && let (Some(redop), &[value]) =
                (self.tile.single_op(region).and_then(redux), &values[..])
            && self.ty(value).elem == Elem::I32
        {
            let mut data = InstData::new(ThreadOp::Redux, &[value]);
            data.attrs.push(make::redop(redop));
            values[0] = self.op(data, &[])?;
            return Ok(&[]);
        }
        let (exchanged, rest) = plan.lanes.split_at(self.exchanges(region, plan, values));
        for &bit in exchanged {
            self.exchange_halves(region, bit, plan.in_order(HwDim::Lane, bit), values)?;
        }
        for &bit in rest {
            self.fold_lane_bit(region, 1 << bit, values)?;
        }
        Ok(exchanged)
    }

    /// In how many steps lanes exchange halves for the least work.
    fn exchanges(&self, region: Block, plan: &Plan, values: &[Value]) -> usize {
        let types: Vec<_> = values.iter().map(|&v| self.ty(v)).collect();
        let count = types.iter().map(|ty| u32::from(ty.count)).max();
        let count = count.unwrap_or(1);
        let shuffles = |count: u32| -> u32 {
            let words = |bytes: u32| (count * bytes).div_ceil(4);
            types
                .iter()
                .map(|ty| SHUFFLE * words(ty.elem.bytes()))
                .sum()
        };
        let selects = |count: u32| count * types.len() as u32;
        let combine = self.tile.order.insts(region).len() as u32 - 1;
        let choice = if self.tile.single_op(region).is_some() {
            2
        } else {
            3
        };
        let lanes = plan.lanes.len() as u32;
        let cost = |steps: u32| {
            let halves = (1..=steps).map(|step| count >> step);
            let exchanged: u32 = halves
                .map(|half| {
                    let gathered = match plan.warps.is_empty() {
                        true => shuffles(half) + 2 * selects(half),
                        false => 0,
                    };
                    shuffles(half) + choice * selects(half) + combine * half + gathered
                })
                .sum();
            let left = count >> steps;
            exchanged + (lanes - steps) * (shuffles(left) + combine * left)
        };
        let most = lanes.min(count.trailing_zeros());
        let best = (0..=most).min_by_key(|&steps| cost(steps)).unwrap_or(0);
        // Each step waits for the one before, and gathering has steps of its own: a small gain is none.
        match 4 * cost(best) <= 3 * cost(0) {
            true => best as usize,
            false => 0,
        }
    }

    /// Lanes that differ in `bit` divide the registers: the one whose bit is 0 goes on with the lower half of both.
    fn exchange_halves(
        &mut self,
        region: Block,
        bit: u32,
        in_order: Option<&InOrder>,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let sides_matter = self.tile.single_op(region).is_none();
        let mut lefts: Vec<Value> = Vec::with_capacity(values.len());
        let mut rights: Vec<Value> = Vec::with_capacity(values.len());
        for (i, &value) in values.iter().enumerate() {
            if let Some(same) = values[..i].iter().position(|&v| v == value) {
                lefts.push(lefts[same]);
                rights.push(rights[same]);
                continue;
            }
            let half = u32::from(self.ty(value).count) / 2;
            let lower = self.rearrange(&[value], &(0..half).collect::<Vec<_>>())?;
            let upper = self.rearrange(&[value], &(half..2 * half).collect::<Vec<_>>())?;
            let sent = self.of_lane(bit, upper, lower)?;
            let received = self.shuffled(sent, 1 << bit)?;
            if sides_matter {
                lefts.push(self.of_lane(bit, lower, received)?);
                rights.push(self.of_lane(bit, received, upper)?);
            } else {
                lefts.push(self.of_lane(bit, lower, upper)?);
                rights.push(received);
            }
        }
        *values = self.combine_region(region, &lefts, &rights, in_order)?;
        Ok(())
    }

    /// Gives all lanes what those that exchanged halves have.
    pub(super) fn gather_halves(&mut self, exchanged: &[u32], values: &mut [Value]) -> Result<()> {
        for &bit in exchanged.iter().rev() {
            let owned = values.to_vec();
            for (i, &own) in owned.iter().enumerate() {
                if let Some(same) = owned[..i].iter().position(|&v| v == own) {
                    values[i] = values[same];
                    continue;
                }
                let other = self.shuffled(own, 1 << bit)?;
                let lower = self.of_lane(bit, own, other)?;
                let upper = self.of_lane(bit, other, own)?;
                let count = 2 * u32::from(self.ty(own).count);
                values[i] = self.rearrange(&[lower, upper], &(0..count).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// `zero` in lanes whose `bit` is 0, else `one`.
    fn of_lane(&mut self, bit: u32, zero: Value, one: Value) -> Result<Value> {
        match self.leader(1 << bit)? {
            Some(is_zero) => self.select_all(is_zero, zero, one),
            None => Ok(zero),
        }
    }

    pub(super) fn fold_lane_bit(
        &mut self,
        region: Block,
        mask: u32,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let mut others: Vec<Value> = Vec::with_capacity(values.len());
        for (i, &value) in values.iter().enumerate() {
            // One trip serves all operands that are one value.
            others.push(match values[..i].iter().position(|&v| v == value) {
                Some(same) => others[same],
                None => self.shuffled(value, mask)?,
            });
        }
        *values = self.combine_region(region, values, &others, None)?;
        Ok(())
    }
}

/// The op as one of `redux.sync`.
fn redux(op: TileOp) -> Option<RedOp> {
    Some(match op {
        TileOp::Iadd => RedOp::Add,
        TileOp::Smin => RedOp::Smin,
        TileOp::Smax => RedOp::Smax,
        TileOp::Umin => RedOp::Umin,
        TileOp::Umax => RedOp::Umax,
        TileOp::And => RedOp::And,
        TileOp::Or => RedOp::Or,
        TileOp::Xor => RedOp::Xor,
        _ => return None,
    })
}
