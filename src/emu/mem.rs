//! Memory: allocations of the device, and the regions that CTAs and threads own.
//!
//! Every byte has a bit that says whether anybody wrote it. Allocations stand apart by a guard gap,
//! so that an access past the end of one never lands in the next.

use std::ops::Range;

use super::error::MemoryError;
use crate::limits::list_with_room;

/// Where shared memory starts in its own space. Not zero, so that a null pointer is caught; a
/// multiple of the largest alignment that anything asks for.
pub(super) const SHARED_BASE: u64 = 1024;
/// Where local memory starts in its own space.
pub(super) const LOCAL_BASE: u64 = 1024;
/// Generic addresses of shared memory.
pub(super) const SHARED_WINDOW: Range<u64> = 0x7000_0000_0000..0x7001_0000_0000;
/// An address of the cluster holds one more than the rank of its CTA from this bit on; none in a CTA's own ones.
pub(super) const RANK_BIT: u32 = 24;
/// Generic addresses of local memory.
pub(super) const LOCAL_WINDOW: Range<u64> = 0x7100_0000_0000..0x7101_0000_0000;
/// Generic addresses of kernel parameters.
pub(super) const PARAM_WINDOW: Range<u64> = 0x7200_0000_0000..0x7201_0000_0000;
/// The first allocation.
const GLOBAL_BASE: u64 = 0x0200_0000_0000;
/// Bytes between allocations, at least.
const GUARD: u64 = 4096;
/// Alignment of allocations.
const ALIGN: u64 = 256;
/// What bytes hold that nobody wrote: a NaN in most float formats.
const POISON: u8 = 0xff;

/// One bit for each byte: has it been written?
#[derive(Clone, Debug, Default)]
struct Written {
    bits: Vec<u64>,
}

impl Written {
    fn new(bytes: usize) -> Written {
        Written {
            bits: vec![0; bytes.div_ceil(64)],
        }
    }

    fn set(&mut self, at: usize, count: usize, value: bool) {
        let mut at = at;
        let end = at + count;
        while at < end {
            let bit = at % 64;
            let run = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - run)) << bit;
            if value {
                self.bits[at / 64] |= mask;
            } else {
                self.bits[at / 64] &= !mask;
            }
            at += run;
        }
    }

    /// The first unwritten byte of a range.
    fn first_missing(&self, at: usize, count: usize) -> Option<usize> {
        let mut at = at;
        let end = at + count;
        while at < end {
            let bit = at % 64;
            let run = (64 - bit).min(end - at);
            let missing = !self.bits[at / 64] & ((u64::MAX >> (64 - run)) << bit);
            if missing != 0 {
                return Some(at - bit + missing.trailing_zeros() as usize);
            }
            at += run;
        }
        None
    }
}

/// A run of bytes with an address and a record of what was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) base: u64,
    pub(super) data: Vec<u8>,
    written: Written,
    /// The parts that a launch may touch, sorted and apart; none says all.
    limits: Vec<Range<usize>>,
}

impl Region {
    pub(super) fn new(base: u64, bytes: usize) -> Region {
        Region {
            base,
            data: vec![POISON; bytes],
            written: Written::new(bytes),
            limits: Vec::new(),
        }
    }

    /// As [`Region::new`]; none if the host has no memory for it.
    fn try_new(base: u64, bytes: usize) -> Option<Region> {
        let mut data = list_with_room(bytes)?;
        let mut bits = list_with_room(bytes.div_ceil(64))?;
        data.resize(bytes, POISON);
        bits.resize(bytes.div_ceil(64), 0);
        Some(Region {
            base,
            data,
            written: Written { bits },
            limits: Vec::new(),
        })
    }

    /// The offset of an access that lies inside.
    #[inline]
    pub(super) fn offset(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        (offset.checked_add(bytes)? <= self.data.len()).then_some(offset)
    }

    /// As [`Region::offset`], of an access that a launch may make.
    #[inline]
    fn permitted(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = self.offset(address, bytes)?;
        let is_in = |part: &Range<usize>| part.start <= offset && offset + bytes <= part.end;
        (self.limits.is_empty() || self.limits.iter().any(is_in)).then_some(offset)
    }

