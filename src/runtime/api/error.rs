//! What can go wrong between an application and its kernels.

use crate::emu::{EmuError, Fault, MemoryError};
use crate::error::CompileError;
use crate::text::closest::{closest, did_you_mean};

use crate::runtime::api::deadline::Stopped;
use crate::runtime::api::diagnostic::SourceError;

#[cfg(feature = "cuda")]
use crate::driver::DriverError;

/// An error of the run time.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A program's text is not accepted, for the arguments given: the messages with their places.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// There is no kernel of this name.
    #[error("{}", no_kernel(.name.as_deref(), .known))]
    NoKernel {
        /// The name asked for; none if it was left out and there is not exactly one.
        name: Option<String>,
        /// The kernels there are.
        known: Vec<String>,
    },

    /// A kernel is set up in a way that cannot be.
    #[error("kernel `{kernel}`: {problem}")]
    Setup {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },

    /// The number of arguments differs from the number of parameters.
    #[error("kernel `{kernel}` takes {} arguments ({}), {got} given", .expected.len(), .expected.join(", "))]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// The parameters that take one, by name: those without a constant.
        expected: Vec<String>,
        /// How many there were.
        got: usize,
    },

    /// An argument is not what its parameter takes.
    #[error("kernel `{kernel}`, argument `{name}`: {problem}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter.
        name: String,
        /// What is wrong.
        problem: String,
    },

    /// A tensor that cannot be described.
    #[error("a tensor descriptor: {problem}")]
    Descriptor {
        /// What is wrong.
        problem: String,
    },

    /// A grid that cannot be.
    #[error("kernel `{kernel}`: {problem}")]
    Grid {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },

    /// The compiler refuses a kernel.
    #[error("kernel `{kernel}`: {error}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// Why.
        error: Box<CompileError>,
    },

    /// More variants of a kernel than it may have.
    #[error(
        "kernel `{kernel}` has {limit} variants already, and this launch needs another, {signature}: keep what varies from \
         specialising (do_not_specialize), or raise the bound"
    )]
    TooManyVariants {
        /// The kernel.
        kernel: String,
        /// The bound.
        limit: usize,
        /// The signature that is one too many.
        signature: String,
    },

    /// A wait for a kernel ended early.
    #[error("compiling kernel `{kernel}`: {stopped}")]
    Stopped {
        /// The kernel.
        kernel: String,
        /// Why.
        stopped: Stopped,
    },

    /// Assertions of a kernel failed (`device_assert`, with [`Kernel::debug`](crate::runtime::Kernel::debug)). What the launch
    /// wrote is there, and the device goes on.
    #[error("kernel `{kernel}`: {}", first_of(.failures))]
    Assertion {
        /// The kernel.
        kernel: String,
        /// What failed, a line each: program, element, the assertion's text and its place.
        failures: Vec<String>,
    },

    /// What the driver reports.
    #[cfg(feature = "cuda")]
    #[error("{}{}{error}", .kernel.as_ref().map_or(String::new(), |kernel| format!("kernel `{kernel}`: ")), .line.as_ref().map_or(String::new(), |line| format!("{line}: ")))]
    Driver {
        /// The kernel, where one is known to be at fault.
        kernel: Option<String>,
        /// Line of the source, as `name:line`, if the error has one.
        line: Option<String>,
        /// The driver's error.
        error: Box<DriverError>,
    },

    /// What the emulator reports.
    #[error("kernel `{kernel}`{}: {}{error}{}", .argument.as_ref().map_or(String::new(), |name| format!(", argument {name}")), .line.as_ref().map_or(String::new(), |line| format!("{line}: ")), steps_advice(error))]
    Emulator {
        /// The kernel.
        kernel: String,
        /// The argument whose memory is concerned, in backquotes; all of them if they share it.
        argument: Option<String>,
        /// Line of the source, as `name:line`, if the error has one.
        line: Option<String>,
        /// The emulator's error.
        error: Box<EmuError>,
    },

    /// The emulator's memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),

    /// A number of elements that does not fit.
    #[error("{what}: {got} elements, expected {expected}")]
    Length {
        /// What was tried.
        what: &'static str,
        /// The number given.
        got: usize,
        /// The number that fits.
        expected: usize,
    },

    /// A part that is not in its memory.
    #[error("a range outside of the memory: {range:?} of {len} elements")]
    Range {
        /// The range given.
        range: std::ops::Range<usize>,
        /// Elements of the memory.
        len: usize,
    },

    /// A copy between two parts of memory that share some.
    #[error(
        "the memory that is copied from and the memory that is copied to overlap: copy by way of a third buffer"
    )]
    Overlap,

    /// A copy was awaited once more.
    #[error("the copy was awaited before, and gave its memory then: begin another")]
    CopyTaken,

    /// Things of two devices were put together.
    #[error("{what} belongs to another device")]
    OtherDevice {
        /// Which thing.
        what: String,
    },

    /// No target is low enough for a device.
    #[error(
        "{name} is of compute capability {capability}; 7.0 is the lowest that there is code for"
    )]
    TooOld {
        /// The device.
        name: String,
        /// Its compute capability.
        capability: String,
    },

    /// A kernel went wrong earlier, or somebody reset the device, and it does not recover.
    #[error("the device cannot be used any more in this process, since: {first}")]
    DeviceLost {
        /// The first error.
        first: String,
    },

    /// Something that has no place in the recording of a graph; on the emulator. A GPU's driver says so itself.
    #[error(
        "{what} has no place in the recording of a graph, and this stream is being recorded; use another stream, or one of \
         its own for the graph (Stream::new)"
    )]
    Recording {
        /// What was tried.
        what: &'static str,
    },

    /// An event that was never recorded.
    #[error("an event has no time before it is recorded")]
    NotRecorded,

    /// A file cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        problem: String,
    },

    /// Not one configuration of the autotuner works.
    #[error("kernel `{kernel}`: no configuration works:\n{reasons}")]
    Untunable {
        /// The kernel.
        kernel: String,
        /// Each configuration with its reason, a line each.
        reasons: String,
    },

    /// A mistake of ours.
    #[error("internal error in kernel `{kernel}`: {message}")]
    Internal {
        /// The kernel.
        kernel: String,
        /// What happened.
        message: String,
    },
}

