//! Device memory: owned buffers of numbers, and pointers to them or to memory of others.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use crate::runtime::api::device::{Backend, Device};
use crate::runtime::api::dtype::DType;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::float8::{F8E4M3, F8E5M2};
use crate::runtime::api::stream::Stream;
use crate::runtime::api::transfer::{self, bytes_of};
use crate::runtime::api::view::{View, ViewMut};
use crate::runtime::execute::kept_memory;

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
pub trait Element: Copy + Default + 'static {
    /// Its format.
    const DTYPE: DType;

    /// What it is copied as: itself, if any bits are one.
    type Bits: Plain + Default;

    /// Appends its bytes.
    fn put(self, bytes: &mut Vec<u8>);

    /// The number of these bytes.
    fn take(bytes: &[u8]) -> Self;

    /// What numbers are copied as.
    fn bits(values: &[Self]) -> Cow<'_, [Self::Bits]>;

    /// The numbers as what they are copied as, if that is the same.
    fn bits_mut(values: &mut [Self]) -> Option<&mut [Self::Bits]>;

    /// The number that was copied as this.
    fn of_bits(bits: Self::Bits) -> Self;
}

/// An [`Element`] that is copied as it is: every one but `bool` and the floats of 8 bits.
pub trait Direct: Element<Bits = Self> + Plain {}
impl<T: Element<Bits = T> + Plain> Direct for T {}

macro_rules! elements {
    ($($ty:ty, $dtype:ident;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            type Bits = $ty;

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn take(bytes: &[u8]) -> $ty {
                bytes.first_chunk().map_or(<$ty>::default(), |&chunk| <$ty>::from_le_bytes(chunk))
            }

            fn bits(values: &[$ty]) -> Cow<'_, [$ty]> {
                Cow::Borrowed(values)
            }

            fn bits_mut(values: &mut [$ty]) -> Option<&mut [$ty]> {
                Some(values)
            }

            fn of_bits(bits: $ty) -> $ty {
                bits
            }
        }
    )*};
}

/// Those that are a byte of which not any is one, or that Rust does not know.
macro_rules! byte_elements {
    ($($ty:ty, $dtype:ident, |$value:ident| $to:expr, |$bits:ident| $of:expr;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            type Bits = u8;

            fn put(self, bytes: &mut Vec<u8>) {
                let $value = self;
                bytes.push($to);
            }

            fn take(bytes: &[u8]) -> $ty {
                Self::of_bits(bytes.first().copied().unwrap_or_default())
            }

            fn bits(values: &[$ty]) -> Cow<'_, [u8]> {
                Cow::Owned(values.iter().map(|&$value| $to).collect())
            }

            fn bits_mut(_: &mut [$ty]) -> Option<&mut [u8]> {
                None
            }

            fn of_bits($bits: u8) -> $ty {
                $of
            }
        }
    )*};
}

byte_elements! {
    bool, BOOL, |truth| u8::from(truth), |bits| bits != 0;
    F8E4M3, F8E4M3, |float| float.to_bits(), |bits| F8E4M3::from_bits(bits);
    F8E5M2, F8E5M2, |float| float.to_bits(), |bits| F8E5M2::from_bits(bits);
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

/// Numbers in device memory, freed when dropped; work that uses them still finishes. What a thread drops while it records a
/// [`Graph`](crate::runtime::Graph) is freed with the graph, or with the recording if that fails.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    device: Device,
    memory: Arc<Memory>,
    len: usize,
    element: PhantomData<T>,
}

/// Device memory that is freed when dropped.
#[derive(Debug)]
pub(crate) enum Memory {
    Emulated {
        device: Device,
        address: u64,
    },
    #[cfg(feature = "cuda")]
    Gpu(driver::Buffer),
}

impl Memory {
    fn new(device: &Device, bytes: usize) -> Result<Memory, RuntimeError> {
        match device.backend() {
            Backend::Emulated(emulated) => Ok(Memory::Emulated {
                device: device.clone(),
                address: emulated.memory().try_alloc(bytes)?,
            }),
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => {
                let buffer = driver::Buffer::new(&gpu.context, bytes);
                Ok(Memory::Gpu(
                    buffer.map_err(|error| device.failed(None, error))?,
                ))
            }
        }
    }

