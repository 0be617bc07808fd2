//! A store that machines share, in good and in bad hands.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex};

use super::super::entry::encode;
use super::super::folder::entry_name;
use super::*;

/// What a store does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Works,
    /// Answers nothing until its mood changes.
    Hangs,
    Fails,
    Panics,
    /// Takes nothing more.
    IsFull,
    /// Takes what is written, and lets what it has held before go.
    Forgets,
    /// Fails after a while.
    FailsSlowly,
}

/// A store in memory.
#[derive(Debug)]
struct Fake {
    mood: Mutex<Mood>,
    changed: Condvar,
    held: Mutex<BTreeMap<String, Vec<u8>>>,
    reads: AtomicUsize,
    writes: AtomicUsize,
}

/// What the test and the cache have of it.
#[derive(Clone, Debug)]
pub(super) struct Handle(Arc<Fake>);

impl Handle {
    pub(super) fn new(mood: Mood) -> Handle {
        Handle(Arc::new(Fake {
            mood: Mutex::new(mood),
            changed: Condvar::new(),
            held: Mutex::default(),
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
        }))
    }

    pub(super) fn set(&self, mood: Mood) {
        *self.0.mood.lock().expect("nobody panics with it") = mood;
        self.0.changed.notify_all();
    }

    pub(super) fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.held.lock().expect("nobody panics with it")
    }

    pub(super) fn reads(&self) -> usize {
        self.0.reads.load(Ordering::SeqCst)
    }

    /// Does as its mood is.
    fn begin(&self, writes: bool) -> io::Result<()> {
        let mood = self.0.mood.lock().expect("nobody panics with it");
        let hangs = |mood: &mut Mood| *mood == Mood::Hangs;
        let waited = self.0.changed.wait_while(mood, hangs);
        let mood = *waited.expect("nobody panics with it");
        match mood {
            Mood::Works | Mood::Hangs | Mood::Forgets => Ok(()),
            Mood::FailsSlowly => {
                std::thread::sleep(Duration::from_millis(100));
                Err(io::Error::other("the line is slow"))
            }
            Mood::Fails => Err(io::Error::other("the line is cut")),
            Mood::Panics => panic!("a store of a test panics"),
            Mood::IsFull if writes => Err(io::Error::other("no room")),
            Mood::IsFull => Ok(()),
        }
    }
}

impl Store for Handle {
    fn read(&self, name: &str, _limit: u64) -> io::Result<Option<Vec<u8>>> {
        self.0.reads.fetch_add(1, Ordering::SeqCst);
        self.begin(false)?;
        Ok(self.held().get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        self.begin(true)?;
        let mut held = self.held();
        if *self.0.mood.lock().expect("nobody panics with it") == Mood::Forgets {
            held.clear();
        }
        held.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }
}

/// Long enough for a machine under load.
pub(super) const LONG: Duration = Duration::from_secs(60);

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32])
}

/// A machine: its folder and its cache.
pub(super) fn machine(
    store: &Handle,
    change: impl FnOnce(&mut Shared),
) -> (tempfile::TempDir, Cache) {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let mut shared = Shared::new(store.clone(), secret(1));
    (shared.timeout, shared.pause) = (LONG, LONG);
    change(&mut shared);
    let cache = Cache::new(Settings {
        shared: Some(shared),
        ..Settings::new(dir.path().join("cache"))
    });
    (dir, cache)
}

/// Asks for an entry, whose contents would be made so.
pub(super) fn ask(cache: &Cache, n: usize, made: &[u8]) -> (Vec<u8>, Origin) {
    let found =
        cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(n), &Deadline::default(), || {
            Ok(made.to_vec())
        });
    found.expect("there is no deadline")
}

