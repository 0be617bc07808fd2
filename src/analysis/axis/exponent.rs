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
//! Expansion makes use of what the answers rely on, so that this has to be the same with the least that was asked for. It may be
//! something else where one of two numbers was taken that with less promised are the same, or the other way round, and where
//! something holds whatever is promised. Such a number is open: a question about it asks for all that is promised of what it was
//! made of.
//!
//! The numbers are visible nowhere else, so that nothing can be decided by one in silence.

use std::rc::Rc;

use crate::ir::function::ParamHints;

#[cfg(test)]
mod tests;

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
    /// Of which it was made.
    of: Params,
    /// Of which it needs the promises as they are: with less, the same number might rest on something else.
    whole: Params,
}

/// Parameters: a bit for each of the first, and one for all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Params(u64);

impl Params {
    fn one(param: usize) -> Params {
        Params(1 << param.min(63))
    }

    fn has(self, param: usize) -> bool {
        self.0 & Params::one(param).0 != 0
    }

    fn and(self, other: Params) -> Params {
        Params(self.0 | other.0)
    }
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
    /// That what it is a part of rests on the same with less promised: the promise is at least this.
    firm: u8,
}

/// The exponent of a promise.
fn level(hints: &ParamHints) -> u8 {
    hints.promised().max(1).trailing_zeros() as u8
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
    /// As of the two numbers.
    of: Params,
    whole: Params,
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
            firm: 0,
        }
    }

    fn is_idle(&self) -> bool {
        (self.sliding, self.fixed, self.above, self.firm) == (0, 0, 0, 0)
            && (self.below, self.most) == (ANY, ANY)
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
            firm: self.firm,
        }
    }

    /// The same for one claim that needs all of it.
    fn as_one(self) -> Need {
        let least = self.sliding.max(self.fixed).max(self.above);
        Need {
            firm: self.firm,
            ..Need::within(self.param, least, self.below.min(self.most))
        }
    }

    fn with(self, other: Need) -> Need {
        Need {
            param: self.param,
            sliding: self.sliding.max(other.sliding),
            fixed: self.fixed.max(other.fixed),
            below: self.below.min(other.below),
            above: self.above.max(other.above),
            most: self.most.min(other.most),
            firm: self.firm.max(other.firm),
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

impl Answer {
    /// Whether it is the same however much less is promised, and rests on the same then.
    fn stays(&self) -> bool {
        self.whole == Params::default() && self.needs.iter().all(|need| need.fixed == 0)
    }
}

impl Exponent {
    /// One that rests on nothing.
    pub fn constant(value: u8) -> Exponent {
        Exponent {
            value,
            least: value,
            most: value,
            ..Exponent::default()
        }
    }

    /// That of the power of two which the argument of a parameter is promised to be a multiple of.
    pub(super) fn promised(param: usize, hints: &ParamHints) -> Exponent {
        let value = level(hints);
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
            of: Params::one(param),
            whole: Params::default(),
        }
    }

    fn needs(&self) -> &[Need] {
        self.needs.as_deref().unwrap_or_default()
    }

    /// The needs of a number that it has by one of its parts.
    fn part((of, low, high): Part<'_>) -> impl Iterator<Item = Need> {
        // A number that can be no less rests on nothing as a part; with less promised it is not to be more.
        let is_least = of.value == of.least;
        let is_idle = matches!(low, Low::No) && !high;
        let needs = if is_idle { &[][..] } else { of.needs() };
        needs.iter().map(move |need| {
            let firm = if is_least { need.above } else { 0 };
            let need = need.taken(low, high);
            Need {
                firm: need.firm.max(firm),
                ..need
            }
        })
    }

    /// Of which it needs the promises as they are, as a part of something.
    fn whole(&self) -> Params {
        match self.value == self.least {
            true => Params::default(),
            false => self.whole,
        }
    }

    fn made(value: u8, least: u8, most: u8, a: Part<'_>, b: Part<'_>) -> Exponent {
        let bare = Exponent {
            value,
            least,
            most,
            needs: None,
            of: a.0.of.and(b.0.of),
            whole: a.0.whole().and(b.0.whole()),
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
        if self.least == self.most {
            return Exponent::constant(self.value);
        }
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

    /// Whether its needs end where it holds anyway: that it is no less rests on nothing.
    fn ends_at_least(&self) -> bool {
        let fall = self.value - self.least;
        let mut needs = self.needs().iter();
        needs.all(|need| need.fixed == 0 && need.sliding <= fall)
    }

    /// The same, which needs all that it was made of as it is, if with less promised it might rest on something else.
    fn open(mut self, is_open: bool) -> Exponent {
        if is_open {
            self.whole = self.of;
        }
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
        let least = self.least.min(other.least);
        let is_open = |x: &Exponent| least < x.least && !x.ends_at_least();
        Exponent::made(
            value,
            least,
            self.most.min(other.most),
            (self, low(self), by_first && !is_fixed),
            (other, low(other), !by_first && !is_fixed),
        )
        .open(is_open(self) || is_open(other))
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
        .open(self.needs.is_some() && other.needs.is_some())
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
        .open(other.needs.is_some() && !self.ends_at_least())
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
            of: small.of.and(large.of),
            whole: small.whole.and(large.whole),
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
            of: one.of.and(answer.of),
            whole: match answer.stays() {
                true => one.whole(),
                false => one.whole().and(answer.of),
            },
            ..one.clone()
        };
        let part = Exponent::part((one, Low::Within(0), true));
        let needs = merged(part, answer.needs.into_iter());
        let is_open = bare.least < one.least && !one.ends_at_least();
        bare.resting_on(needs).open(is_open)
    }

    /// The larger of two numbers of which the first is never the smaller one, or the smaller, by an answer.
    pub(super) fn upper_or_lower(answer: Answer, upper: &Exponent, lower: &Exponent) -> Exponent {
        if answer.needs.is_empty() {
            // It is always the same one.
            return Exponent::chosen(answer, upper, lower);
        }
        let stays = !answer.is_true && answer.stays();
        let mut one = if upper.value == lower.value {
            // Whatever the answer is, it is between the two.
            Exponent::made(
                upper.value,
                lower.least,
                upper.most,
                (upper, Low::No, true),
                (lower, Low::Within(0), false),
            )
        } else {
            Exponent::chosen(answer, upper, lower)
        };
        one.of = one.of.and(upper.of).and(lower.of);
        one.open(!stays)
    }

    /// Zero, once rounds are over that ended with both of these.
    pub(super) fn given_up(before: &Exponent, now: &Exponent) -> Exponent {
        let all = merged(before.needs().iter().copied(), now.needs().iter().copied());
        let bare = Exponent {
            most: before.most.max(now.most),
            of: before.of.and(now.of),
            whole: before.of.and(now.of),
            ..Exponent::default()
        };
        bare.resting_on(all.into_iter().map(Need::as_one).collect())
    }

    /// Whether two are the same number and rest on the same.
    pub(super) fn is_same(&self, other: &Exponent) -> bool {
        let bounds = |x: &Exponent| (x.value, x.least, x.most);
        bounds(self) == bounds(other)
            && self.needs == other.needs
            && (self.of, self.whole) == (other.of, other.whole)
    }

    /// Whether two are the same number, whatever they rest on.
    pub(super) fn is_same_number(&self, other: &Exponent) -> bool {
        self.value == other.value
    }

    /// What it is at least, whatever is promised: that rests on nothing that would have to be recorded.
    pub fn firm(&self) -> u8 {
        self.least
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
                let least = match low {
                    Low::No => need.above,
                    _ => need.above.max(need.firm),
                };
                hints.ask(relied, least, need.below.min(need.most));
            }
        }
        if !matches!(low, Low::No) {
            let all = hints.iter().enumerate();
            for (_, hints) in all.filter(|&(param, _)| self.whole.has(param)) {
                hints.ask(0, level(hints), ANY);
            }
        }
        self.value.min(most)
    }
}
