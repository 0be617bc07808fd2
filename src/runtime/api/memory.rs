//! Memory without a type: what arguments point to, and scratch of the autotuner.

use crate::runtime::api::argument::Arg;
use crate::runtime::api::buffer::{Buffer, Pointer};
use crate::runtime::api::device::Device;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::stream::Stream;
use crate::runtime::api::transfer;
use crate::runtime::specialize::class::POINTER;

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
        transfer::fill(self.pointer(), stream, 0)
    }

    /// Copies from memory of the same size, in the order of the stream.
    pub(crate) fn copy_from(&self, stream: &Stream, other: &Memory) -> Result<(), RuntimeError> {
        transfer::copy(other.pointer(), self.pointer(), stream)
    }

    fn pointer(&self) -> Pointer<'_> {
        Pointer::of_bytes(self.address, self.bytes)
    }
}