#[test]
fn what_one_machine_makes_the_others_find() {
    let store = Handle::new(Mood::Works);
    let ((_a, first), (_b, second)) = (machine(&store, |_| ()), machine(&store, |_| ()));
    assert_eq!(ask(&first, 1, b"one"), (b"one".to_vec(), Origin::Made));
    assert!(first.flush(LONG));
    assert_eq!(ask(&second, 1, b"two"), (b"one".to_vec(), Origin::Shared));
    // From then on it is there.
    let reads = store.reads();
    assert_eq!(ask(&second, 1, b"two"), (b"one".to_vec(), Origin::Disk));
    assert_eq!(store.reads(), reads);
    // Without asking for a maker, too.
    let (_c, third) = machine(&store, |_| ());
    let found = third.get(EntryKind::Kernel, &key(1));
    assert_eq!(found, Some((b"one".to_vec(), Origin::Shared)));
    assert_eq!(third.get(EntryKind::Cubin, &key(1)), None);
}

#[test]
fn a_store_that_is_only_read_is_not_written() {
    let store = Handle::new(Mood::Works);
    let (_dir, cache) = machine(&store, |shared| shared.writes = false);
    assert_eq!(ask(&cache, 1, b"one").1, Origin::Made);
    assert!(cache.flush(LONG));
    assert!(store.held().is_empty());
}

#[test]
fn a_store_that_hangs_is_asked_once_in_a_pause() {
    let store = Handle::new(Mood::Hangs);
    let (_dir, cache) = machine(&store, |shared| shared.timeout = Duration::from_millis(20));
    for n in 0..5 {
        assert_eq!(ask(&cache, n, b"made").1, Origin::Made);
    }
    assert_eq!(store.reads(), 1);
    store.set(Mood::Works);
    assert!(cache.flush(LONG));
    // Nothing was written either while it was left alone.
    assert!(store.held().is_empty());
}

#[test]
fn behind_the_pause_a_store_is_used_again() {
    let store = Handle::new(Mood::Hangs);
    let (_dir, cache) = machine(&store, |shared| {
        shared.timeout = Duration::from_millis(20);
        shared.pause = Duration::ZERO;
    });
    assert_eq!(ask(&cache, 1, b"made").1, Origin::Made);
    store.set(Mood::Works);
    // The first threads may need a moment to come back.
    let found = (2..1000).find(|&n| {
        ask(&cache, n, b"made");
        cache.flush(LONG)
            && store
                .held()
                .contains_key(&entry_name(EntryKind::Kernel, &key(n)))
    });
    assert!(found.is_some());
}

#[test]
fn a_store_that_fails_is_left_alone_after_three_failures() {
    for mood in [Mood::Fails, Mood::Panics] {
        let store = Handle::new(mood);
        let (_dir, cache) = machine(&store, |shared| shared.writes = false);
        for n in 0..6 {
            assert_eq!(ask(&cache, n, b"made").1, Origin::Made);
        }
        assert_eq!(store.reads(), 3, "{mood:?}");
    }
}

#[test]
fn a_full_store_is_still_read() {
    let store = Handle::new(Mood::Works);
    let ((_a, first), (_b, second)) = (machine(&store, |_| ()), machine(&store, |_| ()));
    ask(&first, 1, b"one");
    assert!(first.flush(LONG));
    store.set(Mood::IsFull);
    for n in 2..10 {
        assert_eq!(ask(&second, n, b"made").1, Origin::Made);
        assert!(second.flush(LONG));
    }
    assert_eq!(ask(&second, 1, b"two"), (b"one".to_vec(), Origin::Shared));
}

