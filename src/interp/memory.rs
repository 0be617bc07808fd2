//! The interpreter's memory: buffers far apart, each byte knowing whether anyone wrote it.
//!
//! Addresses are made up. Between buffers lies more unmapped space than an index that went wrong
//! usually spans, so that reading past a buffer does not land in the next one.

use super::Options;
use super::error::InterpErrorKind;
use super::races::{AccessKind, AccessLog, ElementAccess, Known};
use crate::device_print::{Log, Record};
use crate::ir::attrs::MemOrder;
use crate::limits::list_with_room;

/// Address of the first buffer; small numbers taken for pointers hit nothing.
const FIRST_ADDRESS: u64 = 0x10_0000_0000;

/// Every buffer starts at a multiple of this, as those of the driver do.
const ALIGN: u64 = 256;

/// Least number of unmapped bytes between buffers.
const GUARD: u64 = 1 << 20;

/// Bits of a byte that was read and one that was written.
const READ: u8 = 1;
const WRITTEN: u8 = 2;

/// What bytes hold before anyone writes them: a pattern that stands out, as a float and as an integer.
const POISON: u8 = 0xcd;

/// Why an access to memory is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Some of the bytes are in no buffer.
    #[error("{bytes} bytes at {address:#x} are not inside a buffer{}", near(*nearest))]
    OutOfBounds {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        bytes: usize,
        /// Start and size of the last buffer below the address.
        nearest: Option<(u64, usize)>,
    },
    /// A byte nobody wrote.
    #[error("the byte at {address:#x} was never written{}", near(Some(*buffer)))]
    Uninitialised {
        /// Its address.
        address: u64,
        /// Start and size of its buffer.
        buffer: (u64, usize),
    },
    /// A buffer that the host has no memory for.
    #[error("there is no memory for a buffer of {bytes} bytes")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

fn near(buffer: Option<(u64, usize)>) -> String {
    match buffer {
        Some((start, bytes)) => format!(" (buffer of {bytes} bytes at {start:#x})"),
        None => String::new(),
    }
}

#[derive(Clone, Debug)]
struct Buffer {
    start: u64,
    bytes: Vec<u8>,
    written: Vec<bool>,
}

/// Device memory as the interpreter sees it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Sorted by address, because addresses are given out in rising order.
    buffers: Vec<Buffer>,
    log: Vec<Record>,
}

impl Memory {
    /// What kernels printed since this was last asked; [`crate::device_print::sites`] says what the numbers of sites mean.
    pub fn take_log(&mut self) -> Log {
        let mut records = std::mem::take(&mut self.log);
        records.sort_unstable();
        Log { records, lost: 0 }
    }

    /// Memory without buffers.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// A new buffer whose bytes nobody wrote; its address is a multiple of 256.
    ///
    /// # Panics
    /// Where [`Memory::try_alloc`] gives an error.
    pub fn alloc(&mut self, bytes: usize) -> u64 {
        self.try_alloc(bytes)
            .expect("the host has memory for the buffer, as this function asks for")
    }

    /// As [`Memory::alloc`], with an error where the host has no memory for so many bytes.
    pub fn try_alloc(&mut self, bytes: usize) -> Result<u64, MemoryError> {
        let start = match self.buffers.last() {
            Some(last) => (last.start + last.bytes.len() as u64 + GUARD).next_multiple_of(ALIGN),
            None => FIRST_ADDRESS,
        };
        let too_large = || MemoryError::TooLarge { bytes };
        let mut data = list_with_room(bytes).ok_or_else(too_large)?;
        let mut written = list_with_room(bytes).ok_or_else(too_large)?;
        data.resize(bytes, POISON);
        written.resize(bytes, false);
        self.buffers.push(Buffer {
            start,
            bytes: data,
            written,
        });
        Ok(start)
    }

    /// A new buffer that holds `bytes`.
    ///
    /// # Panics
    /// As [`Memory::alloc`].
    pub fn alloc_bytes(&mut self, bytes: &[u8]) -> u64 {
        let start = self.alloc(bytes.len());
        if let Some(buffer) = self.buffers.last_mut() {
            buffer.bytes.copy_from_slice(bytes);
            buffer.written.fill(true);
        }
        start
    }

