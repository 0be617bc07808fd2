//! Contexts: a device's primary one, or one that another library made.

use super::device::{Device, Driver};
use super::error::{DriverError, check, of_cust};
use super::ffi::{self, Handle};
use super::fork;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A device's primary context, the one that the CUDA runtime and every library on it use, so
/// their memory and streams and ours can be mixed; or a borrowed one, [`Context::from_raw`]. Clones share it.
///
/// What this module does happens with the context made current for the call; a context that
/// another library had made current in the thread is current again afterwards.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    /// Holds the reference to the primary context; released last.
    /// None of a context that somebody else made.
    owner: Option<ManuallyDrop<cust::context::Context>>,
    raw: Handle,
    device: Device,
}

impl Context {
    /// Retains the primary context of `device`, which creates it if nobody has (a quarter of a
    /// second).
    ///
    /// # Errors
    ///
    /// What the driver reports: no memory, or a device in exclusive use, for instance.
    pub fn new(device: &Device) -> Result<Context, DriverError> {
        let previous = current()?;
        let mut raw = 0;
        // SAFETY: writes one handle; the device came from the driver.
        let code = unsafe { ffi::cuDevicePrimaryCtxRetain(&raw mut raw, device.cust.as_raw()) };
        check("cuDevicePrimaryCtxRetain", code)?;
        // `cust` reads results as an enum that lacks newer codes. With the context alive, its
        // own calls cannot fail with one of those.
        let owner = cust::context::Context::new(device.cust);
        // SAFETY: gives back the reference taken above.
        let code = unsafe { ffi::cuDevicePrimaryCtxRelease_v2(device.cust.as_raw()) };
        check("cuDevicePrimaryCtxRelease", code)?;
        let owner = owner.map_err(of_cust("cuDevicePrimaryCtxRetain"))?;
        if previous != 0 {
            // `cust` made the new context current.
            set_current(previous)?;
        }
        Ok(Context {
            inner: Arc::new(Inner {
                owner: Some(ManuallyDrop::new(owner)),
                raw,
                device: device.clone(),
            }),
        })
    }

    /// The context's device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Borrows a context that another library made, the handle of a `CUcontext`. It is never destroyed here.
    ///
    /// Memory and streams of different contexts do not mix, also where both are of one device.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    ///
    /// # Safety
    ///
    /// The handle is one of a context and stays valid as long as the result lives, and all that is made from it.
    pub unsafe fn from_raw(raw: *mut c_void) -> Result<Context, DriverError> {
        Ok(Context {
            inner: Arc::new(Inner {
                owner: None,
                raw: raw.addr(),
                device: device_of(raw.addr())?,
            }),
        })
    }

    /// The context that an application has by way of `cust`, which is the primary one of its device; retained once more,
    /// so that it need not outlive the result.
    ///
    /// # Errors
    ///
    /// Those of [`Context::new`].
    pub fn from_cust(context: &cust::context::Context) -> Result<Context, DriverError> {
        Context::new(&device_of(context.as_raw().addr())?)
    }

    /// The same context for use with `cust`; none of a borrowed one.
    #[must_use]
    pub fn cust(&self) -> Option<&cust::context::Context> {
        self.inner.owner.as_deref()
    }

