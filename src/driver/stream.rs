//! Streams, owned and borrowed, and events.

use super::context::Context;
use super::error::{DriverError, check};
use super::ffi::{self, Handle};
use super::module::Module;
use core::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue of work on a device.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    raw: Handle,
    owner: Owner,
    /// Whether `Graph::capture` records this stream. Launches look here first, so that threads which
    /// share a stream do not meet at the lock.
    recording: AtomicBool,
    /// While it does: the modules whose kernels were launched, which the graph keeps loaded.
    recorded: Mutex<Vec<Module>>,
}

/// Who destroys a stream.
#[derive(Debug)]
enum Owner {
    /// This crate, with its value.
    Here,
    /// `cust`, with the last that holds it.
    Cust(Arc<cust::stream::Stream>),
    /// Somebody else, some time.
    Elsewhere,
}

impl Stream {
    /// Makes a stream that does not wait for the default stream, nor makes it wait.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn new(context: &Context) -> Result<Stream, DriverError> {
        /// `CU_STREAM_NON_BLOCKING`, which `cust` 0.3.2 accepts and drops.
        const NON_BLOCKING: c_uint = 1;
        let _current = context.enter()?;
        let mut raw = 0;
        // SAFETY: writes one handle; a context is current.
        let code = unsafe { ffi::cuStreamCreate(&raw mut raw, NON_BLOCKING) };
        check("cuStreamCreate", code)?;
        Ok(Stream::with(context, raw, Owner::Here))
    }

    /// The default stream of the context.
    #[must_use]
    pub fn null(context: &Context) -> Stream {
        Stream::with(context, 0, Owner::Elsewhere)
    }

    /// Borrows a stream that another library made, `cudaStream_t` and `CUstream` alike. It is
    /// never destroyed here.
    ///
    /// # Errors
    ///
    /// [`DriverError::ForeignContext`] if the stream is not of this context.
    ///
    /// # Safety
    ///
    /// The handle is one of a stream (or 0, 1 or 2, the special values of CUDA) and stays valid
    /// as long as the result lives.
    pub unsafe fn from_raw(context: &Context, raw: *mut c_void) -> Result<Stream, DriverError> {
        let stream = Stream::with(context, raw.addr(), Owner::Elsewhere);
        // The special values belong to whichever context is current.
        if stream.raw > 2 {
            let _current = context.enter()?;
            let mut owner = 0;
            // SAFETY: the caller vouches for the handle; writes one handle.
            let code = unsafe { ffi::cuStreamGetCtx(stream.raw, &raw mut owner) };
            check("cuStreamGetCtx", code)?;
            if owner != context.raw() {
                return Err(DriverError::ForeignContext { what: "the stream" });
            }
        }
        Ok(stream)
    }

    /// A stream of `cust`, or one that is shared with the application in an `Arc`. `cust` destroys it with the last that
    /// holds it. A stream that `cust` makes waits for the default stream and is waited for by it, whatever flags it was
    /// made with.
    ///
    /// # Errors
    ///
    /// [`DriverError::ForeignContext`] if the stream is not of this context.
    pub fn from_cust(
        context: &Context,
        stream: impl Into<Arc<cust::stream::Stream>>,
    ) -> Result<Stream, DriverError> {
        let theirs = stream.into();
        // SAFETY: the handle is valid as long as its owner lives, which the result holds.
        let mut stream = unsafe { Stream::from_raw(context, theirs.as_inner().cast()) }?;
        stream.owner = Owner::Cust(theirs);
        Ok(stream)
    }

    fn with(context: &Context, raw: Handle, owner: Owner) -> Stream {
        Stream {
            context: context.clone(),
            raw,
            owner,
            recording: AtomicBool::new(false),
            recorded: Mutex::new(Vec::new()),
        }
    }

    /// The handle, for other libraries. An owned stream is destroyed with `self`.
    #[must_use]
    pub fn as_raw(&self) -> *mut c_void {
        core::ptr::without_provenance_mut(self.raw)
    }

    /// The handle.
    pub(super) fn raw(&self) -> Handle {
        self.raw
    }

    /// The stream's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The list of modules. Nothing that can panic happens under the lock.
    fn recorded(&self) -> MutexGuard<'_, Vec<Module>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a list of the modules whose kernels are launched, or ends it.
    pub(super) fn record(&self, recording: bool) -> Vec<Module> {
        let modules = std::mem::take(&mut *self.recorded());
        self.recording.store(recording, Ordering::Release);
        modules
    }

    /// Whether [`Graph::capture`](super::Graph::capture) records it.
    pub(crate) fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Acquire)
    }

    /// Notes that a kernel of `module` was launched, if the stream is being recorded.
    #[inline]
    pub(super) fn keep(&self, module: &Module) {
        if self.recording.load(Ordering::Acquire) {
            self.keep_recorded(module);
        }
    }

    #[cold]
    fn keep_recorded(&self, module: &Module) {
        let mut modules = self.recorded();
        if !modules.last().is_some_and(|last| last.same(module)) {
            modules.push(module.clone());
        }
    }

    /// Waits until all work of the stream is done.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _current = self.context.enter()?;
        // SAFETY: the handle is alive, see `from_raw`.
        let code = unsafe { ffi::cuStreamSynchronize(self.raw) };
        check("cuStreamSynchronize", code)
    }

    /// Whether all work of the stream is done.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        let _current = self.context.enter()?;
        // SAFETY: the handle is alive.
        ready("cuStreamQuery", unsafe { ffi::cuStreamQuery(self.raw) })
    }

    /// Whether the stream is being captured into a graph, by whomever.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn is_capturing(&self) -> Result<bool, DriverError> {
        let _current = self.context.enter()?;
        let mut status = 0;
        // SAFETY: the handle is alive; writes one enumerator.
        let code = unsafe { ffi::cuStreamIsCapturing(self.raw, &raw mut status) };
        check("cuStreamIsCapturing", code)?;
        Ok(status != 0)
    }

    /// Lets what is put into the stream from now on wait for `event`.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn wait(&self, event: &Event) -> Result<(), DriverError> {
        let _current = self.context.enter()?;
        // SAFETY: both handles are alive.
        let code = unsafe { ffi::cuStreamWaitEvent(self.raw, event.raw, 0) };
        check("cuStreamWaitEvent", code)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else {
            // No call in a child of a fork, nor one of `cust`.
            return core::mem::forget(core::mem::replace(&mut self.owner, Owner::Elsewhere));
        };
        match core::mem::replace(&mut self.owner, Owner::Elsewhere) {
            // SAFETY: made by `new` and not used afterwards; work under way still finishes.
            Owner::Here => drop(unsafe { ffi::cuStreamDestroy_v2(self.raw) }),
            Owner::Cust(theirs) => drop(theirs),
            Owner::Elsewhere => {}
        }
    }
}

