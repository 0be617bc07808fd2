//! Graphs captured on the emulator: what a stream is told to do meanwhile is kept instead of done.
//!
//! The rules are the driver's. Every handle of the stream records, launches, fills and copies on the device are kept, what
//! would wait is an error and spoils the recording, and one recording does not begin within another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::runtime::api::argument::Arg;
use crate::runtime::api::device::Device;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::specialize::class_key::Classes;

/// Something that waits to be done.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    /// A launch.
    Launch(Arc<Launch>),
    /// Bytes to be set.
    Fill {
        address: u64,
        bytes: usize,
        byte: u8,
    },
    /// Bytes to be copied.
    Copy { from: u64, to: u64, bytes: usize },
}

/// A launch that waits to be done.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Arc<KernelInner>,
    pub(crate) classes: Classes,
    pub(crate) grid: [u32; 3],
    pub(crate) args: Vec<Arg<'static>>,
}

/// Whether a stream records, and what.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    state: Mutex<Option<Tape>>,
}

/// What was recorded.
#[derive(Debug, Default)]
struct Tape {
    list: Vec<Recorded>,
    /// Who records.
    thread: Option<ThreadId>,
    /// What was done that has no place in a recording.
    spoilt: Option<&'static str>,
}

impl Recording {
    fn state(&self) -> MutexGuard<'_, Option<Tape>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins; what is returned ends it when it is dropped.
    pub(crate) fn begin(&self) -> Result<Running<'_>, RuntimeError> {
        let mut state = self.state();
        if let Some(tape) = &mut *state {
            let what = "another recording of the same stream";
            tape.spoilt.get_or_insert(what);
            return Err(RuntimeError::Recording { what });
        }
        *state = Some(Tape {
            thread: Some(std::thread::current().id()),
            ..Tape::default()
        });
        Ok(Running { recording: self })
    }

    /// Whether it is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.state().is_some()
    }

    /// Keeps what is to be done; false if there is no recording, so that it is to be done now.
    pub(crate) fn keep(&self, what: impl FnOnce() -> Recorded) -> bool {
        let mut state = self.state();
        let tape = state.as_mut();
        tape.map(|tape| tape.list.push(what())).is_some()
    }

    /// An error while recording, for what waits.
    pub(crate) fn expect_none(&self, what: &'static str) -> Result<(), RuntimeError> {
        self.expect(what, |_| false)
    }

    /// An error while this thread is recording, for what a driver refuses it then.
    pub(crate) fn expect_other_thread(&self, what: &'static str) -> Result<(), RuntimeError> {
        let own = std::thread::current().id();
        self.expect(what, |thread| thread != Some(own))
    }

    fn expect(
        &self,
        what: &'static str,
        is_fine: impl FnOnce(Option<ThreadId>) -> bool,
    ) -> Result<(), RuntimeError> {
        match &mut *self.state() {
            Some(tape) if !is_fine(tape.thread) => {
                tape.spoilt.get_or_insert(what);
                Err(RuntimeError::Recording { what })
            }
            _ => Ok(()),
        }
    }
}

/// A recording under way; it ends with this, also when whoever launches unwinds.
pub(crate) struct Running<'a> {
    recording: &'a Recording,
}

impl Running<'_> {
    /// What was recorded.
    pub(crate) fn end(self) -> Result<Vec<Recorded>, RuntimeError> {
        let tape = self.recording.state().take().unwrap_or_default();
        // Another may have begun by the time this would be dropped.
        std::mem::forget(self);
        match tape.spoilt {
            None => Ok(tape.list),
            Some(what) => Err(RuntimeError::Recording { what }),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.recording.state().take();
    }
}

/// Sets bytes of the emulator's memory now.
pub(crate) fn fill(
    device: &Device,
    address: u64,
    bytes: usize,
    byte: u8,
) -> Result<(), RuntimeError> {
    match device.as_emulated() {
        Some(emulated) => Ok(emulated.memory().write(address, &vec![byte; bytes])?),
        None => Ok(()),
    }
}

/// Copies bytes of the emulator's memory now, whether anybody wrote them or not.
pub(crate) fn copy(device: &Device, from: u64, to: u64, bytes: usize) -> Result<(), RuntimeError> {
    let Some(emulated) = device.as_emulated() else {
        return Ok(());
    };
    let mut memory = emulated.memory();
    let held = memory.read_raw(from, bytes)?;
    Ok(memory.write(to, &held)?)
}
