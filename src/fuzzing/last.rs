//! What seeds in a row have in common: making and compiling a kernel takes longer than to judge one of its broken texts, so
//! several are made of each.

use std::cell::RefCell;
use std::rc::Rc;

use super::random::{Random, mix};

/// Seeds that have it in common.
const SEEDS: u64 = 16;

/// Keeps what was made for the last seed. It depends on the seed alone.
pub(super) struct Last<T>(RefCell<Option<(u64, Rc<T>)>>);

impl<T> Last<T> {
    /// Nothing yet.
    pub(super) const fn new() -> Last<T> {
        Last(RefCell::new(None))
    }

    /// What was made for the seeds around this one; else it is made now.
    pub(super) fn of(&self, seed: u64, make: impl FnOnce(&mut Random) -> T) -> Rc<T> {
        let group = seed / SEEDS;
        let kept = self.0.take().filter(|(number, _)| *number == group);
        let (_, made) =
            kept.unwrap_or_else(|| (group, Rc::new(make(&mut Random::new(mix(!group))))));
        self.0.replace(Some((group, Rc::clone(&made))));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_and_nothing_depends_on_the_order() {
        let (one, other) = (Last::new(), Last::new());
        let seeds = [0, 15, 16, 40, 3];
        let made = seeds.map(|seed| *one.of(seed, Random::bits));
        assert!(made[0] == made[1] && made[0] == made[4]);
        assert!(made[0] != made[2] && made[2] != made[3]);
        let mut backwards = seeds;
        backwards.reverse();
        let mut again = backwards.map(|seed| *other.of(seed, Random::bits));
        again.reverse();
        assert_eq!(again, made);
    }
}
