//! Walks the cache's folders, and holds its bound on size: the entries that were not used for longest go first.
//!
//! A link in the folder is none of the cache's doing. It is not followed and counts as no entry, so that nothing outside
//! is listed, copied or removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::entry::{Damage, EntryKind, if_there};
use super::{EntryInfo, TUNED};

/// Age at which a file in `tmp` belongs to nobody any more.
const STALE: Duration = Duration::from_secs(600);

/// What lies in a folder; nothing if there is none.
fn read_folder(folder: &Path) -> Result<Vec<fs::DirEntry>, Damage> {
    let Some(metadata) = if_there(fs::symlink_metadata(folder))? else {
        return Ok(Vec::new());
    };
    if metadata.is_symlink() {
        return Err(Damage::Link);
    }
    if !metadata.is_dir() {
        return Err(Damage::NotAFolder);
    }
    let files = if_there(fs::read_dir(folder))?;
    let files: io::Result<Vec<fs::DirEntry>> = files.into_iter().flatten().collect();
    files.map_err(Damage::Io)
}

/// The plain files of the folder of this name in the folder of a version.
pub(super) fn files(folder: &Path, name: &str) -> impl Iterator<Item = (PathBuf, fs::Metadata)> {
    // Through no link, also not one in the place of the folder of the version.
    let is_there = read_folder(folder).is_ok();
    let files = is_there.then(|| read_folder(&folder.join(name)).ok());
    files.flatten().into_iter().flatten().filter_map(|file| {
        // Of a link the entry of a folder tells the link's own.
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((file.path(), metadata))
    })
}

/// Every entry of the folder of a version.
pub(super) fn list(folder: &Path) -> Vec<EntryInfo> {
    walk(folder).0
}

