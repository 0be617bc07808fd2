//! Host memory that the device copies to and from by itself, and a notice when a stream has come to a point.

use super::context::Context;
use super::error::{DriverError, check};
use super::ffi::{self, Code, Handle};
use super::memory::{Element, RawPtr, Unrecorded};
use super::stream::Stream;
use core::ffi::c_void;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::task::{Poll, Waker};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Host memory that stays where it is, so that copies between it and the device need nobody to wait for them.
pub struct Pinned<T: Element> {
    context: Context,
    data: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its memory, of plain numbers.
unsafe impl<T: Element + Send> Send for Pinned<T> {}
// SAFETY: as before; what changes it takes `&mut`.
unsafe impl<T: Element + Sync> Sync for Pinned<T> {}

impl<T: Element> Pinned<T> {
    /// Memory for `len` elements, all bits of them zero.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn new(context: &Context, len: usize) -> Result<Pinned<T>, DriverError> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut data = NonNull::dangling();
        if bytes > 0 {
            let _current = context.enter()?;
            let _unrecorded = Unrecorded::begin();
            let mut address = core::ptr::null_mut();
            // SAFETY: writes one address; a context is current.
            let code = unsafe { ffi::cuMemAllocHost_v2(&raw mut address, bytes) };
            if code == ffi::OUT_OF_MEMORY {
                return Err(DriverError::OutOfPinnedMemory { bytes });
            }
            check("cuMemAllocHost", code)?;
            data = NonNull::new(address.cast::<T>())
                .ok_or(DriverError::OutOfPinnedMemory { bytes })?;
            // SAFETY: so many bytes were allocated just now; zeros are a value of every element.
            unsafe { data.cast::<u8>().write_bytes(0, bytes) };
        }
        Ok(Pinned {
            context: context.clone(),
            data,
            len,
        })
    }
}

impl<T: Element> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many elements, all of them written; nobody writes them while this is borrowed: copies take the value.
        unsafe { core::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl<T: Element> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { core::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

impl<T: Element> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} elements)", self.len)
    }
}

impl<T: Element> Drop for Pinned<T> {
    fn drop(&mut self) {
        if size_of_val(&**self) > 0
            && let Ok(_current) = self.context.enter()
        {
            let _unrecorded = Unrecorded::begin();
            // SAFETY: made by `new`, and no copy is under way: those hold the value.
            let _ = unsafe { ffi::cuMemFreeHost(self.data.as_ptr().cast()) };
        }
    }
}

