//! The target `cache_files`: broken and strange files in the place of cache entries.
//!
//! A cache holds a few entries; files in their places are then cut, extended, mixed up, moved, replaced by noise, or have
//! bits changed, with and without a fitting checksum. Reading never panics. What is read is what was written under the
//! key and kind, bit for bit, or nothing; with contents that are not what was written `verify` names the entry; what is
//! asked for again is made anew and then there. The contents of a kernel that pass the checksum all the same, as another
//! build might have written them, are taken apart without a panic, and what is read comes back as it was.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Verdict;
use super::generate::case;
use super::random::Random;
use crate::compile::compile;
use crate::runtime::cache::{Cache, EntryKind, Key, KeyBuilder, Settings};
use crate::runtime::stored::Stored;
use crate::runtime::{Deadline, Stopped};

/// Entries of a cache.
const ENTRIES: u64 = 3;
/// Changes to files.
const CHANGES: usize = 3;
/// Bytes before the contents of an entry, with its checksum.
const HEADER: usize = 88;

/// Judges the files of a seed.
pub fn check(seed: u64) -> Verdict {
    let folder = std::env::temp_dir().join(format!("tilelift-fuzz-{}-{seed}", std::process::id()));
    let judged = catch_unwind(AssertUnwindSafe(|| judge(seed, &folder)));
    // What cannot be removed lies in the folder for that.
    let _ = std::fs::remove_dir_all(&folder);
    judged.unwrap_or_else(|_| Verdict::Failed("panic".to_owned()))
}

fn key(n: u64) -> Key {
    KeyBuilder::new().part("n", n.to_le_bytes()).finish()
}

fn judge(seed: u64, folder: &Path) -> Verdict {
    let mut random = Random::new(seed);
    let cache = Cache::new(Settings::new(folder));
    let mut written: Vec<(EntryKind, Key, Vec<u8>)> = Vec::new();
    for n in 0..ENTRIES {
        let contents = contents(&mut random);
        let kind = random.pick(&EntryKind::ALL);
        cache.put(kind, &key(n), &contents);
        written.push((kind, key(n), contents));
    }
    let paths: Vec<PathBuf> = cache
        .entries()
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    let before: Vec<Vec<u8>> = paths.iter().map(|path| read(path)).collect();
    if paths.len() != written.len() {
        return Verdict::Skipped("the folder cannot be written");
    }
    for _ in 0..CHANGES {
        let at = random.below(paths.len());
        let other = &before[random.below(before.len())];
        let bytes = changed(&mut random, read(&paths[at]), other);
        if std::fs::write(&paths[at], bytes).is_err() {
            return Verdict::Skipped("the folder cannot be written");
        }
    }
    let mut notes = Vec::new();
    let damaged: Vec<PathBuf> = cache.verify().into_iter().map(|(path, _)| path).collect();
    for (path, before) in paths.iter().zip(&before) {
        let is_changed = read(path) != *before;
        if is_changed != damaged.contains(path) {
            let what = if is_changed {
                "changed but not"
            } else {
                "whole but"
            };
            return Verdict::Failed(format!("{} is {what} reported as damaged", path.display()));
        }
        notes.push(if is_changed { "damaged" } else { "whole" });
    }
    for (kind, key, contents) in &written {
        if let Some((found, _)) = cache.get(*kind, key)
            && found != *contents
        {
            return Verdict::Failed(format!("other contents of {kind:?} {key}"));
        }
        let made =
            cache.get_or_make::<Stopped>(*kind, key, &Deadline::default(), || Ok(contents.clone()));
        let again = cache.get(*kind, key).map(|(contents, _)| contents);
        if made.map(|(contents, _)| contents).as_ref() != Ok(contents)
            || again.as_ref() != Some(contents)
        {
            return Verdict::Failed(format!("{kind:?} {key} is not made anew"));
        }
    }
    for (_, _, contents) in &written {
        match check_contents(&changed(&mut random, contents.clone(), contents)) {
            Verdict::Passed(found) => notes.extend(found),
            other => return other,
        }
    }
    Verdict::Passed(notes)
}

/// Judges any contents of a kernel's entry that pass the checksum. Does not catch panics.
pub fn check_contents(contents: &[u8]) -> Verdict {
    match Stored::decode(contents) {
        None => Verdict::Passed(vec!["no kernel"]),
        // Not the bytes, as a target has several names.
        Some(stored) if Stored::decode(&stored.encode()).as_ref() == Some(&stored) => {
            Verdict::Passed(vec!["another kernel"])
        }
        Some(_) => Verdict::Failed(format!("a kernel changes by being read: {contents:?}")),
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}

/// Contents of kernels by their seeds, as far as they were asked for.
static KERNELS: [OnceLock<Option<Vec<u8>>>; 200] = [const { OnceLock::new() }; 200];

/// The contents of a kernel's entry, if it compiles.
fn kernel(seed: u64) -> Option<Vec<u8>> {
    let case = case(seed);
    let kernel = compile(&case.func, case.target, &case.options).ok()?;
    let stored = Stored {
        ptx: kernel.ptx,
        meta: kernel.meta,
        predicted_registers: 0,
        needed_registers: 0,
        asked: kernel.asked,
        replaced: None,
        constants: Vec::new(),
    };
    Some(stored.encode())
}

/// What an entry may hold: a kernel, or any bytes.
fn contents(random: &mut Random) -> Vec<u8> {
    if random.chance(50) {
        let number = random.below(KERNELS.len());
        let kernel = KERNELS[number].get_or_init(|| kernel(number as u64));
        if let Some(kernel) = kernel {
            return kernel.clone();
        }
    }
    (0..random.below(300))
        .map(|_| random.bits() as u8)
        .collect()
}

/// Bytes with something wrong about them, or the same.
fn changed(random: &mut Random, mut bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
    match random.below(9) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => bytes.extend((0..random.below(100)).map(|_| 7)),
        2 => {
            bytes = (0..random.below(200))
                .map(|_| random.bits() as u8)
                .collect()
        }
        3 => bytes = other.to_vec(),
        4 => {
            // The beginning of one and the end of another.
            let at = random.below(bytes.len().min(other.len()) + 1);
            bytes.truncate(at);
            bytes.extend(&other[at..]);
        }
        5 if bytes.len() > HEADER => {
            // In the header, where the fields are.
            let at = random.below(HEADER);
            bytes[at] = random.bits() as u8;
        }
        6 if bytes.len() >= 4 => {
            // A number that may be a length.
            let at = random.below(bytes.len() - 3);
            let number = random.pick(&[0, 1, 255, 1 << 16, u32::MAX, u32::MAX / 2]);
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        _ if bytes.is_empty() => {}
        _ => {
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
    }
    bytes
}
