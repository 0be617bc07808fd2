//! Graphs: a sequence of launches recorded once and replayed with one call.
//!
//! This is how kernels that run for less time than their launch takes are timed and used.

use super::context::Context;
use super::error::{DriverError, check};
use super::ffi::{self, Handle};
use super::module::Module;
use super::stream::Stream;
use core::ffi::c_uint;

/// Work recorded from a stream, ready to run again and again.
///
/// It keeps the modules of the kernels that [`launch`](super::launch()), and runs of other graphs, put into it loaded.
/// A capture that another library began keeps nothing: there the modules have to outlive it.
/// Memory is not kept either: buffers have to outlive the graph's runs, as with any launch.
#[derive(Debug)]
pub struct Graph {
    context: Context,
    executable: Handle,
    /// Only held, and passed on to graphs that record a run of this one.
    modules: Vec<Module>,
}

impl Graph {
    /// Records what `body` puts into `stream`, none of which runs.
    ///
    /// Calls that wait, copies to and from host memory among them, fail while recording.
    ///
    /// # Errors
    ///
    /// The error of `body`, or what the driver reports.
    pub fn capture<E: From<DriverError>>(
        stream: &Stream,
        body: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        /// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads may allocate meanwhile.
        const THREAD_LOCAL: c_uint = 1;
        let context = stream.context();
        let recording = {
            let _current = context.enter()?;
            // SAFETY: the handle is alive.
            let code = unsafe { ffi::cuStreamBeginCapture_v2(stream.raw(), THREAD_LOCAL) };
            check("cuStreamBeginCapture", code)?;
            stream.record(true);
            Recording { stream }
        };
        let result = body(stream);
        let (code, graph, modules) = recording.end();
        result?;
        check("cuStreamEndCapture", code)?;
        let _current = context.enter()?;
        let mut executable = 0;
        // SAFETY: the graph came from the successful call before; writes one handle.
        let code = unsafe { ffi::cuGraphInstantiateWithFlags(&raw mut executable, graph, 0) };
        // SAFETY: as before; the executable does not need it any more.
        let _ = unsafe { ffi::cuGraphDestroy(graph) };
        check("cuGraphInstantiate", code)?;
        Ok(Graph {
            context: context.clone(),
            executable,
            modules,
        })
    }

    /// Puts one run of the graph into `stream`.
    ///
    /// # Errors
    ///
    /// [`DriverError::Device`] for a stream of another device.
    pub fn launch(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.expect_same("the stream", stream.context())?;
        let _current = self.context.enter()?;
        // SAFETY: both handles are alive.
        let code = unsafe { ffi::cuGraphLaunch(self.executable, stream.raw()) };
        check("cuGraphLaunch", code)?;
        for module in &self.modules {
            stream.keep(module);
        }
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: made by `capture` and not used afterwards; a run under way still finishes.
            let _ = unsafe { ffi::cuGraphExecDestroy(self.executable) };
        }
    }
}

/// A recording under way; ends it also when the body unwinds, else the stream would stay in it.
struct Recording<'a> {
    stream: &'a Stream,
}

impl Recording<'_> {
    /// Ends the recording: the result, the graph, and the modules used.
    fn end(self) -> (ffi::Code, Handle, Vec<Module>) {
        let ended = end(self.stream);
        core::mem::forget(self);
        ended
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let (code, graph, _) = end(self.stream);
        if code == ffi::SUCCESS && graph != 0 {
            // SAFETY: the graph came from the successful call and nobody has it.
            let _ = unsafe { ffi::cuGraphDestroy(graph) };
        }
    }
}

/// See [`Recording::end`].
fn end(stream: &Stream) -> (ffi::Code, Handle, Vec<Module>) {
    let mut graph = 0;
    let _current = stream.context().enter();
    // SAFETY: the stream is alive and in capture; writes one handle, 0 if the capture failed.
    let code = unsafe { ffi::cuStreamEndCapture(stream.raw(), &raw mut graph) };
    (code, graph, stream.record(false))
}
