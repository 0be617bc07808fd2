//! Device memory: owned buffers of numbers, and pointers to them or to memory of others.

use std::marker::PhantomData;
use std::ops::Range;

use super::argument::DType;
use super::device::{Backend, Device};
use super::error::RuntimeError;
use super::stream::Stream;

#[cfg(feature = "cuda")]
use crate::driver;

/// What the driver layer asks of an element.
#[cfg(feature = "cuda")]
pub trait Plain: driver::Element {}
#[cfg(feature = "cuda")]
impl<T: driver::Element> Plain for T {}

/// What the driver layer would ask of an element, were it there.
#[cfg(not(feature = "cuda"))]
pub trait Plain: Copy + 'static {}
#[cfg(not(feature = "cuda"))]
impl<T: Copy + 'static> Plain for T {}

/// A number that buffers hold.
pub trait Element: Plain + Default {
    /// Its format.
    const DTYPE: DType;

    /// Appends its bytes.
    fn put(self, bytes: &mut Vec<u8>);

    /// The number of these bytes.
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($ty:ty, $dtype:ident;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn take(bytes: &[u8]) -> $ty {
                bytes.first_chunk().map_or(<$ty>::default(), |&chunk| <$ty>::from_le_bytes(chunk))
            }
        }
    )*};
}

elements! {
    i8, I8;
    i16, I16;
    i32, I32;
    i64, I64;
    u8, U8;
    u16, U16;
    u32, U32;
    u64, U64;
    half::f16, F16;
    half::bf16, BF16;
    f32, F32;
    f64, F64;
}

/// Numbers in device memory, freed when dropped; work that uses them still finishes.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    device: Device,
    storage: Storage,
    len: usize,
    element: PhantomData<T>,
}

#[derive(Debug)]
enum Storage {
    Emulated(u64),
    #[cfg(feature = "cuda")]
    Gpu(driver::Buffer),
}

impl<T: Element> Buffer<T> {
    /// Room for `len` numbers that nobody wrote yet.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub fn new(device: &Device, len: usize) -> Result<Buffer<T>, RuntimeError> {
        device.usable()?;
        let bytes = len.saturating_mul(T::DTYPE.bytes());
        let storage = match device.backend() {
            Backend::Emulated(emulated) => Storage::Emulated(emulated.memory().try_alloc(bytes)?),
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => {
                let buffer = driver::Buffer::new(&gpu.context, bytes);
                Storage::Gpu(buffer.map_err(|error| device.failed(None, error))?)
            }
        };
        Ok(Buffer {
            device: device.clone(),
            storage,
            len,
            element: PhantomData,
        })
    }

    /// A buffer that holds `values`. Waits until they are copied, and for no stream: nothing that is under way, or recorded
    /// by another thread, knows the new memory.
    ///
    /// # Errors
    ///
    /// There is no memory for them; this thread records a graph.
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Buffer<T>, RuntimeError> {
        let buffer = Buffer::new(device, values.len())?;
        match (&buffer.storage, device.backend()) {
            (Storage::Emulated(address), Backend::Emulated(emulated)) => {
                emulated.recording.expect_other_thread("making a buffer")?;
                emulated.memory().write(*address, &bytes_of(values))?;
            }
            #[cfg(feature = "cuda")]
            (Storage::Gpu(memory), Backend::Gpu(gpu)) => {
                let written = gpu.copies().and_then(|stream| memory.write(stream, values));
                written.map_err(|error| device.failed(None, error))?;
            }
            #[cfg(feature = "cuda")]
            _ => {}
        }
        Ok(buffer)
    }

    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A pointer to the first number.
    pub fn ptr(&self) -> Pointer<'_> {
        let address = match &self.storage {
            Storage::Emulated(address) => *address,
            #[cfg(feature = "cuda")]
            Storage::Gpu(buffer) => buffer.ptr().address(),
        };
        Pointer {
            address,
            bytes: self.len * T::DTYPE.bytes(),
            dtype: T::DTYPE,
            device: self.device.id(),
            owner: PhantomData,
        }
    }

    /// A pointer to a range of the numbers.
    ///
    /// # Errors
    ///
    /// The range does not lie in the buffer.
    pub fn slice(&self, range: Range<usize>) -> Result<Pointer<'_>, RuntimeError> {
        self.ptr().slice(range)
    }

    /// Copies `values`, as many as the buffer holds, there, after what `stream` holds, and waits for that.
    ///
    /// # Errors
    ///
    /// Another number of values; errors of kernels that ran before.
    pub fn write(&self, stream: &Stream, values: &[T]) -> Result<(), RuntimeError> {
        self.expect("values to write", values.len())?;
        stream.expect_device(&self.device)?;
        match (&self.storage, self.device.backend()) {
            (Storage::Emulated(address), Backend::Emulated(emulated)) => {
                stream.expect_no_recording("writing a buffer")?;
                Ok(emulated.memory().write(*address, &bytes_of(values))?)
            }
            #[cfg(feature = "cuda")]
            (Storage::Gpu(buffer), _) => {
                let written = buffer.write(stream.driver()?, values);
                written.map_err(|error| self.device.failed(None, error))
            }
            #[cfg(feature = "cuda")]
            (Storage::Emulated(_), Backend::Gpu(_)) => Ok(()),
        }
    }

    /// The numbers, after what `stream` holds. Numbers that nobody wrote are unspecified.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before, as those of [`Stream::synchronize`].
    pub fn read(&self, stream: &Stream) -> Result<Vec<T>, RuntimeError> {
        stream.expect_device(&self.device)?;
        let size = T::DTYPE.bytes();
        match (&self.storage, self.device.backend()) {
            (Storage::Emulated(address), Backend::Emulated(emulated)) => {
                stream.expect_no_recording("reading a buffer")?;
                let bytes = emulated.memory().read_raw(*address, self.len * size)?;
                Ok(bytes.chunks_exact(size).map(T::take).collect())
            }
            #[cfg(feature = "cuda")]
            (Storage::Gpu(buffer), _) => {
                let values = buffer.to_vec(stream.driver()?);
                let values = values.map_err(|error| self.device.failed(None, error))?;
                self.device.check_asserts().map(|()| values)
            }
            #[cfg(feature = "cuda")]
            (Storage::Emulated(_), Backend::Gpu(_)) => Ok(Vec::new()),
        }
    }

    /// Sets every byte, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), RuntimeError> {
        stream.expect_device(&self.device)?;
        match (&self.storage, self.device.backend()) {
            (Storage::Emulated(address), Backend::Emulated(_)) => {
                stream.fill_emulated(*address, self.len * T::DTYPE.bytes(), byte)
            }
            #[cfg(feature = "cuda")]
            (Storage::Gpu(buffer), _) => {
                let filled = buffer.fill(stream.driver()?, byte);
                filled.map_err(|error| self.device.failed(None, error))
            }
            #[cfg(feature = "cuda")]
            (Storage::Emulated(_), Backend::Gpu(_)) => Ok(()),
        }
    }

    fn expect(&self, what: &'static str, got: usize) -> Result<(), RuntimeError> {
        if got != self.len {
            return Err(RuntimeError::Length {
                what,
                got,
                expected: self.len,
            });
        }
        Ok(())
    }
}

