//! Entries: the bytes of one file, and what makes them trustworthy.
//!
//! ```text
//! bytes 0..8    "TILELIFT"
//!       8..12   version of the format
//!      12..16   kind of the entry
//!      16..48   key
//!      48..56   length of the contents
//!      56..88   BLAKE3 of bytes 0..56 and the contents, keyed if there is a secret
//!      88..     contents
//! ```
//!
//! Numbers are little-endian. The sum covers the header, so that an entry under another key, of another kind or
//! length is as damaged as one with a flipped bit; the key in it catches a file that was renamed. A keyed sum can be made by
//! nobody who has not the secret.

use super::secret::Secret;
use crate::limits::CACHE_ENTRY_BYTES;
use crate::runtime::api::plain_file;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EntryKind {
    /// PTX and description of a kernel, by source, signature, options, target and build of the compiler. In the signature are
    /// those promises of arguments that the code depends on.
    Kernel,
    /// Machine code, by PTX, device, driver and options of its assembler; or, where ptxas made it, by PTX and options.
    Cubin,
    /// Which promises of a signature the code of a kernel depends on, by the same with the whole signature.
    Asked,
}

impl EntryKind {
    /// Every kind.
    pub const ALL: [EntryKind; 3] = [EntryKind::Kernel, EntryKind::Cubin, EntryKind::Asked];

    /// Its name, also the ending of its files.
    pub fn name(self) -> &'static str {
        match self {
            EntryKind::Kernel => "kernel",
            EntryKind::Cubin => "cubin",
            EntryKind::Asked => "asked",
        }
    }

    fn code(self) -> u32 {
        match self {
            EntryKind::Kernel => 1,
            EntryKind::Cubin => 2,
            EntryKind::Asked => 3,
        }
    }

    fn from_code(code: u32) -> Option<EntryKind> {
        EntryKind::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// What an entry is found by: a hash of everything that its contents depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Puts a key together. Every part carries its name and length, so that no two lists of parts run together.
#[derive(Clone, Debug, Default)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// Nothing yet.
    pub fn new() -> KeyBuilder {
        KeyBuilder::default()
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, name: &str, value: impl AsRef<[u8]>) -> KeyBuilder {
        for bytes in [name.as_bytes(), value.as_ref()] {
            self.0.update(&(bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        }
        self
    }

    /// The key.
    pub fn finish(self) -> Key {
        Key(*self.0.finalize().as_bytes())
    }
}

const MAGIC: &[u8; 8] = b"TILELIFT";
/// Version of the format.
pub(super) const VERSION: u32 = 1;
const SUM: usize = 56;
const HEADER: usize = 88;

/// What is wrong with a file in the place of an entry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(io::Error),
    /// A pipe, a device, or a folder where a file should be.
    #[error("it is no plain file")]
    NotAFile,
    /// A file where a folder of entries should be.
    #[error("it is no folder")]
    NotAFolder,
    /// A link in the place of an entry or of a folder of entries.
    #[error(
        "it is a link or in a folder that is one, and links in a cache are not followed: put a copy there"
    )]
    Link,
    /// Larger than any entry.
    #[error("{0} bytes are more than an entry can have")]
    TooLarge(u64),
    /// Shorter than the header.
    #[error("it is cut short")]
    Short,
    /// Of something else.
    #[error("it is not an entry of this cache")]
    Foreign,
    /// Of another version of the format.
    #[error("its format has version {0}")]
    Version(u32),
    /// Under a name that is not its own.
    #[error("it belongs to another key")]
    OtherKey,
    /// Bits have changed.
    #[error("its checksum does not fit: it is damaged, or was made with a TILELIFT_CACHE_KEY")]
    Checksum,
    /// In a folder that is not used.
    #[error("others may write to its folder, and there is no TILELIFT_CACHE_KEY")]
    Untrusted,
    /// Of another user, who may have forged it.
    #[error(
        "it belongs to another user, and there is no TILELIFT_CACHE_KEY; remove it (or chown, if that user is trusted)"
    )]
    Stranger,
    /// Made with another secret, or with none.
    #[error("it is damaged, or was not made with the secret of this cache")]
    Secret,
}

/// Which entries are taken for whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust<'a> {
    /// Those made with this secret.
    pub(super) secret: Option<&'a Secret>,
    /// Those made without one.
    pub(super) plain: bool,
}

/// The bytes of an entry.
pub(super) fn encode(
    kind: EntryKind,
    key: &Key,
    contents: &[u8],
    secret: Option<&Secret>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + contents.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&kind.code().to_le_bytes());
    bytes.extend_from_slice(&key.0);
    bytes.extend_from_slice(&(contents.len() as u64).to_le_bytes());
    let sum = sum(&bytes, contents, secret);
    bytes.extend_from_slice(sum.as_bytes());
    bytes.extend_from_slice(contents);
    bytes
}

fn sum(header: &[u8], contents: &[u8], secret: Option<&Secret>) -> blake3::Hash {
    let mut hasher = match secret {
        Some(secret) => blake3::Hasher::new_keyed(secret.bytes()),
        None => blake3::Hasher::new(),
    };
    hasher.update(header);
    hasher.update(contents);
    hasher.finalize()
}

