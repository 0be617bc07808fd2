//! The classes of all arguments of a launch: the key that a variant is found by.

use crate::runtime::api::argument::Arg;
use crate::runtime::specialize::class::Specialize;

/// Words for classes that need no memory of the heap, eight of them in each.
const WORDS: usize = 4;

/// Classes in these.
const INLINE: usize = 8 * WORDS;

/// Eight classes, or fewer and zeros behind them.
#[inline(always)]
fn word(classes: impl DoubleEndedIterator<Item = u8>) -> u64 {
    let push = |word, class: u8| word << 8 | u64::from(class);
    classes.rev().fold(0, push)
}

/// For each argument of a kernel the bits of its class that count.
#[derive(Debug)]
pub(crate) struct Masks {
    words: Vec<u64>,
}

impl Masks {
    pub(crate) fn new(allowed: &[Specialize]) -> Masks {
        let masks = |allowed: &[Specialize]| word(allowed.iter().map(|allowed| allowed.mask()));
        Masks {
            words: allowed.chunks(8).map(masks).collect(),
        }
    }

    /// The classes of arguments, masked.
    fn apply(&self, args: &[Arg<'_>]) -> impl Iterator<Item = u8> {
        let masks = self.words.iter().flat_map(|word| word.to_le_bytes());
        args.iter().zip(masks).map(|(arg, mask)| arg.class & mask)
    }
}

/// The classes of all arguments. Up to 32 take no memory of the heap.
#[derive(Clone, Debug, Eq)]
pub(crate) struct Classes {
    /// The first ones; zero behind the last.
    first: [u64; WORDS],
    more: Option<Box<[u8]>>,
    len: usize,
}

impl Classes {
    /// None.
    #[inline(always)]
    pub(crate) fn none() -> Classes {
        Classes {
            first: [0; WORDS],
            more: None,
            len: 0,
        }
    }

    /// Fills in the classes of arguments, of which each keeps the bits of its mask; gives the devices' numbers of all put
    /// together.
    ///
    /// In place and by whole words: this is a good part of what a launch costs, and a processor waits for bytes that are written
    /// one by one where they are read as words.
    #[inline(always)]
    pub(crate) fn fill(&mut self, args: &[Arg<'_>], masks: &Masks) -> u32 {
        self.len = args.len();
        let mut devices = 0;
        let mut class = |arg: &Arg<'_>| {
            devices |= arg.device;
            arg.class
        };
        let mut places = self.first.iter_mut().zip(&masks.words);
        // Eight at a time, whose loop needs no counter.
        let (eights, rest) = args.as_chunks::<8>();
        for (args, (place, mask)) in eights.iter().zip(places.by_ref()) {
            *place = word(args.iter().map(&mut class)) & mask;
        }
        if !rest.is_empty()
            && let Some((place, mask)) = places.next()
        {
            *place = word(rest.iter().map(&mut class)) & mask;
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
        let word = u64::from_le_bytes([mask; 8]);
        masked.first.iter_mut().for_each(|classes| *classes &= word);
        let more = masked.more.iter_mut().flat_map(|more| more.iter_mut());
        more.for_each(|class| *class &= mask);
        Some(masked)
    }

    /// These classes.
    pub(crate) fn list(all: &[u8]) -> Classes {
        let mut first = [0; WORDS];
        for (place, classes) in first.iter_mut().zip(all.chunks(8)) {
            *place = word(classes.iter().copied());
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
        let first = self.first.iter().flat_map(|word| word.to_le_bytes());
        first.chain(more.iter().copied()).take(self.len)
    }

    #[inline]
    pub(super) fn hash(&self) -> usize {
        // The multiplier of rustc's hash; its upper bits are the well mixed ones.
        const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
        let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
        let mut hash = self.first.iter().copied().fold(self.len as u64, mix);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(bytes: &[u8]) -> Classes {
        Classes::list(bytes)
    }

    #[test]
    fn classes_are_filled_in_as_they_are_listed() {
        for count in [0, 1, 7, 8, 9, 31, 32, 33, 40] {
            let args: Vec<Arg<'_>> = (0..count).map(|i| Arg::from(3 * i + 1)).collect();
            let allowed = |i: i32| match i % 3 {
                0 => Specialize::NOTHING,
                _ => Specialize::ALL,
            };
            let allowed: Vec<Specialize> = (0..count).map(allowed).collect();
            let mut filled = Classes::none();
            assert_eq!(filled.fill(&args, &Masks::new(&allowed)), 0);
            let masked = args.iter().zip(&allowed);
            let masked: Vec<u8> = masked.map(|(arg, of)| arg.class & of.mask()).collect();
            assert_eq!(filled, classes(&masked), "{count}");
            assert_eq!(filled.iter().collect::<Vec<_>>(), masked);
        }
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
}
