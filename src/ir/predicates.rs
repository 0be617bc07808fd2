//! For which outcomes of a comparison a predicate holds.
//!
//! The interpreter, the passes and the selection ask here, so that there is one table of what predicates mean.

use std::cmp::Ordering;

use super::attrs::{FloatPred, IntPred};

bitflags::bitflags! {
    /// How two numbers may compare.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Outcomes: u8 {
        /// The first is less.
        const LESS = 1;
        /// They are equal.
        const EQUAL = 2;
        /// The first is greater.
        const GREATER = 4;
        /// One of them is NaN.
        const UNORDERED = 8;
        /// Neither is.
        const ORDERED = 7;
    }
}

impl Outcomes {
    /// How two numbers did compare; `None` is unordered.
    pub fn of(order: Option<Ordering>) -> Outcomes {
        match order {
            Some(Ordering::Less) => Outcomes::LESS,
            Some(Ordering::Equal) => Outcomes::EQUAL,
            Some(Ordering::Greater) => Outcomes::GREATER,
            None => Outcomes::UNORDERED,
        }
    }

    /// The outcomes with the numbers exchanged.
    fn exchanged(self) -> Outcomes {
        let mut exchanged = self & (Outcomes::EQUAL | Outcomes::UNORDERED);
        exchanged.set(Outcomes::LESS, self.contains(Outcomes::GREATER));
        exchanged.set(Outcomes::GREATER, self.contains(Outcomes::LESS));
        exchanged
    }
}

impl IntPred {
    /// The outcomes for which it holds.
    pub fn outcomes(self) -> Outcomes {
        match self {
            IntPred::Eq => Outcomes::EQUAL,
            IntPred::Ne => Outcomes::LESS | Outcomes::GREATER,
            IntPred::Slt | IntPred::Ult => Outcomes::LESS,
            IntPred::Sle | IntPred::Ule => Outcomes::LESS | Outcomes::EQUAL,
            IntPred::Sgt | IntPred::Ugt => Outcomes::GREATER,
            IntPred::Sge | IntPred::Uge => Outcomes::GREATER | Outcomes::EQUAL,
        }
    }

    /// Whether numbers have signs; none where that makes no difference.
    pub fn is_signed(self) -> Option<bool> {
        match self {
            IntPred::Eq | IntPred::Ne => None,
            IntPred::Slt | IntPred::Sle | IntPred::Sgt | IntPred::Sge => Some(true),
            IntPred::Ult | IntPred::Ule | IntPred::Ugt | IntPred::Uge => Some(false),
        }
    }

    /// How comparisons are written in languages where types say whether numbers have signs.
    pub fn sign(self) -> &'static str {
        match self {
            IntPred::Eq => "==",
            IntPred::Ne => "!=",
            IntPred::Slt | IntPred::Ult => "<",
            IntPred::Sle | IntPred::Ule => "<=",
            IntPred::Sgt | IntPred::Ugt => ">",
            IntPred::Sge | IntPred::Uge => ">=",
        }
    }

    /// The predicate that holds for these outcomes, if there is one.
    pub fn with_outcomes(outcomes: Outcomes, is_signed: Option<bool>) -> Option<IntPred> {
        let mut all = IntPred::ALL.iter().copied();
        all.find(|pred| {
            let signs = pred.is_signed();
            pred.outcomes() == outcomes && (signs.is_none() || signs == is_signed)
        })
    }

    /// Whether it holds for numbers that compare so, with or without signs as it says.
    pub fn holds(self, order: Ordering) -> bool {
        self.outcomes().contains(Outcomes::of(Some(order)))
    }

    /// Whether it holds for numbers of so many bits.
    pub fn compare(self, bits: u32, a: u64, b: u64) -> bool {
        let unused = 64 - bits;
        let signed = |x: u64| (x << unused) as i64;
        self.holds(match self.is_signed() {
            Some(true) => signed(a).cmp(&signed(b)),
            _ => a.cmp(&b),
        })
    }

    /// The predicate with its operands exchanged.
    pub fn exchanged(self) -> Option<IntPred> {
        IntPred::with_outcomes(self.outcomes().exchanged(), self.is_signed())
    }

    /// The predicate that holds where this one does not.
    pub fn opposite(self) -> Option<IntPred> {
        let outcomes = Outcomes::ORDERED - self.outcomes();
        IntPred::with_outcomes(outcomes, self.is_signed())
    }
}