    fn address(&self) -> u64 {
        match self {
            Memory::Emulated { address, .. } => *address,
            #[cfg(feature = "cuda")]
            Memory::Gpu(buffer) => buffer.ptr().address(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self {
            Memory::Emulated { device, address } => {
                if let Some(emulated) = device.as_emulated() {
                    // It was allocated there; if it is gone, there is nobody to tell.
                    let _ = emulated.memory().free(*address);
                }
            }
            // The driver's buffer drops itself.
            #[cfg(feature = "cuda")]
            Memory::Gpu(_) => {}
        }
    }
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
        Ok(Buffer {
            device: device.clone(),
            memory: Arc::new(Memory::new(device, bytes)?),
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
        match (&*buffer.memory, device.backend()) {
            (Memory::Emulated { address, .. }, Backend::Emulated(emulated)) => {
                emulated.recording.expect_other_thread("making a buffer")?;
                emulated.memory().write(*address, &bytes_of(values))?;
            }
            #[cfg(feature = "cuda")]
            (Memory::Gpu(memory), Backend::Gpu(gpu)) => {
                let written = gpu
                    .copies()
                    .and_then(|stream| memory.write(stream, &T::bits(values)));
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
        Pointer {
            address: self.memory.address(),
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

    /// All of it, to be read.
    pub fn view(&self) -> View<'_, T> {
        self.ptr().into()
    }

    /// All of it, to be written.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.ptr().into()
    }

    /// Copies `values`, as many as the buffer holds, there, after what `stream` holds, and waits for that.
    ///
    /// # Errors
    ///
    /// Another number of values; errors of kernels that ran before.
    pub fn write(&self, stream: &Stream, values: &[T]) -> Result<(), RuntimeError> {
        transfer::write(self.ptr(), stream, values)
    }

    /// The numbers, after what `stream` holds. Numbers that nobody wrote are unspecified.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before, as those of [`Stream::synchronize`].
    pub fn read(&self, stream: &Stream) -> Result<Vec<T>, RuntimeError> {
        self.view().read(stream)
    }

    /// [`Buffer::read`] into memory of the caller's, of as many numbers.
    ///
    /// # Errors
    ///
    /// Another number of them; those of [`Buffer::read`].
    pub fn read_into(&self, stream: &Stream, values: &mut [T]) -> Result<(), RuntimeError> {
        self.view().read_into(stream, values)
    }

    /// Copies from a buffer of the same length, in the order of `stream`; [`ViewMut::copy_from`] copies parts.
    ///
    /// The other buffer may be of another device, and `stream` of either: what the other device has under way is not waited
    /// for, which is for [`Stream::wait`]. Between GPUs the copy goes through the host unless
    /// [`Device::enable_peer_access`] found a way; between a GPU and the emulator this waits for its end.
    ///
    /// # Errors
    ///
    /// Another length; a stream of neither device.
    pub fn copy_from(&self, stream: &Stream, from: &Buffer<T>) -> Result<(), RuntimeError> {
        transfer::copy(from.ptr(), self.ptr(), stream)
    }

    /// Sets every byte, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), RuntimeError> {
        transfer::fill(self.ptr(), stream, byte)
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        kept_memory::keep(&self.memory);
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

    /// Bytes at an address of a device that is not known.
    pub(in crate::runtime) fn of_bytes(address: u64, bytes: usize) -> Pointer<'static> {
        Pointer {
            bytes,
            address,
            ..Pointer::null(DType::U8)
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

    /// The same memory as numbers of another type.
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
        self.slice_by(range, self.dtype.bytes())
    }

    /// A range of what lies there, as numbers of so many bytes.
    pub(in crate::runtime) fn slice_by(
        self,
        range: Range<usize>,
        size: usize,
    ) -> Result<Pointer<'a>, RuntimeError> {
        let len = self.bytes / size;
        if range.start > range.end || range.end > len {
            return Err(RuntimeError::Range { range, len });
        }
        Ok(Pointer {
            address: self.address + (range.start * size) as u64,
            bytes: (range.end - range.start) * size,
            ..self
        })
    }

    /// The same without the bytes at the end that are no whole number of so many.
    pub(in crate::runtime) fn whole(self, size: usize) -> Pointer<'a> {
        Pointer {
            bytes: self.bytes - self.bytes % size,
            ..self
        }
    }

    /// Number of its device; 0 if that is not known.
    pub(crate) fn device(&self) -> u32 {
        self.device
    }
}
