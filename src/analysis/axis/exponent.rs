//! Exponents of two that know which promises of arguments they rest on.
//!
//! What is known along a dimension follows from constants of the kernel and from what its arguments are multiples of. Passes learn a
//! number only by asking for it, and each question records which promises its answer rests on: how much of each is needed, and how
//! much more of it would change the answer. A compilation with promises between these two bounds gets the same answers to all of its
//! questions, so it makes the same code; the run time shares one variant among such arguments.
//!
//! Beside its value `v` an exponent has two claims, each with what it needs of the promises: that it is at least `v - s` for every
//! `s`, and that it is at most `v`. More promised is not always more known (longer runs are less aligned), so that either claim may
//! need that a promise is at least something, and at most something.
//!
//! The numbers are visible nowhere else, so that nothing can be decided by one in silence.

use std::rc::Rc;

use crate::ir::function::ParamHints;

/// A promise that may grow without end.
const ANY: u8 = u8::MAX;

/// An exponent of two that the analysis found.
#[derive(Clone, Debug, Default)]
pub struct Exponent {
    value: u8,
    /// Bounds that hold whatever is promised.
    least: u8,
    most: u8,
    /// By parameters, in order.
    needs: Option<Rc<[Need]>>,
}

/// What an exponent needs of the promise of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    param: u32,
    /// That it is at least the value less `s`: the promise is at least this less `s`,
    sliding: u8,
    /// at least this,
    fixed: u8,
    /// and at most this.
    below: u8,
    /// That it is at most the value: the promise is at least this,
    above: u8,
    /// and at most this.
    most: u8,
}

/// How a number needs that another one does not fall.
#[derive(Clone, Copy)]
enum Low {
    No,
    /// Not by more than this, and by as much more as the number itself may fall.
    Within(u8),
    /// Not by more than this, however far the number may fall.
    Fixed(u8),
}

/// What a number needs of another one: that it does not fall, that it does not grow.
type Part<'a> = (&'a Exponent, Low, bool);

/// Whether one exponent is at most another one, and what the answer needs, for either claim.
pub(super) struct Answer {
    pub(super) is_true: bool,
    needs: Vec<Need>,
}

impl Need {
    /// For either claim: the promise is between these.
    fn within(param: u32, least: u8, most: u8) -> Need {
        Need {
            param,
            sliding: 0,
            fixed: least,
            below: most,
            above: least,
            most,
        }
    }

    fn is_idle(&self) -> bool {
        (self.sliding, self.fixed, self.above) == (0, 0, 0) && (self.below, self.most) == (ANY, ANY)
    }

    /// Those that a number has which is made of this one's claims.
    fn taken(self, low: Low, high: bool) -> Need {
        let (sliding, fixed, below) = match low {
            Low::No => (0, 0, ANY),
            Low::Within(by) => (self.sliding.saturating_sub(by), self.fixed, self.below),
            Low::Fixed(by) => (
                0,
                self.sliding.saturating_sub(by).max(self.fixed),
                self.below,
            ),
        };
        let (above, most) = if high {
            (self.above, self.most)
        } else {
            (0, ANY)
        };
        Need {
            param: self.param,
            sliding,
            fixed,
            below,
            above,
            most,
        }
    }

    /// The same for one claim that needs all of it.
    fn as_one(self) -> Need {
        let least = self.sliding.max(self.fixed).max(self.above);
        Need::within(self.param, least, self.below.min(self.most))
    }

    fn with(self, other: Need) -> Need {
        Need {
            param: self.param,
            sliding: self.sliding.max(other.sliding),
            fixed: self.fixed.max(other.fixed),
            below: self.below.min(other.below),
            above: self.above.max(other.above),
            most: self.most.min(other.most),
        }
    }
}

/// The needs of two lists, each in the order of parameters.
fn merged(a: impl Iterator<Item = Need>, b: impl Iterator<Item = Need>) -> Vec<Need> {
    let mut all: Vec<Need> = Vec::new();
    let (mut a, mut b) = (a.peekable(), b.peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if y.param < x.param => b.next(),
            (Some(_), _) => a.next(),
            (None, _) => b.next(),
        };
        match (next, all.last_mut()) {
            (None, _) => return all,
            (Some(need), Some(last)) if last.param == need.param => *last = last.with(need),
            (Some(need), _) => all.push(need),
        }
    }
}