/// The entries of the folder of a version, and what stands in the place of an entry or of a folder of entries and can be none. What
/// has another name is not looked at.
pub(super) fn walk(folder: &Path) -> (Vec<EntryInfo>, Vec<(PathBuf, Damage)>) {
    let (mut entries, mut others) = (Vec::new(), Vec::new());
    let read = |folder: &Path, others: &mut Vec<(PathBuf, Damage)>| {
        read_folder(folder).unwrap_or_else(|damage| {
            others.push((folder.to_owned(), damage));
            Vec::new()
        })
    };
    for inner in read(folder, &mut others) {
        if inner.file_name().len() != 2 {
            continue;
        }
        for file in read(&inner.path(), &mut others) {
            let path = file.path();
            let kind = EntryKind::ALL
                .into_iter()
                .find(|kind| path.extension().is_some_and(|ending| ending == kind.name()));
            let (Some(kind), Ok(metadata)) = (kind, file.metadata()) else {
                continue;
            };
            if metadata.is_symlink() {
                others.push((path, Damage::Link));
                continue;
            }
            entries.push(EntryInfo {
                path,
                kind,
                bytes: metadata.len(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    }
    (entries, others)
}

/// A file that counts for the bound.
pub(super) struct Counted {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    used: SystemTime,
}

/// The files of the autotuner's results below the folder of a version.
pub(super) fn list_tuned(folder: &Path) -> Vec<Counted> {
    let counted = files(folder, TUNED).map(|(path, metadata)| Counted {
        path,
        bytes: metadata.len(),
        used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    });
    counted.collect()
}

/// Notes that `bytes` were written, and evicts if that was too much. `usage` is the sum as far as known: it is counted
/// at the first write and whenever the bound is met, so that what other processes wrote is seen then at the latest.
pub(super) fn written(folder: &Path, usage: &AtomicU64, bytes: u64, limit: u64) {
    let before = usage.load(Ordering::Relaxed);
    if before != u64::MAX {
        let now = usage.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if now <= limit {
            return;
        }
    }
    sweep_temporaries(folder);
    let entries = list(folder).into_iter().map(|entry| Counted {
        path: entry.path,
        bytes: entry.bytes,
        used: entry.used,
    });
    let mut entries: Vec<Counted> = entries.chain(list_tuned(folder)).collect();
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    if total > limit {
        // A time to come is of a clock that was wrong, and would last for ever. The path decides among equals, so that two sweepers
        // take the same ones.
        let end = SystemTime::now() + STALE;
        let is_known = |entry: &Counted| (entry.used <= end).then_some(entry.used);
        entries.sort_by(|a, b| (is_known(a), &a.path).cmp(&(is_known(b), &b.path)));
        for entry in &entries {
            if total <= limit - limit / 10 {
                break;
            }
            // Gone already is as good; what cannot be removed still takes room.
            let removed = fs::remove_file(&entry.path);
            if removed.is_ok() || !entry.path.exists() {
                total -= entry.bytes;
            }
        }
    }
    usage.store(total, Ordering::Relaxed);
}

/// Removes what processes that were killed left behind in the folder of a version.
pub(super) fn sweep_temporaries(folder: &Path) {
    let now = SystemTime::now();
    for (path, metadata) in files(folder, "tmp") {
        let written = metadata.modified();
        let age = written.map(|written| now.duration_since(written).unwrap_or_default());
        if age.is_ok_and(|age| age > STALE) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_stays_and_what_nobody_finished_goes() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let inner = folder.path().join("tmp");
        fs::create_dir(&inner).expect("the folder can be written");
        let made = |name: &str, age: Duration| {
            let path = inner.join(name);
            let file = fs::File::create(&path).expect("the folder can be written");
            file.set_modified(SystemTime::now() - age)
                .expect("it is ours");
            path
        };
        let (old, young) = (made("old", 2 * STALE), made("young", STALE / 2));
        sweep_temporaries(folder.path());
        assert_eq!((old.exists(), young.exists()), (false, true));
    }

    #[test]
    fn results_of_the_autotuner_go_by_age_too() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let made = |inner: &str, name: &str, minutes: u64| {
            let inner = folder.path().join(inner);
            fs::create_dir_all(&inner).expect("the folder can be written");
            let path = inner.join(name);
            fs::write(&path, [0; 40]).expect("the folder can be written");
            let file = fs::File::options().append(true).open(&path);
            let used = SystemTime::now() - Duration::from_secs(60 * minutes);
            let touched = file.and_then(|file| file.set_modified(used));
            touched.expect("it is ours");
            path
        };
        let entry = format!("entry.{}", EntryKind::ALL[0].name());
        let (young, entry) = (made(TUNED, "a.tune", 1), made("ab", &entry, 2));
        let old = made(TUNED, "b.tune", 3);
        written(folder.path(), &AtomicU64::new(u64::MAX), 40, 100);
        let there = [&young, &entry, &old].map(|path| path.exists());
        assert_eq!(there, [true, true, false]);
    }

    #[test]
    fn what_was_used_in_the_future_goes_first() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let inner = folder.path().join("ab");
        fs::create_dir(&inner).expect("the folder can be written");
        let now = SystemTime::now();
        let hour = Duration::from_secs(3600);
        let made = |name: &str, used: SystemTime| {
            let path = inner.join(format!("{name}.{}", EntryKind::ALL[0].name()));
            fs::write(&path, [0; 40]).expect("the folder can be written");
            let file = fs::File::options().append(true).open(&path);
            let touched = file.and_then(|file| file.set_modified(used));
            touched.expect("it is ours");
            path
        };
        let paths = [
            made("new", now),
            made("old", now - hour),
            made("to come", now + hour),
        ];
        written(folder.path(), &AtomicU64::new(u64::MAX), 40, 100);
        assert_eq!(paths.map(|path| path.exists()), [true, true, false]);
    }

    #[test]
    fn what_lies_there_is_counted_at_the_first_write() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let inner = folder.path().join("ab");
        fs::create_dir(&inner).expect("the folder can be written");
        let name = format!("entry.{}", EntryKind::ALL[0].name());
        fs::write(inner.join(name), [0; 10]).expect("the folder can be written");
        let usage = AtomicU64::new(u64::MAX);
        written(folder.path(), &usage, 10, 100);
        assert_eq!(usage.load(Ordering::Relaxed), 10);
        // From then on what is written is added.
        written(folder.path(), &usage, 20, 100);
        assert_eq!(usage.load(Ordering::Relaxed), 30);
    }
}
