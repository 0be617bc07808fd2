//! The variants of a kernel in memory, found without a lock.
//!
//! A hash table with open addressing whose places are filled once and never emptied: a place is a [`OnceLock`], so a
//! reader does one atomic load and no writer ever stands in its way; writers take turns. The number of variants is bounded, which makes the
//! size fixed and keeps a kernel whose arguments vary without end from filling the memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::runtime::api::argument::{Arg, Specialize};

/// Classes that need no memory of the heap.
const INLINE: usize = 32;

/// For each argument of a kernel the bits of its class that count.
#[derive(Debug)]
pub(crate) struct Masks {
    /// Zero behind the last.
    fours: Vec<[u8; 4]>,
}

impl Masks {
    pub(crate) fn new(allowed: &[Specialize]) -> Masks {
        let masks: Vec<u8> = allowed.iter().map(|allowed| allowed.mask()).collect();
        let (fours, rest) = masks.as_chunks::<4>();
        let mut fours = fours.to_vec();
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            fours.push(last);
        }
        Masks { fours }
    }

    /// The classes of arguments, masked.
    fn apply(&self, args: &[Arg<'_>]) -> impl Iterator<Item = u8> {
        args.iter()
            .zip(self.fours.as_flattened())
            .map(|(arg, mask)| arg.class & mask)
    }
}

/// The classes of all arguments. Up to 32 take no memory of the heap.
#[derive(Clone, Debug, Eq)]
pub(crate) struct Classes {
    /// The first ones; zero behind the last.
    first: [u8; INLINE],
    more: Option<Box<[u8]>>,
    len: usize,
}

impl Classes {
    /// None.
    #[inline(always)]
    pub(crate) fn none() -> Classes {
        Classes {
            first: [0; INLINE],
            more: None,
            len: 0,
        }
    }

    /// Fills in the classes of arguments, of which each keeps the bits of its mask; gives the devices' numbers of all put
    /// together.
    ///
    /// In place and four at a time: this is a good part of what a launch costs.
    #[inline(always)]
    pub(crate) fn fill(&mut self, args: &[Arg<'_>], masks: &Masks) -> u32 {
        self.len = args.len();
        let mut devices = 0;
        let (places, _) = self.first.as_chunks_mut::<4>();
        let (fours, rest) = args.as_chunks::<4>();
        for ((place, args), mask) in places.iter_mut().zip(fours).zip(&masks.fours) {
            for i in 0..4 {
                place[i] = args[i].class & mask[i];
                devices |= args[i].device;
            }
        }
        let at = fours.len();
        if let (Some(place), Some(mask)) = (places.get_mut(at), masks.fours.get(at)) {
            for ((place, arg), mask) in place.iter_mut().zip(rest).zip(mask) {
                *place = arg.class & mask;
                devices |= arg.device;
            }
        }
        if args.len() > INLINE {
            devices |= self.fill_more(args, masks);
        }
        devices
    }

    /// The part of [`Classes::fill`] for arguments behind the first ones.
    #[cold]
    fn fill_more(&mut self, args: &[Arg<'_>], masks: &Masks) -> u32 {
        self.more = Some(masks.apply(args).skip(INLINE).collect());
        args.iter().fold(0, |all, arg| all | arg.device)
    }

    /// The same with only the bits of a mask; none if there is a mark among them. It allocates nothing for classes that
    /// take no memory of the heap.
    pub(crate) fn masked(&self, mask: u8, is_mark: impl Fn(u8) -> bool) -> Option<Classes> {
        if self.iter().any(is_mark) {
            return None;
        }
        let mut masked = self.clone();
        masked.first.iter_mut().for_each(|class| *class &= mask);
        let more = masked.more.iter_mut().flat_map(|more| more.iter_mut());
        more.for_each(|class| *class &= mask);
        Some(masked)
    }

    /// These classes.
    pub(crate) fn list(all: &[u8]) -> Classes {
        let mut first = [0; INLINE];
        for (place, &class) in first.iter_mut().zip(all) {
            *place = class;
        }
        Classes {
            first,
            more: all
                .get(INLINE..)
                .filter(|rest| !rest.is_empty())
                .map(Box::from),
            len: all.len(),
        }
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The classes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        let more = self.more.as_deref().unwrap_or_default();
        self.first.iter().chain(more).copied().take(self.len)
    }

    #[inline]
    fn hash(&self) -> usize {
        // The multiplier of rustc's hash; its upper bits are the well mixed ones.
        const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
        let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
        let (words, _) = self.first.as_chunks();
        let words = words.iter().map(|&word| u64::from_le_bytes(word));
        let mut hash = words.fold(self.len as u64, mix);
        if self.len > INLINE
            && let Some(more) = &self.more
        {
            hash = more.iter().map(|&class| class.into()).fold(hash, mix);
        }
        (hash >> 32) as usize
    }
}

impl PartialEq for Classes {
    #[inline]
    fn eq(&self, other: &Classes) -> bool {
        // What fills the first ones has no more.
        self.len == other.len
            && self.first == other.first
            && (self.len <= INLINE || self.more == other.more)
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
    fn classes_differ_in_length_too() {
        let long: Vec<u8> = (0..40).collect();
        assert_eq!(classes(&long).iter().collect::<Vec<_>>(), long);
        let plus_one: Vec<u8> = (1..41).collect();
        assert_ne!(classes(&long), classes(&plus_one));
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
