//! Choices among answers that are all right, made by a seed.
//!
//! In many places the compiler takes one of several legal answers, the one that costs least by its estimates: layouts, stages
//! of pipelines, swizzles, offsets in shared memory, the order of instructions, registers. So the other answers, and what
//! stands behind them, hardly ever run. With [`Options::diversity`](super::Options::diversity) each such place asks its
//! [`Choices`] first, which answer by chance; without, they leave everything as it is. A kernel computes the same either way,
//! slower. Order and grouping of sums may differ where an op leaves them open, as they do from layout to layout.
//!
//! The numbers depend on the seed, the place and the number of questions it has asked, so that what one place asks changes no
//! other. A generator of its own (splitmix64; Steele, Lea and Flood 2014), since what fuzzing makes must not change with it.

/// A place in the compiler with a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChoiceSite {
    /// Whether products read their factors from shared memory.
    Sharing,
    /// Whether loops are pipelined, with how many stages, and whether by way of registers.
    Stages,
    /// The layout of each block.
    Layouts,
    /// How blocks change their layout, and how they stand in shared memory.
    Exchange,
    /// Where slots of shared memory are.
    Offsets,
    /// The order of instructions.
    Order,
    /// Registers, and the moves between them.
    Registers,
    /// Whether loops begin products of the next iteration.
    Rotation,
}

/// What a place asks.
#[derive(Clone, Debug)]
pub struct Choices(Option<u64>);

impl Choices {
    /// The choices of a place; those without a seed are always the same.
    pub fn new(seed: Option<u64>, site: ChoiceSite) -> Choices {
        Choices(seed.map(|seed| mix(seed ^ mix(site as u64 + 1))))
    }

    /// Choices that leave everything as it is.
    pub const fn none() -> Choices {
        Choices(None)
    }

    /// A number below `bound`, which is at least 1; without a seed 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let Some(state) = &mut self.0 else {
            return 0;
        };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mix(*state)) * bound as u128) >> 64) as usize
    }

    /// True in `percent` of 100 cases; without a seed never.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.0.is_some() && self.below(100) < percent
    }

    /// Puts items in another order; without a seed they stay.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        if self.0.is_some() {
            for i in (1..items.len()).rev() {
                items.swap(i, self.below(i + 1));
            }
        }
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_seed_nothing_changes() {
        let mut choices = Choices::new(None, ChoiceSite::Order);
        let mut items = [1, 2, 3, 4];
        choices.shuffle(&mut items);
        assert_eq!((items, choices.below(9)), ([1, 2, 3, 4], 0));
        assert!(!choices.chance(100));
    }

    #[test]
    fn places_choose_for_themselves() {
        let numbers = |seed, site| {
            let mut choices = Choices::new(Some(seed), site);
            [0; 8].map(|_: u32| choices.below(1000))
        };
        assert_eq!(numbers(7, ChoiceSite::Order), numbers(7, ChoiceSite::Order));
        assert_ne!(
            numbers(7, ChoiceSite::Order),
            numbers(7, ChoiceSite::Offsets)
        );
        assert_ne!(numbers(7, ChoiceSite::Order), numbers(8, ChoiceSite::Order));
        let mut choices = Choices::new(Some(0), ChoiceSite::Layouts);
        let mut seen = [false; 5];
        (0..100).for_each(|_| seen[choices.below(5)] = true);
        assert_eq!(seen, [true; 5]);
        assert!(choices.chance(100) && !choices.chance(0));
    }
}
