//! The classes of all arguments of a launch: the key that a variant is found by.

use crate::runtime::api::argument::Arg;
use crate::runtime::specialize::class::Specialize;

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
    pub(super) fn hash(&self) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
