//! Streams and events: the order of work, and marks in it.
//!
//! Work in a stream happens in order, and launching returns at once. On the emulator a launch has ended when it returns,
//! which is one of the orders that a stream allows; what a kernel does wrong is an error of the launch there, and on a GPU
//! of a later call that waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::runtime::api::device::{Backend, Device};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::execute::graph_capture::{self, Recorded, Recording};

#[cfg(feature = "cuda")]
use crate::driver;

/// A queue of work on a device. Clones are the same queue.
#[derive(Clone, Debug)]
pub struct Stream {
    device: Device,
    /// What a graph records, on the emulator; handles of one queue share it.
    recording: Option<Arc<Recording>>,
    #[cfg(feature = "cuda")]
    raw: Option<Arc<driver::Stream>>,
}

impl Stream {
    /// A queue of its own.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn new(device: &Device) -> Result<Stream, RuntimeError> {
        device.usable()?;
        match device.backend() {
            Backend::Emulated(_) => Ok(Stream {
                device: device.clone(),
                recording: Some(Arc::default()),
                #[cfg(feature = "cuda")]
                raw: None,
            }),
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => {
                let raw = driver::Stream::new(&gpu.context);
                let raw = raw.map_err(|error| device.failed(None, error))?;
                Ok(Stream {
                    device: device.clone(),
                    recording: None,
                    raw: Some(Arc::new(raw)),
                })
            }
        }
    }

    /// The stream that a device begins with.
    pub(in crate::runtime) fn of_device(device: &Device) -> Stream {
        Stream {
            #[cfg(feature = "cuda")]
            raw: match device.backend() {
                Backend::Emulated(_) => None,
                Backend::Gpu(gpu) => Some(gpu.stream.clone()),
            },
            recording: device
                .as_emulated()
                .map(|emulated| emulated.recording.clone()),
            device: device.clone(),
        }
    }

    /// A stream of the driver layer: one of its own, or one that another library made, borrowed by
    /// [`driver::Stream::from_raw`].
    ///
    /// # Errors
    ///
    /// It is of another device.
    #[cfg(feature = "cuda")]
    pub fn from_driver(device: &Device, raw: driver::Stream) -> Result<Stream, RuntimeError> {
        let same = match device.backend() {
            Backend::Emulated(_) => false,
            Backend::Gpu(gpu) => gpu.context.same(raw.context()),
        };
        if !same {
            return Err(RuntimeError::OtherDevice {
                what: "the stream".to_owned(),
            });
        }
        Ok(Stream {
            device: device.clone(),
            recording: None,
            raw: Some(Arc::new(raw)),
        })
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until everything in it is done.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran, and assertions that failed in any stream of a GPU by now ([`RuntimeError::Assertion`],
    /// each told once).
    pub fn synchronize(&self) -> Result<(), RuntimeError> {
        self.device.usable()?;
        #[cfg(feature = "cuda")]
        if let Some(raw) = &self.raw {
            let waited = raw.synchronize();
            waited.map_err(|error| self.device.failed(None, error))?;
            return self.device.check_asserts();
        }
        self.expect_no_recording("waiting for the stream")
    }

    /// Whether everything in it is done.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran.
    pub fn is_done(&self) -> Result<bool, RuntimeError> {
        self.device.usable()?;
        #[cfg(feature = "cuda")]
        if let Some(raw) = &self.raw {
            return raw
                .is_done()
                .map_err(|error| self.device.failed(None, error));
        }
        self.expect_no_recording("asking whether the stream is done")?;
        Ok(true)
    }

    /// Lets what comes from now on wait for `event`, of this device or of another one.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn wait(&self, event: &Event) -> Result<(), RuntimeError> {
        self.device.usable()?;
        event.device.usable()?;
        #[cfg(feature = "cuda")]
        if let Mark::Gpu(mark) = &event.mark {
            return match &self.raw {
                Some(raw) => raw
                    .wait(mark)
                    .map_err(|error| self.device.failed(None, error)),
                // The emulator does at once what comes.
                None => event.synchronize(),
            };
        }
        Ok(())
    }

    /// The driver's stream; none on the emulator.
    #[cfg(feature = "cuda")]
    pub fn as_driver(&self) -> Option<&driver::Stream> {
        self.raw.as_deref()
    }

    /// The driver's stream of a GPU.
    #[cfg(feature = "cuda")]
    pub(in crate::runtime) fn driver(&self) -> Result<&driver::Stream, RuntimeError> {
        self.as_driver().ok_or_else(|| RuntimeError::OtherDevice {
            what: "the stream".to_owned(),
        })
    }

    /// Whether a graph records it.
    #[cold]
    pub(in crate::runtime) fn is_recording(&self) -> bool {
        #[cfg(feature = "cuda")]
        if let Some(raw) = &self.raw {
            return raw.is_recording();
        }
        self.recording.as_ref().is_some_and(|r| r.is_running())
    }

    /// Its recording, on the emulator. A GPU's streams are recorded by the driver.
    pub(in crate::runtime) fn recording(&self) -> Option<&Recording> {
        self.recording.as_deref()
    }

    /// Keeps what is to be done, if the emulator records; false if it is to be done now.
    #[inline]
    pub(in crate::runtime) fn record(&self, what: impl FnOnce() -> Recorded) -> bool {
        self.recording.as_ref().is_some_and(|r| r.keep(what))
    }

    /// An error for what waits, if the emulator records.
    pub(in crate::runtime) fn expect_no_recording(
        &self,
        what: &'static str,
    ) -> Result<(), RuntimeError> {
        let recording = self.recording.as_ref();
        recording.map_or(Ok(()), |recording| recording.expect_none(what))
    }

    /// Sets bytes of the emulator's memory, in order.
    pub(in crate::runtime) fn fill_emulated(
        &self,
        address: u64,
        bytes: usize,
        byte: u8,
    ) -> Result<(), RuntimeError> {
        let fill = || Recorded::Fill {
            address,
            bytes,
            byte,
        };
        if self.record(fill) {
            return Ok(());
        }
        graph_capture::fill(&self.device, address, bytes, byte)
    }

    /// Copies bytes of the emulator's memory, in order.
    pub(in crate::runtime) fn copy_emulated(
        &self,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Result<(), RuntimeError> {
        if self.record(|| Recorded::Copy { from, to, bytes }) {
            return Ok(());
        }
        graph_capture::copy(&self.device, from, to, bytes)
    }

    /// An error unless it is of this device.
    #[inline]
    pub(crate) fn expect_device(&self, device: &Device) -> Result<(), RuntimeError> {
        if self.device.id() == device.id() {
            return device.usable();
        }
        Err(RuntimeError::OtherDevice {
            what: "the stream".to_owned(),
        })
    }
}

/// A mark in a stream, with the time at which the stream reached it. It belongs to the device that it was made for:
/// streams of other devices wait for it and do not record it, and no time passes between marks of two devices.
#[derive(Debug)]
pub struct Event {
    device: Device,
    mark: Mark,
}

#[derive(Debug)]
enum Mark {
    Emulated(Mutex<Reached>),
    #[cfg(feature = "cuda")]
    Gpu(driver::Event),
}

/// When the emulator reached a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reached {
    /// It is nowhere yet.
    Never,
    At(Instant),
    /// It is part of a graph, and has no time of its own.
    Recorded,
}

