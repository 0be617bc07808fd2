//! A folder of entries on disk.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::entry::{Damage, Entry, EntryKind, Key, Trust, decode, encode, read_file};
use super::secret::Secret;
use super::store::Store;
use crate::runtime::api::warning::{warn, warn_once};

/// The folder of the format's version.
pub(super) const FOLDER: &str = "v1";

/// Why a folder takes nothing.
pub(super) const UNTRUSTED: &str = "others may write to it, and there is no TILELIFT_CACHE_KEY";

/// How old the time of last use may grow before it is written anew.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

/// A folder on a disk, made when first written to. As a [`Store`] it may be one that many machines have mounted.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
    /// Whether nobody else can write to it.
    is_own: OnceLock<bool>,
}

impl Folder {
    /// This folder. Nothing is read or written yet.
    pub fn new(dir: impl Into<PathBuf>) -> Folder {
        Folder {
            dir: dir.into(),
            is_own: OnceLock::new(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What this version of the format has in it.
    pub(super) fn current(&self) -> PathBuf {
        self.dir.join(FOLDER)
    }

    pub(super) fn path(&self, kind: EntryKind, key: &Key) -> PathBuf {
        self.dir.join(entry_name(kind, key))
    }

    /// What of its entries is trusted: those made with the secret, and others if nobody else can write here. None if that is nothing.
    pub(super) fn trust<'a>(&self, secret: Option<&'a Secret>) -> Option<Trust<'a>> {
        let plain = self.is_own.get().copied().unwrap_or_else(|| {
            let is_own = self.look_at_owner(secret);
            // As long as there is nothing, somebody else may be faster in making it.
            match self.current().exists() {
                true => *self.is_own.get_or_init(|| is_own),
                false => is_own,
            }
        });
        (plain || secret.is_some()).then_some(Trust { secret, plain })
    }

    fn look_at_owner(&self, secret: Option<&Secret>) -> bool {
        let strangers = [self.dir.clone(), self.current()]
            .into_iter()
            .find_map(|dir| {
                let stranger = written_by_others(&dir)?;
                Some((dir, stranger))
            });
        if let (Some((dir, (why, how))), None) = (&strangers, secret) {
            let dir = dir.display();
            warn_once(&format!(
                "the cache {dir} is not used: {why}, and what is in it runs on the GPU; give it to its user alone ({how}), or set \
                 TILELIFT_CACHE_KEY"
            ));
        }
        strangers.is_none()
    }

    /// The contents of an entry; what is damaged counts as absent, and is reported if `tell`.
    pub(super) fn contents(
        &self,
        kind: EntryKind,
        key: &Key,
        secret: Option<&Secret>,
        tell: bool,
    ) -> Option<Vec<u8>> {
        let trust = self.trust(secret)?;
        let path = self.path(kind, key);
        let read = || -> Result<Option<Vec<u8>>, Damage> {
            let Some((file, bytes)) = read_file(&path)? else {
                return Ok(None);
            };
            let contents = decode(bytes, trust.in_file(&file)?)?.of(kind, key)?;
            touch(&file);
            Ok(Some(contents))
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

    /// Writes an entry; gives its size. A folder that is not trusted takes none.
    pub(super) fn put(
        &self,
        kind: EntryKind,
        key: &Key,
        contents: &[u8],
        secret: Option<&Secret>,
    ) -> io::Result<u64> {
        if self.trust(secret).is_none() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, UNTRUSTED));
        }
        let bytes = encode(kind, key, contents, secret);
        self.write_whole(&self.path(kind, key), &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Writes a file under another name and moves it to its place, so that nobody sees a part of it.
    pub(super) fn write_whole(&self, place: &Path, bytes: &[u8]) -> io::Result<()> {
        let tmp = self.current().join("tmp");
        make_own_dir(&tmp)?;
        if let Some(parent) = place.parent() {
            make_own_dir(parent)?;
        }
        // Of the system's random numbers: the keys of this are new each time.
        let names = || RandomState::new().hash_one(std::process::id());
        let (temporary, mut file) = new_file(&tmp, names).map_err(naming(&tmp))?;
        let written = file
            .write_all(bytes)
            .and_then(|()| move_file(&temporary, place));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(naming(place))
    }
}

impl Store for Folder {
    fn read(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match read_file(&self.dir.join(name)) {
            Ok(found) => match found.map(|(_, bytes)| bytes) {
                Some(bytes) if bytes.len() as u64 > limit => {
                    Err(io::Error::other("it is too large"))
                }
                found => Ok(found),
            },
            Err(Damage::Io(error)) => Err(error),
            Err(damage) => Err(io::Error::other(damage)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_whole(&self.dir.join(name), bytes)
    }
}

impl<'a> Trust<'a> {
    /// What of this is left for a file of the folder: what another user has put there, perhaps before the folder was its user's
    /// alone, is trusted only with the secret.
    pub(super) fn in_file(self, file: &fs::File) -> Result<Trust<'a>, Damage> {
        let plain = self.plain && is_ours(&file.metadata().map_err(Damage::Io)?);
        match plain || self.secret.is_some() {
            true => Ok(Trust { plain, ..self }),
            false => Err(Damage::Stranger),
        }
    }
}

impl Entry {
    /// The contents, if they are these.
    pub(super) fn of(self, kind: EntryKind, key: &Key) -> Result<Vec<u8>, Damage> {
        match self.kind == kind && self.key == *key {
            true => Ok(self.contents),
            false => Err(Damage::OtherKey),
        }
    }
}

/// The name of an entry in a store.
pub(super) fn entry_name(kind: EntryKind, key: &Key) -> String {
    let key = key.to_string();
    let (first, rest) = key.split_at(2);
    format!("{FOLDER}/{first}/{rest}.{}", kind.name())
}

/// Who else can write to a folder, if somebody can, and what ends that: not its owner and not the system's, who can do everything.
#[cfg(unix)]
fn written_by_others(dir: &Path) -> Option<(&'static str, &'static str)> {
    let metadata = fs::metadata(dir).ok()?;
    if !is_ours(&metadata) {
        return Some(("it belongs to another user", "chown"));
    }
    let is_open = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o022 != 0;
    is_open.then_some(("other users may write to it", "chmod go-w"))
}

#[cfg(not(unix))]
fn written_by_others(_dir: &Path) -> Option<(&'static str, &'static str)> {
    None
}

/// Whether a file or folder is this user's, or the system's.
#[cfg(unix)]
fn is_ours(metadata: &fs::Metadata) -> bool {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    [0, rustix::process::geteuid().as_raw()].contains(&owner)
}

#[cfg(not(unix))]
fn is_ours(_metadata: &fs::Metadata) -> bool {
    true
}

/// Notes that an entry was used. A file of somebody else stays as it is.
fn touch(file: &fs::File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|metadata| metadata.modified());
    // A time to come is of a clock that was wrong.
    let age = used.map(|used| now.duration_since(used).unwrap_or_else(|e| e.duration()));
    if age.is_ok_and(|age| age > TOUCH_AFTER) {
        let _ = file.set_modified(now);
    }
}

/// Renames a file, in the place of a folder too if that is empty.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).or_else(|error| match fs::remove_dir(to) {
        Ok(()) => fs::rename(from, to),
        Err(_) => Err(error),
    })
}

