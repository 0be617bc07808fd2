//! Warnings: what an application should know of and need not act on.
//!
//! A damaged cache, a cache that cannot be written, a device that is not there: nothing of it stops a program. By
//! default a warning is a line on standard error; an application with a log of its own takes them by [`on_warning`].
//!
//! A handler may use everything here, [`on_warning`] too. So no lock is held while it runs, and what comes up while a
//! kernel is being made, which the handler could ask for, waits until that is done ([`hold`]). What comes up while a
//! handler runs goes to standard error.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

type Handler = Arc<dyn Fn(&str) + Send + Sync>;

static HANDLER: RwLock<Option<Handler>> = RwLock::new(None);

thread_local! {
    /// How many holds this thread is within, and what waits for their end.
    static HELD: (Cell<usize>, RefCell<Vec<String>>) = const { (Cell::new(0), RefCell::new(Vec::new())) };
    /// Whether this thread runs a handler.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Gives warnings of the whole process to `handler` instead of standard error. Each comes on the thread that met it.
pub fn on_warning(handler: impl Fn(&str) + Send + Sync + 'static) {
    let handler: Handler = Arc::new(handler);
    let before = HANDLER
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .replace(handler);
    // Whatever it owns goes without the lock.
    drop(before);
}

/// Tells a warning.
pub(crate) fn warn(text: &str) {
    let is_held = HELD.with(|(depth, texts)| {
        let is_held = depth.get() > 0;
        if is_held {
            texts.borrow_mut().push(text.to_owned());
        }
        is_held
    });
    if !is_held {
        tell(text);
    }
}

/// Warnings of which it is remembered that they were told.
const REMEMBERED: usize = 1000;

/// Tells a warning unless the process has warned the same before. In a process that lives long enough to have met
/// [`REMEMBERED`] different ones, the oldest are forgotten, so that their memory is bounded.
pub(crate) fn warn_once(text: &str) {
    static WARNED: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = remember(&mut warned, text);
    drop(warned);
    if is_new {
        warn(text);
    }
}

/// Whether a text is new among those that are remembered.
fn remember(warned: &mut VecDeque<String>, text: &str) -> bool {
    if warned.iter().any(|known| known == text) {
        return false;
    }
    if warned.len() == REMEMBERED {
        warned.pop_front();
    }
    warned.push_back(text.to_owned());
    true
}

fn tell(text: &str) {
    let handler = HANDLER
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    match handler.filter(|_| !INSIDE.get()) {
        Some(handler) => {
            let _inside = Inside::enter();
            handler(text);
        }
        // If standard error is closed, there is nobody to tell.
        None => _ = writeln!(std::io::stderr(), "tilelift: warning: {text}"),
    }
}

/// A handler that runs; also when it unwinds this ends with it.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        INSIDE.set(true);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Keeps warnings of this thread back until what is returned is dropped.
pub(crate) fn hold() -> Hold {
    HELD.with(|(depth, _)| depth.set(depth.get() + 1));
    Hold { _own: () }
}

/// See [`hold`].
pub(crate) struct Hold {
    _own: (),
}

impl Drop for Hold {
    fn drop(&mut self) {
        let texts = HELD.with(|(depth, texts)| {
            depth.set(depth.get() - 1);
            match depth.get() {
                0 => texts.take(),
                _ => Vec::new(),
            }
        });
        texts.iter().for_each(|text| tell(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_remembered_within_bounds() {
        let mut warned = VecDeque::new();
        for i in 0..3 * REMEMBERED {
            assert!(remember(&mut warned, &i.to_string()));
            assert!(!remember(&mut warned, &i.to_string()));
        }
        assert_eq!(warned.len(), REMEMBERED);
    }
}
