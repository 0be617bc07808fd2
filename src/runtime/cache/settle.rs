//! What became of entries: whether what was found or made lies in the folder, and in the store that machines share.
//!
//! A launch waits for no write. Who fills caches for others does: by a handle that keeps a ledger ([`Cache::tracked`]), and by
//! [`Cache::settle`] at the end, which looks for each entry, gives the store what it lacks, and says what is where.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::entry::{EntryKind, Key, Trust, decode, encode};
use super::folder::{UNTRUSTED, entry_name};
use super::store::{Shared, WORKERS, calm, locked};
use super::{Cache, Inner, Origin};
use crate::limits::CACHE_ENTRY_BYTES;

/// How long to wait, at first, before a store that failed is asked again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Why an entry is not where it was just written.
const LOST: &str =
    "it took them and has them no longer; give it more room, or look at what else writes to it";

/// The entries that were found or made by a handle, and whether they came from the shared store.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<BTreeMap<(EntryKind, Key), bool>>);

impl Ledger {
    pub(super) fn note(&self, kind: EntryKind, key: &Key, origin: Origin) {
        let mut entries = locked(&self.0);
        *entries.entry((kind, *key)).or_default() |= origin == Origin::Shared;
    }
}

/// Where the entries are that were found or made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Kept {
    /// How many there are: several for a kernel.
    pub entries: usize,
    /// How many of them lie in the cache's folder or in a seed.
    pub local: usize,
    /// How many of them the store that machines share has. None if there is no such store, or it is not written to.
    pub shared: Option<usize>,
    /// Why some are not where they should be: a sentence for the folder and one for the store.
    pub problems: Vec<String>,
}

impl Cache {
    /// The same cache by a handle that notes what is found and made. It writes nothing to the shared store before it is settled.
    pub(crate) fn tracked(&self) -> Cache {
        Cache {
            inner: self.inner.clone(),
            ledger: Some(Arc::default()),
        }
    }

    /// Looks where the entries are that this handle has noted, and gives the shared store what it lacks. A store that fails is asked
    /// again; it is given up if nothing has arrived there for `at_most`.
    pub(crate) fn settle(&self, at_most: Duration) -> Kept {
        let (Some(inner), Some(ledger)) = (&self.inner, &self.ledger) else {
            return Kept::default();
        };
        let noted = locked(&ledger.0).clone();
        let entries = noted.len();
        let is_local = |(kind, key): &&(EntryKind, Key)| inner.find(*kind, key, false).is_some();
        let local = noted.keys().filter(is_local).count();
        let mut problems = Vec::new();
        if local < entries {
            let (missing, dir) = (entries - local, inner.folder.dir().display());
            let why = inner.why_not_kept();
            problems.push(format!(
                "{missing} of {entries} entries are not in the cache {dir}: {why}"
            ));
        }
        let written = inner.shared.as_ref().map(|client| client.shared());
        let shared = written.filter(|shared| shared.writes).map(|shared| {
            let unknown = noted.iter().filter(|(_, from_there)| !**from_there);
            let unknown: Vec<(EntryKind, Key)> = unknown.map(|(entry, _)| *entry).collect();
            let mut pushed = push(inner, shared, unknown, true, at_most);
            if pushed.missing == 0 && pushed.has_written {
                // A store may let earlier entries go for later ones, or say that it took what it did not.
                let all = noted.keys().copied().collect();
                pushed = push(inner, shared, all, false, at_most);
            }
            let Pushed { missing, why, .. } = pushed;
            if missing > 0 {
                let store = &shared.store;
                problems.push(format!(
                    "{missing} of {entries} entries are not in the shared cache {store:?}: {why}"
                ));
            }
            entries - missing
        });
        Kept {
            entries,
            local,
            shared,
            problems,
        }
    }
}

impl Inner {
    fn why_not_kept(&self) -> String {
        if self.folder.trust(self.settings.secret.as_ref()).is_none() {
            return UNTRUSTED.to_owned();
        }
        let limit = self.settings.limit;
        self.trouble.get().cloned().unwrap_or_else(|| {
            format!("its bound of {limit} bytes (TILELIFT_CACHE_SIZE) has no room for them, or somebody took them away")
        })
    }
}

/// Entries on their way to a store.
struct Pushing {
    inner: Arc<Inner>,
    shared: Shared,
    entries: Vec<(EntryKind, Key)>,
    /// Whether those that are not there are written; else they are looked for alone.
    writes: bool,
    next: AtomicUsize,
    /// When the last one arrived, or the store said that it has not got it.
    arrived: Mutex<Instant>,
    at_most: Duration,
    is_given_up: AtomicBool,
}

/// What became of an entry.
#[derive(PartialEq, Eq)]
enum Outcome {
    There,
    Written,
    Lost,
}