impl FloatPred {
    /// The outcomes for which it holds.
    pub fn outcomes(self) -> Outcomes {
        let (less, equal, greater) = (Outcomes::LESS, Outcomes::EQUAL, Outcomes::GREATER);
        let unordered = Outcomes::UNORDERED;
        match self {
            FloatPred::Oeq => equal,
            FloatPred::One => less | greater,
            FloatPred::Olt => less,
            FloatPred::Ole => less | equal,
            FloatPred::Ogt => greater,
            FloatPred::Oge => greater | equal,
            FloatPred::Ueq => unordered | equal,
            FloatPred::Une => unordered | less | greater,
            FloatPred::Ult => unordered | less,
            FloatPred::Ule => unordered | less | equal,
            FloatPred::Ugt => unordered | greater,
            FloatPred::Uge => unordered | greater | equal,
            FloatPred::Ord => Outcomes::ORDERED,
            FloatPred::Uno => unordered,
        }
    }

    /// The predicate that holds for these outcomes; none for all and for no outcomes.
    pub fn with_outcomes(outcomes: Outcomes) -> Option<FloatPred> {
        let mut all = FloatPred::ALL.iter().copied();
        all.find(|pred| pred.outcomes() == outcomes)
    }

    /// Whether it holds for numbers that compare so; `None` is unordered.
    pub fn holds(self, order: Option<Ordering>) -> bool {
        self.outcomes().contains(Outcomes::of(order))
    }
}

#[cfg(test)]
mod tests {
    use super::Outcomes;
    use crate::ir::attrs::{FloatPred, IntPred};

    /// What the names of predicates of integers say, in the host's own comparisons.
    fn meant(pred: IntPred, a: i8, b: i8) -> bool {
        let (x, y) = (a as u8, b as u8);
        match pred.name() {
            "eq" => a == b,
            "ne" => a != b,
            "slt" => a < b,
            "sle" => a <= b,
            "sgt" => a > b,
            "sge" => a >= b,
            "ult" => x < y,
            "ule" => x <= y,
            "ugt" => x > y,
            "uge" => x >= y,
            name => panic!("what is {name}?"),
        }
    }

    #[test]
    fn predicates_of_integers_mean_what_their_names_say() {
        for &pred in IntPred::ALL {
            let exchanged = pred.exchanged().expect("each has one");
            let opposite = pred.opposite().expect("each has one");
            for a in i8::MIN..=i8::MAX {
                for b in [i8::MIN, -100, -1, 0, 1, 100, i8::MAX] {
                    let (x, y) = (u64::from(a as u8), u64::from(b as u8));
                    let holds = meant(pred, a, b);
                    assert_eq!(pred.compare(8, x, y), holds, "{pred:?} {a} {b}");
                    assert_eq!(exchanged.compare(8, y, x), holds, "{exchanged:?} {b} {a}");
                    assert_eq!(opposite.compare(8, x, y), !holds, "{opposite:?} {a} {b}");
                }
            }
        }
        assert!(IntPred::Slt.compare(64, u64::MAX, 0));
        assert!(IntPred::Ugt.compare(64, u64::MAX, 0));
    }

    #[test]
    fn predicates_of_floats_mean_what_their_names_say() {
        const NUMBERS: [f32; 6] = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, 2.0, f32::NAN];
        for &pred in FloatPred::ALL {
            for a in NUMBERS {
                for b in NUMBERS {
                    let is_nan = a.is_nan() || b.is_nan();
                    let meant = match pred.name().split_at(1) {
                        ("o", "rd") => !is_nan,
                        ("u", "no") => is_nan,
                        (first, relation) => {
                            let holds = match relation {
                                "eq" => a == b,
                                "ne" => !is_nan && a != b,
                                "lt" => a < b,
                                "le" => a <= b,
                                "gt" => a > b,
                                "ge" => a >= b,
                                name => panic!("what is {name}?"),
                            };
                            holds || first == "u" && is_nan
                        }
                    };
                    assert_eq!(pred.holds(a.partial_cmp(&b)), meant, "{pred:?} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn outcomes_name_their_predicate() {
        for bits in 0..16 {
            let outcomes = Outcomes::from_bits_retain(bits);
            let found = FloatPred::with_outcomes(outcomes);
            assert_eq!(
                found.map(FloatPred::outcomes),
                (1..15).contains(&bits).then_some(outcomes)
            );
            for is_signed in [None, Some(false), Some(true)] {
                let Some(found) = IntPred::with_outcomes(outcomes, is_signed) else {
                    let is_equality = matches!(bits, 2 | 5);
                    assert!(!(1..7).contains(&bits) || is_signed.is_none() && !is_equality);
                    continue;
                };
                assert_eq!(found.outcomes(), outcomes);
                assert!(found.is_signed().is_none() || found.is_signed() == is_signed);
            }
        }
    }
}
