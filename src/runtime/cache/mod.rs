//! The cache on disk: what was compiled once is not compiled again, by no thread and no process.
//!
//! ```text
//!   DIR/v1/ab/cd....kernel     entries, by the first byte of their key         entry
//!   DIR/v1/ab/cd....cubin
//!   DIR/v1/tmp/                what is being written; renamed when complete
//!   DIR/v1/lock/abc            locks for single flight, by the first 12 bits; never deleted
//!   DIR/v1/tune/               results of the autotuner
//! ```
//!
//! # Promises
//! - **Never a wrong kernel.** An entry is used only if its checksum, kind and key fit ([`Damage`] says what else it
//!   may be). A damaged or foreign file is a miss with a warning, and is replaced.
//! - **Never a failure.** A cache that cannot be read, written or locked costs a warning and a compilation.
//! - **Once.** [`Cache::get_or_make`] runs the maker of a key once among all threads and processes that ask at the same
//!   time; the others wait and read its entry. The lock is the operating system's and goes with its process, so that
//!   one that is killed leaves nothing to clean up but a file in `tmp`, which goes when it is old.
//! - **Bounded.** Above [`Settings::limit`] the entries that were not used for longest go, until a tenth is free, and
//!   results of the autotuner with them, by when they were last added to.
//!
//! Seeds are folders of the same form that are only read: an application ships them, made by `tilelift cache export`.
//!
//! # Where
//! `TILELIFT_CACHE_DIR`, else the platform's folder for caches (`$XDG_CACHE_HOME/tilelift` on Linux).
//! `TILELIFT_CACHE=off` switches it off, `TILELIFT_CACHE_SIZE` is the bound in MiB (or `2G`), `TILELIFT_CACHE_SEED` lists
//! seeds as `PATH` does. An entry may hold code that a GPU then runs, so the folder is made for its owner alone, and the folders
//! named must be trusted as programs are.

mod entry;
mod evict;
mod lock;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub use entry::{Damage, Key, KeyBuilder, Kind};

use self::entry::{decode, encode, read_file};
use super::deadline::{Deadline, Stopped};
use super::environment;
use super::warning::{hold, warn};

/// Bytes that a cache may take where nothing is said.
pub const DEFAULT_LIMIT: u64 = 1 << 30;

/// The folder of the format's version.
const FOLDER: &str = "v1";

/// The folder in it of the autotuner's results.
const TUNED: &str = "tune";

/// How old the time of last use may grow before it is written anew.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

/// Where a cache is and how large it may grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its folder, made when first written to.
    pub dir: PathBuf,
    /// Folders that are only read, asked in this order after `dir`.
    pub seeds: Vec<PathBuf>,
    /// Bytes of all entries and of the autotuner's results.
    pub limit: u64,
}

impl Settings {
    /// A folder without seeds.
    pub fn new(dir: impl Into<PathBuf>) -> Settings {
        Settings {
            dir: dir.into(),
            seeds: Vec::new(),
            limit: DEFAULT_LIMIT,
        }
    }

    /// What the environment says; none if it switches the cache off or there is no place for one.
    pub fn from_env() -> Option<Settings> {
        if environment::switch("TILELIFT_CACHE") == Some(false) {
            return None;
        }
        let named = environment::value("TILELIFT_CACHE_DIR").map(PathBuf::from);
        let dir = named.or_else(platform_dir)?;
        let seeds = environment::value("TILELIFT_CACHE_SEED").unwrap_or_default();
        Some(Settings {
            dir,
            seeds: std::env::split_paths(&seeds)
                .filter(|path| path != Path::new(""))
                .map(|path| environment::folder("TILELIFT_CACHE_SEED", &path))
                .collect(),
            limit: environment::size("TILELIFT_CACHE_SIZE").unwrap_or(DEFAULT_LIMIT),
        })
    }
}

/// The platform's folder for caches.
fn platform_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.cache_dir().join("tilelift"))
}

