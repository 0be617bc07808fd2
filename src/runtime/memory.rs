//! Memory without a type: what arguments point to, and scratch of the autotuner.

use super::argument::{Arg, POINTER};
use super::buffer::Buffer;
use super::device::{Backend, Device};
use super::error::RuntimeError;
use super::stream::Stream;

/// A range of device memory: its own, or an argument's, whose owner outlives it.
#[derive(Debug)]
pub(crate) struct Memory {
    address: u64,
    bytes: usize,
    /// Only held.
    _own: Option<Buffer<u8>>,
}

impl Memory {
    /// Memory of its own.
    pub(crate) fn new(device: &Device, bytes: usize) -> Result<Memory, RuntimeError> {
        let own = Buffer::<u8>::new(device, bytes)?;
        Ok(Memory {
            address: own.ptr().address(),
            bytes,
            _own: Some(own),
        })
    }

    /// What an argument points to; nothing if it is no pointer.
    pub(crate) fn of(arg: &Arg<'_>) -> Memory {
        let is_pointer = arg.class & POINTER != 0;
        Memory {
            address: arg.bits,
            bytes: if is_pointer { arg.bytes } else { 0 },
            _own: None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets every byte to 0, in the order of the stream.
    pub(crate) fn zero(&self, stream: &Stream) -> Result<(), RuntimeError> {
        if self.bytes == 0 {
            return Ok(());
        }
        match stream.device().backend() {
            Backend::Emulated(_) => stream.fill_emulated(self.address, self.bytes, 0),
            #[cfg(feature = "cuda")]
            Backend::Gpu(_) => {
                let raw = crate::driver::RawPtr::from_parts(self.address, self.bytes);
                let filled = raw.fill(stream.driver()?, 0);
                filled.map_err(|error| stream.device().failed(None, error))
            }
        }
    }

    /// Copies from memory of the same size, in the order of the stream.
    pub(crate) fn copy_from(&self, stream: &Stream, other: &Memory) -> Result<(), RuntimeError> {
        if self.bytes == 0 {
            return Ok(());
        }
        match stream.device().backend() {
            Backend::Emulated(_) => stream.copy_emulated(other.address, self.address, self.bytes),
            #[cfg(feature = "cuda")]
            Backend::Gpu(_) => {
                let raw = |m: &Memory| crate::driver::RawPtr::from_parts(m.address, m.bytes);
                let copied = raw(self).copy_from(stream.driver()?, raw(other));
                copied.map_err(|error| stream.device().failed(None, error))
            }
        }
    }
}
