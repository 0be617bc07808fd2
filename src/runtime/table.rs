//! The variants of a kernel in memory, found without a lock.
//!
//! A hash table with open addressing whose places are filled once and never emptied: a place is a [`OnceLock`], so a
//! reader does one atomic load and no writer ever stands in its way. The number of variants is bounded, which makes the
//! size fixed and keeps a kernel whose arguments vary without end from filling the memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Classes that need no memory of the heap.
const INLINE: usize = 32;

/// The classes of all arguments. Up to 32 take no memory of the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    /// The first ones; zero behind the last.
    first: [u8; INLINE],
    more: Option<Box<[u8]>>,
    len: usize,
}

impl Classes {
    /// The classes of a list, by a function of its elements and of what stands in another list in their places.
    #[inline(always)]
    pub(crate) fn of<T>(list: &[T], masks: &[u8], mut class: impl FnMut(&T, u8) -> u8) -> Classes {
        let mut classes = Classes {
            first: [0; INLINE],
            more: None,
            len: list.len(),
        };
        for ((place, element), &mask) in classes.first.iter_mut().zip(list).zip(masks) {
            *place = class(element, mask);
        }
        if classes.len > INLINE {
            let rest = list.iter().zip(masks).skip(INLINE);
            classes.more = Some(rest.map(|(element, &mask)| class(element, mask)).collect());
        }
        classes
    }

    /// The same with each class changed.
    pub(crate) fn map(&self, change: impl Fn(u8) -> u8) -> Classes {
        let all: Vec<u8> = self.iter().collect();
        Classes::of(&all, &all, |_, class| change(class))
    }

    /// The classes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        let more = self.more.as_deref().unwrap_or_default();
        self.first.iter().chain(more).copied().take(self.len)
    }

    #[inline]
    fn hash(&self) -> usize {
        // The multiplier of rustc's hash; its upper bits are the well mixed ones.
        let mix =
            |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
        let (words, _) = self.first.as_chunks();
        let words = words.iter().map(|&word| u64::from_le_bytes(word));
        let hash = words.fold(self.len as u64, mix);
        let more = self.more.as_deref().unwrap_or_default();
        let more = more.iter().map(|&class| class.into());
        (more.fold(hash, mix) >> 32) as usize
    }
}

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
}

impl<T: Keyed> Table<T> {
    /// A table of up to `limit` things.
    pub(crate) fn new(limit: usize) -> Table<T> {
        Table {
            places: OnceLock::new(),
            count: AtomicUsize::new(0),
            limit,
        }
    }

    /// How many things it may hold.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How many things it holds, those being inserted included.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// What is there for these classes.
    #[inline]
    pub(crate) fn get(&self, classes: &Classes) -> Option<&Arc<T>> {
        let places = self.places.get()?;
        let mut at = classes.hash();
        // The table is never full, so that an empty place ends the search.
        loop {
            let found = places[at & (places.len() - 1)].get()?;
            if found.classes() == classes {
                return Some(found);
            }
            at = at.wrapping_add(1);
        }
    }

    /// What is there for these classes, made if need be; none if the table is full.
    pub(crate) fn get_or_insert(&self, classes: &Classes, make: impl Fn() -> T) -> Option<&Arc<T>> {
        if let Some(found) = self.get(classes) {
            return Some(found);
        }
        // Room is taken before a place is: with it there are always twice as many places as things.
        let room = self.count.fetch_add(1, Ordering::Relaxed);
        if room >= self.limit {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let places = self.places.get_or_init(|| {
            let size = (2 * self.limit.max(1)).next_power_of_two();
            (0..size).map(|_| OnceLock::new()).collect()
        });
        let mut at = classes.hash();
        loop {
            let place = &places[at & (places.len() - 1)];
            let mut is_new = false;
            let found = place.get_or_init(|| {
                is_new = true;
                Arc::new(make())
            });
            if found.classes() == classes {
                if !is_new {
                    // Another thread was faster.
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
                return Some(found);
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
        Classes::of(bytes, bytes, |&byte, _| byte)
    }

    #[test]
    fn classes_differ_in_length_too() {
        let long: Vec<u8> = (0..40).collect();
        assert_eq!(classes(&long).iter().collect::<Vec<_>>(), long);
        let plus_one: Vec<u8> = (1..41).collect();
        assert_eq!(classes(&long).map(|class| class + 1), classes(&plus_one));
        assert_ne!(classes(&[1]), classes(&[1, 0]));
        assert_ne!(classes(&[]), classes(&[0]));
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
                        let thing = table.get_or_insert(&key, || Thing(key.clone()));
                        // While all threads insert, room is taken for each of them.
                        assert!(thing.is_none_or(|thing| thing.0 == key));
                    }
                });
            }
        });
        for i in 0..100 {
            let key = classes(&[i, 7, i, 7, 1, 2, 3, 4, i]);
            let thing = table.get_or_insert(&key, || Thing(key.clone()));
            assert!(thing.is_some_and(|thing| thing.0 == key), "{i}");
        }
        assert_eq!(table.iter().count(), 100);
        let key = classes(&[200]);
        assert!(table.get_or_insert(&key, || Thing(key.clone())).is_none());
        assert!(table.get(&key).is_none());
    }
}