/// Where something came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum Origin {
    /// It was made now.
    Made,
    /// From the cache's folder.
    Disk,
    /// From the seed of this number.
    Seed(usize),
    /// From the program, which holds machine code made ahead of time.
    Ahead,
}

/// A cache on disk, or none. Clones are the same cache; every method may be called from any thread.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    store: Option<Arc<Store>>,
}

#[derive(Debug)]
struct Store {
    settings: Settings,
    /// Bytes of all entries as far as known; the largest number until counted.
    usage: AtomicU64,
    /// Whether it was reported that the folder cannot be written.
    warned: AtomicBool,
    /// Numbers files in `tmp`.
    counter: AtomicU64,
}

/// An entry as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// Its file.
    pub path: PathBuf,
    /// What it holds, by its name.
    pub kind: Kind,
    /// Its size.
    pub bytes: u64,
    /// When it was last used, to the minute.
    pub used: SystemTime,
}

impl Cache {
    /// None: everything is made anew.
    pub fn off() -> Cache {
        Cache::default()
    }

    /// The cache with these settings. Nothing is read or written yet.
    pub fn new(settings: Settings) -> Cache {
        let store = Store {
            settings,
            usage: AtomicU64::new(u64::MAX),
            warned: AtomicBool::new(false),
            counter: AtomicU64::new(0),
        };
        Cache {
            store: Some(Arc::new(store)),
        }
    }

    /// The cache that the environment names.
    pub fn from_env() -> Cache {
        Settings::from_env().map_or_else(Cache::off, Cache::new)
    }

    /// Its settings; none if it is off.
    pub fn settings(&self) -> Option<&Settings> {
        self.store.as_ref().map(|store| &store.settings)
    }

    /// The contents of an entry, if it is there and whole.
    pub fn get(&self, kind: Kind, key: &Key) -> Option<(Vec<u8>, Origin)> {
        self.find(kind, key, true)
    }

    /// As [`Cache::get`]; damage in the folder itself is reported if `tell`.
    fn find(&self, kind: Kind, key: &Key, tell: bool) -> Option<(Vec<u8>, Origin)> {
        let store = self.store.as_ref()?;
        span!(
            DEBUG,
            "cache_lookup",
            kind = tracing::field::debug(kind),
            key = tracing::field::display(key)
        );
        if let Some(contents) = read_checked(&store.settings.dir, kind, key, tell) {
            return Some((contents, Origin::Disk));
        }
        let seeds = store.settings.seeds.iter().enumerate();
        seeds
            .filter_map(|(i, seed)| Some((read_checked(seed, kind, key, true)?, Origin::Seed(i))))
            .next()
    }

    /// Writes an entry.
    pub fn put(&self, kind: Kind, key: &Key, contents: &[u8]) {
        if let Some(store) = &self.store {
            store.write(kind, key, contents);
        }
    }

    /// Takes an entry away whose contents turned out to be of no use.
    #[cfg(feature = "cuda")]
    pub(crate) fn discard(&self, kind: Kind, key: &Key) {
        if let Some(store) = &self.store {
            let _ = fs::remove_file(entry_path(&store.settings.dir, kind, key));
        }
    }

    /// The contents of an entry, made and written if need be: once among all threads and processes that ask.
    ///
    /// # Errors
    ///
    /// Those of `make`; [`Stopped`] if the deadline ends while another makes it.
    pub fn get_or_make<E: From<Stopped>>(
        &self,
        kind: Kind,
        key: &Key,
        deadline: &Deadline,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, Origin), E> {
        let Some(store) = &self.store else {
            return Ok((make()?, Origin::Made));
        };
        // What is damaged is read, and reported, once more under the lock.
        if let Some(found) = self.find(kind, key, false) {
            return Ok(found);
        }
        // What comes up under the lock is reported without it: who is warned may ask for the same entry.
        let _held = hold();
        let locked = lock::acquire(&store.folder().join("lock"), key, deadline)?;
        if let Err(error) = &locked {
            store.tell(&format!("cannot lock: {error}"));
        } else if let Some(contents) = read_checked(&store.settings.dir, kind, key, true) {
            // Another made it while this one waited.
            return Ok((contents, Origin::Disk));
        }
        let contents = make()?;
        store.write(kind, key, &contents);
        Ok((contents, Origin::Made))
    }