    /// Writes bytes, which must lie in one buffer.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let (index, offset) = self.locate(address, bytes.len(), 0)?;
        let buffer = &mut self.buffers[index];
        buffer.bytes[offset..][..bytes.len()].copy_from_slice(bytes);
        buffer.written[offset..][..bytes.len()].fill(true);
        Ok(())
    }

    /// Reads bytes, all of which must lie in one buffer and have been written.
    pub fn read(&self, address: u64, bytes: usize) -> Result<&[u8], MemoryError> {
        let (index, offset) = self.locate(address, bytes, 0)?;
        self.read_at(index, offset, bytes)
    }

    /// Reads bytes of one buffer whether or not anyone wrote them.
    pub fn read_raw(&self, address: u64, bytes: usize) -> Result<&[u8], MemoryError> {
        let (index, offset) = self.locate(address, bytes, 0)?;
        Ok(&self.buffers[index].bytes[offset..][..bytes])
    }

    /// Bytes as elements of `size` bytes, and which of these were written as a whole; the others are zero.
    #[cfg(feature = "tool")]
    pub(crate) fn snapshot(
        &self,
        address: u64,
        bytes: usize,
        size: usize,
    ) -> Result<(Vec<u8>, Vec<bool>), MemoryError> {
        let (index, offset) = self.locate(address, bytes, 0)?;
        let buffer = &self.buffers[index];
        let mut data = buffer.bytes[offset..][..bytes].to_vec();
        let elements = buffer.written[offset..][..bytes].chunks_exact(size.max(1));
        let written: Vec<bool> = elements.map(|bytes| bytes.iter().all(|&w| w)).collect();
        for (element, _) in data
            .chunks_exact_mut(size.max(1))
            .zip(&written)
            .filter(|(_, written)| !**written)
        {
            element.fill(0);
        }
        Ok((data, written))
    }

    fn read_at(&self, index: usize, offset: usize, bytes: usize) -> Result<&[u8], MemoryError> {
        let buffer = &self.buffers[index];
        let written = &buffer.written[offset..][..bytes];
        match written.iter().position(|&w| !w) {
            Some(i) => Err(MemoryError::Uninitialised {
                address: buffer.start + (offset + i) as u64,
                buffer: (buffer.start, buffer.bytes.len()),
            }),
            None => Ok(&buffer.bytes[offset..][..bytes]),
        }
    }

    /// The buffer that holds the bytes, and where in it; `guess` is the buffer to try first.
    fn locate(
        &self,
        address: u64,
        bytes: usize,
        guess: usize,
    ) -> Result<(usize, usize), MemoryError> {
        let inside = |buffer: &Buffer| {
            let offset = usize::try_from(address.checked_sub(buffer.start)?).ok()?;
            let fits = offset <= buffer.bytes.len() && bytes <= buffer.bytes.len() - offset;
            fits.then_some(offset)
        };
        if let Some(offset) = self.buffers.get(guess).and_then(inside) {
            return Ok((guess, offset));
        }
        let below = self.buffers.partition_point(|b| b.start <= address);
        let index = below.checked_sub(1);
        let found = index.and_then(|i| Some((i, inside(&self.buffers[i])?)));
        found.ok_or_else(|| MemoryError::OutOfBounds {
            address,
            bytes,
            nearest: index.map(|i| (self.buffers[i].start, self.buffers[i].bytes.len())),
        })
    }
}

/// Memory during one launch: element accesses with their checks.
#[derive(Debug)]
pub(super) struct LaunchMemory<'a> {
    memory: &'a mut Memory,
    /// Who touched what; none if races are not looked for.
    order: Option<AccessLog>,
    /// For each byte whether it was read and written; none if that is not counted.
    touched: Option<Vec<Vec<u8>>>,
    /// The buffer touched last: the next access is most likely to it.
    last: usize,
}

impl<'a> LaunchMemory<'a> {
    /// Memory for one launch of a kernel, which has atomic ops or not.
    pub(super) fn new(memory: &'a mut Memory, options: &Options, atomics: bool) -> Self {
        let sizes: Vec<usize> = memory.buffers.iter().map(|b| b.bytes.len()).collect();
        let order = options
            .check_races
            .then(|| AccessLog::new(&sizes, atomics, options.report_equal_writes));
        let touched = options
            .count_bytes
            .then(|| sizes.iter().map(|&bytes| vec![0; bytes]).collect());
        LaunchMemory {
            memory,
            order,
            touched,
            last: 0,
        }
    }

    /// Bytes that were read, and those that were written.
    pub(super) fn touched(&self) -> [u64; 2] {
        let bytes = self.touched.iter().flatten().flatten();
        let mut counts = [0; 2];
        for touched in bytes {
            counts[0] += u64::from(touched & READ);
            counts[1] += u64::from(touched / WRITTEN);
        }
        counts
    }

    /// Says that the accesses that follow are those of program number `number`.
    pub(super) fn enter_program(&mut self, number: u32) {
        if let Some(order) = &mut self.order {
            order.enter_program(number);
        }
    }

    /// Says that the accesses that follow are those of the program's producer.
    pub(super) fn enter_producer(&mut self) -> Known {
        self.order
            .as_mut()
            .map_or_else(Known::default, AccessLog::enter_producer)
    }

    /// The program goes on, with what it knew.
    pub(super) fn leave_producer(&mut self, known: Known) {
        if let Some(order) = &mut self.order {
            order.leave_producer(known);
        }
    }

    /// The program's accesses up to here come before those that follow.
    pub(super) fn barrier(&mut self) {
        if let Some(order) = &mut self.order {
            order.barrier();
        }
    }

