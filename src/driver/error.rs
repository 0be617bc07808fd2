//! What can go wrong between this crate and the driver.

use super::ffi::{self, Code};
use super::version::{Capability, CudaVersion, PtxVersion};
use core::ffi::{CStr, c_char};
use cust::error::CudaError;

/// An error of the driver layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The driver's library cannot be opened: no GPU, or no driver installed.
    #[error("no CUDA driver: {reason}")]
    NoDriver {
        /// The dynamic loader's message.
        reason: String,
    },

    /// There is a driver, and it finds no device.
    #[error("no CUDA device: the driver is installed and finds no GPU it may use")]
    NoDevice,

    /// No device has this number.
    #[error("no device {ordinal}: this machine has {count}")]
    DeviceOrdinal {
        /// The number asked for.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
    },

    /// A call failed for a reason that has no variant of its own.
    #[error("{call} failed: {text} ({name}, code {code})")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// Its result.
        code: i32,
        /// The driver's name for the result, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
        /// The driver's sentence about it.
        text: String,
    },

    /// The driver refused a launch.
    #[error("{name} cannot be launched: {text} ({error}, code {code}); {shape}")]
    Launch {
        /// The kernel.
        name: String,
        /// Grid, block and resources.
        shape: String,
        /// The driver's result.
        code: i32,
        /// Its name.
        error: String,
        /// The driver's sentence about it.
        text: String,
    },

    /// This process is a child of one that had started the driver.
    #[error(
        "the driver does not work in a forked process: start it after the fork, or start a new process"
    )]
    Forked,

    /// The driver is too old to have a function.
    #[error("the driver (CUDA {driver}) has no {call}: it needs CUDA {needed} or newer")]
    Missing {
        /// The function.
        call: &'static str,
        /// The driver's version.
        driver: CudaVersion,
        /// The first version that has it.
        needed: CudaVersion,
    },

    /// An allocation does not fit.
    #[error("out of device memory: {bytes} bytes asked for, {free} free")]
    OutOfMemory {
        /// The size asked for.
        bytes: usize,
        /// What the driver says is free.
        free: usize,
    },

    /// The system has no memory that stays in its place.
    #[error("out of pinned host memory: {bytes} bytes asked for")]
    OutOfPinnedMemory {
        /// The size asked for.
        bytes: usize,
    },

    /// The PTX is of a newer version than the driver's assembler knows.
    #[error(
        "the kernel is PTX {stated} and this driver (CUDA {driver}) takes PTX {newest} at most: \
         update the driver, or compile for a lower target or without the newer features"
    )]
    PtxTooNew {
        /// The version in the text.
        stated: PtxVersion,
        /// The newest one that the driver takes.
        newest: PtxVersion,
        /// The driver's version.
        driver: CudaVersion,
    },

    /// The code is for other devices than this one.
    #[error(
        "the kernel is for {target} and this device is of compute capability {capability}: \
         compile it for sm_{}{}", .capability.major, .capability.minor
    )]
    WrongTarget {
        /// The target of the code; `a binary` where it is not known.
        target: String,
        /// What the device is.
        capability: Capability,
    },

    /// The driver's assembler refused the PTX.
    #[error("the driver's assembler refused the PTX ({name}, code {code}):\n{log}")]
    Assemble {
        /// The result of the call.
        code: i32,
        /// The driver's name for it.
        name: String,
        /// What the assembler wrote, with line numbers of the PTX.
        log: String,
    },

    /// Machine code that is not a whole ELF file.
    #[error("not a cubin: {reason}")]
    BadCubin {
        /// What is wrong.
        reason: &'static str,
    },

    /// A text for the driver has a NUL inside.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// Which text.
        what: &'static str,
    },

    /// The module has no such kernel.
    #[error("the module has no kernel named {name}")]
    NoFunction {
        /// The name asked for.
        name: String,
    },

    /// More shared memory than a block can have.
    #[error(
        "{name} needs {needed} bytes of shared memory a block ({dynamic} of them dynamic) and \
         this device has {limit}: use smaller tiles or fewer stages"
    )]
    SharedMemory {
        /// The kernel.
        name: String,
        /// Static and dynamic bytes.
        needed: u32,
        /// The dynamic ones.
        dynamic: u32,
        /// The device's limit.
        limit: u32,
    },

    /// More threads than the kernel, with its registers, can have.
    #[error("{name} was to run with {threads} threads a block and can have {limit}")]
    Threads {
        /// The kernel.
        name: String,
        /// The product of the block's sides.
        threads: u64,
        /// The most that the driver allows for this kernel.
        limit: u32,
    },

    /// The grid is larger than the device allows.
    #[error("{name}: grid side {axis} is {size} and can be {limit} at most")]
    Grid {
        /// The kernel.
        name: String,
        /// 0 to 2 for x to z.
        axis: usize,
        /// The side asked for.
        size: u32,
        /// The device's limit.
        limit: u32,
    },

    /// The grid is not made of whole clusters.
    #[error("{name}: a grid of {grid:?} is not made of clusters of {cluster:?}")]
    Cluster {
        /// The kernel.
        name: String,
        /// The grid asked for.
        grid: [u32; 3],
        /// Blocks of a cluster by axis.
        cluster: [u32; 3],
    },

    /// The number of arguments differs from the number of parameters.
    #[error("{name} takes {expected} arguments, {got} given")]
    ArgumentCount {
        /// The kernel.
        name: String,
        /// Its parameters.
        expected: usize,
        /// The arguments.
        got: usize,
    },

    /// An argument is not what the parameter takes.
    #[error("{name}: argument {index} is {got}, expected {expected}")]
    Argument {
        /// The kernel.
        name: String,
        /// Counted from 0.
        index: usize,
        /// The parameter, in words.
        expected: String,
        /// The argument, in words.
        got: String,
    },

    /// Things of two devices were put together.
    #[error("{what} belongs to device {got}, expected device {expected}")]
    Device {
        /// Which thing.
        what: &'static str,
        /// The device of the kernel or the copy.
        expected: u32,
        /// Its own device.
        got: u32,
    },

    /// A copy was asked for its memory once more.
    #[error("the copy was awaited before, and gave its memory then: begin another")]
    CopyTaken,

    /// Something was made in a context that is not the device's primary one.
    #[error("{what} belongs to another context than the device's primary one")]
    ForeignContext {
        /// Which thing.
        what: &'static str,
    },

    /// A copy between places of different size, or a range outside a buffer.
    #[error("{what}: {got} bytes, expected {expected}")]
    Size {
        /// What was tried.
        what: &'static str,
        /// The size given.
        got: usize,
        /// The size that fits.
        expected: usize,
    },
}

