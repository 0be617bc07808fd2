//! What goes on, on a terminal, where it takes longer than a second.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::ProgressBar;

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the seconds are counted on.
const TICK: Duration = Duration::from_millis(100);

/// A line on standard error, if that is a terminal, until this is dropped.
pub(super) struct Progress {
    /// What goes on now.
    words: Option<Sender<String>>,
    teller: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins with something.
    pub(super) fn new(words: impl Into<String>) -> Progress {
        let (sender, receiver) = channel::<String>();
        let mut words = words.into();
        let tell = move || {
            let mut bar: Option<ProgressBar> = None;
            loop {
                let patience = if bar.is_some() { TICK } else { PATIENCE };
                match receiver.recv_timeout(patience) {
                    Ok(new) => words = new,
                    Err(RecvTimeoutError::Timeout) => {
                        let bar = bar.get_or_insert_with(ProgressBar::new_spinner);
                        bar.set_message(words.clone());
                        bar.tick();
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        if let Some(bar) = bar {
                            bar.finish_and_clear();
                        }
                        return;
                    }
                }
            }
        };
        // Without a thread nothing is told, and nothing else is different.
        let teller = thread::Builder::new().spawn(tell).ok();
        Progress {
            words: Some(sender),
            teller,
        }
    }

    /// Goes on with something else.
    pub(super) fn set(&self, words: impl Into<String>) {
        if let Some(sender) = &self.words {
            let _ = sender.send(words.into());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.words.take());
        if let Some(teller) = self.teller.take() {
            let _ = teller.join();
        }
    }
}
