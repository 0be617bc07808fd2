//! Warnings: what an application should know of and need not act on.
//!
//! A damaged cache, a cache that cannot be written, a device that is not there: nothing of it stops a program. By
//! default a warning is a line on standard error; an application with a log of its own takes them by [`on_warning`].

use std::io::Write;
use std::sync::{PoisonError, RwLock};

type Handler = Box<dyn Fn(&str) + Send + Sync>;

static HANDLER: RwLock<Option<Handler>> = RwLock::new(None);

/// Gives warnings of the whole process to `handler` instead of standard error.
pub fn on_warning(handler: impl Fn(&str) + Send + Sync + 'static) {
    *HANDLER.write().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(handler));
}

/// Tells a warning.
pub(crate) fn warn(text: &str) {
    match &*HANDLER.read().unwrap_or_else(PoisonError::into_inner) {
        Some(handler) => handler(text),
        // If standard error is closed, there is nobody to tell.
        None => _ = writeln!(std::io::stderr(), "tilelift: warning: {text}"),
    }
}
