//! The part of the loader for Linux: `dlopen`, slots and trampolines.

use crate::driver::symbols::{NAMES, for_each_symbol};
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::cell::Cell;
use std::sync::OnceLock;

#[cfg(target_arch = "aarch64")]
#[path = "dynamic/aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "dynamic/x86_64.rs"]
mod arch;
use arch::trampoline;

/// Where to look: the loader's own path, then the place of the Windows subsystem for Linux,
/// which not every distribution adds to it.
const LIBRARIES: [&CStr; 2] = [c"libcuda.so.1", c"/usr/lib/wsl/lib/libcuda.so.1"];

/// Resolve all symbols at once.
const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;

    /// The first of the slots, which lie in the order of [`NAMES`].
    static tilelift_driver_slots: [AtomicPtr<c_void>; NAMES.len()];
}

thread_local! {
    /// Set while this thread fills the slots, see [`target`].
    static FILLING: Cell<bool> = const { Cell::new(false) };
}

/// Opens the driver and fills the slots, once; afterwards repeats the first answer.
///
/// The error is the dynamic loader's message.
pub(in crate::driver) fn load() -> Result<(), &'static str> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        FILLING.set(true);
        let result = fill();
        FILLING.set(false);
        result
    });
    match done {
        Ok(()) => Ok(()),
        Err(reason) => Err(reason),
    }
}

/// Does the work of [`load`].
fn fill() -> Result<(), String> {
    // SAFETY: the assembly below defines this many slots, aligned, for the whole run, and
    // Rust only reaches them through atomics.
    let slots = unsafe { &tilelift_driver_slots };
    let (handle, result) = match open() {
        Ok(handle) => (handle, Ok(())),
        Err(reason) => (core::ptr::null_mut(), Err(reason)),
    };
    for (slot, name) in slots.iter().zip(NAMES) {
        let target = if handle.is_null() && ERROR_WORDS.contains(name) {
            words_without_driver as *mut c_void
        } else if handle.is_null() {
            no_device as *mut c_void
        } else {
            // SAFETY: the handle came from `dlopen` and is never closed; the name ends in NUL.
            let found = unsafe { dlsym(handle, name.as_ptr()) };
            if found.is_null() {
                not_found as *mut c_void
            } else {
                found
            }
        };
        slot.store(target, Ordering::Release);
    }
    result
}

/// The handle of the driver's library, or why each try failed.
fn open() -> Result<*mut c_void, String> {
    let mut reasons = Vec::new();
    for file in LIBRARIES {
        // SAFETY: the name ends in NUL. The library's initialisers run, which is the
        // purpose; should they call a trampoline, `target` answers.
        let handle = unsafe { dlopen(file.as_ptr(), RTLD_NOW) };
        if !handle.is_null() {
            return Ok(handle);
        }
        // SAFETY: takes nothing; the message belongs to this thread until its next call.
        let message = unsafe { dlerror() };
        reasons.push(if message.is_null() {
            format!("{}: cannot be opened", file.to_string_lossy())
        } else {
            // SAFETY: `dlerror` gives null or a C string.
            unsafe { CStr::from_ptr(message) }
                .to_string_lossy()
                .into_owned()
        });
    }
    // The second place is a fallback: its absence explains nothing to most readers.
    Err(reasons.swap_remove(0))
}

/// What the lazy entry jumps to for `slot`.
///
/// An initialiser of the driver may reach a trampoline while the slots are being filled by
/// the same thread, when the program exports them and the library's own calls bind to it.
/// Waiting would be for ever, so that call is told that the driver is not initialised.
extern "C" fn target(slot: &AtomicPtr<c_void>) -> *mut c_void {
    if FILLING.get() {
        return not_initialized as *mut c_void;
    }
    // Without a driver the slots hold `no_device`, which is the answer to this caller.
    let _ = load();
    slot.load(Ordering::Acquire)
}

/// What names and explains errors: whoever shows one needs an answer (`cust` panics without).
const ERROR_WORDS: [&CStr; 2] = [c"cuGetErrorString", c"cuGetErrorName"];

/// The answer of [`ERROR_WORDS`] where there is no driver, whose every call gives one error.
extern "C" fn words_without_driver(_code: c_int, text: *mut *const c_char) -> c_int {
    if !text.is_null() {
        // SAFETY: both functions are given a place for one pointer; the text is never freed.
        unsafe { text.write(c"there is no CUDA driver".as_ptr()) };
    }
    0
}

/// `CUDA_ERROR_NO_DEVICE`, for every other call where there is no driver.
extern "C" fn no_device() -> c_int {
    100
}

/// `CUDA_ERROR_NOT_FOUND`, for a function that the driver, being older, does not have.
extern "C" fn not_found() -> c_int {
    500
}

/// `CUDA_ERROR_NOT_INITIALIZED`, see [`target`].
extern "C" fn not_initialized() -> c_int {
    3
}

macro_rules! trampolines {
    ($($declared:ident)* ; $($newer:ident)*) => {
        global_asm!(
            ".pushsection .data.tilelift_driver,\"aw\",@progbits",
            ".p2align 3",
            ".globl tilelift_driver_slots",
            ".hidden tilelift_driver_slots",
            "tilelift_driver_slots:",
            ".popsection",
            ".pushsection .text.tilelift_driver,\"ax\",@progbits",
            ".p2align 4",
            ".globl tilelift_driver_trampolines",
            ".hidden tilelift_driver_trampolines",
            "tilelift_driver_trampolines:",
            $(trampoline!($declared),)*
            $(trampoline!($newer),)*
            ".popsection",
        );
    };
}

for_each_symbol!(trampolines);

#[cfg(test)]
mod tests;