impl DriverError {
    /// Whether the error is one of a kernel that went wrong, or of a device that was reset, after which every call to the device fails
    /// in this process.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        // The numbers are those of `CUresult`: invalid context, illegal address, time-out, context destroyed, assertion, exceptions of the
        // hardware, illegal instruction, misaligned address, address space, program counter, unspecified failure, and
        // faults that only newer drivers tell apart.
        let code = match self {
            DriverError::Call { code, .. } | DriverError::Launch { code, .. } => *code,
            _ => return false,
        };
        matches!(
            code,
            ffi::INVALID_CONTEXT | 214 | 700 | 702 | ffi::CONTEXT_IS_DESTROYED | 710 | 714
                ..=719 | 721
        )
    }
}

/// Every error of `cust` that is a result of the driver.
#[rustfmt::skip] // a list
const OF_CUST: [CudaError; 58] = {
    use CudaError::*;
    [
        InvalidValue, OutOfMemory, NotInitialized, Deinitialized, ProfilerDisabled,
        ProfilerNotInitialized, ProfilerAlreadyStarted, ProfilerAlreadyStopped, NoDevice,
        InvalidDevice, InvalidImage, InvalidContext, ContextAlreadyCurrent, MapFailed, UnmapFailed,
        ArrayIsMapped, AlreadyMapped, NoBinaryForGpu, AlreadyAcquired, NotMapped, NotMappedAsArray,
        NotMappedAsPointer, EccUncorrectable, UnsupportedLimit, ContextAlreadyInUse,
        PeerAccessUnsupported, InvalidPtx, InvalidGraphicsContext, NvlinkUncorrectable,
        InvalidSource, FileNotFound, SharedObjectSymbolNotFound, SharedObjectInitFailed,
        OperatingSystemError, InvalidHandle, NotFound, NotReady, IllegalAddress,
        LaunchOutOfResources, LaunchTimeout, LaunchIncompatibleTexturing, PeerAccessAlreadyEnabled,
        PeerAccessNotEnabled, PrimaryContextActive, ContextIsDestroyed, AssertError, TooManyPeers,
        HostMemoryAlreadyRegistered, HostMemoryNotRegistered, HardwareStackError,
        IllegalInstruction, MisalignedAddress, InvalidAddressSpace, InvalidProgramCounter,
        LaunchFailed, NotPermitted, NotSupported, UnknownError,
    ]
};

impl DriverError {
    /// The same as an error of `cust`, for applications that pass those on: [`CudaError::UnknownError`] where `cust` has
    /// no name for it, as it does itself.
    #[must_use]
    pub fn to_cust(&self) -> CudaError {
        let code = match self {
            DriverError::Call { code, .. }
            | DriverError::Launch { code, .. }
            | DriverError::Assemble { code, .. } => *code,
            DriverError::NoDriver { .. } | DriverError::NoDevice => return CudaError::NoDevice,
            DriverError::OutOfMemory { .. } | DriverError::OutOfPinnedMemory { .. } => {
                return CudaError::OutOfMemory;
            }
            DriverError::Forked => return CudaError::NotInitialized,
            // Found before the driver was asked.
            _ => return CudaError::InvalidValue,
        };
        let same = OF_CUST.into_iter().find(|&known| known as Code == code);
        same.unwrap_or(CudaError::UnknownError)
    }
}

