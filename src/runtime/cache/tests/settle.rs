//! Whether what was found or made is where others find it.

use super::shared::{Handle, LONG, Mood, ask, machine};
use super::*;
use crate::runtime::cache::settle::Kept;

/// Shorter than the pause behind the first failure.
const SHORT: Duration = Duration::from_millis(900);

/// All of so many entries, in the folder and in the store.
fn all(entries: usize) -> Kept {
    Kept {
        entries,
        local: entries,
        shared: Some(entries),
        problems: Vec::new(),
    }
}

/// Makes or finds so many entries, by a handle that notes them.
fn make(cache: &Cache, entries: usize) -> Cache {
    let tracked = cache.tracked();
    (0..entries).for_each(|n| _ = ask(&tracked, n, b"made"));
    tracked
}

#[test]
fn everything_arrives_however_much_it_is() {
    let store = Handle::new(Mood::Works);
    let (_dir, cache) = machine(&store, |_| ());
    // More than wait for the threads of the store, which a launch would drop.
    let tracked = make(&cache, 500);
    assert_eq!(tracked.settle(LONG), all(500));
    assert_eq!(store.held().len(), 500);
    // Entries of others are not looked at.
    assert_eq!(make(&cache, 3).settle(LONG), all(3));
    assert_eq!(cache.settle(LONG), Kept::default());
}

#[test]
fn what_lies_here_and_not_there_is_brought() {
    let store = Handle::new(Mood::Works);
    let (dir, cache) = machine(&store, |shared| shared.writes = false);
    let kept = make(&cache, 5).settle(LONG);
    assert_eq!((kept.local, kept.shared), (5, None));
    assert!(store.held().is_empty());
    let mut settings = cache.settings().expect("it is on").clone();
    let shared = settings.shared.as_mut().expect("there is one");
    shared.writes = true;
    let again = Cache::new(settings);
    assert_eq!(make(&again, 5).settle(LONG), all(5));
    // Another machine finds them, and what it found there is there.
    let (_other, second) = machine(&store, |_| ());
    let tracked = make(&second, 5);
    let reads = store.reads();
    assert_eq!(tracked.settle(LONG), all(5));
    assert_eq!(store.reads(), reads);
    // What was forged there is replaced.
    let name = entry_name(EntryKind::Kernel, &key(2));
    let whole = store.held().insert(name.clone(), b"forged".to_vec());
    assert_eq!(make(&again, 5).settle(LONG), all(5));
    assert_eq!(store.held().get(&name), whole.as_ref());
    drop(dir);
}

#[test]
fn a_store_that_fails_for_a_while_is_asked_again() {
    for mood in [Mood::Fails, Mood::Panics, Mood::Hangs] {
        let store = Handle::new(Mood::Works);
        let (_dir, cache) = machine(&store, |shared| shared.pause = Duration::from_millis(1));
        let tracked = make(&cache, 20);
        store.set(mood);
        let before = store.reads();
        std::thread::scope(|scope| {
            let kept = scope.spawn(|| tracked.settle(LONG));
            while store.reads() < before + 4 {
                std::thread::yield_now();
            }
            store.set(Mood::Works);
            let kept = kept.join().expect("it does not panic");
            assert_eq!(kept, all(20), "{mood:?}");
        });
    }
}

#[test]
fn a_store_that_takes_nothing_is_given_up() {
    for (mood, why) in [
        (Mood::Fails, "the line is cut"),
        (Mood::IsFull, "no room"),
        (Mood::Hangs, "no answer within 1.35s"),
    ] {
        let store = Handle::new(Mood::Works);
        let (_dir, cache) = machine(&store, |_| ());
        let tracked = make(&cache, 20);
        store.set(mood);
        let kept = tracked.settle(SHORT);
        assert_eq!((kept.local, kept.shared), (20, Some(0)), "{mood:?}");
        let [problem] = &kept.problems[..] else {
            panic!("{kept:?}");
        };
        assert!(problem.starts_with("20 of 20 entries are not in the shared cache Handle"));
        assert!(problem.ends_with(why), "{problem}");
        store.set(Mood::Works);
    }
}

#[test]
fn a_store_that_lets_entries_go_for_others_has_not_all() {
    let store = Handle::new(Mood::Works);
    let (_dir, cache) = machine(&store, |_| ());
    assert_eq!(make(&cache, 19).settle(LONG), all(19));
    store.set(Mood::Forgets);
    // The one that is written drives out those that were there.
    let kept = make(&cache, 20).settle(LONG);
    assert_eq!((kept.local, kept.shared), (20, Some(store.held().len())));
    assert_eq!(kept.shared, Some(1));
    let problem = kept.problems.concat();
    assert!(problem.contains("19 of 20 entries are not in the shared cache"));
    assert!(problem.contains("has them no longer"), "{problem}");
}

#[test]
fn a_store_that_fails_slowly_is_not_asked_for_each() {
    let store = Handle::new(Mood::Works);
    let (_dir, cache) = machine(&store, |_| ());
    let tracked = make(&cache, 500);
    store.set(Mood::FailsSlowly);
    let before = store.reads();
    let kept = tracked.settle(Duration::from_millis(400));
    assert_eq!((kept.local, kept.shared), (500, Some(0)));
    assert!(kept.problems.concat().ends_with("the line is slow"));
    // Four threads come to some twenty in the time.
    assert!(store.reads() - before < 500);
}

#[test]
fn what_the_folder_does_not_keep_is_told() {
    let problem = |cache: &Cache, local: usize| {
        let kept = make(cache, 20).settle(LONG);
        assert_eq!((kept.entries, kept.local, kept.shared), (20, local, None));
        kept.problems.concat()
    };
    let (_dir, cache) = cache();
    assert_eq!(problem(&cache, 20), "");
    let change = |change: &dyn Fn(&mut Settings)| {
        let mut settings = cache.settings().expect("it is on").clone();
        change(&mut settings);
        Cache::new(settings)
    };
    let bounded = |limit| {
        change(&|settings: &mut Settings| {
            settings.limit = limit;
            settings.dir = settings.dir.with_file_name(format!("bounded{limit}"));
        })
    };
    // An entry has 92 bytes.
    for (limit, local) in [(0, 0), (920, 10)] {
        let problem = problem(&bounded(limit), local);
        let why = format!("its bound of {limit} bytes (TILELIFT_CACHE_SIZE) has no room");
        assert!(problem.contains(&why), "{problem}");
    }
    let file = cache.settings().expect("it is on").dir.join("file");
    fs::write(&file, "in the way").expect("it can be written");
    let problem_of_file = problem(&change(&|settings| settings.dir = file.clone()), 0);
    assert!(problem_of_file.contains("cannot"), "{problem_of_file}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let open = cache.settings().expect("it is on").dir.clone();
        let mode = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&open, mode).expect("it is ours");
        let problem = problem(&change(&|_| ()), 0);
        assert!(problem.contains("others may write to it"), "{problem}");
    }
}

#[test]
fn a_lock_that_is_held_is_no_trouble_with_the_folder() {
    let (_dir, cache) = cache();
    let inner = cache.inner.as_ref().expect("it is on");
    inner.tell_lock(&io::ErrorKind::TimedOut.into());
    assert_eq!(inner.trouble.get(), None);
    inner.tell_lock(&io::ErrorKind::PermissionDenied.into());
    assert!(inner.trouble.get().is_some());
}