    /// The entries, in the order of their paths.
    pub fn entries(&self) -> Vec<EntryInfo> {
        let folder = self.store.as_ref().map(|store| store.folder());
        let mut entries = folder.map_or_else(Vec::new, |folder| evict::list(&folder));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    /// Checks every entry; gives those that are damaged.
    pub fn verify(&self) -> Vec<(EntryInfo, Damage)> {
        let check = |entry: EntryInfo| {
            let damage = check_file(&entry).err()?;
            Some((entry, damage))
        };
        self.entries().into_iter().filter_map(check).collect()
    }

    /// Takes all entries away, the autotuner's results with them; gives their number and bytes. What is no plain file
    /// was not made by a cache and stays.
    ///
    /// # Errors
    ///
    /// The first file that cannot be removed, by its path; the others are gone.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let Some(store) = &self.store else {
            return Ok((0, 0));
        };
        let (mut count, mut bytes, mut failed) = (0, 0, Ok(()));
        let is_file = |entry: &EntryInfo| {
            fs::symlink_metadata(&entry.path).is_ok_and(|metadata| metadata.is_file())
        };
        for entry in self.entries().into_iter().filter(is_file) {
            match remove(&entry.path) {
                Ok(()) => (count, bytes) = (count + 1, bytes + entry.bytes),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        for folder in [TUNED, "tmp"] {
            for (path, _) in evict::files(&store.folder(), folder) {
                failed = failed.and(remove(&path));
            }
        }
        store.usage.store(u64::MAX, Ordering::Relaxed);
        failed.map(|()| (count, bytes))
    }

    /// Copies every whole entry to `dir`, for use as a seed, and the autotuner's results; gives the number of entries.
    ///
    /// # Errors
    ///
    /// What the file system reports of `dir`.
    pub fn export(&self, dir: &Path) -> io::Result<usize> {
        let seed = Cache::new(Settings {
            limit: u64::MAX,
            ..Settings::new(dir)
        });
        let mut count = 0;
        for info in self.entries() {
            let Ok(entry) = check_file(&info) else {
                continue;
            };
            if let Some(store) = &seed.store {
                store.try_write(entry.kind, &entry.key, &entry.contents)?;
                count += 1;
            }
        }
        if let (Some(from), Some(to)) = (&self.store, &seed.store) {
            for file in evict::list_tuned(&from.folder()) {
                if let Some(name) = file.path.file_name() {
                    let place = to.folder().join(TUNED).join(name);
                    to.write_whole(&place, &fs::read(&file.path)?)?;
                }
            }
        }
        Ok(count)
    }

    /// The files of the autotuner's results: how many, and their bytes.
    pub fn tuned(&self) -> (usize, u64) {
        let folder = self.store.as_ref().map(|store| store.folder());
        let files = folder.map_or_else(Vec::new, |folder| evict::list_tuned(&folder));
        (files.len(), files.iter().map(|file| file.bytes).sum())
    }

    /// The folder for the autotuner's results.
    pub(crate) fn tune_dir(&self) -> Option<PathBuf> {
        Some(self.store.as_ref()?.folder().join(TUNED))
    }

    /// The folders of the autotuner's results in the seeds.
    pub(crate) fn seed_tune_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let seeds = self.settings().map_or(&[][..], |settings| &settings.seeds);
        seeds.iter().map(|seed| seed.join(FOLDER).join(TUNED))
    }
}

/// Removes a file that may be gone already; an error names it.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let message = format!("{}: {error}", path.display());
            Err(io::Error::new(error.kind(), message))
        }
        _ => Ok(()),
    }
}