/// What an entry says of itself, and its contents.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: EntryKind,
    pub(super) key: Key,
    pub(super) contents: Vec<u8>,
}

/// Reads an entry and checks it against its own sum.
pub(super) fn decode(mut bytes: Vec<u8>, trust: Trust<'_>) -> Result<Entry, Damage> {
    let field = |at: usize| -> [u8; 4] {
        let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk());
        chunk.copied().unwrap_or_default()
    };
    if bytes.len() < HEADER {
        return Err(Damage::Short);
    }
    if !bytes.starts_with(MAGIC) {
        return Err(Damage::Foreign);
    }
    let version = u32::from_le_bytes(field(8));
    if version != VERSION {
        return Err(Damage::Version(version));
    }
    // Hashes are compared in a time that says nothing of them.
    let is = |secret| sum(&bytes[..SUM], &bytes[HEADER..], secret) == bytes[SUM..HEADER];
    let is_trusted = trust.secret.is_some_and(|secret| is(Some(secret))) || trust.plain && is(None);
    if !is_trusted {
        return Err(match trust.secret {
            Some(_) => Damage::Secret,
            None => Damage::Checksum,
        });
    }
    // From here on the file is as it was written.
    let kind = EntryKind::from_code(u32::from_le_bytes(field(12))).ok_or(Damage::Foreign)?;
    let mut key = Key([0; 32]);
    key.0.copy_from_slice(&bytes[16..48]);
    bytes.drain(..HEADER);
    Ok(Entry {
        kind,
        key,
        contents: bytes,
    })
}

/// What was asked of a file; none if there is no file.
pub(super) fn if_there<T>(result: io::Result<T>) -> Result<Option<T>, Damage> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Damage::Io(error)),
    }
}

/// Reads the file of an entry; none if there is none.
pub(super) fn read_file(path: &Path) -> Result<Option<(File, Vec<u8>)>, Damage> {
    // Its own name, its folder and that of the version: what a link leads to is not the cache's.
    if path.ancestors().take(3).any(Path::is_symlink) {
        return Err(Damage::Link);
    }
    let Some(opened) = if_there(plain_file::open(path))? else {
        return Ok(None);
    };
    let (mut file, metadata) = opened.ok_or(Damage::NotAFile)?;
    if metadata.len() > CACHE_ENTRY_BYTES {
        return Err(Damage::TooLarge(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    let limited = Read::take(&mut file, CACHE_ENTRY_BYTES);
    { limited }.read_to_end(&mut bytes).map_err(Damage::Io)?;
    Ok(Some((file, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        let key = |parts: &[(&str, &str)]| {
            let add = |k: KeyBuilder, (name, value): &(&str, &str)| k.part(name, value);
            parts.iter().fold(KeyBuilder::new(), add).finish()
        };
        assert_eq!(key(&[("a", "bc")]), key(&[("a", "bc")]));
        assert_ne!(key(&[("a", "bc")]), key(&[("ab", "c")]));
        assert_ne!(key(&[("a", "b"), ("c", "d")]), key(&[("a", "bcd")]));
        assert_eq!(key(&[]).to_string().len(), 64);
    }

    #[test]
    fn a_file_that_is_not_there_is_no_damage() {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let path = dir.path().join("entry");
        assert!(matches!(read_file(&path), Ok(None)));
        std::fs::write(&path, b"bytes").expect("it can be written");
        let found = read_file(&path).expect("it can be read");
        assert_eq!(found.map(|(_, bytes)| bytes), Some(b"bytes".to_vec()));
        // Whatever else keeps it from being read is reported.
        assert!(matches!(read_file(dir.path()), Err(Damage::NotAFile)));
        assert!(matches!(read_file(&path.join("x")), Err(Damage::Io(_))));
    }

    #[test]
    fn every_bit_and_every_length_counts() {
        let key = KeyBuilder::new().part("x", "y").finish();
        let bytes = encode(EntryKind::Cubin, &key, b"machine code", None);
        let plain = Trust {
            secret: None,
            plain: true,
        };
        let decode = |bytes| decode(bytes, plain);
        let entry = decode(bytes.clone()).expect("whole");
        assert_eq!((entry.kind, entry.key), (EntryKind::Cubin, key));
        assert_eq!(entry.contents, b"machine code");
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(decode(bytes[..length].to_vec()).is_err(), "{length} bytes");
        }
        assert!(decode([&bytes[..], b"!"].concat()).is_err());
    }

    #[test]
    fn who_has_not_the_secret_makes_no_entry() {
        let secrets = [Secret::new([1; 32]), Secret::new([2; 32])];
        let key = KeyBuilder::new().part("x", "y").finish();
        for writer in [None, Some(&secrets[0]), Some(&secrets[1])] {
            let bytes = encode(EntryKind::Cubin, &key, b"machine code", writer);
            for secret in [None, Some(&secrets[0]), Some(&secrets[1])] {
                for plain in [false, true] {
                    let is_taken = decode(bytes.clone(), Trust { secret, plain }).is_ok();
                    let is_right = match writer {
                        None => plain,
                        writer => writer == secret,
                    };
                    assert_eq!(is_taken, is_right, "{writer:?} {secret:?} {plain}");
                }
            }
        }
    }
}
