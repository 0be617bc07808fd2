//! Defines the driver's symbols, so that a program links without CUDA and starts without a driver.
//!
//! For each name of `symbols` there is a **slot**, a pointer in writable data, and a
//! **trampoline**, a function of that name whose whole body is "put the slot's address into a
//! scratch register, jump where the slot points". Arguments stay where the caller put them, so
//! one shape serves every signature.
//!
//! ```text
//!   caller --> cuInit:  r11 = &slot[i]; jmp *r11 --+--> lazy entry   (before the first use)
//!                                                  +--> libcuda.so.1 (driver present)
//!                                                  +--> no_device    (no driver: code 100)
//!                                                  +--> not_found    (driver lacks it: code 500)
//! ```
//!
//! All slots start at the lazy entry. It saves the argument registers, has [`load`] fill every
//! slot by `dlopen` and `dlsym`, restores the registers and goes on to the target, so calls that
//! reach a trampoline before [`load`] (from `cust` used directly, say) work as well. Filled
//! slots cost one indirect jump.
//!
//! Linking. The trampolines are weak definitions in the object that also holds [`load`]. A
//! shared `libcuda.so` on the command line (a machine with the toolkit) never clashes with them,
//! as a definition in the program goes before one in a library; weakness tolerates another crate
//! that plays the same trick. `dlsym` on the handle of `libcuda.so.1` searches that library and
//! its dependencies alone and thus never finds the trampolines themselves.
//!
//! This is written for Linux on x86-64 and AArch64. Elsewhere nothing is defined here and the
//! toolkit's import library has to be linked.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(super) use dynamic::load;