/// A mark in a stream, with the time at which the stream reached it.
#[derive(Debug)]
pub struct Event {
    context: Context,
    raw: Handle,
}

impl Event {
    /// Makes an event that can time.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn new(context: &Context) -> Result<Event, DriverError> {
        let _current = context.enter()?;
        let mut raw = 0;
        // SAFETY: writes one handle; a context is current.
        check("cuEventCreate", unsafe {
            ffi::cuEventCreate(&raw mut raw, 0)
        })?;
        Ok(Event {
            context: context.clone(),
            raw,
        })
    }

    /// Puts the mark behind what `stream` holds now.
    ///
    /// # Errors
    ///
    /// [`DriverError::Device`] for a stream of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.expect_same("the stream", &stream.context)?;
        let _current = self.context.enter()?;
        // SAFETY: both handles are alive.
        let code = unsafe { ffi::cuEventRecord(self.raw, stream.raw) };
        check("cuEventRecord", code)
    }

    /// Waits until the mark was reached.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before it.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _current = self.context.enter()?;
        // SAFETY: the handle is alive.
        let code = unsafe { ffi::cuEventSynchronize(self.raw) };
        check("cuEventSynchronize", code)
    }

    /// Whether the mark was reached.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before it.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        let _current = self.context.enter()?;
        // SAFETY: the handle is alive.
        ready("cuEventQuery", unsafe { ffi::cuEventQuery(self.raw) })
    }

    /// Milliseconds from `start` to this event, to about half a microsecond.
    ///
    /// # Errors
    ///
    /// A [`DriverError::Call`] if one was not recorded, or not reached yet.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32, DriverError> {
        let _current = self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both handles are alive; writes one float.
        let code = unsafe { ffi::cuEventElapsedTime(&raw mut milliseconds, start.raw, self.raw) };
        check("cuEventElapsedTime", code)?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: made by `new` and not used afterwards.
            let _ = unsafe { ffi::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// The result of a query.
fn ready(call: &'static str, code: ffi::Code) -> Result<bool, DriverError> {
    if code == ffi::NOT_READY {
        return Ok(false);
    }
    check(call, code).map(|()| true)
}
