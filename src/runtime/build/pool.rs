//! Work in the background: as many threads as there are cores, which end when there is nothing to do.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::runtime::api::deadline::{Deadline, Stopped};

type Job = Box<dyn FnOnce() + Send>;

struct Pool {
    jobs: VecDeque<Job>,
    threads: usize,
    /// The process that they are threads of: a child has the count of its parent, and none of the threads.
    process: u32,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    jobs: VecDeque::new(),
    threads: 0,
    process: 0,
});

impl Pool {
    /// Puts a job into the queue of a process; whether it is to have one more thread.
    fn add(&mut self, job: Job, process: u32, most: usize) -> bool {
        if self.process != process {
            self.process = process;
            self.threads = 0;
        }
        self.jobs.push_back(job);
        let has_room = self.threads < most;
        self.threads += usize::from(has_room);
        has_room
    }
}

/// Runs a job on another thread, soon.
pub(crate) fn spawn(job: impl FnOnce() + Send + 'static) {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if !pool.add(Box::new(job), std::process::id(), most) {
        return;
    }
    drop(pool);
    let thread = std::thread::Builder::new().name("tilelift".to_owned());
    if thread.spawn(work).is_err() {
        // Then this one does it.
        work();
    }
}

/// Runs a job, which somebody waits for, on a thread of its own. It stands in no queue: what was left to the background, or
/// waits there itself, must not use up the deadline. A child of a process with such threads can make some, too.
pub(crate) fn apart(job: impl FnOnce() + Send + 'static) {
    let job: Job = Box::new(job);
    let slot = Arc::new(Mutex::new(Some(job)));
    let taken = slot.clone();
    let take =
        |slot: &Mutex<Option<Job>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = std::thread::Builder::new().name("tilelift".to_owned());
    let made = thread.spawn(move || {
        if let Some(job) = take(&taken) {
            job();
        }
    });
    if made.is_err()
        && let Some(job) = take(&slot)
    {
        spawn(job);
    }
}

/// Runs a job on a thread of its own and waits for its result as long as the deadline lasts; the job goes on. No result if it
/// panics.
pub(crate) fn within<T: Send + 'static>(
    deadline: &Deadline,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, Stopped> {
    let (send, receive) = channel();
    apart(move || {
        // Who waited may have left.
        let _ = send.send(job());
    });
    loop {
        deadline.check()?;
        match receive.recv_timeout(deadline.pause()) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn work() {
    loop {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(job) = pool.jobs.pop_front() else {
            pool.threads -= 1;
            return;
        };
        drop(pool);
        // A job that panics must not take the thread's place in the count with it.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

/// Gives every thread something to do until what comes back is dropped.
#[cfg(test)]
pub(crate) fn hold_all() -> std::sync::mpsc::Sender<()> {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    for _ in 0..256 {
        let held = held.clone();
        spawn(move || {
            // Ends when the sender is dropped.
            let _ = held.lock().map(|held| held.recv());
        });
    }
    hold
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{Deadline, Pool};

    #[test]
    fn a_child_has_threads_of_its_own() {
        let mut pool = Pool {
            jobs: Default::default(),
            threads: 0,
            process: 0,
        };
        let adds = [7, 7, 7, 8, 8, 8].map(|process| pool.add(Box::new(|| {}), process, 2));
        assert_eq!(adds, [true, true, false, true, true, false]);
        // What waited for a thread of the parent waits for one of the child.
        assert_eq!((pool.jobs.len(), pool.threads), (6, 2));
    }

    #[test]
    fn who_waits_does_not_stand_behind_the_background() {
        let hold = super::hold_all();
        let deadline = Deadline::default();
        assert_eq!(super::within(&deadline, || 7), Ok(Some(7)));
        drop(hold);
    }

    #[test]
    fn every_job_runs() {
        let (send, receive) = mpsc::channel();
        for i in 0..100 {
            let send = send.clone();
            super::spawn(move || {
                // The receiver waits for all of them.
                let _ = send.send(i);
            });
        }
        drop(send);
        let mut numbers: Vec<i32> = receive.iter().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
}
