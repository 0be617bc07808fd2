//! Tests of the cache on disk, within one process.

mod settle;
mod shared;

use super::folder::{FOLDER, make_dir};
use super::*;

/// A folder, and the cache in it.
fn cache() -> (tempfile::TempDir, Cache) {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let cache = Cache::new(Settings::new(dir.path().join("cache")));
    (dir, cache)
}

/// The file of an entry in the cache of this folder.
fn entry_path(dir: &Path, kind: EntryKind, key: &Key) -> PathBuf {
    Folder::new(dir).path(kind, key)
}

fn key(n: usize) -> Key {
    KeyBuilder::new().part("n", n.to_le_bytes()).finish()
}

#[test]
fn entries_come_back() {
    let (_dir, cache) = cache();
    assert_eq!(cache.get(EntryKind::Kernel, &key(1)), None);
    cache.put(EntryKind::Kernel, &key(1), b"one");
    cache.put(EntryKind::Cubin, &key(1), b"");
    let found = |kind, n| cache.get(kind, &key(n)).map(|(contents, _)| contents);
    assert_eq!(found(EntryKind::Kernel, 1), Some(b"one".to_vec()));
    assert_eq!(found(EntryKind::Cubin, 1), Some(Vec::new()));
    assert_eq!(found(EntryKind::Kernel, 2), None);
    cache.put(EntryKind::Kernel, &key(1), b"another one");
    assert_eq!(found(EntryKind::Kernel, 1), Some(b"another one".to_vec()));
    assert_eq!(cache.entries().len(), 2);
    assert!(cache.verify().is_empty());
    assert_eq!(cache.clear().expect("it can be emptied").0, 2);
    assert_eq!(found(EntryKind::Kernel, 1), None);
}

#[test]
fn a_cache_that_is_off_or_cannot_be_written_still_makes() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let file = dir.path().join("file");
    std::fs::write(&file, "in the way").expect("it can be written");
    for cache in [Cache::off(), Cache::new(Settings::new(&file))] {
        for _ in 0..2 {
            let made = cache.get_or_make::<Stopped>(
                EntryKind::Kernel,
                &key(1),
                &Deadline::default(),
                || Ok(b"made".to_vec()),
            );
            assert_eq!(made, Ok((b"made".to_vec(), Origin::Made)));
        }
    }
    assert_eq!(std::fs::read(&file).expect("it is there"), b"in the way");
}

#[test]
fn an_error_of_the_maker_leaves_nothing() {
    let (_dir, cache) = cache();
    let deadline = Deadline::default();
    let failed = cache.get_or_make(EntryKind::Kernel, &key(1), &deadline, || {
        Err(Stopped::Cancelled)
    });
    assert_eq!(failed, Err(Stopped::Cancelled));
    assert_eq!(cache.entries(), []);
    let made = cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(1), &deadline, || Ok(vec![7]));
    assert_eq!(made, Ok((vec![7], Origin::Made)));
    let found = cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(1), &deadline, || Ok(vec![8]));
    assert_eq!(found, Ok((vec![7], Origin::Disk)));
}

#[test]
fn who_waits_for_another_gives_up_in_time() {
    let (_dir, cache) = cache();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (end, may_end) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let cache = &cache;
        let slow = scope.spawn(move || {
            cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(1), &Deadline::default(), || {
                begun.send(()).expect("the test waits");
                may_end.recv().expect("the test sends");
                Ok(vec![1])
            })
        });
        has_begun.recv().expect("the maker begins");
        let hasty = Deadline::within(Duration::from_millis(30));
        let stopped =
            cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(1), &hasty, || Ok(vec![2]));
        assert_eq!(stopped, Err(Stopped::Deadline));
        let cancel = crate::runtime::api::deadline::CancelToken::new();
        cancel.cancel();
        let until = Deadline::until(&cancel);
        let stopped =
            cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(1), &until, || Ok(vec![3]));
        assert_eq!(stopped, Err(Stopped::Cancelled));
        end.send(()).expect("the maker waits");
        let made = slow.join().expect("it does not panic");
        assert_eq!(made, Ok((vec![1], Origin::Made)));
    });
    assert_eq!(
        cache.get(EntryKind::Kernel, &key(1)),
        Some((vec![1], Origin::Disk))
    );
}

