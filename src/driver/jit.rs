//! The driver's assembler: options, logs, and PTX to machine code.
//!
//! `cust` 0.3.2 loses the assembler's log, and its linker sends PTX without the NUL that the
//! driver expects. Here every call brings buffers for both logs, and a failure carries them.

use super::context::Context;
use super::error::{self, DriverError, check};
use super::ffi::{self, Code, Handle};
use super::version::{PtxVersion, target_in};
use core::ffi::{c_uint, c_void};
use smallvec::SmallVec;
use std::ffi::CString;

/// How the driver assembles PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct JitOptions {
    /// The most registers a thread may have; the kernel's own bounds hold if absent.
    pub max_registers: Option<u32>,
    /// 0 to 4; absent is 4.
    pub opt_level: Option<u32>,
    /// Keep the lines of the PTX, or of the source that it names, for profilers.
    pub line_info: bool,
    /// Have the information log tell registers, spills and shared memory of each kernel.
    pub verbose: bool,
}

/// Bytes of each log; the driver cuts what is longer.
const LOG_BYTES: usize = 32 << 10;

/// The options of one call in the driver's form, with the buffers they point to.
///
/// The driver takes two parallel arrays. A value is not a pointer to the number but the number
/// itself in the place of a pointer.
pub(super) struct Jit {
    keys: SmallVec<[c_uint; 8]>,
    values: SmallVec<[*mut c_void; 8]>,
    error: Vec<u8>,
    info: Vec<u8>,
}

impl Jit {
    pub(super) fn new(options: &JitOptions) -> Jit {
        let mut jit = Jit {
            keys: SmallVec::new(),
            values: SmallVec::new(),
            error: vec![0; LOG_BYTES],
            info: vec![0; LOG_BYTES],
        };
        // The numbers are those of `CUjit_option`. The buffers do not move when `Jit` does.
        let (error, info) = (jit.error.as_mut_ptr(), jit.info.as_mut_ptr());
        jit.push(5, error.cast());
        jit.push(6, number(LOG_BYTES));
        jit.push(3, info.cast());
        jit.push(4, number(LOG_BYTES));
        if let Some(registers) = options.max_registers {
            jit.push(0, number(registers as usize));
        }
        if let Some(level) = options.opt_level {
            jit.push(7, number(level as usize));
        }
        if options.verbose {
            jit.push(12, number(1));
        }
        if options.line_info {
            jit.push(13, number(1));
        }
        jit
    }

    fn push(&mut self, key: c_uint, value: *mut c_void) {
        self.keys.push(key);
        self.values.push(value);
    }

    /// Loads `image`, a NUL-terminated text or a whole ELF file, into the current context.
    pub(super) fn load(&mut self, image: &[u8]) -> Result<Handle, Code> {
        let mut module = 0;
        // SAFETY: the image is as the driver expects (the callers see to that); the arrays have
        // the length that is passed and the buffers in them live in `self`.
        let code = unsafe {
            ffi::cuModuleLoadDataEx(
                &raw mut module,
                image.as_ptr().cast(),
                self.keys.len() as c_uint,
                self.keys.as_ptr(),
                self.values.as_mut_ptr(),
            )
        };
        if code == ffi::SUCCESS {
            Ok(module)
        } else {
            Err(code)
        }
    }

    /// What the assembler had to say beside errors.
    pub(super) fn info_log(&self) -> String {
        log(&self.info)
    }

    /// The error for the result `code` of assembling `ptx`.
    pub(super) fn refused(&self, context: &Context, ptx: &str, code: Code) -> DriverError {
        let device = context.device();
        let newest = device.driver.newest_ptx();
        let stated = PtxVersion::stated_in(ptx);
        let text = log(&self.error);
        // Some drivers call a version that they do not know invalid PTX, and say so in the log.
        let version = code == ffi::UNSUPPORTED_PTX_VERSION || text.contains("Unsupported .version");
        if let Some(stated) = stated.filter(|_| version) {
            return DriverError::PtxTooNew {
                stated,
                newest,
                driver: device.driver.version(),
            };
        }
        if let Some(target) = target_in(ptx)
            && (code == ffi::NO_BINARY_FOR_GPU || device.capability.runs(target) == Some(false))
        {
            return DriverError::WrongTarget {
                target: target.to_owned(),
                capability: device.capability,
            };
        }
        DriverError::Assemble {
            code,
            name: error::name(code),
            log: if text.is_empty() {
                "(the assembler wrote no log)".to_owned()
            } else {
                text
            },
        }
    }
}

