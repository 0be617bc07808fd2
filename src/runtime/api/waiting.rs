//! Waiting without a thread: futures of what a stream does, and the host memory that copies need for that.
//!
//! They need no runtime of their own: the driver tells when a point of a stream is reached, and whoever polls is woken then.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::emu::MemoryError;
use crate::limits::list_with_room;

use crate::runtime::api::buffer::{Buffer, Direct, Pointer};
use crate::runtime::api::device::{Backend, Device};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::stream::Stream;
use crate::runtime::api::transfer;
use crate::runtime::api::view::{View, ViewMut};

#[cfg(feature = "cuda")]
use crate::driver;

/// Numbers in memory of the host that a GPU copies from and to by itself: what asynchronous copies need. On the emulator it is
/// memory like any other. It reads as a slice.
pub struct Pinned<T: Direct> {
    device: Device,
    memory: Host<T>,
}

enum Host<T: Direct> {
    Plain(Vec<T>),
    #[cfg(feature = "cuda")]
    Pinned(driver::Pinned<T>),
}

impl<T: Direct> Pinned<T> {
    /// Memory for so many numbers, all 0.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub fn new(device: &Device, len: usize) -> Result<Pinned<T>, RuntimeError> {
        device.usable()?;
        let memory = match device.backend() {
            Backend::Emulated(_) => {
                let bytes = len.saturating_mul(size_of::<T>());
                let mut list = list_with_room(len).ok_or(MemoryError::TooLarge { bytes })?;
                list.resize(len, T::default());
                Host::Plain(list)
            }
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => {
                let memory = driver::Pinned::new(&gpu.context, len);
                Host::Pinned(memory.map_err(|error| device.failed(None, error))?)
            }
        };
        Ok(Pinned {
            device: device.clone(),
            memory,
        })
    }

    /// Memory that holds `values`.
    ///
    /// # Errors
    ///
    /// Those of [`Pinned::new`].
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Pinned<T>, RuntimeError> {
        let mut pinned = Pinned::new(device, values.len())?;
        pinned.copy_from_slice(values);
        Ok(pinned)
    }
}

impl<T: Direct> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Host::Plain(list) => list,
            #[cfg(feature = "cuda")]
            Host::Pinned(pinned) => pinned,
        }
    }
}

impl<T: Direct> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Host::Plain(list) => list,
            #[cfg(feature = "cuda")]
            Host::Pinned(pinned) => pinned,
        }
    }
}

impl<T: Direct> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} of {})", self.len(), T::DTYPE)
    }
}

/// The end of what a stream holds: [`Stream::done`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Done {
    device: Device,
    #[cfg(feature = "cuda")]
    notice: Option<driver::Notice>,
}

impl Stream {
    /// A future of the end of what the stream holds now, as [`Stream::synchronize`] waits for. On the emulator that is at once.
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    /// use tilelift::runtime::Device;
    ///
    /// let device = Device::emulator();
    /// let mut done = std::pin::pin!(device.stream().done()?);
    /// let poll = done.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    /// assert_eq!(poll, Poll::Ready(Ok(())));
    /// # use std::future::Future;
    /// # Ok::<(), tilelift::runtime::RuntimeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the driver reports, also that a graph records the stream.
    pub fn done(&self) -> Result<Done, RuntimeError> {
        let device = self.device().clone();
        device.usable()?;
        #[cfg(feature = "cuda")]
        if let Some(raw) = self.as_driver() {
            let notice = driver::Notice::new(raw).map_err(|error| device.failed(None, error))?;
            return Ok(Done {
                device,
                notice: Some(notice),
            });
        }
        self.expect_no_recording("waiting for the stream")?;
        Ok(Done {
            device,
            #[cfg(feature = "cuda")]
            notice: None,
        })
    }
}

impl Future for Done {
    type Output = Result<(), RuntimeError>;

    #[cfg_attr(
        not(feature = "cuda"),
        expect(unused_variables, reason = "the emulator is done at once")
    )]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        #[cfg(feature = "cuda")]
        if let Some(notice) = &self.notice {
            return notice.poll(context.waker()).map(|reached| {
                reached.map_err(|error| self.device.failed(None, error))?;
                self.device.check_asserts()
            });
        }
        Poll::Ready(self.device.usable())
    }
}

/// A copy between device and [`Pinned`] memory that is under way: a future that gives the memory back. [`Copying::wait`] waits
/// without one. Dropped, it waits for its end.
#[derive(Debug)]
#[must_use = "dropped, it waits for the end of the copy"]
pub struct Copying<T: Direct> {
    #[cfg(feature = "cuda")]
    device: Device,
    under_way: UnderWay<T>,
}