/// The first of what failed, and how much more there is.
fn first_of(lines: &[String]) -> String {
    match lines {
        [] => "an assertion failed".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first}; and {} more", rest.len()),
    }
}

/// What can be done about a launch that took too many steps.
fn steps_advice(error: &EmuError) -> &'static str {
    match error.fault() {
        Some(Fault::StepLimit(_)) => {
            "; if the kernel comes to an end, raise `step_limit` in `DeviceOptions::emulator`"
        }
        _ => "",
    }
}

impl RuntimeError {
    /// Whether a second try would end the same way.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(
            self,
            RuntimeError::Source(_)
                | RuntimeError::Setup { .. }
                | RuntimeError::Argument { .. }
                | RuntimeError::Descriptor { .. }
                | RuntimeError::Compile { .. }
                | RuntimeError::Internal { .. }
        )
    }
}

fn no_kernel(name: Option<&str>, known: &[String]) -> String {
    match (name, known) {
        (Some(name), []) => format!("there is no kernel `{name}`, and no other in the program"),
        (Some(name), [only]) => format!("there is no kernel `{name}`; there is {only}"),
        (Some(name), known) => {
            let meant = closest(name, known.iter().map(String::as_str));
            let meant =
                meant.map_or_else(String::new, |meant| format!("; {}", did_you_mean(meant)));
            format!(
                "there is no kernel `{name}`; there is {}{meant}",
                list(known)
            )
        }
        (None, []) => "there is no kernel in the program".to_owned(),
        (None, known) => format!(
            "the program has several kernels, and none is named; there is {}",
            list(known)
        ),
    }
}

pub(crate) fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
    let more = if names.len() > 10 { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}
