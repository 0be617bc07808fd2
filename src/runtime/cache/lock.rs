//! Locks among threads and processes.
//!
//! A lock is the operating system's lock of a file. Each acquisition opens the file anew, so threads of a process
//! exclude one another as processes do, and the lock goes with whoever holds it. There are 4096 files for all keys, which
//! stay: a lock file that is deleted could be held twice. Two keys that share a file wait for one another, which is
//! slower and not wrong, as nobody takes a second lock while holding one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::entry::Key;
use super::folder::make_own_dir;
use crate::runtime::api::deadline::{Deadline, Stopped};
use crate::runtime::api::plain_file::without_waiting;

/// The first and the longest pause between tries.
const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(5)];

/// How long to wait for whoever holds a lock. A process that was stopped holds its locks, and must not stop all others.
const LONGEST: Duration = Duration::from_secs(60);

/// Held until dropped.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing the file is not enough where a child has it open too. Without a lock there is nothing to let go.
        let _ = self.file.unlock();
    }
}

/// Takes the lock of a key. The inner error says why there can be none; then the caller goes on without.
pub(super) fn acquire(
    folder: &Path,
    key: &Key,
    deadline: &Deadline,
) -> Result<io::Result<Held>, Stopped> {
    acquire_within(folder, key, deadline, LONGEST)
}

fn acquire_within(
    folder: &Path,
    key: &Key,
    deadline: &Deadline,
    longest_wait: Duration,
) -> Result<io::Result<Held>, Stopped> {
    let name = &key.to_string()[..3];
    let file = match open(folder, name) {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let [mut pause, longest] = PAUSES;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Ok(Held { file })),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Ok(Err(error)),
        }
        deadline.check()?;
        if begin.elapsed() >= longest_wait {
            let seconds = longest_wait.as_secs();
            let problem = format!("another process has held the lock {name} for {seconds} s");
            return Ok(Err(io::Error::new(io::ErrorKind::TimedOut, problem)));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(longest);
    }
}

/// Opens a lock's file. What stands there and is no plain file is none: a link leads out of the cache.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    make_own_dir(folder)?;
    let path = folder.join(name);
    if fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        let problem = format!("{} is no plain file", path.display());
        return Err(io::Error::other(problem));
    }
    without_waiting(OpenOptions::new().create(true).append(true)).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cache::KeyBuilder;

    #[cfg(unix)]
    #[test]
    fn what_is_no_plain_file_is_no_lock() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = KeyBuilder::new().finish();
        let path = folder.path().join(&key.to_string()[..3]);
        let refused = || {
            let locked = acquire(folder.path(), &key, &Deadline::default());
            locked.expect("deadline is endless").is_err()
        };
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(refused());
            fs::remove_file(&path).expect("it is ours");
        }
        let outside = folder.path().join("outside");
        std::os::unix::fs::symlink(&outside, &path).expect("the folder takes links");
        assert!(refused());
        assert!(!outside.exists());
    }

    #[test]
    fn a_lock_that_nobody_lets_go_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = KeyBuilder::new().finish();
        let deadline = Deadline::default();
        let wait = |time| acquire_within(folder.path(), &key, &deadline, time);
        let held = wait(Duration::ZERO).expect("deadline is endless");
        assert!(held.is_ok());
        let refused = wait(Duration::from_millis(20)).expect("deadline is endless");
        assert_eq!(
            refused.expect_err("it is held").kind(),
            io::ErrorKind::TimedOut
        );
        drop(held);
        assert!(wait(Duration::ZERO).expect("deadline is endless").is_ok());
    }
}
