//! The secret of those who share a cache.

use std::fmt;
use std::path::Path;

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
    File(#[from] std::io::Error),
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
    /// As [`Secret::from_hex`], and if the file cannot be read.
    pub fn from_file(path: &Path) -> Result<Secret, SecretError> {
        Secret::from_hex(&std::fs::read_to_string(path)?)
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
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
}
