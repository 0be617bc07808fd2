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
//! Seeds are folders of the same form that are only read: an application ships them, made by `tilelift cache export`. Behind them
//! there may be a store that many machines share ([`Shared`]): what it has is kept in the folder, too, and what is made here goes
//! to it.
//!
//! # Where
//! `TILELIFT_CACHE_DIR`, else the platform's folder for caches (`$XDG_CACHE_HOME/tilelift` on Linux).
//! `TILELIFT_CACHE=off` switches it off, `TILELIFT_CACHE_SIZE` is the bound in MiB (or `2G`), `TILELIFT_CACHE_SEED` lists
//! seeds as `PATH` does. `TILELIFT_CACHE_KEY` is a [`Secret`] or a file that holds one, and `TILELIFT_CACHE_SHARED` the address of a
//! shared store (feature `opendal`), which is not written to if `TILELIFT_CACHE_SHARED_WRITE` is `off`.
//!
//! An entry may hold code that a GPU then runs. So the folder is made for its owner alone; a folder that belongs to another user
//! (the system's aside), or to which others may write, is not used, with a warning, unless its entries are authenticated by
//! a [`Secret`]. A shared store always has one.

mod entry;
mod evict;
mod folder;
mod lock;
#[cfg(feature = "opendal")]
mod opendal;
mod secret;
mod settings;
mod settle;
mod store;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

pub use entry::{Damage, EntryKind, Key, KeyBuilder};
pub use folder::Folder;
#[cfg(feature = "opendal")]
pub use opendal::OpendalStore;
pub use secret::{Secret, SecretError};
pub use settings::{DEFAULT_LIMIT, Settings};
pub use settle::Kept;
pub use store::{Shared, Store};

use self::entry::{Trust, decode, encode, read_file};
use self::folder::{UNTRUSTED, entry_name, naming};
use self::settle::Ledger;
use self::store::Client;
use crate::limits::CACHE_ENTRY_BYTES;
use crate::runtime::api::deadline::{Deadline, Stopped};
use crate::runtime::api::warning::{hold, warn};

/// The folder of the autotuner's results.
const TUNED: &str = "tune";

/// Where something came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Origin {
    /// It was made now.
    Made,
    /// From the cache's folder.
    Disk,
    /// From the seed of this number.
    Seed(usize),
    /// From the store that machines share.
    Shared,
    /// From the program, which holds machine code made ahead of time.
    Ahead,
}

/// A cache on disk, or none. Clones are the same cache; every method may be called from any thread.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    inner: Option<Arc<Inner>>,
    /// What was found and made by this handle, if somebody wants to know.
    ledger: Option<Arc<Ledger>>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    folder: Folder,
    seeds: Vec<Folder>,
    shared: Option<Client>,
    /// Bytes of all entries as far as known; the largest number until counted.
    usage: AtomicU64,
    /// Why the folder cannot be written, once that was reported.
    trouble: OnceLock<String>,
}

