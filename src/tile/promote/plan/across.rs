//! Bounds of dimensions that a block has one element of: which matrix of several, which head, which page.
//!
//! Descriptors hold back blocks of which such a number is beyond its extent, or in front of the tensor, as the copy engine does: it
//! fills them with zeros.

use super::super::refusal::{Refusal, Refused};
use super::{ANY, Planner};
use crate::analysis::affine::Poly;
use crate::analysis::affine::host::Host;
use crate::analysis::affine::reach::extend;

impl Planner<'_, '_> {
    /// The extent of a dimension along which a box starts there and holds one element, if the mask has a bound for it.
    pub(super) fn bound_across(&mut self, start: &Poly) -> Result<Option<Host>, Refused> {
        // Of whole numbers, 0 <= x is -1 - x < 0.
        let in_front = Poly::constant(-1).minus(start);
        let mut is_checked = false;
        let mut extent = None;
        for (past, refused) in std::mem::take(&mut self.across) {
            if Some(&past) == in_front.as_ref() {
                is_checked = true;
                continue;
            }
            // What is not below the same bound everywhere bounds something else.
            let bound = start.minus(&past);
            let bound = bound.and_then(|bound| self.reach.known(&bound));
            let Some(bound) = bound else {
                self.across.push((past, refused));
                continue;
            };
            extend(&mut self.conds, bound.conds);
            extent = Some(match extent {
                None => bound.lo,
                Some(other) => self.reach.hosts.min(other, bound.lo),
            });
        }
        let Some(extent) = extent else {
            return Ok(None);
        };
        let one = self.reach.hosts.number(1);
        self.require(one, extent, Refusal::Bound)?;
        match is_checked && self.is_number(start) {
            true => self.starts_anywhere = true,
            false => {
                let least = if is_checked { i64::from(i32::MIN) } else { 0 };
                self.within(start, least, ANY)?;
            }
        }
        Ok(Some(extent))
    }
}