    #[inline]
    pub(super) fn is_written(&self, offset: usize, bytes: usize) -> bool {
        let bit = offset % 64;
        if bit + bytes <= 64 && bytes > 0 {
            let mask = (u64::MAX >> (64 - bytes)) << bit;
            return self.written.bits[offset / 64] & mask == mask;
        }
        self.written.first_missing(offset, bytes).is_none()
    }

    #[inline]
    pub(super) fn mark(&mut self, offset: usize, bytes: usize, written: bool) {
        self.written.set(offset, bytes, written);
    }

    /// Reads 1, 2, 4 or 8 bytes, little-endian. Each width has its own path: a copy of variable
    /// length followed by a load of eight bytes would stall on every element.
    #[inline]
    pub(super) fn load(&self, offset: usize, bytes: usize) -> u64 {
        let data = &self.data[offset..];
        match bytes {
            1 => u64::from(data[0]),
            2 => data
                .first_chunk()
                .map_or(0, |&word| u64::from(u16::from_le_bytes(word))),
            4 => data
                .first_chunk()
                .map_or(0, |&word| u64::from(u32::from_le_bytes(word))),
            _ => data
                .first_chunk()
                .map_or(0, |&word| u64::from_le_bytes(word)),
        }
    }

    /// Writes 1, 2, 4 or 8 bytes, little-endian, without marking them.
    #[inline]
    pub(super) fn store(&mut self, offset: usize, bytes: usize, value: u64) {
        let data = &mut self.data[offset..];
        match bytes {
            1 => data[0] = value as u8,
            2 => data[..2].copy_from_slice(&(value as u16).to_le_bytes()),
            4 => data[..4].copy_from_slice(&(value as u32).to_le_bytes()),
            _ => data[..8].copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// Device memory: buffers that the host allocates and kernels work on.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Sorted by address.
    regions: Vec<Region>,
    next: u64,
    /// Names and contents of the variables of the module that ran last.
    variables: Vec<(String, Vec<u8>)>,
}

impl Memory {
    /// What a variable of the module held at the end of the last launch.
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.variables.iter();
        all.find(|(n, _)| n == name).map(|(_, bytes)| &bytes[..])
    }

    /// Takes the variables of a module, by name, address and size, out of memory after a launch.
    pub(super) fn keep_variables(&mut self, variables: impl Iterator<Item = (String, u64, usize)>) {
        self.variables.clear();
        for (name, address, bytes) in variables {
            let held = self.read_raw(address, bytes).unwrap_or_default();
            self.variables.push((name, held));
            self.free(address).expect("allocated by this launch");
        }
    }

    /// Memory without allocations.
    pub fn new() -> Memory {
        Memory {
            regions: Vec::new(),
            next: GLOBAL_BASE,
            variables: Vec::new(),
        }
    }

    /// Allocates bytes that count as unwritten, at an address that is a multiple of 256.
    ///
    /// # Panics
    /// Where [`Memory::try_alloc`] gives an error.
    pub fn alloc(&mut self, bytes: usize) -> u64 {
        self.try_alloc(bytes)
            .expect("the host has memory for the buffer, as this function asks for")
    }

    /// As [`Memory::alloc`], with an error where the host has no memory for so many bytes, or the device no addresses.
    pub fn try_alloc(&mut self, bytes: usize) -> Result<u64, MemoryError> {
        let base = self.next.max(GLOBAL_BASE);
        // Addresses end where the windows of the other spaces start.
        let end = base.checked_add(bytes as u64);
        end.filter(|&end| end <= SHARED_WINDOW.start - GUARD)
            .ok_or(MemoryError::TooLarge { bytes })?;
        let region = Region::try_new(base, bytes).ok_or(MemoryError::TooLarge { bytes })?;
        self.next = (base + bytes as u64 + GUARD).next_multiple_of(ALIGN);
        self.regions.push(region);
        Ok(base)
    }

    /// Allocates and writes.
    ///
    /// # Panics
    /// As [`Memory::alloc`].
    pub fn alloc_bytes(&mut self, bytes: &[u8]) -> u64 {
        let base = self.alloc(bytes.len());
        if let Some(region) = self.regions.last_mut() {
            region.data.copy_from_slice(bytes);
            region.mark(0, bytes.len(), true);
        }
        base
    }

    /// Gives an allocation back. Its address is not used again.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        match self
            .regions
            .binary_search_by_key(&address, |region| region.base)
        {
            Ok(at) => {
                self.regions.remove(at);
                Ok(())
            }
            Err(_) => Err(MemoryError::OutOfBounds { address, bytes: 0 }),
        }
    }

