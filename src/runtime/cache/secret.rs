//! The secret of those who share a cache.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use crate::runtime::api::plain_file;
use crate::runtime::api::warning::warn_once;

/// Bytes of a file that may hold a secret: 64 digits and white space.
const FILE_BYTES: u64 = 4096;

/// What only they know who may write entries that are trusted: 32 random bytes, the same on every machine of a fleet. Nothing prints
/// them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// Why a text is no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Of another form.
    #[error("a secret is 64 hexadecimal digits, as `openssl rand -hex 32` makes them")]
    Digits,
    /// The file that should have it.
    #[error("the file cannot be read: {0}")]
    File(#[from] io::Error),
}

impl Secret {
    /// These bytes. They must be random: a password is none.
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// Of 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`SecretError::Digits`] for any other text; white space around it does not count.
    pub fn from_hex(text: &str) -> Result<Secret, SecretError> {
        let text = text.trim().as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8; 2]| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
        let (pairs, rest) = text.as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes
            .filter(|_| rest.is_empty())
            .map(Secret)
            .ok_or(SecretError::Digits)
    }

    /// Of a file that holds the digits.
    ///
    /// # Errors
    ///
    /// As [`Secret::from_hex`], and if the file cannot be read or is a pipe or a device. That every user of the machine can read it is
    /// a warning.
    pub fn from_file(path: &Path) -> Result<Secret, SecretError> {
        let opened = plain_file::open(path)?;
        let (file, metadata) = opened.ok_or_else(|| io::Error::other("it is no plain file"))?;
        let mut text = String::new();
        file.take(FILE_BYTES).read_to_string(&mut text)?;
        let secret = Secret::from_hex(&text)?;
        if is_open_to_all(&metadata) {
            let path = path.display();
            warn_once(&format!(
                "{path}: every user of this machine can read the secret and forge entries of caches (chmod o-r)"
            ));
        }
        Ok(secret)
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

#[cfg(unix)]
fn is_open_to_all(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o004 != 0
}

#[cfg(not(unix))]
fn is_open_to_all(_metadata: &std::fs::Metadata) -> bool {
    false
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_64_digits_and_is_not_printed() {
        let text = "00ff".repeat(16);
        let secret = Secret::from_hex(&format!(" {text}\n")).expect("digits");
        assert_eq!(secret.bytes()[..4], [0, 255, 0, 255]);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        for wrong in [
            "",
            "0",
            "é",
            &text[1..],
            &format!("{text}0"),
            &"g0".repeat(32),
            &"+0".repeat(32),
        ] {
            assert!(Secret::from_hex(wrong).is_err(), "{wrong}");
        }
        let missing = Secret::from_file(Path::new("/none/secret"));
        assert!(matches!(missing, Err(SecretError::File(_))));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_a_secret_is_plain_and_short() {
        use std::os::unix::fs::PermissionsExt;
        let device = Secret::from_file(Path::new("/dev/zero"));
        assert!(matches!(device, Err(SecretError::File(_))), "{device:?}");
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("key");
        let digits = "ab".repeat(32);
        let long = digits.clone() + &" ".repeat(1 << 20) + "x";
        std::fs::write(&path, &long).expect("it can be written");
        // What stands behind the bound is not read.
        assert!(Secret::from_file(&path).is_ok());
        for (mode, is_open) in [(0o600, false), (0o640, false), (0o644, true)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).expect("it is ours");
            let metadata = std::fs::metadata(&path).expect("it is there");
            assert_eq!(is_open_to_all(&metadata), is_open, "{mode:o}");
        }
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(Secret::from_file(&pipe).is_err());
        }
    }
}
