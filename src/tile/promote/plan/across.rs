//! Bounds of dimensions that a block has one element of: which matrix of several, which head, which page.
//!
//! Descriptors hold back blocks of which such a number is beyond its extent, or in front of the tensor, as the copy engine does: it
//! fills them with zeros.
//!
//! Where all programs have the same such number, its bound is a condition of the launch, or it is an index of a dimension: descriptors of
//! parts of a tensor whose sizes differ (`triton.tools.ragged_tma`) go around by it, as addresses of 64 bits do.

use super::super::refusal::{Refusal, Refused};
use super::{ANY, Dim, Planner};
use crate::analysis::affine::Poly;
use crate::analysis::affine::host::Host;
use crate::analysis::affine::reach::extend;

impl Planner<'_, '_> {
    /// Dimensions along which all boxes start at a number; what needs none is required of the launch.
    pub(super) fn fixed_across(&mut self, rest: &mut Poly) -> Result<Vec<Dim>, Refused> {
        let mut dims = Vec::new();
        for (past, refused) in std::mem::take(&mut self.across) {
            if !past.terms().all(|(monomial, _)| self.is_host(monomial)) {
                self.across.push((past, refused));
                continue;
            }
            // What is said is that a number is below a bound.
            let constant = past.filter(|monomial| *monomial == Default::default());
            let index = constant.number().ok_or(Refusal::Bound)?;
            let bound = Poly::constant(index).minus(&past).ok_or(Refusal::Bound)?;
            let extent = self.known(&bound, Refusal::Bound)?;
            let is_index = 0 < index && index <= ANY;
            let term = rest.terms().find(|&(monomial, c)| {
                let is_its = is_index && c == index && !monomial.atoms().is_empty();
                is_its
                    && self.is_host(monomial)
                    && self.is_aligned(&Poly::term(monomial.clone(), 1))
            });
            let least = match term.map(|(monomial, c)| (monomial.clone(), c)) {
                None => index.checked_add(1).ok_or(Refusal::Bound)?,
                Some((monomial, c)) => {
                    let stride = Poly::term(monomial.clone(), 1);
                    let taken = Poly::term(monomial, c);
                    *rest = rest.minus(&taken).ok_or(Refusal::Addresses)?;
                    dims.push(Dim {
                        stride: self.outer_stride(&stride)?,
                        extent,
                        tile: 1,
                        start: Poly::constant(index),
                        of: None,
                        last: None,
                    });
                    1
                }
            };
            let least = self.reach.hosts.number(least);
            self.require(least, extent, Refusal::Bound)?;
        }
        Ok(dims)
    }

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
