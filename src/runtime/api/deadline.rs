//! How long a caller waits: deadlines and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells work that its result is not wanted any more. Clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels. Who waits returns at once; work under way ends at the end of its stage, unless others wait for it too.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is a clone of this one.
    pub(crate) fn is(&self, other: &CancelToken) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Why a wait ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// The time was up. The work goes on, and a later call finds its result.
    #[error("the deadline passed")]
    Deadline,
    /// The caller's token was cancelled.
    #[error("it was cancelled")]
    Cancelled,
}

/// The deadline of a caller; the default waits for ever.
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Whose word to give up on.
    pub cancel: Option<CancelToken>,
}

/// The deadline of a plain launch.
pub(in crate::runtime) static FOREVER: Deadline = Deadline {
    deadline: None,
    cancel: None,
};

impl Deadline {
    /// Waits so long from now.
    pub fn within(time: Duration) -> Deadline {
        Deadline {
            // A time beyond the clock's range is no deadline.
            deadline: Instant::now().checked_add(time),
            cancel: None,
        }
    }

    /// Waits until the token is cancelled.
    pub fn until(cancel: &CancelToken) -> Deadline {
        Deadline {
            deadline: None,
            cancel: Some(cancel.clone()),
        }
    }

    /// An error once the deadline is at its end.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Stopped::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stopped::Deadline),
            _ => Ok(()),
        }
    }

    /// How long to wait before [`Deadline::check`] may say something else.
    pub(crate) fn pause(&self) -> Duration {
        /// How often a waiter looks whether it was cancelled.
        const LOOK: Duration = Duration::from_millis(5);
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let left = self.deadline.map_or(Duration::from_secs(3600), left);
        match self.cancel {
            Some(_) => left.min(LOOK),
            None => left,
        }
    }

    /// Whether it never ends.
    pub(crate) fn is_endless(&self) -> bool {
        self.deadline.is_none() && self.cancel.is_none()
    }
}
