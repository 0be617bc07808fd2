//! The variants of a kernel in memory, found without a lock.
//!
//! A hash table with open addressing whose places are filled once and never emptied: a place is a [`OnceLock`], so a
//! reader does one atomic load and no writer ever stands in its way; writers take turns. The number of variants is bounded, which makes the
//! size fixed and keeps a kernel whose arguments vary without end from filling the memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::runtime::specialize::class_key::Classes;

/// What a table holds.
pub(crate) trait Keyed {
    /// What it is found by.
    fn classes(&self) -> &Classes;
}

/// Things by classes.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// Made at the first insertion: most set-ups of a kernel are steps to another.
    places: OnceLock<Box<[OnceLock<Arc<T>>]>>,
    count: AtomicUsize,
    limit: usize,
    /// Taken by who inserts: whether there is room is known only when nobody else is about to insert the same.
    inserting: Mutex<()>,
}

impl<T: Keyed> Table<T> {
    /// A table of up to `limit` things.
    pub(crate) fn new(limit: usize) -> Table<T> {
        Table {
            places: OnceLock::new(),
            count: AtomicUsize::new(0),
            limit,
            inserting: Mutex::new(()),
        }
    }

    /// How many things it may hold.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How many things it holds.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// What is there for these classes.
    #[inline(always)]
    pub(crate) fn get(&self, classes: &Classes) -> Option<&Arc<T>> {
        let places = self.places.get()?;
        let at = classes.hash();
        let found = places[at & (places.len() - 1)].get()?;
        if found.classes() == classes {
            return Some(found);
        }
        Table::get_behind(places, classes, at)
    }

    /// What is there for these classes behind the place where it should be.
    #[cold]
    fn get_behind<'t>(
        places: &'t [OnceLock<Arc<T>>],
        classes: &Classes,
        mut at: usize,
    ) -> Option<&'t Arc<T>> {
        // The table is never full, so that an empty place ends the search.
        loop {
            at = at.wrapping_add(1);
            let found = places[at & (places.len() - 1)].get()?;
            if found.classes() == classes {
                return Some(found);
            }
        }
    }

    /// What is there for these classes, made if need be; none if the table holds as many as `bound`, or is full.
    pub(crate) fn get_or_insert(
        &self,
        classes: &Classes,
        bound: usize,
        make: impl FnOnce() -> T,
    ) -> Option<&Arc<T>> {
        if let Some(found) = self.get(classes) {
            return Some(found);
        }
        let _alone = self
            .inserting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.get(classes) {
            // Another thread was faster.
            return Some(found);
        }
        // There are always twice as many places as things.
        if self.len() >= bound.min(self.limit) {
            return None;
        }
        let places = self.places.get_or_init(|| {
            let size = (2 * self.limit.max(1)).next_power_of_two();
            (0..size).map(|_| OnceLock::new()).collect()
        });
        let mut at = classes.hash();
        loop {
            let place = &places[at & (places.len() - 1)];
            if place.get().is_none() {
                self.count.fetch_add(1, Ordering::Relaxed);
                return Some(place.get_or_init(|| Arc::new(make())));
            }
            at = at.wrapping_add(1);
        }
    }

    /// Everything in it, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        let places = self.places.get().map_or(&[][..], |places| places);
        places.iter().filter_map(OnceLock::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(Classes);

    impl Keyed for Thing {
        fn classes(&self) -> &Classes {
            &self.0
        }
    }

    fn classes(bytes: &[u8]) -> Classes {
        Classes::list(bytes)
    }

    #[test]
    fn a_table_holds_each_thing_once_and_no_more_than_its_bound() {
        let table = Table::new(100);
        assert!(table.get(&classes(&[1])).is_none());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..100 {
                        let key = classes(&[i, 7, i, 7, 1, 2, 3, 4, i]);
                        let thing = table.get_or_insert(&key, 100, || Thing(key.clone()));
                        // There is room for each, however many threads bring it.
                        assert!(thing.is_some_and(|thing| thing.0 == key));
                    }
                });
            }
        });
        for i in 0..100 {
            let key = classes(&[i, 7, i, 7, 1, 2, 3, 4, i]);
            let thing = table.get_or_insert(&key, 100, || Thing(key.clone()));
            assert!(thing.is_some_and(|thing| thing.0 == key), "{i}");
        }
        assert_eq!(table.iter().count(), 100);
        let key = classes(&[200]);
        assert!(
            table
                .get_or_insert(&key, 100, || Thing(key.clone()))
                .is_none()
        );
        assert!(table.get(&key).is_none());
    }
}