/// The entry of a file, if it is whole and stands where it belongs.
fn check_file(info: &EntryInfo) -> Result<entry::Entry, Damage> {
    let (_, bytes) = read_file(&info.path)?.ok_or(Damage::Short)?;
    let entry = decode(bytes)?;
    let at_home = entry_name(entry.kind, &entry.key);
    if entry.kind != info.kind || !info.path.ends_with(at_home) {
        return Err(Damage::OtherKey);
    }
    Ok(entry)
}

/// The path of an entry below the folder of the version.
fn entry_name(kind: Kind, key: &Key) -> PathBuf {
    let key = key.to_string();
    let file = format!("{}.{}", &key[2..], kind.name());
    Path::new(&key[..2]).join(file)
}

fn entry_path(dir: &Path, kind: Kind, key: &Key) -> PathBuf {
    dir.join(FOLDER).join(entry_name(kind, key))
}

/// The contents of an entry below `dir`; what is damaged counts as absent, and is reported if `tell`.
fn read_checked(dir: &Path, kind: Kind, key: &Key, tell: bool) -> Option<Vec<u8>> {
    let path = entry_path(dir, kind, key);
    let read = || -> Result<Option<Vec<u8>>, Damage> {
        let Some((file, bytes)) = read_file(&path)? else {
            return Ok(None);
        };
        let entry = decode(bytes)?;
        if entry.kind != kind || entry.key != *key {
            return Err(Damage::OtherKey);
        }
        touch(&file);
        Ok(Some(entry.contents))
    };
    read().unwrap_or_else(|damage| {
        if tell {
            let path = path.display();
            warn(&format!(
                "{path}: a damaged cache entry is not used: {damage}"
            ));
        }
        None
    })
}

/// Notes that an entry was used. A file of somebody else stays as it is.
fn touch(file: &fs::File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|metadata| metadata.modified());
    let age = used.map(|used| now.duration_since(used).unwrap_or_default());
    if age.is_ok_and(|age| age > TOUCH_AFTER) {
        let _ = file.set_modified(now);
    }
}

impl Store {
    fn folder(&self) -> PathBuf {
        self.settings.dir.join(FOLDER)
    }

    /// Writes an entry; a failure is reported once.
    fn write(&self, kind: Kind, key: &Key, contents: &[u8]) {
        span!(
            DEBUG,
            "cache_store",
            kind = tracing::field::debug(kind),
            key = tracing::field::display(key)
        );
        if contents.len() as u64 > self.settings.limit {
            return;
        }
        match self.try_write(kind, key, contents) {
            Ok(bytes) => evict::written(&self.folder(), &self.usage, bytes, self.settings.limit),
            Err(error) => self.tell(&format!("cannot write: {error}")),
        }
    }

    /// Writes an entry under another name and renames it; gives its size.
    fn try_write(&self, kind: Kind, key: &Key, contents: &[u8]) -> io::Result<u64> {
        let bytes = encode(kind, key, contents);
        let place = entry_path(&self.settings.dir, kind, key);
        self.write_whole(&place, &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Writes a file under another name and moves it to its place, so that nobody sees a part of it.
    fn write_whole(&self, place: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = self.folder();
        make_dir(&folder.join("tmp"))?;
        if let Some(parent) = place.parent() {
            make_dir(parent)?;
        }
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        // Stores of one process count for themselves.
        let store = std::ptr::from_ref(self).addr();
        let temporary = folder
            .join("tmp")
            .join(format!("{process}-{store:x}-{number}"));
        let written = fs::File::create(&temporary)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| move_file(&temporary, place));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Tells the first trouble with the folder; the later ones are of the same kind.
    fn tell(&self, what: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            let dir = self.settings.dir.display();
            warn(&format!("the cache {dir} is of no use: {what}"));
        }
    }
}

/// Renames a file, in the place of a folder too if that is empty.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).or_else(|error| match fs::remove_dir(to) {
        Ok(()) => fs::rename(from, to),
        Err(_) => Err(error),
    })
}

/// Makes a folder for its owner alone, with those above it.
fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests;