/// A file in a folder that nobody else has, and its name. Processes of one number may share the folder, on several machines or in
/// several containers: the name is random, and what has it already is left to whom it belongs.
fn new_file(folder: &Path, names: impl Fn() -> u64) -> io::Result<(PathBuf, fs::File)> {
    loop {
        let path = folder.join(format!("{:016x}", names()));
        match fs::File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((path, made?)),
        }
    }
}

/// Makes a folder within that of the version. A link in the place of one of them leads out of the cache, and is an error.
pub(super) fn make_own_dir(path: &Path) -> io::Result<()> {
    match path.ancestors().take(2).find(|path| path.is_symlink()) {
        None => make_dir(path).map_err(naming(path)),
        Some(link) => Err(io::Error::other(format!(
            "{} is a link, and not a folder of the cache",
            link.display()
        ))),
    }
}

/// An error that says of which file it is.
pub(super) fn naming(path: &Path) -> impl FnOnce(io::Error) -> io::Error + use<'_> {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Makes a folder for its owner alone, with those above it.
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_writes_is_left_to_it() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let next = std::cell::Cell::new(0);
        // Each number twice.
        let names = || next.replace(next.get() + 1) / 2;
        let make = || {
            let (path, mut file) = new_file(folder.path(), names).expect("it can be made");
            file.write_all(path.as_os_str().as_encoded_bytes())
                .expect("it can be written");
            path
        };
        let paths = [make(), make(), make()];
        for path in &paths {
            let held = fs::read(path).expect("it is there");
            assert_eq!(held, path.as_os_str().as_encoded_bytes());
        }
    }
}
