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
mod dynamic;