impl Event {
    /// An error unless it is of this device.
    fn expect_device(&self, device: &Device) -> Result<(), RuntimeError> {
        if self.device.id() == device.id() {
            return Ok(());
        }
        Err(RuntimeError::OtherDevice {
            what: "the event".to_owned(),
        })
    }

    /// A mark that is nowhere yet.
    ///
    /// # Errors
    ///
    /// What the driver reports.
    pub fn new(device: &Device) -> Result<Event, RuntimeError> {
        device.usable()?;
        let mark = match device.backend() {
            Backend::Emulated(_) => Mark::Emulated(Mutex::new(Reached::Never)),
            #[cfg(feature = "cuda")]
            Backend::Gpu(gpu) => {
                let event = driver::Event::new(&gpu.context);
                Mark::Gpu(event.map_err(|error| device.failed(None, error))?)
            }
        };
        Ok(Event {
            device: device.clone(),
            mark,
        })
    }

    /// Puts the mark behind what `stream`, which is of the same device, holds now.
    ///
    /// # Errors
    ///
    /// A stream of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), RuntimeError> {
        stream.expect_device(&self.device)?;
        match &self.mark {
            Mark::Emulated(time) => {
                let now = match stream.is_recording() {
                    true => Reached::Recorded,
                    false => Reached::At(Instant::now()),
                };
                *time.lock().unwrap_or_else(PoisonError::into_inner) = now;
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Mark::Gpu(event) => event
                .record(stream.driver()?)
                .map_err(|error| self.device.failed(None, error)),
        }
    }

    /// Waits until the mark was reached.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before it.
    pub fn synchronize(&self) -> Result<(), RuntimeError> {
        self.device.usable()?;
        match &self.mark {
            // As the driver has it: what a graph records is reached by no launch that could be waited for.
            Mark::Emulated(time)
                if *time.lock().unwrap_or_else(PoisonError::into_inner) == Reached::Recorded =>
            {
                Err(RuntimeError::Recording {
                    what: "waiting for an event",
                })
            }
            Mark::Emulated(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Mark::Gpu(event) => event
                .synchronize()
                .map_err(|error| self.device.failed(None, error)),
        }
    }

    /// Whether the mark was reached.
    ///
    /// # Errors
    ///
    /// Errors of kernels that ran before it.
    pub fn is_done(&self) -> Result<bool, RuntimeError> {
        self.device.usable()?;
        match &self.mark {
            Mark::Emulated(_) => Ok(true),
            #[cfg(feature = "cuda")]
            Mark::Gpu(event) => event
                .is_done()
                .map_err(|error| self.device.failed(None, error)),
        }
    }

    /// Milliseconds from `start` to this mark.
    ///
    /// # Errors
    ///
    /// One of them was not recorded, or not reached yet; they are of two devices.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f64, RuntimeError> {
        start.expect_device(&self.device)?;
        match (&self.mark, &start.mark) {
            (Mark::Emulated(end), Mark::Emulated(start)) => {
                let time = |at: &Mutex<Reached>| match *at
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                {
                    Reached::At(time) => Ok(time),
                    Reached::Never | Reached::Recorded => Err(RuntimeError::NotRecorded),
                };
                let (start, end) = (time(start)?, time(end)?);
                Ok(end.saturating_duration_since(start).as_secs_f64() * 1e3)
            }
            #[cfg(feature = "cuda")]
            (Mark::Gpu(end), Mark::Gpu(start)) => end
                .elapsed_ms(start)
                .map(f64::from)
                .map_err(|error| self.device.failed(None, error)),
            #[cfg(feature = "cuda")]
            _ => Err(RuntimeError::OtherDevice {
                what: "the event".to_owned(),
            }),
        }
    }
}
