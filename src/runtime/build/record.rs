//! Recording: what a run makes, as a manifest.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::limits::{MANIFEST_BYTES, MANIFEST_KERNELS};
use crate::runtime::api::environment;
use crate::runtime::api::plain_file::{self, without_waiting};
use crate::runtime::api::warning::warn_once;
use crate::runtime::build::blueprint::Blueprint;
use crate::runtime::build::manifest::{kernel_line, program_lines};
use crate::runtime::specialize::class_key::Classes;

/// A manifest to which every kernel is added that is made or found in a cache, or none. Clones write to the same; several processes may
/// write to one file. What stands there already is not written again.
#[derive(Clone, Debug, Default)]
pub struct LaunchRecord {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// None before the first kernel.
    written: Mutex<Option<Written>>,
}

/// What stands in the file, as far as this process knows.
#[derive(Debug)]
struct Written {
    /// Hashes of programs and of lines of kernels.
    hashes: HashSet<[u8; 32]>,
    /// Whether its last line has no end.
    is_cut: bool,
}

impl LaunchRecord {
    /// Nothing is recorded.
    pub fn off() -> LaunchRecord {
        LaunchRecord::default()
    }

    /// Into this file, which is made with the first kernel.
    pub fn to(path: impl Into<PathBuf>) -> LaunchRecord {
        let inner = Inner {
            path: path.into(),
            written: Mutex::new(None),
        };
        LaunchRecord {
            inner: Some(Arc::new(inner)),
        }
    }

    /// Into the file that `TILELIFT_RECORD` names.
    pub fn from_env() -> LaunchRecord {
        environment::value("TILELIFT_RECORD").map_or_else(LaunchRecord::off, LaunchRecord::to)
    }

    /// Adds a kernel. What cannot be added is told.
    pub(in crate::runtime) fn add(&self, kernel: &Blueprint, classes: &Classes) {
        let Some(inner) = &self.inner else {
            return;
        };
        // What was compiled ahead needs no manifest.
        let Some((id, program)) = program_lines(&kernel.source) else {
            return;
        };
        let line = match kernel_line(&id, kernel, classes) {
            Ok(line) => line,
            Err(what) => {
                let name = &kernel.name;
                warn_once(&format!(
                    "kernel `{name}` is not recorded: a manifest has no words for {what}"
                ));
                return;
            }
        };
        if let Err(error) = inner.add(&id, &program, &line) {
            warn_once(&format!("{}: {error}", inner.path.display()));
        }
    }
}

impl Inner {
    fn add(&self, id: &str, program: &str, line: &str) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("kernels cannot be recorded there: {error}");
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match &mut *written {
            Some(written) => written,
            none => none.insert(Written::of(&self.path).map_err(cannot)?),
        };
        let (program_hash, line_hash) = (hash(id), hash(line.trim_end()));
        if written.hashes.contains(&line_hash) {
            return Ok(());
        }
        let mut unit = String::new();
        let file = without_waiting(File::options().create(true).append(true)).open(&self.path);
        let file = file.map_err(cannot)?;
        // Other processes write to it, too.
        let locked = Locked::of(&file);
        let before = file.metadata().map_err(cannot)?.len() as usize;
        if written.is_cut {
            unit.push('\n');
        }
        if before == 0 {
            unit += "# Kernels that were launched. To make them on another machine: tilelift warm FILE\n";
        }
        if !written.hashes.contains(&program_hash) {
            unit += program;
        }
        unit += line;
        if before + unit.len() > MANIFEST_BYTES || written.hashes.len() >= MANIFEST_KERNELS {
            return Err("the manifest is full, later kernels are not recorded".to_owned());
        }
        let write = |bytes: &[u8]| (&file).write_all(bytes);
        append(&file, &locked, unit.as_bytes(), write).map_err(cannot)?;
        written.hashes.extend([program_hash, line_hash]);
        written.is_cut = false;
        Ok(())
    }
}

/// The lock of a file that several processes add to, if it could be had.
struct Locked<'f>(Option<&'f File>);

impl<'f> Locked<'f> {
    /// Tries for some milliseconds: a launch waits for it, and whoever has it may have been stopped.
    fn of(file: &'f File) -> Locked<'f> {
        for _ in 0..20 {
            match file.try_lock() {
                Ok(()) => return Locked(Some(file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
                Err(TryLockError::Error(_)) => break,
            }
        }
        Locked(None)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // It goes with the file at the latest.
        let _ = self.0.map(File::unlock);
    }
}

/// Adds bytes to a file, by one call of `write`, so that what several processes write does not mix. Where a disk has no room for
/// all of them, the part that it took goes again: half a line would spoil the manifest.
fn append(
    file: &File,
    locked: &Locked<'_>,
    bytes: &[u8],
    write: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let before = file.metadata()?.len();
    let written = write(bytes);
    // Without the lock it may be the end of somebody else's line.
    if written.is_err() && locked.0.is_some() {
        let _ = file.set_len(before);
    }
    written
}

impl Written {
    /// What stands in a file, which may not be there.
    fn of(path: &Path) -> std::io::Result<Written> {
        let mut text = String::new();
        match plain_file::open(path) {
            Ok(None) => return Err(std::io::Error::other("it is no plain file")),
            Ok(Some((file, _))) => {
                // What is no text is none of ours, and stays as it is.
                file.take(MANIFEST_BYTES as u64 + 1)
                    .read_to_string(&mut text)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let hashes = text.split('\n').filter_map(|line| {
            let mut words = line.split(' ');
            match words.next()? {
                "program" => words.next().map(hash),
                "kernel" => Some(hash(line)),
                _ => None,
            }
        });
        Ok(Written {
            hashes: hashes.collect(),
            is_cut: !text.is_empty() && !text.ends_with('\n'),
        })
    }
}

fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_no_record_and_holds_no_launch() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("m");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no pipe can be made");
            return;
        }
        let record = LaunchRecord::to(&path);
        let inner = record.inner.expect("it is on");
        let error = inner.add("p", "program p tir p\n", "kernel p k \"\"\n");
        let error = error.expect_err("nobody reads it");
        assert!(error.ends_with("it is no plain file"), "{error}");
    }

    #[test]
    fn a_full_disk_leaves_no_half_line() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("m");
        std::fs::write(&path, "kernel whole\n").expect("it can be written");
        let file = File::options().append(true).open(&path);
        let file = file.expect("it is there");
        let locked = Locked::of(&file);
        let fills_up = |bytes: &[u8]| {
            (&file).write_all(&bytes[..bytes.len() / 2])?;
            Err(std::io::ErrorKind::StorageFull.into())
        };
        let failed = append(&file, &locked, b"kernel next\n", fills_up);
        assert!(failed.is_err());
        let text = || std::fs::read_to_string(&path).expect("it is text");
        assert_eq!(text(), "kernel whole\n");
        // Who has not the lock takes nothing away that may be another's.
        let other = File::options().append(true).open(&path);
        let other = other.expect("it is there");
        let without = Locked::of(&other);
        assert!(append(&other, &without, b"kernel next\n", fills_up).is_err());
        assert_eq!(text(), "kernel whole\nkernel");
    }
}
