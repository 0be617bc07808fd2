//! Device memory: owned buffers, and pointers borrowed from them or from others.

use super::context::Context;
use super::error::{DriverError, check};
use super::ffi;
use super::stream::Stream;
use core::ffi::c_uint;
use core::marker::PhantomData;
use core::ops::Range;
use cust::memory::{DeviceBuffer, DeviceCopy, DevicePointer, DeviceSlice};

/// A type that is copied between host and device as it lies in memory.
///
/// # Safety
///
/// Every pattern of bits is a value, and there is no padding.
pub unsafe trait Element: Copy + 'static {}

macro_rules! elements {
    ($($element:ty),*) => {
        $(
            // SAFETY: a number without padding, and any bits are one.
            unsafe impl Element for $element {}
        )*
    };
}

elements!(
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    f32,
    f64,
    half::f16,
    half::bf16
);

/// Bytes of device memory, freed when dropped.
///
/// Typed access is by method, as kernels see bytes anyhow.
#[derive(Debug)]
pub struct Buffer {
    context: Context,
    address: u64,
    bytes: usize,
}

impl Buffer {
    /// Allocates `bytes`, aligned to 256, with undefined contents.
    ///
    /// # Errors
    ///
    /// [`DriverError::OutOfMemory`].
    pub fn new(context: &Context, bytes: usize) -> Result<Buffer, DriverError> {
        let mut address = 0;
        // The driver refuses empty allocations, callers need not care.
        if bytes > 0 {
            let _current = context.enter()?;
            let _unrecorded = Unrecorded::begin();
            // SAFETY: writes one address; a context is current.
            let code = unsafe { ffi::cuMemAlloc_v2(&raw mut address, bytes) };
            if code == ffi::OUT_OF_MEMORY {
                let free = context.memory().map_or(0, |(free, _)| free);
                return Err(DriverError::OutOfMemory { bytes, free });
            }
            check("cuMemAlloc", code)?;
        }
        Ok(Buffer {
            context: context.clone(),
            address,
            bytes,
        })
    }

    /// Allocates room for `values` and copies them there, on `stream`.
    ///
    /// # Errors
    ///
    /// Those of [`Buffer::new`] and [`Buffer::write`].
    pub fn from_slice<T: Element>(stream: &Stream, values: &[T]) -> Result<Buffer, DriverError> {
        let buffer = Buffer::new(stream.context(), size_of_val(values))?;
        buffer.write(stream, values)?;
        Ok(buffer)
    }

    /// The size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The buffer's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A pointer to the whole buffer.
    #[must_use]
    pub fn ptr(&self) -> RawPtr<'_> {
        RawPtr {
            address: self.address,
            bytes: self.bytes,
            device: Some(self.context.device().ordinal),
            owner: PhantomData,
        }
    }

    /// A pointer to a range of bytes.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the range does not lie in the buffer.
    pub fn slice(&self, range: Range<usize>) -> Result<RawPtr<'_>, DriverError> {
        self.ptr().slice(range)
    }

    /// Copies `values`, as many bytes as the buffer has, to the device and waits for that.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the sizes differ; errors of kernels that ran before.
    pub fn write<T: Element>(&self, stream: &Stream, values: &[T]) -> Result<(), DriverError> {
        self.ptr().write(stream, values)
    }

    /// Copies the contents, as many bytes as `values` has, to the host and waits for that.
    ///
    /// # Errors
    ///
    /// As [`Buffer::write`].
    pub fn read<T: Element>(&self, stream: &Stream, values: &mut [T]) -> Result<(), DriverError> {
        self.ptr().read(stream, values)
    }

    /// Copies the contents to the host and waits for that.
    ///
    /// # Errors
    ///
    /// As [`Buffer::write`], also if the size is not a multiple of the element's.
    pub fn to_vec<T: Element + Default>(&self, stream: &Stream) -> Result<Vec<T>, DriverError> {
        let mut values = vec![T::default(); self.bytes / size_of::<T>().max(1)];
        self.read(stream, &mut values)?;
        Ok(values)
    }

    /// Sets every byte, in stream order.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), DriverError> {
        self.ptr().fill(stream, byte)
    }

    /// Sets every byte to 0xff: NaN in every float, so that what a kernel forgets to write shows.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn poison(&self, stream: &Stream) -> Result<(), DriverError> {
        self.fill(stream, 0xff)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes > 0
            && let Ok(_current) = self.context.enter()
        {
            let _unrecorded = Unrecorded::begin();
            // SAFETY: made by `new` and not used afterwards. The driver waits for work under
            // way before it gives the memory to anybody else.
            let _ = unsafe { ffi::cuMemFree_v2(self.address) };
        }
    }
}