#[test]
fn what_a_store_forges_is_never_loaded() {
    let (kind, right) = (EntryKind::Kernel, secret(1));
    let good = encode(kind, &key(1), b"forged", Some(&right));
    let mut flipped = good.clone();
    flipped[90] ^= 1;
    let forgeries = [
        ("nothing", Vec::new()),
        ("no secret", encode(kind, &key(1), b"forged", None)),
        (
            "another secret",
            encode(kind, &key(1), b"forged", Some(&secret(2))),
        ),
        (
            "another key",
            encode(kind, &key(2), b"forged", Some(&right)),
        ),
        (
            "another kind",
            encode(EntryKind::Cubin, &key(1), b"forged", Some(&right)),
        ),
        ("a bit", flipped),
        ("an end", good[..good.len() - 1].to_vec()),
        ("more", [&good[..], b"!"].concat()),
        ("text", b"<html>504</html>".repeat(20)),
    ];
    let name = entry_name(kind, &key(1));
    for (what, bytes) in forgeries {
        let store = Handle::new(Mood::Works);
        store.held().insert(name.clone(), bytes);
        let (_dir, cache) = machine(&store, |_| ());
        let found = ask(&cache, 1, b"made");
        assert_eq!(found, (b"made".to_vec(), Origin::Made), "{what}");
        assert!(cache.flush(LONG));
        // And what was made takes its place.
        let (_dir, other) = machine(&store, |_| ());
        assert_eq!(ask(&other, 1, b"new").1, Origin::Shared, "{what}");
    }
    // The same without a forgery.
    let store = Handle::new(Mood::Works);
    store.held().insert(name, good);
    let (_dir, cache) = machine(&store, |_| ());
    assert_eq!(ask(&cache, 1, b"made").1, Origin::Shared);
}

#[test]
fn who_has_no_time_does_not_wait_for_a_store() {
    let store = Handle::new(Mood::Hangs);
    let (_dir, cache) = machine(&store, |_| ());
    let deadline = Deadline::within(Duration::from_millis(10));
    // It would be waited for a minute. The maker has its own eye on the deadline.
    let made = cache.get_or_make::<Stopped>(EntryKind::Kernel, &key(1), &deadline, || Ok(vec![1]));
    assert_eq!(made, Ok((vec![1], Origin::Made)));
    store.set(Mood::Works);
}

#[test]
fn a_folder_is_a_store() {
    let mounted = tempfile::tempdir().expect("a folder for the test");
    let new = || {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let mut shared = Shared::new(Folder::new(mounted.path()), secret(1));
        shared.timeout = LONG;
        let cache = Cache::new(Settings {
            shared: Some(shared),
            ..Settings::new(dir.path().join("cache"))
        });
        (dir, cache)
    };
    let ((_a, first), (_b, second)) = (new(), new());
    ask(&first, 1, b"one");
    assert!(first.flush(LONG));
    assert_eq!(ask(&second, 1, b"two"), (b"one".to_vec(), Origin::Shared));
}

#[cfg(unix)]
#[test]
fn a_folder_of_others_is_used_only_with_a_secret() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a folder for the test");
    let open = |secret: Option<Secret>| {
        Cache::new(Settings {
            secret,
            ..Settings::new(dir.path())
        })
    };
    let mode = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(dir.path(), permissions).expect("it is ours");
    };
    ask(&open(None), 1, b"one");
    mode(0o777);
    // What is there is not read, and nothing is written.
    let cache = open(None);
    assert_eq!(ask(&cache, 1, b"two"), (b"two".to_vec(), Origin::Made));
    assert_eq!(ask(&cache, 1, b"three").1, Origin::Made);
    assert_eq!(cache.tune_dir(), None);
    assert_eq!(cache.verify().len(), 1);
    // With a secret only what was made with it.
    let cache = open(Some(secret(1)));
    assert_eq!(ask(&cache, 1, b"two"), (b"two".to_vec(), Origin::Made));
    assert_eq!(ask(&cache, 1, b"three").1, Origin::Disk);
    assert_eq!(ask(&open(Some(secret(2))), 1, b"four").1, Origin::Made);
    // In a folder of one's own, what was made without one is as good.
    mode(0o700);
    ask(&open(None), 2, b"two");
    let cache = open(Some(secret(2)));
    assert_eq!(ask(&cache, 2, b"three").1, Origin::Disk);
    assert!(cache.tune_dir().is_some());
}