#[test]
fn threads_make_once() {
    let (_dir, cache) = cache();
    let made = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                // A cache of its own for each thread, as for each process.
                let settings = cache.settings().expect("it is on").clone();
                let cache = Cache::new(settings);
                for n in 0..10 {
                    let deadline = Deadline::default();
                    let found =
                        cache.get_or_make::<Stopped>(EntryKind::Cubin, &key(n), &deadline, || {
                            made.fetch_add(1, Ordering::Relaxed);
                            Ok(vec![n as u8; 1000])
                        });
                    assert_eq!(found.map(|(contents, _)| contents), Ok(vec![n as u8; 1000]));
                }
            });
        }
    });
    assert_eq!(made.into_inner(), 10);
    assert!(cache.verify().is_empty());
}

/// Puts a link to `to` at `at`.
#[cfg(unix)]
fn link(to: &Path, at: &Path) {
    make_dir(at.parent().expect("it is in a folder")).expect("it can be made");
    std::os::unix::fs::symlink(to, at).expect("the folder takes links");
}

#[cfg(unix)]
#[test]
fn what_links_lead_to_is_neither_listed_nor_copied_nor_removed() {
    let (dir, cache) = cache();
    let outside = dir.path().join("outside");
    make_dir(&outside).expect("it can be made");
    let precious = ["a.kernel", "b.cubin", "c.tune", "d"].map(|name| outside.join(name));
    for path in &precious {
        fs::write(path, [0; 4000]).expect("it can be written");
        let file = fs::File::options().append(true).open(path);
        let old = SystemTime::now() - Duration::from_secs(1 << 20);
        let aged = file.and_then(|file| file.set_modified(old));
        aged.expect("it is ours");
    }
    cache.put(EntryKind::Kernel, &key(1), b"one");
    let version = dir.path().join("cache").join(FOLDER);
    fs::remove_dir(version.join("tmp")).expect("it is empty");
    for name in ["zz", TUNED, "tmp"] {
        link(&outside, &version.join(name));
    }
    link(&precious[0], &version.join("yy/a.kernel"));
    // The whole folder of the version.
    let linked = Cache::new(Settings::new(dir.path().join("linked")));
    link(&version, &dir.path().join("linked").join(FOLDER));

    // Two of the links, or the one, are in the way of entries.
    let look = |cache: &Cache| (cache.entries().len(), cache.verify().len(), cache.tuned());
    assert_eq!(look(&cache), (1, 2, (0, 0)));
    assert_eq!(look(&linked), (0, 1, (0, 0)));
    let seed = dir.path().join("seed");
    assert_eq!(cache.export(&seed).expect("it can be written"), 1);
    // A small bound throws out what is the cache's own.
    let small = Cache::new(Settings {
        limit: 110,
        ..cache.settings().expect("it is on").clone()
    });
    small.put(EntryKind::Kernel, &key(2), b"two");
    assert_eq!(look(&cache), (1, 2, (0, 0)));
    assert_eq!(linked.clear().expect("nothing is in the way"), (0, 0));
    assert_eq!(cache.clear().expect("nothing is in the way").0, 1);
    assert_eq!(look(&cache), (0, 2, (0, 0)));
    for path in &precious {
        assert!(path.exists(), "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn what_a_link_leads_to_is_not_used_and_the_link_is_named() {
    let kind = EntryKind::Kernel;
    // In the place of the entry, of its folder, and of that of the version.
    for level in 0..3 {
        let (dir, cache) = cache();
        cache.put(kind, &key(1), b"one");
        let path = entry_path(&dir.path().join("cache"), kind, &key(1));
        let place = path.ancestors().nth(level).expect("it lies in a cache");
        let outside = dir.path().join("outside");
        fs::rename(place, &outside).expect("it is ours");
        link(&outside, place);
        assert_eq!(cache.get(kind, &key(1)), None, "{level}");
        let damaged = cache.verify();
        assert!(
            matches!(&damaged[..], [(named, Damage::Link)] if named == place),
            "{damaged:?}"
        );
        // What is made anew replaces a link to an entry, and nothing behind one.
        cache.put(kind, &key(1), b"two");
        let found = cache.get(kind, &key(1)).map(|(contents, _)| contents);
        assert_eq!(found, (level == 0).then(|| b"two".to_vec()), "{level}");
        let before = outside.join(path.strip_prefix(place).expect("it is above"));
        let before = if level == 0 { &outside } else { &before };
        let bytes = fs::read(before).expect("it is there");
        assert!(bytes.ends_with(b"one"), "{level}");
    }
}

#[test]
fn what_is_in_the_way_of_entries_is_named() {
    let (dir, cache) = cache();
    cache.put(EntryKind::Kernel, &key(1), b"one");
    let path = entry_path(&dir.path().join("cache"), EntryKind::Kernel, &key(1));
    for level in [1, 2] {
        let place = path.ancestors().nth(level).expect("it lies in a cache");
        fs::remove_dir_all(place).expect("it is ours");
        fs::write(place, "in the way").expect("it is ours");
        let damaged = cache.verify();
        assert!(
            matches!(&damaged[..], [(named, Damage::NotAFolder)] if named == place),
            "{damaged:?}"
        );
        cache.put(EntryKind::Kernel, &key(1), b"one");
    }
    let trouble = cache.inner.as_ref().and_then(|inner| inner.trouble.get());
    let trouble = trouble.expect("it is told");
    assert!(
        trouble.contains(&dir.path().display().to_string()),
        "{trouble}"
    );
}

/// A file of another user in a folder that once all could write to. Files are given away by the superuser alone.
#[cfg(unix)]
#[test]
fn what_another_user_left_in_the_folder_is_used_only_with_the_secret() {
    let (dir, cache) = cache();
    let kind = EntryKind::Kernel;
    let give_away = |n| {
        let path = entry_path(&dir.path().join("cache"), kind, &key(n));
        std::os::unix::fs::chown(path, Some(4242), None)
    };
    cache.put(kind, &key(1), b"planted");
    if give_away(1).is_err() {
        eprintln!("skipped: this user cannot give a file to another");
        return;
    }
    assert_eq!(cache.get(kind, &key(1)), None);
    let damaged = cache.verify();
    assert!(
        matches!(damaged[..], [(_, Damage::Stranger)]),
        "{damaged:?}"
    );
    assert_eq!(
        cache.export(&dir.path().join("seed")).expect("it is ours"),
        0
    );
    let keyed = Cache::new(Settings {
        secret: Some(Secret::new([1; 32])),
        ..cache.settings().expect("it is on").clone()
    });
    keyed.put(kind, &key(2), b"ours");
    give_away(2).expect("as before");
    let found = |n| keyed.get(kind, &key(n)).map(|(contents, _)| contents);
    assert_eq!([found(1), found(2)], [None, Some(b"ours".to_vec())]);
    cache.put(kind, &key(1), b"made");
    let made = Some((b"made".to_vec(), Origin::Disk));
    assert_eq!(cache.get(kind, &key(1)), made);
}

#[test]
fn a_time_of_use_that_is_to_come_is_set_right_by_the_next_use() {
    let (dir, cache) = cache();
    cache.put(EntryKind::Kernel, &key(1), b"one");
    let path = entry_path(&dir.path().join("cache"), EntryKind::Kernel, &key(1));
    let file = fs::File::options().append(true).open(&path);
    let year = Duration::from_secs(31_536_000);
    let set = file.and_then(|file| file.set_modified(SystemTime::now() + year));
    set.expect("it is ours");
    assert!(cache.get(EntryKind::Kernel, &key(1)).is_some());
    assert!(cache.entries()[0].used < SystemTime::now() + year / 2);
}

#[test]
fn clearing_leaves_folders_that_no_cache_made() {
    let (dir, cache) = cache();
    let version = dir.path().join("cache").join(FOLDER);
    for name in ["tmp/theirs", "tune/theirs", "00/theirs.kernel"] {
        make_dir(&version.join(name)).expect("it can be made");
    }
    cache.put(EntryKind::Kernel, &key(1), b"one");
    for (name, age) in [("left", 1000), ("written", 0)] {
        let file = fs::File::create(version.join("tmp").join(name)).expect("it can be written");
        let aged = file.set_modified(SystemTime::now() - Duration::from_secs(age));
        aged.expect("it is ours");
    }
    assert_eq!(cache.clear().expect("nothing is in the way"), (1, 91));
    assert!(!version.join("tmp/left").exists());
    // Another process is about to move it to its place.
    assert!(version.join("tmp/written").exists());
    for name in ["tmp/theirs", "tune/theirs", "00/theirs.kernel"] {
        assert!(version.join(name).is_dir(), "{name}");
    }
    assert_eq!(cache.get(EntryKind::Kernel, &key(1)), None);
}

/// A folder that takes no changes keeps its files, from whoever is not the superuser.
#[cfg(unix)]
#[test]
fn clearing_names_what_it_cannot_remove_and_goes_on() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, cache) = cache();
    (0..20).for_each(|n| cache.put(EntryKind::Kernel, &key(n), b"contents"));
    let kept = cache.entries()[7].path.clone();
    let folder = kept.parent().expect("it is in a folder");
    let set_mode = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder, permissions).expect("it is ours");
    };
    set_mode(0o500);
    if fs::write(folder.join("x"), "").is_ok() {
        eprintln!("skipped: no mode of a folder stops the superuser");
        return;
    }
    let error = cache.clear().expect_err("one stays");
    set_mode(0o700);
    let left: Vec<PathBuf> = cache
        .entries()
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    assert!(left.contains(&kept), "{left:?}");
    assert!(left.iter().all(|path| path.starts_with(folder)), "{left:?}");
    let told = error.to_string();
    assert!(told.contains(&left[0].display().to_string()), "{told}");
}

