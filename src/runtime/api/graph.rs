//! Graphs: launches recorded once and replayed with one call, for kernels that run for less time than a launch takes.

use std::sync::Arc;

use crate::runtime::api::buffer::{Buffer, Memory};
use crate::runtime::api::device::Device;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::stream::{Event, Stream};
use crate::runtime::execute::graph_capture::Recorded;
use crate::runtime::execute::kept_memory::{Keeping, keep};

#[cfg(feature = "cuda")]
use crate::driver::{self, DriverError};

/// Launches in order, ready to run again and again with the arguments that they had.
///
/// Launches, [`Buffer::fill`] and runs of other graphs are recorded, through whichever handle of the stream. What waits
/// (reads, writes, [`Stream::synchronize`], making variants of kernels on a GPU) has no place in a recording and spoils it:
/// prepare kernels before ([`Kernel::prepare`](crate::runtime::Kernel::prepare)).
///
/// Buffers and graphs that the recording thread drops meanwhile are kept until the graph is dropped, so that a function may make memory
/// for what lies between its launches. Each has bytes of its own: a graph takes the sum of such memory, where launches one after the other
/// take the most of it that is there at a time. All other buffers have to outlive the graph's runs.
#[derive(Debug)]
pub struct Graph {
    device: Device,
    /// On the emulator.
    recorded: Vec<Recorded>,
    #[cfg(feature = "cuda")]
    raw: Option<driver::Graph>,
    /// Freed behind what uses it.
    kept: Vec<Arc<Memory>>,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Another that is being recorded may have a run of this one.
        self.kept.iter().for_each(keep);
    }
}

impl Graph {
    /// Records what `body` launches in `stream`; none of it runs. Other threads may go on in other streams, and make buffers;
    /// what they do in this one is recorded, or fails and spoils the recording. So record in a stream of your own, and not in
    /// that of [`Device::stream`], which [`Kernel::run`](crate::runtime::Kernel::run) uses too.
    ///
    /// # Errors
    ///
    /// Those of `body`, and work that cannot be recorded; the stream is recorded already.
    pub fn capture<E: From<RuntimeError>>(
        stream: &Stream,
        body: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        let device = stream.device();
        device.usable()?;
        let keeping = Keeping::begin();
        #[cfg(feature = "cuda")]
        if let Some(raw) = stream.as_driver() {
            let captured = driver::Graph::capture(raw, |_| body(stream).map_err(Stopped::Body));
            let raw = captured.map_err(|stopped| match stopped {
                Stopped::Body(error) => error,
                Stopped::Driver(error) => E::from(device.failed(None, error)),
            })?;
            return Ok(Graph {
                device: device.clone(),
                recorded: Vec::new(),
                raw: Some(raw),
                kept: keeping.end(),
            });
        }
        let mut recorded = Vec::new();
        if let Some(recording) = stream.recording() {
            let running = recording.begin()?;
            body(stream)?;
            recorded = running.end()?;
        }
        Ok(Graph {
            device: device.clone(),
            recorded,
            #[cfg(feature = "cuda")]
            raw: None,
            kept: keeping.end(),
        })
    }

    /// Puts one run of the launches into `stream`.
    ///
    /// # Errors
    ///
    /// A stream of another device; on the emulator what a kernel does wrong.
    pub fn launch(&self, stream: &Stream) -> Result<(), RuntimeError> {
        stream.expect_device(&self.device)?;
        #[cfg(feature = "cuda")]
        if let Some(raw) = &self.raw {
            let launched = raw.launch(stream.driver()?);
            return launched.map_err(|error| self.device.failed(None, error));
        }
        for recorded in &self.recorded {
            match recorded {
                Recorded::Launch(launch) => launch.kernel.replay(launch, stream)?,
                Recorded::Fill {
                    address,
                    bytes,
                    byte,
                } => stream.fill_emulated(*address, *bytes, *byte)?,
                Recorded::Copy { from, to, bytes } => stream.copy_emulated(*from, *to, *bytes)?,
            }
        }
        Ok(())
    }

    /// Milliseconds of one launch by `body`, by `repeats` of it in a graph: the launches' own cost is left out. Memory
    /// that `body` makes is there `repeats` times.
    ///
    /// # Errors
    ///
    /// Those of `body`, once before and then while it is recorded.
    pub fn time(
        stream: &Stream,
        repeats: u32,
        body: impl Fn(&Stream) -> Result<(), RuntimeError>,
    ) -> Result<f64, RuntimeError> {
        let device = stream.device();
        body(stream)?;
        let graph = Graph::capture(stream, |stream| (0..repeats).try_for_each(|_| body(stream)))?;
        graph.launch(stream)?;
        let [start, end] = [Event::new(device)?, Event::new(device)?];
        // Something ahead of it, so that the start is not waited for.
        let scratch = Buffer::<u8>::new(device, 1 << 20)?;
        stream.synchronize()?;
        scratch.fill(stream, 0)?;
        start.record(stream)?;
        graph.launch(stream)?;
        end.record(stream)?;
        stream.synchronize()?;
        Ok(end.elapsed_ms(&start)? / f64::from(repeats.max(1)))
    }
}

/// Why a recording ended.
#[cfg(feature = "cuda")]
enum Stopped<E> {
    Body(E),
    Driver(DriverError),
}

#[cfg(feature = "cuda")]
impl<E> From<DriverError> for Stopped<E> {
    fn from(error: DriverError) -> Stopped<E> {
        Stopped::Driver(error)
    }
}
