//! Where numbers may be, by arithmetic on ranges.

/// What is known of a number; all in exact arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// No number is below it.
    low: f64,
    /// No number is above it.
    high: f64,
    /// The least size of those that are not 0; infinite if all are.
    pub(super) least: f64,
    /// Whether it may be 0.
    pub(super) zero: bool,
    /// How far it may be off.
    pub(super) off: f64,
}

/// Ends stay among the finite numbers: what is there is beyond any type's largest number.
fn finite(x: f64) -> f64 {
    x.clamp(-f64::MAX, f64::MAX)
}

impl Reach {
    /// Nothing is known.
    pub(super) const ANY: Reach = Reach {
        low: -f64::MAX,
        high: f64::MAX,
        least: 0.0,
        zero: true,
        off: 0.0,
    };

    const ZERO: Reach = Reach {
        low: 0.0,
        high: 0.0,
        least: f64::INFINITY,
        zero: true,
        off: 0.0,
    };

    /// A finite number that may be so far off.
    pub(super) fn of(x: f64, slack: f64) -> Reach {
        if x == 0.0 && slack == 0.0 {
            return Reach::ZERO;
        }
        Reach {
            low: finite(x - slack),
            high: finite(x + slack),
            least: (x.abs() - slack).max(0.0),
            zero: x.abs() <= slack,
            off: 0.0,
        }
    }

    /// The same number, so far off.
    pub(super) fn off_by(self, off: f64) -> Reach {
        Reach { off, ..self }
    }

    /// The largest size.
    pub(super) fn size(self) -> f64 {
        self.high.max(-self.low)
    }

    fn is_zero(self) -> bool {
        self.size() == 0.0
    }

    /// Whether all numbers are on one side of 0, or 0.
    pub(super) fn has_one_sign(self) -> bool {
        self.low >= 0.0 || self.high <= 0.0
    }

    /// It or the other.
    pub(super) fn or(self, other: Reach) -> Reach {
        Reach {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            least: self.least.min(other.least),
            zero: self.zero || other.zero,
            off: self.off.max(other.off),
        }
    }

    /// What both say of one number.
    pub(super) fn and(self, other: Reach) -> Reach {
        Reach {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            least: self.least.max(other.least),
            zero: self.zero && other.zero,
            off: self.off,
        }
    }

    pub(super) fn negated(self) -> Reach {
        Reach {
            low: -self.high,
            high: -self.low,
            ..self
        }
    }

    pub(super) fn without_sign(self) -> Reach {
        match self.low >= 0.0 {
            true => self,
            false => Reach {
                low: if self.high <= 0.0 { -self.high } else { 0.0 },
                high: self.size(),
                ..self
            },
        }
    }

    pub(super) fn plus(self, other: Reach) -> Reach {
        let off = self.off + other.off;
        if self.is_zero() {
            return Reach { off, ..other };
        }
        if other.is_zero() {
            return Reach { off, ..self };
        }
        let agree = self.low >= 0.0 && other.low >= 0.0 || self.high <= 0.0 && other.high <= 0.0;
        let least = match (self.zero, other.zero) {
            // Terms may cancel.
            _ if !agree => 0.0,
            (false, false) => self.least + other.least,
            (true, false) => other.least,
            (false, true) => self.least,
            (true, true) => self.least.min(other.least),
        };
        Reach {
            low: finite(self.low + other.low),
            high: finite(self.high + other.high),
            least,
            zero: !agree || self.zero && other.zero,
            off,
        }
    }

    pub(super) fn times(self, other: Reach) -> Reach {
        let off = self.off * other.size() + other.off * self.size() + self.off * other.off;
        if self.is_zero() || other.is_zero() {
            return Reach { off, ..Reach::ZERO };
        }
        let pairs = [(self.low, other.low), (self.low, other.high)];
        let pairs = pairs.into_iter();
        let ends = pairs.chain([(self.high, other.low), (self.high, other.high)]);
        let ends = ends.map(|(a, b)| finite(a * b));
        let (mut low, mut high) = ends.fold((f64::MAX, -f64::MAX), |(low, high), end| {
            (low.min(end), high.max(end))
        });
        if low == 0.0 && high == 0.0 {
            // Too small for f64, and not 0.
            (low, high) = (-f64::MIN_POSITIVE, f64::MIN_POSITIVE);
        }
        Reach {
            low,
            high,
            least: self.least * other.least,
            zero: self.zero || other.zero,
            off,
        }
    }

    /// The quotient, where it is not by 0: one that is will hardly be chosen.
    pub(super) fn by(self, other: Reach) -> Reach {
        if other.least == 0.0 || other.is_zero() {
            return Reach::ANY;
        }
        let most = finite(1.0 / other.least);
        let inverse = Reach {
            low: if other.low >= 0.0 { 0.0 } else { -most },
            high: if other.high <= 0.0 { 0.0 } else { most },
            least: 1.0 / other.size(),
            zero: false,
            off: other.off * most * most,
        };
        self.times(inverse)
    }

    pub(super) fn larger(self, other: Reach) -> Reach {
        Reach {
            low: self.low.max(other.low),
            high: self.high.max(other.high),
            ..self.or(other)
        }
    }

    pub(super) fn smaller(self, other: Reach) -> Reach {
        Reach {
            low: self.low.min(other.low),
            high: self.high.min(other.high),
            ..self.or(other)
        }
    }

    /// At most 0.
    pub(super) fn not_above_zero(self) -> Reach {
        Reach {
            low: self.low.min(0.0),
            high: self.high.min(0.0),
            ..self
        }
    }

    /// A power of a base by this exponent.
    pub(super) fn power_of(self, base: f64) -> Reach {
        let high = finite(base.powf(self.high));
        Reach {
            low: base.powf(self.low),
            high,
            least: base.powf(self.low),
            zero: false,
            off: match self.off > 0.0 {
                true => high * (self.off * base.ln()).exp_m1(),
                false => 0.0,
            },
        }
    }

    /// The logarithm to a base.
    pub(super) fn logarithm(self, base: f64) -> Reach {
        let positive = self.low >= 0.0 && !self.zero && self.least > 0.0;
        if !positive {
            return Reach::ANY;
        }
        Reach {
            low: self.least.log(base),
            high: self.high.log(base),
            least: 0.0,
            zero: true,
            off: self.off / (self.least * base.ln()),
        }
    }

    /// The logarithm of the number and 1.
    pub(super) fn logarithm_of_more(self) -> Reach {
        if self.low < 0.0 {
            return Reach::ANY;
        }
        Reach {
            low: self.low.ln_1p(),
            high: self.high.ln_1p(),
            least: self.least.ln_1p(),
            ..self
        }
    }
}