    /// Writes bytes, which must lie in one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let (index, offset) = self.locate(address, bytes.len())?;
        let region = &mut self.regions[index];
        region.data[offset..offset + bytes.len()].copy_from_slice(bytes);
        region.mark(offset, bytes.len(), true);
        Ok(())
    }

    /// Reads bytes that host or kernel wrote.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, MemoryError> {
        let (index, offset) = self.locate(address, bytes)?;
        let region = &self.regions[index];
        match region.written.first_missing(offset, bytes) {
            Some(missing) => Err(MemoryError::Uninitialised {
                address: region.base + missing as u64,
            }),
            None => Ok(region.data[offset..offset + bytes].to_vec()),
        }
    }

    /// Reads bytes whether written or not; unwritten ones are `0xff`.
    pub fn read_raw(&self, address: u64, bytes: usize) -> Result<Vec<u8>, MemoryError> {
        let (index, offset) = self.locate(address, bytes)?;
        Ok(self.regions[index].data[offset..offset + bytes].to_vec())
    }

    /// Bytes as elements of `size` bytes, and which of these were written as a whole; the others are zero.
    #[cfg(feature = "tool")]
    pub(crate) fn snapshot(
        &self,
        address: u64,
        bytes: usize,
        size: usize,
    ) -> Result<(Vec<u8>, Vec<bool>), MemoryError> {
        let (index, offset) = self.locate(address, bytes)?;
        let region = &self.regions[index];
        let mut data = region.data[offset..offset + bytes].to_vec();
        let count = bytes / size.max(1);
        if region.written.first_missing(offset, bytes).is_none() {
            return Ok((data, vec![true; count]));
        }
        let is_written = |i: usize| region.is_written(offset + i * size, size);
        let written: Vec<bool> = (0..count).map(is_written).collect();
        for (element, _) in data
            .chunks_exact_mut(size.max(1))
            .zip(&written)
            .filter(|(_, written)| !**written)
        {
            element.fill(0);
        }
        Ok((data, written))
    }

    fn locate(&self, address: u64, bytes: usize) -> Result<(usize, usize), MemoryError> {
        self.find(address, bytes, 0)
            .ok_or(MemoryError::OutOfBounds { address, bytes })
    }

    /// Index of the allocation and offset in it; `hint` is tried first.
    #[inline]
    pub(super) fn find(&self, address: u64, bytes: usize, hint: usize) -> Option<(usize, usize)> {
        if let Some(region) = self.regions.get(hint)
            && let Some(offset) = region.permitted(address, bytes)
        {
            return Some((hint, offset));
        }
        let index = self
            .regions
            .partition_point(|region| region.base <= address)
            .checked_sub(1)?;
        Some((index, self.regions[index].permitted(address, bytes)?))
    }

    /// Lets launches touch, of allocations that one of these ranges (address and bytes) begins in, no more than what the
    /// ranges cover; other allocations as a whole. Takes back what was said before.
    pub(crate) fn limit(&mut self, ranges: impl Iterator<Item = (u64, usize)>) {
        for region in &mut self.regions {
            region.limits.clear();
        }
        for (address, bytes) in ranges {
            let found = self
                .regions
                .partition_point(|region| region.base <= address)
                .checked_sub(1);
            let region = found.map(|index| &mut self.regions[index]);
            let place = region.and_then(|region| Some((region.offset(address, 0)?, region)));
            if let Some((offset, region)) = place {
                let end = offset.saturating_add(bytes).min(region.data.len());
                region.limits.push(offset..end);
            }
        }
        for region in &mut self.regions {
            region.limits.sort_by_key(|part| part.start);
            region.limits.dedup_by(|next, part| {
                let is_joined = next.start <= part.end;
                if is_joined {
                    part.end = part.end.max(next.end);
                }
                is_joined
            });
            let all = 0..region.data.len();
            if region.limits.contains(&all) {
                region.limits.clear();
            }
        }
    }

    /// Whether a range lies in one allocation.
    pub(crate) fn holds(&self, address: u64, bytes: usize) -> bool {
        self.locate(address, bytes).is_ok()
    }

    #[inline]
    pub(super) fn region(&mut self, index: usize) -> &mut Region {
        &mut self.regions[index]
    }

    pub(super) fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// Says where an address that lies in no allocation is.
    pub(super) fn nearest(&self, address: u64) -> String {
        let Some(index) = self
            .regions
            .partition_point(|region| region.base <= address)
            .checked_sub(1)
        else {
            return "below all allocations".to_owned();
        };
        let region = &self.regions[index];
        let end = region.base + region.data.len() as u64;
        if address < end && !region.limits.is_empty() {
            let parts = region.limits.iter();
            let parts: Vec<String> = parts.map(|p| format!("{} to {}", p.start, p.end)).collect();
            return format!(
                "byte {} of the allocation of {} bytes at {:#x}, of which the launch was given {}",
                address - region.base,
                region.data.len(),
                region.base,
                parts.join(", ")
            );
        }
        if address < end {
            return format!(
                "it crosses the end of the allocation of {} bytes at {:#x}",
                region.data.len(),
                region.base
            );
        }
        format!(
            "{} bytes past the allocation of {} bytes at {:#x}",
            address - end,
            region.data.len(),
            region.base
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bits_know_partial_words() {
        let mut region = Region::new(0, 300);
        region.mark(60, 10, true);
        assert!(region.is_written(60, 10));
        assert!(!region.is_written(59, 2));
        assert!(!region.is_written(69, 2));
        region.mark(64, 1, false);
        assert!(!region.is_written(60, 8));
        assert!(region.is_written(65, 5));
        assert_eq!(region.written.first_missing(60, 10), Some(64));
    }

    #[test]
    fn launches_touch_what_they_were_given() {
        let mut memory = Memory::new();
        let [a, b] = [100, 100].map(|bytes| memory.alloc(bytes));
        let parts = [(a + 40, 10), (a, 20), (a + 10, 20), (a + 60, 0)];
        memory.limit(parts.into_iter());
        let is_in = |memory: &Memory, from: u64, bytes| memory.find(from, bytes, 0).is_some();
        assert!(is_in(&memory, a, 30), "two that overlap");
        assert!(!is_in(&memory, a, 31) && !is_in(&memory, a + 30, 1));
        assert!(is_in(&memory, a + 49, 1) && !is_in(&memory, a + 49, 2));
        assert!(!is_in(&memory, a + 60, 1));
        assert!(is_in(&memory, b, 100), "another allocation");
        let text = memory.nearest(a + 30);
        assert!(text.contains("0 to 30, 40 to 50"), "{text}");
        // The whole of it, in two parts; and nothing of another.
        memory.limit([(a, 50), (a + 50, 50), (b, 0)].into_iter());
        assert!(is_in(&memory, a, 100) && !is_in(&memory, b, 1));
        memory.limit(std::iter::empty());
        assert!(is_in(&memory, b, 100));
    }

    #[test]
    fn allocations_are_apart_and_checked() {
        let mut memory = Memory::new();
        let a = memory.alloc(100);
        let b = memory.alloc_bytes(&[1, 2, 3, 4]);
        assert_eq!((a % 256, b % 256), (0, 0));
        assert!(b - a >= 100 + GUARD);
        assert_eq!(memory.read(b, 4), Ok(vec![1, 2, 3, 4]));
        assert_eq!(
            memory.read(a, 1),
            Err(MemoryError::Uninitialised { address: a })
        );
        assert_eq!(memory.read_raw(a, 2), Ok(vec![POISON; 2]));
        memory
            .write(a + 98, &[7, 8])
            .expect("inside the allocation");
        assert_eq!(memory.read(a + 98, 2), Ok(vec![7, 8]));
        assert!(memory.write(a + 99, &[7, 8]).is_err());
        for bytes in [usize::MAX, usize::MAX / 2, 1 << 46, 1 << 42] {
            assert_eq!(
                memory.try_alloc(bytes),
                Err(MemoryError::TooLarge { bytes })
            );
        }
        memory.free(a).expect("allocated above");
        assert!(memory.read_raw(a, 1).is_err());
        assert!(memory.free(a).is_err());
        assert_eq!(memory.read(b, 4), Ok(vec![1, 2, 3, 4]));
    }
}