impl Exponent {
    /// One that rests on nothing.
    pub fn constant(value: u8) -> Exponent {
        Exponent {
            value,
            least: value,
            most: value,
            needs: None,
        }
    }

    /// That of the power of two which the argument of a parameter is promised to be a multiple of.
    pub(super) fn promised(param: usize, hints: &ParamHints) -> Exponent {
        let value = hints.promised().max(1).trailing_zeros() as u8;
        let need = Need {
            sliding: value,
            fixed: 0,
            below: ANY,
            above: 0,
            ..Need::within(param as u32, value, value)
        };
        Exponent {
            value,
            least: 0,
            most: ANY - 1,
            needs: Some(Rc::new([need])),
        }
    }

    fn needs(&self) -> &[Need] {
        self.needs.as_deref().unwrap_or_default()
    }

    /// The needs of a number that it has by one of its parts.
    fn part((of, low, high): Part<'_>) -> impl Iterator<Item = Need> {
        let is_idle = matches!(low, Low::No) && !high;
        let needs = if is_idle { &[][..] } else { of.needs() };
        needs.iter().map(move |need| need.taken(low, high))
    }

    fn made(value: u8, least: u8, most: u8, a: Part<'_>, b: Part<'_>) -> Exponent {
        let bare = Exponent {
            value,
            least,
            most,
            needs: None,
        };
        if a.0.needs.is_none() && b.0.needs.is_none() {
            return bare;
        }
        // Most are made of a constant and one that they need as it is.
        let is_all = |low: Low, high: bool| high && matches!(low, Low::Within(0));
        for ((of, low, high), other) in [(a, b.0), (b, a.0)] {
            if other.needs.is_none() && is_all(low, high) && least < value && value < most {
                let needs = of.needs.clone();
                return Exponent { needs, ..bare };
            }
        }
        bare.resting_on(merged(Exponent::part(a), Exponent::part(b)))
    }

    /// The same with these needs, but for those of what holds anyway.
    fn resting_on(mut self, needs: Vec<Need>) -> Exponent {
        let low = if self.value > self.least {
            Low::Within(0)
        } else {
            Low::No
        };
        let high = self.value < self.most;
        let needs = needs.into_iter().map(|need| need.taken(low, high));
        let needs: Rc<[Need]> = needs.filter(|need| !need.is_idle()).collect();
        self.needs = (!needs.is_empty()).then_some(needs);
        self
    }

    /// The smaller one.
    #[must_use]
    pub fn min(&self, other: &Exponent) -> Exponent {
        // Nothing to find out, so that its needs stay in one place.
        if self.most <= other.least {
            return self.clone();
        }
        if other.most <= self.least {
            return other.clone();
        }
        let value = self.value.min(other.value);
        let low = |x: &Exponent| match x.least < value {
            true => Low::Within(x.value - value),
            false => Low::No,
        };
        // That one of them does not grow is enough; it is the first where both would do.
        let is_bound = |x: &Exponent| x.value == value;
        let by_first = is_bound(self) && (!is_bound(other) || other.needs.is_some());
        let is_fixed = self.most <= value || other.most <= value;
        Exponent::made(
            value,
            self.least.min(other.least),
            self.most.min(other.most),
            (self, low(self), by_first && !is_fixed),
            (other, low(other), !by_first && !is_fixed),
        )
    }

    /// The larger one.
    #[must_use]
    pub fn max(&self, other: &Exponent) -> Exponent {
        if self.least >= other.most {
            return self.clone();
        }
        if other.least >= self.most {
            return other.clone();
        }
        let value = self.value.max(other.value);
        let is_bound = |x: &Exponent| x.value == value;
        let by_first = is_bound(self) && (!is_bound(other) || other.needs.is_some());
        let is_fixed = self.least >= value || other.least >= value;
        let low = |is_it: bool| match is_it && !is_fixed {
            true => Low::Within(0),
            false => Low::No,
        };
        Exponent::made(
            value,
            self.least.max(other.least),
            self.most.max(other.most),
            (self, low(by_first), self.most > value),
            (other, low(!by_first), other.most > value),
        )
    }