/// An entry as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// Its file.
    pub path: PathBuf,
    /// What it holds, by its name.
    pub kind: EntryKind,
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
        let inner = Inner {
            folder: Folder::new(&settings.dir),
            seeds: settings.seeds.iter().map(Folder::new).collect(),
            shared: settings.shared.clone().map(Client::new),
            usage: AtomicU64::new(u64::MAX),
            trouble: OnceLock::new(),
            settings,
        };
        Cache {
            inner: Some(Arc::new(inner)),
            ledger: None,
        }
    }

    /// The cache that the environment names.
    pub fn from_env() -> Cache {
        Settings::from_env().map_or_else(Cache::off, Cache::new)
    }

    /// Its settings; none if it is off.
    pub fn settings(&self) -> Option<&Settings> {
        self.inner.as_ref().map(|inner| &inner.settings)
    }

    /// The contents of an entry, if it is there and whole.
    pub fn get(&self, kind: EntryKind, key: &Key) -> Option<(Vec<u8>, Origin)> {
        self.get_within(kind, key, &Deadline::default())
    }

    /// As [`Cache::get`]; a store that machines share is waited for as long as the deadline lasts.
    pub(in crate::runtime) fn get_within(
        &self,
        kind: EntryKind,
        key: &Key,
        deadline: &Deadline,
    ) -> Option<(Vec<u8>, Origin)> {
        let inner = self.inner.as_ref()?;
        let found = inner.find(kind, key, true);
        let found = found.or_else(|| inner.find_shared(kind, key, deadline))?;
        self.note(kind, key, found.1);
        Some(found)
    }

    fn note(&self, kind: EntryKind, key: &Key, origin: Origin) {
        if let Some(ledger) = &self.ledger {
            ledger.note(kind, key, origin);
        }
    }

    /// Writes an entry.
    pub fn put(&self, kind: EntryKind, key: &Key, contents: &[u8]) {
        if let Some(inner) = &self.inner {
            inner.write(kind, key, contents);
            // Where a ledger is kept, the store has its turn at the end.
            match &self.ledger {
                Some(ledger) => ledger.note(kind, key, Origin::Made),
                None => inner.share(kind, key, contents),
            }
        }
    }

    /// Takes an entry away whose contents turned out to be of no use.
    #[cfg(feature = "cuda")]
    pub(crate) fn discard(&self, kind: EntryKind, key: &Key) {
        if let Some(inner) = &self.inner {
            let _ = fs::remove_file(inner.folder.path(kind, key));
        }
    }

    /// The contents of an entry, made and written if need be: once among all threads and processes of this machine that ask.
    ///
    /// # Errors
    ///
    /// Those of `make`; [`Stopped`] if the deadline ends while another makes it.
    pub fn get_or_make<E: From<Stopped>>(
        &self,
        kind: EntryKind,
        key: &Key,
        deadline: &Deadline,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, Origin), E> {
        let Some(inner) = &self.inner else {
            return Ok((make()?, Origin::Made));
        };
        // What is damaged is read, and reported, once more under the lock.
        if let Some(found) = inner.find(kind, key, false) {
            self.note(kind, key, found.1);
            return Ok(found);
        }
        // What comes up under the lock is reported without it: who is warned may ask for the same entry.
        let _held = hold();
        let secret = inner.settings.secret.as_ref();
        // Where nothing can be kept, there is nothing to wait for.
        let has_folder = inner.folder.trust(secret).is_some();
        let lock =
            |inner: &Inner| lock::acquire(&inner.folder.current().join("lock"), key, deadline);
        let locked = has_folder.then(|| lock(inner)).transpose()?;
        if let Some(Err(error)) = &locked {
            inner.tell_lock(error);
        } else if let Some(contents) = inner.folder.contents(kind, key, secret, true) {
            // Another made it while this one waited.
            self.note(kind, key, Origin::Disk);
            return Ok((contents, Origin::Disk));
        }
        if let Some(found) = inner.find_shared(kind, key, deadline) {
            self.note(kind, key, found.1);
            return Ok(found);
        }
        let contents = make()?;
        self.put(kind, key, &contents);
        Ok((contents, Origin::Made))
    }

    /// Waits until the shared store has what was made here, or has refused it; false if that takes longer. Without one there is
    /// nothing to wait for.
    pub fn flush(&self, at_most: Duration) -> bool {
        let shared = self.inner.as_ref().and_then(|inner| inner.shared.as_ref());
        shared.is_none_or(|shared| shared.flush(at_most))
    }

    /// The entries, in the order of their paths.
    pub fn entries(&self) -> Vec<EntryInfo> {
        let folder = self.inner.as_ref().map(|inner| inner.folder.current());
        let mut entries = folder.map_or_else(Vec::new, |folder| evict::list(&folder));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    /// Checks every entry; gives the files of those that are damaged, and what stands in the place of an entry or of a folder of
    /// entries and can be none, in the order of their paths.
    pub fn verify(&self) -> Vec<(PathBuf, Damage)> {
        let Some(inner) = &self.inner else {
            return Vec::new();
        };
        let (entries, mut damaged) = evict::walk(&inner.folder.current());
        let check = |entry: EntryInfo| {
            let damage = inner.check_file(&entry).err()?;
            Some((entry.path, damage))
        };
        damaged.extend(entries.into_iter().filter_map(check));
        damaged.sort_by(|a, b| a.0.cmp(&b.0));
        damaged
    }

    /// The contents of an entry that was listed.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(&self, entry: &EntryInfo) -> Result<Vec<u8>, Damage> {
        let inner = self.inner.as_ref().ok_or(Damage::Short)?;
        Ok(inner.check_file(entry)?.contents)
    }

    /// Takes all entries away, the autotuner's results with them; gives their number and bytes. What is no plain file
    /// was not made by a cache and stays.
    ///
    /// # Errors
    ///
    /// The first file that cannot be removed or folder that cannot be read, by its path; the others are gone.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let Some(inner) = &self.inner else {
            return Ok((0, 0));
        };
        let (mut count, mut bytes, mut failed) = (0, 0, Ok(()));
        let is_file = |entry: &EntryInfo| {
            fs::symlink_metadata(&entry.path).is_ok_and(|metadata| metadata.is_file())
        };
        let (entries, others) = evict::walk(&inner.folder.current());
        for (path, damage) in others {
            if let Damage::Io(error) = damage {
                failed = failed.and(Err(naming(&path)(error)));
            }
        }
        for entry in entries.into_iter().filter(is_file) {
            match remove(&entry.path) {
                Ok(()) => (count, bytes) = (count + 1, bytes + entry.bytes),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        for (path, _) in evict::files(&inner.folder.current(), TUNED) {
            failed = failed.and(remove(&path));
        }
        // What another process is writing is not there yet.
        evict::sweep_temporaries(&inner.folder.current());
        inner.usage.store(u64::MAX, Ordering::Relaxed);
        failed.map(|()| (count, bytes))
    }

    /// Copies every whole entry to `dir`, for use as a seed, and the autotuner's results; gives the number of entries.
    ///
    /// # Errors
    ///
    /// What the file system reports of `dir`, by path; and if others may write there, as nobody would use such a seed.
    pub fn export(&self, dir: &Path) -> io::Result<usize> {
        let Some(inner) = &self.inner else {
            return Ok(0);
        };
        let (seed, secret) = (Folder::new(dir), inner.settings.secret.as_ref());
        if seed.trust(secret).is_none() {
            let error = io::Error::new(io::ErrorKind::PermissionDenied, UNTRUSTED);
            return Err(naming(dir)(error));
        }
        folder::make_dir(dir).map_err(naming(dir))?;
        let mut count = 0;
        for info in self.entries() {
            if let Ok(entry) = inner.check_file(&info) {
                seed.put(entry.kind, &entry.key, &entry.contents, secret)?;
                count += 1;
            }
        }
        // What others may have written is no better in a seed.
        let tuned = self
            .tune_dir()
            .map(|_| evict::list_tuned(&inner.folder.current()));
        for file in tuned.into_iter().flatten() {
            if let Some(name) = file.path.file_name() {
                let place = seed.current().join(TUNED).join(name);
                let results = fs::read(&file.path).map_err(naming(&file.path))?;
                seed.write_whole(&place, &results)?;
            }
        }
        Ok(count)
    }

    /// The files of the autotuner's results: how many, and their bytes.
    pub fn tuned(&self) -> (usize, u64) {
        let folder = self.inner.as_ref().map(|inner| inner.folder.current());
        let files = folder.map_or_else(Vec::new, |folder| evict::list_tuned(&folder));
        (files.len(), files.iter().map(|file| file.bytes).sum())
    }

    /// The folder for the autotuner's results; none where others may write, as these are not authenticated.
    pub(crate) fn tune_dir(&self) -> Option<PathBuf> {
        self.tune_dir_of(&self.inner.as_ref()?.folder)
    }

    /// The folders of the autotuner's results in the seeds.
    pub(crate) fn seed_tune_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let seeds = self.inner.as_ref().map_or(&[][..], |inner| &inner.seeds);
        seeds.iter().filter_map(|seed| self.tune_dir_of(seed))
    }

    fn tune_dir_of(&self, folder: &Folder) -> Option<PathBuf> {
        let secret = self.inner.as_ref()?.settings.secret.as_ref();
        let is_own = folder.trust(secret)?.plain;
        is_own.then(|| folder.current().join(TUNED))
    }
}

