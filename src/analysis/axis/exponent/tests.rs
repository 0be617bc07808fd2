//! Random formulas over promises, and what their answers rest on.

use super::Exponent;
use crate::ir::function::ParamHints;

/// How many promises there are, and the levels that each may have.
const PARAMS: usize = 3;
const LEVELS: u8 = 5;

/// A formula over numbers that stand in front of it.
#[derive(Clone, Copy, Debug)]
enum Formula {
    Constant(u8),
    Promise(usize),
    Min(usize, usize),
    Max(usize, usize),
    Plus(usize, usize),
    Less(usize, u8),
    /// The first, if the second is at most the third; else no more than the third.
    Within(usize, usize, usize),
    /// The first or the second, if the third is at most the fourth.
    Chosen([usize; 4]),
}

/// Pseudorandom numbers: "Xorshift RNGs", Marsaglia 2003.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn formulas(&mut self) -> Vec<Formula> {
        let mut all: Vec<Formula> = (0..PARAMS).map(Formula::Promise).collect();
        for _ in 0..2 + self.below(12) {
            let mut any = || self.below(all.len());
            let (a, b, c, d) = (any(), any(), any(), any());
            all.push(match self.below(8) {
                0 | 1 => Formula::Constant(self.below(6) as u8),
                2 => Formula::Min(a, b),
                3 => Formula::Max(a, b),
                4 => Formula::Plus(a, b),
                5 => Formula::Less(a, 1 + self.below(3) as u8),
                6 => Formula::Within(a, b, c),
                _ => Formula::Chosen([a, b, c, d]),
            });
        }
        all
    }
}

/// The answers to questions about formulas, each beyond what it does not matter.
fn answers(formulas: &[Formula], hints: &[ParamHints], questions: &[(usize, u8)]) -> Vec<u8> {
    let mut all: Vec<Exponent> = Vec::new();
    for &formula in formulas {
        let next = match formula {
            Formula::Constant(value) => Exponent::constant(value),
            Formula::Promise(param) => Exponent::promised(param, &hints[param]),
            Formula::Min(a, b) => all[a].min(&all[b]),
            Formula::Max(a, b) => all[a].max(&all[b]),
            Formula::Plus(a, b) => all[a].plus(&all[b]).min(&Exponent::constant(62)),
            Formula::Less(a, by) => all[a].less(by),
            Formula::Within(a, b, c) => {
                Exponent::upper_or_lower(all[b].at_most(&all[c]), &all[a], &all[a].min(&all[c]))
            }
            Formula::Chosen([a, b, c, d]) => {
                Exponent::chosen(all[c].at_most(&all[d]), &all[a], &all[b])
            }
        };
        all.push(next);
    }
    let asked = questions.iter().map(|&(i, most)| all[i].asked(most, hints));
    asked.collect()
}

/// Checks that with the least that was asked for the same is answered, and relied on; tells whether that is less than was promised.
fn check(formulas: &[Formula], levels: [u8; PARAMS], questions: &[(usize, u8)]) -> bool {
    let outcome = |hints: &[ParamHints]| {
        let answers = answers(formulas, hints, questions);
        let relied = hints.iter().map(|hints| hints.relied_on().promised());
        (answers, relied.collect::<Vec<u32>>())
    };
    let hints = levels.map(|level| ParamHints::divisible(1 << level));
    let expected = outcome(&hints);
    let asked = hints.each_ref().map(ParamHints::asked);
    let least = asked.map(|asked| asked.least);
    let is_promised = least
        .iter()
        .zip(levels)
        .all(|(&least, level)| least <= level);
    let found = outcome(&least.map(|level| ParamHints::divisible(1 << level)));
    assert!(
        is_promised && found == expected,
        "{questions:?} of {formulas:?}: {expected:?} for {levels:?}, {found:?} for {asked:?}"
    );
    least != levels
}

#[test]
fn with_the_promises_asked_for_the_same_is_answered_and_relied_on() {
    let mut random = Random(17);
    let mut narrower = 0;
    for _ in 0..100_000 {
        let formulas = random.formulas();
        let levels = [0; PARAMS].map(|_| random.below(usize::from(LEVELS)) as u8);
        let made = formulas.len() - PARAMS;
        let mut question = || (PARAMS + random.below(made), random.below(9) as u8);
        narrower += usize::from(check(&formulas, levels, &[question(), question()]));
    }
    assert!(narrower > 70_000, "{narrower}");
}

/// A number that is at least something anyway, in one that is not.
#[test]
fn what_holds_anyway_is_relied_on_with_less_promised_too() {
    let promises = [0, 1, 2].map(Formula::Promise);
    let three = [Formula::Constant(3), Formula::Max(0, 3)];
    let smaller = [&promises[..], &three, &[Formula::Min(4, 1)]].concat();
    assert!(!check(&smaller, [4, 4, 0], &[(5, 3)]));
    let chosen = [&promises[..], &three, &[Formula::Chosen([4, 1, 2, 3])]].concat();
    assert!(!check(&chosen, [4, 0, 2], &[(5, 3)]));
}
