//! Stores of entries, and one that many machines share.
//!
//! A shared store is asked for what the local folder has not, and may be far away, slow, full, gone, or in bad hands. So:
//!
//! - Threads of its own talk to it. A look-up waits [`Shared::timeout`] at most; writes are waited for by nobody.
//! - A store that fails is left alone for [`Shared::pause`], at once if it does not answer in time and else after three
//!   failures in a row; then one look-up tries again, and each time that it fails the pause is twice as long, up to 16 times.
//! - Entries are authenticated: what was not made with the [`Secret`] is absent, with a warning.
//! - It holds no locks. Two machines may make one entry at the same time; both are the same, and the later one stays.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::secret::Secret;
use crate::runtime::api::deadline::Deadline;
use crate::runtime::api::warning::warn;

/// Where entries can be kept: a folder on disk ([`Folder`](super::Folder)), an object store, a server. Its methods are called from
/// several threads and may take their time; whoever calls does not wait longer than it wants to.
pub trait Store: fmt::Debug + Send + Sync {
    /// What was written under this name, or nothing. More than `limit` bytes are an error; names are relative paths of plain
    /// letters, digits, dots and slashes.
    ///
    /// # Errors
    ///
    /// What keeps the store from saying whether it has the name.
    fn read(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>>;

    /// Keeps bytes under a name, in place of what was there. Readers see all of them or none.
    ///
    /// # Errors
    ///
    /// What keeps the store from taking them.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// A store that many machines share, and how far it is trusted and waited for.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The store.
    pub store: Arc<dyn Store>,
    /// With what its entries are authenticated.
    pub secret: Secret,
    /// Whether entries made here are written to it.
    pub writes: bool,
    /// The longest that a look-up waits for it.
    pub timeout: Duration,
    /// How long it is left alone after it failed, at first.
    pub pause: Duration,
}

impl Shared {
    /// A store that is read and written, waited for 250 ms at most, and left alone for 30 s when it fails.
    pub fn new(store: impl Store + 'static, secret: Secret) -> Shared {
        Shared {
            store: Arc::new(store),
            secret,
            writes: true,
            timeout: Duration::from_millis(250),
            pause: Duration::from_secs(30),
        }
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        let of = |shared: &Shared| (shared.writes, shared.timeout, shared.pause);
        Arc::ptr_eq(&self.store, &other.store)
            && self.secret == other.secret
            && of(self) == of(other)
    }
}

impl Eq for Shared {}

/// Threads that talk to a store.
pub(super) const WORKERS: usize = 4;
/// What may wait for them.
const WAITING: usize = 64;
/// Failures in a row after which a store is left alone.
const FAILURES: u32 = 3;
/// By how much a pause may grow.
const LONGEST_PAUSE: u32 = 16;

enum Job {
    Read {
        name: String,
        limit: u64,
        to: SyncSender<io::Result<Option<Vec<u8>>>>,
    },
    Write {
        name: String,
        bytes: Vec<u8>,
    },
}

/// Whether a store is asked.
#[derive(Debug, Default)]
struct Breaker {
    /// Failures since it last answered.
    failures: u32,
    /// Until when it is left alone.
    until: Option<Instant>,
    /// Of which length the next pause is, as a multiple of the first.
    factor: u32,
    /// How many pauses have begun. A look-up that was on its way before one says nothing of the store behind it.
    pauses: u64,
}

/// What of writes is not known yet.
#[derive(Debug, Default)]
struct Writes {
    pending: Mutex<usize>,
    done: Condvar,
}

/// Talks to a shared store.
#[derive(Debug)]
pub(super) struct Client {
    shared: Shared,
    jobs: OnceLock<Option<SyncSender<Job>>>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    pause: Duration,
    breaker: Mutex<Breaker>,
    writes: Writes,
    has_warned: AtomicBool,
}

/// A value behind a lock, whatever became of those who held it: nothing here is half done when it is let go.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    pub(super) fn new(shared: Shared) -> Client {
        let state = State {
            pause: shared.pause,
            breaker: Mutex::default(),
            writes: Writes::default(),
            has_warned: AtomicBool::new(false),
        };
        Client {
            shared,
            jobs: OnceLock::new(),
            state: Arc::new(state),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// What the store has under a name, as far as it says so in time. A failure that lets it be left alone is the error.
    pub(super) fn read(
        &self,
        name: &str,
        limit: u64,
        deadline: &Deadline,
    ) -> Result<Option<Vec<u8>>, String> {
        let Some(pauses) = self.state.may_ask() else {
            return Ok(None);
        };
        let fail = |what: &str, at_once| self.state.fail(what, at_once, pauses);
        let (to, from) = sync_channel(1);
        let job = Job::Read {
            name: name.to_owned(),
            limit,
            to,
        };
        if !self.send(job) {
            return fail("its requests wait for earlier ones", true);
        }
        let begun = Instant::now();
        loop {
            let left = self.shared.timeout.saturating_sub(begun.elapsed());
            match from.recv_timeout(left.min(deadline.pause())) {
                Ok(Ok(found)) => {
                    self.state.answered();
                    return Ok(found);
                }
                Ok(Err(error)) => return fail(&error.to_string(), false),
                Err(RecvTimeoutError::Disconnected) => {
                    return fail("its thread ended", false);
                }
                // Who waits has no more time; that says nothing of the store.
                Err(RecvTimeoutError::Timeout) if deadline.check().is_err() => return Ok(None),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() >= self.shared.timeout => {
                    let what = format!("no answer within {:?}", self.shared.timeout);
                    return fail(&what, true);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Has bytes written some time later, or not.
    pub(super) fn write(&self, name: &str, bytes: Vec<u8>) {
        if !self.shared.writes || !self.state.is_open() {
            return;
        }
        *locked(&self.state.writes.pending) += 1;
        let job = Job::Write {
            name: name.to_owned(),
            bytes,
        };
        if !self.send(job) {
            self.state.written();
        }
    }

    /// Waits until what is to be written was written or given up; false if that takes longer.
    pub(super) fn flush(&self, at_most: Duration) -> bool {
        let pending = locked(&self.state.writes.pending);
        let waited = self
            .state
            .writes
            .done
            .wait_timeout_while(pending, at_most, |pending| *pending > 0);
        let (pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *pending == 0
    }

    /// Gives work to the threads; false if they have too much.
    fn send(&self, job: Job) -> bool {
        let jobs = self.jobs.get_or_init(|| self.start());
        jobs.as_ref().is_some_and(|jobs| match jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        })
    }

    /// Starts the threads; they end with the client.
    fn start(&self) -> Option<SyncSender<Job>> {
        let (jobs, next) = sync_channel(WAITING);
        let next = Arc::new(Mutex::new(next));
        let mut started = 0;
        for _ in 0..WORKERS {
            let (next, state) = (Arc::clone(&next), Arc::clone(&self.state));
            let store = Arc::clone(&self.shared.store);
            let thread = std::thread::Builder::new().name("tilelift-store".to_owned());
            let spawned = thread.spawn(move || work(&*store, &next, &state));
            started += usize::from(spawned.is_ok());
        }
        (started > 0).then_some(jobs)
    }
}

fn work(store: &dyn Store, next: &Mutex<Receiver<Job>>, state: &State) {
    loop {
        let job = locked(next).recv();
        match job {
            Err(_) => return,
            Ok(Job::Read { name, limit, to }) => {
                // Nobody may wait any more.
                let _ = to.send(calm(|| store.read(&name, limit)));
            }
            Ok(Job::Write { name, bytes }) => {
                if let Err(error) = calm(|| store.write(&name, &bytes)) {
                    state.write_failed(store, &error);
                }
                state.written();
            }
        }
    }
}

/// What a store answers; a panic of it is an error as others are.
pub(super) fn calm<T>(ask: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask));
    answer.unwrap_or_else(|_| Err(io::Error::other("the store panicked")))
}

impl State {
    /// Whether the store is not left alone at present.
    fn is_open(&self) -> bool {
        let until = locked(&self.breaker).until;
        until.is_none_or(|until| Instant::now() >= until)
    }

    /// Lets a look-up go to the store: gives how many pauses there were before it. None while the store is left alone. Behind a
    /// pause it is one look-up that tries, and others do not wait for it.
    fn may_ask(&self) -> Option<u64> {
        let mut breaker = locked(&self.breaker);
        match breaker.until {
            Some(until) if Instant::now() < until => return None,
            Some(_) => breaker.until = Instant::now().checked_add(self.pause),
            None => {}
        }
        Some(breaker.pauses)
    }

    fn answered(&self) {
        let mut breaker = locked(&self.breaker);
        *breaker = Breaker {
            pauses: breaker.pauses,
            ..Breaker::default()
        };
    }

    /// Notes that a look-up failed that began after so many pauses; an error if the store is left alone from now on.
    fn fail(&self, what: &str, at_once: bool, pauses: u64) -> Result<Option<Vec<u8>>, String> {
        let mut breaker = locked(&self.breaker);
        if breaker.pauses != pauses {
            return Ok(None);
        }
        breaker.failures = breaker.failures.saturating_add(1);
        let was_left = breaker.until.is_some();
        if !at_once && !was_left && breaker.failures < FAILURES {
            return Ok(None);
        }
        breaker.pauses += 1;
        breaker.factor = (2 * breaker.factor).clamp(1, LONGEST_PAUSE);
        let pause = self.pause * breaker.factor;
        // A time beyond the clock's range is for ever, as good as a year.
        let year = Duration::from_secs(31_536_000);
        breaker.until = Instant::now().checked_add(pause.min(year));
        Err(format!("{what}; it is left alone for {pause:?}"))
    }

    /// Reports the first write that failed; the later ones are of the same kind. The store may be full and still be read.
    fn write_failed(&self, store: &dyn Store, error: &io::Error) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            warn(&format!(
                "the shared cache {store:?} does not take what is made here: {error}"
            ));
        }
    }

    fn written(&self) {
        let mut pending = locked(&self.writes.pending);
        *pending = pending.saturating_sub(1);
        self.writes.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_that_hang_together_are_one_failure() {
        let state = State {
            pause: Duration::ZERO,
            breaker: Mutex::default(),
            writes: Writes::default(),
            has_warned: AtomicBool::new(false),
        };
        let begin = || state.may_ask().expect("there is no pause, or it is over");
        let hang = |pauses| state.fail("no answer", true, pauses).is_err();
        let together = [begin(), begin(), begin()];
        assert_eq!(together.map(hang), [true, false, false]);
        assert_eq!(locked(&state.breaker).factor, 1);
        // The one that tries behind the pause, and then one that hung all the while.
        assert!(hang(begin()));
        assert!(!hang(together[0]));
        assert_eq!(locked(&state.breaker).factor, 2);
        // An answer begins anew; what was on its way still says nothing.
        let late = begin();
        assert!(hang(begin()));
        state.answered();
        assert!(!hang(late));
        assert!(hang(begin()));
        assert_eq!(locked(&state.breaker).factor, 1);
    }
}