#[test]
fn seeds_are_read_and_never_written() {
    let (dir, first) = cache();
    first.put(EntryKind::Kernel, &key(1), b"shipped");
    first.put(EntryKind::Cubin, &key(2), b"damaged");
    let seed = dir.path().join("seed");
    assert_eq!(first.export(&seed).expect("it can be written"), 2);
    let damaged = entry_path(&seed, EntryKind::Cubin, &key(2));
    std::fs::write(&damaged, b"short").expect("it can be written");
    let second = Cache::new(Settings {
        seeds: vec![dir.path().join("absent"), seed.clone()],
        ..Settings::new(dir.path().join("second"))
    });
    let shipped = Some((b"shipped".to_vec(), Origin::Seed(1)));
    assert_eq!(second.get(EntryKind::Kernel, &key(1)), shipped);
    let made =
        second.get_or_make::<Stopped>(EntryKind::Cubin, &key(2), &Deadline::default(), || {
            Ok(vec![5])
        });
    assert_eq!(made, Ok((vec![5], Origin::Made)));
    assert_eq!(second.entries().len(), 1, "what a seed has is not copied");
    assert_eq!(std::fs::read(&damaged).expect("it is there"), b"short");
}

#[cfg(unix)]
#[test]
fn a_seed_is_made_for_its_owner_or_not_at_all() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, cache) = cache();
    cache.put(EntryKind::Kernel, &key(1), b"one");
    let tuned = cache.tune_dir().expect("the folder is ours");
    make_dir(&tuned).expect("it can be made");
    fs::write(tuned.join("a.tune"), "a result").expect("it can be written");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let seed = dir.path().join("new/seed");
    assert_eq!(cache.export(&seed).expect("it can be written"), 1);
    let made = fs::metadata(&seed).expect("it is there").permissions();
    assert_eq!(made.mode() & 0o777, 0o700);
    assert!(seed.join(FOLDER).join(TUNED).join("a.tune").exists());
    // Nobody would use it.
    let open = dir.path().join("open");
    make_dir(&open).expect("it can be made");
    mode(&open, 0o775);
    let error = cache.export(&open).expect_err("others may write to it");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(!open.join(FOLDER).exists());
    // What others may have written is not made one's own.
    let from = cache.settings().expect("it is on").clone();
    mode(&from.dir, 0o775);
    let secret = Some(Secret::new([1; 32]));
    let cache = Cache::new(Settings { secret, ..from });
    cache.put(EntryKind::Kernel, &key(2), b"two");
    let seed = dir.path().join("second");
    assert_eq!(cache.export(&seed).expect("it can be written"), 1);
    assert!(!seed.join(FOLDER).join(TUNED).exists());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let (dir, cache) = cache();
    let outside = dir.path().join("outside");
    make_dir(&outside).expect("it can be made");
    let place = entry_path(&dir.path().join("cache"), EntryKind::Kernel, &key(1));
    link(&outside, place.parent().expect("it is in a folder"));
    cache.put(EntryKind::Kernel, &key(1), b"one");
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0);
    let trouble = cache.inner.as_ref().and_then(|inner| inner.trouble.get());
    let trouble = trouble.expect("it is told");
    assert!(trouble.contains("is a link"), "{trouble}");
}