    /// Their sum: the exponent of a product.
    #[must_use]
    pub fn plus(&self, other: &Exponent) -> Exponent {
        // What the sum may fall by can be taken from one of them alone.
        let behind = match self.needs {
            None => Low::Within(0),
            Some(_) => Low::Fixed(0),
        };
        Exponent::made(
            self.value.saturating_add(other.value),
            self.least.saturating_add(other.least),
            self.most.saturating_add(other.most),
            (self, Low::Within(0), true),
            (other, behind, true),
        )
    }

    /// The difference to a constant, or zero: the exponent of an exact quotient.
    #[must_use]
    pub(super) fn less(&self, by: u8) -> Exponent {
        Exponent::made(
            self.value.saturating_sub(by),
            self.least.saturating_sub(by),
            self.most.saturating_sub(by),
            (self, Low::Within(0), true),
            (self, Low::No, false),
        )
    }

    /// Whether this is at most the other one.
    pub(super) fn at_most(&self, other: &Exponent) -> Answer {
        let is_true = self.value <= other.value;
        let (small, large) = if is_true {
            (self, other)
        } else {
            (other, self)
        };
        // What the larger one may fall by until the answer is another one: to the bound of the smaller one, or to its value where
        // the smaller one is not to grow.
        let apart = u8::from(!is_true);
        let bound = small.most.saturating_add(apart);
        let (bound, high) = match bound <= large.value {
            true => (bound, false),
            false => (small.value + apart, true),
        };
        let low = match large.least < bound {
            true => Low::Fixed(large.value - bound),
            false => Low::No,
        };
        let parts = (
            Exponent::part((small, Low::No, high)),
            Exponent::part((large, low, false)),
        );
        let needs = merged(parts.0, parts.1).into_iter();
        Answer {
            is_true,
            needs: needs.map(Need::as_one).filter(|n| !n.is_idle()).collect(),
        }
    }

    /// `then` or `other`, by an answer.
    pub(super) fn chosen(answer: Answer, then: &Exponent, other: &Exponent) -> Exponent {
        let one = if answer.is_true { then } else { other };
        if answer.needs.is_empty() {
            return one.clone();
        }
        let bare = Exponent {
            least: then.least.min(other.least),
            most: then.most.max(other.most),
            ..one.clone()
        };
        let needs = merged(one.needs().iter().copied(), answer.needs.into_iter());
        bare.resting_on(needs)
    }

    /// The larger of two numbers of which the first is never the smaller one, or the smaller, by an answer.
    pub(super) fn upper_or_lower(answer: Answer, upper: &Exponent, lower: &Exponent) -> Exponent {
        if upper.value != lower.value {
            return Exponent::chosen(answer, upper, lower);
        }
        // Whatever the answer is, it is between the two.
        Exponent::made(
            upper.value,
            lower.least,
            upper.most,
            (upper, Low::No, true),
            (lower, Low::Within(0), false),
        )
    }

    /// Zero, once rounds are over that ended with both of these.
    pub(super) fn given_up(before: &Exponent, now: &Exponent) -> Exponent {
        let all = merged(before.needs().iter().copied(), now.needs().iter().copied());
        let bare = Exponent {
            most: before.most.max(now.most),
            ..Exponent::default()
        };
        bare.resting_on(all.into_iter().map(Need::as_one).collect())
    }

    /// Whether two are the same number and rest on the same.
    pub(super) fn is_same(&self, other: &Exponent) -> bool {
        let bounds = |x: &Exponent| (x.value, x.least, x.most);
        bounds(self) == bounds(other) && self.needs == other.needs
    }

    /// Whether two are the same number, whatever they rest on.
    pub(super) fn is_same_number(&self, other: &Exponent) -> bool {
        self.value == other.value
    }

    /// The number, for messages alone: nothing that is emitted may depend on it, as it is not recorded what it rests on.
    pub fn for_messages(&self) -> u8 {
        self.value
    }

    /// The number, but for what is beyond `most`: it is recorded what that rests on.
    pub(super) fn asked(&self, most: u8, hints: &[ParamHints]) -> u8 {
        let low = match self.value.min(most) > self.least {
            true => Low::Fixed(self.value.saturating_sub(most)),
            false => Low::No,
        };
        for need in Exponent::part((self, low, self.value < most)) {
            if let Some(hints) = hints.get(need.param as usize) {
                let relied = need.sliding.max(need.fixed);
                hints.ask(relied, need.above, need.below.min(need.most));
            }
        }
        self.value.min(most)
    }
}