/// The linker bound the symbols already.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) fn load() -> Result<(), &'static str> {
    Ok(())
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod dynamic {
    use super::super::symbols::{NAMES, for_each_symbol};
    use core::arch::global_asm;
    use core::ffi::{CStr, c_char, c_int, c_void};
    use core::sync::atomic::{AtomicPtr, Ordering};
    use std::cell::Cell;
    use std::sync::OnceLock;

    /// Bytes from one trampoline to the next.
    #[cfg(test)]
    const STRIDE: usize = 16;

    /// Where to look: the loader's own path, then the place of the Windows subsystem for Linux,
    /// which not every distribution adds to it.
    const LIBRARIES: [&CStr; 2] = [c"libcuda.so.1", c"/usr/lib/wsl/lib/libcuda.so.1"];

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
    pub(in super::super) fn load() -> Result<(), &'static str> {
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
            let target = if handle.is_null() {
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

    /// `CUDA_ERROR_NO_DEVICE`, for every call where there is no driver.
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

    /// One slot and one trampoline.
    #[cfg(target_arch = "x86_64")]
    macro_rules! trampoline {
        ($name:ident) => {
            concat!(
                ".pushsection .data.tilelift_driver,\"aw\",@progbits\n",
                ".Ltilelift_slot_",
                stringify!($name),
                ": .quad tilelift_driver_lazy\n",
                ".popsection\n",
                ".weak ",
                stringify!($name),
                "\n",
                ".type ",
                stringify!($name),
                ",@function\n",
                ".p2align 4\n",
                stringify!($name),
                ":\n",
                "lea r11, [rip + .Ltilelift_slot_",
                stringify!($name),
                "]\n",
                "jmp qword ptr [r11]\n",
                ".size ",
                stringify!($name),
                ", . - ",
                stringify!($name),
                "\n",
            )
        };
    }

    /// One slot and one trampoline.
    #[cfg(target_arch = "aarch64")]
    macro_rules! trampoline {
        ($name:ident) => {
            concat!(
                ".pushsection .data.tilelift_driver,\"aw\",@progbits\n",
                ".Ltilelift_slot_",
                stringify!($name),
                ": .quad tilelift_driver_lazy\n",
                ".popsection\n",
                ".weak ",
                stringify!($name),
                "\n",
                ".type ",
                stringify!($name),
                ",@function\n",
                ".p2align 4\n",
                stringify!($name),
                ":\n",
                "adrp x16, .Ltilelift_slot_",
                stringify!($name),
                "\n",
                "add x16, x16, :lo12:.Ltilelift_slot_",
                stringify!($name),
                "\n",
                "ldr x17, [x16]\n",
                "br x17\n",
                ".size ",
                stringify!($name),
                ", . - ",
                stringify!($name),
                "\n",
            )
        };
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

    // The lazy entry: r11 holds the slot. Saved are the registers that carry arguments in the
    // System V convention, rdi to r9 and xmm0 to xmm7; 8 + 8 (return address, rbp) + 192 bytes
    // keep the stack aligned to 16 at the call.
    #[cfg(target_arch = "x86_64")]
    global_asm!(
        ".pushsection .text.tilelift_driver,\"ax\",@progbits",
        ".p2align 4",
        ".globl tilelift_driver_lazy",
        ".hidden tilelift_driver_lazy",
        "tilelift_driver_lazy:",
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 192",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov [rsp + 128], rdi",
        "mov [rsp + 136], rsi",
        "mov [rsp + 144], rdx",
        "mov [rsp + 152], rcx",
        "mov [rsp + 160], r8",
        "mov [rsp + 168], r9",
        "mov rdi, r11",
        "call {target}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "mov rdi, [rsp + 128]",
        "mov rsi, [rsp + 136]",
        "mov rdx, [rsp + 144]",
        "mov rcx, [rsp + 152]",
        "mov r8, [rsp + 160]",
        "mov r9, [rsp + 168]",
        "leave",
        "jmp r11",
        ".popsection",
        target = sym target,
    );

    // The lazy entry: x16 holds the slot. Saved are x0 to x8 and q0 to q7, the registers that
    // carry arguments in the AAPCS64, with the frame pointer and the return address.
    #[cfg(target_arch = "aarch64")]
    global_asm!(
        ".pushsection .text.tilelift_driver,\"ax\",@progbits",
        ".p2align 4",
        ".globl tilelift_driver_lazy",
        ".hidden tilelift_driver_lazy",
        "tilelift_driver_lazy:",
        "stp x29, x30, [sp, #-224]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov x0, x16",
        "bl {target}",
        "mov x17, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        "br x17",
        ".popsection",
        target = sym target,
    );

    #[cfg(test)]
    mod tests {
        use super::*;

        unsafe extern "C" {
            /// The first trampoline.
            static tilelift_driver_trampolines: u8;
        }

        /// The code of the trampoline at `index`.
        fn trampoline(index: usize) -> *const c_void {
            (&raw const tilelift_driver_trampolines)
                .wrapping_add(index * STRIDE)
                .cast()
        }

        #[test]
        fn trampolines_lie_in_the_order_of_the_table() {
            for (name, address) in [
                (c"cuInit", cust_raw::cuInit as *const c_void),
                (c"cuMemAlloc_v2", cust_raw::cuMemAlloc_v2 as *const c_void),
                (c"cuLaunchKernel", cust_raw::cuLaunchKernel as *const c_void),
                (
                    c"cuGetExportTable",
                    cust_raw::cuGetExportTable as *const c_void,
                ),
            ] {
                let index = NAMES
                    .iter()
                    .position(|&other| other == name)
                    .expect("in the table");
                assert_eq!(trampoline(index), address, "{name:?}");
            }
        }

        #[test]
        fn without_a_driver_every_call_returns_no_device() {
            // The first call goes through the lazy entry, whatever other tests did before.
            if load().is_ok() {
                eprintln!("skipped: this machine has a CUDA driver");
                return;
            }
            for (index, name) in NAMES.iter().enumerate() {
                // SAFETY: the trampolines of a C function that takes nothing from the stack and
                // returns an int; without a driver it ends in `no_device`.
                let code = unsafe {
                    let call: extern "C" fn() -> c_int = core::mem::transmute(trampoline(index));
                    call()
                };
                assert_eq!(code, 100, "{name:?}");
            }
        }

        /// The slot that [`tilelift_driver_test_entry`] names.
        static PROBE: AtomicPtr<c_void> = AtomicPtr::new(probe as *mut c_void);

        // A trampoline as it is before the first use.
        #[cfg(target_arch = "x86_64")]
        global_asm!(
            ".globl tilelift_driver_test_entry",
            ".hidden tilelift_driver_test_entry",
            "tilelift_driver_test_entry:",
            "lea r11, [rip + {slot}]",
            "jmp tilelift_driver_lazy",
            slot = sym PROBE,
        );

        // A trampoline as it is before the first use.
        #[cfg(target_arch = "aarch64")]
        global_asm!(
            ".globl tilelift_driver_test_entry",
            ".hidden tilelift_driver_test_entry",
            "tilelift_driver_test_entry:",
            "adrp x16, {slot}",
            "add x16, x16, :lo12:{slot}",
            "b tilelift_driver_lazy",
            slot = sym PROBE,
        );

        /// Eight integers, so that two of them are on the stack on x86-64, and eight floats.
        type Probe = extern "C" fn(
            &mut [f64; 16],
            i64,
            i32,
            i64,
            i32,
            i64,
            i64,
            i64,
            f64,
            f32,
            f64,
            f64,
            f64,
            f64,
            f64,
            f64,
        ) -> c_int;

        /// Writes down its arguments.
        extern "C" fn probe(
            out: &mut [f64; 16],
            a: i64,
            b: i32,
            c: i64,
            d: i32,
            e: i64,
            f: i64,
            g: i64,
            s: f64,
            t: f32,
            u: f64,
            v: f64,
            w: f64,
            x: f64,
            y: f64,
            z: f64,
        ) -> c_int {
            let integers = [a, b.into(), c, d.into(), e, f, g].map(|value| value as f64);
            out[..7].copy_from_slice(&integers);
            out[7..15].copy_from_slice(&[s, t.into(), u, v, w, x, y, z]);
            out[15] = 1.0;
            17
        }

        #[test]
        fn lazy_entry_keeps_the_arguments() {
            unsafe extern "C" {
                fn tilelift_driver_test_entry();
            }
            let mut out = [0.0; 16];
            // SAFETY: the entry goes on to `probe`, whose type this is.
            let call: Probe =
                unsafe { core::mem::transmute(tilelift_driver_test_entry as *const c_void) };
            let code = call(
                &mut out, -1, 2, 3, -4, 5, 6, 7, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5,
            );
            assert_eq!(code, 17);
            assert_eq!(
                out,
                [
                    -1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5,
                    15.5, 1.0
                ]
            );
        }
    }
}