/// While it lives, calls of this thread that allocate or free do not make the recording of a stream void: by themselves they
/// are no part of what is recorded.
pub(super) struct Unrecorded {
    before: c_uint,
}

impl Unrecorded {
    pub(super) fn begin() -> Unrecorded {
        /// `CU_STREAM_CAPTURE_MODE_RELAXED`.
        const RELAXED: c_uint = 2;
        Unrecorded {
            before: exchange(RELAXED),
        }
    }
}

impl Drop for Unrecorded {
    fn drop(&mut self) {
        exchange(self.before);
    }
}

/// Gives this thread another mode and returns the one it had.
fn exchange(mut mode: c_uint) -> c_uint {
    // SAFETY: reads and writes one number. It fails for other modes than the three alone.
    let _ = unsafe { ffi::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    mode
}

/// A pointer to device memory that somebody else owns: a [`Buffer`], or another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPtr<'a> {
    // The first field: launches pass its address on.
    pub(super) address: u64,
    bytes: usize,
    device: Option<u32>,
    owner: PhantomData<&'a Buffer>,
}

impl<'a> RawPtr<'a> {
    /// Takes over an address, such as `tensor.data_ptr()`, with the number of bytes behind it.
    ///
    /// # Safety
    ///
    /// The memory may be read and written by the device, at these addresses, as long as the
    /// result or a kernel it was passed to is in use, and nothing on the host relies on its
    /// contents then.
    #[must_use]
    pub unsafe fn from_raw(address: u64, bytes: usize) -> RawPtr<'a> {
        RawPtr {
            address,
            bytes,
            device: None,
            owner: PhantomData,
        }
    }

    /// The pointer that another [`RawPtr`] was, which its user kept as numbers: device memory that may be read and
    /// written.
    pub(crate) fn from_parts(address: u64, bytes: usize) -> RawPtr<'a> {
        RawPtr {
            address,
            bytes,
            device: None,
            owner: PhantomData,
        }
    }

    /// The null pointer, for parameters that a kernel does not use.
    #[must_use]
    pub fn null() -> RawPtr<'static> {
        RawPtr {
            address: 0,
            bytes: 0,
            device: None,
            owner: PhantomData,
        }
    }

    /// The address as a pointer of `cust`, for its functions and its own launches.
    #[must_use]
    pub fn to_cust<T: DeviceCopy>(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.address)
    }

    /// The address on the device.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes from there on.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A part of the memory, by byte range.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the range does not lie in it.
    pub fn slice(self, range: Range<usize>) -> Result<RawPtr<'a>, DriverError> {
        if range.start > range.end || range.end > self.bytes {
            return Err(DriverError::Size {
                what: "a range outside the memory",
                got: range.end.max(range.start),
                expected: self.bytes,
            });
        }
        Ok(RawPtr {
            address: self.address + range.start as u64,
            bytes: range.end - range.start,
            ..self
        })
    }

    /// See [`Buffer::write`].
    ///
    /// # Errors
    ///
    /// Those of [`Buffer::write`].
    pub fn write<T: Element>(&self, stream: &Stream, values: &[T]) -> Result<(), DriverError> {
        let bytes = size_of_val(values);
        self.expect(stream, "a copy to the device", bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _current = stream.context().enter()?;
        // SAFETY: the sizes agree; the waiting below keeps `values` borrowed until the copy is
        // done, and if it cannot wait because the stream is in capture, that very call makes
        // the capture void, so the recorded copy never runs.
        let code = unsafe {
            ffi::cuMemcpyHtoDAsync_v2(self.address, values.as_ptr().cast(), bytes, stream.raw())
        };
        check("cuMemcpyHtoDAsync", code)?;
        stream.synchronize()
    }

    /// See [`Buffer::read`].
    ///
    /// # Errors
    ///
    /// Those of [`Buffer::write`].
    pub fn read<T: Element>(&self, stream: &Stream, values: &mut [T]) -> Result<(), DriverError> {
        let bytes = size_of_val(values);
        self.expect(stream, "a copy to the host", bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _current = stream.context().enter()?;
        // SAFETY: as in `write`; any bytes make valid elements.
        let code = unsafe {
            ffi::cuMemcpyDtoHAsync_v2(
                values.as_mut_ptr().cast(),
                self.address,
                bytes,
                stream.raw(),
            )
        };
        check("cuMemcpyDtoHAsync", code)?;
        stream.synchronize()
    }

    /// Copies from other memory of the same size, in stream order.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the sizes differ.
    pub fn copy_from(&self, stream: &Stream, other: RawPtr<'_>) -> Result<(), DriverError> {
        self.expect(stream, "a copy on the device", other.bytes)?;
        let _current = stream.context().enter()?;
        // SAFETY: both ranges are device memory of this size.
        let code = unsafe {
            ffi::cuMemcpyDtoDAsync_v2(self.address, other.address, self.bytes, stream.raw())
        };
        check("cuMemcpyDtoDAsync", code)
    }

    /// Copies from memory of the same size of another context to this, which is of `own`, in the order of `stream`, which is of either.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the sizes differ; what the driver reports.
    pub fn copy_from_peer(
        &self,
        stream: &Stream,
        own: &Context,
        other: RawPtr<'_>,
        of: &Context,
    ) -> Result<(), DriverError> {
        if other.bytes != self.bytes {
            return Err(DriverError::Size {
                what: "a copy between devices",
                got: other.bytes,
                expected: self.bytes,
            });
        }
        if self.bytes == 0 {
            return Ok(());
        }
        let _current = stream.context().enter()?;
        // SAFETY: both ranges are memory of this size, of contexts that are alive.
        let code = unsafe {
            ffi::cuMemcpyPeerAsync(
                self.address,
                own.raw(),
                other.address,
                of.raw(),
                self.bytes,
                stream.raw(),
            )
        };
        check("cuMemcpyPeerAsync", code)
    }

    /// See [`Buffer::fill`].
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), DriverError> {
        self.expect_device("the memory to fill", stream.context())?;
        if self.bytes == 0 {
            return Ok(());
        }
        let _current = stream.context().enter()?;
        // SAFETY: the range is device memory.
        let code = unsafe { ffi::cuMemsetD8Async(self.address, byte, self.bytes, stream.raw()) };
        check("cuMemsetD8Async", code)
    }

    /// An error unless `bytes` is the size of the memory and the stream is of its device.
    pub(super) fn expect(
        &self,
        stream: &Stream,
        what: &'static str,
        bytes: usize,
    ) -> Result<(), DriverError> {
        if bytes != self.bytes {
            return Err(DriverError::Size {
                what,
                got: bytes,
                expected: self.bytes,
            });
        }
        self.expect_device(what, stream.context())
    }

    /// An error if the memory is known to belong to another device than `context`'s.
    pub(super) fn expect_device(
        &self,
        what: &'static str,
        context: &Context,
    ) -> Result<(), DriverError> {
        let expected = context.device().ordinal;
        match self.device {
            Some(got) if got != expected => Err(DriverError::Device {
                what,
                expected,
                got,
            }),
            _ => Ok(()),
        }
    }
}

/// Memory of `cust`, of the context in which it was made.
impl<'a, T: DeviceCopy> From<&'a DeviceSlice<T>> for RawPtr<'a> {
    fn from(slice: &'a DeviceSlice<T>) -> RawPtr<'a> {
        RawPtr::from_parts(
            slice.as_device_ptr().as_raw(),
            slice.len().saturating_mul(size_of::<T>()),
        )
    }
}

impl<'a, T: DeviceCopy> From<&'a DeviceBuffer<T>> for RawPtr<'a> {
    fn from(buffer: &'a DeviceBuffer<T>) -> RawPtr<'a> {
        RawPtr::from(&**buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_stay_inside() {
        // SAFETY: nothing reads or writes through the pointer.
        let whole = unsafe { RawPtr::from_raw(0x1000, 64) };
        let part = whole.slice(16..48).expect("inside");
        assert_eq!((part.address(), part.bytes()), (0x1010, 32));
        assert_eq!(whole.slice(64..64).map(|empty| empty.bytes()), Ok(0));
        assert!(part.slice(0..33).is_err());
        #[expect(clippy::reversed_empty_ranges, reason = "bad input is the point")]
        let reversed = whole.slice(5..4);
        assert!(reversed.is_err());
    }
}
