//! Sums that some order of their terms takes beyond the largest number.

use super::super::{Held, Machine};
use super::number;
use crate::interp::error_bounds::{limit, unit};
use crate::ir::entities::Block;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar};

/// The sizes of terms of either sign, of which every partial sum is a part.
#[derive(Clone, Copy, Default)]
pub(in crate::interp::exec) struct Sizes {
    above: f64,
    below: f64,
    /// Whether a term is infinite or NaN.
    has_special: bool,
    terms: u32,
}

impl Sizes {
    /// Of a single term.
    fn of(term: f64, slack: f64) -> Sizes {
        let mut sizes = Sizes {
            terms: 1,
            ..Sizes::default()
        };
        if !term.is_finite() {
            sizes.has_special = true;
        } else if term < 0.0 {
            sizes.below = slack - term;
        } else {
            sizes.above = slack + term;
        }
        sizes
    }

    /// Of the terms of both.
    pub(in crate::interp::exec) fn with(self, other: Sizes) -> Sizes {
        Sizes {
            above: self.above + other.above,
            below: self.below + other.below,
            has_special: self.has_special || other.has_special,
            terms: self.terms + other.terms,
        }
    }

    /// What is known of the sum in `held` as `scalar`, whatever the order.
    ///
    /// Where no partial sum can be beyond the largest number, what was found of each rounding holds. Where all terms have one sign
    /// and no rounding keeps their sum below it, every order ends in infinity. Else orders differ by everything.
    pub(in crate::interp::exec) fn settle(self, scalar: Scalar, held: &mut Held, i: usize) {
        let most = limit(scalar);
        let rounded = f64::from(self.terms) * unit(scalar);
        let largest = self.above.max(self.below);
        if largest * (1.0 + rounded) < most {
            return;
        }
        let has_one_sign = self.above.min(self.below) == 0.0 && !self.has_special;
        let slack = match has_one_sign && largest * (1.0 - rounded) >= most {
            true => 0.0,
            false => f64::INFINITY,
        };
        held.set_slack(i, slack);
    }
}

impl Machine<'_> {
    /// The sizes of the elements of `held` where `region` adds them in an order that is open.
    pub(in crate::interp::exec) fn sizes(
        &self,
        region: Block,
        held: &[Held],
    ) -> Option<(Scalar, Vec<Sizes>)> {
        let (Some(slack), [held]) = (&self.slack, held) else {
            return None;
        };
        let func = self.func;
        let params = &func.dfg.blocks[region].params;
        let scalar = func.dfg.ty(*params.first()?).elem.scalar()?;
        if slack.combining == 0 || func.single_op(region) != Some(TileOp::Fadd) {
            return None;
        }
        let of = |(i, &bits): (usize, &u64)| {
            let slack = held.slack.get(i).copied().unwrap_or(0.0);
            Sizes::of(number(Elem::Num(scalar), bits), slack)
        };
        Some((scalar, held.elems.iter().enumerate().map(of).collect()))
    }
}