#[test]
fn the_least_recently_used_go() {
    let (_dir, cache) = cache();
    let limit = 10 * (1000 + 88);
    let small = Cache::new(Settings {
        limit,
        ..cache.settings().expect("it is on").clone()
    });
    let hours_ago = |hours: u64| SystemTime::now() - Duration::from_secs(3600 * hours);
    for n in 0..10 {
        small.put(EntryKind::Cubin, &key(n), &[n as u8; 1000]);
        let path = entry_path(
            &small.settings().expect("it is on").dir,
            EntryKind::Cubin,
            &key(n),
        );
        let file = std::fs::File::options()
            .write(true)
            .open(path)
            .expect("it is there");
        file.set_modified(hours_ago(20 - n as u64))
            .expect("the time can be set");
    }
    assert_eq!(small.entries().len(), 10);
    // The two oldest are used again and so are young.
    assert!(small.get(EntryKind::Cubin, &key(0)).is_some());
    assert!(small.get(EntryKind::Cubin, &key(1)).is_some());
    small.put(EntryKind::Cubin, &key(10), &[10; 1000]);
    let left: Vec<usize> = (0..=10)
        .filter(|&n| small.get(EntryKind::Cubin, &key(n)).is_some())
        .collect();
    assert_eq!(left, [0, 1, 4, 5, 6, 7, 8, 9, 10]);
    // What is larger than the whole is not kept.
    small.put(EntryKind::Cubin, &key(11), &vec![0; limit as usize + 1]);
    assert_eq!(small.entries().len(), 9);
}