    /// Adds to what was printed.
    pub(super) fn log(&mut self, record: Record) {
        self.memory.log.push(record);
    }

    /// An atomic step on the element at `address` orders what its op says.
    pub(super) fn synchronise(&mut self, address: u64, sem: MemOrder, is_scalar: bool) {
        let place = self.memory.locate(address, 1, self.last);
        if let (Some(order), Ok(byte)) = (&mut self.order, place) {
            order.synchronise(byte, sem, is_scalar);
        }
    }

    /// The element of `size` bytes at `address`, zero-extended.
    pub(super) fn load(
        &mut self,
        address: u64,
        size: u32,
        kind: AccessKind,
    ) -> Result<u64, InterpErrorKind> {
        let bytes = self.place(address, size)?;
        let (index, offset) = self.memory.locate(address, bytes, self.last)?;
        self.last = index;
        let mut element = [0; 8];
        element[..bytes].copy_from_slice(self.memory.read_at(index, offset, bytes)?);
        self.touch(index, offset, bytes, kind, None)?;
        Ok(u64::from_le_bytes(element))
    }

    /// Writes the low `size` bytes of `element` at `address`.
    pub(super) fn store(
        &mut self,
        address: u64,
        size: u32,
        element: u64,
    ) -> Result<(), InterpErrorKind> {
        let bytes = self.place(address, size)?;
        let (index, offset) = self.memory.locate(address, bytes, self.last)?;
        self.last = index;
        self.touch(index, offset, bytes, AccessKind::Write, Some(element))?;
        let buffer = &mut self.memory.buffers[index];
        buffer.bytes[offset..][..bytes].copy_from_slice(&element.to_le_bytes()[..bytes]);
        buffer.written[offset..][..bytes].fill(true);
        Ok(())
    }

    /// Writes the element of which an atomic step began with a load.
    pub(super) fn replace(
        &mut self,
        address: u64,
        size: u32,
        element: u64,
    ) -> Result<(), InterpErrorKind> {
        let bytes = element.to_le_bytes();
        self.memory.write(address, &bytes[..size as usize])?;
        Ok(())
    }

    fn place(&self, address: u64, size: u32) -> Result<usize, InterpErrorKind> {
        if address.is_multiple_of(u64::from(size)) {
            Ok(size as usize)
        } else {
            Err(InterpErrorKind::Misaligned { address, size })
        }
    }

    /// Records an access, a store if there is a value, and reports what races with it.
    fn touch(
        &mut self,
        index: usize,
        offset: usize,
        bytes: usize,
        kind: AccessKind,
        stored: Option<u64>,
    ) -> Result<(), InterpErrorKind> {
        if let Some(touched) = &mut self.touched {
            let how = match kind {
                AccessKind::Read | AccessKind::StrongRead => READ,
                AccessKind::Write => WRITTEN,
                AccessKind::Atomic => READ | WRITTEN,
            };
            for byte in &mut touched[index][offset..][..bytes] {
                *byte |= how;
            }
        }
        let Some(order) = &mut self.order else {
            return Ok(());
        };
        let buffer = &self.memory.buffers[index];
        let now = &buffer.bytes[offset..][..bytes];
        let access = ElementAccess {
            kind,
            offset,
            bytes,
            equal: stored.is_some_and(|element| element.to_le_bytes()[..bytes] == *now),
        };
        order.touch((index, buffer.start), access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_apart_and_know_what_was_written() {
        let mut memory = Memory::new();
        let a = memory.alloc(5);
        let b = memory.alloc_bytes(&[1, 2, 3]);
        assert_eq!((a % 256, b % 256), (0, 0));
        assert!(b - a > 1 << 20);
        memory.write(a + 1, &[7, 8]).expect("inside the buffer");
        assert_eq!(memory.read(a + 1, 2), Ok(&[7, 8][..]));
        assert_eq!(
            memory.read(a, 2),
            Err(MemoryError::Uninitialised {
                address: a,
                buffer: (a, 5)
            })
        );
        assert_eq!(memory.read_raw(a, 2), Ok(&[POISON, 7][..]));
        assert_eq!(memory.read(b, 3), Ok(&[1, 2, 3][..]));
        let past_the_end = memory.read(b + 2, 2).expect_err("one byte too many");
        assert_eq!(
            past_the_end.to_string(),
            format!(
                "2 bytes at {:#x} are not inside a buffer (buffer of 3 bytes at {b:#x})",
                b + 2
            )
        );
        assert!(memory.write(0, &[0]).is_err());
        for bytes in [usize::MAX, usize::MAX / 2, 1 << 60, 1 << 42] {
            assert_eq!(
                memory.try_alloc(bytes),
                Err(MemoryError::TooLarge { bytes })
            );
        }
        assert!(memory.read(u64::MAX, 2).is_err());
    }
}