/// Removes a file that may be gone already; an error names it.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(naming(path)(error)),
        _ => Ok(()),
    }
}

impl Inner {
    /// An entry of this machine; damage in the folder itself is reported if `tell`.
    fn find(&self, kind: EntryKind, key: &Key, tell: bool) -> Option<(Vec<u8>, Origin)> {
        span!(
            DEBUG,
            "cache_lookup",
            kind = tracing::field::debug(kind),
            key = tracing::field::display(key)
        );
        let secret = self.settings.secret.as_ref();
        if let Some(contents) = self.folder.contents(kind, key, secret, tell) {
            return Some((contents, Origin::Disk));
        }
        let mut seeds = self.seeds.iter().enumerate();
        seeds.find_map(|(i, seed)| Some((seed.contents(kind, key, secret, true)?, Origin::Seed(i))))
    }

    /// An entry of the shared store, which is kept in the folder, too.
    fn find_shared(
        &self,
        kind: EntryKind,
        key: &Key,
        deadline: &Deadline,
    ) -> Option<(Vec<u8>, Origin)> {
        let client = self.shared.as_ref()?;
        let shared = client.shared();
        span!(
            DEBUG,
            "cache_lookup_shared",
            kind = tracing::field::debug(kind),
            key = tracing::field::display(key)
        );
        let name = entry_name(kind, key);
        let bytes = client.read(&name, CACHE_ENTRY_BYTES, deadline);
        let bytes = bytes.unwrap_or_else(|why| {
            warn(&format!("the shared cache {:?}: {why}", shared.store));
            None
        })?;
        let trust = Trust {
            secret: Some(&shared.secret),
            plain: false,
        };
        match decode(bytes, trust).and_then(|entry| entry.of(kind, key)) {
            Ok(contents) => {
                self.write(kind, key, &contents);
                Some((contents, Origin::Shared))
            }
            Err(damage) => {
                let store = &shared.store;
                warn(&format!(
                    "the shared cache {store:?}: {name} is not used: {damage}"
                ));
                None
            }
        }
    }

