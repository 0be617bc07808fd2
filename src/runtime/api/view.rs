//! Views: typed device memory that is borrowed, to be read or to be written.

use std::marker::PhantomData;
use std::ops::Range;

use crate::runtime::api::argument::Arg;
use crate::runtime::api::buffer::{Buffer, Element, Pointer};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::stream::Stream;
use crate::runtime::api::transfer;

/// Numbers in device memory that are borrowed to be read: a [`Buffer`], a part of one, or memory of others.
///
/// ```
/// use tilelift::runtime::{Buffer, Device};
///
/// let device = Device::emulator();
/// let stream = device.stream();
/// let x = Buffer::from_slice(&device, &[1, 2, 3, 4, 5, 6])?;
/// let mut y = Buffer::from_slice(&device, &[0; 4])?;
/// y.view_mut().slice(1..3)?.copy_from(&stream, x.view().slice(4..6)?)?;      // on the device
/// let mut part = [0; 3];
/// y.view().slice(0..3)?.read_into(&stream, &mut part)?;
/// assert_eq!(part, [0, 5, 6]);
/// # Ok::<(), tilelift::runtime::RuntimeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    pointer: Pointer<'a>,
    element: PhantomData<T>,
}

/// Numbers in device memory that are borrowed to be written.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    pointer: Pointer<'a>,
    element: PhantomData<T>,
}

macro_rules! views {
    ($($view:ident)*) => {$(
        impl<'a, T: Element> $view<'a, T> {
            /// How many numbers there are.
            pub fn len(&self) -> usize {
                self.pointer.bytes() / T::DTYPE.bytes()
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// A pointer to the first.
            pub fn ptr(&self) -> Pointer<'a> {
                self.pointer
            }

            /// A range of the numbers.
            ///
            /// # Errors
            ///
            /// The range does not lie in the view.
            pub fn slice(self, range: Range<usize>) -> Result<$view<'a, T>, RuntimeError> {
                Ok(self.pointer.slice_by(range, T::DTYPE.bytes())?.into())
            }

            /// The numbers, after what `stream` holds. Those that nobody wrote are unspecified.
            ///
            /// # Errors
            ///
            /// Errors of kernels that ran before, as those of [`Stream::synchronize`].
            pub fn read(&self, stream: &Stream) -> Result<Vec<T>, RuntimeError> {
                let mut values = vec![T::default(); self.len()];
                transfer::read(self.pointer, stream, &mut values)?;
                Ok(values)
            }

            /// [`read`](Self::read) into memory of the caller's, of as many numbers.
            ///
            /// # Errors
            ///
            /// Another number of them; those of [`read`](Self::read).
            pub fn read_into(&self, stream: &Stream, values: &mut [T]) -> Result<(), RuntimeError> {
                transfer::read(self.pointer, stream, values)
            }
        }

        /// The type of what lies there is the caller's word; a launch checks it once more. Bytes at the end that are no whole
        /// number are left out.
        impl<'a, T: Element> From<Pointer<'a>> for $view<'a, T> {
            fn from(pointer: Pointer<'a>) -> Self {
                $view {
                    pointer: pointer.whole(T::DTYPE.bytes()),
                    element: PhantomData,
                }
            }
        }

        impl<'a, T: Element> From<$view<'a, T>> for Arg<'a> {
            #[inline]
            fn from(view: $view<'a, T>) -> Arg<'a> {
                Arg::from(view.pointer)
            }
        }
    )*};
}

views! { View ViewMut }

impl<'a, T: Element> ViewMut<'a, T> {
    /// Copies `values`, as many as there are here, there, after what `stream` holds, and waits for that.
    ///
    /// # Errors
    ///
    /// Another number of values; errors of kernels that ran before.
    pub fn write(&mut self, stream: &Stream, values: &[T]) -> Result<(), RuntimeError> {
        transfer::write(self.pointer, stream, values)
    }

    /// Copies as many numbers from elsewhere, in the order of `stream`; between devices as [`Buffer::copy_from`] says.
    ///
    /// # Errors
    ///
    /// Another number of them; a stream of neither device.
    pub fn copy_from(&mut self, stream: &Stream, from: View<'_, T>) -> Result<(), RuntimeError> {
        transfer::copy(from.pointer, self.pointer, stream)
    }

    /// Sets every byte, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn fill(&mut self, stream: &Stream, byte: u8) -> Result<(), RuntimeError> {
        transfer::fill(self.pointer, stream, byte)
    }

    /// The same for a while, as `&mut *reference` is.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        self.pointer.into()
    }

    /// The same to be read.
    pub fn as_view(&self) -> View<'_, T> {
        self.pointer.into()
    }

    /// The numbers before an index and those from there on.
    ///
    /// # Errors
    ///
    /// There are fewer.
    pub fn split_at(self, at: usize) -> Result<(ViewMut<'a, T>, ViewMut<'a, T>), RuntimeError> {
        let (len, size) = (self.len(), T::DTYPE.bytes());
        let (first, rest) = (
            self.pointer.slice_by(0..at, size)?,
            self.pointer.slice_by(at..len.max(at), size)?,
        );
        Ok((first.into(), rest.into()))
    }
}

/// Memory that a typed launch reads as numbers of type `T`: a buffer, a view, a pointer, whose type is checked at the launch,
/// and with the feature `cuda` memory of `cust`. The arguments of modules compiled ahead ask for it, see
/// [`RustModule`](crate::runtime::RustModule).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory of `{T}` that a kernel can read",
    label = "expected memory of `{T}`",
    note = "such memory is a `&Buffer<{T}>`, a `View<{T}>` or a `Pointer`, whose type is checked at the launch"
)]
pub trait Readable<T: Element> {
    /// All of it.
    fn into_view<'a>(self) -> View<'a, T>
    where
        Self: 'a;
}

/// Memory that a typed launch may write as numbers of type `T`: as [`Readable`], and borrowed to be written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory of `{T}` that a kernel can write",
    label = "expected memory of `{T}`, borrowed to be written",
    note = "such memory is a `&mut Buffer<{T}>`, a `ViewMut<{T}>` or a `Pointer`, whose type is checked at the launch"
)]
pub trait Writable<T: Element> {
    /// All of it.
    fn into_view_mut<'a>(self) -> ViewMut<'a, T>
    where
        Self: 'a;
}

/// Implements a trait of the two for types of memory: `function` of `trait`, which makes a `view` of the pointer.
macro_rules! memory {
    ($($trait:ident::$function:ident -> $view:ident for $memory:ty: |$this:ident| $pointer:expr;)*) => {$(
        impl<T: Element> $trait<T> for $memory {
            fn $function<'a>(self) -> $view<'a, T>
            where
                Self: 'a,
            {
                let $this = self;
                $pointer.into()
            }
        }
    )*};
}

memory! {
    Readable::into_view -> View for &Buffer<T>: |buffer| buffer.ptr();
    Readable::into_view -> View for &mut Buffer<T>: |buffer| buffer.ptr();
    Readable::into_view -> View for View<'_, T>: |view| view.pointer;
    Readable::into_view -> View for ViewMut<'_, T>: |view| view.pointer;
    Readable::into_view -> View for Pointer<'_>: |pointer| pointer;
    Writable::into_view_mut -> ViewMut for &mut Buffer<T>: |buffer| buffer.ptr();
    Writable::into_view_mut -> ViewMut for ViewMut<'_, T>: |view| view.pointer;
    Writable::into_view_mut -> ViewMut for Pointer<'_>: |pointer| pointer;
}