impl From<CudaError> for DriverError {
    fn from(error: CudaError) -> DriverError {
        of_cust("a call of `cust`")(error)
    }
}

/// Names the call by which `cust` got an error.
pub(super) fn of_cust(call: &'static str) -> impl FnOnce(CudaError) -> DriverError {
    move |error| failed(call, error as Code)
}

/// The error of a launch that was refused.
pub(super) fn check_launch(kernel: &str, shape: &str, code: Code) -> DriverError {
    DriverError::Launch {
        name: kernel.to_owned(),
        shape: shape.to_owned(),
        code,
        error: name(code),
        text: text(code),
    }
}

/// Turns a result into an error that names the call and has the driver's words.
pub(super) fn check(call: &'static str, code: Code) -> Result<(), DriverError> {
    if code == ffi::SUCCESS {
        Ok(())
    } else {
        Err(failed(call, code))
    }
}

/// The error of [`check`], out of the way of the calls that succeed.
#[cold]
fn failed(call: &'static str, code: Code) -> DriverError {
    DriverError::Call {
        call,
        code,
        name: name(code),
        text: text(code),
    }
}

/// The driver's name for `code`.
pub(super) fn name(code: Code) -> String {
    words(ffi::cuGetErrorName, code).unwrap_or_else(|| "unnamed".to_owned())
}

/// What the driver says of `code`, and what that means where it does not say.
fn text(code: Code) -> String {
    let told = words(ffi::cuGetErrorString, code);
    let told = told.unwrap_or_else(|| "an error unknown to the driver".to_owned());
    match code {
        ffi::INVALID_CONTEXT | ffi::CONTEXT_IS_DESTROYED => {
            format!(
                "{told}; somebody reset the device (cudaDeviceReset) or destroyed the context, and all that was made in it is gone"
            )
        }
        _ => told,
    }
}

/// The text that `ask` gives for `code`.
fn words(
    ask: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    code: Code,
) -> Option<String> {
    let mut text = core::ptr::null();
    // SAFETY: both functions that are passed take any code and write one pointer.
    let known = unsafe { ask(code, &raw mut text) } == ffi::SUCCESS;
    if !known || text.is_null() {
        return None;
    }
    // SAFETY: on success the pointer is null or a C string that lives as long as the driver.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_stand_in_the_messages() {
        let error = DriverError::PtxTooNew {
            stated: PtxVersion { major: 9, minor: 2 },
            newest: PtxVersion { major: 9, minor: 0 },
            driver: CudaVersion(13_000),
        };
        let text = error.to_string();
        assert!(
            text.contains("PTX 9.2") && text.contains("PTX 9.0"),
            "{text}"
        );
        assert!(text.contains("CUDA 13.0"), "{text}");

        let error = DriverError::WrongTarget {
            target: "sm_100a".to_owned(),
            capability: Capability { major: 9, minor: 0 },
        };
        let text = error.to_string();
        assert!(
            text.contains("sm_100a") && text.contains("compile it for sm_90"),
            "{text}"
        );
    }

    #[test]
    fn faults_of_kernels_stick() {
        for (code, sticky) in [
            (1, false),
            (2, false),
            (201, true),
            (600, false),
            (700, true),
            (709, true),
            (719, true),
        ] {
            let error = check("cuStreamSynchronize", code).expect_err("not zero");
            assert_eq!(error.is_sticky(), sticky, "{code}");
        }
        assert!(!DriverError::NoDevice.is_sticky());
    }

    #[test]
    fn errors_of_cust_come_and_go() {
        for known in OF_CUST {
            assert_eq!(DriverError::from(known).to_cust(), known);
        }
        // A code that `cust` has no name for, and its own two.
        let newer = check("cuStreamSynchronize", 721).expect_err("not zero");
        assert_eq!(newer.to_cust(), CudaError::UnknownError);
        let own = DriverError::from(CudaError::InvalidMemoryAllocation);
        assert!(own.to_string().contains("a call of `cust` failed"), "{own}");
        let size = DriverError::Size {
            what: "a copy",
            got: 1,
            expected: 2,
        };
        assert_eq!(size.to_cust(), CudaError::InvalidValue);
    }

    #[test]
    fn codes_that_nobody_knows_are_errors_too() {
        let error = check("cuSomething", 12_345).expect_err("not zero");
        let text = error.to_string();
        assert!(text.starts_with("cuSomething failed"), "{text}");
        assert!(text.ends_with("code 12345)"), "{text}");
    }
}
