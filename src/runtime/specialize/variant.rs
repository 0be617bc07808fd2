//! Variants: kernels for arguments of certain classes, each made once. What is made may serve several of them.
//!
//! Who comes while a variant is being made waits for it. Callers do not stand in for one another: one whose deadline
//! passes leaves, and the work goes on; one that is cancelled leaves, and the work goes on as long as anybody else wants
//! it. Work that nobody wants any more ends at its next stage, and who comes meanwhile begins anew. An error that would
//! come again is kept with the variant, one of the moment (no memory) goes to one caller and the next tries anew. What a
//! process was making when it forked its child makes for itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::runtime::api::deadline::{CancelToken, Deadline, Stopped};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::api::warning::hold;
use crate::runtime::build::build_variant::{build, note_served};
use crate::runtime::build::pool;
use crate::runtime::execute::executable::Executable;
use crate::runtime::specialize::class_key::Classes;
use crate::runtime::specialize::variant_table::Keyed;

/// A kernel for arguments of certain classes.
#[derive(Debug)]
pub(crate) struct Variant {
    classes: Classes,
    /// Set once; launches look here alone.
    pub(crate) ready: OnceLock<Arc<Executable>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    /// Nobody makes it.
    Idle,
    /// Somebody makes it.
    Busy(Work),
    /// It cannot be made.
    Failed(RuntimeError),
}

/// A variant that is being made.
#[derive(Debug)]
struct Work {
    /// Callers that wait for it and may be cancelled.
    callers: usize,
    /// Whether it is wanted whatever becomes of them.
    is_kept: bool,
    /// Tells the work that nobody wants it.
    cancel: CancelToken,
    /// Its process. A child has the state of its parent, and not the thread that would change it.
    process: u32,
}

impl Work {
    fn new(is_kept: bool) -> Work {
        Work {
            callers: 0,
            is_kept,
            cancel: CancelToken::new(),
            process: std::process::id(),
        }
    }

    /// Whether a thread of this process is at it.
    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Keyed for Variant {
    fn classes(&self) -> &Classes {
        &self.classes
    }
}

impl Variant {
    pub(crate) fn new(classes: Classes) -> Variant {
        Variant {
            classes,
            ready: OnceLock::new(),
            state: Mutex::new(State::Idle),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*state, State::Busy(work) if !work.is_ours()) {
            *state = State::Idle;
        }
        state
    }