    /// Gives an entry to the shared store.
    fn share(&self, kind: EntryKind, key: &Key, contents: &[u8]) {
        if let Some(client) = &self.shared {
            let bytes = encode(kind, key, contents, Some(&client.shared().secret));
            client.write(&entry_name(kind, key), bytes);
        }
    }

    /// The entry of a file, if it is whole and stands where it belongs.
    fn check_file(&self, info: &EntryInfo) -> Result<entry::Entry, Damage> {
        let (file, bytes) = read_file(&info.path)?.ok_or(Damage::Short)?;
        let trust = self.folder.trust(self.settings.secret.as_ref());
        let trust = trust.ok_or(Damage::Untrusted)?.in_file(&file)?;
        let entry = decode(bytes, trust)?;
        let at_home = entry_name(entry.kind, &entry.key);
        if entry.kind != info.kind || !info.path.ends_with(at_home) {
            return Err(Damage::OtherKey);
        }
        Ok(entry)
    }

    /// Writes an entry to the folder; a failure is reported once.
    fn write(&self, kind: EntryKind, key: &Key, contents: &[u8]) {
        span!(
            DEBUG,
            "cache_store",
            kind = tracing::field::debug(kind),
            key = tracing::field::display(key)
        );
        let limit = self.settings.limit;
        if contents.len() as u64 > limit {
            return;
        }
        let secret = self.settings.secret.as_ref();
        // That it is not used was said already.
        if self.folder.trust(secret).is_none() {
            return;
        }
        match self.folder.put(kind, key, contents, secret) {
            Ok(bytes) => evict::written(&self.folder.current(), &self.usage, bytes, limit),
            Err(error) => self.tell(&format!("cannot write: {error}")),
        }
    }

    /// Reports that there is no lock. If only its holder takes too long, the folder is as good as before.
    fn tell_lock(&self, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::TimedOut => {
                let dir = self.folder.dir().display();
                warn(&format!("the cache {dir}: {error}; it is not waited for"));
            }
            _ => self.tell(&format!("cannot lock: {error}")),
        }
    }

    /// Reports the first trouble with the folder; the later ones are of the same kind.
    fn tell(&self, what: &str) {
        if self.trouble.set(what.to_owned()).is_ok() {
            let dir = self.folder.dir().display();
            warn(&format!("the cache {dir} is of no use: {what}"));
        }
    }
}

#[cfg(test)]
mod tests;