/// Numbers that look random and are the same every time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Damages the file of an entry in one of many ways.
fn damage(path: &Path, other: &Path, random: &mut Random) -> &'static str {
    let bytes = std::fs::read(path).expect("the entry is there");
    let write = |bytes: &[u8]| std::fs::write(path, bytes).expect("it can be written");
    match random.below(8) {
        0 => {
            let mut bytes = bytes;
            let at = random.below(8 * bytes.len());
            bytes[at / 8] ^= 1 << (at % 8);
            write(&bytes);
            "a bit flipped"
        }
        1 => {
            write(&bytes[..random.below(bytes.len())]);
            "cut"
        }
        2 => {
            write(&[&bytes[..], &vec![0; 1 + random.below(4096)]].concat());
            "longer"
        }
        3 => {
            let mut bytes = bytes;
            let at = random.below(bytes.len());
            let end = (at + 512).min(bytes.len());
            let before = bytes.clone();
            bytes[at..end].fill(0);
            if bytes == before {
                bytes[at] ^= 0xff;
            }
            write(&bytes);
            "a block of zeros"
        }
        4 => {
            let length = random.below(300);
            let noise: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            write(&noise);
            "noise"
        }
        5 => {
            // Whole, but of another key.
            std::fs::copy(other, path).expect("it can be copied");
            "another entry"
        }
        6 => {
            std::fs::remove_file(path).expect("it is there");
            std::fs::create_dir(path).expect("a folder can be made");
            "a folder"
        }
        _ => {
            let mut bytes = bytes;
            bytes[8] = bytes[8].wrapping_add(1 + random.below(255) as u8);
            write(&bytes);
            "another version"
        }
    }
}

#[test]
fn no_damage_goes_unnoticed() {
    let (_dir, cache) = cache();
    let contents = |n: usize| -> Vec<u8> { (0..700 + n).map(|i| (i * (n + 3)) as u8).collect() };
    let dir = cache.settings().expect("it is on").dir.clone();
    for n in 0..8 {
        cache.put(EntryKind::Cubin, &key(n), &contents(n));
    }
    static WARNINGS: AtomicU64 = AtomicU64::new(0);
    crate::runtime::api::warning::on_warning(|_| _ = WARNINGS.fetch_add(1, Ordering::Relaxed));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        let n = random.below(8);
        let path = entry_path(&dir, EntryKind::Cubin, &key(n));
        let other = entry_path(&dir, EntryKind::Cubin, &key((n + 1) % 8));
        let how = damage(&path, &other, &mut random);
        *seen.entry(how).or_insert(0) += 1;
        assert_eq!(cache.get(EntryKind::Cubin, &key(n)), None, "{how}");
        let damaged = cache.verify();
        assert_eq!(damaged.len(), 1, "{how}: {damaged:?}");
        assert_eq!(damaged[0].0, path);
        let made =
            cache.get_or_make::<Stopped>(EntryKind::Cubin, &key(n), &Deadline::default(), || {
                Ok(contents(n))
            });
        assert_eq!(made, Ok((contents(n), Origin::Made)), "{how}");
        let found = cache.get(EntryKind::Cubin, &key(n));
        assert_eq!(found, Some((contents(n), Origin::Disk)), "{how}");
    }
    // Each damage is reported to who reads and to who replaces.
    assert!(WARNINGS.load(Ordering::Relaxed) >= 2000);
    assert_eq!(seen.len(), 8, "every kind of damage was tried: {seen:?}");
}