    /// Makes the variant, or waits for who makes it.
    ///
    /// A caller whose deadline may end leaves the work to a thread in the background, so that it can leave.
    #[cold]
    pub(crate) fn obtain<'v>(
        kernel: &Arc<KernelInner>,
        variant: &'v Arc<Variant>,
        deadline: &Deadline,
    ) -> Result<&'v Executable, RuntimeError> {
        let stopped = |stopped| RuntimeError::Stopped {
            kernel: kernel.name.clone(),
            stopped,
        };
        loop {
            let mut state = variant.state();
            // Under the lock: who made it meanwhile has set it before.
            if let Some(ready) = variant.ready.get() {
                return Ok(ready);
            }
            match &mut *state {
                State::Failed(error) => {
                    let error = error.clone();
                    if !error.is_permanent() {
                        *state = State::Idle;
                    }
                    return Err(error);
                }
                State::Idle => {
                    deadline.check().map_err(stopped)?;
                    let is_endless = deadline.is_endless();
                    let work = Work::new(is_endless);
                    let cancel = work.cancel.clone();
                    *state = State::Busy(work);
                    drop(state);
                    if is_endless {
                        variant.make(kernel, cancel);
                    } else {
                        let (kernel, variant) = (kernel.clone(), variant.clone());
                        pool::apart(move || variant.make(&kernel, cancel));
                    }
                }
                State::Busy(_) => variant.wait(state, deadline).map_err(stopped)?,
            }
        }
    }

    /// Waits until the work under way has ended, or the deadline has.
    fn wait(&self, mut state: MutexGuard<'_, State>, deadline: &Deadline) -> Result<(), Stopped> {
        let State::Busy(work) = &mut *state else {
            return Ok(());
        };
        if deadline.cancel.is_some() {
            work.callers += 1;
        } else {
            // The work outlives a deadline.
            work.is_kept = true;
        }
        // Tells this work from one that begins after it.
        let cancel = work.cancel.clone();
        loop {
            match &mut *state {
                State::Busy(work) if work.cancel.is(&cancel) => {
                    if let Err(stopped) = deadline.check() {
                        if deadline.cancel.is_some() {
                            work.callers -= 1;
                            work.is_kept |= stopped == Stopped::Deadline;
                        }
                        if work.callers == 0 && !work.is_kept {
                            work.cancel.cancel();
                        }
                        return Err(stopped);
                    }
                }
                _ => return Ok(()),
            }
            // Whether the time ran out shows at the next turn.
            let waited = self.changed.wait_timeout(state, deadline.pause());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Makes the variant if nobody has tried. It never waits for another: on a thread of the pool that could be one behind
    /// it in the queue.
    pub(crate) fn make_if_idle(&self, kernel: &KernelInner) {
        let mut state = self.state();
        if let State::Busy(work) = &mut *state {
            work.is_kept = true;
        }
        if self.ready.get().is_some() || !matches!(*state, State::Idle) {
            return;
        }
        let work = Work::new(true);
        let cancel = work.cancel.clone();
        *state = State::Busy(work);
        drop(state);
        self.make(kernel, cancel);
    }

    /// Makes the variant and tells who waits.
    fn make(&self, kernel: &KernelInner, cancel: CancelToken) {
        let deadline = Deadline {
            deadline: None,
            cancel: Some(cancel),
        };
        // Who is told of something may ask for this very kernel.
        let _held = hold();
        // The compiler's own panics are errors already; this is for the rest of the way.
        let classes = kernel.kept(&self.classes);
        let build = || match kernel.serving(|served| served.holds(&classes)) {
            Some(ready) => {
                note_served(kernel, &classes, ready);
                Ok(ready.clone())
            }
            None => {
                let built = build(kernel, &classes, &deadline)?;
                // It may have been made for other classes meanwhile.
                let same = kernel.serving(|served| served.least == built.served.least);
                Ok(same.cloned().unwrap_or_else(|| Arc::new(built)))
            }
        };
        let built = catch_unwind(AssertUnwindSafe(build));
        let built = built.unwrap_or_else(|_| {
            Err(RuntimeError::Internal {
                kernel: kernel.name.clone(),
                message: "a panic while the kernel was made".to_owned(),
            })
        });
        let mut state = self.state();
        *state = match built {
            Ok(ready) => {
                // Only who found the state idle comes here, so it is not set.
                let _ = self.ready.set(ready);
                State::Idle
            }
            // Nobody wanted it; who came since begins anew.
            Err(RuntimeError::Stopped { .. }) => State::Idle,
            Err(error) => State::Failed(error),
        };
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(all(test, feature = "triton"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::runtime::{Buffer, Device, DeviceOptions, Program};

    #[test]
    fn what_the_parent_was_making_the_child_makes() {
        let text = "import triton.language as tl\n@triton.jit\ndef put(x):\n    tl.store(x, 1)\n";
        let device = Device::emulator_with(DeviceOptions::plain());
        let program = Program::python("put.py", text).expect("it is Python");
        let kernel = device.kernel(&program, "put").expect("there is a kernel");
        let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
        let deadline = Deadline {
            deadline: Some(Instant::now()),
            cancel: None,
        };
        // Without time the work is begun by nobody, and its place is there.
        let stopped = kernel.launch_with(&device.stream(), 1, (&x,), &deadline);
        assert!(stopped.is_err());
        let variant = kernel.inner.table.iter().next().expect("there is one");
        let forked = Work {
            process: std::process::id() ^ 1,
            ..Work::new(true)
        };
        *variant.state.lock().expect("nobody panics") = State::Busy(forked);
        let deadline = Deadline {
            deadline: Some(Instant::now() + Duration::from_secs(300)),
            cancel: None,
        };
        let ran = kernel.launch_with(&device.stream(), 1, (&x,), &deadline);
        assert_eq!(ran, Ok(()));
        assert_eq!(x.read(&device.stream()), Ok(vec![1]));
    }
}