/// What became of entries.
struct Pushed {
    /// Whether some were written.
    has_written: bool,
    /// How many are not in the store.
    missing: usize,
    /// Why one of them is not.
    why: String,
}

/// Looks for entries in a store, and if `writes` gives it those that it lacks. The threads of a store that hangs are not waited for.
fn push(
    inner: &Arc<Inner>,
    shared: &Shared,
    entries: Vec<(EntryKind, Key)>,
    writes: bool,
    at_most: Duration,
) -> Pushed {
    let count = entries.len();
    let pushing = Arc::new(Pushing {
        inner: Arc::clone(inner),
        shared: shared.clone(),
        entries,
        writes,
        next: AtomicUsize::new(0),
        arrived: Mutex::new(Instant::now()),
        at_most,
        is_given_up: AtomicBool::new(false),
    });
    let (to, from) = channel();
    for _ in 0..WORKERS.min(count) {
        let (pushing, to) = (Arc::clone(&pushing), to.clone());
        let thread = std::thread::Builder::new().name("tilelift-store".to_owned());
        // If there is none at all, nobody sends and nothing arrives.
        let _ = thread.spawn(move || pushing.work(&to));
    }
    drop(to);
    let mut pushed = Pushed {
        has_written: false,
        missing: count,
        why: String::new(),
    };
    // Longer than a thread goes on trying, so that an error is told as it is.
    let patience = at_most + at_most / 2;
    for _ in 0..count {
        // Errors that come slowly are no reason to wait for the next one.
        let left = patience.saturating_sub(locked(&pushing.arrived).elapsed());
        match from.recv_timeout(left) {
            Ok(Ok(Outcome::Lost)) => pushed.why = LOST.to_owned(),
            Ok(Ok(outcome)) => {
                pushed.missing -= 1;
                pushed.has_written |= outcome == Outcome::Written;
            }
            Ok(Err(error)) => pushed.why = error,
            Err(RecvTimeoutError::Timeout) => {
                if pushed.why.is_empty() {
                    pushed.why = format!("no answer within {patience:?}");
                }
                break;
            }
            Err(RecvTimeoutError::Disconnected) => {
                pushed.why = "there are no threads to write with".to_owned();
                break;
            }
        }
    }
    pushing.is_given_up.store(true, Ordering::Relaxed);
    pushing.next.store(count, Ordering::Relaxed);
    pushed
}

impl Pushing {
    fn work(&self, to: &Sender<Result<Outcome, String>>) {
        while let Some((kind, key)) = self.entries.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if to.send(self.deliver(*kind, key)).is_err() {
                return;
            }
        }
    }

    /// Brings an entry to the store, or looks for it. A store that fails is asked again later, unless nothing has arrived for too long.
    fn deliver(&self, kind: EntryKind, key: &Key) -> Result<Outcome, String> {
        let found = || self.inner.find(kind, key, false);
        let contents = match self.writes.then(found) {
            None => None,
            Some(found) => Some(found.ok_or("they are not in the cache's folder either")?.0),
        };
        let (first, longest) = (FIRST_PAUSE.min(self.shared.pause), self.shared.pause);
        let mut pause = first.max(Duration::from_millis(1));
        loop {
            let error = match calm(|| self.offer(kind, key, contents.as_deref())) {
                Ok(outcome) => {
                    *locked(&self.arrived) = Instant::now();
                    return Ok(outcome);
                }
                Err(error) => error,
            };
            let is_late = locked(&self.arrived).elapsed() + pause > self.at_most;
            if is_late || self.is_given_up.load(Ordering::Relaxed) {
                self.is_given_up.store(true, Ordering::Relaxed);
                return Err(error.to_string());
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(longest.max(first));
        }
    }

    /// Writes an entry unless the store has it or there are no contents.
    fn offer(&self, kind: EntryKind, key: &Key, contents: Option<&[u8]>) -> io::Result<Outcome> {
        let (store, name) = (&self.shared.store, entry_name(kind, key));
        let trust = Trust {
            secret: Some(&self.shared.secret),
            plain: false,
        };
        let found = store.read(&name, CACHE_ENTRY_BYTES);
        let is_it = |bytes| decode(bytes, trust).and_then(|entry| entry.of(kind, key));
        let is_there = found.map(|bytes| bytes.is_some_and(|bytes| is_it(bytes).is_ok()));
        match (is_there, contents) {
            (Ok(true), _) => Ok(Outcome::There),
            // What cannot be read is as good as absent: whether it can be written shows then.
            (_, Some(contents)) => {
                let bytes = encode(kind, key, contents, Some(&self.shared.secret));
                store.write(&name, &bytes).map(|()| Outcome::Written)
            }
            (Ok(false), None) => Ok(Outcome::Lost),
            (Err(error), None) => Err(error),
        }
    }
}