/// The bytes of numbers.
fn bytes_of<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * T::DTYPE.bytes());
    values.iter().for_each(|value| value.put(&mut bytes));
    bytes
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        match (&self.storage, self.device.backend()) {
            (Storage::Emulated(address), Backend::Emulated(emulated)) => {
                // It was allocated there; if it is gone, there is nobody to tell.
                let _ = emulated.memory().free(*address);
            }
            // The driver's buffer drops itself.
            #[cfg(feature = "cuda")]
            _ => {}
        }
    }
}

/// An address in device memory with the type of what lies there.
///
/// `T` of the kernel's parameter is that of the pointer: `*fp32` for [`DType::F32`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer<'a> {
    address: u64,
    bytes: usize,
    dtype: DType,
    device: u32,
    owner: PhantomData<&'a ()>,
}

impl<'a> Pointer<'a> {
    /// Memory that another library owns, borrowed by
    /// [`RawPtr::from_raw`](crate::driver::RawPtr::from_raw), as numbers of a type.
    #[cfg(feature = "cuda")]
    pub fn from_driver(raw: driver::RawPtr<'a>, dtype: DType) -> Pointer<'a> {
        Pointer {
            address: raw.address(),
            bytes: raw.bytes(),
            dtype,
            device: 0,
            owner: PhantomData,
        }
    }

    /// The null pointer.
    pub fn null(dtype: DType) -> Pointer<'static> {
        Pointer {
            address: 0,
            bytes: 0,
            dtype,
            device: 0,
            owner: PhantomData,
        }
    }

    /// The address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes from there on.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The type of the numbers there.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The same memory as numbers of another type, such as the 8-bit floats that Rust has no type for.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Pointer<'a> {
        Pointer { dtype, ..self }
    }

    /// A range of the numbers.
    ///
    /// # Errors
    ///
    /// The range does not lie in the memory.
    pub fn slice(self, range: Range<usize>) -> Result<Pointer<'a>, RuntimeError> {
        let size = self.dtype.bytes();
        let len = self.bytes / size;
        if range.start > range.end || range.end > len {
            return Err(RuntimeError::Length {
                what: "a range outside the memory",
                got: range.end.max(range.start),
                expected: len,
            });
        }
        Ok(Pointer {
            address: self.address + (range.start * size) as u64,
            bytes: (range.end - range.start) * size,
            ..self
        })
    }

    /// Number of its device; 0 if that is not known.
    pub(crate) fn device(&self) -> u32 {
        self.device
    }
}
