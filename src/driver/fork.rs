//! Forked processes: the driver does not survive `fork`.
//!
//! CUDA's state is copied into the child without the threads and the channels to the device that it needs, and calls there
//! fail or hang. So a child of a process that had started the driver is told so by [`DriverError::Forked`] at its first
//! call, and what it inherited is dropped without a call. A child that calls `exec` is a new process and not concerned,
//! and neither is one whose parent had not started the driver.

use super::error::DriverError;
#[cfg(unix)]
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

/// Set in a child by the handler below.
static FORKED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

#[cfg(unix)]
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Has children of this process know it, from now on. To be called once.
pub(super) fn watch() {
    #[cfg(unix)]
    // SAFETY: the handler stays for ever and does what may be done between `fork` and `exec`.
    let _: c_int = unsafe { pthread_atfork(None, None, Some(in_child)) };
}

/// Whether this is such a child.
#[inline]
pub(super) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// An error in such a child.
pub(super) fn check() -> Result<(), DriverError> {
    if is_child() {
        return Err(DriverError::Forked);
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(code: c_int) -> !;
    }

    #[test]
    fn a_child_knows_and_its_parent_does_not_care() {
        watch();
        assert!(!is_child());
        // SAFETY: the child only reads a flag and leaves.
        let child = unsafe { fork() };
        if child == 0 {
            // SAFETY: ends the child at once.
            unsafe {
                _exit(if check() == Err(DriverError::Forked) {
                    7
                } else {
                    1
                })
            }
        }
        let mut status = 0;
        // SAFETY: waits for the child made above; writes one integer.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 7 << 8, "the child's exit code");
        assert_eq!(check(), Ok(()));
    }
}