#[derive(Debug)]
enum UnderWay<T: Direct> {
    /// Done, and taken once.
    Plain(Option<Pinned<T>>),
    #[cfg(feature = "cuda")]
    Gpu(driver::Copying<T>),
}

/// Nothing of it is pinned in place.
impl<T: Direct> Unpin for Copying<T> {}

impl<T: Direct> View<'_, T> {
    /// Begins to copy the numbers to memory of the host, as many, in the order of `stream`, and returns at once.
    ///
    /// # Errors
    ///
    /// Another number of them; what the driver reports, also that a graph records the stream.
    pub fn read_async(&self, stream: &Stream, to: Pinned<T>) -> Result<Copying<T>, RuntimeError> {
        begin(self.ptr(), stream, to, true)
    }
}

impl<T: Direct> ViewMut<'_, T> {
    /// Begins to copy numbers from memory of the host, as many, in the order of `stream`, and returns at once.
    ///
    /// # Errors
    ///
    /// As [`View::read_async`].
    pub fn write_async(
        &mut self,
        stream: &Stream,
        from: Pinned<T>,
    ) -> Result<Copying<T>, RuntimeError> {
        begin(self.ptr(), stream, from, false)
    }
}

impl<T: Direct> Buffer<T> {
    /// [`Buffer::read`] as a future: begins to copy, and returns at once.
    ///
    /// # Errors
    ///
    /// As [`View::read_async`].
    pub fn read_async(&self, stream: &Stream) -> Result<Copying<T>, RuntimeError> {
        self.view()
            .read_async(stream, Pinned::new(self.device(), self.len())?)
    }
}

/// Begins a copy to the host, or from it.
fn begin<T: Direct>(
    pointer: Pointer<'_>,
    stream: &Stream,
    pinned: Pinned<T>,
    is_read: bool,
) -> Result<Copying<T>, RuntimeError> {
    let Pinned { device, memory } = pinned;
    if stream.device().id() != device.id() {
        let what = "the pinned memory".to_owned();
        return Err(RuntimeError::OtherDevice { what });
    }
    device.usable()?;
    let under_way = match memory {
        Host::Plain(mut list) => {
            match is_read {
                true => transfer::read(pointer, stream, &mut list)?,
                false => transfer::write(pointer, stream, &list)?,
            }
            let memory = Host::Plain(list);
            let device = device.clone();
            UnderWay::Plain(Some(Pinned { device, memory }))
        }
        #[cfg(feature = "cuda")]
        Host::Pinned(memory) => {
            transfer::expect_device("device memory", pointer, stream)?;
            let (raw, driver) = (transfer::raw(pointer), stream.driver()?);
            let begun = match is_read {
                true => driver::Copying::read(raw, driver, memory),
                false => driver::Copying::write(raw, driver, memory),
            };
            UnderWay::Gpu(begun.map_err(|error| device.failed(None, error))?)
        }
    };
    Ok(Copying {
        #[cfg(feature = "cuda")]
        device,
        under_way,
    })
}

impl<T: Direct> Copying<T> {
    /// Waits for the end of the copy, and gives the memory back.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before, as those of [`Stream::synchronize`].
    pub fn wait(self) -> Result<Pinned<T>, RuntimeError> {
        match self.under_way {
            UnderWay::Plain(pinned) => pinned.ok_or(RuntimeError::CopyTaken),
            #[cfg(feature = "cuda")]
            UnderWay::Gpu(copying) => {
                let memory = copying
                    .wait()
                    .map_err(|error| self.device.failed(None, error))?;
                self.device.check_asserts()?;
                let (device, memory) = (self.device, Host::Pinned(memory));
                Ok(Pinned { device, memory })
            }
        }
    }
}

impl<T: Direct> Future for Copying<T> {
    type Output = Result<Pinned<T>, RuntimeError>;

    #[cfg_attr(
        not(feature = "cuda"),
        expect(unused_variables, reason = "the emulator is done at once")
    )]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match &mut this.under_way {
            UnderWay::Plain(pinned) => Poll::Ready(pinned.take().ok_or(RuntimeError::CopyTaken)),
            #[cfg(feature = "cuda")]
            UnderWay::Gpu(copying) => copying.poll(context.waker()).map(|memory| {
                let memory = memory.map_err(|error| this.device.failed(None, error))?;
                this.device.check_asserts()?;
                Ok(Pinned {
                    device: this.device.clone(),
                    memory: Host::Pinned(memory),
                })
            }),
        }
    }
}