/// A point in a stream, and whether it was reached; tells who waits. Clones are the same point.
#[derive(Clone, Debug)]
pub struct Notice {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    reached: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The stream's state when it was reached.
    code: Option<Code>,
    waker: Option<Waker>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Called by the driver, on a thread of its own.
extern "C" fn reached(_stream: Handle, code: Code, data: *mut c_void) {
    // SAFETY: `Notice::new` made it from an `Arc`, and this is called once.
    let shared = unsafe { Arc::from_raw(data.cast_const().cast::<Shared>()) };
    let waker = {
        let mut state = shared.state();
        state.code = Some(code);
        state.waker.take()
    };
    shared.reached.notify_all();
    if let Some(waker) = waker {
        // Foreign code; nothing unwinds into the driver. The hook of panics has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

impl Notice {
    /// The point behind what the stream holds now.
    ///
    /// # Errors
    ///
    /// What the driver reports, also that the stream is being captured.
    pub fn new(stream: &Stream) -> Result<Notice, DriverError> {
        let shared = Arc::new(Shared::default());
        let _current = stream.context().enter()?;
        let data = Arc::into_raw(shared.clone());
        // SAFETY: the stream is alive, and the callback takes over the count of `data`.
        let code =
            unsafe { ffi::cuStreamAddCallback(stream.raw(), reached, data.cast_mut().cast(), 0) };
        if code != ffi::SUCCESS {
            // SAFETY: it was not taken over.
            drop(unsafe { Arc::from_raw(data) });
        }
        check("cuStreamAddCallback", code)?;
        Ok(Notice { shared })
    }

    /// The state at the point, if it was reached; else `waker` is woken when it is.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<(), DriverError>> {
        let mut state = self.shared.state();
        match state.code {
            Some(code) => Poll::Ready(check("cuStreamAddCallback", code)),
            None => {
                match &mut state.waker {
                    Some(known) => known.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                Poll::Pending
            }
        }
    }

    /// Waits until it is reached.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before it.
    pub fn wait(&self) -> Result<(), DriverError> {
        let mut state = self.shared.state();
        loop {
            if let Some(code) = state.code {
                return check("cuStreamAddCallback", code);
            }
            let reached = self.shared.reached.wait(state);
            state = reached.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Why a copy was not begun.
struct NotBegun {
    error: DriverError,
    /// Whether it may be under way all the same.
    is_loose: bool,
}

impl From<DriverError> for NotBegun {
    fn from(error: DriverError) -> NotBegun {
        NotBegun {
            error,
            is_loose: false,
        }
    }
}

/// Begins a copy of pinned memory and asks for a notice of its end.
fn begin_copy(
    call: &'static str,
    bytes: usize,
    stream: &Stream,
    begin: impl FnOnce() -> Code,
) -> Result<Notice, NotBegun> {
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
    const CAPTURED: Code = 900;
    // A graph would copy again later, when the memory is gone.
    if stream.is_capturing()? {
        check(call, CAPTURED)?;
    }
    if bytes > 0 {
        check(call, begin())?;
    }
    Notice::new(stream).map_err(|error| NotBegun {
        error,
        // There will be no notice of the end of the copy: it is waited for here.
        is_loose: stream.synchronize().is_err(),
    })
}

/// A copy between device and pinned memory that is under way. Dropped, it waits for its end.
#[derive(Debug)]
pub struct Copying<T: Element> {
    pinned: Option<Pinned<T>>,
    notice: Notice,
}

impl<T: Element> Copying<T> {
    /// Begins to copy to the host, in the order of the stream.
    ///
    /// # Errors
    ///
    /// [`DriverError::Size`] if the sizes differ; what the driver reports.
    pub fn read(
        from: RawPtr<'_>,
        stream: &Stream,
        pinned: Pinned<T>,
    ) -> Result<Copying<T>, DriverError> {
        let bytes = size_of_val(&*pinned);
        from.expect(stream, "a copy to the host", bytes)?;
        pinned
            .context
            .expect_same("the pinned memory", stream.context())?;
        let _current = stream.context().enter()?;
        // SAFETY: the sizes agree, and what is returned holds the memory until the copy is done.
        let begin = || unsafe {
            let to = pinned.data.as_ptr().cast();
            ffi::cuMemcpyDtoHAsync_v2(to, from.address(), bytes, stream.raw())
        };
        let begun = begin_copy("cuMemcpyDtoHAsync", bytes, stream, begin);
        Copying::of(pinned, begun)
    }

    /// Begins to copy to the device, in the order of the stream.
    ///
    /// # Errors
    ///
    /// As [`Copying::read`].
    pub fn write(
        to: RawPtr<'_>,
        stream: &Stream,
        pinned: Pinned<T>,
    ) -> Result<Copying<T>, DriverError> {
        let bytes = size_of_val(&*pinned);
        to.expect(stream, "a copy to the device", bytes)?;
        pinned
            .context
            .expect_same("the pinned memory", stream.context())?;
        let _current = stream.context().enter()?;
        // SAFETY: as in `read`.
        let begin = || unsafe {
            let from = pinned.data.as_ptr().cast_const().cast();
            ffi::cuMemcpyHtoDAsync_v2(to.address(), from, bytes, stream.raw())
        };
        let begun = begin_copy("cuMemcpyHtoDAsync", bytes, stream, begin);
        Copying::of(pinned, begun)
    }

    /// The copy that was begun, if it was; the memory stays allocated for good if it may still be under way.
    fn of(pinned: Pinned<T>, begun: Result<Notice, NotBegun>) -> Result<Copying<T>, DriverError> {
        match begun {
            Ok(notice) => Ok(Copying {
                pinned: Some(pinned),
                notice,
            }),
            Err(NotBegun { error, is_loose }) => {
                if is_loose {
                    core::mem::forget(pinned);
                }
                Err(error)
            }
        }
    }

    /// The memory, once the copy is done; until then `waker` is woken when it is.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Result<Pinned<T>, DriverError>> {
        match self.notice.poll(waker) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => Poll::Ready(result.and_then(|()| self.take())),
        }
    }

    /// Waits for the end of the copy.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before it.
    pub fn wait(mut self) -> Result<Pinned<T>, DriverError> {
        self.notice.wait()?;
        self.take()
    }

    fn take(&mut self) -> Result<Pinned<T>, DriverError> {
        self.pinned.take().ok_or(DriverError::CopyTaken)
    }
}

impl<T: Element> Drop for Copying<T> {
    fn drop(&mut self) {
        if self.pinned.is_some() {
            // The device may still write there. An error is that of another call as well.
            let _ = self.notice.wait();
        }
    }
}
