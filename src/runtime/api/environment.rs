//! Values of environment variables as people write them; what cannot be read is reported and left aside.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::runtime::api::warning::warn_once;

/// A variable that says something.
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A switch: `1`, `on`, `true`, `yes`, or `0`, `off`, `false`, `no`, in any case.
pub(crate) fn switch(name: &str) -> Option<bool> {
    let value = value(name)?;
    let text = value.to_string_lossy();
    let read = read_switch(&text);
    if read.is_none() {
        warn_once(&format!(
            "{name}={text} says neither on nor off (1 or 0), and is not used"
        ));
    }
    read
}

fn read_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// A size: a number of MiB, or one with `M`, `MiB`, `G` or `GiB` behind it; in bytes.
pub(in crate::runtime) fn size(name: &str) -> Option<u64> {
    let value = value(name)?;
    let text = value.to_string_lossy();
    let read = read_size(&text);
    if read.is_none() {
        warn_once(&format!(
            "{name}={text} is no size in MiB, as 512 is, and is not used"
        ));
    }
    read
}

fn read_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    Some(number.saturating_mul(1 << shift))
}

/// A folder to read from; that it is not there is reported.
pub(in crate::runtime) fn folder(name: &str, path: &Path) -> PathBuf {
    if !path.is_dir() {
        let path = path.display();
        warn_once(&format!("{name}: {path} is no folder that can be read"));
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_spellings_are_read() {
        for (text, read) in [
            ("1", Some(true)),
            ("TRUE", Some(true)),
            (" yes ", Some(true)),
            ("OFF", Some(false)),
            ("no", Some(false)),
            ("2", None),
            ("maybe", None),
        ] {
            assert_eq!(read_switch(text), read, "{text}");
        }
        for (text, read) in [
            ("512", Some(512 << 20)),
            ("512 MiB", Some(512 << 20)),
            ("2G", Some(2 << 30)),
            ("0", Some(0)),
            ("99999999999999999999", None),
            ("99999999999999", Some(u64::MAX)),
            ("abc", None),
            ("-1", None),
            ("1.5G", None),
            ("", None),
        ] {
            assert_eq!(read_size(text), read, "{text}");
        }
    }
}