/// A number in the place of a pointer.
fn number(value: usize) -> *mut c_void {
    core::ptr::without_provenance_mut(value)
}

/// The text up to the NUL.
fn log(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim_end().to_owned()
}

/// The text as the driver wants it.
pub(super) fn terminated(ptx: &str) -> Result<CString, DriverError> {
    CString::new(ptx).map_err(|_| DriverError::Nul {
        what: "the PTX text",
    })
}

/// What [`assemble`] makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cubin {
    /// An ELF file with machine code for the context's device, for
    /// [`Module::load_cubin`](super::Module::load_cubin).
    pub bytes: Vec<u8>,
    /// The information log.
    pub info_log: String,
}

/// Turns `ptx` into machine code for the device of `context`, without loading it.
///
/// # Errors
///
/// Those of [`Module::load`](super::Module::load).
pub fn assemble(context: &Context, ptx: &str, options: &JitOptions) -> Result<Cubin, DriverError> {
    /// `CU_JIT_INPUT_PTX`.
    const PTX: c_uint = 1;
    let text = terminated(ptx)?;
    let text = text.as_bytes_with_nul();
    let _current = context.enter()?;
    let mut jit = Jit::new(options);
    let mut state = 0;
    // SAFETY: the arrays have the length that is passed. The driver keeps using both arrays and
    // the buffers until the state is destroyed; `jit` is declared before `link` and so outlives
    // it.
    let code = unsafe {
        ffi::cuLinkCreate_v2(
            jit.keys.len() as c_uint,
            jit.keys.as_ptr(),
            jit.values.as_mut_ptr(),
            &raw mut state,
        )
    };
    check("cuLinkCreate", code)?;
    let link = Link { state };
    // SAFETY: the state is alive; text and name end in NUL; there are no further options.
    let code = unsafe {
        ffi::cuLinkAddData_v2(
            link.state,
            PTX,
            text.as_ptr().cast(),
            text.len(),
            c"kernel.ptx".as_ptr(),
            0,
            core::ptr::null(),
            core::ptr::null_mut(),
        )
    };
    if code != ffi::SUCCESS {
        return Err(jit.refused(context, ptx, code));
    }
    let (mut image, mut bytes) = (core::ptr::null(), 0);
    // SAFETY: the state is alive; writes a pointer and a size.
    let code = unsafe { ffi::cuLinkComplete(link.state, &raw mut image, &raw mut bytes) };
    if code != ffi::SUCCESS || image.is_null() {
        return Err(jit.refused(context, ptx, code));
    }
    // SAFETY: the driver gave this many bytes, which live as long as the state.
    let bytes = unsafe { core::slice::from_raw_parts(image, bytes) }.to_vec();
    drop(link);
    Ok(Cubin {
        bytes,
        info_log: jit.info_log(),
    })
}

/// A link state, destroyed in every case.
struct Link {
    state: Handle,
}

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: made by `assemble`, in whose context this runs, and not used afterwards.
        let _ = unsafe { ffi::cuLinkDestroy(self.state) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_end_at_the_nul() {
        assert_eq!(log(b"ptxas error: line 3\n\0\0junk"), "ptxas error: line 3");
        assert_eq!(log(&[0; 8]), "");
        assert_eq!(log(b"cut"), "cut");
    }

    #[test]
    fn options_are_pairs() {
        let options = JitOptions {
            max_registers: Some(64),
            opt_level: Some(3),
            line_info: true,
            verbose: true,
        };
        let jit = Jit::new(&options);
        assert_eq!(jit.keys.as_slice(), [5, 6, 3, 4, 0, 7, 12, 13]);
        let numbers: Vec<usize> = jit.values.iter().map(|value| value.addr()).collect();
        assert_eq!(numbers[0], jit.error.as_ptr().addr());
        assert_eq!(numbers[1], LOG_BYTES);
        assert_eq!(numbers[2], jit.info.as_ptr().addr());
        assert_eq!(numbers[3..], [LOG_BYTES, 64, 3, 1, 1]);
    }

    #[test]
    fn nul_inside_a_text_is_refused() {
        assert_eq!(
            terminated(".version\0 8.0"),
            Err(DriverError::Nul {
                what: "the PTX text"
            })
        );
    }
}