    /// Waits for all work of the context, on every stream.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran, as of every call that waits: a fault in a kernel shows here,
    /// and leaves the context unusable.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _current = self.enter()?;
        // SAFETY: takes nothing; a context is current.
        check("cuCtxSynchronize", unsafe { ffi::cuCtxSynchronize() })
    }

    /// Lets copies between this context's device and `other`'s go from one to the other without the host between, and kernels of this
    /// context reach `other`'s memory; false where the machine has no such way. It stays so.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn enable_peer_access(&self, other: &Context) -> Result<bool, DriverError> {
        let _current = self.enter()?;
        let mut can = 0;
        let (own, peer) = (&self.device().cust, &other.device().cust);
        // SAFETY: writes one integer; the devices came from the driver.
        let code = unsafe { ffi::cuDeviceCanAccessPeer(&raw mut can, own.as_raw(), peer.as_raw()) };
        check("cuDeviceCanAccessPeer", code)?;
        if can == 0 {
            return Ok(false);
        }
        // SAFETY: the other context is alive; this one is current.
        let code = unsafe { ffi::cuCtxEnablePeerAccess(other.raw(), 0) };
        if code != ffi::PEER_ACCESS_ALREADY_ENABLED {
            check("cuCtxEnablePeerAccess", code)?;
        }
        Ok(true)
    }

    /// Free and total bytes of device memory.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes; a context is current.
        let code = unsafe { ffi::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        check("cuMemGetInfo", code)?;
        Ok((free, total))
    }

    /// Tells contexts apart: the same number for the same handle, counted from 0 in the order of their first use.
    pub(crate) fn number(&self) -> u32 {
        static HANDLES: Mutex<Vec<Handle>> = Mutex::new(Vec::new());
        let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = handles.iter().position(|&handle| handle == self.inner.raw);
        let at = known.unwrap_or_else(|| {
            handles.push(self.inner.raw);
            handles.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> Handle {
        self.inner.raw
    }

    /// Whether both are the same context.
    #[inline]
    pub(crate) fn same(&self, other: &Context) -> bool {
        self.inner.raw == other.inner.raw
    }

    /// An error unless `other`, the context of `what`, is this one.
    pub(super) fn expect_same(
        &self,
        what: &'static str,
        other: &Context,
    ) -> Result<(), DriverError> {
        if self.same(other) {
            return Ok(());
        }
        Err(self.differs(what, other))
    }

    /// The error for `what`, whose context is `other` and not this one.
    #[cold]
    pub(super) fn differs(&self, what: &'static str, other: &Context) -> DriverError {
        DriverError::Device {
            what,
            expected: self.device().ordinal,
            got: other.device().ordinal,
        }
    }

    /// Makes the context current in this thread until the guard goes.
    ///
    /// In a thread that had none it stays current, so that the next call finds it: that costs
    /// nothing and is what the runtime does too.
    #[inline(always)]
    pub(super) fn enter(&self) -> Result<Entered, DriverError> {
        let mut previous = 0;
        // SAFETY: writes one handle.
        let is_current = !fork::is_child()
            && unsafe { ffi::cuCtxGetCurrent(&raw mut previous) } == ffi::SUCCESS
            && previous == self.inner.raw;
        if is_current {
            return Ok(Entered::NOTHING);
        }
        self.make_current()
    }

    /// [`Context::enter`] where another context is current, or none.
    #[cold]
    fn make_current(&self) -> Result<Entered, DriverError> {
        let previous = current()?;
        if previous != self.inner.raw {
            set_current(self.inner.raw)?;
        }
        let restore = previous != self.inner.raw && previous != 0;
        Ok(Entered {
            restore: if restore { previous } else { 0 },
            thread: PhantomData,
        })
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Context({} {})",
            self.device().ordinal,
            self.device().name
        )
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last reference may destroy the context; it should not stay current here.
        if self.owner.is_some() && current() == Ok(self.raw) {
            let _ = set_current(0);
        }
        if let Some(owner) = &mut self.owner
            && !fork::is_child()
        {
            // SAFETY: dropped here alone, and not used afterwards.
            unsafe { ManuallyDrop::drop(owner) };
        }
    }
}

/// See [`Context::enter`].
pub(super) struct Entered {
    /// What was current before; 0 if that does not matter.
    restore: Handle,
    /// The current context is the thread's: the guard must not leave it.
    thread: PhantomData<*mut ()>,
}

impl Entered {
    /// Nothing has to be undone.
    const NOTHING: Entered = Entered {
        restore: 0,
        thread: PhantomData,
    };
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if self.restore != 0 {
            // It was current a moment ago; if it went since, there is nobody to tell.
            let _ = set_current(self.restore);
        }
    }
}

/// The device of a live context.
fn device_of(context: Handle) -> Result<Device, DriverError> {
    Driver::load()?;
    let previous = current()?;
    set_current(context)?;
    let mut number = 0;
    // SAFETY: writes one number; a context is current.
    let code = unsafe { ffi::cuCtxGetDevice(&raw mut number) };
    set_current(previous)?;
    check("cuCtxGetDevice", code)?;
    // A device's handle is its number.
    Device::get(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The thread's current context, or 0.
#[cold]
fn current() -> Result<Handle, DriverError> {
    // Every call goes through here first.
    fork::check()?;
    let mut raw = 0;
    // SAFETY: writes one handle.
    check("cuCtxGetCurrent", unsafe {
        ffi::cuCtxGetCurrent(&raw mut raw)
    })?;
    Ok(raw)
}

/// Makes `raw`, a live context or 0, the thread's current context.
#[cold]
fn set_current(raw: Handle) -> Result<(), DriverError> {
    // SAFETY: the callers pass a context that they hold, or the one that was current.
    check("cuCtxSetCurrent", unsafe { ffi::cuCtxSetCurrent(raw) })
}
