//! Views: typed device memory that is borrowed, to be read or to be written.

use std::marker::PhantomData;
use std::ops::Range;

use super::argument::Arg;
use super::buffer::{Buffer, Element, Pointer};
use super::error::RuntimeError;
use super::stream::Stream;
use super::transfer;

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
                Ok(self.pointer.slice(range)?.into())
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

        /// The type of what lies there is the caller's word; a launch checks it once more.
        impl<'a, T: Element> From<Pointer<'a>> for $view<'a, T> {
            fn from(pointer: Pointer<'a>) -> Self {
                $view {
                    pointer,
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

    /// Copies as many numbers from elsewhere on the device, in the order of `stream`.
    ///
    /// # Errors
    ///
    /// Another number of them; memory of another device.
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
        let (first, rest) = (
            self.pointer.slice(0..at)?,
            self.pointer.slice(at..self.len())?,
        );
        Ok((first.into(), rest.into()))
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> View<'a, T> {
        buffer.view()
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> View<'a, T> {
        buffer.view()
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> ViewMut<'a, T> {
        buffer.view_mut()
    }
}

impl<'a, T: Element> From<ViewMut<'a, T>> for View<'a, T> {
    fn from(view: ViewMut<'a, T>) -> View<'a, T> {
        view.pointer.into()
    }
}
