//! Locks among threads and processes.
//!
//! A lock is the operating system's lock of a file. Each acquisition opens the file anew, so threads of a process
//! exclude one another as processes do, and the lock goes with whoever holds it. There are 4096 files for all keys, which
//! stay: a lock file that is deleted could be held twice. Two keys that share a file wait for one another, which is
//! slower and not wrong, as nobody takes a second lock while holding one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::entry::Key;
use super::make_dir;
use crate::runtime::patience::{Patience, Stopped};

/// The first and the longest pause between tries.
const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(5)];

/// Held until dropped.
#[derive(Debug)]
pub(super) struct Held {
    /// Closing the file lets the lock go.
    _file: File,
}

/// Takes the lock of a key. The inner error says why there can be none; then the caller goes on without.
pub(super) fn acquire(
    folder: &Path,
    key: &Key,
    patience: &Patience,
) -> Result<io::Result<Held>, Stopped> {
    let name = &key.to_string()[..3];
    let open = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join(name))
    };
    let file = match make_dir(folder).and_then(|()| open()) {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let [mut pause, longest] = PAUSES;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Ok(Held { _file: file })),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Ok(Err(error)),
        }
        patience.check()?;
        std::thread::sleep(pause);
        pause = (2 * pause).min(longest);
    }
}
